//! π by random points: the share of a square's points that lie in the quarter of a circle.
//!
//! `random(seed, n)` follows from its arguments alone. So each thread makes its own points, no row
//! is stored, and every device finds the same points.

use warpframe::arrow::array::AsArray;
use warpframe::arrow::datatypes::Float64Type;

use super::{Answer, Gallery, Lesson, Outcome, same};

pub(crate) const LESSON: Lesson =
    Lesson { name: "pi", about: "π by random points", rows: 100_000, needs_device: false, run };

/// Points that plain Rust counts, too.
const CHECKED: usize = 10_000;

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    let points = "random(1, range) AS x, random(2, range) AS y";
    let count = |rows: usize| -> Outcome<i64> {
        let query = format!(
            "SELECT count(*) FROM (SELECT {points} FROM range(0, {rows})) WHERE x * x + y * y <= 1"
        );
        Ok(gallery.sql(&query)?.item()?)
    };
    let (within, time) = gallery.timed(|| count(rows))?;

    let checked = rows.min(CHECKED);
    let mut expected = 0;
    for batch in gallery.sql(&format!("SELECT {points} FROM range(0, {checked})"))?.to_arrow()? {
        let [x, y] = [0, 1].map(|at| batch.column(at).as_primitive::<Float64Type>());
        expected +=
            x.values().iter().zip(y.values()).filter(|(x, y)| *x * *x + *y * *y <= 1.0).count();
    }
    same("the first points in the circle", count(checked)?, expected as i64)?;

    // A point is in the circle with probability π/4: five deviations are one seed in two million.
    let pi = 4.0 * within as f64 / rows as f64;
    let quarter = std::f64::consts::FRAC_PI_4;
    let deviation = 4.0 * (quarter * (1.0 - quarter) / rows as f64).sqrt();
    let off = pi - std::f64::consts::PI;
    if off.abs() > 5.0 * deviation {
        return Err(format!("{pi} is {:.1} deviations from π", off / deviation).into());
    }
    let text =
        format!("π is about {pi:.6}: off by {:.1} deviations of {deviation:.6}", off / deviation);
    Ok(Answer::new(text).way("count of points", rows, time))
}
