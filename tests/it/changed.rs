//! Files that change while they are tables: every answer is of one version, the newest.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use warpframe::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::differential::{Cell, Pair, builder, run, scalar};
use crate::differential::{Rows, rows_of};

/// `rows` rows of columns `a`, `b` and `c`, which hold `value`.
fn batch(rows: usize, value: i64) -> RecordBatch {
    let column = || Arc::new(Int64Array::from(vec![value; rows])) as ArrayRef;
    RecordBatch::try_from_iter([("a", column()), ("b", column()), ("c", column())])
        .expect("columns of one length")
}

fn frame(batch: RecordBatch) -> DataFrame {
    let session = Session::builder().device(DeviceChoice::Cpu).build().expect("a CPU session");
    session.from_arrow([batch]).expect("a batch is a frame")
}

/// Another file in the place of the one that was there.
fn replace(path: &Path, rows: usize, value: i64) {
    match path.extension().and_then(|e| e.to_str()) {
        Some("csv") => frame(batch(rows, value)).write_csv(path),
        _ => frame(batch(rows, value)).write_parquet(path),
    }
    .expect("the file can be written");
}

/// Overwrites the content of the file that is there.
fn overwrite(path: &Path, rows: usize, value: i64) {
    let other = path
        .with_extension(format!("tmp.{}", path.extension().unwrap_or_default().to_string_lossy()));
    replace(&other, rows, value);
    let content = std::fs::read(&other).expect("it was written");
    std::fs::remove_file(&other).expect("it was written");
    std::fs::write(path, content).expect("the file can be written");
}

fn numbers(session: &Session, sql: &str) -> Vec<i128> {
    let cell = |cell: &Cell| match cell {
        Cell::Int(number) => *number,
        other => panic!("{sql}: {other:?}"),
    };
    Rows::of(&run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))).rows[0]
        .iter()
        .map(cell)
        .collect()
}

/// Ends the threads that look at it, also where the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Sessions on the CPU and on the device.
fn sessions() -> [Session; 2] {
    let pair = Pair::new();
    [pair.cpu, pair.device]
}

#[test]
fn columns_are_of_one_version() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    for (session, name) in
        sessions().iter().flat_map(|s| ["t.parquet", "t.csv"].map(|name| (s, name)))
    {
        let path = directory.path().join(name);
        for change in [replace, overwrite] {
            replace(&path, 1000, 7);
            match name {
                "t.csv" => session.register_csv("t", &path)?,
                _ => session.register_parquet("t", &path)?,
            }
            assert_eq!(numbers(session, "SELECT sum(a) FROM t"), [7000]);
            change(&path, 3, 5);
            assert_eq!(numbers(session, "SELECT sum(b), count(*) FROM t"), [15, 3], "{name}");
            assert_eq!(
                numbers(session, "SELECT sum(a), sum(b), sum(c), count(*) FROM t"),
                [15, 15, 15, 3]
            );
            // As many rows as before, and more.
            change(&path, 3, 6);
            assert_eq!(numbers(session, "SELECT sum(c), count(a) FROM t"), [18, 3]);
            change(&path, 5000, 8);
            assert_eq!(
                numbers(session, "SELECT sum(a), sum(c), count(*) FROM t"),
                [40_000, 40_000, 5000]
            );
            assert_eq!(
                numbers(
                    session,
                    "SELECT count(*) FROM t AS x JOIN t AS y ON x.a = y.c WHERE x.b = 0"
                ),
                [0]
            );
        }
    }
    Ok(())
}

/// One text, one plan and the steps of one frame run again and again: they are found in the
/// session, over other versions.
#[test]
fn kept_plans_run_over_the_new_version() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.parquet");
    for session in sessions() {
        replace(&path, 10, 1);
        session.register_parquet("t", &path)?;
        let lazy = session
            .table("t")?
            .filter(col("a").gt(lit(0)))?
            .select([sum(col("b")), count_rows()])?;
        for round in 1..6 {
            let (rows, value) = (round * 10, round as i64);
            if round > 1 {
                replace(&path, rows, value);
            }
            let expected = [rows as i128 * round as i128, rows as i128];
            for _ in 0..3 {
                assert_eq!(numbers(&session, "SELECT sum(a), count(*) FROM t"), expected);
                assert_eq!(
                    numbers(&session, "SELECT sum(c), count(b) FROM t WHERE c > 0 AND b > 0"),
                    expected
                );
                let rows = rows_of(&lazy.clone().collect()?.to_arrow()?[0]);
                assert_eq!(rows, [expected.map(Cell::Int).to_vec()]);
            }
        }
    }
    Ok(())
}

#[test]
fn other_columns_than_before_are_an_error_until_registered_again() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.parquet");
    let strings = RecordBatch::try_from_iter([(
        "a",
        Arc::new(warpframe::arrow::array::StringViewArray::from(vec!["x", "y"])) as ArrayRef,
    )]);
    let strings = frame(strings.expect("a batch"));
    for session in sessions() {
        replace(&path, 10, 1);
        session.register_parquet("t", &path)?;
        let sql = "SELECT max(a) FROM t";
        assert_eq!(numbers(&session, sql), [1]);
        strings.write_parquet(&path)?;
        for _ in 0..2 {
            let error = run(&session, sql).expect_err("strings are no integers");
            let ErrorKind::File { path: file, message } = error.kind() else { panic!("{error:?}") };
            assert!(
                *file == path && message.contains("\"a\" Utf8View") && message.contains("Int64"),
                "{error}"
            );
        }
        session.register_parquet("t", &path)?;
        assert_eq!(scalar(&session, sql), Cell::Text("y".into()));
        // The old columns come back: nothing to say.
        session.register_parquet("u", &path)?;
        replace(&path, 4, 2);
        assert!(run(&session, "SELECT max(a) FROM u").is_err());
        strings.write_parquet(&path)?;
        assert_eq!(scalar(&session, "SELECT max(a) FROM u"), Cell::Text("y".into()));
    }
    Ok(())
}

#[test]
fn files_that_come_and_go_are_seen() -> Result<()> {
    for session in sessions() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        replace(&path("1.parquet"), 10, 1);
        session.register_parquet("d", directory.path())?;
        session.register_parquet("p", path("*.parquet"))?;
        let ask = |expected: [i128; 2]| {
            for table in ["d", "p"] {
                assert_eq!(
                    numbers(&session, &format!("SELECT sum(a), count(*) FROM {table}")),
                    expected
                );
            }
        };
        ask([10, 10]);
        replace(&path("0.parquet"), 5, 3);
        ask([25, 15]);
        replace(&path("1.parquet"), 1, 1);
        ask([16, 6]);
        std::fs::write(path("notes.txt"), "no table").expect("the file can be written");
        ask([16, 6]);
        std::fs::remove_file(path("0.parquet")).expect("it was there");
        ask([1, 1]);
        std::fs::remove_file(path("1.parquet")).expect("it was there");
        for table in ["d", "p"] {
            let error = run(&session, &format!("SELECT sum(a) FROM {table}"))
                .expect_err("nothing is there");
            assert!(matches!(error.kind(), ErrorKind::Io { .. }), "{error:?}");
        }
    }
    Ok(())
}

#[test]
fn no_answer_is_of_two_versions() -> Result<()> {
    for session in sessions() {
        answers_are_of_one_version(
            &session,
            &[
                "SELECT min(a), max(a), min(b), max(c), count(*) FROM t",
                "SELECT min(c), max(c), min(b) AS x, max(b) AS y, count(c) FROM t",
                "SELECT min(x.a), max(x.b), min(y.c), max(y.c), (SELECT count(*) FROM t) FROM t AS x CROSS JOIN \
                 (SELECT c FROM t LIMIT 1) AS y",
            ],
        )?;
    }
    Ok(())
}

/// The device runs two subtrees of the query, each of which reads the table; the CPU runs the rest.
#[test]
fn no_answer_of_cpu_and_device_is_of_two_versions() -> Result<()> {
    let median = |column: &str| format!("approx_percentile_cont_with_weight({column}, 1, 0.5)");
    let sql = format!(
        "SELECT CAST(min(x.m) AS bigint), CAST(max(y.m) AS bigint), CAST(min(y.n) AS bigint), max(y.c), max(x.k) FROM \
         (SELECT {} AS m, count(*) AS k FROM t) AS x CROSS JOIN \
         (SELECT {} AS m, {} AS n, max(c) AS c FROM t) AS y",
        median("a"),
        median("b"),
        median("b + 0")
    );
    let session = builder().strict(false).build()?;
    answers_are_of_one_version(&session, &[&sql])?;
    let explained = session.sql(&sql)?.explain()?;
    assert_eq!(explained.matches("pipeline 0").count(), 2, "{explained}");
    Ok(())
}

/// Somebody writes without a pause: an answer is of one version, or an error that says what
/// happened. The columns of `t` hold n in each of 100 n rows; a query yields four values of them
/// and a number of rows.
fn answers_are_of_one_version(session: &Session, queries: &[&str]) -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    for change in [replace, overwrite] {
        let path = directory.path().join("t.parquet");
        replace(&path, 1, 1);
        session.register_parquet("t", &path)?;
        let stop = AtomicBool::new(false);
        // Milliseconds: on a busy machine no query ends between two versions of a shorter life.
        let life = AtomicU64::new(30);
        let answers = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut value = 1;
                while !stop.load(Relaxed) {
                    value = value % 50 + 1;
                    change(&path, value as usize * 100, value);
                    std::thread::sleep(std::time::Duration::from_millis(life.load(Relaxed)));
                }
            });
            let _stop = Stop(&stop);
            let mut answers = 0;
            for sql in queries.iter().cycle().take(40) {
                match run(session, sql).map(|frame| Rows::of(&frame).rows) {
                    Ok(rows) => {
                        let [
                            Cell::Int(a),
                            Cell::Int(b),
                            Cell::Int(c),
                            Cell::Int(d),
                            Cell::Int(count),
                        ] = rows[0][..]
                        else {
                            panic!("{rows:?}")
                        };
                        assert!(
                            a == b && b == c && c == d && (count == a * 100 || count == 1),
                            "{sql}: {rows:?}"
                        );
                        answers += 1;
                        life.store((life.load(Relaxed) / 2).max(30), Relaxed);
                    }
                    Err(error) => {
                        let text = error.to_string();
                        assert!(text.contains("t.parquet"), "{text}");
                        // A file that is half written is no Parquet file.
                        let damaged =
                            matches!(error.kind(), ErrorKind::File { .. } | ErrorKind::Io { .. });
                        assert!(damaged, "{error:?}");
                        life.store((life.load(Relaxed) * 2).min(4000), Relaxed);
                    }
                }
            }
            answers
        });
        assert!(answers > 1, "{answers} of 40 queries were answered");
    }
    Ok(())
}

/// A query of another thread finds the old table or the new one, never none.
#[test]
fn a_table_is_replaced_at_once() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let (csv, parquet) = (directory.path().join("t.csv"), directory.path().join("t.parquet"));
    replace(&csv, 2, 2);
    replace(&parquet, 3, 3);
    let devices = [Session::builder().device(DeviceChoice::Cpu).build()?, builder().build()?];
    for session in devices {
        session.register_batches("t", [batch(1, 1)])?;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..3)
                .map(|_| {
                    scope.spawn(|| {
                        let mut seen = 0;
                        while !stop.load(Relaxed) {
                            let schema = session.schema("t").expect("there always is a table");
                            assert_eq!(schema.fields().len(), 3);
                            assert_eq!(session.table_names(), ["t"]);
                            let plan = session
                                .sql("SELECT max(a), count(*) FROM t")
                                .expect("there always is a table");
                            if seen % 20 == 0 {
                                let rows =
                                    Rows::of(&plan.collect().expect("every one can be read")).rows;
                                assert_eq!(rows[0][0], rows[0][1]);
                            }
                            seen += 1;
                        }
                        seen
                    })
                })
                .collect();
            let end = Stop(&stop);
            let two = frame(batch(4, 4));
            for round in 0..60 {
                match round % 4 {
                    0 => session.register_csv("t", &csv),
                    1 => session.register_parquet("t", &parquet),
                    2 => session.register_table("t", &two),
                    _ => session.register_batches("t", [batch(1, 1)]),
                }
                .expect("it can be registered");
            }
            drop(end);
            for reader in readers {
                assert!(reader.join().expect("a reader that found the table") > 0);
            }
        });
    }
    Ok(())
}
