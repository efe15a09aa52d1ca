//! Compiled kernels, kept in memory and on disk.
use super::Source;
use super::counters::Counting;
use super::driver::{Driver, FunctionHandle};
use crate::error::Result;

#[derive(Debug)]
pub(super) struct KernelCache {}

impl KernelCache {
    pub(super) fn new() -> Self {
        KernelCache {}
    }
    pub(super) fn function(
        &self,
        _driver: &dyn Driver,
        _counters: &Counting,
        _source: &Source,
        _name: &str,
    ) -> Result<FunctionHandle> {
        unimplemented!()
    }
    pub(super) fn prepare(&self, _driver: &dyn Driver, _counters: &Counting, _sources: &[Source]) -> Result<()> {
        unimplemented!()
    }
}
