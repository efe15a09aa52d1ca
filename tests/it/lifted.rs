//! Subqueries in every clause: what DuckDB yields of the same rows, asked of the CPU engine and of
//! the device.

use std::sync::Arc;

use warpframe::arrow::array::{Int32Array, RecordBatch, StringArray};
use warpframe::arrow::datatypes::{DataType, Field, Schema};
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::differential::{Cell, Pair, Rows, run};

/// A column by its name, of numbers or of texts.
pub(crate) type Named<'a> = (&'a str, Option<Vec<Option<i32>>>, Vec<Option<&'a str>>);

pub(crate) fn batch(columns: &[Named<'_>]) -> RecordBatch {
    let field = |(name, numbers, _): &(&str, Option<_>, _)| {
        Field::new(*name, if numbers.is_some() { DataType::Int32 } else { DataType::Utf8 }, true)
    };
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let columns = columns.iter().map(|(_, numbers, texts)| match numbers {
        Some(numbers) => Arc::new(Int32Array::from(numbers.clone())) as _,
        None => Arc::new(StringArray::from(texts.clone())) as _,
    });
    RecordBatch::try_new(Arc::new(schema), columns.collect()).expect("columns of one length")
}

fn tables() -> Pair {
    let t = batch(&[
        ("a", Some(vec![Some(1), Some(2), None, Some(0)]), vec![]),
        ("b", Some(vec![Some(10), None, Some(40), Some(20)]), vec![]),
        ("s", None, vec![Some("x"), Some("y"), None, Some("x")]),
    ]);
    let v = batch(&[
        ("a", Some(vec![Some(2), Some(9)]), vec![]),
        ("e", None, vec![Some("q"), Some("r")]),
    ]);
    Pair::of(vec![t]).and("v", vec![v])
}

/// Rows in order of their text: null is `-`, and truths are 1 and 0.
pub(crate) fn text(session: &Session, sql: &str) -> Result<String> {
    let cell = |cell: &Cell| match cell {
        Cell::Null => "-".to_string(),
        Cell::Int(number) => number.to_string(),
        Cell::Float(number) => format!("{:?}", (number * 1e9).round() / 1e9),
        Cell::Text(text) => text.clone(),
    };
    let rows = Rows::of(&run(session, sql)?).rows;
    let mut rows: Vec<_> =
        rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join(" ")).collect();
    rows.sort();
    Ok(rows.join(" | "))
}

#[rustfmt::skip]
const ANSWERS: &[(&str, &str)] = &[
    // Names of queries two and more further out.
    (
        "SELECT a, (SELECT max(v.a) FROM v WHERE v.a = (SELECT min(b) - 1 FROM t u WHERE u.a = t.a)) FROM t",
        "- - | 0 - | 1 9 | 2 -",
    ),
    (
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM v WHERE EXISTS (SELECT 1 FROM t u WHERE u.b = v.a + t.a))",
        "1",
    ),
    (
        "SELECT t.a, v.a FROM t LEFT JOIN v ON EXISTS (SELECT 1 FROM v w WHERE w.a = t.a + v.a)",
        "- - | 0 2 | 0 9 | 1 - | 2 -",
    ),
    (
        "SELECT sum(b * (SELECT max(a) FROM v)) FROM t",
        "630",
    ),
    (
        "SELECT sum(b) FILTER (WHERE a < (SELECT min(a) FROM v)) FROM t",
        "30",
    ),
    (
        "SELECT b > (SELECT min(a) FROM v) AS g, count(*) FROM t GROUP BY b > (SELECT min(a) FROM v)",
        "- 1 | 1 3",
    ),
    (
        "SELECT b > (SELECT min(a) FROM v) AS g, count(*) FROM t GROUP BY g ORDER BY 1 NULLS LAST",
        "- 1 | 1 3",
    ),
    (
        "SELECT DISTINCT ON (a > (SELECT min(a) - 1 FROM v)) a, b FROM t ORDER BY a > (SELECT min(a) - 1 FROM v), a",
        "- 40 | 0 20 | 2 -",
    ),
    (
        "SELECT a, sum(a) OVER (PARTITION BY b > (SELECT min(a) + 10 FROM v)) FROM t",
        "- 0 | 0 0 | 1 1 | 2 2",
    ),
    (
        "SELECT a, sum(b + (SELECT max(a) FROM v)) OVER (ORDER BY a) FROM t",
        "- 97 | 0 29 | 1 48 | 2 48",
    ),
    (
        "SELECT b, b IN (SELECT a FROM v) FROM t",
        "- - | 10 0 | 20 0 | 40 0",
    ),
    (
        "SELECT a, a IN (SELECT a FROM v), a NOT IN (SELECT a FROM v) FROM t",
        "- - - | 0 0 1 | 1 0 1 | 2 1 0",
    ),
    (
        "SELECT a, a IN (SELECT a FROM t), a NOT IN (SELECT a FROM t) FROM t",
        "- - - | 0 1 0 | 1 1 0 | 2 1 0",
    ),
    ("SELECT a FROM t WHERE (a IN (SELECT a FROM t)) IS NULL", "-"),
    ("SELECT a FROM t WHERE NOT (a IN (SELECT a FROM t WHERE a > 0) AND a < 9)", "0"),
    (
        "SELECT a, EXISTS (SELECT 1 FROM v WHERE v.a = t.a) FROM t",
        "- 0 | 0 0 | 1 0 | 2 1",
    ),
    (
        "SELECT a, NOT EXISTS (SELECT 1 FROM v WHERE v.a > t.a + 3) FROM t",
        "- 1 | 0 0 | 1 0 | 2 0",
    ),
    (
        "SELECT a, EXISTS (SELECT 1 FROM v WHERE a > 100), EXISTS (SELECT 1 FROM v) FROM t",
        "- 0 1 | 0 0 1 | 1 0 1 | 2 0 1",
    ),
    (
        "SELECT a, EXISTS (SELECT count(*) FROM v WHERE v.a = t.a) FROM t",
        "- 1 | 0 1 | 1 1 | 2 1",
    ),
    (
        "SELECT a, 1 IN (SELECT count(*) FROM v WHERE v.a = t.a) FROM t",
        "- 0 | 0 0 | 1 0 | 2 1",
    ),
    (
        "SELECT b, (SELECT count(*) FROM v WHERE v.a = t.a) FROM t",
        "- 1 | 10 0 | 20 0 | 40 0",
    ),
    (
        "SELECT a, CASE WHEN b IN (SELECT a FROM v) THEN 1 WHEN EXISTS (SELECT 1 FROM v WHERE v.a = t.a) THEN 2 ELSE 0 END FROM t",
        "- 0 | 0 0 | 1 0 | 2 2",
    ),
    (
        "SELECT count(*) FILTER (WHERE a IN (SELECT a FROM v)) FROM t",
        "1",
    ),
    (
        "SELECT t.a, v.a FROM t JOIN v ON t.a IN (SELECT a FROM v)",
        "2 2 | 2 9",
    ),
    (
        "SELECT t.a, v.a FROM t LEFT JOIN v ON v.a IN (SELECT a FROM t) AND t.b > 5",
        "- 2 | 0 2 | 1 2 | 2 -",
    ),
    (
        "SELECT t.a, v.a FROM t RIGHT JOIN v ON t.a = v.a - (SELECT max(a) FROM t)",
        "- 9 | 0 2",
    ),
    (
        "SELECT t.a, v.a FROM t LEFT JOIN v ON v.a = (SELECT max(w.a) FROM v w WHERE w.a = t.a)",
        "- - | 0 - | 1 - | 2 2",
    ),
    (
        "SELECT sum(b) * 1.0 / (SELECT sum(b) FROM t) FROM t",
        "1.0",
    ),
    (
        "SELECT s, sum(b) / (SELECT sum(b) FROM t u WHERE u.s = t.s) FROM t GROUP BY s",
        "- - | x 1 | y -",
    ),
    (
        "SELECT s, sum(b), (SELECT sum(b) FROM t), (SELECT sum(b) FROM t) - sum(b) FROM t GROUP BY s",
        "- 40 70 30 | x 30 70 40 | y - 70 -",
    ),
    (
        "SELECT s, sum(b) FROM t GROUP BY s HAVING sum(b) = (SELECT max(x) FROM (SELECT sum(b) AS x FROM t GROUP BY s) d)",
        "- 40",
    ),
    (
        "SELECT count(*), (SELECT count(*) FROM v) FROM t",
        "4 2",
    ),
    (
        "SELECT count(*) + (SELECT count(*) FROM v) FROM t",
        "6",
    ),
    (
        "SELECT max(a), (SELECT max(a) FROM t WHERE a < (SELECT max(a) FROM t)) FROM t",
        "2 1",
    ),
    (
        "SELECT s, avg(b) - (SELECT avg(b) FROM t) FROM t GROUP BY s ORDER BY sum(b) / (SELECT sum(b) FROM t) NULLS LAST, s NULLS FIRST",
        "- 16.666666667 | x -8.333333333 | y -",
    ),
    (
        "SELECT a AS b, b AS a FROM t ORDER BY (SELECT max(a) FROM v) - t.a NULLS FIRST, 1",
        "- 40 | 0 20 | 1 10 | 2 -",
    ),
    (
        "SELECT a FROM t UNION ALL SELECT (SELECT max(a) FROM v) ORDER BY 1 NULLS LAST",
        "- | 0 | 1 | 2 | 9",
    ),
    (
        "SELECT DISTINCT (SELECT max(a) FROM v) + a * 0 FROM t",
        "- | 9",
    ),
    (
        "SELECT a FROM t WHERE (SELECT a FROM v WHERE a > 100) IS NULL ORDER BY a NULLS LAST",
        "- | 0 | 1 | 2",
    ),
    (
        "SELECT a, (SELECT a FROM v WHERE a > 100) FROM t",
        "- - | 0 - | 1 - | 2 -",
    ),
    (
        "SELECT * FROM (SELECT a, a IN (SELECT a FROM v) AS i FROM t) d WHERE i",
        "2 1",
    ),
    (
        "WITH c AS (SELECT s, sum(b) AS x FROM t GROUP BY s) SELECT s, x * 1.0 / (SELECT sum(x) FROM c) FROM c",
        "- 0.571428571 | x 0.428571429 | y -",
    ),
    (
        "SELECT count(DISTINCT b + (SELECT 1)) FROM t",
        "3",
    ),
    (
        "SELECT grouping(s), s, sum(b) - (SELECT sum(b) FROM t) FROM t GROUP BY ROLLUP (s)",
        "0 - -30 | 0 x -40 | 0 y - | 1 - 0",
    ),
    (
        "SELECT b + (SELECT 1), count(*) FROM t GROUP BY CUBE (b + (SELECT 1))",
        "- 1 | - 4 | 11 1 | 21 1 | 41 1",
    ),
    (
        "SELECT a, rank() OVER (ORDER BY a IN (SELECT a FROM v) NULLS LAST) FROM t",
        "- 4 | 0 1 | 1 1 | 2 3",
    ),
    (
        "SELECT a FROM t ORDER BY EXISTS (SELECT 1 FROM v WHERE v.a = t.a), a NULLS LAST",
        "- | 0 | 1 | 2",
    ),
    (
        "SELECT a, (SELECT (SELECT max(a) FROM v) + min(a) FROM t) FROM t",
        "- 9 | 0 9 | 1 9 | 2 9",
    ),
    (
        "SELECT a, b IN (SELECT b FROM t u WHERE u.a = t.a), b NOT IN (SELECT b FROM t u WHERE u.s = t.s) FROM t",
        "- 0 1 | 0 1 0 | 1 1 0 | 2 - -",
    ),
    (
        "SELECT coalesce(a IN (SELECT a FROM v WHERE a IS NULL), false) FROM t",
        "0 | 0 | 0 | 0",
    ),
    (
        "SELECT a, (a IN (SELECT a FROM t)) IS NULL FROM t",
        "- 1 | 0 0 | 1 0 | 2 0",
    ),
    (
        "SELECT a FROM t WHERE CASE WHEN a IN (SELECT a FROM v) THEN true ELSE b > (SELECT max(a) FROM v) END",
        "- | 0 | 1 | 2",
    ),
    (
        "SELECT t.a FROM t JOIN v ON t.a = v.a OR t.b = (SELECT max(b) FROM t)",
        "- | - | 2",
    ),
    (
        "SELECT sum(CASE WHEN a IN (SELECT a FROM v) THEN b ELSE a END) FROM t",
        "1",
    ),
    (
        "SELECT max(CASE WHEN EXISTS (SELECT 1 FROM v WHERE v.a = t.a) THEN 1 ELSE 0 END) FROM t GROUP BY s",
        "0 | 0 | 1",
    ),
    (
        "SELECT (SELECT sum(b) FROM t) AS total, sum(b) FROM t",
        "70 70",
    ),
    (
        "SELECT sum(b) FROM t HAVING sum(b) > (SELECT avg(b) FROM t)",
        "70",
    ),
    (
        "SELECT a + (SELECT max(a) FROM v) AS a FROM t ORDER BY a NULLS LAST",
        "- | 10 | 11 | 9",
    ),
    (
        "SELECT EXISTS (SELECT 1 FROM t), 1 IN (SELECT a FROM t), 5 NOT IN (SELECT a FROM t), (SELECT max(a) FROM t)",
        "1 1 - 2",
    ),
    (
        "SELECT t.a, v.a FROM t LEFT JOIN v ON EXISTS (SELECT 1 FROM v w WHERE w.a = t.a)",
        "- - | 0 - | 1 - | 2 2 | 2 9",
    ),
    (
        "SELECT t.a, v.a FROM t FULL JOIN v ON t.a = v.a AND v.a < (SELECT max(a) FROM v)",
        "- - | - 9 | 0 - | 1 - | 2 2",
    ),
    (
        "SELECT a, (SELECT max(v.a) FROM v WHERE v.a >= t.a) FROM t",
        "- - | 0 9 | 1 9 | 2 9",
    ),
    (
        "SELECT a FROM t ORDER BY (SELECT count(*) FROM v WHERE v.a > t.a), a LIMIT 2",
        "- | 2",
    ),
    (
        "SELECT s, x, EXISTS (SELECT 1 FROM (SELECT s, sum(b) AS x FROM t GROUP BY s) d WHERE d.x > c.x) FROM (SELECT s, sum(b) AS x FROM t GROUP BY s) c",
        "- 40 0 | x 30 1 | y - 0",
    ),
];

#[test]
fn subqueries_stand_in_every_clause() {
    let pair = tables();
    for (sql, expected) in ANSWERS {
        for session in [&pair.cpu, &pair.device] {
            let found = text(session, sql).unwrap_or_else(|error| panic!("{error}\n  {sql}"));
            assert_eq!(found, *expected, "device: {}\n  {sql}", session.device().is_some());
        }
    }
}

#[test]
fn what_no_join_answers_is_refused_by_name() {
    let pair = tables();
    let sql = "SELECT t.a FROM t FULL JOIN v ON EXISTS (SELECT 1 FROM v w WHERE w.a = t.a + v.a)";
    for session in [&pair.cpu, &pair.device] {
        let error = run(session, sql).expect_err(sql);
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");
        assert!(error.to_string().contains("EXISTS (SELECT …) in ON of a Full join"), "{error}");
    }
    let error = pair.check_error("SELECT sum(b) / (SELECT a FROM v) FROM t");
    assert!(error.to_string().contains("more than one row"), "{error}");
}

/// A plan that is kept keeps no value of a subquery.
#[test]
fn kept_plans_ask_subqueries_again() -> Result<()> {
    let pair = tables();
    let sql = "SELECT s, sum(b) * 1.0 / (SELECT sum(b) FROM t) AS share FROM t GROUP BY s ORDER BY (SELECT max(b) FROM t), s";
    for session in [&pair.cpu, &pair.device] {
        assert_eq!(text(session, sql)?, "- 0.571428571 | x 0.428571429 | y -");
        assert_eq!(text(session, sql)?, "- 0.571428571 | x 0.428571429 | y -");
        let other = batch(&[
            ("a", Some(vec![Some(1), Some(2)]), vec![]),
            ("b", Some(vec![Some(3), Some(1)]), vec![]),
            ("s", None, vec![Some("x"), Some("z")]),
        ]);
        session.register_batches("t", vec![other])?;
        assert_eq!(text(session, sql)?, "x 0.75 | z 0.25");
    }
    Ok(())
}

/// DataFusion's own planner: once it takes these, `session/rules/names.rs` can go.
#[test]
fn datafusion_still_refuses_subqueries_with_the_name_of_a_column() {
    let pair = tables();
    let state = pair.cpu.context().state();
    for sql in [
        "SELECT sum(b), (SELECT sum(b) FROM t) FROM t",
        "SELECT a, (SELECT a FROM v LIMIT 1) FROM t",
    ] {
        let planned = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime")
            .block_on(async { state.create_logical_plan(sql).await });
        assert!(planned.is_err(), "{sql}");
        assert!(pair.cpu.sql(sql).is_ok(), "{sql}");
    }
}
