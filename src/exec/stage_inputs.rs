//! What a task of a stage reads: scans of Parquet and CSV files and of batches in memory as tables of
//! the device, everything else as the rows that DataFusion's operators yield.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::datasource::{MemTable, TableType, provider_as_source};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::TryStreamExt;

use super::Engine;
use super::memory_scan::MemoryScan;
use crate::error::{Error, Result};
use crate::io::{Snapshot, SomeColumns, SourceTable, of_their_types, scanned_parts};
use crate::plan::PlanTable;

/// What a stage's input yields.
#[derive(Debug, Clone)]
pub(super) struct InputColumns {
    /// The table's columns, as the fragment's placeholder has them.
    pub(super) table: SchemaRef,
    /// Those that the input yields, in its order.
    pub(super) columns: Vec<usize>,
}

/// The rows of a task's input.
#[derive(Clone)]
pub(super) struct TaskInput {
    /// As the device reads them.
    pub(super) table: PlanTable,
    /// As the CPU engine reads them.
    on_cpu: OnCpu,
}

#[derive(Debug, Clone)]
enum OnCpu {
    /// By partitions of a scan.
    Scan(Arc<dyn ExecutionPlan>, Partitions),
    /// Rows that are here already.
    Batches(Vec<RecordBatch>),
}

/// The partitions of an input that a task reads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Partitions {
    One(usize),
    All,
    None,
}

impl TaskInput {
    /// The rows of partitions of an input, for a device or the CPU engine alone.
    ///
    /// # Errors
    /// Of the operators below, as they are: who runs this one may know them. Of files.
    pub(super) async fn of(
        engine: Option<&Engine>,
        state: &SessionState,
        input: &Arc<dyn ExecutionPlan>,
        columns: &InputColumns,
        partitions: Partitions,
        context: &Arc<TaskContext>,
    ) -> PlanResult<TaskInput> {
        let (scan, of_scan) = scan_beneath(input, partitions);
        let table: Option<PlanTable> = match engine {
            Some(engine) => {
                let table = scanned(engine, state, &scan, &columns.table, of_scan).await?;
                table.map(|table| provider_as_source(table))
            }
            None if has_rows_of(&scan, of_scan)? => {
                Some(provider_as_source(Arc::new(EmptyTable::new(columns.table.clone()))))
            }
            None => None,
        };
        if let Some(table) = table {
            return Ok(TaskInput { table, on_cpu: OnCpu::Scan(scan, of_scan) });
        }
        let batches = batches(input, partitions, context).await?;
        let (schema, of) = (columns.table.clone(), columns.columns.clone());
        let known = match engine {
            Some(engine) if are_shared(&batches) => {
                engine.scanned.of_batches(&[&batches], &schema, of.clone())
            }
            _ => None,
        };
        let table = match known {
            Some(table) => table,
            None => {
                batches.iter().try_for_each(of_their_types)?;
                let source = SomeColumns::new(schema, of, batches.clone());
                Arc::new(SourceTable::new(Snapshot::of(Arc::new(source)), None, 0))
            }
        };
        Ok(TaskInput { table: provider_as_source(table), on_cpu: OnCpu::Batches(batches) })
    }

    /// The rows as a table of the CPU engine, in batches of so many.
    ///
    /// # Errors
    /// Of batches that do not fit their schema.
    pub(super) fn on_cpu(&self, columns: &InputColumns, rows: usize) -> Result<PlanTable> {
        let InputColumns { table, columns } = columns;
        let provider: Arc<dyn TableProvider> = match &self.on_cpu {
            OnCpu::Scan(scan, partitions) => {
                Arc::new(PlannedTable { plan: partitions_of(scan, *partitions)? })
            }
            OnCpu::Batches(batches) => {
                let schema = Arc::new(table.project(columns)?);
                let named = batches.iter().map(|batch| {
                    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                    let columns = batch.columns().to_vec();
                    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
                });
                let named = named.collect::<std::result::Result<_, _>>()?;
                let own = apart(&schema, named, rows)?;
                Arc::new(MemTable::try_new(schema, vec![own])?)
            }
        };
        let (table, columns) = (table.clone(), columns.clone());
        Ok(provider_as_source(Arc::new(Widened { table, columns, rows: provider })))
    }
}

/// What is known of a table of this schema that a scan reads, before it runs.
///
/// # Errors
/// Of files that cannot be read.
pub(crate) async fn scanned_table(
    engine: &Engine,
    state: &SessionState,
    scan: &Arc<dyn ExecutionPlan>,
    schema: &SchemaRef,
) -> Result<PlanTable> {
    let (scan, all) = scan_beneath(scan, Partitions::All);
    Ok(match scanned(engine, state, &scan, schema, all).await? {
        Some(table) => provider_as_source(table),
        None => provider_as_source(Arc::new(EmptyTable::new(schema.clone()))),
    })
}

/// The rows in batches of so many, whose buffers are their own: operators account for the whole
/// buffers of batches that they keep, and large batches share those.
fn apart(schema: &SchemaRef, batches: Vec<RecordBatch>, rows: usize) -> Result<Vec<RecordBatch>> {
    if schema.fields().is_empty() {
        return Ok(batches);
    }
    let (mut own, mut all) = (BatchCoalescer::new(schema.clone(), rows), vec![]);
    for batch in batches {
        own.push_batch(batch)?;
        all.extend(std::iter::from_fn(|| own.next_completed_batch()));
    }
    own.finish_buffered_batch()?;
    all.extend(std::iter::from_fn(|| own.next_completed_batch()));
    Ok(all)
}

/// Whether somebody else has the rows, too: who hands them out again, as to all tasks of a stage
/// that a process runs.
fn are_shared(batches: &[RecordBatch]) -> bool {
    let mut columns = batches.iter().flat_map(RecordBatch::columns).peekable();
    columns.peek().is_some() && columns.all(|column| Arc::strong_count(column) > 1)
}

fn all_of(schema: &SchemaRef) -> Vec<usize> {
    (0..schema.fields().len()).collect()
}

/// A table that a scan of DataFusion reads, if the device can read it instead.
///
/// # Errors
/// Of files that cannot be read.
async fn scanned(
    engine: &Engine,
    state: &SessionState,
    scan: &Arc<dyn ExecutionPlan>,
    schema: &SchemaRef,
    partitions: Partitions,
) -> Result<Option<Arc<SourceTable>>> {
    if let Some(memory) = scan.downcast_ref::<MemoryScan>() {
        if memory.table() != schema {
            return Ok(None);
        }
        let mut held = vec![];
        for data in partitions.of(memory.partitions()) {
            held.push(data.read().await);
        }
        let batches: Vec<&[RecordBatch]> = held.iter().map(|batches| batches.as_slice()).collect();
        return Ok(engine.scanned.of_batches(&batches, schema, all_of(schema)));
    }
    let Some(scan) = scan.downcast_ref::<DataSourceExec>() else { return Ok(None) };
    if let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() {
        let Some((format, parts)) = scanned_parts(config) else { return Ok(None) };
        if config.file_schema().fields().len() != schema.fields().len() {
            return Ok(None);
        }
        let parts: Vec<_> = partitions.of(parts).into_iter().flatten().collect();
        // DataFusion's reader has the last word on what it cannot read, too.
        return match parts.is_empty() {
            true => Ok(None),
            false => {
                let found = engine.scanned.of_parts(state, (format, parts), schema).await;
                Ok(found.unwrap_or_default())
            }
        };
    }
    let Some(memory) = scan.data_source().downcast_ref::<MemorySourceConfig>() else {
        return Ok(None);
    };
    if memory.original_schema() != *schema || scan.fetch().is_some() {
        return Ok(None);
    }
    let all = memory.partitions().iter().map(Vec::as_slice).collect();
    Ok(engine.scanned.of_batches(&partitions.of(all), schema, all_of(schema)))
}

/// The scan beneath operators that only hand rows on, and which of its partitions those of theirs
/// are.
fn scan_beneath(
    plan: &Arc<dyn ExecutionPlan>,
    mut partitions: Partitions,
) -> (Arc<dyn ExecutionPlan>, Partitions) {
    let mut plan = plan;
    loop {
        if plan.is::<CoalescePartitionsExec>() && plan.fetch().is_none() {
            partitions = match partitions {
                Partitions::One(0) | Partitions::All => Partitions::All,
                Partitions::One(_) | Partitions::None => Partitions::None,
            };
        } else if !plan.is::<CooperativeExec>() {
            return (plan.clone(), partitions);
        }
        match plan.children().as_slice() {
            [child] => plan = child,
            _ => return (plan.clone(), partitions),
        }
    }
}

/// A scan of some partitions that has not run: what DataFusion's scans of files share among their
/// partitions has nothing left the second time.
pub(super) fn partitions_of(
    scan: &Arc<dyn ExecutionPlan>,
    partitions: Partitions,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    let Some(of) = scan.downcast_ref::<DataSourceExec>() else {
        return scan.clone().reset_state();
    };
    let source: Arc<dyn DataSource> = match (
        partitions,
        of.data_source().downcast_ref::<FileScanConfig>(),
        of.data_source().downcast_ref::<MemorySourceConfig>(),
    ) {
        (Partitions::One(_) | Partitions::None, Some(files), _) => {
            let groups = partitions.of(files.file_groups.clone());
            let some = FileScanConfigBuilder::from(files.clone()).with_file_groups(groups);
            Arc::new(some.build())
        }
        (Partitions::One(_) | Partitions::None, _, Some(memory)) => {
            let (schema, projection) = (memory.original_schema(), memory.projection().clone());
            let batches = partitions.of(memory.partitions().to_vec());
            Arc::new(MemorySourceConfig::try_new(&batches, schema, projection)?)
        }
        _ => of.data_source().clone(),
    };
    Ok(Arc::new(DataSourceExec::new(source)))
}

/// Whether a scan's partitions can be read alone, and there is one to read.
fn has_rows_of(scan: &Arc<dyn ExecutionPlan>, partitions: Partitions) -> PlanResult<bool> {
    let Some(of) = scan.downcast_ref::<DataSourceExec>() else { return Ok(false) };
    let source = of.data_source();
    let can = source.is::<FileScanConfig>() || source.is::<MemorySourceConfig>();
    Ok(can && partitions_of(scan, partitions)?.output_partitioning().partition_count() > 0)
}

impl Partitions {
    fn of<T>(self, all: Vec<T>) -> Vec<T> {
        match self {
            Partitions::One(number) => all.into_iter().skip(number).take(1).collect(),
            Partitions::All => all,
            Partitions::None => vec![],
        }
    }
}

/// The batches of partitions, one partition after the other.
async fn batches(
    plan: &Arc<dyn ExecutionPlan>,
    partitions: Partitions,
    context: &Arc<TaskContext>,
) -> PlanResult<Vec<RecordBatch>> {
    let count = plan.output_partitioning().partition_count();
    let mut batches = vec![];
    for number in partitions.of((0..count).collect()) {
        let of_partition: Vec<RecordBatch> =
            plan.execute(number, context.clone())?.try_collect().await?;
        batches.extend(of_partition);
    }
    let schema = plan.schema();
    match batches.iter().find(|batch| batch.num_columns() != schema.fields().len()) {
        Some(batch) => Err(Error::internal(format!(
            "{} yields {} columns instead of {}",
            plan.name(),
            batch.num_columns(),
            schema.fields().len()
        ))
        .into()),
        None => Ok(batches),
    }
}

/// A table of which a provider has some columns, which are all that is read of it.
#[derive(Debug)]
struct Widened {
    table: SchemaRef,
    columns: Vec<usize>,
    rows: Arc<dyn TableProvider>,
}

#[async_trait]
impl TableProvider for Widened {
    fn schema(&self) -> SchemaRef {
        self.table.clone()
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
        let all = (0..self.table.fields().len()).collect();
        let place = |at: &usize| {
            let place = self.columns.iter().position(|column| column == at);
            place.ok_or_else(|| DataFusionError::Internal(format!("no column {at} was scanned")))
        };
        let places: Vec<usize> =
            projection.unwrap_or(&all).iter().map(place).collect::<PlanResult<_>>()?;
        self.rows.scan(state, Some(&places), &[], limit).await
    }
}

/// Operators that are planned already, as a table.
#[derive(Debug)]
pub(crate) struct PlannedTable {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
}

#[async_trait]
impl TableProvider for PlannedTable {
    fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let schema = self.plan.schema();
        let Some(places) =
            projection.filter(|some| !some.iter().copied().eq(0..schema.fields().len()))
        else {
            return Ok(self.plan.clone());
        };
        let columns = places.iter().map(|at| {
            let name = schema.field(*at).name().clone();
            (Arc::new(Column::new(&name, *at)) as Arc<dyn PhysicalExpr>, name)
        });
        let columns: Vec<_> = columns.collect();
        Ok(Arc::new(ProjectionExec::try_new(columns, self.plan.clone())?))
    }
}
