//! What a query must yield by what a simpler one does.

use warpframe::arrow::datatypes::DataType;

use super::logic::{Condition, Truth};
use super::maker::{Class, Maker, Scope, Syntax};
use super::{Ours, Verdict, hunt};
use crate::differential::{Cell, Rows};
use crate::random::choices::Choices;

#[test]
fn conditions_keep_their_rows() {
    hunt(550, Ours::of, |ours, choices| {
        let mut maker = Maker::new(choices, Syntax::Ours, &ours.relations);
        let verdict = kept(ours, &mut maker).unwrap_or_else(|verdict| verdict);
        (verdict, maker.drawn())
    });
}

#[test]
fn joins_keep_their_pairs() {
    hunt(300, Ours::of, |ours, choices| {
        let mut maker = Maker::new(choices, Syntax::Ours, &ours.relations);
        let verdict = paired(ours, &mut maker).unwrap_or_else(|verdict| verdict);
        (verdict, maker.drawn())
    });
}

/// A condition in WHERE or HAVING.
fn kept(ours: &Ours, maker: &mut Maker<'_>) -> Result<Verdict, Verdict> {
    let (from, scope) = maker.from(2);
    // What stands behind FROM without the condition, and what before it.
    let (without, before, scope) = maker.within(scope.clone(), |maker| match maker.below(6) {
        0 => {
            let counted = "HAVING count(*) >= 0";
            (counted.to_string(), format!("{counted} AND"), maker.aggregates(&[]))
        }
        1 => {
            let keys = maker.keys();
            let scope = maker.aggregates(&keys);
            let keys: Vec<_> = keys.into_iter().map(|(key, _)| key).collect();
            let by = format!("GROUP BY {}", keys.join(", "));
            (by.clone(), format!("{by} HAVING"), scope)
        }
        _ => (String::new(), "WHERE".into(), scope),
    });
    let classes = maker.classes(3);
    let (outputs, condition) = maker.within(scope, |maker| {
        let outputs: Vec<_> = classes
            .iter()
            .map(|class| match class {
                Class::Int => format!("CAST({} AS BIGINT)", maker.expr(Class::Int, 1)),
                class => maker.expr(*class, 1),
            })
            .collect();
        (outputs, Condition::random(maker))
    });
    let all = select(&[outputs.as_slice(), &condition.columns].concat());
    let all = ours_only(&format!("SELECT {all} FROM {from} {without}"));
    let all_rows = Rows::of(&ours.answer(&all)?);

    let sql = condition.sql();
    let (sql, wanted): (_, Truth) = match maker.below(4) {
        0 => (format!("(NOT {sql})"), Some(false)),
        1 => (format!("({sql} IS NULL)"), None),
        _ => (sql, Some(true)),
    };
    let mut rows: Vec<_> = (all_rows.rows.iter())
        .filter(|row| condition.truth(&row[outputs.len()..]) == wanted)
        .map(|row| row[..outputs.len()].to_vec())
        .collect();
    let mut types = all_rows.types[..outputs.len()].to_vec();
    let list = select(&outputs);
    let plain = format!("SELECT {list} FROM {from} {before} {sql}");
    let found = match maker.below(8) {
        0 => {
            rows = distinct(rows);
            format!("SELECT DISTINCT {list} FROM {from} {before} {sql}")
        }
        1 => {
            rows = distinct(rows);
            format!("{plain} UNION {plain}")
        }
        2 | 3 if before == "WHERE" && classes[0] == Class::Int => {
            (rows, types) = totals(&rows);
            let of = &outputs[0];
            let calls = format!("count(*), sum({of}), min({of}), max({of})");
            format!("SELECT {calls} FROM {from} WHERE {sql}")
        }
        4 if before == "WHERE" => {
            rows = vec![vec![Cell::Int(rows.len() as i128)]];
            types = vec![DataType::Int64];
            let count = maker.pick(&[
                "count(*) FILTER (WHERE CONDITION)",
                "coalesce(sum(CASE WHEN CONDITION THEN 1 ELSE 0 END), 0)",
            ]);
            format!("SELECT {} FROM {from}", count.replace("CONDITION", &sql))
        }
        5 => {
            let names: Vec<_> = (0..outputs.len()).map(|at| format!("c{at}")).collect();
            let below = format!("SELECT {list}, {sql} AS held FROM {from} {without}");
            format!("SELECT {} FROM ({below}) q WHERE held", names.join(", "))
        }
        _ => plain,
    };
    compare(ours, &all, &ours_only(&found), Rows { types, rows })
}

fn select(expressions: &[String]) -> String {
    let list = expressions.iter().enumerate().map(|(at, text)| format!("{text} AS c{at}"));
    list.collect::<Vec<_>>().join(", ")
}

fn ours_only(text: &str) -> String {
    super::dialects::spelled(text).0
}

fn distinct(rows: Vec<Vec<Cell>>) -> Vec<Vec<Cell>> {
    let mut seen: Vec<Vec<Cell>> = vec![];
    for row in rows {
        if !seen.contains(&row) {
            seen.push(row);
        }
    }
    seen
}

/// The number of rows, and of the integers in their first column the sum, least and greatest.
fn totals(rows: &[Vec<Cell>]) -> (Vec<Vec<Cell>>, Vec<DataType>) {
    let value = |row: &Vec<Cell>| if let Cell::Int(value) = row[0] { Some(value) } else { None };
    let values: Vec<_> = rows.iter().filter_map(value).collect();
    let cell = |value: Option<i128>| value.map_or(Cell::Null, Cell::Int);
    let row = vec![
        Cell::Int(rows.len() as i128),
        cell((!values.is_empty()).then(|| values.iter().sum())),
        cell(values.iter().min().copied()),
        cell(values.iter().max().copied()),
    ];
    (vec![row], vec![DataType::Int64; 4])
}

fn compare(ours: &Ours, of: &str, sql: &str, expected: Rows) -> Result<Verdict, Verdict> {
    // A union may have another type of texts.
    let found = Rows { types: expected.types.clone(), ..Rows::of(&ours.answer(sql)?) };
    Ok(match expected.difference(&found, false) {
        None => Verdict::Right(found.rows.len()),
        Some(difference) => Verdict::Wrong(ours.report(&format!("{difference}\n{of};"), sql)),
    })
}

/// A condition in ON: all pairs are known, and the rows that have none.
fn paired(ours: &Ours, maker: &mut Maker<'_>) -> Result<Verdict, Verdict> {
    let (left, right) = (maker.table_of_names(), maker.table_of_names());
    let both = Scope {
        columns: [left.1.columns.clone(), right.1.columns.clone()].concat(),
        ..Scope::default()
    };
    let condition = maker.within(both, |maker| maker.locally(Condition::random));
    let (one, other) = (&left.1.columns[0].text, &right.1.columns[0].text);
    let ids = [one.clone(), other.clone()];
    let list = select(&[ids.as_slice(), &condition.columns].concat());
    let all = ours_only(&format!("SELECT {list} FROM {} CROSS JOIN {}", left.0, right.0));
    let pairs: Vec<_> = (Rows::of(&ours.answer(&all)?).rows.into_iter())
        .filter(|row| condition.truth(&row[2..]) == Some(true))
        .map(|row| [row[0].clone(), row[1].clone()])
        .collect();
    let side = |at: usize| -> Result<Vec<Cell>, Verdict> {
        let (id, table) = [(one, &left.0), (other, &right.0)][at];
        let rows = Rows::of(&ours.answer(&format!("SELECT {id} AS c0 FROM {table}"))?).rows;
        Ok(rows.into_iter().map(|row| row[0].clone()).collect())
    };
    let lone = |at: usize| -> Result<Vec<Cell>, Verdict> {
        let rows = side(at)?.into_iter();
        Ok(rows.filter(|id| pairs.iter().all(|pair| pair[at] != *id)).collect())
    };
    let mut rows: Vec<Vec<Cell>> = pairs.iter().map(|pair| pair.to_vec()).collect();
    let sql = condition.sql();
    let kind = maker.pick(&["", "LEFT ", "RIGHT ", "FULL ", "EXISTS", "NOT EXISTS", "COMMA"]);
    if ["LEFT ", "FULL "].contains(&kind) {
        rows.extend(lone(0)?.into_iter().map(|id| vec![id, Cell::Null]));
    }
    if ["RIGHT ", "FULL "].contains(&kind) {
        rows.extend(lone(1)?.into_iter().map(|id| vec![Cell::Null, id]));
    }
    let found = match kind {
        "EXISTS" | "NOT EXISTS" => {
            let wanted = lone(0)?;
            let all = side(0)?.into_iter();
            rows = all
                .filter(|id| wanted.contains(id) == (kind == "NOT EXISTS"))
                .map(|id| vec![id])
                .collect();
            format!(
                "SELECT {one} AS c0 FROM {} WHERE {kind} (SELECT 1 FROM {} WHERE {sql})",
                left.0, right.0
            )
        }
        "COMMA" => {
            format!("SELECT {one} AS c0, {other} AS c1 FROM {}, {} WHERE {sql}", left.0, right.0)
        }
        kind => format!(
            "SELECT {one} AS c0, {other} AS c1 FROM {} {kind}JOIN {} ON {sql}",
            left.0, right.0
        ),
    };
    let columns = rows.first().map_or(if kind.contains("EXISTS") { 1 } else { 2 }, Vec::len);
    let types = vec![DataType::Int64; columns];
    compare(ours, &all, &ours_only(&found), Rows { types, rows })
}

#[test]
fn a_condition_that_is_not_what_it_says_is_seen() {
    let ours = Ours::of(1);
    let rows = Rows { types: vec![DataType::Int64], rows: vec![vec![Cell::Int(2)]] };
    let verdict = compare(&ours, "", "SELECT 1 AS c0", rows).unwrap_or_else(|verdict| verdict);
    assert!(matches!(verdict, Verdict::Wrong(_)));
    let mut maker = Maker::new(Choices::seeded(1), Syntax::Ours, &ours.relations);
    assert!(!maker.table_of_names().1.columns.is_empty());
}
