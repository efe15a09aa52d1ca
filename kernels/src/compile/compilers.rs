//! Threads that compile sources one after another, started as there is work for them.

use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Once, Weak, mpsc};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::KernelSource;
use crate::end::at_end;
use crate::error::{Error, Result};
use crate::interrupt;

thread_local! {
    /// Of a thread that compiles: whether anybody still wants what it does.
    static CANCELLED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// The flag that says that nobody wants what this thread compiles any more. `None` on threads that
/// compile for a query of their own.
pub(crate) fn cancelled() -> Option<Arc<AtomicBool>> {
    CANCELLED.with_borrow(Clone::clone)
}

/// Sources that wait, and the threads that take them.
pub(crate) struct Compilers {
    /// What is done with a source.
    work: Box<dyn Fn(&KernelSource) + Send + Sync>,
    /// Most threads.
    most: usize,
    state: Mutex<CompilerState>,
    /// Something was queued, a thread has nothing to do, or the end has come.
    changed: Condvar,
    /// The end has come: nobody wants what is under way.
    cancelled: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct CompilerState {
    waiting: VecDeque<KernelSource>,
    under_way: Vec<KernelSource>,
    threads: Vec<JoinHandle<()>>,
    idle: usize,
    closed: bool,
    /// What a thread's work panicked with; the thread goes on.
    panic: Option<Box<dyn Any + Send>>,
}

impl Compilers {
    pub(crate) fn new(
        most: usize,
        work: impl Fn(&KernelSource) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Compilers {
            work: Box::new(work),
            most,
            state: Mutex::default(),
            changed: Condvar::new(),
            cancelled: Arc::default(),
        })
    }

    /// Queues a source for whichever thread is free, which may be a new one; nothing where it waits
    /// or is under way, or after the end.
    pub(crate) fn ask(self: &Arc<Self>, source: &KernelSource) {
        let mut state = self.state.lock();
        if state.closed
            || state.waiting.iter().chain(&state.under_way).any(|known| known.text == source.text)
        {
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

    pub(crate) fn closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Waits until nothing is queued or under way.
    pub(crate) fn settle(&self) {
        let at_work =
            |state: &CompilerState| !state.waiting.is_empty() || !state.under_way.is_empty();
        let mut state = self.state.lock();
        while !state.threads.is_empty() && at_work(&state) {
            self.changed.wait(&mut state);
        }
    }

    /// Drops what is queued, and cancels what is under way: it waits for the threads, not for their
    /// work where that can be cancelled.
    pub(crate) fn close(&self) {
        let threads = {
            let mut state = self.state.lock();
            state.closed = true;
            self.cancelled.store(true, Relaxed);
            state.waiting.clear();
            std::mem::take(&mut state.threads)
        };
        self.changed.notify_all();
        threads.into_iter().for_each(join);
        if let Some(panic) = self.state.lock().panic.take() {
            raise(panic);
        }
    }

    /// Has them [closed](Self::close) when the process ends, if they still are there then: a device
    /// in a static variable is never dropped, and libraries take themselves apart at the end,
    /// compilers too, whoever is in them.
    pub(crate) fn close_at_exit(self: &Arc<Self>) {
        static REGISTERED: Once = Once::new();
        let mut open = open_at_exit();
        open.retain(|compilers| compilers.strong_count() > 0);
        open.push(Arc::downgrade(self));
        REGISTERED.call_once(close_before_libraries);
    }

    /// What a thread does.
    fn run(&self) {
        CANCELLED.set(Some(self.cancelled.clone()));
        let mut state = self.state.lock();
        loop {
            if let Some(source) = state.waiting.pop_front() {
                state.under_way.push(source.clone());
                drop(state);
                let done = catch_unwind(AssertUnwindSafe(|| (self.work)(&source)));
                state = self.state.lock();
                state.panic = done.err().or(state.panic.take());
                state.under_way.retain(|other| other.text != source.text);
            } else if state.closed {
                return;
            } else {
                state.idle += 1;
                // For who waits until nothing is under way. Threads that it wakes have nothing to
                // say: they would wake each other for ever.
                self.changed.notify_all();
                while state.waiting.is_empty() && !state.closed {
                    self.changed.wait(&mut state);
                }
                state.idle -= 1;
            }
        }
    }
}

impl fmt::Debug for Compilers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compilers")
            .field("most", &self.most)
            .field("state", &*self.state.lock())
            .finish_non_exhaustive()
    }
}

/// What `work` yields, done on a thread of its own where a statement waits for it, which may have
/// to stop before. Then `stop` is set for the work, which goes on for nobody until it looks; the
/// process's end waits for it.
///
/// # Errors
/// `Interrupted`.
pub(crate) fn beside<T: Send + 'static>(
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    if interrupt::current().is_none() {
        return Ok(work());
    }
    let (sender, result) = mpsc::channel();
    let thread = std::thread::Builder::new().name("warpframe-compiler".into());
    let thread =
        thread.spawn(move || drop(sender.send(work()))).map_err(|error| Error::io("", error))?;
    loop {
        match result.recv_timeout(interrupt::PACE) {
            Ok(done) => {
                join(thread);
                return Ok(done);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                join(thread);
                return Err(Error::internal("a compiler's thread ended without a result"));
            }
        }
        if let Err(error) = interrupt::check() {
            stop.store(true, Relaxed);
            leave_behind(thread);
            return Err(error);
        }
    }
}

/// Has all compilers closed and their threads joined at the process's end, before the libraries are
/// taken apart that were loaded and used until now.
pub(crate) fn close_before_libraries() {
    at_end(join_left_behind);
    at_end(close_all);
}

/// Has a thread joined when the process ends, at the latest.
fn leave_behind(thread: JoinHandle<()>) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(close_before_libraries);
    let mut left = left_behind();
    let (done, others) = left.drain(..).partition(|other: &JoinHandle<()>| other.is_finished());
    *left = others;
    left.push(thread);
    drop(left);
    let done: Vec<JoinHandle<()>> = done;
    done.into_iter().for_each(join);
}

fn left_behind() -> MutexGuard<'static, Vec<JoinHandle<()>>> {
    static LEFT: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());
    LEFT.lock()
}

extern "C" fn join_left_behind() {
    let left = std::mem::take(&mut *left_behind());
    left.into_iter().for_each(|thread| drop(thread.join()));
}

/// Those to close when the process ends.
fn open_at_exit() -> MutexGuard<'static, Vec<Weak<Compilers>>> {
    static OPEN: Mutex<Vec<Weak<Compilers>>> = Mutex::new(Vec::new());
    OPEN.lock()
}

extern "C" fn close_all() {
    let open = std::mem::take(&mut *open_at_exit());
    close_those(&open);
}

fn close_those(open: &[Weak<Compilers>]) {
    open.iter().filter_map(Weak::upgrade).for_each(|compilers| compilers.close());
}

/// Waits for a thread's end.
pub(crate) fn join(thread: JoinHandle<()>) {
    if let Err(panic) = thread.join() {
        raise(panic);
    }
}

/// A panic in a helper is a bug that must not reach a user's query, and must not stay hidden in a
/// test.
fn raise(panic: Box<dyn Any + Send>) {
    if cfg!(debug_assertions) && !std::thread::panicking() {
        resume_unwind(panic);
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

    fn source(number: usize) -> KernelSource {
        KernelSource::new("any", format!("text {number}"))
    }

    #[test]
    fn everything_asked_for_is_done_once() {
        let (compilers, done) = slow(3);
        compilers.settle();
        (0..20).for_each(|number| compilers.ask(&source(number)));
        // Waiting or under way.
        (0..20).for_each(|number| compilers.ask(&source(number)));
        compilers.settle();
        let done_twice = done.load(SeqCst) - 20;
        assert!(done_twice <= 2, "only what was done by then: {done_twice}");
        compilers.ask(&source(0));
        compilers.close();
        assert!(done.load(SeqCst) <= 21 + done_twice && compilers.closed());
    }

    /// Each of the threads would wake the others, and they it.
    #[cfg(target_os = "linux")]
    #[test]
    fn threads_that_have_nothing_to_do_sleep() {
        let threads = Arc::<Mutex<Vec<std::path::PathBuf>>>::default();
        let seen = threads.clone();
        let compilers = Compilers::new(3, move |_| {
            let thread = std::fs::canonicalize("/proc/thread-self").unwrap();
            seen.lock().push(thread);
            std::thread::sleep(Duration::from_millis(30));
        });
        (0..3).for_each(|number| compilers.ask(&source(number)));
        compilers.settle();
        let switches = || -> u64 {
            let of_thread = |thread: &std::path::PathBuf| -> u64 {
                let status = std::fs::read_to_string(thread.join("status")).unwrap();
                let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
                line.unwrap().split_whitespace().last().unwrap().parse().unwrap()
            };
            threads.lock().iter().map(of_thread).sum()
        };
        assert!(threads.lock().len() == 3);
        std::thread::sleep(Duration::from_millis(20));
        let before = switches();
        std::thread::sleep(Duration::from_millis(200));
        assert!(switches() - before < 10, "{} times awake", switches() - before);
        compilers.close();
    }

    #[test]
    fn a_statement_that_stops_leaves_its_compiler_alone() {
        let switch = Arc::<interrupt::Switch>::default();
        assert_eq!(beside(&AtomicBool::new(false), || 3).unwrap(), 3);
        let statement = interrupt::Running::begin(&switch);
        let _entered = statement.enter();
        assert_eq!(beside(&AtomicBool::new(false), || 4).unwrap(), 4);
        let (goes_on, told) = mpsc::channel::<()>();
        let (sender, done) = mpsc::channel();
        switch.interrupt();
        let error = beside(&AtomicBool::new(false), move || {
            told.recv().unwrap();
            sender.send(()).unwrap();
        });
        assert!(matches!(error.unwrap_err().kind(), crate::ErrorKind::Interrupted { .. }));
        goes_on.send(()).unwrap();
        done.recv_timeout(Duration::from_secs(10)).expect("it was left, not stopped");
    }

    #[test]
    fn a_panic_is_told_at_the_end_and_stops_nothing() {
        let compilers = Compilers::new(1, |source| assert_ne!(source.text, "text 1", "a bug"));
        (0..3).for_each(|number| compilers.ask(&source(number)));
        compilers.settle();
        let told = catch_unwind(AssertUnwindSafe(|| compilers.close()));
        assert_eq!(told.is_err(), cfg!(debug_assertions));
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
