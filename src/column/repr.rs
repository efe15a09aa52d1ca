//! How values of a logical type lie in device memory.
//!
//! | type | representation |
//! |---|---|
//! | integers, floats | as they are |
//! | booleans | a byte, 0 or 1 |
//! | decimals | unscaled: 64 bits up to 18 digits, else 128 |
//! | dates, times, timestamps, durations | their count of units, 32 or 64 bits |
//! | intervals | one integer that orders as they do (`interval.rs`) |
//! | strings, bytes | views of 16 bytes, see below |
//! | lists | views of 16 bytes (`nested.rs`) |
//!
//! ```text
//!   length u32 | 12 characters, zero padded                        up to 12 bytes
//!   length u32 | 4 characters | address u64 of all characters      longer
//! ```

use datafusion::arrow::datatypes::{DataType, FieldRef, IntervalUnit};

/// Physical representation of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Repr {
    /// One byte, 0 or 1.
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    I128,
    /// A 16-byte view of characters or bytes, see `kernels/string.cuh`: u32 length, then either up
    /// to 12 bytes inline (zero padded), or the first 4 bytes and a u64 device address of all
    /// bytes.
    View,
    /// A list: 16 bytes as a view has them, u32 length, u32 first element, and the u64 address of
    /// the descriptors of the child column's buffers, see `kernels/list.cuh`.
    List,
    /// Nothing: the values are those of the fields, which are columns themselves.
    Struct,
}

/// Whether values of a type are made of others: such columns pass through operators, but are no
/// keys.
pub(crate) fn is_nested(dtype: &DataType) -> bool {
    matches!(Repr::of(dtype), Some(Repr::List | Repr::Struct))
}

/// The type of the values where an Arrow dictionary codes numbers, which the device does not: it
/// has the values themselves. Only columns can be so, no elements or fields.
pub(crate) fn coded_numbers(dtype: &DataType) -> Option<&DataType> {
    match dtype {
        DataType::Dictionary(_, values) if values.is_numeric() || values.is_temporal() => {
            Some(values)
        }
        _ => None,
    }
}

/// The field of a list type's elements.
pub(crate) fn item_of(dtype: &DataType) -> Option<&FieldRef> {
    match dtype {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(item)
        }
        _ => None,
    }
}

/// The type of the values that the device has for a column of this type.
pub(crate) fn value_type(dtype: &DataType) -> &DataType {
    coded_numbers(dtype).unwrap_or(dtype)
}

impl Repr {
    /// The representation of a logical type, or `None` where the device has none. Dictionary types
    /// answer for their values.
    pub(crate) fn of(dtype: &DataType) -> Option<Repr> {
        Some(match dtype {
            DataType::Boolean => Repr::Bool,
            DataType::Int8 => Repr::I8,
            DataType::Int16 => Repr::I16,
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) => Repr::I32,
            DataType::Interval(IntervalUnit::YearMonth) => Repr::I32,
            DataType::Interval(IntervalUnit::DayTime) => Repr::I64,
            DataType::Interval(IntervalUnit::MonthDayNano) => Repr::I128,
            DataType::Int64 | DataType::Timestamp(_, _) => Repr::I64,
            DataType::Date64 | DataType::Time64(_) | DataType::Duration(_) => Repr::I64,
            DataType::UInt8 => Repr::U8,
            DataType::UInt16 => Repr::U16,
            DataType::UInt32 => Repr::U32,
            DataType::UInt64 => Repr::U64,
            DataType::Float32 => Repr::F32,
            DataType::Float64 => Repr::F64,
            DataType::Decimal128(precision, _) if *precision <= 18 => Repr::I64,
            DataType::Decimal128(_, _) => Repr::I128,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Repr::View,
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Repr::View,
            DataType::Dictionary(_, values) => match values.as_ref() {
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Repr::View,
                _ => Repr::of(coded_numbers(dtype)?)?,
            },
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                Repr::inside(item)?;
                Repr::List
            }
            DataType::Struct(fields) if !fields.is_empty() => {
                fields.iter().try_for_each(|field| Repr::inside(field).map(|_| ()))?;
                Repr::Struct
            }
            _ => return None,
        })
    }

    fn inside(field: &FieldRef) -> Option<Repr> {
        Repr::of(field.data_type()).filter(|_| coded_numbers(field.data_type()).is_none())
    }

    /// Whether values hold addresses of memory that has to stay.
    pub(crate) fn points(self) -> bool {
        matches!(self, Repr::View | Repr::List)
    }

    /// Bytes of one value.
    pub(crate) fn width(self) -> usize {
        match self {
            Repr::Bool | Repr::I8 | Repr::U8 => 1,
            Repr::I16 | Repr::U16 => 2,
            Repr::I32 | Repr::U32 | Repr::F32 => 4,
            Repr::I64 | Repr::U64 | Repr::F64 => 8,
            Repr::I128 | Repr::View | Repr::List => 16,
            Repr::Struct => 0,
        }
    }

    /// The type's name in device code.
    pub(crate) fn device_type(self) -> &'static str {
        &self.const_device_type()["const ".len()..]
    }

    /// The type's name in device code, behind `const`.
    pub(crate) fn const_device_type(self) -> &'static str {
        match self {
            Repr::Bool => "const bool8",
            Repr::I8 => "const i8",
            Repr::I16 => "const i16",
            Repr::I32 => "const i32",
            Repr::I64 => "const i64",
            Repr::U8 => "const u8",
            Repr::U16 => "const u16",
            Repr::U32 => "const u32",
            Repr::U64 => "const u64",
            Repr::F32 => "const f32",
            Repr::F64 => "const f64",
            Repr::I128 => "const i128",
            Repr::View | Repr::List => "const view",
            Repr::Struct => "const void",
        }
    }

    /// Whether arithmetic on it is integer arithmetic (decimals, dates, timestamps and intervals
    /// included).
    pub(crate) fn is_integer(self) -> bool {
        !matches!(self, Repr::Bool | Repr::F32 | Repr::F64 | Repr::View | Repr::List | Repr::Struct)
    }
}

/// The greatest unscaled value of a decimal type, by which expressions reckon. `None` for other
/// types, and where arithmetic knows no bound but that of 128 bits.
pub(crate) fn decimal_bound(dtype: &DataType) -> Option<i128> {
    match dtype {
        DataType::Decimal128(precision, _) if *precision < 38 => {
            Some(10i128.pow(u32::from(*precision)) - 1)
        }
        _ => None,
    }
}

/// The least and the greatest value of an integer type; `None` for other types.
pub(crate) fn integer_bounds(dtype: &DataType) -> Option<(i128, i128)> {
    let bits = 8 * u32::try_from(dtype.primitive_width()?).ok()?;
    match dtype {
        signed if signed.is_signed_integer() => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        unsigned if unsigned.is_unsigned_integer() => Some((0, (1 << bits) - 1)),
        _ => None,
    }
}
