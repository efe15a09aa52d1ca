//! What of a plan a cluster runs, as operators of DataFusion.
//!
//! | a subtree | runs |
//! |---|---|
//! | that computes something of Parquet files | on the cluster, in stages |
//! | that hands rows of files on | here: they come here in any case |
//! | of other tables alone | here: this process has the rows |
//!
//! Executors read Parquet files by their absolute paths. Rows of other tables of such a subtree
//! travel within the plan, up to [`MOST_BYTES`].

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result as PlanResult;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableScanBuilder};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use futures::StreamExt;

use super::cluster::ClusterEngine;
use super::own_buffers::of_own_buffers;
use super::stage::StageContext;
use super::stage_plan::stage_plan;
use super::{Engine, Outcome, division_of};
use crate::cpu;
use crate::error::{Error, Result};
use crate::io::{OfSession, SourceTable, bytes_of, partitions_in_order};
use crate::plan::{
    Cut, DevicePlan, GATHERED, Placed, PlacedParts, PlanTable, StageLimits, TablePlaceholder,
    TaskPlace, any_node, is_worth_it, order_joins, projection, same_table, stages, table_source,
    with_different_names,
};
use crate::user_code::{UserAggregate, is_called_by};

/// Most bytes of rows that travel within a plan.
const MOST_BYTES: usize = 64 << 20;

/// Whether rows are read to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LocalRows {
    Read,
    /// The plan is only looked at.
    Left,
}

/// Runs a subtree on the cluster; `None` where it runs here.
///
/// # Errors
/// `Unsupported` of what cannot be sent; of the run.
pub(super) async fn run(
    state: &SessionState,
    engine: &Engine,
    cluster: &ClusterEngine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Option<Outcome>> {
    let placed = placed(state, engine, cluster, (plan, tables), LocalRows::Read).await?;
    let Placed::OnCluster(physical) = placed else { return Ok(None) };
    let schema = Arc::new(plan.logical().schema().as_arrow().clone());
    let config = cluster.planner(state).config().clone();
    let (mut rows, _watched) = cluster.run(physical, config).await?;
    let mut batches = vec![];
    while let Some(batch) = rows.next().await {
        batches.push(named(batch?, &schema)?);
    }
    Ok(Some(Outcome::Host(batches)))
}

/// Where the parts of a plan run that devices support; none of a session without a cluster. Nothing
/// is read but what is known of tables.
///
/// # Errors
/// Of the tables.
pub(crate) async fn places(
    state: &SessionState,
    engine: &Engine,
    cut: &Cut,
    tables: &[PlanTable],
) -> Result<PlacedParts> {
    let mut places = vec![];
    let Some(cluster) = &engine.cluster else { return Ok(places) };
    for node in cut.device_nodes()? {
        let (plan, of_node) = (node.plan(), node.tables());
        let tables = if of_node.is_empty() { tables } else { of_node };
        let placed = placed(state, engine, cluster, (plan, tables), LocalRows::Left).await;
        let placed = match placed {
            Err(error) if engine.gives_way(&error) => Placed::Here(error.to_string()),
            placed => placed?,
        };
        places.push((plan.clone(), placed));
    }
    Ok(places)
}

/// A batch with these names of columns.
fn named(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)?)
}

/// Where a subtree runs.
///
/// # Errors
/// `Unsupported` of what cannot be sent; of tables.
async fn placed(
    state: &SessionState,
    engine: &Engine,
    cluster: &ClusterEngine,
    (plan, tables): (&DevicePlan, &[PlanTable]),
    rows: LocalRows,
) -> Result<Placed> {
    if !is_worth_it(plan.logical())? {
        return Ok(Placed::Here("it computes nothing of a table".into()));
    }
    let planner = cluster.planner(state);
    let (logical, asked) = asked_of(plan, tables)?;
    let mut scans = vec![];
    for table in &asked {
        scans.push(table.shared_scan(&planner, state).await?);
    }
    if scans.iter().all(Option::is_none) {
        return Ok(Placed::Here("it reads no Parquet file".into()));
    }
    if any_node(plan.logical(), calls_user_code)? {
        let what = format!("a function of the user's on {}", cluster.name());
        return Err(Error::unsupported(what, "its code is not sent to executors"));
    }
    let mut left = MOST_BYTES;
    let mut all = vec![];
    for (table, scan) in asked.iter().zip(scans) {
        let scan = match (scan, rows) {
            (Some(scan), _) => scan,
            (None, LocalRows::Left) => table.of_batches(vec![])?,
            (None, LocalRows::Read) => {
                table.of_batches(table.batches(state, cluster, &mut left).await?)?
            }
        };
        all.push((scan, table.columns.clone()));
    }
    let known: Vec<PlanTable> = asked.into_iter().map(|table| table.source).collect();
    let mut logical = with_different_names(logical)?;
    if engine.orders_joins() {
        logical = order_joins(logical, &known)?.plan;
    }
    let division = division_of(state, engine, &logical, &known)?;
    let tasks = planner.config().target_partitions();
    let broadcast = cluster.cluster.broadcast_limit();
    let gathered = broadcast.min(GATHERED);
    let place = TaskPlace::Processes { broadcast };
    let limits = StageLimits { tasks, place, gathered, tables: &[] };
    let stage = stages(&logical, &division, limits)?;
    let context = StageContext { device: None, state: Arc::new(planner.clone()) };
    let physical = stage_plan(&stage, &all, &context, false)?;
    let physical =
        DefaultPhysicalPlanner::default().optimize_physical_plan(physical, &planner, |_, _| {})?;
    Ok(Placed::OnCluster(physical))
}

/// Whether an operator calls a function that a user wrote.
fn calls_user_code(node: &LogicalPlan) -> PlanResult<bool> {
    let mut calls = false;
    node.apply_expressions(|expr| {
        calls |= expr.exists(|part| {
            let aggregates = matches!(
                part,
                Expr::AggregateFunction(call) if UserAggregate::of(&call.func).is_some()
            );
            Ok(aggregates || is_called_by(part))
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(calls)
}

/// What a subtree asks of a table, all its scans together.
struct AskedOfTable {
    source: PlanTable,
    name: String,
    columns: Vec<usize>,
    /// The conditions that the rows of each scan have to meet.
    above: Vec<Vec<Expr>>,
    /// The scan of a table that is not the session's: its provider applies filters of its own.
    foreign: Option<TableScan>,
}

/// The subtree over placeholders, and its tables by their numbers.
fn asked_of(plan: &DevicePlan, tables: &[PlanTable]) -> Result<(LogicalPlan, Vec<AskedOfTable>)> {
    let (mut asked, mut above) = (Vec::<AskedOfTable>::new(), plan.scan_filters().into_iter());
    let logical = plan.logical().clone().transform_up(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
        let source = table_source(&scan, tables).clone();
        let provider = source_as_provider(&source)?;
        let is_foreign = OfSession::of(provider.as_ref()).is_none();
        let known = asked.iter().position(|of| !is_foreign && same_table(&of.source, &source));
        let number = known.unwrap_or(asked.len());
        if known.is_none() {
            asked.push(AskedOfTable {
                source: source.clone(),
                name: scan.table_name.to_string(),
                columns: vec![],
                above: vec![],
                foreign: is_foreign.then(|| scan.clone()),
            });
        }
        let of = &mut asked[number];
        of.columns.extend(projection(&scan));
        of.columns.sort_unstable();
        of.columns.dedup();
        of.above.push(above.next().unwrap_or_default());
        let source = TablePlaceholder::source(number, source.schema());
        let scan = TableScan { source, filters: vec![], fetch: None, ..scan };
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    })?;
    Ok((logical.data, asked))
}

impl AskedOfTable {
    /// What reads the table on any machine that has its files; `None` where only this process has
    /// its rows.
    async fn shared_scan(
        &self,
        planner: &SessionState,
        state: &SessionState,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let provider = source_as_provider(&self.source)?;
        let Some(OfSession::Source(table)) = OfSession::of(provider.as_ref()) else {
            return Ok(None);
        };
        let table: &SourceTable = table;
        let snapshot = table.current(state).await?;
        let part = table.part(state, &snapshot, &self.above)?;
        let source = part.as_ref().map_or(snapshot.source(), |part| part.source());
        if !source.is_read_anywhere() {
            return Ok(None);
        }
        let scan = source.scan(planner, Some(&self.columns), &[], None).await?;
        // Of no files there is nothing to read, and of intervals nothing that can be sent.
        Ok(scan.is::<DataSourceExec>().then_some(scan))
    }

    /// The table's rows, of the columns that are asked for.
    ///
    /// # Errors
    /// `Unsupported` of more bytes than are left to send, and of rows that do not end.
    async fn batches(
        &self,
        state: &SessionState,
        cluster: &ClusterEngine,
        left: &mut usize,
    ) -> Result<Vec<RecordBatch>> {
        let what = || format!("the table {:?} on {}", self.name, cluster.name());
        let scan = TableScanBuilder::new(self.name.as_str(), self.source.clone())
            .with_projection(Some(self.columns.clone()));
        let scan = match &self.foreign {
            Some(own) => scan.with_filters(own.filters.clone()).with_fetch(own.fetch),
            None => scan,
        };
        let plan = cpu::plan(&LogicalPlan::TableScan(scan.build()?))?;
        let plan = DefaultPhysicalPlanner::default().create_physical_plan(&plan, state).await?;
        if plan.boundedness().is_unbounded() {
            return Err(Error::unsupported(what(), "its rows do not end"));
        }
        let (schema, mut batches) = (self.schema()?, vec![]);
        let mut rows = partitions_in_order(plan, state.task_ctx())?;
        while let Some(batch) = rows.next().await {
            let batch = of_own_buffers(&named(batch?, &schema)?)?;
            *left = left.checked_sub(bytes_of(&batch)).ok_or_else(|| {
                let why = format!(
                    "executors read Parquet files alone, and the rows of other tables travel within \
                     the plan, at most {} MiB of them",
                    MOST_BYTES >> 20
                );
                Error::unsupported(what(), why)
            })?;
            if batch.num_rows() > 0 {
                batches.push(batch);
            }
        }
        Ok(batches)
    }

    /// Of the columns that are asked for.
    fn schema(&self) -> Result<SchemaRef> {
        let schema: Schema = self.source.schema().project(&self.columns)?;
        Ok(Arc::new(schema))
    }

    fn of_batches(&self, batches: Vec<RecordBatch>) -> Result<Arc<dyn ExecutionPlan>> {
        let source = MemorySourceConfig::try_new(&[batches], self.schema()?, None)?;
        Ok(Arc::new(DataSourceExec::new(Arc::new(source))))
    }
}
