//! A plan over several devices: its stages (`plan/stages.rs`), of which each device runs one task.
//!
//! ```text
//!   device 0                          device 1
//!   partial(part of lineitem)         partial(part of lineitem)     each reads over its own link
//!          │╲______________________________╱│
//!          │╱                              ╲│                       parted by a hash on the device
//!   finished(groups of hash 0)        finished(groups of hash 1)
//!          │_______________________________╱                        the last rows go to the first
//! ```
//!
//! A table's chunks are dealt out by their bytes. A device's part of a table stays on it for later
//! queries. Rows that change the device go straight to its memory where the devices reach each
//! other, else through the host's. The result lies on the first device.

use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result as PlanResult;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::columns_exceed;
use super::exchange::HashParts;
use super::foresight::{division_of, seed_of};
use super::result::DividedResult;
use super::stored::{StoredBlock, StoredRows, downloaded};
use crate::column::Table;
use crate::error::{Error, Result};
use crate::exec::{Engine, Outcome, run_on_one_device};
use crate::io::{
    Chunk, ColumnRequest, DeviceTable, KeptTable, OfSession, Read, Snapshot, Source, SourceTable,
    To,
};
use crate::plan::{
    Budget, DevicePlan, InputRole, PlanTable, Stage, StageInput, StageLimits, StageRows,
    is_foreign, lift, order_joins, placeholder_number, stages,
};
use warpframe_device::interrupt;

/// Bytes of columns for each device from which on several devices are used. An estimate: a device
/// reads so many in some 0.6 ms, and a stage starts on another device in a fraction of that.
const LEAST_BYTES: u64 = 2 << 30;
/// A side of a join of at most so many bytes is given whole to each device.
const BROADCAST: u64 = 1 << 30;
/// Bytes of the stack of a device's thread: as that of a query's.
const STACK: usize = 64 << 20;
/// How often a plan is begun anew where files change meanwhile.
const PATIENCE: usize = 5;

/// Runs a supported plan on all of the engine's devices; `None` where one is enough, or where the
/// plan cannot be dealt out.
///
/// # Errors
/// Of the parts.
pub(in crate::exec) async fn run_on_devices(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Option<Outcome>> {
    if plan.scans().into_iter().any(is_foreign) {
        return Ok(None);
    }
    let devices = engine.devices().count() as u64;
    let least = engine.device.of_kind(LEAST_BYTES, 0);
    let least = engine.device.shared_bytes().unwrap_or(least);
    let pays = columns_exceed(state, plan, tables, (least * devices) as f64, true)?;
    plan.runs_on_one(!pays);
    if !pays {
        return Ok(None);
    }
    let bare = plan.scans().iter().all(|scan| placeholder_number(&scan.source).is_some());
    let (logical, tables) = match bare {
        true => (plan.logical().clone(), tables.to_vec()),
        false => match lift(plan.logical()) {
            Some(lifted) => lifted,
            None => return Ok(None),
        },
    };
    let stage =
        plan.kept(&tables, || Ok(PreparedStage::of(&staged(state, engine, logical, &tables)?)))?;
    for _ in 0..PATIENCE {
        let mut run = StageRun { state, engine, tables: &tables, read: vec![] };
        let ran = run.last(&stage).await;
        if run.is_of_one_version()? {
            return ran.map(Some);
        }
    }
    Err(crate::exec::scan::restless(plan.scans().first().copied()))
}

fn staged(
    state: &SessionState,
    engine: &Engine,
    plan: LogicalPlan,
    tables: &[PlanTable],
) -> Result<Stage> {
    let plan = match engine.orders_joins() {
        true => order_joins(plan, tables)?.plan,
        false => plan,
    };
    let division = division_of(state, engine, &plan, tables)?;
    let broadcast = engine.device.of_kind(BROADCAST, 1 << 12);
    let tasks = engine.devices().count();
    stages(&plan, &division, StageLimits { tasks, broadcast, on_devices: true })
}

/// A stage whose fragment is kept with its pipelines.
struct PreparedStage {
    plan: Arc<DevicePlan>,
    inputs: Vec<PreparedInput>,
}

struct PreparedInput {
    role: InputRole,
    rows: PreparedRows,
}

enum PreparedRows {
    Table(usize),
    Stage(PreparedStage),
}

impl PreparedStage {
    fn of(stage: &Stage) -> PreparedStage {
        let input = |input: &StageInput| PreparedInput {
            role: input.role.clone(),
            rows: match &input.rows {
                StageRows::Table(number) => PreparedRows::Table(*number),
                StageRows::Stage(below) => PreparedRows::Stage(PreparedStage::of(below)),
            },
        };
        let plan = DevicePlan::of(stage.fragment.clone());
        PreparedStage { plan, inputs: stage.inputs.iter().map(input).collect() }
    }
}

/// One run of a plan's stages.
struct StageRun<'a> {
    state: &'a SessionState,
    engine: &'a Engine,
    tables: &'a [PlanTable],
    /// Versions of tables of files that were read, by the tables' numbers.
    read: Vec<(usize, Arc<Snapshot>)>,
}

impl StageRun<'_> {
    /// The rows of the last stage, on the first device.
    async fn last(&mut self, stage: &PreparedStage) -> Result<Outcome> {
        let rows = self.rows_of(stage).await?;
        let mut gathered = self.moved(rows, &InputRole::First, 1)?;
        let stored = gathered.pop().ok_or_else(|| Error::internal("a stage has no task"))?;
        match stored.load() {
            Ok(table) => Ok(Outcome::Device(table)),
            Err(error) if error.is_out_of_device_memory() => {
                let part = Budget::of(&self.engine.device).part;
                Ok(Outcome::Divided(DividedResult::new(stored, part)))
            }
            Err(error) => Err(error),
        }
    }

    /// The rows of a stage's tasks, each on its device or on the host.
    fn rows_of<'s>(
        &'s mut self,
        stage: &'s PreparedStage,
    ) -> BoxFuture<'s, Result<Vec<StoredRows>>> {
        async move {
            let parted = stage.inputs.iter().any(|input| input.role.is_parted());
            let tasks = if parted { self.engine.devices().count() } else { 1 };
            let mut inputs: Vec<Vec<PlanTable>> = vec![vec![]; tasks];
            for input in &stage.inputs {
                match &input.rows {
                    PreparedRows::Table(number) => {
                        let of_table = self.table(*number, &input.role, tasks).await?;
                        inputs.iter_mut().zip(of_table).for_each(|(of, table)| of.push(table));
                    }
                    PreparedRows::Stage(below) => {
                        let rows = self.rows_of(below).await?;
                        let moved = self.moved(rows, &input.role, tasks)?;
                        for (of, rows) in inputs.iter_mut().zip(moved) {
                            let table = KeptTable::new(rows.load()?);
                            of.push(provider_as_source(Arc::new(DeviceTable { table })));
                        }
                    }
                }
            }
            let (state, schema) = (self.state, stage.plan.logical().schema());
            let inputs = &inputs;
            let runtime = tokio::runtime::Handle::current();
            on_devices(self.engine, tasks, |task, engine| {
                let ran = run_on_one_device(state, engine, &stage.plan, &inputs[task]);
                let ran = match interrupt::current() {
                    Some(statement) => runtime.block_on(statement.or_stop(ran)),
                    None => runtime.block_on(ran),
                };
                let mut rows = StoredRows::new(&engine.device, schema);
                match ran? {
                    Outcome::Device(table) => rows.blocks.push(StoredBlock::Device(table)),
                    Outcome::Divided(divided) => rows = divided.into_stored(),
                    Outcome::Host(_) => return Err(Error::internal("rows of the CPU engine")),
                }
                Ok(rows)
            })
        }
        .boxed()
    }

    /// A table, or its part, for each task.
    async fn table(
        &mut self,
        number: usize,
        role: &InputRole,
        tasks: usize,
    ) -> Result<Vec<PlanTable>> {
        let table = self
            .tables
            .get(number)
            .ok_or_else(|| Error::internal(format!("no table has number {number}")))?;
        let provider = source_as_provider(table)?;
        let part = |task: usize| match role {
            InputRole::Part => (task, tasks),
            _ => (0, 1),
        };
        let engines = self.engine.devices().take(tasks).enumerate();
        let parts: Vec<PlanTable> = match OfSession::of(provider.as_ref()) {
            Some(OfSession::Device(kept)) => engines
                .map(|(task, engine)| match role {
                    InputRole::Part => kept_part(&kept.table, part(task)),
                    // It is there already.
                    _ if kept.table.device().same(&engine.device) => table.clone(),
                    _ => kept_part(&kept.table, (0, 1)),
                })
                .collect(),
            Some(OfSession::Source(source)) => {
                let snapshot = source.current(self.state).await?;
                self.read.push((number, snapshot.clone()));
                engines
                    .map(|(task, engine)| match (role, task) {
                        (InputRole::Part, _) | (_, 1..) => {
                            let of = engine.scanned.of_snapshot(&provider, &snapshot, part(task));
                            provider_as_source(of)
                        }
                        _ => table.clone(),
                    })
                    .collect()
            }
            None => return Err(Error::internal("a provider's table is dealt out")),
        };
        Ok(parts)
    }

    /// Rows of tasks where those of the next stage want them.
    fn moved(
        &self,
        rows: Vec<StoredRows>,
        role: &InputRole,
        tasks: usize,
    ) -> Result<Vec<StoredRows>> {
        let schema = rows.first().map(|rows| rows.schema.clone());
        let schema = schema.ok_or_else(|| Error::internal("a stage has no task"))?;
        let seed = seed_of(&self.engine.device);
        let rows = &rows;
        // Each device parts its own rows, and sends what others want.
        let sent = on_devices(self.engine, rows.len(), |from, engine| {
            let mut to: Vec<Vec<StoredBlock>> = vec![vec![]; tasks];
            for block in &rows[from].blocks {
                match role {
                    InputRole::ByKeys(columns) if tasks > 1 => {
                        let whole = StoredRows {
                            blocks: vec![block.clone()],
                            ..StoredRows::new(&engine.device, &schema)
                        };
                        let names = schema.columns();
                        let keys = columns.iter().map(|at| Expr::Column(names[*at].clone()));
                        let (keys, parts) = (keys.collect(), tasks as u32);
                        let by = HashParts { keys, parts, round: 0, seed };
                        let (table, begins) = by.part(&engine.device, &schema, &whole.load()?)?;
                        for (task, bounds) in begins.windows(2).enumerate() {
                            let part = table.slice(bounds[0], bounds[1] - bounds[0]);
                            if part.rows > 0 {
                                to[task].push(self.sent(StoredBlock::Device(part), from, task)?);
                            }
                        }
                    }
                    InputRole::First | InputRole::ByKeys(_) => {
                        to[0].push(self.sent(block.clone(), from, 0)?);
                    }
                    InputRole::Whole | InputRole::InOrder(_) | InputRole::Part => {
                        for (task, of_task) in to.iter_mut().enumerate() {
                            of_task.push(self.sent(block.clone(), from, task)?);
                        }
                    }
                }
            }
            Ok(to)
        })?;
        let engines: Vec<&Engine> = self.engine.devices().collect();
        let mut moved: Vec<StoredRows> = engines
            .iter()
            .take(tasks)
            .map(|engine| StoredRows::new(&engine.device, &schema))
            .collect();
        for of_device in sent {
            for (rows, blocks) in moved.iter_mut().zip(of_device) {
                rows.blocks.extend(blocks);
            }
        }
        // Side by side, too: each device has its own link.
        if tasks > 1 {
            let loaded = on_devices(self.engine, tasks, |task, _| moved[task].load())?;
            for (rows, table) in moved.iter_mut().zip(loaded) {
                rows.blocks = vec![StoredBlock::Device(table)];
            }
        }
        Ok(moved)
    }

    /// Rows of a task for another one, or for itself: straight to the other device, or on the host.
    fn sent(&self, block: StoredBlock, from: usize, to: usize) -> Result<StoredBlock> {
        match &block {
            StoredBlock::Device(table) if from != to => {
                let other = self.engine.devices().nth(to);
                let other = other.ok_or_else(|| Error::internal("no device has this number"))?;
                match table.on_peer(&other.device)? {
                    Some(table) => Ok(StoredBlock::Device(table)),
                    None => downloaded(table),
                }
            }
            _ => Ok(block),
        }
    }

    fn is_of_one_version(&self) -> Result<bool> {
        for (number, snapshot) in &self.read {
            let provider = source_as_provider(&self.tables[*number])?;
            if let Some(OfSession::Source(source)) = OfSession::of(provider.as_ref())
                && !source.is_current(snapshot)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Does something on so many of the devices side by side, each on a thread of its own, in the
/// statement of this one.
fn on_devices<T: Send>(
    engine: &Engine,
    tasks: usize,
    work: impl Fn(usize, &Engine) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let (statement, work) = (interrupt::current(), &work);
    std::thread::scope(|scope| {
        let thread = |(number, engine): (usize, &Engine)| {
            let (engine, statement) = (engine.clone(), statement.clone());
            let thread = std::thread::Builder::new().name(format!("warpframe-device-{number}"));
            thread.stack_size(STACK).spawn_scoped(scope, move || {
                let _entered = statement.as_ref().map(|statement| statement.enter());
                work(number, &engine)
            })
        };
        let threads: Vec<_> = engine.devices().take(tasks).enumerate().map(thread).collect();
        let join = |thread: std::io::Result<ScopedJoinHandle<'_, Result<T>>>| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(error) => Err(Error::internal(format!("the system gives no thread: {error}"))),
        };
        // All of them end before the first error is told.
        let ended: Vec<Result<T>> = threads.into_iter().map(join).collect();
        ended.into_iter().collect()
    })
}

/// A part of a kept table, as so many equal ones.
fn kept_part(table: &KeptTable, (part, of): (usize, usize)) -> PlanTable {
    let at = |part: usize| table.rows() * part / of;
    let rows = at(part)..at(part + 1);
    let source = Arc::new(KeptPart { table: table.clone(), rows });
    provider_as_source(Arc::new(SourceTable::new(Snapshot::of(source), None, 0)))
}

/// Some rows of a table that a device keeps, for any device.
#[derive(Debug)]
struct KeptPart {
    table: KeptTable,
    rows: std::ops::Range<usize>,
}

#[async_trait]
impl Source for KeptPart {
    fn schema(&self) -> SchemaRef {
        self.table.schema().clone()
    }

    fn chunks(&self) -> Vec<Chunk> {
        vec![Chunk { rows: Some(self.rows.len() as u64), bytes: None }]
    }

    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let whole = self.table.table()?;
        let schema = Arc::new(whole.schema.project(wanted.columns)?);
        let columns = wanted.columns.iter().map(|at| whole.columns[*at].clone()).collect();
        let table = Table::with_rows(&whole.device, schema.clone(), columns, whole.rows)?;
        let part = table.slice(self.rows.start, self.rows.len());
        if whole.device.same(to.device) {
            return Ok(Read::new(part.rows as u64, part.columns));
        }
        let StoredBlock::Host(rows, _) = downloaded(&part)? else {
            return Err(Error::internal("rows were not downloaded"));
        };
        let mut moved = Table::restored(to.device, &schema, &[rows])?;
        match moved.len() {
            1 => Ok(Read::new(self.rows.len() as u64, moved.remove(0).columns)),
            pieces => Err(Error::internal(format!("one table came back as {pieces}"))),
        }
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Err(Error::internal("a device's part of a table is read by the CPU engine").into())
    }
}
