//! WHERE.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Int64Array, StringArray};

use crate::differential::{Agreement, Pair};
use crate::tables::{Batches, Shape, Values, columns};

/// Rows of all types survive, by themselves and after each other kind of predicate.
const QUERIES: &[&str] = &[
    "SELECT * FROM t WHERE k < 4 ORDER BY id",
    "SELECT id, s, x FROM t WHERE x > 0 AND (b OR k2 = 2) ORDER BY id",
];

#[test]
fn filter_keeps_rows_of_every_type() {
    for shape in Shape::all() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        pair.check_all(QUERIES);
    }
}

/// How many kernels that write columns were generated for the queries so far.
fn generated_writers(pair: &Pair) -> usize {
    let launches = pair.gpu().launches();
    let writes = |name: &&String| {
        ["filter_compact_", "compact_", "project_"].iter().any(|stem| name.starts_with(stem))
    };
    launches.keys().filter(writes).count()
}

#[test]
fn columns_that_are_only_moved_need_no_kernel_of_the_querys_own() {
    let pair = Pair::of(Shape::random(9000, 12).batches());
    pair.check_all(&[
        "SELECT * FROM t WHERE i64 > 0",
        "SELECT id, s, x FROM t WHERE x > 0 AND (b OR k2 = 2)",
        "SELECT * FROM t WHERE i64 IS NULL",
        "SELECT x, s FROM (SELECT * FROM t WHERE k < 4) WHERE k2 = 2",
    ]);
    assert_eq!(generated_writers(&pair), 0, "{:?}", pair.gpu().launches());
    pair.check("SELECT x + 1 FROM t WHERE i64 > 0");
    assert_eq!(generated_writers(&pair), 1, "{:?}", pair.gpu().launches());
}

#[test]
fn predicates_of_every_type_select_as_on_the_cpu() {
    let pair = Pair::of(Shape::random(3000, 11).batches());
    for predicate in [
        "b",
        "NOT b",
        "b IS NOT TRUE",
        "k = 3 OR k IS NULL",
        "i8 > i16 AND u8 < 100",
        "i32 BETWEEN -1000000000 AND 1000000000",
        "i64 >= 0 AND u64 <= 9223372036854775807",
        "u64 > 9223372036854775808",
        "u32 % 2 = 1",
        "f32 < f64",
        "f64 = f64",
        "f64 <> f64",
        "f64 > 1e308",
        "f64 >= 'NaN'::double",
        "f64 = 0.0",
        "x IN (0.5, 1.5, -2.25)",
        "x NOT BETWEEN -50.0 AND 50.0",
        "d >= DATE '1994-01-01' AND d < DATE '1994-01-01' + INTERVAL '1' YEAR",
        "ts < TIMESTAMP '1970-01-01T00:00:00'",
        "ts_s > TIMESTAMP '1999-12-31T23:59:59'",
        "ts_ns > ts_ms",
        "m > 123.45",
        "m38 < 0 AND m > -1000",
        "s = 'é'",
        "s <> ''",
        "s > 'thirteen byte'",
        "s LIKE 'a%'",
        "s LIKE '%differs: _'",
        "s NOT LIKE '%e%'",
        "sl < 'naïve'",
        "sl LIKE '%7%'",
        "sv BETWEEN '100' AND '2'",
        "sv LIKE '_2%é'",
        "sd = 'twelve bytes' OR sd = 'thirteen bytf'",
        "sd IN ('', '%', '_', 'nobody''s')",
        "sd IS NULL AND s IS NOT NULL",
        "s = sd",
        "s < sv",
        "s IS DISTINCT FROM sd",
        "k IS NOT DISTINCT FROM k2",
        "(k > 2) = (k2 > 0)",
        "CASE WHEN k = 0 THEN 0 ELSE 10 / k END > 2",
        "length(s) = 12 AND id % 2 = 0",
    ] {
        pair.check(&format!("SELECT id FROM t WHERE {predicate} ORDER BY id"));
    }
}

#[test]
fn filters_that_keep_all_or_nothing() {
    let pair = Pair::of(Shape::random(4097, 5).batches());
    pair.check_all(&[
        "SELECT id, s FROM t WHERE id >= 0 ORDER BY id",
        "SELECT id, s FROM t WHERE id < 0",
        "SELECT sum(x), count(*) FROM t WHERE id < 0",
        "SELECT k, sum(x) FROM t WHERE id < 0 GROUP BY k",
        "SELECT id FROM t WHERE id < 0 ORDER BY s",
        "SELECT DISTINCT k FROM t WHERE id < 0",
        "SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE a.id < 0 AND b.k < 3",
    ]);
}

/// Where few rows stay, each warp lists its share of a tile, 512 of 4096 rows, by itself: single
/// rows and whole shares, at the ends of both, and in a last tile that is not full.
#[test]
fn filters_that_keep_few_rows() {
    let rows = 40_000i64;
    let table: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
        (
            "s",
            Arc::new(
                (0..rows)
                    .map(|i| (i % 7 != 0).then(|| format!("row {i} of many")))
                    .collect::<StringArray>(),
            ),
        ),
    ];
    Pair::of(columns(table)).check_all(&[
        "SELECT id, s FROM t WHERE id % 97 = 5",
        "SELECT id, s FROM t WHERE id BETWEEN 5000 AND 6700",
        "SELECT id, s FROM t WHERE id BETWEEN 8192 AND 8703 OR id % 512 = 511",
        "SELECT id FROM t WHERE id IN (0, 511, 512, 4095, 4096, 8191, 36863, 36864, 39999)",
        "SELECT id, s FROM t WHERE id > 39990 OR id < 3",
        "SELECT id, id * 2 AS twice FROM t WHERE id = 20000",
    ]);
}

#[test]
fn filters_of_filters() {
    let pair = Pair::of(Shape::random(4097, 6).batches());
    pair.check_all(&[
        "SELECT id, n FROM (SELECT id, k + k2 AS n, x FROM t WHERE k > 1) WHERE n > 2 AND x < 10 ORDER BY id",
        "SELECT n FROM (SELECT k, count(*) AS n FROM t WHERE b GROUP BY k) WHERE n > 100",
        "SELECT k, n FROM (SELECT k, count(*) AS n FROM t GROUP BY k HAVING sum(x) > 0) WHERE k <> 3",
    ]);
}

/// What stands behind AND is computed for the rows that need it: abs(-128) fails.
#[test]
fn what_a_row_does_not_need_does_not_fail() {
    let shape = Shape {
        rows: 700,
        values: Values::Random,
        batches: Batches::Sliced,
        nulls: 0.0,
        seed: 2063473584976411916,
    };
    let pair = Pair::of(shape.batches());
    let condition = "(7 / nullif(t.k2, 0)) BETWEEN 9 AND abs(t.i8)";
    let sql = format!(
        "SELECT t.sd AS g, count(DISTINCT t.i16) AS n FROM t WHERE {condition} GROUP BY t.sd"
    );
    assert_eq!(pair.agreement(&sql), Agreement::Rows(0));
    pair.check_error("SELECT sum(abs(i8)) FROM t");
    let guarded = pair.agreement("SELECT id FROM t WHERE i8 > -128 AND abs(i8) > 9");
    assert!(matches!(guarded, Agreement::Rows(1..)), "{guarded:?}");
}
