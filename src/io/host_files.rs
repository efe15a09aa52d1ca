//! Files that are read on the host: JSON by DataFusion, Arrow by the crate arrow-ipc.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::source::{Chunk, ColumnRequest, Read, Source, To};
use super::stream::{self, ProviderRows};
use crate::error::Result;

/// Files of one schema.
#[derive(Debug)]
pub(super) struct HostFiles {
    provider: Arc<dyn TableProvider>,
    bytes: u64,
    /// That the host reads them, in a sentence.
    account: String,
}

impl HostFiles {
    /// `named`: the path that a user knows the files by. `format`: what they are.
    pub(super) fn new(provider: Arc<dyn TableProvider>, bytes: u64, named: &Path, format: &str) -> HostFiles {
        let account = format!("{} is read by the host, as all {format} is", named.display());
        HostFiles { provider, bytes, account }
    }
}

#[async_trait]
impl Source for HostFiles {
    fn schema(&self) -> SchemaRef {
        self.provider.schema()
    }

    fn chunks(&self) -> Vec<Chunk> {
        vec![Chunk { rows: None, bytes: Some(self.bytes) }]
    }

    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let rows = ProviderRows { provider: &self.provider, columns: wanted.columns, limit: wanted.fetch };
        let (rows, columns) = stream::read(to, &rows).await?;
        Ok(Read { by_host: vec![self.account.clone()], ..Read::new(rows, columns) })
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
}
