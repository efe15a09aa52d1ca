//! warpframe in a program that has a DataFusion session of its own.
//!
//! ```
//! use datafusion::execution::SessionStateBuilder;
//! use datafusion::prelude::SessionContext;
//! use warpframe::plugin::WithWarpframe;
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(async {
//! let state = SessionStateBuilder::new_with_default_features().with_warpframe()?.build();
//! let context = SessionContext::new_with_state(state);
//! context.register_parquet("nation", "data/tpch/nation.parquet", Default::default()).await?;
//! let frame = context.sql("SELECT n_regionkey, count(*) AS n FROM nation GROUP BY 1").await?;
//! let rows: usize = frame.collect().await?.iter().map(|batch| batch.num_rows()).sum();
//! assert_eq!(rows, 5);
//! # Ok::<(), datafusion::error::DataFusionError>(())
//! # }).unwrap();
//! ```
//!
//! The session parses, analyzes and optimizes as before. Then the largest parts of a plan that the
//! device supports become operators of its physical plan (`DeviceStageExec`), and its own planner
//! plans the rest. Answers are DataFusion's: where this engine means something else by a function
//! or a cast, that part stays on the CPU, and rows that fail on the device (a sum that overflows,
//! say) are computed anew by DataFusion.
//!
//! ```text
//!   optimized plan ── cut ──▶ subtrees for the device ──▶ stages ──▶ tables of planned operators
//!                                                                  their planner ──▶ physical plan
//! ```
//!
//! | file | what |
//! |---|---|
//! | `stock` | what stays on the CPU, since DataFusion answers otherwise; floats as in Arrow |
//! | `subqueries` | scalar subqueries as joins |
//! | `scans` | the tables of a subtree, planned |
//! | `planner` | the query planner |
//! | `codec` | stages as bytes |
//!
//! A [`Cluster`] runs the stages of this crate's own sessions:
//! [`SessionBuilder::cluster`](crate::SessionBuilder::cluster).

#[cfg(feature = "proto")]
mod codec;
mod planner;
mod scans;
mod stock;
mod subqueries;

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use parking_lot::Mutex;

#[cfg(feature = "proto")]
pub use self::codec::StageCodec;
use self::planner::StagePlanner;
use crate::error::Result;
pub use crate::exec::{
    Cluster, ClusterJob, ClusterWatch, RemoteExchanges, StageReport, StagesProgress, TasksOfStage,
    of_own_buffers,
};
use crate::exec::{Runtime, StageDevice, aggregated_on_host, checked, compiled_on_host};
pub use crate::io::bytes_of;
use crate::session::SessionBuilder;
use crate::user_code::{AggregateFunction, ScalarFunction};
use warpframe_device::Device;

/// The device for sessions of DataFusion's. Clones share it, with the columns that it keeps.
///
/// ```
/// use datafusion::execution::SessionStateBuilder;
/// use warpframe::plugin::{Plugin, WithWarpframe};
/// use warpframe::{DeviceChoice, Session};
///
/// let plugin = Plugin::new(Session::builder().device(DeviceChoice::Sim).strict(true))?;
/// let state = SessionStateBuilder::new_with_default_features().with_plugin(&plugin).build();
/// # let _ = state;
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Plugin {
    /// `None` where there is no device.
    opened: Option<StageDevice>,
    stages: bool,
    broadcast: u64,
    /// Whether plans of other processes may bring code.
    #[cfg_attr(not(feature = "proto"), expect(dead_code, reason = "only codecs read such plans"))]
    user_code: bool,
}

/// Bytes of a side of a join up to which each task gets it whole.
const BROADCAST: u64 = 1 << 30;

impl Plugin {
    /// Opens the device that a session of this builder would have. These settings of the builder
    /// hold: device, strictness, device memory, spilled rows, join order, division, and whether
    /// plans of other processes may bring code. Other settings are those of DataFusion's session.
    ///
    /// # Errors
    /// As [`SessionBuilder::build`].
    pub fn new(session: SessionBuilder) -> Result<Plugin> {
        let user_code = session.allows_user_code();
        let opened = match session.engine()? {
            Some(engine) => Some(StageDevice::new(engine, Arc::new(Runtime::new()?))),
            None => None,
        };
        Ok(Plugin { opened, stages: false, broadcast: BROADCAST, user_code })
    }

    /// Whether plans are cut into stages of several tasks, with exchanges of DataFusion's between
    /// them; otherwise each supported part of a plan is one task. A stage has as many tasks as the
    /// session has `target_partitions`.
    ///
    /// ```
    /// use warpframe::plugin::Plugin;
    /// use warpframe::{DeviceChoice, Session};
    /// let plugin = Plugin::new(Session::builder().device(DeviceChoice::Sim))?.with_stages(true);
    /// # let _ = plugin;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    #[must_use]
    pub fn with_stages(mut self, on: bool) -> Plugin {
        self.stages = on;
        self
    }

    /// Most bytes of a side of a join that each task gets whole, instead of parting both sides by a
    /// hash of their keys; otherwise 1 GiB.
    ///
    /// ```
    /// use warpframe::plugin::Plugin;
    /// use warpframe::{DeviceChoice, Session};
    /// let plugin = Plugin::new(Session::builder().device(DeviceChoice::Sim))?;
    /// let plugin = plugin.with_stages(true).with_broadcast_limit(64 << 20);
    /// # let _ = plugin;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    #[must_use]
    pub fn with_broadcast_limit(mut self, bytes: u64) -> Plugin {
        self.broadcast = bytes;
        self
    }

    /// The device: its memory, counters and times. `None` where everything runs on the CPU.
    pub fn device(&self) -> Option<&Device> {
        self.opened.as_ref().map(|opened| &opened.engine.first().device)
    }

    /// A function in CUDA C++ as one of DataFusion's, which sessions with this plugin run on the
    /// device. The device's compiler looks at its body at once.
    ///
    /// # Errors
    /// As [`Session::register_function`](crate::Session::register_function), but for names that
    /// are taken: the session that registers it has its own.
    ///
    /// ```
    /// use warpframe::ScalarFunction;
    /// use warpframe::arrow::datatypes::DataType;
    /// use warpframe::plugin::Plugin;
    /// use warpframe::{DeviceChoice, Session};
    /// let plugin = Plugin::new(Session::builder().device(DeviceChoice::Sim))?;
    /// let inputs = [("n", DataType::Int64)];
    /// let next = ScalarFunction::new("next", inputs, DataType::Int64, "return n + 1;");
    /// let context = datafusion::prelude::SessionContext::new();
    /// context.register_udf(plugin.scalar_function(next)?);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn scalar_function(&self, function: ScalarFunction) -> Result<ScalarUDF> {
        let function = function.planned(compiled_on_host)?;
        if let Some(definition) = function.definition() {
            checked(self.device(), definition, function.has_closure())?;
        }
        Ok(ScalarUDF::from(function))
    }

    /// An aggregate in CUDA C++ as one of DataFusion's, as [`Plugin::scalar_function`] makes
    /// functions.
    ///
    /// # Errors
    /// As [`Session::register_aggregate`](crate::Session::register_aggregate).
    ///
    /// ```
    /// use warpframe::AggregateFunction;
    /// use warpframe::arrow::datatypes::DataType::Int64;
    /// use warpframe::plugin::Plugin;
    /// use warpframe::{DeviceChoice, Session};
    /// let plugin = Plugin::new(Session::builder().device(DeviceChoice::Sim))?;
    /// let most = AggregateFunction::new("most", [("n", Int64)], Int64)
    ///     .state([("n", Int64)])
    ///     .identity("s.n = -9223372036854775807;")
    ///     .map("s.n = n;")
    ///     .combine("a.n = a.n > b.n ? a.n : b.n;")
    ///     .finish("return s.n;");
    /// let context = datafusion::prelude::SessionContext::new();
    /// context.register_udaf(plugin.aggregate_function(most)?);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn aggregate_function(&self, function: AggregateFunction) -> Result<AggregateUDF> {
        let function = function.planned(aggregated_on_host)?;
        checked(self.device(), function.definition(), false)?;
        Ok(AggregateUDF::from(function))
    }

    /// Why parts of plans that were begun on the device went to the CPU, since this was asked last;
    /// [`Counters::fallbacks`](crate::device::Counters::fallbacks) counts them.
    pub fn take_reasons(&self) -> Vec<String> {
        self.opened.as_ref().map_or_else(Vec::new, |opened| opened.engine.first().take_reasons())
    }

    /// A query planner that gives the device its part of a plan, and `theirs` the rest.
    fn planner(&self, theirs: Option<Arc<dyn QueryPlanner + Send + Sync>>) -> Option<StagePlanner> {
        let device = self.opened.clone()?;
        Some(StagePlanner::new(device, theirs, (self.stages, self.broadcast)))
    }
}

/// A stage whose tasks part their rows among the tasks of the next stage on the device, instead of
/// row by row on the host. The parts are those of DataFusion's `RepartitionExec`: tasks of one stage
/// may be run by either.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::arrow::datatypes::Schema;
/// use datafusion::physical_plan::empty::EmptyExec;
/// use datafusion::physical_plan::{ExecutionPlan, Partitioning};
/// use warpframe::plugin::PartedStage;
/// let other: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(Schema::empty().into()));
/// assert!(PartedStage::of(&other, &Partitioning::Hash(vec![], 4)).is_none());
/// ```
#[derive(Debug, Clone)]
pub struct PartedStage(crate::exec::PartedTasks);

impl PartedStage {
    /// `None` where the device does not part the rows: of an operator that is no stage
    /// ([`StageCodec::writes`]), of a process without a device, of partitionings other than by a
    /// hash of columns, and of floats, intervals and nested columns as keys.
    pub fn of(stage: &Arc<dyn ExecutionPlan>, by: &Partitioning) -> Option<PartedStage> {
        crate::exec::PartedTasks::of(stage, by).map(PartedStage)
    }

    /// Runs a task of the stage. Each batch of its rows has the number of the task of the next
    /// stage that it is for; those of one task lie together.
    ///
    /// # Errors
    /// As the stage has when it is executed.
    pub async fn rows(
        &self,
        task: usize,
        context: Arc<TaskContext>,
    ) -> datafusion::error::Result<Vec<(usize, RecordBatch)>> {
        self.0.rows(task, context).await
    }
}

/// Sessions of DataFusion that run on the device what it supports.
#[diagnostic::on_unimplemented(
    message = "`{Self}` plans no queries",
    label = "`SessionStateBuilder` is wanted here",
    note = "write `SessionStateBuilder::new_with_default_features().with_warpframe()`"
)]
pub trait WithWarpframe: Sized {
    /// The session with the device of this process, by the environment's variables
    /// (`WARPFRAME_DEVICE` and others): all sessions that say nothing else share it. Without a GPU
    /// the session stays as it is.
    ///
    /// # Errors
    /// As [`SessionBuilder::build`].
    fn with_warpframe(self) -> Result<Self>;

    /// The session with this device.
    fn with_plugin(self, plugin: &Plugin) -> Self;
}

impl WithWarpframe for SessionStateBuilder {
    fn with_warpframe(self) -> Result<Self> {
        static SHARED: LazyLock<Mutex<Option<Plugin>>> = LazyLock::new(Mutex::default);
        let mut shared = SHARED.lock();
        let plugin = match &*shared {
            Some(plugin) => plugin.clone(),
            None => shared.insert(Plugin::new(SessionBuilder::default())?).clone(),
        };
        drop(shared);
        Ok(self.with_plugin(&plugin))
    }

    fn with_plugin(mut self, plugin: &Plugin) -> Self {
        let theirs = self.query_planner().take();
        let Some(planner) = plugin.planner(theirs.clone()) else {
            *self.query_planner() = theirs;
            return self;
        };
        self.with_query_planner(Arc::new(planner))
    }
}
