//! The tables of a session, as DataFusion's planner sees them.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::{MemTable, TableType, source_as_provider};
use datafusion::error::Result as PlanResult;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown};
use datafusion::physical_plan::{ExecutionPlan, collect_partitioned};

use super::files::Files;
use crate::column::{Column, Table};
use crate::error::{Error, ErrorKind, Result};

/// Rows in a host batch that a device table becomes: few batches, of a size that the CPU's operators split cheaply.
pub(crate) const DOWNLOAD_ROWS: usize = 1 << 16;

/// A table whose rows already lie in device memory: a result that was kept.
#[derive(Debug)]
pub(crate) struct DeviceTable {
    pub(crate) table: Table,
}

#[async_trait]
impl TableProvider for DeviceTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Where the CPU has to read it, the rows come back to the host.
    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let batches = self.table.to_batches(DOWNLOAD_ROWS)?;
        MemTable::try_new(self.schema(), vec![batches])?.scan(state, projection, filters, limit).await
    }
}

/// A table that is read from files or host memory, with those of its columns that were read to the device already.
#[derive(Debug)]
pub(crate) struct SourceTable {
    inner: Arc<dyn TableProvider>,
    files: Option<Files>,
    pub(crate) resident: Resident,
    /// A device reads whole columns and filters itself; the CPU's scan prunes and filters while it reads.
    push_filters: bool,
}

/// Columns of a table in device memory, by index in the table's schema.
#[derive(Debug, Default)]
pub(crate) struct Resident {
    columns: Mutex<HashMap<usize, Column>>,
}

impl Resident {
    /// The columns that are resident, for reading and adding to.
    pub(crate) fn columns(&self) -> MutexGuard<'_, HashMap<usize, Column>> {
        self.columns.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl SourceTable {
    pub(crate) fn new(inner: Arc<dyn TableProvider>, files: Option<Files>, push_filters: bool) -> Self {
        SourceTable { inner, files, resident: Resident::default(), push_filters }
    }

    /// Whether its scans take no filters, so that nothing but its schema matters to a plan.
    pub(crate) fn is_read_whole(&self) -> bool {
        !self.push_filters
    }

    /// Reads whole columns, in the order of the source's rows. No columns read is still the right number of rows.
    ///
    /// # Errors
    /// A file's bad content, with the file's name.
    pub(crate) async fn load(&self, state: &SessionState, columns: &[usize]) -> Result<Vec<RecordBatch>> {
        self.present()?;
        match read_all(&self.inner, state, columns).await {
            Ok(batches) => Ok(batches),
            Err(error) => Err(self.blame(error, state).await),
        }
    }

    fn present(&self) -> Result<()> {
        self.files.as_ref().map_or(Ok(()), Files::present)
    }

    /// Fills in which file an error of unknown file is about: the first that fails when read alone.
    async fn blame(&self, error: Error, state: &SessionState) -> Error {
        let Some(files) = self.files.as_ref().filter(|_| lacks_path(&error)) else {
            return error;
        };
        for file in &files.paths {
            let alone = Files { paths: vec![file.clone()], format: files.format };
            let failure = match alone.provider_with_schema(state, self.inner.schema()) {
                Ok(provider) => {
                    let all: Vec<usize> = (0..provider.schema().fields().len()).collect();
                    read_all(&provider, state, &all).await.err()
                }
                Err(error) => Some(error),
            };
            if let Some(failure) = failure {
                return files.name(failure, file, &self.inner.schema());
            }
        }
        error
    }
}

async fn read_all(inner: &Arc<dyn TableProvider>, state: &SessionState, columns: &[usize]) -> Result<Vec<RecordBatch>> {
    let scan = inner.scan(state, Some(&columns.to_vec()), &[], None).await?;
    let partitions = collect_partitioned(scan, state.task_ctx()).await?;
    Ok(partitions.into_iter().flatten().collect())
}

#[async_trait]
impl TableProvider for SourceTable {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    fn table_type(&self) -> TableType {
        self.inner.table_type()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        self.present()?;
        self.inner.scan(state, projection, filters, limit).await
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        if self.push_filters {
            self.inner.supports_filters_pushdown(filters)
        } else {
            Ok(vec![TableProviderFilterPushDown::Unsupported; filters.len()])
        }
    }

    fn statistics(&self) -> Option<Statistics> {
        self.inner.statistics()
    }
}

/// Names the file in an error about a file's content that came out of a plan without it.
pub(crate) async fn diagnose(error: Error, state: &SessionState, plan: &LogicalPlan) -> Error {
    if !lacks_path(&error) {
        return error;
    }
    let mut providers: Vec<Arc<dyn TableProvider>> = Vec::new();
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(provider) = source_as_provider(&scan.source)
        {
            providers.push(provider);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    if walked.is_err() {
        return error;
    }
    let mut error = error;
    for provider in &providers {
        if let Some(source) = (provider.as_ref() as &dyn Any).downcast_ref::<SourceTable>() {
            error = source.blame(error, state).await;
        }
    }
    error
}

fn lacks_path(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Parse { path: Some(path), .. } | ErrorKind::File { path, .. } => path.as_os_str().is_empty(),
        _ => false,
    }
}
