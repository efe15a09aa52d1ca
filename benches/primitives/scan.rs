//! Running sums.

use super::data::*;
use super::harness::{Bench, Case, Outcome, close, each_chunk, ensure};

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    let name = "cumulative_sum f64";
    if !bench.wants([name]) {
        return Ok(());
    }
    let value = |row| unit(9, row) * 5.0 + 5.0;
    let frame = bench.frame([("x", f64s(fill(rows, value)))])?;
    bench.time(
        Case::new(name, rows, 16 * rows),
        || frame.cumulative_sum("x"),
        |result| {
            let mut sum = 0.0;
            each_chunk(result, |first, batch| {
                for (row, found) in (first as u64..).zip(f64_column(batch, 0)) {
                    sum += value(row);
                    ensure(close(*found, sum), format!("row {row}: {found} for {sum}"))?;
                }
                Ok(())
            })?;
            ensure(result.num_rows() == rows, "rows are missing")
        },
    );
    Ok(())
}
