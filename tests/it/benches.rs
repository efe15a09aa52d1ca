//! The benchmarks, once each and on few rows: that they run, and that what they time is right.

use crate::differential::builder;

#[allow(dead_code, reason = "main is the program's")]
#[path = "../../benches/files.rs"]
mod files;
#[allow(dead_code, reason = "main is the program's, and sweeps are for machines")]
#[path = "../../benches/primitives/main.rs"]
mod primitives;
#[allow(dead_code, reason = "main is the program's")]
#[path = "../../benches/tpch.rs"]
mod tpch;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

#[test]
fn primitives_run() {
    let options = primitives::Options::parse(words("--rows 100 --repeats 1").into_iter());
    let session = builder().strict(true).build().expect("the device is there");
    let has_failed = primitives::time(session, options.expect("they are options"));
    assert!(!has_failed.expect("the benchmarks run"), "a benchmark failed: see its line");
}

#[test]
fn queries_run() {
    let has_failed = tpch::run(&words("0.001 q6 q1"), builder(), 1).expect("the benchmark runs");
    assert!(!has_failed, "a query failed: see its line");
}

#[test]
fn reads_of_files_run() {
    for line in ["data/tpch/nation.parquet --runs 1 --check", "--batches 100 --runs 1"] {
        files::run(&words(line), builder()).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}
