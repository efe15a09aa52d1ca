//! `interval_times(i, n)`: an interval so many times, `INTERVAL '1 day' * n` in SQL.
//!
//! A whole number multiplies each part. Of a fraction what is left of a month becomes days, each a
//! thirtieth of it, to the millionth of a day, and what is left of a day becomes a part of the day,
//! to the microsecond, as in PostgreSQL and DuckDB. `kernels/interval.cuh` has the same.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, AsArray, IntervalMonthDayNanoArray};
use datafusion::arrow::datatypes::{
    DataType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::calls::HostCall;

pub(crate) fn interval_times() -> Arc<ScalarUDF> {
    static SHARED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(IntervalTimes { signature }))
    });
    SHARED.clone()
}

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAY_NANOS: i64 = 86_400_000_000_000;

#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalTimes {
    signature: Signature,
}

impl ScalarUDFImpl for IntervalTimes {
    fn name(&self) -> &str {
        "interval_times"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Interval(_) | DataType::Null, factor] => match factor {
                DataType::Null => Ok(vec![INTERVAL, DataType::Int64]),
                integer if integer.is_integer() => Ok(vec![INTERVAL, DataType::Int64]),
                number if number.is_numeric() => Ok(vec![INTERVAL, DataType::Float64]),
                other => plan_err!("an interval is multiplied by a number, not by {other}"),
            },
            _ => plan_err!("interval_times takes an interval and a number"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = HostCall::of(&args)?;
        let [intervals, factors] = call.arrays.as_slice() else {
            return internal_err!("interval_times of {} arguments", call.arrays.len());
        };
        let intervals = intervals.as_primitive::<IntervalMonthDayNanoType>();
        let product = |row: usize| -> Result<Option<IntervalMonthDayNano>> {
            if intervals.is_null(row) || factors.is_null(row) {
                return Ok(None);
            }
            let interval = intervals.value(row);
            let (found, factor) = match factors.data_type() {
                DataType::Int64 => {
                    let factor = factors.as_primitive::<Int64Type>().value(row);
                    (times(interval, factor), factor.to_string())
                }
                _ => {
                    let factor = factors.as_primitive::<Float64Type>().value(row);
                    (times_fraction(interval, factor), factor.to_string())
                }
            };
            match found {
                Some(found) => Ok(Some(found)),
                None => {
                    let shown = ScalarValue::IntervalMonthDayNano(Some(interval));
                    exec_err!("Arithmetic overflow: {shown} times {factor} is no interval")
                }
            }
        };
        let found = (0..call.rows).map(product).collect::<Result<IntervalMonthDayNanoArray>>()?;
        call.yields(Arc::new(found))
    }
}

fn times(interval: IntervalMonthDayNano, factor: i64) -> Option<IntervalMonthDayNano> {
    let part = |part: i32| i32::try_from(i64::from(part).checked_mul(factor)?).ok();
    Some(IntervalMonthDayNano {
        months: part(interval.months)?,
        days: part(interval.days)?,
        nanoseconds: interval.nanoseconds.checked_mul(factor)?,
    })
}

/// Nanoseconds are multiplied by the whole part exactly, and by the rest to the nearest.
fn times_fraction(interval: IntervalMonthDayNano, factor: f64) -> Option<IntervalMonthDayNano> {
    // Not NaN either.
    let holds = |value: f64| value.abs() < 9_223_372_036_854_775_808.0;
    if !holds(factor) {
        return None;
    }
    // What is left of a part, in units of so many nanoseconds.
    let split = |part: i32, units: f64, nanos: i64| {
        let product = f64::from(part) * factor;
        let whole = product.trunc();
        (whole, ((product - whole) * units).round() as i64 * nanos)
    };
    let (months, of_months) = split(interval.months, 30e6, 86_400_000);
    let (days, of_days) = split(interval.days, 86_400e6, 1000);
    if months.abs() > 2_147_483_647.0 || days.abs() > 2_147_483_647.0 {
        return None;
    }
    let whole = factor.trunc();
    let rest = (interval.nanoseconds as f64 * (factor - whole)).round() as i64;
    let nanos = i128::from(interval.nanoseconds) * i128::from(whole as i64)
        + i128::from(rest)
        + i128::from(of_days)
        + i128::from(of_months % DAY_NANOS);
    Some(IntervalMonthDayNano {
        months: months as i32,
        days: i32::try_from(days as i64 + of_months / DAY_NANOS).ok()?,
        nanoseconds: i64::try_from(nanos).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What DuckDB says of them.
    #[test]
    fn fractions_of_months_are_days_and_of_days_hours() {
        let hours = |hours: i64| hours * 3_600_000_000_000;
        let of = IntervalMonthDayNano::new;
        for (interval, factor, expected) in [
            (of(1, 2, 0), 1.5, of(1, 18, 0)),
            (of(0, 1, 0), 1.5, of(0, 1, hours(12))),
            (of(1, 0, 0), 1.0 / 3.0, of(0, 10, 0)),
            (of(-1, 0, 0), 0.25, of(0, -7, -hours(12))),
            (of(0, 0, hours(1)), 1.5, of(0, 0, hours(1) + hours(1) / 2)),
            (of(1, 0, 0), -1.0 / 13.0, of(0, -2, -26_584_588_800_000)),
            (of(7, 3, 5), 0.0, of(0, 0, 0)),
        ] {
            assert_eq!(times_fraction(interval, factor), Some(expected), "{interval:?} × {factor}");
        }
        assert_eq!(times_fraction(of(1, 0, 0), f64::NAN), None);
        assert_eq!(times_fraction(of(0, 0, 1), 1e19), None);
        assert_eq!(times(of(1 << 30, 0, 0), 2), None);
        assert_eq!(times(of(0, 0, i64::MAX), -1), Some(of(0, 0, -i64::MAX)));
    }
}
