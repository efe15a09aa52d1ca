//! Queries of a WITH that call volatile functions, which all of their readers see alike.
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
//! `AS NOT MATERIALIZED`, which leaves each reader rows of its own, is a query in parentheses by
//! now (`syntax.rs`).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, SubqueryAlias, Volatility};
use datafusion::sql::sqlparser::ast::{
    Expr, Query, SetExpr, Statement, TableFactor, VisitMut, VisitorMut, visit_expressions,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::any_node;
use super::dialect::Ours;
use crate::query::SharedRows;
use crate::session::files::folded;

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
            let body = cte.query.body.as_ref();
            // One that reads itself is a set operation.
            let may_read_itself = with.recursive && matches!(body, SetExpr::SetOperation { .. });
            if may_read_itself
                || matches!(body, SetExpr::Query(_))
                || !calls_volatile(self.state, &cte.query)
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

fn calls_volatile(state: &SessionState, query: &Query) -> bool {
    let calls = |expr: &Expr| {
        let Expr::Function(function) = expr else { return false };
        let [part] = &function.name.0[..] else { return false };
        let function = part.as_ident().and_then(|name| state.scalar_functions().get(&folded(name)));
        function.is_some_and(|function| function.signature().volatility == Volatility::Volatile)
    };
    let found = visit_expressions(query, |expr| match calls(expr) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    found.is_break()
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
