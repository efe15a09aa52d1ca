//! Keys of GROUP BY that are casts of others.
//!
//! ```text
//!   SELECT a::DOUBLE, a … GROUP BY 1, 2    SELECT coalesce(a::DOUBLE), a … GROUP BY 1, 2
//! ```
//!
//! DataFusion (55.2) calls a cast by the name of what is cast, and wants the keys to have different
//! names. A call of one value is that value.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr,
    visit_expressions_mut,
};

use crate::sql::ast::{bare, call, folded};

/// Tells such keys of a query's own lists apart, wherever they stand in it.
pub(super) fn tell_apart(query: &mut Query) {
    let Some(casts) = in_body(&mut query.body) else { return };
    if let Some(order) = &mut query.order_by
        && let OrderByKind::Expressions(keys) = &mut order.kind
    {
        keys.iter_mut().for_each(|key| wrap(&mut key.expr, &casts));
    }
}

/// The casts of the one list that a body has, and nothing of several.
fn in_body(body: &mut SetExpr) -> Option<Vec<Expr>> {
    match body {
        SetExpr::Select(select) => Some(in_select(select)),
        SetExpr::SetOperation { left, right, .. } => {
            in_body(left);
            in_body(right);
            None
        }
        _ => None,
    }
}

fn in_select(select: &mut Select) -> Vec<Expr> {
    let is_grouped = !matches!(&select.group_by,
        GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if !is_grouped {
        return vec![];
    }
    let casts = casts_of_others(select);
    if casts.is_empty() {
        return casts;
    }
    for item in &mut select.projection {
        // It is called by what was asked for.
        if let SelectItem::UnnamedExpr(expr) = item
            && casts.contains(bare(expr))
        {
            let alias = Ident::with_quote('"', expr.to_string());
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            wrap(expr, &casts);
        }
    }
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        keys.iter_mut().for_each(|key| wrap(key, &casts));
    }
    let conditions = [&mut select.having, &mut select.qualify];
    conditions.into_iter().flatten().for_each(|expr| wrap(expr, &casts));
    casts
}

/// The casts among keys and items whose name another of them has.
fn casts_of_others(select: &Select) -> Vec<Expr> {
    let items = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    let mut all: Vec<&Expr> = items.map(bare).collect();
    if let GroupByExpr::Expressions(keys, _) = &select.group_by {
        for key in keys {
            match bare(key) {
                Expr::GroupingSets(sets) | Expr::Rollup(sets) | Expr::Cube(sets) => {
                    all.extend(sets.iter().flatten().map(bare));
                }
                key => all.push(key),
            }
        }
    }
    let mut casts: Vec<Expr> = vec![];
    for of in &all {
        let is_other =
            |other: &&Expr| other != of && is_alike(without_casts(other), without_casts(of));
        if matches!(of, Expr::Cast { .. }) && !casts.contains(of) && all.iter().any(is_other) {
            casts.push((*of).clone());
        }
    }
    casts
}

fn without_casts(expr: &Expr) -> &Expr {
    match bare(expr) {
        Expr::Cast { expr, .. } => without_casts(expr),
        other => other,
    }
}

/// Whether two expressions may have one name: a column's may have that of its table before it.
fn is_alike(one: &Expr, other: &Expr) -> bool {
    let column = |expr: &Expr| match expr {
        Expr::Identifier(name) => Some(folded(name)),
        Expr::CompoundIdentifier(names) => names.last().map(folded),
        _ => None,
    };
    match (column(one), column(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

fn wrap(expr: &mut Expr, casts: &[Expr]) {
    let _ = visit_expressions_mut(expr, |part| {
        if casts.contains(part) {
            *part = call("coalesce", vec![part.clone()]);
        }
        ControlFlow::<()>::Continue(())
    });
}
