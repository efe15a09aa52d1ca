//! Plans of the CPU engine that stop with their statement.
//!
//! DataFusion's operators give way where their sources do. A join makes any number of rows of one
//! batch of its source, and operators above take all of them without giving way: so what goes into
//! a join and what comes out of it is looked through here, and ends where the statement is to stop.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as PlanResult;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{self, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use crate::error::Result;
use crate::interrupt::{self, Statement};

/// All rows of a plan.
///
/// # Errors
/// Those of the plan; `Interrupted`.
pub(crate) async fn collect(plan: Arc<dyn ExecutionPlan>, state: &SessionState) -> Result<Vec<RecordBatch>> {
    let plan = match interrupt::current() {
        Some(statement) => stopping(plan, &statement)?,
        None => plan,
    };
    Ok(physical_plan::collect(plan, state.task_ctx()).await?)
}

fn stopping(plan: Arc<dyn ExecutionPlan>, statement: &Statement) -> Result<Arc<dyn ExecutionPlan>> {
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
    statement: Statement,
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

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> PlanResult<SendableRecordBatchStream> {
        let statement = self.statement.clone();
        let batches = self.input.execute(partition, context)?;
        let batches = batches.map(move |batch| {
            statement.check()?;
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
