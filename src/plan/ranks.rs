//! Aggregates that need their group's values in order, as windows that tell the rows which decide:
//!
//! ```text
//!   median(v) GROUP BY k     row_number() OVER (PARTITION BY k ORDER BY v), count(v) OVER (…)
//!                            rows of the numbers in the middle      median(v) GROUP BY k
//! ```
//!
//! The order of rows that do not fit is found in parts, and few are left of it. A group whose
//! values are all null keeps a row. Histograms are of the bins that rows are grouped by
//! (`bins.rs`).

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality, ScalarValue};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::expr_fn::{max, min};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, Expr, ExprFunctionExt, ExprSchemable, Filter, Join, LogicalPlan, Projection, Window,
    WindowFrame, WindowFrameBound, WindowFrameUnits, cast, lit, when,
};
use datafusion::prelude::{ceil, col, floor};

use super::aggregates::{DeviceAggregate, RegroupedKind, device_aggregate};
use super::bins::of_bins;
use super::partial::{PartialAggregate, distinct_value, over_distinct, projected};
use crate::error::{Error, Result};

/// Columns of the windows: the value, its number among those of the group, and how many there are.
const VALUE: &str = "ranked value";
const NUMBER: &str = "ranked number";
const COUNT: &str = "ranked count";

/// Calls that are computed together.
#[derive(Debug, Clone, PartialEq)]
enum CallKind {
    /// Of partial results.
    Partial,
    /// Of the distinct ones of a value.
    Distinct(Expr),
    /// Of the values in bins.
    Bins(AggregateFunction),
    /// Of the values in the middle, or at a share of the way (the bits of a float).
    Middle(AggregateFunction, Option<u64>),
}

/// The aggregation without operators that need all rows of a group at once but windows. `None`
/// where a call is not of that kind.
///
/// # Errors
/// Of plans that do not fit together.
pub(crate) fn by_ranks(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    if matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) {
        return Ok(None);
    }
    let mut kinds: Vec<(CallKind, Vec<usize>)> = vec![];
    for at in 0..aggregate.aggr_expr.len() {
        let Some(kind) = kind_of(aggregate, at)? else { return Ok(None) };
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, calls)) => calls.push(at),
            None => kinds.push((kind, vec![at])),
        }
    }
    let keys = aggregate.group_expr.len();
    let mut joined: Option<LogicalPlan> = None;
    for (number, (kind, calls)) in kinds.iter().enumerate() {
        let own = of_calls(aggregate, calls)?;
        let own = match kind {
            CallKind::Partial => LogicalPlan::Aggregate(own),
            CallKind::Distinct(value) => over_distinct(&own, value)?,
            CallKind::Bins(call) => of_bins(&own, call)?,
            CallKind::Middle(call, share) => of_middle(&own, call, *share)?,
        };
        let columns = own.schema().columns().into_iter().enumerate();
        let name = |at: usize| {
            if at < keys { key_name(number, at) } else { format!("c{}", calls[at - keys]) }
        };
        let named = columns.map(|(at, column)| Expr::Column(column).alias(name(at))).collect();
        let own = LogicalPlan::Projection(Projection::try_new(named, own.into())?);
        joined = Some(match joined {
            None => own,
            Some(first) => {
                let on = (0..keys)
                    .map(|at| (named_column(key_name(0, at)), named_column(key_name(number, at))));
                let (on, of, by) = (on.collect(), JoinType::Inner, JoinConstraint::On);
                // A group may be that of nulls.
                let nulls = NullEquality::NullEqualsNull;
                LogicalPlan::Join(Join::try_new(
                    first.into(),
                    own.into(),
                    on,
                    None,
                    of,
                    by,
                    nulls,
                    false,
                )?)
            }
        });
    }
    let Some(joined) = joined else { return Ok(None) };
    let keys = (0..keys).map(|at| key_name(0, at));
    let columns = keys.chain((0..aggregate.aggr_expr.len()).map(|at| format!("c{at}")));
    projected(joined, columns.map(named_column).collect(), aggregate.schema.clone()).map(Some)
}

fn key_name(kind: usize, at: usize) -> String {
    format!("g{kind}_{at}")
}

fn named_column(name: String) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// The aggregation with some of its calls.
fn of_calls(aggregate: &Aggregate, calls: &[usize]) -> Result<Aggregate> {
    let exprs = calls.iter().map(|at| aggregate.aggr_expr[*at].clone()).collect();
    Ok(Aggregate::try_new(aggregate.input.clone(), aggregate.group_expr.clone(), exprs)?)
}

fn kind_of(aggregate: &Aggregate, at: usize) -> Result<Option<CallKind>> {
    let expr = &aggregate.aggr_expr[at];
    if PartialAggregate::of(&of_calls(aggregate, &[at])?).is_some() {
        return Ok(Some(CallKind::Partial));
    }
    if let Some(Some(value)) = distinct_value(expr) {
        return Ok(Some(CallKind::Distinct(value)));
    }
    let Expr::AggregateFunction(call) = expr.clone().unalias() else { return Ok(None) };
    let share = match device_aggregate(expr, aggregate.input.schema()) {
        Ok(DeviceAggregate::Regrouped(of)) => match of.kind {
            RegroupedKind::Median => None,
            RegroupedKind::Percentile(share) => Some(share),
            RegroupedKind::Histogram(_) => return Ok(Some(CallKind::Bins(call))),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(CallKind::Middle(call, share)))
}

/// An aggregation whose only calls are one of the values in the middle, several times maybe.
fn of_middle(
    aggregate: &Aggregate,
    call: &AggregateFunction,
    share: Option<u64>,
) -> Result<LogicalPlan> {
    let mut value =
        call.params.args.first().cloned().ok_or_else(|| Error::internal("a median of nothing"))?;
    let dtype = value.get_type(aggregate.input.schema())?;
    if let Some(filter) = &call.params.filter {
        let null = Expr::Literal(ScalarValue::try_from(&dtype)?, None);
        value = when(filter.as_ref().clone(), value).otherwise(null)?;
    }
    let keys = aggregate.group_expr.iter().enumerate();
    let mut exprs: Vec<Expr> = keys.map(|(at, key)| key.clone().alias(key_name(0, at))).collect();
    let keys: Vec<Expr> = (0..exprs.len()).map(|at| named_column(key_name(0, at))).collect();
    exprs.push(value.alias(VALUE));
    let mut rows = LogicalPlan::Projection(Projection::try_new(exprs, aggregate.input.clone())?);
    if call.params.distinct {
        let all = keys.iter().cloned().chain([named(VALUE)]).collect();
        rows = LogicalPlan::Aggregate(Aggregate::try_new(rows.into(), all, vec![])?);
    }
    // Both windows have one order, so that the rows are sorted once.
    let over = |function: WindowFunction, name: &str| -> Result<Expr> {
        let whole = ScalarValue::UInt64(None);
        let (from, to) =
            (WindowFrameBound::Preceding(whole.clone()), WindowFrameBound::Following(whole));
        let call = Expr::from(function)
            .partition_by(keys.clone())
            .order_by(vec![named(VALUE).sort(true, false)]);
        Ok(call
            .window_frame(WindowFrame::new_bounds(WindowFrameUnits::Rows, from, to))
            .build()?
            .alias(name))
    };
    let number = over(WindowFunction::new(row_number_udwf(), vec![]), NUMBER)?;
    let count = over(WindowFunction::new(count_udaf(), vec![named(VALUE)]), COUNT)?;
    let ranked = LogicalPlan::Window(Window::try_new(vec![number, count], rows.into())?);
    let place = cast(named(NUMBER), DataType::Int64) - lit(1i64);
    let (low, high) = match share {
        None => ((named(COUNT) - lit(1i64)) / lit(2i64), named(COUNT) / lit(2i64)),
        Some(share) => {
            (cast(floor(way(share)), DataType::Int64), cast(ceil(way(share)), DataType::Int64))
        }
    };
    let nothing = named(COUNT).eq(lit(0i64)).and(place.clone().eq(lit(0i64)));
    let deciding =
        place.clone().eq(low).or(place.eq(high)).and(named(COUNT).gt(lit(0i64))).or(nothing);
    let deciding = LogicalPlan::Filter(Filter::new(deciding, ranked.into()));
    let own = match share {
        None => Expr::AggregateFunction(AggregateFunction::new_udf(
            call.func.clone(),
            vec![named(VALUE)],
            false,
            None,
            vec![],
            None,
        )),
        Some(_) => min(named(VALUE)).alias("low"),
    };
    let mut calls = vec![own];
    if share.is_some() {
        calls.extend([max(named(VALUE)).alias("high"), max(named(COUNT)).alias(COUNT)]);
    }
    let groups = LogicalPlan::Aggregate(Aggregate::try_new(deciding.into(), keys.clone(), calls)?);
    let mut exprs: Vec<Expr> =
        groups.schema().columns().into_iter().map(Expr::Column).take(keys.len() + 1).collect();
    if let Some(share) = share {
        let weight = way(share) - floor(way(share));
        let float = |name: &str| cast(col(name), DataType::Float64);
        let between = cast(float("low") + (float("high") - float("low")) * weight.clone(), dtype);
        exprs.pop();
        exprs.push(when(weight.eq(lit(0f64)), col("low")).otherwise(between)?);
    }
    let calls =
        exprs.last().cloned().into_iter().cycle().take(aggregate.aggr_expr.len().saturating_sub(1));
    let exprs: Vec<Expr> = exprs.iter().cloned().chain(calls).collect();
    projected(groups, exprs, aggregate.schema.clone())
}

/// How far from the first value (0) the place lies, as a float.
fn way(share: u64) -> Expr {
    lit(f64::from_bits(share)) * cast(named(COUNT) - lit(1i64), DataType::Float64)
}

fn named(name: &str) -> Expr {
    named_column(name.to_string())
}
