//! The queries of TPC-DS in parts, on a device of little memory.
//!
//! Neither tables nor queries are part of the repository. `WARPFRAME_TPCDS` names a folder of the
//! tables as Parquet files (`tpcgen-cli tpcds parquet -s 0.01`), and `WARPFRAME_TPCDS_QUERIES` one
//! of the queries, `q01.sql` to `q99.sql`; without them nothing runs.
//! `WARPFRAME_TPCDS_NUMBERS=1,17` runs some, and `WARPFRAME_MEMORY_LIMIT` says how much memory
//! there is.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Instant;

use warpframe::ErrorKind;
use warpframe::device::MemoryLimit;

use crate::differential::{Pair, builder, run};
use crate::foresight::foreseen_and_done;

/// Less than the columns of most queries take at a scale of 0.01.
const LIMIT: MemoryLimit = MemoryLimit::Bytes(2 << 20);

/// Queries whose ORDER BY leaves rows equal: two without an id in the same channel.
const WITH_TIES: [u32; 1] = [77];

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn pair(folder: &PathBuf) -> Pair {
    let limit =
        variable("WARPFRAME_MEMORY_LIMIT").map_or(LIMIT, |text| text.parse().expect("a limit"));
    let pair = Pair::with(builder().strict(true).memory_limit(limit));
    let files = std::fs::read_dir(folder)
        .expect("WARPFRAME_TPCDS is a folder")
        .map(|entry| entry.expect("a file").path());
    for path in
        files.filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
    {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        for session in [&pair.cpu, &pair.device] {
            session.register_parquet(&name, &path).expect("a table");
        }
    }
    pair
}

#[test]
fn tpcds_queries_in_parts() {
    let (Some(tables), Some(queries)) =
        (variable("WARPFRAME_TPCDS"), variable("WARPFRAME_TPCDS_QUERIES"))
    else {
        eprintln!("skipped: WARPFRAME_TPCDS and WARPFRAME_TPCDS_QUERIES name no folders");
        return;
    };
    let numbers: Option<Vec<u32>> = variable("WARPFRAME_TPCDS_NUMBERS").map(|text| {
        text.split(',').map(|number| number.trim().parse().expect("a number")).collect()
    });
    let mut outcomes: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let mut divided = 0;
    for number in numbers.unwrap_or_else(|| (1..=99).collect()) {
        let path = PathBuf::from(&queries).join(format!("q{number:02}.sql"));
        let sql = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let pair = pair(&PathBuf::from(&tables));
            let mut outcome = "agree";
            // A file may have two.
            for sql in sql.split(';').map(str::trim).filter(|sql| !sql.is_empty()) {
                let expected = match run(&pair.cpu, sql) {
                    Ok(expected) => expected,
                    // Few rows are a share of nothing.
                    Err(error) if error.to_string().contains("Divide by zero") => {
                        let found = run(&pair.device, sql).expect_err("the CPU divided by zero");
                        assert!(found.to_string().contains("Divide by zero"), "Q{number}: {found}");
                        continue;
                    }
                    Err(error) => panic!("the CPU: {error}"),
                };
                if let Some([foreseen, done]) = foreseen_and_done(&pair.device, sql) {
                    assert_eq!(foreseen, done, "Q{number} is divided as EXPLAIN says");
                }
                match run(&pair.device, sql) {
                    Ok(found) if WITH_TIES.contains(&number) => {
                        pair.compare_unordered(&expected, &found, sql)
                    }
                    Ok(found) => pair.compare(&expected, &found, sql),
                    Err(error) => match error.kind() {
                        ErrorKind::OutOfDeviceMemory { .. } => {
                            println!("Q{number}: {error}");
                            outcome = "out of memory";
                        }
                        ErrorKind::Unsupported { .. } => {
                            println!("Q{number}: {error}");
                            outcome = "unsupported";
                        }
                        _ => panic!("Q{number}: {error}"),
                    },
                }
            }
            let (memory, counters) = (pair.gpu().memory(), pair.gpu().counters());
            assert!(memory.peak <= memory.limit);
            (outcome, counters.parts_run)
        }));
        let (outcome, parts) = outcome.unwrap_or(("fail", 0));
        divided += u64::from(parts > 0);
        println!("Q{number}: {outcome}, {parts} parts, {:.1} s", start.elapsed().as_secs_f64());
        outcomes.entry(outcome).or_default().push(number);
    }
    println!("{outcomes:?}; {divided} were divided");
    assert!(!outcomes.contains_key("fail"), "{outcomes:?}");
}
