//! `age(a, b)`: years, months, days and the time between two moments, as PostgreSQL and DuckDB count
//! them.
//!
//! ```text
//!   age('2024-03-01 05:00', '2024-01-31 06:00')     1 month 23 hours
//! ```
//!
//! The parts are subtracted one by one, the earlier moment's from the later one's. A time that is
//! less borrows a day, and a day that is less borrows the month of the earlier moment.

use std::sync::Arc;

use chrono::{DateTime, Datelike, NaiveDateTime, Timelike};
use datafusion::arrow::array::{Array, AsArray, IntervalMonthDayNanoArray};
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_err, internal_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::calls::HostCall;

const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
const DAY_NANOS: i64 = 86_400_000_000_000;

pub(crate) fn age() -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::from(Age { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Age {
    signature: Signature,
}

impl ScalarUDFImpl for Age {
    fn name(&self) -> &str {
        "age"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_moment = |dtype: &DataType| {
            matches!(dtype, DataType::Date32 | DataType::Timestamp(_, None) | DataType::Null)
        };
        match types {
            [a, b] if is_moment(a) && is_moment(b) => Ok(vec![MICROS; 2]),
            _ => plan_err!("age takes two dates or timestamps"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = HostCall::of(&args)?;
        let [ends, begins] = call.arrays.as_slice() else {
            return internal_err!("age of {} arguments", call.arrays.len());
        };
        let ends = ends.as_primitive::<TimestampMicrosecondType>();
        let begins = begins.as_primitive::<TimestampMicrosecondType>();
        let between = |row: usize| -> Result<Option<IntervalMonthDayNano>> {
            if ends.is_null(row) || begins.is_null(row) {
                return Ok(None);
            }
            let moment = |micros| match DateTime::from_timestamp_micros(micros) {
                Some(moment) => Ok(moment.naive_utc()),
                None => exec_err!("age: {micros} microseconds are beyond the calendar"),
            };
            Ok(Some(between(moment(ends.value(row))?, moment(begins.value(row))?)))
        };
        let found = (0..call.rows).map(between).collect::<Result<IntervalMonthDayNanoArray>>()?;
        call.yields(Arc::new(found))
    }
}

fn between(end: NaiveDateTime, begin: NaiveDateTime) -> IntervalMonthDayNano {
    let (sign, low, high) = if end < begin { (-1, end, begin) } else { (1, begin, end) };
    let month = |moment: &NaiveDateTime| moment.year() * 12 + moment.month0() as i32;
    let nanos = |moment: &NaiveDateTime| {
        i64::from(moment.num_seconds_from_midnight()) * 1_000_000_000
            + i64::from(moment.nanosecond())
    };
    let mut months = month(&high) - month(&low);
    let mut days = high.day() as i32 - low.day() as i32;
    let mut rest = nanos(&high) - nanos(&low);
    if rest < 0 {
        rest += DAY_NANOS;
        days -= 1;
    }
    while days < 0 {
        days += i32::from(low.num_days_in_month());
        months -= 1;
    }
    IntervalMonthDayNano::new(sign * months, sign * days, i64::from(sign) * rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What DuckDB says of them.
    #[test]
    fn months_are_those_of_the_earlier_moment() {
        let moment = |text: &str| {
            NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").expect("a moment")
        };
        let seconds = |seconds: f64| (seconds * 1e9) as i64;
        for (end, begin, (months, days, nanos)) in [
            ("2024-03-01 05:00:00", "2024-01-31 06:00:00", (1, 0, seconds(82_800.0))),
            ("2024-01-31 06:00:00", "2024-03-01 05:00:00", (-1, 0, seconds(-82_800.0))),
            ("2024-01-31 00:00:00", "2024-03-01 00:00:00", (-1, -1, 0)),
            ("2001-04-10 00:00:00", "1957-06-13 00:00:00", (525, 27, 0)),
            ("2021-02-28 00:00:00", "2020-02-29 00:00:00", (11, 28, 0)),
            ("2024-07-01 10:00:00", "2024-02-29 11:30:15.5", (4, 0, seconds(80_984.5))),
            ("1960-01-31 10:00:00", "1959-11-30 11:00:00", (2, 0, seconds(82_800.0))),
        ] {
            let expected = IntervalMonthDayNano::new(months, days, nanos);
            assert_eq!(between(moment(end), moment(begin)), expected, "{end} {begin}");
        }
    }
}
