//! Instants of local times that the clocks of a zone leave out, or show twice. Arrow (59.3) has
//! none for them; here, as in PostgreSQL and DuckDB, such a query goes on.
//!
//! ```text
//!   2024-03-10 02:30 in New York    left out: as if clocks had not changed, 03:30 EDT
//!   2024-11-03 01:30 in New York    twice: the last, EST; moved by an interval, the one that has
//!                                   the offset of what is moved
//! ```

use std::sync::Arc;

use chrono::offset::LocalResult;
use chrono::{DateTime, Days, Duration, FixedOffset, Months, NaiveDateTime, Offset, TimeZone, Utc};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, PrimitiveArray, StringViewArray,
};
use datafusion::arrow::compute::kernels::cast_utils::string_to_datetime;
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    ArrowTimestampType, DataType, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::temporal_conversions::{as_datetime, as_datetime_with_timezone};
use datafusion::common::format::DEFAULT_CAST_OPTIONS;
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

/// Runs `$body` with the type of timestamps of a unit as `$T`.
macro_rules! by_unit {
    ($unit:expr, $T:ident, $body:expr) => {
        match $unit {
            TimeUnit::Second => {
                type $T = TimestampSecondType;
                $body
            }
            TimeUnit::Millisecond => {
                type $T = TimestampMillisecondType;
                $body
            }
            TimeUnit::Microsecond => {
                type $T = TimestampMicrosecondType;
                $body
            }
            TimeUnit::Nanosecond => {
                type $T = TimestampNanosecondType;
                $body
            }
        }
    };
}

/// Whether a cast is one of local times to instants of a zone.
pub(super) fn shows(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    let changes = matches!(to, Timestamp(_, Some(zone)) if !is_fixed(zone));
    changes && matches!(from, Date32 | Timestamp(_, None))
}

/// Whether a text is the name of a zone.
pub(super) fn is_known(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.parse::<Tz>().is_ok()
}

/// Whether clocks of a zone do not change.
fn is_fixed(zone: &str) -> bool {
    zone == "UTC" || zone.starts_with(['+', '-'])
}

/// When clocks show a local time; of two, the one that is `near` UTC, or the last.
pub(super) fn instant(
    zone: &Tz,
    local: NaiveDateTime,
    near: Option<FixedOffset>,
) -> Option<DateTime<Utc>> {
    let ahead = match zone.offset_from_local_datetime(&local) {
        LocalResult::Single(ahead) => ahead.fix(),
        LocalResult::Ambiguous(one, two) => {
            let (one, two) = (one.fix(), two.fix());
            // The less clocks are ahead, the later they show it.
            let last = if one.local_minus_utc() < two.local_minus_utc() { one } else { two };
            near.filter(|near| [one, two].contains(near)).unwrap_or(last)
        }
        LocalResult::None => before_change(zone, local)?,
    };
    Some(local.checked_sub_offset(ahead)?.and_utc())
}

/// How far clocks are ahead before the change that leaves a local time out. They do not change
/// twice within an hour.
fn before_change(zone: &Tz, local: NaiveDateTime) -> Option<FixedOffset> {
    /// Hours that no local time is ahead of UTC, or behind.
    const FAR: i64 = 48;
    let mut before = None;
    for hour in -FAR..FAR {
        let utc = local.checked_add_signed(Duration::hours(hour))?;
        let ahead = zone.offset_from_utc_datetime(&utc).fix();
        if utc.checked_add_offset(ahead)? > local {
            break;
        }
        before = Some(ahead);
    }
    before
}

/// Local times as instants; what the calendar does not hold becomes null, or is an error.
pub(super) fn instants(array: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef> {
    let DataType::Timestamp(unit, Some(name)) = to else {
        return plan_err!("{to} has no time zone");
    };
    let options = CastOptions { safe: or_null, ..DEFAULT_CAST_OPTIONS };
    let local = cast_with_options(array, &DataType::Timestamp(*unit, None), &options)?;
    let zone: Tz = name.parse()?;
    by_unit!(unit, T, {
        let ticks = |value| {
            let local = as_datetime::<T>(value)?;
            T::from_naive_datetime(instant(&zone, local, None)?.naive_utc(), None)
        };
        let local = local.as_primitive::<T>();
        let found: PrimitiveArray<T> = match or_null {
            true => local.unary_opt(ticks),
            false => local.try_unary(|value| {
                ticks(value).ok_or_else(|| {
                    ArrowError::CastError(format!("Can't cast value {value} to type {to}"))
                })
            })?,
        };
        Ok(Arc::new(found.with_timezone(name.clone())))
    })
}

/// The timestamps that texts say, which have their seconds; of what says none, null, or an error.
pub(super) fn read(texts: &StringViewArray, to: &DataType, or_null: bool) -> Result<ArrayRef> {
    let cast = |texts: &StringViewArray, safe| {
        cast_with_options(texts, to, &CastOptions { safe, ..DEFAULT_CAST_OPTIONS })
    };
    let read = cast(texts, true)?;
    let DataType::Timestamp(unit, name) = to else { return Ok(read) };
    if read.null_count() == texts.null_count() {
        return Ok(read);
    }
    let zone = name.as_deref().map(str::parse::<Tz>).transpose()?;
    let read: ArrayRef = by_unit!(unit, T, {
        let values = read.as_primitive::<T>().iter().zip(texts);
        let values =
            values.map(|(value, text)| value.or_else(|| instant_of_text::<T>(text?, zone)));
        Arc::new(values.collect::<PrimitiveArray<T>>().with_timezone_opt(name.clone()))
    });
    match (0..texts.len()).find(|row| read.is_null(*row) && texts.is_valid(*row)) {
        // Which says why.
        Some(row) if !or_null => Ok(cast(&texts.slice(row, 1), false)?),
        _ => Ok(read),
    }
}

/// The instant of a text whose local time its zone, or the one given, leaves out or has twice.
fn instant_of_text<T: ArrowTimestampType>(text: &str, zone: Option<Tz>) -> Option<i64> {
    let named = text.rsplit_once(' ').and_then(|(local, name)| {
        // Behind a date alone stands no zone.
        let is_timed = local.len() > "2024-01-31".len();
        Some((local, name.parse::<Tz>().ok().filter(|_| is_timed)?))
    });
    let (local, zone) = named.or(zone.map(|zone| (text, zone)))?;
    let local = string_to_datetime(&Utc, local).ok()?.naive_utc();
    T::from_naive_datetime(instant(&zone, local, None)?.naive_utc(), None)
}

/// A timestamp of a zone moved by an interval, as a function of both.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Moves {
    negative: bool,
    signature: Signature,
}

/// Whether an interval of months, days and nanoseconds moves an instant by the clocks of a zone.
pub(super) fn is_moved(point: &DataType, by: &DataType) -> bool {
    matches!(point, DataType::Timestamp(_, Some(_)))
        && *by == DataType::Interval(IntervalUnit::MonthDayNano)
}

/// `point + by` or `point - by`.
pub(super) fn moved(point: Expr, op: Operator, by: Expr) -> Expr {
    let signature = Signature::any(2, Volatility::Immutable);
    let negative = op == Operator::Minus;
    ScalarUDF::from(Moves { negative, signature }).call(vec![point, by])
}

impl ScalarUDFImpl for Moves {
    fn name(&self) -> &str {
        if self.negative { "moved_back" } else { "moved" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [point, by] if is_moved(point, by) => Ok(point.clone()),
            _ => plan_err!("{} takes a timestamp of a zone and an interval", self.name()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [points, by] = &arrays[..] else {
            return exec_err!("{} takes two values", self.name());
        };
        let (DataType::Timestamp(unit, Some(name)), Some(by)) =
            (points.data_type(), by.as_primitive_opt::<IntervalMonthDayNanoType>())
        else {
            return exec_err!("{} takes a timestamp of a zone and an interval", self.name());
        };
        let zone: Tz = name.parse()?;
        by_unit!(unit, T, {
            let found = self.of::<T>(points.as_primitive::<T>(), by, &zone)?;
            Ok(ColumnarValue::Array(Arc::new(found.with_timezone(name.clone()))))
        })
    }
}

impl Moves {
    fn of<T: ArrowTimestampType>(
        &self,
        points: &PrimitiveArray<T>,
        by: &IntervalMonthDayNanoArray,
        zone: &Tz,
    ) -> Result<PrimitiveArray<T>> {
        let rows = points.iter().zip(by).map(|pair| {
            let (Some(point), Some(by)) = pair else { return Ok(None) };
            let moved = self.one::<T>(point, IntervalMonthDayNanoType::to_parts(by), zone);
            let out_of_range = || ArrowError::ComputeError("Timestamp out of range".into());
            moved.map(Some).ok_or_else(out_of_range)
        });
        Ok(rows.collect::<Result<_, ArrowError>>()?)
    }

    fn one<T: ArrowTimestampType>(
        &self,
        point: i64,
        (months, days, nanos): (i32, i32, i64),
        zone: &Tz,
    ) -> Option<i64> {
        let point = as_datetime_with_timezone::<T>(point, *zone)?;
        let local = point.naive_local();
        let by = Months::new(months.unsigned_abs());
        let local = match (months < 0) != self.negative {
            true => local.checked_sub_months(by)?,
            false => local.checked_add_months(by)?,
        };
        let by = Days::new(days.unsigned_abs().into());
        let local = match (days < 0) != self.negative {
            true => local.checked_sub_days(by)?,
            false => local.checked_add_days(by)?,
        };
        let moved = match (months, days) {
            (0, 0) => point.with_timezone(&Utc),
            _ => instant(zone, local, Some(point.offset().fix()))?,
        };
        let nanos = Duration::nanoseconds(nanos);
        let moved = match self.negative {
            true => moved.checked_sub_signed(nanos)?,
            false => moved.checked_add_signed(nanos)?,
        };
        T::from_naive_datetime(moved.naive_utc(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_times_are_as_before_the_change_and_the_last_of_two_counts() {
        // Seconds of DuckDB 2.0.1.
        for (zone, local, seconds) in [
            ("America/New_York", "2024-03-10T02:30:00", 1_710_055_800),
            ("America/New_York", "2024-11-03T01:30:00", 1_730_615_400),
            ("Australia/Lord_Howe", "2024-10-06T02:15:00", 1_728_143_100),
            ("Australia/Lord_Howe", "2024-04-07T01:45:00", 1_712_416_500),
            ("America/Sao_Paulo", "2018-11-04T00:00:00", 1_541_300_400),
            ("Europe/Dublin", "2024-03-31T01:30:00", 1_711_848_600),
            ("Europe/Dublin", "2024-10-27T01:30:00", 1_729_992_600),
            ("Africa/Casablanca", "2024-03-10T02:30:00", 1_710_037_800),
            ("Africa/Casablanca", "2024-04-14T02:30:00", 1_713_061_800),
            // A whole day.
            ("Pacific/Apia", "2011-12-30T12:00:00", 1_325_282_400),
        ] {
            let local: NaiveDateTime = local.parse().expect("a time");
            let found = instant(&zone.parse().expect("a zone"), local, None);
            assert_eq!(found.map(|found| found.timestamp()), Some(seconds), "{zone} {local}");
        }
        let new_york: Tz = "America/New_York".parse().expect("a zone");
        let local: NaiveDateTime = "2024-11-03T01:30:00".parse().expect("a time");
        let summer = FixedOffset::west_opt(4 * 3600);
        let found = instant(&new_york, local, summer);
        assert_eq!(found.map(|found| found.timestamp()), Some(1_730_611_800));
    }
}
