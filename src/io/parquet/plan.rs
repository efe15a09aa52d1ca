//! What the device does with the bytes of a batch: which blocks are decompressed to where, and
//! which pages become which rows.
//!
//! Memory of a batch is asked for at once, by what it is for:
//!
//! ```text
//!   passing   contents of pages of numbers, dictionaries of numbers, values between nulls: until
//!             they are decoded
//!   kept      contents of pages of strings and bytes, for each column: views point into them
//!   entries   views of dictionaries whose codes a column has
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::metadata::ColumnChunkMetaData;

use super::batches::{Batch, ChunkAt, SLACK};
use super::headers::{Located, Pages, Reason};
use super::outputs::physical;
use super::strings::Coded;
use super::targets::{ColumnTarget, DeviceReader, OPERATOR};
use super::unpack::{Unpacker, unpacker};
use super::workers::Headers;
use crate::error::Result;
use warpframe_device::ops::decompress::{CompressedBlock, DeviceCodec, decompress};
use warpframe_device::ops::parquet::{
    Characters, ColumnChunk, DictionaryPage, Page, PageEncoding, PageOutput, Physical, decode,
    unreadable,
};
use warpframe_device::{Buffer, Device, Event};

/// A chunk whose pages are known.
struct Planned {
    /// Index among all chunks.
    at: usize,
    /// Of its bytes in the batch's.
    offset: usize,
    pages: Arc<Pages>,
    output: PageOutput,
}

/// Memory that is measured first, then given out in the same order.
#[derive(Debug, Default)]
struct BumpAllocator {
    bytes: usize,
    base: u64,
}

impl BumpAllocator {
    fn take(&mut self, bytes: usize) -> u64 {
        self.take_close((bytes + SLACK).next_multiple_of(SLACK))
    }

    /// Without a gap behind it.
    fn take_close(&mut self, bytes: usize) -> u64 {
        let address = self.base + (SLACK + self.bytes) as u64;
        self.bytes += bytes;
        address
    }

    /// As much memory as was taken; the same is taken again, of it.
    fn allocate(&mut self, device: &Device) -> Result<Buffer> {
        let buffer = device.alloc(OPERATOR, SLACK + self.bytes)?;
        *self = BumpAllocator { bytes: 0, base: buffer.address() };
        Ok(buffer)
    }
}

#[derive(Debug, Default)]
struct Rooms {
    passing: BumpAllocator,
    /// By column.
    kept: BTreeMap<usize, BumpAllocator>,
    entries: BTreeMap<usize, BumpAllocator>,
}

impl Rooms {
    fn of_contents(&mut self, column: usize, stays: bool) -> &mut BumpAllocator {
        if stays { self.kept.entry(column).or_default() } else { &mut self.passing }
    }
}

/// Bytes that stay, and are not compressed: from where in the batch's to which address.
struct Copied {
    from: usize,
    column: usize,
    to: u64,
    bytes: usize,
}

/// A batch whose decoding was submitted.
pub(super) struct Decoded {
    /// Of each page what is wrong with it, 32 bits.
    pub(super) faults: Buffer,
    pub(super) nulls: Buffer,
    /// Of each chunk in `nulls`, its column.
    pub(super) columns: Vec<usize>,
    /// And the nulls that its pages say it has.
    pub(super) said: Vec<Option<u64>>,
    /// Of each page, its chunk among all, and its number among the chunk's pages.
    pub(super) pages: Vec<(usize, usize)>,
}

/// What is to be done with a batch.
pub(super) struct Plan {
    places: Vec<u64>,
    snappy: Vec<CompressedBlock>,
    lz4: Vec<CompressedBlock>,
    copies: Vec<Copied>,
    chunks: Vec<ColumnChunk>,
    pages: Vec<Page>,
    /// Of each chunk its column; of each page its chunk, and its number among the chunk's.
    columns: Vec<usize>,
    /// Of each chunk, the nulls that its pages say it has.
    said: Vec<Option<u64>>,
    named: Vec<(usize, usize)>,
    /// Until the work is submitted.
    bytes: Arc<Buffer>,
    passing: Buffer,
    /// When the memory was taken.
    after: Option<Event>,
    kept: BTreeMap<usize, Arc<Buffer>>,
}

impl Plan {
    /// Plans a batch whose bytes lie there, each chunk's from an offset on, and takes the memory
    /// that it needs besides.
    pub(super) fn new(
        reader: &DeviceReader,
        batch: &Batch,
        (bytes, offsets): (Arc<Buffer>, Vec<usize>),
        headers: Headers,
        targets: &mut [ColumnTarget],
    ) -> Result<Plan> {
        let mut wanted: Vec<Option<(PageOutput, Arc<Pages>)>> = vec![];
        for (at, pages) in batch.chunks.clone().zip(headers) {
            let target = &mut targets[reader.chunks[at].column];
            let made =
                pages.and_then(|pages| Ok((made(reader, &reader.chunks[at], &pages)?, pages)));
            wanted.push(match made {
                Ok(made) if target.is_read() => Some(made),
                Ok(_) => None,
                Err(reason) => {
                    target.given_up.get_or_insert(reason);
                    None
                }
            });
        }
        let planned: Vec<Planned> = (batch.chunks.clone().zip(offsets).zip(wanted))
            .filter_map(|((at, offset), of)| {
                of.map(|(output, pages)| Planned { at, offset, pages, output })
            })
            .collect();
        let mut rooms = Rooms::default();
        let mut empty = Plan::with(bytes, reader.device.alloc(OPERATOR, 0)?);
        // Measured by a plan of which nothing is kept.
        for chunk in &planned {
            empty.add(reader, chunk, &mut rooms, 0, 0);
        }
        let passing = rooms.passing.allocate(reader.device)?;
        let mut entries = BTreeMap::new();
        for (column, room) in &mut rooms.entries {
            entries.insert(*column, Arc::new(room.allocate(reader.device)?));
        }
        let mut plan = Plan::with(empty.bytes, passing);
        for (column, room) in &mut rooms.kept {
            let kept = Arc::new(room.allocate(reader.device)?);
            if let Some(strings) = &mut targets[*column].strings {
                strings.characters.push(kept.clone());
            }
            plan.kept.insert(*column, kept);
        }
        for mut chunk in planned {
            let at = &reader.chunks[chunk.at];
            let target = &mut targets[at.column];
            if let (Some(strings), PageOutput::Codes { base }) =
                (&target.strings, &mut chunk.output)
            {
                match strings.base() {
                    Some(known) => *base = known,
                    None => target.given_up = Some("dictionaries of more than 2³² entries".into()),
                }
            }
            let width = chunk.output.width() as usize;
            let data = target.data_of(reader, chunk.output)?.address();
            let validity =
                target.validity.as_ref().map_or(0, |validity| validity.address() + at.row);
            plan.add(reader, &chunk, &mut rooms, data + at.row * width as u64, validity);
            let dictionary = plan.chunks.last().and_then(|chunk| chunk.dictionary);
            if let (Some(strings), PageOutput::Codes { .. }, Some(told)) =
                (&mut target.strings, chunk.output, dictionary)
            {
                let values = entries[&at.column].clone();
                strings.coded.push(Coded {
                    offset: (told.values - values.address()) as usize,
                    values,
                    entries: told.entries,
                    row: at.row,
                    rows: at.rows,
                });
            }
        }
        // Behind all memory that was taken.
        plan.after = Some(reader.device.record()?);
        Ok(plan)
    }

    fn with(bytes: Arc<Buffer>, passing: Buffer) -> Plan {
        Plan {
            places: vec![],
            snappy: vec![],
            lz4: vec![],
            copies: vec![],
            chunks: vec![],
            pages: vec![],
            columns: vec![],
            said: vec![],
            named: vec![],
            bytes,
            passing,
            after: None,
            kept: BTreeMap::new(),
        }
    }

    /// Adds a chunk whose first row's value and validity have these addresses.
    fn add(
        &mut self,
        reader: &DeviceReader,
        planned: &Planned,
        rooms: &mut Rooms,
        data: u64,
        validity: u64,
    ) {
        let Planned { at, offset, pages, output } = planned;
        let chunk = &reader.chunks[*at];
        let meta = chunk.meta(reader.files);
        let stays = matches!(output, PageOutput::Codes { .. } | PageOutput::Views { .. });
        let first = self.places.len() as u32;
        let begins = begins(meta, *offset, pages);
        let by_host = unpacker(meta.compression()) == Some(Unpacker::Host);
        for (number, (page, begin)) in pages.all().zip(&begins).enumerate() {
            let levels = page.levels.unwrap_or(0);
            let from = begin + levels as usize;
            let is_packed = page.is_compressed && !by_host;
            let source = self.bytes.address() + from as u64;
            let place = match is_packed || stays {
                true => rooms.of_contents(chunk.column, stays).take(content(page) as usize),
                false => source,
            };
            let block = CompressedBlock {
                page: self.places.len() as u32,
                source,
                source_len: page.compressed - levels,
                target: place,
                target_len: content(page),
                in_place: !stays,
            };
            match meta.compression() {
                _ if !is_packed => {
                    if stays {
                        let bytes = content(page) as usize;
                        self.copies.push(Copied { from, column: chunk.column, to: place, bytes });
                    }
                }
                Compression::SNAPPY => self.snappy.push(block),
                _ => self.lz4.push(block),
            }
            self.places.push(place);
            self.named.push((*at, number));
        }
        let optional = meta.column_descr().max_def_level() > 0;
        let rows = chunk.rows as usize;
        let scratch = if optional { rooms.passing.take(rows * output.width() as usize) } else { 0 };
        let dictionary = pages.dictionary.as_ref().map(|page| {
            let bytes = page.values as usize * output.dictionary_width() as usize;
            let values = match output {
                // The dictionaries of a column are put together.
                PageOutput::Codes { .. } => {
                    rooms.entries.entry(chunk.column).or_default().take_close(bytes)
                }
                _ => rooms.passing.take(bytes),
            };
            DictionaryPage { number: first, size: content(page), entries: page.values, values }
        });
        let characters = of_deltas(chunk.rows, meta, pages).map(|bytes| {
            let address = rooms.of_contents(chunk.column, stays).take(bytes as usize);
            Characters { address, bytes }
        });
        let index = self.chunks.len() as u32;
        self.chunks.push(ColumnChunk {
            physical: physical(meta.column_descr()),
            optional,
            output: *output,
            data,
            validity: if optional { validity } else { 0 },
            scratch,
            dictionary,
            characters,
        });
        self.columns.push(chunk.column);
        self.said.push(pages.nulls.filter(|_| optional));
        let before = u32::from(pages.dictionary.is_some());
        let mut row = 0;
        for ((page, begin), number) in
            pages.data.iter().zip(&begins[before as usize..]).zip(first + before..)
        {
            let levels = page.levels.filter(|_| optional);
            let levels = levels.map(|levels| (self.bytes.address() + *begin as u64, levels));
            let (size, rows, encoding) = (content(page), page.values, page.encoding);
            self.pages.push(Page { number, size, levels, rows, row, encoding, chunk: index });
            row += u64::from(rows);
        }
    }

    /// Submits the work to a branch that waits for the batch's bytes; the device waits for the
    /// branch before the memory goes.
    pub(super) fn submit(self, device: &Device, branch: &Device) -> Result<Decoded> {
        self.after.iter().try_for_each(|after| branch.wait_for(after))?;
        let submitted = self.submit_to(branch);
        device.wait_for(&branch.record()?)?;
        drop((self.bytes, self.passing, self.kept));
        let (faults, nulls) = submitted?;
        Ok(Decoded { faults, nulls, columns: self.columns, said: self.said, pages: self.named })
    }

    fn submit_to(&self, device: &Device) -> Result<(Buffer, Buffer)> {
        for Copied { from, column, to, bytes } in &self.copies {
            let kept = &self.kept[column];
            device.copy(kept, (to - kept.address()) as usize, &self.bytes, *from, *bytes)?;
        }
        let places: Vec<u8> = self.places.iter().flat_map(|place| place.to_le_bytes()).collect();
        let places = device.upload(OPERATOR, &places)?;
        let faults = device.alloc_filled(OPERATOR, self.named.len() * 4, 0xFF)?;
        let nulls = device.alloc_zeroed(OPERATOR, self.chunks.len() * 8)?;
        for (codec, blocks) in
            [(DeviceCodec::Snappy, &self.snappy), (DeviceCodec::Lz4Raw, &self.lz4)]
        {
            if !blocks.is_empty() {
                decompress(device, codec, blocks, &places, &faults)?;
            }
        }
        decode(device, &self.chunks, &self.pages, &places, &nulls, &faults)?;
        Ok((faults, nulls))
    }
}

/// Where each page of a chunk begins in the batch's bytes.
fn begins(meta: &ColumnChunkMetaData, offset: usize, pages: &Pages) -> Vec<usize> {
    if unpacker(meta.compression()) == Some(Unpacker::Host) {
        let mut end = offset;
        return pages.all().map(|page| (end, end += page.unpacked()).0).collect();
    }
    let begin = meta.byte_range().0;
    pages.all().map(|page| offset + (page.begin - begin) as usize).collect()
}

/// Bytes of a page's values, and of the levels that lie with them, when they are not compressed.
fn content(page: &Located) -> u32 {
    page.uncompressed - page.levels.unwrap_or(0)
}

/// Most bytes that the strings of a chunk in DELTA_BYTE_ARRAY may be said to have.
const MOST_IN_DELTAS: u64 = 1 << 30;

fn is_in_deltas(pages: &Pages) -> bool {
    pages.data.iter().any(|page| page.encoding == PageEncoding::DeltaByteArray)
}

/// Bytes that the values of a chunk in DELTA_BYTE_ARRAY have, where they are known.
fn of_deltas(rows: u64, meta: &ColumnChunkMetaData, pages: &Pages) -> Option<u64> {
    if !is_in_deltas(pages) {
        return None;
    }
    let bytes = match physical(meta.column_descr()) {
        Physical::FixedLenByteArray(length) => rows.checked_mul(length.into()),
        _ => meta.unencoded_byte_array_data_bytes().and_then(|bytes| u64::try_from(bytes).ok()),
    };
    bytes.filter(|bytes| *bytes <= MOST_IN_DELTAS)
}

/// What becomes of a chunk's values.
///
/// # Errors
/// Why the device does not read them.
fn made(
    reader: &DeviceReader,
    chunk: &ChunkAt,
    pages: &Pages,
) -> std::result::Result<PageOutput, Reason> {
    let leaf = chunk.meta(reader.files).column_descr();
    let output = match chunk.output {
        // The base is known when the chunk is added.
        PageOutput::Views { utf8: true } if pages.are_codes() => PageOutput::Codes { base: 0 },
        output => output,
    };
    let encodings = pages
        .data
        .iter()
        .map(|page| page.encoding)
        .chain(pages.dictionary.map(|_| PageEncoding::Dictionary));
    match encodings.into_iter().find_map(|encoding| unreadable(physical(leaf), encoding, output)) {
        Some(reason) => Err(reason),
        None if is_in_deltas(pages)
            && of_deltas(chunk.rows, chunk.meta(reader.files), pages).is_none() =>
        {
            Err("strings of unknown size in DELTA_BYTE_ARRAY".into())
        }
        None if pages.dictionary.is_none()
            && pages.data.iter().any(|page| page.encoding == PageEncoding::Dictionary) =>
        {
            Err("codes without a dictionary".into())
        }
        None => Ok(output),
    }
}
