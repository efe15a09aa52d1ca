//! The account of bytes that kernels move, where it can be worked out by hand. `jets` has 100,000
//! rows.

use crate::differential::{Cell, Pair, Rows, run};

const ROWS: u64 = 100_000;

/// Bytes that the query's kernels move, as counted.
fn moved(pair: &Pair, sql: &str) -> u64 {
    let before = pair.gpu().counters().bytes_moved;
    run(&pair.device, sql).expect("it runs");
    pair.gpu().counters().bytes_moved - before
}

/// Columns are there: kernels that look at them while they are read count, too.
fn with_columns() -> Pair {
    let pair = Pair::new().samples();
    run(&pair.device, "SELECT px, py, \"E\" FROM jets").expect("it runs");
    pair
}

#[track_caller]
fn about(found: u64, expected: u64) {
    assert!(
        found >= expected && found <= expected + expected / 20,
        "{found} bytes, expected {expected}"
    );
}

#[test]
fn columns_count_once_for_each_pipeline_that_names_them() {
    let pair = with_columns();
    about(moved(&pair, "SELECT sum(px) FROM jets"), ROWS * 8);
    about(moved(&pair, "SELECT sum(px), max(px * px) FROM jets"), ROWS * 8);
    about(moved(&pair, "SELECT sum(px * py) FROM jets"), ROWS * 16);
    about(moved(&pair, "SELECT px + py AS s FROM jets"), ROWS * 24);
    assert_eq!(moved(&pair, "SELECT px, py FROM jets"), 0, "columns stay where they are");
    assert_eq!(moved(&pair, "SELECT px FROM jets LIMIT 5"), 0);
}

#[test]
fn a_filter_reads_its_condition_and_moves_what_stays() {
    let pair = with_columns();
    let sql = "SELECT px FROM jets WHERE \"E\" > 5";
    let Cell::Int(kept) =
        Rows::of(&run(&pair.device, &format!("SELECT count(*) FROM ({sql})")).unwrap()).rows[0][0]
    else {
        panic!("a count")
    };
    assert!(kept > 1000);
    about(moved(&pair, sql), ROWS * 8 + ROWS / 8 + kept as u64 * 16);
}
