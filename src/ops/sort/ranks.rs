//! Keys that repeat, of up to a million values, by the values' ranks. Kernels in `kernels/sort_ranks.cuh`.
//!
//! A sample large enough to hold nearly all values is put in order, and each row's rank among them looked up in a table in L2: 100M rows of a
//! million random values of 64 bits are then sorted by 20 bits. What the sample missed lies between two ranks, in runs that are mended.

mod keys;

use super::key::{KeyKind, SortKey};
use super::numbers::Wanted;
use super::packed::{Packed, packed_passes};
use super::pass::{Counts, DIGITS, Digits};
use super::prefix::Spread;
use super::runs::{LONGEST_RUN, Runs, Sorted, Whole, mend};
use super::{OPERATOR, Tuning, identity, index_bits, sort_distinct};
use crate::device::{Argument, Buffer, Device, Grid, Source};
use crate::error::Result;
use crate::ops::{grid, tiles};

pub(super) use self::keys::sorted_keys;

/// `SORT_RANKS_…` of the kernels.
const THREADS: u32 = 256;
const FIND_THREADS: u32 = 512;
const FIND_TILE: u64 = 2048;
const COPIES: u32 = 8;
const ORDERED: u64 = 32;
/// Values that a block puts in order: 0.011 to 0.013 ms of up to 65,536 (H200); 512 of a block, two a thread as here, take 0.008, but are twice as many
/// chunks to look in afterwards (0.020 instead of 0.014 of 32,768 values); 2048 0.020.
const CHUNK: u64 = 1024;
/// Most values. Milliseconds of 100M lookups by values and slots for each, chosen in brackets (H200, `lookups.txt` in
/// `benches/runs/2026-11-23-h200-ranks/`; blocks of 256 threads, four rows a thread: with eight, 0.15 to 0.4 more). The kernel's blocks
/// have 512 threads, which was not swept, and 32 registers a thread; its counts take 8 KB for each pass.
///
/// ```text
///        8,192        65,536        262,144        524,288        1,000,000
///   2     .74           1.00          1.08           1.10          [1.29]
///   4    [.58]         [.82]          [.87]         [1.01]          1.36
/// ```
const MOST: u64 = 1 << 20;
/// And of row numbers: a million values took 3.56 ms of 100M rows, and by a prefix whose ties are trusted 3.41.
const MOST_ORDERED: u64 = 1 << 19;
/// Values that are put in order by chunks: those of 16,384, 32,768 and 65,536 take 0.011, 0.014 and 0.032 ms to find their places among all, a sort and
/// a table 0.06.
pub(super) const CHUNKED: u64 = 1 << 16;
const SLOTS: u64 = 4;
const MOST_SLOTS: u64 = 1 << 21;
/// Rows for each value from which on all this is worth its while; rows of the sample for each; and rows of which the sample may miss one.
const ROWS_A_VALUE: u64 = 64;
/// Rows with the same key as a row's, on average, for one that there would be of equally frequent values: of more, as in Zipf's distribution,
/// there are so many rare values that the sample would miss too many.
const SKEW: f64 = 16.0;
const SAMPLES_A_VALUE: u64 = 16;
const ROWS_A_MISS: u64 = 32;
/// Rows that tell what the sample missed.
const CHECKED: u64 = 1 << 16;

pub(super) fn source() -> Source {
    Source::new("sort_ranks", "#include \"sort_ranks.cuh\"\nWF_SORT_RANKS_ENTRIES\n")
}

/// Whether ranks are worth a look.
pub(super) fn likely(spread: &Spread) -> bool {
    spread.equal >= ROWS_A_VALUE as f64 && !spread.equals_are_neighbours()
}

/// Each row's rank among values that nearly all rows have.
pub(super) struct Ranks<'a> {
    device: &'a Device,
    key: SortKey<'a>,
    rows: u64,
    /// `u64` each, ascending.
    sorted: Buffer,
    values: u64,
    /// `u32 × rows`.
    ranks: Buffer,
    /// Of the ranks from bit `shift` on.
    digits: Digits,
    shift: u32,
    /// Rows whose keys lie between values.
    between: u64,
}

/// Values that nearly all rows have.
struct Table {
    /// `u64` each, ascending.
    sorted: Buffer,
    values: u64,
    /// Each with its rank, in pairs of `hash.cuh`.
    pairs: Buffer,
    slots: u64,
}

impl Table {
    /// Of so many values, `u64` each in any order, all different; the list is not what it was afterwards.
    fn of(device: &Device, key: &SortKey<'_>, list: Buffer, values: u64) -> Result<Table> {
        assert!((1..=MOST).contains(&values), "{values} values");
        let slots = (SLOTS * values).next_power_of_two().min(MOST_SLOTS);
        let pairs = device.alloc_filled(OPERATOR, (slots as usize + 1) * 16, 0xFF)?;
        let put = |name, list: &Buffer, sorted: Argument, values_a_block: u64| -> Result<()> {
            let arguments: [Argument; 5] = [list.into(), sorted, values.into(), (&pairs).into(), slots.into()];
            let kernel = device.kernel(&source(), name)?;
            // SAFETY: SortRanksPut { list: values u64, all different, and in order, for sort_ranks_order in chunks; sorted: values u64, or null
            // for sort_ranks_put; table: 2 × (slots + 1) u64, all ones, slots a power of two of at least 2 × values }.
            unsafe { device.launch(&kernel, grid(tiles(values, values_a_block), THREADS), &arguments) }
        };
        let sorted = if values <= CHUNKED {
            let kernel = device.kernel(&source(), "sort_ranks_chunk")?;
            let blocks = grid(tiles(values, CHUNK), CHUNK as u32 / 2);
            // SAFETY: SortRanksChunk { list: values u64; values }.
            unsafe { device.launch(&kernel, blocks, &[(&list).into(), values.into()])? };
            let sorted = device.alloc(OPERATOR, values as usize * 8)?;
            put("sort_ranks_order", &list, (&sorted).into(), ORDERED)?;
            sorted
        } else {
            let listed = SortKey { bits: key.bits, ..SortKey::new(list.slice(0), KeyKind::Word, false) };
            let sorted = sort_distinct(device, &listed, values)?;
            put("sort_ranks_put", &sorted, 0u64.into(), u64::from(THREADS))?;
            sorted
        };
        Ok(Table { sorted, values, pairs, slots })
    }
}

impl<'a> Ranks<'a> {
    /// Of keys of which a first sample was seen. Waits for the device. `None`: there are too many values.
    pub(super) fn of(
        device: &'a Device,
        key: &SortKey<'a>,
        rows: u64,
        spread: &Spread,
        wanted: Wanted,
    ) -> Result<Option<Ranks<'a>>> {
        let Some((list, values)) = sampled(device, key, rows, spread, wanted)? else { return Ok(None) };
        Ranks::among(device, key, rows, list, values).map(Some)
    }

    /// Among so many values, `u64` each in any order, all different. Waits for the device.
    fn among(device: &'a Device, key: &SortKey<'a>, rows: u64, list: Buffer, values: u64) -> Result<Ranks<'a>> {
        let passes = bits(values - 1).div_ceil(8).max(1);
        // The lowest bit does not tell values apart.
        Ranks::found(device, key, rows, Table::of(device, key, list, values)?, passes, 1)
    }

    /// In a table. Waits for the device.
    fn found(
        device: &'a Device,
        key: &SortKey<'a>,
        rows: u64,
        table: Table,
        passes: u32,
        shift: u32,
    ) -> Result<Ranks<'a>> {
        let Table { sorted, values, pairs, slots } = table;
        let ranks = device.alloc(OPERATOR, rows as usize * 4)?;
        let counts = device.alloc_zeroed(OPERATOR, passes as usize * DIGITS * 8)?;
        let between = device.alloc_zeroed(OPERATOR, 8)?;
        let [data, kind, flip, base] = key.arguments();
        let arguments: [Argument; 14] = [
            data,
            kind,
            flip,
            base,
            rows.into(),
            (&pairs).into(),
            slots.into(),
            (&sorted).into(),
            values.into(),
            (&ranks).into(),
            (&counts).into(),
            u64::from(passes).into(),
            u64::from(shift).into(),
            (&between).into(),
        ];
        let kernel = device.kernel(&source(), "sort_ranks_find")?;
        let shared = COPIES * passes * DIGITS as u32 * 4;
        let full = u64::from(device.full_grid(&kernel, FIND_THREADS, shared)?);
        let blocks = grid(tiles(rows, FIND_TILE).min(full), FIND_THREADS);
        // SAFETY: SortRanksFind { key: rows of its kind; table: as put; sorted: values u64; ranks: rows u32; digits: passes × 256 zeroed
        // u64; between: a zeroed word }, and as much shared memory as the counts of digits take.
        unsafe { device.launch(&kernel, Grid { shared, ..blocks }, &arguments)? };
        let digits = Digits::of_counted(device, &counts, passes)?;
        let between = between.read_words(0, 1)?[0];
        Ok(Ranks { device, key: *key, rows, sorted, values, ranks, digits, shift, between })
    }

    /// What sorts as the rows' keys do. `None`: rows of the same rank may have different keys.
    pub(super) fn key(&self) -> Option<SortKey<'_>> {
        (self.between == 0).then(|| self.ranked())
    }

    fn ranked(&self) -> SortKey<'_> {
        let greatest = if self.between == 0 { 2 * self.values - 1 } else { 2 * self.values };
        SortKey { bits: bits(greatest), ..SortKey::new(self.ranks.slice(0), KeyKind::U32, false) }
    }

    /// The rows' numbers in the order of their keys. Waits for the device. `None`: too many rows lie between the
    /// same values.
    pub(super) fn order(&self, tuning: Tuning) -> Result<Option<Buffer>> {
        let Ranks { device, rows, .. } = *self;
        let key = self.ranked();
        if self.between == 0 {
            let travels = key.bits - self.shift;
            let packed = Packed { travels, sorted: travels, implied: false, numbers: true };
            return match packed_passes(device, &key, rows, &self.digits, packed, tuning)? {
                Some((numbers, _)) => Ok(Some(numbers)),
                None => identity(device, rows).map(Some),
            };
        }
        let digits = Digits::count(device, &key, rows, 0, key.bits, Counts::Unread)?;
        let packed = Packed { travels: key.bits, sorted: key.bits, implied: false, numbers: false };
        let Some((words, spare)) = packed_passes(device, &key, rows, &digits, packed, tuning)? else {
            return Ok(None);
        };
        let numbers = spare.map_or_else(|| device.alloc(OPERATOR, rows as usize * 4), Ok)?;
        let index_bits = index_bits(rows);
        let packed = Sorted::Packed {
            words: &words,
            index_bits,
            whole: Whole::Odd,
            ties: None,
            more: &[],
            implied: None,
            numbers: &numbers,
        };
        Ok(mend(device, &self.key, index_bits, rows, packed, Runs { longest: LONGEST_RUN, longer: false })?
            .then_some(numbers))
    }
}

/// Bits of a number.
fn bits(number: u64) -> u32 {
    64 - number.leading_zeros()
}

/// Nearly all values of a key, `u64` each in any order, and how many they are. Waits for the device. `None`: too many, or it missed too many.
fn sampled(
    device: &Device,
    key: &SortKey<'_>,
    rows: u64,
    spread: &Spread,
    wanted: Wanted,
) -> Result<Option<(Buffer, u64)>> {
    let expected = spread.distinct.ceil() as u64;
    let most = if wanted == Wanted::Order { MOST_ORDERED } else { MOST };
    if expected > most || expected * ROWS_A_VALUE > rows || spread.equal * spread.distinct > SKEW * rows as f64 {
        return Ok(None);
    }
    let samples = (SAMPLES_A_VALUE * expected).max(CHECKED).min(rows);
    let checked = CHECKED.min(samples);
    let slots = (2 * expected).next_power_of_two();
    // So full that probes are long, and those that already run may still add to it.
    let most = (slots / 4 * 3).min(MOST);
    let table = device.alloc_filled(OPERATOR, (slots as usize + 1) * 8, 0xFF)?;
    // Keys in the table; keys that were listed, and rows whose keys the table has not.
    let words = device.alloc_zeroed(OPERATOR, 24)?;
    let [data, kind, flip, base] = key.arguments();
    let arguments: [Argument; 10] = [
        data,
        kind,
        flip,
        base,
        rows.into(),
        samples.into(),
        (&table).into(),
        slots.into(),
        most.into(),
        (&words).into(),
    ];
    let kernel = device.kernel(&source(), "sort_ranks_draw")?;
    // SAFETY: SortRanksDraw { key: rows of its kind, which more are than a stretch has; table: slots + 1 u64, all ones, slots a power of
    // two; found: a zeroed word }.
    unsafe { device.launch(&kernel, grid(tiles(samples, u64::from(THREADS)), THREADS), &arguments)? };
    let list = device.alloc(OPERATOR, most as usize * 8)?;
    let arguments: [Argument; 12] = [
        data,
        kind,
        flip,
        base,
        rows.into(),
        checked.into(),
        samples.into(),
        (&table).into(),
        slots.into(),
        (&list).into(),
        most.into(),
        words.slice(8).into(),
    ];
    let kernel = device.kernel(&source(), "sort_ranks_list")?;
    let threads = checked.max(slots + 1);
    // SAFETY: SortRanksList { key: rows of its kind; table: slots + 1 u64, as drawn; values: room u64; listed: two zeroed words }.
    unsafe { device.launch(&kernel, grid(tiles(threads, u64::from(THREADS)), THREADS), &arguments)? };
    // Behind the first word.
    let [values, missed] = words.read_words(8, 2)?[..] else { return Ok(None) };
    // Only row numbers are put in order between two values.
    let most_missed = if wanted == Wanted::Order { checked / ROWS_A_MISS } else { 0 };
    if values == 0 || values > most || missed > most_missed {
        return Ok(None);
    }
    Ok(Some((list, values)))
}

#[cfg(test)]
mod tests;
