//! Casts of texts to dates, times and intervals, to lists and structs (`nested_texts.rs`), and to
//! bytes (`bytes.rs`), that Arrow (59.3) reads otherwise than DuckDB and PostgreSQL.
//!
//! ```text
//!   '2024-01-31 10:15', '2024-01-31T10:15+02:00'   as a timestamp or date: it wants the seconds
//!   ' 2024-01-31 '                                 with blanks around, which it does not take
//!   '2024-01-31 23:15+02', '23:15 Asia/Tokyo'      as what has no zone: it moves them to UTC
//!   '1'                                            as a time: a number of ticks, which is none
//!   '1', '2.5'                                     as an interval: months, which are seconds
//!   '1:30', '1 day -1:30:00.5'                     as an interval: it takes no hours and minutes
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, IntervalMonthDayNanoArray, StringViewArray,
};
use datafusion::arrow::compute::kernels::cast_utils::{
    IntervalParseConfig, IntervalUnit as Named, parse_interval_month_day_nano_config,
};
use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::common::format::DEFAULT_CAST_OPTIONS;
use datafusion::error::Result;

use super::{bytes, nested_texts};
use crate::host::zones;

/// Whether a cast is one of those.
pub(in crate::host) fn reads(from: &DataType, to: &DataType) -> bool {
    is_text(from) && is_read(to)
}

/// Whether texts are read otherwise as values of a type.
pub(in crate::host) fn is_read(to: &DataType) -> bool {
    use DataType::*;
    nested_texts::is_read(to)
        || bytes::is_bytes(to)
        || matches!(
            to,
            Date32
                | Date64
                | Time32(_)
                | Time64(_)
                | Timestamp(_, _)
                | Interval(IntervalUnit::MonthDayNano)
        )
}

fn is_text(dtype: &DataType) -> bool {
    match dtype {
        DataType::Dictionary(_, values) => is_text(values),
        dtype => dtype.is_string(),
    }
}

/// The values that texts say; of what says none, null, or an error.
pub(in crate::host) fn read(texts: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef> {
    let views = cast(texts, &DataType::Utf8View)?;
    let bare = match to {
        DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => {
            rewritten(views.as_string_view(), local_part)
        }
        DataType::Timestamp(_, None) => rewritten(views.as_string_view(), local_part),
        DataType::Timestamp(_, Some(_)) | DataType::Interval(_) => {
            rewritten(views.as_string_view(), without_blanks)
        }
        _ => None,
    };
    let views = bare.as_ref().unwrap_or(views.as_string_view());
    if nested_texts::is_read(to) {
        return nested_texts::read(views, to, or_null);
    }
    if bytes::is_bytes(to) {
        return bytes::read(views, to, or_null);
    }
    if matches!(to, DataType::Interval(_)) {
        return intervals(views, or_null);
    }
    if matches!(to, DataType::Timestamp(_, _)) {
        return match with_seconds(views) {
            Some(whole) => zones::read(&whole, to, or_null),
            None => zones::read(views, to, or_null),
        };
    }
    let given = match to {
        DataType::Time32(_) | DataType::Time64(_) => without_numbers(views, to, or_null)?,
        _ => with_seconds(views),
    };
    let options = CastOptions { safe: or_null, ..DEFAULT_CAST_OPTIONS };
    Ok(match given {
        Some(given) => cast_with_options(&given, to, &options)?,
        None => cast_with_options(views, to, &options)?,
    })
}

/// Texts of which parts count; nothing where all of each does.
fn rewritten(texts: &StringViewArray, part: fn(&str) -> &str) -> Option<StringViewArray> {
    let any = texts.iter().flatten().any(|text| part(text).len() < text.len());
    any.then(|| texts.iter().map(|text| text.map(part)).collect())
}

fn without_blanks(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace())
}

/// The text of a date and a time of day, or of one of them, without the offset or the zone behind
/// it, which DuckDB and PostgreSQL drop where a type has none.
fn local_part(text: &str) -> &str {
    let text = without_blanks(text);
    let begin = match text.as_bytes().get(4) {
        // Behind a date and the hour.
        Some(b'-') => (text.as_bytes().get(DAY_END + 2) == Some(&b':')).then_some(DAY_END),
        _ => text.find(':'),
    };
    let Some(begin) = begin else { return text };
    let Some(timed) = text.get(begin..) else { return text };
    let end = if let Some(local) = timed.strip_suffix(['Z', 'z']) {
        Some(local.len())
    } else if let Some(at) = timed.find(['+', '-']) {
        Some(at).filter(|at| is_offset(&timed[at + 1..]))
    } else {
        timed.rsplit_once(' ').filter(|(_, zone)| zones::is_known(zone)).map(|(of, _)| of.len())
    };
    end.map_or(text, |end| text[..begin + end].trim_end())
}

/// Where a day ends, and a time of day may begin: `2024-01-31 10:15`.
const DAY_END: usize = 11;

/// Whether digits are those of hours, or of hours and minutes: `02`, `0230`, `02:30`.
fn is_offset(digits: &str) -> bool {
    let plain = match digits.split_once(':') {
        Some((hours, minutes)) if hours.len() == 2 && minutes.len() == 2 => hours,
        Some(_) => return false,
        None => digits,
    };
    let all = digits.bytes().filter(|byte| *byte != b':').all(|byte| byte.is_ascii_digit());
    all && matches!(plain.len(), 2 | 4) && &plain[..2] < "24"
}

/// The text of a timestamp without a zone as Arrow reads it.
pub(crate) fn plain_moment(text: &str) -> String {
    with_second(local_part(text)).into_owned()
}

/// Texts of timestamps with their seconds and without blanks around; themselves where all are so.
pub(in crate::host) fn whole_minutes(texts: &ArrayRef) -> Result<ArrayRef> {
    let views = cast(texts, &DataType::Utf8View)?;
    let bare = rewritten(views.as_string_view(), without_blanks);
    Ok(match with_seconds(bare.as_ref().unwrap_or(views.as_string_view())).or(bare) {
        Some(whole) => cast(&(Arc::new(whole) as ArrayRef), texts.data_type())?,
        None => texts.clone(),
    })
}

fn with_seconds(texts: &StringViewArray) -> Option<StringViewArray> {
    texts
        .iter()
        .flatten()
        .any(lacks_seconds)
        .then(|| texts.iter().map(|text| text.map(with_second)).collect())
}

fn with_second(text: &str) -> Cow<'_, str> {
    match lacks_seconds(text) {
        true => Cow::Owned(format!("{}:00{}", &text[..MINUTE_END], &text[MINUTE_END..])),
        false => Cow::Borrowed(text),
    }
}

/// Where the minutes of a timestamp end: `2024-01-31 10:15`.
const MINUTE_END: usize = 16;

/// Whether a text says a time of day behind a date, but no seconds. The byte before
/// [`MINUTE_END`] is a digit then, so that it lies between characters.
fn lacks_seconds(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits =
        [11, 12, 14, 15].iter().all(|at| bytes.get(*at).is_some_and(|byte| byte.is_ascii_digit()));
    let goes_on = matches!(bytes.get(MINUTE_END), Some(b':' | b'.' | b'0'..=b'9'));
    digits && bytes[13] == b':' && !goes_on
}

/// Texts of times, of which those without a colon are none; nothing where there are no such.
fn without_numbers(
    texts: &StringViewArray,
    to: &DataType,
    or_null: bool,
) -> Result<Option<StringViewArray>> {
    let is_number = |text: &&str| !text.contains(':');
    let Some(number) = texts.iter().flatten().find(is_number) else { return Ok(None) };
    if !or_null {
        return Err(ArrowError::CastError(format!(
            "Cannot cast string '{number}' to value of {to} type"
        ))
        .into());
    }
    Ok(Some(texts.iter().map(|text| text.filter(|text| !is_number(text))).collect()))
}

fn intervals(texts: &StringViewArray, or_null: bool) -> Result<ArrayRef> {
    let values = texts.iter().map(|text| match text.map(interval) {
        Some(Err(_)) if or_null => Ok(None),
        read => read.transpose(),
    });
    Ok(Arc::new(values.collect::<Result<IntervalMonthDayNanoArray, ArrowError>>()?))
}

fn interval(text: &str) -> Result<IntervalMonthDayNano, ArrowError> {
    let config = IntervalParseConfig::new(Named::Second);
    let spelled = with_units(text);
    parse_interval_month_day_nano_config(&spelled, config).map_err(|_| {
        ArrowError::ParseError(format!("Invalid input syntax for type interval: {text:?}"))
    })
}

/// The text of an interval in which `1:30` has a unit, as all else has, and parts of years, months
/// and weeks are whole months and days and the time left, as in PostgreSQL and DuckDB.
pub(crate) fn with_units(text: &str) -> Cow<'_, str> {
    let has_quarters = || text.to_ascii_lowercase().contains("quarter");
    if !text.contains([':', '.']) && !has_quarters() {
        return Cow::Borrowed(text);
    }
    let mut written: Vec<Cow<'_, str>> = vec![];
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let parts = words.peek().and_then(|unit| parts_of_units(word, unit));
        written.push(match (parts, nanoseconds(word)) {
            (Some(parts), _) => {
                words.next();
                parts.into()
            }
            (None, Some(nanos)) => format!("{nanos} nanoseconds").into(),
            (None, None) => word.into(),
        });
    }
    written.join(" ").into()
}

/// A number with a fraction of years or more, in whole months, the nearest; of months in months,
/// days and the time left; of weeks in days and the time left. Quarters without a fraction, too,
/// which Arrow has not.
///
/// ```text
///   1.55 months   1 month 16 days 12 hours      0.55 weeks      3 days 20:24
///   0.07 years    1 month                       1.4 quarters    4 months 6 days
/// ```
fn parts_of_units(number: &str, unit: &str) -> Option<String> {
    let months = match unit.to_lowercase().as_str() {
        "year" | "years" | "y" | "yr" | "yrs" => 12.0,
        "decade" | "decades" | "dec" | "decs" => 120.0,
        "century" | "centuries" | "cent" => 1200.0,
        "millennium" | "millennia" | "mil" => 12_000.0,
        "quarter" | "quarters" => {
            let UnitsWithParts { sign, whole, parts } = UnitsWithParts::of(number)?;
            let (months, days) = (parts * 3 / ONE, parts * 3 % ONE * 30);
            let days = (days + ONE / 2) / ONE;
            return Some(format!("{} months {} days", sign * (whole * 3 + months), sign * days));
        }
        "month" | "months" | "mon" | "mons" if number.contains('.') => {
            let UnitsWithParts { sign, whole, parts } = UnitsWithParts::of(number)?;
            let time = of_days(sign, parts * 30);
            return Some(format!("{} months {time}", sign * whole));
        }
        "week" | "weeks" | "w" if number.contains('.') => {
            let UnitsWithParts { sign, whole, parts } = UnitsWithParts::of(number)?;
            return Some(of_days(sign, (whole * ONE + parts) * 7));
        }
        _ => return None,
    };
    let number = number.contains('.').then(|| number.parse::<f64>().ok()).flatten()?;
    let months = (number * months).round_ties_even();
    (months.abs() < 2e9).then(|| format!("{} months", months as i64))
}

/// One, in parts of a number: more digits do not count.
const ONE: i128 = 1_000_000_000_000_000_000;

/// A number of units that has a fraction.
struct UnitsWithParts {
    sign: i128,
    whole: i128,
    /// Of which [`ONE`] is a unit.
    parts: i128,
}

impl UnitsWithParts {
    /// `None` of a text that is no such number, or a great one.
    fn of(number: &str) -> Option<UnitsWithParts> {
        let (sign, digits) = match number.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, number.strip_prefix('+').unwrap_or(number)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || whole.len() > 10 {
            return None;
        }
        let parts = format!("{fraction:0<18}");
        Some(UnitsWithParts { sign, whole: whole.parse().ok()?, parts: parts[..18].parse().ok()? })
    }
}

/// Days and microseconds of parts of a day.
fn of_days(sign: i128, parts: i128) -> String {
    let micros = parts % ONE * 86_400 / (ONE / 1_000_000);
    format!("{} days {} microseconds", sign * (parts / ONE), sign * micros)
}

/// The nanoseconds of `1:30`, `-100:30:00` and `1:30:00.5`.
fn nanoseconds(clock: &str) -> Option<i64> {
    let (negative, clock) = match clock.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, clock.strip_prefix('+').unwrap_or(clock)),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = |text: &str| is_digits(text).then(|| text.parse::<i64>().ok()).flatten();
    let of_sixty = |text: &str| number(text).filter(|part| text.len() <= 2 && *part < 60);
    let (hours, rest) = clock.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    // What is less than a nanosecond does not count.
    let fraction = is_digits(fraction).then(|| format!("{fraction:0<9}"))?;
    let fraction = number(fraction.get(..9)?)?;
    let minutes = number(hours)?.checked_mul(60)?.checked_add(of_sixty(minutes)?)?;
    let seconds = minutes.checked_mul(60)?.checked_add(of_sixty(seconds)?)?;
    let nanos = seconds.checked_mul(1_000_000_000)?.checked_add(fraction)?;
    Some(if negative { -nanos } else { nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_and_minutes_have_their_units() {
        const HOUR: i64 = 3_600_000_000_000;
        for (clock, nanos) in [
            ("1:30", Some(HOUR + HOUR / 2)),
            ("-1:30:00.5", Some(-HOUR - HOUR / 2 - 500_000_000)),
            ("+0:00:00.0000000019", Some(1)),
            ("100:59:59", Some(101 * HOUR - 1_000_000_000)),
            ("1:60", None),
            ("1:30:60", None),
            (":30", None),
            ("1:", None),
            ("1:30:00:00", None),
            ("1:-3", None),
            ("9999999999:00", None),
        ] {
            assert_eq!(nanoseconds(clock), nanos, "{clock}");
        }
        assert_eq!(with_units("1 day -1:30"), "1 day -5400000000000 nanoseconds");
        assert_eq!(with_units("1 day"), "1 day");
        assert_eq!(with_units("0.05 year 2.5 days"), "1 months 2.5 days");
        assert_eq!(with_units("-1.5 decades"), "-180 months");
        for (given, written) in [
            ("-1.55 month", "-1 months -16 days -43200000000 microseconds"),
            ("0.333333333 month", "0 months 9 days 86399999136 microseconds"),
            ("0.55 week 1 day", "3 days 73440000000 microseconds 1 day"),
            ("1.4 quarter", "4 months 6 days"),
            ("0.3333 QUARTER", "0 months 30 days"),
            ("-2 quarters", "-6 months 0 days"),
            ("1e-1 month", "1e-1 month"),
            ("99999999999.5 month", "99999999999.5 month"),
        ] {
            assert_eq!(with_units(given), written);
        }
    }

    #[test]
    fn a_local_time_has_no_zone() {
        for (text, local) in [
            (" 2024-01-31\t", "2024-01-31"),
            ("2024-01-31 10:15:16+02", "2024-01-31 10:15:16"),
            ("2024-01-31T10:15Z", "2024-01-31T10:15"),
            ("2024-01-31 10:15:16.5 -03:30", "2024-01-31 10:15:16.5"),
            ("2024-01-31 10:15 Europe/Berlin ", "2024-01-31 10:15"),
            ("10:15:16+0200", "10:15:16"),
            ("10:15:16 PM", "10:15:16 PM"),
            ("2024-01-31 101516+02", "2024-01-31 101516+02"),
            ("2024-01-31 101516+02:00", "2024-01-31 101516+02:00"),
            ("2024-01-31 10:15:16+25", "2024-01-31 10:15:16+25"),
            ("2024-01-31 10:15:16+2", "2024-01-31 10:15:16+2"),
            ("2024-01-31 10:15:16+02x", "2024-01-31 10:15:16+02x"),
            ("2024-01-31 10:15 Nowhere", "2024-01-31 10:15 Nowhere"),
            ("-0012-05-06", "-0012-05-06"),
        ] {
            assert_eq!(local_part(text), local, "{text}");
        }
    }

    #[test]
    fn seconds_are_set_in_where_they_lack() {
        let texts = [
            ("2024-01-31 10:15", Some("2024-01-31 10:15:00")),
            ("2024-01-31T10:15Z", Some("2024-01-31T10:15:00Z")),
            ("2024-01-31 10:15 Europe/Berlin", Some("2024-01-31 10:15:00 Europe/Berlin")),
            ("2024-01-31 10:15:16", None),
            ("2024-01-31 10:15.5", None),
            ("2024-01-31 10:159", None),
            ("2024-01-31 1:15", None),
            ("2024-01-31", None),
            ("éééééé 10:15", None),
        ];
        for (text, whole) in texts {
            let array = StringViewArray::from_iter_values([text]);
            let set = with_seconds(&array);
            assert_eq!(set.as_ref().map(|set| set.value(0)), whole, "{text}");
        }
    }
}
