//! What a generator hands to a sink: the parameters of a kernel, and what the sink must know of its
//! statements.

use std::sync::Arc;

use super::arena::Arena;
use super::control::Control;
use super::params::Params;
use super::sites::Sites;
use super::statements::Code;
use crate::error::Result;
use warpframe_device::{Buffer, Device};

/// A generated kernel's parameters, and what a sink needs beside them to complete and launch the
/// kernel.
pub(crate) struct PreparedKernel {
    pub(crate) params: Params,
    /// Statements before those of a row: what is declared once a thread, and the loads ahead of all
    /// of its rows.
    pub(crate) prologue: Code,
    /// Rows that the kernel reads. The profile computes the bytes that it moves from them.
    pub(crate) rows: u64,
    /// Bytes of registers that one row's eager loads take.
    pub(crate) eager_bytes: usize,
    /// Columns of the source are loaded where they are first needed, for few rows. Other warps then
    /// hide the latency of the loads, so blocks should be many rather than rows per thread.
    pub(crate) late: bool,
    /// Buffers that string views in outputs may point into.
    pub(crate) characters: Vec<Arc<Buffer>>,
    /// Rows may fail: the kernel's status has to be read before its output is used. Noted by the
    /// emitters; nothing is searched for in the text.
    pub(crate) may_fail: bool,
    /// Where rows may fail.
    pub(crate) sites: Sites,
    /// Set if the kernel makes strings or lists.
    pub(crate) arena: Option<Arena>,
    /// The arena's memory, which string views in outputs may point into, too.
    pub(crate) made: Option<Arc<Buffer>>,
    /// Buffers that the statements change, zero before each run.
    pub(crate) touched: Vec<Arc<Buffer>>,
}

impl PreparedKernel {
    /// Gives the kernel an arena of `capacity` bytes in place of any former one, if it makes
    /// strings.
    pub(super) fn set_arena(
        &mut self,
        device: &Device,
        operator: &'static str,
        capacity: u64,
    ) -> Result<()> {
        let Some(arena) = self.arena else { return Ok(()) };
        let size = usize::try_from(capacity).unwrap_or(usize::MAX);
        let buffer = Arc::new(device.alloc(operator, size)?);
        arena.give(&mut self.params, &buffer, capacity);
        self.made = Some(buffer);
        Ok(())
    }

    /// Restores the state before a run whose arena was too small.
    pub(super) fn undo(&self, control: &Control) -> Result<()> {
        self.touched.iter().try_for_each(|buffer| buffer.fill(0))?;
        control.reset()
    }
}
