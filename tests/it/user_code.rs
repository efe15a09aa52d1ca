//! Functions that users write: the same as the built-in expressions that say the same, wherever an
//! expression may stand, on the device alone; and what is said of those that are wrong.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, AsArray};
use warpframe::arrow::datatypes::Float64Type;
use warpframe::prelude::*;
use warpframe::{Error, ErrorKind, ScalarFunction, SessionBuilder};

use crate::differential::{Cell, Pair, Rows, builder, data, run, scalar};
use crate::tables::Shape;

fn allowed() -> SessionBuilder {
    builder().user_code(true)
}

fn session(functions: &[&str]) -> Session {
    let session = allowed().build().expect("the device opens");
    functions.iter().for_each(|text| create(&session, text));
    session
}

fn create(session: &Session, text: &str) {
    session.create_function(text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

fn refused(session: &Session, text: &str) -> Error {
    session.create_function(text).err().unwrap_or_else(|| panic!("it is made: {text}"))
}

/// A device in strict mode and the CPU engine, with functions in both.
fn pair(functions: &[&str]) -> Pair {
    let cpu = Session::builder()
        .device(DeviceChoice::Cpu)
        .user_code(true)
        .build()
        .expect("a CPU session");
    let pair = Pair {
        cpu,
        device: allowed().strict(true).build().expect("the device opens"),
        ..Pair::new()
    };
    for text in functions {
        create(&pair.cpu, text);
        create(&pair.device, text);
    }
    pair
}

/// Rows of a query by the user's function and of the same by built-in expressions, in any order.
fn same(pair: &Pair, query: &str, by_user: &[(&str, &str)]) {
    let named = |name: fn(&(&str, &str)) -> String| {
        by_user.iter().enumerate().fold(query.to_string(), |text, (at, forms)| {
            text.replace(&format!("<{at}>"), &name(forms))
        })
    };
    let (user, plain) = (named(|forms| forms.0.into()), named(|forms| forms.1.into()));
    let rows = |session: &Session, query: &str| {
        let mut rows =
            Rows::of(&run(session, query).unwrap_or_else(|error| panic!("{query}: {error}"))).rows;
        rows.sort_by_key(|row| format!("{row:?}"));
        rows
    };
    let expected = rows(&pair.cpu, &plain);
    assert!(!expected.is_empty(), "{plain}");
    assert_eq!(rows(&pair.device, &user), expected, "{user}");
    assert_eq!(rows(&pair.cpu, &user), expected, "on the CPU engine: {user}");
}

const FUNCTIONS: [&str; 8] = [
    "CREATE FUNCTION plane(x DOUBLE, y DOUBLE) RETURNS DOUBLE LANGUAGE CUDA AS $$
         double sum = 0;
         for (int i = 0; i < 3; i++) sum += x * y;
         return sum - x;
     $$",
    "CREATE FUNCTION half(n BIGINT) RETURNS BIGINT IMMUTABLE STRICT LANGUAGE CUDA AS $$ return n / 2; $$",
    "CREATE FUNCTION is_big(n BIGINT) RETURNS BOOLEAN LANGUAGE CUDA AS 'return n > 100;'",
    "CREATE FUNCTION or_zero(n BIGINT) RETURNS BIGINT CALLED ON NULL INPUT LANGUAGE CUDA AS $$
         if (n_is_null) return 0;
         return n;
     $$",
    "CREATE FUNCTION unless_odd(n BIGINT) RETURNS BIGINT LANGUAGE CUDA AS $$
         result_is_null = n % 2 != 0;
         return n;
     $$",
    "CREATE FUNCTION bytes(s VARCHAR) RETURNS INTEGER LANGUAGE CUDA AS $$ return s.size(); $$",
    "CREATE FUNCTION vowels(s VARCHAR) RETURNS BIGINT LANGUAGE CUDA AS $$
         long long count = 0;
         for (unsigned i = 0; i < s.size(); i++)
             if (s[i] == 'a' || s[i] == 'e') count++;
             else continue;
         return count;
     $$",
    "CREATE FUNCTION later(d DATE, days INTEGER) RETURNS DATE LANGUAGE CUDA AS $body$ return d + days; $body$",
];

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

/// Columns of most types, with garbage under nulls.
fn conformance(rows: usize) -> Vec<warpframe::arrow::array::RecordBatch> {
    let values = format!(
        "SELECT value AS id, value % 17 AS k,
                CASE WHEN value % 7 <> 0 THEN (value * 7919) % 400 - 200 END AS i,
                CASE WHEN value % 5 <> 0 THEN CAST((value * 31) % 64 AS DOUBLE) / 8 - 3 END AS f,
                CASE WHEN value % 11 <> 0 THEN repeat(chr(CAST(97 + value % 5 AS BIGINT)), value % 23) END AS s,
                CASE WHEN value % 3 <> 0 THEN DATE '2024-01-01' + CAST(value % 90 AS INT) END AS d
         FROM generate_series(1, {rows})"
    );
    let session = Session::builder().device(DeviceChoice::Cpu).build().expect("a CPU session");
    run(&session, &values).and_then(|frame| frame.to_arrow()).expect("the rows are made")
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
        ("TIMESTAMP", "'2024-02-28T00:00:00'", "x + 1000000000", "'2024-02-28T00:00:01'"),
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

#[test]
fn values_beyond_a_decimals_digits_and_a_day_are_errors() {
    let session = session(&[
        "CREATE FUNCTION wide(n BIGINT) RETURNS DECIMAL(5, 2) LANGUAGE CUDA AS 'return n;'",
        "CREATE FUNCTION clock(n BIGINT) RETURNS TIME LANGUAGE CUDA AS 'return n;'",
    ]);
    assert_eq!(
        scalar(&session, "SELECT CAST(wide(column1) AS VARCHAR) FROM (VALUES (99999))"),
        Cell::Text("999.99".into())
    );
    for query in
        ["SELECT wide(column1) FROM (VALUES (100000))", "SELECT clock(column1) FROM (VALUES (-1))"]
    {
        let error = run(&session, query).expect_err("it does not fit");
        assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{error}");
    }
    // Where nobody asks, nothing fails.
    assert_eq!(
        scalar(
            &session,
            "SELECT CASE WHEN column1 < 5 THEN wide(column1) END FROM (VALUES (100000))"
        ),
        Cell::Null
    );
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
fn a_wrong_body_is_told_in_its_lines_and_the_session_goes_on() {
    let session = session(&[]);
    for (body, line, column, said) in [
        ("double y = x;\n    return y + z;", 2, 16, "z"),
        ("return x +;", 1, 11, ""),
        ("return \"text\";", 1, 0, ""),
        ("double y = x;", 1, 0, ""),
        ("if (x > 0) return 1;", 1, 0, ""),
        ("int x = 0; return x;", 1, 0, ""),
        ("return nothing(x);", 1, 8, "nothing"),
        ("return row;", 1, 8, "row"),
    ] {
        let function =
            ScalarFunction::new("f", [("x", DataType::Float64)], DataType::Float64, body);
        let error = session.register_function(function).expect_err(body);
        let ErrorKind::UserCode { function, line: found, column: at, message, text } = error.kind()
        else {
            panic!("{body}: {error}");
        };
        assert_eq!((function.as_str(), *found), ("f", line), "{error}");
        assert!(column == 0 || *at == column, "{at} instead of {column}: {error}");
        assert!(message.contains(said) && !message.is_empty(), "{error}");
        assert_eq!(Some(text.as_str()), body.lines().nth(line as usize - 1), "{error}");
        let shown = error.to_string();
        assert!(
            *at == 0
                || shown
                    .lines()
                    .last()
                    .is_some_and(|last| last.find('^') == Some(*at as usize + 1)),
            "{shown}"
        );
    }
    // In a statement the places are the statement's.
    let text = "CREATE FUNCTION f(x DOUBLE) RETURNS DOUBLE\nLANGUAGE CUDA AS $$ return z;\n$$";
    let error = refused(&session, text);
    assert_eq!(error.location(), Some((2, 28)), "{error}");
    let error = refused(&session, &text.replace("return z;", "\n  return z;"));
    assert_eq!(error.location(), Some((3, 10)), "{error}");
    assert!(session.function_names().is_empty());
    assert_eq!(scalar(&session, "SELECT 1 + 1"), Cell::Int(2));
}

#[test]
fn a_division_by_zero_is_an_error_of_the_simulator() {
    if std::env::var("WARPFRAME_DEVICE").is_ok_and(|device| device.starts_with("cuda")) {
        return;
    }
    let session =
        session(&["CREATE FUNCTION share(n BIGINT, of BIGINT) RETURNS BIGINT LANGUAGE CUDA AS $$
             long long rest = n % of;
             return n / of + rest;
         $$"]);
    assert_eq!(scalar(&session, "SELECT share(column1, 4) FROM (VALUES (10))"), Cell::Int(4));
    let error = run(&session, "SELECT share(1, column1) FROM (VALUES (0))")
        .expect_err("nothing is divided by zero");
    let ErrorKind::UserCode { function, line: 2, column, message, text } = error.kind() else {
        panic!("{error}")
    };
    assert!(
        function == "share" && message.contains("divided by zero") && text.contains("n % of"),
        "{error}"
    );
    assert_eq!(text.chars().nth(*column as usize - 1), Some('%'), "{error}");
    assert_eq!(scalar(&session, "SELECT share(column1, 4) FROM (VALUES (10))"), Cell::Int(4));
}

#[test]
fn a_loop_without_an_end_is_an_error_of_the_simulator() {
    if std::env::var("WARPFRAME_DEVICE").is_ok_and(|device| device.starts_with("cuda")) {
        return;
    }
    let session = session(&["CREATE FUNCTION stuck(n BIGINT) RETURNS BIGINT LANGUAGE CUDA AS $$
             long long m = n;
             while (m < 10) if (m > 5) m--; else m++;
             return m;
         $$"]);
    assert_eq!(scalar(&session, "SELECT stuck(column1) FROM (VALUES (10))"), Cell::Int(10));
    let error =
        run(&session, "SELECT stuck(column1) FROM (VALUES (3))").expect_err("it does not end");
    let ErrorKind::UserCode { function, line: 3, message, text, .. } = error.kind() else {
        panic!("{error}")
    };
    assert!(
        function == "stuck" && message.contains("does not end") && text.contains("while"),
        "{error}"
    );
    assert_eq!(scalar(&session, "SELECT stuck(column1) FROM (VALUES (11))"), Cell::Int(11));
}

#[test]
fn statements_say_what_is_wrong_with_them() {
    let session = session(&["CREATE FUNCTION one() RETURNS BIGINT LANGUAGE CUDA AS 'return 1;'"]);
    let of = |rest: &str| format!("CREATE FUNCTION f{rest}");
    for (text, at, said) in [
        (of(" RETURNS INT"), Some((1, 19)), "expected ( and the arguments"),
        (of("(x) RETURNS INT LANGUAGE CUDA AS ''"), Some((1, 20)), "expected a data type"),
        (of("(x INT) LANGUAGE CUDA AS ''"), Some((1, 26)), "expected RETURNS, found LANGUAGE"),
        (of("(x INT) RETURNS INT AS 'return 1;'"), Some((1, 52)), "expected LANGUAGE CUDA"),
        (of("(x INT) RETURNS INT LANGUAGE CUDA"), Some((1, 51)), "expected AS $$ body $$"),
        (of("(x INT) RETURNS INT LANGUAGE SQL AS '1'"), Some((1, 38)), "LANGUAGE CUDA is known"),
        (of("(x INT) RETURNS INT STRICT STRICT LANGUAGE CUDA AS ''"), Some((1, 45)), "said before"),
        (of("(x INT) RETURNS INT LANGUAGE CUDA AS 'return 1;' QUICKLY"), Some((1, 67)), "VOLATILE"),
        (of("(x NUMBR) RETURNS INT LANGUAGE CUDA AS ''"), Some((1, 21)), "NUMBR"),
        (
            "CREATE FUNCTION one() RETURNS BIGINT LANGUAGE CUDA AS 'return 2;'".into(),
            Some((1, 17)),
            "OR REPLACE",
        ),
        (
            "CREATE FUNCTION upper(s INT) RETURNS INT LANGUAGE CUDA AS 'return s;'".into(),
            Some((1, 17)),
            "engine's",
        ),
        (
            "CREATE FUNCTION sum(s INT) RETURNS INT LANGUAGE CUDA AS 'return s;'".into(),
            Some((1, 17)),
            "engine's",
        ),
        (
            of("(x INT, x INT) RETURNS INT LANGUAGE CUDA AS 'return x;'"),
            Some((1, 17)),
            "two arguments",
        ),
        (
            of("(\"x y\" INT) RETURNS INT LANGUAGE CUDA AS 'return 1;'"),
            Some((1, 17)),
            "no name of an argument",
        ),
        (
            of("(x INT) RETURNS VARCHAR LANGUAGE CUDA AS 'return 1;'"),
            Some((1, 17)),
            "yield no strings",
        ),
        (of("(x INT[]) RETURNS INT LANGUAGE CUDA AS 'return 1;'"), Some((1, 17)), "no such type"),
        (of("(int INT) RETURNS INT LANGUAGE CUDA AS 'return 1;'"), None, ""),
        ("SELECT 1".into(), Some((1, 1)), "expected CREATE"),
    ] {
        let error = refused(&session, &text);
        assert!(error.to_string().contains(said), "{text}: {error}");
        assert!(at.is_none() || error.location() == at, "{text}: {:?} {error}", error.location());
    }
    assert_eq!(session.function_names(), ["one"]);
    create(
        &session,
        "CREATE FUNCTION IF NOT EXISTS one() RETURNS BIGINT LANGUAGE CUDA AS 'return 2;'",
    );
    assert_eq!(scalar(&session, "SELECT one()"), Cell::Int(1));
    // Another function under the same name, for a text that was planned before.
    create(
        &session,
        "CREATE OR REPLACE FUNCTION one() RETURNS BIGINT LANGUAGE CUDA AS 'return 3;'",
    );
    assert_eq!(scalar(&session, "SELECT one()"), Cell::Int(3));
    let error = session.sql("SELECT one('a')").expect_err("it takes none");
    assert!(error.to_string().contains("one"), "{error}");
    session.deregister_function("one").expect("it is there");
    assert!(session.sql("SELECT one()").is_err() && session.deregister_function("upper").is_err());
    for (text, method) in [
        (
            "CREATE OR REPLACE FUNCTION f() RETURNS INT LANGUAGE CUDA AS $$ return 1; $$",
            "Session::create_function",
        ),
        ("DROP FUNCTION f", "Session::deregister_function"),
    ] {
        let error = session.sql(text).expect_err("it is no query");
        assert!(
            matches!(error.kind(), ErrorKind::Unsupported { .. })
                && error.to_string().contains(method),
            "{error}"
        );
    }
    let plain = builder().build().expect("the device opens");
    let error = plain
        .create_function("CREATE FUNCTION one() RETURNS BIGINT LANGUAGE CUDA AS 'return 1;'")
        .unwrap_err();
    assert!(error.to_string().contains("user_code(true)"), "{error}");
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
            error.to_string().contains("takes (n Int32)")
                || error.to_string().contains("takes (x Float64)"),
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
    let lanes = "SELECT value, lane() AS lane FROM generate_series(1, 64)";
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
    let rows = "(SELECT value, ticks() AS t FROM generate_series(1, 5000))";
    let query = format!("SELECT count(*) FROM {rows} a WHERE t % 2 = 0 AND t % 2 = 1");
    assert_eq!(scalar(&session, &query), Cell::Int(0));
    let query =
        format!("SELECT sum(n) FROM (SELECT t % 10 AS d, count(*) AS n FROM {rows} GROUP BY d)");
    assert_eq!(scalar(&session, &query), Cell::Int(5000));
    let query =
        "SELECT count(*) FROM (SELECT value FROM generate_series(1, 5000) WHERE ticks() % 2 = 0)";
    assert_eq!(scalar(&session, query), Cell::Int(2500));
    let strict = allowed().strict(true).build().expect("the device opens");
    create(&strict, ticks);
    let groups = "SELECT count(*) FROM (SELECT ticks() % 3 AS t, count(*) AS n FROM generate_series(1, 9) GROUP BY t)";
    assert_eq!(scalar(&strict, groups), Cell::Int(3));
    let join = "SELECT count(*) FROM generate_series(1, 9) a LEFT JOIN generate_series(1, 9) b ON a.value + ticks() > b.value";
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
    assert!(error.to_string().contains("function wrong: 2 values of type Float64"), "{error}");
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

const AGGREGATES: [&str; 4] = [
    "CREATE AGGREGATE l2norm(x DOUBLE) RETURNS DOUBLE LANGUAGE CUDA (
         STATE (sum DOUBLE), IDENTITY $$ s.sum = 0; $$, MAP $$ s.sum = x * x; $$,
         COMBINE $$ a.sum += b.sum; $$, FINISH $$ return sqrt(s.sum); $$)",
    // Of one row and of none, and several fields of several types.
    "CREATE AGGREGATE spread(n BIGINT, f DOUBLE) RETURNS DOUBLE LANGUAGE CUDA (
         STATE (least BIGINT, greatest BIGINT, any BOOLEAN, rows INTEGER, sum DOUBLE),
         IDENTITY $$ s.any = false; s.least = 0; s.greatest = 0; s.rows = 0; s.sum = 0; $$,
         MAP $$ s.least = s.greatest = n; s.any = true; s.rows = 1; s.sum = f; $$,
         COMBINE $$
             if (!b.any) return;
             if (!a.any || b.least < a.least) a.least = b.least;
             if (!a.any || b.greatest > a.greatest) a.greatest = b.greatest;
             a.any = true;
             a.rows += b.rows;
             a.sum += b.sum;
         $$,
         FINISH $$
             result_is_null = s.rows == 1;
             return s.greatest - s.least + s.sum / 1024 + s.rows;
         $$)",
    // A polynomial hash: not commutative.
    "CREATE AGGREGATE digest(n BIGINT) RETURNS BIGINT UNSIGNED LANGUAGE CUDA (
         ORDERED, STATE (hash BIGINT UNSIGNED, factor BIGINT UNSIGNED),
         IDENTITY $$ s.hash = 0; s.factor = 1; $$, MAP $$ s.hash = n; s.factor = 31; $$,
         COMBINE $$ a.hash = a.hash * b.factor + b.hash; a.factor *= b.factor; $$, FINISH $$ return s.hash; $$)",
    "CREATE AGGREGATE letters(s VARCHAR) RETURNS BIGINT LANGUAGE CUDA (
         STATE (count BIGINT), IDENTITY 's.count = 0;',
         MAP $$ for (unsigned i = 0; i < s_.size(); i++) s.count++; $$, COMBINE 'a.count += b.count;',
         FINISH 'return s.count;')",
];

fn aggregates() -> Vec<String> {
    // The argument must not have the state's name.
    AGGREGATES
        .iter()
        .map(|text| text.replace("letters(s VARCHAR)", "letters(s_ VARCHAR)"))
        .collect()
}

#[test]
fn users_aggregates_are_as_built_in_ones() {
    let texts = aggregates();
    let pair =
        pair(&texts.iter().map(String::as_str).collect::<Vec<_>>()).and("t", conformance(7000));
    // Sums of eighths are exact, in any order.
    let forms = [
        ("l2norm(f)", "sqrt(sum(f * f))"),
        (
            "spread(i, f)",
            "CASE WHEN count(CASE WHEN f IS NOT NULL THEN i END) > 1 THEN
                 max(CASE WHEN f IS NOT NULL THEN i END) - min(CASE WHEN f IS NOT NULL THEN i END)
                 + sum(CASE WHEN i IS NOT NULL THEN f END) / 1024 + count(CASE WHEN f IS NOT NULL THEN i END) END",
        ),
        ("letters(s)", "CAST(sum(octet_length(s)) AS BIGINT)"),
    ];
    for query in [
        "SELECT <0>, <1>, <2> FROM t",
        "SELECT k, <0>, <1>, <2>, count(*) FROM t GROUP BY k",
        "SELECT id, <0>, <1>, <2> FROM t WHERE id < 300 GROUP BY id",
        "SELECT k, d, <0>, <1> FROM t WHERE id % 3 = 0 GROUP BY k, d",
        "SELECT <0>, <1>, <2> FROM t WHERE id < 0",
        "SELECT k, <0> + 1 AS v FROM t GROUP BY k HAVING <2> > 10",
        "SELECT a.k, <0> FROM t a JOIN (SELECT DISTINCT k AS j FROM t) AS b ON a.k = b.j GROUP BY a.k",
    ] {
        same(&pair, query, &forms);
    }
    let filters = [("l2norm(f) FILTER (WHERE i > 0)", "sqrt(sum(f * f) FILTER (WHERE i > 0))")];
    same(&pair, "SELECT k, <0> FROM t GROUP BY k", &filters);
    let distinct = [(
        "l2norm(DISTINCT f)",
        "(SELECT sqrt(sum(g * g)) FROM (SELECT DISTINCT f AS g FROM t) AS s)",
    )];
    same(&pair, "SELECT <0> AS v FROM t LIMIT 1", &distinct);
    let windows = [("l2norm(f) OVER (PARTITION BY k)", "sqrt(sum(f * f) OVER (PARTITION BY k))")];
    same(&pair, "SELECT id, <0> FROM t", &windows);
    assert!(pair.device.take_fallback_reasons().is_empty());
}

#[test]
fn ordered_aggregates_see_rows_in_their_order() {
    let texts = aggregates();
    let pair = pair(&[&texts[2]]).and("t", conformance(5000));
    let expected = |keep: &dyn Fn(i64) -> bool, up: bool| {
        let mut rows: Vec<i64> = (1..=5000).filter(|n| keep(*n)).collect();
        if !up {
            rows.reverse();
        }
        let values = rows.iter().filter(|n| *n % 7 != 0).map(|n| ((n * 7919) % 400 - 200) as u64);
        Cell::Int(i128::from(
            values.fold(0u64, |hash, value| hash.wrapping_mul(31).wrapping_add(value)),
        ))
    };
    for session in [&pair.device, &pair.cpu] {
        assert_eq!(
            scalar(session, "SELECT digest(i ORDER BY id) FROM t"),
            expected(&|_| true, true)
        );
        assert_eq!(
            scalar(session, "SELECT digest(i ORDER BY id DESC) FROM t"),
            expected(&|_| true, false)
        );
        let rows = Rows::of(
            &run(session, "SELECT k, digest(i ORDER BY id) FROM t GROUP BY k").expect("it runs"),
        )
        .rows;
        assert_eq!(rows.len(), 17);
        for row in rows {
            let Cell::Int(k) = row[0] else { panic!("{row:?}") };
            assert_eq!(row[1], expected(&|n| i128::from(n % 17) == k, true), "{k}");
        }
    }
    assert_eq!(scalar(&pair.device, "SELECT digest(i) FROM t"), expected(&|_| true, true));
}

#[test]
fn wrong_aggregates_are_told_in_their_lines() {
    let session = session(&[]);
    let of = |rest: &str| {
        format!("CREATE AGGREGATE a(x DOUBLE) RETURNS DOUBLE LANGUAGE CUDA (\n{rest})")
    };
    let whole = "STATE (sum DOUBLE), IDENTITY 's.sum = 0;',\nMAP 's.sum = x;',\nCOMBINE 'a.sum += b.sum;',\nFINISH 'return s.sum;'";
    create(&session, &of(whole));
    for (text, at, said) in [
        (
            of(&whole.replace("a.sum += b.sum", "a.sum += c.sum"))
                .replace("CREATE", "CREATE OR REPLACE"),
            (4, 19),
            "c",
        ),
        (
            of(&whole.replace("return s.sum;", "")).replace("CREATE", "CREATE OR REPLACE"),
            (5, 9),
            "return",
        ),
        (
            of(&whole.replace("s.sum = x", "s.total = x")).replace("CREATE", "CREATE OR REPLACE"),
            (3, 8),
            "total",
        ),
        (of(whole), (1, 18), "OR REPLACE"),
        (
            of(&whole.replace(",\nFINISH 'return s.sum;'", "")).replace(" a(", " b("),
            (1, 18),
            "has no FINISH",
        ),
        (
            of(&whole.replace("STATE (sum DOUBLE), ", "")).replace(" a(", " b("),
            (1, 18),
            "fields of its state",
        ),
        (of(&format!("{whole}, ORDERED, ORDERED")), (5, 34), "ORDERED was said before"),
        (of(&whole.replace("MAP", "MAPS")), (3, 1), "found MAPS"),
        (
            of(&whole.replace("sum DOUBLE", "sum VARCHAR")).replace(" a(", " b("),
            (1, 18),
            "numbers only",
        ),
    ] {
        let error = refused(&session, &text);
        assert!(error.to_string().contains(said), "{text}: {error}");
        assert_eq!(error.location().map(|(line, _)| line), Some(at.0), "{text}: {error}");
        assert!(
            error.location() == Some(at) || at == (5, 9),
            "{text}: {:?} {error}",
            error.location()
        );
    }
    assert_eq!(scalar(&session, "SELECT a(column1) FROM (VALUES (1.5), (2.0))"), Cell::Float(3.5));
    assert_eq!(session.function_names(), ["a"]);
    session.deregister_function("a").expect("it is there");
    assert!(session.sql("SELECT a(1.5)").is_err());
}

/// Tables of all shapes: empty ones, one row, sliced arrays, nulls with garbage beneath, NaN.
#[test]
fn tables_of_all_shapes_are_computed() {
    let texts = [
        "CREATE FUNCTION mixed(x DOUBLE, n BIGINT) RETURNS DOUBLE LANGUAGE CUDA AS 'return x < 0 ? -x : x;'",
        "CREATE FUNCTION low(n BIGINT) RETURNS BIGINT LANGUAGE CUDA AS 'return n & 255;'",
        "CREATE FUNCTION length_of(s VARCHAR) RETURNS INTEGER LANGUAGE CUDA AS 'return s.size();'",
        "CREATE AGGREGATE ored(n BIGINT) RETURNS BIGINT LANGUAGE CUDA (
             STATE (bits BIGINT), IDENTITY 's.bits = 0;', MAP 's.bits = n;', COMBINE 'a.bits |= b.bits;',
             FINISH 'return s.bits;')",
    ];
    for shape in Shape::all() {
        let pair = pair(&texts).and("t", shape.batches()).from(format!("{shape:?}"));
        for (user, plain) in [
            (
                "SELECT id, mixed(f64, i64) AS v FROM t",
                "SELECT id, CASE WHEN i64 IS NOT NULL THEN abs(f64) END AS v FROM t",
            ),
            ("SELECT id FROM t WHERE low(i64) > 100", "SELECT id FROM t WHERE (i64 & 255) > 100"),
            (
                "SELECT id, length_of(s) AS v FROM t",
                "SELECT id, CAST(octet_length(s) AS INT) AS v FROM t",
            ),
            (
                "SELECT id, length_of(sd) AS v FROM t",
                "SELECT id, CAST(octet_length(sd) AS INT) AS v FROM t",
            ),
            (
                "SELECT k, ored(i64) AS v FROM t GROUP BY k",
                "SELECT k, bit_or(i64) AS v FROM t GROUP BY k",
            ),
            ("SELECT ored(i64) AS v FROM t", "SELECT bit_or(i64) AS v FROM t"),
        ] {
            let rows = |session: &Session, query: &str| {
                Rows::of(
                    &run(session, query)
                        .unwrap_or_else(|error| panic!("{query}, {shape:?}: {error}")),
                )
            };
            let (expected, found) = (rows(&pair.cpu, plain), rows(&pair.device, user));
            assert_eq!(found.difference(&expected, false), None, "{user}, {shape:?}");
        }
    }
}

/// The statements and queries of the page on users' code, in one session.
#[test]
fn the_page_on_users_code_is_right() {
    for session in [
        session(&[]),
        Session::builder().device(DeviceChoice::Cpu).user_code(true).build().expect("a session"),
    ] {
        let mut queries = 0;
        for block in include_str!("../../docs/user-code.md").split("```sql\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            for statement in block.split(";\n\n").map(str::trim).filter(|text| !text.is_empty()) {
                let statement = statement
                    .trim_end_matches(';')
                    .replace("'data/", &format!("'{}", data("").display()));
                match statement.strip_prefix("DROP FUNCTION ") {
                    Some(name) => session.deregister_function(name).expect("it is there"),
                    None if statement.starts_with("CREATE") => create(&session, &statement),
                    None => {
                        let rows = run(&session, &statement)
                            .unwrap_or_else(|error| panic!("{statement}: {error}"));
                        assert!(rows.num_rows() > 0, "{statement}");
                        queries += 1;
                    }
                }
            }
        }
        assert_eq!(queries, 6);
    }
}
