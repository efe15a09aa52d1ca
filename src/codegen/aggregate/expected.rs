//! What is known of the groups before they are aggregated through a hash table.

use datafusion::logical_expr::Expr;

use super::{Attempt, FloatSums, Manner, Tried, attempt, partitioned};
use crate::codegen::arena::Arena;
use crate::codegen::flow::{Flow, Source};
use crate::codegen::kernel::Retry;
use crate::codegen::materialize::{Codes, materialize};
use crate::device::{Device, DeviceKind};
use crate::error::Result;

/// Rows from which on it pays to look at a sample before hashing them; a quarter of that, or what pays to partition, is in it.
const SAMPLED_FROM: u64 = 1 << 18;
/// Capacity of the first hash table tried.
const FIRST_CAPACITY: u64 = 1 << 20;

/// Expectations that an aggregation starts from, and corrects.
pub(super) struct Expected {
    /// Bytes for characters of strings that are made.
    pub(super) arena: u64,
    /// A sample was looked at, or cannot be.
    pub(super) sampled: bool,
    /// Memory does not suffice for records of all rows.
    pub(super) frugal: bool,
    /// Groups there may be, as a sample says.
    pub(super) groups: Option<u64>,
    /// Capacity of a hash table in global memory.
    capacity: u64,
}

impl Expected {
    pub(super) fn nothing(flow: &Flow) -> Self {
        let arena = Arena::guess(flow.source.rows());
        Expected { arena, sampled: false, frugal: false, groups: None, capacity: FIRST_CAPACITY }
    }

    /// Capacity of a hash table in global memory for the groups of so many rows.
    pub(super) fn capacity(&self, rows: u64) -> u64 {
        self.capacity.min(rows.saturating_mul(2).max(16).next_power_of_two())
    }

    /// There were more groups than a table had room for.
    pub(super) fn too_few(&mut self) {
        self.capacity = self.capacity.saturating_mul(16);
        self.groups = self.groups.map(|groups| groups.saturating_mul(4));
    }
}

/// Whether a sample says something. Of rows that are mostly dropped it says little.
pub(super) fn samplable(device: &Device, flow: &Flow) -> bool {
    matches!(flow.source, Source::Relation(_)) && flow.source.rows() >= sampled_from(device) && !flow.drops_rows()
}

fn sampled_from(device: &Device) -> u64 {
    SAMPLED_FROM.min(partitioned::from(device.kind() == DeviceKind::Sim))
}

/// Counts the groups of the first rows, and concludes how many there are.
pub(super) fn sample(device: &Device, flow: &Flow, groups: &[Expr], seed: u64) -> Result<Expected> {
    let mut expected = Expected { sampled: true, ..Expected::nothing(flow) };
    let (Source::Relation(relation), rows) = (&flow.source, flow.source.rows()) else { return Ok(expected) };
    let sample = sampled_from(device) / 4;
    let first = Flow { source: Source::Relation(relation.slice(0, Some(sample))), ..flow.clone() };
    if let Some(found) = count(device, &first, groups, seed)? {
        let groups = groups_behind(found, sample).min(rows);
        expected.groups = Some(groups);
        expected.capacity = (2 * groups).next_power_of_two().max(FIRST_CAPACITY);
    }
    Ok(expected)
}

/// How many groups the flow's rows have.
fn count(device: &Device, flow: &Flow, groups: &[Expr], seed: u64) -> Result<Option<u64>> {
    let expected = Expected { sampled: true, ..Expected::nothing(flow) };
    let manner = Manner { floats: FloatSums::Fixed, seed, row_slots: false };
    let Tried::Attempt(Attempt::Done(partial), retry) = attempt(device, flow, groups, &[], manner, &expected)? else {
        return Ok(None);
    };
    if retry.is_some_and(|retry| retry.has(Retry::TABLE_FULL)) {
        return Ok(None);
    }
    let none = std::sync::Arc::new(datafusion::common::DFSchema::empty());
    let slots = Flow::new(Source::Groups(std::sync::Arc::new(partial.slots)), none);
    Ok(Some(materialize(device, "aggregate", &slots, Codes::Keep, |_, _| Ok(vec![]))?.0))
}

/// How many equally frequent groups show `seen` of them in `sample` rows: the solution of seen = g·(1 − e^(−sample/g)),
/// and somewhat more. A skewed choice has more groups than that; its table is found too full and made anew.
fn groups_behind(seen: u64, sample: u64) -> u64 {
    let (seen, sample) = (seen as f64, sample as f64);
    let shows = |groups: f64| groups * (1.0 - (-sample / groups).exp());
    // Nearly all distinct: a sample says no more than that there are many.
    let (mut low, mut high) = (seen, sample * 1e5);
    for _ in 0..64 {
        let middle = (low * high).sqrt();
        if shows(middle) < seen { low = middle } else { high = middle }
    }
    (high * 1.1) as u64
}
