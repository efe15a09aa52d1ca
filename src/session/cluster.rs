//! Sessions whose queries a cluster runs.

use std::sync::Arc;

use super::Session;
use super::builder::SessionBuilder;
use crate::exec::{Cluster, ClusterEngine};

impl SessionBuilder {
    /// Has a cluster run the queries: what a device supports of them runs there, in stages, and the
    /// rest is the CPU engine's of this process. This session has no device then; in strict mode it
    /// is an error that something is left to the CPU engine.
    ///
    /// What computes nothing of Parquet files runs here in any case. Executors read Parquet files by
    /// their absolute paths. Of other tables they get the rows, at most 64 MiB for a query; beyond
    /// that the query runs here, and [`Session::take_fallback_reasons`] says so.
    ///
    /// The crate `warpframe_cluster` has clusters for this.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use warpframe::plugin::Cluster;
    /// use warpframe::{Result, Session};
    ///
    /// fn session_on(cluster: Arc<dyn Cluster>) -> Result<Session> {
    ///     let session = Session::builder().cluster(cluster).build()?;
    ///     assert!(session.device().is_none() && session.cluster().is_some());
    ///     Ok(session)
    /// }
    /// ```
    pub fn cluster(mut self, cluster: Arc<dyn Cluster>) -> Self {
        self.cluster = Some(cluster);
        self
    }
}

impl Session {
    pub(super) fn engine_of_cluster(&self) -> Option<&ClusterEngine> {
        self.core.engine()?.cluster.as_deref()
    }

    /// The name of the cluster that runs queries, such as `df://host:50050`; `None` where this
    /// process does.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// assert!(Session::builder().device(DeviceChoice::Cpu).build()?.cluster().is_none());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn cluster(&self) -> Option<&str> {
        self.engine_of_cluster().map(|cluster| cluster.name())
    }
}
