//! Particles to jets: four sums a group, in the order of keys that come almost sorted; a million
//! rows, and some 95,000 groups.

use warpframe::prelude::*;

use super::data::*;
use super::harness::{Bench, Case, Outcome, close, each_chunk, ensure};

/// Mean increment of the key from row to row.
const STEP: f64 = 0.1;

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    let (name, rows) = ("jets: 4 sums by key, sorted", rows.min(1_000_000));
    if !bench.wants([name]) {
        return Ok(());
    }
    let keys: Vec<i64> = (0..rows as u64)
        .scan(0, |key, row| {
            *key += poisson(unit(16, row));
            Some(*key)
        })
        .collect();
    let momentum = |row, at: usize| {
        // Normal: Box and Muller.
        let (u, v) = (1.0 - unit(17 + at as u64, row), unit(21 + at as u64, row));
        10.0 * (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    };
    let mut expected: Vec<(i64, [f64; 4])> = vec![];
    for (row, key) in keys.iter().enumerate() {
        if expected.last().is_none_or(|(last, _)| last != key) {
            expected.push((*key, [0.0; 4]));
        }
        let sums = &mut expected.last_mut().ok_or("no group")?.1;
        sums.iter_mut().enumerate().for_each(|(at, sum)| *sum += momentum(row as u64, at));
    }
    const NAMES: [&str; 4] = ["px", "py", "pz", "E"];
    let columns = NAMES
        .iter()
        .enumerate()
        .map(|(at, name)| (*name, f64s(fill(rows, |row| momentum(row, at)))));
    let frame = bench.frame(std::iter::once(("jetid", i64s(keys))).chain(columns))?;
    let case = Case::new(name, rows, 40 * rows + 40 * expected.len());
    let run = || {
        let jets = frame.lazy()?.group_by([col("jetid")]).agg(NAMES.map(|name| sum(col(name))))?;
        jets.sort([asc(col("jetid"))])?.collect()
    };
    bench.time(case, run, |result| {
        ensure(result.num_rows() == expected.len(), "jets are missing")?;
        each_chunk(result, |first, batch| {
            let right = (0..batch.num_rows()).all(|at| {
                let (key, sums) = &expected[first + at];
                let mut columns = sums.iter().enumerate();
                i64_column(batch, 0)[at] == *key
                    && columns.all(|(c, sum)| close(f64_column(batch, 1 + c)[at], *sum))
            });
            ensure(right, "a jet is wrong, or in the wrong place")
        })
    });
    Ok(())
}

/// A Poisson variate of a uniform one, by adding up probabilities.
fn poisson(uniform: f64) -> i64 {
    let (mut k, mut p) = (0, (-STEP).exp());
    let mut total = p;
    while uniform > total && k < 20 {
        k += 1;
        p *= STEP / k as f64;
        total += p;
    }
    k
}
