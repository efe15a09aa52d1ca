//! Errors name the operator or function, its values and the columns: on the device, and where the
//! CPU engine says as much, there.

use std::sync::Arc;

use warpframe::arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use warpframe::{Error, ErrorKind, Fault, Operation};

use crate::differential::{Pair, run};
use crate::tables::columns;

/// A statement that fails, and what its error says on the device.
struct Failing {
    sql: &'static str,
    fault: Fault,
    text: &'static str,
    /// What the CPU engine's error says of it; nothing where it names no value.
    cpu: &'static str,
}

const fn failing(
    sql: &'static str,
    fault: Fault,
    text: &'static str,
    cpu: &'static str,
) -> Failing {
    Failing { sql, fault, text, cpu }
}

const MOST: &str = "99999999999999999999999999999999999999";

const ARITHMETIC: &[Failing] = &[
    failing(
        "SELECT 100 / z FROM t",
        Fault::DivideByZero,
        "Divide by zero error: 100 / 0 in 100 / t.z",
        "Divide by zero error",
    ),
    failing(
        "SELECT k % z FROM t",
        Fault::DivideByZero,
        "Divide by zero error: 1 % 0 in t.k % t.z",
        "Divide by zero error",
    ),
    failing(
        "SELECT CAST(7.5 AS decimal(4, 2)) / d FROM e",
        Fault::DivideByZero,
        "Divide by zero error: 7.50 / 0.00 in 7.50 / e.d",
        "Divide by zero error",
    ),
    failing(
        "SELECT d + d FROM t",
        Fault::Overflow,
        "Arithmetic overflow: {MOST} + {MOST} in t.d + t.d",
        "Overflow happened on: {MOST} + {MOST}",
    ),
    failing(
        "SELECT d * 20 FROM t",
        Fault::Overflow,
        "Arithmetic overflow: {MOST} * 20 in t.d * 20",
        "Overflow happened on: {MOST} * 20",
    ),
    failing(
        "SELECT abs(least) FROM t",
        Fault::Overflow,
        "Arithmetic overflow: abs(-9223372036854775808) in abs(t.least)",
        "overflow on abs(-9223372036854775808)",
    ),
    failing(
        "SELECT factorial(big) FROM t",
        Fault::Overflow,
        "Arithmetic overflow: factorial(5000000000) in factorial(t.big)",
        "FACTORIAL(5000000000)",
    ),
    failing(
        "SELECT lcm(big, 9223372036854775807) FROM t WHERE big = 2",
        Fault::Overflow,
        "Arithmetic overflow: lcm(2, 9223372036854775807) in lcm(t.big, 9223372036854775807)",
        "LCM(2, 9223372036854775807)",
    ),
    failing(
        "SELECT day + INTERVAL '1 month' FROM t",
        Fault::Overflow,
        "Arithmetic overflow: 2147483647 + 1 mons in t.day + 1 mons",
        "overflow: 2147483647 + ",
    ),
    failing(
        "SELECT date_trunc('month', ts) FROM t",
        Fault::Overflow,
        "Arithmetic overflow: date_trunc('month', -9223372036854775801) in date_trunc('month', t.ts)",
        "-9223372036854775801",
    ),
];

const CASTS: &[Failing] = &[
    failing(
        "SELECT CAST(s AS int) FROM t",
        Fault::Cast,
        "Cast error: Cannot cast string 'seven' to value of INTEGER type in CAST(t.s AS INTEGER)",
        "Cast error: Cannot cast string 'seven' to value of INTEGER type",
    ),
    failing(
        "SELECT CAST(s || 'x' AS int) FROM t WHERE k = 2",
        Fault::Cast,
        "Cast error: Cannot cast string 'sevenx' to value of INTEGER type in CAST(t.s || 'x' AS INTEGER)",
        "Cast error: Cannot cast string 'sevenx' to value of INTEGER type",
    ),
    failing(
        "SELECT CAST([s, s] AS int[]) FROM t",
        Fault::Cast,
        "Cannot cast string 'seven' to value of INTEGER type in CAST(make_array(t.s, t.s) AS INTEGER[])",
        "Cast error: Cannot cast string 'seven' to value of INTEGER type",
    ),
    failing(
        "SELECT CAST(s AS date) FROM t WHERE k = 2",
        Fault::Cast,
        "Cannot cast string 'seven' to value of DATE type in CAST(t.s AS DATE)",
        "Cannot cast string 'seven' to value of DATE type",
    ),
    failing(
        "SELECT CAST(big AS smallint) FROM t",
        Fault::Cast,
        "Cast error: Can't cast value 5000000000 to type SMALLINT in CAST(t.big AS SMALLINT)",
        "Cast error: Can't cast value 5000000000 to type SMALLINT",
    ),
    failing(
        "SELECT CAST(f AS int) FROM t",
        Fault::Cast,
        "Cast error: Can't cast value 10000000000.0 to type INTEGER in CAST(t.f AS INTEGER)",
        "Cast error: Can't cast value 10000000000.0 to type INTEGER",
    ),
    failing(
        "SELECT CAST(big AS decimal(10, 2)) FROM t",
        Fault::Cast,
        "Can't cast value 5000000000 to type DECIMAL(10,2) in CAST(t.big AS DECIMAL(10,2))",
        "5000000000.00 is too large to store in a DECIMAL of precision 10",
    ),
    failing(
        "SELECT CAST(d AS bigint) FROM t",
        Fault::Cast,
        "Can't cast value {MOST} to type BIGINT in CAST(t.d AS BIGINT)",
        "value of {MOST} is out of range BIGINT",
    ),
];

const FUNCTIONS: &[Failing] = &[
    failing(
        "SELECT sqrt(f - 2) FROM t WHERE k < 2",
        Fault::Domain,
        ": sqrt(-0.5) in sqrt(t.f - 2)",
        "square root",
    ),
    failing(
        "SELECT power(f - 1.5, z - 5) FROM t WHERE k < 2",
        Fault::Domain,
        ": power(0.0, -2.0) in power(t.f - 1.5, CAST(t.z - 5 AS DOUBLE))",
        "negative power",
    ),
    failing(
        "SELECT substr(s, 1, z - 3) FROM t",
        Fault::Domain,
        ": substr('22', 1, -3) in substr(t.s, 1, t.z - 3)",
        "negative count not allowed: -3",
    ),
    failing(
        "SELECT make_date(2024, CAST(z AS int) + 6, 1) FROM t WHERE k > 2",
        Fault::Domain,
        ": make_date(2024, 13, 1) in make_date(2024, ",
        "'13'",
    ),
    failing("SELECT chr(z - 1) FROM t", Fault::Domain, ": chr(-1) in chr(t.z - 1)", ": -1"),
    failing(
        "SELECT lpad(s, big) FROM t WHERE k = 2",
        Fault::Domain,
        ": lpad('seven', 5000000000) in lpad(t.s, t.big)",
        "5000000000",
    ),
    failing(
        "SELECT range(0, k, z) FROM t",
        Fault::Domain,
        ": range(0, 1, 0) in range(0, t.k, t.z)",
        "step can't be 0 for function range",
    ),
    failing(
        "SELECT repeat(s, 3000000000) FROM t WHERE k = 1",
        Fault::Length,
        "2147483647 bytes, or a list of more elements: repeat('22', 3000000000) in repeat(t.s, 3000000000)",
        "string size overflow on repeat",
    ),
];

/// Where the same stands matters to who computes it: sums, branches, both sides of a filter, joins.
const PLACES: &[Failing] = &[
    failing(
        "SELECT sum(d) FROM t",
        Fault::Overflow,
        "Arithmetic overflow in sum(t.d)",
        "Overflowing on ",
    ),
    failing(
        "SELECT k % 2, sum(d) FROM t GROUP BY k % 2",
        Fault::Overflow,
        "Arithmetic overflow in sum(t.d)",
        "Overflowing on ",
    ),
    failing(
        "SELECT sum(d) OVER (ORDER BY k) FROM t",
        Fault::Overflow,
        "Arithmetic overflow in sum(t.d) OVER (…)",
        "too large to store",
    ),
    failing(
        "SELECT avg(d) FROM t",
        Fault::Overflow,
        "Arithmetic overflow in avg(t.d)",
        "Overflowing on ",
    ),
    failing(
        "SELECT (SELECT n FROM u) FROM t",
        Fault::Rows,
        "a scalar subquery yields more than one row in u.n",
        "more than one row",
    ),
    failing(
        "SELECT CASE WHEN k > 0 THEN 100 / z ELSE 1 END FROM t",
        Fault::DivideByZero,
        ": 100 / 0 in 100 / t.z",
        "Divide by zero error",
    ),
    failing(
        "SELECT k FROM t WHERE 100 / z > 3 OR CAST(s AS int) = 7",
        Fault::DivideByZero,
        ": 100 / 0 in 100 / t.z",
        "Divide by zero error",
    ),
    failing(
        "SELECT CAST(big AS int) FROM t WHERE 7 / (k + 1) >= 0",
        Fault::Cast,
        "Can't cast value 5000000000 to type INTEGER in CAST(t.big AS INTEGER)",
        "Can't cast value 5000000000 to type INTEGER",
    ),
    failing(
        "SELECT count(*) FROM t JOIN u ON t.k = u.k AND 100 / t.z < u.n",
        Fault::DivideByZero,
        ": 100 / 0 in 100 / t.z",
        "Divide by zero error",
    ),
    failing(
        "SELECT v.q, u.n FROM u JOIN (SELECT k, CAST(s AS int) AS q FROM t) v ON v.q = u.k",
        Fault::Cast,
        "Cannot cast string 'seven' to value of INTEGER type in CAST(t.s AS INTEGER)",
        "Cannot cast string 'seven'",
    ),
];

fn tables() -> Pair {
    let most = 10i128.pow(38) - 1;
    let d = Decimal128Array::from(vec![1, most, 2, most])
        .with_precision_and_scale(38, 0)
        .expect("a legal decimal");
    let t: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(Int64Array::from(vec![0, 1, 2, 3]))),
        ("s", Arc::new(StringArray::from(vec!["1", "22", "seven", "4"]))),
        ("z", Arc::new(Int64Array::from(vec![3, 0, 5, 7]))),
        ("big", Arc::new(Int64Array::from(vec![1, 2, 5_000_000_000, 3]))),
        ("least", Arc::new(Int64Array::from(vec![1, 2, i64::MIN, 3]))),
        ("d", Arc::new(d)),
        ("f", Arc::new(Float64Array::from(vec![1.5, 2.0, 1e10, 3.0]))),
        ("day", Arc::new(Date32Array::from(vec![1, 2, 3, i32::MAX]))),
        ("ts", Arc::new(TimestampMicrosecondArray::from(vec![1, 2, i64::MIN + 7, 3]))),
    ];
    let zero = Decimal128Array::from(vec![100, 0])
        .with_precision_and_scale(10, 2)
        .expect("a legal decimal");
    let e: Vec<(&str, ArrayRef)> = vec![("d", Arc::new(zero))];
    let u: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(Int64Array::from(vec![0, 1, 2, 3, 4]))),
        ("n", Arc::new(Int64Array::from(vec![7, 8, 9, 10, 11]))),
        ("i", Arc::new(Int32Array::from(vec![7, 8, 9, 10, 11]))),
    ];
    Pair::of(columns(t)).and("u", columns(u)).and("e", columns(e))
}

/// The operation of an error of the device.
fn operation(error: &Error, sql: &str) -> Operation {
    match error.kind() {
        ErrorKind::Arithmetic { operation: Some(operation), account: None, .. } => {
            (**operation).clone()
        }
        other => panic!("{other:?}\n  {sql}"),
    }
}

fn check(all: &[Failing]) {
    let pair = tables();
    let mut wrong = vec![];
    for Failing { sql, fault, text, cpu } in all {
        let said =
            |error: &Error, text: &str| error.to_string().contains(&text.replace("{MOST}", MOST));
        match run(&pair.device, sql) {
            Err(error) if said(&error, text) => {
                let ErrorKind::Arithmetic { fault: found, .. } = error.kind() else {
                    panic!("{error:?}\n  {sql}")
                };
                assert_eq!(found, fault, "{sql}");
                assert!(!operation(&error, sql).name.is_empty(), "{sql}");
            }
            Err(error) => wrong.push(format!("{error}\n  {sql}")),
            Ok(_) => wrong.push(format!("no error\n  {sql}")),
        }
        if cpu.is_empty() {
            continue;
        }
        match run(&pair.cpu, sql) {
            Err(error) if said(&error, cpu) => {
                // Casts are of one kind wherever they fail.
                let agrees =
                    *fault != Fault::Cast || matches!(error.kind(), ErrorKind::Arithmetic { .. });
                assert!(agrees, "{error:?}\n  {sql}");
            }
            Err(error) => wrong.push(format!("cpu: {error}\n  {sql}")),
            Ok(_) => wrong.push(format!("cpu: no error\n  {sql}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn arithmetic_names_operator_values_and_columns() {
    check(ARITHMETIC);
}

#[test]
fn casts_name_value_type_and_column() {
    check(CASTS);
}

#[test]
fn functions_name_themselves_their_values_and_columns() {
    check(FUNCTIONS);
}

#[test]
fn sums_branches_filters_joins_and_subqueries_name_what_failed() {
    check(PLACES);
}

#[test]
fn fields_of_an_error_tell_what_its_text_does() {
    let pair = tables();
    let sql = "SELECT CAST(big AS smallint) + k FROM t";
    let found = operation(&run(&pair.device, sql).expect_err("it fails"), sql);
    assert_eq!((found.name.as_str(), found.target.as_deref()), ("CAST", Some("SMALLINT")));
    assert_eq!(found.arguments, ["5000000000"]);
    assert_eq!(found.expression, "CAST(t.big AS SMALLINT)");
    assert_eq!(found.columns, ["t.big"]);
}

/// What is said of a row is no part of the kernel.
#[test]
fn other_literals_share_the_kernel_and_tell_their_own_values() {
    let pair = tables();
    let modules = || {
        let counters = pair.gpu().counters();
        counters.compilations + counters.disk_hits
    };
    let text = |dividend: u32| {
        let sql = format!("SELECT {dividend} / (z - 3) FROM t");
        run(&pair.device, &sql).expect_err("a zero divisor").to_string()
    };
    assert!(text(100).contains("100 / 0 in 100 / (t.z - 3)"), "{}", text(100));
    let before = modules();
    assert!(text(77).contains("77 / 0 in 77 / (t.z - 3)"), "{}", text(77));
    assert_eq!(modules(), before);
}

/// Bodies of kernels that are compiled in parts report from within a part.
#[test]
fn long_expressions_name_what_failed_within_them() {
    let pair = tables();
    let terms: Vec<String> = (1..=400).map(|at| format!("(k * 3 + {at}) * {at}")).collect();
    let (first, last) = terms.split_at(200);
    let sql = format!("SELECT {} + 100 / z + {} FROM t", first.join(" + "), last.join(" + "));
    let error = run(&pair.device, &sql).expect_err("a zero divisor");
    assert_eq!(error.to_string(), "Divide by zero error: 100 / 0 in 100 / t.z");
}

/// What is too long is not made.
#[test]
fn joined_strings_that_are_too_long_name_the_function() {
    let texts: Vec<(&str, ArrayRef)> = vec![("s", Arc::new(StringArray::from(vec!["x"; 30_000])))];
    let pair = Pair::of(columns(texts));
    let sql = format!("SELECT string_agg(s, '{}') FROM t", ",".repeat(100_000));
    let error = run(&pair.device, &sql).expect_err("three gigabytes");
    assert!(error.to_string().ends_with("or a list of more elements in string_agg(…)"), "{error}");
}

/// What only the CPU can compute is named, too.
#[test]
fn what_the_device_leaves_to_the_cpu_is_named() {
    let texts: Vec<(&str, ArrayRef)> =
        vec![("s", Arc::new(StringArray::from(vec!["abc", "Ärger"])))];
    let pair = Pair::of(columns(texts));
    let error = run(&pair.device, "SELECT upper(concat(s, s)) FROM t").expect_err("strict");
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");
    assert!(
        error.to_string().contains("upper('ÄrgerÄrger') in upper(concat(t.s, t.s))"),
        "{error}"
    );
}

#[test]
fn a_main_that_returns_an_error_prints_its_text() {
    let session = warpframe::Session::builder().device(warpframe::DeviceChoice::Cpu).build();
    let session = session.expect("the CPU is there");
    let error = session.read_csv("nowhere.csv").expect_err("there is no such file");
    assert_eq!(format!("{error:?}"), error.to_string());
    let error = session.sql("SELECT 1 AS n FORM t").expect_err("FORM is no word of SQL");
    assert_eq!(format!("{error:?}"), format!("{error}\nhint: did you mean FROM?"));
}
