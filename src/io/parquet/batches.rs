//! What is read together: column chunks in the order of rows, as many as make a batch.
//!
//! ```text
//!   file     rg 0: a b c │ rg 1: a b c │ rg 2: …          columns a and c are wanted
//!   batch 0  a c a c                                       until it has enough bytes
//!            └┬┘
//!   pieces   of at most so many bytes as are fed at once; neighbours in the file are one range
//! ```

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::parquet::file::metadata::ColumnChunkMetaData;

use super::Footer;
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

/// Bytes of a file that go to one place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) file: usize,
    pub(super) begin: u64,
    pub(super) length: usize,
    /// In the batch's memory.
    pub(super) offset: usize,
}

/// Chunks that are read together.
#[derive(Debug)]
pub(super) struct Batch {
    /// Of the list of all chunks.
    pub(super) chunks: Range<usize>,
    /// For each of them, where its bytes begin in the batch's memory.
    pub(super) offsets: Vec<usize>,
    /// Bytes of its memory.
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
            batches.push(batch(files, chunks, first..at + 1));
            (first, sum) = (at + 1, 0);
        }
    }
    batches
}

fn batch(files: &[Opened], chunks: &[ChunkAt], of: Range<usize>) -> Batch {
    let mut order: Vec<usize> = (0..of.len()).collect();
    let bytes_of = |at: usize| {
        let chunk = &chunks[of.start + at];
        let (begin, length) = chunk.meta(files).byte_range();
        (chunk.file, begin, begin + length)
    };
    order.sort_unstable_by_key(|at| bytes_of(*at));
    let mut batch = Batch { chunks: of.clone(), offsets: vec![0; of.len()], bytes: SLACK, pieces: vec![] };
    // A range of a file, whose place in memory begins at the batch's present end.
    let mut open: Option<(usize, Range<u64>)> = None;
    for at in order {
        let (file, begin, end) = bytes_of(at);
        open = match open {
            Some((of, range)) if of == file && begin <= range.end.saturating_add(GAP) => {
                Some((file, range.start..range.end.max(end)))
            }
            full => {
                batch.close(full);
                Some((file, begin..end))
            }
        };
        let start = open.as_ref().map_or(begin, |(_, range)| range.start);
        batch.offsets[at] = batch.bytes + (begin - start) as usize;
    }
    batch.close(open);
    batch
}

impl Batch {
    /// Cuts a range into pieces, and places what follows behind it.
    fn close(&mut self, range: Option<(usize, Range<u64>)>) {
        let Some((file, range)) = range else { return };
        let length = (range.end - range.start) as usize;
        for skip in (0..length).step_by(MOST_FED) {
            let (begin, offset) = (range.start + skip as u64, self.bytes + skip);
            self.pieces.push(Piece { file, begin, length: MOST_FED.min(length - skip), offset });
        }
        self.bytes = (self.bytes + length + SLACK).next_multiple_of(SLACK);
    }
}
