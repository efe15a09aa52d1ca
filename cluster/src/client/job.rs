//! A plan that a scheduler has: how it goes, and its rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ballista_core::client::BallistaClient as RowsClient;
use ballista_core::error::BallistaError;
use ballista_core::serde::protobuf::execute_query_params::Query;
use ballista_core::serde::protobuf::operator_metric::Metric;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, ExecuteQueryParams, GetJobMetricsParams, GetJobStatusParams, JobStageMetrics,
    KeyValuePair, PartitionLocation, execute_query_result, job_status,
};
use ballista_core::version::{check_compatibility, insert_version_header, version_from_metadata};
use datafusion::error::Result as PlanResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};
use tonic::transport::{Channel, Endpoint};
use uuid::Uuid;
use warpframe::plugin::{ClusterJob, ClusterWatch, StageReport, StagesProgress};
use warpframe::{Error, ErrorKind, Result};

use super::address::Address;
use crate::attempts::last_of_job;
use crate::failures::of_job;
use crate::settings::{BYTES_WRITTEN, MESSAGE, ON_EXECUTOR, RUN_ON_CPU};

/// How often the scheduler is asked at most and at least.
const PACE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));
/// How often it is asked for more than whether the plan is done.
const WATCHED: Duration = Duration::from_millis(250);
/// How often a connection to an executor is tried, and how long between.
const TRIES: (u8, u64) = (3, 3000);

type Scheduler = SchedulerGrpcClient<Channel>;

/// A plan to be submitted.
pub(super) struct Submission<'a> {
    pub(super) scheduler: &'a Address,
    pub(super) session: String,
    pub(super) settings: Vec<KeyValuePair>,
    pub(super) plan: Vec<u8>,
}

impl Submission<'_> {
    /// Has the plan run, and yields its rows, partition by partition.
    pub(super) async fn run(self, job: ClusterJob) -> PlanResult<SendableRecordBatchStream> {
        self.scheduler.reach().await?;
        let (schema, address) = (job.plan.schema(), self.scheduler.clone());
        let mut submitted = self.submit().await?;
        let stages = 1 + exchanges(&job.plan);
        let locations = submitted.wait(stages, &job.watch).await?;
        let runs = submitted.stages().await;
        job.watch.ended(runs.iter().map(|stage| stage_run(&submitted.job, stage)).collect());
        // Who stops to read rows leaves nothing that runs.
        submitted.is_over = true;
        let rows = locations.into_iter().map(move |location| {
            let address = address.clone();
            futures::stream::once(async move { rows(&address, location).await }).try_flatten()
        });
        let rows = futures::stream::iter(rows).flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    async fn submit(self) -> Result<Submitted> {
        let broken = |why: String| unreachable(self.scheduler, why);
        let endpoint = Endpoint::new(self.scheduler.http()).map_err(|of| broken(of.to_string()))?;
        let channel = endpoint.tcp_nodelay(true).connect().await;
        let channel = channel.map_err(|of| broken(of.to_string()))?;
        let most = MESSAGE as usize;
        let mut scheduler =
            Scheduler::new(channel).max_encoding_message_size(most).max_decoding_message_size(most);
        let mut request = tonic::Request::new(ExecuteQueryParams {
            query: Some(Query::PhysicalPlan(self.plan)),
            settings: self.settings,
            session_id: self.session,
            operation_id: Uuid::new_v4().to_string(),
        });
        insert_version_header(request.metadata_mut());
        let answer = scheduler.execute_query(request).await;
        let answer = answer.map_err(|status| refused(status.message()))?;
        let version = version_from_metadata(answer.metadata()).map(String::from);
        let job = match answer.into_inner().result {
            Some(execute_query_result::Result::Success(accepted)) => accepted.job_id,
            Some(execute_query_result::Result::Failure(failure)) => {
                return Err(refused(&format!("{:?}", failure.failure)));
            }
            None => return Err(refused("it does not say why")),
        };
        let address = self.scheduler.clone();
        let submitted = Submitted { scheduler, address, job, is_over: false };
        check_compatibility(Some(ballista_core::BALLISTA_VERSION), version.as_deref())
            .map_err(|why| refused(&why))?;
        Ok(submitted)
    }
}

fn unreachable(scheduler: &Address, why: String) -> Error {
    let source = std::io::Error::other(why);
    ErrorKind::Io { path: scheduler.name().into(), source }.into()
}

fn refused(why: &str) -> Error {
    let message = format!("the scheduler does not take the plan: {why}");
    ErrorKind::Plan { message, location: None }.into()
}

/// A plan that a scheduler has. It is cancelled when this is dropped before it is over.
struct Submitted {
    scheduler: Scheduler,
    address: Address,
    job: String,
    is_over: bool,
}

impl Submitted {
    /// Waits for the plan, and yields where its rows are.
    async fn wait(&mut self, stages: u64, watch: &ClusterWatch) -> Result<Vec<PartitionLocation>> {
        let begun = Instant::now();
        let mut told = begun;
        watch.post(StagesProgress { stages, ..StagesProgress::default() });
        loop {
            let asked = GetJobStatusParams { job_id: self.job.clone() };
            let answer = self.scheduler.get_job_status(asked).await;
            let answer =
                answer.map_err(|status| unreachable(&self.address, status.message().into()))?;
            match answer.into_inner().status.and_then(|status| status.status) {
                Some(job_status::Status::Successful(done)) => {
                    return Ok(last_of_job(done.partition_location));
                }
                Some(job_status::Status::Failed(failed)) => {
                    self.is_over = true;
                    return Err(of_job(&failed.error));
                }
                _ => {}
            }
            if told.elapsed() >= WATCHED {
                let done = self.stages().await;
                let runs: Vec<StageReport> =
                    done.iter().map(|stage| stage_run(&self.job, stage)).collect();
                watch.post(StagesProgress {
                    stages_done: runs.len() as u64,
                    // Stages that read one exchange anew are one to the scheduler.
                    stages: stages.max(runs.len() as u64),
                    tasks_done: runs.iter().map(|run| run.tasks).sum(),
                    rows: runs.iter().map(|run| run.rows).sum(),
                });
                told = Instant::now();
            }
            tokio::time::sleep((begun.elapsed() / 20).clamp(PACE.0, PACE.1)).await;
        }
    }

    /// The stages that are done. None where the scheduler does not tell: no answer depends on it.
    async fn stages(&mut self) -> Vec<JobStageMetrics> {
        let asked = GetJobMetricsParams { job_id: self.job.clone() };
        match self.scheduler.get_job_metrics(asked).await {
            Ok(answer) => answer.into_inner().stages,
            Err(status) => {
                log::debug!("{}: {}", self.job, status.message());
                vec![]
            }
        }
    }
}

impl Drop for Submitted {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (mut scheduler, job_id) = (self.scheduler.clone(), self.job.clone());
        // It was made inside of a runtime.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Err(status) = scheduler.cancel_job(CancelJobParams { job_id }).await {
                log::warn!("a query was not cancelled: {}", status.message());
            }
        });
    }
}

/// How many exchanges a plan has: each ends a stage.
fn exchanges(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let is_one = plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortPreservingMergeExec>();
    u64::from(is_one) + plan.children().into_iter().map(exchanges).sum::<u64>()
}

/// What a stage did, by the metrics of its operators. The first one writes its rows.
fn stage_run(job: &str, stage: &JobStageMetrics) -> StageReport {
    let mut run = StageReport {
        job: job.into(),
        stage: stage.stage_id.into(),
        tasks: stage.partitions.into(),
        ..StageReport::default()
    };
    for (number, operator) in stage.operators.iter().enumerate() {
        if number > 0 {
            run.operators.push(operator.operator_desc.trim_end().into());
        }
        for metric in operator.metrics.iter().filter_map(|metric| metric.metric.as_ref()) {
            match metric {
                Metric::OutputRows(rows) if number == 0 => run.rows += rows,
                Metric::Count(of) if of.name == BYTES_WRITTEN => {
                    run.bytes = Some(run.bytes.unwrap_or(0) + of.value);
                }
                Metric::Count(of) if of.name == RUN_ON_CPU => run.on_cpu += of.value,
                Metric::Count(of) => {
                    let Some(executor) = of.name.strip_prefix(ON_EXECUTOR) else { continue };
                    match run.executors.iter_mut().find(|(known, _)| known == executor) {
                        Some((_, tasks)) => *tasks += of.value,
                        None => run.executors.push((executor.into(), of.value)),
                    }
                }
                _ => {}
            }
        }
    }
    run.executors.sort();
    run
}

/// The rows of a partition, from the executor that has them.
async fn rows(
    scheduler: &Address,
    location: PartitionLocation,
) -> PlanResult<SendableRecordBatchStream> {
    let layout = location.layout();
    let (Some(executor), Some(partition)) = (location.executor_meta, location.partition_id) else {
        return Err(unreachable(scheduler, "it does not say where rows are".into()).into());
    };
    let (host, port) = (executor.host.as_str(), executor.port as u16);
    let (tries, wait) = TRIES;
    let client = RowsClient::try_new(host, port, MESSAGE as usize, false, None, tries, wait, 0, 0);
    let rows = async {
        client
            .await?
            .fetch_partition_proxied(
                &executor.id,
                &partition.into(),
                location.file_id,
                layout,
                host,
                port,
                true,
            )
            .await
    };
    rows.await.map_err(|error: BallistaError| {
        let why = format!("the executor {} has rows that cannot be fetched: {error}", executor.id);
        unreachable(scheduler, why).into()
    })
}

#[cfg(test)]
mod tests {
    use ballista_core::serde::protobuf::{NamedCount, OperatorMetric, OperatorWithMetrics};

    use super::*;

    #[test]
    fn what_a_stage_did_is_added_up_by_executors() {
        let metric = |metric: Metric| OperatorMetric { partition: Some(0), metric: Some(metric) };
        let count =
            |name: &str, value| metric(Metric::Count(NamedCount { name: name.into(), value }));
        let on = |executor: &str| count(&format!("{ON_EXECUTOR}{executor}"), 1);
        let operator = |text: &str, metrics: Vec<OperatorMetric>| OperatorWithMetrics {
            operator_desc: text.into(),
            metrics,
            ..OperatorWithMetrics::default()
        };
        let stage = JobStageMetrics {
            stage_id: 2,
            partitions: 3,
            operators: vec![
                operator(
                    "ShuffleWriterExec",
                    vec![
                        metric(Metric::OutputRows(5)),
                        metric(Metric::OutputRows(6)),
                        on("b"),
                        on("a"),
                        on("b"),
                        count(BYTES_WRITTEN, 70),
                        count(BYTES_WRITTEN, 7),
                    ],
                ),
                operator(
                    "DeviceStageExec: x\n",
                    vec![metric(Metric::OutputRows(9)), count(RUN_ON_CPU, 1)],
                ),
            ],
        };
        let run = stage_run("j", &stage);
        let executors = vec![("a".to_string(), 1), ("b".to_string(), 2)];
        let expected = StageReport {
            job: "j".into(),
            stage: 2,
            tasks: 3,
            executors,
            rows: 11,
            bytes: Some(77),
            on_cpu: 1,
            operators: vec!["DeviceStageExec: x".into()],
        };
        assert_eq!(run, expected);
    }
}
