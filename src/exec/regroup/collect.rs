//! `array_agg`: the rows of each group as a list.
//!
//! ```text
//!   slot   1 0 1 1      order by slot   1 0 2 3
//!   x      a b c d      child           b a c d      lists   0: (1 from 0)   1: (3 from 1)
//! ```
//!
//! Sorted by slot the values are the child column of all lists, each of which is a run of rows.

use super::picked::OrderedRows;
use super::{BySlot, Grouped, OPERATOR};
use crate::codegen::{Codes, Flow, FlowSource, Value, materialize};
use crate::column::{Relation, Repr};
use crate::error::Result;
use crate::exec::run::{Runner, anonymous};
use crate::plan::RegroupedCall;

impl Runner {
    /// The values of each slot, in the order asked for.
    pub(super) fn collected(
        &self,
        rows: &Grouped,
        call: &RegroupedCall,
        skip_nulls: bool,
    ) -> Result<BySlot> {
        let arg = &call.args[0];
        let known = if skip_nulls { rows.unless_null(arg) } else { None };
        let conditions = call.filter.iter().cloned().chain(known);
        let OrderedRows { relation, schema, order, arguments } =
            self.in_order(rows, conditions, [arg], &call.order)?;
        let runs = self.sorted_runs(rows, &relation, &schema, &order)?;
        let argument = relation.columns[arguments[0]].clone();
        let types = [argument.1.dtype.clone()];
        let (count, argument) = (relation.rows, Relation { columns: vec![argument], ..relation });
        let sorted = self.reindexed(argument, count, runs.order.clone())?;
        let flow = Flow::new(FlowSource::Relation(sorted), anonymous(&types)?);
        let (_, child) =
            materialize(&self.device, OPERATOR, &flow, Codes::Decode, |generator, out| {
                Ok(vec![generator.column(0, out)?])
            })?;
        let slots = child[0].slots(&self.device)?;
        let behind = child[0].behind_lists(slots.clone());
        self.of_runs(rows, &runs, |generator, out, _, [begin, end]| {
            let slots = generator.params.pointer("const u64", &slots, 0);
            generator.point_into(&behind);
            let view =
                out.let_("view", format_args!("view{{{end} - {begin}, {begin}, (u64){slots}}}"));
            let mut list = Value::new(call.dtype.clone(), Repr::List, view, None);
            list.longest = child[0].longest_inside();
            Ok(vec![list])
        })
    }
}
