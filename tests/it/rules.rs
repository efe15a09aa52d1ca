//! What DataFusion's rules over plans make wrong, with the values that DuckDB and PostgreSQL give;
//! on the CPU engine and on the device.

mod groups;
mod joins;
mod names;
mod simplified;
mod upstream;

use warpframe::Session;

use crate::differential::{Cell, Pair, Rows, run};

/// Rows as texts between bars, and nulls as dashes.
fn rows(session: &Session, sql: &str) -> Vec<String> {
    let shown = |cell: &Cell| match cell {
        Cell::Null => "-".to_string(),
        Cell::Int(number) => number.to_string(),
        Cell::Float(number) => number.to_string(),
        Cell::Text(text) => text.clone(),
    };
    let found = Rows::of(&run(session, sql).unwrap_or_else(|error| panic!("{error}\n  {sql}")));
    found.rows.iter().map(|row| row.iter().map(shown).collect::<Vec<_>>().join("|")).collect()
}

/// Both sessions with tables that these statements make.
fn with_tables(statements: &[&str]) -> Pair {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        for statement in statements {
            session.execute(statement).unwrap_or_else(|error| panic!("{error}\n  {statement}"));
        }
    }
    pair
}

/// Rows in any order, between ` / `.
fn check(pair: &Pair, sql: &str, expected: &str) {
    for session in [&pair.cpu, &pair.device] {
        let mut found = rows(session, sql);
        let mut expected: Vec<&str> = expected.split(" / ").filter(|row| !row.is_empty()).collect();
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected, "device {}\n  {sql}", session.device().is_some());
    }
}

/// Rows in their order, between ` / `.
fn check_ordered(pair: &Pair, sql: &str, expected: &str) {
    for session in [&pair.cpu, &pair.device] {
        let expected: Vec<&str> = expected.split(" / ").collect();
        assert_eq!(rows(session, sql), expected, "device {}\n  {sql}", session.device().is_some());
    }
}
