//! Functions that may have another value each time they are called, and plans without such.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};

use crate::user_code::UserFunction;

/// Whether the node itself is a call of such a function: of a user's, or of `random()`.
pub(crate) fn is_volatile_call(node: &Expr) -> bool {
    let Expr::ScalarFunction(call) = node else { return false };
    match UserFunction::of(&call.func) {
        Some(function) => function.is_volatile(),
        None => call.name() == "random" && call.args.is_empty(),
    }
}

/// Whether a part of the expression is such a call.
pub(crate) fn is_volatile(expr: &Expr) -> bool {
    // Nothing fails here.
    expr.exists(|node| Ok(is_volatile_call(node))).unwrap_or(false)
}

/// Whether the plan means the same whenever it runs: no function of the time or of chance, nothing
/// that is filled in later.
pub(crate) fn is_repeatable(plan: &LogicalPlan) -> bool {
    let mut repeatable = true;
    let walked = plan.apply_with_subqueries(|node| {
        repeatable &= !matches!(
            node,
            LogicalPlan::Extension(_)
                | LogicalPlan::Statement(_)
                | LogicalPlan::Explain(_)
                | LogicalPlan::Analyze(_)
                | LogicalPlan::Dml(_)
                | LogicalPlan::Ddl(_)
                | LogicalPlan::Copy(_)
                | LogicalPlan::DescribeTable(_)
        );
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                repeatable &= means_the_same(expr);
                Ok(if repeatable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
            })
        })
    });
    repeatable && walked.is_ok()
}

fn means_the_same(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => call.func.signature().volatility == Volatility::Immutable,
        Expr::AggregateFunction(call) => call.func.signature().volatility == Volatility::Immutable,
        Expr::WindowFunction(call) => call.fun.signature().volatility == Volatility::Immutable,
        Expr::HigherOrderFunction(call) => {
            call.func.signature().volatility == Volatility::Immutable
        }
        Expr::ScalarVariable(_, _) | Expr::Placeholder(_) => false,
        _ => true,
    }
}
