//! Aggregates of rows whose slots are known: those of window functions.

use std::sync::Arc;

use super::{Grouped, OPERATOR, with_slots};
use crate::codegen::regroup::{ColumnOf, value_of_slot};
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
                let column = ColumnOf { relation: &relation, at: 1 };
                Ok(vec![value_of_slot(column, Some(slots), &numbers, generator, out)])
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
                let column = ColumnOf { relation: &relation, at: 1 };
                Ok(vec![value_of_slot(column, None, &numbers, generator, out)])
            })?;
        Ok(columns.remove(0))
    }
}
