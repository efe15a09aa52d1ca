//! Threads that compile sources one after another, started as there is work for them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use super::Source;

/// Sources that wait, and the threads that take them.
pub(super) struct Compilers {
    /// What is done with a source.
    work: Box<dyn Fn(&Source) + Send + Sync>,
    /// Most threads.
    most: usize,
    state: Mutex<State>,
    /// Something was queued, a thread has nothing to do, or the end has come.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Source>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    closed: bool,
}

impl Compilers {
    pub(super) fn new(most: usize, work: impl Fn(&Source) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Compilers { work: Box::new(work), most, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Queues a source for whichever thread is free, which may be a new one; nothing where it waits already, or after the end.
    pub(super) fn ask(self: &Arc<Self>, source: &Source) {
        let mut state = self.lock();
        if state.closed || state.waiting.iter().any(|waiting| waiting.text == source.text) {
            return;
        }
        state.waiting.push_back(source.clone());
        if state.idle < state.waiting.len() && state.threads.len() < self.most {
            let compilers = self.clone();
            let thread = std::thread::Builder::new().name("warpframe-compiler".into());
            // Without a thread nobody takes it: who needs the kernel does without this help.
            state.threads.extend(thread.spawn(move || compilers.run()));
        }
        self.changed.notify_all();
    }

    pub(super) fn closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits until nothing is queued or under way.
    pub(super) fn settle(&self) {
        let mut state = self.lock();
        while !state.closed
            && !state.threads.is_empty()
            && (!state.waiting.is_empty() || state.idle < state.threads.len())
        {
            state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Drops what is queued and waits for what is under way.
    pub(super) fn close(&self) {
        let threads = {
            let mut state = self.lock();
            state.closed = true;
            state.waiting.clear();
            std::mem::take(&mut state.threads)
        };
        self.changed.notify_all();
        threads.into_iter().for_each(join);
    }

    /// What a thread does.
    fn run(&self) {
        let mut state = self.lock();
        loop {
            if let Some(source) = state.waiting.pop_front() {
                drop(state);
                (self.work)(&source);
                state = self.lock();
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                self.changed.notify_all();
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

impl fmt::Debug for Compilers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compilers").field("most", &self.most).field("state", &*self.lock()).finish_non_exhaustive()
    }
}

/// Waits for a thread's end.
pub(super) fn join(thread: JoinHandle<()>) {
    // A panic in a helper is a bug that must not reach a user's query, and must not stay hidden in a test.
    if let (Err(panic), true) = (thread.join(), cfg!(debug_assertions) && !std::thread::panicking()) {
        std::panic::resume_unwind(panic);
    }
}
