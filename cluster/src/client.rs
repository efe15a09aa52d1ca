//! Queries for a cluster: planned here, run there.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::execution_plans::execute_physical_plan;
use ballista_core::extension::SessionConfigExt;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::streaming::StreamingTableExec;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::protobuf::PhysicalPlanNode;
use tokio::net::TcpStream;
use warpframe::plugin::{Plugin, RemoteExchanges, WithWarpframe};
use warpframe::{DeviceChoice, Session};

use crate::codec::ClusterCodec;
use crate::failures::BEFORE_FAILURE;
use crate::settings::session_config;

/// How long a scheduler may take to accept a connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// How queries are planned.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// Tasks of a stage; twice as many as there are executors keep all of them at work.
    pub partitions: usize,
    /// Most bytes of a side of a join that each task gets whole.
    pub broadcast_limit: u64,
    /// Other settings of DataFusion and Ballista, by their names.
    pub settings: Vec<(String, String)>,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions { partitions: 8, broadcast_limit: 1 << 30, settings: vec![] }
    }
}

/// A session whose queries run on a cluster.
///
/// ```no_run
/// use futures::TryStreamExt;
/// use warpframe_cluster::client::{Cluster, PlanOptions};
///
/// # async fn rows() -> datafusion::error::Result<()> {
/// let cluster = Cluster::new("df://127.0.0.1:50050", &PlanOptions::default())?;
/// cluster.register_parquet("nation".as_ref(), "/data/nation.parquet".as_ref()).await?;
/// let rows = cluster.sql("SELECT n_regionkey, count(*) FROM nation GROUP BY 1").await?;
/// let batches: Vec<_> = rows.try_collect().await?;
/// # let _ = batches;
/// # Ok(())
/// # }
/// ```
pub struct Cluster {
    scheduler: String,
    codec: ClusterCodec,
    context: SessionContext,
}

impl Cluster {
    /// A session for the cluster whose scheduler is there: `df://host:50050`. Nothing is sent
    /// before the first query.
    ///
    /// # Errors
    /// Of an address or settings that mean nothing.
    pub fn new(url: &str, options: &PlanOptions) -> Result<Cluster> {
        let scheduler = scheduler_of(url)?;
        // Plans are made as for a device, which this machine need not have: nothing runs on it.
        let planned_for = Session::builder().device(DeviceChoice::Sim).strict(false);
        let plugin = Plugin::new(planned_for)?
            .with_stages(true)
            .with_broadcast_limit(options.broadcast_limit);
        let mut config: SessionConfig = session_config()?;
        config = config.with_target_partitions(options.partitions.max(1));
        for (name, value) in &options.settings {
            config.options_mut().set(name, value)?;
        }
        let state = SessionStateBuilder::new_with_default_features()
            .with_config(config)
            .with_plugin(&plugin)
            .with_physical_optimizer_rule(Arc::new(RemoteExchanges))
            .build();
        let context = SessionContext::new_with_state(state);
        Ok(Cluster { scheduler, codec: ClusterCodec::new(&plugin), context })
    }

    /// The session that plans: its tables, views and settings.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Makes a table of a Parquet file, or of a folder of them. Executors read it by its absolute
    /// path, so all machines must have it there.
    ///
    /// # Errors
    /// Of files that are not there or no Parquet.
    pub async fn register_parquet(&self, name: &str, path: &Path) -> Result<()> {
        let absolute = path
            .canonicalize()
            .map_err(|error| DataFusionError::Execution(format!("{}: {error}", path.display())))?;
        let Some(text) = absolute.to_str() else {
            return Err(DataFusionError::Execution(format!("{}: not UTF-8", absolute.display())));
        };
        self.context.register_parquet(name, text, Default::default()).await
    }

    /// The rows of a query, once the cluster has them. What is about this session alone (EXPLAIN,
    /// views, settings) is done here.
    ///
    /// # Errors
    /// Of SQL that has no meaning; of statements that clusters do not run; of the cluster.
    pub async fn sql(&self, sql: &str) -> Result<SendableRecordBatchStream> {
        let plan = self.context.state().create_logical_plan(sql).await?;
        match &plan {
            LogicalPlan::Explain(_) | LogicalPlan::DescribeTable(_) | LogicalPlan::Statement(_) => {
                return self.run_here(plan).await;
            }
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(_)) => {
                return Err(not_there("CREATE TABLE … AS", "CREATE VIEW gives a query a name"));
            }
            LogicalPlan::Ddl(_) => return self.run_here(plan).await,
            LogicalPlan::Analyze(_) => {
                return Err(not_there("EXPLAIN ANALYZE", "EXPLAIN shows the stages"));
            }
            LogicalPlan::Dml(_) | LogicalPlan::Copy(_) => {
                return Err(not_there("writing", "only queries are"));
            }
            _ => {}
        }
        if plan.exists(|node| Ok(matches!(node, LogicalPlan::RecursiveQuery(_))))? {
            return Err(not_there("WITH RECURSIVE", "its plan cannot be sent"));
        }
        let frame = self.context.execute_logical_plan(plan).await?;
        let physical = frame.create_physical_plan().await?;
        if is_of_this_process(&physical) {
            let context = self.context.task_ctx();
            return datafusion::physical_plan::execute_stream(physical, context);
        }
        self.connect().await?;
        let config = self.context.copied_config();
        let ballista = config.ballista_config();
        execute_physical_plan::<PhysicalPlanNode>(
            self.scheduler.clone(),
            &ballista,
            physical,
            &self.codec,
            self.context.session_id(),
            config,
        )
        .await
        .map_err(in_words)
    }

    /// Whether there is a scheduler at all: what Ballista says of it is no sentence.
    async fn connect(&self) -> Result<()> {
        let place = self.scheduler.trim_start_matches("http://");
        let connected = tokio::time::timeout(PATIENCE, TcpStream::connect(place)).await;
        let why = match connected {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it does not answer".into(),
        };
        Err(DataFusionError::Execution(format!("no scheduler at df://{place}: {why}")))
    }

    async fn run_here(&self, plan: LogicalPlan) -> Result<SendableRecordBatchStream> {
        self.context.execute_logical_plan(plan).await?.execute_stream().await
    }
}

fn not_there(what: &str, instead: &str) -> DataFusionError {
    DataFusionError::NotImplemented(format!("{what} is not done by clusters: {instead}"))
}

/// A job's failure without what Ballista says around it, if it is one that executors told.
fn in_words(error: DataFusionError) -> DataFusionError {
    let text = error.strip_backtrace();
    match text.split_once(BEFORE_FAILURE) {
        Some((_, told)) => {
            let told = told.trim_end().trim_end_matches("\")");
            let told = told.replace("\\n", "\n").replace("\\\"", "\"").replace("\\\\", "\\");
            DataFusionError::Execution(told)
        }
        None => error,
    }
}

/// Whether a plan reads what only this process has, such as the names of its tables.
fn is_of_this_process(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<StreamingTableExec>() || plan.children().into_iter().any(is_of_this_process)
}

/// The address of a scheduler, as gRPC wants it.
fn scheduler_of(url: &str) -> Result<String> {
    let place = match url.split_once("://") {
        None => url,
        Some(("df" | "http", place)) => place,
        Some((scheme, _)) => {
            return Err(DataFusionError::Configuration(format!(
                "{url}: {scheme} is not spoken; a cluster is df://HOST:PORT"
            )));
        }
    };
    let place = place.trim_end_matches('/');
    match place.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
            Ok(format!("http://{place}"))
        }
        _ => Err(DataFusionError::Configuration(format!(
            "{url}: a cluster is df://HOST:PORT, as df://127.0.0.1:50050"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use ballista_core::error::BallistaError;
    use ballista_core::serde::protobuf::FailedTask;

    use super::*;

    #[test]
    fn failures_are_told_as_executors_tell_them() {
        let task = FailedTask::from(BallistaError::General("no \"x\"\nhere".into()));
        let job = format!("Job 1 failed: Job failed due to stage 1 failed: {}\n", task.error);
        let told = in_words(DataFusionError::Execution(job)).strip_backtrace();
        assert_eq!(told, "Execution error: no \"x\"\nhere");
        let other = in_words(DataFusionError::Execution("Job 1 failed".into()));
        assert_eq!(other.strip_backtrace(), "Execution error: Job 1 failed");
    }

    #[test]
    fn addresses_of_schedulers() {
        let of = |url: &str| scheduler_of(url).map_err(|error| error.strip_backtrace());
        assert_eq!(of("df://h:50050").as_deref(), Ok("http://h:50050"));
        assert_eq!(of("h:50050/").as_deref(), Ok("http://h:50050"));
        assert_eq!(of("http://[::1]:1").as_deref(), Ok("http://[::1]:1"));
        for wrong in ["df://h", "df://:50050", "h:seventy", "s3://h:50050", ""] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
