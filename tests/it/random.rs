//! Random queries: typed, so that they mean something; seeded, so that they come again.
//!
//! `WARPFRAME_RANDOM_QUERIES` says how many run (25), `WARPFRAME_RANDOM_SEED` the first one's seed
//! (1), and `WARPFRAME_RANDOM_THREADS` on how many threads (1), each with sessions of its own on
//! the one device. A report names the seeds that failed: that seed and one query show the failure
//! again, and `WARPFRAME_RANDOM_SHRINK` makes it smaller, in so many tries. `WARPFRAME_RANDOM_SQL`
//! is asked of the seed's tables instead. No query may leave memory behind.
//!
//! Left out is what two correct engines answer differently: functions whose last bit is free, sums
//! that cancel.

pub mod choices;
mod maker;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use datafusion::arrow::array::RecordBatch;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use self::choices::{Choices, shrink};
use self::maker::Maker;

use crate::differential::{Agreement, Pair, run};
use crate::tables::{Batches, Shape, Values};

/// Queries that share their tables.
const QUERIES_PER_TABLES: u64 = 5;

#[test]
fn random_queries_agree() {
    let (count, first) =
        (number("WARPFRAME_RANDOM_QUERIES", 25), number("WARPFRAME_RANDOM_SEED", 1));
    let threads = number("WARPFRAME_RANDOM_THREADS", 1).max(1);
    let next = AtomicU64::new(first / QUERIES_PER_TABLES);
    let work = || {
        let mut tally = Tally::default();
        loop {
            let group = next.fetch_add(1, Relaxed);
            let seeds = group * QUERIES_PER_TABLES..(group + 1) * QUERIES_PER_TABLES;
            if seeds.start >= first + count {
                return tally;
            }
            tally.queries(group, seeds.start.max(first)..seeds.end.min(first + count));
        }
    };
    let mut all = Tally::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .for_each(|worker| all.add(worker.join().expect("queries' panics are caught")));
    });
    all.failed.sort();
    let Tally { rows, errors, unsupported, undecided, failed } = all;
    println!(
        "{count} queries, {rows} rows; {errors} failed on both, {undecided} on the CPU alone, {unsupported} are not supported"
    );
    assert!(failed.is_empty(), "WARPFRAME_RANDOM_SEED of the queries that failed: {failed:?}");
    let meaningful = rows > 100 && errors * 4 < count && (unsupported + undecided) * 5 < count;
    assert!(
        count < 20 || meaningful,
        "the queries say little: {rows} rows, {errors} errors, {unsupported} unsupported"
    );
}

/// What became of queries.
#[derive(Default)]
struct Tally {
    rows: usize,
    /// Failed on both.
    errors: u64,
    unsupported: u64,
    /// Failed on the CPU, by an error of DataFusion's.
    undecided: u64,
    /// Seeds of those that disagreed, or left memory behind.
    failed: Vec<u64>,
}

impl Tally {
    /// Runs queries over one pair of tables, in sessions of their own. When a query has ended and
    /// its rows are gone, the device holds as much as before.
    fn queries(&mut self, group: u64, seeds: Range<u64>) {
        let pair = pair(group);
        for table in ["t", "u"] {
            run(&pair.device, &format!("SELECT * FROM {table}"))
                .expect("a table comes to the device");
        }
        let used = || (pair.gpu().memory().used, pair.gpu().memory().allocations);
        let at_first = used();
        for seed in seeds {
            let (sql, choices) = made(Choices::seeded(seed));
            let sql = std::env::var("WARPFRAME_RANDOM_SQL").unwrap_or(sql);
            let sql = format!("{sql} /* seed {seed} */");
            match catch_unwind(AssertUnwindSafe(|| pair.agreement(&sql))) {
                Ok(Agreement::Rows(n)) => self.rows += n,
                Ok(Agreement::Errors) => self.errors += 1,
                Ok(Agreement::Unsupported) => self.unsupported += 1,
                Ok(Agreement::Undecided) => self.undecided += 1,
                Err(_) => {
                    self.failed.push(seed);
                    eprintln!("shrunk: {}", shrunk(&pair, choices));
                }
            }
            // The parts of tables that several devices keep come with the queries that want them.
            if used() != at_first && pair.device.devices().len() == 1 {
                eprintln!(
                    "bytes and allocations {:?} before, {:?} after\n  {sql}\n  {}",
                    at_first,
                    used(),
                    pair.origin
                );
                self.failed.push(seed);
                return;
            }
        }
    }

    fn add(&mut self, other: Tally) {
        self.rows += other.rows;
        self.errors += other.errors;
        self.unsupported += other.unsupported;
        self.undecided += other.undecided;
        self.failed.extend(other.failed);
    }
}

/// A query, and the words it was made of.
fn made(choices: Choices) -> (String, Vec<u64>) {
    let mut maker = Maker::new(choices);
    let sql = maker.query();
    (sql, maker.choices().drawn())
}

/// A smaller query that fails, too.
fn shrunk(pair: &Pair, choices: Vec<u64>) -> String {
    let fails = |words: &[u64]| {
        let (sql, drawn) = made(Choices::again(words.to_vec()));
        catch_unwind(AssertUnwindSafe(|| pair.agreement(&sql))).is_err().then_some(drawn)
    };
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let least = shrink(choices, number("WARPFRAME_RANDOM_SHRINK", 0) as usize, fails);
    std::panic::set_hook(hook);
    made(Choices::again(least)).0
}

/// How many queries run, and the seed of the first.
pub fn queries_and_seed(default: u64) -> (u64, u64) {
    (number("WARPFRAME_RANDOM_QUERIES", default), number("WARPFRAME_RANDOM_SEED", 1))
}

/// The query of a seed.
pub fn query_of(seed: u64) -> String {
    std::env::var("WARPFRAME_RANDOM_SQL").unwrap_or_else(|_| made(Choices::seeded(seed)).0)
}

/// The batches of the tables `t` and `u` of a seed's query.
pub fn tables_of(seed: u64) -> [Vec<RecordBatch>; 2] {
    let [t, u] = shapes(seed / QUERIES_PER_TABLES);
    [t.batches(), u.batches()]
}

/// A number of the environment.
pub fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")),
        Err(_) => default,
    }
}

/// The tables `t` and `u` of a group of queries.
fn pair(group: u64) -> Pair {
    let [t, u] = shapes(group);
    Pair::of(t.batches()).and("u", u.batches()).from(format!("t: {t:?}\n  u: {u:?}"))
}

fn shapes(group: u64) -> [Shape; 2] {
    let mut rng = StdRng::seed_from_u64(group ^ 0x7AB1E5);
    let mut shape = |sizes: &[usize]| Shape {
        rows: *sizes.choose(&mut rng).expect("sizes"),
        values: *[
            Values::Random,
            Values::Random,
            Values::Random,
            Values::Same,
            Values::Distinct,
            Values::Ascending,
            Values::AllNull,
        ]
        .choose(&mut rng)
        .expect("values"),
        batches: *[Batches::One, Batches::Sliced, Batches::Several]
            .choose(&mut rng)
            .expect("batches"),
        nulls: *[0.0, 0.1, 0.6].choose(&mut rng).expect("shares"),
        seed: rng.random(),
    };
    [shape(&[1, 33, 700, 2049, 3000]), shape(&[0, 1, 32, 150, 400])]
}
