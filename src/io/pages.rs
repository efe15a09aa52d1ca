//! Sizes in Parquet's pages, looked at before the parquet crate allocates by them.
//!
//! The crate (59) asks for memory for as many values as a dictionary's header and the lengths of
//! the DELTA encodings of strings announce. A process that asks for more than there is ends at
//! once: no error, no panic that could be caught. So a size must be one that the page can hold, or
//! as many values as the page has. Whatever else is wrong is left to the crate, which says so.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::parquet::basic::{Compression, Type as Physical};
use datafusion::parquet::column::page::PageReader;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::ColumnChunkMetaData;
use datafusion::parquet::file::serialized_reader::SerializedPageReader;

use super::thrift::{Broken, Compact, FALSE, I32, STRUCT, TRUE};

/// What a page's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: i64,
    pub(super) uncompressed: i64,
    pub(super) compressed: i64,
    pub(super) values: i64,
    pub(super) encoding: i64,
    /// Bytes of definition and repetition levels, of pages of version 2.
    pub(super) definition: i64,
    pub(super) repetition: i64,
    /// Whether the values are compressed, of pages of version 2.
    pub(super) is_compressed: bool,
    /// How levels are written, of pages of version 1.
    pub(super) level_encodings: [i64; 2],
    /// Of pages of version 2.
    pub(super) nulls: i64,
    /// Whether a count that nobody needs is negative.
    pub(super) is_negative: bool,
    /// Bytes of the header before its encoding.
    before_encoding: usize,
    /// Which fields there are of the headers of each kind, a bit each.
    fields: [u8; 3],
}

pub(super) const DATA_PAGE: i64 = 0;
pub(super) const INDEX_PAGE: i64 = 1;
pub(super) const DICTIONARY_PAGE: i64 = 2;
pub(super) const DATA_PAGE_V2: i64 = 3;
/// The hybrid of runs and packed bits.
pub(super) const RLE: i64 = 3;
/// Levels of the format's first days.
pub(super) const BIT_PACKED: i64 = 4;
const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE_DICTIONARY: i64 = 8;
const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
const DELTA_BYTE_ARRAY: i64 = 7;

impl Header {
    pub(super) fn read(compact: &mut Compact) -> Result<Header, Broken> {
        let mut header = Header {
            kind: -1,
            uncompressed: -1,
            compressed: -1,
            values: 0,
            encoding: 0,
            definition: 0,
            repetition: 0,
            is_compressed: true,
            level_encodings: [RLE; 2],
            nulls: 0,
            is_negative: false,
            before_encoding: 0,
            fields: [0; 3],
        };
        let length = compact.left();
        compact.fields(|compact, id, kind| {
            let place = match (id, kind) {
                (1, I32) => &mut header.kind,
                (2, I32) => &mut header.uncompressed,
                (3, I32) => &mut header.compressed,
                (5 | 7 | 8, STRUCT) => return header.read_of_kind(id, length, compact),
                _ => return compact.skip(kind),
            };
            *place = integer(compact)?;
            Ok(())
        })?;
        Ok(header)
    }

    /// Fields of the header of a data page (5), of a dictionary (7), of a data page of version 2
    /// (8).
    fn read_of_kind(
        &mut self,
        page: i64,
        length: usize,
        compact: &mut Compact,
    ) -> Result<(), Broken> {
        compact.fields(|compact, id, kind| {
            if let (I32, 1..=7) = (kind, id) {
                self.fields[kind_of(page)] |= 1 << id;
            }
            if let (5, 2) | (8, 4) = (page, id) {
                self.before_encoding = length - compact.left();
            }
            self.read_field(page, id, kind, compact)
        })
    }

    fn read_field(
        &mut self,
        page: i64,
        id: i64,
        kind: u8,
        compact: &mut Compact,
    ) -> Result<(), Broken> {
        match (page, id, kind) {
            (_, 1, I32) => integer(compact).map(|values| self.values = values),
            (5 | 7, 2, I32) | (8, 4, I32) => {
                integer(compact).map(|encoding| self.encoding = encoding)
            }
            (5, 3 | 4, I32) => {
                integer(compact).map(|of| self.level_encodings[(id - 3) as usize] = of)
            }
            (8, 2, I32) => integer(compact).map(|nulls| self.nulls = nulls),
            (8, 3, I32) => integer(compact).map(|count| self.is_negative |= count < 0),
            (8, 5, I32) => integer(compact).map(|bytes| self.definition = bytes),
            (8, 6, I32) => integer(compact).map(|bytes| self.repetition = bytes),
            (8, 7, TRUE | FALSE) => {
                self.is_compressed = kind == TRUE;
                Ok(())
            }
            _ => compact.skip(kind),
        }
    }

    /// Whether there is all that its kind of page is said to have.
    pub(super) fn is_whole(&self) -> bool {
        let (page, needed) = match self.kind {
            DATA_PAGE => (5, 1..=4),
            DICTIONARY_PAGE => (7, 1..=2),
            DATA_PAGE_V2 => (8, 1..=6),
            _ => return true,
        };
        needed.into_iter().all(|id| self.fields[kind_of(page)] & 1 << id != 0)
    }
}

/// An integer of 32 bits, which is what the crate keeps of a longer one.
fn integer(compact: &mut Compact) -> Result<i64, Broken> {
    Ok((compact.integer()? as i32).into())
}

/// Of the field for the header of a kind of pages, the kind's index among them.
fn kind_of(page: i64) -> usize {
    match page {
        5 => 0,
        7 => 1,
        _ => 2,
    }
}

/// Looks at the pages that some bytes of a column chunk are: the first of them begins a page.
pub(super) fn check(bytes: &Bytes, column: &ColumnChunkMetaData) -> Result<(), ParquetError> {
    let mut begin = 0;
    while begin < bytes.len() {
        let mut compact = Compact::new(&bytes[begin..]);
        let Ok(header) = Header::read(&mut compact) else { return Ok(()) };
        let body = bytes.len() - compact.left();
        let end =
            usize::try_from(header.compressed).ok().and_then(|length| body.checked_add(length));
        let Some(end) = end.filter(|end| *end <= bytes.len()) else { return Ok(()) };
        check_page(&header, bytes.slice(begin..end), column)?;
        begin = end;
    }
    Ok(())
}

fn check_page(
    header: &Header,
    page: Bytes,
    column: &ColumnChunkMetaData,
) -> Result<(), ParquetError> {
    let implausible = |what: String| {
        Err(ParquetError::General(format!(
            "a page of column {} is damaged: {what}",
            column.column_path()
        )))
    };
    let levels = if header.kind == DATA_PAGE_V2 {
        header.definition.saturating_add(header.repetition)
    } else {
        0
    };
    let sizes =
        (u32::try_from(page.len() as i64 - levels), u64::try_from(header.uncompressed - levels));
    // What is not compressed is taken as it is.
    if let (Ok(packed), Ok(unpacked)) = sizes
        && header.is_compressed
        && column.compression() != Compression::UNCOMPRESSED
        && unpacked > most_unpacked(column.compression(), true, packed)
    {
        return implausible(format!("{unpacked} bytes in {packed}"));
    }
    if header.kind == DICTIONARY_PAGE {
        let most = header.uncompressed / least_width(column).max(1);
        if header.values > most {
            return implausible(format!(
                "a dictionary of {} values in {} bytes",
                header.values, header.uncompressed
            ));
        }
    } else if matches!(header.encoding, DELTA_LENGTH_BYTE_ARRAY | DELTA_BYTE_ARRAY) {
        let Some(lengths) = lengths(header, page, column) else { return Ok(()) };
        if lengths > header.values {
            return implausible(format!("{lengths} lengths of {} values", header.values));
        }
    }
    Ok(())
}

/// Most bytes that so many compressed ones can become: no memory is asked for on a header's word
/// alone.
pub(super) fn most_unpacked(codec: Compression, is_compressed: bool, packed: u32) -> u64 {
    let packed = u64::from(packed);
    match codec {
        _ if !is_compressed => packed,
        // A copy of 64 bytes takes 3.
        Compression::SNAPPY => 32 * packed + 64,
        // A byte more of a length stands for 255.
        Compression::LZ4_RAW => 256 * packed + 64,
        // A match of 258 bytes takes 2 bits.
        Compression::GZIP(_) => 1032 * packed + 64,
        // Blocks of one byte repeated have no bound but that of headers.
        _ => u64::MAX,
    }
}

/// Fewest bytes of a value in a dictionary.
fn least_width(column: &ColumnChunkMetaData) -> i64 {
    match column.column_type() {
        Physical::BOOLEAN => 1,
        Physical::INT32 | Physical::FLOAT | Physical::BYTE_ARRAY => 4,
        Physical::INT64 | Physical::DOUBLE => 8,
        Physical::INT96 => 12,
        Physical::FIXED_LEN_BYTE_ARRAY => column.column_descr().type_length().into(),
    }
}

/// The pages as the crate (59) reads them: those of codes without values are said to be PLAIN. Some
/// writers put nothing behind the levels of a page of nulls, where the crate expects the width of
/// codes.
pub(super) fn readable(bytes: Bytes, column: &ColumnChunkMetaData) -> Bytes {
    /// Bytes of levels that all say the same, and more: longer pages have values.
    const MOST: i64 = 64;
    let mut begin = 0;
    let mut places = vec![];
    while begin < bytes.len() {
        let mut compact = Compact::new(&bytes[begin..]);
        let Ok(header) = Header::read(&mut compact) else { break };
        let body = bytes.len() - compact.left();
        let length = usize::try_from(header.compressed).ok();
        let end = length.and_then(|length| body.checked_add(length));
        let Some(end) = end.filter(|end| *end <= bytes.len()) else { break };
        let at = begin + header.before_encoding;
        let is_short = header.before_encoding > 0 && header.uncompressed <= MOST;
        if is_short
            && matches!(header.kind, DATA_PAGE | DATA_PAGE_V2)
            && matches!(header.encoding, PLAIN_DICTIONARY | RLE_DICTIONARY)
            // In one byte, as all known encodings are.
            && i64::from(bytes[at]) == 2 * header.encoding
            && values(&header, bytes.slice(begin..end), column).is_some_and(|of| of.is_empty())
        {
            places.push(at);
        }
        begin = end;
    }
    if places.is_empty() {
        return bytes;
    }
    let mut plain = bytes.to_vec();
    places.into_iter().for_each(|at| plain[at] = 2 * PLAIN as u8);
    plain.into()
}

/// The greatest number of lengths that a page announces, if it can be read so far.
fn lengths(header: &Header, page: Bytes, column: &ColumnChunkMetaData) -> Option<i64> {
    let page = values(header, page, column)?;
    let mut values = page.as_ref();
    let first = Deltas::read(&mut values)?;
    if header.encoding == DELTA_LENGTH_BYTE_ARRAY || first.count > header.values {
        return Some(first.count);
    }
    first.pass(&mut values)?;
    Some(first.count.max(Deltas::read(&mut values)?.count))
}

/// What lies behind the levels of a page, unpacked, if it can be read so far.
fn values(header: &Header, page: Bytes, column: &ColumnChunkMetaData) -> Option<Bytes> {
    let alone =
        column.clone().into_builder().set_dictionary_page_offset(None).set_data_page_offset(0);
    let alone = alone.set_total_compressed_size(page.len() as i64).build().ok()?;
    let mut reader = SerializedPageReader::new(Arc::new(page), &alone, 0, None).ok()?;
    let page = reader.get_next_page().ok()??;
    let bytes = page.buffer().as_ref();
    let values = match header.kind {
        DATA_PAGE_V2 => {
            bytes.get(usize::try_from(header.definition.checked_add(header.repetition)?).ok()?..)?
        }
        _ => {
            let (descriptor, mut rest) = (column.column_descr(), bytes);
            for _ in [descriptor.max_rep_level(), descriptor.max_def_level()]
                .iter()
                .filter(|level| **level > 0)
            {
                let (length, behind) = rest.split_first_chunk::<4>()?;
                rest = behind.get(u32::from_le_bytes(*length) as usize..)?;
            }
            rest
        }
    };
    Some(page.buffer().slice_ref(values))
}

/// The head of integers in DELTA_BINARY_PACKED.
struct Deltas {
    block: u64,
    miniblocks: u64,
    count: i64,
}

impl Deltas {
    fn read(bytes: &mut &[u8]) -> Option<Deltas> {
        let (block, miniblocks, count) = (leb128(bytes)?, leb128(bytes)?, leb128(bytes)?);
        leb128(bytes)?;
        // What does not fit is surely too many.
        Some(Deltas { block, miniblocks, count: i64::try_from(count).unwrap_or(i64::MAX) })
    }

    /// Passes over the blocks.
    fn pass(&self, bytes: &mut &[u8]) -> Option<()> {
        let each = self.block.checked_div(self.miniblocks).filter(|each| *each > 0)?;
        let mut left = u64::try_from(self.count).ok()?.saturating_sub(1);
        while left > 0 {
            leb128(bytes)?;
            let widths;
            (widths, *bytes) = bytes.split_at_checked(usize::try_from(self.miniblocks).ok()?)?;
            for width in widths {
                if left == 0 {
                    break;
                }
                let bits = u64::from(*width).checked_mul(each)?;
                *bytes = bytes.get(usize::try_from(bits.div_ceil(8)).ok()?..)?;
                left = left.saturating_sub(each);
            }
        }
        Some(())
    }
}

fn leb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << place;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}
