//! Simplifications that forget digits, nulls, signs and errors.

use super::{check, with_tables};
use crate::differential::run;

/// The decimals 1.20, 1.54, …; integers; instants.
const CASTS: &str = "CREATE TABLE c AS SELECT i, m::DECIMAL(5, 2) AS m, x FROM (VALUES \
     (1, 1.2, 3), (2, 1.54, 70000), (3, -0.3, NULL), (4, NULL, 1), (5, 99.96, -5)) v(i, m, x)";

#[test]
fn casts_that_lose_something_are_compared_as_casts() {
    let pair = with_tables(&[CASTS]);
    check(&pair, "SELECT i FROM c WHERE CAST(m AS INT) = 1 AND i < 2", "1");
    check(&pair, "SELECT i FROM c WHERE CAST(m AS INT) = 0", "3");
    check(&pair, "SELECT i FROM c WHERE CAST(m AS DECIMAL(11, 1)) > 1.5", "5");
    check(&pair, "SELECT i FROM c WHERE CAST(m AS DECIMAL(11, 1)) IN (1.2, 1.5)", "1 / 2");
    check(&pair, "SELECT i FROM c WHERE CAST(m AS DECIMAL(11, 1)) BETWEEN 1.1 AND 1.5", "1 / 2");
    check(&pair, "SELECT i FROM c WHERE TRY_CAST(x AS TINYINT) > 1", "1");
    check(&pair, "SELECT i FROM c WHERE TRY_CAST(x AS TINYINT) <> 3", "4 / 5");
    check(&pair, "SELECT i FROM c WHERE NOT (TRY_CAST(x AS TINYINT) IN (3, 4))", "4 / 5");
    check(&pair, "SELECT i, TRY_CAST(x AS SMALLINT) > 1 FROM c WHERE i < 3", "1|1 / 2|-");
    check(&pair, "SELECT i FROM c WHERE TRY_CAST(m AS DECIMAL(3, 2)) > 1", "1 / 2");
    check(
        &pair,
        "SELECT CASE WHEN CAST(m AS DECIMAL(11, 1)) = 1.5 THEN 'yes' ELSE 'no' END, count(*) FROM c GROUP BY 1",
        "yes|1 / no|4",
    );
    check(&pair, "SELECT i FROM c WHERE arrow_cast(m, 'Decimal128(11, 1)') = 1.5", "2");
    for session in [&pair.cpu, &pair.device] {
        let error = run(session, "SELECT i FROM c WHERE CAST(x AS TINYINT) <> 3");
        assert!(error.is_err(), "70000 is no TINYINT");
    }
    // Casts that keep all values apart are taken off.
    check(&pair, "SELECT i FROM c WHERE CAST(x AS BIGINT) IN (3, 1)", "1 / 4");
    check(&pair, "SELECT i FROM c WHERE CAST(m AS DECIMAL(12, 4)) = 1.54", "2");
    check(&pair, "SELECT i FROM c WHERE CAST(x AS VARCHAR) = '3'", "1");
}

#[test]
fn statements_that_write_compare_casts() {
    let pair = with_tables(&[
        CASTS,
        "UPDATE c SET x = 0 WHERE CAST(m AS DECIMAL(11, 1)) = 1.5",
        "DELETE FROM c WHERE TRY_CAST(x AS TINYINT) <> 3 OR x NOT IN (1, 6) AND x NOT IN (9, NULL)",
    ]);
    check(&pair, "SELECT i, x FROM c", "1|3 / 3|-");
}

#[test]
fn filters_of_aggregates_and_windows_compare_casts_and_lists() {
    let pair = with_tables(&[CASTS]);
    check(&pair, "SELECT count(*) FILTER (WHERE CAST(m AS DECIMAL(11, 1)) = 1.5) FROM c", "1");
    check(
        &pair,
        "SELECT i % 2, sum(i) FILTER (WHERE x NOT IN (1, 6) AND x NOT IN (i, 9)) FROM c GROUP BY 1",
        "0|2 / 1|6",
    );
    check(
        &pair,
        "SELECT i, count(*) FILTER (WHERE TRY_CAST(x AS TINYINT) > 1) OVER (ORDER BY i) FROM c WHERE i < 4",
        "1|1 / 2|1 / 3|1",
    );
}

/// Files are pruned by what a cast of their columns is, too.
#[test]
fn files_are_not_pruned_by_casts_that_lose_something() {
    let pair = with_tables(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m.parquet");
    let made = "SELECT m::DECIMAL(5, 2) AS m, x FROM (VALUES (1.2, 300), (1.9, 400)) v(m, x)";
    run(&pair.cpu, made).expect("rows").write_parquet(&path).expect("a file");
    let file = path.display();
    check(&pair, &format!("SELECT x FROM '{file}' WHERE CAST(m AS DECIMAL(5, 1)) < 1.2"), "");
    check(&pair, &format!("SELECT x FROM '{file}' WHERE CAST(m AS DECIMAL(5, 0)) = 2"), "400");
    check(
        &pair,
        &format!("SELECT x FROM '{file}' WHERE TRY_CAST(x AS TINYINT) IS NULL"),
        "300 / 400",
    );
}

#[test]
fn lists_of_columns_and_nulls_are_no_sets_of_values() {
    let pair = with_tables(&[
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 1, 'a', 'b'), (2, 9, 'a', 'a'), (3, NULL, NULL, 'a'), (4, 6, 'b', NULL)) v(i, x, s, r)",
    ]);
    check(&pair, "SELECT i FROM t WHERE s IN ('a', 'b') AND s NOT IN (r)", "1");
    check(&pair, "SELECT i FROM t WHERE s IN ('a', r) AND s IN ('b', 'a')", "1 / 2");
    check(&pair, "SELECT i FROM t WHERE x NOT IN (1, 6) OR x NOT IN (9)", "1 / 2 / 4");
    check(&pair, "SELECT i FROM t WHERE x IN (1, 9) AND x NOT IN (9, NULL)", "");
    check(&pair, "SELECT i FROM t WHERE NOT (x IN (1, NULL) AND x IN (6, 9))", "1");
    check(
        &pair,
        "SELECT i, x IN (1, 6) AND x IN (9), x IN (1) AND x NOT IN (1), x NOT IN (1) OR x NOT IN (6), \
         (x = 1 OR x = 6) AND (x = 9 OR x = 10), s ~ '^(a|b)$' AND s ~ '^(c|d)$' FROM t",
        "1|0|0|1|0|0 / 2|0|0|1|0|0 / 3|-|-|-|-|- / 4|0|0|1|0|0",
    );
    check(&pair, "SELECT i FROM t WHERE x = 1 OR x = 6 OR x IN (7, 8)", "1 / 4");
}

#[test]
fn minus_is_no_complement_of_bits() {
    let pair = with_tables(&[
        "CREATE TABLE b AS SELECT * FROM (VALUES (6, 3), (12, 7), (NULL, 1)) v(x, y)",
        "CREATE TABLE whole AS SELECT * FROM (VALUES (6), (12)) v(x)",
    ]);
    check(
        &pair,
        "SELECT -(x & y), -(x | y), -(-(x & y)), x ^ x, (x ^ y) ^ x, y ^ (x ^ y) FROM b",
        "-2|-7|2|0|3|6 / -4|-15|4|0|7|12 / -|-|-|-|-|-",
    );
    check(&pair, "SELECT -x & x, -x | x, -x ^ x FROM whole", "2|-2|-4 / 4|-4|-8");
}

#[test]
fn patterns_match_what_they_say() {
    let pair =
        with_tables(&[r"CREATE TABLE p AS SELECT * FROM (VALUES ('a\b'), ('ab'), (NULL)) v(s)"]);
    check(
        &pair,
        r"SELECT s ~ '.*', s !~ '.*', regexp_like(s, '.*'), s ~ 'a\\b', s ~ '^a\\b$', s ~ ('a\\' || 'b'), s LIKE '%' FROM p",
        "1|0|1|1|1|1|1 / 1|0|1|0|0|0|1 / -|-|-|-|-|-|-",
    );
}

#[test]
fn zeros_are_equal_and_logarithms_may_be_nan() {
    let pair = with_tables(&[
        "CREATE TABLE z AS SELECT * FROM (VALUES (0.0::DOUBLE), (-0.0::DOUBLE)) v(x)",
    ]);
    check(
        &pair,
        "SELECT x = 0.0 AND x <> -0.0, x IN (0.0) AND x NOT IN (-0.0), x = 0.0 AND x <> CAST('-0.0' AS DOUBLE), isnan(log(x, x)) FROM z",
        "0|0|0|1 / 0|0|0|1",
    );
}

/// A row that fails fails, whatever its value would have made no difference to.
#[test]
fn what_fails_is_not_simplified_away() {
    let pair = with_tables(&[
        "CREATE TABLE d AS SELECT * FROM (VALUES (0), (1)) v(x)",
        "CREATE TABLE m AS SELECT m::DECIMAL(10, 2) AS m FROM (VALUES (1.25), (2.5)) v(m)",
    ]);
    for expression in [
        "(10 / x) * 0",
        "(10 / x) % 1",
        "(10 / x) & 0",
        "10 / x = 10 / x",
        "(10 / x) IS NULL",
        "(10 / x) IS NOT NULL",
        "CAST(10 / x AS VARCHAR) LIKE '%'",
    ] {
        let sql = format!("SELECT {expression} AS e FROM d");
        for session in [&pair.cpu, &pair.device] {
            let error = run(session, &sql).err().unwrap_or_else(|| panic!("an error: {sql}"));
            assert!(error.to_string().contains("Divide by zero"), "{error}\n  {sql}");
        }
    }
    // The constant of a product has another type.
    check(
        &pair,
        "SELECT CAST(m * 0 AS VARCHAR), CAST(m % 1 AS VARCHAR) FROM m",
        "0.00|0.25 / 0.00|0.50",
    );
}

/// Without a row, a scalar subquery is null, also of a constant.
#[test]
fn a_constant_of_a_subquery_without_a_row_is_null() {
    let pair = with_tables(&["CREATE TABLE u AS SELECT * FROM (VALUES (1)) v(y)"]);
    check(
        &pair,
        "SELECT (SELECT 5 FROM u WHERE y = 2) IS NULL AS n, coalesce((SELECT 5 FROM u WHERE y = 2), 7) AS c",
        "1|7",
    );
    check(&pair, "SELECT y FROM u WHERE (SELECT 5 FROM u WHERE y = 2) IS NULL", "1");
    check(&pair, "SELECT v IS NULL FROM (SELECT (SELECT 5 FROM u WHERE y = 2) AS v FROM u)", "1");
}
