//! A piece of a compressed file.

use std::io::{BufRead, Read};
use std::ops::Range;

/// A part of a file that can be unpacked alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PackedPiece {
    /// What a codec has to see before the bytes, and behind them.
    pub(super) head: Vec<u8>,
    pub(super) range: Range<usize>,
    pub(super) tail: Vec<u8>,
}

impl PackedPiece {
    /// Whole streams.
    pub(super) fn streams(range: Range<usize>) -> PackedPiece {
        PackedPiece { head: vec![], range, tail: vec![] }
    }

    /// What a codec reads, of the file's bytes.
    pub(super) fn reader<'a>(&'a self, bytes: &'a [u8]) -> impl BufRead + 'a {
        self.head.chain(&bytes[self.range.clone()]).chain(&self.tail[..])
    }
}
