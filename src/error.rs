//! The one error type of the engine.
//!
//! [`ErrorKind`] is API and carries fields; the wording of messages is not API.

use std::fmt;
use std::path::PathBuf;

/// Result of every fallible operation of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong; match on [`Error::kind`].
///
/// ```
/// use warpframe::{Error, ErrorKind};
/// let error = Error::from(ErrorKind::Unsupported { what: "window function".into(), why: "not on the device".into() });
/// assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }));
/// ```
#[derive(Debug)]
pub struct Error(Box<ErrorKind>);

/// The kinds of [`Error`], with what is known about each.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An allocation exceeded the device's memory or the configured limit. Sizes in bytes.
    OutOfDeviceMemory {
        /// The operator that asked.
        operator: &'static str,
        /// Bytes asked for.
        asked: u64,
        /// Bytes the pool could still have given.
        free: u64,
        /// The pool's limit in bytes.
        limit: u64,
    },
    /// A call of the CUDA driver failed.
    Cuda {
        /// The driver function.
        call: &'static str,
        /// Name and text of the driver's error code.
        code: String,
    },
    /// A device cannot be used on this machine: driver, NVRTC or C++ compiler missing.
    DeviceUnavailable {
        /// The device asked for.
        device: String,
        /// What is missing, and what to install.
        why: String,
    },
    /// A kernel did not compile: our bug; the log says where.
    Compile {
        /// Name of the kernel's source.
        kernel: String,
        /// The compiler's log.
        log: String,
    },
    /// A kernel misbehaved in the simulator (deadlock, divergent barrier, bad address).
    Simulation {
        /// The kernel.
        kernel: String,
        /// The simulator's report.
        report: String,
    },
    /// A value has another type than the operation needs.
    TypeMismatch {
        /// The operation.
        what: String,
        /// The type it needs.
        expected: String,
        /// The type it got.
        found: String,
    },
    /// No column of this name.
    ColumnNotFound {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// No table of this name.
    TableNotFound {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// Arithmetic left the range of its type, or a divisor was zero.
    Arithmetic {
        /// The operation.
        what: String,
    },
    /// Input that does not parse.
    Parse {
        /// The file, or `None` for SQL text.
        path: Option<PathBuf>,
        /// 1-based line, 0 if unknown.
        line: u64,
        /// 1-based column, 0 if unknown.
        column: u64,
        /// What was wrong or expected.
        message: String,
    },
    /// A file's content is not what its format demands.
    File {
        /// The file.
        path: PathBuf,
        /// What was wrong with it.
        message: String,
    },
    /// Something the engine (or, in strict mode, the device) does not do.
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why it is not done.
        why: String,
    },
    /// The plan is invalid or failed on the CPU engine.
    Plan {
        /// DataFusion's account.
        message: String,
        /// Line and column in the SQL text, both 1-based, where known.
        location: Option<(u64, u64)>,
    },
    /// Reading or writing failed.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's account.
        source: std::io::Error,
    },
}

impl Error {
    /// What went wrong, with its details.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    pub(crate) fn unsupported(what: impl Into<String>, why: impl Into<String>) -> Self {
        ErrorKind::Unsupported { what: what.into(), why: why.into() }.into()
    }

    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        ErrorKind::Io { path: path.into(), source }.into()
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Error(Box::new(kind))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            ErrorKind::OutOfDeviceMemory { operator, asked, free, limit } => {
                write!(f, "out of device memory: {operator} asked for {asked} bytes, {free} of {limit} bytes are free")
            }
            ErrorKind::Cuda { call, code } => write!(f, "CUDA driver: {call} failed: {code}"),
            ErrorKind::DeviceUnavailable { device, why } => write!(f, "device {device} is not available: {why}"),
            ErrorKind::Compile { kernel, log } => write!(f, "kernel {kernel} does not compile:\n{log}"),
            ErrorKind::Simulation { kernel, report } => write!(f, "kernel {kernel} failed in the simulator: {report}"),
            ErrorKind::TypeMismatch { what, expected, found } => {
                write!(f, "{what}: expected {expected}, found {found}")
            }
            ErrorKind::ColumnNotFound { name, known } => {
                write!(f, "no column named {name:?}; known: {}", known.join(", "))
            }
            ErrorKind::TableNotFound { name, known } => {
                write!(f, "no table named {name:?}; known: {}", known.join(", "))
            }
            ErrorKind::Arithmetic { what } => write!(f, "{what}"),
            ErrorKind::Parse { path, line, column, message } => {
                if let Some(path) = path {
                    write!(f, "{}: ", path.display())?;
                }
                match (line, column) {
                    (0, _) => write!(f, "{message}"),
                    (line, 0) => write!(f, "line {line}: {message}"),
                    (line, column) => write!(f, "line {line}, column {column}: {message}"),
                }
            }
            ErrorKind::File { path, message } => write!(f, "{}: {message}", path.display()),
            ErrorKind::Unsupported { what, why } => write!(f, "not supported: {what}: {why}"),
            ErrorKind::Plan { message, location: Some((line, column)) } => {
                write!(f, "line {line}, column {column}: {message}")
            }
            ErrorKind::Plan { message, location: None } => write!(f, "{message}"),
            ErrorKind::Io { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self.kind() {
            ErrorKind::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

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
            D::External(inner) => match inner.downcast::<Error>() {
                Ok(ours) => *ours,
                Err(other) => ErrorKind::Plan { message: other.to_string(), location: None }.into(),
            },
            D::Context(_, inner) if matches!(*inner, D::External(_)) => Error::from(*inner),
            D::ArrowError(inner, _) => match *inner {
                datafusion::arrow::error::ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
                    Ok(ours) => *ours,
                    Err(other) => ErrorKind::Plan { message: other.to_string(), location: None }.into(),
                },
                datafusion::arrow::error::ArrowError::DivideByZero => {
                    ErrorKind::Arithmetic { what: "Divide by zero error".into() }.into()
                }
                datafusion::arrow::error::ArrowError::ArithmeticOverflow(what) => ErrorKind::Arithmetic { what }.into(),
                other => ErrorKind::Plan { message: other.to_string(), location: None }.into(),
            },
            D::Shared(inner) => match std::sync::Arc::try_unwrap(inner) {
                Ok(inner) => Error::from(inner),
                Err(inner) => ErrorKind::Plan { message: inner.strip_backtrace(), location: None }.into(),
            },
            other => {
                let location = other.diagnostic().and_then(|d| d.span).map(|span| (span.start.line, span.start.column));
                ErrorKind::Plan { message: other.strip_backtrace(), location }.into()
            }
        }
    }
}

impl From<datafusion::arrow::error::ArrowError> for Error {
    fn from(error: datafusion::arrow::error::ArrowError) -> Self {
        datafusion::error::DataFusionError::from(error).into()
    }
}
