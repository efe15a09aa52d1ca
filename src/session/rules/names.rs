//! Names of subqueries in select lists.
//!
//! DataFusion (55.2) calls a subquery in a select list what its column is called, and EXISTS by no
//! text of its own, and wants all names of a list to differ
//! (<https://github.com/apache/datafusion/issues/6543>): `SELECT sum(b), (SELECT sum(b) FROM t)`
//! is refused, and so is `SELECT a, (SELECT a FROM v LIMIT 1)`. Where that happens, such items
//! without a name are called by their text.

use std::ops::ControlFlow;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Select, SelectItem, Visit, VisitMut, Visitor, VisitorMut,
};

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

/// The statement with names for the subqueries that have none; `None` if there are none such.
fn named(statement: &Statement) -> Option<Statement> {
    let Statement::Statement(inner) = statement else { return None };
    if Visit::visit(inner, &mut Unnamed).is_continue() {
        return None;
    }
    let mut named = statement.clone();
    if let Statement::Statement(inner) = &mut named {
        let _ = VisitMut::visit(inner, &mut SubqueryNamer);
    }
    Some(named)
}

/// Breaks off at a subquery in a select list without a name.
struct Unnamed;

impl Visitor for Unnamed {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        match select.projection.iter().any(is_unnamed_subquery) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Names those of a select list by their texts, in which those within have their names.
struct SubqueryNamer;

impl VisitorMut for SubqueryNamer {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && is_subquery(expr)
            {
                let alias = Ident::with_quote('"', expr.to_string());
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
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
