//! Batches as JSON: an object a row.

use std::io::Write;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::JsonFormat;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use memchr::memmem;

use super::TextCodec;
use super::times::TimeFormats;
use crate::error::{Error, ErrorKind, Result};
use crate::host::json_writer;

/// How JSON files are written.
///
/// ```
/// # use warpframe::prelude::*;
/// # use warpframe::JsonWriteOptions;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// # let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("t.json");
/// let options = JsonWriteOptions { array: true, ..JsonWriteOptions::default() };
/// session.sql("SELECT 1 AS one, NULL AS none")?.collect()?.write_json_with(&path, options)?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "[\n{\"one\":1,\"none\":null}\n]\n");
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JsonWriteOptions {
    /// Whether the rows are one array; otherwise each is a line.
    pub array: bool,
    /// How dates are written, as `strftime` takes it.
    pub date_format: Option<String>,
    /// How timestamps are written, as `strftime` takes it.
    pub timestamp_format: Option<String>,
    /// What the file is compressed with.
    pub compression: TextCodec,
}

impl JsonWriteOptions {
    /// Before the first row, between two, and behind the last.
    pub(super) fn around(&self) -> [&'static [u8]; 3] {
        match self.array {
            true => [b"[\n", b",\n", b"\n]\n"],
            false => [b"", b"\n", b"\n"],
        }
    }
}

/// Rows with something between them, which is for the caller to put between batches.
#[derive(Debug, Default)]
struct JsonLines;

impl JsonFormat for JsonLines {
    fn start_row<W: Write>(&self, out: &mut W, is_first: bool) -> Result<(), ArrowError> {
        let between: &[u8] = if is_first { b"" } else { b"\n" };
        Ok(out.write_all(between)?)
    }
}

/// Rows as the members of an array; what stands between batches is for the caller to put there.
#[derive(Debug, Default)]
struct JsonMembers;

impl JsonFormat for JsonMembers {
    fn start_row<W: Write>(&self, out: &mut W, is_first: bool) -> Result<(), ArrowError> {
        let between: &[u8] = if is_first { b"" } else { b",\n" };
        Ok(out.write_all(between)?)
    }
}

/// The rows of a batch.
///
/// # Errors
/// Types that have no form in JSON; dates that no calendar has.
pub(super) fn rows(batch: &RecordBatch, array: bool, times: &TimeFormats) -> Result<Vec<u8>> {
    let mut text = Vec::with_capacity(batch.get_array_memory_size());
    let mut builder = json_writer();
    if let Some(date) = &times.date {
        builder = builder.with_date_format(date.clone()).with_datetime_format(date.clone());
    }
    if let Some(timestamp) = &times.timestamp {
        builder = builder
            .with_timestamp_format(timestamp.clone())
            .with_timestamp_tz_format(timestamp.clone());
    }
    let written = match array {
        true => builder.build::<_, JsonMembers>(&mut text).write(batch),
        false => builder.build::<_, JsonLines>(&mut text).write(batch),
    };
    written.map_err(|error| {
        Error::from(ErrorKind::Plan { message: error.to_string(), location: None })
    })?;
    // What has no text is written as the words of its error, which a string may hold, too.
    if memmem::find(&text, b"\"ERROR: ").is_some() {
        batch.columns().iter().try_for_each(|column| shown(column.as_ref()))?;
    }
    Ok(text)
}

/// Whether all times have a text.
fn shown(array: &dyn Array) -> Result<()> {
    match array.data_type() {
        DataType::List(_) => shown(array.as_list::<i32>().values().as_ref()),
        DataType::LargeList(_) => shown(array.as_list::<i64>().values().as_ref()),
        DataType::FixedSizeList(..) => shown(array.as_fixed_size_list().values().as_ref()),
        DataType::Map(..) => shown(array.as_map().entries()),
        DataType::Struct(_) => {
            array.as_struct().columns().iter().try_for_each(|column| shown(column.as_ref()))
        }
        dtype if dtype.is_temporal() => {
            let formatter = ArrayFormatter::try_new(array, &FormatOptions::default())?;
            let mut text = String::new();
            (0..array.len()).filter(|row| array.is_valid(*row)).try_for_each(|row| {
                text.clear();
                Ok(formatter.value(row).write(&mut text)?)
            })
        }
        _ => Ok(()),
    }
}
