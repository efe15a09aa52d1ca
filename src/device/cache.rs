//! Compiled kernels, kept in memory and on disk.
//!
//! ```text
//! <directory>/<key>.cubin          image            key = sha256(compiler id, text, every header it includes)
//! <directory>/<key>.cubin.sha256   its sha256, hex  written last: an image without it counts as absent
//! ```
//!
//! Both files appear by renaming a finished temporary file, so that concurrent processes never see half of one;
//! two that compile the same source at once both succeed, and the later rename stands. An image that does not
//! match its checksum, or that the driver refuses, is compiled again. Within a process a source is compiled once:
//! others who ask for it meanwhile wait for the first.

mod store;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::Source;
use super::counters::Counting;
use super::driver::{Driver, FunctionHandle, ModuleHandle};
use crate::error::Result;
pub(crate) use store::directory;
use store::write_atomically;
pub(super) use store::{Store, hex};

#[derive(Debug)]
pub(super) struct KernelCache {
    directory: PathBuf,
    record: Option<PathBuf>,
    store: OnceLock<Store>,
    /// [`Driver::compiler_id`], asked once.
    compiler: OnceLock<String>,
    /// By source text: headers are embedded, so that within a process the text alone decides.
    modules: Mutex<HashMap<String, Arc<Slot>>>,
}

/// One source's module. Its lock is held while compiling: who asks meanwhile waits and finds it loaded.
#[derive(Debug, Default)]
struct Slot(Mutex<Option<Loaded>>);

#[derive(Debug)]
struct Loaded {
    module: ModuleHandle,
    functions: HashMap<String, FunctionHandle>,
}

impl KernelCache {
    pub(super) fn new() -> Self {
        Self::at(directory(), std::env::var_os("WARPFRAME_RECORD_KERNELS").map(PathBuf::from))
    }

    fn at(directory: PathBuf, record: Option<PathBuf>) -> Self {
        KernelCache {
            directory,
            record: record.filter(|path| !path.as_os_str().is_empty()),
            store: OnceLock::new(),
            compiler: OnceLock::new(),
            modules: Mutex::default(),
        }
    }

    /// The entry point `name` of `source`, compiled if neither memory nor disk has it.
    pub(super) fn function(
        &self,
        driver: &dyn Driver,
        counters: &Counting,
        source: &Source,
        name: &str,
    ) -> Result<FunctionHandle> {
        let slot = self.slot(source);
        let start = Instant::now();
        let mut slot = lock(&slot.0);
        let loaded = match &mut *slot {
            Some(loaded) => {
                counters.found_in_memory();
                Ok(loaded)
            }
            empty => self.fill(empty, driver, counters, source),
        };
        counters.waited_for_module(start.elapsed());
        let loaded = loaded?;
        if let Some(&function) = loaded.functions.get(name) {
            return Ok(function);
        }
        let function = driver.function(loaded.module, name)?;
        // After the load: what tests break on purpose is no part of the corpus, nor is what nobody asks for.
        if let (Some(directory), true) = (&self.record, loaded.functions.is_empty()) {
            record(directory, source)?;
        }
        loaded.functions.insert(name.to_string(), function);
        Ok(function)
    }

    /// Whether somebody asked for the source before: it is loaded, is being compiled, or did not compile.
    pub(super) fn knows(&self, source: &Source) -> bool {
        lock(&self.modules).contains_key(&source.text)
    }

    /// Compiles or finds what somebody will ask for, and loads it; nothing where somebody else is at it.
    pub(super) fn prepare(&self, driver: &dyn Driver, counters: &Counting, source: &Source) -> Result<()> {
        let slot = self.slot(source);
        let Ok(mut slot) = slot.0.try_lock() else { return Ok(()) };
        if slot.is_none() {
            self.fill(&mut slot, driver, counters, source)?;
            counters.prepared_ahead();
        }
        Ok(())
    }

    fn slot(&self, source: &Source) -> Arc<Slot> {
        let mut modules = lock(&self.modules);
        match modules.get(&source.text) {
            Some(slot) => slot.clone(),
            None => modules.entry(source.text.clone()).or_default().clone(),
        }
    }

    fn fill<'a>(
        &self,
        slot: &'a mut Option<Loaded>,
        driver: &dyn Driver,
        counters: &Counting,
        source: &Source,
    ) -> Result<&'a mut Loaded> {
        let module = self.load(driver, counters, source)?;
        Ok(slot.insert(Loaded { module, functions: HashMap::new() }))
    }

    fn load(&self, driver: &dyn Driver, counters: &Counting, source: &Source) -> Result<ModuleHandle> {
        let extension = if driver.properties().architecture == "sim" { "so" } else { "cubin" };
        let file = format!("{}.{extension}", self.key(driver, source));
        let store = self.store()?;
        if let Some(image) = store.find(&file) {
            // An image may be whole and still be refused, by another driver than the one it was made with.
            if let Ok(module) = driver.load(&image) {
                counters.found_on_disk();
                return Ok(module);
            }
        }
        let start = Instant::now();
        let image = store.insert(&file, |out| driver.compile(source, out))?;
        counters.compiled(start.elapsed());
        driver.load(&image)
    }

    fn key(&self, driver: &dyn Driver, source: &Source) -> String {
        let compiler = self.compiler.get_or_init(|| driver.compiler_id());
        let mut hash = Sha256::new();
        // Lengths keep the boundaries: ("ab", "c") and ("a", "bc") are different sources.
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(compiler);
        add(&source.text);
        for (name, text) in source.headers() {
            add(name);
            add(text);
        }
        hex(&hash.finalize())
    }

    fn store(&self) -> Result<&Store> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let store = Store::open(&self.directory)?;
        Ok(self.store.get_or_init(|| store))
    }
}

/// Writes a source for the compile check of CI: its text alone, headers being in the repository.
fn record(directory: &Path, source: &Source) -> Result<()> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '.' { c } else { '_' };
    let name: String = source.name.chars().map(plain).collect();
    let hash = hex(&Sha256::digest(&source.text));
    std::fs::create_dir_all(directory).map_err(|e| crate::Error::io(directory, e))?;
    write_atomically(&directory.join(format!("{name}-{}.cu", &hash[..8])), source.text.as_bytes())
}

/// Poisoning is ignored: every map is valid between statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

#[cfg(test)]
mod tests;
