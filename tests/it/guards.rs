//! Conditions that can fail stay behind those that guard them, on the CPU engine and on the device.

mod generated;

use std::sync::Arc;

use warpframe::arrow::array::{Int32Array, Int64Array, RecordBatch, StringArray};
use warpframe::arrow::datatypes::{DataType, Field, Schema};
use warpframe::prelude::*;

use crate::differential::{Cell, Pair, Rows, run};

/// `t`: numbers with a zero, and texts of which some are numbers; `u`: numbers to join with.
fn tables() -> Pair {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("x", DataType::Int32, true),
        Field::new("y", DataType::Int64, true),
        Field::new("s", DataType::Utf8, true),
    ]);
    let x = vec![Some(0), Some(1), Some(2), Some(5), Some(20), None, Some(-3)];
    let y = vec![Some(3), None, Some(0), Some(7), Some(8), Some(9), Some(1)];
    let s = vec![Some("12"), Some("x"), None, Some("7"), Some(""), Some("5"), Some("1e")];
    let t = RecordBatch::try_new(
        Arc::new(schema),
        vec![
            Arc::new(Int64Array::from_iter_values(1..=7)),
            Arc::new(Int32Array::from(x)),
            Arc::new(Int64Array::from(y)),
            Arc::new(StringArray::from(s)),
        ],
    );
    let schema = Schema::new(vec![
        Field::new("k", DataType::Int64, true),
        Field::new("n", DataType::Int64, true),
    ]);
    let u = RecordBatch::try_new(
        Arc::new(schema),
        vec![
            Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(4), Some(5), None])),
            Arc::new(Int64Array::from(vec![Some(10), Some(5), Some(0), Some(7), Some(2)])),
        ],
    );
    Pair::of(vec![t.expect("columns of one length")])
        .and("u", vec![u.expect("columns of one length")])
}

fn found(session: &Session, sql: &str) -> Vec<Vec<Option<i128>>> {
    let rows = run(session, sql)
        .unwrap_or_else(|error| panic!("{error}\n  {:?}\n  {sql}", session.device().is_some()));
    let number = |cell: Cell| match cell {
        Cell::Null => None,
        Cell::Int(number) => Some(number),
        other => panic!("{other:?} is no integer\n  {sql}"),
    };
    let mut rows: Vec<Vec<_>> =
        Rows::of(&rows).rows.into_iter().map(|row| row.into_iter().map(number).collect()).collect();
    rows.sort();
    rows
}

/// The rows of a query of one column of integers, in any order, on both engines.
#[track_caller]
fn yields(pair: &Pair, sql: &str, expected: &[i128]) {
    let mut expected: Vec<_> = expected.iter().map(|number| vec![Some(*number)]).collect();
    expected.sort();
    for session in [&pair.cpu, &pair.device] {
        assert_eq!(
            found(session, sql),
            expected,
            "device: {}\n  {sql}",
            session.device().is_some()
        );
    }
}

#[test]
fn a_condition_is_asked_only_where_those_before_it_hold() {
    let pair = tables();
    yields(&pair, "SELECT id FROM t WHERE x <> 0 AND 10 / x > 1", &[2, 3, 4]);
    yields(&pair, "SELECT id FROM t WHERE x = 0 OR 10 / x > 1", &[1, 2, 3, 4]);
    yields(&pair, "SELECT id FROM t WHERE NOT (x = 0 OR 10 / x > 1)", &[5, 7]);
    yields(&pair, "SELECT count(*) FROM t WHERE s ~ '^[0-9]+$' AND CAST(s AS int) > 5", &[2]);
    yields(&pair, "SELECT id FROM t WHERE s ~ '^[0-9]+$' AND CAST(s AS int) > 5 AND id > 1", &[4]);
    yields(
        &pair,
        "SELECT id FROM t WHERE x <> 0 AND (y < 2 OR 10 % x = 0) AND s IS NOT NULL",
        &[2, 4, 7],
    );
    yields(&pair, "SELECT id FROM t WHERE x <> 0 AND y <> 0 AND 10 / x / y = 0", &[4, 5]);
    yields(&pair, "SELECT id FROM t WHERE (x <> 0 AND 10 / x > 1) IS NULL", &[6]);
    // What cannot fail may come first, wherever it stands.
    yields(&pair, "SELECT id FROM t WHERE 10 / x > 1 AND x <> 0", &[2, 3, 4]);
    for (sql, what) in [
        ("SELECT id FROM t WHERE 10 / x > 1 AND 10 / (x - 1) > 1", "ivide by zero"),
        ("SELECT id FROM t WHERE y > 2 AND 10 / x > 1", "ivide by zero"),
        ("SELECT id FROM t WHERE id > 1 AND CAST(s AS int) > 5", "annot cast string"),
    ] {
        let error = pair.check_error(sql);
        assert!(error.to_string().contains(what), "{error}\n  {sql}");
    }
}

#[test]
fn operands_stay_in_order_in_every_clause() {
    let pair = tables();
    let count = "SELECT count(*) FROM t";
    yields(
        &pair,
        "SELECT count(*) FROM (SELECT x <> 0 AND 10 / x > 1 AS q FROM t) d WHERE q",
        &[3],
    );
    yields(
        &pair,
        "SELECT CAST(CASE WHEN x <> 0 THEN 10 / x > 1 ELSE false END AS int) FROM t",
        &[0, 1, 1, 1, 0, 0, 0],
    );
    yields(
        &pair,
        &format!(
            "{count} WHERE CASE WHEN x = 0 THEN false WHEN 10 / x > 5 THEN true ELSE false END"
        ),
        &[1],
    );
    yields(&pair, &format!("{count} WHERE CASE WHEN x = 0 THEN true ELSE 10 / x > 5 END"), &[2]);
    yields(&pair, "SELECT sum(10 / x) FILTER (WHERE x <> 0) FROM t", &[14]);
    yields(&pair, "SELECT sum(10 / x) FILTER (WHERE x <> 0) FROM t GROUP BY id % 1", &[14]);
    yields(&pair, "SELECT count(*) FROM t GROUP BY x HAVING x <> 0 AND 10 / x > 1", &[1, 1, 1]);
    yields(
        &pair,
        "SELECT max(x) FROM t GROUP BY id HAVING min(x) <> 0 AND 10 / min(x) > 1",
        &[1, 2, 5],
    );
    yields(&pair, "SELECT id FROM t ORDER BY x <> 0 AND 10 / x > 1, id LIMIT 3", &[1, 5, 7]);
    yields(&pair, "SELECT count(*) FROM t GROUP BY x <> 0 AND 10 / x > 1", &[1, 3, 3]);
    yields(
        &pair,
        "SELECT CASE WHEN id < 0 THEN CAST('a' AS int) ELSE 1 / (id * 0 + 1) END FROM t WHERE id < 3",
        &[1, 1],
    );
    yields(&pair, "SELECT CASE WHEN id < 0 THEN 1 / 0 ELSE 5 END FROM t WHERE id < 3", &[5, 5]);
    yields(&pair, "SELECT coalesce(y, 10 / (id - 1)) FROM t WHERE id < 3", &[3, 10]);
    // Rows become narrower here: DataFusion would compute the quotient below the filter.
    yields(
        &pair,
        "SELECT count(q) FROM (SELECT x, length(s) + 10 / x + y AS q FROM t WHERE x <> 0) d",
        &[3],
    );
}

#[test]
fn filters_below_guard_conditions_above() {
    let pair = tables();
    yields(&pair, "SELECT id FROM (SELECT * FROM t WHERE x <> 0) d WHERE 10 / x > 1", &[2, 3, 4]);
    yields(
        &pair,
        "SELECT id FROM (SELECT * FROM t WHERE s ~ '^[0-9]+$') d WHERE CAST(s AS int) > 5 AND id < 3",
        &[1],
    );
    yields(
        &pair,
        "SELECT id FROM (SELECT id, 10 / x AS q FROM t WHERE x <> 0) d WHERE q > 1",
        &[2, 3, 4],
    );
    yields(
        &pair,
        "WITH d AS (SELECT id, x FROM t WHERE x > 0) SELECT a.id FROM d a JOIN d b ON a.id = b.id WHERE 10 / b.x > 1",
        &[2, 3, 4],
    );
    yields(
        &pair,
        "SELECT id FROM (SELECT id, x FROM t WHERE x <> 0 UNION ALL SELECT id, 1 FROM t WHERE x = 0) d WHERE 10 / x > 5",
        &[1, 2],
    );
    yields(
        &pair,
        "SELECT id FROM (SELECT DISTINCT id, x FROM t WHERE x <> 0 ORDER BY id) d WHERE 10 / x > 1",
        &[2, 3, 4],
    );
    yields(
        &pair,
        "SELECT id FROM (SELECT id, x, row_number() OVER (PARTITION BY x ORDER BY id) AS n FROM t WHERE x <> 0) d WHERE 10 / x > 1",
        &[2, 3, 4],
    );
    yields(
        &pair,
        "SELECT id FROM (SELECT * FROM t ORDER BY id DESC LIMIT 5) d WHERE 10 / x > 1",
        &[3, 4],
    );
}

#[test]
fn conditions_of_joins_guard_one_another_and_what_is_above() {
    let pair = tables();
    yields(&pair, "SELECT id FROM t JOIN u ON t.x = u.k WHERE 10 / t.x > 1", &[2, 3, 4]);
    yields(&pair, "SELECT id FROM t JOIN u ON t.x = u.k AND 10 / t.x > 1", &[2, 3, 4]);
    yields(&pair, "SELECT id FROM t, u WHERE t.x = u.k AND 10 / t.x > 1", &[2, 3, 4]);
    yields(&pair, "SELECT id FROM t JOIN u ON t.x <> 0 AND 10 / t.x = u.n", &[2, 3, 4, 5]);
    yields(&pair, "SELECT id FROM t, u WHERE t.x <> 0 AND 10 / t.x = u.n", &[2, 3, 4, 5]);
    yields(&pair, "SELECT id FROM t JOIN u ON t.x <> 0 AND 10 / t.x > u.n", &[2, 2, 2, 2, 3, 3, 4]);
    yields(
        &pair,
        "SELECT id FROM t LEFT JOIN u ON t.x <> 0 AND 10 / t.x = u.n",
        &[1, 2, 3, 4, 5, 6, 7],
    );
    yields(&pair, "SELECT count(n) FROM t LEFT JOIN u ON t.x <> 0 AND 10 / t.x = u.n", &[4]);
    yields(
        &pair,
        "SELECT count(*) FROM t FULL JOIN u ON t.x <> 0 AND 10 / t.x = u.n AND u.n > 4",
        &[10],
    );
    yields(&pair, "SELECT count(id) FROM t RIGHT JOIN u ON u.n <> 0 AND 10 / u.n = t.x", &[4]);
    yields(
        &pair,
        "SELECT id FROM t JOIN u ON t.s ~ '^[0-9]+$' AND CAST(t.s AS bigint) = u.n",
        &[4, 6],
    );
    yields(
        &pair,
        "SELECT id FROM t, u WHERE t.s ~ '^[0-9]+$' AND CAST(t.s AS bigint) = u.n AND u.k > 1",
        &[4, 6],
    );
    yields(
        &pair,
        "SELECT id FROM t JOIN u ON t.id = u.k AND t.x <> 0 AND u.n <> 0 AND 100 / t.x / u.n > 1",
        &[2],
    );
    yields(
        &pair,
        "SELECT t.id FROM t JOIN u ON t.x = u.k JOIN t v ON v.id = t.id WHERE 10 / v.x > 1",
        &[2, 3, 4],
    );
}

#[test]
fn subqueries_are_guarded_too() {
    let pair = tables();
    yields(&pair, "SELECT id FROM t WHERE x <> 0 AND 10 / x IN (SELECT n FROM u)", &[2, 3, 4, 5]);
    yields(&pair, "SELECT id FROM t WHERE x = 0 OR 10 / x IN (SELECT n FROM u)", &[1, 2, 3, 4, 5]);
    yields(&pair, "SELECT id FROM t WHERE x <> 0 AND 10 / x NOT IN (SELECT n FROM u)", &[7]);
    yields(
        &pair,
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.x <> 0 AND 10 / t.x = u.n)",
        &[2, 3, 4, 5],
    );
    yields(
        &pair,
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.id AND u.n <> 0 AND 10 / u.n > 1)",
        &[2],
    );
    yields(
        &pair,
        "SELECT id FROM t WHERE x > (SELECT min(k) FROM u WHERE n <> 0 AND 10 / n > 1) AND 10 / x > 1",
        &[4],
    );
}

/// Moved conditions are what makes queries fast: those that cannot fail still are.
#[test]
fn conditions_that_cannot_fail_are_free() {
    let pair = tables();
    let plan = |sql: &str| pair.device.sql(sql).and_then(|frame| frame.explain()).expect("a plan");
    let plan_of_join = plan(
        "SELECT t.id FROM t JOIN u ON t.id = u.k WHERE t.x > 1 AND 10 / t.y > 1 AND u.n > 2 AND t.x * 2 > 1",
    );
    let filters: Vec<_> =
        plan_of_join.lines().filter(|line| line.contains("Filter: ")).map(str::trim).collect();
    assert_eq!(filters.len(), 3, "{plan_of_join}");
    assert!(filters[0].contains("10") && !filters[0].contains("AND"), "{plan_of_join}");
    let join = plan_of_join.find("Inner Join").expect("a join");
    assert!(
        plan_of_join[..join].contains("Int64(10) / t.y") && plan_of_join[join..].contains("t.x >"),
        "{plan_of_join}"
    );
    // An equality that can fail is a key all the same where nothing guards it, or a table's own
    // conditions do.
    for sql in [
        "SELECT id FROM t JOIN u ON CAST(t.s AS bigint) = u.n",
        "SELECT id FROM t, u WHERE t.s ~ '^[0-9]+$' AND CAST(t.s AS bigint) = u.n",
        "SELECT id FROM t LEFT JOIN u ON t.s ~ '^[0-9]+$' AND CAST(t.s AS bigint) = u.n",
    ] {
        let keyed = plan(sql);
        assert!(keyed.contains("Join: ") && keyed.contains(" = u.n"), "{keyed}");
        assert!(!keyed.contains("Cross Join") && !keyed.contains("Filter: CAST"), "{keyed}");
    }
}
