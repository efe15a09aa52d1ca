//! Functions of a row.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, AsArray};
use warpframe::arrow::datatypes::Float64Type;

use super::*;

/// Formulas by the functions, and as built-in expressions.
const FORMS: [(&str, &str); 8] = [
    ("plane(f, f)", "0 + f * f + f * f + f * f - f"),
    ("half(i)", "i / 2"),
    ("is_big(i)", "i > 100"),
    ("or_zero(i)", "coalesce(i, 0)"),
    ("unless_odd(i)", "CASE WHEN i % 2 = 0 THEN i END"),
    ("bytes(s)", "octet_length(s)"),
    (
        "vowels(s)",
        "octet_length(s) * 2 - octet_length(replace(s, 'a', '')) - octet_length(replace(s, 'e', ''))",
    ),
    ("later(d, 31)", "d + INTERVAL '31 days'"),
];

#[test]
fn users_functions_are_as_built_in_expressions_wherever_these_may_stand() {
    let pair = pair(&FUNCTIONS).and("t", conformance(3000));
    for forms in FORMS {
        for query in [
            "SELECT id, <0> AS v FROM t",
            "SELECT <0> AS v, count(*), count(i) FROM t GROUP BY 1",
            "SELECT min(<0>), max(<0>), count(<0>) FROM t",
            "SELECT k, min(<0>), count(DISTINCT <0>) FROM t GROUP BY k",
            "SELECT id, min(<0>) OVER (PARTITION BY k) FROM t",
            "SELECT id, CASE WHEN id % 3 = 0 THEN <0> END AS v FROM t",
            "SELECT id FROM t WHERE <0> IS NOT NULL",
            "SELECT id FROM (SELECT id, <0> AS v FROM t ORDER BY v, id LIMIT 50) AS s",
        ] {
            same(&pair, query, &[forms]);
        }
    }
    for query in [
        "SELECT id FROM t WHERE <2> AND <5> < 7",
        "SELECT id, sum(<1>) OVER (ORDER BY id) FROM t WHERE <3> <> 7",
        "SELECT a.id, b.id FROM t a JOIN t b ON half(a.k) = half(b.k) + 3 WHERE a.id < 300 AND b.id < 300",
        "SELECT count(*) FROM t a JOIN (SELECT <1> AS h FROM t WHERE id < 200) b ON a.i = b.h",
        "SELECT id, <0> + <1> AS v, <3> FROM t WHERE <0> > 0 OR <6> = 1",
    ] {
        let query = query.replace("half(a.k) = half(b.k) + 3", "a.k = b.k");
        same(&pair, &query, &FORMS);
    }
    let query = "SELECT count(*) FROM t a JOIN t b ON <0> WHERE a.id < 300 AND b.id < 300";
    same(&pair, query, &[("half(a.k) = half(b.k) + 3", "a.k / 2 = b.k / 2 + 3")]);
    let query =
        "SELECT count(*) FROM t a JOIN t b ON a.k = b.k AND <0> WHERE a.id < 300 AND b.id < 300";
    same(
        &pair,
        query,
        &[("plane(a.f, b.f) > 0", "0 + a.f * b.f + a.f * b.f + a.f * b.f - a.f > 0")],
    );
    assert!(pair.device.take_fallback_reasons().is_empty());
}

#[test]
fn functions_take_and_yield_every_type_of_one_width() {
    let types = [
        ("BOOLEAN", "true", "!x", "false"),
        ("TINYINT", "-128", "x + 1", "-127"),
        ("SMALLINT", "7", "x * 2", "14"),
        ("INTEGER", "2000000000", "x + 1", "2000000001"),
        ("BIGINT", "9000000000000000000", "x + 1", "9000000000000000001"),
        ("TINYINT UNSIGNED", "255", "x - 1", "254"),
        ("SMALLINT UNSIGNED", "65535", "x - 1", "65534"),
        ("INTEGER UNSIGNED", "4294967295", "x - 1", "4294967294"),
        ("BIGINT UNSIGNED", "18446744073709551615", "x - 1", "18446744073709551614"),
        ("REAL", "1.5", "x * 2", "3.0"),
        ("DOUBLE", "1e300", "x * 2", "2e300"),
        ("DECIMAL(9, 2)", "12.34", "x + 1", "12.35"),
        ("DECIMAL(38, 2)", "12.34", "x * 100", "1234.00"),
        ("DATE", "'2024-02-28'", "x + 1", "'2024-02-29'"),
        ("TIMESTAMP", "'2024-02-28T00:00:00'", "x + 1000000", "'2024-02-28T00:00:01'"),
        ("TIME", "'10:00:00'", "x + 1000000000", "'10:00:01'"),
    ];
    let pair = pair(&[]);
    for (of, value, formula, expected) in types {
        let text = format!(
            "CREATE OR REPLACE FUNCTION f(x {of}) RETURNS {of} LANGUAGE CUDA AS $$ return {formula}; $$"
        );
        create(&pair.cpu, &text);
        create(&pair.device, &text);
        let query = format!(
            "SELECT f(v) = CAST({expected} AS {of}) AS same, f(NULL) IS NULL AS no
             FROM (SELECT CAST({value} AS {of}) AS v UNION ALL SELECT NULL) AS t ORDER BY 1"
        );
        for session in [&pair.device, &pair.cpu] {
            let rows =
                Rows::of(&run(session, &query).unwrap_or_else(|error| panic!("{of}: {error}")))
                    .rows;
            assert_eq!(rows, [[Cell::Int(1), Cell::Int(1)], [Cell::Null, Cell::Int(1)]], "{of}");
        }
    }
}

/// A body is not called with what lies under nulls, nor for rows that nobody asks for.
#[test]
fn bodies_see_only_what_is_asked_for() {
    let collatz = "CREATE FUNCTION steps(n BIGINT) RETURNS BIGINT LANGUAGE CUDA AS $$
                       long long steps = 0;
                       while (n != 1) {
                           n = n % 2 == 0 ? n / 2 : 3 * n + 1;
                           steps++;
                       }
                       return steps;
                   $$";
    let pair = pair(&[collatz]);
    let rows = "(VALUES (27), (0), (-1), (NULL), (1)) AS t(n)";
    let expected = [[Cell::Int(27), Cell::Int(111)], [Cell::Int(1), Cell::Int(0)]];
    for session in [&pair.device, &pair.cpu] {
        let found = Rows::of(
            &run(session, &format!("SELECT n, steps(n) FROM {rows} WHERE n > 0")).expect("it runs"),
        );
        assert_eq!(found.rows, expected);
        let query = format!(
            "SELECT n, CASE WHEN n > 0 THEN steps(n) END AS s FROM {rows} WHERE n > 0 AND steps(n) >= 0"
        );
        assert_eq!(Rows::of(&run(session, &query).expect("it runs")).rows, expected);
    }
    let query = format!("SELECT sum(CASE WHEN n > 0 THEN steps(n) END) FROM {rows}");
    assert_eq!(scalar(&pair.device, &query), Cell::Int(111));
}

#[test]
fn strings_are_read() {
    let session = session(&[
        "CREATE FUNCTION order_of(a VARCHAR, b VARCHAR) RETURNS INTEGER LANGUAGE CUDA AS $$
             return a == b ? 0 : a < b ? -1 : 1;
         $$",
        "CREATE FUNCTION is_ok(s VARCHAR) RETURNS BOOLEAN LANGUAGE CUDA AS $$
             return s == \"ok\" || s.part(2, 100) == \"a string that lies elsewhere\" || s[1000] != 0;
         $$",
    ]);
    let query =
        "SELECT order_of(column1, column2) FROM (VALUES ('a', 'b'), ('a long string and more', 'a long string'),
                 ('é', 'é'), ('', 'a'), (NULL, 'a'))";
    let found = Rows::of(&run(&session, query).expect("it runs")).rows;
    assert_eq!(
        found.concat(),
        [Cell::Int(-1), Cell::Int(1), Cell::Int(0), Cell::Int(-1), Cell::Null]
    );
    let query = "SELECT is_ok(column1) FROM (VALUES ('ok'), ('okay'), ('o'), ('__a string that lies elsewhere'), (''))";
    let found = Rows::of(&run(&session, query).expect("it runs")).rows;
    let expected = [1, 0, 0, 1, 0].map(Cell::Int);
    assert_eq!(found.concat(), expected);
}

#[test]
fn arguments_are_cast_where_nothing_is_lost() {
    let session = session(&[
        "CREATE FUNCTION narrow(n INTEGER) RETURNS INTEGER LANGUAGE CUDA AS 'return n + 1;'",
        "CREATE FUNCTION real(x DOUBLE) RETURNS DOUBLE LANGUAGE CUDA AS 'return x;'",
    ]);
    assert_eq!(
        scalar(&session, "SELECT narrow(column1) FROM (VALUES (CAST(7 AS BIGINT)))"),
        Cell::Int(8)
    );
    assert_eq!(
        scalar(&session, "SELECT real(column1) FROM (VALUES (CAST(7.5 AS DECIMAL(9, 2))))"),
        Cell::Float(7.5)
    );
    let error = run(&session, "SELECT narrow(column1) FROM (VALUES (3000000000))")
        .expect_err("it does not fit");
    assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{error}");
    for query in [
        "SELECT narrow(1.5)",
        "SELECT real('1')",
        "SELECT narrow(1, 2)",
        "SELECT narrow(DATE '2024-01-01')",
    ] {
        let error = session.sql(query).expect_err("it does not fit");
        assert!(
            error.to_string().contains("takes (n INTEGER)")
                || error.to_string().contains("takes (x DOUBLE)"),
            "{error}"
        );
    }
}

#[test]
fn volatile_functions_are_neither_folded_nor_shared() {
    let session = session(&[
        "CREATE FUNCTION lane() RETURNS INTEGER VOLATILE LANGUAGE CUDA AS 'return threadIdx.x;'",
        "CREATE FUNCTION seven() RETURNS INTEGER LANGUAGE CUDA AS 'return 7;'",
    ]);
    let explained =
        session.sql("SELECT lane() AS a, lane() AS b, seven() AS c FROM generate_series(1, 3)");
    let explained = explained.and_then(|frame| frame.explain()).expect("it is planned");
    assert_eq!(explained.matches("lane()").count(), 2, "{explained}");
    let lanes = "SELECT generate_series, lane() AS lane FROM generate_series(1, 64)";
    assert_eq!(
        scalar(&session, &format!("SELECT count(DISTINCT lane) FROM ({lanes})")),
        Cell::Int(64)
    );
    // What was computed once stays: kernels that come later do not compute it again.
    let ticks = "CREATE FUNCTION ticks() RETURNS BIGINT VOLATILE LANGUAGE CUDA AS $$
                     static long long ticks = 0;
                     return ++ticks;
                 $$";
    if std::env::var("WARPFRAME_DEVICE").is_ok_and(|device| device.starts_with("cuda")) {
        return;
    }
    create(&session, ticks);
    let rows = "(SELECT generate_series, ticks() AS t FROM generate_series(1, 5000))";
    let query = format!("SELECT count(*) FROM {rows} a WHERE t % 2 = 0 AND t % 2 = 1");
    assert_eq!(scalar(&session, &query), Cell::Int(0));
    let query =
        format!("SELECT sum(n) FROM (SELECT t % 10 AS d, count(*) AS n FROM {rows} GROUP BY d)");
    assert_eq!(scalar(&session, &query), Cell::Int(5000));
    let query = "SELECT count(*) FROM (SELECT generate_series FROM generate_series(1, 5000) WHERE ticks() % 2 = 0)";
    assert_eq!(scalar(&session, query), Cell::Int(2500));
    let strict = allowed().strict(true).build().expect("the device opens");
    create(&strict, ticks);
    let groups = "SELECT count(*) FROM (SELECT ticks() % 3 AS t, count(*) AS n FROM generate_series(1, 9) GROUP BY t)";
    assert_eq!(scalar(&strict, groups), Cell::Int(3));
    let join = "SELECT count(*) FROM generate_series(1, 9) a LEFT JOIN generate_series(1, 9) b ON a.a + ticks() > b.b";
    let error = run(&strict, join).unwrap_err();
    assert!(error.to_string().contains("volatile function"), "{error}");
}

/// The CPU engine calls the closure where there is one.
#[test]
fn closures_work_on_the_host() {
    let function = || {
        ScalarFunction::new("third", [("x", DataType::Float64)], DataType::Float64, "return x / 3;")
            .on_host(|arrays| {
                let x = arrays[0].as_primitive::<Float64Type>();
                Ok(Arc::new(x.unary::<_, Float64Type>(|x| x / 3.0 + 1000.0)) as ArrayRef)
            })
    };
    let pair = Pair::new();
    pair.cpu.register_function(function()).expect("no compiler is asked");
    pair.device.register_function(function()).expect("it compiles");
    let query = "SELECT third(column1) FROM (VALUES (6.0), (NULL))";
    let found = |session: &Session| Rows::of(&run(session, query).expect("it runs")).rows.concat();
    assert_eq!(found(&pair.cpu), [Cell::Float(1002.0), Cell::Null]);
    assert_eq!(found(&pair.device), [Cell::Float(2.0), Cell::Null]);
    // What the host cannot compute ahead the device computes.
    let failing = ScalarFunction::new(
        "failing",
        [("x", DataType::Float64)],
        DataType::Float64,
        "return x + 1;",
    )
    .on_host(|_| Err(warpframe::arrow::error::ArrowError::ComputeError("no".into()).into()));
    pair.device.register_function(failing).expect("it compiles");
    assert_eq!(scalar(&pair.device, "SELECT failing(1.5)"), Cell::Float(2.5));
    let wrong =
        ScalarFunction::new("wrong", [("x", DataType::Float64)], DataType::Float64, "return x;")
            .on_host(|_| {
                Ok(Arc::new(warpframe::arrow::array::Int32Array::from(vec![1])) as ArrayRef)
            });
    pair.cpu.register_function(wrong).expect("nobody called it yet");
    let error = run(&pair.cpu, "SELECT wrong(column1) FROM (VALUES (6.0), (1.0))")
        .expect_err("it is of another type");
    assert!(error.to_string().contains("function wrong: 2 values of type DOUBLE"), "{error}");
}

/// One kernel, which reads the columns and writes the result.
#[test]
fn calls_are_fused() {
    let pair = pair(&FUNCTIONS).and("t", conformance(500));
    let launches = |query: &str| {
        run(&pair.device, query).expect("it runs");
        let before = pair.gpu().counters().launches;
        run(&pair.device, query).expect("it runs");
        pair.gpu().counters().launches - before
    };
    let by_user = launches(
        "SELECT plane(f, f) * 2 AS a, half(i) + 1 AS b, vowels(s) AS c FROM t WHERE is_big(i)",
    );
    let plain = launches(
        "SELECT f * f * 2 AS a, i / 2 + 1 AS b, octet_length(s) AS c FROM t WHERE i > 100",
    );
    assert_eq!(by_user, plain);
}
