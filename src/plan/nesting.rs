//! Long chains of AND and of OR in expressions that programs make, as balanced trees, and
//! expressions that are too deep to be planned. Those of statements are balanced before they are
//! planned (`session/rules/balance.rs`).
//!
//! ```text
//!   ((a OR b) OR c) OR d     ─▶     (a OR b) OR (c OR d)
//! ```
//!
//! Who looks at an expression recurses as deep as it is. Nothing here does before the depth is
//! known.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::error::{Error, Result};
use crate::host::{SHORT, joined};

/// Operators one within another up to which expressions are planned: in time by the square of that,
/// and in the stack that [`crate::Session`] plans on, in whose 64 MiB 2,000 find room without
/// optimisations.
pub(crate) const MOST_NESTED: usize = 2000;

/// That an expression is too deep.
pub(crate) fn too_nested() -> Error {
    Error::unsupported(
        format!("an expression with more than {MOST_NESTED} operators one within another"),
        "planning takes time by the square of that; chains of AND and of OR may be of any length",
    )
}

/// The expressions with their chains balanced.
///
/// # Errors
/// `Unsupported`, where one has more than [`MOST_NESTED`] operators one within another.
pub(crate) fn balanced(exprs: Vec<Expr>) -> Result<Vec<Expr>> {
    if exprs.iter().any(is_too_nested) {
        exprs.into_iter().for_each(take_apart);
        return Err(too_nested());
    }
    exprs.into_iter().map(balance).collect()
}

/// AND or OR, where that is the operator.
fn junction(expr: &Expr) -> Option<Operator> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => Some(*op),
        _ => None,
    }
}

/// A chain of AND or of OR counts once.
fn is_too_nested(expr: &Expr) -> bool {
    let mut rest = vec![(expr, 0, None)];
    while let Some((expr, above, within)) = rest.pop() {
        let own = junction(expr);
        let depth = above + usize::from(own.is_none() || own != within);
        if depth > MOST_NESTED {
            return true;
        }
        let _ = expr.apply_children(|child| {
            rest.push((child, depth, own));
            Ok(TreeNodeRecursion::Continue)
        });
    }
    false
}

/// Drops an expression, which by itself would recurse.
fn take_apart(expr: Expr) {
    let mut rest = vec![expr];
    while let Some(expr) = rest.pop() {
        let _ = expr.map_children(|child| {
            rest.push(child);
            Ok(Transformed::yes(Expr::default()))
        });
    }
}

fn balance(expr: Expr) -> Result<Expr> {
    let Some(op) = junction(&expr).filter(|op| is_long(&expr, *op)) else {
        return Ok(expr.map_children(|child| Ok(Transformed::yes(balance(child)?)))?.data);
    };
    let (mut terms, mut rest) = (vec![], vec![expr]);
    while let Some(next) = rest.pop() {
        match next {
            Expr::BinaryExpr(BinaryExpr { left, op: own, right }) if own == op => {
                rest.extend([*right, *left])
            }
            term => terms.push(balance(term)?),
        }
    }
    Ok(joined(terms, op))
}

/// The conditions in their order, joined by AND: as a tree where they are many. DataFusion's function
/// of this name makes a chain, which is as deep as it is long.
pub(crate) fn conjunction(conditions: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    let conditions: Vec<_> = conditions.into_iter().collect();
    (!conditions.is_empty()).then(|| joined(conditions, Operator::And))
}

/// Whether the chain has more than a few terms, whichever way it leans.
fn is_long(expr: &Expr, op: Operator) -> bool {
    let (mut terms, mut rest) = (0, vec![expr]);
    while let Some(next) = rest.pop() {
        match next {
            Expr::BinaryExpr(binary) if binary.op == op => {
                rest.extend([&*binary.right, &*binary.left])
            }
            _ => terms += 1,
        }
        if terms + rest.len() > SHORT {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::ops::Not;

    use datafusion::prelude::{col, lit};

    use super::*;

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryExpr(binary) => 1 + depth(&binary.left).max(depth(&binary.right)),
            _ => 0,
        }
    }

    fn one(expr: Expr) -> Result<Expr> {
        Ok(balanced(vec![expr])?.remove(0))
    }

    #[test]
    fn long_chains_are_balanced_whichever_way_they_lean_and_keep_their_order() {
        let terms = || (0..20_000).map(|at| col("x").eq(lit(at)));
        let left = terms().reduce(Expr::or).expect("terms");
        let right = terms().rev().reduce(|all, term| term.or(all)).expect("terms");
        let text = |expr: &Expr| expr.to_string();
        let expected: Vec<String> = terms().map(|term| text(&term)).collect();
        for chain in [left, right] {
            let whole = one(chain).expect("no deeper than a term");
            assert_eq!(depth(&whole), 1 + 15);
            assert_eq!(text(&whole), expected.join(" OR "));
        }
    }

    #[test]
    fn short_chains_and_other_operators_stay() {
        let short = (0..16).map(|at| col(format!("c{at}"))).reduce(Expr::and).expect("terms");
        assert_eq!(one(short.clone()).expect("short"), short);
        let sum =
            (0..100).map(|at| col(format!("c{at}"))).reduce(|sum, term| sum + term).expect("terms");
        assert_eq!(one(sum.clone()).expect("not too deep"), sum);
        // Within other operators, too.
        let within = lit(1).eq(lit(2)).or(col("a").and(col("b"))).is_null().not();
        assert_eq!(one(within.clone()).expect("short"), within);
    }

    #[test]
    fn expressions_that_are_too_deep_are_refused() {
        for terms in [MOST_NESTED + 2, 300_000] {
            let sum = (0..terms).map(|_| col("a")).reduce(|sum, term| sum + term).expect("terms");
            let error = one(sum).expect_err("too deep");
            assert!(error.to_string().contains("2000 operators"), "{error}");
        }
    }
}
