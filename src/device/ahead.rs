//! Compiles kernels before they are needed, on other threads.
//!
//! ```text
//!   query      load ── pipeline ── pipeline ── pipeline ──▶         asks the cache; waits where one is being compiled
//!   rehearsal       ─▶ the same on a stand-in: asks for kernels, in the order in which the query will
//!   compilers            ── kernel ── kernel ──▶                    as many as there are cores
//! ```
//!
//! A rehearsal assumes what only the data can tell (how many rows a filter keeps, whether a build side's keys repeat).
//! Where it is wrong a kernel is compiled that nobody wants, or one is not there and the query compiles it itself.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use super::cache::KernelCache;
use super::counters::Counting;
use super::driver::Driver;
use super::{Device, Source};
use crate::error::{Error, Result};

/// Most threads that compile for one query.
const MOST_COMPILERS: usize = 32;
/// Bytes of a rehearsal's stack: plans recurse as deep as they are.
const STACK: usize = 64 << 20;

/// Compilation for one query. Dropping it drops what is still queued, and waits for what is under way, so that nothing of
/// a query goes on behind it.
#[derive(Debug)]
pub(crate) struct Ahead {
    device: Device,
    queue: Arc<Queue>,
    rehearsal: Option<JoinHandle<()>>,
}

/// Sources that wait for a compiler, and the compilers.
#[derive(Debug)]
pub(super) struct Queue {
    driver: Arc<dyn Driver>,
    cache: Arc<KernelCache>,
    counters: Arc<Counting>,
    most: usize,
    state: Mutex<State>,
    /// Something was queued, or the end has come.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Source>,
    compilers: Vec<JoinHandle<()>>,
    idle: usize,
    closed: bool,
}

impl Device {
    /// Begins to compile ahead for a query.
    pub(crate) fn ahead(&self) -> Ahead {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shared = &self.0;
        let queue = Arc::new(Queue {
            driver: shared.driver.clone(),
            cache: shared.cache.clone(),
            counters: shared.counters.clone(),
            most: cores.min(MOST_COMPILERS),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        Ahead { device: self.clone(), queue, rehearsal: None }
    }
}

impl Ahead {
    /// Queues sources, as far as the cache does not know them.
    pub(crate) fn ask(&self, sources: impl IntoIterator<Item = Source>) {
        for source in sources {
            self.queue.ask(&source);
        }
    }

    /// Runs `query` on a stand-in for the device, on a thread of its own. What comes of it is of no interest.
    pub(crate) fn rehearse(&mut self, query: impl FnOnce(Device) -> Result<()> + Send + 'static) {
        let stand_in = self.device.stand_in(self.queue.clone());
        let thread = std::thread::Builder::new().name("warpframe-rehearsal".into()).stack_size(STACK);
        // Without a thread the query compiles for itself.
        self.rehearsal = thread.spawn(move || drop(query(stand_in))).ok();
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        let compilers = {
            let mut state = self.queue.lock();
            state.closed = true;
            state.waiting.clear();
            std::mem::take(&mut state.compilers)
        };
        self.queue.changed.notify_all();
        for thread in self.rehearsal.take().into_iter().chain(compilers) {
            // A panic in a rehearsal is a bug that must not reach a user's query, and must not stay hidden in a test.
            if let (Err(panic), true) = (thread.join(), cfg!(debug_assertions) && !std::thread::panicking()) {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

impl Queue {
    /// Queues a source for whichever compiler is free, which may be a new one.
    fn ask(self: &Arc<Self>, source: &Source) {
        if self.cache.knows(source) {
            return;
        }
        let mut state = self.lock();
        if state.closed || state.waiting.iter().any(|waiting| waiting.text == source.text) {
            return;
        }
        state.waiting.push_back(source.clone());
        if state.idle < state.waiting.len() && state.compilers.len() < self.most {
            let queue = self.clone();
            let thread = std::thread::Builder::new().name("warpframe-compiler".into());
            // Without a thread the query compiles for itself.
            state.compilers.extend(thread.spawn(move || queue.compile()));
        }
        self.changed.notify_one();
    }

    /// The same for a rehearsal, which ends where its query has ended.
    pub(super) fn rehearsed(self: &Arc<Self>, source: &Source) -> Result<()> {
        self.ask(source);
        match self.lock().closed {
            true => Err(Error::unsupported("a rehearsal", "its query has ended")),
            false => Ok(()),
        }
    }

    /// What a compiler does.
    fn compile(&self) {
        let mut state = self.lock();
        loop {
            if let Some(source) = state.waiting.pop_front() {
                drop(state);
                // Who needs the kernel will fail as this did, and say so.
                let _ = self.cache.prepare(&*self.driver, &self.counters, &source);
                state = self.lock();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
                state.idle -= 1;
            }
        }
    }

    /// Poisoning is ignored: the state is valid between statements.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests;
