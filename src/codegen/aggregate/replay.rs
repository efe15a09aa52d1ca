//! Aggregates of all rows of a table, made again: over the very same columns the launch is the same
//! but for the memory that it fills, so that no text is generated to find the kernel by. That takes
//! the host as long as a million rows take the device.
//!
//! ```text
//!   first run     flow, aggregates ──generate──▶ text ──find──▶ kernel ──┬──▶ launch
//!                                                                  Replay
//!   next runs     flow ──the same columns?─────────────────────────────┴──▶ launch
//! ```
//!
//! A replay is the kernel, its arguments, the columns, and which arguments are new each time.
//!
//! A replay keeps no memory of the device: columns are known by their buffers, which it refers to
//! weakly.

use std::sync::{Arc, Weak};

use datafusion::arrow::datatypes::DataType;

use crate::codegen::control::Control;
use crate::codegen::flow::{Flow, FlowSource};
use crate::codegen::groups::{Accumulator, GroupKeyStorage, GroupOutput, GroupSlots, Occupancy};
use crate::codegen::kernel::Generated;
use crate::codegen::keys::KeyLayout;
use crate::codegen::params::{ParameterPlace, Params};
use crate::column::{Column, Encoding, Relation, Stats};
use crate::error::Result;
use warpframe_device::{Buffer, Device};

/// A launch of the sink without keys, and what it takes to make it again.
#[derive(Debug)]
pub(crate) struct Replay {
    columns: Vec<ReplayedColumn>,
    rows: u64,
    made: Made,
    /// Where the addresses of the buffers stand that each run has anew: control words, partial
    /// sums, accumulators.
    places: Vec<ParameterPlace>,
}

/// What is known once the kernel was launched.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) kernel: Generated,
    pub(super) tiles: u64,
    /// The number of blocks, where it must not follow from how the kernel was compiled.
    pub(super) blocks: Option<u32>,
    pub(super) partial_bytes: usize,
    pub(super) slots: u64,
    pub(super) accumulators: Vec<Accumulator>,
    pub(super) layout: KeyLayout,
    pub(super) outputs: Vec<GroupOutput>,
}

/// Buffers that are new in each run, with their parameters' names.
pub(super) struct Fresh<'a> {
    pub(super) control: (&'a str, &'a Arc<Buffer>),
    pub(super) partials: (&'a str, &'a Arc<Buffer>),
    pub(super) accumulators: Vec<(&'a str, &'a Arc<Buffer>)>,
}

impl Made {
    /// Submits the kernel.
    pub(super) fn launch(&self, device: &Device, kernel: &Generated) -> Result<()> {
        match self.blocks {
            Some(blocks) => kernel.launch(device, blocks, 0),
            None => kernel.fill(device, self.tiles, 0),
        }
    }
}

impl Replay {
    /// Of a launch over a relation in place. `None`: of such columns, or with such parameters, it
    /// is not made again.
    pub(super) fn of(
        flow: &Flow,
        params: &Params,
        made: Made,
        fresh: &Fresh<'_>,
    ) -> Option<Replay> {
        let relation = in_place(flow)?;
        let columns = relation
            .columns
            .iter()
            .map(|(_, column)| ReplayedColumn::of(column))
            .collect::<Option<Vec<_>>>()?;
        let all: Vec<_> = [fresh.control, fresh.partials]
            .into_iter()
            .chain(fresh.accumulators.iter().copied())
            .collect();
        let is_known = |buffer: &Arc<Buffer>| {
            all.iter().any(|(_, new)| Arc::ptr_eq(new, buffer))
                || columns.iter().any(|column| column.has(buffer))
        };
        if !params.kept().iter().all(is_known) {
            return None;
        }
        let places =
            all.iter().map(|(name, _)| ParameterPlace::of(name)).collect::<Option<Vec<_>>>()?;
        Some(Replay { columns, rows: relation.rows, made, places })
    }

    /// Makes the aggregates of the flow again. `None`: its columns are others.
    pub(crate) fn run(&self, device: &Device, flow: &Flow) -> Result<Option<GroupSlots>> {
        const OPERATOR: &str = "aggregate";
        if !self.is_of(flow) {
            return Ok(None);
        }
        let made = &self.made;
        let control = Control::new(device)?;
        let partials = Arc::new(device.alloc(OPERATOR, made.partial_bytes)?);
        let accumulators = (made.accumulators.iter())
            .map(|accumulator| {
                let bytes = made.slots as usize * accumulator.words() * 8;
                Ok((accumulator.clone(), Arc::new(device.alloc(OPERATOR, bytes)?)))
            })
            .collect::<Result<Vec<_>>>()?;
        let fresh = [&control.0, &partials]
            .into_iter()
            .chain(accumulators.iter().map(|(_, buffer)| buffer));
        let kernel =
            made.kernel.with(self.places.iter().copied().zip(fresh.map(|buffer| &**buffer)));
        made.launch(device, &kernel)?;
        device.count_replay();
        Ok(Some(GroupSlots {
            slots: made.slots,
            occupancy: Occupancy::All,
            keys: GroupKeyStorage::Slot(made.layout.clone()),
            accumulators,
            outputs: made.outputs.clone(),
            rows: self.rows,
        }))
    }

    fn is_of(&self, flow: &Flow) -> bool {
        in_place(flow).is_some_and(|relation| {
            relation.rows == self.rows
                && relation.columns.len() == self.columns.len()
                && self
                    .columns
                    .iter()
                    .zip(&relation.columns)
                    .all(|(met, (_, column))| met.is(column))
        })
    }
}

fn in_place(flow: &Flow) -> Option<&Relation> {
    match &flow.source {
        FlowSource::Relation(relation) if flow.steps.is_empty() && relation.is_dense() => {
            Some(relation)
        }
        _ => None,
    }
}

/// A column of plain values, by its buffers, and what else the text of a kernel follows from.
#[derive(Debug)]
struct ReplayedColumn {
    data: Weak<Buffer>,
    validity: Option<Weak<Buffer>>,
    offset: usize,
    len: usize,
    dtype: DataType,
    stats: Stats,
}

impl ReplayedColumn {
    fn of(column: &Column) -> Option<ReplayedColumn> {
        let Column { dtype, len, offset, data, validity, encoding, characters, children, stats } =
            column;
        if !matches!(encoding, Encoding::Plain) || !characters.is_empty() || !children.is_empty() {
            return None;
        }
        Some(ReplayedColumn {
            data: Arc::downgrade(data),
            validity: validity.as_ref().map(Arc::downgrade),
            offset: *offset,
            len: *len,
            dtype: dtype.clone(),
            stats: *stats,
        })
    }

    fn has(&self, buffer: &Arc<Buffer>) -> bool {
        is(&self.data, buffer)
            || self.validity.as_ref().is_some_and(|validity| is(validity, buffer))
    }

    fn is(&self, column: &Column) -> bool {
        let valid = match (&self.validity, &column.validity) {
            (Some(met), Some(validity)) => is(met, validity),
            (met, validity) => met.is_none() && validity.is_none(),
        };
        valid
            && is(&self.data, &column.data)
            && (self.offset, self.len) == (column.offset, column.len)
            && matches!(column.encoding, Encoding::Plain)
            && self.stats == column.stats
            && self.dtype == column.dtype
    }
}

/// Whether both are one buffer. While it is referred to, weakly even, no other has its place.
fn is(met: &Weak<Buffer>, buffer: &Arc<Buffer>) -> bool {
    std::ptr::eq(met.as_ptr(), Arc::as_ptr(buffer))
}
