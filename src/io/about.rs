//! What files say of themselves, as rows: the tables of `parquet_metadata('f')`, `sniff_csv('f')`,
//! `glob('*')`, `read_text('f')` and their like. Columns are named as DuckDB's.

mod chunk_values;
mod contents;
mod layout;
mod parquet;

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};

use super::csv::CsvOptions;
use super::selection::{any_files, matching};
use crate::error::{Error, ErrorKind, Result};

/// A table of what files say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AboutFiles {
    /// A row a column chunk.
    ParquetMetadata,
    /// A row an element of the schema.
    ParquetSchema,
    /// A row a file.
    ParquetFileMetadata,
    /// A row a note.
    ParquetKvMetadata,
    /// How rows are laid out, and what types their columns have: one row.
    SniffCsv,
    /// The paths that a pattern matches.
    Glob,
    /// A row a file.
    ReadText,
    /// A row a file.
    ReadBlob,
}

/// All of them, by the names of their functions.
const FUNCTIONS: [(&str, AboutFiles); 8] = [
    ("parquet_metadata", AboutFiles::ParquetMetadata),
    ("parquet_schema", AboutFiles::ParquetSchema),
    ("parquet_file_metadata", AboutFiles::ParquetFileMetadata),
    ("parquet_kv_metadata", AboutFiles::ParquetKvMetadata),
    ("sniff_csv", AboutFiles::SniffCsv),
    ("glob", AboutFiles::Glob),
    ("read_text", AboutFiles::ReadText),
    ("read_blob", AboutFiles::ReadBlob),
];

impl AboutFiles {
    /// The table of a function, by its name in lower case.
    pub(crate) fn of(function: &str) -> Option<AboutFiles> {
        FUNCTIONS.iter().find(|(name, _)| *name == function).map(|(_, about)| *about)
    }

    /// The names of all functions.
    pub(crate) fn functions() -> impl Iterator<Item = &'static str> {
        FUNCTIONS.iter().map(|(name, _)| *name)
    }

    /// The rows about files, which paths and patterns name.
    ///
    /// # Errors
    /// No such file, except of `glob`; files that cannot be read, or not as this kind.
    pub(crate) fn rows(self, named: &[PathBuf], options: &CsvOptions) -> Result<RecordBatch> {
        if self == AboutFiles::Glob {
            let files = named.iter().map(|named| matching(named)).collect::<Result<Vec<_>>>()?;
            let files = files.iter().flatten().map(|file| file.to_string_lossy());
            return batch(vec![("file", texts(files.map(Some)))]);
        }
        let files = any_files(named)?;
        match self {
            AboutFiles::ParquetMetadata => parquet::chunks(&files),
            AboutFiles::ParquetSchema => parquet::schemas(&files),
            AboutFiles::ParquetFileMetadata => parquet::files(&files),
            AboutFiles::ParquetKvMetadata => parquet::notes(&files),
            AboutFiles::SniffCsv => layout::sniffed(&files, options),
            AboutFiles::ReadText => contents::texts_of(&files),
            AboutFiles::ReadBlob => contents::bytes_of(&files),
            AboutFiles::Glob => Err(Error::internal("a pattern's files are not read")),
        }
    }
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> Result<RecordBatch> {
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    Ok(RecordBatch::try_from_iter_with_nullable(columns)?)
}

fn texts<T: AsRef<str>>(values: impl Iterator<Item = Option<T>>) -> ArrayRef {
    Arc::new(values.collect::<StringViewArray>())
}

fn integers(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

/// An error that names its file.
fn of_file(path: &std::path::Path, message: impl Into<String>) -> Error {
    ErrorKind::File { path: path.into(), message: message.into() }.into()
}
