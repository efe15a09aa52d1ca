//! Partitions and peers of sorted rows, running reductions within partitions, reductions over
//! frames, and frames bounded by values. Kernels in `kernels/window.cuh`.
//!
//! Everything here speaks of positions in the sorted order. A frame is the positions from `low` up
//! to `high`.
//!
//! A reduction over any frames uses a tree, not differences of running ones: an extremum has no
//! difference, and a float outside of a frame would leave a trace in it.

pub use super::reduce::Reduction;
use super::{grid, numbered, tiles};
use crate::error::Result;
use crate::{Argument, Buffer, Device, KernelSource};

const OPERATOR: &str = "window";
/// `WINDOW_TILE`, `WINDOW_THREADS` and `WINDOW_FAN` of the kernels.
const TILE: u64 = 1024;
const THREADS: u32 = 256;
const FAN: u64 = 16;

/// A word of the sort's keys.
#[derive(Debug, Clone, Copy)]
pub struct WindowWord<'a> {
    /// `u64 × rows`, by row.
    pub keys: &'a Buffer,
    /// How many of the word's low bits are not of the partition's key; 64 where none is.
    pub below: u32,
}

/// What rows of a partition are to each other whose words are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ties {
    Peers,
    /// A key that is not among the words tells all rows apart.
    Apart,
}

/// Where partitions and peers (rows of a partition that the order does not tell apart) begin.
#[derive(Debug)]
pub struct Bounds {
    /// Number of each position's partition: `u32 × rows`.
    pub partition_of: Buffer,
    /// Partition `i` stands at `partitions[i]..partitions[i + 1]`.
    pub partitions: Buffer,
    /// Number of each position's peers: `u32 × rows`. Peers `i` stand at `peers[i]..peers[i + 1]`.
    pub peers_of: Buffer,
    pub peers: Buffer,
    pub rows: u64,
}

/// A reduction over some positions. Invalid ones are left out; over no valid one a sum and a count
/// are 0, and an extremum is undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    Reduce(Reduction),
    /// `f64` → `f64`: the sum of squared deviations from the mean.
    Deviations,
    /// Points of two `f64` → six: how many, the means of the first and of the second, and the sums
    /// of products of deviations from them, first with first, first with second, second with
    /// second. Over frames only: partial ones of a tile, in the width of six, do not fit the shared
    /// memory of a running reduction.
    Products,
}

/// Which way a running reduction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toward {
    /// From a partition's first position to its last.
    Last,
    First,
}

/// Keys of a frame that is bounded by values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeKeys {
    I64,
    I128,
    F32,
    F64,
}

/// How far a bound is.
#[derive(Debug, Clone, Copy)]
pub enum Distance<'a> {
    Step {
        /// An integer, or the bits of a float of the keys' type.
        step: i128,
        /// Least and greatest integer that a key can be.
        limits: (i128, i128),
    },
    /// The values at the bounds, of the keys' type.
    Targets(&'a Buffer),
}

/// A frame's bound at a distance from the row's value.
#[derive(Debug, Clone, Copy)]
pub struct RangeBound<'a> {
    pub keys: RangeKeys,
    /// The bound is the frame's first position, not the one after its last.
    pub start: bool,
    /// It lies before the row's value.
    pub preceding: bool,
    pub descending: bool,
    pub nulls_first: bool,
    pub distance: Distance<'a>,
}

impl Fold {
    /// Suffix of the entries, and the kernels' type for it.
    fn entry(self) -> (&'static str, &'static str) {
        match self {
            Fold::Reduce(kind) => kind.entry(),
            Fold::Deviations => ("deviations", "wf::ReduceMoments"),
            Fold::Products => ("products", "wf::ReduceProducts"),
        }
    }

    fn value_width(self) -> usize {
        match self {
            Fold::Reduce(kind) => kind.value_width(),
            Fold::Deviations => 8,
            Fold::Products => 16,
        }
    }

    fn partial_width(self) -> usize {
        match self {
            Fold::Reduce(kind) => kind.result_width(),
            Fold::Deviations => 24,
            Fold::Products => 48,
        }
    }

    fn result_width(self) -> usize {
        match self {
            Fold::Reduce(kind) => kind.result_width(),
            Fold::Deviations => 8,
            Fold::Products => 48,
        }
    }
}

fn source() -> KernelSource {
    KernelSource::new("window", "#include \"window.cuh\"\nWF_WINDOW_ENTRIES\n")
}

fn run_source(fold: Fold) -> KernelSource {
    let (suffix, op) = fold.entry();
    KernelSource::new(
        format!("window_run_{suffix}"),
        format!("#include \"window.cuh\"\nWF_WINDOW_RUN({suffix}, {op})\n"),
    )
}

fn tree_source(fold: Fold) -> KernelSource {
    let (suffix, op) = fold.entry();
    KernelSource::new(
        format!("window_tree_{suffix}"),
        format!("#include \"window.cuh\"\nWF_WINDOW_TREE({suffix}, {op})\n"),
    )
}

pub(super) fn sources() -> Vec<KernelSource> {
    let folds = Reduction::ALL.into_iter().map(Fold::Reduce).chain([Fold::Deviations]);
    let of_folds = folds.flat_map(|fold| [run_source(fold), tree_source(fold)]);
    std::iter::once(source()).chain(of_folds).chain([tree_source(Fold::Products)]).collect()
}

/// The partitions and peers of `rows` rows, at least one, in `order` (`u32 × rows`) of the words.
pub fn bounds(
    device: &Device,
    words: &[WindowWord<'_>],
    order: Option<&Buffer>,
    ties: Ties,
    rows: u64,
) -> Result<Bounds> {
    numbered(OPERATOR, rows)?;
    assert!(
        rows > 0 && order.is_none_or(|order| order.len() as u64 >= rows * 4),
        "order of {rows} rows"
    );
    let mut list = Vec::new();
    for word in words {
        assert!(word.keys.len() as u64 >= rows * 8, "{rows} keys");
        list.extend_from_slice(&word.keys.address().to_le_bytes());
        list.extend_from_slice(&u64::from(word.below).to_le_bytes());
    }
    let list = device.upload(OPERATOR, &list)?;
    let tiles = tiles(rows, TILE);
    let numbers = || device.alloc(OPERATOR, rows as usize * 4);
    let offsets = || device.alloc(OPERATOR, (rows as usize + 1) * 4);
    let bounds = Bounds {
        partition_of: numbers()?,
        partitions: offsets()?,
        peers_of: numbers()?,
        peers: offsets()?,
        rows,
    };
    let state = device.alloc_zeroed(OPERATOR, (1 + 2 * tiles as usize) * 8)?;
    let kernel = device.kernel(&source(), "window_bounds")?;
    let arguments: [Argument; 10] = [
        (&list).into(),
        (words.len() as u64).into(),
        order.map_or(Argument::from(0u64), Argument::from),
        rows.into(),
        u64::from(ties == Ties::Apart).into(),
        (&bounds.partition_of).into(),
        (&bounds.partitions).into(),
        (&bounds.peers_of).into(),
        (&bounds.peers).into(),
        (&state).into(),
    ];
    // SAFETY: WindowBounds { words: for each word the address of rows u64, checked above and alive
    // through `words`, and its bits; their number; order: rows u32 that number rows, or null; rows
    // > 0; a flag; numbers of rows u32 and offsets of rows + 1 u32, made above; state: 1 + 2 ×
    // tiles zeroed u64 }.
    unsafe { device.launch(&kernel, grid(tiles, THREADS), &arguments)? };
    Ok(bounds)
}

/// For each position the reduction of its partition up to and with it, of `fold`'s results:
/// `values` are of its values (any buffer for counts), `valid` a byte each.
pub fn running(
    device: &Device,
    fold: Fold,
    toward: Toward,
    values: &Buffer,
    valid: Option<&Buffer>,
    bounds: &Bounds,
) -> Result<Buffer> {
    let rows = bounds.rows;
    assert!(fold != Fold::Products, "products are of frames");
    check(fold, values, valid, rows);
    let tiles = tiles(rows, TILE);
    let carries = device.alloc(OPERATOR, tiles as usize * fold.partial_width())?;
    let begun = device.alloc(OPERATOR, tiles as usize * 4)?;
    let results = device.alloc(OPERATOR, rows as usize * fold.result_width())?;
    let arguments: [Argument; 9] = [
        values_of(fold, values),
        valid.map_or(Argument::from(0u64), Argument::from),
        (&bounds.partition_of).into(),
        rows.into(),
        tiles.into(),
        u64::from(toward == Toward::First).into(),
        (&carries).into(),
        (&begun).into(),
        (&results).into(),
    ];
    for (pass, blocks) in [("tiles", tiles), ("carries", 1), ("write", tiles)] {
        let kernel =
            device.kernel(&run_source(fold), &format!("window_run_{pass}_{}", fold.entry().0))?;
        // SAFETY: WindowRun { values of the fold's width (null for counts) and valid bytes or null,
        // rows each, checked; partition_of: rows u32, made by `bounds`; rows; tiles; direction;
        // carries and begun: one for each tile; results: rows of the fold's width }.
        unsafe { device.launch(&kernel, grid(blocks, THREADS), &arguments)? };
    }
    Ok(results)
}

/// For each position the reduction over its frame `low..high` (`u32 × rows` each), which may be any
/// positions.
pub fn over_frames(
    device: &Device,
    fold: Fold,
    values: &Buffer,
    valid: Option<&Buffer>,
    [low, high]: [&Buffer; 2],
    rows: u64,
) -> Result<Buffer> {
    check(fold, values, valid, rows);
    assert!(low.len().min(high.len()) as u64 >= rows * 4, "frames of {rows} rows");
    let mut levels = vec![(0, rows)];
    let (mut nodes, mut below) = (0, rows);
    // A whole level of fewer nodes than a node joins is taken node by node.
    while below >= FAN {
        below = below.div_ceil(FAN);
        levels.push((nodes, below));
        nodes += below;
    }
    let tree = device.alloc(OPERATOR, nodes as usize * fold.partial_width())?;
    let results = device.alloc(OPERATOR, rows as usize * fold.result_width())?;
    let launch = |kernel: &str, [from, to]: [(u64, u64); 2], threads: u64| {
        let kernel =
            device.kernel(&tree_source(fold), &format!("window_{kernel}_{}", fold.entry().0))?;
        let arguments: [Argument; 11] = [
            values_of(fold, values),
            valid.map_or(Argument::from(0u64), Argument::from),
            rows.into(),
            (&tree).into(),
            from.0.into(),
            from.1.into(),
            to.0.into(),
            to.1.into(),
            low.into(),
            high.into(),
            (&results).into(),
        ];
        // SAFETY: WindowTree { values of the fold's width (null for counts) and valid bytes or
        // null, rows each, checked; rows; nodes: of the partial width, as many as all levels have,
        // where the levels lie one after the other; low and high: rows u32, checked, whose frames
        // lie within the rows (their maker's promise); results: rows of the fold's width }. A frame
        // never looks beyond the last level: it would have to hold 16 nodes of that.
        unsafe {
            device.launch(&kernel, grid(tiles(threads, u64::from(THREADS)), THREADS), &arguments)
        }
    };
    for (at, pair) in levels.windows(2).enumerate() {
        launch(if at == 0 { "leaves" } else { "level" }, [pair[0], pair[1]], pair[1].1)?;
    }
    launch("frames", [(0, 0), (0, 0)], rows)?;
    Ok(results)
}

/// For each position the bound of its frame (`u32 × rows`), found among the partition's keys, which
/// are in the order.
pub fn range_bound(
    device: &Device,
    bound: &RangeBound<'_>,
    keys: &Buffer,
    valid: Option<&Buffer>,
    bounds: &Bounds,
) -> Result<Buffer> {
    let rows = bounds.rows;
    let (name, width) = match bound.keys {
        RangeKeys::I64 => ("window_range_i64", 8),
        RangeKeys::I128 => ("window_range_i128", 16),
        RangeKeys::F32 => ("window_range_f32", 4),
        RangeKeys::F64 => ("window_range_f64", 8),
    };
    assert!(keys.len() as u64 >= rows * width, "{rows} keys");
    assert!(valid.is_none_or(|valid| valid.len() as u64 >= rows), "{rows} rows of validity");
    let out = device.alloc(OPERATOR, rows as usize * 4)?;
    let flags = [bound.start, bound.preceding, bound.descending, bound.nulls_first];
    let flags = flags.iter().rev().fold(0u64, |bits, flag| bits << 1 | u64::from(*flag));
    let words =
        |number: i128| [Argument::from(number as u64), Argument::from((number >> 64) as u64)];
    let (targets, step, limits) = match bound.distance {
        Distance::Step { step, limits } => (0u64.into(), step, limits),
        Distance::Targets(targets) => {
            assert!(targets.len() as u64 >= rows * width, "{rows} targets");
            (targets.into(), 0, (0, 0))
        }
    };
    let ([step, step_high], [least, least_high]) = (words(step), words(limits.0));
    let [greatest, greatest_high] = words(limits.1);
    let kernel = device.kernel(&source(), name)?;
    let arguments: [Argument; 16] = [
        keys.into(),
        valid.map_or(Argument::from(0u64), Argument::from),
        (&bounds.partition_of).into(),
        (&bounds.partitions).into(),
        (&bounds.peers_of).into(),
        (&bounds.peers).into(),
        rows.into(),
        flags.into(),
        targets,
        step,
        step_high,
        least,
        least_high,
        greatest,
        greatest_high,
        (&out).into(),
    ];
    // SAFETY: WindowRange { keys of the entry's width and valid bytes or null, rows each, checked;
    // numbers and offsets made by `bounds`; rows; flags; targets: rows of the entry's width,
    // checked, or null; step and limits as words; out: rows u32 }.
    unsafe { device.launch(&kernel, grid(tiles(rows, u64::from(THREADS)), THREADS), &arguments)? };
    Ok(out)
}

fn check(fold: Fold, values: &Buffer, valid: Option<&Buffer>, rows: u64) {
    assert!(values.len() as u64 >= rows * fold.value_width() as u64, "{rows} values");
    assert!(valid.is_none_or(|valid| valid.len() as u64 >= rows), "{rows} rows of validity");
}

fn values_of(fold: Fold, values: &Buffer) -> Argument {
    if fold == Fold::Reduce(Reduction::Count) { 0u64.into() } else { values.into() }
}

#[cfg(test)]
mod tests;
