//! Files that providers read one by one, as one table.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::compute::CastOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::datasource::TableType;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;

use super::partitions::HivePartitions;

/// Expressions with the names of the columns that they make.
type NamedExprs = Vec<(Arc<dyn PhysicalExpr>, String)>;

/// The rows of files in the order given. Columns are found by name and get the table's type; one
/// that a file lacks is NULL, and those of partitions have one value a file.
#[derive(Debug)]
pub(super) struct UnitedFiles {
    files: Vec<Arc<dyn TableProvider>>,
    partitions: HivePartitions,
    schema: SchemaRef,
}

impl UnitedFiles {
    /// A table with these columns of its files. Partition columns take the place of those of their
    /// names.
    pub(super) fn new(files: Vec<Arc<dyn TableProvider>>, schema: &Schema, partitions: HivePartitions) -> UnitedFiles {
        let of_files = schema.fields().iter().filter(|field| !partitions.has(field.name()));
        let fields = of_files.chain(&partitions.fields).cloned();
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        UnitedFiles { files, partitions, schema }
    }

    /// What is read of a file, and how the wanted columns are made of that.
    fn of_file(&self, at: usize, wanted: &Schema) -> PlanResult<(Vec<usize>, NamedExprs)> {
        let own = self.files[at].schema();
        let (mut read, mut made) = (vec![], vec![]);
        for field in wanted.fields() {
            let partition = self.partitions.fields.iter().position(|of| of.name() == field.name());
            let expr: Arc<dyn PhysicalExpr> = match (partition, own.index_of(field.name())) {
                (Some(partition), _) => Arc::new(Literal::new(self.partitions.values(at)[partition].clone())),
                (None, Err(_)) => Arc::new(Literal::new(ScalarValue::try_from(field.data_type())?)),
                (None, Ok(index)) => {
                    let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), read.len()));
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
impl TableProvider for UnitedFiles {
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
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let wanted = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => self.schema.clone(),
        };
        let mut scans = vec![];
        for (at, file) in self.files.iter().enumerate() {
            let (read, made) = self.of_file(at, &wanted)?;
            let scan = file.scan(state, Some(&read), &[], limit).await?;
            let is_it = made.iter().all(|(expr, _)| expr.downcast_ref::<Column>().is_some());
            scans.push(match is_it {
                true => scan,
                false => Arc::new(ProjectionExec::try_new(made, scan)?) as Arc<dyn ExecutionPlan>,
            });
        }
        UnionExec::try_new(scans)
    }
}
