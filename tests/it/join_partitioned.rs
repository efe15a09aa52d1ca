//! Partitioned hash joins: inner joins of two large sides, both partitioned by key.

use std::sync::Arc;

use warpframe::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use warpframe::device::DeviceKind;

use crate::differential::{Pair, builder};
use crate::tables::columns;

const BUILD: i64 = 5_000;
const PROBE: i64 = 12_000;

/// An invertible scatter, so that each number is a key of its own.
fn scatter(number: i64) -> i64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) ^ (number << 3)
}

fn ints(rows: i64, of: impl Fn(i64) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values((0..rows).map(of)))
}

/// Rows of `key`, and columns of every width.
fn side(rows: i64, key: ArrayRef) -> Vec<RecordBatch> {
    let text = |row: i64| ["low", "middle", "high", "of some length"][(row * row % 4) as usize];
    columns(vec![
        ("k", key),
        ("id", ints(rows, |row| row)),
        ("x", Arc::new(Float64Array::from_iter_values((0..rows).map(|row| row as f64 / 7.0)))),
        (
            "n",
            Arc::new(Int64Array::from_iter(
                (0..rows).map(|row| (row % 7 != 0).then_some(row.wrapping_mul(1 << 40))),
            )),
        ),
        ("i", Arc::new(Int32Array::from_iter_values((0..rows).map(|row| row as i32 - 300)))),
        (
            "s",
            Arc::new(StringArray::from_iter(
                (0..rows).map(|row| (row % 9 != 0).then(|| text(row))),
            )),
        ),
        (
            "long",
            Arc::new(StringArray::from_iter_values(
                (0..rows).map(|row| format!("row {row} of a table")),
            )),
        ),
        (
            "b",
            Arc::new(BooleanArray::from_iter(
                (0..rows).map(|row| (row % 11 != 0).then_some(row % 3 == 0)),
            )),
        ),
    ])
}

fn launches(pair: &Pair, stem: &str) -> u64 {
    let all = pair.gpu().launches();
    all.iter().filter(|(name, _)| name.starts_with(stem)).map(|(_, count)| count).sum()
}

/// Who decides by rows decides for partitions here only on the simulator, or where tests ask for
/// it.
fn partitions(pair: &Pair) -> bool {
    pair.gpu().kind() == DeviceKind::Sim || std::env::var_os("WARPFRAME_PARTITION_ROWS").is_some()
}

/// Runs the queries, each of which has to be a partitioned hash join.
fn check_partitioned(pair: &Pair, queries: &[&str]) {
    for sql in queries {
        let before = launches(pair, "join_partitioned_build_scatter");
        pair.check(sql);
        assert!(
            !partitions(pair) || launches(pair, "join_partitioned_build_scatter") > before,
            "no partitions: {sql}"
        );
    }
}

const QUERIES: [&str; 8] = [
    "SELECT t.x, u.x AS other FROM t JOIN u ON t.k = u.k",
    "SELECT t.k, u.k AS other, t.id, u.id AS number FROM t JOIN u ON t.k = u.k",
    "SELECT t.n, u.n AS m, t.i, u.i AS j, t.s, u.s AS r, t.b, u.b AS c FROM u JOIN t ON t.k = u.k",
    "SELECT u.s, count(*), sum(t.x), sum(u.i) FROM t JOIN u ON t.k = u.k GROUP BY u.s",
    "SELECT t.id, u.id AS other FROM t JOIN u ON t.k = u.k AND t.x < u.x * 3",
    "SELECT t.id, u.n + t.i AS sum FROM t JOIN u ON t.k = u.k WHERE t.b AND u.id % 5 <> 2",
    "SELECT count(*) FROM t JOIN u ON t.k = u.k",
    "SELECT t.id, v.id AS other FROM t JOIN (SELECT k + 1 - 1 AS k, id FROM u) v ON t.k = v.k ORDER BY t.id, v.id LIMIT 100",
];

#[test]
fn scattered_keys_of_which_all_few_and_none_match() {
    let build = || side(BUILD, ints(BUILD, |row| scatter(row * 7919 % BUILD)));
    for (what, numbers) in [("all", BUILD), ("few", BUILD * 10), ("edge", -1)] {
        let key = |row: i64| match numbers {
            // The key that looks empty, and the one whose hash does.
            -1 => [-1, 0, scatter(row % BUILD)][(row % 3) as usize],
            numbers => scatter(row * 31 % numbers),
        };
        let pair = Pair::of(side(PROBE, ints(PROBE, key))).and("u", build()).from(what);
        check_partitioned(&pair, &QUERIES);
    }
    let none = Pair::of(side(PROBE, ints(PROBE, |row| scatter(row + BUILD)))).and("u", build());
    check_partitioned(&none, &QUERIES[..2]);
}

#[test]
fn keys_that_are_null_match_nothing_or_each_other() {
    let key = |rows: i64, step: i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter(
            (0..rows).map(|row| (row % step != 0).then_some(scatter(row))),
        ))
    };
    let pair = Pair::of(side(PROBE, key(PROBE, 5))).and("u", side(BUILD, key(BUILD, 1000)));
    check_partitioned(&pair, &QUERIES);
    check_partitioned(
        &pair,
        &[
            "SELECT t.k, u.k AS other, t.id, u.id AS number FROM t JOIN u ON t.k IS NOT DISTINCT FROM u.k",
        ],
    );
}

#[test]
fn keys_that_repeat() {
    let twice = |row: i64| scatter(row * 7919 % (BUILD / 2));
    let pair = Pair::of(side(PROBE, ints(PROBE, |row| scatter(row % BUILD))))
        .and("u", side(BUILD, ints(BUILD, twice)));
    check_partitioned(&pair, &QUERIES);
    assert!(
        !partitions(&pair) || launches(&pair, "join_partitioned_all") > 0,
        "{:?}",
        pair.gpu().launches()
    );
    // More rows than the probe has; so many copies that they are listed instead; and one key with
    // more rows than a table has slots.
    for keys in [100, 40] {
        let many = |row: i64| scatter(row % keys);
        let pair = Pair::of(side(3_000, ints(3_000, |row| scatter(row % 400))))
            .and("u", side(2_000, ints(2_000, many)));
        check_partitioned(
            &pair,
            &["SELECT count(*), sum(t.id), sum(u.id) FROM t JOIN u ON t.k = u.k", QUERIES[1]],
        );
        assert_eq!(
            partitions(&pair) && keys == 100,
            launches(&pair, "join_partitioned_all") > 0,
            "{keys} keys"
        );
    }
    let hot = |row: i64| if row % 2 == 0 { scatter(0) } else { scatter(row) };
    let pair = Pair::of(side(PROBE, ints(PROBE, |row| scatter(row % 3000 + 1))))
        .and("u", side(BUILD, ints(BUILD, hot)));
    pair.check_all(&QUERIES[..4]);
}

#[test]
fn probes_of_one_key() {
    let key = |row: i64| if row % 10 == 0 { scatter(row % BUILD) } else { scatter(1) };
    let build = side(BUILD, ints(BUILD, scatter));
    check_partitioned(&Pair::of(side(PROBE, ints(PROBE, key))).and("u", build), &QUERIES);
}

#[test]
fn keys_of_several_columns_and_of_other_types() {
    let build = side(BUILD, ints(BUILD, |row| scatter(row * 7919 % BUILD)));
    let pair = Pair::of(side(PROBE, ints(PROBE, |row| scatter(row % BUILD)))).and("u", build);
    check_partitioned(
        &pair,
        &[
            "SELECT t.id, u.id AS other, u.x FROM t JOIN u ON t.x = u.x AND t.i = u.i",
            "SELECT t.id, u.id AS other, t.x FROM t JOIN u ON t.x = u.x",
            "SELECT t.id, u.id AS other, t.s FROM t JOIN u ON t.n = u.n AND t.s = u.s",
        ],
    );
    // What has no fixed width does not travel.
    let before = launches(&pair, "join_partitioned_build_scatter");
    pair.check_all(&[
        "SELECT t.id, u.long FROM t JOIN u ON t.k = u.k",
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.long = u.long AND t.k <> u.k",
        "SELECT t.id, v.l, v.r FROM t JOIN (SELECT k, [id, i] AS l, named_struct('a', s) AS r FROM u) v ON t.k = v.k",
    ]);
    assert_eq!(launches(&pair, "join_partitioned_build_scatter"), before);
}

#[test]
fn keys_that_number_slots() {
    const ROWS: i64 = 20_000;
    let domain = 40_000;
    let key = |row: i64| row * 7919 % domain;
    for repeats in [false, true] {
        let build = |row: i64| if repeats && row % 500 == 3 { key(row - 1) } else { key(row) };
        let pair = Pair::of(side(ROWS, ints(ROWS, |row| key(row * 3 + 1))))
            .and("u", side(ROWS, ints(ROWS, build)));
        match pair.gpu().kind() {
            DeviceKind::Sim => check_partitioned(&pair, &QUERIES[..5]),
            // How many keys pay depends on how many rows do.
            _ => pair.check_all(&QUERIES[..5]),
        }
    }
}

#[test]
fn joins_of_many_rows_where_memory_is_short() {
    const FEW: i64 = 1_600;
    const MANY: i64 = 60_000;
    let side = |rows: i64, key: &dyn Fn(i64) -> i64| {
        let x = Float64Array::from_iter_values((0..rows).map(|row| row as f64 / 7.0));
        columns(vec![("k", ints(rows, key)), ("x", Arc::new(x) as ArrayRef)])
    };
    let build = side(FEW, &|row| scatter(row * 7919 % FEW));
    let probe = side(MANY, &|row| scatter(row % FEW));
    let sql = "SELECT t.x, u.x AS other FROM t JOIN u ON t.k = u.k";
    let tables = |limit: &str| {
        Pair::with(builder().strict(true).memory_limit(limit.parse().expect("a limit")))
            .and("t", probe.clone())
            .and("u", build.clone())
    };
    let joins = |pair: &Pair| {
        let sides = ["join_partitioned_build_", "join_partitioned_probe_"];
        let partitioning: u64 = sides.map(|side| launches(pair, side)).iter().sum();
        launches(pair, "join_partitioned_") - partitioning
    };
    let roomy = tables("1GB");
    check_partitioned(&roomy, &[sql]);
    assert_eq!(joins(&roomy) > 0, partitions(&roomy));
    // Columns take 0.99 MB, records 1.2, the result by partitions 0.96; a table of keys takes 0.26,
    // and what is new of the result 0.48.
    let short = tables("2400kB");
    short.check(sql);
    assert_eq!(joins(&short), 0, "there was room: {:?}", short.gpu().memory());
}
