//! Batches as CSV text. What is NULL is told from what is the empty string: that is quoted.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringViewArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::nested_text::NestedTexts;
use super::times::TimeFormats;
use super::{CsvWriteOptions, ForceQuote};
use crate::error::{Error, ErrorKind, Result};
use crate::host::value_texts;

/// How the columns of a file are written.
pub(super) struct CsvForm<'o> {
    options: &'o CsvWriteOptions,
    escape: u8,
    /// Whether all values of a column are quoted.
    forced: Vec<bool>,
    times: TimeFormats,
}

/// The values of a column, as they are written.
enum WrittenColumn<'a> {
    Text(StringViewArray),
    /// What Arrow writes them as, and which there are.
    Formatted(ArrayFormatter<'a>, Option<NullBuffer>),
    Nested(NestedTexts<'a>),
}

impl<'a> WrittenColumn<'a> {
    fn of(column: &'a ArrayRef, format: &'a FormatOptions<'a>) -> Result<WrittenColumn<'a>> {
        let is_text = match column.data_type() {
            DataType::Dictionary(_, values) => values.is_string(),
            dtype => dtype.is_string(),
        };
        Ok(match column.data_type() {
            _ if is_text => {
                WrittenColumn::Text(cast(column, &DataType::Utf8View)?.as_string_view().clone())
            }
            dtype if dtype.is_nested() => {
                WrittenColumn::Nested(NestedTexts::of(column.as_ref(), format)?)
            }
            _ => WrittenColumn::Formatted(value_texts(column, format)?, column.logical_nulls()),
        })
    }

    /// Puts a value's text in the place of what is there; whether there is a value.
    fn text_of(&self, row: usize, text: &mut String) -> Result<bool> {
        text.clear();
        let is_null = match self {
            WrittenColumn::Text(strings) => strings.is_null(row),
            WrittenColumn::Formatted(_, nulls) => {
                nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
            }
            WrittenColumn::Nested(values) => values.is_null(row),
        };
        if !is_null {
            match self {
                WrittenColumn::Text(strings) => text.push_str(strings.value(row)),
                WrittenColumn::Formatted(values, _) => values.value(row).write(text)?,
                WrittenColumn::Nested(values) => values.put(text, row)?,
            }
        }
        Ok(!is_null)
    }
}

impl<'o> CsvForm<'o> {
    /// # Errors
    /// Columns to quote that there are not; characters that mean two things; patterns of times that
    /// are none.
    pub(super) fn of(schema: &Schema, options: &'o CsvWriteOptions) -> Result<CsvForm<'o>> {
        let refused = |message: String| {
            Err(Error::from(ErrorKind::Plan { message: format!("CSV: {message}"), location: None }))
        };
        let (delimiter, quote) = (options.delimiter, options.quote);
        if delimiter == quote {
            return refused("the delimiter is the quote, too".into());
        }
        for (byte, name) in [(delimiter, "delimiter"), (quote, "quote"), (b'\n', "line's end")] {
            if byte != 0 && options.null.as_bytes().contains(&byte) {
                return refused(format!(
                    "the text of NULL, {:?}, has the {name} in it",
                    options.null
                ));
            }
        }
        let names = || schema.fields().iter().map(|field| field.name());
        let forced = match &options.force_quote {
            ForceQuote::Needed => vec![false; schema.fields().len()],
            ForceQuote::All => vec![true; schema.fields().len()],
            ForceQuote::Columns(columns) => {
                if let Some(name) = columns.iter().find(|column| !names().any(|of| of == *column)) {
                    let known = names().cloned().collect();
                    return Err(ErrorKind::ColumnNotFound { name: name.clone(), known }.into());
                }
                names().map(|name| columns.contains(name)).collect()
            }
        };
        let times =
            TimeFormats::of(options.date_format.as_deref(), options.timestamp_format.as_deref())?;
        let escape = options.escape.unwrap_or(quote);
        Ok(CsvForm { options, escape, forced, times })
    }

    /// The line of the columns' names, where there is one.
    pub(super) fn header(&self, schema: &Schema) -> Vec<u8> {
        let mut text = vec![];
        if self.options.header {
            for (at, field) in schema.fields().iter().enumerate() {
                if at > 0 {
                    text.push(self.options.delimiter);
                }
                self.put(&mut text, field.name(), self.forced[at]);
            }
            text.push(b'\n');
        }
        text
    }

    /// The rows of a batch, a line each.
    ///
    /// # Errors
    /// Times that no calendar has.
    pub(super) fn rows(&self, batch: &RecordBatch) -> Result<Vec<u8>> {
        let format = self.times.options();
        let columns = batch.columns().iter().map(|column| WrittenColumn::of(column, &format));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let mut text = Vec::with_capacity(batch.num_rows() * columns.len() * 8);
        let mut value = String::new();
        for row in 0..batch.num_rows() {
            let begun = text.len();
            for (at, column) in columns.iter().enumerate() {
                if at > 0 {
                    text.push(self.options.delimiter);
                }
                match column.text_of(row, &mut value)? {
                    true => self.put(&mut text, &value, self.forced[at]),
                    false => text.extend_from_slice(self.options.null.as_bytes()),
                }
            }
            // A line without a byte would be no row.
            if text.len() == begun && self.options.quote != 0 {
                text.extend([self.options.quote; 2]);
            }
            text.push(b'\n');
        }
        Ok(text)
    }

    /// Writes a value, in quotes where it would otherwise be read as another one.
    fn put(&self, text: &mut Vec<u8>, value: &str, forced: bool) {
        let (delimiter, quote, escape) = (self.options.delimiter, self.options.quote, self.escape);
        let means = |byte: &u8| {
            *byte == delimiter
                || *byte == quote
                || *byte == escape
                || *byte == b'\n'
                || *byte == b'\r'
        };
        let bytes = value.as_bytes();
        let is_plain =
            !forced && !bytes.is_empty() && value != self.options.null && !bytes.iter().any(means);
        if quote == 0 || is_plain {
            return text.extend_from_slice(bytes);
        }
        text.push(quote);
        for byte in bytes {
            text.extend((*byte == quote || *byte == escape).then_some(escape));
            text.push(*byte);
        }
        text.push(quote);
    }
}
