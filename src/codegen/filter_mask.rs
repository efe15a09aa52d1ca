//! Filters in two kernels: one writes the mask, a bit for each row, set where the row stays, and
//! counts the rows that stay; the other writes those rows.
//!
//! ```text
//!   rows     a b c d | e f g h
//!   mask     1 0 1 1 | 0 1 0 0      counts  3 | 1      begins  0 3 | 4
//!   output   a c d f
//! ```
//!
//! Between them an exclusive scan of the counts says where each tile's rows begin. The second
//! kernel loads nothing of the rows that are gone, and the memory written is exactly what is
//! needed. One pass with decoupled look-back would move fewer bytes, but it holds loaded rows in
//! registers while it waits for the tiles before.

use std::sync::Arc;

use super::effort::{Effort, items_for};
use super::generator::Generator;
use super::kernel::{Generated, THREADS};
use super::params::Later;
use super::prepared::PreparedKernel;
use super::statements::Code;
use crate::error::{Error, Result};
use warpframe_device::Device;
use warpframe_device::ops::gather_columns::{KeptRows, MASK_TILE};
use warpframe_device::ops::scan::exclusive_scan_u32;

/// Names of the parameters through which the kernels see mask, counts and begins.
pub(super) struct FilterMask {
    mask: (String, Later),
    counts: (String, Later),
    begins: (String, Later),
    few: (String, Later),
}

impl FilterMask {
    pub(super) fn declare(generator: &mut Generator<'_>) -> Self {
        FilterMask {
            mask: generator.params.later("u32*"),
            counts: generator.params.later("u32*"),
            begins: generator.params.later("const u64*"),
            few: generator.params.later("u64"),
        }
    }

    /// Runs `decide` on every row; it breaks for rows that go, and may store what it finds for the
    /// others.
    pub(super) fn run(
        &self,
        device: &Device,
        operator: &'static str,
        prepared: &mut PreparedKernel,
        head: &str,
        decide: &Code,
        rows: u64,
    ) -> Result<KeptRows> {
        let tiles = rows.div_ceil(MASK_TILE);
        let mask = Arc::new(device.alloc(operator, (tiles * MASK_TILE / 8) as usize)?);
        let counts = device.alloc_zeroed(operator, tiles as usize * 4)?;
        prepared.params.set(self.mask.1, &*mask);
        prepared.params.set(self.counts.1, &counts);
        prepared.params.set(self.begins.1, 0u64);
        prepared.params.set(self.few.1, 0u64);
        let items = items_for(prepared.eager_bytes, Effort::of(decide));
        let (mask_name, counts_name) = (&self.mask.0, &self.counts.0);
        let mut body = Code::default();
        body.line(format_args!(
            "constexpr int ITEMS = {items};\n{head}\
             const u64 tiles = (rows + (u64)ITEMS * THREADS - 1) / ((u64)ITEMS * THREADS);\n\
             for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{\n\
             #define ROW(k) WF_MASK_ROW(tile, k)"
        ));
        body.append(&prepared.prologue);
        body.line(
            "u32 kept[ITEMS];\n\
             #pragma unroll\n\
             for (int k = 0; k < ITEMS; ++k) {\nconst u64 row = ROW(k);\nbool keep = false;",
        );
        body.scope("if (row < rows) ");
        body.append(decide);
        body.line("keep = true;");
        body.close("} while (0);");
        body.line(format_args!(
            "kept[k] = __ballot_sync(FULL_WARP, keep);\n}}\n\
             mask_rows<THREADS, ITEMS>(tile * ((u64)ITEMS * THREADS), rows, kept, {mask_name}, {counts_name});\n}}"
        ));
        let steps = rows.div_ceil(u64::from(items * THREADS));
        Generated::new(device, "filter_mask", prepared, &body)?.fill(device, steps, 0)?;
        let begins = Arc::new(exclusive_scan_u32(device, &counts, tiles)?);
        Ok(KeptRows { mask, begins, rows })
    }

    /// Runs `write` on every row that stays, `kept` of `rows`, with `at` its place in each of the
    /// output's columns.
    pub(super) fn write(
        &self,
        device: &Device,
        prepared: &mut PreparedKernel,
        kept_rows: &KeptRows,
        head: &str,
        (write, columns): (&Code, usize),
        kept: u64,
    ) -> Result<()> {
        // Rows of several turns of the loop in flight, as far as registers hold their columns.
        let unroll = (8 / columns.max(1)).clamp(1, 4);
        prepared.rows = kept;
        prepared.params.set(self.mask.1, &*kept_rows.mask);
        prepared.params.set(self.counts.1, 0u64);
        prepared.params.set(self.begins.1, &*kept_rows.begins);
        prepared.params.set(self.few.1, u64::from(kept_rows.are_few(kept)));
        let (mask, begins, few) = (&self.mask.0, &self.begins.0, &self.few.0);
        let mut body = Code::default();
        body.line(format_args!(
            "{head}\
             WF_SHARED_ARRAY(u16, places, MASK_TILE);\n\
             const u64 first = (u64)blockIdx.x * MASK_TILE, begin = {begins}[blockIdx.x];\n\
             u32 before = 0;\n\
             const bool few = {few} != 0;\n\
             const u32 kept = few ? mask_places_of_warp<THREADS>({mask}, first, rows, places, before)\n\
             : mask_places<THREADS>({mask}, first, rows, places);\n\
             const u16* const own = places + (few ? warp() * (MASK_TILE / (THREADS / 32)) : 0);\n\
             const u64 start = begin + before;\n\
             const u32 step = few ? 32 : THREADS;\n\
             #pragma unroll {unroll}"
        ));
        body.scope("for (u32 i = few ? lane() : threadIdx.x; i < kept; i += step) ");
        body.constant("u64", "row", "first + own[i]");
        body.constant("u64", "at", "start + i");
        body.append(write);
        body.close("} while (0);");
        let blocks = u32::try_from(kept_rows.tiles())
            .map_err(|_| Error::unsupported("filter", "more than 2^32 tiles"))?;
        Generated::new(device, "filter_compact", prepared, &body)?.launch(device, blocks, 0)
    }
}
