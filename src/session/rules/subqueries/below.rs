//! Lifting subqueries out of expressions, below the operator that has them.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, Exists, InSubquery};
use datafusion::logical_expr::{
    BinaryExpr, Case, Expr, LogicalPlan, LogicalPlanBuilder, Operator, not,
};

use super::lookup::{self, is_lookup};
use super::{NameGenerator, has_subquery, is_subquery, mark_join, named};
use crate::plan::UnknownAs;
use crate::session::rules::guards::guard_members;

/// The input of an operator, with a column for each subquery that was lifted.
pub(super) struct Below<'n> {
    plan: LogicalPlan,
    generator: &'n mut NameGenerator,
    /// The clause, for errors.
    clause: &'static str,
    lifts: Lifts,
    /// Subqueries with the columns that they have become.
    known: Vec<(Expr, Expr)>,
    /// Scalar subqueries, by names.
    values: Vec<Expr>,
}

/// Which subqueries are lifted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Lifts {
    All,
    /// But not scalar subqueries that are aggregations.
    AllButAggregates,
    /// Only scalar subqueries that are not.
    Lookups,
}

impl<'n> Below<'n> {
    pub(super) fn new(
        plan: LogicalPlan,
        clause: &'static str,
        generator: &'n mut NameGenerator,
    ) -> Self {
        Below::lifting(Lifts::All, plan, clause, generator)
    }

    pub(super) fn lifting(
        lifts: Lifts,
        plan: LogicalPlan,
        clause: &'static str,
        generator: &'n mut NameGenerator,
    ) -> Self {
        Below { plan, generator, clause, lifts, known: vec![], values: vec![] }
    }

    pub(super) fn schema(&self) -> &DFSchema {
        self.plan.schema()
    }

    /// The input with all that was lifted.
    pub(super) fn plan(self) -> Result<LogicalPlan> {
        if self.values.is_empty() {
            return Ok(self.plan);
        }
        let columns = self.plan.schema().columns().into_iter().map(Expr::Column);
        let exprs: Vec<_> = columns.chain(self.values).collect();
        LogicalPlanBuilder::from(self.plan).project(exprs)?.build()
    }

    /// The expression over what [`Below::plan`] will be.
    pub(super) fn lifted(&mut self, expr: Expr, unknown: UnknownAs) -> Result<Expr> {
        let expr = match self.lifts {
            Lifts::Lookups => expr,
            _ => guard_members(expr, &[], self.plan.schema())?,
        };
        self.of(expr, unknown)
    }

    fn of(&mut self, expr: Expr, unknown: UnknownAs) -> Result<Expr> {
        if !has_subquery(&expr) {
            return Ok(expr);
        }
        if is_subquery(&expr)
            && let Some((_, column)) = self.known.iter().find(|(known, _)| *known == expr)
        {
            return Ok(column.clone());
        }
        let whole = expr.clone();
        let column = match expr {
            Expr::ScalarSubquery(subquery) if is_lookup(&subquery) => {
                let (plan, value) = lookup::found(self.plan.clone(), &subquery, self.generator)?;
                self.plan = plan;
                value
            }
            Expr::ScalarSubquery(_) if self.lifts != Lifts::All => return Ok(expr),
            Expr::Exists(_) if self.lifts == Lifts::Lookups => return Ok(expr),
            Expr::InSubquery(_) if self.lifts == Lifts::Lookups => return self.children(expr),
            Expr::ScalarSubquery(subquery) => {
                let name = self.generator.name("value");
                let value = Expr::ScalarSubquery(named(subquery, self.generator.name("value"))?);
                self.values.push(value.alias(name.clone()));
                Expr::Column(Column::new_unqualified(name))
            }
            Expr::Exists(Exists { subquery, negated }) => {
                let mark = self.exists(&subquery)?;
                if negated { not(mark) } else { mark }
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let member = self.of(*expr, UnknownAs::Itself)?;
                return self.is_in(member, subquery, negated, unknown);
            }
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: op @ (Operator::And | Operator::Or),
                right,
            }) => {
                let (left, right) = (self.of(*left, unknown)?, self.of(*right, unknown)?);
                return Ok(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))));
            }
            Expr::Case(case) if case.expr.is_none() => {
                let mut when_then_expr = vec![];
                for (when, then) in case.when_then_expr {
                    when_then_expr.push((
                        Box::new(self.of(*when, UnknownAs::False)?),
                        Box::new(self.of(*then, unknown)?),
                    ));
                }
                let else_expr =
                    case.else_expr.map(|expr| self.of(*expr, unknown).map(Box::new)).transpose()?;
                return Ok(Expr::Case(Case { expr: None, when_then_expr, else_expr }));
            }
            Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
                params.filter = params
                    .filter
                    .map(|of| self.of(*of, UnknownAs::False).map(Box::new))
                    .transpose()?;
                let call = Expr::AggregateFunction(AggregateFunction { func, params });
                return self.children(call);
            }
            other => return self.children(other),
        };
        self.known.push((whole, column.clone()));
        Ok(column)
    }

    fn children(&mut self, expr: Expr) -> Result<Expr> {
        Ok(expr
            .map_children(|child| Ok(Transformed::yes(self.of(child, UnknownAs::Itself)?)))?
            .data)
    }

    /// Whether the subquery has a row, never null.
    fn exists(&mut self, subquery: &datafusion::logical_expr::Subquery) -> Result<Expr> {
        let marked = mark_join::exists(&self.plan, subquery, self.clause, self.generator)?;
        Ok(self.marked(marked))
    }

    fn marked(&mut self, (plan, mark): (Option<LogicalPlan>, Expr)) -> Expr {
        self.plan = plan.unwrap_or_else(|| self.plan.clone());
        mark
    }

    /// `member IN subquery`, in three-valued logic where null counts.
    fn is_in(
        &mut self,
        member: Expr,
        subquery: datafusion::logical_expr::Subquery,
        negated: bool,
        unknown: UnknownAs,
    ) -> Result<Expr> {
        if mark_join::is_one_row(&subquery.subquery) {
            let value = self.of(Expr::ScalarSubquery(subquery), UnknownAs::Itself)?;
            return Ok(if negated { member.not_eq(value) } else { member.eq(value) });
        }
        let found = mark_join::is_in(&self.plan, &subquery, &member, self.clause, self.generator)?;
        let found = self.marked(found);
        if unknown == UnknownAs::False && !negated {
            return Ok(found);
        }
        let unknown =
            mark_join::unknown(&self.plan, &subquery, &member, self.clause, self.generator)?;
        let value = match unknown {
            Some((plan, unknown)) => {
                self.plan = plan;
                mark_join::known(found, unknown)?
            }
            None => found,
        };
        Ok(if negated { not(value) } else { value })
    }
}
