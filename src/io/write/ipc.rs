//! Batches as Arrow IPC: record batches are encoded, and compressed, on all cores.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::{
    DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteContext, IpcWriteOptions as Encoding,
    write_message,
};
use arrow_ipc::{Block, CompressionType, FooterBuilder, MetadataVersion};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use flatbuffers::FlatBufferBuilder;

use super::in_order::in_order;
use crate::error::{Error, ErrorKind, Result};

/// How Arrow IPC files are written.
///
/// ```
/// # use warpframe::prelude::*;
/// # use warpframe::{IpcCodec, IpcWriteOptions};
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// # let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("t.arrow");
/// let options = IpcWriteOptions { compression: Some(IpcCodec::Zstd), ..IpcWriteOptions::default() };
/// session.sql("SELECT 1 AS one")?.collect()?.write_ipc_with(&path, options)?;
/// assert_eq!(session.read_ipc(&path)?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IpcWriteOptions {
    /// A file, which readers can enter anywhere, or a stream.
    pub layout: IpcLayout,
    /// What buffers are compressed with; `None` leaves them as they are, so that readers can map
    /// them.
    pub compression: Option<IpcCodec>,
}

/// What Arrow IPC messages stand in.
///
/// ```
/// assert_eq!(warpframe::IpcLayout::default(), warpframe::IpcLayout::File);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IpcLayout {
    /// With a footer that says where they are; also called Feather, version 2.
    #[default]
    File,
    /// One behind the other.
    Stream,
}

/// What buffers of Arrow IPC files are compressed with.
///
/// ```
/// # use warpframe::{IpcCodec, IpcWriteOptions};
/// assert!(IpcWriteOptions::default().compression.is_none());
/// let _ = [IpcCodec::Lz4, IpcCodec::Zstd];
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpcCodec {
    /// Frames of LZ4.
    Lz4,
    /// Level 3.
    Zstd,
}

/// The magic bytes, and what fills them up.
const BEGIN: &[u8] = b"ARROW1\0\0";
const MAGIC: &[u8] = b"ARROW1";
/// The end of a stream.
const LAST: [u8; 8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];

/// The type in which a column is written, which all readers know: views are strings with offsets,
/// and dictionaries are their values.
fn written(dtype: &DataType) -> DataType {
    let field = |field: &FieldRef| -> FieldRef {
        Arc::new(Field::new(field.name(), written(field.data_type()), field.is_nullable()))
    };
    match dtype {
        DataType::Utf8View => DataType::LargeUtf8,
        DataType::BinaryView => DataType::LargeBinary,
        DataType::Dictionary(_, values) => written(values),
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(field(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        other => other.clone(),
    }
}

/// An error whose file the caller names.
fn of_format(error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, source) => Error::io(Path::new(""), source),
        error => ErrorKind::Plan { message: error.to_string(), location: None }.into(),
    }
}

/// Writes rows as an Arrow IPC file or stream.
///
/// # Errors
/// Of the batches; of `out`.
pub(super) fn write(
    out: &mut impl Write,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: IpcWriteOptions,
) -> Result<()> {
    let field = |of: &FieldRef| Field::new(of.name(), written(of.data_type()), of.is_nullable());
    let schema = Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<_>>()));
    let codec = options.compression.map(|codec| match codec {
        IpcCodec::Lz4 => CompressionType::LZ4_FRAME,
        IpcCodec::Zstd => CompressionType::ZSTD,
    });
    let encoding = Encoding::default().try_with_compression(codec).map_err(of_format)?;
    let generator = IpcDataGenerator::default();
    // There are no dictionaries to track.
    let mut tracker = DictionaryTracker::new(true);
    let of_schema =
        generator.schema_to_bytes_with_dictionary_tracker(&schema, &mut tracker, &encoding);
    let io = |error: std::io::Error| of_format(error.into());

    let is_file = options.layout == IpcLayout::File;
    let begin = if is_file { BEGIN } else { &[] };
    out.write_all(begin).map_err(io)?;
    let (metadata, body) = write_message(&mut *out, of_schema, &encoding).map_err(of_format)?;
    let mut at = begin.len() + metadata + body;
    let mut blocks = vec![];
    let encode = |batch: RecordBatch| -> Result<EncodedData> {
        let columns = batch.columns().iter().zip(schema.fields());
        let columns = columns
            .map(|(column, field)| cast(column, field.data_type()))
            .collect::<Result<_, _>>()?;
        let counted = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &counted)?;
        let (mut tracker, mut context) = (DictionaryTracker::new(true), IpcWriteContext::default());
        let (_, encoded) =
            generator.encode(&batch, &mut tracker, &encoding, &mut context).map_err(of_format)?;
        Ok(encoded)
    };
    in_order(batches, encode, |encoded| {
        let (metadata, body) = write_message(&mut *out, encoded, &encoding).map_err(of_format)?;
        let length = i32::try_from(metadata)
            .map_err(|_| Error::internal("a message's metadata is too long"))?;
        blocks.push(Block::new(at as i64, length, body as i64));
        at += metadata + body;
        Ok(())
    })?;
    out.write_all(&LAST).map_err(io)?;
    match is_file {
        true => out.write_all(&footer(&schema, &blocks)?).map_err(io),
        false => Ok(()),
    }
}

/// What stands behind a file's messages.
fn footer(schema: &Schema, blocks: &[Block]) -> Result<Vec<u8>> {
    let mut builder = FlatBufferBuilder::new();
    let dictionaries = builder.create_vector::<Block>(&[]);
    let batches = builder.create_vector(blocks);
    let mut tracker = DictionaryTracker::new(true);
    let schema = IpcSchemaEncoder::new()
        .with_dictionary_tracker(&mut tracker)
        .schema_to_fb_offset(&mut builder, schema);
    let mut footer = FooterBuilder::new(&mut builder);
    footer.add_version(MetadataVersion::V5);
    footer.add_schema(schema);
    footer.add_dictionaries(dictionaries);
    footer.add_recordBatches(batches);
    let root = footer.finish();
    builder.finish(root, None);
    let mut bytes = builder.finished_data().to_vec();
    let length = i32::try_from(bytes.len()).map_err(|_| Error::internal("a footer is too long"))?;
    bytes.extend(length.to_le_bytes());
    bytes.extend(MAGIC);
    Ok(bytes)
}
