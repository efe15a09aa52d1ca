//! DataFusion's rules over logical plans, as a session with a device runs them.
//!
//! DataFusion's optimizer (55.2) runs all rules until a pass changes nothing. Most plans take the
//! three passes that it allows, as a limit passes one operator a pass. Here its passes are one
//! list: all rules, and then, in an order in which one finds what the other left, those that find
//! something in plans that all have passed. The CPU engine runs DataFusion's own passes; answers
//! are compared to its.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::{Transformed, TreeNodeRewriter};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::{LogicalRule, any_node, guards, holds_subquery};
use crate::mends::has_leaf;
use warpframe_device::interrupt;

/// Rules that do not run, and why.
///
/// | rule | why |
/// |---|---|
/// | `rewrite_set_comparison` | `subqueries/below.rs` has written out comparisons with subqueries |
const LEFT_OUT: [&str; 1] = ["rewrite_set_comparison"];

/// Rules that run again, in this order.
///
/// | rule | why it is not here |
/// |---|---|
/// | `optimize_unions`, `unions_to_filter` | nothing makes a UNION |
/// | `replace_distinct_aggregate` | nothing makes a DISTINCT |
/// | `single_distinct_aggregation_to_group_by` | nothing makes a DISTINCT |
/// | `eliminate_duplicated_expr` | nothing makes keys equal; it computes aggregates anew |
const AGAIN: [&str; 19] = [
    // Subqueries within subqueries.
    "decorrelate_predicate_subquery",
    "scalar_subquery_to_join",
    "decorrelate_lateral_join",
    // Subqueries left their conditions above the joins that they became.
    "extract_equijoin_predicate",
    "eliminate_cross_join",
    "filter_null_join_keys",
    "eliminate_outer_join",
    // A limit passes one operator at a time.
    "push_down_limit",
    "push_down_filter",
    // Filters that came together may say the same, or be constants.
    "simplify_expressions",
    "eliminate_filter",
    "eliminate_limit",
    "propagate_empty_relation",
    "eliminate_group_by_constant",
    // A join whose columns only such a filter asked for keeps or drops rows.
    "eliminate_join",
    // Filters were pushed through its projections, and so written out again.
    "common_sub_expression_eliminate",
    "extract_leaf_expressions",
    "push_down_leaf_projections",
    "optimize_projections",
];

/// How often DataFusion's optimizer has to run the list of [`unrolled`].
pub(in crate::session) const PASSES: usize = 1;

/// The rules as a device's session runs them, between seals (`guards.rs`).
pub(super) fn unrolled(rules: Vec<LogicalRule>) -> Vec<LogicalRule> {
    let rules: Vec<_> =
        rules.into_iter().filter(|rule| !LEFT_OUT.contains(&rule.name())).map(if_needed).collect();
    let named = |name| rules.iter().find(|rule| rule.name() == name).cloned();
    let again = AGAIN.into_iter().filter_map(named).collect();
    [guards::rules(rules.clone()), guards::rules(again)].concat()
}

/// The rule, which is spared the plans that have nothing for it, where it would rebuild or copy all
/// of a plan to see that.
fn if_needed(rule: LogicalRule) -> LogicalRule {
    match rule.name() {
        "decorrelate_predicate_subquery" | "scalar_subquery_to_join" => {
            Arc::new(IfNeeded { rule, needed: holds_subquery })
        }
        "extract_leaf_expressions" => Arc::new(IfNeeded { rule, needed: has_leaf }),
        "eliminate_join" => Arc::new(IfNeeded { rule, needed: drops_joins }),
        _ => rule,
    }
}

/// Whether an operator may let a join be left out, or yield the rows of one side: a join of another
/// kind than inner, a key that occurs once, a condition that is false, or an operator above that
/// takes equal rows once.
fn drops_joins(node: &LogicalPlan) -> Result<bool> {
    Ok(match node {
        LogicalPlan::Distinct(_) => true,
        LogicalPlan::Aggregate(aggregate) => aggregate.aggr_expr.is_empty(),
        LogicalPlan::Join(join) => {
            let has_key = |side: &LogicalPlan| !side.schema().functional_dependencies().is_empty();
            join.join_type != JoinType::Inner
                || matches!(join.filter, Some(Expr::Literal(..)))
                || has_key(&join.left)
                || has_key(&join.right)
        }
        _ => false,
    })
}

/// A rule that runs only if the plan has an operator that needs it.
#[derive(Debug)]
struct IfNeeded {
    rule: LogicalRule,
    needed: fn(&LogicalPlan) -> Result<bool>,
}

impl OptimizerRule for IfNeeded {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if !any_node(&plan, self.needed)? {
            return Ok(Transformed::no(plan));
        }
        match self.rule.apply_order() {
            Some(order) => plan.rewrite_with_subqueries(&mut EachNode {
                rule: self.rule.as_ref(),
                order,
                config,
            }),
            None => self.rule.rewrite(plan, config),
        }
    }
}

/// A rule of one operator, on all of a plan.
struct EachNode<'a> {
    rule: &'a dyn OptimizerRule,
    order: ApplyOrder,
    config: &'a dyn OptimizerConfig,
}

impl EachNode<'_> {
    fn at(&self, order: ApplyOrder, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        interrupt::check().map_err(crate::Error::from)?;
        if self.order == order {
            self.rule.rewrite(node, self.config)
        } else {
            Ok(Transformed::no(node))
        }
    }
}

impl TreeNodeRewriter for EachNode<'_> {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.at(ApplyOrder::TopDown, node)
    }

    fn f_up(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.at(ApplyOrder::BottomUp, node)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::optimizer::Optimizer;

    use super::*;

    /// DataFusion may rename rules; then the tables have to follow.
    #[test]
    fn the_tables_name_rules_of_datafusion() {
        let rules = Optimizer::new().rules;
        for name in LEFT_OUT.iter().chain(&AGAIN) {
            assert!(rules.iter().any(|rule| rule.name() == *name), "{name}");
        }
        let needed = rules
            .into_iter()
            .map(if_needed)
            .filter(|rule| format!("{rule:?}").starts_with("IfNeeded"));
        assert_eq!(needed.count(), 4);
    }

    #[test]
    fn each_pass_is_sealed() {
        let rules = unrolled(Optimizer::new().rules);
        let seals = |name: &str| {
            (0..rules.len()).filter(|at| rules[*at].name() == name).collect::<Vec<_>>()
        };
        let first = Optimizer::new().rules.len() - LEFT_OUT.len() + 2;
        assert_eq!(seals("seal_guards"), [0, first]);
        assert_eq!(seals("unseal_guards"), [first - 1, rules.len() - 1]);
        assert_eq!(rules.len(), first + AGAIN.len() + 2);
    }
}
