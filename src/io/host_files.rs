//! Files that are read on the host: JSON and Arrow, with the crates arrow-json and arrow-ipc.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use super::lone_files::LoneFiles;
use super::path_columns::PathColumns;
use super::source::{Chunk, ColumnRequest, Read, Source, To};
use super::stream::{self, ProviderRows};
use crate::error::{Result, path_text};

/// Files of one schema.
#[derive(Debug)]
pub(super) struct HostFiles {
    files: LoneFiles,
    /// The files as a table provider.
    provider: Arc<dyn TableProvider>,
    /// That the host reads them, in a sentence.
    account: String,
}

impl HostFiles {
    /// `named`: the path that a user knows the files by. `format`: what they are.
    pub(super) fn new(files: LoneFiles, named: &Path, format: &str) -> HostFiles {
        HostFiles::with_account(files, account(named, format))
    }

    fn with_account(files: LoneFiles, account: String) -> HostFiles {
        HostFiles { provider: Arc::new(files.clone()), files, account }
    }
}

fn account(named: &Path, format: &str) -> String {
    format!("{} is read by the host, as all {format} is", path_text(named))
}

#[async_trait]
impl Source for HostFiles {
    fn schema(&self) -> SchemaRef {
        self.provider.schema()
    }

    fn chunks(&self) -> Vec<Chunk> {
        vec![Chunk { rows: None, bytes: Some(self.files.bytes()) }]
    }

    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let rows =
            ProviderRows { provider: &self.provider, columns: wanted.columns, limit: wanted.fetch };
        let (rows, columns) = stream::read(to, &rows).await?;
        Ok(Read { by_host: vec![self.account.clone()], ..Read::new(rows, columns) })
    }

    fn paths(&self) -> Option<&PathColumns> {
        Some(self.files.paths())
    }

    fn of_files(&self, files: &[usize]) -> Option<Arc<dyn Source>> {
        let files = self.files.of_files(files);
        Some(Arc::new(HostFiles::with_account(files, self.account.clone())))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        self.provider.scan(state, projection, filters, limit).await
    }

    fn supports_filters(&self, filters: &[&Expr]) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        self.provider.supports_filters_pushdown(filters)
    }
}
