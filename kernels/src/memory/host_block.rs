//! Host memory for what leaves the device for some time, and files where that is not enough.
//!
//! Memory that the system gives is made page by page as it is touched: of pages of 4 KiB that takes
//! longer than the copy. So large blocks are mapped for themselves, and ask for large pages.
//!
//! Beyond a limit blocks are mappings of files, which the system writes and reads as it sees fit. A
//! file has no name from the moment on that it is made, so nothing stays of it whatever becomes of
//! the process, and its bytes are reserved before they are mapped: a full disk is an error, not a
//! signal.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::error::{Error, ErrorKind, Result};

/// Bytes from which on a block is mapped.
const LARGE: usize = 4 << 20;
/// Large pages begin at multiples of this.
const LARGE_PAGE: usize = 2 << 20;

/// Where blocks of a device lie.
#[derive(Debug)]
pub(crate) struct SpillSpace {
    bounds: Mutex<SpillBounds>,
    in_memory: AtomicU64,
    in_files: AtomicU64,
    files_made: AtomicU64,
    /// Steps that go well before one fails, where a test wants that.
    fail_after: Mutex<Option<u64>>,
}

/// How much may lie where.
#[derive(Debug, Clone)]
pub struct SpillBounds {
    /// Bytes in memory.
    pub memory: u64,
    /// Bytes in files.
    pub files: u64,
    /// The folder of the files.
    pub folder: PathBuf,
}

impl Default for SpillSpace {
    fn default() -> Self {
        let bounds = SpillBounds { memory: u64::MAX, files: 0, folder: std::env::temp_dir() };
        let bounds = Mutex::new(bounds);
        let (in_memory, in_files, files_made, fail_after) = Default::default();
        SpillSpace { bounds, in_memory, in_files, files_made, fail_after }
    }
}

impl SpillSpace {
    pub(crate) fn set(&self, bounds: SpillBounds) {
        *self.bounds.lock() = bounds;
    }

    pub(crate) fn fail_after(&self, successes: u64) {
        *self.fail_after.lock() = Some(successes);
    }

    /// A block is made, filled or read.
    ///
    /// # Errors
    /// What a full disk says, where a test wants this step to fail.
    fn step(&self) -> Result<()> {
        let mut fail_after = self.fail_after.lock();
        match &mut *fail_after {
            Some(0) => {
                *fail_after = None;
                let folder = self.bounds.lock().folder.clone();
                Err(Error::io(folder, std::io::Error::from_raw_os_error(libc::ENOSPC)))
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Bytes in memory and in files now.
    pub(crate) fn held(&self) -> (u64, u64) {
        (self.in_memory.load(Relaxed), self.in_files.load(Relaxed))
    }

    /// Bytes in files now.
    pub(crate) fn in_files(&self) -> u64 {
        self.in_files.load(Relaxed)
    }

    /// A block of zeros.
    ///
    /// # Errors
    /// `OutOfHostMemory` where neither memory nor files may hold it; [`ErrorKind::Io`] of the
    /// folder.
    pub(crate) fn block(self: &Arc<Self>, len: usize) -> Result<HostBlock> {
        self.step()?;
        let bytes = len as u64;
        let bounds = self.bounds.lock().clone();
        if self.in_memory.fetch_add(bytes, Relaxed) + bytes <= bounds.memory {
            let block = BlockMemory::of_memory(len);
            if block.is_err() {
                self.in_memory.fetch_sub(bytes, Relaxed);
            }
            return Ok(HostBlock { memory: block?, in_file: false, space: self.clone() });
        }
        self.in_memory.fetch_sub(bytes, Relaxed);
        let full = || -> Error {
            let account = format!("{len} bytes for rows that do not fit into device memory");
            let (limit, spill_limit) = (Some(bounds.memory), Some(bounds.files));
            ErrorKind::OutOfHostMemory { account, limit, spill_limit }.into()
        };
        let block = match self.in_files.fetch_add(bytes, Relaxed) + bytes <= bounds.files {
            true => {
                BlockMemory::of_file(&bounds.folder, self.files_made.fetch_add(1, Relaxed), len)
            }
            false => Err(full()),
        };
        if block.is_err() {
            self.in_files.fetch_sub(bytes, Relaxed);
        }
        Ok(HostBlock { memory: block?, in_file: true, space: self.clone() })
    }
}

/// Bytes on the host.
#[derive(Debug)]
pub struct HostBlock {
    memory: BlockMemory,
    in_file: bool,
    space: Arc<SpillSpace>,
}

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

// SAFETY: a mapping is owned, and reached through the block alone.
unsafe impl Send for BlockMemory {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for BlockMemory {}

impl BlockMemory {
    fn of_memory(len: usize) -> Result<BlockMemory> {
        let none = || -> Error {
            let account = format!("{len} bytes for rows that do not fit into device memory");
            ErrorKind::OutOfHostMemory { account, limit: None, spill_limit: None }.into()
        };
        if len < LARGE {
            let mut bytes = vec![];
            bytes.try_reserve_exact(len).map_err(|_| none())?;
            bytes.resize(len, 0);
            return Ok(BlockMemory::Small(bytes));
        }
        let mapped = len.saturating_add(LARGE_PAGE);
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping of anonymous memory at a place that the system chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), mapped, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(none());
        }
        let from = start.align_offset(LARGE_PAGE);
        // SAFETY: a range of the mapping. It is a wish: nothing depends on its success.
        unsafe { libc::madvise(start.byte_add(from), len, libc::MADV_HUGEPAGE) };
        Ok(BlockMemory::Mapped { start: start.cast(), mapped, from, len })
    }

    fn of_file(folder: &Path, number: u64, len: usize) -> Result<BlockMemory> {
        if len == 0 {
            return Ok(BlockMemory::Small(vec![]));
        }
        let path = folder.join(format!(".warpframe-spill-{}-{number}", std::process::id()));
        let failed = |error| Error::io(&path, error);
        let file: File = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(failed)?;
        std::fs::remove_file(&path).map_err(failed)?;
        let length = libc::off_t::try_from(len).unwrap_or(libc::off_t::MAX);
        // SAFETY: an open file.
        let reserved = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) };
        if reserved != 0 {
            return Err(failed(std::io::Error::from_raw_os_error(reserved)));
        }
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of an open file of this length, which nobody else can open.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), len, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        match start == libc::MAP_FAILED {
            true => Err(failed(std::io::Error::last_os_error())),
            false => Ok(BlockMemory::Mapped { start: start.cast(), mapped: len, from: 0, len }),
        }
    }

    fn len(&self) -> usize {
        match self {
            BlockMemory::Small(bytes) => bytes.len(),
            BlockMemory::Mapped { len, .. } => *len,
        }
    }
}

impl HostBlock {
    pub fn bytes(&self) -> &[u8] {
        match &self.memory {
            BlockMemory::Small(bytes) => bytes,
            // SAFETY: the range lies in the mapping, which lives as long as the block; mapped
            // memory is initialised.
            BlockMemory::Mapped { start, from, len, .. } => unsafe {
                std::slice::from_raw_parts(start.add(*from), *len)
            },
        }
    }

    /// The bytes, to be filled.
    ///
    /// # Errors
    /// Those that a test injects: what a block holds is reserved when it is made.
    pub fn filling(&mut self) -> Result<&mut [u8]> {
        self.space.step()?;
        Ok(self.bytes_mut())
    }

    /// The bytes, to be read back.
    ///
    /// # Errors
    /// As of [`HostBlock::filling`].
    pub fn to_read(&self) -> Result<&[u8]> {
        self.space.step()?;
        Ok(self.bytes())
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
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
        let counted = if self.in_file { &self.space.in_files } else { &self.space.in_memory };
        counted.fetch_sub(self.memory.len() as u64, Relaxed);
    }
}

impl Drop for BlockMemory {
    fn drop(&mut self) {
        if let BlockMemory::Mapped { start, mapped, .. } = self {
            // SAFETY: the whole mapping, which nobody can reach any more.
            unsafe { libc::munmap(start.cast(), *mapped) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(memory: u64, files: u64, folder: &Path) -> Arc<SpillSpace> {
        let space = Arc::new(SpillSpace::default());
        space.set(SpillBounds { memory, files, folder: folder.into() });
        space
    }

    #[test]
    fn blocks_are_zero_and_hold_what_is_written() {
        let folder = tempfile::tempdir().unwrap();
        for len in [0, 1, LARGE - 1, LARGE, LARGE + 12345] {
            for space in [space(u64::MAX, 0, folder.path()), space(0, u64::MAX, folder.path())] {
                let mut block = space.block(len).unwrap();
                assert!(block.bytes().len() == len && block.bytes().iter().all(|byte| *byte == 0));
                block.bytes_mut().iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
                assert!(block.bytes().iter().enumerate().all(|(at, byte)| *byte == at as u8));
                assert_eq!(
                    std::fs::read_dir(folder.path()).unwrap().count(),
                    0,
                    "files have no name"
                );
            }
        }
    }

    #[test]
    fn memory_comes_first_then_files_then_an_error_and_what_goes_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let space = space(1000, 5000, folder.path());
        let first = space.block(900).unwrap();
        let second = space.block(900).unwrap();
        assert_eq!((first.in_file, second.in_file, space.in_files()), (false, true, 900));
        let error = space.block(4500).expect_err("neither");
        match error.kind() {
            ErrorKind::OutOfHostMemory { limit, spill_limit, .. } => {
                assert_eq!((*limit, *spill_limit), (Some(1000), Some(5000)));
            }
            other => panic!("{other:?}"),
        }
        drop((first, second));
        assert_eq!(space.in_files(), 0);
        assert!(!space.block(1000).unwrap().in_file);
    }

    #[test]
    fn memory_that_there_is_not_and_a_folder_that_there_is_not_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let error = space(u64::MAX, 0, folder.path()).block(1 << 60).expect_err("an exbibyte");
        assert!(matches!(error.kind(), ErrorKind::OutOfHostMemory { .. }), "{error}");
        let nowhere = space(0, u64::MAX, &folder.path().join("nowhere"));
        assert!(matches!(nowhere.block(10).expect_err("no folder").kind(), ErrorKind::Io { .. }));
        assert!(
            matches!(nowhere.block(10).expect_err("no folder").kind(), ErrorKind::Io { .. }),
            "it stays usable"
        );
        assert_eq!(nowhere.in_files(), 0);
        // More than any disk has.
        let error = space(0, u64::MAX, folder.path()).block(1 << 55).expect_err("a full disk");
        assert!(matches!(error.kind(), ErrorKind::Io { .. }), "{error}");
    }
}
