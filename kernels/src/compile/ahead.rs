//! Compiles kernels before they are needed, on other threads.
//!
//! ```text
//!   query       load ── pipeline ── pipeline ── pipeline ──▶    asks the cache for kernels, waits
//!   rehearsal        ─▶ the same on a stand-in                  asks for them earlier
//!   compilers             ── kernel ── kernel ──▶               as many as there are cores
//! ```
//!
//! A rehearsal assumes what only the data can tell (how many rows a filter keeps, whether a build
//! side's keys repeat). Where it is wrong a kernel is compiled that nobody wants, or one is not
//! there and the query compiles it itself.

use std::sync::Arc;
use std::thread::JoinHandle;

use crate::compile::cache::KernelCache;
use crate::compile::compilers::{Compilers, join};
use crate::cores::cores;
use crate::error::{Error, Result};
use crate::interrupt::{self, Running};
use crate::timeline::{Part, span};
use crate::{Device, KernelSource};

/// Most threads that compile for one query.
const MOST_COMPILERS: usize = 32;
/// Bytes of a rehearsal's stack: plans recurse as deep as they are.
const STACK: usize = 64 << 20;

/// Compilation for one query. Dropping it drops what is still queued, and waits for what is under
/// way, so that nothing of a query goes on behind it.
#[derive(Debug)]
pub struct Ahead {
    device: Device,
    queue: Arc<CompileQueue>,
    rehearsal: Option<JoinHandle<()>>,
    /// Compilations before it.
    compiled: u64,
}

/// Compilers of what the cache does not know.
#[derive(Debug)]
pub(crate) struct CompileQueue {
    cache: Arc<KernelCache>,
    compilers: Arc<Compilers>,
}

impl Device {
    /// Begins to compile ahead for a query.
    pub fn ahead(&self) -> Ahead {
        let cores = cores();
        let (driver, cache) = (self.0.driver.clone(), self.0.cache.clone());
        let counters = self.0.counters.clone();
        let statement = interrupt::current();
        let compilers = Compilers::new(cores.min(MOST_COMPILERS), move |source| {
            let _entered = statement.as_ref().map(Running::enter);
            // Who needs the kernel will fail as this did, and say so.
            let _ = cache.prepare(&*driver, &counters, source);
        });
        let queue = Arc::new(CompileQueue { cache: self.0.cache.clone(), compilers });
        let compiled = self.counters().compilations;
        Ahead { device: self.clone(), queue, rehearsal: None, compiled }
    }
}

impl Ahead {
    /// Queues sources, as far as the cache does not know them.
    pub fn ask(&self, sources: impl IntoIterator<Item = KernelSource>) {
        for source in sources {
            self.queue.ask(&source);
        }
    }

    /// Runs `query` on a stand-in for the device, on a thread of its own. What comes of it is of no
    /// interest.
    pub fn rehearse(&mut self, query: impl FnOnce(Device) -> Result<()> + Send + 'static) {
        let stand_in = self.device.stand_in(self.queue.clone());
        let thread =
            std::thread::Builder::new().name("warpframe-rehearsal".into()).stack_size(STACK);
        // Without a thread the query compiles for itself.
        let rehearsal = thread.spawn(move || {
            let _span = span(Part::Rehearse, String::new);
            drop(query(stand_in));
        });
        self.rehearsal = rehearsal.ok();
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        let _span = span(Part::WaitForEnd, || "a query".into());
        self.queue.compilers.close();
        self.rehearsal.take().into_iter().for_each(join);
        self.queue.cache.note_query(self.device.counters().compilations > self.compiled);
    }
}

impl CompileQueue {
    fn ask(&self, source: &KernelSource) {
        if !self.cache.knows(source) {
            self.compilers.ask(source);
        }
    }

    /// Asks for a kernel for a rehearsal, which ends where its query has ended.
    pub(crate) fn rehearsed(&self, source: &KernelSource) -> Result<()> {
        self.ask(source);
        match self.compilers.closed() {
            true => Err(Error::unsupported("a rehearsal", "its query has ended")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
