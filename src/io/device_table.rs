//! Kept tables as a source.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::{MemTable, TableType};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::kept_table::KeptTable;
use super::source::{Chunk, ColumnRequest, Read, Source, To};
use crate::column::Facts;
use crate::error::Result;

/// A table whose rows lie in device memory, unless they had to make room: a result that was kept.
#[derive(Debug)]
pub(crate) struct DeviceTable {
    pub(crate) table: KeptTable,
}

impl DeviceTable {
    /// Its columns, where they lie.
    ///
    /// # Errors
    /// Those of [`KeptTable::table`].
    pub(crate) fn read(&self, columns: &[usize]) -> Result<Read> {
        let table = self.table.table()?;
        Ok(Read::new(
            table.rows as u64,
            columns.iter().map(|at| table.columns[*at].clone()).collect(),
        ))
    }
}

#[async_trait]
impl Source for DeviceTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema().clone()
    }

    fn chunks(&self) -> Vec<Chunk> {
        vec![Chunk { rows: Some(self.table.rows() as u64), bytes: None }]
    }

    fn facts(&self, column: usize) -> Option<Facts> {
        Some(self.table.facts(column))
    }

    async fn read(&self, _to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        DeviceTable::read(self, wanted.columns)
    }

    /// Where the CPU has to read it, the rows come back to the host.
    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let batches = self.table.to_batches()?;
        MemTable::try_new(self.table.schema().clone(), vec![batches])?
            .scan(state, projection, filters, limit)
            .await
    }
}

#[async_trait]
impl TableProvider for DeviceTable {
    fn schema(&self) -> SchemaRef {
        Source::schema(self)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Source::scan(self, state, projection, filters, limit).await
    }
}
