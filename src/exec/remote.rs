//! Exchanges between tasks of different processes.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as PlanResult;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::lit;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, Partitioning, replace_children_if_necessary,
};

use super::stage::stage_parts;
use crate::plan::InputRole;

/// Exchanges that stages need where their tasks are processes of their own, as Ballista's are.
///
/// ```text
///   DeviceStageExec: union of a part and of rows that the first task gets
///     DataSourceExec                 partition n for task n
///     RepartitionExec: one partition   <-- added: task 0 finds rows there, the others none
///       DeviceStageExec
/// ```
///
/// In one process a task knows its number, and what all tasks read whole is computed once.
/// Elsewhere each task runs a copy of its stage: it would read the first task's rows again, and
/// compute anew what all read.
///
/// A rule for the end of a session's physical optimizer rules, as DataFusion's own would take the
/// exchanges away:
///
/// ```
/// use std::sync::Arc;
/// use datafusion::execution::SessionStateBuilder;
/// use warpframe::plugin::{Plugin, RemoteExchanges, WithWarpframe};
/// use warpframe::{DeviceChoice, Session};
///
/// let plugin = Plugin::new(Session::builder().device(DeviceChoice::Sim))?.with_stages(true);
/// let state = SessionStateBuilder::new_with_default_features()
///     .with_plugin(&plugin)
///     .with_physical_optimizer_rule(Arc::new(RemoteExchanges))
///     .build();
/// # let _ = state;
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct RemoteExchanges;

impl PhysicalOptimizerRule for RemoteExchanges {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let exchanged = plan.transform_up(|node| {
            let Some(parts) = stage_parts(node.as_ref()) else {
                return Ok(Transformed::no(node));
            };
            let inputs = node.children().into_iter().zip(&parts.inputs);
            let inputs = inputs.map(|(input, (role, _))| with_exchange(input, role));
            let inputs = inputs.collect::<PlanResult<Vec<_>>>()?;
            Ok(Transformed::yes(replace_children_if_necessary(node, inputs)?))
        })?;
        Ok(exchanged.data)
    }

    fn name(&self) -> &str {
        "remote_exchanges"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn with_exchange(
    input: &Arc<dyn ExecutionPlan>,
    role: &InputRole,
) -> PlanResult<Arc<dyn ExecutionPlan>> {
    let is_one = input.output_partitioning().partition_count() == 1;
    Ok(match role {
        InputRole::First => {
            // Of all exchanges, schedulers cut at those by a hash without a trace of an operator,
            // whose other partitions tasks would look for.
            let nothing: Arc<dyn PhysicalExpr> = lit(0_i32);
            let one = Partitioning::Hash(vec![nothing], 1);
            Arc::new(RepartitionExec::try_new(input.clone(), one)?)
        }
        InputRole::Whole if is_one && !is_exchange(input.as_ref()) && moves_rows(input) => {
            Arc::new(CoalescePartitionsExec::new(input.clone()))
        }
        _ => input.clone(),
    })
}

/// Whether rows pass an exchange on their way here. What only reads a table is read again sooner.
fn moves_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.children().into_iter().any(|child| is_exchange(child.as_ref()) || moves_rows(child))
}

fn is_exchange(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortPreservingMergeExec>()
}
