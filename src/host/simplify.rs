//! DataFusion's folding of constants, which computes as its CPU engine does: `0.0 / 0.0 = 'NaN'` was false.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, Optimizer, OptimizerConfig, OptimizerRule};

use super::expressions::{concerns, folding_expr, plain_expr};
use super::plans::schema_beneath;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// DataFusion's rules in their order, of which the one that folds constants computes as plans for the CPU engine do.
pub(crate) fn folding() -> Vec<Rule> {
    let guarded = |rule: Rule| if rule.name() == FOLDING { Arc::new(Folding(rule)) as Rule } else { rule };
    Optimizer::new().rules.into_iter().map(guarded).collect()
}

const FOLDING: &str = "simplify_expressions";

/// The rule, around which expressions are what the CPU engine is given. What it does not fold is as before.
#[derive(Debug)]
struct Folding(Rule);

impl OptimizerRule for Folding {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut any = false;
        plan.apply_expressions(|expr| {
            any |= concerns(expr);
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !any {
            return self.0.rewrite(plan, config);
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
        let folded = self.0.rewrite(given, config)?;
        // The rule may put a projection above an aggregate.
        let plain = |plan: LogicalPlan| {
            plan.map_expressions(|expr| match expr {
                Expr::GroupingSet(_) => expr.map_children(|expr| plain_expr(expr)?.map_data(|expr| Ok(named(expr)))),
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
        let guarded = folding().iter().filter(|rule| format!("{rule:?}").starts_with("Folding")).count();
        assert_eq!(guarded, 1);
    }
}
