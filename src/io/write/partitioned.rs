//! Rows in folders by the values of columns, as Hive names them: `year=2024/month=1/data.parquet`.
//!
//! Rows come sorted by these columns, so that the rows of a folder follow one another and one file
//! is open at a time. All folders are made beside the target, and take its place when they are
//! whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::partition;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{FolderWriteOptions, Unfinished, WriteFormat, write};
use crate::error::{Error, ErrorKind, Result};
use crate::io::path_columns::{NULL, TEXT_KEYS, inferred};
use crate::io::refuse_address;
use crate::sql::NamesApart;

/// Which columns of a schema name folders, and which are written.
#[derive(Debug)]
struct KeySplit {
    keys: Vec<usize>,
    others: Vec<usize>,
    /// Of the others.
    schema: SchemaRef,
}

impl KeySplit {
    fn of(schema: &Schema, by: &[String], options: &FolderWriteOptions) -> Result<KeySplit> {
        let plan = |message| Error::from(ErrorKind::Plan { message, location: None });
        let mut keys = vec![];
        for name in by {
            let found = schema.fields().iter().position(|field| field.name() == name);
            let at = found.ok_or_else(|| {
                Error::from(ErrorKind::ColumnNotFound {
                    name: name.clone(),
                    known: schema.fields().iter().map(|field| field.name().clone()).collect(),
                })
            })?;
            if keys.contains(&at) {
                return Err(plan(format!("the column {name:?} makes partitions twice")));
            }
            let dtype = schema.field(at).data_type();
            if dtype.is_floating() || dtype.is_nested() || is_bytes(dtype) {
                let what = format!("partitions by the column {name:?} of type {dtype}");
                return Err(Error::unsupported(
                    what,
                    "folders are named by integers, texts, dates and their like",
                ));
            }
            keys.push(at);
        }
        let is_written = |at: &usize| options.write_keys || !keys.contains(at);
        let others: Vec<usize> = (0..schema.fields().len()).filter(is_written).collect();
        if keys.is_empty() && options.rows_per_file.is_none() || others.is_empty() {
            let which = if keys.is_empty() { "no column makes" } else { "all columns make" };
            return Err(plan(format!("{which} partitions: some do, and others are written")));
        }
        let schema = Arc::new(schema.project(&others)?);
        Ok(KeySplit { keys, others, schema })
    }
}

fn is_bytes(dtype: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
    matches!(dtype, Binary | BinaryView | LargeBinary | FixedSizeBinary(_))
}

/// The values of keys that are texts, each once, by the key's name in folders.
#[derive(Debug, Default)]
struct KeyTexts(BTreeMap<String, BTreeSet<String>>);

impl KeyTexts {
    /// Adds those of the first of some rows.
    fn add(&mut self, keys: &RecordBatch) -> Result<()> {
        for (column, field) in keys.columns().iter().zip(keys.schema().fields()) {
            if field.data_type().is_string() && !is_null(column) {
                let values = self.0.entry(key_name(field.name())).or_default();
                values.insert(shown(column)?);
            }
        }
        Ok(())
    }

    /// A line for each key whose values would be read as other than texts.
    fn lines(&self) -> String {
        let misread = self.0.iter().filter(|(_, values)| {
            inferred(values.iter().map(String::as_str)) != DataType::Utf8View
        });
        misread.map(|(name, _)| format!("{name}\n")).collect()
    }
}

/// Rows that are sorted by some columns, taken by runs of equal ones.
struct FolderRuns<'a, I: Iterator<Item = Result<RecordBatch>>> {
    batches: I,
    split: &'a KeySplit,
    /// Rows that are not taken yet, and the folder of the first.
    rest: Option<(RecordBatch, PathBuf)>,
    texts: KeyTexts,
}

impl<I: Iterator<Item = Result<RecordBatch>>> FolderRuns<'_, I> {
    /// The folder of the next rows; `None` at the end.
    fn folder(&mut self) -> Result<Option<PathBuf>> {
        while self.rest.is_none() {
            let Some(batch) = self.batches.next() else { return Ok(None) };
            self.put_back(batch?)?;
        }
        Ok(self.rest.as_ref().map(|(_, folder)| folder.clone()))
    }

    fn put_back(&mut self, batch: RecordBatch) -> Result<()> {
        if batch.num_rows() > 0 {
            let keys = batch.project(&self.split.keys)?;
            let folder = folder(&keys)?;
            self.texts.add(&keys)?;
            self.rest = Some((batch, folder));
        }
        Ok(())
    }

    /// The next rows of a folder; `None` where others follow.
    fn rows_of(&mut self, folder: &Path) -> Result<Option<RecordBatch>> {
        if self.folder()?.as_deref() != Some(folder) {
            return Ok(None);
        }
        let Some((batch, _)) = self.rest.take() else { return Ok(None) };
        let keys: Vec<ArrayRef> =
            self.split.keys.iter().map(|at| batch.column(*at).clone()).collect();
        let end = match keys.is_empty() {
            true => batch.num_rows(),
            false => partition(&keys)?.ranges().first().map_or(batch.num_rows(), |run| run.end),
        };
        self.put_back(batch.slice(end, batch.num_rows() - end))?;
        Ok(Some(batch.slice(0, end).project(&self.split.others)?))
    }
}

/// The folder of the first of some rows, by their keys.
///
/// # Errors
/// A text that stands for NULL.
fn folder(keys: &RecordBatch) -> Result<PathBuf> {
    let mut path = PathBuf::new();
    for (column, field) in keys.columns().iter().zip(keys.schema().fields()) {
        let value = match is_null(column) {
            true => NULL.to_string(),
            false => {
                let text = shown(column)?;
                if text == NULL {
                    let message = format!(
                        "column {:?}: the text {NULL} names the folder of NULL",
                        field.name()
                    );
                    return Err(ErrorKind::Plan { message, location: None }.into());
                }
                escaped(&text)
            }
        };
        path.push(format!("{}={value}", key_name(field.name())));
    }
    Ok(path)
}

/// Whether a column's first value is null.
fn is_null(column: &ArrayRef) -> bool {
    column.logical_nulls().is_some_and(|nulls| nulls.is_null(0))
}

/// A column's first value as text.
fn shown(column: &ArrayRef) -> Result<String> {
    let mut text = String::new();
    let options = FormatOptions::default();
    ArrayFormatter::try_new(&column.slice(0, 1), &options)?.value(0).write(&mut text)?;
    Ok(text)
}

/// What a key is called in folders.
fn key_name(name: &str) -> String {
    let key = escaped(name);
    match key.strip_prefix(['_', '.']) {
        // Readers leave out what begins so.
        Some(rest) => format!("%{:02X}{rest}", key.as_bytes()[0]),
        None => key,
    }
}

/// A text as a part of a path: bytes that mean something there, or to others who read such folders,
/// as `%XX`.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\0'..='\x1F'
            | '\x7F'
            | '"'
            | '#'
            | '%'
            | '\''
            | '*'
            | '/'
            | ':'
            | '='
            | '?'
            | '\\'
            | '{'
            | '}'
            | '['
            | ']'
            | '^'
            | '<'
            | '>'
            | '|' => escaped.push_str(&format!("%{:02X}", c as u32)),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Writes rows that are sorted by columns to folders named by these. Without columns, all files lie
/// in the directory.
///
/// # Errors
/// Columns that are not there or name no folders; a directory that is there and is not empty,
/// unless the options say what becomes of it; as [`write()`].
pub(crate) fn write_partitioned(
    directory: &Path,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    by: &[String],
    format: &WriteFormat,
    options: &FolderWriteOptions,
) -> Result<()> {
    options.check()?;
    // The keys are the first columns of their names.
    let names = NamesApart::of(schema);
    let (schema, batches) = (names.schema(), batches.map(|batch| names.batch(batch?)));
    let split = KeySplit::of(schema, by, options)?;
    refuse_address(directory)?;
    options.look_at(directory)?;
    let io = |error| Error::io(directory, error);
    let partial = Unfinished::of(directory).map_err(io)?;
    fs::create_dir(partial.path()).map_err(io)?;
    let mut runs = FolderRuns { batches, split: &split, rest: None, texts: KeyTexts::default() };
    let mut next = match by.is_empty() {
        // A file tells the columns of no rows, too.
        true => Some(PathBuf::new()),
        false => runs.folder()?,
    };
    while let Some(folder) = next {
        let within = partial.path().join(&folder);
        fs::create_dir_all(&within).map_err(|error| Error::io(directory.join(&folder), error))?;
        let mut number = 0;
        next = loop {
            let mut left = options.rows_per_file.unwrap_or(usize::MAX);
            let rows = std::iter::from_fn(|| {
                let rows = (left > 0).then(|| runs.rows_of(&folder).transpose()).flatten()?;
                left = left.saturating_sub(rows.as_ref().map_or(0, RecordBatch::num_rows));
                Some(rows)
            });
            write(&within.join(options.file_name(format, number)), &split.schema, rows, format)?;
            number += 1;
            let next = runs.folder()?;
            if next.as_ref() != Some(&folder) {
                break next;
            }
        };
    }
    let lines = runs.texts.lines();
    if !lines.is_empty() {
        fs::write(partial.path().join(TEXT_KEYS), lines).map_err(io)?;
    }
    options.put_in_place(partial).map_err(io)
}
