//! Intervals in files.

use super::*;

#[test]
fn parquet_files_hold_intervals_of_whole_milliseconds() -> Result<()> {
    both(|session, files| {
        let path = files.path("t.parquet").display().to_string();
        let rows = "SELECT * FROM (VALUES \
                    (1, INTERVAL '1 month', TIMESTAMPTZ '2024-01-01 00:00:00+02'), \
                    (2, INTERVAL '3 days 10:15:30.25', NULL), (3, NULL, NULL), \
                    (4, INTERVAL '2 years 5 days 1 millisecond', NULL)) t(n, i, z)";
        done(session, &format!("COPY ({rows}) TO '{path}'"))?;
        let query = |from: &str| format!("SELECT n, i, z FROM {from} ORDER BY n");
        let found = run(session, &query(&format!("'{path}'")))?;
        assert!(found.equals(&run(session, &query(&format!("({rows})")))?)?);
        let months = format!("SELECT n FROM '{path}' WHERE i > INTERVAL '2 months'");
        assert_eq!(scalar(session, &months), Cell::Int(4));
        let of = format!("FROM parquet_schema('{path}') WHERE name = 'i'");
        for (what, expected) in [("converted_type", "INTERVAL"), ("duckdb_type", "INTERVAL")] {
            let found = scalar(session, &format!("SELECT {what} {of}"));
            assert_eq!(found, Cell::Text(expected.into()));
        }
        // None at all.
        let none = "SELECT CAST(NULL AS INTERVAL) AS i WHERE false";
        done(session, &format!("COPY ({none}) TO '{path}'"))?;
        assert_eq!(scalar(session, &format!("SELECT count(i) FROM '{path}'")), Cell::Int(0));
        Ok(())
    })
}

#[test]
fn intervals_that_parquet_does_not_hold_are_told() -> Result<()> {
    both(|session, files| {
        let path = files.path("t.parquet").display().to_string();
        for (value, of, told) in [
            ("INTERVAL '-1 month'", "INTERVAL", "-1 month"),
            ("INTERVAL '1 microsecond'", "INTERVAL", "00:00:00.000001"),
            ("INTERVAL '2000 hours'", "INTERVAL", "2000:00:00"),
            ("[INTERVAL '1 month']", "INTERVAL[]", "within a value"),
            ("{'a': INTERVAL '1 month'}", "STRUCT(a INTERVAL)", "within a value"),
        ] {
            let error = refused(session, &format!("COPY (SELECT {value} AS i) TO '{path}'"));
            let error = error.to_string();
            let named = format!("column \"i\" of type {of} in Parquet");
            assert!(error.contains(&named) && error.contains(told), "{value}: {error}");
            assert!(error.contains("CAST(… AS VARCHAR)"), "{value}: {error}");
            assert!(!std::path::Path::new(&path).exists());
        }
        let text = "SELECT CAST(INTERVAL '-1 month' AS VARCHAR) AS i";
        done(session, &format!("COPY ({text}) TO '{path}'"))
    })
}

#[test]
fn intervals_within_values_are_texts_in_json() -> Result<()> {
    both(|session, files| {
        let path = files.path("t.json").display().to_string();
        let rows = "SELECT INTERVAL '14 months' AS i, [INTERVAL '1 day', NULL] AS l, \
                    {'a': INTERVAL '90 minutes'} AS s, \
                    TIMESTAMP '2024-01-02' - TIMESTAMP '2024-01-01' AS d";
        done(session, &format!("COPY ({rows}) TO '{path}'"))?;
        let expected = "{\"i\":\"1 year 2 months\",\"l\":[\"1 day\",null],\
                        \"s\":{\"a\":\"01:30:00\"},\"d\":\"1 day\"}\n";
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), expected);
        Ok(())
    })
}
