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
        "CREATE TABLE t AS SELECT value AS i FROM range(0, 100)",
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
