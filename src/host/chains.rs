//! Chains of AND and of OR, as trees where they are long.

use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// Terms up to which a chain stays as it was made.
pub(crate) const SHORT: usize = 16;

/// The terms in their order, joined by AND or by OR: as a tree where they are many.
pub(crate) fn joined(terms: Vec<Expr>, op: Operator) -> Expr {
    let count = terms.len();
    let mut terms = terms.into_iter();
    if count > SHORT {
        return tree(&mut terms, count, op);
    }
    let one = |left, right| {
        Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
    };
    terms.reduce(one).unwrap_or_default()
}

/// The next so many terms, as a tree.
fn tree(terms: &mut impl Iterator<Item = Expr>, count: usize, op: Operator) -> Expr {
    if count <= 1 {
        return terms.next().unwrap_or_default();
    }
    let left = Box::new(tree(terms, count / 2, op));
    let right = Box::new(tree(terms, count - count / 2, op));
    Expr::BinaryExpr(BinaryExpr { left, op, right })
}
