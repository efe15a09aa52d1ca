//! Names of subqueries in select lists, and of columns that have one name.
//!
//! DataFusion (55.2) wants all names of a list to differ
//! (<https://github.com/apache/datafusion/issues/6543>), and calls much by the name of a part: a
//! subquery in a select list by its column's, a cast by what it casts, `(a)` and `+a` by `a`, and
//! EXISTS by no text of its own. So `SELECT a, (SELECT a FROM v LIMIT 1)`, `SELECT a, a::DOUBLE`
//! and `SELECT 1, 1` are refused. Such a statement is planned again with other names:
//!
//! ```text
//!   SELECT a, (a), t.*              columns are told apart until they are planned; in queries
//!                                   within, whose columns others name, the second is a_1, as in
//!                                   DuckDB, and so it is in set operations
//!   SELECT a, a::DOUBLE             AS "a::DOUBLE"
//!   SELECT sum(a), sum(a::DOUBLE)   sum(arrow_cast(a, 'Float64')): an aggregate is called by its
//!                                   argument below the list, too
//!   SELECT b AS a, a … ORDER BY a   ORDER BY 1: the first column of the name is meant
//!   SELECT a, 1 AS b … UNION        the columns of all parts have the names of the first part's
//!     SELECT b, 2 …
//! ```

mod order;

use std::ops::ControlFlow;

use datafusion::common::SchemaError;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, CastKind, Expr, Ident, OrderByKind, Query, Select, SelectItem, SetExpr, SetQuantifier,
    TableFactor, Value, Visit, VisitMut, Visitor, VisitorMut,
};

use crate::session::rules::using;
use crate::session::types::data_type;
use crate::sql::ast::{bare, call, folded};

/// The plan of a statement.
pub(in crate::session) async fn planned(
    state: &SessionState,
    statement: Statement,
) -> Result<LogicalPlan> {
    let kept = may_share_names(&statement).then(|| statement.clone());
    let (error, kept) = match (state.statement_to_plan(statement).await, kept) {
        (Err(error), Some(kept)) if is_of_names(&error) || is_numbered(&error) => (error, kept),
        (planned, _) => return planned,
    };
    for naming in [Naming::Twice, Naming::All] {
        let named = named(state, kept.clone(), naming);
        if let Ok(plan) = state.statement_to_plan(named).await {
            return Ok(plan);
        }
    }
    // Where names were not the reason, the first error says more.
    Err(error)
}

/// Which expressions of a select list get names, beside subqueries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// Those that come twice.
    Twice,
    /// All; and casts differ from what they cast.
    All,
}

/// Whether two columns of a list have one name.
fn is_of_names(error: &DataFusionError) -> bool {
    let text = error.strip_backtrace();
    ["require unique expression names", "which would be ambiguous", "contains duplicate"]
        .iter()
        .any(|part| text.contains(part))
}

/// Whether a column is missing whose name may be that of a second one: `a_1`.
fn is_numbered(error: &DataFusionError) -> bool {
    let DataFusionError::SchemaError(error, _) = error.find_root() else { return false };
    match error.as_ref() {
        SchemaError::FieldNotFound { field, .. } => {
            let number = field.name.rsplit_once('_').map(|(_, number)| number);
            number.is_some_and(|number| number.parse::<usize>().is_ok())
        }
        _ => false,
    }
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
fn named(state: &SessionState, mut statement: Statement, naming: Naming) -> Statement {
    if let Statement::Statement(inner) = &mut statement {
        if let ast::Statement::Query(query) = inner.as_mut() {
            // What a star stands for where that is not known stays, and so does the error.
            let _ = using::stars_written_out(state, query);
        }
        let _ = VisitMut::visit(inner, &mut ColumnNamer { naming, of_result: vec![] });
        if naming == Naming::All {
            let _ = VisitMut::visit(inner, &mut CastNamer { state });
        }
    }
    statement
}

/// Breaks off at a query in which two expressions may have one name: with more than columns of its
/// tables in its list, or with a condition or an order, which aggregates may be in.
struct Unnamed;

impl Visitor for Unnamed {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let items = &select.projection;
        let is_named = |item: &SelectItem| match item {
            SelectItem::UnnamedExpr(expr) => {
                matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
            }
            SelectItem::ExprWithAlias { .. } => false,
            _ => true,
        };
        let filtered = select.having.is_some() || select.qualify.is_some();
        match filtered || !items.iter().all(is_named) || using::is_any_twice(items) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let is_set = matches!(*query.body, SetExpr::SetOperation { .. });
        match is_set || query.order_by.is_some() {
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
        first_of_the_name(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.of_result.pop();
        if self.naming == Naming::All
            && let Some(names) = names_of_first(&query.body)
        {
            call_by(&mut query.body, &names);
        }
        order::list_columns_of_with(query);
        order::set_apart(query);
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        order::list_columns(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.projection.iter_mut().for_each(without_parentheses);
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

/// `(a)` is called `a`.
fn without_parentheses(item: &mut SelectItem) {
    if let SelectItem::UnnamedExpr(expr) = item
        && let name @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_)) = bare(expr)
    {
        *expr = name.clone();
    }
}

/// Has ORDER BY name the first of several columns of one name by its place, as DuckDB and SQLite
/// understand it.
fn first_of_the_name(query: &mut Query) {
    let (SetExpr::Select(select), Some(order)) = (query.body.as_mut(), &mut query.order_by) else {
        return;
    };
    select.projection.iter_mut().for_each(without_parentheses);
    let OrderByKind::Expressions(keys) = &mut order.kind else { return };
    let names: Vec<Option<String>> = select.projection.iter().map(using::output_name).collect();
    for key in keys {
        let Expr::Identifier(name) = &key.expr else { continue };
        let name = Some(folded(name));
        let mut places = (1..).zip(&names).filter(|(_, other)| **other == name);
        if let (Some((place, _)), Some(_)) = (places.next(), places.next()) {
            key.expr = Expr::value(Value::Number(place.to_string(), false));
        }
    }
}

/// The names of the columns of a set operation by place, if all of its first part's have one.
fn names_of_first(body: &SetExpr) -> Option<Vec<String>> {
    let SetExpr::SetOperation { set_quantifier, left, .. } = body else { return None };
    if !by_place(set_quantifier) {
        return None;
    }
    match left.as_ref() {
        SetExpr::Select(select) => select.projection.iter().map(using::output_name).collect(),
        other => names_of_first(other),
    }
}

fn by_place(quantifier: &SetQuantifier) -> bool {
    matches!(quantifier, SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None)
}

/// Gives the columns of all parts of a set operation these names.
fn call_by(body: &mut SetExpr, names: &[String]) {
    match body {
        SetExpr::SetOperation { set_quantifier, left, right, .. } if by_place(set_quantifier) => {
            call_by(left, names);
            call_by(right, names);
        }
        SetExpr::Select(select) if select.projection.len() == names.len() => {
            for (item, name) in select.projection.iter_mut().zip(names) {
                let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item
                else {
                    continue;
                };
                let alias = Ident::with_quote('"', name);
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
            }
        }
        _ => {}
    }
}

/// Writes casts as calls, which have names of their own, until DataFusion folds them.
struct CastNamer<'a> {
    state: &'a SessionState,
}

impl VisitorMut for CastNamer<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Cast { kind, expr: value, data_type: to, array: false, format: None } = expr
        else {
            return ControlFlow::Continue(());
        };
        let function = match kind {
            CastKind::Cast | CastKind::DoubleColon => "arrow_cast",
            CastKind::TryCast | CastKind::SafeCast => "arrow_try_cast",
        };
        if let Ok(to) = data_type(self.state, to.clone()) {
            let to = Expr::value(Value::SingleQuotedString(to.to_string()));
            *expr = call(
                function,
                vec![std::mem::replace(value.as_mut(), Expr::value(Value::Null)), to],
            );
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
