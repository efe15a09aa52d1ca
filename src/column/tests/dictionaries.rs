//! Strings as codes into dictionaries, and dictionaries of Arrow's.

use datafusion::arrow::array::{ArrayAccessor, DictionaryArray, Int8Array, StringArray};
use datafusion::arrow::datatypes::Int8Type;

use super::*;

#[test]
fn strings_are_encoded_while_they_are_few() {
    let device = device();
    let encoded = |rows: usize, distinct: usize| {
        let array = strings((0..rows).map(|row| format!("string number {}", row % distinct)));
        assert_round_trip(&device, &DataType::Utf8View, &[array])
            .dictionary()
            .map(|dictionary| dictionary.len())
    };
    assert_eq!(encoded(256, 256), Some(256));
    assert_eq!(encoded(257, 257), None);
    assert_eq!(encoded(4000, 1000), Some(1000));
    assert_eq!(encoded(4000, 1001), None);
}

#[test]
fn computed_strings_become_arrow_dictionaries() {
    let device = device();
    let dtype = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let plain = |distinct: usize| {
        let array = strings((0..300).map(|row| format!("value {}", row % distinct)));
        let rows = import::ImportedRows {
            device: &device,
            dtype: &dtype,
            len: 300,
            pieces: pieces::cut(&[array]),
        };
        rows.import_plain_strings().unwrap().to_array()
    };
    let back = plain(100).unwrap();
    assert_eq!(back.data_type(), &dtype);
    assert_eq!(
        back.as_dictionary::<Int8Type>().downcast_dict::<StringArray>().unwrap().value(101),
        "value 1"
    );
    assert!(plain(200).is_err(), "200 values do not fit a key of 8 bits");
}

#[test]
fn dictionaries_are_sorted_and_free_of_duplicates_nulls_and_order() {
    let device = device();
    let values: ArrayRef =
        Arc::new(StringArray::from(vec![Some("b"), None, Some("a"), Some("b"), Some("unused")]));
    let keys = Int8Array::from(vec![Some(0), Some(1), None, Some(3), Some(2)]);
    let array: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, values));
    let column =
        Column::from_arrays(&device, array.data_type(), std::slice::from_ref(&array)).unwrap();
    let dictionary = column.dictionary().unwrap();
    assert_eq!(dictionary.strings().iter().flatten().collect::<Vec<_>>(), ["a", "b", "unused"]);
    let mut codes = [0; 20];
    column.data.read(0, &mut codes).unwrap();
    let codes: Vec<u32> =
        codes.chunks(4).map(|code| u32::from_le_bytes(code.try_into().unwrap())).collect();
    assert_eq!(codes, [1, 0, 0, 1, 0]);
    let back = decoded(&column.to_array().unwrap());
    assert_eq!(
        back.as_string::<i32>().iter().collect::<Vec<_>>(),
        [Some("b"), None, None, Some("b"), Some("a")]
    );
    // A null among the values is no null row where no key points to it.
    let tail = array.slice(3, 2);
    assert!(Column::from_arrays(&device, array.data_type(), &[tail]).unwrap().validity.is_none());
}

#[test]
fn codes_that_do_not_fit_their_key_are_an_error() {
    let device = device();
    let dtype = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let chunk = |from: i32| -> ArrayRef {
        let values: ArrayRef = Arc::new(StringArray::from_iter_values(
            (from..from + 100).map(|value| format!("{value}")),
        ));
        Arc::new(DictionaryArray::<Int8Type>::new(Int8Array::from_iter_values(0..100), values))
    };
    let column = Column::from_arrays(&device, &dtype, &[chunk(0), chunk(100)]).unwrap();
    assert_eq!(column.dictionary().unwrap().len(), 200);
    assert!(matches!(column.to_array().unwrap_err().kind(), ErrorKind::Unsupported { .. }));
    assert_eq!(column.dictionary().unwrap().strings().value(1), "1");
    // "1" and "10" are among the first 128 in byte order.
    assert_eq!(decoded(&column.slice(10, 1).to_array().unwrap()).as_string::<i32>().value(0), "10");
}
