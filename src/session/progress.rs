//! How far a session's queries are, for whoever watches.

use super::Session;
use crate::exec::{ClusterEngine, Engine, PartsProgress, StageReport, StagesProgress};

impl Session {
    /// How far a query is that runs in parts, because it does not fit into device memory; `None`
    /// where the last one that began to has not come to its first step yet, and where none did. It
    /// stays as it is at the end of the query, until another one begins. May be called from any
    /// thread, and costs nothing to speak of. Of what else a query does
    /// [`Device::counters`](crate::device::Device::counters) tells, such as the bytes of files that
    /// were read.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// use warpframe::device::MemoryLimit;
    /// let limit = MemoryLimit::Bytes(2 << 20);
    /// let session = Session::builder().device(DeviceChoice::Sim).memory_limit(limit).build()?;
    /// session.register_csv("jets", "data/jets.csv")?;
    /// assert!(session.progress().is_none());
    /// session.sql("SELECT jetid, max(px) FROM jets GROUP BY jetid")?.collect()?;
    /// let progress = session.progress().expect("it does not fit whole");
    /// assert_eq!((progress.parts_done, Some(progress.rows_done)), (progress.parts, progress.rows));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn progress(&self) -> Option<PartsProgress> {
        self.core.engine().and_then(Engine::progress)
    }

    /// How much the query that runs now has read of its tables and files, from 0 to 1, where the CPU
    /// engine runs it. `None` where no query runs, where it runs on a device, and where nobody knows
    /// how much there is to read. May be called from any thread.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert!(session.share_read().is_none());
    /// let mut rows = session.read_csv("data/jets.csv")?.lazy()?.batches(10)?;
    /// rows.next();
    /// assert!(session.share_read().is_some_and(|share| share <= 1.0));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn share_read(&self) -> Option<f64> {
        self.core.cpu_board.share_read()
    }

    /// How far the stages of a query are that a cluster runs now; `None` where none does, and where
    /// the cluster has told nothing yet. May be called from any thread.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// assert!(Session::builder().device(DeviceChoice::Cpu).build()?.stages_progress().is_none());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn stages_progress(&self) -> Option<StagesProgress> {
        self.engine_of_cluster()?.progress()
    }

    /// What the stages did that a cluster ran, each before those that read its rows, since this was
    /// asked last. The last thousand are kept.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// assert!(Session::builder().device(DeviceChoice::Cpu).build()?.take_stage_runs().is_empty());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn take_stage_runs(&self) -> Vec<StageReport> {
        self.engine_of_cluster().map_or_else(Vec::new, ClusterEngine::take_runs)
    }
}
