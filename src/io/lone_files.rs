//! Files that providers read one by one, as one table with the columns of their paths.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::compute::CastOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;

use super::path_columns::PathColumns;
use super::same_column::own_column;

/// Expressions with the names of the columns that they make.
type NamedExprs = Vec<(Arc<dyn PhysicalExpr>, String)>;

/// A file of a table.
#[derive(Debug, Clone)]
pub(super) struct LoneFile {
    pub(super) provider: Arc<dyn TableProvider>,
    pub(super) bytes: u64,
}

/// The rows of files in the order given. Columns of files are found by name and get the table's
/// type; one that a file lacks is NULL.
#[derive(Debug, Clone)]
pub(super) struct LoneFiles {
    files: Vec<LoneFile>,
    paths: PathColumns,
    /// Columns of files, and those of paths behind them.
    schema: SchemaRef,
}

impl LoneFiles {
    /// Columns of `schema` in front of those of paths have types that hold the values of all files.
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

    /// The table of some of the files.
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
        let provider = &self.files[file].provider;
        let (read, made) = self.of_file(file, &provider.schema(), columns)?;
        let scan = provider.scan(state, Some(&read), &[], limit).await?;
        let is_it = made.iter().all(|(expr, name)| {
            expr.downcast_ref::<Column>().is_some_and(|column| column.name() == name)
        });
        Ok(if is_it { scan } else { Arc::new(ProjectionExec::try_new(made, scan)?) })
    }

    /// What is read of a file with these columns of its own, and how the table's are made of that.
    fn of_file(
        &self,
        file: usize,
        own: &Schema,
        columns: &[usize],
    ) -> Result<(Vec<usize>, NamedExprs)> {
        let of_files = self.schema.fields().len() - self.paths.fields.len();
        let (mut read, mut made) = (vec![], vec![]);
        for &column in columns {
            let field = self.schema.field(column);
            let expr: Arc<dyn PhysicalExpr> = match own_column(&self.schema, own, field.name()) {
                _ if column >= of_files => {
                    Arc::new(Literal::new(self.paths.values(file)[column - of_files].clone()))
                }
                None => Arc::new(Literal::new(ScalarValue::try_from(field.data_type())?)),
                Some(index) => {
                    let column: Arc<dyn PhysicalExpr> =
                        Arc::new(Column::new(own.field(index).name(), read.len()));
                    read.push(index);
                    match own.field(index).data_type() == field.data_type() {
                        true => column,
                        false => {
                            let strict = CastOptions { safe: false, ..CastOptions::default() };
                            Arc::new(CastExpr::new(column, field.data_type().clone(), Some(strict)))
                        }
                    }
                }
            };
            made.push((expr, field.name().clone()));
        }
        Ok((read, made))
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
        let columns =
            projection.cloned().unwrap_or_else(|| (0..self.schema.fields().len()).collect());
        let selected =
            self.paths.selected(state, filters)?.unwrap_or_else(|| (0..self.files.len()).collect());
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

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(self.paths.supports(filters))
    }
}
