//! Whatever Parquet files are at hand, such as those of
//! [parquet-testing](https://github.com/apache/parquet-testing): each column is read by both
//! engines, and compared. `scripts/parquet-testing.sh` runs this.
//!
//! ```text
//!   CPU      │ device                  │ counted as
//!   refuses  │ refuses                 │ refused      (listed)
//!   reads    │ has no such type        │ no type      (listed)
//!   reads    │ reads the same          │ device
//!   reads    │ the same, by the host   │ host         (listed, with the reason)
//!   reads    │ refuses, or other rows  │ WRONG        (listed; the test fails)
//!   refuses  │ reads                   │ WRONG
//! ```

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use warpframe::arrow::array::{ArrayRef, RecordBatch};
use warpframe::arrow::compute::concat_batches;
use warpframe::prelude::*;
use warpframe::{Error, ErrorKind};

use crate::differential::{Pair, Rows, run};

/// What was found of one column, or one file.
type Found = (&'static str, String);

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false if path.extension().is_some_and(|extension| extension == "parquet") => {
                found.push(path)
            }
            false => {}
        }
    }
    found.sort();
    found
}

/// The rows, an error, or the words of a panic.
fn attempt<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| match error.kind() {
            ErrorKind::Unsupported { .. } => format!("unsupported: {error}"),
            _ => error.to_string(),
        }),
        Err(_) => Err("A PANIC".into()),
    }
}

fn read(session: &Session, columns: &str) -> Result<(RecordBatch, Rows), String> {
    attempt(|| {
        let frame = run(session, &format!("SELECT {columns} FROM t"))?;
        let batches = frame.to_arrow()?;
        Ok((concat_batches(&frame.schema(), &batches)?, Rows::of(&frame)))
    })
}

/// Arrays are equal bit by bit, or but for the bits of NaN.
fn differ(expected: &(RecordBatch, Rows), found: &(RecordBatch, Rows)) -> Option<String> {
    let equal = |(a, b): (&ArrayRef, &ArrayRef)| a == b;
    match expected.0.columns().iter().zip(found.0.columns()).all(equal)
        && expected.0.num_rows() == found.0.num_rows()
    {
        true => None,
        false => expected.1.difference(&found.1, true),
    }
}

fn look(pair: &Pair, path: &Path) -> Vec<Found> {
    let register = |session: &Session| attempt(|| session.register_parquet("t", path));
    match (register(&pair.cpu), register(&pair.device)) {
        (Ok(()), Ok(())) => {}
        (Err(cpu), Err(device)) if cpu == device => return vec![("refused", cpu)],
        (cpu, device) => {
            return vec![("WRONG", format!("registering: cpu {cpu:?}, device {device:?}"))];
        }
    }
    let schema = pair.cpu.schema("t").expect("a table");
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let mut found = vec![];
    let mut on_device = vec![];
    for field in schema.fields() {
        let column = quoted(field.name());
        let (expected, seen) = (read(&pair.cpu, &column), read(&pair.device, &column));
        let by_host = pair.device.take_host_reads().join("; ");
        let words = |what: &str| format!("{} {}: {what}", field.name(), field.data_type());
        found.push(match (expected, seen) {
            (Err(cpu), Err(_)) if cpu != "A PANIC" => ("refused", words(&cpu)),
            (Ok(_), Err(device)) if device.starts_with("unsupported") => ("no type", words("")),
            (Ok(expected), Ok(seen)) => match differ(&expected, &seen) {
                Some(difference) => ("WRONG", words(&difference)),
                None => {
                    on_device.push(column);
                    match by_host.split_once(" is read by the host: ") {
                        Some((_, reason)) => ("host", words(reason)),
                        None => ("device", words("")),
                    }
                }
            },
            (cpu, device) => {
                ("WRONG", words(&format!("cpu {:?}, device {:?}", cpu.err(), device.err())))
            }
        });
    }
    // All of them at once.
    if attempt(|| pair.device.register_parquet("t", path)).is_ok() && !on_device.is_empty() {
        let columns = on_device.join(", ");
        let together = match (read(&pair.cpu, &columns), read(&pair.device, &columns)) {
            (Ok(expected), Ok(seen)) => differ(&expected, &seen),
            (cpu, device) => Some(format!("cpu {:?}, device {:?}", cpu.err(), device.err())),
        };
        found.extend(
            together.map(|difference| ("WRONG", format!("all columns together: {difference}"))),
        );
        pair.device.take_host_reads();
    }
    found
}

#[test]
#[ignore = "reads the files of WARPFRAME_PARQUET_FILES"]
fn files_of_a_folder() {
    let folder =
        std::env::var("WARPFRAME_PARQUET_FILES").expect("WARPFRAME_PARQUET_FILES names a folder");
    let pair = Pair::new();
    let (mut columns, mut whole) = (BTreeMap::<_, usize>::new(), BTreeMap::<_, usize>::new());
    for path in files(Path::new(&folder)) {
        let found = look(&pair, &path);
        let is = |kind: &str| found.iter().any(|(of, _)| *of == kind);
        let of_file = ["WRONG", "refused", "no type", "host"]
            .into_iter()
            .find(|kind| is(kind))
            .unwrap_or("device");
        *whole.entry(of_file).or_default() += 1;
        println!("{of_file:8} {}", path.display());
        for (kind, words) in found {
            *columns.entry(kind).or_default() += 1;
            if kind != "device" {
                println!("    {kind:8} {}", words.trim_end_matches(": "));
            }
        }
    }
    println!("files: {whole:?}\ncolumns: {columns:?}");
    assert!(!whole.is_empty(), "{folder} has no Parquet files");
    assert!(!columns.contains_key("WRONG"), "{columns:?}");
}
