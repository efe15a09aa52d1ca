//! Timestamps, times, intervals, durations, and texts within other values, as DuckDB writes them.
//!
//! ```text
//!   2024-01-01 10:00:00.5+00    Arrow (59.3): 2024-01-01T10:00:00.500Z
//!   1 year 2 months                           14 mons
//!   -1 day 02:30:00                           -1 days 2 hours 30 mins
//!   [a, '', 'NULL', NULL]                     [a, , NULL, NULL]
//!   30 days 10:15:30.25                       PT2628930.25S, of a duration
//! ```

use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{
    DataType, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Field, FieldRef, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalUnit, IntervalYearMonthType, TimeUnit,
};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::NullableEncoder;
use datafusion::arrow::json::{Encoder, EncoderFactory, EncoderOptions, WriterBuilder};
use datafusion::arrow::util::display::{
    ArrayFormatter, ArrayFormatterFactory, DisplayIndex, FormatOptions, FormatResult,
};

/// The texts of an array's values, as Arrow writes them but for timestamps, times, intervals and
/// durations, within other values too. Those for which the options have a format are Arrow's.
///
/// ```
/// use warpframe::arrow::array::DurationSecondArray;
/// use warpframe::arrow::util::display::FormatOptions;
/// use warpframe::frame::value_texts;
///
/// let times = DurationSecondArray::from(vec![90_061, -3]);
/// let texts = value_texts(&times, &FormatOptions::new())?;
/// assert_eq!(texts.value(0).to_string(), "1 day 01:01:01");
/// assert_eq!(texts.value(1).to_string(), "-00:00:03");
/// # Ok::<(), warpframe::arrow::error::ArrowError>(())
/// ```
///
/// # Errors
/// A type whose values have no text.
pub fn value_texts<'a>(
    array: &'a dyn Array,
    options: &FormatOptions<'a>,
) -> Result<ArrayFormatter<'a>, ArrowError> {
    let options = options.clone().with_formatter_factory(Some(&TIME_TEXTS));
    match TIME_TEXTS.create_array_formatter(array, &options, None)? {
        Some(texts) => Ok(texts),
        None => ArrayFormatter::try_new(array, &options),
    }
}

/// A writer of JSON with a field for each null, and with times and intervals as [`value_texts`] has
/// them, within other values too.
///
/// ```
/// use warpframe::arrow::json::writer::LineDelimited;
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("SELECT [INTERVAL '14 months'] AS i, NULL AS n")?.collect()?;
/// let mut text = vec![];
/// let mut writer = warpframe::frame::json_writer().build::<_, LineDelimited>(&mut text);
/// for batch in frame.to_arrow()? {
///     writer.write(&batch)?;
/// }
/// writer.finish()?;
/// drop(writer);
/// assert_eq!(text, b"{\"i\":[\"1 year 2 months\"],\"n\":null}\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn json_writer() -> WriterBuilder {
    WriterBuilder::new().with_explicit_nulls(true).with_encoder_factory(Arc::new(TimeTexts))
}

/// What has Arrow write them so where they are within other values.
pub(super) const TIME_TEXTS: TimeTexts = TimeTexts;

/// Whether values of a type are written so.
pub(super) fn is_of_time(dtype: &DataType) -> bool {
    is_interval(dtype) || is_moment(dtype)
}

fn is_interval(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Interval(_) | DataType::Duration(_))
}

fn is_moment(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_))
}

/// Whether options say how times of a type are written.
fn has_format(dtype: &DataType, options: &FormatOptions<'_>) -> bool {
    match dtype {
        DataType::Timestamp(_, None) => options.timestamp_format().is_some(),
        DataType::Timestamp(_, Some(_)) => options.timestamp_tz_format().is_some(),
        _ => is_moment(dtype) && options.time_format().is_some(),
    }
}

#[derive(Debug)]
pub(super) struct TimeTexts;

impl ArrayFormatterFactory for TimeTexts {
    fn create_array_formatter<'a>(
        &self,
        array: &'a dyn Array,
        options: &FormatOptions<'a>,
        field: Option<&'a Field>,
    ) -> Result<Option<ArrayFormatter<'a>>, ArrowError> {
        let (dtype, null) = (array.data_type(), options.null());
        // One of a list, a struct or a map.
        if field.is_some() && dtype.is_string() && !options.quoted_strings() {
            let texts = ArrayFormatter::try_new(array, options)?;
            let shown = Box::new(ShownElement { array, null, texts });
            return Ok(Some(ArrayFormatter::new(shown, options.safe())));
        }
        let shown: Box<dyn DisplayIndex + 'a> = match is_moment(dtype) {
            true if has_format(dtype, options) => return Ok(None),
            true => {
                let texts =
                    ArrayFormatter::try_new(array, &options.clone().with_formatter_factory(None))?;
                Box::new(ShownMoment { array, null, texts })
            }
            false if is_interval(dtype) => Box::new(ShownInterval { array, null }),
            false => return Ok(None),
        };
        Ok(Some(ArrayFormatter::new(shown, options.safe())))
    }
}

impl EncoderFactory for TimeTexts {
    fn make_default_encoder<'a>(
        &self,
        _: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let options = FormatOptions::new()
            .with_timestamp_format(options.timestamp_format())
            .with_timestamp_tz_format(options.timestamp_tz_format())
            .with_time_format(options.time_format());
        let texts = self.create_array_formatter(array, &options, None)?;
        let made =
            |texts| NullableEncoder::new(Box::new(TimeString(texts)), array.nulls().cloned());
        Ok(texts.map(made))
    }
}

/// Strings of JSON. No text of a time has a character that is escaped there.
struct TimeString<'a>(ArrayFormatter<'a>);

impl Encoder for TimeString<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let text = self.0.value(row).to_string();
        out.extend([b"\"", text.as_bytes(), b"\""].concat());
    }
}

struct ShownMoment<'a> {
    array: &'a dyn Array,
    null: &'a str,
    /// As Arrow writes them.
    texts: ArrayFormatter<'a>,
}

impl DisplayIndex for ShownMoment<'_> {
    fn write(&self, row: usize, out: &mut dyn Write) -> FormatResult {
        if self.array.is_null(row) {
            return Ok(out.write_str(self.null)?);
        }
        Ok(put_moment(out, &self.texts.value(row).try_to_string()?)?)
    }
}

/// A text within another value, in quotes where it would be none, or NULL.
struct ShownElement<'a> {
    array: &'a dyn Array,
    null: &'a str,
    texts: ArrayFormatter<'a>,
}

impl DisplayIndex for ShownElement<'_> {
    fn write(&self, row: usize, out: &mut dyn Write) -> FormatResult {
        if self.array.is_null(row) {
            return Ok(out.write_str(self.null)?);
        }
        let text = self.texts.value(row).try_to_string()?;
        match text.is_empty() || text.eq_ignore_ascii_case("null") {
            true => Ok(write!(out, "'{text}'")?),
            false => Ok(out.write_str(&text)?),
        }
    }
}

/// A blank instead of `T`, no zeros at the end of a fraction, and a zone's minutes only where it has
/// some.
fn put_moment(out: &mut dyn Write, text: &str) -> std::fmt::Result {
    let (date, clock) =
        text.split_once('T').map_or((None, text), |(date, clock)| (Some(date), clock));
    let (clock, zone) = clock.split_at(clock.find(['Z', '+', '-']).unwrap_or(clock.len()));
    if let Some(date) = date {
        write!(out, "{date} ")?;
    }
    match clock.contains('.') {
        true => out.write_str(clock.trim_end_matches('0').trim_end_matches('.'))?,
        false => out.write_str(clock)?,
    }
    out.write_str(match zone {
        "Z" => "+00",
        zone => zone.strip_suffix(":00").unwrap_or(zone),
    })
}

struct ShownInterval<'a> {
    array: &'a dyn Array,
    null: &'a str,
}

impl DisplayIndex for ShownInterval<'_> {
    fn write(&self, row: usize, out: &mut dyn Write) -> FormatResult {
        if self.array.is_null(row) {
            return Ok(out.write_str(self.null)?);
        }
        let [months, days, nanos] = parts(self.array, row);
        Ok(put(out, months, days, nanos)?)
    }
}

const DAY_NANOS: i128 = 86_400_000_000_000;

/// The months, days and nanoseconds of a value. A duration has days of 24 hours.
fn parts(array: &dyn Array, row: usize) -> [i128; 3] {
    let of_duration = |count: i64, nanos: i128| {
        let nanos = i128::from(count) * nanos;
        [0, nanos / DAY_NANOS, nanos % DAY_NANOS]
    };
    match array.data_type() {
        DataType::Interval(IntervalUnit::YearMonth) => {
            [array.as_primitive::<IntervalYearMonthType>().value(row).into(), 0, 0]
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let value = array.as_primitive::<IntervalDayTimeType>().value(row);
            [0, value.days.into(), i128::from(value.milliseconds) * 1_000_000]
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            [value.months.into(), value.days.into(), value.nanoseconds.into()]
        }
        DataType::Duration(TimeUnit::Second) => {
            of_duration(array.as_primitive::<DurationSecondType>().value(row), 1_000_000_000)
        }
        DataType::Duration(TimeUnit::Millisecond) => {
            of_duration(array.as_primitive::<DurationMillisecondType>().value(row), 1_000_000)
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            of_duration(array.as_primitive::<DurationMicrosecondType>().value(row), 1_000)
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            of_duration(array.as_primitive::<DurationNanosecondType>().value(row), 1)
        }
        // Nothing else is shown so.
        _ => of_duration(array.as_primitive::<Int64Type>().value(row), 1),
    }
}

/// Years, months, days, and the time where there is one or nothing else; each with its own sign.
fn put(out: &mut dyn Write, months: i128, days: i128, nanos: i128) -> std::fmt::Result {
    let mut between = "";
    for (count, unit) in [(months / 12, "year"), (months % 12, "month"), (days, "day")] {
        if count != 0 {
            let plural = if count.abs() == 1 { "" } else { "s" };
            write!(out, "{between}{count} {unit}{plural}")?;
            between = " ";
        }
    }
    if nanos == 0 && !between.is_empty() {
        return Ok(());
    }
    let (sign, size) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    let (seconds, fraction) = (size / 1_000_000_000, size % 1_000_000_000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    write!(out, "{between}{sign}{hours:02}:{minutes:02}:{seconds:02}")?;
    if fraction != 0 {
        write!(out, ".{}", format!("{fraction:09}").trim_end_matches('0'))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_in_duckdb() {
        for (of_arrow, expected) in [
            ("2024-01-01T10:00:00", "2024-01-01 10:00:00"),
            ("2024-01-01T10:00:00.120Z", "2024-01-01 10:00:00.12+00"),
            ("-0044-03-15T10:20:00.000001+05:30", "-0044-03-15 10:20:00.000001+05:30"),
            ("+12024-01-01T00:00:00-08:00", "+12024-01-01 00:00:00-08"),
            ("10:00:00.500", "10:00:00.5"),
            ("10:00:00", "10:00:00"),
        ] {
            let mut text = String::new();
            put_moment(&mut text, of_arrow).expect("writing to a string");
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn intervals_are_written_as_in_duckdb() {
        let hour = 3_600_000_000_000;
        for (months, days, nanos, expected) in [
            (0, 1, 0, "1 day"),
            (14, 0, 0, "1 year 2 months"),
            (-14, 0, 0, "-1 year -2 months"),
            (24, -1, 0, "2 years -1 day"),
            (0, 0, 6_500_000_000, "00:00:06.5"),
            (0, 0, -1_500_000_000, "-00:00:01.5"),
            (0, 0, 0, "00:00:00"),
            (-1, 2, -3 * hour, "-1 month 2 days -03:00:00"),
            (0, 0, 100 * hour, "100:00:00"),
            (0, 1, -25 * hour, "1 day -25:00:00"),
            (0, 0, 1_000, "00:00:00.000001"),
            (0, 0, 1, "00:00:00.000000001"),
        ] {
            let mut text = String::new();
            put(&mut text, months, days, nanos).expect("writing to a string");
            assert_eq!(text, expected);
        }
    }
}
