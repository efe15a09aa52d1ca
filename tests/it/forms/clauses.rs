//! Keys that are casts of others, and mistakes in words for who wrote the query.

use super::{check_rows, texts_and_lists};
use crate::differential::run;

#[test]
fn misuse_is_named() {
    let pair = texts_and_lists();
    for (sql, says) in [
        (
            "SELECT * REPLACE (a AS b, a + 1 AS b) FROM t",
            "REPLACE has two values for the column \"b\"",
        ),
        ("SELECT regexp_matches(s, 'A', NULL) FROM t", "options that are not NULL"),
        ("SELECT regexp_replace(s, 'A', 'b', NULL::VARCHAR) FROM t", "options that are not NULL"),
        ("SELECT regexp_full_match(s, 'A', NULL) FROM t", "regexp_full_match takes"),
        ("SELECT first_value() OVER () FROM t", "first_value takes a value"),
        ("SELECT substr('abc')", "Substring without for/from is not valid"),
        ("SELECT 1 + s FROM t", "BIGINT + VARCHAR"),
        ("SELECT 'abc' BETWEEN 20 AND true", "Failed to coerce types VARCHAR and BOOLEAN"),
        ("SELECT string_split(1, 2)", "requires String, but received BIGINT"),
        ("SELECT date_bin(5, d) FROM t", "no function date_bin takes (BIGINT, DATE)"),
        (
            "SELECT lpad(s) FROM t",
            "there are lpad(VARCHAR, BIGINT), lpad(VARCHAR, BIGINT, VARCHAR)",
        ),
        ("SELECT k FROM t LIMIT k", "the column \"k\" has no value here"),
        ("SELECT median(s) FROM t", "median takes a number"),
        ("SELECT list_sum([s]) FROM t", "list_sum takes a list of numbers"),
        ("SELECT length({'a': 1})", "length takes a string or a list, not (STRUCT(a BIGINT))"),
        ("SELECT CAST(s AS INT) FROM t WHERE k = 1", "to value of INTEGER type"),
    ] {
        for session in [&pair.cpu, &pair.device] {
            let error = run(session, sql).expect_err(sql).to_string();
            assert!(error.contains(says), "{sql}: {error}");
            for internal in ["Internal error", "ValueWithSpan", "Int64", "Utf8", "panicked"] {
                assert!(!error.contains(internal), "{sql}: {error}");
            }
        }
    }
    let error = run(&pair.cpu, "SELECT count(*) FROM t GROUP BY 1").expect_err("an aggregate");
    assert!(error.to_string().contains("not in GROUP BY or WHERE"), "{error}");
    for session in [&pair.cpu, &pair.device] {
        let error = run(session, "SELECT list_resize([1, 2], -1)").expect_err("a length");
        assert!(!error.to_string().contains("bug"), "{error}");
    }
}

#[test]
fn a_key_may_be_a_cast_of_another() {
    let pair = texts_and_lists();
    for keys in ["b::DOUBLE, b", "1, 2", "x, b", "ALL"] {
        check_rows(
            &pair,
            &format!(
                "SELECT b::DOUBLE AS x, b, count(*) FROM (SELECT b FROM t) v GROUP BY {keys} \
                 HAVING b::DOUBLE > 3 ORDER BY b::DOUBLE DESC"
            ),
            &["20|20|1", "10|10|1"],
        );
    }
    check_rows(
        &pair,
        "SELECT b::DOUBLE, t.b::VARCHAR, b, sum(k) FROM t WHERE k > 2 \
         GROUP BY GROUPING SETS ((b::DOUBLE, t.b::VARCHAR, b), (b)) ORDER BY b, 1",
        &["3|3|3|4", "-|-|3|4", "-|-|-|3", "-|-|-|3"],
    );
    let sql = "SELECT b::DOUBLE, b FROM t GROUP BY b::DOUBLE, b";
    let frame = pair.cpu.sql(sql).expect("a plan");
    let names: Vec<String> =
        frame.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["b::DOUBLE", "b"]);
}
