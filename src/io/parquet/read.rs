//! Reads columns of Parquet files into device memory: bytes by threads (`workers.rs`), everything
//! else on the device.
//!
//! ```text
//!   bytes of a batch → pages decompressed → values of all its chunks, at their rows of the columns
//! ```
//!
//! What the device does not read, or finds damaged, is a reason, not an error: the host's reader
//! has the last word.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};

use super::Footer;
use super::batches::{Batch, ChunkAt, Layout, Opened, batches};
use super::headers::{Pages, Reason};
use super::outputs::{OwnType, output};
use super::plan::{Decoded, Plan};
use super::strings::StringTarget;
use super::targets::{ColumnTarget, DeviceReader, OPERATOR};
use super::unpack::{Unpacker, unpacker};
use super::workers::{BatchMemory, DecodeQueue, SomeHeaders};
use crate::column::{Column, Repr};
use crate::error::Result;
use crate::io::same_column::own_column;
use crate::io::spool;
use warpframe_device::cores::cores;
use warpframe_device::interrupt;
use warpframe_device::ops::parquet::PageOutput;
use warpframe_device::ops::{decompress, parquet};
use warpframe_device::{Buffer, Device};

#[cfg(test)]
mod tests;

/// Most compressed bytes of a batch: enough to fill the device.
const BATCH: u64 = 128 << 20;
/// Small reads are cut into this many batches, so that some are decoded while others are copied.
const BATCHES: u64 = 8;
/// Batches are not made smaller than this to get that many.
const LEAST_BATCH: u64 = 16 << 20;
/// A batch has at most one part in so many of the device's memory.
const SHARE: u64 = 128;
/// Most batches that are in device memory, or on their way there, at once.
const OPEN: usize = 6;
/// Most threads that read files, where the host unpacks nothing. More are no faster: they take
/// cores from the thread that submits the decoding.
const WORKERS: usize = 8;
/// Bytes for which another thread is started.
const PER_WORKER: u64 = 1 << 20;

/// A file, and what is known of it.
#[derive(Debug, Clone)]
pub(in super::super) struct DescribedFile {
    pub(in super::super) path: std::path::PathBuf,
    pub(super) footer: Arc<Footer>,
    /// The file's own types, without the notes of Arrow's writers.
    pub(super) own: Arc<Schema>,
    /// And with them.
    pub(super) noted: Arc<Schema>,
}

impl DescribedFile {
    /// The name that the file has for a column of a table with this schema.
    pub(super) fn own_name<'a>(&'a self, table: &Schema, name: &'a String) -> &'a String {
        own_column(table, &self.own, name).map_or(name, |at| self.own.field(at).name())
    }
}

/// A column, or why the device does not read it.
pub(super) type OrReason = std::result::Result<Column, Reason>;

/// Reads columns of the table with this schema, of those row groups, counted over all files.
///
/// # Errors
/// [`crate::ErrorKind::Io`] of a file that cannot be read; of the device.
pub(super) fn read(
    device: &Device,
    described: &[DescribedFile],
    schema: &Schema,
    columns: &[usize],
    row_groups: &Range<usize>,
) -> Result<Vec<OrReason>> {
    let mut targets: Vec<ColumnTarget> =
        columns.iter().map(|at| target(schema.field(*at).data_type())).collect();
    let mut files = vec![];
    let mut chunks = vec![];
    let mut rows = 0u64;
    let mut numbers = 0..;
    for described in described {
        let metadata = &described.footer.metadata;
        let leaves: Vec<Leaf> = columns
            .iter()
            .zip(&mut targets)
            .map(|(at, target)| leaf(described, schema, *at, target))
            .collect();
        for (group, row_group) in metadata.row_groups().iter().enumerate() {
            if !numbers.next().is_some_and(|number| row_groups.contains(&number)) {
                continue;
            }
            let of_group = row_group.num_rows() as u64;
            for (column, leaf) in leaves.iter().enumerate() {
                let file = files.len();
                match *leaf {
                    Leaf::Read(leaf, output) => {
                        chunks.push(ChunkAt {
                            file,
                            group,
                            leaf,
                            column,
                            output,
                            row: rows,
                            rows: of_group,
                        });
                    }
                    Leaf::Absent => {
                        targets[column].is_absent_in(rows as usize..(rows + of_group) as usize)
                    }
                    Leaf::Unread => {}
                }
            }
            rows += of_group;
        }
        let file = spool::open(&described.path)?;
        files.push(Opened { path: described.path.clone(), file, footer: described.footer.clone() });
    }
    chunks.retain(|chunk| targets[chunk.column].is_read() && chunk.rows > 0);
    for chunk in &chunks {
        let codec = chunk.meta(&files).compression();
        if unpacker(codec).is_none() {
            targets[chunk.column].given_up = Some(format!("codec {codec}"));
        }
    }
    chunks.retain(|chunk| targets[chunk.column].is_read());
    let reader = DeviceReader { device, files: &files, chunks: &chunks, rows: rows as usize };
    reader.allocate(&mut targets)?;
    let decoded = reader.decode_all(&mut targets)?;
    reader.finish(targets, decoded)
}

fn target(dtype: &DataType) -> ColumnTarget {
    let strings = (Repr::of(dtype) == Some(Repr::View)).then(StringTarget::default);
    let given_up = Repr::of(dtype).is_none().then(|| format!("type {dtype}"));
    ColumnTarget {
        dtype: dtype.clone(),
        data: None,
        validity: None,
        strings,
        absent: vec![],
        given_up,
    }
}

/// What a file has of a table's column.
enum Leaf {
    /// A leaf of its schema, and what becomes of the values.
    Read(usize, PageOutput),
    /// No values: all rows are null.
    Absent,
    /// What the device does not read, as its target says.
    Unread,
}

fn leaf(file: &DescribedFile, schema: &Schema, at: usize, target: &mut ColumnTarget) -> Leaf {
    let name = file.own_name(schema, schema.field(at).name());
    let leaves = file.footer.metadata.file_metadata().schema_descr();
    let leaf =
        leaves.columns().iter().position(|leaf| leaf.path().parts() == std::slice::from_ref(name));
    let reason = match (leaf, file.own.field_with_name(name)) {
        _ if file.footer.unknown.contains(name) => {
            "only notes of the file's writer tell its type".into()
        }
        (_, Err(_)) => return Leaf::Absent,
        (Some(_), Ok(own)) if *own.data_type() == DataType::Null => return Leaf::Absent,
        (None, Ok(_)) => "it is nested".into(),
        (Some(leaf), Ok(own)) => {
            let noted = file.noted.field_with_name(name).unwrap_or(own);
            let types = OwnType { bare: own.data_type(), noted: noted.data_type() };
            match output(&target.dtype, types, &leaves.column(leaf)) {
                Ok(output) => return Leaf::Read(leaf, output),
                Err(reason) => reason,
            }
        }
    };
    target.given_up = Some(reason);
    Leaf::Unread
}

/// A batch whose bytes are on their way.
struct Opening {
    number: usize,
    bytes: Arc<Buffer>,
    /// Where each of its chunks begins.
    offsets: Vec<usize>,
    /// The pages, where they were known before.
    first: Option<SomeHeaders>,
}

impl DeviceReader<'_> {
    /// Memory for the values of all rows, but of strings, and for validity.
    fn allocate(&self, targets: &mut [ColumnTarget]) -> Result<()> {
        for (column, target) in
            targets.iter_mut().enumerate().filter(|(_, target)| target.is_read())
        {
            if target.strings.is_none() {
                let width = Repr::of(&target.dtype).map_or(0, Repr::width);
                target.data = Some(Arc::new(target.alloc(self.device, self.rows * width)?));
            }
            let own = |chunk: &&ChunkAt| chunk.column == column;
            let optional =
                |chunk: &ChunkAt| chunk.meta(self.files).column_descr().max_def_level() > 0;
            if self.chunks.iter().filter(own).any(optional) || !target.absent.is_empty() {
                // Chunks of files in which the column is required have no nulls.
                let validity = self.device.alloc_filled(OPERATOR, self.rows, 1)?;
                let longest = target.absent.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
                let nulls = self.device.alloc_zeroed(OPERATOR, longest)?;
                for rows in &target.absent {
                    validity.copy_from(rows.start, &nulls, 0, rows.len())?;
                }
                target.validity = Some(Arc::new(validity));
            }
        }
        Ok(())
    }

    fn decode_all(&self, targets: &mut [ColumnTarget]) -> Result<Vec<Decoded>> {
        let bytes = self.bytes_of(0..self.chunks.len());
        self.device.count_wanted_of_files(bytes);
        let share = (self.device.properties().memory / SHARE).clamp(1 << 20, BATCH);
        let batches =
            batches(self.files, self.chunks, (bytes / BATCHES).max(LEAST_BATCH).min(share));
        let cores = cores();
        // Unpacking takes all cores.
        let unpacks = |chunk: &ChunkAt| {
            unpacker(chunk.meta(self.files).compression()) == Some(Unpacker::Host)
        };
        let most = if self.chunks.iter().any(unpacks) { cores } else { WORKERS.min(cores) };
        let workers = (bytes.div_ceil(PER_WORKER) as usize).clamp(1, most);
        let work = DecodeQueue::new(self.device, self.files, self.chunks, &batches);
        let statement = interrupt::current();
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    let _entered = statement.as_ref().map(|statement| statement.enter());
                    work.run();
                });
            }
            let decoded = self.decode_batches(&work, &batches, targets);
            work.close();
            decoded
        })
    }

    fn decode_batches(
        &self,
        work: &DecodeQueue,
        batches: &[Batch],
        targets: &mut [ColumnTarget],
    ) -> Result<Vec<Decoded>> {
        let mut decoded = vec![];
        let mut open = std::collections::VecDeque::new();
        for (number, batch) in batches.iter().enumerate() {
            let first = match batch.depends_on_pages(self.files, self.chunks) {
                true => Some(work.first_headers(number)?),
                false => None,
            };
            let of = |pages: &Option<std::result::Result<Arc<Pages>, Reason>>| {
                pages.as_ref()?.as_ref().ok().cloned()
            };
            let pages: Vec<_> = first.iter().flatten().map(of).collect();
            let layout = Layout::of(self.files, self.chunks, batch, &pages);
            let bytes = Arc::new(self.device.alloc(OPERATOR, layout.bytes)?);
            let after = Arc::new(self.device.record()?);
            let (pieces, first_chunk) = (layout.pieces, batch.chunks.start);
            work.open(
                number,
                BatchMemory { bytes: bytes.clone(), after, pieces, first: first_chunk, pages },
            );
            open.push_back(Opening { number, bytes, offsets: layout.offsets, first });
            if open.len() == OPEN {
                decoded.extend(
                    open.pop_front()
                        .map(|of| self.decode_open(work, batches, of, targets))
                        .transpose()?,
                );
            }
        }
        for of in open {
            decoded.push(self.decode_open(work, batches, of, targets)?);
        }
        for (chunk, reason) in work.take_damaged() {
            targets[self.chunks[chunk].column].given_up = Some(reason);
        }
        Ok(decoded)
    }

    /// Batches are decoded side by side: one alone does not fill the device until its longest page
    /// is done.
    fn decode_open(
        &self,
        work: &DecodeQueue,
        batches: &[Batch],
        of: Opening,
        targets: &mut [ColumnTarget],
    ) -> Result<Decoded> {
        let (fed, mut headers) = work.fed(of.number)?;
        if let Some(first) = of.first {
            headers = first
                .into_iter()
                .map(|pages| pages.unwrap_or_else(|| Err("it has no pages".into())))
                .collect();
        }
        let plan = Plan::new(self, &batches[of.number], (of.bytes, of.offsets), headers, targets)?;
        let branch = self.device.branch(of.number)?;
        fed.into_iter().try_for_each(|fed| fed.arrive(branch))?;
        self.device.count_read_of_files(self.bytes_of(batches[of.number].chunks.clone()));
        plan.submit(self.device, branch)
    }

    fn bytes_of(&self, chunks: Range<usize>) -> u64 {
        self.chunks[chunks].iter().map(|chunk| chunk.meta(self.files).byte_range().1).sum()
    }

    /// The columns, when all was submitted.
    fn finish(
        &self,
        mut targets: Vec<ColumnTarget>,
        decoded: Vec<Decoded>,
    ) -> Result<Vec<OrReason>> {
        let absent =
            |target: &ColumnTarget| target.absent.iter().map(|rows| rows.len() as u64).sum();
        let mut nulls: Vec<u64> = targets.iter().map(absent).collect();
        for batch in &decoded {
            let mut faults = vec![0; batch.pages.len() * 4];
            batch.faults.read(0, &mut faults)?;
            for ((chunk, page), fault) in batch.pages.iter().zip(faults.as_chunks().0) {
                let at = &self.chunks[*chunk];
                if let Some(what) = damage(u32::from_le_bytes(*fault)) {
                    let path = self.files[at.file].path.display();
                    let reason = || format!("{path}: row group {}, page {page}: {what}", at.group);
                    targets[at.column].given_up.get_or_insert_with(reason);
                }
            }
            let counts = batch.nulls.read_words(0, batch.columns.len())?;
            for ((column, said), count) in batch.columns.iter().zip(&batch.said).zip(counts) {
                nulls[*column] += count;
                if let Some(said) = said.filter(|said| *said != count) {
                    let reason = || format!("{count} nulls in pages that say {said}");
                    targets[*column].given_up.get_or_insert_with(reason);
                }
            }
        }
        let mut columns = vec![];
        for (target, nulls) in targets.into_iter().zip(nulls) {
            let validity = target.validity.filter(|_| nulls > 0);
            columns.push(match (target.given_up, target.strings, target.data) {
                (Some(reason), ..) => Err(reason),
                (None, Some(strings), _) => {
                    Ok(strings.finish(self.device, &target.dtype, self.rows, validity)?)
                }
                (None, None, data) => {
                    let data = data.unwrap_or(Arc::new(self.device.alloc(OPERATOR, 0)?));
                    Ok(Column::plain(target.dtype, self.rows, data, validity))
                }
            });
        }
        Column::survey(self.device, columns.iter_mut().flatten())?;
        Ok(columns)
    }
}

/// What is wrong with a page, by its fault.
fn damage(fault: u32) -> Option<&'static str> {
    let known =
        || decompress::damage(fault).or_else(|| parquet::damage(fault)).unwrap_or("it is damaged");
    (fault != u32::MAX).then(known)
}
