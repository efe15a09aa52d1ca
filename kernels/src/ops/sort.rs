//! Stable sort of keys whose bits order, by radix. Kernels in `kernels/sort*.cuh`.
//!
//! Few rows are sorted by one kernel that compares all with all (`few.rs`). Of more rows
//! `strategy::choose` decides by what is known of the keys: whether all their bits are sorted, or
//! a prefix, and what travels with them. `histogram.rs` counts the digits, `pass.rs` moves the rows
//! once for each digit, and after a prefix `runs.rs` puts the rows in order that agree in it. Of
//! many rows a sample is drawn first (`sample.rs`). Of fewer rows keys are taken to be spread
//! evenly: to wait for a sample would take longer than what it saves. If that was wrong, runs are
//! too long, and the sort begins anew with more bits, at worst all.
//!
//! Host synchronisations: of more than `GUESSED_ROWS` rows one for the sample and one for each
//! histogram; after a prefix one for the runs.

mod explain;
mod few;
mod histogram;
mod key;
mod pass;
mod runs;
mod sample;
mod strategy;

use self::explain::FailedAttempt;
use self::histogram::{CountsOnHost, DigitHistograms};
use self::pass::{Leaves, Packing, Pair, PassShape, Passes};
use self::runs::{PrefixSorted, put_in_order};
use self::sample::sample;
use self::strategy::{SortOutput, Strategy, Summary, choose};
use super::{grid, numbered, tiles};
use crate::error::{Error, Result};
use crate::{Argument, Buffer, Device, KernelSource, Slice};

pub use self::key::{KeyKind, SortKey, SortWord};

const OPERATOR: &str = "sort";
/// Up to this many rows no sample is drawn: to wait for it and for the histogram would take a third
/// of the sort.
const GUESSED_ROWS: u64 = 1 << 21;

fn source() -> KernelSource {
    KernelSource::new("sort", "#include \"sort.cuh\"\nWF_SORT_ENTRIES\n")
}

pub(super) fn sources() -> Vec<KernelSource> {
    let mut sources = vec![source(), few::source(), sample::source()];
    sources.extend(pass::sources());
    sources.extend(histogram::sources());
    sources.extend(runs::sources());
    sources
}

/// How a sort chooses its strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Assumes that keys are spread evenly over their range. The host does not wait.
    Guess,
    /// Draws a sample of the keys. The host waits for it.
    Sample,
    /// Sorts by all bits of the range: a prefix would not have fewer digits.
    Range,
}

/// What follows from the number of rows, unless tests say otherwise.
#[derive(Debug, Clone, Copy)]
struct Tuning {
    look: Look,
    /// Words of the look-back have 64 bits.
    wide: bool,
}

impl Tuning {
    fn of(key: &SortKey<'_>, rows: u64) -> Tuning {
        let saves_a_digit = key.bits.div_ceil(8) > index_bits(rows).div_ceil(8);
        let look = match rows <= GUESSED_ROWS {
            true => Look::Guess,
            false if saves_a_digit => Look::Sample,
            false => Look::Range,
        };
        Tuning { look, wide: false }
    }
}

/// The rows' numbers in the order of their keys, `u32 × rows`; equal keys stay in the order of
/// their rows. `words` come most significant first.
pub fn argsort(device: &Device, words: &[SortWord<'_>], rows: u64) -> Result<Buffer> {
    match words.split_first() {
        Some((first, more)) => argsort_keys(device, &(*first).into(), more, rows),
        None => identity(device, rows),
    }
}

/// The rows' numbers in the order of one column, `u32 × rows`; equal keys stay in the order of
/// their rows.
pub fn argsort_key(device: &Device, key: &SortKey<'_>, rows: u64) -> Result<Buffer> {
    argsort_keys(device, key, &[], rows)
}

/// The rows' numbers in the order of a column, and of the words `more` where the column's keys are
/// equal.
pub(crate) fn argsort_keys(
    device: &Device,
    key: &SortKey<'_>,
    more: &[SortWord<'_>],
    rows: u64,
) -> Result<Buffer> {
    let more = that_order(key, more, rows);
    if few(rows) && more.len() <= few::MOST_MORE {
        return few::argsort(device, key, more, rows);
    }
    argsort_tuned(device, key, more, rows, Tuning::of(key, rows))
}

/// Whether these rows are sorted by one kernel.
fn few(rows: u64) -> bool {
    (2..=few::MOST_ROWS).contains(&rows)
}

/// The words up to the last one that has bits: words of no bits order nothing. Panics unless key
/// and words have `rows` rows.
fn that_order<'a>(key: &SortKey<'_>, more: &'a [SortWord<'a>], rows: u64) -> &'a [SortWord<'a>] {
    key.check(rows);
    more.iter().for_each(|word| SortKey::from(*word).check(rows));
    more.iter().rposition(|word| word.bits > 0).map_or(&more[..0], |last| &more[..=last])
}

/// Sorted copy of a column's values, of the key's width.
pub fn sort_values(device: &Device, key: &SortKey<'_>, rows: u64) -> Result<Buffer> {
    Ok(sorted(device, key, None, rows)?.0)
}

/// Copies of a column's values and of a payload of 4 or 8 bytes a row in the order of the values;
/// stable.
pub fn sort_pairs(
    device: &Device,
    key: &SortKey<'_>,
    payload: Slice<'_>,
    payload_width: usize,
    rows: u64,
) -> Result<(Buffer, Buffer)> {
    let (keys, payload) = sorted(device, key, Some((payload, payload_width)), rows)?;
    Ok((keys, payload.ok_or_else(|| Error::internal("sort: pairs have payloads"))?))
}

fn sorted(
    device: &Device,
    key: &SortKey<'_>,
    payload: Option<(Slice<'_>, usize)>,
    rows: u64,
) -> Result<(Buffer, Option<Buffer>)> {
    check_rows(key, payload, rows);
    match few(rows) {
        true => few::sort(device, key, payload, rows),
        false => sort_tuned(device, key, payload, rows, Tuning::of(key, rows)),
    }
}

/// Panics unless key and payload have `rows` rows.
fn check_rows(key: &SortKey<'_>, payload: Option<(Slice<'_>, usize)>, rows: u64) {
    key.check(rows);
    assert!(
        payload.is_none_or(|(payload, width)| payload.len() as u64 >= rows * width as u64),
        "a payload of {rows} rows"
    );
}

fn argsort_tuned(
    device: &Device,
    key: &SortKey<'_>,
    more: &[SortWord<'_>],
    rows: u64,
    tuning: Tuning,
) -> Result<Buffer> {
    numbered(OPERATOR, rows)?;
    let more = that_order(key, more, rows);
    if rows <= 1 {
        return identity(device, rows);
    }
    let output = if more.is_empty() { SortOutput::Numbers } else { SortOutput::NumbersByMore };
    let order = by_strategy(device, key, output, rows, tuning, |key, strategy, counts| {
        let sort = Sort { device, key, rows, counts, wide: tuning.wide };
        match strategy {
            Strategy::AllBits => sort.words(more),
            Strategy::Prefix { sorted } => {
                Ok(sort.whole_keys(sorted, 4, None)?.map(|(_, numbers)| numbers))
            }
            Strategy::PackedPrefix { sorted } => Ok(sort.packed_keys(sorted, more)?.map(Some)),
        }
    })?;
    order.map_or_else(|| identity(device, rows), Ok)
}

fn sort_tuned(
    device: &Device,
    key: &SortKey<'_>,
    payload: Option<(Slice<'_>, usize)>,
    rows: u64,
    tuning: Tuning,
) -> Result<(Buffer, Option<Buffer>)> {
    numbered(OPERATOR, rows)?;
    check_rows(key, payload, rows);
    let width = payload.map_or(0, |(_, width)| width);
    let payload = payload.map(|(payload, _)| payload);
    if rows <= 1 {
        return copies(device, key, rows, width, payload);
    }
    by_strategy(device, key, SortOutput::Rows, rows, tuning, |key, strategy, counts| {
        let sort = Sort { device, key, rows, counts, wide: tuning.wide };
        match strategy {
            Strategy::AllBits => sort.whole_keys(key.bits, width, payload),
            Strategy::Prefix { sorted } | Strategy::PackedPrefix { sorted } => {
                sort.whole_keys(sorted, width, payload)
            }
        }
    })
}

/// How one attempt to sort ended.
enum SortAttempt<T> {
    Sorted(T),
    /// Keys lie outside of the range that a sample showed.
    OutOfRange,
    /// So many runs were too long and out of order.
    LongRuns(u64),
}

impl<T> SortAttempt<T> {
    fn map<U>(self, to: impl FnOnce(T) -> U) -> SortAttempt<U> {
        match self {
            SortAttempt::Sorted(sorted) => SortAttempt::Sorted(to(sorted)),
            SortAttempt::OutOfRange => SortAttempt::OutOfRange,
            SortAttempt::LongRuns(runs) => SortAttempt::LongRuns(runs),
        }
    }
}

/// Chooses a strategy for at least 2 rows, and sorts by it, or by more bits where that failed.
fn by_strategy<'a, T>(
    device: &Device,
    key: &SortKey<'a>,
    output: SortOutput,
    rows: u64,
    tuning: Tuning,
    attempt: impl Fn(&SortKey<'a>, Strategy, CountsOnHost) -> Result<SortAttempt<T>>,
) -> Result<T> {
    let floats = matches!(key.kind, KeyKind::F32 | KeyKind::F64);
    let mut summary = Summary { rows, bits: key.bits, floats, output, sample: None };
    let (mut range, mut strategy, mut counts) = (*key, Strategy::AllBits, CountsOnHost::Read);
    match tuning.look {
        Look::Guess => (strategy, counts) = (choose(&summary), CountsOnHost::Unread),
        Look::Sample => {
            let (sampled, sample) = sample(device, key, rows)?;
            summary = Summary { bits: sampled.bits, sample: Some(sample), ..summary };
            (range, strategy) = (sampled, choose(&summary));
        }
        Look::Range => {}
    }
    let mut failed = None;
    loop {
        match attempt(&range, strategy, counts)? {
            SortAttempt::Sorted(sorted) => {
                device.note(|| explain::line(&summary, tuning.look, strategy, range.bits, failed));
                return Ok(sorted);
            }
            SortAttempt::OutOfRange if (range.base, range.bits) == (key.base, key.bits) => {
                return Err(Error::internal("sort: keys outside of their column's range"));
            }
            SortAttempt::OutOfRange => {
                (range, strategy, failed) =
                    (*key, Strategy::AllBits, Some(FailedAttempt::OutOfRange));
            }
            SortAttempt::LongRuns(runs) => {
                let sorted = strategy.sorted().unwrap_or(range.bits);
                failed = Some(FailedAttempt::LongRuns { sorted, runs });
                strategy = strategy.with_more_bits(&summary, runs);
            }
        }
        counts = CountsOnHost::Read;
    }
}

/// One attempt to sort at least 2 rows.
struct Sort<'a> {
    device: &'a Device,
    /// With the range that its values are taken to have.
    key: &'a SortKey<'a>,
    rows: u64,
    counts: CountsOnHost,
    wide: bool,
}

impl Sort<'_> {
    /// Keys and values by the highest `sorted` bits, and runs in order. Without a payload values
    /// are row numbers, of which there are none where the rows stay in their order.
    fn whole_keys(
        &self,
        sorted: u32,
        value_width: usize,
        payload: Option<Slice<'_>>,
    ) -> Result<SortAttempt<(Buffer, Option<Buffer>)>> {
        let Sort { device, key, rows, counts, wide } = *self;
        let low = key.bits - sorted;
        let digits = DigitHistograms::count(device, key, rows, low, sorted, counts)?;
        if !digits.fit(key.bits) {
            return Ok(SortAttempt::OutOfRange);
        }
        let pass = PassShape::of(key.kind.width(), value_width);
        let passes =
            Passes { pass, packing: None, low, order: None, payload, leaves: Leaves::Rows, wide };
        let (keys, values) = match passes.run(device, key, rows, &digits)? {
            Some(Pair { keys: Some(keys), values }) => (keys, values),
            // A prefix that is the same in all keys.
            _ if low > 0 => return Ok(SortAttempt::LongRuns(rows)),
            _ => copies(device, key, rows, value_width, payload)?,
        };
        if low > 0 {
            let values = values.as_ref().map(|values| (values, value_width));
            let long_runs =
                put_in_order(device, key, low, rows, PrefixSorted::Rows { keys: &keys, values })?;
            if long_runs > 0 {
                return Ok(SortAttempt::LongRuns(long_runs));
            }
        }
        Ok(SortAttempt::Sorted((keys, values)))
    }

    /// Row numbers by the highest `sorted` bits, in words that hold as much of the key as fits;
    /// then by whole keys and `more` words.
    fn packed_keys(&self, sorted: u32, more: &[SortWord<'_>]) -> Result<SortAttempt<Buffer>> {
        let Sort { device, key, rows, counts, wide } = *self;
        let index_bits = index_bits(rows);
        let travels = key.bits.min(64 - index_bits);
        let low = key.bits - sorted;
        let digits = DigitHistograms::count(device, key, rows, low, sorted, counts)?;
        if !digits.fit(key.bits) {
            return Ok(SortAttempt::OutOfRange);
        }
        let packing = Packing { index_bits, drop: key.bits - travels };
        let (pass, packing) = (PassShape::U64, Some(packing));
        let passes =
            Passes { pass, packing, low, order: None, payload: None, leaves: Leaves::Words, wide };
        let Some(Pair { keys: Some(words), .. }) = passes.run(device, key, rows, &digits)? else {
            return Ok(SortAttempt::LongRuns(rows));
        };
        let numbers = device.alloc(OPERATOR, rows as usize * 4)?;
        let whole = travels == key.bits && more.is_empty();
        let packed =
            PrefixSorted::Packed { words: &words, index_bits, whole, more, numbers: &numbers };
        match put_in_order(device, key, index_bits + travels - sorted, rows, packed)? {
            0 => Ok(SortAttempt::Sorted(numbers)),
            long_runs => Ok(SortAttempt::LongRuns(long_runs)),
        }
    }

    /// Row numbers by all bits of `more` words, the last one first, and then of the key. `None`:
    /// rows stay in their order.
    fn words(&self, more: &[SortWord<'_>]) -> Result<SortAttempt<Option<Buffer>>> {
        let Sort { device, key, rows, counts, wide } = *self;
        // Of several words, to know which digits differ saves more than waiting takes.
        let counts = if more.is_empty() { counts } else { CountsOnHost::Read };
        let mut order = None;
        for word in more.iter().rev().map(|word| SortKey::from(*word)).chain([*key]) {
            let digits = DigitHistograms::count(device, &word, rows, 0, word.bits, counts)?;
            if !digits.fit(word.bits) {
                return Ok(SortAttempt::OutOfRange);
            }
            let index_bits = index_bits(rows);
            let packing = (word.bits + index_bits <= 64).then_some(Packing { index_bits, drop: 0 });
            let pass = if packing.is_some() {
                PassShape::U64
            } else {
                PassShape::of(word.kind.width(), 4)
            };
            let (payload, leaves) = (None, Leaves::Numbers);
            let passes =
                Passes { pass, packing, low: 0, order: order.as_ref(), payload, leaves, wide };
            if let Some(Pair { keys, values }) = passes.run(device, &word, rows, &digits)? {
                order = if packing.is_some() { keys } else { values };
            }
        }
        Ok(SortAttempt::Sorted(order))
    }
}

/// Bits of a row's number.
fn index_bits(rows: u64) -> u32 {
    64 - rows.saturating_sub(1).leading_zeros()
}

/// A column's values and a payload as they are.
fn copies(
    device: &Device,
    key: &SortKey<'_>,
    rows: u64,
    value_width: usize,
    payload: Option<Slice<'_>>,
) -> Result<(Buffer, Option<Buffer>)> {
    let copy = |from: Slice<'_>, width: usize| -> Result<Buffer> {
        let to = device.alloc(OPERATOR, rows as usize * width)?;
        to.copy_slice(from, rows as usize * width)?;
        Ok(to)
    };
    Ok((
        copy(key.data, key.kind.width())?,
        payload.map(|payload| copy(payload, value_width)).transpose()?,
    ))
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

#[cfg(test)]
mod tests;
