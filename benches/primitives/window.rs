//! Window functions over partitions whose rows lie scattered.

use warpframe::arrow::datatypes::DataType;
use warpframe::prelude::*;

use super::data::*;
use super::harness::{Bench, Case, Outcome, each_chunk, ensure};

const PARTITIONS: u64 = 1000;
/// Rows of a short frame before its last.
const SHORT: u64 = 10;
/// Rows of a long frame before its last.
const LONG: u64 = 1000;

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    let (short, long) = (preceding(Some(SHORT)), preceding(Some(LONG)));
    let cases = [
        ("row_number", windowed(row_number(), preceding(None))),
        ("lag f64", windowed(lag(col("x"), Some(1), Some(0.0.into())), preceding(None))),
        ("running sum f64", windowed(sum(col("x")), preceding(None))),
        ("sum f64 of 11 rows", windowed(sum(col("x")), short)),
        ("sum f64 of 1001 rows", windowed(sum(col("x")), long)),
        ("sum f64 of the partition", over(sum(col("x")), [col("k")], [])),
    ]
    .map(|(name, function)| (format!("window {name} partitions={PARTITIONS}"), function));
    if !bench.wants(cases.iter().map(|(name, _)| name)) {
        return Ok(());
    }
    // Row numbers say where a row stands: its partition, and its place there.
    let place = Permutation::of(rows);
    let number = |row| place.at(row);
    let value = |number| below(4, number, 100) as f64;
    let frame = bench.frame([
        ("k", i64s(fill(rows, |row| (number(row) % PARTITIONS) as i64))),
        ("t", i64s(fill(rows, |row| (number(row) / PARTITIONS) as i64))),
        ("x", f64s(fill(rows, |row| value(number(row))))),
    ])?;
    // Sums of small integers are exact.
    let mut sums: Vec<f64> = fill(rows, value);
    for at in PARTITIONS as usize..rows {
        sums[at] += sums[at - PARTITIONS as usize];
    }
    let before = |number: u64, rows: u64| number.checked_sub(rows * PARTITIONS);
    let without =
        |number: u64, rows: u64| before(number, rows).map_or(0.0, |before| sums[before as usize]);
    let last = |number: u64| number + (rows as u64 - 1 - number) / PARTITIONS * PARTITIONS;
    let expected: [&(dyn Fn(u64) -> f64 + Sync); 6] = [
        &|number| (number / PARTITIONS + 1) as f64,
        &|number| before(number, 1).map_or(0.0, value),
        &|number| sums[number as usize],
        &|number| sums[number as usize] - without(number, SHORT + 1),
        &|number| sums[number as usize] - without(number, LONG + 1),
        &|number| sums[last(number) as usize],
    ];
    for ((name, function), expected) in cases.into_iter().zip(expected) {
        let columns = || [col("k"), col("t"), cast(function.clone(), DataType::Float64).alias("w")];
        let run = || frame.lazy()?.select(columns())?.collect();
        bench.time(Case::new(name, rows, 48 * rows), run, |result| {
            each_chunk(result, |_, batch| {
                let (k, t, found) =
                    (i64_column(batch, 0), i64_column(batch, 1), f64_column(batch, 2));
                let right = every(found.len(), |at| {
                    found[at] == expected(t[at] as u64 * PARTITIONS + k[at] as u64)
                });
                ensure(right, "a row has another value")
            })?;
            ensure(result.num_rows() == rows, "rows are missing")
        });
    }
    Ok(())
}

fn windowed(function: Expr, frame: WindowFrame) -> Expr {
    over_frame(function, [col("k")], [asc(col("t"))], frame)
}

/// A frame of the row and so many before it, or all.
fn preceding(rows: Option<u64>) -> WindowFrame {
    WindowFrame::new_bounds(
        WindowFrameUnits::Rows,
        WindowFrameBound::Preceding(rows.into()),
        WindowFrameBound::CurrentRow,
    )
}
