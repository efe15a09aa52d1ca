//! Runs plans for a session that has a device.

mod aggregate;
mod cluster;
mod cluster_plan;
mod cpu_run;
mod divide;
mod foreign;
mod grouping;
mod join;
mod join_pairs;
mod join_partitioned;
mod join_records;
mod memory_scan;
mod node;
mod own_buffers;
mod progress;
mod regroup;
mod remote;
mod rows;
mod run;
mod runs;
mod runtime;
mod scan;
mod scanned;
mod sort;
mod sort_bytes;
mod stage;
mod stage_device;
mod stage_inputs;
mod stage_plan;
mod stops;
mod unnest;
mod user_code;
mod user_kernel;
mod values;
mod window;

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use datafusion::arrow::array::RecordBatch;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use parking_lot::Mutex;

pub(crate) use self::cluster::ClusterEngine;
pub use self::cluster::{Cluster, ClusterJob, ClusterWatch, StageReport, StagesProgress};
pub(crate) use self::cluster_plan::places;
pub use self::cpu_run::OperatorRun;
pub(crate) use self::cpu_run::{CpuBoard, CpuRun};
use self::divide::KnownCuts;
pub(crate) use self::divide::{DividedResult, ForeseenPlans, division_of, run_kept_stages};
pub(crate) use self::memory_scan::MemoryScan;
use self::node::Planner;
pub use self::own_buffers::of_own_buffers;
pub use self::progress::PartsProgress;
use self::progress::ProgressBoard;
pub use self::remote::RemoteExchanges;
pub(crate) use self::rows::{ROW, nullable, running_sums, take};
use self::run::Runner;
pub(crate) use self::runtime::{Runtime, join_later};
use self::scan::Scans;
use self::scanned::ScannedTables;
pub use self::stage::TasksOfStage;
pub(crate) use self::stage::{PartedTasks, StageContext};
#[cfg(feature = "proto")]
pub(crate) use self::stage::{StageParts, stage_of, stage_parts};
pub(crate) use self::stage_device::StageDevice;
pub(crate) use self::stage_inputs::{PlannedTable, scanned_table};
pub(crate) use self::stage_plan::stage_plan;
pub(crate) use self::user_code::{aggregated_on_host, checked, compiled_on_host};
pub(crate) use self::user_kernel::{KernelInput, LaunchShape, UserKernel};

use crate::column::Table;
use crate::cpu;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{self, CpuOperator, DevicePlan, PlanTable, Prepared, Root};
use warpframe_device::timeline::{Part, span};
use warpframe_device::{Ahead, Device};

/// What executes the plans of a session with a device.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(crate) device: Device,
    /// Any operator left to the CPU is an error.
    pub(crate) strict: bool,
    /// Plans that do not fit run in parts.
    divides: bool,
    /// Joins run in the order of estimated rows instead of the query's.
    join_order: Arc<AtomicBool>,
    rehearsed: Arc<Rehearsed>,
    /// How far plans are that run in parts.
    progress: ProgressBoard,
    /// Why parts of statements went to the CPU, since somebody asked.
    given_up: Sentences,
    /// Which columns of files the host's reader brought, and why, since somebody asked.
    host_reads: Sentences,
    /// Tables that scans of DataFusion read, in one version each.
    scanned: ScannedTables,
    /// How tables are cut for several devices.
    cuts: KnownCuts,
    /// The device's number among those of the session.
    number: usize,
    /// Engines of the devices behind it, each of which takes its place if all before it are lost.
    others: Arc<[Engine]>,
    /// Whether a statement's error said that the device is lost.
    told_lost: Arc<AtomicBool>,
    /// What runs plans instead of the device, which they are only made for.
    pub(crate) cluster: Option<Arc<ClusterEngine>>,
}

/// Where a result lies.
pub(crate) enum Outcome {
    Device(Table),
    Host(Vec<RecordBatch>),
    /// On the host, as it lay on the device: more than fits there.
    Divided(DividedResult),
}

impl Engine {
    pub(crate) fn new(device: Device, strict: bool, join_order: bool, divides: bool) -> Self {
        device.prepare_behind(warpframe_device::ops::sources);
        Engine {
            device,
            strict,
            divides,
            join_order: Arc::new(join_order.into()),
            rehearsed: Arc::default(),
            progress: ProgressBoard::default(),
            given_up: Sentences::default(),
            host_reads: Sentences::default(),
            scanned: ScannedTables::default(),
            cuts: KnownCuts::default(),
            number: 0,
            others: Arc::new([]),
            told_lost: Arc::default(),
            cluster: None,
        }
    }

    /// With a cluster, which runs all plans: nothing runs on the device.
    pub(crate) fn with_cluster(mut self, cluster: Arc<dyn Cluster>) -> Engine {
        self.cluster = Some(Arc::new(ClusterEngine::new(cluster)));
        self
    }

    /// The engine of several devices, which run large plans together; `None` without any.
    pub(crate) fn of_all(engines: Vec<Engine>) -> Option<Engine> {
        let mut behind: VecDeque<Engine> = VecDeque::with_capacity(engines.len());
        for (number, mut engine) in engines.into_iter().enumerate().rev() {
            engine.number = number;
            engine.others = behind.iter().cloned().collect();
            behind.push_front(engine);
        }
        behind.pop_front()
    }

    /// The engine of the first device of which no statement said that it is lost: results lie
    /// there.
    pub(crate) fn first(&self) -> &Engine {
        self.all_devices().find(|engine| !engine.told_lost.load(Relaxed)).unwrap_or(self)
    }

    /// It and the engines of its further devices.
    pub(crate) fn all_devices(&self) -> impl Iterator<Item = &Engine> {
        std::iter::once(self).chain(self.others.iter())
    }

    /// It and the engines of its further devices, but for those of which a statement said that they
    /// are lost.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &Engine> {
        let others = self.others.iter().filter(|other| !other.told_lost.load(Relaxed));
        std::iter::once(self).chain(others)
    }

    fn has_others(&self) -> bool {
        self.devices().nth(1).is_some()
    }

    /// An error of work on these devices; if one of them is lost by now, it says so.
    fn told_of_loss(&self, devices: &[&Engine], error: Error) -> Error {
        let is_one = |other: &Engine| devices.iter().any(|of| of.device.same(&other.device));
        let mut all = self.all_devices();
        match all.find(|other| is_one(other) && other.device.is_lost()) {
            Some(lost) if !self.others.is_empty() => {
                lost.told_lost.store(true, Relaxed);
                ErrorKind::DeviceLost { device: lost.number, why: error.to_string() }.into()
            }
            _ => error,
        }
    }

    pub(crate) fn orders_joins(&self) -> bool {
        self.join_order.load(Relaxed)
    }

    pub(crate) fn order_joins(&self, on: bool) {
        self.all_devices().for_each(|engine| engine.join_order.store(on, Relaxed));
    }

    /// Whether the CPU may do what failed here so: what the data showed that the device does not
    /// do, or has no memory for, or what needs a kernel that is not kept where there is no
    /// compiler.
    pub(crate) fn gives_way(&self, error: &Error) -> bool {
        use ErrorKind::{DeviceUnavailable, OutOfDeviceMemory, Unsupported};
        !self.strict
            && matches!(
                error.kind(),
                Unsupported { .. } | OutOfDeviceMemory { .. } | DeviceUnavailable { .. }
            )
    }

    /// Notes that the CPU does what failed here so.
    pub(crate) fn give_up(&self, error: &Error) {
        self.device.count_fallback();
        self.given_up.add([error.to_string()]);
    }

    /// How far the plan is that runs in parts, or did so last.
    pub(crate) fn progress(&self) -> Option<PartsProgress> {
        self.progress.read()
    }

    /// Why parts of statements went to the CPU, since this was asked last.
    pub(crate) fn take_reasons(&self) -> Vec<String> {
        self.given_up.take()
    }

    /// Which columns of files the host's reader brought, and why, since this was asked last.
    pub(crate) fn take_host_reads(&self) -> Vec<String> {
        self.host_reads.take()
    }
}

/// Sentences that somebody may ask for: the first ones, each once.
#[derive(Debug, Clone, Default)]
struct Sentences(Arc<Mutex<Vec<String>>>);

impl Sentences {
    const MOST: usize = 100;

    fn add(&self, sentences: impl IntoIterator<Item = String>) {
        let mut kept = self.0.lock();
        for sentence in sentences {
            if kept.len() < Self::MOST && !kept.contains(&sentence) {
                kept.push(sentence);
            }
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Runs a plan over tables that its placeholders stand for: on the device what it supports, on the
/// CPU the rest.
pub(crate) async fn execute(
    state: &SessionState,
    engine: &Engine,
    prepared: &Prepared,
    tables: &[PlanTable],
) -> Result<Outcome> {
    if engine.strict {
        refuse(&prepared.cut().left)?;
    }
    if let Root::Device(plan) = &prepared.cut().root {
        return run_subtree(state, engine, plan, tables).await;
    }
    let planner = Planner { engine: engine.clone(), state: Arc::new(state.clone()) };
    let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(planner)]);
    let physical =
        planner.create_physical_plan(&cpu::plan(&prepared.bind(tables)?)?, state).await?;
    Ok(Outcome::Host(CpuRun::new(physical, &CpuBoard::default())?.collect(state).await?))
}

/// Operators above one that is in the way are left to the CPU too: the deepest has the reason.
fn refuse(left: &[CpuOperator]) -> Result<()> {
    match left.last() {
        Some(CpuOperator { operator, why }) => {
            Err(Error::unsupported(format!("on the device: {operator}"), why.clone()))
        }
        None => Ok(()),
    }
}

/// The numbers of the rows of a sort's input in its order, as a table of one column, of a plan that
/// ends in a sort. `None` where the CPU has to sort.
pub(crate) async fn order(
    state: &SessionState,
    engine: &Engine,
    prepared: &Prepared,
    tables: &[PlanTable],
) -> Result<Option<Table>> {
    if engine.strict {
        refuse(&prepared.cut().left)?;
    }
    let Root::Device(plan) = &prepared.cut().root else { return Ok(None) };
    if engine.cluster.is_some() {
        return Ok(None);
    }
    let ordered = match scan::load(state, engine, plan, tables).await {
        Ok(scans) => {
            Runner::of(engine, plan, tables, scans).and_then(|runner| rows::order(&runner))
        }
        Err(error) => Err(error),
    };
    match ordered.map_err(|error| engine.told_of_loss(&[engine], error)) {
        Err(error) if engine.gives_way(&error) => {
            engine.give_up(&error);
            Ok(None)
        }
        order => order.map(Some),
    }
}

/// The row numbers that [`order`] yields, without loading: `None` where some of what the plan reads
/// is not on the device yet.
pub(crate) fn order_here(
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Option<Table>> {
    if engine.cluster.is_some() {
        return Ok(None);
    }
    let Some(scans) = scan::resident(plan, tables)? else { return Ok(None) };
    let ordered = Runner::of(engine, plan, tables, scans).and_then(|runner| rows::order(&runner));
    ordered.map_err(|error| engine.told_of_loss(&[engine], error)).map(Some)
}

/// Runs a supported plan. Where the data shows that the device cannot do it after all (strings too
/// long to sort, say, or more than its memory holds), the CPU does, unless the engine is strict;
/// `Counters::fallbacks` tells, and [`Engine::take_reasons`] why. So it does what cannot be sent to
/// a cluster, and what is not worth it.
pub(crate) async fn run_subtree(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Outcome> {
    let ran = match &engine.cluster {
        Some(cluster) => cluster_plan::run(state, engine, cluster, plan, tables).await,
        None => run_whole_or_divided(state, engine, plan, tables).await.map(Some),
    };
    match ran {
        Ok(Some(outcome)) => return Ok(outcome),
        Ok(None) => {}
        Err(error) if engine.gives_way(&error) => engine.give_up(&error),
        Err(error) => return Err(error),
    }
    let planner = DefaultPhysicalPlanner::default();
    let logical = plan::bind(plan.logical(), tables)?;
    let physical = planner.create_physical_plan(&cpu::plan(&logical)?, state).await?;
    Ok(Outcome::Host(CpuRun::new(physical, &CpuBoard::default())?.collect(state).await?))
}

/// Runs a supported plan: on several devices where that pays, whole, or in parts.
async fn run_whole_or_divided(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Outcome> {
    if engine.has_others() {
        match divide::run_on_devices(state, engine, plan, tables).await {
            Ok(Some(outcome)) => return Ok(outcome),
            Ok(None) => {}
            // One device divides what does not fit.
            Err(error) if error.is_out_of_device_memory() && engine.divides => {}
            Err(error) => return Err(error),
        }
    }
    let ran = run_on_one_device(state, engine, plan, tables).await;
    ran.map_err(|error| engine.told_of_loss(&[engine], error))
}

/// Runs a supported plan: whole, or where it finds no memory for that in parts.
async fn run_on_one_device(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Outcome> {
    if !engine.divides {
        return run_on_device(state, engine, plan, tables).await.map(Outcome::Device);
    }
    let limit = engine.device.memory_limit();
    if !plan.is_too_large(limit) && !divide::columns_exceed_device(state, engine, plan, tables)? {
        match run_on_device(state, engine, plan, tables).await {
            Err(error) if error.is_out_of_device_memory() => plan.found_too_large(limit),
            ran => return ran.map(Outcome::Device),
        }
    }
    divide::run_divided(state, engine, plan, tables).await
}

/// Runs a supported plan whole. Its tables stay on the device.
async fn run_on_device(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Table> {
    let ahead = engine.device.ahead();
    if plan.has_joins() && !engine.rehearsed.knows(plan.logical()) {
        // While tables are brought to the device. Every join wants these.
        ahead.ask(warpframe_device::ops::join_sources());
    }
    let scans = scan::load(state, engine, plan, tables).await?;
    // What is known of a table is known once it is there.
    run(engine, plan, tables, scans, Some(ahead))
}

/// Runs a supported plan here and now: `None` where some of what it reads is not on the device yet.
pub(crate) fn run_here(
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Option<Table>> {
    if engine.has_others() && !plan.is_for_one_device() || engine.cluster.is_some() {
        return Ok(None);
    }
    run_resident(engine, plan, tables).map_err(|error| engine.told_of_loss(&[engine], error))
}

/// Runs a supported plan over columns that all are on the engine's device; `None` where they are not,
/// or where it finds no memory.
fn run_resident(engine: &Engine, plan: &DevicePlan, tables: &[PlanTable]) -> Result<Option<Table>> {
    let limit = engine.device.memory_limit();
    if plan.is_too_large(limit) {
        return Ok(None);
    }
    let Some(scans) = scan::resident(plan, tables)? else {
        return Ok(None);
    };
    match run(engine, plan, tables, scans, None) {
        Err(error) if engine.divides && error.is_out_of_device_memory() => {
            plan.found_too_large(limit);
            Ok(None)
        }
        ran => ran.map(Some),
    }
}

/// Runs a plan over what its scans read. Kernels of pipelines that are new here are compiled on
/// other threads, as a rehearsal asks for them.
fn run(
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
    scans: Scans,
    ahead: Option<Ahead>,
) -> Result<Table> {
    let runner = {
        let _span = span(Part::Physical, String::new);
        Runner::of(engine, plan, tables, scans)?
    };
    let _span = span(Part::Run, String::new);
    if runner.plan.is_new() && engine.rehearsed.is_new(plan.logical()) {
        let stand_in = runner.clone();
        let mut ahead = ahead.unwrap_or_else(|| engine.device.ahead());
        ahead.rehearse(|device| Ok(stand_in.on(device).table().map(|_| ())?));
        return runner.table();
    }
    runner.table()
}

/// Logical plans, by hash, whose kernels were asked for.
#[derive(Debug, Default)]
struct Rehearsed(Mutex<HashSet<u64>>);

impl Rehearsed {
    /// More are forgotten: to rehearse a plan again costs a few milliseconds of another core.
    const MOST: usize = 1 << 14;

    fn is_new(&self, plan: &LogicalPlan) -> bool {
        let mut plans = self.0.lock();
        if plans.len() >= Self::MOST {
            plans.clear();
        }
        plans.insert(Self::hash(plan))
    }

    fn knows(&self, plan: &LogicalPlan) -> bool {
        self.0.lock().contains(&Self::hash(plan))
    }

    fn hash(plan: &LogicalPlan) -> u64 {
        let mut hash = DefaultHasher::new();
        plan.hash(&mut hash);
        hash.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpframe_device::{MemoryLimit, SimOptions};

    #[test]
    fn a_kernel_that_nobody_can_compile_gives_way_to_the_cpu_unless_the_engine_is_strict() {
        let device = Device::sim(SimOptions::default(), MemoryLimit::default()).unwrap();
        let missing: Error =
            ErrorKind::DeviceUnavailable { device: "cuda".into(), why: "NVRTC not found".into() }
                .into();
        let engine = Engine::new(device.clone(), false, true, true);
        assert!(engine.gives_way(&missing) && !engine.gives_way(&Error::internal("a bug")));
        assert!(!Engine::new(device, true, true, true).gives_way(&missing));
    }
}
