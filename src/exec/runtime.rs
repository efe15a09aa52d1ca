//! A session's threads, and their end.
//!
//! Where they are told to end, nobody may wait who is inside another runtime; and they may not be
//! detached. glibc looks at a thread once more after it has detached it, when its stack may be gone
//! already (bug 19951, glibc 2.39's `pthread_detach`: a compare and swap of `joinid`, then a load
//! of `cancelhandling`): a process in which sessions came and went ended so, by a segmentation
//! fault. So a thread that stays joins them.

use std::sync::{LazyLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::{Error, Result};

/// How long an end may take before it is left to itself.
const PATIENCE: Duration = Duration::from_secs(60);
const STACK: usize = 16 << 20;

/// Threads for futures. Dropping it does not wait for them.
pub(crate) struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    pub(crate) fn new() -> Result<Runtime> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("warpframe-worker")
            .thread_stack_size(STACK)
            .enable_all()
            .build()
            .map_err(|error| Error::io("", error))?;
        Ok(Runtime(Some(runtime)))
    }

    /// Does something on a thread for work that blocks. What this yields can be waited for inside
    /// of any runtime.
    pub(crate) fn spawn_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.0.as_ref().expect("taken only by drop").spawn_blocking(work)
    }

    /// Waits for a future; not to be called inside of a runtime.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("taken only by drop").block_on(future)
    }
}

/// What is waited for behind those who are done with it.
enum Unawaited {
    Runtime(tokio::runtime::Runtime),
    Thread(JoinHandle<()>),
}

/// Gives it to the thread that waits; back where there is none.
fn wait_for(ended: Unawaited) -> Option<Unawaited> {
    static ENDS: LazyLock<Option<mpsc::Sender<Unawaited>>> = LazyLock::new(|| {
        let (sender, ended) = mpsc::channel::<Unawaited>();
        let join = move || {
            // A thread that takes long is not in the way of others that end.
            let mut threads: Vec<JoinHandle<()>> = vec![];
            for ended in ended {
                match ended {
                    Unawaited::Runtime(runtime) => runtime.shutdown_timeout(PATIENCE),
                    Unawaited::Thread(thread) => threads.push(thread),
                }
                for thread in threads.extract_if(.., |thread| thread.is_finished()) {
                    // Whoever started it was told of a panic, or has left.
                    let _ = thread.join();
                }
            }
        };
        let thread = std::thread::Builder::new().name("warpframe-end".into());
        thread.spawn(join).ok().map(|_| sender)
    });
    match &*ENDS {
        Some(sender) => sender.send(ended).err().map(|unsent| unsent.0),
        None => Some(ended),
    }
}

/// Has a thread joined that nobody waits for.
pub(crate) fn join_later(thread: JoinHandle<()>) {
    // Without the thread that does there is no other way than to detach it.
    drop(wait_for(Unawaited::Thread(thread)));
}

impl Drop for Runtime {
    fn drop(&mut self) {
        let Some(runtime) = self.0.take() else { return };
        // Without that thread there is no other way.
        if let Some(Unawaited::Runtime(runtime)) = wait_for(Unawaited::Runtime(runtime)) {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use super::*;

    /// A runtime whose tasks hold `alive` for as long as its threads are there: one that never
    /// ends, and one that blocks.
    fn holding(alive: &Arc<()>, blocking: Duration) -> Runtime {
        let runtime = Runtime::new().expect("the system gives threads");
        let (pending, blocked) = (alive.clone(), alive.clone());
        let enter = runtime.0.as_ref().expect("taken only by drop").enter();
        tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(pending);
        });
        tokio::task::spawn_blocking(move || {
            std::thread::sleep(blocking);
            drop(blocked);
        });
        drop(enter);
        runtime
    }

    #[test]
    fn threads_end_though_nobody_waits() {
        let alive = Arc::new(());
        let busy = holding(&alive, Duration::from_millis(500));
        let begin = Instant::now();
        drop(busy);
        assert!(begin.elapsed() < Duration::from_millis(400), "who drops a runtime waits for it");
        // Where waiting is forbidden.
        let outer = Runtime::new().expect("the system gives threads");
        let inner: Vec<_> = (0..20).map(|_| holding(&alive, Duration::ZERO)).collect();
        outer.block_on(async { drop(inner) });
        while Arc::strong_count(&alive) > 1 {
            assert!(begin.elapsed() < PATIENCE, "{} tasks are left", Arc::strong_count(&alive) - 1);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
