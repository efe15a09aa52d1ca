//! Correlated scalar subqueries that are looked for in another: `(SELECT max(b) …) IN (SELECT c
//! …)`.
//!
//! What is looked for becomes a condition of a join, in which DataFusion (55.2) refuses correlated
//! subqueries. In a select list it makes joins of them, so they get one below:
//!
//! ```text
//!   Filter: (SELECT …) IN (…)        Projection: t.a
//!     TableScan: t                     Filter: __sought_1 IN (…)
//!                                        Projection: t.a, (SELECT …) AS __sought_1
//!                                          TableScan: t
//! ```

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection};

use crate::error::Error;

/// The node over a projection of what its expressions look for in subqueries, columns that a filter
/// then yields, too. `made`: how many there are in the plan.
pub(super) fn below(node: LogicalPlan, made: &mut usize) -> Result<LogicalPlan> {
    let mut any = false;
    node.apply_expressions(|expr| {
        any |= expr.exists(|expr| Ok(sought(expr).is_some_and(has_correlated)))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !any {
        return Ok(node);
    }
    let mut columns = vec![];
    match node {
        LogicalPlan::Filter(filter) => {
            let predicate = lifted(filter.predicate, &mut columns, made)?;
            let input = Arc::new(with(filter.input, columns)?);
            Ok(LogicalPlan::Filter(Filter::try_new(predicate, input)?))
        }
        LogicalPlan::Projection(projection) => {
            let names = NamePreserver::new_for_projection();
            let exprs = projection.expr.into_iter().map(|expr| {
                let name = names.save(&expr);
                Ok(name.restore(lifted(expr, &mut columns, made)?))
            });
            let exprs = exprs.collect::<Result<Vec<_>>>()?;
            let input = Arc::new(with(projection.input, columns)?);
            Ok(LogicalPlan::Projection(Projection::try_new(exprs, input)?))
        }
        other => {
            let what = format!(
                "a correlated subquery on the left of IN, ANY or ALL in {}",
                other.display()
            );
            Err(Error::unsupported(what, "it may stand in WHERE, HAVING and the select list")
                .into())
        }
    }
}

/// What an expression looks for in a subquery.
fn sought(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::InSubquery(member) => Some(&member.expr),
        Expr::SetComparison(comparison) => Some(&comparison.expr),
        _ => None,
    }
}

fn is_correlated(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarSubquery(subquery) if !subquery.outer_ref_columns.is_empty())
}

fn has_correlated(expr: &Expr) -> bool {
    // Nothing fails here.
    expr.exists(|expr| Ok(is_correlated(expr))).unwrap_or(false)
}

/// The expression over columns instead of the subqueries, which are added to `columns`.
fn lifted(expr: Expr, columns: &mut Vec<Expr>, made: &mut usize) -> Result<Expr> {
    let mut of_value = |value: Expr| -> Result<Expr> {
        let over_columns = value.transform_up(|expr| {
            if !is_correlated(&expr) {
                return Ok(Transformed::no(expr));
            }
            *made += 1;
            let name = format!("__sought_{made}");
            columns.push(expr.alias(&name));
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
        })?;
        Ok(over_columns.data)
    };
    let lifted = expr.transform_up(|expr| {
        Ok(match expr {
            Expr::InSubquery(mut member) => {
                member.expr = Box::new(of_value(*member.expr)?);
                Transformed::yes(Expr::InSubquery(member))
            }
            Expr::SetComparison(mut comparison) => {
                comparison.expr = Box::new(of_value(*comparison.expr)?);
                Transformed::yes(Expr::SetComparison(comparison))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(lifted.data)
}

fn with(input: Arc<LogicalPlan>, columns: Vec<Expr>) -> Result<LogicalPlan> {
    let all = input.schema().columns().into_iter().map(Expr::Column).chain(columns);
    LogicalPlanBuilder::from(input.as_ref().clone()).project(all)?.build()
}
