//! The device: memory, kernels, time. The only module that speaks to a driver.
//!
//! Two drivers stand behind one small interface: `cuda` (through cudarc, loaded at run time) and
//! `sim`, which compiles the same kernel sources as host code and runs blocks as groups of fibers.
//! Every operation goes to the device's single stream, in order, but for copies that go beside it
//! (`feed.rs`); only downloads and [`Device::synchronize`] wait.

#![doc = "Not for use by itself: what it offers changes with the engine."]

mod argument;
mod branch;
mod compile;
pub mod cores;
mod counters;
mod drivers;
mod end;
pub mod environment;
mod error;
mod gpus;
pub mod interrupt;
mod memory;
pub mod ops;
mod profile;
mod secret;
pub mod timeline;
mod user;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

pub use argument::Argument;
pub use compile::ahead::Ahead;
#[doc(hidden)]
pub use compile::nvrtc::{CompileReport, KernelReport, compile_for};
pub use compile::parts::{LaunchBounds, Parts};
pub use compile::prepare;
pub use compile::source::{COMMON_HEADERS, HEADERS, KernelSource};
pub use counters::Counters;
pub(crate) use drivers::driver::Driver;
pub use drivers::driver::{DeviceProperties, Grid, UserArgument, UserGrid};
pub use drivers::sim::SimOptions;
pub use end::close_all;
pub use error::{Error, ErrorKind, Result, Shortage};
#[cfg(feature = "ffi")]
pub use memory::buffer::ForeignMemory;
pub use memory::buffer::{Buffer, Slice};
pub use memory::feed::{Fed, MOST_FED};
pub use memory::host_block::{HostBlock, SpillBounds};
pub use memory::pool::{MemoryLimit, MemoryUse};
pub use memory::room::{HeldBuffer, HeldPiece, Holder, PieceKind, Sharers};
pub use profile::{KernelTime, OperatorNote};
pub use secret::seeded_secret;

use compile::{ahead, cache, improve, parts, uses};
use drivers::{clock, cuda, driver, sim};
use memory::{host_block, pool};

/// A device that runs kernels; clones share it. Sessions open one, and their `device` hands it out.
///
/// ```
/// use warpframe_device::{Device, MemoryLimit, SimOptions, ops::scan::exclusive_scan_u32};
/// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
/// let counts = device.upload("counts", &[1, 0, 0, 0, 2, 0, 0, 0])?;
/// exclusive_scan_u32(&device, &counts, 2)?;
/// assert!(device.counters().launches > 0 && device.counters().bytes_uploaded > 0);
/// # Ok::<(), warpframe_device::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Device(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    driver: Arc<dyn Driver>,
    kind: DeviceKind,
    pool: Arc<pool::Pool>,
    /// Made when they are asked for.
    branches: OnceLock<Vec<Device>>,
    cache: Arc<cache::KernelCache>,
    by_parts: parts::ByParts,
    counters: Arc<counters::Counting>,
    profile: Arc<Mutex<profile::Profile>>,
    spill: Arc<host_block::SpillSpace>,
    fixed_secret: secret::Fixed,
    /// `WARPFRAME_PARTITION_ROWS`, as it was when the device was opened.
    partition_rows: Option<u64>,
    /// `WARPFRAME_SHARED_BYTES`, likewise.
    shared_bytes: Option<u64>,
    /// Of a stand-in: where the kernels that are asked for go.
    rehearsal: Option<Arc<ahead::CompileQueue>>,
    /// Where kernels can be compiled better than at first.
    improver: Option<Arc<improve::Improver>>,
    /// Of a GPU that a session has.
    preparer: OnceLock<prepare::Preparer>,
}

/// What executes kernels on a [`Device`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceKind {
    /// An NVIDIA GPU, by ordinal.
    Cuda(usize),
    /// The CPU simulator of the CUDA execution model.
    Sim,
}

/// An entry point ready to launch.
#[derive(Debug, Clone)]
pub struct Kernel {
    function: driver::FunctionHandle,
    name: Arc<str>,
    launches: Arc<AtomicU64>,
    uses: Option<Arc<uses::Uses>>,
    /// Keeps the module loaded.
    _hold: cache::ModuleHold,
}

/// A recorded point of a device's stream; see [`Device::record`].
#[derive(Debug)]
pub struct Event {
    device: Device,
    handle: driver::EventHandle,
}

impl Event {
    /// Milliseconds of device time from `earlier` to here. Waits until this point is reached.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// let start = device.record()?;
    /// assert!(device.record()?.since(&start)? >= 0.0);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn since(&self, earlier: &Event) -> Result<f32> {
        self.device.0.driver.elapsed_ms(earlier.handle, self.handle)
    }
}

#[cfg(feature = "ffi")]
impl Event {
    /// As the driver's own interface knows it.
    pub fn raw(&self) -> u64 {
        self.handle.0
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        self.device.0.driver.release(self.handle);
    }
}

impl Device {
    /// Opens CUDA device `ordinal` with a memory limit.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`] when driver or GPU are missing, or NVRTC is and no compiled
    /// kernels are kept on disk; never a panic.
    ///
    /// ```
    /// use warpframe_device::ErrorKind;
    /// use warpframe_device::{Device, MemoryLimit};
    /// match Device::cuda(0, MemoryLimit::default()) {
    ///     Ok(device) => assert_eq!(device.kind(), warpframe_device::DeviceKind::Cuda(0)),
    ///     Err(error) => assert!(matches!(error.kind(), ErrorKind::DeviceUnavailable { .. })),
    /// }
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn cuda(ordinal: usize, limit: MemoryLimit) -> Result<Self> {
        Self::with_driver(
            Arc::new(cuda::CudaDriver::open(ordinal)?),
            DeviceKind::Cuda(ordinal),
            limit,
        )
    }

    /// Opens the simulator.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`] when there is no C++ compiler.
    ///
    /// ```
    /// use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::with_seed(1), MemoryLimit::Bytes(1 << 30))?;
    /// assert_eq!(device.properties().architecture, "sim");
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn sim(options: SimOptions, limit: MemoryLimit) -> Result<Self> {
        Self::with_driver(Arc::new(sim::SimDriver::open(options)?), DeviceKind::Sim, limit)
    }

    fn with_driver(driver: Arc<dyn Driver>, kind: DeviceKind, limit: MemoryLimit) -> Result<Self> {
        let pool = Arc::new(pool::Pool::new(limit, driver.properties().memory));
        let cache = Arc::new(cache::KernelCache::new());
        let (counters, profile): (Arc<counters::Counting>, _) = Default::default();
        let by_parts = Default::default();
        let improver = driver.takes_quick().then(|| {
            Arc::new(improve::Improver::new(driver.clone(), cache.clone(), counters.clone()))
        });
        let driver: Arc<dyn Driver> =
            Arc::new(clock::Clocked { driver, counters: counters.clone() });
        pool.holders.add_driver(&driver);
        Ok(Device(Arc::new(Shared {
            driver,
            kind,
            pool,
            branches: OnceLock::new(),
            cache,
            by_parts,
            counters,
            profile,
            spill: Arc::default(),
            fixed_secret: Default::default(),
            partition_rows: environment::number("WARPFRAME_PARTITION_ROWS"),
            shared_bytes: environment::number("WARPFRAME_SHARED_BYTES"),
            rehearsal: None,
            improver,
            preparer: OnceLock::new(),
        })))
    }

    /// Whether both are the same opened device, so that one may read the other's buffers.
    pub fn same(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// What executes kernels here.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// assert_eq!(device.kind(), warpframe_device::DeviceKind::Sim);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn kind(&self) -> DeviceKind {
        self.0.kind
    }

    /// Which of two thresholds counts here: that of GPUs, or that of the simulator, where tests reach
    /// with few rows what a GPU does with many.
    pub fn of_kind<T>(&self, gpu: T, simulator: T) -> T {
        match self.0.kind {
            DeviceKind::Cuda(_) => gpu,
            DeviceKind::Sim => simulator,
        }
    }

    /// Rows from which on partitions pay, where `WARPFRAME_PARTITION_ROWS` says so.
    pub fn partition_rows(&self) -> Option<u64> {
        self.0.partition_rows
    }

    /// Name, architecture, size.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// let properties = device.properties();
    /// assert_eq!(properties.architecture, "sim");
    /// assert!(properties.memory > 0 && properties.multiprocessors > 0);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn properties(&self) -> &DeviceProperties {
        self.0.driver.properties()
    }

    /// Bytes in use, reserved, at peak, and the limit.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// let buffer = device.alloc_zeroed("example", 1000)?;
    /// let memory = device.memory();
    /// assert!(0 < memory.used && memory.used <= memory.peak && memory.peak <= memory.limit);
    /// drop(buffer);
    /// assert!(device.memory().used < memory.used);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn memory(&self) -> MemoryUse {
        self.0.pool.usage(&*self.0.driver)
    }

    /// The limit of device memory, in bytes. [`Device::memory`] also visits everything that is held.
    pub fn memory_limit(&self) -> u64 {
        self.0.pool.limit()
    }

    /// Sets the peak back to the present use.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// drop(device.alloc_zeroed("example", 1000)?);
    /// assert!(device.memory().peak > device.memory().used);
    /// device.reset_peak_memory();
    /// assert_eq!(device.memory().peak, device.memory().used);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn reset_peak_memory(&self) {
        self.0.pool.reset_peak();
    }

    /// Changes the memory limit; what is in use stays.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// device.set_memory_limit("64MiB".parse()?);
    /// assert_eq!(device.memory().limit, 64 << 20);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn set_memory_limit(&self, limit: MemoryLimit) {
        self.0.pool.set_limit(limit);
    }

    /// Gives memory the pool keeps for reuse back to the system.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// drop(device.alloc_zeroed("example", 1000)?);
    /// device.trim()?;
    /// assert_eq!(device.memory().reserved, device.memory().used);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn trim(&self) -> Result<()> {
        self.0.driver.trim()
    }

    /// Launches, synchronisations, copies and compilations since the device was opened.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions, ops::scan::exclusive_scan_u32};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// assert_eq!(device.counters().launches, 0);
    /// let counts = device.upload("counts", &[1, 0, 0, 0, 2, 0, 0, 0])?;
    /// exclusive_scan_u32(&device, &counts, 2)?;
    /// assert!(device.counters().launches > 0);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn counters(&self) -> Counters {
        let mut counters = self.0.counters.snapshot();
        self.0.pool.holders.add_counts(&mut counters);
        counters
    }

    /// What somebody should know of the folders that compiled kernels are kept in, a sentence each,
    /// since this was asked last: that one cannot be written, or that what lies there is damaged,
    /// or somebody else's. Queries answer all the same, after they have compiled what they need.
    /// Each sentence is told once.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// for note in device.take_cache_notes() {
    ///     println!("{note}"); // compiled kernels are not kept for later processes: /cache: Read-only file system
    /// }
    /// assert!(device.take_cache_notes().is_empty());
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn take_cache_notes(&self) -> Vec<String> {
        self.0.cache.take_notes()
    }

    /// Notes bytes of files that are to be read.
    pub fn count_wanted_of_files(&self, bytes: u64) {
        self.0.counters.wanted_of_files(bytes);
    }

    /// Notes bytes of files that are decoded.
    pub fn count_read_of_files(&self, bytes: u64) {
        self.0.counters.read_of_files(bytes);
    }

    /// Notes that a plan was given up here and goes to the CPU.
    pub fn count_fallback(&self) {
        self.0.counters.fell_back();
    }

    /// Bounds what lies on the host of what does not fit here.
    pub fn bound_spills(&self, bounds: SpillBounds) {
        self.0.spill.set(bounds);
    }

    /// Zeros in host memory, or in a file where that is full.
    ///
    /// # Errors
    /// `OutOfHostMemory`; [`ErrorKind::Io`].
    pub fn host_block(&self, len: usize) -> Result<HostBlock> {
        let block = self.0.spill.block(len)?;
        self.0.counters.in_spill_files(self.0.spill.in_files());
        Ok(block)
    }

    /// Notes that bytes of an intermediate result moved to the host.
    pub fn count_spilled(&self, bytes: u64) {
        self.0.counters.spilled(bytes);
    }

    /// Notes that bytes of an intermediate result came back from the host.
    pub fn count_restored(&self, bytes: u64) {
        self.0.counters.restored(bytes);
    }

    /// Notes that a part of a divided plan ran.
    pub fn count_part(&self) {
        self.0.counters.part_ran();
    }
    /// Notes that a plan was optimized, or that one was found that had been.
    pub fn count_plan(&self, found: bool) {
        self.0.counters.planned(found);
    }

    /// Launches of each kernel since the device was opened, by name.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions, ops::scan::exclusive_scan_u32};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// let counts = device.upload("counts", &[1, 0, 0, 0, 2, 0, 0, 0])?;
    /// exclusive_scan_u32(&device, &counts, 2)?;
    /// assert_eq!(device.launches().values().sum::<u64>(), device.counters().launches);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn launches(&self) -> std::collections::BTreeMap<String, u64> {
        self.0.counters.launches()
    }

    /// Waits for all submitted work and reports its errors.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// device.synchronize()?;
    /// assert_eq!(device.counters().synchronizations, 1);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn synchronize(&self) -> Result<()> {
        self.0.counters.synchronized();
        self.0.driver.synchronize()
    }

    /// Records a point of the stream, for timing.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// let (first, last) = (device.record()?, device.record()?);
    /// assert!(last.since(&first)? >= 0.0);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn record(&self) -> Result<Event> {
        Ok(Event { device: self.clone(), handle: self.0.driver.record()? })
    }

    /// Makes the allocation after `successes` further ones fail, once: for tests of error paths.
    #[doc(hidden)]
    pub fn fail_allocation_after(&self, successes: u64) {
        self.0.pool.fail_after(successes);
    }

    /// Makes a step of spilling after `successes` further ones fail, once, as a full disk would:
    /// each block of host memory or of a file is made, filled and read. For tests of error paths.
    #[doc(hidden)]
    pub fn fail_spill_after(&self, successes: u64) {
        self.0.spill.fail_after(successes);
    }

    /// Bytes of spilled rows in host memory and in files now: for tests that nothing of them stays.
    #[doc(hidden)]
    pub fn spilled_now(&self) -> (u64, u64) {
        self.0.spill.held()
    }

    /// Allocates at least one byte; the content is undefined.
    pub fn alloc(&self, operator: &'static str, bytes: usize) -> Result<Buffer> {
        Buffer::new(self, operator, bytes)
    }

    /// Allocates and sets every byte to zero.
    pub fn alloc_zeroed(&self, operator: &'static str, bytes: usize) -> Result<Buffer> {
        Buffer::zeroed(self, operator, bytes)
    }

    /// Allocates and sets every byte.
    pub fn alloc_filled(&self, operator: &'static str, bytes: usize, byte: u8) -> Result<Buffer> {
        if byte == 0 {
            return self.alloc_zeroed(operator, bytes);
        }
        let buffer = self.alloc(operator, bytes)?;
        buffer.fill(byte)?;
        Ok(buffer)
    }

    /// Allocates and uploads.
    pub fn upload(&self, operator: &'static str, bytes: &[u8]) -> Result<Buffer> {
        let buffer = self.alloc(operator, bytes.len())?;
        buffer.write(0, bytes)?;
        Ok(buffer)
    }

    /// Copies a range of one buffer to one of another, of this device or of one whose branch this
    /// is. Of one buffer, the ranges must not overlap.
    pub fn copy(
        &self,
        to: &Buffer,
        offset: usize,
        from: &Buffer,
        from_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let (to, from) = (to.slice(offset), from.slice(from_offset));
        assert!(
            to.len() >= bytes && from.len() >= bytes,
            "{bytes} bytes to {} from {}",
            to.len(),
            from.len()
        );
        // A buffer may be both, and what is foreign may lie in one allocation.
        let apart = to.address().abs_diff(from.address()) >= bytes as u64;
        assert!(apart, "{bytes} bytes are copied over themselves");
        // SAFETY: both ranges were checked, and do not overlap.
        unsafe { self.0.driver.copy(to.address(), from.address(), bytes) }
    }

    /// Has the compiler look at a source that a user wrote parts of.
    ///
    /// # Errors
    /// [`ErrorKind::Compile`] with what it says.
    pub fn check(&self, source: &KernelSource) -> Result<()> {
        self.0.driver.check(source)
    }

    /// Compiles (or finds compiled) `source` and returns its entry point `name`.
    pub fn kernel(&self, source: &KernelSource, name: &str) -> Result<Kernel> {
        let shared = &self.0;
        let cache::EntryPoint { function, uses, hold } = match &shared.rehearsal {
            Some(queue) => {
                queue.rehearsed(source)?;
                cache::EntryPoint {
                    function: driver::FunctionHandle(0),
                    uses: None,
                    hold: Default::default(),
                }
            }
            None => shared.cache.function(&*shared.driver, &shared.counters, source, name)?,
        };
        Ok(Kernel {
            function,
            name: name.into(),
            launches: self.0.counters.of_kernel(name),
            uses,
            _hold: hold,
        })
    }

    /// Blocks that fill the device once at this shape: multiprocessors × resident blocks.
    pub fn full_grid(&self, kernel: &Kernel, threads: u32, shared: u32) -> Result<u32> {
        let each = self.0.driver.resident_blocks(kernel.function, threads, shared)?;
        Ok((each * self.properties().multiprocessors).max(1))
    }

    /// Submits a kernel. A grid of zero blocks is nothing to do.
    ///
    /// # Safety
    /// `arguments` match the kernel's parameter structure field by field, and every address among
    /// them belongs to a live buffer as large as the kernel's documentation demands.
    pub unsafe fn launch(&self, kernel: &Kernel, grid: Grid, arguments: &[Argument]) -> Result<()> {
        if grid.blocks == 0 {
            return Ok(());
        }
        if grid.shared > self.properties().shared_per_block {
            return Err(ErrorKind::Compile {
                kernel: kernel.name.to_string(),
                log: format!("asks for {} bytes of shared memory", grid.shared),
            }
            .into());
        }
        let bytes = arguments.iter().map(|a| a.bytes).sum();
        self.0.counters.launched(&kernel.launches, bytes);
        if let (Some(uses), Some(improver)) = (&kernel.uses, &self.0.improver) {
            improver.launched(uses);
        }
        let words: Vec<u64> = arguments.iter().map(|a| a.word).collect();
        self.profiled(&kernel.name, bytes, || {
            // SAFETY: the caller's promise is the driver's demand.
            unsafe { self.0.driver.launch(kernel.function, &kernel.name, grid, &words) }
        })
    }
}
