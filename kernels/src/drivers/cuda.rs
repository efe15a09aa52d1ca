//! The CUDA driver, through cudarc's plain bindings, and NVRTC.
//!
//! One primary context, one stream of its own in it (and others beside it, a driver each), one
//! memory pool. Nothing waits but `synchronize`, `download` and `elapsed_ms` — and, where memory is
//! short, `alloc`, which lets freed memory arrive before it gives up.

mod calls;
mod code;
mod gpu;
mod lanes;
mod memory;
mod staging;
mod user;
mod zeros;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use cudarc::driver::sys;
use parking_lot::Mutex;

use self::calls::{CallQueue, Failed, call};
use self::code::LoadedCode;
use self::gpu::compiler_for;
use self::lanes::Lanes;
use self::memory::StreamMemory;
use self::staging::Staging;
use crate::KernelSource;
use crate::compile::cache;
use crate::compile::compilers::{beside, cancelled};
use crate::compile::nvrtc::{Nvrtc, Urgency, wake_all};
use crate::drivers::driver::*;
use crate::error::{Error, Result};

#[derive(Debug)]
pub(crate) struct CudaDriver {
    ordinal: usize,
    properties: DeviceProperties,
    // Dropped in this order, after `drop` has waited: what the stream uses goes before it.
    lanes: Lanes,
    staging: Staging,
    memory: StreamMemory,
    loaded: Arc<LoadedCode>,
    queue: CallQueue,
    /// Whether GPUs of these ordinals may copy from the memory of this one.
    admitted: Mutex<HashMap<usize, bool>>,
}

impl CudaDriver {
    /// How many devices there are.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`](crate::ErrorKind::DeviceUnavailable) without a driver.
    pub(crate) fn count() -> Result<usize> {
        calls::probe(0)?;
        gpu::count()
    }

    /// Opens a device by ordinal.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`](crate::ErrorKind::DeviceUnavailable) where driver or GPU are
    /// missing or too old, or NVRTC is and no image is kept.
    pub(crate) fn open(ordinal: usize) -> Result<Self> {
        // The compiler is loaded beside the driver and its context, which take as long, where this
        // process is expected to compile; otherwise when a kernel is not found.
        let compiles =
            calls::is_present() && cache::expects_to_compile(&cache::Folders::of_environment());
        std::thread::scope(|scope| {
            compiles.then(|| scope.spawn(wake_all));
            Self::open_here(ordinal)
        })
    }

    fn open_here(ordinal: usize) -> Result<Self> {
        calls::probe(ordinal)?;
        let device = gpu::find(ordinal)?;
        let properties = gpu::properties(ordinal, device)?;
        let architecture = &properties.architecture;
        // A machine that cannot compile is told so now where its first query will have to.
        if cache::matches_compiler()
            || !cache::holds_images(&cache::Folders::of_environment(), architecture)
        {
            compiler_for(ordinal, architecture)?;
        }
        let context = gpu::primary(device)?;
        // SAFETY: the context was just bound, and outlives the process's drivers.
        let queue = unsafe { CallQueue::new(context) }?;
        let memory = StreamMemory::new(device, properties.memory)?;
        let loaded = Arc::new(LoadedCode::new(context));
        Ok(CudaDriver {
            ordinal,
            properties,
            lanes: Lanes::default(),
            staging: Staging::new(),
            memory,
            loaded,
            queue,
            admitted: Mutex::default(),
        })
    }

    fn alloc_by(
        &self,
        ask: impl Fn(sys::CUstream) -> Result<Option<u64>, Failed>,
    ) -> Result<Option<u64>> {
        self.queue.bind()?;
        let stream = self.queue.stream();
        if let Some(address) = self.queue.check(ask(stream))? {
            return Ok(Some(address));
        }
        // What was freed comes back to the pool as the stream passes it, in pieces of the sizes it
        // was taken in: wait for it, return it to the device, and ask once more.
        self.trim()?;
        self.queue.check(ask(stream))
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        // Errors cannot be reported here.
        let _ = self.queue.bind();
        let _ = self.queue.wait();
        self.lanes.clear();
        let _ = self.memory.release(self.queue.stream());
        self.staging.clear();
    }
}

/// An event without a time that nobody knows yet.
struct CudaEvent(sys::CUevent);

impl CudaEvent {
    /// The queue's context is bound.
    fn new(queue: &CallQueue) -> Result<CudaEvent> {
        let mut event = std::ptr::null_mut();
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: writes the handle only.
        queue.check(unsafe { call!(cuEventCreate(&mut event, flags)) })?;
        Ok(CudaEvent(event))
    }

    /// Its handle, whose owner releases it.
    fn handed_over(self) -> EventHandle {
        EventHandle(std::mem::ManuallyDrop::new(self).0 as u64)
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // SAFETY: a live event that nobody else knows.
        let _ = unsafe { call!(cuEventDestroy_v2(self.0)) };
    }
}

impl Driver for CudaDriver {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn is_lost(&self) -> bool {
        self.queue.is_lost()
    }

    fn admit(&self, ordinal: usize) -> Result<bool> {
        let mut admitted = self.admitted.lock();
        if let Some(known) = admitted.get(&ordinal) {
            return Ok(*known);
        }
        self.queue.bind()?;
        // Without a path between the devices the call fails, and rows go through the host.
        let may = ordinal == self.ordinal || self.memory.admit(gpu::find(ordinal)?).is_ok();
        admitted.insert(ordinal, may);
        Ok(may)
    }

    fn beside(&self) -> Result<Option<Arc<dyn Driver>>> {
        Ok(Some(Arc::new(CudaDriver {
            ordinal: self.ordinal,
            properties: self.properties.clone(),
            lanes: Lanes::default(),
            staging: Staging::new(),
            memory: self.memory.beside(),
            loaded: self.loaded.clone(),
            queue: self.queue.beside()?,
            admitted: Mutex::default(),
        })))
    }

    fn free_memory(&self) -> Result<u64> {
        self.queue.bind()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes both numbers only.
        self.queue.check(unsafe { call!(cuMemGetInfo_v2(&mut free, &mut total)) })?;
        Ok(free as u64 + self.queue.check(self.memory.idle())?)
    }

    fn reserved_memory(&self) -> Option<u64> {
        self.queue.bind().ok()?;
        self.memory.reserved().ok()
    }

    fn alloc(&self, bytes: usize) -> Result<Option<u64>> {
        self.alloc_by(|stream| self.memory.alloc(stream, bytes))
    }

    fn alloc_zeroed(&self, bytes: usize) -> Result<Option<u64>> {
        self.alloc_by(|stream| self.memory.alloc_zeroed(stream, bytes))
    }

    fn alloc_kept(&self, bytes: usize, zeroed: bool) -> Option<u64> {
        self.memory.take(bytes, zeroed)
    }

    unsafe fn keep(&self, address: u64, bytes: usize) -> bool {
        self.memory.put(address, bytes)
    }

    unsafe fn free(&self, address: u64, bytes: usize) {
        // An error here is of earlier work: the next call that can report it does.
        if self.queue.bind().is_ok() {
            // SAFETY: the caller's promise: an allocation of this memory, not used by later work of
            // its one stream.
            let _ = unsafe { self.memory.free(self.queue.stream(), address, bytes) };
        }
    }

    fn trim(&self) -> Result<()> {
        self.queue.bind()?;
        self.queue.check(self.memory.release(self.queue.stream()))?;
        // Freed memory is the pool's only when the stream has passed its release.
        self.queue.wait()?;
        self.queue.check(self.memory.trim())
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        self.queue.bind()?;
        // SAFETY: the caller's promise; the context is bound.
        unsafe { self.staging.upload(&self.queue, to, from) }
    }

    unsafe fn feed(
        &self,
        to: u64,
        len: usize,
        after: EventHandle,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<EventHandle> {
        self.queue.bind()?;
        let copied = CudaEvent::new(&self.queue)?;
        // SAFETY: the caller's promise; both events are live.
        unsafe {
            self.lanes.feed(&self.queue, (to, len), after.0 as sys::CUevent, copied.0, fill)
        }?;
        Ok(copied.handed_over())
    }

    fn wait_for(&self, event: EventHandle) -> Result<()> {
        self.queue.bind()?;
        // SAFETY: handles exist only while their event is live.
        self.queue.check(unsafe {
            call!(cuStreamWaitEvent(self.queue.stream(), event.0 as sys::CUevent, 0))
        })
    }

    fn settle(&self, event: EventHandle) -> Result<()> {
        self.queue.bind()?;
        // SAFETY: as above.
        self.queue.check(unsafe { call!(cuEventSynchronize(event.0 as sys::CUevent)) })
    }

    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<()> {
        self.queue.bind()?;
        // SAFETY: the caller's promise; the context is bound.
        unsafe { self.staging.download(&self.queue, to, from) }
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        self.queue.bind()?;
        // SAFETY: the caller's promise.
        self.queue
            .check(unsafe { call!(cuMemcpyDtoDAsync_v2(to, from, bytes, self.queue.stream())) })
    }

    unsafe fn fill(&self, to: u64, byte: u8, bytes: usize) -> Result<()> {
        self.queue.bind()?;
        // SAFETY: the caller's promise.
        self.queue.check(unsafe { call!(cuMemsetD8Async(to, byte, bytes, self.queue.stream())) })
    }

    fn image_id(&self) -> String {
        Nvrtc::image_id(&self.properties.architecture)
    }

    fn compiler(&self) -> Result<String> {
        Ok(compiler_for(self.ordinal, &self.properties.architecture)?.name())
    }

    fn takes_quick(&self) -> bool {
        Nvrtc::takes_quick()
    }

    fn first_tier(&self) -> Result<Tier> {
        Ok(compiler_for(self.ordinal, &self.properties.architecture)?.first_tier())
    }

    fn has_compiler(&self) -> bool {
        Nvrtc::is_awake()
    }

    fn load_compiler(&self) -> Result<()> {
        let architecture = &self.properties.architecture;
        compiler_for(self.ordinal, architecture)?.wake();
        Ok(())
    }

    fn compile(&self, source: &KernelSource, tier: Tier, out: &Path) -> Result<()> {
        let (architecture, of) = (self.properties.architecture.clone(), source.clone());
        let nvrtc = compiler_for(self.ordinal, &architecture)?;
        // Here, where nobody goes on without it.
        nvrtc.wake();
        // A quick compile means that a query is waiting.
        let urgency = if tier == nvrtc.first_tier() { Urgency::Query } else { Urgency::Later };
        let cancelled = cancelled().unwrap_or_default();
        let stop = cancelled.clone();
        let image =
            beside(&stop, move || nvrtc.compile(&of, &architecture, tier, urgency, &cancelled))??;
        std::fs::write(out, image.bytes).map_err(|e| Error::io(out, e))
    }

    fn load(&self, image: &StoredImage) -> Result<ModuleHandle> {
        self.loaded.load(&self.queue, image)
    }

    fn unload(&self, modules: &[ModuleHandle]) -> Result<()> {
        self.loaded.unload(&self.queue, modules)
    }

    fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        self.loaded.function(&self.queue, module, name, self.properties.shared_per_block)
    }

    fn replace(&self, function: FunctionHandle, by: FunctionHandle) {
        self.loaded.replace(function, by);
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        kernel: &str,
        grid: Grid,
        arguments: &[u64],
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.loaded.find(function)?.launch(&self.queue, kernel, grid, arguments) }
    }

    unsafe fn launch_user(
        &self,
        function: FunctionHandle,
        kernel: &str,
        grid: &UserGrid,
        arguments: &[UserArgument],
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { user::launch(&self.queue, &self.loaded.find(function)?, kernel, grid, arguments) }
    }

    fn stream(&self) -> u64 {
        self.queue.stream() as u64
    }

    unsafe fn wait_for_stream(&self, stream: u64) -> Result<()> {
        // SAFETY: the caller's promise; the queue's stream lives as long as the queue.
        unsafe { user::order(&self.queue, stream as sys::CUstream, self.queue.stream()) }
    }

    unsafe fn make_stream_wait(&self, stream: u64) -> Result<()> {
        // SAFETY: as above.
        unsafe { user::order(&self.queue, self.queue.stream(), stream as sys::CUstream) }
    }

    unsafe fn wait_for_event(&self, event: u64) -> Result<()> {
        if event == 0 { Ok(()) } else { self.wait_for(EventHandle(event)) }
    }

    fn settle_all(&self) -> Result<()> {
        self.queue.bind()?;
        // SAFETY: takes nothing; waits for all streams of the bound context.
        self.queue.check(unsafe { call!(cuCtxSynchronize()) })
    }

    fn resident_blocks(&self, function: FunctionHandle, threads: u32, shared: u32) -> Result<u32> {
        self.loaded.resident_blocks(&self.queue, function, threads, shared)
    }

    fn synchronize(&self) -> Result<()> {
        self.queue.bind()?;
        self.queue.wait()
    }

    fn record(&self) -> Result<EventHandle> {
        self.queue.bind()?;
        let mut event = std::ptr::null_mut();
        // SAFETY: writes the handle only.
        self.queue.check(unsafe {
            call!(cuEventCreate(&mut event, sys::CUevent_flags::CU_EVENT_DEFAULT as u32))
        })?;
        let handle = EventHandle(event as u64);
        // SAFETY: the event was just made; the stream is live.
        let recorded =
            self.queue.check(unsafe { call!(cuEventRecord(event, self.queue.stream())) });
        if recorded.is_err() {
            self.release(handle);
        }
        recorded.map(|()| handle)
    }

    fn elapsed_ms(&self, from: EventHandle, to: EventHandle) -> Result<f32> {
        self.queue.bind()?;
        let (from, to) = (from.0 as sys::CUevent, to.0 as sys::CUevent);
        let mut milliseconds = 0.0;
        // SAFETY: handles exist only while their event is live; writes the number only. The stream
        // is in order, but the caller may have named the points in either order, so both are waited
        // for.
        self.queue.check(unsafe {
            call!(cuEventSynchronize(from))
                .and_then(|()| call!(cuEventSynchronize(to)))
                .and_then(|()| call!(cuEventElapsedTime_v2(&mut milliseconds, from, to)))
        })?;
        Ok(milliseconds)
    }

    fn release(&self, event: EventHandle) {
        if self.queue.bind().is_ok() {
            // SAFETY: the handle's owner gives it up. An error is of earlier work and comes back at
            // the next call.
            let _ = unsafe { call!(cuEventDestroy_v2(event.0 as sys::CUevent)) };
        }
    }
}

#[cfg(test)]
mod tests;
