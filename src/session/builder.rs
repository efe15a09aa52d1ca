//! Making a session: device, strictness, memory.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use datafusion::catalog::information_schema::INFORMATION_SCHEMA;

use super::catalog::Catalog;
use super::config::config;
use super::context::context;
use super::device_choice::{DeviceChoice, setting};
use super::files::{self, NamedFiles};
use super::host_memory::HostResources;
use super::information::Information;
use super::sequences;
use super::{Session, relations, rules, statements};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{Cluster, CpuBoard, Engine, Runtime};
use crate::query::{Core, Plans};
use warpframe_device::interrupt::Switch;
use warpframe_device::{Device, MemoryLimit, SimOptions};

/// Choices for a [`Session`]; those not made are the environment's.
///
/// ```
/// use warpframe::{DeviceChoice, Session};
/// let session = Session::builder().device(DeviceChoice::Cpu).memory_limit("1GiB".parse()?).build()?;
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct SessionBuilder {
    device: Option<DeviceChoice>,
    strict: Option<bool>,
    memory_limit: Option<MemoryLimit>,
    host: HostResources,
    sim: SimOptions,
    partitions: Option<usize>,
    join_order: Option<bool>,
    divide: Option<bool>,
    statement_timeout: Option<Duration>,
    user_code: bool,
    no_files: bool,
    pub(super) cluster: Option<Arc<dyn Cluster>>,
}

impl SessionBuilder {
    /// Where queries run; otherwise `WARPFRAME_DEVICE`, otherwise [`DeviceChoice::Auto`].
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn device(mut self, device: DeviceChoice) -> Self {
        self.device = Some(device);
        self
    }

    /// Whether a part of a query that the device cannot run is an error instead of running on the
    /// CPU; otherwise `WARPFRAME_STRICT=1` decides.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session};
    /// // Nothing can run on a device that is not there.
    /// assert!(Session::builder().device(DeviceChoice::Cpu).strict(true).build().is_err());
    /// ```
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = Some(strict);
        self
    }

    /// Most device memory in use at once; otherwise `WARPFRAME_MEMORY_LIMIT`, otherwise 90% of the
    /// device's. Columns of files and results that no query uses make room for those that do.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).memory_limit("50%".parse()?).build()?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn memory_limit(mut self, limit: MemoryLimit) -> Self {
        self.memory_limit = Some(limit);
        self
    }

    /// Most host memory that operators of the CPU engine use at once; otherwise
    /// `WARPFRAME_HOST_MEMORY_LIMIT`, otherwise 75% of the machine's, or of what its control group
    /// gives this process. Sorts and aggregations that need more spill to files; what cannot spill
    /// fails with [`ErrorKind::OutOfHostMemory`]. Results and tables in host memory do not count.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).host_memory_limit("2GiB".parse()?).build()?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn host_memory_limit(mut self, limit: MemoryLimit) -> Self {
        self.host.limit = Some(limit);
        self
    }

    /// Folder of the files that the CPU engine spills to; otherwise `WARPFRAME_SPILL_DIR`,
    /// otherwise the system's for temporary files. It is made if it is not there.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session};
    /// # let directory = tempfile::tempdir().unwrap();
    /// let folder = directory.path().join("spilled");
    /// let session = Session::builder().device(DeviceChoice::Cpu).spill_dir(&folder).build()?;
    /// assert!(folder.is_dir());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn spill_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.host.spill_dir = Some(folder.into());
        self
    }

    /// Most bytes of these files at once; otherwise `WARPFRAME_SPILL_LIMIT`, otherwise 100 GiB.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).spill_limit(1 << 30).build()?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn spill_limit(mut self, bytes: u64) -> Self {
        self.host.spill_limit = Some(bytes);
        self
    }

    /// How the simulator schedules, where it is the device.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session, device::SimOptions};
    /// let session = Session::builder().device(DeviceChoice::Cpu).sim_options(SimOptions::default()).build()?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn sim_options(mut self, options: SimOptions) -> Self {
        self.sim = options;
        self
    }

    /// Parts that the CPU engine cuts its work into; otherwise the number of cores.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).cpu_partitions(1).build()?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn cpu_partitions(mut self, partitions: usize) -> Self {
        self.partitions = Some(partitions.max(1));
        self
    }

    /// Whether inner joins on the device run in the order of estimated rows, which they do
    /// otherwise, or in the query's. `SET join_order = off` says so later.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Sim).join_order(false).build()?;
    /// let order = session.sql("SHOW join_order")?.collect()?;
    /// assert_eq!(order.column("value")?.to_vec::<String>()?, ["off"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn join_order(mut self, on: bool) -> Self {
        self.join_order = Some(on);
        self
    }

    /// Whether a query that does not fit into device memory runs in parts (as it does by default),
    /// or fails with [`ErrorKind::OutOfDeviceMemory`], and outside of strict mode goes to the CPU
    /// engine.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Sim).divide(false).build()?;
    /// assert_eq!(session.sql("SELECT 1 AS one")?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn divide(mut self, on: bool) -> Self {
        self.divide = Some(on);
        self
    }

    /// How long a statement may take, see [`Session::set_statement_timeout`]; otherwise any time.
    ///
    /// ```
    /// use std::time::Duration;
    /// use warpframe::{DeviceChoice, Session};
    /// let session =
    ///     Session::builder().device(DeviceChoice::Cpu).statement_timeout(Duration::from_secs(60)).build()?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = Some(timeout);
        self
    }

    /// Whether statements may bring code for the device (`CREATE FUNCTION … LANGUAGE CUDA`), which
    /// they may not otherwise: such code runs on this machine, with the rights of this process.
    /// What a program registers by [`Session::register_function`] is its own.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, ErrorKind, Session};
    /// let text = "CREATE FUNCTION one() RETURNS BIGINT LANGUAGE CUDA AS 'return 1;'";
    /// let session = Session::builder().device(DeviceChoice::Sim).build()?;
    /// let error = session.execute(text).unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::Forbidden { .. }));
    /// let session = Session::builder().device(DeviceChoice::Sim).user_code(true).build()?;
    /// session.execute(text)?;
    /// assert_eq!(session.function_names(), ["one"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn user_code(mut self, allowed: bool) -> Self {
        self.user_code = allowed;
        self
    }

    /// Whether statements, and plans of other processes, may bring code.
    pub(crate) fn allows_user_code(&self) -> bool {
        self.user_code
    }

    /// Whether statements may name files, which they may otherwise: read them (`FROM 'x.csv'`,
    /// `read_csv`, `CREATE EXTERNAL TABLE`, `IMPORT DATABASE`) and write them (`EXPORT DATABASE`).
    /// Without files they bring no code either, which could open some. What a program registers,
    /// reads and writes by methods is its own: queries over such tables run.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, ErrorKind, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).files(false).build()?;
    /// session.register_csv("jets", "data/jets.csv")?;
    /// assert_eq!(session.sql("SELECT count(*) FROM jets")?.collect()?.num_rows(), 1);
    /// let error = session.sql("SELECT * FROM 'data/jets.csv'").unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::Forbidden { .. }));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn files(mut self, allowed: bool) -> Self {
        self.no_files = !allowed;
        self
    }

    /// Opens the device and makes the session.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`] where the device asked for, or in strict mode any device,
    /// is not there; [`ErrorKind::Parse`] for an environment variable with a value that means
    /// nothing; [`ErrorKind::Io`] of a folder to spill to.
    ///
    /// ```
    /// use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Auto).build()?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn build(self) -> Result<Session> {
        let host = of_environment(self.host.clone())?;
        let (engine, notice) = self.open(&host)?;

        let runtime = Runtime::new()?;
        let has_engine = engine.is_some();
        let config = host.configure(config(has_engine, self.partitions)?);
        let context = context(config, host.runtime()?, has_engine)?;
        if has_engine {
            sequences::register(&context);
        }
        let names = context.copied_config().options().catalog.clone();
        let named = Arc::new(NamedFiles::new(!self.no_files));
        if let Some(catalog) = context.catalog(&names.default_catalog) {
            catalog.register_schema(&names.default_schema, Arc::new(Catalog::default()))?;
            catalog.register_schema(files::SCHEMA, named.clone())?;
            let catalogs = Arc::downgrade(context.state().catalog_list());
            catalog.register_schema(INFORMATION_SCHEMA, Arc::new(Information(catalogs)))?;
        }
        let switch = Arc::<Switch>::default();
        switch.set_timeout(self.statement_timeout);
        let (plans, refuse) = (Plans::default(), rules::refuse_what_is_left as _);
        let cpu_board = CpuBoard::default();
        let core = Arc::new(Core { context, runtime, engine, plans, switch, cpu_board, refuse });
        let relations = relations::Relations { core: Arc::downgrade(&core), files: named.clone() };
        core.context.register_relation_planner(Arc::new(relations))?;
        Ok(Session {
            core,
            files: named,
            writers: Arc::default(),
            prepared: statements::PreparedStatements::default(),
            databases: Arc::default(),
            notice: notice.map(Arc::from),
            user_code: self.user_code,
        })
    }

    /// The device that a session would have, for who has a session of another kind.
    ///
    /// # Errors
    /// As [`SessionBuilder::build`].
    pub(crate) fn engine(&self) -> Result<Option<Engine>> {
        Ok(self.open(&of_environment(self.host.clone())?)?.0)
    }

    /// Opens the device, or tells why there is none.
    fn open(&self, host: &HostResources) -> Result<(Option<Engine>, Option<String>)> {
        let choice = match (&self.device, &self.cluster) {
            // Plans are made as for a device, which this machine need not have.
            (None, Some(_)) => DeviceChoice::Sim,
            (Some(_), Some(cluster)) => {
                let name = cluster.name();
                return Err(setting(format!("a session has a device or a cluster: {name}")));
            }
            (Some(choice), None) => choice.clone(),
            (None, None) => variable("WARPFRAME_DEVICE")?.unwrap_or_default(),
        };
        let strict = match self.strict {
            Some(strict) => strict,
            None => strict_variable()?,
        };
        let limit = match self.memory_limit {
            Some(limit) => limit,
            None => variable("WARPFRAME_MEMORY_LIMIT")?.unwrap_or_default(),
        };

        let mut notice = None;
        let mut devices = match choice.open(&self.sim, limit) {
            Ok(devices) => devices,
            Err(error) if choice == DeviceChoice::Auto => {
                notice = Some(format!("no GPU: {}; queries run on the CPU", reason(&error)));
                vec![]
            }
            Err(error) => return Err(error),
        }
        .into_iter();
        let device = devices.next();
        if strict && device.is_none() {
            let why = notice.unwrap_or_else(|| "the session was asked to run on the CPU".into());
            return Err(ErrorKind::DeviceUnavailable {
                device: choice.to_string(),
                why: format!("strict mode needs one, but {why}"),
            }
            .into());
        }
        let engine_of = |device: Device| {
            device.bound_spills(host.spill_bounds());
            let (join_order, divide) =
                (self.join_order.unwrap_or(true), self.divide.unwrap_or(true));
            Engine::new(device, strict, join_order, divide)
        };
        let engine = Engine::of_all(device.into_iter().chain(devices).map(engine_of).collect());
        Ok(match &self.cluster {
            Some(cluster) => (engine.map(|engine| engine.with_cluster(cluster.clone())), None),
            None => (engine, notice),
        })
    }
}

/// The choices that nobody made are the environment's.
fn of_environment(host: HostResources) -> Result<HostResources> {
    let limit = match host.limit {
        Some(limit) => Some(limit),
        None => variable("WARPFRAME_HOST_MEMORY_LIMIT")?,
    };
    let folder = || {
        warpframe_device::environment::os("WARPFRAME_SPILL_DIR")
            .filter(|folder| !folder.is_empty())
            .map(PathBuf::from)
    };
    let spill_limit = match host.spill_limit {
        Some(bytes) => Some(bytes),
        None => match variable("WARPFRAME_SPILL_LIMIT")? {
            Some(MemoryLimit::Percent(_)) => {
                return Err(setting("WARPFRAME_SPILL_LIMIT: expected bytes such as 20GiB".into()));
            }
            Some(MemoryLimit::Bytes(bytes)) => Some(bytes),
            None => None,
        },
    };
    Ok(HostResources { limit, spill_dir: host.spill_dir.or_else(folder), spill_limit })
}

/// The reason alone: the notice already says that there is no GPU. One line, whatever a driver has
/// to say.
fn reason(error: &Error) -> String {
    let text = match error.kind() {
        ErrorKind::DeviceUnavailable { why, .. } => why.clone(),
        _ => error.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches('.').to_string()
}

fn variable<T>(name: &str) -> Result<Option<T>>
where
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    match warpframe_device::environment::text(name) {
        Ok(value) if !value.trim().is_empty() => {
            value.parse().map(Some).map_err(|error| setting(format!("{name}: {error}")))
        }
        _ => Ok(None),
    }
}

fn strict_variable() -> Result<bool> {
    match warpframe_device::environment::text("WARPFRAME_STRICT").as_deref().map(str::trim) {
        Ok("1" | "true" | "on") => Ok(true),
        Err(_) | Ok("" | "0" | "false" | "off") => Ok(false),
        Ok(other) => Err(setting(format!("WARPFRAME_STRICT: {other:?}: expected 1 or 0"))),
    }
}
