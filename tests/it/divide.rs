//! Plans that do not fit into device memory, run in parts: their rows are those of the CPU.

use warpframe::device::MemoryLimit;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::{ArrayRef, Int64Array};

use crate::differential::{Pair, builder, data, run};
use crate::random::{queries_and_seed, query_of, tables_of};
use crate::tables::{Shape, columns};

/// A device of so many bytes, and the queries that it is asked.
fn small(bytes: u64) -> Pair {
    Pair::with(builder().strict(true).memory_limit(MemoryLimit::Bytes(bytes)))
}

/// Both say the same, and the device did it in parts, within its limit.
fn check(pair: &Pair, sql: &str) {
    let before = pair.gpu().counters();
    let expected = run(&pair.cpu, sql).unwrap_or_else(|error| panic!("the CPU: {error}\n  {sql}"));
    let found = run(&pair.device, sql).unwrap_or_else(|error| panic!("the device: {error}\n  {sql}"));
    pair.compare(&expected, &found, sql);
    let after = pair.gpu().counters();
    assert!(after.parts_run > before.parts_run, "it ran whole\n  {sql}");
    assert!(after.launches > before.launches, "no kernel ran\n  {sql}");
    assert_eq!(after.fallbacks, before.fallbacks);
    let memory = pair.gpu().memory();
    assert!(memory.peak <= memory.limit);
}

/// Which of many queries run: some of them, or all where `WARPFRAME_DIVIDE_ALL` is 1.
fn some<T>(queries: impl IntoIterator<Item = T>, every: usize) -> impl Iterator<Item = T> {
    let all = std::env::var_os("WARPFRAME_DIVIDE_ALL").is_some_and(|value| value == "1");
    queries.into_iter().step_by(if all { 1 } else { every })
}

#[test]
fn operators_in_parts() {
    let queries = [
        "SELECT id, x * 2 AS y, s FROM t WHERE k < 3",
        "SELECT count(*), sum(k), min(x), max(s), avg(x), sum(m38) FROM t",
        "SELECT k, count(*), sum(x), avg(m), sum(m38), min(s), avg(k2) FROM t GROUP BY k",
        "SELECT id, count(*), sum(k) FROM t GROUP BY id",
        "SELECT DISTINCT id, s FROM t",
        "SELECT id % 9000 AS g, median(x), count(DISTINCT s), array_agg(id ORDER BY id) FROM t GROUP BY id % 9000",
        "SELECT count(DISTINCT id), sum(DISTINCT id), avg(DISTINCT id) FROM t",
        "SELECT id, k, x FROM t ORDER BY x DESC NULLS LAST, id LIMIT 20",
        "SELECT id, k, s FROM t ORDER BY s, id",
        "SELECT t.id, u.id AS other, u.s FROM t JOIN u ON t.id = u.id",
        "SELECT t.id, u.id AS other, u.s FROM t LEFT JOIN u ON t.id = u.id AND u.k < 5",
        "SELECT t.id, u.id AS other, t.s FROM t FULL JOIN u ON t.id = u.id",
        "SELECT id, s FROM t WHERE id IN (SELECT id FROM u WHERE k > 2)",
        "SELECT id, s FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.k > 2)",
        "SELECT id, row_number() OVER (PARTITION BY k2 ORDER BY id) AS n, sum(k) OVER (PARTITION BY k2) AS x FROM t",
        "SELECT id + 1 AS n FROM t UNION ALL SELECT id FROM u",
        "SELECT k, sum(n) FROM (SELECT k, id, count(*) AS n FROM t GROUP BY k, id) GROUP BY k",
    ];
    for sql in some(queries, 2) {
        let pair = small(1 << 20).and("t", Shape::random(60_000, 7).batches());
        let pair = pair.and("u", Shape::random(40_000, 8).batches());
        check(&pair, sql);
    }
}

#[test]
fn tpch_queries_in_parts() {
    let mut divided = 0;
    for number in some([21, 18, 1, 3, 9, 10, 5, 2, 7, 4, 8, 6, 19, 11, 20, 12, 13, 14, 15, 16, 17, 22], 4) {
        let sql = std::fs::read_to_string(data(&format!("queries/q{number}.sql"))).expect("the sample is there");
        let sql = sql.trim().trim_end_matches(';');
        let pair = small(3 << 20).samples();
        let expected = run(&pair.cpu, sql).expect("the CPU answers");
        let found = run(&pair.device, sql).unwrap_or_else(|error| panic!("Q{number}: {error}"));
        pair.compare(&expected, &found, sql);
        divided += u32::from(pair.gpu().counters().parts_run > 0);
    }
    assert!(divided >= 3, "{divided} queries were divided");
}

/// Random queries (`random.rs`) on devices of very little memory: none answers wrong. Where even the
/// smallest parts find no memory an error says so. The environment variables are those of `random.rs`.
#[test]
fn random_queries_with_little_memory_are_right_or_say_so() {
    let (count, first) = queries_and_seed(8);
    let (mut rows, mut divided, mut out_of_memory, mut others, mut failed) = (0, 0, 0, 0, vec![]);
    for seed in first..first + count {
        let (sql, [t, u]) = (query_of(seed), tables_of(seed));
        // Of the least that operators take at all up to what most queries run in whole.
        let limit = (12 << 10) << (seed * 7 % 5);
        let pair = small(limit).and("t", t).and("u", u).from(format!("seed {seed}, {limit} bytes"));
        let ran = catch_unwind(AssertUnwindSafe(|| match (run(&pair.cpu, &sql), run(&pair.device, &sql)) {
            (Ok(expected), Ok(found)) => {
                pair.compare(&expected, &found, &sql);
                Some(expected.num_rows())
            }
            (_, Err(error)) if matches!(error.kind(), ErrorKind::OutOfDeviceMemory { .. }) => {
                out_of_memory += 1;
                None
            }
            (Ok(_), Err(error)) if !matches!(error.kind(), ErrorKind::Unsupported { .. }) => {
                panic!("only the device failed: {error}\n  {sql}\n  {}", pair.origin)
            }
            _ => {
                others += 1;
                None
            }
        }));
        match ran {
            Ok(found) => rows += found.unwrap_or(0),
            Err(_) => failed.push(seed),
        }
        let counters = pair.gpu().counters();
        divided += u64::from(counters.parts_run > 0);
        let memory = pair.gpu().memory();
        assert!(memory.peak <= memory.limit);
    }
    println!("{count} queries, {rows} rows, {divided} divided, {out_of_memory} out of memory, {others} not compared");
    assert!(failed.is_empty(), "WARPFRAME_RANDOM_SEED of the queries that failed: {failed:?}");
    assert!(count < 40 || divided * 4 > count && out_of_memory * 2 < count, "the limits say little");
}

/// A join's table has a slot for each key that there may be, where that is no more than the device has.
#[test]
fn a_side_of_few_keys_in_a_wide_range_has_a_table_that_fits() {
    let keys = Int64Array::from_iter_values((0..1000).map(|row| row * 1009));
    let pair = small(1 << 20).and("t", Shape::random(60_000, 7).batches());
    let pair = pair.and("w", columns(vec![("key", Arc::new(keys) as ArrayRef)]));
    check(&pair, "SELECT sum(x), min(s), count(*), sum(m38) FROM t WHERE id IN (SELECT key FROM w)");
}

/// Rows that do not fit into host memory lie in files, of which nothing stays.
#[test]
fn rows_beyond_the_hosts_limit_lie_in_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let sql = "SELECT t.id, u.id AS other, t.s, u.sv FROM t FULL JOIN u ON t.id = u.id";
    let pair = |files: u64| {
        let device = builder().strict(true).memory_limit(MemoryLimit::Bytes(1 << 20));
        let device = device.host_memory_limit("300KB".parse().expect("a limit")).spill_dir(folder.path());
        let pair = Pair::with(device.spill_limit(files)).and("t", Shape::random(60_000, 7).batches());
        pair.and("u", Shape::random(40_000, 8).batches())
    };
    let roomy = pair(1 << 30);
    check(&roomy, sql);
    assert!(roomy.gpu().counters().bytes_in_spill_files > 100_000);
    let tight = pair(100_000);
    let error = run(&tight.device, sql).expect_err("no room");
    match error.kind() {
        ErrorKind::OutOfHostMemory { limit, spill_limit, .. } => {
            assert_eq!((*limit, *spill_limit), (Some(300_000), Some(100_000)));
        }
        other => panic!("{other:?}"),
    }
    // The session goes on, and the next query has all the room.
    check(&tight, "SELECT id, k, x FROM t ORDER BY x DESC NULLS LAST, id LIMIT 20");
    drop((roomy, tight));
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

/// A failure of any allocation is a clean error or none, and leaves nothing on the device.
#[test]
fn an_allocation_that_fails_leaves_nothing_behind() {
    let sql = "SELECT u.k, count(*), sum(t.x) FROM t JOIN u ON t.id = u.id GROUP BY u.k ORDER BY 1";
    let pair = small(1 << 20).and("t", Shape::random(30_000, 7).batches());
    let pair = pair.and("u", Shape::random(40_000, 8).batches());
    check(&pair, sql);
    let device = pair.gpu().clone();
    let total = {
        let before = device.counters().allocations;
        run(&pair.device, sql).expect("it fits in parts");
        device.counters().allocations - before
    };
    let (mut failed, mut ran) = (0, 0);
    // Some of them: each costs a run.
    for at in (0..total).step_by((total / 24).max(1) as usize) {
        device.fail_allocation_after(at);
        match run(&pair.device, sql) {
            Ok(_) => ran += 1,
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::OutOfDeviceMemory { .. }), "{error}");
                failed += 1;
            }
        }
        device.fail_allocation_after(u64::MAX);
        device.make_room(device.memory().limit).expect("what is cached can go");
        assert_eq!(device.memory().used, 0, "allocation {at} of {total}");
    }
    assert!(ran > 0, "{failed} failed");
    check(&pair, sql);
}

/// Aggregates of no rows are a row, also where no part has rows; a sort's key may be one for most rows.
#[test]
fn parts_without_rows_and_of_one_key() {
    let pair =
        || small(1 << 20).and("t", Shape::random(60_000, 7).batches()).and("u", Shape::random(40_000, 8).batches());
    check(
        &pair(),
        "SELECT count(*), sum(a.k), max(b.s) FROM (SELECT * FROM t WHERE k > 1000) a \
         FULL JOIN (SELECT * FROM u WHERE k > 1000) b ON a.id = b.id",
    );
    check(
        &pair(),
        "SELECT key, key + 1 AS a, key * 2 AS b, repeat('x', CAST(key % 7 AS INT)) AS c FROM \
         (SELECT CASE WHEN id % 8 = 0 THEN id ELSE 5 END AS key FROM t) ORDER BY key",
    );
}
