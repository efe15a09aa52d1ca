//! Files to damage: of every encoding, codec, page version and kind of column that the parquet
//! crate writes.

use std::path::Path;
use std::sync::Arc;

use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use datafusion::parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use warpframe::arrow::array::*;
use warpframe::arrow::buffer::{NullBuffer, OffsetBuffer};
use warpframe::arrow::datatypes::{DataType, Field, Int32Type, Schema};

use crate::parquet::{Values, write};

pub struct Source {
    pub name: String,
    pub bytes: Vec<u8>,
}

const ROWS: usize = 150;

fn is_null(row: usize, seed: usize) -> bool {
    (row * 7 + seed).is_multiple_of(11)
}

/// Flat columns of many types, with nulls.
fn flat() -> RecordBatch {
    let some = |seed: usize| (0..ROWS).map(move |row| (!is_null(row, seed)).then_some(row));
    let text = |row: usize| match row % 4 {
        0 => format!("a{}", row % 5),
        1 => "é".into(),
        2 => format!("a string that is longer than a view {row}"),
        _ => String::new(),
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("b", Arc::new(BooleanArray::from_iter(some(1).map(|v| v.map(|v| v % 3 == 0))))),
        ("i8", Arc::new(Int8Array::from_iter(some(2).map(|v| v.map(|v| v as i8))))),
        ("i32", Arc::new(Int32Array::from_iter(some(3).map(|v| v.map(|v| v as i32 * 1_000_003))))),
        ("i64", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|v| v as i64 * v as i64)))),
        ("u64", Arc::new(UInt64Array::from_iter(some(4).map(|v| v.map(|v| u64::MAX - v as u64))))),
        ("f32", Arc::new(Float32Array::from_iter(some(5).map(|v| v.map(|v| v as f32 / 7.0))))),
        ("f64", Arc::new(Float64Array::from_iter(some(6).map(|v| v.map(|v| 1.0 / v as f64))))),
        ("s", Arc::new(StringArray::from_iter(some(7).map(|v| v.map(text))))),
        (
            "z",
            Arc::new(BinaryArray::from_iter(some(8).map(|v| v.map(|v| v.to_le_bytes().to_vec())))),
        ),
        ("d", Arc::new(Date32Array::from_iter(some(9).map(|v| v.map(|v| v as i32 * 100))))),
        (
            "t",
            Arc::new(TimestampMicrosecondArray::from_iter(
                some(10).map(|v| v.map(|v| v as i64 * 1_000_000_007)),
            )),
        ),
        (
            "m",
            Arc::new(
                Decimal128Array::from_iter(some(0).map(|v| v.map(|v| v as i128 * 12_345)))
                    .with_precision_and_scale(20, 3)
                    .expect("a type"),
            ),
        ),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// Lists, structs and lists of structs.
fn nested() -> RecordBatch {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>((0..ROWS).map(|row| {
        (!is_null(row, 1)).then(|| {
            (0..row % 5).map(|at| (at != 2).then_some((row + at) as i32)).collect::<Vec<_>>()
        })
    }));
    let strings = StringArray::from_iter(
        (0..ROWS).map(|row| (!is_null(row, 2)).then(|| format!("text {row}"))),
    );
    let numbers =
        Int64Array::from_iter((0..ROWS).map(|row| (!is_null(row, 3)).then_some(row as i64)));
    let fields =
        vec![Field::new("s", DataType::Utf8, true), Field::new("n", DataType::Int64, true)];
    let nulls = NullBuffer::from_iter((0..ROWS).map(|row| !is_null(row, 4)));
    let structs =
        StructArray::new(fields.into(), vec![Arc::new(strings), Arc::new(numbers)], Some(nulls));
    let lengths = OffsetBuffer::from_lengths((0..ROWS).map(|row| usize::from(row % 2 == 0) * 2));
    let item = Arc::new(Field::new("item", structs.data_type().clone(), true));
    let of_structs = ListArray::new(item, lengths, Arc::new(structs.clone()), None);
    let columns: Vec<(&str, ArrayRef)> =
        vec![("l", Arc::new(lists)), ("st", Arc::new(structs)), ("ls", Arc::new(of_structs))];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// Strings and numbers without nulls, many of them equal.
fn equal() -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("s", DataType::Utf8, false),
        Field::new("n", DataType::Int64, false),
    ]);
    let s = StringArray::from_iter_values(
        (0..ROWS).map(|row| ["red", "green", "a colour without a name"][row / 50]),
    );
    let n = Int64Array::from_iter_values((0..ROWS).map(|row| row as i64 / 30));
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(s), Arc::new(n)])
        .expect("columns of the schema")
}

/// Strings of which each row group has others, in dictionaries of their own, and some nulls.
fn of_groups() -> RecordBatch {
    let text = |row: usize| {
        format!("{} in group {}", ["red", "green", "a colour without a name"][row % 3], row / 40)
    };
    let s = StringArray::from_iter((0..ROWS).map(|row| (!is_null(row, 3)).then(|| text(row))));
    let n = Int64Array::from_iter(
        (0..ROWS).map(|row| (!is_null(row, 5)).then_some((row / 40 * 1000 + row % 4) as i64)),
    );
    let none = Int32Array::from_iter((0..ROWS).map(|row| (row / 40 == 1).then_some(row as i32)));
    let only = StringArray::from_iter((0..ROWS).map(|_| None::<&str>));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("s", Arc::new(s)),
        ("n", Arc::new(n)),
        ("some", Arc::new(none)),
        ("none", Arc::new(only)),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn written(batch: &RecordBatch, properties: WriterPropertiesBuilder) -> Vec<u8> {
    let mut bytes = vec![];
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties.build()))
        .expect("a writer");
    writer.write(batch).expect("rows can be written");
    writer.close().expect("the file is whole");
    bytes
}

/// All of them; files are made in the directory on the way.
pub fn all(directory: &Path) -> Vec<Source> {
    let plain = WriterProperties::builder;
    let bare = || plain().set_dictionary_enabled(false);
    let small = || plain().set_data_page_row_count_limit(40).set_write_batch_size(20);
    let codecs = [
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(GzipLevel::default())),
        ("zstd", Compression::ZSTD(ZstdLevel::default())),
        ("lz4_raw", Compression::LZ4_RAW),
        ("brotli", Compression::BROTLI(BrotliLevel::default())),
    ];
    let mut made: Vec<(String, Vec<u8>)> = vec![];
    let mut add = |name: &str, bytes: Vec<u8>| made.push((name.to_string(), bytes));
    for (name, compression) in codecs {
        add(&format!("flat {name}"), written(&flat(), plain().set_compression(compression)));
        add(&format!("equal {name}"), written(&equal(), small().set_compression(compression)));
    }
    add("flat", written(&flat(), plain()));
    add("flat, plain", written(&flat(), bare()));
    add("flat, version 2", written(&flat(), bare().set_writer_version(WriterVersion::PARQUET_2_0)));
    add("equal", written(&equal(), plain()));
    add("nested", written(&nested(), plain()));
    add("nested, plain", written(&nested(), bare()));
    let second =
        plain().set_writer_version(WriterVersion::PARQUET_2_0).set_compression(Compression::SNAPPY);
    add("nested, version 2", written(&nested(), second));
    add("small pages", written(&flat(), small()));
    add("row groups", written(&flat(), small().set_max_row_group_row_count(Some(40))));
    add(
        "filters",
        written(&flat(), plain().set_bloom_filter_enabled(true).set_bloom_filter_max_ndv(10)),
    );
    add("no statistics", written(&flat(), plain().set_statistics_enabled(EnabledStatistics::None)));
    add(
        "statistics of chunks",
        written(&nested(), plain().set_statistics_enabled(EnabledStatistics::Chunk)),
    );
    let encodings = [
        ("i32", Encoding::DELTA_BINARY_PACKED),
        ("i64", Encoding::DELTA_BINARY_PACKED),
        ("f32", Encoding::BYTE_STREAM_SPLIT),
        ("f64", Encoding::BYTE_STREAM_SPLIT),
        ("s", Encoding::DELTA_LENGTH_BYTE_ARRAY),
        ("z", Encoding::DELTA_BYTE_ARRAY),
        ("m", Encoding::DELTA_BYTE_ARRAY),
        ("d", Encoding::DELTA_BINARY_PACKED),
        ("i8", Encoding::BYTE_STREAM_SPLIT),
        ("u64", Encoding::BYTE_STREAM_SPLIT),
        ("b", Encoding::RLE),
    ];
    let encoded = |properties: WriterPropertiesBuilder| {
        encodings.iter().fold(properties, |all, (column, encoding)| {
            all.set_column_encoding((*column).into(), *encoding)
        })
    };
    add("encodings", written(&flat(), encoded(bare())));
    add(
        "encodings, snappy",
        written(&flat(), encoded(bare()).set_compression(Compression::SNAPPY)),
    );
    add(
        "encodings, version 2",
        written(&flat(), encoded(bare().set_writer_version(WriterVersion::PARQUET_2_0))),
    );
    let second = |properties: WriterPropertiesBuilder| {
        properties.set_writer_version(WriterVersion::PARQUET_2_0)
    };
    let groups = || small().set_max_row_group_row_count(Some(40));
    for (name, compression) in codecs {
        let pages = second(bare()).set_data_page_row_count_limit(40).set_write_batch_size(20);
        add(
            &format!("encodings, {name}, version 2"),
            written(&flat(), encoded(pages).set_compression(compression)),
        );
        add(
            &format!("dictionaries, {name}"),
            written(&of_groups(), groups().set_compression(compression)),
        );
        add(
            &format!("dictionaries, {name}, version 2"),
            written(&of_groups(), second(groups().set_compression(compression))),
        );
    }
    // Dictionaries that are full, and PLAIN or DELTA behind.
    for (name, properties) in [("version 1", small()), ("version 2", second(small()))] {
        let properties =
            properties.set_dictionary_page_size_limit(60).set_compression(Compression::LZ4_RAW);
        add(&format!("full dictionaries, {name}"), written(&flat(), properties));
    }
    let strings = |encoding| bare().set_column_encoding("s".into(), encoding);
    let no_sizes =
        strings(Encoding::DELTA_BYTE_ARRAY).set_statistics_enabled(EnabledStatistics::None);
    add("delta strings of unknown size", written(&of_groups(), no_sizes));
    add("delta strings with nulls", written(&of_groups(), strings(Encoding::DELTA_BYTE_ARRAY)));
    add(
        "delta lengths with nulls",
        written(&of_groups(), strings(Encoding::DELTA_LENGTH_BYTE_ARRAY)),
    );
    add("delta strings", written(&equal(), strings(Encoding::DELTA_BYTE_ARRAY)));
    add("delta lengths", written(&equal(), strings(Encoding::DELTA_LENGTH_BYTE_ARRAY)));
    let path = directory.join("source.parquet");
    let columns = "required int96 t; required binary s; required fixed_len_byte_array(5) f; \
                   required fixed_len_byte_array(9) d (DECIMAL(20, 2)); required int32 e (DECIMAL(5, 1)); \
                   required binary j (JSON); required binary v (DECIMAL(9, 2)); \
                   required fixed_len_byte_array(9) w (DECIMAL(20, 1));";
    let of = |row: usize| {
        vec![
            Values::Int96(
                (0..60).map(|at| (2_440_588 + row as u32 + at, 1_000 * u64::from(at))).collect(),
            ),
            Values::Bytes([&b"bytes \xff"[..], b"b", b"and more of them"].repeat(20)),
            Values::Fixed((0..60u8).map(|at| vec![at; 5]).collect()),
            Values::Fixed((0..60u8).map(|at| vec![0, 0, 0, 0, 0, 0, 0, at, 7]).collect()),
            Values::Int32((0..60).map(|at| at * 1000).collect()),
            Values::Bytes([&b"{\"a\": 1}"[..], b"[]", b"null"].repeat(20)),
            Values::Bytes([&b"\x01"[..], b"\xff\x00", b"\x05\xf5\xe0\xff"].repeat(20)),
            Values::Fixed((0..60u8).map(|at| vec![255, 255, 255, 255, at, 0, at, 1, 7]).collect()),
        ]
    };
    let split = bare().set_column_encoding("w".into(), Encoding::BYTE_STREAM_SPLIT);
    let split = split.set_column_encoding("d".into(), Encoding::DELTA_BYTE_ARRAY);
    let split = split.set_column_encoding("f".into(), Encoding::DELTA_BYTE_ARRAY);
    let names = [
        "of other writers",
        "of other writers, plain",
        "of other writers, split",
        "of other writers, version 2",
    ];
    for (name, properties) in names.into_iter().zip([plain(), bare(), split, second(small())]) {
        write(&path, columns, &[of(0), of(1000)], properties);
        add(name, std::fs::read(&path).expect("it was written"));
    }
    made.into_iter().map(|(name, bytes)| Source { name, bytes }).collect()
}
