//! Threads that compile sources one after another, started as there is work for them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, Weak};
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

    /// Has them [closed](Self::close) when the process ends, if they still are there then: a device in a static variable is never
    /// dropped, and libraries take themselves apart at the end, compilers too, whoever is in them.
    pub(super) fn close_at_exit(self: &Arc<Self>) {
        static REGISTERED: Once = Once::new();
        let mut open = open_at_exit();
        open.retain(|compilers| compilers.strong_count() > 0);
        open.push(Arc::downgrade(self));
        REGISTERED.call_once(|| {
            // SAFETY: takes a function that may be called at the end, which only waits for threads. Where there is no room for one
            // more, the process ends as it would have. Libraries loaded before are taken apart after it.
            let _ = unsafe { libc::atexit(close_all) };
        });
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

/// Those to close when the process ends.
fn open_at_exit() -> MutexGuard<'static, Vec<Weak<Compilers>>> {
    static OPEN: Mutex<Vec<Weak<Compilers>>> = Mutex::new(Vec::new());
    OPEN.lock().unwrap_or_else(|e| e.into_inner())
}

extern "C" fn close_all() {
    let open = std::mem::take(&mut *open_at_exit());
    close_those(&open);
}

fn close_those(open: &[Weak<Compilers>]) {
    open.iter().filter_map(Weak::upgrade).for_each(|compilers| compilers.close());
}

/// Waits for a thread's end.
pub(super) fn join(thread: JoinHandle<()>) {
    // A panic in a helper is a bug that must not reach a user's query, and must not stay hidden in a test.
    if let (Err(panic), true) = (thread.join(), cfg!(debug_assertions) && !std::thread::panicking()) {
        std::panic::resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    use super::*;

    fn slow(most: usize) -> (Arc<Compilers>, Arc<AtomicUsize>) {
        let done = Arc::<AtomicUsize>::default();
        let counted = done.clone();
        let compilers = Compilers::new(most, move |_| {
            std::thread::sleep(Duration::from_millis(5));
            counted.fetch_add(1, SeqCst);
        });
        (compilers, done)
    }

    fn source(number: usize) -> Source {
        Source::new("any", format!("text {number}"))
    }

    #[test]
    fn everything_asked_for_is_done_once_settled() {
        let (compilers, done) = slow(3);
        compilers.settle();
        (0..20).for_each(|number| compilers.ask(&source(number)));
        compilers.settle();
        assert_eq!(done.load(SeqCst), 20);
        compilers.ask(&source(0));
        compilers.close();
        assert!(done.load(SeqCst) <= 21 && compilers.closed());
    }

    #[test]
    fn the_end_of_the_process_waits_for_what_is_under_way_and_drops_the_rest() {
        let (compilers, done) = slow(2);
        compilers.close_at_exit();
        let this = Arc::downgrade(&compilers);
        assert!(open_at_exit().iter().any(|open| open.ptr_eq(&this)));
        (0..50).for_each(|number| compilers.ask(&source(number)));
        // Not those of tests beside this one.
        close_those(&[this]);
        let finished = done.load(SeqCst);
        assert!(compilers.closed() && finished < 50);
        compilers.ask(&source(0));
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(done.load(SeqCst), finished, "nothing goes on");
    }
}
