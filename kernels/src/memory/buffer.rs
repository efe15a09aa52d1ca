//! Owned device memory and views of it.

use crate::Device;
use crate::drivers::driver::Driver;
use crate::error::Result;

/// Owned device memory. Dropping it returns the bytes after all work submitted so far.
#[derive(Debug)]
pub struct Buffer {
    device: Device,
    address: u64,
    len: usize,
    operator: &'static str,
    /// Who has the memory, where that is not the pool.
    foreign: Option<ForeignMemory>,
}

/// Memory of the device that another program allocated.
pub struct ForeignMemory {
    /// Lets its owner free it; called once, when nothing uses it any more.
    pub release: Box<dyn FnOnce() + Send + Sync>,
}

impl std::fmt::Debug for ForeignMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ForeignMemory")
    }
}

/// A borrowed range of a buffer.
#[derive(Debug, Clone, Copy)]
pub struct Slice<'a> {
    buffer: &'a Buffer,
    offset: usize,
}

impl<'a> From<&'a Buffer> for Slice<'a> {
    fn from(buffer: &'a Buffer) -> Self {
        buffer.slice(0)
    }
}

impl Slice<'_> {
    pub fn address(self) -> u64 {
        self.buffer.address + self.offset as u64
    }

    /// Bytes from the slice's start to the buffer's end.
    pub fn len(self) -> usize {
        self.buffer.len - self.offset
    }

    /// Whether no byte follows.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl Buffer {
    /// Allocates `len` bytes (one byte is allocated where `len` is 0, so that every buffer has an
    /// address).
    pub(crate) fn new(device: &Device, operator: &'static str, len: usize) -> Result<Self> {
        Self::allocated(device, operator, len, |driver, bytes| driver.alloc(bytes))
    }

    /// Allocates `len` bytes that are zero (one byte where `len` is 0).
    pub(crate) fn zeroed(device: &Device, operator: &'static str, len: usize) -> Result<Self> {
        Self::allocated(device, operator, len, |driver, bytes| driver.alloc_zeroed(bytes))
    }

    fn allocated(
        device: &Device,
        operator: &'static str,
        len: usize,
        ask: impl Fn(&dyn Driver, usize) -> Result<Option<u64>>,
    ) -> Result<Self> {
        let shared = &*device.0;
        let address = shared.pool.alloc(&*shared.driver, operator, len.max(1), ask)?;
        shared.counters.allocated();
        Ok(Buffer { device: device.clone(), address, len, operator, foreign: None })
    }

    /// Memory that another program allocated on the device and lends until the buffer goes.
    ///
    /// # Safety
    /// `len` bytes from `address` on, which is aligned to 256, may be read by the device until
    /// `release` is called, and nobody writes them.
    #[cfg_attr(not(feature = "ffi"), allow(dead_code, reason = "columns of other programs"))]
    pub unsafe fn borrowed(
        device: &Device,
        address: u64,
        len: usize,
        foreign: ForeignMemory,
    ) -> Self {
        // SAFETY: the caller's promise.
        unsafe { device.0.driver.borrow(address, len) };
        Buffer {
            device: device.clone(),
            address,
            len,
            operator: "a column of another program",
            foreign: Some(foreign),
        }
    }

    /// The device address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no byte was asked for.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device whose memory it is.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether it is the pool's, not another program's.
    pub fn is_own(&self) -> bool {
        self.foreign.is_none()
    }

    /// From byte `offset` on.
    pub fn slice(&self, offset: usize) -> Slice<'_> {
        assert!(offset <= self.len, "slice at {offset} of a buffer of {} bytes", self.len);
        Slice { buffer: self, offset }
    }

    /// Sets every byte.
    pub fn fill(&self, byte: u8) -> Result<()> {
        if self.len == 0 {
            return Ok(());
        }
        // SAFETY: the range is this whole live allocation.
        unsafe { self.device.0.driver.fill(self.address, byte, self.len) }
    }

    /// Copies host bytes to `offset`; the source may be reused at once.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.check(offset, bytes.len());
        if bytes.is_empty() {
            return Ok(());
        }
        self.device.0.counters.uploaded(bytes.len());
        // SAFETY: `check` proved that the range lies in this live allocation.
        unsafe { self.device.0.driver.upload(self.address + offset as u64, bytes) }
    }

    /// Copies `bytes.len()` bytes from `offset` to the host and waits: a host synchronisation.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        self.check(offset, bytes.len());
        if bytes.is_empty() {
            return Ok(());
        }
        let counters = &self.device.0.counters;
        counters.downloaded(bytes.len());
        counters.synchronized();
        // SAFETY: `check` proved that the range lies in this live allocation.
        unsafe { self.device.0.driver.download(bytes, self.address + offset as u64) }
    }

    /// Reads `count` little-endian 8-byte words from `offset`: a host synchronisation.
    pub fn read_words(&self, offset: usize, count: usize) -> Result<Vec<u64>> {
        let mut bytes = vec![0u8; count * 8];
        self.read(offset, &mut bytes)?;
        Ok(bytes
            .chunks_exact(8)
            .map(|c| u64::from_le_bytes(c.try_into().expect("8 bytes")))
            .collect())
    }

    /// Reads the word at `offset`, a host synchronisation; where nothing was computed, because this
    /// is a rehearsal, it is taken to be `assumed`.
    pub fn read_word_or(&self, offset: usize, assumed: u64) -> Result<u64> {
        match self.device.rehearses() {
            true => Ok(assumed),
            false => Ok(self.read_words(offset, 1)?[0]),
        }
    }

    /// Copies a range of another buffer, of this device or of one that it reaches, to `offset`. Of
    /// one buffer, the ranges must not overlap.
    pub fn copy_from(
        &self,
        offset: usize,
        from: &Buffer,
        from_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        self.device.copy(self, offset, from, from_offset, bytes)
    }

    /// Copies the first bytes of a slice of another buffer of the same device.
    pub(crate) fn copy_slice(&self, from: Slice<'_>, bytes: usize) -> Result<()> {
        self.copy_from(0, from.buffer, from.offset, bytes)
    }

    fn check(&self, offset: usize, bytes: usize) {
        assert!(
            offset.checked_add(bytes).is_some_and(|end| end <= self.len),
            "range {offset}+{bytes} of a buffer of {} bytes ({})",
            self.len,
            self.operator
        );
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let shared = &*self.device.0;
        if let Some(ForeignMemory { release }) = self.foreign.take() {
            shared.driver.give_back(self.address);
            release();
            return;
        }
        // SAFETY: the address came from this pool with this length, and the owner is gone.
        unsafe { shared.pool.free(&*shared.driver, self.address, self.len.max(1)) };
    }
}
