//! Errors of devices.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Result of every fallible operation of a device.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong; match on [`Error::kind`].
pub struct Error(Box<ErrorKind>);

/// The kinds of [`Error`], with what is known about each. The engine's error has kinds of the same
/// names.
#[derive(Debug)]
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
        /// Of these, bytes of columns of files that were read.
        cached: u64,
        /// Of these, bytes of tables that their users keep.
        kept: u64,
    },
    /// Neither memory of the host nor files have room for what leaves the device.
    OutOfHostMemory {
        /// Who asked, and for how much.
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
    /// A kernel did not compile.
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
    /// Something that devices do not do.
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why it is not done.
        why: String,
    },
    /// A setting that does not parse.
    Setting {
        /// What was wrong or expected.
        message: String,
    },
    /// The work was stopped before it was done.
    Interrupted {
        /// How long it was allowed to take, where it took longer.
        timeout: Option<Duration>,
    },
    /// A contradiction: a bug of ours.
    Internal {
        /// The contradiction.
        what: String,
    },
    /// What the caller's own work failed with, which the device was asked to do: to fill memory, or
    /// to let go of it.
    Caller(Box<dyn std::error::Error + Send + Sync>),
    /// Reading or writing failed.
    Io {
        /// The file.
        path: PathBuf,
        /// The system's account.
        source: std::io::Error,
    },
}

/// Device memory that ran out, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// Asked for.
    pub asked: u64,
    /// Free then.
    pub free: u64,
    /// The pool's limit.
    pub limit: u64,
}

impl Error {
    /// What went wrong, with its details.
    pub fn kind(&self) -> &ErrorKind {
        &self.0
    }

    /// What went wrong, taken out of the error.
    pub fn into_kind(self) -> ErrorKind {
        *self.0
    }

    /// How much memory was missing, if it is this that went wrong.
    pub fn shortage(&self) -> Option<Shortage> {
        match *self.kind() {
            ErrorKind::OutOfDeviceMemory { asked, free, limit, .. } => {
                Some(Shortage { asked, free, limit })
            }
            _ => None,
        }
    }

    /// Whether device memory ran out. The work may succeed in smaller pieces.
    pub fn is_out_of_device_memory(&self) -> bool {
        self.shortage().is_some()
    }

    /// What devices do not do, and why.
    pub fn unsupported(what: impl Into<String>, why: impl Into<String>) -> Self {
        ErrorKind::Unsupported { what: what.into(), why: why.into() }.into()
    }

    /// A contradiction.
    pub fn internal(what: impl Into<String>) -> Self {
        ErrorKind::Internal { what: what.into() }.into()
    }

    /// What the system says of a file.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        ErrorKind::Io { path: path.into(), source }.into()
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Error(Box::new(kind))
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::OutOfDeviceMemory { operator, asked, free, limit, used, cached, kept } => {
                write!(
                    f,
                    "out of device memory: {operator} asked for {asked} bytes, {free} of {limit} \
                     bytes are free; of {used} in use, {cached} hold columns of files and {kept} \
                     kept tables"
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
            ErrorKind::Simulation { kernel, report } => {
                write!(f, "kernel {kernel} failed in the simulator: {report}")
            }
            ErrorKind::Unsupported { what, why } => write!(f, "not supported: {what}: {why}"),
            ErrorKind::Setting { message } => f.write_str(message),
            ErrorKind::Interrupted { timeout: None } => write!(f, "the statement was interrupted"),
            ErrorKind::Interrupted { timeout: Some(timeout) } => {
                write!(f, "the statement took longer than statement_timeout allows ({timeout:?})")
            }
            ErrorKind::Internal { what } => {
                write!(f, "internal error, a bug of warpframe's: {what}")
            }
            ErrorKind::Caller(error) => write!(f, "{error}"),
            ErrorKind::Io { path, source } if path == Path::new("") => write!(f, "{source}"),
            ErrorKind::Io { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}

/// What the default exit of `main` and `unwrap` print.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
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
