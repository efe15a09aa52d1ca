//! Names of the keys of grouping sets while types are made to agree.
//!
//! DataFusion's rule (55.2, `TypeCoercion`) gives an operator's expression its old name where a cast
//! changes it. Of keys in ROLLUP, CUBE and GROUPING SETS it takes the whole set for the expression:
//! `GROUP BY ROLLUP (NOT (s LIKE '%b'), a)` was one column of the name `ROLLUP (…)`.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::AnalysisRule;
use crate::plan::any_node;

/// DataFusion's rules, of which the one for types gets keys that bear their names.
pub(super) fn guarded(rules: Vec<AnalysisRule>) -> impl Iterator<Item = AnalysisRule> {
    rules.into_iter().map(|rule| match rule.name() {
        "type_coercion" => Arc::new(OfNamedKeys(rule)) as AnalysisRule,
        _ => rule,
    })
}

#[derive(Debug)]
struct OfNamedKeys(AnalysisRule);

impl AnalyzerRule for OfNamedKeys {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, |node| Ok(has_computed_keys(node)))? {
            return self.0.analyze(plan, config);
        }
        let named = plan.transform_up_with_subqueries(|node| match has_computed_keys(&node) {
            true => node.map_expressions(|expr| match expr {
                Expr::GroupingSet(_) => expr.map_children(|key| Ok(with_name(key))),
                other => Ok(Transformed::no(other)),
            }),
            false => Ok(Transformed::no(node)),
        })?;
        self.0.analyze(named.data, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

/// Whether an operator has grouping sets of keys that are more than columns.
fn has_computed_keys(node: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = node else { return false };
    let [Expr::GroupingSet(sets)] = &aggregate.group_expr[..] else { return false };
    !sets.distinct_expr().into_iter().all(|key| matches!(key, Expr::Column(_) | Expr::Alias(_)))
}

fn with_name(key: Expr) -> Transformed<Expr> {
    match key {
        Expr::Column(_) | Expr::Alias(_) => Transformed::no(key),
        key => {
            let name = key.schema_name().to_string();
            Transformed::yes(key.alias(name))
        }
    }
}

#[cfg(test)]
mod tests {
    /// DataFusion may rename its rule; then this has to follow.
    #[test]
    fn the_rule_is_guarded() {
        let rules = super::guarded(datafusion::optimizer::Analyzer::new().rules);
        let guarded = rules.filter(|rule| format!("{rule:?}").starts_with("OfNamedKeys"));
        assert_eq!(guarded.count(), 1);
    }
}
