//! Cuts a plan into what runs on the device and what does not.

use datafusion::logical_expr::{Extension, LogicalPlan};

use super::estimate::estimate;
use super::join_order::order_joins;
use super::node::DeviceNode;
use super::support::unsupported_node;
use crate::error::Result;

/// A plan whose supported subtrees are [`DeviceNode`]s.
pub(crate) struct Cut {
    pub(crate) plan: LogicalPlan,
    /// Operators left to the CPU, and why, from the root down.
    pub(crate) left: Vec<(String, String)>,
    /// One line an operator, indented, with where it runs.
    lines: Vec<String>,
    /// Whether the lines show joins in the order in which they would run now, rather than the plan's.
    ordered: bool,
    /// Trees of joins that have another order.
    changed: usize,
}

/// Finds the maximal supported subtrees.
pub(crate) fn cut(plan: &LogicalPlan) -> Result<Cut> {
    cut_as(plan, false)
}

fn cut_as(plan: &LogicalPlan, ordered: bool) -> Result<Cut> {
    let mut cut = Cut { plan: plan.clone(), left: vec![], lines: vec![], ordered, changed: 0 };
    cut.plan = cut.visit(plan, 0)?;
    Ok(cut)
}

/// What runs where and why not, and what is expected of joins as far as their tables are known: one line an operator, and one
/// more where statistics give joins another order than the query's.
pub(crate) fn explain(plan: &LogicalPlan, ordered: bool) -> Result<Vec<String>> {
    let Cut { mut lines, changed, .. } = cut_as(plan, ordered)?;
    if changed > 0 {
        lines.push("joins   in the order of estimated rows, not the query's (SET join_order = off keeps that)".into());
    }
    Ok(lines)
}

/// Why this subtree cannot run on the device as a whole: the first operator in the way, and the reason.
fn obstacle(plan: &LogicalPlan) -> Option<(String, String)> {
    if let Some(why) = unsupported_node(plan) {
        return Some((name(plan), why));
    }
    plan.inputs().into_iter().find_map(obstacle)
}

fn name(plan: &LogicalPlan) -> String {
    plan.display().to_string()
}

impl Cut {
    fn visit(&mut self, plan: &LogicalPlan, depth: usize) -> Result<LogicalPlan> {
        let indent = "  ".repeat(depth);
        if obstacle(plan).is_none() {
            match self.ordered {
                true => {
                    let ordered = order_joins(plan.clone())?;
                    self.changed += ordered.changed;
                    self.describe(&ordered.plan, depth);
                }
                false => self.describe(plan, depth),
            }
            return Ok(LogicalPlan::Extension(Extension { node: std::sync::Arc::new(DeviceNode::new(plan.clone())) }));
        }
        let why = unsupported_node(plan).unwrap_or_else(|| "its input is not on the device".into());
        self.lines.push(format!("cpu     {indent}{}    ({why})", name(plan)));
        self.left.push((name(plan), why));
        let inputs = plan.inputs();
        if inputs.is_empty() {
            return Ok(plan.clone());
        }
        let inputs = inputs.into_iter().map(|input| self.visit(input, depth + 1)).collect::<Result<Vec<_>>>()?;
        Ok(plan.with_new_exprs(plan.expressions(), inputs)?)
    }

    fn describe(&mut self, plan: &LogicalPlan, depth: usize) {
        let expected = match plan {
            LogicalPlan::Join(_) => estimate(plan).map(|of| format!("    (about {:.0} rows)", of.rows)),
            _ => None,
        };
        self.lines.push(format!("device  {}{}{}", "  ".repeat(depth), name(plan), expected.unwrap_or_default()));
        for input in plan.inputs() {
            self.describe(input, depth + 1);
        }
    }
}
