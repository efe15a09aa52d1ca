//! Sorting by high bits only: a sample tells how many passes leave next to nothing to do, and `sort_runs` does it.
//!
//! 100M random keys of 64 bits differ almost always in their highest 32: four passes instead of eight, then one that puts
//! runs of equal prefixes in order. Keys that crowd together are sorted by all their bits. Of few rows nothing is sampled:
//! they are taken to be spread evenly, and where that was wrong, too many runs are too long, the sort begins anew.

use super::OPERATOR;
use super::key::{KeyKind, SortKey};
use super::pass::Counts;
use super::runs::{LONGEST_RUN, Runs};
use crate::device::{Argument, Device, Source};
use crate::error::Result;
use crate::ops::{grid, tiles};

/// `SORT_SAMPLE_LEVELS`, `SORT_SAMPLE_FIRST_BITS`, `SORT_SAMPLE_THREADS` of the kernels.
const LEVELS: usize = 7;
const FIRST_BITS: u32 = 16;
const SAMPLE_THREADS: u32 = 256;

/// Bits of the prefix beyond those of a row's number, where it is guessed, and more for the exponents of floats.
const GUESSED_MORE: u32 = 4;
const GUESSED_EXPONENT: u32 = 8;
/// Longest runs of a guess that are mended, where further words are compared: inserting a row takes a step for each before it.
const GUESSED_RUN: u64 = 32;
/// Pairs of values that agree, if there are probably so many at least, are looked for without waiting.
const LIKELY_PAIRS: f64 = 1.0;

/// How many rows a row may meet, on average, that agree with it in the sorted bits only. Where keys repeat, few values meet another, but
/// then all of its rows: of these many equal rows one more.
const MOST_MET: f64 = 1.0;
const EQUAL_A_MET: f64 = 64.0;
/// And how many whose keys are equal, where further words order those: runs are mended up to 256 rows. Where they are more, one row that
/// agrees with a frequent key makes a long run of its rows, and no sample shows that: as many bits are sorted as a row's number has.
const MOST_EQUAL: f64 = 16.0;

/// Rows of the same key as a row's for which keys travel with row numbers (a few milliseconds for 100M rows, which reading keys again
/// takes, too); and if one row in so many has it, or this share of rows has the key of the next, they lie side by side enough.
const MOST_TIED: f64 = 3.0;
const CLOSE: f64 = 64.0;
const NEIGHBOURS: f64 = 0.5;
pub(super) fn source() -> Source {
    Source::new("sort_sample", "#include \"sort_sample.cuh\"\nWF_SORT_SAMPLE_ENTRIES\n")
}

/// What a sample says of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    /// Probably the least key, less a margin, and the bits of what lies above.
    pub(super) base: u64,
    pub(super) bits: u32,
    /// The bits to sort by, where fewer than all will do.
    pub(super) prefix: Option<u32>,
    /// Rows that a row meets, on average, that have the same key.
    pub(super) equal: f64,
    /// How many different keys there probably are; where nothing else tells, as if each were as frequent.
    pub(super) distinct: f64,
    /// The share of rows that have the same key as the next.
    pub(super) near: f64,
    pub(super) basis: Basis,
}

/// What a [`Spread`] is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    Sample,
    Guess,
}

impl Spread {
    /// That of keys spread evenly over the range that they are known to have.
    pub(super) fn guessed(key: &SortKey<'_>, rows: u64) -> Spread {
        let exponent = if matches!(key.kind, KeyKind::F32 | KeyKind::F64) { GUESSED_EXPONENT } else { 0 };
        let sorted = (super::index_bits(rows) + GUESSED_MORE + exponent).next_multiple_of(8);
        let prefix = (sorted + 8 <= key.bits).then_some(sorted);
        Spread {
            base: key.base,
            bits: key.bits,
            prefix,
            equal: 0.0,
            distinct: rows as f64,
            near: 0.0,
            basis: Basis::Guess,
        }
    }

    /// Whether the histogram has to be looked at: a sample may have missed the least or the greatest key.
    pub(super) fn counts(&self) -> Counts {
        if self.basis == Basis::Sample { Counts::Read } else { Counts::Unread }
    }

    /// What runs of keys that agree in the highest `sorted` bits there will be, with or without further words.
    pub(super) fn runs(&self, sorted: u32, more: bool) -> Runs {
        let guess = self.basis == Basis::Guess;
        let longer = !guess && 2.0 * self.equal > LONGEST_RUN as f64 && self.keys_that_agree(sorted) >= LIKELY_PAIRS;
        Runs { longest: if more && guess { GUESSED_RUN } else { LONGEST_RUN }, longer }
    }

    /// Draws `samples` of `rows` keys. Waits for the device.
    pub(super) fn sampled(device: &Device, key: &SortKey<'_>, alone: bool, rows: u64, samples: u64) -> Result<Spread> {
        let slots = (2 * samples).next_power_of_two();
        let cells = LEVELS * (slots as usize + 1);
        let keys = device.alloc(OPERATOR, samples as usize * 8)?;
        let found = device.upload(OPERATOR, &[[0xFF; 16].as_slice(), &[0; (LEVELS + 2) * 8]].concat())?;
        let tables = device.alloc_filled(OPERATOR, cells * 8, 0xFF)?;
        let counts = device.alloc_zeroed(OPERATOR, cells * 4)?;
        let [data, kind, flip, base] = key.arguments();
        let arguments: [Argument; 11] = [
            data,
            kind,
            flip,
            base,
            rows.into(),
            samples.into(),
            (&keys).into(),
            (&found).into(),
            slots.into(),
            (&tables).into(),
            (&counts).into(),
        ];
        for (name, levels) in [("sort_sample_draw", 1), ("sort_sample_pairs", LEVELS as u64)] {
            let kernel = device.kernel(&source(), name)?;
            let grid = grid(tiles(samples, u64::from(SAMPLE_THREADS)) * levels, SAMPLE_THREADS);
            // SAFETY: SortSample { key: rows of its kind, samples ≤ rows; keys: samples u64; found: 4 + LEVELS words as
            // the kernel wants them; tables and counts: LEVELS × (slots + 1), all ones and zero }.
            unsafe { device.launch(&kernel, grid, &arguments)? };
        }
        if device.rehearses() {
            // Keys that are spread evenly over their range; some rows are drawn twice.
            let pairs = samples as f64 * samples as f64 / 2.0;
            let shares =
                (0..LEVELS as i32).map(|level| 2f64.powi(-(FIRST_BITS as i32 + 8 * level)) + 1.0 / rows as f64);
            let pairs: Vec<u64> = shares.map(|share| (pairs * share) as u64).collect();
            return Ok(Spread::of(key, alone, rows, samples, [0, u64::MAX, u64::MAX, 0], &pairs));
        }
        let words = found.read_words(0, 4 + LEVELS)?;
        let (least, pairs) = (words[0], &words[2..2 + LEVELS]);
        let found = [least, !words[1], words[2 + LEVELS], words[3 + LEVELS]];
        Ok(Spread::of(key, alone, rows, samples, found, pairs))
    }

    /// From what the sample showed: least and greatest key, the bits in which keys differ, rows with the key of the next, and
    /// pairs of equals by level.
    fn of(key: &SortKey<'_>, alone: bool, rows: u64, samples: u64, found: [u64; 4], pairs: &[u64]) -> Spread {
        let [least, greatest, differ, near] = found;
        let near = near as f64 / samples as f64;
        // Rows beyond the sample lie a little outside; the histogram checks.
        let span = greatest.saturating_sub(least);
        let margin = span / 1024 + 1;
        let low = least.saturating_sub(margin);
        let top = u64::MAX >> (64 - key.bits.max(1));
        let high = greatest.saturating_add(margin).min(top);
        let bits = 64 - high.saturating_sub(low).leading_zeros();
        let (base, bits) = if bits < key.bits { (low, bits) } else { (0, key.bits) };

        let rate = rows as f64 / (samples as f64 * (samples as f64 - 1.0) / 2.0);
        // Of each estimate a row's own share, which is drawn again with the same probability as any other.
        const ITSELF: f64 = 1.0;
        let equal = pairs[LEVELS - 1] as f64 * rate - ITSELF;
        let ordered = alone || equal <= MOST_EQUAL;
        let prefix = (0..LEVELS as u32 - 1).map(|level| FIRST_BITS + 8 * level).take_while(|sorted| sorted + 8 <= bits);
        let apart = super::index_bits(rows);
        let prefix = prefix.zip(pairs).find(|(sorted, pairs)| {
            // Behind equal words there may be others that differ.
            let met = **pairs as f64 * rate - ITSELF - if alone { equal } else { 0.0 };
            met <= MOST_MET.max(equal / EQUAL_A_MET) && ordered && (equal <= MOST_EQUAL || *sorted >= apart)
        });
        let prefix = prefix.map(|(bits, _)| bits);
        // Low bits that are the same in all keys need not be sorted, as long as `sort_runs` looks at them. (Sorting some of them, digits of few
        // values that come in turn, as those of ascending keys do, took 1.0 ms for 100M rows instead of 0.6: each digit's rows of a
        // tile then begin in the same bank of shared memory.)
        let varying = bits.saturating_sub(differ.trailing_zeros());
        let fewer = varying < bits && varying.div_ceil(8) <= prefix.unwrap_or(bits.next_multiple_of(8) - 8) / 8;
        let prefix = if differ != 0 && fewer && ordered { Some(varying) } else { prefix };
        let distinct = rows as f64 / (equal + ITSELF).max(1.0);
        Spread { base: key.base.wrapping_add(base), bits, prefix, equal, distinct, near, basis: Basis::Sample }
    }

    /// How many pairs of different keys agree in the highest `bits` bits, where keys are spread evenly.
    pub(super) fn keys_that_agree(&self, bits: u32) -> f64 {
        if bits >= self.bits { 0.0 } else { self.distinct * self.distinct / 2f64.powi(bits as i32 + 1) }
    }

    /// Whether many rows have the same key as others that lie anywhere: whole keys, where those had to be read, would be read at random.
    pub(super) fn equals_lie_apart(&self, rows: u64) -> bool {
        self.equal > MOST_TIED && self.equal < rows as f64 / CLOSE && !self.equals_are_neighbours()
    }

    /// Whether most rows have the key of a neighbour.
    pub(super) fn equals_are_neighbours(&self) -> bool {
        self.near > NEIGHBOURS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::*;

    fn spread(device: &Device, keys: &[u64]) -> Spread {
        let buffer = upload(device, keys);
        let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
        Spread::sampled(device, &key, true, keys.len() as u64, 4096).unwrap()
    }

    #[test]
    fn spread_tells_how_many_bits_separate_keys() {
        for device in device_and_gpu(3) {
            let rows = 8192;
            let random: Vec<u64> = random(1, rows).collect();
            let found = spread(&device, &random);
            assert_eq!((found.base, found.bits, found.prefix, found.basis), (0, 64, Some(16), Basis::Sample));
            assert!(found.equal.abs() < 0.1 && !found.equals_lie_apart(rows as u64), "{found:?}");
            // All but the lowest 30 bits are the same, and 20 of those tell 8192 rows apart.
            let narrow: Vec<u64> = random.iter().map(|x| 77 << 40 | x >> 34).collect();
            let found = spread(&device, &narrow);
            assert!(found.bits == 31 || found.bits == 30, "{found:?}");
            assert_eq!(found.prefix, Some(16));
            assert!(narrow.iter().all(|key| key - found.base < 1 << found.bits));
            // Every key occurs 100 times, and equal keys are in order.
            let repeated: Vec<u64> = random.iter().map(|x| (x % 82) << 50).collect();
            let found = spread(&device, &repeated);
            assert_eq!(found.prefix, Some(7));
            assert!((90.0..110.0).contains(&found.equal) && found.equals_lie_apart(rows as u64), "{found:?}");
            // Not where further words order them.
            let buffer = upload(&device, &repeated);
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            assert_eq!(Spread::sampled(&device, &key, false, rows as u64, 4096).unwrap().prefix, None);
            // Eight rows agree in the highest 16 of 32 bits, one after the other; the lowest bits are the same in all keys, and those
            // that are not no more digits than would be sorted otherwise.
            for keys in [(0..rows as u64).collect::<Vec<_>>(), (0..rows as u64).rev().collect()] {
                for constant in [10, 14] {
                    let steep: Vec<u64> = keys.iter().map(|key| (key / 8) << 22 | (key % 8) << constant | 1).collect();
                    let found = spread(&device, &steep);
                    assert!(found.bits == 32 || found.bits == 33, "{found:?}");
                    assert_eq!(found.prefix, Some(found.bits - constant));
                }
            }
            assert_eq!(spread(&device, &vec![5; rows]).prefix, None);
        }
    }
}
