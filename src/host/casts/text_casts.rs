//! Casts of texts to dates, times and intervals, and to lists and structs (`nested_texts.rs`), that
//! Arrow (59.3) reads otherwise than DuckDB and PostgreSQL.
//!
//! ```text
//!   '2024-01-31 10:15', '2024-01-31T10:15+02:00'   as a timestamp or date: it wants the seconds
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

use super::nested_texts;
use crate::host::zones;

/// Whether a cast is one of those.
pub(in crate::host) fn reads(from: &DataType, to: &DataType) -> bool {
    is_text(from) && is_read(to)
}

/// Whether texts are read otherwise as values of a type.
pub(in crate::host) fn is_read(to: &DataType) -> bool {
    use DataType::*;
    nested_texts::is_read(to)
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
    let views = views.as_string_view();
    if nested_texts::is_read(to) {
        return nested_texts::read(views, to, or_null);
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
        None => cast_with_options(texts, to, &options)?,
    })
}

/// Texts of timestamps with their seconds; themselves where all have them.
pub(in crate::host) fn whole_minutes(texts: &ArrayRef) -> Result<ArrayRef> {
    let views = cast(texts, &DataType::Utf8View)?;
    Ok(match with_seconds(views.as_string_view()) {
        Some(whole) => cast(&(Arc::new(whole) as ArrayRef), texts.data_type())?,
        None => texts.clone(),
    })
}

fn with_seconds(texts: &StringViewArray) -> Option<StringViewArray> {
    texts.iter().flatten().any(lacks_seconds).then(|| {
        let whole = |text| match lacks_seconds(text) {
            true => Cow::Owned(format!("{}:00{}", &text[..MINUTE_END], &text[MINUTE_END..])),
            false => Cow::Borrowed(text),
        };
        texts.iter().map(|text| text.map(whole)).collect()
    })
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

/// The text of an interval in which `1:30` has a unit, as all else has, and parts of years are
/// whole months, the nearest, as in PostgreSQL and DuckDB.
pub(crate) fn with_units(text: &str) -> Cow<'_, str> {
    if !text.contains([':', '.']) {
        return Cow::Borrowed(text);
    }
    let mut written: Vec<Cow<'_, str>> = vec![];
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let months = words.peek().and_then(|unit| parts_of_years(word, unit));
        written.push(match (months, nanoseconds(word)) {
            (Some(months), _) => {
                words.next();
                format!("{months} months").into()
            }
            (None, Some(nanos)) => format!("{nanos} nanoseconds").into(),
            (None, None) => word.into(),
        });
    }
    written.join(" ").into()
}

/// The months of a number with a fraction of years or of more.
fn parts_of_years(number: &str, unit: &str) -> Option<i64> {
    let months = match unit.to_lowercase().as_str() {
        "year" | "years" | "y" | "yr" | "yrs" => 12.0,
        "decade" | "decades" | "dec" | "decs" => 120.0,
        "century" | "centuries" | "cent" => 1200.0,
        "millennium" | "millennia" | "mil" => 12_000.0,
        _ => return None,
    };
    let number = number.contains('.').then(|| number.parse::<f64>().ok()).flatten()?;
    let months = (number * months).round_ties_even();
    (months.abs() < 2e9).then_some(months as i64)
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
