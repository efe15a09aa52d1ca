//! Clauses of SQL that are refused by name, and those that are written out.

use warpframe::{DeviceChoice, ErrorKind, Session};

use crate::differential::{Cell, Pair, Rows, run};
use crate::tables::Shape;

/// A table `t(a, b, s)` on the CPU.
fn session() -> Session {
    let session = Session::builder().device(DeviceChoice::Cpu).build().expect("a CPU session");
    let table = "SELECT * FROM (VALUES (1, 10, 'abcd'), (2, 20, 'é'), (2, 30, NULL)) AS v(a, b, s)";
    let rows = session.sql(table).and_then(|frame| frame.collect()).expect("a query");
    session.register_table("t", &rows).expect("a table");
    session
}

#[test]
fn clauses_that_nobody_would_look_at_are_refused() {
    let session = session();
    let mut failed = vec![];
    for (sql, what) in [
        ("WITH q AS (SELECT * FROM t FOR UPDATE) SELECT * FROM q", "FOR UPDATE"),
        ("SELECT * FROM t FOR SHARE", "FOR SHARE"),
        ("SELECT * FROM t FOR JSON AUTO", "FOR JSON"),
        ("SELECT * FROM t SETTINGS a = 1", "SETTINGS"),
        ("SELECT * FROM t FORMAT JSON", "FORMAT"),
        ("SELECT * FROM t ORDER BY a FETCH FIRST 1 ROWS WITH TIES", "WITH TIES"),
        ("SELECT * FROM t FETCH FIRST 10 PERCENT ROWS ONLY", "PERCENT"),
        ("SELECT * FROM t LIMIT 2 FETCH FIRST 1 ROWS ONLY", "FETCH beside LIMIT"),
        ("SELECT a, sum(b) FROM t GROUP BY a WITH ROLLUP", "WITH ROLLUP"),
        ("SELECT a INTO u FROM t", "INTO"),
        ("SELECT a FROM t PREWHERE a = 1", "PREWHERE"),
        ("SELECT a FROM t START WITH a = 1 CONNECT BY a = b", "CONNECT BY"),
        ("SELECT t.* ILIKE 'a%' FROM t", "ILIKE"),
        ("SELECT * FROM t WITH (NOLOCK)", "hints"),
        ("SELECT * FROM t PARTITION (p)", "PARTITION"),
        ("SELECT * FROM generate_series(1, 3) WITH ORDINALITY", "WITH ORDINALITY"),
        ("SELECT * FROM t AS v(a int, b int, s varchar)", "types in a table's alias"),
        ("SELECT * FROM t GLOBAL JOIN t u ON t.a = u.a", "GLOBAL"),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r LIMIT 3) SELECT * FROM r",
            "LIMIT in WITH",
        ),
        ("SELECT abs(DISTINCT a) FROM t", "DISTINCT in the function abs"),
        ("SELECT abs(a ORDER BY b) FROM t", "ORDER BY in the function abs"),
        ("SELECT abs(a) FILTER (WHERE b > 10) FROM t", "FILTER of the function abs"),
        ("SELECT abs(a) OVER (ORDER BY b) FROM t", "OVER behind the function abs"),
        ("SELECT abs(a) IGNORE NULLS FROM t", "IGNORE or RESPECT NULLS of the function abs"),
        ("SELECT abs(a) WITHIN GROUP (ORDER BY b) FROM t", "WITHIN GROUP behind the function abs"),
        ("SELECT quantile_cont(0.5)(a) FROM t", "parameters before the arguments"),
        ("SELECT CAST(s AS char(3)) FROM t", "CHAR"),
        ("SELECT a FROM t |> JOIN t u USING (a)", "pipe operator JOIN"),
    ] {
        match session.sql(sql) {
            Err(error) => match error.kind() {
                ErrorKind::Unsupported { what: named, .. } if named.contains(what) => {}
                _ => failed.push(format!("{error:?}\n  {sql}")),
            },
            Ok(_) => failed.push(format!("it was planned\n  {sql}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let error = session.sql("SELECT a\nFROM t WITH (NOLOCK)").expect_err("it is refused");
    assert_eq!(error.location(), Some((2, 6)));
}

/// Those that the planner refuses by itself, or that the parser does: no answer comes of them.
#[test]
fn other_clauses_are_errors_too() {
    let session = session();
    for sql in [
        "SELECT TOP 1 a FROM t",
        "SELECT * FROM t FOR SYSTEM_TIME AS OF TIMESTAMP '2020-01-01 00:00:00'",
        "SELECT count(SELECT a FROM t) FROM t",
        "SELECT a FROM t SORT BY a",
        "SELECT a FROM t CLUSTER BY a",
        "SELECT a FROM t LATERAL VIEW explode(a) u",
        "SELECT a FROM t LIMIT 1 BY a",
        "SELECT a FROM t ORDER BY a WITH FILL",
        "SELECT * FROM t PIVOT (sum(b) FOR a IN (SELECT a FROM t))",
        "SELECT * FROM t PIVOT (sum(b) FOR a IN (1, 2) DEFAULT ON NULL (0))",
        "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (x) DEFINE x AS a > 1)",
        "SELECT a FROM t INTERSECT BY NAME SELECT a FROM t",
        "SELECT string_agg(s, ',' ORDER BY a LIMIT 1) FROM t",
        "SELECT sum(a) WITHIN GROUP (ORDER BY b) FROM t",
        "SELECT row_number() FILTER (WHERE a > 1) OVER () FROM t",
        "SELECT rank(DISTINCT a) OVER (ORDER BY a) FROM t",
        "SELECT a COLLATE nocase FROM t",
        "SELECT a FROM t UNION ALL SELECT b FROM t ORDER BY ALL",
        "SELECT CAST(s AS date FORMAT 'yyyy') FROM t",
        "SELECT INTERVAL '1' YEAR TO MONTH",
        "SELECT INTERVAL '1' SECOND (3)",
        "SELECT s LIKE ANY ('a', 'b') FROM t",
        "SELECT * FROM t, UNNEST([1, 2]) WITH OFFSET AS o",
        "SELECT sum(b) OVER nowhere FROM t",
        "SELECT sum(b) OVER (w PARTITION BY a) FROM t WINDOW w AS (PARTITION BY s)",
        "SELECT count(* EXCLUDE (a)) FROM t",
        "SELECT a FROM t CROSS APPLY t",
        "SELECT a FROM t ASOF JOIN t u MATCH_CONDITION (t.a >= u.a)",
    ] {
        let outcome = session.sql(sql).and_then(|frame| frame.collect());
        let error = outcome.map(|frame| format!("{frame:?}")).expect_err(sql);
        assert!(!matches!(error.kind(), ErrorKind::Io { .. }), "{error}\n  {sql}");
    }
}

/// DataFusion's top k of partitions with a column that is constant in each: one partition's bound
/// dropped rows of another's.
#[test]
fn the_first_rows_of_a_union_are_found() {
    let session = session();
    let union =
        "SELECT b, 'y' AS n FROM t UNION ALL SELECT b, 'x' FROM t UNION ALL SELECT b, 'z' FROM t";
    // Which partition comes first differs from run to run.
    for _ in 0..20 {
        for (order, limit, names) in [
            ("b, n", 1, "x"),
            ("b, n DESC", 1, "z"),
            ("n, b", 1, "x"),
            ("b, n", 2, "xy"),
            ("b, n DESC", 4, "zyxz"),
        ] {
            let first =
                run(&session, &format!("SELECT * FROM ({union}) ORDER BY {order} LIMIT {limit}"));
            let rows = Rows::of(&first.expect("a query that runs")).rows;
            let found = rows
                .iter()
                .map(|row| if let Cell::Text(name) = &row[1] { name.as_str() } else { "" });
            assert_eq!(found.collect::<String>(), names, "{order}");
        }
    }
}

#[test]
fn short_forms_are_written_out() {
    let pair = Pair::of(Shape::random(60, 11).batches());
    for (sql, long) in [
        (
            "SELECT id FROM t ORDER BY id FETCH FIRST 3 ROWS ONLY",
            "SELECT id FROM t ORDER BY id LIMIT 3",
        ),
        (
            "SELECT id FROM t ORDER BY id OFFSET 2 ROWS FETCH NEXT ROW ONLY",
            "SELECT id FROM t ORDER BY id LIMIT 1 OFFSET 2",
        ),
        ("FROM t ORDER BY id LIMIT 2", "SELECT * FROM t ORDER BY id LIMIT 2"),
        (
            "SELECT CAST(s AS varchar(2)) AS p FROM t",
            "SELECT left(CAST(s AS varchar), 2) AS p FROM t",
        ),
        (
            "SELECT (s || 'abc')::varchar(1) AS p FROM t",
            "SELECT left(CAST(s || 'abc' AS varchar), 1) AS p FROM t",
        ),
        (
            "SELECT id, sum(k) OVER (w ORDER BY id) AS n FROM t WINDOW w AS (PARTITION BY b)",
            "SELECT id, sum(k) OVER (PARTITION BY b ORDER BY id) AS n FROM t",
        ),
        (
            "SELECT id FROM t WINDOW w AS (PARTITION BY b ORDER BY id) QUALIFY row_number() OVER w = 1",
            "SELECT id FROM t QUALIFY row_number() OVER (PARTITION BY b ORDER BY id) = 1",
        ),
        (
            "SELECT id FROM t WINDOW v AS (PARTITION BY b), w AS (v ORDER BY id) ORDER BY sum(k) OVER w, id",
            "SELECT id FROM t ORDER BY sum(k) OVER (PARTITION BY b ORDER BY id), id",
        ),
        (
            "SELECT id, count(*) OVER W AS n FROM t WINDOW w AS (ORDER BY id ROWS 1 PRECEDING)",
            "SELECT id, count(*) OVER (ORDER BY id ROWS 1 PRECEDING) AS n FROM t",
        ),
    ] {
        for session in [&pair.cpu, &pair.device] {
            let rows =
                |sql: &str| run(session, sql).unwrap_or_else(|error| panic!("{error}\n  {sql}"));
            pair.rows_agree(&rows(long), &rows(sql), sql);
        }
    }
}
