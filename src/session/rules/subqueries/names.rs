//! Which columns a part of a query takes from the rows around it.
//!
//! The planner marks such a column (`OuterReferenceColumn`), but not how far out its rows are. The
//! nearest query that has the column is meant, as in SQL:
//!
//! ```text
//!   SELECT … FROM o WHERE EXISTS (
//!     SELECT 1 FROM p WHERE p.x = o.x AND EXISTS (
//!       SELECT 1 FROM q WHERE q.y = p.y AND q.z = o.z))      p.y: of p; o.z: of o, two queries out
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Subquery};

use crate::error::Error;

/// The plan of a subquery in an expression.
pub(super) fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(member) => Some(&member.subquery),
        Expr::SetComparison(comparison) => Some(&comparison.subquery),
        _ => None,
    }
}

fn subquery_of_mut(expr: &mut Expr) -> Option<&mut Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&mut exists.subquery),
        Expr::InSubquery(member) => Some(&mut member.subquery),
        Expr::SetComparison(comparison) => Some(&mut comparison.subquery),
        _ => None,
    }
}

pub(super) fn has_subquery(expr: &Expr) -> bool {
    // Nothing fails here.
    expr.exists(|expr| Ok(subquery_of(expr).is_some())).unwrap_or(false)
}

/// The columns that subqueries in the expressions of an operator may name.
fn around(node: &LogicalPlan) -> DFSchema {
    let mut schema = merge_schema(&node.inputs());
    // A key of an order names columns that the select list has not, too.
    if let LogicalPlan::Sort(sort) = node
        && let LogicalPlan::Projection(list) = sort.input.as_ref()
    {
        schema.merge(list.input.schema());
    }
    schema
}

/// The columns that a plan takes from rows around it.
pub(super) fn free(plan: &LogicalPlan) -> Result<Vec<Column>> {
    let mut names = vec![];
    collect(plan, &mut names)?;
    Ok(names)
}

/// Whether a plan takes columns from rows around it.
pub(super) fn is_correlated(plan: &LogicalPlan) -> Result<bool> {
    Ok(!free(plan)?.is_empty())
}

fn collect(plan: &LogicalPlan, names: &mut Vec<Column>) -> Result<()> {
    let mut schema = None;
    plan.apply_expressions(|expr| {
        collect_of_expr(expr, &mut || schema.get_or_insert_with(|| around(plan)).clone(), names)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    match plan {
        // What is LATERAL names columns of the tables before it.
        LogicalPlan::Join(join) => {
            collect(&join.left, names)?;
            names.extend(beyond(&join.right, join.left.schema())?);
        }
        _ => plan.inputs().into_iter().try_for_each(|input| collect(input, names))?,
    }
    Ok(())
}

fn collect_of_expr(
    expr: &Expr,
    around: &mut dyn FnMut() -> DFSchema,
    names: &mut Vec<Column>,
) -> Result<()> {
    expr.apply(|expr| {
        if let Expr::OuterReferenceColumn(_, column) = expr {
            names.push(column.clone());
        }
        if let Some(subquery) = subquery_of(expr) {
            let within = free(&subquery.subquery)?;
            if !within.is_empty() {
                let schema = around();
                names.extend(within.into_iter().filter(|column| !schema.has_column(column)));
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The columns that a plan takes from rows around the one beside it, which has this schema.
fn beyond(plan: &LogicalPlan, beside: &DFSchema) -> Result<Vec<Column>> {
    Ok(free(plan)?.into_iter().filter(|column| !beside.has_column(column)).collect())
}

/// The columns that an expression over rows of this schema takes from rows around these.
pub(super) fn free_of(expr: &Expr, schema: &DFSchema) -> Result<Vec<Column>> {
    let mut names = vec![];
    collect_of_expr(expr, &mut || schema.clone(), &mut names)?;
    Ok(names)
}

/// Whether the right side of a join names columns of its left side.
pub(super) fn is_lateral(join: &Join) -> Result<bool> {
    Ok(free(&join.right)?.iter().any(|column| join.left.schema().has_column(column)))
}

/// The plan, which takes columns from rows around it by other names.
pub(super) fn rebound(
    plan: LogicalPlan,
    names: &dyn Fn(&Column) -> Option<Column>,
) -> Result<LogicalPlan> {
    let schema = around(&plan);
    let plan = plan.map_expressions(|expr| {
        expr.transform_up(|mut expr| {
            if let Expr::OuterReferenceColumn(field, column) = &expr {
                return Ok(match names(column) {
                    Some(other) => {
                        Transformed::yes(Expr::OuterReferenceColumn(field.clone(), other))
                    }
                    None => Transformed::no(expr),
                });
            }
            let Some(subquery) = subquery_of_mut(&mut expr) else {
                return Ok(Transformed::no(expr));
            };
            if !is_correlated(&subquery.subquery)? {
                return Ok(Transformed::no(expr));
            }
            let within = Arc::unwrap_or_clone(subquery.subquery.clone());
            let within = rebound(within, &|column| match schema.has_column(column) {
                true => None,
                false => names(column),
            })?;
            *subquery = subquery_over(within, subquery);
            Ok(Transformed::yes(expr))
        })
    })?;
    match plan.data {
        LogicalPlan::Join(join) => {
            let beside = join.left.schema().clone();
            let left = Arc::new(rebound(Arc::unwrap_or_clone(join.left), names)?);
            let right = rebound(Arc::unwrap_or_clone(join.right), &|column| {
                if beside.has_column(column) { None } else { names(column) }
            })?;
            Ok(LogicalPlan::Join(Join { left, right: Arc::new(right), ..join }))
        }
        other => Ok(other.map_children(|child| Ok(Transformed::yes(rebound(child, names)?)))?.data),
    }
}

/// The expression over rows whose columns have other names, also where subqueries name them.
pub(super) fn moved(expr: Expr, names: &dyn Fn(&Column) -> Option<Column>) -> Result<Expr> {
    let moved = expr.transform_up(|mut expr| {
        if let Expr::Column(column) = &expr {
            return Ok(match names(column) {
                Some(other) => Transformed::yes(Expr::Column(other)),
                None => Transformed::no(expr),
            });
        }
        let Some(subquery) = subquery_of_mut(&mut expr) else { return Ok(Transformed::no(expr)) };
        let within = rebound(Arc::unwrap_or_clone(subquery.subquery.clone()), names)?;
        *subquery = subquery_over(within, subquery);
        Ok(Transformed::yes(expr))
    })?;
    Ok(moved.data)
}

/// The expression with columns in the place of what it names of rows around it.
pub(super) fn inside(expr: Expr) -> Result<Expr> {
    let inside = expr.transform_up(|expr| match expr {
        Expr::OuterReferenceColumn(_, column) => Ok(Transformed::yes(Expr::Column(column))),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(inside.data)
}

/// A subquery of this plan, in the place of another.
pub(super) fn subquery_over(plan: LogicalPlan, of: &Subquery) -> Subquery {
    Subquery {
        outer_ref_columns: plan.all_out_ref_exprs(),
        subquery: Arc::new(plan),
        spans: of.spans.clone(),
    }
}

/// That the rows around a subquery have the columns that it names of them.
///
/// # Errors
/// `Unsupported`, with the column and what the subquery is called.
pub(super) fn within_reach(plan: &LogicalPlan, around: &DFSchema, called: &str) -> Result<()> {
    match free(plan)?.iter().find(|column| !around.has_column(column)) {
        Some(column) => {
            let what = format!("{} in {called}", column.flat_name());
            Err(Error::unsupported(what, "the query around it has no such column").into())
        }
        None => Ok(()),
    }
}

/// What the subqueries of an expression are called in SQL.
pub(super) fn construct(expr: &Expr) -> &'static str {
    let has = |test: fn(&Expr) -> bool| expr.exists(|node| Ok(test(node))).unwrap_or(false);
    if has(|node| matches!(node, Expr::InSubquery(_))) {
        "IN (SELECT …)"
    } else if has(|node| matches!(node, Expr::Exists(_))) {
        "EXISTS (SELECT …)"
    } else if has(|node| matches!(node, Expr::SetComparison(_))) {
        "a comparison with ANY or ALL (SELECT …)"
    } else {
        "a correlated scalar subquery"
    }
}
