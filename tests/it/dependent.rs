//! Subqueries that name columns of the rows around them, in every form: what DuckDB yields of the
//! same rows, asked of the CPU engine and of the device.

use warpframe::Result;

use crate::differential::{Pair, run};
use crate::lifted::{batch, text};

/// Tables whose columns share names.
fn tables() -> Pair {
    let some = |numbers: &[i32]| Some(numbers.iter().copied().map(Some).collect::<Vec<_>>());
    let o = batch(&[
        ("c", None, vec![Some("x"), Some("w"), Some("y")]),
        ("k", some(&[1, 2, 3]), vec![]),
    ]);
    let p = batch(&[("c", None, vec![Some("x"), Some("y")]), ("a", some(&[1, 2]), vec![])]);
    let q = batch(&[
        ("c", None, vec![Some("x"), Some("x"), Some("y")]),
        ("a", some(&[10, 20, 30]), vec![]),
    ]);
    let m = batch(&[("id", some(&[1, 2]), vec![]), ("x", some(&[2, 0]), vec![])]);
    let e = batch(&[("mgr", some(&[1]), vec![]), ("v", some(&[5]), vec![])]);
    Pair::new()
        .and("o", vec![o])
        .and("p", vec![p])
        .and("q", vec![q])
        .and("m", vec![m])
        .and("e", vec![e])
}

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
#[rustfmt::skip]
fn columns_of_one_name_are_told_apart() {
    check(&[
        (
            "SELECT o.k, l.c FROM o, LATERAL (SELECT p.c FROM p JOIN q ON p.a * 10 = q.a WHERE q.c = o.c) l",
            "1 x | 1 y",
        ),
        (
            "SELECT o.k, l.c, l.n FROM o LEFT JOIN LATERAL (SELECT p.c, count(*) AS n FROM p JOIN q ON p.a * 10 = q.a WHERE q.c = o.c GROUP BY p.c) l ON true",
            "1 x 1 | 1 y 1 | 2 - - | 3 - -",
        ),
        (
            "SELECT o.k, l1.v, l2.a FROM o, LATERAL (SELECT max(q.c) v FROM q WHERE q.c = o.c) l1 CROSS JOIN LATERAL (SELECT p.a FROM p WHERE p.c = l1.v) l2",
            "1 x 1 | 3 y 2",
        ),
        ("SELECT l.k, l.a FROM o, LATERAL (SELECT k, a FROM q WHERE q.c = o.c UNION ALL SELECT o.k, 0) l WHERE l.k = 1", "1 0 | 1 10 | 1 20"),
        ("SELECT m.k FROM o, LATERAL (SELECT o.k) l, LATERAL (SELECT l.k) m", "1 | 2 | 3"),
        (
            "SELECT o.k, l.w FROM o LEFT JOIN LATERAL (SELECT o.k AS w FROM p WHERE p.c = o.c) l ON l.w > 1",
            "1 - | 2 - | 3 3",
        ),
        (
            "SELECT __outer_1, (SELECT count(*) FROM q WHERE q.a > __outer_1) FROM (SELECT k * 10 AS __outer_1 FROM o) t",
            "10 2 | 20 1 | 30 0",
        ),
    ]);
}

#[test]
#[rustfmt::skip]
fn an_aggregate_of_no_rows_has_its_value_before_conditions() {
    check(&[
        ("SELECT o.k, (SELECT max(q.a) FROM q WHERE q.c = o.c HAVING count(*) = 0) v FROM o", "1 - | 2 - | 3 -"),
        ("SELECT o.k FROM o WHERE (SELECT 5 FROM q WHERE q.c = o.c HAVING count(*) = 0) = 5", "2"),
        ("SELECT o.k, (SELECT max(q.a) FROM q WHERE o.k < 3 HAVING count(*) <= count(*) FILTER (WHERE TRUE)) v FROM o", "1 30 | 2 30 | 3 -"),
        ("SELECT o.k FROM o WHERE (SELECT count(*) FROM q WHERE q.c = o.c HAVING count(*) <> 1) = 0", "2"),
        ("SELECT o.k, (SELECT count(*) IS NULL FROM q WHERE q.c = o.c), (SELECT count(*) + 1 FROM q WHERE q.c = o.c) FROM o", "1 0 3 | 2 0 1 | 3 0 2"),
        ("SELECT o.k FROM o WHERE 0 NOT IN (SELECT count(*) FROM q WHERE q.c = o.c)", "1 | 3"),
        // Of the query around a subquery without FROM, as the standard has it.
        ("SELECT (SELECT sum(o.k)) AS s FROM o", "6"),
        ("SELECT c, (SELECT sum(o.k) + 1) AS s FROM o GROUP BY c", "w 3 | x 2 | y 4"),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_row_fails_only_where_somebody_asks_for_it() {
    check(&[
        ("SELECT (SELECT 10 / m.x FROM m WHERE m.id = e.mgr) FROM e", "5"),
        ("SELECT (SELECT max(10 / m.x) FROM m WHERE m.id = e.mgr) FROM e", "5"),
        ("SELECT l.v FROM e, LATERAL (SELECT 10 / m.x AS v FROM m WHERE m.id = e.mgr) l", "5"),
        ("SELECT l.v FROM e, LATERAL (SELECT 10 / m.x AS v FROM m WHERE m.id = e.mgr ORDER BY 10 / m.x LIMIT 1) l", "5"),
        ("SELECT l.v FROM e LEFT JOIN LATERAL (SELECT 10 / m.x AS v FROM m WHERE m.id = e.mgr) l ON l.v > 1", "5"),
        ("SELECT l.v, l.n FROM e, LATERAL (SELECT 10 / m.x AS v, count(*) AS n FROM m WHERE m.id = e.mgr GROUP BY 10 / m.x) l", "5 1"),
        ("SELECT l.v FROM e, LATERAL (SELECT sum(10 / m.x) OVER () AS v FROM m WHERE m.id = e.mgr) l", "5"),
        ("SELECT mgr FROM e WHERE EXISTS (SELECT 1 FROM m WHERE 10 / m.x > 1 AND m.id = e.mgr)", "1"),
        ("SELECT mgr FROM e WHERE v IN (SELECT 10 / m.x FROM m WHERE m.id = e.mgr)", "1"),
        ("SELECT mgr FROM e WHERE v NOT IN (SELECT 12 / m.x FROM m WHERE m.id = e.mgr)", "1"),
        ("SELECT mgr, v IN (SELECT 10 / m.x FROM m WHERE m.id = e.mgr) FROM e", "1 1"),
    ]);
    let pair = tables();
    for sql in [
        "SELECT (SELECT 10 / m.x FROM m WHERE m.id = e.mgr + 1) FROM e",
        "SELECT (SELECT max(10 / m.x) FROM m WHERE m.id >= e.mgr) FROM e",
    ] {
        for session in [&pair.cpu, &pair.device] {
            let error = run(session, sql).expect_err(sql).to_string();
            assert!(error.contains("Divide by zero"), "{error}\n  {sql}");
        }
    }
}

#[test]
#[rustfmt::skip]
fn rows_around_a_subquery_come_in_at_several_places() {
    check(&[
        ("SELECT o.k, l.v FROM o, LATERAL (SELECT o.k AS v UNION ALL SELECT q.a FROM q WHERE q.c = o.c) l", "1 1 | 1 10 | 1 20 | 2 2 | 3 3 | 3 30"),
        ("SELECT o.k, l.v FROM o, LATERAL (VALUES (o.k), (o.k * 2)) l(v)", "1 1 | 1 2 | 2 2 | 2 4 | 3 3 | 3 6"),
        ("SELECT k, s FROM o, LATERAL (SELECT sum(x) AS s FROM (SELECT q.a + o.k AS x FROM q WHERE q.c = o.c UNION ALL SELECT o.k) z) l", "1 33 | 2 2 | 3 36"),
        ("SELECT o.k, (SELECT count(*) FROM (SELECT p.c FROM p WHERE p.a < o.k EXCEPT SELECT q.c FROM q WHERE q.a > o.k * 10) z) AS n FROM o", "1 0 | 2 1 | 3 2"),
        ("SELECT o.k, (SELECT count(*) FROM p FULL JOIN (SELECT * FROM q WHERE q.c = o.c) z ON z.c = p.c) AS n FROM o", "1 3 | 2 2 | 3 2"),
        ("SELECT EXISTS (SELECT 1 WHERE k > 1) AS r, k FROM o", "0 1 | 1 2 | 1 3"),
    ]);
}

#[test]
#[rustfmt::skip]
fn a_subquery_without_tables_is_one_row_for_each_row_around_it() {
    check(&[
        ("SELECT k FROM o WHERE EXISTS (SELECT 1)", "1 | 2 | 3"),
        ("SELECT EXISTS (SELECT 1) AS r, k FROM o", "1 1 | 1 2 | 1 3"),
        ("SELECT k, k IN (SELECT 1) FROM o", "1 1 | 2 0 | 3 0"),
        ("SELECT k FROM o WHERE k IN (SELECT 1) OR k = 2", "1 | 2"),
        ("SELECT k FROM o WHERE k = ANY (SELECT 1)", "1"),
        ("SELECT k FROM o WHERE 1 NOT IN (SELECT 2)", "1 | 2 | 3"),
        ("SELECT k, EXISTS (SELECT 1 WHERE false) FROM o", "1 0 | 2 0 | 3 0"),
        ("SELECT k, EXISTS (SELECT 1 LIMIT 0), EXISTS (SELECT 1 OFFSET 1) FROM o", "1 0 0 | 2 0 0 | 3 0 0"),
        ("SELECT k, k IN (SELECT DISTINCT 1), k IN (SELECT 1 ORDER BY 1) FROM o", "1 1 1 | 2 0 0 | 3 0 0"),
        ("SELECT count(*) FROM o WHERE EXISTS (SELECT 1 FROM (SELECT 1) u)", "3"),
        ("WITH one AS (SELECT 1 AS x) SELECT k, k IN (SELECT x FROM one) FROM o", "1 1 | 2 0 | 3 0"),
        ("SELECT k, (SELECT k + x FROM (SELECT 1 AS x) u) FROM o", "1 2 | 2 3 | 3 4"),
        ("SELECT k, (SELECT x FROM (SELECT 1 AS x) u WHERE k > 1) FROM o", "1 - | 2 1 | 3 1"),
        ("SELECT k, EXISTS (SELECT k EXCEPT SELECT 1) FROM o", "1 0 | 2 1 | 3 1"),
        ("SELECT k, (SELECT count(*) FROM (SELECT k INTERSECT SELECT 1) u) FROM o", "1 1 | 2 0 | 3 0"),
        ("SELECT o.k, l.a FROM o, LATERAL (SELECT a FROM q WHERE q.c = o.c EXCEPT SELECT 20) l", "1 10 | 3 30"),
        // All names are of the rows around it, and so are aggregates of them.
        ("SELECT 3 IN (SELECT max(k)) FROM o", "1"),
        ("SELECT EXISTS (SELECT max(k)), NOT EXISTS (SELECT max(k)) FROM o", "1 0"),
    ]);
}

#[test]
#[rustfmt::skip]
fn an_arm_of_a_union_comes_once_for_each_row_around_it() {
    check(&[
        ("SELECT k, (SELECT sum(x) FROM (SELECT k UNION ALL SELECT 20 UNION ALL SELECT 100) u(x)) FROM o", "1 121 | 2 122 | 3 123"),
        ("SELECT k, (SELECT count(*) FROM (SELECT k UNION SELECT 1 UNION ALL SELECT 5) u) FROM o", "1 2 | 2 3 | 3 3"),
        ("SELECT k, x FROM o, LATERAL (SELECT * FROM (VALUES (k), (k + 1)) w UNION ALL SELECT 50) u(x) WHERE k > 2", "3 3 | 3 4 | 3 50"),
        (
            "SELECT k, (SELECT sum(x) FROM (SELECT k AS x UNION ALL (SELECT 10 UNION ALL SELECT k UNION ALL (SELECT 100 UNION ALL SELECT k)))) FROM o",
            "1 113 | 2 116 | 3 119",
        ),
        (
            "SELECT k, (SELECT count(*) FROM (SELECT k AS a) x FULL JOIN (SELECT 1 AS b UNION ALL SELECT 2) y ON a = b) FROM o",
            "1 2 | 2 2 | 3 3",
        ),
        (
            "SELECT k, x, y FROM o, LATERAL (SELECT k + 1 AS x) u, LATERAL (SELECT x + 1 AS y UNION ALL SELECT 70 UNION ALL SELECT k * 20) v WHERE k < 2",
            "1 2 20 | 1 2 3 | 1 2 70",
        ),
    ]);
    let error = run(&tables().device, "SELECT k FROM o UNION ALL SELECT 5 ORDER BY o.c").expect_err("no column");
    assert!(error.to_string().contains("ORDER BY of a UNION"), "{error}");
}

#[test]
#[rustfmt::skip]
fn subqueries_stand_wherever_an_expression_does() {
    check(&[
        ("SELECT o.k, p.a FROM o LEFT JOIN p ON o.c = p.c AND EXISTS (SELECT 1 FROM q WHERE q.c = o.c AND q.a > p.a * 15)", "1 1 | 2 - | 3 -"),
        ("SELECT o.k, p.a FROM o RIGHT JOIN p ON o.c = p.c AND o.k IN (SELECT q.a / 10 FROM q WHERE q.c = p.c)", "1 1 | 3 2"),
        ("SELECT o.k, p.a FROM o FULL JOIN p ON o.c = p.c AND EXISTS (SELECT 1 FROM q WHERE q.c = o.c AND q.a > 20)", "- 1 | 1 - | 2 - | 3 2"),
        ("SELECT * FROM (VALUES ((SELECT max(k) FROM o)), (0)) v(a)", "0 | 3"),
        ("SELECT * FROM (VALUES ((SELECT max(k) FROM o), EXISTS (SELECT 1 FROM o))) v(a, b)", "3 1"),
        ("SELECT sum((SELECT count(*) FROM q WHERE q.c = o.c)) AS r FROM o", "3"),
        ("SELECT o.k FROM o WHERE k > ALL (SELECT a FROM p WHERE p.c = o.c) ORDER BY EXISTS (SELECT 1 FROM p WHERE p.c = o.c), k", "2 | 3"),
        ("SELECT o.k, (SELECT (SELECT max(q.a) FROM q WHERE q.c = p.c AND q.a > o.k * 10) FROM p WHERE p.c = o.c) AS r FROM o", "1 20 | 2 - | 3 -"),
    ]);
}

/// When this fails, DataFusion has mended what `session/rules/subqueries.rs` does without it.
#[test]
fn datafusion_still_pulls_conditions_up_wrongly() -> Result<()> {
    use datafusion::prelude::SessionContext;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let rows = |sql: &str| {
        let sql = format!(
            "WITH o(c, k) AS (VALUES ('x', 1), ('w', 2), ('y', 3)), p(c, a) AS (VALUES ('x', 1), ('y', 2)), \
             q(c, a) AS (VALUES ('x', 10), ('x', 20), ('y', 30)) {sql}"
        );
        let frame =
            runtime.block_on(async { SessionContext::new().sql(&sql).await?.count().await });
        frame.expect("a query")
    };
    // By p.c, not q.c.
    let lateral = "SELECT o.k FROM o, LATERAL (SELECT p.c FROM p JOIN q ON p.a * 10 = q.a WHERE q.c = o.c) l \
                   WHERE o.k = 3";
    assert_eq!(rows(lateral), 1, "there is no such row");
    let having =
        "SELECT o.k FROM o WHERE (SELECT 5 FROM q WHERE q.c = o.c HAVING count(*) = 0) = 5";
    assert_eq!(rows(having), 2, "one row has none of q");
    Ok(())
}
