//! What the kernels of a sort by prefix find out for each other and for the host. `SORT_FOUND_…` in `kernels/sort_ties.cuh`.
//!
//! Rows whose keys agree in all bits that travelled with their numbers tie. Where keys repeat, most rows do, and to read the rest of each one's key
//! from anywhere took 0.04 of 0.16 ms for 2M rows. So ties are trusted: rows that tie count as equal, one key of each group of them is read, and
//! sums of hashes tell whether all others are the same. If they are not, the keys are read after all.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;

use super::OPERATOR;
use crate::device::{Argument, Buffer, Device};
use crate::error::Result;

/// `SORT_FOUND_…`: rows listed, two sums, digits that look as if keys repeated, groups cut between two keys; and rows whose long runs are not in
/// order yet.
const WORDS: usize = 6;
const LEFT: usize = 5;
/// Rows of a sort for each that is listed, and at least so many.
const ROWS_A_LISTED: u64 = 64;
const LEAST_LISTED: u64 = 64;

/// Memory of the kernels.
pub(super) struct Found {
    words: Buffer,
    /// The first `room` rows of runs that are too long and out of order, at least one of each run, `u32`.
    pub(super) listed: Buffer,
    pub(super) room: u64,
}

/// What they wrote there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Findings {
    /// How many rows of runs that are too long and out of order there are.
    pub(super) listed: u64,
    /// Whether ties were trusted, and some rows that tie are not equal.
    pub(super) misled: bool,
    /// How many of those rows have runs that blocks for each left, where there were such.
    pub(super) left: u64,
}

/// When rows that tie count as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    Never,
    /// Where the counts of so many digits look as if keys repeated.
    Repeats(u32),
    Always,
}

impl Trust {
    /// `SortRuns::trusted`.
    pub(super) fn word(self) -> u64 {
        match self {
            Trust::Never => u64::MAX,
            Trust::Repeats(digits) => u64::from(digits),
            Trust::Always => 0,
        }
    }
}

impl Found {
    pub(super) fn new(device: &Device, rows: u64) -> Result<Found> {
        let room = (rows / ROWS_A_LISTED).max(LEAST_LISTED);
        let words = device.alloc_zeroed(OPERATOR, WORDS * 8)?;
        Ok(Found { words, listed: device.alloc(OPERATOR, room as usize * 4)?, room })
    }

    /// The words and the numbers of the hashes, as the kernels want them.
    pub(super) fn arguments(&self) -> [Argument; 4] {
        let [first, second, third] = seeds();
        [(&self.words).into(), first.into(), second.into(), third.into()]
    }

    /// Whether no listed row's run is left. Waits for the device.
    pub(super) fn none_is_left(&self) -> Result<bool> {
        Ok(self.words.read_words(LEFT * 8, 1)? == [0])
    }

    /// Waits for the device.
    pub(super) fn read(&self, trust: Trust) -> Result<Findings> {
        let words = self.words.read_words(0, WORDS)?;
        let misled = words[3] >= trust.word() && (words[1..3] != [0, 0] || words[4] != 0);
        Ok(Findings { listed: words[0], misled, left: words[LEFT] })
    }
}

/// Of this process's hashes: whoever chooses keys does not know which sums agree.
fn seeds() -> [u64; 3] {
    static SEEDS: OnceLock<[u64; 3]> = OnceLock::new();
    *SEEDS.get_or_init(|| {
        let state = RandomState::new();
        [0, 1, 2].map(|round| state.hash_one(round))
    })
}
