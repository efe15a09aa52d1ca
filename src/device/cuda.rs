//! The CUDA driver, through cudarc.
use super::Source;
use super::driver::*;
use crate::error::Result;
use std::path::Path;

#[derive(Debug)]
pub(super) struct CudaDriver {}

impl CudaDriver {
    pub(super) fn open(_ordinal: usize) -> Result<Self> {
        unimplemented!()
    }
}

impl Driver for CudaDriver {
    fn properties(&self) -> &DeviceProperties {
        unimplemented!()
    }
    fn free_memory(&self) -> Result<u64> {
        unimplemented!()
    }
    fn alloc(&self, _bytes: usize) -> Result<Option<u64>> {
        unimplemented!()
    }
    unsafe fn free(&self, _address: u64, _bytes: usize) {
        unimplemented!()
    }
    fn trim(&self) -> Result<()> {
        unimplemented!()
    }
    unsafe fn upload(&self, _to: u64, _from: &[u8]) -> Result<()> {
        unimplemented!()
    }
    unsafe fn download(&self, _to: &mut [u8], _from: u64) -> Result<()> {
        unimplemented!()
    }
    unsafe fn copy(&self, _to: u64, _from: u64, _bytes: usize) -> Result<()> {
        unimplemented!()
    }
    unsafe fn fill(&self, _to: u64, _byte: u8, _bytes: usize) -> Result<()> {
        unimplemented!()
    }
    fn compiler_id(&self) -> String {
        unimplemented!()
    }
    fn compile(&self, _source: &Source, _out: &Path) -> Result<()> {
        unimplemented!()
    }
    fn load(&self, _image: &Path) -> Result<ModuleHandle> {
        unimplemented!()
    }
    fn function(&self, _module: ModuleHandle, _name: &str) -> Result<FunctionHandle> {
        unimplemented!()
    }
    unsafe fn launch(&self, _function: FunctionHandle, _kernel: &str, _grid: Grid, _arguments: &[u64]) -> Result<()> {
        unimplemented!()
    }
    fn resident_blocks(&self, _function: FunctionHandle, _threads: u32, _shared: u32) -> Result<u32> {
        unimplemented!()
    }
    fn synchronize(&self) -> Result<()> {
        unimplemented!()
    }
    fn record(&self) -> Result<EventHandle> {
        unimplemented!()
    }
    fn elapsed_ms(&self, _from: EventHandle, _to: EventHandle) -> Result<f32> {
        unimplemented!()
    }
    fn release(&self, _event: EventHandle) {
        unimplemented!()
    }
}
