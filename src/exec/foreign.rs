//! Tables of providers that are not the session's: whoever registered them through its context
//! knows when their rows change, so each query reads them anew, and nothing of them stays.
//!
//! The provider gets what DataFusion's planner gives it: the columns, filters and limit of the
//! scan. Its partitions are read side by side, and put one after the other in their order.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result as PlanResult;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};

use crate::cpu::for_cpu;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{
    Chunk, ColumnRequest, Read, Source, To, of_panic, of_their_types, partitions_in_order, upload,
};

/// What one scan asks of somebody else's provider, as a source of the scan's columns.
#[derive(Debug)]
pub(super) struct Foreign {
    scan: TableScan,
}

impl Foreign {
    pub(super) fn new(scan: &TableScan) -> Foreign {
        Foreign { scan: scan.clone() }
    }

    /// The rows as the provider yields them, one partition after the other.
    ///
    /// # Errors
    /// As [`Source::read`], but those of the device.
    pub(super) async fn batches(
        &self,
        state: &SessionState,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let plan = self.plan(state).await?;
        let (table, schema) = (self.scan.table_name.to_string(), Source::schema(self));
        let checked = move |batch: RecordBatch| {
            futures::future::ready(check(&table, &batch, &schema).map(|()| batch))
        };
        Ok(partitions_in_order(plan, state.task_ctx())?.and_then(checked).boxed())
    }

    async fn plan(&self, state: &SessionState) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = for_cpu(LogicalPlan::TableScan(self.scan.clone()))?;
        let physical = DefaultPhysicalPlanner::default().create_physical_plan(&plan, state).await?;
        if physical.boundedness().is_unbounded() {
            return Err(Error::unsupported(
                format!("table {}", self.scan.table_name),
                "its rows do not end",
            ));
        }
        Ok(physical)
    }
}

#[async_trait]
impl Source for Foreign {
    fn schema(&self) -> SchemaRef {
        Arc::new(self.scan.projected_schema.as_arrow().clone())
    }

    fn chunks(&self) -> Vec<Chunk> {
        vec![Chunk { rows: None, bytes: None }]
    }

    /// # Errors
    /// Those of the provider; [`ErrorKind::Plan`] where its rows are not those of its schema, and
    /// where it panics; [`ErrorKind::Unsupported`] where its rows never end; of the device.
    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let schema = Arc::new(Source::schema(self).project(wanted.columns)?);
        let table = self.scan.table_name.to_string();
        let reading = async {
            let plan = self.plan(to.state).await?;
            let (name, said) = (table.clone(), schema.clone());
            upload(to.device, schema, plan, to.state.task_ctx(), move |batch| {
                check(&name, batch, &said)
            })
            .await
        };
        let reading = AssertUnwindSafe(reading).catch_unwind().await;
        let (rows, columns) = reading
            .unwrap_or_else(|panic| Err(of_panic(&format!("table {table}"), panic.as_ref())))?;
        Ok(Read::new(rows, columns))
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        source_as_provider(&self.scan.source)?.scan(state, projection, filters, limit).await
    }
}

/// Whether a batch has what plans and kernels rely on: DataFusion takes a provider at its word.
fn check(table: &str, batch: &RecordBatch, schema: &SchemaRef) -> Result<()> {
    if let Some(what) = unlike(batch, schema) {
        return Err(named(table, &what));
    }
    of_their_types(batch).map_err(|error| match error.kind() {
        ErrorKind::File { message, .. } => named(table, message),
        _ => error,
    })
}

fn named(table: &str, message: &str) -> Error {
    ErrorKind::Plan { message: format!("table {table}: {message}"), location: None }.into()
}

/// How a batch differs from its schema.
fn unlike(batch: &RecordBatch, schema: &SchemaRef) -> Option<String> {
    if batch.num_columns() != schema.fields().len() {
        return Some(format!(
            "{} columns where {} are wanted",
            batch.num_columns(),
            schema.fields().len()
        ));
    }
    schema.fields().iter().zip(batch.columns()).find_map(|(field, column)| {
        let (name, said, found) = (field.name(), field.data_type(), column.data_type());
        if found != said {
            return Some(format!("column {name:?} is said to be {said} and is {found}"));
        }
        let nulls = !field.is_nullable() && column.null_count() > 0;
        nulls.then(|| {
            format!("column {name:?} is said to have no nulls and has {}", column.null_count())
        })
    })
}
