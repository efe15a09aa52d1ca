//! Plans of the CPU engine whose answers depend on the order of rows that are not sorted: those
//! with LIMIT, and with window functions of places that no key tells apart.
//!
//! DataFusion lets several partitions run side by side and takes their rows as they come. Such
//! plans run in one partition, and where their input has several these follow one another.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as PlanResult;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use futures::TryStreamExt;

use super::calls::depends_on_order;
use crate::error::Result;

/// The physical plan of an optimized one, and the state to run it in.
pub(super) async fn physical_plan(
    state: &SessionState,
    plan: &LogicalPlan,
) -> Result<(Arc<dyn ExecutionPlan>, SessionState)> {
    let mut state = state.clone();
    let planner = state.query_planner().clone();
    if state.config().target_partitions() == 1
        || !plan.exists(|node| Ok(takes_rows_as_they_come(node)))?
    {
        let physical = planner.create_physical_plan(plan, &state).await?;
        return Ok((physical, state));
    }
    let config = state.config().clone().with_target_partitions(1);
    *state.config_mut() = config;
    let physical = planner.create_physical_plan(plan, &state).await?;
    let ordered = physical.transform_up(|node| {
        if node.name() != "CoalescePartitionsExec" {
            return Ok(Transformed::no(node));
        }
        let input = in_order(node.children()[0].clone());
        Ok(Transformed::yes(match node.fetch() {
            Some(rows) => Arc::new(GlobalLimitExec::new(input, 0, Some(rows))),
            None => input,
        }))
    })?;
    Ok((in_order(ordered.data), state))
}

fn takes_rows_as_they_come(node: &LogicalPlan) -> bool {
    let of_places = |expr: &Expr| match expr {
        Expr::WindowFunction(call) => call.params.order_by.is_empty() && depends_on_order(call),
        _ => false,
    };
    match node {
        LogicalPlan::Limit(_) => true,
        LogicalPlan::Window(window) => window
            .window_expr
            .iter()
            .any(|expr| expr.exists(|node| Ok(of_places(node))).unwrap_or(true)),
        _ => false,
    }
}

fn in_order(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    if input.output_partitioning().partition_count() == 1 {
        return input;
    }
    let properties = PlanProperties::new(
        EquivalenceProperties::new(input.schema()),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    );
    Arc::new(PartitionsInOrder { input, properties: Arc::new(properties) })
}

/// The partitions of its input, one after the other.
#[derive(Debug)]
struct PartitionsInOrder {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl DisplayAs for PartitionsInOrder {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "PartitionsInOrder")
    }
}

impl ExecutionPlan for PartitionsInOrder {
    fn name(&self) -> &str {
        "PartitionsInOrder"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Ok(children.pop().map_or_else(|| self.input.clone(), in_order))
    }

    fn execute(
        &self,
        _partition: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let input = self.input.clone();
        let partitions = 0..input.output_partitioning().partition_count();
        let streams =
            futures::stream::iter(partitions.map(move |at| input.execute(at, context.clone())));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), streams.try_flatten())))
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<TreeNodeRecursion>,
    ) -> PlanResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}
