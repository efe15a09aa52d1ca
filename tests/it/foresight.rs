//! What EXPLAIN says of plans that do not fit into device memory, before they run.

use std::collections::BTreeSet;

use warpframe::Session;
use warpframe::device::MemoryLimit;

use crate::differential::{Pair, builder, data, run};
use crate::tables::Shape;

/// A session with tables `t` and `u` on a device of so many bytes.
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

fn explained(session: &Session, sql: &str) -> String {
    session.sql(sql).and_then(|frame| frame.explain()).expect("it is planned")
}

/// Lines on what would be divided, each with the line of its operator before it.
fn divisions(explained: &str) -> Vec<(&str, &str)> {
    let lines: Vec<&str> =
        explained.lines().map(|line| line.trim_start_matches("device").trim_start()).collect();
    let pairs = lines.windows(2).map(|pair| (pair[0], pair[1]));
    pairs
        .filter_map(|(line, next)| Some((line, next.strip_prefix("would be divided: ")?)))
        .collect()
}

#[test]
fn plans_that_would_be_divided_say_so_and_how_and_why() {
    let (small, roomy) = (session(1 << 20), session(1 << 30));
    let cases = [
        (
            "SELECT count(*), sum(x), avg(m), sum(m38), min(s) FROM t",
            "Aggregate",
            "partial results of chunks are merged",
        ),
        ("SELECT DISTINCT id, s FROM t", "", "partial results are parted into 32 parts"),
        (
            "SELECT k2, median(x), min(s), max(m38) FROM t GROUP BY k2",
            "Aggregate",
            "rows are parted by a hash of their keys, into some",
        ),
        (
            "SELECT count(DISTINCT id), count(DISTINCT x), count(DISTINCT s) FROM t",
            "Aggregate",
            "by distinct values first",
        ),
        (
            "SELECT id, k, x FROM t ORDER BY x, id LIMIT 20",
            "Sort",
            "the first rows of each chunk, then of these",
        ),
        (
            "SELECT id, k, s FROM t ORDER BY s, id",
            "Sort",
            "rows are parted by ranges of the key, some",
        ),
        (
            "SELECT t.x, u.m FROM t JOIN u ON t.id = u.id",
            "Inner Join",
            "both sides are parted by a hash of their keys",
        ),
        (
            "SELECT t.s, few.n FROM t JOIN (SELECT k, id AS n FROM u ORDER BY id LIMIT 10) few ON t.k = few.k",
            "Inner Join",
            "stands beside each part of the other",
        ),
        (
            "SELECT sum(k) OVER (PARTITION BY k2 ORDER BY id) AS x, s FROM t",
            "Window",
            "rows are parted by a hash of their keys, into some",
        ),
        (
            "SELECT id, s, sum(k) OVER (ORDER BY id) AS x, lag(s) OVER (ORDER BY id) AS y FROM t",
            "Window",
            "rows are sorted, and go by in that order",
        ),
        (
            "SELECT median(x), max(s), max(m38) FROM t",
            "Aggregate",
            "rows are numbered in the order of their values",
        ),
    ];
    for (sql, operator, how) in cases {
        let text = explained(&small, sql);
        let first = text.lines().next().expect("a line");
        assert!(first.starts_with("device  would be divided: it needs about "), "{text}");
        assert!(first.ends_with(", and the limit is 1048 KB"), "{text}");
        let divided = divisions(&text);
        assert!(
            divided.iter().any(|(line, found)| line.starts_with(operator) && found.contains(how)),
            "{text}"
        );
        let scans = divided.iter().filter(|(line, _)| line.starts_with("TableScan: t"));
        assert!(
            scans.clone().count() > 0
                && scans.clone().all(|(_, how)| how.starts_with("chunk by chunk, some "))
        );
        assert!(!explained(&roomy, sql).contains("divided"), "{sql}");
    }
}

#[test]
fn what_is_foreseen_is_what_happens() {
    for (limit, divided) in [(1 << 20, true), (1 << 30, false)] {
        let session = session(limit);
        let device = session.device().expect("a device");
        for sql in [
            "SELECT k, count(*), sum(x), avg(m), sum(m38), min(s) FROM t GROUP BY k",
            "SELECT id, k, s FROM t ORDER BY s, id",
            "SELECT t.id, u.id AS other FROM t JOIN u ON t.id = u.id",
        ] {
            let before = device.counters().parts_run;
            assert_eq!(explained(&session, sql).contains("would be divided"), divided, "{sql}");
            run(&session, sql).expect("it runs");
            assert_eq!(device.counters().parts_run > before, divided, "{sql}");
        }
    }
    let whole = builder()
        .memory_limit(MemoryLimit::Bytes(1 << 20))
        .divide(false)
        .build()
        .expect("the device opens");
    whole.register_batches("t", Shape::random(60_000, 7).batches()).expect("batches");
    assert!(!explained(&whole, "SELECT id, k, s FROM t ORDER BY s, id").contains("divided"));
}

/// What EXPLAIN says of each operator of a plan that is divided, and what the divider carries out:
/// numbers of bytes and parts aside, which follow from what is free by then. `None` where the plan
/// runs whole.
pub(crate) fn foreseen_and_done(session: &Session, sql: &str) -> Option<[BTreeSet<String>; 2]> {
    let device = session.device().expect("a device");
    let plain = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "");
    let before = device.counters().parts_run;
    // Once it has run, its size is known.
    run(session, sql).ok()?;
    if device.counters().parts_run == before {
        return None;
    }
    let text = explained(session, sql);
    let foreseen = divisions(&text).into_iter().map(|(_, how)| plain(how)).collect();
    device.start_profile();
    run(session, sql).expect("it ran before");
    device.take_profile().expect("times");
    let notes = device.take_operator_notes();
    let done = notes.iter().filter_map(|note| note.note.strip_prefix("divided: ")).map(plain);
    let (foreseen, mut done): (BTreeSet<String>, BTreeSet<String>) = (foreseen, done.collect());
    // Of aggregations over distinct values EXPLAIN says no more than that, but the divider carries
    // out the two aggregations that they are.
    if foreseen.iter().any(|how| how.starts_with("by distinct values first")) {
        done.retain(|how| foreseen.contains(how));
    }
    Some([foreseen, done])
}

#[test]
fn plans_are_divided_as_explain_says() {
    // A sixth of the queries under each limit, unless all are asked for.
    let all = std::env::var_os("WARPFRAME_ALL_LIMITS").is_some();
    let mut divided = 0;
    for (place, limit) in [96 << 10, 256 << 10, 1 << 20].into_iter().enumerate() {
        for number in (1..=22).filter(|number| all || number % 6 == place) {
            let sql =
                std::fs::read_to_string(data(&format!("queries/q{number}.sql"))).expect("SQL");
            let limit = MemoryLimit::Bytes(limit);
            let pair = Pair::with(builder().strict(true).memory_limit(limit)).samples();
            let found = foreseen_and_done(&pair.device, sql.trim().trim_end_matches(';'));
            let Some([foreseen, done]) = found else { continue };
            assert_eq!(foreseen, done, "Q{number} with {limit:?}");
            divided += 1;
        }
    }
    println!("{divided} were divided");
    assert!(divided >= if all { 40 } else { 5 }, "{divided}");
}

#[test]
fn a_plan_of_unknown_size_is_known_once_it_ran() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.csv");
    let rows: String =
        (0..60_000).map(|row| format!("{row},{},text number {}\n", row % 7, row * 31)).collect();
    std::fs::write(&path, format!("id,k,s\n{rows}")).expect("a file");
    let session = builder()
        .strict(true)
        .memory_limit(MemoryLimit::Bytes(2 << 20))
        .build()
        .expect("the device opens");
    session.register_csv("t", &path).expect("a table");
    let sql = "SELECT k, count(*), min(id), max(s) FROM t GROUP BY k";
    assert!(!explained(&session, sql).contains("divided"), "nobody knows");
    run(&session, sql).expect("it runs");
    let text = explained(&session, sql);
    assert!(
        text.starts_with("device  would be divided: whole it found no memory when it ran last; the limit is 2097 KB"),
        "{text}"
    );
}
