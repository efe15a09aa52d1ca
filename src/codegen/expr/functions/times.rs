//! Dates, times, and their parts.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType as TreeType, Expr as Tree, Interval, TimezoneInfo,
};

use super::numbers::of_two;
use super::*;
use crate::host::shorthand::{epoch_ms, epoch_ns, epoch_us, moments, strptime};
use crate::host::{age, checked, date_bin, date_trunc};
use crate::sql::ast::{binary, call, case, cast, nested, number, text};

pub(super) const FAMILY: &[Function] = &[
    row("date_part").two(|c, part, value, dtype| c.date_part(part, value, dtype)).total(),
    part("year", &[]),
    part("quarter", &[]),
    part("month", &[]),
    part("week", &["weekofyear"]),
    part("day", &["dayofmonth"]),
    part("dow", &["dayofweek", "weekday"]),
    part("doy", &["dayofyear"]),
    part("hour", &[]),
    part("minute", &[]),
    part("second", &[]),
    part("millisecond", &[]),
    part("microsecond", &[]),
    part("epoch", &[]),
    part("isodow", &[]),
    part("isoyear", &[]),
    row("date_trunc")
        .on_host(date_trunc::date_trunc)
        .two(|c, part, value, dtype| c.date_trunc(part, value, dtype)),
    row("date_bin")
        .on_host(date_bin::date_bin)
        .several(2..=3, |c, call| c.binned(call.args, call.dtype)),
    row("date_add").written("takes a date or a time, and an interval", |_, args| {
        of_two(args, BinaryOperator::Plus)
    }),
    row("date_sub").also(&["datesub"]).typed(moments::DATE_SUB, moments::date_sub),
    row("age").on_host(age::age),
    row("time_bucket").typed(moments::TIME_BUCKET, moments::time_bucket),
    row("last_day").written("takes a date or a time", |_, args| last_day(args)),
    row("dayname").written("takes a date or a time", |_, args| named(args, "%A")),
    row("monthname").written("takes a date or a time", |_, args| named(args, "%B")),
    row("yearweek").written("takes a date or a time", |_, args| year_and_week(args)),
    row("century").written("takes a date or a time", |_, args| century(args)),
    row("millennium").written("takes a date or a time", |_, args| thousands(args)),
    row("era").written("takes a date or a time", |_, args| era(args)),
    row("julian").written("takes a date or a time", |_, args| julian_day(args)),
    row("decade").written("takes a date or a time", |_, args| decade(args)),
    row("epoch_ms").typed("takes a date, a timestamp, or milliseconds", epoch_ms),
    row("epoch_us").typed("takes a date or a timestamp", epoch_us),
    row("epoch_ns").typed("takes a date or a timestamp", epoch_ns),
    row("make_date").three(|c, year, month, day, dtype| c.date_of(year, month, day, dtype)),
    row("make_timestamp").typed(moments::MAKE_TIMESTAMP, moments::make_timestamp),
    row("to_date")
        .typed("takes a text or a number, and formats", moments::to_date)
        .one(|c, value, _| c.date_from(value)),
    row("to_timestamp")
        .on_host(checked::to_timestamp)
        .one(|c, value, dtype| c.timestamp_from("to_timestamp", value, dtype)),
    row("to_timestamp_seconds")
        .one(|c, value, dtype| c.timestamp_from("to_timestamp_seconds", value, dtype)),
    row("to_timestamp_millis")
        .one(|c, value, dtype| c.timestamp_from("to_timestamp_millis", value, dtype)),
    row("to_timestamp_micros")
        .one(|c, value, dtype| c.timestamp_from("to_timestamp_micros", value, dtype)),
    row("to_timestamp_nanos")
        .one(|c, value, dtype| c.timestamp_from("to_timestamp_nanos", value, dtype)),
    row("to_unixtime").one(|c, value, _| c.unix_time_from(value)),
    row("from_unixtime").one(|c, value, dtype| {
        let value = c.value(value)?;
        c.cast(value, dtype, fit::OnError::Fail)
    }),
    row("to_char").two(|c, value, pattern, dtype| c.moment_text(value, pattern, dtype)),
    row("strftime").typed("takes a date or a timestamp, and a constant pattern", moments::strftime),
    row("strptime").on_host(strptime::strptime),
    row("try_strptime").on_host(strptime::try_strptime),
    row("to_local_time").one(|c, value, _| {
        let value = c.value(value)?;
        c.local_time(value)
    }),
    row("timezone").typed(moments::TIMEZONE, moments::timezone),
    row("now")
        .also(&["current_timestamp", "get_current_timestamp"])
        .written_instead("takes nothing", |_, args| instant(args))
        .total(),
    row("localtimestamp")
        .also(&["current_localtimestamp"])
        .written("takes nothing", |_, args| of_now(args)),
];

#[cfg(test)]
pub(super) const PAGE: &[Line] = &[
    yes(
        "`date_part`, `extract`, `date_trunc`, of every time zone; of all years of a type where \
            there is none; `date_trunc` to a `decade`, `century` (from 2000 on) and `millennium` \
            without a zone",
        "`SELECT date_part('year', d), extract(dow FROM ts AT TIME ZONE 'Asia/Kolkata'), \
            date_trunc('month', ts), date_trunc('decade', d) FROM t`",
        "",
    ),
    yes(
        "`year`, `quarter`, `month`, `week`, `day`, `dayofweek`, `weekday`, `dayofyear`, `hour`, \
            `minute`, `second`, `millisecond`, `microsecond`, `epoch`",
        "`SELECT year(d), month(ts), hour(ts), epoch(d) FROM t`",
        "",
    ),
    yes(
        "`century`, `millennium`, `decade`, `era`, `julian`; `get_current_timestamp`, \
            `localtimestamp`",
        "`SELECT century(d), millennium(d), decade(ts), era(d), julian(ts), localtimestamp > ts \
            FROM t`",
        "",
    ),
    yes(
        "`date_diff(unit, a, b)`: boundaries of the unit between two times, weeks of seven days",
        "`SELECT date_diff('day', d, DATE '2024-01-01'), date_diff('month', d, ts), \
            date_diff('hour', ts, d) FROM t`",
        "",
    ),
    yes(
        "`date_sub(unit, a, b)`: whole units between two times",
        "`SELECT date_sub('day', ts, d), date_sub('month', d, DATE '2024-01-31') FROM t`",
        "",
    ),
    yes(
        "`epoch_ms`, `epoch_us`, `epoch_ns` of times, `epoch_ms` of milliseconds, \
            `make_timestamp` of parts and of microseconds",
        "`SELECT epoch_ms(ts), epoch_us(d), epoch_ms(i), make_timestamp(2024, 1, i, 10, 30, 1.5), \
            make_timestamp(i) FROM t`",
        "",
    ),
    yes(
        "`time_bucket(width, time[, origin])` with a constant width of months, or of days and less",
        "`SELECT time_bucket(INTERVAL '1 month', d), time_bucket(INTERVAL '15 minutes', ts), \
            time_bucket(INTERVAL '2 days', d, DATE '2020-01-01') FROM t`",
        "an origin beside months is an error",
    ),
    yes(
        "`strftime` with a constant pattern in DuckDB's letters",
        "`SELECT strftime(d, '%d.%m.%Y'), strftime(ts, '%-d %B %H:%M:%S.%f'), strftime('%x', d) \
            FROM t`",
        "offsets of time zones",
    ),
    no(
        "`age(a, b)`: years, months, days and the time between",
        "`SELECT age(ts, d) FROM t`",
        "not yet",
    ),
    no(
        "`strptime`, `try_strptime` with a constant pattern",
        "`SELECT try_strptime(s, '%d.%m.%Y') FROM t`",
        "not yet",
    ),
    yes(
        "`date_bin` with constant stride and origin",
        "`SELECT date_bin(INTERVAL '15 minutes', ts), date_bin(INTERVAL '1 month', ts, TIMESTAMP \
            '2001-01-01T00:00:00'), date_bin(INTERVAL '2 hours', CAST(ts AS time)) FROM t`",
        "",
    ),
    yes(
        "`make_date`, `to_date`, `to_timestamp`, …, `to_timestamp_nanos`, `to_unixtime`, \
            `from_unixtime`",
        "`SELECT make_date(2020, 1, CAST(i AS int)), to_date(CAST(d AS varchar)), \
            to_timestamp(i), to_timestamp_millis(ts), to_unixtime(d), from_unixtime(i) FROM t`",
        "formats",
    ),
    yes(
        "`to_char` with a constant pattern",
        "`SELECT to_char(d, '%a, %-d. %B %Y'), to_char(ts, '%Y-%m-%dT%H:%M:%S%.f'), \
            date_format(CAST(ts AS time), '%I:%M %p') FROM t`",
        "offsets of time zones in the pattern; durations",
    ),
    yes(
        "`to_local_time`, `AT TIME ZONE` (`timezone('UTC', ts)`), casts of timestamps with a zone \
            to dates and times",
        "`SELECT to_local_time(ts AT TIME ZONE '+02:00'), CAST(ts AT TIME ZONE 'UTC' AS date) \
            FROM t`",
        "computed intervals beside a time zone other than UTC; `now()` is a constant",
    ),
];

/// A function that is the part of this name.
const fn part(name: &'static str, also: &'static [&'static str]) -> Function {
    row(name).also(also).written("takes a date or a time", |name, args| match args {
        [time] => Some(call("date_part", vec![text(name), time.clone()])),
        _ => None,
    })
}

fn named(args: &[Tree], pattern: &str) -> Option<Tree> {
    let [time] = args else { return None };
    Some(call("to_char", vec![time.clone(), text(pattern)]))
}

fn last_day(args: &[Tree]) -> Option<Tree> {
    let [time] = args else { return None };
    let interval = |value: &str| {
        Tree::Interval(Interval {
            value: Box::new(text(value)),
            leading_field: None,
            leading_precision: None,
            last_field: None,
            fractional_seconds_precision: None,
        })
    };
    let month = call("date_trunc", vec![text("month"), time.clone()]);
    let next = binary(month, BinaryOperator::Plus, interval("1 month"));
    let last = binary(next, BinaryOperator::Minus, interval("1 day"));
    Some(cast(nested(last), TreeType::Date))
}

/// Years before the first are of centuries below zero, as in DuckDB.
fn century(args: &[Tree]) -> Option<Tree> {
    many_years(args, "100")
}

fn thousands(args: &[Tree]) -> Option<Tree> {
    many_years(args, "1000")
}

fn many_years(args: &[Tree], many: &str) -> Option<Tree> {
    let [time] = args else { return None };
    let year = || cast(call("date_part", vec![text("year"), time.clone()]), TreeType::BigInt(None));
    let hundreds = |years: Tree| binary(years, BinaryOperator::Divide, number(many));
    let before = binary(hundreds(year()), BinaryOperator::Minus, number("1"));
    let last = nested(binary(year(), BinaryOperator::Minus, number("1")));
    let after = binary(hundreds(last), BinaryOperator::Plus, number("1"));
    Some(case(binary(year(), BinaryOperator::Gt, number("0")), after, Some(before)))
}

/// 1 of years from the first on, otherwise 0.
fn era(args: &[Tree]) -> Option<Tree> {
    let [time] = args else { return None };
    let year = call("date_part", vec![text("year"), time.clone()]);
    let is_after = nested(binary(year, BinaryOperator::Gt, number("0")));
    Some(cast(is_after, TreeType::BigInt(None)))
}

/// Days since the begin of the Julian calendar's count, at midnight.
fn julian_day(args: &[Tree]) -> Option<Tree> {
    const OF_1970: &str = "2440588e0";
    let [time] = args else { return None };
    let seconds = call("date_part", vec![text("epoch"), time.clone()]);
    let days = binary(seconds, BinaryOperator::Divide, number("86400e0"));
    Some(nested(binary(number(OF_1970), BinaryOperator::Plus, days)))
}

fn decade(args: &[Tree]) -> Option<Tree> {
    let [time] = args else { return None };
    let year = cast(call("date_part", vec![text("year"), time.clone()]), TreeType::BigInt(None));
    Some(nested(binary(year, BinaryOperator::Divide, number("10"))))
}

/// The time of the statement, which has a zone: DataFusion's (55.2) has none.
fn instant(args: &[Tree]) -> Option<Tree> {
    let zoned = TreeType::Timestamp(Some(6), TimezoneInfo::WithTimeZone);
    args.is_empty().then(|| cast(call("now", vec![]), zoned))
}

/// The time of the statement, without a zone.
fn of_now(args: &[Tree]) -> Option<Tree> {
    let moment = TreeType::Timestamp(Some(6), TimezoneInfo::None);
    args.is_empty().then(|| cast(call("now", vec![]), moment))
}

/// The ISO year and week in one number.
fn year_and_week(args: &[Tree]) -> Option<Tree> {
    let [time] = args else { return None };
    let part = |part: &str| {
        cast(call("date_part", vec![text(part), time.clone()]), TreeType::BigInt(None))
    };
    let years = binary(part("isoyear"), BinaryOperator::Multiply, number("100"));
    let is_before = binary(part("isoyear"), BinaryOperator::Lt, number("0"));
    let less = binary(years.clone(), BinaryOperator::Minus, part("week"));
    let more = binary(years, BinaryOperator::Plus, part("week"));
    Some(case(is_before, less, Some(more)))
}
