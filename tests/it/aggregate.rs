//! GROUP BY and aggregates.

use crate::differential::Pair;
use crate::tables::Shape;

#[test]
fn aggregates_of_every_shape() {
    for shape in Shape::all() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        pair.check_all(&[
            "SELECT count(*), count(k), sum(k), min(i64), max(u64), avg(x), sum(m), min(f64), max(f64) FROM t",
            "SELECT k, count(*), sum(x), sum(m), avg(m), min(d), max(s) FROM t GROUP BY k",
        ]);
    }
}
