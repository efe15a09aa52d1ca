//! Stable radix sort of normalised keys. Kernels in `kernels/sort*.cuh`.
//!
//! A sort of many rows first looks at a sample of its keys (`prefix.rs`): where their high bits tell rows apart, only those
//! are sorted (`packed.rs`: with row numbers), and the few rows that agree in them are put in order at the end (`runs.rs`, `long_runs.rs`). The keys are read once for the histograms
//! of the digits (digits that are the same in every key cost nothing afterwards), and a pass is made for each digit left.
//! Of fewer rows the bits are guessed, and every digit of them is sorted: to wait for the device would take longer. A wrong guess sorts by all bits.
//!
//! Host synchronisations: one for the sample, one for the histogram of each word, one at the end of a sort by prefix (one more where ties were trusted
//! in vain, and up to two where it leaves long runs); of few rows only the last.

mod found;
mod key;
mod long_runs;
mod packed;
mod pass;
mod prefix;
mod runs;

use self::packed::{argsort_prefix, narrow_passes, ties_are_equal};
use self::pass::{Counts, Digits, Ends, Pass, PassRun, Sorter};
use self::prefix::Spread;
use self::runs::{Sorted, mend};
use super::{grid, numbered, tiles};
use crate::device::{Argument, Buffer, Device, Slice, Source};
use crate::error::Result;

pub(crate) use self::key::{KeyKind, SortKey, SortWord};

const OPERATOR: &str = "sort";
/// Rows from which on a sample is worth its launches.
const SAMPLED_ROWS: u64 = 1 << 17;
/// Rows up to which the sorted bits are guessed instead: a sample, and waiting for it and for the histogram, are a third of a sort.
const GUESSED_ROWS: u64 = 1 << 21;
/// With four bits, one of 16 rows that are equal in the sorted ones is equal in all that travel, and its whole key is read.
const BEYOND_BITS: u32 = 4;
/// Where one of 16 rows or more meets another that is equal in the sorted bits, the last pass puts what it can in order; not of keys that
/// repeat, whose runs are too long for it, and in order mostly (10M rows of 40 equal keys each: 0.14 instead of 0.10).
const SETTLED_BITS: u32 = 4;
const SETTLED_EQUAL: f64 = 3.0;
/// Most rows in a sample, half as many up to so many rows; at least; and rows of the whole for one of the sample.
const SAMPLES: u64 = 1 << 16;
const HALF_SAMPLED_ROWS: u64 = 1 << 24;
const LEAST_SAMPLES: u64 = 1 << 11;
const ROWS_A_SAMPLE: u64 = 256;

fn source() -> Source {
    Source::new("sort", "#include \"sort.cuh\"\nWF_SORT_ENTRIES\n")
}

pub(super) fn sources() -> Vec<Source> {
    let mut sources = vec![source(), long_runs::source(), prefix::source()];
    sources.extend(pass::sources());
    sources.extend(runs::sources());
    sources
}

/// How a sort is carried out; tests set what follows from the number of rows otherwise.
#[derive(Debug, Clone, Copy)]
struct Tuning {
    /// Rows from which on a sample is taken.
    sampled_rows: u64,
    /// Rows up to which nothing is looked at before the passes.
    guessed_rows: u64,
    /// Words of the look-back have 64 bits.
    wide: bool,
    /// Bits of a key that are to travel beyond the sorted ones; where there is room for fewer, words leave out a digit.
    beyond: u32,
}

impl Tuning {
    /// Whether to look at a sample; not where a guess was wrong, which has cost enough.
    fn samples(&self, rows: u64) -> bool {
        rows >= self.sampled_rows && rows > self.guessed_rows
    }
}

const TUNED: Tuning =
    Tuning { sampled_rows: SAMPLED_ROWS, guessed_rows: GUESSED_ROWS, wide: false, beyond: BEYOND_BITS };

/// The rows' numbers in the order of their keys, `u32 × rows`; equal keys stay in the order of their rows.
///
/// `words` come most significant first. Sorts by the last word first, and by each word before it in the order so far;
/// or by the high bits of the first word, if they tell most rows apart.
pub(crate) fn argsort(device: &Device, words: &[SortWord<'_>], rows: u64) -> Result<Buffer> {
    match words.split_first() {
        Some((first, more)) => argsort_tuned(device, &(*first).into(), more, rows, TUNED),
        None => identity(device, rows),
    }
}

/// The same by a column, and words behind it.
pub(crate) fn argsort_keys(device: &Device, key: &SortKey<'_>, more: &[SortWord<'_>], rows: u64) -> Result<Buffer> {
    argsort_tuned(device, key, more, rows, TUNED)
}

/// The same by one column.
pub(crate) fn argsort_key(device: &Device, key: &SortKey<'_>, rows: u64) -> Result<Buffer> {
    argsort_tuned(device, key, &[], rows, TUNED)
}

fn argsort_tuned(
    device: &Device,
    key: &SortKey<'_>,
    more: &[SortWord<'_>],
    rows: u64,
    tuning: Tuning,
) -> Result<Buffer> {
    numbered(OPERATOR, rows)?;
    let more = match more.iter().rposition(|word| word.bits > 0) {
        Some(last) => &more[..=last],
        None => &[],
    };
    if rows <= 1 {
        return identity(device, rows);
    }
    let key = *key;
    if key.bits > 0 && rows <= tuning.guessed_rows {
        let spread = Spread::guessed(&key, rows);
        if spread.prefix.is_some() {
            if let Some(order) = argsort_prefix(device, &key, &spread, more, rows, tuning)? {
                return Ok(order);
            }
        } else if more.is_empty() {
            let digits = Digits::count(device, &key, rows, 0, key.bits, Counts::Unread)?;
            return argsort_word(device, &key, rows, None, &digits, tuning)?.map_or_else(|| identity(device, rows), Ok);
        }
    }
    if key.bits > 0 && tuning.samples(rows) && prefix_pays(&key, rows) {
        let spread = sample(device, &key, more.is_empty(), rows)?;
        if more.is_empty() && spread.prefix.is_some() && spread.equals_lie_apart(rows) && !ties_are_equal(&spread, rows)
        {
            let pass = Pass::of(key.kind.width(), 4);
            if let Some((_, order)) = by_spread(device, &key, pass, None, rows, &spread, tuning)? {
                return order.map_or_else(|| identity(device, rows), Ok);
            }
        } else if let Some(order) = argsort_prefix(device, &key, &spread, more, rows, tuning)? {
            return Ok(order);
        }
        if more.is_empty() {
            // The histogram tells if the sample missed something.
            let narrow = SortKey { base: spread.base, bits: spread.bits, ..key };
            let digits = Digits::count(device, &narrow, rows, 0, narrow.bits, Counts::Read)?;
            if fits(&digits, narrow.bits) {
                return argsort_word(device, &narrow, rows, None, &digits, tuning)?
                    .map_or_else(|| identity(device, rows), Ok);
            }
        }
    }
    argsort_words(device, &key, more, rows, tuning)
}

/// By all bits of every word, the last one first.
fn argsort_words(
    device: &Device,
    key: &SortKey<'_>,
    more: &[SortWord<'_>],
    rows: u64,
    tuning: Tuning,
) -> Result<Buffer> {
    let mut order = None;
    for word in more.iter().rev().map(|word| SortKey::from(*word)).chain([*key]) {
        let digits = Digits::count(device, &word, rows, 0, word.bits, Counts::Read)?;
        order = argsort_word(device, &word, rows, order, &digits, tuning)?;
    }
    order.map_or_else(|| identity(device, rows), Ok)
}

fn sample(device: &Device, key: &SortKey<'_>, alone: bool, rows: u64) -> Result<Spread> {
    let most = if rows <= HALF_SAMPLED_ROWS { SAMPLES / 2 } else { SAMPLES };
    let samples = (rows / ROWS_A_SAMPLE).clamp(LEAST_SAMPLES, most).min(rows).max(2);
    Spread::sampled(device, key, alone, rows, samples)
}

/// Whether the bits that tell so many rows apart can be fewer digits than the key has.
fn prefix_pays(key: &SortKey<'_>, rows: u64) -> bool {
    key.bits.div_ceil(8) > index_bits(rows).div_ceil(8)
}

/// Bits of a row's number.
fn index_bits(rows: u64) -> u32 {
    64 - (rows - 1).leading_zeros()
}

/// Whether no key exceeds `bits`.
fn fits(digits: &Digits, bits: u32) -> bool {
    bits >= 64 || digits.greatest >> bits == 0
}

/// Refines `order` (`None`: the rows as they come) by one key; gives it back where all keys are equal.
fn argsort_word(
    device: &Device,
    key: &SortKey<'_>,
    rows: u64,
    order: Option<Buffer>,
    digits: &Digits,
    tuning: Tuning,
) -> Result<Option<Buffer>> {
    let index_bits = index_bits(rows);
    let packed = key.bits + index_bits <= 64;
    let pass = match (packed, key.kind.width()) {
        (true, _) => Pass::U64,
        (false, 4) => Pass::U32U32,
        (false, _) => Pass::U64U32,
    };
    let Some(last) = digits.live.len().checked_sub(1) else { return Ok(order) };
    if order.is_none()
        && let Some(order) = narrow_passes(device, key, rows, digits, key.bits, tuning)?
    {
        return Ok(Some(order));
    }

    let mut sorter = Sorter::new(device, pass, rows, tuning.wide, digits.live.len())?;
    let indices = device.alloc(OPERATOR, rows as usize * 4)?;
    // What the pass before wrote, and (swapped in turn) what this one may write over.
    let mut from: Option<Pair> = None;
    let mut spare: Option<Pair> = None;
    for (at, &digit) in digits.live.iter().enumerate() {
        let to = match spare.take() {
            Some(pair) => pair,
            None if at == last => Pair { keys: None, values: None },
            None => Pair::new(device, pass, rows)?,
        };
        let last = at == last;
        let run = PassRun {
            ends: Ends { first: from.is_none(), last, loose: false, implied: false, narrow: false },
            digit,
            implied: None,
            shift: if packed { index_bits } else { 0 } + digit * 8,
            drop: 0,
            index_bits: if packed { index_bits } else { 0 },
            keys: from.as_ref().and_then(|pair| pair.keys.as_ref()).map_or(key.data, |keys| keys.slice(0)),
            values: from.as_ref().and_then(|pair| pair.values.as_ref()).map(|values| values.slice(0)),
            order: if from.is_none() { order.as_ref() } else { None },
            keys_out: match (last, packed) {
                (true, true) => Some(&indices),
                (true, false) => None,
                (false, _) => to.keys.as_ref(),
            },
            values_out: if last && !packed { Some(&indices) } else { to.values.as_ref() },
        };
        sorter.run(key, digits, run)?;
        spare = from.replace(to);
    }
    Ok(Some(indices))
}

/// Sorted copy of a column's values, of the key's width.
pub(crate) fn sort_values(device: &Device, key: &SortKey<'_>, rows: u64) -> Result<Buffer> {
    Ok(sort_by_key(device, key, None, rows, TUNED)?.0)
}

/// Copies of a column's values and of a payload of 4 or 8 bytes a row in the order of the values; stable.
pub(crate) fn sort_pairs(
    device: &Device,
    key: &SortKey<'_>,
    payload: Slice<'_>,
    payload_width: usize,
    rows: u64,
) -> Result<(Buffer, Buffer)> {
    let (keys, payload) = sort_by_key(device, key, Some((payload, payload_width)), rows, TUNED)?;
    Ok((keys, payload.expect("pairs have payloads")))
}

fn sort_by_key(
    device: &Device,
    key: &SortKey<'_>,
    payload: Option<(Slice<'_>, usize)>,
    rows: u64,
    tuning: Tuning,
) -> Result<(Buffer, Option<Buffer>)> {
    numbered(OPERATOR, rows)?;
    let pass = Pass::of(key.kind.width(), payload.map_or(0, |(_, width)| width));
    if rows > 1 && rows <= tuning.guessed_rows {
        let guess = Spread::guessed(key, rows);
        if let Some(sorted) = by_spread(device, key, pass, payload, rows, &guess, tuning)? {
            return Ok(sorted);
        }
    }
    if rows > 1 && tuning.samples(rows) && prefix_pays(key, rows) {
        let spread = sample(device, key, true, rows)?;
        if let Some(sorted) = by_spread(device, key, pass, payload, rows, &spread, tuning)? {
            return Ok(sorted);
        }
    }
    let digits = Digits::count(device, key, rows, 0, if rows > 1 { key.bits } else { 0 }, Counts::Read)?;
    passes(device, key, pass, payload, rows, Low::NONE, &digits, tuning)
}

/// Sorts by as many bits as are thought to do. Passes with values take row numbers for them where there is no payload. `None`: they did not.
fn by_spread(
    device: &Device,
    key: &SortKey<'_>,
    pass: Pass,
    payload: Option<(Slice<'_>, usize)>,
    rows: u64,
    spread: &Spread,
    tuning: Tuning,
) -> Result<Option<(Buffer, Option<Buffer>)>> {
    let key = SortKey { base: spread.base, bits: spread.bits, ..*key };
    let sorted = spread.prefix.unwrap_or(key.bits);
    let shift = key.bits - sorted;
    let digits = Digits::count(device, &key, rows, shift, sorted, spread.counts())?;
    if !fits(&digits, key.bits) {
        return Ok(None);
    }
    let low = Low { shift, settles: spread.equal < SETTLED_EQUAL && index_bits(rows) + SETTLED_BITS > sorted };
    let (keys, values) = passes(device, &key, pass, payload, rows, low, &digits, tuning)?;
    let payload = values.as_ref().map(|values| (values, pass.value_width()));
    let done = shift == 0
        || mend(device, &key, shift, rows, Sorted::Values { keys: &keys, payload }, spread.runs(sorted, false))?;
    Ok(done.then_some((keys, values)))
}

/// Bits that are not sorted.
#[derive(Debug, Clone, Copy)]
struct Low {
    /// How many.
    shift: u32,
    /// The last pass puts rows that differ only in them in order, where they meet.
    settles: bool,
}

impl Low {
    const NONE: Low = Low { shift: 0, settles: false };
}

/// The passes over the digits that were counted from bit `low.shift` on; the keys come out as the column has them. No values come out where
/// they would be all row numbers in order.
#[expect(clippy::too_many_arguments, reason = "the private half of sort_by_key")]
fn passes(
    device: &Device,
    key: &SortKey<'_>,
    pass: Pass,
    payload: Option<(Slice<'_>, usize)>,
    rows: u64,
    low: Low,
    digits: &Digits,
    tuning: Tuning,
) -> Result<(Buffer, Option<Buffer>)> {
    let mut from: Option<Pair> = None;
    let mut spare: Option<Pair> = None;
    let mut sorter = Sorter::new(device, pass, rows, tuning.wide, digits.live.len())?;
    for (at, &digit) in digits.live.iter().enumerate() {
        let to = spare.take().map_or_else(|| Pair::new(device, pass, rows), Ok)?;
        let last = at + 1 == digits.live.len();
        let run = PassRun {
            ends: Ends {
                first: from.is_none(),
                last,
                loose: from.is_none() && pass.value_width() == 0,
                implied: false,
                narrow: false,
            },
            digit,
            implied: None,
            shift: low.shift + digit * 8,
            drop: if last && low.settles { low.shift } else { 0 },
            index_bits: 0,
            keys: from.as_ref().and_then(|pair| pair.keys.as_ref()).map_or(key.data, |keys| keys.slice(0)),
            values: match &from {
                Some(pair) => pair.values.as_ref().map(|values| values.slice(0)),
                None => payload.map(|(payload, _)| payload),
            },
            order: None,
            keys_out: to.keys.as_ref(),
            values_out: to.values.as_ref(),
        };
        sorter.run(key, digits, run)?;
        spare = from.replace(to);
    }
    let sorted = match from {
        Some(sorted) => sorted,
        None => {
            let mut copy = Pair::new(device, pass, rows)?;
            if let Some(keys) = &copy.keys {
                keys.copy_slice(key.data, rows as usize * pass.key_width())?;
            }
            match (&copy.values, payload) {
                (Some(to), Some((payload, width))) => to.copy_slice(payload, rows as usize * width)?,
                _ => copy.values = None,
            }
            copy
        }
    };
    Ok((sorted.keys.expect("sorted keys"), sorted.values))
}

/// The rows' numbers as they come.
fn identity(device: &Device, rows: u64) -> Result<Buffer> {
    numbered(OPERATOR, rows)?;
    let order = device.alloc(OPERATOR, rows as usize * 4)?;
    let kernel = device.kernel(&source(), "sort_identity")?;
    let arguments: [Argument; 2] = [(&order).into(), rows.into()];
    // SAFETY: SortIdentity { order: rows u32, allocated above; rows }.
    unsafe { device.launch(&kernel, grid(tiles(rows, 1024).min(4096), 256), &arguments)? };
    Ok(order)
}

/// Keys and values that travel; `None` where the shape has none.
struct Pair {
    keys: Option<Buffer>,
    values: Option<Buffer>,
}

impl Pair {
    fn new(device: &Device, pass: Pass, rows: u64) -> Result<Pair> {
        let keys = Some(device.alloc(OPERATOR, rows as usize * pass.key_width())?);
        let values = match pass.value_width() {
            0 => None,
            width => Some(device.alloc(OPERATOR, rows as usize * width)?),
        };
        Ok(Pair { keys, values })
    }
}

#[cfg(test)]
mod tests;
