//! Inner joins, and keys of all joins.

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::{
    ArrayRef, Float64Array, Int8Array, Int32Array, Int64Array, StringArray,
};
use warpframe::device::DeviceKind;

use crate::differential::{Agreement, Pair, run};
use crate::tables::{Batches, Shape, Values, columns, share};

#[test]
fn joins_of_every_shape() {
    for shape in Shape::all() {
        // One giant group squared is a test of patience, not of joins.
        let rows = if matches!(shape.values, Values::Same) { 300 } else { shape.rows };
        let other = Shape { rows: rows / 2 + 1, seed: shape.seed + 100, ..shape };
        let pair = Pair::of(Shape { rows, ..shape }.batches())
            .and("u", other.batches())
            .from(format!("{shape:?}"));
        pair.check_all(&[
            "SELECT t.id, u.s, u.x FROM t JOIN u ON t.id = u.id",
            "SELECT t.id, u.id AS other FROM t JOIN u ON t.w = u.w AND t.k = u.k",
            "SELECT t.id, t.sl, u.id AS other FROM t JOIN u ON t.sl = u.sl",
        ]);
    }
}

#[test]
fn joins_on_keys_of_every_type() {
    let shape = Shape::random(600, 71);
    let pair = Pair::of(shape.batches())
        .and("u", Shape { seed: 72, batches: Batches::Several, ..shape }.batches());
    // `same` has the rows of `t`: wide types match nowhere else.
    let pair = pair.and("same", shape.batches());
    for column in [
        "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "x", "spread", "d",
        "ts", "ts_s", "ts_ms", "ts_ns", "m", "m38", "s", "sl", "sv", "sd",
    ] {
        pair.check(&format!(
            "SELECT t.id, same.id AS other FROM t JOIN same ON t.{column} = same.{column}"
        ));
    }
    pair.check_all(&[
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.b = u.b AND t.k = u.k AND t.s = u.s",
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.i8 = u.i64 % 100",
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.i32 % 50 = u.u8",
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.s = u.sd AND t.k2 = u.k2",
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.sv = u.sl",
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.m = u.m38",
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.k + 1 = u.k2 AND t.d < u.d",
        "SELECT t.id, u.id AS other FROM t JOIN same u ON t.i64 = u.i64 AND t.u64 = u.u64 AND t.f64 = u.f64",
    ]);
}

/// A table with a slot for each key of the domain, although few keys have a row: the other side's
/// rows come in the order of their keys.
#[test]
fn joins_of_few_rows_with_ascending_keys() {
    let rows = 1_100_000u32;
    let ascending = columns(vec![
        ("k", Arc::new(Int32Array::from_iter_values(0..rows as i32)) as ArrayRef),
        ("v", Arc::new(Int32Array::from_iter_values((0..rows as i32).map(|v| v % 1000)))),
    ]);
    // Keys in any order, some twice; the first and the last of the domain.
    let keys = (0..600u32).map(|at| ((u64::from(at) * 7_919_237) % u64::from(rows)) as i32);
    let keys: Vec<i32> = keys.chain([0, rows as i32 - 1, 500, 500]).collect();
    let few = |unique: bool| {
        let mut keys = keys.clone();
        if unique {
            keys.sort_unstable_by_key(|key| key.wrapping_mul(77_777));
            keys.dedup();
        }
        let names = keys.iter().map(|key| format!("name {}", key % 10));
        columns(vec![
            ("name", Arc::new(StringArray::from_iter_values(names)) as ArrayRef),
            ("k", Arc::new(Int32Array::from(keys))),
        ])
    };
    let pair = Pair::of(ascending).and("u", few(true)).and("w", few(false));
    let directly = || -> u64 {
        let launches = pair.gpu().launches();
        launches.iter().filter(|(name, _)| *name == "join_build_direct").map(|(_, n)| n).sum()
    };
    for sql in [
        "SELECT t.k, t.v, u.name FROM t JOIN u ON t.k = u.k",
        "SELECT t.k, t.v, w.name FROM t JOIN w ON t.k = w.k",
        "SELECT t.k, u.name FROM t JOIN u ON t.k = u.k WHERE t.v > 500",
        "SELECT count(*), count(u.name), sum(t.v) FROM t LEFT JOIN u ON t.k = u.k",
        "SELECT t.k FROM t WHERE EXISTS (SELECT 1 FROM w WHERE w.k = t.k AND length(w.name) > t.v - 300)",
    ] {
        let before = directly();
        pair.check(sql);
        // On a GPU so few rows are joined by a hash table.
        let is_simulated = pair.gpu().kind() == DeviceKind::Sim;
        assert!(!is_simulated || directly() > before, "{sql}: no slot for each key");
    }
}

#[test]
fn joins_of_floats_and_decimals() {
    let shape = Shape::random(300, 75);
    let pair = Pair::of(shape.batches()).and("u", Shape { seed: 76, ..shape }.batches());
    // The cast float stands beside the float itself.
    pair.check_all(&[
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.k / 2.0 = u.m",
        "SELECT t.id, t.k2, u.id AS other FROM t LEFT JOIN u ON CAST(t.k2 AS double) = u.m",
        "SELECT t.id, v.y, u.id AS other FROM t JOIN (SELECT CAST(k AS double) AS y, * FROM u) v ON t.m = v.y \
         FULL JOIN u ON CAST(v.y AS decimal(20, 3)) = u.m",
        "SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM (SELECT CAST(k AS double) AS y FROM u) v WHERE v.y = t.m)",
        "SELECT y, count(*) FROM (SELECT CAST(k AS double) AS y FROM t) v JOIN u ON v.y = u.m AND v.y <= u.k GROUP BY y",
    ]);
}

#[test]
fn joins_with_further_conditions() {
    let shape = Shape::random(900, 73);
    let pair = Pair::of(shape.batches()).and("u", Shape { seed: 74, ..shape }.batches());
    pair.check_all(&[
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.k = u.k AND t.id < u.id AND t.x + u.x > 100",
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.id = u.id AND (t.k = u.k OR t.b)",
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.id = u.id WHERE t.s < u.s",
        "SELECT count(*), sum(t.x * u.x) FROM t JOIN u ON t.k = u.k AND t.k2 = u.k2 AND t.x < u.x",
        "SELECT t.k, count(*), sum(u.m) FROM t JOIN u ON t.id = u.id GROUP BY t.k",
        "SELECT t.id FROM t JOIN u ON t.id = u.id JOIN u v ON u.k = v.id AND v.b",
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.k IS NOT DISTINCT FROM u.k WHERE t.id < 40 AND u.id < 60",
        "SELECT t.id, u.id AS other FROM t JOIN u ON (t.s IS NOT DISTINCT FROM u.s) AND t.id = u.id",
        "SELECT a.id FROM t a, u b WHERE a.id = b.id AND a.k = 3 AND b.k > 2",
        "SELECT k, n FROM (SELECT k, count(*) AS n FROM t GROUP BY k) JOIN (SELECT k2, sum(x) AS y FROM u GROUP BY k2) v ON k = k2",
        "SELECT q.id, r.id AS other FROM (SELECT DISTINCT k, id % 10 AS id FROM t) q JOIN (SELECT k, max(id) AS id FROM u GROUP BY k) r ON q.k = r.k",
    ]);
}

#[test]
fn joins_match_null_keys_whatever_lies_beneath() {
    // Values of `i32` are far outside of the range of `k`, under nulls too.
    let shape = Shape { nulls: 0.4, ..Shape::random(90, 79) };
    let pair = Pair::of(shape.batches()).and("u", Shape { seed: 80, rows: 40, ..shape }.batches());
    for kind in ["INNER", "LEFT", "FULL"] {
        pair.check_all(&[
            &format!("SELECT t.id, u.id AS other FROM t {kind} JOIN u ON t.i32 IS NOT DISTINCT FROM u.k"),
            &format!("SELECT t.id, u.id AS other FROM t {kind} JOIN u ON t.k IS NOT DISTINCT FROM u.k2"),
            &format!("SELECT t.id, u.id AS other FROM t {kind} JOIN u ON t.m38 IS NOT DISTINCT FROM CAST(u.k AS decimal(38, 10))"),
        ]);
    }
}

#[test]
fn joins_of_empty_and_all_null_sides() {
    let shape = Shape::random(500, 75);
    let pair = Pair::of(shape.batches())
        .and("empty", Shape { rows: 0, ..shape }.batches())
        .and("hollow", Shape { values: Values::AllNull, ..shape }.batches());
    for key in ["id", "k", "s", "f64", "m38"] {
        for (left, right) in
            [("t", "empty"), ("empty", "t"), ("empty", "empty"), ("t", "hollow"), ("hollow", "t")]
        {
            pair.check(&format!(
                "SELECT l.id, r.s FROM {left} l JOIN {right} r ON l.{key} = r.{key}"
            ));
        }
    }
    let rows = pair.check(
        "SELECT l.id, r.s FROM t l JOIN hollow r ON l.k IS NOT DISTINCT FROM r.k WHERE r.id < 3",
    );
    assert!(rows > 0, "nulls match nulls here");
}

/// A key that cannot be computed fails for nobody where the other side has no rows.
#[test]
fn keys_that_fail_beside_an_empty_side() {
    let bytes = Int8Array::from_iter_values([1, -128, 127, 3]);
    let t = columns(vec![("i8", Arc::new(bytes) as ArrayRef)]);
    let u = |rows: i64| {
        columns(vec![("w", Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef)])
    };
    let pair = Pair::of(t).and("u", u(0)).and("v", u(9)).and("small", u(2));
    // Which side the CPU looks at first, and whether it fails, follows from its estimates.
    for sql in [
        "SELECT * FROM t CROSS JOIN u WHERE u.w = abs(t.i8)",
        "SELECT * FROM u CROSS JOIN t WHERE u.w = abs(t.i8)",
        "SELECT * FROM t LEFT SEMI JOIN u ON u.w = abs(t.i8)",
        "SELECT * FROM (SELECT max(abs(i8)) AS m FROM t) t JOIN u ON u.w = t.m",
        "SELECT * FROM t JOIN (SELECT * FROM small WHERE w > 7) u ON u.w = abs(t.i8)",
        "SELECT * FROM (SELECT * FROM v WHERE w > 70) v JOIN t ON v.w = abs(t.i8)",
    ] {
        assert!(matches!(pair.agreement(sql), Agreement::Rows(0) | Agreement::Undecided), "{sql}");
        assert_eq!(run(&pair.device, sql).map(|frame| frame.num_rows()).ok(), Some(0), "{sql}");
    }
    pair.check_error("SELECT * FROM t JOIN v ON v.w = abs(t.i8)");
}

/// A side that failed is not run again by every join above it.
#[test]
fn a_row_that_fails_below_joins_costs_each_of_them_the_same() {
    let keys = || Arc::new(Int64Array::from_iter_values(0..50)) as ArrayRef;
    let t = columns(vec![
        ("k", keys()),
        ("z", Arc::new(Int64Array::from_iter_values((0..50).map(|z| z % 7))) as ArrayRef),
    ]);
    let pair = Pair::of(t).and("u", columns(vec![("k", keys())]));
    let nested = |levels: usize, kind: &str, first: bool| {
        let least = "SELECT t.k FROM t JOIN u ON u.k = 100 / t.z".to_string();
        (0..levels).fold(least, |below, level| match first {
            true => format!(
                "SELECT x{level}.k FROM ({below}) x{level} {kind} JOIN u ON x{level}.k = u.k"
            ),
            false => format!(
                "SELECT x{level}.k FROM u {kind} JOIN ({below}) x{level} ON x{level}.k = u.k"
            ),
        })
    };
    for (kind, first) in [("", true), ("", false), ("LEFT", true), ("FULL", false)] {
        let launches = [4, 8, 12].map(|levels| {
            let sql = nested(levels, kind, first);
            let before = pair.gpu().counters().launches;
            let error = run(&pair.device, &sql).expect_err("a quotient by 0");
            assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{error:?}\n  {sql}");
            pair.gpu().counters().launches - before
        });
        let [less, more] = [launches[1] - launches[0], launches[2] - launches[1]];
        assert!(
            more <= less + less / 4 + 4 && launches[2] < 200,
            "{launches:?} launches: {kind} {first}"
        );
    }
}

#[test]
fn joins_of_a_key_repeated_thousands_of_times() {
    let pair = Pair::new();
    let side = |rows: i64, often: i32, other: i32| {
        let key = |i: i64| if i % 5 == 0 { other + i as i32 } else { often };
        let text = |i: i64| {
            if i % 5 == 0 { format!("single {i} of many") } else { "the repeated key".to_string() }
        };
        let columns_: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
            ("k", Arc::new(Int32Array::from_iter_values((0..rows).map(key)))),
            ("s", Arc::new(StringArray::from_iter_values((0..rows).map(text)))),
        ];
        columns(columns_)
    };
    let pair = pair.and("big", side(6000, 7, 100)).and("small", side(40, 7, 100));
    pair.check_all(&[
        "SELECT b.id, s.id AS other FROM big b JOIN small s ON b.k = s.k",
        "SELECT count(*), sum(a.id), sum(b.id) FROM big a JOIN small b ON a.s = b.s",
        "SELECT count(*), sum(a.id + b.id) FROM small a JOIN small b ON a.k = b.k JOIN small c ON b.s = c.s",
    ]);
}

#[test]
fn joins_with_a_row_for_every_key() {
    let keys = |keys: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(keys)) };
    let side = |order: &dyn Fn(i64) -> i64, rows: i64, scatter: i64| {
        let own: Vec<i64> = (0..rows).map(|row| order(row) * scatter + 10).collect();
        columns(vec![
            ("v", Arc::new(Int64Array::from_iter_values(own.iter().map(|k| k * 7))) as ArrayRef),
            ("k", keys(own.clone())),
            (
                "w",
                Arc::new(Int32Array::from_iter_values(own.iter().map(|k| (k % 1000) as i32 - 500))),
            ),
            (
                "n",
                Arc::new(Int32Array::from_iter(
                    own.iter().map(|k| (k % 3 != 0).then_some(*k as i32)),
                )),
            ),
            (
                "s",
                Arc::new(StringArray::from_iter_values(
                    own.iter().map(|k| format!("the text of key number {k}")),
                )),
            ),
        ])
    };
    let pair = Pair::new()
        .and("ascending", side(&|row| row, 500, 1))
        .and("shuffled", side(&|row| row * 37 % 500, 500, 1))
        .and("scattered", side(&|row| row * 37 % 500, 500, 1 << 40))
        .and("probe", side(&|row| row * row % 500, 1500, 1))
        .and("wide", side(&|row| row * row % 700, 1500, 1))
        .and("far", side(&|row| row * row % 700, 1500, 1 << 40));
    let sides = [
        ("probe", "ascending"),
        ("probe", "shuffled"),
        ("wide", "shuffled"),
        ("wide", "ascending"),
        ("far", "scattered"),
    ];
    for (at, (probe, build)) in sides.into_iter().enumerate() {
        for kind in ["JOIN"].into_iter().chain(share(["LEFT JOIN", "FULL JOIN"], at)) {
            let keys = ["p.k = b.k", "p.n = b.n", "p.k = b.n"];
            for key in &keys[..if kind == "JOIN" { 3 } else { 1 }] {
                pair.check_all(&[
                    &format!("SELECT p.v, b.v AS other FROM {probe} p {kind} {build} b ON {key}"),
                    &format!("SELECT p.v, b.w FROM {probe} p {kind} {build} b ON {key}"),
                    &format!("SELECT p.n, b.k, b.n, b.s FROM {probe} p {kind} {build} b ON {key} WHERE p.w > -400"),
                ]);
            }
        }
        pair.check_all(&[
            &format!("SELECT sum(p.v + b.v), sum(b.w), count(b.k) FROM {probe} p JOIN {build} b ON p.k = b.k"),
            &format!("SELECT b.k, b.s, p.w FROM {probe} p JOIN {build} b ON p.k = b.k AND b.w + p.w > 0"),
            &format!("SELECT b.v FROM {probe} p JOIN (SELECT * FROM {build} WHERE w > 0) b ON p.k = b.k"),
            &format!("SELECT p.k FROM {probe} p WHERE EXISTS (SELECT 1 FROM {build} b WHERE p.k = b.k AND b.w < p.w)"),
            &format!("SELECT p.v, b.v, c.w FROM {probe} p JOIN {build} b ON p.k = b.k JOIN {build} c ON b.k = c.k"),
        ]);
    }
}

#[test]
fn joins_that_fetch_several_columns_of_a_match() {
    let ints = |values: Vec<i64>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
    let side = |order: &dyn Fn(i64) -> i64, rows: i64, scatter: i64| {
        let own: Vec<i64> = (0..rows).map(|row| order(row) * scatter + 10).collect();
        columns(vec![
            (
                "a",
                Arc::new(Float64Array::from_iter_values(own.iter().map(|k| *k as f64 / 3.0)))
                    as ArrayRef,
            ),
            ("k", ints(own.clone())),
            ("b", ints(own.iter().map(|k| k ^ 0x55).collect())),
            ("c", ints(own.iter().map(|k| -k).collect())),
            (
                "w",
                Arc::new(Int32Array::from_iter_values(own.iter().map(|k| (k % 1000) as i32 - 500))),
            ),
            (
                "n",
                Arc::new(Int64Array::from_iter(own.iter().map(|k| (k % 5 != 0).then_some(k * 3)))),
            ),
            (
                "s",
                Arc::new(StringArray::from_iter_values(own.iter().map(|k| format!("{}", k % 17)))),
            ),
        ])
    };
    let pair = Pair::new()
        .and("ascending", side(&|row| row, 700, 1))
        .and("shuffled", side(&|row| row * 37 % 700, 700, 1))
        .and("scattered", side(&|row| row * 37 % 700, 700, 1 << 40))
        .and("probe", side(&|row| row * row % 700, 9000, 1))
        .and("wide", side(&|row| row * row % 900, 9000, 1))
        .and("far", side(&|row| row * row % 900, 9000, 1 << 40));
    for (probe, build) in
        [("probe", "ascending"), ("probe", "shuffled"), ("wide", "shuffled"), ("far", "scattered")]
    {
        pair.gpu().start_profile();
        pair.check(&format!(
            "SELECT p.s, b.a, b.b, b.c, b.k FROM {probe} p LEFT JOIN {build} b ON p.k = b.k"
        ));
        pair.gpu().take_profile().expect("a profile ends");
        let records =
            pair.gpu().take_operator_notes().iter().any(|note| note.note.starts_with("records: "));
        // On a GPU the caches hold so small a table.
        assert!(pair.gpu().kind() != DeviceKind::Sim || records, "no records: {build}");
        pair.check_all(&[
            &format!("SELECT p.a, b.a, b.c FROM {probe} p JOIN {build} b ON p.k = b.k"),
            &format!("SELECT p.k, b.c FROM {probe} p JOIN {build} b ON p.k = b.k WHERE b.b + b.c > p.b AND b.a < 200"),
            &format!("SELECT p.s, sum(b.a), min(b.b), max(b.c) FROM {probe} p JOIN {build} b ON p.k = b.k GROUP BY p.s"),
            &format!("SELECT b.a, b.b, c.b, c.c FROM {probe} p JOIN {build} b ON p.k = b.k JOIN {build} c ON b.k = c.k"),
            // The build side is seen through row numbers itself, and columns differ in width.
            &format!("SELECT p.b, q.b, q.c FROM {probe} p JOIN (SELECT * FROM {build} ORDER BY s, k LIMIT 200) q ON p.k = q.k"),
            &format!("SELECT b.w, b.s, b.n, b.a FROM {probe} p JOIN {build} b ON p.k = b.k WHERE p.w > -300"),
            &format!("SELECT b.s, b.w, b.n, b.k FROM {probe} p LEFT JOIN {build} b ON p.k = b.k"),
            &format!("SELECT p.b, b.b, b.c, b.s FROM {probe} p JOIN {build} b ON p.k = b.k AND b.a > p.b"),
        ]);
    }
}
