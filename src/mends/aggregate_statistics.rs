//! DataFusion's aggregates from statistics, kept from another aggregate's.
//!
//! The rule (55.2, `AggregateStatistics`) looks below the final part of an aggregate for its partial
//! one. Where that has a FILTER, it goes on, through conditions, too, to the aggregate of a query
//! within, and yields what this one counts:
//!
//! ```text
//!   SELECT sum(n) FILTER (WHERE n > 100) FROM (SELECT count(*) AS n FROM t)
//! ```
//!
//! was `count(*)`, of one name and one column, whatever else was asked. It does not run on plans in
//! which an aggregate has a filter.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use super::PhysicalRule;

/// The rule, on plans without such aggregates.
pub(super) fn rewrite(
    rule: &PhysicalRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    match has_filter(&plan) {
        true => Ok(plan),
        false => rule.optimize(plan, config),
    }
}

fn has_filter(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let filters = |aggregate: &AggregateExec| aggregate.filter_expr().iter().any(Option::is_some);
    plan.downcast_ref::<AggregateExec>().is_some_and(filters)
        || plan.children().into_iter().any(has_filter)
}
