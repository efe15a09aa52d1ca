//! Runs plans on a device.

use datafusion::arrow::array::RecordBatch;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;

use crate::device::Device;
use crate::error::{Error, Result};

/// What executes the plans of a session with a device.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) device: Device,
    pub(crate) strict: bool,
}

/// Where a result lies.
pub(crate) enum Outcome {
    Device(crate::column::Table),
    Host(Vec<RecordBatch>),
}

impl Engine {
    pub(crate) fn new(device: Device, strict: bool) -> Self {
        Engine { device, strict }
    }
}

pub(crate) async fn execute(state: &SessionState, engine: &Engine, plan: LogicalPlan) -> Result<Outcome> {
    let _ = (&engine.device, Outcome::Device);
    if engine.strict {
        return Err(Error::unsupported(plan.display().to_string(), "the device executor is not there"));
    }
    let physical = state.query_planner().create_physical_plan(&plan, state).await?;
    Ok(Outcome::Host(datafusion::physical_plan::collect(physical, state.task_ctx()).await?))
}

pub(crate) fn explain(_state: &SessionState, _engine: &Engine, plan: &LogicalPlan) -> Result<String> {
    Ok(format!("cpu (the device executor is not there)\n{}", plan.display_indent()))
}
