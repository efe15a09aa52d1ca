//! The rows of a query as they come.

use std::fmt::Write as _;

use warpframe::ErrorKind;
use warpframe::arrow::array::*;
use warpframe::prelude::*;

use crate::differential::builder;

fn on_cpu() -> Session {
    Session::builder().device(DeviceChoice::Cpu).build().unwrap()
}

/// Of one column of `BIGINT`.
fn values(batches: impl IntoIterator<Item = warpframe::Result<RecordBatch>>) -> Vec<i64> {
    let of = |batch: warpframe::Result<RecordBatch>| -> Vec<i64> {
        batch
            .unwrap()
            .column(0)
            .as_primitive::<warpframe::arrow::datatypes::Int64Type>()
            .values()
            .to_vec()
    };
    batches.into_iter().flat_map(of).collect()
}

#[test]
fn the_first_rows_come_while_the_query_runs() {
    // Nobody waits for the last row of this.
    let query = on_cpu().sql("SELECT range * 2 AS v FROM range(0, 1000000000000)").unwrap();
    let batches = query.batches(1000).unwrap();
    assert_eq!(batches.schema().field(0).name(), "v");
    let first: Vec<_> = batches.take(3).collect();
    assert!(first.iter().all(|batch| batch.as_ref().unwrap().num_rows() == 1000));
    assert_eq!(values(first), (0..3000).map(|row| row * 2).collect::<Vec<_>>());
}

#[test]
fn batches_have_all_rows_of_the_answer_in_its_order() {
    let device = builder().build().unwrap();
    for session in [device, on_cpu()] {
        let query = session.sql("SELECT range AS v FROM range(0, 20001) ORDER BY v DESC").unwrap();
        let batches: Vec<_> = query.batches(4096).unwrap().collect();
        assert!(batches.iter().all(|batch| batch.as_ref().unwrap().num_rows() <= 4096));
        assert_eq!(values(batches), (0..20001).rev().collect::<Vec<i64>>());
        let none = session.sql("SELECT range AS v FROM range(0, 9) WHERE range > 10").unwrap();
        assert_eq!(none.batches(10).unwrap().count(), 0);
    }
}

#[test]
fn an_error_behind_rows_is_the_last_item() {
    let query = on_cpu().sql("SELECT 1 / (range - 500000) AS v FROM range(0, 1000000)").unwrap();
    let mut batches = query.batches(1 << 20).unwrap();
    assert!(batches.next().unwrap().is_ok());
    let error = batches.find_map(Result::err).expect("an error");
    assert!(error.to_string().contains("ivide by zero"), "{error}");
    assert!(batches.next().is_none());
    // One before the first row is told at once.
    let query = on_cpu().sql("SELECT 1 / range AS v FROM range(0, 10)").unwrap();
    assert!(query.batches(10).is_err());
}

/// A column that its sample takes for numbers, and that has one other value, behind more bytes than
/// are held back or before.
fn misfit_at(row: usize, rows: usize) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    let filler = "f".repeat(2000);
    let mut text = String::from("a,filler\n");
    for at in 0..rows {
        match at == row {
            true => writeln!(text, "x{at},{filler}").unwrap(),
            false => writeln!(text, "{at},{filler}").unwrap(),
        }
    }
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn a_value_that_no_sample_saw_changes_the_type_before_the_first_row_leaves() {
    const ROWS: usize = 45_000;
    // The second lies behind 64 MB of rows.
    for row in [1234, 42_111] {
        let file = misfit_at(row, ROWS);
        let path = file.path().display();
        let session = on_cpu();
        let sql = format!("SELECT a, filler FROM read_csv('{path}', sample_size => 20)");
        let query = session.sql(&sql).unwrap();
        let (mut rows, mut odd) = (0, vec![]);
        for batch in query.batches(1 << 16).unwrap() {
            let batch = batch.unwrap();
            rows += batch.num_rows();
            let texts = warpframe::arrow::compute::cast(
                batch.column(0),
                &warpframe::arrow::datatypes::DataType::Utf8,
            );
            let texts = texts.unwrap();
            odd.extend(
                texts
                    .as_string::<i32>()
                    .iter()
                    .flatten()
                    .filter(|text| text.starts_with('x'))
                    .map(String::from),
            );
        }
        assert_eq!((rows, odd), (ROWS, vec![format!("x{row}")]));
    }
}

#[test]
fn what_cannot_be_asked_of_the_wider_type_is_an_error_and_no_row_left() {
    let file = misfit_at(42_111, 45_000);
    let path = file.path().display();
    let sql = format!("SELECT a + 1, filler FROM read_csv('{path}', sample_size => 20)");
    let error = on_cpu().sql(&sql).unwrap().batches(1000).map(|_| ()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Parse { .. }), "{error:?}");
    assert!(error.to_string().contains("42113"), "{error}");
}
