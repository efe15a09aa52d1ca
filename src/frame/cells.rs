//! Single values: the Rust types that columns are made of and read as.

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, PrimitiveArray, StringViewArray,
    StringViewBuilder,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Field, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};

use crate::error::{ErrorKind, Result};

/// A Rust type that columns are made of.
///
/// | Rust | column |
/// |---|---|
/// | `i8` … `i64`, `u8` … `u64`, `f32`, `f64`, `bool` | the same |
/// | `&str`, `String` | `Utf8View` |
/// | `chrono::NaiveDate` | `Date32` |
/// | `chrono::NaiveTime` | `Time64(ns)` |
/// | `chrono::NaiveDateTime`, `chrono::DateTime<Utc>` | `Timestamp(µs)`, without and with the zone UTC |
/// | `Vec<T>` of these | `List` |
#[diagnostic::on_unimplemented(
    message = "columns are not made of `{Self}`",
    label = "no type of a column's values",
    note = "columns are made of integers, floats, `bool`, `&str`, `String`, dates and times of \
            `chrono`, and `Vec`s of these; `Some(…)` and `None` stand for nulls"
)]
pub trait ColumnValue: Sized {
    /// The type of the column.
    fn column_type() -> DataType;

    /// Values as an array, `None` as null.
    fn array_of(values: Vec<Option<Self>>) -> ArrayRef;
}

/// A Rust type that values of a column are read as: those of [`ColumnValue`] that own what they
/// hold, and `Option` of them, which reads a null as `None`.
///
/// A column is read as its own type, or as one that holds each of its values: narrow integers as
/// wider ones and as floats that hold them, `f32` as `f64`, all kinds of strings as `String`.
#[diagnostic::on_unimplemented(
    message = "values of columns are not read as `{Self}`",
    label = "no type that values are read as",
    note = "write a type that owns its values, such as `f64`, `i64`, `bool`, `String` or a type of \
            `chrono`, or `Option` of it where there are nulls"
)]
pub trait FromColumn: Sized {
    /// The type of the column that this is read from.
    fn column_type() -> DataType;

    /// The value of a row, `None` for a null where the type has none. `array` has the type of
    /// [`FromColumn::column_type`], and the row is one of its.
    fn value_of(array: &dyn Array, row: usize) -> Option<Self>;
}

impl<T: FromColumn> FromColumn for Option<T> {
    fn column_type() -> DataType {
        T::column_type()
    }

    fn value_of(array: &dyn Array, row: usize) -> Option<Self> {
        Some(T::value_of(array, row))
    }
}

macro_rules! numbers {
    ($($rust:ty: $arrow:ty),*) => {$(
        impl ColumnValue for $rust {
            fn column_type() -> DataType {
                <$arrow>::DATA_TYPE
            }

            fn array_of(values: Vec<Option<Self>>) -> ArrayRef {
                Arc::new(PrimitiveArray::<$arrow>::from_iter(values))
            }
        }

        impl FromColumn for $rust {
            fn column_type() -> DataType {
                <$arrow>::DATA_TYPE
            }

            fn value_of(array: &dyn Array, row: usize) -> Option<Self> {
                let array = array.as_primitive::<$arrow>();
                array.is_valid(row).then(|| array.value(row))
            }
        }
    )*};
}

numbers!(
    i8: Int8Type, i16: Int16Type, i32: Int32Type, i64: Int64Type,
    u8: UInt8Type, u16: UInt16Type, u32: UInt32Type, u64: UInt64Type,
    f32: Float32Type, f64: Float64Type
);

/// A type that Arrow keeps as a number: its column, and the way there and back.
macro_rules! numbered {
    ($rust:ty, $arrow:ty, $dtype:expr, $to:expr, $from:expr) => {
        impl ColumnValue for $rust {
            fn column_type() -> DataType {
                $dtype
            }

            fn array_of(values: Vec<Option<Self>>) -> ArrayRef {
                let numbers = values.into_iter().map(|value| value.map($to));
                Arc::new(PrimitiveArray::<$arrow>::from_iter(numbers).with_data_type($dtype))
            }
        }

        impl FromColumn for $rust {
            fn column_type() -> DataType {
                $dtype
            }

            fn value_of(array: &dyn Array, row: usize) -> Option<Self> {
                let array = array.as_primitive::<$arrow>();
                array.is_valid(row).then(|| array.value(row)).and_then($from)
            }
        }
    };
}

numbered!(
    NaiveDate,
    Date32Type,
    DataType::Date32,
    Date32Type::from_naive_date,
    Date32Type::to_naive_date_opt
);
numbered!(
    NaiveTime,
    Time64NanosecondType,
    DataType::Time64(TimeUnit::Nanosecond),
    nanoseconds_of,
    |nanoseconds| {
        let (seconds, rest) =
            (nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000));
        NaiveTime::from_num_seconds_from_midnight_opt(
            u32::try_from(seconds).ok()?,
            u32::try_from(rest).ok()?,
        )
    }
);
/// Instants: columns of microseconds are made of them, columns of all units are read as them.
macro_rules! instants {
    ($rust:ty, $zone:expr, $to:expr, $from:expr) => {
        impl ColumnValue for $rust {
            fn column_type() -> DataType {
                DataType::Timestamp(TimeUnit::Microsecond, $zone)
            }

            fn array_of(values: Vec<Option<Self>>) -> ArrayRef {
                let numbers = values
                    .into_iter()
                    .map(|value| value.map($to).map(|time| time.timestamp_micros()));
                let array = PrimitiveArray::<TimestampMicrosecondType>::from_iter(numbers);
                Arc::new(array.with_data_type(<Self as ColumnValue>::column_type()))
            }
        }

        impl FromColumn for $rust {
            fn column_type() -> DataType {
                DataType::Timestamp(TimeUnit::Microsecond, $zone)
            }

            fn value_of(array: &dyn Array, row: usize) -> Option<Self> {
                instant(array, row).map($from)
            }
        }
    };
}

instants!(NaiveDateTime, None, |time| time.and_utc(), |time| time.naive_utc());
instants!(DateTime<Utc>, Some("UTC".into()), |time| time, |time| time);

fn instant(array: &dyn Array, row: usize) -> Option<DateTime<Utc>> {
    if array.is_null(row) {
        return None;
    }
    let DataType::Timestamp(unit, _) = array.data_type() else { return None };
    match unit {
        TimeUnit::Second => {
            DateTime::from_timestamp(array.as_primitive::<TimestampSecondType>().value(row), 0)
        }
        TimeUnit::Millisecond => DateTime::from_timestamp_millis(
            array.as_primitive::<TimestampMillisecondType>().value(row),
        ),
        TimeUnit::Microsecond => DateTime::from_timestamp_micros(
            array.as_primitive::<TimestampMicrosecondType>().value(row),
        ),
        TimeUnit::Nanosecond => Some(DateTime::from_timestamp_nanos(
            array.as_primitive::<TimestampNanosecondType>().value(row),
        )),
    }
}

fn nanoseconds_of(time: NaiveTime) -> i64 {
    use chrono::Timelike;
    i64::from(time.num_seconds_from_midnight()) * 1_000_000_000 + i64::from(time.nanosecond())
}

impl ColumnValue for bool {
    fn column_type() -> DataType {
        DataType::Boolean
    }

    fn array_of(values: Vec<Option<Self>>) -> ArrayRef {
        Arc::new(BooleanArray::from(values))
    }
}

impl FromColumn for bool {
    fn column_type() -> DataType {
        DataType::Boolean
    }

    fn value_of(array: &dyn Array, row: usize) -> Option<Self> {
        let array = array.as_boolean();
        array.is_valid(row).then(|| array.value(row))
    }
}

impl ColumnValue for &str {
    fn column_type() -> DataType {
        DataType::Utf8View
    }

    fn array_of(values: Vec<Option<Self>>) -> ArrayRef {
        strings(values)
    }
}

impl ColumnValue for String {
    fn column_type() -> DataType {
        DataType::Utf8View
    }

    fn array_of(values: Vec<Option<Self>>) -> ArrayRef {
        strings(values)
    }
}

fn strings<S: AsRef<str>>(values: Vec<Option<S>>) -> ArrayRef {
    let mut builder = StringViewBuilder::with_capacity(values.len());
    values.iter().for_each(|value| builder.append_option(value.as_ref()));
    Arc::new(builder.finish())
}

impl FromColumn for String {
    fn column_type() -> DataType {
        DataType::Utf8View
    }

    fn value_of(array: &dyn Array, row: usize) -> Option<Self> {
        let array: &StringViewArray = array.as_string_view();
        array.is_valid(row).then(|| array.value(row).to_string())
    }
}

impl<T: ColumnValue> ColumnValue for Vec<T> {
    fn column_type() -> DataType {
        DataType::new_list(T::column_type(), true)
    }

    fn array_of(values: Vec<Option<Self>>) -> ArrayRef {
        let lengths = values.iter().map(|list| list.as_ref().map_or(0, Vec::len));
        let offsets = OffsetBuffer::from_lengths(lengths);
        let nulls = NullBuffer::from_iter(values.iter().map(Option::is_some));
        let items = T::array_of(values.into_iter().flatten().flatten().map(Some).collect());
        let field = Field::new_list_field(T::column_type(), true);
        Arc::new(ListArray::new(field.into(), offsets, items, Some(nulls)))
    }
}

impl<T: FromColumn> FromColumn for Vec<T> {
    fn column_type() -> DataType {
        DataType::new_list(T::column_type(), true)
    }

    fn value_of(array: &dyn Array, row: usize) -> Option<Self> {
        let array = array.as_list::<i32>();
        if array.is_null(row) {
            return None;
        }
        let items = array.value(row);
        (0..items.len()).map(|item| T::value_of(&items, item)).collect()
    }
}

/// What a column of a frame is made of: vectors, slices and arrays of [`ColumnValue`]s or of
/// options of these, and Arrow arrays.
///
/// ```
/// use warpframe::frame::IntoArray;
/// use warpframe::arrow::array::Array;
///
/// assert_eq!(vec![1.5, 2.5].into_array().len(), 2);
/// assert_eq!([Some("x"), None].into_array().null_count(), 1);
/// assert_eq!((0..10u8).collect::<Vec<_>>()[3..5].into_array().len(), 2);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not stand for the values of a column",
    label = "a list of values or an Arrow array is wanted here",
    note = "write an array, a vector or a slice of values, such as `[1, 2]` or `[Some(1), None]`, or \
            an `ArrayRef`"
)]
pub trait IntoArray {
    /// The values as an Arrow array.
    fn into_array(self) -> ArrayRef;
}

impl IntoArray for ArrayRef {
    fn into_array(self) -> ArrayRef {
        self
    }
}

/// A value, or an option of one: what each element of a sequence may be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no value of a column",
    label = "a value or an option of one is wanted here",
    note = "columns are made of integers, floats, `bool`, `&str`, `String`, dates and times of \
            `chrono`, and `Vec`s of these; `Some(…)` and `None` stand for nulls"
)]
pub trait MaybeValue {
    /// The value.
    type Value: ColumnValue;

    /// `None` for a null.
    fn maybe(self) -> Option<Self::Value>;
}

impl<T: ColumnValue> MaybeValue for T {
    type Value = T;

    fn maybe(self) -> Option<T> {
        Some(self)
    }
}

impl<T: ColumnValue> MaybeValue for Option<T> {
    type Value = T;

    fn maybe(self) -> Option<T> {
        self
    }
}

impl<T: MaybeValue> IntoArray for Vec<T> {
    fn into_array(self) -> ArrayRef {
        T::Value::array_of(self.into_iter().map(T::maybe).collect())
    }
}

impl<T: MaybeValue, const N: usize> IntoArray for [T; N] {
    fn into_array(self) -> ArrayRef {
        T::Value::array_of(self.into_iter().map(T::maybe).collect())
    }
}

impl<T: MaybeValue + Clone> IntoArray for &[T] {
    fn into_array(self) -> ArrayRef {
        T::Value::array_of(self.iter().cloned().map(T::maybe).collect())
    }
}

/// An array as the type that `T` is read from.
///
/// # Errors
/// [`ErrorKind::TypeMismatch`] where a value might change by that.
pub(super) fn read_as<T: FromColumn>(name: &str, array: &ArrayRef) -> Result<ArrayRef> {
    let (from, to) = (array.data_type(), T::column_type());
    if *from == to {
        return Ok(array.clone());
    }
    // All units are read as they are.
    if let (DataType::Timestamp(_, from), DataType::Timestamp(_, to)) = (from, &to)
        && from.is_some() == to.is_some()
    {
        return Ok(array.clone());
    }
    if !is_read_as(from, &to) {
        let (what, found) = (format!("reading column {name:?}"), from.to_string());
        let expected = format!("a type that {to} holds (or a cast to it before)");
        return Err(ErrorKind::TypeMismatch { what, expected, found }.into());
    }
    Ok(cast(array, &to)?)
}

/// Whether each value of a type is one of the other.
fn is_read_as(from: &DataType, to: &DataType) -> bool {
    /// Bits that an integer needs as a signed or unsigned one, or that a float holds of integers.
    fn bits(dtype: &DataType) -> Option<(bool, u32)> {
        Some(match dtype {
            DataType::Int8 => (true, 7),
            DataType::Int16 => (true, 15),
            DataType::Int32 => (true, 31),
            DataType::Int64 => (true, 63),
            DataType::UInt8 => (false, 8),
            DataType::UInt16 => (false, 16),
            DataType::UInt32 => (false, 32),
            DataType::UInt64 => (false, 64),
            DataType::Float32 => (true, 24),
            DataType::Float64 => (true, 53),
            _ => return None,
        })
    }
    use DataType::*;
    match (from, to) {
        (from, to) if from == to => true,
        (Dictionary(_, values), to) => is_read_as(values, to),
        (Utf8 | LargeUtf8 | Utf8View, Utf8View) => true,
        (Null, _) => true,
        (Float32, Float64) => true,
        (Float16, Float32 | Float64) => true,
        (List(from) | LargeList(from) | FixedSizeList(from, _), List(to)) => {
            is_read_as(from.data_type(), to.data_type())
        }
        (Time32(_) | Time64(_), Time64(TimeUnit::Nanosecond)) => true,
        (
            Timestamp(TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond, from),
            Timestamp(TimeUnit::Microsecond, to),
        ) => from.is_some() == to.is_some(),
        (from, to) if from.is_integer() => match (bits(from), bits(to)) {
            (Some((negative, from)), Some((signed, to))) => from <= to && (signed || !negative),
            _ => false,
        },
        _ => false,
    }
}
