//! Plans in parts that fail on their way: at each allocation, at each step of spilling, by an
//! interrupt at any time. The error is clean, nothing is left, and the session goes on.
//!
//! Some of the steps fail here, all of them where `WARPFRAME_DIVIDE_ALL` is 1, which takes long:
//! where it is `2/14`, every 14th from the second on, so that 14 processes share them.

use std::path::Path;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use warpframe::device::{Device, MemoryLimit};
use warpframe::{DeviceChoice, Error, ErrorKind, Session};

use crate::differential::{Pair, builder, run};
use crate::tables::Shape;

/// Joins and groups by hash, strings that are many, an order by ranges, lists.
const QUERIES: [&str; 4] = [
    "SELECT u.k, count(*), sum(t.x), min(t.s) FROM t JOIN u ON t.id = u.id GROUP BY u.k ORDER BY 1",
    "SELECT id, s, count(*) AS n FROM t GROUP BY id, s",
    "SELECT id, k, s, x FROM t ORDER BY s, id",
    "SELECT id % 3000 AS g, array_agg(k ORDER BY id) AS ks FROM t GROUP BY id % 3000",
];

/// Device memory.
const LIMIT: u64 = 400 << 10;

/// No statement takes so long, and none that was stopped.
const SOON: Duration = Duration::from_secs(120);

/// Tables `t` and `u` in files, on a device of little memory; rows that wait lie in host memory of
/// so many bytes, and then in files of the folder.
fn pair(folder: &Path, host: u64) -> Pair {
    let writer = Session::builder().device(DeviceChoice::Cpu).build().expect("the CPU is there");
    let device = builder().strict(true).memory_limit(MemoryLimit::Bytes(LIMIT));
    let device =
        device.host_memory_limit(MemoryLimit::Bytes(host)).spill_dir(folder.join("spilled"));
    let pair = Pair::with(device.spill_limit(1 << 30));
    for (table, rows, seed) in [("t", 12_000, 7), ("u", 8000, 8)] {
        let path = folder.join(format!("{table}.parquet"));
        let frame = writer.from_arrow(Shape::random(rows, seed).batches()).expect("a frame");
        let options =
            warpframe::ParquetWriteOptions { row_group_rows: Some(2000), ..Default::default() };
        frame.write_parquet_with(&path, options).expect("a file");
        for session in [&pair.cpu, &pair.device] {
            session.register_parquet(table, &path).expect("a table");
        }
    }
    pair
}

/// Nothing of a query is left on the device, on the host or on the disk.
fn nothing_stays(device: &Device, folder: &Path, of: &str) {
    device.make_room(device.memory().limit).expect("what is cached can go");
    assert_eq!(device.memory().used, 0, "on the device: {of}");
    assert_eq!(device.spilled_now(), (0, 0), "in host memory and in files: {of}");
    // Beside the folder of the CPU engine.
    let names = std::fs::read_dir(folder.join("spilled"))
        .expect("the folder")
        .map(|entry| entry.expect("a file"));
    let ours = names.filter(|entry| entry.file_name().to_string_lossy().starts_with(".warpframe"));
    assert_eq!(ours.count(), 0, "names of files: {of}");
}

/// Both answer alike, the device in parts.
fn agrees(pair: &Pair, sql: &str) {
    let before = pair.gpu().counters().parts_run;
    let expected = run(&pair.cpu, sql).expect("the CPU answers");
    let found = run(&pair.device, sql).unwrap_or_else(|error| panic!("{error}\n  {sql}"));
    pair.compare(&expected, &found, sql);
    assert!(pair.gpu().counters().parts_run > before, "it ran whole\n  {sql}");
}

/// Which share of all the steps fails here, counted from 0, and how many shares there are.
fn share() -> Option<(u64, usize)> {
    let value = std::env::var("WARPFRAME_DIVIDE_ALL").ok()?;
    let (share, shares) = value.split_once('/').unwrap_or((&value, "1"));
    let number = |text: &str| text.parse::<u64>().expect("WARPFRAME_DIVIDE_ALL is 1, or a share");
    Some((number(share).checked_sub(1)?, number(shares).max(1) as usize))
}

/// Which steps fail.
fn chosen(steps: u64, few: u64) -> impl Iterator<Item = u64> {
    let (first, every) = share().unwrap_or((0, (steps / few).max(1) as usize));
    (first..steps).step_by(every)
}

#[test]
fn any_allocation_may_fail() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair(folder.path(), 1 << 30);
    let device = pair.gpu().clone();
    for sql in QUERIES {
        agrees(&pair, sql);
        let before = device.counters().allocations;
        run(&pair.device, sql).expect("it fits in parts");
        let steps = device.counters().allocations - before;
        let (mut failed, mut ran) = (0, 0);
        for at in chosen(steps, 3) {
            device.fail_allocation_after(at);
            match run(&pair.device, sql) {
                Ok(_) => ran += 1,
                Err(error) => match error.kind() {
                    ErrorKind::OutOfDeviceMemory { operator, .. } => {
                        assert!(!operator.is_empty(), "{error}");
                        failed += 1;
                    }
                    other => panic!("allocation {at} of {steps}: {other:?}\n  {sql}"),
                },
            }
            device.fail_allocation_after(u64::MAX);
            nothing_stays(&device, folder.path(), &format!("allocation {at} of {steps}\n  {sql}"));
        }
        println!("{steps} allocations: {ran} times an answer, {failed} errors\n  {sql}");
        assert!(ran > 0, "a part that finds no memory is made smaller; {failed} failed\n  {sql}");
        agrees(&pair, sql);
    }
}

/// Blocks of host memory and of files: that one is made, filled or read may fail.
#[test]
fn any_step_of_spilling_may_fail() {
    for (place, host) in [1 << 30, 10_000].into_iter().enumerate() {
        let folder = tempfile::tempdir().expect("a folder");
        let pair = pair(folder.path(), host);
        let device = pair.gpu().clone();
        // Half of the queries in each place, unless all steps are asked for.
        let every = if share().is_some() { 1 } else { 2 };
        for sql in QUERIES.into_iter().skip(place % every).step_by(every) {
            agrees(&pair, sql);
            let in_files = device.counters().bytes_in_spill_files > 0;
            assert_eq!(in_files, host < 1 << 30);
            let fails = |at: u64| {
                device.fail_spill_after(at);
                let error = run(&pair.device, sql).err();
                device.fail_spill_after(u64::MAX);
                nothing_stays(&device, folder.path(), &format!("step {at}\n  {sql}"));
                error
            };
            let is_of_disk = |error: &Error| match error.kind() {
                ErrorKind::Io { path, source } => {
                    assert_eq!(path, &folder.path().join("spilled"), "{error}");
                    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull, "{error}");
                }
                other => panic!("{other:?}\n  {sql}"),
            };
            // Up to the first step that there is not.
            let mut steps = 1;
            while let Some(error) = fails(steps - 1) {
                is_of_disk(&error);
                steps *= 2;
            }
            assert!(steps > 32, "it spills: {steps}\n  {sql}");
            let (mut tried, mut failed) = (0, 0);
            for at in chosen(steps / 2, 3) {
                let error = fails(at);
                error.iter().for_each(is_of_disk);
                (tried, failed) = (tried + 1, failed + u64::from(error.is_some()));
            }
            println!(
                "up to {} steps of spilling, {tried} tried: {failed} errors\n  {sql}",
                steps / 2
            );
            // How many steps there are depends on what is read ahead.
            assert!(failed * 10 >= tried * 9, "{failed} of {tried} were noticed\n  {sql}");
            agrees(&pair, sql);
        }
    }
}

/// The limit of files is a disk that is full.
#[test]
fn a_full_disk_is_an_error_that_names_the_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let device = builder().strict(true).memory_limit(MemoryLimit::Bytes(1 << 20));
    let device = device
        .host_memory_limit(MemoryLimit::Bytes(50_000))
        .spill_dir(folder.path().join("spilled"));
    let pair = Pair::with(device.spill_limit(60_000)).and("t", Shape::random(60_000, 7).batches());
    let pair = pair.and("u", Shape::random(60_000, 8).batches());
    for sql in &QUERIES[..3] {
        let error = run(&pair.device, sql).expect_err("there is no room");
        match error.kind() {
            ErrorKind::OutOfHostMemory { limit, spill_limit, account } => {
                assert_eq!((*limit, *spill_limit), (Some(50_000), Some(60_000)), "{error}");
                assert!(account.contains("rows that do not fit into device memory"), "{error}");
            }
            other => panic!("{other:?}\n  {sql}"),
        }
        nothing_stays(pair.gpu(), folder.path(), sql);
    }
    agrees(&pair, "SELECT id, k, x FROM t ORDER BY x DESC NULLS LAST, id LIMIT 20");
}

/// Wherever the plan is when it is told: while it runs whole, reads, parts, spills or merges.
#[test]
fn a_plan_in_parts_may_be_stopped_at_any_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = pair(folder.path(), 20_000);
    let device = pair.gpu().clone();
    let mut random = StdRng::seed_from_u64(40);
    let rounds = if share().is_some() { 60 } else { 6 };
    let (mut stopped, mut all) = (0, 0);
    for sql in QUERIES {
        agrees(&pair, sql);
        let start = Instant::now();
        run(&pair.device, sql).expect("it fits in parts");
        let takes = start.elapsed();
        for _ in 0..rounds {
            let wait = takes.mul_f64(random.random_range(0.0..1.0));
            let start = Instant::now();
            let outcome = std::thread::scope(|scope| {
                let running = scope.spawn(|| run(&pair.device, sql));
                std::thread::sleep(wait);
                pair.device.interrupt();
                running.join().expect("no panic")
            });
            assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
            all += 1;
            match outcome {
                Ok(frame) => drop(frame),
                Err(error) => {
                    assert!(
                        matches!(error.kind(), ErrorKind::Interrupted { timeout: None }),
                        "{error:?}"
                    );
                    stopped += 1;
                }
            }
            nothing_stays(&device, folder.path(), &format!("after {wait:?} of {takes:?}\n  {sql}"));
        }
        agrees(&pair, sql);
    }
    println!("{stopped} of {all} were stopped");
    assert!(stopped * 2 > all, "{stopped} of {all} were stopped");
}
