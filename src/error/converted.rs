//! Errors of DataFusion, Arrow and what these use, as ours, and ours as DataFusion's.

use std::collections::HashSet;
use std::path::PathBuf;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, SchemaError};
use datafusion::object_store;

use super::arrow::of_plain_arrow;
use super::shared::of_shared;
use super::sql_words::in_sql;
use super::{Error, ErrorKind, wording};

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
            D::IoError(source) => of_temporary_file(source),
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
            // What a plan computes on the way has no name that a query knows.
            let named = |name: &&str| in_sql(name) == *name;
            let known = valid.iter().map(|column| column.name.as_str()).filter(named);
            let known = distinct(known.collect());
            ErrorKind::ColumnNotFound { name: field.name.clone(), known }.into()
        }
    }
}

fn from_arrow(error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => from_boxed(inner),
        other => of_plain_arrow(other),
    }
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
/// An error of the system's that comes without its file. The library that makes temporary files
/// names theirs in the text.
fn of_temporary_file(source: std::io::Error) -> Error {
    let text = source.to_string();
    let Some((why, path)) = text.split_once(" at path \"") else { return Error::io("", source) };
    let path = path.trim_end_matches('"');
    let error = Error::io(path, std::io::Error::new(source.kind(), why.to_string()));
    let hint = "queries that do not fit in memory spill to files: --spill-dir, or \
                SessionBuilder::spill_dir, names another folder";
    error.with_hint(Some(hint.into()))
}
