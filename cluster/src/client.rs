//! Sessions whose queries a cluster runs: planned here, run there.

mod address;
mod job;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::serde::protobuf::KeyValuePair;
use datafusion::error::Result as PlanResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;
use uuid::Uuid;
use warpframe::device::MemoryLimit;
use warpframe::plugin::{Cluster, ClusterJob};
use warpframe::{Error, ErrorKind, Result, SessionBuilder};

use self::address::Address;
use self::job::Submission;
use crate::codec::ClusterCodec;
use crate::settings::session_config;

/// How queries are planned for a cluster. A URL may say so behind a question mark:
/// `df://host:50050?partitions=16&broadcast_limit=64MiB`, and settings by their names.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// Tasks of a stage; twice as many as there are executors keep all of them at work.
    pub partitions: usize,
    /// Most bytes of a side of a join that each task gets whole.
    pub broadcast_limit: u64,
    /// Settings of DataFusion and Ballista for stages, by their names.
    pub settings: Vec<(String, String)>,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions { partitions: 8, broadcast_limit: 1 << 30, settings: vec![] }
    }
}

impl ClusterOptions {
    /// What stands behind a URL's question mark, beside these.
    fn with(mut self, text: &str) -> Result<ClusterOptions> {
        for option in text.split('&').filter(|option| !option.is_empty()) {
            let wrong = |why: &str| {
                let message = format!("{option}: {why}");
                Error::from(ErrorKind::Plan { message, location: None })
            };
            let (name, value) =
                option.split_once('=').ok_or_else(|| wrong("expected NAME=VALUE"))?;
            match name {
                "partitions" => {
                    let partitions = value.parse().ok().filter(|partitions| *partitions > 0);
                    self.partitions =
                        partitions.ok_or_else(|| wrong("expected a number of tasks"))?;
                }
                "broadcast_limit" => {
                    let bytes = value.parse().ok().or_else(|| match value.parse() {
                        Ok(MemoryLimit::Bytes(bytes)) => Some(bytes),
                        _ => None,
                    });
                    let bytes = bytes.ok_or_else(|| wrong("expected bytes such as 64MiB"))?;
                    self.broadcast_limit = bytes;
                }
                // `attempts.rs` tells attempts apart by tasks of one partition.
                "ballista.scheduler.max_partitions_per_task" => {
                    return Err(wrong("a task is one partition"));
                }
                _ => self.settings.push((name.into(), value.into())),
            }
        }
        Ok(self)
    }
}

/// Sessions on clusters, by the address of the scheduler.
///
/// ```no_run
/// use warpframe::Session;
/// use warpframe_cluster::client::OnCluster;
///
/// let session = Session::builder().cluster_url("df://127.0.0.1:50050")?.build()?;
/// session.register_parquet("nation", "/data/nation.parquet")?;
/// session.sql("SELECT n_regionkey, count(*) FROM nation GROUP BY 1")?.collect()?.show()?;
/// # Ok::<(), warpframe::Error>(())
/// ```
pub trait OnCluster: Sized {
    /// Has the cluster run the queries whose scheduler is there: `df://host:50050`. Nothing is sent
    /// before the first query.
    ///
    /// # Errors
    /// Of an address that is none.
    fn cluster_url(self, url: &str) -> Result<Self> {
        self.cluster_with(url, &ClusterOptions::default())
    }

    /// [`OnCluster::cluster_url`] with options.
    ///
    /// # Errors
    /// Of an address that is none, and of settings that mean nothing.
    fn cluster_with(self, url: &str, options: &ClusterOptions) -> Result<Self>;
}

impl OnCluster for SessionBuilder {
    fn cluster_with(self, url: &str, options: &ClusterOptions) -> Result<SessionBuilder> {
        Ok(self.cluster(Arc::new(BallistaClient::new(url, options)?)))
    }
}

/// A cluster that Ballista schedules.
pub struct BallistaClient {
    scheduler: Address,
    config: SessionConfig,
    broadcast_limit: u64,
    codec: ClusterCodec,
    /// By which the scheduler tells sessions apart.
    session: String,
    /// As executors read plans.
    reader: Arc<TaskContext>,
}

impl fmt::Debug for BallistaClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BallistaClient").field("scheduler", &self.scheduler).finish_non_exhaustive()
    }
}

impl BallistaClient {
    /// A cluster whose scheduler is there.
    ///
    /// # Errors
    /// As [`OnCluster::cluster_with`].
    pub fn new(url: &str, options: &ClusterOptions) -> Result<BallistaClient> {
        let (url, text) = url.split_once('?').unwrap_or((url, ""));
        let options = options.clone().with(text)?;
        let mut config = session_config()?.with_target_partitions(options.partitions.max(1));
        for (name, value) in &options.settings {
            config.options_mut().set(name, value)?;
        }
        let reader = SessionContext::new_with_config(config.clone()).task_ctx();
        Ok(BallistaClient {
            scheduler: Address::of(url)?,
            reader,
            config,
            broadcast_limit: options.broadcast_limit,
            codec: ClusterCodec::default(),
            session: Uuid::new_v4().to_string(),
        })
    }

    /// The plan's bytes, which executors can read.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] of plans that cannot be sent, such as those with functions that
    /// have no name elsewhere.
    fn encoded(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<u8>> {
        let mut bytes = vec![];
        let sent = PhysicalPlanNode::try_from_physical_plan(plan.clone(), &self.codec)
            .and_then(|plan| plan.try_encode(&mut bytes))
            // What reads it here reads it there.
            .and_then(|()| PhysicalPlanNode::try_decode(&bytes))
            .and_then(|plan| plan.try_into_physical_plan(&self.reader, &self.codec));
        match sent {
            Ok(_) => Ok(bytes),
            Err(error) => {
                let (what, why) = ("sending a plan".into(), error.strip_backtrace());
                Err(ErrorKind::Unsupported { what, why }.into())
            }
        }
    }
}

#[async_trait]
impl Cluster for BallistaClient {
    fn name(&self) -> &str {
        self.scheduler.name()
    }

    fn config(&self) -> SessionConfig {
        self.config.clone()
    }

    fn broadcast_limit(&self) -> u64 {
        self.broadcast_limit
    }

    async fn run(&self, job: ClusterJob) -> PlanResult<SendableRecordBatchStream> {
        let bytes = self.encoded(&job.plan)?;
        let entries = job.config.options().entries().into_iter();
        let settings = entries.map(|entry| KeyValuePair { key: entry.key, value: entry.value });
        let submission = Submission {
            scheduler: &self.scheduler,
            session: self.session.clone(),
            settings: settings.collect(),
            plan: bytes,
        };
        submission.run(job).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_may_have_options() {
        let url = "df://h:1?partitions=3&broadcast_limit=1KiB&datafusion.execution.batch_size=77";
        let client = BallistaClient::new(url, &ClusterOptions::default()).expect("a cluster");
        assert_eq!((client.name(), client.broadcast_limit()), ("df://h:1", 1024));
        let config = client.config();
        assert_eq!((config.target_partitions(), config.batch_size()), (3, 77));
        for wrong in ["partitions=0", "partitions", "broadcast_limit=50%", "no.setting=1"] {
            let url = format!("df://h:1?{wrong}");
            assert!(BallistaClient::new(&url, &ClusterOptions::default()).is_err(), "{wrong}");
        }
    }
}
