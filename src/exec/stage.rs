//! A stage of a plan as an operator of DataFusion: its fragment runs on the device, over the rows
//! of its inputs, which are operators too.
//!
//! ```text
//!   DeviceStageExec: finished                     a task for each partition
//!     RepartitionExec: hash of k0
//!       DeviceStageExec: partial
//!         DataSourceExec: lineitem                a partition is read on the device, not executed
//!         CoalescePartitionsExec                  whole, once for all tasks
//!           DeviceStageExec: dimension
//! ```
//!
//! DataFusion puts exchanges between stages, by what a stage requires of the partitions of its
//! inputs. A fragment that does not fit into device memory is divided, as any plan is. Where the
//! device cannot run it after all, the CPU engine does, over the same rows.

mod parted;
mod task;

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::{SortOptions, cast};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr,
    PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties,
};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};
use tokio::sync::OnceCell;

pub(crate) use self::parted::PartedTasks;
use self::parted::TaskRows;
use self::task::StageTask;
use super::stage_device::StageDevice;
use super::stage_inputs::{InputColumns, TaskInput};
use crate::error::{Error, Result};
use crate::io::DOWNLOAD_ROWS;
use crate::plan::{DevicePlan, InputRole, order_of, placeholder_number};

type StageBatches = BoxStream<'static, PlanResult<RecordBatch>>;

/// What runs stages.
#[derive(Clone)]
pub(crate) struct StageContext {
    /// `None` where the CPU engine runs them.
    pub(crate) device: Option<StageDevice>,
    pub(crate) state: Arc<SessionState>,
}

/// What an operator of a stage is, beside its inputs: all that another process needs of it.
#[derive(Debug)]
pub(crate) struct StageParts {
    /// Over placeholders, by the inputs' numbers.
    pub(crate) fragment: LogicalPlan,
    /// Which rows tasks get of each input, and which columns of the table that its placeholder has
    /// are there.
    pub(crate) inputs: Vec<(InputRole, Vec<usize>)>,
    /// Answers are those of a DataFusion without this engine: rows that fail on the device are left
    /// to the CPU engine, which may have values for them.
    pub(crate) is_stock: bool,
    /// Random numbers follow from this seed and the task's number, so that a task that runs again
    /// draws the same ones.
    pub(crate) seed: u64,
}

/// The numbers that the tasks of a plan have in their stage, where a process runs some of them: an
/// extension of the task's settings, by which tasks draw random numbers of their own.
#[derive(Debug, Clone)]
pub struct TasksOfStage(pub Vec<usize>);

/// The operator of a stage, over its inputs. Without a context it can be looked at, and not run.
///
/// # Errors
/// `Internal` of parts that do not fit together.
pub(crate) fn stage_of(
    parts: StageParts,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    context: Option<StageContext>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let StageParts { fragment, inputs: of_inputs, is_stock, seed } = parts;
    let plan = DevicePlan::of(fragment);
    if of_inputs.len() != inputs.len() {
        return Err(misfit());
    }
    let mut tables: Vec<Option<SchemaRef>> = vec![None; inputs.len()];
    for scan in plan.scans() {
        let number = placeholder_number(&scan.source).ok_or_else(misfit)?;
        *tables.get_mut(number).ok_or_else(misfit)? = Some(scan.source.schema());
    }
    let mut all = vec![];
    for (((role, columns), table), input) in of_inputs.into_iter().zip(tables).zip(&inputs) {
        if matches!(role, InputRole::ByCuts(_)) {
            return Err(Error::internal("DataFusion exchanges no rows by cuts"));
        }
        let (table, yields) = (table.ok_or_else(misfit)?, input.schema());
        let keys = match &role {
            InputRole::ByKeys(keys) => keys.clone(),
            InputRole::InOrder(order) => order.iter().map(|(at, _)| *at).collect(),
            _ => vec![],
        };
        if columns.len() != yields.fields().len()
            || columns.iter().any(|at| *at >= table.fields().len())
            || keys.iter().any(|at| *at >= yields.fields().len())
        {
            return Err(misfit());
        }
        all.push(TaskInputs { role, columns: InputColumns { table, columns } });
    }
    let schema = Arc::new(plan.logical().schema().as_arrow().clone());
    let fragment = Fragment { plan, inputs: all, schema, is_stock, seed };
    Ok(Arc::new(StageExec::new(Arc::new(fragment), inputs, context)))
}

/// An order as DataFusion has it; `None` of no columns.
pub(super) fn lexical(order: &[(usize, SortOptions)], schema: &SchemaRef) -> Option<LexOrdering> {
    LexOrdering::new(order.iter().map(|(at, options)| PhysicalSortExpr {
        expr: Arc::new(Column::new(schema.field(*at).name(), *at)),
        options: *options,
    }))
}

fn misfit() -> Error {
    Error::internal("a stage's fragment and inputs do not fit together")
}

/// What a stage is, if an operator is one.
pub(crate) fn stage_parts(plan: &dyn ExecutionPlan) -> Option<StageParts> {
    let fragment = &plan.downcast_ref::<StageExec>()?.fragment;
    let inputs = fragment.inputs.iter();
    Some(StageParts {
        fragment: fragment.plan.logical().clone(),
        inputs: inputs.map(|of| (of.role.clone(), of.columns.columns.clone())).collect(),
        is_stock: fragment.is_stock,
        seed: fragment.seed,
    })
}

/// What the tasks of a stage run.
struct Fragment {
    plan: Arc<DevicePlan>,
    inputs: Vec<TaskInputs>,
    schema: SchemaRef,
    is_stock: bool,
    seed: u64,
}

/// Which rows tasks get of an input, and of which columns.
struct TaskInputs {
    role: InputRole,
    columns: InputColumns,
}

/// A stage.
struct StageExec {
    fragment: Arc<Fragment>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    /// Inputs that all tasks read whole.
    shared: Arc<[OnceCell<TaskInput>]>,
    /// `None` where plans are only handed on.
    context: Option<StageContext>,
    metrics: ExecutionPlanMetricsSet,
    properties: Arc<PlanProperties>,
}

impl StageExec {
    fn new(
        fragment: Arc<Fragment>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
        context: Option<StageContext>,
    ) -> StageExec {
        let parted = fragment.inputs.iter().zip(&inputs).filter(|(of, _)| of.role.is_parted());
        let count = |input: &Arc<dyn ExecutionPlan>| input.output_partitioning().partition_count();
        let tasks = parted.map(|(_, input)| count(input)).max().unwrap_or(1);
        let order = lexical(&order_of(fragment.plan.logical()), &fragment.schema);
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(fragment.schema.clone(), order),
            Partitioning::UnknownPartitioning(tasks),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        StageExec {
            shared: inputs.iter().map(|_| OnceCell::new()).collect(),
            fragment,
            inputs,
            context,
            metrics: ExecutionPlanMetricsSet::new(),
            properties: Arc::new(properties),
        }
    }

    fn task(&self, number: usize, host: Arc<TaskContext>) -> PlanResult<StageTask> {
        let Some(context) = self.context.clone() else {
            return Err(Error::unsupported("a stage", "this process has no device").into());
        };
        // Rows of equal keys would be of different tasks.
        let inputs = self.fragment.inputs.iter().zip(&self.inputs);
        let mut counts = inputs
            .filter(|(of, _)| matches!(of.role, InputRole::ByKeys(_)))
            .map(|(_, input)| input.output_partitioning().partition_count());
        if let Some(first) = counts.next()
            && counts.any(|other| other != first)
        {
            return Err(Error::internal("inputs of a stage are parted differently").into());
        }
        Ok(StageTask {
            number,
            fragment: self.fragment.clone(),
            inputs: self.inputs.clone(),
            shared: self.shared.clone(),
            context,
            host,
        })
    }
}

impl fmt::Debug for StageExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as(DisplayFormatType::Default, f)
    }
}

impl DisplayAs for StageExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let mut operators = vec![];
        collect_operators(self.fragment.plan.logical(), &mut operators);
        if operators.is_empty() {
            operators.push("rows of its input".into());
        }
        write!(f, "DeviceStageExec: {}", operators.join(" <- "))
    }
}

/// The operators of a fragment, the last one first; its inputs aside.
fn collect_operators(plan: &LogicalPlan, operators: &mut Vec<String>) {
    if !matches!(plan, LogicalPlan::TableScan(_)) {
        operators.push(plan.display().to_string());
    }
    plan.inputs().into_iter().for_each(|input| collect_operators(input, operators));
}

impl ExecutionPlan for StageExec {
    fn name(&self) -> &str {
        "DeviceStageExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let all = self.fragment.inputs.iter().zip(&self.inputs);
        let of = |(of, input): (&TaskInputs, &Arc<dyn ExecutionPlan>)| match &of.role {
            // The first task's input has one partition, which tasks in other processes are not to
            // find: schedulers give each task the partition of its number, but a
            // `SinglePartition` to all.
            InputRole::Part | InputRole::First | InputRole::ByCuts(_) => {
                Distribution::UnspecifiedDistribution
            }
            InputRole::Whole | InputRole::InOrder(_) => Distribution::SinglePartition,
            InputRole::ByKeys(columns) => {
                let schema = input.schema();
                let column = |at: &usize| -> Arc<dyn PhysicalExpr> {
                    Arc::new(Column::new(schema.field(*at).name(), *at))
                };
                Distribution::KeyPartitioned(columns.iter().map(column).collect())
            }
        };
        let distributions: Vec<Distribution> = all.map(of).collect();
        let by_keys = |of: &TaskInputs| matches!(of.role, InputRole::ByKeys(_));
        match self.fragment.inputs.len() > 1 && self.fragment.inputs.iter().all(by_keys) {
            true => InputDistributionRequirements::co_partitioned(distributions),
            false => InputDistributionRequirements::new(distributions),
        }
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let all = self.fragment.inputs.iter().zip(&self.inputs);
        let of = |(of, input): (&TaskInputs, &Arc<dyn ExecutionPlan>)| match &of.role {
            InputRole::InOrder(order) => {
                lexical(order, &input.schema()).map(OrderingRequirements::from)
            }
            _ => None,
        };
        all.map(of).collect()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        let by_keys = |of: &TaskInputs| matches!(of.role, InputRole::ByKeys(_));
        self.fragment.inputs.iter().map(by_keys).collect()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        if children.len() != self.inputs.len() {
            return Err(DataFusionError::Internal(format!(
                "a stage of {} inputs is given {}",
                self.inputs.len(),
                children.len()
            )));
        }
        Ok(Arc::new(StageExec::new(self.fragment.clone(), children, self.context.clone())))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let (schema, of_task) = (self.fragment.schema.clone(), self.fragment.schema.clone());
        let (task, metrics) = (self.task(partition, context)?, TaskMetrics::new(self, partition));
        let device = self.context.as_ref().and_then(|context| context.device.clone());
        let batches = async move {
            let batches: StageBatches = match metrics.of(task.run(None)).await? {
                TaskRows::Divided(rows) => {
                    let device = device.ok_or_else(|| Error::internal("no device divides"))?;
                    by_turns(rows.batches(DOWNLOAD_ROWS), device).boxed()
                }
                TaskRows::Batches(batches) => {
                    futures::stream::iter(batches.into_iter().map(Ok)).boxed()
                }
                TaskRows::Parted(_) => return Err(Error::internal("nobody parts rows").into()),
            };
            let counted = batches.map(move |batch| {
                let batch = fitted(batch?, &of_task)?;
                metrics.rows.record_output(batch.num_rows());
                Ok(batch)
            });
            Ok::<_, DataFusionError>(counted)
        };
        let stream = futures::stream::once(batches).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<TreeNodeRecursion>,
    ) -> PlanResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}

/// Batches that are made on the device. Each is made in a turn of its own: a turn for all of them
/// would block other tasks for as long as the reader takes.
fn by_turns(
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
    device: StageDevice,
) -> impl Stream<Item = PlanResult<RecordBatch>> + Send + 'static {
    futures::stream::try_unfold((batches, device), |(mut batches, device)| async move {
        let next = {
            let _turn = device.turn().await?;
            batches.next().transpose()?
        };
        Ok(next.map(|batch| (batch, (batches, device))))
    })
}

/// What is counted of a task.
struct TaskMetrics {
    rows: BaselineMetrics,
    on_cpu: Count,
}

impl TaskMetrics {
    fn new(stage: &StageExec, task: usize) -> TaskMetrics {
        TaskMetrics {
            rows: BaselineMetrics::new(&stage.metrics, task),
            on_cpu: MetricBuilder::new(&stage.metrics).counter("run_on_cpu", task),
        }
    }

    /// The rows that a task's run yields.
    async fn of(
        &self,
        run: impl Future<Output = PlanResult<(TaskRows, bool)>>,
    ) -> PlanResult<TaskRows> {
        let _timer = self.rows.elapsed_compute().timer();
        let (rows, on_cpu) = run.await?;
        self.on_cpu.add(usize::from(on_cpu));
        Ok(rows)
    }
}

/// A batch with the types that the stage is said to yield: strings lie in one layout on the device.
fn fitted(batch: RecordBatch, schema: &SchemaRef) -> PlanResult<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        match column.data_type() == field.data_type() {
            true => Ok(column.clone()),
            false => cast(column, field.data_type()),
        }
    });
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}
