//! Sealing expressions: AND, OR and CASE with operands that can fail.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{BinaryExpr, Case, Cast, Expr, Operator, binary_expr, when};

use crate::plan::{can_fail, fails_itself, has_failing, in_order, in_order_case, in_place, into_operands};

pub(super) struct Sealer<'s> {
    pub(super) schema: &'s DFSchema,
}

/// An expression, and whether a part of it can fail.
struct Part {
    expr: Expr,
    fails: bool,
    sealed: bool,
}

impl Sealer<'_> {
    /// Whether there is anything to seal.
    pub(super) fn concerns(&self, expr: &Expr) -> bool {
        has_failing(expr, self.schema)
    }

    pub(super) fn sealed(&self, expr: Expr) -> Result<Transformed<Expr>> {
        self.sealed_after(expr, false)
    }

    /// `guarded`: the expression is evaluated only where others hold.
    pub(super) fn sealed_after(&self, expr: Expr, guarded: bool) -> Result<Transformed<Expr>> {
        let part = self.part(expr, guarded)?;
        Ok(Transformed::new_transformed(part.expr, part.sealed))
    }

    fn part(&self, expr: Expr, guarded: bool) -> Result<Part> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                self.chain(expr, op, guarded)
            }
            Expr::Case(case) => self.case(case, guarded),
            // What cannot be computed is an error when rules compute constants, wherever it stands.
            Expr::Cast(Cast { expr: inner, field }) if guarded && matches!(*inner, Expr::Literal(_, _)) => {
                let fails = has_failing(&Expr::Cast(Cast { expr: inner.clone(), field: field.clone() }), self.schema);
                let inner = if fails { Box::new(in_place(*inner)) } else { inner };
                Ok(Part { expr: Expr::Cast(Cast { expr: inner, field }), fails, sealed: fails })
            }
            other => {
                let (mut fails, mut sealed) = (false, false);
                let mut first = true;
                let lazy = matches!(&other, Expr::ScalarFunction(call) if call.func.short_circuits());
                let itself = fails_itself(&other, self.schema);
                let expr = other.map_children(|child| {
                    let part = self.part(child, guarded || lazy && !first)?;
                    first = false;
                    (fails, sealed) = (fails || part.fails, sealed || part.sealed);
                    Ok(Transformed::new_transformed(part.expr, part.sealed))
                })?;
                Ok(Part { expr: expr.data, fails: fails || itself, sealed })
            }
        }
    }

    fn chain(&self, expr: Expr, op: Operator, guarded: bool) -> Result<Part> {
        let operands = into_operands(expr, op).into_iter().enumerate();
        let parts = operands.map(|(at, operand)| self.part(operand, guarded || at > 0));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let fails = parts.iter().any(|part| part.fails);
        let later = parts.iter().skip(1).any(|part| part.fails);
        let sealed = later || parts.iter().any(|part| part.sealed);
        let operands: Vec<_> = parts.into_iter().map(|part| part.expr).collect();
        let expr = match later {
            true => in_order(op, operands),
            false => {
                let joined = operands.into_iter().reduce(|left, right| binary_expr(left, op, right));
                joined.unwrap_or_else(|| datafusion::prelude::lit(op == Operator::And))
            }
        };
        Ok(Part { expr, fails, sealed })
    }

    fn case(&self, case: Case, guarded: bool) -> Result<Part> {
        let (mut fails, mut later, mut sealed) = (false, false, false);
        let mut part = |expr: Box<Expr>, behind: bool| -> Result<Box<Expr>> {
            let part = self.part(*expr, guarded || behind)?;
            (fails, later, sealed) = (fails || part.fails, later || behind && part.fails, sealed || part.sealed);
            Ok(Box::new(part.expr))
        };
        let expr = case.expr.map(|base| part(base, false)).transpose()?;
        let mut when_then_expr = vec![];
        for (at, (when, then)) in case.when_then_expr.into_iter().enumerate() {
            when_then_expr.push((part(when, at > 0)?, part(then, true)?));
        }
        let else_expr = case.else_expr.map(|otherwise| part(otherwise, true)).transpose()?;
        let case = Case { expr, when_then_expr, else_expr };
        let expr = if later { in_order_case(case) } else { Expr::Case(case) };
        Ok(Part { expr, fails, sealed: sealed || later })
    }
}

/// Whether a condition is `x [NOT] IN (SELECT …)`, which becomes a join.
pub(super) fn is_membership(expr: &Expr) -> bool {
    match expr {
        Expr::Not(inner) => is_membership(inner),
        Expr::InSubquery(_) => true,
        _ => false,
    }
}

/// In `x IN (SELECT …)`, which becomes a key of a join below the condition, makes an `x` that can fail null where the
/// conditions `before`, or those around it, do not ask for it.
pub(super) fn guard_members(condition: Expr, before: &[Expr], schema: &DFSchema) -> Result<Expr> {
    let concerned =
        condition.exists(|node| Ok(matches!(node, Expr::InSubquery(member) if can_fail(&member.expr, schema))))?;
    if !concerned {
        return Ok(condition);
    }
    let plain = |guard: &Expr| !guard.exists(|node| Ok(is_membership(node))).unwrap_or(true);
    let mut guards: Vec<Expr> = before.iter().filter(|guard| plain(guard)).cloned().collect();
    guarded(condition, &mut guards, schema)
}

fn guarded(expr: Expr, guards: &mut Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let known = guards.len();
    let expr = match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
            let mut done: Option<Expr> = None;
            for operand in into_operands(expr, op) {
                let guard = match op {
                    Operator::And => Expr::IsNotFalse(Box::new(operand.clone())),
                    _ => Expr::IsNotTrue(Box::new(operand.clone())),
                };
                let operand = guarded(operand, guards, schema)?;
                if !guard.exists(|node| Ok(is_membership(node)))? {
                    guards.push(guard);
                }
                done = Some(match done {
                    Some(before) => binary_expr(before, op, operand),
                    None => operand,
                });
            }
            done.unwrap_or_else(|| datafusion::prelude::lit(op == Operator::And))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let expr = match (can_fail(&expr, schema), conjunction(guards.iter().cloned())) {
                (true, Some(guard)) => Box::new(when(guard, *expr).end()?),
                _ => expr,
            };
            Expr::InSubquery(InSubquery { expr, subquery, negated })
        }
        other => other.map_children(|child| Ok(Transformed::yes(guarded(child, guards, schema)?)))?.data,
    };
    guards.truncate(known);
    Ok(expr)
}
