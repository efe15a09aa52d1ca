//! Plans that do not fit into device memory, run in parts: their rows are those of the CPU.

use warpframe::device::MemoryLimit;

use crate::differential::{Pair, builder, data, run};
use crate::tables::Shape;

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
    eprintln!("{} parts, {} spilled, {} restored", after.parts_run - before.parts_run, after.bytes_spilled, after.bytes_restored);
    assert!(after.launches > before.launches, "no kernel ran\n  {sql}");
    assert_eq!(after.fallbacks, before.fallbacks);
    let memory = pair.gpu().memory();
    assert!(memory.peak <= memory.limit);
}

#[test]
fn operators_in_parts() {
    for sql in [
        "SELECT id, x * 2 AS y, s FROM t WHERE k < 3",
        "SELECT count(*), sum(k), min(x), max(s), avg(x), sum(m38) FROM t",
        "SELECT k, count(*), sum(x), avg(m38), min(s), avg(k2) FROM t GROUP BY k",
        "SELECT id, count(*), sum(k) FROM t GROUP BY id",
        "SELECT DISTINCT id, s FROM t",
        "SELECT k, median(x), count(DISTINCT s), array_agg(id ORDER BY id) FROM t GROUP BY k",
        "SELECT count(DISTINCT id), sum(DISTINCT id) FROM t",
        "SELECT id, k, s FROM t ORDER BY s, id",
        "SELECT id, k, x FROM t ORDER BY x DESC NULLS LAST, id LIMIT 20",
        "SELECT t.id, u.id AS other, u.s FROM t JOIN u ON t.id = u.id",
        "SELECT t.id, u.id AS other, u.s FROM t LEFT JOIN u ON t.id = u.id AND u.k < 5",
        "SELECT t.id, u.id AS other, t.s FROM t FULL JOIN u ON t.id = u.id",
        "SELECT id, s FROM t WHERE id IN (SELECT id FROM u WHERE k > 2)",
        "SELECT id, s FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.k > 2)",
        "SELECT id, row_number() OVER (PARTITION BY k2 ORDER BY id) AS n, sum(k) OVER (PARTITION BY k2) AS x FROM t",
        "SELECT id FROM t UNION ALL SELECT id FROM u",
        "SELECT k, sum(n) FROM (SELECT k, id, count(*) AS n FROM t GROUP BY k, id) GROUP BY k",
    ] {
        eprintln!("{sql}");
        for limit in [640 << 10, 320 << 10, 160 << 10] {
            let pair = small(limit).and("t", Shape::random(20_000, 7).batches());
            let pair = pair.and("u", Shape::random(15_000, 8).batches());
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&pair, sql)));
            eprintln!("{limit}: {}", ran.is_ok());
        }
    }
}

#[test]
fn tpch_queries_in_parts() {
    let pair = small(6 << 19).samples();
    for number in 1..=22 {
        let sql = std::fs::read_to_string(data(&format!("queries/q{number}.sql"))).expect("the sample is there");
        let sql = sql.trim().trim_end_matches(';');
        let before = std::time::Instant::now();
        let expected = run(&pair.cpu, sql).expect("the CPU answers");
        let found = run(&pair.device, sql).unwrap_or_else(|error| panic!("Q{number}: {error}"));
        pair.compare(&expected, &found, sql);
        eprintln!("Q{number}: {:?} {:?}", before.elapsed(), pair.gpu().counters());
    }
}
