//! Joins by `IS NOT DISTINCT FROM`, kept from keys by `=`.
//!
//! A join takes NULL for equal in all its keys or in none. DataFusion's rules (55.2) give one that
//! does the equalities of WHERE and ON as keys, too (`extract_equijoin_predicate.rs`), and of several
//! inner joins they make new ones whose keys all are as those of the one on top
//! (`eliminate_cross_join.rs`):
//!
//! ```text
//!   SELECT … FROM t JOIN u ON t.a IS NOT DISTINCT FROM u.a WHERE t.c = u.c
//! ```
//!
//! also had the rows where `t.c` and `u.c` are NULL.

use std::sync::Arc;

use datafusion::common::NullEquality;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Join, JoinType, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::{LogicalRule, any_node};

/// DataFusion's rules, of which those that find keys leave the keys of such joins as they are.
pub(super) fn guarded(rules: Vec<LogicalRule>) -> Vec<LogicalRule> {
    let guarded = |rule: LogicalRule| match rule.name() {
        "extract_equijoin_predicate" => Arc::new(KeysOfOneKind(rule)) as LogicalRule,
        "eliminate_cross_join" => Arc::new(InnerJoinsApart(rule)),
        _ => rule,
    };
    rules.into_iter().map(guarded).collect()
}

/// The rule that makes keys of a join's conditions.
#[derive(Debug)]
struct KeysOfOneKind(LogicalRule);

impl OptimizerRule for KeysOfOneKind {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull => {
                match join.on.is_empty() {
                    true => {
                        let null_equality = NullEquality::NullEqualsNothing;
                        self.0.rewrite(LogicalPlan::Join(Join { null_equality, ..join }), config)
                    }
                    false => Ok(Transformed::no(LogicalPlan::Join(join))),
                }
            }
            other => self.0.rewrite(other, config),
        }
    }
}

/// The rule that orders inner joins so that they have keys. To it such a join is an outer one, as
/// which it keeps its place and its inputs.
#[derive(Debug)]
struct InnerJoinsApart(LogicalRule);

impl OptimizerRule for InnerJoinsApart {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let such =
            |node: &LogicalPlan| Ok(matches!(node, LogicalPlan::Join(join) if is_null_safe(join)));
        if !any_node(&plan, such)? {
            return self.0.rewrite(plan, config);
        }
        let apart = plan.transform_up_with_subqueries(|node| {
            Ok(match node {
                LogicalPlan::Join(join) if is_null_safe(&join) => {
                    Transformed::yes(LogicalPlan::Join(stand_in(join)))
                }
                other => Transformed::no(other),
            })
        })?;
        let ordered = self.0.rewrite(apart.data, config)?;
        let transformed = ordered.transformed;
        let whole = ordered.data.transform_up_with_subqueries(|node| {
            let node = match node {
                LogicalPlan::Join(join) if is_stand_in(&join) => {
                    let join = Join { join_type: JoinType::Inner, null_aware: false, ..join };
                    Transformed::yes(LogicalPlan::Join(join))
                }
                other => Transformed::no(other),
            };
            // The rule may have made schemas anew, in which rows of outer joins have nulls.
            node.map_data(LogicalPlan::recompute_schema)
        })?;
        Ok(Transformed::new_transformed(whole.data, transformed))
    }
}

fn is_null_safe(join: &Join) -> bool {
    join.join_type == JoinType::Inner && join.null_equality == NullEquality::NullEqualsNull
}

/// An outer join that looks like no other: only anti joins are aware of nulls.
fn stand_in(join: Join) -> Join {
    Join { join_type: JoinType::Left, null_aware: true, ..join }
}

fn is_stand_in(join: &Join) -> bool {
    join.join_type == JoinType::Left && join.null_aware
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DataFusion may rename its rules; then this has to follow.
    #[test]
    fn the_rules_that_find_keys_are_guarded() {
        let rules = guarded(datafusion::optimizer::Optimizer::new().rules);
        for wrapper in ["KeysOfOneKind", "InnerJoinsApart"] {
            let wrapped = rules.iter().filter(|rule| format!("{rule:?}").starts_with(wrapper));
            assert_eq!(wrapped.count(), 1, "{wrapper}");
        }
    }
}
