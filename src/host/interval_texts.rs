//! Intervals and durations as texts, as DuckDB writes them: `1 year 2 months`, `-1 day 02:30:00`.
//!
//! Arrow (59.3) writes `14 mons`, `-1 days 2 hours 30 mins`, and durations as `PT2628930.25S`.

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

/// The texts of an array's values, as Arrow writes them but for intervals and durations, within
/// other values too.
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
    let options = options.clone().with_formatter_factory(Some(&INTERVAL_TEXTS));
    match INTERVAL_TEXTS.create_array_formatter(array, &options, None)? {
        Some(texts) => Ok(texts),
        None => ArrayFormatter::try_new(array, &options),
    }
}

/// A writer of JSON with a field for each null, and with intervals and durations as [`value_texts`]
/// has them, within other values too.
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
    WriterBuilder::new().with_explicit_nulls(true).with_encoder_factory(Arc::new(IntervalTexts))
}

/// What has Arrow write them so where they are within other values.
pub(super) const INTERVAL_TEXTS: IntervalTexts = IntervalTexts;

/// Whether values of a type are written so.
pub(super) fn is_interval(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Interval(_) | DataType::Duration(_))
}

#[derive(Debug)]
pub(super) struct IntervalTexts;

impl ArrayFormatterFactory for IntervalTexts {
    fn create_array_formatter<'a>(
        &self,
        array: &'a dyn Array,
        options: &FormatOptions<'a>,
        _: Option<&'a Field>,
    ) -> Result<Option<ArrayFormatter<'a>>, ArrowError> {
        if !is_interval(array.data_type()) {
            return Ok(None);
        }
        let shown = ShownInterval { array, null: options.null() };
        Ok(Some(ArrayFormatter::new(Box::new(shown), options.safe())))
    }
}

impl EncoderFactory for IntervalTexts {
    fn make_default_encoder<'a>(
        &self,
        _: &'a FieldRef,
        array: &'a dyn Array,
        _: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let made = || NullableEncoder::new(Box::new(IntervalString(array)), array.nulls().cloned());
        Ok(is_interval(array.data_type()).then(made))
    }
}

/// Strings of JSON. No text of an interval has a character that is escaped there.
struct IntervalString<'a>(&'a dyn Array);

impl Encoder for IntervalString<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let [months, days, nanos] = parts(self.0, row);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = put(&mut text, months, days, nanos);
        out.extend([b"\"", text.as_bytes(), b"\""].concat());
    }
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
