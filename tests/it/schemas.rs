//! Schemas: which table a name means, whatever is in use, and that no statement loses rows of
//! another schema.

use warpframe::{ErrorKind, ExplainFormat, Session};

use crate::differential::{Cell, Pair, run, scalar};

/// Executes a statement in both sessions.
fn both(pair: &Pair, statement: &str) {
    for session in [&pair.cpu, &pair.device] {
        session.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

fn number(pair: &Pair, sql: &str) -> i64 {
    let Cell::Int(of_cpu) = scalar(&pair.cpu, sql) else { panic!("{sql}: no number") };
    let Cell::Int(of_device) = scalar(&pair.device, sql) else { panic!("{sql}: no number") };
    assert_eq!(of_cpu, of_device, "{sql}");
    of_device as i64
}

fn made() -> Pair {
    let pair = Pair::new();
    for statement in [
        "CREATE SCHEMA raw",
        "CREATE TABLE t AS SELECT * FROM (VALUES (1), (2), (3)) v(a)",
        "CREATE TABLE raw.t AS SELECT * FROM (VALUES (10), (20)) v(a)",
    ] {
        both(&pair, statement);
    }
    pair
}

#[test]
fn a_text_means_the_tables_of_the_schema_in_use() {
    let pair = made();
    for _ in 0..2 {
        // The query's text repeats; its plan is kept in between.
        assert_eq!(number(&pair, "SELECT sum(a) FROM t"), 6);
        both(&pair, "USE raw");
        assert_eq!(number(&pair, "SELECT sum(a) FROM t"), 30);
        assert_eq!(
            number(&pair, "SELECT sum(t.a) + sum(p.a) FROM t JOIN public.t p ON p.a = 1"),
            32
        );
        both(&pair, "USE public");
    }
    pair.check("SELECT t.a, r.a FROM t JOIN raw.t r ON r.a = t.a * 10 ORDER BY 1");
    pair.check("SELECT raw.t.a, public.t.a AS b FROM raw.t JOIN public.t ON raw.t.a > public.t.a ORDER BY 1, 2");
}

#[test]
fn a_view_keeps_the_tables_that_its_names_meant() {
    let pair = made();
    both(
        &pair,
        "CREATE VIEW raw.sums AS WITH t AS (SELECT a + 1 AS a FROM t) SELECT sum(a) AS a FROM t",
    );
    both(&pair, "CREATE VIEW plain (b) AS SELECT max(a) FROM t WHERE a IN (SELECT a FROM t)");
    both(&pair, "USE raw");
    both(&pair, "CREATE VIEW own AS SELECT sum(a) AS a FROM t");
    assert_eq!(number(&pair, "SELECT a FROM sums"), 9);
    assert_eq!(number(&pair, "SELECT b FROM public.plain"), 3);
    both(&pair, "USE public");
    assert_eq!(number(&pair, "SELECT a FROM raw.own"), 30);
    both(&pair, "INSERT INTO raw.t VALUES (30)");
    assert_eq!(number(&pair, "SELECT a FROM raw.own"), 60);
}

#[test]
fn changes_are_of_the_schema_that_is_named() {
    let pair = made();
    both(&pair, "UPDATE raw.t SET a = a + 1");
    both(&pair, "DELETE FROM raw.t WHERE a = 21");
    both(&pair, "INSERT INTO raw.t SELECT a FROM t");
    both(&pair, "ALTER TABLE raw.t ADD COLUMN b INT DEFAULT 5");
    assert_eq!(number(&pair, "SELECT sum(a) FROM t"), 6);
    assert_eq!(number(&pair, "SELECT sum(a) + sum(b) FROM raw.t"), 17 + 20);
    both(&pair, "TRUNCATE raw.t");
    assert_eq!(number(&pair, "SELECT count(*) FROM t"), 3);
    both(&pair, "ALTER TABLE raw.t RENAME TO u");
    both(&pair, "DROP TABLE raw.u");
    assert_eq!(number(&pair, "SELECT count(*) FROM t"), 3);
    let error =
        pair.device.execute("ALTER TABLE t RENAME TO raw.t").expect_err("it keeps its schema");
    assert!(error.to_string().contains("keeps its schema"), "{error}");
}

#[test]
fn a_schema_with_tables_is_dropped_by_cascade_alone() {
    let pair = made();
    let session = &pair.device;
    for statement in [
        "DROP SCHEMA raw",
        "DROP SCHEMA raw RESTRICT",
        "DROP SCHEMA public CASCADE",
        "DROP SCHEMA files CASCADE",
    ] {
        let error = session.execute(statement).expect_err(statement);
        assert!(
            matches!(error.kind(), ErrorKind::Plan { .. }) && error.location().is_some(),
            "{error:?}"
        );
    }
    session.execute("USE raw").expect("it is there");
    assert!(
        session
            .execute("DROP SCHEMA raw CASCADE")
            .expect_err("in use")
            .to_string()
            .contains("in use")
    );
    session.execute("USE public").expect("it is there");
    assert_eq!(scalar(session, "SELECT count(*) FROM raw.t"), Cell::Int(2));
    session.execute("DROP SCHEMA raw CASCADE").expect("nobody uses it");
    let error = run(session, "SELECT count(*) FROM raw.t").expect_err("it is gone");
    assert!(
        matches!(error.kind(), ErrorKind::SchemaNotFound { name, known } if name == "raw" && known == &["public"])
    );
    assert_eq!(session.schema_names(), ["public"]);
    session.execute("DROP SCHEMA IF EXISTS raw").expect("there is none");
}

/// Programs name tables by text, in which a dot may be part of a name.
#[test]
fn programs_name_tables_of_schemas_by_a_dot() {
    let pair = made();
    let session: &Session = &pair.device;
    assert_eq!(session.all_table_names(), ["t", "raw.t"]);
    assert_eq!(session.table("raw.t").and_then(|rows| rows.collect()).expect("rows").num_rows(), 2);
    let rows = session.table("t").and_then(|rows| rows.collect()).expect("rows");
    session.register_table("raw.u", &rows).expect("a schema and a name");
    session.append("raw.u", &rows).expect("more rows");
    assert_eq!(scalar(session, "SELECT count(*) FROM raw.u"), Cell::Int(6));
    session.deregister("raw.u").expect("it is there");
    assert!(session.table("raw.u").is_err());
    // No schema is called `v1`, so that the dot is of the name; and so it stays when one is.
    session.register_table("v1.t", &rows).expect("a name");
    session.execute("CREATE SCHEMA v1").expect("a schema");
    assert_eq!(session.table("v1.t").and_then(|rows| rows.collect()).expect("rows").num_rows(), 3);
    assert_eq!(scalar(session, "SELECT count(*) FROM \"v1.t\""), Cell::Int(3));
    assert!(run(session, "SELECT count(*) FROM v1.t").is_err());
}

#[test]
fn an_export_has_all_schemas() {
    let pair = made();
    both(&pair, "CREATE SCHEMA \"Odd name\"");
    both(&pair, "CREATE TABLE \"Odd name\".\"T.\" AS SELECT 7 AS a");
    both(
        &pair,
        "CREATE VIEW raw.v AS SELECT sum(t.a) + sum(o.a) AS a FROM t JOIN \"Odd name\".\"T.\" o ON true",
    );
    both(&pair, "CREATE SCHEMA empty");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("all").display().to_string();
    pair.device.execute("USE raw").expect("it is there");
    pair.device.execute(&format!("EXPORT DATABASE '{path}'")).expect("a new folder");
    let other = Pair::new();
    both(&other, &format!("IMPORT DATABASE '{path}'"));
    assert_eq!(other.device.schema_names(), ["Odd name", "empty", "public", "raw"]);
    assert_eq!(other.device.all_table_names(), ["t", "Odd name.T.", "raw.t", "raw.v"]);
    assert_eq!(number(&other, "SELECT a FROM raw.v"), 6 + 21);
    assert_eq!(number(&other, "SELECT sum(a) FROM raw.t"), 30);
}

#[test]
fn plans_are_objects_and_trees() {
    let pair = made();
    let sql = "SELECT t.a % 2 AS k, count(*) AS n FROM t JOIN raw.t r ON r.a = t.a * 10 GROUP BY k ORDER BY k";
    let frame = pair.device.sql(sql).expect("a query");
    let json: serde_json::Value =
        serde_json::from_str(&frame.explain_as(ExplainFormat::Json).expect("a plan")).unwrap();
    assert_eq!(json["plan"]["place"], "device");
    assert_eq!(json["joins_reordered"], false);
    let pipelines = json["plan"]["pipelines"].as_array().expect("pipelines");
    let operators =
        |pipeline: &serde_json::Value| pipeline["operators"].as_array().expect("operators").clone();
    let all: Vec<String> = pipelines
        .iter()
        .flat_map(operators)
        .map(|operator| operator["operator"].to_string())
        .collect();
    for expected in ["\"Sort\"", "\"Aggregate\"", "\"Inner Join\"", "\"TableScan\""] {
        assert!(all.iter().any(|operator| operator == expected), "{all:?}");
    }
    // Each pipeline but the first is read by one before it.
    let read: Vec<u64> = pipelines
        .iter()
        .flat_map(operators)
        .flat_map(|operator| operator["reads_pipelines"].as_array().cloned().unwrap_or_default())
        .map(|number| number.as_u64().expect("a number"))
        .collect();
    assert_eq!(read.len() + 1, pipelines.len(), "{json:#}");

    let tree = frame.explain_as(ExplainFormat::Tree).expect("a plan");
    let lines = frame.explain().expect("a plan");
    let operators = lines
        .lines()
        .filter(|line| !line.contains("  pipeline ") && !line.contains("rows of pipeline"));
    for operator in operators.filter_map(|line| line.strip_prefix("device")).map(str::trim) {
        let text = operator.split("    (").next().unwrap_or(operator);
        assert!(tree.contains(text), "{text} is not in\n{tree}");
    }
    assert_eq!(tree.matches("TableScan").count(), 2, "{tree}");
    let depth = |what: &str| {
        tree.lines().find_map(|line| line.find(what)).unwrap_or_else(|| panic!("{what}\n{tree}"))
    };
    assert!(
        depth("Sort") < depth("Aggregate") && depth("Aggregate") < depth("Inner Join"),
        "{tree}"
    );

    let frame = pair.cpu.sql(sql).expect("a query");
    let json: serde_json::Value =
        serde_json::from_str(&frame.explain_as(ExplainFormat::Json).expect("a plan")).unwrap();
    assert_eq!(json["plan"]["place"], "cpu");
    assert_eq!(json["plan"]["operator"], "Sort");
    assert!(frame.explain_as(ExplainFormat::Tree).expect("a plan").contains("└─ TableScan"));
}

#[test]
fn the_table_of_columns_has_types_as_sql_does() {
    let pair = Pair::new();
    for session in [&pair.device, &pair.cpu] {
        session
            .execute("CREATE TABLE t (a INT, s VARCHAR, p DECIMAL(10, 2), l BIGINT[])")
            .expect("a table");
        let of = |column: &str, what: &str| {
            let from = "information_schema.columns WHERE table_name = 't'";
            let query = format!("SELECT {what} FROM {from} AND column_name = '{column}'");
            scalar(session, &query)
        };
        for (column, number, dtype) in [
            ("a", 1, "INTEGER"),
            ("s", 2, "VARCHAR"),
            ("p", 3, "DECIMAL(10,2)"),
            ("l", 4, "BIGINT[]"),
        ] {
            assert_eq!(of(column, "data_type"), Cell::Text(dtype.into()), "{column}");
            assert_eq!(of(column, "ordinal_position"), Cell::Int(number), "{column}");
        }
        assert_eq!(of("p", "numeric_precision"), Cell::Int(10));
        assert_eq!(of("p", "is_nullable"), Cell::Text("YES".into()));
        // The same text sees what has changed.
        session.execute("ALTER TABLE t ADD COLUMN more DATE").expect("a column");
        let count = "SELECT count(*) FROM information_schema.columns WHERE table_name = 't'";
        assert_eq!(scalar(session, count), Cell::Int(5));
        session.execute("ALTER TABLE t DROP COLUMN l").expect("it is there");
        assert_eq!(scalar(session, count), Cell::Int(4));
    }
}
