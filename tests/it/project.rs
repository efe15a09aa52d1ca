//! SELECT of expressions.

use crate::differential::Pair;
use crate::tables::Shape;

/// Checks all expressions, some dozen in a query.
fn check(pair: &Pair, expressions: &[&str]) {
    for several in expressions.chunks(12) {
        let list: Vec<_> =
            several.iter().enumerate().map(|(at, e)| format!("{e} AS e{at}")).collect();
        pair.check(&format!("SELECT id, {} FROM t ORDER BY id", list.join(", ")));
    }
}

#[test]
fn arithmetic_of_every_type() {
    let pair = Pair::of(Shape::random(2500, 21).batches());
    check(
        &pair,
        &[
            "k + k2",
            "k - w",
            "k * w",
            "w / 7",
            "w % 7",
            "-k",
            "CAST(u8 / 2 AS tinyint unsigned) + CAST(u16 / 2 AS smallint unsigned)",
            "CAST(u32 / 2 + 1000 AS int unsigned) - u8",
            "i8 + i8",
            "CAST(i16 % 100 AS smallint) * CAST(i16 % 100 AS smallint)",
            "i64 / 4 + 1",
            "i64 / 4 * 3",
            "u64 + 1",
            "i32 & 255",
            "i32 | k",
            "i64 ^ i32",
            "x + 1",
            "x * k",
            "x / 4.0",
            "x / 0",
            "f64 + f64",
            "f64 * -1",
            "f32 * f32",
            "f32 + f64",
            "-f64",
            "m + m",
            "m - 1.5",
            "m * m",
            "m / 3",
            "m % 7",
            "m * k",
            "m + x",
            "-m",
            "m38 + m",
            "m38 - m38",
            "m38 + 1",
            "k + 0.5",
            "abs(k2)",
            "abs(x)",
            "abs(m)",
            "round(x)",
            "round(x, 1)",
            "floor(x)",
            "ceil(x)",
            "trunc(x)",
            "round(m, 1)",
            "signum(x)",
            "sqrt(abs(x))",
            "power(x, 2)",
            "power(x - 3, 2.0::real)",
            "power(abs(x) + 3, -1)",
            "power((abs(x) + 3)::real, -1.0::real)",
            "power(x, k % 3 + 1)",
            "exp(x / 1000)",
            "ln(abs(x) + 1)",
            "log10(abs(x) + 1)",
            "sin(x)",
            "cos(x)",
            "tan(x)",
            "atan2(x, k)",
            "degrees(x)",
            "radians(x)",
            "isnan(f64)",
            "iszero(f64)",
            "greatest(k, k2, 2)",
            "least(x, f64)",
            "greatest(s, sl)",
            "cbrt(x)",
        ],
    );
}

#[test]
fn casts_of_every_type() {
    let pair = Pair::of(Shape::random(2500, 22).batches());
    check(
        &pair,
        &[
            "k::bigint",
            "k::smallint",
            "k::double",
            "k::real",
            "k::boolean",
            "k::decimal(10,3)",
            "i8::int",
            "u8::int",
            "w::double",
            "u32::bigint",
            "x::int",
            "x::bigint",
            "x::real",
            "x::decimal(20,4)",
            "f32::double",
            "b::int",
            "m::int",
            "m::double",
            "m::decimal(20,5)",
            "m::decimal(12,1)",
            "m38::double",
            "m38::decimal(38,2)",
            "d::timestamp",
            "ts::date",
            "ts_s::timestamp",
            "try_cast(i64 AS int)",
            "try_cast(i32 AS smallint)",
            "try_cast(u64 AS bigint)",
            "try_cast(f64 AS int)",
            "try_cast(i64 AS decimal(10,2))",
            "i64::real",
            "u64::double",
            "CAST(d AS int)",
            "CAST(ts AS bigint)",
        ],
    );
}

#[test]
fn logic_and_choices() {
    let pair = Pair::of(Shape::random(2500, 23).batches());
    check(
        &pair,
        &[
            "b AND k > 2",
            "b OR k > 2",
            "NOT b",
            "b IS TRUE",
            "b IS NOT FALSE",
            "b IS UNKNOWN",
            "k IS NULL",
            "s IS NOT NULL",
            "k = k2",
            "k < k2",
            "x >= f64",
            "s = sd",
            "s < sl",
            "d < ts",
            "m > m38",
            "f64 = f32",
            "k IS DISTINCT FROM k2",
            "k IN (1, 2, NULL)",
            "k NOT IN (1, 2)",
            "s IN ('a', 'é')",
            "CASE k WHEN 1 THEN 'one' WHEN 2 THEN 'two' END",
            "CASE WHEN b THEN x WHEN k > 3 THEN f64 ELSE 0 END",
            "CASE WHEN k > 3 THEN s ELSE sl END",
            "CASE WHEN b THEN m ELSE m38 END",
            "coalesce(k, k2, 0)",
            "coalesce(s, 'none')",
            "coalesce(x, f64)",
            "nullif(k, 3)",
            "nullif(s, 'a')",
            "nvl(x, -1)",
            "k BETWEEN k2 AND 5",
            "CASE WHEN k = 0 THEN NULL ELSE 100 / k END",
            "CASE WHEN k > 3 THEN m ELSE round(m, 1) END",
            "coalesce(round(m, 1), m)",
        ],
    );
}

#[test]
fn strings_and_times() {
    let pair = Pair::of(Shape::random(2500, 24).batches());
    check(
        &pair,
        &[
            "s",
            "sl",
            "sv",
            "sd",
            "length(s)",
            "octet_length(sl)",
            "bit_length(sv)",
            "substr(s, 2)",
            "substr(sv, 2, 3)",
            "left(s, 3)",
            "right(sl, 2)",
            "trim(s)",
            "ltrim(s)",
            "rtrim(s)",
            "strpos(s, 'e')",
            "starts_with(s, 'a')",
            "ends_with(sl, '7')",
            "contains(sv, 'by')",
            "s LIKE '%b%'",
            "sv LIKE '1__%'",
            "s LIKE 'a\\%b'",
            "s LIKE sd",
            "sl ILIKE '%E%'",
            "sd NOT ILIKE 'TW%'",
            "btrim(s, 'ae')",
            "ltrim(sl, 'tw')",
            "rtrim(sd, s)",
            "split_part(sv, 'e', 2)",
            "split_part(sd, 'e', -1)",
            "ascii(s)",
            "ascii(sd) + length(sd)",
            "extract(year FROM d)",
            "extract(month FROM d)",
            "extract(day FROM ts)",
            "extract(hour FROM ts)",
            "extract(minute FROM ts_s)",
            "extract(second FROM ts_ms)",
            "extract(quarter FROM d)",
            "extract(week FROM d)",
            "extract(doy FROM d)",
            "extract(dow FROM ts)",
            "date_trunc('month', ts)",
            "date_trunc('week', ts_s)",
            "date_trunc('hour', ts_ns)",
            "date_trunc('year', d::timestamp)",
            "d + INTERVAL '1' MONTH",
            "ts - INTERVAL '2' DAY",
            "d - 3",
            "d + 1",
        ],
    );
}

#[test]
fn constants_and_columns_untouched() {
    let pair = Pair::of(Shape::random(100, 25).batches());
    pair.check_all(&[
        "SELECT 1 AS a, 'text' AS b, 2.5 AS d, true AS e, x * 2 AS f FROM t",
        "SELECT k AS a, k AS b, k + 1 AS c FROM t",
        "SELECT 1 + 1 AS two",
    ]);
    pair.check_all(&[
        "SELECT a + 1 AS a, b || '!' AS b, c * 2 AS c, d + 1 AS d FROM (VALUES (1, 'x', 2.5, DATE '2020-01-01'), (2, NULL, -1, NULL)) v(a, b, c, d)",
        "SELECT t.id, v.name FROM t JOIN (VALUES (1, 'one'), (2, 'two'), (1 + 2, 'three')) v(k, name) ON t.k = v.k ORDER BY t.id",
        "SELECT id FROM t WHERE k IN (SELECT column1 FROM (VALUES (1), (3))) ORDER BY id",
    ]);
    pair.agreement("VALUES (1, 'a'), (2, 'b')");
    // Nothing to compute: no kernel runs.
    pair.agreement("SELECT * FROM t ORDER BY id");
    pair.agreement("SELECT s AS a, k AS b FROM t");
}

#[test]
fn failures_are_errors_on_both() {
    use warpframe::ErrorKind;
    let pair = Pair::of(Shape::random(2500, 26).batches());
    for expression in [
        "10 / k",
        "k % k",
        "i64::int",
        "i32::smallint",
        "f64::bigint",
        "u64::bigint",
        "i64::decimal(10,2)",
        "m / (k - 1)",
    ] {
        let error = pair.check_error(&format!("SELECT {expression} AS e FROM t"));
        assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{expression}: {error:?}");
        // The session goes on.
        pair.check("SELECT id FROM t WHERE k > 3 ORDER BY id");
    }
    pair.check_error("SELECT m38 / 1000 AS e FROM t");
    pair.check_error("SELECT sum(10 / k) FROM t");
    pair.check_error("SELECT k2, sum(10 / k) FROM t GROUP BY k2");
    pair.check_error("SELECT id FROM t ORDER BY 10 / k");
    pair.check_error("SELECT a.id FROM t a JOIN t b ON 10 / a.k = b.k");
    pair.check_error("SELECT id FROM t WHERE 10 / k > 1");
    pair.check("SELECT count(*) FROM t WHERE k > 3");
}

#[test]
fn what_no_row_asks_for_does_not_fail() {
    use crate::differential::{Rows, run};
    let pair = Pair::of(Shape::random(2500, 27).batches());
    // The CPU engine evaluates some of these for rows that are out already, and fails.
    for (risky, safe) in [
        ("k > 3 AND 10 / k > 1", "k > 3 AND 10 / nullif(k, 0) > 1"),
        ("k <> 0 AND 10 / k > 1", "k <> 0 AND 10 / nullif(k, 0) > 1"),
        ("k = 0 OR 10 / k > 1", "k = 0 OR 10 / nullif(k, 0) > 1"),
        ("CASE WHEN k = 0 THEN false ELSE 10 / k > 1 END", "10 / nullif(k, 0) > 1"),
    ] {
        let query = |predicate: &str| format!("SELECT id FROM t WHERE {predicate} ORDER BY id");
        let (risky, safe) = (&query(risky), query(safe));
        let expected = Rows::of(&run(&pair.cpu, &safe).expect("nullif saves it")).rows;
        let found = Rows::of(
            &run(&pair.device, risky).unwrap_or_else(|error| panic!("{error}\n  {risky}")),
        )
        .rows;
        assert_eq!(expected, found, "{risky}");
        assert!(!found.is_empty(), "{risky}");
    }
}
