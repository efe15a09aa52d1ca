//! Operators, subscripts, list comprehensions, and short forms of clauses.

use std::sync::Arc;

use warpframe::arrow::array::*;

use super::{check_rows, texts_and_lists};
use crate::differential::{Pair, run};
use crate::tables::{Shape, columns};

#[test]
fn operators_are_those_of_duckdb() {
    let pair = texts_and_lists();
    check_rows(
        &pair,
        "SELECT sum(b) FILTER (a > 0), count(*) FILTER (x < 1), string_agg(s, ',') FILTER (s <> '' AND k < 3) FROM t",
        &["30|2|abc,déf"],
    );
    check_rows(
        &pair,
        "SELECT a // 2, b // -3, x // 2, m // 2, (a + b) // 4, -7 // 2 FROM t ORDER BY k",
        &["1|-3|0.75|0.625|3|-3", "1|-6|-1.25|-1.55|5|-3", "-|-|-|-|-|-3", "-3|-1|0.05|0|-1|-3"],
    );
    check_rows(
        &pair,
        "SELECT a ** 2, -a ** 2, 2 * a ** 2, a ** 2 ** 2, b ** -1, 8 / 2 ** 2 FROM t ORDER BY k",
        &[
            "4|4|8|16|0.1|2",
            "9|9|18|81|0.05|2",
            "-|-|-|-|-|2",
            "49|49|98|2401|0.3333333333333333|2",
        ],
    );
    check_rows(
        &pair,
        "SELECT s GLOB '*b*', s GLOB '?é?', s GLOB '[a-c]*', s GLOB '[!a]*', s NOT GLOB 'd*', s GLOB '' FROM t ORDER BY k",
        &["1|0|1|0|1|0", "0|1|0|1|0|0", "-|-|-|-|-|-", "0|0|0|0|1|1"],
    );
    check_rows(
        &pair,
        "SELECT s[1], s[-1], s[2:3], s[:2], s[2:], s[-2:], s[0:1], s[a], s[a:], s[3:2], s[-9:2] FROM t ORDER BY k",
        &[
            "a|c|bc|ab|bc|bc|a|b|bc||ab",
            "d|f|éf|dé|éf|éf|d|f|f||dé",
            "-|-|-|-|-|-|-|-|-|-|-",
            "||||||||||",
        ],
    );
    let pair = pair.and("r", Shape::random(3000, 97).batches());
    pair.check_all(&[
        "SELECT id, k // 3, x // 2, id // (k * k + 1), 2 ** (k % 5) FROM r",
        "SELECT id, s[1], s[-2:], s[k], s[k:id % 7], s[2:-2] FROM r",
        "SELECT id FROM r WHERE s GLOB '*a*' OR s GLOB '[a-f]?*' OR s NOT GLOB '*%_*'",
        "SELECT s[1] AS c, sum(x) FILTER (k > 2) FROM r GROUP BY s[1] ORDER BY c",
    ]);
    let found = run(&pair.device, "SELECT a // 2, a ** 2, s GLOB 'a*' FROM t").expect("rows");
    assert_eq!(found.column_names(), ["a // 2", "a ** 2", "s GLOB 'a*'"]);
    let sql = "SELECT glob, filter FROM (SELECT k glob, a FROM t) filter (glob, filter)";
    assert_eq!(run(&pair.device, sql).expect("names").num_rows(), 4);
    for (sql, says) in [
        ("SELECT s GLOB s FROM t", "GLOB with a computed pattern"),
        ("SELECT s GLOB '[a' FROM t", "\"[a\""),
        ("SELECT s // 2 FROM t", "// divides numbers"),
        ("SELECT s[1:3:2] FROM t", "a slice of a string has no step"),
        ("SELECT a // 0 FROM t", "zero"),
    ] {
        let error = run(&pair.device, sql).expect_err(sql).to_string();
        assert!(error.contains(says), "{sql}: {error}");
    }
}

#[test]
fn list_comprehensions_are_lambdas() {
    let pair = texts_and_lists();
    check_rows(
        &pair,
        "SELECT [x * 2 for x in l], [x + a for x in l if x > 1], [x for x in l if x is not null], [[y, k] for y in [1, 2] if y = k] FROM t ORDER BY k",
        &[
            "[6, 2, 4, 2]|[5, 4]|[3, 1, 2, 1]|[[1, 1]]",
            "[]|[]|[]|[[2, 2]]",
            "-|-|-|[]",
            "[NULL, 10, 10]|[-2, -2]|[5, 5]|[]",
        ],
    );
    check_rows(
        &pair,
        "SELECT [x for x in [y * 2 for y in l if y > 1] if x < 10] FROM t ORDER BY k",
        &["[6, 4]", "[]", "-", "[]"],
    );
    check_rows(
        &pair,
        "SELECT [CASE WHEN x IN (1, 5) THEN x END FOR x IN l] FROM t ORDER BY k",
        &["[NULL, 1, NULL, 1]", "[]", "-", "[NULL, 5, 5]"],
    );
    for (sql, says) in [
        ("SELECT [x + i for x, i in l] FROM t", "its index is not known"),
        ("SELECT [x for x] FROM t", "expected [expression for name in list"),
        ("SELECT [x for] FROM t", "expected [expression for name in list"),
        ("SELECT [x for x in] FROM t", "expected [expression for name in list"),
        ("SELECT [x for x in l if] FROM t", "expected [expression for name in list if condition]"),
    ] {
        let error = run(&pair.device, sql).expect_err(sql);
        assert!(error.to_string().contains(says), "{sql}: {error}");
        assert!(error.location().is_some(), "{sql}");
    }
}

#[test]
fn limits_are_shares_of_the_rows() {
    let numbers = Int64Array::from_iter_values(0..1009);
    let pair = Pair::new().and("n", columns(vec![("i", Arc::new(numbers) as ArrayRef)]));
    check_rows(&pair, "SELECT count(*) FROM (SELECT * FROM n LIMIT 10%) AS q", &["100"]);
    check_rows(&pair, "SELECT count(*) FROM (SELECT * FROM n LIMIT 33.3 PERCENT) AS q", &["335"]);
    check_rows(&pair, "SELECT count(*) FROM (SELECT * FROM n LIMIT 0.7%) AS q", &["7"]);
    check_rows(&pair, "SELECT count(*) FROM (SELECT * FROM n LIMIT 100%) AS q", &["1009"]);
    check_rows(
        &pair,
        "SELECT i FROM n ORDER BY i DESC LIMIT 0.5% OFFSET 3",
        &["1005", "1004", "1003", "1002", "1001"],
    );
    check_rows(
        &pair,
        "(SELECT i FROM n WHERE i < 40 ORDER BY i LIMIT 5%) UNION ALL (SELECT i FROM n WHERE i < 40 ORDER BY i DESC LIMIT 5%) ORDER BY i",
        &["0", "1", "38", "39"],
    );
    check_rows(
        &pair,
        "WITH c AS (SELECT i FROM n ORDER BY i LIMIT 1%) SELECT count(*), max(i) FROM c",
        &["10|9"],
    );
    check_rows(
        &pair,
        "SELECT i % 7 AS r, count(*) AS c FROM n GROUP BY r ORDER BY c DESC, r LIMIT 30%",
        &["0|145", "1|144"],
    );
    pair.check("SELECT i % 3, 10 % 4 FROM n ORDER BY i LIMIT 10 % 4");
    for (sql, says) in [
        ("SELECT i FROM n LIMIT 101%", "a percentage from 0 to 100"),
        ("SELECT i FROM n LIMIT (1 + 2)%", "a percentage that is a number"),
        (
            "SELECT i, (SELECT m.i FROM n m WHERE m.i = n.i LIMIT 50%) FROM n",
            "LIMIT 50% in a subquery",
        ),
    ] {
        let error = run(&pair.device, sql).expect_err(sql).to_string();
        assert!(error.contains(says), "{sql}: {error}");
    }
    let frame = pair.device.sql("SELECT i FROM n ORDER BY i LIMIT 10%").expect("a plan");
    assert!(frame.explain().expect("a plan").contains("Sort"));
    assert_eq!(frame.collect().expect("rows").num_rows(), 100);
}
