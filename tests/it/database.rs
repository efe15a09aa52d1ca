//! Databases that stay.

use std::path::Path;

use warpframe::prelude::*;
use warpframe::{ErrorKind, SessionBuilder};

use crate::differential::builder;

fn session() -> Session {
    builder().user_code(true).build().unwrap()
}

fn value(session: &Session, sql: &str) -> i64 {
    session.sql(sql).unwrap().collect().unwrap().item::<i64>().unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn schemas_tables_functions_and_views_stay() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("my.wf");
    let first = session();
    first.open(&folder).unwrap();
    for statement in [
        "CREATE SCHEMA raw",
        "CREATE TABLE raw.\"odd 'name\" AS SELECT 1 AS \"a b\", [1, NULL] AS l, 'é' AS s",
        "CREATE TABLE t AS SELECT range AS i FROM range(0, 100)",
        "CREATE FUNCTION twice(n BIGINT) RETURNS BIGINT LANGUAGE CUDA AS $$ return 2 * n; $$",
        // By names that come before those of what they read.
        "CREATE VIEW b AS SELECT i FROM t WHERE i < 10",
        "CREATE VIEW a AS SELECT sum(i) AS n FROM b",
    ] {
        first.execute(statement).unwrap();
    }
    assert!(first.save().unwrap());
    assert!(!first.save().unwrap(), "nothing changed");
    assert!(first.unsaved_tables().unwrap().is_empty());
    let before = files(&folder);
    first.execute("INSERT INTO t VALUES (1000)").unwrap();
    assert!(first.save().unwrap());
    // The file of the table that did not change stays, the old one of the other is gone.
    let after = files(&folder);
    assert_eq!(after.len(), before.len());
    assert_eq!(after.iter().filter(|name| !before.contains(name)).count(), 1);
    // What is not saved is not there.
    first.execute("DROP TABLE raw.\"odd 'name\"").unwrap();
    drop(first);

    let second = session();
    second.open(&folder).unwrap();
    assert_eq!(second.database().as_deref(), Some(folder.as_path()));
    assert_eq!(value(&second, "SELECT count(*) FROM t"), 101);
    assert_eq!(value(&second, "SELECT n FROM a"), 45);
    assert_eq!(value(&second, "SELECT twice(21)"), 42);
    assert_eq!(value(&second, "SELECT \"a b\" FROM raw.\"odd 'name\" WHERE s = 'é'"), 1);
    assert!(!second.save().unwrap(), "it is as it was opened");
}

#[test]
fn one_session_has_a_database_and_others_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("my.wf");
    let first = session();
    first.open(&folder).unwrap();
    first.execute("CREATE TABLE t AS SELECT 1 AS i").unwrap();
    first.save().unwrap();
    let second = session();
    let error = second.open(&folder).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::File { .. }), "{error:?}");
    assert!(error.to_string().contains("another process has this database open"), "{error}");
    let again = first.open(directory.path().join("other.wf")).unwrap_err();
    assert!(again.to_string().contains("is open already"), "{again}");
    drop(first);
    second.open(&folder).unwrap();
    assert_eq!(value(&second, "SELECT i FROM t"), 1);
}

#[test]
fn what_is_no_database_is_refused_and_nothing_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("notes.txt"), "mine").unwrap();
    let refused = |path: &Path, with: SessionBuilder, why: &str| {
        let session = with.build().unwrap();
        session.execute("CREATE TABLE mine AS SELECT 7 AS i").unwrap();
        let error = session.open(path).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert!(session.database().is_none());
        assert_eq!(session.table_names(), ["mine"]);
        assert!(session.save().is_err());
    };
    refused(directory.path(), builder(), "it has other files");
    refused(&directory.path().join("notes.txt"), builder(), "a database is a folder");
    assert_eq!(files(directory.path()), ["notes.txt"]);

    let folder = directory.path().join("my.wf");
    let first = session();
    first.open(&folder).unwrap();
    first.execute("CREATE TABLE t AS SELECT 1 AS i").unwrap();
    first.execute("CREATE TABLE u AS SELECT 2 AS i").unwrap();
    let twice = "CREATE FUNCTION f(n BIGINT) RETURNS BIGINT LANGUAGE CUDA AS $$ return n; $$";
    first.execute(twice).unwrap();
    first.save().unwrap();
    drop(first);
    refused(&folder, builder().user_code(false), "CREATE FUNCTION");
    refused(&folder, builder().files(false), "the database");
    // A table's file is gone, or its catalog is another program's.
    let table = files(&folder).into_iter().find(|name| name.ends_with("_u.parquet")).unwrap();
    std::fs::remove_file(folder.join(&table)).unwrap();
    refused(&folder, builder().user_code(true), &table);
    std::fs::write(folder.join("catalog.sql"), "CREATE TABLE x (a INT);").unwrap();
    refused(&folder, builder().user_code(true), "first line");
}

#[test]
fn a_table_that_cannot_be_written_leaves_the_database_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("my.wf");
    let first = session();
    first.open(&folder).unwrap();
    first.execute("CREATE TABLE t AS SELECT 1 AS i").unwrap();
    first.save().unwrap();
    // A folder is where the next file is to be.
    std::fs::create_dir(folder.join("1_t.parquet")).unwrap();
    first.execute("UPDATE t SET i = 2").unwrap();
    assert!(first.save().is_err());
    drop(first);
    std::fs::remove_dir(folder.join("1_t.parquet")).unwrap();
    let second = session();
    second.open(&folder).unwrap();
    assert_eq!(value(&second, "SELECT i FROM t"), 1);
}

fn attach(session: &Session, folder: &Path, rest: &str) -> warpframe::Result<warpframe::Executed> {
    session.execute(&format!("ATTACH '{}' {rest}", folder.display()))
}

fn refused(session: &Session, statement: &str, why: &str) {
    let error = session.execute(statement).err().unwrap_or_else(|| panic!("it runs: {statement}"));
    assert!(error.to_string().contains(why), "{statement}: {error}");
}

/// A database with two schemas, a function and views.
fn made(folder: &Path) {
    let session = session();
    session.open(folder).unwrap();
    for statement in [
        "CREATE SCHEMA abc",
        "CREATE TABLE t AS SELECT range AS i FROM range(0, 10)",
        "CREATE TABLE abc.t AS SELECT range AS i FROM range(0, 3)",
        "CREATE FUNCTION twice(n BIGINT) RETURNS BIGINT LANGUAGE CUDA AS $$ return 2 * n; $$",
        "CREATE VIEW sums AS SELECT sum(twice(i)) AS n FROM t",
        "CREATE VIEW abc.pairs AS SELECT public.t.i AS a, abc.t.i AS b FROM public.t, abc.t
             WHERE public.t.i = abc.t.i",
    ] {
        session.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    session.save().unwrap();
}

#[test]
fn attached_databases_are_read_and_written_beside_the_own() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (directory.path().join("One.wf"), directory.path().join("two.wf"));
    made(&one);
    let first = session();
    attach(&first, &one, "").unwrap();
    attach(&first, &two, "AS \"2\"").unwrap();
    assert_eq!(first.attached_databases(), ["2", "one"]);
    assert!(!first.save().unwrap(), "it is as it was attached");
    for name in ["one.t", "one.public.t", "one.main.t", "\"one\".\"t\""] {
        assert_eq!(value(&first, &format!("SELECT sum(i) FROM {name}")), 45, "{name}");
    }
    assert_eq!(value(&first, "SELECT sum(i) FROM one.abc.t"), 3);
    assert_eq!(value(&first, "SELECT n FROM one.sums"), 90);
    assert_eq!(value(&first, "SELECT count(*) FROM one.abc.pairs"), 3);
    assert_eq!(first.table("one.abc.t").unwrap().collect().unwrap().num_rows(), 3);
    // Tables of one name in three databases.
    first.execute("CREATE TABLE t AS SELECT 4 AS i").unwrap();
    first.execute("CREATE TABLE \"2\".t AS SELECT range AS i FROM range(3, 6)").unwrap();
    let joined =
        "SELECT count(*) FROM t JOIN one.t ON t.i = one.t.i JOIN \"2\".t ON one.t.i = \"2\".t.i";
    let joined =
        joined.replace("FROM t JOIN", "FROM public.t JOIN").replace("ON t.i", "ON public.t.i");
    assert_eq!(value(&first, &joined), 1);
    let subquery = "SELECT sum(i) FROM one.main.t WHERE i IN (SELECT i FROM \"2\".public.t)";
    assert_eq!(value(&first, subquery), 12);
    for statement in [
        "INSERT INTO one.t VALUES (100)",
        "UPDATE one.public.t SET i = 200 WHERE i = 100",
        "DELETE FROM one.abc.t WHERE i = 0",
        "ALTER TABLE \"2\".t RENAME COLUMN i TO j",
        "CREATE SCHEMA \"2\".raw",
        "CREATE TABLE \"2\".raw.u AS SELECT 7 AS i",
        "CREATE VIEW \"2\".v AS SELECT sum(i) AS n FROM \"2\".raw.u",
    ] {
        first.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    assert!(first.save().unwrap() && !first.save().unwrap());
    // What is not saved is written when the database leaves.
    first.execute("INSERT INTO one.t VALUES (1000)").unwrap();
    first.execute("DETACH one").unwrap();
    assert!(first.sql("FROM one.t").is_err() && first.sql("SELECT twice(1)").is_err());
    assert_eq!(first.unsaved_tables().unwrap(), ["t"]);
    drop(first);

    // Each is a database as any other.
    let second = session();
    second.open(&one).unwrap();
    assert_eq!(value(&second, "SELECT sum(i) FROM t"), 1245);
    assert_eq!(value(&second, "SELECT n FROM sums"), 2490);
    assert_eq!(value(&second, "SELECT count(*) FROM abc.pairs"), 2);
    assert!(!second.save().unwrap(), "what the session has beside it is not in it");
    drop(second);
    let third = session();
    third.open(&two).unwrap();
    assert_eq!(third.all_table_names(), ["t", "v", "raw.u"]);
    assert_eq!(value(&third, "SELECT n + (SELECT sum(j) FROM t) FROM v"), 19);
    attach(&third, &one, "AS other").unwrap();
    third.execute("INSERT INTO t SELECT i FROM other.abc.t").unwrap();
    assert!(third.save().unwrap());
    assert_eq!(value(&third, "SELECT count(*) FROM t"), 5);
}

#[test]
fn a_database_that_is_only_read_refuses_changes() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("my.wf");
    made(&folder);
    let (one, two) = (session(), session());
    attach(&one, &folder, "(READ_ONLY)").unwrap();
    attach(&two, &folder, "AS my (READ_ONLY)").unwrap();
    let before = files(&folder);
    for statement in [
        "INSERT INTO my.t VALUES (1)",
        "UPDATE my.t SET i = 1",
        "DELETE FROM my.main.t",
        "TRUNCATE my.t",
        "CREATE TABLE my.u (a INT)",
        "CREATE VIEW my.w AS SELECT 1 AS a",
        "DROP TABLE my.t",
        "DROP VIEW my.sums",
        "ALTER TABLE my.t ADD COLUMN a INT",
        "CREATE SCHEMA my.raw",
        "DROP SCHEMA my.abc CASCADE",
    ] {
        refused(&one, statement, "the database \"my\" is attached READ_ONLY");
    }
    one.execute("USE my").unwrap();
    refused(&one, "CREATE TABLE u AS SELECT 1 AS a", "is attached READ_ONLY");
    refused(&one, "DETACH my", "is in use; USE public leaves it");
    one.execute("USE public").unwrap();
    let kind = one.execute("DROP TABLE my.t").unwrap_err();
    assert!(matches!(kind.kind(), ErrorKind::File { path, .. } if *path == folder), "{kind:?}");
    assert_eq!(value(&two, "SELECT n FROM my.sums"), 90);
    assert!(!one.save().unwrap());
    assert_eq!(files(&folder), before);
    // It was read: another one may write it meanwhile.
    let writer = session();
    attach(&writer, &folder, "").unwrap();
    writer.execute("DELETE FROM my.t").unwrap();
    writer.save().unwrap();
    assert_eq!(value(&one, "SELECT count(*) FROM my.t"), 10);
    one.execute("DETACH my").unwrap();
    let taken = attach(&one, &folder, "(READ_ONLY)").unwrap_err();
    assert!(taken.to_string().contains("another process has this database open"), "{taken}");
    let taken = attach(&one, &folder, "").unwrap_err();
    assert!(taken.to_string().contains("another process has this database open"), "{taken}");
    drop(writer);
    attach(&one, &folder, "(READ_ONLY)").unwrap();
    assert_eq!(value(&one, "SELECT count(*) FROM my.t"), 0);
    let missing = directory.path().join("none.wf");
    let error = attach(&one, &missing, "(READ_ONLY)").unwrap_err();
    assert!(error.to_string().contains("there is no database"), "{error}");
    assert!(!missing.exists());
}

#[test]
fn what_cannot_be_attached_or_detached_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let (folder, other) = (directory.path().join("my.wf"), directory.path().join("o.wf"));
    made(&folder);
    let first = session();
    first.execute("CREATE SCHEMA raw").unwrap();
    let attached = |rest: &str| format!("ATTACH '{}' {rest}", folder.display());
    for (name, why) in [
        ("raw", "there is a schema named \"raw\""),
        ("public", "there is a schema named"),
        ("main", "there is a schema named"),
        ("information_schema", "there is a schema named"),
        ("\"a.b\"", "is no name of a database"),
        ("\"\"", "is no name of a database"),
    ] {
        refused(&first, &attached(&format!("AS {name}")), why);
    }
    refused(&first, &attached("(READ_WRITE)"), "expected READ_ONLY, found READ_WRITE");
    refused(&first, "ATTACH my", "expected a folder in single quotes");
    let stray = format!("ATTACH '{}' AS x", directory.path().display());
    refused(&first, &stray, "it has other files");
    assert!(first.attached_databases().is_empty() && first.schema_names() == ["public", "raw"]);
    // A function of its name keeps the database from being attached, and stays as it was.
    first
        .execute(
            "CREATE FUNCTION twice(n BIGINT) RETURNS BIGINT LANGUAGE CUDA AS $$ return 3 * n; $$",
        )
        .unwrap();
    refused(&first, &attached(""), "there is a function named \"twice\"");
    assert_eq!(value(&first, "SELECT twice(1)"), 3);
    assert_eq!(first.schema_names(), ["public", "raw"]);
    first.execute("DROP FUNCTION twice").unwrap();
    first.execute(&attached("")).unwrap();
    refused(&first, &attached("AS again"), "the database is attached as my already");
    refused(&first, &attached(""), "there is a schema named \"my\"");
    first.execute(&attached("").replace("ATTACH", "ATTACH DATABASE IF NOT EXISTS")).unwrap();
    refused(&first, "CREATE SCHEMA IF NOT EXISTS my", "there is a schema named \"my\"");
    refused(&first, "DROP SCHEMA my CASCADE", "DETACH takes away");
    first.execute("CREATE TABLE t AS SELECT 1 AS i").unwrap();
    // An export is of the own database.
    let export = directory.path().join("export");
    first.execute(&format!("EXPORT DATABASE '{}'", export.display())).unwrap();
    assert_eq!(files(&export), ["0_t.parquet", "schema.sql"]);
    // A view is of one database.
    refused(&first, "CREATE VIEW v AS SELECT i FROM my.t", "my.t is of another database");
    refused(&first, "CREATE VIEW my.v AS SELECT i FROM t", "public.t is of another database");
    let error = first.execute("DETACH you").unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::DatabaseNotFound { name, known }
            if name == "you" && known == &["my"]),
        "{error:?}"
    );
    first.execute("DETACH DATABASE IF EXISTS you").unwrap();
    let shown = first.sql("SHOW DATABASES").unwrap().collect().unwrap();
    let names = shown.column("database").unwrap().to_vec::<String>().unwrap();
    assert_eq!((names.len(), names[1].as_str()), (2, "my"));
    assert_eq!(shown.column("read_only").unwrap().to_vec::<bool>().unwrap(), [false, false]);
    // The own one is none that could be attached, too.
    first.open(&other).unwrap();
    let error = attach(&first, &other, "AS o").unwrap_err();
    assert!(error.to_string().contains("the database is open already"), "{error}");
    let error = builder().files(false).build().unwrap().execute(&attached("")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Forbidden { .. }), "{error:?}");
    drop(first);
    let error = builder().user_code(false).build().unwrap().execute(&attached("")).unwrap_err();
    assert!(error.to_string().contains("CREATE FUNCTION"), "{error}");
}

/// Plans that are kept are of names: what these mean is looked up each time.
#[test]
fn a_name_is_of_the_database_that_is_attached_by_it() {
    let directory = tempfile::tempdir().unwrap();
    let session = session();
    for (at, folder) in ["a.wf", "b.wf", "a.wf"].into_iter().enumerate() {
        attach(&session, &directory.path().join(folder), "AS d").unwrap();
        if at < 2 {
            session.execute(&format!("CREATE TABLE d.t AS SELECT {at} AS i")).unwrap();
            session.execute("CREATE VIEW d.v AS SELECT i FROM d.public.t").unwrap();
        }
        for table in ["d.t", "d.main.t", "d.v"] {
            let found = value(&session, &format!("SELECT sum(i) FROM {table}"));
            assert_eq!(found, [0, 1, 0][at], "{table} of {folder}");
        }
        let listed = "SELECT count(*) FROM information_schema.tables WHERE table_name = 't'";
        assert_eq!(value(&session, listed), 1, "no table is listed twice");
        session.execute("DETACH d").unwrap();
    }
    assert_eq!(session.schema_names(), ["public"]);
}
