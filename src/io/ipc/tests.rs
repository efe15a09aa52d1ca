use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_ipc::CompressionType;
use arrow_ipc::writer::{DictionaryHandling, FileWriter, IpcWriteOptions, StreamWriter};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeListArray,
    Int32Array, Int64Array, LargeStringArray, ListArray, NullArray, RecordBatch, StringArray,
    StringViewArray, StructArray,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Field, Int8Type, Int32Type, Int64Type};

use super::messages::IpcFile;
use crate::error::{ErrorKind, Result};

/// Rows of many types, in which dictionaries and strings have nulls.
fn rows(from: i64) -> RecordBatch {
    let strings = [Some("a"), None, Some("a string that no view holds in itself"), Some("")];
    let dictionary: DictionaryArray<Int8Type> = strings.iter().copied().collect();
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let pair =
        Int32Array::from(vec![Some(1), None, Some(3), Some(4), Some(5), Some(6), None, None]);
    let fields = vec![
        (
            Arc::new(Field::new("x", DataType::Int64, true)),
            Arc::new(Int64Array::from_iter(0..4)) as ArrayRef,
        ),
        (
            Arc::new(Field::new("d", dictionary.data_type().clone(), true)),
            Arc::new(dictionary.clone()) as ArrayRef,
        ),
    ];
    let lists = [Some(vec![Some(from), None]), None, Some(vec![]), Some(vec![Some(1)])];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int64Array::from_iter_values(from..from + 4))),
        ("s", Arc::new(StringArray::from(strings.to_vec()))),
        ("l", Arc::new(LargeStringArray::from(strings.to_vec()))),
        ("v", Arc::new(StringViewArray::from(strings.to_vec()))),
        ("d", Arc::new(dictionary)),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), None]))),
        ("n", Arc::new(NullArray::new(4))),
        (
            "m",
            Arc::new(
                Decimal128Array::from(vec![1, -2, 3, 4]).with_precision_and_scale(9, 2).unwrap(),
            ),
        ),
        ("li", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))),
        ("fi", Arc::new(FixedSizeListArray::new(item, 2, Arc::new(pair), None))),
        ("st", Arc::new(StructArray::from(fields))),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

fn options(codec: Option<CompressionType>) -> IpcWriteOptions {
    IpcWriteOptions::default().try_with_compression(codec).unwrap()
}

fn file_of(batches: &[RecordBatch], codec: Option<CompressionType>) -> Vec<u8> {
    let mut writer =
        FileWriter::try_new_with_options(vec![], &batches[0].schema(), options(codec)).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn stream_of(batches: &[RecordBatch], options: IpcWriteOptions) -> Vec<u8> {
    let mut writer =
        StreamWriter::try_new_with_options(vec![], &batches[0].schema(), options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn read(path: &Path) -> Result<RecordBatch> {
    let file = IpcFile::open(path)?;
    let columns: Vec<usize> = (0..file.schema.fields().len()).collect();
    let batches =
        (0..file.batches.len()).map(|at| file.read(at, &columns)).collect::<Result<Vec<_>>>()?;
    Ok(concat_batches(&file.schema, &batches)?)
}

fn read_bytes(bytes: &[u8]) -> Result<RecordBatch> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.arrow");
    std::fs::write(&path, bytes).unwrap();
    read(&path)
}

#[test]
fn files_and_streams_are_read_in_plain_types() {
    let batches = [rows(0), rows(100)];
    for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        for bytes in [file_of(&batches, codec), stream_of(&[rows(0), rows(100)], options(codec))] {
            let found = read_bytes(&bytes).unwrap();
            assert_eq!(found.num_rows(), 8);
            for name in ["s", "l", "v", "d"] {
                let text = found.column_by_name(name).unwrap().as_string_view();
                assert_eq!(text.value(6), "a string that no view holds in itself", "{name}");
                assert!(text.is_null(1) && text.value(3).is_empty());
            }
            let inner = found.column_by_name("st").unwrap().as_struct().column(1).as_string_view();
            assert_eq!(inner.value(4), "a");
            assert_eq!(found.column(0).as_primitive::<Int64Type>().value(5), 101);
            assert_eq!(found.column_by_name("li").unwrap().as_list::<i32>().value(4).len(), 2);
            assert_eq!(
                found.column_by_name("fi").unwrap().as_fixed_size_list().value(7).null_count(),
                2
            );
        }
    }
}

#[test]
fn only_the_columns_that_are_wanted_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.arrow");
    std::fs::write(&path, file_of(&[rows(0), rows(7)], Some(CompressionType::ZSTD))).unwrap();
    let file = IpcFile::open(&path).unwrap();
    let found = file.read(1, &[4, 0]).unwrap();
    assert_eq!(
        found.schema().fields().iter().map(|field| field.name()).collect::<Vec<_>>(),
        ["d", "i"]
    );
    assert_eq!(found.column(1).as_primitive::<Int64Type>().values(), &[7, 8, 9, 10]);
    let none = file.read(0, &[]).unwrap();
    assert_eq!((none.num_rows(), none.num_columns()), (4, 0));
    assert_eq!(file.batches[1].rows, 4);
}

#[test]
fn dictionaries_grow_and_are_replaced_in_streams() {
    let of = |words: &[&str]| -> RecordBatch {
        let dictionary: DictionaryArray<Int32Type> = words.iter().copied().collect();
        RecordBatch::try_from_iter([("d", Arc::new(dictionary) as ArrayRef)]).unwrap()
    };
    let (grown, replaced) =
        ([of(&["a", "b"]), of(&["a", "b", "c", "c"])], [of(&["a", "b"]), of(&["x", "y"])]);
    let delta = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
    for (bytes, expected) in [
        (stream_of(&grown, delta), "abab cc"),
        (stream_of(&replaced, IpcWriteOptions::default()), "abxy"),
    ] {
        let found = read_bytes(&bytes).unwrap();
        let text: String = found.column(0).as_string_view().iter().flatten().collect();
        assert_eq!(text, expected.replace(' ', ""));
    }
}

#[test]
fn a_damaged_file_fails_by_its_name_or_is_read() {
    let mut seen = 0;
    let begin = Instant::now();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.arrow");
    let mut check = |bytes: &[u8], what: &str| {
        // Some file systems wait for the disk where a file is written over.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, bytes).unwrap();
        let start = Instant::now();
        if let Err(error) = read(&path) {
            seen += 1;
            let ErrorKind::File { path: of, .. } = error.kind() else {
                panic!("{what}: {error:?}")
            };
            assert_eq!(*of, path, "{what}: {error}");
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{what} took {:?}", start.elapsed());
    };
    for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        for (kind, bytes) in [
            ("file", file_of(&[rows(0)], codec)),
            ("stream", stream_of(&[rows(0)], options(codec))),
        ] {
            for at in 0..bytes.len() {
                check(&bytes[..at], &format!("{kind} {codec:?} cut at {at}"));
                for flip in [0xFF, 1 << (at % 8)] {
                    let mut damaged = bytes.clone();
                    damaged[at] ^= flip;
                    check(&damaged, &format!("{kind} {codec:?} byte {at} ^ {flip:x}"));
                }
            }
        }
    }
    assert!(seen > 10_000, "{seen} in {:?}", begin.elapsed());
}

#[test]
fn lengths_are_not_believed() {
    let bytes = file_of(&[rows(0)], Some(CompressionType::ZSTD));
    let refused = |bytes: &[u8]| read_bytes(bytes).unwrap_err().to_string();
    // A packed buffer that says that it holds a terabyte. The first one begins with its length.
    let packed = [0x28, 0xB5, 0x2F, 0xFD];
    let at = bytes.windows(4).position(|window| window == packed).unwrap() - 8;
    let mut huge = bytes.clone();
    huge[at..at + 8].copy_from_slice(&(1i64 << 40).to_le_bytes());
    let told = refused(&huge);
    assert!(
        told.contains("is said to unpack to 1099511627776") && told.contains("message "),
        "{told}"
    );
    let mut negative = bytes.clone();
    negative[at..at + 8].copy_from_slice(&(-7i64).to_le_bytes());
    assert!(refused(&negative).contains("unpack to -7"));
    // A stream whose first message is of two gigabytes.
    let mut stream = stream_of(&[rows(0)], IpcWriteOptions::default());
    stream[4..8].copy_from_slice(&i32::MAX.to_le_bytes());
    assert!(refused(&stream).contains("no Arrow stream"));
    assert!(refused(&bytes[..bytes.len() - 1]).contains("it is cut"));
    assert!(refused(b"FEA1 and so on").contains("version 1"));
    assert!(refused(b"a,b\n1,2\n").contains("no Arrow file"));
    assert!(refused(b"").contains("is empty"));
}
