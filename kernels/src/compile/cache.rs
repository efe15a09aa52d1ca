//! Compiled kernels, kept in memory and on disk.
//!
//! ```text
//! <folder>/<key>.sm_90.cubin        image            key = sha256(image id, text, every header it includes)
//! <folder>/<key>.quick.sm_90.cubin  the same, compiled quickly
//! <folder>/<either>.sha256          its sha256, hex, and on a second line the compiler that made it
//! ```
//!
//! The compiler's version is no part of the key: it is known only once the compiler is loaded,
//! which takes longer than a query whose kernels are all found. `WARPFRAME_MATCH_COMPILER=1` has
//! images of other versions count as absent. The checksum is written last: an image without it
//! counts as absent.
//!
//! Both files appear by renaming a finished temporary file, so that concurrent processes never see
//! half of one; two that compile the same source at once both succeed, and the later rename stands.
//! An image that does not match its checksum, or that the driver refuses, is compiled again. Of
//! several folders the first is written to and kept small (`tidy.rs`); the others may be read-only.
//! A folder with which something is wrong costs a note (`store.rs`). Within a process a source is
//! compiled once: others who ask for it meanwhile wait for the first.

mod store;
mod tidy;
mod turn;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};

use crate::KernelSource;
use crate::compile::hex::hex;
use crate::compile::source::header_digest;
use crate::compile::uses::Uses;
use crate::counters::Counting;
use crate::drivers::driver::{Driver, FunctionHandle, ModuleHandle, StoredImage, Tier};
use crate::error::Result;
use crate::interrupt;
use crate::timeline::{Part, span};
use store::write_atomically;
pub use store::{Folders, Store};
use turn::Turn;

/// Modules that stay loaded although nobody holds them, of which those unused longest go. A driver
/// takes tens of KiB for a module, and the source is kept with it: together some 100 MiB. The
/// queries of a benchmark use some hundreds.
const MOST_MODULES: usize = 1 << 11;
/// The file that says that the last query had to compile.
const COMPILED: &str = "last-query-compiled";
/// How often somebody who waits for a kernel that is being compiled looks.
const LOOK: Duration = Duration::from_micros(200);

#[derive(Debug)]
pub(crate) struct KernelCache {
    folders: Folders,
    record: Option<PathBuf>,
    store: OnceLock<Store>,
    /// [`Driver::image_id`], asked once.
    id: OnceLock<String>,
    /// Whether images of other compilers than the driver's count as absent.
    matching: bool,
    /// By source text: headers are embedded, so that within a process the text alone decides.
    modules: Mutex<HashMap<String, Arc<Slot>>>,
    most_modules: usize,
    /// How often modules were asked for.
    asked: AtomicU64,
    /// What was noted last of queries: nothing, 1 that they found their kernels, 2 that they
    /// compiled.
    noted: AtomicU8,
}

/// One source's module. Its lock is held while compiling: who asks meanwhile waits and finds it
/// loaded.
#[derive(Debug, Default)]
struct Slot(Mutex<Option<LoadedModule>>);

#[derive(Debug)]
struct LoadedModule {
    module: ModuleHandle,
    /// What was compiled quickly and has been improved. Handles of its functions are still given
    /// out.
    before: Option<ModuleHandle>,
    hold: ModuleHold,
    /// The number of the request that it served last.
    asked: u64,
    functions: HashMap<String, FunctionHandle>,
    /// Of what was compiled quickly.
    uses: Option<Arc<Uses>>,
}

/// Keeps a module loaded, as long as anybody has a clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModuleHold(Arc<()>);

/// Names of a source's images by tier.
struct ImageNames {
    full: String,
    quick: String,
}

/// An entry point, and where its launches are counted.
#[derive(Debug)]
pub(crate) struct EntryPoint {
    pub(crate) function: FunctionHandle,
    pub(crate) uses: Option<Arc<Uses>>,
    pub(crate) hold: ModuleHold,
}

impl KernelCache {
    pub(crate) fn new() -> Self {
        let record = crate::environment::os("WARPFRAME_RECORD_KERNELS").map(PathBuf::from);
        KernelCache { matching: matches_compiler(), ..Self::at(Folders::of_environment(), record) }
    }

    pub(crate) fn at(folders: Folders, record: Option<PathBuf>) -> Self {
        KernelCache {
            folders,
            record: record.filter(|path| !path.as_os_str().is_empty()),
            store: OnceLock::new(),
            id: OnceLock::new(),
            matching: false,
            modules: Mutex::default(),
            most_modules: MOST_MODULES,
            asked: AtomicU64::new(0),
            noted: AtomicU8::new(0),
        }
    }

    /// The entry point `name` of `source`, compiled if neither memory nor disk has it.
    pub(crate) fn function(
        &self,
        driver: &dyn Driver,
        counters: &Counting,
        source: &KernelSource,
        name: &str,
    ) -> Result<EntryPoint> {
        let slot = self.slot(source);
        let start = Instant::now();
        let mut slot = match slot.0.try_lock() {
            Some(slot) => slot,
            None => {
                let _span = span(Part::WaitForModule, || source.name.clone());
                lock_or_stop(&slot.0)?
            }
        };
        let loaded = match &mut *slot {
            Some(loaded) => {
                counters.found_in_memory();
                Ok(loaded)
            }
            empty => self.fill(empty, driver, counters, source),
        };
        counters.waited_for_module(start.elapsed());
        let loaded = loaded?;
        loaded.asked = self.asked.fetch_add(1, Relaxed);
        let (uses, hold) = (loaded.uses.clone(), loaded.hold.clone());
        if let Some(&function) = loaded.functions.get(name) {
            return Ok(EntryPoint { function, uses, hold });
        }
        let function = driver.function(loaded.module, name)?;
        // After the load: what tests break on purpose is no part of the corpus, nor is what nobody
        // asks for.
        if let (Some(directory), true) = (&self.record, loaded.functions.is_empty()) {
            record(directory, source)?;
        }
        loaded.functions.insert(name.to_string(), function);
        Ok(EntryPoint { function, uses, hold })
    }

    /// Whether somebody asked for the source before: it is loaded, is being compiled, or did not
    /// compile.
    pub(crate) fn knows(&self, source: &KernelSource) -> bool {
        self.modules.lock().contains_key(&source.text)
    }

    /// Compiles or finds what somebody will ask for, and loads it; nothing where somebody else is
    /// at it.
    pub(crate) fn prepare(
        &self,
        driver: &dyn Driver,
        counters: &Counting,
        source: &KernelSource,
    ) -> Result<()> {
        let slot = self.slot(source);
        let Some(mut slot) = slot.0.try_lock() else { return Ok(()) };
        if slot.is_none() {
            self.fill(&mut slot, driver, counters, source)?;
            counters.prepared_ahead();
        }
        Ok(())
    }

    /// Compiles a module fully that was compiled quickly, and lets it take its place.
    pub(crate) fn improve(
        &self,
        driver: &dyn Driver,
        counters: &Counting,
        source: &KernelSource,
    ) -> Result<()> {
        // It may have been unloaded by now.
        let Some(slot) = self.modules.lock().get(&source.text).cloned() else { return Ok(()) };
        if slot.0.lock().as_ref().is_none_or(|loaded| loaded.uses.is_none()) {
            return Ok(());
        }
        let _span = span(Part::Improve, || source.name.clone());
        let files = self.files(driver, source);
        // Whoever launches it goes on with what there is.
        let module = match self.find(driver, &files.full)? {
            Some(module) => module,
            None => driver.load(&self.compile(driver, source, Tier::Full, &files)?)?,
        };
        let mut slot = slot.0.lock();
        let Some(loaded) = &mut *slot else { return Ok(()) };
        for (name, &function) in &loaded.functions {
            driver.replace(function, driver.function(module, name)?);
        }
        loaded.before = Some(std::mem::replace(&mut loaded.module, module));
        loaded.uses = None;
        counters.improved();
        Ok(())
    }

    /// The launches of all that was compiled quickly.
    pub(crate) fn quick(&self) -> Vec<Arc<Uses>> {
        let slots: Vec<_> = self.modules.lock().values().cloned().collect();
        slots.iter().filter_map(|slot| slot.0.lock().as_ref()?.uses.clone()).collect()
    }

    fn slot(&self, source: &KernelSource) -> Arc<Slot> {
        let mut modules = self.modules.lock();
        match modules.get(&source.text) {
            Some(slot) => slot.clone(),
            None => modules.entry(source.text.clone()).or_default().clone(),
        }
    }

    fn fill<'a>(
        &self,
        slot: &'a mut Option<LoadedModule>,
        driver: &dyn Driver,
        counters: &Counting,
        source: &KernelSource,
    ) -> Result<&'a mut LoadedModule> {
        let (module, uses) = self.load(driver, counters, source)?;
        self.unload_unused(driver);
        let asked = self.asked.fetch_add(1, Relaxed);
        let (before, functions, uses) = (None, HashMap::new(), uses.map(Arc::new));
        Ok(slot.insert(LoadedModule {
            module,
            before,
            hold: ModuleHold::default(),
            asked,
            functions,
            uses,
        }))
    }

    /// Of too many modules unloads a quarter, those unused longest, as far as nobody holds them:
    /// they are found again on disk. That waits for the device, so that it is not done for each
    /// one.
    fn unload_unused(&self, driver: &dyn Driver) {
        let mut modules = self.modules.lock();
        if modules.len() <= self.most_modules {
            return;
        }
        let mut unused: Vec<(u64, String)> = modules
            .iter_mut()
            .filter_map(|(text, slot)| {
                // Nobody asks for it now, and nobody has one of its functions. Both are only given
                // out under the lock of the map, so that it stays so.
                let slot = Arc::get_mut(slot)?.0.get_mut();
                match slot {
                    Some(loaded) => {
                        Arc::get_mut(&mut loaded.hold.0).map(|_| (loaded.asked, text.clone()))
                    }
                    None => Some((0, text.clone())),
                }
            })
            .collect();
        unused.sort_unstable();
        unused.truncate(modules.len() - self.most_modules / 4 * 3);
        let slots: Vec<_> = unused.iter().filter_map(|(_, text)| modules.remove(text)).collect();
        drop(modules);
        let loaded = slots.iter().filter_map(|slot| slot.0.lock().take());
        let gone: Vec<_> =
            loaded.flat_map(|loaded| [Some(loaded.module), loaded.before]).flatten().collect();
        if gone.is_empty() {
            return;
        }
        // What the device has to report comes back at the next call; what was not unloaded stays
        // until the end.
        let _ = driver.unload(&gone);
    }

    /// The best of a source that there is, or what can be had soonest.
    fn load(
        &self,
        driver: &dyn Driver,
        counters: &Counting,
        source: &KernelSource,
    ) -> Result<(ModuleHandle, Option<Uses>)> {
        let files = self.files(driver, source);
        let loading = span(Part::Load, || source.name.clone());
        if let Some(module) = self.find(driver, &files.full)? {
            counters.found_on_disk();
            return Ok((module, None));
        }
        let quick = if driver.takes_quick() { self.find(driver, &files.quick)? } else { None };
        if let Some(module) = quick {
            counters.found_on_disk();
            return Ok((module, Some(Uses::again(source))));
        }
        // Another device of this process may have it made at this moment.
        let turn = Turn::of(&self.store().place(&files.full))?;
        if turn.waited {
            drop(turn);
            return self.load(driver, counters, source);
        }
        loading.forget();
        let first = driver.first_tier()?;
        let start = Instant::now();
        let compiling = span(Part::Compile, || source.name.clone());
        let image = self.compile(driver, source, first, &files)?;
        drop(compiling);
        counters.compiled(start.elapsed());
        Ok((driver.load(&image)?, (first == Tier::Quick).then(|| Uses::new(source))))
    }

    /// What is on disk, loaded.
    fn find(&self, driver: &dyn Driver, file: &str) -> Result<Option<ModuleHandle>> {
        let compiler = if self.matching { Some(driver.compiler()?) } else { None };
        // An image may be whole and still be refused, by another driver than the one it was made
        // with.
        let Some(image) = self.store().find(file, compiler.as_deref()) else { return Ok(None) };
        Ok(driver.load(&image).inspect_err(|_| self.store().refused(&image)).ok())
    }

    /// Compiles and keeps.
    fn compile(
        &self,
        driver: &dyn Driver,
        source: &KernelSource,
        tier: Tier,
        files: &ImageNames,
    ) -> Result<StoredImage> {
        let file = if tier == Tier::Quick { &files.quick } else { &files.full };
        let make = |out: &Path| driver.compile(source, tier, out).and_then(|()| driver.compiler());
        self.store().insert(file, make)
    }

    /// Keeps what `make` compiles of a source, with all optimizations, unless it is kept; loads
    /// nothing. Returns whether it was made.
    ///
    /// # Errors
    /// Those of `make`, or it cannot be kept for later processes.
    pub(crate) fn keep(
        &self,
        id: &str,
        architecture: &str,
        source: &KernelSource,
        make: impl Fn(&Path) -> Result<String>,
    ) -> Result<bool> {
        let (store, files) = (self.store(), ImageNames::of(id, architecture, source));
        if store.find(&files.full, None).is_some() {
            return Ok(false);
        }
        store.written()?;
        store.insert(&files.full, make)?;
        // It may have gone to a folder of this process alone.
        store.written().map(|_| true)
    }

    /// The file that says that all of these sources were kept for a device.
    pub(crate) fn mark(
        &self,
        id: &str,
        architecture: &str,
        sources: &[KernelSource],
    ) -> Result<PathBuf> {
        let mut hash = Sha256::new();
        for source in sources {
            hash.update(ImageNames::key(id, source));
        }
        Ok(self.directory()?.join(format!("{}.{architecture}.prepared", hex(&hash.finalize()))))
    }

    /// Notes for the next process whether a query had to compile.
    pub(crate) fn note_query(&self, compiled: bool) {
        let noted = 1 + u8::from(compiled);
        if self.noted.swap(noted, Relaxed) == noted {
            return;
        }
        if let Ok(folder) = self.store().written() {
            let note = folder.join(COMPILED);
            // It is an expectation only.
            let _ = if compiled { std::fs::write(note, "") } else { std::fs::remove_file(note) };
        }
    }

    /// Where images are written to.
    pub(crate) fn directory(&self) -> Result<PathBuf> {
        Ok(self.store().written()?.to_path_buf())
    }

    fn files(&self, driver: &dyn Driver, source: &KernelSource) -> ImageNames {
        let id = self.id.get_or_init(|| driver.image_id());
        ImageNames::of(id, &driver.properties().architecture, source)
    }

    /// What somebody should know of the folders, since this was asked last.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        self.store.get().map_or_else(Vec::new, Store::take_notes)
    }

    fn store(&self) -> &Store {
        self.store.get_or_init(|| Store::open(&self.folders))
    }
}

impl ImageNames {
    fn of(id: &str, architecture: &str, source: &KernelSource) -> ImageNames {
        let (key, extension) = (Self::key(id, source), extension(architecture));
        ImageNames { full: format!("{key}.{extension}"), quick: format!("{key}.quick.{extension}") }
    }

    fn key(id: &str, source: &KernelSource) -> String {
        let mut hash = Sha256::new();
        // Lengths keep the boundaries: ("ab", "c") and ("a", "bc") are different sources.
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        add(id);
        add(&source.text);
        for (name, _) in source.headers() {
            add(name);
            add(header_digest(name));
        }
        hex(&hash.finalize())
    }
}

/// Whether `WARPFRAME_MATCH_COMPILER` asks that images of another version of the compiler count as
/// absent.
pub(crate) fn matches_compiler() -> bool {
    crate::environment::text("WARPFRAME_MATCH_COMPILER").is_ok_and(|text| text == "1")
}

/// Whether the next query is expected to have kernels that are not kept: the last one had, or no
/// process has kept any for GPUs. Shipped kernels are not those that queries generate.
pub(crate) fn expects_to_compile(folders: &Folders) -> bool {
    let Some(first) = folders.paths.first() else { return true };
    let own = Folders { paths: vec![first.clone()], ..folders.clone() };
    first.join(COMPILED).exists() || !own.hold(".cubin")
}

/// Whether images of an architecture lie in any of the folders.
pub(crate) fn holds_images(folders: &Folders, architecture: &str) -> bool {
    folders.hold(&format!(".{}", extension(architecture)))
}

/// Of the images of an architecture.
fn extension(architecture: &str) -> String {
    if architecture == "sim" { "so".into() } else { format!("{architecture}.cubin") }
}

/// Writes a source for the compile check of CI: its text alone, headers being in the repository.
fn record(directory: &Path, source: &KernelSource) -> Result<()> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '.' { c } else { '_' };
    let name: String = source.name.chars().map(plain).collect();
    let hash = hex(&Sha256::digest(&source.text));
    std::fs::create_dir_all(directory).map_err(|e| crate::Error::io(directory, e))?;
    write_atomically(&directory.join(format!("{name}-{}.cu", &hash[..8])), source.text.as_bytes())
}

/// The lock, or that the statement that waits for it is to stop.
fn lock_or_stop<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    loop {
        match mutex.try_lock() {
            Some(guard) => return Ok(guard),
            None if interrupt::current().is_none() => return Ok(mutex.lock()),
            None => {}
        }
        interrupt::check()?;
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests;
