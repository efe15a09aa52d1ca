//! Files as tables: what is read, and what is said of files that are missing or broken; the session
//! goes on.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use warpframe::prelude::*;
use warpframe::{Error, ErrorKind, Result};

use crate::differential::{Cell, Pair, Rows, builder, data, run, scalar};

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory for files")
}

fn write(directory: &TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, content).expect("the file is written");
    path
}

/// A session on the device under test, and one on the CPU.
fn sessions() -> [Session; 2] {
    let pair = Pair::new();
    [pair.device, pair.cpu]
}

/// Still answers.
fn goes_on(session: &Session) {
    session.register_parquet("region", data("tpch/region.parquet")).expect("the sample is there");
    assert_eq!(scalar(session, "SELECT count(*) FROM region"), Cell::Int(5));
}

#[track_caller]
fn names_file(error: &Error, path: &Path) {
    match error.kind() {
        ErrorKind::File { path: named, message } => {
            assert!(named == path && !message.is_empty(), "{error:?}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn missing_files_are_named() {
    let directory = directory();
    let absent = directory.path().join("absent.parquet");
    let pattern = directory.path().join("*.csv");
    for session in sessions() {
        for (error, path) in [
            (session.register_parquet("t", &absent).err(), &absent),
            (session.register_csv("t", &absent).err(), &absent),
            (session.register_csv("t", &pattern).err(), &pattern),
            (session.scan_parquet(&absent).err(), &absent),
            (session.read_csv(&absent).err(), &absent),
        ] {
            let error = error.expect("nothing is there");
            assert!(
                matches!(error.kind(), ErrorKind::Io { path: named, .. } if named == path),
                "{error:?}"
            );
        }
        assert!(session.table_names().is_empty());
        goes_on(&session);
    }
}

#[test]
fn a_file_that_goes_away_after_it_was_registered_is_an_error() -> Result<()> {
    for session in sessions() {
        let directory = directory();
        let path = write(&directory, "t.csv", "a\n1\n");
        session.register_csv("t", &path)?;
        std::fs::remove_file(&path).expect("it was there");
        let error = run(&session, "SELECT sum(a) FROM t").expect_err("it is gone");
        assert!(
            matches!(error.kind(), ErrorKind::Io { path: named, .. } if *named == path),
            "{error:?}"
        );
        goes_on(&session);
    }
    Ok(())
}

#[test]
fn parquet_files_that_are_none_are_named_when_registered() {
    let directory = directory();
    let whole = std::fs::read(data("tpch/nation.parquet")).expect("the sample is there");
    for (name, content) in [
        ("empty.parquet", &whole[..0]),
        ("short.parquet", &whole[..7]),
        ("truncated.parquet", &whole[..whole.len() / 2]),
        ("text.parquet", b"n_nationkey,n_name\n0,ALGERIA\n".as_slice()),
    ] {
        let path = write(&directory, name, content);
        for session in sessions() {
            names_file(
                &session.register_parquet("t", &path).expect_err("it is not Parquet"),
                &path,
            );
            goes_on(&session);
        }
    }
}

#[test]
fn parquet_files_with_broken_pages_are_named_by_the_query() -> Result<()> {
    let directory = directory();
    let mut bytes = std::fs::read(data("tpch/customer.parquet")).expect("the sample is there");
    // The footer is whole, the pages are not.
    let end = bytes.len() - 20_000;
    bytes[100..end].fill(0xa5);
    let good = write(
        &directory,
        "part-0.parquet",
        std::fs::read(data("tpch/customer.parquet")).expect("as before"),
    );
    let bad = write(&directory, "part-1.parquet", &bytes);
    for session in sessions() {
        session.register_parquet("t", directory.path())?;
        names_file(
            &run(&session, "SELECT sum(c_acctbal), max(c_name) FROM t").expect_err("broken pages"),
            &bad,
        );
        session.register_parquet("t", &good)?;
        assert_eq!(scalar(&session, "SELECT count(c_name) FROM t"), Cell::Int(1500));
        goes_on(&session);
    }
    Ok(())
}

#[test]
fn a_bad_cell_is_reported_with_file_line_and_column() -> Result<()> {
    let directory = directory();
    write(&directory, "a.csv", "id,price\n1,2.5\n2,3.5\n");
    let text: String = (0..3000)
        .map(|n| format!("{n},{}\n", if n == 2500 { "cheap".into() } else { n.to_string() }))
        .collect();
    let bad = write(&directory, "b.csv", format!("id,price\n{text}"));
    for session in sessions() {
        // Few rows are looked at before: the word is not among them.
        let few = CsvOptions { sample_size: Some(2), widen: false, ..CsvOptions::default() };
        session.register_csv_with("t", directory.path(), few)?;
        let error = run(&session, "SELECT sum(price) FROM t").expect_err("a price that is a word");
        match error.kind() {
            ErrorKind::Parse { path: Some(path), line, column, message } => {
                assert_eq!((path, *line, *column), (&bad, 2502, 2), "{error}");
                assert!(message.contains("cheap") && message.contains("\"price\""), "{message}");
            }
            other => panic!("{other:?}"),
        }
        // Nothing is wrong with the other column.
        assert_eq!(scalar(&session, "SELECT count(id) FROM t"), Cell::Int(3002));
        goes_on(&session);
    }
    Ok(())
}

#[test]
fn a_line_of_too_few_fields_is_reported_with_file_and_line() {
    let directory = directory();
    let path = write(&directory, "t.csv", "a,b\n1,2\n3\n5,6\n");
    for session in sessions() {
        let error = session.register_csv("t", &path).expect_err("a line of one field");
        assert!(
            matches!(error.kind(), ErrorKind::Parse { path: Some(named), line: 3, .. } if *named == path),
            "{error:?}"
        );
        goes_on(&session);
    }
}

#[test]
fn files_of_one_table_have_the_same_columns_where_that_is_wanted() -> Result<()> {
    let directory = directory();
    write(&directory, "1.csv", "a,b\n1,2\n");
    let other = write(&directory, "2.csv", "a,c\n1,2\n");
    for session in sessions() {
        let same = CsvOptions { union_by_name: false, ..CsvOptions::default() };
        let error = session.register_csv_with("t", directory.path(), same).expect_err("b is not c");
        names_file(&error, &other);
        assert!(
            error.to_string().contains("a, c") && error.to_string().contains("a, b"),
            "{error}"
        );
    }
    Ok(())
}

#[test]
fn directories_patterns_and_odd_names_are_files() -> Result<()> {
    let directory = directory();
    write(&directory, "part 1*.csv", "n\n1\n2\n");
    write(&directory, "part 2%20é.csv", "n\n3\n");
    write(&directory, "note.txt", "not a table");
    for session in sessions() {
        for path in ["", "*.csv", "part*"] {
            session.register_csv("t", directory.path().join(path))?;
            // Rows come in the order of the files' names.
            assert_eq!(
                Rows::of(&run(&session, "SELECT n FROM t")?).rows,
                [1, 2, 3].map(|n| vec![Cell::Int(n)]),
                "{path}"
            );
        }
        session.register_csv("one", directory.path().join("part 1*.csv"))?;
        assert_eq!(scalar(&session, "SELECT sum(n) FROM one"), Cell::Int(3));
    }
    Ok(())
}

#[test]
fn csv_files_of_other_layouts() -> Result<()> {
    let directory = directory();
    let tabs = write(&directory, "t.tsv", "1\t'a\tb'\t2024-02-29\n\t'line\nbreak'\t\n");
    let options = CsvOptions {
        has_header: Some(false),
        delimiter: Some(b'\t'),
        quote: Some(b'\''),
        ..CsvOptions::default()
    };
    for session in sessions() {
        session.register_csv_with("t", &tabs, options.clone())?;
        let rows = Rows::of(&run(&session, "SELECT column_1, column_2, column_3 FROM t")?).rows;
        let text = |text: &str| Cell::Text(text.into());
        assert_eq!(
            rows,
            [
                vec![Cell::Int(1), text("a\tb"), Cell::Int(19_782)],
                vec![Cell::Null, text("line\nbreak"), Cell::Null]
            ]
        );
    }
    // Lines other than those looked at may not have another type.
    let lines: String =
        (0..1000).map(|n| if n == 500 { "x\n".into() } else { format!("{n}\n") }).collect();
    let late = write(&directory, "late.csv", format!("n\n{lines}"));
    for session in sessions() {
        session.register_csv_with(
            "late",
            &late,
            CsvOptions { sample_size: Some(2), widen: false, ..CsvOptions::default() },
        )?;
        let error = run(&session, "SELECT n FROM late").expect_err("x is no number");
        assert!(matches!(error.kind(), ErrorKind::Parse { line: 502, .. }), "{error:?}");
        session.register_csv("late", &late)?;
        assert_eq!(scalar(&session, "SELECT max(n) FROM late"), Cell::Text("x".into()));
    }
    Ok(())
}

#[test]
fn tables_are_registered_replaced_and_forgotten() -> Result<()> {
    let directory = directory();
    let path = write(&directory, "t.csv", "n\n1\n");
    for session in sessions() {
        session.register_csv("t", &path)?;
        session.register_parquet("region", data("tpch/region.parquet"))?;
        assert_eq!(session.table_names(), ["region", "t"]);
        assert_eq!(scalar(&session, "SELECT sum(n) FROM t"), Cell::Int(1));
        let old = session.table("t")?;

        let frame =
            session.sql("SELECT r_regionkey AS n FROM region WHERE r_regionkey > 2")?.collect()?;
        session.register_table("t", &frame)?;
        assert_eq!(scalar(&session, "SELECT sum(n) FROM t"), Cell::Int(7));
        // A plan keeps the table it was made of.
        assert_eq!(old.collect()?.num_rows(), 1);

        session.deregister("t")?;
        assert_eq!(session.table_names(), ["region"]);
        for error in [
            session.deregister("t").expect_err("forgotten"),
            session.schema("t").expect_err("forgotten"),
            session.table("t").expect_err("forgotten"),
            session.sql("SELECT * FROM t").expect_err("forgotten"),
            session.sql("SELECT * FROM region JOIN t ON true").expect_err("forgotten"),
        ] {
            match error.kind() {
                ErrorKind::TableNotFound { name, known } => {
                    assert_eq!((name.as_str(), known.len()), ("t", 1))
                }
                other => panic!("{other:?}"),
            }
        }
        goes_on(&session);
    }
    Ok(())
}

#[test]
fn names_keep_their_capitals() -> Result<()> {
    let session = builder().strict(true).build()?;
    session.register_csv("Jets", data("jets.csv"))?;
    assert_eq!(session.table_names(), ["Jets"]);
    assert_eq!(scalar(&session, "SELECT count(\"E\") FROM \"Jets\""), Cell::Int(100_000));
    assert_eq!(session.table("Jets")?.filter(col("E").gt(lit(0)))?.collect()?.num_rows(), 100_000);
    assert!(session.sql("SELECT count(*) FROM Jets").is_err(), "unquoted names are lowered");
    Ok(())
}

#[test]
fn statements_that_are_no_queries_are_refused() -> Result<()> {
    let session = builder().build()?;
    for sql in [
        "DROP TABLE t",
        "CREATE TABLE t AS SELECT 1",
        "SET x = 1",
        "SELECT 1; SELECT 2",
        "EXPLAIN SELECT 1",
    ] {
        let error = session.sql(sql).expect_err(sql);
        assert!(matches!(error.kind(), ErrorKind::NotAQuery { .. }), "{sql}: {error:?}");
        assert_eq!(error.location(), Some((1, 1)), "{sql}");
    }
    let error = session.sql("SELECT 1 +\n  )").expect_err("no operand");
    assert!(matches!(error.kind(), ErrorKind::Parse { path: None, .. }), "{error:?}");
    assert_eq!(error.location().map(|(line, _)| line), Some(2), "{error:?}");
    Ok(())
}

#[test]
fn layouts_of_csv_files_are_found_out() -> Result<()> {
    let directory = directory();
    let text = |text: &str| Cell::Text(text.into());
    for (name, content) in [
        ("semicolons.csv", "n;s\n1;a,b\n2;\"x;y\"\n"),
        ("tabs.tsv", "n\ts\n1\ta,b\n2\tx;y\n"),
        ("bars.psv", "n|s\r1|a,b\r2|x;y\r"),
        ("single.csv", "n,s\n1,'a,b'\n2,'x;y'\n"),
        ("sixteen.csv", "\u{feff}n,s\n1,\"a,b\"\n2,x;y\n"),
    ] {
        let path = write(&directory, name, content);
        if name == "sixteen.csv" {
            let units: Vec<u8> = content.encode_utf16().flat_map(u16::to_le_bytes).collect();
            std::fs::write(&path, units).expect("the file is written");
        }
        for session in sessions() {
            session.register_csv("t", &path)?;
            let rows = Rows::of(&run(&session, "SELECT n, s FROM t ORDER BY n")?).rows;
            assert_eq!(
                rows,
                [vec![Cell::Int(1), text("a,b")], vec![Cell::Int(2), text("x;y")]],
                "{name}"
            );
        }
    }
    Ok(())
}

#[test]
fn logs_and_late_values_of_csv_files_keep_all_of_their_text() -> Result<()> {
    let directory = directory();
    let log = "msg,n\n2020-01-31 12:34:56 ERROR disk full,1\n2020-01-31 12:34:57 INFO ok,2\n";
    let log = write(&directory, "log.csv", log);
    let dates = "2020-01-31\n".repeat(2000);
    let late = write(&directory, "late.csv", format!("t\n{dates}2020-01-31 12:34:56.75\n"));
    let twice = write(&directory, "twice.csv", "a,b,a\n1,2,3\n");
    for session in sessions() {
        session.register_csv("log", &log)?;
        let expected = Cell::Text("2020-01-31 12:34:56 ERROR disk full".into());
        assert_eq!(scalar(&session, "SELECT min(msg) FROM log"), expected);
        session.register_csv("late", &late)?;
        // In microseconds.
        assert_eq!(scalar(&session, "SELECT max(t) FROM late"), Cell::Int(1_580_474_096_750_000));
        session.register_csv("twice", &twice)?;
        assert_eq!(scalar(&session, "SELECT a_1 FROM twice"), Cell::Int(3));
    }
    Ok(())
}

#[test]
fn rows_of_csv_files_that_are_left_out_are_told() -> Result<()> {
    let directory = directory();
    let path = write(&directory, "t.csv", "a,b\n1,2\n3\n4,5,6\n7,8\n");
    let session = Pair::new().device;
    let skip = CsvOptions { ragged: warpframe::Ragged::Skip, ..CsvOptions::default() };
    session.register_csv_with("t", &path, skip)?;
    assert_eq!(scalar(&session, "SELECT sum(a * b) FROM t"), Cell::Int(58));
    let told = session.take_host_reads();
    assert!(
        told.iter().any(|line| line.starts_with("2 rows of ") && line.contains("left out")),
        "{told:?}"
    );
    Ok(())
}
