//! Grouping sets as DataFusion's planner (55.2) takes them: of expressions rather than of numbers
//! of columns, and with each key once.
//!
//! ```text
//!   SELECT k + 1 … GROUP BY ROLLUP (1)       GROUP BY ROLLUP (k + 1)
//!   GROUP BY ROLLUP (g, k, k)                GROUP BY GROUPING SETS ((g, k), (g, k), (g), ())
//! ```

use crate::sql::ast::bare;
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Select, SelectItem, Value};

/// Most keys of a CUBE that is written out.
const MOST_OF_CUBE: usize = 12;

/// Writes out the grouping sets of a SELECT.
pub(super) fn write_out(select: &mut Select) {
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else { return };
    for key in keys {
        let (Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets)) = key else {
            continue;
        };
        for part in sets.iter_mut().flatten() {
            if let Some(expr) = numbered(part, &select.projection) {
                *part = expr;
            }
        }
        if let Some(sets) = each_once(key) {
            *key = Expr::GroupingSets(sets);
        }
    }
}

/// The expression of the column whose number a key is.
fn numbered(key: &Expr, items: &[SelectItem]) -> Option<Expr> {
    let Expr::Value(value) = bare(key) else { return None };
    let Value::Number(number, _) = &value.value else { return None };
    let at = number.parse::<usize>().ok()?.checked_sub(1)?;
    // A star stands for columns whose number is not known.
    let is_star = |item: &SelectItem| {
        matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
    };
    match items.get(at)? {
        _ if items[..at].iter().any(is_star) => None,
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            Some(expr.clone())
        }
        _ => None,
    }
}

/// The sets that a key stands for, each of which has a key once; `None` where they are so already.
fn each_once(key: &Expr) -> Option<Vec<Vec<Expr>>> {
    let (Expr::Rollup(parts) | Expr::Cube(parts) | Expr::GroupingSets(parts)) = key else {
        return None;
    };
    let all: Vec<&Expr> = match key {
        Expr::GroupingSets(_) => {
            let twice = parts.iter().any(|set| distinct(set.iter()).len() < set.len());
            return twice.then(|| parts.iter().map(|set| distinct(set.iter())).collect());
        }
        _ => parts.iter().flatten().collect(),
    };
    if distinct(all.iter().copied()).len() == all.len() {
        return None;
    }
    let united = |of: &[&Vec<Expr>]| distinct(of.iter().flat_map(|part| part.iter()));
    let parts: Vec<&Vec<Expr>> = parts.iter().collect();
    match key {
        Expr::Rollup(_) => Some((0..=parts.len()).rev().map(|end| united(&parts[..end])).collect()),
        _ if parts.len() <= MOST_OF_CUBE => {
            let set = |bits: usize| {
                let chosen = (0..parts.len()).filter(|at| bits & (1 << at) != 0);
                united(&chosen.map(|at| parts[at]).collect::<Vec<_>>())
            };
            Some((0..1usize << parts.len()).rev().map(set).collect())
        }
        _ => None,
    }
}

fn distinct<'e>(keys: impl Iterator<Item = &'e Expr>) -> Vec<Expr> {
    let mut found: Vec<Expr> = vec![];
    for key in keys {
        if !found.iter().any(|known| bare(known) == bare(key)) {
            found.push(key.clone());
        }
    }
    found
}
