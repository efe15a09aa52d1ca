//! The benchmarks, once each and on few rows: that they run, and that what they time is right.

use crate::differential::builder;

#[allow(dead_code, reason = "main is the program's")]
#[path = "../../benches/files.rs"]
mod files;
#[allow(dead_code, reason = "main is the program's")]
#[path = "../../benches/planning.rs"]
mod planning;
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
    let words = words("0.001 q6 q1 --one-line");
    let has_failed = tpch::run(&words, builder(), 1).expect("the benchmark runs");
    assert!(!has_failed, "a query failed: see its line");
}

#[test]
fn plans_are_timed() {
    let queries = tempfile::tempdir().expect("a folder for a query");
    let text = "SELECT n_regionkey, count(*) FROM nation GROUP BY n_regionkey";
    std::fs::write(queries.path().join("regions.sql"), text).expect("the query is written");
    let words = ["data/tpch", &queries.path().to_string_lossy(), "1"].map(String::from);
    let has_failed = planning::run(&words, builder()).expect("the benchmark runs");
    assert!(!has_failed, "a query failed: see its line");
}

#[test]
fn reads_of_files_run() {
    for line in ["data/tpch/nation.parquet --runs 1 --check", "--batches 100 --runs 1"] {
        files::run(&words(line), builder()).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}
