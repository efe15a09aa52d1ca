//! Arrays of every type that a column can have, made of numbers and nulls.

use datafusion::arrow::array::{
    BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray,
    Int8Array, ListArray, StringArray, StructArray, make_array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{Field, FieldRef, Int8Type, IntervalUnit, TimeUnit};

use super::*;

/// Every type that a column can have.
pub(super) fn types() -> Vec<DataType> {
    use DataType::*;
    let mut types = vec![
        Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float32, Float64, Boolean,
        Date32, Utf8, LargeUtf8, Utf8View,
    ];
    for unit in
        [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]
    {
        types.push(Timestamp(unit, None));
        types.push(Timestamp(unit, Some("Europe/Oslo".into())));
    }
    types.extend([Date64, Time32(TimeUnit::Second), Time32(TimeUnit::Millisecond)]);
    types.extend([Time64(TimeUnit::Microsecond), Time64(TimeUnit::Nanosecond)]);
    types.extend([TimeUnit::Second, TimeUnit::Nanosecond].map(Duration));
    types.extend(
        [IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano].map(Interval),
    );
    types.extend([Binary, LargeBinary, BinaryView, FixedSizeBinary(5), FixedSizeBinary(20)]);
    types.extend(
        [(1, 0), (15, 2), (18, -3), (19, 4), (38, 38)]
            .map(|(precision, scale)| Decimal128(precision, scale)),
    );
    let item = |dtype| Arc::new(Field::new("item", dtype, true));
    let point = Struct(vec![Field::new("x", Int32, true), Field::new("y", Utf8, true)].into());
    types.extend(
        [Int32, Boolean, Utf8View, Decimal128(15, 2), point.clone()].map(|dtype| List(item(dtype))),
    );
    types.extend([
        LargeList(item(Utf8)),
        FixedSizeList(item(Float64), 2),
        List(item(LargeList(item(Int8)))),
    ]);
    types.extend([Struct(
        vec![Field::new("p", point, true), Field::new("l", List(item(Date32)), true)].into(),
    )]);
    for key in [Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64] {
        types.extend(
            [Utf8, LargeUtf8, Utf8View]
                .map(|value| Dictionary(Box::new(key.clone()), Box::new(value))),
        );
    }
    types
}

/// A string for every number: many short ones, the borders of what a view holds, and long ones with
/// a common start.
fn string(raw: u64) -> String {
    match raw % 11 {
        0 => String::new(),
        1 => "é".to_string(),
        2 => "twelve bytes".to_string(),
        3 => "thirteen byte".to_string(),
        4 => "a\0b".to_string(),
        5 => "𝄞".repeat((raw % 7) as usize),
        6 => format!("{:>1$}", raw, (raw % 40) as usize),
        _ => format!("common start, then {raw}"),
    }
}

/// Rows of a type made from numbers, null where the flag is not set; what lies under nulls is made
/// like the rest.
pub(super) fn array(dtype: &DataType, rows: &[(u64, bool)]) -> ArrayRef {
    let raws = || rows.iter().map(|&(raw, _)| raw);
    let values: ArrayRef = match dtype {
        // NaN comes back in one form, whatever its bits were.
        DataType::Float32 => {
            let floats = raws().map(|raw| f32::from_bits(raw as u32));
            Arc::new(
                floats
                    .map(|x| Some(if x.is_nan() { f32::NAN } else { x }))
                    .collect::<Float32Array>(),
            )
        }
        DataType::Float64 => {
            let floats = raws().map(f64::from_bits);
            Arc::new(
                floats
                    .map(|x| Some(if x.is_nan() { f64::NAN } else { x }))
                    .collect::<Float64Array>(),
            )
        }
        DataType::Boolean => {
            Arc::new(raws().map(|raw| Some(raw & 1 == 1)).collect::<BooleanArray>())
        }
        DataType::Decimal128(precision, _) => {
            let modulus = 10i128.pow(*precision as u32);
            let value = |raw: u64| match raw % 5 {
                0 => modulus - 1,
                1 => 1 - modulus,
                _ => raw as i128 * (raw as i64 as i128) % modulus,
            };
            let decimals: Decimal128Array = raws().map(|raw| Some(value(raw))).collect();
            Arc::new(decimals.with_data_type(dtype.clone()))
        }
        DataType::Utf8 => Arc::new(StringArray::from_iter_values(raws().map(string))),
        DataType::Binary => {
            // Not characters.
            let bytes = |raw: u64| {
                [string(raw).as_bytes(), &raw.to_le_bytes()[..(raw % 3) as usize]].concat()
            };
            Arc::new(BinaryArray::from_iter_values(raws().map(bytes)))
        }
        DataType::LargeBinary | DataType::BinaryView => {
            return cast(&array(&DataType::Binary, rows), dtype).unwrap();
        }
        DataType::FixedSizeBinary(width) => {
            let bytes = raws().map(|raw| raw.to_le_bytes().repeat(3)[..*width as usize].to_vec());
            Arc::new(
                FixedSizeBinaryArray::try_from_iter(bytes.chain([vec![0; *width as usize]]))
                    .unwrap()
                    .slice(0, rows.len()),
            )
        }
        DataType::LargeUtf8 | DataType::Utf8View => {
            return cast(&array(&DataType::Utf8, rows), dtype).unwrap();
        }
        DataType::List(item) | DataType::LargeList(item) => {
            // Some lists are empty, and nulls have elements beneath them.
            let lengths = || raws().map(|raw| (raw % 4) as usize);
            let values = array(item.data_type(), &elements(rows, lengths()));
            let list: ArrayRef = Arc::new(ListArray::new(
                item.clone(),
                OffsetBuffer::from_lengths(lengths()),
                values,
                None,
            ));
            cast(&list, dtype).unwrap()
        }
        DataType::FixedSizeList(item, size) => {
            let values =
                array(item.data_type(), &elements(rows, rows.iter().map(|_| *size as usize)));
            Arc::new(FixedSizeListArray::new(item.clone(), *size, values, None))
        }
        DataType::Struct(fields) => {
            let child = |(at, field): (usize, &FieldRef)| {
                let rows: Vec<_> =
                    rows.iter().map(|&(raw, _)| (raw >> at, raw % 5 != at as u64)).collect();
                array(field.data_type(), &rows)
            };
            Arc::new(StructArray::new(
                fields.clone(),
                fields.iter().enumerate().map(child).collect(),
                None,
            ))
        }
        DataType::Dictionary(key, value) => {
            // Values repeat, are in no order, and one is null; keys are made from the numbers.
            let values: StringArray = (0..40u64)
                .map(|raw| (raw != 7).then(|| string(raw.wrapping_mul(0x9e37_79b9) % 23)))
                .collect();
            let keys: Int8Array = raws().map(|raw| Some((raw % 40) as i8)).collect();
            let keys = with_nulls(Arc::new(keys), rows);
            let keys = keys.as_primitive::<Int8Type>().clone();
            let narrow = DictionaryArray::<Int8Type>::new(keys, Arc::new(values));
            // Of the same keys and values in the type asked for.
            let keys = cast(narrow.keys(), key).unwrap();
            let values = cast(narrow.values(), value).unwrap();
            let data = keys
                .to_data()
                .into_builder()
                .data_type(dtype.clone())
                .child_data(vec![values.to_data()]);
            return make_array(data.build().unwrap());
        }
        _ => {
            let width = Repr::of(dtype).unwrap().width();
            let bytes: Vec<u8> =
                raws().flat_map(|raw| raw.to_le_bytes().repeat(2)[..width].to_vec()).collect();
            let data = datafusion::arrow::array::ArrayData::builder(dtype.clone())
                .len(rows.len())
                .add_buffer(bytes_aligned(&bytes).into());
            make_array(data.build().unwrap())
        }
    };
    with_nulls(values, rows)
}

/// Rows of so many elements for each row, made from it.
fn elements(rows: &[(u64, bool)], lengths: impl Iterator<Item = usize>) -> Vec<(u64, bool)> {
    (rows.iter().zip(lengths))
        .flat_map(|((raw, _), n)| (0..n as u64).map(move |i| (raw >> i, (raw ^ i) % 3 != 0)))
        .collect()
}

fn bytes_aligned(bytes: &[u8]) -> datafusion::arrow::buffer::MutableBuffer {
    let mut buffer = datafusion::arrow::buffer::MutableBuffer::new(bytes.len());
    buffer.extend_from_slice(bytes);
    buffer
}

pub(super) fn with_nulls(values: ArrayRef, rows: &[(u64, bool)]) -> ArrayRef {
    let nulls: NullBuffer = rows.iter().map(|&(_, valid)| valid).collect();
    make_array(values.to_data().into_builder().nulls(Some(nulls)).build().unwrap())
}

/// What a value is, whatever encodes it.
pub(super) fn decoded(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Dictionary(_, value) => cast(array, value).unwrap(),
        _ => array.clone(),
    }
}

pub(super) fn joined(dtype: &DataType, chunks: &[ArrayRef]) -> ArrayRef {
    let chunks: Vec<ArrayRef> = chunks.iter().map(decoded).collect();
    let chunks: Vec<&dyn Array> = chunks.iter().map(|chunk| &**chunk).collect();
    if chunks.is_empty() { decoded(&new_empty_array(dtype)) } else { concat(&chunks).unwrap() }
}
