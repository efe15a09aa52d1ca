//! Round trips between the two Arrow crates.

use crate::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int32Array, ListArray, StringArray, StringViewArray, StructArray, Time32SecondArray,
    TimestampMicrosecondArray, UInt8Array,
};
use crate::arrow::buffer::OffsetBuffer;
use crate::arrow::compute::cast;
use crate::arrow::datatypes::{DataType, Int32Type};
use polars_arrow::array::{PrimitiveArray, Utf8ViewArray};

use super::*;
use crate::error::ErrorKind;

fn batch() -> RecordBatch {
    let words = ["", "é", "twelve bytes", "thirteen byte", "a string of some more bytes"];
    let strings = || (0..100).map(|row| (row % 7 != 2).then(|| words[row % 5]));
    let utf8: ArrayRef = Arc::new(strings().collect::<StringArray>());
    let dictionary: DictionaryArray<Int32Type> = strings().collect();
    let zoned = TimestampMicrosecondArray::from_iter_values(0..100).with_timezone("Europe/Oslo");
    let decimals: Decimal128Array =
        (0..100i128).map(|row| (row % 3 != 0).then_some(row << 90)).collect();
    RecordBatch::try_from_iter_with_nullable([
        (
            "integers",
            Arc::new((0..100).map(|row| (row % 4 != 1).then_some(row)).collect::<Int32Array>())
                as ArrayRef,
            true,
        ),
        ("bytes", Arc::new(UInt8Array::from_iter_values(0..100)), false),
        (
            "floats",
            Arc::new(Float64Array::from_iter_values((0..100).map(|row| 1.0 / (row as f64 - 50.0)))),
            true,
        ),
        (
            "booleans",
            Arc::new(
                (0..100)
                    .map(|row| (row % 5 != 0).then_some(row % 3 == 0))
                    .collect::<BooleanArray>(),
            ),
            true,
        ),
        ("dates", Arc::new(Date32Array::from_iter_values(-50..50)), true),
        ("timestamps", Arc::new(TimestampMicrosecondArray::from_iter_values(0..100)), true),
        ("zoned", Arc::new(zoned), true),
        ("decimals", Arc::new(decimals.with_precision_and_scale(38, 10).unwrap()), true),
        ("large", cast(&utf8, &DataType::LargeUtf8).unwrap(), true),
        ("utf8", utf8, true),
        ("views", Arc::new(strings().collect::<StringViewArray>()), true),
        (
            "short views",
            Arc::new(StringViewArray::from_iter_values((0..100).map(|row| format!("{row}")))),
            true,
        ),
        ("dictionary", Arc::new(dictionary), true),
        ("lists", Arc::new(lists()), true),
        ("nested", Arc::new(nested(100)), true),
        ("nulls", Arc::new(Int32Array::new_null(100)), true),
        ("zero\0byte", Arc::new(Int32Array::from_iter_values(0..100)), true),
    ])
    .unwrap()
}

fn lists() -> ListArray {
    let list = |row: i32| {
        (row % 6 != 2)
            .then(|| (0..row % 4).map(|at| (at != 1).then_some(row + at)).collect::<Vec<_>>())
    };
    ListArray::from_iter_primitive::<Int32Type, _, _>((0..100).map(list))
}

/// Structs of numbers and of lists of strings.
fn nested(rows: usize) -> StructArray {
    let words: ArrayRef = Arc::new(
        (0..3 * rows)
            .map(|at| (at % 5 != 0).then(|| format!("word number {at}")))
            .collect::<StringArray>(),
    );
    let item = Arc::new(ArrowField::new("item", DataType::Utf8, true));
    let lists: ArrayRef =
        Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(vec![3; rows]), words, None));
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows as i32));
    let fields = vec![
        ArrowField::new("n", DataType::Int32, true),
        ArrowField::new("l", lists.data_type().clone(), true),
    ];
    StructArray::new(
        fields.into(),
        vec![numbers, lists],
        Some((0..rows).map(|row| row % 9 != 4).collect()),
    )
}

#[test]
fn batches_come_back_from_polars_as_they_went() {
    let whole = batch();
    for (offset, len) in [(0, 100), (1, 99), (3, 32), (8, 33), (64, 36), (17, 1), (5, 0)] {
        let batch = whole.slice(offset, len);
        let columns = to_polars_arrow(&batch).unwrap();
        for ((field, array), original) in columns.iter().zip(batch.columns()) {
            assert_eq!(
                (array.len(), array.null_count()),
                (len, original.null_count()),
                "{}",
                field.name
            );
        }
        let back = from_polars_arrow(columns).unwrap();
        assert_eq!(back, batch, "rows {offset}..{}", offset + len);
        back.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
    }
}

#[test]
fn polars_slices_start_where_they_should() {
    let batch = batch();
    for (offset, len) in [(1, 50), (9, 91), (33, 1), (100, 0)] {
        let columns = to_polars_arrow(&batch).unwrap();
        let sliced =
            columns.into_iter().map(|(field, array)| (field, array.sliced(offset, len))).collect();
        let (back, expected) = (from_polars_arrow(sliced).unwrap(), batch.slice(offset, len));
        assert_eq!(back.schema(), expected.schema());
        for (index, field) in expected.schema().fields().iter().enumerate() {
            assert_eq!(
                back.column(index),
                expected.column(index),
                "{} from row {offset}",
                field.name()
            );
        }
    }
}

#[test]
fn dictionaries_of_sliced_strings_keep_their_values() {
    let values =
        polars_arrow::array::Utf8Array::<i64>::from_slice(["skipped", "a", "a longer string", "c"])
            .boxed();
    let dtype = ArrowDataType::Dictionary(
        polars_arrow::datatypes::IntegerType::Int8,
        Box::new(ArrowDataType::LargeUtf8),
        false,
    );
    let keys = PrimitiveArray::<i8>::from_slice([2, 0, 1]);
    let array =
        polars_arrow::array::DictionaryArray::try_new(dtype.clone(), keys, values.sliced(1, 3))
            .unwrap();
    let batch =
        from_polars_arrow(vec![(Field::new("x".into(), dtype, true), array.boxed())]).unwrap();
    let expected: ArrayRef = Arc::new(StringArray::from(vec!["c", "a", "a longer string"]));
    assert_eq!(&cast(batch.column(0), &DataType::Utf8).unwrap(), &expected);
}

#[test]
fn metadata_goes_along() {
    let metadata = HashMap::from([("unit".to_string(), "m/s".to_string())]);
    let field = ArrowField::new("speed", DataType::Int32, false).with_metadata(metadata);
    let column: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![column]).unwrap();
    assert_eq!(from_polars_arrow(to_polars_arrow(&batch).unwrap()).unwrap(), batch);
}

#[test]
fn columns_made_by_polars_arrive() {
    let strings =
        Utf8ViewArray::from_slice([Some("short"), None, Some("more than twelve bytes")]).boxed();
    let numbers = PrimitiveArray::<i128>::from_slice([1, -2, i128::MAX])
        .to(ArrowDataType::Decimal(38, 2))
        .boxed();
    let fields = [("s", ArrowDataType::Utf8View), ("d", ArrowDataType::Decimal(38, 2))];
    let fields = fields.map(|(name, dtype)| Field::new(name.into(), dtype, true));
    let batch = from_polars_arrow(fields.into_iter().zip([strings, numbers]).collect()).unwrap();
    let expected: ArrayRef =
        Arc::new(StringViewArray::from(vec![Some("short"), None, Some("more than twelve bytes")]));
    assert_eq!(batch.column(0), &expected);
    let decimals =
        Decimal128Array::from(vec![1, -2, i128::MAX]).with_data_type(DataType::Decimal128(38, 2));
    assert_eq!(batch.column(1), &(Arc::new(decimals) as ArrayRef));
}

#[test]
fn types_without_a_counterpart_are_errors() {
    let wide = PrimitiveArray::<i128>::from_slice([1]).boxed();
    let error =
        from_polars_arrow(vec![(Field::new("x".into(), ArrowDataType::Int128, true), wide)])
            .unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");

    let seconds = Time32SecondArray::from(vec![1]);
    let list = ListArray::new(
        Arc::new(ArrowField::new("item", seconds.data_type().clone(), true)),
        OffsetBuffer::from_lengths([1]),
        Arc::new(seconds),
        None,
    );
    let columns =
        to_polars_arrow(&RecordBatch::try_from_iter([("x", Arc::new(list) as ArrayRef)]).unwrap())
            .unwrap();
    assert!(matches!(
        from_polars_arrow(columns).unwrap_err().kind(),
        ErrorKind::Unsupported { .. }
    ));

    let scale = Decimal128Array::from(vec![1]).with_data_type(DataType::Decimal128(5, -2));
    let batch = RecordBatch::try_from_iter([("x", Arc::new(scale) as ArrayRef)]).unwrap();
    assert!(matches!(to_polars_arrow(&batch).unwrap_err().kind(), ErrorKind::Unsupported { .. }));
}

#[test]
fn columns_that_do_not_fit_together_are_errors() {
    let column = |values: &[i32], dtype: ArrowDataType| {
        (Field::new("x".into(), dtype, true), PrimitiveArray::<i32>::from_slice(values).boxed())
    };
    let uneven = vec![column(&[1], ArrowDataType::Int32), column(&[1, 2], ArrowDataType::Int32)];
    assert!(from_polars_arrow(uneven).is_err());
    let mislabelled = from_polars_arrow(vec![column(&[1], ArrowDataType::Date32)]).unwrap_err();
    assert!(matches!(mislabelled.kind(), ErrorKind::TypeMismatch { .. }));
}
