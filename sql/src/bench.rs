//! `warpframe bench`: how long a statement takes.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use warpframe::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use warpframe::device::Device;
use warpframe::frame::terminal_size;
use warpframe::sql::{Statement, Text};
use warpframe::{DataFrame, Executed, Session};

use crate::arguments::{Arguments, Job};
use crate::interrupt::Running;
use crate::output::{self, Format, Rows, Style};
use crate::plot::{Chart, Kind, Series, number};
use crate::report::{Failure, Source, shown};
use crate::run::{Runner, Settings};
use crate::shell::script;
use crate::text;

/// Time a statement, from its text to its result in the host's memory.
///
/// The first run reads files and compiles kernels; it is told apart. Then come the runs of the
/// warm-up, and those that count: the least, the median and the greatest time. What -c and -f say
/// runs before, untimed. With --sizes, $n in all of these stands for each of the sizes, and what
/// comes of them is drawn.
#[derive(Debug, Parser)]
pub struct Bench {
    /// The statement to time
    #[arg(value_name = "QUERY")]
    pub query: String,

    /// Runs that count
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = runs)]
    pub runs: usize,

    /// Runs between the first and those that count: kernels that are used again are compiled again,
    /// with all optimisations, before the last of them begins
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub warmup: usize,

    /// What $n is, such as 1e4,1e5,1e6
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<u64>,

    /// The options of the command.
    #[command(flatten)]
    pub arguments: Arguments,
}

fn runs(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|runs| *runs > 0).ok_or_else(|| "expected a number of runs".into())
}

/// A number of rows, such as `1e6`.
fn size(text: &str) -> Result<u64, String> {
    let number: f64 = text.trim().parse().map_err(|_| format!("{text:?} is no number"))?;
    let is_whole = number >= 1.0 && number.fract() == 0.0 && number < 1e18;
    if is_whole { Ok(number as u64) } else { Err(format!("{text:?} is no whole number from 1 on")) }
}

/// What the runs of one size took.
struct Measured {
    size: Option<u64>,
    rows: usize,
    first: Duration,
    /// Those that count, the shortest first.
    times: Vec<Duration>,
    /// That kernels moved in one run, where there are any.
    moved: Option<u64>,
}

/// What is to run before.
///
/// # Errors
/// A file that cannot be read; sizes that nothing asks for, or that are not said.
pub fn setup(bench: &Bench, jobs: &[Job]) -> Result<Vec<Source>, Failure> {
    let jobs = jobs.iter().map(super::source).collect::<Result<Vec<_>, _>>()?;
    let has_size =
        |text: &str| text::with_values(text, &[("n".into(), "1".into())].into()).is_some();
    let used = has_size(&bench.query) || jobs.iter().any(|job| has_size(&job.text));
    let given = bench.arguments.variables.iter().any(|(name, _)| name == "n");
    match (used, bench.sizes.is_empty(), given) {
        (false, false, _) => Err(Failure::usage("--sizes says what $n is, and there is no $n")),
        (true, true, false) => {
            Err(Failure::usage("there is a $n: --sizes or -v n=… say what it is"))
        }
        (_, false, true) => Err(Failure::usage("--sizes and -v n=… both say what $n is")),
        _ => Ok(jobs),
    }
}

/// Times the statement and writes what came of it. Failures have been reported.
///
/// # Errors
/// A statement fails; what came of it cannot be written.
pub fn run(
    bench: &Bench,
    jobs: &[Source],
    session: &Session,
    out: &mut dyn Write,
    messages: &mut dyn Write,
    settings: &Settings,
) -> Result<(), Failure> {
    let sizes: Vec<Option<u64>> = match bench.sizes.is_empty() {
        true => vec![None],
        false => bench.sizes.iter().map(|size| Some(*size)).collect(),
    };
    let mut measured = vec![];
    for size in sizes {
        measured.push(measure(bench, jobs, session, messages, settings, size)?);
    }
    write(&measured, out, settings).inspect_err(|failure| super::complain(messages, failure))
}

fn measure(
    bench: &Bench,
    jobs: &[Source],
    session: &Session,
    messages: &mut dyn Write,
    settings: &Settings,
    size: Option<u64>,
) -> Result<Measured, Failure> {
    let mut settings = settings.clone();
    settings.variables.extend(size.map(|size| ("n".to_string(), size.to_string())));
    let text =
        text::with_values(&bench.query, &settings.variables).unwrap_or_else(|| bench.query.clone());
    let source = Source { name: Some("the statement".into()), text };
    // What comes of the others is for nobody to see.
    let mut nobody = io::sink();
    let mut runner = Runner::new(session.clone(), settings, &mut nobody, messages);
    for job in jobs {
        script::run(&mut runner, job)?;
    }
    runner.finish(true)?;
    let measured = times(bench, session, &source, size);
    // Each run gives the same reasons.
    let reasons: BTreeSet<String> = session.take_fallback_reasons().into_iter().collect();
    for reason in reasons {
        runner.say(&format!("note: the CPU took over: {}\n", shown(&reason)));
    }
    measured.map_err(|failure| {
        runner.say(&failure.report(Some(&source), None));
        failure.told()
    })
}

fn times(
    bench: &Bench,
    session: &Session,
    source: &Source,
    size: Option<u64>,
) -> Result<Measured, Failure> {
    let script = Text::from(&source.text);
    let mut statements = script.statements();
    let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
        return Err(Failure::sql("one statement is expected".into(), None));
    };
    let timed = match Statement::of(&statement)? {
        Statement::Query => Timed::Query(statement.as_str().into()),
        Statement::Other => Timed::Other(statement.as_str().into()),
        _ => {
            return Err(Failure::sql(
                "what is timed is a query or a change of rows".into(),
                Some(statement.start().into()),
            ));
        }
    };
    let _running = Running::begin();
    let (first, rows, _) = timed.once(session)?;
    for _ in 0..bench.warmup {
        // Kernels that are used again are compiled again, with all optimisations: not while runs
        // are timed.
        session.device().iter().for_each(|device| device.settle());
        timed.once(session)?;
    }
    let (mut times, mut moved) = (vec![], None);
    for _ in 0..bench.runs {
        let (time, _, bytes) = timed.once(session)?;
        times.push(time);
        moved = bytes;
    }
    times.sort();
    Ok(Measured { size, rows, first, times, moved })
}

enum Timed {
    Query(String),
    Other(String),
}

impl Timed {
    /// Runs it: how long that took, how many rows came of it, and how many bytes kernels moved.
    fn once(&self, session: &Session) -> Result<(Duration, usize, Option<u64>), Failure> {
        let moved = |device: &Device| device.counters().bytes_moved;
        let before = session.device().map(moved);
        let start = Instant::now();
        let rows_of = |frame: DataFrame| -> Result<usize, Failure> {
            let batches = frame.to_arrow()?;
            Ok(batches.iter().map(RecordBatch::num_rows).sum())
        };
        let rows = match self {
            Timed::Query(text) => rows_of(session.sql(text)?.collect()?)?,
            Timed::Other(text) => match session.execute(text)? {
                Executed::Rows(frame) => rows_of(frame.collect()?)?,
                Executed::Changed(rows) => rows,
                _ => 0,
            },
        };
        let time = start.elapsed();
        let bytes = session.device().map(moved).zip(before).map(|(after, before)| after - before);
        Ok((time, rows, bytes))
    }
}

impl Measured {
    fn median(&self) -> Duration {
        let middle = self.times.len() / 2;
        match self.times.len() % 2 {
            1 => self.times[middle],
            _ => (self.times[middle - 1] + self.times[middle]) / 2,
        }
    }
}

/// One row a size; where there are several, and a person reads, a chart.
fn write(measured: &[Measured], out: &mut dyn Write, settings: &Settings) -> Result<(), Failure> {
    let ms = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let integers = |of: &dyn Fn(&Measured) -> Option<u64>| -> ArrayRef {
        Arc::new(
            measured
                .iter()
                .map(|one| of(one).and_then(|n| i64::try_from(n).ok()))
                .collect::<Int64Array>(),
        )
    };
    let floats = |of: &dyn Fn(&Measured) -> Option<f64>| -> ArrayRef {
        Arc::new(measured.iter().map(of).collect::<Float64Array>())
    };
    let mut columns: Vec<(&str, ArrayRef)> = vec![];
    if measured.iter().any(|one| one.size.is_some()) {
        columns.push(("n", integers(&|one| one.size)));
    }
    columns.extend([
        ("rows", integers(&|one| Some(one.rows as u64))),
        ("runs", integers(&|one| Some(one.times.len() as u64))),
        ("first_ms", floats(&|one| Some(ms(one.first)))),
        ("min_ms", floats(&|one| one.times.first().map(|time| ms(*time)))),
        ("median_ms", floats(&|one| Some(ms(one.median())))),
        ("max_ms", floats(&|one| one.times.last().map(|time| ms(*time)))),
    ]);
    if measured.iter().any(|one| one.moved.is_some()) {
        // What kernels read and wrote, over the whole time to the result.
        let per_second = |one: &Measured| {
            let bytes = one.moved.filter(|bytes| *bytes > 0)? as f64;
            Some((bytes / one.median().as_secs_f64() / 1e6).round() / 1e3)
        };
        columns.extend([
            ("bytes_moved", integers(&|one| one.moved)),
            ("gb_per_s", floats(&per_second)),
        ]);
    }
    let style = Style { terminal: settings.terminal, ..settings.style.clone() };
    output::write(out, &style, &mut Rows::whole(RecordBatch::try_from_iter(columns)?))?;
    let is_read = matches!(style.format, Format::Table | Format::Box);
    let points: Vec<(f64, f64)> = measured
        .iter()
        .filter_map(|one| Some((one.size? as f64, one.median().as_secs_f64() * 1e3)))
        .collect();
    if is_read && points.len() > 1 {
        let ends = points
            .iter()
            .fold((f64::MAX, f64::MIN), |(low, high), (n, _)| (low.min(*n), high.max(*n)));
        let series = vec![Series { name: "median ms".into(), points }];
        let x_ends = (number(ends.0), number(ends.1));
        let chart = Chart {
            kind: Kind::Line,
            series,
            x_name: "n, both by ratios".into(),
            x_ends,
            logarithmic: true,
        };
        let width = terminal_size()
            .filter(|_| settings.terminal)
            .map_or(72, |(columns, _)| columns.min(100));
        out.write_all(chart.draw((width, 12)).unwrap_or_default().as_bytes())?;
    }
    Ok(out.flush()?)
}
