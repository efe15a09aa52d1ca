//! A gallery of lessons on computing with a GPU. Each is a file of its own: a small problem, solved
//! in one or several ways, and checked against a value that is computed another way.
//!
//! ```sh
//! cargo run --release --example gallery                        # all lessons, small
//! cargo run --release --example gallery -- quadratic --rows 100_000_000 --device cuda
//! cargo run --release --example gallery -- --device sim        # auto, cuda, cuda:N, sim, cpu
//! ```

use std::error::Error;
use std::fmt::{Debug, Display};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use warpframe::device::DeviceKind;
use warpframe::prelude::*;
use warpframe::{RawKernel, Series, SessionBuilder};

mod blocks;
mod gather;
mod histogram;
mod increment;
mod l2norm;
mod mandelbrot;
mod matrix;
mod memory;
mod one_function;
mod pi;
mod quadratic;
mod reduction;
mod sort;
mod zmass;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// All lessons, in the order in which to read them.
pub(crate) const LESSONS: [Lesson; 14] = [
    increment::LESSON,
    quadratic::LESSON,
    blocks::LESSON,
    l2norm::LESSON,
    reduction::LESSON,
    matrix::LESSON,
    mandelbrot::LESSON,
    histogram::LESSON,
    pi::LESSON,
    sort::LESSON,
    zmass::LESSON,
    one_function::LESSON,
    memory::LESSON,
    gather::LESSON,
];

/// A lesson, and how many rows it has unless others are asked for.
#[derive(Clone, Copy)]
pub(crate) struct Lesson {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) rows: usize,
    /// It is about something that the CPU engine has not, such as whole kernels.
    pub(crate) needs_device: bool,
    pub(crate) run: fn(&Gallery, usize) -> Outcome<Answer>,
}

/// What a lesson found, after it was compared.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Each way of finding it, its size, and the time that it took.
    pub(crate) ways: Vec<(String, String, Duration)>,
    pub(crate) picture: String,
}

impl Answer {
    pub(crate) fn new(text: impl Into<String>) -> Answer {
        Answer { text: text.into(), ..Answer::default() }
    }

    pub(crate) fn way(
        mut self,
        name: impl Into<String>,
        size: impl Display,
        time: Duration,
    ) -> Answer {
        self.ways.push((name.into(), size.to_string(), time));
        self
    }

    pub(crate) fn picture(mut self, lines: impl IntoIterator<Item = String>) -> Answer {
        self.picture = lines.into_iter().map(|line| format!("  {}\n", line.trim_end())).collect();
        self
    }
}

/// A session for the lessons, and how to make others of the same device.
pub(crate) struct Gallery {
    pub(crate) session: Session,
    builder: SessionBuilder,
    rows: Option<usize>,
}

impl Gallery {
    pub(crate) fn new(builder: SessionBuilder, rows: Option<usize>) -> Outcome<Gallery> {
        let builder = builder.user_code(true);
        Ok(Gallery { session: builder.clone().build()?, builder, rows })
    }

    /// Runs a lesson; `None` where it needs a device, and there is none.
    pub(crate) fn run(&self, lesson: &Lesson) -> Outcome<Option<Answer>> {
        if lesson.needs_device && self.session.device().is_none() {
            return Ok(None);
        }
        let answer = (lesson.run)(self, self.rows.unwrap_or(lesson.rows))?;
        // An answer that the CPU engine gave would be right, and no lesson.
        match self.session.take_fallback_reasons().first() {
            Some(why) if self.session.device().is_some() => {
                Err(format!("it ran on the CPU: {why}").into())
            }
            _ => Ok(Some(answer)),
        }
    }

    pub(crate) fn builder(&self) -> SessionBuilder {
        self.builder.clone()
    }

    pub(crate) fn on_cuda(&self) -> bool {
        self.session.device().is_some_and(|device| matches!(device.kind(), DeviceKind::Cuda(_)))
    }

    /// The rows of a query.
    pub(crate) fn sql(&self, query: &str) -> Outcome<DataFrame> {
        Ok(self.session.sql(query)?.collect()?)
    }

    /// The kernel of this name in a source, where there is a device.
    pub(crate) fn kernel(&self, source: &str, name: &str) -> Outcome<Option<RawKernel>> {
        Ok(self.session.device().map(|_| self.session.kernel(source, name)).transpose()?)
    }

    /// What work makes, and the time of the fastest run behind those that compile.
    pub(crate) fn timed<T>(&self, work: impl FnMut() -> Outcome<T>) -> Outcome<(T, Duration)> {
        timed_in(&self.session, work)
    }
}

/// As [`Gallery::timed`], in another session.
pub(crate) fn timed_in<T>(
    session: &Session,
    mut work: impl FnMut() -> Outcome<T>,
) -> Outcome<(T, Duration)> {
    // A launch does not wait for the GPU.
    let wait = || session.device().map_or(Ok(()), |device| device.synchronize());
    let on_cuda =
        session.device().is_some_and(|device| matches!(device.kind(), DeviceKind::Cuda(_)));
    drop(work()?);
    if let Some(device) = session.device() {
        // Kernels that are used again are compiled again, with all optimisations.
        drop(work()?);
        device.settle();
        drop(work()?);
    }
    let mut run = || -> Outcome<(T, Duration)> {
        wait()?;
        let start = Instant::now();
        let made = work()?;
        wait()?;
        Ok((made, start.elapsed()))
    };
    let mut fastest = Duration::MAX;
    for _ in 1..if on_cuda { 5 } else { 1 } {
        fastest = fastest.min(run()?.1);
    }
    let (made, time) = run()?;
    Ok((made, fastest.min(time)))
}

/// An error unless a value is that which was computed another way.
pub(crate) fn same<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Outcome<()> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?}, and computed another way {expected:?}").into()),
    }
}

/// An error unless a value is within a share of that which was computed another way. NaN is not.
pub(crate) fn close(what: &str, found: f64, expected: f64, share: f64) -> Outcome<()> {
    match (found - expected).abs() <= share * expected.abs() {
        true => Ok(()),
        false => Err(format!("{what}: {found:?}, and computed another way {expected:?}").into()),
    }
}

/// The first of the columns that a launch returned.
pub(crate) fn first(made: Vec<Series>) -> Outcome<Series> {
    made.into_iter().next().ok_or_else(|| "the kernel made no column".into())
}

/// A line of a bar chart: `share` of the full width.
pub(crate) fn bar(label: impl Display, share: f64, value: impl Display) -> String {
    let width = (share.clamp(0.0, 1.0) * 40.0).round() as usize;
    format!("{label} {:<40} {value}", "█".repeat(width))
}

/// What the arguments ask for.
pub(crate) struct Wanted {
    pub(crate) lessons: Vec<Lesson>,
    pub(crate) rows: Option<usize>,
    pub(crate) device: Option<DeviceChoice>,
}

pub(crate) fn wanted(mut arguments: impl Iterator<Item = String>) -> Outcome<Wanted> {
    let mut wanted = Wanted { lessons: vec![], rows: None, device: None };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--rows" => {
                let text = value()?;
                let rows = text
                    .replace('_', "")
                    .parse()
                    .map_err(|_| format!("--rows {text}: not a number of rows"))?;
                if rows == 0 {
                    return Err("--rows 0: a lesson needs a row".into());
                }
                wanted.rows = Some(rows);
            }
            "--device" => wanted.device = Some(value()?.parse()?),
            name => match LESSONS.iter().find(|lesson| lesson.name == name) {
                Some(lesson) => wanted.lessons.push(*lesson),
                None => {
                    let known = LESSONS.map(|lesson| lesson.name).join(", ");
                    return Err(format!("no lesson is named {name:?}; there are {known}").into());
                }
            },
        }
    }
    if wanted.lessons.is_empty() {
        wanted.lessons = LESSONS.to_vec();
    }
    Ok(wanted)
}

fn main() -> ExitCode {
    match show() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn show() -> Outcome<()> {
    let wanted = wanted(std::env::args().skip(1))?;
    let mut builder = Session::builder();
    if let Some(device) = wanted.device {
        builder = builder.device(device);
    }
    let gallery = Gallery::new(builder, wanted.rows)?;
    if let Some(notice) = gallery.session.notice() {
        eprintln!("{notice}");
    }
    for lesson in &wanted.lessons {
        println!("{}: {}", lesson.name, lesson.about);
        match gallery.run(lesson).map_err(|error| format!("lesson {}: {error}", lesson.name))? {
            None => println!("  needs a device, cuda or sim\n"),
            Some(answer) => {
                print!("{}", answer.picture);
                println!("  {}", answer.text);
                for (way, size, time) in &answer.ways {
                    let time = time.as_secs_f64() * 1e3;
                    println!("  {:<14} {way:<26} {size:>24} {time:>12.3} ms", lesson.name);
                }
                println!();
            }
        }
    }
    Ok(())
}
