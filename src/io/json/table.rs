//! A JSON file as DataFusion scans it: blocks of rows, read on all cores in their order.
//!
//! The crate arrow-json makes arrays of objects. What it does not know is written anew for it first:
//! texts of JSON as strings, `NaN` as a string, a row that is no object as one of a field.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::ReaderBuilder;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result as PlanResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::{StreamExt, TryStreamExt};

use super::cursor::{Cursor, JsonWord, Wrong, lacks_seconds, unescaped};
use super::rows::{JsonLayout, RowBlock, RowBlocks};
use super::types::JsonType;
use crate::error::{Error, ErrorKind, Result};
use crate::host::cast_exactly;
use crate::io::csv::Packed;
use warpframe_device::cores::cores;

/// Rows of a batch.
const ROWS: usize = 8192;

/// How a file's rows become columns.
#[derive(Debug, Clone)]
pub(super) struct JsonRead {
    pub(super) packed: Option<Packed>,
    pub(super) layout: JsonLayout,
    /// Whether rows are the values of the one column; otherwise they are objects, whose fields are
    /// the columns.
    pub(super) is_one_column: bool,
    /// Whether there are numbers that JSON does not have.
    pub(super) has_special: bool,
    /// Whether a value that does not fit a type that was given is NULL.
    pub(super) misfits_are_null: bool,
}

/// The rows of a JSON file.
#[derive(Debug)]
pub(super) struct JsonTable {
    path: PathBuf,
    read: JsonRead,
    columns: Vec<(String, JsonType)>,
    schema: SchemaRef,
}

impl JsonTable {
    /// `schema` has the columns' types where a user gave them.
    pub(super) fn new(
        path: &Path,
        read: JsonRead,
        columns: Vec<(String, JsonType)>,
        given: Option<SchemaRef>,
    ) -> JsonTable {
        let schema = given.unwrap_or_else(|| schema(&columns));
        JsonTable { path: path.into(), read, columns, schema }
    }
}

/// The columns as Arrow has them.
pub(super) fn schema(columns: &[(String, JsonType)]) -> SchemaRef {
    let field = |(name, of): &(String, JsonType)| Field::new(name, of.data_type(), true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

#[async_trait]
impl TableProvider for JsonTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let (columns, schema) = match projection {
            Some(projection) => {
                let columns = projection.iter().map(|at| self.columns[*at].clone()).collect();
                (columns, Arc::new(self.schema.project(projection)?))
            }
            None => (self.columns.clone(), self.schema.clone()),
        };
        let (path, read) = (self.path.clone(), self.read.clone());
        let rows = Arc::new(JsonRows { path, read, columns, schema: schema.clone() });
        let rows = JsonPartition { rows };
        Ok(Arc::new(StreamingTableExec::try_new(
            schema,
            vec![Arc::new(rows)],
            None,
            [],
            false,
            limit,
        )?))
    }
}

/// A file's rows as some columns.
#[derive(Debug)]
struct JsonRows {
    path: PathBuf,
    read: JsonRead,
    columns: Vec<(String, JsonType)>,
    schema: SchemaRef,
}

#[derive(Debug)]
struct JsonPartition {
    rows: Arc<JsonRows>,
}

impl PartitionStream for JsonPartition {
    fn schema(&self) -> &SchemaRef {
        &self.rows.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (rows, schema) = (self.rows.clone(), self.rows.schema.clone());
        let blocks: Box<dyn Iterator<Item = Result<RowBlock>> + Send> =
            match RowBlocks::open(&rows.path, rows.read.packed, rows.read.layout) {
                Ok(blocks) => Box::new(blocks.fuse()),
                Err(error) => Box::new(std::iter::once(Err(error))),
            };
        let batches = futures::stream::iter(blocks)
            .map(move |block| {
                let rows = rows.clone();
                async move {
                    let block = block?;
                    let batches = tokio::task::spawn_blocking(move || rows.batches(block)).await;
                    match batches {
                        Ok(batches) => batches,
                        Err(failed) if failed.is_panic() => {
                            std::panic::resume_unwind(failed.into_panic())
                        }
                        Err(failed) => {
                            Err(Error::internal(format!("rows were not read: {failed}")))
                        }
                    }
                }
            })
            .buffered(cores())
            .map_ok(|batches| futures::stream::iter(batches.into_iter().map(Ok::<_, Error>)))
            .try_flatten()
            .map_err(Into::into);
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

impl JsonRows {
    fn batches(&self, block: RowBlock) -> Result<Vec<RecordBatch>> {
        // Who looked at all rows has counted these lines.
        let (block, _) = block.without_bad_lines();
        if self.columns.is_empty() {
            let options = RecordBatchOptions::new().with_row_count(Some(block.rows));
            let rows = RecordBatch::try_new_with_options(self.schema.clone(), vec![], &options)?;
            return Ok(vec![rows]);
        }
        let is_written = self.read.is_one_column
            || self.read.has_special
            || self.columns.iter().any(|(_, of)| of.has_json());
        let written = if is_written { Some(self.written(&block)?) } else { None };
        let text = written.as_ref().map_or(&block.bytes[..], String::as_bytes);
        let batches = self.decoded(text).map_err(|error| {
            let last = block.line + memchr::memchr_iter(b'\n', &block.bytes).count() as u64;
            let message = format!("lines {} to {last}: {error}", block.line);
            Error::from(ErrorKind::File { path: self.path.clone(), message })
        })?;
        let mut before = 0;
        let fit = |batch: RecordBatch| {
            let rows = batch.num_rows();
            let batch = self.of_given_types(&block, before, batch);
            before += rows;
            batch
        };
        batches.into_iter().map(fit).collect()
    }

    fn decoded(&self, mut text: &[u8]) -> std::result::Result<Vec<RecordBatch>, ArrowError> {
        let reader = ReaderBuilder::new(schema(&self.columns)).with_batch_size(ROWS);
        let mut decoder = reader.with_coerce_primitive(true).build_decoder()?;
        let mut batches = vec![];
        while !text.is_empty() {
            let read = decoder.decode(text)?;
            text = &text[read..];
            match decoder.flush()? {
                Some(batch) => batches.push(batch),
                None => break,
            }
        }
        Ok(batches)
    }

    /// Rows with the types that a user gave, as `CAST` makes them of texts; `before` of the block's
    /// rows are in front of them.
    fn of_given_types(
        &self,
        block: &RowBlock,
        before: usize,
        batch: RecordBatch,
    ) -> Result<RecordBatch> {
        if batch.schema() == self.schema {
            return Ok(batch);
        }
        let mut columns: Vec<ArrayRef> = vec![];
        for (texts, field) in batch.columns().iter().zip(self.schema.fields()) {
            let wrong = |row: usize, value: &str| {
                let name = field.name();
                let what = format!("column {name:?}: {value} does not fit its type");
                block.wrong(&self.path, block.begin_of(before + row), &what)
            };
            let cast = match cast_exactly(texts, field.data_type(), true) {
                Ok(cast) => cast,
                Err(error) => return Err(wrong(0, &format!("{error}; a value"))),
            };
            if !self.read.misfits_are_null
                && let Some((row, value)) = misfit(texts, &cast)
            {
                return Err(wrong(row, &value));
            }
            columns.push(cast);
        }
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    /// The block's rows as arrow-json reads them.
    fn written(&self, block: &RowBlock) -> Result<String> {
        let text = block.text(&self.path)?;
        let (mut cursor, mut out) = (Cursor::new(text), String::with_capacity(text.len()));
        while cursor.peek() != 0 {
            let row = match self.columns.first() {
                Some((name, of)) if self.read.is_one_column => {
                    write_row(&mut cursor, name, of, &mut out)
                }
                _ => write_object(&mut cursor, &self.columns, &mut out),
            };
            row.map_err(|Wrong { at, what }| block.wrong(&self.path, at, what))?;
            out.push('\n');
        }
        Ok(out)
    }
}

/// A row that has a value where its cast has none: which one, and the value.
fn misfit(texts: &ArrayRef, cast: &ArrayRef) -> Option<(usize, String)> {
    let is_lost = |row: &usize| cast.is_null(*row) && !texts.is_null(*row);
    if let Some(row) = (0..texts.len()).find(is_lost) {
        let text = array_value_to_string(texts, row).unwrap_or_default();
        return Some((row, format!("{text:?}")));
    }
    match texts.data_type() {
        DataType::Struct(_) => {
            let (texts, cast) = (texts.as_struct(), cast.as_struct_opt()?);
            let mut fields = texts.columns().iter().zip(cast.columns());
            fields.find_map(|(texts, cast)| misfit(texts, cast))
        }
        DataType::List(_) => {
            let (texts, cast) = (texts.as_list::<i32>(), cast.as_list_opt::<i32>()?);
            let (at, value) = misfit(texts.values(), cast.values())?;
            // The list that the element is in.
            let behind = texts.value_offsets().partition_point(|begin| *begin as usize <= at);
            Some((behind.saturating_sub(1), value))
        }
        _ => None,
    }
}

/// Whether a value was JSON.
type JsonWritten = std::result::Result<(), Wrong>;

/// A row as an object of one field.
fn write_row(cursor: &mut Cursor, name: &str, of: &JsonType, out: &mut String) -> JsonWritten {
    for part in ["{\"", name, "\":"] {
        out.push_str(part);
    }
    write(cursor, of, out)?;
    out.push('}');
    Ok(())
}

fn write(cursor: &mut Cursor, of: &JsonType, out: &mut String) -> JsonWritten {
    let first = cursor.peek();
    match (of, first) {
        (JsonType::Struct(fields), b'{') => return write_object(cursor, fields, out),
        (JsonType::List(item), b'[') => {
            out.push('[');
            let mut is_first = true;
            cursor.array(|cursor| {
                if !std::mem::take(&mut is_first) {
                    out.push(',');
                }
                write(cursor, item, out)
            })?;
            out.push(']');
            return Ok(());
        }
        _ => {}
    }
    let is_text = matches!(of, JsonType::Json | JsonType::Written | JsonType::Text);
    let is_itself = matches!(of, JsonType::Text) && first == b'"';
    if is_text && !is_itself {
        let value = cursor.value()?;
        match of {
            JsonType::Written => write_string(value, out),
            _ if value == "null" => out.push_str(value),
            _ => write_json(value, out),
        }
        return Ok(());
    }
    if matches!(first, b'{' | b'[' | b'"') {
        let value = cursor.value()?;
        let is_time = matches!(of, JsonType::Value(DataType::Timestamp(..)));
        // Behind the quote.
        if is_time && lacks_seconds(&value[1..]) && value.is_char_boundary(17) {
            let (minutes, rest) = value.split_at(17);
            out.extend([minutes, ":00", rest]);
        } else {
            out.push_str(value);
        }
        return Ok(());
    }
    let begin = cursor.at();
    match cursor.scalar()? {
        JsonWord::Special(number) => write_string(number, out),
        _ => out.push_str(cursor.since(begin)),
    }
    Ok(())
}

/// Fields that are not wanted are left out.
fn write_object(
    cursor: &mut Cursor,
    fields: &[(String, JsonType)],
    out: &mut String,
) -> JsonWritten {
    out.push('{');
    let mut is_first = true;
    cursor.object(|cursor, key| {
        let name = unescaped(key);
        let Some((_, of)) = fields.iter().find(|(field, _)| *field == *name) else {
            return cursor.value().map(drop);
        };
        if !std::mem::take(&mut is_first) {
            out.push(',');
        }
        for part in ["\"", key, "\":"] {
            out.push_str(part);
        }
        write(cursor, of, out)
    })?;
    out.push('}');
    Ok(())
}

/// Writes a text as a string of JSON.
fn write_string(text: &str, out: &mut String) {
    // A text is no map, whose keys may be none of JSON.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// Writes the text of a value as a string, without the blanks between its parts.
fn write_json(value: &str, out: &mut String) {
    out.push('"');
    let (mut in_string, mut is_escaped) = (false, false);
    for c in value.chars() {
        match c {
            ' ' | '\t' | '\r' | '\n' if !in_string => continue,
            '"' => in_string ^= !is_escaped,
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_json_are_strings() {
        for (value, expected) in [
            ("1.50", r#""1.50""#),
            (r#""a\"b\\""#, r#""\"a\\\"b\\\\\"""#),
            (r#"{ "a b" : [1, "x y"] }"#, r#""{\"a b\":[1,\"x y\"]}""#),
        ] {
            let mut out = String::new();
            write_json(value, &mut out);
            assert_eq!(out, expected);
        }
    }
}
