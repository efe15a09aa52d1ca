//! A cluster that runs the stages of a session's plans, whoever schedules it.
//!
//! ```text
//!   session                                 cluster
//!   plan ── cut ──▶ subtrees ── stages ──▶  DeviceStageExec on the devices of executors
//!                   the rest ◀── rows ─────
//!                   CPU engine, here
//! ```
//!
//! What a device supports runs on the cluster, in stages (`plan/stages.rs`). What it does not, the
//! CPU engine of this process does over the rows that come from there, as it does over those of a
//! device. `cluster_plan.rs` tells the two apart.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::Result as PlanResult;
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;

use super::RemoteExchanges;

/// Runs the stages of plans elsewhere; see
/// [`SessionBuilder::cluster`](crate::SessionBuilder::cluster). The crate `warpframe_cluster` has
/// one for Ballista.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no cluster",
    label = "what runs stages elsewhere is wanted here",
    note = "`warpframe_cluster::client::BallistaClient` is one; `cluster_url(\"df://host:50050\")` \
            of that crate makes it"
)]
#[async_trait]
pub trait Cluster: fmt::Debug + Send + Sync {
    /// What people call it, such as `df://host:50050`.
    fn name(&self) -> &str;

    /// The settings of DataFusion by which plans become stages. A stage has as many tasks as there
    /// are `target_partitions`.
    fn config(&self) -> SessionConfig;

    /// Most bytes of a side of a join that each task gets whole, instead of parting both sides by a
    /// hash of their keys.
    fn broadcast_limit(&self) -> u64 {
        1 << 30
    }

    /// Runs a plan, and yields its rows in the order of its partitions. Dropping the future, or the
    /// stream before its end, ends the run.
    ///
    /// # Errors
    /// `Unsupported` of plans that cannot be sent: those run in this process instead. Every other
    /// error is the query's.
    async fn run(&self, job: ClusterJob) -> PlanResult<SendableRecordBatchStream>;
}

/// A plan for a cluster.
#[derive(Debug)]
pub struct ClusterJob {
    /// Stages (`DeviceStageExec`) with exchanges of DataFusion's between them, over scans of files
    /// by absolute paths, and of rows in memory.
    pub plan: Arc<dyn ExecutionPlan>,
    /// The settings of [`Cluster::config`] by which the plan was made.
    pub config: SessionConfig,
    /// Is told how far the run is.
    pub watch: ClusterWatch,
}

/// How far the stages of a plan are that a cluster runs; see
/// [`Session::stages_progress`](crate::Session::stages_progress).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StagesProgress {
    /// Stages that are done.
    pub stages_done: u64,
    /// Stages of the plan.
    pub stages: u64,
    /// Tasks of the stages that are done.
    pub tasks_done: u64,
    /// Rows that these stages yielded, to others or to the query.
    pub rows: u64,
}

/// What a stage did that a cluster has run; see
/// [`Session::take_stage_runs`](crate::Session::take_stage_runs).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StageReport {
    /// The plan's name with the cluster, which its logs have.
    pub job: String,
    /// Number of the stage in its plan.
    pub stage: u64,
    /// How many tasks it had.
    pub tasks: u64,
    /// Which executors ran how many of them, where that is known.
    pub executors: Vec<(String, u64)>,
    /// Rows that it yielded.
    pub rows: u64,
    /// Bytes of them, as they were written for those who read them; `None` if nobody counted.
    pub bytes: Option<u64>,
    /// Tasks that an executor left to its CPU.
    pub on_cpu: u64,
    /// Its operators, each before those whose rows it takes.
    pub operators: Vec<String>,
}

/// Takes what a cluster tells of a run.
#[derive(Debug, Clone, Default)]
pub struct ClusterWatch(Arc<Mutex<Watched>>);

#[derive(Debug, Default)]
struct Watched {
    progress: Option<StagesProgress>,
    runs: Vec<StageReport>,
}

impl ClusterWatch {
    /// Most stages that are kept for who asks.
    const MOST: usize = 1000;

    /// How far the run is.
    pub fn post(&self, progress: StagesProgress) {
        self.0.lock().progress = Some(progress);
    }

    /// What the stages of a run did, once it is over.
    pub fn ended(&self, runs: Vec<StageReport>) {
        let mut watched = self.0.lock();
        watched.runs.extend(runs);
        let more = watched.runs.len().saturating_sub(Self::MOST);
        watched.runs.drain(..more);
    }

    /// A run is over, or one begins.
    fn clear(&self) {
        self.0.lock().progress = None;
    }
}

/// A session's cluster.
#[derive(Debug)]
pub(crate) struct ClusterEngine {
    pub(super) cluster: Arc<dyn Cluster>,
    watch: ClusterWatch,
    /// Plans stages as other programs of DataFusion's do: by its own rules.
    planner: SessionState,
}

impl ClusterEngine {
    pub(crate) fn new(cluster: Arc<dyn Cluster>) -> ClusterEngine {
        let mut config = cluster.config();
        let options = config.options_mut();
        // As this engine's readers of files want it: rows come in the order of the files.
        options.execution.enable_file_stream_work_stealing = false;
        // Nothing between a scan and its stage would look at them.
        options.execution.collect_statistics = false;
        let planner = SessionStateBuilder::new_with_default_features()
            .with_config(config)
            .with_physical_optimizer_rule(Arc::new(RemoteExchanges))
            .build();
        ClusterEngine { cluster, watch: ClusterWatch::default(), planner }
    }

    pub(crate) fn name(&self) -> &str {
        self.cluster.name()
    }

    /// How far the stages are that run now; `None` where none do.
    pub(crate) fn progress(&self) -> Option<StagesProgress> {
        self.watch.0.lock().progress
    }

    /// What stages did, since this was asked last.
    pub(crate) fn take_runs(&self) -> Vec<StageReport> {
        std::mem::take(&mut self.watch.0.lock().runs)
    }

    /// How stages are planned for a session with these settings of its own.
    pub(super) fn planner(&self, session: &SessionState) -> SessionState {
        let mut planner = self.planner.clone();
        let zone = session.config_options().execution.time_zone.clone();
        planner.config_mut().options_mut().execution.time_zone = zone;
        planner
    }

    /// The rows of a plan.
    pub(super) async fn run(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: SessionConfig,
    ) -> PlanResult<(SendableRecordBatchStream, WatchedRun)> {
        self.watch.clear();
        let watched = WatchedRun(self.watch.clone());
        let job = ClusterJob { plan, config, watch: self.watch.clone() };
        Ok((self.cluster.run(job).await?, watched))
    }
}

/// A run, until it is dropped: then nothing is in progress.
pub(super) struct WatchedRun(ClusterWatch);

impl Drop for WatchedRun {
    fn drop(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_watched_ends_with_the_run_and_stages_are_told_once() {
        let watch = ClusterWatch::default();
        let run = WatchedRun(watch.clone());
        watch.post(StagesProgress { stages: 3, ..StagesProgress::default() });
        assert!(watch.0.lock().progress.is_some());
        drop(run);
        assert!(watch.0.lock().progress.is_none());
        let run = |stage: usize| StageReport { stage: stage as u64, ..StageReport::default() };
        watch.ended((0..ClusterWatch::MOST + 2).map(run).collect());
        let kept = watch.0.lock().runs.clone();
        assert_eq!((kept.len(), kept[0].stage), (ClusterWatch::MOST, 2));
    }
}
