//! `EXISTS`, `IN`, `NOT IN`, `INTERSECT`, `EXCEPT`: semi, anti and mark joins.

use warpframe::ErrorKind;

use crate::differential::{Agreement, Pair, run};
use crate::tables::{Batches, Shape, Values};

#[test]
fn semi_and_anti_joins_of_every_shape() {
    for shape in Shape::all() {
        let other = Shape { rows: shape.rows / 3 + 1, seed: shape.seed + 100, ..shape };
        let pair = Pair::of(shape.batches()).and("u", other.batches()).from(format!("{shape:?}"));
        for exists in ["EXISTS", "NOT EXISTS"] {
            pair.check_all(&[
                &format!("SELECT id, s FROM t WHERE {exists} (SELECT 1 FROM u WHERE u.id = t.id)"),
                &format!("SELECT id, x FROM t WHERE {exists} (SELECT 1 FROM u WHERE u.w = t.w AND u.k = t.k)"),
                &format!("SELECT id, sl FROM u WHERE {exists} (SELECT 1 FROM t WHERE u.sl = t.sl)"),
            ]);
        }
    }
}

#[test]
fn semi_and_anti_joins_on_keys_of_every_type() {
    let shape = Shape::random(400, 271);
    let pair = Pair::of(shape.batches())
        .and("u", Shape { seed: 272, batches: Batches::Several, ..shape }.batches());
    let pair = pair.and("same", Shape { rows: 200, ..shape }.batches());
    let columns =
        ["i8", "i16", "u64", "f32", "f64", "x", "d", "ts", "m", "m38", "s", "sl", "sv", "sd", "b"];
    for (at, column) in columns.into_iter().enumerate() {
        let form = ["EXISTS", "NOT EXISTS"][at % 2];
        pair.check_all(&[
            &format!("SELECT id FROM t WHERE {form} (SELECT 1 FROM same v WHERE v.{column} = t.{column})"),
            &format!("SELECT id FROM t WHERE t.{column} IN (SELECT {column} FROM same)"),
            &format!("SELECT id FROM t WHERE t.{column} NOT IN (SELECT {column} FROM same WHERE {column} IS NOT NULL)"),
        ]);
    }
    pair.check_all(&[
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.k IS NOT DISTINCT FROM u.k2)",
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE t.sd IS NOT DISTINCT FROM u.sv)",
        "SELECT id FROM t WHERE k + 1 IN (SELECT k2 * 2 FROM u)",
        "SELECT l.id FROM t l LEFT SEMI JOIN u r ON l.k = r.k2",
        "SELECT l.id FROM t l LEFT ANTI JOIN u r ON l.k = r.k2 AND l.s = r.s",
        "SELECT r.id FROM t l RIGHT SEMI JOIN u r ON l.k = r.k2",
        "SELECT r.id FROM t l RIGHT ANTI JOIN u r ON l.k = r.k2 AND l.sv = r.sv",
    ]);
}

#[test]
fn semi_and_anti_joins_with_further_conditions() {
    let shape = Shape::random(900, 273);
    let pair =
        Pair::of(shape.batches()).and("u", Shape { seed: 274, rows: 400, ..shape }.batches());
    for form in ["EXISTS", "NOT EXISTS"] {
        for condition in [
            "u.k = t.k AND u.id <> t.id AND u.x > t.x + 150",
            "u.id = t.id AND u.x > t.x",
            "u.id = t.id AND t.b AND u.k2 > 0",
            "u.s = t.s AND u.k <> t.k AND u.d > t.d",
            "u.k2 = t.k2 AND u.s < t.s AND t.k > 3",
            "u.id > t.id + 380",
            "u.x * 2 < t.x AND u.k = 3",
            "true",
            "t.b",
            "u.id < 0",
        ] {
            pair.check(&format!(
                "SELECT t.id, t.sd FROM t WHERE {form} (SELECT 1 FROM u WHERE {condition})"
            ));
        }
    }
    pair.check_all(&[
        "SELECT k, count(*), sum(x) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.k <> t.k) GROUP BY k",
        "SELECT t.id, u.s FROM t JOIN u ON t.id = u.id WHERE NOT EXISTS (SELECT 1 FROM u v WHERE v.k = t.k AND v.id > u.id + 200)",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.b) AND NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.k2 > t.k2)",
        "SELECT id FROM t WHERE k IN (SELECT k FROM u WHERE u.k2 = t.k2 AND u.x > t.x) ORDER BY s, id LIMIT 30",
        "SELECT id FROM t WHERE k IN (SELECT k FROM u GROUP BY k HAVING count(*) > 50)",
    ]);
}

#[test]
fn semi_joins_that_keep_few_rows_mark_them() {
    let pair =
        Pair::of(Shape::random(40, 285).batches()).and("u", Shape::random(3000, 286).batches());
    for condition in [
        "u.id = t.id + 2970",
        "u.k = t.k AND u.x > t.x + 290",
        "u.w = t.w AND u.id <> t.id AND u.id < 60",
        "u.s = t.s AND u.k > t.k + 4",
        "u.sl = t.sl",
        "u.m38 = t.m38",
        "u.f64 = t.f64 AND u.b",
        "u.i32 = t.i32",
        "u.i64 IS NOT DISTINCT FROM t.i64",
        // More characters than are reserved at first.
        "u.k = t.k AND repeat(u.sl, 40) < repeat(t.sl, 40)",
    ] {
        pair.check_all(&[
            &format!("SELECT t.id, t.sv FROM t WHERE EXISTS (SELECT 1 FROM u WHERE {condition})"),
            &format!("SELECT t.id, t.sv FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE {condition})"),
            &format!("SELECT t.id, t.sv FROM t WHERE EXISTS (SELECT 1 FROM u WHERE {condition}) OR t.k = 3"),
            &format!("SELECT u.id FROM t RIGHT SEMI JOIN u ON {condition}"),
            &format!("SELECT k, count(*) FROM t LEFT ANTI JOIN u ON {condition} GROUP BY k"),
        ]);
    }
    pair.check_all(&[
        "SELECT t.sd FROM u RIGHT SEMI JOIN t ON t.w = u.w AND t.x < u.x",
        "SELECT t.sd FROM u RIGHT ANTI JOIN t ON t.sv = u.sv ORDER BY t.id",
        "SELECT a.id FROM (SELECT t.id, v.w FROM t LEFT JOIN t v ON t.id = v.id AND v.b) a LEFT SEMI JOIN u ON a.w = u.w",
    ]);
}

#[test]
fn marks_say_whether_there_is_a_match() {
    let shape = Shape::random(700, 275);
    let pair =
        Pair::of(shape.batches()).and("u", Shape { seed: 276, rows: 300, ..shape }.batches());
    pair.check_all(&[
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id) OR t.k = 3",
        "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.x > t.x) OR t.b",
        "SELECT id, s FROM t WHERE k IN (SELECT k2 FROM u) OR s IN (SELECT sv FROM u) OR x > 100",
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.sl = t.sl) OR EXISTS (SELECT 1 FROM u WHERE u.id > t.id + 200)",
        "SELECT id FROM t WHERE CASE WHEN EXISTS (SELECT 1 FROM u WHERE u.id = t.id) THEN k > 2 ELSE k < 2 END",
        "SELECT k, count(*) FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.id = t.id) OR t.b GROUP BY k",
    ]);
}

#[test]
fn not_in_knows_what_a_null_means() {
    let shape = Shape::random(300, 277);
    let pair = Pair::of(shape.batches())
        .and("u", Shape { rows: 100, seed: 278, ..shape }.batches())
        .and("full", Shape { rows: 100, seed: 279, nulls: 0.0, ..shape }.batches())
        .and("empty", Shape { rows: 0, ..shape }.batches())
        .and("hollow", Shape { rows: 30, values: Values::AllNull, ..shape }.batches());
    for column in ["id", "k", "i8", "s", "sl", "sd", "m38", "f64", "d"] {
        for table in ["u", "full", "empty", "hollow"] {
            pair.check(&format!(
                "SELECT id, s FROM t WHERE {column} NOT IN (SELECT {column} FROM {table})"
            ));
        }
        let rows = pair
            .check(&format!("SELECT id FROM t WHERE {column} NOT IN (SELECT {column} FROM empty)"));
        assert_eq!(rows, 300, "nothing is in an empty list");
    }
    assert_eq!(
        pair.check("SELECT id FROM t WHERE k NOT IN (SELECT k FROM u)"),
        0,
        "a null is in the list"
    );
    pair.check_all(&[
        "SELECT id FROM t WHERE k NOT IN (SELECT k FROM full WHERE k < 4)",
        "SELECT id FROM t WHERE k + k2 NOT IN (SELECT k FROM full WHERE k < 4) AND b",
        "SELECT id FROM hollow WHERE k NOT IN (SELECT k FROM full)",
        "SELECT id FROM empty WHERE k NOT IN (SELECT k FROM full)",
        "SELECT k, count(*) FROM t WHERE s NOT IN (SELECT s FROM u WHERE s IS NOT NULL AND k = 2) GROUP BY k",
    ]);
}

#[test]
fn semi_joins_of_empty_and_all_null_sides() {
    let shape = Shape::random(300, 281);
    let pair = Pair::of(shape.batches())
        .and("empty", Shape { rows: 0, ..shape }.batches())
        .and("hollow", Shape { rows: 40, values: Values::AllNull, ..shape }.batches());
    for (left, right) in
        [("t", "empty"), ("empty", "t"), ("t", "hollow"), ("hollow", "t"), ("hollow", "hollow")]
    {
        for form in ["EXISTS", "NOT EXISTS"] {
            for condition in [
                "r.id = l.id",
                "r.k = l.k",
                "r.s = l.s AND r.x < l.x",
                "r.k = l.k AND r.k2 > l.k2",
                "r.id > l.id",
            ] {
                pair.check_all(&[
                    &format!("SELECT l.id FROM {left} l WHERE {form} (SELECT 1 FROM {right} r WHERE {condition})"),
                    &format!(
                        "SELECT l.id FROM {left} l WHERE {form} (SELECT 1 FROM {right} r WHERE {condition}) OR l.k = 1"
                    ),
                ]);
            }
        }
    }
}

#[test]
fn intersect_and_except() {
    let shape = Shape::random(500, 283);
    let pair = Pair::of(shape.batches())
        .and("u", Shape { seed: 284, rows: 300, ..shape }.batches())
        .and("empty", Shape { rows: 0, ..shape }.batches());
    for operator in ["INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"] {
        pair.check_all(&[
            &format!("SELECT k, k2 FROM t {operator} SELECT k, k2 FROM u"),
            &format!("SELECT s FROM t {operator} SELECT s FROM u WHERE k > 2"),
            &format!("SELECT sd, b FROM t {operator} SELECT sd, b FROM u WHERE k > 4"),
            &format!("SELECT id FROM t {operator} SELECT k FROM u"),
            &format!("SELECT f64, m38 FROM t {operator} SELECT f64, m38 FROM empty"),
        ]);
    }
    pair.check(
        "SELECT k FROM t WHERE b INTERSECT SELECT k FROM u EXCEPT SELECT k2 FROM u WHERE k2 > 2",
    );
}

#[test]
fn not_in_among_the_rows_that_satisfy_a_condition() {
    use crate::differential::Rows;
    let shape = Shape::random(300, 91);
    let pair = Pair::of(shape.batches()).and("u", Shape { rows: 200, seed: 92, ..shape }.batches());
    for (member, condition) in
        [("k", "u.x < t.x"), ("s", "u.k2 > t.k2 AND u.b"), ("id", "u.x <> t.x")]
    {
        let asked = format!(
            "SELECT id FROM t WHERE t.{member} NOT IN (SELECT u.{member} FROM u WHERE {condition}) ORDER BY id"
        );
        // What it means, without a null-aware join.
        let meant = format!(
            "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE {condition} AND (u.{member} = t.{member} OR u.{member} IS NULL OR t.{member} IS NULL)) ORDER BY id"
        );
        let found = Rows::of(
            &run(&pair.device, &asked).unwrap_or_else(|error| panic!("{error}\n  {asked}")),
        )
        .rows;
        assert_eq!(found, Rows::of(&run(&pair.cpu, &meant).expect("a query")).rows, "{asked}");
    }
}

/// DataFusion does not look at the right side of a join whose left one has no rows. The device may,
/// but what fails there is nobody's.
#[test]
fn a_right_side_that_fails_beside_an_empty_left_one_makes_no_difference() {
    let pair = Pair::of(Shape::random(700, 5).batches()).and("u", Shape::random(40, 6).batches());
    let empty = "SELECT k FROM t WHERE k < 0 AND k > 0";
    let failing = "SELECT CAST(1 / (k - k) AS BIGINT) AS k FROM t WHERE k IS NOT NULL";
    assert_eq!(pair.check(empty), 0);
    assert!(matches!(pair.check_error(failing).kind(), ErrorKind::Arithmetic { .. }));
    for operator in ["INTERSECT", "EXCEPT"] {
        assert_eq!(pair.check(&format!("{empty} {operator} {failing}")), 0);
    }
    // These count the rows of both sides.
    for operator in ["INTERSECT ALL", "EXCEPT ALL"] {
        assert!(matches!(
            pair.check_error(&format!("{empty} {operator} {failing}")).kind(),
            ErrorKind::Arithmetic { .. }
        ));
    }
    for kind in ["LEFT SEMI", "LEFT ANTI", "LEFT", "INNER"] {
        assert_eq!(
            pair.check(&format!(
                "SELECT a.k FROM ({empty}) a {kind} JOIN ({failing}) b ON a.k = b.k"
            )),
            0
        );
    }
    // With rows on the left it is an error on both.
    let some = "SELECT CAST(k AS BIGINT) AS k FROM t WHERE k IS NOT NULL";
    for sql in [
        format!("{some} INTERSECT {failing}"),
        format!("SELECT a.k FROM ({some}) a LEFT SEMI JOIN ({failing}) b ON a.k = b.k"),
    ] {
        assert!(matches!(pair.check_error(&sql).kind(), ErrorKind::Arithmetic { .. }), "{sql}");
    }
}

/// A side of a condition may be computed below the join, but fails only for a pair.
#[test]
fn conditions_of_a_join_do_not_fail_where_there_is_no_pair() {
    let pair = Pair::of(Shape::random(700, 5).batches()).and("u", Shape::random(40, 6).batches());
    let none = "(SELECT * FROM u WHERE k < 0 AND k > 0) u";
    for kind in ["CROSS JOIN", "INNER JOIN"] {
        let on = if kind == "CROSS JOIN" { "WHERE" } else { "ON" };
        let sql = format!("SELECT t.id FROM t {kind} {none} {on} u.k <= 1 / (t.k - t.k)");
        assert_eq!(pair.agreement(&sql), Agreement::Rows(0), "{sql}");
    }
    let some = "SELECT t.id FROM t CROSS JOIN u WHERE u.k <= 1 / (t.k - t.k)";
    assert!(matches!(pair.check_error(some).kind(), ErrorKind::Arithmetic { .. }));
}

/// Lists are first made with too little room: rows that seem to be kept then, and are not, leave no
/// trace.
#[test]
fn a_condition_that_is_looked_at_twice_sees_no_null_of_the_first_time() {
    use std::sync::Arc;
    use warpframe::arrow::array::{ArrayRef, Int64Array, StringArray};
    let rows = 900;
    let text = |i: i64| (i % 2 == 1).then(|| format!("abc{}", i % 5));
    let table: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("k", Arc::new(Int64Array::from_iter((0..rows).map(|i| (i % 2 == 1).then_some(i % 5))))),
        ("s", Arc::new(StringArray::from_iter((0..rows).map(text)))),
        ("x", Arc::new(Int64Array::from_iter_values((0..rows).map(|i| i % 100)))),
    ];
    let pair = Pair::of(crate::tables::columns(table));
    for key in ["s", "k"] {
        let list = format!(
            "SELECT {key} FROM t WHERE id = 1 OR make_array(-4, x) >= make_array(x, NULL, NULL)"
        );
        assert_eq!(pair.check(&list), 1);
        // Of 450 rows that are not null a fifth are in the list.
        assert_eq!(pair.check(&format!("SELECT id FROM t WHERE {key} NOT IN ({list})")), 360);
    }
}
