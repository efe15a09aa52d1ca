//! Functions that fail, wherever they stand: the query fails, and nothing that was made of the
//! failed row is shown.

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::{ArrayRef, Decimal128Array, Int64Array, StringArray};

use crate::differential::{Pair, run};
use crate::tables::columns;

/// An expression that fails in some row of `t`, and what it is compared with.
struct Failing {
    expr: &'static str,
    other: &'static str,
}

const FAILING: [Failing; 14] = [
    Failing { expr: "repeat(t.s, 3000000000)", other: "'x'" },
    Failing { expr: "repeat(repeat(t.s, 40000), 100000)", other: "'x'" },
    Failing { expr: "lpad(t.s, 3000000000, 'ab')", other: "'x'" },
    Failing { expr: "rpad(t.s, 3000000000, 'ab')", other: "'x'" },
    Failing { expr: "concat('a', repeat(t.s, 3000000000))", other: "'x'" },
    Failing { expr: "length(repeat(t.s, 3000000000))", other: "7" },
    Failing { expr: "upper(lpad(t.s, 3000000000))", other: "'x'" },
    Failing { expr: "array_length(range(0, t.big))", other: "7" },
    Failing { expr: "CAST(t.s AS int)", other: "7" },
    Failing { expr: "CAST(t.big AS smallint) + t.k", other: "7" },
    Failing { expr: "100 / t.z", other: "7" },
    Failing { expr: "t.d + t.d", other: "7.00" },
    Failing { expr: "t.big * t.big", other: "7" },
    Failing { expr: "sqrt(CAST(t.z - 2 AS double))", other: "1.0" },
];

/// Places where an expression may stand: `{f}` is the expression, `{x}` what it is compared with.
const PLACES: [&str; 19] = [
    "SELECT max({f}) FROM t",
    "SELECT count({f}), sum(t.k) FROM t",
    "SELECT t.k, min({f}) FROM t GROUP BY t.k",
    "SELECT count(*) FROM t GROUP BY {f}",
    "SELECT DISTINCT {f} FROM t",
    "SELECT count(DISTINCT {f}) FROM t",
    "SELECT {f} FROM t",
    "SELECT t.k FROM t WHERE {f} = {x}",
    "SELECT count(*) FILTER (WHERE {f} = {x}) FROM t",
    "SELECT CASE WHEN t.k >= 0 THEN {f} END FROM t",
    "SELECT t.k FROM t GROUP BY t.k HAVING max({f}) = {x}",
    "SELECT t.k FROM t ORDER BY {f}",
    "SELECT count(*) FROM t JOIN u ON {f} = u.{x}",
    "SELECT count(*) FROM t JOIN u ON t.k = u.k AND {f} < u.{x}",
    "SELECT {f}, u.k FROM t JOIN u ON t.k = u.k",
    "SELECT u.k, v.made FROM u LEFT JOIN (SELECT k, {f} AS made FROM t) v ON v.k = u.k",
    "SELECT t.k, count({f}) OVER (PARTITION BY t.k % 2) FROM t",
    "SELECT t.k, first_value({f}) OVER (ORDER BY t.k) FROM t",
    "SELECT unnest(make_array({f}, {f})) FROM t",
];

fn tables() -> Pair {
    let most = 10i128.pow(38) - 1;
    let decimals = Decimal128Array::from(vec![1, most, 2, 3])
        .with_precision_and_scale(38, 2)
        .expect("a legal decimal");
    let t: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(Int64Array::from(vec![0, 1, 2, 3]))),
        ("s", Arc::new(StringArray::from(vec!["1", "22", "seven", "4"]))),
        ("z", Arc::new(Int64Array::from(vec![3, 0, 5, 7]))),
        ("big", Arc::new(Int64Array::from(vec![1, 2, 5_000_000_000, 3]))),
        ("d", Arc::new(decimals)),
    ];
    let u: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(Int64Array::from(vec![0, 1, 2, 3, 4]))),
        ("n", Arc::new(Int64Array::from(vec![7, 8, 9, 10, 11]))),
        ("s", Arc::new(StringArray::from(vec!["a", "b", "c", "d", "e"]))),
        ("f", Arc::new(warpframe::arrow::array::Float64Array::from(vec![1.0, 2.0, 3.0, 4.0, 5.0]))),
    ];
    Pair::of(columns(t)).and("u", columns(u))
}

fn query(failing: &Failing, place: &str) -> String {
    let column = match failing.other.as_bytes()[0] {
        b'\'' => "s",
        _ if failing.other == "1.0" => "f",
        _ => "n",
    };
    let place = place.replace("u.{x}", &format!("u.{column}"));
    place.replace("{x}", failing.other).replace("{f}", failing.expr)
}

/// Every function in a few places and every place with a few functions; all pairs with
/// `WARPFRAME_FAIL_CASES=all`.
#[test]
fn what_fails_is_an_error_wherever_it_stands() {
    let pair = tables();
    let all = std::env::var("WARPFRAME_FAIL_CASES").is_ok_and(|cases| cases == "all");
    let mut shown = vec![];
    for (i, failing) in FAILING.iter().enumerate() {
        for (j, place) in PLACES.iter().enumerate() {
            if !all && !(3 * i + j).is_multiple_of(7) {
                continue;
            }
            let sql = query(failing, place);
            match run(&pair.device, &sql) {
                Err(error) if matches!(error.kind(), ErrorKind::Arithmetic { .. }) => {}
                Err(error) => shown.push(format!("{error:?}\n  {sql}")),
                Ok(frame) => shown.push(format!("{} rows\n  {sql}", frame.num_rows())),
            }
        }
    }
    assert!(
        shown.is_empty(),
        "{} queries did not fail as they should\n{}",
        shown.len(),
        shown.join("\n")
    );
    // The session goes on.
    pair.check("SELECT k, length(repeat(s, 3)) FROM t");
}

#[test]
fn a_string_that_is_too_long_says_so() {
    let pair = tables();
    for sql in [
        "SELECT sum(length(repeat(s, 3000000000))) FROM t",
        "SELECT repeat(t.s, 3000000000) FROM t JOIN u ON t.k = u.k",
    ] {
        let error = pair.check_error(sql);
        assert!(error.to_string().contains("2147483647 bytes"), "{error}");
    }
}
