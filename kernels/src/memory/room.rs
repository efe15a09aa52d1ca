//! Room for allocations: what keeps device memory without need lets go of it.
//!
//! ```text
//!   cached   columns of files, kept for later queries     dropped, they can be read again
//!   kept     tables that a user keeps                      moved to host memory, and back
//! ```
//!
//! Whoever keeps such pieces is a [`Holder`], which the device knows. A piece that somebody else
//! uses, too, stays: its buffers are shared, and letting go of it would free nothing. Among the
//! others the piece goes first that was used longest ago, whoever holds it.
//!
//! Cached pieces go from inside an allocation that the pool refuses (`pool.rs`). The allocating
//! thread may hold locks of its own, so holders are asked without waiting for their locks.
//!
//! Kept pieces do not go from there: to copy them to the host means to launch kernels, to allocate,
//! and to wait for the stream, while an operator is between an allocation and the launch for which
//! it was made. They go from [`Device::make_room`], which is called where no operator is under way,
//! and from [`RoomRetry`], where a statement failed and has let go of what it had.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::counters::Counters;
use crate::error::{Result, Shortage};
use crate::{Device, Driver};

/// Something that keeps device memory and can let go of it, piece by piece.
pub trait Holder: Debug + Send + Sync {
    /// What it keeps on the device; nothing while somebody has its lock.
    fn pieces(&self) -> Vec<HeldPiece>;

    /// Lets go of a piece, where only holders have it by now: whether it did. Of a cached piece
    /// this neither allocates nor waits.
    ///
    /// # Errors
    /// Of the device, for a kept piece.
    fn let_go(&self, number: usize, holders: &Sharers) -> Result<bool>;
}

/// What of a holder goes as a whole.
#[derive(Debug, Clone)]
pub struct HeldPiece {
    pub kind: PieceKind,
    /// Its number at its holder.
    pub number: usize,
    /// When it was used last, by [`Device::tick`].
    pub used: u64,
    pub buffers: Vec<HeldBuffer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PieceKind {
    /// It can be had again from where it came from.
    Cached,
    /// It has to be moved.
    Kept,
}

/// A buffer of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBuffer {
    pub address: u64,
    pub bytes: u64,
    /// How many have it, the holder among them.
    pub users: usize,
    /// Whoever uses the piece has this buffer.
    pub leads: bool,
}

/// How many pieces of holders have a buffer, by its address.
#[derive(Debug, Default)]
pub struct Sharers(HashMap<u64, usize>);

impl Sharers {
    fn of<'a>(pieces: impl Iterator<Item = &'a HeldPiece>) -> Sharers {
        let mut sharers = Sharers::default();
        for buffer in pieces.flat_map(|piece| &piece.buffers) {
            *sharers.0.entry(buffer.address).or_default() += 1;
        }
        sharers
    }

    /// Whether nobody else has a buffer: nobody but who asks, where no other holder is known of.
    fn have_alone(&self, buffer: &HeldBuffer) -> bool {
        buffer.users <= self.0.get(&buffer.address).copied().unwrap_or(1)
    }

    /// Whether nobody uses the piece of these buffers.
    pub fn are_idle(&self, buffers: &[HeldBuffer]) -> bool {
        buffers.iter().filter(|buffer| buffer.leads).all(|buffer| self.have_alone(buffer))
    }

    /// Bytes of different buffers that would be free without these pieces.
    fn freed_by<'a>(&self, pieces: impl Iterator<Item = &'a HeldPiece>) -> u64 {
        let mut seen = HashSet::new();
        let idle =
            pieces.filter(|piece| self.are_idle(&piece.buffers)).flat_map(|piece| &piece.buffers);
        let alone = idle.filter(|buffer| self.have_alone(buffer) && seen.insert(buffer.address));
        alone.map(|buffer| buffer.bytes).sum()
    }
}

/// Bytes of device memory that holders have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HeldBytes {
    pub(crate) cached: u64,
    pub(crate) kept: u64,
}

/// The holders of a device and its branches.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    known: Mutex<Vec<Weak<dyn Holder>>>,
    /// Those of the device and its branches: each keeps freed blocks of its own.
    drivers: Mutex<Vec<Weak<dyn Driver>>>,
    clock: AtomicU64,
    columns_evicted: AtomicU64,
    bytes_evicted: AtomicU64,
    tables_moved_out: AtomicU64,
    bytes_moved_out: AtomicU64,
    tables_moved_back: AtomicU64,
}

type PieceOfHolder = (Arc<dyn Holder>, HeldPiece);

impl Holders {
    pub(crate) fn add(&self, holder: Weak<dyn Holder>) {
        let mut known = self.known.lock();
        // The dead go each time that there is no space left.
        if known.len() == known.capacity() {
            known.retain(|holder| holder.strong_count() > 0);
            let live = known.len();
            known.reserve(live.max(64));
        }
        known.push(holder);
    }

    pub(crate) fn add_driver(&self, driver: &Arc<dyn Driver>) {
        self.drivers.lock().push(Arc::downgrade(driver));
    }

    fn pieces(&self) -> Vec<PieceOfHolder> {
        // What is dropped here for the last time frees memory: behind the lock.
        let holders: Vec<_> = self.known.lock().iter().filter_map(Weak::upgrade).collect();
        let of = |holder: Arc<dyn Holder>| {
            holder.pieces().into_iter().map(move |piece| (holder.clone(), piece))
        };
        holders.into_iter().flat_map(of).collect()
    }

    /// Bytes that cached pieces hold, and kept ones.
    pub(crate) fn held(&self) -> HeldBytes {
        let (mut seen, mut held) = (HashSet::new(), HeldBytes::default());
        for (_, piece) in self.pieces() {
            for buffer in piece.buffers.iter().filter(|buffer| seen.insert(buffer.address)) {
                match piece.kind {
                    PieceKind::Cached => held.cached += buffer.bytes,
                    PieceKind::Kept => held.kept += buffer.bytes,
                }
            }
        }
        held
    }

    /// Bytes that would be free if all went that can go.
    pub(crate) fn evictable(&self) -> u64 {
        let pieces = self.pieces();
        let pieces = || pieces.iter().map(|(_, piece)| piece);
        Sharers::of(pieces()).freed_by(pieces())
    }

    /// Drops cached pieces for so many bytes, and none where all of them are not enough: whether
    /// any went.
    pub(crate) fn evict_for(&self, bytes: u64) -> Result<bool> {
        let pieces = self.cached();
        let of_all = || pieces.iter().map(|(_, piece)| piece);
        match Sharers::of(of_all()).freed_by(of_all()) < bytes {
            true => Ok(false),
            false => self.evict(pieces, bytes),
        }
    }

    fn cached(&self) -> Vec<PieceOfHolder> {
        let mut pieces = self.pieces();
        pieces.retain(|(_, piece)| piece.kind == PieceKind::Cached);
        pieces
    }

    /// Drops cached pieces until so many bytes are free, or no more can go: whether any went.
    fn evict(&self, mut pieces: Vec<PieceOfHolder>, bytes: u64) -> Result<bool> {
        pieces.sort_by_key(|(_, piece)| piece.used);
        let sharers = Sharers::of(pieces.iter().map(|(_, piece)| piece));
        // What two of them have is free when the second one goes.
        let mut left = sharers.0.clone();
        let (mut any, mut freed) = (false, 0);
        for (holder, piece) in &pieces {
            if freed >= bytes {
                break;
            }
            if !sharers.are_idle(&piece.buffers) || !holder.let_go(piece.number, &sharers)? {
                continue;
            }
            let mut own = 0;
            for buffer in &piece.buffers {
                let left = left.entry(buffer.address).or_default();
                *left = left.saturating_sub(1);
                if *left == 0 && sharers.have_alone(buffer) {
                    own += buffer.bytes;
                }
            }
            freed += own;
            self.count_evicted(own);
            any = true;
        }
        Ok(any)
    }

    fn count_evicted(&self, bytes: u64) {
        self.columns_evicted.fetch_add(1, Relaxed);
        self.bytes_evicted.fetch_add(bytes, Relaxed);
    }

    /// Moves kept pieces, with the cached ones that share their buffers, until `is_enough`: how
    /// many.
    fn move_out(&self, mut is_enough: impl FnMut() -> Result<bool>) -> Result<usize> {
        let mut pieces = self.pieces();
        pieces.sort_by_key(|(_, piece)| piece.used);
        let sharers = Sharers::of(pieces.iter().map(|(_, piece)| piece));
        let mut moved = 0;
        for (holder, piece) in pieces.iter().filter(|(_, piece)| piece.kind == PieceKind::Kept) {
            if is_enough()? {
                break;
            }
            if !sharers.are_idle(&piece.buffers) || !holder.let_go(piece.number, &sharers)? {
                continue;
            }
            moved += 1;
            self.tables_moved_out.fetch_add(1, Relaxed);
            self.bytes_moved_out
                .fetch_add(piece.buffers.iter().map(|buffer| buffer.bytes).sum(), Relaxed);
            let leads = piece.buffers.iter().filter(|buffer| buffer.leads);
            let leads: HashSet<u64> = leads.map(|buffer| buffer.address).collect();
            let shares = |(_, other): &&PieceOfHolder| {
                other.kind == PieceKind::Cached
                    && other.buffers.iter().any(|buffer| leads.contains(&buffer.address))
            };
            for (holder, other) in pieces.iter().filter(shares) {
                if holder.let_go(other.number, &sharers)? {
                    self.count_evicted(0);
                }
            }
        }
        Ok(moved)
    }

    /// Gives back to the device what drivers keep of freed memory.
    pub(crate) fn trim(&self) -> Result<()> {
        let drivers: Vec<_> = self.drivers.lock().iter().filter_map(Weak::upgrade).collect();
        drivers.iter().try_for_each(|driver| driver.trim())
    }

    pub(crate) fn add_counts(&self, counters: &mut Counters) {
        counters.columns_evicted = self.columns_evicted.load(Relaxed);
        counters.bytes_evicted = self.bytes_evicted.load(Relaxed);
        counters.tables_moved_out = self.tables_moved_out.load(Relaxed);
        counters.bytes_moved_out = self.bytes_moved_out.load(Relaxed);
        counters.tables_moved_back = self.tables_moved_back.load(Relaxed);
    }
}

impl Device {
    /// Makes something known that keeps memory of this device, as long as it lives.
    pub fn hold(&self, holder: Weak<dyn Holder>) {
        self.0.pool.holders.add(holder);
    }

    /// The next number of a clock that only tells what was used later.
    pub fn tick(&self) -> u64 {
        self.0.pool.holders.clock.fetch_add(1, Relaxed)
    }

    /// Notes that a kept table came back to the device.
    pub fn count_moved_back(&self) {
        self.0.pool.holders.tables_moved_back.fetch_add(1, Relaxed);
    }

    /// Makes room for so many bytes, as far as that can be, for who else uses the GPU: columns of
    /// files that no query uses go, then results and tables that none uses move to host memory,
    /// until queries read them. [`MemoryUse::evictable`](crate::MemoryUse::evictable) says how much
    /// there is. Yields the bytes that are free then; [`Device::trim`] gives them back to the
    /// system.
    ///
    /// # Errors
    /// Of the device; [`Interrupted`](crate::ErrorKind::Interrupted).
    ///
    /// ```
    /// # use warpframe_device::{Device, MemoryLimit, SimOptions};
    /// let device = Device::sim(SimOptions::default(), MemoryLimit::default())?;
    /// let kept = device.alloc_zeroed("example", 1000)?;
    /// let memory = device.memory();
    /// assert_eq!(memory.evictable, 0, "nobody offered the buffer");
    /// assert!(device.make_room(memory.limit)? >= memory.limit - memory.used);
    /// assert_eq!(device.memory().used, memory.used);
    /// drop(kept);
    /// # Ok::<(), warpframe_device::Error>(())
    /// ```
    // Not while an operator is under way on this thread.
    pub fn make_room(&self, bytes: u64) -> Result<u64> {
        let (pool, driver) = (&self.0.pool, &*self.0.driver);
        let free = pool.free_bytes(driver)?;
        if free < bytes {
            pool.holders.evict(pool.holders.cached(), bytes - free)?;
            self.move_out(bytes)?;
        }
        pool.free_bytes(driver)
    }

    /// Moves kept tables to the host until so many bytes are free: how many moved.
    fn move_out(&self, bytes: u64) -> Result<usize> {
        let (pool, driver) = (&self.0.pool, &*self.0.driver);
        pool.holders.move_out(|| Ok(pool.free_bytes(driver)? >= bytes))
    }

    /// For running something again that memory did not suffice for.
    pub fn room_retry(&self) -> RoomRetry {
        RoomRetry { device: self.clone(), round: 0 }
    }
}

/// Makes room between the rounds of something that fails for want of memory: each round wants more,
/// the last one all that there is.
#[derive(Debug)]
pub struct RoomRetry {
    device: Device,
    round: usize,
}

impl RoomRetry {
    /// Whether there is more room after something failed for this shortage, so that another round
    /// makes sense. It has let go of its memory.
    ///
    /// # Errors
    /// Of the device.
    pub fn makes_room(&mut self, shortage: Option<Shortage>) -> Result<bool> {
        let Some(Shortage { asked, free, limit }) = shortage else { return Ok(false) };
        // One that a test injected, or more than there can ever be.
        if asked <= free || asked > limit {
            return Ok(false);
        }
        let lacking = asked - free;
        let Some(more) = [lacking, lacking.max(limit / 4), limit].get(self.round).copied() else {
            return Ok(false);
        };
        self.round += 1;
        // What failed had what is free now.
        let free = self.device.0.pool.free_bytes(&*self.device.0.driver)?;
        Ok(self.device.move_out(free.saturating_add(more))? > 0)
    }
}

#[cfg(test)]
mod tests;
