//! Runs a benchmark: checks its result, times it, prints a line.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::time::Instant;

use warpframe::arrow::array::{ArrayRef, RecordBatch};
use warpframe::arrow::util::display::{ArrayFormatter, FormatOptions};
use warpframe::device::Device;
use warpframe::prelude::*;

use super::options::Options;

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Rows of a result that are checked at a time.
const CHUNK: usize = 1 << 20;

/// A session on the device, and what has been run on it.
pub struct Bench {
    session: Session,
    device: Device,
    pub options: Options,
    done: RefCell<HashSet<(Option<&'static str>, String, usize)>>,
    failed: Cell<bool>,
    sweep: Cell<Option<&'static str>>,
}

/// One benchmark.
#[derive(Debug, Clone)]
pub struct Case {
    /// Operation, types and shape, without the number of rows.
    pub name: String,
    /// Rows of the (larger) input.
    pub rows: usize,
    /// Bytes that have to be read and written at least.
    pub least_bytes: usize,
}

impl Case {
    pub fn new(name: impl Into<String>, rows: usize, least_bytes: usize) -> Case {
        Case { name: name.into(), rows, least_bytes }
    }
}

impl Bench {
    pub fn new(session: Session, device: Device, options: Options) -> Bench {
        Bench {
            session,
            device,
            options,
            done: RefCell::default(),
            failed: Cell::new(false),
            sweep: Cell::new(None),
        }
    }

    /// Whether any of these benchmarks is to run: where none is, its data need not be made.
    pub fn wants<T: AsRef<str>>(&self, names: impl IntoIterator<Item = T>) -> bool {
        let only = &self.options.only;
        let mut names = names.into_iter();
        only.is_empty() || names.any(|name| only.iter().any(|text| name.as_ref().contains(text)))
    }

    /// A table on the device.
    pub fn frame<'a>(
        &self,
        columns: impl IntoIterator<Item = (&'a str, ArrayRef)>,
    ) -> Outcome<DataFrame> {
        let frame = self.session.from_arrow([RecordBatch::try_from_iter(columns)?])?;
        ensure(frame.is_on_device(), "the table is not on the device")?;
        Ok(frame)
    }

    /// Does something that belongs to a sweep.
    pub fn sweeping(&self, sweep: &'static str, work: impl FnOnce()) {
        self.sweep.set(Some(sweep));
        work();
        self.sweep.set(None);
    }

    /// Does something; where it fails, says so and goes on.
    pub fn attempt(&self, rows: usize, work: impl FnOnce() -> Outcome) {
        if let Err(error) = work() {
            self.report_failure("data", rows, error.as_ref());
        }
    }

    pub fn has_failed(&self) -> bool {
        self.failed.get()
    }

    /// Times `run`, unless the sweep did that before, after `check` has approved of its result.
    pub fn time(
        &self,
        case: Case,
        run: impl Fn() -> warpframe::Result<DataFrame>,
        check: impl FnOnce(&DataFrame) -> Outcome,
    ) {
        let key = (self.sweep.get(), case.name.clone(), case.rows);
        if !self.wants([&case.name]) || !self.done.borrow_mut().insert(key) {
            return;
        }
        if let Err(error) = self.measure(&case, run, check) {
            self.report_failure(&case.name, case.rows, error.as_ref());
        }
    }

    fn measure(
        &self,
        case: &Case,
        run: impl Fn() -> warpframe::Result<DataFrame>,
        check: impl FnOnce(&DataFrame) -> Outcome,
    ) -> Outcome {
        let result = run()?;
        ensure(result.is_on_device(), "the result is not on the device")?;
        check(&result).map_err(|error| format!("wrong result: {error}"))?;
        if self.options.checks > 0 {
            let expected = fingerprint(&result)?;
            for check in 0..self.options.checks {
                let found = fingerprint(&run()?)?;
                let same = found.len() == expected.len()
                    && found.iter().zip(&expected).all(|(a, b)| a.agrees(b));
                ensure(same, format!("run {check} yields {found:?} after {expected:?}"))?;
            }
        }
        drop(result);
        // Kernels that are used again are compiled better, behind the runs that follow: not while
        // they are timed.
        self.device.settle();
        drop(run()?);
        self.device.synchronize()?;

        let (mut walls, mut hosts, mut sums, mut kernels) = (vec![], vec![], vec![], String::new());
        let repeats = self.options.repeats;
        let before = self.device.counters();
        for _ in 0..repeats {
            if self.options.plan_anew {
                // Settings that may have changed: the session forgets its plans.
                self.session.context().state_ref().write().config_mut().options_mut();
            }
            let in_driver = self.device.counters().driver_time;
            let start = Instant::now();
            let frame = run()?;
            self.device.synchronize()?;
            let wall = start.elapsed();
            walls.push(wall.as_secs_f64() * 1e3);
            hosts.push(
                wall.saturating_sub(self.device.counters().driver_time - in_driver).as_secs_f64()
                    * 1e6,
            );
            drop(frame);
        }
        let after = self.device.counters();
        for _ in 0..repeats {
            // A device that has waited for the host works more slowly at first: after 3 ms a sum of
            // 100M values takes 0.193 instead of 0.183 ms, and CUB's 0.201 instead of 0.187. The
            // peers' loops do not let it wait.
            drop(run()?);
            self.device.start_profile();
            let frame = run()?;
            let profile = self.device.take_profile()?;
            drop(frame);
            sums.push(profile.iter().fold(0.0, |sum, kernel| sum + f64::from(kernel.ms)));
            kernels =
                profile.iter().map(|kernel| format!(" {}={:.3}", kernel.name, kernel.ms)).collect();
        }

        let (ms, floor) = (median(&mut sums), case.least_bytes as f64 / self.options.copy);
        let sweep = self.sweep.get().map_or(String::new(), |sweep| format!("\"sweep\":{sweep:?},"));
        println!(
            "{{{sweep}\"bench\":{:?},\"rows\":{},\"device_ms\":{ms:.4},\"wall_ms\":{:.4},\"host_us\":{:.1},\"rows_per_s\":{:.3e},\"gb_s\":{:.0},\
             \"floor_ms\":{floor:.4},\"share\":{:.3},\"launches\":{},\"syncs\":{},\
             \"allocations\":{},\"plans_made\":{}}}",
            case.name,
            case.rows,
            median(&mut walls),
            median(&mut hosts),
            per(case.rows as f64 * 1e3, ms),
            per(case.least_bytes as f64 / 1e6, ms),
            per(floor, ms),
            (after.launches - before.launches) / repeats as u64,
            // One of them is ours.
            (after.synchronizations - before.synchronizations) / repeats as u64 - 1,
            (after.allocations - before.allocations) / repeats as u64,
            after.plans_made - before.plans_made,
        );
        eprintln!("{} rows={}:{kernels}", case.name, case.rows);
        Ok(())
    }

    fn report_failure(&self, name: &str, rows: usize, error: &dyn std::error::Error) {
        self.failed.set(true);
        println!("{{\"bench\":{name:?},\"rows\":{rows},\"error\":{:?}}}", error.to_string());
    }
}

/// What a result is in short, in whatever order its rows lie.
#[derive(Debug)]
enum Mark {
    Exact(i128),
    /// A sum of floats, whose last bits depend on the order.
    Near(f64),
}

impl Mark {
    fn agrees(&self, other: &Mark) -> bool {
        match (self, other) {
            (Mark::Exact(a), Mark::Exact(b)) => a == b,
            (Mark::Near(a), Mark::Near(b)) => a == b || close(*a, *b),
            _ => false,
        }
    }
}

/// The rows of a result, and the sum and extrema of each column of numbers.
fn fingerprint(frame: &DataFrame) -> Outcome<Vec<Mark>> {
    let mut wanted = vec![count(lit(1)).alias("rows")];
    for field in frame.schema().fields().iter().filter(|field| field.data_type().is_numeric()) {
        let column = col(field.name());
        for (name, of) in
            [("sum", sum(column.clone())), ("min", min(column.clone())), ("max", max(column))]
        {
            wanted.push(of.alias(format!("{name} {}", field.name())));
        }
    }
    let mut marks = vec![];
    for batch in frame.select(wanted)?.to_arrow()? {
        for column in batch.columns() {
            let text = ArrayFormatter::try_new(column, &FormatOptions::default())?
                .value(0)
                .try_to_string()?;
            marks.push(match text.parse::<i128>() {
                Ok(whole) => Mark::Exact(whole),
                Err(_) => Mark::Near(text.parse().map_err(|_| format!("{text:?} is no number"))?),
            });
        }
    }
    Ok(marks)
}

/// An error that says what does not hold.
pub fn ensure(holds: bool, what: impl Into<String>) -> Outcome {
    if holds { Ok(()) } else { Err(what.into().into()) }
}

/// Whether sums of floats agree, whose additions were made in different orders.
pub fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

/// Downloads a result piece by piece; `look` gets the number of each piece's first row.
pub fn each_chunk(
    frame: &DataFrame,
    mut look: impl FnMut(usize, &RecordBatch) -> Outcome,
) -> Outcome {
    let mut first = 0;
    for chunk in frame.batches(CHUNK) {
        let chunk = chunk?;
        look(first, &chunk)?;
        first += chunk.num_rows();
    }
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A quotient; 0 where nothing ran on the device, which JSON has no other number for.
fn per(amount: f64, ms: f64) -> f64 {
    if ms > 0.0 { amount / ms } else { 0.0 }
}
