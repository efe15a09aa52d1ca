//! DataFusion's rules (55.2) that move fields of structs towards the tables, so that less is
//! carried along. They leave a plan as it is
//!
//! - with a volatile function, which they write out once for each field that it becomes:
//!   `{'a': r, 'b': r}` had two numbers of one `random()`;
//! - with a union, below which they lose the casts that made its inputs' types one;
//! - with a mark join, whose mark they call by another table: `a IN (SELECT t.o['f'] FROM t)`;
//! - where they fail, as of a column that a query below has under two names:
//!   `SELECT st.x, b FROM (SELECT {'x': a} AS st, b FROM (SELECT i AS a, i AS b FROM t))`, or yield
//!   other columns.

use datafusion::common::JoinType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExpressionPlacement, LogicalPlan, Volatility};
use datafusion::optimizer::OptimizerConfig;

use super::LogicalRule;
use crate::plan::any_node;
use crate::plan::is_sealed;

/// Whether an expression of the operator wants to be computed where its columns are read.
pub(crate) fn has_leaf(node: &LogicalPlan) -> Result<bool> {
    some_part(node, |part| part.placement() == ExpressionPlacement::MoveTowardsLeafNodes)
}

/// The rules, which move no more than they can.
pub(super) fn rewrite(
    rule: &LogicalRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    // The rule of single operators looks at projections, and at what moved before.
    let concerned = match rule.apply_order() {
        Some(_) => matches!(plan, LogicalPlan::Projection(_)) && has_leaf(&plan)?,
        None => any_node(&plan, has_leaf)?,
    };
    if !concerned || any_node(&plan, hinders)? {
        return Ok(Transformed::no(plan));
    }
    let as_it_is = plan.clone();
    match rule.rewrite(plan, config) {
        Ok(moved) if has_columns_of(&moved.data, &as_it_is) => Ok(moved),
        _ => Ok(Transformed::no(as_it_is)),
    }
}

/// Whether a plan yields the columns of another.
fn has_columns_of(plan: &LogicalPlan, other: &LogicalPlan) -> bool {
    plan.schema().logically_equivalent_names_and_types(other.schema())
}

/// Whether the operator is a union or a mark join, or calls a volatile function, be it one of the
/// CPU engine.
fn hinders(node: &LogicalPlan) -> Result<bool> {
    match node {
        LogicalPlan::Union(_) => return Ok(true),
        LogicalPlan::Join(join) if join.join_type == JoinType::LeftMark => return Ok(true),
        _ => {}
    }
    some_part(node, |part| match part {
        Expr::ScalarFunction(call) => {
            call.func.signature().volatility == Volatility::Volatile && !is_sealed(part)
        }
        _ => false,
    })
}

fn some_part(node: &LogicalPlan, is_such: impl Fn(&Expr) -> bool) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found = expr.exists(|part| Ok(is_such(part)))?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
