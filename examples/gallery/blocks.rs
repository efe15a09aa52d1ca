//! y = x1·x2 + b from 10,000 rows upward, with blocks of 32 to 1024 threads.
//!
//! A launch costs some microseconds however few rows there are. Beyond some million rows memory
//! sets the pace: 24 bytes go by for each row. The block's size matters little between these two,
//! unless it is so small that a multiprocessor is not filled.

use warpframe::KernelArg;
use warpframe::prelude::*;

use super::{Answer, Gallery, Lesson, Outcome, bar, first, same};

pub(crate) const LESSON: Lesson = Lesson {
    name: "blocks",
    about: "y = x1·x2 + b, by rows and threads of a block",
    rows: 100_000,
    needs_device: true,
    run,
};

const SOURCE: &str = r#"
extern "C" __global__ void multiply_add(const double* x1, const double* x2, double b, double* y, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x1[i] * x2[i] + b;
}
"#;

const THREADS: [usize; 6] = [32, 64, 128, 256, 512, 1024];

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    let kernel = gallery.session.kernel(SOURCE, "multiply_add")?;
    let sizes =
        std::iter::successors(Some(10_000), |rows| Some(rows * 10)).take_while(|size| *size < rows);
    let mut rates = vec![];
    let mut answer = Answer::default();
    let mut last_sum = 0.0;
    for size in sizes.chain([rows]) {
        // Small whole numbers: their products and sums are exact, also where a GPU rounds once.
        let query = format!(
            "SELECT (range % 1000)::DOUBLE AS x1, (range % 7)::DOUBLE AS x2 FROM range(0, {size})"
        );
        let frame = gallery.sql(&query)?;
        let (x1, x2) = (frame.column("x1")?, frame.column("x2")?);
        let expected: f64 = frame.select([(col("x1") * col("x2") + lit(3.0)).sum()])?.item()?;
        for threads in THREADS {
            let mut y = None;
            let ((), time) = gallery.timed(|| {
                // What was written before is written again: nothing is allocated between the
                // launches.
                let to = y
                    .take()
                    .map_or_else(|| KernelArg::fresh(DataType::Float64, size), KernelArg::write);
                let arguments = [(&x1).into(), (&x2).into(), 3.0.into(), to, size.into()];
                // SAFETY: each thread reads and writes the values of its own number, below the
                // columns' length.
                y = Some(first(unsafe {
                    kernel.launch(size.div_ceil(threads), threads, 0, arguments)
                }?)?);
                Ok(())
            })?;
            let made = gallery.session.from_series([("y", &y.ok_or("no column")?)])?;
            last_sum = made.select([col("y").sum()])?.item()?;
            same(&format!("the sum of {size} rows by {threads} threads"), last_sum, expected)?;
            rates.push((size, threads, 24.0 * size as f64 / time.as_secs_f64().max(1e-9) / 1e9));
            answer = answer.way(format!("{threads} threads a block"), size, time);
        }
    }
    let best = rates.iter().map(|(.., rate)| *rate).fold(0.0, f64::max);
    let bars = rates.iter().map(|(size, threads, rate)| {
        bar(
            format!("{size:>11} rows, {threads:>4} threads"),
            rate / best,
            format!("{rate:.2} GB/s"),
        )
    });
    answer.text = format!("y sums up to {last_sum} in {rows} rows, whatever the block's size");
    Ok(answer.picture(bars))
}
