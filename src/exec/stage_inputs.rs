//! What a task of a stage reads: scans of Parquet files and of batches in memory as tables of the
//! device, everything else as the rows that DataFusion's operators yield.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::empty::EmptyTable;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::{MemTable, TableType, provider_as_source};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use futures::TryStreamExt;

use super::Engine;
use crate::error::{Error, Result};
use crate::io::{Snapshot, SomeColumns, SourceTable, of_their_types, parquet_parts};
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
    /// By a scan that has not run.
    Scan(Arc<dyn ExecutionPlan>),
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
    /// The rows of partitions of an input.
    ///
    /// # Errors
    /// Of the operators below; of files.
    pub(super) async fn of(
        engine: &Engine,
        state: &SessionState,
        input: &Arc<dyn ExecutionPlan>,
        columns: &InputColumns,
        partitions: Partitions,
        context: &Arc<TaskContext>,
    ) -> Result<TaskInput> {
        let scan = scan_beneath(input);
        if let Some(table) = scanned(engine, state, &scan, &columns.table, partitions).await? {
            return Ok(TaskInput {
                table: provider_as_source(table),
                on_cpu: OnCpu::Scan(Arc::new(SomePartitions::new(scan, partitions))),
            });
        }
        let batches = batches(input, partitions, context).await?;
        for batch in &batches {
            of_their_types(batch)?;
        }
        let (schema, of) = (columns.table.clone(), columns.columns.clone());
        let source = SomeColumns::new(schema, of, batches.clone());
        let table = SourceTable::new(Snapshot::of(Arc::new(source)), None, 0);
        Ok(TaskInput {
            table: provider_as_source(Arc::new(table)),
            on_cpu: OnCpu::Batches(batches),
        })
    }

    /// The rows as a table of the CPU engine.
    ///
    /// # Errors
    /// Of batches that do not fit their schema.
    pub(super) fn on_cpu(&self, columns: &InputColumns) -> Result<PlanTable> {
        let InputColumns { table, columns } = columns;
        let rows: Arc<dyn TableProvider> = match &self.on_cpu {
            OnCpu::Scan(scan) => Arc::new(ScanOf { scan: scan.clone() }),
            OnCpu::Batches(batches) => {
                let schema = Arc::new(table.project(columns)?);
                let named = batches.iter().map(|batch| {
                    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                    let columns = batch.columns().to_vec();
                    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
                });
                let named = named.collect::<std::result::Result<_, _>>()?;
                Arc::new(MemTable::try_new(schema, vec![named])?)
            }
        };
        let (table, columns) = (table.clone(), columns.clone());
        Ok(provider_as_source(Arc::new(Widened { table, columns, rows })))
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
    let scan = scan_beneath(scan);
    Ok(match scanned(engine, state, &scan, schema, Partitions::All).await? {
        Some(table) => provider_as_source(table),
        None => provider_as_source(Arc::new(EmptyTable::new(schema.clone()))),
    })
}

/// A table that a scan of DataFusion reads, if the device can read it instead.
///
/// # Errors
/// Of files that cannot be read.
pub(super) async fn scanned(
    engine: &Engine,
    state: &SessionState,
    scan: &Arc<dyn ExecutionPlan>,
    schema: &SchemaRef,
    partitions: Partitions,
) -> Result<Option<Arc<SourceTable>>> {
    let Some(scan) = scan.downcast_ref::<DataSourceExec>() else { return Ok(None) };
    if let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() {
        let Some(parts) = parquet_parts(config) else { return Ok(None) };
        if config.file_schema().fields().len() != schema.fields().len() {
            return Ok(None);
        }
        let parts: Vec<_> = partitions.of(parts).into_iter().flatten().collect();
        // DataFusion's reader has the last word on what it cannot read, too.
        return match parts.is_empty() {
            true => Ok(None),
            false => Ok(engine.scanned.of_parts(state, parts, schema).await.unwrap_or_default()),
        };
    }
    let Some(memory) = scan.data_source().downcast_ref::<MemorySourceConfig>() else {
        return Ok(None);
    };
    if memory.original_schema() != *schema || scan.fetch().is_some() {
        return Ok(None);
    }
    let batches: Vec<_> =
        partitions.of(memory.partitions().to_vec()).into_iter().flatten().collect();
    if batches.iter().any(|batch| of_their_types(batch).is_err()) {
        return Ok(None);
    }
    Ok(Some(engine.scanned.of_batches(batches, schema)))
}

/// The scan beneath operators that only hand rows on.
pub(super) fn scan_beneath(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let mut plan = plan;
    while plan.is::<CoalescePartitionsExec>() && plan.fetch().is_none()
        || plan.is::<CooperativeExec>()
    {
        let children = plan.children();
        let [child] = children.as_slice() else { break };
        plan = child;
    }
    plan.clone()
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
) -> Result<Vec<RecordBatch>> {
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
        ))),
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

/// A scan that is planned already, as a table.
#[derive(Debug)]
struct ScanOf {
    scan: Arc<dyn ExecutionPlan>,
}

#[async_trait]
impl TableProvider for ScanOf {
    fn schema(&self) -> SchemaRef {
        self.scan.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let Some(places) = projection else { return Ok(self.scan.clone()) };
        let schema = self.scan.schema();
        let columns = places.iter().map(|at| {
            let name = schema.field(*at).name().clone();
            let column = datafusion::physical_expr::expressions::Column::new(&name, *at);
            (Arc::new(column) as Arc<dyn PhysicalExpr>, name)
        });
        let columns: Vec<_> = columns.collect();
        Ok(Arc::new(datafusion::physical_plan::projection::ProjectionExec::try_new(
            columns,
            self.scan.clone(),
        )?))
    }
}

/// Some partitions of a scan.
#[derive(Debug)]
struct SomePartitions {
    scan: Arc<dyn ExecutionPlan>,
    numbers: Vec<usize>,
    properties: Arc<PlanProperties>,
}

impl SomePartitions {
    fn new(scan: Arc<dyn ExecutionPlan>, partitions: Partitions) -> SomePartitions {
        let count = scan.output_partitioning().partition_count();
        let numbers = partitions.of((0..count).collect());
        let of = scan.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(scan.schema()),
            Partitioning::UnknownPartitioning(numbers.len().max(1)),
            of.emission_type,
            of.boundedness,
        );
        SomePartitions { scan, numbers, properties: Arc::new(properties) }
    }
}

impl DisplayAs for SomePartitions {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "SomePartitions: {:?}", self.numbers)
    }
}

impl ExecutionPlan for SomePartitions {
    fn name(&self) -> &str {
        "SomePartitions"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        match self.numbers.get(partition) {
            Some(number) => self.scan.execute(*number, context),
            None => Ok(Box::pin(datafusion::physical_plan::EmptyRecordBatchStream::new(
                self.scan.schema(),
            ))),
        }
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<TreeNodeRecursion>,
    ) -> PlanResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}
