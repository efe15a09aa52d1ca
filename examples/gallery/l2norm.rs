//! The Euclidean norm of a column: as an aggregate of one's own, and as sqrt(sum(x * x)).
//!
//! An aggregate has a state, and says how two states become one. That is all that it takes to
//! spread it over threads, blocks and groups.

use warpframe::AggregateFunction;
use warpframe::prelude::*;

use super::{Answer, Gallery, Lesson, Outcome, close};

pub(crate) const LESSON: Lesson = Lesson {
    name: "l2norm",
    about: "the Euclidean norm as an aggregate of one's own",
    rows: 50_000,
    needs_device: false,
    run,
};

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    let double = DataType::Float64;
    let norm = AggregateFunction::new("l2norm", [("x", double.clone())], double.clone())
        .state([("sum", double)])
        .identity("s.sum = 0;")
        .map("s.sum = x * x;")
        .combine("a.sum += b.sum;")
        .finish("return sqrt(s.sum);");
    gallery.session.register_aggregate(norm)?;
    let numbers = gallery.sql(&format!("SELECT range::DOUBLE AS x FROM range(1, {rows} + 1)"))?;
    gallery.session.register_table("numbers", &numbers)?;
    let one = |query: &str| -> Outcome<f64> { Ok(gallery.sql(query)?.item()?) };
    let (own, time_own) = gallery.timed(|| one("SELECT l2norm(x) FROM numbers"))?;
    let (built_in, time_built_in) =
        gallery.timed(|| one("SELECT sqrt(sum(x * x)) FROM numbers"))?;
    gallery.session.deregister("numbers")?;

    // 1² + 2² + … + n² = n(n + 1)(2n + 1) / 6.
    let n = rows as f64;
    let expected = (n * (n + 1.0) * (2.0 * n + 1.0) / 6.0).sqrt();
    close("l2norm(x)", own, expected, 1e-10)?;
    close("sqrt(sum(x * x))", built_in, expected, 1e-10)?;
    let text = format!("the norm of (1, 2, …, {rows}) is {own:.3}");
    Ok(Answer::new(text).way("l2norm(x)", rows, time_own).way(
        "sqrt(sum(x * x))",
        rows,
        time_built_in,
    ))
}
