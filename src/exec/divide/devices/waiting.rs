//! Rows of a stage that wait on the host, because their device has no room for all of them: the next
//! stage reads them as a table, block by block where it has to be divided.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::super::arrow;
use super::super::stored::{StoredBlock, StoredRows};
use crate::error::Result;
use crate::io::{
    Chunk, ColumnRequest, DeviceTable, KeptTable, Read, Snapshot, Source, SourceTable, To,
    even_chunks, rows,
};
use crate::plan::PlanTable;

/// Rows of a device as a table of the next stage.
pub(super) fn table_of(rows: StoredRows) -> Result<PlanTable> {
    if rows.blocks.iter().any(|block| matches!(block, StoredBlock::Host(..))) {
        let source = Arc::new(WaitingRows { schema: arrow(&rows.schema), rows });
        return Ok(provider_as_source(Arc::new(SourceTable::new(Snapshot::of(source), None, 0))));
    }
    let table = KeptTable::new(rows.load()?);
    Ok(provider_as_source(Arc::new(DeviceTable { table })))
}

/// Rows that come back for the host's reader at once.
const PIECE: usize = 128;

#[derive(Debug)]
struct WaitingRows {
    rows: StoredRows,
    schema: SchemaRef,
}

#[async_trait]
impl Source for WaitingRows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Vec<Chunk> {
        even_chunks(self.rows.rows() as u64)
    }

    async fn read(&self, _: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let chunks = self.chunks();
        let count = |chunks: &[Chunk]| rows(chunks).unwrap_or(0) as usize;
        let begin = count(&chunks[..wanted.chunks.start]);
        let some = self.rows.range(begin, count(&chunks[wanted.chunks.clone()]));
        let table = some.load()?;
        let columns = wanted.columns.iter().map(|at| table.columns[*at].clone()).collect();
        Ok(Read::new(table.rows as u64, columns))
    }

    /// Where a chunk finds no memory, its rows come in smaller pieces.
    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let mut batches = vec![];
        for begin in (0..self.rows.rows()).step_by(PIECE) {
            batches.extend(self.rows.range(begin, PIECE).load()?.to_batches(PIECE)?);
        }
        MemTable::try_new(self.schema.clone(), vec![batches])?
            .scan(state, projection, filters, limit)
            .await
    }
}
