//! Aggregates that users wrote: runs of rows of one slot, folded in their order.

use super::{BySlot, Grouped, OPERATOR};
use crate::codegen::user_fold::{FoldedRows, value_of_state};
use crate::codegen::{Flow, FlowSource};
use crate::column::Relation;
use crate::error::{Error, Result};
use crate::exec::run::{Runner, column_named};
use crate::exec::sort::order_key;
use crate::exec::user_code::{folded, folded_to_one};
use crate::plan::RegroupedCall;

impl Runner {
    pub(super) fn users_aggregate(&self, rows: &Grouped, call: &RegroupedCall) -> Result<BySlot> {
        let Some(user) = &call.user else {
            return Err(Error::internal("an aggregate of a user's without it"));
        };
        let known = call.args.iter().filter_map(|arg| rows.unless_null(arg));
        let conditions = call.filter.iter().cloned().chain(known);
        let mut columns = call.args.clone();
        columns.extend(call.order.iter().map(|key| key.expr.clone()));
        let (relation, schema) = self.slots_and(rows, conditions, &columns)?;
        if !rows.keyed && call.order.is_empty() && relation.rows > 0 {
            let value = folded_to_one(&self.device, OPERATOR, user, &relation)?;
            let schema = rows.schema_of(&[("value", call.dtype.clone())])?;
            return Ok(Flow::new(FlowSource::Relation(Relation::dense(1, vec![value])?), schema));
        }
        let key = |(at, key)| {
            let (_, direction, nulls) = order_key(key);
            (column_named(format!("x{}", call.args.len() + at)), direction, nulls)
        };
        let order: Vec<_> = call.order.iter().enumerate().map(key).collect();
        let runs = self.sorted_runs(rows, &relation, &schema, &order)?;
        let input = FoldedRows {
            relation: &relation,
            first: usize::from(rows.keyed),
            order: Some(&runs.order),
        };
        let states = folded(&self.device, OPERATOR, user, &input, &runs.offsets, runs.count)?;
        let states = Relation::dense(runs.count, states)?;
        self.of_runs(rows, &runs, |_, generator, out| {
            Ok(vec![value_of_state(user, &states, generator, out)?])
        })
    }
}
