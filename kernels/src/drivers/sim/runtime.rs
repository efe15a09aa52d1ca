//! Loading and calling the runtime, which is the C++ of `runtime/`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::Path;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use super::compiler::CxxCompiler;
use crate::compile::cache::{Folders, Store};
use crate::error::{ErrorKind, Result};
use crate::interrupt;

/// A kernel's entry point as host code: it takes the argument words.
pub(super) type HostEntry = unsafe extern "C" fn(*const c_void);

/// `wf_sim_facts` of `kernels/sim.h`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct KernelFacts {
    pub(super) words: u32,
    pub(super) threads: u32,
}

/// `wf_sim_launch_arguments` of `runtime/model.cpp`.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Launch {
    pub(super) entry: HostEntry,
    pub(super) words: *const c_void,
    pub(super) blocks: u32,
    pub(super) threads: u32,
    pub(super) shared: u32,
    pub(super) interleaved: u32,
    pub(super) seed: u64,
    pub(super) stops: extern "C" fn() -> c_int,
}

/// Whether the statement that launched is to stop.
pub(super) extern "C" fn stops() -> c_int {
    interrupt::check().is_err().into()
}

#[derive(Debug)]
pub(super) struct SimRuntime {
    launch: unsafe extern "C" fn(*const Launch) -> *mut c_char,
    free_report: unsafe extern "C" fn(*mut c_char),
}

impl SimRuntime {
    /// Runs a grid on the calling thread; an error is the simulator's report.
    ///
    /// # Safety
    /// `words` points to as many words as the entry takes, and the entry may use the addresses
    /// among them as its source does.
    pub(super) unsafe fn run(&self, launch: &Launch) -> std::result::Result<(), String> {
        // SAFETY: the structure is the runtime's, and the caller vouches for the kernel.
        let report = unsafe { (self.launch)(launch) };
        if report.is_null() {
            return Ok(());
        }
        // SAFETY: a report is a C string that is ours until it is freed, here and once.
        let text = unsafe { CStr::from_ptr(report) }.to_string_lossy().into_owned();
        // SAFETY: as above; the text was copied.
        unsafe { (self.free_report)(report) };
        Err(text)
    }
}

/// The process's one runtime, compiled if the kernel cache does not have it. Kernels find its
/// symbols, so that a second one could not be told from the first.
pub(super) fn loaded(compiler: &CxxCompiler) -> Result<&'static SimRuntime> {
    static RUNTIME: OnceLock<std::result::Result<SimRuntime, String>> = OnceLock::new();
    let result = RUNTIME.get_or_init(|| {
        let store = Store::open(&Folders::of_environment());
        let file = compiler.runtime_file();
        let compile =
            |out: &Path| compiler.compile_runtime(out).map(|()| compiler.version().to_string());
        let image = match store.find(&file, None) {
            Some(image) => image,
            None => store.insert(&file, compile).map_err(|e| e.to_string())?,
        };
        load(&image.path).map_err(|e| format!("the simulator's runtime does not load: {e}"))
    });
    result.as_ref().map_err(|why| {
        ErrorKind::DeviceUnavailable { device: "sim".into(), why: why.clone() }.into()
    })
}

fn load(image: &Path) -> std::result::Result<SimRuntime, libloading::Error> {
    // SAFETY: the image was compiled from `runtime/`; its functions have these types; it is never
    // unloaded.
    unsafe {
        let library = Library::open(Some(image), RTLD_NOW | RTLD_GLOBAL)?;
        let runtime = SimRuntime {
            launch: *library.get(b"wf_sim_launch")?,
            free_report: *library.get(b"wf_sim_free_report")?,
        };
        std::mem::forget(library);
        Ok(runtime)
    }
}
