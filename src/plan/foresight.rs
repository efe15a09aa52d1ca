//! What is expected of plans that may not fit into device memory.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use super::device_plan::DevicePlan;
use super::division::Divides;
use super::stages::Stage;
use crate::error::Result;

/// What is expected of plans that may not fit into device memory.
pub(crate) trait Foresight: Divides {
    /// Why a plan would be divided; `None` where it is expected to run whole.
    ///
    /// # Errors
    /// Of its tables.
    fn why_divided(&self, plan: &DevicePlan) -> Result<Option<String>>;

    /// What the devices of a session would do of a plan; `None` where there is one.
    ///
    /// # Errors
    /// Of its tables.
    fn on_devices(&self, plan: &DevicePlan) -> Result<Option<OnDevices>>;

    /// Where a plan runs instead of on a device; `None` of one that does run there.
    fn placed(&self, plan: &DevicePlan) -> Option<&Placed>;
}

/// What several devices would do of a plan.
pub(crate) enum OnDevices {
    /// The first device of so many runs it alone.
    One { devices: usize, why: String },
    Several {
        devices: usize,
        /// The last one.
        stage: Box<Stage>,
        /// Where the plan's tables lie, by their numbers.
        lie: Vec<String>,
    },
}

/// Where the parts of a plan run.
pub(crate) type PlacedParts = Vec<(Arc<DevicePlan>, Placed)>;

/// Where a plan runs of a session with a cluster.
#[derive(Debug)]
pub(crate) enum Placed {
    /// On the cluster: these operators.
    OnCluster(Arc<dyn ExecutionPlan>),
    /// By the CPU engine of this process, for this reason.
    Here(String),
}
