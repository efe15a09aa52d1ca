//! Scalar subqueries that a join may stand for.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};

/// Whether some uncorrelated scalar subquery might yield several rows, which is an error when it runs. A join would yield
/// several rows instead, so such a query keeps its subqueries, for DataFusion to run and count. (Of correlated ones,
/// DataFusion's planner only admits those that yield one row by their form.)
pub(crate) fn may_yield_several_rows(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let visited = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarSubquery(Subquery { subquery, outer_ref_columns, .. }) = expr
                    && outer_ref_columns.is_empty()
                    && subquery.max_rows().is_none_or(|rows| rows > 1)
                {
                    found = true;
                }
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })
        })
    });
    found || visited.is_err()
}
