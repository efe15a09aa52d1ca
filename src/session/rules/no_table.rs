//! `(SELECT sum(o.a))`: all names in a subquery without FROM are of the query around it, and so is
//! an aggregate of them, in SQL's standard as in DuckDB and PostgreSQL. DataFusion's planner (55.2)
//! takes it for the subquery's own, of its one row.
//!
//! ```text
//!   SELECT (SELECT sum(o.a)) FROM o    ─▶    SELECT (sum(o.a)) FROM o
//! ```

use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, GroupByExpr, Query, Select, SelectItem, SetExpr, UnaryOperator,
    Value,
};

use crate::session::outside_subqueries::any_outside;
use crate::sql::ast::{binary, nested};

/// Writes the value for such a subquery, if aggregates of columns are all that it calls for.
pub(super) fn write_out(state: &SessionState, expr: &mut Expr) {
    let query = match &*expr {
        Expr::Subquery(query) => query,
        Expr::InSubquery { subquery, .. } | Expr::Exists { subquery, .. } => subquery,
        _ => return,
    };
    let Some(value) = only_value(query).filter(|value| is_of_outside(state, value)) else { return };
    let value = nested(value.clone());
    *expr = match std::mem::replace(expr, Expr::value(Value::Null)) {
        Expr::InSubquery { expr, negated, .. } => Expr::InList { expr, list: vec![value], negated },
        // It has its one row, whatever the value is.
        Expr::Exists { negated, .. } => {
            let is_null = Expr::IsNull(Box::new(value.clone()));
            let is_any = binary(is_null, BinaryOperator::Or, Expr::IsNotNull(Box::new(value)));
            match negated {
                true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(nested(is_any)) },
                false => nested(is_any),
            }
        }
        _ => value,
    };
}

/// Whether an expression calls for aggregates, and each is of columns.
fn is_of_outside(state: &SessionState, value: &Expr) -> bool {
    let is_aggregate = |expr: &Expr| match expr {
        Expr::Function(call) => {
            call.over.is_none()
                && state.aggregate_functions().contains_key(&call.name.to_string().to_lowercase())
        }
        _ => false,
    };
    let is_own = |expr: &Expr| match expr {
        Expr::Function(call) => call.over.is_some() || is_aggregate(expr) && !names_columns(call),
        _ => false,
    };
    any_outside(value, is_aggregate) && !any_outside(value, is_own)
}

fn names_columns(call: &Function) -> bool {
    let is_name = |expr: &Expr| matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
    any_outside(&call.args, is_name)
}

/// The value of a subquery that is nothing but a select list of one.
fn only_value(query: &Query) -> Option<&Expr> {
    let bare = query.with.is_none()
        && query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.pipe_operators.is_empty();
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let Select { projection, from, selection, having, group_by, qualify, distinct, .. } =
        select.as_ref();
    let grouped = !matches!(group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let more = selection.is_some() || having.is_some() || qualify.is_some() || distinct.is_some();
    match &projection[..] {
        [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }]
            if bare && from.is_empty() && !grouped && !more =>
        {
            Some(value)
        }
        _ => None,
    }
}
