//! Plans that several devices run together.

mod colocated;
mod faults;

use std::sync::Arc;

use tempfile::TempDir;
use warpframe::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use warpframe::arrow::record_batch::RecordBatch;
use warpframe::{DeviceChoice, ParquetWriteOptions, Session};

use crate::differential::{Pair, builder, data, run};

/// So many devices: simulated ones, or the GPU of the tests, several times.
fn choice(count: usize) -> DeviceChoice {
    match std::env::var("WARPFRAME_DEVICE").as_deref() {
        Ok(name) if name.starts_with("cuda:") && name.contains([',', 'a']) => {
            name.parse().expect("devices")
        }
        Ok(name) if name.starts_with("cuda") => DeviceChoice::Gpus(vec![0; count]),
        _ => DeviceChoice::Sims(count),
    }
}

/// Whether devices are simulated, which divide and exchange as soon as they can. GPUs do so where
/// their tables are large.
fn is_simulated() -> bool {
    matches!(choice(2), DeviceChoice::Sims(_))
}

/// Sessions on the CPU and on so many devices.
fn pair(count: usize) -> Pair {
    Pair::with(builder().device(choice(count)).strict(true))
}

/// Whether each device ran kernels in a query that agrees with the CPU's. On GPUs
/// `WARPFRAME_SHARED_BYTES=0` has them share small queries.
fn on_all(pair: &Pair, sql: &str) -> bool {
    let devices = pair.device.devices();
    let launches = || devices.iter().map(|device| device.counters().launches).collect::<Vec<_>>();
    let before = launches();
    pair.check(sql);
    before.iter().zip(launches()).all(|(before, now)| now > *before)
}

fn table(rows: i64) -> Vec<RecordBatch> {
    let batch = |from: i64, to: i64| {
        let key = Int64Array::from_iter((from..to).map(|i| (i % 11 != 3).then_some(i * 7 % 53)));
        let value = Float64Array::from_iter_values((from..to).map(|i| (i % 1000) as f64 / 8.0));
        let text: StringArray = (from..to)
            .map(|i| (i % 13 != 5).then(|| format!("text of {} and a tail", i * 31 % 97)))
            .collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("i", Arc::new(Int64Array::from_iter_values(from..to))),
            ("k", Arc::new(key)),
            ("x", Arc::new(value)),
            ("s", Arc::new(text)),
        ];
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)),
        )
        .expect("a batch")
    };
    (0..8).map(|part| batch(rows * part / 8, rows * (part + 1) / 8)).collect()
}

/// The TPC-H tables in files of many row groups, on so many devices. Who has it keeps the files.
fn tpch(count: usize) -> (Pair, TempDir) {
    let (pair, folder) = (pair(count), tempfile::tempdir().expect("a folder"));
    let writer = Session::builder().device(DeviceChoice::Cpu).build().expect("the CPU is there");
    for (table, group_rows) in [
        ("lineitem", 2000),
        ("orders", 700),
        ("customer", 100),
        ("part", 150),
        ("partsupp", 500),
        ("supplier", 1000),
        ("nation", 1000),
        ("region", 1000),
    ] {
        let frame = writer.scan_parquet(data(&format!("tpch/{table}.parquet")));
        let frame = frame.and_then(|frame| frame.collect()).expect("the sample is there");
        let path = folder.path().join(format!("{table}.parquet"));
        let options =
            ParquetWriteOptions { row_group_rows: Some(group_rows), ..Default::default() };
        frame.write_parquet_with(&path, options).expect("a file");
        for session in [&pair.cpu, &pair.device] {
            session.register_parquet(table, &path).expect("a table");
        }
    }
    (pair, folder)
}

fn tpch_query(number: usize) -> String {
    let path = data(&format!("queries/q{number}.sql"));
    let sql = std::fs::read_to_string(path).expect("the sample is there");
    sql.trim().trim_end_matches(';').to_string()
}

/// Bytes of rows that devices sent to each other in all.
fn sent(session: &Session) -> u64 {
    session.devices().iter().map(|device| device.counters().bytes_sent).sum()
}

/// Prints the bytes that TPC-H's queries move between two devices.
#[test]
#[ignore = "a measurement"]
fn bytes_that_tpch_moves_between_devices() {
    let (pair, _files) = tpch(2);
    let mut all = 0;
    for number in 1..=22 {
        let before = sent(&pair.device);
        pair.check(&tpch_query(number));
        let moved = sent(&pair.device) - before;
        all += moved;
        println!("Q{number} {moved}");
    }
    println!("all {all}");
}

#[test]
fn tpch_on_two_and_three_devices() {
    let all: Vec<usize> = (1..=22).collect();
    for (count, queries) in [(2, &all[..]), (3, &[3, 9, 13, 18, 20, 21])] {
        let (pair, _files) = tpch(count);
        for number in queries {
            pair.check(&tpch_query(*number));
        }
    }
}

/// Tables of one row group each cannot be cut.
#[test]
fn tpch_of_whole_files_on_two_devices() {
    let pair = pair(2).samples();
    for number in [3, 9, 13, 18, 20, 21] {
        pair.check(&tpch_query(number));
    }
}

#[test]
fn every_operator_on_three_devices() {
    let pair = pair(3).and("t", table(5000)).and("u", table(700));
    for sql in [
        "SELECT k, count(*), sum(x), min(s), avg(x), stddev(x) FROM t GROUP BY k",
        "SELECT sum(x), count(DISTINCT s), max(i) FROM t",
        "SELECT s, count(*) FROM t WHERE i % 3 = 0 GROUP BY s",
        "SELECT DISTINCT k, s FROM t",
        "SELECT t.i, u.i AS j, t.s FROM t JOIN u ON t.k = u.k AND t.s = u.s",
        "SELECT t.k, count(u.i) FROM t LEFT JOIN u ON t.i = u.i * 3 GROUP BY t.k",
        "SELECT count(*) FROM t FULL JOIN u ON t.i = u.i + 600",
        "SELECT i FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.s = t.s AND u.i > t.i)",
        "SELECT i FROM t WHERE i NOT IN (SELECT i * 2 FROM u)",
        "SELECT i, s, row_number() OVER (PARTITION BY k ORDER BY i) AS r FROM t",
        "SELECT i, x, s FROM t ORDER BY x DESC, i LIMIT 20",
        "SELECT i FROM t UNION ALL SELECT sum(i) FROM u",
    ] {
        assert!(on_all(&pair, sql), "{sql} ran on one device");
    }
    // The other devices only read their parts.
    pair.check("SELECT i, s FROM t ORDER BY s NULLS FIRST, i");
    pair.check("SELECT median(x) FROM t");
    pair.check("SELECT count(*) FROM (SELECT i FROM t LIMIT 100)");
    pair.check("SELECT count(*) FROM t CROSS JOIN (SELECT k FROM u LIMIT 3) c");
}

#[test]
fn tables_that_are_kept_are_dealt_out() {
    let pair = pair(2).and("t", table(3000));
    for session in [&pair.cpu, &pair.device] {
        session
            .execute("CREATE TABLE kept AS SELECT i, k, s FROM t WHERE i % 2 = 0")
            .expect("made");
    }
    assert!(on_all(&pair, "SELECT k, count(*), min(s) FROM kept GROUP BY k"));
    assert!(on_all(&pair, "SELECT a.i, b.s FROM kept a JOIN kept b ON a.i = b.i + 2"));
    // A device keeps what it was sent.
    let sql = "SELECT sum(i), count(s) FROM kept";
    pair.check(sql);
    let before = sent(&pair.device);
    pair.check(sql);
    assert!(sent(&pair.device) - before < 200, "only the partial result is sent again");
    for session in [&pair.cpu, &pair.device] {
        session.execute("INSERT INTO kept VALUES (70000, 1, 'one more')").expect("inserted");
    }
    pair.check("SELECT sum(i), count(s) FROM kept");
    for session in [&pair.cpu, &pair.device] {
        session.execute("DROP TABLE kept").expect("dropped");
    }
    let device = &pair.device.devices()[1];
    device.make_room(device.memory().limit).expect("what is cached can go");
    assert_eq!(device.memory().used, 0, "the part goes with the table");
}

#[test]
fn errors_of_one_device_are_told_and_leave_nothing() {
    let pair = pair(2).and("t", table(3000));
    pair.check_error("SELECT sum(100 / (i - 2900)) FROM t");
    assert!(on_all(&pair, "SELECT sum(i) FROM t"));
    let used: Vec<u64> = pair.device.devices().iter().map(|device| device.memory().used).collect();
    pair.check_error("SELECT k, sum(100 / (i - 2900)) FROM t GROUP BY k");
    run(&pair.device, "SELECT sum(i) FROM t").expect("the session goes on");
    for (device, before) in pair.device.devices().iter().zip(used) {
        let now = device.memory();
        assert!(now.used - now.evictable <= before, "{now:?} after {before}");
    }
}

#[test]
fn devices_are_named() {
    let session = Session::builder().device("sim:3".parse().expect("devices")).build();
    assert_eq!(session.expect("devices").devices().len(), 3);
    for wrong in ["sim:0", "sim:99", "cuda:", "cuda:0,", "cuda:x", "sim:1,2"] {
        assert!(wrong.parse::<DeviceChoice>().is_err(), "{wrong}");
    }
    for text in ["cuda:0,0", "cuda:all", "sim:2", "cuda:3"] {
        assert_eq!(text.parse::<DeviceChoice>().expect("devices").to_string(), text);
    }
}
