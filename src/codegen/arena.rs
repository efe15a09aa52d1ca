//! Memory for the characters of strings that a kernel makes (`kernels/text.cuh`).
//!
//! The host guesses how much that is. A kernel that wants more says how much, and is run again: by the sink, which
//! compares [`super::kernel::Control::characters`] with what it gave.

use std::sync::Arc;

use super::generator::Prepared;
use super::kernel::Control;
use super::params::{Later, Params};
use crate::device::Device;
use crate::error::Result;

/// The parameters of an arena: address and capacity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arena {
    bytes: Later,
    capacity: Later,
}

impl Arena {
    /// Declares an arena, and the statements that make it known to expressions, with a secret for the hash tables that those
    /// put there. `control` names the kernel's control words.
    pub(super) fn declare(params: &mut Params, control: &str, secret: u64) -> (Self, String) {
        let ((bytes, bytes_later), (capacity, capacity_later)) = (params.later("u8*"), params.later("u64"));
        let secret = params.word("u64", secret);
        let statement = format!(
            "const text_arena arena{{{bytes}, {capacity}, {control} + 4, status}};\nconst u64 secret = {secret};\n"
        );
        (Arena { bytes: bytes_later, capacity: capacity_later }, statement)
    }

    /// First guess of the bytes that the strings made of `rows` rows take.
    pub(super) fn guess(rows: u64) -> u64 {
        rows.saturating_mul(32).clamp(1 << 12, 1 << 30)
    }

    /// The next size, after the kernel asked for `asked` bytes of `capacity`.
    pub(super) fn larger(capacity: u64, asked: u64) -> u64 {
        // Strings made of strings that did not fit asked for nothing yet.
        asked.max(capacity.saturating_mul(2))
    }
}

impl Prepared {
    /// Gives the kernel an arena of `capacity` bytes in place of any former one, if it makes strings.
    pub(super) fn set_arena(&mut self, device: &Device, operator: &'static str, capacity: u64) -> Result<()> {
        let Some(arena) = self.arena else { return Ok(()) };
        let size = usize::try_from(capacity).unwrap_or(usize::MAX);
        let buffer = Arc::new(device.alloc(operator, size)?);
        self.params.set(arena.bytes, &*buffer);
        self.params.set(arena.capacity, capacity);
        self.params.keep(&buffer);
        self.made = Some(buffer);
        Ok(())
    }

    /// Makes all as it was before a run for which the arena was too small.
    pub(super) fn undo(&self, control: &Control) -> Result<()> {
        self.touched.iter().try_for_each(|buffer| buffer.fill(0))?;
        control.reset()
    }
}
