//! What stands for an expression: a plain value where a value is meant, a name where a column is.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Utc};
use datafusion::arrow::datatypes::DECIMAL128_MAX_PRECISION;
use datafusion::logical_expr as df;
use datafusion::scalar::ScalarValue;

use super::running::distance;
use super::{Expr, asc, col};
use crate::error::{ErrorKind, Result};

/// An expression, or a plain value: numbers, booleans, texts, dates and times of crate `chrono`,
/// and options of these.
///
/// ```
/// use warpframe::prelude::*;
/// assert_eq!(col("x").gt(5), col("x").gt(lit(5)));
/// assert_eq!(col("s").eq("a"), col("s").eq(lit("a")));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an expression nor a plain value",
    label = "an expression or a plain value is wanted here",
    note = "write `col(\"name\")` for a column, and numbers, texts, booleans, dates and times of \
            `chrono`, or `Option`s of these for values"
)]
pub trait IntoValue {
    /// As an expression.
    fn into_value(self) -> Expr;
}

/// An expression, or the name of a column.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither an expression nor the name of a column",
    label = "an expression or a name is wanted here",
    note = "write `\"name\"` or `col(\"name\")` for a column, and `lit(1)` for a plain value"
)]
pub trait IntoColumn {
    /// As an expression.
    fn into_column(self) -> Expr;
}

/// A key to sort by: a [`df::SortExpr`], or an expression or name, which sorts from least to
/// greatest, nulls last.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key to sort by",
    label = "a key is wanted here",
    note = "write `\"name\"`, `asc(\"name\")`, `desc(\"name\")`, or `col(\"x\").sort(ascending, nulls_first)`"
)]
pub trait IntoSortKey {
    /// As a key.
    fn into_key(self) -> df::SortExpr;
}

/// A literal.
///
/// ```
/// use warpframe::prelude::*;
/// assert_eq!(lit(1.5).to_string(), "Float64(1.5)");
/// ```
pub fn lit(value: impl IntoValue) -> Expr {
    value.into_value()
}

/// A date as a literal.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where there is no such day.
///
/// ```
/// use warpframe::prelude::*;
/// let summer = col("day").between(date(2024, 6, 21)?, date(2024, 9, 22)?);
/// assert!(date(2023, 2, 29).is_err());
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn date(year: i32, month: u32, day: u32) -> Result<Expr> {
    let found = NaiveDate::from_ymd_opt(year, month, day);
    found.map(lit).ok_or_else(|| {
        crate::Error::unsupported(format!("date {year}-{month}-{day}"), "there is no such day")
    })
}

/// A time of a day as a literal: a timestamp in microseconds.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where there is no such time.
///
/// ```
/// use warpframe::prelude::*;
/// let later = col("ts").gt(datetime(2024, 6, 21, 12, 30, 0)?);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn datetime(
    year: i32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
) -> Result<Expr> {
    let found = NaiveDate::from_ymd_opt(year, month, day)
        .and_then(|date| date.and_hms_opt(hour, minute, second));
    found.map(lit).ok_or_else(|| {
        let what = format!("time {year}-{month}-{day} {hour}:{minute}:{second}");
        crate::Error::unsupported(what, "there is no such time")
    })
}

/// A time span as a literal, of units such as in `"1d12h"`: ns, us, ms, s, m, h, d, w, mo, q, y.
///
/// # Errors
/// [`ErrorKind::Unsupported`] where it is no such text.
///
/// ```
/// use warpframe::prelude::*;
/// let due = col("ordered") + duration("2w")?;
/// assert!(duration("soon").is_err());
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn duration(text: &str) -> Result<Expr> {
    match distance(text)? {
        span @ ScalarValue::IntervalMonthDayNano(_) => Ok(lit(span)),
        _ => Err(crate::Error::unsupported(
            format!("a duration of {text:?}"),
            "a unit is missing, as in \"2d\"",
        )),
    }
}

/// A decimal as a literal, with as many digits as its text has.
///
/// # Errors
/// [`ErrorKind::Parse`] where the text is no decimal number of at most 38 digits.
///
/// ```
/// use warpframe::prelude::*;
/// let dear = col("price").gt(decimal("12.50")?);
/// assert!(decimal("12,50").is_err());
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn decimal(text: &str) -> Result<Expr> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{part}");
    let plain = !all.is_empty() && all.bytes().all(|byte| byte.is_ascii_digit());
    let value = all
        .parse::<i128>()
        .ok()
        .filter(|_| plain && all.len() <= usize::from(DECIMAL128_MAX_PRECISION));
    let Some(value) = value else {
        let message = format!(
            "expected a decimal number of at most {DECIMAL128_MAX_PRECISION} digits, found {text:?}"
        );
        return Err(ErrorKind::Parse { path: None, line: 0, column: 0, message }.into());
    };
    let scalar = ScalarValue::Decimal128(Some(sign * value), all.len() as u8, part.len() as i8);
    Ok(lit(scalar))
}

impl IntoValue for Expr {
    fn into_value(self) -> Expr {
        self
    }
}

impl IntoValue for &Expr {
    fn into_value(self) -> Expr {
        self.clone()
    }
}

impl IntoValue for df::Expr {
    fn into_value(self) -> Expr {
        Expr::from(self)
    }
}

impl IntoValue for ScalarValue {
    fn into_value(self) -> Expr {
        Expr::from(df::Expr::Literal(self, None))
    }
}

macro_rules! literals {
    ($($type:ty),*) => {
        $(impl IntoValue for $type {
            fn into_value(self) -> Expr {
                Expr::from(df::lit(self))
            }
        }

        impl IntoValue for Option<$type> {
            fn into_value(self) -> Expr {
                ScalarValue::from(self).into_value()
            }
        })*
    };
}

literals!(bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, &str, String);

impl IntoValue for &String {
    fn into_value(self) -> Expr {
        Expr::from(df::lit(self.as_str()))
    }
}

impl IntoValue for NaiveDate {
    fn into_value(self) -> Expr {
        // The calendar's first day is day 1 of the common era.
        ScalarValue::Date32(Some(self.num_days_from_ce() - 719_163)).into_value()
    }
}

impl IntoValue for NaiveDateTime {
    fn into_value(self) -> Expr {
        ScalarValue::TimestampMicrosecond(Some(self.and_utc().timestamp_micros()), None)
            .into_value()
    }
}

impl IntoValue for DateTime<Utc> {
    fn into_value(self) -> Expr {
        ScalarValue::TimestampMicrosecond(Some(self.timestamp_micros()), Some("UTC".into()))
            .into_value()
    }
}

impl IntoColumn for Expr {
    fn into_column(self) -> Expr {
        self
    }
}

impl IntoColumn for &Expr {
    fn into_column(self) -> Expr {
        self.clone()
    }
}

impl IntoColumn for df::Expr {
    fn into_column(self) -> Expr {
        Expr::from(self)
    }
}

macro_rules! names {
    ($($type:ty),*) => {
        $(impl IntoColumn for $type {
            fn into_column(self) -> Expr {
                col(self.to_string())
            }
        }

        impl IntoSortKey for $type {
            fn into_key(self) -> df::SortExpr {
                asc(self)
            }
        })*
    };
}

names!(&str, &&str, String, &String);

impl IntoSortKey for df::SortExpr {
    fn into_key(self) -> df::SortExpr {
        self
    }
}

impl IntoSortKey for &df::SortExpr {
    fn into_key(self) -> df::SortExpr {
        self.clone()
    }
}

impl IntoSortKey for Expr {
    fn into_key(self) -> df::SortExpr {
        asc(self)
    }
}

impl IntoSortKey for &Expr {
    fn into_key(self) -> df::SortExpr {
        asc(self)
    }
}
