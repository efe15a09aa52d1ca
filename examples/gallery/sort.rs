//! Random numbers sorted, on the device and by Rust's own sort.

use std::time::Instant;

use super::{Answer, Gallery, Lesson, Outcome, same};

pub(crate) const LESSON: Lesson = Lesson {
    name: "sort",
    about: "random numbers in order",
    rows: 50_000,
    needs_device: false,
    run,
};

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    let frame = gallery.sql(&format!("SELECT random(7, range) AS x FROM range(0, {rows})"))?;
    let (sorted, time) = gallery.timed(|| Ok(frame.sort(["x"])?))?;
    let sorted = sorted.column("x")?.to_vec::<f64>()?;

    let mut numbers = frame.column("x")?.to_vec::<f64>()?;
    let start = Instant::now();
    numbers.sort_unstable_by(f64::total_cmp);
    let time_rust = start.elapsed();
    same("rows", sorted.len(), rows)?;
    if let Some(row) = (0..rows).find(|row| sorted[*row] != numbers[*row]) {
        same(&format!("the number in row {row}"), sorted[row], numbers[row])?;
    }
    let text =
        format!("{rows} numbers in order: from {:.6} to {:.6}", numbers[0], numbers[rows - 1]);
    let answer = Answer::new(text).way("frame.sort", rows, time);
    Ok(answer.way("Rust, one core", rows, time_rust))
}
