//! Rows by number.

use super::data::*;
use super::harness::{Bench, Case, Outcome, each_chunk, ensure};
use super::sort::{check_payload, payload};

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    let name = "gather (i64,f64) by random permutation";
    if !bench.wants([name]) {
        return Ok(());
    }
    let permutation = Permutation::of(rows);
    let keys = i64s(fill(rows, |row| Domain::Scattered.key(row)));
    let frame = bench.frame([("k", keys), ("p0", f64s(fill(rows, |row| payload(row, 0))))])?;
    let numbers = bench.frame([("row", u32s(fill(rows, |row| permutation.at(row) as u32)))])?;
    bench.time(
        Case::new(name, rows, 36 * rows),
        || frame.take(&numbers),
        |result| {
            ensure(result.num_rows() == rows, "rows are missing")?;
            each_chunk(result, |first, batch| {
                let keys = i64_column(batch, 0);
                let number = |at| permutation.at((first + at) as u64);
                let right =
                    every(keys.len(), |at| Domain::Scattered.number(keys[at]) == number(at));
                ensure(right, "a key of another row")?;
                check_payload(batch, 1..2, number)
            })
        },
    );
    Ok(())
}
