//! Texts as values of other types, and the other way; values of DuckDB 2.0.1.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, BinaryArray, Int64Array, StringArray};

use super::{check_rows, rows_on};
use crate::differential::{Pair, builder, run};
use crate::tables::columns;

/// A column of texts, whose queries run on the device from end to end.
fn texts(texts: &[&str]) -> Pair {
    let numbers = Int64Array::from_iter_values(0..texts.len() as i64);
    Pair::of(columns(vec![
        ("k", Arc::new(numbers) as ArrayRef),
        ("s", Arc::new(StringArray::from(texts.to_vec()))),
    ]))
}

/// Rows of a query about a column, which may run on the host.
fn check_anywhere(column: ArrayRef, sql: &str, expected: &[&str]) {
    let numbers = Int64Array::from_iter_values(0..column.len() as i64);
    let batches = columns(vec![("k", Arc::new(numbers) as ArrayRef), ("s", column)]);
    let pair = Pair::with(builder().strict(false)).and("t", batches);
    for session in [&pair.cpu, &pair.device] {
        assert_eq!(rows_on(session, sql), expected, "{sql}");
    }
}

fn strings(texts: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(texts.to_vec()))
}

#[test]
fn texts_of_bytes_have_escapes() {
    check_rows(
        &texts(&["plain ~", "", "ab"]),
        "SELECT CAST(CAST(s AS BLOB) AS VARCHAR), CAST(s AS BYTEA) = 'ab' FROM t ORDER BY k",
        &["plain ~|0", "|0", "ab|1"],
    );
    check_anywhere(
        strings(&["plain ~", r"\xAA\x5c", "", r"\x41b", "a'b"]),
        "SELECT CAST(CAST(s AS BLOB) AS VARCHAR), hex(CAST(s AS BYTEA)), \
         CAST(s AS BLOB) = '\\x41b' FROM t ORDER BY k",
        &["plain ~|706C61696E207E|0", r"\xAA\x5C|AA5C|0", "||0", "Ab|4162|1", r"a\x27b|612762|0"],
    );
    check_anywhere(
        strings(&["é", r"\y", r"\x4", r"\XAA", "\\", "fine"]),
        "SELECT TRY_CAST(s AS BLOB) IS NULL FROM t ORDER BY k",
        &["1", "1", "1", "1", "1", "0"],
    );
    for wrong in ["é", r"\y", r"\x4", r"\XAA", "\\"] {
        let pair =
            Pair::with(builder().strict(false)).and("t", columns(vec![("s", strings(&[wrong]))]));
        for session in [&pair.cpu, &pair.device] {
            let error = run(session, "SELECT CAST(s AS BLOB) FROM t").expect_err(wrong);
            assert!(error.to_string().contains("value of BLOB type"), "{error}");
        }
    }
    let bytes = vec![Some(&b"a\xc3\xa9"[..]), None, Some(b"x\n")];
    check_anywhere(
        Arc::new(BinaryArray::from(bytes)),
        "SELECT s::VARCHAR, decode(s), hex(s), s = encode(decode(s)) FROM t ORDER BY k",
        &[r"a\xC3\xA9|aé|61C3A9|1", "-|-|-|-", "x\\x0A|x\n|780A|1"],
    );
    check_anywhere(
        strings(&["é", "a\\b"]),
        "SELECT hex(s), encode(s, 'hex'), decode(encode(s)), x'00227F'::VARCHAR FROM t ORDER BY k",
        &[r"C3A9|c3a9|é|\x00\x22\x7F", r"615C62|615c62|a\b|\x00\x22\x7F"],
    );
}

#[test]
fn parts_of_months_are_days_and_hours() {
    check_anywhere(
        strings(&["0.05 month", "-1.55 months", "0.55 week", "1.4 quarter", "2 quarters"]),
        "SELECT CAST(TIMESTAMP '2020-03-01' + CAST(s AS INTERVAL) AS VARCHAR) FROM t ORDER BY k",
        &[
            "2020-03-02 12:00:00",
            "2020-01-15 12:00:00",
            "2020-03-04 20:24:00",
            "2020-07-07 00:00:00",
            "2020-09-01 00:00:00",
        ],
    );
    check_rows(
        &texts(&["x"]),
        "SELECT CAST(TIMESTAMP '2020-01-01' + INTERVAL ' 0.55 week ' AS VARCHAR), \
         INTERVAL '0.05 month' = INTERVAL '36 hours', INTERVAL '1 quarter' = INTERVAL '3 months' FROM t",
        &["2020-01-04 20:24:00|1|1"],
    );
}

#[test]
fn what_has_no_zone_drops_it() {
    let sql = "SELECT CAST(CAST(s AS TIMESTAMP) AS VARCHAR), CAST(CAST(s AS DATE) AS VARCHAR), \
               CAST(CAST(s AS TIMESTAMPTZ) AS VARCHAR) FROM t ORDER BY k";
    check_rows(
        &texts(&[
            "2020-01-01 23:00:00+02",
            "2020-01-01T23:00:00.5Z",
            "2020-01-01 23:00 -03:30",
            "2020-01-01 230000",
        ]),
        sql,
        &[
            "2020-01-01 23:00:00|2020-01-01|2020-01-01 21:00:00+00",
            "2020-01-01 23:00:00.5|2020-01-01|2020-01-01 23:00:00.5+00",
            "2020-01-01 23:00:00|2020-01-01|2020-01-02 02:30:00+00",
            "2020-01-01 23:00:00|2020-01-01|2020-01-01 23:00:00+00",
        ],
    );
    check_anywhere(
        strings(&["2020-01-01 23:00:00 Europe/Berlin"]),
        sql,
        &["2020-01-01 23:00:00|2020-01-01|2020-01-01 22:00:00+00"],
    );
    check_rows(
        &texts(&["23:00:00+02", "23:00 -03:30"]),
        "SELECT CAST(CAST(s AS TIME) AS VARCHAR), CAST(TIMESTAMP '2020-01-01 00:00:00+02' AS \
         VARCHAR), CAST(TIME '23:00:00+02' AS VARCHAR), TIMESTAMP '2020-01-01' = '2020-01-01 \
         00:00:00 UTC' FROM t",
        &["23:00:00|2020-01-01 00:00:00|23:00:00|1"; 2],
    );
    check_anywhere(
        strings(&["2020-01-01 23:00:00+25", "2020-01-01 23:00:00 Nowhere", "2020-01-01 230000+02"]),
        "SELECT TRY_CAST(s AS TIMESTAMP), TRY_CAST(s AS DATE), TRY_CAST(s AS TIME) FROM t",
        &["-|-|-"; 3],
    );
}

#[test]
fn tables_of_times_read_texts_as_casts_do() {
    let pair = texts(&["x"]);
    for session in [&pair.cpu, &pair.device] {
        let sql = "SELECT count(*), CAST(max(x) AS VARCHAR) FROM generate_series(TIMESTAMP \
                   '2024-01-01', TIMESTAMP ' 2024-01-01 06:00+02', INTERVAL '2 hours') t(x)";
        assert_eq!(rows_on(session, sql), ["4|2024-01-01 06:00:00"]);
    }
}

#[test]
fn blanks_around_a_text_do_not_count() {
    check_rows(
        &texts(&[" 2020-01-02 ", "\t2020-01-02\n"]),
        "SELECT CAST(CAST(s AS DATE) AS VARCHAR), CAST(TRY_CAST(s AS TIMESTAMP) AS VARCHAR), \
         CAST(TRY_CAST(s AS TIMESTAMPTZ) AS VARCHAR) FROM t ORDER BY k",
        &["2020-01-02|2020-01-02 00:00:00|2020-01-02 00:00:00+00"; 2],
    );
    check_rows(
        &texts(&[" 10:30:00 ", "10:30 "]),
        "SELECT CAST(CAST(s AS TIME) AS VARCHAR), CAST(TRY_CAST(s AS TIME) AS VARCHAR) FROM t",
        &["10:30:00|10:30:00"; 2],
    );
    check_anywhere(
        strings(&[" 1 day ", "\t1 day\n"]),
        "SELECT CAST(s AS INTERVAL) = INTERVAL '1 day', TRY_CAST(s AS INTERVAL) IS NULL FROM t",
        &["1|0"; 2],
    );
    check_rows(
        &texts(&["", " "]),
        "SELECT TRY_CAST(s AS DATE), TRY_CAST(s AS TIMESTAMP), TRY_CAST(s AS TIME) FROM t",
        &["-|-|-"; 2],
    );
}

#[test]
fn bars_stand_among_the_digits_of_all_parts_of_a_number() {
    let pair = texts(&["x"]);
    check_rows(
        &pair,
        "SELECT 1_2.1_2E1_0, 1_2e-1_0 * 1e1_0, 1_2.5 AS e1_0 FROM t",
        &["121200000000|12|12.5"],
    );
}

#[test]
fn nulls_within_lists_are_shown() {
    check_anywhere(
        strings(&["a"]),
        "SELECT CAST([NULL, k] AS VARCHAR), CAST([NULL::INT] AS VARCHAR), \
         CAST(NULL::INT[] AS VARCHAR), \
         CAST(CAST([k, NULL] AS VARCHAR) AS INT[])[2] FROM t",
        &["[NULL, 0]|[NULL]|-|-"],
    );
}
