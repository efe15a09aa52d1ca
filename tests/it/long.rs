//! Statements of great length: many conditions, terms, columns, aggregates.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Int64Array};
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::differential::{Cell, Pair, Rows, run, scalar};
use crate::tables::{Shape, columns};

/// `count` texts, one of each number, with something between them.
fn joined(count: usize, between: &str, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect::<Vec<_>>().join(between)
}

fn numbers(rows: i64) -> Pair {
    Pair::of(columns(vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef),
        (
            "x",
            Arc::new(
                (0..rows).map(|i| (i % 11 != 3).then_some(i * 3 % 1000)).collect::<Int64Array>(),
            ),
        ),
        ("y", Arc::new((0..rows).map(|i| Some(i % 10)).collect::<Int64Array>())),
    ]))
}

#[test]
fn choices_of_many_conditions_have_values_of_every_kind() {
    let pair = numbers(700);
    for (then, otherwise) in [
        ("{}", "ELSE -1"),
        ("'text number {}'", ""),
        ("{}.25 * y", "ELSE x"),
        ("nullif(y, {} % 10)", ""),
        ("[y, {}]", "ELSE [x]"),
        ("named_struct('a', y, 'b', '{}')", ""),
        ("y > {} % 10", "ELSE x IS NULL"),
        ("CASE y WHEN 1 THEN 1.5 WHEN 2 THEN {} / 3.0 ELSE y END", "ELSE 0.5"),
    ] {
        let arms = joined(60, " ", |i| {
            format!("WHEN x = {} THEN {}", i * 15, then.replace("{}", &i.to_string()))
        });
        pair.check(&format!("SELECT id, CASE {arms} {otherwise} END AS c FROM t ORDER BY id"));
    }
    let arms = joined(40, " ", |i| format!("WHEN {} THEN {i}", i * 15));
    pair.check(&format!("SELECT id, CASE x {arms} END AS c FROM t ORDER BY id"));
}

#[test]
fn the_first_condition_that_holds_is_taken_and_the_others_do_not_fail() {
    let pair = numbers(700);
    let arms =
        joined(50, " ", |i| format!("WHEN y = {} THEN 100 / (y - {})", i % 10, (i + 1) % 10));
    pair.check(&format!("SELECT id, CASE {arms} END AS c FROM t ORDER BY id"));
    // Nor does a condition behind one that holds.
    let arms =
        joined(20, " ", |i| format!("WHEN y <= {i} THEN {i} WHEN 10 / (y - {i}) > 3 THEN -1"));
    pair.check(&format!("SELECT id, CASE {arms} END AS c FROM t ORDER BY id"));
    pair.check_error(&format!(
        "SELECT CASE {arms} WHEN 1 / (y - 9) > 0 THEN 1 END FROM t WHERE y > 30 OR 1 / (y - 9) > 9"
    ));
}

#[test]
fn functions_of_many_arguments() {
    let pair = numbers(700);
    for list in [
        format!("coalesce({})", joined(60, ", ", |i| format!("nullif(y, {})", i % 10))),
        format!("coalesce({}, x)", joined(60, ", ", |i| format!("nullif(y + x % {}, y)", i + 1))),
        format!("greatest({})", joined(60, ", ", |i| format!("x % {}", i + 3))),
        format!("least({})", joined(60, ", ", |i| format!("nullif(x % {}, {i})", i + 3))),
        format!("x IN ({})", joined(60, ", ", |i| format!("y + {}", i * 7))),
        format!(
            "x NOT IN ({})",
            joined(60, ", ", |i| format!("nullif(y + {}, {})", i * 7, i * 7 + 3))
        ),
        format!("concat({})", joined(60, ", ", |i| format!("y + {i}"))),
        joined(60, " || ", |i| format!("CAST(x % {} AS VARCHAR)", i + 3)),
        joined(60, " + ", |i| format!("x % {}", i + 2)),
        joined(60, " - ", |i| format!("y * {i}.5")),
    ] {
        pair.check(&format!("SELECT id, {list} AS c FROM t ORDER BY id"));
    }
}

/// Long enough for the kernel to be compiled in parts, which hand on what later ones ask for, and
/// leave a row that a filter drops.
#[test]
fn kernels_in_parts_answer_as_whole_ones_do() {
    let pair = numbers(700);
    let arms = joined(500, " ", |i| format!("WHEN x + y = {} THEN y + {i}", i * 2));
    pair.check(&format!("SELECT sum(CASE {arms} ELSE -1 END) AS c FROM t"));
    pair.check(&format!("SELECT y, sum(CASE {arms} ELSE -1 END) AS c FROM t GROUP BY y"));
    pair.check(&format!("SELECT id, CASE {arms} END AS c FROM t WHERE id % 7 < 3 ORDER BY id"));
    let arms = joined(400, " ", |i| {
        format!("WHEN x + y = {} THEN concat('row ', {i}, ' of ', id)", i * 2)
    });
    pair.check(&format!("SELECT id, CASE {arms} END AS c FROM t ORDER BY id"));
    let terms = joined(400, " AND ", |i| format!("x + y <> {}", i * 7));
    pair.check(&format!("SELECT id FROM t WHERE {terms} ORDER BY id"));
    let terms = joined(400, " OR ", |i| format!("(x + y = {} AND y < {})", i * 7, i % 10));
    pair.check(&format!("SELECT id, x * 2 AS c FROM t WHERE {terms} ORDER BY id"));
    pair.check(&format!(
        "SELECT a.id, b.y FROM t a JOIN t b ON a.id = b.id WHERE {} ORDER BY a.id",
        { joined(400, " OR ", |i| format!("(a.x + b.y = {} AND a.y < {})", i * 7, i % 10)) }
    ));
    pair.check_error("SELECT sum(1 / (x - 3)) FROM t");
    let arms = joined(500, " ", |i| format!("WHEN x + y = {} THEN y / (x - x)", i * 2));
    pair.check_error(&format!("SELECT sum(CASE {arms} END) FROM t"));
}

#[test]
fn chains_of_thousands_of_terms() -> Result<()> {
    let pair = numbers(300);
    let found = (0..300i64).filter(|i| i % 11 != 3 && (i * 3 % 1000) % 7 == 0).count() as i128;
    for session in [&pair.device, &pair.cpu] {
        let terms = joined(4000, " OR ", |i| format!("x = {}", i * 7));
        assert_eq!(
            scalar(session, &format!("SELECT count(*) FROM t WHERE {terms}")),
            Cell::Int(found)
        );
        let terms = joined(2000, " AND ", |i| format!("x <> {}", i * 7));
        let others = (0..300i64).filter(|i| i % 11 != 3).count() as i128 - found;
        assert_eq!(
            scalar(session, &format!("SELECT count(*) FROM t WHERE {terms}")),
            Cell::Int(others)
        );
    }
    let terms = joined(150, " + ", |i| format!("x % {}", i + 2));
    pair.check(&format!("SELECT sum({terms}) AS c FROM t"));
    // A chain of strings that are codes is a table, wherever it stands.
    let pair = Pair::of(Shape::random(500, 7).batches());
    let names = joined(40, " OR ", |i| format!("sd = '{i}' OR sd < 'k{i}'"));
    pair.check(&format!("SELECT id FROM t WHERE {names} OR id = 3 ORDER BY id"));
    Ok(())
}

#[test]
fn what_is_nested_too_deeply_is_an_error() {
    let pair = numbers(10);
    for text in [
        format!("SELECT {}x{} FROM t", "(".repeat(20_000), ")".repeat(20_000)),
        format!("SELECT {}x{} FROM t", "abs(".repeat(5_000), ")".repeat(5_000)),
        format!("SELECT {}x FROM t", "- ".repeat(20_000)),
        format!("SELECT x FROM t WHERE {} true", "NOT ".repeat(20_000)),
        format!("SELECT {}1{} FROM t", "CASE WHEN true THEN ".repeat(3_000), " END".repeat(3_000)),
        format!("SELECT * FROM {}t{}", "(SELECT * FROM ".repeat(3_000), ") AS s".repeat(3_000)),
    ] {
        for session in [&pair.device, &pair.cpu] {
            let error = session.sql(&text).and_then(|frame| frame.collect()).expect_err("too deep");
            assert!(matches!(error.kind(), ErrorKind::Parse { path: None, .. }), "{error:?}");
        }
    }
}

/// A table of this many columns of numbers, each with a null somewhere.
fn wide(count: usize, rows: i64) -> Pair {
    let column = |at: usize| {
        let values = (0..rows).map(|i| ((i + at as i64) % 17 != 0).then_some(i * (at as i64 + 1)));
        Arc::new(values.collect::<Int64Array>()) as ArrayRef
    };
    let names: Vec<String> = (0..count).map(|at| format!("c{at}")).collect();
    Pair::of(columns(
        names.iter().enumerate().map(|(at, name)| (name.as_str(), column(at))).collect(),
    ))
}

#[test]
fn more_columns_than_a_launch_has_room_for_parameters() {
    let pair = wide(1100, 300);
    pair.check("SELECT * FROM t WHERE c5 > 100");
    pair.check("SELECT * FROM t ORDER BY c7 DESC NULLS LAST, c1");
    pair.check("SELECT a.* FROM t a JOIN t b ON a.c1 = b.c3");
    let sums = joined(60, ", ", |i| format!("sum(c{i}) AS s{i}"));
    pair.check(&format!("SELECT {sums} FROM t"));
    pair.check(&format!("SELECT c0 % 3 AS g, {sums} FROM t GROUP BY c0 % 3"));
    let keys = joined(40, ", ", |i| format!("c{i}"));
    pair.check(&format!("SELECT {keys}, count(*) AS n FROM t GROUP BY {keys}"));
}

#[test]
fn two_thousand_columns_through_a_filter() -> Result<()> {
    let pair = wide(2000, 100);
    let of = |session: &Session| {
        Ok::<_, warpframe::Error>(Rows::of(&run(session, "SELECT * FROM t WHERE c5 > 100")?))
    };
    assert_eq!(of(&pair.device)?.rows, of(&pair.cpu)?.rows);
    Ok(())
}
