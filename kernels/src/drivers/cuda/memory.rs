//! Device memory: a pool of the driver's, and before it blocks that were freed and are kept for the
//! next ones to ask.
//!
//! The driver takes about as long for an allocation and its release as for a launch, and an
//! operator of a small table has several of each. So blocks that come back are kept by size, up to
//! a share of the device's memory, and given out again: all work is of one stream, and what was
//! submitted before the block came back runs before what is submitted after it is given out. Small
//! blocks that are to be zero come from slabs that were set to zero at once (`zeros.rs`).

use std::collections::BTreeMap;
use std::sync::Arc;

use cudarc::driver::sys;
use parking_lot::{Mutex, MutexGuard};

use super::calls::{Failed, call};
use super::zeros::{ALIGNMENT, Zeros};
use crate::error::Result;

/// Larger blocks go back to the driver's pool at once: their kernels take long beside it.
const LARGEST: usize = 32 << 20;
/// Blocks kept are at most this part of the device's memory.
const SHARE: u64 = 64;

/// A pool of the driver's, of our own: what it keeps for reuse is not taken from others who use the
/// default pool. Streams may share it: it gives a block to another stream once that follows what
/// used it.
#[derive(Debug)]
struct DriverPool(sys::CUmemoryPool);

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for DriverPool {}
// SAFETY: as above.
unsafe impl Sync for DriverPool {}

impl Drop for DriverPool {
    fn drop(&mut self) {
        // SAFETY: the owner's end; the driver keeps what is still in use until its release.
        let _ = unsafe { call!(cuMemPoolDestroy(self.0)) };
    }
}

/// Memory of one stream.
#[derive(Debug)]
pub(super) struct StreamMemory {
    pool: Arc<DriverPool>,
    kept: Mutex<FreeBlocks>,
    /// Locked before `kept` where both are.
    zeros: Mutex<Zeros>,
}

impl StreamMemory {
    /// For a device of so many bytes. With `WARPFRAME_EXACT_MEMORY=1` nothing is rounded or kept,
    /// so that a checker of accesses sees every allocation as it was asked for.
    pub(super) fn new(device: sys::CUdevice, total: u64) -> Result<Self> {
        // SAFETY: a plain C structure, for which the driver demands that what is not set be zero.
        // Zero is a value of each of its enumerations, or they are set below.
        let mut wanted: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
        wanted.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        wanted.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        wanted.location.id = device;
        let mut pool = std::ptr::null_mut();
        // SAFETY: reads the properties, writes the handle.
        unsafe { call!(cuMemPoolCreate(&mut pool, &wanted))? };
        let exact =
            crate::environment::os("WARPFRAME_EXACT_MEMORY").is_some_and(|value| value == "1");
        let kept = FreeBlocks::up_to(if exact { 0 } else { total / SHARE });
        let memory = StreamMemory {
            pool: Arc::new(DriverPool(pool)),
            kept: Mutex::new(kept),
            zeros: Mutex::default(),
        };
        // Never give memory back unasked: at the default of 0, an allocation of 1 GiB costs 31 ms
        // instead of 1.3 µs.
        let mut threshold = u64::MAX;
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: this attribute is a u64.
        unsafe {
            call!(cuMemPoolSetAttribute(memory.pool.0, attribute, (&raw mut threshold).cast()))?
        };
        Ok(memory)
    }

    /// Lets another device read and write the pool's memory.
    pub(super) fn admit(&self, device: sys::CUdevice) -> Result<(), Failed> {
        // SAFETY: a plain C structure; what is not set may be zero.
        let mut access: sys::CUmemAccessDesc = unsafe { std::mem::zeroed() };
        access.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        access.location.id = device;
        access.flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        // SAFETY: reads one description.
        unsafe { call!(cuMemPoolSetAccess(self.pool.0, &access, 1)) }
    }

    /// Memory of another stream from this pool, which keeps fewer free bytes.
    pub(super) fn beside(&self) -> Self {
        let kept = FreeBlocks::up_to(self.kept().most / 8);
        StreamMemory { pool: self.pool.clone(), kept: Mutex::new(kept), zeros: Mutex::default() }
    }

    fn attribute(&self, attribute: sys::CUmemPool_attribute) -> Result<u64, Failed> {
        let mut value = 0u64;
        // SAFETY: the two attributes asked for below are u64.
        unsafe { call!(cuMemPoolGetAttribute(self.pool.0, attribute, (&raw mut value).cast()))? };
        Ok(value)
    }

    /// Bytes taken from the device, in use or kept.
    pub(super) fn reserved(&self) -> Result<u64, Failed> {
        self.attribute(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
    }

    /// Bytes taken from the device and not in use.
    pub(super) fn idle(&self) -> Result<u64, Failed> {
        let given_out =
            self.attribute(sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?;
        let zeros = self.zeros().idle_bytes();
        Ok(self.reserved()?.saturating_sub(given_out) + self.kept().bytes + zeros)
    }

    /// A block that was freed, or one of zeros.
    pub(super) fn take(&self, bytes: usize, zeroed: bool) -> Option<u64> {
        match zeroed {
            true if bytes <= Zeros::LARGEST => self.zeros().take(bytes),
            true => None,
            false => self.kept().take(bytes).ok(),
        }
    }

    /// Whether a block that is freed is kept.
    pub(super) fn put(&self, address: u64, bytes: usize) -> bool {
        (bytes <= Zeros::LARGEST && self.zeros().put(address)) || self.kept().put(bytes, address)
    }

    /// `Ok(None)` where memory is exhausted.
    pub(super) fn alloc(&self, stream: sys::CUstream, bytes: usize) -> Result<Option<u64>, Failed> {
        let size = match self.kept().take(bytes) {
            Ok(address) => return Ok(Some(address)),
            Err(size) => size,
        };
        let mut address = 0;
        // SAFETY: live pool and stream; writes the address only.
        match unsafe { call!(cuMemAllocFromPoolAsync(&mut address, size, self.pool.0, stream)) } {
            Ok(()) => Ok(Some(address)),
            Err(failed) if failed.code == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            Err(failed) => Err(failed),
        }
    }

    /// Allocates bytes that are zero. `Ok(None)` where memory is exhausted.
    pub(super) fn alloc_zeroed(
        &self,
        stream: sys::CUstream,
        bytes: usize,
    ) -> Result<Option<u64>, Failed> {
        // SAFETY: the range is one live allocation.
        let clear = |address, bytes| unsafe { call!(cuMemsetD8Async(address, 0, bytes, stream)) };
        if bytes > Zeros::LARGEST || self.kept().most == 0 {
            let Some(address) = self.alloc(stream, bytes)? else { return Ok(None) };
            if let Err(failed) = clear(address, bytes) {
                // SAFETY: as above, and nobody else knows it.
                unsafe { self.free(stream, address, bytes)? };
                return Err(failed);
            }
            return Ok(Some(address));
        }
        let mut zeros = self.zeros();
        if let Some(address) = zeros.take(bytes) {
            return Ok(Some(address));
        }
        let slab = match zeros.idle() {
            Some(slab) => slab,
            None => match self.alloc(stream, Zeros::SLAB)? {
                Some(slab) => slab,
                None => return Ok(None),
            },
        };
        if let Err(failed) = clear(slab, Zeros::SLAB) {
            // SAFETY: an allocation of which no part is given out.
            unsafe { call!(cuMemFreeAsync(slab, stream))? };
            return Err(failed);
        }
        zeros.add(slab);
        Ok(zeros.take(bytes))
    }

    /// # Safety
    /// The address came from `alloc` or `alloc_zeroed` for the same stream and bytes, and no work
    /// that is submitted later uses it.
    pub(super) unsafe fn free(
        &self,
        stream: sys::CUstream,
        address: u64,
        bytes: usize,
    ) -> Result<(), Failed> {
        if self.put(address, bytes) {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { call!(cuMemFreeAsync(address, stream)) }
    }

    /// Returns the blocks kept to the pool, as the stream passes this point: all that can be,
    /// whichever cannot.
    pub(super) fn release(&self, stream: sys::CUstream) -> Result<(), Failed> {
        let mut blocks = self.zeros().drain();
        blocks.extend(self.kept().drain());
        // SAFETY: an allocation of this pool that nobody holds.
        let free = |address| unsafe { call!(cuMemFreeAsync(address, stream)) };
        blocks.into_iter().map(free).fold(Ok(()), Result::and)
    }

    /// Returns to the device what of the pool is not in use.
    pub(super) fn trim(&self) -> Result<(), Failed> {
        // SAFETY: a live pool; keeps what is in use.
        unsafe { call!(cuMemPoolTrimTo(self.pool.0, 0)) }
    }

    fn kept(&self) -> MutexGuard<'_, FreeBlocks> {
        self.kept.lock()
    }

    fn zeros(&self) -> MutexGuard<'_, Zeros> {
        self.zeros.lock()
    }
}

/// Blocks by size.
#[derive(Debug, Default)]
struct FreeBlocks {
    blocks: BTreeMap<usize, Vec<u64>>,
    bytes: u64,
    most: u64,
}

impl FreeBlocks {
    fn up_to(most: u64) -> Self {
        FreeBlocks { most, ..FreeBlocks::default() }
    }

    /// Bytes to ask for: an eighth more than wanted at most, so that blocks of like sizes stand in
    /// for each other.
    fn size(&self, bytes: usize) -> usize {
        if bytes > LARGEST || self.most == 0 {
            return bytes;
        }
        let eighth = bytes.next_power_of_two() / 16;
        bytes.next_multiple_of(eighth.max(ALIGNMENT))
    }

    /// A block for so many bytes, or else the size that one would have.
    fn take(&mut self, bytes: usize) -> Result<u64, usize> {
        let size = self.size(bytes);
        let address = self.blocks.get_mut(&size).and_then(Vec::pop).ok_or(size)?;
        self.bytes -= size as u64;
        Ok(address)
    }

    /// Whether the block, which was for so many bytes, is kept.
    fn put(&mut self, bytes: usize, address: u64) -> bool {
        let size = self.size(bytes);
        let kept = size <= LARGEST && self.bytes + size as u64 <= self.most;
        if kept {
            self.blocks.entry(size).or_default().push(address);
            self.bytes += size as u64;
        }
        kept
    }

    fn drain(&mut self) -> Vec<u64> {
        self.bytes = 0;
        std::mem::take(&mut self.blocks).into_values().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_grow_by_an_eighth_at_most_and_stay_where_they_are() {
        let kept = FreeBlocks::up_to(1 << 30);
        for bytes in (1..70_000).chain([1 << 20, (1 << 20) + 1, 8_000_000, LARGEST - 1, LARGEST]) {
            let size = kept.size(bytes);
            assert!(size >= bytes && size.is_multiple_of(ALIGNMENT), "{bytes}: {size}");
            assert!(size <= (bytes + bytes / 8).next_multiple_of(ALIGNMENT), "{bytes}: {size}");
            assert_eq!(kept.size(size), size);
        }
        assert_eq!(kept.size(LARGEST + 1), LARGEST + 1);
        assert_eq!(FreeBlocks::up_to(0).size(1000), 1000);
    }

    #[test]
    fn blocks_are_given_out_again_by_size_and_no_more_are_kept_than_the_share() {
        let mut kept = FreeBlocks::up_to(1024);
        assert_eq!(kept.take(250), Err(256));
        assert!(kept.put(256, 1) && kept.put(500, 2) && kept.put(200, 3));
        assert!(!kept.put(256, 4), "beyond the share");
        assert_eq!((kept.take(256), kept.bytes), (Ok(3), 768));
        assert_eq!(kept.take(1024), Err(1024));
        let mut rest = kept.drain();
        rest.sort_unstable();
        assert_eq!((rest, kept.bytes, kept.take(512)), (vec![1, 2], 0, Err(512)));
        assert!(!FreeBlocks::up_to(1 << 40).put(LARGEST + 256, 5));
        assert!(!FreeBlocks::up_to(0).put(256, 5));
    }
}
