//! Volatile functions in aggregations, sorts and windows. Kernels of these operators may compute an
//! expression twice and rely on it that both are the same, so such a call becomes a column of a
//! projection below the operator.
//!
//! ```text
//!   Sort: random()      Projection: x
//!     Scan: x             Sort: __volatile_0
//!                           Projection: x, random() AS __volatile_0
//!                             Scan: x
//! ```
//!
//! A call in a lambda is made for each element, so that the function that takes the lambda becomes
//! the column.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::col;

use super::any_node;
use crate::plan::{is_volatile, is_volatile_call};

#[derive(Debug)]
pub(super) struct VolatileBelow;

impl AnalyzerRule for VolatileBelow {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, |node| Ok(concerns(node)))? {
            return Ok(plan);
        }
        let mut calls = 0;
        plan.transform_up_with_subqueries(|node| match concerns(&node) {
            true => Ok(Transformed::yes(computed_below(node, &mut calls)?)),
            false => Ok(Transformed::no(node)),
        })
        .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "volatile_functions_below"
    }
}

fn concerns(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Sort(_) | LogicalPlan::Window(_))
        && node.expressions().iter().any(is_volatile)
}

/// Whether the expression becomes a column of its own: a call, or a function whose lambda makes
/// one, which sees parameters that there are nowhere else.
fn is_moved(expr: &Expr) -> bool {
    match expr {
        Expr::HigherOrderFunction(call) => {
            call.args.iter().any(|arg| matches!(arg, Expr::Lambda(_)) && is_volatile(arg))
        }
        other => is_volatile_call(other),
    }
}

/// The operator over a projection that makes the calls. `calls` counts those of the plan.
fn computed_below(node: LogicalPlan, calls: &mut usize) -> Result<LogicalPlan> {
    let input = node.inputs()[0].clone();
    let mut below: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).collect();
    let names = NamePreserver::new(&node);
    let has_names = !matches!(node, LogicalPlan::Sort(_));
    let mut exprs = vec![];
    for expr in node.expressions() {
        let name = names.save(&expr);
        let moved = expr.transform_down(|expr| match is_moved(&expr) {
            true => {
                let column = format!("__volatile_{calls}");
                *calls += 1;
                below.push(expr.alias(&column));
                Ok(Transformed::new(col(column), true, TreeNodeRecursion::Jump))
            }
            false => Ok(Transformed::no(expr)),
        })?;
        exprs.push(if has_names { name.restore(moved.data) } else { moved.data });
    }
    let input = LogicalPlan::Projection(Projection::try_new(below, Arc::new(input))?);
    let columns = node.schema().columns().into_iter().map(Expr::Column).collect();
    let is_aggregate = matches!(node, LogicalPlan::Aggregate(_));
    let node = node.with_new_exprs(exprs, vec![input])?;
    match is_aggregate {
        true => Ok(node),
        // They have the columns of their input.
        false => Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(node))?)),
    }
}
