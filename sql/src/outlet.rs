//! Where results go instead of the terminal: into a file, which takes the place of another one when
//! it is whole, or to a program.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use warpframe::{
    CsvWriteOptions, DataFrame, IpcLayout, IpcWriteOptions, JsonWriteOptions, ParquetWriteOptions,
    WholeFile, WriteFormat,
};

use crate::interrupt::Lent;
use crate::output::Format;
use crate::report::Failure;

/// How results are written into a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileFormat {
    /// As text, one behind the other.
    Text(Format),
    /// One, as COPY writes it.
    Rows(WriteFormat),
}

/// What names of files end in that tell a format.
const SUFFIXES: &str = ".csv, .tsv, .json, .ndjson, .jsonl (also with .gz or .zst behind), .md, .html, .sql, \
     .parquet, .arrow and .arrows";

impl FileFormat {
    /// The one that a file's name tells; `None` where it says nothing of a format, as do `x`,
    /// `x.txt` and what is no file.
    ///
    /// # Errors
    /// What is wrong with a name that ends in what is of no format.
    pub fn of(path: &Path) -> Result<Option<FileFormat>, String> {
        let Some(suffix) = path.extension() else { return Ok(None) };
        if let Some(format) = compressed(path) {
            return Ok(Some(FileFormat::Rows(format)));
        }
        let ipc = |layout| WriteFormat::Ipc(IpcWriteOptions { layout, ..Default::default() });
        let format = match suffix.to_string_lossy().to_lowercase().as_str() {
            "csv" => FileFormat::Text(Format::Csv),
            "tsv" | "tab" => FileFormat::Text(Format::Tsv),
            "json" => FileFormat::Text(Format::Json),
            "ndjson" | "jsonl" => FileFormat::Text(Format::Ndjson),
            "md" => FileFormat::Text(Format::Markdown),
            "html" | "htm" => FileFormat::Text(Format::Html),
            "sql" => FileFormat::Text(Format::Insert),
            "parquet" | "parq" | "pq" => {
                FileFormat::Rows(WriteFormat::Parquet(ParquetWriteOptions::default()))
            }
            "arrow" | "feather" | "ipc" => FileFormat::Rows(ipc(IpcLayout::File)),
            "arrows" => FileFormat::Rows(ipc(IpcLayout::Stream)),
            "txt" => return Ok(None),
            _ if path.exists() && !path.is_file() => return Ok(None),
            other => {
                let name = path.display();
                return Err(format!("{name}: .{other} is of no format; known are {SUFFIXES}"));
            }
        };
        Ok(Some(format))
    }
}

/// How text is written into a file whose name ends in what it is compressed with.
fn compressed(path: &Path) -> Option<WriteFormat> {
    let lower = path.to_string_lossy().to_lowercase();
    let inner = [".gz", ".zst"].iter().find_map(|suffix| lower.strip_suffix(suffix))?;
    let tabs = CsvWriteOptions { delimiter: b'\t', ..CsvWriteOptions::default() };
    let array = JsonWriteOptions { array: true, ..JsonWriteOptions::default() };
    match inner.rsplit_once('.')?.1 {
        "csv" => Some(WriteFormat::Csv(CsvWriteOptions::default())),
        "tsv" | "tab" => Some(WriteFormat::Csv(tabs)),
        "json" => Some(WriteFormat::Json(array)),
        "ndjson" | "jsonl" => Some(WriteFormat::Json(JsonWriteOptions::default())),
        _ => None,
    }
}

/// Where results go.
pub struct Outlet {
    target: Target,
    /// As it was named.
    name: String,
    /// How results are written there, where its name tells.
    format: Option<FileFormat>,
    /// Whether only those of the next statement go there.
    once: bool,
    /// Whether it has a result.
    has_rows: bool,
}

enum Target {
    File(WholeFile),
    Program(Child),
}

/// How far a outlet was written.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    len: u64,
    has_rows: bool,
}

impl Outlet {
    /// A file.
    ///
    /// # Errors
    /// One that cannot be written.
    pub fn file(path: &Path, format: Option<FileFormat>) -> Result<Outlet, Failure> {
        let target = Target::File(WholeFile::create(path)?);
        let name = path.display().to_string();
        Ok(Outlet { target, name, format, once: false, has_rows: false })
    }

    /// A program, which the system's shell begins.
    ///
    /// # Errors
    /// There is no such shell.
    pub fn program(command: &str) -> Result<Outlet, Failure> {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).stdin(Stdio::piped());
        let child = shell.spawn().map_err(|error| Failure::file(Path::new("sh"), error))?;
        let (target, name) = (Target::Program(child), format!("|{command}"));
        Ok(Outlet { target, name, format: None, once: false, has_rows: false })
    }

    /// This one, for the result of the next statement alone or for those of all.
    pub fn once(self, once: bool) -> Outlet {
        Outlet { once, ..self }
    }

    /// Whether it is for one statement.
    pub fn is_once(&self) -> bool {
        self.once
    }

    /// How text is written there, where its name tells.
    pub fn format(&self) -> Option<Format> {
        match self.format {
            Some(FileFormat::Text(format)) => Some(format),
            _ => None,
        }
    }

    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        matches!(self.target, Target::File(_))
    }

    /// Whether it takes rows, and no text.
    pub fn takes_rows(&self) -> bool {
        matches!(self.format, Some(FileFormat::Rows(_)))
    }

    /// Puts rows there.
    ///
    /// # Errors
    /// Those of a second result; what writing them comes to.
    pub fn put(&mut self, frame: &DataFrame) -> Result<(), Failure> {
        let (Some(FileFormat::Rows(format)), Target::File(file)) = (&self.format, &mut self.target)
        else {
            return Err(self.refused().into());
        };
        if std::mem::replace(&mut self.has_rows, true) {
            let message = format!("{}: such a file holds one result, and has one", self.name);
            return Err(Failure::sql(message, None));
        }
        Ok(frame.write_into(file, format)?)
    }

    /// How far it was written.
    pub fn mark(&self) -> Mark {
        let len = match &self.target {
            Target::File(file) => file.len(),
            Target::Program(_) => 0,
        };
        Mark { len, has_rows: self.has_rows }
    }

    /// Takes back what was written since. A program keeps it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn back_to(&mut self, mark: Mark) -> Result<(), Failure> {
        self.has_rows = mark.has_rows;
        match &mut self.target {
            Target::File(file) => Ok(file.back_to(mark.len)?),
            Target::Program(_) => Ok(()),
        }
    }

    /// Puts the file into its place if it is whole, and otherwise removes it. Waits for a program to
    /// end.
    ///
    /// # Errors
    /// The file cannot be written, or would have no form without a result.
    pub fn end(self, is_whole: bool) -> Result<(), Failure> {
        let is_empty = self.takes_rows() && !self.has_rows;
        match self.target {
            Target::File(_) if !is_whole => Ok(()),
            Target::File(_) if is_empty => {
                let message = format!("{}: there was no result to write", self.name);
                Err(Failure::sql(message, None))
            }
            Target::File(file) => Ok(file.finish()?),
            Target::Program(mut child) => {
                let _lent = Lent::begin();
                drop(child.stdin.take());
                // How it ended is its own affair.
                child.wait().map(drop).map_err(Failure::from)
            }
        }
    }

    fn refused(&self) -> io::Error {
        io::Error::other(format!("{}: only rows of queries go into such a file", self.name))
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.takes_rows() {
            return Err(self.refused());
        }
        let name = &self.name;
        let of_file = |error: io::Error| io::Error::new(error.kind(), format!("{name}: {error}"));
        match &mut self.target {
            Target::File(file) => file.write(bytes).map_err(of_file),
            Target::Program(child) => match child.stdin.as_mut().map(|pipe| pipe.write(bytes)) {
                // It has read enough.
                Some(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
                None => Ok(bytes.len()),
                Some(written) => written,
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::File(file) => {
                let name = &self.name;
                file.flush()
                    .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
            }
            Target::Program(_) => Ok(()),
        }
    }
}
