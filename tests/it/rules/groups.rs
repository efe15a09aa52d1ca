//! Aggregates with an empty grouping set, grouping sets in order, and keys of groups.

use super::{check, check_ordered, with_tables};
use crate::differential::run;

const TABLE: &str =
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'x'), (2, 'x'), (3, 'y'), (NULL, NULL)) v(a, c)";

/// A condition that names no column of an aggregate drops its groups.
#[test]
fn conditions_on_constants_stay_above_aggregates() {
    let pair = with_tables(&[
        TABLE,
        "CREATE VIEW totals AS SELECT 'all' AS seg, count(*) AS n FROM t UNION ALL SELECT c, count(*) FROM t GROUP BY c",
    ]);
    check(&pair, "SELECT * FROM totals WHERE seg = 'x'", "x|2");
    check(&pair, "SELECT * FROM totals WHERE seg IN ('all', 'y')", "all|4 / y|1");
    check(
        &pair,
        "SELECT * FROM (SELECT c, 'r' AS k, count(*) AS n FROM t GROUP BY ROLLUP (c)) WHERE k = 's'",
        "",
    );
    check(
        &pair,
        "SELECT count(*) FROM (SELECT a, 1 AS k FROM t GROUP BY CUBE (a, c)) WHERE k > 1 OR k < 0",
        "0",
    );
    check(
        &pair,
        "SELECT count(*) FROM (SELECT c, 1 AS k FROM t GROUP BY GROUPING SETS ((c), ())) WHERE k = 1",
        "4",
    );
    check(&pair, "SELECT count(*) AS n FROM t HAVING 1 = 2", "");
    check(&pair, "SELECT count(*) AS n FROM t HAVING (SELECT max(a) FROM t) = 77", "");
    check(&pair, "SELECT count(*) AS n FROM t HAVING (SELECT max(a) FROM t) = 3", "4");
    check(&pair, "SELECT count(*) AS n FROM t HAVING count(*) NOT IN (1, NULL)", "");
    check(
        &pair,
        "SELECT t.a, q.v FROM t LEFT JOIN (SELECT 'rows' AS m, count(*) AS v FROM t) q ON q.m = 'x'",
        "1|- / 2|- / 3|- / -|-",
    );
    check(
        &pair,
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM (SELECT 'rows' AS m, count(*) FROM t) q WHERE q.m = 'x')",
        "",
    );
    check(
        &pair,
        "SELECT (SELECT v FROM (SELECT 'rows' AS m, count(*) AS v FROM t) q WHERE q.m = 'x') AS v",
        "-",
    );
    // Keys that a condition names are still looked at before rows are grouped.
    check(&pair, "SELECT * FROM (SELECT c, count(*) FROM t GROUP BY c) WHERE c = 'x'", "x|2");
}

/// Grouping sets bring nulls into columns that are constant, or equal, below them.
#[test]
fn groups_of_grouping_sets_are_put_in_order() {
    let pair = with_tables(&[
        "CREATE TABLE s AS SELECT * FROM (VALUES (2024, 1, 10), (2024, 2, 20), (2023, 1, 5)) v(y, m, n)",
        "CREATE TABLE e AS SELECT a, a AS b FROM (VALUES (1), (2), (3)) v(a)",
    ]);
    check_ordered(
        &pair,
        "SELECT y, m, sum(n) FROM s WHERE y = 2024 GROUP BY CUBE (y, m) ORDER BY y, m",
        "2024|1|10 / 2024|2|20 / 2024|-|30 / -|1|10 / -|2|20 / -|-|30",
    );
    check_ordered(
        &pair,
        "SELECT a, b FROM (SELECT a, a AS b FROM e) GROUP BY GROUPING SETS ((a), (b)) ORDER BY b, a",
        "-|1 / -|2 / -|3 / 1|- / 2|- / 3|-",
    );
    check(
        &pair,
        "SELECT a, b, row_number() OVER (ORDER BY b, a) FROM (SELECT a, a AS b FROM e) GROUP BY GROUPING SETS ((a), (b))",
        "-|1|1 / -|2|2 / -|3|3 / 1|-|4 / 2|-|5 / 3|-|6",
    );
    check(
        &pair,
        "SELECT y, m, sum(sum(n)) OVER (ORDER BY y, m) FROM s WHERE y = 2024 GROUP BY ROLLUP (y, m)",
        "2024|1|10 / 2024|2|30 / 2024|-|60 / -|-|90",
    );
}

/// Of a key of groups, logical and physical plans may say otherwise whether it is ever null.
#[test]
fn keys_of_groups_may_be_nullable_or_not() {
    let pair = with_tables(&[TABLE]);
    check(
        &pair,
        "SELECT ((a > 1) IS NOT TRUE) <> ((a > 1) IS NOT TRUE) AS k, count(*) FROM t GROUP BY 1",
        "0|4",
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("n.parquet");
    let made = "SELECT * FROM (VALUES (1, 2), (NULL, 1)) v(a, b)";
    run(&pair.cpu, made).expect("rows").write_parquet(&path).expect("a file");
    check(
        &pair,
        &format!("SELECT DISTINCT CASE WHEN b <= a THEN a ELSE b END FROM '{}'", path.display()),
        "1 / 2",
    );
}

#[test]
fn grouping_sets_take_numbers_of_columns_and_a_key_twice() {
    let pair = with_tables(&[TABLE]);
    check(
        &pair,
        "SELECT a + 1 AS k, count(*) FROM t GROUP BY ROLLUP (1)",
        "2|1 / 3|1 / 4|1 / -|1 / -|4",
    );
    check(
        &pair,
        "SELECT c, a % 2 AS o, count(*) FROM t WHERE a > 0 GROUP BY GROUPING SETS ((1, 2), (2))",
        "x|1|1 / x|0|1 / y|1|1 / -|0|1 / -|1|2",
    );
    check(
        &pair,
        "SELECT c, count(*) FROM t WHERE a > 0 GROUP BY ROLLUP (c, c)",
        "x|2 / x|2 / y|1 / y|1 / -|3",
    );
    check(
        &pair,
        "SELECT c, count(*) FROM t WHERE a > 0 GROUP BY CUBE (c, c)",
        "x|2 / x|2 / x|2 / y|1 / y|1 / y|1 / -|3",
    );
}

/// Windows that need rows in one order may have other keys.
#[test]
fn windows_of_one_partition_have_keys_of_their_own() {
    let pair = with_tables(&[
        "CREATE TABLE w AS SELECT * FROM (VALUES ('a', 1, 3), ('a', 2, 5), ('a', 1, 4), ('b', 2, 7)) v(g, k, v)",
    ]);
    check(
        &pair,
        "SELECT g, k, v, sum(v) OVER (PARTITION BY g, k ORDER BY k RANGE BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING), \
         max(v) OVER (PARTITION BY g, k ORDER BY g RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM w",
        "a|1|3|7|4 / a|1|4|7|4 / a|2|5|5|5 / b|2|7|7|7",
    );
    check(
        &pair,
        "SELECT g, k, v, sum(v) OVER (PARTITION BY g, k ORDER BY g GROUPS 1 PRECEDING), \
         sum(v) OVER (PARTITION BY g, k ORDER BY k RANGE 4 PRECEDING), count(*) OVER (PARTITION BY g) FROM w",
        "a|1|3|7|7|3 / a|1|4|7|7|3 / a|2|5|5|5|3 / b|2|7|7|7|1",
    );
}

/// Beside an aggregate of distinct values, a sum of decimals keeps its type.
#[test]
fn sums_of_decimals_stand_beside_distinct_values() {
    let pair = with_tables(&[
        "CREATE TABLE d AS SELECT a, m::DECIMAL(9, 2) AS m FROM (VALUES (1, 1.5), (1, 2.5), (2, 3)) v(a, m)",
    ]);
    let typed = "SELECT count(DISTINCT a), arrow_typeof(sum(m)) FROM d";
    assert_eq!(super::rows(&pair.cpu, typed), ["2|Decimal128(19, 2)"]);
    check(
        &pair,
        "SELECT a, count(DISTINCT m) FROM d GROUP BY a HAVING sum(m) > CAST(3 AS DECIMAL(19, 2))",
        "1|2",
    );
    check(&pair, "SELECT sum(DISTINCT m), count(DISTINCT m), min(a) FROM d", "700|3|1");
}
