//! Aggregates over frames that need the rows of a frame more than once, or in an order.
//!
//! ```text
//!   value    3 1 ∅ 4 1      frames   low 0 0 1 2 3   high 2 3 4 5 5
//!   kept     3 1 4 1        frames   low 0 0 1 2 2   high 2 2 3 4 4      kept before: 0 1 2 2 3 4
//! ```
//!
//! Rows that the aggregate would leave out (nulls, those that its filter does not keep) are left
//! out first, and frames are stated in places among those that remain. Where order and frame are
//! such that neighbours share their frame (peers), it is one frame.

use std::sync::Arc;

use datafusion::logical_expr::Expr;

use super::{OPERATOR, WindowRows, positions};
use crate::codegen::regroup::ColumnOf;
use crate::codegen::row_number::counted_once;
use crate::codegen::window::frames::{begins_frame, note_frame, restate_frame};
use crate::codegen::{
    AggregateKind, Codes, Flow, FlowSource, Middle, for_each, materialize, plain_column,
};
use crate::column::{Column, Index, Relation};
use crate::error::{Error, Result};
use crate::exec::run::Runner;
use crate::plan::{Bound, DeviceAggregate, Frame, RegroupedCall, RegroupedKind};
use warpframe_device::Buffer;
use warpframe_device::ops::scan::{exclusive_scan_u32, exclusive_scan_u32_narrow};

/// Different frames, in the order of their rows.
pub(super) struct Frames {
    pub(super) count: u64,
    /// The first place, and the one after the last (`u32 × count` each); 0 and 0 of an empty frame.
    pub(super) low: Buffer,
    pub(super) high: Buffer,
    /// Each row's frame (`u32`), where there are fewer than rows.
    of_row: Option<Arc<Buffer>>,
}

impl Frames {
    /// Where frames begin and end.
    pub(super) fn ends(&self) -> [&Buffer; 2] {
        [&self.low, &self.high]
    }
}

impl Runner {
    /// For each row the aggregate of its frame.
    pub(super) fn of_frames(
        &self,
        sorted: &WindowRows,
        frame: &Frame,
        call: &RegroupedCall,
    ) -> Result<Column> {
        if [frame.start, frame.end] == [Bound::Unbounded; 2] {
            return self.of_partition(sorted, call);
        }
        if let RegroupedKind::Points(of) = call.kind {
            return self.points_of_frames(sorted, frame, call, of);
        }
        let frames = self.frames(sorted, frame)?;
        let (flow, call) = self.kept(sorted, call, &frames)?;
        let column = match call.kind {
            // Of distinct values each frame has its own.
            _ if call.distinct => self.of_pairs(&flow, &frames, &call)?,
            RegroupedKind::Collect { .. } => self.lists_of_frames(&flow, &frames, &call)?,
            RegroupedKind::Join => self.strings_of_frames(&flow, &frames, &call)?,
            RegroupedKind::Median => {
                self.middles_of_frames(&flow, &frames, &call, Middle::Median)?
            }
            RegroupedKind::Percentile(share) => self.middles_of_frames(
                &flow,
                &frames,
                &call,
                Middle::Percentile(f64::from_bits(share)),
            )?,
            RegroupedKind::Distinct(AggregateKind::Count) => {
                self.distinct_of_frames(&flow, &frames, &call)?
            }
            _ => self.of_pairs(&flow, &frames, &call)?,
        };
        self.beside_frames(frames, column, sorted.rows())
    }

    /// The frames of the sorted rows.
    fn frames(&self, sorted: &WindowRows, frame: &Frame) -> Result<Frames> {
        let rows = sorted.rows();
        let [low, high] = self.frame_buffers(sorted, frame)?;
        let frames = Frames { count: rows, low, high, of_row: None };
        self.restate(&frames, None)?;
        // Where rows count, next to none share their frame.
        if [frame.start, frame.end].iter().any(|bound| matches!(bound, Bound::Rows(_))) {
            return Ok(frames);
        }
        let (_, begins) = materialize(
            &self.device,
            OPERATOR,
            &positions(rows)?,
            Codes::Keep,
            |generator, out| Ok(vec![begins_frame(frames.ends(), generator, out)]),
        )?;
        let numbers = exclusive_scan_u32(&self.device, &begins[0].data, rows)?;
        let count = numbers.read_word_or(rows as usize * 8, rows)?;
        let [first, end, of_row] =
            [count, count, rows].map(|len| self.device.alloc(OPERATOR, len as usize * 4));
        let (first, end, of_row) = (first?, end?, of_row?);
        for_each(&self.device, &positions(rows)?, &[], |generator, out| {
            note_frame(&numbers, &of_row, frames.ends(), [&first, &end], generator, out);
            Ok(())
        })?;
        Ok(Frames { count, low: first, high: end, of_row: Some(Arc::new(of_row)) })
    }

    /// Brings places through an array of new ones, and empty frames to 0 and 0.
    fn restate(&self, frames: &Frames, places: Option<&Buffer>) -> Result<()> {
        for_each(&self.device, &positions(frames.count)?, &[], |generator, out| {
            restate_frame(frames.ends(), places, generator, out);
            Ok(())
        })
    }

    /// The rows that count, of columns in place in whose terms the call is stated, and with it the
    /// frames.
    fn kept(
        &self,
        sorted: &WindowRows,
        call: &RegroupedCall,
        frames: &Frames,
    ) -> Result<(Flow, RegroupedCall)> {
        let (flow, _, calls) =
            self.in_place(&sorted.flow(), &[], &[DeviceAggregate::Regrouped(call.clone())])?;
        let Some(DeviceAggregate::Regrouped(mut call)) = calls.into_iter().next() else {
            return Err(Error::internal(format!("{OPERATOR}: an aggregate that became another")));
        };
        let filter = call.filter.take();
        let known = call.args.iter().filter(|arg| skips_nulls(&call) && has_nulls(&flow, arg));
        let conditions = known.map(|arg| arg.clone().is_not_null()).chain(filter);
        let Some(keep) = conditions.reduce(Expr::and) else { return Ok((flow, call)) };
        let (_, kept) =
            materialize(&self.device, OPERATOR, &flow, Codes::Keep, |generator, out| {
                let keep = generator.expr(&keep, out)?;
                Ok(vec![counted_once(&keep, out)])
            })?;
        let before = exclusive_scan_u32_narrow(&self.device, &kept[0].data, sorted.rows())?;
        self.restate(frames, Some(&before))?;
        let schema = flow.schema().clone();
        let relation = self.relation(OPERATOR, &flow.filter(keep))?;
        let (rows, columns) = self.dense(OPERATOR, relation)?;
        Ok((Flow::new(FlowSource::Relation(Relation::dense(rows, columns)?), schema), call))
    }

    /// The values of frames as those of their rows.
    fn beside_frames(&self, frames: Frames, column: Column, rows: u64) -> Result<Column> {
        let Some(of_row) = frames.of_row else { return Ok(column) };
        let index = Index::of_rows(of_row);
        let relation = Relation { rows, indices: vec![Some(index)], columns: vec![(0, column)] };
        let column = ColumnOf { relation: &relation, at: 0 };
        let (_, mut columns) = materialize(
            &self.device,
            OPERATOR,
            &positions(rows)?,
            Codes::Keep,
            |generator, out| Ok(vec![column.of_row(generator, out)]),
        )?;
        Ok(columns.remove(0))
    }
}

/// Whether rows in which an argument is null do not count.
fn skips_nulls(call: &RegroupedCall) -> bool {
    match call.kind {
        RegroupedKind::Collect { skip_nulls, .. }
        | RegroupedKind::Nth { skip_nulls, .. }
        | RegroupedKind::Place { skip_nulls, .. } => skip_nulls,
        _ => true,
    }
}

/// Whether there may be nulls among an argument's values.
fn has_nulls(flow: &Flow, arg: &Expr) -> bool {
    match (&flow.source, plain_column(flow, arg)) {
        (FlowSource::Relation(relation), Some(at)) => relation.columns[at].1.validity.is_some(),
        _ => true,
    }
}
