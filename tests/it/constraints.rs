//! NOT NULL, DEFAULT, PRIMARY KEY, UNIQUE and CHECK: statements that break one change nothing.

use tempfile::tempdir;
use warpframe::{FileKind, Session};

use crate::differential::{Cell, Pair, Rows, run};

fn rows(session: &Session, sql: &str) -> Vec<Vec<Cell>> {
    Rows::of(&run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))).rows
}

fn ints(session: &Session, sql: &str) -> Vec<Vec<Option<i128>>> {
    let of = |cell: &Cell| match cell {
        Cell::Int(number) => Some(*number),
        _ => None,
    };
    rows(session, sql).iter().map(|row| row.iter().map(of).collect()).collect()
}

fn execute(session: &Session, sql: &str) {
    session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[track_caller]
fn refused(session: &Session, sql: &str, says: &str) {
    let told = session.execute(sql).expect_err(sql).to_string();
    assert!(told.contains(says), "{sql}: {told}");
}

#[test]
fn columns_without_null_take_none() {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        execute(session, "CREATE TABLE t (a INT NOT NULL, b TEXT)");
        execute(session, "INSERT INTO t VALUES (1, 'x'), (2, NULL)");
        let row = |row: u32| {
            format!("row {row}: column \"a\" of table \"t\" is NOT NULL, and has no value")
        };
        refused(session, "INSERT INTO t VALUES (3, 'y'), (NULL, 'z')", &row(2));
        refused(session, "INSERT INTO t (b) VALUES ('z')", &row(1));
        refused(session, "INSERT INTO t BY NAME SELECT 'z' AS b", &row(1));
        refused(session, "UPDATE t SET a = NULL WHERE b IS NULL", &row(2));
        refused(session, "UPDATE t SET a = nullif(a, 1)", &row(1));
        let directory = tempdir().unwrap();
        let path = directory.path().join("t.csv");
        std::fs::write(&path, "a,b\n7,q\n,r\n").unwrap();
        refused(session, &format!("COPY t FROM '{}'", path.display()), &row(2));
        let frame = session.sql("SELECT 'z' AS b").unwrap().collect().unwrap();
        let told = session.append("t", &frame).unwrap_err().to_string();
        assert!(told.contains(&row(1)), "{told}");
        assert!(session.append_files("t", &path, FileKind::Csv).is_err());
        assert_eq!(ints(session, "SELECT a FROM t ORDER BY a"), [[Some(1)], [Some(2)]]);
        // It stays so whatever becomes of the rows.
        execute(session, "UPDATE t SET a = a + 1");
        execute(session, "DELETE FROM t WHERE a = 2");
        execute(session, "ALTER TABLE t RENAME COLUMN a TO c");
        execute(session, "ALTER TABLE t RENAME TO u");
        refused(session, "INSERT INTO u VALUES (NULL, 'z')", "column \"c\" of table \"u\"");
        execute(session, "TRUNCATE u");
        refused(session, "INSERT INTO u VALUES (NULL, 'z')", "column \"c\" of table \"u\"");
        execute(session, "ALTER TABLE u ALTER COLUMN c DROP NOT NULL");
        execute(session, "INSERT INTO u VALUES (NULL, 'z')");
        refused(session, "ALTER TABLE u ALTER COLUMN c SET NOT NULL", "row 1: column \"c\"");
        // Another table of the name is another one.
        execute(session, "CREATE OR REPLACE TABLE u AS SELECT NULL::INT AS c");
        execute(session, "INSERT INTO u VALUES (NULL)");
    }
}

#[test]
fn columns_that_are_left_out_have_their_default() {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        execute(
            session,
            "CREATE TABLE t (a INT DEFAULT 7, b INT DEFAULT 2 + 3, d DECIMAL(9, 2) DEFAULT 1.25, \
             n INT)",
        );
        execute(session, "INSERT INTO t (n) VALUES (1), (2)");
        execute(session, "INSERT INTO t VALUES (DEFAULT, 4, DEFAULT, 3)");
        execute(session, "INSERT INTO t DEFAULT VALUES");
        execute(session, "INSERT INTO t BY NAME SELECT 5 AS n, NULL AS b");
        let found = ints(session, "SELECT a, b, (d * 100)::INT, n FROM t ORDER BY n");
        let row = |b, n| vec![Some(7), b, Some(125), n];
        let expected = [
            row(Some(5), Some(1)),
            row(Some(5), Some(2)),
            row(Some(4), Some(3)),
            row(None, Some(5)),
            row(Some(5), None),
        ];
        assert_eq!(found, expected);
        execute(session, "UPDATE t SET a = 9, b = DEFAULT, n = DEFAULT WHERE n = 5");
        assert_eq!(ints(session, "SELECT a, b, n FROM t WHERE a = 9"), [[Some(9), Some(5), None]]);
        let directory = tempdir().unwrap();
        let path = directory.path().join("t.csv");
        std::fs::write(&path, "n,a\n8,1\n").unwrap();
        execute(session, &format!("COPY t FROM '{}'", path.display()));
        assert_eq!(ints(session, "SELECT a, b FROM t WHERE n = 8"), [[Some(1), Some(5)]]);
        execute(session, "ALTER TABLE t ADD COLUMN m INT DEFAULT 4");
        execute(session, "ALTER TABLE t ALTER COLUMN a SET DEFAULT 6");
        execute(session, "ALTER TABLE t ALTER COLUMN b DROP DEFAULT");
        execute(session, "INSERT INTO t (n) VALUES (9)");
        assert_eq!(
            ints(session, "SELECT a, b, m FROM t WHERE n >= 8 ORDER BY n"),
            [[Some(1), Some(5), Some(4)], [Some(6), None, Some(4)]]
        );
        // Each row has its own.
        execute(
            session,
            "CREATE TABLE r (n INT, x DOUBLE DEFAULT random(), at TIMESTAMPTZ DEFAULT now())",
        );
        execute(session, "INSERT INTO r (n) SELECT i FROM range(50) t(i)");
        let query = "SELECT count(DISTINCT x), count(DISTINCT at), count(at) FROM r";
        assert_eq!(ints(session, query), [[Some(50), Some(1), Some(50)]]);
    }
}

#[test]
fn keys_are_in_one_row_each() {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        execute(session, "CREATE TABLE t (a INT PRIMARY KEY, b TEXT, c INT, UNIQUE (b, c))");
        execute(session, "INSERT INTO t VALUES (1, 'x', 1), (2, 'x', NULL), (3, 'x', NULL)");
        for (sql, says) in [
            (
                "INSERT INTO t VALUES (9, 'w', 1), (2, 'y', 1)",
                "row 2: PRIMARY KEY (a) of table \"t\" has 2 twice",
            ),
            ("INSERT INTO t VALUES (5, 'y', 1), (5, 'z', 1)", "PRIMARY KEY (a) of table \"t\""),
            (
                "INSERT INTO t VALUES (NULL, 'z', 1)",
                "column \"a\" of table \"t\" is of the PRIMARY KEY",
            ),
            (
                "INSERT INTO t VALUES (4, 'x', 1)",
                "row 1: UNIQUE (b, c) of table \"t\" has x, 1 twice",
            ),
            ("UPDATE t SET a = 1", "PRIMARY KEY (a) of table \"t\" has 1 twice"),
            ("UPDATE t SET c = 1 WHERE a = 2", "UNIQUE (b, c)"),
            ("ALTER TABLE t DROP COLUMN c", "column \"c\" is of UNIQUE (b, c)"),
            ("ALTER TABLE t ADD PRIMARY KEY (c)", "two primary keys"),
            ("ALTER TABLE t ADD UNIQUE (nope)", "no column named \"nope\""),
        ] {
            refused(session, sql, says);
        }
        assert_eq!(ints(session, "SELECT count(*), sum(a) FROM t"), [[Some(3), Some(6)]]);
        execute(session, "UPDATE t SET a = a + 1");
        execute(session, "CREATE TABLE u AS SELECT 1 AS a FROM range(2)");
        refused(session, "ALTER TABLE u ADD UNIQUE (a)", "UNIQUE (a) of table \"u\" has 1 twice");
    }
}

#[test]
fn conditions_are_false_for_no_row() {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        execute(
            session,
            "CREATE TABLE t (a INT CHECK (a > 0), b INT, CHECK (b IS NULL OR a < t.b))",
        );
        execute(session, "INSERT INTO t VALUES (1, 2), (NULL, NULL), (3, NULL)");
        for (sql, says) in [
            ("INSERT INTO t VALUES (1, 5), (0, 1)", "row 2: CHECK (a > 0) of table \"t\" is false"),
            ("INSERT INTO t VALUES (3, 2)", "row 1: CHECK (b IS NULL OR a < b)"),
            ("UPDATE t SET b = 1 WHERE a = 3", "row 3: CHECK (b IS NULL OR a < b)"),
            ("ALTER TABLE t ADD CHECK (a = 1)", "row 3: CHECK (a = 1)"),
            ("ALTER TABLE t RENAME COLUMN b TO c", "column \"b\" is of CHECK (b IS NULL OR a < b)"),
            ("ALTER TABLE t DROP COLUMN a", "column \"a\" is of CHECK (a > 0)"),
            ("CREATE TABLE u (a INT CHECK (nope > 0))", "no column named \"nope\""),
            ("CREATE TABLE u (a INT CHECK (a > (SELECT max(a) FROM t)))", "it is of one row"),
            ("CREATE TABLE u (a INT CHECK (sum(a) > 0))", "it is of one row"),
            ("CREATE TABLE u (a INT DEFAULT (SELECT 1))", "it is of one row"),
            ("CREATE TABLE u (a INT DEFAULT nope)", "no column named \"nope\""),
            ("CREATE TABLE u (a INT REFERENCES t (a))", "REFERENCES t"),
            ("CREATE TABLE u (a INT, FOREIGN KEY (a) REFERENCES t (a))", "FOREIGN KEY"),
            ("CREATE TABLE u (a INT, b INT GENERATED ALWAYS AS (a + 1) STORED)", "GENERATED"),
        ] {
            refused(session, sql, says);
        }
        assert_eq!(ints(session, "SELECT count(*), sum(a) FROM t"), [[Some(3), Some(4)]]);
        assert_eq!(session.table_names(), ["t"]);
        // A name of the table's own is no part of a condition.
        execute(session, "ALTER TABLE t RENAME TO v");
        execute(session, "INSERT INTO v VALUES (1, 2)");
    }
}

#[test]
fn constraints_are_written_and_stay() {
    let directory = tempdir().unwrap();
    let database = directory.path().join("my.wf");
    let on_cpu = || Session::builder().device(warpframe::DeviceChoice::Cpu).build().unwrap();
    let session = on_cpu();
    session.open(&database).unwrap();
    let made = "CREATE TABLE t (\n    a INTEGER NOT NULL DEFAULT 3,\n    \"B c\" VARCHAR DEFAULT 'x',\n    \
                d INTEGER,\n    PRIMARY KEY (d),\n    UNIQUE (a, \"B c\"),\n    CHECK (a > 0)\n);";
    execute(&session, made.trim_end_matches(';'));
    assert_eq!(session.create_statement("t").unwrap(), made);
    execute(&session, "INSERT INTO t (d) VALUES (1)");
    assert!(session.save().unwrap());
    execute(&session, "ALTER TABLE t ALTER COLUMN d SET DEFAULT 8");
    assert!(session.save().unwrap(), "what is said of a table is saved");
    assert!(!session.save().unwrap());
    execute(&session, &format!("EXPORT DATABASE '{}'", directory.path().join("out").display()));
    drop(session);
    let check = |session: &Session, table: &str| {
        let told = session.create_statement(table).unwrap();
        assert!(told.contains("    d INTEGER DEFAULT 8,\n    PRIMARY KEY (d),\n"), "{told}");
        execute(session, &format!("INSERT INTO {table} (a) VALUES (5)"));
        refused(session, &format!("INSERT INTO {table} (a) VALUES (6)"), "PRIMARY KEY (d)");
        refused(session, &format!("INSERT INTO {table} (a, d) VALUES (0, 4)"), "CHECK (a > 0)");
        refused(session, &format!("INSERT INTO {table} (a, d) VALUES (NULL, 4)"), "NOT NULL");
    };
    let opened = on_cpu();
    opened.open(&database).unwrap();
    check(&opened, "t");
    drop(opened);
    let attached = on_cpu();
    execute(&attached, &format!("ATTACH '{}' AS w", database.display()));
    check(&attached, "w.t");
    let imported = on_cpu();
    execute(&imported, &format!("IMPORT DATABASE '{}'", directory.path().join("out").display()));
    check(&imported, "t");
}
