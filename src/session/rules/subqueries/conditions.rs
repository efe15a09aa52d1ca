//! Conditions of WHERE with subqueries: what a semi or anti join can select, it selects.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Operator, binary_expr, not};

use super::dependent::{Below, Lifts, Member, side};
use super::names::{has_subquery, is_correlated, subquery_of};
use super::side::RowsWanted;
use super::tools::filtered;
use super::{only, renamed};
use crate::plan::{FreshNames, UnknownAs, can_fail, into_operands, is_volatile};
use crate::session::rules::guards::has_failing_subquery;

/// The conditions with subqueries become joins, in their order; the others stand below and above.
pub(super) fn filter(filter: Filter, generator: &mut FreshNames) -> Result<LogicalPlan> {
    let columns = filter.input.schema().columns();
    let schema = filter.input.schema().clone();
    // Rows that other conditions drop ask for nothing.
    let (mut first, mut later) = (vec![], vec![]);
    for condition in into_operands(filter.predicate, Operator::And) {
        let is_free = later.is_empty() || !can_fail(&condition, &schema);
        match is_free && !has_subquery(&condition) && !is_volatile(&condition) {
            true => first.push(condition),
            false => later.push(condition),
        }
    }
    let mut plan = filtered(Arc::unwrap_or_clone(filter.input), first)?;
    let mut kept = vec![];
    for condition in later {
        if stays(&condition)? {
            kept.push(renamed(condition, plan.schema(), generator)?);
            continue;
        }
        // Its join stands behind what may guard it.
        if has_failing_subquery(&condition)? {
            plan = filtered(plan, std::mem::take(&mut kept))?;
        }
        let (joined, condition) = conjunct(plan, condition, generator)?;
        plan = joined;
        if let Some(condition) = condition {
            kept.push(renamed(condition, plan.schema(), generator)?);
        }
    }
    only(filtered(plan, kept)?, columns)
}

/// Whether DataFusion computes the subqueries of a condition.
fn stays(condition: &Expr) -> Result<bool> {
    match condition {
        Expr::Not(condition) => stays(condition),
        // A value without a column is no key of a join: nulls were lost, and matches
        // (<https://github.com/apache/datafusion/issues/25340>).
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => Ok(!has_subquery(expr)
            && !is_correlated(&subquery.subquery)?
            && !expr.column_refs().is_empty()),
        other => Ok(!other.exists(|expr| match expr {
            Expr::ScalarSubquery(subquery) => is_correlated(&subquery.subquery),
            other => Ok(subquery_of(other).is_some()),
        })?),
    }
}

/// The rows that a condition with subqueries selects, as far as a semi or anti join can do that,
/// and what is left of it.
fn conjunct(
    plan: LogicalPlan,
    condition: Expr,
    generator: &mut FreshNames,
) -> Result<(LogicalPlan, Option<Expr>)> {
    let kind = |negated: bool| if negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
    match condition {
        Expr::Not(operand) => match *operand {
            Expr::Not(operand) => conjunct(plan, *operand, generator),
            Expr::Exists(exists) => {
                let exists = Exists { negated: !exists.negated, ..exists };
                conjunct(plan, Expr::Exists(exists), generator)
            }
            Expr::InSubquery(member) => {
                let member = InSubquery { negated: !member.negated, ..member };
                conjunct(plan, Expr::InSubquery(member), generator)
            }
            other => embedded(plan, not(other), generator),
        },
        Expr::Exists(Exists { ref subquery, negated }) => {
            match side(&plan, &subquery.subquery, RowsWanted::Existence, generator)? {
                Some(side) => {
                    let name = generator.name("exists");
                    Ok((side.found(plan, kind(negated), None, &name)?, None))
                }
                None => embedded(plan, condition, generator),
            }
        }
        Expr::InSubquery(_) | Expr::SetComparison(_) => {
            let member = match condition.clone() {
                Expr::InSubquery(member) => Member::of_in(member),
                Expr::SetComparison(comparison) => Member::of_comparison(comparison)?,
                other => return embedded(plan, other, generator),
            };
            let mut below = Below::new(plan, generator);
            let value = below.compared(member.value)?;
            let plan = below.plan()?;
            let found = match is_volatile(&value) {
                true => None,
                false => side(&plan, &member.subquery.subquery, RowsWanted::Members, generator)?,
            };
            let Some(found) = found else { return embedded(plan, condition, generator) };
            let mut test = binary_expr(value.clone(), member.operator, found.values[0].clone());
            if member.negated && found.can_be_null(&value, plan.schema())? {
                test = Expr::IsNotFalse(Box::new(test));
            }
            let name = generator.name("exists");
            Ok((found.found(plan, kind(member.negated), Some(test), &name)?, None))
        }
        other => embedded(plan, other, generator),
    }
}

fn embedded(
    plan: LogicalPlan,
    condition: Expr,
    generator: &mut FreshNames,
) -> Result<(LogicalPlan, Option<Expr>)> {
    let mut below = Below::lifting(Lifts::AllButValues, plan, generator);
    let condition = below.lifted(condition, UnknownAs::False)?;
    Ok((below.plan()?, Some(condition)))
}
