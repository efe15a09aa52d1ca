//! A subtree for the device, as one node of DataFusion's logical plan.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::DFSchemaRef;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};

use super::device_plan::DevicePlan;
use super::tables::PlanTable;

/// A supported subtree. It has no inputs: they are inside.
#[derive(Clone)]
pub(crate) struct DeviceNode {
    plan: Arc<DevicePlan>,
    /// The tables that its placeholders stand for.
    tables: Arc<[PlanTable]>,
}

impl DeviceNode {
    pub(super) fn new(plan: Arc<DevicePlan>) -> Self {
        DeviceNode { plan, tables: Arc::new([]) }
    }

    /// The node that an extension of a plan is.
    pub(crate) fn of(extension: &Extension) -> Option<&DeviceNode> {
        Self::of_node(extension.node.as_ref())
    }

    pub(crate) fn of_node(node: &dyn UserDefinedLogicalNode) -> Option<&DeviceNode> {
        node.as_any().downcast_ref()
    }

    /// The node over these tables.
    pub(super) fn with_tables(&self, tables: &[PlanTable]) -> DeviceNode {
        DeviceNode { plan: self.plan.clone(), tables: tables.into() }
    }

    pub(crate) fn plan(&self) -> &Arc<DevicePlan> {
        &self.plan
    }

    pub(crate) fn tables(&self) -> &Arc<[PlanTable]> {
        &self.tables
    }

    fn logical(&self) -> &LogicalPlan {
        self.plan.logical()
    }
}

impl From<DeviceNode> for LogicalPlan {
    fn from(node: DeviceNode) -> LogicalPlan {
        LogicalPlan::Extension(Extension { node: Arc::new(node) })
    }
}

impl fmt::Debug for DeviceNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceNode: {}", self.logical().display())
    }
}

impl PartialEq for DeviceNode {
    fn eq(&self, other: &Self) -> bool {
        self.logical() == other.logical()
    }
}

impl Eq for DeviceNode {}

impl PartialOrd for DeviceNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.logical().partial_cmp(other.logical())
    }
}

impl Hash for DeviceNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.logical().hash(state);
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
        self.logical().schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Device: {}", self.logical().display())
    }

    fn with_exprs_and_inputs(
        &self,
        _exprs: Vec<Expr>,
        _inputs: Vec<LogicalPlan>,
    ) -> PlanResult<Self> {
        Ok(self.clone())
    }
}
