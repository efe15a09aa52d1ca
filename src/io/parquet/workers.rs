//! Threads that read headers and feed bytes to the device, while another submits the decoding.
//!
//! ```text
//!   workers   headers 0 │ headers 1 │ bytes 0 ……… │ headers 2 │ bytes 1 ……… │ …
//!   caller              │ memory 0              │ memory 1, decode 0        │ memory 2, decode 1
//! ```
//!
//! Headers of a batch come before its memory: they say what is needed. Workers are a few batches
//! ahead of the decoding, no more: what was read waits in device memory.

use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use super::batches::{Batch, ChunkAt, Opened};
use super::headers::{Pages, Reason};
use crate::device::{Buffer, Device, Event, Fed};
use crate::error::{Error, ErrorKind, Result};
use crate::interrupt;

/// Batches whose headers are read before those of an earlier one are fed.
const HEADERS_AHEAD: usize = 2;

/// Memory for a batch's bytes, from `after` on.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) bytes: Arc<Buffer>,
    pub(super) after: Event,
}

/// The pages of each chunk of a batch, or why they are not read.
pub(super) type Headers = Vec<std::result::Result<Pages, Reason>>;

/// What workers share.
#[derive(Debug)]
pub(super) struct Work<'a> {
    device: &'a Device,
    files: &'a [Opened],
    chunks: &'a [ChunkAt],
    batches: &'a [Batch],
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    of: Vec<Progress>,
    /// The first batch whose headers, and whose bytes, are not all taken by workers.
    headers: usize,
    bytes: usize,
    failed: Option<Error>,
    closed: bool,
}

/// How far a batch is.
#[derive(Debug, Default)]
struct Progress {
    headers: Vec<Option<std::result::Result<Pages, Reason>>>,
    headers_taken: usize,
    headers_done: usize,
    memory: Option<Arc<Memory>>,
    bytes_taken: usize,
    fed: Vec<Fed>,
}

enum Task {
    Headers { batch: usize, chunk: usize },
    Bytes { batch: usize, piece: usize, memory: Arc<Memory> },
}

impl<'a> Work<'a> {
    pub(super) fn new(
        device: &'a Device,
        files: &'a [Opened],
        chunks: &'a [ChunkAt],
        batches: &'a [Batch],
    ) -> Work<'a> {
        let progress =
            |batch: &Batch| Progress { headers: batch.chunks.clone().map(|_| None).collect(), ..Progress::default() };
        let state = State { of: batches.iter().map(progress).collect(), ..State::default() };
        Work { device, files, chunks, batches, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Works until there is nothing left, or something failed.
    pub(super) fn run(&self) {
        while let Some(task) = self.take() {
            let done = self.perform(&task);
            let mut state = self.lock();
            match (done, task) {
                (Ok(Done::Headers(pages)), Task::Headers { batch, chunk }) => {
                    let progress = &mut state.of[batch];
                    progress.headers[chunk] = Some(pages);
                    progress.headers_done += 1;
                }
                (Ok(Done::Fed(fed)), Task::Bytes { batch, .. }) => state.of[batch].fed.push(fed),
                (Ok(_), _) => {}
                (Err(error), _) => state.failed = state.failed.take().or(Some(error)),
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    fn take(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if state.closed || state.failed.is_some() {
                return None;
            }
            let ahead = state.headers < state.bytes + HEADERS_AHEAD;
            if let Some(task) = ahead.then(|| self.take_headers(&mut state)).flatten() {
                return Some(task);
            }
            if let Some(task) = self.take_bytes(&mut state).or_else(|| self.take_headers(&mut state)) {
                return Some(task);
            }
            if state.bytes == self.batches.len() {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    fn take_headers(&self, state: &mut State) -> Option<Task> {
        while let Some(progress) = state.of.get_mut(state.headers) {
            let batch = state.headers;
            if progress.headers_taken < progress.headers.len() {
                progress.headers_taken += 1;
                return Some(Task::Headers { batch, chunk: progress.headers_taken - 1 });
            }
            state.headers += 1;
        }
        None
    }

    fn take_bytes(&self, state: &mut State) -> Option<Task> {
        while let Some(progress) = state.of.get_mut(state.bytes) {
            let batch = state.bytes;
            let memory = progress.memory.clone()?;
            if progress.bytes_taken < self.batches[batch].pieces.len() {
                progress.bytes_taken += 1;
                return Some(Task::Bytes { batch, piece: progress.bytes_taken - 1, memory });
            }
            state.bytes += 1;
        }
        None
    }

    fn perform(&self, task: &Task) -> Result<Done> {
        interrupt::check()?;
        match task {
            Task::Headers { batch, chunk } => {
                let at = &self.chunks[self.batches[*batch].chunks.start + chunk];
                Ok(Done::Headers(Pages::of(&self.files[at.file].file, at.meta(self.files))))
            }
            Task::Bytes { batch, piece, memory } => {
                let piece = &self.batches[*batch].pieces[*piece];
                let file = &self.files[piece.file];
                let mut read = |bytes: &mut [u8]| {
                    let read = file.file.read_exact_at(bytes, piece.begin);
                    read.map_err(|error| Error::io(&file.path, error))
                };
                let fed = self.device.feed(&memory.bytes, piece.offset, piece.length, &memory.after, &mut read)?;
                Ok(Done::Fed(fed))
            }
        }
    }

    /// Lets workers feed a batch.
    pub(super) fn open(&self, batch: usize, memory: Memory) {
        self.lock().of[batch].memory = Some(Arc::new(memory));
        self.changed.notify_all();
    }

    /// Waits for a batch's headers.
    pub(super) fn headers(&self, batch: usize) -> Result<Headers> {
        self.wait(|state| {
            let progress = &mut state.of[batch];
            (progress.headers_done == progress.headers.len()).then(|| std::mem::take(&mut progress.headers))
        })
        .map(|headers| headers.into_iter().map(|pages| pages.expect("all are done")).collect())
    }

    /// Waits until all bytes of a batch are under way.
    pub(super) fn fed(&self, batch: usize) -> Result<Vec<Fed>> {
        self.wait(|state| {
            let progress = &mut state.of[batch];
            (progress.fed.len() == self.batches[batch].pieces.len()).then(|| {
                progress.memory = None;
                std::mem::take(&mut progress.fed)
            })
        })
    }

    fn wait<T>(&self, mut done: impl FnMut(&mut State) -> Option<T>) -> Result<T> {
        let mut state = self.lock();
        loop {
            if let Some(error) = state.failed.take() {
                state.closed = true;
                return Err(error);
            }
            if state.closed {
                return Err(ErrorKind::Internal { what: "a read that ended is waited for".into() }.into());
            }
            if let Some(done) = done(&mut state) {
                return Ok(done);
            }
            let (next, _) = self.changed.wait_timeout(state, interrupt::PACE).unwrap_or_else(|e| e.into_inner());
            state = next;
            interrupt::check()?;
        }
    }

    /// Ends the workers, whatever is left.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

enum Done {
    Headers(std::result::Result<Pages, Reason>),
    Fed(Fed),
}
