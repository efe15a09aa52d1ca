//! Tasks that part their rows among the tasks of the next stage, on the device, as DataFusion does
//! on the host: which of the two did it is not seen.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::error::Result as PlanResult;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::metrics::Time;
use datafusion::physical_plan::repartition::BatchPartitioner;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use super::{StageExec, TaskMetrics, fitted};
use crate::column::Table;
use crate::error::{Error, Result};
use crate::exec::DividedResult;
use crate::exec::divide::TaskParts;
use crate::io::DOWNLOAD_ROWS;
use crate::plan::DevicePlan;
use warpframe_device::Device;

/// Rows of one task of a stage for one of the next, by its number.
pub(crate) type ForTask = (usize, RecordBatch);

/// The rows of a task.
pub(super) enum TaskRows {
    Batches(Vec<RecordBatch>),
    Divided(DividedResult),
    /// Parted on the device.
    Parted(Vec<ForTask>),
}

/// How a task's rows are parted on the device.
#[derive(Debug)]
pub(super) struct RowsForTasks(TaskParts);

impl RowsForTasks {
    /// The rows, parted on the device and then brought to the host. Where it has no room for both,
    /// halves of them are.
    ///
    /// # Errors
    /// Of the device.
    pub(super) fn rows(
        &self,
        device: &Device,
        plan: &DevicePlan,
        table: &Table,
        schema: &SchemaRef,
    ) -> Result<Vec<ForTask>> {
        let (parted, begins) = match self.0.part(device, plan.logical().schema(), table) {
            Err(error) if error.is_out_of_device_memory() && table.rows > 1 => {
                let half = table.rows / 2;
                let mut rows = self.rows(device, plan, &table.slice(0, half), schema)?;
                let rest = table.slice(half, table.rows - half);
                rows.extend(self.rows(device, plan, &rest, schema)?);
                return Ok(rows);
            }
            parted => parted?,
        };
        let (mut rows, mut end) = (vec![], 0);
        for batch in parted.to_batches(DOWNLOAD_ROWS)? {
            let (batch, begin) = (fitted(batch, schema)?, end);
            end += batch.num_rows();
            for (part, bounds) in begins.windows(2).enumerate() {
                let (from, to) = (bounds[0].max(begin), bounds[1].min(end));
                if from < to {
                    rows.push((part, batch.slice(from - begin, to - from)));
                }
            }
        }
        Ok(rows)
    }
}

/// A stage whose tasks part their rows among the tasks of the next one.
#[derive(Debug, Clone)]
pub(crate) struct PartedTasks {
    stage: Arc<dyn ExecutionPlan>,
    by: Arc<RowsForTasks>,
    partitioning: Partitioning,
}

impl PartedTasks {
    /// `None` of what is no stage with a device, and of rows that the device does not part as
    /// DataFusion does.
    pub(crate) fn of(
        stage: &Arc<dyn ExecutionPlan>,
        partitioning: &Partitioning,
    ) -> Option<PartedTasks> {
        stage.downcast_ref::<StageExec>()?.context.as_ref()?.device.as_ref()?;
        let Partitioning::Hash(keys, tasks) = partitioning else { return None };
        let keys = keys.iter().map(|key| Some(key.downcast_ref::<Column>()?.index()));
        let (keys, tasks) = (keys.collect::<Option<_>>()?, u32::try_from(*tasks).ok()?);
        let by = Arc::new(RowsForTasks(TaskParts::new(keys, tasks, stage.schema())?));
        Some(PartedTasks { stage: stage.clone(), by, partitioning: partitioning.clone() })
    }

    /// The rows of a task, each batch with the number of the task that it is for; those of one
    /// task lie together.
    ///
    /// # Errors
    /// Of the run.
    pub(crate) async fn rows(
        &self,
        number: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<Vec<ForTask>> {
        let stage = self.stage.downcast_ref::<StageExec>();
        let stage = stage.ok_or_else(|| Error::internal("what is parted is no stage"))?;
        let (metrics, task) = (TaskMetrics::new(stage, number), stage.task(number, context)?);
        let mut rows = match metrics.of(task.run(Some(self.by.clone()))).await? {
            TaskRows::Parted(rows) => rows,
            TaskRows::Divided(_) => {
                return Err(Error::internal("rows of parts were not parted").into());
            }
            TaskRows::Batches(batches) => {
                let batches = batches.into_iter().map(|of| fitted(of, &stage.fragment.schema));
                parted_on_host(&self.partitioning, batches)?
            }
        };
        metrics.rows.record_output(rows.iter().map(|(_, batch)| batch.num_rows()).sum());
        rows.sort_by_key(|(task, _)| *task);
        Ok(rows)
    }
}

/// Rows that the CPU engine computed.
fn parted_on_host(
    partitioning: &Partitioning,
    batches: impl Iterator<Item = PlanResult<RecordBatch>>,
) -> PlanResult<Vec<ForTask>> {
    let Partitioning::Hash(keys, tasks) = partitioning else {
        return Err(Error::internal("rows are parted by no hash").into());
    };
    let mut parts = BatchPartitioner::new_hash_partitioner(keys.clone(), *tasks, Time::new())?;
    let mut rows = vec![];
    for batch in batches {
        parts.partition(batch?, |task, batch| {
            rows.push((task, batch));
            Ok(())
        })?;
    }
    Ok(rows)
}
