//! Rows of the CPU engine for who takes them when it likes, such as a terminal or a pipe: the query
//! runs on a thread of its own, and waits where nobody takes its rows.
//!
//! What was handed over cannot be taken back. So where types of columns were inferred from a sample,
//! the first rows are held back. If the answer is larger than that, all values of these columns are
//! looked at, once, before the first row leaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::logical_expr::LogicalPlan;

use super::Core;
use super::streamed::StreamedBatches;
use super::threads::query_thread;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::join_later;
use crate::io::{bytes_of, scans_of_sampled_types, widen};
use crate::plan::with_present_types;
use warpframe_device::interrupt::{self, PACE, Running, StopOnDrop};

/// Batches that wait to be taken.
const WAITING: usize = 4;
/// Bytes of rows that are held back while values may not fit the types of their columns.
const HELD_BYTES: usize = 64 << 20;

/// Rows that a query hands over. Dropping it stops the query.
#[derive(Debug)]
pub(crate) struct HandedRows {
    pub(crate) schema: SchemaRef,
    batches: Receiver<Result<Handed>>,
    thread: Option<JoinHandle<()>>,
    _stop: StopOnDrop,
}

#[derive(Debug)]
enum Handed {
    /// Comes first.
    Schema(SchemaRef),
    Rows(RecordBatch),
    /// Comes last, unless an error does.
    End,
}

impl Iterator for HandedRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match received(&self.batches) {
            Ok(Handed::Rows(batch)) => Some(Ok(batch)),
            Ok(Handed::End) => None,
            Ok(Handed::Schema(_)) => Some(Err(Error::internal("a query has two schemas"))),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Drop for HandedRows {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            join_later(thread);
        }
    }
}

/// Waits for what comes next, as long as the statement of this thread is not to stop.
fn received(from: &Receiver<Result<Handed>>) -> Result<Handed> {
    loop {
        match from.recv_timeout(PACE) {
            Ok(handed) => return handed,
            Err(RecvTimeoutError::Timeout) => interrupt::check()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::internal("a query ended without its last row"));
            }
        }
    }
}

/// What became of rows that were to be handed over.
enum Giving {
    /// Nobody waits for more.
    Done,
    /// It failed, with rows handed over.
    Failed(Error),
    /// Nothing was handed over: this value did not fit, and columns have wider types now.
    Wider(Error),
}

/// Who hands rows over.
struct Giver {
    core: Arc<Core>,
    to: SyncSender<Result<Handed>>,
    has_begun: AtomicBool,
}

impl Core {
    /// Begins a plan on the CPU engine, and waits for what its first row tells.
    ///
    /// # Errors
    /// Those of the plan up to its first row.
    pub(crate) fn handed_rows(self: &Arc<Core>, plan: LogicalPlan) -> Result<HandedRows> {
        let (to, batches) = sync_channel(WAITING);
        let giver = Giver { core: self.clone(), to, has_begun: AtomicBool::new(false) };
        let statement = Running::apart(&self.switch);
        let stop = statement.stop_on_drop();
        let thread = query_thread().spawn(move || {
            let _entered = statement.enter();
            // Nobody may wait for it.
            let _ = giver.to.send(giver.give(plan).map(|()| Handed::End));
        });
        let thread = Some(thread.map_err(|error| Error::io("", error))?);
        let mut rows =
            HandedRows { schema: Arc::new(Schema::empty()), batches, thread, _stop: stop };
        match received(&rows.batches)? {
            Handed::Schema(schema) => rows.schema = schema,
            _ => return Err(Error::internal("a query ended without a schema")),
        }
        Ok(rows)
    }

    /// Looks at all values that the scans of a plan read and that may not fit the types of their
    /// columns, and gives these wider types: the first that did not fit.
    pub(super) fn made_certain(&self, plan: &LogicalPlan) -> Result<Option<Error>> {
        let optimized = self.optimize(&self.state(), plan)?;
        let mut first = None;
        for mut scan in scans_of_sampled_types(&optimized) {
            // Other errors are of rows that the query may not ask for.
            while let Err(error) = self.stream(&scan, |_, mut batches| {
                (&mut batches).try_for_each(|batch| batch.map(drop))
            }) && error.misfit().is_some()
            {
                let wider = widen(&scan)?;
                let Some(again) =
                    with_present_types(&scan)?.filter(|again| wider || *again != scan)
                else {
                    return Err(error);
                };
                scan = again;
                first.get_or_insert(error);
            }
        }
        Ok(first)
    }
}

impl Giver {
    fn give(&self, mut plan: LogicalPlan) -> Result<()> {
        let mut misfit: Option<Error> = None;
        loop {
            let gave =
                self.core.stream(&plan, |schema, batches| self.hand_over(&plan, schema, batches));
            let error = match gave {
                Ok(Giving::Done) => return Ok(()),
                Ok(Giving::Failed(error)) => {
                    let state = self.core.state();
                    let diagnosed = crate::io::diagnose(error, &state, &plan);
                    return Err(self.core.block_on(async { Ok(diagnosed.await) })?);
                }
                Ok(Giving::Wider(error)) => error,
                Err(error) if error.misfit().is_some() => {
                    self.core.made_certain(&plan)?.unwrap_or(error)
                }
                // What was asked may not be asked of the wider type: then the value is the cause.
                Err(error) if matches!(error.kind(), ErrorKind::Plan { .. }) => {
                    return Err(misfit.unwrap_or(error));
                }
                Err(error) => return Err(error),
            };
            match with_present_types(&plan) {
                Ok(Some(again)) if again != plan => plan = again,
                _ => return Err(error),
            }
            misfit = Some(error);
        }
    }

    fn hand_over(
        &self,
        plan: &LogicalPlan,
        schema: &SchemaRef,
        batches: StreamedBatches<'_>,
    ) -> Result<Giving> {
        if self.has_begun.load(Relaxed) {
            return Err(Error::internal("rows are handed over twice"));
        }
        let mut is_certain = scans_of_sampled_types(plan).is_empty();
        let (mut held, mut bytes) = (vec![], 0);
        for batch in batches {
            let batch = match batch {
                Err(error) if self.has_begun.load(Relaxed) => return Ok(Giving::Failed(error)),
                batch => batch?,
            };
            if !is_certain {
                bytes += bytes_of(&batch);
                held.push(batch);
                if bytes <= HELD_BYTES {
                    continue;
                }
                if let Some(error) = self.core.made_certain(plan)? {
                    return Ok(Giving::Wider(error));
                }
                is_certain = true;
            } else {
                held.push(batch);
            }
            if !self.send_all(schema, &mut held) {
                return Ok(Giving::Done);
            }
        }
        self.send_all(schema, &mut held);
        Ok(Giving::Done)
    }

    /// Sends rows, behind the schema where they are the first. Whether somebody waits for more.
    fn send_all(&self, schema: &SchemaRef, held: &mut Vec<RecordBatch>) -> bool {
        let mut goes_on = true;
        if !self.has_begun.swap(true, Relaxed) {
            goes_on = self.send(Handed::Schema(schema.clone()));
        }
        for batch in held.drain(..) {
            goes_on = goes_on && self.send(Handed::Rows(batch));
        }
        goes_on
    }

    /// Whether somebody waits for it.
    fn send(&self, handed: Handed) -> bool {
        self.to.send(Ok(handed)).is_ok()
    }
}
