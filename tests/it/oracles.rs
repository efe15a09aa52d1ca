//! Oracles that do not share the planner: both our engines run plans of one optimizer, so that
//! comparing them does not show what it does wrong.
//!
//! - `sqlite`: SQLite answers the same.
//! - `relations`: what a query must yield follows from what a simpler one does, whose conditions are
//!   columns and are put together here. Rows where p, where NOT p and where p IS NULL are all rows
//!   (Rigger and Su 2020, "Finding bugs in database systems via query partitioning"), and WHERE
//!   finds what a select list counts (the same, "Detecting optimization bugs in database engines via
//!   non-optimizing reference engine construction").
//! - `rules`: each rule over plans leaves a query's rows as they are.
//!
//! Variables of the environment are those of `random.rs`: `WARPFRAME_RANDOM_QUERIES`, `_SEED`,
//! `_THREADS`, `_SHRINK`. `WARPFRAME_RANDOM_SQL` is asked in place of SQLite's and the rules' queries.
//! Queries run on the CPU engine unless `WARPFRAME_DEVICE` names a device.

mod dialects;
mod logic;
mod maker;
mod relations;
mod rules;
mod sqlite;
mod tables;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use warpframe::{DataFrame, DeviceChoice, Error, ErrorKind, Session};

use self::maker::{Maker, Relation, Syntax};
use crate::differential::{number, run};
use crate::random::choices::{Choices, shrink};

/// Queries that share their tables.
const QUERIES_PER_TABLES: u64 = 25;

/// What came of a query.
enum Verdict {
    /// As it should be; so many rows.
    Right(usize),
    /// Nobody knows what it should be: one of the engines has no such query.
    Refused(String),
    /// A report.
    Wrong(String),
}

/// Asks queries of groups of tables. `ask` makes one of the choices and says what came of it, and
/// which choices it drew. A query that fails is shrunk, in as many tries as the environment says.
fn hunt<T>(
    queries: u64,
    tables: impl Fn(u64) -> T + Sync,
    ask: impl Fn(&T, Choices) -> (Verdict, Vec<u64>) + Sync,
) {
    // On a device each query has kernels of its own to be compiled.
    let queries = if device() == DeviceChoice::Cpu { queries } else { queries.min(25) };
    let count = number("WARPFRAME_RANDOM_QUERIES", queries);
    let first = number("WARPFRAME_RANDOM_SEED", 1);
    let threads = number("WARPFRAME_RANDOM_THREADS", 2).max(1);
    let ask = |tables: &T, choices: Choices| {
        let asked = catch_unwind(AssertUnwindSafe(|| ask(tables, choices)));
        asked.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            (Verdict::Wrong(format!("panicked: {text}")), vec![])
        })
    };
    let next = AtomicU64::new(first / QUERIES_PER_TABLES);
    let work = || {
        let (mut rows, mut refused, mut failed) = (0, vec![], vec![]);
        loop {
            let group = next.fetch_add(1, Relaxed);
            let seeds = group * QUERIES_PER_TABLES..(group + 1) * QUERIES_PER_TABLES;
            if seeds.start >= first + count {
                return (rows, refused, failed);
            }
            let tables = tables(group);
            for seed in seeds.start.max(first)..seeds.end.min(first + count) {
                match ask(&tables, Choices::seeded(seed)) {
                    (Verdict::Right(some), _) => rows += some,
                    (Verdict::Refused(why), _) => refused.push(format!("seed {seed}: {why}")),
                    (Verdict::Wrong(report), drawn) => {
                        let fails =
                            |words: &[u64]| match ask(&tables, Choices::again(words.to_vec())) {
                                (Verdict::Wrong(report), drawn) => Some((report, drawn)),
                                _ => None,
                            };
                        let budget = number("WARPFRAME_RANDOM_SHRINK", 0) as usize;
                        let least =
                            shrink(drawn, budget, |words| fails(words).map(|found| found.1));
                        let report = match budget {
                            0 => report,
                            _ => fails(&least).map_or(report, |found| found.0),
                        };
                        eprintln!(
                            "WARPFRAME_RANDOM_SEED={seed} WARPFRAME_RANDOM_QUERIES=1: {report}\n"
                        );
                        failed.push(seed);
                    }
                }
            }
        }
    };
    let (mut rows, mut refused, mut failed) = (0, vec![], vec![]);
    std::thread::scope(|scope| {
        // Plans are deep, and so is the recursion of rules over them.
        let thread = || std::thread::Builder::new().stack_size(64 << 20);
        let spawned = |_| thread().spawn_scoped(scope, work).expect("a thread");
        let workers: Vec<_> = (0..threads).map(spawned).collect();
        for worker in workers {
            let found = worker.join().expect("what queries panic with is caught");
            rows += found.0;
            refused.extend(found.1);
            failed.extend(found.2);
        }
    });
    failed.sort();
    for why in refused.iter().take(number("WARPFRAME_RANDOM_REFUSED", 0) as usize) {
        println!("{why}");
    }
    println!("{count} queries, {rows} rows, {} refused, {} failed", refused.len(), failed.len());
    assert!(failed.is_empty(), "WARPFRAME_RANDOM_SEED of the queries that failed: {failed:?}");
    let refused = refused.len() as u64;
    assert!(
        count < 100 || (2 * rows as u64 > count && refused * 10 < count),
        "the queries say little"
    );
}

fn device() -> DeviceChoice {
    match std::env::var("WARPFRAME_DEVICE").as_deref() {
        Ok("") | Err(_) => DeviceChoice::Cpu,
        Ok(name) => name.parse().expect("WARPFRAME_DEVICE names a device"),
    }
}

/// A session with the tables, and how queries see them.
struct Ours {
    session: Session,
    relations: Vec<Relation>,
    /// Statements that make the tables.
    made_by: String,
}

impl Ours {
    fn of(group: u64) -> Ours {
        let session = Session::builder().device(device()).cpu_partitions(1).build();
        let session = session.expect("the device under test opens");
        let mut tables = tables::tables(group);
        let mut made_by = String::new();
        for table in &mut tables {
            table.register(&session).expect("a new table");
            made_by.push_str(&table.statements());
        }
        let relations = tables.iter().map(tables::Rows::relation).collect();
        Ours { session, relations, made_by }
    }

    /// What the session says.
    fn answer(&self, sql: &str) -> Result<DataFrame, Verdict> {
        run(&self.session, sql).map_err(|error| match is_refusal(&error) {
            true => Verdict::Refused(format!("{error}\n  {sql}")),
            false => Verdict::Wrong(self.report(&error.to_string(), sql)),
        })
    }

    fn report(&self, what: &str, sql: &str) -> String {
        format!("{what}\n{sql};\n{}", self.made_by)
    }
}

/// Whether an error says that there is no such query, rather than that something broke.
fn is_refusal(error: &Error) -> bool {
    const BROKEN: [&str; 7] = [
        "declared as non-nullable",
        "Internal error",
        "bug in DataFusion",
        "OuterReferenceColumn",
        "Schema error",
        "optimizer rule",
        "panicked",
    ];
    let text = error.to_string();
    matches!(error.kind(), ErrorKind::Unsupported { .. } | ErrorKind::Plan { .. })
        && !BROKEN.iter().any(|what| text.contains(what))
}

/// The query of these choices.
fn made(relations: &[Relation], syntax: Syntax, choices: Choices) -> (String, Vec<u64>) {
    let mut maker = Maker::new(choices, syntax, relations);
    let text = std::env::var("WARPFRAME_RANDOM_SQL").unwrap_or_else(|_| maker.query());
    (text, maker.drawn())
}
