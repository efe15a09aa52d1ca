//! The places of `round(decimal, places)` while types are made to agree.
//!
//! The type of DataFusion's function (55.2) follows from the places where these are a constant.
//! `TypeCoercion` casts them to the argument's type before it looks at the expression around, which
//! then gets the type of places that are none, until the cast is folded: `round(d, 1) >= d + d`
//! compared decimals of two scales, an error. So constants have the argument's type beforehand.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::AnalysisRule;
use crate::plan::any_node;

/// DataFusion's rules, of which the one for types gets places of the right type.
pub(super) fn guarded(
    rules: impl Iterator<Item = AnalysisRule>,
) -> impl Iterator<Item = AnalysisRule> {
    rules.map(|rule| match rule.name() {
        "type_coercion" => Arc::new(OfTypedPlaces(rule)) as AnalysisRule,
        _ => rule,
    })
}

#[derive(Debug)]
struct OfTypedPlaces(AnalysisRule);

impl AnalyzerRule for OfTypedPlaces {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let rounds = |node: &LogicalPlan| {
            let exprs = node.expressions();
            Ok(exprs.iter().any(|expr| expr.exists(|of| Ok(places(of).is_some())).unwrap_or(false)))
        };
        if !any_node(&plan, rounds)? {
            return self.0.analyze(plan, config);
        }
        let typed = plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let typed = expr.transform_up(|of| Ok(with_typed_places(of)))?;
                Ok(typed.update_data(|expr| name.restore(expr)))
            })
        })?;
        self.0.analyze(typed.data, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

/// The constant places of a call of the function, if they are of another type than its argument.
fn places(expr: &Expr) -> Option<i32> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let [_, Expr::Literal(places, _)] = call.args.as_slice() else { return None };
    if call.name() != "round" {
        return None;
    }
    match places {
        ScalarValue::Int64(Some(places)) => i32::try_from(*places).ok(),
        _ => None,
    }
}

fn with_typed_places(expr: Expr) -> Transformed<Expr> {
    match (places(&expr), expr) {
        (Some(places), Expr::ScalarFunction(mut call)) => {
            call.args[1] = Expr::Literal(ScalarValue::Int32(Some(places)), None);
            Transformed::yes(Expr::ScalarFunction(call))
        }
        (_, expr) => Transformed::no(expr),
    }
}

#[cfg(test)]
mod tests {
    /// DataFusion may rename its rule; then this has to follow.
    #[test]
    fn the_rule_is_guarded() {
        let rules = datafusion::optimizer::Analyzer::new().rules.into_iter();
        let guarded =
            super::guarded(rules).filter(|rule| format!("{rule:?}").starts_with("OfTyped"));
        assert_eq!(guarded.count(), 1);
    }
}
