//! Whether a plan has such an operator.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use crate::interrupt;

/// Whether an operator of the plan, or of a subquery, is such a one. To walk a plan takes a
/// fraction of the time that it takes to rebuild it.
pub(crate) fn any_node(
    plan: &LogicalPlan,
    is_such: impl Fn(&LogicalPlan) -> Result<bool>,
) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        interrupt::check()?;
        found = is_such(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether an expression of the operator holds a plan.
pub(crate) fn holds_subquery(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_subqueries(|_| {
        found = true;
        Ok(TreeNodeRecursion::Stop)
    })?;
    Ok(found)
}
