//! Cuts an optimized plan into what runs on the device and what does not.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;

use super::device_plan::DevicePlan;
use super::node::DeviceNode;
use super::support::unsupported_node;
use crate::error::Result;

/// An optimized plan whose largest supported subtrees are cut out.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) root: Root,
    /// Operators left to the CPU, and why, from the root down and from left to right.
    pub(crate) left: Vec<CpuOperator>,
}

impl Cut {
    /// The parts for the device.
    ///
    /// # Errors
    /// None that is known.
    pub(crate) fn device_nodes(&self) -> Result<Vec<DeviceNode>> {
        let plan = match &self.root {
            Root::Device(plan) => return Ok(vec![DeviceNode::new(plan.clone())]),
            Root::Cpu(plan) => plan,
        };
        let mut found = vec![];
        plan.apply(|node| {
            if let LogicalPlan::Extension(extension) = node
                && let Some(node) = DeviceNode::of(extension)
            {
                found.push(node.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(found)
    }
}

/// What the root of a plan runs on.
#[derive(Debug)]
pub(crate) enum Root {
    /// The device runs all of it.
    Device(Arc<DevicePlan>),
    /// The CPU runs it over what the device yields: subtrees are [`DeviceNode`]s.
    Cpu(LogicalPlan),
}

/// An operator that the CPU runs.
#[derive(Debug)]
pub(crate) struct CpuOperator {
    pub(crate) operator: String,
    pub(crate) why: String,
}

/// Finds the largest supported subtrees. Each operator is looked at once.
pub(crate) fn cut(plan: LogicalPlan) -> Result<Cut> {
    cut_unless(plan, &|_| None)
}

/// As [`cut`], but without the operators for which `refuse` has a reason.
pub(crate) fn cut_unless(plan: LogicalPlan, refuse: Refuse<'_>) -> Result<Cut> {
    let mut reasons = Reasons(vec![]);
    reasons.visit(&plan, refuse);
    reasons.0.reverse();
    if reasons.0.last().is_none_or(|root| root.is_none()) {
        return Ok(Cut { root: Root::Device(DevicePlan::of(plan)), left: vec![] });
    }
    let mut left = vec![];
    let root = reasons.cut(&plan, &mut left)?;
    Ok(Cut { root: Root::Cpu(root), left })
}

/// Why an operator is not to run on the device.
pub(crate) type Refuse<'a> = &'a dyn Fn(&LogicalPlan) -> Option<String>;

/// Why operators do not run on the device, in reversed order of a walk from the root down: `None`
/// for the root of a subtree that does, whose operators are not listed.
struct Reasons(Vec<Option<String>>);

impl Reasons {
    /// Whether the device runs the whole subtree.
    fn visit(&mut self, plan: &LogicalPlan, refuse: Refuse<'_>) -> bool {
        let own = self.0.len();
        self.0.push(None);
        let mut below = true;
        for input in plan.inputs() {
            below &= self.visit(input, refuse);
        }
        self.0[own] = refuse(plan)
            .or_else(|| unsupported_node(plan))
            .or_else(|| (!below).then(|| "its input is not on the device".into()));
        let supported = self.0[own].is_none();
        if supported {
            self.0.truncate(own + 1);
        }
        supported
    }

    fn cut(&mut self, plan: &LogicalPlan, left: &mut Vec<CpuOperator>) -> Result<LogicalPlan> {
        let Some(why) = self.0.pop().flatten() else {
            return Ok(DeviceNode::new(DevicePlan::of(plan.clone())).into());
        };
        left.push(CpuOperator { operator: plan.display().to_string(), why });
        let inputs = plan.inputs();
        if inputs.is_empty() {
            return Ok(plan.clone());
        }
        let inputs =
            inputs.into_iter().map(|input| self.cut(input, left)).collect::<Result<Vec<_>>>()?;
        Ok(plan.with_new_exprs(plan.expressions(), inputs)?)
    }
}
