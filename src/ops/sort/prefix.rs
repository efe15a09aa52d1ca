//! Sorting by high bits only: a sample tells how many passes leave next to nothing to do, and `sort_runs` does it. It also tells
//! whether few keys are so frequent that numbers sort them (`numbers.rs`).
//!
//! 100M random keys of 64 bits differ almost always in their highest 32: four passes instead of eight, then one that puts
//! runs of equal prefixes in order. Keys that crowd together are sorted by all their bits. Of few rows nothing is sampled:
//! they are taken to be spread evenly, and where that was wrong, too many runs are too long, the sort begins anew.

use super::OPERATOR;
use super::found::{Found, Trust};
use super::key::{KeyKind, SortKey, SortWord};
use super::long_runs::Rows;
use super::numbers::{self, Values};
use super::pass::Counts;
use super::ranks;
use crate::device::{Argument, Buffer, Device, Grid, Slice, Source};
use crate::error::Result;
use crate::ops::{grid, tiles};

/// `SORT_SAMPLE_LEVELS`, `SORT_SAMPLE_FIRST_BITS`, `SORT_SAMPLE_THREADS` of the kernels.
const LEVELS: usize = 7;
const FIRST_BITS: u32 = 16;
const SAMPLE_THREADS: u32 = 256;
/// `SORT_RUNS_CHUNK` of the kernels.
const RUNS_CHUNK: u32 = 8;

/// Bits of the prefix beyond those of a row's number, where it is guessed, and more for the exponents of floats.
const GUESSED_MORE: u32 = 4;
const GUESSED_EXPONENT: u32 = 8;
/// `SORT_RUNS_MARGIN` of the kernels: longest runs that are mended.
pub(super) const LONGEST_RUN: u64 = 256;
/// And of a guess, where further words are compared: inserting a row takes a step for each before it.
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
/// How far the number of different keys in a sample may be from that of equally frequent ones, and how many pairs of equal ones tell that
/// number well enough. One row of a hundred that has a rare key among 32,768 frequent ones is more in a sample of 16,384.
const EVEN_SHOWN: f64 = 0.04;
const EVEN_PAIRS: u64 = 1 << 10;

pub(super) fn sources() -> Vec<Source> {
    let mut sources = vec![Source::new("sort_sample", "#include \"sort_sample.cuh\"\nWF_SORT_SAMPLE_ENTRIES\n")];
    sources.extend([None, Some(4), Some(8)].map(|value| runs_source(value, false, false)));
    sources.extend([false, true].map(|implied| runs_source(None, true, implied)));
    sources
}

/// Threads of a block, and blocks that are to share a multiprocessor. Milliseconds of 100M and 1B rows, random keys of which
/// 32 bits are sorted, H200, while runs of up to 128 rows were mended (¹ registers spill):
///
/// ```text
///                 128 × 10        128 × 12        128 × 13       256 × 6
///   keys          .288  3.42     .284  3.38 ¹    .275  3.58 ¹   .287  3.57 ¹
///   keys, u64     .309  5.54     .307  5.87 ¹    .311  7.20 ¹   .318  5.95 ¹
///   packed        .310  5.13     .296  4.74      .322  5.38 ¹   .312  5.15
/// ```
///
/// Runs of up to 256 rows want tiles of twice the rows, 256 × 5 for keys and 256 × 6 for packed words, which spill nothing: of 100M rows .298
/// instead of .289, .334 instead of .321 and .393 instead of .384. Then two values of 100 rows each that agree in the sorted bits, as some of 10,000
/// values of a million rows do, are put in order with all others.
fn runs_shape(packed: bool) -> (u32, u32) {
    if packed { (256, 6) } else { (256, 5) }
}

fn runs_source(value: Option<usize>, packed: bool, implied: bool) -> Source {
    let (threads, blocks) = runs_shape(packed);
    let (value, suffix) = match value {
        None => ("wf::SortNoValue", ""),
        Some(4) => ("wf::u32", "_u32"),
        Some(_) => ("wf::u64", "_u64"),
    };
    let name = match (packed, implied) {
        (false, _) => format!("sort_runs{suffix}"),
        (true, false) => "sort_runs_packed".to_string(),
        (true, true) => "sort_runs_packed_implied".to_string(),
    };
    let shape = format!("{value}, {packed}, {implied}, {threads}, {blocks}");
    let text = format!("#include \"sort_runs.cuh\"\nWF_SORT_RUNS({name}, {shape})\n");
    Source::new(name, text)
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
    /// Whether as many different ones were seen as if each were.
    pub(super) even: bool,
    /// The share of rows that have the same key as the next.
    pub(super) near: f64,
    pub(super) basis: Basis,
}

/// Runs of rows that agree in the sorted bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runs {
    /// The longest that `sort_runs` is to put in order by itself.
    pub(super) longest: u64,
    /// Whether a few are probably longer, and out of order.
    pub(super) longer: bool,
}

/// What was learned from a sample.
pub(super) struct Sample {
    pub(super) spread: Spread,
    /// The keys, if they repeat.
    pub(super) values: Option<Values>,
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
        Spread::guessed_with(key, rows, GUESSED_MORE)
    }

    /// The same of keys of which no two are equal: runs are of as many rows as there are keys that agree.
    pub(super) fn guessed_distinct(key: &SortKey<'_>, rows: u64) -> Spread {
        Spread::guessed_with(key, rows, 0)
    }

    fn guessed_with(key: &SortKey<'_>, rows: u64, more: u32) -> Spread {
        let exponent = if matches!(key.kind, KeyKind::F32 | KeyKind::F64) { GUESSED_EXPONENT } else { 0 };
        let sorted = (super::index_bits(rows) + more + exponent).next_multiple_of(8);
        let prefix = (sorted + 8 <= key.bits).then_some(sorted);
        Spread {
            base: key.base,
            bits: key.bits,
            prefix,
            equal: 0.0,
            distinct: rows as f64,
            even: false,
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
    pub(super) fn sampled(device: &Device, key: &SortKey<'_>, alone: bool, rows: u64, samples: u64) -> Result<Sample> {
        let slots = (2 * samples).next_power_of_two();
        let cells = LEVELS * (slots as usize + 1);
        let keys = device.alloc(OPERATOR, samples as usize * 8)?;
        let found = device.upload(OPERATOR, &[[0xFF; 16].as_slice(), &[0; (LEVELS + 3) * 8]].concat())?;
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
            let kernel = device.kernel(&sources()[0], name)?;
            let grid = grid(tiles(samples, u64::from(SAMPLE_THREADS)) * levels, SAMPLE_THREADS);
            // SAFETY: SortSample { key: rows of its kind, samples ≤ rows; keys: samples u64; found: 5 + LEVELS words as
            // the kernel wants them; tables and counts: LEVELS × (slots + 1), all ones and zero }.
            unsafe { device.launch(&kernel, grid, &arguments)? };
        }
        if device.rehearses() {
            // Keys that are spread evenly over their range; some rows are drawn twice.
            let pairs = samples as f64 * samples as f64 / 2.0;
            let shares =
                (0..LEVELS as i32).map(|level| 2f64.powi(-(FIRST_BITS as i32 + 8 * level)) + 1.0 / rows as f64);
            let pairs: Vec<u64> = shares.map(|share| (pairs * share) as u64).collect();
            let spread = Spread::of(key, alone, rows, samples, [0, u64::MAX, u64::MAX, 0, samples], &pairs);
            return Ok(Sample { spread, values: None });
        }
        let words = found.read_words(0, 5 + LEVELS)?;
        let (least, pairs) = (words[0], &words[2..2 + LEVELS]);
        let found = [least, !words[1], words[2 + LEVELS], words[3 + LEVELS], words[4 + LEVELS]];
        let spread = Spread::of(key, alone, rows, samples, found, pairs);
        let first_slot = (LEVELS - 1) * (slots as usize + 1);
        let repeat = numbers::likely(spread.equal, rows) || ranks::likely(&spread);
        let values = (repeat && spread.bits > numbers::SORTED_BITS).then_some(Values {
            table: tables,
            counts,
            first_slot,
            slots,
            base: least,
            samples,
        });
        Ok(Sample { spread, values })
    }

    /// From what the sample showed: least and greatest key, the bits in which keys differ, rows with the key of the next, different keys, and
    /// pairs of equals by level.
    fn of(key: &SortKey<'_>, alone: bool, rows: u64, samples: u64, found: [u64; 5], pairs: &[u64]) -> Spread {
        let [least, greatest, differ, near, different] = found;
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
        let shown = distinct * (1.0 - (-(samples as f64) / distinct).exp());
        let even = pairs[LEVELS - 1] >= EVEN_PAIRS && (different as f64 / shown - 1.0).abs() < EVEN_SHOWN;
        Spread { base: key.base.wrapping_add(base), bits, prefix, equal, distinct, even, near, basis: Basis::Sample }
    }

    /// How many pairs of different keys agree in the highest `bits` bits, where keys are spread evenly.
    pub(super) fn keys_that_agree(&self, bits: u32) -> f64 {
        if bits >= self.bits { 0.0 } else { self.distinct * self.distinct / 2f64.powi(bits as i32 + 1) }
    }

    /// Whether many rows have the same key as others that lie anywhere: whole keys, where those had to be read, would be read at random.
    pub(super) fn equals_lie_apart(&self, rows: u64) -> bool {
        self.equal > MOST_TIED && self.equal < rows as f64 / CLOSE && !self.equals_are_neighbours()
    }

    /// Whether the values are so many, and about as frequent, that no few of them have nearly all rows.
    pub(super) fn none_is_frequent(&self) -> bool {
        self.even && self.distinct > numbers::MOST as f64
    }

    /// Whether most rows have the key of a neighbour.
    pub(super) fn equals_are_neighbours(&self) -> bool {
        self.near > NEIGHBOURS
    }
}

/// Which packed words hold their whole key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    None,
    All,
    /// Those whose lowest bit of the key is set.
    Odd,
}

/// What [`mend`] works on.
#[derive(Clone, Copy)]
pub(super) enum Sorted<'a> {
    /// Keys as the column has them, with payloads of these many bytes beside them: mended in place.
    Values { keys: &'a Buffer, payload: Option<(&'a Buffer, usize)> },
    /// Words of key and row number, which may leave out the highest digit that differs, whose values' rows begin at `implied`; row
    /// numbers are written.
    Packed {
        words: &'a Buffer,
        index_bits: u32,
        whole: Whole,
        /// When rows that tie count as equal (never where words hold whole keys, or there are `more`), and what holds the sums of all rows' hashes.
        ties: Option<(&'a Found, Trust)>,
        more: &'a [SortWord<'a>],
        implied: Option<Slice<'a>>,
        numbers: &'a Buffer,
    },
}

/// Puts runs of keys that agree from bit `shift` upwards in order. Waits for the device, and once more where ties were trusted in vain;
/// `false`: too many rows are in runs that are too long and out of order, and what was written is worth nothing.
pub(super) fn mend(
    device: &Device,
    key: &SortKey<'_>,
    shift: u32,
    rows: u64,
    sorted: Sorted<'_>,
    runs: Runs,
) -> Result<bool> {
    let fresh;
    let (found, trust) = match sorted {
        Sorted::Packed { ties: Some(ties), .. } => ties,
        _ => {
            fresh = Found::new(device, rows)?;
            (&fresh, Trust::Never)
        }
    };
    let null = Argument::from(0u64);
    let pointers;
    let (value, packed, implied) = match sorted {
        Sorted::Values { payload, .. } => (payload.map(|(_, width)| width), false, None),
        Sorted::Packed { implied, .. } => (None, true, implied),
    };
    let (words, data, index_bits, whole, more, more_words, out, values) = match sorted {
        Sorted::Values { keys, payload } => {
            let data: Slice<'_> = keys.slice(0);
            let values = payload.map_or(null, |(values, _)| values.into());
            (null, data, 0, Whole::All, null, 0, Argument::from(data), values)
        }
        Sorted::Packed { words, index_bits, whole, more, numbers, .. } => {
            let addresses: Vec<u8> = more.iter().flat_map(|word| word.keys.address().to_le_bytes()).collect();
            pointers = device.upload(OPERATOR, &addresses)?;
            (words.into(), key.data, index_bits, whole, (&pointers).into(), more.len(), numbers.into(), null)
        }
    };
    let implied_at = implied.map_or(null, Argument::from);
    let [data, kind, flip, base] = key.arguments_of(data);
    let [found_words, first, second, third] = found.arguments();
    let arguments: [Argument; 22] = [
        words,
        data,
        kind,
        flip,
        base,
        rows.into(),
        u64::from(shift).into(),
        u64::from(index_bits).into(),
        (whole as u64).into(),
        runs.longest.into(),
        more,
        (more_words as u64).into(),
        out,
        values,
        found_words,
        (&found.listed).into(),
        found.room.into(),
        implied_at,
        trust.word().into(),
        first,
        second,
        third,
    ];
    let source = runs_source(value, packed, implied.is_some());
    let kernel = device.kernel(&source, &source.name)?;
    let (threads, _) = runs_shape(packed);
    let grid: Grid = grid(tiles(rows, u64::from(threads * RUNS_CHUNK)), threads);
    // SAFETY: SortRuns, in order: packed words of `rows` rows, or null; the key, whose data holds rows of its kind; more:
    // pointers to words of `rows` rows; out: rows of the key's width, or of u32 for packed words; values: rows of the
    // payload's width or null; found: SORT_FOUND_… words: sums and repeats as the histogram's kernels left them, the rest zero; listed: room
    // u32; implied: 256 u32 or null; whole: SORT_WHOLE_….
    unsafe { device.launch(&kernel, grid, &arguments)? };
    let rows_of = match sorted {
        Sorted::Values { keys, payload } => {
            let key = SortKey { data: keys.slice(0), ..*key };
            Some(Rows { words: key, shift, implied: null, key, in_place: true, values: payload, rows })
        }
        Sorted::Packed { words, numbers, more: [], .. } => {
            let words = SortKey::new(words.slice(0), KeyKind::Word, false);
            let values = Some((numbers, 4));
            Some(Rows { words, shift, implied: implied_at, key: *key, in_place: false, values, rows })
        }
        Sorted::Packed { .. } => None,
    };
    if let Some(rows_of) = rows_of.as_ref().filter(|_| runs.longer) {
        rows_of.sort_expected(device, found)?;
    }
    let findings = found.read(trust)?;
    if let Sorted::Packed { words, index_bits, whole, more, implied, numbers, .. } = sorted
        && findings.misled
    {
        if findings.listed > found.room {
            return Ok(false);
        }
        let sorted = Sorted::Packed { words, index_bits, whole, ties: None, more, implied, numbers };
        return mend(device, key, shift, rows, sorted, runs);
    }
    match rows_of {
        Some(rows_of) => rows_of.sort_runs(device, found, findings, runs.longer),
        None => Ok(findings.listed == 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::sort::numbers::Wanted;
    use crate::ops::testing::*;

    fn spread(device: &Device, keys: &[u64]) -> Spread {
        let buffer = upload(device, keys);
        let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
        Spread::sampled(device, &key, true, keys.len() as u64, 4096).unwrap().spread
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
            let sample = Spread::sampled(&device, &key, false, rows as u64, 4096).unwrap();
            assert_eq!(sample.spread.prefix, None);
            let seen = sample.values.unwrap().seen(&device).unwrap();
            assert!(seen.few_are_frequent(Wanted::All));
            assert_eq!(seen.distinct(), 82);
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

    const ROWS: usize = 4000;

    /// Keys whose highest 48 bits ascend, with one run of equal ones that begins at `first`, and low bits as `low` gives them to the
    /// run's rows.
    fn with_run(first: usize, length: usize, low: impl Fn(u64) -> u64) -> Vec<u64> {
        let key = |at: usize| match at {
            at if (first..first + length).contains(&at) => (first as u64) << 16 | low((at - first) as u64),
            // Pairs in order and out of order besides, and keys that are alone.
            at if at % 5 == 1 => ((at - 1) as u64) << 16 | 3,
            at => (at as u64) << 16 | (at as u64 % 7),
        };
        let mut keys: Vec<u64> = (0..ROWS).map(key).collect();
        // A pair that would begin before the run and end in it.
        if first > 0 && first + length < ROWS {
            keys[first - 1] = ((first - 1) as u64) << 16;
            keys[first + length] = ((first + length) as u64) << 16;
        }
        keys
    }

    /// Whether runs are mended of keys alone, of keys with payloads of 4 and of 8 bytes, and of packed words whose lowest 12 bits do
    /// not travel; all agree, and what they mended is in order.
    fn mended(device: &Device, keys: &[u64], longest: u64) -> bool {
        let rows = keys.len();
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_by_key(|&at| keys[at]);
        let sorted: Vec<u64> = order.iter().map(|&at| keys[at]).collect();
        let mut verdicts = vec![];
        for width in [0, 4, 8] {
            let buffer = upload(device, keys);
            let narrow = upload(device, &(0..rows as u32).collect::<Vec<_>>());
            let wide = upload(device, &(0..rows as u64).collect::<Vec<_>>());
            let payload = match width {
                0 => None,
                4 => Some((&narrow, 4)),
                _ => Some((&wide, 8)),
            };
            let key = SortKey::new(buffer.slice(0), KeyKind::Word, false);
            let values = Sorted::Values { keys: &buffer, payload };
            let runs = Runs { longest, longer: width == 4 };
            let done = mend(device, &key, 16, rows as u64, values, runs).unwrap();
            verdicts.push(done);
            if done {
                assert!(read::<u64>(&buffer, rows) == sorted, "payload of {width} bytes");
            }
            if done && width == 4 {
                assert!(read::<u32>(&narrow, rows).iter().zip(&order).all(|(found, at)| *found as usize == *at));
            }
            if done && width == 8 {
                assert!(read::<u64>(&wide, rows).iter().zip(&order).all(|(found, at)| *found as usize == *at));
            }
        }
        // Rows that lie elsewhere than their words.
        let row = |at: usize| (at + 1000) % rows;
        let mut column = vec![0; rows];
        keys.iter().enumerate().for_each(|(at, key)| column[row(at)] = *key);
        let words: Vec<u64> = keys.iter().enumerate().map(|(at, key)| key >> 12 << 12 | row(at) as u64).collect();
        let mut expected: Vec<u32> = (0..rows as u32).collect();
        expected.sort_by_key(|&row| (column[row as usize], row));
        let [column, words] = [column, words].map(|words| upload(device, &words));
        let numbers = device.alloc("test", rows * 4).unwrap();
        let key = SortKey::new(column.slice(0), KeyKind::Word, false);
        let packed = Sorted::Packed {
            words: &words,
            index_bits: 12,
            whole: Whole::None,
            ties: None,
            more: &[],
            implied: None,
            numbers: &numbers,
        };
        for longer in [false, true] {
            let done = mend(device, &key, 16, rows as u64, packed, Runs { longest, longer }).unwrap();
            verdicts.push(done);
            assert!(!done || read::<u32>(&numbers, rows) == expected, "packed");
        }
        assert!(verdicts.windows(2).all(|pair| pair[0] == pair[1]), "{verdicts:?}");
        verdicts[0]
    }

    #[test]
    fn runs_are_mended_wherever_they_lie() {
        for device in device_and_gpu(4) {
            // The ends of chunks, and of tiles of 2048 rows.
            for first in [0, 7, 1800, 1900, 2047, 2048, 2054] {
                for length in [2, 3, 9, 31, 32, 33, 255, 256] {
                    let keys = with_run(first, length, |at| length as u64 - at);
                    assert!(mended(&device, &keys, 256), "{length} from {first}");
                    let few = with_run(first, length, |at| at);
                    let mut last = few.clone();
                    last.swap(first + length - 2, first + length - 1);
                    assert!(mended(&device, &last, 256), "the last two of {length} from {first}");
                }
            }
        }
    }

    #[test]
    fn longer_runs_are_sorted_on_their_own_if_they_have_few_rows() {
        for device in device_and_gpu(5) {
            for (longest, lengths) in [(32, [33, 40, 500, 501]), (256, [257, 400, 500, 2500])] {
                for first in [0, 5, 2040, 2048] {
                    for length in lengths.into_iter().filter(|length| first + length < ROWS) {
                        let ordered = with_run(first, length, |at| at);
                        assert!(mended(&device, &ordered, longest), "{length} from {first}, in order");
                        let reversed = with_run(first, length, |at| (length as u64 - at) / 2);
                        // Of 2500 rows more are listed than there is room for.
                        assert_eq!(mended(&device, &reversed, longest), length <= 512, "{length} from {first}");
                        // At the beginning of a tile, too, where only the tile before knows how long the run is, and sees no more of it.
                        let rows = if first == 5 && length > 500 { 2048..2320 } else { 0..0 };
                        let tile = rows.step_by(9).map(|row| row - first);
                        for at in [0, 1, length / 2, length - 2].into_iter().chain(tile.filter(|at| at + 2 <= length)) {
                            let mut keys = ordered.clone();
                            keys.swap(first + at, first + at + 1);
                            let found = mended(&device, &keys, longest);
                            // A block sees 2048 rows before and from a listed one on, which is the run's first or a chunk's; of other runs
                            // an eighth of all rows is too many.
                            let listed = if at < 256 { 0 } else { (first + at) / 8 * 8 - first };
                            let seen = listed.max(length - listed) <= 2048;
                            assert_eq!(found, seen, "{length} from {first}, out of order at {at}");
                        }
                    }
                }
            }
            for kernel in ["sort_long_near", "sort_long_find"] {
                assert!(device.launches().contains_key(kernel), "{kernel}");
            }
        }
    }
}
