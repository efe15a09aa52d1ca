//! Distinct keys, of the tables that `group.rs` makes.

use warpframe::prelude::*;

use super::group::{GroupShape, Groups};
use super::harness::{Bench, Case};

pub fn name(shape: GroupShape) -> String {
    shape.name("distinct i64")
}

pub fn time(bench: &Bench, data: &Groups) {
    let rows = data.shape.rows;
    let case = Case::new(name(data.shape), rows, 8 * rows + 8 * data.present());
    let run = || data.frame.lazy()?.select([col("k")])?.distinct()?.collect();
    bench.time(case, run, |result| data.check(result, |_, _, _| true));
}
