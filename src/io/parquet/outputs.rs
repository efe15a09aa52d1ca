//! What becomes of a file's values in device memory.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::parquet::basic::Type;
use datafusion::parquet::schema::types::ColumnDescriptor;

use super::headers::Reason;
use crate::column::{Repr, decimal_bound, is_nested};
use crate::io::unite::{integer, wider};
use crate::ops::parquet::{Int96Unit, PageOutput, Physical};

/// The type of values in the file.
pub(super) fn physical(leaf: &ColumnDescriptor) -> Physical {
    match leaf.physical_type() {
        Type::BOOLEAN => Physical::Boolean,
        Type::INT32 => Physical::Int32,
        Type::INT64 => Physical::Int64,
        Type::INT96 => Physical::Int96,
        Type::FLOAT => Physical::Float,
        Type::DOUBLE => Physical::Double,
        Type::BYTE_ARRAY => Physical::ByteArray,
        Type::FIXED_LEN_BYTE_ARRAY => Physical::FixedLenByteArray(leaf.type_length().max(0) as u32),
    }
}

/// How a file's column becomes one of the table's. `own` is the Arrow type that the file's schema
/// gives it without the notes of Arrow's writers, `dtype` the table's.
///
/// # Errors
/// Why the device does not read it.
pub(super) fn output(dtype: &DataType, own: &DataType, leaf: &ColumnDescriptor) -> Result<PageOutput, Reason> {
    let unread = || Err(format!("type {dtype} of {:?} in the file", leaf.physical_type()));
    if is_nested(dtype) || leaf.max_rep_level() > 0 || leaf.max_def_level() > 1 {
        return Err("it is nested".into());
    }
    let Some(repr) = Repr::of(dtype) else { return unread() };
    let width = repr.width() as u32;
    // Notes of Arrow's writers that change the meaning of the bits, not the bits.
    let is_same = dtype == own
        || match (dtype, own) {
            // Files of one table: those of narrower types.
            (DataType::Float64, DataType::Float32) => true,
            _ if is_wider_integer(dtype, own) => true,
            (DataType::Decimal128(precision, scale), DataType::Decimal128(own, same)) => {
                scale == same && own <= precision
            }
            (DataType::Timestamp(unit, _), DataType::Timestamp(own, _)) => unit == own,
            (DataType::Duration(_) | DataType::Timestamp(..), DataType::Int64) => true,
            (DataType::Time32(_) | DataType::Date32, DataType::Int32) => true,
            (DataType::Time64(_), DataType::Int64) => true,
            _ => is_text(dtype) && is_text(own) || is_bytes(dtype) && is_bytes(own),
        };
    if !is_same {
        return Err(format!("type {own} in the file, {dtype} in the table"));
    }
    Ok(match (dtype, physical(leaf)) {
        (_, Physical::Int32) if is_wider_integer(dtype, own) => match integer(own) {
            Some((bits, signed)) => PageOutput::Widened { width, bits, signed },
            None => return unread(),
        },
        (DataType::Float64, Physical::Float) => PageOutput::Double,
        (DataType::Boolean, Physical::Boolean) => PageOutput::Bool,
        (DataType::Float32, Physical::Float) => PageOutput::Float32,
        (DataType::Float64, Physical::Double) => PageOutput::Float64,
        (
            DataType::Decimal128(..),
            Physical::Int32 | Physical::Int64 | Physical::ByteArray | Physical::FixedLenByteArray(_),
        ) => {
            let bound = decimal_bound(dtype).map(i128::unsigned_abs);
            PageOutput::Decimal { width, bound }
        }
        (DataType::Timestamp(unit, _), Physical::Int96) => PageOutput::Int96 {
            unit: match unit {
                TimeUnit::Second => Int96Unit::Second,
                TimeUnit::Millisecond => Int96Unit::Millisecond,
                TimeUnit::Microsecond => Int96Unit::Microsecond,
                TimeUnit::Nanosecond => Int96Unit::Nanosecond,
            },
        },
        (DataType::Date64, _) => return unread(),
        (_, Physical::Int32) if repr.is_integer() && width <= 4 => PageOutput::Integer { width },
        (_, Physical::Int64) if repr.is_integer() && width == 8 => PageOutput::Integer { width },
        (_, Physical::ByteArray) if is_text(dtype) => PageOutput::Views { utf8: true },
        (_, Physical::ByteArray) if is_bytes(dtype) => PageOutput::Views { utf8: false },
        (DataType::FixedSizeBinary(_), Physical::FixedLenByteArray(_)) => PageOutput::Views { utf8: false },
        _ => return unread(),
    })
}

/// Whether an integer holds all of another type that has fewer bits.
fn is_wider_integer(dtype: &DataType, own: &DataType) -> bool {
    let are_integers = integer(dtype).is_some() && integer(own).is_some();
    are_integers && dtype != own && wider(dtype, own).as_ref() == Some(dtype)
}

fn is_text(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_bytes(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}
