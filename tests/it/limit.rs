//! LIMIT and OFFSET, alone and after ORDER BY.

use crate::differential::Pair;
use crate::tables::{Batches, Shape};

#[test]
fn limits_in_and_out_of_range() {
    let base = Shape::random(5000, 51);
    for shape in [
        base,
        Shape { batches: Batches::Several, ..base },
        Shape { rows: 0, ..base },
        Shape { rows: 33, ..base },
    ] {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for (fetch, skip) in
            [(0, 0), (1, 0), (32, 0), (33, 1), (7, 4998), (7, 5000), (10, 9000), (6000, 0)]
        {
            // Without a row to fetch there is nothing to run.
            pair.agreement(&format!(
                "SELECT id, s, x FROM t ORDER BY x DESC, id LIMIT {fetch} OFFSET {skip}"
            ));
            let rows = (shape.rows.saturating_sub(skip)).min(fetch);
            // Any rows will do, and they are rows of the table.
            let sql = format!("SELECT id + 0 AS id FROM t LIMIT {fetch} OFFSET {skip}");
            let frame = crate::differential::run(&pair.device, &sql).expect("a limit runs");
            assert_eq!(frame.num_rows(), rows, "{sql}");
        }
    }
}

#[test]
fn limits_inside_of_queries() {
    let pair = Pair::of(Shape::random(5000, 52).batches());
    pair.check_all(&[
        "SELECT k, count(*) FROM (SELECT k FROM t ORDER BY id LIMIT 1000 OFFSET 10) GROUP BY k",
        "SELECT sum(x) FROM (SELECT x FROM t ORDER BY x, id LIMIT 100)",
        "SELECT k, n FROM (SELECT k, count(*) AS n FROM t GROUP BY k) ORDER BY n DESC, k LIMIT 3",
        "SELECT s, sum(m) AS total FROM t GROUP BY s ORDER BY total DESC, s LIMIT 5 OFFSET 2",
        "SELECT a.id, b.id AS other FROM (SELECT id, k FROM t ORDER BY id DESC LIMIT 50) a JOIN (SELECT id, k FROM t ORDER BY id LIMIT 9) b ON a.k = b.k",
        "SELECT id FROM (SELECT id FROM t ORDER BY x, id LIMIT 100) ORDER BY id LIMIT 10",
        "SELECT DISTINCT k FROM (SELECT k FROM t ORDER BY id LIMIT 40)",
    ]);
}

#[test]
fn the_first_of_equals_are_those_that_came_first() {
    use crate::differential::{Rows, run};
    let pair = Pair::of(Shape::random(20_000, 53).batches());
    for key in ["k", "b DESC", "s, k2", "x", "m38 DESC", "f64 NULLS FIRST", "sd DESC"] {
        for limit in [1, 33, 3000] {
            let device =
                run(&pair.device, &format!("SELECT id FROM t ORDER BY {key} LIMIT {limit}"))
                    .expect("it runs");
            let cpu = run(&pair.cpu, &format!("SELECT id FROM t ORDER BY {key}, id LIMIT {limit}"))
                .expect("it runs");
            assert_eq!(Rows::of(&device).rows, Rows::of(&cpu).rows, "ORDER BY {key} LIMIT {limit}");
        }
    }
}

#[test]
fn the_first_of_many_rows_that_differ_late() {
    use std::sync::Arc;
    use warpframe::arrow::array::{ArrayRef, Float64Array, Int64Array};
    // All keys share their high bits; half of them are one key.
    let rows = 200_000;
    let value = |i: i64| if i % 2 == 0 { 1.5 } else { 1.0 + (i * 7919 % rows) as f64 * 1e-9 };
    let table: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("x", Arc::new(Float64Array::from_iter_values((0..rows).map(value)))),
    ];
    let pair = Pair::of(crate::tables::columns(table));
    pair.check_all(&[
        "SELECT id FROM t ORDER BY x, id LIMIT 100",
        "SELECT id FROM t ORDER BY x DESC, id LIMIT 100",
        "SELECT id FROM t ORDER BY id DESC LIMIT 7 OFFSET 3",
        "SELECT id FROM t WHERE x < 1.4 ORDER BY x DESC, id LIMIT 1000",
    ]);
}

/// Of a million rows, or two, one kernel finds the first.
#[test]
fn the_first_of_few_rows_by_one_kernel() {
    use std::sync::Arc;
    use warpframe::arrow::array::{ArrayRef, Float64Array, Int64Array};
    for rows in [1001, 5000, 50_000] {
        let key = |i: i64| if i % 1000 == 999 { -1 } else { 5 };
        let value = |i: i64| if i % 7 == 3 { f64::NAN } else { (i * 7919 % 1009) as f64 - 500.5 };
        let table: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
            ("k", Arc::new(Int64Array::from_iter_values((0..rows).map(key)))),
            ("x", Arc::new(Float64Array::from_iter_values((0..rows).map(value)))),
            ("r", Arc::new(Int64Array::from_iter_values((0..rows).map(|i| i * 7919 % rows)))),
        ];
        let pair = Pair::of(crate::tables::columns(table)).from(format!("{rows} rows"));
        pair.check_all(&[
            "SELECT k FROM t ORDER BY k LIMIT 100",
            "SELECT r, x FROM t ORDER BY r DESC LIMIT 20",
            "SELECT id, x FROM t ORDER BY id DESC LIMIT 20",
            "SELECT x FROM t ORDER BY x LIMIT 100",
            "SELECT x FROM t ORDER BY x DESC LIMIT 1000",
            "SELECT sum(id) FROM (SELECT id FROM t ORDER BY id LIMIT 300)",
        ]);
        let device = pair.device.device().expect("a device");
        let launched = ["top_few_8", "top_few_16"]
            .map(|kernel| device.launches().get(kernel).copied().unwrap_or(0));
        assert!(launched[0] + launched[1] >= 3, "{rows} rows: {:?}", device.launches());
    }
}
