//! What becomes of a file's values in device memory.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::parquet::basic::Type;
use datafusion::parquet::schema::types::ColumnDescriptor;

use super::headers::Reason;
use crate::column::{Repr, decimal_bound, is_nested};
use crate::io::unite::{finer, integer, wider};
use warpframe_device::ops::parquet::{Int96Unit, PageOutput, Physical};

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

/// The Arrow types of a file's column.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnType<'a> {
    /// Without the notes of Arrow's writers.
    pub(super) bare: &'a DataType,
    /// With them, where there are some.
    pub(super) noted: &'a DataType,
}

impl OwnType<'_> {
    /// The one by which the bits are read. Notes may change their meaning, as those of seconds do,
    /// which the format has no word for, but not the bits.
    fn of_bits(&self) -> &DataType {
        use DataType as T;
        let is_renamed = match (self.noted, self.bare) {
            (T::Timestamp(unit, _), T::Timestamp(own, _)) => unit == own,
            (T::Duration(_) | T::Timestamp(..) | T::Time64(_), T::Int64) => true,
            (T::Time32(_) | T::Date32, T::Int32) => true,
            _ => false,
        };
        if is_renamed { self.noted } else { self.bare }
    }
}

/// How a file's column becomes one of the table's, which has this type.
///
/// # Errors
/// Why the device does not read it.
pub(super) fn output(
    dtype: &DataType,
    of: OwnType,
    leaf: &ColumnDescriptor,
) -> Result<PageOutput, Reason> {
    let unread = || Err(format!("type {dtype} of {:?} in the file", leaf.physical_type()));
    if is_nested(dtype) || leaf.max_rep_level() > 0 || leaf.max_def_level() > 1 {
        return Err("it is nested".into());
    }
    let Some(repr) = Repr::of(dtype) else { return unread() };
    let width = repr.width() as u32;
    let own = of.of_bits();
    // Files of one table: those of narrower types.
    let Some(factor) = factor(dtype, own) else {
        return Err(format!("type {own} in the file, {dtype} in the table"));
    };
    Ok(match (dtype, physical(leaf)) {
        (_, Physical::Int32) if is_wider_integer(dtype, own) => match integer(own) {
            Some((bits, signed)) => PageOutput::Widened { width, bits, signed, factor: 1 },
            None => return unread(),
        },
        (DataType::Float64, Physical::Int32 | Physical::Int64) => match integer(own) {
            Some((bits, signed)) => PageOutput::Number { bits, signed },
            None => return unread(),
        },
        (DataType::Float64, Physical::Float) => PageOutput::Double,
        (DataType::Boolean, Physical::Boolean) => PageOutput::Bool,
        (DataType::Float32, Physical::Float) => PageOutput::Float32,
        (DataType::Float64, Physical::Double) => PageOutput::Float64,
        (
            DataType::Decimal128(..),
            Physical::Int32
            | Physical::Int64
            | Physical::ByteArray
            | Physical::FixedLenByteArray(_),
        ) => {
            // A product of what is within the file's digits has no more digits than the table's
            // type.
            let bound = decimal_bound(own).map(i128::unsigned_abs);
            PageOutput::Decimal { width, bound, factor }
        }
        (_, Physical::Int96) => match own {
            DataType::Timestamp(unit, _) => {
                PageOutput::Int96 { unit: int96_unit(*unit), factor: factor as u64 }
            }
            _ => return unread(),
        },
        (_, Physical::Int32 | Physical::Int64) if factor != 1 => {
            let bits = if physical(leaf) == Physical::Int32 { 32 } else { 64 };
            PageOutput::Widened { width, bits, signed: true, factor: factor as u64 }
        }
        (DataType::Date64, _) => return unread(),
        (_, Physical::Int32) if repr.is_integer() && width <= 4 => PageOutput::Integer { width },
        (_, Physical::Int64) if repr.is_integer() && width == 8 => PageOutput::Integer { width },
        (_, Physical::ByteArray) if is_text(dtype) => PageOutput::Views { utf8: true },
        (_, Physical::ByteArray) if is_bytes(dtype) => PageOutput::Views { utf8: false },
        (DataType::FixedSizeBinary(_), Physical::FixedLenByteArray(_)) => {
            PageOutput::Views { utf8: false }
        }
        _ => return unread(),
    })
}

/// By what the values of a file's type are multiplied to be those of a table's, in which they keep
/// their meaning; `None` where that is not all there is to do.
fn factor(dtype: &DataType, own: &DataType) -> Option<u128> {
    use DataType as T;
    match (dtype, own) {
        _ if dtype == own => Some(1),
        (T::Float64, own) if *own == T::Float32 || integer(own).is_some() => Some(1),
        (T::Decimal128(_, scale), T::Decimal128(_, own_scale)) => {
            let digits = u32::try_from(i16::from(*scale) - i16::from(*own_scale)).ok()?;
            (wider(dtype, own).as_ref() == Some(dtype)).then(|| 10u128.pow(digits))
        }
        // Zones are the same, as far as the format has any.
        (T::Timestamp(unit, _), T::Timestamp(own, _)) => units(*unit, *own),
        (T::Duration(unit), T::Duration(own)) => units(*unit, *own),
        (T::Time32(unit) | T::Time64(unit), T::Time32(own) | T::Time64(own)) => units(*unit, *own),
        _ if is_wider_integer(dtype, own) => Some(1),
        _ => (is_text(dtype) && is_text(own) || is_bytes(dtype) && is_bytes(own)).then_some(1),
    }
}

/// How many of a unit make one of another that is no finer.
fn units(unit: TimeUnit, own: TimeUnit) -> Option<u128> {
    let in_second = |unit| match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    (finer(unit, own) == unit).then(|| in_second(unit) / in_second(own))
}

fn int96_unit(unit: TimeUnit) -> Int96Unit {
    match unit {
        TimeUnit::Second => Int96Unit::Second,
        TimeUnit::Millisecond => Int96Unit::Millisecond,
        TimeUnit::Microsecond => Int96Unit::Microsecond,
        TimeUnit::Nanosecond => Int96Unit::Nanosecond,
    }
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
