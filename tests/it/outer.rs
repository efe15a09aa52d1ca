//! Left, right and full joins, cross joins, and joins without an equality.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Int64Array, StringArray};

use crate::differential::{Cell, Pair, Rows, builder, run, scalar};
use crate::tables::{Batches, Shape, Values, share};

const KINDS: [&str; 3] = ["LEFT", "RIGHT", "FULL"];

#[test]
fn outer_joins_of_every_shape() {
    for (at, shape) in Shape::all().into_iter().enumerate() {
        let rows = if matches!(shape.values, Values::Same) { 200 } else { shape.rows.min(5000) };
        let other = Shape { rows: rows / 3 + 1, seed: shape.seed + 100, ..shape };
        let pair = Pair::of(Shape { rows, ..shape }.batches())
            .and("u", other.batches())
            .from(format!("{shape:?}"));
        for kind in share(KINDS, at) {
            pair.check_all(&[
                &format!("SELECT t.id, t.k, u.s, u.x FROM t {kind} JOIN u ON t.id = u.id"),
                &format!("SELECT t.id, u.id AS other, u.sd FROM t {kind} JOIN u ON t.w = u.w AND t.k = u.k"),
                &format!("SELECT t.id, t.sl, u.id AS other FROM u {kind} JOIN t ON t.sl = u.sl"),
            ]);
        }
    }
}

#[test]
fn outer_joins_on_keys_of_every_type() {
    let shape = Shape::random(300, 171);
    let pair = Pair::of(shape.batches())
        .and("u", Shape { seed: 172, batches: Batches::Several, ..shape }.batches());
    let pair = pair.and("same", Shape { rows: 200, ..shape }.batches());
    for (at, column) in
        ["i8", "u64", "f32", "f64", "x", "d", "ts", "m", "m38", "s", "sl", "sv", "sd", "b"]
            .into_iter()
            .enumerate()
    {
        let kind = KINDS[at % 3];
        pair.check(&format!(
            "SELECT t.id, v.id AS other, v.{column} FROM t {kind} JOIN same v ON t.{column} = v.{column}"
        ));
    }
    for kind in KINDS {
        pair.check_all(&[
            &format!("SELECT t.id, u.id AS other FROM t {kind} JOIN u ON t.k IS NOT DISTINCT FROM u.k2"),
            &format!(
                "SELECT t.id, u.id AS other FROM t {kind} JOIN u ON (t.s IS NOT DISTINCT FROM u.sd) AND t.k = u.k"
            ),
            &format!("SELECT t.i8, u.m38 FROM t {kind} JOIN u ON t.i8 = u.i64 % 100"),
            &format!("SELECT t.id, u.id AS other FROM t {kind} JOIN u USING (k, k2)"),
        ]);
    }
}

#[test]
fn outer_joins_with_further_conditions() {
    let shape = Shape::random(700, 173);
    let pair =
        Pair::of(shape.batches()).and("u", Shape { seed: 174, rows: 300, ..shape }.batches());
    for kind in KINDS {
        for condition in [
            "t.id = u.id AND t.x < u.x",
            "t.k = u.k AND t.k2 = u.k2 AND t.x < u.x",
            "t.k = u.k AND t.id < u.id AND t.s <> u.s",
            "t.s = u.s AND t.k = u.k AND t.d < u.d",
            "t.id = u.id AND t.b",
            "t.k = u.k AND u.b AND u.k2 > 1",
            "t.id = u.id AND t.id < 0",
        ] {
            pair.check(&format!(
                "SELECT t.id, u.id AS other, u.sv, t.m FROM t {kind} JOIN u ON {condition}"
            ));
        }
        pair.check_all(&[
            &format!("SELECT t.id, u.id AS other FROM t {kind} JOIN u ON t.id = u.id WHERE u.k IS NULL OR t.k = 2"),
            &format!("SELECT t.k, count(*), count(u.id), sum(u.x), min(u.s) FROM t {kind} JOIN u ON t.id = u.id GROUP BY t.k"),
            &format!("SELECT t.s, count(u.k) FROM t {kind} JOIN u ON t.k = u.k AND t.k2 = u.k2 GROUP BY t.s"),
            &format!("SELECT t.id, u.k, v.s FROM t {kind} JOIN u ON t.id = u.id {kind} JOIN u v ON u.k = v.id"),
            &format!("SELECT a.id, b.id AS other FROM (SELECT * FROM t WHERE b) a {kind} JOIN (SELECT * FROM u WHERE k > 2) b ON a.k2 = b.k2 AND a.k = b.k"),
            &format!("SELECT t.id, u.k, u.s FROM t {kind} JOIN u ON t.id = u.id ORDER BY u.s NULLS FIRST, t.id, u.id LIMIT 40"),
            &format!("SELECT DISTINCT u.k, u.sd, t.k2 FROM t {kind} JOIN u ON t.id = u.k"),
            &format!("SELECT q.k, q.n, r.y FROM (SELECT k, count(*) AS n FROM t GROUP BY k) q {kind} JOIN (SELECT k2, sum(x) AS y FROM u GROUP BY k2) r ON q.k = r.k2"),
        ]);
    }
}

#[test]
fn outer_joins_of_outer_joins_look_through_their_gaps() {
    let shape = Shape::random(400, 177);
    let pair =
        Pair::of(shape.batches()).and("u", Shape { seed: 178, rows: 150, ..shape }.batches());
    pair.check_all(&[
        "SELECT q.id, q.s, v.id AS other FROM (SELECT t.id, u.s, u.k FROM t FULL JOIN u ON t.k = u.k AND t.k2 = u.k2) q LEFT JOIN u v ON q.k = v.k2 AND q.id = v.id",
        "SELECT count(*), sum(q.x), count(v.s) FROM (SELECT t.id, u.x, u.k FROM t LEFT JOIN u ON t.w = u.w) q RIGHT JOIN t v ON q.k = v.k AND q.id < v.id",
        "SELECT coalesce(q.k, v.k), count(*) FROM (SELECT u.k FROM t LEFT JOIN u ON t.id = u.id) q FULL JOIN (SELECT DISTINCT k FROM t) v ON q.k = v.k GROUP BY coalesce(q.k, v.k)",
        "SELECT q.id, q.k FROM (SELECT t.id, u.k FROM t LEFT JOIN u ON t.k = u.k2 ORDER BY t.id, u.id LIMIT 300 OFFSET 20) q WHERE q.k IS NULL",
    ]);
}

#[test]
fn outer_joins_of_empty_and_all_null_sides() {
    let shape = Shape::random(300, 175);
    let pair = Pair::of(shape.batches())
        .and("empty", Shape { rows: 0, ..shape }.batches())
        .and("hollow", Shape { rows: 40, values: Values::AllNull, ..shape }.batches());
    let sides =
        [("t", "empty"), ("empty", "t"), ("empty", "empty"), ("t", "hollow"), ("hollow", "t")];
    for (at, (left, right)) in sides.into_iter().enumerate() {
        for kind in KINDS {
            for key in [["id", "s"], ["k", "m38"], ["sd", "f64"], ["id", "k"], ["k", "s"]][at] {
                pair.check_all(&[
                    &format!("SELECT l.id, l.k, r.s, r.m FROM {left} l {kind} JOIN {right} r ON l.{key} = r.{key}"),
                    &format!(
                        "SELECT l.id, r.sd FROM {left} l {kind} JOIN {right} r ON l.{key} = r.{key} AND l.k2 < r.k2"
                    ),
                ]);
            }
            pair.check(&format!(
                "SELECT l.id, r.s FROM {left} l {kind} JOIN {right} r ON (l.k IS NOT DISTINCT FROM r.k) AND l.id < 9"
            ));
        }
    }
}

#[test]
fn outer_joins_of_a_small_preserved_side() {
    // Few preserved rows: they become the build side, and those without a match are found
    // afterwards.
    let pair = Pair::of(Shape { rows: 40, ..Shape::random(40, 180) }.batches())
        .and("u", Shape { rows: 3000, ..Shape::random(3000, 181) }.batches());
    pair.check_all(&[
        "SELECT t.id, u.id AS other FROM t LEFT JOIN u ON t.id = u.id % 30",
        "SELECT t.id, u.id AS other, u.s FROM t LEFT JOIN u ON t.k = u.k AND u.k2 = 3 AND u.x > t.x",
        "SELECT u.id, t.id AS other, t.sd FROM u RIGHT JOIN t ON t.s = u.s AND u.id > 2000",
        "SELECT t.id, count(u.id) FROM t LEFT JOIN u ON t.id = u.k + 20 GROUP BY t.id",
        "SELECT t.id, u.k FROM t LEFT JOIN u ON t.sl = u.sl",
    ]);
}

#[test]
fn cross_joins_and_joins_without_an_equality() {
    let shape = Shape::random(90, 190);
    let pair = Pair::of(shape.batches())
        .and("u", Shape { seed: 191, rows: 50, ..shape }.batches())
        .and("one", Shape { seed: 192, rows: 1, nulls: 0.0, ..shape }.batches())
        .and("empty", Shape { rows: 0, ..shape }.batches());
    pair.check_all(&[
        "SELECT t.id, u.id AS other, u.s FROM t CROSS JOIN u",
        "SELECT t.id, one.s FROM t CROSS JOIN one",
        "SELECT one.id, t.sd FROM one CROSS JOIN t WHERE t.k > one.k",
        "SELECT t.id, empty.s FROM t CROSS JOIN empty",
        "SELECT count(*), sum(t.id * u.id) FROM t, u",
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.id < u.id AND t.k <> u.k",
        "SELECT t.id, u.id AS other FROM t JOIN u ON t.s LIKE 'a%' OR t.k = u.k",
        "SELECT a.id, b.id AS other, c.id AS third FROM one a CROSS JOIN t b CROSS JOIN u c WHERE b.id < c.id",
    ]);
    for kind in KINDS {
        for (left, right) in
            [("t", "u"), ("t", "one"), ("one", "t"), ("t", "empty"), ("empty", "t"), ("one", "one")]
        {
            for condition in
                ["l.id < r.id", "l.x > r.x AND l.k = 3", "true", "l.b", "r.b", "l.k + r.k = 7"]
            {
                pair.check(&format!(
                    "SELECT l.id, r.id AS other, r.s FROM {left} l {kind} JOIN {right} r ON {condition}"
                ));
            }
        }
    }
}

#[test]
fn outer_joins_whose_conditions_make_lists_note_no_match_twice() {
    // The lists of all pairs outgrow what was set aside for them, so that conditions are looked at
    // again.
    let shape = Shape { nulls: 0.6, ..Shape::random(70, 193) };
    let pair =
        Pair::of(shape.batches()).and("u", Shape { seed: 194, rows: 150, ..shape }.batches());
    for kind in KINDS {
        for condition in [
            "make_array(t.w, -5) < make_array(-5, NULL)",
            "concat(t.s, u.s, 'and so on') < repeat(u.s, 9)",
        ] {
            pair.check(&format!("SELECT t.id, u.id AS other FROM t {kind} JOIN u ON {condition}"));
        }
    }
}

#[test]
fn scalar_subqueries_are_joins_with_one_row() {
    let shape = Shape::random(800, 195);
    let pair = Pair::of(shape.batches())
        .and("u", Shape { seed: 196, rows: 300, ..shape }.batches())
        .and("empty", Shape { rows: 0, ..shape }.batches());
    pair.check_all(&[
        "SELECT id FROM t WHERE x > (SELECT avg(x) FROM u)",
        "SELECT id, (SELECT max(s) FROM u), x - (SELECT min(x) FROM t) FROM t",
        "SELECT id, (SELECT sum(k) FROM empty) FROM t WHERE k > (SELECT count(*) FROM empty)",
        "SELECT id FROM t WHERE x > (SELECT max(x) FROM empty) OR k = 1",
        "SELECT k, sum(x) FROM t GROUP BY k HAVING sum(x) > (SELECT sum(x) / 1000 FROM u)",
        "SELECT id FROM t WHERE x < (SELECT 0.5 * avg(u.x) FROM u WHERE u.k = t.k)",
        "SELECT id, (SELECT count(*) FROM u WHERE u.k = t.k AND u.b) FROM t",
        "SELECT id, (SELECT max(u.sd) FROM u WHERE u.k2 = t.k2) FROM t WHERE k = (SELECT min(k) FROM u)",
        "SELECT (SELECT count(*) FROM t), (SELECT sum(k) FROM u), (SELECT min(s) FROM empty)",
        "SELECT id FROM t WHERE s = (SELECT s FROM u ORDER BY id LIMIT 1)",
    ]);
}

/// A scalar subquery without a row is null, whatever its column is.
#[test]
fn scalar_subqueries_without_a_row_are_null() {
    let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let s: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let pair = Pair::of(crate::tables::columns(vec![("id", id), ("s", s)]));
    for (sql, rows) in [
        ("SELECT id FROM t WHERE (SELECT id FROM t WHERE id = 77) IS NULL", 3),
        ("SELECT id FROM t WHERE (SELECT id FROM t WHERE id = 77 LIMIT 1) IS NOT NULL", 0),
        ("SELECT id FROM t WHERE coalesce((SELECT s FROM t WHERE id = 77), 'none') = 'none'", 3),
        ("SELECT id, (SELECT s FROM t WHERE id > 9) AS s FROM t WHERE id > 1", 2),
        ("SELECT id FROM t WHERE (SELECT count(*) FROM t WHERE id = 77) = 0", 3),
        ("SELECT id, (SELECT trim('B') FROM t HAVING max(id) > 77) AS s FROM t", 3),
        (
            "SELECT id FROM (SELECT id, (SELECT id FROM t WHERE id = 9) AS x FROM t) v WHERE x IS NULL",
            3,
        ),
    ] {
        pair.check(sql);
        for session in [&pair.cpu, &pair.device] {
            assert_eq!(Rows::of(&run(session, sql).expect("it ran")).rows.len(), rows, "{sql}");
        }
    }
}

#[test]
fn scalar_subqueries_of_several_rows_are_errors() {
    let shape = Shape::random(100, 197);
    let pair = Pair::with(builder().strict(false))
        .and("t", shape.batches())
        .and("u", Shape { seed: 198, ..shape }.batches());
    for (sql, runs) in [
        ("SELECT id FROM t WHERE k = (SELECT k FROM u WHERE id = 5)", true),
        ("SELECT id, (SELECT x FROM u WHERE id < 0) FROM t", true),
        ("SELECT id FROM t WHERE k = (SELECT k FROM u WHERE id IN (5, 6))", false),
        ("SELECT id, (SELECT x FROM u) FROM t", false),
    ] {
        let (expected, found) = (run(&pair.cpu, sql), run(&pair.device, sql));
        assert_eq!((expected.is_ok(), found.is_ok()), (runs, runs), "{sql}: {found:?}");
        if let (Ok(expected), Ok(found)) = (expected, found) {
            pair.rows_agree(&expected, &found, sql);
        }
    }
}

/// The CPU took `t.s` for `u.s` where a filter was moved below a join, and kept all rows that begin
/// with themselves.
#[test]
fn filters_tell_columns_of_one_name_apart() {
    let empty = Shape { values: Values::AllNull, nulls: 0.0, ..Shape::random(70, 181) };
    let other = Shape { nulls: 0.6, batches: Batches::Sliced, ..Shape::random(150, 182) };
    let pair = Pair::of(empty.batches()).and("u", other.batches());
    let kept = scalar(&pair.cpu, "SELECT count(*) FROM u WHERE u.k > 5 AND starts_with(u.s, u.s)");
    assert!(matches!(kept, Cell::Int(1..)), "{kept:?}");
    for kind in KINDS {
        pair.check_all(&[
            &format!("SELECT count(*) AS n FROM t {kind} JOIN u ON t.k = u.k WHERE u.k > 5 AND starts_with(u.s, t.s)"),
            &format!("SELECT u.id FROM t {kind} JOIN u ON t.k = u.k WHERE u.s LIKE 'a%' AND starts_with(u.s, t.s)"),
        ]);
        let none = format!(
            "SELECT count(*) FROM t {kind} JOIN u ON t.k = u.k WHERE u.k > 5 AND starts_with(u.s, t.s)"
        );
        assert_eq!(scalar(&pair.cpu, &none), Cell::Int(0), "{none}");
    }
}
