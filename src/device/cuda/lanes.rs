//! Lanes: streams that only copy to the device, each from two pinned chunks of its own, of which a
//! thread fills one while the other is copied.
//!
//! Pinning takes half a second a GiB: lanes are made as threads ask for them, few, and kept.

use std::sync::{Condvar, Mutex, MutexGuard};

use cudarc::driver::sys;

use super::calls::{Queue, call};
use super::staging::Pinned;
use crate::device::feed::{LANES, MOST_FED};
use crate::error::Result;

#[derive(Debug, Default)]
pub(super) struct Lanes {
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<Lane>,
    made: usize,
}

#[derive(Debug)]
struct Lane {
    // Dropped before the queue: its copies are waited for.
    chunks: [Pinned; 2],
    turn: usize,
    queue: Queue,
}

impl Lanes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A lane that nobody uses: the one that came back last, a new one, or one to wait for.
    fn take(&self, queue: &Queue) -> Result<Lane> {
        let mut state = self.lock();
        loop {
            if let Some(lane) = state.free.pop() {
                return Ok(lane);
            }
            if state.made < LANES {
                state.made += 1;
                drop(state);
                let made = Lane::new(queue);
                if made.is_err() {
                    self.lock().made -= 1;
                }
                return made;
            }
            state = self.returned.wait(state).unwrap_or_else(|e| e.into_inner());
        }
    }

    fn put(&self, lane: Lane) {
        self.lock().free.push(lane);
        self.returned.notify_one();
    }

    /// Copies what `fill` writes to `to` once `after` has passed, and records `copied` behind it.
    ///
    /// # Safety
    /// As [`super::super::driver::Driver::feed`]; the context is bound, both events are live.
    pub(super) unsafe fn feed(
        &self,
        queue: &Queue,
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
        let mut state = self.lock();
        state.made -= state.free.len();
        state.free.clear();
    }
}

impl Lane {
    fn new(queue: &Queue) -> Result<Lane> {
        let queue = queue.beside()?;
        let chunks = [Pinned::new(&queue, MOST_FED)?, Pinned::new(&queue, MOST_FED)?];
        Ok(Lane { chunks, turn: 0, queue })
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
        let (queue, chunk) = (&self.queue, &mut self.chunks[self.turn]);
        chunk.wait(queue)?;
        fill(&mut chunk.bytes()[..len])?;
        self.turn = 1 - self.turn;
        // SAFETY: stream and event are live.
        queue.check(unsafe { call!(cuStreamWaitEvent(queue.stream(), after, 0)) })?;
        // SAFETY: the caller's promise; the chunk is not touched before `wait` saw this copy done.
        unsafe { chunk.send(queue, 0, to, len) }?;
        chunk.mark(queue)?;
        // SAFETY: event and stream are live.
        queue.check(unsafe { call!(cuEventRecord(copied, queue.stream())) })
    }
}
