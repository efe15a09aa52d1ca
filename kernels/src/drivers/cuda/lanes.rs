//! Lanes: streams that only copy to the device, each from a pinned chunk of its own.
//!
//! Filling a chunk takes ten times as long as copying it: nearly all lanes are being filled, while
//! the one that was given back first is the first to be taken again, and its copy is done by then.
//! Pinning takes half a second a GiB: lanes are made as threads ask for them, few, and kept.

use std::collections::VecDeque;

use cudarc::driver::sys;
use parking_lot::{Condvar, Mutex};

use super::calls::{CallQueue, call};
use super::staging::Pinned;
use crate::error::Result;
use crate::memory::feed::{LANES, MOST_FED};

#[derive(Debug, Default)]
pub(super) struct Lanes {
    state: Mutex<LaneState>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct LaneState {
    free: VecDeque<Lane>,
    made: usize,
}

#[derive(Debug)]
struct Lane {
    // Dropped before the queue: its copy is waited for.
    chunk: Pinned,
    queue: CallQueue,
}

impl Lanes {
    /// A lane that nobody uses: one whose copy is done, a new one, or the first that comes back.
    fn take(&self, queue: &CallQueue) -> Result<Lane> {
        let mut state = self.state.lock();
        loop {
            let idle = match state.free.front() {
                Some(lane) if state.made < LANES => lane.is_idle(queue)?,
                lane => lane.is_some(),
            };
            if let Some(lane) = idle.then(|| state.free.pop_front()).flatten() {
                return Ok(lane);
            }
            if state.made < LANES {
                state.made += 1;
                drop(state);
                let made = Lane::new(queue);
                if made.is_err() {
                    self.state.lock().made -= 1;
                }
                return made;
            }
            self.returned.wait(&mut state);
        }
    }

    fn put(&self, lane: Lane) {
        self.state.lock().free.push_back(lane);
        self.returned.notify_one();
    }

    /// Copies what `fill` writes to `to` once `after` has passed, and records `copied` behind it.
    ///
    /// # Safety
    /// As [`crate::drivers::driver::Driver::feed`]; the context is bound, both events are live.
    pub(super) unsafe fn feed(
        &self,
        queue: &CallQueue,
        to: (u64, usize),
        after: sys::CUevent,
        copied: sys::CUevent,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let mut lane = self.take(queue)?;
        // A lane is not lost with who fills it.
        let fed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // SAFETY: the caller's promise.
            unsafe { lane.feed(to, after, copied, fill) }
        }));
        self.put(lane);
        fed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Frees all pinned chunks.
    pub(super) fn clear(&self) {
        let mut state = self.state.lock();
        state.made -= state.free.len();
        state.free.clear();
    }
}

impl Lane {
    fn new(queue: &CallQueue) -> Result<Lane> {
        let queue = queue.beside()?;
        let chunk = Pinned::new(&queue, MOST_FED)?;
        Ok(Lane { chunk, queue })
    }

    /// Whether the chunk's copy is done.
    fn is_idle(&self, queue: &CallQueue) -> Result<bool> {
        self.chunk.is_done(queue)
    }

    /// # Safety
    /// As [`Lanes::feed`].
    unsafe fn feed(
        &mut self,
        (to, len): (u64, usize),
        after: sys::CUevent,
        copied: sys::CUevent,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let (queue, chunk) = (&self.queue, &mut self.chunk);
        chunk.wait(queue)?;
        fill(&mut chunk.bytes()[..len])?;
        // SAFETY: stream and event are live.
        queue.check(unsafe { call!(cuStreamWaitEvent(queue.stream(), after, 0)) })?;
        // SAFETY: the caller's promise; the chunk is not touched before `wait` saw this copy done.
        unsafe { chunk.send(queue, 0, to, len) }?;
        chunk.mark(queue)?;
        // SAFETY: event and stream are live.
        queue.check(unsafe { call!(cuEventRecord(copied, queue.stream())) })
    }
}
