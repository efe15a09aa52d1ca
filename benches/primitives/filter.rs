//! Rows whose `x` is less than a bound.

use warpframe::prelude::*;

use super::data::*;
use super::harness::{Bench, Case, Outcome, each_chunk, ensure};
use super::sort::{PAYLOAD, check_payload, payload};

/// A table of `x`, and of `k` that tells the row, with columns of floats to pass on.
struct Table {
    rows: usize,
    /// Percent of `x` that is null.
    nulls: u64,
    columns: usize,
    frame: DataFrame,
}

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    let shares = [1, 10, 50, 90];
    let name = |percent| format!("filter x<c of (i64,f64) kept={percent}%");
    if !bench.wants(shares.map(name)) {
        return Ok(());
    }
    let table = Table::new(bench, rows, 0, 1)?;
    shares.into_iter().for_each(|percent| table.time(bench, name(percent), percent));
    Ok(())
}

/// Half of the valid rows kept, by the share of nulls.
pub fn nulls(bench: &Bench, rows: usize, percent: u64) -> Outcome {
    let name = format!("filter x<c of (i64,f64) kept=50% nulls={percent}%");
    if bench.wants([&name]) {
        Table::new(bench, rows, percent, 1)?.time(bench, name, 50);
    }
    Ok(())
}

/// A tenth kept, by the number of columns besides the key.
pub fn payloads(bench: &Bench, rows: usize, columns: usize) -> Outcome {
    let name = format!("filter x<c of (i64,f64…) kept=10% payload={columns}");
    if bench.wants([&name]) {
        Table::new(bench, rows, 0, columns)?.time(bench, name, 10);
    }
    Ok(())
}

impl Table {
    fn new(bench: &Bench, rows: usize, nulls: u64, columns: usize) -> Outcome<Table> {
        let x = f64s_with_nulls(fill(rows, |row| unit(7, row)), 8, nulls);
        let k = i64s(fill(rows, |row| Domain::Scattered.key(row)));
        let more = (0..columns).map(|at| (PAYLOAD[at], f64s(fill(rows, |row| payload(row, at)))));
        let frame = bench.frame([("x", x), ("k", k)].into_iter().chain(more))?;
        Ok(Table { rows, nulls, columns, frame })
    }

    fn time(&self, bench: &Bench, name: String, percent: u64) {
        let bound = percent as f64 / 100.0;
        let keeps = |row| unit(7, row) < bound && !(self.nulls > 0 && among(8, row, self.nulls));
        let kept = rows_where(self.rows, keeps);
        let validity = if self.nulls > 0 { self.rows } else { 0 };
        let case =
            Case::new(name, self.rows, 8 * self.rows + validity + 16 * (1 + self.columns) * kept);
        let columns = || ["k"].into_iter().chain(PAYLOAD[..self.columns].iter().copied()).map(col);
        let run =
            || self.frame.lazy()?.filter(col("x").lt(lit(bound)))?.select(columns())?.collect();
        bench.time(case, run, |result| {
            ensure(
                result.num_rows() == kept,
                format!("{} rows instead of {kept}", result.num_rows()),
            )?;
            let mut last = None;
            each_chunk(result, |_, batch| {
                let keys = i64_column(batch, 0);
                let row = |at: usize| Domain::Scattered.number(keys[at]);
                let right = every(keys.len(), |at| {
                    let before = if at == 0 { last } else { Some(row(at - 1)) };
                    keeps(row(at)) && before.is_none_or(|before| before < row(at))
                });
                ensure(right, "rows that the filter drops, or in another order")?;
                check_payload(batch, 1..1 + self.columns, row)?;
                last = keys.last().map(|key| Domain::Scattered.number(*key)).or(last);
                Ok(())
            })
        });
    }
}
