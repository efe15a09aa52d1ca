//! Windows by name, written out where they are used.
//!
//! DataFusion's planner (55.2) looks for names in the select list alone, and elsewhere takes
//! `sum(x) OVER w` for an aggregate; of `OVER (w ORDER BY x)` it forgets `w`.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Ident, NamedWindowDefinition, NamedWindowExpr, OrderByKind, Query, Select,
    SelectItem, SetExpr, VisitorMut, WindowSpec, WindowType,
};

use crate::error::{Error, ErrorKind};
use crate::session::outside::each_outside_mut;

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
        select.having.iter_mut().try_for_each(|expr| named.put_into(expr))
    }
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

/// A name as SQL folds it.
fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

fn failed<T>(name: &Ident, why: &str) -> ControlFlow<Error, T> {
    let place = name.span.start;
    let location = (place.line > 0).then_some((place.line, place.column));
    let message = format!("the window {:?} {why}", name.value);
    ControlFlow::Break(ErrorKind::Plan { message, location }.into())
}
