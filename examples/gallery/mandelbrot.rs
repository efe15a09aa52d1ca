//! The Mandelbrot set, by a function of a row: how many steps of z² + c it takes until |z| > 2.
//!
//! The numbers of a picture's points come from `range`; no row is stored but the answers.
//! `__dmul_rn` and its like round each operation, so that every device counts the same steps;
//! without them a GPU contracts a·b + c.

use warpframe::ScalarFunction;
use warpframe::prelude::*;

use super::{Answer, Gallery, Lesson, Outcome, same};

pub(crate) const LESSON: Lesson = Lesson {
    name: "mandelbrot",
    about: "a picture by a function of a row",
    rows: 10_000,
    needs_device: false,
    run,
};

const MOST: i32 = 200;

const BODY: &str = "
    const double re = __dadd_rn(__dmul_rn(3.0, (double)(place % width) / width), -2.2);
    const double im = __dadd_rn(__dmul_rn(2.4, (double)(place / width) / height), -1.2);
    double x = 0, y = 0;
    for (int steps = 0; steps < 200; steps++) {
        const double xx = __dmul_rn(x, x), yy = __dmul_rn(y, y), xy = __dmul_rn(x, y);
        if (__dadd_rn(xx, yy) > 4) return steps;
        x = __dadd_rn(__dadd_rn(xx, -yy), re);
        y = __dadd_rn(__dadd_rn(xy, xy), im);
    }
    return 200;";

/// The same in plain Rust.
fn steps(place: usize, width: usize, height: usize) -> i32 {
    let re = 3.0 * ((place % width) as f64 / width as f64) - 2.2;
    let im = 2.4 * ((place / width) as f64 / height as f64) - 1.2;
    let (mut x, mut y) = (0.0, 0.0);
    for steps in 0..MOST {
        let (xx, yy, xy): (f64, f64, f64) = (x * x, y * y, x * y);
        if xx + yy > 4.0 {
            return steps;
        }
        x = xx - yy + re;
        y = xy + xy + im;
    }
    MOST
}

/// Points that plain Rust checks, at most about.
const CHECKED: usize = 20_000;
/// Lines and columns of the picture in the terminal, at most.
const LINES: usize = 30;
const COLUMNS: usize = 75;

fn run(gallery: &Gallery, rows: usize) -> Outcome<Answer> {
    let height = (rows as f64 / 2.5).sqrt().ceil() as usize;
    let width = height * 5 / 2;
    let points = width * height;
    let int = DataType::Int64;
    let inputs = ["place", "width", "height"].map(|name| (name, int.clone()));
    gallery.session.register_function(ScalarFunction::new(
        "mandelbrot",
        inputs,
        DataType::Int32,
        BODY,
    ))?;
    let query = format!(
        "SELECT range, mandelbrot(range, {width}, {height}) AS steps FROM range(0, {points})"
    );
    let (frame, time) = gallery.timed(|| gallery.sql(&query))?;

    let mut counts = vec![-1; points];
    for (place, steps) in
        frame.column("range")?.to_vec::<i64>()?.into_iter().zip(frame.column("steps")?.to_vec()?)
    {
        counts[usize::try_from(place)?] = steps;
    }
    for place in (0..points).step_by(points.div_ceil(CHECKED)) {
        same(&format!("steps of point {place}"), counts[place], steps(place, width, height))?;
    }
    let (lines, columns) = (height.min(LINES), width.min(COLUMNS));
    let shade = |line: usize, column: usize| match counts
        [line * height / lines * width + column * width / columns]
    {
        MOST => '#',
        steps if steps > 16 => '*',
        steps if steps > 8 => '+',
        steps if steps > 4 => '.',
        _ => ' ',
    };
    let picture =
        (0..lines).map(|line| (0..columns).map(|column| shade(line, column)).collect::<String>());
    let within = counts.iter().filter(|steps| **steps == MOST).count();
    let text = format!("{within} of {points} points do not leave the circle in {MOST} steps");
    Ok(Answer::new(text)
        .way("function over range", format!("{width} x {height}"), time)
        .picture(picture))
}
