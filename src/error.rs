//! The one error type of the engine.
//!
//! [`ErrorKind`] is API and carries fields; the wording of messages is not API.

mod arithmetic;
mod arrow;
mod converted;
mod device;
mod likeness;
mod message;
mod permission;
mod shared;
mod sql_words;
mod wording;

use std::path::PathBuf;
use std::time::Duration;

use warpframe_device::Shortage;

pub use arithmetic::{Fault, Operation};
pub use likeness::nearest;
pub(crate) use message::{known_names, listed, path_text};
pub use permission::Permission;

/// Result of every fallible operation of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong; match on [`Error::kind`].
///
/// ```
/// use warpframe::{Error, ErrorKind};
/// let error = Error::from(ErrorKind::Unsupported { what: "an array".into(), why: "not on the device".into() });
/// assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }));
/// ```
///
/// `Debug` is the text that `Display` gives, so that a `main` which returns it prints what a person
/// reads, and the hint in a line of its own.
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
    /// What to do about it.
    hint: Option<String>,
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
    /// One of a session's devices failed so that it can do nothing any more. The statement has no
    /// result. Queries go on with the others. Results lie on the first device that is left; those
    /// that lay on the lost one have to be computed anew.
    DeviceLost {
        /// Its number among [`Session::devices`](crate::Session::devices).
        device: usize,
        /// What failed.
        why: String,
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
    /// No database is attached by this name.
    DatabaseNotFound {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// No function of this name.
    FunctionNotFound {
        /// The name asked for.
        name: String,
        /// The names there are; none of a name that is nobody's to call.
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
    /// Something that the session was not given leave for.
    Forbidden {
        /// What was asked for.
        what: String,
        /// What it needs.
        needs: Permission,
    },
    /// Another statement than a query, or several, where one query is expected.
    NotAQuery {
        /// What stands there.
        what: String,
        /// Whether [`Session::execute`](crate::Session::execute) takes it.
        executes: bool,
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
        self.shortage().is_some()
    }

    /// How much device memory was missing, if it is this that went wrong.
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        match *self.kind() {
            ErrorKind::OutOfDeviceMemory { asked, free, limit, .. } => {
                Some(Shortage { asked, free, limit })
            }
            _ => None,
        }
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

    /// Adds a place in the SQL text that the error is about, unless it already names one.
    pub(crate) fn at(mut self, location: Option<(u64, u64)>) -> Self {
        self.0.location = self.0.location.or(location);
        self
    }

    /// What was mistyped in a text that does not parse, where this is known.
    ///
    /// ```
    /// let session = warpframe::Session::builder().device(warpframe::DeviceChoice::Cpu).build()?;
    /// let error = session.sql("SELECT 1 AS n FORM t").unwrap_err();
    /// assert_eq!(error.hint(), Some("did you mean FROM?"));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Adds what to do about it, unless that is known.
    pub(crate) fn with_hint(mut self, hint: Option<String>) -> Self {
        self.0.hint = self.0.hint.take().or(hint);
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

    /// Names the verb that the error is about, of which other verbs are part.
    pub(crate) fn in_verb(mut self, verb: &'static str) -> Self {
        self.0.verb = Some(verb);
        self
    }

    /// Names the column that the error is about, whose values a wider type would hold.
    pub(crate) fn with_misfit(mut self, column: usize) -> Self {
        self.0.misfit = Some(column);
        self
    }

    /// The column whose type is too narrow, if this is what went wrong.
    pub(crate) fn misfit(&self) -> Option<usize> {
        self.0.misfit
    }

    /// Adds the limits of the CPU engine where the error is about them.
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
        Error(Box::new(Inner { kind, location: None, misfit: None, verb: None, hint: None }))
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
