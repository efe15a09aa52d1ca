//! `array_agg`: the rows of each group as a list.
//!
//! ```text
//!   slot   1 0 1 1       order by slot   1 0 2 3       child   b a c d       lists   0: (1 from 0)   1: (3 from 1)
//!   x      a b c d
//! ```
//!
//! Sorted by slot the values are the child column of all lists, each of which is a run of rows.

use datafusion::logical_expr::{ExprSchemable, SortExpr, lit};
use datafusion::prelude::col;

use super::ordered::Ordered;
use super::{BySlot, Grouped, OPERATOR};
use crate::codegen::{Codes, Flow, Source, Value, materialize};
use crate::column::{Relation, Repr};
use crate::error::{Error, Result};
use crate::exec::run::{Runner, anonymous};
use crate::plan::RegroupedCall;

impl Runner {
    /// The values of each slot, in the order asked for; of distinct ones each once.
    pub(super) fn collected(
        &self,
        rows: &Grouped,
        call: &RegroupedCall,
        distinct: bool,
        skip_nulls: bool,
    ) -> Result<BySlot> {
        if distinct {
            return self.collected_once(rows, call, skip_nulls);
        }
        let keep = if skip_nulls { call.args[0].clone().is_not_null() } else { lit(true) };
        let Ordered { relation, schema, order } = self.in_order(rows, call, keep)?;
        let runs = self.sorted_runs(rows, &relation, &schema, &order)?;
        let argument = relation.columns[usize::from(rows.keyed)].clone();
        let types = [argument.1.dtype.clone()];
        let (count, argument) = (relation.rows, Relation { columns: vec![argument], ..relation });
        let sorted = self.reindexed(argument, count, runs.order.clone())?;
        let flow = Flow::new(Source::Relation(sorted), anonymous(&types)?);
        let (_, child) = materialize(&self.device, OPERATOR, &flow, Codes::Decode, |generator, out| {
            Ok(vec![generator.column(0, out)?])
        })?;
        let slots = child[0].slots(&self.device)?;
        let behind = child[0].behind_lists(slots.clone());
        self.of_runs(rows, &runs, |generator, out, _, [begin, end]| {
            let slots = generator.params.pointer("const u64", &slots, 0);
            generator.point_into(&behind);
            let view = out.let_("view", format!("view{{{end} - {begin}, {begin}, (u64){slots}}}"));
            let mut list = Value::new(call.dtype.clone(), Repr::List, view, None);
            list.longest = child[0].longest_inside();
            list
        })
    }

    /// Groups by slot and value first, and collects those groups.
    fn collected_once(&self, rows: &Grouped, call: &RegroupedCall, skip_nulls: bool) -> Result<BySlot> {
        if call.order.iter().any(|key| key.expr != call.args[0]) {
            return Err(Error::unsupported(OPERATOR, "of DISTINCT values in the order of others"));
        }
        let mut flow = rows.flow.clone();
        if let Some(filter) = &call.filter {
            flow = flow.filter(filter.clone());
        }
        let mut keys = rows.keys();
        keys.push(call.args[0].clone());
        let item = call.args[0].get_type(&**flow.schema())?;
        let pairs = self.grouped(flow, &keys, &[], rows.schema_of(&[("x", item)])?)?;
        let relation = self.relation(OPERATOR, &pairs)?;
        let schema = pairs.schema().clone();
        let once =
            Grouped { flow: Flow::new(Source::Relation(relation), schema), slots: rows.slots, keyed: rows.keyed };
        let order = call.order.iter().map(|key| SortExpr { expr: col("x"), ..key.clone() });
        let call = RegroupedCall { args: vec![col("x")], filter: None, order: order.collect(), ..call.clone() };
        self.collected(&once, &call, false, skip_nulls)
    }
}
