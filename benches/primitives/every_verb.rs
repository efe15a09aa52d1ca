//! Each verb of eager frames once, on tables of at most a million rows: what the host does beside
//! the kernels (`host_us`) when the session has the verb's plan. The aim is 50 µs; 200 for those
//! that look at values first, for joins, and for what is several verbs.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, StringArray};
use warpframe::prelude::*;

use super::data::*;
use super::harness::{Bench, Case, Outcome, ensure};
use super::verbs_of_tests::EVERY_VERB;

/// Rows of the tables, which are those of the bench where they are fewer.
const MOST_ROWS: usize = 1_000_000;

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    let name = |verb: &str| format!("every verb {verb}");
    if !bench.wants(EVERY_VERB.map(|verb| name(verb.name))) {
        return Ok(());
    }
    let rows = rows.min(MOST_ROWS);
    let (left, right) = (table(bench, rows, 0)?, table(bench, rows, 7)?);
    for verb in EVERY_VERB {
        let expected = (verb.run)(&left, &right).map(|frame| frame.shape());
        // Values are compared where these verbs are tested.
        let check = |found: &DataFrame| match expected {
            Ok(shape) => {
                ensure(found.shape() == shape, format!("{:?} instead of {shape:?}", found.shape()))
            }
            Err(error) => Err(error.into()),
        };
        bench.time(Case::new(name(verb.name), rows, 0), || (verb.run)(&left, &right), check);
    }
    Ok(())
}

/// A table of strings `k`, integers `x`, floats `f` and days `d`.
fn table(bench: &Bench, rows: usize, shift: u64) -> Outcome<DataFrame> {
    let texts = ["a", "b", "c", "e", "a text of more than twelve bytes"];
    let text = |row: u64| texts[below(1, row + shift, texts.len() as u64) as usize];
    let k: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows as u64).map(text)));
    let x = i64s(fill(rows, |row| below(2, row + shift, 100) as i64));
    let f = f64s(fill(rows, |row| unit(3, row + shift)));
    let frame = bench.frame([("k", k), ("x", x), ("f", f)])?;
    Ok(frame.with_columns([(col("x") + 19_000)
        .cast(DataType::Int32)
        .cast(DataType::Date32)
        .alias("d")])?)
}
