//! Aggregates of rows whose slots are known: those of window functions.

use std::sync::Arc;

use super::{Grouped, OPERATOR, with_slots};
use crate::codegen::{Codes, Flow, FlowSource, materialize};
use crate::column::{Column, Relation};
use crate::error::{Error, Result};
use crate::exec::run::{Runner, anonymous};
use crate::plan::{DeviceAggregate, RegroupedCall};
use warpframe_device::Buffer;

impl Runner {
    /// For each row the aggregate of the rows that have its slot, of `count` slots.
    pub(in crate::exec) fn beside_groups(
        &self,
        flow: &Flow,
        slots: &Arc<Buffer>,
        count: u64,
        call: &RegroupedCall,
    ) -> Result<Column> {
        let (flow, _, calls) =
            self.in_place(flow, &[], &[DeviceAggregate::Regrouped(call.clone())])?;
        let [DeviceAggregate::Regrouped(call)] = calls.as_slice() else {
            return Err(Error::internal(format!("{OPERATOR}: an aggregate that became another")));
        };
        let rows = Grouped { flow: with_slots(&flow, slots, count)?, slots: count, keyed: true };
        let by_slot = self.by_slots(&rows, call)?;
        let (relation, numbers) = self.numbered(&rows, &by_slot)?;
        let (_, mut columns) =
            materialize(&self.device, OPERATOR, &rows.flow, Codes::Keep, |generator, out| {
                let slots = generator.params.pointer("const u32", slots, 0);
                let numbers = generator.params.pointer("const u64", &numbers, 0);
                let number = out.let_("u64", format_args!("{numbers}[{slots}[row]]"));
                let present = out.let_("bool", format_args!("{number} != ~0ull"));
                Ok(vec![generator.load_if(&relation, 1, &number, Some(present), false, out)])
            })?;
        Ok(columns.remove(0))
    }

    /// The aggregate of each of `count` slots, null where none of the flow's rows has the slot. The
    /// rows, of columns that the call names and `slot` as the last, lie in place or behind numbers.
    pub(in crate::exec) fn of_each_slot(
        &self,
        flow: Flow,
        count: u64,
        call: &RegroupedCall,
        codes: Codes,
    ) -> Result<Column> {
        let rows = Grouped { flow, slots: count, keyed: true };
        let by_slot = self.by_slots(&rows, call)?;
        let (relation, numbers) = self.numbered(&rows, &by_slot)?;
        let slots =
            Flow::new(FlowSource::Relation(Relation::dense(count, vec![])?), anonymous(&[])?);
        let (_, mut columns) =
            materialize(&self.device, OPERATOR, &slots, codes, |generator, out| {
                let numbers = generator.params.pointer("const u64", &numbers, 0);
                let number = out.let_("u64", format_args!("{numbers}[row]"));
                let present = out.let_("bool", format_args!("{number} != ~0ull"));
                Ok(vec![generator.load_if(&relation, 1, &number, Some(present), false, out)])
            })?;
        Ok(columns.remove(0))
    }
}
