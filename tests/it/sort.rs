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
