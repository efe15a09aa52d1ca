//! Names that capture others, and statements that DataFusion's planner refuses.

use warpframe::ErrorKind;

use super::{check, check_ordered, with_tables};
use crate::differential::run;

const TABLE: &str =
    "CREATE TABLE t AS SELECT * FROM (VALUES (1, 2, 'x'), (3, 1, 'y'), (2, 4, 'x')) v(a, b, c)";

#[test]
fn an_alias_and_a_key_of_the_order_may_have_one_name() {
    let pair = with_tables(&[TABLE]);
    check_ordered(&pair, "SELECT b AS a FROM t ORDER BY t.a", "2 / 4 / 1");
    check_ordered(&pair, "SELECT c, b AS a FROM t ORDER BY t.c, a DESC", "x|4 / x|2 / y|1");
    check_ordered(&pair, "SELECT b AS a FROM t ORDER BY -t.a, a", "1 / 4 / 2");
    check(
        &pair,
        "SELECT t.a, l.a FROM t, LATERAL (SELECT u.b AS a FROM t u WHERE u.c = t.c ORDER BY u.a DESC LIMIT 1) l",
        "1|4 / 2|4 / 3|1",
    );
    check(
        &pair,
        "WITH q AS (SELECT b AS a, c FROM t ORDER BY t.a LIMIT 2) SELECT q.a, c FROM q",
        "2|x / 4|x",
    );
    check(&pair, "SELECT a FROM (SELECT b AS a FROM t ORDER BY t.a DESC LIMIT 1)", "1");
    check(&pair, "SELECT (SELECT b AS a FROM t ORDER BY t.a DESC LIMIT 1) AS x", "1");
    let frame = run(&pair.device, "SELECT b AS a FROM t ORDER BY t.a").expect("rows");
    assert_eq!(frame.column_names(), ["a"]);
}

#[test]
fn an_alias_is_no_field_of_a_struct() {
    let pair = with_tables(&["CREATE TABLE s AS SELECT {'b': [1, 2], 'c': [100]} AS n"]);
    check(&pair, "SELECT 'c' AS b, n.b[1] AS x FROM s", "c|1");
    check(&pair, "SELECT n.b[1] AS b FROM s WHERE n.b[1] = 1", "1");
    check(&pair, "SELECT 7 AS b, s.n.b[2] + b AS x FROM s", "7|9");
    // Nor is a column that a join merges.
    for join in ["JOIN", "FULL JOIN"] {
        let query = format!(
            "SELECT r.n.b[1] AS x, b FROM (SELECT n, 7 AS b FROM s) r {join} (SELECT 7 AS b) u USING (b)"
        );
        check(&pair, &query, "1|7");
    }
}

#[test]
fn qualify_looks_at_columns_beside_windows_of_the_list() {
    let pair = with_tables(&[TABLE]);
    check(&pair, "SELECT a, sum(b) OVER (ORDER BY a) AS q FROM t QUALIFY b > 1", "1|2 / 2|6");
    check(
        &pair,
        "SELECT a, sum(b) OVER w FROM t WINDOW w AS (ORDER BY a) QUALIFY b > 1",
        "1|2 / 2|6",
    );
}

#[test]
fn rows_that_lag_does_not_find_have_a_computed_value() {
    let pair = with_tables(&[
        "CREATE TABLE n AS SELECT * FROM (VALUES (1, 10, NULL), (2, NULL, 5), (3, 30, NULL)) v(i, v, w)",
    ]);
    check_ordered(
        &pair,
        "SELECT i, lag(v, 1, i) OVER (ORDER BY i), lead(v, 1, i * 100) OVER (ORDER BY i) FROM n ORDER BY i",
        "1|1|- / 2|10|30 / 3|-|300",
    );
    check_ordered(
        &pair,
        "SELECT i, lag(w, 1, i) IGNORE NULLS OVER x, lag(v, 1, -7) OVER x FROM n WINDOW x AS (ORDER BY i) ORDER BY i",
        "1|1|-7 / 2|2|10 / 3|5|-",
    );
}

#[test]
fn a_query_of_with_hides_one_around_it() {
    let pair = with_tables(&[TABLE]);
    check(
        &pair,
        "WITH q AS (SELECT 1 AS v), r AS (WITH q AS (SELECT 2 AS v) SELECT v FROM q) SELECT q.v, r.v FROM q, r",
        "1|2",
    );
    // It may be made of the other.
    check(
        &pair,
        "WITH q AS (SELECT 1 AS v), r AS (WITH q AS (SELECT v + 5 AS v FROM q), p AS (SELECT q.v FROM q) SELECT * FROM p) SELECT * FROM r",
        "6",
    );
    check(
        &pair,
        "WITH q AS (SELECT 1 AS v) SELECT v, (WITH q AS (SELECT 2 AS v) SELECT max(v) FROM q) FROM q",
        "1|2",
    );
}

#[test]
fn pivot_lists_the_values_of_several_columns() {
    let pair = with_tables(&[TABLE]);
    check(&pair, "PIVOT t ON c IN ('x'), b IN (2, 4) USING sum(a)", "1|2");
    check(
        &pair,
        "SELECT x_2, y_1 FROM (PIVOT t ON c IN ('x', 'y'), b IN (1, 2) USING sum(a))",
        "1|3",
    );
    let error = run(&pair.cpu, "PIVOT t ON c IN ('x'), b USING sum(a)").expect_err("b has no list");
    assert!(matches!(error.kind(), ErrorKind::Plan { .. }), "{error}");
}
