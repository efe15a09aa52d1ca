//! `array_agg` and `string_agg` over frames: the rows of a frame stand one after the other, so that
//! a list is a view of them.

use super::frames::Frames;
use super::{OPERATOR, positions};
use crate::codegen::regroup::{ColumnOf, Strings};
use crate::codegen::{Codes, Emitter, Flow, Generator, Span, Value, materialize};
use crate::column::{Column, Relation};
use crate::error::Result;
use crate::exec::run::Runner;
use crate::plan::RegroupedCall;

impl Runner {
    /// The rows of each frame as a list; null of no rows.
    pub(super) fn lists_of_frames(
        &self,
        flow: &Flow,
        frames: &Frames,
        call: &RegroupedCall,
    ) -> Result<Column> {
        let child = self.argument(flow, call)?;
        let slots = child.slots(&self.device)?;
        self.each_frame(frames, |frame, generator, out| {
            Ok(frame.list(&child, &slots, &call.dtype, generator, out))
        })
    }

    /// The strings of each frame one after the other; null of no rows.
    pub(super) fn strings_of_frames(
        &self,
        flow: &Flow,
        frames: &Frames,
        call: &RegroupedCall,
    ) -> Result<Column> {
        // Nobody waits for strings of so many.
        self.counted(frames)?;
        let strings = self.argument(flow, call)?;
        let strings = Relation::dense(strings.len as u64, vec![strings])?;
        let column = ColumnOf { relation: &strings, at: 0 };
        let strings = Strings { column, between: &call.between, dtype: &call.dtype };
        self.each_frame(frames, |frame, generator, out| strings.of_span(frame, generator, out))
    }

    /// The call's argument, in place.
    fn argument(&self, flow: &Flow, call: &RegroupedCall) -> Result<Column> {
        let (_, mut columns) =
            materialize(&self.device, OPERATOR, flow, Codes::Decode, |generator, out| {
                Ok(vec![generator.expr(&call.args[0], out)?])
            })?;
        Ok(columns.remove(0))
    }

    /// A value for each frame; null of no rows.
    pub(super) fn each_frame(
        &self,
        frames: &Frames,
        value: impl FnOnce(&Span, &mut Generator<'_>, &mut Emitter) -> Result<Value>,
    ) -> Result<Column> {
        let (_, mut columns) = materialize(
            &self.device,
            OPERATOR,
            &positions(frames.count)?,
            Codes::Keep,
            |generator, out| {
                let frame = Span::of_row(frames.ends(), generator, out);
                let value = value(&frame, generator, out)?;
                Ok(vec![frame.unless_empty(value, out)])
            },
        )?;
        Ok(columns.remove(0))
    }
}
