//! Runs the parts of divided rows, one after the other.

use std::sync::Arc;

use datafusion::logical_expr::Expr;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Divider;
use super::chunks::{InputChunks, PartInput, whole};
use super::exchange::HashParts;
use super::group::{DividedRows, PartGroup};
use super::run_over::run_over;
use super::sinks::{Parted, RowSink, RowStore};
use super::stored::StoredRows;
use crate::column::Relation;
use crate::error::{Error, Result};
use crate::exec::Engine;
use crate::plan::DevicePlan;
use warpframe_device::interrupt;

/// Rows of a chunk that is taken to be small beside the tables that ranges of keys may ask for.
const FEW_ROWS: u64 = 1 << 13;
/// Parts that a part becomes which is too large, and how often that is tried.
const PARTED_AGAIN: u32 = 8;
const MOST_ROUNDS: u64 = 4;

/// Bytes of the stack of a thread that reads.
const STACK: usize = 16 << 20;

/// A part that failed.
struct FailedPart {
    error: Error,
    /// Rows of it were taken already.
    began: bool,
}

impl Divider<'_> {
    /// Runs all parts, whose rows go to the sink in their order.
    ///
    /// # Errors
    /// Of a part; `OutOfDeviceMemory` where one does not fit and cannot be made smaller.
    pub(super) async fn run_parts(
        &mut self,
        rows: &DividedRows,
        sink: &mut dyn RowSink,
    ) -> Result<()> {
        let parts = rows.groups.iter().map(|group| group.parts.len() as u64).sum();
        self.progress.begin_step(parts, rows.rows_read());
        let ran = self.run_groups(rows, sink).await;
        match ran {
            Ok(()) => self.progress.end_step(),
            Err(_) => self.progress.leave_step(),
        }
        ran
    }

    async fn run_groups(&mut self, rows: &DividedRows, sink: &mut dyn RowSink) -> Result<()> {
        for group in &rows.groups {
            let plan = self.prepared(&group.plan)?;
            for part in &group.parts {
                if sink.is_full() {
                    return Ok(());
                }
                self.run_part(group, &plan, part, sink, 1).await?;
                if group.driving.is_none() {
                    self.progress.read_rows(group.rows_read(part).unwrap_or(0));
                }
                self.progress.part_ran();
            }
        }
        Ok(())
    }

    /// All rows, stored: on the device if they take no more than so much there.
    pub(super) async fn collect(&mut self, rows: &DividedRows, most: u64) -> Result<StoredRows> {
        let mut kept = RowStore::new(self.engine, &rows.schema, most);
        self.run_parts(rows, &mut kept).await?;
        Ok(kept.finish())
    }

    /// All rows, parted by a hash of keys.
    pub(super) async fn parted(
        &mut self,
        rows: &DividedRows,
        by: HashParts,
    ) -> Result<Vec<Arc<StoredRows>>> {
        let mut parted = Parted::new(self.engine, &rows.schema, by);
        self.run_parts(rows, &mut parted).await?;
        Ok(parted.finish())
    }

    fn run_part<'s>(
        &'s mut self,
        group: &'s PartGroup,
        plan: &'s Arc<DevicePlan>,
        part: &'s [PartInput],
        sink: &'s mut dyn RowSink,
        round: u64,
    ) -> BoxFuture<'s, Result<()>> {
        async move {
            let mut failed = match self.try_part(group, plan, part, sink, round > 1).await {
                Ok(()) => return Ok(()),
                Err(failed) => failed,
            };
            // What the sink holds may be what is missing.
            if !failed.began && failed.error.is_out_of_device_memory() && sink.make_room()? {
                failed = match self.try_part(group, plan, part, sink, round > 1).await {
                    Ok(()) => return Ok(()),
                    Err(failed) => failed,
                };
            }
            if failed.began || !failed.error.is_out_of_device_memory() {
                return Err(failed.error);
            }
            if let Some(keys) = group.keys.as_ref().filter(|_| round <= MOST_ROUNDS) {
                let smaller = self.parted_again(part, keys, round).await?;
                // Rows of one key stay together by any hash.
                if smaller.len() > 1 || group.whole.is_none() {
                    for part in smaller {
                        self.run_part(group, plan, &part, sink, round + 1).await?;
                    }
                    return Ok(());
                }
            }
            match &group.whole {
                Some(operator) => {
                    self.run_otherwise(group, operator, part, failed.error, sink).await
                }
                None => Err(failed.error),
            }
        }
        .boxed()
    }

    /// A part in smaller ones, by another hash of its keys.
    async fn parted_again(
        &mut self,
        part: &[PartInput],
        keys: &[Vec<Expr>],
        round: u64,
    ) -> Result<Vec<Vec<PartInput>>> {
        let mut smaller: Vec<Vec<PartInput>> = vec![vec![]; PARTED_AGAIN as usize];
        for (input, keys) in part.iter().zip(keys) {
            let PartInput::Stored(stored) = input else {
                return Err(Error::internal("a table's rows are not parted"));
            };
            let rows = DividedRows::stored(stored.as_ref().clone());
            let by = HashParts { keys: keys.clone(), parts: PARTED_AGAIN, round, seed: self.seed };
            let parts = self.parted(&rows, by).await?;
            smaller
                .iter_mut()
                .zip(parts)
                .for_each(|(part, stored)| part.push(PartInput::Stored(stored)));
        }
        smaller.retain(|part| {
            part.iter()
                .any(|input| !matches!(input, PartInput::Stored(stored) if stored.rows() == 0))
        });
        Ok(smaller)
    }

    async fn try_part(
        &mut self,
        group: &PartGroup,
        plan: &Arc<DevicePlan>,
        part: &[PartInput],
        sink: &mut dyn RowSink,
        again: bool,
    ) -> Result<(), FailedPart> {
        let loose = |relation| if again { without_ranges(relation) } else { relation };
        let first = |error| FailedPart { error, began: false };
        let mut inputs = vec![];
        for (number, input) in part.iter().enumerate() {
            inputs.push(match group.driving == Some(number) {
                true => None,
                false => Some(loose(whole(self, input).await.map_err(first)?)),
            });
        }
        let Some(driving) = group.driving else {
            let inputs: Vec<Relation> = inputs.into_iter().flatten().collect();
            return run_over(self.engine, plan, &inputs)
                .and_then(|table| sink.push(table))
                .map_err(first);
        };
        let mut run =
            ChunkRun { engine: self.engine, plan, inputs, driving, began: false, loose: again };
        let mut chunks = InputChunks::of(&part[driving]);
        let mut bytes = self.budget.chunk;
        let mut next = self.next_chunk(&mut chunks, &mut bytes, sink).await.map_err(first)?;
        while let Some(chunk) = next.take().filter(|_| !sink.is_full()) {
            let rows = chunk.rows;
            let (ran, read) = match self.budget.reads_ahead {
                true => self.run_and_read(&mut run, chunk.clone(), sink, &mut chunks, bytes),
                false => (run.run(chunk.clone(), sink), Ok(None)),
            };
            let failed = |began| move |error| FailedPart { error, began };
            let (ran, read) = match ran {
                Err(error) if error.is_out_of_device_memory() && self.budget.reads_ahead => {
                    // Not both at once, then.
                    self.budget.reads_ahead = false;
                    match read {
                        Ok(Some(next)) => {
                            drop(next);
                            chunks.unread();
                        }
                        Err(error) if !error.is_out_of_device_memory() => {
                            return Err(failed(run.began)(error));
                        }
                        _ => {}
                    }
                    (run.run(chunk, sink), Ok(None))
                }
                ran => (ran, read),
            };
            let least = ran.map_err(failed(run.began))?;
            self.progress.read_rows(rows);
            // What did not fit at once will not the next time.
            if least < rows {
                bytes = (bytes / (rows / least.max(1)).max(2)).max(1);
            }
            next = match read {
                Err(error) if !error.is_out_of_device_memory() => {
                    return Err(failed(run.began)(error));
                }
                Ok(next) if self.budget.reads_ahead => next,
                _ => self
                    .next_chunk(&mut chunks, &mut bytes, sink)
                    .await
                    .map_err(failed(run.began))?,
            };
        }
        Ok(())
    }

    /// The next chunk. Where there is no memory for it, the sink makes room; where that has none to
    /// make, the chunk becomes smaller.
    async fn next_chunk(
        &self,
        chunks: &mut InputChunks<'_>,
        bytes: &mut u64,
        sink: &mut dyn RowSink,
    ) -> Result<Option<Relation>> {
        loop {
            match chunks.next(self, *bytes).await {
                Err(error) if error.is_out_of_device_memory() => {
                    if !sink.make_room()? {
                        if *bytes <= 1 {
                            return Err(error);
                        }
                        *bytes /= 2;
                    }
                }
                read => return read,
            }
        }
    }

    /// Runs a chunk while another thread reads the next one.
    fn run_and_read(
        &self,
        run: &mut ChunkRun<'_>,
        chunk: Relation,
        sink: &mut dyn RowSink,
        chunks: &mut InputChunks<'_>,
        bytes: u64,
    ) -> (Result<u64>, Result<Option<Relation>>) {
        let (runtime, statement) = (tokio::runtime::Handle::current(), interrupt::current());
        let read = || {
            let _entered = statement.as_ref().map(|statement| statement.enter());
            let next = chunks.next(self, bytes);
            match &statement {
                Some(statement) => runtime.block_on(statement.or_stop(next)),
                None => runtime.block_on(next),
            }
        };
        std::thread::scope(|scope| {
            let thread =
                std::thread::Builder::new().name("warpframe-chunk".into()).stack_size(STACK);
            let reader = thread.spawn_scoped(scope, read);
            let ran = run.run_whole(chunk, sink);
            let read = match reader {
                Ok(reader) => {
                    reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                }
                Err(error) => Err(Error::internal(format!("the system gives no thread: {error}"))),
            };
            (ran, read)
        })
    }
}

/// Runs a plan over chunks of one input.
struct ChunkRun<'a> {
    engine: &'a Engine,
    plan: &'a DevicePlan,
    inputs: Vec<Option<Relation>>,
    driving: usize,
    began: bool,
    /// Nothing is said of the ranges of integers.
    loose: bool,
}

impl ChunkRun<'_> {
    /// Runs a chunk, in halves where it does not fit; rows of the smallest piece that was run.
    fn run(&mut self, chunk: Relation, sink: &mut dyn RowSink) -> Result<u64> {
        let rows = chunk.rows;
        let fails = match self.run_whole(chunk.clone(), sink) {
            Err(error) if error.is_out_of_device_memory() => error,
            ran => return ran,
        };
        if sink.make_room()? {
            return self.run(chunk, sink);
        }
        if rows <= FEW_ROWS && !self.loose {
            self.loose = true;
            // Those that stand beside the chunk, too: a join builds its table of them.
            self.inputs.iter_mut().for_each(|input| *input = input.take().map(without_ranges));
            return self.run(chunk, sink);
        }
        // A row may meet millions of another table.
        if rows <= 1 {
            return Err(fails);
        }
        let first = self.run(chunk.slice(0, Some(rows / 2)), sink)?;
        let second = self.run(chunk.slice(rows / 2, None), sink)?;
        Ok(first.min(second))
    }

    /// Runs a chunk at once; its rows.
    fn run_whole(&mut self, chunk: Relation, sink: &mut dyn RowSink) -> Result<u64> {
        let rows = chunk.rows;
        self.inputs[self.driving] = Some(if self.loose { without_ranges(chunk) } else { chunk });
        let inputs: Vec<Relation> = self.inputs.iter().flatten().cloned().collect();
        let ran = run_over(self.engine, self.plan, &inputs);
        self.inputs[self.driving] = None;
        drop(inputs);
        sink.push(ran?)?;
        self.began = true;
        Ok(rows)
    }
}

/// The rows, of whose integers nothing is known: then no table has a slot for each possible key.
fn without_ranges(mut chunk: Relation) -> Relation {
    let plain = chunk.columns.iter_mut().filter(|(_, column)| column.is_plain());
    plain.for_each(|(_, column)| column.stats.range = None);
    chunk
}
