//! DataFusion's pushdown of filters within physical plans, kept from taking one column for another.
//!
//! It moves a filter by the names of its columns, which do not tell `t.s` from `u.s`: above a
//! projection or a join that yields both, `starts_with(u.s, t.s)` went to `u` as
//! `starts_with(s, s)` (DataFusion 55.2, `FilterRemapper`), and kept rows that it should not.
//! Logical plans tell them apart, and bring most filters to the scans before. So the rule runs on
//! those subtrees alone in which no operator yields two columns of one name.
//!
//! It takes conditions apart, and puts those that stay together one within another, so that
//! thousands take more stack to be evaluated than there is. From those, which come as trees
//! (`host/expressions.rs`), it is kept, too.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_plan::execution_plan::{ExecutionPlan, replace_children_if_necessary};
use datafusion::physical_plan::filter::FilterExec;

use super::PhysicalRule;
use crate::plan::MOST_NESTED;

/// The rule, on the subtrees that it does not mistake.
pub(super) fn rewrite(
    rule: &PhysicalRule,
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    if names_are_clear(&plan) && filters_are_short(&plan) {
        return rule.optimize(plan, config);
    }
    let children = plan.children().into_iter().map(|child| rewrite(rule, child.clone(), config));
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(plan, children)
}

/// Whether neither the operator nor one below it yields two columns of one name.
fn names_are_clear(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut seen = HashSet::new();
    plan.schema().fields().iter().all(|field| seen.insert(field.name()))
        && plan.children().into_iter().all(names_are_clear)
}

/// Whether no filter has more conditions than may be put together one within another.
fn filters_are_short(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_short = |filter: &FilterExec| split_conjunction(filter.predicate()).len() <= MOST_NESTED;
    plan.downcast_ref::<FilterExec>().is_none_or(is_short)
        && plan.children().into_iter().all(filters_are_short)
}
