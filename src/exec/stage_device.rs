//! What the tasks of stages run on.

use std::fmt;
use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::Engine;
use super::runtime::Runtime;
use crate::error::{Error, Result};
use warpframe_device::interrupt::{Running, Switch};

/// A device, and the threads that wait for it.
#[derive(Clone)]
pub(crate) struct StageDevice {
    pub(crate) engine: Engine,
    pub(crate) runtime: Arc<Runtime>,
    /// Tasks run one after the other: each takes the device's memory for itself.
    turn: Arc<Semaphore>,
}

impl fmt::Debug for StageDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.engine.fmt(f)
    }
}

impl StageDevice {
    pub(crate) fn new(engine: Engine, runtime: Arc<Runtime>) -> StageDevice {
        StageDevice { engine, runtime, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Waits until no other task runs on the device. The next one waits until the permit is
    /// dropped.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>> {
        self.turn.acquire().await.map_err(|_| Error::internal("no turn comes"))
    }

    /// Does something as a statement, once the device is free, on a thread whose stack suffices for
    /// deep plans, and which may block. Its random numbers follow from the seed. Dropping the
    /// future stops the statement.
    pub(super) async fn on_own_thread<T: Send + 'static>(
        &self,
        seed: u64,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let _turn = self.turn().await?;
        let statement = Running::apart(&Arc::<Switch>::default()).drawing(seed);
        let _stop = statement.stop_on_drop();
        let runtime = self.runtime.clone();
        let done = self.runtime.spawn_blocking(move || {
            let _entered = statement.enter();
            runtime.block_on(statement.or_stop(work))
        });
        match done.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => Err(crate::io::of_panic("a stage", panic.as_ref())),
                Err(error) => Err(Error::internal(format!("a stage: {error}"))),
            },
        }
    }
}
