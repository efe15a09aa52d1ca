//! GROUP BY and aggregates.

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int8Array, Int32Array, Int64Array,
    StringArray, StringViewArray, UInt64Array,
};
use warpframe::device::DeviceKind;

use crate::differential::{Pair, builder, run};
use crate::tables::{Shape, columns, share};

#[test]
fn aggregates_of_every_shape() {
    for shape in Shape::all() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        pair.check_all(&[
            "SELECT count(*), count(k), sum(k), min(i64), max(u64), avg(x), sum(m), min(f64), max(f64) FROM t",
            "SELECT k, count(*), sum(x), sum(m), avg(m), min(d), max(s) FROM t GROUP BY k",
            "SELECT w, k2, count(*), sum(k) FROM t GROUP BY w, k2",
            "SELECT sl, count(*), min(id) FROM t GROUP BY sl",
            "SELECT m38, i64, max(x) FROM t GROUP BY m38, i64",
        ]);
    }
}

#[test]
fn aggregates_of_every_type() {
    let pair = Pair::of(Shape::random(3000, 81).batches());
    // Groups of strings differ from those of integers by how they are found alone.
    for (at, key) in [(0, ""), (0, "k"), (0, "i64 % 1000"), (1, "s"), (2, "sv")] {
        let by = if key.is_empty() { String::new() } else { format!("GROUP BY {key}") };
        let lists = [
            "sum(i8), sum(i16), sum(k), sum(w), sum(u8), sum(u16), sum(u32), avg(i8), avg(u32), avg(k)",
            "min(i8), max(i16), min(i32), max(i64), min(u8), max(u16), min(u32), max(u64), min(b), max(b)",
            "min(spread), max(spread), min(x), max(x), avg(x), sum(x), sum(f32), avg(f32)",
            "min(d), max(d), min(ts), max(ts_s), min(ts_ms), max(ts_ns), count(d), count(s), count(b)",
            "min(m), max(m), sum(m), avg(m), count(m), sum(m * m)",
            "min(m38), max(m38)",
            "min(s), max(s), min(sl), max(sl), min(sv), max(sv), min(sd), max(sd)",
            "sum(k) + 1, avg(x) * 2, max(k) - min(k), count(*) % 7",
            "sum(x) FILTER (WHERE b), count(*) FILTER (WHERE k > 3), max(s) FILTER (WHERE k2 = 0), count(k) FILTER (WHERE x > 0), avg(m) FILTER (WHERE m > 0)",
        ];
        for list in share(lists, at) {
            let keys = if key.is_empty() { String::new() } else { format!("{key} AS key, ") };
            pair.check(&format!("SELECT {keys}{list} FROM t {by}"));
        }
    }
}

#[test]
fn more_calls_than_types_have_bits() {
    // A kernel names something of each call by its number, but nothing as types are named.
    let pair = Pair::of(Shape::random(1000, 83).batches());
    // Each sum and its count are two.
    let sum = |n: i64| format!("sum(i8 % {}) FILTER (WHERE x * {n} > 3)", n + 1);
    let calls: Vec<String> = (0..34).map(sum).collect();
    for key in ["i64", "id % 300", "k2"] {
        pair.check(&format!("SELECT {key}, {} FROM t GROUP BY {key}", calls.join(", ")));
    }
}

#[test]
fn groups_by_every_type() {
    let pair = Pair::of(Shape::random(3000, 82).batches());
    for key in [
        "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "x", "b", "d", "ts",
        "ts_s", "ts_ms", "ts_ns", "m", "m38", "s", "sl", "sv", "sd",
    ] {
        pair.check(&format!("SELECT {key}, count(*), sum(id), min(k) FROM t GROUP BY {key}"));
    }
    pair.check_all(&[
        "SELECT b, k, k2, sd, count(*), sum(x) FROM t GROUP BY b, k, k2, sd",
        "SELECT i64, u64, f64, count(*) FROM t GROUP BY i64, u64, f64",
        "SELECT s, sl, sv, count(*) FROM t GROUP BY s, sl, sv",
        "SELECT d, extract(year FROM d) AS y, count(*) FROM t GROUP BY d",
        "SELECT extract(year FROM d) AS y, sum(m) FROM t GROUP BY extract(year FROM d)",
        "SELECT k > 3 AS big, s LIKE 'a%' AS a, avg(x) FROM t GROUP BY k > 3, s LIKE 'a%'",
        "SELECT substr(sv, 1, 1) AS head, count(*), max(x) FROM t GROUP BY substr(sv, 1, 1)",
        "SELECT CASE WHEN k < 2 THEN 'low' ELSE s END AS label, count(*) FROM t GROUP BY label",
        "SELECT count(*) FROM (SELECT k, s FROM t GROUP BY k, s)",
        "SELECT n, count(*) FROM (SELECT k, k2, count(*) AS n FROM t GROUP BY k, k2) GROUP BY n",
        "SELECT max(total), min(total) FROM (SELECT s, sum(x) AS total FROM t GROUP BY s)",
        "SELECT s, sum(n) FROM (SELECT s, k, count(*) AS n FROM t GROUP BY s, k) WHERE n > 3 GROUP BY s",
    ]);
}

#[test]
fn groups_in_many_sizes() {
    // 4096 rows or more and few groups share cells; many groups do not.
    let pair = Pair::of(Shape::random(20_000, 83).batches());
    for groups in [1, 2, 100, 3000, 19_000] {
        pair.check(&format!(
            "SELECT id % {groups} AS g, count(*), sum(x), avg(m), sum(w), min(x), max(k) FROM t GROUP BY id % {groups}"
        ));
        pair.check(&format!(
            "SELECT id % {groups} * 1000000007 AS g, count(k), sum(m), avg(k2) FROM t GROUP BY id % {groups} * 1000000007"
        ));
    }
}

#[test]
fn sums_of_floats_of_all_magnitudes() {
    let shape = Shape::random(4000, 84);
    let pair = Pair::of(shape.batches());
    pair.check_all(&[
        "SELECT k, sum(spread), avg(spread), count(*) FROM t GROUP BY k",
        "SELECT k, sum(spread), max(s), sum(x) FROM t WHERE k2 > -2 GROUP BY k",
        "SELECT s, sum(f64), avg(f32), sum(x) FROM t GROUP BY s",
        "SELECT w, sum(spread) FILTER (WHERE b) FROM t GROUP BY w",
        "SELECT sum(spread), avg(spread), sum(f64) FROM t",
        "SELECT sum(x * 1e300), sum(x * 1e-300) FROM t",
        "SELECT k, sum(x * 1e300), sum(x * 1e-300) FROM t GROUP BY k",
    ]);
}

#[test]
fn sums_that_cancel_are_as_exact_as_the_cpus() {
    // Powers of two cancel exactly in every order.
    let x: Vec<f64> =
        (0..4000).map(|i| if i % 2 == 0 { 2f64.powi(60) } else { -(2f64.powi(60)) }).collect();
    let k: Vec<i32> = (0..4000).map(|i| i / 2 % 10).collect();
    let x: ArrayRef = Arc::new(Float64Array::from(x));
    let pair = Pair::of(columns(vec![("k", Arc::new(Int32Array::from(k))), ("x", x)]));
    pair.check_all(&["SELECT k, sum(x), avg(x) FROM t GROUP BY k", "SELECT sum(x), avg(x) FROM t"]);
}

#[test]
fn sums_beyond_their_type_do_as_the_cpus() {
    let columns_: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(Int32Array::from(vec![1, 1, 2, 2]))),
        ("i", Arc::new(Int64Array::from(vec![i64::MAX, 1, i64::MIN, -1]))),
        ("u", Arc::new(UInt64Array::from(vec![u64::MAX, 1, 5, u64::MAX]))),
        (
            "m",
            Arc::new(
                Decimal128Array::from(vec![10i128.pow(38) - 1, 1, -(10i128.pow(38)) + 1, 0])
                    .with_precision_and_scale(38, 0)
                    .expect("a legal decimal"),
            ),
        ),
    ];
    let pair = Pair::of(columns(columns_));
    for list in [
        "sum(i)",
        "sum(u)",
        "sum(m)",
        "avg(i)",
        "avg(u)",
        "avg(m)",
        "min(m), max(m), min(u), max(i)",
    ] {
        pair.agreement(&format!("SELECT {list} FROM t"));
        pair.agreement(&format!("SELECT k, {list} FROM t GROUP BY k"));
    }
}

#[test]
fn nulls_make_groups_and_no_values() {
    let columns_: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(Int32Array::from(vec![None, Some(1), None, Some(2), Some(1)]))),
        ("x", Arc::new(Float64Array::from(vec![None, Some(f64::NAN), None, None, Some(-0.0)]))),
    ];
    let pair = Pair::of(columns(columns_));
    pair.check_all(&[
        "SELECT k, count(*), count(x), sum(x), avg(x) FROM t GROUP BY k",
        "SELECT x, count(*) FROM t GROUP BY x",
        "SELECT sum(x), min(x), max(x), avg(x), count(x), count(*) FROM t WHERE k = 2",
        "SELECT sum(x), min(x), max(x) FROM t WHERE k > 5",
    ]);
}

#[test]
fn nan_is_the_greatest_float_of_a_group() {
    use crate::differential::{Cell, Rows, run};
    // The CPU engine's answer depends on the order of the rows.
    let nan = f64::NAN;
    let columns_: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(Int32Array::from(vec![1, 1, 1, 2, 2, 3, 3]))),
        ("x", Arc::new(Float64Array::from(vec![nan, f64::NEG_INFINITY, 1.0, nan, nan, 5.0, nan]))),
    ];
    let pair = Pair::of(columns(columns_));
    let expected = [[f64::NEG_INFINITY, nan], [nan, nan], [5.0, nan]];
    let expected: Vec<String> =
        expected.iter().map(|row| format!("{:?}", row.map(Cell::Float))).collect();
    for x in ["x", "x::real"] {
        let sql =
            format!("SELECT min(v), max(v) FROM (SELECT k, {x} AS v FROM t) GROUP BY k ORDER BY k");
        let rows = Rows::of(&run(&pair.device, &sql).expect("it runs")).rows;
        let shown: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        assert_eq!(shown, expected, "{sql}");
    }
    pair.check("SELECT min(x), max(x) FROM t");
}

#[test]
fn groups_of_scattered_keys_in_tables_large_enough_to_be_sampled() {
    // Few groups, some rare ones only at the end; as many as rows; keys at the ends of their type.
    let rows = 270_000i64;
    let scatter = |i: i64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15u64 as i64);
    let few = |i: i64| match i {
        0 => Some(i64::MAX),
        1 => Some(i64::MIN),
        _ if i > rows - 100 => Some(scatter(i)),
        _ if i % 11 == 0 => None,
        _ => Some(scatter(i % 300)),
    };
    let table: Vec<(&str, ArrayRef)> = vec![
        ("few", Arc::new((0..rows).map(few).collect::<Int64Array>())),
        ("solid", Arc::new((0..rows).map(|i| few(i).unwrap_or(i64::MAX)).collect::<Int64Array>())),
        ("many", Arc::new((0..rows).map(scatter).collect::<Int64Array>())),
        ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
        (
            "x",
            Arc::new(
                (0..rows)
                    .map(|i| (i % 9 != 0).then(|| (i % 1000) as f64 / 8.0))
                    .collect::<Float64Array>(),
            ),
        ),
    ];
    let pair = Pair::of(columns(table));
    pair.check_all(&[
        "SELECT few, count(*), count(x), sum(x), avg(x), min(id), max(x) FROM t GROUP BY few",
        "SELECT solid, sum(id), min(x) FROM t WHERE id % 3 = 0 GROUP BY solid",
        "SELECT solid, sum(id) FROM t WHERE id < 0 GROUP BY solid",
        "SELECT count(*), sum(n), max(a) FROM (SELECT many, count(*) AS n, max(x) AS a FROM t GROUP BY many)",
        "SELECT few, n FROM (SELECT few, id % 5 AS m, count(*) AS n FROM t GROUP BY few, id % 5) WHERE m = 2",
    ]);
}

#[test]
fn a_key_of_one_value_before_a_key_of_64_bits() {
    let table: Vec<(&str, ArrayRef)> = vec![
        ("c", Arc::new(Int64Array::from_iter_values((0..500).map(|_| 77)))),
        ("x", Arc::new(Float64Array::from_iter_values((0..500).map(|i| f64::from(i % 40) - 7.5)))),
    ];
    Pair::of(columns(table)).check_all(&[
        "SELECT c, x, count(*) FROM t GROUP BY c, x",
        "SELECT x, c, count(*) FROM t GROUP BY x, c",
        "SELECT c, sum(DISTINCT x) FROM t GROUP BY c",
    ]);
}

/// What FILTER leaves out is not computed, with or without groups; what a subquery computes is,
/// whoever asks for it, and so is what the optimizer computes once for several.
#[test]
fn rows_that_filter_leaves_out_do_not_fail() {
    let table: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(Int32Array::from_iter_values((0..3000).map(|row| row % 7)))),
        (
            "i8",
            Arc::new(Int8Array::from_iter_values(
                (0..3000).map(|row| if row % 50 == 49 { i8::MIN } else { 3 }),
            )),
        ),
        ("d", Arc::new(Int32Array::from_iter_values((0..3000).map(|row| row % 50 - 49)))),
    ];
    let pair = Pair::of(columns(table));
    pair.check_all(&[
        "SELECT sum(abs(i8)) FILTER (WHERE i8 > 0), count(7 % d) FILTER (WHERE d < 0), count(*) FROM t",
        "SELECT avg(100 / d) FILTER (WHERE d <> 0), min(200 / d) FILTER (WHERE d < 0 AND k > 2) FROM t WHERE k < 6",
        "SELECT count(DISTINCT 100 / d) FILTER (WHERE d <> 0), max(k) FROM t",
        "SELECT median(100 / d) FILTER (WHERE d <> 0), sum(200 / d) FILTER (WHERE d < -3) FROM t",
    ]);
    // By groups DataFusion computes arguments of all rows, and fails.
    for (sql, same) in [
        (
            "sum(100 / d) FILTER (WHERE d <> 0), count(*)",
            "sum(CASE WHEN d <> 0 THEN 100 / d END), count(*)",
        ),
        ("max(abs(i8)) FILTER (WHERE d < 0)", "max(CASE WHEN d < 0 THEN abs(i8) END)"),
        ("median(100 / d) FILTER (WHERE d <> 0)", "median(CASE WHEN d <> 0 THEN 100 / d END)"),
        (
            "count(DISTINCT 100 / d) FILTER (WHERE d <> 0)",
            "count(DISTINCT CASE WHEN d <> 0 THEN 100 / d END)",
        ),
    ] {
        let query =
            |aggregates: &str| format!("SELECT k, {aggregates} FROM t GROUP BY k ORDER BY k");
        let found = run(&pair.device, &query(sql)).expect("no row that counts fails");
        let expected = run(&pair.cpu, &query(same)).expect("no row that counts fails");
        pair.rows_agree(&expected, &found, &query(sql));
    }
    for sql in [
        "SELECT sum(a) FILTER (WHERE i8 > 0), sum(a) FROM (SELECT i8, abs(i8) AS a FROM t) q",
        "SELECT CASE WHEN i8 > 0 THEN a END, a, a + 1 FROM (SELECT i8, abs(i8) AS a FROM t) q",
        "SELECT sum(abs(i8)) FILTER (WHERE i8 > 0), sum(abs(i8)) FILTER (WHERE d = 0) FROM t",
    ] {
        pair.check_error(sql);
    }
}

/// A row that fails has a key outside of the range that its group's place is computed from.
#[test]
fn keys_of_rows_that_fail_stay_within_their_memory() {
    let small = |row: i32| if row % 1000 == 999 { i8::MIN } else { (row % 100) as i8 };
    let large = |row: i32| if row % 1000 == 998 { i64::MIN + 7 } else { i64::from(row % 300) };
    let table: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int32Array::from_iter_values(0..20_000))),
        ("i8", Arc::new(Int8Array::from_iter_values((0..20_000).map(small)))),
        (
            "n8",
            Arc::new(Int8Array::from_iter(
                (0..20_000).map(|row| (row % 7 > 0).then(|| small(row))),
            )),
        ),
        ("i64", Arc::new(Int64Array::from_iter_values((0..20_000).map(large)))),
    ];
    let pair = Pair::of(columns(table));
    for sql in [
        "SELECT DISTINCT abs(i8) FROM t",
        "SELECT abs(i8), count(*), sum(id), max(id) FROM t GROUP BY abs(i8)",
        "SELECT abs(n8), count(*), sum(id) FROM t GROUP BY abs(n8)",
        "SELECT abs(i8), id % 5000, sum(id) FROM t GROUP BY abs(i8), id % 5000",
        "SELECT CAST(i64 AS smallint), avg(id) FROM t GROUP BY CAST(i64 AS smallint)",
        "SELECT abs(i8), count(DISTINCT id) FROM t GROUP BY abs(i8)",
        "SELECT count(*) FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE abs(u.i8) = t.i8)",
        "SELECT count(*) FROM t WHERE NOT EXISTS (SELECT 1 FROM t u WHERE abs(u.n8) = t.i8)",
        "SELECT count(*) FROM t JOIN (SELECT abs(i8) AS a FROM t WHERE id >= 900 AND id < 1000) u ON t.i8 = u.a",
        "SELECT q.a, count(*), sum(q.c) FROM (SELECT abs(i8) AS a, count(*) AS c FROM t GROUP BY abs(i8)) q GROUP BY q.a",
    ] {
        let error = pair.check_error(sql);
        assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{sql}: {error:?}");
    }
    pair.check_all(&[
        "SELECT abs(i8), count(*), sum(id) FROM t WHERE i8 >= 0 GROUP BY abs(i8)",
        "SELECT CASE WHEN i8 > -128 THEN abs(i8) END AS a, count(*) FROM t GROUP BY a",
    ]);
}

#[test]
fn groups_of_many_rows_by_every_way() {
    const ROWS: i64 = 30_000;
    // An invertible scatter, so that each number is a key of its own.
    let scatter = |g: i64| g.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) ^ (g << 3);
    let group = |row: i64, groups: i64| row.wrapping_mul(7919) % groups;
    let skewed =
        |row: i64, groups: i64| if row % 10 == 0 { group(row / 10, groups) } else { groups / 2 };
    let ints = |of: &dyn Fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(of)))
    };
    let text = |row: i64| ["low", "middle", "high", "of some length"][(row * row % 4) as usize];
    let values: Vec<(&str, ArrayRef)> = vec![
        (
            "x",
            Arc::new(Float64Array::from_iter_values(
                (0..ROWS).map(|row| (row * 37 % 1001) as f64 / 64.0 - 3.0),
            )),
        ),
        (
            "y",
            Arc::new(Float64Array::from_iter_values(
                (0..ROWS).map(|row| (row * 31 % 997) as f64 / 7.0),
            )),
        ),
        (
            "n",
            Arc::new(Int64Array::from_iter(
                (0..ROWS).map(|row| (row % 7 != 0).then_some(row * 11 % 5000 - 100)),
            )),
        ),
        ("w", ints(&|row| row.wrapping_mul(0x1234_5678_9ABC_DEF1) >> 17)),
        ("i", Arc::new(Int32Array::from_iter_values((0..ROWS).map(|row| (row % 100_000) as i32)))),
        ("s", Arc::new(StringArray::from_iter_values((0..ROWS).map(text)))),
        (
            "b",
            Arc::new(BooleanArray::from_iter(
                (0..ROWS).map(|row| (row % 11 != 0).then_some(row % 3 == 0)),
            )),
        ),
    ];
    for groups in [10, 700, 9000] {
        let mut batch = values.clone();
        batch.push(("dense", ints(&|row| group(row, groups) - 5)));
        batch.push(("scattered", ints(&|row| scatter(group(row, groups)))));
        batch.push(("hot", ints(&|row| skewed(row, groups))));
        batch.push(("hot_scattered", ints(&|row| scatter(skewed(row, groups)))));
        // The key whose bits look like an empty slot, and the one whose hash does.
        let edge = |row: i64| if row % 97 == 0 { -1 } else { scatter(group(row, groups)) };
        batch.push(("edge", ints(&edge)));
        let absent = |row: i64| (row % 13 != 0).then_some(group(row, groups));
        batch.push(("absent", Arc::new(Int64Array::from_iter((0..ROWS).map(absent)))));
        let pair = Pair::of(columns(batch));
        let before = pair.gpu().launches();
        for key in ["dense", "scattered", "hot", "hot_scattered", "edge", "absent", "dense, absent"]
        {
            pair.check_all(&[
                &format!("SELECT {key}, sum(x) FROM t GROUP BY {key}"),
                &format!("SELECT {key}, sum(y), min(x), max(x), avg(n), count(*), count(n), max(s) FROM t GROUP BY {key}"),
                &format!("SELECT {key}, sum(w), min(w), max(i), sum(i), min(b) FROM t GROUP BY {key}"),
                &format!("SELECT {key}, sum(x * y), sum(x) FILTER (WHERE b), min(n + 1), count(s) FROM t WHERE i % 50 <> 7 GROUP BY {key}"),
            ]);
        }
        let after = pair.gpu().launches();
        let ran = |stem: &str| {
            let of = |counts: &std::collections::BTreeMap<String, u64>| -> u64 {
                counts
                    .iter()
                    .filter(|(name, _)| name.starts_with(stem))
                    .map(|(_, count)| count)
                    .sum()
            };
            of(&after) > of(&before)
        };
        // Who decides by rows decides for partitions here only on the simulator, or where tests ask
        // for it.
        let partitions = pair.gpu().kind() == DeviceKind::Sim
            || std::env::var_os("WARPFRAME_PARTITION_ROWS").is_some();
        match groups {
            10 => assert!(
                ran("group_cells_") && (!partitions || ran("group_hash_cells_")),
                "{after:?}"
            ),
            _ if partitions => assert!(ran("group_collect_"), "{after:?}"),
            _ => {}
        }
    }
}

/// Of rows too few to be worth a sample it is guessed that there are few groups.
#[test]
fn groups_of_scattered_keys_are_guessed() {
    const ROWS: i64 = 9000;
    let scatter = |g: i64| g.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) ^ (g << 3);
    let ints = |of: &dyn Fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(of)))
    };
    let pair = Pair::of(columns(vec![
        ("two", ints(&|row| scatter(row % 2))),
        ("few", ints(&|row| scatter(row % 17))),
        // Twice as many as guessed, and none more than another.
        ("some", ints(&|row| scatter(row % 70))),
        ("many", ints(&|row| scatter(row % 4000))),
        ("each", ints(&scatter)),
        // One after the other, so that every block meets few of them.
        ("runs", ints(&|row| scatter(row / 4))),
        ("hot", ints(&|row| if row % 10 == 0 { scatter(row) } else { -1 })),
        (
            "x",
            Arc::new(Float64Array::from_iter(
                (0..ROWS).map(|row| (row % 7 != 0).then_some((row % 500) as f64 / 16.0)),
            )),
        ),
        ("n", ints(&|row| row * 3 - 5000)),
    ]));
    let ran = |stem: &str| -> u64 {
        let launches = pair.gpu().launches();
        launches.iter().filter(|(name, _)| name.starts_with(stem)).map(|(_, count)| count).sum()
    };
    let guesses = pair.gpu().kind() == DeviceKind::Sim
        || std::env::var_os("WARPFRAME_PARTITION_ROWS").is_some();
    for (key, right) in
        [("two", true), ("few", true), ("some", true), ("many", false), ("each", false)]
    {
        for select in ["sum(x), count(*)", "avg(x), min(n), max(n), count(x), sum(n)"] {
            let before = (ran("group_hash_cells_"), ran("group_hash_") - ran("group_hash_cells_"));
            pair.check(&format!("SELECT {key}, {select} FROM t GROUP BY {key}"));
            let after = (ran("group_hash_cells_"), ran("group_hash_") - ran("group_hash_cells_"));
            if guesses {
                let again = u64::from(!right);
                assert_eq!(
                    (after.0 - before.0, after.1 - before.1),
                    (1, again),
                    "{key}, {select}: {:?}",
                    pair.gpu().launches()
                );
            }
        }
        pair.check(&format!("SELECT DISTINCT {key} FROM t"));
    }
    pair.check("SELECT runs, sum(x), count(*) FROM t GROUP BY runs");
    pair.check("SELECT hot, sum(x), min(n) FROM t GROUP BY hot");
    pair.check("SELECT many, sum(n) FROM t WHERE n > 100000 GROUP BY many");
    // Made strings leave no room in shared memory, and say nothing of how many there are.
    pair.check("SELECT few, max(concat('a', n)) FROM t GROUP BY few");
}

#[test]
fn groups_of_many_rows_where_memory_is_short() {
    const ROWS: i64 = 60_000;
    let ints = |of: &dyn Fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(of)))
    };
    let table = columns(vec![
        ("k", ints(&|row| row * 7919 % 9000)),
        ("x", ints(&|row| row.wrapping_mul(0x5555_5555_1234_5677) >> 8)),
    ]);
    let sql = "SELECT k, sum(x), min(x) FROM t GROUP BY k";
    // Columns take 0.96 MB, slots 0.23, and records of all rows 0.73.
    let pair = Pair::with(builder().strict(true).memory_limit("1700kB".parse().expect("a limit")))
        .and("t", table.clone());
    let collected = |pair: &Pair| {
        pair.gpu().launches().keys().filter(|name| name.starts_with("group_collect_")).count()
    };
    pair.check(sql);
    assert_eq!(collected(&pair), 0, "there was room: {:?}", pair.gpu().memory());
    let roomy = Pair::of(table);
    roomy.check(sql);
    let partitions = pair.gpu().kind() == DeviceKind::Sim
        || std::env::var_os("WARPFRAME_PARTITION_ROWS").is_some();
    assert_eq!(collected(&roomy) > 0, partitions);
}

/// Strings of which no two are equal have no codes, and decimals of 38 digits no bits that an atomic
/// compares: the rows that have them are compared, and none is sorted.
#[test]
fn the_least_and_the_greatest_of_what_no_atomic_orders() {
    const ROWS: i64 = 30_000;
    let scattered = |row: i64| row.wrapping_mul(7919) % 1_000_003;
    let texts = |of: &dyn Fn(i64) -> Option<String>| -> ArrayRef {
        Arc::new(StringViewArray::from_iter((0..ROWS).map(of)))
    };
    let wide = |row: i64| i128::from(scattered(row) - 500_000) * 10i128.pow(30) + i128::from(row);
    let table = columns(vec![
        ("k", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| row % 7)))),
        ("id", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        ("x", Arc::new(Float64Array::from_iter_values((0..ROWS).map(|row| row as f64 / 3.0)))),
        ("s", texts(&|row| (row % 11 != 0).then(|| format!("user-{}", scattered(row))))),
        // Each row is better than all before it, or worse; all share what a view holds of them.
        ("up", texts(&|row| Some(format!("a prefix of many bytes {row:08}")))),
        ("down", texts(&|row| Some(format!("a prefix of many bytes {:08}", ROWS - row)))),
        ("none", texts(&|row| (row < 0).then(String::new))),
        (
            "d",
            Arc::new(
                Decimal128Array::from_iter((0..ROWS).map(|row| (row % 5 != 0).then(|| wide(row))))
                    .with_precision_and_scale(38, 4)
                    .expect("it has so many digits"),
            ),
        ),
    ]);
    let pair = Pair::of(table);
    let sorts = || -> u64 {
        let launches = pair.gpu().launches();
        launches.iter().filter(|(name, _)| name.starts_with("sort")).map(|(_, count)| count).sum()
    };
    let all = "min(s), max(s), min(up), max(up), min(down), max(down), max(none), min(d), max(d)";
    for sql in [
        format!("SELECT {all}, sum(x), count(s), avg(x) FROM t"),
        format!("SELECT k, {all}, sum(id), count(s) FROM t GROUP BY k"),
        format!("SELECT id % 9973 AS g, {all} FROM t GROUP BY id % 9973"),
        format!("SELECT {all} FROM t WHERE id > 20000 AND k <> 3"),
        format!("SELECT k, {all} FROM t WHERE id > 20000 GROUP BY k"),
        format!("SELECT {all} FROM t WHERE id < 0"),
        "SELECT max(s) FILTER (WHERE k = 3), min(d) FILTER (WHERE x < 0), max(d) FROM t".into(),
        "SELECT max(a.up), min(b.s), max(b.d) FROM t a JOIN t b ON a.id = b.id * 2 WHERE b.k > 1"
            .into(),
        "SELECT a.k, max(upper(a.s)), min(a.d * 2) FROM t a GROUP BY a.k".into(),
        "SELECT s, max(up), min(d) FROM t WHERE id < 3000 GROUP BY s".into(),
    ] {
        pair.check(&sql);
    }
    // Many of them do not ask for more shared memory than there is.
    let many =
        |i: i64| format!("max(s) FILTER (WHERE id % 30 = {i}), min(d) FILTER (WHERE k > {i})");
    pair.check(&format!("SELECT {} FROM t", (0..14).map(many).collect::<Vec<_>>().join(", ")));
    assert_eq!(sorts(), 0, "{:?}", pair.gpu().launches());
    // Parts of a table, and rows in another order, are columns that are seen through numbers.
    pair.check("SELECT max(s), min(up), max(d) FROM (SELECT * FROM t ORDER BY x DESC LIMIT 100)");
    pair.check("SELECT max(s), min(up), max(d) FROM (SELECT * FROM t LIMIT 100 OFFSET 9000)");
}
