//! Numbers from nowhere: `range` and `generate_series` as tables, and random numbers of a seed.

use warpframe::ErrorKind;
use warpframe::device::MemoryLimit;

use crate::differential::{Pair, builder, run};

/// Both say the same, and the device did it.
fn check(pair: &Pair, sql: &str) {
    let before = pair.gpu().counters();
    let expected = run(&pair.cpu, sql).unwrap_or_else(|error| panic!("the CPU: {error}\n  {sql}"));
    let found =
        run(&pair.device, sql).unwrap_or_else(|error| panic!("the device: {error}\n  {sql}"));
    pair.compare(&expected, &found, sql);
    let after = pair.gpu().counters();
    assert!(after.launches > before.launches, "no kernel ran\n  {sql}");
    assert_eq!(after.fallbacks, before.fallbacks, "{sql}");
    let uploaded = after.bytes_uploaded - before.bytes_uploaded;
    assert!(uploaded < 8 << 10, "{uploaded} bytes came from the host\n  {sql}");
}

fn strict() -> Pair {
    Pair::with(builder().strict(true))
}

#[test]
fn integers_at_equal_distances_are_made_on_the_device() {
    let pair = strict();
    for table in [
        "range(10)",
        "range(0, 100000)",
        "range(5, 5)",
        "range(3, 20, 4)",
        "range(3, 19, 4)",
        "range(20, 3, -4)",
        "range(-9223372036854775808, 9223372036854775807, 4611686018427387904)",
        "generate_series(4)",
        "generate_series(1, 5000)",
        "generate_series(7, 7)",
        "generate_series(3, 19, 4)",
        "generate_series(3, 20, 4)",
        "generate_series(20, 3, -4)",
        "generate_series(9223372036854775800, 9223372036854775807)",
    ] {
        for sql in [
            format!("SELECT value FROM {table} t(value) ORDER BY value"),
            format!(
                "SELECT count(*), min(value), max(value), count(DISTINCT value) FROM {table} t(value)"
            ),
        ] {
            let expected =
                run(&pair.cpu, &sql).unwrap_or_else(|error| panic!("the CPU: {error}\n  {sql}"));
            let found = run(&pair.device, &sql)
                .unwrap_or_else(|error| panic!("the device: {error}\n  {sql}"));
            pair.compare(&expected, &found, &sql);
        }
    }
    check(
        &pair,
        "SELECT sum(i * 2) AS s, count(*) AS n FROM range(0, 300000) t(i) WHERE i % 7 = 3",
    );
    check(
        &pair,
        "SELECT a.a, b.b AS other FROM range(100) a JOIN range(50, 200, 3) b ON a.a = b.b ORDER BY 1",
    );
    check(
        &pair,
        "SELECT i, sum(i) OVER (ORDER BY i) AS s FROM range(0, 5000) t(i) ORDER BY i DESC LIMIT 10",
    );
}

#[test]
fn series_that_do_not_fit_come_in_chunks() {
    let pair = Pair::with(builder().strict(true).memory_limit(MemoryLimit::Bytes(64 << 20)));
    // Not aggregated alone, so that it is stored.
    let sql = "SELECT count(*), sum(i), min(i), max(i) \
               FROM (SELECT i FROM range(0, 20000000) t(i) UNION ALL SELECT 8) WHERE i % 3 <> 1";
    check(&pair, sql);
    assert!(pair.gpu().counters().parts_run > 1, "20 million integers have 160 MB");
}

#[test]
fn series_that_are_aggregated_are_not_stored() {
    let pair = Pair::with(builder().strict(true).memory_limit(MemoryLimit::Bytes(8 << 20)));
    check(
        &pair,
        "SELECT count(*), sum(i), min(i), max(i) FROM range(0, 3000000) t(i) WHERE i % 3 <> 1",
    );
    check(&pair, "SELECT sum(random(1, i)) FROM range(3000000, 0, -2) t(i)");
    check(&pair, "SELECT i % 7 AS k, count(*), sum(i) FROM range(5, 3000000) t(i) GROUP BY k");
    check(
        &pair,
        "SELECT a.n, b.n FROM (SELECT count(*) AS n FROM range(2000000)) a, \
                  (SELECT max(i) AS n FROM generate_series(2, 9) t(i)) b",
    );
    let counters = pair.gpu().counters();
    assert_eq!(
        counters.parts_run, 0,
        "none of the series is stored: 3 million integers have 24 MB"
    );
    assert!(counters.bytes_moved < 1 << 20, "{} bytes", counters.bytes_moved);
    // Keys of many groups are stored, and so is what a median is of.
    let pair = strict();
    check(
        &pair,
        "SELECT i * 1000003 % 5000011 AS k, count(*) FROM range(0, 20000) t(i) GROUP BY k",
    );
    check(
        &pair,
        "SELECT i % 5 AS k, median(i), first_value(i ORDER BY i DESC) FROM range(0, 20000) t(i) GROUP BY k",
    );
    // Read twice, once for a join.
    check(
        &pair,
        "WITH t AS (SELECT range AS i FROM range(0, 3000)) \
                  SELECT (SELECT sum(i) FROM t), count(*) FROM t JOIN t AS u ON t.i = 2 * u.i",
    );
}

#[test]
fn random_numbers_without_a_seed_are_others_each_time() {
    let pair = strict();
    let one = |sql: &str| -> f64 {
        let before = pair.gpu().counters();
        let found = run(&pair.device, sql).unwrap_or_else(|error| panic!("{error}\n  {sql}"));
        let after = pair.gpu().counters();
        assert!(after.launches > before.launches && after.fallbacks == before.fallbacks, "{sql}");
        found.item::<f64>().unwrap_or_else(|error| panic!("{error}\n  {sql}"))
    };
    let numbers = "CREATE TABLE numbers AS SELECT i, random() AS r FROM range(0, 20000) t(i)";
    pair.device.execute(numbers).expect("it runs");
    // Six deviations of a mean of 20,000 numbers are 0.0123.
    let near = |sql: &str, expected: f64, by: f64| {
        let found = one(sql);
        assert!((found - expected).abs() < by, "{found} is not near {expected}\n  {sql}");
    };
    near("SELECT avg(r) FROM numbers", 0.5, 0.0123);
    near(
        "SELECT CAST(count(DISTINCT r) AS DOUBLE) FROM numbers WHERE r >= 0 AND r < 1",
        20000.0,
        0.5,
    );
    near("SELECT avg(random()) FROM numbers", 0.5, 0.0123);
    near("SELECT avg(a * b) FROM (SELECT random() AS a, random() AS b FROM numbers)", 0.25, 0.01);
    // One call that is read twice has one number; two calls have two.
    near(
        "SELECT avg(a - b) FROM (SELECT a, a AS b FROM (SELECT random() AS a FROM numbers))",
        0.0,
        1e-300,
    );
    near("SELECT corr(random(), r) FROM numbers", 0.0, 0.05);
    near("SELECT CAST(count(*) AS DOUBLE) FROM numbers WHERE random() < 0.25", 5000.0, 370.0);
    near(
        "SELECT avg(n) FROM (SELECT floor(random() * 4) AS k, count(*) AS n FROM numbers GROUP BY k)",
        5000.0,
        1e-9,
    );
    near(
        "SELECT CAST(max(k) AS DOUBLE) FROM (SELECT floor(random() * 4) AS k FROM numbers GROUP BY k)",
        3.0,
        1e-9,
    );
    // A sample of all rows in a random order.
    near("SELECT avg(i) FROM (SELECT i FROM numbers ORDER BY random() LIMIT 2000)", 10000.0, 800.0);
    near(
        "SELECT avg(n) FROM (SELECT row_number() OVER (ORDER BY random()) AS n FROM numbers)",
        10000.5,
        1e-9,
    );
    near(
        "SELECT corr(i, n) FROM (SELECT i, row_number() OVER (ORDER BY random()) AS n FROM numbers)",
        0.0,
        0.05,
    );
    let twice = [(); 2].map(|()| one("SELECT sum(random()) FROM numbers"));
    assert_ne!(twice[0], twice[1]);
}

#[test]
fn random_numbers_in_structs_and_lambdas_are_called_once_for_each_row_and_element() {
    let pair = strict();
    let numbers = "(SELECT i, random() AS r FROM range(0, 3000) t(i))";
    let structs = format!("(SELECT i, {{'a': r, 'b': r, 'i': i}} AS s FROM {numbers})");
    for sql in [
        // Both fields are the one number.
        format!("SELECT count(*) FROM {structs} WHERE s.a <> s.b"),
        format!("SELECT sum(s.a - s.b) FROM {structs}"),
        format!("SELECT bool_and(s.a = s.b), max(s.i) FROM {structs}"),
        format!("SELECT count(*) FROM (SELECT s.a FROM {structs} GROUP BY s.a, s.b HAVING s.a <> s.b)"),
        format!("SELECT s.i FROM {structs} ORDER BY s.a - s.b, s.i LIMIT 5"),
        // Elements have numbers of their own, which are asked for once.
        "SELECT count(*) FROM (SELECT unnest(list_transform(range(0, 3000), x -> random())) AS v) \
         WHERE v < 0 OR v >= 1"
            .into(),
        "SELECT count(DISTINCT v) FROM \
         (SELECT i, unnest(list_transform(range(0, 100), x -> random())) AS v FROM range(0, 30) t(i))"
            .into(),
        "SELECT count(DISTINCT v) FROM (SELECT unnest(flatten(list_transform(range(0, 30), \
         x -> list_transform(range(0, x), y -> random())))) AS v FROM range(0, 7) t(i))"
            .into(),
        "SELECT count(DISTINCT v) FROM (SELECT i, \
         unnest(list_transform([i, i], x -> random() + random())) AS v FROM range(0, 100) t(i))"
            .into(),
        "SELECT sum(array_length(list_filter(range(0, 3000), x -> random() < 0.5))) BETWEEN 2000 AND 4000 \
         FROM range(0, 2) t(i)"
            .into(),
        "SELECT count(*) FROM range(0, 100) t(i) GROUP BY \
         array_any_match(range(0, 64), x -> random() < 0.5)"
            .into(),
    ] {
        pair.check(&sql);
    }
}

#[test]
fn random_numbers_are_those_of_the_cpu_engine() {
    let pair = strict();
    // All bits of uniform numbers and integers.
    check(&pair, "SELECT i, random(42, i) AS r FROM range(-1000, 3000) t(i) ORDER BY i");
    check(
        &pair,
        "SELECT i, random(i, 7) AS r, random(i, i * 3074457345618258) AS s FROM range(0, 3000) t(i) ORDER BY i",
    );
    check(
        &pair,
        "SELECT i, random_integer(1, i, -5, 5) AS r, random_integer(1, i, i, i + 1000000007) AS s \
                  FROM range(0, 3000) t(i) ORDER BY i",
    );
    check(
        &pair,
        "SELECT i, random_integer(9, i, -9223372036854775808, 9223372036854775807) AS r \
                  FROM range(0, 1000) t(i) ORDER BY i",
    );
    check(
        &pair,
        "SELECT i, round(random_normal(3, i) * 1e9) AS r FROM range(0, 3000) t(i) ORDER BY i",
    );
    check(
        &pair,
        "SELECT i, random_poisson(3, i, 4.5) AS r, random_poisson(3, i, i / 10.0) AS s, \
                  random_poisson(4, i, CAST(1300 AS DOUBLE)) AS t FROM range(0, 2000) t(i) ORDER BY i",
    );
    // Nulls stay null, whatever lies under them.
    check(
        &pair,
        "SELECT i, random(i, n) AS r, random_integer(i, n, n, 3) AS s, random_poisson(i, i, n * 1.5) AS p \
                  FROM (SELECT i, CASE WHEN i % 3 > 0 THEN i % 3 END AS n FROM range(0, 1000) t(i)) ORDER BY i",
    );
    check(&pair, "SELECT count(*) AS n FROM range(0, 20000) t(i) WHERE random(1, i) < 0.25");
    check(
        &pair,
        "SELECT avg(CASE WHEN power(random(1, i), 2) + power(random(2, i), 2) < 1 THEN 4 ELSE 0 END) AS pi \
                  FROM range(0, 100000) t(i)",
    );
    // The known answer of Philox-4x32-10 for a counter and a key of zeros.
    let zero = run(&pair.device, "SELECT random(0, i) AS r FROM range(1) t(i)").expect("it runs");
    let word = 0xe169_c58d_6627_e8d5_u64 >> 11;
    assert_eq!(zero.item::<f64>().expect("a value"), word as f64 / (1u64 << 53) as f64);
}

#[test]
fn random_numbers_of_what_is_not_there_are_errors() {
    let pair = strict();
    for sql in [
        "SELECT random_integer(1, i, 5, 4 - i) FROM range(0, 10) t(i)",
        "SELECT random_poisson(1, i, -1.0 - i) FROM range(0, 10) t(i)",
        "SELECT random_poisson(1, i, CAST('NaN' AS DOUBLE) + i) FROM range(0, 10) t(i)",
        "SELECT random_poisson(1, i, 1e7 + i) FROM range(0, 10) t(i)",
    ] {
        let error = run(&pair.device, sql).expect_err(sql);
        assert!(!matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
        run(&pair.cpu, sql).expect_err(sql);
    }
    let error =
        run(&pair.cpu, "SELECT random_integer(1, 2, 5, 4)").expect_err("no integer is there");
    assert!(error.to_string().contains("no integer is between 5 and 4"), "{error}");
    run(&pair.cpu, "SELECT random() < 1").expect("DataFusion's is still there");
}

#[test]
fn values_fall_into_the_buckets_of_the_cpu_engine() {
    let pair = strict();
    check(
        &pair,
        "SELECT i, width_bucket(i, 0, 100, 7) AS a, width_bucket(i / 3.0, -50, 1000, 13) AS b, \
                  width_bucket(random(1, i), 1, 0, 10) AS c, width_bucket(i, i - 1, i + 2, i * i + 1) AS d \
                  FROM range(-200, 2000) t(i) ORDER BY i",
    );
    check(
        &pair,
        "SELECT width_bucket(random_normal(5, i), -4, 4, 64) AS bucket, count(*) AS n FROM range(0, 50000) t(i) \
                  GROUP BY bucket ORDER BY bucket",
    );
    check(
        &pair,
        "SELECT i, width_bucket(n, 0, 2, n) AS a FROM (SELECT i, CASE WHEN i % 3 > 0 THEN i % 3 END AS n \
                  FROM range(0, 100) t(i)) ORDER BY i",
    );
    for arguments in [
        "i, 0, 1, 0 * i",
        "i, i, i, 3",
        "CAST('NaN' AS DOUBLE) + i, 0, 1, 2",
        "i, 0, CAST('inf' AS DOUBLE), 2",
    ] {
        let sql = format!("SELECT width_bucket({arguments}) FROM range(0, 10) t(i)");
        run(&pair.cpu, &sql).expect_err(&sql);
        let error = run(&pair.device, &sql).expect_err(&sql);
        assert!(!matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    }
}

#[test]
fn a_series_is_called_as_its_function_or_as_its_table() {
    let pair = strict();
    for (from, name) in [
        ("range(3)", "range"),
        ("generate_series(1, 3)", "generate_series"),
        ("range(3) AS r", "r"),
        ("range(3) AS r(i)", "i"),
    ] {
        for session in [&pair.cpu, &pair.device] {
            let frame = run(session, &format!("FROM {from}")).unwrap();
            assert_eq!(frame.column_names(), [name], "{from}");
        }
        check(&pair, &format!("SELECT sum({name}) FROM {from} WHERE {name} > 1"));
    }
    let days =
        "SELECT range::DATE FROM range(DATE '2024-01-01', DATE '2024-01-03', INTERVAL 1 DAY)";
    assert_eq!(run(&pair.cpu, days).unwrap().num_rows(), 2);
}
