//! What is read together: column chunks in the order of rows, as many as make a batch.
//!
//! ```text
//!   file     rg 0: a b c │ rg 1: a b c │ rg 2: …          columns a and c are wanted
//!   batch 0  a c a c                                       until it has enough bytes
//! ```
//!
//! Neighbours in the file are read together; what lies one behind the other in device memory is
//! brought there together, in pieces of at most as many bytes as are fed at once. Pages that the
//! host unpacks are pieces of their own.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::parquet::file::metadata::ColumnChunkMetaData;

use super::Footer;
use super::headers::Pages;
use super::unpack::{Unpacker, unpacker};
use warpframe_device::MOST_FED;
use warpframe_device::ops::parquet::PageOutput;

/// Bytes before and behind a content in device memory that kernels may read, and its alignment.
pub(super) const SLACK: usize = 64;
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
    pub(super) output: PageOutput,
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
pub(super) enum FedPiece {
    /// As they lie in files, with gaps between the runs. Chunks that lie in them wholly: their
    /// numbers among the batch's, and where they begin.
    Read { runs: Vec<Run>, length: usize, offset: usize, whole: Vec<(usize, usize)> },
    /// Pages of a chunk, unpacked by the host one behind the other.
    Unpack { chunk: usize, pages: Range<usize>, length: usize, offset: usize },
    /// A page of a chunk that is longer than what is fed at once.
    UnpackLong { chunk: usize, page: usize, offset: usize },
}

/// Bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) file: usize,
    pub(super) begin: u64,
    pub(super) length: usize,
    /// Where they go in the piece.
    pub(super) at: usize,
}

/// Chunks that are read together.
#[derive(Debug)]
pub(super) struct Batch {
    /// Of the list of all chunks.
    pub(super) chunks: Range<usize>,
    /// Chunks whose headers are read before the bytes: all, where the host unpacks some of them,
    /// else those that are longer than what is fed at once.
    pub(super) first: Vec<usize>,
}

impl Batch {
    fn of(files: &[Opened], chunks: &[ChunkAt], range: Range<usize>) -> Batch {
        let own = &chunks[range.clone()];
        let by_host = own.iter().any(|chunk| is_packed(files, chunk));
        let is_long = |at: &usize| own[*at].meta(files).byte_range().1 > MOST_FED as u64;
        let first = (0..own.len()).filter(|at| by_host || is_long(at)).collect();
        Batch { chunks: range, first }
    }

    /// Whether its memory depends on its pages.
    pub(super) fn depends_on_pages(&self, files: &[Opened], chunks: &[ChunkAt]) -> bool {
        chunks[self.chunks.clone()].iter().any(|chunk| is_packed(files, chunk))
    }
}

/// Whether the host unpacks a chunk.
fn is_packed(files: &[Opened], chunk: &ChunkAt) -> bool {
    unpacker(chunk.meta(files).compression()) == Some(Unpacker::Host)
}

/// Bytes of a file that are read together, and the chunks in them: number, begin, end.
#[derive(Debug, Default)]
struct CoalescedRead {
    file: usize,
    bytes: Range<u64>,
    chunks: Vec<(usize, u64, u64)>,
}

impl CoalescedRead {
    fn takes(&self, file: usize, begin: u64, end: u64) -> bool {
        !self.chunks.is_empty()
            && self.file == file
            && begin >= self.bytes.end
            && begin <= self.bytes.end.saturating_add(GAP)
            && end >= begin
    }
}

/// Where a batch's bytes go.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// For each of its chunks, where the bytes begin: of the chunk as it lies in its file, or of
    /// its unpacked pages.
    pub(super) offsets: Vec<usize>,
    /// Bytes of memory.
    pub(super) bytes: usize,
    pub(super) pieces: Vec<FedPiece>,
}

/// Cuts the chunks into batches of about so many bytes.
pub(super) fn batches(files: &[Opened], chunks: &[ChunkAt], bytes: u64) -> Vec<Batch> {
    let mut batches = vec![];
    let (mut first, mut sum) = (0, 0);
    for at in 0..chunks.len() {
        sum += chunks[at].meta(files).byte_range().1;
        if sum >= bytes || at + 1 == chunks.len() {
            batches.push(Batch::of(files, chunks, first..at + 1));
            (first, sum) = (at + 1, 0);
        }
    }
    batches
}

impl Layout {
    /// Of a batch, with the pages of chunks that the host unpacks: of those that are not read,
    /// none.
    pub(super) fn of(
        files: &[Opened],
        chunks: &[ChunkAt],
        batch: &Batch,
        pages: &[Option<Arc<Pages>>],
    ) -> Layout {
        let own = &chunks[batch.chunks.clone()];
        let mut layout = Layout { offsets: vec![0; own.len()], bytes: SLACK, pieces: vec![] };
        let bytes_of = |at: usize| {
            let (begin, length) = own[at].meta(files).byte_range();
            (own[at].file, begin, begin + length)
        };
        let mut order: Vec<usize> =
            (0..own.len()).filter(|at| !is_packed(files, &own[*at])).collect();
        order.sort_unstable_by_key(|at| bytes_of(*at));
        let mut open = CoalescedRead::default();
        for at in order {
            let (file, begin, end) = bytes_of(at);
            if !open.takes(file, begin, end) {
                layout.close(std::mem::take(&mut open));
                open = CoalescedRead { file, bytes: begin..begin, chunks: vec![] };
            }
            layout.offsets[at] = layout.bytes + (begin - open.bytes.start) as usize;
            open.bytes.end = open.bytes.end.max(end);
            open.chunks.push((at, begin, end));
        }
        layout.close(open);
        for (at, pages) in pages.iter().enumerate() {
            if let Some(pages) = pages.as_ref().filter(|_| is_packed(files, &own[at])) {
                layout.offsets[at] = layout.bytes;
                layout.unpack(batch.chunks.start + at, pages);
            }
        }
        layout
    }

    /// Cuts what is read together into pieces, between chunks where that is possible, and places
    /// what follows behind it.
    fn close(&mut self, open: CoalescedRead) {
        let CoalescedRead { file, bytes, chunks } = open;
        let mut begin = bytes.start;
        let mut next = 0;
        while begin < bytes.end {
            let most = begin + MOST_FED as u64;
            let mut whole = vec![];
            let mut end = begin;
            while let Some((at, first, last)) =
                chunks.get(next).filter(|(_, first, last)| *first >= begin && *last <= most)
            {
                whole.push((*at, (first - begin) as usize));
                end = end.max(*last);
                next += 1;
            }
            if let (true, Some((_, _, last))) = (whole.is_empty(), chunks.get(next)) {
                // A part of a chunk that is too long; its headers are read on their own.
                end = most.min(*last);
                next += usize::from(end == *last);
            }
            let (length, offset) =
                ((end - begin) as usize, self.bytes + (begin - bytes.start) as usize);
            self.push_read(Run { file, begin, length, at: 0 }, offset, whole);
            begin = end;
        }
        self.bytes =
            (self.bytes + (bytes.end - bytes.start) as usize + SLACK).next_multiple_of(SLACK);
    }

    /// A piece of its own, or a part of the piece before it, where both together are not too long.
    fn push_read(&mut self, run: Run, offset: usize, chunks: Vec<(usize, usize)>) {
        match self.pieces.last_mut() {
            Some(FedPiece::Read { runs, length, offset: begin, whole })
                if offset - *begin + run.length <= MOST_FED =>
            {
                let at = offset - *begin;
                runs.push(Run { at, ..run });
                *length = at + run.length;
                whole.extend(chunks.into_iter().map(|(chunk, from)| (chunk, at + from)));
            }
            _ => self.pieces.push(FedPiece::Read {
                runs: vec![run],
                length: run.length,
                offset,
                whole: chunks,
            }),
        }
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
                self.pieces.push(FedPiece::UnpackLong { chunk, page: number, offset: self.bytes });
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
            self.pieces.push(FedPiece::Unpack { chunk, pages, length, offset: self.bytes });
            self.bytes += length;
        }
    }
}
