//! Kernels that users wrote, and what other programs in this process do on the device.

use std::ffi::c_void;

use crate::error::Result;
use crate::{Device, DeviceKind, Kernel, UserArgument, UserGrid};

impl Device {
    /// The stream that queries run on, a `CUstream` (which the runtime calls `cudaStream_t`), for
    /// kernels of other libraries that use columns: what is submitted to it runs in order with
    /// queries. `None` of the simulator, where work is done when a call returns.
    ///
    /// The stream is the device's, and lives as long as it does.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// assert_eq!(device.stream(), None);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn stream(&self) -> Option<*mut c_void> {
        matches!(self.kind(), DeviceKind::Cuda(_)).then(|| self.0.driver.stream() as *mut c_void)
    }

    /// Lets queries that are run later wait for what another stream was given so far, without a
    /// wait of the host. Nothing on the simulator.
    ///
    /// # Safety
    /// `stream` is a live `CUstream` of the same GPU and its primary context, or one of CUDA's
    /// handles of default streams (null, 1, 2).
    ///
    /// # Errors
    /// [`crate::ErrorKind::Cuda`].
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// # let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// # let theirs = std::ptr::null_mut();
    /// // SAFETY: the stream of a library that runs on the same GPU, which is live.
    /// unsafe { device.wait_for_stream(theirs) }?; // queries see what that library wrote
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub unsafe fn wait_for_stream(&self, stream: *mut c_void) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.0.driver.wait_for_stream(stream as u64) }
    }

    /// Lets what another stream is given later wait for all queries so far, without a wait of the
    /// host. Nothing on the simulator.
    ///
    /// # Safety
    /// As of [`Device::wait_for_stream`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Cuda`].
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// # let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// # let theirs = std::ptr::null_mut();
    /// // SAFETY: the stream of a library that runs on the same GPU, which is live.
    /// unsafe { device.make_stream_wait(theirs) }?; // that library sees what queries wrote
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub unsafe fn make_stream_wait(&self, stream: *mut c_void) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.0.driver.make_stream_wait(stream as u64) }
    }

    /// Lets later work wait for an event that another program recorded on this device; 0 is none.
    ///
    /// # Safety
    /// The event is live, and of this device.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Cuda`].
    #[cfg(feature = "ffi")]
    pub unsafe fn wait_for_event(&self, event: u64) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.0.driver.wait_for_event(event) }
    }

    /// Waits for everything that any program in this process submitted to the device.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Cuda`].
    #[cfg(feature = "ffi")]
    pub fn settle_all(&self) -> Result<()> {
        self.0.driver.settle_all()
    }

    /// Most threads that a block of a user's kernel may have.
    pub const MOST_THREADS: u32 = 1024;

    /// Submits a kernel that a user wrote. Its grid has blocks, and a block has threads, at most
    /// [`Device::MOST_THREADS`].
    ///
    /// # Safety
    /// The types of the parameters are those of the arguments, every address among these leads to a
    /// live buffer of the bytes that are told, and the kernel touches no other memory.
    pub unsafe fn launch_user(
        &self,
        kernel: &Kernel,
        grid: &UserGrid,
        arguments: &[UserArgument],
    ) -> Result<()> {
        let bytes = |argument: &UserArgument| match argument {
            UserArgument::Memory { bytes, .. } => *bytes,
            UserArgument::Number { .. } => 0,
        };
        let bytes = arguments.iter().map(bytes).sum();
        self.0.counters.launched(&kernel.launches, bytes);
        if let (Some(uses), Some(improver)) = (&kernel.uses, &self.0.improver) {
            improver.launched(uses);
        }
        self.profiled(&kernel.name, bytes, || {
            // SAFETY: the caller's promise is the driver's demand.
            unsafe { self.0.driver.launch_user(kernel.function, &kernel.name, grid, arguments) }
        })
    }
}
