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

use datafusion::common::NullEquality;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Join, JoinType, LogicalPlan};
use datafusion::optimizer::OptimizerConfig;

use super::LogicalRule;
use crate::plan::any_node;

/// The rule that makes keys of a join's conditions.
pub(super) fn rewrite_keys(
    rule: &LogicalRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull => {
            match join.on.is_empty() {
                true => {
                    let null_equality = NullEquality::NullEqualsNothing;
                    rule.rewrite(LogicalPlan::Join(Join { null_equality, ..join }), config)
                }
                false => Ok(Transformed::no(LogicalPlan::Join(join))),
            }
        }
        other => rule.rewrite(other, config),
    }
}

/// The rule that orders inner joins so that they have keys. To it such a join is an outer one, as
/// which it keeps its place and its inputs.
pub(super) fn rewrite_order(
    rule: &LogicalRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let such =
        |node: &LogicalPlan| Ok(matches!(node, LogicalPlan::Join(join) if is_null_safe(join)));
    if !any_node(&plan, such)? {
        return rule.rewrite(plan, config);
    }
    let apart = plan.transform_up_with_subqueries(|node| {
        Ok(match node {
            LogicalPlan::Join(join) if is_null_safe(&join) => {
                Transformed::yes(LogicalPlan::Join(stand_in(join)))
            }
            other => Transformed::no(other),
        })
    })?;
    let ordered = rule.rewrite(apart.data, config)?;
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
