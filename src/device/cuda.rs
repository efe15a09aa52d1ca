//! The CUDA driver, through cudarc's plain bindings, and NVRTC.
//!
//! One primary context, one stream of its own in it (and others beside it, a driver each), one
//! memory pool. Nothing waits but `synchronize`, `download` and `elapsed_ms` — and, where memory is
//! short, `alloc`, which lets freed memory arrive before it gives up.

mod calls;
mod lanes;
mod memory;
mod staging;
mod user;
mod zeros;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CString, c_int};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use cudarc::driver::sys;

use self::calls::{CallQueue, Failed, call, unavailable};
use self::lanes::Lanes;
use self::memory::StreamMemory;
use self::staging::Staging;
use super::KernelSource;
use super::cache;
use super::compilers::{beside, cancelled};
use super::driver::*;
use super::nvrtc::{Nvrtc, Urgency, wake_all};
use crate::error::{Error, ErrorKind, Result};
use crate::timeline::{Part, span};

/// Compute capability that the kernels are written for.
const OLDEST_CAPABILITY: (i32, i32) = (8, 0);

#[derive(Debug)]
pub(super) struct CudaDriver {
    ordinal: usize,
    properties: DeviceProperties,
    // Dropped in this order, after `drop` has waited: what the stream uses goes before it.
    lanes: Lanes,
    staging: Staging,
    memory: StreamMemory,
    loaded: Arc<LoadedCode>,
    queue: CallQueue,
}

/// What was loaded, which all streams of a device use.
#[derive(Debug)]
struct LoadedCode {
    /// `None` of those that were unloaded.
    modules: Mutex<Vec<Option<Module>>>,
    /// `None` of those whose modules were unloaded.
    functions: Mutex<Vec<Option<CudaFunction>>>,
    /// Blocks that run at once on a multiprocessor, by function (a driver's handle), threads and
    /// bytes of shared memory.
    resident: Mutex<HashMap<(usize, u32, u32), u32>>,
    context: PrimaryContext,
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        // SAFETY: the primary context outlives drivers. No work is under way: each stream's driver
        // waited for it and then gave this up; handles to modules live no longer than their driver.
        // Errors cannot be reported here.
        unsafe {
            let _ = call!(cuCtxSetCurrent(self.context.0));
            for module in lock(&self.modules).drain(..).flatten() {
                let _ = call!(cuModuleUnload(module.0));
            }
        }
    }
}

impl CudaDriver {
    /// Opens a device by ordinal.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`] where driver or GPU are missing or too old, or NVRTC is and
    /// no image is kept.
    pub(super) fn open(ordinal: usize) -> Result<Self> {
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
        let device = find(ordinal)?;
        let capability = capability(device)?;
        if capability < OLDEST_CAPABILITY {
            let ((major, minor), (least, _)) = (capability, OLDEST_CAPABILITY);
            let why = format!(
                "compute capability {major}.{minor}; {least}.0 (Ampere) or newer is needed"
            );
            return Err(unavailable(ordinal, why));
        }
        let properties = properties(device, capability)?;
        let architecture = &properties.architecture;
        // A machine that cannot compile is told so now where its first query will have to.
        if cache::matches_compiler()
            || !cache::holds_images(&cache::Folders::of_environment(), architecture)
        {
            compiler_for(ordinal, architecture)?;
        }
        let context = primary(device)?;
        // SAFETY: the context was just bound, and outlives the process's drivers.
        let queue = unsafe { CallQueue::new(context) }?;
        let memory = StreamMemory::new(device, properties.memory)?;
        let (modules, functions, resident) = Default::default();
        let loaded =
            Arc::new(LoadedCode { modules, functions, resident, context: PrimaryContext(context) });
        Ok(CudaDriver {
            ordinal,
            properties,
            lanes: Lanes::default(),
            staging: Staging::new(),
            memory,
            loaded,
            queue,
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

    fn find_function(&self, handle: FunctionHandle) -> Result<CudaFunction> {
        lock(&self.loaded.functions)[handle.0 as usize].clone().ok_or_else(unloaded)
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

fn unloaded() -> Error {
    Error::internal("a module is used that was unloaded")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// The device of this ordinal, among those that `CUDA_VISIBLE_DEVICES` leaves.
fn find(ordinal: usize) -> Result<sys::CUdevice> {
    let mut count = 0;
    // SAFETY: writes the count only; the driver is initialised, here and in the functions below.
    unsafe { call!(cuDeviceGetCount(&mut count))? };
    if ordinal >= count.max(0) as usize {
        return Err(unavailable(
            ordinal,
            format!("the NVIDIA driver finds {count} GPUs, numbered from 0"),
        ));
    }
    let mut device = 0;
    // SAFETY: writes the handle only.
    unsafe { call!(cuDeviceGet(&mut device, ordinal as c_int))? };
    Ok(device)
}

fn attribute(device: sys::CUdevice, attribute: sys::CUdevice_attribute) -> Result<i32> {
    let mut value = 0;
    // SAFETY: writes the value only.
    unsafe { call!(cuDeviceGetAttribute(&mut value, attribute, device))? };
    Ok(value)
}

fn capability(device: sys::CUdevice) -> Result<(i32, i32)> {
    use sys::CUdevice_attribute::*;
    let major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    Ok((major, attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?))
}

fn properties(device: sys::CUdevice, (major, minor): (i32, i32)) -> Result<DeviceProperties> {
    use sys::CUdevice_attribute::*;
    let mut name = [0u8; 256];
    let mut memory = 0;
    // SAFETY: writes at most as many bytes of the name as are told, and the size.
    unsafe {
        call!(cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as c_int, device))?;
        call!(cuDeviceTotalMem_v2(&mut memory, device))?;
    }
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(DeviceProperties {
        name: String::from_utf8_lossy(name).into_owned(),
        architecture: format!("sm_{major}{minor}"),
        multiprocessors: attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
        shared_per_block: attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?
            as u32,
        memory: memory as u64,
    })
}

/// The compiler, loaded where it is not: it must know the architecture, and be no newer than the
/// driver.
fn compiler_for(ordinal: usize, architecture: &str) -> Result<&'static Nvrtc> {
    let nvrtc = Nvrtc::get()?;
    nvrtc.supports(architecture)?;
    check_versions(ordinal, nvrtc)?;
    Ok(nvrtc)
}

/// An image made by a newer major version of NVRTC than the driver's may not load.
fn check_versions(ordinal: usize, nvrtc: &Nvrtc) -> Result<()> {
    let mut driver = 0;
    // SAFETY: writes the number only.
    unsafe { call!(cuDriverGetVersion(&mut driver))? };
    let (major, minor) = nvrtc.version();
    if major <= driver / 1000 {
        return Ok(());
    }
    let supported = driver / 1000;
    let why = format!(
        "the NVIDIA driver supports CUDA {supported}.{}, the NVRTC found is {major}.{minor}: install a newer driver, or \
         NVRTC {supported} (`pip install nvidia-cuda-nvrtc-cu{supported}`)",
        driver % 1000 / 10
    );
    Err(unavailable(ordinal, why))
}

/// The device's primary context, bound to the calling thread.
///
/// Retained once for the life of the process, as by the CUDA runtime: making another takes a fifth
/// of a second, and a release that ends the context while other threads still have it bound is a
/// path that few programs take.
fn primary(device: sys::CUdevice) -> Result<sys::CUcontext> {
    static RETAINED: Mutex<BTreeMap<sys::CUdevice, PrimaryContext>> = Mutex::new(BTreeMap::new());
    let mut retained = lock(&RETAINED);
    let context = match retained.get(&device) {
        Some(context) => context.0,
        None => {
            let _span = span(Part::Context, || format!("device {device}"));
            let mut context = std::ptr::null_mut();
            // SAFETY: a device of this driver; writes the handle only.
            unsafe { call!(cuDevicePrimaryCtxRetain(&mut context, device))? };
            retained.insert(device, PrimaryContext(context));
            context
        }
    };
    // SAFETY: retained, and never released.
    unsafe { call!(cuCtxSetCurrent(context))? };
    Ok(context)
}

#[derive(Debug)]
struct PrimaryContext(sys::CUcontext);

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for PrimaryContext {}
// SAFETY: as above.
unsafe impl Sync for PrimaryContext {}

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

#[derive(Debug)]
struct Module(sys::CUmodule);

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for Module {}

#[derive(Debug, Clone)]
struct CudaFunction {
    function: sys::CUfunction,
    module: ModuleHandle,
    name: Arc<str>,
    /// Size of its parameter structure, where the driver tells.
    parameters: Option<usize>,
}

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for CudaFunction {}

impl Driver for CudaDriver {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
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
        // What is compiled quickly a query waits for.
        let urgency = if tier == nvrtc.first_tier() { Urgency::Query } else { Urgency::Later };
        let cancelled = cancelled().unwrap_or_default();
        let stop = cancelled.clone();
        let image =
            beside(&stop, move || nvrtc.compile(&of, &architecture, tier, urgency, &cancelled))??;
        std::fs::write(out, image.bytes).map_err(|e| Error::io(out, e))
    }

    fn load(&self, image: &StoredImage) -> Result<ModuleHandle> {
        self.queue.bind()?;
        let mut module = std::ptr::null_mut();
        let bytes = image.bytes.as_ptr().cast();
        // SAFETY: a whole image, which says its own length; the driver copies it.
        self.queue.check(unsafe { call!(cuModuleLoadData(&mut module, bytes)) })?;
        let mut modules = lock(&self.loaded.modules);
        modules.push(Some(Module(module)));
        Ok(ModuleHandle(modules.len() as u64 - 1))
    }

    fn unload(&self, modules: &[ModuleHandle]) -> Result<()> {
        self.queue.bind()?;
        // SAFETY: takes nothing; waits for all streams of the bound context.
        self.queue.check(unsafe { call!(cuCtxSynchronize()) })?;
        let gone = |function: &CudaFunction| modules.contains(&function.module);
        // A later function may get the address of one that is gone, and have other numbers.
        let mut addresses = HashSet::new();
        for function in lock(&self.loaded.functions).iter_mut() {
            if let Some(taken) = function.take_if(|known| gone(known)) {
                addresses.insert(taken.function as usize);
            }
        }
        lock(&self.loaded.resident).retain(|(function, ..), _| !addresses.contains(function));
        for handle in modules {
            let Some(module) = lock(&self.loaded.modules)[handle.0 as usize].take() else {
                continue;
            };
            // SAFETY: a live module, taken by this call alone. By the caller's word nobody launches
            // its functions; what was launched has ended.
            self.queue.check(unsafe { call!(cuModuleUnload(module.0)) })?;
        }
        Ok(())
    }

    fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        use sys::CUfunction_attribute::*;
        let missing =
            |log: String| Error::from(ErrorKind::Compile { kernel: name.to_string(), log });
        let symbol =
            CString::new(name).map_err(|_| missing("its name holds a zero byte".into()))?;
        self.queue.bind()?;
        let handle = module;
        let module = lock(&self.loaded.modules)[handle.0 as usize].as_ref().ok_or_else(unloaded)?.0;
        let mut function = std::ptr::null_mut();
        // SAFETY: a live module and a terminated name; writes the handle only.
        match unsafe { call!(cuModuleGetFunction(&mut function, module, symbol.as_ptr())) } {
            Err(failed) if failed.code == sys::CUresult::CUDA_ERROR_NOT_FOUND => {
                return Err(missing("its module has no entry point of this name".into()));
            }
            other => self.queue.check(other)?,
        }
        let (mut fixed, size) = (0, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
        // SAFETY: a live function; writes the number only.
        self.queue.check(unsafe { call!(cuFuncGetAttribute(&mut fixed, size, function)) })?;
        // More than 48 KiB of dynamic shared memory must be asked for; the attribute is a
        // permission, not a use.
        let most = self.properties.shared_per_block as c_int - fixed;
        let dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: a live function.
        self.queue.check(unsafe { call!(cuFuncSetAttribute(function, dynamic, most)) })?;
        let (mut offset, mut size) = (0, 0);
        // SAFETY: a live function; writes both numbers. A function without parameters refuses the
        // index.
        let told = unsafe { call!(cuFuncGetParamInfo(function, 0, &mut offset, &mut size)) };
        let parameters = told.is_ok().then_some(size);
        let mut functions = lock(&self.loaded.functions);
        functions.push(Some(CudaFunction {
            function,
            module: handle,
            name: name.into(),
            parameters,
        }));
        Ok(FunctionHandle(functions.len() as u64 - 1))
    }

    fn replace(&self, function: FunctionHandle, by: FunctionHandle) {
        let mut functions = lock(&self.loaded.functions);
        functions[function.0 as usize] = functions[by.0 as usize].clone();
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        kernel: &str,
        grid: Grid,
        arguments: &[u64],
    ) -> Result<()> {
        let CudaFunction { function, name, parameters, .. } = self.find_function(function)?;
        let given = size_of_val(arguments);
        if let Some(size) = parameters.filter(|&size| size != given) {
            let log = format!("takes {size} bytes of parameters, was given {given}");
            return Err(ErrorKind::Compile { kernel: kernel.to_string(), log }.into());
        }
        self.queue.bind()?;
        self.queue.launched(&name);
        // The one parameter is a structure of words: the argument list itself.
        let mut parameter = arguments.as_ptr().cast_mut().cast();
        let Grid { blocks, threads, shared } = grid;
        // SAFETY: the driver reads the structure, whose size was compared above, before it returns;
        // what its addresses lead to is the caller's promise.
        let launched = unsafe {
            let (stream, none) = (self.queue.stream(), std::ptr::null_mut());
            call!(cuLaunchKernel(
                function,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                shared,
                stream,
                &mut parameter,
                none
            ))
        };
        self.queue.check(launched).map_err(|error| match error.kind() {
            ErrorKind::Cuda { call, code } => {
                let code = format!(
                    "{code} ({kernel}, {blocks} blocks of {threads} threads, {shared} bytes shared)"
                );
                ErrorKind::Cuda { call, code }.into()
            }
            _ => error,
        })
    }

    unsafe fn launch_user(
        &self,
        function: FunctionHandle,
        kernel: &str,
        grid: &UserGrid,
        arguments: &[UserArgument],
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            user::launch(&self.queue, &self.find_function(function)?, kernel, grid, arguments)
        }
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
        let function = self.find_function(function)?.function;
        let key = (function as usize, threads, shared);
        if let Some(&blocks) = lock(&self.loaded.resident).get(&key) {
            return Ok(blocks);
        }
        self.queue.bind()?;
        let mut blocks = 0;
        let (threads, shared) = (threads as c_int, shared as usize);
        // SAFETY: a live function; writes the number only.
        self.queue.check(unsafe {
            call!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                function,
                threads,
                shared
            ))
        })?;
        let blocks = blocks.max(0) as u32;
        lock(&self.loaded.resident).insert(key, blocks);
        Ok(blocks)
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
