//! Values of a report, as texts.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, IntervalMonthDayNanoArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, IntervalUnit};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::column::Repr;

/// Bytes of a string that a report has room for.
const SHOWN: usize = 64;

pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.iter().skip(at).take(4).rev().fold(0, |all, byte| all << 8 | u32::from(*byte))
}

/// The SQL of a value; `None` of what is no value of its type.
pub(super) fn value(bytes: &[u8], dtype: &DataType, repr: Repr) -> Option<String> {
    if repr == Repr::View {
        return Some(text(bytes, dtype));
    }
    let number = i128::from_le_bytes(bytes.get(..16)?.try_into().ok()?);
    Some(match (repr, dtype) {
        (Repr::Bool, _) => (number != 0).to_string(),
        (Repr::F32, _) => float(f64::from_bits(number as u64) as f32),
        (Repr::F64, _) => float(f64::from_bits(number as u64)),
        // What has more digits than the type is told all the same.
        (_, DataType::Decimal128(_, scale)) => decimal(number, *scale),
        (_, dtype) if dtype.is_integer() => number.to_string(),
        (_, dtype) => temporal(number, dtype).unwrap_or_else(|| number.to_string()),
    })
}

/// Up to [`SHOWN`] bytes of a string, in quotes.
fn text(bytes: &[u8], dtype: &DataType) -> String {
    let length = word(bytes, 0) as usize;
    let shown: Vec<u8> = bytes.iter().skip(16).take(length.min(SHOWN)).copied().collect();
    let more = if length > SHOWN { "…" } else { "" };
    if !matches!(dtype, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
        let digits: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
        return format!("x'{digits}{more}'");
    }
    // A character that was cut is left out.
    let whole = match std::str::from_utf8(&shown) {
        Err(error) if length > SHOWN && error.error_len().is_none() => {
            &shown[..error.valid_up_to()]
        }
        _ => &shown[..],
    };
    format!("'{}{more}'", String::from_utf8_lossy(whole).replace('\'', "''"))
}

fn float<T: std::fmt::Debug>(value: T) -> String {
    format!("{value:?}")
}

/// Written out here, because Arrow's own formatter refuses digits beyond the type's.
fn decimal(unscaled: i128, scale: i8) -> String {
    let Ok(places) = usize::try_from(scale) else {
        return format!("{unscaled}e{}", -i32::from(scale));
    };
    if places == 0 {
        return unscaled.to_string();
    }
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = places + 1);
    let (whole, behind) = digits.split_at(digits.len() - places);
    format!("{}{whole}.{behind}", if unscaled < 0 { "-" } else { "" })
}

/// `None` of what Arrow does not write: a date beyond the calendar.
fn temporal(number: i128, dtype: &DataType) -> Option<String> {
    let array: ArrayRef = match dtype {
        DataType::Date32 | DataType::Time32(_) => {
            Arc::new(Int32Array::from(vec![i32::try_from(number).ok()?]))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let (months, days, nanos) =
                ((number >> 96) as i32, (number >> 64) as i32, number as i64);
            let value =
                datafusion::arrow::datatypes::IntervalMonthDayNano::new(months, days, nanos);
            Arc::new(IntervalMonthDayNanoArray::from(vec![value]))
        }
        _ => Arc::new(Int64Array::from(vec![i64::try_from(number).ok()?])),
    };
    let array = cast(&array, dtype).ok()?;
    let options = FormatOptions::default().with_display_error(false);
    ArrayFormatter::try_new(array.as_ref(), &options).ok()?.value(0).try_to_string().ok()
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::TimeUnit;

    use super::*;

    fn of(number: i128, dtype: &DataType, repr: Repr) -> String {
        let mut bytes = number.to_le_bytes().to_vec();
        bytes.resize(80, 0);
        value(&bytes, dtype, repr).expect("a value")
    }

    fn of_text(text: &[u8], dtype: &DataType) -> String {
        let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
        bytes.resize(16, 0);
        bytes.extend(&text[..text.len().min(SHOWN)]);
        bytes.resize(80, 0);
        value(&bytes, dtype, Repr::View).expect("a text")
    }

    #[test]
    fn values_are_written_as_sql_writes_them() {
        let days = DataType::Date32;
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        for (text, number, dtype, repr) in [
            ("-7", -7, &DataType::Int64, Repr::I32),
            ("-0.07", -7, &DataType::Decimal128(38, 2), Repr::I128),
            ("12.34", 1234, &DataType::Decimal128(4, 2), Repr::I32),
            ("1.5", i128::from(1.5f64.to_bits()), &DataType::Float32, Repr::F32),
            ("true", 1, &DataType::Boolean, Repr::Bool),
            ("1970-01-03", 2, &days, Repr::I32),
            ("1970-01-01T00:00:00.000001", 1, &micros, Repr::I64),
            // No day of the calendar.
            ("2000000000", 2_000_000_000, &days, Repr::I32),
        ] {
            assert_eq!(of(number, dtype, repr), text);
        }
    }

    #[test]
    fn texts_are_quoted_and_cut_between_characters() {
        assert_eq!(of_text(b"it's", &DataType::Utf8), "'it''s'");
        let long = "x".repeat(63) + "é and more";
        assert_eq!(of_text(long.as_bytes(), &DataType::Utf8View), format!("'{}…'", "x".repeat(63)));
        assert_eq!(of_text(&[0xff, b'a'], &DataType::Binary), "x'ff61'");
        assert_eq!(of_text(&[0xff, b'a'], &DataType::Utf8), "'\u{fffd}a'");
    }
}
