//! Functions of dates and timestamps.
//!
//! ```text
//!   make_timestamp(y, m, d, h, i, s)     of a text, so that what is no time is an error
//!   time_bucket(INTERVAL '1 month', d)   CAST(date_bin(INTERVAL '1 month', CAST(d AS TIMESTAMP(6)),
//!                                             TIMESTAMP '2000-01-01') AS DATE)
//!   timezone('Asia/Tokyo', ts)           of no zone: the instant at which clocks there show ts
//!   timezone('Asia/Tokyo', tz)           of a zone: to_local_time(what clocks there show then)
//!   date_sub('month', a, b)              the months between, less one where those behind a are
//!                                        behind b
//! ```

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::functions::expr_fn::{
    date_part, greatest, least, lpad, round, to_char, to_local_time, trunc,
};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, cast, lit, when};

use super::{Item, MICROS, OF_CLOCK, TimePattern, chrono_pattern, constant_text, items};
use crate::host::date_bin::date_bin;
use crate::host::interval_times::interval_times;

pub(crate) const DATE_SUB: &str = "takes a unit ('year', 'quarter', 'month', 'week', 'day', \
    'hour', 'minute', 'second', 'millisecond' or 'microsecond') and two dates or timestamps";
pub(crate) const MAKE_TIMESTAMP: &str =
    "takes year, month, day, hour, minute and second, or microseconds";
pub(crate) const TIMEZONE: &str = "takes the constant name of a time zone, and a timestamp";
pub(crate) const TIME_BUCKET: &str =
    "takes a constant interval, a date or a timestamp, and where the first bucket begins";

fn is_time(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Date32 | DataType::Timestamp(_, None) | DataType::Null)
}

/// Microseconds since 1970.
fn ticks(time: &Expr) -> Expr {
    cast(cast(time.clone(), MICROS), DataType::Int64)
}

/// A text without a format is cast.
pub(crate) fn to_date(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    Ok(match (args, types) {
        ([text], [dtype]) if dtype.is_string() => Some(cast(text.clone(), DataType::Date32)),
        ([], _) => None,
        _ => Some(datafusion::functions::expr_fn::to_date(args.to_vec())),
    })
}

/// `x AT TIME ZONE 'zone'`, as PostgreSQL has it.
pub(crate) fn timezone(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([zone, time], [_, dtype]) = (args, types) else { return Ok(None) };
    let Some(zone) = constant_text(zone) else { return Ok(None) };
    let there = |unit| cast(time.clone(), DataType::Timestamp(unit, Some(zone.into())));
    Ok(match dtype {
        DataType::Timestamp(unit, None) => Some(there(*unit)),
        DataType::Timestamp(unit, Some(_)) => Some(to_local_time(vec![there(*unit)])),
        DataType::Date32 => Some(there(TimeUnit::Microsecond)),
        _ if dtype.is_null() || dtype.is_string() => Some(there(TimeUnit::Nanosecond)),
        _ => None,
    })
}

pub(crate) fn strftime(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([first, second], [of_first, of_second]) = (args, types) else { return Ok(None) };
    let is_moment = |dtype: &DataType| {
        matches!(dtype, DataType::Date32 | DataType::Timestamp(..) | DataType::Null)
    };
    let (time, dtype, pattern) = match (constant_text(first), constant_text(second)) {
        (_, Some(pattern)) if is_moment(of_first) => (first, of_first, pattern),
        (Some(pattern), _) if is_moment(of_second) => (second, of_second, pattern),
        _ => return Ok(None),
    };
    let written = chrono_pattern(TimePattern::OfTimes, "strftime", pattern)?;
    let is_clock =
        |item: &Item| matches!(item, Item::Field { letter, .. } if OF_CLOCK.contains(*letter));
    let of_day = !items("strftime", pattern)?.iter().any(is_clock);
    let time = match dtype {
        DataType::Timestamp(..) => time.clone(),
        DataType::Date32 if of_day => time.clone(),
        _ => cast(time.clone(), MICROS),
    };
    Ok(Some(to_char(time, lit(written))))
}

pub(crate) fn make_timestamp(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let numbers = types.iter().all(|dtype| dtype.is_numeric() || dtype.is_null());
    match args {
        [micros] if numbers && !types[0].is_floating() && !types[0].is_decimal() => {
            Ok(Some(cast(cast(micros.clone(), DataType::Int64), MICROS)))
        }
        [year, month, day, hour, minute, second] if numbers => {
            let text = |expr: Expr| cast(expr, DataType::Utf8);
            let whole = |expr: &Expr| text(cast(expr.clone(), DataType::Int64));
            let padded = |expr: Expr, digits: i64| {
                // What has more digits is no part of a time.
                let long = datafusion::functions::expr_fn::character_length(expr.clone());
                let short = cast(long, DataType::Int64).lt(lit(digits));
                when(short, lpad(vec![expr.clone(), lit(digits), lit("0")])).otherwise(expr)
            };
            let second = cast(second.clone(), DataType::Float64);
            let seconds = trunc(vec![second.clone()]);
            let micros = round(vec![(second - seconds.clone()) * lit(1e6)]);
            let joined = |left: Expr, right: Expr| {
                let op = Operator::StringConcat;
                Expr::BinaryExpr(BinaryExpr { left: left.into(), op, right: right.into() })
            };
            let parts = [
                padded(whole(year), 4)?,
                lit("-"),
                padded(whole(month), 2)?,
                lit("-"),
                padded(whole(day), 2)?,
                lit(" "),
                padded(whole(hour), 2)?,
                lit(":"),
                padded(whole(minute), 2)?,
                lit(":"),
                padded(text(cast(seconds, DataType::Int64)), 2)?,
            ];
            let Some(written) = parts.into_iter().reduce(joined) else { return Ok(None) };
            let begun = cast(cast(written, MICROS), DataType::Int64);
            Ok(Some(cast(begun + cast(micros, DataType::Int64), MICROS)))
        }
        _ => Ok(None),
    }
}

pub(crate) fn time_bucket(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let (width, time, origin) = match args {
        [width, time] => (width, time, None),
        [width, time, origin] if is_time(&types[2]) => (width, time, Some(origin)),
        _ => return Ok(None),
    };
    let Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) = width else {
        return Ok(None);
    };
    if !is_time(&types[1]) {
        return Ok(None);
    }
    let days = i128::from(interval.days) * 86_400_000_000_000 + i128::from(interval.nanoseconds);
    match interval.months {
        0 if days > 0 => {}
        1.. if interval.days == 0 && interval.nanoseconds == 0 => {}
        _ => {
            return plan_err!(
                "time_bucket takes a width of months, or of days and less, that is more than 0"
            );
        }
    }
    if interval.months > 0 && origin.is_some() {
        return plan_err!("time_bucket takes where the first bucket begins with widths of days");
    }
    // Weeks begin on Mondays.
    let nanos = if interval.months > 0 { 946_684_800_000_000_000 } else { 946_857_600_000_000_000 };
    let origin = match origin {
        Some(origin) => cast(origin.clone(), DataType::Timestamp(TimeUnit::Nanosecond, None)),
        None => lit(ScalarValue::TimestampNanosecond(Some(nanos), None)),
    };
    let unit = match &types[1] {
        DataType::Timestamp(unit, _) => *unit,
        _ => TimeUnit::Microsecond,
    };
    let source = cast(time.clone(), DataType::Timestamp(unit, None));
    let begun = date_bin().call(vec![width.clone(), source, origin]);
    Ok(Some(match &types[1] {
        DataType::Date32 => cast(begun, DataType::Date32),
        _ => begun,
    }))
}

/// The whole units between two times.
pub(crate) fn date_sub(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([unit, from, to], [_, of_from, of_to]) = (args, types) else { return Ok(None) };
    let (Some(unit), true) = (constant_text(unit), is_time(of_from) && is_time(of_to)) else {
        return Ok(None);
    };
    let shared = |micros: i64| (ticks(to) - ticks(from)) / lit(micros);
    Ok(Some(match unit.to_lowercase().as_str() {
        "year" | "years" | "y" => months_between(from, to)? / lit(12i64),
        "quarter" | "quarters" => months_between(from, to)? / lit(3i64),
        "month" | "months" | "mon" => months_between(from, to)?,
        "week" | "weeks" | "w" => shared(604_800_000_000),
        "day" | "days" | "d" => shared(86_400_000_000),
        "hour" | "hours" | "h" => shared(3_600_000_000),
        "minute" | "minutes" | "min" | "m" => shared(60_000_000),
        "second" | "seconds" | "sec" | "s" => shared(1_000_000),
        "millisecond" | "milliseconds" | "ms" => shared(1000),
        "microsecond" | "microseconds" | "us" => shared(1),
        _ => return Ok(None),
    }))
}

fn months_between(from: &Expr, to: &Expr) -> Result<Expr> {
    let (from, to) = (cast(from.clone(), MICROS), cast(to.clone(), MICROS));
    let (low, high) =
        (least(vec![from.clone(), to.clone()]), greatest(vec![from.clone(), to.clone()]));
    let part = |name: &str, time: &Expr| cast(date_part(lit(name), time.clone()), DataType::Int64);
    let number = |time: &Expr| part("year", time) * lit(12i64) + part("month", time);
    let months = number(&high) - number(&low);
    let month = lit(ScalarValue::new_interval_mdn(1, 0, 0));
    let moved = Expr::BinaryExpr(BinaryExpr {
        left: Box::new(low),
        op: Operator::Plus,
        right: Box::new(interval_times().call(vec![month, months.clone()])),
    });
    let whole = when(moved.gt(high), months.clone() - lit(1i64)).otherwise(months)?;
    // Of one time that is null, `least` is the other.
    when(from.clone().gt(to.clone()), Expr::Negative(Box::new(whole.clone())))
        .when(from.lt_eq(to), whole)
        .end()
}
