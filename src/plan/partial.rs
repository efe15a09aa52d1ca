//! Aggregations in two steps: over parts of their rows, and over what these yield.
//!
//! ```text
//!   avg(x), count(*) GROUP BY d     parts    sum(x), count(x), count(*) GROUP BY d
//!                                   all      sum(p0), sum(p1), sum(p2) GROUP BY k0
//!                                   result   p0 / p1, p2
//! ```
//!
//! A partial result has the columns `k0`, `k1`, … of the keys, then `p0`, `p1`, … of the calls. To
//! merge partial results yields one of the same columns, so it may be done at any time, and again.
//!
//! ```text
//!   var(x)                          parts    count of x, mean, sum of squared deviations from it
//!                                   all      Σ n,  Σ n·m / Σ n,  Σ d + Σ n·(m − mean)²
//! ```
//!
//! Sums of floats that come in parts are rounded in other places than those of all rows at once.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DFSchemaRef};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::expr_fn::{max, sum};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::regr::{
    regr_avgx_udaf, regr_avgy_udaf, regr_count_udaf, regr_sxx_udaf, regr_sxy_udaf, regr_syy_udaf,
};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, ExprFunctionExt, ExprSchemable, LogicalPlan, LogicalPlanBuilder,
    Projection, Window, cast, lit, when,
};
use datafusion::prelude::{col, sqrt};

use super::aggregates::{DeviceAggregate, RegroupedKind, device_aggregate};
use super::points::{of_points, variance_of};

use crate::error::{Error, Result};

/// Digits of a decimal up to which sums of it have room for the four places more that an average
/// has: 38 digits hold the sum of 10¹⁰ rows.
const MOST_DIGITS: u8 = 24;
/// Functions whose partial results the function itself merges.
const MERGEABLE: [&str; 8] =
    ["sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"];

/// An aggregation in two steps.
#[derive(Debug, Clone)]
pub(crate) struct PartialAggregate {
    groups: Vec<Expr>,
    /// Columns of keys; with grouping sets there is one that tells the sets apart.
    keys: usize,
    calls: Vec<Expr>,
    merges: Vec<PartialMerge>,
    /// What each of the aggregation's calls is, by the numbers of partial calls.
    results: Vec<PartialResult>,
    schema: DFSchemaRef,
}

/// How a call's result follows from partial calls.
#[derive(Debug, Clone)]
enum PartialResult {
    Call(usize),
    /// An expression over the columns of partial calls.
    Value(Expr),
}

/// How partial calls become one.
#[derive(Debug, Clone)]
enum PartialMerge {
    By(Arc<AggregateUDF>),
    /// A mean of as many values as another call counts.
    Mean {
        count: usize,
    },
    /// A sum of products of deviations from two means, of as many values as another call counts.
    Products {
        count: usize,
        means: [usize; 2],
    },
}

impl PartialAggregate {
    /// How many columns of a partial result are keys.
    pub(super) fn key_count(&self) -> usize {
        self.keys
    }

    /// `None` where a call needs all rows of its group at once.
    pub(crate) fn of(aggregate: &Aggregate) -> Option<PartialAggregate> {
        let keys = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
        let (groups, schema) = (aggregate.group_expr.clone(), aggregate.schema.clone());
        let mut of = PartialAggregate {
            groups,
            keys,
            calls: vec![],
            merges: vec![],
            results: vec![],
            schema,
        };
        for expr in &aggregate.aggr_expr {
            let Expr::AggregateFunction(call) = expr.clone().unalias() else { return None };
            let result = of.result(&call, aggregate.input.schema())?;
            of.results.push(result);
        }
        Some(of)
    }

    fn result(&mut self, call: &AggregateFunction, input: &DFSchema) -> Option<PartialResult> {
        let name = call.func.name();
        if call.params.distinct && !matches!(name, "min" | "max") {
            return None;
        }
        match name {
            "avg" => {
                let [arg] = call.params.args.as_slice() else { return None };
                let (of, arg) = (|func| with_function(call, func), arg.get_type(input).ok()?);
                // No call is made in vain.
                average(lit(0), lit(0), &arg)?;
                let sum = self.call(of(sum_udaf()), PartialMerge::By(sum_udaf()));
                let count = self.call(of(count_udaf()), PartialMerge::By(sum_udaf()));
                let column = |at: usize| col(self.name(self.keys + at));
                average(column(sum), column(count), &arg).map(PartialResult::Value)
            }
            "count" | "regr_count" => {
                let own = Expr::AggregateFunction(call.clone());
                Some(PartialResult::Call(self.call(own, PartialMerge::By(sum_udaf()))))
            }
            _ if MERGEABLE.contains(&name) => {
                let own = Expr::AggregateFunction(call.clone());
                Some(PartialResult::Call(self.call(own, PartialMerge::By(call.func.clone()))))
            }
            _ => self.of_deviations(call, input).map(PartialResult::Value),
        }
    }

    /// A call whose result follows from a number of values or points, their means, and sums of
    /// products of deviations from these. `None` for other calls.
    fn of_deviations(&mut self, call: &AggregateFunction, input: &DFSchema) -> Option<Expr> {
        let own = Expr::AggregateFunction(call.clone());
        let DeviceAggregate::Regrouped(device) = device_aggregate(&own, input).ok()? else {
            return None;
        };
        let value = match device.kind {
            RegroupedKind::Variance { of, root: false } => variance_of(col("xx"), of),
            RegroupedKind::Variance { of, root: true } => sqrt(variance_of(col("xx"), of)),
            RegroupedKind::Points(of) => of_points(of),
            _ => return None,
        };
        // A value is a point on the diagonal.
        let (x, y) = (device.args.first()?.clone(), device.args.last()?.clone());
        let points = AggregateFunction {
            params: AggregateFunctionParams { args: vec![x, y], ..call.params.clone() },
            ..call.clone()
        };
        let mut parts = DeviationParts { aggregate: self, points, known: HashMap::new() };
        let named = value.transform(|expr| match &expr {
            Expr::Column(name) => Ok(Transformed::yes(parts.column(&name.name))),
            _ => Ok(Transformed::no(expr)),
        });
        named.ok().map(|named| named.data)
    }

    /// The number of a partial call, which is made once.
    fn call(&mut self, call: Expr, merge: PartialMerge) -> usize {
        let known = self.calls.iter().position(|known| *known == call);
        known.unwrap_or_else(|| {
            self.calls.push(call);
            self.merges.push(merge);
            self.calls.len() - 1
        })
    }

    fn name(&self, at: usize) -> String {
        if at < self.keys { format!("k{at}") } else { format!("p{}", at - self.keys) }
    }

    pub(super) fn partial(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        // Names leave casts out: `count(x)` of an integer may stand beside that of the float for
        // `avg(x)`.
        let calls = self.calls.iter().enumerate();
        let calls = calls.map(|(at, call)| call.clone().alias(self.name(self.keys + at))).collect();
        let aggregate = Aggregate::try_new(Arc::new(input), self.groups.clone(), calls)?;
        let fields = aggregate.schema.fields().iter().enumerate();
        let fields =
            fields.map(|(at, field)| Field::new(self.name(at), field.data_type().clone(), true));
        let schema = DFSchema::from_unqualified_fields(fields.collect(), Default::default())?;
        let columns = aggregate.schema.columns().into_iter().map(Expr::Column).collect();
        let input = Arc::new(LogicalPlan::Aggregate(aggregate));
        Ok(LogicalPlan::Projection(Projection::try_new_with_schema(
            columns,
            input,
            Arc::new(schema),
        )?))
    }

    pub(super) fn merged(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        let schema = input.schema().clone();
        let columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
        let keys = columns[..self.keys].to_vec();
        let (input, means) = self.with_means(input, &keys)?;
        let call = |at: usize| col(self.name(self.keys + at));
        let count = |at: usize| cast(call(at), DataType::Float64);
        let mut calls = vec![];
        for (at, merge) in self.merges.iter().enumerate() {
            calls.push(match merge {
                PartialMerge::By(func) => func.call(vec![call(at)]),
                // It is the same in all rows of the group.
                PartialMerge::Mean { .. } => max(means[&at].clone()),
                PartialMerge::Products { count: of, means: [x, y] } => {
                    let of_means = (call(*x) - means[x].clone()) * (call(*y) - means[y].clone());
                    sum(call(at) + count(*of) * of_means)
                }
            });
        }
        let merged = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), keys, calls)?);
        let exprs = merged.schema().columns().into_iter().map(Expr::Column).collect();
        projected(merged, exprs, schema)
    }

    /// Partial results with the mean of all values of their group beside each of a part of them:
    /// the names of these, by the numbers of the calls. A group of equal means has that one,
    /// whatever their sum is rounded to.
    fn with_means(
        &self,
        input: LogicalPlan,
        keys: &[Expr],
    ) -> Result<(LogicalPlan, HashMap<usize, Expr>)> {
        let of_means = |(at, merge): (usize, &PartialMerge)| match merge {
            PartialMerge::Mean { count } => Some((at, *count)),
            _ => None,
        };
        let of_means: Vec<(usize, usize)> =
            self.merges.iter().enumerate().filter_map(of_means).collect();
        if of_means.is_empty() {
            return Ok((input, HashMap::new()));
        }
        let call = |at: usize| col(self.name(self.keys + at));
        let over = |func: Arc<AggregateUDF>, arg: Expr, name: String| -> Result<Expr> {
            let of_function = Expr::from(WindowFunction::new(func, vec![arg]));
            Ok(of_function.partition_by(keys.to_vec()).build()?.alias(name))
        };
        let mut exprs = vec![];
        for (at, count) in &of_means {
            let (mean, count) = (call(*at), cast(call(*count), DataType::Float64));
            exprs.push(over(min_udaf(), mean.clone(), format!("m{at}_least"))?);
            exprs.push(over(max_udaf(), mean.clone(), format!("m{at}_greatest"))?);
            exprs.push(over(sum_udaf(), mean * count.clone(), format!("m{at}_sum"))?);
            exprs.push(over(sum_udaf(), count, format!("m{at}_count"))?);
        }
        let windows = LogicalPlan::Window(Window::try_new(exprs, Arc::new(input))?);
        let mut means = HashMap::new();
        for (at, _) in of_means {
            let own = |what: &str| col(format!("m{at}_{what}"));
            let mean = when(own("least").eq(own("greatest")), own("least"))
                .otherwise(own("sum") / own("count"))?;
            means.insert(at, mean);
        }
        Ok((windows, means))
    }

    pub(super) fn finished(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        let merged = self.merged(input)?;
        let columns: Vec<Expr> = merged.schema().columns().into_iter().map(Expr::Column).collect();
        let (keys, calls) = columns.split_at(self.keys);
        let mut exprs = keys.to_vec();
        for result in &self.results {
            exprs.push(match result {
                PartialResult::Call(at) => calls[*at].clone(),
                PartialResult::Value(value) => value.clone(),
            });
        }
        projected(merged, exprs, self.schema.clone())
    }
}

/// Partial calls that a result needs of points: `n`, `mx`, `my`, `xx`, `xy`, `yy` (`points.rs`).
struct DeviationParts<'a> {
    aggregate: &'a mut PartialAggregate,
    /// A call of the points.
    points: AggregateFunction,
    known: HashMap<String, usize>,
}

impl DeviationParts<'_> {
    fn column(&mut self, name: &str) -> Expr {
        let number = self.number(name);
        let column = col(self.aggregate.name(self.aggregate.keys + number));
        if name == "n" { cast(column, DataType::Float64) } else { column }
    }

    fn number(&mut self, name: &str) -> usize {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let (func, merge) = match name {
            "n" => (regr_count_udaf(), PartialMerge::By(sum_udaf())),
            "mx" => (regr_avgy_udaf(), PartialMerge::Mean { count: self.number("n") }),
            "my" => (regr_avgx_udaf(), PartialMerge::Mean { count: self.number("n") }),
            "xx" => (regr_syy_udaf(), self.products(["mx", "mx"])),
            "yy" => (regr_sxx_udaf(), self.products(["my", "my"])),
            _ => (regr_sxy_udaf(), self.products(["mx", "my"])),
        };
        let number = self.aggregate.call(with_function(&self.points, func), merge);
        self.known.insert(name.to_string(), number);
        number
    }

    fn products(&mut self, means: [&str; 2]) -> PartialMerge {
        PartialMerge::Products {
            count: self.number("n"),
            means: means.map(|mean| self.number(mean)),
        }
    }
}

/// Calls of distinct values, as calls over the groups of an aggregation by the keys and these
/// values: that has two steps. Without keys there may be calls of other values, and of all rows:
/// each kind is an aggregation of its own, and these are put side by side. `None` for other
/// aggregations.
///
/// # Errors
/// Of plans that do not fit together.
pub(crate) fn by_distinct_values(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    if matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
        return Ok(None);
    }
    // Each value, `None` for all rows, with the calls of it by their places.
    let mut kinds: Vec<(Option<Expr>, Vec<usize>)> = vec![];
    for (at, expr) in aggregate.aggr_expr.iter().enumerate() {
        let Some(value) = distinct_value(expr) else { return Ok(None) };
        match kinds.iter_mut().find(|(known, _)| *known == value) {
            Some((_, calls)) => calls.push(at),
            None => kinds.push((value, vec![at])),
        }
    }
    match kinds.as_slice() {
        [(Some(value), _)] => over_distinct(aggregate, value).map(Some),
        [_, _, ..] if aggregate.group_expr.is_empty() => side_by_side(aggregate, &kinds).map(Some),
        _ => Ok(None),
    }
}

/// The value of whose distinct ones a call is, or no value if it is a call of all rows that can be
/// merged; `None` for calls of other kinds.
pub(super) fn distinct_value(expr: &Expr) -> Option<Option<Expr>> {
    let Expr::AggregateFunction(call) = expr.clone().unalias() else { return None };
    let (name, params) = (call.func.name(), &call.params);
    if let ("approx_distinct", [value], None) = (name, params.args.as_slice(), &params.filter) {
        return Some(Some(value.clone()));
    }
    if !params.distinct || matches!(name, "min" | "max") {
        let mergeable = matches!(name, "count" | "regr_count" | "avg") || MERGEABLE.contains(&name);
        return mergeable.then_some(None);
    }
    let plain = params.filter.is_none()
        && params.order_by.is_empty()
        && matches!(name, "count" | "sum" | "avg");
    match params.args.as_slice() {
        [value] if plain => Some(Some(value.clone())),
        _ => None,
    }
}

/// An aggregation whose calls are all of the distinct ones of a value.
pub(super) fn over_distinct(aggregate: &Aggregate, value: &Expr) -> Result<LogicalPlan> {
    let keys = aggregate.group_expr.iter().cloned().chain([value.clone()]).collect();
    let values = LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input.clone(), keys, vec![])?);
    let mut columns: Vec<Expr> = values.schema().columns().into_iter().map(Expr::Column).collect();
    let value = columns.pop();
    let of_values = aggregate.aggr_expr.iter().map(|expr| match expr.clone().unalias() {
        Expr::AggregateFunction(mut call) => {
            call.params.distinct = false;
            if call.func.name() == "approx_distinct" {
                call.func = count_udaf();
            }
            call.params.args = value.iter().cloned().collect();
            Expr::AggregateFunction(call)
        }
        other => other,
    });
    let calls = of_values.collect();
    let groups = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(values), columns, calls)?);
    let columns = groups.schema().columns().into_iter().map(Expr::Column).collect();
    projected(groups, columns, aggregate.schema.clone())
}

/// Aggregations without groups, a row each, in one row.
fn side_by_side(
    aggregate: &Aggregate,
    kinds: &[(Option<Expr>, Vec<usize>)],
) -> Result<LogicalPlan> {
    let mut row: Option<LogicalPlan> = None;
    for (_, calls) in kinds {
        let exprs = calls.iter().map(|at| aggregate.aggr_expr[*at].clone()).collect();
        let own =
            LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input.clone(), vec![], exprs)?);
        let columns = own.schema().columns().into_iter().zip(calls);
        let named =
            columns.map(|(column, at)| Expr::Column(column).alias(format!("c{at}"))).collect();
        let own = LogicalPlan::Projection(Projection::try_new(named, Arc::new(own))?);
        row = Some(match row {
            None => own,
            Some(row) => LogicalPlanBuilder::from(row).cross_join(own)?.build()?,
        });
    }
    let row = row.ok_or_else(|| Error::internal("an aggregation without calls"))?;
    let columns = (0..aggregate.aggr_expr.len())
        .map(|at| Expr::Column(Column::new_unqualified(format!("c{at}"))));
    projected(row, columns.collect(), aggregate.schema.clone())
}

/// The call of another function with the same arguments and filter.
fn with_function(call: &AggregateFunction, func: Arc<AggregateUDF>) -> Expr {
    let AggregateFunctionParams { args, filter, .. } = call.params.clone();
    Expr::AggregateFunction(AggregateFunction::new_udf(func, args, false, filter, vec![], None))
}

/// A sum over a count as `avg` of values of this type divides them; null of no rows. Decimals are
/// cut to four more places, as DataFusion's `avg` cuts them. `None` where that might not fit.
pub(crate) fn average(sum: Expr, count: Expr, of: &DataType) -> Option<Expr> {
    let divisor = match of {
        DataType::Float64 => DataType::Float64,
        DataType::Decimal128(digits, _) if *digits <= MOST_DIGITS => DataType::Decimal128(20, 0),
        _ => return None,
    };
    Some(sum / cast(count, divisor))
}

/// Expressions as columns of these names and types.
pub(crate) fn projected(
    input: LogicalPlan,
    exprs: Vec<Expr>,
    schema: DFSchemaRef,
) -> Result<LogicalPlan> {
    let cast = |(expr, field): (Expr, &Arc<Field>)| match expr.get_type(input.schema())?
        == *field.data_type()
    {
        true => Ok(expr),
        false => expr.cast_to(field.data_type(), input.schema()),
    };
    let exprs = exprs.into_iter().zip(schema.fields()).map(cast).collect::<Result<_, _>>()?;
    Ok(LogicalPlan::Projection(Projection::try_new_with_schema(exprs, Arc::new(input), schema)?))
}
