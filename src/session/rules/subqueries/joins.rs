//! Joins whose conditions have subqueries.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder, Operator};

use super::dependent::Below;
use super::names::{construct, free_of, has_subquery, subquery_of};
use super::tools::{filtered, swapped};
use super::{conditions, dependent, only};
use crate::error::Error;
use crate::plan::{FreshNames, UnknownAs, into_operands};

/// Conditions with subqueries: those of one side are lifted below it; of an inner join the others,
/// and EXISTS and IN, which make joins there, are conditions above it; a left or right join becomes
/// a dependent join with the side that is not preserved.
pub(super) fn join(join: Join, generator: &mut FreshNames) -> Result<LogicalPlan> {
    use JoinType::{Inner, Left, Right};
    let columns = join.schema.columns();
    let inner = join.join_type == Inner;
    let Some(filter) = join.filter.clone() else { return Ok(LogicalPlan::Join(join)) };
    let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
    let (mut kept, mut above, mut of_left, mut of_right) = (vec![], vec![], vec![], vec![]);
    for condition in into_operands(filter, Operator::And) {
        if !has_subquery(&condition) {
            kept.push(condition);
            continue;
        }
        let looked_at = looked_at(&condition)?;
        let of = |schema: &DFSchema| looked_at.iter().all(|column| schema.has_column(column));
        let scalar = !condition.exists(|expr| {
            Ok(!matches!(expr, Expr::ScalarSubquery(_)) && subquery_of(expr).is_some())
        })?;
        if of(left_schema) && (scalar || !inner) {
            of_left.push(condition);
        } else if of(right_schema) && (scalar || !inner) {
            of_right.push(condition);
        } else if inner {
            above.push(condition);
        } else if matches!(join.join_type, Left | Right) {
            return both_sides(join, generator);
        } else {
            let what = format!("{} in ON of a {} join", construct(&condition), join.join_type);
            return Err(Error::unsupported(what, "it looks at columns of both sides").into());
        }
    }
    let mut lifted = |side: Arc<LogicalPlan>, conditions: Vec<Expr>| -> Result<LogicalPlan> {
        let mut below = Below::new(Arc::unwrap_or_clone(side), generator);
        for condition in conditions {
            kept.push(below.lifted(condition, UnknownAs::False)?);
        }
        below.plan()
    };
    let (left, right) = (lifted(join.left, of_left)?, lifted(join.right, of_right)?);
    let joined = LogicalPlan::Join(Join::try_new(
        Arc::new(left),
        Arc::new(right),
        join.on,
        conjunction(kept),
        join.join_type,
        join.join_constraint,
        join.null_equality,
        join.null_aware,
    )?);
    let plan = match filtered(joined, above)? {
        LogicalPlan::Filter(filter) => conditions::filter(filter, generator)?,
        joined => joined,
    };
    only(plan, columns)
}

/// A left or right join with conditions that look at both sides: for each row of the preserved one
/// the rows of the other.
fn both_sides(join: Join, generator: &mut FreshNames) -> Result<LogicalPlan> {
    if join.join_type == JoinType::Left {
        return dependent::rows(&join, generator);
    }
    let columns = join.schema.columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
    let plan = dependent::rows(&swapped(&join, JoinType::Left)?, generator)?;
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// Columns that the subqueries of a condition look at, and what they are compared with.
fn looked_at(condition: &Expr) -> Result<Vec<Column>> {
    let mut columns = free_of(condition, DFSchema::empty_ref())?;
    condition.apply(|expr| {
        let member = match expr {
            Expr::InSubquery(member) => &member.expr,
            Expr::SetComparison(comparison) => &comparison.expr,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        columns.extend(member.column_refs().into_iter().cloned());
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(columns)
}
