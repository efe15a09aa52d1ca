//! A subtree for the device, as one node of DataFusion's logical plan.

use std::fmt;

use datafusion::common::DFSchemaRef;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

/// A supported subtree. It has no inputs: they are inside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Hash)]
pub(crate) struct DeviceNode {
    plan: LogicalPlan,
}

impl DeviceNode {
    pub(crate) fn new(plan: LogicalPlan) -> Self {
        DeviceNode { plan }
    }

    /// The subtree.
    pub(crate) fn plan(&self) -> &LogicalPlan {
        &self.plan
    }
}

impl UserDefinedLogicalNodeCore for DeviceNode {
    fn name(&self) -> &str {
        "Device"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.plan.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Device: {}", self.plan.display())
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, _inputs: Vec<LogicalPlan>) -> PlanResult<Self> {
        Ok(self.clone())
    }
}
