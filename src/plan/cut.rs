//! Cuts a plan into what runs on the device and what does not.

use datafusion::logical_expr::{Extension, LogicalPlan};

use super::node::DeviceNode;
use super::support::unsupported_node;
use crate::error::Result;

/// A plan whose supported subtrees are [`DeviceNode`]s.
pub(crate) struct Cut {
    pub(crate) plan: LogicalPlan,
    /// Operators left to the CPU, and why, from the root down.
    pub(crate) left: Vec<(String, String)>,
    /// One line an operator, indented, with where it runs.
    pub(crate) lines: Vec<String>,
}

/// Finds the maximal supported subtrees.
pub(crate) fn cut(plan: &LogicalPlan) -> Result<Cut> {
    let mut cut = Cut { plan: plan.clone(), left: vec![], lines: vec![] };
    cut.plan = cut.visit(plan, 0)?;
    Ok(cut)
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
            self.describe(plan, depth);
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
        self.lines.push(format!("device  {}{}", "  ".repeat(depth), name(plan)));
        for input in plan.inputs() {
            self.describe(input, depth + 1);
        }
    }
}
