//! The simulator driver: CUDA's execution model on the CPU, for tests and for machines without a
//! GPU.
//!
//! Kernel sources are compiled by the system's C++ compiler against `kernels/sim.h`;
//! `sim/runtime/`, compiled the same way once and kept beside the kernels, runs a grid as fibers of
//! the calling thread. Work is done when a call returns; different devices run in parallel.
//!
//! What it finds, always: deadlocks, divergent barriers, collectives with missing lanes, endless
//! spinning, writes outside an allocation or a shared object (by guard bytes), reads of memory
//! nobody wrote (by poison, visible as wrong results), and under other seeds missing barriers. With
//! `WARPFRAME_SIM_ASAN=1` kernels are compiled with AddressSanitizer, which finds every access
//! outside an allocation; the process must then run with libasan preloaded.
//!
//! What it does not: a kernel that faults (integer division by zero, a wild address, more than 64
//! KiB of stack) kills the process, and an endless loop without `wf::spin()` never returns. Memory
//! ordering is the host's.

mod children;
mod compiler;
mod memory;
mod runtime;
mod seeds;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use parking_lot::Mutex;

use crate::KernelSource;
use crate::drivers::driver::*;
use crate::error::{ErrorKind, Result};
use crate::interrupt;
use compiler::CxxCompiler;
use memory::SimMemory;
use runtime::{HostEntry, KernelFacts, Launch, SimRuntime};
use seeds::{seed_of_launch, unasked_seed};

/// How the simulator schedules.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SimOptions {
    /// Seed of the order in which lanes, warps and blocks run: 0 runs them forward, 1 backward.
    /// Others give each launch an order of its own, which also changes threads at atomic
    /// operations.
    pub seed: u64,
}

impl SimOptions {
    /// Options with a seed.
    ///
    /// ```
    /// assert_eq!(warpframe_device::SimOptions::with_seed(7).seed, 7);
    /// ```
    pub fn with_seed(seed: u64) -> Self {
        SimOptions { seed }
    }
}

impl Default for SimOptions {
    /// The seed is `WARPFRAME_SIM_SEED` where that is a number, else 0.
    fn default() -> Self {
        let asked =
            crate::environment::text("WARPFRAME_SIM_SEED").ok().and_then(|seed| seed.parse().ok());
        SimOptions { seed: asked.unwrap_or_else(unasked_seed) }
    }
}

const MULTIPROCESSORS: u32 = 4;
const SHARED_PER_BLOCK: u32 = 227 * 1024;
const THREADS_PER_MULTIPROCESSOR: u32 = 2048;
/// Words of parameters that CUDA takes (32,764 bytes).
const MOST_PARAMETERS: usize = 4095;
/// Most device memory; a machine with less than twice as much offers half of what it has.
const MEMORY: u64 = 4 << 30;
/// Blocks that are live at once, so that look-back between them is exercised; fewer where they are
/// large, because each waiting thread holds a stack.
const INTERLEAVED: u32 = 8;

#[derive(Debug)]
pub(crate) struct SimDriver {
    properties: DeviceProperties,
    seed: u64,
    compiler: &'static CxxCompiler,
    runtime: &'static SimRuntime,
    /// One lock for all: the device does one thing at a time.
    state: Mutex<SimState>,
    lost: AtomicBool,
}

#[derive(Debug)]
struct SimState {
    memory: SimMemory,
    /// `None` of those that were unloaded.
    modules: Vec<Option<Library>>,
    functions: Vec<SimFunction>,
    events: HashMap<u64, Instant>,
    next_event: u64,
    launches: u64,
    /// Copies that nobody waited for yet, by event: address and bytes. Delayed, so that who reads
    /// too early reads poison.
    under_way: HashMap<u64, (u64, Vec<u8>)>,
}

impl SimState {
    /// The seed of the next launch.
    fn next_seed(&mut self, seed: u64) -> u64 {
        self.launches += 1;
        seed_of_launch(seed, self.launches)
    }

    fn event(&mut self) -> u64 {
        let event = self.next_event;
        self.next_event += 1;
        self.events.insert(event, Instant::now());
        event
    }

    fn arrive(&mut self, event: EventHandle) -> Result<()> {
        let Some((to, bytes)) = self.under_way.remove(&event.0) else { return Ok(()) };
        self.memory.check_range("feed", to, bytes.len())?;
        // SAFETY: the range lies in a live allocation; the bytes are no device memory.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        Ok(())
    }
}

#[derive(Debug, Clone)]
struct SimFunction {
    entry: HostEntry,
    facts: KernelFacts,
}

impl SimDriver {
    pub(crate) fn open(options: SimOptions) -> Result<Self> {
        let compiler = compiler::system()?;
        let runtime = runtime::loaded(compiler)?;
        let memory = MEMORY.min(memory::of_host() / 2);
        let properties = DeviceProperties {
            name: format!("CPU simulator ({})", compiler.version()),
            architecture: "sim".into(),
            multiprocessors: MULTIPROCESSORS,
            shared_per_block: SHARED_PER_BLOCK,
            memory,
        };
        let state = SimState {
            memory: SimMemory::new(memory, compiler.sanitizes()),
            modules: Vec::new(),
            functions: Vec::new(),
            events: HashMap::new(),
            next_event: 0,
            launches: 0,
            under_way: HashMap::new(),
        };
        Ok(SimDriver {
            properties,
            seed: options.seed,
            compiler,
            runtime,
            state: Mutex::new(state),
            lost: AtomicBool::new(false),
        })
    }

    /// The fault that was found since the last call, if any; the loss of the device is one for good.
    fn check(&self, state: &mut SimState) -> Result<()> {
        if self.is_lost() {
            return Err(fault("of any kind", "the device is lost"));
        }
        state.memory.take_fault()
    }

    /// Runs a launch to its end. `state` is locked: nobody else touches the device's memory
    /// meanwhile.
    ///
    /// # Safety
    /// The launch has the words that its entry takes, and these lead to memory of the device.
    unsafe fn run(&self, state: &mut SimState, kernel: &str, launch: &Launch) -> Result<()> {
        // SAFETY: the caller's promise.
        if let Err(report) = unsafe { self.runtime.run(launch) } {
            interrupt::check()?;
            return Err(fault(kernel, report));
        }
        state.memory.check_guards(kernel);
        self.check(state)
    }
}

fn fault(kernel: &str, report: impl Into<String>) -> crate::Error {
    ErrorKind::Simulation { kernel: kernel.into(), report: report.into() }.into()
}

impl Driver for SimDriver {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn is_lost(&self) -> bool {
        self.lost.load(Relaxed)
    }

    fn lose(&self) {
        self.lost.store(true, Relaxed);
    }

    fn free_memory(&self) -> Result<u64> {
        Ok(self.state.lock().memory.free_bytes())
    }

    fn alloc(&self, bytes: usize) -> Result<Option<u64>> {
        Ok(self.state.lock().memory.alloc(bytes))
    }

    unsafe fn free(&self, address: u64, bytes: usize) {
        self.state.lock().memory.free(address, bytes);
    }

    fn trim(&self) -> Result<()> {
        let mut state = self.state.lock();
        state.memory.trim();
        self.check(&mut state)
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()> {
        let state = self.state.lock();
        state.memory.check_range("upload", to, from.len())?;
        // SAFETY: the range lies in a live allocation; the caller's bytes are no device memory.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to as *mut u8, from.len()) };
        Ok(())
    }

    unsafe fn feed(
        &self,
        to: u64,
        len: usize,
        after: EventHandle,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<EventHandle> {
        let mut bytes = vec![memory::POISON; len];
        fill(&mut bytes)?;
        let mut state = self.state.lock();
        state.memory.check_range("feed", to, len)?;
        if !state.events.contains_key(&after.0) {
            return Err(fault("feed", "waits for a point that is not recorded"));
        }
        // SAFETY: the range lies in a live allocation, which is the lane's from now on.
        unsafe { std::ptr::write_bytes(to as *mut u8, memory::POISON, len) };
        let event = state.event();
        state.under_way.insert(event, (to, bytes));
        Ok(EventHandle(event))
    }

    fn wait_for(&self, event: EventHandle) -> Result<()> {
        self.state.lock().arrive(event)
    }

    fn settle(&self, event: EventHandle) -> Result<()> {
        self.state.lock().arrive(event)
    }

    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<()> {
        let mut state = self.state.lock();
        self.check(&mut state)?;
        state.memory.check_range("download", from, to.len())?;
        // SAFETY: as for an upload.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()> {
        let state = self.state.lock();
        state.memory.check_range("copy", to, bytes)?;
        state.memory.check_range("copy", from, bytes)?;
        // SAFETY: both ranges lie in live allocations; `copy` allows overlap.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    unsafe fn fill(&self, to: u64, byte: u8, bytes: usize) -> Result<()> {
        let state = self.state.lock();
        state.memory.check_range("fill", to, bytes)?;
        // SAFETY: the range lies in a live allocation.
        unsafe { std::ptr::write_bytes(to as *mut u8, byte, bytes) };
        Ok(())
    }

    /// With the compiler's version, which is known: the compiler was started to be found.
    fn image_id(&self) -> String {
        self.compiler.id()
    }

    fn compiler(&self) -> Result<String> {
        Ok(self.compiler.version().to_string())
    }

    fn compile(&self, source: &KernelSource, _: Tier, out: &Path) -> Result<()> {
        self.compiler.compile_kernel(source, out)
    }

    fn check(&self, source: &KernelSource) -> Result<()> {
        self.compiler.check(source)
    }

    fn load(&self, image: &StoredImage) -> Result<ModuleHandle> {
        // SAFETY: the image was made by `compile` from kernel sources, which have no initialisers.
        let library = unsafe { Library::open(Some(&image.path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|e| fault(&image.path.display().to_string(), format!("does not load: {e}")))?;
        let modules = &mut self.state.lock().modules;
        modules.push(Some(library));
        Ok(ModuleHandle(modules.len() as u64 - 1))
    }

    /// Nothing is under way: launches end before they return.
    fn unload(&self, modules: &[ModuleHandle]) -> Result<()> {
        let state = &mut *self.state.lock();
        for module in modules {
            state.modules[module.0 as usize] = None;
        }
        Ok(())
    }

    /// Nothing is compiled twice.
    fn replace(&self, _: FunctionHandle, _: FunctionHandle) {}

    fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle> {
        let state = &mut *self.state.lock();
        let unloaded = || crate::Error::internal("a module is asked that was unloaded");
        let library = state.modules[module.0 as usize].as_ref().ok_or_else(unloaded)?;
        let missing = || -> crate::Error {
            ErrorKind::Compile {
                kernel: name.into(),
                log: "the module has no such entry point".into(),
            }
            .into()
        };
        // SAFETY: WF_KERNEL gives the entry this type and its facts this one; the library lives
        // until it is unloaded.
        let (entry, facts) = unsafe {
            let entry = library.get::<HostEntry>(name.as_bytes()).map_err(|_| missing())?;
            let facts = library
                .get::<*const KernelFacts>(format!("wf_sim_facts_{name}").as_bytes())
                .map_err(|_| missing())?;
            (*entry, **facts)
        };
        state.functions.push(SimFunction { entry, facts });
        Ok(FunctionHandle(state.functions.len() as u64 - 1))
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        kernel: &str,
        grid: Grid,
        arguments: &[u64],
    ) -> Result<()> {
        let mut state = self.state.lock();
        self.check(&mut state)?;
        let SimFunction { entry, facts } = state.functions[function.0 as usize];
        if arguments.len() != facts.words as usize {
            return Err(fault(
                kernel,
                format!("takes {} parameters, got {} arguments", facts.words, arguments.len()),
            ));
        }
        if facts.words as usize > MOST_PARAMETERS {
            let report = format!(
                "takes {} parameters; CUDA passes {MOST_PARAMETERS} words at most",
                facts.words
            );
            return Err(fault(kernel, report));
        }
        if grid.threads == 0 || !grid.threads.is_multiple_of(32) || grid.threads > facts.threads {
            let report = format!(
                "{} threads a block; a multiple of 32 up to {}",
                grid.threads, facts.threads
            );
            return Err(fault(kernel, report));
        }
        let launch = Launch {
            entry,
            words: arguments.as_ptr().cast(),
            blocks: grid.blocks,
            threads: grid.threads,
            shared: grid.shared,
            interleaved: (THREADS_PER_MULTIPROCESSOR / grid.threads).clamp(2, INTERLEAVED),
            seed: state.next_seed(self.seed),
            stops: runtime::stops,
        };
        // SAFETY: the number of arguments matches; the caller promises the rest.
        unsafe { self.run(&mut state, kernel, &launch) }
    }

    unsafe fn launch_user(
        &self,
        function: FunctionHandle,
        kernel: &str,
        grid: &UserGrid,
        arguments: &[UserArgument],
    ) -> Result<()> {
        let mut state = self.state.lock();
        self.check(&mut state)?;
        let SimFunction { entry, facts } = state.functions[function.0 as usize];
        // As `raw_launch` of `kernels/raw.cuh` has them.
        let sides = grid.blocks.iter().chain(&grid.threads).copied().chain([grid.shared]);
        let mut words: Vec<u64> = sides.map(u64::from).collect();
        let shape = words.len();
        for argument in arguments {
            match *argument {
                UserArgument::Memory { address, bytes } => {
                    state.memory.check_range(kernel, address, bytes as usize)?;
                    words.extend([address, bytes]);
                }
                UserArgument::Number { word, .. } => words.push(word),
            }
        }
        if words.len() != facts.words as usize {
            let (takes, given) = (facts.words as usize - shape, words.len() - shape);
            return Err(fault(kernel, format!("takes {takes} words of arguments, got {given}")));
        }
        let product = |sides: [u32; 3]| sides.iter().map(|side| u64::from(*side)).product::<u64>();
        let (blocks, threads) = (product(grid.blocks), product(grid.threads));
        let Ok(blocks) = u32::try_from(blocks) else {
            return Err(fault(
                kernel,
                format!("{blocks} blocks; the simulator runs {} at most", u32::MAX),
            ));
        };
        let launch = Launch {
            entry,
            words: words.as_ptr().cast(),
            blocks,
            threads: threads as u32,
            shared: grid.shared,
            interleaved: (THREADS_PER_MULTIPROCESSOR / threads.max(1) as u32).clamp(2, INTERLEAVED),
            seed: state.next_seed(self.seed),
            stops: runtime::stops,
        };
        // SAFETY: the number of words matches; the caller promises the rest.
        unsafe { self.run(&mut state, kernel, &launch) }
    }

    unsafe fn borrow(&self, address: u64, bytes: usize) {
        self.state.lock().memory.borrow(address, bytes);
    }

    fn give_back(&self, address: u64) {
        self.state.lock().memory.forget_borrowed(address);
    }

    fn resident_blocks(&self, _function: FunctionHandle, threads: u32, shared: u32) -> Result<u32> {
        let by_threads = THREADS_PER_MULTIPROCESSOR / threads.max(1);
        Ok(by_threads.min(SHARED_PER_BLOCK / shared.max(1)).min(4))
    }

    fn synchronize(&self) -> Result<()> {
        self.check(&mut self.state.lock())
    }

    fn record(&self) -> Result<EventHandle> {
        Ok(EventHandle(self.state.lock().event()))
    }

    fn elapsed_ms(&self, from: EventHandle, to: EventHandle) -> Result<f32> {
        let state = self.state.lock();
        let at = |event: EventHandle| state.events[&event.0];
        let (from, to) = (at(from), at(to));
        let ms =
            |later: Instant, earlier: Instant| later.duration_since(earlier).as_secs_f32() * 1e3;
        Ok(if to >= from { ms(to, from) } else { -ms(from, to) })
    }

    fn release(&self, event: EventHandle) {
        self.state.lock().events.remove(&event.0);
    }
}
