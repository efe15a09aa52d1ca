//! Tables of providers that are not the session's: whoever registered them through its context knows
//! when their rows change, so each query reads them anew, and nothing of them stays.
//!
//! The provider gets what DataFusion's planner gives it: the columns, filters and limit of the scan.
//! Its partitions are read side by side, and put one after the other in their order.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::datatypes::Schema;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, TableScan};
use datafusion::physical_plan::{ExecutionPlanProperties, collect_partitioned};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use futures::FutureExt;

use crate::column::{Relation, Table};
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{of_panic, of_their_types};
use crate::plan::for_cpu;

/// The rows of a scan, in device memory.
///
/// # Errors
/// Those of the provider; [`ErrorKind::Plan`] where its rows are not those of its schema, and where
/// it panics; [`ErrorKind::Unsupported`] where its rows never end; of the device.
pub(super) async fn read(state: &SessionState, device: &Device, scan: &TableScan) -> Result<Relation> {
    let reading = AssertUnwindSafe(batches(state, scan)).catch_unwind().await;
    let batches =
        reading.unwrap_or_else(|panic| Err(of_panic(&format!("table {}", scan.table_name), panic.as_ref())))?;
    let schema = scan.projected_schema.as_arrow();
    for batch in &batches {
        if let Some(what) = unlike(batch, schema) {
            return Err(named(scan, &what));
        }
        of_their_types(batch).map_err(|error| match error.kind() {
            ErrorKind::File { message, .. } => named(scan, message),
            _ => error,
        })?;
    }
    let table = Table::from_batches(device, Arc::new(schema.clone()), &batches)?;
    Relation::dense(table.rows as u64, table.columns)
}

fn named(scan: &TableScan, message: &str) -> Error {
    ErrorKind::Plan { message: format!("table {}: {message}", scan.table_name), location: None }.into()
}

async fn batches(state: &SessionState, scan: &TableScan) -> Result<Vec<RecordBatch>> {
    let plan = for_cpu(LogicalPlan::TableScan(scan.clone()))?;
    let physical = DefaultPhysicalPlanner::default().create_physical_plan(&plan, state).await?;
    if physical.boundedness().is_unbounded() {
        return Err(Error::unsupported(format!("table {}", scan.table_name), "its rows do not end"));
    }
    let partitions = collect_partitioned(physical, state.task_ctx()).await?;
    Ok(partitions.into_iter().flatten().collect())
}

/// What plans and kernels rely on and a batch does not have: DataFusion takes a provider at its word.
fn unlike(batch: &RecordBatch, schema: &Schema) -> Option<String> {
    if batch.num_columns() != schema.fields().len() {
        return Some(format!("{} columns where {} are wanted", batch.num_columns(), schema.fields().len()));
    }
    schema.fields().iter().zip(batch.columns()).find_map(|(field, column)| {
        let (name, said, found) = (field.name(), field.data_type(), column.data_type());
        if found != said {
            return Some(format!("column {name:?} is said to be {said} and is {found}"));
        }
        let nulls = !field.is_nullable() && column.null_count() > 0;
        nulls.then(|| format!("column {name:?} is said to have no nulls and has {}", column.null_count()))
    })
}
