//! Scalar subqueries as joins, which the device runs: DataFusion (55) leaves those that name no
//! column of the query around them in its expressions.
//!
//! ```text
//!   Filter: x > (SELECT max(v) FROM t)       Filter: x > __scalar_1
//!     ...                                      LeftJoin
//!                                                ...
//!                                                SELECT max(v) AS __scalar_1 FROM t
//! ```
//!
//! A subquery that might have several rows fails where it does (`plan/subquery.rs`).

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, Projection, Subquery};

use crate::error::Result;
use crate::plan::{FreshNames, any_node, with_nullable, with_one_row};

/// The plan with joins for the scalar subqueries of its filters and projections; `None` where it
/// has none.
///
/// # Errors
/// Of plans that do not fit together.
pub(super) fn with_joins(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let is_scalar = |expr: &Expr| matches!(expr, Expr::ScalarSubquery(of) if is_apart(of));
    let any = any_node(plan, |node| {
        let mut found = false;
        node.apply_expressions(|expr| {
            found |= expr.exists(|part| Ok(is_scalar(part)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(found)
    })?;
    if !any {
        return Ok(None);
    }
    let plan = with_nullable(&with_one_row(plan)?, true)?;
    let mut joins = SubqueryJoins { names: FreshNames::of(&plan)? };
    Ok(Some(joins.visit(plan)?))
}

/// Whether a subquery names no column of the query around it.
fn is_apart(subquery: &Subquery) -> bool {
    subquery.outer_ref_columns.is_empty()
}

/// Makes joins of subqueries.
struct SubqueryJoins {
    names: FreshNames,
}

impl SubqueryJoins {
    fn visit(&mut self, plan: LogicalPlan) -> PlanResult<LogicalPlan> {
        Ok(plan.transform_up(|node| Ok(Transformed::yes(self.node(node)?)))?.data)
    }

    fn node(&mut self, node: LogicalPlan) -> PlanResult<LogicalPlan> {
        match node {
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                let schema = input.schema().clone();
                let (predicate, beside) = self.columns(predicate)?;
                if beside.is_empty() {
                    return Ok(LogicalPlan::Filter(Filter::new(predicate, input)));
                }
                let input = with_beside(input, beside)?;
                let kept = LogicalPlan::Filter(Filter::new(predicate, Arc::new(input)));
                let columns = schema.columns().into_iter().map(Expr::Column).collect();
                let kept = Projection::try_new_with_schema(columns, Arc::new(kept), schema)?;
                Ok(LogicalPlan::Projection(kept))
            }
            LogicalPlan::Projection(Projection { expr, input, schema, .. }) => {
                let (mut exprs, mut all) = (vec![], vec![]);
                for expr in expr {
                    let (expr, beside) = self.columns(expr)?;
                    exprs.push(expr);
                    all.extend(beside);
                }
                let input = match all.is_empty() {
                    true => input,
                    false => Arc::new(with_beside(input, all)?),
                };
                let project = Projection::try_new_with_schema(exprs, input, schema)?;
                Ok(LogicalPlan::Projection(project))
            }
            node => Ok(node),
        }
    }

    /// The expression with columns for its subqueries, and plans that have these.
    fn columns(&mut self, expr: Expr) -> PlanResult<(Expr, Vec<LogicalPlan>)> {
        let mut beside = vec![];
        let expr = expr.transform_up(|part| match part {
            Expr::ScalarSubquery(subquery) if is_apart(&subquery) => {
                let name = self.names.name("scalar");
                let plan = self.visit(subquery.subquery.as_ref().clone())?;
                let value = plan.schema().columns().into_iter().map(Expr::Column);
                let value = value.take(1).map(|value| value.alias(&name)).collect();
                let value = Projection::try_new(value, Arc::new(plan))?;
                beside.push(LogicalPlan::Projection(value));
                Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
            }
            part => Ok(Transformed::no(part)),
        })?;
        Ok((expr.data, beside))
    }
}

/// Rows, each beside the row of every one of these plans, which have one row or none.
fn with_beside(rows: Arc<LogicalPlan>, beside: Vec<LogicalPlan>) -> PlanResult<LogicalPlan> {
    let mut plan = rows.as_ref().clone();
    for one in beside {
        plan = LogicalPlan::Join(Join::try_new(
            Arc::new(plan),
            Arc::new(one),
            vec![],
            None,
            JoinType::Left,
            JoinConstraint::On,
            NullEquality::NullEqualsNothing,
            false,
        )?);
    }
    Ok(plan)
}
