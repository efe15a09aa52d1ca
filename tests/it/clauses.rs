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

/// Functions by the names that DuckDB has for them: the same as the long form, on the device.
#[test]
fn functions_go_by_their_names_elsewhere() {
    let pair = Pair::new().and("t", Shape::random(400, 71).batches());
    for (short, long) in [
        (
            "SELECT id, year(d), month(ts), day(d), quarter(d), week(d), dayofyear(d), weekday(d) FROM t",
            "SELECT id, date_part('year', d), date_part('month', ts), date_part('day', d), \
             date_part('quarter', d), date_part('week', d), date_part('doy', d), \
             date_part('dow', d) FROM t",
        ),
        (
            "SELECT id, hour(ts), minute(ts), second(ts_ms), epoch(ts_s) FROM t",
            "SELECT id, date_part('hour', ts), date_part('minute', ts), date_part('second', ts_ms), \
             date_part('epoch', ts_s) FROM t",
        ),
        (
            "SELECT k, first(s), last(s), list(id), every(b) FROM t GROUP BY k",
            "SELECT k, first_value(s), last_value(s), array_agg(id), bool_and(b) FROM t GROUP BY k",
        ),
        (
            "SELECT k, first(s ORDER BY x DESC, id), list(DISTINCT k2 ORDER BY k2) FROM t GROUP BY k",
            "SELECT k, first_value(s ORDER BY x DESC, id), array_agg(DISTINCT k2 ORDER BY k2) \
             FROM t GROUP BY k",
        ),
        (
            "SELECT k, any_value(s), any_value(m) FILTER (WHERE b) FROM t GROUP BY k",
            "SELECT k, first_value(s) FILTER (WHERE s IS NOT NULL), \
             first_value(m) FILTER (WHERE b AND m IS NOT NULL) FROM t GROUP BY k",
        ),
        (
            "SELECT id, first(s) OVER w, any_value(s) OVER w FROM t WINDOW w AS (PARTITION BY k ORDER BY id)",
            "SELECT id, first_value(s) OVER w, first_value(s) IGNORE NULLS OVER w FROM t \
             WINDOW w AS (PARTITION BY k ORDER BY id)",
        ),
        (
            "SELECT k, max_by(s, id), min_by(s, id), arg_max(id, m) FROM t GROUP BY k",
            "SELECT k, last_value(s ORDER BY id) FILTER (WHERE s IS NOT NULL), \
             first_value(s ORDER BY id) FILTER (WHERE s IS NOT NULL), \
             first_value(id ORDER BY m DESC NULLS LAST) FILTER (WHERE m IS NOT NULL) \
             FROM t GROUP BY k",
        ),
        (
            "SELECT arg_min(id, id + w) FILTER (WHERE k = 2 OR b) + 1 AS n FROM t HAVING count(*) > 1",
            "SELECT min(id) + 1 AS n FROM t WHERE id = (SELECT first_value(id ORDER BY id + w) FROM t \
             WHERE (k = 2 OR b) AND w IS NOT NULL)",
        ),
        (
            "SELECT id, lcase(s), ucase(s), strlen(s), prefix(s, 'a'), suffix(s, 'b') FROM t \
             WHERE regexp_matches(s, '^[ab]')",
            "SELECT id, lower(s), upper(s), octet_length(s), starts_with(s, 'a'), ends_with(s, 'b') \
             FROM t WHERE regexp_like(s, '^[ab]')",
        ),
        (
            "SELECT year(d) AS y, count(*) FROM t GROUP BY year(d) HAVING max(month(d)) > 3",
            "SELECT date_part('year', d) AS y, count(*) FROM t GROUP BY 1 \
             HAVING max(date_part('month', d)) > 3",
        ),
    ] {
        pair.check(short);
        let found = run(&pair.device, short).expect("it ran a moment ago");
        let expected = run(&pair.cpu, long).unwrap_or_else(|error| panic!("{long}: {error}"));
        pair.compare_unordered(&expected, &found, short);
    }
    // Columns are called by what was asked for.
    let found = run(&pair.device, "SELECT max_by(s, id), year(d) + 1 AS y FROM t GROUP BY d");
    assert_eq!(found.expect("rows").column_names(), ["max_by(s, id)", "y"]);
    for (sql, says) in [
        ("SELECT max_by(s) FROM t", "max_by takes a value and what"),
        ("SELECT max_by(s, id) OVER (ORDER BY id) FROM t", "max_by is an aggregate"),
        ("SELECT year(d, d) FROM t", "year takes a date or a time"),
        ("SELECT date_diff('fortnight', d, d) FROM t", "date_diff takes a unit"),
        ("SELECT date_diff(s, d, d) FROM t", "date_diff takes a unit"),
    ] {
        let error = run(&pair.device, sql).expect_err(sql);
        assert!(error.to_string().contains(says), "{sql}: {error}");
        assert!(error.location().is_some(), "{sql}");
    }
}

/// What DuckDB answers: boundaries, but of weeks whole ones.
#[test]
fn differences_of_dates_count_boundaries() {
    let pair = Pair::new().and("t", Shape::random(200, 72).batches());
    let of = |unit: &str, from: &str, to: &str| {
        let sql = format!(
            "SELECT date_diff('{unit}', CAST('{from}' AS timestamp), CAST('{to}' AS timestamp))"
        );
        match crate::differential::scalar(&pair.device, &sql) {
            Cell::Int(number) => number,
            other => panic!("{sql}: {other:?}"),
        }
    };
    let (late, early) = ("2024-01-01 23:59:59.9996", "2024-01-03 00:00:01");
    for (unit, expected) in [
        ("day", 2),
        ("hour", 25),
        ("minute", 1441),
        ("second", 86_402),
        ("ms", 86_401_001),
        ("us", 86_401_000_400),
        ("week", 0),
        ("month", 0),
    ] {
        assert_eq!(of(unit, late, early), expected, "{unit}");
        assert_eq!(of(unit, early, late), -expected, "{unit}");
    }
    for (unit, from, to, expected) in [
        ("month", "2024-01-31", "2024-02-01", 1),
        ("quarter", "2023-12-31", "2024-04-01", 2),
        ("year", "2023-12-31", "2024-01-01", 1),
        ("week", "2024-01-07", "2024-01-08", 0),
        ("week", "2024-01-01", "2024-01-08", 1),
        ("week", "1969-12-20", "1970-01-08", 2),
        ("day", "1969-12-31 23:00:00", "1970-01-01 01:00:00", 1),
        ("hour", "1969-12-31 23:30:00", "1970-01-01 00:10:00", 1),
        ("second", "1969-12-31 23:59:58.5", "1970-01-01 00:00:00.5", 2),
    ] {
        assert_eq!(of(unit, from, to), expected, "{unit} {from} {to}");
    }
    pair.check_all(&[
        "SELECT id, date_diff('day', d, DATE '2024-01-01'), date_diff('week', d, ts) FROM t",
        "SELECT id, date_diff('month', d, ts), datediff('year', ts, d) FROM t",
        "SELECT id, date_diff('hour', ts, d), date_diff('minute', ts_s, ts_ns) FROM t",
        "SELECT id, date_diff('us', ts, ts_s), date_diff('ms', ts_ms, ts) FROM t",
        "SELECT id FROM t WHERE date_diff('day', d, ts) > 1000",
    ]);
}

/// A function of a user's is not taken for another.
#[test]
fn functions_of_users_keep_their_names() {
    use warpframe::ScalarFunction;
    use warpframe::prelude::DataType;
    let pair = Pair::new().and("t", Shape::random(50, 73).batches());
    let year =
        ScalarFunction::new("year", [("n", DataType::Int64)], DataType::Int64, "return 2 * n;");
    pair.device.register_function(year).expect("no built-in function has this name");
    let found = run(&pair.device, "SELECT max(year(id)) AS y FROM t").expect("rows");
    assert_eq!(Rows::of(&found).rows, [[Cell::Int(98)]]);
}
