//! Arguments of kernels.

use crate::{Buffer, Slice};

/// One 8-byte kernel argument.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    pub(crate) word: u64,
    /// Bytes that the kernel is taken to read or write through it: of a buffer all from here on, of
    /// a number none.
    pub(crate) bytes: u64,
}

impl Argument {
    fn number(word: u64) -> Self {
        Argument { word, bytes: 0 }
    }

    /// Limits the bytes that a kernel is taken to move through the argument.
    pub fn moving_at_most(self, bytes: u64) -> Self {
        Argument { bytes: self.bytes.min(bytes), ..self }
    }

    /// The address of a buffer that holds `all`, whose bytes count for it.
    pub fn of_all(buffer: &Buffer, all: &[Argument]) -> Self {
        Argument { word: buffer.address(), bytes: all.iter().map(|argument| argument.bytes).sum() }
    }

    /// The word as it lies in memory.
    pub fn to_bytes(self) -> [u8; 8] {
        self.word.to_ne_bytes()
    }
}

impl From<u64> for Argument {
    fn from(value: u64) -> Self {
        Argument::number(value)
    }
}
impl From<i64> for Argument {
    fn from(value: i64) -> Self {
        Argument::number(value as u64)
    }
}
impl From<f64> for Argument {
    fn from(value: f64) -> Self {
        Argument::number(value.to_bits())
    }
}
impl From<&Buffer> for Argument {
    fn from(buffer: &Buffer) -> Self {
        buffer.slice(0).into()
    }
}
impl From<Slice<'_>> for Argument {
    fn from(slice: Slice<'_>) -> Self {
        Argument { word: slice.address(), bytes: slice.len() as u64 }
    }
}
