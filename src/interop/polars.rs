//! Record batches to and from polars-arrow, through the Arrow C data interface: buffers are shared,
//! not copied, but for those that are aligned worse than the receiver needs (views and 16-byte
//! integers).
//!
//! A Polars `Series` is a list of chunks, each of them a `Box<dyn polars_arrow::array::Array>`:
//! convert chunk by chunk. The types are those that the engine's columns have: integers, floats,
//! booleans, dates, timestamps, decimals, strings, dictionaries of strings, lists and structs. What
//! Polars alone has, such as 128-bit integers, is an error.

use std::collections::HashMap;
use std::sync::Arc;

use crate::arrow::array::{
    Array as ArrowArray, RecordBatch, RecordBatchOptions, make_array, new_empty_array,
};
use crate::arrow::datatypes::{Field as ArrowField, Schema};
use crate::arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use polars_arrow::array::{
    Array, DictionaryArray, FixedSizeListArray, ListArray, StructArray, Utf8Array,
};
use polars_arrow::datatypes::{ArrowDataType, Field, Metadata};
use polars_arrow::offset::{Offset, OffsetsBuffer};
use polars_arrow::{ffi, match_integer_type};

use crate::column::Repr;
use crate::error::{Error, Result};

/// The columns of a record batch, as polars-arrow has them.
///
/// # Errors
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where a column's type is none of the
/// engine's, or polars-arrow refuses it (decimals of negative scale).
///
/// ```
/// use warpframe::arrow::array::{Int64Array, RecordBatch, StringViewArray};
/// use std::sync::Arc;
/// use warpframe::interop::polars::{from_polars_arrow, to_polars_arrow};
///
/// let batch = RecordBatch::try_from_iter([
///     ("id", Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])) as _),
///     ("name", Arc::new(StringViewArray::from(vec!["one", "two", "a name of more than 12 bytes"])) as _),
/// ])?;
/// let columns = to_polars_arrow(&batch)?;
/// assert_eq!(columns[0].0.name.as_str(), "id");
/// assert_eq!(columns[0].1.null_count(), 1);
/// assert_eq!(from_polars_arrow(columns)?.columns(), batch.columns());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn to_polars_arrow(batch: &RecordBatch) -> Result<Vec<(Field, Box<dyn Array>)>> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    columns.map(|(field, array)| to_polars_column(field, array)).collect()
}

/// A record batch of polars-arrow columns, all of one length.
///
/// # Errors
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where a column's type is none of the
/// engine's, [`ErrorKind::Plan`](crate::ErrorKind::Plan) where columns differ in length, or a
/// column that is said to have no nulls has one.
///
/// ```
/// use polars_arrow::array::{Array, Float64Array};
/// use polars_arrow::datatypes::{ArrowDataType, Field};
/// use warpframe::interop::polars::from_polars_arrow;
///
/// let field = Field::new("x".into(), ArrowDataType::Float64, true);
/// let batch = from_polars_arrow(vec![(field, Float64Array::from_vec(vec![1.5, 2.5]).boxed())])?;
/// assert_eq!((batch.num_rows(), batch.schema().field(0).name().as_str()), (2, "x"));
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn from_polars_arrow(columns: Vec<(Field, Box<dyn Array>)>) -> Result<RecordBatch> {
    let rows = columns.first().map_or(0, |(_, array)| array.len());
    let mut fields = Vec::with_capacity(columns.len());
    let mut arrays = Vec::with_capacity(columns.len());
    for (field, array) in columns {
        let (field, array) = from_polars_column(field, array)?;
        fields.push(field);
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?)
}

fn to_polars_column(field: &ArrowField, array: &dyn ArrowArray) -> Result<(Field, Box<dyn Array>)> {
    if Repr::of(array.data_type()).is_none() {
        return Err(unsupported(field.name(), array.data_type()));
    }
    let refused = |error: &dyn std::fmt::Display| {
        Error::unsupported(
            format!("column {:?} of type {} in Polars", field.name(), array.data_type()),
            error.to_string(),
        )
    };
    let (array, schema) = to_ffi(&array.to_data())?;
    // SAFETY: both structures are the C data interface's `ArrowSchema`, declared `repr(C)` with the
    // same fields in the same order by either crate. Ownership moves with the value: its release
    // callback is called once, by the receiver.
    let schema = unsafe { std::mem::transmute::<FFI_ArrowSchema, ffi::ArrowSchema>(schema) };
    // SAFETY: arrow-rs made the schema, so it is valid.
    let imported = unsafe { ffi::import_field_from_c(&schema) }.map_err(|error| refused(&error))?;
    // SAFETY: as for the schema, with the interface's `ArrowArray`.
    let array = unsafe { std::mem::transmute::<FFI_ArrowArray, ffi::ArrowArray>(array) };
    // SAFETY: arrow-rs made the array, so it is valid, and of the type that it exported along with
    // it; it keeps the buffers alive until polars-arrow releases them. arrow-rs counts the nulls,
    // so that the count is never -1, which polars-arrow would take for a very large number.
    let array = unsafe { ffi::import_array_from_c(array, imported.dtype.clone()) }
        .map_err(|error| refused(&error))?;
    // Names are not passed through the interface, where they could not have zero bytes.
    let metadata =
        field.metadata().iter().map(|(key, value)| (key.as_str().into(), value.as_str().into()));
    let to = Field::new(field.name().as_str().into(), imported.dtype, field.is_nullable());
    Ok((to.with_metadata(metadata.collect::<Metadata>()), array))
}

fn from_polars_column(
    field: Field,
    array: Box<dyn Array>,
) -> Result<(ArrowField, Arc<dyn ArrowArray>)> {
    if !is_supported(array.dtype()) {
        return Err(unsupported(field.name.as_str(), &format!("{:?}", array.dtype())));
    }
    if field.dtype != *array.dtype() {
        return Err(crate::ErrorKind::TypeMismatch {
            what: format!("column {:?} of Polars", field.name.as_str()),
            expected: format!("{:?}", field.dtype),
            found: format!("{:?}", array.dtype()),
        }
        .into());
    }
    let mut schema = ffi::export_field_to_c(&Field::new("".into(), array.dtype().clone(), true));
    // SAFETY: the pointer is to a live value; both structures are the C data interface's
    // `ArrowSchema`, declared `repr(C)` with the same fields in the same order by either crate.
    // `from_raw` moves it out and leaves a released structure behind, whose drop does nothing.
    let schema = unsafe { FFI_ArrowSchema::from_raw((&raw mut schema).cast()) };
    let mut array = ffi::export_array_to_c(with_own_offsets(array)?);
    // SAFETY: as for the schema, with the interface's `ArrowArray`.
    let array = unsafe { FFI_ArrowArray::from_raw((&raw mut array).cast()) };
    // SAFETY: polars-arrow made both, of the same type, so they are valid.
    let data = unsafe { from_ffi(array, &schema) }?;
    let mut to = ArrowField::new(field.name.as_str(), data.data_type().clone(), field.is_nullable);
    if let Some(metadata) = &field.metadata {
        let metadata = metadata.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        to.set_metadata(metadata.collect::<HashMap<_, _>>());
    }
    // Offsets of an imported array without rows may point beyond its characters, of which there are
    // none.
    let array = if data.is_empty() { new_empty_array(data.data_type()) } else { make_array(data) };
    Ok((to, array))
}

/// The array, with offsets of its own where it is a slice of strings.
///
/// polars-arrow 0.55 exports the address of a slice's first offset together with the slice's start,
/// so that whoever imports it skips the start twice and reads beyond the end. Other arrays are
/// exported as they should be.
fn with_own_offsets(array: Box<dyn Array>) -> Result<Box<dyn Array>> {
    fn refused(error: impl std::fmt::Display) -> Error {
        Error::unsupported("a slice of Polars strings", error.to_string())
    }
    fn owned<O: Offset>(array: &dyn Array) -> Result<Option<Box<dyn Array>>> {
        let Some(strings) = array.as_any().downcast_ref::<Utf8Array<O>>() else { return Ok(None) };
        if strings.offsets().buffer().offset() == 0 {
            return Ok(None);
        }
        let offsets =
            OffsetsBuffer::try_from(strings.offsets().as_slice().to_vec()).map_err(refused)?;
        let (values, validity) = (strings.values().clone(), strings.validity().cloned());
        let strings = Utf8Array::try_new(strings.dtype().clone(), offsets, values, validity)
            .map_err(refused)?;
        Ok(Some(strings.boxed()))
    }
    fn listed<O: Offset>(array: &dyn Array) -> Result<Option<Box<dyn Array>>> {
        let Some(lists) = array.as_any().downcast_ref::<ListArray<O>>() else { return Ok(None) };
        let Some(values) = own(&**lists.values())? else { return Ok(None) };
        let (offsets, validity) = (lists.offsets().clone(), lists.validity().cloned());
        let lists = ListArray::<O>::try_new(lists.dtype().clone(), offsets, values, validity);
        Ok(Some(lists.map_err(refused)?.boxed()))
    }
    fn own(array: &dyn Array) -> Result<Option<Box<dyn Array>>> {
        match array.dtype() {
            ArrowDataType::List(_) => listed::<i32>(array),
            ArrowDataType::LargeList(_) => listed::<i64>(array),
            ArrowDataType::FixedSizeList(_, _) => {
                let Some(lists) = array.as_any().downcast_ref::<FixedSizeListArray>() else {
                    return Ok(None);
                };
                let Some(values) = own(&**lists.values())? else { return Ok(None) };
                let (dtype, validity) = (lists.dtype().clone(), lists.validity().cloned());
                let lists = FixedSizeListArray::try_new(dtype, lists.len(), values, validity);
                Ok(Some(lists.map_err(refused)?.boxed()))
            }
            ArrowDataType::Struct(_) => {
                let Some(structs) = array.as_any().downcast_ref::<StructArray>() else {
                    return Ok(None);
                };
                let mut fields = vec![];
                for field in structs.values() {
                    fields.push(own(&**field)?.unwrap_or_else(|| field.clone()));
                }
                let (dtype, validity) = (structs.dtype().clone(), structs.validity().cloned());
                let structs = StructArray::try_new(dtype, structs.len(), fields, validity);
                Ok(Some(structs.map_err(refused)?.boxed()))
            }
            ArrowDataType::Utf8 => owned::<i32>(array),
            ArrowDataType::LargeUtf8 => owned::<i64>(array),
            ArrowDataType::Dictionary(key, _, _) => match_integer_type!(key, |$K| {
                let Some(codes) = array.as_any().downcast_ref::<DictionaryArray<$K>>() else { return Ok(None) };
                let Some(values) = own(&**codes.values())? else { return Ok(None) };
                let codes = DictionaryArray::try_new(array.dtype().clone(), codes.keys().clone(), values);
                Ok(Some(codes.map_err(refused)?.boxed()))
            }),
            _ => Ok(None),
        }
    }
    Ok(own(&*array)?.unwrap_or(array))
}

/// Whether a type has a counterpart among the engine's. Others are refused before polars-arrow sees
/// them: its export panics on some of them.
fn is_supported(dtype: &ArrowDataType) -> bool {
    use ArrowDataType::*;
    match dtype {
        Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Float32 | Float64 => true,
        Boolean | Date32 | Timestamp(_, _) | Decimal(_, _) | Utf8 | LargeUtf8 | Utf8View => true,
        Dictionary(_, values, _) => matches!(**values, Utf8 | LargeUtf8 | Utf8View),
        List(item) | LargeList(item) | FixedSizeList(item, _) => is_supported(&item.dtype),
        Struct(fields) => {
            !fields.is_empty() && fields.iter().all(|field| is_supported(&field.dtype))
        }
        _ => false,
    }
}

fn unsupported(column: &str, dtype: &dyn std::fmt::Display) -> Error {
    Error::unsupported(
        format!("column {column:?} of type {dtype} between Polars and Arrow"),
        "the engine has no such type",
    )
}

#[cfg(test)]
mod tests;
