//! What a footer says of types, as the parquet crate is to read them.
//!
//! - Bytes that are to be strings are said to be such: the crate checks for UTF-8 only what is
//!   annotated STRING, and makes strings of JSON, and of whatever the Arrow schema within the file
//!   or the table's schema say, without a look at it. ENUM is a string that it has for bytes.
//! - Dictionaries of numbers are their values, intervals and long decimals what it reads whole.
//! - Columns have the names that they have in the table.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{
    DECIMAL256_MAX_PRECISION, DataType, FieldRef, Fields, IntervalUnit, Schema,
};
use datafusion::parquet::arrow::{encode_arrow_schema, parquet_to_arrow_schema};
use datafusion::parquet::basic::{ConvertedType, DecimalType, LogicalType, Type as Physical};
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, KeyValue, ParquetMetaData, RowGroupMetaData,
};
use datafusion::parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type, TypePtr};

use super::{FooterResult, broken, with_file};
use crate::io::same_column::own_column;

/// Most digits of a decimal.
const MOST_DIGITS: i32 = DECIMAL256_MAX_PRECISION as i32;

/// Where the crate keeps an Arrow schema.
pub(in crate::io) const ARROW_SCHEMA: &str = "ARROW:schema";

/// The metadata with an Arrow schema that has no dictionaries but of texts and bytes: the crate
/// (59) reads no others of some types. `schema`: the Arrow schema as it is. `None` where there are
/// none.
pub(in crate::io) fn without_coded_numbers(
    metadata: &ParquetMetaData,
    schema: &Schema,
) -> Option<ParquetMetaData> {
    let fields: Vec<FieldRef> = schema.fields().iter().map(with_plain_numbers).collect();
    if fields.iter().zip(schema.fields()).all(|(plain, field)| Arc::ptr_eq(plain, field)) {
        return None;
    }
    let of_file = metadata.file_metadata();
    let mut pairs = of_file.key_value_metadata().cloned().unwrap_or_default();
    pairs.retain(|pair| pair.key != ARROW_SCHEMA);
    pairs.push(KeyValue::new(ARROW_SCHEMA.into(), encode_arrow_schema(&Schema::new(fields))));
    Some(with_file(metadata, saying(of_file, Some(pairs), of_file.schema_descr_ptr())))
}

/// A field with the values of dictionaries in their place, but for those of texts and bytes; the
/// same one where there are none.
fn with_plain_numbers(field: &FieldRef) -> FieldRef {
    let within = |item: &FieldRef, of: &dyn Fn(FieldRef) -> DataType| {
        let plain = with_plain_numbers(item);
        (!Arc::ptr_eq(&plain, item)).then(|| of(plain))
    };
    let plain = match field.data_type() {
        DataType::Dictionary(_, values) => {
            let stays =
                is_string(values) || matches!(**values, DataType::Binary | DataType::LargeBinary);
            (!stays).then(|| values.as_ref().clone())
        }
        DataType::List(item) => within(item, &DataType::List),
        DataType::LargeList(item) => within(item, &DataType::LargeList),
        DataType::FixedSizeList(item, size) => {
            within(item, &|item| DataType::FixedSizeList(item, *size))
        }
        DataType::Map(entries, sorted) => within(entries, &|item| DataType::Map(item, *sorted)),
        DataType::Struct(fields) => {
            let plain: Fields = fields.iter().map(with_plain_numbers).collect();
            let is_same = plain.iter().zip(fields).all(|(plain, own)| Arc::ptr_eq(plain, own));
            (!is_same).then_some(DataType::Struct(plain))
        }
        _ => None,
    };
    match plain {
        Some(dtype) => Arc::new(field.as_ref().clone().with_data_type(dtype)),
        None => field.clone(),
    }
}

/// The metadata without the Arrow schema that its writer left.
pub(in crate::io) fn without_arrow_schema(metadata: ParquetMetaData) -> ParquetMetaData {
    let of_file = metadata.file_metadata();
    let mut pairs = of_file.key_value_metadata().cloned().unwrap_or_default();
    pairs.retain(|pair| pair.key != ARROW_SCHEMA);
    with_file(&metadata, saying(of_file, Some(pairs), of_file.schema_descr_ptr()))
}

/// Columns of bytes of one length that nothing says the meaning of.
pub(in crate::io) fn bare_bytes(schema: &SchemaDescriptor) -> Vec<String> {
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
pub(in crate::io) struct Intervals {
    /// Columns of a table.
    pub(in crate::io) columns: Vec<String>,
    /// Columns that have some within.
    pub(in crate::io) nested: Vec<String>,
}

/// The metadata with intervals as bytes: the parquet crate (59) reads days and milliseconds of
/// them, and leaves the months out. `None` where there are none, or where an Arrow schema tells that
/// they have fewer parts.
pub(in crate::io) fn with_bare_intervals(
    metadata: &ParquetMetaData,
) -> FooterResult<Option<(ParquetMetaData, Intervals)>> {
    let of_file = metadata.file_metadata();
    let schema = of_file.schema_descr();
    let is_any = |column: &ColumnDescPtr| column.converted_type() == ConvertedType::INTERVAL;
    if !schema.columns().iter().any(is_any) {
        return Ok(None);
    }
    let arrow = match has_arrow_schema(of_file) {
        true => Some(parquet_to_arrow_schema(schema, of_file.key_value_metadata())?),
        false => None,
    };
    let has_all_parts = |column: &ColumnDescPtr| {
        let Some(arrow) = &arrow else { return true };
        let whole = DataType::Interval(IntervalUnit::MonthDayNano);
        let parts = column.path().parts();
        parts.len() == 1
            && arrow.field_with_name(&parts[0]).is_ok_and(|field| *field.data_type() == whole)
    };
    let is_interval = |column: &ColumnDescPtr| is_any(column) && has_all_parts(column);
    if !schema.columns().iter().any(is_interval) {
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

fn has_arrow_schema(of_file: &FileMetaData) -> bool {
    let mut pairs = of_file.key_value_metadata().into_iter().flatten();
    pairs.any(|pair| pair.key == ARROW_SCHEMA)
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

/// The metadata with the names that the columns have in a table, where these differ by case alone.
/// `None` where none does.
pub(in crate::io) fn with_names_of(
    metadata: &ParquetMetaData,
    table: &Schema,
) -> FooterResult<Option<ParquetMetaData>> {
    let of_file = metadata.file_metadata();
    let root = of_file.schema_descr().root_schema_ptr();
    let arrow = parquet_to_arrow_schema(of_file.schema_descr(), of_file.key_value_metadata())?;
    let mut fields = arrow.fields().to_vec();
    let own: HashSet<&String> = arrow.fields().iter().map(|field| field.name()).collect();
    for field in table.fields().iter().filter(|field| !own.contains(field.name())) {
        if let Some(at) = own_column(table, &arrow, field.name()) {
            fields[at] = Arc::new(fields[at].as_ref().clone().with_name(field.name()));
        }
    }
    let Type::GroupType { basic_info, fields: types } = root.as_ref() else { return Ok(None) };
    if fields[..] == arrow.fields()[..] || fields.len() != types.len() {
        return Ok(None);
    }
    let types = types.iter().zip(&fields).map(|(of, field)| named(of, field.name()));
    let root = Type::GroupType {
        basic_info: basic_info.clone(),
        fields: types.collect::<FooterResult<_>>()?,
    };
    let mut pairs = of_file.key_value_metadata().cloned();
    for pair in pairs.iter_mut().flatten().filter(|pair| pair.key == ARROW_SCHEMA) {
        pair.value = Some(encode_arrow_schema(&Schema::new(fields.clone())));
    }
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(root)));
    Ok(Some(with_file(metadata, saying(of_file, pairs, schema))))
}

/// The type with another name.
fn named(of: &TypePtr, name: &str) -> FooterResult<TypePtr> {
    let info = of.get_basic_info();
    if info.name() == name {
        return Ok(of.clone());
    }
    let id = info.has_id().then(|| info.id());
    let (converted, logical) = (info.converted_type(), info.logical_type_ref().cloned());
    Ok(Arc::new(match of.as_ref() {
        Type::GroupType { fields, .. } => Type::group_type_builder(name)
            .with_repetition(info.repetition())
            .with_converted_type(converted)
            .with_logical_type(logical)
            .with_id(id)
            .with_fields(fields.clone())
            .build()?,
        Type::PrimitiveType { physical_type, type_length, scale, precision, .. } => {
            Type::primitive_type_builder(name, *physical_type)
                .with_repetition(info.repetition())
                .with_converted_type(converted)
                .with_logical_type(logical)
                .with_length(*type_length)
                .with_precision(*precision)
                .with_scale(*scale)
                .with_id(id)
                .build()?
        }
    }))
}

/// The metadata with an annotation as STRING for all bytes that Arrow has as strings, by the file's
/// own account or in the table's schema, and for ENUM; and without one where the table has bytes.
/// For a table, decimals in BYTE_ARRAY are said to have 76 digits: the crate (59) panics where one
/// of fewer has more bytes than 16, which may be its sign. The table's type narrows them. `None`
/// where nothing is to be said.
pub(in crate::io) fn with_strings(
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
    for (read, column) in reads.iter_mut().zip(schema.columns()) {
        let is_enum = column.converted_type() == ConvertedType::ENUM
            || column.logical_type_ref() == Some(&LogicalType::Enum);
        if is_enum && *read == FooterRead::AsItIs && !has_arrow_schema(of_file) {
            *read = FooterRead::Text;
        }
    }
    let to_say = |at: usize| {
        let column = schema.column(at);
        match reads[at] {
            FooterRead::Bytes => Some(None),
            FooterRead::Text if column.converted_type() != ConvertedType::UTF8 => {
                Some(Some(LogicalType::String))
            }
            FooterRead::AsItIs
                if table.is_some()
                    && column.converted_type() == ConvertedType::DECIMAL
                    && column.type_precision() < MOST_DIGITS =>
            {
                let (scale, precision) = (column.type_scale(), MOST_DIGITS);
                Some(Some(LogicalType::Decimal(DecimalType { scale, precision })))
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
            let mut builder = Type::primitive_type_builder(basic_info.name(), *physical_type)
                .with_repetition(basic_info.repetition())
                .with_length(*type_length)
                .with_id(id);
            if let Some(LogicalType::Decimal(DecimalType { scale, precision })) = annotation {
                builder = builder.with_precision(precision).with_scale(scale);
            }
            Ok(Arc::new(builder.with_logical_type(annotation).build()?))
        }
    }
}
