//! Aggregates that need the rows of their group more than once, or in an order. The rows are
//! grouped first, so that each knows its slot; what such an aggregate does then is a small query
//! over slots and arguments:
//!
//! ```text
//!   count(DISTINCT x)          group by (slot, x), then count(x) by slot
//!   var(x)                     means by slot, then sum((x − mean)²) by slot
//!   median(x)                  sort by (slot, …), then pick a row of each run of one slot
//!   first_value(x ORDER BY y)  likewise; without an order, the value of the least row number
//!   bit_and(x)                 sort by slot, then reduce each run of one slot
//!   array_agg(x)               sort by slot, then the runs are the lists
//!   histogram(x, …)            group by (slot, bin), then count by those
//! ```
//!
//! Its result has a row for each slot, and the group's accumulator is the number of that row. Calls
//! that need the same rows in the same order share one sort ([`Runner::picked`]), and calls about
//! deviations from means share their passes over the rows ([`Runner::deviations`]).

mod bits;
mod collect;
mod deviations;
mod ends;
mod histogram;
mod picked;
mod slots;
mod strings;
mod users;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::logical_expr::{Expr, ExprSchemable, SortExpr};

use self::picked::SortedBy;
use super::aggregate::{filtered, slot_bits};
use super::run::{Runner, column_named, u32_column};
use crate::codegen::regroup::{SlotRun, note_row_of_slot, slot_word};
use crate::codegen::{
    Accumulator, AggregateCall, AggregateKind, Codes, Direction, Emitter, Flow, FlowSource,
    Generator, GroupOutput, NullsPlace, OutputKind, Partial, Value, emit_words, materialize,
    plain_column,
};
use crate::column::{Column, Relation};
use crate::error::{Error, Result};
use crate::plan::{DeviceAggregate, RegroupedCall, RegroupedKind};
use warpframe_device::Buffer;
use warpframe_device::ops::segment::{Segments, segments};
use warpframe_device::ops::sort::{SortWord, argsort};

const OPERATOR: &str = "aggregate";
/// Calls that are computed together: one kernel sums all of their products of deviations.
const MOST_TOGETHER: usize = 32;

/// The rows of an aggregation in place, and their groups.
struct Grouped {
    /// Keys and arguments, then the slot, if there are keys.
    flow: Flow,
    /// Slots; 1 where there are no keys.
    slots: u64,
    keyed: bool,
}

impl Grouped {
    /// What to group by to get the same groups.
    fn keys(&self) -> Vec<Expr> {
        if self.keyed { vec![column_named("slot")] } else { vec![] }
    }
}

/// Rows sorted by slot: their order, the slot of each row as it lies (`u64`), and where the rows of
/// a slot are in the order.
struct Runs {
    order: Arc<Buffer>,
    /// `None` where there are no keys.
    slots: Option<Arc<Buffer>>,
    /// Run `i` is in the order from the `i`-th of these `u32` up to the next.
    offsets: Buffer,
    count: u64,
}

/// A result of one row for each slot: columns, the slot (where there are keys) and then the values
/// of one or more calls.
type BySlot = Flow;

/// Calls that are computed together.
#[derive(PartialEq)]
enum Family {
    Deviations,
    /// Rows of the sorted ones.
    Picked(SortedBy),
    /// Lists of the sorted rows.
    Collected(SortedBy),
    /// A call by itself.
    Alone(usize),
}

impl Runner {
    /// Groups the flow's rows, for aggregates of which some are computed from slots.
    pub(super) fn regrouped(
        &self,
        flow: &Flow,
        groups: &[Expr],
        calls: &[DeviceAggregate],
        schema: DFSchemaRef,
    ) -> Result<Flow> {
        let (flow, groups, calls) = self.in_place(flow, groups, calls)?;
        let Partial { slots, .. } = *self.slots_of_calls(&flow, &groups, &calls, false)?;
        Ok(Flow::new(FlowSource::Groups(Arc::new(slots)), schema))
    }

    /// Groups the rows of a flow in place into slots, for aggregates of any kind. The slot of each
    /// row comes along where there are keys and `row_slots` are wanted.
    pub(super) fn slots_of_calls(
        &self,
        flow: &Flow,
        groups: &[Expr],
        calls: &[DeviceAggregate],
        row_slots: bool,
    ) -> Result<Box<Partial>> {
        let ends = self.with_ends(flow, calls)?;
        let (flow, calls) = (&ends.flow, &ends.calls);
        let fused: Vec<AggregateCall> = calls
            .iter()
            .filter_map(|call| match call {
                DeviceAggregate::Fused(call) => Some(call.clone()),
                DeviceAggregate::Regrouped(_) => None,
            })
            .collect();
        let keyed = !groups.is_empty();
        let row_slots = keyed && (row_slots || fused.len() < calls.len());
        let mut partial = self.slots(flow.clone(), groups, &fused, row_slots)?;
        // Rows and slots are numbered in 32 bits.
        if flow.source.rows().max(partial.slots.slots) > u64::from(u32::MAX) {
            return Err(Error::unsupported(
                OPERATOR,
                "of more than 2^32 rows or groups, by rows of a group",
            ));
        }
        let rows = match &partial.row_slots {
            Some(slots) if keyed => with_slots(flow, slots, partial.slots.slots)?,
            _ => flow.clone(),
        };
        let rows = Grouped { flow: rows, slots: partial.slots.slots, keyed };
        let slow: Vec<&RegroupedCall> = calls
            .iter()
            .filter_map(|call| match call {
                DeviceAggregate::Fused(_) => None,
                DeviceAggregate::Regrouped(call) => Some(call),
            })
            .collect();
        let mut slow_outputs: Vec<Option<OutputKind>> = slow.iter().map(|_| None).collect();
        for (family, places) in families(&rows, &slow) {
            let calls: Vec<&RegroupedCall> = places.iter().map(|&place| slow[place]).collect();
            let by_slot = match family {
                Family::Deviations => self.deviations(&rows, &calls)?,
                Family::Picked(by) => self.picked(&rows, &calls, &by)?,
                Family::Collected(by) => self.collected(&rows, &calls, &by)?,
                Family::Alone(_) => self.by_slots(&rows, calls[0])?,
            };
            let (relation, numbers) = self.numbered(&rows, &by_slot)?;
            partial.slots.accumulators.push((Accumulator::Row, numbers));
            let at = partial.slots.accumulators.len() - 1;
            for (column, place) in places.into_iter().enumerate() {
                let output = OutputKind::Pick(at, relation.clone(), usize::from(keyed) + column);
                slow_outputs[place] = Some(output);
            }
        }
        let mut plain = std::mem::take(&mut partial.slots.outputs).into_iter();
        let mut slow_outputs = slow_outputs.into_iter().flatten();
        for (at, call) in calls.iter().enumerate() {
            let output =
                match call {
                    DeviceAggregate::Fused(_) => plain.next(),
                    DeviceAggregate::Regrouped(call) => slow_outputs
                        .next()
                        .map(|value| GroupOutput { dtype: call.dtype.clone(), value, count: None }),
                };
            let output = output.expect("an output for each aggregate");
            partial.slots.outputs.push(ends.output(at, output)?);
        }
        Ok(partial)
    }

    /// Runs the flow into columns `c0`, `c1`, … of what keys, arguments, filters and orders say, in
    /// whose terms they are then stated.
    pub(super) fn in_place(
        &self,
        flow: &Flow,
        groups: &[Expr],
        calls: &[DeviceAggregate],
    ) -> Result<(Flow, Vec<Expr>, Vec<DeviceAggregate>)> {
        let schema = flow.schema().clone();
        let mut exprs: Vec<Expr> = vec![];
        let mut known: HashMap<Expr, usize> = HashMap::new();
        let mut column = |expr: &Expr| {
            let at = *known.entry(expr.clone()).or_insert_with(|| {
                exprs.push(expr.clone());
                exprs.len() - 1
            });
            column_named(format!("c{at}"))
        };
        let groups: Vec<Expr> = groups.iter().map(&mut column).collect();
        let calls = (calls.iter())
            .map(|call| match call {
                DeviceAggregate::Fused(call) => DeviceAggregate::Fused(AggregateCall {
                    arg: call.arg.as_ref().map(|arg| column(&where_counted(arg, &call.filter))),
                    filter: call.filter.as_ref().map(&mut column),
                    ..call.clone()
                }),
                DeviceAggregate::Regrouped(call) => DeviceAggregate::Regrouped(RegroupedCall {
                    args: call
                        .args
                        .iter()
                        .map(|arg| column(&where_counted(arg, &call.filter)))
                        .collect(),
                    filter: call.filter.as_ref().map(&mut column),
                    order: (call.order.iter())
                        .map(|key| SortExpr {
                            expr: column(&where_counted(&key.expr, &call.filter)),
                            ..key.clone()
                        })
                        .collect(),
                    ..call.clone()
                }),
            })
            .collect();
        let fields = (exprs.iter().enumerate())
            .map(|(at, expr)| Ok((format!("c{at}"), expr.get_type(&*schema)?)))
            .collect::<Result<Vec<_>>>()?;
        let named = named(fields)?;
        let flow = flow.clone().project(exprs, named.clone());
        let relation = self.relation(OPERATOR, &flow)?;
        let (rows, columns) = self.dense(OPERATOR, relation)?;
        Ok((Flow::new(FlowSource::Relation(Relation::dense(rows, columns)?), named), groups, calls))
    }

    /// The aggregate's value for each slot.
    fn by_slots(&self, rows: &Grouped, call: &RegroupedCall) -> Result<BySlot> {
        if call.distinct {
            let (rows, call) = self.once(rows, call)?;
            return self.by_slots(&rows, &call);
        }
        match call.kind {
            RegroupedKind::Distinct(kind) => self.of_distinct(rows, kind, call),
            RegroupedKind::Variance { .. } | RegroupedKind::Points(_) => {
                self.deviations(rows, &[call])
            }
            RegroupedKind::Bits(bits) => self.bits(rows, call, bits),
            RegroupedKind::User => self.users_aggregate(rows, call),
            RegroupedKind::Histogram(bins) => self.histogram(rows, call, bins),
            RegroupedKind::Join => self.joined_strings(rows, call, &call.between),
            RegroupedKind::Median
            | RegroupedKind::Percentile(_)
            | RegroupedKind::Nth { .. }
            | RegroupedKind::Place { .. }
            | RegroupedKind::Collect { .. } => match SortedBy::of(rows, call) {
                Some(by) if matches!(call.kind, RegroupedKind::Collect { .. }) => {
                    self.collected(rows, &[call], &by)
                }
                Some(by) => self.picked(rows, &[call], &by),
                None => Err(Error::internal(format!(
                    "{OPERATOR}: {:?} without an order of rows",
                    call.kind
                ))),
            },
        }
    }

    /// Each slot's values, each once, for a call that then is one of all values.
    fn once(&self, rows: &Grouped, call: &RegroupedCall) -> Result<(Grouped, RegroupedCall)> {
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
        let once = Grouped {
            flow: Flow::new(FlowSource::Relation(relation), schema),
            slots: rows.slots,
            keyed: rows.keyed,
        };
        let order = call
            .order
            .iter()
            .map(|key| SortExpr { expr: column_named("x"), ..key.clone() })
            .collect();
        let call = RegroupedCall {
            args: vec![column_named("x")],
            distinct: false,
            filter: None,
            order,
            ..call.clone()
        };
        Ok((once, call))
    }

    /// Groups by slot and value, then aggregates those groups by slot.
    fn of_distinct(
        &self,
        rows: &Grouped,
        kind: AggregateKind,
        call: &RegroupedCall,
    ) -> Result<BySlot> {
        let arg = filtered(&call.args[0], &call.filter);
        let of = arg.get_type(&**rows.flow.schema())?;
        let mut keys = rows.keys();
        keys.push(arg);
        let pairs = rows.schema_of(&[("x", of)])?;
        let pairs = self.grouped(rows.flow.clone(), &keys, &[], pairs)?;
        let outer = AggregateCall {
            kind,
            arg: Some(column_named("x")),
            filter: None,
            dtype: call.dtype.clone(),
        };
        self.grouped(
            pairs,
            &rows.keys(),
            &[outer],
            rows.schema_of(&[("value", call.dtype.clone())])?,
        )
    }

    /// The rows that all conditions let pass, as columns `slot` (where there are keys), `x0`, `x1`,
    /// ….
    fn slots_and(
        &self,
        rows: &Grouped,
        conditions: impl IntoIterator<Item = Expr>,
        columns: &[Expr],
    ) -> Result<(Relation, DFSchemaRef)> {
        let flow = conditions.into_iter().fold(rows.flow.clone(), Flow::filter);
        let types =
            columns.iter().map(|c| c.get_type(&**flow.schema())).collect::<Result<Vec<_>, _>>()?;
        let mut fields: Vec<_> =
            rows.keyed.then(|| ("slot".to_string(), DataType::UInt32)).into_iter().collect();
        fields.extend(types.into_iter().enumerate().map(|(at, dtype)| (format!("x{at}"), dtype)));
        let schema = named(fields)?;
        let mut exprs = rows.keys();
        exprs.extend(columns.iter().cloned());
        let flow = flow.project(exprs, schema.clone());
        let relation = self.relation(OPERATOR, &flow)?;
        let (count, columns) = self.dense(OPERATOR, relation)?;
        Ok((Relation::dense(count, columns)?, schema))
    }

    /// Sorts rows by slot and `keys`, and finds the runs of rows of one slot.
    fn sorted_runs(
        &self,
        rows: &Grouped,
        relation: &Relation,
        schema: &DFSchemaRef,
        keys: &[(Expr, Direction, NullsPlace)],
    ) -> Result<Runs> {
        let flow = Flow::new(FlowSource::Relation(relation.clone()), schema.clone());
        let (flow, keys) = self.sortable(OPERATOR, &flow, keys.to_vec())?;
        let mut bits = vec![];
        let (_, mut columns) =
            materialize(&self.device, OPERATOR, &flow, Codes::Keep, |generator, out| {
                let mut words = vec![];
                if rows.keyed || keys.is_empty() {
                    bits.push(slot_bits(rows.slots));
                    words.push(slot_word(rows.keyed, generator, out)?);
                }
                let keys = (keys.iter())
                    .map(|(key, direction, nulls)| {
                        Ok((generator.expr(key, out)?, *direction, *nulls))
                    })
                    .collect::<Result<Vec<_>>>()?;
                let key = emit_words(&keys, &mut generator.params, out)?;
                bits.extend(key.bits);
                words.extend(key.words);
                Ok(words)
            })?;
        let words: Vec<_> = columns
            .iter()
            .zip(&bits)
            .map(|(column, bits)| SortWord { keys: &column.data, bits: *bits })
            .collect();
        let order = argsort(&self.device, &words, relation.rows)?;
        if !rows.keyed {
            let ends = [0, relation.rows as u32].map(u32::to_ne_bytes).concat();
            let (offsets, count) = (self.device.upload(OPERATOR, &ends)?, relation.rows.min(1));
            return Ok(Runs { order: Arc::new(order), slots: None, offsets, count });
        }
        let Segments { offsets, count, .. } =
            segments(&self.device, &words[..1], &order, relation.rows)?;
        Ok(Runs {
            order: Arc::new(order),
            slots: Some(columns.swap_remove(0).data),
            offsets,
            count,
        })
    }

    /// Computes values for each run.
    fn of_runs(
        &self,
        rows: &Grouped,
        runs: &Runs,
        of: impl FnOnce(&SlotRun, &mut Generator<'_>, &mut Emitter) -> Result<Vec<Value>>,
    ) -> Result<BySlot> {
        let each = Relation::dense(runs.count, vec![])?;
        let each = Flow::new(FlowSource::Relation(each), super::run::anonymous(&[])?);
        let mut types = vec![];
        let (count, columns) =
            materialize(&self.device, OPERATOR, &each, Codes::Keep, |generator, out| {
                let run = SlotRun::of_row(&runs.offsets, &runs.order, generator, out);
                let slot = runs.slots.as_ref().map(|slots| run.slot(slots, generator, out));
                let mut values = Vec::from_iter(slot);
                let computed = of(&run, generator, out)?;
                types = computed.iter().map(|value| value.dtype.clone()).collect();
                values.extend(computed);
                Ok(values)
            })?;
        let schema = rows.schema_of_values(types)?;
        Ok(Flow::new(FlowSource::Relation(Relation::dense(count, columns)?), schema))
    }

    /// Runs a result by slot, and numbers its rows by slot: `u64` for each, all ones where it has
    /// no row.
    fn numbered(&self, rows: &Grouped, by_slot: &BySlot) -> Result<(Relation, Arc<Buffer>)> {
        let relation = self.relation(OPERATOR, by_slot)?;
        if !rows.keyed && relation.rows == 1 {
            return Ok((relation, Arc::new(self.device.alloc_zeroed(OPERATOR, 8)?)));
        }
        let numbers =
            Arc::new(self.device.alloc_filled(OPERATOR, rows.slots as usize * 8, 0xFF)?);
        let flow = Flow::new(FlowSource::Relation(relation.clone()), by_slot.schema().clone());
        materialize(&self.device, OPERATOR, &flow, Codes::Keep, |generator, out| {
            note_row_of_slot(rows.keyed, &numbers, generator, out)?;
            Ok(vec![])
        })?;
        Ok((relation, numbers))
    }
}

impl Grouped {
    /// Whether an argument, which is a column, is known to have no nulls.
    fn has_no_nulls(&self, arg: &Expr) -> bool {
        has_no_nulls(&self.flow, arg)
    }

    /// That the argument is not null, unless that is known.
    fn unless_null(&self, arg: &Expr) -> Option<Expr> {
        (!self.has_no_nulls(arg)).then(|| arg.clone().is_not_null())
    }

    /// The schema of a result by slot of values of these types.
    fn schema_of_values(&self, types: Vec<DataType>) -> Result<DFSchemaRef> {
        let named = types.into_iter().enumerate().map(|(at, dtype)| (format!("value{at}"), dtype));
        self.schema_of(&named.collect::<Vec<_>>())
    }

    /// The schema of a result by slot.
    fn schema_of<N: ToString>(&self, columns: &[(N, DataType)]) -> Result<DFSchemaRef> {
        let slot = self.keyed.then(|| ("slot".to_string(), DataType::UInt32));
        let columns = columns.iter().map(|(name, dtype)| (name.to_string(), dtype.clone()));
        named(slot.into_iter().chain(columns).collect())
    }
}

/// Whether an argument, which is a column of the flow's relation, is known to have no nulls.
fn has_no_nulls(flow: &Flow, arg: &Expr) -> bool {
    let FlowSource::Relation(relation) = &flow.source else { return false };
    let at = plain_column(flow, arg);
    let Some((through, column)) = at.and_then(|at| relation.columns.get(at)) else {
        return false;
    };
    let gaps = relation.indices[*through].as_ref().is_some_and(|index| index.gaps);
    column.validity.is_none() && !gaps
}

/// The calls by what they share, as places among `calls`.
fn families(rows: &Grouped, calls: &[&RegroupedCall]) -> Vec<(Family, Vec<usize>)> {
    let mut families: Vec<(Family, Vec<usize>)> = vec![];
    for (place, call) in calls.iter().enumerate() {
        let family = match call.kind {
            _ if call.distinct => Family::Alone(place),
            RegroupedKind::Variance { .. } | RegroupedKind::Points(_) => Family::Deviations,
            RegroupedKind::Collect { .. } => {
                SortedBy::of(rows, call).map_or(Family::Alone(place), Family::Collected)
            }
            _ => SortedBy::of(rows, call).map_or(Family::Alone(place), Family::Picked),
        };
        let room =
            |known: &(Family, Vec<usize>)| known.0 == family && known.1.len() < MOST_TOGETHER;
        match families.iter_mut().find(|known| room(known)) {
            Some((_, places)) => places.push(place),
            None => families.push((family, vec![place])),
        }
    }
    families
}

/// The flow in place with one more column, `slot`.
fn with_slots(flow: &Flow, slots: &Arc<Buffer>, count: u64) -> Result<Flow> {
    with_numbers(flow, "slot", slots.clone(), count)
}

/// The flow in place with one more column of numbers (`u32`) below `count`, or 0.
fn with_numbers(flow: &Flow, name: &str, numbers: Arc<Buffer>, count: u64) -> Result<Flow> {
    let FlowSource::Relation(relation) = &flow.source else {
        return Err(Error::internal(format!("{OPERATOR}: rows that are not in place")));
    };
    let mut column = u32_column(numbers, 0, relation.rows);
    column.stats.range = Some((0, i128::from(count.max(1)) - 1));
    let mut columns: Vec<Column> =
        relation.columns.iter().map(|(_, column)| column.clone()).collect();
    columns.push(column);
    let own = flow
        .schema()
        .fields()
        .iter()
        .map(|field| (field.name().clone(), field.data_type().clone()));
    let schema = named(own.chain([(name.to_string(), DataType::UInt32)]).collect())?;
    Ok(Flow::new(FlowSource::Relation(Relation::dense(relation.rows, columns)?), schema))
}

/// A schema of nullable columns.
pub(super) fn named(columns: Vec<(String, DataType)>) -> Result<DFSchemaRef> {
    let fields: Vec<_> =
        columns.into_iter().map(|(name, dtype)| Field::new(name, dtype, true)).collect();
    Ok(Arc::new(DFSchema::from_unqualified_fields(fields.into(), HashMap::new())?))
}

/// What a call with this filter looks at, computed for the rows that pass alone: others must not
/// fail.
fn where_counted(expr: &Expr, filter: &Option<Expr>) -> Expr {
    match expr {
        Expr::Column(_) | Expr::Literal(..) => expr.clone(),
        _ => filtered(expr, filter),
    }
}
