//! The types that columns of Arrow files have in a table, and their values.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, LargeListArray, ListArray, MapArray, StructArray,
};
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema};
use datafusion::arrow::error::ArrowError;

/// What a schema's columns become.
#[derive(Debug)]
pub(super) struct IpcTypes {
    /// As the decoder makes them: values of dictionaries are plain already.
    pub(super) decoded: Schema,
    /// As the table has them, without notes of the writer.
    pub(super) plain: Schema,
}

impl IpcTypes {
    /// # Errors
    /// A column of a type that is not read, by its name.
    pub(super) fn of(schema: &Schema) -> Result<IpcTypes, String> {
        let (mut decoded, mut plain_fields) = (vec![], vec![]);
        for field in schema.fields() {
            let of_column = |why| format!("column {:?}: {why}", field.name());
            decoded.push(decoded_field(field).map_err(of_column)?);
            plain_fields.push(plain_field(field));
        }
        Ok(IpcTypes { decoded: Schema::new(decoded), plain: Schema::new(plain_fields) })
    }
}

fn plain_field(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), plain_type(field.data_type()), field.is_nullable()))
}

/// A type without dictionaries, with views.
pub(crate) fn plain_type(dtype: &DataType) -> DataType {
    match dtype {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::List(item) => DataType::List(plain_field(item)),
        DataType::LargeList(item) => DataType::LargeList(plain_field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(plain_field(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(plain_field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain_field).collect()),
        other => other.clone(),
    }
}

/// A field whose dictionaries have plain values. Its other notes stay: the decoder finds
/// dictionaries by them.
fn decoded_field(field: &FieldRef) -> Result<FieldRef, String> {
    Ok(Arc::new(field.as_ref().clone().with_data_type(decoded_type(field.data_type())?)))
}

fn decoded_type(dtype: &DataType) -> Result<DataType, String> {
    let refused = |why: &str| Err(format!("its type {dtype} is not read: {why}"));
    Ok(match dtype {
        DataType::Dictionary(keys, values) => {
            // A value of few bytes may stand for many rows: those are not to take more memory than
            // the file makes likely.
            let plain = plain_type(values);
            let is_small =
                plain.is_primitive() || matches!(plain, DataType::Utf8View | DataType::BinaryView);
            if !(is_small || plain == DataType::Boolean) {
                return refused("dictionaries have values of one width, strings or bytes");
            }
            sound(&plain)?;
            DataType::Dictionary(keys.clone(), Box::new(plain))
        }
        DataType::List(item) => DataType::List(decoded_field(item)?),
        DataType::LargeList(item) => DataType::LargeList(decoded_field(item)?),
        DataType::FixedSizeList(_, size) if *size <= 0 => return refused("its size is no size"),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(decoded_field(item)?, *size),
        DataType::Map(entries, sorted) => {
            let is_pair =
                matches!(entries.data_type(), DataType::Struct(fields) if fields.len() == 2);
            if !is_pair || entries.is_nullable() {
                return refused("its entries are no pairs");
            }
            DataType::Map(decoded_field(entries)?, *sorted)
        }
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(decoded_field).collect::<Result<Fields, String>>()?)
        }
        DataType::Union(..)
        | DataType::RunEndEncoded(..)
        | DataType::ListView(_)
        | DataType::LargeListView(_) => {
            return refused("no column has it");
        }
        other => {
            sound(other)?;
            other.clone()
        }
    })
}

/// Whether the numbers in a type are such that there are values.
fn sound(dtype: &DataType) -> Result<(), String> {
    let is_decimal = |precision: u8, most: u8, scale: i8| {
        (1..=most).contains(&precision) && scale.unsigned_abs() <= most && scale <= precision as i8
    };
    let is_sound = match dtype {
        DataType::FixedSizeBinary(size) => *size >= 0,
        DataType::Decimal32(precision, scale) => is_decimal(*precision, 9, *scale),
        DataType::Decimal64(precision, scale) => is_decimal(*precision, 18, *scale),
        DataType::Decimal128(precision, scale) => is_decimal(*precision, 38, *scale),
        DataType::Decimal256(precision, scale) => is_decimal(*precision, 76, *scale),
        _ => true,
    };
    if is_sound { Ok(()) } else { Err(format!("there is no type {dtype}")) }
}

/// The values of a column that the decoder made, in the type that the table has.
///
/// # Errors
/// Values that the type does not hold.
pub(super) fn plain(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    let nulls = array.nulls().cloned();
    Ok(match to {
        _ if matches!(array.data_type(), DataType::Dictionary(..)) => {
            let dictionary = array.as_any_dictionary();
            take(dictionary.values(), dictionary.keys(), None)?
        }
        DataType::List(item) => {
            let list = array.as_list::<i32>();
            let values = plain(list.values(), item.data_type())?;
            Arc::new(ListArray::try_new(item.clone(), list.offsets().clone(), values, nulls)?)
        }
        DataType::LargeList(item) => {
            let list = array.as_list::<i64>();
            let values = plain(list.values(), item.data_type())?;
            Arc::new(LargeListArray::try_new(item.clone(), list.offsets().clone(), values, nulls)?)
        }
        DataType::FixedSizeList(item, size) => {
            let values = plain(array.as_fixed_size_list().values(), item.data_type())?;
            Arc::new(FixedSizeListArray::try_new(item.clone(), *size, values, nulls)?)
        }
        DataType::Map(entries, sorted) => {
            let map = array.as_map();
            let of_map: ArrayRef = Arc::new(map.entries().clone());
            let pairs = plain(&of_map, entries.data_type())?.as_struct().clone();
            Arc::new(MapArray::try_new(
                entries.clone(),
                map.offsets().clone(),
                pairs,
                nulls,
                *sorted,
            )?)
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| plain(column, field.data_type()));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, nulls, array.len())?)
        }
        to => cast(array, to)?,
    })
}
