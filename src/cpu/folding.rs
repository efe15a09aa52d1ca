//! DataFusion's folding of constants, which computes as its CPU engine does: `0.0 / 0.0 = 'NaN'`
//! was false.

use datafusion::arrow::datatypes::Fields;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::OptimizerConfig;

use crate::host::{concerns, folding_expr, is_of_concern, makes_floats, plain_expr};
use crate::mends::{LogicalRule, guarded_by};
use crate::plan::schema_beneath;

/// DataFusion's rules, of which the one that folds constants computes as plans for the CPU engine
/// do.
pub(crate) fn folding(rules: Vec<LogicalRule>) -> Vec<LogicalRule> {
    let guarded = |rule: LogicalRule| match rule.name() {
        FOLDING => guarded_by(rule, rewrite),
        _ => rule,
    };
    rules.into_iter().map(guarded).collect()
}

const FOLDING: &str = "simplify_expressions";

/// Conditions up to which a chain may lean to a side.
const SHORT: usize = 64;

/// The rule, around which expressions are what the CPU engine is given. What it does not fold is as
/// before.
fn rewrite(
    rule: &LogicalRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let (mut folds, mut any, mut floats) = (false, false, false);
    plan.apply_expressions(|expr| {
        folds |= !is_plain(expr);
        any |= concerns(expr);
        floats |= makes_floats(expr) || is_long_chain(expr);
        Ok(TreeNodeRecursion::Continue)
    })?;
    // The rule copies the columns of all inputs before it looks at the expressions.
    if !folds {
        return Ok(Transformed::no(plan));
    }
    if !any || !floats && !reads_floats(&plan) {
        return rule.rewrite(plan, config);
    }
    let schema = schema_beneath(&plan)?;
    let names = NamePreserver::new(&plan);
    let mut give = |expr: Expr| {
        let name = names.save(&expr);
        Ok(Transformed::yes(name.restore(folding_expr(expr, &schema)?)))
    };
    let given = plan.map_expressions(|expr| match expr {
        Expr::GroupingSet(_) => expr.map_children(&mut give),
        other => give(other),
    })?;
    let given = given.data;
    let folded = rule.rewrite(given, config)?;
    // The rule may put a projection above an aggregate.
    let plain = |plan: LogicalPlan| {
        plan.map_expressions(|expr| match expr {
            Expr::GroupingSet(_) => {
                expr.map_children(|expr| plain_expr(expr)?.map_data(|expr| Ok(named(expr))))
            }
            other => plain_expr(other)?.map_data(|expr| Ok(named(expr))),
        })
    };
    let whole = plain(folded.data)?.data;
    let data = match &whole {
        LogicalPlan::Projection(_) => whole.map_children(plain)?.data,
        _ => whole,
    };
    Ok(Transformed::new(data, folded.transformed, folded.tnr))
}

/// Whether nothing of an expression can be folded or simplified.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(_, _) => true,
        Expr::Alias(alias) => is_plain(&alias.expr),
        _ => false,
    }
}

/// Whether many conditions lean to the left, as rules put them together. What is given to the rule
/// is a tree, of which it takes less stack.
fn is_long_chain(mut expr: &Expr) -> bool {
    for _ in 0..SHORT {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, .. }) => {
                expr = left
            }
            _ => return false,
        }
    }
    true
}

/// Whether the operator's expressions look at columns whose values may be floats.
fn reads_floats(node: &LogicalPlan) -> bool {
    let any = |fields: &Fields| fields.iter().any(|field| is_of_concern(field.data_type()));
    match node {
        LogicalPlan::TableScan(scan) => any(scan.source.schema().fields()),
        node => node.inputs().into_iter().any(|input| any(input.schema().fields())),
    }
}

/// The expression without an alias that only says its name.
fn named(expr: Expr) -> Expr {
    match expr {
        Expr::Alias(alias)
            if alias.metadata.is_none()
                && alias.expr.qualified_name() == (alias.relation.clone(), alias.name.clone()) =>
        {
            *alias.expr
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DataFusion may rename its rule; then this has to follow.
    #[test]
    fn the_rule_that_folds_is_guarded() {
        let rules = folding(datafusion::optimizer::Optimizer::new().rules);
        let guarded = rules.iter().filter(|rule| format!("{rule:?}").starts_with("Guarded"));
        assert_eq!(guarded.count(), 1);
    }
}
