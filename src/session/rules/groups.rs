//! Parentheses in GROUP BY, which hold several keys.
//!
//! ```text
//!   GROUP BY (a, b), c              GROUP BY a, b, c
//!   GROUP BY ROLLUP (a), (a, b)     GROUP BY ROLLUP (a), a, b
//!   GROUP BY ROLLUP ((a, b), c)     GROUP BY GROUPING SETS ((a, b, c), (a, b), ())
//!   GROUP BY CUBE ((a, b), c)       GROUP BY GROUPING SETS ((a, b, c), (a, b), (c), ())
//!   GROUP BY ()                     GROUP BY GROUPING SETS (())
//! ```
//!
//! The planner (DataFusion 55.2) makes a struct of the first, which no column of the list is, and
//! knows no sets of several keys in ROLLUP and CUBE. Those beside one another it multiplies out.

use crate::sql::ast::bare;
use datafusion::sql::sqlparser::ast::Expr;

/// Keys in CUBE up to which it is written out: sets double with each.
const MOST: usize = 12;

pub(super) fn written_out(exprs: &mut Vec<Expr>) {
    let tuple = |expr: &Expr| matches!(bare(expr), Expr::Tuple(_));
    let of_several = |sets: &[Vec<Expr>]| sets.iter().any(|set| set.len() != 1);
    if !exprs.iter().any(|expr| match expr {
        Expr::Rollup(sets) | Expr::Cube(sets) => of_several(sets),
        expr => tuple(expr),
    }) {
        return;
    }
    let mut keys = vec![];
    for expr in std::mem::take(exprs) {
        match expr {
            Expr::Rollup(sets) if of_several(&sets) => {
                let prefix = |length: usize| sets[..length].concat();
                keys.push(Expr::GroupingSets((0..=sets.len()).rev().map(prefix).collect()));
            }
            Expr::Cube(sets) if of_several(&sets) && sets.len() <= MOST => {
                let subset = |chosen: usize| {
                    let is_in = |at: &usize| chosen >> at & 1 == 1;
                    (0..sets.len()).filter(is_in).flat_map(|at| sets[at].clone()).collect()
                };
                keys.push(Expr::GroupingSets((0..1 << sets.len()).map(subset).collect()));
            }
            expr if tuple(&expr) => {
                if let Expr::Tuple(inner) = bare(&expr) {
                    keys.extend(inner.iter().cloned());
                }
            }
            expr => keys.push(expr),
        }
    }
    // All rows are one group.
    if keys.is_empty() {
        keys.push(Expr::GroupingSets(vec![vec![]]));
    }
    *exprs = keys;
}
