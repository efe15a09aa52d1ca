//! The order of rows on the CPU engine: that of the files and of their rows, whatever the
//! partitions.

use std::sync::Arc;

use warpframe::Result;
use warpframe::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use warpframe::prelude::*;

use crate::differential::{Cell, Rows, builder, run};

const FILES: usize = 23;
const ROWS: usize = 3000;

fn batch(from: usize, rows: usize) -> RecordBatch {
    let n = Int64Array::from_iter_values((from..from + rows).map(|n| n as i64));
    RecordBatch::try_from_iter([("n", Arc::new(n) as ArrayRef)]).expect("a batch")
}

fn numbers(session: &Session, sql: &str) -> Vec<i128> {
    let frame = run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let number = |row: Vec<Cell>| match row[0] {
        Cell::Int(number) => number,
        ref other => panic!("{other:?}"),
    };
    Rows::of(&frame).rows.into_iter().map(number).collect()
}

#[test]
fn rows_of_files_come_in_the_order_of_the_files() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let cpu = |partitions| {
        Session::builder().device(DeviceChoice::Cpu).cpu_partitions(partitions).build()
    };
    let writer = cpu(1)?;
    for file in 0..FILES {
        let frame = writer.from_arrow([batch(file * ROWS, ROWS)])?;
        frame.write_parquet(directory.path().join(format!("{file:02}.parquet")))?;
        frame.write_csv(directory.path().join(format!("{file:02}.csv")))?;
    }
    let all = (FILES * ROWS) as i128;
    let odd = |n: &i128| n % 2 == 1;
    let cases: [(&str, Vec<i128>); 9] = [
        ("SELECT n FROM t", (0..all).collect()),
        ("SELECT * FROM t WHERE n % 2 = 1", (0..all).filter(odd).collect()),
        (
            "SELECT -n FROM (SELECT n FROM t WHERE n % 2 = 1) AS s WHERE n > 5",
            (7..all).step_by(2).map(|n| -n).collect(),
        ),
        ("SELECT n FROM t WHERE n >= 2990 LIMIT 20", (2990..3010).collect()),
        ("SELECT n FROM t LIMIT 5 OFFSET 8998", (8998..9003).collect()),
        ("SELECT n FROM t WHERE n % 2 = 1 OFFSET 34000", (68001..all).step_by(2).collect()),
        ("SELECT sum(n) FROM (SELECT n FROM t WHERE n > 99 LIMIT 3) AS s", vec![303]),
        (
            "SELECT n FROM (SELECT n, row_number() OVER () AS r FROM t) AS s WHERE r <> n + 1",
            vec![],
        ),
        (
            "SELECT n FROM t WHERE n < 10 UNION ALL SELECT n FROM t WHERE n > 68997",
            (0..10).chain(68998..all).collect(),
        ),
    ];
    let mut sessions = vec![];
    for partitions in [1, 3, 8] {
        for kind in ["parquet", "csv"] {
            let session = cpu(partitions)?;
            match kind {
                "csv" => session.register_csv("t", directory.path().join("*.csv"))?,
                _ => session.register_parquet("t", directory.path())?,
            }
            sessions.push(session);
        }
        let session = cpu(partitions)?;
        session.register_batches("t", (0..FILES).map(|file| batch(file * ROWS, ROWS)))?;
        sessions.push(session);
    }
    let device = builder().build()?;
    device.register_parquet("t", directory.path())?;
    sessions.push(device);
    for (at, session) in sessions.iter().enumerate() {
        for (sql, expected) in &cases {
            for _ in 0..3 {
                assert!(numbers(session, sql) == *expected, "session {at}: {sql}");
            }
        }
    }
    Ok(())
}

/// One file of several row groups, which the CPU engine reads in parts.
#[test]
fn rows_of_a_file_come_in_its_order() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.parquet");
    let session = Session::builder().device(DeviceChoice::Cpu).cpu_partitions(6).build()?;
    let state = session.context().state_ref();
    state.write().config_mut().options_mut().optimizer.repartition_file_min_size = 1;
    use datafusion::parquet::file::properties::WriterProperties;
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(1000)).build();
    let file = std::fs::File::create(&path).expect("the file can be made");
    let rows = batch(0, 20_000);
    let writer =
        datafusion::parquet::arrow::ArrowWriter::try_new(file, rows.schema(), Some(properties));
    let mut writer = writer.expect("a writer");
    writer.write(&rows).expect("rows can be written");
    writer.close().expect("the file is whole");
    session.register_parquet("t", &path)?;
    for _ in 0..5 {
        assert_eq!(
            numbers(&session, "SELECT n FROM t WHERE n % 3 = 0"),
            (0..20_000).step_by(3).collect::<Vec<_>>()
        );
        assert_eq!(
            numbers(&session, "SELECT n FROM t WHERE n % 3 = 0 LIMIT 4 OFFSET 3000"),
            [9000, 9003, 9006, 9009]
        );
    }
    Ok(())
}
