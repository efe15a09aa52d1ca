//! Joins with LATERAL that DataFusion (55.2) does not decorrelate, or not rightly: with the first
//! rows in an order, with window functions, with elements of lists.
//!
//! ```text
//!   o, LATERAL (SELECT p.x FROM p WHERE p.k = o.k ORDER BY p.t DESC LIMIT 3) x
//!
//!   Join: o.k = key
//!     TableScan: o
//!     Filter: at <= 3
//!       Window: row_number() OVER (PARTITION BY key ORDER BY p.t DESC) AS at
//!         Projection: p.k AS key, p.x, p.t
//!           TableScan: p
//! ```
//!
//! What is more than equalities with rows outside goes the way of `numbered.rs`.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Distinct, Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder, Subquery,
    SubqueryAlias, lit,
};

use super::super::correlation::is_correlated;
use super::lookup::{KeyedRows, is_pulled_up, names_outside, out_of_reach};
use super::numbered::NumberedRows;
use super::{NameGenerator, has_subquery};

/// What it is called in errors.
pub(super) const CALLED: &str = "a LATERAL subquery";

/// Whether the operator reads a LATERAL subquery.
pub(in crate::session::rules) fn concerns(node: &LogicalPlan) -> bool {
    node.inputs().into_iter().any(|input| matches!(input, LogicalPlan::Subquery(_)))
}

/// The plan, in which only what names columns of the table beside it is LATERAL. DataFusion takes
/// UNNEST in FROM for it wherever the list comes from.
pub(in crate::session::rules) fn unwrapped(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Subquery(_) => Ok(Transformed::no(node)),
        // The operator above it knows.
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::SubqueryAlias(_) => {
                let input = Arc::new(bare(Arc::unwrap_or_clone(alias.input))?.data);
                let alias = SubqueryAlias::try_new(input, alias.alias)?;
                Ok(Transformed::yes(LogicalPlan::SubqueryAlias(alias)))
            }
            _ => Ok(Transformed::no(LogicalPlan::SubqueryAlias(alias))),
        },
        LogicalPlan::Join(join) => {
            let left = bare(Arc::unwrap_or_clone(join.left))?;
            let right = match lateral(&join.right) {
                Some(subquery) if names_beside(subquery, left.data.schema())? => {
                    Transformed::no(Arc::unwrap_or_clone(join.right))
                }
                _ => bare(Arc::unwrap_or_clone(join.right))?,
            };
            let changed = left.transformed || right.transformed;
            let (left, right) = (Arc::new(left.data), Arc::new(right.data));
            let join = LogicalPlan::Join(Join { left, right, ..join });
            Ok(Transformed::new_transformed(join, changed))
        }
        other => other.map_children(bare),
    })?;
    Ok(plan.data)
}

fn bare(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    Ok(match plan {
        LogicalPlan::Subquery(subquery) => {
            Transformed::yes(Arc::unwrap_or_clone(subquery.subquery))
        }
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::Subquery(subquery) => {
                let alias = SubqueryAlias::try_new(subquery.subquery.clone(), alias.alias)?;
                Transformed::yes(LogicalPlan::SubqueryAlias(alias))
            }
            _ => Transformed::no(LogicalPlan::SubqueryAlias(alias)),
        },
        other => Transformed::no(other),
    })
}

/// The subquery that a table is, if it is LATERAL.
fn lateral(table: &LogicalPlan) -> Option<&Subquery> {
    match table {
        LogicalPlan::Subquery(subquery) => Some(subquery),
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            LogicalPlan::Subquery(subquery) => Some(subquery),
            _ => None,
        },
        _ => None,
    }
}

fn names_beside(subquery: &Subquery, beside: &DFSchema) -> Result<bool> {
    Ok(names_outside(&subquery.subquery)?.iter().any(|column| beside.has_column(column)))
}

/// The join, as one without LATERAL where DataFusion would not make it that.
pub(super) fn join(join: Join, generator: &mut NameGenerator) -> Result<LogicalPlan> {
    let Some(subquery) = lateral(&join.right) else { return Ok(LogicalPlan::Join(join)) };
    let inner = subquery.subquery.clone();
    let left = join.left.schema();
    if let Some(column) = names_outside(&inner)?.iter().find(|column| !left.has_column(column)) {
        return Err(out_of_reach(column, CALLED));
    }
    if !matches!(join.join_type, JoinType::Inner | JoinType::Left)
        || is_pulled_up(&inner) && !drops_equal(&inner)?
    {
        return Ok(LogicalPlan::Join(join));
    }
    let filtered = join.filter.as_ref().is_some_and(has_subquery);
    match KeyedRows::of(&inner, left)? {
        Some(rows) if rows.limit.is_some() && !filtered => first_rows(rows, join, generator),
        _ => {
            let left = join.left.as_ref().clone();
            NumberedRows::new(left, CALLED, generator)?.beside(&join, &inner)
        }
    }
}

/// Whether equal rows are one: what a condition needs would be told apart, too, once it stands
/// above.
fn drops_equal(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        Ok(match node {
            LogicalPlan::Distinct(Distinct::All(input)) => is_correlated(input),
            LogicalPlan::Aggregate(node) => node.aggr_expr.is_empty() && is_correlated(&node.input),
            _ => false,
        })
    })
}

/// The rows of a join with the first of them for each key.
fn first_rows(rows: KeyedRows, join: Join, generator: &mut NameGenerator) -> Result<LogicalPlan> {
    let (skip, fetch) = rows.limit.unwrap_or((0, None));
    let rows = rows.named(generator)?;
    let at = generator.name("at");
    let place = Expr::Column(Column::new_unqualified(&at));
    let by = rows.keys.iter().map(|(within, _)| within.clone()).collect();
    let number = row_number().partition_by(by).order_by(rows.order).build()?;
    let bound = |rows: usize| lit(u64::try_from(rows).unwrap_or(u64::MAX));
    let mut conditions = vec![];
    if skip > 0 {
        conditions.push(place.clone().gt(bound(skip)));
    }
    if let Some(fetch) = fetch {
        conditions.push(place.lt_eq(bound(skip.saturating_add(fetch))));
    }
    let mut right = LogicalPlanBuilder::from(rows.plan).window([number.alias(&at)])?;
    if let Some(conditions) = conjunction(conditions) {
        right = right.filter(conditions)?;
    }
    let left = join.left.schema().fields().len();
    let shown = join.schema.iter().skip(left).zip(rows.values);
    let shown = shown
        .map(|((qualifier, field), value)| value.alias_qualified(qualifier.cloned(), field.name()));
    let keys = rows.keys.iter().map(|(within, _)| within.clone());
    let right = right.project(shown.chain(keys).collect::<Vec<_>>())?.build()?;
    let on = rows.keys.into_iter().map(|(within, outside)| outside.eq(within));
    let on = on.chain(join.filter);
    let columns = join.schema.columns().into_iter().map(Expr::Column);
    LogicalPlanBuilder::from(join.left.as_ref().clone())
        .join_on(right, join.join_type, on)?
        .project(columns)?
        .build()
}
