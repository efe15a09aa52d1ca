//! `histogram` on the device: groups by the keys and the bin, whose counts become lists.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, cast, lit, when};

use super::aggregates::{DeviceAggregate, RegroupedCall, RegroupedKind, device_aggregate};
use super::partial::projected;
use crate::error::Error;

/// The column of bins.
const BIN: &str = "bin of histogram";

/// An aggregation whose only calls are one histogram, several times maybe, as one over groups by
/// the keys and the bin: what each bin has is counted in two steps.
///
/// # Errors
/// Of calls that are no histograms, and of plans that do not fit together.
pub(super) fn of_bins(
    aggregate: &Aggregate,
    call: &AggregateFunction,
) -> crate::error::Result<LogicalPlan> {
    let device = device_aggregate(&Expr::AggregateFunction(call.clone()), aggregate.input.schema());
    let Ok(DeviceAggregate::Regrouped(RegroupedCall {
        kind: RegroupedKind::Histogram(bins),
        args,
        filter,
        ..
    })) = device
    else {
        return Err(Error::internal("a histogram that is none"));
    };
    let (x, weight) = match args.as_slice() {
        [x] => (x.clone(), None),
        [x, weight] => (x.clone(), Some(weight.clone())),
        _ => {
            return Err(Error::internal(
                "a histogram of a number of arguments that the planner let pass",
            ));
        }
    };
    // Rows of no bin keep their group.
    let inside =
        filter.into_iter().chain([bins.holds(x.clone())]).reduce(Expr::and).unwrap_or(lit(true));
    let bin = when(inside, bins.of(x)).otherwise(Expr::Literal(ScalarValue::UInt32(None), None))?;
    let keys = aggregate.group_expr.iter().cloned().chain([bin.alias(BIN)]).collect();
    let sums = vec![weight.map_or_else(|| count(lit(1)), sum)];
    let groups = LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input.clone(), keys, sums)?);
    let mut columns: Vec<Expr> = groups.schema().columns().into_iter().map(Expr::Column).collect();
    let (sums, bin) = (columns.pop(), columns.pop());
    let middle = bin.map(|bin| cast(bin, DataType::Float64) + lit(0.5));
    let (bounds, number) = ([lit(0.0), lit(bins.count() as f64)], lit(bins.count() as i64));
    let weight = sums.map(|sum| cast(sum, DataType::Float64));
    let args = middle.into_iter().chain(bounds).chain([number]).chain(weight).collect();
    let own = AggregateFunction::new_udf(call.func.clone(), args, false, None, vec![], None);
    let calls = vec![Expr::AggregateFunction(own).alias("bins")];
    let keys = columns.len();
    let lists = LogicalPlan::Aggregate(Aggregate::try_new(groups.into(), columns, calls)?);
    let mut exprs: Vec<Expr> = lists.schema().columns().into_iter().map(Expr::Column).collect();
    let again = exprs[keys].clone();
    exprs.resize(keys + aggregate.aggr_expr.len(), again);
    projected(lists, exprs, aggregate.schema.clone())
}
