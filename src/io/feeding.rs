//! Stretches of files, brought to the device in their order by several threads.
//!
//! ```text
//!   workers   bytes of 0 │ bytes of 1 │ bytes of 2 │ …
//!   caller    memory for 0, 1, 2 …    │ use of 0   │ use of 1   │ …
//! ```
//!
//! Workers are at most [`OPEN`] stretches ahead of the caller: what they feed takes device memory
//! until it is used.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};
use warpframe_device::cores::cores;
use warpframe_device::interrupt;
use warpframe_device::{Buffer, Device, Event, Fed, MOST_FED};

/// Most stretches that are in device memory unused, or on their way there.
const OPEN: usize = 6;
/// Most threads that read files; more take cores from the thread that submits work.
const WORKERS: usize = 8;
/// Bytes for which another thread is started.
const PER_WORKER: u64 = 1 << 20;

/// Bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) file: usize,
    pub(super) range: Range<u64>,
}

impl Stretch {
    fn bytes(&self) -> usize {
        (self.range.end - self.range.start) as usize
    }
}

/// Memory that is left free around the bytes of a stretch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) before: usize,
    pub(super) behind: usize,
}

/// Whether the caller wants the stretches behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Further {
    More,
    Enough,
}

/// A stretch whose memory the workers fill.
struct OpenStretch {
    number: usize,
    bytes: Arc<Buffer>,
    after: Arc<Event>,
    /// Bytes that workers took, and those that are on their way.
    taken: usize,
    done: usize,
    fed: Vec<Fed>,
}

#[derive(Default)]
struct FeedState {
    open: VecDeque<OpenStretch>,
    failed: Option<Error>,
    closed: bool,
}

/// What workers and the caller share.
struct FeedWork<'a> {
    device: &'a Device,
    stretches: &'a [Stretch],
    room: Room,
    state: Mutex<FeedState>,
    opened: Condvar,
    done: Condvar,
}

/// A piece of a stretch for one worker.
struct StretchPart {
    number: usize,
    begin: usize,
    length: usize,
    bytes: Arc<Buffer>,
    after: Arc<Event>,
}

/// Brings stretches to the device: `read` fills memory with a file's bytes from a place on, `used`
/// gets each stretch in order, with its bytes at `room.before` of the buffer, which work that is
/// submitted to the device finds there.
///
/// # Errors
/// Of `read` and `used`; of the device; an interrupt.
pub(super) fn feed(
    device: &Device,
    stretches: &[Stretch],
    room: Room,
    read: impl Fn(usize, u64, &mut [u8]) -> Result<()> + Sync,
    mut used: impl FnMut(usize, Arc<Buffer>) -> Result<Further>,
) -> Result<()> {
    let (state, opened, done) = (Mutex::default(), Condvar::new(), Condvar::new());
    let shared = FeedWork { device, stretches, room, state, opened, done };
    let bytes: u64 = stretches.iter().map(|stretch| stretch.bytes() as u64).sum();
    let cores = cores();
    let workers = (bytes.div_ceil(PER_WORKER) as usize).clamp(1, WORKERS.min(cores));
    let statement = interrupt::current();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let _entered = statement.as_ref().map(|statement| statement.enter());
                shared.work(&read);
            });
        }
        let outcome = shared.use_all(&mut used);
        shared.state.lock().closed = true;
        shared.opened.notify_all();
        outcome
    })
}

impl FeedWork<'_> {
    fn use_all(&self, used: &mut impl FnMut(usize, Arc<Buffer>) -> Result<Further>) -> Result<()> {
        for number in 0..self.stretches.len() {
            let first = if number == 0 { 0 } else { number + OPEN - 1 };
            for next in first..(number + OPEN).min(self.stretches.len()) {
                self.open(next)?;
            }
            let opened = self.fed(number)?;
            opened.fed.into_iter().try_for_each(|fed| fed.arrive(self.device))?;
            if used(number, opened.bytes)? == Further::Enough {
                break;
            }
        }
        Ok(())
    }

    fn open(&self, number: usize) -> Result<()> {
        let bytes = self.room.before + self.stretches[number].bytes() + self.room.behind;
        let bytes = Arc::new(self.device.alloc("files", bytes)?);
        let after = Arc::new(self.device.record()?);
        self.state.lock().open.push_back(OpenStretch {
            number,
            bytes,
            after,
            taken: 0,
            done: 0,
            fed: vec![],
        });
        self.opened.notify_all();
        Ok(())
    }

    /// Waits until all bytes of a stretch are on their way.
    fn fed(&self, number: usize) -> Result<OpenStretch> {
        let mut state = self.state.lock();
        loop {
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            let whole = self.stretches[number].bytes();
            if let Some(opened) =
                state.open.pop_front_if(|opened| opened.number == number && opened.done == whole)
            {
                return Ok(opened);
            }
            self.done.wait_for(&mut state, interrupt::PACE);
            interrupt::check()?;
        }
    }

    /// Feeds pieces until nobody wants more, or something failed.
    fn work(&self, read: &(impl Fn(usize, u64, &mut [u8]) -> Result<()> + Sync)) {
        while let Some(piece) = self.take() {
            let stretch = &self.stretches[piece.number];
            let mut fill = |bytes: &mut [u8]| {
                Ok(read(stretch.file, stretch.range.start + piece.begin as u64, bytes)?)
            };
            let fed = interrupt::check().and_then(|()| {
                let offset = self.room.before + piece.begin;
                self.device.feed(&piece.bytes, offset, piece.length, &piece.after, &mut fill)
            });
            let mut state = self.state.lock();
            match fed {
                Ok(fed) => {
                    if let Some(opened) =
                        state.open.iter_mut().find(|opened| opened.number == piece.number)
                    {
                        opened.done += piece.length;
                        opened.fed.push(fed);
                    }
                }
                Err(error) => {
                    state.failed = state.failed.take().or(Some(error.into()));
                    state.closed = true;
                    self.opened.notify_all();
                }
            }
            drop(state);
            self.done.notify_all();
        }
    }

    fn take(&self) -> Option<StretchPart> {
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return None;
            }
            let whole = |opened: &OpenStretch| self.stretches[opened.number].bytes();
            if let Some(opened) = state.open.iter_mut().find(|opened| opened.taken < whole(opened))
            {
                let (begin, number) = (opened.taken, opened.number);
                let length = MOST_FED.min(self.stretches[number].bytes() - begin);
                opened.taken += length;
                let (bytes, after) = (opened.bytes.clone(), opened.after.clone());
                return Some(StretchPart { number, begin, length, bytes, after });
            }
            self.opened.wait(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpframe_device::{MemoryLimit, SimOptions};

    fn device() -> Device {
        Device::sim(SimOptions::default(), MemoryLimit::default()).unwrap()
    }

    /// The byte of a file at a place.
    fn byte(file: usize, at: u64) -> u8 {
        (at.wrapping_mul(31) + file as u64) as u8
    }

    fn stretches() -> Vec<Stretch> {
        let of = |file: usize| {
            let parts =
                [0..5_000_000u64, 5_000_000..5_000_001, 5_000_001..5_000_001, 5_000_001..9_999_999];
            parts.into_iter().map(move |range| Stretch { file, range })
        };
        (0..3).flat_map(of).collect()
    }

    #[test]
    fn stretches_come_whole_and_in_order() {
        let device = device();
        let stretches = stretches();
        let read = |file: usize, begin: u64, bytes: &mut [u8]| {
            bytes.iter_mut().zip(begin..).for_each(|(to, at)| *to = byte(file, at));
            Ok(())
        };
        let mut seen = vec![];
        feed(&device, &stretches, Room { before: 64, behind: 10 }, read, |number, bytes| {
            let stretch = &stretches[number];
            assert_eq!(bytes.len(), 64 + stretch.bytes() + 10);
            let mut found = vec![0; bytes.len()];
            bytes.read(0, &mut found)?;
            let own = &found[64..64 + stretch.bytes()];
            assert!(
                own.iter()
                    .zip(stretch.range.clone())
                    .all(|(found, at)| *found == byte(stretch.file, at))
            );
            seen.push(number);
            Ok(Further::More)
        })
        .unwrap();
        assert_eq!(seen, (0..stretches.len()).collect::<Vec<_>>());
        assert_eq!(device.memory().used, 0);
    }

    #[test]
    fn nothing_is_read_behind_what_is_enough_and_errors_come_back() {
        let device = device();
        let stretches = stretches();
        let read = |_: usize, _: u64, _: &mut [u8]| Ok(());
        let mut used = 0;
        feed(&device, &stretches, Room { before: 0, behind: 0 }, read, |_, _| {
            used += 1;
            Ok(if used == 2 { Further::Enough } else { Further::More })
        })
        .unwrap();
        assert_eq!(used, 2);
        let fails = |file: usize, _: u64, _: &mut [u8]| match file {
            1 => Err(Error::internal("the second file")),
            _ => Ok(()),
        };
        let error = feed(&device, &stretches, Room { before: 0, behind: 0 }, fails, |_, _| {
            Ok(Further::More)
        });
        assert!(error.unwrap_err().to_string().contains("the second file"));
        assert_eq!(device.memory().used, 0);
    }
}
