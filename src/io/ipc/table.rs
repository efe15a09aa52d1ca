//! An Arrow file as DataFusion scans it: partitions of record batches, in the order of their rows.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result as PlanResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};

use super::messages::IpcFile;
use crate::error::Result;

/// The rows of an Arrow file.
#[derive(Debug)]
pub(in crate::io) struct IpcTable(Arc<IpcFile>);

impl IpcTable {
    /// # Errors
    /// As [`IpcFile::open`].
    pub(in crate::io) fn open(path: &Path) -> Result<IpcTable> {
        Ok(IpcTable(Arc::new(IpcFile::open(path)?)))
    }

    /// Bytes of the file.
    pub(in crate::io) fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Record batches that have the first rows.
    fn first(&self, limit: Option<usize>) -> usize {
        let Some(limit) = limit else { return self.0.batches.len() };
        let mut rows = 0;
        let enough = self.0.batches.iter().position(|batch| {
            rows += batch.rows;
            rows >= limit as u64
        });
        enough.map_or(self.0.batches.len(), |at| at + 1)
    }
}

/// Columns of some record batches of a file.
#[derive(Debug)]
struct IpcPartition {
    file: Arc<IpcFile>,
    columns: Vec<usize>,
    batches: Range<usize>,
    /// Of the columns.
    schema: SchemaRef,
}

impl PartitionStream for IpcPartition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (file, columns) = (self.file.clone(), self.columns.clone());
        let batches =
            self.batches.clone().map(move |at| file.read(at, &columns).map_err(Into::into));
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::iter(batches)))
    }
}

#[async_trait]
impl TableProvider for IpcTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let columns =
            projection.cloned().unwrap_or_else(|| (0..self.0.schema.fields().len()).collect());
        let schema = Arc::new(self.0.schema.project(&columns)?);
        let count = self.first(limit);
        let each = count.div_ceil(state.config().target_partitions().max(1)).max(1);
        let partition = |begin: usize| {
            let (file, batches) = (self.0.clone(), begin..(begin + each).min(count));
            let (columns, schema) = (columns.clone(), schema.clone());
            Arc::new(IpcPartition { file, columns, batches, schema }) as Arc<dyn PartitionStream>
        };
        // No batches are one partition without rows.
        let partitions = (0..count.max(1)).step_by(each).map(partition).collect();
        Ok(Arc::new(StreamingTableExec::try_new(schema, partitions, None, [], false, limit)?))
    }
}
