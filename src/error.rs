//! The one error type of the engine.
//!
//! [`ErrorKind`] is API and carries fields; the wording of messages is not API.

mod arithmetic;
mod likeness;
mod shared;
mod wording;

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, SchemaError};
use datafusion::object_store;

pub use arithmetic::{Fault, Operation};
pub use likeness::nearest;

/// Result of every fallible operation of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong; match on [`Error::kind`].
///
/// ```
/// use warpframe::{Error, ErrorKind};
/// let error = Error::from(ErrorKind::Unsupported { what: "an array".into(), why: "not on the device".into() });
/// assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }));
/// ```
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    /// Line and column in the SQL text, for kinds that have no place for it.
    location: Option<(u64, u64)>,
    /// The column whose type, by which a query was planned, is too narrow for what is there, from 0
    /// on.
    misfit: Option<usize>,
    /// The verb of a frame that met it.
    verb: Option<&'static str>,
}

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
        /// Bytes in use.
        used: u64,
        /// Of these, bytes of columns of files that were read. Where they are many, queries read
        /// them now: the others made room.
        cached: u64,
        /// Of these, bytes of tables that their users keep: results and tables made of them.
        kept: u64,
    },
    /// The CPU engine's operators needed more host memory than its limit, beyond what they could
    /// spill to files.
    OutOfHostMemory {
        /// DataFusion's account: who asked, and for how much.
        account: String,
        /// The limit in bytes, where it is known.
        limit: Option<u64>,
        /// Most bytes of files, where it is known.
        spill_limit: Option<u64>,
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
    /// Code that a user wrote for the device does not compile, or does not end in the simulator.
    UserCode {
        /// The function that it is of.
        function: String,
        /// Line of the code, 1-based: of the SQL text where it stands in one, else of the body; 0
        /// if unknown.
        line: u64,
        /// Column in this line, 1-based, 0 if unknown.
        column: u64,
        /// The compiler's account.
        message: String,
        /// The line.
        text: String,
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
    /// No schema of this name.
    SchemaNotFound {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// No row of this number.
    RowNotFound {
        /// The number asked for.
        row: i128,
        /// Rows there are; their numbers begin with 0.
        rows: u64,
    },
    /// A row failed: arithmetic left the range of its type, a divisor was zero, a value fits no
    /// type.
    Arithmetic {
        /// What the operation ran into.
        fault: Fault,
        /// The operation, and its arguments in a row in which it failed; `None` where `account` is
        /// all that is known.
        operation: Option<Box<Operation>>,
        /// The account of whoever noticed: that of the CPU engine, which knows no columns.
        account: Option<String>,
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
    /// A statement was stopped before it was done. The session and its tables go on.
    Interrupted {
        /// How long it was allowed to take, where it took longer; `None` where
        /// [`Session::interrupt`](crate::Session::interrupt) stopped it.
        timeout: Option<Duration>,
    },
    /// The engine contradicts itself: a bug of ours, never a reason to try another way in silence.
    Internal {
        /// The contradiction.
        what: String,
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
    ///
    /// ```
    /// use warpframe::{DeviceChoice, ErrorKind, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let error = session.read_csv("nowhere.csv").unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::Io { path, .. } if path.ends_with("nowhere.csv")));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// Whether device memory ran out. The work may succeed in smaller pieces.
    pub(crate) fn is_out_of_device_memory(&self) -> bool {
        matches!(self.kind(), ErrorKind::OutOfDeviceMemory { .. })
    }

    /// Line and column in the SQL text that the error is about, both 1-based, where known.
    ///
    /// ```
    /// let session = warpframe::Session::builder().device(warpframe::DeviceChoice::Cpu).build()?;
    /// let error = session.sql("SELECT 1 +\nnobody").unwrap_err();
    /// assert_eq!(error.location(), Some((2, 1)));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn location(&self) -> Option<(u64, u64)> {
        match &self.0.kind {
            ErrorKind::Plan { location: Some(location), .. } => Some(*location),
            ErrorKind::Parse { path: None, line, column, .. } if *line > 0 => {
                Some((*line, *column))
            }
            _ => self.0.location,
        }
    }

    /// The same error, said to be about this place in the SQL text unless it already names one.
    pub(crate) fn at(mut self, location: Option<(u64, u64)>) -> Self {
        self.0.location = self.0.location.or(location);
        self
    }

    /// The verb of a frame that the error is about, if it is about one.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let error = session.sql("SELECT 1 AS a")?.rename([("b", "c")]).unwrap_err();
    /// assert_eq!(error.verb(), Some("rename"));
    /// assert_eq!(error.to_string(), "rename: no column named \"b\"; known: a");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn verb(&self) -> Option<&'static str> {
        self.0.verb
    }

    /// The same error, said to be about a verb, of which others are part.
    pub(crate) fn in_verb(mut self, verb: &'static str) -> Self {
        self.0.verb = Some(verb);
        self
    }

    /// The same error, said to be about a column that a wider type would hold.
    pub(crate) fn with_misfit(mut self, column: usize) -> Self {
        self.0.misfit = Some(column);
        self
    }

    /// The column whose type is too narrow, if this is what went wrong.
    pub(crate) fn misfit(&self) -> Option<usize> {
        self.0.misfit
    }

    /// The same error, with the limits of the CPU engine where it is about these.
    pub(crate) fn with_host_limits(mut self, memory: Option<u64>, files: u64) -> Self {
        if let ErrorKind::OutOfHostMemory { limit, spill_limit, .. } = &mut self.0.kind {
            (*limit, *spill_limit) = (memory, Some(files));
        }
        self
    }

    pub(crate) fn unsupported(what: impl Into<String>, why: impl Into<String>) -> Self {
        ErrorKind::Unsupported { what: what.into(), why: why.into() }.into()
    }

    /// An arithmetic error of which this is all that is known.
    pub(crate) fn arithmetic(fault: Fault, account: impl Into<String>) -> Self {
        ErrorKind::Arithmetic { fault, operation: None, account: Some(account.into()) }.into()
    }

    pub(crate) fn internal(what: impl Into<String>) -> Self {
        ErrorKind::Internal { what: what.into() }.into()
    }

    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        ErrorKind::Io { path: path.into(), source }.into()
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Error(Box::new(Inner { kind, location: None, misfit: None, verb: None }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(verb) = self.0.verb {
            write!(f, "{verb}: ")?;
        }
        match self.kind() {
            ErrorKind::OutOfDeviceMemory { operator, asked, free, limit, used, cached, kept } => {
                write!(
                    f,
                    "out of device memory: {operator} asked for {asked} bytes, {free} of {limit} bytes are free"
                )?;
                write!(
                    f,
                    "; of {used} in use, {cached} hold columns of files and {kept} kept tables"
                )
            }
            ErrorKind::OutOfHostMemory { account, limit, spill_limit } => {
                write!(f, "out of host memory: {}", account.trim_end_matches(['.', '\n']))?;
                limit.iter().try_for_each(|bytes| write!(f, "; the limit is {bytes} bytes"))?;
                spill_limit.iter().try_for_each(|bytes| write!(f, ", and {bytes} bytes of files"))
            }
            ErrorKind::Cuda { call, code } => write!(f, "CUDA driver: {call} failed: {code}"),
            ErrorKind::DeviceUnavailable { device, why } => {
                write!(f, "device {device} is not available: {why}")
            }
            ErrorKind::Compile { kernel, log } => {
                write!(f, "kernel {kernel} does not compile:\n{log}")
            }
            ErrorKind::UserCode { function, line, column, message, text } => {
                write!(f, "function {function}")?;
                match (line, column) {
                    (0, _) => {}
                    (line, 0) => write!(f, ", line {line}")?,
                    (line, column) => write!(f, ", line {line}, column {column}")?,
                }
                write!(f, ": {message}")?;
                if !text.is_empty() {
                    write!(f, "\n  {text}")?;
                }
                // Under it only where the line is the body's own: before one that begins in a line
                // of SQL stands more.
                match self.0.location {
                    None if *column > 0 && !text.is_empty() => {
                        write!(f, "\n  {:>width$}", "^", width = *column as usize)
                    }
                    _ => Ok(()),
                }
            }
            ErrorKind::Simulation { kernel, report } => {
                write!(f, "kernel {kernel} failed in the simulator: {report}")
            }
            ErrorKind::TypeMismatch { what, expected, found } => {
                write!(f, "{what}: expected {expected}, found {found}")
            }
            ErrorKind::ColumnNotFound { name, known } => {
                write!(f, "no column named {name:?}{}", known_names(known))
            }
            ErrorKind::TableNotFound { name, known } => {
                write!(f, "no table named {name:?}{}", known_names(known))
            }
            ErrorKind::SchemaNotFound { name, known } => {
                write!(f, "no schema named {name:?}{}", known_names(known))
            }
            ErrorKind::RowNotFound { row, rows } => {
                write!(f, "no row {row}: there are {rows} rows, from 0 on")
            }
            ErrorKind::Arithmetic { account: Some(account), .. } => write!(f, "{account}"),
            ErrorKind::Arithmetic { fault, operation: Some(operation), .. } => {
                operation.describe(*fault, f)
            }
            ErrorKind::Arithmetic { fault, .. } => write!(f, "{fault}"),
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
            ErrorKind::Interrupted { timeout: None } => write!(f, "the statement was interrupted"),
            ErrorKind::Interrupted { timeout: Some(timeout) } => {
                write!(f, "the statement took longer than statement_timeout allows ({timeout:?})")
            }
            ErrorKind::Internal { what } => {
                write!(f, "internal error, a bug of warpframe's: {what}")
            }
            ErrorKind::Plan { message, location: Some((line, column)) } => {
                write!(f, "line {line}, column {column}: {message}")
            }
            ErrorKind::Plan { message, location: None } => write!(f, "{message}"),
            ErrorKind::Io { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

/// The names that are known, behind a message.
pub(crate) fn known_names(known: &[String]) -> String {
    format!("; known: {}", listed(known))
}

/// Names, as many as one takes in.
pub(crate) fn listed(names: &[String]) -> String {
    const MOST: usize = 20;
    let more = match names.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names[..names.len().min(MOST)].join(", "))
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
                Err(inner) => shared::of_shared(&inner),
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
fn from_arrow(error: ArrowError) -> Error {
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
