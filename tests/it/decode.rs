//! Parquet files that the device decodes, against the CPU engine: every codec, encoding, page
//! version and flat type, with nulls and without, and which columns are left to the host's reader.

mod columns;
mod crafted;
mod facts;
mod folder;
mod physical;

use std::path::Path;

use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use datafusion::parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterVersion,
};
use warpframe::arrow::array::{Array, ArrayRef, RecordBatch};
use warpframe::arrow::compute::{cast, concat_batches};
use warpframe::arrow::datatypes::{DataType, SchemaRef};
use warpframe::arrow::util::display::{ArrayFormatter, FormatOptions};
use warpframe::prelude::*;

use crate::differential::Pair;
use columns::{BY_HOST, Nulls, Of};

/// How the columns of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Plain,
    Dictionary,
    /// Dictionaries are full after some rows; the pages behind are PLAIN, or DELTA in version 2.
    Overflow,
    /// DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, RLE.
    Delta,
    /// DELTA_BYTE_ARRAY.
    DeltaStrings,
    ByteStreamSplit,
}

const MODES: [Mode; 6] = [
    Mode::Plain,
    Mode::Dictionary,
    Mode::Overflow,
    Mode::Delta,
    Mode::DeltaStrings,
    Mode::ByteStreamSplit,
];

fn codecs() -> [Compression; 6] {
    [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
    ]
}

/// Whether a type is FIXED_LEN_BYTE_ARRAY in files that the arrow writer makes.
fn is_fixed(dtype: &DataType) -> bool {
    match dtype {
        DataType::Decimal128(precision, _) => *precision > 18,
        DataType::FixedSizeBinary(_) | DataType::Interval(_) => true,
        _ => false,
    }
}

impl Mode {
    fn encoding(self, dtype: &DataType) -> Encoding {
        let is_bytes = matches!(dtype, DataType::Dictionary(..))
            || dtype.is_string()
            || matches!(dtype, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
        match (self, dtype) {
            (Mode::Delta, DataType::Boolean) => Encoding::RLE,
            (Mode::Delta, _) if is_bytes => Encoding::DELTA_LENGTH_BYTE_ARRAY,
            (Mode::DeltaStrings, _) if is_bytes || is_fixed(dtype) => Encoding::DELTA_BYTE_ARRAY,
            (Mode::Delta, _) if !is_fixed(dtype) && !dtype.is_floating() => {
                Encoding::DELTA_BINARY_PACKED
            }
            (Mode::ByteStreamSplit, _) if !is_bytes && *dtype != DataType::Boolean => {
                Encoding::BYTE_STREAM_SPLIT
            }
            _ => Encoding::PLAIN,
        }
    }

    /// Writers of these columns.
    fn properties(self, schema: &SchemaRef, version: WriterVersion) -> WriterPropertiesBuilder {
        let properties =
            WriterProperties::builder().set_writer_version(version).set_write_batch_size(50);
        match self {
            Mode::Dictionary => properties,
            Mode::Overflow => properties.set_dictionary_page_size_limit(200),
            _ => schema.fields().iter().fold(
                properties.set_dictionary_enabled(false),
                |properties, field| {
                    properties.set_column_encoding(
                        field.name().as_str().into(),
                        self.encoding(field.data_type()),
                    )
                },
            ),
        }
    }

    /// The columns that are left to the host.
    fn by_host(self, schema: &SchemaRef) -> Vec<String> {
        let left = |name: &str, dtype: &DataType| {
            BY_HOST.contains(&name)
                || self == Mode::ByteStreamSplit && matches!(dtype, DataType::FixedSizeBinary(_))
        };
        let fields = schema.fields().iter().filter(|field| left(field.name(), field.data_type()));
        fields.map(|field| field.name().clone()).collect()
    }
}

fn write(path: &Path, batches: &[RecordBatch], properties: WriterPropertiesBuilder) {
    let file = std::fs::File::create(path).expect("the file can be made");
    let mut writer = ArrowWriter::try_new(file, batches[0].schema(), Some(properties.build()))
        .expect("a writer");
    for batch in batches {
        writer.write(batch).expect("rows can be written");
        writer.flush().expect("a row group ends");
    }
    writer.close().expect("the file is whole");
}

/// What a session reads, as one batch.
fn read(session: &Session, path: &Path, options: ParquetOptions, origin: &str) -> RecordBatch {
    let frame = session.scan_parquet_with(path, options).and_then(|frame| frame.collect());
    let frame = frame.unwrap_or_else(|error| panic!("{origin}: {error}"));
    let batches = frame.to_arrow().unwrap_or_else(|error| panic!("{origin}: {error}"));
    concat_batches(&frame.schema(), &batches).expect("batches of one schema")
}

/// What is read of a path, equal on both; exactly these columns are left to the host.
#[track_caller]
fn agree_with(
    pair: &Pair,
    path: &Path,
    options: ParquetOptions,
    by_host: &[String],
    origin: &str,
) -> RecordBatch {
    let expected = read(&pair.cpu, path, options.clone(), origin);
    pair.device.take_host_reads();
    let found = read(&pair.device, path, options, origin);
    let sentences = pair.device.take_host_reads();
    assert_eq!(expected.num_rows(), found.num_rows(), "{origin}");
    for (field, (expected, found)) in
        expected.schema().fields().iter().zip(expected.columns().iter().zip(found.columns()))
    {
        same(expected, found, &format!("{origin}, column {}", field.name()));
    }
    let name = |sentence: &String| sentence.split('"').nth(1).unwrap_or_default().to_string();
    let (mut left, mut expected_left) =
        (sentences.iter().map(name).collect::<Vec<_>>(), by_host.to_vec());
    left.sort();
    expected_left.sort();
    assert_eq!(left, expected_left, "{origin}: {sentences:#?}");
    let start = |sentence: &String| {
        sentence.contains(&format!(" of {} is read by the host: ", path.display()))
    };
    assert!(sentences.iter().all(start), "{origin}: {sentences:#?}");
    found
}

#[track_caller]
fn agree(pair: &Pair, path: &Path, by_host: &[String], origin: &str) -> RecordBatch {
    agree_with(pair, path, ParquetOptions::default(), by_host, origin)
}

#[track_caller]
fn same(expected: &ArrayRef, found: &ArrayRef, origin: &str) {
    assert_eq!(expected.data_type(), found.data_type(), "{origin}");
    if expected == found {
        return;
    }
    let options = FormatOptions::new().with_null("NULL").with_display_error(true);
    let text = |array: &ArrayRef, row| {
        ArrayFormatter::try_new(array.as_ref(), &options)
            .expect("a type that prints")
            .value(row)
            .to_string()
    };
    let differs = |row: &usize| expected.slice(*row, 1) != found.slice(*row, 1);
    let rows: Vec<_> = (0..expected.len()).filter(differs).collect();
    let shown: Vec<_> =
        rows.iter().take(5).map(|at| (at, text(expected, *at), text(found, *at))).collect();
    // Arrays that differ in nothing that is seen are equal.
    assert!(
        rows.is_empty(),
        "{origin}: {} of {} rows differ: {shown:?}",
        rows.len(),
        expected.len()
    );
}

#[test]
fn every_codec_encoding_page_version_and_type() {
    let (pair, directory) = (Pair::new(), tempfile::tempdir().expect("a directory"));
    let nulls = [Nulls::Required, Nulls::Some, Nulls::ByPage];
    let mut files = 0;
    for codec in codecs() {
        for mode in MODES {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                let distinct = if mode == Mode::Dictionary { 20 } else { 1000 };
                let nulls = nulls[files % nulls.len()];
                let batches = [(260, 1), (90, 2)]
                    .map(|(rows, salt)| Of { rows, nulls, distinct, salt }.batch());
                let schema = batches[0].schema();
                let path = directory.path().join(format!("{files}.parquet"));
                let properties = mode.properties(&schema, version).set_compression(codec);
                write(&path, &batches, properties.set_data_page_row_count_limit(100));
                let origin = format!("{codec}, {mode:?}, {version:?}, nulls {nulls:?}");
                let found = agree(&pair, &path, &mode.by_host(&schema), &origin);
                assert_eq!(found.num_rows(), 350, "{origin}");
                files += 1;
            }
        }
    }
    assert_eq!(files, 72);
}

#[test]
fn every_pattern_of_nulls_and_number_of_rows() {
    let (pair, directory) = (Pair::new(), tempfile::tempdir().expect("a directory"));
    let mut files = 0;
    for nulls in [Nulls::Required, Nulls::None, Nulls::Some, Nulls::All, Nulls::ByPage] {
        for rows in [0, 1, 31, 32, 33, 700] {
            // Another one for each pattern, whatever the number of rows.
            let mode = MODES[(files + files / 6) % MODES.len()];
            let version = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0][files / 2 % 2];
            let batch = Of { rows, nulls, distinct: 40, salt: 1 }.batch();
            let path = directory.path().join(format!("{files}.parquet"));
            let properties =
                mode.properties(&batch.schema(), version).set_data_page_row_count_limit(100);
            write(
                &path,
                std::slice::from_ref(&batch),
                properties.set_compression(Compression::SNAPPY),
            );
            let origin = format!("{rows} rows, {mode:?}, {version:?}, nulls {nulls:?}");
            // Without pages there are no encodings.
            let mode = if rows == 0 { Mode::Plain } else { mode };
            agree(&pair, &path, &mode.by_host(&batch.schema()), &origin);
            files += 1;
        }
    }
}

#[test]
fn pages_of_many_rows() {
    let (pair, directory) = (Pair::new(), tempfile::tempdir().expect("a directory"));
    for (at, mode) in MODES.into_iter().enumerate() {
        let nulls = [Nulls::Required, Nulls::ByPage, Nulls::Some][at % 3];
        let distinct = if mode == Mode::Dictionary { 1500 } else { 1 << 40 };
        let batch = Of { rows: 9000, nulls, distinct, salt: 1 }.batch();
        let path = directory.path().join(format!("{at}.parquet"));
        let properties = mode.properties(&batch.schema(), WriterVersion::PARQUET_1_0);
        write(&path, std::slice::from_ref(&batch), properties.set_compression(codecs()[at % 3]));
        agree(&pair, &path, &mode.by_host(&batch.schema()), &format!("{mode:?}, nulls {nulls:?}"));
    }
}

#[test]
fn files_and_row_groups_of_different_kinds_are_one_table() {
    let (pair, directory) = (Pair::new(), tempfile::tempdir().expect("a directory"));
    let parts = [
        (Mode::Dictionary, Nulls::Some, 10, Compression::SNAPPY),
        (Mode::Dictionary, Nulls::None, 30, Compression::ZSTD(ZstdLevel::default())),
        (Mode::Overflow, Nulls::ByPage, 300, Compression::UNCOMPRESSED),
        (Mode::Delta, Nulls::All, 5, Compression::LZ4_RAW),
        (Mode::Plain, Nulls::Some, 7, Compression::GZIP(GzipLevel::default())),
    ];
    // All of dictionaries; some of them; none.
    for (name, chosen) in
        [("dictionaries", &parts[..2]), ("mixed", &parts[..]), ("views", &parts[3..])]
    {
        let folder = directory.path().join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let mut schema = None;
        for (at, (mode, nulls, distinct, codec)) in chosen.iter().enumerate() {
            let batches = [1, 2, 3].map(|group| {
                let (rows, salt) = (40 * group as usize, group * 10 + at as u64);
                Of { rows, nulls: *nulls, distinct: *distinct, salt }.batch()
            });
            schema = Some(batches[0].schema());
            let properties = mode.properties(&batches[0].schema(), WriterVersion::PARQUET_1_0);
            write(
                &folder.join(format!("{at}.parquet")),
                &batches,
                properties.set_compression(*codec),
            );
        }
        let by_host = Mode::Plain.by_host(&schema.expect("a file"));
        agree(&pair, &folder, &by_host, name);
    }
    // Columns that are required in one file, and in another have nulls.
    for order in [[Nulls::Required, Nulls::Some], [Nulls::Some, Nulls::Required]] {
        let folder = directory.path().join(format!("{order:?}"));
        std::fs::create_dir(&folder).expect("a folder");
        for (at, nulls) in order.into_iter().enumerate() {
            let batch = Of { rows: 70, nulls, distinct: 9, salt: at as u64 }.batch();
            let properties =
                Mode::Dictionary.properties(&batch.schema(), WriterVersion::PARQUET_1_0);
            write(&folder.join(format!("{at}.parquet")), &[batch], properties);
        }
        agree(&pair, &folder, &BY_HOST.map(String::from), &format!("{order:?}"));
    }
}

#[test]
fn what_the_device_does_not_read_has_its_reason() {
    let (pair, directory) = (Pair::new(), tempfile::tempdir().expect("a directory"));
    let path = directory.path().join("rows.parquet");
    let batch = Of { rows: 50, nulls: Nulls::Some, distinct: 10, salt: 1 }.batch();
    let names = |batch: &RecordBatch| {
        batch.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>()
    };
    // LZ4 was written in more ways than one.
    let properties = Mode::Plain.properties(&batch.schema(), WriterVersion::PARQUET_1_0);
    write(&path, std::slice::from_ref(&batch), properties.set_compression(Compression::LZ4));
    agree(&pair, &path, &names(&batch), "LZ4");
    // The device makes wider numbers of narrow ones, decimals of another scale too.
    let folder = directory.path().join("types");
    std::fs::create_dir(&folder).expect("a folder");
    let types = [
        [DataType::Int64, DataType::Decimal128(14, 3)],
        [DataType::Int16, DataType::Decimal128(12, 1)],
    ];
    for (at, types) in types.iter().enumerate() {
        let [n, m] = types.each_ref().map(|dtype| {
            let numbers = cast(batch.column_by_name("i32").expect("a column"), dtype);
            numbers.expect("numbers, or nulls where they do not fit")
        });
        let part = RecordBatch::try_from_iter([("n", n), ("m", m)]).expect("columns");
        let properties = Mode::Plain.properties(&part.schema(), WriterVersion::PARQUET_1_0);
        write(&folder.join(format!("{at}.parquet")), &[part], properties);
    }
    agree(&pair, &folder, &[], "files of different types");
    // Without size statistics nobody knows how long strings in DELTA_BYTE_ARRAY are.
    let columns = ["i32", "utf8", "binary", "fixed_3", "decimal_20_3"];
    let schema = batch.schema();
    let batch = batch
        .project(&columns.map(|name| schema.index_of(name).expect("a column")))
        .expect("columns");
    let properties = || Mode::DeltaStrings.properties(&batch.schema(), WriterVersion::PARQUET_1_0);
    write(&path, std::slice::from_ref(&batch), properties());
    agree(&pair, &path, &[], "with size statistics");
    write(
        &path,
        std::slice::from_ref(&batch),
        properties().set_statistics_enabled(EnabledStatistics::None),
    );
    agree(&pair, &path, &["utf8", "binary"].map(String::from), "without size statistics");
}
