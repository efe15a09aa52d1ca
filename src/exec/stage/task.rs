//! What a task of a stage does: it brings its inputs to the device and runs the fragment there, or
//! has the CPU engine run it.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result as PlanResult;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use tokio::sync::OnceCell;

use super::parted::{RowsForTasks, TaskRows};
use super::{Fragment, StageContext, TasksOfStage};
use crate::column::Table;
use crate::cpu;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::stage_inputs::{Partitions, TaskInput};
use crate::exec::{Engine, Outcome, run_whole_or_divided};
use crate::io::DOWNLOAD_ROWS;
use crate::plan::{InputRole, PlanTable, bind};
use warpframe_device::seeded_secret;

/// One task of a stage.
pub(super) struct StageTask {
    pub(super) number: usize,
    pub(super) fragment: Arc<Fragment>,
    pub(super) inputs: Vec<Arc<dyn ExecutionPlan>>,
    pub(super) shared: Arc<[OnceCell<TaskInput>]>,
    pub(super) context: StageContext,
    /// Of DataFusion's operators.
    pub(super) host: Arc<TaskContext>,
}

impl StageTask {
    /// The task's rows, and whether the CPU engine computed them. They are parted where that is
    /// asked for and the device has them all at once.
    pub(super) async fn run(self, by: Option<Arc<RowsForTasks>>) -> PlanResult<(TaskRows, bool)> {
        let mut inputs = vec![];
        for number in 0..self.inputs.len() {
            inputs.push(self.input(number).await?);
        }
        let Some(device) = &self.context.device else {
            return Ok((TaskRows::Batches(self.run_on_cpu(&inputs).await?), true));
        };
        let (engine, state) = (device.engine.clone(), self.context.state.clone());
        let (plan, schema) = (self.fragment.plan.clone(), self.fragment.schema.clone());
        let tables: Vec<PlanTable> = inputs.iter().map(|input| input.table.clone()).collect();
        let seed = seeded_secret(self.fragment.seed, self.in_stage() as u64);
        let ran = device.on_own_thread(seed, async move {
            match run_whole_or_divided(&state, &engine, &plan, &tables).await? {
                Outcome::Device(table) => match by {
                    Some(by) => {
                        Ok(TaskRows::Parted(by.rows(&engine.device, &plan, &table, &schema)?))
                    }
                    None => Ok(TaskRows::Batches(table.to_batches(DOWNLOAD_ROWS)?)),
                },
                Outcome::Divided(rows) => match by {
                    Some(by) => {
                        let some = |table: &Table| by.rows(&engine.device, &plan, table, &schema);
                        Ok(TaskRows::Parted(rows.each(some).collect::<Result<_>>()?))
                    }
                    None => Ok(TaskRows::Divided(rows.on_host()?)),
                },
                Outcome::Host(batches) => Ok(TaskRows::Batches(batches)),
            }
        });
        match ran.await {
            Ok(rows) => Ok((rows, false)),
            Err(error) if self.gives_way(&device.engine, &error) => {
                device.engine.give_up(&error);
                Ok((TaskRows::Batches(self.run_on_cpu(&inputs).await?), true))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The task's number among all of its stage.
    fn in_stage(&self) -> usize {
        let known = self.host.session_config().get_extension::<TasksOfStage>();
        known.and_then(|all| all.0.get(self.number).copied()).unwrap_or(self.number)
    }

    async fn input(&self, number: usize) -> PlanResult<TaskInput> {
        let (of, input) = (&self.fragment.inputs[number], &self.inputs[number]);
        let read = |partitions| {
            let StageContext { device, state } = &self.context;
            let engine = device.as_ref().map(|device| &device.engine);
            TaskInput::of(engine, state, input, &of.columns, partitions, &self.host)
        };
        match (&of.role, self.number) {
            (InputRole::Part | InputRole::ByKeys(_) | InputRole::ByCuts(_), number) => {
                read(Partitions::One(number)).await
            }
            (InputRole::First, 1..) => read(Partitions::None).await,
            (InputRole::First | InputRole::Whole | InputRole::InOrder(_), _) => {
                let whole = self.shared[number].get_or_try_init(|| read(Partitions::All)).await?;
                Ok(whole.clone())
            }
        }
    }

    /// The fragment by the CPU engine, over the same rows.
    async fn run_on_cpu(&self, inputs: &[TaskInput]) -> PlanResult<Vec<RecordBatch>> {
        let (mut tables, rows) = (vec![], self.host.session_config().batch_size());
        for (input, of) in inputs.iter().zip(&self.fragment.inputs) {
            tables.push(input.on_cpu(&of.columns, rows)?);
        }
        let logical = bind(self.fragment.plan.logical(), &tables)?;
        let logical = match self.fragment.is_stock {
            true => logical,
            false => cpu::plan(&logical)?,
        };
        let planner = DefaultPhysicalPlanner::default();
        let plan = planner.create_physical_plan(&logical, &*self.context.state).await?;
        collect(plan, self.host.clone()).await
    }

    /// Whether the CPU engine may do what failed so on the device.
    fn gives_way(&self, engine: &Engine, error: &Error) -> bool {
        let fails = matches!(
            error.kind(),
            ErrorKind::Arithmetic { .. } | ErrorKind::Parse { path: None, .. }
        );
        engine.gives_way(error) || self.fragment.is_stock && !engine.strict && fails
    }
}
