//! Functions of intervals, as PostgreSQL and DuckDB have them.
//!
//! `justified(i)` has 24 hours for a day and 30 days for a month, all parts of one sign: equal
//! intervals are one value then, and the others are ordered by their parts.
//!
//! ```text
//!   justified(INTERVAL '36 hours') = 1 day 12 hours     justified(INTERVAL '-40 days') = -1 month -10 days
//! ```
//!
//! `interval_part('hour', i)` is a part of an interval, or of the distance of two timestamps, which
//! has days and parts of a day: that of 49 hours has one hour. DataFusion's (55.2) `date_part` takes
//! all hours of a distance.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, IntervalMonthDayNanoArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, TimeUnit,
};
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::calls::HostCall;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAY: i64 = 86_400_000_000_000;

pub(crate) fn justified(interval: Expr) -> Expr {
    static SHARED: LazyLock<Arc<ScalarUDF>> =
        LazyLock::new(|| Arc::new(ScalarUDF::from(IntervalFunction::new(IntervalWork::Justified))));
    SHARED.call(vec![interval])
}

/// A part of an interval or a duration. `None` of what is no part of one.
pub(crate) fn interval_part(part: &str, of: Expr) -> Option<Expr> {
    let part = IntervalPart::of(part)?;
    Some(ScalarUDF::from(IntervalFunction::new(IntervalWork::Part(part))).call(vec![of]))
}

/// The part that a function is of.
pub(crate) fn part_of(function: &ScalarUDF) -> Option<IntervalPart> {
    match function.inner().downcast_ref::<IntervalFunction>()?.work {
        IntervalWork::Part(part) => Some(part),
        IntervalWork::Justified => None,
    }
}

/// Parts of intervals. In kernels they have the same numbers (`kernels/interval.cuh`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum IntervalPart {
    Millennium,
    Century,
    Decade,
    Year,
    Quarter,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    /// Seconds, of which a year has 365.25 days and a month 30.
    Epoch,
}

impl IntervalPart {
    fn of(name: &str) -> Option<IntervalPart> {
        use IntervalPart::*;
        Some(match name.trim_matches(['\'', '"']).to_lowercase().as_str() {
            "millennium" | "millennia" | "millenniums" | "mil" => Millennium,
            "century" | "centuries" | "c" | "cent" => Century,
            "decade" | "decades" | "dec" | "decs" => Decade,
            "year" | "years" | "y" | "yr" | "yrs" => Year,
            "quarter" | "quarters" | "qtr" => Quarter,
            "month" | "months" | "mon" | "mons" => Month,
            "day" | "days" | "d" => Day,
            "hour" | "hours" | "h" | "hr" | "hrs" => Hour,
            "minute" | "minutes" | "m" | "min" | "mins" => Minute,
            "second" | "seconds" | "s" | "sec" | "secs" => Second,
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => Millisecond,
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => Microsecond,
            "nanosecond" | "nanoseconds" | "ns" => Nanosecond,
            "epoch" => Epoch,
            _ => return None,
        })
    }

    /// The type of the part, that of `date_part`.
    fn dtype(self) -> DataType {
        match self {
            IntervalPart::Epoch => DataType::Float64,
            IntervalPart::Nanosecond => DataType::Int64,
            _ => DataType::Int32,
        }
    }

    fn value(self, of: IntervalMonthDayNano) -> i64 {
        use IntervalPart::*;
        let (months, nanos) = (i64::from(of.months), of.nanoseconds);
        match self {
            Millennium => months / 12_000,
            Century => months / 1200,
            Decade => months / 120,
            Year => months / 12,
            Quarter => months % 12 / 3 + 1,
            Month => months % 12,
            Day => of.days.into(),
            Hour => nanos / 3_600_000_000_000,
            Minute => nanos % 3_600_000_000_000 / 60_000_000_000,
            Second => nanos % 60_000_000_000 / 1_000_000_000,
            Millisecond => nanos % 60_000_000_000 / 1_000_000,
            Microsecond => nanos % 60_000_000_000 / 1_000,
            Nanosecond => nanos % 60_000_000_000,
            Epoch => 0,
        }
    }
}

fn epoch(of: IntervalMonthDayNano) -> f64 {
    let days =
        f64::from(of.months / 12) * 365.25 + f64::from(of.months % 12) * 30.0 + f64::from(of.days);
    days * 86_400.0 + of.nanoseconds as f64 / 1e9
}

/// The interval's length in months of 30 days and days of 24 hours. A length beyond these parts
/// becomes the longest.
fn justify(of: IntervalMonthDayNano) -> IntervalMonthDayNano {
    let day = i128::from(DAY);
    let length =
        (i128::from(of.months) * 30 + i128::from(of.days)) * day + i128::from(of.nanoseconds);
    let months = length / (30 * day);
    match i32::try_from(months) {
        Ok(months) => {
            let rest = length % (30 * day);
            IntervalMonthDayNano::new(months, (rest / day) as i32, (rest % day) as i64)
        }
        Err(_) if months > 0 => IntervalMonthDayNano::new(i32::MAX, i32::MAX, i64::MAX),
        Err(_) => IntervalMonthDayNano::new(i32::MIN, i32::MIN, i64::MIN),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum IntervalWork {
    Justified,
    Part(IntervalPart),
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalFunction {
    work: IntervalWork,
    signature: Signature,
}

impl IntervalFunction {
    fn new(work: IntervalWork) -> IntervalFunction {
        IntervalFunction { work, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for IntervalFunction {
    fn name(&self) -> &str {
        match self.work {
            IntervalWork::Justified => "justified",
            IntervalWork::Part(_) => "interval_part",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let of = args[0].schema_name();
        Ok(match self.work {
            IntervalWork::Justified => of.to_string(),
            IntervalWork::Part(part) => format!("{part:?}({of})"),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match (self.work, types) {
            (IntervalWork::Justified, [INTERVAL | DataType::Duration(_)]) => Ok(INTERVAL),
            (IntervalWork::Part(part), [INTERVAL | DataType::Duration(_)]) => Ok(part.dtype()),
            _ => plan_err!("{} takes an interval", self.name()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let of = &args.arg_fields[0];
        let dtype = self.return_type(&[of.data_type().clone()])?;
        Ok(Arc::new(Field::new(self.name(), dtype, of.is_nullable())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = HostCall::of(&args)?;
        let intervals = intervals(&call.arrays[0])?;
        let found: ArrayRef = match self.work {
            IntervalWork::Justified => {
                Arc::new(intervals.unary::<_, IntervalMonthDayNanoType>(justify))
            }
            IntervalWork::Part(IntervalPart::Epoch) => {
                Arc::new(intervals.iter().map(|of| of.map(epoch)).collect::<Float64Array>())
            }
            IntervalWork::Part(part) => {
                let values = intervals.iter().map(|of| of.map(|of| part.value(of)));
                cast(&(Arc::new(values.collect::<Int64Array>()) as ArrayRef), &part.dtype())?
            }
        };
        call.yields(found)
    }
}

/// The intervals of an array; durations have days and parts of a day.
fn intervals(array: &ArrayRef) -> Result<IntervalMonthDayNanoArray> {
    let per_second = match array.data_type() {
        DataType::Duration(TimeUnit::Second) => 1,
        DataType::Duration(TimeUnit::Millisecond) => 1_000,
        DataType::Duration(TimeUnit::Microsecond) => 1_000_000,
        DataType::Duration(TimeUnit::Nanosecond) => 1_000_000_000,
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            return Ok(array.as_primitive::<IntervalMonthDayNanoType>().clone());
        }
        other => return internal_err!("an interval of {other}"),
    };
    let ticks = cast(array, &DataType::Int64)?;
    let (per_day, tick) = (86_400 * per_second, 1_000_000_000 / per_second);
    let clamped = |days: i64| days.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
    let of =
        |ticks: i64| IntervalMonthDayNano::new(0, clamped(ticks / per_day), ticks % per_day * tick);
    Ok(ticks.as_primitive::<Int64Type>().unary(of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn justified_intervals_are_ordered_by_their_lengths() {
        let of = IntervalMonthDayNano::new;
        let hour = 3_600_000_000_000;
        for (interval, expected) in [
            (of(0, 0, 36 * hour), of(0, 1, 12 * hour)),
            (of(0, -40, 0), of(-1, -10, 0)),
            (of(1, -30, -1), of(0, 0, -1)),
            (of(-1, 31, 0), of(0, 1, 0)),
            (of(i32::MAX, i32::MAX, 0), of(i32::MAX, i32::MAX, i64::MAX)),
        ] {
            assert_eq!(justify(interval), expected);
        }
        let lengths = [of(-1, 0, 0), of(0, -1, -hour), of(0, 0, -hour), of(0, 0, 0), of(0, 30, 0)];
        assert!(lengths.map(justify).is_sorted());
        assert_eq!(justify(of(0, 30, 0)), justify(of(1, 0, 0)));
    }
}
