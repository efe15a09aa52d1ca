//! Sums of whole columns.

use warpframe::prelude::*;

use super::data::*;
use super::harness::{Bench, Case, Outcome, close, each_chunk, ensure};

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    sum_f64(bench, rows, "sum f64".into(), 0)
}

/// By the share of nulls.
pub fn nulls(bench: &Bench, rows: usize, percent: u64) -> Outcome {
    sum_f64(bench, rows, format!("sum f64 nulls={percent}%"), percent)
}

fn sum_f64(bench: &Bench, rows: usize, name: String, nulls: u64) -> Outcome {
    if !bench.wants([&name]) {
        return Ok(());
    }
    let value = |row| unit(9, row) * 5.0 + 5.0;
    let frame = bench.frame([("x", f64s_with_nulls(fill(rows, value), 11, nulls))])?;
    let case = Case::new(name, rows, 8 * rows + if nulls > 0 { rows } else { 0 });
    let run = || frame.select([sum(col("x"))]);
    bench.time(case, run, |result| {
        let valid = |row: &u64| nulls == 0 || !among(11, *row, nulls);
        let parts = parallel(rows, |range| {
            range.map(|row| row as u64).filter(valid).map(value).sum::<f64>()
        });
        expect_sum(result, parts.into_iter().sum())
    });
    Ok(())
}

/// Whether a result is this one number.
pub fn expect_sum(result: &DataFrame, expected: f64) -> Outcome {
    each_chunk(result, |_, batch| {
        let found = f64_column(batch, 0)[0];
        ensure(close(found, expected), format!("{found} for {expected}"))
    })?;
    ensure(result.num_rows() == 1, "a sum is one row")
}
