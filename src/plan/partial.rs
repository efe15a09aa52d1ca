//! Operators in two steps: over parts of their rows, and over what these yield.
//!
//! ```text
//!   avg(x), count(*) GROUP BY d     parts    sum(x), count(x), count(*) GROUP BY d
//!                                   all      sum(p0), sum(p1), sum(p2) GROUP BY k0
//!                                   result   p0 / p1, p2
//! ```
//!
//! A partial result has the columns `k0`, `k1`, … of the keys, then `p0`, `p1`, … of the calls. To
//! merge partial results yields one of the same columns, so it may be done at any time, and again.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, DFSchema, DFSchemaRef};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Projection, Sort, SortExpr,
};

use crate::error::{Error, Result};

/// Digits of a decimal up to which sums of it have room for the four places more that an average has:
/// 38 digits hold the sum of 10¹⁰ rows.
const MOST_DIGITS: u8 = 24;
/// Functions whose partial results the function itself merges.
const MERGEABLE: [&str; 8] = ["sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"];

/// An operator in two steps.
#[derive(Debug, Clone)]
pub(crate) enum TwoSteps {
    Aggregate(Box<PartialAggregate>),
    Distinct,
    /// The first rows by an order.
    Top {
        keys: Vec<SortExpr>,
        fetch: usize,
    },
}

impl TwoSteps {
    /// What is to be done with a part of the rows.
    ///
    /// # Errors
    /// Of plans that do not fit together.
    pub(crate) fn partial(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        match self {
            TwoSteps::Aggregate(aggregate) => aggregate.partial(input),
            _ => self.merged(input),
        }
    }

    /// What makes one partial result of several.
    ///
    /// # Errors
    /// Of plans that do not fit together.
    pub(crate) fn merged(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        match self {
            TwoSteps::Aggregate(aggregate) => aggregate.merged(input),
            TwoSteps::Distinct => Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(input)))),
            TwoSteps::Top { keys, fetch } => {
                Ok(LogicalPlan::Sort(Sort { expr: keys.clone(), input: Arc::new(input), fetch: Some(*fetch) }))
            }
        }
    }

    /// What makes the result of partial results.
    ///
    /// # Errors
    /// Of plans that do not fit together.
    pub(crate) fn finished(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        match self {
            TwoSteps::Aggregate(aggregate) => aggregate.finished(input),
            _ => self.merged(input),
        }
    }

    /// Columns of a partial result whose values tell groups apart: rows of different values are
    /// merged apart. `None` where all partial results are merged at once.
    pub(crate) fn keys(&self, partial: &DFSchema) -> Option<Vec<Expr>> {
        let count = match self {
            TwoSteps::Aggregate(aggregate) => aggregate.keys,
            TwoSteps::Distinct => partial.fields().len(),
            TwoSteps::Top { .. } => 0,
        };
        let keys: Vec<Expr> = partial.columns().into_iter().take(count).map(Expr::Column).collect();
        (!keys.is_empty()).then_some(keys)
    }
}

/// An aggregation in two steps.
#[derive(Debug, Clone)]
pub(crate) struct PartialAggregate {
    groups: Vec<Expr>,
    /// Columns of keys; with grouping sets there is one that tells the sets apart.
    keys: usize,
    calls: Vec<Expr>,
    merges: Vec<Arc<AggregateUDF>>,
    /// What each of the aggregation's calls is, by the numbers of partial calls.
    results: Vec<PartialResult>,
    schema: DFSchemaRef,
}

/// How a call's result follows from partial calls.
#[derive(Debug, Clone, Copy)]
enum PartialResult {
    Call(usize),
    Average { sum: usize, count: usize },
}

impl PartialAggregate {
    /// `None` where a call needs all rows of its group at once.
    pub(crate) fn of(aggregate: &Aggregate) -> Option<PartialAggregate> {
        let keys = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
        let (groups, schema) = (aggregate.group_expr.clone(), aggregate.schema.clone());
        let mut of = PartialAggregate { groups, keys, calls: vec![], merges: vec![], results: vec![], schema };
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
                let divides = match arg.get_type(input).ok()? {
                    DataType::Float64 => true,
                    DataType::Decimal128(digits, _) => digits <= MOST_DIGITS,
                    _ => false,
                };
                let of = |func| with_function(call, func);
                divides.then(|| PartialResult::Average {
                    sum: self.call(of(sum_udaf()), sum_udaf()),
                    count: self.call(of(count_udaf()), sum_udaf()),
                })
            }
            "count" | "regr_count" => {
                Some(PartialResult::Call(self.call(Expr::AggregateFunction(call.clone()), sum_udaf())))
            }
            _ if MERGEABLE.contains(&name) => {
                let own = Expr::AggregateFunction(call.clone());
                Some(PartialResult::Call(self.call(own, call.func.clone())))
            }
            _ => None,
        }
    }

    /// The number of a partial call, which is made once.
    fn call(&mut self, call: Expr, merge: Arc<AggregateUDF>) -> usize {
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

    fn partial(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        let aggregate = Aggregate::try_new(Arc::new(input), self.groups.clone(), self.calls.clone())?;
        let fields = aggregate.schema.fields().iter().enumerate();
        let fields = fields.map(|(at, field)| Field::new(self.name(at), field.data_type().clone(), true));
        let schema = DFSchema::from_unqualified_fields(fields.collect(), Default::default())?;
        let columns = aggregate.schema.columns().into_iter().map(Expr::Column).collect();
        let input = Arc::new(LogicalPlan::Aggregate(aggregate));
        Ok(LogicalPlan::Projection(Projection::try_new_with_schema(columns, input, Arc::new(schema))?))
    }

    fn merged(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        let schema = input.schema().clone();
        let columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
        let (keys, calls) = columns.split_at(self.keys);
        let merge = |(call, merge): (&Expr, &Arc<AggregateUDF>)| merge.call(vec![call.clone()]);
        let calls = calls.iter().zip(&self.merges).map(merge).collect();
        let merged = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), keys.to_vec(), calls)?);
        let exprs = merged.schema().columns().into_iter().map(Expr::Column).collect();
        projected(merged, exprs, schema)
    }

    fn finished(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        let merged = self.merged(input)?;
        let columns: Vec<Expr> = merged.schema().columns().into_iter().map(Expr::Column).collect();
        let (keys, calls) = columns.split_at(self.keys);
        let mut exprs = keys.to_vec();
        for result in &self.results {
            exprs.push(match *result {
                PartialResult::Call(at) => calls[at].clone(),
                PartialResult::Average { sum, count } => average(&calls[sum], &calls[count], merged.schema())?,
            });
        }
        projected(merged, exprs, self.schema.clone())
    }
}

/// Calls of distinct values, as calls over the groups of an aggregation by the keys and these values:
/// that has two steps. Without keys there may be calls of other values, and of all rows: each kind is
/// an aggregation of its own, and these are put side by side. `None` for other aggregations.
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
fn distinct_value(expr: &Expr) -> Option<Option<Expr>> {
    let Expr::AggregateFunction(call) = expr.clone().unalias() else { return None };
    let (name, params) = (call.func.name(), &call.params);
    if !params.distinct || matches!(name, "min" | "max") {
        let mergeable = matches!(name, "count" | "regr_count" | "avg") || MERGEABLE.contains(&name);
        return mergeable.then_some(None);
    }
    let plain = params.filter.is_none() && params.order_by.is_empty() && matches!(name, "count" | "sum" | "avg");
    match params.args.as_slice() {
        [value] if plain => Some(Some(value.clone())),
        _ => None,
    }
}

/// An aggregation whose calls are all of the distinct ones of a value.
fn over_distinct(aggregate: &Aggregate, value: &Expr) -> Result<LogicalPlan> {
    let keys = aggregate.group_expr.iter().cloned().chain([value.clone()]).collect();
    let values = LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input.clone(), keys, vec![])?);
    let mut columns: Vec<Expr> = values.schema().columns().into_iter().map(Expr::Column).collect();
    let value = columns.pop();
    let of_values = aggregate.aggr_expr.iter().map(|expr| match expr.clone().unalias() {
        Expr::AggregateFunction(mut call) => {
            call.params.distinct = false;
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
fn side_by_side(aggregate: &Aggregate, kinds: &[(Option<Expr>, Vec<usize>)]) -> Result<LogicalPlan> {
    let mut row: Option<LogicalPlan> = None;
    for (_, calls) in kinds {
        let exprs = calls.iter().map(|at| aggregate.aggr_expr[*at].clone()).collect();
        let own = LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input.clone(), vec![], exprs)?);
        let columns = own.schema().columns().into_iter().zip(calls);
        let named = columns.map(|(column, at)| Expr::Column(column).alias(format!("c{at}"))).collect();
        let own = LogicalPlan::Projection(Projection::try_new(named, Arc::new(own))?);
        row = Some(match row {
            None => own,
            Some(row) => LogicalPlanBuilder::from(row).cross_join(own)?.build()?,
        });
    }
    let row = row.ok_or_else(|| Error::internal("an aggregation without calls"))?;
    let columns = (0..aggregate.aggr_expr.len()).map(|at| Expr::Column(Column::new_unqualified(format!("c{at}"))));
    projected(row, columns.collect(), aggregate.schema.clone())
}

/// The call of another function with the same arguments and filter.
fn with_function(call: &AggregateFunction, func: Arc<AggregateUDF>) -> Expr {
    let AggregateFunctionParams { args, filter, .. } = call.params.clone();
    Expr::AggregateFunction(AggregateFunction::new_udf(func, args, false, filter, vec![], None))
}

/// A sum over a count as `avg` divides them; null of no rows. Decimals are cut to four more places,
/// as DataFusion's `avg` cuts them.
fn average(sum: &Expr, count: &Expr, schema: &DFSchema) -> Result<Expr> {
    let divisor = match sum.get_type(schema)? {
        DataType::Decimal128(..) => DataType::Decimal128(20, 0),
        _ => DataType::Float64,
    };
    Ok(sum.clone() / count.clone().cast_to(&divisor, schema)?)
}

/// Expressions as columns of these names and types.
fn projected(input: LogicalPlan, exprs: Vec<Expr>, schema: DFSchemaRef) -> Result<LogicalPlan> {
    let cast = |(expr, field): (Expr, &Arc<Field>)| match expr.get_type(input.schema())? == *field.data_type() {
        true => Ok(expr),
        false => expr.cast_to(field.data_type(), input.schema()),
    };
    let exprs = exprs.into_iter().zip(schema.fields()).map(cast).collect::<Result<_, _>>()?;
    Ok(LogicalPlan::Projection(Projection::try_new_with_schema(exprs, Arc::new(input), schema)?))
}
