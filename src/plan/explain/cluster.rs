//! What EXPLAIN says of the stages of a cluster, and of what is between them.

use std::sync::Arc;

use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};

use super::{ExplainedCpu, ExplainedPart};

/// The operators of a plan that a cluster runs.
pub(super) fn operators(root: &Arc<dyn ExecutionPlan>) -> ExplainedPart {
    below(root, 1)
}

/// An operator, whose rows an operator of so many tasks takes.
fn below(plan: &Arc<dyn ExecutionPlan>, readers: usize) -> ExplainedPart {
    let tasks = plan.output_partitioning().partition_count();
    let inputs = plan.children().into_iter().map(|input| below(input, tasks)).collect();
    ExplainedPart::Cpu(ExplainedCpu {
        place: "cluster",
        text: displayable(plan.as_ref()).one_line().to_string().trim_end().into(),
        why: moved(plan.as_ref(), readers),
        inputs,
    })
}

/// How rows move between stages; `None` of an operator that moves none.
fn moved(plan: &dyn ExecutionPlan, readers: usize) -> Option<String> {
    let tasks = match plan.output_partitioning().partition_count() {
        1 => "one task".into(),
        tasks => format!("{tasks} tasks"),
    };
    if plan.is::<RepartitionExec>() {
        return Some(format!("exchange: rows of equal keys go to one of {tasks}"));
    }
    if plan.is::<CoalescePartitionsExec>() {
        return Some(match readers {
            1 => "exchange: all rows go to one task".into(),
            readers => format!("broadcast: all rows go to each of {readers} tasks"),
        });
    }
    if plan.is::<SortPreservingMergeExec>() {
        return Some("exchange: sorted rows go to one task".into());
    }
    (plan.name() == "DeviceStageExec").then_some(tasks)
}
