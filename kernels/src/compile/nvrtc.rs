//! CUDA's run-time compiler: a source to an image for one architecture. Needs neither GPU nor
//! driver.
//!
//! The bindings are our own, nine functions: NVRTC's result codes grow with its versions, and a
//! library that is newer than a binding's Rust enum must not be undefined behaviour. The library
//! may also lie where the loader does not look (`WARPFRAME_NVRTC`).

mod libraries;

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Once, OnceLock};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LOCAL, RTLD_NOW};

use crate::KernelSource;
use crate::compile::compilers::close_before_libraries;
use crate::drivers::driver::Tier;
use crate::error::{Error, ErrorKind, Result};
use crate::timeline::{Part, span};
pub(crate) use libraries::Urgency;
pub(crate) use libraries::wake_all;

/// What to do about a missing library.
const INSTALL: &str = "install the CUDA toolkit's NVRTC, or `pip install nvidia-cuda-nvrtc`, and let LD_LIBRARY_PATH \
                       name the directory of libnvrtc.so.13 or WARPFRAME_NVRTC the file itself";

type NvrtcProgram = *mut c_void;
type Code = c_int;
type FlowCallback = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;

/// The library, loaded for the life of the process.
#[derive(Debug)]
pub(crate) struct Nvrtc {
    version: (i32, i32),
    architectures: Vec<i32>,
    create: unsafe extern "C" fn(
        *mut NvrtcProgram,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Code,
    compile: unsafe extern "C" fn(NvrtcProgram, c_int, *const *const c_char) -> Code,
    destroy: unsafe extern "C" fn(*mut NvrtcProgram) -> Code,
    /// Takes what is asked whether to stop, and its argument. Older versions have none.
    on_flow: Option<unsafe extern "C" fn(NvrtcProgram, FlowCallback, *mut c_void) -> Code>,
    image_size: unsafe extern "C" fn(NvrtcProgram, *mut usize) -> Code,
    image: unsafe extern "C" fn(NvrtcProgram, *mut c_char) -> Code,
    log_size: unsafe extern "C" fn(NvrtcProgram, *mut usize) -> Code,
    log: unsafe extern "C" fn(NvrtcProgram, *mut c_char) -> Code,
    error_string: unsafe extern "C" fn(Code) -> *const c_char,
}

/// The library's first compilation in this process.
static WOKEN: Once = Once::new();

/// A compiled source.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    pub(crate) log: String,
}

impl Nvrtc {
    /// The process's library.
    ///
    /// # Errors
    /// [`ErrorKind::DeviceUnavailable`] when it cannot be found.
    pub(crate) fn get() -> Result<&'static Nvrtc> {
        static LIBRARY: OnceLock<Result<Nvrtc, String>> = OnceLock::new();
        let found = LIBRARY.get_or_init(|| {
            let _span = span(Part::Compiler, || "library".into());
            Nvrtc::open(&candidates(crate::environment::os))
        });
        found.as_ref().map_err(|why| unavailable(why.clone()))
    }

    fn open(candidates: &[PathBuf]) -> Result<Nvrtc, String> {
        let mut tried = Vec::new();
        for path in candidates {
            preload_builtins(path);
            // SAFETY: loading NVRTC runs only its own initialisers, which have no preconditions.
            match unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) } {
                Ok(library) => {
                    // SAFETY: a file of this name, or the one the user named, is NVRTC.
                    return unsafe { Nvrtc::bind(library) }
                        .map_err(|e| format!("{}: {e}", path.display()));
                }
                Err(error) => tried.push(format!("{} ({error})", path.display())),
            }
        }
        Err(format!("NVRTC not found; {INSTALL}. Tried {}", tried.join(", ")))
    }

    /// # Safety
    /// The library is NVRTC: its functions have the types declared here.
    unsafe fn bind(library: Library) -> Result<Nvrtc, libloading::Error> {
        // SAFETY: the caller's promise; the pointers stay valid because the library is leaked
        // below.
        let mut nvrtc = unsafe {
            Nvrtc {
                version: (0, 0),
                architectures: Vec::new(),
                create: *library.get(b"nvrtcCreateProgram\0")?,
                compile: *library.get(b"nvrtcCompileProgram\0")?,
                on_flow: library.get(b"nvrtcSetFlowCallback\0").ok().map(|symbol| *symbol),
                destroy: *library.get(b"nvrtcDestroyProgram\0")?,
                image_size: *library.get(b"nvrtcGetCUBINSize\0")?,
                image: *library.get(b"nvrtcGetCUBIN\0")?,
                log_size: *library.get(b"nvrtcGetProgramLogSize\0")?,
                log: *library.get(b"nvrtcGetProgramLog\0")?,
                error_string: *library.get(b"nvrtcGetErrorString\0")?,
            }
        };
        // SAFETY: as above; both write only to the places given, the list having as many as were
        // announced.
        unsafe {
            let version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code =
                *library.get(b"nvrtcVersion\0")?;
            version(&mut nvrtc.version.0, &mut nvrtc.version.1);
            let count: unsafe extern "C" fn(*mut c_int) -> Code =
                *library.get(b"nvrtcGetNumSupportedArchs\0")?;
            let list: unsafe extern "C" fn(*mut c_int) -> Code =
                *library.get(b"nvrtcGetSupportedArchs\0")?;
            let mut n = 0;
            if count(&mut n) == 0 {
                nvrtc.architectures.resize(n.max(0) as usize, 0);
                list(nvrtc.architectures.as_mut_ptr());
            }
        }
        std::mem::forget(library);
        Ok(nvrtc)
    }

    /// Major and minor version.
    pub(crate) fn version(&self) -> (i32, i32) {
        self.version
    }

    /// What is noted beside the images that it makes.
    pub(crate) fn name(&self) -> String {
        let (major, minor) = self.version;
        format!("nvrtc {major}.{minor}")
    }

    /// Checks that this library can compile for `sm_90` and its like.
    pub(crate) fn supports(&self, architecture: &str) -> Result<()> {
        let number = architecture
            .strip_prefix("sm_")
            .map(|rest| rest.trim_end_matches(|c: char| c.is_alphabetic()));
        match number.and_then(|n| n.parse().ok()) {
            Some(number) if self.architectures.contains(&number) => Ok(()),
            _ => {
                let (major, minor) = self.version;
                let known: Vec<_> = self.architectures.iter().map(|n| format!("sm_{n}")).collect();
                let why = format!(
                    "NVRTC {major}.{minor} compiles for {}, not for {architecture}",
                    known.join(", ")
                );
                Err(unavailable(why))
            }
        }
    }

    /// Whether it has compiled in this process.
    pub(crate) fn is_awake() -> bool {
        WOKEN.is_completed()
    }

    /// Has it compile for the first time, once in a process, before its first kernel: on a thread
    /// that somebody waits for.
    pub(crate) fn wake(&self) {
        WOKEN.call_once(|| {
            let _span = span(Part::Compiler, || "first use".into());
            self.first_use();
        });
    }

    /// Has it compile next to nothing. Only when it compiles for the first time does it register
    /// what takes it apart at the process's end, and what is registered later is called sooner:
    /// compilers that are inside of it are closed before.
    fn first_use(&self) {
        let architecture =
            self.architectures.first().map_or("sm_80".into(), |number| format!("sm_{number}"));
        // Where it fails, the first kernel says why.
        let _ = self.compile_here(
            &KernelSource::new("nothing", ""),
            &architecture,
            self.first_tier(),
            None,
        );
        close_before_libraries();
    }

    /// What decides what an image holds, but for its source and the version of the library. Options
    /// that only some versions know are named for all: kernels do not mean something else by them.
    pub(crate) fn image_id(architecture: &str) -> String {
        format!("nvrtc {}, or {QUICK}", options(NEWEST, architecture).join(" "))
    }

    /// Whether kernels may be compiled quickly at first: nobody asked for something else.
    pub(crate) fn takes_quick() -> bool {
        crate::environment::text("WARPFRAME_QUICK_KERNELS").map_or(true, |text| text != "0")
            && FURTHER.is_empty()
    }

    /// How kernels are compiled at first: quickly where they may be and this version can.
    pub(crate) fn first_tier(&self) -> Tier {
        if Self::takes_quick() && self.version >= QUICK_SINCE { Tier::Quick } else { Tier::Full }
    }

    /// Compiles a source, by this library or a copy of it: several threads may do so at once. Ends
    /// soon after `cancelled` is set, where this version can.
    ///
    /// # Errors
    /// [`ErrorKind::Compile`] with what the compiler says.
    pub(crate) fn compile(
        &'static self,
        source: &KernelSource,
        architecture: &str,
        tier: Tier,
        urgency: Urgency,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Image> {
        match libraries::lease(urgency, cancelled) {
            Some(lease) => lease.0.compile_here(source, architecture, tier, Some(cancelled)),
            None => {
                let (kernel, log) = (source.name.clone(), "nobody wants it any more".into());
                Err(ErrorKind::Compile { kernel, log }.into())
            }
        }
    }

    fn compile_here(
        &self,
        source: &KernelSource,
        architecture: &str,
        tier: Tier,
        cancelled: Option<&Arc<AtomicBool>>,
    ) -> Result<Image> {
        let failed =
            |log: String| Error::from(ErrorKind::Compile { kernel: source.name.clone(), log });
        let text = |text: &str| {
            CString::new(text).map_err(|_| failed("a source holds a zero byte".into()))
        };
        let code = text(&source.text)?;
        let name = text(&format!("{}.cu", source.name))?;
        let headers = source.headers();
        let names = headers.iter().map(|(name, _)| text(name)).collect::<Result<Vec<_>>>()?;
        let texts = headers.iter().map(|(_, header)| text(header)).collect::<Result<Vec<_>>>()?;
        let mut options = options(self.version, architecture);
        if tier == Tier::Quick {
            options.push(QUICK.into());
        }
        let options = options.iter().map(|option| text(option)).collect::<Result<Vec<_>>>()?;
        let (names, texts, options) = (pointers(&names), pointers(&texts), pointers(&options));

        let mut program = std::ptr::null_mut();
        // SAFETY: every pointer leads to a terminated string that outlives the program, the lists
        // are as long as the count says.
        let status = unsafe {
            let (code, name) = (code.as_ptr(), name.as_ptr());
            (self.create)(
                &mut program,
                code,
                name,
                names.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        if status != 0 {
            return Err(failed(self.describe(status)));
        }
        let program = Owned { nvrtc: self, program };
        if let (Some(on_flow), Some(cancelled)) = (self.on_flow, cancelled) {
            // SAFETY: a live program; the flag outlives its compilation. Where it is refused,
            // compiling cannot be cancelled.
            let _ = unsafe {
                on_flow(program.program, is_cancelled, Arc::as_ptr(cancelled).cast_mut().cast())
            };
        }
        // SAFETY: a live program, and a list as long as the count says.
        let status =
            unsafe { (self.compile)(program.program, options.len() as c_int, options.as_ptr()) };
        let log =
            String::from_utf8_lossy(&program.bytes(self.log_size, self.log).map_err(&failed)?)
                .trim_end_matches('\0')
                .trim_end()
                .to_string();
        if status != 0 {
            return Err(failed(if log.is_empty() { self.describe(status) } else { log }));
        }
        let bytes = program.bytes(self.image_size, self.image).map_err(&failed)?;
        Ok(Image { bytes, log })
    }

    fn describe(&self, code: Code) -> String {
        // SAFETY: takes any code and returns a static string.
        unsafe { CStr::from_ptr((self.error_string)(code)) }.to_string_lossy().into_owned()
    }
}

/// Whether NVRTC is to stop, which asks as it goes, from any thread.
unsafe extern "C" fn is_cancelled(flag: *mut c_void, _reserved: *mut c_void) -> c_int {
    // SAFETY: the flag that `compile` named, which outlives the compilation.
    let flag = unsafe { &*flag.cast::<AtomicBool>() };
    flag.load(Relaxed).into()
}

/// A program, destroyed at the end of its scope.
struct Owned<'a> {
    nvrtc: &'a Nvrtc,
    program: NvrtcProgram,
}

impl Owned<'_> {
    fn bytes(
        &self,
        size: unsafe extern "C" fn(NvrtcProgram, *mut usize) -> Code,
        get: unsafe extern "C" fn(NvrtcProgram, *mut c_char) -> Code,
    ) -> Result<Vec<u8>, String> {
        let mut len = 0;
        // SAFETY: the program is live.
        let status = unsafe { size(self.program, &mut len) };
        let mut bytes = vec![0u8; len];
        let status = if status == 0 {
            // SAFETY: the program is live and the space has the size it asked for.
            unsafe { get(self.program, bytes.as_mut_ptr().cast()) }
        } else {
            status
        };
        if status == 0 { Ok(bytes) } else { Err(self.nvrtc.describe(status)) }
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is live, and nobody uses it after its owner.
        unsafe { (self.nvrtc.destroy)(&mut self.program) };
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).collect()
}

/// What the user adds: `-lineinfo` for profilers and sanitizers, and experiments with the compiler.
static FURTHER: LazyLock<Vec<String>> = LazyLock::new(|| {
    let text = crate::environment::text("WARPFRAME_NVRTC_OPTIONS").unwrap_or_default();
    text.split_whitespace().map(String::from).collect()
});

/// What [`Tier::Quick`] adds: no loops unrolled, few passes, two fifths to three quarters of the
/// time.
const QUICK: &str = "--Ofast-compile=mid";
/// The version that has it.
const QUICK_SINCE: (i32, i32) = (12, 9);
/// A version that has everything.
const NEWEST: (i32, i32) = (i32::MAX, 0);

fn options(version: (i32, i32), architecture: &str) -> Vec<String> {
    let mut options = vec![
        "--std=c++17".into(),
        "--device-int128".into(),
        // Functions without an execution space are device functions.
        "-default-device".into(),
        // Registers and spills, into the log.
        "--ptxas-options=-v".into(),
        format!("--gpu-architecture={architecture}"),
    ];
    if version >= (12, 4) {
        // Leaves out declarations of textures and the runtime's types, a third of what an empty
        // file takes to compile.
        options.push("--minimal".into());
    }
    options.extend(FURTHER.iter().cloned());
    options
}

/// Where to look, in order. A file the user names is the only one.
fn candidates(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let path = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(named) = path("WARPFRAME_NVRTC") {
        return vec![named];
    }
    let names = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"];
    let toolkit =
        path("CUDA_HOME").or_else(|| path("CUDA_PATH")).unwrap_or_else(|| "/usr/local/cuda".into());
    let folder = toolkit.join("lib64");
    names.iter().map(PathBuf::from).chain(names.iter().map(|name| folder.join(name))).collect()
}

/// Loads the library of built-in functions that lies beside a library named by its path. NVRTC
/// opens it by name only, which finds one that is loaded, and in some versions nothing outside the
/// loader's path.
fn preload_builtins(nvrtc: &Path) {
    let folder = nvrtc.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Some(entries) = folder.and_then(|folder| std::fs::read_dir(folder).ok()) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with("libnvrtc-builtins.so") {
            // SAFETY: a library of data and functions for NVRTC, whose initialisers have no
            // preconditions.
            let loaded = unsafe { Library::open(Some(entry.path()), RTLD_NOW | RTLD_GLOBAL) };
            std::mem::forget(loaded);
        }
    }
}

fn unavailable(why: String) -> Error {
    ErrorKind::DeviceUnavailable { device: "cuda".into(), why }.into()
}

/// What the compiler said of one source; see [`compile_for`].
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompileReport {
    /// The source's name.
    pub source: String,
    /// The target, such as `sm_90`.
    pub architecture: String,
    /// Its entry points, in the compiler's order.
    pub kernels: Vec<KernelReport>,
    /// Size of the image in bytes.
    pub image: usize,
}

/// What one entry point uses, in bytes where not said otherwise.
#[doc(hidden)]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelReport {
    /// The entry point.
    pub name: String,
    /// Registers a thread.
    pub registers: u32,
    /// Written to local memory for want of registers.
    pub spill_stores: u32,
    /// Read back from there.
    pub spill_loads: u32,
    /// The thread's stack, spills included.
    pub stack: u32,
    /// Static shared memory a block.
    pub shared: u32,
}

/// Compiles the source in a file for an architecture such as `sm_90`, with the engine's headers:
/// the check that CI runs over recorded sources. Needs NVRTC, no GPU.
#[doc(hidden)]
pub fn compile_for(path: &Path, architecture: &str) -> Result<CompileReport> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let name = path
        .file_stem()
        .map_or_else(|| "source".into(), |stem| stem.to_string_lossy().into_owned());
    let nvrtc = Nvrtc::get()?;
    nvrtc.supports(architecture)?;
    let source = KernelSource::new(name, text);
    let image =
        nvrtc.compile(&source, architecture, Tier::Full, Urgency::Query, &Arc::default())?;
    let (kernels, image) = (read_log(&image.log), image.bytes.len());
    Ok(CompileReport { source: source.name, architecture: architecture.into(), kernels, image })
}

/// Reads what `ptxas -v` says:
///
/// ```text
/// ptxas info    : Compiling entry function 'sum_i64' for 'sm_90'
/// ptxas info    : Function properties for sum_i64
///     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
/// ptxas info    : Used 30 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]
/// ```
///
/// Properties of functions that were not inlined follow the same pattern; their spills count for
/// the entry.
fn read_log(log: &str) -> Vec<KernelReport> {
    let mut kernels: Vec<KernelReport> = Vec::new();
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_string();
            kernels.push(KernelReport { name, ..Default::default() });
        } else if let Some(kernel) = kernels.last_mut() {
            let number = |what: &str| number_before(line, what).unwrap_or(0);
            kernel.stack += number(" bytes stack frame");
            kernel.spill_stores += number(" bytes spill stores");
            kernel.spill_loads += number(" bytes spill loads");
            kernel.registers = kernel.registers.max(number(" registers"));
            kernel.shared = kernel.shared.max(number(" bytes smem"));
        }
    }
    kernels
}

fn number_before(line: &str, what: &str) -> Option<u32> {
    let before = &line[..line.find(what)?];
    let digits = before.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    before[digits..].parse().ok()
}

#[cfg(test)]
mod tests;
