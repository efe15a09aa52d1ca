//! What holds for every query: the same bits each time, errors that leave the session whole, and
//! the CPU as a fallback.

use warpframe::arrow::array::RecordBatch;
use warpframe::device::SimOptions;
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::differential::{Agreement, Cell, Pair, Rows, builder, run, scalar};
use crate::tables::Shape;

const QUERIES: &[&str] = &[
    "SELECT k, sum(spread) AS a, avg(x) AS b, max(s) AS c FROM t GROUP BY k ORDER BY k",
    "SELECT s, sum(f32) AS a, sum(m) AS b FROM t GROUP BY s ORDER BY s",
    "SELECT sum(spread) AS a, avg(f32) AS b, sum(x) AS c FROM t",
    "SELECT a.id, b.x FROM t a JOIN t b ON a.w = b.w AND a.id > b.id ORDER BY a.id, b.id LIMIT 500",
    "SELECT id, sum(spread) OVER w AS a, avg(x) OVER (PARTITION BY k ORDER BY id) AS b FROM t \
     WINDOW w AS (PARTITION BY k ORDER BY id ROWS BETWEEN 90 PRECEDING AND 5 FOLLOWING) ORDER BY id",
];

/// The query's answer as bytes of its columns: floats are compared bit by bit.
fn bits(session: &Session, sql: &str) -> Vec<RecordBatch> {
    run(session, sql).and_then(|frame| frame.to_arrow()).expect("a query that runs")
}

#[test]
fn queries_answer_the_same_bits_each_time() {
    let batches = Shape::random(6000, 91).batches();
    let session = builder().strict(true).build().expect("the device opens");
    session.register_batches("t", batches.clone()).expect("batches");
    let first: Vec<_> = QUERIES.iter().map(|sql| bits(&session, sql)).collect();
    for seed in [0, 1, 2, 77] {
        let other = builder()
            .strict(true)
            .sim_options(SimOptions::with_seed(seed))
            .build()
            .expect("the device opens");
        other.register_batches("t", batches.clone()).expect("batches");
        for (sql, first) in QUERIES.iter().zip(&first) {
            assert_eq!(first, &bits(&other, sql), "simulator seed {seed}: {sql}");
        }
    }
    for (sql, first) in QUERIES.iter().zip(&first) {
        assert_eq!(first, &bits(&session, sql), "{sql}");
    }
}

#[test]
fn allocations_that_fail_leave_the_session_whole() {
    let pair = Pair::with(builder().strict(true).divide(false))
        .and("t", Shape::random(3000, 92).batches())
        .and("u", Shape::random(500, 93).batches());
    let device = pair.gpu().clone();
    for sql in [
        "SELECT id, s, x * 2 AS y FROM t WHERE k > 2 ORDER BY id",
        "SELECT k, sum(spread), max(sv), avg(m) FROM t GROUP BY k",
        "SELECT sl, m38, count(*) FROM t GROUP BY sl, m38",
        "SELECT id, sv FROM t ORDER BY sv DESC, x, id LIMIT 50",
        "SELECT t.id, u.s FROM t JOIN u ON t.k = u.k AND t.sv < u.sv",
        "SELECT t.id, u.s FROM t JOIN u ON t.id = u.id",
        "SELECT s, x FROM t UNION ALL SELECT s, x FROM u",
        "SELECT id, lag(s) OVER (PARTITION BY k ORDER BY id) AS a, \
         max(sv) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING) AS b FROM t",
    ] {
        // Resident columns and loaded kernels first.
        pair.check(sql);
        let used = device.memory().used;
        let mut failures = 0;
        loop {
            device.fail_allocation_after(failures);
            match run(&pair.device, sql) {
                Ok(_) => break,
                Err(error) => {
                    assert!(
                        matches!(error.kind(), ErrorKind::OutOfDeviceMemory { .. }),
                        "{sql}: {error:?}"
                    );
                }
            }
            assert_eq!(
                device.memory().used,
                used,
                "memory leaks when allocation {failures} fails: {sql}"
            );
            failures += 1;
            assert!(failures < 1000, "the failure never ends: {sql}");
        }
        // The failure injected last may still wait.
        device.fail_allocation_after(u64::MAX);
        assert!(failures > 0, "nothing was allocated: {sql}");
        assert_eq!(device.memory().used, used, "{sql}");
        pair.check(sql);
    }
}

#[test]
fn loading_that_fails_is_repeated_by_the_next_query() {
    let pair = Pair::with(builder().strict(true).divide(false))
        .and("t", Shape::random(3000, 94).batches());
    let device = pair.gpu().clone();
    let sql = "SELECT sv, s, sd, sum(x), max(m38) FROM t GROUP BY sv, s, sd";
    let mut failures = 0;
    loop {
        device.fail_allocation_after(failures);
        match run(&pair.device, sql) {
            Ok(_) => break,
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::OutOfDeviceMemory { .. }), "{error:?}")
            }
        }
        failures += 1;
        assert!(failures < 1000, "the failure never ends");
    }
    device.fail_allocation_after(u64::MAX);
    assert!(failures > 5, "loading allocates");
    pair.check(sql);
}

#[test]
fn a_memory_limit_is_an_error_with_numbers_and_no_end() {
    let pair = Pair::with(
        builder().strict(true).divide(false).memory_limit("4MiB".parse().expect("a limit")),
    );
    let pair = pair.and("t", Shape::random(20_000, 95).batches());
    let error = run(&pair.device, "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.k = b.k")
        .expect_err("300 MB");
    match error.kind() {
        ErrorKind::OutOfDeviceMemory { asked, limit, free, .. } => {
            assert!(
                *asked > *free && *limit == 4 << 20,
                "asked {asked}, free {free}, limit {limit}"
            );
        }
        other => panic!("{other:?}"),
    }
    pair.check("SELECT k, sum(k2) FROM t GROUP BY k");
    assert!(pair.gpu().memory().peak <= 4 << 20);
}

#[test]
fn frames_that_are_dropped_give_their_memory_back() {
    let pair = Pair::of(Shape::random(3000, 96).batches());
    let sql = "SELECT id, x + 1 AS y, sv FROM t WHERE k > 1";
    pair.check(sql);
    let used = pair.gpu().memory().used;
    let frame = run(&pair.device, sql).expect("it runs");
    assert!(frame.is_on_device() && pair.gpu().memory().used > used);
    let next = frame.filter(col("y").gt(lit(0.0))).expect("it runs");
    let grouped = next.group_by([col("sv")]).agg([sum(col("y"))]).expect("it runs");
    assert!(grouped.is_on_device());
    drop((frame, next, grouped));
    assert_eq!(pair.gpu().memory().used, used);
}

#[test]
fn errors_at_run_time_leave_the_session_whole() {
    let pair = Pair::of(Shape::random(3000, 97).batches());
    pair.check("SELECT sum(k) FROM t");
    for sql in [
        "SELECT 100 / k FROM t",
        "SELECT 100 % k2 FROM t WHERE id > 5",
        "SELECT k, sum(100 / k2) FROM t GROUP BY k",
        "SELECT CAST(i64 AS int) FROM t",
        "SELECT id FROM t ORDER BY 1 / k",
        "SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE a.k / b.k > 1",
    ] {
        let used = pair.gpu().memory().used;
        let error = pair.check_error(sql);
        assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{sql}: {error:?}");
        // Columns may have become resident: nothing else may stay.
        let loaded = pair.gpu().memory().used;
        pair.check_error(sql);
        assert_eq!(pair.gpu().memory().used, loaded, "{sql} (before: {used})");
        pair.check("SELECT sum(k) FROM t");
    }
}

#[test]
fn strict_sessions_say_what_is_not_on_the_device_and_others_run_it_on_the_cpu() {
    let pair = Pair::with(builder().strict(false)).and("t", Shape::random(2000, 98).batches());
    let sql = "SELECT k, total, arrow_cast(k, 'Decimal256(50, 2)') AS wide FROM \
               (SELECT k, sum(x) AS total FROM t WHERE k2 > 0 GROUP BY k)";
    let before = pair.gpu().counters().launches;
    let (expected, found) =
        (run(&pair.cpu, sql).expect("it runs"), run(&pair.device, sql).expect("it falls back"));
    assert!(pair.gpu().counters().launches > before, "the aggregation ran on the device");
    assert!(!found.is_on_device());
    let sorted = |frame: &DataFrame| {
        let mut rows: Vec<_> = crate::differential::Rows::of(frame)
            .rows
            .iter()
            .map(|r| format!("{:?}", (&r[0], &r[2])))
            .collect();
        rows.sort();
        rows
    };
    assert_eq!(sorted(&expected), sorted(&found));

    let text = pair.device.sql(sql).and_then(|frame| frame.explain()).expect("it explains");
    let line =
        |start: &str, word: &str| text.lines().any(|l| l.starts_with(start) && l.contains(word));
    assert!(line("cpu", "Projection"), "{text}");
    assert!(
        line("device", "Aggregate") && line("device", "Filter") && line("device", "TableScan"),
        "{text}"
    );

    let strict = builder().strict(true).build().expect("the device opens");
    strict.register_batches("t", Shape::random(2000, 98).batches()).expect("batches");
    let error = run(&strict, sql).expect_err("it is strict");
    match error.kind() {
        ErrorKind::Unsupported { what, why } => {
            assert!(what.contains("device") && !why.is_empty(), "{what}: {why}")
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(scalar(&strict, "SELECT count(*) FROM t"), Cell::Int(2000));
}

#[test]
fn queries_only_partly_on_the_device_agree() {
    let pair = Pair::with(builder().strict(false))
        .and("t", Shape::random(1500, 99).batches())
        .and("u", Shape::random(300, 100).batches());
    for sql in [
        "SELECT t.id, u.s FROM t LEFT JOIN u ON t.id = u.id AND encode(t.s, 'hex') < encode(u.s, 'hex') WHERE t.k = 2",
        "SELECT t.id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND encode(t.s, 'hex') < encode(u.s, 'hex')) AND t.k = 1",
        "SELECT upper(s) AS u, n FROM (SELECT s, count(*) AS n FROM t GROUP BY s)",
        "SELECT k, bit_xor(DISTINCT k2) FROM t WHERE k2 > 0 GROUP BY k",
        "SELECT k, n FROM (SELECT k, count(*) AS n FROM t GROUP BY k) WHERE n > (SELECT avg(k) FROM u)",
    ] {
        let (expected, found) =
            (run(&pair.cpu, sql).expect("it runs"), run(&pair.device, sql).expect("it falls back"));
        assert_eq!(expected.num_rows(), found.num_rows(), "{sql}");
        assert_eq!(pair.rows_agree(&expected, &found, sql), Agreement::Rows(expected.num_rows()));
    }
}

#[test]
fn queries_may_run_from_several_threads_at_once() {
    let pair = Pair::of(Shape::random(2000, 101).batches());
    std::thread::scope(|scope| {
        for offset in 0..4 {
            let pair = &pair;
            scope.spawn(move || {
                for n in 0..3 {
                    pair.check(&format!(
                        "SELECT k, sum(x), count(*) FROM t WHERE id > {} GROUP BY k",
                        offset * 100 + n
                    ));
                    pair.check("SELECT id FROM t WHERE b ORDER BY x, id LIMIT 10");
                }
            });
        }
    });
}

/// Outside of strict mode the CPU does what the device has no memory for: whichever allocation it
/// is that fails, in the first run of a query, of a kept plan, and of a verb of frames that lie on
/// the device.
#[test]
fn the_cpu_takes_over_where_device_memory_is_short() -> Result<()> {
    let pair = Pair::with(builder().strict(false).divide(false))
        .and("t", Shape::random(900, 96).batches());
    let device = pair.gpu().clone();
    let session = &pair.device;
    let sql = "SELECT k, count(*) AS n, sum(x) AS s, max(sv) AS v FROM t WHERE id % 3 <> 1 GROUP BY k ORDER BY k, s";
    let expected = Rows::of(&run(&pair.cpu, sql)?);
    session.take_fallback_reasons();
    let (before, mut failures) = (device.counters().fallbacks, 0);
    loop {
        device.fail_allocation_after(failures);
        let found = run(session, sql)?;
        let reasons = session.take_fallback_reasons();
        if reasons.is_empty() {
            break;
        }
        assert!(
            !found.is_on_device() && reasons.iter().all(|why| why.contains("out of device memory")),
            "{reasons:?}"
        );
        pair.rows_agree(&run(&pair.cpu, sql)?, &found, sql);
        failures += 1;
        assert!(failures < 1000, "the failure never ends");
    }
    device.fail_allocation_after(u64::MAX);
    assert!(failures > 5, "it allocates");
    assert!(device.counters().fallbacks - before >= failures);
    assert_eq!(Rows::of(&run(session, sql)?).rows.len(), expected.rows.len());

    // Frames lie on the device, and what is made of them does not fit.
    let frame = run(session, "SELECT id, k2, x, sv FROM t ORDER BY id")?;
    let there = run(&pair.cpu, "SELECT id, k2, x, sv FROM t ORDER BY id")?;
    assert!(frame.is_on_device());
    // Its columns would make room.
    session.deregister("t")?;
    device.set_memory_limit(warpframe::device::MemoryLimit::Bytes(device.memory().used + 256));
    type Verb = fn(&DataFrame) -> Result<DataFrame>;
    let verbs: [Verb; 4] = [
        |frame| frame.filter(col("k2").gt(lit(2))),
        |frame| frame.sort([desc(col("k2")), asc(col("id"))]),
        |frame| frame.arg_sort([desc(col("k2")), asc(col("id"))]),
        |frame| frame.cumulative_sum("k2"),
    ];
    for (at, verb) in verbs.into_iter().enumerate() {
        for _ in 0..2 {
            let found = verb(&frame)?;
            assert!(!session.take_fallback_reasons().is_empty(), "verb {at}");
            assert_eq!(Rows::of(&found).rows, Rows::of(&verb(&there)?).rows, "verb {at}");
        }
    }
    device.set_memory_limit("1GB".parse()?);
    assert!(frame.filter(col("k2").gt(lit(2)))?.is_on_device());
    assert!(session.take_fallback_reasons().is_empty());
    Ok(())
}
