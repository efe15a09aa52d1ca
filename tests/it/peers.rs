//! Statements that DuckDB's and SQLite's own test files show, with the rows that they yield there,
//! on both engines.

use warpframe::Session;
use warpframe::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::differential::{Pair, builder, run};

/// Sessions on the CPU and on a device that hands to it what it does not run.
fn pair(setup: &[&str]) -> Pair {
    let pair = Pair::with(builder());
    for session in [&pair.cpu, &pair.device] {
        for statement in setup {
            session.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }
    pair
}

/// The rows, each as `value|value`; sorted unless the query has an order.
fn shown(session: &Session, sql: &str) -> Vec<String> {
    let frame = run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = vec![];
    for batch in frame.to_arrow().expect("rows") {
        let columns: Vec<_> = (batch.columns().iter())
            .map(|column| ArrayFormatter::try_new(column, &options).expect("it prints"))
            .collect();
        rows.extend((0..batch.num_rows()).map(|row| {
            let values: Vec<String> = columns.iter().map(|of| of.value(row).to_string()).collect();
            values.join("|")
        }));
    }
    if !sql.contains("ORDER BY") {
        rows.sort();
    }
    rows
}

fn check(pair: &Pair, cases: &[(&str, &[&str])]) {
    for (sql, rows) in cases {
        for session in [&pair.cpu, &pair.device] {
            assert_eq!(shown(session, sql), *rows, "{sql}");
        }
    }
}

fn check_refused(pair: &Pair, cases: &[(&str, &str)]) {
    for (sql, says) in cases {
        for session in [&pair.cpu, &pair.device] {
            let error = match sql.starts_with("INSERT") {
                true => session.execute(sql).err(),
                false => run(session, sql).err(),
            };
            let error = error.unwrap_or_else(|| panic!("{sql}: it ran")).to_string();
            assert!(error.contains(says), "{sql}: {error}");
        }
    }
}

const T: &str = "CREATE TABLE t AS SELECT * FROM (VALUES (1, 2), (3, 4)) v(a, b)";

#[test]
fn a_value_may_come_twice_in_a_select_list() {
    let pair = pair(&[T, "CREATE TABLE s AS SELECT * FROM (VALUES ('2'), ('1')) v(s)"]);
    check(
        &pair,
        &[
            ("SELECT a, +a FROM t", &["1|1", "3|3"]),
            ("SELECT a, (a), ((a)) FROM t", &["1|1|1", "3|3|3"]),
            ("SELECT a, CAST(a AS DOUBLE), a::DOUBLE FROM t", &["1|1.0|1.0", "3|3.0|3.0"]),
            ("SELECT a, TRY_CAST(a AS BIGINT) FROM t", &["1|1", "3|3"]),
            ("SELECT t.*, t.* FROM t", &["1|2|1|2", "3|4|3|4"]),
            ("SELECT *, * FROM t", &["1|2|1|2", "3|4|3|4"]),
            ("SELECT *, (a), a + 1 FROM t", &["1|2|1|2", "3|4|3|4"]),
            ("SELECT 52 AS a, (a) FROM t", &["52|1", "52|3"]),
            ("SELECT b AS a, +a FROM t", &["2|1", "4|3"]),
            ("SELECT b AS a, (t.a) FROM t", &["2|1", "4|3"]),
            ("SELECT count(*) AS a, +a FROM t GROUP BY a", &["1|1", "1|3"]),
            ("SELECT DISTINCT a, +a FROM t GROUP BY a", &["1|1", "3|3"]),
            ("SELECT a::DOUBLE, a FROM t GROUP BY a::DOUBLE, a", &["1.0|1", "3.0|3"]),
            ("SELECT s::INT FROM s ORDER BY s", &["1", "2"]),
            ("SELECT sum(a), sum(a::DOUBLE), sum(a::INT) FROM t", &["4|4.0|4"]),
            ("SELECT list(a), list(a::VARCHAR) FROM t WHERE a = 1", &["[1]|[1]"]),
            ("SELECT sum(a) AS x, sum(a::DOUBLE) AS y FROM t", &["4|4.0"]),
            ("SELECT a FROM t GROUP BY a HAVING sum(b) > 2 AND sum(b::DOUBLE) > 3", &["3"]),
            ("SELECT a FROM t GROUP BY a ORDER BY sum(b) % 2, sum(b::DOUBLE) DESC", &["3", "1"]),
            (
                "SELECT a, max(b) OVER (), max(b::DOUBLE) OVER () FROM t ORDER BY a",
                &["1|4|4.0", "3|4|4.0"],
            ),
            ("SELECT abs(a), abs(a::DOUBLE) FROM t GROUP BY ALL", &["1|1.0", "3|3.0"]),
            ("SELECT a, (a) FROM t UNION ALL SELECT b, a FROM t", &["1|1", "2|1", "3|3", "4|3"]),
            ("SELECT a FROM t WHERE EXISTS (SELECT x.a, +x.a FROM t x WHERE x.a > t.a)", &["1"]),
            ("SELECT a_1 + b FROM (SELECT a, (a), b FROM t)", &["3", "7"]),
            ("WITH q AS (SELECT t.*, t.* FROM t) SELECT a, b_1 FROM q", &["1|2", "3|4"]),
            // The first column of the name is meant.
            ("SELECT 0 - b AS a, a FROM t ORDER BY a", &["-4|3", "-2|1"]),
            ("SELECT a, 0 - b AS a FROM t ORDER BY a DESC", &["3|-4", "1|-2"]),
        ],
    );
}

#[test]
fn columns_of_a_union_are_named_by_its_first_part() {
    let pair = pair(&["CREATE TABLE t AS SELECT * FROM (VALUES (11, 22)) v(a, b)"]);
    check(
        &pair,
        &[
            (
                "SELECT a, 10 - a AS b FROM t UNION SELECT b, b + 1 FROM t ORDER BY b",
                &["11|-1", "22|23"],
            ),
            (
                "SELECT a, b AS x FROM t UNION ALL SELECT b AS x, a - 30 FROM t ORDER BY x",
                &["22|-19", "11|22"],
            ),
        ],
    );
}

#[test]
fn tables_get_columns_of_different_names() {
    let pair = pair(&[
        T,
        "CREATE TABLE twice AS SELECT a, (a), a AS a_1, b FROM t",
        "CREATE VIEW seen AS SELECT a, a, b FROM t",
        "CREATE TABLE into_it (x INT, y DOUBLE)",
        "INSERT INTO into_it SELECT a, a::DOUBLE FROM t",
        "INSERT INTO into_it SELECT b, (b) FROM t",
    ]);
    check(
        &pair,
        &[
            ("SELECT a, a_2, a_1, b FROM twice", &["1|1|1|2", "3|3|3|4"]),
            ("SELECT a + a_1 + b FROM seen", &["10", "4"]),
            ("SELECT * FROM into_it", &["1|1.0", "2|2.0", "3|3.0", "4|4.0"]),
        ],
    );
}

#[test]
fn an_order_below_a_limit_is_kept() {
    let pair = pair(&[
        "CREATE TABLE big AS SELECT range AS i, range % 7 AS j FROM range(0, 20000)",
        "CREATE VIEW descending AS SELECT i, j FROM big ORDER BY i DESC",
    ]);
    check(
        &pair,
        &[
            ("SELECT i FROM (SELECT i FROM big ORDER BY i DESC) LIMIT 2", &["19999", "19998"]),
            ("SELECT i + 1 AS k FROM (SELECT i FROM big ORDER BY i DESC) q LIMIT 1", &["20000"]),
            ("SELECT i FROM (SELECT i FROM big ORDER BY j DESC, i) LIMIT 2", &["6", "13"]),
            ("SELECT i FROM (SELECT * FROM big ORDER BY i DESC) WHERE j = 0 LIMIT 1", &["19999"]),
            ("SELECT i FROM descending LIMIT 1 OFFSET 2", &["19997"]),
            ("WITH q AS (SELECT i FROM big ORDER BY i DESC) SELECT i FROM q LIMIT 1", &["19999"]),
            (
                "SELECT i FROM (SELECT i, row_number() OVER () AS r FROM (SELECT i FROM big ORDER BY i DESC)) WHERE r = 3",
                &["19997"],
            ),
            ("SELECT (SELECT i FROM (SELECT i FROM big ORDER BY i DESC) LIMIT 1) AS m", &["19999"]),
        ],
    );
}

/// DataFusion moves the sort below the limit, where it keeps other rows.
#[test]
fn an_order_above_a_limit_is_of_its_rows() {
    let pair =
        pair(&["CREATE TABLE t AS SELECT range AS i, (range * 7) % 10 AS j FROM range(0, 10)"]);
    check(
        &pair,
        &[
            ("SELECT * FROM (SELECT i FROM t LIMIT 3) ORDER BY i DESC", &["2", "1", "0"]),
            ("SELECT * FROM (SELECT i FROM t LIMIT 3 OFFSET 4) ORDER BY i DESC", &["6", "5", "4"]),
            (
                "SELECT i FROM (SELECT i, j FROM t ORDER BY j LIMIT 3 OFFSET 2) ORDER BY i DESC",
                &["9", "6", "2"],
            ),
            (
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT * FROM (SELECT n FROM r LIMIT 3) ORDER BY n DESC",
                &["3", "2", "1"],
            ),
        ],
    );
}

/// When this fails, DataFusion has mended what `mends/early_projections.rs` mends of sorts.
#[test]
fn datafusion_still_moves_sorts_below_limits() {
    use datafusion::prelude::SessionContext;
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let sql = "SELECT * FROM (SELECT column1 AS i FROM (VALUES (1), (2), (3), (4)) LIMIT 2 OFFSET 1) ORDER BY i DESC";
    let batches = runtime
        .block_on(async { SessionContext::new().sql(sql).await?.collect().await })
        .expect("a query");
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(rows, 1, "two rows are asked for");
}

/// A sort that nothing looks at is dropped.
#[test]
fn an_order_below_an_aggregate_costs_nothing() {
    let pair = pair(&["CREATE TABLE big AS SELECT range AS i FROM range(0, 100)"]);
    for sql in [
        "SELECT count(*) FROM (SELECT i FROM big ORDER BY i DESC)",
        "SELECT a.i FROM (SELECT i FROM big ORDER BY i) a JOIN big b ON a.i = b.i",
        "SELECT i FROM big WHERE i IN (SELECT i FROM (SELECT i FROM big ORDER BY i))",
    ] {
        for session in [&pair.cpu, &pair.device] {
            let plan = session.sql(sql).and_then(|frame| frame.explain()).expect("it plans");
            assert!(!plan.contains("Sort"), "{sql}\n{plan}");
        }
    }
}

#[test]
fn parentheses_in_group_by_hold_several_keys() {
    let pair = pair(&["CREATE TABLE t AS SELECT * FROM (VALUES (1, 2, 5), (1, 3, 6)) v(a, b, c)"]);
    check(
        &pair,
        &[
            ("SELECT a, b, count(*) FROM t GROUP BY (a, b)", &["1|2|1", "1|3|1"]),
            ("SELECT a, c, count(*) FROM t GROUP BY ((a, c)), b", &["1|5|1", "1|6|1"]),
            ("SELECT (a, b).c1 FROM t GROUP BY (a, b)", &["2", "3"]),
            ("SELECT count(*) FROM t GROUP BY ()", &["2"]),
            ("SELECT a, count(*) FROM t GROUP BY (), (a)", &["1|2"]),
            (
                "SELECT a, count(*) FROM t GROUP BY ROLLUP (a), (a, b)",
                &["1|1", "1|1", "1|1", "1|1"],
            ),
            (
                "SELECT a, b, c, count(*) FROM t GROUP BY GROUPING SETS (a, b, c), (a, b)",
                &["1|2|5|1", "1|2|NULL|1", "1|2|NULL|1", "1|3|6|1", "1|3|NULL|1", "1|3|NULL|1"],
            ),
            (
                "SELECT a, b, c, count(*) FROM t GROUP BY ROLLUP ((a, b), c)",
                &["1|2|5|1", "1|2|NULL|1", "1|3|6|1", "1|3|NULL|1", "NULL|NULL|NULL|2"],
            ),
            (
                "SELECT a, b, count(*) FROM t GROUP BY CUBE ((a, b))",
                &["1|2|1", "1|3|1", "NULL|NULL|2"],
            ),
        ],
    );
}

#[test]
fn tables_of_one_name_in_two_schemas_are_told_apart() {
    let pair = pair(&[
        "CREATE SCHEMA s1",
        "CREATE TABLE tbl AS SELECT 1 AS i, 5 AS k",
        "CREATE TABLE s1.tbl AS SELECT 10 AS i, 6 AS k",
    ]);
    check(
        &pair,
        &[
            ("SELECT s1.tbl.i FROM tbl, s1.tbl", &["10"]),
            ("SELECT public.tbl.i, s1.tbl.k FROM s1.tbl, tbl", &["1|6"]),
            ("SELECT * FROM tbl, s1.tbl", &["1|5|10|6"]),
            ("SELECT s1.tbl.* FROM tbl, s1.tbl", &["10|6"]),
            (
                "SELECT s1.tbl.i, tbl.j FROM (SELECT 7 AS j) AS tbl, s1.tbl ORDER BY s1.tbl.k",
                &["10|7"],
            ),
            ("SELECT s1.tbl.*, tbl.i AS j FROM tbl AS tbl, s1.tbl", &["10|6|1"]),
            ("WITH tbl AS (SELECT 7 AS i) SELECT s1.tbl.i, x.i FROM tbl, s1.tbl, tbl x", &["10|7"]),
            ("SELECT x.i, tbl.i FROM tbl x, s1.tbl", &["1|10"]),
            ("SELECT (SELECT max(s1.tbl.i + public.tbl.i) FROM s1.tbl) FROM tbl", &["11"]),
            ("SELECT (SELECT max(tbl.i) FROM s1.tbl) FROM tbl", &["10"]),
            ("SELECT i FROM tbl UNION ALL SELECT i FROM s1.tbl", &["1", "10"]),
            (
                "SELECT i FROM tbl WHERE EXISTS (SELECT 1 FROM s1.tbl WHERE s1.tbl.i > public.tbl.i)",
                &["1"],
            ),
        ],
    );
    check_refused(
        &pair,
        &[
            ("SELECT tbl.i FROM tbl, s1.tbl", "ambiguous"),
            ("SELECT tbl.* FROM tbl, s1.tbl", "ambiguous"),
            ("SELECT i FROM tbl, s1.tbl", "mbiguous"),
            ("SELECT count(*) FROM tbl JOIN s1.tbl ON tbl.i < s1.tbl.i", "ambiguous"),
        ],
    );
}

#[test]
fn null_is_inserted_into_lists_and_structs() {
    let pair = pair(&[
        "CREATE TABLE z (i INT, l INT[], s STRUCT<a INT, b VARCHAR>)",
        "INSERT INTO z VALUES (1, NULL, NULL)",
        "INSERT INTO z VALUES (2, [], NULL), (3, [NULL], NULL)",
        "INSERT INTO z (i, s) VALUES (4, NULL)",
        "INSERT INTO z VALUES (5, '[1, NULL]', '{a: 7}')",
        "PREPARE put AS INSERT INTO z VALUES ($1, $2, $3)",
        "EXECUTE put(6, NULL, NULL)",
    ]);
    check(
        &pair,
        &[
            (
                "SELECT i, l, l IS NULL, s IS NULL FROM z",
                &[
                    "1|NULL|true|true",
                    "2|[]|false|true",
                    "3|[NULL]|false|true",
                    "4|NULL|true|true",
                    "5|[1, NULL]|false|false",
                    "6|NULL|true|true",
                ],
            ),
            ("SELECT s.a, s.b FROM z WHERE i = 5", &["7|NULL"]),
        ],
    );
    check_refused(
        &pair,
        &[
            ("INSERT INTO z VALUES (7, 'abc', NULL)", "'abc'"),
            ("INSERT INTO z VALUES (7, 5, NULL)", "it is no list"),
            ("INSERT INTO z VALUES (7, NULL, 'abc')", "'abc'"),
        ],
    );
    check(&pair, &[("SELECT count(*) FROM z", &["6"])]);
}

#[test]
fn distinct_rows_are_counted_by_their_columns() {
    let pair = pair(&[T]);
    check_refused(&pair, &[("SELECT count(DISTINCT *) FROM t", "DISTINCT *")]);
}

#[test]
fn a_recursive_query_reads_itself_once() {
    let pair = pair(&[]);
    let twice = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT max(n) + 2 FROM r)) SELECT * FROM r";
    check_refused(&pair, &[(twice, "reads itself twice")]);
}

#[test]
fn texts_are_read_as_lists_and_structs() {
    let pair = pair(&[
        "CREATE TABLE x AS SELECT * FROM (VALUES ('[1, 2]'), ('[]'), (NULL), ('[3, x]'), ('abc')) v(s)",
    ]);
    check(
        &pair,
        &[
            ("SELECT len('[a, b]'::VARCHAR[])", &["2"]),
            ("SELECT '[1, NULL]'::INT[]", &["[1, NULL]"]),
            ("SELECT '[[1], [2, 3]]'::INT[][]", &["[[1], [2, 3]]"]),
            (
                "SELECT TRY_CAST(s AS INT[]) AS l FROM x",
                &["NULL", "NULL", "[1, 2]", "[3, NULL]", "[]"],
            ),
            ("SELECT CAST(s AS INT[])[2] AS l FROM x WHERE s LIKE '[1%'", &["2"]),
            ("SELECT ('{a: 1, b: \"x, y\"}'::STRUCT<a INT, b VARCHAR>).b", &["x, y"]),
            ("SELECT TRY_CAST(5 AS INT[]) IS NULL", &["true"]),
            ("SELECT NULL::INT[] IS NULL, [1]::DOUBLE[]", &["true|[1.0]"]),
        ],
    );
    check_refused(
        &pair,
        &[
            ("SELECT 'abc'::VARCHAR[]", "'abc'"),
            ("SELECT '[1, x]'::INT[]", "x"),
            ("SELECT CAST(s AS INT[]) FROM x", "value of"),
            ("SELECT 5::INT[]", "it is no list"),
            ("SELECT length(s)::INT[] FROM x", "it is no list"),
        ],
    );
}

#[test]
fn functions_answer_as_in_duckdb() {
    let pair = pair(&[
        "CREATE TABLE w AS SELECT * FROM (VALUES (1, 5), (2, NULL), (3, 7)) v(i, v)",
        "CREATE TABLE p AS SELECT * FROM (VALUES (1, 2), (NULL, 3)) v(a, b)",
        "CREATE TABLE l AS SELECT * FROM (VALUES (1, [1, 2, 3]), (2, []), (3, NULL)) v(i, l)",
    ]);
    check(
        &pair,
        &[
            ("SELECT length([1, 2, 3]), length([]), length('abc')", &["3|0|3"]),
            ("SELECT i, length(l) FROM l", &["1|3", "2|0", "3|NULL"]),
            (
                "SELECT concat([1], [2]), concat([1], NULL), concat('a', NULL, 1)",
                &["[1, 2]|[1]|a1"],
            ),
            ("SELECT i, concat(l, [9]) FROM l", &["1|[1, 2, 3, 9]", "2|[9]", "3|[9]"]),
            ("SELECT ('a' LIKE 'a' ESCAPE NULL) IS NULL", &["true"]),
            ("SELECT ('a%c' ILIKE 'A$%C' ESCAPE NULL) IS NULL", &["true"]),
            (
                "SELECT list_sum([9007199254740993, 0]), list_sum([1.5, NULL]), list_sum([1.25::DECIMAL(9, 2), 1]), list_sum([])",
                &["9007199254740993|1.5|2.25|NULL"],
            ),
            (
                "SELECT i, list_sum(l), list_aggregate(l, 'sum') FROM l",
                &["1|6|6", "2|NULL|NULL", "3|NULL|NULL"],
            ),
            ("SELECT list_distinct([1, NULL, 1, NULL]), array_distinct([NULL::INT])", &["[1]|[]"]),
            (
                "SELECT list_has_any([1, NULL], [NULL]), list_has_any([1, NULL], [NULL, 1])",
                &["false|true"],
            ),
            (
                "SELECT list_has_all([1, NULL], [NULL]), list_has_all([1, 2], [2, NULL])",
                &["true|true"],
            ),
            ("SELECT list_intersect([1, NULL], [NULL, 1])", &["[1]"]),
            (
                "SELECT i, lag(v, 0, -1) IGNORE NULLS OVER (ORDER BY i) FROM w ORDER BY i",
                &["1|5", "2|NULL", "3|7"],
            ),
            (
                "SELECT i, lead(v, 0, -1 IGNORE NULLS) OVER (ORDER BY i) FROM w ORDER BY i",
                &["1|5", "2|NULL", "3|7"],
            ),
            ("PIVOT p ON a IN (NULL) USING sum(b)", &["3"]),
            ("PIVOT p ON a IN (1, NULL) USING sum(b)", &["2|3"]),
            (
                "SELECT x, first(y ORDER BY y, y DESC) AS f FROM (VALUES (1, 2), (1, 3)) t(x, y) GROUP BY x",
                &["1|2"],
            ),
            (
                "SELECT x, last(y ORDER BY y, t.y, x) AS f FROM (VALUES (1, 2), (1, 3)) t(x, y) GROUP BY x",
                &["1|3"],
            ),
            ("SELECT map([[0], [2, 0]], [1, 2])[[2, 0]]", &["2"]),
            (
                "SELECT m[[2, 1]] IS NULL, m[[0]] FROM (VALUES (map([[0], [2, 0]], [1, 2]))) t(m)",
                &["true|1"],
            ),
            (
                "SELECT len(max(l)), max(l), min(l) FROM (VALUES ([{'i': 0}]), (NULL), ([{'i': 1}])) t(l)",
                &["1|[{i: 1}]|[{i: 0}]"],
            ),
            (
                "SELECT g, max(l) FROM (VALUES (1, [[1]]), (1, [[2], [0]]), (2, NULL)) t(g, l) GROUP BY g",
                &["1|[[2], [0]]", "2|NULL"],
            ),
            ("SELECT max(s) FROM (VALUES ({'a': [1]}), ({'a': [2]})) t(s)", &["{a: [2]}"]),
        ],
    );
}

/// A constant has its value in batches without rows, too.
#[test]
fn a_millennium_begins_where_nanoseconds_do_not_reach() {
    let pair = pair(&["CREATE TABLE t AS SELECT * FROM (VALUES (1), (2)) v(a)"]);
    check(
        &pair,
        &[
            (
                "SELECT date_trunc('millennium', TIMESTAMP '1996-01-06 04:03:02') AS m FROM t LIMIT 1",
                &["1000-01-01 00:00:00"],
            ),
            (
                "SELECT date_trunc('century', x) AS m FROM (VALUES (TIMESTAMP '1696-01-06 04:03:02')) v(x)",
                &["1600-01-01 00:00:00"],
            ),
            (
                "SELECT date_trunc('decade', TIMESTAMP '1999-12-31 10:00:00') AS m",
                &["1990-01-01 00:00:00"],
            ),
            ("SELECT ceil(1.5::DECIMAL(9, 1)) AS c FROM t WHERE a > 5", &[]),
        ],
    );
}

/// The product of tables that nothing connects comes behind the joins.
#[test]
fn connected_tables_are_joined_before_others() {
    let pair = pair(&[
        "CREATE TABLE a AS SELECT range AS x FROM range(0, 300)",
        "CREATE TABLE d AS SELECT 7 AS x",
    ]);
    check(
        &pair,
        &[
            (
                "SELECT count(*), sum(p.x + q.x) FROM a p, a q, a r, d WHERE r.x = d.x",
                &["90000|26910000"],
            ),
            (
                "SELECT p.x, d.x, r.x FROM a p, d, a q, a r WHERE q.x + 1 = r.x AND p.x < 2 AND q.x = 5 ORDER BY p.x",
                &["0|7|6", "1|7|6"],
            ),
            (
                "SELECT count(*) FROM a p, a q, a r, a s WHERE p.x = s.x AND q.x = r.x AND p.x < 2 AND r.x < 3 AND s.x < r.x",
                &["3"],
            ),
        ],
    );
    for session in [&pair.cpu, &pair.device] {
        let sql = "SELECT count(*) FROM a p, a q, a r, d WHERE r.x = d.x";
        let plan = session.sql(sql).and_then(|frame| frame.explain()).expect("it plans");
        let (product, join) = (plan.find("Cross Join"), plan.find("Inner Join"));
        assert!(product.is_none() || product < join, "{plan}");
    }
}
