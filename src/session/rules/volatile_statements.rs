//! Volatile functions in statements: what of them is one value, and what is several.
//!
//! Queries of a WITH that call them have rows that all of their readers see alike.
//!
//! DataFusion's planner (55.2) puts the plan of such a query wherever it is read. So that these are
//! known for one, its rows get a name that nothing else has:
//!
//! ```text
//!   WITH c AS (SELECT random() AS r)     WITH c AS (SELECT * FROM (SELECT random() AS r)
//!                                                   AS "rows drawn once 7")
//! ```
//!
//! A view that has such rows of its own has one plan for all that read it. So each reading gets other
//! numbers, as it draws rows of its own.
//!
//! `AS NOT MATERIALIZED` leaves each reader rows of its own (`syntax/materialized.rs`).

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, SubqueryAlias, Volatility};
use datafusion::sql::sqlparser::ast::{
    CteAsMaterialized, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    Query, SelectItem, SetExpr, Statement, TableFactor, Value, Visit, VisitMut, VisitorMut,
    visit_expressions, visit_expressions_mut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::any_node;
use super::dialect::Ours;
use super::synonyms;
use crate::host::once_a_row::{DRAWN_ALIKE, number};
use crate::query::SharedRows;
use crate::sql::ast::{call, folded};

/// The names of rows that are drawn once, and their numbers.
pub(in crate::session) type Drawn = HashMap<String, u64>;

/// Gives names to such rows of a statement.
pub(in crate::session) fn named(state: &SessionState, statement: &mut Statement) -> Drawn {
    let mut namer = Namer { state, drawn: HashMap::new() };
    let _ = VisitMut::visit(statement, &mut namer);
    namer.drawn
}

struct Namer<'a> {
    state: &'a SessionState,
    drawn: Drawn,
}

impl VisitorMut for Namer<'_> {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let Some(with) = &mut query.with else { return ControlFlow::Continue(()) };
        for cte in &mut with.cte_tables {
            // One that reads itself is a set operation.
            let may_read_itself =
                with.recursive && matches!(*cte.query.body, SetExpr::SetOperation { .. });
            if may_read_itself
                || cte.materialized == Some(CteAsMaterialized::NotMaterialized)
                || !calls_volatile(self.state, &*cte.query)
            {
                continue;
            }
            let number = SharedRows::number();
            let name = format!("rows drawn once {number}");
            if let Some(around) = around(&name, &cte.query) {
                cte.query = around;
                self.drawn.insert(name, number);
            }
        }
        ControlFlow::Continue(())
    }
}

fn calls_volatile(state: &SessionState, part: &impl Visit) -> bool {
    let found = visit_expressions(part, |expr| match is_volatile(state, expr) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    found.is_break()
}

fn is_volatile(state: &SessionState, expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    let [part] = &function.name.0[..] else { return false };
    let function = part.as_ident().and_then(|name| state.scalar_functions().get(&folded(name)));
    function.is_some_and(|function| function.signature().volatility == Volatility::Volatile)
}

/// Makes a value that may be drawn anew each time that it is asked for one value (`host/once_a_row.rs`),
/// however often it will stand in what is written out of it.
pub(super) fn make_alike(state: &SessionState, expr: &mut Expr) {
    if calls_volatile(state, expr) {
        let number = Expr::value(Value::Number(number().to_string(), false));
        *expr = call(DRAWN_ALIKE, vec![number, expr.clone()]);
    }
}

/// Whether [`make_alike`] changes a part of an expression.
pub(super) fn is_made_alike(state: &SessionState, expr: &Expr) -> bool {
    let found = visit_expressions(expr, |part| {
        let copied = match part {
            Expr::Function(function) => synonyms::copies(state, function),
            Expr::Tuple(_) | Expr::CompoundFieldAccess { .. } => true,
            _ => false,
        };
        match copied && calls_volatile(state, part) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    found.is_break()
}

/// Has [`make_alike`] change the arguments of a call.
pub(super) fn make_arguments_alike(state: &SessionState, function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    for argument in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument {
            make_alike(state, expr);
        }
    }
}

/// Tells aggregates and window functions of volatile functions apart, which DataFusion's planner
/// (55.2) takes for one where they are written alike. Those of ORDER BY and HAVING are the first of
/// the select list.
pub(super) fn tell_apart(state: &SessionState, items: &mut [SelectItem]) {
    let mut seen: HashSet<String> = HashSet::new();
    for item in items {
        let text = item.to_string();
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            continue;
        };
        let mut told = false;
        let _: ControlFlow<()> = visit_expressions_mut(expr, |part| {
            let Expr::Function(function) = &*part else { return ControlFlow::Continue(()) };
            let is_of_rows = function.over.is_some()
                || matches!(&function.name.0[..], [name] if name.as_ident().is_some_and(
                    |name| state.aggregate_functions().contains_key(&folded(name))));
            if !is_of_rows || !calls_volatile(state, function) || seen.insert(function.to_string())
            {
                return ControlFlow::Continue(());
            }
            told = true;
            let Expr::Function(function) = part else { return ControlFlow::Continue(()) };
            make_arguments_alike(state, function);
            ControlFlow::Continue(())
        });
        // It is called by what was asked for.
        if told && let SelectItem::UnnamedExpr(expr) = item {
            let alias = Ident::with_quote('"', text);
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// A query of all rows of another, under a name.
fn around(name: &str, query: &Query) -> Option<Box<Query>> {
    let text = format!("SELECT * FROM (SELECT 1) AS \"{name}\"");
    let statement = Parser::parse_sql(&Ours, &text).ok()?.pop()?;
    let Statement::Query(mut around) = statement else { return None };
    let SetExpr::Select(select) = around.body.as_mut() else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    **subquery = query.clone();
    Some(around)
}

/// What a view's plan is called, within, that has such rows.
const OF_VIEW: &str = "rows of a view";

/// A view's plan, which readers tell apart.
pub(in crate::session) fn of_view(plan: LogicalPlan) -> Result<LogicalPlan> {
    match SharedRows::any(&plan)? {
        true => LogicalPlanBuilder::from(plan).alias(OF_VIEW)?.build(),
        false => Ok(plan),
    }
}

/// The plan with rows of their own for each reading of a view.
fn views_apart(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_view = |node: &LogicalPlan| matches!(node, LogicalPlan::SubqueryAlias(view) if view.alias.table() == OF_VIEW);
    if !any_node(&plan, |node| Ok(is_view(node)))? {
        return Ok(plan);
    }
    let apart = plan.transform_down_with_subqueries(|node| match is_view(&node) {
        // Views within are of this one's reading.
        true => Ok(Transformed::new(SharedRows::of_its_own(node)?, true, TreeNodeRecursion::Jump)),
        false => Ok(Transformed::no(node)),
    })?;
    Ok(apart.data)
}

/// The plan of a statement with these names, whose readers share such rows.
pub(in crate::session) fn shared(plan: LogicalPlan, drawn: &Drawn) -> Result<LogicalPlan> {
    let plan = views_apart(plan)?;
    if drawn.is_empty() {
        return Ok(plan);
    }
    let mut readers: HashMap<u64, usize> = HashMap::new();
    plan.apply_with_subqueries(|node| {
        if let Some((number, _)) = read(node, drawn) {
            *readers.entry(number).or_default() += 1;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let shared = plan.transform_down_with_subqueries(|node| {
        let Some((number, query)) = read(&node, drawn) else { return Ok(Transformed::no(node)) };
        let is_shared = readers.get(&number).is_some_and(|readers| *readers > 1)
            // What sees rows around it has no rows of its own.
            && !any_node(&query.input, |node| Ok(node.contains_outer_reference()))?;
        if !is_shared {
            return Ok(Transformed::no(node));
        }
        let input = SharedRows::node(number, query.input.as_ref().clone());
        let alias = SubqueryAlias::try_new(Arc::new(input), query.alias.clone())?;
        Ok(Transformed::yes(LogicalPlan::SubqueryAlias(alias)))
    })?;
    Ok(shared.data)
}

fn read<'a>(node: &'a LogicalPlan, drawn: &Drawn) -> Option<(u64, &'a SubqueryAlias)> {
    match node {
        LogicalPlan::SubqueryAlias(query) => Some((*drawn.get(query.alias.table())?, query)),
        _ => None,
    }
}
