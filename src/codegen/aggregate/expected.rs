//! What is known of the groups before they are aggregated through a hash table.

use crate::codegen::arena::Arena;
use crate::codegen::flow::{Flow, FlowSource};
use crate::codegen::radix_partition::pays_from;
use warpframe_device::Device;

/// Rows from which on it pays to know something of the groups before hashing them; a quarter of
/// that, or what pays to partition, is in a sample.
const SAMPLED_FROM: u64 = 1 << 18;
/// The guess: so many groups fit cells in shared memory whatever is aggregated; and what a hash
/// table has room for that takes those of all blocks, which need not have the same.
const GUESSED_GROUPS: u64 = 512;
/// The guess is less where a group would have fewer rows.
const GUESSED_ROWS: u64 = 256;
const GUESSED_CAPACITY: u64 = 1 << 18;
/// Capacity of the first hash table tried, where nothing is known of the groups.
const FIRST_CAPACITY: u64 = 1 << 20;
/// Most slots of a table that an estimate makes larger; one for each row of the source at most, so
/// that to fill it with nothing takes little beside reading them.
const MOST_ESTIMATED: u64 = 1 << 27;
/// Tables that are tried, the last with room for all and as many probes as slots, so that every key
/// finds its place. One that was too small is made again a few times as large, and all with secrets
/// of their own: so only those who know the secrets have keys that come as far as that.
pub(super) const MOST_TRIES: u64 = 8;
const LARGER_TRIES: u64 = 5;

/// Expectations that an aggregation starts from, and corrects.
pub(super) struct Expected {
    /// Bytes for characters of strings that are made.
    pub(super) arena: u64,
    /// A sample was looked at, or cannot be.
    pub(super) sampled: bool,
    /// Memory does not suffice for records of all rows, nor for a table as large as estimated.
    pub(super) frugal: bool,
    /// Groups there may be, as a sample says.
    pub(super) groups: Option<u64>,
    /// That is a guess.
    pub(super) guessed: bool,
    /// Capacity of a hash table in global memory.
    capacity: u64,
    /// Capacity for as many groups as rows are estimated to be left; 0 where more is known.
    estimated: u64,
    /// Tables that were too small before.
    pub(super) tries: u64,
}

impl Expected {
    pub(super) fn nothing(flow: &Flow) -> Self {
        let arena = Arena::guess(flow.source.rows());
        Expected {
            arena,
            sampled: false,
            frugal: false,
            groups: None,
            guessed: false,
            capacity: FIRST_CAPACITY,
            estimated: estimated_capacity(flow),
            tries: 0,
        }
    }

    /// Nothing, and no sample shall tell.
    pub(super) fn without_sample(flow: &Flow) -> Self {
        Expected { sampled: true, ..Expected::nothing(flow) }
    }

    /// Few groups.
    pub(super) fn few(flow: &Flow) -> Self {
        let groups = Some(GUESSED_GROUPS.min(flow.source.rows() / GUESSED_ROWS));
        Expected {
            sampled: true,
            groups,
            guessed: true,
            capacity: GUESSED_CAPACITY,
            estimated: 0,
            ..Expected::nothing(flow)
        }
    }

    /// Capacity of a hash table in global memory for the groups of so many rows.
    pub(super) fn capacity(&self, rows: u64) -> u64 {
        self.wanted().min(rows.saturating_mul(2).max(16).next_power_of_two())
    }

    fn wanted(&self) -> u64 {
        if self.frugal { self.capacity } else { self.capacity.max(self.estimated) }
    }

    /// Whether a table is as large as it is because of estimates alone.
    pub(super) fn is_generous(&self) -> bool {
        self.wanted() > self.capacity
    }

    /// As a sample says.
    pub(super) fn sampled(mut self, groups: u64) -> Self {
        self.groups = Some(groups);
        self.estimated = 0;
        self.capacity = (2 * groups).next_power_of_two().max(FIRST_CAPACITY);
        self
    }

    /// There were more groups than a table had room for.
    pub(super) fn too_few(&mut self) {
        self.tries = (self.tries + 1).min(MOST_TRIES - 1);
        if self.guessed || self.tries > LARGER_TRIES {
            return self.wrong();
        }
        self.capacity = self.wanted().saturating_mul(16);
        self.groups = self.groups.map(|groups| groups.saturating_mul(4));
    }

    /// Whether every key has to find a place, however far from its own.
    pub(super) fn patient(&self) -> bool {
        self.tries == MOST_TRIES - 1
    }

    /// The guess was wrong, or is of no use: every row may have a group of its own.
    pub(super) fn wrong(&mut self) {
        (self.guessed, self.groups, self.capacity) = (false, None, u64::MAX);
    }
}

/// Capacity for a group of each row that is estimated to be left of the source's.
fn estimated_capacity(flow: &Flow) -> u64 {
    let most = flow.source.rows().min(MOST_ESTIMATED);
    flow.expected_rows().saturating_mul(2).min(most).next_power_of_two()
}

/// Whether a sample says something. Of rows that are mostly dropped it says little.
pub(super) fn samplable(device: &Device, flow: &Flow) -> bool {
    !matches!(flow.source, FlowSource::Groups(_))
        && flow.source.rows() >= sampled_from(device)
        && !flow.drops_rows()
}

pub(super) fn sampled_from(device: &Device) -> u64 {
    SAMPLED_FROM.min(pays_from(device))
}
