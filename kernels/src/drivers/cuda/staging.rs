//! Copies between host and device through pinned memory.
//!
//! The driver copies pageable memory at 2–7 GB/s and pinned memory at 54, and one core fills pinned
//! memory at some 10 GB/s. So large copies are cut into chunks that several threads carry at once,
//! each through two pinned buffers of its own, so that while the device reads one the thread fills
//! the other:
//!
//! ```text
//! thread 0   fill a │ fill b │ wait a, fill a │ …        chunks are taken from one counter
//! thread 1   fill c │ fill d │ wait c, fill c │ …
//! stream        copy a │ copy c │ copy b │ …             any order: chunks are disjoint
//! ```
//!
//! Small uploads are packed one behind the other into a ring of segments; a segment is used again
//! once the copies from it are done.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use cudarc::driver::sys;
use parking_lot::Mutex;

use super::calls::{CallQueue, call};
use crate::cores::cores;
use crate::error::Result;

/// A copy of at least this many bytes is large.
const LARGE: usize = 1 << 20;
/// Bytes a thread carries at once: long enough to hide a submission (about 5 µs), short enough to
/// share out.
const CHUNK: usize = 2 << 20;
/// Most threads that carry chunks: 8 × 10 GB/s of copying keeps a 54 GB/s link busy.
const CARRIERS: usize = 8;
/// A further thread is started for each so many bytes; starting one costs as long as copying some
/// 300 KB.
const PER_CARRIER: usize = 4 << 20;
/// The ring of small uploads: segments of `LARGE` bytes.
const SEGMENTS: usize = 4;
/// Uploads in a segment start at multiples of this.
const ALIGNMENT: usize = 16;

#[derive(Debug)]
pub(super) struct Staging {
    carriers: Mutex<Vec<[Pinned; 2]>>,
    ring: Mutex<Option<Ring>>,
    landing: Mutex<Option<Pinned>>,
}

impl Staging {
    pub(super) fn new() -> Self {
        Staging { carriers: Mutex::default(), ring: Mutex::default(), landing: Mutex::default() }
    }

    /// Submits a copy; the source may be reused on return.
    ///
    /// # Safety
    /// `to .. to + from.len()` lies in a live allocation of the queue's context, which is bound.
    pub(super) unsafe fn upload(&self, queue: &CallQueue, to: u64, from: &[u8]) -> Result<()> {
        if from.len() >= LARGE {
            let chunks = Chunks::of(from.len());
            return self.carry(queue, &chunks, |slots| {
                for turn in 0.. {
                    let Some((offset, len)) = chunks.take() else { break };
                    let slot = &mut slots[turn % 2];
                    slot.wait(queue)?;
                    slot.bytes()[..len].copy_from_slice(&from[offset..offset + len]);
                    // SAFETY: the caller's promise; the slot is not touched before `wait` saw this
                    // copy done.
                    unsafe { slot.send(queue, 0, to + offset as u64, len) }?;
                    slot.mark(queue)?;
                }
                Ok(())
            });
        }
        let mut ring = self.ring.lock();
        let ring = match &mut *ring {
            Some(ring) => ring,
            empty => empty.insert(Ring::new(queue)?),
        };
        // SAFETY: the caller's promise.
        unsafe { ring.upload(queue, to, from) }
    }

    /// Copies after all submitted work, and waits.
    ///
    /// # Safety
    /// `from .. from + to.len()` lies in a live allocation of the queue's context, which is bound.
    pub(super) unsafe fn download(
        &self,
        queue: &CallQueue,
        to: &mut [u8],
        from: u64,
    ) -> Result<()> {
        if to.len() >= LARGE {
            let chunks = Chunks::of(to.len());
            let target = HostTarget(to.as_mut_ptr());
            self.carry(queue, &chunks, |slots| {
                let mut under_way = [None; 2];
                for turn in 0.. {
                    let slot = &mut slots[turn % 2];
                    if let Some((offset, len)) = under_way[turn % 2].take() {
                        slot.wait(queue)?;
                        // SAFETY: the chunk lies in `to`, and no other thread took it.
                        unsafe { target.put(offset, &slot.bytes()[..len]) };
                    }
                    if let Some((offset, len)) = chunks.take() {
                        // SAFETY: the caller's promise; the slot is read only after `wait`.
                        unsafe { slot.receive(queue, from + offset as u64, len) }?;
                        slot.mark(queue)?;
                        under_way[turn % 2] = Some((offset, len));
                    } else if under_way == [None; 2] {
                        break;
                    }
                }
                Ok(())
            })?;
            return queue.wait();
        }
        let mut landing = self.landing.lock();
        let landing = match &mut *landing {
            Some(landing) => landing,
            empty => empty.insert(Pinned::new(queue, LARGE)?),
        };
        // SAFETY: the caller's promise; shorter than the buffer, which is read only after the wait.
        unsafe { landing.receive(queue, from, to.len()) }?;
        queue.wait()?;
        to.copy_from_slice(&landing.bytes()[..to.len()]);
        Ok(())
    }

    /// Frees every pinned buffer. The caller has waited for the stream: the ring's segment being
    /// filled is unmarked.
    pub(super) fn clear(&self) {
        self.carriers.lock().clear();
        *self.ring.lock() = None;
        *self.landing.lock() = None;
    }

    /// Runs `work` on as many threads as the copy deserves, each with two buffers of its own.
    fn carry(
        &self,
        queue: &CallQueue,
        chunks: &Chunks,
        work: impl Fn(&mut [Pinned; 2]) -> Result<()> + Sync,
    ) -> Result<()> {
        let cores = cores();
        let count = (chunks.len / PER_CARRIER).clamp(1, CARRIERS.min(cores));
        let mut carriers = self.carriers.lock();
        while carriers.len() < count {
            carriers.push([Pinned::new(queue, CHUNK)?, Pinned::new(queue, CHUNK)?]);
        }
        let guarded = |slots: &mut [Pinned; 2]| {
            let result = queue.bind().and_then(|()| work(slots));
            if result.is_err() {
                chunks.failed.store(true, Relaxed);
            }
            result
        };
        let (first, others) = carriers[..count].split_first_mut().expect("at least one carrier");
        std::thread::scope(|scope| {
            let guarded = &guarded;
            let others: Vec<_> =
                others.iter_mut().map(|slots| scope.spawn(move || guarded(slots))).collect();
            let mut result = guarded(first);
            for other in others {
                match other.join() {
                    Ok(theirs) => result = result.and(theirs),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            result
        })
    }
}

/// Hands out the chunks of a copy, until one of its threads fails.
#[derive(Debug)]
struct Chunks {
    len: usize,
    next: AtomicUsize,
    failed: AtomicBool,
}

impl Chunks {
    fn of(len: usize) -> Self {
        Chunks { len, next: AtomicUsize::new(0), failed: AtomicBool::new(false) }
    }

    /// Offset and length of a chunk that nobody else gets.
    fn take(&self) -> Option<(usize, usize)> {
        if self.failed.load(Relaxed) {
            return None;
        }
        let offset = self.next.fetch_add(1, Relaxed).checked_mul(CHUNK)?;
        (offset < self.len).then(|| (offset, CHUNK.min(self.len - offset)))
    }
}

/// The host memory of a download, written by several threads at disjoint ranges.
#[derive(Clone, Copy)]
struct HostTarget(*mut u8);

// SAFETY: a pointer to bytes that `put`'s callers keep disjoint.
unsafe impl Send for HostTarget {}
// SAFETY: as above.
unsafe impl Sync for HostTarget {}

impl HostTarget {
    /// # Safety
    /// `offset .. offset + bytes.len()` lies in the target, and no other thread reads or writes it.
    unsafe fn put(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: the caller's promise; pinned memory and the target are different allocations.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(offset), bytes.len()) };
    }
}

/// A pinned buffer and the event that tells when the device is done with it.
#[derive(Debug)]
pub(super) struct Pinned {
    start: *mut u8,
    len: usize,
    done: sys::CUevent,
    marked: bool,
}

// SAFETY: an owned allocation and a driver handle, both usable from any thread.
unsafe impl Send for Pinned {}

impl Pinned {
    /// The queue's context is bound.
    pub(super) fn new(queue: &CallQueue, len: usize) -> Result<Self> {
        let mut start = std::ptr::null_mut();
        // Not write-combined: downloads are read from here.
        // SAFETY: writes the pointer only.
        queue.check(unsafe { call!(cuMemHostAlloc(&mut start, len, 0)) })?;
        // SAFETY: `len` bytes, just allocated; zeroed, so that they may be seen as `[u8]`.
        unsafe { std::ptr::write_bytes(start.cast::<u8>(), 0, len) };
        let mut pinned =
            Pinned { start: start.cast(), len, done: std::ptr::null_mut(), marked: false };
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: writes the handle only. Where it fails, `drop` frees the memory.
        queue.check(unsafe { call!(cuEventCreate(&mut pinned.done, flags)) })?;
        Ok(pinned)
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the allocation, initialised, borrowed as long as the owner; no copy is under way
        // where it is called: callers wait first.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }

    /// Submits a copy of `len` bytes at `offset` to the device.
    ///
    /// # Safety
    /// The target lies in a live allocation, and the bytes stay as they are until the copy is done.
    pub(super) unsafe fn send(
        &self,
        queue: &CallQueue,
        offset: usize,
        to: u64,
        len: usize,
    ) -> Result<()> {
        assert!(offset + len <= self.len);
        // SAFETY: the range lies in this buffer; the caller's promise.
        queue.check(unsafe {
            call!(cuMemcpyHtoDAsync_v2(to, self.start.add(offset).cast(), len, queue.stream()))
        })
    }

    /// Submits a copy of `len` bytes from the device to the buffer's start.
    ///
    /// # Safety
    /// The source lies in a live allocation, and nobody looks at the bytes until the copy is done.
    unsafe fn receive(&self, queue: &CallQueue, from: u64, len: usize) -> Result<()> {
        assert!(len <= self.len);
        // SAFETY: the range lies in this buffer; the caller's promise.
        queue.check(unsafe {
            call!(cuMemcpyDtoHAsync_v2(self.start.cast(), from, len, queue.stream()))
        })
    }

    /// Remembers this point of the stream for `wait`.
    pub(super) fn mark(&mut self, queue: &CallQueue) -> Result<()> {
        // SAFETY: event and stream are live.
        queue.check(unsafe { call!(cuEventRecord(self.done, queue.stream())) })?;
        self.marked = true;
        Ok(())
    }

    /// Whether the device has passed the point remembered, if any.
    pub(super) fn is_done(&self, queue: &CallQueue) -> Result<bool> {
        if !self.marked {
            return Ok(true);
        }
        // SAFETY: a live event.
        match unsafe { call!(cuEventQuery(self.done)) } {
            Err(failed) if failed.code == sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => queue.check(other).map(|()| true),
        }
    }

    /// Waits for the point remembered, if any.
    pub(super) fn wait(&mut self, queue: &CallQueue) -> Result<()> {
        if self.marked {
            // SAFETY: a live event.
            queue.check(unsafe { call!(cuEventSynchronize(self.done)) })?;
            self.marked = false;
        }
        Ok(())
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: the owner's end; the wait keeps the memory until the device is done with it.
        // Errors cannot be reported here, and come back at the next call.
        unsafe {
            if !self.done.is_null() {
                if self.marked {
                    let _ = call!(cuEventSynchronize(self.done));
                }
                let _ = call!(cuEventDestroy_v2(self.done));
            }
            let _ = call!(cuMemFreeHost(self.start.cast()));
        }
    }
}

/// Segments filled in turn by small uploads.
#[derive(Debug)]
struct Ring {
    segments: Vec<Pinned>,
    current: usize,
    used: usize,
}

impl Ring {
    fn new(queue: &CallQueue) -> Result<Self> {
        let segments = (0..SEGMENTS).map(|_| Pinned::new(queue, LARGE)).collect::<Result<_>>()?;
        Ok(Ring { segments, current: 0, used: 0 })
    }

    /// # Safety
    /// As [`Staging::upload`]; `from` is shorter than a segment.
    unsafe fn upload(&mut self, queue: &CallQueue, to: u64, from: &[u8]) -> Result<()> {
        if self.used + from.len() > LARGE {
            self.segments[self.current].mark(queue)?;
            let next = (self.current + 1) % SEGMENTS;
            self.segments[next].wait(queue)?;
            (self.current, self.used) = (next, 0);
        }
        let segment = &self.segments[self.current];
        // SAFETY: the range lies in the segment, and no copy under way reads it: those since the
        // segment's turn began lie before `used`, those of its former turn were waited for.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), segment.start.add(self.used), from.len())
        };
        // SAFETY: the caller's promise; the range is not written again before its copy was waited
        // for.
        unsafe { segment.send(queue, self.used, to, from.len()) }?;
        self.used = (self.used + from.len()).next_multiple_of(ALIGNMENT);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_a_copy_once() {
        for len in [1, CHUNK - 1, CHUNK, CHUNK + 1, 7 * CHUNK + 3] {
            let chunks = Chunks::of(len);
            let mut at = 0;
            while let Some((offset, len)) = chunks.take() {
                assert_eq!(offset, at);
                at += len;
            }
            assert_eq!(at, len);
            assert_eq!(chunks.take(), None);
        }
    }

    #[test]
    fn no_chunk_is_handed_out_after_a_failure() {
        let chunks = Chunks::of(10 * CHUNK);
        assert!(chunks.take().is_some());
        chunks.failed.store(true, Relaxed);
        assert_eq!(chunks.take(), None);
    }
}
