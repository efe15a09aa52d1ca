//! How far a plan in parts is, as another thread sees it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use warpframe::device::MemoryLimit;
use warpframe::{DeviceChoice, PartsProgress, Session};

use crate::differential::{builder, run};
use crate::tables::Shape;

fn session(limit: u64) -> Session {
    let session = builder()
        .strict(true)
        .memory_limit(MemoryLimit::Bytes(limit))
        .build()
        .expect("the device opens");
    session.register_batches("t", Shape::random(60_000, 7).batches()).expect("batches");
    session.register_batches("u", Shape::random(40_000, 8).batches()).expect("batches");
    session
}

/// What is seen of a query while it runs, each change once.
fn watched(session: &Session, sql: &str) -> Vec<PartsProgress> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen: Vec<PartsProgress> = vec![];
            while !done.load(Relaxed) {
                let now = session.progress();
                seen.extend(now.filter(|now| seen.last() != Some(now)));
                std::thread::sleep(Duration::from_micros(200));
            }
            seen
        });
        let ran = run(session, sql).map(|_| ());
        done.store(true, Relaxed);
        let seen = watch.join().expect("no panic");
        ran.expect("it runs");
        seen
    })
}

#[test]
fn progress_only_grows_and_ends_at_the_whole() {
    for (sql, first_rows) in [
        ("SELECT id, k, s FROM t ORDER BY s, id", 60_000),
        ("SELECT k, count(*), sum(x), avg(m), sum(m38), min(s) FROM t GROUP BY k", 60_000),
        ("SELECT t.id, u.id AS other, u.s FROM t FULL JOIN u ON t.id = u.id", 60_000),
    ] {
        let session = session(1 << 20);
        assert_eq!(session.progress(), None);
        let seen = watched(&session, sql);
        assert!(seen.len() > 3, "{seen:?}");
        for pair in seen.windows(2) {
            let place = |of: &PartsProgress| (of.step, of.rows_done, of.parts_done);
            assert!(place(&pair[0]) < place(&pair[1]), "{pair:?}");
            let same = |of: &PartsProgress| (of.step, of.parts, of.rows);
            assert!(pair[0].step < pair[1].step || same(&pair[0]) == same(&pair[1]), "{pair:?}");
        }
        for of in &seen {
            assert!(
                of.parts_done <= of.parts && of.rows.is_some_and(|rows| of.rows_done <= rows),
                "{of:?}"
            );
        }
        assert_eq!(
            seen[0].rows.map(|rows| rows == first_rows || rows == 40_000),
            Some(true),
            "{:?}",
            seen[0]
        );
        let last = session.progress().expect("it ran in parts");
        assert_eq!((last.parts_done, Some(last.rows_done)), (last.parts, last.rows));
        // The next one begins anew.
        let again = watched(&session, sql);
        assert!(again.iter().any(|of| of.step == 1), "{again:?}");
    }
}

#[test]
fn what_runs_whole_or_on_the_cpu_has_no_parts() {
    let session = session(1 << 30);
    run(&session, "SELECT k, count(*) FROM t GROUP BY k").expect("it runs");
    assert_eq!(session.progress(), None);
    let cpu = Session::builder().device(DeviceChoice::Cpu).build().expect("the CPU is there");
    run(&cpu, "SELECT 1").expect("it runs");
    assert_eq!(cpu.progress(), None);
}
