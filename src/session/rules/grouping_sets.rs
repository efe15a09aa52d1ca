//! Grouping sets over rows of which DataFusion knows that columns are constant, equal or in order.
//!
//! It takes that for known above them, too (55.2, `AggregateExec`), though they bring NULL into
//! columns that a set does not have: of `WHERE y = 2024 GROUP BY CUBE (y, m) ORDER BY y, m` it did
//! not sort by `y`, and groups could come out before all their rows were seen
//! (<https://github.com/apache/datafusion/issues/24421>). Below such aggregates stands an operator
//! that does nothing and of whose rows nothing is known. It stays in the plan, as operators ask for
//! what is known each time that they are made.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use super::PhysicalRule;

/// The rule that puts such an operator below each aggregate with several grouping sets.
pub(super) fn rule() -> PhysicalRule {
    Arc::new(ForgetBelowSets)
}

#[derive(Debug)]
struct ForgetBelowSets;

impl PhysicalOptimizerRule for ForgetBelowSets {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let forgetting = plan.transform_up(|plan| {
            let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else {
                return Ok(Transformed::no(plan));
            };
            if aggregate.group_expr().is_single() {
                return Ok(Transformed::no(plan));
            }
            let below: Arc<dyn ExecutionPlan> = Arc::new(Unknown::above(aggregate.input().clone()));
            Ok(Transformed::yes(replace_children_if_necessary(plan, vec![below])?))
        });
        forgetting.data()
    }

    fn name(&self) -> &str {
        "forget_below_grouping_sets"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Rows as they come, of which nothing is known.
#[derive(Debug)]
struct Unknown {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl Unknown {
    fn above(input: Arc<dyn ExecutionPlan>) -> Unknown {
        let known = input.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            known.partitioning.clone(),
            known.emission_type,
            known.boundedness,
        );
        Unknown { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for Unknown {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "UnknownOrderExec")
    }
}

impl ExecutionPlan for Unknown {
    fn name(&self) -> &str {
        "UnknownOrderExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Unknown::above(input))),
            Err(_) => datafusion::common::internal_err!("this operator has one input"),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(filters, &self.children())
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        below: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(below))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}
