//! What is read together: column chunks in the order of rows, as many as make a batch.
//!
//! ```text
//!   file     rg 0: a b c │ rg 1: a b c │ rg 2: …          columns a and c are wanted
//!   batch 0  a c a c                                       until it has enough bytes
//! ```
//!
//! Neighbours in the file are one range, which is cut into pieces of as many bytes as are fed at
//! once. Pages that the host unpacks are pieces of their own.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::parquet::file::metadata::ColumnChunkMetaData;

use super::Footer;
use super::headers::Pages;
use super::unpack::{Unpacker, unpacker};
use crate::device::MOST_FED;
use crate::ops::parquet::Output;

/// Bytes around a range in device memory that kernels may read: they load words.
const SLACK: usize = 64;
/// Ranges whose gap is no longer are read as one.
const GAP: u64 = 4096;

/// A file that is open for reading.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) footer: Arc<Footer>,
}

/// A column chunk that is to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkAt {
    /// Index into the files.
    pub(super) file: usize,
    pub(super) group: usize,
    /// The leaf's index in the file.
    pub(super) leaf: usize,
    /// Index into the columns that are read.
    pub(super) column: usize,
    pub(super) output: Output,
    /// Its first row in the table.
    pub(super) row: u64,
    pub(super) rows: u64,
}

impl ChunkAt {
    pub(super) fn meta<'a>(&self, files: &'a [Opened]) -> &'a ColumnChunkMetaData {
        files[self.file].footer.metadata.row_group(self.group).column(self.leaf)
    }
}

/// Bytes that go to one place at once, at most as many as are fed.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    /// As they lie in a file, from `begin` on.
    Read { file: usize, begin: u64, length: usize, offset: usize },
    /// Pages of a chunk, unpacked by the host one behind the other.
    Unpack { chunk: usize, pages: Range<usize>, length: usize, offset: usize },
    /// A page of a chunk that is longer than what is fed at once.
    UnpackLong { chunk: usize, page: usize, offset: usize },
}

/// Chunks that are read together.
#[derive(Debug)]
pub(super) struct Batch {
    /// Of the list of all chunks.
    pub(super) chunks: Range<usize>,
}

/// Where a batch's bytes go.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// For each of its chunks, where the bytes begin: of the chunk as it lies in its file, or of its
    /// unpacked pages.
    pub(super) offsets: Vec<usize>,
    /// Bytes of memory.
    pub(super) bytes: usize,
    pub(super) pieces: Vec<Piece>,
}

/// Cuts the chunks into batches of about so many bytes.
pub(super) fn batches(files: &[Opened], chunks: &[ChunkAt], bytes: u64) -> Vec<Batch> {
    let mut batches = vec![];
    let (mut first, mut sum) = (0, 0);
    for at in 0..chunks.len() {
        sum += chunks[at].meta(files).byte_range().1;
        if sum >= bytes || at + 1 == chunks.len() {
            batches.push(Batch { chunks: first..at + 1 });
            (first, sum) = (at + 1, 0);
        }
    }
    batches
}

impl Layout {
    /// Of a batch whose pages are known; chunks that are not read have none.
    pub(super) fn of(files: &[Opened], chunks: &[ChunkAt], batch: &Batch, pages: &[Option<&Pages>]) -> Layout {
        let mut layout = Layout { offsets: vec![0; pages.len()], bytes: SLACK, pieces: vec![] };
        let chunk = |at: usize| &chunks[batch.chunks.start + at];
        let is_packed = |at: usize| unpacker(chunk(at).meta(files).compression()) == Some(Unpacker::Host);
        let bytes_of = |at: usize| {
            let (begin, length) = chunk(at).meta(files).byte_range();
            (chunk(at).file, begin, begin + length)
        };
        let mut order: Vec<usize> = (0..pages.len()).filter(|at| pages[*at].is_some() && !is_packed(*at)).collect();
        order.sort_unstable_by_key(|at| bytes_of(*at));
        // A range of a file, whose place in memory begins at the present end.
        let mut open: Option<(usize, Range<u64>)> = None;
        for at in order {
            let (file, begin, end) = bytes_of(at);
            open = match open {
                Some((of, range)) if of == file && begin <= range.end.saturating_add(GAP) => {
                    Some((file, range.start..range.end.max(end)))
                }
                full => {
                    layout.close(full);
                    Some((file, begin..end))
                }
            };
            let start = open.as_ref().map_or(begin, |(_, range)| range.start);
            layout.offsets[at] = layout.bytes + (begin - start) as usize;
        }
        layout.close(open);
        for at in (0..pages.len()).filter(|at| is_packed(*at)) {
            if let Some(pages) = pages[at] {
                layout.offsets[at] = layout.bytes;
                layout.unpack(batch.chunks.start + at, pages);
            }
        }
        layout
    }

    /// Cuts a range into pieces, and places what follows behind it.
    fn close(&mut self, range: Option<(usize, Range<u64>)>) {
        let Some((file, range)) = range else { return };
        let length = (range.end - range.start) as usize;
        for skip in (0..length).step_by(MOST_FED) {
            let (begin, offset) = (range.start + skip as u64, self.bytes + skip);
            self.pieces.push(Piece::Read { file, begin, length: MOST_FED.min(length - skip), offset });
        }
        self.bytes = (self.bytes + length + SLACK).next_multiple_of(SLACK);
    }

    /// Places the unpacked pages of a chunk one behind the other.
    fn unpack(&mut self, chunk: usize, pages: &Pages) {
        let mut open = 0..0;
        let mut length = 0;
        for (number, page) in pages.all().enumerate() {
            let own = page.unpacked();
            if length + own > MOST_FED {
                self.push_unpacked(chunk, open, length);
                (open, length) = (number..number, 0);
            }
            if own > MOST_FED {
                self.pieces.push(Piece::UnpackLong { chunk, page: number, offset: self.bytes });
                self.bytes += own;
                open = number + 1..number + 1;
            } else {
                open.end = number + 1;
                length += own;
            }
        }
        self.push_unpacked(chunk, open, length);
        self.bytes = (self.bytes + SLACK).next_multiple_of(SLACK);
    }

    fn push_unpacked(&mut self, chunk: usize, pages: Range<usize>, length: usize) {
        if !pages.is_empty() {
            self.pieces.push(Piece::Unpack { chunk, pages, length, offset: self.bytes });
            self.bytes += length;
        }
    }
}
