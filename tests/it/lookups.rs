//! Correlated scalar subqueries that need not have one row, and LATERAL: what DuckDB yields of the
//! same rows, asked of the CPU engine and of the device.

use warpframe::{ErrorKind, Result};

use crate::differential::{Pair, run};
use crate::lifted::{batch, text};

fn tables() -> Pair {
    let some = |numbers: &[i32]| Some(numbers.iter().copied().map(Some).collect::<Vec<_>>());
    let emp = batch(&[
        ("id", some(&[1, 2, 3, 4, 5]), vec![]),
        ("name", None, vec![Some("ann"), Some("bob"), Some("cy"), Some("dan"), Some("eve")]),
        ("mgr", Some(vec![None, Some(1), Some(1), Some(3), Some(99)]), vec![]),
    ]);
    let o = batch(&[
        ("id", Some(vec![Some(1), Some(1), Some(2), Some(3), None]), vec![]),
        ("ts", some(&[10, 20, 15, 5, 10]), vec![]),
        ("q", some(&[5, 6, 7, 8, 9]), vec![]),
    ]);
    let p = batch(&[
        ("id", Some(vec![Some(1), Some(1), Some(1), Some(2), Some(2), None]), vec![]),
        ("ts", some(&[5, 12, 18, 15, 16, 1]), vec![]),
        ("price", Some(vec![Some(100), Some(110), None, Some(200), Some(210), Some(1)]), vec![]),
    ]);
    Pair::new().and("emp", vec![emp]).and("o", vec![o]).and("p", vec![p])
}

#[rustfmt::skip]
const VALUES: &[(&str, &str)] = &[
    (
        "SELECT e.name, (SELECT m.name FROM emp m WHERE m.id = e.mgr) FROM emp e",
        "ann - | bob ann | cy ann | dan cy | eve -",
    ),
    (
        "SELECT e.name, coalesce((SELECT m.name FROM emp m WHERE m.id = e.mgr), '?') || '!' FROM emp e",
        "ann ?! | bob ann! | cy ann! | dan cy! | eve ?!",
    ),
    (
        "SELECT e.name FROM emp e WHERE e.id > 1 AND (SELECT m.name FROM emp m WHERE m.id = e.mgr) <> 'zed'",
        "bob | cy | dan",
    ),
    (
        "SELECT e.name, CASE WHEN e.id > 2 THEN (SELECT m.name FROM emp m WHERE m.id = e.mgr) ELSE 'no' END FROM emp e",
        "ann no | bob no | cy ann | dan cy | eve -",
    ),
    (
        "SELECT (SELECT m.name FROM emp m WHERE m.id = e.mgr) AS boss, count(*) FROM emp e GROUP BY (SELECT m.name FROM emp m WHERE m.id = e.mgr)",
        "- 2 | ann 2 | cy 1",
    ),
    (
        "SELECT max((SELECT m.name FROM emp m WHERE m.id = e.mgr)) FROM emp e",
        "cy",
    ),
    (
        "SELECT e.name, rank() OVER (ORDER BY (SELECT m.name FROM emp m WHERE m.id = e.mgr) NULLS LAST) FROM emp e",
        "ann 4 | bob 1 | cy 1 | dan 3 | eve 4",
    ),
    (
        "SELECT e.name FROM emp e ORDER BY (SELECT m.name FROM emp m WHERE m.id = e.mgr) NULLS LAST, e.name LIMIT 3",
        "bob | cy | dan",
    ),
    (
        "SELECT e.name, (SELECT (SELECT b.name FROM emp b WHERE b.id = m.mgr) FROM emp m WHERE m.id = e.mgr) FROM emp e",
        "ann - | bob - | cy - | dan ann | eve -",
    ),
    (
        "SELECT e.name, (SELECT m.name FROM emp m WHERE m.id = e.mgr), (SELECT m.name FROM emp m WHERE m.id = e.mgr) IS NULL FROM emp e",
        "ann - 1 | bob ann 0 | cy ann 0 | dan cy 0 | eve - 1",
    ),
    (
        "SELECT o.q FROM o JOIN emp e ON e.id = o.id AND (SELECT price FROM p WHERE p.id = o.id ORDER BY ts LIMIT 1) = 100",
        "5 | 6",
    ),
    (
        "SELECT d.q FROM (SELECT o.q, (SELECT name FROM emp WHERE emp.id = o.id) AS n FROM o) d WHERE d.n = 'ann'",
        "5 | 6",
    ),
    (
        "SELECT o.q FROM o WHERE o.q IN (SELECT 5 UNION ALL SELECT 6) OR (SELECT price FROM p WHERE p.id = o.id ORDER BY ts LIMIT 1) = 200",
        "5 | 6 | 7",
    ),
    (
        "SELECT (SELECT n FROM (SELECT 1 AS k, 'x' AS n) m WHERE m.k = e.mgr) AS b FROM emp e UNION SELECT 'y'",
        "- | x | y",
    ),
    (
        "SELECT o.q, (SELECT max(ts) FROM p WHERE CAST(p.price / 100.0 AS INT) = o.id) FROM o",
        "5 12 | 6 12 | 7 16 | 8 - | 9 -",
    ),
    // Nulls are values, and no key.
    (
        "SELECT o.q, (SELECT price FROM p WHERE p.id = o.id AND p.ts = 18) FROM o",
        "5 - | 6 - | 7 - | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT price FROM p WHERE p.id IS NOT DISTINCT FROM o.id ORDER BY ts LIMIT 1) FROM o",
        "5 100 | 6 100 | 7 200 | 8 - | 9 1",
    ),
    // Several rows count where a row asks for them.
    (
        "SELECT o.q, (SELECT price FROM p WHERE p.id = o.id) FROM o WHERE o.id = 3",
        "8 -",
    ),
    (
        "SELECT o.q FROM o WHERE o.id = 3 AND (SELECT price FROM p WHERE p.id = o.id) IS NULL",
        "8",
    ),
    (
        "SELECT o.q, (SELECT DISTINCT p.id * 10 FROM p WHERE p.id = o.id) FROM o",
        "5 10 | 6 10 | 7 20 | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT max(p.price) FROM p WHERE p.id = o.id GROUP BY p.id) FROM o",
        "5 110 | 6 110 | 7 210 | 8 - | 9 -",
    ),
    // The first in an order.
    (
        "SELECT o.q, (SELECT price FROM p WHERE p.id = o.id ORDER BY p.ts DESC LIMIT 1) FROM o",
        "5 - | 6 - | 7 210 | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT price FROM p WHERE p.id = o.id ORDER BY p.ts DESC LIMIT 1 OFFSET 1) FROM o",
        "5 110 | 6 110 | 7 200 | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT price FROM p WHERE p.id = o.id AND p.ts > 14 ORDER BY p.ts LIMIT 2 OFFSET 1) FROM o",
        "5 - | 6 - | 7 210 | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT 1 FROM p WHERE o.q > 7 LIMIT 1) FROM o",
        "5 - | 6 - | 7 - | 8 1 | 9 1",
    ),
    (
        "SELECT o.q, (SELECT price FROM p WHERE p.id = o.id LIMIT 0) FROM o",
        "5 - | 6 - | 7 - | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT p.price + o.q FROM p WHERE p.id = o.id ORDER BY p.ts LIMIT 1) FROM o",
        "5 105 | 6 106 | 7 207 | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT price FROM p WHERE p.id = o.id ORDER BY ts DESC LIMIT 1) + (SELECT count(*) FROM p WHERE p.id = o.id) FROM o",
        "5 - | 6 - | 7 212 | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT count(*) FROM p WHERE p.id = o.id LIMIT 1) FROM o",
        "5 3 | 6 3 | 7 2 | 8 0 | 9 0",
    ),
    (
        "SELECT o.q, (SELECT x FROM (SELECT p.price AS x, row_number() OVER (ORDER BY p.ts DESC) AS r FROM p WHERE p.id = o.id) t WHERE r = 2) FROM o",
        "5 110 | 6 110 | 7 200 | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT m.name FROM emp m WHERE m.id <= o.id AND EXISTS (SELECT 1 FROM p WHERE p.id = m.id) ORDER BY m.id DESC LIMIT 1) FROM o",
        "5 ann | 6 ann | 7 bob | 8 bob | 9 -",
    ),
    // By other conditions than equalities of columns.
    (
        "SELECT o.q, (SELECT price FROM p WHERE p.id = o.id AND p.ts <= o.ts ORDER BY p.ts DESC LIMIT 1) FROM o",
        "5 100 | 6 - | 7 200 | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT price FROM p WHERE p.id <= o.id ORDER BY p.ts, p.id LIMIT 1 OFFSET 1) FROM o",
        "5 110 | 6 110 | 7 110 | 8 110 | 9 -",
    ),
    (
        "SELECT o.q, (SELECT max(price) FROM p WHERE p.id = o.id AND p.ts <= o.ts) FROM o",
        "5 100 | 6 110 | 7 200 | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT count(*) FROM p WHERE p.ts <= o.ts) AS c, (SELECT sum(price) FROM p WHERE p.ts <= o.ts) AS s FROM o",
        "5 2 101 | 6 6 621 | 7 4 411 | 8 2 101 | 9 2 101",
    ),
    (
        "SELECT o.q, (SELECT count(*) FROM p WHERE p.ts < o.ts HAVING count(*) > 2) FROM o",
        "5 - | 6 6 | 7 3 | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT price FROM p WHERE p.id + 1 = o.id + 1 ORDER BY ts LIMIT 1) FROM o",
        "5 100 | 6 100 | 7 200 | 8 - | 9 -",
    ),
    (
        "SELECT o.q, (SELECT count(*) FROM emp m LEFT JOIN p ON p.id = m.id WHERE m.id <= o.id) FROM o",
        "5 3 | 6 3 | 7 5 | 8 6 | 9 0",
    ),
    (
        "SELECT o.q, (SELECT max(a.price + o.q) FROM (SELECT * FROM p WHERE p.ts < o.ts) a JOIN emp m ON m.id = a.id) FROM o",
        "5 105 | 6 216 | 7 117 | 8 - | 9 109",
    ),
    (
        "SELECT o.q, (SELECT o.q + 1), (SELECT o.q WHERE o.id > 1) FROM o",
        "5 6 - | 6 7 - | 7 8 7 | 8 9 8 | 9 10 -",
    ),
    (
        "SELECT o.q FROM o ORDER BY (SELECT count(*) FROM p WHERE p.ts < o.ts) DESC, o.q LIMIT 3",
        "5 | 6 | 7",
    ),
    (
        "SELECT k, (SELECT sum(v) FROM unnest(xs) AS u(v) WHERE v > k) FROM (SELECT 1 AS k, [1, 2, 3] AS xs UNION ALL SELECT 2, [1, 2]) l",
        "1 5 | 2 -",
    ),
    (
        "SELECT q, (SELECT sum(price) FROM p WHERE p.ts < o.ts GROUP BY ROLLUP (id) ORDER BY 1 DESC LIMIT 1) FROM o",
        "5 101 | 6 621 | 7 211 | 8 1 | 9 101",
    ),
    (
        "SELECT q, (SELECT price FROM p WHERE p.ts = (SELECT max(r.ts) FROM p r WHERE r.id = o.id)) FROM o",
        "5 - | 6 - | 7 210 | 8 - | 9 -",
    ),
    (
        "SELECT q, (SELECT count(*) FROM p, LATERAL (SELECT r.ts FROM p r WHERE r.id = o.id AND r.ts > p.ts) z) FROM o",
        "5 8 | 6 8 | 7 7 | 8 0 | 9 0",
    ),
    (
        "SELECT q, (SELECT count(*) FROM (SELECT ts FROM p WHERE p.id = o.id) a JOIN (SELECT ts FROM p WHERE p.ts < o.ts) b ON a.ts > b.ts) FROM o",
        "5 5 | 6 8 | 7 6 | 8 0 | 9 0",
    ),
];

#[rustfmt::skip]
const LATERAL: &[(&str, &str)] = &[
    (
        "SELECT o.q, x.* FROM o, LATERAL (SELECT p.ts, p.price FROM p WHERE p.id = o.id ORDER BY p.ts DESC LIMIT 2) x",
        "5 12 110 | 5 18 - | 6 12 110 | 6 18 - | 7 15 200 | 7 16 210",
    ),
    (
        "SELECT o.q, x.* FROM o LEFT JOIN LATERAL (SELECT p.ts, p.price FROM p WHERE p.id = o.id ORDER BY p.ts DESC LIMIT 2) x ON true",
        "5 12 110 | 5 18 - | 6 12 110 | 6 18 - | 7 15 200 | 7 16 210 | 8 - - | 9 - -",
    ),
    (
        "SELECT o.q, x.* FROM o LEFT JOIN LATERAL (SELECT p.ts, p.price FROM p WHERE p.id = o.id ORDER BY p.ts DESC LIMIT 2) x ON x.price IS NOT NULL",
        "5 12 110 | 6 12 110 | 7 15 200 | 7 16 210 | 8 - - | 9 - -",
    ),
    (
        "SELECT o.q, x.* FROM o JOIN LATERAL (SELECT p.price FROM p WHERE p.id = o.id ORDER BY p.ts LIMIT 1) x ON x.price > 105",
        "7 200",
    ),
    (
        "SELECT o.q, x.* FROM o, LATERAL (SELECT p.ts FROM p WHERE p.id = o.id ORDER BY p.ts OFFSET 1) x",
        "5 12 | 5 18 | 6 12 | 6 18 | 7 16",
    ),
    (
        "SELECT o.q, x.* FROM o, LATERAL (SELECT p.ts, p.price FROM p WHERE p.id = o.id AND p.ts <= o.ts ORDER BY p.ts DESC LIMIT 1) x",
        "5 5 100 | 6 18 - | 7 15 200",
    ),
    (
        "SELECT o.q, x.* FROM o LEFT JOIN LATERAL (SELECT p.ts, p.price FROM p WHERE p.id = o.id AND p.ts <= o.ts ORDER BY p.ts DESC LIMIT 1) x ON true",
        "5 5 100 | 6 18 - | 7 15 200 | 8 - - | 9 - -",
    ),
    (
        "SELECT o.q, x.* FROM o LEFT JOIN LATERAL (SELECT p.ts, p.price FROM p WHERE p.ts <= o.ts ORDER BY p.ts DESC LIMIT 2) x ON x.price > 105",
        "5 - - | 6 16 210 | 7 12 110 | 7 15 200 | 8 - - | 9 - -",
    ),
    (
        "SELECT o.q, x.* FROM o LEFT JOIN LATERAL (SELECT p.ts, p.price FROM p WHERE p.ts <= o.ts ORDER BY p.ts DESC LIMIT 2 OFFSET 2) x ON true",
        "5 - - | 6 12 110 | 6 15 200 | 7 1 1 | 7 5 100 | 8 - - | 9 - -",
    ),
    (
        "SELECT o.q, x.ts, y.price FROM o, LATERAL (SELECT p.ts FROM p WHERE p.id = o.id ORDER BY p.ts LIMIT 1) x, LATERAL (SELECT price FROM p WHERE p.ts >= x.ts AND p.id = o.id ORDER BY price DESC NULLS LAST LIMIT 1) y",
        "5 5 110 | 6 5 110 | 7 15 210",
    ),
    // Windows, groups and equal rows are those of a row outside.
    (
        "SELECT o.q, x.* FROM o, LATERAL (SELECT p.ts, row_number() OVER (ORDER BY p.ts) AS r FROM p WHERE p.id = o.id) x",
        "5 12 2 | 5 18 3 | 5 5 1 | 6 12 2 | 6 18 3 | 6 5 1 | 7 15 1 | 7 16 2",
    ),
    (
        "SELECT o.q, x.* FROM o, LATERAL (SELECT p.ts, sum(price) OVER (ORDER BY p.ts) AS s FROM p WHERE p.id = o.id) x",
        "5 12 210 | 5 18 210 | 5 5 100 | 6 12 210 | 6 18 210 | 6 5 100 | 7 15 200 | 7 16 410",
    ),
    (
        "SELECT o.q, x.n, x.m FROM o CROSS JOIN LATERAL (SELECT count(*) AS n, max(price) AS m FROM p WHERE p.ts < o.ts) x",
        "5 2 100 | 6 6 210 | 7 3 110 | 8 1 1 | 9 2 100",
    ),
    (
        "SELECT o.q, x.n FROM o LEFT JOIN LATERAL (SELECT count(*) AS n FROM p WHERE p.ts < o.ts) x ON x.n > 2",
        "5 - | 6 6 | 7 3 | 8 - | 9 -",
    ),
    (
        "SELECT o.q, x.* FROM o, LATERAL (SELECT p.price, count(*) AS n FROM p WHERE p.ts <= o.ts GROUP BY p.price) x",
        "5 1 1 | 5 100 1 | 6 - 1 | 6 1 1 | 6 100 1 | 6 110 1 | 6 200 1 | 6 210 1 | 7 1 1 | 7 100 1 | 7 110 1 | 7 200 1 | 8 1 1 | 8 100 1 | 9 1 1 | 9 100 1",
    ),
    (
        "SELECT o.q, x.* FROM o, LATERAL (SELECT DISTINCT p.id FROM p WHERE p.ts <= o.ts) x",
        "5 - | 5 1 | 6 - | 6 1 | 6 2 | 7 - | 7 1 | 7 2 | 8 - | 8 1 | 9 - | 9 1",
    ),
    (
        "SELECT o.q, x.w FROM o, LATERAL (SELECT o.q + p.price AS w FROM p WHERE p.id = o.id) x",
        "5 - | 5 105 | 5 115 | 6 - | 6 106 | 6 116 | 7 207 | 7 217",
    ),
    (
        "SELECT o.q, x.w FROM o, LATERAL (SELECT o.q + 1 AS w) x",
        "5 6 | 6 7 | 7 8 | 8 9 | 9 10",
    ),
    // Elements of lists.
    (
        "SELECT k, x.v FROM (SELECT 1 AS k, [1, 2, 3] AS xs UNION ALL SELECT 2, [7]) l, LATERAL (SELECT unnest(l.xs) AS v) x",
        "1 1 | 1 2 | 1 3 | 2 7",
    ),
    (
        "SELECT k, x.v FROM (SELECT 1 AS k, [1, 2, 3] AS xs UNION ALL SELECT 2, [7]) l, LATERAL (SELECT v FROM unnest(l.xs) AS u(v) WHERE v > 1) x",
        "1 2 | 1 3 | 2 7",
    ),
    (
        "SELECT k, x.v FROM (SELECT 1 AS k, [1, 2, 3] AS xs UNION ALL SELECT 2, [7] UNION ALL SELECT 3, []) l LEFT JOIN LATERAL (SELECT v FROM unnest(l.xs) AS u(v) WHERE v > 5) x ON true",
        "1 - | 2 7 | 3 -",
    ),
    (
        "SELECT k, x.n, x.s FROM (SELECT 1 AS k, [1, 2, 3] AS xs UNION ALL SELECT 2, [7] UNION ALL SELECT 3, []) l, LATERAL (SELECT count(*) AS n, sum(v) AS s FROM unnest(l.xs) AS u(v) WHERE v > 1) x",
        "1 2 5 | 2 1 7 | 3 0 -",
    ),
    (
        "SELECT k, x.v FROM (SELECT 1 AS k, [1, 2, 3] AS xs UNION ALL SELECT 2, [7]) l, LATERAL (SELECT v FROM unnest(l.xs) AS u(v) ORDER BY v DESC LIMIT 2) x",
        "1 2 | 1 3 | 2 7",
    ),
    (
        "SELECT o.q, x.* FROM o, LATERAL (SELECT DISTINCT ON (id) id, price FROM p WHERE p.ts < o.ts ORDER BY id, ts DESC) x",
        "5 - 1 | 5 1 100 | 6 - 1 | 6 1 - | 6 2 210 | 7 - 1 | 7 1 110 | 8 - 1 | 9 - 1 | 9 1 100",
    ),
    (
        "SELECT q, x.* FROM o, LATERAL (SELECT price FROM p WHERE p.id = o.id UNION ALL SELECT 1) x",
        "5 - | 5 1 | 5 100 | 5 110 | 6 - | 6 1 | 6 100 | 6 110 | 7 1 | 7 200 | 7 210 | 8 1 | 9 1",
    ),
    (
        "SELECT q, x.ts, x.n FROM o, LATERAL (SELECT p.ts, count(*) AS n FROM p WHERE p.id = o.id GROUP BY GROUPING SETS ((p.ts), ())) x",
        "5 - 3 | 5 12 1 | 5 18 1 | 5 5 1 | 6 - 3 | 6 12 1 | 6 18 1 | 6 5 1 | 7 - 2 | 7 15 1 | 7 16 1 | 8 - 0 | 9 - 0",
    ),
];

fn check(answers: &[(&str, &str)]) {
    let pair = tables();
    for (sql, expected) in answers {
        for session in [&pair.cpu, &pair.device] {
            let found = text(session, sql).unwrap_or_else(|error| panic!("{error}\n  {sql}"));
            assert_eq!(found, *expected, "device: {}\n  {sql}", session.device().is_some());
        }
    }
}

#[test]
fn a_correlated_subquery_yields_the_value_of_its_row() {
    check(VALUES);
}

#[test]
fn lateral_subqueries_are_computed_for_each_row() {
    check(LATERAL);
}

#[test]
fn several_rows_are_an_error_where_a_row_asks_for_them() {
    let pair = tables();
    for sql in [
        "SELECT (SELECT price FROM p WHERE p.id = o.id) FROM o",
        "SELECT q FROM o WHERE (SELECT price FROM p WHERE p.id = o.id) > 1",
        "SELECT (SELECT price FROM p WHERE p.id = o.id AND p.ts <= o.ts) FROM o",
        "SELECT (SELECT price FROM p WHERE p.id = o.id LIMIT 2) FROM o WHERE q = 7",
        "SELECT (SELECT price FROM p WHERE p.id = o.id LIMIT 2 OFFSET 1) FROM o WHERE q = 5",
        "SELECT q FROM o ORDER BY (SELECT price FROM p WHERE p.id = o.id)",
    ] {
        let error = pair.check_error(sql);
        assert!(error.to_string().contains("more than one row in"), "{error}\n  {sql}");
    }
    // As in PostgreSQL, a branch that is not taken asks for nothing.
    for session in [&pair.cpu, &pair.device] {
        let sql =
            "SELECT q, CASE WHEN id = 3 THEN (SELECT price FROM p WHERE p.id = o.id) END FROM o";
        assert_eq!(text(session, sql).unwrap(), "5 - | 6 - | 7 - | 8 - | 9 -");
        let sql = "SELECT q FROM o WHERE id = 3 AND coalesce((SELECT price FROM p WHERE p.id = o.id), 0) = 0";
        assert_eq!(text(session, sql).unwrap(), "8");
    }
}

#[test]
fn what_cannot_be_computed_for_all_rows_at_once_is_refused_by_name() {
    let pair = tables();
    let sql = "SELECT q, (WITH RECURSIVE r AS (SELECT o.id AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) \
               SELECT count(*) FROM r) FROM o";
    for session in [&pair.cpu, &pair.device] {
        let error = run(session, sql).expect_err(sql);
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");
        let error = error.to_string();
        assert!(error.contains("WITH RECURSIVE in a correlated scalar subquery"), "{error}");
    }
}

/// More rows than a tile has, of which most keys have several: the same by joins and groups.
#[test]
fn many_rows_are_looked_up_as_joins_find_them() -> Result<()> {
    let numbers = |rows: i32, of: &dyn Fn(i32) -> Option<i32>| Some((0..rows).map(of).collect());
    let o = batch(&[
        ("n", numbers(3_000, &Some), vec![]),
        ("k", numbers(3_000, &|n| (n % 11 != 0).then_some(n * 7 % 300)), vec![]),
        ("ts", numbers(3_000, &|n| Some(n * 13 % 500)), vec![]),
    ]);
    let p = batch(&[
        ("k", numbers(2_000, &|n| (n % 17 != 0).then_some(n * 3 % 250)), vec![]),
        ("ts", numbers(2_000, &|n| Some(n / 4)), vec![]),
        ("x", numbers(2_000, &|n| (n % 5 != 0).then_some(n)), vec![]),
    ]);
    let pair = Pair::new().and("o", vec![o]).and("p", vec![p]);
    for (looked_up, joined) in [
        (
            "SELECT n, (SELECT x FROM p WHERE p.k = o.k ORDER BY ts DESC, x LIMIT 1) FROM o",
            "SELECT n, f FROM o LEFT JOIN (SELECT k, first_value(x ORDER BY ts DESC, x) AS f FROM p \
             GROUP BY k) g ON g.k = o.k",
        ),
        (
            "SELECT n, (SELECT x FROM p WHERE p.k = o.k AND p.ts <= o.ts ORDER BY ts DESC, x LIMIT 1) \
             FROM o",
            "SELECT n, f FROM o LEFT JOIN (SELECT n AS m, first_value(x ORDER BY p.ts DESC, x) AS f \
             FROM o JOIN p ON p.k = o.k AND p.ts <= o.ts GROUP BY n) g ON m = n",
        ),
        (
            "SELECT n, (SELECT count(x) FROM p WHERE p.k = o.k AND p.ts > o.ts) FROM o",
            "SELECT n, coalesce(f, 0) FROM o LEFT JOIN (SELECT n AS m, count(x) AS f FROM o JOIN p \
             ON p.k = o.k AND p.ts > o.ts GROUP BY n) g ON m = n",
        ),
        (
            "SELECT n, x FROM o, LATERAL (SELECT x FROM p WHERE p.k = o.k ORDER BY ts, x LIMIT 3) y",
            "SELECT n, x FROM (SELECT n, x, row_number() OVER (PARTITION BY n ORDER BY p.ts, x) AS r \
             FROM o JOIN p ON p.k = o.k) y WHERE r <= 3",
        ),
        (
            "SELECT n, x FROM o, LATERAL (SELECT x FROM p WHERE p.k = o.k AND p.ts < o.ts \
             ORDER BY ts, x LIMIT 2 OFFSET 1) y",
            "SELECT n, x FROM (SELECT n, x, row_number() OVER (PARTITION BY n ORDER BY p.ts, x) AS r \
             FROM o JOIN p ON p.k = o.k AND p.ts < o.ts) y WHERE r IN (2, 3)",
        ),
    ] {
        let expected = text(&pair.cpu, joined)?;
        assert!(expected.len() > 1_000, "{joined}");
        for session in [&pair.cpu, &pair.device] {
            assert_eq!(text(session, looked_up)?, expected, "{looked_up}");
        }
    }
    Ok(())
}

#[test]
fn an_update_looks_values_up() -> Result<()> {
    let pair = tables();
    for session in [&pair.cpu, &pair.device] {
        session.execute("CREATE TABLE e AS SELECT * FROM emp")?;
        session.execute(
            "UPDATE e SET name = (SELECT m.name FROM emp m WHERE m.id = e.mgr) WHERE id > 2",
        )?;
        let changed = "1 ann | 2 bob | 3 ann | 4 cy | 5 -";
        assert_eq!(text(session, "SELECT id, name FROM e")?, changed);
        let several = "UPDATE e SET mgr = (SELECT price FROM p WHERE p.id = e.id)";
        let error = session.execute(several).unwrap_err();
        assert!(error.to_string().contains("more than one row"), "{error}");
        assert_eq!(text(session, "SELECT id, name FROM e")?, changed);
    }
    Ok(())
}
