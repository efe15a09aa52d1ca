//! Host memory for what leaves the device for some time.
//!
//! Memory that the system gives is made page by page as it is touched: of pages of 4 KiB that takes
//! longer than the copy. So large blocks are mapped for themselves, and ask for large pages.

use crate::error::{ErrorKind, Result};

/// Bytes from which on a block is mapped.
const LARGE: usize = 4 << 20;
/// Large pages begin at multiples of this.
const LARGE_PAGE: usize = 2 << 20;

/// Bytes in host memory, zero at first.
#[derive(Debug)]
pub(crate) struct HostBlock(BlockMemory);

#[derive(Debug)]
enum BlockMemory {
    Small(Vec<u8>),
    /// A mapping of its own, and where in it the bytes begin.
    Mapped {
        start: *mut u8,
        mapped: usize,
        from: usize,
        len: usize,
    },
}

// SAFETY: the mapping is owned, and reached through the block alone.
unsafe impl Send for HostBlock {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for HostBlock {}

impl HostBlock {
    /// # Errors
    /// `OutOfHostMemory` where the system gives none.
    pub(crate) fn zeroed(len: usize) -> Result<HostBlock> {
        if len < LARGE {
            return Ok(HostBlock(BlockMemory::Small(vec![0; len])));
        }
        let mapped = len + LARGE_PAGE;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping of anonymous memory at a place that the system chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), mapped, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            let account = format!("{len} bytes for rows that do not fit into device memory");
            return Err(ErrorKind::OutOfHostMemory { account, limit: None, spill_limit: None }.into());
        }
        let from = start.align_offset(LARGE_PAGE);
        // SAFETY: a range of the mapping. It is a wish: nothing depends on its success.
        unsafe { libc::madvise(start.byte_add(from), len, libc::MADV_HUGEPAGE) };
        Ok(HostBlock(BlockMemory::Mapped { start: start.cast(), mapped, from, len }))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.0 {
            BlockMemory::Small(bytes) => bytes,
            // SAFETY: the range lies in the mapping, which lives as long as the block; anonymous memory
            // is initialised.
            BlockMemory::Mapped { start, from, len, .. } => unsafe {
                std::slice::from_raw_parts(start.add(*from), *len)
            },
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            BlockMemory::Small(bytes) => bytes,
            // SAFETY: as above, and the block is borrowed alone.
            BlockMemory::Mapped { start, from, len, .. } => unsafe {
                std::slice::from_raw_parts_mut(start.add(*from), *len)
            },
        }
    }
}

impl Drop for HostBlock {
    fn drop(&mut self) {
        if let BlockMemory::Mapped { start, mapped, .. } = self.0 {
            // SAFETY: the whole mapping, which nobody can reach any more.
            unsafe { libc::munmap(start.cast(), mapped) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_zero_and_hold_what_is_written() {
        for len in [0, 1, LARGE - 1, LARGE, LARGE + 12345] {
            let mut block = HostBlock::zeroed(len).unwrap();
            assert!(block.bytes().len() == len && block.bytes().iter().all(|byte| *byte == 0));
            block.bytes_mut().iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
            assert!(block.bytes().iter().enumerate().all(|(at, byte)| *byte == at as u8));
        }
    }

    #[test]
    fn memory_that_there_is_not_is_an_error() {
        let error = HostBlock::zeroed(1 << 60).expect_err("an exbibyte");
        assert!(matches!(error.kind(), ErrorKind::OutOfHostMemory { .. }), "{error}");
    }
}
