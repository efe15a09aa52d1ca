//! CSV files as a source: parsed on the host, by all cores where every line is a row.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use super::lines;
use super::options::CsvOptions;
use super::source::{Chunk, ColumnRequest, Read, Source, To};
use super::stream::{self, ProviderRows};
use crate::error::{Error, Result};

/// CSV files of one schema.
#[derive(Debug)]
pub(crate) struct CsvFiles {
    /// With the bytes of each.
    pub(super) files: Vec<(PathBuf, u64)>,
    pub(super) options: CsvOptions,
    /// Each file is read from its begin to its end.
    pub(super) whole: Arc<dyn TableProvider>,
    /// Files may be cut at line ends.
    pub(super) in_parts: Arc<dyn TableProvider>,
    /// Whether they can be cut, once somebody looked.
    pub(super) are_rows: OnceLock<bool>,
}

/// Smaller files are not looked at: they are not cut.
const LEAST_CUT: u64 = 10 << 20;

impl CsvFiles {
    fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }

    /// The provider that reads fastest what is wanted. The first rows of a table are at the begin
    /// of its files, whose ends need not be looked at.
    fn provider(&self, limit: Option<u64>) -> Result<&Arc<dyn TableProvider>> {
        if limit.is_some() || self.bytes() < LEAST_CUT {
            return Ok(&self.whole);
        }
        let are_rows = match self.are_rows.get() {
            Some(known) => *known,
            None => {
                let CsvOptions { delimiter, quote, .. } = self.options;
                let mut are_rows = true;
                for (path, _) in &self.files {
                    are_rows &= lines::are_rows(path, delimiter, quote).map_err(|error| Error::io(path, error))?;
                }
                *self.are_rows.get_or_init(|| are_rows)
            }
        };
        Ok(if are_rows { &self.in_parts } else { &self.whole })
    }
}

#[async_trait]
impl Source for CsvFiles {
    fn schema(&self) -> SchemaRef {
        self.whole.schema()
    }

    fn chunks(&self) -> Vec<Chunk> {
        vec![Chunk { rows: None, bytes: Some(self.bytes()) }]
    }

    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let rows =
            ProviderRows { provider: self.provider(wanted.fetch)?, columns: wanted.columns, limit: wanted.fetch };
        let (rows, columns) = stream::read(to, &rows).await?;
        Ok(Read::new(rows, columns))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let provider = self.provider(limit.map(|limit| limit as u64))?;
        provider.scan(state, projection, filters, limit).await
    }

    fn supports_filters(&self, filters: &[&Expr]) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        self.whole.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.whole.statistics()
    }
}
