//! What errors say.

use std::fmt;
use std::path::{Display, Path};

use super::{Error, ErrorKind, nearest};

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(verb) = self.0.verb {
            write!(f, "{verb}: ")?;
        }
        match self.kind() {
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
            ErrorKind::DeviceLost { device, why } => of_loss(f, *device, why),
            ErrorKind::DeviceUnavailable { device, why } => {
                write!(f, "device {device} is not available: {why}")
            }
            ErrorKind::Compile { kernel, log } => {
                write!(f, "kernel {kernel} does not compile:\n{log}")
            }
            ErrorKind::UserCode { function, line, column, message, text } => {
                let place = place(*line, *column);
                let behind = if place.is_empty() { ": " } else { ", " };
                write!(f, "function {function}{behind}{place}{message}")?;
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
            ErrorKind::ColumnNotFound { name, known } => missing(f, "column", name, known),
            ErrorKind::TableNotFound { name, known } => missing(f, "table", name, known),
            ErrorKind::SchemaNotFound { name, known } => missing(f, "schema", name, known),
            ErrorKind::DatabaseNotFound { name, known } => missing(f, "database", name, known),
            ErrorKind::FunctionNotFound { name, known } => {
                write!(f, "no function named {name:?}")?;
                let meant = nearest(name, known);
                meant.iter().try_for_each(|meant| write!(f, "; did you mean {meant}?"))
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
                    write!(f, "{}: ", path_text(path))?;
                }
                write!(f, "{}{message}", place(*line, *column))
            }
            ErrorKind::File { path, message } => write!(f, "{}: {message}", path_text(path)),
            ErrorKind::Unsupported { what, why } => write!(f, "not supported: {what}: {why}"),
            ErrorKind::Forbidden { what, needs } => write!(f, "not supported: {what}: {needs}"),
            ErrorKind::NotAQuery { what, executes } => {
                let execute = if *executes { "Session::execute takes it; " } else { "" };
                let sql = "Session::sql takes one query (SELECT, WITH or VALUES)";
                write!(f, "not supported: {what}: {execute}{sql}")
            }
            ErrorKind::Interrupted { timeout: None } => write!(f, "the statement was interrupted"),
            ErrorKind::Interrupted { timeout: Some(timeout) } => {
                write!(f, "the statement took longer than statement_timeout allows ({timeout:?})")
            }
            ErrorKind::Internal { what } => {
                write!(f, "internal error, a bug of warpframe's: {what}")
            }
            ErrorKind::Plan { message, location } => {
                let (line, column) = location.unwrap_or_default();
                write!(f, "{}{message}", place(line, column))
            }
            ErrorKind::Io { path, source } => of_system(f, path, source),
        }
    }
}

fn of_loss(f: &mut fmt::Formatter<'_>, device: usize, why: &str) -> fmt::Result {
    write!(
        f,
        "device {device} is lost, and the results that lay there; queries go on with the others: \
         {why}"
    )
}

/// What the system says, behind the file that it is about, if that is known.
fn of_system(f: &mut fmt::Formatter<'_>, path: &Path, source: &std::io::Error) -> fmt::Result {
    match path.as_os_str().is_empty() {
        true => write!(f, "{source}"),
        false => write!(f, "{}: {source}", path_text(path)),
    }
}

/// What a file is called to a person.
pub(crate) fn path_text(path: &Path) -> Display<'_> {
    let is_input = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].map(Path::new).contains(&path);
    if is_input { Path::new("standard input").display() } else { path.display() }
}

/// What the default exit of `main` and `unwrap` print.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.to_string();
        f.write_str(&text)?;
        let cause = std::error::Error::source(self).map(ToString::to_string);
        // That of the system is in the text.
        if let Some(cause) = cause.filter(|cause| !text.contains(cause.as_str())) {
            write!(f, "\ncaused by: {cause}")?;
        }
        self.hint().iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

fn missing(f: &mut fmt::Formatter<'_>, what: &str, name: &str, known: &[String]) -> fmt::Result {
    write!(f, "no {what} named {name:?}{}", known_names(known))
}

/// A place before a message, as far as it is known.
fn place(line: u64, column: u64) -> String {
    match (line, column) {
        (0, _) => String::new(),
        (line, 0) => format!("line {line}: "),
        (line, column) => format!("line {line}, column {column}: "),
    }
}

/// The names that are known, behind a message.
pub(crate) fn known_names(known: &[String]) -> String {
    match known {
        [] => String::new(),
        known => format!("; known: {}", listed(known)),
    }
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
