//! Words of a key's high bits and the row's number, which travel as one: 8 bytes a row and pass, and row numbers at the end.

use super::found::{Found, Trust};
use super::key::{SortKey, SortWord};
use super::pass::{Digits, Ends, PLACE_BITS, Pass, PassRun, Sorter};
use super::prefix::{Basis, Spread};
use super::runs::{Sorted, Whole, mend};
use super::{OPERATOR, Tuning, fits, index_bits};
use crate::device::{Buffer, Device};
use crate::error::Result;

/// How many rows have the same key as a row, on average, where ties are trusted; and how many pairs of values may agree in all that
/// travels: where one does, ties are looked at twice.
const LEAST_EQUAL: f64 = 2.0;
const MOST_AGREE: f64 = 0.05;
/// Rows from which on words that leave out a digit take no longer: of 4M and 10M rows, tiles of more than one digit are so many that a pass takes 0.07
/// and 0.1 instead of 0.036 and 0.073.
const IMPLIED_ROWS: u64 = 1 << 25;

/// Sorts by the bits of the prefix, packed with row numbers. `None`: there is none, or it misled.
pub(super) fn argsort_prefix(
    device: &Device,
    key: &SortKey<'_>,
    spread: &Spread,
    more: &[SortWord<'_>],
    rows: u64,
    tuning: Tuning,
) -> Result<Option<Buffer>> {
    let key = SortKey { base: spread.base, bits: spread.bits, ..*key };
    let index_bits = index_bits(rows);
    // What travels of a key.
    let room = room_beside(rows, false);
    let trusted = more.is_empty() && ties_are_equal(spread, rows);
    let crowded = spread.prefix.is_some_and(|sorted| sorted + tuning.beyond > room)
        || (trusted && spread.keys_that_agree(room) > MOST_AGREE);
    let implied = key.bits > room && crowded;
    let travels = room_beside(rows, implied).min(key.bits);
    // An implied digit takes the place of the next one, which has to be as wide.
    let sorted = spread.prefix.map(|sorted| if implied { sorted.next_multiple_of(8) } else { sorted });
    let Some(sorted) = sorted.filter(|sorted| *sorted <= travels) else { return Ok(None) };
    let trust = match spread.basis {
        _ if travels == key.bits || !more.is_empty() => Trust::Never,
        Basis::Sample if trusted => Trust::Always,
        Basis::Sample => Trust::Never,
        Basis::Guess => Trust::Repeats(sorted.div_ceil(8)),
    };
    let found = Found::new(device, rows)?;
    let summed = Some(&found).filter(|_| trust != Trust::Never);
    let digits = Digits::count_and_sum(device, &key, rows, key.bits - sorted, sorted, spread.counts(), summed)?;
    if !fits(&digits, key.bits) || digits.live.is_empty() {
        return Ok(None);
    }
    let packed = Packed { travels, sorted, implied, numbers: false };
    let Some((words, spare)) = packed_passes(device, &key, rows, &digits, packed, tuning)? else { return Ok(None) };
    let numbers = spare.map_or_else(|| device.alloc(OPERATOR, rows as usize * 4), Ok)?;
    let whole = if travels == key.bits && more.is_empty() { Whole::All } else { Whole::None };
    let implied = digits.live.last().filter(|_| implied).map(|digit| digits.offsets(*digit));
    let shift = index_bits + travels - sorted;
    let ties = Some((&found, trust));
    let packed = Sorted::Packed { words: &words, index_bits, whole, ties, more, implied, numbers: &numbers };
    Ok(mend(device, &key, shift, rows, packed, spread.runs(sorted, !more.is_empty()))?.then_some(numbers))
}

/// Whether rows that agree in all that travels will be taken to have the same key, of keys of which a sample was seen: where they repeat, and
/// so few values agree by chance that none does, mostly.
pub(super) fn ties_are_equal(spread: &Spread, rows: u64) -> bool {
    let repeat = spread.basis == Basis::Sample && spread.equal >= LEAST_EQUAL && !spread.equals_are_neighbours();
    repeat && spread.keys_that_agree(room_beside(rows, rows >= IMPLIED_ROWS)) <= MOST_AGREE
}

/// Bits of a key that travel beside a row's number, without the digit that is implied or with it.
fn room_beside(rows: u64, implied: bool) -> u32 {
    let room = 64 - index_bits(rows);
    if implied { (room + 8).min(64 - PLACE_BITS) } else { room }
}

/// Words of key and row number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packed {
    /// The key's highest bits, without lower ones, and of these the highest ones that are sorted.
    pub(super) travels: u32,
    pub(super) sorted: u32,
    /// Words leave out the digit that they were sorted by last.
    pub(super) implied: bool,
    /// The last pass writes row numbers instead.
    pub(super) numbers: bool,
}

/// The passes over packed words, by digits that were counted from the lowest sorted bit on: what the last pass wrote, and as much memory
/// that is not needed any more, if there was more than one. `None`: there is no digit.
pub(super) fn packed_passes(
    device: &Device,
    key: &SortKey<'_>,
    rows: u64,
    digits: &Digits,
    packed: Packed,
    tuning: Tuning,
) -> Result<Option<(Buffer, Option<Buffer>)>> {
    let Packed { travels, sorted, implied, numbers } = packed;
    let index_bits = index_bits(rows);
    if numbers
        && sorted == travels
        && let Some(order) = narrow_passes(device, key, rows, digits, travels, tuning)?
    {
        return Ok(Some((order, None)));
    }
    let mut sorter = Sorter::new(device, Pass::U64, rows, tuning.wide, digits.live.len())?;
    let mut from: Option<Buffer> = None;
    let mut spare: Option<Buffer> = None;
    let mut before = None;
    for (at, &digit) in digits.live.iter().enumerate() {
        let last = numbers && at + 1 == digits.live.len();
        let width = if last { 4 } else { 8 };
        let to = spare.take().map_or_else(|| device.alloc(OPERATOR, rows as usize * width), Ok)?;
        let first = from.is_none();
        // Where the sorted bits begin in a word.
        let begin = travels - sorted + digit * 8;
        let run = PassRun {
            ends: Ends { first, last, loose: false, implied, narrow: false },
            digit,
            implied: before,
            shift: match (implied, first) {
                (false, _) => index_bits + begin,
                (true, true) => PLACE_BITS + begin,
                (true, false) => index_bits + begin - 8,
            },
            drop: key.bits - travels,
            index_bits,
            keys: from.as_ref().map_or(key.data, |words| words.slice(0)),
            values: None,
            order: None,
            keys_out: Some(&to),
            values_out: None,
        };
        sorter.run(key, digits, run)?;
        spare = from.replace(to);
        before = Some(digit).filter(|_| implied);
    }
    Ok(from.map(|words| (words, spare)))
}

/// Row numbers by two digits, the highest bits of the key, if without the first the second fits 32 bits with a row's number. `None`: it
/// does not, or there are not two.
pub(super) fn narrow_passes(
    device: &Device,
    key: &SortKey<'_>,
    rows: u64,
    digits: &Digits,
    travels: u32,
    tuning: Tuning,
) -> Result<Option<Buffer>> {
    let index_bits = index_bits(rows);
    if digits.live != [0, 1] || travels > 16 || travels - 8 + index_bits > 32 {
        return Ok(None);
    }
    let (halves, order) = (device.alloc(OPERATOR, rows as usize * 4)?, device.alloc(OPERATOR, rows as usize * 4)?);
    let first = PassRun {
        ends: Ends { first: true, last: false, loose: false, implied: true, narrow: true },
        digit: 0,
        implied: None,
        shift: PLACE_BITS,
        drop: key.bits - travels,
        index_bits,
        keys: key.data,
        values: None,
        order: None,
        keys_out: Some(&halves),
        values_out: None,
    };
    Sorter::new(device, Pass::U64, rows, tuning.wide, 1)?.run(key, digits, first)?;
    let last = PassRun {
        ends: Ends { first: false, last: true, loose: false, implied: false, narrow: false },
        digit: 1,
        shift: index_bits,
        drop: 0,
        keys: halves.slice(0),
        keys_out: Some(&order),
        ..first
    };
    Sorter::new(device, Pass::U32, rows, tuning.wide, 1)?.run(key, digits, last)?;
    Ok(Some(order))
}

#[cfg(test)]
mod tests;
