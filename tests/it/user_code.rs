//! Functions that users write: the same as the built-in expressions that say the same, wherever an
//! expression may stand, on the device alone; and what is said of those that are wrong.

mod aggregates;
mod closures;
mod errors;
mod functions;

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
    session.execute(text).unwrap_or_else(|error| panic!("{text}: {error}"));
}

fn refused(session: &Session, text: &str) -> Error {
    session.execute(text).err().unwrap_or_else(|| panic!("it is made: {text}"))
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

/// Columns of most types, with garbage under nulls.
fn conformance(rows: usize) -> Vec<warpframe::arrow::array::RecordBatch> {
    let values = format!(
        "SELECT value AS id, value % 17 AS k,
                CASE WHEN value % 7 <> 0 THEN (value * 7919) % 400 - 200 END AS i,
                CASE WHEN value % 5 <> 0 THEN CAST((value * 31) % 64 AS DOUBLE) / 8 - 3 END AS f,
                CASE WHEN value % 11 <> 0 THEN repeat(chr(CAST(97 + value % 5 AS BIGINT)), value % 23) END AS s,
                CASE WHEN value % 3 <> 0 THEN DATE '2024-01-01' + CAST(value % 90 AS INT) END AS d
         FROM generate_series(1, {rows}) AS t(value)"
    );
    let session = Session::builder().device(DeviceChoice::Cpu).build().expect("a CPU session");
    run(&session, &values).and_then(|frame| frame.to_arrow()).expect("the rows are made")
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
