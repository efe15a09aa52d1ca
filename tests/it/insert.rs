//! `CREATE TABLE` with columns, and `INSERT`.

use warpframe::arrow::datatypes::DataType;
use warpframe::{ErrorKind, Executed, Session};

use crate::differential::{Cell, Pair, Rows, run};

fn rows(session: &Session, sql: &str) -> Vec<Vec<Cell>> {
    Rows::of(&run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))).rows
}

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

/// How many rows an INSERT put in.
fn insert(session: &Session, sql: &str) -> usize {
    match session.execute(sql) {
        Ok(Executed::Changed(rows)) => rows,
        other => panic!("{sql}: {other:?}"),
    }
}

#[track_caller]
fn refused(session: &Session, sql: &str, says: &[&str]) {
    let told = session.execute(sql).expect_err(sql).to_string();
    for what in says {
        assert!(told.contains(what), "{sql}: {told}: {what}");
    }
}

#[test]
fn created_tables_have_the_columns_of_their_statement() {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        let made = "CREATE TABLE T (a INT, \"B\" TEXT, c DECIMAL(12, 3), d TIMESTAMP)";
        let made = session.execute(made).unwrap();
        assert!(matches!(made, Executed::Done(what) if what == "table t"));
        let schema = session.schema("t").unwrap();
        let fields: Vec<_> = schema
            .fields()
            .iter()
            .map(|field| (field.name().as_str(), field.data_type()))
            .collect();
        assert_eq!(fields[0], ("a", &DataType::Int32));
        assert_eq!((fields[1].0, fields[2]), ("B", ("c", &DataType::Decimal128(12, 3))));
        assert!(schema.fields().iter().all(|field| field.is_nullable()));
        assert_eq!(rows(session, "SELECT * FROM t"), Vec::<Vec<Cell>>::new());
        assert_eq!(
            rows(session, "SELECT count(*), sum(a), max(\"B\") FROM t"),
            [[Cell::Int(0), Cell::Null, Cell::Null]]
        );
        // Its name is taken.
        refused(session, "CREATE TABLE t (x INT)", &["there is a table named \"t\""]);
        session.execute("CREATE TABLE IF NOT EXISTS t (x INT)").unwrap();
        assert_eq!(session.schema("t").unwrap().fields().len(), 4);
        session.execute("CREATE OR REPLACE TABLE t (x INT)").unwrap();
        assert_eq!(session.schema("t").unwrap().fields().len(), 1);
    }
    for (sql, says) in [
        ("CREATE TABLE u (a INT, A INT)", "two columns are named \"a\""),
        ("CREATE TABLE u (a NONSENSE)", "NONSENSE"),
        ("CREATE TABLE u (a INT) AS SELECT 1", "columns and a query"),
        ("CREATE TABLE s.u (a INT)", "no schema named \"s\""),
        ("CREATE TABLE u (a INT) ENGINE = InnoDB", "clauses of other systems"),
    ] {
        refused(&pair.cpu, sql, &[says]);
    }
    assert_eq!(pair.cpu.table_names(), ["t"]);
}

#[test]
fn values_get_the_types_of_their_columns() {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session
            .execute(
                "CREATE TABLE t (i INT, m DECIMAL(20, 4), d DATE, s TEXT, x DOUBLE, b BOOLEAN)",
            )
            .unwrap();
        let insert = |sql: &str| insert(session, sql);
        assert_eq!(
            insert("INSERT INTO t VALUES (1, 1234567890123456.7895, '2024-02-29', 'é', 1, true)"),
            1
        );
        assert_eq!(
            insert(
                "insert into T values (NULL, -0.00005, NULL, 7, NULL, 'false'), ('-2', 3, NULL, '', 0.5, NULL)"
            ),
            2
        );
        assert_eq!(insert("INSERT INTO t (s, I) SELECT s || '!', i * 10 FROM t WHERE i > 0"), 1);
        assert_eq!(insert("INSERT INTO t SELECT * FROM t WHERE false"), 0);
        let cents = |n| Cell::Int(n);
        let expected = [
            vec![Cell::Int(-2), cents(30_000), Cell::Null, text(""), Cell::Float(0.5), Cell::Null],
            vec![
                Cell::Int(1),
                cents(12_345_678_901_234_567_895),
                Cell::Int(19_782),
                text("é"),
                Cell::Float(1.0),
                Cell::Int(1),
            ],
            vec![Cell::Int(10), Cell::Null, Cell::Null, text("é!"), Cell::Null, Cell::Null],
            vec![Cell::Null, cents(-1), Cell::Null, text("7"), Cell::Null, Cell::Int(0)],
        ];
        assert_eq!(rows(session, "SELECT * FROM t ORDER BY i"), expected);
        let types: Vec<_> = session
            .schema("t")
            .unwrap()
            .fields()
            .iter()
            .map(|field| field.data_type().clone())
            .collect();
        assert_eq!(types[1], DataType::Decimal128(20, 4));
        assert_eq!((&types[0], &types[2]), (&DataType::Int32, &DataType::Date32));
    }
}

#[test]
fn rows_are_inserted_into_tables_that_a_session_keeps() {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_table("kept", &run(session, "SELECT 1 AS a, 'x' AS b").unwrap()).unwrap();
        // Of two columns of one name.
        let twice = "INSERT INTO kept SELECT l.a, r.b FROM kept l JOIN kept r ON l.b = r.b";
        assert_eq!(insert(session, twice), 1);
        assert_eq!(
            insert(session, "INSERT INTO kept SELECT l.a, r.a FROM kept l CROSS JOIN kept r"),
            4
        );
        assert_eq!(
            rows(session, "SELECT a, b, count(*) FROM kept GROUP BY a, b ORDER BY b"),
            [[Cell::Int(1), text("1"), Cell::Int(4)], [Cell::Int(1), text("x"), Cell::Int(2)],]
        );
        assert_eq!(
            insert(session, "INSERT INTO kept WITH q AS (SELECT 5 AS n) SELECT n, NULL FROM q"),
            1
        );
        assert_eq!(rows(session, "SELECT a FROM kept WHERE b IS NULL"), [[Cell::Int(5)]]);
        let files = "INSERT INTO kept SELECT n_nationkey, n_name FROM 'data/tpch/nation.parquet'";
        assert_eq!(insert(session, files), 25);
    }
}

#[test]
fn what_does_not_fit_is_named_and_leaves_the_table_as_it_was() {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.execute("CREATE TABLE t (a SMALLINT, b DATE)").unwrap();
        insert(session, "INSERT INTO t VALUES (1, NULL)");
        session.register_parquet("nation", "data/tpch/nation.parquet").unwrap();
        for (sql, says) in [
            ("INSERT INTO t VALUES (1)", &["rows of 1 value for 2 columns: a, b"][..]),
            ("INSERT INTO t (a) VALUES (1, 2)", &["rows of 2 values for 1 column: a"]),
            (
                "INSERT INTO t (c) VALUES (1)",
                &["column \"c\" is none of table \"t\", which has a, b"],
            ),
            ("INSERT INTO t (a, A) VALUES (1, 1)", &["named twice"]),
            ("INSERT INTO t VALUES (1, NULL), (70000, NULL)", &["column \"a\"", "70000"]),
            ("INSERT INTO t VALUES ('one', NULL)", &["column \"a\"", "one"]),
            ("INSERT INTO t VALUES (1, 'soon')", &["column \"b\"", "soon"]),
            ("INSERT INTO nation VALUES (1, 'x', 2, 'y')", &["\"nation\"", "those of its files"]),
            ("INSERT INTO t SELECT * FROM missing", &["missing"]),
            ("INSERT INTO t VALUES (1, NULL) ON CONFLICT DO NOTHING", &["ON CONFLICT"]),
            ("INSERT INTO t VALUES (1, NULL) RETURNING a", &["RETURNING"]),
            ("INSERT OVERWRITE t VALUES (1, NULL)", &["OVERWRITE"]),
        ] {
            refused(session, sql, says);
        }
        let error = session.execute("INSERT INTO nowhere VALUES (1)").expect_err("no such table");
        assert!(
            matches!(error.kind(), ErrorKind::TableNotFound { name, .. } if name == "nowhere"),
            "{error:?}"
        );
        assert_eq!(error.location(), Some((1, 13)));
        assert_eq!(
            session
                .sql("INSERT INTO t VALUES (2, NULL)")
                .map(|_| ())
                .expect_err("no query")
                .to_string()
                .matches("Session::execute")
                .count(),
            1
        );
        // Whole numbers of any type are integers.
        insert(session, "INSERT INTO t (a) VALUES (2e0), (CAST(3 AS DECIMAL(5, 2)))");
        assert_eq!(rows(session, "SELECT sum(a) FROM t"), [[Cell::Int(6)]]);
    }
}

#[test]
fn rows_go_by_the_names_of_their_columns() {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.execute("CREATE TABLE t (a INT, b VARCHAR, c DOUBLE)").unwrap();
        let inserted = |sql: &str| insert(session, sql);
        assert_eq!(inserted("INSERT INTO t BY NAME SELECT 1.5 AS c, 7 AS a"), 1);
        assert_eq!(inserted("insert into t by name SELECT 'x' AS b, a + 1 AS A FROM t"), 1);
        assert_eq!(inserted("INSERT INTO t BY POSITION SELECT 9, 'y', 0"), 1);
        assert_eq!(inserted("INSERT INTO t BY NAME FROM t WHERE a = 9"), 1);
        assert_eq!(inserted("INSERT INTO t (a, b, c) FROM t WHERE a = 0"), 0);
        let expected = [
            vec![Cell::Int(7), Cell::Null, Cell::Float(1.5)],
            vec![Cell::Int(8), text("x"), Cell::Null],
            vec![Cell::Int(9), text("y"), Cell::Float(0.0)],
            vec![Cell::Int(9), text("y"), Cell::Float(0.0)],
        ];
        assert_eq!(rows(session, "SELECT * FROM t ORDER BY a"), expected);
        refused(session, "INSERT INTO t BY NAME SELECT 1 AS nobody", &["nobody", "a, b, c"]);
        refused(session, "INSERT INTO t BY NAME SELECT 1", &["is none of table"]);
        refused(session, "INSERT INTO t BY NAME SELECT 1 AS a, 2 AS a", &["twice"]);
        refused(session, "INSERT INTO t BY NAME VALUES (1)", &["BY NAME"]);
        assert_eq!(rows(session, "SELECT count(*) FROM t"), [[Cell::Int(4)]]);
    }
}
