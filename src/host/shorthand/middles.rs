//! What medians and percentiles are found among, and what they are then.
//!
//! ```text
//!   median_argument(x)    a DATE or TIMESTAMP as a number, an integer as a double, a decimal with a
//!                         digit more, which holds what is between two
//!   median_of(v, x)       what was found, as a time of the type of x, or as a decimal
//! ```

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, cast};

use super::MICROS;

pub(crate) const TAKES: &str = "takes a number, a date or a timestamp";

/// Digits that a percentile has more than the decimals that it lies between, as an average has.
const MORE_DIGITS: u8 = 4;

fn decimal(precision: u8, scale: i8, more: u8) -> DataType {
    match precision + more <= 38 {
        true => DataType::Decimal128(precision + more, scale + more as i8),
        false => DataType::Decimal128(precision, scale),
    }
}

/// The type in which a time is counted.
fn time(dtype: &DataType) -> Option<DataType> {
    match dtype {
        DataType::Date32 => Some(MICROS),
        DataType::Timestamp(..) => Some(dtype.clone()),
        _ => None,
    }
}

pub(crate) fn argument(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([value], [dtype]) = (args, types) else { return Ok(None) };
    let value = value.clone();
    Ok(Some(match dtype {
        DataType::Decimal128(precision, scale) => cast(value, decimal(*precision, *scale, 1)),
        integer if integer.is_integer() => cast(value, DataType::Float64),
        dtype => match time(dtype) {
            Some(time) => cast(cast(value, time), DataType::Int64),
            None if dtype.is_numeric() || dtype.is_null() => value,
            None => return Ok(None),
        },
    }))
}

pub(crate) fn of_type(args: &[Expr], types: &[DataType]) -> Result<Option<Expr>> {
    let ([value, _], [found, of]) = (args, types) else { return Ok(None) };
    let value = value.clone();
    Ok(Some(match of {
        DataType::Decimal128(precision, scale) if found.is_floating() => {
            cast(value, decimal(*precision, *scale, MORE_DIGITS))
        }
        of => match time(of) {
            Some(time) => cast(cast(value, DataType::Int64), time),
            None => value,
        },
    }))
}
