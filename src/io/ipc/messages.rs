//! Where the messages of an Arrow file lie, and its dictionaries.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::read_record_batch;
use arrow_ipc::{
    Block, DictionaryBatch, Endianness, Field as DescribedField, Message, MetadataVersion,
    RecordBatch as Described, Schema as DescribedSchema, root_as_footer, root_as_message,
};
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_empty_array};
use datafusion::arrow::buffer::{Buffer, MutableBuffer};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;

use super::checks::{checked, unpackable};
use super::types::{IpcTypes, plain, plain_type};
use crate::error::{Error, ErrorKind, Result};
use crate::io::guard::{of_panic, of_their_types};
use crate::io::spool;

const MAGIC: &[u8] = b"ARROW1";
/// The magic bytes and what fills them up.
const BEGIN: u64 = 8;
/// The footer's length and the magic bytes.
const END: u64 = 10;

/// A record batch of a file.
#[derive(Debug)]
pub(super) struct BatchPlace {
    place: MessagePlace,
    pub(super) rows: u64,
    /// Which dictionaries are in force, by identifier.
    dictionaries: Arc<HashMap<i64, usize>>,
}

/// Where a message lies.
#[derive(Debug, Clone)]
struct MessagePlace {
    /// In the order of the file, the schema being 1; for errors.
    number: usize,
    metadata: Range<u64>,
    body: Range<u64>,
}

/// An Arrow file or stream.
#[derive(Debug)]
pub(super) struct IpcFile {
    path: PathBuf,
    pub(super) bytes: u64,
    version: MetadataVersion,
    types: IpcTypes,
    /// As the table has it.
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<BatchPlace>,
    /// One for each dictionary that was begun.
    dictionaries: Vec<ArrayRef>,
}

/// Reads bytes of a file, of which it is known that they are there.
struct FileBytes<'a> {
    path: &'a Path,
    file: File,
    /// Of the file.
    size: u64,
}

impl FileBytes<'_> {
    fn open(path: &Path) -> Result<FileBytes<'_>> {
        let file = spool::open(path)?;
        let size = file.metadata().map_err(|error| Error::io(path, error))?.len();
        Ok(FileBytes { path, file, size })
    }

    fn wrong(&self, message: impl Into<String>) -> Error {
        ErrorKind::File { path: self.path.into(), message: message.into() }.into()
    }

    fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        if range.end > self.size || range.start > range.end {
            return Err(self.wrong(format!("it ends at {}, before byte {}", self.size, range.end)));
        }
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.file
            .read_exact_at(&mut bytes, range.start)
            .map_err(|error| Error::io(self.path, error))?;
        Ok(bytes)
    }

    /// The length of a message's metadata and where it begins; `None` at the end of a stream.
    fn prefix(&self, at: u64, number: usize) -> Result<Option<(u64, u64)>> {
        let word = |at: u64| -> Result<i32> {
            let bytes = self.read(at..at + 4)?;
            Ok(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        };
        let (length, begin) = match word(at)? {
            -1 => (word(at + 4)?, at + 8),
            length => (length, at + 4),
        };
        match u64::try_from(length) {
            Ok(0) => Ok(None),
            Ok(length) if begin + length <= self.size => Ok(Some((length, begin))),
            _ => Err(self.wrong(format!(
                "message {number} has metadata of {length} bytes in a file of {}",
                self.size
            ))),
        }
    }

    fn metadata(&self, place: &MessagePlace) -> Result<Vec<u8>> {
        self.read(place.metadata.clone())
    }
}

/// A file while its messages are found.
struct OpeningIpc<'a> {
    bytes: FileBytes<'a>,
    version: MetadataVersion,
    types: IpcTypes,
    batches: Vec<BatchPlace>,
    /// Parts of each dictionary that was begun.
    parts: Vec<Vec<ArrayRef>>,
    /// Value type of each dictionary, by id.
    values: HashMap<i64, DataType>,
    in_force: Arc<HashMap<i64, usize>>,
}

impl IpcFile {
    /// Finds the messages of a file or stream, and reads its dictionaries.
    ///
    /// # Errors
    /// A file that cannot be opened, is no Arrow file or ends too early; metadata that does not fit
    /// it; columns of types that are not read.
    pub(super) fn open(path: &Path) -> Result<IpcFile> {
        let bytes = FileBytes::open(path)?;
        if bytes.size == 0 {
            return Err(bytes.wrong("is empty"));
        }
        let begin = bytes.read(0..bytes.size.min(BEGIN))?;
        if begin.starts_with(b"FEA1") {
            return Err(
                bytes.wrong("it is a Feather file of version 1: write it again in version 2")
            );
        }
        let is_file = begin.starts_with(MAGIC);
        let opening = if is_file { file(bytes)? } else { stream(bytes)? };
        opening.finish()
    }

    /// Columns of a record batch, in the types of the table.
    ///
    /// # Errors
    /// Content that is damaged, with the message's number.
    pub(super) fn read(&self, at: usize, columns: &[usize]) -> Result<RecordBatch> {
        let BatchPlace { place, dictionaries, .. } = &self.batches[at];
        let bytes = FileBytes::open(&self.path)?;
        let metadata = bytes.metadata(place)?;
        let wrong = |why: String| bytes.wrong(format!("message {}: {why}", place.number));
        let message = root_as_message(&metadata)
            .map_err(|error| wrong(format!("its metadata is damaged: {error}")))?;
        let batch = message
            .header_as_record_batch()
            .ok_or_else(|| wrong("it is no record batch any more".into()))?;
        let decoded = Arc::new(self.types.decoded.clone());
        let dictionaries =
            dictionaries.iter().map(|(id, at)| (*id, self.dictionaries[*at].clone())).collect();
        let decoder = MessageDecoder { bytes: &bytes, place, version: self.version };
        let found = decoder.decode(batch, &decoded, &dictionaries, columns)?;
        let schema = Arc::new(self.schema.project(columns)?);
        let plain = || {
            let columns = found.columns().iter().zip(schema.fields());
            let columns = columns.map(|(column, field)| plain(column, field.data_type()));
            let options = RecordBatchOptions::new().with_row_count(Some(found.num_rows()));
            RecordBatch::try_new_with_options(
                schema.clone(),
                columns.collect::<Result<_, _>>()?,
                &options,
            )
        };
        let batch = caught(plain).map_err(wrong)?;
        of_their_types(&batch).map_err(|error| wrong(error.to_string()))?;
        Ok(batch)
    }
}

/// Calls what may panic over what a file holds.
fn caught<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(panic) => Err(of_panic("its reader", panic.as_ref()).to_string()),
    }
}

/// Turns a message into arrays.
struct MessageDecoder<'a> {
    bytes: &'a FileBytes<'a>,
    place: &'a MessagePlace,
    version: MetadataVersion,
}

impl MessageDecoder<'_> {
    /// Of the body only the buffers of the wanted columns are read.
    fn decode(
        &self,
        batch: Described<'_>,
        schema: &SchemaRef,
        dictionaries: &HashMap<i64, ArrayRef>,
        columns: &[usize],
    ) -> Result<RecordBatch> {
        let wrong = |why: String| self.bytes.wrong(format!("message {}: {why}", self.place.number));
        let Range { start, end } = self.place.body;
        if end > self.bytes.size {
            return Err(wrong("its body is cut".into()));
        }
        let ranges = checked(&batch, schema, end - start).map_err(wrong)?;
        let wanted: Vec<Range<usize>> = columns.iter().map(|at| ranges[*at].clone()).collect();
        let mut body = MutableBuffer::from_len_zeroed((end - start) as usize);
        if let Some(buffers) = batch.buffers() {
            for part in wanted.iter().cloned().flatten().map(|at| buffers.get(at)) {
                let into = part.offset() as usize..(part.offset() + part.length()) as usize;
                let read = self
                    .bytes
                    .file
                    .read_exact_at(&mut body[into.clone()], start + into.start as u64);
                read.map_err(|error| Error::io(self.bytes.path, error))?;
            }
        }
        unpackable(&batch, &wanted, &body).map_err(wrong)?;
        let body: Buffer = body.into();
        // The decoder counts rows by what the metadata says, also where no column is wanted.
        let read = || {
            read_record_batch(
                &body,
                batch,
                schema.clone(),
                dictionaries,
                Some(columns),
                &self.version,
            )
        };
        caught(read).map_err(wrong)
    }
}

/// The messages that a file's footer names.
fn file(bytes: FileBytes<'_>) -> Result<OpeningIpc<'_>> {
    let cut = || {
        bytes.wrong(
            "it begins as an Arrow file and does not end as one: it is cut, or was not finished",
        )
    };
    if bytes.size < BEGIN + END {
        return Err(cut());
    }
    let end = bytes.read(bytes.size - END..bytes.size)?;
    let (length, magic) = end.split_at(4);
    if magic != MAGIC {
        return Err(cut());
    }
    let length = i32::from_le_bytes([length[0], length[1], length[2], length[3]]);
    let footer_end = bytes.size - END;
    let footer_begin = u64::try_from(length).ok().and_then(|length| footer_end.checked_sub(length));
    let Some(footer_begin) = footer_begin.filter(|begin| *begin >= BEGIN) else {
        return Err(
            bytes.wrong(format!("its footer has {length} bytes in a file of {}", bytes.size))
        );
    };
    let footer = bytes.read(footer_begin..footer_end)?;
    let footer = root_as_footer(&footer)
        .map_err(|error| bytes.wrong(format!("its footer is damaged: {error}")))?;
    let schema = footer.schema().ok_or_else(|| bytes.wrong("its footer has no schema"))?;
    let mut opening = OpeningIpc::new(bytes, schema, footer.version())?;
    let all = |blocks: Option<Vec<Block>>| blocks.unwrap_or_default();
    let dictionaries = all(footer.dictionaries().map(|blocks| blocks.iter().copied().collect()));
    let batches = all(footer.recordBatches().map(|blocks| blocks.iter().copied().collect()));
    let is_dictionary = dictionaries.len();
    for (at, block) in dictionaries.into_iter().chain(batches).enumerate() {
        let place = opening.block(&block, at + 2, footer_begin)?;
        let metadata = opening.bytes.metadata(&place)?;
        let message = opening.message(&metadata, &place)?;
        let told = u64::try_from(message.bodyLength()).ok();
        if told != Some(place.body.end - place.body.start) {
            let (own, block) = (message.bodyLength(), place.body.end - place.body.start);
            return Err(opening
                .wrong(&place, format!("its body has {own} bytes, and {block} in the footer")));
        }
        match (message.header_as_dictionary_batch(), message.header_as_record_batch()) {
            (Some(dictionary), _) if at < is_dictionary => {
                opening.dictionary(dictionary, &place, Replacing::Refused)?
            }
            (_, Some(batch)) if at >= is_dictionary => opening.batch(batch, place)?,
            _ => return Err(opening.wrong(&place, "it is not what the footer says".into())),
        }
    }
    Ok(opening)
}

/// The messages of a stream, one behind the other.
fn stream(bytes: FileBytes<'_>) -> Result<OpeningIpc<'_>> {
    let none = "it is no Arrow file and no Arrow stream";
    let (length, begin) = match bytes.size < 8 {
        true => return Err(bytes.wrong(none)),
        false => bytes.prefix(0, 1).ok().flatten().ok_or_else(|| bytes.wrong(none))?,
    };
    let metadata = bytes.read(begin..begin + length)?;
    let message = root_as_message(&metadata).map_err(|_| bytes.wrong(none))?;
    let schema =
        message.header_as_schema().ok_or_else(|| bytes.wrong("its first message is no schema"))?;
    let mut at = begin + length + u64::try_from(message.bodyLength()).unwrap_or(0);
    let mut opening = OpeningIpc::new(bytes, schema, message.version())?;
    let mut number = 1;
    // A stream that ends with a message is whole.
    while at < opening.bytes.size {
        number += 1;
        let Some((length, begin)) = opening.bytes.prefix(at, number)? else { break };
        let body = begin + length;
        let mut place = MessagePlace { number, metadata: begin..body, body: body..body };
        let metadata = opening.bytes.metadata(&place)?;
        let message = opening.message(&metadata, &place)?;
        let end =
            u64::try_from(message.bodyLength()).ok().and_then(|length| body.checked_add(length));
        let Some(end) = end.filter(|end| *end <= opening.bytes.size) else {
            let (length, left) = (message.bodyLength(), opening.bytes.size - body);
            return Err(opening
                .wrong(&place, format!("its body has {length} bytes, and the file {left} more")));
        };
        place.body.end = end;
        at = end;
        match (message.header_as_dictionary_batch(), message.header_as_record_batch()) {
            (Some(dictionary), _) => opening.dictionary(dictionary, &place, Replacing::Allowed)?,
            (_, Some(batch)) => opening.batch(batch, place)?,
            _ => {
                return Err(
                    opening.wrong(&place, "it is neither a record batch nor a dictionary".into())
                );
            }
        }
    }
    Ok(opening)
}

/// Whether a dictionary may take the place of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replacing {
    /// In streams.
    Allowed,
    /// In files, whose batches have no order among dictionaries.
    Refused,
}

impl<'a> OpeningIpc<'a> {
    fn new(
        bytes: FileBytes<'a>,
        schema: DescribedSchema<'_>,
        version: MetadataVersion,
    ) -> Result<OpeningIpc<'a>> {
        if !matches!(version, MetadataVersion::V4 | MetadataVersion::V5) {
            return Err(
                bytes.wrong(format!("version {} of Arrow's metadata is not read", version.0))
            );
        }
        if schema.endianness() != Endianness::Little {
            return Err(bytes.wrong("its values are big-endian, which are not read"));
        }
        let of_schema = |why| bytes.wrong(format!("its schema: {why}"));
        if schema.fields().is_none() {
            return Err(of_schema("it has no fields".into()));
        }
        let found = caught(|| Ok(fb_to_schema(schema))).map_err(of_schema)?;
        let types = IpcTypes::of(&found).map_err(|why| bytes.wrong(why))?;
        let mut values = HashMap::new();
        if let Some(fields) = schema.fields() {
            for (field, own) in fields.iter().zip(found.fields()) {
                dictionaries_of(field, own.data_type(), &mut values).map_err(of_schema)?;
            }
        }
        let (batches, parts, in_force) = (vec![], vec![], Arc::default());
        Ok(OpeningIpc { bytes, version, types, batches, parts, values, in_force })
    }

    fn wrong(&self, place: &MessagePlace, why: String) -> Error {
        self.bytes.wrong(format!("message {}: {why}", place.number))
    }

    fn message<'m>(&self, metadata: &'m [u8], place: &MessagePlace) -> Result<Message<'m>> {
        root_as_message(metadata)
            .map_err(|error| self.wrong(place, format!("its metadata is damaged: {error}")))
    }

    /// Where a block of the footer lies.
    fn block(&self, block: &Block, number: usize, end: u64) -> Result<MessagePlace> {
        let (offset, metadata, body) = (block.offset(), block.metaDataLength(), block.bodyLength());
        let told = || {
            self.bytes.wrong(format!(
                "message {number}: the footer says that it lies at {offset} and has {metadata} and {body} bytes"
            ))
        };
        let begin = u64::try_from(offset).ok().filter(|begin| *begin >= BEGIN).ok_or_else(told)?;
        let body_begin = u64::try_from(metadata)
            .ok()
            .and_then(|length| begin.checked_add(length))
            .ok_or_else(told)?;
        let body_end = u64::try_from(body)
            .ok()
            .and_then(|length| body_begin.checked_add(length))
            .ok_or_else(told)?;
        if body_end > end || metadata < 8 {
            return Err(told());
        }
        let Some((length, own)) = self.bytes.prefix(begin, number)? else { return Err(told()) };
        if own + length > body_begin {
            return Err(told());
        }
        Ok(MessagePlace { number, metadata: own..own + length, body: body_begin..body_end })
    }

    fn batch(&mut self, batch: Described<'_>, place: MessagePlace) -> Result<()> {
        let body = place.body.end - place.body.start;
        checked(&batch, &self.types.decoded, body).map_err(|why| self.wrong(&place, why))?;
        let rows = u64::try_from(batch.length()).unwrap_or(0);
        self.batches.push(BatchPlace { place, rows, dictionaries: self.in_force.clone() });
        Ok(())
    }

    fn dictionary(
        &mut self,
        dictionary: DictionaryBatch<'_>,
        place: &MessagePlace,
        replacing: Replacing,
    ) -> Result<()> {
        let id = dictionary.id();
        let Some(dtype) = self.values.get(&id) else {
            return Err(self.wrong(place, format!("no column has its dictionary {id}")));
        };
        let data = dictionary
            .data()
            .ok_or_else(|| self.wrong(place, "its dictionary has no values".into()))?;
        let schema = Arc::new(Schema::new(vec![Field::new("values", dtype.clone(), true)]));
        let decoder = MessageDecoder { bytes: &self.bytes, place, version: self.version };
        let found = decoder.decode(data, &schema, &HashMap::new(), &[0])?;
        let values = caught(|| plain(found.column(0), &plain_type(dtype)))
            .map_err(|why| self.wrong(place, why))?;
        match (self.in_force.get(&id), dictionary.isDelta()) {
            (Some(known), true) => self.parts[*known].push(values),
            (Some(_), false) if replacing == Replacing::Refused => {
                return Err(self.wrong(
                    place,
                    format!("it is another dictionary {id}, which a file cannot have"),
                ));
            }
            // More of a dictionary that is not there is all of it.
            _ => {
                Arc::make_mut(&mut self.in_force).insert(id, self.parts.len());
                self.parts.push(vec![values]);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<IpcFile> {
        let mut dictionaries = vec![];
        for parts in std::mem::take(&mut self.parts) {
            let arrays: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
            let whole = caught(|| match arrays.first() {
                Some(_) => concat(&arrays),
                None => Ok(new_empty_array(&DataType::Null)),
            });
            dictionaries
                .push(whole.map_err(|why| self.bytes.wrong(format!("its dictionaries: {why}")))?);
        }
        let schema = Arc::new(self.types.plain.clone());
        let OpeningIpc { bytes, version, types, batches, .. } = self;
        Ok(IpcFile {
            path: bytes.path.into(),
            bytes: bytes.size,
            version,
            types,
            schema,
            batches,
            dictionaries,
        })
    }
}

/// The types of the values of a field's dictionaries, by identifier.
///
/// # Errors
/// A dictionary of values of two types.
fn dictionaries_of(
    field: DescribedField<'_>,
    dtype: &DataType,
    values: &mut HashMap<i64, DataType>,
) -> Result<(), String> {
    let children: Vec<&Field> = match dtype {
        DataType::Dictionary(_, of) => {
            let id = field.dictionary().map(|dictionary| dictionary.id()).unwrap_or_default();
            return match values.insert(id, of.as_ref().clone()) {
                Some(other) if other != **of => {
                    Err(format!("dictionary {id} is of {other} and of {of}"))
                }
                _ => Ok(()),
            };
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => vec![item.as_ref()],
        DataType::Struct(fields) => fields.iter().map(|field| field.as_ref()).collect(),
        _ => return Ok(()),
    };
    let described = field.children().into_iter().flatten();
    described
        .zip(children)
        .try_for_each(|(field, own)| dictionaries_of(field, own.data_type(), values))
}
