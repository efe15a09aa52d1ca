//! Intervals in files.

use super::*;

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
