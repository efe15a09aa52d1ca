//! Plans of the CPU engine that stop with their statement.
//!
//! DataFusion's operators give way where their sources do. A join makes any number of rows of one
//! batch of its source, and operators above take all of them without giving way: so what goes into
//! a join and what comes out of it is looked through here, and ends where the statement is to stop.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as PlanResult;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use crate::error::{Error, Result};
use warpframe_device::interrupt::{self, Running};

/// The plan, as it runs in the statement that this thread is in.
pub(super) fn of_statement(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    match interrupt::current() {
        Some(statement) => stopping(plan, &statement),
        None => Ok(plan),
    }
}

/// What the CPU engine may use.
pub(super) struct HostLimits {
    memory: Option<u64>,
    files: u64,
}

impl HostLimits {
    pub(super) fn of(state: &SessionState) -> HostLimits {
        let runtime = state.runtime_env();
        let memory = match runtime.memory_pool.memory_limit() {
            MemoryLimit::Finite(bytes) => Some(bytes as u64),
            _ => None,
        };
        HostLimits { memory, files: runtime.disk_manager.max_temp_directory_size() }
    }

    /// Adds the limits to an error about host memory; other errors stay as they are.
    pub(super) fn named(&self, error: Error) -> Error {
        error.with_host_limits(self.memory, self.files)
    }
}

fn stopping(plan: Arc<dyn ExecutionPlan>, statement: &Running) -> Result<Arc<dyn ExecutionPlan>> {
    let wrapped = plan.transform_up(|node| {
        if node.children().len() < 2 || !node.name().contains("Join") {
            return Ok(Transformed::no(node));
        }
        let stop = |input: Arc<dyn ExecutionPlan>| -> Arc<dyn ExecutionPlan> {
            Arc::new(Stop { input, statement: statement.clone() })
        };
        let inputs = node.children().into_iter().cloned().map(stop).collect();
        Ok(Transformed::yes(stop(replace_children_if_necessary(node, inputs)?)))
    })?;
    Ok(wrapped.data)
}

/// Passes on what its input yields until the statement is to stop.
#[derive(Debug)]
struct Stop {
    input: Arc<dyn ExecutionPlan>,
    statement: Running,
}

impl DisplayAs for Stop {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Stop")
    }
}

impl ExecutionPlan for Stop {
    fn name(&self) -> &str {
        "Stop"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| self.input.clone());
        Ok(Arc::new(Stop { input, statement: self.statement.clone() }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let statement = self.statement.clone();
        let batches = self.input.execute(partition, context)?;
        let batches = batches.map(move |batch| {
            statement.check().map_err(Error::from)?;
            batch
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<TreeNodeRecursion>,
    ) -> PlanResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}
