//! `bit_and`, `bit_or`, `bit_xor`: a reduction of each group's rows, which are sorted by slot.

use std::sync::Arc;

use super::{BySlot, Grouped, OPERATOR, Runs};
use crate::codegen::regroup::{bits_of_row, slot_word};
use crate::codegen::row_number::bits_of;
use crate::codegen::{Codes, Flow, FlowSource, materialize};
use crate::error::Result;
use crate::exec::aggregate::slot_bits;
use crate::exec::run::{Runner, column_named};
use crate::plan::{BitwiseOperation, RegroupedCall};
use warpframe_device::ops::segment::{Reduction, Segments, segmented_reduce, segments};
use warpframe_device::ops::sort::{SortWord, argsort};

impl Runner {
    /// The bits that all values of a slot have, that any has, that an odd number of them have.
    pub(super) fn bits(
        &self,
        rows: &Grouped,
        call: &RegroupedCall,
        bits: BitwiseOperation,
    ) -> Result<BySlot> {
        let arg = &call.args[0];
        let conditions = call.filter.iter().cloned().chain(rows.unless_null(arg));
        let (relation, schema) = self.slots_and(rows, conditions, std::slice::from_ref(arg))?;
        let flow = Flow::new(FlowSource::Relation(relation.clone()), schema);
        let (_, words) =
            materialize(&self.device, OPERATOR, &flow, Codes::Keep, |generator, out| {
                let slot = slot_word(rows.keyed, generator, out)?;
                let value = generator.expr(&column_named("x0"), out)?;
                Ok(vec![slot, bits_of(&value, out)])
            })?;
        let slots = SortWord { keys: &words[0].data, bits: slot_bits(rows.slots) };
        let order = argsort(&self.device, &[slots], relation.rows)?;
        let runs = segments(&self.device, &[slots], &order, relation.rows)?;
        let kind = match bits {
            BitwiseOperation::And => Reduction::AndU64,
            BitwiseOperation::Or => Reduction::OrU64,
            BitwiseOperation::Xor => Reduction::XorU64,
        };
        let results =
            segmented_reduce(&self.device, kind, &*words[1].data, None, Some(&order), &runs)?;
        let slots = rows.keyed.then(|| words[0].data.clone());
        let Segments { offsets, count, .. } = runs;
        let runs = Runs { order: Arc::new(order), slots, offsets, count };
        self.of_runs(rows, &runs, |_, generator, out| {
            Ok(vec![bits_of_row(&results, &call.dtype, generator, out)?])
        })
    }
}
