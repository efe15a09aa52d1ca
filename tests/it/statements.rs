//! Statements do all or nothing, and take values as values.

use warpframe::sql::Text;
use warpframe::{Error, ErrorKind, Executed, Session};

use crate::differential::{Cell, Pair, run, scalar};

fn both(check: impl Fn(&Session)) {
    let pair = Pair::new();
    for session in [&pair.device, &pair.cpu] {
        check(session);
    }
}

fn all(session: &Session, statements: &[&str]) {
    for statement in statements {
        session.execute(statement).unwrap_or_else(|error| panic!("{error}\n  {statement}"));
    }
}

fn failed(session: &Session, statement: &str) -> Error {
    match session.execute(statement) {
        Err(error) => error,
        Ok(Executed::Rows(rows)) => rows.collect().expect_err(statement),
        Ok(done) => panic!("{done:?}\n  {statement}"),
    }
}

fn numbers(session: &Session, sql: &str, column: &str) -> Vec<i64> {
    let Executed::Rows(rows) = session.execute(sql).unwrap_or_else(|e| panic!("{e}\n  {sql}"))
    else {
        panic!("{sql} has no rows")
    };
    let rows = rows.collect().unwrap_or_else(|error| panic!("{error}\n  {sql}"));
    rows.column(column).and_then(|column| column.to_vec::<i64>()).expect("integers")
}

#[test]
fn lists_of_names_are_dropped_and_emptied_all_or_none() {
    both(|session| {
        all(
            session,
            &[
                "CREATE TABLE a AS SELECT 1 AS x",
                "CREATE TABLE b AS SELECT 2 AS x",
                "CREATE VIEW v AS FROM a",
                "CREATE VIEW w AS FROM b",
                "CREATE SCHEMA s",
                "CREATE SCHEMA r",
                "CREATE TABLE r.t (x INT)",
            ],
        );
        for statement in [
            "DROP TABLE a, nosuch",
            "DROP TABLE IF EXISTS a, v",
            "DROP VIEW v, nosuch",
            "DROP VIEW v, a",
            "TRUNCATE a, nosuch",
            "TRUNCATE a, v",
            "DROP SCHEMA s, nosuch",
            "DROP SCHEMA s, r",
        ] {
            failed(session, statement);
            assert_eq!(session.table_names(), ["a", "b", "v", "w"], "{statement}");
            assert_eq!(session.schema_names(), ["public", "r", "s"], "{statement}");
            assert_eq!(scalar(session, "SELECT sum(x) FROM a"), Cell::Int(1), "{statement}");
        }
        let emptied = session.execute("TRUNCATE a, b, a").expect("tables");
        assert!(matches!(emptied, Executed::Changed(2)), "{emptied:?}");
        all(session, &["DROP VIEW v, w", "DROP TABLE IF EXISTS nosuch, a, b", "DROP SCHEMA s"]);
        assert!(session.table_names().is_empty());
    });
}

#[test]
fn exports_have_line_ends_semicolons_and_dollars_in_texts_and_names() {
    both(|session| {
        let text = "SELECT 'a\nb; c' AS s, $$d'\n;$$ AS t, x FROM \"odd\n;'name\"";
        all(
            session,
            &[
                "CREATE TABLE \"odd\n;'name\" AS SELECT 7 AS x",
                "CREATE TABLE \"x AS FROM 'y'\" AS SELECT 8 AS x",
                &format!("CREATE VIEW \"v\n1\" AS {text}"),
            ],
        );
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("it's all").display().to_string().replace('\'', "''");
        all(session, &[&format!("EXPORT DATABASE '{path}'")]);
        let before = run(session, text).expect("a query");
        let other = Pair::new();
        for other in [&other.device, &other.cpu] {
            all(other, &[&format!("IMPORT DATABASE '{path}'")]);
            let after = run(other, "FROM \"v\n1\"").expect("a view");
            assert_eq!(after.to_string(), before.to_string());
            assert_eq!(scalar(other, "SELECT x FROM \"x AS FROM 'y'\""), Cell::Int(8));
        }
    });
}

#[test]
fn an_import_that_fails_leaves_all_as_it_was() {
    both(|session| {
        all(session, &["CREATE TABLE t AS SELECT 1 AS x", "CREATE VIEW v AS FROM t"]);
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("schema.sql");
        for wrong in ["CREATE VIEW w AS FROM nosuch;", "SELECT 'open"] {
            let text = format!(
                "CREATE SCHEMA s; CREATE TABLE s.u AS SELECT 1 AS x;\nCREATE TABLE u (x INT);\n\
                 INSERT INTO t VALUES (2); CREATE OR REPLACE TABLE t AS SELECT 5 AS y;\n{wrong}\n"
            );
            std::fs::write(&script, text).expect("a file");
            failed(session, &format!("IMPORT DATABASE '{}'", folder.path().display()));
            assert_eq!(session.schema_names(), ["public"], "{wrong}");
            assert_eq!(session.table_names(), ["t", "v"], "{wrong}");
            assert_eq!(scalar(session, "SELECT sum(x) FROM v"), Cell::Int(1), "{wrong}");
        }
    });
}

#[test]
fn parameters_have_their_numbers_in_the_order_of_the_text() {
    both(|session| {
        all(
            session,
            &[
                "PREPARE q AS SELECT i FROM range(1, 11) t(i) OFFSET ? LIMIT ?",
                "PREPARE f AS FROM (SELECT ? AS a) SELECT ? AS b, a",
                "PREPARE w AS WITH c AS (SELECT ? AS a) SELECT a, ? AS b FROM c WHERE a < ?",
            ],
        );
        assert_eq!(numbers(session, "EXECUTE q(3, 5)", "i"), [4, 5, 6, 7, 8]);
        assert_eq!(numbers(session, "EXECUTE f(1, 2)", "a"), [1]);
        assert_eq!(numbers(session, "EXECUTE f(1, 2)", "b"), [2]);
        assert_eq!(numbers(session, "EXECUTE w(1, 2, 3)", "b"), [2]);
        assert!(failed(session, "EXECUTE q(3)").to_string().contains("no value"));
    });
}

#[test]
fn values_of_execute_are_constants() {
    both(|session| {
        all(
            session,
            &[
                "CREATE TABLE t AS SELECT * FROM (VALUES (1, 1), (2, 3)) v(a, b)",
                "PREPARE p AS SELECT a FROM t WHERE a = $1",
                "PREPARE l AS SELECT a FROM t WHERE a = $1[1]",
            ],
        );
        for (value, what) in [
            ("b", "column b"),
            ("t.b", "column t.b"),
            ("1 + b", "column b"),
            ("(SELECT max(b) FROM t)", "subquery"),
            ("list_transform([1], x -> y)[1]", "column y"),
        ] {
            let error = failed(session, &format!("EXECUTE p({value})")).to_string();
            assert!(error.contains("no constant") && error.contains(what), "{error}");
        }
        assert_eq!(numbers(session, "EXECUTE p(1 + 1)", "a"), [2]);
        assert_eq!(numbers(session, "EXECUTE p(CAST('1' AS INT))", "a"), [1]);
        assert_eq!(numbers(session, "EXECUTE l(list_transform([1], x -> x + 1))", "a"), [2]);
    });
}

#[test]
fn names_of_ours_are_free() {
    both(|session| {
        all(
            session,
            &[
                "CREATE TABLE t AS SELECT * FROM (VALUES (1, 2, 3, 4), (1, 2, 3, 5), (2, 2, 3, 5)) \
                 v(__mode_0, __mode_1, __drawn_1, __changed_1)",
                "CREATE TABLE u AS SELECT 1 AS __outer_1, 1 AS __sought_1, 1 AS __number_1",
                "UPDATE t SET __drawn_1 = __drawn_1 + 1.0 WHERE __changed_1 = 4",
            ],
        );
        let sql = "SELECT __mode_0 AS k, mode(__mode_1 + __changed_1) AS m FROM t \
                   GROUP BY __mode_0 ORDER BY k";
        assert_eq!(numbers(session, sql, "m"), [6, 7]);
        let sql = "SELECT mode(__changed_1) OVER (PARTITION BY __mode_1) AS m FROM t";
        assert_eq!(numbers(session, sql, "m"), [5, 5, 5]);
        let sql = "SELECT sum(__drawn_1 + floor(random()))::BIGINT AS m FROM t";
        assert_eq!(numbers(session, sql, "m"), [10]);
        let sql = "SELECT (SELECT max(t.__changed_1) FROM t WHERE t.__mode_0 = u.__outer_1) AS m, \
                   __outer_1 IN (SELECT __mode_0 FROM t) AS c, \
                   EXISTS (SELECT 1 FROM t WHERE __mode_0 > __outer_1) AS e FROM u";
        assert_eq!(numbers(session, sql, "m"), [5]);
        let error = failed(session, "SELECT \"share of rows\"('10')");
        assert!(!matches!(error.kind(), ErrorKind::Internal { .. }), "{error}");
        let error = failed(session, "INSERT INTO u (\"columns by name\") SELECT 1 AS __outer_1");
        assert!(error.to_string().contains("is none of table"), "{error}");
        all(session, &["CREATE TABLE n (\"columns by name\" INT, x INT)"]);
        all(session, &["INSERT INTO n (\"columns by name\") SELECT 1 AS x"]);
        assert_eq!(scalar(session, "SELECT count(\"columns by name\") FROM n"), Cell::Int(1));
        all(session, &["INSERT INTO n BY NAME SELECT 3 AS x"]);
        assert_eq!(scalar(session, "SELECT sum(x) FROM n"), Cell::Int(3));
        for condition in ["NULL", "TRUE", "FALSE", "a.x = b.x"] {
            let sql = format!("SELECT * FROM n a ASOF JOIN n b MATCH_CONDITION ({condition})");
            let error = failed(session, &sql).to_string();
            assert!(error.contains("write the comparison in ON"), "{error}");
        }
    });
    // What a view is made of are forms written out.
    both(|session| {
        all(
            session,
            &[
                "CREATE TABLE a AS SELECT i FROM range(0, 10) t(i)",
                "CREATE VIEW p AS SELECT a.i, b.i AS j FROM a POSITIONAL JOIN (SELECT i FROM a WHERE i < 5) b",
                "CREATE VIEW q AS SELECT a.i, b.i AS j FROM a ASOF LEFT JOIN (SELECT i FROM a WHERE i > 5) b ON a.i >= b.i",
                "CREATE VIEW s AS SELECT i FROM a ORDER BY i LIMIT 20%",
            ],
        );
        for (sql, expected) in [
            ("SELECT count(*) FROM p", 10),
            ("SELECT sum(j) FROM p", 10),
            ("SELECT sum(j) FROM q", 30),
            ("SELECT count(*) FROM q", 10),
            ("SELECT count(*) FROM s", 2),
        ] {
            assert_eq!(scalar(session, sql), Cell::Int(expected), "{sql}");
        }
    });
}

#[test]
fn bars_among_digits_are_of_the_number() {
    both(|session| {
        for (text, expected) in [
            ("1_000", Cell::Int(1000)),
            ("1_000e1", Cell::Float(10_000.0)),
            ("1_000e-1", Cell::Float(100.0)),
            ("1_0_0", Cell::Int(100)),
            ("CAST(1_000.5 AS DOUBLE)", Cell::Float(1000.5)),
            ("CAST(1_000.5e1 AS DOUBLE)", Cell::Float(10_005.0)),
        ] {
            assert_eq!(scalar(session, &format!("SELECT {text} AS x")), expected, "{text}");
        }
        assert_eq!(numbers(session, "SELECT 1_000x, 2_0AS y", "x"), [1000]);
        assert_eq!(numbers(session, "SELECT 1_000x, 2_0AS y", "y"), [20]);
        assert_eq!(numbers(session, "SELECT 1 _000", "_000"), [1]);
    });
}

#[test]
fn options_have_bounds() {
    both(|session| {
        for (name, value) in [
            ("datafusion.sql_parser.recursion_limit", "1000000"),
            ("datafusion.sql_parser.recursion_limit", "0"),
            ("datafusion.optimizer.max_passes", "0"),
            ("datafusion.execution.batch_size", "0"),
            ("datafusion.execution.batch_size", "1e18"),
            ("datafusion.execution.target_partitions", "1000000000"),
            ("datafusion.execution.planning_concurrency", "1000000000"),
        ] {
            let error = failed(session, &format!("SET {name} = {value}")).to_string();
            assert!(error.contains(name) && error.contains("is a number from"), "{error}");
            assert!(session.set_setting(name, value).is_err(), "{name}");
        }
        all(
            session,
            &[
                "SET datafusion.optimizer.max_passes = 2",
                "RESET datafusion.optimizer.max_passes",
                "SET datafusion.sql_parser.recursion_limit = 60",
                "RESET datafusion.sql_parser.recursion_limit",
            ],
        );
    });
}

#[test]
fn errors_name_their_place_in_the_script() {
    let script = Text::from(
        "SELECT CAST('x7' AS INT);\nCREATE TABLE t AS SELECT 'y7'::INT AS n;\n\
         SELECT nobody(1);\nCOPY (SELECT 1 +) TO 'x.csv';\nBEGIN; SELECT 1 FORM t",
    );
    both(|session| {
        let failed = |at: usize| {
            let statement = &script.statements()[at];
            match session.execute_text(statement) {
                Err(error) => error,
                Ok(Executed::Rows(rows)) => statement.locate(rows.collect().expect_err("it fails")),
                Ok(done) => panic!("{done:?}\n  {}", statement.as_str()),
            }
        };
        let places = [(1, 13), (2, 26), (3, 8), (4, 17), (5, 1), (5, 22)];
        for (at, place) in places.into_iter().enumerate() {
            let error = failed(at);
            assert_eq!(error.location(), Some(place), "{error}");
            assert_eq!(error.hint(), (at == 5).then_some("did you mean FROM?"));
        }
        assert!(matches!(failed(4).kind(), ErrorKind::NotAQuery { executes: false, .. }));
        match failed(2).kind() {
            ErrorKind::FunctionNotFound { name, known } => {
                assert!(name == "nobody" && known.contains(&"upper".into()), "{known:?}")
            }
            other => panic!("{other:?}"),
        }
    });
}
