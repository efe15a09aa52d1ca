//! Rows of the CPU engine for who takes them as they come, such as a writer of files: they are
//! never in memory as a whole.

use std::panic::{AssertUnwindSafe, catch_unwind};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::logical_expr::LogicalPlan;
use futures::StreamExt;

use super::run::without_metadata;
use super::threads::on_thread;
use super::{Core, ordered};
use crate::error::Result;
use crate::exec::CpuRun;
use crate::io::Reading;
use warpframe_device::interrupt::Running;

/// Batches of one schema, one after the other.
pub(crate) type StreamedBatches<'a> = &'a mut dyn Iterator<Item = Result<RecordBatch>>;

impl Core {
    /// Runs a plan on the CPU engine and has `take` take its rows, in a statement of their own.
    /// Where files changed meanwhile the last batch is an error, and `take` begins anew.
    ///
    /// # Errors
    /// Those of the plan and of `take`.
    pub(crate) fn stream<T: Send>(
        &self,
        plan: &LogicalPlan,
        take: impl Fn(&SchemaRef, StreamedBatches<'_>) -> Result<T> + Sync,
    ) -> Result<T> {
        let statement = Running::begin(&self.switch);
        on_thread(|| {
            let _entered = statement.enter();
            let plan = &*self.with_shared_rows(plan, |rows| self.run_once(rows))?;
            let mut round = 1;
            loop {
                let reading = self.wait(&statement, Reading::begin(&self.state(), plan))?;
                let streamed = || self.stream_once(&statement, &reading, plan, &take);
                let taken = catch_unwind(AssertUnwindSafe(streamed));
                match taken.unwrap_or_else(|panic| Err(reading.of_panic(panic.as_ref()))) {
                    Err(_) if round < Reading::PATIENCE && reading.changed().is_some() => {
                        round += 1
                    }
                    Err(error) => {
                        let state = self.state();
                        let diagnosed =
                            async { Ok(crate::io::diagnose(error, &state, plan).await) };
                        return Err(self.wait(&statement, diagnosed)?);
                    }
                    taken => return taken,
                }
            }
        })
    }

    fn stream_once<T>(
        &self,
        statement: &Running,
        reading: &Reading,
        plan: &LogicalPlan,
        take: impl Fn(&SchemaRef, StreamedBatches<'_>) -> Result<T>,
    ) -> Result<T> {
        let state = self.state();
        let (physical, state) = self.wait(statement, async {
            ordered::physical_plan(&state, &self.optimize(&state, plan)?).await
        })?;
        let schema = without_metadata(&physical.schema());
        // Operators begin in the runtime.
        let run = CpuRun::new(physical, &self.cpu_board)?;
        let mut batches = self.wait(statement, async { run.stream(&state) })?;
        let mut ended = false;
        let mut rows = std::iter::from_fn(|| {
            if ended {
                return None;
            }
            match self.wait(statement, async { batches.next().await.transpose() }) {
                Ok(Some(batch)) => Some(batch.with_schema(schema.clone()).map_err(Into::into)),
                Ok(None) => {
                    ended = true;
                    reading.changed().map(Err)
                }
                Err(error) => {
                    ended = true;
                    Some(Err(error))
                }
            }
        });
        take(&schema, &mut rows)
    }

    /// Waits for a future on this thread, which is in the statement and in no runtime.
    fn wait<T>(&self, statement: &Running, future: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(statement.or_stop(future))
    }
}
