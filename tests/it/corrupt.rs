//! Parquet files that are damaged, by seed: whatever a file holds, it is read or refused by name.
//! Nothing panics, hangs or ends the process.
//!
//! Cases are numbered. A child process works through a range of them and notes in a file which one
//! it is at, so that the parent can tell which case ended it or made it hang, and go on behind
//! that.
//!
//! `WARPFRAME_CORRUPT_FILES=100000` runs so many cases on each engine, `WARPFRAME_CORRUPT_SEED`
//! others, `WARPFRAME_CORRUPT_FIRST` begins at a case, `WARPFRAME_CORRUPT_PLANT` plants what is
//! looked for, `WARPFRAME_CORRUPT_KEEP` names a directory for the files of failed cases.

mod damage;
mod sources;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use warpframe::arrow::util::pretty::pretty_format_batches;
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::differential::builder;

/// Cases on each engine where nobody asks for more. On the device the CPU looks at them, too.
const CASES: u64 = 250;
/// How long a case may take; most take milliseconds, but kernels are compiled in some.
const PATIENCE: Duration = Duration::from_secs(60);

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable)
        .map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{variable}={text}")))
}

fn seed() -> u64 {
    number("WARPFRAME_CORRUPT_SEED", 1)
}

/// A damaged file: of which source, and by what.
fn case(sources: &[sources::Source], number: u64) -> (String, Vec<u8>) {
    let mut random = StdRng::seed_from_u64(seed() << 32 ^ number);
    let source = &sources[random.random_range(0..sources.len())];
    let (what, bytes) = damage::damaged(&source.bytes, &mut random);
    (format!("{}: {what}", source.name), bytes)
}

/// Whether an error names the file.
fn named(
    error: warpframe::Error,
    path: &Path,
    doing: &str,
) -> std::result::Result<Option<String>, String> {
    let (text, name) =
        (error.to_string(), path.file_name().expect("a file").to_string_lossy().into_owned());
    match error.kind() {
        _ if text.contains(&name) => Ok(None),
        ErrorKind::OutOfDeviceMemory { .. } => Ok(None),
        kind => Err(format!("{doing}: an error that does not name the file: {kind:?}")),
    }
}

/// The result of some work, if it does not panic.
fn caught(
    doing: &str,
    work: &mut dyn FnMut() -> Result<String>,
) -> std::result::Result<Result<String>, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| format!("{doing}: a panic"))
}

/// What a session makes of a file, or what it should not have done.
fn look(session: &Session, path: &Path, deep: bool) -> std::result::Result<Option<String>, String> {
    if let Err(error) =
        caught("registering", &mut || session.register_parquet("t", path).map(|()| String::new()))?
    {
        return named(error, path, "registering");
    }
    let ask = |sql: &str| {
        caught(sql, &mut || {
            let batches = session.sql(sql)?.collect()?.to_arrow()?;
            Ok(pretty_format_batches(&batches)
                .map_or_else(|error| error.to_string(), |text| text.to_string()))
        })
    };
    if deep {
        let schema = session.schema("t").map_err(|error| error.to_string())?;
        let quoted: Vec<_> = schema
            .fields()
            .iter()
            .map(|f| format!("\"{}\"", f.name().replace('"', "\"\"")))
            .collect();
        let mut queries =
            vec!["SELECT count(*) FROM t".to_string(), "SELECT 1 FROM t LIMIT 3".to_string()];
        for name in quoted.iter().take(3) {
            queries.push(format!("SELECT count({name}) FROM t"));
            queries.push(format!(
                "SELECT {name}, count(*) FROM t WHERE {name} IS NOT NULL GROUP BY {name} LIMIT 5"
            ));
        }
        for sql in queries {
            if let Err(error) = ask(&sql)? {
                named(error, path, &sql)?;
            }
        }
    }
    match ask("SELECT * FROM t")? {
        Ok(rows) => Ok(Some(rows)),
        Err(error) => named(error, path, "SELECT *"),
    }
}

/// What the parquet crate reads, without DataFusion: that takes a column's value from the file's
/// statistics where they say that all are equal, and these may be damaged, too.
fn read_alone(path: &Path) -> Option<String> {
    let read = || {
        let file = std::fs::File::open(path).ok()?;
        let batches: Vec<_> =
            ParquetRecordBatchReaderBuilder::try_new(file).ok()?.build().ok()?.collect();
        let batches: Vec<_> = batches.into_iter().collect::<std::result::Result<_, _>>().ok()?;
        pretty_format_batches(&batches).ok().map(|text| text.to_string())
    };
    catch_unwind(AssertUnwindSafe(read)).ok().flatten()
}

/// Works through cases; run by [`run_cases`] in a process of its own.
#[test]
fn child() {
    let Ok(directory) = std::env::var("WARPFRAME_CORRUPT_CHILD").map(PathBuf::from) else { return };
    std::panic::set_hook(Box::new(|_| {}));
    let (first, last) = (number("WARPFRAME_CORRUPT_FROM", 0), number("WARPFRAME_CORRUPT_TO", 0));
    let cpu = Session::builder()
        .device(DeviceChoice::Cpu)
        .cpu_partitions(2)
        .build()
        .expect("a CPU session");
    let device = std::env::var_os("WARPFRAME_CORRUPT_DEVICE")
        .map(|_| builder().build().expect("the device opens"));
    let sources = sources::all(&directory);
    let (progress, path) = (directory.join("progress"), directory.join("case.parquet"));
    let plant = std::env::var_os(PLANT).map(|_| first + (last - first) / 2);
    for number in first..last {
        std::fs::write(&progress, number.to_string()).expect("progress is noted");
        let (what, bytes) = case(&sources, number);
        std::fs::write(&path, &bytes).expect("the case is written");
        let seen = match &device {
            _ if plant == Some(number) => planted(&path),
            None => look(&cpu, &path, number % 8 == 0).map(|_| ()),
            // Queries of which no one has met the columns are compiled, which takes long.
            Some(device) => look(device, &path, number % 40 == 0).and_then(|found| {
                let expected = look(&cpu, &path, false)?;
                match found == expected
                    || found.is_some() && expected.is_some() && found == read_alone(&path)
                {
                    true => Ok(()),
                    false => Err(format!("the device: {found:?}\n  the CPU: {expected:?}")),
                }
            }),
        };
        if let Err(complaint) = seen {
            keep(&bytes, number);
            println!("\ncase {number}, {what}: {complaint}");
        }
    }
    std::fs::write(&progress, last.to_string()).expect("progress is noted");
}

const PLANT: &str = "WARPFRAME_CORRUPT_PLANT";

/// Does what no file should bring about.
fn planted(path: &Path) -> std::result::Result<(), String> {
    match std::env::var(PLANT).as_deref() {
        Ok("abort") => std::process::abort(),
        Ok("stack") => {
            fn deeper(depth: u64) -> u64 {
                if depth == u64::MAX {
                    0
                } else {
                    std::hint::black_box(depth + deeper(std::hint::black_box(depth + 1)))
                }
            }
            Err(deeper(0).to_string())
        }
        Ok("hang") => loop {
            std::thread::sleep(Duration::from_secs(1));
        },
        Ok("panic") => caught("a plant", &mut || panic!("planted")).map(|_| ()),
        Ok("name") => named(planted_error().into(), path, "a plant").map(|_| ()),
        other => panic!("{PLANT}={other:?}"),
    }
}

fn planted_error() -> ErrorKind {
    ErrorKind::Arithmetic {
        fault: warpframe::Fault::Overflow,
        operation: None,
        account: Some("planted".into()),
    }
}

fn keep(bytes: &[u8], number: u64) {
    if let Some(directory) = std::env::var_os("WARPFRAME_CORRUPT_KEEP") {
        std::fs::write(Path::new(&directory).join(format!("{number}.parquet")), bytes)
            .expect("a directory to keep files");
    }
}

/// A program that is meant to crash: a core of it would look like that of a bug.
fn without_core(program: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c 0 && exec \"$0\" \"$@\""]).arg(program);
    command
}

/// Runs cases in child processes, and returns what was wrong.
fn complaints(
    device: bool,
    first: u64,
    last: u64,
    plant: Option<&str>,
    patience: Duration,
) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let progress = directory.path().join("progress");
    let at = || std::fs::read_to_string(&progress).ok().and_then(|text| text.parse::<u64>().ok());
    let sources = sources::all(directory.path());
    let mut complaints = vec![];
    let mut from = first;
    while from < last {
        let _ = std::fs::remove_file(&progress);
        let out = directory.path().join("out");
        let file = std::fs::File::create(&out).expect("a file for what it says");
        let program = std::env::current_exe().expect("a test has a program");
        let mut command = match plant {
            Some(_) => without_core(&program),
            None => Command::new(program),
        };
        command
            .args(["--exact", "corrupt::child", "--nocapture"])
            .stdout(file)
            .stderr(Stdio::null());
        command.env("WARPFRAME_CORRUPT_CHILD", directory.path());
        command
            .env("WARPFRAME_CORRUPT_FROM", from.to_string())
            .env("WARPFRAME_CORRUPT_TO", last.to_string());
        if let Some(plant) = plant {
            command.env(PLANT, plant);
        }
        if device {
            command.env("WARPFRAME_CORRUPT_DEVICE", "1");
        }
        let mut child = command.spawn().expect("the test's own program starts");
        let (mut seen, mut since, mut hangs) = (None, Instant::now(), false);
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child can be waited for") {
                break status;
            }
            if at() != seen {
                (seen, since) = (at(), Instant::now());
            }
            if since.elapsed() > patience {
                hangs = true;
                child.kill().expect("it runs");
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let said = std::fs::read_to_string(&out).unwrap_or_default();
        complaints.extend(
            said.split("\ncase ")
                .skip(1)
                .map(|text| text.split("\ntest ").next().unwrap_or(text).to_string()),
        );
        let reached = at().unwrap_or(from);
        if reached >= last && status.success() {
            break;
        }
        let (what, bytes) = case(&sources, reached);
        keep(&bytes, reached);
        let how = if hangs { "no end".to_string() } else { format!("the process ended: {status}") };
        complaints.push(format!("{reached}, {what}: {how}"));
        assert!(complaints.len() < 100, "{}", complaints.join("\n"));
        from = reached + 1;
    }
    complaints
}

fn run_cases(device: bool) {
    let first = number("WARPFRAME_CORRUPT_FIRST", 0);
    let cases = number("WARPFRAME_CORRUPT_FILES", CASES);
    let complaints = complaints(device, first, first + cases, None, PATIENCE);
    assert!(
        complaints.is_empty(),
        "{} of {cases} cases:\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

/// Whatever ends a process, or keeps it, is noticed, and the cases behind it are looked at.
#[test]
fn what_is_looked_for_is_found() {
    for (plant, words) in [
        ("abort", "the process ended"),
        ("stack", "the process ended"),
        ("hang", "no end"),
        ("panic", "a panic"),
        ("name", "does not name the file"),
    ] {
        let found = complaints(
            false,
            0,
            3,
            Some(plant),
            Duration::from_secs(if plant == "hang" { 8 } else { 60 }),
        );
        // The cases behind it are a range of their own, with a plant in its middle.
        assert!(matches!(found.len(), 1 | 2), "{plant}: {found:?}");
        assert!(found.iter().all(|complaint| complaint.contains(words)), "{plant}: {found:?}");
    }
}

#[test]
fn damaged_files_are_read_or_refused_on_the_cpu() {
    run_cases(false);
}

#[test]
fn damaged_files_are_read_or_refused_on_the_device() {
    run_cases(true);
}

/// Files of cases that failed, once more.
#[test]
#[ignore = "reads the files of WARPFRAME_CORRUPT_KEEP"]
fn kept_files() {
    let directory =
        std::env::var("WARPFRAME_CORRUPT_KEEP").expect("WARPFRAME_CORRUPT_KEEP names a directory");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let cpu = Session::builder()
        .device(DeviceChoice::Cpu)
        .cpu_partitions(2)
        .build()
        .expect("a CPU session");
    let device = builder().build().expect("the device opens");
    let mut differ = 0;
    for path in &paths {
        println!("{}", path.display());
        let (found, expected) = (look(&device, path, false), look(&cpu, path, false));
        let alone = || matches!((&found, &expected), (Ok(Some(found)), Ok(Some(_))) if read_alone(path).as_ref() == Some(found));
        if found.is_err() || expected.is_err() || found != expected && !alone() {
            println!(
                "  the device: {found:.300?}\n  the CPU: {expected:.300?}\n  {:?}",
                device.take_host_reads()
            );
            differ += 1;
        }
    }
    assert_eq!(differ, 0, "of {}", paths.len());
}

/// The sources themselves are whole, and both engines read them alike; cases are the same in each
/// run.
#[test]
fn whole_files_are_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let sources = sources::all(directory.path());
    assert!(sources.len() > 15);
    let cpu = Session::builder().device(DeviceChoice::Cpu).build().expect("a CPU session");
    let device = builder().build().expect("the device opens");
    let path = directory.path().join("case.parquet");
    for source in &sources {
        std::fs::write(&path, &source.bytes).expect("the file can be written");
        let expected =
            look(&cpu, &path, false).unwrap_or_else(|error| panic!("{}: {error}", source.name));
        assert!(
            expected.as_ref().is_some_and(|rows| rows.lines().count() > 50),
            "{}: {expected:?}",
            source.name
        );
        assert_eq!(look(&device, &path, false), Ok(expected), "{}", source.name);
    }
    assert!((0..50).all(|number| case(&sources, number) == case(&sources, number)));
    let damaged = (0..200)
        .filter(|at| sources.iter().all(|source| source.bytes != case(&sources, *at).1))
        .count();
    assert!(damaged > 190, "{damaged} of 200");
}
