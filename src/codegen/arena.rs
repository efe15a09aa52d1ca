//! Memory for the characters of strings and the elements of lists that a kernel makes
//! (`kernels/text.cuh`).
//!
//! The host guesses how many bytes the kernel needs. A kernel that needs more reports how many. Its
//! output is then not used: the sink compares [`super::control::Control::characters`] with what it
//! gave, and runs the kernel again with a larger arena. Before that, buffers that the kernel
//! changed are zeroed again ([`super::prepared::PreparedKernel::undo`]).

use std::sync::Arc;

use super::params::{Later, Params};
use warpframe_device::Buffer;

/// The parameters of an arena: address and capacity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arena {
    bytes: Later,
    capacity: Later,
}

impl Arena {
    /// Declares an arena, and the statements that make it known to expressions, with a secret for
    /// the hash tables that those put there. `control` names the kernel's control words.
    pub(super) fn declare(params: &mut Params, control: &str, secret: u64) -> (Self, String) {
        let ((bytes, bytes_later), (capacity, capacity_later)) =
            (params.later("u8*"), params.later("u64"));
        let secret = params.word("u64", secret);
        let statement = format!(
            "const text_arena arena{{{bytes}, {capacity}, {control} + 4, status}};\nconst u64 secret = {secret};\n"
        );
        (Arena { bytes: bytes_later, capacity: capacity_later }, statement)
    }

    /// Gives the kernel `buffer`, of `capacity` bytes, as its arena.
    pub(super) fn give(self, params: &mut Params, buffer: &Arc<Buffer>, capacity: u64) {
        params.set(self.bytes, &**buffer);
        params.set(self.capacity, capacity);
        params.keep(buffer);
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
