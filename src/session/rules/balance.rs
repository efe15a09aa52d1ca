//! Long chains of AND, of OR and of UNION ALL as balanced trees, before they are planned.
//!
//! ```text
//!   a OR b OR c OR d     parsed: ((a OR b) OR c) OR d     planned: (a OR b) OR (c OR d)
//! ```
//!
//! DataFusion asks each operator of a tree for its type, and each asks all operators below it, so
//! that the planning of a chain takes time by the square of its length and stack by its length.
//! Both operators are associative, nulls included, and the terms keep their order, by which one
//! guards those behind it.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, SetExpr, SetOperator, SetQuantifier, Value, Values, VisitMut,
    VisitorMut,
};

use crate::error::{Error, Result};
use crate::plan::{MOST_NESTED, too_nested};

/// Terms up to which a chain stays as it was typed.
const SHORT: usize = 16;

/// Balances the chains in a statement. Those that programs make are balanced by `plan/nesting.rs`.
///
/// # Errors
/// `Unsupported`, where operators that are no such chain follow one another to the left too often.
pub(crate) fn balance(statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Statement(statement) => match statement.visit(&mut Balancing) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        },
        _ => Ok(()),
    }
}

struct Balancing;

impl VisitorMut for Balancing {
    type Break = Error;

    /// Chains of UNION ALL, which are associative, too.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if !is_long_union(&query.body) {
            return ControlFlow::Continue(());
        }
        let (mut terms, mut next) = (vec![], std::mem::replace(&mut query.body, no_rows()));
        loop {
            match *next {
                SetExpr::SetOperation {
                    op: SetOperator::Union,
                    set_quantifier: SetQuantifier::All,
                    left,
                    right,
                } => {
                    terms.push(right);
                    next = left;
                }
                other => {
                    terms.push(Box::new(other));
                    break;
                }
            }
        }
        let count = terms.len();
        query.body = union(&mut terms.into_iter().rev(), count);
        ControlFlow::Continue(())
    }

    /// Before the terms are visited: what is visited is never deeper than may be.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Some(op) = junction(expr).filter(|op| is_long(expr, op)) {
            let mut terms = vec![];
            let mut rest = vec![taken(expr)];
            while let Some(next) = rest.pop() {
                match next {
                    Expr::BinaryOp { left: one, op: own, right: other } if own == op => {
                        rest.extend([*other, *one])
                    }
                    term => terms.push(term),
                }
            }
            let count = terms.len();
            *expr = tree(&mut terms.into_iter(), count, &op);
        } else if is_too_nested(expr) {
            // Dropped one by one, for all at once would take as much stack.
            let mut next = taken(expr);
            while let Some(left) = left(&mut next) {
                next = taken(left);
            }
            return ControlFlow::Break(too_nested());
        }
        ControlFlow::Continue(())
    }
}

fn taken(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

/// The operand that the parser read first: it reads operators behind it without end, but few within
/// parentheses.
fn left(expr: &mut Expr) -> Option<&mut Expr> {
    Some(match expr {
        Expr::BinaryOp { left, .. } | Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } => left,
        Expr::IsDistinctFrom(left, _) | Expr::IsNotDistinctFrom(left, _) => left,
        Expr::IsNull(inner) | Expr::IsNotNull(inner) => inner,
        Expr::IsTrue(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsNotFalse(inner) => inner,
        Expr::IsUnknown(inner) | Expr::IsNotUnknown(inner) => inner,
        Expr::Cast { expr: inner, .. } | Expr::AtTimeZone { timestamp: inner, .. } => inner,
        Expr::Between { expr: inner, .. } | Expr::InList { expr: inner, .. } => inner,
        Expr::InSubquery { expr: inner, .. } | Expr::CompoundFieldAccess { root: inner, .. } => {
            inner
        }
        Expr::Like { expr: inner, .. } | Expr::ILike { expr: inner, .. } => inner,
        Expr::SimilarTo { expr: inner, .. } | Expr::Collate { expr: inner, .. } => inner,
        _ => return None,
    })
}

fn is_too_nested(expr: &mut Expr) -> bool {
    let (mut next, mut depth) = (expr, 0);
    loop {
        if let Expr::CompoundFieldAccess { access_chain, .. } = next {
            depth += access_chain.len().saturating_sub(1);
        }
        let Some(inner) = left(next) else { return depth > MOST_NESTED };
        depth += 1;
        if depth > MOST_NESTED {
            return true;
        }
        next = inner;
    }
}

/// AND or OR.
fn junction(expr: &Expr) -> Option<BinaryOperator> {
    match expr {
        Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } => {
            Some(op.clone())
        }
        _ => None,
    }
}

/// Whether the operators that follow one another to the left are many. Chains that lean to the
/// right are typed with parentheses, of which the parser takes few.
fn is_long(expr: &Expr, op: &BinaryOperator) -> bool {
    let mut next = expr;
    for _ in 0..SHORT {
        match next {
            Expr::BinaryOp { left, op: own, .. } if own == op => next = left,
            _ => return false,
        }
    }
    true
}

fn is_union_all(body: &SetExpr) -> bool {
    let (of, all) = (SetOperator::Union, SetQuantifier::All);
    matches!(body, SetExpr::SetOperation { op, set_quantifier, .. } if *op == of && *set_quantifier == all)
}

/// Whether there are many of them one behind another. The planner looks for the places of all
/// before, at each.
fn is_long_union(body: &SetExpr) -> bool {
    let mut next = body;
    for _ in 0..SHORT {
        match next {
            SetExpr::SetOperation { left, .. } if is_union_all(next) => next = left,
            _ => return false,
        }
    }
    true
}

fn no_rows() -> Box<SetExpr> {
    Box::new(SetExpr::Values(Values { explicit_row: false, value_keyword: false, rows: vec![] }))
}

/// The next so many queries, as a tree of unions.
fn union(terms: &mut impl Iterator<Item = Box<SetExpr>>, count: usize) -> Box<SetExpr> {
    if count <= 1 {
        return terms.next().unwrap_or_else(no_rows);
    }
    let left = union(terms, count / 2);
    let right = union(terms, count - count / 2);
    let (op, set_quantifier) = (SetOperator::Union, SetQuantifier::All);
    Box::new(SetExpr::SetOperation { op, set_quantifier, left, right })
}

/// The next so many terms, as a tree.
fn tree(terms: &mut impl Iterator<Item = Expr>, count: usize, op: &BinaryOperator) -> Expr {
    if count <= 1 {
        return terms.next().unwrap_or(Expr::Value(Value::Null.into()));
    }
    let left = Box::new(tree(terms, count / 2, op));
    let right = Box::new(tree(terms, count - count / 2, op));
    Expr::BinaryOp { left, op: op.clone(), right }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn parsed(condition: &str) -> Statement {
        DFParser::parse_sql(&format!("SELECT 1 WHERE {condition}"))
            .expect("it parses")
            .pop_front()
            .expect("a statement")
    }

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
            _ => 0,
        }
    }

    struct Deepest(usize);

    impl VisitorMut for Deepest {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            self.0 = self.0.max(depth(expr));
            ControlFlow::Continue(())
        }
    }

    #[test]
    fn long_chains_are_as_deep_as_the_logarithm_of_their_length_and_keep_their_order() {
        for op in ["AND", "OR"] {
            let terms: Vec<String> = (0..5000).map(|at| format!("x{at}")).collect();
            let mut statement = parsed(&terms.join(&format!(" {op} ")));
            balance(&mut statement).expect("no deeper than a term");
            let text = statement.to_string();
            assert_eq!(text, format!("SELECT 1 WHERE {}", terms.join(&format!(" {op} "))));
            let Statement::Statement(inner) = &mut statement else { panic!("a query") };
            let mut deepest = Deepest(0);
            let _ = inner.visit(&mut deepest);
            assert_eq!(deepest.0, 13);
        }
    }

    #[test]
    fn short_chains_and_other_operators_stay() {
        for condition in ["a AND b AND c OR d", &["a"; 16].join(" OR "), &["a"; 40].join(" + ")] {
            let mut statement = parsed(condition);
            balance(&mut statement).expect("short");
            assert_eq!(statement, parsed(condition));
        }
    }

    #[test]
    fn operators_without_end_are_refused() {
        for behind in
            [" + a", " IS NULL", "::int", "[1]", " BETWEEN 1 AND 2", " IN (1)", " = 1", " || b"]
        {
            let mut statement = parsed(&("a".to_string() + &behind.repeat(MOST_NESTED + 1)));
            let error = balance(&mut statement).expect_err("too deep");
            assert!(error.to_string().contains("2000 operators"), "{error}");
            std::mem::forget(statement);
        }
    }
}
