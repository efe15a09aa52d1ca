//! The root of a·x² + b·x + c nearer to zero, three ways: as expressions, as a function in CUDA C++
//! that queries call, and as a kernel over whole columns.
//!
//! The first two become parts of one kernel of the query. All divide c by the other root's factor:
//! the formula of the schoolbook, (−b + √(b² − 4ac)) / 2a, subtracts two numbers that are nearly
//! equal where a·c is small beside b².

use warpframe::arrow::array::AsArray;
use warpframe::arrow::datatypes::Float64Type;
use warpframe::prelude::*;
use warpframe::{KernelArg, ScalarFunction};

use super::{Answer, Gallery, Lesson, Outcome, close, first, same};

pub(crate) const LESSON: Lesson = Lesson {
    name: "quadratic",
    about: "roots of a·x² + b·x + c, three ways",
    rows: 1_000_000,
    needs_device: false,
    run,
};

const BODY: &str = "double q = -(b + sqrt(b * b - 4 * a * c)) / 2; return c / q;";

const SOURCE: &str = r#"
extern "C" __global__ void roots(const double* a, const double* b, const double* c, double* root, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        const double q = -(b[i] + sqrt(b[i] * b[i] - 4 * a[i] * c[i])) / 2;
        root[i] = c[i] / q;
    }
}
"#;

/// Rows that plain Rust checks; of the others the ways are compared with one another.
const CHECKED: usize = 10_000;

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    let session = &gallery.session;
    // b² is at least 16 and 4ac at most 12: there are always two roots.
    let numbers = gallery.sql(&format!(
        "SELECT 0.5 + random(1, range) AS a, 4 + 10 * random(2, range) AS b, 3 * random(3, range) - 1 AS c
         FROM range(0, {rows})"
    ))?;

    let (a, b, c) = (|| col("a"), || col("b"), || col("c"));
    let q = -(b() + sqrt(b() * b() - lit(4.0) * a() * c())) / lit(2.0);
    let expressions =
        numbers.lazy()?.select([c(), q.alias("q")])?.select([(c() / col("q")).alias("root")])?;
    let (by_expressions, time_expressions) = gallery.timed(|| Ok(expressions.collect()?))?;

    let double = DataType::Float64;
    let inputs = ["a", "b", "c"].map(|name| (name, double.clone()));
    session.register_function(ScalarFunction::new("root_of", inputs, double.clone(), BODY))?;
    let call = numbers.lazy()?.select([session.call("root_of", [a(), b(), c()])?.alias("root")])?;
    let (by_function, time_function) = gallery.timed(|| Ok(call.collect()?))?;

    let mut ways = vec![("the function", by_function.column("root")?)];
    let mut time_kernel = None;
    if let Some(kernel) = gallery.kernel(SOURCE, "roots")? {
        let (a, b, c) = (numbers.column("a")?, numbers.column("b")?, numbers.column("c")?);
        let (root, time) = gallery.timed(|| {
            let root = KernelArg::fresh(double.clone(), rows);
            let arguments = [(&a).into(), (&b).into(), (&c).into(), root, rows.into()];
            // SAFETY: each thread reads and writes the values of its own number, below the columns'
            // length.
            first(unsafe { kernel.launch(rows.div_ceil(256), 256, 0, arguments) }?)
        })?;
        ways.push(("the kernel", root));
        time_kernel = Some(time);
    }

    let expected = by_expressions.column("root")?;
    for (name, roots) in &ways {
        let both = session.from_series([("x", &expected), ("y", roots)])?;
        let apart =
            both.filter(abs(col("x") - col("y")).gt(lit(1e-12) * abs(col("x"))))?.num_rows();
        same(&format!("roots of {name} that are not those of the expressions"), apart, 0)?;
    }
    let some = session.from_series([
        ("a", &numbers.column("a")?),
        ("b", &numbers.column("b")?),
        ("c", &numbers.column("c")?),
        ("root", &expected),
    ])?;
    for batch in some.head(CHECKED)?.to_arrow()? {
        let [a, b, c, root] = [0, 1, 2, 3].map(|at| batch.column(at).as_primitive::<Float64Type>());
        for row in 0..batch.num_rows() {
            let (a, b, c) = (a.value(row), b.value(row), c.value(row));
            let q = -(b + (b * b - 4.0 * a * c).sqrt()) / 2.0;
            close(&format!("the root of {a}, {b}, {c}"), root.value(row), c / q, 1e-12)?;
        }
    }

    let sum: f64 = by_expressions.select([col("root").mean()])?.item()?;
    let mut answer = Answer::new(format!("the roots are {sum:.6} in the mean"))
        .way("expressions", rows, time_expressions)
        .way("function in CUDA C++", rows, time_function);
    if let Some(time) = time_kernel {
        answer = answer.way("raw kernel", rows, time);
    }
    Ok(answer)
}
