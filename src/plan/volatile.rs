//! Functions that may have another value each time they are called.

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::Expr;

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
