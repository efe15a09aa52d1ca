//! What kernels learn of a column while it is read (bounds, order, uniqueness) decides how queries
//! run: answers over files are those over the rows in memory, computed by the CPU.

use std::path::Path;
use std::sync::Arc;

use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::{WriterProperties, WriterVersion};
use warpframe::arrow::array::*;
use warpframe::arrow::compute::cast;
use warpframe::arrow::datatypes::{DataType, Field, Schema};

use super::write;
use crate::differential::{Pair, run};

/// Rows of a file: `first` is the number of the first one.
struct Part {
    first: i64,
    rows: i64,
    /// Every so many rows a null, but in `id`, which is required.
    null: Option<i64>,
}

impl Part {
    fn batch(&self) -> RecordBatch {
        let rows = || self.first..self.first + self.rows;
        let some = |row: i64| self.null.is_none_or(|every| row % every != 3);
        let of = |value: fn(i64) -> i64| rows().map(move |row| some(row).then(|| value(row)));
        let decimals =
            Decimal128Array::from_iter(of(|row| row * 37 - 5000).map(|v| v.map(i128::from)));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(rows()))),
            (
                "asc",
                Arc::new(Int32Array::from_iter(of(|row| row / 7).map(|v| v.map(|v| v as i32)))),
            ),
            (
                "dense",
                Arc::new(Int16Array::from_iter(
                    of(|row| row * 13 % 50 - 20).map(|v| v.map(|v| v as i16)),
                )),
            ),
            (
                "sparse",
                Arc::new(Int64Array::from_iter(of(|row| (row * 31 % 40).pow(2) * 1_000_000_007))),
            ),
            (
                "byte",
                Arc::new(UInt8Array::from_iter(
                    of(|row| 255 - row % 3).map(|v| v.map(|v| v as u8)),
                )),
            ),
            (
                "wide",
                Arc::new(UInt64Array::from_iter(
                    of(|row| -1 - row % 5).map(|v| v.map(|v| v as u64)),
                )),
            ),
            (
                "date",
                Arc::new(Date32Array::from_iter(
                    of(|row| row % 400 - 200).map(|v| v.map(|v| v as i32)),
                )),
            ),
            ("price", Arc::new(decimals.with_precision_and_scale(15, 2).expect("a type"))),
            (
                "half",
                Arc::new(Float64Array::from_iter(
                    of(|row| row % 90).map(|v| v.map(|v| v as f64 / 2.0)),
                )),
            ),
            (
                "tenth",
                Arc::new(Float64Array::from_iter(
                    of(|row| row * row).map(|v| v.map(|v| v as f64 * 0.1)),
                )),
            ),
            (
                "few",
                Arc::new(StringArray::from_iter(
                    of(|row| row * 7 % 5).map(|v| v.map(|v| format!("name {v}"))),
                )),
            ),
            (
                "many",
                Arc::new(StringArray::from_iter(
                    of(|row| row * 7919 % 1000).map(|v| v.map(|v| format!("{v:x}"))),
                )),
            ),
        ];
        let schema = columns
            .iter()
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), *name != "id"));
        let schema = Schema::new(schema.collect::<Vec<_>>());
        RecordBatch::try_new(
            Arc::new(schema),
            columns.into_iter().map(|(_, array)| array).collect(),
        )
        .expect("columns")
    }
}

const QUERIES: [&str; 9] = [
    "SELECT count(*), count(DISTINCT id), min(id), max(id), min(\"asc\"), max(\"asc\"), min(dense), max(dense), \
     min(sparse), max(sparse), min(byte), max(byte), min(wide), max(wide), min(date), max(date), min(price), \
     max(price), min(half), max(half), min(few), max(few), min(many), max(many), count(many) FROM t",
    // Sums in as few bits as bounds allow.
    "SELECT sum(CAST(byte AS bigint) * byte), sum(dense * \"asc\"), sum(price * price), sum(half), sum(tenth), avg(tenth) FROM t",
    "SELECT dense, count(*), sum(half), sum(tenth), sum(price), max(many) FROM t GROUP BY dense",
    "SELECT \"asc\", count(tenth), sum(tenth) FROM t GROUP BY \"asc\"",
    "SELECT few, byte, date, count(*), min(id) FROM t WHERE date < DATE '1970-03-01' GROUP BY few, byte, date",
    "SELECT sparse, wide, count(*), sum(id) FROM t GROUP BY sparse, wide",
    "SELECT a.id, b.few, b.many FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.dense < 10",
    "SELECT id, \"asc\", many FROM t ORDER BY \"asc\" DESC, many, id LIMIT 50",
    "SELECT id, few FROM t ORDER BY id",
];

/// Strings of files are views.
fn as_in_files(batch: &RecordBatch) -> RecordBatch {
    let schema = batch.schema();
    let (fields, columns): (Vec<_>, Vec<ArrayRef>) = (schema.fields().iter().zip(batch.columns()))
        .map(|(field, array)| match field.data_type() {
            DataType::Utf8 => {
                let array = cast(array, &DataType::Utf8View).expect("strings");
                (Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)), array)
            }
            _ => (field.clone(), array.clone()),
        })
        .unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).expect("columns of one length")
}

fn check(pair: &Pair, folder: &Path, name: &str, parts: &[Part]) {
    let path = folder.join(name);
    std::fs::create_dir(&path).expect("a folder");
    let batches: Vec<RecordBatch> = parts.iter().map(Part::batch).collect();
    // The first two in one file, each of the rest in one of its own.
    let files = [&batches[..batches.len().min(2)]].into_iter().chain(batches.chunks(1).skip(2));
    for (at, groups) in files.enumerate() {
        let version = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0][at % 2];
        let properties =
            WriterProperties::builder().set_writer_version(version).set_write_batch_size(64);
        let properties =
            properties.set_compression(Compression::SNAPPY).set_data_page_row_count_limit(128);
        write(&path.join(format!("{at}.parquet")), groups, properties);
    }
    pair.cpu.register_batches("t", batches.iter().map(as_in_files)).expect("rows");
    pair.device.register_parquet("t", &path).expect("files");
    for sql in QUERIES {
        let frame =
            run(&pair.device, sql).unwrap_or_else(|error| panic!("{name}: {error}\n  {sql}"));
        pair.rows_agree(
            &run(&pair.cpu, sql).expect("the CPU answers"),
            &frame,
            &format!("{sql} -- {name}"),
        );
    }
    assert_eq!(pair.device.take_host_reads(), Vec::<String>::new(), "{name}");
}

#[test]
fn answers_follow_from_what_was_learned_on_the_way() {
    let directory = tempfile::tempdir().expect("a directory");
    let pair = Pair::new();
    let part = |first, rows, null| Part { first, rows, null };
    // Ascending over row groups and files; without nulls.
    check(
        &pair,
        directory.path(),
        "ascending",
        &[part(0, 300, None), part(300, 1, None), part(301, 250, None)],
    );
    // Each part ascends, and all together do not: an end repeats, or comes before another's begin.
    check(
        &pair,
        directory.path(),
        "repeated",
        &[part(0, 200, None), part(199, 100, None), part(299, 50, None)],
    );
    check(
        &pair,
        directory.path(),
        "broken",
        &[part(1000, 90, None), part(0, 150, None), part(-400, 100, None)],
    );
    // With nulls in some parts, and parts of nothing else.
    check(
        &pair,
        directory.path(),
        "nulls",
        &[part(0, 260, Some(7)), part(260, 200, None), part(463, 1, Some(10))],
    );
}
