//! Errors that several partitions of a plan report at once: DataFusion hands each of them the same
//! error, which then cannot be taken apart, only looked at.

use std::io;
use std::path::PathBuf;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError as D;
use datafusion::object_store;
use datafusion::parquet::errors::ParquetError;

use super::arrow::of_plain_arrow;
use super::{Error, ErrorKind, Inner};

/// What `Error::from` makes of the error, without taking it.
pub(super) fn of_shared(error: &D) -> Error {
    match error {
        D::Shared(inner) => of_shared(inner),
        D::Context(_, inner) | D::Diagnostic(_, inner) => of_shared(inner),
        D::External(inner) => of_boxed(inner.as_ref()),
        D::ArrowError(inner, _) => of_arrow(inner),
        D::ParquetError(inner) => file(inner),
        D::ObjectStore(inner) => match inner.as_ref() {
            object_store::Error::NotFound { path, .. } => {
                Error::io(format!("/{path}"), io::ErrorKind::NotFound.into())
            }
            other => file(other),
        },
        D::IoError(source) => Error::io("", again(source)),
        D::ResourcesExhausted(account) => {
            ErrorKind::OutOfHostMemory { account: account.clone(), limit: None, spill_limit: None }
                .into()
        }
        other => ErrorKind::Plan {
            message: super::wording::plain(&other.strip_backtrace()),
            location: None,
        }
        .into(),
    }
}

fn of_arrow(error: &ArrowError) -> Error {
    of_plain_arrow(match error {
        ArrowError::ExternalError(inner) => return of_boxed(inner.as_ref()),
        ArrowError::DivideByZero => ArrowError::DivideByZero,
        ArrowError::ArithmeticOverflow(text) => ArrowError::ArithmeticOverflow(text.clone()),
        ArrowError::CastError(text) => ArrowError::CastError(text.clone()),
        ArrowError::ComputeError(text) => ArrowError::ComputeError(text.clone()),
        ArrowError::InvalidArgumentError(text) => ArrowError::InvalidArgumentError(text.clone()),
        ArrowError::ParquetError(text) => ArrowError::ParquetError(text.clone()),
        ArrowError::CsvError(text) => ArrowError::CsvError(text.clone()),
        ArrowError::ParseError(text) => ArrowError::ParseError(text.clone()),
        ArrowError::IoError(text, source) => ArrowError::IoError(text.clone(), again(source)),
        other => return ErrorKind::Plan { message: other.to_string(), location: None }.into(),
    })
}

fn of_boxed(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Error {
    if let Some(ours) = error.downcast_ref::<Error>() {
        copy(ours)
    } else if let Some(inner) = error.downcast_ref::<D>() {
        of_shared(inner)
    } else if let Some(inner) = error.downcast_ref::<ArrowError>() {
        of_arrow(inner)
    } else if let Some(inner) = error.downcast_ref::<ParquetError>() {
        file(inner)
    } else {
        ErrorKind::Plan { message: super::wording::plain(&error.to_string()), location: None }
            .into()
    }
}

fn file(error: &dyn std::fmt::Display) -> Error {
    ErrorKind::File { path: PathBuf::new(), message: error.to_string() }.into()
}

/// System errors are no values: the copy keeps kind and text.
fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

fn copy(error: &Error) -> Error {
    use ErrorKind as K;
    let kind = match error.kind() {
        K::OutOfDeviceMemory { operator, asked, free, limit, used, cached, kept } => {
            K::OutOfDeviceMemory {
                operator,
                asked: *asked,
                free: *free,
                limit: *limit,
                used: *used,
                cached: *cached,
                kept: *kept,
            }
        }
        K::OutOfHostMemory { account, limit, spill_limit } => K::OutOfHostMemory {
            account: account.clone(),
            limit: *limit,
            spill_limit: *spill_limit,
        },
        K::Cuda { call, code } => K::Cuda { call, code: code.clone() },
        K::DeviceLost { device, why } => K::DeviceLost { device: *device, why: why.clone() },
        K::DeviceUnavailable { device, why } => {
            K::DeviceUnavailable { device: device.clone(), why: why.clone() }
        }
        K::Compile { kernel, log } => K::Compile { kernel: kernel.clone(), log: log.clone() },
        K::UserCode { function, line, column, message, text } => K::UserCode {
            function: function.clone(),
            line: *line,
            column: *column,
            message: message.clone(),
            text: text.clone(),
        },
        K::Simulation { kernel, report } => {
            K::Simulation { kernel: kernel.clone(), report: report.clone() }
        }
        K::TypeMismatch { what, expected, found } => {
            K::TypeMismatch { what: what.clone(), expected: expected.clone(), found: found.clone() }
        }
        K::RowNotFound { row, rows } => K::RowNotFound { row: *row, rows: *rows },
        K::ColumnNotFound { name, known } => {
            K::ColumnNotFound { name: name.clone(), known: known.clone() }
        }
        K::TableNotFound { name, known } => {
            K::TableNotFound { name: name.clone(), known: known.clone() }
        }
        K::SchemaNotFound { name, known } => {
            K::SchemaNotFound { name: name.clone(), known: known.clone() }
        }
        K::DatabaseNotFound { name, known } => {
            K::DatabaseNotFound { name: name.clone(), known: known.clone() }
        }
        K::FunctionNotFound { name, known } => {
            K::FunctionNotFound { name: name.clone(), known: known.clone() }
        }
        K::Arithmetic { fault, operation, account } => {
            K::Arithmetic { fault: *fault, operation: operation.clone(), account: account.clone() }
        }
        K::Parse { path, line, column, message } => {
            K::Parse { path: path.clone(), line: *line, column: *column, message: message.clone() }
        }
        K::File { path, message } => K::File { path: path.clone(), message: message.clone() },
        K::Unsupported { what, why } => K::Unsupported { what: what.clone(), why: why.clone() },
        K::Forbidden { what, needs } => K::Forbidden { what: what.clone(), needs: *needs },
        K::NotAQuery { what, executes } => K::NotAQuery { what: what.clone(), executes: *executes },
        K::Interrupted { timeout } => K::Interrupted { timeout: *timeout },
        K::Internal { what } => K::Internal { what: what.clone() },
        K::Plan { message, location } => K::Plan { message: message.clone(), location: *location },
        K::Io { path, source } => K::Io { path: path.clone(), source: again(source) },
    };
    Error(Box::new(Inner {
        kind,
        location: error.0.location,
        misfit: error.0.misfit,
        verb: error.0.verb,
        hint: error.0.hint.clone(),
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// The error as one of two partitions gets it.
    fn shared(error: D) -> Error {
        let first = Arc::new(error);
        let _second = Arc::clone(&first);
        D::Shared(first).into()
    }

    #[test]
    fn a_bad_csv_value_keeps_its_place() {
        let text = "Error while parsing value 'x' as type 'Int64' for column 1 at line 6. Row data: '[1,x]'";
        let error = shared(ArrowError::ParseError(text.into()).into());
        assert!(
            matches!(error.kind(), ErrorKind::Parse { path: Some(_), line: 7, column: 2, .. }),
            "{error:?}"
        );
    }

    #[test]
    fn our_own_errors_keep_their_kind_and_place() {
        let kind = ErrorKind::OutOfDeviceMemory {
            operator: "sort",
            asked: 3,
            free: 2,
            limit: 1,
            used: 9,
            cached: 5,
            kept: 4,
        };
        let error =
            shared(D::Context("while".into(), Box::new(Error::from(kind).at(Some((4, 5))).into())));
        assert!(
            matches!(
                error.kind(),
                ErrorKind::OutOfDeviceMemory {
                    operator: "sort",
                    asked: 3,
                    free: 2,
                    limit: 1,
                    used: 9,
                    cached: 5,
                    kept: 4
                }
            ),
            "{error:?}"
        );
        assert_eq!(error.location(), Some((4, 5)));
    }

    #[test]
    fn a_misfit_keeps_its_column() {
        let kind = ErrorKind::Parse {
            path: Some("t.csv".into()),
            line: 3,
            column: 2,
            message: "x".into(),
        };
        assert_eq!(shared(Error::from(kind).with_misfit(1).into()).misfit(), Some(1));
    }

    #[test]
    fn system_and_arithmetic_errors_keep_their_kind() {
        let error = shared(D::IoError(io::Error::from(io::ErrorKind::PermissionDenied)));
        let ErrorKind::Io { source, .. } = error.kind() else { panic!("{error:?}") };
        assert_eq!(source.kind(), io::ErrorKind::PermissionDenied);
        let error = shared(ArrowError::DivideByZero.into());
        assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{error:?}");
    }
}
