//! Threads that read headers and feed bytes to the device, while another submits the decoding.
//!
//! ```text
//!   workers   bytes and headers 0 │ bytes and headers 1 │ bytes and headers 2 │ …
//!   caller    memory 0, 1, 2 …    │ decode 0            │ decode 1            │ …
//! ```
//!
//! Workers find page headers in the bytes that they feed. Headers of pages that the host unpacks
//! are read before their bytes: they say how much memory the batch needs. Workers are only a few
//! batches ahead of the decoding, because what they feed takes device memory until it is decoded.

use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::batches::{Batch, ChunkAt, FedPiece, Opened, Run};
use super::headers::{Located, Pages, Reason};
use super::unpack::unpack;
use crate::error::{Error, ErrorKind, Result};
use warpframe_device::interrupt;
use warpframe_device::{Buffer, Device, Event, Fed, MOST_FED};

/// Batches whose headers are read before those of an earlier one are fed.
const HEADERS_AHEAD: usize = 2;
/// Chunks whose headers a worker reads before it asks for more work.
const CHUNKS: usize = 16;

/// Memory for a batch's bytes, from `after` on, and which of them go where.
#[derive(Debug)]
pub(super) struct BatchMemory {
    pub(super) bytes: Arc<Buffer>,
    pub(super) after: Arc<Event>,
    pub(super) pieces: Vec<FedPiece>,
    /// The batch's first chunk.
    pub(super) first: usize,
    /// The pages of each chunk, for those that are unpacked.
    pub(super) pages: Vec<Option<Arc<Pages>>>,
}

/// The pages of each chunk of a batch, or why they are not read.
pub(super) type Headers = Vec<std::result::Result<Arc<Pages>, Reason>>;
/// The headers of a batch of which only some are known.
pub(super) type SomeHeaders = Vec<Option<std::result::Result<Arc<Pages>, Reason>>>;

/// What workers share.
#[derive(Debug)]
pub(super) struct DecodeQueue<'a> {
    device: &'a Device,
    files: &'a [Opened],
    chunks: &'a [ChunkAt],
    batches: &'a [Batch],
    state: Mutex<WorkerState>,
    /// Workers wait for memory, the caller for what they did.
    opened: Condvar,
    done: Condvar,
}

#[derive(Debug, Default)]
struct WorkerState {
    of: Vec<Progress>,
    /// The first batch whose headers, and whose bytes, are not all taken by workers.
    headers: usize,
    bytes: usize,
    failed: Option<Error>,
    /// Chunks with a page that the host could not unpack.
    damaged: Vec<(usize, Reason)>,
    closed: bool,
}

/// How far a batch is.
#[derive(Debug, Default)]
struct Progress {
    headers: Vec<Option<std::result::Result<Pages, Reason>>>,
    headers_taken: usize,
    headers_done: usize,
    memory: Option<Arc<BatchMemory>>,
    bytes_taken: usize,
    pieces: usize,
    pieces_done: usize,
    fed: Vec<Fed>,
}

enum Task {
    /// Of some of those whose headers are read first.
    Headers {
        batch: usize,
        numbers: Range<usize>,
    },
    Bytes {
        batch: usize,
        piece: usize,
        memory: Arc<BatchMemory>,
    },
}

impl<'a> DecodeQueue<'a> {
    pub(super) fn new(
        device: &'a Device,
        files: &'a [Opened],
        chunks: &'a [ChunkAt],
        batches: &'a [Batch],
    ) -> DecodeQueue<'a> {
        let progress = |batch: &Batch| Progress {
            headers: batch.chunks.clone().map(|_| None).collect(),
            ..Progress::default()
        };
        let state =
            WorkerState { of: batches.iter().map(progress).collect(), ..WorkerState::default() };
        DecodeQueue {
            device,
            files,
            chunks,
            batches,
            state: Mutex::new(state),
            opened: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Works until there is nothing left, or something failed.
    pub(super) fn run(&self) {
        while let Some(task) = self.take() {
            let done = self.perform(&task);
            let mut state = self.state.lock();
            let is_last = match (done, task) {
                (Ok(TaskDone { headers, fed, damaged }), task) => {
                    state.damaged.extend(damaged);
                    let (Task::Headers { batch, .. } | Task::Bytes { batch, .. }) = task;
                    let progress = &mut state.of[batch];
                    if matches!(task, Task::Headers { .. }) {
                        progress.headers_done += headers.len();
                    }
                    for (chunk, pages) in headers {
                        // Where they were needed before, they were taken.
                        if let Some(headers) = progress.headers.get_mut(chunk) {
                            *headers = Some(pages);
                        }
                    }
                    progress.fed.extend(fed);
                    progress.pieces_done += usize::from(matches!(task, Task::Bytes { .. }));
                    progress.headers_done >= self.batches[batch].first.len()
                        || progress.pieces_done == progress.pieces
                }
                (Err(error), _) => {
                    state.failed = state.failed.take().or(Some(error));
                    self.opened.notify_all();
                    true
                }
            };
            drop(state);
            if is_last {
                self.done.notify_all();
            }
        }
    }

    fn take(&self) -> Option<Task> {
        let mut state = self.state.lock();
        loop {
            if state.closed || state.failed.is_some() {
                return None;
            }
            let ahead = state.headers < state.bytes + HEADERS_AHEAD;
            if let Some(task) = ahead.then(|| self.take_headers(&mut state)).flatten() {
                return Some(task);
            }
            if let Some(task) =
                self.take_bytes(&mut state).or_else(|| self.take_headers(&mut state))
            {
                return Some(task);
            }
            if state.bytes == self.batches.len() {
                return None;
            }
            self.opened.wait(&mut state);
        }
    }

    fn take_headers(&self, state: &mut WorkerState) -> Option<Task> {
        while let Some(progress) = state.of.get_mut(state.headers) {
            let batch = state.headers;
            let (begin, all) = (progress.headers_taken, self.batches[batch].first.len());
            if begin < all {
                progress.headers_taken = all.min(begin + CHUNKS);
                return Some(Task::Headers { batch, numbers: begin..progress.headers_taken });
            }
            state.headers += 1;
        }
        None
    }

    fn take_bytes(&self, state: &mut WorkerState) -> Option<Task> {
        while let Some(progress) = state.of.get_mut(state.bytes) {
            let batch = state.bytes;
            let memory = progress.memory.clone()?;
            if progress.bytes_taken < memory.pieces.len() {
                progress.bytes_taken += 1;
                return Some(Task::Bytes { batch, piece: progress.bytes_taken - 1, memory });
            }
            state.bytes += 1;
        }
        None
    }

    fn perform(&self, task: &Task) -> Result<TaskDone> {
        interrupt::check()?;
        match task {
            Task::Headers { batch, numbers } => {
                let batch = &self.batches[*batch];
                let pages =
                    |at: &usize| (*at, self.pages(&self.chunks[batch.chunks.start + at], &[]));
                Ok(TaskDone {
                    headers: batch.first[numbers.clone()].iter().map(pages).collect(),
                    ..TaskDone::default()
                })
            }
            Task::Bytes { piece, memory, .. } => self.bytes(&memory.pieces[*piece], memory),
        }
    }

    fn bytes(&self, piece: &FedPiece, memory: &BatchMemory) -> Result<TaskDone> {
        let feed = |offset: usize, length: usize, fill: &mut dyn FnMut(&mut [u8]) -> Result<()>| {
            let mut fill = |bytes: &mut [u8]| Ok(fill(bytes)?);
            self.device.feed(&memory.bytes, offset, length, &memory.after, &mut fill)
        };
        match piece {
            FedPiece::Read { runs, length, offset, whole } => {
                let mut headers = vec![];
                let mut read = |bytes: &mut [u8]| {
                    for Run { file, begin, length, at } in runs {
                        self.read(*file, &mut bytes[*at..at + length], *begin)?;
                    }
                    for (at, from) in whole {
                        let chunk = &self.chunks[memory.first + at];
                        let length = chunk.meta(self.files).byte_range().1 as usize;
                        headers.push((*at, self.pages(chunk, &bytes[*from..from + length])));
                    }
                    Ok(())
                };
                let fed = vec![feed(*offset, *length, &mut read)?];
                Ok(TaskDone { headers, fed, damaged: None })
            }
            // Unpacked before a lane is taken: there are more cores than lanes.
            FedPiece::Unpack { chunk, pages, length, offset } => {
                let mut content = vec![0; *length];
                let mut damaged = None;
                let mut rest = &mut content[..];
                for page in self.pages_of(memory, *chunk).skip(pages.start).take(pages.len()) {
                    let (own, behind) = std::mem::take(&mut rest).split_at_mut(page.unpacked());
                    if let Err(reason) = self.unpack(*chunk, page, own)? {
                        own.fill(0);
                        damaged = Some((*chunk, reason));
                    }
                    rest = behind;
                }
                let mut copy = |bytes: &mut [u8]| {
                    bytes.copy_from_slice(&content);
                    Ok(())
                };
                Ok(TaskDone {
                    fed: vec![feed(*offset, *length, &mut copy)?],
                    damaged,
                    ..TaskDone::default()
                })
            }
            FedPiece::UnpackLong { chunk, page, offset } => {
                let Some(page) = self.pages_of(memory, *chunk).nth(*page) else {
                    return Ok(TaskDone::default());
                };
                let mut content = vec![0; page.unpacked()];
                let damaged =
                    self.unpack(*chunk, page, &mut content)?.err().map(|reason| (*chunk, reason));
                let fed = (content.chunks(MOST_FED).enumerate()).map(|(at, part)| {
                    let mut copy = |bytes: &mut [u8]| {
                        bytes.copy_from_slice(part);
                        Ok(())
                    };
                    feed(offset + at * MOST_FED, part.len(), &mut copy)
                });
                Ok(TaskDone { fed: fed.collect::<Result<_, _>>()?, damaged, ..TaskDone::default() })
            }
        }
    }

    fn pages(&self, chunk: &ChunkAt, bytes: &[u8]) -> std::result::Result<Pages, Reason> {
        Pages::of(&self.files[chunk.file].file, chunk.meta(self.files), bytes)
    }

    fn pages_of<'m>(
        &self,
        memory: &'m BatchMemory,
        chunk: usize,
    ) -> impl Iterator<Item = &'m Located> + use<'m> {
        let first = memory.first;
        memory.pages.get(chunk - first).into_iter().flatten().flat_map(|pages| pages.all())
    }

    fn read(&self, file: usize, bytes: &mut [u8], begin: u64) -> Result<()> {
        let file = &self.files[file];
        file.file.read_exact_at(bytes, begin).map_err(|error| Error::io(&file.path, error))
    }

    /// Reads a page, and unpacks what of it is compressed.
    fn unpack(
        &self,
        chunk: usize,
        page: &Located,
        content: &mut [u8],
    ) -> Result<std::result::Result<(), Reason>> {
        let at = &self.chunks[chunk];
        let mut packed = vec![0; page.compressed as usize];
        self.read(at.file, &mut packed, page.begin)?;
        let (levels, packed) = packed.split_at(page.levels.unwrap_or(0) as usize);
        let (of_levels, values) = content.split_at_mut(levels.len());
        of_levels.copy_from_slice(levels);
        if page.is_compressed && !values.is_empty() {
            return Ok(unpack(at.meta(self.files).compression(), packed, values));
        }
        Ok(match packed.len() == values.len() || values.is_empty() {
            true => {
                values.copy_from_slice(&packed[..values.len()]);
                Ok(())
            }
            false => Err("a page whose two lengths differ".into()),
        })
    }

    /// Lets workers feed a batch.
    pub(super) fn open(&self, batch: usize, memory: BatchMemory) {
        let progress = &mut self.state.lock().of[batch];
        progress.pieces = memory.pieces.len();
        progress.memory = Some(Arc::new(memory));
        self.opened.notify_all();
    }

    /// Waits for the headers of a batch that are read before its bytes.
    pub(super) fn first_headers(&self, batch: usize) -> Result<SomeHeaders> {
        self.wait(|state| {
            let progress = &mut state.of[batch];
            (progress.headers_done >= self.batches[batch].first.len())
                .then(|| std::mem::take(&mut progress.headers))
        })
        .map(|headers| {
            headers.into_iter().map(|pages| pages.map(|pages| pages.map(Arc::new))).collect()
        })
    }

    /// Waits until all bytes of a batch are under way, and all its headers are known.
    pub(super) fn fed(&self, batch: usize) -> Result<(Vec<Fed>, Headers)> {
        let (fed, headers) = self.wait(|state| {
            let progress = &mut state.of[batch];
            let is_done = progress.pieces_done == progress.pieces;
            (is_done && progress.headers_done >= self.batches[batch].first.len()).then(|| {
                progress.memory = None;
                let done =
                    (std::mem::take(&mut progress.fed), std::mem::take(&mut progress.headers));
                // Without its memory no worker could tell that all of it was taken.
                state.bytes = state.bytes.max(batch + 1);
                done
            })
        })?;
        self.opened.notify_all();
        let unseen = || Err("its pages were not looked at".to_string());
        Ok((
            fed,
            headers.into_iter().map(|pages| pages.unwrap_or_else(unseen).map(Arc::new)).collect(),
        ))
    }

    fn wait<T>(&self, mut done: impl FnMut(&mut WorkerState) -> Option<T>) -> Result<T> {
        let mut state = self.state.lock();
        loop {
            if let Some(error) = state.failed.take() {
                state.closed = true;
                return Err(error);
            }
            if state.closed {
                return Err(
                    ErrorKind::Internal { what: "a read that ended is waited for".into() }.into()
                );
            }
            if let Some(done) = done(&mut state) {
                return Ok(done);
            }
            self.done.wait_for(&mut state, interrupt::PACE);
            interrupt::check()?;
        }
    }

    /// The chunks with a page that the host could not unpack.
    pub(super) fn take_damaged(&self) -> Vec<(usize, Reason)> {
        std::mem::take(&mut self.state.lock().damaged)
    }

    /// Ends the workers, whatever is left.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.opened.notify_all();
    }
}

/// What came of a task.
#[derive(Default)]
struct TaskDone {
    /// Of chunks, by their numbers in the batch.
    headers: Vec<(usize, std::result::Result<Pages, Reason>)>,
    fed: Vec<Fed>,
    /// A chunk with a page that is damaged.
    damaged: Option<(usize, Reason)>,
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use warpframe_device::{MemoryLimit, SimOptions};

    fn memory(device: &Device, pieces: usize) -> BatchMemory {
        let piece = || FedPiece::Read { runs: vec![], length: 0, offset: 0, whole: vec![] };
        BatchMemory {
            bytes: Arc::new(device.alloc("test", 0).unwrap()),
            after: Arc::new(device.record().unwrap()),
            pieces: (0..pieces).map(|_| piece()).collect(),
            first: 0,
            pages: vec![],
        }
    }

    /// The caller may have taken what was fed before a worker looks for more.
    #[test]
    fn workers_go_on_behind_a_batch_that_is_done() {
        let device = Device::sim(SimOptions::default(), MemoryLimit::default()).unwrap();
        let batches: Vec<_> = (0..4).map(|_| Batch { chunks: 0..0, first: vec![] }).collect();
        for pieces in [1, 0] {
            let queue = DecodeQueue::new(&device, &[], &[], &batches);
            std::thread::scope(|scope| {
                let (sender, taken) = mpsc::channel();
                queue.open(0, memory(&device, pieces));
                if pieces > 0 {
                    assert!(matches!(queue.take(), Some(Task::Bytes { batch: 0, .. })));
                    queue.state.lock().of[0].pieces_done = 1;
                }
                queue.fed(0).unwrap();
                let queue = &queue;
                let is_next = |task| matches!(task, Task::Bytes { batch: 1, .. });
                let take = move || sender.send(queue.take().is_some_and(is_next));
                scope.spawn(take);
                queue.open(1, memory(&device, 1));
                let next = taken.recv_timeout(Duration::from_secs(10));
                queue.close();
                assert_eq!(next, Ok(true), "{pieces} pieces");
            });
        }
    }
}
