//! Threads that change tables at the same time lose nothing of one another.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use warpframe::{ErrorKind, Executed, Session};

use crate::differential::{Cell, Pair, run, scalar};

fn both(check: impl Fn(&Session)) {
    let pair = Pair::new();
    for session in [&pair.device, &pair.cpu] {
        check(session);
    }
}

const MADE: &str = "CREATE OR REPLACE TABLE t AS SELECT i, 0 AS n FROM range(0, 100) t(i)";

/// A statement in a loop until another is done.
fn beside<T: Send>(session: &Session, statement: &str, work: impl FnOnce() -> T + Send) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looping = scope.spawn(|| {
            while !done.load(Relaxed) {
                session.execute(statement).unwrap_or_else(|e| panic!("{e}\n  {statement}"));
            }
        });
        let made = work();
        done.store(true, Relaxed);
        looping.join().expect("no panic");
        made
    })
}

#[test]
fn a_table_that_is_dropped_renamed_or_replaced_beside_an_update_stays_so() {
    both(|session| {
        session.execute(MADE).expect("a table");
        session.execute("CREATE TABLE one AS SELECT 1 AS x").expect("a table");
        let one = run(session, "FROM one").expect("rows");
        beside(session, "UPDATE t SET n = n + 1 WHERE i < 50", || {
            for round in 0..6 {
                let name = format!("u{round}");
                session.execute(&format!("CREATE TABLE {name} AS FROM t")).expect("a table");
                session.execute(&format!("DROP TABLE {name}")).expect("it is there");
                session.register_table("t2", &one).expect("a table");
                session.execute("ALTER TABLE t2 RENAME TO t3").expect("it is there");
                session.deregister("t3").expect("it is there");
            }
        });
        assert_eq!(session.table_names(), ["one", "t"]);
        // The table of the UPDATE itself: what comes last stays.
        for round in 0..4 {
            session.execute(MADE).expect("a table");
            std::thread::scope(|scope| {
                let update = scope.spawn(|| session.execute("UPDATE t SET n = 1"));
                match round % 2 {
                    0 => session.execute("DROP TABLE t").map(|_| ()).expect("it is there"),
                    _ => session.register_table("t", &one).expect("a table"),
                }
                // It may have come too late, or meet another table.
                let _ = update.join().expect("no panic");
            });
            match round % 2 {
                0 => assert!(!session.table_names().contains(&"t".to_string())),
                _ => assert_eq!(scalar(session, "SELECT sum(x) FROM t"), Cell::Int(1)),
            }
        }
    });
}

#[test]
fn rows_and_changes_of_several_threads_are_all_there() {
    both(|session| {
        session.execute(MADE).expect("a table");
        std::thread::scope(|scope| {
            for number in 0..3 {
                scope.spawn(move || {
                    for _ in 0..4 {
                        let changed = session.execute("UPDATE t SET n = n + 1 WHERE i < 100");
                        assert!(matches!(changed, Ok(Executed::Changed(100))), "{changed:?}");
                        session
                            .execute(&format!("INSERT INTO t VALUES ({}, 0)", 1000 + number))
                            .expect("a row");
                    }
                });
            }
        });
        assert_eq!(scalar(session, "SELECT sum(n) FROM t"), Cell::Int(1200));
        assert_eq!(scalar(session, "SELECT count(*) FROM t"), Cell::Int(112));
    });
}

/// A view that is planned anew by its readers does not come back where a table took its place.
#[test]
fn a_view_that_is_replaced_while_it_is_planned_is_gone() {
    both(|session| {
        session.execute("CREATE TABLE base AS SELECT 1 AS x").expect("a table");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Relaxed) {
                        // Between DROP and CREATE there is none.
                        let _ = session.sql("SELECT sum(x) FROM v");
                    }
                });
            }
            for round in 0..30 {
                session.execute("CREATE VIEW v AS FROM base").expect("a view");
                session.execute("DROP VIEW v").expect("it is there");
                let made = session.execute("CREATE TABLE v AS SELECT 5 AS x");
                assert!(made.is_ok(), "{made:?} in round {round}");
                session.execute("INSERT INTO v VALUES (6)").expect("a table");
                session.execute("DROP TABLE v").expect("it is a table still");
            }
            done.store(true, Relaxed);
        });
        assert_eq!(session.table_names(), ["base"]);
    });
}

#[test]
fn writers_that_wait_obey_the_timeout_and_interrupts() {
    let pair = Pair::new();
    let session = &pair.cpu;
    for made in [
        "CREATE TABLE t AS SELECT i, 0 AS n FROM range(0, 3000) t(i)",
        "CREATE TABLE u AS SELECT 1 AS x",
    ] {
        session.execute(made).expect("a table");
    }
    let endless = "UPDATE t SET n = (SELECT count(*) FROM t a, t b, t c \
                   WHERE a.i + b.i <> c.i + 1 AND a.i * b.i <> c.i)";
    std::thread::scope(|scope| {
        let running = scope.spawn(|| session.execute(endless));
        std::thread::sleep(Duration::from_millis(300));
        session.set_statement_timeout(Some(Duration::from_millis(200)));
        let start = Instant::now();
        let error = session.execute("DELETE FROM u").expect_err("the table's writer has not ended");
        assert!(matches!(error.kind(), ErrorKind::Interrupted { timeout: Some(_) }), "{error:?}");
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        session.set_statement_timeout(None);
        let waiting = scope.spawn(|| session.execute("DROP TABLE u"));
        while !(running.is_finished() && waiting.is_finished()) {
            std::thread::sleep(Duration::from_millis(50));
            session.interrupt();
        }
        assert!(running.join().expect("no panic").is_err());
        // It was stopped, or came when the other was.
        let _ = waiting.join().expect("no panic");
    });
    session.execute("UPDATE t SET n = 2 WHERE i = 1").expect("nobody writes any more");
}
