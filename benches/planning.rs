//! What planning costs: `cargo bench --bench planning -- DATA QUERIES [RUNS]`.
//!
//! Each query (`QUERIES/*.sql`) runs over the tables `DATA/*.parquet`, first with its plan made
//! anew each time, then with the plan that the session keeps. Tables of a few rows show the host's
//! share. One JSON line a query: medians in ms of both, and of the statement parsed and planned by
//! the session's rules alone; then one line with the sums. `WARPFRAME_DEVICE` chooses the device.

use std::path::{Path, PathBuf};
use std::time::Instant;

use warpframe::SessionBuilder;
use warpframe::prelude::*;

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

const RUNS: usize = 5;

pub fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    run(&arguments, Session::builder()).map(drop)
}

/// Times the queries of a folder; whether one failed.
pub fn run(arguments: &[String], builder: SessionBuilder) -> Outcome<bool> {
    let [data, queries, rest @ ..] = arguments else {
        return Err("usage: planning DATA QUERIES [RUNS]".into());
    };
    let runs = rest.first().map_or(Ok(RUNS), |text| text.parse())?;
    let session = builder.join_order(true).build()?;
    for file in files(data, "parquet")? {
        session.register_parquet(&stem(&file), &file)?;
    }
    let (mut has_failed, mut sums) = (false, [0.0; 3]);
    for file in files(queries, "sql")? {
        let (query, sql) = (stem(&file), std::fs::read_to_string(&file)?);
        match times(&session, &sql, runs) {
            Ok([anew, kept, parsed]) => {
                println!(
                    "{{\"bench\":\"planning {query}\",\"anew_ms\":{anew:.2},\"kept_ms\":{kept:.2},\
                     \"session_ms\":{parsed:.2}}}"
                );
                sums = [sums[0] + anew, sums[1] + kept, sums[2] + parsed];
            }
            Err(error) => {
                has_failed = true;
                println!("{{\"bench\":\"planning {query}\",\"error\":{:?}}}", error.to_string());
            }
        }
    }
    let [anew, kept, parsed] = sums;
    println!(
        "{{\"bench\":\"planning, sum\",\"anew_ms\":{anew:.1},\"kept_ms\":{kept:.1},\
         \"session_ms\":{parsed:.1}}}"
    );
    Ok(has_failed)
}

/// Medians in ms: with a plan made anew, with the kept one, and of parsing and planning alone.
fn times(session: &Session, sql: &str, runs: usize) -> Outcome<[f64; 3]> {
    // Files are read and kernels compiled here.
    session.sql(sql)?.collect()?;
    let anew = median(runs, || {
        forget_plans(session);
        session.sql(sql)?.collect().map(drop)
    })?;
    let kept = median(runs, || session.sql(sql)?.collect().map(drop))?;
    let parsed = median(runs, || {
        forget_plans(session);
        session.sql(sql).map(drop)
    })?;
    Ok([anew, kept, parsed])
}

/// Settings that may have changed: the session makes its plans anew.
fn forget_plans(session: &Session) {
    session.context().state_ref().write().config_mut().options_mut();
}

fn median(runs: usize, mut once: impl FnMut() -> warpframe::Result<()>) -> Outcome<f64> {
    let mut times = vec![];
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        once()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// The files of a folder with this suffix, by name.
fn files(folder: &str, suffix: &str) -> Outcome<Vec<PathBuf>> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).map_err(|error| format!("{folder}: {error}"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == suffix) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
