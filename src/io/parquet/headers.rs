//! The pages of a column chunk, found by their headers.
//!
//! ```text
//!   chunk   header │ dictionary │ header │ page │ header │ page │ …
//! ```
//!
//! They are found in the chunk's bytes while these pass through host memory. Where a chunk is too
//! long for that, and where pages have to be known before, each is read for itself. Every size is
//! checked, for memory is asked for by them.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;

use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::metadata::ColumnChunkMetaData;

use super::super::pages::{
    BIT_PACKED, DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, Header, INDEX_PAGE, RLE, most_unpacked,
};
use super::super::thrift::Compact;
use warpframe_device::ops::parquet::PageEncoding;

/// Why the device does not read something.
pub(super) type Reason = String;

/// Bytes read for a header at first; one with long statistics wants more.
const WINDOW: usize = 512;
/// Most bytes of a header.
const LONGEST: usize = 1 << 20;

/// A page, and where its bytes lie in its file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Located {
    /// Of the first byte behind the header.
    pub(super) begin: u64,
    pub(super) compressed: u32,
    pub(super) uncompressed: u32,
    pub(super) values: u32,
    pub(super) encoding: PageEncoding,
    /// Of version 2: bytes of the definition levels, which are not compressed and lie before the
    /// values.
    pub(super) levels: Option<u32>,
    /// Whether the values are compressed as the chunk says.
    pub(super) is_compressed: bool,
}

/// The pages of a column chunk.
#[derive(Debug, Default)]
pub(super) struct Pages {
    pub(super) dictionary: Option<Located>,
    pub(super) data: Vec<Located>,
    /// As many as the pages say; those of version 1 do not.
    pub(super) nulls: Option<u64>,
}

impl Located {
    /// Bytes of the page when it is not compressed.
    pub(super) fn unpacked(&self) -> usize {
        self.uncompressed as usize
    }
}

impl Pages {
    /// The dictionary, then the data.
    pub(super) fn all(&self) -> impl Iterator<Item = &Located> {
        self.dictionary.iter().chain(&self.data)
    }

    /// Whether every row is a code.
    pub(super) fn are_codes(&self) -> bool {
        self.dictionary.is_some()
            && self.data.iter().all(|page| page.encoding == PageEncoding::Dictionary)
    }

    /// Reads the headers of a chunk; in its bytes, where these are given.
    ///
    /// # Errors
    /// Why its pages cannot be told apart, or are not as the file's footer says.
    pub(super) fn of(
        file: &File,
        chunk: &ColumnChunkMetaData,
        bytes: &[u8],
    ) -> Result<Pages, Reason> {
        let (begin, length) = chunk.byte_range();
        let (mut at, end) = (begin, begin + length);
        let mut pages = Pages::default();
        let (mut rows, mut nulls) = (0i64, Some(0));
        let mut window = Window { file, begin, bytes: Cow::Borrowed(bytes) };
        while rows < chunk.num_values() {
            let (header, length) = window.header(at, end)?;
            at += length as u64;
            let size =
                |bytes: i64| u32::try_from(bytes).ok().filter(|bytes| *bytes <= i32::MAX as u32);
            let (Some(compressed), Some(uncompressed), Some(values)) =
                (size(header.compressed), size(header.uncompressed), size(header.values))
            else {
                return Err("a page of a negative size".into());
            };
            // Of levels that there are none of, writers say one or the other.
            let has_levels = header.kind == DATA_PAGE && chunk.column_descr().max_def_level() > 0;
            let [definition, repetition] = header.level_encodings;
            if definition != RLE && (has_levels || definition != BIT_PACKED)
                || ![RLE, BIT_PACKED].contains(&repetition)
            {
                return Err(format!("levels in encodings {definition} and {repetition}"));
            }
            let of_nulls = if chunk.column_descr().max_def_level() > 0 { header.values } else { 0 };
            if header.is_negative || !header.is_whole() || !(0..=of_nulls).contains(&header.nulls) {
                return Err("a page's header is not what its kind has".into());
            }
            if u64::from(compressed) > end - at {
                return Err("a page that is longer than its column chunk".into());
            }
            let (repeats, levels) = match header.kind {
                DATA_PAGE | DICTIONARY_PAGE => (0, None),
                DATA_PAGE_V2 => {
                    let (repeats, levels) = (size(header.repetition), size(header.definition));
                    let (Some(repeats), Some(levels)) = (repeats, levels) else {
                        return Err("a page's levels have no size".into());
                    };
                    (repeats, Some(levels))
                }
                INDEX_PAGE => {
                    at += u64::from(compressed);
                    continue;
                }
                other => return Err(format!("a page of the unknown kind {other}")),
            };
            // Levels of a column that does not repeat say nothing: they lie before the others.
            let (begin, end_of_page) = (at + u64::from(repeats), at + u64::from(compressed));
            let without = |bytes: u32, levels: u32| bytes.checked_sub(levels);
            let (compressed, uncompressed) =
                (without(compressed, repeats), without(uncompressed, repeats));
            let of_levels = levels.unwrap_or(0);
            let (Some(compressed), Some(uncompressed)) = (compressed, uncompressed) else {
                return Err("a page that is shorter than its levels".into());
            };
            let (Some(packed), Some(unpacked)) =
                (without(compressed, of_levels), without(uncompressed, of_levels))
            else {
                return Err("a page that is shorter than its levels".into());
            };
            let is_compressed =
                header.is_compressed && chunk.compression() != Compression::UNCOMPRESSED;
            let is_plausible = match is_compressed {
                true => u64::from(unpacked) <= most_unpacked(chunk.compression(), true, packed),
                false => unpacked == packed,
            };
            if !is_plausible {
                return Err(format!("a page of {unpacked} bytes in {packed}"));
            }
            let encoding =
                encoding(header.encoding).ok_or_else(|| format!("encoding {}", header.encoding))?;
            let page = Located {
                begin,
                compressed,
                uncompressed,
                values,
                encoding,
                levels,
                is_compressed,
            };
            at = end_of_page;
            if header.kind == DICTIONARY_PAGE {
                if pages.dictionary.is_some() || !pages.data.is_empty() {
                    return Err("a dictionary that is not its chunk's first page".into());
                }
                if !matches!(encoding, PageEncoding::Plain | PageEncoding::Dictionary) {
                    return Err(format!("a dictionary in {encoding:?}"));
                }
                pages.dictionary = Some(page);
            } else {
                // Kernels do not look into it; the host's reader does, and may find damage there.
                let may_be_empty =
                    chunk.column_descr().max_def_level() == 0 && encoding == PageEncoding::Plain;
                if values == 0 && !(may_be_empty && uncompressed == 0) {
                    return Err("a page without rows".into());
                }
                rows += i64::from(values);
                nulls = nulls.filter(|_| levels.is_some()).map(|nulls| nulls + header.nulls as u64);
                pages.data.push(page);
            }
        }
        if rows != chunk.num_values() {
            return Err(format!("pages of {rows} values in a chunk of {}", chunk.num_values()));
        }
        if at < end {
            return Err(format!("{} bytes behind its last page", end - at));
        }
        Ok(Pages { nulls, ..pages })
    }
}

/// By the number that the format gives it.
fn encoding(number: i64) -> Option<PageEncoding> {
    Some(match number {
        0 => PageEncoding::Plain,
        2 | 8 => PageEncoding::Dictionary,
        3 => PageEncoding::Rle,
        5 => PageEncoding::DeltaBinaryPacked,
        6 => PageEncoding::DeltaLengthByteArray,
        7 => PageEncoding::DeltaByteArray,
        9 => PageEncoding::ByteStreamSplit,
        _ => return None,
    })
}

/// Some bytes of a file, of which headers are read.
struct Window<'a> {
    file: &'a File,
    begin: u64,
    bytes: Cow<'a, [u8]>,
}

impl Window<'_> {
    /// The header at a place in the file, and its length.
    fn header(&mut self, at: u64, end: u64) -> Result<(Header, usize), Reason> {
        if at >= end {
            return Err("fewer values in its pages than it has".into());
        }
        let mut wanted = WINDOW;
        loop {
            let held = at
                .checked_sub(self.begin)
                .and_then(|skip| self.bytes.get(usize::try_from(skip).ok()?..));
            if let Some(bytes) = held.filter(|bytes| !bytes.is_empty()) {
                let mut compact = Compact::new(bytes);
                if let Ok(header) = Header::read(&mut compact) {
                    return Ok((header, bytes.len() - compact.left()));
                }
            }
            let length = wanted.min(usize::try_from(end - at).unwrap_or(usize::MAX));
            if self.begin == at && self.bytes.len() >= length || wanted > LONGEST {
                return Err("a page's header is damaged".into());
            }
            let mut bytes = vec![0; length];
            if let Err(error) = self.file.read_exact_at(&mut bytes, at) {
                return Err(format!("its pages cannot be read: {error}"));
            }
            (self.begin, self.bytes) = (at, bytes.into());
            wanted *= 8;
        }
    }
}
