//! What is expected of plans that may not fit into device memory.

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
}

/// What several devices would do of a plan.
pub(crate) enum OnDevices {
    /// The first device of so many runs it alone.
    One { devices: usize, why: String },
    Several {
        devices: usize,
        /// The last one.
        stage: Stage,
        /// Where the plan's tables lie, by their numbers.
        lie: Vec<String>,
    },
}
