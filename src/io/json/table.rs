//! A JSON file as DataFusion scans it: blocks of rows, read on all cores in their order.
//!
//! The crate arrow-json makes arrays of them. Columns that are texts of JSON are written as strings
//! for it first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::ReaderBuilder;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result as PlanResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::{StreamExt, TryStreamExt};

use super::cursor::{Cursor, Wrong, unescaped};
use super::rows::{RowBlock, RowBlocks};
use super::types::JsonType;
use crate::cores::cores;
use crate::error::{Error, ErrorKind, Result};
use crate::io::csv::Packed;

/// Rows of a batch.
const ROWS: usize = 8192;

/// The rows of a JSON file.
#[derive(Debug)]
pub(super) struct JsonTable {
    path: PathBuf,
    packed: Option<Packed>,
    columns: Vec<(String, JsonType)>,
    schema: SchemaRef,
}

impl JsonTable {
    pub(super) fn new(
        path: &Path,
        packed: Option<Packed>,
        columns: Vec<(String, JsonType)>,
    ) -> JsonTable {
        let schema = schema(&columns);
        JsonTable { path: path.into(), packed, columns, schema }
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
        let columns = match projection {
            Some(projection) => projection.iter().map(|at| self.columns[*at].clone()).collect(),
            None => self.columns.clone(),
        };
        let schema = schema(&columns);
        let rows = JsonRows { path: self.path.clone(), columns, schema: schema.clone() };
        let rows = JsonPartition { rows: Arc::new(rows), packed: self.packed };
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
    columns: Vec<(String, JsonType)>,
    schema: SchemaRef,
}

#[derive(Debug)]
struct JsonPartition {
    rows: Arc<JsonRows>,
    packed: Option<Packed>,
}

impl PartitionStream for JsonPartition {
    fn schema(&self) -> &SchemaRef {
        &self.rows.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (rows, schema) = (self.rows.clone(), self.rows.schema.clone());
        let blocks: Box<dyn Iterator<Item = Result<RowBlock>> + Send> =
            match RowBlocks::open(&rows.path, self.packed) {
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
        if self.columns.is_empty() {
            let options = RecordBatchOptions::new().with_row_count(Some(block.rows));
            let rows = RecordBatch::try_new_with_options(self.schema.clone(), vec![], &options)?;
            return Ok(vec![rows]);
        }
        let written = match self.columns.iter().any(|(_, of)| of.has_json()) {
            true => Some(self.with_json_as_strings(&block)?),
            false => None,
        };
        let text = written.as_ref().map_or(&block.bytes[..], String::as_bytes);
        self.decoded(text).map_err(|error| {
            let last = block.line + memchr::memchr_iter(b'\n', &block.bytes).count() as u64;
            let message = format!("lines {} to {last}: {error}", block.line);
            ErrorKind::File { path: self.path.clone(), message }.into()
        })
    }

    fn decoded(&self, mut text: &[u8]) -> std::result::Result<Vec<RecordBatch>, ArrowError> {
        let reader = ReaderBuilder::new(self.schema.clone()).with_batch_size(ROWS);
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

    /// The block's rows, in which values are strings where the text of JSON is wanted.
    fn with_json_as_strings(&self, block: &RowBlock) -> Result<String> {
        let text = std::str::from_utf8(&block.bytes)
            .map_err(|error| block.wrong(&self.path, error.valid_up_to(), "it is no UTF-8"))?;
        let (mut cursor, mut out) = (Cursor::new(text), String::with_capacity(text.len()));
        while cursor.peek() != 0 {
            write_object(&mut cursor, &self.columns, &mut out)
                .map_err(|Wrong { at, what }| block.wrong(&self.path, at, what))?;
            out.push('\n');
        }
        Ok(out)
    }
}

/// Whether a value was JSON.
type JsonWritten = std::result::Result<(), Wrong>;

fn write(cursor: &mut Cursor, of: Option<&JsonType>, out: &mut String) -> JsonWritten {
    match (of, cursor.peek()) {
        (Some(JsonType::Json), first) if first != b'n' => {
            write_json(cursor.value()?, out);
            Ok(())
        }
        (Some(JsonType::Struct(fields)), b'{') => write_object(cursor, fields, out),
        (Some(JsonType::List(item)), b'[') => {
            out.push('[');
            let mut is_first = true;
            cursor.array(|cursor| {
                if !std::mem::take(&mut is_first) {
                    out.push(',');
                }
                write(cursor, Some(item), out)
            })?;
            out.push(']');
            Ok(())
        }
        _ => {
            out.push_str(cursor.value()?);
            Ok(())
        }
    }
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
        write(cursor, Some(of), out)
    })?;
    out.push('}');
    Ok(())
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
