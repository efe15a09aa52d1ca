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
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

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
        let mut slot = lock(&slot.0);
        let loaded = self.loaded(&mut slot, driver, counters, source)?;
        if let Some(&function) = loaded.functions.get(name) {
            return Ok(function);
        }
        let function = driver.function(loaded.module, name)?;
        loaded.functions.insert(name.to_string(), function);
        Ok(function)
    }

    /// Compiles what neither memory nor disk has, on as many threads as there are cores. Where several sources
    /// fail, the error is one of theirs.
    #[cfg_attr(not(test), allow(dead_code, reason = "for queries that know their kernels before they run"))]
    pub(super) fn prepare(&self, driver: &dyn Driver, counters: &Counting, sources: &[Source]) -> Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let work = || -> Result<()> {
            while !failed.load(Relaxed) {
                let Some(source) = sources.get(next.fetch_add(1, Relaxed)) else { break };
                let slot = self.slot(source);
                let result = self.loaded(&mut lock(&slot.0), driver, counters, source).map(|_| ());
                if result.is_err() {
                    failed.store(true, Relaxed);
                }
                result?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..cores.min(sources.len())).map(|_| scope.spawn(work)).collect();
            let mut result = work();
            for other in others {
                match other.join() {
                    Ok(theirs) => result = result.and(theirs),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            result
        })
    }

    fn slot(&self, source: &Source) -> Arc<Slot> {
        let mut modules = lock(&self.modules);
        match modules.get(&source.text) {
            Some(slot) => slot.clone(),
            None => modules.entry(source.text.clone()).or_default().clone(),
        }
    }

    fn loaded<'a>(
        &self,
        slot: &'a mut Option<Loaded>,
        driver: &dyn Driver,
        counters: &Counting,
        source: &Source,
    ) -> Result<&'a mut Loaded> {
        match slot {
            Some(loaded) => {
                counters.found_in_memory();
                Ok(loaded)
            }
            None => {
                let module = self.load(driver, counters, source)?;
                // After the load: what tests break on purpose is no part of the corpus.
                if let Some(directory) = &self.record {
                    record(directory, source)?;
                }
                Ok(slot.insert(Loaded { module, functions: HashMap::new() }))
            }
        }
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
        let image = store.insert(&file, |out| driver.compile(source, out))?;
        counters.compiled();
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
