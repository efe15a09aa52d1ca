//! Device strings to Arrow arrays: views that point to host copies of their characters.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, DictionaryArray, FixedSizeBinaryArray,
    GenericByteViewArray, GenericStringBuilder, OffsetSizeTrait, PrimitiveArray, StringViewArray,
    UInt32Array,
};
use datafusion::arrow::buffer::{Buffer as ArrowBuffer, MutableBuffer, ScalarBuffer};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{
    ArrowDictionaryKeyType, BinaryViewType, ByteViewType, DataType, Int8Type, Int16Type, Int32Type,
    Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use super::export::{Validity, cut};
use super::{Column, Dictionary, INLINE};
use crate::error::{Error, ErrorKind, Result};
use warpframe_device::Buffer;
use warpframe_device::ops::characters::pack;

/// What one more download costs, as bytes that could have been downloaded instead: its latency is
/// some 10 µs, in which pageable memory receives about 64 KiB.
const DOWNLOAD_COST: u64 = 64 * 1024;

/// What it costs in the same measure to have the strings put one after the other, besides them and
/// their places: memory, a launch, an upload and a download.
const PACK_COST: u64 = 4 * DOWNLOAD_COST;

/// Most bytes of a host buffer that gathers several strings: offsets in Arrow's views have 31 bits.
const SPAN_LIMIT: u64 = 1 << 30;

impl Column {
    /// Downloads strings as arrays of `rows` rows.
    pub(super) fn export_strings(&self, rows: usize) -> Result<Vec<ArrayRef>> {
        let pieces = || cut(self.len, rows);
        match (&self.dtype, self.dictionary()) {
            (DataType::Dictionary(key, values), Some(dictionary)) => {
                let whole = self.export_dictionary(key, values, dictionary)?;
                Ok(pieces().map(|(start, len)| whole.slice(start, len)).collect())
            }
            // Values computed on the device: Arrow encodes them.
            (DataType::Dictionary(_, _), None) => {
                let whole = self.export_views()?;
                pieces()
                    .map(|(start, len)| Ok(cast(&whole.slice(start, len), &self.dtype)?))
                    .collect()
            }
            // Piece by piece, for the offsets may be too narrow for the whole.
            (DataType::Utf8, _) => {
                let whole = self.export_views()?;
                pieces()
                    .map(|(start, len)| offsets_from_views::<i32>(&whole.slice(start, len)))
                    .collect()
            }
            (DataType::LargeUtf8, _) => {
                let whole = self.export_views()?;
                pieces()
                    .map(|(start, len)| offsets_from_views::<i64>(&whole.slice(start, len)))
                    .collect()
            }
            (
                DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::FixedSizeBinary(_),
                _,
            ) => {
                let whole = self.export_plain_views::<BinaryViewType>(self.read_validity()?)?;
                pieces()
                    .map(|(start, len)| binary_from_views(&whole.slice(start, len), &self.dtype))
                    .collect()
            }
            _ => {
                let whole = self.export_views()?;
                Ok(pieces()
                    .map(|(start, len)| Arc::new(whole.slice(start, len)) as ArrayRef)
                    .collect())
            }
        }
    }

    /// Downloads the strings as views, whatever their type and encoding.
    fn export_views(&self) -> Result<StringViewArray> {
        let validity = self.read_validity()?;
        let Some(dictionary) = self.dictionary() else { return self.export_plain_views(validity) };
        let codes = self.read_values::<u32>(&validity)?;
        // One entry more, empty, is what null rows get.
        let (views, buffers, _) = dictionary.strings().clone().into_parts();
        let views: Vec<u128> = views.iter().copied().chain([0]).collect();
        let entries = StringViewArray::try_new(views.into(), buffers, None)?;
        let code = |(row, &code): (usize, &u32)| {
            if validity.is_valid(row) { code } else { dictionary.len() as u32 }
        };
        let codes: Vec<u32> = codes.typed_data::<u32>().iter().enumerate().map(code).collect();
        let rows = take(&entries, &UInt32Array::new(codes.into(), validity.nulls), None)?;
        Ok(rows.as_string_view().clone())
    }

    fn export_plain_views<T: ByteViewType>(
        &self,
        validity: Validity,
    ) -> Result<GenericByteViewArray<T>> {
        let mut views = self.read_values::<u128>(&validity)?;
        let host = HostCharacters::fetch(self, views.typed_data::<u128>())?;
        host.point(views.typed_data_mut::<u128>());
        let views = ScalarBuffer::<u128>::from(ArrowBuffer::from(views));
        Ok(GenericByteViewArray::try_new(views, host.buffers(), validity.nulls)?)
    }

    /// Downloads codes as the keys of an Arrow dictionary.
    fn export_dictionary(
        &self,
        key: &DataType,
        values: &DataType,
        dictionary: &Dictionary,
    ) -> Result<ArrayRef> {
        let validity = self.read_validity()?;
        let codes = self.read_values::<u32>(&validity)?;
        let values = cast(&dictionary.values, values)?;
        match key {
            DataType::Int8 => dictionary_array::<Int8Type>(codes, validity, values),
            DataType::Int16 => dictionary_array::<Int16Type>(codes, validity, values),
            DataType::Int32 => dictionary_array::<Int32Type>(codes, validity, values),
            DataType::Int64 => dictionary_array::<Int64Type>(codes, validity, values),
            DataType::UInt8 => dictionary_array::<UInt8Type>(codes, validity, values),
            DataType::UInt16 => dictionary_array::<UInt16Type>(codes, validity, values),
            DataType::UInt32 => dictionary_array::<UInt32Type>(codes, validity, values),
            DataType::UInt64 => dictionary_array::<UInt64Type>(codes, validity, values),
            other => Err(Error::unsupported(
                format!("dictionary keys of type {other}"),
                "keys are integers",
            )),
        }
    }
}

fn dictionary_array<K: ArrowDictionaryKeyType>(
    codes: MutableBuffer,
    validity: Validity,
    values: ArrayRef,
) -> Result<ArrayRef>
where
    K::Native: TryFrom<u32>,
{
    let too_wide = |code: u32| {
        let what = format!("code {code} of a dictionary of {} strings", values.len());
        Error::unsupported(what, format!("it does not fit a key of type {}", K::DATA_TYPE))
    };
    let keys = codes
        .typed_data::<u32>()
        .iter()
        .map(|&code| K::Native::try_from(code).map_err(|_| too_wide(code)));
    let keys = PrimitiveArray::<K>::new(keys.collect::<Result<Vec<_>>>()?.into(), validity.nulls);
    Ok(Arc::new(DictionaryArray::try_new(keys, values)?))
}

/// Copies strings behind each other, as `Utf8` and `LargeUtf8` have them.
fn offsets_from_views<O: OffsetSizeTrait>(views: &StringViewArray) -> Result<ArrayRef> {
    // Null rows have empty views, so this counts valid strings only.
    let bytes: usize = views.lengths().map(|len| len as usize).sum();
    if O::from_usize(bytes).is_none() {
        let what = format!("{bytes} bytes of strings in one Utf8 array");
        return Err(Error::unsupported(
            what,
            "its offsets have 31 bits; use Utf8View, LargeUtf8 or smaller batches",
        ));
    }
    let mut builder = GenericStringBuilder::<O>::with_capacity(views.len(), bytes);
    builder.extend(views.iter());
    Ok(Arc::new(builder.finish()))
}

/// Bytes in the layout of a type of theirs.
fn binary_from_views(views: &BinaryViewArray, dtype: &DataType) -> Result<ArrayRef> {
    Ok(match dtype {
        DataType::FixedSizeBinary(width) => {
            let rows = views.iter().map(|bytes| bytes.map(|bytes| bytes.to_vec()));
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(rows, *width)?)
        }
        _ => cast(views, dtype)?,
    })
}

/// Where a string that does not fit into its view lies in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LongString {
    address: u64,
    len: u64,
}

impl LongString {
    fn of(view: u128) -> Option<Self> {
        let len = view as u32 as u64;
        (len as usize > INLINE).then_some(LongString { address: (view >> 64) as u64, len })
    }

    fn end(self) -> u64 {
        self.address + self.len
    }
}

/// Host copies of the characters that views point to.
enum HostCharacters {
    /// Parts of character buffers, by device address.
    Spans(Vec<CharacterSpan>),
    /// The strings one after the other, in the order of the views: see [`BufferCursor`].
    Packed(Vec<ArrowBuffer>),
}

struct CharacterSpan {
    address: u64,
    bytes: ArrowBuffer,
}

impl HostCharacters {
    /// Downloads the characters of all long strings among a column's views, whichever way costs
    /// least: of each buffer all from the first to the last, or the parts of it that are pointed
    /// to, or from a copy of the strings alone that the device makes.
    fn fetch(column: &Column, views: &[u128]) -> Result<Self> {
        let buffers: BTreeMap<u64, &Buffer> =
            column.characters.iter().map(|buffer| (buffer.address(), &**buffer)).collect();
        let mut wanted: Vec<WantedCharacters> =
            buffers.into_values().map(WantedCharacters::none_of).collect();
        let (mut last, mut total) = (0, 0);
        for long in views.iter().filter_map(|&view| LongString::of(view)) {
            if !wanted.get(last).is_some_and(|wanted| wanted.has(long)) {
                last = wanted
                    .partition_point(|wanted| wanted.buffer.address() <= long.address)
                    .wrapping_sub(1);
            }
            match wanted.get_mut(last).filter(|wanted| wanted.has(long)) {
                Some(wanted) => wanted.add(long),
                None => return Err(astray(long)),
            }
            total += long.len;
        }
        let parts: Vec<_> = wanted.iter_mut().map(WantedCharacters::parts).collect();
        let cost = |(start, end): &(u64, u64)| DOWNLOAD_COST + end - start;
        let direct: u64 = parts.iter().flatten().map(cost).sum();
        if direct > PACK_COST + total + 8 * views.len() as u64
            && let Some(packed) = Self::pack(column, views, total)?
        {
            return Ok(packed);
        }
        let mut spans = Vec::new();
        for (wanted, parts) in wanted.iter().zip(parts) {
            for (start, end) in parts {
                spans.push(CharacterSpan { address: start, bytes: wanted.download(start, end)? });
            }
        }
        Ok(HostCharacters::Spans(spans))
    }

    /// Downloads a copy of the strings alone, of `total` bytes; `None` where the device has no room
    /// for it.
    fn pack(column: &Column, views: &[u128], total: u64) -> Result<Option<Self>> {
        let ends = views.iter().scan(0, |end, &view| {
            *end += LongString::of(view).map_or(0, |long| long.len);
            Some(*end)
        });
        let offsets: Vec<u64> = std::iter::once(0).chain(ends).collect();
        let packed = match pack(
            column.data.device(),
            column.data.slice(column.offset * size_of::<u128>()),
            &offsets,
        ) {
            Err(error) if error.is_out_of_device_memory() => {
                return Ok(None);
            }
            packed => packed?,
        };
        let mut bytes = MutableBuffer::from_len_zeroed(total as usize);
        packed.read(0, bytes.as_slice_mut())?;
        let bytes = ArrowBuffer::from(bytes);
        let mut places = BufferCursor::default();
        let mut buffers = Vec::new();
        let mut start = 0;
        for (&view, &offset) in views.iter().zip(&offsets) {
            if let Some(long) = LongString::of(view)
                && places.next(long).0 > buffers.len()
            {
                buffers.push(bytes.slice_with_length(start, offset as usize - start));
                start = offset as usize;
            }
        }
        buffers.push(bytes.slice(start));
        Ok(Some(HostCharacters::Packed(buffers)))
    }

    /// Lets the views of long strings, all that there are, point to their host copies instead of
    /// device memory.
    fn point(&self, views: &mut [u128]) {
        let mut places = BufferCursor::default();
        for view in views {
            let Some(long) = LongString::of(*view) else { continue };
            let (index, offset) = match self {
                // The last span that starts at or before the string has it: see `gather`.
                HostCharacters::Spans(spans) => {
                    let index = match spans.as_slice() {
                        [_] => 0,
                        spans => spans.partition_point(|span| span.address <= long.address) - 1,
                    };
                    (index, long.address - spans[index].address)
                }
                HostCharacters::Packed(_) => places.next(long),
            };
            *view = *view as u64 as u128 | (index as u128) << 64 | (offset as u128) << 96;
        }
    }

    fn buffers(self) -> Vec<ArrowBuffer> {
        match self {
            HostCharacters::Spans(spans) => spans.into_iter().map(|span| span.bytes).collect(),
            HostCharacters::Packed(buffers) => buffers,
        }
    }
}

/// Where strings that follow each other lie: in which buffer, and at which byte of it. A buffer has
/// no more than [`SPAN_LIMIT`] bytes, or one string.
#[derive(Debug, Default)]
struct BufferCursor {
    buffer: usize,
    end: u64,
}

impl BufferCursor {
    fn next(&mut self, long: LongString) -> (usize, u64) {
        if self.end > 0 && self.end + long.len > SPAN_LIMIT {
            (self.buffer, self.end) = (self.buffer + 1, 0);
        }
        let begin = self.end;
        self.end += long.len;
        (self.buffer, begin)
    }
}

/// What is wanted of one character buffer.
struct WantedCharacters<'a> {
    buffer: &'a Buffer,
    /// The strings; no more are noted once they are so many that all between the first and the last
    /// is downloaded.
    strings: Vec<LongString>,
    bytes: u64,
    whole: bool,
    /// Where the first begins and the last ends: memory for characters may have room beyond.
    begin: u64,
    end: u64,
}

impl<'a> WantedCharacters<'a> {
    fn none_of(buffer: &'a Buffer) -> Self {
        WantedCharacters {
            buffer,
            strings: Vec::new(),
            bytes: 0,
            whole: false,
            begin: u64::MAX,
            end: 0,
        }
    }

    fn has(&self, long: LongString) -> bool {
        let start = self.buffer.address();
        start <= long.address && long.end() <= start + self.buffer.len() as u64
    }

    fn add(&mut self, long: LongString) {
        self.begin = self.begin.min(long.address);
        self.end = self.end.max(long.end());
        if self.whole {
            return;
        }
        self.strings.push(long);
        self.bytes += long.len;
        let len = self.buffer.len() as u64;
        // A buffer beyond the reach of a view's offset is downloaded in spans, however many strings
        // are wanted.
        self.whole =
            len <= i32::MAX as u64 && self.strings.len() as u64 * DOWNLOAD_COST + self.bytes >= len;
    }

    /// What to download, from start to end.
    fn parts(&mut self) -> Vec<(u64, u64)> {
        if self.whole {
            return vec![(self.begin, self.end)];
        }
        self.strings.sort_unstable();
        gather(&self.strings, DOWNLOAD_COST, SPAN_LIMIT)
    }

    fn download(&self, start: u64, end: u64) -> Result<ArrowBuffer> {
        let mut bytes = MutableBuffer::from_len_zeroed((end - start) as usize);
        self.buffer.read((start - self.buffer.address()) as usize, bytes.as_slice_mut())?;
        Ok(bytes.into())
    }
}

/// Spans of memory, from start to end, that have all the strings, which come in order; strings no
/// more than `gap` bytes apart share a span while it has at most `limit` bytes.
///
/// Spans come in the order of their starts, and each string lies whole in the last span that starts
/// at or before it: a full span ends with a string, and the next starts where the next string does.
fn gather(strings: &[LongString], gap: u64, limit: u64) -> Vec<(u64, u64)> {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for string in strings {
        match spans.last_mut() {
            Some((_, end)) if string.end() <= *end => {}
            Some((start, end))
                if string.address <= *end + gap && string.end() <= *start + limit =>
            {
                *end = string.end()
            }
            _ => spans.push((string.address, string.end())),
        }
    }
    spans
}

/// A view that points nowhere: a bug of a kernel, reported instead of followed.
fn astray(long: LongString) -> Error {
    let report = format!(
        "a string of {} bytes at {:#x} lies in no character buffer of its column",
        long.len, long.address
    );
    ErrorKind::Simulation { kernel: "string view".to_string(), report }.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn strings(of: &[(u64, u64)]) -> Vec<LongString> {
        let mut strings: Vec<_> =
            of.iter().map(|&(address, len)| LongString { address, len }).collect();
        strings.sort_unstable();
        strings
    }

    #[test]
    fn spans_end_at_wide_gaps_and_at_the_limit() {
        let near = strings(&[(100, 20), (120, 20), (150, 30)]);
        assert_eq!(gather(&near, 10, 1000), [(100, 180)]);
        assert_eq!(gather(&near, 9, 1000), [(100, 140), (150, 180)]);
        assert_eq!(gather(&near, 10, 79), [(100, 140), (150, 180)]);
        assert_eq!(gather(&strings(&[(100, 50), (110, 20), (110, 13)]), 0, 30), [(100, 150)]);
        assert_eq!(gather(&[], 10, 10), []);
    }

    #[test]
    fn packed_strings_fill_buffers_up_to_the_limit() {
        let mut places = BufferCursor::default();
        let mut next = |len| places.next(LongString { address: 0, len });
        assert_eq!([next(100), next(SPAN_LIMIT - 100), next(13)], [(0, 0), (0, 100), (1, 0)]);
        assert_eq!([next(SPAN_LIMIT + 5), next(20), next(30)], [(2, 0), (3, 0), (3, 20)]);
    }

    proptest! {
        #[test]
        fn strings_lie_in_the_last_span_that_starts_before_their_end(
            of in prop::collection::vec((0..500u64, 13..60u64), 0..40), gap in 0..50u64, limit in 13..300u64,
        ) {
            let strings = strings(&of);
            let spans = gather(&strings, gap, limit);
            for string in &strings {
                let (start, end) = spans[spans.partition_point(|span| span.0 <= string.address) - 1];
                prop_assert!(start <= string.address && string.end() <= end);
            }
            for &(start, end) in &spans {
                let alone = LongString { address: start, len: end - start };
                prop_assert!(alone.len <= limit || strings.contains(&alone));
            }
        }
    }
}
