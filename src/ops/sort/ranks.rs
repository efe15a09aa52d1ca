//! Keys that repeat, of up to a million values, by the values' ranks. Kernels in `kernels/sort_ranks.cuh`.
//!
//! A sample large enough to hold nearly all values is put in order, and each row's rank among them looked up in a table in L2: 100M rows of a
//! million random values of 64 bits are then sorted by 20 bits. What the sample missed lies between two ranks, in runs that are mended.

use super::key::{KeyKind, SortKey};
use super::numbers::{Seen, Wanted};
use super::packed::{Packed, packed_passes};
use super::pass::{Counts, DIGITS, Digits, Pass};
use super::prefix::{LONGEST_RUN, Sorted, Spread, Whole, mend};
use super::{Low, OPERATOR, Tuning, identity, index_bits, passes, sort_distinct};
use crate::device::{Argument, Buffer, Device, Grid, Source};
use crate::error::Result;
use crate::ops::scan::exclusive_scan_u32_narrow;
use crate::ops::{grid, tiles};

/// `SORT_RANKS_…` of the kernels.
const THREADS: u32 = 256;
const FIND_THREADS: u32 = 512;
const FIND_TILE: u64 = 2048;
const COPIES: u32 = 8;
const ORDERED: u64 = 32;
const COUNT_TILE: u64 = 4096;
const FILL_TILE: u64 = 4096;
/// Counts of a block, with their copies.
const COUNTS: u64 = 8192;
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
/// Values that are put in order by counting for each how many are less (not swept: by counts of instructions, twice as many take as long as a sort).
pub(super) const COUNTED: u64 = 1 << 14;
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

impl<'a> Ranks<'a> {
    /// Of keys of which a first sample was seen. Waits for the device. `None`: there are too many values.
    pub(super) fn of(
        device: &'a Device,
        key: &SortKey<'a>,
        rows: u64,
        seen: &Seen,
        wanted: Wanted,
    ) -> Result<Option<Ranks<'a>>> {
        let expected = seen.distinct();
        let most = if wanted == Wanted::Order { MOST_ORDERED } else { MOST };
        if expected > most || expected * ROWS_A_VALUE > rows || seen.equal * expected as f64 > SKEW * rows as f64 {
            return Ok(None);
        }
        let Some((list, values)) = sampled(device, key, rows, expected, wanted)? else { return Ok(None) };
        Ranks::among(device, key, rows, list, values, wanted).map(Some)
    }

    /// Among so many values, `u64` each in any order, all different. Waits for the device.
    pub(super) fn among(
        device: &'a Device,
        key: &SortKey<'a>,
        rows: u64,
        list: Buffer,
        values: u64,
        wanted: Wanted,
    ) -> Result<Ranks<'a>> {
        assert!((1..=MOST).contains(&values), "{values} values");
        let slots = (SLOTS * values).next_power_of_two().min(MOST_SLOTS);
        let table = device.alloc_filled(OPERATOR, (slots as usize + 1) * 16, 0xFF)?;
        let put = |name, list: &Buffer, sorted: Argument, each: u64| -> Result<()> {
            let arguments: [Argument; 5] = [list.into(), sorted, values.into(), (&table).into(), slots.into()];
            let kernel = device.kernel(&source(), name)?;
            // SAFETY: SortRanksPut { list: values u64, all different; sorted: values u64, or null for sort_ranks_put, whose list is in order;
            // table: 2 × (slots + 1) u64, all ones, slots a power of two of at least 2 × values }.
            unsafe { device.launch(&kernel, grid(tiles(values, each), THREADS), &arguments) }
        };
        let sorted = if values <= COUNTED {
            let sorted = device.alloc(OPERATOR, values as usize * 8)?;
            put("sort_ranks_order", &list, (&sorted).into(), ORDERED)?;
            sorted
        } else {
            let listed = SortKey { bits: key.bits, ..SortKey::new(list.slice(0), KeyKind::Word, false) };
            let sorted = sort_distinct(device, &listed, values)?;
            put("sort_ranks_put", &sorted, 0u64.into(), u64::from(THREADS))?;
            sorted
        };

        // The lowest bit does not tell values apart.
        let (passes, shift) = match wanted {
            Wanted::Order | Wanted::All => (bits(values - 1).div_ceil(8).max(1), 1),
            Wanted::Keys => (1, 1 + low_bits(values)),
        };
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
            (&table).into(),
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

    /// The rows' numbers in the order of their keys; not if keys were wanted. Waits for the device. `None`: too many rows lie between the
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
        Ok(mend(device, &self.key, index_bits, rows, packed, LONGEST_RUN)?.then_some(numbers))
    }

    /// The rows' keys in their order, as the column has them, if those were wanted. `None`: some lie between values.
    pub(super) fn keys(&self, tuning: Tuning) -> Result<Option<Buffer>> {
        let Ranks { device, rows, values, .. } = *self;
        if self.between > 0 {
            return Ok(None);
        }
        let low = low_bits(values);
        let parted = passes(
            device,
            &self.ranked(),
            Pass::U32,
            None,
            rows,
            Low { shift: self.shift, settles: false },
            &self.digits,
            tuning,
        )?
        .0;
        let counts = device.alloc_zeroed(OPERATOR, values as usize * 4)?;
        let copies = (COUNTS >> low).clamp(1, 32);
        let arguments: [Argument; 5] =
            [(&parted).into(), rows.into(), u64::from(low).into(), copies.into(), (&counts).into()];
        let kernel = device.kernel(&source(), "sort_ranks_count")?;
        let shared = (copies as u32 * 4) << low;
        let full = u64::from(device.full_grid(&kernel, FIND_THREADS, shared)?);
        let blocks = grid(tiles(rows, COUNT_TILE).min(full), FIND_THREADS);
        // SAFETY: SortRanksCount { ranks: rows u32, each less than 2 × values; counts: values zeroed u32 }, and as much shared memory as
        // its copies of 2^low counts take.
        unsafe { device.launch(&kernel, Grid { shared, ..blocks }, &arguments)? };
        let begins = exclusive_scan_u32_narrow(device, &counts, values)?;
        let out = device.alloc(OPERATOR, rows as usize * self.key.kind.width())?;
        let [data, kind, flip, base] = self.key.arguments();
        let arguments: [Argument; 9] = [
            data,
            kind,
            flip,
            base,
            (&self.sorted).into(),
            (&begins).into(),
            values.into(),
            rows.into(),
            (&out).into(),
        ];
        let kernel = device.kernel(&source(), "sort_ranks_fill")?;
        // SAFETY: SortRanksFill { key: only how its kind goes back; sorted: values u64; begins: values u32, and `rows` after the last; out:
        // rows of the key's width }.
        unsafe { device.launch(&kernel, grid(tiles(rows, FILL_TILE), THREADS), &arguments)? };
        Ok(Some(out))
    }
}

/// Bits of a rank, but for its lowest, by which ranks are not sorted before they are counted.
fn low_bits(values: u64) -> u32 {
    bits(values - 1).saturating_sub(8)
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
    expected: u64,
    wanted: Wanted,
) -> Result<Option<(Buffer, u64)>> {
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
