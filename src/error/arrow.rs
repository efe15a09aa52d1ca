//! Arrow's own errors as ours, mostly by their texts.

use std::path::PathBuf;

use datafusion::arrow::error::ArrowError;

use super::sql_words::in_sql;
use super::{Error, ErrorKind, Fault, wording};

/// An error of a file's content gets its path later, from whoever knows which files were read:
/// until then it is empty. What holds an error of somebody else's is not looked into.
pub(super) fn of_plain_arrow(error: ArrowError) -> Error {
    match error {
        ArrowError::DivideByZero => {
            Error::arithmetic(Fault::DivideByZero, Fault::DivideByZero.to_string())
        }
        ArrowError::ArithmeticOverflow(what) => {
            Error::arithmetic(Fault::Overflow, format!("Arithmetic overflow: {}", in_sql(&what)))
        }
        // "Cannot cast to Decimal128(38, 2). Overflowing on …", which sums say, too.
        ArrowError::CastError(what) if what.contains("Overflowing on ") => {
            Error::arithmetic(Fault::Overflow, format!("Arithmetic overflow: {}", in_sql(&what)))
        }
        // Of a value; other casts are of types, and no cast at all.
        ArrowError::CastError(what) if of_value(&what) => {
            Error::arithmetic(Fault::Cast, format!("Cast error: {}", in_sql(&what)))
        }
        // "… is too large to store in a Decimal128 of precision 38. Max is …"
        ArrowError::InvalidArgumentError(what) if what.contains(" to store in a Decimal") => {
            Error::arithmetic(Fault::Overflow, format!("Arithmetic overflow: {}", in_sql(&what)))
        }
        // "Int64Array overflow on abs(-9223372036854775808)", "Signed integer overflow in LCM(…)"
        ArrowError::ComputeError(what) if what.contains("overflow") => {
            Error::arithmetic(Fault::Overflow, format!("Arithmetic overflow: {}", in_sql(&what)))
        }
        // "Error parsing timestamp from 'x': …", which is how strings are cast to dates, too.
        ArrowError::ParseError(what) if what.starts_with("Error parsing timestamp from") => {
            Error::arithmetic(Fault::Cast, format!("Cast error: {}", in_sql(&what)))
        }
        // "The used disk space during the spilling process has exceeded the allowable limit of … .
        // Please …"
        ArrowError::IoError(what, _) if what.contains("disk space during the spilling process") => {
            let account = what.split(" Please ").next().unwrap_or_default().to_string();
            ErrorKind::OutOfHostMemory { account, limit: None, spill_limit: None }.into()
        }
        ArrowError::ParquetError(message) => {
            ErrorKind::File { path: PathBuf::new(), message }.into()
        }
        ArrowError::CsvError(message) => bad_csv(message),
        ArrowError::ParseError(message) if message.contains(" at line ") => bad_csv(message),
        other => {
            ErrorKind::Plan { message: wording::plain(&other.to_string()), location: None }.into()
        }
    }
}

/// Whether Arrow's text about a cast is about a value: what else it says is about types.
fn of_value(text: &str) -> bool {
    [
        // "Cannot cast string 'x' to value of Int32 type"
        "cast string '",
        // "Can't cast value 300 to type Int8", "Cannot cast value 'x' to value of Boolean type"
        "cast value ",
        // "Cannot cast to Decimal128(38, 2). Value overflows for output scale"
        "Value overflows ",
        // "value of 300 is out of range Int8"
        "value of ",
        // "Cannot cast Date64 value 7 to Date32 without overflow"
        "Date64 value ",
    ]
    .iter()
    .any(|part| text.contains(part))
}

/// arrow-csv says: "Error while parsing value 'x' as type 'Int64' for column 2 at line 6. Row data:
/// '[…]'", or "incorrect number of fields for line 7, expected 3 got 2"; both are the file's
/// seventh line.
fn bad_csv(message: String) -> Error {
    let number = |after: &str| -> Option<u64> {
        let rest = message.split_once(after)?.1;
        rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
    };
    // Where a value does not parse, arrow-csv counts lines from 0; where fields are missing, from
    // 1.
    let value =
        message.contains("rror while parsing value") || message.contains("rror parsing column");
    let line = number(" at line ").map(|line| line + u64::from(value));
    let line = line.or_else(|| number(" for line ")).or_else(|| number("line ")).unwrap_or(0);
    let column =
        number(" for column ").or_else(|| number("parsing column ")).map_or(0, |index| index + 1);
    let text = message.split(". Row data:").next().unwrap_or_default();
    let text = text.split(" for column ").next().unwrap_or_default().to_string();
    ErrorKind::Parse { path: Some(PathBuf::new()), line, column, message: text }.into()
}
