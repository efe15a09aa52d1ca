//! Which sink aggregates, and how many rows and threads a block of it takes.

use super::cells::Cells;
use super::expected::Expected;
use super::inputs::AggregateInput;
use super::partitioned::{Domain, GroupPartitioning};
use crate::codegen::effort::{Effort, items_for, items_in_time};
use crate::codegen::flow::Flow;
use crate::codegen::kernel::most_shared;
use crate::codegen::prepared::PreparedKernel;
use crate::codegen::statements::Code;
use warpframe_device::Device;

/// Most bytes of shared memory for cells of which several blocks share a multiprocessor.
const CELL_BYTES: u64 = 48 << 10;
/// Threads of a block with cells, which may have a multiprocessor's shared memory to itself.
const LARGE_BLOCK: u32 = 1024;
/// Accumulators of which the registers of such a block hold the arguments.
const MOST_INPUTS: usize = 4;
/// Most rows of a thread per tile.
pub(super) const MOST_ITEMS: u32 = 16;
/// Blocks of a multiprocessor where columns are loaded late: so many hide the latency of the loads.
pub(super) const LATE_BLOCKS: u32 = 8;
/// Most rows of a thread for which registers suffice in so many blocks.
const LATE_ITEMS: u32 = 4;
/// Most words of accumulators for which registers suffice in so many blocks.
const LATE_WORDS: usize = 4;
/// Slots of a hash table in shared memory for each group.
const ROOM: u64 = 4;
/// Accumulators, and bytes of a row, up to which blocks of 1024 threads have registers for six rows
/// of each.
const HASHED_INPUTS: usize = 2;
const HASHED_BYTES: usize = 16;

/// Which sink, and what it needs to know.
pub(super) enum Sink {
    Registers,
    /// Cells that the key numbers.
    Cells {
        cells: Cells,
        copies: u64,
    },
    /// Cells that a hash table of so many slots in shared memory finds.
    HashCells {
        cells: Cells,
        slots: u64,
        copies: u64,
    },
    Partitioned(GroupPartitioning),
    Atomics,
}

impl Sink {
    /// Chooses the sink of keys that are exact; no accumulator needs rows.
    pub(super) fn of(
        device: &Device,
        flow: &Flow,
        inputs: &[AggregateInput],
        direct: Option<u64>,
        in_order: bool,
        expected: &Expected,
        text: bool,
    ) -> Sink {
        let rows = flow.source.rows();
        let all = device.of_kind(most_shared(device), 2 * CELL_BYTES);
        // As in `rows_per_thread`.
        let block_rows =
            rows / u64::from(device.properties().multiprocessors) + 2 * u64::from(8 * LARGE_BLOCK);
        if let Some(domain) = direct {
            let cells = Cells::of(inputs, block_rows, false);
            if cells.bytes(domain, 1) <= CELL_BYTES {
                let copies = cells.most_copies(domain, CELL_BYTES);
                return Sink::Cells { cells, copies };
            }
            // Every block writes its cells out; of keys alone, those are bits.
            let worthwhile = if inputs.is_empty() { 8 } else { 64 };
            if cells.bytes(domain, 1) <= all && rows >= domain.saturating_mul(worthwhile) {
                return Sink::Cells { cells, copies: 1 };
            }
        } else if let Some(groups) = expected.groups.filter(|_| !text) {
            let cells = Cells::of(inputs, block_rows, true);
            // Of very few groups, so many slots that hardly a key is far from its place: all rows
            // of such a key would probe on.
            let tried = [
                (all, 4 * ROOM, 8),
                (CELL_BYTES, ROOM, 1),
                (all, 2 * ROOM, 1),
                (all, ROOM, 1),
                (all, ROOM / 2, 1),
            ];
            // Of few rows a block has a multiprocessor to itself, and room for more groups than
            // guessed, and copies if there are fewer.
            for (bytes, room, copies) in tried.into_iter().skip(2 * usize::from(expected.guessed)) {
                let slots = (groups * room).next_power_of_two().max(32);
                if cells.bytes(slots, copies) <= bytes && rows >= slots.saturating_mul(16) {
                    let copies = cells.most_copies(slots, bytes);
                    return Sink::HashCells { cells, slots, copies };
                }
            }
        }
        let domain = direct.map(Domain::Dense).or(expected.groups.map(Domain::Any));
        // Slots that keys in order number are next to each other as they are.
        let is_local = in_order && direct.is_some();
        match domain
            .filter(|_| !text && !expected.frugal && !is_local)
            .and_then(|domain| GroupPartitioning::of(device, inputs, domain, rows, flow.estimate))
        {
            Some(plan) => Sink::Partitioned(plan),
            None => Sink::Atomics,
        }
    }

    /// Rows of a thread per tile. `late`: columns are loaded late.
    pub(super) fn items(
        &self,
        inputs: usize,
        prepared: &PreparedKernel,
        effort: Effort,
        late: bool,
    ) -> u32 {
        let bytes = prepared.eager_bytes;
        match self {
            Sink::Registers if late => items_in_time(LATE_ITEMS, effort),
            // Where slots have to be found, more rows, as far as registers allow.
            Sink::HashCells { .. } if inputs <= HASHED_INPUTS && bytes <= HASHED_BYTES => {
                items_for(bytes, effort).min(6)
            }
            Sink::Cells { .. } | Sink::HashCells { .. } => items_for(bytes, effort).min(4),
            // Next to nothing is done for a row: what counts is how much is on its way.
            Sink::Registers if bytes <= 8 => items_in_time(MOST_ITEMS, effort),
            // A slot is found and added to for one row after another, however many there are.
            Sink::Atomics => items_for(bytes, effort + Effort::characters(300 * inputs)).min(4),
            _ => items_for(bytes, effort),
        }
    }
}

/// Threads of a block with cells. Cells make long dependent chains of few registers: many threads
/// hide them better than many rows of each. Many accumulators take more registers than so many
/// threads have.
pub(super) fn cell_threads(inputs: usize) -> u32 {
    if inputs <= MOST_INPUTS { LARGE_BLOCK } else { LARGE_BLOCK / 2 }
}

/// Whether columns are loaded late: where registers suffice for the accumulators, of so many words,
/// and for what the rows' code computes.
pub(super) fn is_late(prepared: &PreparedKernel, words: usize, code: [&Code; 2]) -> bool {
    prepared.late && words <= LATE_WORDS && !code.into_iter().any(Code::is_wide)
}
