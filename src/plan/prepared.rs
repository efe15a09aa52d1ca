//! Plans that are prepared to run: optimized, and cut once. One over placeholders runs again on
//! whatever tables have the same schemas.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use datafusion::common::DFSchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::bind::bind;
use super::cut::{Cut, Root, cut};
use super::device_plan::DevicePlan;
use super::tables::PlanTable;
use crate::error::Result;

/// Operators and expressions above one another, up to which a plan runs on its caller's stack, and
/// up to which it is kept: looking for it recurses as deep as it is, too, but needs less.
const SHALLOW: usize = 48;
const MOST: usize = 160;

/// Whether a plan is not too deep to be kept.
pub(crate) fn is_small(plan: &LogicalPlan) -> bool {
    depth(plan, MOST + 1) <= MOST
}

/// Whether a plan with this expression may be one to be kept.
pub(crate) fn is_small_expr(expr: &Expr) -> bool {
    expr_depth(expr, MOST + 1) <= MOST
}

/// An optimized plan, cut into what runs on the device and what does not.
#[derive(Debug)]
pub(crate) struct Prepared {
    cut: Cut,
    schema: DFSchemaRef,
    /// The data showed that the device cannot run it: so may the next ones.
    gave_up: AtomicBool,
    /// Any thread's stack holds it.
    shallow: bool,
}

impl Prepared {
    /// Of an optimized plan, mostly one over placeholders.
    pub(crate) fn new(plan: LogicalPlan) -> Result<Prepared> {
        let shallow = depth(&plan, SHALLOW + 1) <= SHALLOW;
        let schema = plan.schema().clone();
        Ok(Prepared { cut: cut(plan)?, schema, gave_up: false.into(), shallow })
    }

    pub(crate) fn cut(&self) -> &Cut {
        &self.cut
    }

    /// The schema of what comes out.
    pub(crate) fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// What the device runs, if that is the whole plan, it did so far, and any thread's stack holds
    /// it.
    pub(crate) fn direct(&self) -> Option<&Arc<DevicePlan>> {
        match &self.cut.root {
            Root::Device(plan) if self.shallow && !self.gave_up.load(Relaxed) => Some(plan),
            _ => None,
        }
    }

    /// Notes that the device could not run it.
    pub(crate) fn give_up(&self) {
        self.gave_up.store(true, Relaxed);
    }

    /// The logical plan over these tables, by the placeholders' numbers.
    pub(crate) fn bind(&self, tables: &[PlanTable]) -> Result<LogicalPlan> {
        match &self.cut.root {
            Root::Device(plan) => bind(plan.logical(), tables),
            Root::Cpu(plan) => bind(plan, tables),
        }
    }
}

/// Operators above one another, and the expressions above one another in each; looked at no further
/// than `most`.
fn depth(plan: &LogicalPlan, most: usize) -> usize {
    let Some(rest) = most.checked_sub(1) else { return 0 };
    let mut own = 0;
    // Nothing fails here, nor below.
    let _ = plan.apply_expressions(|expr| {
        own = own.max(expr_depth(expr, rest));
        Ok(TreeNodeRecursion::Continue)
    });
    let below = plan.inputs().into_iter().map(|input| depth(input, rest)).max().unwrap_or(0);
    1 + own + below
}

fn expr_depth(expr: &Expr, most: usize) -> usize {
    let Some(rest) = most.checked_sub(1) else { return 0 };
    let mut below = 0;
    let _ = expr.apply_children(|child| {
        below = below.max(expr_depth(child, rest));
        Ok(TreeNodeRecursion::Continue)
    });
    1 + below
}
