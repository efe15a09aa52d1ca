//! Batches to files: written on all cores while the next ones are downloaded, whole or not at all.

mod codec;
mod csv;
mod folder;
mod in_order;
mod intervals;
mod ipc;
mod json;
mod nested_text;
mod options;
mod parquet;
mod partitioned;
mod times;
mod whole;

use std::io::Write;
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

pub use self::codec::TextCodec;
use self::csv::CsvForm;
pub use self::folder::{ExistingFiles, FolderWriteOptions};
use self::in_order::in_order;
pub use self::ipc::{IpcCodec, IpcLayout, IpcWriteOptions};
pub use self::json::JsonWriteOptions;
pub use self::options::{
    Codec, CsvWriteOptions, ForceQuote, ParquetVersion, ParquetWriteOptions, WriteFormat,
};
pub(crate) use self::partitioned::write_partitioned;
use self::times::TimeFormats;
use self::whole::Unfinished;
pub use self::whole::WholeFile;
use crate::error::{Error, ErrorKind, Result};
use crate::sql::NamesApart;

/// Rows of a row group, unless somebody says otherwise.
pub(crate) const GROUP_ROWS: usize = 1 << 20;

/// Writes rows to a file. Columns of one name are told apart.
///
/// # Errors
/// Of the batches; types that the format does not have; a file that cannot be written.
pub(crate) fn write(
    path: &Path,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    format: &WriteFormat,
) -> Result<()> {
    let mut file = WholeFile::create(path)?;
    write_into(&mut file, schema, batches, format)?;
    file.finish()
}

/// Writes rows into a file that was begun.
///
/// # Errors
/// As [`write()`].
pub(crate) fn write_into(
    file: &mut WholeFile,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    format: &WriteFormat,
) -> Result<()> {
    let path = file.path().to_path_buf();
    let names = NamesApart::of(schema);
    let (schema, batches) = (names.schema(), batches.map(|batch| names.batch(batch?)));
    let put = |text: Vec<u8>| file.write_all(&text).map_err(|error| Error::io(&path, error));
    let written = match format {
        WriteFormat::Csv(options) => {
            put_csv(schema, batches, options, options.compression.of(&path)?, put)
        }
        WriteFormat::Json(options) => {
            put_json(batches, options, options.compression.of(&path)?, put)
        }
        WriteFormat::Parquet(options) => write_parquet(file, schema, batches, options),
        WriteFormat::Ipc(options) => ipc::write(file, schema, batches, *options),
    };
    written.map_err(|error| of_file(error, &path))
}

/// Puts the file's name into an error of writing it.
fn of_file(error: Error, path: &Path) -> Error {
    match error.kind() {
        ErrorKind::Plan { message, .. } => {
            ErrorKind::File { path: path.into(), message: message.clone() }.into()
        }
        ErrorKind::Io { path: none, source } if none.as_os_str().is_empty() => {
            Error::io(path, std::io::Error::new(source.kind(), source.to_string()))
        }
        _ => error,
    }
}

/// What stands around the texts of batches.
struct AroundTexts<'a> {
    begin: Vec<u8>,
    /// Between the texts of two.
    between: &'a [u8],
    end: &'a [u8],
    /// The end where there are no rows.
    end_of_none: &'a [u8],
}

/// Puts the texts of batches, which they become on all cores, and what stands around them.
fn put_texts(
    around: &AroundTexts<'_>,
    codec: TextCodec,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    rows: impl Fn(&RecordBatch) -> Result<Vec<u8>> + Sync,
    mut put: impl FnMut(Vec<u8>) -> Result<()>,
) -> Result<()> {
    put(codec.packed(around.begin.clone())?)?;
    let has_rows =
        |batch: &Result<RecordBatch>| !matches!(batch, Ok(batch) if batch.num_rows() == 0);
    let mut number = 0;
    let numbered = batches.filter(has_rows).map(|batch| {
        number += 1;
        Ok((number, batch?))
    });
    let text = |(number, batch): (u64, RecordBatch)| {
        let mut text = if number > 1 { around.between.to_vec() } else { vec![] };
        text.append(&mut rows(&batch)?);
        codec.packed(text)
    };
    in_order(numbered, text, &mut put)?;
    match if number > 0 { around.end } else { around.end_of_none } {
        [] => Ok(()),
        end => put(codec.packed(end.to_vec())?),
    }
}

/// The rows as the text of a file that [`write()`] writes, whatever it is compressed with.
///
/// # Errors
/// Of the batches; types that have no form in JSON.
pub(crate) fn json_text(
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &JsonWriteOptions,
) -> Result<String> {
    let mut whole = vec![];
    let names = NamesApart::of(schema);
    let batches = batches.map(|batch| names.batch(batch?));
    put_json(batches, options, TextCodec::Uncompressed, |text| {
        whole.extend_from_slice(&text);
        Ok(())
    })?;
    String::from_utf8(whole).map_err(|_| Error::internal("JSON that is no UTF-8"))
}

/// Puts the rows as objects.
///
/// # Errors
/// Of the batches; types that have no form in JSON; of `put`.
fn put_json(
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &JsonWriteOptions,
    codec: TextCodec,
    put: impl FnMut(Vec<u8>) -> Result<()>,
) -> Result<()> {
    let times =
        TimeFormats::of(options.date_format.as_deref(), options.timestamp_format.as_deref())?;
    let [begin, between, end] = options.around();
    // Without rows, a file of lines is empty.
    let end_of_none: &[u8] = if options.array { b"\n]\n" } else { b"" };
    let around = AroundTexts { begin: begin.to_vec(), between, end, end_of_none };
    put_texts(&around, codec, batches, |batch| json::rows(batch, options.array, &times), put)
}

/// Puts the rows as lines, behind a header line unless the options leave it out.
///
/// # Errors
/// Of the batches; options that do not go together; of `put`.
fn put_csv(
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &CsvWriteOptions,
    codec: TextCodec,
    put: impl FnMut(Vec<u8>) -> Result<()>,
) -> Result<()> {
    let form = CsvForm::of(schema, options)?;
    let begin = [options.prefix.as_bytes(), &form.header(schema)].concat();
    let end = options.suffix.as_bytes();
    // A suffix stands in the place of the last line's end.
    let between: &[u8] = if end.is_empty() { b"" } else { b"\n" };
    let rows = |batch: &RecordBatch| {
        let mut text = form.rows(batch)?;
        text.truncate(text.len() - between.len());
        Ok(text)
    };
    let around = AroundTexts { begin, between, end, end_of_none: end };
    put_texts(&around, codec, batches, rows, put)
}

/// Writes the rows as Parquet, whose columns are encoded on all cores.
///
/// # Errors
/// Of the batches; types that the format does not have; a file that cannot be written.
fn write_parquet(
    file: &mut WholeFile,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &ParquetWriteOptions,
) -> Result<()> {
    let properties = options.properties()?;
    let group_rows = options.row_group_rows.unwrap_or(GROUP_ROWS).max(1);
    parquet::write(file, schema, batches, properties, group_rows)
}

#[cfg(test)]
mod tests;
