//! Filters in two kernels: one marks the rows that stay, a bit each, and counts them; the other writes them.
//!
//! ```text
//!   rows     a b c d | e f g h        marks  1 0 1 1 | 0 1 0 0      counts  3 | 1      begins  0 3 | 4
//!   output   a c d f
//! ```
//!
//! Between them an exclusive scan of the counts says where each tile's rows begin. The second kernel loads nothing of the
//! rows that are gone, and the memory written is exactly what is needed. One pass with decoupled look-back moves fewer bytes
//! but waits for its predecessors while it holds loaded rows: at 100M rows of three columns on an H200 it took 0.61 ms where
//! a hundredth is kept.

use std::sync::Arc;

use super::effort::{Effort, items_for};
use super::generator::{Generator, Prepared};
use super::kernel::{Generated, THREADS};
use super::params::Later;
use crate::device::{Buffer, Device};
use crate::error::{Error, Result};
use crate::ops::scan::exclusive_scan_u32;

/// Rows that are counted together: those of a block of the second kernel. `MARKS_TILE` of `kernels/pipeline.cuh`.
const TILE: u64 = 4096;
/// Rows for each that stays from which on each warp of the second kernel lists its share of a tile by itself (`marked_places_of_warp`). 100M rows
/// of two columns, H200: of one in a hundred it takes 0.056 ms instead of 0.083, of one in ten 0.263 instead of 0.260.
const ROWS_A_FEW: u64 = 16;

/// The parameters through which the kernels see marks, counts and begins.
pub(super) struct Marks {
    marks: (String, Later),
    counts: (String, Later),
    begins: (String, Later),
    few: (String, Later),
}

/// Rows that were marked.
pub(crate) struct Marked {
    marks: Arc<Buffer>,
    begins: Arc<Buffer>,
    tiles: u64,
}

impl Marked {
    /// How many rows are marked. Waits for the device; a rehearsal assumes `expected`.
    pub(crate) fn kept(&self, expected: u64) -> Result<u64> {
        self.begins.read_word_or(self.tiles as usize * 8, expected)
    }
}

impl Marks {
    pub(super) fn declare(generator: &mut Generator<'_>) -> Self {
        Marks {
            marks: generator.params.later("u32*"),
            counts: generator.params.later("u32*"),
            begins: generator.params.later("const u64*"),
            few: generator.params.later("u64"),
        }
    }

    /// Runs `decide` on every row; it breaks for rows that go, and may store what it finds for the others.
    pub(super) fn run(
        &self,
        device: &Device,
        operator: &'static str,
        prepared: &mut Prepared,
        head: &str,
        decide: &str,
        rows: u64,
    ) -> Result<Marked> {
        let tiles = rows.div_ceil(TILE);
        let marks = Arc::new(device.alloc(operator, (tiles * TILE / 8) as usize)?);
        let counts = device.alloc_zeroed(operator, tiles as usize * 4)?;
        prepared.params.set(self.marks.1, &*marks);
        prepared.params.set(self.counts.1, &counts);
        prepared.params.set(self.begins.1, 0u64);
        prepared.params.set(self.few.1, 0u64);
        let items = items_for(prepared.eager_bytes, Effort::of(decide));
        let (prologue, marks_name, counts_name) = (&prepared.prologue, &self.marks.0, &self.counts.0);
        let body = format!(
            "constexpr int ITEMS = {items};\n{head}\
             const u64 tiles = (rows + (u64)ITEMS * THREADS - 1) / ((u64)ITEMS * THREADS);\n\
             for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{\n\
             #define ROW(k) WF_MARKS_ROW(tile, k)\n\
             {prologue}\
             u32 kept[ITEMS];\n\
             #pragma unroll\n\
             for (int k = 0; k < ITEMS; ++k) {{\nconst u64 row = ROW(k);\nbool keep = false;\n\
             if (row < rows) do {{\n{decide}keep = true;\n}} while (0);\n\
             kept[k] = __ballot_sync(FULL_WARP, keep);\n}}\n\
             mark_rows<THREADS, ITEMS>(tile * ((u64)ITEMS * THREADS), rows, kept, {marks_name}, {counts_name});\n}}\n"
        );
        let steps = rows.div_ceil(u64::from(items * THREADS));
        Generated::new(device, "mark", prepared, &body)?.fill(device, steps, 0)?;
        let begins = Arc::new(exclusive_scan_u32(device, &counts, tiles)?);
        Ok(Marked { marks, begins, tiles })
    }

    /// Runs `write` on every marked row, `kept` of `rows`, with `at` its place in each of the output's columns.
    pub(super) fn write(
        &self,
        device: &Device,
        prepared: &mut Prepared,
        marked: &Marked,
        head: &str,
        (write, columns): (&str, usize),
        (rows, kept): (u64, u64),
    ) -> Result<()> {
        // Rows of several turns of the loop in flight, as far as registers hold their columns.
        let unroll = (8 / columns.max(1)).clamp(1, 4);
        prepared.rows = kept;
        prepared.params.set(self.marks.1, &*marked.marks);
        prepared.params.set(self.counts.1, 0u64);
        prepared.params.set(self.begins.1, &*marked.begins);
        prepared.params.set(self.few.1, u64::from(kept <= rows / ROWS_A_FEW));
        let (marks, begins, few) = (&self.marks.0, &self.begins.0, &self.few.0);
        let body = format!(
            "{head}\
             WF_SHARED_ARRAY(u16, places, MARKS_TILE);\n\
             const u64 first = (u64)blockIdx.x * MARKS_TILE, begin = {begins}[blockIdx.x];\n\
             u32 before = 0;\n\
             const bool few = {few} != 0;\n\
             const u32 kept = few ? marked_places_of_warp<THREADS>({marks}, first, rows, places, before)\n\
             : marked_places<THREADS>({marks}, first, rows, places);\n\
             const u16* const own = places + (few ? warp() * (MARKS_TILE / (THREADS / 32)) : 0);\n\
             const u64 start = begin + before;\n\
             const u32 step = few ? 32 : THREADS;\n\
             #pragma unroll {unroll}\n\
             for (u32 i = few ? lane() : threadIdx.x; i < kept; i += step) do {{\n\
             const u64 row = first + own[i];\nconst u64 at = start + i;\n{write}}} while (0);\n"
        );
        let blocks =
            u32::try_from(rows.div_ceil(TILE)).map_err(|_| Error::unsupported("filter", "more than 2^32 tiles"))?;
        Generated::new(device, "keep", prepared, &body)?.launch(device, blocks, 0)
    }
}
