//! Measures how long the host is inside the driver: the rest of a query's time is spent outside.
//! Here statements stop that are to stop: before each call that takes memory, submits a kernel, or
//! moves bytes to or from the host, and behind each call that waits. Whoever waits for something
//! else looks every [`interrupt::PACE`]. A stopped statement leaves no
//! memory behind.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::KernelSource;
use crate::counters::Counting;
use crate::drivers::driver::*;
use crate::error::Result;
use crate::interrupt;

/// A driver whose calls that submit work, move bytes or wait are timed. Compiling and loading have
/// counters of their own; looking at the clock would take as long as finding memory that is kept.
#[derive(Debug)]
pub(crate) struct Clocked {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) counters: Arc<Counting>,
}

impl Clocked {
    fn timed<T>(&self, call: impl FnOnce(&dyn Driver) -> T) -> T {
        let start = Instant::now();
        let result = call(&*self.driver);
        self.counters.in_driver(start.elapsed());
        result
    }
}

impl Driver for Clocked {
    fn properties(&self) -> &DeviceProperties {
        self.driver.properties()
    }

    fn is_lost(&self) -> bool {
        self.driver.is_lost()
    }

    fn lose(&self) {
        self.driver.lose();
    }

    fn admit(&self, ordinal: usize) -> Result<bool> {
        self.driver.admit(ordinal)
    }

    fn beside(&self) -> Result<Option<Arc<dyn Driver>>> {
        let driver = self.driver.beside()?;
        Ok(driver.map(|driver| Arc::new(Clocked { driver, counters: self.counters.clone() }) as _))
    }

    fn free_memory(&self) -> Result<u64> {
        self.timed(|driver| driver.free_memory())
    }

    fn reserved_memory(&self) -> Option<u64> {
        self.driver.reserved_memory()
    }

    fn alloc(&self, bytes: usize) -> Result<Option<u64>> {
        interrupt::check()?;
        match self.driver.alloc_kept(bytes, false) {
            Some(address) => Ok(Some(address)),
            None => self.timed(|driver| driver.alloc(bytes)),
        }
    }

    fn alloc_zeroed(&self, bytes: usize) -> Result<Option<u64>> {
        interrupt::check()?;
        match self.driver.alloc_kept(bytes, true) {
            Some(address) => Ok(Some(address)),
            None => self.timed(|driver| driver.alloc_zeroed(bytes)),
        }
    }

    unsafe fn free(&self, address: u64, bytes: usize) {
        // SAFETY: the caller's promise is the driver's demand, here and below.
        if unsafe { !self.driver.keep(address, bytes) } {
            // SAFETY: as above, and it was not kept.
            self.timed(|driver| unsafe { driver.free(address, bytes) });
        }
    }

    fn trim(&self) -> Result<()> {
        self.timed(|driver| driver.trim())
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        interrupt::check()?;
        // SAFETY: as in `free`.
        self.timed(|driver| unsafe { driver.upload(to, from) })
    }

    unsafe fn feed(
        &self,
        to: u64,
        len: usize,
        after: EventHandle,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<EventHandle> {
        interrupt::check()?;
        // Not timed: several threads feed at once, and most of their time is that of `fill`.
        // SAFETY: as in `free`.
        unsafe { self.driver.feed(to, len, after, fill) }
    }

    fn wait_for(&self, event: EventHandle) -> Result<()> {
        self.driver.wait_for(event)
    }

    fn settle(&self, event: EventHandle) -> Result<()> {
        self.timed(|driver| driver.settle(event))
    }

    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<()> {
        interrupt::check()?;
        // SAFETY: as in `free`.
        self.timed(|driver| unsafe { driver.download(to, from) })?;
        interrupt::check()
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: as in `free`.
        self.timed(|driver| unsafe { driver.copy(to, from, bytes) })
    }

    unsafe fn fill(&self, to: u64, byte: u8, bytes: usize) -> Result<()> {
        // SAFETY: as in `free`.
        self.timed(|driver| unsafe { driver.fill(to, byte, bytes) })
    }

    fn image_id(&self) -> String {
        self.driver.image_id()
    }

    fn compiler(&self) -> Result<String> {
        self.driver.compiler()
    }

    fn takes_quick(&self) -> bool {
        self.driver.takes_quick()
    }

    fn first_tier(&self) -> Result<Tier> {
        self.driver.first_tier()
    }

    fn has_compiler(&self) -> bool {
        self.driver.has_compiler()
    }

    fn load_compiler(&self) -> Result<()> {
        self.driver.load_compiler()
    }

    fn compile(&self, source: &KernelSource, tier: Tier, out: &Path) -> Result<()> {
        self.driver.compile(source, tier, out)
    }

    fn check(&self, source: &KernelSource) -> Result<()> {
        self.driver.check(source)
    }

    fn load(&self, image: &StoredImage) -> Result<ModuleHandle> {
        self.driver.load(image)
    }

    fn unload(&self, modules: &[ModuleHandle]) -> Result<()> {
        self.timed(|driver| driver.unload(modules))
    }

    fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        self.driver.function(module, name)
    }

    fn replace(&self, function: FunctionHandle, by: FunctionHandle) {
        self.driver.replace(function, by);
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        kernel: &str,
        grid: Grid,
        arguments: &[u64],
    ) -> Result<()> {
        interrupt::check()?;
        // SAFETY: as in `free`.
        self.timed(|driver| unsafe { driver.launch(function, kernel, grid, arguments) })
    }

    unsafe fn launch_user(
        &self,
        function: FunctionHandle,
        kernel: &str,
        grid: &UserGrid,
        arguments: &[UserArgument],
    ) -> Result<()> {
        interrupt::check()?;
        // SAFETY: the caller's promise.
        self.timed(|driver| unsafe { driver.launch_user(function, kernel, grid, arguments) })
    }

    fn stream(&self) -> u64 {
        self.driver.stream()
    }

    unsafe fn wait_for_stream(&self, stream: u64) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.driver.wait_for_stream(stream) }
    }

    unsafe fn make_stream_wait(&self, stream: u64) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.driver.make_stream_wait(stream) }
    }

    unsafe fn wait_for_event(&self, event: u64) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.driver.wait_for_event(event) }
    }

    fn settle_all(&self) -> Result<()> {
        self.timed(|driver| driver.settle_all())
    }

    unsafe fn borrow(&self, address: u64, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { self.driver.borrow(address, bytes) }
    }

    fn give_back(&self, address: u64) {
        self.driver.give_back(address)
    }

    fn resident_blocks(&self, function: FunctionHandle, threads: u32, shared: u32) -> Result<u32> {
        self.driver.resident_blocks(function, threads, shared)
    }

    fn synchronize(&self) -> Result<()> {
        self.timed(|driver| driver.synchronize())
    }

    fn record(&self) -> Result<EventHandle> {
        self.driver.record()
    }

    fn elapsed_ms(&self, from: EventHandle, to: EventHandle) -> Result<f32> {
        self.driver.elapsed_ms(from, to)
    }

    fn release(&self, event: EventHandle) {
        self.driver.release(event);
    }
}
