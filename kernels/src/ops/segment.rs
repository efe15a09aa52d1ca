//! Runs of equal keys in sorted order, and their reduction in a fixed order. Kernels in
//! `kernels/segment.cuh`.
//!
//! Rows whose key never descends need no sort: their runs are found as the rows lie. A bit for each
//! row says whether it begins a run; the runs' keys and places are written, and then values are
//! added up by those bits.

pub use super::reduce::Reduction;
use super::scan::exclusive_scan_u32;
use super::sort::SortWord;
use super::{grid, numbered, tiles};
use crate::error::Result;
use crate::{Argument, Buffer, Device, KernelSource, Slice};

const OPERATOR: &str = "segment";
/// `SEGMENT_TILE` and `SEGMENT_THREADS` of the kernels.
const TILE: u64 = 2048;
const THREADS: u32 = 256;
/// `RUNS_TILE`, `RUNS_THREADS`, `RUNS_PARTS` and `RUNS_ROOM` of the kernels.
const RUNS_TILE: u64 = 8192;
const RUNS_THREADS: u32 = 512;
const RUNS_PARTS: u64 = RUNS_TILE / TILE;
const RUNS_ROOM: u64 = RUNS_TILE / 4;
/// The count's bits in a word of the look-back (`COMPACT_COUNT`).
const COUNT: u64 = (1 << 62) - 1;

/// Runs of rows: run `s` stands at `offsets[s]..offsets[s + 1]`; none is empty.
#[derive(Debug)]
pub struct Segments {
    /// `u32 × (count + 1)`, from 0 to `rows`.
    pub offsets: Buffer,
    /// Segments.
    pub count: u64,
    /// Rows they cover.
    pub rows: u64,
    /// Segments that begin before each tile, and `count` at the end: `u64 × (tiles + 1)`.
    begins: Buffer,
    /// Of runs, a bit for each row that begins one.
    marks: Option<Buffer>,
}

fn source() -> KernelSource {
    KernelSource::new("segment", "#include \"segment.cuh\"\nWF_SEGMENT_ENTRIES\n")
}

/// The reduction by segments of one kind.
fn reduce_source(kind: Reduction) -> KernelSource {
    let (suffix, op) = kind.entry();
    let runs = if has_runs(kind) {
        format!("WF_SEGMENT_REDUCE_RUNS({suffix}, {op})\n")
    } else {
        String::new()
    };
    let text = format!("#include \"segment.cuh\"\nWF_SEGMENT_REDUCE({suffix}, {op})\n{runs}");
    KernelSource::new(format!("segment_{suffix}"), text)
}

/// Whether there is a kernel for runs of rows as they lie.
fn has_runs(kind: Reduction) -> bool {
    matches!(kind, Reduction::SumF64 | Reduction::MinF64 | Reduction::MaxF64)
}

pub(super) fn sources() -> Vec<KernelSource> {
    std::iter::once(source()).chain(Reduction::ALL.into_iter().map(reduce_source)).collect()
}

/// The runs of equal keys, of rows taken in `order` (`u32 × rows`, as [`super::sort::argsort`] gave
/// it for these words). Waits for the device: the number of runs.
pub fn segments(
    device: &Device,
    words: &[SortWord<'_>],
    order: &Buffer,
    rows: u64,
) -> Result<Segments> {
    numbered(OPERATOR, rows)?;
    assert!(order.len() as u64 >= rows * 4, "order of {rows} rows");
    if rows == 0 {
        return none(device);
    }
    let mut addresses = Vec::new();
    for word in words {
        assert!(word.keys.len() as u64 >= rows * 8, "{rows} keys");
        addresses.extend_from_slice(&word.keys.address().to_le_bytes());
    }
    let addresses = device.upload(OPERATOR, &addresses)?;
    let tiles = tiles(rows, TILE);
    let most = device.alloc(OPERATOR, (rows as usize + 1) * 4)?;
    let state = device.alloc_zeroed(OPERATOR, (tiles as usize + 1) * 8)?;
    let kernel = device.kernel(&source(), "segment_bounds")?;
    let arguments: [Argument; 6] = [
        (&addresses).into(),
        (words.len() as u64).into(),
        order.into(),
        rows.into(),
        (&most).into(),
        (&state).into(),
    ];
    // SAFETY: SegmentBounds { words: the address of rows u64 for each word, checked above and alive
    // through `words`; their number; order: rows u32 that number rows; rows > 0; offsets: rows + 1
    // u32; state: 1 + tiles zeroed u64 }.
    unsafe { device.launch(&kernel, grid(tiles, THREADS), &arguments)? };
    found(device, most, &state, rows)
}

/// The runs of equal keys of a column, and their keys: `rows` integers of `width` 4 or 8 bytes, in
/// the order in which they lie. Waits for the device: the number of runs.
pub fn runs(
    device: &Device,
    keys: Slice<'_>,
    width: usize,
    rows: u64,
) -> Result<(Segments, Buffer)> {
    numbered(OPERATOR, rows)?;
    assert!(keys.len() as u64 >= rows * width as u64, "{rows} keys");
    if rows == 0 {
        return Ok((none(device)?, device.alloc(OPERATOR, 0)?));
    }
    let [heads_name, list_name] = match width {
        4 => ["segment_heads_u32", "segment_list_u32"],
        8 => ["segment_heads_u64", "segment_list_u64"],
        other => unreachable!("keys of {other} bytes"),
    };
    let tiles = tiles(rows, RUNS_TILE);
    let marks = device.alloc(OPERATOR, (tiles * RUNS_TILE / 8) as usize)?;
    let counts = device.alloc(OPERATOR, (tiles * RUNS_PARTS) as usize * 4)?;
    let gathered = device.alloc(OPERATOR, (tiles * RUNS_ROOM) as usize * width)?;
    let kernel = device.kernel(&source(), heads_name)?;
    let arguments: [Argument; 5] =
        [keys.into(), rows.into(), (&marks).into(), (&counts).into(), (&gathered).into()];
    // SAFETY: SegmentHeads { keys: rows of `width`, checked; rows > 0; marks: a bit for each row of
    // the tiles; counts: tiles × RUNS_PARTS u32; gathered: tiles × RUNS_ROOM of `width` }.
    unsafe { device.launch(&kernel, grid(tiles, RUNS_THREADS), &arguments)? };
    let begins = exclusive_scan_u32(device, &counts, tiles * RUNS_PARTS)?;
    let count = begins.read_word_or((tiles * RUNS_PARTS) as usize * 8, rows.div_ceil(4))?;
    let offsets = device.alloc(OPERATOR, (count as usize + 1) * 4)?;
    let of_runs = device.alloc(OPERATOR, count as usize * width)?;
    let kernel = device.kernel(&source(), list_name)?;
    let arguments: [Argument; 7] = [
        keys.into(),
        (&gathered).into(),
        (&marks).into(),
        (&begins).into(),
        rows.into(),
        (&offsets).into(),
        (&of_runs).into(),
    ];
    // SAFETY: SegmentList { keys, gathered, marks as above; begins: tiles × RUNS_PARTS + 1 u64;
    // rows; offsets: count + 1 u32, and `begins` ends with that count; of_runs: count of `width` }.
    unsafe { device.launch(&kernel, grid(tiles, RUNS_THREADS), &arguments)? };
    Ok((Segments { offsets, count, rows, begins, marks: Some(marks) }, of_runs))
}

/// Segments of no rows.
fn none(device: &Device) -> Result<Segments> {
    let (offsets, begins) = (device.alloc_zeroed(OPERATOR, 4)?, device.alloc_zeroed(OPERATOR, 8)?);
    Ok(Segments { offsets, count: 0, rows: 0, begins, marks: None })
}

/// The segments whose offsets a kernel wrote into room for as many as there are rows; the state's
/// last word counts them.
fn found(device: &Device, most: Buffer, state: &Buffer, rows: u64) -> Result<Segments> {
    let count = state.read_word_or(tiles(rows, TILE) as usize * 8, rows.div_ceil(4))? & COUNT;
    // There may be far fewer segments than rows.
    let offsets = device.alloc(OPERATOR, (count as usize + 1) * 4)?;
    offsets.copy_from(0, &most, 0, (count as usize + 1) * 4)?;
    drop(most);
    Segments::new(device, offsets, count, rows)
}

impl Segments {
    /// Segments of known offsets: `u32 × (count + 1)`, strictly ascending from 0 to `rows`.
    pub fn new(device: &Device, offsets: Buffer, count: u64, rows: u64) -> Result<Segments> {
        assert!(offsets.len() as u64 >= (count + 1) * 4, "{count} segments");
        let tiles = tiles(rows, TILE);
        let begins = device.alloc(OPERATOR, (tiles as usize + 1) * 8)?;
        let kernel = device.kernel(&source(), "segment_tiles")?;
        let arguments: [Argument; 4] =
            [(&offsets).into(), count.into(), tiles.into(), (&begins).into()];
        let blocks = super::tiles(tiles + 1, u64::from(THREADS));
        // SAFETY: SegmentTiles { offsets: count + 1 u32, checked; count; tiles; begins: tiles + 1
        // u64 }.
        unsafe { device.launch(&kernel, grid(blocks, THREADS), &arguments)? };
        Ok(Segments { offsets, count, rows, begins, marks: None })
    }
}

/// One result for each segment, of `kind.result_width()` bytes.
///
/// The value at position `i` of the segments is `values[order[i]]` (`values[i]` without an order),
/// and takes part unless `valid` holds 0 there. What is combined with what depends on positions
/// alone: same input, same bits. [`Reduction::Count`] reads no values; any buffer will do.
pub fn segmented_reduce<'a>(
    device: &Device,
    kind: Reduction,
    values: impl Into<Slice<'a>>,
    valid: Option<&Buffer>,
    order: Option<&Buffer>,
    segments: &Segments,
) -> Result<Buffer> {
    let (values, rows) = (values.into(), segments.rows);
    let width = kind.result_width();
    assert!(
        order.is_some() || values.len() as u64 >= rows * kind.value_width() as u64,
        "{rows} values"
    );
    assert!(order.is_none_or(|order| order.len() as u64 >= rows * 4), "order of {rows} rows");
    let results = device.alloc(OPERATOR, segments.count as usize * width)?;
    let tiles = tiles(rows, TILE);
    let heads = device.alloc(OPERATOR, tiles as usize * width)?;
    let tails = device.alloc(OPERATOR, tiles as usize * width)?;

    let null = Argument::from(0u64);
    let marks =
        segments.marks.as_ref().filter(|_| valid.is_none() && order.is_none() && has_runs(kind));
    let of_runs = if marks.is_some() { "runs_" } else { "" };
    let kernel = device
        .kernel(&reduce_source(kind), &format!("segment_reduce_{of_runs}{}", kind.entry().0))?;
    let arguments: [Argument; 11] = [
        if kind == Reduction::Count { null } else { values.into() },
        valid.map_or(null, Argument::from),
        order.map_or(null, Argument::from),
        (&segments.offsets).into(),
        marks.map_or(null, Argument::from),
        (&segments.begins).into(),
        rows.into(),
        tiles.into(),
        (&results).into(),
        (&heads).into(),
        (&tails).into(),
    ];
    // SAFETY: SegmentReduce: values of the kind's width for every row that `order` names (its
    // maker's promise; without one checked above), validity likewise; order rows u32 or null;
    // offsets, marks and begins made by `Segments` and `runs`, and marks for the kernel that wants
    // them; results one for each segment, heads and tails one for each tile, of the kind's width.
    unsafe { device.launch(&kernel, grid(tiles, THREADS), &arguments)? };

    let kernel =
        device.kernel(&reduce_source(kind), &format!("segment_finish_{}", kind.entry().0))?;
    let arguments: [Argument; 7] = [
        (&segments.offsets).into(),
        (&segments.begins).into(),
        rows.into(),
        tiles.into(),
        (&results).into(),
        (&heads).into(),
        (&tails).into(),
    ];
    // SAFETY: SegmentFinish: the same buffers as above.
    unsafe {
        device.launch(
            &kernel,
            grid(super::tiles(tiles, u64::from(THREADS)), THREADS),
            &arguments,
        )?
    };
    Ok(results)
}

#[cfg(test)]
mod tests;
