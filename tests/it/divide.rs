//! Plans that do not fit into device memory, run in parts: their rows are those of the CPU.

use warpframe::device::{DeviceKind, MemoryLimit};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use warpframe::arrow::array::{ArrayRef, Float64Array, Int64Array};
use warpframe::{Error, ErrorKind};

use crate::differential::{Pair, builder, data, run};
use crate::random::{number, queries_and_seed, query_of, tables_of};
use crate::tables::{Shape, columns};

/// A device of so many bytes, and the queries that it is asked.
fn small(bytes: u64) -> Pair {
    Pair::with(builder().strict(true).memory_limit(MemoryLimit::Bytes(bytes)))
}

/// Both say the same, and the device did it in parts, within its limit.
fn check(pair: &Pair, sql: &str) {
    let before = pair.gpu().counters();
    let expected = run(&pair.cpu, sql).unwrap_or_else(|error| panic!("the CPU: {error}\n  {sql}"));
    let found =
        run(&pair.device, sql).unwrap_or_else(|error| panic!("the device: {error}\n  {sql}"));
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
        "SELECT id AS __place, k AS __place_1, s FROM t ORDER BY s, __place",
        "SELECT t.id, u.id AS other, u.s FROM t JOIN u ON t.id = u.id",
        "SELECT t.id, u.id AS other, u.s FROM t LEFT JOIN u ON t.id = u.id AND u.k < 5",
        "SELECT t.id, u.id AS other, t.s FROM t FULL JOIN u ON t.id = u.id",
        "SELECT id, s FROM t WHERE id IN (SELECT id FROM u WHERE k > 2)",
        "SELECT id, s FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.k > 2)",
        "SELECT id, row_number() OVER (PARTITION BY k2 ORDER BY id) AS n, sum(k) OVER (PARTITION BY k2) AS x FROM t",
        "SELECT id + 1 AS n FROM t UNION ALL SELECT id FROM u",
        "SELECT k, sum(n) FROM (SELECT k, id, count(*) AS n FROM t GROUP BY k, id) GROUP BY k",
    ];
    for sql in some(queries, 8) {
        let pair = small(1 << 20).and("t", Shape::random(60_000, 7).batches());
        let pair = pair.and("u", Shape::random(40_000, 8).batches());
        check(&pair, sql);
    }
}

/// Windows tell 0.0 from -0.0, which are equal elsewhere.
#[test]
fn windows_in_parts_tell_zeros_apart() {
    let rows = 0..20_000_i64;
    let zeros = Float64Array::from_iter_values(
        rows.clone().map(|row| if row % 3 == 0 { -0.0 } else { 0.0 }),
    );
    let ids = Arc::new(Int64Array::from_iter_values(rows));
    let pair =
        small(200 << 10).and("t", columns(vec![("id", ids as ArrayRef), ("x", Arc::new(zeros))]));
    check(
        &pair,
        "SELECT id, sum(id) OVER (PARTITION BY x) AS a, row_number() OVER (PARTITION BY x ORDER BY id) AS n FROM t",
    );
    check(
        &pair,
        "SELECT id, rank() OVER (ORDER BY x) AS r, dense_rank() OVER (ORDER BY x) AS d FROM t",
    );
}

/// Row numbers have 32 bits, and so few pairs are found at once. On a GPU: the simulator has no
/// room for the pairs.
#[test]
fn joins_without_keys_find_more_pairs_than_32_bits_number() {
    let session = builder().strict(true).build().expect("a session");
    let device = session.device().expect("a device").clone();
    if device.kind() == DeviceKind::Sim {
        return;
    }
    let sql = "SELECT count(*) AS n, sum(j - i) AS d FROM range(70000) a(i) JOIN range(70000) b(j) ON i < j";
    let found = run(&session, sql).unwrap_or_else(|error| panic!("{error}"));
    let pairs: i64 = 70_000 * 69_999 / 2;
    // Distance d has 70,000 - d pairs.
    let distances = (1..70_000).map(|d| d * (70_000 - d)).sum::<i64>();
    assert_eq!(found.get::<i64>(0, "n").expect("a value"), pairs);
    assert_eq!(found.get::<i64>(0, "d").expect("a value"), distances);
    assert!(device.counters().parts_run > 1);
}

#[test]
fn tpch_queries_in_parts() {
    let mut divided = 0;
    for number in
        some([21, 18, 1, 3, 9, 10, 5, 2, 7, 4, 8, 6, 19, 11, 20, 12, 13, 14, 15, 16, 17, 22], 6)
    {
        let sql = std::fs::read_to_string(data(&format!("queries/q{number}.sql")))
            .expect("the sample is there");
        let sql = sql.trim().trim_end_matches(';');
        let pair = small(3 << 20).samples();
        let expected = run(&pair.cpu, sql).expect("the CPU answers");
        let found = run(&pair.device, sql).unwrap_or_else(|error| panic!("Q{number}: {error}"));
        pair.compare(&expected, &found, sql);
        divided += u32::from(pair.gpu().counters().parts_run > 0);
    }
    assert!(divided >= 3, "{divided} queries were divided");
}

/// Random queries (`random.rs`) on devices of very little memory: none answers wrong. Where even
/// the smallest parts find no memory an error says so. `WARPFRAME_RANDOM_LIMITS` says on how many
/// devices of different sizes each query runs (1); the other variables are those of `random.rs`.
#[test]
fn random_queries_with_little_memory_are_right_or_say_so() {
    let (count, first) = queries_and_seed(8);
    let limits = number("WARPFRAME_RANDOM_LIMITS", 1);
    let mut seen = Outcomes::default();
    for seed in first..first + count {
        let (sql, [t, u]) = (query_of(seed), tables_of(seed));
        for limit in (0..limits).map(|n| limit_of(seed, n)) {
            let pair = small(limit).and("t", t.clone()).and("u", u.clone());
            let pair = pair.from(format!("seed {seed}, {limit} bytes"));
            let began = Instant::now();
            if catch_unwind(AssertUnwindSafe(|| seen.ask(&pair, &sql))).is_err() {
                seen.failed.push(seed);
            }
            if began.elapsed() > LONG {
                println!("{:?} for {}\n  {sql}", began.elapsed(), pair.origin);
            }
            seen.divided += u64::from(pair.gpu().counters().parts_run > 0);
            let memory = pair.gpu().memory();
            assert!(memory.peak <= memory.limit);
        }
    }
    println!("{count} queries, {limits} limits each: {seen:?}");
    assert!(
        seen.failed.is_empty(),
        "WARPFRAME_RANDOM_SEED of the queries that failed: {:?}",
        seen.failed
    );
    let runs = count * limits;
    assert!(
        runs < 1000 || seen.divided * 4 > runs && seen.out_of_memory * 2 < runs,
        "the limits say little"
    );
}

/// The bytes of a seed's n-th device: of the least that operators take at all up to what most
/// queries run in whole.
fn limit_of(seed: u64, n: u64) -> u64 {
    let octave = (12 << 10) << ((seed * 7 + n) % 5);
    octave + octave / 5 * (n / 5 % 5)
}

/// What a query of few rows should not take.
const LONG: Duration = Duration::from_secs(20);

/// What became of random queries.
#[derive(Debug, Default)]
struct Outcomes {
    rows: usize,
    compared: u64,
    divided: u64,
    out_of_memory: u64,
    not_compared: u64,
    failed: Vec<u64>,
}

fn is_out_of_device_memory(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::OutOfDeviceMemory { .. })
}

impl Outcomes {
    /// Runs a query on both engines.
    fn ask(&mut self, pair: &Pair, sql: &str) {
        match (run(&pair.cpu, sql), run(&pair.device, sql)) {
            (Ok(_), Ok(found)) if found.to_arrow().is_err_and(|e| is_out_of_device_memory(&e)) => {
                self.out_of_memory += 1
            }
            (Ok(expected), Ok(found)) => {
                pair.compare(&expected, &found, sql);
                self.rows += expected.num_rows();
                self.compared += 1;
            }
            (_, Err(error)) if is_out_of_device_memory(&error) => self.out_of_memory += 1,
            (Ok(_), Err(error)) if !matches!(error.kind(), ErrorKind::Unsupported { .. }) => {
                panic!("only the device failed: {error}\n  {sql}\n  {}", pair.origin)
            }
            _ => self.not_compared += 1,
        }
    }
}

#[test]
fn a_side_of_few_keys_in_a_wide_range_has_a_table_that_fits() {
    let keys = Int64Array::from_iter_values((0..1000).map(|row| row * 1009));
    let pair = small(1 << 20).and("t", Shape::random(60_000, 7).batches());
    let pair = pair.and("w", columns(vec![("key", Arc::new(keys) as ArrayRef)]));
    check(
        &pair,
        "SELECT sum(x), min(s), count(*), sum(m38) FROM t WHERE id IN (SELECT key FROM w)",
    );
}

/// Rows that do not fit into host memory lie in files, of which nothing stays.
#[test]
fn rows_beyond_the_hosts_limit_lie_in_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let sql = "SELECT t.id, u.id AS other, t.s, u.sv FROM t FULL JOIN u ON t.id = u.id";
    let pair = |files: u64| {
        let device = builder().strict(true).memory_limit(MemoryLimit::Bytes(1 << 20));
        let device =
            device.host_memory_limit("300KB".parse().expect("a limit")).spill_dir(folder.path());
        let pair =
            Pair::with(device.spill_limit(files)).and("t", Shape::random(60_000, 7).batches());
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

/// Aggregates of no rows are a row, also where no part has rows; a sort's key may be one for most
/// rows.
#[test]
fn parts_without_rows_and_of_one_key() {
    let pair = || {
        small(1 << 20)
            .and("t", Shape::random(60_000, 7).batches())
            .and("u", Shape::random(40_000, 8).batches())
    };
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

/// Calls that need whole groups: without GROUP BY, and of one group that does not fit.
#[test]
fn aggregates_of_one_giant_group() {
    let queries = [
        "SELECT stddev(x), var_pop(x), stddev_pop(x) FILTER (WHERE k > 2), var(x + 1e6) FROM t",
        "SELECT covar_samp(x, id), covar_pop(x, id), corr(x, id), regr_slope(x, id), regr_intercept(x, id), \
         regr_r2(x, id), regr_avgx(x, id), regr_syy(x, id), regr_count(x, id) FROM t",
        "SELECT median(x), median(i64), median(m), median(f32) FROM t",
        "SELECT percentile_cont(0.3) WITHIN GROUP (ORDER BY x), median(DISTINCT k) FROM t",
        "SELECT median(x), count(DISTINCT id), avg(x), median(x) FILTER (WHERE k > 3), max(s) FROM t",
        "SELECT k > 100 AS g, median(x), count(DISTINCT id), sum(k) FROM t GROUP BY k > 100",
        "SELECT k, count(i32), avg(i32), stddev(i32) / avg(i32), count(i64) FROM t GROUP BY k",
        "SELECT k2, var(x), corr(x, id), stddev(CASE WHEN k2 > 0 THEN 4.1 END), count(*) FROM t GROUP BY k2",
        "SELECT median(CASE WHEN id < 0 THEN x END), count(*), max(s) FROM t",
        "SELECT histogram(x, -100, 100, 8), histogram(k, 0, 50, 5, id) FILTER (WHERE k <> 3), median(k) FROM t",
        "SELECT k > 100 AS g, histogram(x, -100, 100, 8), histogram(id, 0, 9, 3), count(*) FROM t GROUP BY k > 100",
        "SELECT k, k2, var(x), corr(x, id) FROM t GROUP BY GROUPING SETS ((k, k2), (k))",
    ];
    for sql in some(queries, 9) {
        check(&small(1 << 20).and("t", Shape::random(60_000, 7).batches()), sql);
    }
}

/// What follows from the mean follows from the means of parts: also where all values are one.
#[test]
fn deviations_of_equal_values_are_nothing_in_parts() {
    let pair = small(1 << 20).and("t", Shape::random(60_000, 7).batches());
    let sql =
        "SELECT var(v), corr(v, x), regr_slope(x, v) FROM (SELECT 0.1 + k * 0 AS v, x FROM t)";
    check(&pair, sql);
    let found = run(&pair.device, sql).expect("it ran a moment ago").to_arrow().expect("rows");
    assert_eq!(found[0].column(1).null_count(), 1, "no correlation with a constant");
}

/// Windows of which one partition does not fit, or without PARTITION BY.
#[test]
fn windows_of_one_giant_partition() {
    let queries = [
        "SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM t",
        "SELECT id, k, rank() OVER (ORDER BY k) AS r, dense_rank() OVER (ORDER BY k) AS d, \
         percent_rank() OVER (ORDER BY k) AS p, cume_dist() OVER (ORDER BY k) AS c FROM t",
        "SELECT id, ntile(7) OVER (ORDER BY id) AS a, ntile(100000) OVER (ORDER BY id) AS b FROM t",
        "SELECT id, sum(k) OVER (ORDER BY id) AS s, count(k) OVER (ORDER BY id) AS c, avg(x) OVER (ORDER BY id) AS a, \
         min(x) OVER (ORDER BY id) AS l, max(s) OVER (ORDER BY id) AS g FROM t",
        "SELECT id, sum(k) OVER (ORDER BY k2, s) AS s FROM t",
        // Keys that are there twice.
        "SELECT id, sum(k) OVER (PARTITION BY b, b ORDER BY id) AS s, \
         dense_rank() OVER (PARTITION BY b ORDER BY b, k2, k2) AS d FROM t",
        "SELECT id, sum(m) OVER (ORDER BY k2) AS m, avg(m) OVER (ORDER BY k2) AS a FROM t",
        "SELECT id, s, count(*) OVER (ORDER BY k2 NULLS FIRST) AS c, sum(k) OVER (ORDER BY k) AS n FROM t",
        "SELECT id, sum(x) OVER () AS s, max(s) OVER () AS m, count(*) FILTER (WHERE k > 3) OVER () AS c FROM t",
        "SELECT id, lag(x, 3) OVER (ORDER BY id) AS a, lead(s, 2, 'none') OVER (ORDER BY id) AS b, \
         avg(x) OVER (ORDER BY id ROWS BETWEEN 5 PRECEDING AND 2 FOLLOWING) AS c, \
         max(s) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS d FROM t",
        "SELECT id, first_value(s) OVER (ORDER BY id) AS f, last_value(x) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED \
         PRECEDING AND UNBOUNDED FOLLOWING) AS l, last_value(k) IGNORE NULLS OVER (ORDER BY id ROWS UNBOUNDED \
         PRECEDING) AS n, first_value(k) IGNORE NULLS OVER (ORDER BY id) AS i FROM t",
        "SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY id) AS n, rank() OVER (PARTITION BY g ORDER BY k) AS r, \
         sum(k) OVER (PARTITION BY g ORDER BY id) AS s, sum(k) OVER (PARTITION BY g) AS w, \
         lag(id) OVER (PARTITION BY g ORDER BY id) AS p \
         FROM (SELECT id, k, CASE WHEN id % 100 < 97 THEN 0 ELSE id % 1000 END AS g FROM t)",
        "SELECT id, row_number() OVER (ORDER BY x, id) AS a, sum(k) OVER (ORDER BY id) AS b, \
         rank() OVER (ORDER BY s) AS c, count(*) OVER (ORDER BY k2) AS d FROM t",
        "SELECT n, count(*), sum(r) FROM (SELECT row_number() OVER (ORDER BY id) % 5 AS n, \
         rank() OVER (ORDER BY k + 1) AS r FROM t) WHERE r > 10 GROUP BY n",
    ];
    let failed: Vec<&str> = some(queries, 8)
        .filter(|sql| {
            let pair = small(1 << 20).and("t", Shape::random(40_000, 7).batches());
            catch_unwind(AssertUnwindSafe(|| check(&pair, sql))).is_err()
        })
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// What does not divide says so by the error that names the operator and the limit.
#[test]
fn frames_that_need_all_rows_find_no_memory() {
    let pair = small(1 << 20).and("t", Shape::random(60_000, 7).batches());
    for sql in [
        "SELECT id, sum(k) OVER (ORDER BY id RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS s FROM t",
        "SELECT array_agg(id) FROM t",
    ] {
        let error = run(&pair.device, sql).expect_err("all rows are needed at once");
        assert!(matches!(error.kind(), ErrorKind::OutOfDeviceMemory { .. }), "{error}\n  {sql}");
    }
    check(&pair, "SELECT id, k, x, s FROM t ORDER BY x DESC NULLS LAST, id LIMIT 20");
}

/// NOT IN a list that does not fit, without nulls, with one, and without rows.
#[test]
fn not_in_a_list_that_does_not_fit() {
    let pair = || {
        let pair = small(1 << 20).and("t", Shape::random(60_000, 7).batches());
        pair.and("u", Shape::random(60_000, 8).batches())
    };
    let with = |list: &str| format!("SELECT id, s FROM t WHERE i32 NOT IN (SELECT {list})");
    check(&pair(), &with("i32 FROM u WHERE i32 IS NOT NULL"));
    check(&pair(), &with("i32 FROM u"));
    check(&pair(), &with("i32 FROM u WHERE id < 0"));
    check(&pair(), "SELECT id FROM t WHERE id NOT IN (SELECT id * 2 FROM u)");
}

/// A result that fits neither the device nor host memory is written as it comes back.
#[test]
fn results_larger_than_memory_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let device =
        builder().strict(true).memory_limit(MemoryLimit::Bytes(1 << 20)).spill_dir(folder.path());
    let pair = Pair::with(
        device.host_memory_limit("300KB".parse().expect("a limit")).spill_limit(1 << 30),
    );
    let pair = pair.and("t", Shape::random(60_000, 7).batches());
    // Strings that are no views are read back as views.
    let sql = "SELECT id, sv, x, m, m38 FROM t WHERE k < 6";
    let path = folder.path().join("rows.parquet");
    let rows =
        pair.device.sql(sql).and_then(|frame| frame.write_parquet(&path)).expect("it is written");
    assert!(pair.gpu().counters().bytes_in_spill_files > 100_000, "it never was whole in memory");
    let expected = run(&pair.cpu, sql).expect("the CPU answers");
    assert_eq!(rows, expected.num_rows() as u64);
    let found = pair.cpu.read_parquet(&path).expect("the file is there");
    pair.compare(&expected, &found, sql);
    // A frame of such rows is one as any other.
    let frame = run(&pair.device, sql).expect("it runs in parts");
    assert!(!frame.is_on_device());
    assert_eq!(frame.num_rows(), expected.num_rows());
    let sizes: Vec<usize> =
        frame.batches(1000).map(|batch| batch.expect("a batch").num_rows()).collect();
    assert!(sizes.iter().all(|rows| (1..=1000).contains(rows)));
    assert_eq!(sizes.iter().sum::<usize>(), expected.num_rows());
    pair.compare(&expected, &frame, sql);
    let last = frame.get::<i64>(frame.num_rows() - 1, "id").expect("a row");
    assert!(last > 50_000, "{last}");
}
