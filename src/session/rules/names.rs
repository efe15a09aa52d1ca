//! Names of subqueries in select lists, and of columns that have one name.
//!
//! DataFusion (55.2) calls a subquery in a select list what its column is called, and EXISTS by no
//! text of its own, and wants all names of a list to differ
//! (<https://github.com/apache/datafusion/issues/6543>): `SELECT sum(b), (SELECT sum(b) FROM t)`
//! is refused, and so is `SELECT a, (SELECT a FROM v LIMIT 1)`. Where that happens, such items
//! without a name are called by their text. Where it is so of `SELECT 1, 1`, `SELECT 1 AS a, 2 AS
//! a` and `SELECT *, a`, columns that have one name are told apart until they are planned. In
//! queries within, whose columns others name, the second is `a_1`, as in DuckDB; so it is in set
//! operations, whose columns have no table's name to be told apart by.

use std::ops::ControlFlow;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, Select, SelectItem, SetExpr, Visit, VisitMut, Visitor, VisitorMut,
};

use super::using;

/// The plan of a statement.
pub(in crate::session) async fn planned(
    state: &SessionState,
    statement: Statement,
) -> Result<LogicalPlan> {
    let named = named(&statement);
    match (state.statement_to_plan(statement).await, named) {
        // Where that was not the reason, the first error says more.
        (Err(error), Some(named)) if is_of_names(&error) => {
            state.statement_to_plan(named).await.map_err(|_| error)
        }
        (planned, _) => planned,
    }
}

/// Whether two columns of a list have one name.
fn is_of_names(error: &DataFusionError) -> bool {
    let text = error.strip_backtrace();
    text.contains("require unique expression names") || text.contains("which would be ambiguous")
}

/// The statement with names for the subqueries that have none, and with different names for columns
/// that have one; `None` if there are none such.
fn named(statement: &Statement) -> Option<Statement> {
    let Statement::Statement(inner) = statement else { return None };
    if Visit::visit(inner, &mut Unnamed).is_continue() {
        return None;
    }
    let mut named = statement.clone();
    if let Statement::Statement(inner) = &mut named {
        let _ = VisitMut::visit(inner, &mut SubqueryNamer { of_result: vec![] });
    }
    Some(named)
}

/// Breaks off at a select list with a subquery without a name, or where a name comes twice.
struct Unnamed;

impl Visitor for Unnamed {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let items = &select.projection;
        match items.iter().any(is_unnamed_subquery) || using::is_any_twice(items) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Names those of a select list by their texts, in which those within have their names.
struct SubqueryNamer {
    /// Of the queries around, whether the list of each is the result's.
    of_result: Vec<bool>,
}

impl VisitorMut for SubqueryNamer {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let is_one = matches!(*query.body, SetExpr::Select(_));
        self.of_result.push(is_one && self.of_result.is_empty());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.of_result.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && is_subquery(expr)
            {
                let alias = Ident::with_quote('"', expr.to_string());
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
        }
        match self.of_result.last() {
            _ if !using::is_any_twice(&select.projection) => {}
            Some(false) => using::number(&mut select.projection),
            _ => using::tell_all_apart(&mut select.projection),
        }
        ControlFlow::Continue(())
    }
}

fn is_unnamed_subquery(item: &SelectItem) -> bool {
    matches!(item, SelectItem::UnnamedExpr(expr) if is_subquery(expr))
}

fn is_subquery(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_subquery(inner),
        Expr::Subquery(_) | Expr::Exists { .. } => true,
        Expr::InSubquery { .. } => true,
        _ => false,
    }
}
