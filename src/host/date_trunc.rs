//! `date_trunc` for all of a type's range.
//!
//! DataFusion's (55.2) goes through nanoseconds, which end in the years 1677 and 2262, and makes
//! them of dates. Here a date becomes a timestamp in microseconds, and timestamps without a zone in
//! coarser units than nanoseconds are cut down in these, within Arrow's calendar. Of one in
//! nanoseconds the decade, century or millennium is in microseconds, for it may begin before 1677.
//! The rest is DataFusion's.

use std::sync::{Arc, LazyLock};

use chrono::{Datelike, NaiveDate};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::cast as arrow_cast;
use datafusion::arrow::datatypes::{
    ArrowTimestampType, DataType, Field, FieldRef, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};

pub(crate) fn date_trunc() -> Arc<ScalarUDF> {
    static SHARED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        let inner = datafusion::functions::datetime::date_trunc();
        Arc::new(ScalarUDF::from(DateTrunc { inner, signature }))
    });
    SHARED.clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateTrunc {
    inner: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for DateTrunc {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [part, time] = types else {
            return plan_err!("date_trunc takes a unit and a time, not {} arguments", types.len());
        };
        if !(part.is_string() || part.is_null()) {
            return plan_err!("date_trunc takes the name of a unit such as 'month', not {part}");
        }
        Ok(vec![part.clone(), taken_as(time)?])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        taken_as(&types[1])
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let [part, time] = args.arg_fields else { return self.inner.return_field_from_args(args) };
        let name = args.scalar_arguments.first().copied().flatten();
        if !begins_early(name, time.data_type()) {
            return self.inner.return_field_from_args(args);
        }
        let nullable = part.is_nullable() || time.is_nullable();
        Ok(Arc::new(Field::new(self.name(), MICROS, nullable)))
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let [Expr::Literal(part, _), time] = &args[..] else {
            return Ok(ExprSimplifyResult::Original(args));
        };
        if !begins_early(Some(part), &time.get_type(context.schema())?) {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let args = vec![args[0].clone(), cast(time.clone(), MICROS)];
        Ok(ExprSimplifyResult::Simplified(date_trunc().call(args)))
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(input)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(part), time] = args.args.as_slice() else {
            return self.inner.invoke_with_args(args);
        };
        let DataType::Timestamp(unit, None) = time.data_type() else {
            return self.inner.invoke_with_args(args);
        };
        let Some(part) = part.try_as_str().flatten().and_then(Coarse::of) else {
            return self.inner.invoke_with_args(args);
        };
        if unit == TimeUnit::Nanosecond && !matches!(part, Coarse::Years(_)) {
            return self.inner.invoke_with_args(args);
        }
        // A constant has its value in batches without rows, too.
        let array = match time {
            ColumnarValue::Scalar(time) => time.to_array()?,
            ColumnarValue::Array(times) => times.clone(),
        };
        let found = match unit {
            TimeUnit::Nanosecond if matches!(part, Coarse::Years(_)) => {
                cut::<TimestampMicrosecondType>(&arrow_cast(&array, &MICROS)?, part, 1_000_000)?
            }
            TimeUnit::Second => cut::<TimestampSecondType>(&array, part, 1)?,
            TimeUnit::Millisecond => cut::<TimestampMillisecondType>(&array, part, 1_000)?,
            TimeUnit::Microsecond => cut::<TimestampMicrosecondType>(&array, part, 1_000_000)?,
            TimeUnit::Nanosecond => cut::<TimestampNanosecondType>(&array, part, 1_000_000_000)?,
        };
        match time {
            ColumnarValue::Scalar(_) => {
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?))
            }
            ColumnarValue::Array(_) => Ok(ColumnarValue::Array(found)),
        }
    }
}

const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Whether the part of a time in nanoseconds may begin where these do not reach.
fn begins_early(part: Option<&ScalarValue>, time: &DataType) -> bool {
    let part = part.and_then(|part| part.try_as_str().flatten()).and_then(Coarse::of);
    matches!(part, Some(Coarse::Years(_)))
        && *time == DataType::Timestamp(TimeUnit::Nanosecond, None)
}

/// The type that a time is cut down in.
fn taken_as(time: &DataType) -> Result<DataType> {
    match time {
        DataType::Timestamp(_, _) | DataType::Time32(_) | DataType::Time64(_) => Ok(time.clone()),
        DataType::Date32 | DataType::Date64 => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
        DataType::Null => Ok(DataType::Timestamp(TimeUnit::Nanosecond, None)),
        text if text.is_string() => Ok(DataType::Timestamp(TimeUnit::Nanosecond, None)),
        DataType::Dictionary(_, values) => taken_as(values),
        other => plan_err!("date_trunc takes a date, a timestamp or a time, not {other}"),
    }
}

/// Units for which DataFusion goes through nanoseconds, and those of several years, which it has
/// not.
#[derive(Debug, Clone, Copy)]
enum Coarse {
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    /// Units of so many years from the year 0 on, as in DuckDB: 2000 begins a century.
    Years(i32),
}

impl Coarse {
    fn of(name: &str) -> Option<Coarse> {
        Some(match name.to_lowercase().as_str() {
            "hour" => Coarse::Hour,
            "day" => Coarse::Day,
            "week" => Coarse::Week,
            "month" => Coarse::Month,
            "quarter" => Coarse::Quarter,
            "year" => Coarse::Year,
            "decade" => Coarse::Years(10),
            "century" => Coarse::Years(100),
            "millennium" => Coarse::Years(1_000),
            _ => return None,
        })
    }
}

fn cut<T: ArrowTimestampType>(array: &dyn Array, part: Coarse, second: i64) -> Result<ArrayRef> {
    let cut = |ticks: i64| match of_ticks(ticks, part, second) {
        Some(start) => Ok(start),
        None => exec_err!("Arithmetic overflow: date_trunc of {ticks} leaves the calendar"),
    };
    let found: PrimitiveArray<T> = array.as_primitive::<T>().try_unary(cut)?;
    Ok(Arc::new(found))
}

/// The start of the part that a time is in.
fn of_ticks(ticks: i64, part: Coarse, second: i64) -> Option<i64> {
    let floor = |length: i64| ticks.checked_sub(ticks.rem_euclid(length));
    let length = 86_400 * second;
    match part {
        Coarse::Hour => return floor(3_600 * second),
        Coarse::Day => return floor(length),
        _ => {}
    }
    let number = i32::try_from(ticks.div_euclid(length)).ok()?;
    let day = NaiveDate::from_epoch_days(number)?;
    let start = match part {
        Coarse::Week => {
            let since = i32::try_from(day.weekday().num_days_from_monday()).ok()?;
            NaiveDate::from_epoch_days(number - since)?
        }
        Coarse::Month => day.with_day(1)?,
        Coarse::Quarter => day.with_day(1)?.with_month(day.month0() / 3 * 3 + 1)?,
        Coarse::Years(years) => NaiveDate::from_ymd_opt(day.year() / years * years, 1, 1)?,
        _ => NaiveDate::from_ymd_opt(day.year(), 1, 1)?,
    };
    i64::from(start.to_epoch_days()).checked_mul(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_cut_down_within_the_calendar() {
        let day = |year, month, day| {
            i64::from(NaiveDate::from_ymd_opt(year, month, day).expect("a date").to_epoch_days())
        };
        let at = day(1600, 8, 17) * 86_400 + 40_000;
        for (part, start) in [
            (Coarse::Year, day(1600, 1, 1)),
            (Coarse::Years(1_000), day(1000, 1, 1)),
            (Coarse::Quarter, day(1600, 7, 1)),
            (Coarse::Month, day(1600, 8, 1)),
            (Coarse::Week, day(1600, 8, 14)),
            (Coarse::Day, day(1600, 8, 17)),
        ] {
            assert_eq!(of_ticks(at, part, 1), Some(start * 86_400), "{part:?}");
        }
        assert_eq!(of_ticks(at, Coarse::Hour, 1), Some(at - 400));
        assert_eq!(of_ticks(i64::MAX, Coarse::Year, 1), None);
        assert_eq!(of_ticks(i64::MIN, Coarse::Day, 1_000_000), None);
    }
}
