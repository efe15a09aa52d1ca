//! Times of day, durations, intervals and bytes: as values, keys and what is carried along.

use std::sync::Arc;

use warpframe::arrow::array::*;
use warpframe::arrow::datatypes::{IntervalDayTime, IntervalMonthDayNano};

use crate::differential::Pair;

const ROWS: usize = 600;

/// Columns of the types, each of few distinct values and some nulls, in two batches.
fn batches(seed: usize) -> Vec<RecordBatch> {
    let value =
        |row: usize, stride: usize| (row % 11 != stride % 11).then_some((row * stride + seed) % 17);
    let of = |stride: usize| (0..ROWS).map(move |row| value(row, stride));
    let month_day_nano = |v: usize| {
        IntervalMonthDayNano::new(v as i32 % 3 - 1, v as i32 - 8, v as i64 * 3_600_000_000_007 - 20)
    };
    let bytes = |v: usize| vec![0xefu8 + v as u8; v];
    let binary: Vec<Option<Vec<u8>>> = of(19).map(|v| v.map(bytes)).collect();
    let fixed = of(23).map(|v| v.map(|v| [v as u8, 0xff, 0]));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..ROWS as i64))),
        ("t32", of(3).map(|v| v.map(|v| v as i32 * 5000)).collect::<Time32SecondArray>().boxed()),
        (
            "t64",
            of(5)
                .map(|v| v.map(|v| v as i64 * 5_000_000_123))
                .collect::<Time64NanosecondArray>()
                .boxed(),
        ),
        (
            "du",
            of(7)
                .map(|v| v.map(|v| v as i64 * 1000 - 5000))
                .collect::<DurationMicrosecondArray>()
                .boxed(),
        ),
        (
            "iv",
            of(13).map(|v| v.map(month_day_nano)).collect::<IntervalMonthDayNanoArray>().boxed(),
        ),
        ("iy", of(2).map(|v| v.map(|v| v as i32 - 7)).collect::<IntervalYearMonthArray>().boxed()),
        (
            "dt",
            of(4)
                .map(|v| v.map(|v| IntervalDayTime::new(v as i32 - 4, 9 - v as i32)))
                .collect::<IntervalDayTimeArray>()
                .boxed(),
        ),
        ("d64", of(6).map(|v| v.map(|v| v as i64 * 86_400_000)).collect::<Date64Array>().boxed()),
        ("by", Arc::new(binary.iter().map(|v| v.as_deref()).collect::<BinaryArray>())),
        ("bv", Arc::new(binary.iter().map(|v| v.as_deref()).collect::<BinaryViewArray>())),
        (
            "fb",
            Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed, 3)
                    .expect("of one width"),
            ),
        ),
        ("d", of(9).map(|v| v.map(|v| v as i32 * 700)).collect::<Date32Array>().boxed()),
        (
            "ts",
            of(8)
                .map(|v| v.map(|v| v as i64 * 86_400_123_456_789 - 5))
                .collect::<TimestampNanosecondArray>()
                .boxed(),
        ),
    ];
    let whole = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(n, a)| (n, a, n != "id")),
    )
    .expect("a batch");
    vec![whole.slice(0, 250), whole.slice(250, ROWS - 250)]
}

trait Boxed {
    fn boxed(self) -> ArrayRef;
}
impl<T: Array + 'static> Boxed for T {
    fn boxed(self) -> ArrayRef {
        Arc::new(self)
    }
}

const COLUMNS: [&str; 10] = ["t32", "t64", "du", "iv", "iy", "dt", "d64", "by", "bv", "fb"];

#[test]
fn they_pass_through_and_are_filtered() {
    let pair = Pair::of(batches(0));
    pair.agreement("SELECT * FROM t ORDER BY id");
    pair.check("SELECT * FROM t WHERE id % 7 < 3 ORDER BY id DESC LIMIT 100");
    for column in COLUMNS {
        pair.check(&format!(
            "SELECT id, {column} FROM t WHERE {column} IS NOT NULL AND id > 5 ORDER BY id"
        ));
        pair.check(&format!(
            "SELECT a.id FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.{column} < b.{column} ORDER BY 1"
        ));
        pair.check(&format!(
            "SELECT id, coalesce({column}, max({column}) OVER ()) AS c FROM t ORDER BY id"
        ));
    }
}

#[test]
fn they_are_keys_of_groups_joins_and_sorts() {
    let pair = Pair::of(batches(3));
    for column in COLUMNS {
        pair.check(&format!(
            "SELECT {column}, count(*) AS n, min(id) AS least FROM t GROUP BY {column}"
        ));
        pair.check(&format!("SELECT DISTINCT {column}, d FROM t"));
        pair.check(&format!("SELECT id FROM t ORDER BY {column} DESC NULLS LAST, id"));
        pair.check(&format!(
            "SELECT count(*), min(a.id), max(b.id) FROM t a JOIN t b ON a.{column} = b.{column} AND a.id < b.id"
        ));
        pair.check(&format!(
            "SELECT id FROM t WHERE {column} IN (SELECT {column} FROM t WHERE id < 30) ORDER BY id"
        ));
    }
}

#[test]
fn extremes_and_counts_of_them() {
    let pair = Pair::of(batches(5));
    for column in COLUMNS {
        pair.check(&format!("SELECT count(DISTINCT {column}), count({column}) FROM t"));
        pair.check(&format!("SELECT id % 5 AS k, first_value({column} ORDER BY id) AS f, last_value({column} ORDER BY id) AS l FROM t GROUP BY id % 5"));
        // DataFusion has no extremes of bytes of one width, nor of some intervals.
        if column != "fb" {
            pair.check(&format!(
                "SELECT id % 5 AS k, min({column}) AS a, max({column}) AS b FROM t GROUP BY id % 5"
            ));
        }
    }
}

#[test]
fn they_compare_with_constants_and_are_cast() {
    let pair = Pair::of(batches(7));
    pair.check_all(&[
        "SELECT id FROM t WHERE t64 >= TIME '10:00:00' ORDER BY id",
        "SELECT id FROM t WHERE by > X'f1f1' OR bv = X'f3f3f3' ORDER BY id",
        "SELECT id FROM t WHERE iv < INTERVAL '1 month' ORDER BY id",
        "SELECT id, t32::varchar AS a, t64::varchar AS b, ts::time AS c, '10:20:30.5'::time AS d FROM t ORDER BY id",
        "SELECT id, t32::varchar::time AS a, id::varchar::bytea AS c FROM t ORDER BY id",
        "SELECT id, d64::date AS a, d::timestamp - ts AS b, ts - d::timestamp + du AS c FROM t ORDER BY id",
        "SELECT id, ts + du AS a, ts - du AS b, du + du AS c FROM t ORDER BY id",
        "SELECT id, ts + iv AS a, ts - iv AS b, d + iv AS c, iv + iv AS e FROM t ORDER BY id",
    ]);
}

#[test]
fn timestamps_fall_into_bins() {
    let pair = Pair::of(batches(1));
    for stride in ["15 minutes", "1 day", "7 days", "1 month", "1 year", "1 nanosecond"] {
        pair.check(&format!(
            "SELECT id, date_bin(INTERVAL '{stride}', ts) AS a FROM t ORDER BY id"
        ));
        let origin = "TIMESTAMP '1972-03-31T12:30:00'";
        pair.check(&format!("SELECT id, date_bin(INTERVAL '{stride}', ts, {origin}) AS a, date_bin(INTERVAL '{stride}', d::timestamp, {origin}) AS b FROM t ORDER BY id"));
    }
}
