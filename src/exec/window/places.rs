//! Where a row's partition, peers and frame begin and end.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, ExprSchemable};

use super::{OPERATOR, WindowRows, positions};
use crate::codegen::window::frames::{key_with_distance, note_span};
use crate::codegen::window::places::{FrameEdge, RowPlaces};
use crate::codegen::{Codes, Emitter, Generator, materialize, repr_bounds};
use crate::column::Repr;
use crate::error::{Error, Result};
use crate::exec::run::Runner;
use crate::plan::{Bound, Frame, RangeOffset, WindowCall, WindowKeys};
use warpframe_device::Buffer;
use warpframe_device::ops::window::{Distance, RangeBound, RangeKeys, range_bound};

impl WindowRows {
    /// Where a row's partition, peers and frames are. Bounds are made, unless all are peers.
    pub(super) fn places(&self, generator: &mut Generator<'_>, out: &mut Emitter) -> RowPlaces<'_> {
        let bounds = self.bounds.get().filter(|_| !self.all_peers);
        let known = self.ranges.iter().map(|(_, _, buffer)| buffer).collect();
        RowPlaces::new(self.rows(), bounds, known, generator, out)
    }

    /// Where the frame begins and ends.
    pub(super) fn edges(&self, frame: &Frame) -> [FrameEdge; 2] {
        [(frame.start, true), (frame.end, false)].map(|(bound, start)| match bound {
            Bound::Unbounded => FrameEdge::Unbounded,
            Bound::Rows(rows) => FrameEdge::Rows(rows),
            Bound::Groups(groups) => FrameEdge::Groups(groups),
            Bound::Value { .. } => {
                let mut ranges = self.ranges.iter();
                let at = ranges.position(|(known, of, _)| (*known, *of) == (bound, start));
                FrameEdge::Known(at.expect("value_bounds made all that frames have"))
            }
        })
    }
}

/// Whether every row lies in its own frame.
pub(super) fn holds_row(frame: &Frame) -> bool {
    let start = match frame.start {
        Bound::Unbounded => true,
        Bound::Rows(by) | Bound::Groups(by) => by <= 0,
        Bound::Value { preceding, .. } => preceding,
    };
    let end = match frame.end {
        Bound::Unbounded => true,
        Bound::Rows(by) | Bound::Groups(by) => by >= 0,
        Bound::Value { preceding, .. } => !preceding,
    };
    start && end
}

impl Runner {
    /// The bounds at a distance of values that the calls' frames have.
    pub(super) fn value_bounds(
        &self,
        sorted: &WindowRows,
        keys: &WindowKeys,
        calls: &[&WindowCall],
    ) -> Result<Vec<(Bound, bool, Buffer)>> {
        let mut wanted: Vec<(Bound, bool)> = vec![];
        for call in calls {
            for (bound, start) in [(call.frame.start, true), (call.frame.end, false)] {
                if matches!(bound, Bound::Value { .. }) && !wanted.contains(&(bound, start)) {
                    wanted.push((bound, start));
                }
            }
        }
        let [key] = keys.order.as_slice() else { return Ok(vec![]) };
        if wanted.is_empty() {
            return Ok(vec![]);
        }
        let dtype = key.expr.get_type(&*sorted.schema)?;
        let repr = Repr::of(&dtype)
            .ok_or_else(|| Error::internal(format!("{OPERATOR}: by distances of {dtype}")))?;
        let (kind, held, logical) = match repr {
            Repr::F32 => (RangeKeys::F32, Repr::F32, DataType::Float32),
            Repr::F64 => (RangeKeys::F64, Repr::F64, DataType::Float64),
            Repr::U64 | Repr::I128 => (RangeKeys::I128, Repr::I128, DataType::Decimal128(38, 0)),
            _ => (RangeKeys::I64, Repr::I64, DataType::Int64),
        };
        // The keys, then the values at bounds that have no fixed distance.
        let targets: Vec<_> = wanted.iter().map(|(bound, _)| bound.target(keys)).collect();
        let exprs: Vec<&Expr> =
            std::iter::once(&key.expr).chain(targets.iter().flatten()).collect();
        let (_, columns) =
            materialize(&self.device, OPERATOR, &sorted.flow(), Codes::Keep, |generator, out| {
                let values = exprs.iter().map(|expr| {
                    let value = generator.expr(expr, out)?;
                    Ok(key_with_distance(value, &logical, held, out))
                });
                values.collect()
            })?;
        let mut columns = columns.into_iter();
        let bounds = self.bounds_of(sorted)?;
        let column =
            columns.next().ok_or_else(|| Error::internal(format!("{OPERATOR}: by no key")))?;
        let mut found = vec![];
        for ((bound, start), target) in wanted.into_iter().zip(&targets) {
            let Bound::Value { preceding, step } = bound else { continue };
            let target = target.as_ref().and_then(|_| columns.next());
            let step = match step {
                RangeOffset::Float(step) if repr == Repr::F32 => {
                    i128::from((step as f32).to_bits())
                }
                RangeOffset::Float(step) => i128::from(step.to_bits()),
                RangeOffset::Integer(step) => step,
                RangeOffset::Interval(_) => 0,
            };
            let distance = match &target {
                Some(target) => Distance::Targets(&target.data),
                None => Distance::Step { step, limits: repr_bounds(repr) },
            };
            let range = RangeBound {
                keys: kind,
                start,
                preceding,
                descending: !key.asc,
                nulls_first: key.nulls_first,
                distance,
            };
            let valid = column.validity.as_deref();
            found.push((
                bound,
                start,
                range_bound(&self.device, &range, &column.data, valid, bounds)?,
            ));
        }
        Ok(found)
    }

    /// Each row's frame, as positions `low` and `high` (`u32`).
    pub(super) fn frame_buffers(&self, sorted: &WindowRows, frame: &Frame) -> Result<[Buffer; 2]> {
        let low = self.device.alloc(OPERATOR, sorted.rows() as usize * 4)?;
        let high = self.device.alloc(OPERATOR, sorted.rows() as usize * 4)?;
        materialize(
            &self.device,
            OPERATOR,
            &positions(sorted.rows())?,
            Codes::Keep,
            |generator, out| {
                let mut places = sorted.places(generator, out);
                let span = places.frame(sorted.edges(frame), generator, out);
                note_span(&span, [&low, &high], generator, out);
                Ok(vec![])
            },
        )?;
        Ok([low, high])
    }
}
