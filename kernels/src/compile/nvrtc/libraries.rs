//! Copies of NVRTC, so that kernels compile on several cores.
//!
//! One NVRTC compiles one source at a time: it holds a lock. Another file of the same content is
//! another library to the dynamic loader, with a lock of its own. So where several threads wait for
//! the library, one of them makes a copy: in memory, from where the loader reads it, so that
//! neither `/dev/shm` nor the disk has to have room. Separate processes would need an executable of
//! ours, and `fork` does not go with threads of somebody else's program.
//!
//! ```text
//!   compilers  ── compile ──▶ lease ─┬─ a library that is free
//!                                    ├─ a copy, where two others wait and memory allows
//!                                    └─ wait for one
//! ```
//!
//! What is compiled again behind the queries waits until no query has compiled for a while.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{Nvrtc, preload_builtins};
use crate::cores::cores;
use crate::timeline::{Part, span};

/// Bytes that all copies may take together, and the share of the memory that is free.
const MOST_BYTES: u64 = 600 << 20;
const SHARE_OF_FREE: u64 = 8;
/// Threads that wait before another is worth a copy, which takes as long as some ten kernels.
const WORTH: usize = 2;
/// Cores for which one copy is made ahead.
const CORES: usize = 3;
/// How long no query may have compiled before something is compiled again.
const QUIET: Duration = Duration::from_millis(300);
/// How often who waits for that looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(20);

/// For whom something is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// A query, which waits for it or will.
    Query,
    /// Later queries, which have something slower.
    Later,
}

/// The libraries of the process, but for those that compile.
struct Libraries {
    free: Vec<&'static Nvrtc>,
    /// How many there are, free or not.
    all: usize,
    /// How many more copies may be made.
    more: usize,
    waiting: usize,
    /// When a query compiled last.
    urgent: Option<Instant>,
}

static LIBRARIES: LazyLock<Mutex<Libraries>> = LazyLock::new(|| {
    let free: Vec<_> = Nvrtc::get().ok().into_iter().collect();
    let all = free.len();
    Mutex::new(Libraries { free, all, more: most_copies(), waiting: 0, urgent: None })
});
static FREED: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, Libraries> {
    LIBRARIES.lock()
}

/// A library for one compilation.
pub(super) struct Lease(pub(super) &'static Nvrtc);

impl Drop for Lease {
    fn drop(&mut self) {
        lock().free.push(self.0);
        // All: the one that wakes may be waiting for quiet.
        FREED.notify_all();
    }
}

/// Waits for a library. `None` where it is wanted no more.
pub(super) fn lease(urgency: Urgency, cancelled: &AtomicBool) -> Option<Lease> {
    let mut libraries = lock();
    if urgency == Urgency::Later {
        // Half of the libraries are left to queries: a query cannot stop a compilation that has
        // begun.
        let few = |libraries: &Libraries| libraries.free.len() <= libraries.all / 2;
        while few(&libraries) || libraries.urgent.is_some_and(|last| last.elapsed() < QUIET) {
            if cancelled.load(Relaxed) {
                return None;
            }
            FREED.wait_for(&mut libraries, LOOK);
        }
        return libraries.free.pop().map(Lease);
    }
    loop {
        libraries.urgent = Some(Instant::now());
        if let Some(free) = libraries.free.pop() {
            return Some(Lease(free));
        }
        if libraries.waiting >= WORTH && libraries.more > 0 {
            libraries.more -= 1;
            drop(libraries);
            if let Some(copy) = copied() {
                lock().all += 1;
                return Some(Lease(copy));
            }
            libraries = lock();
            // Nor will the next one succeed.
            libraries.more = 0;
            continue;
        }
        libraries.waiting += 1;
        FREED.wait_for(&mut libraries, LOOK);
        libraries.waiting -= 1;
        if cancelled.load(Relaxed) {
            return None;
        }
    }
}

/// Loads the library and, where there are cores for it, copies, for a process that is expected to
/// compile a query's kernels: beside something else that takes as long. Waits for all of it.
pub(crate) fn wake_all() {
    let Ok(nvrtc) = Nvrtc::get() else { return };
    if Nvrtc::is_awake() {
        return;
    }
    let cores = cores();
    let copies = {
        let mut libraries = lock();
        let copies = libraries.more.min(cores / CORES);
        libraries.more -= copies;
        copies
    };
    let copy = || {
        let copy = copied();
        let mut libraries = lock();
        match copy {
            Some(copy) => {
                libraries.free.push(copy);
                libraries.all += 1;
            }
            // Nor will the next one succeed.
            None => libraries.more = 0,
        }
        FREED.notify_all();
    };
    std::thread::scope(|scope| {
        (0..copies).for_each(|_| drop(scope.spawn(copy)));
        nvrtc.wake();
    });
}

/// As many as cores have use for, and memory room.
fn most_copies() -> usize {
    let cores = cores();
    let Some(bytes) =
        path().and_then(|path| std::fs::metadata(path).ok()).map(|file| file.len().max(1))
    else {
        return 0;
    };
    let room = MOST_BYTES.min(free_memory().unwrap_or(0) / SHARE_OF_FREE);
    (cores - 1).min(usize::try_from(room / bytes).unwrap_or(0))
}

/// Bytes of memory that may be taken, as the kernel says.
fn free_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

/// The file of the library that was found.
fn path() -> Option<PathBuf> {
    let nvrtc = Nvrtc::get().ok()?;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: takes any address, and fills the structure where it returns other than 0.
    let found = unsafe { libc::dladdr(nvrtc.destroy as *const libc::c_void, info.as_mut_ptr()) };
    if found == 0 {
        return None;
    }
    // SAFETY: it was zeroed, and filled.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a terminated string that lives as long as the library, which is never closed.
    let name = unsafe { std::ffi::CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(name.to_string_lossy().into_owned()))
}

/// One more library, never closed; `None` where the system does not give it.
#[cfg(target_os = "linux")]
fn copied() -> Option<&'static Nvrtc> {
    let _span = span(Part::Compiler, || "copy".into());
    let path = path()?;
    // SAFETY: a terminated name; the descriptor is this function's.
    let descriptor = unsafe { libc::memfd_create(c"warpframe-nvrtc".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: it was just opened, and nobody else has it.
    let mut file = unsafe { File::from_raw_fd(descriptor) };
    std::io::copy(&mut File::open(&path).ok()?, &mut file).ok()?;
    preload_builtins(&path);
    let name = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: a copy of NVRTC, whose initialisers have no preconditions.
    let library = unsafe { Library::open(Some(&name), RTLD_NOW | RTLD_LOCAL) }.ok()?;
    // SAFETY: it is NVRTC.
    let nvrtc: &'static Nvrtc = Box::leak(Box::new(unsafe { Nvrtc::bind(library) }.ok()?));
    nvrtc.first_use();
    Some(nvrtc)
}

#[cfg(not(target_os = "linux"))]
fn copied() -> Option<&'static Nvrtc> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where there is no NVRTC there is nothing to copy.
    fn library() -> Option<&'static Nvrtc> {
        Nvrtc::get()
            .inspect_err(|_| assert!(crate::environment::os("WARPFRAME_REQUIRE_NVRTC").is_none()))
            .ok()
    }

    #[test]
    fn copies_compile_what_the_library_compiles() {
        let Some(nvrtc) = library() else { return };
        let copy = copied().expect("there is room for one");
        assert_ne!(copy.create as usize, nvrtc.create as usize, "a library of its own");
        let source = crate::compile::source::KernelSource::new(
            "one",
            "extern \"C\" __global__ void one(int* to) { *to = 1; }",
        );
        let image = |of: &Nvrtc| {
            of.compile_here(&source, "sm_90", crate::drivers::driver::Tier::Full, None)
                .unwrap()
                .bytes
        };
        assert_eq!(image(copy), image(nvrtc));
    }

    #[test]
    fn a_compilation_that_nobody_wants_is_cancelled() {
        let Some(nvrtc) = library() else { return };
        let source = crate::compile::source::KernelSource::new(
            "one",
            "extern \"C\" __global__ void one(int* to) { *to = 1; }",
        );
        let cancelled = std::sync::Arc::new(AtomicBool::new(true));
        let compiled = nvrtc.compile_here(
            &source,
            "sm_90",
            crate::drivers::driver::Tier::Full,
            Some(&cancelled),
        );
        assert_eq!(compiled.is_err(), nvrtc.on_flow.is_some());
        assert!(
            lease(Urgency::Later, &cancelled).is_none_or(|lease| !lease.0.architectures.is_empty())
        );
    }
}
