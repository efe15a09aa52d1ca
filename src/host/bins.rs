//! The bins of `histogram(x, low, high, count[, weight])`: so many of one width between two bounds.
//! Each holds what is not less than its lower bound and less than its upper one; the last holds
//! that, too. Null, NaN and what lies outside is in none. As NumPy's, but for values that rounding
//! takes across a bound: a value's bin is what `(x - low) * (count / (high - low))` is cut to.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::{floor, least};
use datafusion::logical_expr::{Expr, cast, lit};

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
