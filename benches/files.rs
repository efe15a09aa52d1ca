//! Parquet and CSV files into device memory:
//! `cargo bench --bench files -- FILE [COLUMN,…] [--runs N] [--check]` (all columns, 7 runs).
//! A file is read anew in each run: its footer, its pages, its values.
//!
//! `-- --queries FOLDER TABLES [--runs N]`: each query of a folder, in one process, over the
//! Parquet files of another, which nothing has read before: what a batch job waits for. Then N
//! times more with its plan found again, and N times planned anew. `--check` compares answers with
//! the CPU engine's.
//!
//! `-- --batches ROWS`: batches of Arrow in host memory, of numbers and of strings, into device
//! memory.
//!
//! One JSON line: the first read of the process and the median of the others in ms, GB/s of the
//! file's bytes that are read and of the columns' in device memory, kernel times of one read, the
//! most host memory the process had. `--check` compares every value with the CPU engine's.
//! `WARPFRAME_DEVICE` chooses the device.

use std::collections::BTreeMap;
use std::time::Instant;

use warpframe::SessionBuilder;
use warpframe::prelude::*;

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

pub fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    run(&arguments, Session::builder())
}

/// Times what the arguments ask for.
pub fn run(arguments: &[String], builder: SessionBuilder) -> Outcome {
    let after =
        |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1));
    let runs: usize = after("--runs").map_or(Ok(7), |text| text.parse())?;
    let checks = arguments.iter().any(|a| a == "--check");
    if let (Some(queries), Some(tables)) = (
        after("--queries"),
        arguments.iter().position(|a| a == "--queries").and_then(|at| arguments.get(at + 2)),
    ) {
        return first_runs(builder, queries, tables, runs, checks);
    }
    if let Some(rows) = after("--batches") {
        return batches(builder, rows.parse()?, runs);
    }
    let mut words =
        arguments.iter().filter(|a| !a.starts_with("--") && Some(*a) != after("--runs"));
    let Some(path) = words.next() else {
        // `cargo bench` without arguments runs this, too.
        println!("{{\"bench\":\"files\",\"skipped\":\"no file was named\"}}");
        return Ok(());
    };
    let columns: Option<Vec<&str>> = words.next().map(|text| text.split(',').collect());
    let session = builder.strict(true).build()?;
    let device = session.device().ok_or("a benchmark needs a device")?;
    let read = |session: &Session| -> Outcome<DataFrame> {
        let is_csv =
            std::path::Path::new(path).extension().is_some_and(|extension| extension == "csv");
        let scan = if is_csv { session.scan_csv(path)? } else { session.scan_parquet(path)? };
        let scan = match &columns {
            Some(names) => scan.select(names.iter().map(|name| col(*name)))?,
            None => scan,
        };
        Ok(scan.collect()?)
    };
    let mut times = vec![];
    let mut bytes = 0;
    let mut rows = 0;
    for _ in 0..runs + 1 {
        let before = device.counters();
        let start = Instant::now();
        let frame = read(&session)?;
        device.synchronize()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        bytes = device.counters().bytes_uploaded - before.bytes_uploaded;
        rows = frame.num_rows();
    }
    device.settle();
    device.start_profile();
    let before = device.memory().used;
    let frame = read(&session)?;
    let held = device.memory().used.saturating_sub(before);
    let mut kernels = BTreeMap::<String, (f64, u32)>::new();
    for kernel in device.take_profile()? {
        let sum = kernels.entry(kernel.name.to_string()).or_default();
        *sum = (sum.0 + f64::from(kernel.ms), sum.1 + 1);
    }
    if checks {
        let cpu = Session::builder().device(DeviceChoice::Cpu).strict(false).build()?;
        let (ours, theirs) = (frame.to_arrow()?, read(&cpu)?.to_arrow()?);
        let schema = ours.first().ok_or("no rows")?.schema();
        let ours = warpframe::arrow::compute::concat_batches(&schema, &ours)?;
        let theirs = warpframe::arrow::compute::concat_batches(&schema, &theirs)?;
        if let Some(at) =
            (0..schema.fields().len()).find(|at| ours.column(*at) != theirs.column(*at))
        {
            return Err(format!("column {:?} differs", schema.field(at).name()).into());
        }
    }
    let first = times.remove(0);
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    println!(
        "{{\"bench\":\"files {path}\",\"columns\":{},\"rows\":{rows},\"first_ms\":{first:.1},\"ms\":{median:.2},\
         \"least_ms\":{:.2},\"file_GBps\":{:.2},\"column_GBps\":{:.2},\"checked\":{checks},\"host_MB\":{},\"gpu\":{:?}}}",
        frame.schema().fields().len(),
        times[0],
        bytes as f64 / median / 1e6,
        held as f64 / median / 1e6,
        most_host_memory() / 1024,
        device.properties().name,
    );
    for (name, (ms, launches)) in kernels {
        eprintln!("  {ms:9.3} ms {launches:5} × {name}");
    }
    Ok(())
}

fn batches(builder: SessionBuilder, rows: usize, runs: usize) -> Outcome {
    use warpframe::arrow::array::{
        ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray,
    };
    let session = builder.strict(true).build()?;
    let device = session.device().ok_or("a benchmark needs a device")?;
    let each = 1 << 20;
    let word = |at: usize| (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    let made =
        |column: usize, from: usize, to: usize| -> ArrayRef {
            match column {
                0 => std::sync::Arc::new(Int64Array::from_iter_values(
                    (from..to).map(|at| word(at) as i64),
                )),
                1 => std::sync::Arc::new(Float64Array::from_iter_values(
                    (from..to).map(|at| word(at) as f64 / 64.0),
                )),
                _ => std::sync::Arc::new(StringViewArray::from_iter_values((from..to).map(|at| {
                    format!("a string of many values, {:012}", word(at) % 1_000_000_000)
                }))),
            }
        };
    for (what, columns, column) in [("i64", 8, 0), ("f64", 8, 1), ("strings", 2, 2)] {
        let parts: Vec<(usize, usize)> =
            (0..rows).step_by(each).map(|from| (from, rows.min(from + each))).collect();
        let batches: Vec<RecordBatch> = parts
            .iter()
            .map(|&(from, to)| {
                let array = made(column, from, to);
                RecordBatch::try_from_iter((0..columns).map(|at| (format!("c{at}"), array.clone())))
            })
            .collect::<Result<_, _>>()?;
        let mut times = vec![];
        let mut bytes = 0;
        for _ in 0..runs + 1 {
            let before = device.memory().used;
            let start = Instant::now();
            let frame = session.from_arrow(batches.iter().cloned())?;
            device.synchronize()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
            bytes = device.memory().used - before;
            drop(frame);
        }
        let first = times.remove(0);
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        println!(
            "{{\"bench\":\"host batches of {what}\",\"rows\":{rows},\"columns\":{columns},\"first_ms\":{first:.1},\
             \"ms\":{median:.2},\"column_GBps\":{:.2}}}",
            bytes as f64 / median / 1e6
        );
    }
    Ok(())
}

/// Files of a folder with an extension, by name.
fn files(folder: &str, extension: &str) -> Outcome<Vec<(String, std::path::PathBuf)>> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|of| of == extension) {
            found.push((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

fn first_runs(
    builder: SessionBuilder,
    queries: &str,
    tables: &str,
    runs: usize,
    checks: bool,
) -> Outcome {
    let cpu = Session::builder().device(DeviceChoice::Cpu).strict(false).build()?;
    let start = Instant::now();
    let session = builder.strict(true).build()?;
    let opened = start.elapsed();
    for (name, path) in files(tables, "parquet")? {
        session.register_parquet(&name, &path)?;
        cpu.register_parquet(&name, &path)?;
    }
    let mut times: [Vec<f64>; 3] = Default::default();
    let mut each = String::new();
    let mut wrong = vec![];
    for (name, path) in files(queries, "sql")? {
        let sql = std::fs::read_to_string(path)?;
        let start = Instant::now();
        let rows = session.sql(&sql)?.collect()?.to_arrow()?;
        let first = start.elapsed().as_secs_f64() * 1e3;
        let median = |before: &dyn Fn()| -> Outcome<f64> {
            let mut times = vec![];
            for _ in 0..runs.max(1) {
                before();
                let start = Instant::now();
                session.sql(&sql)?.collect()?.to_arrow()?;
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            times.sort_by(f64::total_cmp);
            Ok(times[times.len() / 2])
        };
        let found = median(&|| ())?;
        let anew = median(&|| session.forget_plans())?;
        each.push_str(&format!(" {name}={first:.1}/{found:.2}/{anew:.2}"));
        for (times, time) in times.iter_mut().zip([first, found, anew]) {
            times.push(time);
        }
        if checks {
            let text = |rows: &[_]| {
                warpframe::arrow::util::pretty::pretty_format_batches(rows).map(|t| t.to_string())
            };
            if text(&rows)? != text(&cpu.sql(&sql)?.collect()?.to_arrow()?)? {
                wrong.push(name);
            }
        }
    }
    let [first, found, anew] = times.each_ref().map(|times| times.iter().sum::<f64>());
    let mean = |times: &[f64]| {
        (times.iter().map(|time| time.ln()).sum::<f64>() / times.len() as f64).exp()
    };
    println!(
        "{{\"bench\":\"queries of {queries} over {tables}\",\"open_ms\":{:.1},\"first_ms\":{first:.1},\
         \"found_ms\":{found:.1},\"found_mean_ms\":{:.3},\"anew_ms\":{anew:.1},\"anew_mean_ms\":{:.3},\
         \"checked\":{checks},\"differ\":{wrong:?},\"host_MB\":{}}}",
        opened.as_secs_f64() * 1e3,
        mean(&times[1]),
        mean(&times[2]),
        most_host_memory() / 1024,
    );
    eprintln!("  ms of the first run, with the plan found, planned anew:{each}");
    Ok(())
}

/// Most memory that the process had, in KiB.
fn most_host_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
