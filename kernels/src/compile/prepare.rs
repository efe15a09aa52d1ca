//! Kernels that do not depend on a query, compiled before one asks for them.
//!
//! ```text
//!   prepare_kernels, `warpframe --prepare`    for any architecture, without a GPU
//!   a session on a GPU                        for its device, behind its queries, once a version:
//!                                             <directory>/<key>.sm_90.prepared says that it is done
//! ```
//!
//! A session begins with it only after a while: a process that answers one query and ends has other
//! use for its cores.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::compile::cache::KernelCache;
use crate::compile::compilers::{Compilers, join};
use crate::compile::nvrtc::{Nvrtc, Urgency};
use crate::cores::cores;
use crate::drivers::driver::{Driver, Tier};
use crate::error::{Error, Result};
use crate::{Device, DeviceKind, KernelSource};

/// How long a session has to last before it prepares kernels.
const LATER: Duration = Duration::from_secs(2);
/// How often it looks whether a query has loaded the compiler.
const LOOK: Duration = Duration::from_millis(500);
/// Most threads at it behind a session, which needs cores for itself.
const MOST: usize = 4;

/// What [`prepare_kernels`](crate::ops::prepare::prepare_kernels) did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreparedKernels {
    /// Kernels that were compiled.
    pub compiled: usize,
    /// Kernels that the cache already had.
    pub found: usize,
    /// The directory in which they are kept.
    pub directory: PathBuf,
}

/// Compiles what the kernel cache lacks of these sources, fully and on all cores, for an
/// architecture such as `sm_90`. Needs NVRTC, but no GPU.
///
/// # Errors
/// [`DeviceUnavailable`](crate::ErrorKind::DeviceUnavailable) without an NVRTC that knows the
/// architecture, [`Compile`](crate::ErrorKind::Compile), and [`Io`](crate::ErrorKind::Io) where
/// nothing can be kept.
pub fn prepare(architecture: &str, sources: &[KernelSource]) -> Result<PreparedKernels> {
    let nvrtc = Nvrtc::get()?;
    nvrtc.supports(architecture)?;
    nvrtc.wake();
    let cache = KernelCache::new();
    let compile = |source: &KernelSource, out: &Path| {
        let image =
            nvrtc.compile(source, architecture, Tier::Full, Urgency::Query, &Arc::default())?;
        std::fs::write(out, image.bytes).map_err(|error| Error::io(out, error))?;
        Ok(nvrtc.name())
    };
    let (next, compiled) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> Result<()> {
        while let Some(source) = sources.get(next.fetch_add(1, Relaxed)) {
            let id = Nvrtc::image_id(architecture);
            let is_new = cache.keep(&id, architecture, source, |out| compile(source, out))?;
            compiled.fetch_add(is_new.into(), Relaxed);
        }
        Ok(())
    };
    // A copy of the compiler is made where two threads wait: more threads than cores have all cores
    // compile.
    let threads = cores() + 2;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    // The first query on this machine will generate kernels.
    cache.note_query(true);
    let compiled = compiled.into_inner();
    Ok(PreparedKernels { compiled, found: sources.len() - compiled, directory: cache.directory()? })
}

/// What prepares kernels behind a session. Dropping it gives up what is not done.
#[derive(Debug)]
pub(crate) struct Preparer {
    compilers: Arc<Compilers>,
    ended: Arc<Ended>,
    thread: Option<JoinHandle<()>>,
}

/// Whether the session has ended.
#[derive(Debug, Default)]
struct Ended(Mutex<bool>, Condvar);

impl Ended {
    /// Waits for so long, or for the end. Returns whether it has come.
    fn within(&self, time: Duration) -> bool {
        let mut ended = self.0.lock();
        self.1.wait_while_for(&mut ended, |ended| !*ended, time);
        *ended
    }
}

impl Preparer {
    /// Begins after `later`, unless these sources were prepared before.
    fn new(
        driver: Arc<dyn Driver>,
        cache: Arc<KernelCache>,
        sources: impl FnOnce() -> Vec<KernelSource> + Send + 'static,
        later: Duration,
    ) -> Preparer {
        let failed = Arc::new(AtomicUsize::new(0));
        let (id, architecture) = (driver.image_id(), driver.properties().architecture.clone());
        let used = driver.clone();
        let compilers = {
            let (cache, failed) = (cache.clone(), failed.clone());
            let cores = cores();
            Compilers::new((cores / 4).clamp(1, MOST), move |source| {
                let (id, architecture) = (driver.image_id(), &driver.properties().architecture);
                let make = |out: &Path| {
                    driver.compile(source, Tier::Full, out).and_then(|()| driver.compiler())
                };
                // A query that needs the kernel will fail as this did, and say so.
                if cache.keep(&id, architecture, source, make).is_err() {
                    failed.fetch_add(1, Relaxed);
                }
            })
        };
        compilers.close_at_exit();
        let ended = Arc::<Ended>::default();
        let (own, end) = (compilers.clone(), ended.clone());
        let work = move || {
            if end.within(later) {
                return;
            }
            let sources = sources();
            let Ok(mark) = cache.mark(&id, &architecture, &sources) else { return };
            if mark.exists() {
                return;
            }
            // No query waits for this thread: it must not be the first that uses the compiler.
            while !used.has_compiler() {
                if end.within(LOOK) {
                    return;
                }
            }
            sources.iter().for_each(|source| own.ask(source));
            own.settle();
            if !own.closed() && failed.load(Relaxed) == 0 {
                // Where it cannot be written the next session looks again.
                let _ = std::fs::write(mark, "");
            }
        };
        // Without a thread nothing is prepared.
        let thread = std::thread::Builder::new().name("warpframe-prepare".into()).spawn(work).ok();
        Preparer { compilers, ended, thread }
    }
}

impl Drop for Preparer {
    fn drop(&mut self) {
        *self.ended.0.lock() = true;
        self.ended.1.notify_all();
        self.compilers.close();
        self.thread.take().into_iter().for_each(join);
    }
}

impl Device {
    /// Has a GPU's kernels prepared behind the queries. `WARPFRAME_PREPARE=0` forbids it.
    pub fn prepare_behind(&self, sources: fn() -> Vec<KernelSource>) {
        static ALLOWED: OnceLock<bool> = OnceLock::new();
        let allowed = *ALLOWED.get_or_init(|| {
            crate::environment::text("WARPFRAME_PREPARE").map_or(true, |text| text != "0")
        });
        if allowed && matches!(self.kind(), DeviceKind::Cuda(_)) {
            let (driver, cache) = (self.0.driver.clone(), self.0.cache.clone());
            self.0.preparer.get_or_init(|| Preparer::new(driver, cache, sources, LATER));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;

    use super::*;
    use crate::compile::cache::Folders;
    use crate::drivers::fake::Fake;

    fn sources() -> Vec<KernelSource> {
        (0..5).map(|number| KernelSource::new("one", format!("text {number}"))).collect()
    }

    fn prepared(directory: &Path) -> (Arc<Fake>, Preparer) {
        let driver = Arc::new(Fake::new());
        let cache = Arc::new(KernelCache::at(Folders::one(directory), None));
        (driver.clone(), Preparer::new(driver, cache, sources, Duration::ZERO))
    }

    #[test]
    fn sessions_prepare_once() {
        let directory = tempfile::tempdir().unwrap();
        for compiled in [5, 0] {
            let (driver, mut preparer) = prepared(directory.path());
            preparer.thread.take().into_iter().for_each(join);
            assert_eq!(driver.compiled.load(SeqCst), compiled);
        }
    }

    /// Whoever uses the compiler first has somebody wait for it.
    #[test]
    fn what_goes_on_behind_queries_does_not_load_the_compiler() {
        let directory = tempfile::tempdir().unwrap();
        let driver = Arc::new(Fake::new());
        driver.asleep.store(true, SeqCst);
        let cache = Arc::new(KernelCache::at(Folders::one(directory.path()), None));
        let preparer = Preparer::new(driver.clone(), cache, sources, Duration::ZERO);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(driver.compiled.load(SeqCst), 0);
        drop(preparer);
        assert!(driver.asleep.load(SeqCst));
    }

    #[test]
    fn a_short_session_prepares_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let driver = Arc::new(Fake::new());
        let cache = Arc::new(KernelCache::at(Folders::one(directory.path()), None));
        drop(Preparer::new(driver.clone(), cache, sources, Duration::from_secs(60)));
        assert_eq!(driver.compiled.load(SeqCst), 0);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn kernels_are_prepared_for_an_architecture_without_a_device() {
        let source =
            KernelSource::new("one", "extern \"C\" __global__ void prepared(int* to) { *to = 1; }");
        match prepare("sm_80", std::slice::from_ref(&source)) {
            Ok(first) => {
                assert_eq!(first.compiled + first.found, 1);
                assert_eq!(prepare("sm_80", &[source]).unwrap().found, 1);
                assert!(prepare("sm_1", &[]).is_err());
            }
            Err(error) => {
                assert!(crate::environment::os("WARPFRAME_REQUIRE_NVRTC").is_none(), "{error}");
                assert!(
                    matches!(error.kind(), crate::ErrorKind::DeviceUnavailable { .. }),
                    "{error}"
                );
            }
        }
    }
}
