//! What is expected of plans that may not fit into device memory.

use super::device_plan::DevicePlan;
use super::division::Divides;
use crate::error::Result;

/// What is expected of plans that may not fit into device memory.
pub(crate) trait Foresight: Divides {
    /// Why a plan would be divided; `None` where it is expected to run whole.
    ///
    /// # Errors
    /// Of its tables.
    fn why_divided(&self, plan: &DevicePlan) -> Result<Option<String>>;
}
