//! Rows of several partitions in the order of the partitions, where somebody sees their order.
//!
//! DataFusion reads files in partitions and puts those together as they come
//! (`CoalescePartitionsExec`); it deals batches of few partitions out to more (`RepartitionExec`).
//! So the rows of a directory came in another order each time, and LIMIT chose others. Files lie in
//! order in the partitions of a scan: whatever handles row by row keeps that order. Where a query's
//! rows, those of a LIMIT and those of a window function come from such operators, partitions are
//! put one after the other. They are still read at once, but where LIMIT takes the first rows. The
//! order of groups and joins is not promised, and left alone.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::common::spawn_buffered;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties,
};
use futures::StreamExt;

use super::PhysicalRule;

pub(super) fn rule() -> PhysicalRule {
    Arc::new(InOrder)
}

#[derive(Debug)]
struct InOrder;

impl PhysicalOptimizerRule for InOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = ordered(plan, true)?;
        if plan.output_partitioning().partition_count() < 2 {
            return Ok(plan);
        }
        Ok(straight(&plan)?.map_or(plan, |plan| Arc::new(OneByOne::new(plan, None))))
    }

    fn name(&self) -> &str {
        "partitions_in_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan, with partitions in order where that is seen: from above, or by an operator itself.
fn ordered(plan: Arc<dyn ExecutionPlan>, seen: bool) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(coalesce) = plan.downcast_ref::<CoalescePartitionsExec>()
        && (seen || coalesce.fetch().is_some())
        && let Some(input) = straight(coalesce.input())?
    {
        let input = ordered(input, true)?;
        return Ok(Arc::new(OneByOne::new(input, coalesce.fetch())));
    }
    let below = match plan.name() {
        "GlobalLimitExec" | "WindowAggExec" | "BoundedWindowAggExec" => true,
        _ => seen && is_by_rows(&plan),
    };
    let children = plan.children().into_iter().map(|child| ordered(child.clone(), below));
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(plan, children)
}

/// Whether an operator yields for each partition, in order, what it makes of its rows.
fn is_by_rows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    const BY_ROWS: [&str; 10] = [
        "CoalesceBatchesExec",
        "CoalescePartitionsExec",
        "CooperativeExec",
        "FilterExec",
        "GlobalLimitExec",
        "GuardedScan",
        "LocalLimitExec",
        "ProjectionExec",
        "UnionExec",
        "UnnestExec",
    ];
    BY_ROWS.contains(&plan.name())
}

/// The plan without what deals batches out, if its partitions then hold its rows in order.
fn straight(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(repartition) = plan.downcast_ref::<RepartitionExec>() {
        return match repartition.partitioning() {
            Partitioning::RoundRobinBatch(_) => straight(repartition.input()),
            _ => Ok(None),
        };
    }
    let children = plan.children();
    if children.is_empty() || plan.output_partitioning().partition_count() == 1 {
        return Ok(Some(plan.clone()));
    }
    if !is_by_rows(plan) {
        return Ok(None);
    }
    let children = children.into_iter().map(straight).collect::<Result<Option<Vec<_>>>>()?;
    children.map(|children| replace_children_if_necessary(plan.clone(), children)).transpose()
}

/// The rows of all partitions, one partition after the other.
#[derive(Debug)]
struct OneByOne {
    input: Arc<dyn ExecutionPlan>,
    /// How many rows are wanted.
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
}

impl OneByOne {
    fn new(input: Arc<dyn ExecutionPlan>, fetch: Option<usize>) -> OneByOne {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        OneByOne { input, fetch, properties: Arc::new(properties) }
    }
}

impl DisplayAs for OneByOne {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        match self.fetch {
            Some(fetch) => write!(f, "OneByOneExec: fetch={fetch}"),
            None => write!(f, "OneByOneExec"),
        }
    }
}

impl ExecutionPlan for OneByOne {
    fn name(&self) -> &str {
        "OneByOneExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(OneByOne::new(
            children.pop().unwrap_or_else(|| self.input.clone()),
            self.fetch,
        )))
    }

    fn execute(
        &self,
        _partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let partitions = self.input.output_partitioning().partition_count();
        // First rows are in the first partitions: the others only begin. All rows are wanted at
        // once by whoever collects them.
        let ahead = if self.fetch.is_some() { 1 } else { tokio::sync::Semaphore::MAX_PERMITS };
        let read = |partition| {
            let stream = self.input.execute(partition, context.clone())?;
            Ok(if partitions == 1 { stream } else { spawn_buffered(stream, ahead) })
        };
        let streams = (0..partitions).map(read).collect::<Result<Vec<_>>>()?;
        let mut wanted = self.fetch.unwrap_or(usize::MAX);
        let first = futures::stream::iter(streams).flatten().scan(
            (),
            move |(), batch: Result<RecordBatch>| {
                // The batch behind the last row that is wanted is the end.
                std::future::ready((wanted > 0).then(|| {
                    batch.map(|batch| {
                        let batch = batch.slice(0, batch.num_rows().min(wanted));
                        wanted -= batch.num_rows();
                        batch
                    })
                }))
            },
        );
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), first)))
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}
