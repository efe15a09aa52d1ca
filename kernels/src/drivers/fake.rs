//! A driver for tests of what stands in front of drivers: it compiles by copying the text, and
//! allocates numbers.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::Mutex;

use crate::KernelSource;
use crate::drivers::driver::{
    DeviceProperties, Driver, EventHandle, FunctionHandle, Grid, ModuleHandle, StoredImage, Tier,
};
use crate::error::{Error, ErrorKind, Result};

#[derive(Debug)]
pub(crate) struct Fake {
    properties: DeviceProperties,
    /// What `image_id` says.
    pub(crate) id: String,
    /// What `compiler` says; `None` where there is none.
    pub(crate) compiler: Option<&'static str>,
    /// Times that something was asked that loads a compiler.
    pub(crate) asked_compiler: AtomicU64,
    /// Whether a query would have to load the compiler first.
    pub(crate) asleep: AtomicBool,
    pub(crate) compiled: AtomicU64,
    pub(crate) first: Tier,
    /// Which functions took the places of which.
    pub(crate) replaced: Mutex<Vec<(FunctionHandle, FunctionHandle)>>,
    /// Modules that were unloaded.
    pub(crate) unloaded: Mutex<Vec<ModuleHandle>>,
    /// A folder that takes no image.
    pub(crate) full: Option<PathBuf>,
    /// Images that `load` still refuses.
    pub(crate) refuse: AtomicU64,
    /// Texts of the modules.
    loaded: Mutex<Vec<String>>,
    used: AtomicU64,
    /// Every allocation has another address.
    next: AtomicU64,
    /// Bytes that nobody uses and that are not free before the next trim.
    untrimmed: AtomicU64,
    trims: AtomicU64,
}

/// The fake's memory in bytes.
pub(crate) const MEMORY: u64 = 1000;

impl Fake {
    pub(crate) fn new() -> Self {
        let properties = DeviceProperties {
            name: "fake".into(),
            architecture: "sm_00".into(),
            multiprocessors: 1,
            shared_per_block: 0,
            memory: MEMORY,
        };
        let (asked_compiler, compiled, replaced, unloaded, full, refuse, loaded, used) =
            Default::default();
        let (id, compiler, first) = ("fake".into(), Some("fake 1.0"), Tier::Full);
        Fake {
            asleep: Default::default(),
            properties,
            id,
            compiler,
            asked_compiler,
            compiled,
            first,
            replaced,
            unloaded,
            full,
            refuse,
            loaded,
            used,
            next: AtomicU64::new(256),
            untrimmed: Default::default(),
            trims: Default::default(),
        }
    }

    /// Keeps bytes until the next trim.
    pub(crate) fn keep_untrimmed(&self, bytes: u64) {
        self.used.fetch_add(bytes, SeqCst);
        self.untrimmed.fetch_add(bytes, SeqCst);
    }

    pub(crate) fn trims(&self) -> u64 {
        self.trims.load(SeqCst)
    }

    fn ask_compiler(&self) -> Result<&'static str> {
        self.asked_compiler.fetch_add(1, SeqCst);
        let missing = || {
            ErrorKind::DeviceUnavailable { device: "fake".into(), why: "no compiler".into() }.into()
        };
        self.compiler.ok_or_else(missing)
    }
}

impl Driver for Fake {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn free_memory(&self) -> Result<u64> {
        Ok(MEMORY - self.used.load(SeqCst))
    }

    fn alloc(&self, bytes: usize) -> Result<Option<u64>> {
        let used = self.used.fetch_add(bytes as u64, SeqCst);
        if used + bytes as u64 <= MEMORY {
            return Ok(Some(self.next.fetch_add((bytes as u64).next_multiple_of(256), SeqCst)));
        }
        self.used.fetch_sub(bytes as u64, SeqCst);
        Ok(None)
    }

    unsafe fn free(&self, _: u64, bytes: usize) {
        self.used.fetch_sub(bytes as u64, SeqCst);
    }

    fn image_id(&self) -> String {
        self.id.clone()
    }

    fn compiler(&self) -> Result<String> {
        self.ask_compiler().map(String::from)
    }

    fn has_compiler(&self) -> bool {
        !self.asleep.load(SeqCst)
    }

    fn load_compiler(&self) -> Result<()> {
        self.asleep.store(false, SeqCst);
        Ok(())
    }

    fn takes_quick(&self) -> bool {
        self.first == Tier::Quick
    }

    fn first_tier(&self) -> Result<Tier> {
        self.ask_compiler().map(|_| self.first)
    }

    fn compile(&self, source: &KernelSource, tier: Tier, out: &Path) -> Result<()> {
        self.ask_compiler()?;
        self.compiled.fetch_add(1, SeqCst);
        // Long enough for the threads of a test to meet.
        std::thread::sleep(std::time::Duration::from_millis(20));
        if source.text.contains("#error") {
            return Err(
                ErrorKind::Compile { kernel: source.name.clone(), log: "#error".into() }.into()
            );
        }
        if self.full.as_ref().is_some_and(|folder| out.starts_with(folder)) {
            return Err(Error::io(out, std::io::Error::from_raw_os_error(libc::ENOSPC)));
        }
        let begin = if tier == Tier::Quick { "quick " } else { "" };
        std::fs::write(out, format!("{begin}{}", source.text)).map_err(|e| Error::io(out, e))
    }

    fn load(&self, image: &StoredImage) -> Result<ModuleHandle> {
        if self.refuse.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
            return Err(ErrorKind::Cuda { call: "cuModuleLoadData", code: "refused".into() }.into());
        }
        let text = String::from_utf8_lossy(&image.bytes).into_owned();
        let mut loaded = self.loaded.lock();
        loaded.push(text);
        Ok(ModuleHandle(loaded.len() as u64 - 1))
    }

    fn unload(&self, modules: &[ModuleHandle]) -> Result<()> {
        let mut unloaded = self.unloaded.lock();
        assert!(modules.iter().all(|module| !unloaded.contains(module)), "unloaded twice");
        unloaded.extend(modules);
        Ok(())
    }

    fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        match self.loaded.lock()[module.0 as usize].find(name) {
            Some(at) => Ok(FunctionHandle(module.0 * 1000 + at as u64)),
            None => Err(ErrorKind::Cuda { call: "cuModuleGetFunction", code: name.into() }.into()),
        }
    }

    fn replace(&self, function: FunctionHandle, by: FunctionHandle) {
        self.replaced.lock().push((function, by));
    }

    fn trim(&self) -> Result<()> {
        self.trims.fetch_add(1, SeqCst);
        self.used.fetch_sub(self.untrimmed.swap(0, SeqCst), SeqCst);
        Ok(())
    }

    unsafe fn upload(&self, _: u64, _: &[u8]) -> Result<()> {
        unreachable!()
    }

    unsafe fn feed(
        &self,
        _: u64,
        _: usize,
        _: EventHandle,
        _: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<EventHandle> {
        unreachable!()
    }

    fn wait_for(&self, _: EventHandle) -> Result<()> {
        unreachable!()
    }

    fn settle(&self, _: EventHandle) -> Result<()> {
        unreachable!()
    }

    unsafe fn download(&self, _: &mut [u8], _: u64) -> Result<()> {
        unreachable!()
    }

    unsafe fn copy(&self, _: u64, _: u64, _: usize) -> Result<()> {
        unreachable!()
    }

    unsafe fn fill(&self, _: u64, _: u8, _: usize) -> Result<()> {
        unreachable!()
    }

    unsafe fn launch(&self, _: FunctionHandle, _: &str, _: Grid, _: &[u64]) -> Result<()> {
        unreachable!()
    }

    fn resident_blocks(&self, _: FunctionHandle, _: u32, _: u32) -> Result<u32> {
        unreachable!()
    }

    fn synchronize(&self) -> Result<()> {
        unreachable!()
    }

    fn record(&self) -> Result<EventHandle> {
        unreachable!()
    }

    fn elapsed_ms(&self, _: EventHandle, _: EventHandle) -> Result<f32> {
        unreachable!()
    }

    fn release(&self, _: EventHandle) {
        unreachable!()
    }
}
