//! Comparisons of rows, `(a, b) = (c, d)` and `(a, b) IN (…)`, written out as those of their
//! values.
//!
//! DataFusion's planner (55.2) makes structs of them, in which null equals null, and takes a
//! subquery of several columns not at all:
//!
//! ```text
//!   (a, b) = (c, d)               a = c AND b = d
//!   (a, b) < (c, d)               a < c OR (a = c AND b < d)
//!   (a, b) IN ((1, 2), (3, 4))    (a = 1 AND b = 2) OR (a = 3 AND b = 4)
//!   (a, b) IN (SELECT c, d …)     EXISTS (SELECT 1 FROM (…) AS row (c1, c2)
//!                                   WHERE a = c1 AND b = c2)
//! ```
//!
//! The last holds where unknown is as good as false. Elsewhere a second subquery tells whether
//! there is a row of which it is unknown.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, Query, Select, SetExpr, TableAlias, TableAliasColumnDef,
    TableFactor, UnaryOperator, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::dialect::Ours;
use crate::sql::ast::{binary, nested};

/// Visits a statement.
pub(super) struct RowComparisons;

impl VisitorMut for RowComparisons {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        select.selection.iter_mut().for_each(conjunct);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Some(written_out) = compared(expr) {
            *expr = written_out;
        }
        ControlFlow::Continue(())
    }
}

/// Conditions that all have to be true: of those unknown is as good as false.
fn conjunct(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjunct(left);
            conjunct(right);
        }
        Expr::Nested(inner) => conjunct(inner),
        Expr::InSubquery { expr: row, subquery, negated } => {
            let Expr::Tuple(values) = row.as_ref() else { return };
            let equal = equal_to_members(values);
            *expr = match negated {
                false => exists(subquery, values.len(), equal, false),
                true => exists(subquery, values.len(), Expr::IsNotFalse(Box::new(equal)), true),
            };
        }
        _ => {}
    }
}

fn compared(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::BinaryOp { left, op, right } => match (left.as_ref(), right.as_ref()) {
            (Expr::Tuple(left), Expr::Tuple(right)) if left.len() == right.len() => {
                of_rows(left, op, right)
            }
            _ => None,
        },
        Expr::IsDistinctFrom(left, right) => match (left.as_ref(), right.as_ref()) {
            (Expr::Tuple(left), Expr::Tuple(right)) if left.len() == right.len() => {
                let pairs = left.iter().zip(right).map(|(a, b)| {
                    nested(Expr::IsDistinctFrom(Box::new(a.clone()), Box::new(b.clone())))
                });
                chain(BinaryOperator::Or, pairs)
            }
            _ => None,
        },
        Expr::IsNotDistinctFrom(left, right) => match (left.as_ref(), right.as_ref()) {
            (Expr::Tuple(left), Expr::Tuple(right)) if left.len() == right.len() => {
                let pairs = left.iter().zip(right).map(|(a, b)| {
                    nested(Expr::IsNotDistinctFrom(Box::new(a.clone()), Box::new(b.clone())))
                });
                chain(BinaryOperator::And, pairs)
            }
            _ => None,
        },
        Expr::InList { expr, list, negated } => {
            let Expr::Tuple(row) = expr.as_ref() else { return None };
            let rows = list.iter().map(|other| match other {
                Expr::Tuple(other) if other.len() == row.len() => {
                    of_rows(row, &BinaryOperator::Eq, other)
                }
                _ => None,
            });
            let found = chain(BinaryOperator::Or, rows.collect::<Option<Vec<_>>>()?.into_iter())?;
            Some(if *negated { not(found) } else { found })
        }
        Expr::InSubquery { expr, subquery, negated } => {
            let Expr::Tuple(values) = expr.as_ref() else { return None };
            let equal = equal_to_members(values);
            let open = Expr::IsNull(Box::new(equal.clone()));
            let mut case = parsed(
                "CASE WHEN true THEN true WHEN true THEN CAST(NULL AS boolean) ELSE false END",
            );
            if let Expr::Case { conditions, .. } = &mut case {
                conditions[0].condition = exists(subquery, values.len(), equal, false);
                conditions[1].condition = exists(subquery, values.len(), open, false);
            }
            Some(if *negated { not(case) } else { nested(case) })
        }
        _ => None,
    }
}

fn of_rows(left: &[Expr], operator: &BinaryOperator, right: &[Expr]) -> Option<Expr> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let pair = |at: usize, operator: BinaryOperator| {
        nested(binary(nested(left[at].clone()), operator, nested(right[at].clone())))
    };
    let all = 0..left.len();
    match operator {
        Eq => chain(And, all.map(|at| pair(at, Eq))),
        NotEq => chain(Or, all.map(|at| pair(at, NotEq))),
        Lt | LtEq | Gt | GtEq => {
            let strict = if matches!(operator, Lt | LtEq) { Lt } else { Gt };
            let last = left.len().checked_sub(1)?;
            let rest = (0..last).rev().fold(pair(last, operator.clone()), |rest, at| {
                nested(binary(
                    pair(at, strict.clone()),
                    Or,
                    nested(binary(pair(at, Eq), And, rest)),
                ))
            });
            Some(rest)
        }
        _ => None,
    }
}

/// The values, each equal to a column of the subquery as [`exists`] names them.
fn equal_to_members(values: &[Expr]) -> Expr {
    let pairs = values.iter().enumerate().map(|(at, value)| {
        let column = Expr::CompoundIdentifier(vec![Ident::with_quote('"', ROW), column_name(at)]);
        binary(nested(value.clone()), BinaryOperator::Eq, column)
    });
    chain(BinaryOperator::And, pairs).unwrap_or_else(|| Expr::value(Value::Boolean(true)))
}

/// Whether a row of the subquery satisfies a condition.
fn exists(subquery: &Query, columns: usize, condition: Expr, negated: bool) -> Expr {
    let mut expr = parsed("EXISTS (SELECT 1 FROM (SELECT 1) WHERE true)");
    if let Expr::Exists { subquery: outer, negated: not } = &mut expr
        && let SetExpr::Select(select) = outer.body.as_mut()
    {
        *not = negated;
        select.selection = Some(condition);
        if let Some(TableFactor::Derived { subquery: inner, alias, .. }) =
            select.from.first_mut().map(|table| &mut table.relation)
        {
            **inner = subquery.clone();
            let columns = (0..columns)
                .map(|at| TableAliasColumnDef { name: column_name(at), data_type: None });
            let name = Ident::with_quote('"', ROW);
            *alias =
                Some(TableAlias { explicit: true, name, columns: columns.collect(), at: None });
        }
    }
    expr
}

/// The name of the subquery in FROM.
const ROW: &str = "a row";

fn column_name(at: usize) -> Ident {
    Ident::with_quote('"', format!("value {at}"))
}

fn parsed(text: &str) -> Expr {
    let parser = Parser::new(&Ours).try_with_sql(text);
    parser.and_then(|mut parser| parser.parse_expr()).expect("it parses")
}

fn chain(operator: BinaryOperator, parts: impl Iterator<Item = Expr>) -> Option<Expr> {
    parts.reduce(|all, part| binary(all, operator.clone(), part)).map(nested)
}

fn not(expr: Expr) -> Expr {
    nested(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(expr)) })
}
