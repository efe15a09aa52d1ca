//! Files that providers of DataFusion's read, each by a provider of its own, with the columns of their
//! paths.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;

use super::path_columns::PathColumns;

/// A file of a table.
#[derive(Debug, Clone)]
pub(super) struct LoneFile {
    pub(super) provider: Arc<dyn TableProvider>,
    pub(super) bytes: u64,
}

/// Files as one table.
#[derive(Debug, Clone)]
pub(super) struct LoneFiles {
    files: Vec<LoneFile>,
    paths: PathColumns,
    /// Columns of files, and those of paths behind them.
    schema: SchemaRef,
}

impl LoneFiles {
    /// Providers have the columns of `schema` in front of those of paths.
    pub(super) fn new(files: Vec<LoneFile>, paths: PathColumns, schema: SchemaRef) -> LoneFiles {
        LoneFiles { files, paths, schema }
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub(super) fn paths(&self) -> &PathColumns {
        &self.paths
    }

    /// The same of some of the files.
    pub(super) fn of_files(&self, files: &[usize]) -> LoneFiles {
        let lone = files.iter().map(|file| self.files[*file].clone()).collect();
        LoneFiles { files: lone, paths: self.paths.of_files(files), schema: self.schema.clone() }
    }

    /// Columns of one file's rows.
    async fn scan_file(
        &self,
        state: &dyn Session,
        file: usize,
        columns: &[usize],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let of_files = self.schema.fields().len() - self.paths.fields.len();
        let own: Vec<usize> = columns.iter().copied().filter(|column| *column < of_files).collect();
        let scan = self.files[file].provider.scan(state, Some(&own), &[], limit).await?;
        let mut place = 0..;
        let expr = |column: &usize| -> (Arc<dyn PhysicalExpr>, String) {
            let name = self.schema.field(*column).name();
            match *column < of_files {
                true => (Arc::new(Column::new(name, place.next().unwrap_or_default())), name.clone()),
                false => (Arc::new(Literal::new(self.paths.values(file)[column - of_files].clone())), name.clone()),
            }
        };
        let exprs: Vec<_> = columns.iter().map(expr).collect();
        Ok(Arc::new(ProjectionExec::try_new(exprs, scan)?))
    }
}

#[async_trait]
impl TableProvider for LoneFiles {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
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
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let selected = self.paths.selected(state, filters)?.unwrap_or_else(|| (0..self.files.len()).collect());
        let mut scans = vec![];
        for file in selected {
            scans.push(self.scan_file(state, file, &columns, limit).await?);
        }
        match scans.len() {
            0 => Ok(Arc::new(EmptyExec::new(Arc::new(self.schema.project(&columns)?)))),
            1 => Ok(scans.remove(0)),
            _ => UnionExec::try_new(scans),
        }
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(self.paths.supports(filters))
    }
}
