//! Batches as CSV text. What is NULL is told from what is the empty string: that is quoted.

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringViewArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::CsvWriteOptions;
use crate::error::{Error, Result};

/// The values of a column, as they are written.
enum WrittenColumn<'a> {
    Text(StringViewArray),
    /// What Arrow writes them as, and which there are.
    Formatted(ArrayFormatter<'a>, Option<NullBuffer>),
}

/// The line of the columns' names.
pub(super) fn header(schema: &Schema, options: &CsvWriteOptions) -> Vec<u8> {
    let mut text = vec![];
    for (at, field) in schema.fields().iter().enumerate() {
        if at > 0 {
            text.push(options.delimiter);
        }
        put(&mut text, field.name(), options);
    }
    text.push(b'\n');
    text
}

/// The rows of a batch, a line each.
///
/// # Errors
/// `Unsupported` for nested columns.
pub(super) fn rows(batch: &RecordBatch, options: &CsvWriteOptions) -> Result<Vec<u8>> {
    let format = FormatOptions::default();
    let mut columns = vec![];
    for (column, field) in batch.columns().iter().zip(batch.schema().fields()) {
        let is_text =
            |of: &DataType| matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        columns.push(match column.data_type() {
            of if of.is_nested() => {
                let what = format!("column {:?} of type {of} in CSV", field.name());
                return Err(Error::unsupported(what, "CSV has no form for nested values"));
            }
            of if is_text(of) => {
                WrittenColumn::Text(cast(column, &DataType::Utf8View)?.as_string_view().clone())
            }
            DataType::Dictionary(_, of) if is_text(of) => {
                WrittenColumn::Text(cast(column, &DataType::Utf8View)?.as_string_view().clone())
            }
            _ => WrittenColumn::Formatted(
                ArrayFormatter::try_new(column, &format)?,
                column.logical_nulls(),
            ),
        });
    }
    let mut text = Vec::with_capacity(batch.num_rows() * columns.len() * 8);
    let mut value = String::new();
    for row in 0..batch.num_rows() {
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                text.push(options.delimiter);
            }
            match column {
                WrittenColumn::Text(strings) if strings.is_valid(row) => {
                    put(&mut text, strings.value(row), options)
                }
                WrittenColumn::Formatted(formatter, nulls)
                    if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) =>
                {
                    value.clear();
                    formatter.value(row).write(&mut value)?;
                    put(&mut text, &value, options);
                }
                _ => text.extend_from_slice(options.null.as_bytes()),
            }
        }
        // A line without a byte would be no row.
        if columns.len() == 1 && text.last().is_none_or(|last| *last == b'\n') {
            text.extend([options.quote; 2]);
        }
        text.push(b'\n');
    }
    Ok(text)
}

/// Writes a value, in quotes where it would otherwise be read as another one.
fn put(text: &mut Vec<u8>, value: &str, options: &CsvWriteOptions) {
    let (delimiter, quote) = (options.delimiter, options.quote);
    let means =
        |byte: &u8| *byte == delimiter || *byte == quote || *byte == b'\n' || *byte == b'\r';
    let bytes = value.as_bytes();
    if !bytes.is_empty() && value != options.null && !bytes.iter().any(means) {
        return text.extend_from_slice(bytes);
    }
    text.push(quote);
    for byte in bytes {
        text.extend((*byte == quote).then_some(quote));
        text.push(*byte);
    }
    text.push(quote);
}
