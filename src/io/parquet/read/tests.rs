use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::parquet::arrow::{ArrowWriter, parquet_to_arrow_schema};
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::metadata::ParquetMetaDataReader;
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::*;
use warpframe_device::{MemoryLimit, SimOptions};

const ROWS: u64 = 300;

/// A text of 26 bytes that compresses badly.
fn text(salt: u64, at: u64) -> String {
    let word = (at + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("{word:016x}{:010}", word.rotate_left(17) % 10_000_000_000)
}

fn number(at: u64) -> i64 {
    at as i64 ^ 0x1122_3344_5566_7788
}

fn few(at: u64) -> String {
    text(7000, at % 5)
}

/// A row group of numbers that may be null, of texts, and of texts that repeat.
fn rows(first: u64) -> RecordBatch {
    let rows = || first..first + ROWS;
    let columns: [(_, ArrayRef, _); 3] = [
        ("numbers", Arc::new(Int64Array::from_iter_values(rows().map(number))), true),
        ("many", Arc::new(StringArray::from_iter_values(rows().map(|at| text(0, at)))), false),
        ("few", Arc::new(StringArray::from_iter_values(rows().map(few))), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// A file of two row groups, whose columns have pages of 100 rows.
fn file(codec: Compression) -> Vec<u8> {
    let mut properties =
        WriterProperties::builder().set_compression(codec).set_write_batch_size(50);
    properties = properties
        .set_statistics_enabled(EnabledStatistics::None)
        .set_data_page_row_count_limit(100);
    properties =
        properties.set_dictionary_enabled(false).set_column_dictionary_enabled("few".into(), true);
    let mut writer =
        ArrowWriter::try_new(vec![], rows(0).schema(), Some(properties.build())).unwrap();
    for group in 0..2 {
        writer.write(&rows(group * ROWS)).unwrap();
        writer.flush().unwrap();
    }
    writer.into_inner().unwrap()
}

fn columns_of(device: &Device, bytes: &[u8]) -> Vec<OrReason> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(file.as_file()).unwrap();
    let own =
        Arc::new(parquet_to_arrow_schema(metadata.file_metadata().schema_descr(), None).unwrap());
    let footer = Arc::new(Footer::new(metadata, vec![], vec![]));
    let described =
        DescribedFile { path: file.path().into(), footer, own: own.clone(), noted: own.clone() };
    read(device, &[described], &own, &[0, 1, 2], &(0..2)).unwrap()
}

fn check(at: usize, column: Column, origin: &str) {
    let arrays = column.to_arrays(2 * ROWS as usize).unwrap();
    assert_eq!(arrays[0].len() as u64, 2 * ROWS, "{origin}");
    let good = |row: u64| match at {
        0 => arrays[0].as_primitive::<Int64Type>().value(row as usize) == number(row),
        1 => arrays[0].as_string::<i32>().value(row as usize) == text(0, row),
        _ => arrays[0].as_string::<i32>().value(row as usize) == few(row),
    };
    assert!(
        (0..2 * ROWS).all(|row| arrays[0].is_valid(row as usize) && good(row)),
        "{origin}, column {at}"
    );
}

/// All pages of both row groups are of one batch.
#[test]
fn a_damaged_page_costs_its_own_column() {
    let device = Device::sim(SimOptions::with_seed(3), MemoryLimit::Bytes(1 << 30)).unwrap();
    let length = [26, 0, 0, 0];
    // Of the second row group's second page the length of its levels and that of a string; that of
    // a string in its dictionary.
    let marks = [
        ([&[3, 0, 0, 0, 0xC8, 1, 1][..], &number(400).to_le_bytes()].concat(), 1),
        ([&length[..], &text(0, 400).as_bytes()[..8]].concat(), 1),
        ([&length[..], &few(300).as_bytes()[..8]].concat(), 0),
    ];
    for codec in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::LZ4_RAW] {
        let good = file(codec);
        for damaged in 0..8 {
            let origin = format!("{codec}, damaged {damaged:03b}");
            let is_damaged = |at: usize| damaged >> at & 1 != 0;
            let mut bytes = good.clone();
            for (at, (mark, _)) in marks.iter().enumerate().filter(|(at, _)| is_damaged(*at)) {
                let place = (0..good.len()).rfind(|from| good[*from..].starts_with(mark));
                bytes[place.unwrap_or_else(|| panic!("{origin}: no mark of column {at}")) + 2] =
                    0xFF;
            }
            let found = columns_of(&device, &bytes);
            for (at, column) in found.into_iter().enumerate() {
                match column {
                    Ok(column) if !is_damaged(at) => check(at, column, &origin),
                    Err(reason) if is_damaged(at) => {
                        let place = format!(": row group 1, page {}: ", marks[at].1);
                        assert!(reason.contains(&place), "{origin}, column {at}: {reason}");
                    }
                    other => panic!("{origin}, column {at}: {other:?}"),
                }
            }
        }
    }
}
