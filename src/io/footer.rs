//! What is taken from a Parquet file's footer, and what is not.
//!
//! Bounds and sizes are checked before anything is allocated or read by them. Then the footer is
//! made to say less, or more, than the file does, for the parquet crate and DataFusion take it at
//! its word:
//! - Statistics and Bloom filters of floats go. Writers leave NaN out of the least and greatest
//!   value and the crate (59) does not know the field `nan_count`, which says whether there is any;
//!   a filter does not tell -0.0 from 0.0. So do those of INT96, which have no order, those of
//!   an age when all bytes were compared as signed numbers, and those without a number of nulls:
//!   the crate and DataFusion take that for none. Where one cannot be read, all go.
//! - A place of a dictionary that is none goes: the chunk begins with its first page then.
//! - Types are said as they are to be read (`footer/types.rs`).

mod types;

use std::thread::ScopedJoinHandle;

use datafusion::parquet::basic::{ConvertedType, LogicalType, SortOrder, Type as Physical};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, FooterTail, ParquetMetaData, ParquetMetaDataBuilder,
    ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy, RowGroupMetaData,
};

pub(super) use self::types::{
    ARROW_SCHEMA, bare_bytes, with_bare_intervals, with_names_of, with_strings,
    without_arrow_schema, without_coded_numbers,
};
use super::guard::caught;
use super::thrift::{self, Broken, Compact, I32, LIST, STRUCT};

/// Bytes behind the footer: its length and the magic word.
pub(super) const TAIL: u64 = 8;

/// Most groups within one another in a schema. Its readers, here and in the crates, need stack for
/// each; a list of lists takes two.
const DEEPEST: usize = 128;

/// Bytes of a column chunk that is not compressed; more are no size.
const MOST_UNCOMPRESSED: i64 = 1 << 40;

type FooterResult<T> = std::result::Result<T, ParquetError>;

fn broken<T>(what: impl Into<String>) -> FooterResult<T> {
    Err(ParquetError::General(what.into()))
}

/// Where the footer begins in a file of so many bytes that ends in `tail`.
pub(super) fn begins_at(tail: &[u8], file: u64) -> FooterResult<u64> {
    let tail = FooterTail::try_from(tail)?;
    if tail.is_encrypted_footer() {
        return broken("it is encrypted Parquet, which is not read yet");
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
    if groups.is_encrypted {
        return broken("it has encrypted columns, which are not read yet");
    }
    let bare = ParquetMetaDataOptions::new()
        .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
    let metadata = decode_on_all_cores(footer, &groups, None)
        // Readers that need no statistics do not look at them.
        .or_else(|error| decode_on_all_cores(footer, &groups, Some(&bare)).map_err(|_| error))?;
    let metadata = without_untold(metadata, file)?;
    let rows = check(&metadata, file)?;
    Ok(match metadata.file_metadata().num_rows() == rows {
        true => metadata,
        // It is said twice. DataFusion believes this one, all readers count those of row groups.
        false => with_file(&metadata, with_rows(metadata.file_metadata(), rows)),
    })
}

/// Decodes the footer of a file of so many bytes as it is written.
///
/// # Errors
/// As [`decode`].
pub(super) fn decode_as_written(footer: &[u8], file: u64) -> FooterResult<ParquetMetaData> {
    let groups = walk(footer).or_else(|why| broken(format!("its footer is damaged: {why}")))?;
    let whole = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
    let metadata = decode_on_all_cores(footer, &groups, Some(&whole))?;
    check(&metadata, file)?;
    Ok(metadata)
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
    /// Whether columns are encrypted, though the footer is not.
    is_encrypted: bool,
}

/// Least row groups that a thread decodes: starting it takes as long as a few dozen.
const LEAST_GROUPS: usize = 64;
/// Most threads that decode one footer.
const DECODERS: usize = 8;

/// Decodes a footer that was walked over. Parts of a long one are decoded side by side, each as the
/// footer of a file of some of the row groups.
fn decode_on_all_cores(
    footer: &[u8],
    Groups { list, groups, end, .. }: &Groups,
    options: Option<&ParquetMetaDataOptions>,
) -> FooterResult<ParquetMetaData> {
    let cores = warpframe_device::cores::cores();
    let parts = (groups.len() / LEAST_GROUPS).min(DECODERS).min(cores);
    if parts < 2 {
        return ParquetMetaDataReader::decode_metadata_with_options(footer, options);
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
        ParquetMetaDataReader::decode_metadata_with_options(&part, options)
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
    let Some(first) = parts.next() else {
        return ParquetMetaDataReader::decode_metadata_with_options(footer, options);
    };
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
    const ENCRYPTION: i64 = 8;
    let (mut found, mut is_encrypted): (Vec<Groups>, bool) = (vec![], false);
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
                found.push(Groups { list, groups, end: at(walked), is_encrypted: false });
                Ok(())
            }
            (ENCRYPTION, STRUCT) => {
                is_encrypted = true;
                walked.skip(kind)
            }
            (_, kind) => walked.skip(kind),
        }
    })?;
    let one = found.pop().filter(|_| found.is_empty());
    Ok(Groups { is_encrypted, ..one.unwrap_or_default() })
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

/// Whether a column chunk's statistics bound its values, and say how many are null.
fn is_told(chunk: &ColumnChunkMetaData) -> bool {
    let column = chunk.column_descr();
    if let Some(of) = chunk.statistics()
        && column.max_def_level() > 0
        && of.null_count_opt().is_none_or(|nulls| nulls > chunk.num_values().max(0) as u64)
    {
        return false;
    }
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
    // Some writers put 0 for none, or the place of the data.
    let data = column.data_page_offset();
    let dictionary =
        column.dictionary_page_offset().filter(|at| *at > 0 && (*at < data || data <= 0));
    if told
        && index
        && pages
        && bloom
        && size == column.uncompressed_size()
        && dictionary == column.dictionary_page_offset()
    {
        return Ok(column);
    }
    let mut builder = column
        .into_builder()
        .set_total_uncompressed_size(size)
        .set_dictionary_page_offset(dictionary);
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
            assert_eq!(decode_on_all_cores(&footer, &found, None).unwrap(), whole);
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
