//! Properties of rows that DataFusion (55.2) keeps above operators that end them: which columns are
//! constant, equal or in order. By these it leaves out sorts and keys of sorts, and ends groups
//! early.
//!
//! - Above grouping sets it takes this for known, too (`AggregateExec`), though they bring NULL
//!   into columns that a set does not have: of `WHERE y = 2024 GROUP BY CUBE (y, m) ORDER BY y, m`
//!   it did not sort by `y` (<https://github.com/apache/datafusion/issues/24421>).
//! - Above outer joins a column of the other side stays constant, though it is NULL where a row
//!   finds no other: `LEFT JOIN (SELECT d, 'a' AS c …) w … ORDER BY w.c, t.b` did not sort by `c`
//!   (`EquivalenceGroup::join`).
//! - Above a join of two sides in order its rows are taken to be in both orders, though the rows
//!   that a row finds come again for the next one of its key
//!   (<https://github.com/apache/datafusion/issues/25052>).
//!
//! Below such operators stands one that does nothing and of whose rows nothing is known. It stays
//! in the plan, as operators ask for what is known each time that they are made.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Statistics};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};

use super::PhysicalRule;

/// The rule that puts such an operator below those that need it.
pub(super) fn rule() -> PhysicalRule {
    Arc::new(ForgetBelow)
}

#[derive(Debug)]
struct ForgetBelow;

impl PhysicalOptimizerRule for ForgetBelow {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let forgetting = plan.transform_up(|plan| {
            let forgets = of_inputs(plan.as_ref());
            if !forgets.contains(&true) {
                return Ok(Transformed::no(plan));
            }
            let inputs = plan.children().into_iter().cloned().zip(forgets);
            let inputs = inputs.map(|(input, forgets)| match forgets {
                true => Arc::new(Unknown::above(input)) as Arc<dyn ExecutionPlan>,
                false => input,
            });
            let inputs = inputs.collect();
            Ok(Transformed::yes(replace_children_if_necessary(plan, inputs)?))
        });
        forgetting.data()
    }

    fn name(&self) -> &str {
        "forget_below"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// For each input of an operator, whether properties of it are kept that do not hold.
fn of_inputs(plan: &dyn ExecutionPlan) -> Vec<bool> {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return vec![!aggregate.group_expr().is_single()];
    }
    let hash = plan.downcast_ref::<HashJoinExec>().map(|join| *join.join_type());
    let nested = plan.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type());
    let merge = plan.downcast_ref::<SortMergeJoinExec>().map(|join| join.join_type());
    // Whether rows of the sides may be missing.
    let missing = match hash.or(nested).or(merge) {
        Some(JoinType::Inner) => [false, false],
        Some(JoinType::Left) => [false, true],
        Some(JoinType::Right) => [true, false],
        Some(JoinType::Full) => [true, true],
        _ => return vec![],
    };
    let known = plan.children().into_iter().map(|side| side.equivalence_properties());
    let in_order = known.clone().all(|known| known.output_ordering().is_some());
    let sides = known.zip(missing);
    sides.map(|(known, missing)| in_order || missing && !known.constants().is_empty()).collect()
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

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(inputs[0].clone())
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
