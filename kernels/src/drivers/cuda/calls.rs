//! Calls of the CUDA driver: finding it, binding its context, and turning its codes into errors.
//!
//! cudarc loads the driver at the first call and panics where the library or a function is missing,
//! so [`probe`] looks for everything that the parent module calls before the first call is made.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use cudarc::driver::sys::{self, CUresult};
use parking_lot::Mutex;

use crate::error::{Error, ErrorKind, Result};
use crate::timeline::{Part, span};

/// Oldest driver that has every function called here.
const OLDEST: &str = "570 (CUDA 12.8)";

/// Every driver function that the module calls.
const FUNCTIONS: &[&str] = &[
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFuncGetAttribute",
    "cuFuncGetParamInfo",
    "cuFuncSetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAllocFromPoolAsync",
    "cuMemFreeAsync",
    "cuMemFreeHost",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolGetAttribute",
    "cuMemPoolSetAccess",
    "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// `call!(cuFoo(a, b))` calls the driver and gives a `Result` that names the function. Needs
/// `unsafe` around it.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {
        $crate::drivers::cuda::calls::check(stringify!($name), cudarc::driver::sys::$name($($argument),*))
    };
}
pub(super) use call;

/// A failed call: the function's name and its code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failed {
    pub(super) call: &'static str,
    pub(super) code: CUresult,
}

pub(super) fn check(call: &'static str, code: CUresult) -> Result<(), Failed> {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(Failed { call, code }) }
}

impl Failed {
    /// Whether the context is lost: every later call fails with the same code.
    fn is_sticky(self) -> bool {
        use CUresult::*;
        matches!(
            self.code,
            CUDA_ERROR_ILLEGAL_ADDRESS
                | CUDA_ERROR_LAUNCH_TIMEOUT
                | CUDA_ERROR_ASSERT
                | CUDA_ERROR_HARDWARE_STACK_ERROR
                | CUDA_ERROR_ILLEGAL_INSTRUCTION
                | CUDA_ERROR_MISALIGNED_ADDRESS
                | CUDA_ERROR_INVALID_ADDRESS_SPACE
                | CUDA_ERROR_INVALID_PC
                | CUDA_ERROR_LAUNCH_FAILED
                | CUDA_ERROR_ECC_UNCORRECTABLE
                | CUDA_ERROR_NVLINK_UNCORRECTABLE
        )
    }

    fn describe(self) -> String {
        let (mut name, mut text) = (std::ptr::null(), std::ptr::null());
        // SAFETY: a call failed, so the driver is loaded; both set the pointer to a static string
        // or to null.
        let (name, text) = unsafe {
            let _ = sys::cuGetErrorName(self.code, &mut name);
            let _ = sys::cuGetErrorString(self.code, &mut text);
            let read = |p: *const std::ffi::c_char| {
                (!p.is_null()).then(|| CStr::from_ptr(p).to_string_lossy().into_owned())
            };
            (read(name), read(text))
        };
        match (name, text) {
            (Some(name), Some(text)) => format!("{name}: {text}"),
            _ => format!("code {}", self.code as u32),
        }
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        ErrorKind::Cuda { call: failed.call, code: failed.describe() }.into()
    }
}

pub(super) fn unavailable(ordinal: usize, why: impl Into<String>) -> Error {
    ErrorKind::DeviceUnavailable { device: format!("cuda:{ordinal}"), why: why.into() }.into()
}

/// Whether there is a driver.
pub(super) fn is_present() -> bool {
    // SAFETY: loads the driver's library, whose initialisers have no preconditions.
    unsafe { sys::is_culib_present() }
}

/// Finds the driver and checks that it has every function called here.
///
/// # Errors
/// [`ErrorKind::DeviceUnavailable`] that says what to install. After `Ok`, no call of this module
/// panics.
pub(super) fn probe(ordinal: usize) -> Result<()> {
    let _span = span(Part::Context, || "driver".into());
    if !is_present() {
        let why = format!("no NVIDIA driver (libcuda.so.1): install driver {OLDEST} or newer");
        return Err(unavailable(ordinal, why));
    }
    // SAFETY: present, so it loads; the symbol is only looked up, never called as this type.
    let has =
        |name: &str| unsafe { sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()).is_ok() };
    if let Some(missing) = FUNCTIONS.iter().find(|name| !has(name)) {
        let why = format!(
            "the NVIDIA driver is too old: it lacks {missing}; install driver {OLDEST} or newer"
        );
        return Err(unavailable(ordinal, why));
    }
    // SAFETY: found above; takes no pointers.
    match unsafe { call!(cuInit(0)) } {
        Ok(()) => Ok(()),
        Err(failed) if failed.code == CUresult::CUDA_ERROR_NO_DEVICE => Err(unavailable(
            ordinal,
            "the NVIDIA driver finds no GPU (is CUDA_VISIBLE_DEVICES empty?)",
        )),
        Err(failed) => {
            let why = format!(
                "the NVIDIA driver does not start: {}; is its kernel module loaded?",
                failed.describe()
            );
            Err(unavailable(ordinal, why))
        }
    }
}

/// A context and its one stream. Whatever fails here is reported with the kernels that may have
/// caused it.
#[derive(Debug)]
pub(super) struct CallQueue {
    context: sys::CUcontext,
    stream: sys::CUstream,
    launched: Mutex<Launched>,
    /// Whether the context is lost, which all queues of it share.
    lost: Arc<AtomicBool>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for CallQueue {}
// SAFETY: as above; the driver locks its own state.
unsafe impl Sync for CallQueue {}

/// Kernels launched since the host last waited: the suspects of a fault.
#[derive(Debug, Default)]
struct Launched {
    latest: VecDeque<Arc<str>>,
    /// All ever launched, and those of them that were waited for.
    total: u64,
    done: u64,
}

/// Most suspects that are remembered.
const SUSPECTS: usize = 32;

impl CallQueue {
    /// # Safety
    /// The context is live and bound to this thread; it outlives the queue.
    pub(super) unsafe fn new(context: sys::CUcontext) -> Result<Self> {
        let mut stream = std::ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a context is bound, by the caller's promise.
        unsafe { call!(cuStreamCreate(&mut stream, flags))? };
        Ok(CallQueue { context, stream, launched: Mutex::default(), lost: Arc::default() })
    }

    /// Another stream of the context.
    pub(super) fn beside(&self) -> Result<Self> {
        self.bind()?;
        // SAFETY: the context was just bound, and lives as long as any queue.
        let mut beside = unsafe { CallQueue::new(self.context) }?;
        beside.lost = self.lost.clone();
        Ok(beside)
    }

    /// Whether a call failed so that every later one does.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Relaxed)
    }

    pub(super) fn stream(&self) -> sys::CUstream {
        self.stream
    }

    /// Makes the context the calling thread's: calls come from any thread.
    pub(super) fn bind(&self) -> Result<()> {
        // SAFETY: the context lives as long as the queue.
        unsafe { self.check(call!(cuCtxSetCurrent(self.context))) }
    }

    pub(super) fn launched(&self, kernel: &Arc<str>) {
        self.suspects().add(kernel.clone());
    }

    /// Waits for all submitted work.
    pub(super) fn wait(&self) -> Result<()> {
        // Other threads may launch meanwhile: theirs stay suspect.
        let before = self.suspects().total;
        // SAFETY: the stream lives as long as the queue.
        self.check(unsafe { call!(cuStreamSynchronize(self.stream)) })?;
        self.suspects().clear(before);
        Ok(())
    }

    /// Words a failure. One that lost the context names the kernels launched since the host last
    /// waited.
    pub(super) fn check<T>(&self, result: Result<T, Failed>) -> Result<T> {
        result.map_err(|failed| {
            let mut code = failed.describe();
            if failed.is_sticky() {
                self.lost.store(true, Relaxed);
                code.push_str(&self.suspects().describe());
            }
            ErrorKind::Cuda { call: failed.call, code }.into()
        })
    }

    fn suspects(&self) -> parking_lot::MutexGuard<'_, Launched> {
        self.launched.lock()
    }
}

impl Launched {
    fn add(&mut self, kernel: Arc<str>) {
        self.total += 1;
        if self.latest.len() == SUSPECTS {
            self.latest.pop_front();
        }
        self.latest.push_back(kernel);
    }

    /// The first `done` launches of all are above suspicion.
    fn clear(&mut self, done: u64) {
        self.done = self.done.max(done);
        while self.latest.len() as u64 > self.total - self.done {
            self.latest.pop_front();
        }
    }

    fn describe(&self) -> String {
        let mut text = String::from(
            "; the device is lost to this process; kernels launched since the last wait: ",
        );
        if self.total == self.done {
            text.push_str("none");
        }
        let forgotten = self.total - self.done - self.latest.len() as u64;
        if forgotten > 0 {
            text.push_str(&format!("{forgotten} earlier, "));
        }
        text.push_str(&self.latest.iter().map(|name| &**name).collect::<Vec<_>>().join(", "));
        text
    }
}

impl Drop for CallQueue {
    fn drop(&mut self) {
        // SAFETY: nobody uses the stream after its owner; the context is still alive.
        unsafe {
            let _ = call!(cuCtxSetCurrent(self.context));
            let _ = call!(cuStreamSynchronize(self.stream));
            let _ = call!(cuStreamDestroy_v2(self.stream));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_suspects_are_named_and_the_earlier_counted() {
        let mut launched = Launched::default();
        let said = |launched: &Launched| {
            launched.describe().split("wait: ").nth(1).map(String::from).unwrap()
        };
        assert_eq!(said(&launched), "none");
        launched.add("scan_i64".into());
        launched.add("sort_pass_u32".into());
        assert_eq!(said(&launched), "scan_i64, sort_pass_u32");
        launched.clear(1);
        assert_eq!(said(&launched), "sort_pass_u32");
        launched.clear(2);
        assert_eq!(said(&launched), "none");
        for _ in 0..SUSPECTS + 3 {
            launched.add("k".into());
        }
        assert!(said(&launched).starts_with("3 earlier, k, k"), "{}", said(&launched));
        launched.clear(4);
        assert!(said(&launched).starts_with("1 earlier, k, k"), "{}", said(&launched));
        launched.clear(2 + SUSPECTS as u64);
        assert_eq!(said(&launched), "k, k, k");
    }

    #[test]
    fn every_called_function_is_probed() {
        let sources = [
            include_str!("../cuda.rs"),
            include_str!("calls.rs"),
            include_str!("code.rs"),
            include_str!("gpu.rs"),
            include_str!("lanes.rs"),
            include_str!("memory.rs"),
            include_str!("staging.rs"),
            include_str!("user.rs"),
        ];
        let mut called = 0;
        for source in sources {
            let source = source.split("#[cfg(test)]").next().expect("a first part");
            for (at, _) in source.match_indices("call!(cu") {
                let name = source[at + "call!(".len()..].split('(').next().expect("a call");
                // The example in the macro's own documentation.
                if name != "cuFoo" {
                    assert!(FUNCTIONS.contains(&name), "{name} is called but not probed");
                    called += 1;
                }
            }
        }
        assert!(called > 30, "{called}");
    }
}
