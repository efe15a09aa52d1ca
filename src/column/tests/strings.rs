//! Strings as views of characters: their form, and what of them is uploaded and downloaded.

use datafusion::arrow::array::StringArray;

use super::*;

#[test]
fn views_have_the_documented_form() {
    let device = device();
    let long = "x".repeat(3 << 20) + "é";
    let values = ["", "é", "twelve bytes", "thirteen byte", &long];
    let array: ArrayRef = Arc::new(StringArray::from_iter_values(values));
    let rows = import::ImportedRows {
        device: &device,
        dtype: &DataType::Utf8,
        len: 5,
        pieces: pieces::cut(std::slice::from_ref(&array)),
    };
    let column = rows.import_plain_strings().unwrap();
    assert_eq!(column.stats.longest, Some(long.len() as u32));
    let [characters] = &*column.characters else { panic!("one buffer of characters") };
    assert_eq!(characters.len(), 13 + long.len(), "only long strings' characters are uploaded");
    let words = column.data.read_words(0, 10).unwrap();
    assert_eq!(words[..2], [0, 0]);
    assert_eq!(words[2..4], [2 | 0xa9c3 << 32, 0]);
    assert_eq!(words[4] as u32, 12);
    assert_eq!(words[5].to_le_bytes(), *b"ve bytes");
    assert_eq!(words[6], 13 | (u32::from_le_bytes(*b"thir") as u64) << 32);
    assert_eq!(words[7], characters.address());
    assert_eq!(words[9], characters.address() + 13);
    assert_eq!(&column.to_array().unwrap(), &array);
}

#[test]
fn characters_under_nulls_are_not_uploaded() {
    let device = device();
    let strings: ArrayRef = Arc::new(StringArray::from_iter_values(
        (0..600).map(|row| format!("long string of row {row}")),
    ));
    let rows: Vec<(u64, bool)> = (0..600).map(|row| (0, row == 9)).collect();
    let array = with_nulls(strings, &rows);
    let rows = import::ImportedRows {
        device: &device,
        dtype: &DataType::Utf8,
        len: 600,
        pieces: pieces::cut(&[array]),
    };
    let column = rows.import_plain_strings().unwrap();
    assert_eq!(column.characters[0].len(), "long string of row 9".len());
    let back = column.to_array().unwrap();
    assert_eq!(back.as_string::<i32>().value(9), "long string of row 9");
    assert_eq!(
        back.as_string::<i32>().values().len(),
        "long string of row 9".len(),
        "nulls are empty"
    );
}

#[test]
fn few_strings_of_many_are_downloaded_by_themselves() {
    let device = device();
    let array = strings((0..100_000).map(|row| format!("a string for row number {row}")));
    let column = assert_round_trip(&device, &DataType::Utf8View, std::slice::from_ref(&array));
    assert!(column.dictionary().is_none() && column.characters[0].len() > 2_000_000);
    // Rows far apart, and in no order, as a sort would leave them.
    let data = device.alloc("test", 4 * 16).unwrap();
    for (row, from) in [70_000, 3, 99_999, 4].into_iter().enumerate() {
        data.copy_from(row * 16, &column.data, from * 16, 16).unwrap();
    }
    let picked = Column { len: 4, data: Arc::new(data), ..column.clone() };
    let before = device.counters().bytes_downloaded;
    let back = picked.to_array().unwrap();
    let back: Vec<_> = back.as_string_view().iter().flatten().collect();
    assert_eq!(back, [70_000, 3, 99_999, 4].map(|row| format!("a string for row number {row}")));
    assert!(device.counters().bytes_downloaded - before < 1000);
    // Many neighbours: their characters, and no others.
    let before = device.counters().bytes_downloaded;
    let back = Column { offset: 60_000, len: 1000, ..column.clone() }.to_array().unwrap();
    assert_eq!(back.as_string_view().value(7), "a string for row number 60007");
    let downloaded = device.counters().bytes_downloaded - before;
    assert!((45_000..46_000).contains(&downloaded), "{downloaded} bytes");
}

#[test]
fn many_scattered_strings_are_packed_on_the_device_and_downloaded_at_once() {
    let device = device();
    let text = |row: usize| format!("a string for row number {row}");
    let array = strings((0..200_000).map(text));
    let column = assert_round_trip(&device, &DataType::Utf8View, std::slice::from_ref(&array));
    // Every 500th row, backwards; one of seven is null, of which nothing may be read.
    let rows: Vec<usize> = (0..400).rev().map(|at| at * 500).collect();
    let data = device.alloc("test", rows.len() * 16).unwrap();
    for (to, &from) in rows.iter().enumerate() {
        data.copy_from(to * 16, &column.data, from * 16, 16).unwrap();
    }
    let valid: Vec<u8> = (0..rows.len()).map(|row| u8::from(row % 7 != 2)).collect();
    for row in (0..rows.len()).filter(|row| row % 7 == 2) {
        data.write(row * 16, &[0xFF; 16]).unwrap();
    }
    let validity = device.upload("test", &valid).unwrap();
    let picked = Column {
        len: 300,
        offset: 100,
        data: Arc::new(data),
        validity: Some(Arc::new(validity)),
        ..column
    };
    let before = device.counters();
    let back = picked.to_array().unwrap();
    let after = device.counters();
    let expected: Vec<_> =
        (100..400).map(|row| (valid[row] != 0).then(|| text(rows[row]))).collect();
    assert_eq!(
        back.as_string_view().iter().map(|s| s.map(String::from)).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(after.launches - before.launches, 1);
    // Validity, views, characters.
    assert_eq!(after.synchronizations - before.synchronizations, 3);
    let bytes = expected.iter().flatten().map(String::len).sum::<usize>() as u64;
    assert_eq!(after.bytes_downloaded - before.bytes_downloaded, 300 * 17 + bytes);
}

#[test]
fn strings_may_point_into_several_buffers() {
    let device = device();
    let rows = |word: &str| strings((0..500).map(|row| format!("{word} string {row}, and so on")));
    let parts: Vec<ArrayRef> = ["first", "second", "third"].map(rows).into();
    let columns: Vec<Column> = parts
        .iter()
        .map(|part| {
            Column::from_arrays(&device, &DataType::Utf8View, std::slice::from_ref(part)).unwrap()
        })
        .collect();
    let data = device.alloc("test", 3 * 500 * 16).unwrap();
    for (part, column) in columns.iter().enumerate() {
        data.copy_from(part * 500 * 16, &column.data, 0, 500 * 16).unwrap();
    }
    let characters =
        columns.iter().rev().flat_map(|column| column.characters.iter().cloned()).collect();
    let whole =
        Column { characters, ..Column::plain(DataType::Utf8View, 1500, Arc::new(data), None) };
    assert_eq!(&whole.to_array().unwrap(), &joined(&DataType::Utf8View, &parts));
    let lost = Column { characters: whole.characters[..2].into(), ..whole };
    assert!(matches!(lost.to_array().unwrap_err().kind(), ErrorKind::Simulation { .. }));
}
