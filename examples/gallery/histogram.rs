//! A histogram, three ways: the aggregate `histogram`, groups of numbers of bins, and a kernel that
//! counts in each block's shared memory.
//!
//! Many threads count in few bins. In shared memory their atomic additions meet only those of their
//! own block; a block adds its counts to those of all others once, at its end.

use warpframe::KernelArg;
use warpframe::prelude::*;

use super::{Answer, Gallery, Lesson, Outcome, bar, first, same};

pub(crate) const LESSON: Lesson = Lesson {
    name: "histogram",
    about: "counts in bins, three ways",
    rows: 100_000,
    needs_device: false,
    run,
};

const SOURCE: &str = r#"
extern "C" __global__ void count(const double* x, unsigned long long* counts, int bins, long long n) {
    extern __shared__ unsigned int own[];
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x) own[bin] = 0;
    __syncthreads();
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        const int bin = (int)(x[i] / 2 * bins);
        if (bin >= 0 && bin < bins) atomicAdd(&own[bin], 1u);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += blockDim.x)
        if (own[bin] > 0) atomicAdd(&counts[bin], (unsigned long long)own[bin]);
}
"#;

const BINS: usize = 20;

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    // Sums of two random numbers are below 2, and most often near 1.
    let query = format!("SELECT random(1, range) + random(2, range) AS x FROM range(0, {rows})");
    let frame = gallery.sql(&query)?;
    gallery.session.register_table("numbers", &frame)?;

    let aggregate = format!(
        "SELECT unnest(counts) AS n FROM (SELECT histogram(x, 0, 2, {BINS}) AS counts FROM numbers)"
    );
    let (made, time_aggregate) = gallery.timed(|| gallery.sql(&aggregate))?;
    let counts = made.column("n")?.to_vec::<i64>()?;

    let groups = format!(
        "SELECT CAST(floor(x / 2 * {BINS}) AS BIGINT) AS bin, count(*) AS n FROM numbers GROUP BY 1"
    );
    let (made, time_groups) = gallery.timed(|| gallery.sql(&groups))?;
    gallery.session.deregister("numbers")?;
    let mut grouped = vec![0; BINS];
    for (bin, n) in
        made.column("bin")?.to_vec::<i64>()?.into_iter().zip(made.column("n")?.to_vec::<i64>()?)
    {
        *grouped
            .get_mut(usize::try_from(bin)?)
            .ok_or_else(|| format!("there is no bin {bin}"))? = n;
    }
    same("counts of histogram()", &counts, &grouped)?;
    same("all counts", counts.iter().sum::<i64>(), rows as i64)?;

    let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
    let bars = counts.iter().enumerate().map(|(bin, n)| {
        bar(
            format!("{:.1} to {:.1}", bin as f64 / 10.0, (bin + 1) as f64 / 10.0),
            *n as f64 / most,
            n,
        )
    });
    let middle = counts[BINS / 2 - 1] + counts[BINS / 2];
    let mut answer = Answer::new(format!("{middle} of {rows} values are between 0.9 and 1.1"))
        .picture(bars)
        .way("histogram(x, 0, 2, 20)", rows, time_aggregate)
        .way("GROUP BY", rows, time_groups);

    if let Some(kernel) = gallery.kernel(SOURCE, "count")? {
        let x = frame.column("x")?;
        let blocks = rows.div_ceil(4 * 256).clamp(1, 1024);
        let (made, time) = gallery.timed(|| {
            let arguments =
                [(&x).into(), KernelArg::fresh(DataType::UInt64, BINS), BINS.into(), rows.into()];
            // SAFETY: threads read values below the length of x, and count in bins that there are.
            first(unsafe { kernel.launch(blocks, 256, BINS * size_of::<u32>(), arguments) }?)
        })?;
        let by_kernel =
            made.to_vec::<u64>()?.into_iter().map(i64::try_from).collect::<Result<Vec<_>, _>>()?;
        same("counts of the kernel", &by_kernel, &counts)?;
        answer = answer.way("raw kernel", rows, time);
    }
    Ok(answer)
}
