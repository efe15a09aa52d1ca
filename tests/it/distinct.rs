//! DISTINCT.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Float64Array, Int32Array};

use crate::differential::Pair;
use crate::tables::{Shape, columns};

#[test]
fn distinct_of_every_shape() {
    for shape in Shape::all() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        pair.check_all(&[
            "SELECT DISTINCT k FROM t",
            "SELECT DISTINCT k2, b, s FROM t",
            "SELECT DISTINCT sl, w FROM t",
        ]);
    }
}

#[test]
fn distinct_of_every_type() {
    let pair = Pair::of(Shape::random(3000, 31).batches());
    for column in [
        "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "x", "b", "d", "ts",
        "ts_s", "ts_ms", "ts_ns", "m", "m38", "s", "sl", "sv", "sd",
    ] {
        pair.check(&format!("SELECT DISTINCT {column} FROM t"));
    }
    pair.check_all(&[
        "SELECT DISTINCT i64, u64 FROM t",
        "SELECT DISTINCT f64, s FROM t",
        "SELECT DISTINCT m38, b FROM t",
        "SELECT DISTINCT k + k2 AS n FROM t",
        "SELECT count(*) FROM (SELECT DISTINCT s, sd FROM t)",
        "SELECT count(DISTINCT k) FROM t",
        "SELECT k, count(DISTINCT s) FROM t GROUP BY k",
    ]);
}

#[test]
fn distinct_of_a_constant_column_beside_one_of_64_bits() {
    // The packed key has 2^64 values, all of them the second column's.
    let pair = Pair::of(columns(vec![
        ("one", Arc::new(Int32Array::from_iter_values(std::iter::repeat_n(7, 500))) as ArrayRef),
        ("x", Arc::new(Float64Array::from_iter_values((0..500).map(|i| f64::from(i % 90) / 4.0)))),
    ]));
    pair.check_all(&[
        "SELECT DISTINCT one, x FROM t",
        "SELECT x, one, count(*) FROM t GROUP BY x, one",
    ]);
}
