//! `array_agg` and `string_agg` over frames: the rows of a frame stand one after the other, so that
//! a list is a view of them.

use super::frames::Frames;
use super::{OPERATOR, positions};
use crate::codegen::{Codes, Emitter, Flow, Generator, Value, materialize};
use crate::column::{Column, Relation, Repr};
use crate::error::Result;
use crate::exec::regroup::Strings;
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
        let behind = child.behind_lists(slots.clone());
        self.each_frame(frames, |generator, out, [low, high]| {
            let slots = generator.params.pointer("const u64", &slots, 0);
            generator.point_into(&behind);
            let view =
                out.let_("view", format_args!("view{{{high} - {low}, {low}, (u64){slots}}}"));
            let mut list = Value::new(call.dtype.clone(), Repr::List, view, None);
            list.longest = child.longest_inside();
            Ok(list)
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
        let strings =
            Strings { relation: &strings, at: 0, between: &call.between, dtype: &call.dtype };
        self.each_frame(frames, |generator, out, frame| {
            strings.joined(frame, str::to_string, generator, out)
        })
    }

    /// The call's argument, in place.
    fn argument(&self, flow: &Flow, call: &RegroupedCall) -> Result<Column> {
        let (_, mut columns) =
            materialize(&self.device, OPERATOR, flow, Codes::Decode, |generator, out| {
                Ok(vec![generator.expr(&call.args[0], out)?])
            })?;
        Ok(columns.remove(0))
    }

    /// A value for each frame, made from the names of its first place and of the one after its
    /// last; null of no rows.
    pub(super) fn each_frame(
        &self,
        frames: &Frames,
        value: impl FnOnce(&mut Generator<'_>, &mut Emitter, [&str; 2]) -> Result<Value>,
    ) -> Result<Column> {
        let (_, mut columns) = materialize(
            &self.device,
            OPERATOR,
            &positions(frames.count)?,
            Codes::Keep,
            |generator, out| {
                let [low, high] = frames.places(generator, out);
                let mut value = value(generator, out, [&low, &high])?;
                value.valid = Some(out.let_("bool", format_args!("{low} < {high}")));
                Ok(vec![value])
            },
        )?;
        Ok(columns.remove(0))
    }
}
