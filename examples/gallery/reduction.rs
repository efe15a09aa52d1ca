//! A sum over blocks of any size: in shared memory, then over the blocks.
//!
//! The block's threads add their own values first, then halve their number until one sum is left.
//! Shared memory is dynamic: its size, as the block's, is known at the launch. The blocks' sums are
//! added by a query, or by one atomic addition for each block. An atomic addition for each value
//! does the same with no shared memory, and all threads wait for one address.

use warpframe::KernelArg;
use warpframe::prelude::*;

use super::{Answer, Gallery, Lesson, Outcome, first, same};

pub(crate) const LESSON: Lesson = Lesson {
    name: "reduction",
    about: "a sum in shared memory, beside atomic additions",
    rows: 100_000,
    needs_device: true,
    run,
};

const SOURCE: &str = r#"
// The sum of what the block's threads have, in thread 0. Any number of threads, not only powers of
// two.
__device__ double block_sum(double mine) {
    extern __shared__ double cells[];
    cells[threadIdx.x] = mine;
    __syncthreads();
    for (unsigned width = blockDim.x; width > 1;) {
        const unsigned half = (width + 1) / 2;
        if (threadIdx.x + half < width) cells[threadIdx.x] += cells[threadIdx.x + half];
        __syncthreads();
        width = half;
    }
    return cells[0];
}

// The sum of every value whose number is the thread's plus a multiple of all threads.
__device__ double thread_sum(const double* x, long long n) {
    double sum = 0;
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) sum += x[i];
    return sum;
}

extern "C" __global__ void partial_sums(const double* x, double* sums, long long n) {
    const double sum = block_sum(thread_sum(x, n));
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void atomic_by_block(const double* x, double* sum, long long n) {
    const double mine = block_sum(thread_sum(x, n));
    if (threadIdx.x == 0) atomicAdd(sum, mine);
}

extern "C" __global__ void atomic_by_value(const double* x, double* sum, long long n) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) atomicAdd(sum, x[i]);
}
"#;

const THREADS: [usize; 5] = [32, 100, 256, 777, 1024];
const MOST_BLOCKS: usize = 1024;

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    // Sums of whole numbers below 2⁵³ are exact in whatever order they are added.
    let frame =
        gallery.sql(&format!("SELECT (range % 1000)::DOUBLE AS x FROM range(0, {rows})"))?;
    let x = frame.column("x")?;
    let (sum, time) = gallery.timed(|| Ok(frame.select([col("x").sum()])?.item::<f64>()?))?;
    let (whole, rest) = (rows / 1000, rows % 1000);
    let expected = (whole * 499_500 + rest * rest.saturating_sub(1) / 2) as f64;
    same("sum(x)", sum, expected)?;

    let mut answer = Answer::new(format!("the sum is {sum}")).way("sum(x)", rows, time);
    for name in ["partial_sums", "atomic_by_block", "atomic_by_value"] {
        let kernel = gallery.session.kernel(SOURCE, name)?;
        for threads in THREADS {
            // Fewer blocks than rows would fill, so that threads have several values.
            let blocks = rows.div_ceil(4 * threads).clamp(1, MOST_BLOCKS);
            let sums = if name == "partial_sums" { blocks } else { 1 };
            let shared = threads * size_of::<f64>();
            let (found, time) = gallery.timed(|| {
                let arguments =
                    [(&x).into(), KernelArg::fresh(DataType::Float64, sums), rows.into()];
                // SAFETY: threads read values below the length of x, and write a cell each of the
                // shared memory; a block writes one of the `sums`.
                let made = first(unsafe { kernel.launch(blocks, threads, shared, arguments) }?)?;
                Ok(gallery
                    .session
                    .from_series([("x", &made)])?
                    .select([col("x").sum()])?
                    .item::<f64>()?)
            })?;
            same(&format!("{name} by {threads} threads"), found, expected)?;
            let size = format!("{rows} by {blocks} x {threads}");
            answer = answer.way(name.replace('_', " "), size, time);
        }
    }
    Ok(answer)
}
