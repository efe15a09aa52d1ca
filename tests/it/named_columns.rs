//! `COLUMNS(…)`, `* RENAME (…)` and `* LIKE`: the device runs what they are written out as, and the
//! names are right.

use warpframe::ErrorKind;

use crate::differential::{Cell, Pair, Rows, run};
use crate::tables::Shape;

fn pair() -> Pair {
    Pair::new().and("t", Shape::random(500, 61).batches()).and("u", Shape::random(40, 62).batches())
}

fn names(pair: &Pair, sql: &str) -> Vec<String> {
    run(&pair.device, sql).unwrap_or_else(|error| panic!("{sql}: {error}")).column_names()
}

#[test]
fn columns_by_name_run_on_the_device() {
    let pair = pair();
    pair.check_all(&[
        "SELECT id, * EXCLUDE (s, sv, sl) RENAME (k AS key) FROM t WHERE k > 1 ORDER BY w, id",
        "SELECT k, sum(COLUMNS('^(w|spread)$')) FROM t GROUP BY k ORDER BY k",
        "SELECT id, COLUMNS('^(k|w)$') * 2 + COLUMNS('^(k|w)$') FROM t ORDER BY id",
        "SELECT id FROM t WHERE COLUMNS(['k', 'w']) > 2 ORDER BY id",
        "SELECT t.id, u.* RENAME (id AS other) FROM t JOIN u USING (id) ORDER BY t.id",
        "SELECT id, greatest(*COLUMNS(['k', 'w'])) AS g FROM t ORDER BY id",
        "SELECT id, sum(COLUMNS(c -> c = 'w')) OVER (PARTITION BY k ORDER BY id) FROM t ORDER BY id",
        "SELECT max(COLUMNS('^k$')), min(COLUMNS('^k$')) FROM (SELECT * RENAME (w AS k, k AS w) FROM t)",
        "SELECT id FROM t WHERE k = (SELECT max(COLUMNS('^k$')) FROM u) ORDER BY id",
        "SELECT * LIKE 'k' FROM t WHERE w > 1 ORDER BY ALL",
    ]);
}

#[test]
fn names_are_those_of_the_columns_even_where_they_come_twice() {
    let pair = pair();
    let found = |sql| names(&pair, sql);
    assert_eq!(
        found("SELECT min(COLUMNS(['k', 'w'])), max(COLUMNS(['k', 'w'])) FROM t"),
        ["k", "w", "k", "w"]
    );
    assert_eq!(found("SELECT COLUMNS('^k$'), COLUMNS('^k$') FROM t"), ["k", "k"]);
    assert_eq!(found("SELECT max(COLUMNS('^(k|w)$')) AS 'most \\1' FROM t"), ["most k", "most w"]);
    assert_eq!(found("SELECT * LIKE 'w' FROM t"), ["w"]);
    // Case counts, and the pattern may be found anywhere.
    let error =
        run(&pair.device, "SELECT COLUMNS('SPREAD') FROM t").expect_err("there is no such column");
    assert!(error.to_string().contains("known: id"), "{error}");
    assert_eq!(found("SELECT COLUMNS('prea') FROM t"), ["spread"]);
}

/// A table that is made anew has other columns: a text that is kept is planned again.
#[test]
fn a_kept_text_follows_its_tables_columns() {
    let pair = pair();
    let sql = "SELECT sum(COLUMNS('^x')) FROM n";
    for session in [&pair.cpu, &pair.device] {
        for columns in ["x1", "x1, x2", "x2, x3, y"] {
            let values: Vec<String> = columns.split(", ").map(|_| "1".to_string()).collect();
            let made = format!(
                "CREATE OR REPLACE TABLE n AS SELECT * FROM (VALUES ({})) v({columns})",
                values.join(", ")
            );
            session.execute(&made).expect("a table");
            let expected: Vec<&str> =
                columns.split(", ").filter(|name| name.starts_with('x')).collect();
            for _ in 0..2 {
                assert_eq!(run(session, sql).expect("rows").column_names(), expected);
            }
        }
    }
}

/// `NOT (a AND b)` is not `NOT a AND NOT b`: statements that change rows do not take what stands
/// for several.
#[test]
fn conditions_of_changes_have_one_meaning() {
    let pair = pair();
    for session in [&pair.cpu, &pair.device] {
        session.execute("CREATE TABLE c AS SELECT id, k, w FROM t").expect("a table");
        for sql in [
            "DELETE FROM c WHERE COLUMNS(['k', 'w']) > 1",
            "UPDATE c SET k = 0 WHERE COLUMNS(['k', 'w']) > 1",
            "UPDATE c SET k = COLUMNS(['k', 'w'])",
        ] {
            let error = session.execute(sql).expect_err(sql);
            assert!(
                matches!(error.kind(), ErrorKind::Plan { .. }) && error.location().is_some(),
                "{sql}: {error}"
            );
        }
        assert_eq!(run(session, "SELECT * FROM c").expect("rows").num_rows(), 500);
        // In a query within they mean what they do everywhere.
        let sql = "DELETE FROM c WHERE id IN (SELECT id FROM t WHERE COLUMNS(['k', 'w']) > 1)";
        let gone = run(session, "SELECT id FROM t WHERE k > 1 AND w > 1").expect("rows").num_rows();
        let warpframe::Executed::Changed(changed) = session.execute(sql).expect("a change") else {
            panic!("{sql}")
        };
        assert_eq!(changed, gone);
    }
}

/// The rows of a query on the device, which the CPU has, too.
fn rows(pair: &Pair, sql: &str) -> Vec<Vec<Cell>> {
    let expected = run(&pair.cpu, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let found = run(&pair.device, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    pair.compare(&expected, &found, sql);
    Rows::of(&found).rows
}

#[test]
fn columns_of_one_name_stand_side_by_side() {
    let pair = pair();
    let found = |sql| names(&pair, sql);
    assert_eq!(found("SELECT 1, 1"), ["1", "1"]);
    assert_eq!(found("SELECT k, t.k, K FROM t"), ["k", "k", "k"]);
    assert_eq!(found("SELECT 1 AS a, 2 AS a, 3 AS b"), ["a", "a", "b"]);
    assert_eq!(found("SELECT u.*, k, 2 AS w FROM u")[..2], ["id", "k"]);
    assert_eq!(found("SELECT sum(w), sum(w) FROM t"), ["sum(w)", "sum(w)"]);
    assert_eq!(found("SELECT a.k, b.k FROM t a JOIN u b USING (id)"), ["k", "k"]);
    pair.check_all(&[
        "SELECT *, k FROM t WHERE w > 1 ORDER BY id",
        "SELECT k, t.k, sum(w), sum(w) FROM t GROUP BY k ORDER BY k",
        "SELECT id, k, k + 1, k + 1 FROM t WHERE k > 2 UNION ALL SELECT id, 1, 2, 2 FROM u",
        "SELECT a FROM (SELECT k AS a, w AS a FROM t) WHERE a > 2 ORDER BY a",
    ]);
    let sql = "SELECT k, k FROM t UNION SELECT k, w FROM u ORDER BY 1, 2";
    assert_eq!(found(sql), ["k", "k_1"]);
    pair.check(sql);
    // Expressions that DataFusion has one name for.
    assert_eq!(found("SELECT 1.5, 1.5e0, 1.50"), ["1.5", "1.5e0", "1.50"]);
    assert_eq!(
        found("SELECT strpos(s, 'p'), position('p' IN s), s FROM t"),
        ["strpos(s, 'p')", "position('p' IN s)", "s"]
    );
    assert_eq!(found("SELECT * FROM (SELECT 1.5, 1.5e0, 2)"), ["1.5", "1.5e0", "2"]);
    pair.check_all(&[
        "SELECT id, strpos(s, 'b'), position('b' IN s) FROM t ORDER BY id",
        "SELECT sum(w), SUM(w), k + 1, t.k + 1, count(*) FROM t GROUP BY k ORDER BY 3",
        "SELECT id, w * 1.5, w * 1.5e0 FROM t WHERE k > 2 UNION ALL SELECT id, 1, 2 FROM u",
    ]);
    // In queries within, by whose names others know them, they get numbers.
    let within = "SELECT * FROM (SELECT 1 AS a, 2 AS a_1, 3 AS a, 4 AS A) v";
    assert_eq!(found(within), ["a", "a_1", "a_2", "a_3"]);
    assert_eq!(
        found("WITH q AS (SELECT k, t.k, w + 1, w + 1 FROM t) SELECT * FROM q"),
        ["k", "k_1", "w + 1", "w + 1_1"]
    );
    pair.check("SELECT a_1, a FROM (SELECT k AS a, w AS a FROM t) v WHERE a_1 > 2 AND a > 1");
}

#[test]
fn columns_of_a_with_query_are_named_by_its_list() {
    let pair = pair();
    let recursive = "WITH RECURSIVE r(n, f) AS (SELECT 1, 1 UNION ALL SELECT n + 1, f * n FROM r \
                     WHERE n < 5) SELECT * FROM r ORDER BY n";
    // A recursive query is not on the device.
    for session in [&pair.cpu, &crate::differential::builder().strict(false).build().unwrap()] {
        let frame = run(session, recursive).expect("rows");
        assert_eq!(frame.column_names(), ["n", "f"]);
        let int = Cell::Int;
        let expected = [[1, 1], [2, 1], [3, 2], [4, 6], [5, 24]].map(|row| row.map(int));
        assert_eq!(Rows::of(&frame).rows, expected);
    }
    assert_eq!(names(&pair, "WITH q(a, b) AS (SELECT 1, 1) SELECT * FROM q"), ["a", "b"]);
    let sql = "SELECT b, a FROM (SELECT k, k, k + 1, k + 1 FROM t) v(a, b, c, d) WHERE c = d";
    assert_eq!(names(&pair, sql), ["b", "a"]);
    pair.check(sql);
}

#[test]
fn fields_of_a_struct_are_columns_by_a_star() {
    let pair = pair();
    for session in [&pair.cpu, &pair.device] {
        let made = "CREATE TABLE n AS SELECT id, {'k': k, 'Name': s} AS r, w FROM t";
        session.execute(made).expect("a table");
    }
    let found = |sql| names(&pair, sql);
    assert_eq!(found("SELECT r.* FROM n"), ["k", "Name"]);
    assert_eq!(found("SELECT id, r.* EXCLUDE (k), w FROM n"), ["id", "Name", "w"]);
    assert_eq!(found("SELECT r.* RENAME (k AS key) FROM n"), ["key", "Name"]);
    assert_eq!(
        found("SELECT u.*, r.* EXCLUDE (\"Name\") FROM n JOIN u USING (id)")[..2],
        ["id", "k"]
    );
    pair.check_all(&[
        "SELECT id, r.* FROM n ORDER BY id",
        "SELECT r.* REPLACE (r.k + 1 AS k) FROM n WHERE r.k > 2 ORDER BY id",
        "SELECT r.*, k FROM n JOIN (SELECT id, k FROM u) o ON n.id = o.id ORDER BY n.id",
    ]);
    // A table of that name comes first, and of what is neither it is said.
    assert_eq!(found("SELECT r.* FROM n r"), ["id", "r", "w"]);
    for sql in ["SELECT w.* FROM n", "SELECT nobody.* FROM n"] {
        let error = run(&pair.device, sql).expect_err(sql);
        assert!(matches!(error.kind(), ErrorKind::Plan { .. }), "{sql}: {error:?}");
    }
}

#[test]
fn rows_are_ordered_by_columns_by_name() {
    let pair = pair();
    for (short, long) in [
        ("COLUMNS('^(k|w)$')", "k, w"),
        ("COLUMNS('^(k|w)$') DESC NULLS LAST, id", "k DESC NULLS LAST, w DESC NULLS LAST, id"),
        ("COLUMNS(['w', 'id']) % 3, id", "id % 3, w % 3, id"),
        ("COLUMNS(c -> c = 'w'), COLUMNS('^id$') DESC", "w, id DESC"),
    ] {
        let of = |keys: &str| format!("SELECT id FROM t WHERE k > 1 ORDER BY {keys}, id");
        pair.check(&of(short));
        assert_eq!(rows(&pair, &of(short)), rows(&pair, &of(long)), "{short}");
    }
    pair.check_all(&[
        "SELECT k, max(w) AS m FROM t GROUP BY k ORDER BY max(COLUMNS('^w$')) DESC, k",
        "SELECT t.id FROM t JOIN u USING (id) ORDER BY COLUMNS('^id$') DESC",
        "SELECT id FROM (SELECT id, k, w FROM t ORDER BY COLUMNS(*) LIMIT 10) ORDER BY id",
    ]);
    let sql = "SELECT k FROM t UNION SELECT k FROM u ORDER BY COLUMNS('k')";
    let error = run(&pair.device, sql).expect_err("there are no tables to name");
    assert!(error.to_string().contains("ORDER BY"), "{error}");
}

#[test]
fn a_column_without_a_name_is_called_by_what_was_typed() {
    let pair = pair();
    let found = |sql| names(&pair, sql);
    assert_eq!(
        found(
            "SELECT 1, 'it''s', k*2.5, COUNT( * ), -k, max(k)::VARCHAR, s[1:2], k, t.w, (k) FROM t GROUP BY ALL"
        ),
        ["1", "'it''s'", "k*2.5", "COUNT( * )", "-k", "max(k)::VARCHAR", "s[1:2]", "k", "w", "k"]
    );
    assert_eq!(
        found(
            "SELECT DISTINCT ON (k % 2) k\n  + 1, -- of the row\n k IS DISTINCT FROM 1 FROM t \
             ORDER BY k % 2, id"
        ),
        ["k + 1", "k IS DISTINCT FROM 1"]
    );
    assert_eq!(found("SELECT (SELECT max(k) FROM u), EXISTS (SELECT 1) FROM t").len(), 2);
    assert_eq!(found("SELECT * FROM (SELECT sum(k) FROM t UNION ALL SELECT 1)"), ["sum(k)"]);
    assert_eq!(found("WITH q AS (SELECT k+1 FROM t) SELECT * FROM q"), ["k+1"]);
    assert_eq!(found("FROM t SELECT k+1, unnest([k, w])"), ["k+1", "unnest([k, w])"]);
    assert_eq!(found("SELECT 1, 1"), ["1", "1"]);
    assert_eq!(found("SELECT \"sum(k)\" + 1 AS a FROM (SELECT sum(k) FROM t)"), ["a"]);
    for session in [&pair.cpu, &pair.device] {
        session.execute("CREATE TABLE named AS SELECT k*2, sum(w) FROM t GROUP BY k*2").unwrap();
        assert_eq!(run(session, "FROM named").unwrap().column_names(), ["k*2", "sum(w)"]);
    }
}

#[test]
fn a_distinct_query_is_in_the_order_of_what_it_selects() {
    let pair = pair();
    pair.check_all(&[
        "SELECT DISTINCT k % 3 FROM t ORDER BY k % 3 DESC NULLS LAST",
        "SELECT DISTINCT k % 3 AS a, w FROM t ORDER BY w, k % 3",
    ]);
}

#[test]
fn types_have_the_names_of_sql() {
    let pair = pair();
    let types = "a UTINYINT, b USMALLINT, c UINTEGER, d UBIGINT, e TINYINT, f SMALLINT, g INTEGER, \
        h BIGINT, i FLOAT, j DOUBLE, k DECIMAL(10,2), l VARCHAR, m BLOB, n BOOLEAN, o DATE, p TIME, \
        q TIMESTAMP, r TIMESTAMP_S, s TIMESTAMP_MS, t TIMESTAMP_NS, u TIMESTAMP WITH TIME ZONE, \
        v INTERVAL, w INTEGER[], x STRUCT(a INTEGER, \"b c\" VARCHAR[]), \
        y STRUCT(a STRUCT(b DOUBLE, c DECIMAL(5,1)))[]";
    for session in [&pair.cpu, &pair.device] {
        session.execute(&format!("CREATE TABLE kinds ({types})")).unwrap();
        let made = session.create_statement("kinds").unwrap();
        let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(plain(&made), format!("CREATE TABLE kinds ( {} );", plain(types)));
        session.execute("DROP TABLE kinds").unwrap();
        session.execute(&made).unwrap();
        assert_eq!(session.create_statement("kinds").unwrap(), made);
        let found = Rows::of(&run(session, "DESCRIBE kinds").unwrap());
        assert_eq!(found.rows[11][1], Cell::Text("VARCHAR".into()));
        session.execute("CREATE VIEW \"of kinds\" AS SELECT g + 1 FROM kinds").unwrap();
        let view = session.create_statement("of kinds").unwrap();
        session.execute("DROP VIEW \"of kinds\"").unwrap();
        session.execute(&view).unwrap();
        assert_eq!(run(session, "FROM \"of kinds\"").unwrap().column_names(), ["g + 1"]);
        let version = Rows::of(&run(session, "SELECT version()").unwrap());
        assert_eq!(
            version.rows[0][0],
            Cell::Text(concat!("warpframe ", env!("CARGO_PKG_VERSION")).into())
        );
    }
    let value = "SELECT struct(id, k), STRUCT (id) FROM t";
    pair.check(value);
}
