//! Aliases of a select list that are named beside it: what they stand for is put in their place.
//!
//! ```text
//!   SELECT a + 1 AS b, b * 2 AS c FROM t WHERE b > 3
//!   SELECT a + 1 AS b, (a + 1) * 2 AS c FROM t WHERE (a + 1) > 3
//! ```
//!
//! A column of the query's tables that has the name is meant rather than the alias, and of several
//! aliases of one name the last, as in DuckDB. The planner knows aliases in GROUP BY, HAVING,
//! QUALIFY and ORDER BY.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::Volatility;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, Select, SelectItem, Visit, VisitMut, Visitor, VisitorMut,
};

use super::scope::{hide_fields, show_fields};
use crate::error::{ErrorKind, Result};
use crate::session::outside_subqueries::any_outside;
use crate::sql::ast::{folded, known};

/// Whether an item of the list, or WHERE, may name an alias that stands before it.
pub(super) fn are_named(select: &Select) -> bool {
    let mut aliases = HashSet::new();
    for item in &select.projection {
        let (expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias)),
            _ => continue,
        };
        if !aliases.is_empty() && names(expr, &aliases) {
            return true;
        }
        aliases.extend(alias.map(folded));
    }
    !aliases.is_empty() && select.selection.as_ref().is_some_and(|expr| names(expr, &aliases))
}

fn names(expr: &Expr, aliases: &HashSet<String>) -> bool {
    any_outside(
        expr,
        |part| matches!(part, Expr::Identifier(name) if aliases.contains(&folded(name))),
    )
}

/// Writes them out in a select list and WHERE. `columns`: the names that the tables have.
///
/// # Errors
/// An alias of what is another value each time.
pub(super) fn write_out(
    state: &SessionState,
    select: &mut Select,
    columns: &HashSet<&str>,
) -> Result<()> {
    let mut aliases = Aliases { state, meant: HashMap::new(), depth: 0, parameters: vec![] };
    for item in &mut select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let before = expr.clone();
                aliases.put_into(expr)?;
                if *expr != before {
                    // It is called by what was asked for.
                    let alias = match &before {
                        Expr::Identifier(name) => Ident::with_quote('"', folded(name)),
                        other => Ident::with_quote('"', other.to_string()),
                    };
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                }
            }
            SelectItem::ExprWithAlias { expr, alias } => {
                aliases.put_into(expr)?;
                let name = folded(alias);
                if !columns.contains(name.as_str()) {
                    aliases.meant.insert(name, expr.clone());
                }
            }
            _ => {}
        }
    }
    select.selection.iter_mut().try_for_each(|condition| aliases.put_into(condition))
}

struct Aliases<'a> {
    state: &'a SessionState,
    /// What those before stand for.
    meant: HashMap<String, Expr>,
    /// Queries around the expression: within them names are of their tables.
    depth: usize,
    /// Parameters of lambdas around.
    parameters: Vec<Vec<String>>,
}

impl Aliases<'_> {
    fn put_into(&mut self, expr: &mut Expr) -> Result<()> {
        if self.meant.is_empty() {
            return Ok(());
        }
        match VisitMut::visit(expr, self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(name) => {
                let location = known(name.span.start);
                let message = format!(
                    "{name} is an alias of what is another value each time, and cannot be named \
                     beside it: a query in FROM keeps its value"
                );
                Err(ErrorKind::Plan { message, location }.into())
            }
        }
    }
}

impl VisitorMut for Aliases<'_> {
    type Break = Ident;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Ident> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Ident> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Ident> {
        match expr {
            Expr::Lambda(lambda) => {
                let names = lambda.params.iter().map(|parameter| folded(&parameter.name));
                self.parameters.push(names.collect());
            }
            other => hide_fields(other),
        }
        ControlFlow::Continue(())
    }

    /// Behind what is within, so that what an alias stands for is not looked at again.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Ident> {
        match expr {
            Expr::Lambda(_) => {
                self.parameters.pop();
            }
            Expr::Identifier(name) if self.depth == 0 => {
                let alias = folded(name);
                if self.parameters.iter().flatten().any(|parameter| *parameter == alias) {
                    return ControlFlow::Continue(());
                }
                let Some(meant) = self.meant.get(&alias) else { return ControlFlow::Continue(()) };
                if Visit::visit(meant, &mut Draws { state: self.state }).is_break() {
                    return ControlFlow::Break(name.clone());
                }
                *expr = match meant {
                    Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) => {
                        meant.clone()
                    }
                    other => Expr::Nested(Box::new(other.clone())),
                };
            }
            other => show_fields(other),
        }
        ControlFlow::Continue(())
    }
}

/// Breaks off at a function that yields another value each time.
struct Draws<'a> {
    state: &'a SessionState,
}

impl Visitor for Draws<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let [part] = &function.name.0[..] else { return ControlFlow::Continue(()) };
        let name = part.as_ident().map(folded).unwrap_or_default();
        match self.state.scalar_functions().get(&name) {
            Some(function) if function.signature().volatility == Volatility::Volatile => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
