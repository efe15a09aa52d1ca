//! How much memory the parts of a plan may take.

use datafusion::common::JoinType;
use datafusion::logical_expr::Join;

use warpframe_device::Device;

/// Rows of a small chunk. Sweeps, sorts and ranks give up below it, and sides of joins without
/// equal keys are so small that their pairs with it fit. A chunk that drives a part is halved down
/// to one row.
pub(crate) const LEAST_ROWS: u64 = 64;
/// Bytes that a pair of rows takes while a join looks at its condition.
const PAIR: u64 = 16;

/// Bytes of device memory for each purpose, as shares of what is free when a plan is divided.
///
/// A part takes several times its rows: pages while they are decoded, keys, hash tables, the rows
/// that come out. Where it takes more yet, it is made smaller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// Rows that drive a part.
    pub(crate) chunk: u64,
    /// One side of a join, while the other goes by.
    pub(crate) side: u64,
    /// What is stored of one intermediate result, before it moves to the host.
    pub(crate) stored: u64,
    /// What is stored of the result, before it moves to the host.
    pub(crate) result: u64,
    /// A part of rows that are parted by hash or range.
    pub(crate) part: u64,
    /// A part's next rows are read while those before are computed.
    pub(crate) reads_ahead: bool,
}

impl Budget {
    pub(crate) fn of(device: &Device) -> Budget {
        let memory = device.memory();
        Budget::of_free(memory.limit.saturating_sub(memory.used))
    }

    /// Of what is free once all that nobody uses has made room.
    pub(crate) fn expected(device: &Device) -> Budget {
        let memory = device.memory();
        let used = memory.used.saturating_sub(memory.evictable);
        Budget::of_free(memory.limit.saturating_sub(used))
    }

    /// Rows of a side of a join that may stand beside chunks of the other.
    pub(crate) fn side_rows(&self, join: &Join) -> u64 {
        // Each may meet all: so few that their pairs with the smallest chunk fit, too.
        let goes_by_blocks = join.on.is_empty() && join.join_type == JoinType::Inner;
        if goes_by_blocks { (self.side / (LEAST_ROWS * PAIR)).max(1) } else { u64::MAX }
    }

    /// Of so many bytes that are free.
    pub(crate) fn of_free(free: u64) -> Budget {
        let free = free.max(1);
        Budget {
            chunk: free / 8,
            side: free / 5,
            stored: free / 12,
            result: free / 4,
            part: free / 10,
            reads_ahead: true,
        }
    }
}
