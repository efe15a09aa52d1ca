//! Modules that are loaded, their kernels, and the launch of one.

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_int};
use std::sync::Arc;

use cudarc::driver::sys;
use parking_lot::Mutex;

use super::calls::{CallQueue, call};
use super::gpu::PrimaryContext;
use crate::drivers::driver::{FunctionHandle, Grid, ModuleHandle, StoredImage};
use crate::error::{Error, ErrorKind, Result};

/// What was loaded, which all streams of a device use.
#[derive(Debug)]
pub(super) struct LoadedCode {
    /// `None` of those that were unloaded.
    modules: Mutex<Vec<Option<Module>>>,
    /// `None` of those whose modules were unloaded.
    functions: Mutex<Vec<Option<CudaFunction>>>,
    /// Blocks that run at once on a multiprocessor, by function (a driver's handle), threads and
    /// bytes of shared memory.
    resident: Mutex<HashMap<(usize, u32, u32), u32>>,
    context: PrimaryContext,
}

#[derive(Debug)]
struct Module(sys::CUmodule);

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for Module {}

#[derive(Debug, Clone)]
pub(super) struct CudaFunction {
    pub(super) function: sys::CUfunction,
    module: ModuleHandle,
    name: Arc<str>,
    /// Size of its parameter structure, where the driver tells.
    parameters: Option<usize>,
}

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for CudaFunction {}

impl LoadedCode {
    /// Nothing yet, in a context that outlives it.
    pub(super) fn new(context: sys::CUcontext) -> Self {
        let (modules, functions, resident) = Default::default();
        LoadedCode { modules, functions, resident, context: PrimaryContext(context) }
    }

    pub(super) fn load(&self, queue: &CallQueue, image: &StoredImage) -> Result<ModuleHandle> {
        queue.bind()?;
        let mut module = std::ptr::null_mut();
        let bytes = image.bytes.as_ptr().cast();
        // SAFETY: a whole image, which says its own length; the driver copies it.
        queue.check(unsafe { call!(cuModuleLoadData(&mut module, bytes)) })?;
        let mut modules = self.modules.lock();
        modules.push(Some(Module(module)));
        Ok(ModuleHandle(modules.len() as u64 - 1))
    }

    pub(super) fn unload(&self, queue: &CallQueue, modules: &[ModuleHandle]) -> Result<()> {
        queue.bind()?;
        // SAFETY: takes nothing; waits for all streams of the bound context.
        queue.check(unsafe { call!(cuCtxSynchronize()) })?;
        let gone = |function: &CudaFunction| modules.contains(&function.module);
        // A later function may get the address of one that is gone, and have other numbers.
        let mut addresses = HashSet::new();
        for function in self.functions.lock().iter_mut() {
            if let Some(taken) = function.take_if(|known| gone(known)) {
                addresses.insert(taken.function as usize);
            }
        }
        self.resident.lock().retain(|(function, ..), _| !addresses.contains(function));
        for handle in modules {
            let Some(module) = self.modules.lock()[handle.0 as usize].take() else {
                continue;
            };
            // SAFETY: a live module, taken by this call alone. By the caller's word nobody launches
            // its functions; what was launched has ended.
            queue.check(unsafe { call!(cuModuleUnload(module.0)) })?;
        }
        Ok(())
    }

    /// An entry point, which may use all shared memory that a block may have.
    pub(super) fn function(
        &self,
        queue: &CallQueue,
        module: ModuleHandle,
        name: &str,
        shared_per_block: u32,
    ) -> Result<FunctionHandle> {
        use sys::CUfunction_attribute::*;
        let missing =
            |log: String| Error::from(ErrorKind::Compile { kernel: name.to_string(), log });
        let symbol =
            CString::new(name).map_err(|_| missing("its name holds a zero byte".into()))?;
        queue.bind()?;
        let handle = module;
        let module = self.modules.lock()[handle.0 as usize].as_ref().ok_or_else(unloaded)?.0;
        let mut function = std::ptr::null_mut();
        // SAFETY: a live module and a terminated name; writes the handle only.
        match unsafe { call!(cuModuleGetFunction(&mut function, module, symbol.as_ptr())) } {
            Err(failed) if failed.code == sys::CUresult::CUDA_ERROR_NOT_FOUND => {
                return Err(missing("its module has no entry point of this name".into()));
            }
            other => queue.check(other)?,
        }
        let (mut fixed, size) = (0, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
        // SAFETY: a live function; writes the number only.
        queue.check(unsafe { call!(cuFuncGetAttribute(&mut fixed, size, function)) })?;
        // More than 48 KiB of dynamic shared memory must be asked for; the attribute is a
        // permission, not a use.
        let most = shared_per_block as c_int - fixed;
        let dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: a live function.
        queue.check(unsafe { call!(cuFuncSetAttribute(function, dynamic, most)) })?;
        let (mut offset, mut size) = (0, 0);
        // SAFETY: a live function; writes both numbers. A function without parameters refuses the
        // index.
        let told = unsafe { call!(cuFuncGetParamInfo(function, 0, &mut offset, &mut size)) };
        let parameters = told.is_ok().then_some(size);
        let mut functions = self.functions.lock();
        functions.push(Some(CudaFunction {
            function,
            module: handle,
            name: name.into(),
            parameters,
        }));
        Ok(FunctionHandle(functions.len() as u64 - 1))
    }

    pub(super) fn replace(&self, function: FunctionHandle, by: FunctionHandle) {
        let mut functions = self.functions.lock();
        functions[function.0 as usize] = functions[by.0 as usize].clone();
    }

    pub(super) fn find(&self, handle: FunctionHandle) -> Result<CudaFunction> {
        self.functions.lock()[handle.0 as usize].clone().ok_or_else(unloaded)
    }

    pub(super) fn resident_blocks(
        &self,
        queue: &CallQueue,
        function: FunctionHandle,
        threads: u32,
        shared: u32,
    ) -> Result<u32> {
        let function = self.find(function)?.function;
        let key = (function as usize, threads, shared);
        if let Some(&blocks) = self.resident.lock().get(&key) {
            return Ok(blocks);
        }
        queue.bind()?;
        let mut blocks = 0;
        let (threads, shared) = (threads as c_int, shared as usize);
        // SAFETY: a live function; writes the number only.
        queue.check(unsafe {
            call!(cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                function,
                threads,
                shared
            ))
        })?;
        let blocks = blocks.max(0) as u32;
        self.resident.lock().insert(key, blocks);
        Ok(blocks)
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        // SAFETY: the primary context outlives drivers. No work is under way: each stream's driver
        // waited for it and then gave this up; handles to modules live no longer than their driver.
        // Errors cannot be reported here.
        unsafe {
            let _ = call!(cuCtxSetCurrent(self.context.0));
            for module in self.modules.lock().drain(..).flatten() {
                let _ = call!(cuModuleUnload(module.0));
            }
        }
    }
}

fn unloaded() -> Error {
    Error::internal("a module is used that was unloaded")
}

impl CudaFunction {
    /// Submits the kernel.
    ///
    /// # Safety
    /// As of [`Driver::launch`](crate::Driver::launch).
    pub(super) unsafe fn launch(
        &self,
        queue: &CallQueue,
        kernel: &str,
        grid: Grid,
        arguments: &[u64],
    ) -> Result<()> {
        let CudaFunction { function, name, parameters, .. } = self;
        let given = size_of_val(arguments);
        if let Some(size) = parameters.filter(|&size| size != given) {
            let log = format!("takes {size} bytes of parameters, was given {given}");
            return Err(ErrorKind::Compile { kernel: kernel.to_string(), log }.into());
        }
        queue.bind()?;
        queue.launched(name);
        // The one parameter is a structure of words: the argument list itself.
        let mut parameter = arguments.as_ptr().cast_mut().cast();
        let Grid { blocks, threads, shared } = grid;
        // SAFETY: the driver reads the structure, whose size was compared above, before it returns;
        // what its addresses lead to is the caller's promise.
        let launched = unsafe {
            let (stream, none) = (queue.stream(), std::ptr::null_mut());
            call!(cuLaunchKernel(
                *function,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                shared,
                stream,
                &mut parameter,
                none
            ))
        };
        queue.check(launched).map_err(|error| match error.kind() {
            ErrorKind::Cuda { call, code } => {
                let code = format!(
                    "{code} ({kernel}, {blocks} blocks of {threads} threads, {shared} bytes shared)"
                );
                ErrorKind::Cuda { call, code }.into()
            }
            _ => error,
        })
    }
}
