//! ORDER BY.

use crate::differential::{Cell, Pair, Rows, run};
use crate::tables::Shape;

#[test]
fn sort_of_every_shape() {
    for shape in Shape::all() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        pair.check_all(&[
            "SELECT * FROM t ORDER BY k DESC, id",
            "SELECT id, x FROM t ORDER BY x NULLS FIRST, id DESC",
            "SELECT id FROM t ORDER BY s, k2 DESC NULLS LAST, id",
        ]);
    }
}

#[test]
fn sort_by_every_type_direction_and_place_of_nulls() {
    let pair = Pair::of(Shape::random(3000, 61).batches());
    for (at, column) in [
        "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "x", "spread", "b",
        "d", "ts", "ts_s", "ts_ns", "m", "m38", "s", "sl", "sv", "sd",
    ]
    .iter()
    .enumerate()
    {
        let ways = ["ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST", "ASC NULLS FIRST"];
        for way in [ways[at % 4], ways[(at + 1) % 4]] {
            pair.check(&format!("SELECT id FROM t ORDER BY {column} {way}, id"));
        }
    }
}

#[test]
fn sort_by_several_keys_and_expressions() {
    let pair = Pair::of(Shape::random(5000, 62).batches());
    pair.check_all(&[
        "SELECT id, k FROM t ORDER BY k, k2 DESC, b NULLS FIRST, s DESC, id",
        "SELECT id FROM t ORDER BY k + k2, -x, id",
        "SELECT id FROM t ORDER BY m38 DESC, f64, id",
        "SELECT id FROM t ORDER BY f32, i64 DESC, sv, u64, id",
        "SELECT k, s, sum(x) AS total FROM t GROUP BY k, s ORDER BY k, s DESC",
        "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.id = b.id + 1 ORDER BY b.s, a.id",
        "SELECT id, s FROM t WHERE k = 3 ORDER BY s, id",
        "SELECT upper FROM (SELECT id AS upper, substr(sv, 1, 2) AS two FROM t) ORDER BY two, upper",
        "SELECT id FROM (SELECT id, x FROM t ORDER BY x LIMIT 5000) ORDER BY id",
    ]);
}

#[test]
fn sort_keeps_the_order_of_equals() {
    let pair = Pair::of(Shape::random(20_000, 63).batches());
    for key in ["k", "s DESC", "b, k2", "x NULLS FIRST", "f64 DESC", "m38", "sv"] {
        let frame =
            run(&pair.device, &format!("SELECT id FROM t ORDER BY {key}")).expect("it sorts");
        let found = Rows::of(&frame).rows;
        let expected = Rows::of(
            &run(&pair.cpu, &format!("SELECT id FROM t ORDER BY {key}, id")).expect("it sorts"),
        )
        .rows;
        assert_eq!(found, expected, "ORDER BY {key}");
        assert_ne!(found[0], [Cell::Null]);
    }
}

#[test]
fn sort_of_floats_puts_nan_last_and_zeros_where_the_cpu_does() {
    use warpframe::arrow::array::{ArrayRef, Float64Array, Int32Array};
    // NaN of the other sign is the same NaN.
    let (one, other) = (f64::NAN, -f64::NAN);
    let values = [
        1.0,
        one,
        -0.0,
        f64::NEG_INFINITY,
        0.0,
        other,
        f64::INFINITY,
        one,
        -1.0,
        other,
        5e-324,
        0.0,
        -0.0,
    ];
    let ids: Vec<i32> = (0..values.len() as i32).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", std::sync::Arc::new(Int32Array::from(ids))),
        ("f", std::sync::Arc::new(Float64Array::from(values.to_vec()))),
    ];
    let pair = Pair::of(crate::tables::columns(columns));
    pair.check_all(&["SELECT id FROM t ORDER BY f, id", "SELECT id FROM t ORDER BY f DESC, id"]);
}

/// A window leaves rows in its own order; a sort by the number of a row undoes that.
#[test]
fn rows_that_a_window_moved_are_put_back() {
    let windows = "SELECT id, k, x, s, sl, rank() OVER (ORDER BY f64) AS r, \
                   lag(x) OVER (PARTITION BY k ORDER BY s, id) AS l FROM t";
    for rows in [1, 1025, 3000] {
        let pair = Pair::of(Shape::random(rows, 63).batches()).from(format!("{rows} rows"));
        pair.check_all(&[
            &format!("{windows} ORDER BY id"),
            &format!("{windows} ORDER BY id DESC"),
            &format!("{windows} ORDER BY id LIMIT 7"),
            &format!("{windows} ORDER BY id LIMIT 5 OFFSET 20"),
            &format!("SELECT x + 1 AS y, r, upper(s) AS u FROM ({windows}) ORDER BY id"),
            &format!("SELECT * FROM ({windows}) WHERE r > 200 ORDER BY id"),
            &format!("SELECT * FROM (SELECT * FROM ({windows}) ORDER BY l, id LIMIT 90) ORDER BY id"),
            &format!("SELECT a.*, b.id AS other FROM ({windows}) a JOIN t b ON a.k = b.k2 ORDER BY a.id, b.id"),
            &format!("SELECT a.* FROM ({windows}) a LEFT JOIN t b ON a.id = b.id + 3 ORDER BY a.id"),
            &format!("SELECT id, r, sum(r) OVER (ORDER BY id ROWS 3 PRECEDING) AS w FROM ({windows}) ORDER BY id"),
            &format!("SELECT id, r FROM ({windows}) UNION ALL SELECT id, k FROM t ORDER BY id, r"),
        ]);
    }
}

#[test]
fn keys_by_which_rows_ascend_are_not_sorted_by() {
    let pair = Pair::of(Shape::random(3000, 64).batches());
    let kernels = |sql: &str| {
        pair.check(sql);
        pair.gpu().start_profile();
        pair.check(sql);
        let profile = pair.gpu().take_profile().expect("a profile was started");
        profile.into_iter().map(|kernel| kernel.name).collect::<Vec<_>>()
    };
    let sorts = |names: &[String]| names.iter().any(|name| name.starts_with("sort_"));
    let names = kernels("SELECT id, x, lag(x) OVER (ORDER BY id) AS l FROM t");
    assert!(!sorts(&names) && names.iter().any(|name| name == "window_bounds"), "{names:?}");
    let names = kernels("SELECT id, x, rank() OVER (ORDER BY b) AS r FROM t ORDER BY id");
    let back = names.iter().position(|name| name == "inverse");
    assert!(back.is_some_and(|at| sorts(&names[..at]) && !sorts(&names[at..])), "{names:?}");
}
