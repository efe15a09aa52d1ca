//! Subqueries that are a side of a join with the rows around them, as they are: rows of a plan that
//! names no columns around it, selected by any conditions.
//!
//! ```text
//!   EXISTS (SELECT 1 FROM p WHERE p.k = o.k AND p.x > 3 AND p.y < o.y)
//!
//!   LeftSemi Join: o.k = k AND y < o.y
//!     TableScan: o
//!     Projection: p.k AS k, p.y AS y
//!       Filter: p.x > 3
//!         TableScan: p
//! ```
//!
//! Nothing changes by the move: conditions alone stand above the plan, so that a pair of rows is
//! selected by the join exactly where the subquery, for the row around it, has the other row. What
//! it computes is computed above the join, for pairs that were found.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, LogicalPlanBuilder, lit};

use super::names::{free_of, has_subquery, inside, is_correlated, is_lateral};
use super::tools::{
    bounds, columns, filtered, has_grouping_sets, inner_join, joined, named, parted,
};
use crate::plan::{FreshNames, can_fail, is_volatile};

/// The right side of a join with the rows around a subquery.
pub(super) struct SubquerySide {
    pub(super) plan: LogicalPlan,
    /// Over both sides.
    pub(super) conditions: Vec<Expr>,
    /// The subquery's columns, over both sides.
    pub(super) values: Vec<Expr>,
    /// A row around it finds one row at most.
    pub(super) single: bool,
}

/// What is asked of the rows of a subquery.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum RowsWanted {
    /// Whether there is one.
    Existence,
    /// Whether there is one with such a value.
    Members,
    /// Each of them.
    Rows,
}

/// The subquery as such a side; `None` where it is more than that.
pub(super) fn flat(
    subquery: &LogicalPlan,
    wanted: RowsWanted,
    generator: &mut FreshNames,
) -> Result<Option<SubquerySide>> {
    let mut values = if wanted == RowsWanted::Existence { vec![] } else { columns(subquery) };
    let mut conditions: Vec<Expr> = vec![];
    let mut node = subquery;
    let base = loop {
        // Rows count, and nothing of them.
        let bare = values.is_empty() && conditions.is_empty();
        let (below, exprs): (_, Vec<Expr>) = match node {
            LogicalPlan::Subquery(wrapped) => {
                node = &wrapped.subquery;
                continue;
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() && wanted != RowsWanted::Rows => {
                node = &sort.input;
                continue;
            }
            LogicalPlan::Distinct(Distinct::All(input)) if wanted != RowsWanted::Rows => {
                node = input;
                continue;
            }
            LogicalPlan::Distinct(Distinct::On(on)) if bare => {
                node = &on.input;
                continue;
            }
            LogicalPlan::Window(window) if bare => {
                node = &window.input;
                continue;
            }
            LogicalPlan::Aggregate(groups)
                if bare
                    && !groups.group_expr.is_empty()
                    && !has_grouping_sets(&groups.group_expr) =>
            {
                node = &groups.input;
                continue;
            }
            LogicalPlan::Limit(limit)
                if bare && matches!(bounds(limit)?, Some((0, fetch)) if fetch != Some(0)) =>
            {
                node = &limit.input;
                continue;
            }
            LogicalPlan::Projection(list) if bare => {
                node = &list.input;
                continue;
            }
            LogicalPlan::Projection(list)
                if !list.expr.iter().any(|expr| has_subquery(expr) || is_volatile(expr)) =>
            {
                (&list.input, list.expr.iter().cloned().map(Expr::unalias).collect())
            }
            LogicalPlan::SubqueryAlias(alias) => (&alias.input, columns(&alias.input)),
            LogicalPlan::Filter(filter) => {
                let schema = filter.input.schema();
                let (outside, own) = parted([filter.predicate.clone()], |condition| {
                    Ok(!free_of(condition, schema)?.is_empty() || can_fail(condition, schema))
                })?;
                let stays = |condition: &Expr| has_subquery(condition) || is_volatile(condition);
                if outside.iter().any(stays) {
                    return Ok(None);
                }
                let part = own.iter().any(stays);
                conditions.splice(0..0, outside);
                if !part {
                    conditions.splice(0..0, own);
                    node = &filter.input;
                    continue;
                }
                break filtered(filter.input.as_ref().clone(), own)?;
            }
            LogicalPlan::Join(join)
                if join.join_type == JoinType::Inner
                    && join.null_equality == NullEquality::NullEqualsNothing
                    && !is_lateral(join)? =>
            {
                let (own, outside) = inner_join(join)?;
                if outside.iter().any(has_subquery) {
                    return Ok(None);
                }
                conditions.splice(0..0, outside);
                break own;
            }
            _ => break node.clone(),
        };
        let schema = node.schema();
        let over_below = |expr: Expr| -> Result<Expr> {
            let expr = expr.transform_down(|expr| match &expr {
                Expr::Column(column) => {
                    let below = exprs[schema.index_of_column(column)?].clone();
                    Ok(Transformed::new(below, true, TreeNodeRecursion::Jump))
                }
                _ => Ok(Transformed::no(expr)),
            })?;
            Ok(expr.data)
        };
        values = values.into_iter().map(over_below).collect::<Result<_>>()?;
        conditions = conditions.into_iter().map(over_below).collect::<Result<_>>()?;
        node = below;
    };
    // A row of no table needs no join.
    if is_correlated(&base)? || matches!(base, LogicalPlan::EmptyRelation(_)) {
        return Ok(None);
    }
    let correlated = conditions.iter().any(Expr::contains_outer);
    let (own, conditions): (Vec<_>, Vec<_>) = conditions.into_iter().partition(|condition| {
        !condition.contains_outer() && (!correlated || !can_fail(condition, base.schema()))
    });
    let plan = filtered(base, own)?;
    let mut names: Vec<(Column, String)> = vec![];
    let mut renamed = |expr: Expr| -> Result<Expr> {
        let renamed = expr.transform_up(|expr| match expr {
            Expr::Column(column) => {
                let known = names.iter().position(|(of, _)| *of == column);
                let at = known.unwrap_or_else(|| {
                    names.push((column, generator.name("inner")));
                    names.len() - 1
                });
                Ok(Transformed::yes(named(&names[at].1)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        inside(renamed.data)
    };
    let values = values.into_iter().map(&mut renamed).collect::<Result<_>>()?;
    let conditions = conditions.into_iter().map(&mut renamed).collect::<Result<_>>()?;
    let mut shown: Vec<_> =
        names.into_iter().map(|(column, name)| Expr::Column(column).alias(name)).collect();
    if shown.is_empty() {
        shown.push(lit(true).alias(generator.name("inner")));
    }
    let plan = LogicalPlanBuilder::from(plan).project(shown)?.build()?;
    Ok(Some(SubquerySide { plan, conditions, values, single: false }))
}

impl SubquerySide {
    /// The rows around it that have such a row, or have none, or all of them with a column, called
    /// `mark`, that says which.
    pub(super) fn found(
        self,
        outer: LogicalPlan,
        kind: JoinType,
        test: Option<Expr>,
        mark: &str,
    ) -> Result<LogicalPlan> {
        let conditions = self.conditions.into_iter().chain(test);
        // A key of a join has columns of both sides
        // (<https://github.com/apache/datafusion/issues/25340>).
        let schema = self.plan.schema().clone();
        let (own, both): (Vec<_>, Vec<_>) = conditions.partition(|condition| {
            let names = condition.column_refs();
            !names.is_empty()
                && names.into_iter().all(|column| schema.has_column(column))
                && !can_fail(condition, &schema)
        });
        let right = LogicalPlanBuilder::from(filtered(self.plan, own)?).alias(mark)?.build()?;
        joined(outer, right, kind, both)?.build()
    }
}

/// The column that [`SubquerySide::found`] adds.
pub(super) fn mark(name: &str) -> Expr {
    Expr::Column(Column::new(Some(name), "mark"))
}
