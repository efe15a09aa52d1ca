//! The interface between the engine and what executes kernels: `cuda` or `sim`.
//!
//! A driver has one in-order stream: everything submitted runs after what was submitted before, but
//! for [`Driver::feed`], whose copies go beside it. Addresses are device addresses as `u64`; only
//! drivers and kernels dereference them.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::KernelSource;
use crate::error::Result;

/// A loaded module, as the driver numbers them. Modules live until they are unloaded, or as long as
/// their driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ModuleHandle(pub(crate) u64);

/// An entry point of a loaded module; lives as long as its module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FunctionHandle(pub(crate) u64);

/// A compiled image that was found whole: its file, and the bytes that were checked.
#[derive(Debug)]
pub(crate) struct StoredImage {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// How much a compiler does for a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Half of [`Tier::Full`]'s time in the compiler, up to twice its time on the device.
    Quick,
    /// All that it can do.
    Full,
}

/// A recorded point in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct EventHandle(pub(crate) u64);

/// Grid of a launch: blocks and threads per block (one-dimensional), dynamic shared memory in
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// Number of blocks, at least 1.
    pub blocks: u32,
    /// Threads per block, a multiple of 32 up to 1024.
    pub threads: u32,
    /// Dynamic shared memory in bytes.
    pub shared: u32,
}

/// Shape of a launch of a user's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserGrid {
    /// Blocks along x, y and z, at least 1 each.
    pub blocks: [u32; 3],
    /// Threads of a block along x, y and z, at least 1 each.
    pub threads: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared: u32,
}

/// An argument of a user's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserArgument {
    /// An address, and how many bytes lie there.
    Memory { address: u64, bytes: u64 },
    /// A number in the low bytes of a word, and how many bytes it has.
    Number { word: u64, size: u8 },
}

/// What the engine wants to know of a device.
#[derive(Debug, Clone)]
pub struct DeviceProperties {
    /// Human-readable name.
    pub name: String,
    /// Target of compilation: `sm_90`, or `sim`.
    pub architecture: String,
    /// Streaming multiprocessors (the simulator states a small number).
    pub multiprocessors: u32,
    /// Most shared memory a block may ask for, bytes.
    pub shared_per_block: u32,
    /// Device memory in bytes.
    pub memory: u64,
}

/// What executes kernels. Every method but `compile` acts on the driver's single stream, in order.
pub(crate) trait Driver: Send + Sync + Debug {
    /// Facts about the device; constant.
    fn properties(&self) -> &DeviceProperties;

    /// Lets the GPU of another ordinal copy from the memory of this one. Whether it may.
    fn admit(&self, _ordinal: usize) -> Result<bool> {
        Ok(false)
    }

    /// Whether the device can do nothing any more: every call fails from now on.
    fn is_lost(&self) -> bool {
        false
    }

    /// Loses the device, where tests may do that.
    fn lose(&self) {}

    /// Opens another stream of the device; `None` where there is only one. Modules and functions
    /// are shared.
    fn beside(&self) -> Result<Option<Arc<dyn Driver>>> {
        Ok(None)
    }

    /// Bytes of device memory free at this moment for new allocations, by the driver's account.
    fn free_memory(&self) -> Result<u64>;

    /// Bytes taken from the device, in use or kept for reuse; `None` where nothing is kept.
    fn reserved_memory(&self) -> Option<u64> {
        None
    }

    /// Allocates `bytes > 0`, aligned to 256. `Ok(None)` when memory is exhausted: the pool words
    /// the error. The content is undefined (`sim` poisons it).
    fn alloc(&self, bytes: usize) -> Result<Option<u64>>;

    /// Allocates `bytes > 0` that are zero, aligned to 256. `Ok(None)` when memory is exhausted.
    fn alloc_zeroed(&self, bytes: usize) -> Result<Option<u64>> {
        let Some(address) = self.alloc(bytes)? else { return Ok(None) };
        // SAFETY: the range is a live allocation.
        if let Err(error) = unsafe { self.fill(address, 0, bytes) } {
            // SAFETY: as above, and nobody else knows it.
            unsafe { self.free(address, bytes) };
            return Err(error);
        }
        Ok(Some(address))
    }

    /// Allocates from freed blocks that are kept here, without a call of the system; `None` where
    /// none of them fits.
    fn alloc_kept(&self, _bytes: usize, _zeroed: bool) -> Option<u64> {
        None
    }

    /// Returns an allocation, after all work submitted so far.
    ///
    /// # Safety
    /// `address` came from an allocation of this driver with the same `bytes` and is not used by
    /// work submitted later.
    unsafe fn free(&self, address: u64, bytes: usize);

    /// Keeps a freed block for reuse, without a call of the system. If it returns false, call `free`.
    ///
    /// # Safety
    /// As of `free`; if it was kept, it must not be freed.
    unsafe fn keep(&self, _address: u64, _bytes: usize) -> bool {
        false
    }

    /// Gives cached memory back to the system.
    fn trim(&self) -> Result<()>;

    /// Copies host bytes to the device. The source may be reused when this returns.
    ///
    /// # Safety
    /// `to .. to + from.len()` lies in one live allocation.
    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<()>;

    /// Has `fill` write `len` bytes into pinned memory, from where they are copied beside the
    /// stream, once it has passed `after`. The event is that of the copy's end.
    ///
    /// # Safety
    /// `to .. to + len` lies in one live allocation, which lives until the event has passed, and
    /// which no work uses that is submitted after `after` and before [`Driver::wait_for`] the
    /// event.
    unsafe fn feed(
        &self,
        to: u64,
        len: usize,
        after: EventHandle,
        fill: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<EventHandle>;

    /// Lets work that is submitted later wait for a copy's end.
    fn wait_for(&self, event: EventHandle) -> Result<()>;

    /// Waits for a copy's end.
    fn settle(&self, event: EventHandle) -> Result<()>;

    /// Copies device bytes to the host, after all submitted work, and waits for it.
    ///
    /// # Safety
    /// `from .. from + to.len()` lies in one live allocation.
    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<()>;

    /// Copies within the device.
    ///
    /// # Safety
    /// Both ranges lie in live allocations and do not overlap.
    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<()>;

    /// Sets every byte of a range.
    ///
    /// # Safety
    /// The range lies in one live allocation.
    unsafe fn fill(&self, to: u64, byte: u8, bytes: usize) -> Result<()>;

    /// Everything but source and tier by which images are told apart: options, architecture. It
    /// does not load a compiler.
    fn image_id(&self) -> String;

    /// Name and version of the compiler. Loads it where it is a library.
    fn compiler(&self) -> Result<String>;

    /// Whether kernels may be compiled quickly at first, so that images of [`Tier::Quick`] are
    /// used. It does not load a compiler.
    fn takes_quick(&self) -> bool {
        false
    }

    /// How kernels are compiled at first: [`Tier::Quick`] where that is allowed and the compiler
    /// can. Loads it where it is a library.
    fn first_tier(&self) -> Result<Tier> {
        Ok(Tier::Full)
    }

    /// Whether the compiler was used before, so that any thread may compile.
    fn has_compiler(&self) -> bool {
        true
    }

    /// Loads the compiler where it is a library, and uses it for the first time. Only then does
    /// such a library register what takes it apart at the process's end, which must not happen
    /// while a thread is inside: only a thread for which a query waits may be the first.
    fn load_compiler(&self) -> Result<()> {
        Ok(())
    }

    /// Compiles a source to an image this driver can load, written to `out` (created or truncated).
    fn compile(&self, source: &KernelSource, tier: Tier, out: &Path) -> Result<()>;

    /// Compiles a source that a user wrote parts of, for what the compiler says of it: a function
    /// without a `return` is an error, too.
    fn check(&self, source: &KernelSource) -> Result<()> {
        self.compile(source, self.first_tier()?, Path::new("/dev/null"))
    }

    /// Loads an image made by `compile`.
    fn load(&self, image: &StoredImage) -> Result<ModuleHandle>;

    /// Unloads modules, with all that was found in them. Waits for what was launched on any stream
    /// of the device. Nobody launches their entry points any more, nor those that they took the
    /// places of.
    fn unload(&self, modules: &[ModuleHandle]) -> Result<()>;

    /// Finds an entry point.
    fn function(&self, module: ModuleHandle, name: &str) -> Result<FunctionHandle>;

    /// Lets later launches of `function` be ones of `by`, the same entry point of a module that was
    /// compiled another way.
    fn replace(&self, function: FunctionHandle, by: FunctionHandle);

    /// Submits a kernel whose parameters are `arguments`, each one 8-byte word, in order.
    ///
    /// # Safety
    /// The arguments match the kernel's parameter structure, and every address among them lies in a
    /// live allocation as large as the kernel demands.
    unsafe fn launch(
        &self,
        function: FunctionHandle,
        kernel: &str,
        grid: Grid,
        arguments: &[u64],
    ) -> Result<()>;

    /// Submits a kernel that a user wrote, whose parameters are these, in order.
    ///
    /// # Safety
    /// The types of the parameters are those of the arguments, every address leads to a live
    /// allocation of the bytes that are told, and the kernel touches no other memory.
    unsafe fn launch_user(
        &self,
        _function: FunctionHandle,
        kernel: &str,
        _grid: &UserGrid,
        _arguments: &[UserArgument],
    ) -> Result<()> {
        Err(crate::Error::internal(format!("kernel {kernel} is launched where nothing runs")))
    }

    /// The stream, as the driver's own interface knows it; 0 where there is none.
    fn stream(&self) -> u64 {
        0
    }

    /// Lets work that is submitted later wait for what another stream of the device was given so
    /// far.
    ///
    /// # Safety
    /// The stream is live, and of this device.
    unsafe fn wait_for_stream(&self, _stream: u64) -> Result<()> {
        Ok(())
    }

    /// Lets what another stream of the device is given later wait for all that was submitted here.
    ///
    /// # Safety
    /// As of `wait_for_stream`.
    unsafe fn make_stream_wait(&self, _stream: u64) -> Result<()> {
        Ok(())
    }

    /// Waits for an event that another program recorded on this device, as `wait_for` does; 0 is
    /// none.
    ///
    /// # Safety
    /// The event is live, and of this device.
    #[cfg_attr(not(feature = "ffi"), allow(dead_code, reason = "columns of other programs"))]
    unsafe fn wait_for_event(&self, _event: u64) -> Result<()> {
        Ok(())
    }

    /// Waits for everything that any program in this process submitted to the device.
    #[cfg_attr(not(feature = "ffi"), allow(dead_code, reason = "columns of other programs"))]
    fn settle_all(&self) -> Result<()> {
        self.synchronize()
    }

    /// Notes that work may use memory that another program allocated on the device, until
    /// [`Driver::give_back`].
    ///
    /// # Safety
    /// The range is readable by the device until then.
    #[cfg_attr(not(feature = "ffi"), allow(dead_code, reason = "columns of other programs"))]
    unsafe fn borrow(&self, _address: u64, _bytes: usize) {}

    /// Notes that borrowed memory is used no more, once all submitted work is done, for which it
    /// waits.
    fn give_back(&self, _address: u64) {
        // An error is of earlier work: the next call that can report it does.
        let _ = self.synchronize();
    }

    /// How many blocks of this shape run at once on one multiprocessor.
    fn resident_blocks(&self, function: FunctionHandle, threads: u32, shared: u32) -> Result<u32>;

    /// Waits for all submitted work; reports an error of any of it.
    fn synchronize(&self) -> Result<()>;

    /// Records a point in the stream.
    fn record(&self) -> Result<EventHandle>;

    /// Milliseconds of device time between two recorded points (waits for the later); frees
    /// neither.
    fn elapsed_ms(&self, from: EventHandle, to: EventHandle) -> Result<f32>;

    /// Frees a recorded point.
    fn release(&self, event: EventHandle);
}
