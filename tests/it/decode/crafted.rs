//! Pages as some writers make them and the parquet crate's does not: put together byte by byte.

use std::path::Path;
use std::sync::Arc;

use datafusion::parquet::file::metadata::{
    FileMetaData, ParquetMetaDataBuilder, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use warpframe::ErrorKind;
use warpframe::arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
use warpframe::arrow::datatypes::Int32Type;
use warpframe::prelude::*;

use super::{agree, write};
use crate::differential::{Cell, Pair, rows_of, run, scalar};
use crate::parquet::Values;

/// Fields of the compact protocol: the number's distance from the one before, and a value.
fn field(distance: u8, value: i32, bytes: &mut Vec<u8>) {
    bytes.push(distance << 4 | 5);
    let mut rest = (value << 1 ^ value >> 31) as u32;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// A page of version 1: values and their encoding, the encodings of both kinds of levels.
fn page(content: &[u8], values: i32, encodings: [i32; 3]) -> Vec<u8> {
    let mut bytes = vec![];
    for value in [0, content.len() as i32, content.len() as i32] {
        field(1, value, &mut bytes);
    }
    bytes.push(2 << 4 | 12);
    field(1, values, &mut bytes);
    encodings.into_iter().for_each(|encoding| field(1, encoding, &mut bytes));
    bytes.extend([0, 0]);
    bytes.extend(content);
    bytes
}

/// A dictionary in PLAIN.
fn dictionary_page(content: &[u8], values: i32) -> Vec<u8> {
    let mut bytes = vec![];
    for value in [2, content.len() as i32, content.len() as i32] {
        field(1, value, &mut bytes);
    }
    bytes.push(4 << 4 | 12);
    field(1, values, &mut bytes);
    field(1, 0, &mut bytes);
    bytes.extend([0, 0]);
    bytes.extend(content);
    bytes
}

/// A page of version 2 that is not compressed; the content begins with levels of so many bytes.
fn page_v2(content: &[u8], values: i32, nulls: i32, definition: i32, repetition: i32) -> Vec<u8> {
    let mut bytes = vec![];
    for value in [3, content.len() as i32, content.len() as i32] {
        field(1, value, &mut bytes);
    }
    bytes.push(5 << 4 | 12);
    for value in [values, nulls, values, 0, definition, repetition] {
        field(1, value, &mut bytes);
    }
    bytes.extend([1 << 4 | 2, 0, 0]);
    bytes.extend(content);
    bytes
}

/// Puts these pages into the file's only column chunk, and has the file say that it has `rows`
/// rows.
fn with_pages(path: &Path, pages: &[u8], rows: i64) {
    let bytes = std::fs::read(path).expect("it was written");
    let length = bytes.len() - 8;
    let begin = length
        - u32::from_le_bytes(bytes[length..length + 4].try_into().expect("four bytes")) as usize;
    let metadata =
        ParquetMetaDataReader::decode_metadata(&bytes[begin..length]).expect("it is whole");
    let group = metadata.row_group(0);
    let chunk = group
        .column(0)
        .clone()
        .into_builder()
        .set_data_page_offset(4)
        .set_dictionary_page_offset(None);
    let chunk = chunk
        .set_total_compressed_size(pages.len() as i64)
        .set_total_uncompressed_size(pages.len() as i64);
    let chunk =
        chunk.set_offset_index_offset(None).set_offset_index_length(None).clear_statistics();
    let chunk = chunk
        .set_column_index_offset(None)
        .set_column_index_length(None)
        .build()
        .expect("a column chunk");
    let group =
        group.clone().into_builder().set_column_metadata(vec![chunk]).build().expect("a row group");
    let of_file = metadata.file_metadata();
    let (version, schema) = (of_file.version(), of_file.schema_descr_ptr());
    let of_file = FileMetaData::new(version, rows, None, None, schema, None);
    let metadata = ParquetMetaDataBuilder::new(of_file).set_row_groups(vec![group]).build();
    let mut file = [b"PAR1".as_slice(), pages].concat();
    ParquetMetaDataWriter::new(&mut file, &metadata).finish().expect("a footer can be written");
    std::fs::write(path, file).expect("the file can be written");
}

/// A file of one column `n` with so many rows; all is well with it.
fn whole(path: &Path, is_optional: bool) {
    let numbers = Int32Array::from_iter_values(0..4);
    let batch =
        RecordBatch::try_from_iter_with_nullable([("n", Arc::new(numbers) as _, is_optional)]);
    write(path, &[batch.expect("a column")], WriterProperties::builder());
}

const RLE: i32 = 3;
const BIT_PACKED: i32 = 4;
/// 1, 2, 3, 4, in PLAIN.
const VALUES: [u8; 16] = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0];

#[test]
fn levels_that_say_nothing() {
    let (pair, directory) = (Pair::new(), tempfile::tempdir().expect("a directory"));
    let path = directory.path().join("rows.parquet");
    // No null, one null, in the hybrid of runs and packed bits, which says how long it is.
    let (all, one) = ([2, 0, 0, 0, 8, 1], [2, 0, 0, 0, 3, 0b1101]);
    let of_required = [
        page(&VALUES, 4, [0, BIT_PACKED, BIT_PACKED]),
        page(&VALUES, 4, [0, RLE, BIT_PACKED]),
        page_v2(&VALUES, 4, 0, 0, 0),
        page_v2(&[&[8, 0][..], &VALUES].concat(), 4, 0, 0, 2),
        [
            page(&VALUES[..8], 2, [0, RLE, RLE]),
            page(&[], 0, [0, RLE, RLE]),
            page(&VALUES[8..], 2, [0, RLE, RLE]),
        ]
        .concat(),
    ];
    let of_optional = [
        page(&[&all[..], &VALUES].concat(), 4, [0, RLE, BIT_PACKED]),
        page_v2(&[&[8, 0, 8, 1][..], &VALUES].concat(), 4, 0, 2, 2),
    ];
    let of_one_null = [
        page(&[&one[..], &VALUES[..12]].concat(), 4, [0, RLE, BIT_PACKED]),
        page_v2(&[&[8, 0, 3, 0b1101][..], &VALUES[..12]].concat(), 4, 1, 2, 2),
    ];
    let numbers = |nulls: bool| {
        if nulls { vec![Some(1), None, Some(2), Some(3)] } else { (1..5).map(Some).collect() }
    };
    let cases = of_required.iter().map(|pages| (false, pages, false));
    let cases = cases.chain(of_optional.iter().map(|pages| (true, pages, false)));
    for (at, (optional, pages, nulls)) in
        cases.chain(of_one_null.iter().map(|pages| (true, pages, true))).enumerate()
    {
        whole(&path, optional);
        with_pages(&path, pages, 4);
        let found = agree(&pair, &path, &[], &format!("case {at}"));
        let found: Vec<Option<i32>> = found.column(0).as_primitive::<Int32Type>().iter().collect();
        assert_eq!(found, numbers(nulls), "case {at}");
    }
}

#[test]
fn rows_are_those_of_row_groups() {
    let (pair, directory) = (Pair::new(), tempfile::tempdir().expect("a directory"));
    let path = directory.path().join("rows.parquet");
    for said in [0, 3, 4, 1 << 40] {
        whole(&path, false);
        with_pages(&path, &page(&VALUES, 4, [0, RLE, RLE]), said);
        assert_eq!(agree(&pair, &path, &[], &format!("{said} rows")).num_rows(), 4);
        for session in [&pair.cpu, &pair.device] {
            session.register_parquet("t", &path).expect("the file can be read");
            assert_eq!(scalar(session, "SELECT count(*) FROM t"), Cell::Int(4), "{said} rows");
            assert_eq!(
                scalar(session, "SELECT count(*) FROM t WHERE n > 1"),
                Cell::Int(3),
                "{said} rows"
            );
        }
    }
}

/// What a session reads of a file; where it refuses the file, an error that names it.
fn rows_or_refusal(session: &Session, path: &Path, sql: &str) -> Option<Vec<Vec<Cell>>> {
    session.register_parquet("t", path).expect("its footer is whole");
    match run(session, sql).and_then(|frame| frame.to_arrow()) {
        Ok(batches) => Some(batches.iter().flat_map(rows_of).collect()),
        Err(error) => {
            assert!(
                matches!(error.kind(), ErrorKind::File { path: named, .. } if named == path),
                "{error:?}"
            );
            None
        }
    }
}

/// Where a value is not needed, its page is looked into all the same.
#[test]
fn what_the_hosts_reader_refuses_the_device_refuses() {
    let (pair, directory) = (Pair::new(), tempfile::tempdir().expect("a directory"));
    let path = directory.path().join("rows.parquet");
    let (nulls, all) = ([2, 0, 0, 0, 8, 0], [2, 0, 0, 0, 8, 1]);
    let [dictionary, packed] = [8, 5];
    let of_codes = |levels: [u8; 6], values: &[u8]| {
        page(&[&levels, values].concat(), 4, [dictionary, RLE, RLE])
    };
    let codes =
        |levels, values: &[u8]| [dictionary_page(&VALUES, 4), of_codes(levels, values)].concat();
    let deltas =
        |levels: [u8; 6], values: &[u8]| page(&[&levels, values].concat(), 4, [packed, RLE, RLE]);
    let read = [
        codes(nulls, &[]),
        codes(nulls, &[0]),
        codes(nulls, &[2, 0]),
        codes(all, &[2, 3, 0b11100100, 0]),
        codes(all, &[2, 8, 3, 0, 1]),
        deltas(nulls, &[128, 1, 4, 0, 0]),
        deltas(all, &[128, 1, 4, 4, 2, 2, 0, 0, 0, 0]),
    ];
    let refused = [
        codes(nulls, &[33]),
        codes(nulls, &[2, 8]),
        codes(all, &[33, 3, 0b11100100, 0]),
        deltas(nulls, &[]),
        deltas(nulls, &[64, 2, 0, 0]),
        deltas(all, &[64, 2, 4, 2, 2, 0, 0]),
        deltas(all, &[128, 1, 4, 4, 128, 128, 128, 128, 32, 2, 0, 0, 0, 0]),
        deltas(all, &[128, 1, 4, 4, 2, 128, 128, 128, 128, 32, 0, 0, 0, 0]),
        deltas(all, &[&[128, 1, 4, 4, 2, 2, 33, 0, 0, 0][..], &[0; 33 * 4]].concat()),
        [
            dictionary_page(&VALUES, 4),
            page(&[0, 0, 0, 0, 33], 0, [dictionary, RLE, RLE]),
            of_codes(all, &[2, 8, 3]),
        ]
        .concat(),
    ];
    let cases =
        read.iter().map(|pages| (pages, true)).chain(refused.iter().map(|pages| (pages, false)));
    for (at, (pages, is_read)) in cases.enumerate() {
        whole(&path, true);
        with_pages(&path, pages, 4);
        let found = [&pair.cpu, &pair.device]
            .map(|session| rows_or_refusal(session, &path, "SELECT n FROM t"));
        assert_eq!(found[0].is_some(), is_read, "case {at}: {:?}", found[0]);
        assert_eq!(found[0], found[1], "case {at}");
        // No reader is told of that refuses a file.
        assert_eq!(pair.device.take_host_reads(), Vec::<String>::new(), "case {at}");
    }
}

/// The host's reader has the last word, which may be that all is well.
#[test]
fn what_the_device_takes_for_damage_the_host_may_read() {
    let (pair, directory) = (Pair::new(), tempfile::tempdir().expect("a directory"));
    let path = directory.path().join("rows.parquet");
    // A day that 64 bits of microseconds do not reach: the host's reader wraps.
    let days = vec![(2_440_588, 5), (i32::MAX as u32, 7), (2_440_589, 0)];
    let strings = vec![&b"one"[..], b"a string that is longer than a view", b""];
    let columns = [Values::Int96(days), Values::Bytes(strings), Values::Int32(vec![1, 2, 3])];
    let schema = "required int96 t; required binary s (STRING); required int32 n;";
    crate::parquet::write(&path, schema, &[columns.to_vec()], WriterProperties::builder());
    agree(&pair, &path, &["t".to_string()], "a day out of reach");
    pair.device.register_parquet("t", &path).expect("the file can be read");
    run(&pair.device, "SELECT s, t FROM t").expect("the host reads it");
    let told = pair.device.take_host_reads();
    assert!(told.len() == 1 && told[0].contains("does not fit 64 bits"), "{told:?}");
}

/// Where it says that all is not well, its error counts; other columns are not asked.
#[test]
fn columns_beside_a_damaged_one_are_read() {
    let (pair, directory) = (Pair::new(), tempfile::tempdir().expect("a directory"));
    let path = directory.path().join("rows.parquet");
    let strings = || StringArray::from_iter_values((0..40).map(|at| format!("value {at:020}")));
    let batch = RecordBatch::try_from_iter([
        ("a", Arc::new(strings()) as ArrayRef),
        ("b", Arc::new(strings())),
        ("n", Arc::new(Int32Array::from_iter_values(0..40))),
    ]);
    let properties = WriterProperties::builder().set_dictionary_enabled(false);
    write(
        &path,
        &[batch.expect("columns")],
        properties.set_statistics_enabled(EnabledStatistics::None),
    );
    let mut bytes = std::fs::read(&path).expect("it was written");
    let mark = [&[26, 0, 0, 0][..], b"value 00000000000000000017"].concat();
    let places: Vec<usize> =
        (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&mark)).collect();
    assert_eq!(places.len(), 2);
    // A length in column b.
    bytes[places[1] + 2] = 0xFF;
    std::fs::write(&path, bytes).expect("the file can be written");
    for sql in ["SELECT * FROM t", "SELECT b FROM t", "SELECT max(a), count(b) FROM t"] {
        let errors = [&pair.cpu, &pair.device].map(|session| rows_or_refusal(session, &path, sql));
        assert_eq!(errors, [None, None], "{sql}");
    }
    let [expected, found] = [&pair.cpu, &pair.device]
        .map(|session| rows_or_refusal(session, &path, "SELECT a, n FROM t"));
    assert_eq!(expected.as_ref().map(Vec::len), Some(40));
    assert_eq!(found, expected);
    assert_eq!(pair.device.take_host_reads(), Vec::<String>::new());
}
