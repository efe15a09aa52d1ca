//! How often kernels that were compiled quickly are launched, which decides whether they are compiled
//! again (`improve.rs`).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use crate::KernelSource;

/// Launches that make a kernel worth it.
const OFTEN: u32 = 2;

/// Launches of a module's kernels that were compiled quickly.
#[derive(Debug)]
pub(crate) struct Uses {
    launches: AtomicU32,
    /// Whether it is to be compiled again.
    asked: AtomicBool,
    pub(crate) source: KernelSource,
}

impl Uses {
    pub(crate) fn new(source: &KernelSource) -> Self {
        Uses { launches: AtomicU32::new(0), asked: AtomicBool::new(false), source: source.clone() }
    }

    /// Of what an earlier process compiled quickly: the first launch is one too many.
    pub(crate) fn again(source: &KernelSource) -> Self {
        Uses { launches: AtomicU32::new(OFTEN - 1), ..Self::new(source) }
    }

    pub(crate) fn launched(&self) -> bool {
        self.launches.load(Relaxed) > 0
    }

    /// Notes a launch. Whether the kernel is worth it, and nobody has asked yet.
    pub(crate) fn launch(&self) -> bool {
        let launches = self.launches.fetch_add(1, Relaxed).saturating_add(1);
        launches >= OFTEN && !self.asked.load(Relaxed)
    }

    /// Whether who calls this is the first to ask.
    pub(crate) fn ask(&self) -> bool {
        !self.asked.swap(true, Relaxed)
    }
}
