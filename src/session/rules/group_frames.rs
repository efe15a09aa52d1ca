//! `RANGE` frames without distances are `GROUPS` frames, where DataFusion (55.2) refuses the type
//! of the order: it wants to know of every RANGE frame what distances of that type would be, also
//! of the one that stands where no frame is written.
//!
//! ```text
//!   rank() OVER (ORDER BY t)    of a TIME t: RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
//!                          ─▶   GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
//! ```
//!
//! Both end with the last row that is equal in the order.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use datafusion::optimizer::AnalyzerRule;

use super::any_node;

/// Runs before the coercion of types.
#[derive(Debug)]
pub(super) struct GroupFrames;

impl AnalyzerRule for GroupFrames {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, |node| Ok(is_concerned(node)))? {
            return Ok(plan);
        }
        let all = plan.transform_up_with_subqueries(|node| {
            let LogicalPlan::Window(window) = &node else { return Ok(Transformed::no(node)) };
            let schema = window.input.schema().clone();
            let names = NamePreserver::new(&node);
            let node = node.map_expressions(|expr| {
                let name = names.save(&expr);
                let grouped = expr.transform_up(|expr| Ok(by_groups(expr, &schema)))?;
                Ok(grouped.update_data(|expr| name.restore(expr)))
            })?;
            node.map_data(LogicalPlan::recompute_schema)
        })?;
        Ok(all.data)
    }

    fn name(&self) -> &str {
        "group_frames"
    }
}

fn is_concerned(node: &LogicalPlan) -> bool {
    let LogicalPlan::Window(window) = node else { return false };
    let calls = |expr: &Expr| match expr {
        Expr::WindowFunction(call) => asks_for_distances(call, window.input.schema()),
        _ => false,
    };
    // Nothing fails here.
    let asks = |expr: &Expr| expr.exists(|node| Ok(calls(node))).unwrap_or(false);
    window.window_expr.iter().any(asks)
}

fn by_groups(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::WindowFunction(mut call) if asks_for_distances(&call, schema) => {
            let WindowFrame { start_bound, end_bound, .. } = call.params.window_frame;
            call.params.window_frame =
                WindowFrame::new_bounds(WindowFrameUnits::Groups, start_bound, end_bound);
            Transformed::yes(Expr::WindowFunction(call))
        }
        other => Transformed::no(other),
    }
}

/// Whether a frame without distances is by a type that DataFusion knows no distances of.
fn asks_for_distances(call: &WindowFunction, schema: &DFSchema) -> bool {
    let frame = &call.params.window_frame;
    let is_plain = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => by.is_null(),
    };
    let [start, end] = [&frame.start_bound, &frame.end_bound].map(is_plain);
    if frame.units != WindowFrameUnits::Range || !start || !end {
        return false;
    }
    let key = call.params.order_by.first().map(|key| key.expr.get_type(schema));
    matches!(key, Some(Ok(dtype)) if !has_distances(&dtype))
}

fn has_distances(dtype: &DataType) -> bool {
    dtype.is_numeric()
        || matches!(
            dtype,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Null
                | DataType::Boolean
                | DataType::Date32
                | DataType::Date64
                | DataType::Timestamp(..)
        )
}
