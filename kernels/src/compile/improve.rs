//! Kernels that are used again are compiled again, by all that the compiler can do, behind the
//! queries.
//!
//! ```text
//!   first query    compiled quickly ─▶ runs
//!   later ones                          runs ── runs ── runs better ──▶
//!   improver                            compiles fully ─▶ takes its place
//! ```
//!
//! HyPer and Umbra do so with queries (Kohn, Leis, Neumann: Adaptive Execution of Compiled Queries,
//! ICDE 2018). What runs once, as in batches, never pays for the second compilation; what it found
//! lies on disk for the next process. A kernel's answers do not depend on how it was compiled:
//! contraction of floats is off by construction (`kernels/arith.cuh`), and kernels whose order of
//! additions follows from their number of blocks have one that does not follow from how they were
//! compiled (`codegen/aggregate.rs`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Device;
use crate::compile::cache::KernelCache;
use crate::compile::compilers::Compilers;
use crate::compile::uses::Uses;
use crate::counters::Counting;
use crate::drivers::driver::Driver;

/// How long a session has to last to load a compiler only to improve kernels.
const LONG: Duration = Duration::from_secs(1);
/// Most threads at it: queries need compilers, too.
const MOST: usize = 4;

/// What compiles again. Dropping it waits for what is under way.
#[derive(Debug)]
pub(crate) struct Improver {
    driver: Arc<dyn Driver>,
    since: Instant,
    cache: Arc<KernelCache>,
    compilers: Arc<Compilers>,
}

impl Improver {
    pub(crate) fn new(
        driver: Arc<dyn Driver>,
        cache: Arc<KernelCache>,
        counters: Arc<Counting>,
    ) -> Self {
        let cores = crate::cores::cores();
        let (known, used) = (cache.clone(), driver.clone());
        let compilers = Compilers::new((cores / 4).clamp(1, MOST), move |source| {
            // Where it fails the kernel stays as it is: it works.
            let _ = known.improve(&*used, &counters, source);
        });
        compilers.close_at_exit();
        Improver { driver, since: Instant::now(), cache, compilers }
    }

    /// Notes a launch, on a thread for which a query waits.
    pub(crate) fn launched(&self, uses: &Uses) {
        if !uses.launch() {
            return;
        }
        if !self.driver.has_compiler() && self.since.elapsed() < LONG {
            return;
        }
        self.ask(uses);
    }

    /// Has a kernel compiled again, unless it is under way. Loads the compiler.
    fn ask(&self, uses: &Uses) {
        // Without a compiler the kernel stays as it is.
        if uses.ask() && self.driver.load_compiler().is_ok() {
            self.compilers.ask(&uses.source);
        }
    }
}

impl Drop for Improver {
    fn drop(&mut self) {
        self.compilers.close();
    }
}

impl Device {
    /// Waits until every kernel that has been launched is compiled as well as it will be.
    ///
    /// A kernel is at first compiled quickly, and again with all optimisations once it is used
    /// again, behind the queries: so the first queries answer sooner, later ones are faster.
    /// Whoever measures the latter calls this after a first run. The simulator compiles once.
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// device.settle();
    /// assert_eq!(device.counters().improved, 0);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    pub fn settle(&self) {
        if let Some(improver) = &self.0.improver {
            for uses in improver.cache.quick() {
                if uses.launched() {
                    improver.ask(&uses);
                }
            }
            improver.compilers.settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::SeqCst;

    use super::*;
    use crate::KernelSource;
    use crate::compile::cache::Folders;
    use crate::drivers::driver::Tier;
    use crate::drivers::fake::Fake;

    fn improver(dir: &std::path::Path) -> (Arc<Fake>, Arc<Counting>, Improver) {
        let mut fake = Fake::new();
        fake.first = Tier::Quick;
        let (driver, counters) = (Arc::new(fake), Arc::<Counting>::default());
        let cache = Arc::new(KernelCache::at(Folders::one(dir), None));
        let improver = Improver::new(driver.clone(), cache, counters.clone());
        (driver, counters, improver)
    }

    #[test]
    fn the_second_launch_has_a_kernel_improved() {
        let dir = tempfile::tempdir().unwrap();
        let (driver, counters, improver) = improver(dir.path());
        let source = KernelSource::new("one", "alpha");
        let found = improver.cache.function(&*driver, &counters, &source, "alpha").unwrap();
        let uses = found.uses.expect("compiled quickly");
        improver.launched(&uses);
        improver.compilers.settle();
        assert_eq!(counters.snapshot().improved, 0, "what runs once is left as it is");
        for _ in 0..5 {
            improver.launched(&uses);
        }
        improver.compilers.settle();
        assert_eq!(counters.snapshot().improved, 1);
        let [(function, _)] = driver.replaced.lock()[..] else {
            panic!("one took the place of another")
        };
        assert_eq!(function, found.function);
    }

    #[test]
    fn a_short_process_loads_no_compiler_to_improve_kernels() {
        let dir = tempfile::tempdir().unwrap();
        let (driver, counters, mut improver) = improver(dir.path());
        let source = KernelSource::new("one", "alpha");
        let found = improver.cache.function(&*driver, &counters, &source, "alpha").unwrap();
        let uses = found.uses.expect("compiled quickly");
        driver.asleep.store(true, SeqCst);
        for _ in 0..5 {
            improver.launched(&uses);
        }
        improver.compilers.settle();
        assert!(driver.asleep.load(SeqCst) && counters.snapshot().improved == 0);
        improver.since -= LONG;
        improver.launched(&uses);
        improver.compilers.settle();
        assert!(!driver.asleep.load(SeqCst) && counters.snapshot().improved == 1);
    }

    #[test]
    fn the_end_waits_for_what_is_under_way_and_leaves_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let (driver, counters, improver) = improver(dir.path());
        for number in 0..40 {
            let source = KernelSource::new("many", format!("alpha{number}"));
            let uses = improver
                .cache
                .function(&*driver, &counters, &source, "alpha")
                .unwrap()
                .uses
                .expect("quick");
            improver.launched(&uses);
            improver.launched(&uses);
            if number == 0 {
                improver.compilers.settle();
            }
        }
        drop(improver);
        let compiled = driver.compiled.load(SeqCst) - 40;
        assert_eq!(counters.snapshot().improved, compiled, "whatever was begun was finished");
        assert!(compiled >= 1);
    }
}
