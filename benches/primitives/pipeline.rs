//! Expressions and probes that are fused with what comes after them.

use warpframe::prelude::*;

use super::data::*;
use super::harness::{Bench, Case, Outcome, each_chunk, ensure};
use super::join::Sides;
use super::reduce::expect_sum;
use super::sort::payload;

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    quadratic(bench, rows)?;
    quadratic(bench, rows.min(1_000_000))
}

/// A root of `a·x² + b·x + c` for each row.
fn quadratic(bench: &Bench, rows: usize) -> Outcome {
    let name = "quadratic f64";
    if !bench.wants([name]) {
        return Ok(());
    }
    let value = |stream, row, low, high| low + unit(stream, row) * (high - low);
    let coefficients =
        |row| [value(13, row, 5.0, 10.0), value(14, row, 10.0, 20.0), value(15, row, -0.1, 0.1)];
    let column = |at: usize| f64s(fill(rows, |row| coefficients(row)[at]));
    let frame = bench.frame([("a", column(0)), ("b", column(1)), ("c", column(2))])?;
    let run = || {
        let [a, b, c] = ["a", "b", "c"].map(|name| move || col(name));
        let root = (-b() + sqrt(b() * b() - lit(4.0) * a() * c())) / (lit(2.0) * a());
        frame.select([root.alias("x")])
    };
    bench.time(Case::new(name, rows, 32 * rows), run, |result| {
        ensure(result.num_rows() == rows, "rows are missing")?;
        each_chunk(result, |first, batch| {
            let roots = f64_column(batch, 0);
            let right = every(roots.len(), |at| {
                let [a, b, c] = coefficients((first + at) as u64);
                let root = (-b + (b * b - 4.0 * a * c).sqrt()) / (2.0 * a);
                // Where a multiplication is fused with an addition, b² − 4ac keeps more of its
                // bits; b takes them away again.
                (roots[at] - root).abs() <= 1e-14 * b
            });
            ensure(right, "a root is wrong")
        })
    });
    Ok(())
}

/// A sum over a join, of which nothing is kept.
pub fn probe_sum(bench: &Bench, sides: &Sides, name: String) {
    let shape = sides.shape;
    let case = Case::new(name, shape.rows, 8 * shape.rows + 16 * shape.build);
    let run = || sides.joined()?.select([sum(col("p0"))])?.collect();
    bench.time(case, run, |result| {
        expect_sum(result, sides.sum_of(|number| payload(number, 0) as u64) as f64)
    });
}
