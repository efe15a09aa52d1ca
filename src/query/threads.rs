//! The threads that statements run on: their stacks suffice for deep plans, and who waits may be
//! within a runtime.

use std::cell::Cell;
use std::sync::mpsc;

use super::Core;
use crate::error::{Error, Result};
use crate::exec::join_later;
use crate::io::of_panic;
use warpframe_device::interrupt::{self, PACE, Running};

impl Core {
    /// Does something as a statement, or as a part of the one that this thread is in.
    pub(crate) fn as_statement<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let statement = Running::begin(&self.switch);
        let _entered = statement.enter();
        work()
    }

    /// Does something as a statement on a thread whose stack suffices for all that the parser
    /// takes.
    pub(crate) fn deep<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let statement = Running::begin(&self.switch);
        let work = || {
            let _entered = statement.enter();
            work()
        };
        match IS_DEEP.get() {
            true => work(),
            false => on_thread(|| {
                IS_DEEP.set(true);
                work()
            }),
        }
    }

    /// Does something as a statement on a thread of the session's. Dropping the future stops the
    /// statement.
    pub(crate) async fn as_background<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let statement = Running::begin(&self.switch);
        let _stop = statement.stop_on_drop();
        let done = self.runtime.spawn_blocking(move || {
            let _entered = statement.enter();
            work()
        });
        match done.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => Err(of_panic("a query in the background", panic.as_ref())),
                Err(error) => Err(Error::internal(format!("a query in the background: {error}"))),
            },
        }
    }

    /// Waits for a future on a thread of its own: the caller may itself be inside a runtime, where
    /// waiting is forbidden, and deep plans recurse deeper than a small caller's stack allows. The
    /// future is dropped where the statement is to stop; a panic becomes an error.
    pub(crate) fn block_on<T: Send>(
        &self,
        future: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let runtime = &self.runtime;
        let statement = Running::begin(&self.switch);
        on_thread(|| {
            let _entered = statement.enter();
            runtime.block_on(statement.or_stop(future))
        })
    }
}

thread_local! {
    /// Whether this thread is one of [`Core::deep`].
    static IS_DEEP: Cell<bool> = const { Cell::new(false) };
}

/// Does something that takes long without a look at the switch on a thread of its own, which is left
/// to itself where the statement of this one is to stop. It is in the same statement: it ends where
/// it looks.
pub(crate) fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let Some(statement) = interrupt::current() else { return work() };
    let (sender, made) = mpsc::channel();
    let within = statement.clone();
    let thread = query_thread().spawn(move || {
        let _entered = within.enter();
        // Nobody waits for it any more where the statement was stopped.
        let _ = sender.send(work());
    });
    let thread = thread.map_err(|error| Error::io("", error))?;
    loop {
        match made.recv_timeout(PACE) {
            Ok(made) => {
                join_later(thread);
                return made;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if let Err(error) = statement.check() {
                    join_later(thread);
                    return Err(error.into());
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(match thread.join() {
                    Err(panic) => of_panic("planning", panic.as_ref()),
                    Ok(()) => Error::internal("planning ended without a plan"),
                });
            }
        }
    }
}

/// A thread whose stack suffices for deep plans.
pub(super) fn query_thread() -> std::thread::Builder {
    const STACK: usize = 64 << 20;
    std::thread::Builder::new().name("warpframe-query".into()).stack_size(STACK)
}

/// Does something on a thread of its own, whose stack suffices for deep plans; a panic becomes an
/// error.
pub(super) fn on_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| match query_thread().spawn_scoped(scope, work) {
        Ok(thread) => {
            thread.join().unwrap_or_else(|panic| Err(of_panic("planning", panic.as_ref())))
        }
        Err(error) => Err(Error::io("", error)),
    })
}
