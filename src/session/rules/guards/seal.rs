//! Sealing expressions: AND, OR and CASE with operands that can fail.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{AggregateFunction, InSubquery};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Case, Cast, Expr, Operator, binary_expr, when};

use crate::plan::{
    can_fail, conjunction, fails_itself, has_failing, in_order, in_order_case, in_place,
    into_operands, is_sealed_case, of_some_rows,
};

pub(super) struct Sealer<'s> {
    pub(super) schema: &'s DFSchema,
}

/// An expression, and whether a part of it can fail.
struct SealedPart {
    expr: Expr,
    fails: bool,
    sealed: bool,
}

impl Sealer<'_> {
    /// Whether there is anything to seal.
    pub(super) fn concerns(&self, expr: &Expr) -> bool {
        has_failing(expr, self.schema) || is_sealed_for_itself(expr)
    }

    pub(super) fn sealed(&self, expr: Expr) -> Result<Transformed<Expr>> {
        let part = self.part(expr)?;
        Ok(Transformed::new_transformed(part.expr, part.sealed))
    }

    fn part(&self, expr: Expr) -> Result<SealedPart> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                self.chain(expr, op)
            }
            Expr::Case(case) => self.case(case),
            // A cast of a constant that fails is an error when rules compute constants, even if no
            // row comes to it.
            Expr::Cast(cast) if !cast.expr.any_column_refs() => {
                let fails = has_failing(&Expr::Cast(cast.clone()), self.schema);
                let inner = self.part(*cast.expr)?.expr;
                let expr = Box::new(if fails { in_place(inner) } else { inner });
                Ok(SealedPart {
                    expr: Expr::Cast(Cast { expr, field: cast.field }),
                    fails,
                    sealed: fails,
                })
            }
            // Arguments of an aggregate are asked for where its FILTER holds.
            Expr::AggregateFunction(AggregateFunction { func, mut params })
                if params.filter.is_some() =>
            {
                params.args = self.arguments(params.args)?;
                for key in &mut params.order_by {
                    key.expr = self.argument(key.expr.clone())?;
                }
                params.filter = params
                    .filter
                    .map(|of| Ok::<_, DataFusionError>(Box::new(self.part(*of)?.expr)))
                    .transpose()?;
                let expr = Expr::AggregateFunction(AggregateFunction { func, params });
                Ok(SealedPart { expr, fails: false, sealed: true })
            }
            Expr::WindowFunction(mut call) if call.params.filter.is_some() => {
                call.params.args = self.arguments(std::mem::take(&mut call.params.args))?;
                let filter = call.params.filter.take();
                call.params.filter = filter
                    .map(|of| Ok::<_, DataFusionError>(Box::new(self.part(*of)?.expr)))
                    .transpose()?;
                Ok(SealedPart { expr: Expr::WindowFunction(call), fails: false, sealed: true })
            }
            other => {
                let (mut fails, mut sealed) = (false, false);
                let itself = fails_itself(&other, self.schema);
                let expr = other.map_children(|child| {
                    let part = self.part(child)?;
                    (fails, sealed) = (fails || part.fails, sealed || part.sealed);
                    Ok(Transformed::new_transformed(part.expr, part.sealed))
                })?;
                Ok(SealedPart { expr: expr.data, fails: fails || itself, sealed })
            }
        }
    }

    fn arguments(&self, arguments: Vec<Expr>) -> Result<Vec<Expr>> {
        arguments.into_iter().map(|argument| self.argument(argument)).collect()
    }

    fn argument(&self, argument: Expr) -> Result<Expr> {
        let part = self.part(argument)?;
        Ok(if part.fails { of_some_rows(part.expr) } else { part.expr })
    }

    fn chain(&self, expr: Expr, op: Operator) -> Result<SealedPart> {
        let parts = into_operands(expr, op).into_iter().map(|operand| self.part(operand));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let fails = parts.iter().any(|part| part.fails);
        let later = parts.iter().skip(1).any(|part| part.fails);
        let sealed = later || parts.iter().any(|part| part.sealed);
        let operands: Vec<_> = parts.into_iter().map(|part| part.expr).collect();
        let expr = match later {
            true => in_order(op, operands),
            false => {
                let joined =
                    operands.into_iter().reduce(|left, right| binary_expr(left, op, right));
                joined.unwrap_or_else(|| datafusion::prelude::lit(op == Operator::And))
            }
        };
        Ok(SealedPart { expr, fails, sealed })
    }

    fn case(&self, case: Case) -> Result<SealedPart> {
        let (mut fails, mut later, mut sealed) = (false, false, false);
        let mut part = |expr: Box<Expr>, behind: bool| -> Result<Box<Expr>> {
            let part = self.part(*expr)?;
            (fails, later, sealed) =
                (fails || part.fails, later || behind && part.fails, sealed || part.sealed);
            Ok(Box::new(part.expr))
        };
        let expr = case.expr.map(|base| part(base, false)).transpose()?;
        let mut when_then_expr = vec![];
        for (at, (when, then)) in case.when_then_expr.into_iter().enumerate() {
            when_then_expr.push((part(when, at > 0)?, part(then, true)?));
        }
        let else_expr = case.else_expr.map(|otherwise| part(otherwise, true)).transpose()?;
        let case = Case { expr, when_then_expr, else_expr };
        let seals = later || asks_case(&case);
        let expr = if seals { in_order_case(case) } else { Expr::Case(case) };
        Ok(SealedPart { expr, fails, sealed: sealed || seals })
    }
}

/// Whether the CASE has another, sealed or not, in a condition. DataFusion (55.2) writes a CASE of
/// booleans out as AND and OR, in which each condition stands twice
/// (`expr_simplifier.rs`): where they are nested, that is by the power of two.
fn asks_case(case: &Case) -> bool {
    let is_case = |part: &Expr| matches!(part, Expr::Case(_)) || is_sealed_case(part);
    let mut conditions = case.when_then_expr.iter().map(|(when, _)| when);
    // Nothing fails here.
    conditions.any(|when| when.exists(|part| Ok(is_case(part))).unwrap_or(false))
}

/// Whether an expression is sealed whether or not it can fail: for such a CASE, or because it calls
/// a volatile function.
pub(super) fn is_sealed_for_itself(expr: &Expr) -> bool {
    let is_such = |part: &Expr| match part {
        Expr::Case(case) => asks_case(case),
        other => other.is_volatile_node(),
    };
    // Nothing fails here.
    expr.exists(|part| Ok(is_such(part))).unwrap_or(false)
}

/// Whether a condition is `x [NOT] IN (SELECT …)`, which becomes a join.
pub(super) fn is_membership(expr: &Expr) -> bool {
    match expr {
        Expr::Not(inner) => is_membership(inner),
        Expr::InSubquery(_) => true,
        _ => false,
    }
}

/// Whether a subquery asks something of outer columns that can fail.
pub(in crate::session::rules) fn has_failing_subquery(condition: &Expr) -> Result<bool> {
    condition.exists(|node| {
        let subquery = match node {
            Expr::Exists(exists) => &exists.subquery,
            Expr::InSubquery(member) => &member.subquery,
            Expr::ScalarSubquery(subquery) => subquery,
            _ => return Ok(false),
        };
        let mut fails = false;
        subquery.subquery.apply_with_subqueries(|node| {
            let schema = merge_schema(&node.inputs());
            node.apply_expressions(|expr| {
                fails |= expr.contains_outer() && has_failing(expr, &schema);
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(fails)
    })
}

/// In `x IN (SELECT …)`, which becomes a key of a join below the condition, makes an `x` that can
/// fail null where the conditions `before`, or those around it, do not ask for it.
pub(in crate::session::rules) fn guard_members(
    condition: Expr,
    before: &[Expr],
    schema: &DFSchema,
) -> Result<Expr> {
    let concerned = condition.exists(|node| {
        Ok(matches!(node, Expr::InSubquery(member) if can_fail(&member.expr, schema)))
    })?;
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
        Expr::Case(case) if case.expr.is_none() => {
            let mut when_then_expr = vec![];
            for (when, then) in case.when_then_expr {
                let known = guards.len();
                let plain = !when.exists(|node| Ok(is_membership(node)))?;
                guards.extend(plain.then(|| (*when).clone()));
                let then = guarded(*then, guards, schema)?;
                guards.truncate(known);
                let condition = guarded((*when).clone(), guards, schema)?;
                guards.extend(plain.then_some(Expr::IsNotTrue(when)));
                when_then_expr.push((Box::new(condition), Box::new(then)));
            }
            let else_expr = case
                .else_expr
                .map(|expr| guarded(*expr, guards, schema).map(Box::new))
                .transpose()?;
            Expr::Case(Case { expr: None, when_then_expr, else_expr })
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            let expr = match (can_fail(&expr, schema), conjunction(guards.iter().cloned())) {
                (true, Some(guard)) => Box::new(when(guard, *expr).end()?),
                _ => expr,
            };
            Expr::InSubquery(InSubquery { expr, subquery, negated })
        }
        other => {
            other.map_children(|child| Ok(Transformed::yes(guarded(child, guards, schema)?)))?.data
        }
    };
    guards.truncate(known);
    Ok(expr)
}
