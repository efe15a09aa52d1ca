//! Devices that are lost or have no memory, statements that are stopped, a disk that is full.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use warpframe::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use warpframe::device::{Device, DeviceKind, MemoryLimit};
use warpframe::{DeviceChoice, ErrorKind, Session, SessionBuilder};

use super::{choice, sent, tpch};
use crate::differential::{Pair, builder, run};
use crate::tables::Shape;

/// Joins and groups by a hash, what is too large for a device, an order.
const QUERIES: [&str; 4] = [
    "SELECT u.k, count(*), sum(t.x), min(t.s) FROM t JOIN u ON t.id = u.id GROUP BY u.k ORDER BY 1",
    "SELECT id, s, count(*) AS n FROM t GROUP BY id, s",
    "SELECT id % 3000 AS g, array_agg(k ORDER BY id) AS ks FROM t GROUP BY id % 3000",
    "SELECT id, k, s FROM t ORDER BY s, id",
];

/// No statement takes so long, and none that was stopped.
const SOON: Duration = Duration::from_secs(120);

fn small(folder: &TempDir, limit: u64) -> SessionBuilder {
    let device = builder().device(choice(2)).strict(true);
    device.memory_limit(MemoryLimit::Bytes(limit)).spill_dir(folder.path().join("spilled"))
}

/// Tables `t` and `u` in files of several row groups.
fn tables(pair: &Pair, folder: &TempDir, rows: usize) {
    let writer = Session::builder().device(DeviceChoice::Cpu).build().expect("the CPU is there");
    for (table, rows, seed) in [("t", rows, 7), ("u", rows * 2 / 3, 8)] {
        let path = folder.path().join(format!("{table}.parquet"));
        let frame = writer.from_arrow(Shape::random(rows, seed).batches()).expect("a frame");
        let options =
            warpframe::ParquetWriteOptions { row_group_rows: Some(2000), ..Default::default() };
        frame.write_parquet_with(&path, options).expect("a file");
        for session in [&pair.cpu, &pair.device] {
            session.register_parquet(table, &path).expect("a table");
        }
    }
}

/// Nothing of a query is left on a device, on the host or on the disk.
fn nothing_stays(pair: &Pair, of: &str) {
    for (number, device) in pair.device.devices().iter().enumerate() {
        device.make_room(device.memory().limit).expect("what is cached can go");
        assert_eq!(device.memory().used, 0, "on device {number}: {of}");
        assert_eq!(device.spilled_now(), (0, 0), "of device {number} on the host: {of}");
    }
}

fn agrees(pair: &Pair, sql: &str) {
    let expected = run(&pair.cpu, sql).expect("the CPU answers");
    let found = run(&pair.device, sql).unwrap_or_else(|error| panic!("{error}\n  {sql}"));
    pair.compare(&expected, &found, sql);
}

fn launches(devices: &[Device]) -> Vec<u64> {
    devices.iter().map(|device| device.counters().launches).collect()
}

/// On the simulator: a GPU is not lost for a test.
#[test]
fn a_lost_device_is_an_error_and_the_session_goes_on_with_the_others() {
    const SQL: &str = "SELECT l_suppkey, count(*), sum(l_quantity) FROM lineitem JOIN orders ON l_orderkey = o_orderkey GROUP BY l_suppkey";
    for (count, lost) in [(2, 0), (2, 1), (3, 0), (3, 2)] {
        let (pair, _files) = tpch(count);
        let devices = pair.device.devices();
        if devices[0].kind() != DeviceKind::Sim {
            return;
        }
        agrees(&pair, SQL);
        devices[lost].lose();
        let error = run(&pair.device, SQL).expect_err("a device is lost");
        match error.kind() {
            ErrorKind::DeviceLost { device, .. } => assert_eq!(*device, lost, "{error}"),
            other => panic!("{other:?}"),
        }
        assert!(error.to_string().contains("queries go on with the others"), "{error}");
        let before = launches(&devices);
        agrees(&pair, SQL);
        agrees(&pair, "SELECT o_orderpriority, count(*) FROM orders GROUP BY o_orderpriority");
        for (number, (before, now)) in before.iter().zip(launches(&devices)).enumerate() {
            assert_eq!(now > *before, number != lost, "device {number} of {count}");
        }
        let first = pair.device.device().expect("one is left");
        assert_eq!(
            launches(std::slice::from_ref(first)),
            launches(&devices[usize::from(lost == 0)..][..1])
        );
        assert!(count == 2 || sent(&pair.device) > 0);
    }
}

#[test]
fn results_on_a_lost_device_are_gone_and_can_be_made_anew() {
    const SQL: &str = "CREATE OR REPLACE TABLE sums AS \
        SELECT l_linenumber, sum(l_quantity) AS n FROM lineitem GROUP BY 1";
    let (pair, _files) = tpch(2);
    let devices = pair.device.devices();
    if devices[0].kind() != DeviceKind::Sim {
        return;
    }
    pair.device.execute(SQL).expect("all devices are there");
    devices[0].lose();
    let error = run(&pair.device, "SELECT sum(l_quantity) FROM lineitem").expect_err("it is lost");
    assert!(matches!(error.kind(), ErrorKind::DeviceLost { device: 0, .. }), "{error}");
    let error = run(&pair.device, "SELECT max(n) FROM sums").expect_err("the rows are gone");
    assert!(error.to_string().contains("make these anew"), "{error}");
    for session in [&pair.cpu, &pair.device] {
        session.execute(SQL).expect("the CPU, and one device");
    }
    pair.check("SELECT max(n) FROM sums");
}

/// A device that has too little memory divides its part further.
#[test]
fn parts_that_do_not_fit_are_divided_further() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = Pair::with(small(&folder, 400 << 10));
    tables(&pair, &folder, 20_000);
    let mut divided = [0, 0];
    for sql in QUERIES {
        agrees(&pair, sql);
        let devices = pair.device.devices();
        for (parts, device) in divided.iter_mut().zip(&devices) {
            *parts = device.counters().parts_run;
            assert!(device.memory().peak <= device.memory().limit, "{sql}");
        }
        nothing_stays(&pair, sql);
    }
    assert!(divided.iter().all(|parts| *parts > 0), "both divided: {divided:?}");
}

/// Stages that were kept give way to the CPU as those do that were just made.
#[test]
fn what_devices_cannot_do_the_cpu_does_each_time() {
    let texts: StringArray = (0..3000).map(|i| Some(format!("straße {i}"))).collect();
    let columns: [(&str, ArrayRef); 2] =
        [("i", Arc::new(Int64Array::from_iter_values(0..3000))), ("s", Arc::new(texts))];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let pair = Pair::with(builder().device(choice(2)).strict(false)).and("t", vec![batch]);
    for _ in 0..3 {
        pair.device.take_fallback_reasons();
        agrees(&pair, "SELECT upper(s) AS u, sum(i) AS n FROM t GROUP BY 1");
        let reasons = pair.device.take_fallback_reasons();
        assert!(reasons.iter().any(|why| why.contains("ASCII")), "{reasons:?}");
    }
}

#[test]
fn an_allocation_of_any_device_may_fail() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = Pair::with(small(&folder, 64 << 20));
    tables(&pair, &folder, 6000);
    let devices = pair.device.devices();
    for sql in QUERIES {
        agrees(&pair, sql);
        for device in &devices {
            let before = device.counters().allocations;
            run(&pair.device, sql).expect("it fits");
            let steps = device.counters().allocations - before;
            for at in (0..steps).step_by((steps as usize / 4).max(1)) {
                device.fail_allocation_after(at);
                let ran = run(&pair.device, sql).map(drop);
                device.fail_allocation_after(u64::MAX);
                if let Err(error) = ran {
                    let is_memory = matches!(error.kind(), ErrorKind::OutOfDeviceMemory { .. });
                    assert!(is_memory, "allocation {at} of {steps}: {error:?}\n  {sql}");
                }
                nothing_stays(&pair, &format!("allocation {at} of {steps}\n  {sql}"));
            }
        }
        agrees(&pair, sql);
    }
}

/// Wherever devices are when they are told.
#[test]
fn a_statement_on_two_devices_may_be_stopped_at_any_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let pair = Pair::with(small(&folder, 400 << 10));
    tables(&pair, &folder, 12_000);
    let (mut stopped, mut all) = (0, 0);
    for sql in QUERIES {
        agrees(&pair, sql);
        let start = Instant::now();
        run(&pair.device, sql).expect("it fits in parts");
        let takes = start.elapsed();
        for round in 0..5 {
            let wait = takes.mul_f64(f64::from(round) / 6.0);
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
                    let kind = error.kind();
                    let interrupted = matches!(kind, ErrorKind::Interrupted { timeout: None });
                    assert!(interrupted, "{error:?}");
                    stopped += 1;
                }
            }
            nothing_stays(&pair, &format!("after {wait:?} of {takes:?}\n  {sql}"));
        }
        agrees(&pair, sql);
    }
    println!("{stopped} of {all} were stopped");
    assert!(stopped * 2 > all, "{stopped} of {all} were stopped");
}

/// The limit of files is a disk that is full.
#[test]
fn a_full_disk_is_an_error_on_several_devices() {
    let folder = tempfile::tempdir().expect("a folder");
    let device = small(&folder, 400 << 10).host_memory_limit(MemoryLimit::Bytes(50_000));
    let pair = Pair::with(device.spill_limit(60_000));
    tables(&pair, &folder, 40_000);
    let mut full = 0;
    for sql in QUERIES {
        match run(&pair.device, sql) {
            Ok(_) => {}
            Err(error) => match error.kind() {
                ErrorKind::OutOfHostMemory { limit, spill_limit, .. } => {
                    assert_eq!((*limit, *spill_limit), (Some(50_000), Some(60_000)), "{error}");
                    full += 1;
                }
                other => panic!("{other:?}\n  {sql}"),
            },
        }
        nothing_stays(&pair, sql);
    }
    assert!(full > 0, "there is no room");
    agrees(&pair, "SELECT id, k, x FROM t ORDER BY x DESC NULLS LAST, id LIMIT 20");
}
