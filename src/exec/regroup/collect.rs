//! `array_agg`: the rows of each group as a list.
//!
//! ```text
//!   slot   1 0 1 1      order by slot   1 0 2 3
//!   x      a b c d      child           b a c d      lists   0: (1 from 0)   1: (3 from 1)
//! ```
//!
//! Sorted by slot the values are the child column of all lists, each of which is a run of rows.
//! Calls over the same rows in the same order share the sort.

use std::sync::Arc;

use super::picked::{OrderedRows, SortedBy};
use super::{BySlot, Grouped, OPERATOR};
use crate::codegen::{Codes, Flow, FlowSource, materialize};
use crate::column::{Column, Relation};
use crate::error::Result;
use crate::exec::run::{Runner, anonymous};
use crate::plan::RegroupedCall;
use warpframe_device::Buffer;

impl Runner {
    /// The values of each slot, in the order asked for, as a list for each call.
    pub(super) fn collected(
        &self,
        rows: &Grouped,
        calls: &[&RegroupedCall],
        by: &SortedBy,
    ) -> Result<BySlot> {
        let args = calls.iter().map(|call| &call.args[0]);
        let OrderedRows { relation, schema, order, arguments } =
            self.in_order(rows, by.conditions.iter().cloned(), args, &by.order)?;
        let runs = self.sorted_runs(rows, &relation, &schema, &order)?;
        let lists = arguments.iter().map(|at| self.listed(&relation, *at, &runs.order));
        let lists = lists.collect::<Result<Vec<_>>>()?;
        self.of_runs(rows, &runs, |run, generator, out| {
            let list = |(call, Elements { child, slots }): (&&RegroupedCall, &Elements)| {
                run.span.list(child, slots, &call.dtype, generator, out)
            };
            Ok(calls.iter().zip(&lists).map(list).collect())
        })
    }

    /// A column's values in the order, as elements of lists.
    fn listed(&self, relation: &Relation, at: usize, order: &Arc<Buffer>) -> Result<Elements> {
        let argument = relation.columns[at].clone();
        let types = [argument.1.dtype.clone()];
        let argument = Relation { columns: vec![argument], ..relation.clone() };
        let sorted = self.reindexed(argument, relation.rows, order.clone())?;
        let flow = Flow::new(FlowSource::Relation(sorted), anonymous(&types)?);
        let (_, mut child) =
            materialize(&self.device, OPERATOR, &flow, Codes::Decode, |generator, out| {
                Ok(vec![generator.column(0, out)?])
            })?;
        let child = child.remove(0);
        Ok(Elements { slots: child.slots(&self.device)?, child })
    }
}

/// The elements of all lists of a column, and the addresses of what they lie in.
struct Elements {
    child: Column,
    slots: Arc<Buffer>,
}
