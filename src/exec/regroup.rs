//! Aggregates that need the rows of their group more than once, or in an order. The rows are
//! grouped first, so that each knows its slot; what such an aggregate does then is a small query
//! over slots and arguments:
//!
//! ```text
//!   count(DISTINCT x)          group by (slot, x), then count(x) by slot
//!   var(x)                     means by slot, then sum((x − mean)²) by slot
//!   median(x), first_value(x)  sort by (slot, …), then pick a row of each run of one slot
//!   bit_and(x)                 sort by slot, then reduce each run of one slot
//!   array_agg(x)               sort by slot, then the runs are the lists
//!   histogram(x, …)            group by (slot, bin), then count by those
//! ```
//!
//! Its result has a row for each slot, and the group's accumulator is the number of that row.

mod bits;
mod collect;
mod histogram;
mod middle;
mod ordered;
mod slots;
mod users;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, DFSchemaRef, ScalarValue};
use datafusion::logical_expr::{Case, Expr, ExprSchemable, SortExpr, cast, lit, when};
use datafusion::prelude::{col, sqrt};

pub(super) use self::middle::Middle;
pub(super) use self::ordered::Strings;
use super::aggregate::slot_bits;
use super::run::{Runner, u32_column};
use crate::codegen::{
    Accumulator, AggregateCall, AggregateKind, Codes, Direction, Flow, FlowSource, GroupOutput, NullsPlace, OutputKind,
    Value, emit_words, materialize,
};
use crate::column::{Column, Index, Relation, Repr};
use crate::device::Buffer;
use crate::error::{Error, Result};
use crate::ops::segment::{Segments, segments};
use crate::ops::sort::{SortWord, argsort};
use crate::plan::{DeviceAggregate, RegroupedCall, RegroupedKind, of_points, variance_of};

const OPERATOR: &str = "aggregate";

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
        if self.keyed { vec![col("slot")] } else { vec![] }
    }
}

/// Rows sorted by slot: their order, the slot of each row as it lies (`u64`), and where the rows of
/// a slot are in the order.
struct Runs {
    order: Arc<Buffer>,
    slots: Arc<Buffer>,
    segments: Segments,
}

/// A result of one row for each slot: columns, the slot (where there are keys) and then the value.
type BySlot = Flow;

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
        let fused: Vec<AggregateCall> = calls
            .iter()
            .filter_map(|call| match call {
                DeviceAggregate::Fused(call) => Some(call.clone()),
                DeviceAggregate::Regrouped(_) => None,
            })
            .collect();
        let keyed = !groups.is_empty();
        let mut partial = self.slots(flow.clone(), &groups, &fused, keyed)?;
        // Rows and slots are numbered in 32 bits.
        if flow.source.rows().max(partial.slots.slots) > u64::from(u32::MAX) {
            return Err(Error::unsupported(OPERATOR, "of more than 2^32 rows or groups, by rows of a group"));
        }
        let rows = match &partial.row_slots {
            Some(slots) if keyed => with_slots(&flow, slots, partial.slots.slots)?,
            _ => flow,
        };
        let rows = Grouped { flow: rows, slots: partial.slots.slots, keyed };
        let mut plain = std::mem::take(&mut partial.slots.outputs).into_iter();
        for call in &calls {
            let output = match call {
                DeviceAggregate::Fused(_) => plain.next().expect("an output for each fused aggregate"),
                DeviceAggregate::Regrouped(call) => {
                    let by_slot = self.by_slots(&rows, call)?;
                    let (relation, numbers) = self.numbered(&rows, &by_slot)?;
                    partial.slots.accumulators.push((Accumulator::Row, numbers));
                    let at = partial.slots.accumulators.len() - 1;
                    let value = OutputKind::Pick(at, relation, usize::from(keyed));
                    GroupOutput { dtype: call.dtype.clone(), value, count: None }
                }
            };
            partial.slots.outputs.push(output);
        }
        Ok(Flow::new(FlowSource::Groups(Arc::new(partial.slots)), schema))
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
            col(format!("c{at}"))
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
                    args: call.args.iter().map(|arg| column(&where_counted(arg, &call.filter))).collect(),
                    filter: call.filter.as_ref().map(&mut column),
                    order: (call.order.iter())
                        .map(|key| SortExpr { expr: column(&where_counted(&key.expr, &call.filter)), ..key.clone() })
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
            RegroupedKind::Variance { of, root } => {
                let variance = variance_of(col("xx"), of);
                self.of_deviations(rows, call, if root { sqrt(variance) } else { variance })
            }
            RegroupedKind::Points(of) => self.of_deviations(rows, call, of_points(of)?),
            RegroupedKind::Median => self.middle(rows, call, Middle::Median),
            RegroupedKind::Percentile(share) => self.middle(rows, call, Middle::Percentile(f64::from_bits(share))),
            RegroupedKind::Nth { place, skip_nulls } => self.nth(rows, call, place, skip_nulls),
            RegroupedKind::Bits(bits) => self.bits(rows, call, bits),
            RegroupedKind::User => self.users_aggregate(rows, call),
            RegroupedKind::Histogram(bins) => self.histogram(rows, call, bins),
            RegroupedKind::Collect { skip_nulls } => self.collected(rows, call, skip_nulls),
            RegroupedKind::Join => self.joined_strings(rows, call, &call.between),
            RegroupedKind::Place { last, skip_nulls } => self.nth(rows, call, if last { -1 } else { 1 }, skip_nulls),
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
        let once =
            Grouped { flow: Flow::new(FlowSource::Relation(relation), schema), slots: rows.slots, keyed: rows.keyed };
        let order = call.order.iter().map(|key| SortExpr { expr: col("x"), ..key.clone() }).collect();
        let call = RegroupedCall { args: vec![col("x")], distinct: false, filter: None, order, ..call.clone() };
        Ok((once, call))
    }

    /// Groups by slot and value, then aggregates those groups by slot.
    fn of_distinct(&self, rows: &Grouped, kind: AggregateKind, call: &RegroupedCall) -> Result<BySlot> {
        let arg = filtered(&call.args[0], &call.filter);
        let of = arg.get_type(&**rows.flow.schema())?;
        let mut keys = rows.keys();
        keys.push(arg);
        let pairs = rows.schema_of(&[("x", of)])?;
        let pairs = self.grouped(rows.flow.clone(), &keys, &[], pairs)?;
        let outer = AggregateCall { kind, arg: Some(col("x")), filter: None, dtype: call.dtype.clone() };
        self.grouped(pairs, &rows.keys(), &[outer], rows.schema_of(&[("value", call.dtype.clone())])?)
    }

    /// Sums the products of deviations from the means, as `xx`, `xy` and `yy` over `n` rows, and
    /// finishes with `value`.
    fn of_deviations(&self, rows: &Grouped, call: &RegroupedCall, value: Expr) -> Result<BySlot> {
        const F64: DataType = DataType::Float64;
        let (x, y) = match call.args.as_slice() {
            [x] => (filtered(x, &call.filter), None),
            [x, y] => {
                // Only rows in which both are known count.
                let (x, y) = (filtered(x, &call.filter), filtered(y, &call.filter));
                let null = Expr::Literal(ScalarValue::Float64(None), None);
                let both =
                    |of: &Expr, other: &Expr| when(other.clone().is_not_null(), of.clone()).otherwise(null.clone());
                (both(&x, &y)?, Some(both(&y, &x)?))
            }
            _ => return Err(Error::internal(format!("{OPERATOR}: a number of arguments that the planner let pass"))),
        };
        // Means. A group of equal values has that one, whatever its sum is rounded to.
        let fused = |kind, arg: &Expr, dtype| AggregateCall { kind, arg: Some(arg.clone()), filter: None, dtype };
        let mut calls = vec![fused(AggregateKind::Count, &x, DataType::Int64)];
        let mut sums = vec![("n", DataType::Int64)];
        let mut means = vec![cast(col("n"), F64)];
        let mut names = vec![("n", F64)];
        let with_mean = [("x", Some(&x)), ("y", y.as_ref())];
        for (name, of) in with_mean.into_iter().filter_map(|(name, of)| Some((name, of?))) {
            for kind in [AggregateKind::Sum, AggregateKind::Min, AggregateKind::Max] {
                calls.push(fused(kind, of, F64));
            }
            let [sum, least, greatest, mean] =
                if name == "x" { ["sx", "lx", "gx", "mx"] } else { ["sy", "ly", "gy", "my"] };
            sums.extend([(sum, F64), (least, F64), (greatest, F64)]);
            let same = col(least).eq(col(greatest));
            means.push(when(same, col(least)).otherwise(col(sum) / cast(col("n"), F64))?);
            names.push((mean, F64));
        }
        let sums = self.grouped(rows.flow.clone(), &rows.keys(), &calls, rows.schema_of(&sums)?)?;
        let mut exprs = rows.keys();
        exprs.extend(means);
        let means = sums.project(exprs, rows.schema_of(&names)?);
        let (means, numbers) = self.numbered(rows, &means)?;

        // Each row beside the means of its group.
        let joined = self.beside(rows, means, &numbers, &names)?;
        let bound = magnitude(rows, &call.args);
        let joined = Flow { source: bounded(joined.source, names.len(), bound), ..joined };
        let dx = x - col("mx");
        let mut calls = vec![fused(AggregateKind::Sum, &(dx.clone() * dx.clone()), F64)];
        let mut products = vec![("xx", F64)];
        if let Some(y) = y {
            let dy = y - col("my");
            calls.push(fused(AggregateKind::Sum, &(dx * dy.clone()), F64));
            calls.push(fused(AggregateKind::Sum, &(dy.clone() * dy), F64));
            products.extend([("xy", F64), ("yy", F64)]);
        }
        // Of each group's rows n and the means are the same.
        for name in &names {
            calls.push(fused(AggregateKind::Min, &col(name.0), F64));
            products.push(name.clone());
        }
        let products = self.grouped(joined, &rows.keys(), &calls, rows.schema_of(&products)?)?;
        let mut exprs = rows.keys();
        exprs.push(value);
        Ok(products.project(exprs, rows.schema_of(&[("value", F64)])?))
    }

    /// The rows that the call's filter and `keep` let pass, as columns `slot` (where there are
    /// keys), `x0`, `x1`, ….
    fn slots_and(
        &self,
        rows: &Grouped,
        call: &RegroupedCall,
        keep: Expr,
        columns: &[Expr],
    ) -> Result<(Relation, DFSchemaRef)> {
        let mut flow = rows.flow.clone();
        for condition in call.filter.iter().chain([&keep]).filter(|condition| **condition != lit(true)) {
            flow = flow.filter(condition.clone());
        }
        let types = columns.iter().map(|c| c.get_type(&**flow.schema())).collect::<Result<Vec<_>, _>>()?;
        let mut fields: Vec<_> = rows.keyed.then(|| ("slot".to_string(), DataType::UInt32)).into_iter().collect();
        fields.extend(types.into_iter().enumerate().map(|(at, dtype)| (format!("x{at}"), dtype)));
        let schema = named(fields)?;
        let mut exprs = rows.keys();
        exprs.extend(columns.iter().cloned());
        let flow = flow.project(exprs, schema.clone());
        let relation = self.relation(OPERATOR, &flow)?;
        let (count, columns) = self.dense(OPERATOR, relation)?;
        Ok((Relation::dense(count, columns)?, schema))
    }

    /// Sorts rows by slot and `keys`, and computes a value for each run of rows of one slot.
    /// `value` gets the names of the order of rows, and of begin and end of the run in it.
    fn runs(
        &self,
        rows: &Grouped,
        relation: &Relation,
        schema: &DFSchemaRef,
        keys: &[(Expr, Direction, NullsPlace)],
        value: impl FnOnce(&mut crate::codegen::Generator<'_>, &mut crate::codegen::Emitter, &str, [&str; 2]) -> Value,
    ) -> Result<BySlot> {
        let runs = self.sorted_runs(rows, relation, schema, keys)?;
        self.of_runs(rows, &runs, value)
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
        let mut bits = vec![slot_bits(rows.slots)];
        let (_, mut columns) = materialize(&self.device, OPERATOR, &flow, Codes::Keep, |generator, out| {
            let slot = if rows.keyed { generator.column(0, out)?.code } else { "0".into() };
            let mut words = vec![Value::word(out.let_("u64", format_args!("(u64){slot}")))];
            let keys = (keys.iter())
                .map(|(key, direction, nulls)| Ok((generator.expr(key, out)?, *direction, *nulls)))
                .collect::<Result<Vec<_>>>()?;
            for word in emit_words(&keys, &mut generator.params, out)? {
                bits.push(word.bits);
                words.push(Value::word(word.name));
            }
            Ok(words)
        })?;
        let words: Vec<_> =
            columns.iter().zip(&bits).map(|(column, bits)| SortWord { keys: &column.data, bits: *bits }).collect();
        let order = argsort(&self.device, &words, relation.rows)?;
        let segments = segments(&self.device, &words[..1], &order, relation.rows)?;
        Ok(Runs { order: Arc::new(order), slots: columns.swap_remove(0).data, segments })
    }

    /// Computes a value for each run.
    fn of_runs(
        &self,
        rows: &Grouped,
        runs: &Runs,
        value: impl FnOnce(&mut crate::codegen::Generator<'_>, &mut crate::codegen::Emitter, &str, [&str; 2]) -> Value,
    ) -> Result<BySlot> {
        let each = Relation::dense(runs.segments.count, vec![])?;
        let each = Flow::new(FlowSource::Relation(each), super::run::anonymous(&[])?);
        let mut dtype = DataType::Null;
        let (count, columns) = materialize(&self.device, OPERATOR, &each, Codes::Keep, |generator, out| {
            let offsets = generator.params.borrowed("const u32", &runs.segments.offsets);
            let order = generator.params.borrowed("const u32", &runs.order);
            let begin = out.let_("u32", format_args!("{offsets}[row]"));
            let end = out.let_("u32", format_args!("{offsets}[row + 1]"));
            let mut values = vec![];
            if rows.keyed {
                let slots = generator.params.borrowed("const u64", &runs.slots);
                let slot = out.let_("u32", format_args!("(u32){slots}[{order}[{begin}]]"));
                values.push(Value::new(DataType::UInt32, Repr::U32, slot, None));
            }
            let value = value(generator, out, &order, [&begin, &end]);
            dtype = value.dtype.clone();
            values.push(value);
            Ok(values)
        })?;
        let schema = rows.schema_of(&[("value", dtype)])?;
        Ok(Flow::new(FlowSource::Relation(Relation::dense(count, columns)?), schema))
    }

    /// Runs a result by slot, and numbers its rows by slot: `u64` for each, all ones where it has
    /// no row.
    fn numbered(&self, rows: &Grouped, by_slot: &BySlot) -> Result<(Relation, Arc<Buffer>)> {
        let relation = self.relation(OPERATOR, by_slot)?;
        let numbers = Arc::new(self.device.alloc_filled(OPERATOR, rows.slots as usize * 8, 0xFF)?);
        let flow = Flow::new(FlowSource::Relation(relation.clone()), by_slot.schema().clone());
        materialize(&self.device, OPERATOR, &flow, Codes::Keep, |generator, out| {
            let slot = if rows.keyed { generator.column(0, out)?.code } else { "0".into() };
            let numbers = generator.params.pointer("u64", &numbers, 0);
            out.line(format_args!("{numbers}[{slot}] = row;"));
            Ok(vec![])
        })?;
        Ok((relation, numbers))
    }

    /// Each row beside its slot's row in a result by slot, whose columns are called `names`.
    fn beside(
        &self,
        rows: &Grouped,
        result: Relation,
        numbers: &Arc<Buffer>,
        names: &[(&str, DataType)],
    ) -> Result<Flow> {
        let (_, own) = materialize(&self.device, OPERATOR, &rows.flow, Codes::Keep, |generator, out| {
            let slot = if rows.keyed { generator.expr(&col("slot"), out)?.code } else { "0".into() };
            let numbers = generator.params.pointer("const u64", numbers, 0);
            let row = out.let_("u32", format_args!("(u32){numbers}[{slot}]"));
            Ok(vec![Value::new(DataType::UInt32, Repr::U32, row, None)])
        })?;
        let (result_rows, result) = self.dense(OPERATOR, result)?;
        debug_assert!(result_rows > 0 || rows.flow.source.rows() == 0, "every row has a group");
        let FlowSource::Relation(relation) = &rows.flow.source else {
            return Err(Error::internal(format!("{OPERATOR}: rows that are not in place")));
        };
        let mut relation = relation.clone();
        relation.indices.push(Some(Index { rows: own[0].data.clone(), offset: 0, gaps: false }));
        let through = relation.indices.len() - 1;
        relation.columns.extend(result.into_iter().skip(usize::from(rows.keyed)).map(|column| (through, column)));
        let own = rows.flow.schema().fields().iter().map(|field| (field.name().clone(), field.data_type().clone()));
        let theirs = names.iter().map(|(name, dtype)| (name.to_string(), dtype.clone()));
        let schema = named(own.chain(theirs).collect())?;
        Ok(Flow::new(FlowSource::Relation(relation), schema))
    }
}

impl Grouped {
    /// The schema of a result by slot.
    fn schema_of(&self, columns: &[(&str, DataType)]) -> Result<DFSchemaRef> {
        let slot = self.keyed.then_some(("slot", DataType::UInt32));
        named(slot.iter().chain(columns).map(|(name, dtype)| (name.to_string(), dtype.clone())).collect())
    }
}

/// The flow in place with one more column, `slot`.
fn with_slots(flow: &Flow, slots: &Arc<Buffer>, count: u64) -> Result<Flow> {
    let FlowSource::Relation(relation) = &flow.source else {
        return Err(Error::internal(format!("{OPERATOR}: rows that are not in place")));
    };
    let mut column = u32_column(slots.clone(), 0, relation.rows);
    column.stats.range = Some((0, i128::from(count.max(1)) - 1));
    let mut columns: Vec<Column> = relation.columns.iter().map(|(_, column)| column.clone()).collect();
    columns.push(column);
    let own = flow.schema().fields().iter().map(|field| (field.name().clone(), field.data_type().clone()));
    let schema = named(own.chain([("slot".to_string(), DataType::UInt32)]).collect())?;
    Ok(Flow::new(FlowSource::Relation(Relation::dense(relation.rows, columns)?), schema))
}

/// A schema of nullable columns.
pub(super) fn named(columns: Vec<(String, DataType)>) -> Result<DFSchemaRef> {
    let fields: Vec<_> = columns.into_iter().map(|(name, dtype)| Field::new(name, dtype, true)).collect();
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

/// The argument where the filter holds, else null.
pub(super) fn filtered(arg: &Expr, filter: &Option<Expr>) -> Expr {
    let Some(filter) = filter else { return arg.clone() };
    let when_then_expr = vec![(Box::new(filter.clone()), Box::new(arg.clone()))];
    Expr::Case(Case { expr: None, when_then_expr, else_expr: None })
}

/// A bound on the magnitude of all arguments, which are columns.
fn magnitude(rows: &Grouped, args: &[Expr]) -> Option<f64> {
    let FlowSource::Relation(relation) = &rows.flow.source else { return None };
    let bounds = args.iter().map(|arg| {
        let at = crate::codegen::plain_column(&rows.flow, arg)?;
        relation.columns[at].1.stats.magnitude
    });
    bounds.collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max)
}

/// States that the last `count` columns but the first, means, are bounded by what they are means
/// of.
fn bounded(source: FlowSource, count: usize, bound: Option<f64>) -> FlowSource {
    let FlowSource::Relation(mut relation) = source else { return source };
    let first = relation.columns.len() + 1 - count;
    for (_, column) in &mut relation.columns[first..] {
        // Rounding may lift a mean above.
        column.stats.magnitude = bound.map(|bound| bound * (1.0 + 1e-6)).filter(|bound| bound.is_finite());
    }
    FlowSource::Relation(relation)
}
