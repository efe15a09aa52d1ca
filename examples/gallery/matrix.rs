//! The product of two square matrices, by a kernel that reads each value from memory as often as it
//! is needed, and by one that a block reads once for all its threads, into tiles of shared memory.
//!
//! A tile of 16 × 16 is read 16 times less often. `--rows` is the number of a matrix's cells.

use warpframe::prelude::*;
use warpframe::{KernelArg, Series};

use super::{Answer, Gallery, Lesson, Outcome, first, same};

pub(crate) const LESSON: Lesson = Lesson {
    name: "matrix",
    about: "a product of matrices, with and without tiles",
    rows: 50 * 50,
    needs_device: true,
    run,
};

const SOURCE: &str = r#"
#define SIDE 16

extern "C" __global__ void naive(const float* a, const float* b, float* c, int n) {
    const int column = blockIdx.x * SIDE + threadIdx.x, row = blockIdx.y * SIDE + threadIdx.y;
    if (row >= n || column >= n) return;
    float sum = 0;
    for (int k = 0; k < n; k++) sum += a[(long long)row * n + k] * b[(long long)k * n + column];
    c[(long long)row * n + column] = sum;
}

extern "C" __global__ void tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float left[SIDE][SIDE], right[SIDE][SIDE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int column = blockIdx.x * SIDE + x, row = blockIdx.y * SIDE + y;
    float sum = 0;
    for (int from = 0; from < n; from += SIDE) {
        // Beyond the edge are zeros, so that all threads reach the barriers.
        left[y][x] = row < n && from + x < n ? a[(long long)row * n + from + x] : 0;
        right[y][x] = from + y < n && column < n ? b[(long long)(from + y) * n + column] : 0;
        __syncthreads();
        for (int k = 0; k < SIDE; k++) sum += left[y][k] * right[k][x];
        __syncthreads(); // before the tiles are overwritten
    }
    if (row < n && column < n) c[(long long)row * n + column] = sum;
}
"#;

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    let n = rows.isqrt();
    // Small whole numbers: sums of their products are exact below 2²⁴ in absolute value.
    if n > 1 << 20 {
        return Err("--rows: sums of more than 2²⁰ products would not be exact".into());
    }
    let frame = gallery.sql(&format!(
        "SELECT (range % 7 - 3)::REAL AS a, (range % 5 - 2)::REAL AS b FROM range(0, {})",
        n * n
    ))?;
    let (a, b) = (frame.column("a")?, frame.column("b")?);
    let product = |name: &str| -> Outcome<(Series, std::time::Duration)> {
        let kernel = gallery.session.kernel(SOURCE, name)?;
        gallery.timed(|| {
            let c = KernelArg::fresh(DataType::Float32, n * n);
            let arguments = [(&a).into(), (&b).into(), c, n.into()];
            // SAFETY: threads read and write cells of row and column below n.
            first(unsafe {
                kernel.launch((n.div_ceil(16), n.div_ceil(16)), (16, 16), 0, arguments)
            }?)
        })
    };
    let (naive, time_naive) = product("naive")?;
    let (tiled, time_tiled) = product("tiled")?;

    let both = gallery.session.from_series([("x", &naive), ("y", &tiled)])?;
    same("cells that differ", both.filter(col("x").not_eq(col("y")))?.num_rows(), 0)?;
    for (row, column) in
        [(0, 0), (0, n - 1), (n / 2, n / 3), (n / 3, n / 2), (n - 1, 0), (n - 1, n - 1)]
    {
        let left = |k: usize| ((row * n + k) % 7) as f64 - 3.0;
        let right = |k: usize| ((k * n + column) % 5) as f64 - 2.0;
        let expected: f64 = (0..n).map(|k| left(k) * right(k)).sum();
        let found: f64 = tiled.get::<f32>(row * n + column)?.into();
        same(&format!("the cell of row {row} and column {column}"), found, expected)?;
    }
    let corner: f32 = tiled.get(n * n - 1)?;
    let size = format!("{n} x {n}");
    let text = format!("the last cell of the product of two {size} matrices is {corner}");
    Ok(Answer::new(text).way("each thread by itself", &size, time_naive).way(
        "tiles of 16 x 16",
        &size,
        time_tiled,
    ))
}
