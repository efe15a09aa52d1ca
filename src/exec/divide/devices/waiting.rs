//! Rows of a stage that wait on the host, because their device has no room for all of them: the next
//! stage reads them as a table, block by block where it has to be divided.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::super::arrow;
use super::super::stored::{StoredBlock, StoredRows};
use crate::error::{Error, Result};
use crate::io::{
    Chunk, ColumnRequest, DeviceTable, KeptTable, Read, Snapshot, Source, SourceTable, To,
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
        let chunk = |block: &StoredBlock| Chunk {
            rows: Some(block.rows() as u64),
            bytes: Some(block.bytes()),
        };
        self.rows.blocks.iter().map(chunk).collect()
    }

    async fn read(&self, _: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let blocks = self.rows.blocks[wanted.chunks.clone()].to_vec();
        let table = StoredRows { blocks, ..self.rows.clone() }.load()?;
        let columns = wanted.columns.iter().map(|at| table.columns[*at].clone()).collect();
        Ok(Read::new(table.rows as u64, columns))
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Err(Error::internal("rows of a stage are read by the CPU engine").into())
    }
}
