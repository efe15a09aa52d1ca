//! Keys alone by their ranks: it is enough to count how many rows each value has.

use super::super::key::SortKey;
use super::super::numbers::Wanted;
use super::super::pass::Pass;
use super::super::prefix::Spread;
use super::super::{Low, OPERATOR, Tuning, passes};
use super::{FIND_THREADS, Ranks, THREADS, Table, bits, sampled, source};
use crate::device::{Argument, Buffer, Device, Grid};
use crate::error::Result;
use crate::ops::scan::exclusive_scan_u32_narrow;
use crate::ops::{grid, tiles};

/// `SORT_RANKS_…` of the kernels.
const TALLY_THREADS: u32 = 1024;
const TALLY_TILE: u64 = 4096;
const COUNT_TILE: u64 = 4096;
const FILL_TILE: u64 = 4096;
/// Counts of a block, with their copies.
const COUNTS: u64 = 8192;
/// Most values whose rows a block counts as it looks them up, in 64 KB, so that two blocks of 30 registers a thread share a multiprocessor of 164 KB;
/// and most rows of a block, whose counts have 16 bits. Neither was swept: 0.63 ms of 100M rows of 10,000 values (H200), where a lookup alone takes 0.6.
const TALLIED: u64 = 1 << 15;
const TALLY_TILES: u64 = (1 << 16) / TALLY_TILE - 1;

/// The rows' keys in their order, as the column has them; of keys of which a first sample was seen. Waits for the device. `None`: there are too
/// many values, or rows with others than a second sample has.
pub(in super::super) fn sorted_keys(
    device: &Device,
    key: &SortKey<'_>,
    rows: u64,
    spread: &Spread,
    tuning: Tuning,
) -> Result<Option<Buffer>> {
    let Some((list, values)) = sampled(device, key, rows, spread, Wanted::Keys)? else { return Ok(None) };
    keys_among(device, key, rows, list, values, tuning)
}

/// The same among so many values, `u64` each in any order, all different. `None`: some rows have others.
pub(super) fn keys_among(
    device: &Device,
    key: &SortKey<'_>,
    rows: u64,
    list: Buffer,
    values: u64,
    tuning: Tuning,
) -> Result<Option<Buffer>> {
    let table = Table::of(device, key, list, values)?;
    if values <= TALLIED {
        let counts = tally(device, key, rows, &table)?;
        return counts.map(|counts| fill(device, key, rows, &table.sorted, &counts, values)).transpose();
    }
    let low = low_bits(values);
    let ranks = Ranks::found(device, key, rows, table, 1, 1 + low)?;
    let counts = ranks.counts(low, tuning)?;
    counts.map(|counts| fill(device, key, rows, &ranks.sorted, &counts, values)).transpose()
}

/// How many rows each value has, `u32` each. Waits for the device. `None`: some rows have others.
fn tally(device: &Device, key: &SortKey<'_>, rows: u64, table: &Table) -> Result<Option<Buffer>> {
    let words = table.values.div_ceil(2) as usize;
    let counts = device.alloc_zeroed(OPERATOR, words * 8)?;
    let between = device.alloc_zeroed(OPERATOR, 8)?;
    let [data, kind, flip, base] = key.arguments();
    let arguments: [Argument; 10] = [
        data,
        kind,
        flip,
        base,
        rows.into(),
        (&table.pairs).into(),
        table.slots.into(),
        table.values.into(),
        (&counts).into(),
        (&between).into(),
    ];
    let kernel = device.kernel(&source(), "sort_ranks_tally")?;
    let shared = words as u32 * 4;
    let full = u64::from(device.full_grid(&kernel, TALLY_THREADS, shared)?);
    let tiles = tiles(rows, TALLY_TILE);
    let blocks = grid(tiles.min(full).max(tiles.div_ceil(TALLY_TILES)), TALLY_THREADS);
    // SAFETY: SortRanksTally { key: rows of its kind, fewer than 1 << 16 a block; table: as put; counts: a zeroed u64 for each two values;
    // between: a zeroed word }, and as much shared memory as half a word for each value takes.
    unsafe { device.launch(&kernel, Grid { shared, ..blocks }, &arguments)? };
    Ok((between.read_words(0, 1)?[0] == 0).then_some(counts))
}

impl Ranks<'_> {
    /// How many rows each value has, `u32` each, of ranks whose digit is that of the bits above the lowest and `low` more. `None`: some rows lie
    /// between values.
    fn counts(&self, low: u32, tuning: Tuning) -> Result<Option<Buffer>> {
        let Ranks { device, rows, values, .. } = *self;
        if self.between > 0 {
            return Ok(None);
        }
        let low_of_pass = Low { shift: self.shift, settles: false };
        let parted = passes(device, &self.ranked(), Pass::U32, None, rows, low_of_pass, &self.digits, tuning)?.0;
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
        Ok(Some(counts))
    }
}

/// Each value as often as it was counted, as the column has it.
fn fill(
    device: &Device,
    key: &SortKey<'_>,
    rows: u64,
    sorted: &Buffer,
    counts: &Buffer,
    values: u64,
) -> Result<Buffer> {
    let begins = exclusive_scan_u32_narrow(device, counts, values)?;
    let out = device.alloc(OPERATOR, rows as usize * key.kind.width())?;
    let [data, kind, flip, base] = key.arguments();
    let arguments: [Argument; 9] =
        [data, kind, flip, base, sorted.into(), (&begins).into(), values.into(), rows.into(), (&out).into()];
    let kernel = device.kernel(&source(), "sort_ranks_fill")?;
    // SAFETY: SortRanksFill { key: only how its kind goes back; sorted: values u64; begins: values u32, and `rows` after the last; out: rows
    // of the key's width }.
    unsafe { device.launch(&kernel, grid(tiles(rows, FILL_TILE), THREADS), &arguments)? };
    Ok(out)
}

/// Bits of a rank, but for its lowest, by which ranks are not sorted before they are counted.
fn low_bits(values: u64) -> u32 {
    bits(values - 1).saturating_sub(8)
}
