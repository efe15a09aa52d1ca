//! WHERE.

use crate::differential::Pair;
use crate::tables::Shape;

const QUERIES: &[&str] = &["SELECT * FROM t WHERE k < 4", "SELECT id, s, x FROM t WHERE x > 0 AND (b OR k2 = 2)"];

#[test]
fn filter_keeps_rows_of_every_type_in_order() {
    for shape in Shape::all() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        pair.check_all(QUERIES);
    }
}
