//! `strptime(s, pattern)`: the timestamp that a text says, in DuckDB's letters. `try_strptime` is
//! null of another text.
//!
//! What a pattern leaves out is that of 1900-01-01 00:00:00. Years of two digits are those from 1969
//! to 2068.

use std::sync::Arc;

use chrono::format::{Parsed, StrftimeItems, parse};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, ScalarValue, exec_err, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::patterns::{Item, items};

pub(crate) fn strptime() -> Arc<ScalarUDF> {
    of_name("strptime")
}

pub(crate) fn try_strptime() -> Arc<ScalarUDF> {
    of_name(TRY)
}

fn of_name(name: &'static str) -> Arc<ScalarUDF> {
    let signature = Signature::string(2, Volatility::Immutable);
    Arc::new(ScalarUDF::from(Strptime { name, signature }))
}

const TRY: &str = "try_strptime";

#[derive(Debug, PartialEq, Eq, Hash)]
struct Strptime {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Strptime {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Microsecond, None))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [texts, pattern] = args.args.as_slice() else {
            return internal_err!("{} of {} arguments", self.name, args.args.len());
        };
        let ColumnarValue::Scalar(pattern) = pattern else {
            return plan_err!("{} takes a text and a constant pattern", self.name);
        };
        let pattern = match pattern.try_as_str().flatten() {
            Some(pattern) => pattern,
            None => {
                return Ok(ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(None, None)));
            }
        };
        let written = written(self.name, pattern)?;
        let time = |text: &str| match micros(text, &written) {
            Some(micros) => Ok(Some(micros)),
            None if self.name == TRY => Ok(None),
            None => exec_err!("{}: {text:?} is not of the form {pattern:?}", self.name),
        };
        match texts {
            ColumnarValue::Scalar(value) => {
                let found = value.try_as_str().flatten().map(time).transpose()?.flatten();
                Ok(ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(found, None)))
            }
            ColumnarValue::Array(texts) => {
                let texts: ArrayRef = cast(texts, &DataType::Utf8View)?;
                let texts = texts.as_string_view();
                let found = (0..texts.len())
                    .map(|row| if texts.is_null(row) { Ok(None) } else { time(texts.value(row)) })
                    .collect::<Result<TimestampMicrosecondArray>>()?;
                Ok(ColumnarValue::Array(Arc::new(found)))
            }
        }
    }
}

/// A pattern in the letters of who reads texts by it.
fn written(function: &str, pattern: &str) -> Result<String> {
    let mut written = String::new();
    for item in items(function, pattern)? {
        match item {
            Item::Literal('%') => written.push_str("%%"),
            Item::Literal(c) => written.push(c),
            // Digits of a fraction are counted from the point.
            Item::Field { letter: 'f', .. } if written.ends_with('.') => {
                written.pop();
                written.push_str("%.f");
            }
            Item::Field { letter, .. } if "aAbBdmyYHIMSpj".contains(letter) => {
                written.extend(['%', letter])
            }
            Item::Field { letter, .. } => {
                return plan_err!("{function}: %{letter} in {pattern:?} is not known");
            }
        }
    }
    Ok(written)
}

/// Microseconds since 1970.
fn micros(text: &str, pattern: &str) -> Option<i64> {
    let mut parsed = Parsed::new();
    parse(&mut parsed, text, StrftimeItems::new(pattern)).ok()?;
    if parsed.year.is_none() {
        let year = match parsed.year_mod_100.take() {
            Some(year @ 69..) => 1900 + year,
            Some(year) => 2000 + year,
            None => 1900,
        };
        parsed.set_year(year.into()).ok()?;
    }
    if parsed.ordinal.is_none() {
        parsed.month.get_or_insert(1);
        parsed.day.get_or_insert(1);
    }
    match (parsed.hour_div_12, parsed.hour_mod_12) {
        (_, Some(_)) => {
            parsed.hour_div_12.get_or_insert(0);
        }
        (None, None) => parsed.set_hour(0).ok()?,
        // Half of a day without an hour.
        (Some(_), None) => return None,
    }
    parsed.minute.get_or_insert(0);
    let moment = parsed.to_naive_date().ok()?.and_time(parsed.to_naive_time().ok()?);
    Some(moment.and_utc().timestamp_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What DuckDB says of them.
    #[test]
    fn what_a_pattern_leaves_out_is_of_1900() {
        for (text, pattern, expected) in [
            ("2024-01-31", "%Y-%m-%d", Some(1_706_659_200_000_000)),
            ("31/01/24 10:05", "%d/%m/%y %H:%M", Some(1_706_695_500_000_000)),
            ("x", "x", Some(-2_208_988_800_000_000)),
            ("69", "%y", Some(-31_536_000_000_000)),
            ("68", "%y", Some(3_092_601_600_000_000)),
            ("Jan 5, 2020", "%b %d, %Y", Some(1_578_182_400_000_000)),
            ("10:05 PM 2020-01-01", "%I:%M %p %Y-%m-%d", Some(1_577_916_300_000_000)),
            ("2020-01-01 10:05:06.25", "%Y-%m-%d %H:%M:%S.%f", Some(1_577_873_106_250_000)),
            ("2020", "%Y", Some(1_577_836_800_000_000)),
            ("2020-01-01x", "%Y-%m-%d", None),
            ("abc", "%Y", None),
        ] {
            let written = written("strptime", pattern).expect("it is known");
            assert_eq!(micros(text, &written), expected, "{text} {pattern}");
        }
    }
}
