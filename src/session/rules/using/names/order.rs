//! Aliases that have the name of a column that ORDER BY names by its table.
//!
//! DataFusion (55.2) sorts by columns that a select list lacks by adding them to it, and takes no
//! column `t.a` beside one that is called `a`: `SELECT b AS a FROM t ORDER BY t.a` was an error. Such
//! an alias is marked until it is planned (`using/scope.rs`). Queries around it find the column by
//! its name, which the alias of the table lists.
//!
//! ```text
//!   FROM (SELECT b AS a FROM t ORDER BY t.a LIMIT 1) l
//!   FROM (SELECT b AS "\u{1}a" FROM t ORDER BY t.a LIMIT 1) l(a)
//! ```

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef,
    TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

use crate::session::rules::using::{hide_fields, is_marked, marked, show_fields, unmarked_name};
use crate::sql::ast::folded;

/// Marks the aliases of a query that have the name of a column that its order is of, and where the
/// order is of them.
pub(super) fn set_apart(query: &mut Query) {
    let names = captured(query);
    if names.is_empty() {
        return;
    }
    if let SetExpr::Select(select) = &mut *query.body {
        for item in &mut select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item
                && names.contains(&folded(alias))
            {
                *alias = marked(&folded(alias));
            }
        }
    }
    if let Some(order) = &mut query.order_by {
        let _ = VisitMut::visit(order, &mut OrderMarker { names, depth: 0 });
    }
}

/// Lists the names of a table's columns that are marked in its query.
pub(super) fn list_columns(factor: &mut TableFactor) {
    if let TableFactor::Derived { subquery, alias, .. } = factor
        && let Some(names) = listed(subquery)
    {
        let alias = alias.get_or_insert_with(|| TableAlias {
            explicit: true,
            name: Ident::with_quote('"', "a query"),
            columns: vec![],
            at: None,
        });
        if alias.columns.is_empty() {
            alias.columns = names;
        }
    }
}

/// Lists the names of columns that are marked in queries of WITH.
pub(super) fn list_columns_of_with(query: &mut Query) {
    for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
        if let Some(names) = listed(&cte.query)
            && cte.alias.columns.is_empty()
        {
            cte.alias.columns = names;
        }
    }
}

/// The columns of a query that has marked ones, where all have names.
fn listed(query: &Query) -> Option<Vec<TableAliasColumnDef>> {
    let SetExpr::Select(select) = &*query.body else { return None };
    let is_marked = |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if is_marked(alias));
    if !select.projection.iter().any(is_marked) {
        return None;
    }
    let column = |item: &SelectItem| {
        let name = match item {
            SelectItem::ExprWithAlias { alias, .. } => unmarked_name(alias),
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => name.clone(),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.last()?.clone(),
            SelectItem::UnnamedExpr(expr) => Ident::with_quote('"', expr.to_string()),
            _ => return None,
        };
        Some(TableAliasColumnDef { name, data_type: None })
    };
    select.projection.iter().map(column).collect()
}

/// The aliases of a query's list that its order captures.
fn captured(query: &Query) -> HashSet<String> {
    let (SetExpr::Select(select), Some(order)) = (&*query.body, &query.order_by) else {
        return HashSet::new();
    };
    let aliases = aliases(select);
    if aliases.is_empty() || !matches!(order.kind, OrderByKind::Expressions(_)) {
        return HashSet::new();
    }
    let mut columns = OrderColumns { found: HashSet::new(), depth: 0 };
    let _ = Visit::visit(order, &mut columns);
    columns.found.intersection(&aliases).cloned().collect()
}

/// The names that a list gives to what has another.
fn aliases(select: &Select) -> HashSet<String> {
    let alias = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(folded(alias)),
        _ => None,
    };
    select.projection.iter().filter_map(alias).collect()
}

/// Finds the columns that an order names by their tables.
struct OrderColumns {
    found: HashSet<String>,
    depth: usize,
}

impl Visitor for OrderColumns {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && self.depth == 0
        {
            self.found.extend(parts.last().map(folded));
        }
        ControlFlow::Continue(())
    }
}

/// Marks names of an order that are of the list.
struct OrderMarker {
    names: HashSet<String>,
    depth: usize,
}

impl VisitorMut for OrderMarker {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(name) if self.depth == 0 && self.names.contains(&folded(name)) => {
                *name = marked(&folded(name));
            }
            other => hide_fields(other),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        show_fields(expr);
        ControlFlow::Continue(())
    }
}
