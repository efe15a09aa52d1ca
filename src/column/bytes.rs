//! Bytes that rows take on the device, by their types.

use datafusion::arrow::datatypes::{DataType, Schema};

use super::{Repr, value_type};

/// Bytes that a string is taken to have besides its view.
const STRING: u64 = 24;

/// Bytes that a row of a schema takes on the device, about.
pub(crate) fn row_bytes(schema: &Schema) -> u64 {
    schema.fields().iter().map(|field| value_bytes(field.data_type())).sum::<u64>().max(1)
}

/// Bytes that a value of a type takes on the device, about.
pub(crate) fn value_bytes(dtype: &DataType) -> u64 {
    match Repr::of(value_type(dtype)) {
        Some(repr @ (Repr::View | Repr::List)) => repr.width() as u64 + STRING,
        Some(Repr::Struct) => 2 * STRING,
        Some(repr) => repr.width() as u64,
        None => STRING,
    }
}

/// Bytes that a row of a schema takes on the device at least: strings may be codes there.
pub(crate) fn least_row_bytes(schema: &Schema) -> u64 {
    const CODE: u64 = 4;
    let of = |dtype| match Repr::of(value_type(dtype)) {
        Some(Repr::View | Repr::List) | None => CODE,
        Some(repr) => repr.width() as u64,
    };
    schema.fields().iter().map(|field| of(field.data_type())).sum()
}
