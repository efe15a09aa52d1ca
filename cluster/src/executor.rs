//! Ballista's executor with a device: one process for each device. The device runs one task at a
//! time; the rows of another task are read or written meanwhile.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ballista_core::JobId;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_core::execution_plans::ShuffleReaderExec;
use ballista_core::execution_plans::sort_shuffle::SortShuffleWriterExec;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    ExecutorStoppedParams, RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats,
    WindowStateReport,
};
use ballista_executor::execution_engine::{
    DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor,
};
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result as PlanResult;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::metrics::{Count, Metric, MetricValue, MetricsSet};
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::prelude::SessionConfig;
use tokio::sync::Notify;
use warpframe::plugin::{Plugin, TasksOfStage};
use warpframe::timeline::{self, Part, span};
use warpframe::{DeviceChoice, Session};

use crate::codec::ClusterCodec;
use crate::exchange::{Broadcasts, with_readers};
use crate::failures::Failure;
use crate::gathered::GatheredShuffle;
use crate::settings::{BYTES_WRITTEN, HEARTBEAT, MESSAGE, ON_EXECUTOR, session_config};
use crate::shuffle::{DeviceShuffle, TaskId};
use crate::work_folder::WorkFolder;

/// A device, and where its executor listens.
#[derive(Debug, Clone, clap::Args)]
pub struct ExecutorOptions {
    /// The device: cuda:N, sim (a simulator of a GPU, for tests) or cpu
    #[arg(long, value_name = "DEVICE", default_value = "cuda:0", value_parser = one_device)]
    pub device: DeviceChoice,

    /// Make it an error if a stage cannot run on the device
    #[arg(long)]
    pub strict: bool,

    /// Where the scheduler is
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub scheduler_host: String,

    /// The scheduler's port
    #[arg(long, value_name = "PORT", default_value_t = 50050)]
    pub scheduler_port: u16,

    /// Address to listen on; 0.0.0.0 for all. Whoever reaches it may read rows
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub bind_host: String,

    /// Port from which rows are fetched
    #[arg(long, value_name = "PORT", default_value_t = 50051)]
    pub bind_port: u16,

    /// Port for the scheduler's calls; otherwise the one after --bind-port
    #[arg(long, value_name = "PORT")]
    pub grpc_port: Option<u16>,

    /// The name by which others reach this machine; otherwise the address that it calls from
    #[arg(long, value_name = "HOST")]
    pub external_host: Option<String>,

    /// Folder for rows between stages, of this machine and best in memory (/dev/shm); otherwise the
    /// one for temporary files. Executors of one machine with the same folder read one another's
    /// rows there
    #[arg(long, value_name = "FOLDER")]
    pub work_dir: Option<PathBuf>,

    /// Have the CPU part rows between stages, as Ballista does; otherwise the device does
    #[arg(long)]
    pub host_shuffle: bool,
}

/// Tasks of an executor: one that its device runs, and one whose rows are read or written.
const TASKS: usize = 2;

/// A process has one device, so that its loss costs no other.
fn one_device(text: &str) -> std::result::Result<DeviceChoice, String> {
    match text.parse::<DeviceChoice>().map_err(|error| error.to_string())? {
        choice @ (DeviceChoice::Cuda(_) | DeviceChoice::Sim | DeviceChoice::Cpu) => Ok(choice),
        _ => Err("an executor has one device: cuda:N, sim or cpu".into()),
    }
}

impl ExecutorOptions {
    fn grpc_port(&self) -> u16 {
        self.grpc_port.unwrap_or(self.bind_port.saturating_add(1))
    }

    /// What the logs call it. Another process in its place is another executor.
    fn id(&self) -> String {
        let host = self.external_host.as_ref().unwrap_or(&self.bind_host);
        format!("{}@{host}:{}#{}", self.device, self.bind_port, std::process::id())
    }
}

/// Runs tasks until the process is told to end (SIGTERM, Ctrl-C), or its device is lost.
///
/// # Errors
/// If there is no such device, if the scheduler cannot be reached within 30 seconds, and once the
/// device is lost: whoever started the process starts it again.
pub async fn run(options: &ExecutorOptions) -> Result<()> {
    let builder = Session::builder().device(options.device.clone()).strict(options.strict);
    let plugin = Plugin::new(builder).map_err(|error| refused(error.to_string()))?;
    for port in [options.bind_port, options.grpc_port()] {
        TcpListener::bind((options.bind_host.as_str(), port))
            .map_err(|error| refused(format!("{}:{port}: {error}", options.bind_host)))?;
    }
    let scheduler = format!("{}:{}", options.scheduler_host, options.scheduler_port);
    let parent = options.work_dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder = WorkFolder::open(&parent, &scheduler)
        .map_err(|error| refused(format!("{}: {error}", parent.display())))?;
    let work_dir = folder.path().to_str();
    let work_dir =
        work_dir.ok_or_else(|| refused(format!("{}: not UTF-8", folder.path().display())))?;
    let settings = session_config()?;
    let lost = Arc::new(Notify::new());
    let engine = WatchedEngine {
        executor: options.id(),
        // Each fetch has a connection of its own: Ballista keeps its pool of them to itself.
        inner: DefaultExecutionEngine::new(),
        host_shuffle: options.host_shuffle,
        broadcasts: Arc::default(),
        lost: lost.clone(),
    };
    let config = ExecutorProcessConfig {
        executor_id: options.id(),
        bind_host: options.bind_host.clone(),
        external_host: options.external_host.clone(),
        port: options.bind_port,
        grpc_port: options.grpc_port(),
        scheduler_host: options.scheduler_host.clone(),
        scheduler_port: options.scheduler_port,
        scheduler_connect_timeout_seconds: 30,
        vcores: TASKS,
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        work_dir: Some(work_dir.into()),
        executor_heartbeat_interval_seconds: HEARTBEAT.as_secs(),
        grpc_max_decoding_message_size: MESSAGE,
        grpc_max_encoding_message_size: MESSAGE,
        override_config_producer: Some(Arc::new(move || settings.clone())),
        override_physical_codec: Some(Arc::new(ClusterCodec::new(&plugin))),
        override_execution_engine: Some(Arc::new(engine)),
        ..ExecutorProcessConfig::default()
    };
    log::info!("executor {} has the device {}", options.id(), options.device);
    let ended = tokio::select! {
        ended = start_executor_process(Arc::new(config)) => ended,
        () = lost.notified() => {
            leave(options).await;
            Err(refused(format!("{} is lost", options.device)))
        }
    };
    timeline::write().map_err(|error| refused(error.to_string()))?;
    ended
}

fn refused(why: String) -> BallistaError {
    BallistaError::Configuration(why)
}

/// Tells the scheduler to give the tasks to others, at once and not after a silence.
async fn leave(options: &ExecutorOptions) {
    let scheduler = format!("http://{}:{}", options.scheduler_host, options.scheduler_port);
    let told = async {
        let mut scheduler = SchedulerGrpcClient::connect(scheduler).await?;
        let reason = format!("its device {} is lost", options.device);
        scheduler
            .executor_stopped(ExecutorStoppedParams { executor_id: options.id(), reason })
            .await?;
        Ok::<(), BallistaError>(())
    };
    // What the task told has a moment to arrive first.
    tokio::time::sleep(Duration::from_millis(500)).await;
    match tokio::time::timeout(Duration::from_secs(5), told).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => log::warn!("the scheduler was not told: {error}"),
        Err(_) => log::warn!("the scheduler was not told: it does not answer"),
    }
}

/// Ballista's engine, whose failures are told apart.
struct WatchedEngine {
    executor: String,
    inner: DefaultExecutionEngine,
    host_shuffle: bool,
    broadcasts: Arc<Broadcasts>,
    lost: Arc<Notify>,
}

impl ExecutionEngine for WatchedEngine {
    fn create_query_stage_exec(
        &self,
        job: JobId,
        stage: usize,
        task: usize,
        partitions: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> PlanResult<Arc<dyn QueryStageExecutor>> {
        let name = format!("{job}/{stage}/{partitions:?} on {}", self.executor);
        let tasks = match plan.is::<SortShuffleWriterExec>() {
            true => TasksOfStage(vec![number_by_rows(&plan).unwrap_or(task)]),
            false => TasksOfStage(partitions.clone()),
        };
        let plan = with_readers(plan, work_dir, &self.broadcasts)?;
        let id = TaskId { job: job.clone(), stage, task };
        let by_device = match self.host_shuffle {
            true => None,
            false => DeviceShuffle::of(&plan, &id, work_dir)?,
        };
        let gathered = match self.host_shuffle {
            true => None,
            false => GatheredShuffle::of(&plan, (&job, stage), &partitions, work_dir),
        };
        let inner: Arc<dyn QueryStageExecutor> = match (by_device, gathered) {
            (Some(shuffle), _) => Arc::new(shuffle),
            (None, Some(shuffle)) => Arc::new(shuffle),
            (None, None) => self
                .inner
                .create_query_stage_exec(job, stage, task, partitions, plan, work_dir, config)?,
        };
        let (executor, lost) = (self.executor.clone(), self.lost.clone());
        Ok(Arc::new(WatchedStage { name, executor, tasks, inner, lost, bytes: AtomicU64::new(0) }))
    }
}

/// A number that tells the tasks of a stage apart whose rows are parted: Ballista gives each of
/// them the same numbers, those of the parts. It follows from the rows that the task reads, so that
/// a task that runs again has the same one.
fn number_by_rows(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    // All tasks read what is gathered.
    if plan.is::<CoalescePartitionsExec>() || plan.is::<SortPreservingMergeExec>() {
        return None;
    }
    if let Some(reader) = plan.downcast_ref::<ShuffleReaderExec>() {
        let first = reader.partition.iter().flatten().next();
        return first.map(|location| location.partition_id.partition_id);
    }
    let Some(scan) = plan.downcast_ref::<DataSourceExec>() else {
        return plan.children().into_iter().find_map(number_by_rows);
    };
    let files = scan.data_source().downcast_ref::<FileScanConfig>()?;
    let mut number = DefaultHasher::new();
    for file in files.file_groups.iter().flat_map(|group| group.iter()) {
        file.object_meta.location.as_ref().hash(&mut number);
        file.range.as_ref().map(|range| range.start).hash(&mut number);
    }
    Some(number.finish() as usize)
}

#[derive(Debug)]
struct WatchedStage {
    /// Job, stage, partitions and executor, for the log.
    name: String,
    executor: String,
    /// By which the partitions of the plan draw random numbers of their own.
    tasks: TasksOfStage,
    inner: Arc<dyn QueryStageExecutor>,
    lost: Arc<Notify>,
    /// Written for those who read its rows.
    bytes: AtomicU64,
}

/// A metric for those who ask what became of a query.
fn count(name: String, value: u64) -> Arc<Metric> {
    let count = Count::new();
    count.add(usize::try_from(value).unwrap_or(usize::MAX));
    // A task has one partition.
    Arc::new(Metric::new(MetricValue::Count { name: name.into(), count }, Some(0)))
}

impl std::fmt::Display for WatchedStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait::async_trait]
impl QueryStageExecutor for WatchedStage {
    async fn execute_query_stage(
        &self,
        task: usize,
        context: Arc<TaskContext>,
    ) -> PlanResult<Vec<ShuffleWritePartition>> {
        let config = context.session_config().clone().with_extension(Arc::new(self.tasks.clone()));
        let context = Arc::new(TaskContext::new(
            context.task_id(),
            context.session_id(),
            config,
            context.scalar_functions().clone(),
            context.higher_order_functions().clone(),
            context.aggregate_functions().clone(),
            context.window_functions().clone(),
            context.runtime_env(),
        ));
        let span = span(Part::Main, || self.name.clone());
        let written = self.inner.execute_query_stage(task, context).await;
        drop(span);
        let written = written.map_err(|error| {
            let Failure { error, lost_device } = Failure::of(error);
            log::warn!("{}: {error}", self.name);
            if lost_device {
                self.lost.notify_one();
            }
            error
        })?;
        self.bytes.store(written.iter().map(|part| part.num_bytes).sum(), Relaxed);
        Ok(written)
    }

    /// Of operators, the first one writes the rows.
    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        let mut metrics = self.inner.collect_plan_metrics();
        if let Some(writer) = metrics.first_mut() {
            writer.push(count(format!("{ON_EXECUTOR}{}", self.executor), 1));
            writer.push(count(BYTES_WRITTEN.into(), self.bytes.load(Relaxed)));
        }
        metrics
    }

    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.inner.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> PlanResult<Vec<WindowStateReport>> {
        self.inner.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.inner.collect_column_stats()
    }
}
