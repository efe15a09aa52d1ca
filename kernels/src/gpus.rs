//! The GPUs of the machine.

use crate::drivers::cuda::CudaDriver;
use crate::error::Result;
use crate::{Device, DeviceKind};

impl Device {
    /// Bytes for each of several devices from which on they share a query, where
    /// `WARPFRAME_SHARED_BYTES` says so.
    pub fn shared_bytes(&self) -> Option<u64> {
        self.0.shared_bytes
    }

    /// Whether this device copies from the memory of the other one without the host
    /// ([`Buffer::copy_from`](crate::Buffer::copy_from)).
    pub fn reaches(&self, other: &Device) -> Result<bool> {
        match (self.kind(), other.kind()) {
            (DeviceKind::Cuda(ordinal), DeviceKind::Cuda(_)) => other.0.driver.admit(ordinal),
            _ => Ok(false),
        }
    }

    /// Whether the device can do nothing any more: a fault of a kernel or of the hardware has its
    /// driver refuse every call.
    pub fn is_lost(&self) -> bool {
        self.0.driver.is_lost()
    }

    /// Loses a simulated device, as a GPU is lost by a fault: for tests.
    #[doc(hidden)]
    pub fn lose(&self) {
        self.0.driver.lose();
    }

    /// Notes that bytes of rows of this device were sent to another one.
    pub fn count_sent(&self, bytes: u64, to: &Device) {
        self.0.counters.sent(bytes);
        to.0.counters.received(bytes);
    }

    /// How many CUDA devices there are, of those that `CUDA_VISIBLE_DEVICES` leaves.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`](crate::ErrorKind::DeviceUnavailable) where driver or GPU are missing.
    ///
    /// ```
    /// # use warpframe_device::{Device, ErrorKind};
    /// match Device::cuda_count() {
    ///     Ok(count) => assert!(count > 0),
    ///     Err(error) => assert!(matches!(error.kind(), ErrorKind::DeviceUnavailable { .. })),
    /// }
    /// ```
    pub fn cuda_count() -> Result<usize> {
        CudaDriver::count()
    }
}
