//! Record batches in host memory as a source.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::datasource::MemTable;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::source::{Chunk, ColumnRequest, Read, Source, To};
use crate::column::Table;
use crate::error::Result;

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
            bytes: Some(batch.get_array_memory_size() as u64),
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
