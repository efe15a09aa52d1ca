//! Record batches in host memory as a source.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::datasource::MemTable;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::source::{Chunk, ColumnRequest, Read, Source, To};
use crate::column::Table;
use crate::error::Result;

/// Bytes of the rows of a batch. Columns may share buffers, as those do that were read from one
/// message of Arrow IPC: `get_array_memory_size` counts the whole buffer for each of them.
pub fn bytes_of(batch: &RecordBatch) -> usize {
    let characters = |buffers: &[Buffer]| buffers.iter().map(Buffer::len).sum::<usize>();
    let of_column = |column: &ArrayRef| {
        let valid = column.nulls().map_or(0, |nulls| nulls.len().div_ceil(8));
        let views = |buffers| 16 * column.len() + characters(buffers) + valid;
        match (column.data_type(), column.data_type().primitive_width()) {
            (_, Some(width)) => column.len() * width + valid,
            (DataType::Utf8View, _) => views(column.as_string_view().data_buffers()),
            (DataType::BinaryView, _) => views(column.as_binary_view().data_buffers()),
            _ => {
                let sliced = column.to_data().get_slice_memory_size();
                sliced.unwrap_or_else(|_| column.get_array_memory_size())
            }
        }
    };
    batch.columns().iter().map(of_column).sum()
}

/// Record batches, which never change.
#[derive(Debug)]
pub(crate) struct Memory {
    batches: Vec<RecordBatch>,
    /// As the CPU's operators read them.
    table: MemTable,
}

impl Memory {
    /// Batches of one schema, which the CPU's operators read as so many partitions.
    ///
    /// # Errors
    /// Of batches that have other columns than the schema.
    pub(crate) fn new(
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
        partitions: usize,
    ) -> Result<Memory> {
        let each = batches.len().div_ceil(partitions).max(1);
        let parts: Vec<_> = batches.chunks(each).map(<[_]>::to_vec).collect();
        let table = MemTable::try_new(schema, if parts.is_empty() { vec![vec![]] } else { parts })?;
        Ok(Memory { batches, table })
    }
}

#[async_trait]
impl Source for Memory {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn chunks(&self) -> Vec<Chunk> {
        let chunk = |batch: &RecordBatch| Chunk {
            rows: Some(batch.num_rows() as u64),
            bytes: Some(bytes_of(batch) as u64),
        };
        self.batches.iter().map(chunk).collect()
    }

    /// Batches are brought as they are: a scan would cut them into small ones.
    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let batches =
            self.batches[wanted.chunks.clone()].iter().map(|batch| batch.project(wanted.columns));
        let batches = batches.collect::<std::result::Result<Vec<_>, _>>()?;
        let schema = Arc::new(self.table.schema().project(wanted.columns)?);
        let table = Table::from_batches(to.device, schema, &batches)?;
        Ok(Read::new(table.rows as u64, table.columns))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        self.table.scan(state, projection, filters, limit).await
    }

    fn statistics(&self) -> Option<Statistics> {
        self.table.statistics()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int16Array, StringArray, StringViewArray};
    use datafusion::arrow::ipc::reader::StreamReader;
    use datafusion::arrow::ipc::writer::StreamWriter;

    use super::*;

    #[test]
    fn columns_of_one_message_are_counted_each_for_itself() {
        let long = "a text that no view holds";
        let columns: [(&str, ArrayRef); 3] = [
            ("a", Arc::new(Int16Array::from(vec![Some(1), None, Some(3), Some(4)]))),
            ("b", Arc::new(StringArray::from(vec!["abc", "", "d", "efgh"]))),
            ("c", Arc::new(StringViewArray::from(vec!["short", long, "short", long]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        // 4 rows of 2 bytes and their validity; 5 offsets and 8 characters; 4 views and 50 characters.
        let expected = (8 + 1) + (20 + 8) + (64 + 50);
        assert_eq!(bytes_of(&batch), expected);
        let mut bytes = vec![];
        let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).expect("a stream");
        writer.write(&batch).and_then(|()| writer.finish()).expect("memory takes it");
        drop(writer);
        let read = StreamReader::try_new(&bytes[..], None).expect("a stream").next();
        let read = read.expect("a batch").expect("a batch");
        assert_eq!(bytes_of(&read), expected);
        // Their buffers are those of the whole message.
        assert!(read.get_array_memory_size() > 2 * expected);
        assert_eq!(bytes_of(&batch.slice(1, 2)), (4 + 1) + (12 + 1) + (32 + 50));
    }
}
