//! A subtree for the device, as one operator of DataFusion's physical plan.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as PlanResult;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use futures::{StreamExt, TryStreamExt};

use super::{Engine, Outcome, run_subtree};
use crate::io::DOWNLOAD_ROWS;
use crate::plan::{DeviceNode, DevicePlan, PlanTable};
use warpframe_device::interrupt::{self, Running};

/// Plans [`DeviceNode`]s as [`DeviceExec`]s.
#[derive(Debug)]
pub(super) struct Planner {
    pub(super) engine: Engine,
    pub(super) state: Arc<SessionState>,
}

#[async_trait]
impl ExtensionPlanner for Planner {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        _physical_inputs: &[Arc<dyn ExecutionPlan>],
        _session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> PlanResult<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = DeviceNode::of_node(node) else { return Ok(None) };
        let schema = Arc::new(node.plan().logical().schema().as_arrow().clone());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(Some(Arc::new(DeviceExec {
            plan: node.plan().clone(),
            tables: node.tables().clone(),
            engine: self.engine.clone(),
            state: self.state.clone(),
            statement: interrupt::current(),
            properties: Arc::new(properties),
        })))
    }
}

/// Runs a subtree on the device and hands its rows to the CPU's operators.
struct DeviceExec {
    plan: Arc<DevicePlan>,
    tables: Arc<[PlanTable]>,
    engine: Engine,
    state: Arc<SessionState>,
    /// Which statement this is planned for: it may run on threads of DataFusion's.
    statement: Option<Running>,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for DeviceExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceExec: {}", self.plan.logical().display())
    }
}

impl DisplayAs for DeviceExec {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "DeviceExec: {}", self.plan.logical().display())
    }
}

impl ExecutionPlan for DeviceExec {
    fn name(&self) -> &str {
        "DeviceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        _partition: usize,
        _context: Arc<TaskContext>,
    ) -> PlanResult<SendableRecordBatchStream> {
        let (plan, tables) = (self.plan.clone(), self.tables.clone());
        let (engine, state) = (self.engine.clone(), self.state.clone());
        let statement = self.statement.clone();
        let schema = self.properties.eq_properties.schema().clone();
        let batches = async move {
            let batches = match run_subtree(&state, &engine, &plan, &tables).await? {
                Outcome::Device(table) => table.to_batches(DOWNLOAD_ROWS)?,
                Outcome::Host(batches) => batches,
                Outcome::Divided(rows) => {
                    let batches =
                        rows.batches(DOWNLOAD_ROWS).map(|batch| batch.map_err(Into::into));
                    return Ok(futures::stream::iter(batches).boxed());
                }
            };
            Ok::<_, datafusion::error::DataFusionError>(
                futures::stream::iter(batches.into_iter().map(Ok)).boxed(),
            )
        };
        let batches = async move {
            match statement {
                Some(statement) => statement.around(batches).await,
                None => batches.await,
            }
        };
        let stream = futures::stream::once(batches).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> PlanResult<TreeNodeRecursion>,
    ) -> PlanResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }
}
