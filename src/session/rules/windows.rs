//! Windows by name, written out where they are used, and what else of windows DataFusion's planner
//! (55.2) does not take.
//!
//! It looks for names in the select list alone, and elsewhere takes `sum(x) OVER w` for an
//! aggregate; of `OVER (w ORDER BY x)` it forgets `w`. It wants a window function in QUALIFY where
//! the select list has one, and a constant for rows that `lag` and `lead` do not find:
//!
//! ```text
//!   SELECT i, sum(k) OVER w … QUALIFY k > 1     … QUALIFY (k > 1) AND sum(k) OVER w IS NULL IS NOT NULL
//!   lag(v, 1, i) OVER w     CASE WHEN lag(true, 1) OVER w THEN lag(v, 1) OVER w ELSE i END
//! ```

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Distinct, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, NamedWindowDefinition, NamedWindowExpr,
    NullTreatment, OrderByKind, Query, Select, SelectItem, SetExpr, Value, Visit, VisitorMut,
    WindowSpec, WindowType,
};

use crate::error::{Error, ErrorKind};
use crate::session::outside_subqueries::{each_outside, each_outside_mut};
use crate::sql::ast::{bare, folded};

/// Visits a statement.
pub(super) struct Windows;

impl VisitorMut for Windows {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let SetExpr::Select(select) = query.body.as_ref() else { return ControlFlow::Continue(()) };
        let named = NamedWindows::of(select)?;
        let Some(order) = &mut query.order_by else { return ControlFlow::Continue(()) };
        match &mut order.kind {
            OrderByKind::Expressions(keys) => {
                keys.iter_mut().try_for_each(|key| named.put_into(&mut key.expr))
            }
            OrderByKind::All(_) => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let named = NamedWindows::of(select)?;
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                named.put_into(expr)?;
            }
        }
        if let Some(Distinct::On(exprs)) = &mut select.distinct {
            exprs.iter_mut().try_for_each(|expr| named.put_into(expr))?;
        }
        select.qualify.iter_mut().try_for_each(|expr| named.put_into(expr))?;
        select.having.iter_mut().try_for_each(|expr| named.put_into(expr))?;
        qualify_by_window(select);
        ControlFlow::Continue(())
    }
}

/// Puts a window function of the select list into QUALIFY, where that has none, so that it is true.
fn qualify_by_window(select: &mut Select) {
    let Some(qualify) = &mut select.qualify else { return };
    if window_in(qualify).is_some() {
        return;
    }
    let Some(window) = select.projection.iter().find_map(window_in) else { return };
    let nested = |expr: Expr| Box::new(Expr::Nested(Box::new(expr)));
    let is_null = nested(Expr::IsNull(Box::new(window)));
    let condition = std::mem::replace(qualify, Expr::value(Value::Null));
    *qualify = Expr::BinaryOp {
        left: nested(condition),
        op: BinaryOperator::And,
        right: nested(Expr::IsNotNull(is_null)),
    };
}

/// The first window function of a part of a query, outside of its subqueries.
fn window_in(of: &impl Visit) -> Option<Expr> {
    let found = each_outside(of, |expr| match expr {
        Expr::Function(function) if function.over.is_some() => ControlFlow::Break(expr.clone()),
        _ => ControlFlow::Continue(()),
    });
    found.break_value()
}

/// Whether an expression is a lag or lead whose value for rows that there are not is computed.
pub(super) fn is_computed(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function) if computed_default(function).is_some())
}

fn computed_default(function: &Function) -> Option<&Expr> {
    let [part] = &function.name.0[..] else { return None };
    let name = part.as_ident().map(folded)?;
    let FunctionArguments::List(list) = &function.args else { return None };
    let [_, _, FunctionArg::Unnamed(FunctionArgExpr::Expr(default))] = &list.args[..] else {
        return None;
    };
    let is_it = ["lag", "lead"].contains(&name.as_str()) && function.over.is_some();
    let constant = match bare(default) {
        Expr::UnaryOp { expr, .. } => matches!(bare(expr), Expr::Value(_)),
        other => matches!(other, Expr::Value(_)),
    };
    (is_it && !constant).then_some(default)
}

/// Writes such a one out.
pub(super) fn write_out(expr: &mut Expr) {
    let Expr::Function(function) = &*expr else { return };
    let Some(default) = computed_default(function).cloned() else { return };
    let FunctionArguments::List(list) = &function.args else { return };
    let with = |first: Option<Expr>| {
        let mut list = list.clone();
        list.args.truncate(2);
        if let Some(first) = first {
            list.args[0] = FunctionArg::Unnamed(FunctionArgExpr::Expr(first));
        }
        Expr::Function(Function { args: FunctionArguments::List(list), ..function.clone() })
    };
    let ignores = |treatment: &NullTreatment| *treatment == NullTreatment::IgnoreNulls;
    let in_list = list.clauses.iter().any(
        |clause| matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(of) if ignores(of)),
    );
    // A row that is found among those that are not null is not null.
    let there = match in_list || function.null_treatment.as_ref().is_some_and(ignores) {
        true => Expr::IsNotNull(Box::new(with(None))),
        false => with(Some(Expr::value(Value::Boolean(true)))),
    };
    *expr = Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition: there, result: with(None) }],
        else_result: Some(Box::new(default)),
    };
}

/// The windows of one SELECT, put in place of their names.
struct NamedWindows {
    windows: HashMap<String, WindowSpec>,
}

impl NamedWindows {
    fn of(select: &Select) -> ControlFlow<Error, NamedWindows> {
        let mut named = NamedWindows { windows: HashMap::new() };
        for NamedWindowDefinition(name, window) in &select.named_window {
            let window = match window {
                NamedWindowExpr::NamedWindow(other) => named.window(other)?.clone(),
                NamedWindowExpr::WindowSpec(spec) => named.written_out(spec)?,
            };
            if named.windows.insert(folded(name), window).is_some() {
                return failed(name, "is defined twice");
            }
        }
        ControlFlow::Continue(named)
    }

    fn put_into(&self, expr: &mut Expr) -> ControlFlow<Error> {
        each_outside_mut(expr, |part| {
            let Expr::Function(function) = part else { return ControlFlow::Continue(()) };
            let window = match &function.over {
                Some(WindowType::NamedWindow(name)) => self.window(name)?.clone(),
                Some(WindowType::WindowSpec(window)) => self.written_out(window)?,
                None => return ControlFlow::Continue(()),
            };
            function.over = Some(WindowType::WindowSpec(window));
            ControlFlow::Continue(())
        })
    }

    fn window(&self, name: &Ident) -> ControlFlow<Error, &WindowSpec> {
        match self.windows.get(&folded(name)) {
            Some(window) => ControlFlow::Continue(window),
            None => failed(name, "is not defined"),
        }
    }

    /// A window that may begin with the name of another.
    fn written_out(&self, window: &WindowSpec) -> ControlFlow<Error, WindowSpec> {
        let Some(name) = &window.window_name else { return ControlFlow::Continue(window.clone()) };
        let base = self.window(name)?;
        if !window.partition_by.is_empty() {
            return failed(name, "has its PARTITION BY, and can be given no other");
        }
        if !base.order_by.is_empty() && !window.order_by.is_empty() {
            return failed(name, "has its ORDER BY, and can be given no other");
        }
        if base.window_frame.is_some() {
            return failed(name, "has a frame, and cannot be the beginning of another");
        }
        let order_by = if base.order_by.is_empty() { &window.order_by } else { &base.order_by };
        ControlFlow::Continue(WindowSpec {
            window_name: None,
            partition_by: base.partition_by.clone(),
            order_by: order_by.clone(),
            window_frame: window.window_frame.clone(),
        })
    }
}

fn failed<T>(name: &Ident, why: &str) -> ControlFlow<Error, T> {
    let place = name.span.start;
    let location = (place.line > 0).then_some((place.line, place.column));
    let message = format!("the window {:?} {why}", name.value);
    ControlFlow::Break(ErrorKind::Plan { message, location }.into())
}
