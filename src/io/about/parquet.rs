//! What the footers of Parquet files say: as it is written, also where readers believe none of it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BinaryViewArray, BooleanArray, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Schema, TimeUnit};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use datafusion::parquet::file::statistics::Statistics;
use datafusion::parquet::schema::types::Type as SchemaElement;

use super::chunk_values::{column_orders, encoding_stats, geo_boxes, geo_types, no_notes};
use super::{batch, integers, of_file, texts};
use crate::error::{Error, Result};
use crate::io::footer::{self, TAIL};
use crate::io::guard::caught;
use crate::sql::type_name;
use warpframe_device::interrupt;

/// A file and its footer.
struct FileFooter {
    path: PathBuf,
    metadata: ParquetMetaData,
    file_bytes: u64,
    footer_bytes: u64,
    /// As the file's types tell it, whatever its writer noted.
    schema: Option<Schema>,
}

fn read_all(files: &[PathBuf]) -> Result<Vec<FileFooter>> {
    let read = |path: &PathBuf| {
        interrupt::check()?;
        read(path)
    };
    files.iter().map(read).collect()
}

fn read(path: &Path) -> Result<FileFooter> {
    let io = |error| Error::io(path, error);
    let wrong = |error: ParquetError| {
        let text = error.to_string();
        of_file(path, text.strip_prefix("Parquet error: ").unwrap_or(&text))
    };
    let mut file = File::open(path).map_err(io)?;
    let file_bytes = file.metadata().map_err(io)?.len();
    let Some(end) = file_bytes.checked_sub(TAIL) else {
        return Err(of_file(path, format!("{file_bytes} bytes are no Parquet file")));
    };
    let mut read = |from: u64, bytes: u64| {
        let mut read = vec![];
        file.seek(SeekFrom::Start(from)).map_err(io)?;
        file.by_ref().take(bytes).read_to_end(&mut read).map_err(io)?;
        Ok::<_, Error>(read)
    };
    let tail = read(end, TAIL)?;
    let begin = footer::begins_at(&tail, file_bytes).map_err(wrong)?;
    let bytes = read(begin, end - begin)?;
    let metadata = caught(|| footer::decode_as_written(&bytes, file_bytes)).map_err(wrong)?;
    let of_file = metadata.file_metadata();
    // Types of files that no Arrow type has are left out.
    let schema = caught(|| parquet_to_arrow_schema(of_file.schema_descr(), None)).ok();
    let path = path.to_path_buf();
    Ok(FileFooter { path, metadata, file_bytes, footer_bytes: end - begin, schema })
}

fn names<'f>(footers: impl Iterator<Item = &'f FileFooter>) -> ArrayRef {
    texts(footers.map(|footer| Some(footer.path.to_string_lossy())))
}

pub(super) fn files(files: &[PathBuf]) -> Result<RecordBatch> {
    let footers = read_all(files)?;
    let of = |value: &dyn Fn(&FileFooter) -> i64| integers(footers.iter().map(|f| Some(value(f))));
    let bytes = |value: &dyn Fn(&FileFooter) -> u64| {
        Arc::new(footers.iter().map(|f| Some(value(f))).collect::<UInt64Array>()) as ArrayRef
    };
    let writers = footers.iter().map(|footer| footer.metadata.file_metadata().created_by());
    let none = || texts(footers.iter().map(|_| None::<&str>));
    batch(vec![
        ("file_name", names(footers.iter())),
        ("created_by", texts(writers)),
        ("num_rows", of(&|footer| footer.metadata.file_metadata().num_rows())),
        ("num_row_groups", of(&|footer| footer.metadata.num_row_groups() as i64)),
        ("format_version", of(&|footer| footer.metadata.file_metadata().version().into())),
        // Encrypted footers are not read.
        ("encryption_algorithm", none()),
        ("footer_signing_key_metadata", none()),
        ("file_size_bytes", bytes(&|footer| footer.file_bytes)),
        ("footer_size", bytes(&|footer| footer.footer_bytes)),
        ("column_orders", column_orders(footers.iter().map(|of| of.metadata.file_metadata()))),
    ])
}

pub(super) fn notes(files: &[PathBuf]) -> Result<RecordBatch> {
    let footers = read_all(files)?;
    let rows = footers.iter().flat_map(|footer| {
        let notes = footer.metadata.file_metadata().key_value_metadata();
        notes.into_iter().flatten().map(move |note| (footer, note))
    });
    let rows: Vec<_> = rows.collect();
    let keys = rows.iter().map(|(_, note)| Some(note.key.as_bytes()));
    let values = rows.iter().map(|(_, note)| note.value.as_deref().map(str::as_bytes));
    batch(vec![
        ("file_name", names(rows.iter().map(|(footer, _)| *footer))),
        ("key", Arc::new(keys.collect::<BinaryViewArray>())),
        ("value", Arc::new(values.collect::<BinaryViewArray>())),
    ])
}

/// A column chunk.
struct ChunkRow<'f> {
    footer: &'f FileFooter,
    group_number: usize,
    group: &'f RowGroupMetaData,
    number: usize,
    chunk: &'f ColumnChunkMetaData,
    /// The least and the greatest value.
    bounds: [Option<String>; 2],
}

pub(super) fn chunks(files: &[PathBuf]) -> Result<RecordBatch> {
    let footers = read_all(files)?;
    let mut rows = vec![];
    for footer in &footers {
        let types = leaf_types(footer);
        for (group_number, group) in footer.metadata.row_groups().iter().enumerate() {
            for (number, chunk) in group.columns().iter().enumerate() {
                let dtype = types.get(number).and_then(Option::as_ref);
                let bounds = bounds(chunk, dtype);
                rows.push(ChunkRow { footer, group_number, group, number, chunk, bounds });
            }
        }
    }
    let number = |value: &dyn Fn(&ChunkRow<'_>) -> Option<i64>| integers(rows.iter().map(value));
    let text = |value: &dyn Fn(&ChunkRow<'_>) -> Option<String>| texts(rows.iter().map(value));
    let exact = |value: &dyn Fn(&Statistics) -> bool, at: usize| {
        let of =
            |row: &ChunkRow<'_>| row.bounds[at].as_ref().and(row.chunk.statistics()).map(value);
        Arc::new(rows.iter().map(of).collect::<BooleanArray>()) as ArrayRef
    };
    let statistic = |value: &dyn Fn(&Statistics) -> Option<u64>| {
        number(&|row| row.chunk.statistics().and_then(value).and_then(|n| i64::try_from(n).ok()))
    };
    let all = || rows.iter().map(|row| row.chunk);
    let bound = |at: usize| text(&|row| row.bounds[at].clone());
    batch(vec![
        ("file_name", names(rows.iter().map(|row| row.footer))),
        ("row_group_id", number(&|row| Some(row.group_number as i64))),
        ("row_group_num_rows", number(&|row| Some(row.group.num_rows()))),
        ("row_group_num_columns", number(&|row| Some(row.group.num_columns() as i64))),
        ("row_group_bytes", number(&|row| Some(row.group.total_byte_size()))),
        ("column_id", number(&|row| Some(row.number as i64))),
        ("file_offset", number(&|row| Some(row.chunk.file_offset()))),
        ("num_values", number(&|row| Some(row.chunk.num_values()))),
        ("path_in_schema", text(&|row| Some(row.chunk.column_path().parts().join(", ")))),
        ("type", text(&|row| Some(format!("{:?}", row.chunk.column_type())))),
        ("stats_min", bound(0)),
        ("stats_max", bound(1)),
        ("stats_null_count", statistic(&|of| of.null_count_opt())),
        ("stats_distinct_count", statistic(&|of| of.distinct_count_opt())),
        ("stats_min_value", bound(0)),
        ("stats_max_value", bound(1)),
        ("compression", text(&|row| Some(format!("{:?}", row.chunk.compression_codec())))),
        ("encodings", text(&|row| Some(encodings(row.chunk)))),
        ("index_page_offset", number(&|row| row.chunk.index_page_offset())),
        ("dictionary_page_offset", number(&|row| row.chunk.dictionary_page_offset())),
        ("data_page_offset", number(&|row| Some(row.chunk.data_page_offset()))),
        ("total_compressed_size", number(&|row| Some(row.chunk.compressed_size()))),
        ("total_uncompressed_size", number(&|row| Some(row.chunk.uncompressed_size()))),
        ("key_value_metadata", no_notes(rows.len())?),
        ("bloom_filter_offset", number(&|row| row.chunk.bloom_filter_offset())),
        ("bloom_filter_length", number(&|row| row.chunk.bloom_filter_length().map(i64::from))),
        ("min_is_exact", exact(&|of| of.min_is_exact(), 0)),
        ("max_is_exact", exact(&|of| of.max_is_exact(), 1)),
        ("row_group_compressed_bytes", number(&|row| Some(compressed(row.group)))),
        ("geo_bbox", geo_boxes(all())?),
        ("geo_types", geo_types(all())),
        ("encoding_stats", encoding_stats(all())?),
        // The parquet crate (59) does not read it.
        ("stats_nan_count", number(&|_| None)),
        ("column_index_offset", number(&|row| row.chunk.column_index_offset())),
        ("column_index_length", number(&|row| row.chunk.column_index_length().map(i64::from))),
        ("offset_index_offset", number(&|row| row.chunk.offset_index_offset())),
        ("offset_index_length", number(&|row| row.chunk.offset_index_length().map(i64::from))),
    ])
}

fn compressed(group: &RowGroupMetaData) -> i64 {
    group.columns().iter().map(|chunk| chunk.compressed_size()).fold(0, i64::saturating_add)
}

fn encodings(chunk: &ColumnChunkMetaData) -> String {
    chunk.encodings().map(|encoding| format!("{encoding:?}")).collect::<Vec<_>>().join(", ")
}

/// The least and the greatest value of a chunk as texts.
fn bounds(chunk: &ColumnChunkMetaData, dtype: Option<&DataType>) -> [Option<String>; 2] {
    let Some(of) = chunk.statistics() else { return [None, None] };
    let physical = chunk.column_type();
    [of.min_bytes_opt(), of.max_bytes_opt()]
        .map(|bytes| bytes.and_then(|bytes| shown(bytes, physical, dtype)))
}

/// The text of a value of the plain encoding; nothing where it has no such.
fn shown(bytes: &[u8], physical: Physical, dtype: Option<&DataType>) -> Option<String> {
    let plain = match physical {
        Physical::BOOLEAN => return bytes.first().map(|byte| (*byte != 0).to_string()),
        Physical::INT32 => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
        Physical::INT64 => i64::from_le_bytes(bytes.try_into().ok()?),
        Physical::FLOAT => return Some(f32::from_le_bytes(bytes.try_into().ok()?).to_string()),
        Physical::DOUBLE => return Some(f64::from_le_bytes(bytes.try_into().ok()?).to_string()),
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => return shown_bytes(bytes, dtype),
        Physical::INT96 => return None,
    };
    let narrow = i32::try_from(plain).ok();
    let value = match dtype? {
        DataType::Date32 => ScalarValue::Date32(narrow),
        DataType::Time32(TimeUnit::Millisecond) => ScalarValue::Time32Millisecond(narrow),
        DataType::Time64(TimeUnit::Microsecond) => ScalarValue::Time64Microsecond(Some(plain)),
        DataType::Time64(TimeUnit::Nanosecond) => ScalarValue::Time64Nanosecond(Some(plain)),
        DataType::Timestamp(unit, zone) => {
            let (value, zone) = (Some(plain), zone.clone());
            match unit {
                TimeUnit::Second => ScalarValue::TimestampSecond(value, zone),
                TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(value, zone),
                TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(value, zone),
                TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(value, zone),
            }
        }
        DataType::Decimal128(precision, scale) => {
            ScalarValue::Decimal128(Some(plain.into()), *precision, *scale)
        }
        // Their bits are those of numbers without a sign.
        DataType::UInt64 => return Some((plain as u64).to_string()),
        dtype if dtype.is_unsigned_integer() => return Some((plain as u32).to_string()),
        _ => return Some(plain.to_string()),
    };
    text_of(&value)
}

fn shown_bytes(bytes: &[u8], dtype: Option<&DataType>) -> Option<String> {
    match dtype {
        Some(DataType::Decimal128(precision, scale)) => {
            let sign = if bytes.first().is_some_and(|first| *first >= 0x80) { 0xFF } else { 0 };
            let mut whole = [sign; 16];
            whole.get_mut(16usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
            let value = Some(i128::from_be_bytes(whole));
            text_of(&ScalarValue::Decimal128(value, *precision, *scale))
        }
        Some(dtype) if dtype.is_string() => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
    }
}

fn text_of(value: &ScalarValue) -> Option<String> {
    let array = value.to_array().ok()?;
    let options = FormatOptions::default();
    ArrayFormatter::try_new(array.as_ref(), &options).ok()?.value(0).try_to_string().ok()
}

/// An element of a schema, and its type in SQL where it has one.
struct ElementRow<'f> {
    footer: &'f FileFooter,
    number: usize,
    element: &'f SchemaElement,
    dtype: Option<DataType>,
}

fn elements(footer: &FileFooter) -> Vec<ElementRow<'_>> {
    let root = footer.metadata.file_metadata().schema_descr().root_schema();
    let mut rows = vec![ElementRow { footer, number: 0, element: root, dtype: None }];
    for (at, child) in root.get_fields().iter().enumerate() {
        let field = footer.schema.as_ref().and_then(|schema| schema.fields().get(at));
        add_element(&mut rows, footer, child, field.map(|field| field.data_type()));
    }
    rows
}

fn add_element<'f>(
    rows: &mut Vec<ElementRow<'f>>,
    footer: &'f FileFooter,
    element: &'f SchemaElement,
    dtype: Option<&DataType>,
) {
    rows.push(ElementRow { footer, number: rows.len(), element, dtype: dtype.cloned() });
    if !element.is_group() {
        return;
    }
    let is_whole = matches!(
        element.get_basic_info().converted_type(),
        ConvertedType::LIST | ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE
    );
    for (at, child) in element.get_fields().iter().enumerate() {
        // A list's group repeats within it, and what is within that is of the elements.
        let within = match dtype {
            Some(whole) if is_whole => Some(whole),
            Some(DataType::Struct(fields)) => fields.get(at).map(|field| field.data_type()),
            Some(DataType::Map(entries, _)) => match entries.data_type() {
                DataType::Struct(fields) => fields.get(at).map(|field| field.data_type()),
                _ => None,
            },
            Some(DataType::List(item)) => match (item.data_type(), element.get_fields().len()) {
                (item, 1) => Some(item),
                (DataType::Struct(fields), _) => fields.get(at).map(|field| field.data_type()),
                _ => None,
            },
            _ => None,
        };
        add_element(rows, footer, child, within);
    }
}

/// The types of columns of values, in their order.
fn leaf_types(footer: &FileFooter) -> Vec<Option<DataType>> {
    let leaves = elements(footer).into_iter().filter(|row| row.element.is_primitive());
    let within = |dtype: DataType| match dtype {
        DataType::List(item) => item.data_type().clone(),
        dtype => dtype,
    };
    leaves.map(|row| row.dtype.map(within)).collect()
}

pub(super) fn schemas(files: &[PathBuf]) -> Result<RecordBatch> {
    let footers = read_all(files)?;
    let rows: Vec<ElementRow<'_>> = footers.iter().flat_map(elements).collect();
    let number = |value: &dyn Fn(&SchemaElement) -> Option<i64>| {
        integers(rows.iter().map(|row| value(row.element)))
    };
    let text = |value: &dyn Fn(&ElementRow<'_>) -> Option<String>| texts(rows.iter().map(value));
    let decimals = |value: &dyn Fn(&SchemaElement) -> i32| {
        let is_decimal =
            |of: &SchemaElement| of.get_basic_info().converted_type() == ConvertedType::DECIMAL;
        number(&|of| (of.is_primitive() && is_decimal(of)).then(|| value(of).into()))
    };
    let repetition = |row: &ElementRow<'_>| {
        let info = row.element.get_basic_info();
        Some(if info.has_repetition() {
            format!("{:?}", info.repetition())
        } else {
            "REQUIRED".into()
        })
    };
    let converted = |row: &ElementRow<'_>| match row.element.get_basic_info().converted_type() {
        ConvertedType::NONE => None,
        converted => Some(format!("{converted:?}")),
    };
    let logical =
        |row: &ElementRow<'_>| row.element.get_basic_info().logical_type_ref().map(logical);
    let physical = |row: &ElementRow<'_>| {
        row.element.is_primitive().then(|| format!("{:?}", row.element.get_physical_type()))
    };
    batch(vec![
        ("file_name", names(rows.iter().map(|row| row.footer))),
        ("name", text(&|row| Some(row.element.name().into()))),
        ("type", text(&physical)),
        ("type_length", text(&|row| length(row.element).map(|length| length.to_string()))),
        ("repetition_type", text(&repetition)),
        ("num_children", number(&|of| of.is_group().then(|| of.get_fields().len() as i64))),
        ("converted_type", text(&converted)),
        ("scale", decimals(&|of| of.get_scale())),
        ("precision", decimals(&|of| of.get_precision())),
        (
            "field_id",
            number(&|of| of.get_basic_info().has_id().then(|| of.get_basic_info().id().into())),
        ),
        ("logical_type", text(&logical)),
        ("duckdb_type", text(&|row| row.dtype.as_ref().map(type_name))),
        ("column_id", integers(rows.iter().map(|row| Some(row.number as i64)))),
    ])
}

/// The bytes of values of one length.
fn length(element: &SchemaElement) -> Option<i32> {
    match element {
        SchemaElement::PrimitiveType { physical_type, type_length, .. } => {
            (*physical_type == Physical::FIXED_LEN_BYTE_ARRAY).then_some(*type_length)
        }
        SchemaElement::GroupType { .. } => None,
    }
}

/// A logical type as DuckDB writes it.
fn logical(of: &LogicalType) -> String {
    match of {
        LogicalType::Decimal(decimal) => {
            format!("DecimalType(scale={}, precision={})", decimal.scale, decimal.precision)
        }
        LogicalType::Time(time) => moment("TimeType", time.is_adjusted_to_u_t_c, &time.unit),
        LogicalType::Timestamp(time) => {
            moment("TimestampType", time.is_adjusted_to_u_t_c, &time.unit)
        }
        LogicalType::Integer(int) => {
            let signed = u8::from(int.is_signed);
            format!("IntType(bitWidth={}, isSigned={signed})", int.bit_width)
        }
        other => {
            let name = format!("{other:?}");
            let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
            format!("{}Type()", &name[..end])
        }
    }
}

fn moment(name: &str, is_utc: bool, unit: &impl std::fmt::Debug) -> String {
    format!("{name}(isAdjustedToUTC={}, unit={unit:?})", u8::from(is_utc))
}
