//! Texts as timestamps, dates, times and intervals; values of DuckDB 2.0.1.

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::StringArray;

use super::{batch, both};
use crate::differential::{Cell, Pair, Rows, run};

fn texts(texts: &[Option<&str>]) -> Pair {
    Pair::of(batch(vec![("s", Arc::new(StringArray::from(texts.to_vec())))]))
}

/// The one value of an expression, as a text, on both sessions.
fn says(pair: &Pair, expr: &str, expected: &str) {
    let sql = format!("SELECT CAST({expr} AS varchar) AS a FROM t LIMIT 1");
    for (name, rows) in both(pair, &sql) {
        assert_eq!(rows, [[Cell::Text(expected.into())]], "{name}: {expr}");
    }
}

#[test]
fn texts_of_timestamps_need_no_seconds() {
    let cases = [
        ("2024-01-31 10:15", Some("2024-01-31 10:15:00")),
        ("2024-01-31T10:15", Some("2024-01-31 10:15:00")),
        ("2024-01-31 23:59Z", Some("2024-01-31 23:59:00")),
        ("2024-01-31 10:15+02:30", Some("2024-01-31 10:15:00")),
        ("2024-01-31 10:15 -0130", Some("2024-01-31 10:15:00")),
        ("1969-12-31 00:00-12", Some("1969-12-31 00:00:00")),
        ("2024-01-31 10:15:16", Some("2024-01-31 10:15:16")),
        ("2024-01-31", Some("2024-01-31 00:00:00")),
        ("2024-01-31 10:60", None),
        ("2024-01-31 24:15", None),
        ("2024-02-30 10:15", None),
        ("2024-01-31 10:15.5", None),
        ("2024-01-31 10:159", None),
        ("2024-01-31 1015", None),
    ];
    let mut given: Vec<_> = cases.iter().map(|(text, _)| Some(*text)).collect();
    given.push(None);
    let pair = texts(&given);
    let sql = "SELECT CAST(TRY_CAST(s AS timestamp) AS varchar) AS a, \
               CAST(TRY_CAST(s AS date) AS varchar) AS b FROM t";
    for (name, rows) in both(&pair, sql) {
        for (row, (text, expected)) in rows.iter().zip(cases) {
            let cell = |text: Option<&str>| text.map_or(Cell::Null, |text| Cell::Text(text.into()));
            let day = expected.map(|text| &text[..10]);
            assert_eq!(row[..], [cell(expected), cell(day)], "{name}: {text}");
        }
    }
    let valid = "SELECT s FROM t WHERE TRY_CAST(s AS timestamp) IS NOT NULL";
    pair.check(&format!(
        "SELECT s::timestamp AS a, s::date AS b, to_timestamp(s) AS c, to_timestamp_millis(s) AS d, \
         to_date(s) AS e, to_unixtime(s) AS f, arrow_cast(s, 'Timestamp(Second, Some(\"UTC\"))') AS g, \
         arrow_cast([s], 'List(Timestamp(Microsecond, None))') AS h FROM ({valid})"
    ));
    pair.check("SELECT TRY_CAST(s AS timestamp) AS k, count(*) FROM t GROUP BY 1");
    let error = pair.check_error("SELECT s::timestamp AS a FROM t WHERE s LIKE '%10:60'");
    assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{error:?}");
    assert!(error.to_string().contains("2024-01-31 10:60"), "{error}");
}

#[test]
fn constants_of_timestamps_need_no_seconds() {
    let pair = texts(&[Some("2024-01-31 10:15"), Some("2024-01-31 10:16"), None]);
    says(&pair, "CAST('2024-01-31 10:15' AS TIMESTAMP)", "2024-01-31 10:15:00");
    says(&pair, "TIMESTAMP '2024-01-31T10:15'", "2024-01-31 10:15:00");
    says(&pair, "('2024-01-31 10:' || '15') :: timestamp", "2024-01-31 10:15:00");
    says(&pair, "CAST('2024-01-31 10:15' AS DATE)", "2024-01-31");
    says(&pair, "to_timestamp('2024-01-31 10:15')", "2024-01-31 10:15:00");
    says(&pair, "TIMESTAMPTZ '2024-01-31 10:15+02:30'", "2024-01-31 07:45:00+00");
    says(&pair, "TIMESTAMPTZ '2024-01-31 10:15 Europe/Berlin'", "2024-01-31 09:15:00+00");
    says(&pair, "TIMESTAMP '2024-01-31 10:15' + INTERVAL '1 day'", "2024-02-01 10:15:00");
    says(&pair, "date_trunc('hour', TIMESTAMP '2024-01-31 10:15')", "2024-01-31 10:00:00");
    says(&pair, "TRY_CAST('2024-01-31 10:60' AS TIMESTAMP) IS NULL", "true");
    for condition in [
        "ts > '2024-01-31 10:15'",
        "'2024-01-31T10:15' < ts",
        "ts BETWEEN '2024-01-31 10:16' AND '2024-01-31 10:17'",
        "ts IN ('2024-01-31 10:16', '2024-02-01 00:00')",
        "ts <> '2024-01-31 10:15Z'",
        "ts = CASE WHEN s IS NULL THEN ts ELSE TIMESTAMP '2024-01-31 10:16' END",
    ] {
        let sql = format!("SELECT s FROM (SELECT s, s::timestamp AS ts FROM t) WHERE {condition}");
        for (name, rows) in both(&pair, &sql) {
            assert_eq!(rows, [[Cell::Text("2024-01-31 10:16".into())]], "{name}: {condition}");
        }
    }
    let sql =
        "SELECT CAST(column1 AS varchar) AS a FROM (VALUES (TIMESTAMP '2024-01-31 10:15'), (NULL))";
    for (name, rows) in both(&pair, sql) {
        let expected = [vec![Cell::Text("2024-01-31 10:15:00".into())], vec![Cell::Null]];
        assert_eq!(rows, expected, "{name}");
    }
    let error = pair.check_error("SELECT TIMESTAMP '2024-01-31 10:60' AS a FROM t");
    assert!(error.to_string().contains("2024-01-31 10:60"), "{error}");
}

#[test]
fn a_number_is_no_text_of_a_time() {
    let pair = texts(&[Some("1"), Some("-5"), Some("12"), Some("1:30"), Some("23:59:59.5"), None]);
    let sql = "SELECT CAST(TRY_CAST(s AS time) AS varchar) AS a FROM t";
    let time = |text: &str| vec![Cell::Text(text.into())];
    let null = || vec![Cell::Null];
    let expected = [null(), null(), null(), time("01:30:00"), time("23:59:59.5"), null()];
    for (name, rows) in both(&pair, sql) {
        assert_eq!(rows, expected, "{name}");
    }
    pair.check(
        "SELECT arrow_try_cast(s, 'Time32(Second)') AS a, arrow_try_cast(s, 'Time64(Microsecond)') AS b \
         FROM t",
    );
    says(&pair, "TRY_CAST('1' AS TIME) IS NULL", "true");
    says(&pair, "CAST('1:30' AS TIME)", "01:30:00");
    for sql in ["SELECT CAST('1' AS TIME) AS a FROM t", "SELECT s::time AS a FROM t WHERE s = '1'"]
    {
        let error = pair.check_error(sql).to_string();
        assert!(error.contains("Cannot cast string '1' to value of TIME type"), "{error}");
    }
}

#[test]
fn texts_of_intervals_have_hours_and_minutes() {
    // What comes of noon, 2000-01-01.
    let cases = [
        ("1", "12:00:01"),
        ("2.5", "12:00:02.5"),
        ("1:30", "13:30:00"),
        ("1:30:00", "13:30:00"),
        ("-1:30:00.5", "10:29:59.5"),
        ("1 day 1:30:00", "2000-01-02 13:30:00"),
        ("1 day -01:30", "2000-01-02 10:30:00"),
        ("2 months 100:00", "2000-03-05 16:00:00"),
        ("1.5 hours", "13:30:00"),
        ("1y 2 mons", "2001-03-01 12:00:00"),
    ];
    let given: Vec<_> = cases.iter().map(|(text, _)| Some(*text)).collect();
    let pair = texts(&given);
    let whole = |text: &str| match text.contains(' ') {
        true => text.to_string(),
        false => format!("2000-01-01 {text}"),
    };
    for (text, expected) in cases {
        for interval in [format!("CAST('{text}' AS INTERVAL)"), format!("INTERVAL '{text}'")] {
            says(&pair, &format!("TIMESTAMP '2000-01-01 12:00' + {interval}"), &whole(expected));
        }
    }
    // Columns of them are cast on the host.
    let sql = "SELECT CAST(TIMESTAMP '2000-01-01 12:00' + s::interval AS varchar) AS a FROM t";
    let rows = Rows::of(&run(&pair.cpu, sql).expect(sql)).rows;
    let expected = cases.map(|(_, expected)| vec![Cell::Text(whole(expected))]);
    assert_eq!(rows, expected);
    says(&pair, "TRY_CAST('1:75' AS INTERVAL) IS NULL", "true");
    for text in ["", "abc", "P1D", "1:75:00", "1:30:75", "5 1:30", "1:30 2:30"] {
        let sql = format!("SELECT CAST('{text}' AS INTERVAL) AS a");
        let error = run(&pair.cpu, &sql).expect_err(&sql).to_string();
        assert!(error.contains(&format!("for type interval: {text:?}")), "{error}");
    }
    let sql = "SELECT INTERVAL '1:30' HOUR";
    assert!(run(&pair.cpu, sql).expect_err(sql).to_string().contains("1:30"));
}

#[test]
fn times_are_written_as_in_duckdb() {
    let pair = texts(&[
        Some("2024-01-31 10:15:00.5"),
        Some("1969-12-31 23:59:59.123456"),
        Some("2024-07-01"),
        None,
    ]);
    let sql = "SELECT s::TIMESTAMP::VARCHAR AS a, s::TIMESTAMP(3)::VARCHAR AS b, \
               arrow_cast(s, 'Timestamp(Nanosecond, None)')::VARCHAR AS c, \
               (s::TIMESTAMP AT TIME ZONE 'America/New_York')::VARCHAR AS d, \
               (s::TIMESTAMP AT TIME ZONE 'Asia/Kolkata')::VARCHAR AS e, \
               s::TIMESTAMPTZ::VARCHAR AS f, 'at ' || s::TIMESTAMP AS g, \
               s::TIMESTAMP::TIME::VARCHAR AS h FROM t WHERE s LIKE '2024-01%' OR s LIKE '1969%'";
    pair.check(sql);
    let found = Rows::of(&run(&pair.device, sql).unwrap()).rows;
    let of = |row: &[Cell]| -> Vec<String> {
        let text = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            other => format!("{other:?}"),
        };
        row.iter().map(text).collect()
    };
    assert_eq!(
        of(&found[0]),
        [
            "2024-01-31 10:15:00.5",
            "2024-01-31 10:15:00.5",
            "2024-01-31 10:15:00.5",
            "2024-01-31 10:15:00.5-05",
            "2024-01-31 10:15:00.5+05:30",
            "2024-01-31 10:15:00.5+00",
            "at 2024-01-31 10:15:00.5",
            "10:15:00.5",
        ]
    );
    assert_eq!(of(&found[1])[..2], ["1969-12-31 23:59:59.123456", "1969-12-31 23:59:59.123"]);
}
