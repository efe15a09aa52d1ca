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
//! A table is cut at keys (`devices/cuts.rs`), so that devices have the same keys of several tables,
//! or its chunks are dealt out by their bytes. A device's part of a table stays on it for later
//! queries. Rows that change the device go straight to its memory where the devices reach each
//! other, else through the host's. The result lies on the first device.

mod cuts;
mod exchanged;
mod foreseen;
mod kept;
mod waiting;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

pub(in crate::exec) use self::cuts::KnownCuts;
use self::cuts::{CutTable, OpenTable, cut_tables};
use self::exchanged::{Exchange, on_devices};
pub(super) use self::foreseen::foreseen;
use self::kept::KeptPart;
use self::waiting::table_of;
use super::columns_bytes;
use super::facts::division_of;
use super::result::DividedResult;
use super::stored::{StoredBlock, StoredRows};
use crate::error::{Error, Result};
use crate::exec::{Engine, Outcome, run_on_one_device, run_resident};
use crate::io::{OfSession, PartKeys, Snapshot, SourceTable, rows};
use crate::plan::{
    Budget, DevicePlan, GATHERED, InputRole, PlanTable, Stage, StageInput, StageLimits, StageRows,
    TaskPlace, is_foreign, lift, order_joins, placeholder_number, stages,
};
use warpframe_device::interrupt;
use warpframe_device::timeline::{Part, span};

/// Bytes of columns for each device from which on several devices are used. An estimate: a device
/// reads so many in some 0.6 ms, and a stage starts on another device in a fraction of that.
const LEAST_BYTES: u64 = 2 << 30;
/// What an exchange of hardly any rows takes, some 0.4 ms: the bytes that memory brings meanwhile.
const EXCHANGE: u64 = 1_600_000_000;
/// How often a plan is begun anew where files change meanwhile.
const PATIENCE: usize = 5;

/// Runs a supported plan on all of the engine's devices; `None` where one is enough, or where the
/// plan cannot be dealt out.
///
/// # Errors
/// Of the parts; [`DeviceLost`](crate::ErrorKind::DeviceLost) where a device was lost meanwhile.
pub(in crate::exec) async fn run_on_devices(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Option<Outcome>> {
    if let Some(outcome) = run_kept(state, engine, plan, tables).await? {
        return Ok(Some(outcome));
    }
    let (logical, tables) = match dealt_out(state, engine, plan, tables)? {
        Ok(dealt) => {
            plan.runs_on_one(false);
            dealt
        }
        Err(why) => {
            plan.runs_on_one(matches!(why, OnOne::Small { .. }));
            return Ok(None);
        }
    };
    for _ in 0..PATIENCE {
        let devices: Vec<&Engine> = engine.devices().collect();
        let open = open_tables(state, &tables).await?;
        let known = plan.kept::<StagedPlan>(&tables);
        let staged = match known.filter(|staged| staged.is_still(engine, &devices, &open)) {
            Some(staged) => staged,
            None => {
                let staged = StagedPlan::of(state, &devices, &logical, (&tables, &open)).await;
                let staged = staged.map_err(|error| engine.told_of_loss(&devices, error))?;
                let staged = Arc::new(staged);
                plan.keep(&tables, staged.clone());
                staged
            }
        };
        let run = StageRun::of(state, &devices, (&tables, &open), &staged.cut);
        let ran = run.last(&staged.stage).await;
        let ran = ran.map_err(|error| engine.told_of_loss(&devices, error));
        if run.is_of_one_version()? {
            return ran.map(Some);
        }
    }
    Err(crate::exec::scan::restless(plan.scans().first().copied()))
}

/// Runs the stages that several devices kept of a supported plan; `None` where there are none, or
/// where they fail in a way that whoever runs the plan next has an answer to.
///
/// # Errors
/// Of the stages.
pub(crate) async fn run_kept_stages(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Option<Outcome>> {
    if !engine.has_others() || engine.cluster.is_some() {
        return Ok(None);
    }
    match run_kept(state, engine, plan, tables).await {
        Err(error) if error.is_out_of_device_memory() || engine.gives_way(&error) => Ok(None),
        ran => ran,
    }
}

/// Runs the stages that an earlier run of a plan over placeholders has kept; `None` where there are
/// none, or none for the versions of the tables.
async fn run_kept(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Option<Outcome>> {
    let Some(staged) = is_bare(plan).then(|| plan.kept::<StagedPlan>(tables)).flatten() else {
        return Ok(None);
    };
    let devices: Vec<&Engine> = engine.devices().collect();
    let open = open_tables(state, tables).await?;
    if !staged.is_still(engine, &devices, &open) {
        return Ok(None);
    }
    let run = StageRun::of(state, &devices, (tables, &open), &staged.cut);
    let ran = run.last(&staged.stage).await.map_err(|error| engine.told_of_loss(&devices, error));
    if run.is_of_one_version()? { ran.map(Some) } else { Ok(None) }
}

/// Why one device runs a plan of a session that has several.
enum OnOne {
    /// It reads a table of another provider.
    Foreign,
    /// Its columns take so many bytes, which is less than so many for each device.
    Small { bytes: u64, least: u64 },
    /// Its parts would not be those of one plan: a function yields something else each time.
    Volatile,
}

/// The plan over placeholders, and its tables; or why one device runs it.
fn dealt_out(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<std::result::Result<(LogicalPlan, Vec<PlanTable>), OnOne>> {
    if plan.scans().into_iter().any(is_foreign) {
        return Ok(Err(OnOne::Foreign));
    }
    let least = engine.device.of_kind(LEAST_BYTES, 0);
    let least = engine.device.shared_bytes().unwrap_or(least);
    let bytes = columns_bytes(state, plan, tables, true)?;
    if bytes <= (least * engine.devices().count() as u64) as f64 {
        return Ok(Err(OnOne::Small { bytes: bytes as u64, least }));
    }
    Ok(match is_bare(plan) {
        true => Ok((plan.logical().clone(), tables.to_vec())),
        false => lift(plan.logical()).ok_or(OnOne::Volatile),
    })
}

/// Whether the plan reads placeholders alone.
fn is_bare(plan: &DevicePlan) -> bool {
    plan.scans().iter().all(|scan| placeholder_number(&scan.source).is_some())
}

/// Those of a plan's tables whose rows come from sources, in their present version.
async fn open_tables(state: &SessionState, tables: &[PlanTable]) -> Result<Vec<Option<OpenTable>>> {
    let _span = span(Part::Footers, || "the versions of tables".into());
    let mut open = vec![];
    for table in tables {
        let provider = source_as_provider(table)?;
        let snapshot = match OfSession::of(provider.as_ref()) {
            Some(OfSession::Source(source)) => Some(source.current(state).await?),
            _ => None,
        };
        open.push(snapshot.map(|snapshot| OpenTable { provider, snapshot }));
    }
    Ok(open)
}

/// A plan with its joins in order.
fn in_order(engine: &Engine, plan: &LogicalPlan, tables: &[PlanTable]) -> Result<LogicalPlan> {
    Ok(match engine.orders_joins() {
        true => order_joins(plan.clone(), tables)?.plan,
        false => plan.clone(),
    })
}

/// The stages of a plan whose joins are in order, and whose tables are cut so.
fn stages_of(
    state: &SessionState,
    devices: &[&Engine],
    plan: &LogicalPlan,
    (tables, cut): (&[PlanTable], &[Option<CutTable>]),
) -> Result<Stage> {
    let engine = devices[0];
    let division = division_of(state, engine, plan, tables)?;
    let cuts: Vec<_> = cut.iter().map(|cut| cut.as_ref().map(|cut| cut.cuts.clone())).collect();
    let gathered = engine.device.of_kind(GATHERED, 0);
    let exchange = engine.device.of_kind(EXCHANGE, 0);
    let (tasks, tables) = (devices.len(), &cuts[..]);
    let place = TaskPlace::Devices { exchange };
    let limits = StageLimits { tasks, place, gathered, tables };
    stages(plan, &division, limits)
}

/// A plan in stages, for so many devices and for tables in these versions.
struct StagedPlan {
    stage: Arc<PreparedStage>,
    cut: Vec<Option<CutTable>>,
    versions: Vec<Option<u64>>,
    devices: usize,
}

impl StagedPlan {
    async fn of(
        state: &SessionState,
        devices: &[&Engine],
        plan: &LogicalPlan,
        (tables, open): (&[PlanTable], &[Option<OpenTable>]),
    ) -> Result<StagedPlan> {
        let plan = in_order(devices[0], plan, tables)?;
        let cut = cut_tables(state, devices, &plan, open).await?;
        let stage = stages_of(state, devices, &plan, (tables, &cut))?;
        Ok(StagedPlan {
            stage: PreparedStage::of(&stage, &mut vec![]),
            cut,
            versions: versions(open),
            devices: devices.len(),
        })
    }

    fn is_still(&self, engine: &Engine, devices: &[&Engine], open: &[Option<OpenTable>]) -> bool {
        let mut cut = open.iter().zip(&self.cut);
        self.devices == devices.len()
            && self.versions == versions(open)
            && cut
                .all(|(open, cut)| open.as_ref().is_none_or(|open| engine.cuts.is_still(open, cut)))
    }
}

fn versions(open: &[Option<OpenTable>]) -> Vec<Option<u64>> {
    open.iter().map(|open| open.as_ref().map(|open| open.snapshot.number())).collect()
}

/// A stage whose fragment is kept with its pipelines.
struct PreparedStage {
    /// Stages whose rows it reads have lesser ones.
    number: usize,
    plan: Arc<DevicePlan>,
    inputs: Vec<PreparedInput>,
    /// How many inputs its rows are.
    readers: AtomicUsize,
}

struct PreparedInput {
    role: InputRole,
    rows: PreparedRows,
}

enum PreparedRows {
    Table(usize),
    Stage(Arc<PreparedStage>),
}

impl PreparedStage {
    /// The stage, and those below it, each once.
    fn of(
        stage: &Stage,
        known: &mut Vec<(*const Stage, Arc<PreparedStage>)>,
    ) -> Arc<PreparedStage> {
        if let Some((_, found)) = known.iter().find(|(of, _)| std::ptr::eq(*of, stage)) {
            found.readers.fetch_add(1, Relaxed);
            return found.clone();
        }
        let input = |input: &StageInput| PreparedInput {
            role: input.role.clone(),
            rows: match &input.rows {
                StageRows::Table(number) => PreparedRows::Table(*number),
                StageRows::Stage(below) => PreparedRows::Stage(PreparedStage::of(below, known)),
            },
        };
        let inputs = stage.inputs.iter().map(input).collect();
        let (number, plan) = (known.len(), DevicePlan::of(stage.fragment.clone()));
        let made = Arc::new(PreparedStage { number, plan, inputs, readers: AtomicUsize::new(1) });
        known.push((stage, made.clone()));
        made
    }
}

/// One run of a plan's stages.
struct StageRun<'a> {
    state: &'a SessionState,
    /// The first one first; they stay what they are, also where one is lost meanwhile.
    devices: &'a [&'a Engine],
    tables: &'a [PlanTable],
    /// Those of `tables` whose rows come from sources.
    open: &'a [Option<OpenTable>],
    /// How these are cut.
    cut: &'a [Option<CutTable>],
    /// Rows of stages that are read again, by the stages' numbers.
    rows: Mutex<HashMap<usize, Vec<StoredRows>>>,
}

impl<'a> StageRun<'a> {
    fn of(
        state: &'a SessionState,
        devices: &'a [&'a Engine],
        (tables, open): (&'a [PlanTable], &'a [Option<OpenTable>]),
        cut: &'a [Option<CutTable>],
    ) -> StageRun<'a> {
        StageRun { state, devices, tables, open, cut, rows: Mutex::default() }
    }

    /// The rows of the last stage, on the first device.
    async fn last(&self, stage: &PreparedStage) -> Result<Outcome> {
        let rows = self.rows_of(stage).await?;
        let mut gathered = match rows.len() {
            // They are there.
            1 => rows,
            _ => Exchange::of(self.devices).moved(rows, &InputRole::First, 1)?,
        };
        let stored = gathered.pop().ok_or_else(|| Error::internal("a stage has no task"))?;
        match stored.load() {
            Ok(table) => Ok(Outcome::Device(table)),
            Err(error) if error.is_out_of_device_memory() => {
                let part = Budget::of(&self.devices[0].device).part;
                Ok(Outcome::Divided(DividedResult::new(stored, part)))
            }
            Err(error) => Err(error),
        }
    }

    /// The rows of a stage, which are computed once however many read them.
    async fn shared_rows_of(&self, stage: &PreparedStage) -> Result<Vec<StoredRows>> {
        if stage.readers.load(Relaxed) == 1 {
            return self.rows_of(stage).await;
        }
        let known = self.rows.lock().get(&stage.number).cloned();
        if let Some(rows) = known {
            return Ok(rows);
        }
        let rows = self.rows_of(stage).await?;
        self.rows.lock().insert(stage.number, rows.clone());
        Ok(rows)
    }

    /// The rows of a stage's tasks, each on its device or on the host.
    fn rows_of<'s>(&'s self, stage: &'s PreparedStage) -> BoxFuture<'s, Result<Vec<StoredRows>>> {
        async move {
            let parted = stage.inputs.iter().any(|input| input.role.is_parted());
            let tasks = if parted { self.devices.len() } else { 1 };
            let mut inputs: Vec<Vec<PlanTable>> = vec![vec![]; tasks];
            for input in &stage.inputs {
                match &input.rows {
                    PreparedRows::Table(number) => {
                        let of_table = self.table(*number, &input.role, tasks)?;
                        inputs.iter_mut().zip(of_table).for_each(|(of, table)| of.push(table));
                    }
                    PreparedRows::Stage(below) => {
                        let rows = self.shared_rows_of(below).await?;
                        let exchange = Exchange::of(self.devices);
                        let moved = exchange.moved(rows, &input.role, tasks)?;
                        self.note(below, &exchange);
                        for (of, rows) in inputs.iter_mut().zip(moved) {
                            of.push(table_of(rows)?);
                        }
                    }
                }
            }
            if tasks == 1 {
                return Ok(vec![self.task_rows(stage, self.devices[0], &inputs[0]).await?]);
            }
            let inputs = &inputs;
            let runtime = tokio::runtime::Handle::current();
            on_devices(self.devices, tasks, |task, engine| {
                let ran = self.task_rows(stage, engine, &inputs[task]);
                match interrupt::current() {
                    Some(statement) => runtime.block_on(statement.or_stop(ran)),
                    None => runtime.block_on(ran),
                }
            })
        }
        .boxed()
    }

    /// The rows of one task, on its device or on the host.
    async fn task_rows(
        &self,
        stage: &PreparedStage,
        engine: &Engine,
        inputs: &[PlanTable],
    ) -> Result<StoredRows> {
        let mut rows = StoredRows::new(&engine.device, stage.plan.logical().schema());
        let ran = match run_resident(engine, &stage.plan, inputs)? {
            Some(table) => Outcome::Device(table),
            None => run_on_one_device(self.state, engine, &stage.plan, inputs).await?,
        };
        match ran {
            Outcome::Device(table) => rows.blocks.push(StoredBlock::Device(table)),
            Outcome::Divided(divided) => rows = divided.into_stored(),
            Outcome::Host(_) => return Err(Error::internal("rows of the CPU engine")),
        }
        Ok(rows)
    }

    /// Says what an exchange moved, while somebody records.
    fn note(&self, of: &PreparedStage, exchange: &Exchange<'_>) {
        let device = &self.devices[0].device;
        let _operator = device.operator(|| format!("stage {}", of.number));
        device.note(|| format!("{} bytes of its rows went to other devices", exchange.bytes()));
    }

    /// A table, or its part, for each task.
    fn table(&self, number: usize, role: &InputRole, tasks: usize) -> Result<Vec<PlanTable>> {
        let table = self
            .tables
            .get(number)
            .ok_or_else(|| Error::internal(format!("no table has number {number}")))?;
        let provider = source_as_provider(table)?;
        let engines = self.devices.iter().copied().take(tasks).enumerate();
        let is_part = *role == InputRole::Part;
        if let Some(OfSession::Device(kept)) = OfSession::of(provider.as_ref()) {
            let of = |(task, engine): (usize, &Engine)| {
                let part = if is_part { (task, tasks) } else { (0, 1) };
                let source = || Arc::new(KeptPart::of(&kept.table, part));
                match (kept.table.device().same(&engine.device), is_part) {
                    (true, false) => table.clone(),
                    // It is there already, and shares the table's memory.
                    (true, true) => {
                        let snapshot = Snapshot::of(source());
                        provider_as_source(Arc::new(SourceTable::new(snapshot, None, 0)))
                    }
                    _ => provider_as_source(engine.scanned.of_kept(&provider, part, source)),
                }
            };
            return Ok(engines.map(of).collect());
        }
        let Some(open) = self.open.get(number).and_then(|open| open.as_ref()) else {
            return Err(Error::internal("a provider's table is dealt out"));
        };
        let cut = self.cut.get(number).and_then(|cut| cut.as_ref()).filter(|_| is_part);
        let of = |(task, engine): (usize, &Engine)| match (cut, task) {
            (Some(cut), _) => {
                let part = part_of(open, cut, task)?;
                Ok(provider_as_source(engine.scanned.of_rows(&provider, &open.snapshot, part)?))
            }
            (None, task) if is_part || task > 0 => {
                let part = if is_part { (task, tasks) } else { (0, 1) };
                let of = engine.scanned.of_snapshot(&provider, &open.snapshot, part);
                Ok(provider_as_source(of))
            }
            _ => Ok(table.clone()),
        };
        engines.map(of).collect()
    }

    fn is_of_one_version(&self) -> Result<bool> {
        for open in self.open.iter().flatten() {
            if let Some(OfSession::Source(source)) = OfSession::of(open.provider.as_ref())
                && !source.is_current(&open.snapshot)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Which rows of a table are a device's, and the keys that these may have.
fn part_of(open: &OpenTable, cut: &CutTable, device: usize) -> Result<(Range<u64>, PartKeys)> {
    let all = rows(&open.snapshot.source().chunks());
    let all = all.ok_or_else(|| Error::internal("a table without a number of rows is cut"))?;
    let provider = open.provider.as_ref();
    let keys = PartKeys::of(provider, cut.cuts.column, cut.keys(device));
    Ok((cut.rows(device, all), keys))
}
