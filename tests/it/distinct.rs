//! DISTINCT.

use crate::differential::Pair;
use crate::tables::Shape;

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
        "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "x", "b", "d", "ts", "ts_s", "ts_ms",
        "ts_ns", "m", "m38", "s", "sl", "sv", "sd",
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
