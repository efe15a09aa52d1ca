//! ORDER BY of a query within another, where something above looks at the order of its rows.
//!
//! ```text
//!   SELECT i FROM (SELECT i FROM t ORDER BY i DESC) LIMIT 3     the three greatest
//!   SELECT count(*) FROM (SELECT i FROM t ORDER BY i DESC)      no sort
//! ```
//!
//! SQL promises an order to the outermost query alone, but others keep it where rows go up one by
//! one. DataFusion's planner (55.2, `optimize_subquery_sort`) drops every sort of a query in FROM
//! that has no LIMIT of its own, so that its option is off, and sorts that nothing looks at are
//! dropped here.

use std::sync::Arc;

use datafusion::common::plan_err;
use datafusion::common::tree_node::{
    Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter, TreeNodeVisitor,
};
use datafusion::error::Result;
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{Expr, LogicalPlan, Sort, WindowFrameUnits};

pub(super) fn concerns(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Sort(_))
}

/// Refuses a key of ORDER BY that is no column of the union below it. DataFusion's planner (55.2)
/// adds the key to those arms that have such a column, so that arms differ in width.
pub(super) fn check_union(node: &LogicalPlan) -> Result<()> {
    let LogicalPlan::Union(union) = node else { return Ok(()) };
    let columns = union.inputs.iter().map(|input| input.schema().fields().len());
    if columns.clone().min() == columns.max() {
        return Ok(());
    }
    plan_err!("ORDER BY of a UNION takes columns of its result, by name or number")
}

/// The plan without sorts whose order nothing looks at.
pub(super) fn looked_at(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut any = AnyInVain { within: ObservedOrder::of_result(), found: false };
    plan.visit_with_subqueries(&mut any)?;
    match any.found {
        true => Ok(plan.rewrite_with_subqueries(&mut InVain(ObservedOrder::of_result()))?.data),
        false => Ok(plan),
    }
}

/// Whether the order of rows is looked at, of each operator on the way down.
struct ObservedOrder(Vec<bool>);

impl ObservedOrder {
    fn of_result() -> ObservedOrder {
        ObservedOrder(vec![true])
    }

    /// Whether an operator is a sort whose order nothing looks at.
    fn is_in_vain(&self, node: &LogicalPlan) -> bool {
        matches!(node, LogicalPlan::Sort(Sort { fetch: None, .. }))
            && self.0.last().is_some_and(|looks| !looks)
    }

    fn enter(&mut self, node: &LogicalPlan) {
        let above = self.0.last().copied().unwrap_or(true);
        self.0.push(match node {
            LogicalPlan::Limit(_) => true,
            LogicalPlan::Window(window) => window.window_expr.iter().any(by_present_order),
            LogicalPlan::Aggregate(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Subquery(_) => false,
            // Operators that are not known may look at it.
            _ => above,
        });
    }

    fn leave(&mut self) {
        self.0.pop();
    }
}

/// Whether a window function numbers or picks rows in the order in which they come.
fn by_present_order(expr: &Expr) -> bool {
    let picks = |node: &Expr| {
        let Expr::WindowFunction(call) = node else { return false };
        let counts = matches!(call.fun, WindowFunctionDefinition::WindowUDF(_))
            || call.params.window_frame.units == WindowFrameUnits::Rows;
        call.params.order_by.is_empty() && counts
    };
    // Nothing is an error here.
    expr.exists(|node| Ok(picks(node))).unwrap_or(true)
}

struct AnyInVain {
    within: ObservedOrder,
    found: bool,
}

impl<'n> TreeNodeVisitor<'n> for AnyInVain {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: &'n LogicalPlan) -> Result<TreeNodeRecursion> {
        if self.within.is_in_vain(node) {
            self.found = true;
            return Ok(TreeNodeRecursion::Stop);
        }
        self.within.enter(node);
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, _: &'n LogicalPlan) -> Result<TreeNodeRecursion> {
        self.within.leave();
        Ok(TreeNodeRecursion::Continue)
    }
}

struct InVain(ObservedOrder);

impl TreeNodeRewriter for InVain {
    type Node = LogicalPlan;

    fn f_down(&mut self, mut node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let mut dropped = false;
        while self.0.is_in_vain(&node) {
            let LogicalPlan::Sort(sort) = node else { break };
            (node, dropped) = (Arc::unwrap_or_clone(sort.input), true);
        }
        self.0.enter(&node);
        Ok(Transformed::new(node, dropped, TreeNodeRecursion::Continue))
    }

    fn f_up(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        self.0.leave();
        Ok(Transformed::no(node))
    }
}
