//! What is taken from a Parquet file's footer, and what is not.
//!
//! Bounds and sizes are checked before anything is allocated or read by them. Then the footer is
//! made to say less, or more, than the file does, for the parquet crate and DataFusion take it at
//! its word:
//! - Statistics and Bloom filters of floats go. Writers leave NaN out of the least and greatest
//!   value and the crate (59) does not know the field `nan_count`, which says whether there is any;
//!   a filter does not tell -0.0 from 0.0. So do those of INT96, which have no order, and those of
//!   an age when all bytes were compared as signed numbers.
//! - Bytes that are to be strings are said to be such: the crate checks for UTF-8 only what is
//!   annotated STRING, and makes strings of JSON, and of whatever the Arrow schema within the file
//!   or the table's schema say, without a look at it.

use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::basic::{ConvertedType, LogicalType, SortOrder, Type as Physical};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, FooterTail, KeyValue, ParquetMetaData,
    ParquetMetaDataBuilder, ParquetMetaDataReader, RowGroupMetaData,
};
use datafusion::parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type, TypePtr};

use super::guard::caught;
use super::thrift::{self, Broken, Compact, I32, LIST, STRUCT};

/// Bytes behind the footer: its length and the magic word.
pub(super) const TAIL: u64 = 8;

/// Most groups within one another in a schema. Its readers, here and in the crates, need stack for
/// each; a list of lists takes two.
const DEEPEST: usize = 128;

/// Bytes of a column chunk that is not compressed; more are no size.
const MOST_UNCOMPRESSED: i64 = 1 << 40;

/// Where the crate keeps an Arrow schema.
pub(super) const ARROW_SCHEMA: &str = "ARROW:schema";

type FooterResult<T> = std::result::Result<T, ParquetError>;

fn broken<T>(what: impl Into<String>) -> FooterResult<T> {
    Err(ParquetError::General(what.into()))
}

/// Where the footer begins in a file of so many bytes that ends in `tail`.
pub(super) fn begins_at(tail: &[u8], file: u64) -> FooterResult<u64> {
    let tail = FooterTail::try_from(tail)?;
    if tail.is_encrypted_footer() {
        return broken("its footer is encrypted, which is not read");
    }
    let length = tail.metadata_length() as u64;
    match file.checked_sub(TAIL).and_then(|rest| rest.checked_sub(length)) {
        Some(begin) => Ok(begin),
        None => broken(format!("its footer of {length} bytes is longer than the file of {file}")),
    }
}

/// Decodes the footer of a file of so many bytes.
pub(super) fn decode(footer: &[u8], file: u64) -> FooterResult<ParquetMetaData> {
    let groups = walk(footer).or_else(|why| broken(format!("its footer is damaged: {why}")))?;
    let metadata = decode_on_all_cores(footer, &groups)?;
    let rows = check(&metadata, file)?;
    let metadata = match metadata.file_metadata().num_rows() == rows {
        true => metadata,
        // It is said twice. DataFusion believes this one, all readers count those of row groups.
        false => with_file(&metadata, with_rows(metadata.file_metadata(), rows)),
    };
    without_untold(metadata, file)
}

/// Where a footer's row groups lie: their list's header, each of them, and what is behind them.
///
/// ```text
///   version │ schema │ rows │ size │ group │ group │ … │ notes │ writer │ …
///                             list   groups              end
/// ```
#[derive(Debug, Default)]
struct Groups {
    list: usize,
    groups: Vec<usize>,
    end: usize,
}

/// Least row groups that a thread decodes: starting it takes as long as a few dozen.
const LEAST_GROUPS: usize = 64;
/// Most threads that decode one footer.
const DECODERS: usize = 8;

/// Decodes a footer that was walked over. Parts of a long one are decoded side by side, each as the
/// footer of a file of some of the row groups.
fn decode_on_all_cores(
    footer: &[u8],
    Groups { list, groups, end }: &Groups,
) -> FooterResult<ParquetMetaData> {
    let cores = crate::cores::cores();
    let parts = (groups.len() / LEAST_GROUPS).min(DECODERS).min(cores);
    if parts < 2 {
        return ParquetMetaDataReader::decode_metadata(footer);
    }
    let each = groups.len().div_ceil(parts);
    let starts: Vec<usize> = (0..groups.len()).step_by(each).collect();
    let decode = |first: usize| {
        let last = groups.len().min(first + each);
        let bytes = groups[first]..groups.get(last).copied().unwrap_or(*end);
        let mut part = footer[..*list].to_vec();
        thrift::put_list(&mut part, last - first);
        part.extend_from_slice(&footer[bytes]);
        part.extend_from_slice(&footer[*end..]);
        ParquetMetaDataReader::decode_metadata(&part)
    };
    let parts = std::thread::scope(|scope| {
        let threads: Vec<_> =
            starts.iter().map(|first| scope.spawn(|| caught(|| decode(*first)))).collect();
        let join = |thread: ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p))
        };
        threads.into_iter().map(join).collect::<FooterResult<Vec<_>>>()
    })?;
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else { return ParquetMetaDataReader::decode_metadata(footer) };
    let mut builder = first.into_builder();
    let mut all = builder.take_row_groups();
    for part in parts {
        all.extend(part.into_builder().take_row_groups());
    }
    Ok(builder.set_row_groups(all).build())
}

/// Looks at all sizes, and at how deep the schema is. Where the row groups lie: none are told where
/// the footer has not one list of structs for them.
fn walk(footer: &[u8]) -> std::result::Result<Groups, Broken> {
    const SCHEMA: i64 = 2;
    const ROW_GROUPS: i64 = 4;
    let mut found: Vec<Groups> = vec![];
    Compact::new(footer).fields(|walked, id, kind| {
        let at = |walked: &Compact<'_>| footer.len() - walked.left();
        match (id, kind) {
            (SCHEMA, LIST) => walk_schema(walked),
            (ROW_GROUPS, LIST) => {
                let list = at(walked);
                let (elements, of) = walked.list()?;
                let mut groups = vec![];
                for _ in 0..elements {
                    groups.push(at(walked));
                    walked.skip_element(of)?;
                }
                let groups = if of == STRUCT { groups } else { vec![] };
                found.push(Groups { list, groups, end: at(walked) });
                Ok(())
            }
            (_, kind) => walked.skip(kind),
        }
    })?;
    let one = found.pop().filter(|_| found.is_empty());
    Ok(one.unwrap_or_default())
}

fn walk_schema(footer: &mut Compact<'_>) -> std::result::Result<(), Broken> {
    const CHILDREN: i64 = 5;
    let (elements, _) = footer.list()?;
    // For each group that is not closed, children to come.
    let mut open: Vec<i64> = vec![];
    for _ in 0..elements {
        let mut children = 0;
        footer.fields(|element, id, kind| match (id, kind) {
            (CHILDREN, I32) => element.integer().map(|count| children = count),
            _ => element.skip(kind),
        })?;
        if let Some(parent) = open.last_mut() {
            *parent -= 1;
        }
        open.push(children);
        if open.len() > DEEPEST {
            return Err(format!("its schema is deeper than {DEEPEST} groups"));
        }
        while open.last().is_some_and(|children| *children <= 0) {
            open.pop();
        }
    }
    Ok(())
}

/// The rows of all row groups.
///
/// # Errors
/// Rows and places that cannot be.
fn check(metadata: &ParquetMetaData, file: u64) -> FooterResult<i64> {
    let mut rows = 0i64;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        rows = match rows.checked_add(group.num_rows()) {
            Some(rows) if group.num_rows() >= 0 => rows,
            _ => {
                return broken(format!(
                    "row group {number} is said to have {} rows",
                    group.num_rows()
                ));
            }
        };
        for column in group.columns() {
            let place = || format!("column {} of row group {number}", column.column_path());
            let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let end =
                begin.checked_add(column.compressed_size()).and_then(|end| u64::try_from(end).ok());
            let known =
                begin >= 0 && column.compressed_size() >= 0 && column.data_page_offset() >= 0;
            if !known || end.is_none_or(|end| end > file) {
                let bytes = column.compressed_size();
                return broken(format!(
                    "{} is said to be {bytes} bytes at {begin} of {file}",
                    place()
                ));
            }
            // A row is a value or, where a column repeats, one or more.
            let (values, repeats) =
                (column.num_values(), column.column_descr().max_rep_level() > 0);
            if values < group.num_rows() || !repeats && values != group.num_rows() {
                return broken(format!(
                    "{} is said to have {values} values in {} rows",
                    place(),
                    group.num_rows()
                ));
            }
        }
    }
    Ok(rows)
}

/// Whether a column chunk's statistics bound its values.
fn is_told(chunk: &ColumnChunkMetaData) -> bool {
    let column = chunk.column_descr();
    // Their first fields were written by comparing bytes as signed numbers, whatever the type.
    if chunk.statistics().is_some_and(|of| of.is_min_max_deprecated())
        && column.sort_order() != SortOrder::SIGNED
    {
        return false;
    }
    match column.physical_type() {
        Physical::FLOAT | Physical::DOUBLE | Physical::INT96 => false,
        Physical::FIXED_LEN_BYTE_ARRAY => {
            column.logical_type_ref() != Some(&LogicalType::Float16)
                && bounds_have(chunk, |bytes| i32::try_from(bytes) == Ok(column.type_length()))
        }
        Physical::BYTE_ARRAY if column.converted_type() == ConvertedType::DECIMAL => {
            // DataFusion makes integers of 128 or 256 bits of them.
            let most = if column.type_precision() <= 38 { 16 } else { 32 };
            bounds_have(chunk, |bytes| bytes <= most)
        }
        _ => true,
    }
}

/// Whether the bounds of a chunk's values have lengths as they should.
fn bounds_have(chunk: &ColumnChunkMetaData, length: impl Fn(usize) -> bool) -> bool {
    let bounds = chunk.statistics().map(|of| [of.min_bytes_opt(), of.max_bytes_opt()]);
    bounds.into_iter().flatten().flatten().all(|bytes| length(bytes.len()))
}

/// Whether every row group has bounds of a column's values, or has none but nulls.
pub(super) fn is_bounded(metadata: &ParquetMetaData, column: &str) -> bool {
    let schema = metadata.file_metadata().schema_descr();
    let Some(at) = schema.columns().iter().position(|leaf| leaf.path().parts() == [column]) else {
        return true;
    };
    metadata.row_groups().iter().all(|group| {
        let statistics = group.column(at).statistics();
        let nulls = statistics.and_then(|of| of.null_count_opt());
        let bounds = statistics
            .is_some_and(|of| of.min_bytes_opt().is_some() && of.max_bytes_opt().is_some());
        bounds
            || nulls.is_some_and(|nulls| nulls as i64 == group.num_rows())
            || group.num_rows() == 0
    })
}

/// The metadata without statistics, page index and Bloom filters that cannot be trusted.
fn without_untold(metadata: ParquetMetaData, file: u64) -> FooterResult<ParquetMetaData> {
    let mut builder = metadata.into_builder();
    let groups = builder
        .take_row_groups()
        .into_iter()
        .map(|group| told_group(group, file))
        .collect::<FooterResult<_>>()?;
    Ok(builder.set_row_groups(groups).build())
}

fn told_group(group: RowGroupMetaData, file: u64) -> FooterResult<RowGroupMetaData> {
    let mut builder = group.into_builder();
    let columns = builder
        .take_columns()
        .into_iter()
        .map(|column| told_column(column, file))
        .collect::<FooterResult<_>>()?;
    builder.set_column_metadata(columns).build()
}

fn told_column(column: ColumnChunkMetaData, file: u64) -> FooterResult<ColumnChunkMetaData> {
    let told = is_told(&column);
    // What helps to read less is not worth an error where it lies outside of the file.
    let inside = |offset: Option<i64>, length: Option<i32>| match (offset, length) {
        (Some(offset), length) => {
            let end = offset.checked_add(length.unwrap_or(0).into());
            offset >= 0 && length.unwrap_or(0) >= 0 && end.is_some_and(|end| end as u64 <= file)
        }
        (None, _) => true,
    };
    let index = inside(column.column_index_offset(), column.column_index_length());
    let pages = inside(column.offset_index_offset(), column.offset_index_length());
    let bloom = inside(column.bloom_filter_offset(), column.bloom_filter_length());
    // DataFusion adds them up.
    let size = column.uncompressed_size().clamp(0, MOST_UNCOMPRESSED);
    if told && index && pages && bloom && size == column.uncompressed_size() {
        return Ok(column);
    }
    let mut builder = column.into_builder().set_total_uncompressed_size(size);
    if !told {
        builder = builder.clear_statistics();
    }
    if !told || !index {
        builder = builder.set_column_index_offset(None).set_column_index_length(None);
    }
    if !pages {
        builder = builder.set_offset_index_offset(None).set_offset_index_length(None);
    }
    if !told || !bloom {
        builder = builder.set_bloom_filter_offset(None).set_bloom_filter_length(None);
    }
    builder.build()
}

/// The same metadata without the Arrow schema that its writer left.
pub(super) fn without_arrow_schema(metadata: ParquetMetaData) -> ParquetMetaData {
    let of_file = metadata.file_metadata();
    let mut pairs = of_file.key_value_metadata().cloned().unwrap_or_default();
    pairs.retain(|pair| pair.key != ARROW_SCHEMA);
    with_file(&metadata, saying(of_file, Some(pairs), of_file.schema_descr_ptr()))
}

/// Columns of bytes of one length that nothing says the meaning of.
pub(super) fn bare_bytes(schema: &SchemaDescriptor) -> Vec<String> {
    let bare = |column: &&ColumnDescPtr| {
        column.physical_type() == Physical::FIXED_LEN_BYTE_ARRAY
            && column.logical_type_ref().is_none()
            && column.converted_type() == ConvertedType::NONE
    };
    let root = |column: &ColumnDescPtr| column.path().parts().first().cloned().unwrap_or_default();
    schema.columns().iter().filter(bare).map(root).collect()
}

/// Columns of the type INTERVAL whose parts nothing tells of.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    /// Columns of a table.
    pub(super) columns: Vec<String>,
    /// Columns that have some within.
    pub(super) nested: Vec<String>,
}

/// The same metadata, in which intervals are bytes: the parquet crate (59) reads days and
/// milliseconds of them, and leaves the months out. `None` where there are none, or where an Arrow
/// schema tells which parts they have.
pub(super) fn with_bare_intervals(
    metadata: &ParquetMetaData,
) -> FooterResult<Option<(ParquetMetaData, Intervals)>> {
    let of_file = metadata.file_metadata();
    let schema = of_file.schema_descr();
    let is_interval = |column: &ColumnDescPtr| column.converted_type() == ConvertedType::INTERVAL;
    let is_told = of_file
        .key_value_metadata()
        .is_some_and(|pairs| pairs.iter().any(|pair| pair.key == ARROW_SCHEMA));
    if is_told || !schema.columns().iter().any(is_interval) {
        return Ok(None);
    }
    let mut found = Intervals::default();
    for column in schema.columns().iter().filter(|column| is_interval(column)) {
        match column.path().parts() {
            [name] if column.max_rep_level() == 0 => found.columns.push(name.clone()),
            parts => found.nested.extend(parts.first().cloned()),
        }
    }
    let mut leaf = 0..;
    let say = |at: usize| is_interval(&schema.column(at)).then_some(None);
    let root = annotated(&schema.root_schema_ptr(), &mut || leaf.next().and_then(say))?;
    let pairs = of_file.key_value_metadata().cloned();
    let bare = with_file(metadata, saying(of_file, pairs, Arc::new(SchemaDescriptor::new(root))));
    Ok(Some((bare, found)))
}

fn saying(
    of_file: &FileMetaData,
    pairs: Option<Vec<KeyValue>>,
    schema: Arc<SchemaDescriptor>,
) -> FileMetaData {
    let (written_by, orders) =
        (of_file.created_by().map(str::to_string), of_file.column_orders().cloned());
    FileMetaData::new(of_file.version(), of_file.num_rows(), written_by, pairs, schema, orders)
}

fn with_rows(of_file: &FileMetaData, rows: i64) -> FileMetaData {
    let (written_by, orders) =
        (of_file.created_by().map(str::to_string), of_file.column_orders().cloned());
    let pairs = of_file.key_value_metadata().cloned();
    FileMetaData::new(
        of_file.version(),
        rows,
        written_by,
        pairs,
        of_file.schema_descr_ptr(),
        orders,
    )
}

fn with_file(metadata: &ParquetMetaData, of_file: FileMetaData) -> ParquetMetaData {
    ParquetMetaDataBuilder::new(of_file).set_row_groups(metadata.row_groups().to_vec()).build()
}

/// The same metadata, with an annotation as STRING for all bytes that Arrow has as strings, by the
/// file's own account or in the table's schema, and without one where the table has bytes. `None`
/// where nothing is to be said.
pub(super) fn with_strings(
    metadata: &ParquetMetaData,
    table: Option<&Schema>,
) -> FooterResult<Option<ParquetMetaData>> {
    let of_file = metadata.file_metadata();
    let schema = of_file.schema_descr();
    let arrow = parquet_to_arrow_schema(schema, of_file.key_value_metadata())?;
    let mut reads = vec![];
    for field in arrow.fields() {
        let in_table = table.and_then(|table| table.field_with_name(field.name()).ok());
        leaves(field.data_type(), in_table.map(|field| field.data_type()), &mut reads);
    }
    if reads.len() != schema.num_columns() {
        return broken("its Arrow schema is not that of its columns");
    }
    let to_say = |at: usize| {
        let column = schema.column(at);
        match reads[at] {
            FooterRead::Bytes => Some(None),
            FooterRead::Text if column.converted_type() != ConvertedType::UTF8 => {
                Some(Some(LogicalType::String))
            }
            _ => None,
        }
        .filter(|_| column.physical_type() == Physical::BYTE_ARRAY)
    };
    if (0..reads.len()).all(|at| to_say(at).is_none()) {
        return with_textual_statistics(metadata, &reads);
    }
    let mut leaf = 0..;
    let root = annotated(&schema.root_schema_ptr(), &mut || leaf.next().and_then(to_say))?;
    let mut pairs = of_file.key_value_metadata().cloned();
    if reads.contains(&FooterRead::Bytes) {
        // The Arrow schema would have strings made of them.
        pairs.iter_mut().for_each(|pairs| pairs.retain(|pair| pair.key != ARROW_SCHEMA));
    }
    let said = with_file(metadata, saying(of_file, pairs, Arc::new(SchemaDescriptor::new(root))));
    Ok(Some(with_textual_statistics(&said, &reads)?.unwrap_or(said)))
}

/// Where a text's least or greatest value is no UTF-8, it has no statistics: DataFusion (55.2)
/// would take those of other row groups for those of all. `None` where all are well.
fn with_textual_statistics(
    metadata: &ParquetMetaData,
    reads: &[FooterRead],
) -> FooterResult<Option<ParquetMetaData>> {
    let foreign = |(at, column): (usize, &ColumnChunkMetaData)| {
        let bounds = column.statistics().filter(|_| reads[at] == FooterRead::Text);
        bounds.is_some_and(|of| {
            let bounds = [of.min_bytes_opt(), of.max_bytes_opt()];
            bounds.into_iter().flatten().any(|bytes| std::str::from_utf8(bytes).is_err())
        })
    };
    if !metadata.row_groups().iter().any(|group| group.columns().iter().enumerate().any(foreign)) {
        return Ok(None);
    }
    let told = |group: &RowGroupMetaData| {
        let columns =
            group.columns().iter().enumerate().map(|(at, column)| match foreign((at, column)) {
                true => column.clone().into_builder().clear_statistics().build(),
                false => Ok(column.clone()),
            });
        let columns = columns.collect::<FooterResult<_>>()?;
        group.clone().into_builder().set_column_metadata(columns).build()
    };
    let groups = metadata.row_groups().iter().map(told).collect::<FooterResult<_>>()?;
    Ok(Some(metadata.clone().into_builder().set_row_groups(groups).build()))
}

/// What a column's bytes become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FooterRead {
    Text,
    /// Bytes, although the file has text.
    Bytes,
    AsItIs,
}

/// How each column within a type is read. Within nested types the table casts, and so checks.
fn leaves(dtype: &DataType, in_table: Option<&DataType>, reads: &mut Vec<FooterRead>) {
    match dtype {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => leaves(item.data_type(), None, reads),
        DataType::Struct(fields) => {
            fields.iter().for_each(|field| leaves(field.data_type(), None, reads))
        }
        dtype => reads.push(match (is_string(dtype), in_table) {
            (true, Some(DataType::Binary | DataType::LargeBinary | DataType::BinaryView)) => {
                FooterRead::Bytes
            }
            (true, _) => FooterRead::Text,
            (false, Some(table)) if is_string(table) => FooterRead::Text,
            _ => FooterRead::AsItIs,
        }),
    }
}

fn is_string(dtype: &DataType) -> bool {
    match dtype {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_string(values),
        _ => false,
    }
}

/// The type with leaves annotated as `say` tells, which is asked in their order.
fn annotated(
    of: &TypePtr,
    say: &mut impl FnMut() -> Option<Option<LogicalType>>,
) -> FooterResult<TypePtr> {
    match of.as_ref() {
        Type::GroupType { basic_info, fields } => {
            let fields =
                fields.iter().map(|field| annotated(field, say)).collect::<FooterResult<_>>()?;
            Ok(Arc::new(Type::GroupType { basic_info: basic_info.clone(), fields }))
        }
        Type::PrimitiveType { basic_info, physical_type, type_length, .. } => {
            let Some(annotation) = say() else { return Ok(of.clone()) };
            let id = basic_info.has_id().then(|| basic_info.id());
            let builder = Type::primitive_type_builder(basic_info.name(), *physical_type)
                .with_repetition(basic_info.repetition())
                .with_logical_type(annotation)
                .with_length(*type_length)
                .with_id(id);
            Ok(Arc::new(builder.build()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, RecordBatch, StringArray};
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::file::properties::WriterProperties;

    use super::*;

    /// The footer of a file of so many row groups, and the file's bytes.
    fn footer(groups: usize) -> (Vec<u8>, u64) {
        let rows = 0..2 * groups as i64;
        let n = Int64Array::from_iter_values(rows.clone());
        let s = StringArray::from_iter_values(rows.map(|row| format!("text {row}")));
        let batch =
            RecordBatch::try_from_iter([("n", Arc::new(n) as _), ("s", Arc::new(s) as _)]).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
        let mut file = vec![];
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let size = file.len() as u64;
        let begin = begins_at(&file[file.len() - TAIL as usize..], size).unwrap();
        (file[begin as usize..file.len() - TAIL as usize].to_vec(), size)
    }

    #[test]
    fn parts_of_a_footer_are_decoded_as_the_whole_is() {
        for groups in [1, LEAST_GROUPS, 2 * LEAST_GROUPS, 5 * LEAST_GROUPS + 1] {
            let (footer, size) = footer(groups);
            let found = walk(&footer).unwrap();
            assert_eq!(found.groups.len(), groups);
            let whole = ParquetMetaDataReader::decode_metadata(&footer).unwrap();
            assert_eq!(decode_on_all_cores(&footer, &found).unwrap(), whole);
            assert_eq!(decode(&footer, size).unwrap().num_row_groups(), groups);
        }
    }

    #[test]
    fn a_footer_that_is_cut_is_no_footer() {
        let (footer, size) = footer(2 * LEAST_GROUPS);
        for length in (0..footer.len()).step_by(97) {
            assert!(decode(&footer[..length], size).is_err(), "{length} bytes");
        }
    }
}
