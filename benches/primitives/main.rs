//! Primitives of a dataframe: `cargo bench --bench primitives -- [OPTIONS]`.
//!
//! ```text
//! --rows N,…          rows of the tables, as 100000000 or 1e8; default 1e6, on the simulator 2000
//! --only TEXT         benchmarks whose names contain the text; may be repeated
//! --repeats N         runs of each, whose median counts; default 7
//! --checks N          further runs, before, whose results must have the sums and extrema of the
//!                     first one's; default 0
//! --plan-anew         no plan is found from run to run: what it would cost if none were kept
//! --sweep NAME        instead: how time goes with cardinality, duplicates, skew, width, order,
//!                     nulls, payload, scale, or all
//! --copy GB_S         the device's copy bandwidth, for floors; default 4100
//! ```
//!
//! Tables lie on the device. Every result is compared with what the host computes before it is
//! timed. Standard output has one JSON line a benchmark: device time (sum over kernels), wall time
//! until the result lies on the device, what of it the host was outside of the driver, launches,
//! host synchronisations and allocations of a run, plans made for all of them, and the least bytes
//! that the operation must move over the copy bandwidth (the floor). Standard error has the times
//! of single kernels. The exit code is 1 where a benchmark failed.

mod best_row;
mod data;
mod distinct;
mod every_verb;
mod filter;
mod gather;
mod group;
mod harness;
mod jets;
mod join;
mod options;
mod pipeline;
mod reduce;
mod scan;
mod segment;
mod sort;
mod sweeps;
mod top;
mod verbs;
#[allow(dead_code, reason = "tests ask for the order of rows, too")]
#[allow(clippy::duplicate_mod, reason = "the tests load this program, too")]
#[path = "../../tests/it/verbs/every.rs"]
mod verbs_of_tests;
mod window;

use std::process::ExitCode;

use warpframe::ErrorKind;
use warpframe::device::DeviceKind;
use warpframe::prelude::*;

use harness::{Bench, Outcome};
pub(crate) use options::Options;

/// All benchmarks of tables of so many rows, by file.
const OPERATORS: [fn(&Bench, usize) -> Outcome; 15] = [
    verbs::all,
    every_verb::all,
    sort::all,
    top::all,
    group::all,
    segment::all,
    filter::all,
    gather::all,
    join::all,
    reduce::all,
    best_row::all,
    scan::all,
    pipeline::all,
    window::all,
    jets::all,
];

pub fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// Whether the environment asks for a device, so that having none is an error.
fn is_device_wanted() -> bool {
    std::env::var_os("WARPFRAME_DEVICE").is_some()
        || std::env::var_os("WARPFRAME_REQUIRE_GPU").is_some()
}

fn run() -> Outcome<ExitCode> {
    let options = Options::parse(std::env::args().skip(1))?;
    let session = match Session::builder().strict(true).build() {
        Err(error)
            if matches!(error.kind(), ErrorKind::DeviceUnavailable { .. })
                && !is_device_wanted() =>
        {
            eprintln!("skipped: {error}");
            return Ok(ExitCode::SUCCESS);
        }
        session => session?,
    };
    Ok(ExitCode::from(u8::from(time(session, options)?)))
}

/// Runs what the options ask for; whether a benchmark failed.
pub(crate) fn time(session: Session, options: Options) -> Outcome<bool> {
    let device = session.device().cloned().ok_or("a benchmark needs a device")?;
    let rows = match (&options.rows[..], device.kind()) {
        ([], DeviceKind::Sim) => vec![2000],
        ([], _) => vec![1_000_000],
        (rows, _) => rows.to_vec(),
    };
    let bench = Bench::new(session, device, options);
    for rows in rows {
        if bench.options.sweeps.is_empty() {
            for operator in OPERATORS {
                bench.attempt(rows, || operator(&bench, rows));
            }
        }
        for sweep in &bench.options.sweeps {
            sweeps::run(&bench, sweep, rows);
        }
    }
    Ok(bench.has_failed())
}
