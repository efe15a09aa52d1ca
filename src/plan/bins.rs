//! The bins of `histogram(x, low, high, count[, weight])`: so many of one width between two bounds.
//! Each holds what is not less than its lower bound and less than its upper one; the last holds
//! that, too. Null, NaN and what lies outside is in none. As NumPy's, but for values that rounding
//! takes across a bound: a value's bin is what `(x - low) * (count / (high - low))` is cut to.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::{floor, least};
use datafusion::functions_aggregate::expr_fn::{count, sum};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, cast, lit, when};

use super::aggregates::{DeviceAggregate, RegroupedCall, RegroupedKind, device_aggregate};
use super::partial::projected;
use crate::error::Error;

/// The column of bins.
const BIN: &str = "bin of histogram";

/// Bins between two bounds, by their bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HistogramBins {
    low: u64,
    high: u64,
    count: u32,
}

impl HistogramBins {
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn new(low: f64, high: f64, count: i64) -> Result<HistogramBins, String> {
        if !(low < high && (high - low).is_finite()) {
            return Err(format!(
                "histogram of bins between {low} and {high}: the bounds are finite, and so is how far the second is \
                 above the first"
            ));
        }
        let Ok(count @ 1..) = i32::try_from(count) else {
            return Err(format!(
                "histogram of {count} bins: there is one at least, and no more than {}",
                i32::MAX
            ));
        };
        let (low, high) = (low.to_bits(), high.to_bits());
        let bins = HistogramBins { low, high, count: count.unsigned_abs() };
        match bins.density().is_finite() {
            true => Ok(bins),
            false => {
                Err(format!("histogram of {count} bins: its bounds are too close for so many"))
            }
        }
    }

    /// Of the constants behind the value.
    pub(crate) fn of_constants(
        constants: [Option<&ScalarValue>; 3],
    ) -> Result<HistogramBins, String> {
        match constants {
            [
                Some(ScalarValue::Float64(Some(low))),
                Some(ScalarValue::Float64(Some(high))),
                Some(ScalarValue::Int64(Some(count))),
            ] => HistogramBins::new(*low, *high, *count),
            _ => Err(
                "histogram takes a value, and constants: two bounds, and how many bins there are"
                    .into(),
            ),
        }
    }

    fn bounds(self) -> (f64, f64) {
        (f64::from_bits(self.low), f64::from_bits(self.high))
    }

    /// How many bins a distance of one spans. Multiplying by it is faster than dividing.
    fn density(self) -> f64 {
        let (low, high) = self.bounds();
        f64::from(self.count) / (high - low)
    }

    pub(crate) fn count(self) -> u64 {
        self.count.into()
    }

    /// The bin of a value, if one holds it.
    pub(crate) fn place(self, value: f64) -> Option<usize> {
        let (low, high) = self.bounds();
        (value >= low && value <= high).then(|| {
            let place = (value - low) * self.density();
            (place as usize).min(self.count as usize - 1)
        })
    }

    /// Whether some bin holds the value of an expression, a `Float64`.
    pub(crate) fn holds(self, value: Expr) -> Expr {
        let (low, high) = self.bounds();
        value.clone().gt_eq(lit(low)).and(value.lt_eq(lit(high)))
    }

    /// The bin of a value that some bin holds, a `UInt32`.
    pub(crate) fn of(self, value: Expr) -> Expr {
        let place = (value - lit(self.bounds().0)) * lit(self.density());
        let place = least(vec![place, lit(f64::from(self.count - 1))]);
        let bin = cast(floor(place), DataType::UInt32);
        // It changes no bin, and tells the aggregation how many there are.
        bin % lit(self.count)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_holds_its_lower_bound_and_the_last_its_upper_one() {
        let bins = HistogramBins::new(0.0, 4.0, 4).expect("bins");
        let place = |value| bins.place(value);
        assert_eq!([0.0, -0.0, 0.5, 1.0, 3.999, 4.0].map(place), [0, 0, 0, 1, 3, 3].map(Some));
        assert_eq!([-0.1, 4.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(place), [None; 5]);
    }

    #[test]
    fn bins_that_are_none_are_refused() {
        for (low, high, count) in [
            (1.0, 1.0, 3),
            (2.0, 1.0, 3),
            (f64::NAN, 1.0, 3),
            (-1e308, 1e308, 3),
            (0.0, 5e-324, 3),
            (0.0, 1.0, 0),
        ] {
            assert!(
                HistogramBins::new(low, high, count).is_err_and(|why| why.contains("histogram"))
            );
        }
        assert!(
            HistogramBins::new(0.0, 1.0, -1).is_err()
                && HistogramBins::new(0.0, 1.0, 1 << 40).is_err()
        );
    }
}
