//! The first rows of a sort.

use warpframe::prelude::*;

use super::data::*;
use super::harness::{Bench, Case, Outcome, each_chunk, ensure};

const TOP: usize = 100;

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    let name = format!("top {TOP} of i64");
    if !bench.wants([&name]) {
        return Ok(());
    }
    let key = |row| random(1, row) as i64;
    let frame = bench.frame([("k", i64s(fill(rows, key)))])?;
    let run = || frame.top_k(TOP, [asc(col("k"))]);
    bench.time(Case::new(name, rows, 8 * rows), run, |result| {
        let mut least: Vec<i64> =
            parallel(rows, |range| least_of(range.map(|row| key(row as u64)))).concat();
        least.sort_unstable();
        least.truncate(TOP);
        let mut found = vec![];
        each_chunk(result, |_, batch| {
            found.extend_from_slice(i64_column(batch, 0));
            Ok(())
        })?;
        ensure(found == least, "these are not the least keys")
    });
    Ok(())
}

fn least_of(keys: impl Iterator<Item = i64>) -> Vec<i64> {
    let mut least = std::collections::BinaryHeap::with_capacity(TOP + 1);
    for key in keys {
        if least.len() < TOP || least.peek().is_some_and(|greatest| key < *greatest) {
            least.push(key);
        }
        if least.len() > TOP {
            least.pop();
        }
    }
    least.into_vec()
}
