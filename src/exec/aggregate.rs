//! GROUP BY: runs the aggregating sinks, and finishes what no atomic can do by sorting rows by
//! group.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::logical_expr::{Case, Expr, ExprSchemable, lit};

use super::run::{Runner, column_named};
use crate::codegen::row_number::{as_type, word_of_row};
use crate::codegen::runs::note_sum_of_slot;
use crate::codegen::{
    AggregateCall, Attempt, Codes, FloatSums, Flow, FlowSource, GroupSlots, Manner, OrderedInput,
    Partial, aggregate, group_keys_collide, materialize, plain_column, slots_by_keys,
};
use crate::column::{Relation, Repr};
use crate::error::{Error, Result};
use crate::plan::{Aggregation, DeviceAggregate, GroupKeys};
use warpframe_device::Buffer;
use warpframe_device::ops::segment::{Reduction, segmented_reduce, segments};
use warpframe_device::ops::sort::{SortWord, argsort};

impl Runner {
    pub(super) fn aggregate(&self, flow: Flow, aggregation: &Aggregation) -> Result<Flow> {
        let Aggregation { keys, calls, schema, .. } = aggregation;
        match (keys, all_fused(calls)) {
            (GroupKeys::Sets(sets), _) => self.grouping_sets(flow, sets, calls, schema.clone()),
            (GroupKeys::Exprs(groups), Some(fused)) if groups.is_empty() => {
                of_slots(self.slots(flow, &[], &fused, false)?.slots, schema.clone())
            }
            (GroupKeys::Exprs(groups), _) => self.grouped_by(flow, groups, calls, schema.clone()),
        }
    }

    /// Groups the flow's rows, for aggregates of any kind.
    pub(super) fn grouped_by(
        &self,
        flow: Flow,
        groups: &[Expr],
        calls: &[DeviceAggregate],
        schema: DFSchemaRef,
    ) -> Result<Flow> {
        match all_fused(calls) {
            Some(fused) => self.grouped(flow, groups, &fused, schema),
            None => self.regrouped(&flow, groups, calls, schema),
        }
    }

    /// Groups the flow's rows; the result's columns are the groups, then the aggregates.
    pub(super) fn grouped(
        &self,
        flow: Flow,
        groups: &[Expr],
        calls: &[AggregateCall],
        schema: DFSchemaRef,
    ) -> Result<Flow> {
        if let Some(relation) = self.grouped_by_runs(&flow, groups, calls)? {
            return Ok(Flow::new(FlowSource::Relation(relation), schema));
        }
        of_slots(self.slots(flow, groups, calls, false)?.slots, schema)
    }

    /// The groups of the flow's rows, and the slot of each row where that is wanted (of a flow in
    /// place).
    pub(super) fn slots(
        &self,
        flow: Flow,
        groups: &[Expr],
        calls: &[AggregateCall],
        row_slots: bool,
    ) -> Result<Box<Partial>> {
        let (mut flow, mut groups, mut calls) = (flow, groups.to_vec(), calls.to_vec());
        let mut manner = Manner { floats: FloatSums::Fixed, collisions: 0, row_slots };
        loop {
            match aggregate(&self.device, &flow, &groups, &calls, manner)? {
                Attempt::NeedsColumns => {
                    (flow, groups, calls) = self.in_columns(&flow, &groups, &calls)?
                }
                Attempt::Inexact => manner.floats = FloatSums::Ordered,
                Attempt::Done(partial) => {
                    if group_keys_collide(&self.device, &flow, &partial)? {
                        manner.collisions += 1;
                        if manner.collisions > MOST_COLLISIONS {
                            return Err(Error::unsupported(
                                "aggregate",
                                "of keys whose hashes collide with every secret",
                            ));
                        }
                        continue;
                    }
                    self.finish_ordered(&flow, &calls, &partial)?;
                    return Ok(partial);
                }
            }
        }
    }

    /// The groups of the rows of a flow in place. The slot of each row is known where its keys do
    /// not say it ([`slots_by_keys`]).
    pub(super) fn slots_of_rows(
        &self,
        flow: &Flow,
        groups: &[Expr],
        calls: &[DeviceAggregate],
    ) -> Result<Box<Partial>> {
        match all_fused(calls) {
            Some(fused) => {
                let by_keys = slots_by_keys(&self.device, flow, groups)?.is_some();
                self.slots(flow.clone(), groups, &fused, !by_keys)
            }
            None => self.slots_of_calls(flow, groups, calls, true),
        }
    }

    /// Runs the flow into one column for each key and argument; filters become nulls of the
    /// argument.
    fn in_columns(
        &self,
        flow: &Flow,
        groups: &[Expr],
        calls: &[AggregateCall],
    ) -> Result<(Flow, Vec<Expr>, Vec<AggregateCall>)> {
        let schema = flow.schema().clone();
        let mut exprs = groups.to_vec();
        let mut plain = vec![];
        for call in calls {
            let arg = match (&call.arg, &call.filter) {
                (arg, None) => arg.clone(),
                (arg, filter) => Some(filtered(arg.as_ref().unwrap_or(&lit(1i64)), filter)),
            };
            let arg = arg.map(|arg| {
                exprs.push(arg);
                column_named(format!("c{}", exprs.len() - 1))
            });
            plain.push(AggregateCall { arg, filter: None, ..call.clone() });
        }
        let mut fields = vec![];
        for (at, expr) in exprs.iter().enumerate() {
            fields.push(Field::new(format!("c{at}"), expr.get_type(&*schema)?, true));
        }
        let named = Arc::new(DFSchema::from_unqualified_fields(fields.into(), Default::default())?);
        let flow = flow.clone().project(exprs, named.clone());
        let relation = self.relation("aggregate", &flow)?;
        let (rows, columns) = self.dense("aggregate", relation)?;
        let groups = (0..groups.len()).map(|at| column_named(format!("c{at}"))).collect();
        Ok((Flow::new(FlowSource::Relation(Relation::dense(rows, columns)?), named), groups, plain))
    }

    /// Fills the accumulators that want the rows of each group in an order.
    fn finish_ordered(
        &self,
        flow: &Flow,
        calls: &[AggregateCall],
        partial: &Partial,
    ) -> Result<()> {
        let (Some(row_slots), rows) = (&partial.row_slots, flow.source.rows()) else {
            return Ok(());
        };
        if rows == 0 {
            return Ok(());
        }
        let mut by_slot = None;
        for ordered in &partial.ordered {
            let arg = calls[ordered.call].arg.as_ref().and_then(|arg| plain_column(flow, arg));
            let column =
                arg.ok_or_else(|| Error::internal("aggregate: an argument that is no column"))?;
            if by_slot.is_none() {
                by_slot = Some(self.by_slot(flow, partial, row_slots)?);
            }
            let (words, order) = by_slot.as_ref().expect("made above");
            self.sum_in_order(flow, column, partial, words, order, ordered)?;
        }
        Ok(())
    }

    /// Each row's slot as a sort word, and the rows in the order of their slots.
    fn by_slot(
        &self,
        flow: &Flow,
        partial: &Partial,
        row_slots: &Arc<Buffer>,
    ) -> Result<(Arc<Buffer>, Buffer)> {
        let (_, words) =
            materialize(&self.device, "aggregate", flow, Codes::Keep, |generator, out| {
                Ok(vec![word_of_row(row_slots, generator, out)])
            })?;
        let word = SortWord { keys: &words[0].data, bits: slot_bits(partial.slots.slots) };
        let order = argsort(&self.device, &[word], flow.source.rows())?;
        Ok((words[0].data.clone(), order))
    }

    fn sum_in_order(
        &self,
        flow: &Flow,
        column: usize,
        partial: &Partial,
        words: &Arc<Buffer>,
        order: &Buffer,
        input: &OrderedInput,
    ) -> Result<()> {
        let rows = flow.source.rows();
        let (_, values) =
            materialize(&self.device, "aggregate", flow, Codes::Keep, |generator, out| {
                let value = generator.column(column, out)?;
                Ok(vec![as_type(&value, &DataType::Float64, Repr::F64, out)])
            })?;
        let word = SortWord { keys: words, bits: slot_bits(partial.slots.slots) };
        let segments = segments(&self.device, &[word], order, rows)?;
        let validity = values[0].validity.as_deref();
        let sums = segmented_reduce(
            &self.device,
            Reduction::SumF64,
            values[0].data.slice(0),
            validity,
            Some(order),
            &segments,
        )?;
        self.for_segments(segments.count, |generator, out| {
            let target = &partial.slots.accumulators[input.accumulator].1;
            note_sum_of_slot([&segments.offsets, order, words, &sums], target, generator, out);
        })
    }

    /// Runs statements for each segment.
    pub(super) fn for_segments(
        &self,
        count: u64,
        body: impl FnOnce(&mut crate::codegen::Generator<'_>, &mut crate::codegen::Emitter),
    ) -> Result<()> {
        let flow = Flow::new(
            FlowSource::Relation(Relation::dense(count, vec![])?),
            super::run::anonymous(&[])?,
        );
        materialize(&self.device, "aggregate", &flow, Codes::Keep, |generator, out| {
            body(generator, out);
            Ok(vec![])
        })?;
        Ok(())
    }
}

/// The calls, where all are accumulated while rows are grouped.
fn all_fused(calls: &[DeviceAggregate]) -> Option<Vec<AggregateCall>> {
    let fused = |call: &DeviceAggregate| match call {
        DeviceAggregate::Fused(call) => Some(call.clone()),
        DeviceAggregate::Regrouped(_) => None,
    };
    calls.iter().map(fused).collect()
}

/// The flow of an aggregation's groups.
fn of_slots(slots: GroupSlots, schema: DFSchemaRef) -> Result<Flow> {
    let source = match slots.in_place() {
        Some(columns) => FlowSource::Relation(Relation::dense(slots.slots, columns)?),
        None => FlowSource::Groups(Arc::new(slots)),
    };
    Ok(Flow::new(source, schema))
}

/// Secrets of hashed keys that are tried: two in a row with which some collide by chance are as
/// good as never seen.
const MOST_COLLISIONS: u64 = 16;

/// Bits of a slot's number.
pub(super) fn slot_bits(slots: u64) -> u32 {
    (64 - slots.leading_zeros()).max(1)
}

/// The argument where the filter holds, else null.
pub(super) fn filtered(arg: &Expr, filter: &Option<Expr>) -> Expr {
    let Some(filter) = filter else { return arg.clone() };
    let when_then_expr = vec![(Box::new(filter.clone()), Box::new(arg.clone()))];
    Expr::Case(Case { expr: None, when_then_expr, else_expr: None })
}
