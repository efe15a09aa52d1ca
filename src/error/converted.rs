//! Errors of DataFusion, Arrow and what these use, as ours, and ours as DataFusion's.

use std::collections::HashSet;
use std::path::PathBuf;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, SchemaError};
use datafusion::object_store;

use super::shared::of_shared;
use super::{Error, ErrorKind, Fault, wording};

impl From<Error> for datafusion::error::DataFusionError {
    fn from(error: Error) -> Self {
        datafusion::error::DataFusionError::External(Box::new(error))
    }
}

impl From<datafusion::error::DataFusionError> for Error {
    /// Unwraps an engine error that passed through DataFusion, so that its kind survives.
    fn from(error: datafusion::error::DataFusionError) -> Self {
        use datafusion::error::DataFusionError as D;
        match error {
            D::External(inner) => from_boxed(inner),
            D::ParquetError(inner) => {
                ErrorKind::File { path: PathBuf::new(), message: inner.to_string() }.into()
            }
            D::ObjectStore(inner) => match *inner {
                object_store::Error::NotFound { path, .. } => {
                    Error::io(format!("/{path}"), std::io::ErrorKind::NotFound.into())
                }
                other => {
                    ErrorKind::File { path: PathBuf::new(), message: other.to_string() }.into()
                }
            },
            D::ArrowError(inner, _) => from_arrow(*inner),
            D::Shared(inner) => match std::sync::Arc::try_unwrap(inner) {
                Ok(inner) => Error::from(inner),
                Err(inner) => of_shared(&inner),
            },
            D::Diagnostic(diagnostic, inner) => {
                let location = diagnostic.span.map(|span| (span.start.line, span.start.column));
                match Error::from(*inner) {
                    error if matches!(error.kind(), ErrorKind::Plan { location: None, .. }) => {
                        let ErrorKind::Plan { message, .. } = error.0.kind else { return error };
                        ErrorKind::Plan { message, location }.into()
                    }
                    error => error.at(location),
                }
            }
            D::Context(_, inner) => Error::from(*inner),
            D::Collection(mut errors) if !errors.is_empty() => Error::from(errors.swap_remove(0)),
            D::SchemaError(inner, _) => match *inner {
                SchemaError::FieldNotFound { field, valid_fields } => {
                    let location =
                        field.spans.first().map(|span| (span.start.line, span.start.column));
                    field_not_found(&field, &valid_fields).at(location)
                }
                SchemaError::DuplicateQualifiedField { qualifier, .. } => {
                    let message = format!(
                        "two tables of the query are called {:?}: AS gives one another name",
                        qualifier.table()
                    );
                    ErrorKind::Plan { message, location: None }.into()
                }
                other => ErrorKind::Plan { message: other.to_string(), location: None }.into(),
            },
            D::SQL(inner, _) => parse_error(&inner),
            D::IoError(source) => Error::io("", source),
            D::ResourcesExhausted(account) => {
                ErrorKind::OutOfHostMemory { account, limit: None, spill_limit: None }.into()
            }
            other => ErrorKind::Plan {
                message: wording::plain(&other.strip_backtrace()),
                location: None,
            }
            .into(),
        }
    }
}

/// A column that is not there, or the table before its name, which the query has not.
fn field_not_found(field: &Column, valid: &[Column]) -> Error {
    let distinct = |names: Vec<&str>| {
        let mut seen = HashSet::new();
        names
            .into_iter()
            .filter(|name| seen.insert(*name))
            .map(String::from)
            .collect::<Vec<String>>()
    };
    let tables = distinct(
        valid.iter().filter_map(|column| Some(column.relation.as_ref()?.table())).collect(),
    );
    match &field.relation {
        Some(table) if !tables.is_empty() && !tables.iter().any(|known| known == table.table()) => {
            ErrorKind::TableNotFound { name: table.table().into(), known: tables }.into()
        }
        _ => {
            let known = distinct(valid.iter().map(|column| column.name.as_str()).collect());
            ErrorKind::ColumnNotFound { name: field.name.clone(), known }.into()
        }
    }
}

/// An error of a file's content gets its path later, from whoever knows which files were read:
/// until then it is empty.
pub(super) fn from_arrow(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => from_boxed(inner),
        ArrowError::DivideByZero => {
            Error::arithmetic(Fault::DivideByZero, Fault::DivideByZero.to_string())
        }
        ArrowError::ArithmeticOverflow(what) => {
            Error::arithmetic(Fault::Overflow, format!("Arithmetic overflow: {what}"))
        }
        // "Cannot cast to Decimal128(38, 2). Overflowing on …", which sums say, too.
        ArrowError::CastError(what) if what.contains("Overflowing on ") => {
            Error::arithmetic(Fault::Overflow, format!("Arithmetic overflow: {what}"))
        }
        // Of a value; other casts are of types, and no cast at all.
        ArrowError::CastError(what) if of_value(&what) => {
            Error::arithmetic(Fault::Cast, format!("Cast error: {what}"))
        }
        // "… is too large to store in a Decimal128 of precision 38. Max is …"
        ArrowError::InvalidArgumentError(what) if what.contains(" to store in a Decimal") => {
            Error::arithmetic(Fault::Overflow, format!("Arithmetic overflow: {what}"))
        }
        // "Int64Array overflow on abs(-9223372036854775808)", "Signed integer overflow in LCM(…)"
        ArrowError::ComputeError(what) if what.contains("overflow") => {
            Error::arithmetic(Fault::Overflow, format!("Arithmetic overflow: {what}"))
        }
        // "Error parsing timestamp from 'x': …", which is how strings are cast to dates, too.
        ArrowError::ParseError(what) if what.starts_with("Error parsing timestamp from") => {
            Error::arithmetic(Fault::Cast, format!("Cast error: {what}"))
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

fn from_boxed(error: Box<dyn std::error::Error + Send + Sync>) -> Error {
    let error = match error.downcast::<Error>() {
        Ok(ours) => return *ours,
        Err(error) => error,
    };
    let error = match error.downcast::<datafusion::error::DataFusionError>() {
        Ok(inner) => return Error::from(*inner),
        Err(error) => error,
    };
    let error = match error.downcast::<ArrowError>() {
        Ok(inner) => return from_arrow(*inner),
        Err(error) => error,
    };
    match error.downcast::<datafusion::parquet::errors::ParquetError>() {
        Ok(inner) => ErrorKind::File { path: PathBuf::new(), message: inner.to_string() }.into(),
        Err(other) => {
            ErrorKind::Plan { message: wording::plain(&other.to_string()), location: None }.into()
        }
    }
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

/// sqlparser gives the place only as the tail of its message: "… at Line: 1, Column: 8".
fn parse_error(error: &datafusion::sql::sqlparser::parser::ParserError) -> Error {
    use datafusion::sql::sqlparser::parser::ParserError as P;
    let text = match error {
        P::TokenizerError(text) | P::ParserError(text) => text.clone(),
        P::RecursionLimitExceeded => "expression nested too deeply".into(),
    };
    let place = text.rsplit_once(" at Line: ").and_then(|(message, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        Some((message.to_string(), line.trim().parse().ok()?, column.trim().parse().ok()?))
    });
    let (message, line, column) = place.unwrap_or((text, 0, 0));
    ErrorKind::Parse { path: None, line, column, message }.into()
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Self {
        datafusion::error::DataFusionError::from(error).into()
    }
}
