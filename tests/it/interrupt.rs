//! Statements that are stopped: what they held is given back, and the session goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use warpframe::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use warpframe::prelude::*;
use warpframe::{Error, ErrorKind, Result};

use crate::differential::{Cell, Pair, builder, run, scalar};
use crate::tables::columns;

/// Longer than a statement takes to stop, shorter than those here would take by themselves.
const SOON: Duration = Duration::from_secs(60);

fn numbers(rows: i64) -> Vec<RecordBatch> {
    columns(vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef),
        ("k", Arc::new(Int64Array::from_iter_values((0..rows).map(|i| i % 7))) as ArrayRef),
    ])
}

/// Pairs of rows by the billion: without end, on the device and on the CPU.
const ENDLESS: &str = "SELECT count(*) FROM t a JOIN t b ON a.k + b.k < 100 JOIN t c ON b.k + c.k <> a.id + 1 JOIN t d ON c.k + d.k <> a.id + 2";

fn is_interrupted(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted { timeout: None })
}

/// The session answers, and its device holds what it held before.
fn goes_on(session: &Session, used: u64) {
    assert_eq!(scalar(session, "SELECT sum(k) FROM t WHERE id < 7"), Cell::Int(21));
    if let Some(device) = session.device() {
        assert_eq!(device.memory().used, used, "memory is left behind");
    }
}

#[test]
fn a_statement_is_stopped_from_another_thread_and_the_session_goes_on() {
    let pair = Pair::of(numbers(1000));
    for session in [&pair.device, &pair.cpu] {
        // So that the columns are there, and stay.
        assert_eq!(scalar(session, "SELECT sum(k) + max(id) FROM t WHERE id < 7"), Cell::Int(27));
        let used = session.device().map_or(0, |device| device.memory().used);
        let start = Instant::now();
        let error = std::thread::scope(|scope| {
            let running = scope.spawn(|| run(session, ENDLESS));
            while !running.is_finished() {
                std::thread::sleep(Duration::from_millis(100));
                session.interrupt();
            }
            running.join().expect("no panic").expect_err("it was stopped")
        });
        assert!(is_interrupted(&error), "{error:?}");
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        goes_on(session, used);
    }
}

#[test]
fn statements_end_when_their_time_is_over() -> Result<()> {
    let pair = Pair::of(numbers(1000));
    for session in [&pair.device, &pair.cpu] {
        assert_eq!(scalar(session, "SELECT sum(k) + max(id) FROM t WHERE id < 7"), Cell::Int(27));
        let used = session.device().map_or(0, |device| device.memory().used);
        let limit = Duration::from_millis(300);
        session.set_statement_timeout(Some(limit));
        assert_eq!(session.statement_timeout(), Some(limit));
        let start = Instant::now();
        let error = run(session, ENDLESS).expect_err("too long");
        assert!(
            matches!(error.kind(), ErrorKind::Interrupted { timeout: Some(of) } if *of == limit),
            "{error:?}"
        );
        assert!(start.elapsed() >= limit && start.elapsed() < SOON, "{:?}", start.elapsed());
        session.set_statement_timeout(None);
        goes_on(session, used);
    }
    let limited = builder()
        .device(DeviceChoice::Cpu)
        .strict(false)
        .statement_timeout(Duration::from_nanos(1))
        .build()?;
    let error =
        limited.sql("SELECT 1").and_then(|frame| frame.collect()).expect_err("no time at all");
    assert!(matches!(error.kind(), ErrorKind::Interrupted { timeout: Some(_) }), "{error:?}");
    Ok(())
}

/// Wherever a statement is when it is told: at its first allocation, its second, …
#[test]
fn a_statement_may_be_stopped_at_any_moment() {
    let pair = Pair::of(numbers(4000));
    let session = &pair.device;
    let query =
        "SELECT k, count(*) AS n, sum(id) AS s FROM t WHERE id % 3 <> 1 GROUP BY k ORDER BY s";
    let expected = scalar(session, &format!("SELECT sum(s) FROM ({query})"));
    let used = session.device().expect("a device").memory().used;
    let mut stopped = 0;
    for round in 0..40u64 {
        let outcome = std::thread::scope(|scope| {
            let running = scope.spawn(|| run(session, query));
            std::thread::sleep(Duration::from_micros(200 * round));
            session.interrupt();
            running.join().expect("no panic")
        });
        match outcome {
            Ok(frame) => drop(frame),
            Err(error) => {
                assert!(is_interrupted(&error), "{error:?}");
                stopped += 1;
            }
        }
        assert_eq!(session.device().expect("a device").memory().used, used, "after {round}");
    }
    eprintln!("{stopped} of 40 were stopped");
    assert_eq!(scalar(session, &format!("SELECT sum(s) FROM ({query})")), expected);
}

/// A kernel that takes a compiler long is not waited for, and does not stay in the way of others.
#[test]
fn compilers_are_not_waited_for() {
    let pair = Pair::of(numbers(100));
    let session = &pair.device;
    assert_eq!(scalar(session, "SELECT sum(k) + max(id) FROM t WHERE id < 7"), Cell::Int(27));
    let used = session.device().expect("a device").memory().used;
    // Different in each run of the test: it must not be found on disk.
    let salt = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970")
        .subsec_micros();
    let shape: String =
        (0..10).map(|bit| if salt >> bit & 1 == 0 { " + k" } else { " - k" }).collect();
    let arms: String = (0..900).map(|i| format!(" WHEN id{shape} = {i} THEN k * {i}")).collect();
    session.set_statement_timeout(Some(Duration::from_millis(700)));
    let compiled = session.device().expect("a device").counters().compilations;
    let start = Instant::now();
    let error = run(session, &format!("SELECT sum(CASE{arms} END) FROM t"));
    let taken = start.elapsed();
    session.set_statement_timeout(None);
    match error {
        // On a fast machine; the session keeps what an aggregate of all rows is launched again
        // with.
        Ok(_) => assert!(session.device().expect("a device").counters().compilations > compiled),
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::Interrupted { .. }), "{error:?}");
            goes_on(session, used);
        }
    }
    assert!(taken < SOON, "{taken:?}");
}
