//! What a message's metadata says, checked against the bytes that there are.

use std::ops::Range;

use arrow_ipc::{CompressionType, RecordBatch as Described};
use datafusion::arrow::datatypes::{DataType, Schema};

/// Rows that need no bytes to be believed, as of columns that are null throughout.
const BARE_ROWS: u64 = 1 << 27;

/// What a column takes of a record batch.
#[derive(Debug, Clone, Copy, Default)]
struct ColumnParts {
    nodes: usize,
    /// Besides those that hold the strings of views.
    buffers: usize,
    /// Columns of views, each of which has a number of buffers of its own.
    views: usize,
}

impl ColumnParts {
    fn and(self, other: ColumnParts) -> ColumnParts {
        let (nodes, buffers) = (self.nodes + other.nodes, self.buffers + other.buffers);
        ColumnParts { nodes, buffers, views: self.views + other.views }
    }

    fn of(dtype: &DataType) -> ColumnParts {
        let own = |buffers| ColumnParts { nodes: 1, buffers, views: 0 };
        match dtype {
            DataType::Null => own(0),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => {
                own(3)
            }
            DataType::Utf8View | DataType::BinaryView => ColumnParts { views: 1, ..own(2) },
            DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
                own(2).and(ColumnParts::of(item.data_type()))
            }
            DataType::FixedSizeList(item, _) => own(1).and(ColumnParts::of(item.data_type())),
            DataType::Struct(fields) => fields
                .iter()
                .fold(own(1), |parts, field| parts.and(ColumnParts::of(field.data_type()))),
            _ => own(2),
        }
    }
}

/// The most bytes that one byte of a codec can hold: an LZ4 sequence adds 255 to a length with each
/// byte; a ZSTD block of four bytes has at most 128 KiB.
fn most_unpacked(batch: &Described<'_>) -> Result<Option<u64>, String> {
    match batch.compression().map(|compression| compression.codec()) {
        None => Ok(None),
        Some(CompressionType::LZ4_FRAME) => Ok(Some(255)),
        Some(CompressionType::ZSTD) => Ok(Some(1 << 15)),
        Some(other) => {
            Err(format!("its buffers are in a codec of number {}, which is none", other.0))
        }
    }
}

/// Where a column's buffers lie in a record batch's list of them, for each column of the schema.
///
/// # Errors
/// Numbers that are not those of the schema; lengths and places beyond the body.
pub(super) fn checked(
    batch: &Described<'_>,
    schema: &Schema,
    body: u64,
) -> Result<Vec<Range<usize>>, String> {
    let rows =
        u64::try_from(batch.length()).map_err(|_| format!("it has {} rows", batch.length()))?;
    let unpacked = body.saturating_mul(most_unpacked(batch)?.unwrap_or(1));
    let most_rows = unpacked.saturating_mul(8).clamp(BARE_ROWS, 1 << 40);
    let nodes = batch.nodes().map(|nodes| nodes.iter().collect::<Vec<_>>()).unwrap_or_default();
    let buffers =
        batch.buffers().map(|buffers| buffers.iter().collect::<Vec<_>>()).unwrap_or_default();
    let mut views = batch
        .variadicBufferCounts()
        .map(|counts| counts.iter().collect::<Vec<_>>())
        .unwrap_or_default();
    views.reverse();

    let (mut columns, mut node, mut buffer) = (vec![], 0, 0usize);
    for field in schema.fields() {
        let parts = ColumnParts::of(field.data_type());
        let length = nodes.get(node).map(|node| node.length());
        if length.is_some_and(|length| u64::try_from(length) != Ok(rows)) {
            let length = length.unwrap_or_default();
            return Err(format!("column {:?} has {length} values in {rows} rows", field.name()));
        }
        node += parts.nodes;
        let begin = buffer;
        buffer = buffer.saturating_add(parts.buffers);
        for _ in 0..parts.views {
            let count =
                views.pop().and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
            buffer = buffer.saturating_add(count);
        }
        columns.push(begin..buffer);
    }
    if (node, buffer, views.len()) != (nodes.len(), buffers.len(), 0) {
        let (has, needs) =
            (buffers.len(), if buffer > buffers.len() { "more" } else { "other ones" });
        return Err(format!(
            "it has {} arrays in {has} buffers, and its columns are of {needs}",
            nodes.len()
        ));
    }
    for node in nodes {
        let (length, nulls) = (node.length(), node.null_count());
        if !(0..=length).contains(&nulls) || length as u64 > most_rows {
            return Err(format!(
                "an array has {length} values, of which {nulls} are null, in {body} bytes"
            ));
        }
    }
    if rows > most_rows {
        return Err(format!("it has {rows} rows in {body} bytes"));
    }
    for part in buffers {
        let (offset, length) = (part.offset(), part.length());
        let end = offset.checked_add(length).and_then(|end| u64::try_from(end).ok());
        if offset < 0 || length < 0 || end.is_none_or(|end| end > body) {
            return Err(format!(
                "a buffer of {length} bytes lies at {offset} of a body of {body} bytes"
            ));
        }
    }
    Ok(columns)
}

/// Whether the buffers of columns say that they unpack to lengths that their bytes can hold.
///
/// # Errors
/// Those that do not.
pub(super) fn unpackable(
    batch: &Described<'_>,
    columns: &[Range<usize>],
    body: &[u8],
) -> Result<(), String> {
    /// Bytes of the length before what is packed.
    const PREFIX: usize = 8;
    let Some(most) = most_unpacked(batch)? else { return Ok(()) };
    let Some(buffers) = batch.buffers() else { return Ok(()) };
    let mut all = 0u64;
    for at in columns.iter().cloned().flatten() {
        let (offset, length) =
            (buffers.get(at).offset() as usize, buffers.get(at).length() as usize);
        if length == 0 {
            continue;
        }
        let Some((prefix, packed)) = body[offset..offset + length].split_first_chunk::<PREFIX>()
        else {
            return Err(format!("a packed buffer has {length} bytes"));
        };
        let told = i64::from_le_bytes(*prefix);
        // What packing would have made longer stays as it is.
        let unpacked = if told == -1 { packed.len() as u64 } else { told as u64 };
        all = all.saturating_add(unpacked);
        if told < -1 || unpacked > (packed.len() as u64).saturating_mul(most) {
            return Err(format!("a buffer of {} bytes is said to unpack to {told}", packed.len()));
        }
    }
    match all > (body.len() as u64).saturating_mul(most) {
        true => Err(format!("{} bytes are said to unpack to {all}", body.len())),
        false => Ok(()),
    }
}
