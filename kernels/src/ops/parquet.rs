//! Pages of Parquet files to values in device memory. Kernels in `kernels/parquet_*.cuh`.
//!
//! Columns are flat: a page has a value a row, or none where the row is null. The caller has read
//! the headers of the pages and has their content, decompressed, in device memory. Nothing here
//! waits for the device: what is wrong with a page is found there, and noted in the page's word,
//! which the caller reads at the end ([`damage`] says what it means).

mod call;
#[cfg(test)]
mod tests;

use crate::error::{Error, Result};
use crate::{Buffer, Device, KernelSource};
use call::Call;

/// Levels, codes and booleans, and the rows of nulls.
fn hybrid_source() -> KernelSource {
    let text = "#include \"parquet_hybrid.cuh\"\n#include \"parquet_null.cuh\"\n\
                WF_PARQUET_HYBRID_ENTRIES\nWF_PARQUET_NULL_ENTRIES\n";
    KernelSource::new("parquet_hybrid", text)
}

fn fixed_source() -> KernelSource {
    KernelSource::new("parquet_fixed", "#include \"parquet_fixed.cuh\"\nWF_PARQUET_FIXED_ENTRIES\n")
}

fn string_source() -> KernelSource {
    KernelSource::new(
        "parquet_string",
        "#include \"parquet_string.cuh\"\nWF_PARQUET_STRING_ENTRIES\n",
    )
}

fn delta_source() -> KernelSource {
    KernelSource::new("parquet_delta", "#include \"parquet_delta.cuh\"\nWF_PARQUET_DELTA_ENTRIES\n")
}

pub(super) fn sources() -> [KernelSource; 4] {
    [hybrid_source(), fixed_source(), string_source(), delta_source()]
}

/// A page of data.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Index into the places of contents and into the faults.
    pub number: u32,
    /// Bytes of its content; of pages of version 2, whose levels lie elsewhere, those of the
    /// values.
    pub size: u32,
    /// Address and bytes of the definition levels of a page of version 2. `None` of version 1,
    /// whose content begins with them where the column is optional.
    pub levels: Option<(u64, u32)>,
    /// Rows, nulls counted.
    pub rows: u32,
    /// Its first row in the chunk's output.
    pub row: u64,
    /// How the values are written.
    pub encoding: PageEncoding,
    /// Index of its chunk.
    pub chunk: u32,
}

/// A column chunk: what its pages have in common.
#[derive(Debug, Clone, Copy)]
pub struct ColumnChunk {
    /// The type in the file.
    pub physical: Physical,
    /// Whether rows may be null: pages have definition levels, of at most 1.
    pub optional: bool,
    /// What becomes of a value.
    pub output: PageOutput,
    /// Address of row 0's value, aligned to the output's width.
    pub data: u64,
    /// Address of row 0's byte of validity. Where the chunk is optional and this is 0, no validity
    /// is written: the caller expects no nulls, and asks the counts whether there are any.
    pub validity: u64,
    /// Where the chunk is optional: room for rows × width, as `data` has. Nulls want it.
    pub scratch: u64,
    /// What codes stand for.
    pub dictionary: Option<DictionaryPage>,
    /// Room for the characters of [`PageEncoding::DeltaByteArray`], whose strings do not lie in
    /// their pages. Views point into it, so it has to stay with them.
    pub characters: Option<Characters>,
}

/// The dictionary of a column chunk: its values in [`PageEncoding::Plain`].
#[derive(Debug, Clone, Copy)]
pub struct DictionaryPage {
    /// As a data page's.
    pub number: u32,
    /// Bytes of its content.
    pub size: u32,
    /// Values.
    pub entries: u32,
    /// Address of room for entries × width of the decoded values, aligned to 16: views where the
    /// output is views or codes.
    pub values: u64,
}

/// Room for characters.
#[derive(Debug, Clone, Copy)]
pub struct Characters {
    /// Address of the first byte.
    pub address: u64,
    /// Bytes, and 64 more may be read. They are those of all strings, of which a chunk's metadata
    /// has the sum (`unencoded_byte_array_data_bytes`; of fixed length it is known); a chunk whose
    /// strings have more is damaged.
    pub bytes: u64,
}

/// Types of values in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Physical {
    Boolean,
    Int32,
    Int64,
    Int96,
    Float,
    Double,
    ByteArray,
    /// So many bytes each.
    FixedLenByteArray(u32),
}

/// How the values of a page are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageEncoding {
    /// One after the other.
    Plain,
    /// Codes in the hybrid of runs and packed bits (`PLAIN_DICTIONARY` and `RLE_DICTIONARY`).
    Dictionary,
    /// Booleans in the same hybrid.
    Rle,
    DeltaBinaryPacked,
    DeltaLengthByteArray,
    DeltaByteArray,
    ByteStreamSplit,
}

/// What becomes of a value. The representation is that of columns in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageOutput {
    /// A byte, 0 or 1.
    Bool,
    /// So many bytes (1, 2, 4, 8 or 16) of the file's integer: the lowest ones, or more by
    /// repeating the sign.
    Integer {
        width: u32,
    },
    /// An integer of fewer bits than are written, in more bytes: the bits above its own do not
    /// count. It is multiplied by the factor; a product that does not fit is damage.
    Widened {
        width: u32,
        bits: u32,
        signed: bool,
        factor: u64,
    },
    /// An unscaled value of 8 or 16 bytes. One of a greater magnitude than the bound is damage, and
    /// so is one that does not fit. It is multiplied by the factor; what the bound leaves of a
    /// product fits 128 bits.
    Decimal {
        width: u32,
        bound: Option<u128>,
        factor: u128,
    },
    /// 8 bytes since 1970 of a timestamp of 12 bytes, in ticks of `unit`, and these multiplied by
    /// the factor; one that does not fit is damage.
    Int96 {
        unit: Int96Unit,
        factor: u64,
    },
    Float32,
    Float64,
    /// 8 bytes of a float of 4.
    Double,
    /// A float of 8 bytes, of an integer of so many bits: the nearest one.
    Number {
        bits: u32,
        signed: bool,
    },
    /// Views of 16 bytes into the content of the page, which has to stay; see `kernels/string.cuh`.
    /// Whether the bytes have to be UTF-8.
    Views {
        utf8: bool,
    },
    /// Codes of 4 bytes, each less than the number of entries, and what is added to each: the
    /// dictionaries of several chunks may lie one behind the other. Values are views of UTF-8.
    Codes {
        base: u32,
    },
}

/// Ticks of timestamps of 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Int96Unit {
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl PageOutput {
    /// Bytes of a row in the chunk's data.
    pub fn width(self) -> u32 {
        match self {
            PageOutput::Bool => 1,
            PageOutput::Codes { .. } | PageOutput::Float32 => 4,
            PageOutput::Int96 { .. }
            | PageOutput::Float64
            | PageOutput::Double
            | PageOutput::Number { .. } => 8,
            PageOutput::Views { .. } => 16,
            PageOutput::Integer { width }
            | PageOutput::Widened { width, .. }
            | PageOutput::Decimal { width, .. } => width,
        }
    }

    /// By what values are multiplied.
    fn factor(self) -> u128 {
        match self {
            PageOutput::Widened { factor, .. } | PageOutput::Int96 { factor, .. } => factor.into(),
            PageOutput::Decimal { factor, .. } => factor,
            _ => 1,
        }
    }

    /// Bytes of a value of the chunk's dictionary.
    pub fn dictionary_width(self) -> u32 {
        match self {
            PageOutput::Codes { .. } => 16,
            other => other.width(),
        }
    }
}

/// Why pages of this kind are not read here; `None` where they are. A chunk that has a dictionary
/// is asked for [`PageEncoding::Dictionary`] and for whatever its data pages say.
pub fn unreadable(
    physical: Physical,
    encoding: PageEncoding,
    output: PageOutput,
) -> Option<String> {
    use {PageEncoding as E, PageOutput as O, Physical as P};
    let made = match (physical, output) {
        (P::Boolean, O::Bool) | (P::Float, O::Float32 | O::Double) | (P::Double, O::Float64) => {
            true
        }
        (P::Int32 | P::Int64, O::Widened { factor, width, .. })
            if factor != 1 && !matches!(width, 4 | 8) =>
        {
            false
        }
        (P::Int32, O::Widened { width, bits, .. }) => {
            matches!(width, 1 | 2 | 4 | 8 | 16) && (1..=32).contains(&bits)
        }
        (P::Int64, O::Widened { width: 8, bits: 64, .. }) => true,
        (P::Int32, O::Number { bits, .. }) => (1..=32).contains(&bits),
        (P::Int64, O::Number { bits: 64, .. }) => true,
        (P::Int32 | P::Int64, O::Integer { width }) => matches!(width, 1 | 2 | 4 | 8 | 16),
        (P::Int32 | P::Int64 | P::ByteArray, O::Decimal { width: 8 | 16, .. }) => true,
        (P::FixedLenByteArray(length), O::Decimal { width: 8 | 16, .. }) => length > 0,
        (P::FixedLenByteArray(length), O::Views { .. }) => length > 0,
        (P::Int96, O::Int96 { .. }) | (P::ByteArray, O::Views { .. } | O::Codes { .. }) => true,
        _ => false,
    };
    if !made {
        return Some(format!("values of {physical:?} as {output:?}"));
    }
    let read = match encoding {
        E::Dictionary => physical != P::Boolean,
        // Codes are of dictionaries.
        _ if matches!(output, O::Codes { .. }) => false,
        E::Plain => true,
        E::Rle => physical == P::Boolean,
        E::DeltaBinaryPacked => matches!(physical, P::Int32 | P::Int64),
        E::DeltaLengthByteArray => physical == P::ByteArray,
        E::DeltaByteArray => matches!(physical, P::ByteArray | P::FixedLenByteArray(_)),
        E::ByteStreamSplit => {
            !matches!(physical, P::Boolean | P::ByteArray | P::Int96)
                && !matches!(output, O::Views { .. })
        }
    };
    (!read).then(|| format!("encoding {encoding:?} of {physical:?}"))
}

/// Submits the decoding of pages.
///
/// `places` has the address of each page's content, `u64`, by its number. Contents may be read up
/// to 64 bytes beyond their ends, and back to a multiple of 16. `nulls` has a word a chunk, to
/// which its nulls are added. `faults` has a word of 32 bits a page, by its number: all ones, or
/// the least code of what is wrong with it. The output of a page at fault is garbage, and so are
/// addresses in it; that of a damaged dictionary makes garbage of all pages of its chunk.
///
/// # Errors
/// What [`unreadable`] says cannot be read; no device memory.
pub fn decode(
    device: &Device,
    chunks: &[ColumnChunk],
    pages: &[Page],
    places: &Buffer,
    nulls: &Buffer,
    faults: &Buffer,
) -> Result<()> {
    for page in pages {
        let chunk = &chunks[page.chunk as usize];
        if let Some(what) = unreadable(chunk.physical, page.encoding, chunk.output) {
            return Err(Error::unsupported(what, "the device does not read it"));
        }
        if page.encoding == PageEncoding::DeltaByteArray && chunk.characters.is_none() {
            let what = "DELTA_BYTE_ARRAY in a column chunk that does not say how many bytes its strings have";
            return Err(Error::unsupported(what, "memory for them is taken before they are read"));
        }
    }
    let dictionaries =
        chunks.iter().flat_map(|chunk| chunk.dictionary).map(|dictionary| dictionary.number);
    let numbers = pages
        .iter()
        .map(|page| page.number)
        .chain(dictionaries)
        .max()
        .map_or(0, |most| most as usize + 1);
    assert!(places.len() >= numbers * 8 && faults.len() >= numbers * 4, "words for all pages");
    assert!(nulls.len() >= chunks.len() * 8, "a word a chunk");
    Call::of(chunks, pages).submit(device, places, nulls, faults)
}

/// What a page's fault says of it.
pub fn damage(code: u32) -> Option<&'static str> {
    DAMAGES.iter().find(|(known, _, _)| *known == code).map(|(_, _, text)| *text)
}

/// Codes, their names in the kernels, and what they say.
const DAMAGES: [(u32, &str, &str); 11] = [
    (32, "BAD_LEVELS", "its definition levels are damaged"),
    (33, "BAD_RUNS", "its runs of codes are damaged"),
    (34, "BAD_CODE", "a code is beyond its dictionary"),
    (35, "TOO_SHORT", "it has fewer bytes than its values need"),
    (36, "BAD_LENGTH", "the lengths of its strings are damaged"),
    (37, "NOT_UTF8", "a string is not UTF-8"),
    (38, "BAD_DECIMAL", "a decimal has more digits than its type"),
    (39, "BAD_INT96", "a timestamp does not fit 64 bits"),
    (40, "BAD_DELTA", "its deltas are damaged"),
    (41, "NO_ROOM", "it has more characters than its chunk's statistics say"),
    (42, "TOO_FAR", "a value is beyond the unit that the table has"),
];
