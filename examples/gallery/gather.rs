//! A gather, out[i] = x[at[i]], and what comes of an index beyond the end.
//!
//! In the simulator each index of a kernel's argument is checked: the error names the thread, the
//! index and the argument. On a GPU such a kernel reads what is not its own, or costs the process
//! its device. A frame's `take` checks on every device, so on a GPU the lesson shows that.

use warpframe::prelude::*;
use warpframe::{ErrorKind, KernelArg, Series};

use super::{Answer, Gallery, Lesson, Outcome, first, same};

pub(crate) const LESSON: Lesson = Lesson {
    name: "gather",
    about: "an index beyond the end, and the error that names it",
    rows: 50_000,
    needs_device: false,
    run,
};

const SOURCE: &str = r#"
extern "C" __global__ void gather(const double* x, const long long* at, double* out, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[at[i]];
}
"#;

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    let x = gallery.sql(&format!("SELECT range / 2.0 AS x FROM range(0, {rows})"))?;
    // The rows from the last to the first.
    let at = gallery.sql(&format!("SELECT {rows} - 1 - range AS row FROM range(0, {rows})"))?;
    let (taken, time) = gallery.timed(|| Ok(x.take(&at)?))?;
    let backwards = (0..rows).rev().map(|row| row as f64 / 2.0);
    let taken = taken.column("x")?.to_vec::<f64>()?;
    if let Some((row, (found, expected))) = taken
        .iter()
        .zip(backwards.clone())
        .enumerate()
        .find(|(_, (found, expected))| *found != expected)
    {
        same(&format!("take: row {row}"), *found, expected)?;
    }
    same("rows of take", taken.len(), rows)?;
    let mut answer = Answer::default().way("frame.take", rows, time);

    let beyond = frame!(gallery.session; "row" => [0i64, rows as i64 + 7, 1])?;
    let error = x.take(&beyond).err().ok_or("take of a row beyond the end is no error")?;
    match error.kind() {
        ErrorKind::RowNotFound { row, rows: there } => {
            same("the row", (*row, *there), (rows as i128 + 7, rows as u64))?
        }
        _ => return Err(format!("another error: {error}").into()),
    }
    answer.text = format!("take says: {error}");

    if let Some(kernel) = gallery.kernel(SOURCE, "gather")? {
        let values = x.column("x")?;
        let launch = |at: &Series| {
            let n = at.len();
            let arguments =
                [(&values).into(), at.into(), KernelArg::fresh(DataType::Float64, n), n.into()];
            // SAFETY: the numbers of `at` are below the length of x, or the simulator checks them.
            first(unsafe { kernel.launch(n.div_ceil(256), 256, 0, arguments) }?)
        };
        let (made, time) = gallery.timed(|| launch(&at.column("row")?))?;
        if made.to_vec::<f64>()? != taken {
            return Err("the kernel gathers other values than take".into());
        }
        answer = answer.way("raw kernel", rows, time);
        if !gallery.on_cuda() {
            let error = launch(&beyond.column("row")?)
                .err()
                .ok_or("an index beyond the end is no error")?
                .to_string();
            // Of several threads that fail, the one that ran first is named.
            if !(error.contains(" of block 0: index ") && error.contains(" of argument x")) {
                return Err(format!("the error does not name index and argument: {error}").into());
            }
            answer.text += &format!("\n  the simulator says: {error}");
        }
    }
    Ok(answer)
}
