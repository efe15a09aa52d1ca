//! The query planner of a session with a device.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, PlanType, Projection, StringifiedPlan, TableScanBuilder,
    WriteOp,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use super::scans::{PlannedScans, scanned};
use super::stock::{as_arrow_does, refused};
use super::subqueries::with_joins;
use crate::error::{Error, Result};
use crate::exec::{PlannedTable, StageContext, StageDevice, division_of, stage_plan};
use crate::plan::{
    CpuOperator, DeviceNode, DevicePlan, GATHERED, PlanTable, Root, StageLimits, TaskPlace,
    cut_unless, is_worth_it, order_joins, stages, with_different_names,
};

/// Gives the device its part of plans, and another planner the rest.
pub(super) struct StagePlanner {
    device: StageDevice,
    theirs: Option<Arc<dyn QueryPlanner + Send + Sync>>,
    /// Whether stages have several tasks.
    stages: bool,
    broadcast: u64,
}

impl StagePlanner {
    pub(super) fn new(
        device: StageDevice,
        theirs: Option<Arc<dyn QueryPlanner + Send + Sync>>,
        (stages, broadcast): (bool, u64),
    ) -> StagePlanner {
        StagePlanner { device, theirs, stages, broadcast }
    }
}

impl fmt::Debug for StagePlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StagePlanner").field("theirs", &self.theirs).finish_non_exhaustive()
    }
}

#[async_trait]
impl QueryPlanner for StagePlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let mapped = match session.as_any().downcast_ref::<SessionState>() {
            Some(state) => self.with_stages(state, plan).await?,
            None => plan.clone(),
        };
        match &self.theirs {
            Some(theirs) => theirs.create_physical_plan(&mapped, session).await,
            None => DefaultPhysicalPlanner::default().create_physical_plan(&mapped, session).await,
        }
    }
}

impl StagePlanner {
    /// The plan, in which subtrees for the device are tables that are planned already.
    async fn with_stages(&self, state: &SessionState, plan: &LogicalPlan) -> Result<LogicalPlan> {
        // What explains or writes is about the query beneath it.
        if let LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::Dml(_)
        | LogicalPlan::Copy(_) = plan
        {
            // What DELETE and UPDATE do follows from the query's own operators.
            let changes = |dml: &DmlStatement| !matches!(dml.op, WriteOp::Insert(_));
            let inputs = plan.inputs();
            let query = match (plan, inputs.as_slice()) {
                (LogicalPlan::Dml(dml), _) if changes(dml) => return Ok(plan.clone()),
                (_, [query]) => query,
                _ => return Ok(plan.clone()),
            };
            let (made, left) = self.of_query(state, query).await?;
            if !matches!(plan, LogicalPlan::Explain(_)) {
                self.refuse(&left)?;
            }
            return Ok(with_query(plan, made, told(query, &left)));
        }
        let (plan, left) = self.of_query(state, plan).await?;
        self.refuse(&left)?;
        Ok(plan)
    }

    /// In strict mode nothing may be left to the CPU. Operators above one that is in the way are
    /// left to it, too: the deepest has the reason.
    fn refuse(&self, left: &[CpuOperator]) -> Result<()> {
        match left.last() {
            Some(CpuOperator { operator, why }) if self.device.engine.strict => {
                Err(Error::unsupported(format!("on the device: {operator}"), why.clone()))
            }
            _ => Ok(()),
        }
    }

    /// The plan of a query with stages as tables, and what is left to the CPU.
    async fn of_query(
        &self,
        state: &SessionState,
        plan: &LogicalPlan,
    ) -> Result<(LogicalPlan, Vec<CpuOperator>)> {
        if !is_worth_it(plan)? {
            return Ok((plan.clone(), vec![]));
        }
        let mut cut = cut_unless(plan.clone(), &refused)?;
        if !cut.left.is_empty()
            && let Some(joins) = with_joins(plan)?
        {
            let with_joins = cut_unless(joins, &refused)?;
            if with_joins.left.len() < cut.left.len() {
                cut = with_joins;
            }
        }
        let plan = match cut.root {
            Root::Device(root) => {
                return Ok((self.stage(state, &root).await?, cut.left));
            }
            Root::Cpu(plan) => plan,
        };
        // Planning waits for tables: so the nodes are found first and replaced afterwards.
        let mut nodes = vec![];
        plan.apply(|node| {
            nodes.extend(device_plan(node));
            Ok(TreeNodeRecursion::Continue)
        })?;
        let mut made = vec![];
        for node in nodes {
            made.push(match is_worth_it(node.logical())? {
                true => self.stage(state, &node).await?,
                false => node.logical().clone(),
            });
        }
        let mut made = made.into_iter();
        let plan = plan.transform_down(|node| match device_plan(&node) {
            Some(_) => match made.next() {
                Some(stage) => Ok(Transformed::new(stage, true, TreeNodeRecursion::Jump)),
                None => Err(DataFusionError::Internal("a stage was not planned".into())),
            },
            None => Ok(Transformed::no(node)),
        })?;
        Ok((plan.data, cut.left))
    }

    /// A subtree as a table that its stages yield.
    async fn stage(&self, state: &SessionState, subtree: &DevicePlan) -> Result<LogicalPlan> {
        let schema = subtree.logical().schema().clone();
        let plan = as_arrow_does(with_different_names(subtree.logical().clone())?)?;
        let engine = self.device.engine.first();
        let PlannedScans { mut plan, tables } = scanned(state, engine, plan, !self.stages).await?;
        let known: Vec<PlanTable> = tables.iter().map(|table| table.table.clone()).collect();
        let tasks = if self.stages { state.config().target_partitions() } else { 1 };
        // One task orders its joins itself.
        if tasks > 1 && engine.orders_joins() {
            plan = order_joins(plan, &known)?.plan;
        }
        let division = division_of(state, engine, &plan, &known)?;
        let limits = StageLimits {
            tasks,
            place: TaskPlace::Processes { broadcast: self.broadcast },
            gathered: self.broadcast.min(GATHERED),
            tables: &[],
        };
        let stage = stages(&plan, &division, limits)?;
        // As this engine's readers of files want it: rows come in the order of the files.
        let mut own = state.clone();
        own.config_mut().options_mut().execution.enable_file_stream_work_stealing = false;
        let context = StageContext { device: Some(self.device.clone()), state: Arc::new(own) };
        let scans: Vec<_> = tables.into_iter().map(|table| (table.scan, table.columns)).collect();
        let planned = stage_plan(&stage, &scans, &context, true)?;
        let names = schema.columns();
        let source = provider_as_source(Arc::new(PlannedTable { plan: planned }));
        let scan = TableScanBuilder::new(TableReference::bare("device"), source).build()?;
        let scan = LogicalPlan::TableScan(scan);
        let columns = scan.schema().columns().into_iter().zip(names);
        let columns = columns.map(|(column, Column { relation, name, .. })| {
            Expr::Column(column).alias_qualified(relation, name)
        });
        let columns = columns.collect();
        Ok(LogicalPlan::Projection(Projection::try_new_with_schema(
            columns,
            Arc::new(scan),
            schema,
        )?))
    }
}

fn device_plan(node: &LogicalPlan) -> Option<Arc<DevicePlan>> {
    match node {
        LogicalPlan::Extension(extension) => Some(DeviceNode::of(extension)?.plan().clone()),
        _ => None,
    }
}

/// The query's plan, and what of it is left to the CPU; `None` where that is nothing.
fn told(query: &LogicalPlan, left: &[CpuOperator]) -> Option<String> {
    if left.is_empty() {
        return None;
    }
    let mut text = format!("{}\nleft to the CPU:", query.display_indent());
    for CpuOperator { operator, why } in left {
        text.push_str(&format!("\n  {operator}: {why}"));
    }
    Some(text)
}

/// An operator that explains or writes, over another query of the same columns, and what an EXPLAIN
/// says beside.
fn with_query(plan: &LogicalPlan, query: LogicalPlan, told: Option<String>) -> LogicalPlan {
    match plan.clone() {
        LogicalPlan::Explain(mut explain) => {
            explain.plan = Arc::new(query);
            let told = told.map(|text| StringifiedPlan::new(PlanType::FinalLogicalPlan, text));
            explain.stringified_plans.extend(told);
            LogicalPlan::Explain(explain)
        }
        LogicalPlan::Analyze(mut analyze) => {
            analyze.input = Arc::new(query);
            LogicalPlan::Analyze(analyze)
        }
        LogicalPlan::Dml(mut dml) => {
            dml.input = Arc::new(query);
            LogicalPlan::Dml(dml)
        }
        LogicalPlan::Copy(mut copy) => {
            copy.input = Arc::new(query);
            LogicalPlan::Copy(copy)
        }
        other => other,
    }
}
