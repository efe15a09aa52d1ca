//! ORDER BY of an aggregate without keys that come again, which decide nothing.
//!
//! ```text
//!   first(y ORDER BY y, y DESC)     first(y ORDER BY y)
//! ```
//!
//! DataFusion's `first_value` and `last_value` (55.2) keep a value of each key that is written, but
//! an order without those that come again, and panic where the numbers differ.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr};
use datafusion::optimizer::AnalyzerRule;

use crate::plan::any_node;

/// Runs behind the coercion of types.
#[derive(Debug)]
pub(crate) struct RepeatedKeys;

impl AnalyzerRule for RepeatedKeys {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, |node| Ok(is_concerned(node)))? {
            return Ok(plan);
        }
        let all = plan.transform_up_with_subqueries(|node| {
            if !is_concerned(&node) {
                return Ok(Transformed::no(node));
            }
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let once = expr.transform_up(|expr| Ok(with_keys_once(expr)))?;
                Ok(once.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(all.data)
    }

    fn name(&self) -> &str {
        "repeated_keys"
    }
}

fn is_concerned(node: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = node else { return false };
    let repeats = |node: &Expr| match node {
        Expr::AggregateFunction(call) => {
            (1..call.params.order_by.len()).any(|at| comes_again(&call.params.order_by, at))
        }
        _ => false,
    };
    // Nothing is an error here.
    let any = |expr: &Expr| expr.exists(|node| Ok(repeats(node))).unwrap_or(false);
    aggregate.aggr_expr.iter().any(any)
}

/// Whether a key is also one before it.
fn comes_again(keys: &[SortExpr], at: usize) -> bool {
    keys[..at].iter().any(|key| key.expr == keys[at].expr)
}

fn with_keys_once(expr: Expr) -> Transformed<Expr> {
    let Expr::AggregateFunction(mut call) = expr else { return Transformed::no(expr) };
    let keys = std::mem::take(&mut call.params.order_by);
    let first = (0..keys.len()).filter(|at| !comes_again(&keys, *at));
    call.params.order_by = first.map(|at| keys[at].clone()).collect();
    let changed = call.params.order_by.len() < keys.len();
    Transformed::new_transformed(Expr::AggregateFunction(call), changed)
}
