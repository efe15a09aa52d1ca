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
use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr, VisitMut, VisitorMut};

/// The plan of a statement.
pub(in crate::session) async fn planned(state: &SessionState, statement: Statement) -> Result<LogicalPlan> {
    let mut named = statement.clone();
    match state.statement_to_plan(statement).await {
        Err(error) if is_of_names(&error) && name_subqueries(&mut named) => {
            // Where that was not the reason, the first error says more.
            state.statement_to_plan(named).await.map_err(|_| error)
        }
        planned => planned,
    }
}

/// Whether two columns of a list have one name.
fn is_of_names(error: &DataFusionError) -> bool {
    let text = error.strip_backtrace();
    text.contains("require unique expression names") || text.contains("which would be ambiguous")
}

/// Names the subqueries that have none; whether there are any.
fn name_subqueries(statement: &mut Statement) -> bool {
    let Statement::Statement(statement) = statement else { return false };
    let mut namer = Namer { named: false };
    let _ = statement.visit(&mut namer);
    namer.named
}

struct Namer {
    named: bool,
}

impl VisitorMut for Namer {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.set(&mut query.body);
        ControlFlow::Continue(())
    }
}

impl Namer {
    fn set(&mut self, body: &mut SetExpr) {
        match body {
            SetExpr::Select(select) => {
                for item in &mut select.projection {
                    if let SelectItem::UnnamedExpr(expr) = item
                        && is_subquery(expr)
                    {
                        let alias = Ident::with_quote('"', expr.to_string());
                        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                        self.named = true;
                    }
                }
            }
            SetExpr::SetOperation { left, right, .. } => {
                self.set(left);
                self.set(right);
            }
            _ => {}
        }
    }
}

fn is_subquery(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_subquery(inner),
        Expr::Subquery(_) | Expr::Exists { .. } => true,
        Expr::InSubquery { .. } => true,
        _ => false,
    }
}
