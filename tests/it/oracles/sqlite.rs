//! SQLite answers the same.

use rusqlite::Connection;
use rusqlite::types::Value;
use warpframe::arrow::datatypes::DataType;

use super::dialects::spelled;
use super::maker::{Class, Maker, Relation, Syntax};
use super::tables::days;
use super::{Ours, Verdict, hunt, made};
use crate::differential::{Cell, Rows, run};
use crate::random::choices::Choices;

#[test]
fn sqlite_answers_alike() {
    hunt(1100, Both::of, |both, choices| {
        let (text, drawn) = made(&both.ours.relations, Syntax::Common, choices);
        (both.verdict(&text), drawn)
    });
}

/// A session and a database of SQLite with equal tables and views.
struct Both {
    ours: Ours,
    sqlite: Connection,
}

impl Both {
    fn of(group: u64) -> Both {
        let mut ours = Ours::of(group);
        let sqlite = Connection::open_in_memory().expect("a database in memory");
        sqlite.pragma_update(None, "case_sensitive_like", true).expect("LIKE as ours is");
        sqlite.execute_batch(&ours.made_by).expect("statements of SQLite");
        for name in ["wa", "wb"] {
            for attempt in 0..10 {
                let choices = Choices::seeded(((group << 8) + attempt) ^ u64::from(name == "wb"));
                let mut maker = Maker::new(choices, Syntax::Common, &ours.relations);
                let (text, columns) = maker.view();
                let (query, other) = spelled(&text);
                let statement = format!("CREATE VIEW {name} AS {query}");
                let other = format!("CREATE VIEW {name} AS {other}");
                if ours.session.execute(&statement).is_err() {
                    continue;
                }
                let refused = run(&ours.session, &format!("SELECT * FROM {name}")).is_err();
                if refused || sqlite.execute_batch(&other).is_err() {
                    ours.session.execute(&format!("DROP VIEW {name}")).expect("it was made");
                    continue;
                }
                ours.made_by.push_str(&format!("{statement};\n"));
                ours.relations.push(Relation { name: name.into(), columns });
                break;
            }
        }
        Both { ours, sqlite }
    }

    fn verdict(&self, text: &str) -> Verdict {
        let (query, other) = spelled(text);
        let found = match self.ours.answer(&query) {
            Ok(found) => Rows::of(&found),
            Err(verdict) => return verdict,
        };
        match self.rows(&other, &found.types) {
            Ok(expected) => match expected.difference(&found, false) {
                None => Verdict::Right(found.rows.len()),
                Some(difference) => {
                    let spelled = if other == query { String::new() } else { other };
                    Verdict::Wrong(self.ours.report(&format!("{difference}\n{spelled}"), &query))
                }
            },
            Err(why) => Verdict::Refused(format!("SQLite: {why}\n  {other}")),
        }
    }

    /// What SQLite answers, as values of our types.
    fn rows(&self, query: &str, types: &[DataType]) -> Result<Rows, String> {
        let answer = || -> rusqlite::Result<Result<Vec<Vec<Cell>>, String>> {
            let mut statement = self.sqlite.prepare(query)?;
            let mut found = statement.query([])?;
            let mut rows = vec![];
            while let Some(row) = found.next()? {
                let cells = (types.iter().enumerate()).map(|(at, dtype)| {
                    let value: Value = row.get_unwrap(at);
                    cell(value.clone(), dtype).ok_or_else(|| format!("{value:?} as {dtype}"))
                });
                match cells.collect() {
                    Ok(cells) => rows.push(cells),
                    Err(why) => return Ok(Err(why)),
                }
            }
            Ok(Ok(rows))
        };
        let rows = answer().map_err(|error| error.to_string())??;
        Ok(Rows { types: types.to_vec(), rows })
    }
}

fn cell(value: Value, dtype: &DataType) -> Option<Cell> {
    let scaled = |x: f64, scale: i8| Cell::Int((x * 10f64.powi(scale.into())).round() as i128);
    Some(match (value, dtype) {
        (Value::Null, _) => Cell::Null,
        (Value::Integer(i), DataType::Float64) => Cell::Float(i as f64),
        (Value::Integer(i), DataType::Decimal128(_, scale)) => scaled(i as f64, *scale),
        (Value::Integer(i), t) if t.is_integer() || *t == DataType::Boolean => Cell::Int(i.into()),
        (Value::Real(x), DataType::Float64) => Cell::Float(x),
        (Value::Real(x), DataType::Decimal128(_, scale)) => scaled(x, *scale),
        (Value::Text(text), DataType::Date32) => Cell::Int(days(&text).into()),
        (Value::Text(text), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
            Cell::Text(text)
        }
        _ => return None,
    })
}

#[test]
fn a_wrong_answer_is_seen() {
    let both = Both::of(1);
    let spelled_apart = super::dialects::either("1", "2");
    let verdict = both.verdict(&format!("SELECT {spelled_apart} AS c0"));
    assert!(matches!(verdict, Verdict::Wrong(_)));
    assert!(matches!(both.verdict("SELECT 1 AS c0"), Verdict::Right(1)));
    let classes = both.ours.relations.iter().flat_map(|table| &table.columns);
    assert!(classes.filter(|(_, class)| *class == Class::Money).count() >= 3);
}
