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
//!
//! Expressions that differ may have one name, too, as `1.5, 1.5e0` and `strpos(s, 'p'),
//! position('p' IN s)` have: where that is left, all without a name are called by their text.

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
    let kept = may_share_names(&statement).then(|| statement.clone());
    let (error, kept) = match (state.statement_to_plan(statement).await, kept) {
        (Err(error), Some(kept)) if is_of_names(&error) => (error, kept),
        (planned, _) => return planned,
    };
    // Where that was not the reason, the first error says more.
    match state.statement_to_plan(named(kept.clone(), Naming::Twice)).await {
        Err(again) if is_of_names(&again) => {
            state.statement_to_plan(named(kept, Naming::All)).await.map_err(|_| error)
        }
        planned => planned.map_err(|_| error),
    }
}

/// Which expressions of a select list get names, beside subqueries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// Those that come twice.
    Twice,
    All,
}

/// Whether two columns of a list have one name.
fn is_of_names(error: &DataFusionError) -> bool {
    let text = error.strip_backtrace();
    text.contains("require unique expression names") || text.contains("which would be ambiguous")
}

/// Whether columns of a select list may have one name, or none that DataFusion knows.
fn may_share_names(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(inner) => Visit::visit(inner, &mut Unnamed).is_break(),
        _ => false,
    }
}

/// The statement with names for the subqueries that have none, and with different names for columns
/// that have one.
fn named(mut statement: Statement, naming: Naming) -> Statement {
    if let Statement::Statement(inner) = &mut statement {
        let _ = VisitMut::visit(inner, &mut ColumnNamer { naming, of_result: vec![] });
    }
    statement
}

/// Breaks off at a select list with a subquery without a name, with several expressions that have
/// none, or where a name comes twice.
struct Unnamed;

impl Visitor for Unnamed {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let items = &select.projection;
        let unnamed = items.iter().filter(|item| using::is_unnamed(item)).count();
        match unnamed > 1 || items.iter().any(is_unnamed_subquery) || using::is_any_twice(items) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Names those of a select list by their texts, in which those within have their names.
struct ColumnNamer {
    naming: Naming,
    /// Of the queries around, whether the list of each is the result's.
    of_result: Vec<bool>,
}

impl VisitorMut for ColumnNamer {
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
            let is_named =
                is_unnamed_subquery(item) || self.naming == Naming::All && using::is_unnamed(item);
            if let SelectItem::UnnamedExpr(expr) = item
                && is_named
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
