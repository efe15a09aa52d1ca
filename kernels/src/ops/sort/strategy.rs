//! How a sort is carried out: one pure function of what is known of its keys.
//!
//! A radix sort makes a pass over the rows for each digit of 8 bits. Where the highest bits of the
//! keys, a prefix, tell most rows apart, passes over the prefix suffice: rows that agree in it are
//! neighbours then, in a run, and `runs.rs` puts each run in order. That works for runs of up to
//! [`LONGEST_RUN`] rows, and for longer ones whose rows are in order already, as those of equal
//! keys are.

use super::index_bits;
use super::runs::LONGEST_RUN;

/// `SORT_SAMPLE_LEVELS`: widths at which a sample's keys are compared.
pub(super) const LEVELS: usize = 7;
/// `SORT_SAMPLE_FIRST_BITS`: the first width. Each further one has 8 bits more; the last level
/// compares whole keys.
pub(super) const FIRST_BITS: u32 = 16;

/// Without a sample, a prefix has this many bits more than a row's number: of keys spread evenly,
/// one row in 16 then meets another.
const GUESSED_MORE: u32 = 4;
/// And this many more for floats, whose highest bits, the exponents, tell few keys apart.
const GUESSED_EXPONENT: u32 = 8;

/// A prefix will do if a row's run has at most this many rows of other keys, on average.
const MOST_MET: f64 = 1.0;
/// Or at most the row's equals divided by this: where keys repeat, few keys agree with another one,
/// but each of those adds all of its rows to a run.
const EQUALS_A_MET: f64 = 64.0;
/// With more equals than this, a rare key that agrees with a frequent one makes a long run. No
/// sample shows such keys, so the prefix has at least the bits of a row's number. If further words
/// order equal keys, the runs themselves are too long, and there is no prefix.
const MOST_EQUALS: f64 = 16.0;
/// The limit [`MOST_EQUALS`] where further words order equal keys; `SORT_RUNS_COMPARED` of the
/// kernels is a multiple of it.
const MOST_EQUALS_BY_MORE: f64 = 8.0;
/// The rows of two keys that agree in the prefix make a run. It is expected to be too long if they
/// are more than this share of [`LONGEST_RUN`].
const FULL_RUN: f64 = 0.8;
/// Then at most this many pairs of keys may be expected to agree.
const MOST_AGREEING: f64 = 0.1;

/// With more equals than this, whole keys travel with row numbers: packed words would tie, and
/// their whole keys would be read at random places.
const MOST_TIED: f64 = 3.0;
/// But not if one row in this many is equal to a row: then equals lie close to each other.
const CLOSE: f64 = 64.0;
/// Nor if more than this share of the rows equal the next row.
const NEIGHBOURS: f64 = 0.5;

/// A longer prefix is tried after at most this many long runs.
const FEW_LONG_RUNS: u64 = 64;
/// And only if the last one had fewer than this many bits more than a row's number.
const WIDENED: u32 = 12;

/// How a sort is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    /// A pass for each digit of the whole key.
    AllBits,
    /// Passes over the highest `sorted` bits of whole keys, which travel with their payload or row
    /// number; then runs are put in order.
    Prefix { sorted: u32 },
    /// Passes over the highest `sorted` bits of words that hold a row number and as much of the key
    /// as fits beside it; then runs are put in order.
    PackedPrefix { sorted: u32 },
}

/// What a sort is to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortOutput {
    /// The keys in order, alone or with a payload beside each.
    Rows,
    /// The rows' numbers in the order of their keys.
    Numbers,
    /// The rows' numbers in the order of their keys; further words order equal keys.
    NumbersByMore,
}

/// What is known of a sort before it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Summary {
    /// At least 2.
    pub(super) rows: u64,
    /// Bits of the keys' range.
    pub(super) bits: u32,
    pub(super) floats: bool,
    pub(super) output: SortOutput,
    /// Without one, keys are taken to be spread evenly over their range.
    pub(super) sample: Option<Sample>,
}

/// What a sample says of a column of keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    /// How many other rows agree with a row in the highest 16, 24, … bits of the range, on average;
    /// the last: in all bits.
    pub(super) agree: [f64; LEVELS],
    /// How many different keys there are; of skewed keys, at most.
    pub(super) distinct: f64,
    /// How many of them are frequent: all, unless keys are skewed.
    pub(super) frequent: f64,
    /// The highest bits of the range, without low ones that are the same in all keys.
    pub(super) varying: u32,
    /// The share of rows that have the key of the next row.
    pub(super) neighbours: f64,
}

/// Chooses how to sort.
pub(super) fn choose(of: &Summary) -> Strategy {
    let sorted = match &of.sample {
        Some(sample) => sample.prefix(of),
        None => Some((of.telling_bits() + GUESSED_MORE).next_multiple_of(8))
            .filter(|sorted| sorted + 8 <= of.bits),
    };
    sorted.map_or(Strategy::AllBits, |sorted| of.by_prefix(sorted))
}

impl Strategy {
    /// The bits of its prefix.
    pub(super) fn sorted(self) -> Option<u32> {
        match self {
            Strategy::AllBits => None,
            Strategy::Prefix { sorted } | Strategy::PackedPrefix { sorted } => Some(sorted),
        }
    }

    /// What to do where so many runs were too long and out of order: a few such runs are frequent
    /// keys that met by chance, and eight more bits tell those apart. Each prefix is longer than
    /// the last, so all bits are sorted at last. Where further words order equal keys, these make
    /// the long runs, whatever the prefix.
    pub(super) fn with_more_bits(self, of: &Summary, long_runs: u64) -> Strategy {
        match self {
            Strategy::Prefix { sorted } | Strategy::PackedPrefix { sorted }
                if of.output != SortOutput::NumbersByMore
                    && long_runs <= FEW_LONG_RUNS
                    && sorted < of.telling_bits() + WIDENED
                    && sorted + 16 <= of.bits =>
            {
                of.by_prefix(sorted + 8)
            }
            _ => Strategy::AllBits,
        }
    }
}

impl Summary {
    /// Bits that tell all rows apart if keys are spread evenly.
    fn telling_bits(&self) -> u32 {
        index_bits(self.rows) + if self.floats { GUESSED_EXPONENT } else { 0 }
    }

    fn by_prefix(&self, sorted: u32) -> Strategy {
        let packs = sorted + index_bits(self.rows) <= 64;
        let apart = self.sample.is_some_and(|sample| sample.equals_lie_apart(self.rows));
        match self.output {
            SortOutput::Rows => Strategy::Prefix { sorted },
            SortOutput::Numbers if apart || !packs => Strategy::Prefix { sorted },
            SortOutput::NumbersByMore if !packs => Strategy::AllBits,
            SortOutput::Numbers | SortOutput::NumbersByMore => Strategy::PackedPrefix { sorted },
        }
    }
}

impl Sample {
    fn equal(&self) -> f64 {
        self.agree[LEVELS - 1]
    }

    /// The bits to sort by, where fewer than all will do.
    fn prefix(&self, of: &Summary) -> Option<u32> {
        if of.output == SortOutput::NumbersByMore && self.equal() > MOST_EQUALS_BY_MORE {
            return None;
        }
        let widths = (0..LEVELS as u32 - 1)
            .map(|level| FIRST_BITS + 8 * level)
            .take_while(|sorted| sorted + 8 <= of.bits);
        let prefix =
            widths.zip(self.agree).find(|(sorted, agree)| self.runs_are_short(of, *sorted, *agree));
        let prefix = prefix.map(|(sorted, _)| sorted);
        // Low bits that are the same in all keys need not be sorted, and a prefix should not end
        // among them: a digit of few values that come in turn, as those of ascending keys do, has
        // all its rows of a tile begin in one bank of shared memory.
        let digits = prefix.unwrap_or(of.bits.next_multiple_of(8).saturating_sub(8)) / 8;
        let fewer = self.varying < of.bits && self.varying.div_ceil(8) <= digits;
        if fewer { Some(self.varying) } else { prefix }
    }

    /// Whether runs of rows that agree in the highest `sorted` bits will be short, or hold equal
    /// keys only. `agree`: how many other rows agree with a row.
    fn runs_are_short(&self, of: &Summary, sorted: u32, agree: f64) -> bool {
        let equal = self.equal();
        // Where further words follow, equal keys are out of order as others are.
        let met = if of.output == SortOutput::NumbersByMore { agree } else { agree - equal };
        let apart = equal <= MOST_EQUALS || sorted >= index_bits(of.rows);
        let long = 2.0 * (equal + 1.0) > FULL_RUN * LONGEST_RUN as f64;
        met <= MOST_MET.max(equal / EQUALS_A_MET)
            && apart
            && !(long && self.agreeing(sorted) > MOST_AGREEING)
    }

    /// How many pairs of a frequent key and another one agree in the highest `sorted` bits, of keys
    /// spread evenly.
    fn agreeing(&self, sorted: u32) -> f64 {
        self.frequent * self.distinct / 2f64.powi(sorted as i32 + 1)
    }

    fn equals_lie_apart(&self, rows: u64) -> bool {
        let equal = self.equal();
        equal > MOST_TIED && equal < rows as f64 / CLOSE && self.neighbours <= NEIGHBOURS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: u64 = 1_000_000;

    /// The sample of `distinct` keys, all as frequent, spread evenly over 64 bits.
    fn even(rows: u64, distinct: f64) -> Sample {
        let equal = (rows as f64 / distinct - 1.0).max(0.0);
        let agree = std::array::from_fn(|level| match level {
            level if level + 1 == LEVELS => equal,
            level => equal + rows as f64 / 2f64.powi((FIRST_BITS + 8 * level as u32) as i32),
        });
        Sample { agree, distinct, frequent: distinct, varying: 64, neighbours: 0.0 }
    }

    /// The sample of `frequent` keys that have this share of the rows; all other rows have keys of
    /// their own.
    fn skewed(rows: u64, frequent: f64, share: f64) -> Sample {
        let equal = share * share * rows as f64 / frequent;
        let sample = even(rows, rows as f64);
        let agree = sample.agree.map(|agree| agree + equal);
        Sample { agree, distinct: (1.0 - share) * rows as f64 + frequent, frequent, ..sample }
    }

    #[test]
    fn strategies_follow_from_what_is_known_of_keys() {
        use SortOutput::{Numbers, NumbersByMore, Rows};
        use Strategy::{AllBits, PackedPrefix, Prefix};
        let rows = 100 * MILLION;
        let guess = Summary { rows: MILLION, bits: 64, floats: false, output: Rows, sample: None };
        let of = |output, sample| Summary { rows, output, sample: Some(sample), ..guess };
        let narrow = |output, bits, sample| Summary { bits, ..of(output, sample) };
        let random = even(rows, rows as f64);
        // Most values are that of the next row.
        let ascending = Sample { neighbours: 0.99, ..even(rows, 1e6) };
        // Steps of 2²⁴ in a range of 51 bits.
        let steps = Sample { varying: 27, agree: [1525.0, 5.0, 0.0, 0.0, 0.0, 0.0, 0.0], ..random };
        // The low 20 bits of a thousand values differ.
        let clusters = Sample { agree: [1e5, 1e5, 1e5, 1e5, 1e5, 24.0, 0.0], ..random };
        let cases = [
            ("guess: keys", guess, Prefix { sorted: 24 }),
            (
                "guess: row numbers",
                Summary { output: Numbers, ..guess },
                PackedPrefix { sorted: 24 },
            ),
            ("guess: floats", Summary { floats: true, ..guess }, Prefix { sorted: 32 }),
            (
                "guess: two million rows",
                Summary { rows: 2 * MILLION, ..guess },
                Prefix { sorted: 32 },
            ),
            ("guess: codes", Summary { bits: 10, ..guess }, AllBits),
            ("guess: a prefix saves no digit", Summary { bits: 31, ..guess }, AllBits),
            ("random: keys", of(Rows, random), Prefix { sorted: 32 }),
            ("random: row numbers", of(Numbers, random), PackedPrefix { sorted: 32 }),
            ("random: more words", of(NumbersByMore, random), PackedPrefix { sorted: 32 }),
            ("random: 32 bits", narrow(Rows, 32, random), AllBits),
            (
                "ten values, which lie close",
                of(Numbers, even(rows, 10.0)),
                PackedPrefix { sorted: 32 },
            ),
            ("a thousand values", of(Numbers, even(rows, 1e3)), Prefix { sorted: 32 }),
            ("a thousand values: more words", of(NumbersByMore, even(rows, 1e3)), AllBits),
            ("a thousand dense values", narrow(Rows, 10, even(rows, 1e3)), AllBits),
            (
                "pairs of 256k values would make long runs",
                of(Rows, even(rows, 262_144.0)),
                Prefix { sorted: 40 },
            ),
            ("those of a million would not", of(Rows, even(rows, 1e6)), Prefix { sorted: 32 }),
            ("equals stand side by side", of(Numbers, ascending), PackedPrefix { sorted: 32 }),
            ("one frequent value", of(Rows, skewed(rows, 1.0, 0.9)), Prefix { sorted: 32 }),
            (
                "rare values meet a thousand frequent ones",
                of(Rows, skewed(rows, 1e3, 0.5)),
                Prefix { sorted: 40 },
            ),
            ("constant low bits", narrow(Numbers, 51, steps), PackedPrefix { sorted: 27 }),
            ("clusters", of(Rows, clusters), AllBits),
            (
                "a prefix too wide for a row's number",
                of(Numbers, Sample { varying: 40, ..clusters }),
                Prefix { sorted: 40 },
            ),
        ];
        for (name, summary, expected) in cases {
            assert_eq!(choose(&summary), expected, "{name}");
        }
    }

    #[test]
    fn longer_prefixes_end_in_all_bits() {
        use Strategy::{AllBits, PackedPrefix, Prefix};
        let guess = Summary {
            rows: MILLION,
            bits: 64,
            floats: false,
            output: SortOutput::Rows,
            sample: None,
        };
        let numbers = Summary { output: SortOutput::Numbers, ..guess };
        let cases = [
            ("few long runs", guess, Prefix { sorted: 24 }, 3, Prefix { sorted: 32 }),
            ("row numbers", numbers, PackedPrefix { sorted: 24 }, 3, PackedPrefix { sorted: 32 }),
            (
                "further words",
                Summary { output: SortOutput::NumbersByMore, ..guess },
                PackedPrefix { sorted: 24 },
                3,
                AllBits,
            ),
            ("many", guess, Prefix { sorted: 24 }, 1000, AllBits),
            ("once more", guess, Prefix { sorted: 32 }, 3, AllBits),
            (
                "no digit would be saved",
                Summary { bits: 39, ..guess },
                Prefix { sorted: 24 },
                3,
                AllBits,
            ),
        ];
        for (name, summary, strategy, long_runs, expected) in cases {
            assert_eq!(strategy.with_more_bits(&summary, long_runs), expected, "{name}");
        }
        for bits in 0..=64 {
            let summary = Summary { bits, ..guess };
            let mut strategy = choose(&summary);
            let attempts = std::iter::from_fn(|| {
                let next = strategy.with_more_bits(&summary, 1);
                (strategy != AllBits).then(|| strategy = next)
            });
            assert!(attempts.count() <= 2, "{bits} bits");
        }
    }
}
