//! A device on which nothing happens: a query that runs there says which kernels it is going to ask
//! for.
//!
//! Its buffers are numbers, its launches nothing, and what is read from it are zeros, or what the
//! reader assumes ([`crate::Buffer::read_word_or`]). Kernels asked for are queued to be compiled
//! for the device it stands in for.
//!
//! What is assumed decides which kernels are compiled ahead, never what a query answers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::compile::ahead::CompileQueue;
use crate::drivers::driver::{
    DeviceProperties, Driver, EventHandle, FunctionHandle, Grid, ModuleHandle, StoredImage, Tier,
};
use crate::error::{Error, Result};
use crate::{Device, KernelSource, MemoryLimit, Shared, pool};

/// Where addresses begin: beyond those of any device, whose buffers a rehearsal sees, too.
const FIRST_ADDRESS: u64 = 1 << 56;

impl Device {
    /// A stand-in for this device, which hands kernels asked for to `queue`.
    pub(crate) fn stand_in(&self, queue: Arc<CompileQueue>) -> Device {
        let driver =
            StandIn { properties: self.properties().clone(), next: AtomicU64::new(FIRST_ADDRESS) };
        Device(Arc::new(Shared {
            driver: Arc::new(driver),
            kind: self.kind(),
            pool: Arc::new(pool::Pool::new(MemoryLimit::Bytes(u64::MAX), u64::MAX)),
            branches: Default::default(),
            cache: self.0.cache.clone(),
            by_parts: Default::default(),
            counters: Arc::default(),
            profile: Default::default(),
            spill: Arc::default(),
            fixed_secret: Default::default(),
            partition_rows: self.0.partition_rows,
            shared_bytes: self.0.shared_bytes,
            rehearsal: Some(queue),
            improver: None,
            preparer: Default::default(),
        }))
    }

    /// Whether this is a stand-in, on which nothing is computed.
    pub fn rehearses(&self) -> bool {
        self.0.rehearsal.is_some()
    }
}

/// Does nothing.
#[derive(Debug)]
struct StandIn {
    properties: DeviceProperties,
    /// The next address. Live buffers have different ones, as on a device: kernels take equal
    /// addresses for one buffer.
    next: AtomicU64,
}

/// What nobody asks of a rehearsal.
fn not_here(what: &str) -> Error {
    Error::unsupported(what.to_string(), "nothing runs in a rehearsal")
}

impl Driver for StandIn {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn free_memory(&self) -> Result<u64> {
        Ok(self.properties.memory)
    }

    fn alloc(&self, bytes: usize) -> Result<Option<u64>> {
        Ok(Some(self.next.fetch_add((bytes as u64).next_multiple_of(256), Relaxed)))
    }

    unsafe fn free(&self, _: u64, _: usize) {}

    fn trim(&self) -> Result<()> {
        Ok(())
    }

    unsafe fn upload(&self, _: u64, _: &[u8]) -> Result<()> {
        Ok(())
    }

    unsafe fn feed(
        &self,
        _: u64,
        _: usize,
        _: EventHandle,
        _: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<EventHandle> {
        Ok(EventHandle(0))
    }

    fn wait_for(&self, _: EventHandle) -> Result<()> {
        Ok(())
    }

    fn settle(&self, _: EventHandle) -> Result<()> {
        Ok(())
    }

    unsafe fn download(&self, to: &mut [u8], _: u64) -> Result<()> {
        to.fill(0);
        Ok(())
    }

    unsafe fn copy(&self, _: u64, _: u64, _: usize) -> Result<()> {
        Ok(())
    }

    unsafe fn fill(&self, _: u64, _: u8, _: usize) -> Result<()> {
        Ok(())
    }

    fn image_id(&self) -> String {
        String::new()
    }

    fn compiler(&self) -> Result<String> {
        Err(not_here("a compiler"))
    }

    fn compile(&self, source: &KernelSource, _: Tier, _: &Path) -> Result<()> {
        Err(not_here(&source.name))
    }

    fn load(&self, image: &StoredImage) -> Result<ModuleHandle> {
        Err(not_here(&image.path.display().to_string()))
    }

    fn unload(&self, _: &[ModuleHandle]) -> Result<()> {
        Ok(())
    }

    fn replace(&self, _: FunctionHandle, _: FunctionHandle) {}

    fn function(&self, _: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        Err(not_here(name))
    }

    unsafe fn launch(&self, _: FunctionHandle, _: &str, _: Grid, _: &[u64]) -> Result<()> {
        Ok(())
    }

    fn resident_blocks(&self, _: FunctionHandle, _: u32, _: u32) -> Result<u32> {
        Ok(1)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn record(&self) -> Result<EventHandle> {
        Ok(EventHandle(0))
    }

    fn elapsed_ms(&self, _: EventHandle, _: EventHandle) -> Result<f32> {
        Ok(0.0)
    }

    fn release(&self, _: EventHandle) {}
}
