//! Tools for plans of subqueries: joins, columns, limits.

use std::sync::Arc;

use datafusion::common::{Column, DFSchema, JoinType, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Expr, FetchType, Filter, Join, Limit, LogicalPlan, LogicalPlanBuilder, Operator, SkipType, lit,
};

use super::names::free_of;
use crate::plan::into_operands;

/// Parts conditions, all of which must hold, into those that satisfy a test and the others.
pub(super) fn parted(
    conditions: impl IntoIterator<Item = Expr>,
    is_such: impl Fn(&Expr) -> Result<bool>,
) -> Result<(Vec<Expr>, Vec<Expr>)> {
    let (mut such, mut others) = (vec![], vec![]);
    for condition in conditions.into_iter().flat_map(|all| into_operands(all, Operator::And)) {
        if is_such(&condition)? { such.push(condition) } else { others.push(condition) }
    }
    Ok((such, others))
}

/// The rows of a plan for which all of these hold.
pub(super) fn filtered(plan: LogicalPlan, conditions: Vec<Expr>) -> Result<LogicalPlan> {
    Ok(match conjunction(conditions) {
        Some(all) => LogicalPlan::Filter(Filter::try_new(all, Arc::new(plan))?),
        None => plan,
    })
}

/// A join on these conditions, of which there may be none.
pub(super) fn joined(
    left: LogicalPlan,
    right: LogicalPlan,
    kind: JoinType,
    mut on: Vec<Expr>,
) -> Result<LogicalPlanBuilder> {
    if on.is_empty() {
        on.push(lit(true));
    }
    LogicalPlanBuilder::from(left).join_on(right, kind, on)
}

/// The sides of a join in the other order, in a join of this kind.
pub(super) fn swapped(join: &Join, kind: JoinType) -> Result<Join> {
    let on = join.on.iter().cloned().map(|(left, right)| (right, left)).collect();
    let (left, right, filter) = (join.right.clone(), join.left.clone(), join.filter.clone());
    let (using, nulls) = (join.join_constraint, join.null_equality);
    Join::try_new(left, right, on, filter, kind, using, nulls, false)
}

/// An inner join, and its conditions that name rows around the subquery, which are taken out of it.
pub(super) fn inner_join(join: &Join) -> Result<(LogicalPlan, Vec<Expr>)> {
    let is_outside = |condition: &Expr| Ok(!free_of(condition, &join.schema)?.is_empty());
    let (outside, own) = parted(join.filter.clone(), is_outside)?;
    Ok((LogicalPlan::Join(Join { filter: conjunction(own), ..join.clone() }), outside))
}

pub(super) fn named(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

pub(super) fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

/// The expression under this name.
pub(super) fn called(expr: Expr, qualifier: Option<&TableReference>, name: &str) -> Expr {
    let is_it = |column: &Column| column.relation.as_ref() == qualifier && column.name == name;
    match expr {
        Expr::Column(column) if is_it(&column) => Expr::Column(column),
        other => other.alias_qualified(qualifier.cloned(), name),
    }
}

/// OFFSET and LIMIT; `None` where they are not numbers.
pub(super) fn bounds(limit: &Limit) -> Result<Option<(usize, Option<usize>)>> {
    Ok(match (limit.get_skip_type()?, limit.get_fetch_type()?) {
        (SkipType::Literal(skip), FetchType::Literal(fetch)) => Some((skip, fetch)),
        _ => None,
    })
}

/// The expressions as the columns of a schema.
pub(super) fn shown(exprs: impl IntoIterator<Item = Expr>, schema: &DFSchema) -> Vec<Expr> {
    let all = exprs.into_iter().zip(schema.iter());
    all.map(|(expr, (table, field))| called(expr.unalias(), table, field.name())).collect()
}

pub(super) fn has_grouping_sets(keys: &[Expr]) -> bool {
    keys.iter().any(|key| matches!(key, Expr::GroupingSet(_)))
}
