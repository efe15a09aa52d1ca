//! Statements that are stopped before they are done: by
//! `Session::interrupt`, or because they took longer than they may.
//!
//! A statement is what runs on a thread between [`Running::enter`] and its end. Whatever takes
//! long looks at [`check`] as it goes: before each allocation, launch and wait of the device, and
//! while something is waited for. On other threads, which help a statement, it is entered again.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::error::{Error, ErrorKind, Result};
use crate::secret::seeded_secret;

/// How often what waits for something else looks.
pub const PACE: Duration = Duration::from_millis(5);

/// Stops the statements of a session.
#[derive(Debug, Default)]
pub struct Switch {
    interrupts: AtomicU64,
    /// Nanoseconds that a statement may take; 0 where it may take any time.
    timeout: AtomicU64,
    told: Notify,
}

impl Switch {
    /// Stops the statements that run now.
    pub fn interrupt(&self) {
        self.interrupts.fetch_add(1, Relaxed);
        self.told.notify_waiters();
    }

    /// Limits the time of statements that begin from now on.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        let nanos = timeout
            .map_or(0, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX).max(1));
        self.timeout.store(nanos, Relaxed);
    }

    pub fn timeout(&self) -> Option<Duration> {
        Some(self.timeout.load(Relaxed)).filter(|nanos| *nanos > 0).map(Duration::from_nanos)
    }
}

/// A statement that runs.
#[derive(Debug, Clone)]
pub struct Running {
    switch: Arc<Switch>,
    /// Interrupts before it began.
    before: u64,
    /// When it has to be done, and how long it may take.
    limit: Option<(Instant, Duration)>,
    /// Whether nobody waits for it any more.
    abandoned: Arc<AtomicBool>,
    /// The seed of its random numbers, if it was given one.
    draws: Option<Arc<Draws>>,
}

/// A seed, and how many seeds were drawn from it.
#[derive(Debug)]
struct Draws {
    seed: u64,
    drawn: AtomicU64,
}

/// Stops one statement when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct StopOnDrop {
    switch: Arc<Switch>,
    abandoned: Arc<AtomicBool>,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.abandoned.store(true, Relaxed);
        self.switch.told.notify_waiters();
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// What ends a statement's time on a thread when it is dropped.
#[must_use]
pub struct Entered(Option<Running>);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

impl Running {
    /// A statement that begins now, or the one that this thread is in.
    pub fn begin(switch: &Arc<Switch>) -> Running {
        current().unwrap_or_else(|| Running::apart(switch))
    }

    /// A statement that begins now, and outlives the one that this thread may be in.
    pub fn apart(switch: &Arc<Switch>) -> Running {
        Running {
            switch: switch.clone(),
            before: switch.interrupts.load(Relaxed),
            limit: switch
                .timeout()
                .and_then(|limit| Some((Instant::now().checked_add(limit)?, limit))),
            abandoned: Arc::default(),
            draws: None,
        }
    }

    /// The statement with a seed for its random numbers: run again, it draws the same ones.
    pub fn drawing(self, seed: u64) -> Running {
        Running { draws: Some(Arc::new(Draws { seed, drawn: AtomicU64::new(0) })), ..self }
    }

    /// What stops this statement, and no other, once it is dropped.
    pub fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop { switch: self.switch.clone(), abandoned: self.abandoned.clone() }
    }

    /// Until what this yields is dropped, this thread is in the statement.
    pub fn enter(&self) -> Entered {
        Entered(CURRENT.replace(Some(self.clone())))
    }

    /// Fails where the statement is to stop.
    pub fn check(&self) -> Result<()> {
        if self.switch.interrupts.load(Relaxed) != self.before || self.abandoned.load(Relaxed) {
            return Err(ErrorKind::Interrupted { timeout: None }.into());
        }
        match self.limit {
            Some((end, timeout)) if Instant::now() >= end => {
                Err(ErrorKind::Interrupted { timeout: Some(timeout) }.into())
            }
            _ => Ok(()),
        }
    }

    /// Waits until the statement is to stop.
    async fn stopped(&self) -> Error {
        loop {
            // Registered before it is looked at: nothing is missed between the two.
            let told = self.switch.told.notified();
            if let Err(error) = self.check() {
                return error;
            }
            match self.limit {
                Some((end, _)) => {
                    let _ = tokio::time::timeout_at(end.into(), told).await;
                }
                None => told.await,
            }
        }
    }

    /// The future, polled in the statement on whichever thread.
    pub async fn around<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|context| {
            let _entered = self.enter();
            future.as_mut().poll(context)
        })
        .await
    }

    /// What the future yields, or that the statement was to stop before; then the future is
    /// dropped.
    pub async fn or_stop<T, E: From<Error>>(
        &self,
        future: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        tokio::select! {
            biased;
            error = self.stopped() => Err(error.into()),
            done = future => done,
        }
    }
}

/// The statement that this thread is in.
pub fn current() -> Option<Running> {
    CURRENT.with_borrow(Clone::clone)
}

/// The next seed that the statement of this thread draws; `None` if it was given no seed.
pub fn drawn_seed() -> Option<u64> {
    CURRENT.with_borrow(|current| {
        let draws = current.as_ref()?.draws.as_ref()?;
        Some(seeded_secret(draws.seed, draws.drawn.fetch_add(1, Relaxed)))
    })
}

/// Fails where the statement that this thread is in is to stop.
pub fn check() -> Result<()> {
    CURRENT.with_borrow(|current| current.as_ref().map_or(Ok(()), Running::check))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_run_are_stopped_and_later_ones_are_not() {
        let switch = Arc::<Switch>::default();
        assert!(check().is_ok());
        let first = Running::begin(&switch);
        let entered = first.enter();
        assert!(check().is_ok());
        switch.interrupt();
        assert!(matches!(check().unwrap_err().kind(), ErrorKind::Interrupted { timeout: None }));
        // A statement within a statement is that one.
        assert!(Running::begin(&switch).check().is_err());
        drop(entered);
        assert!(check().is_ok() && Running::begin(&switch).check().is_ok());
    }

    #[test]
    fn futures_are_left_when_their_time_is_over() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let switch = Arc::<Switch>::default();
        let limit = Duration::from_millis(20);
        switch.set_timeout(Some(limit));
        let statement = Running::begin(&switch);
        let error =
            runtime.block_on(statement.or_stop(std::future::pending::<Result<()>>())).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Interrupted { timeout: Some(of) } if *of == limit),
            "{error:?}"
        );
        switch.set_timeout(None);
        let statement = Running::begin(&switch);
        let other = switch.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            other.interrupt();
        });
        let error =
            runtime.block_on(statement.or_stop(std::future::pending::<Result<()>>())).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Interrupted { timeout: None }), "{error:?}");
        thread.join().unwrap();
        assert_eq!(
            runtime.block_on(Running::begin(&switch).or_stop(async { Ok::<_, Error>(3) })).unwrap(),
            3
        );
    }
}
