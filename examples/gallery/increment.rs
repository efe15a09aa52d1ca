//! One is added to each value of an array: the smallest kernel that writes.
//!
//! A column that a frame has is copied before it is written, so that the frame stays as it is. What
//! a launch returned nobody else has: the next launch writes it where it lies.

use warpframe::KernelArg;
use warpframe::prelude::*;

use super::{Answer, Gallery, Lesson, Outcome, first, same};

pub(crate) const LESSON: Lesson = Lesson {
    name: "increment",
    about: "one added to each value of an array",
    rows: 100_000,
    needs_device: true,
    run,
};

const SOURCE: &str = r#"
extern "C" __global__ void increment(long long* x, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}
"#;

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    let kernel = gallery.session.kernel(SOURCE, "increment")?;
    let frame = gallery.sql(&format!("SELECT range AS x FROM range(0, {rows})"))?;
    let plus_one = |column: Series| {
        let arguments = [KernelArg::write(column), rows.into()];
        // SAFETY: each thread writes the value of its own number, below the length of x.
        first(unsafe { kernel.launch(rows.div_ceil(256), 256, 0, arguments) }?)
    };
    let (mut column, copied) = gallery.timed(|| plus_one(frame.column("x")?))?;

    let mut times = 1;
    let mut taken = Some(column);
    let ((), in_place) = gallery.timed(|| {
        times += 1;
        taken = Some(plus_one(taken.take().ok_or("no column")?)?);
        Ok(())
    })?;
    column = taken.ok_or("no column")?;

    let sum = |column: &Series| -> Outcome<i64> {
        Ok(gallery.session.from_series([("x", column)])?.select([col("x").sum()])?.item()?)
    };
    let n = rows as i64;
    same("the sum of 0, 1, …, as it was", sum(&frame.column("x")?)?, n * (n - 1) / 2)?;
    same("the sum of what was incremented", sum(&column)?, n * (n - 1) / 2 + n * times)?;
    same("the last value", column.get::<i64>(rows - 1)?, n - 1 + times)?;
    let text = format!("0, 1, … became {times}, {}, … by {times} launches", times + 1);
    Ok(Answer::new(text)
        .way("a frame's column, copied", rows, copied)
        .way("in place", rows, in_place))
}
