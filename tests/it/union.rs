//! UNION and UNION ALL.

use crate::differential::Pair;
use crate::tables::{Batches, Shape, Values};

#[test]
fn unions_of_tables_of_other_dictionaries_and_nulls() {
    let base = Shape::random(700, 41);
    let pair = Pair::of(base.batches())
        .and("solid", Shape { nulls: 0.0, seed: 42, ..base }.batches())
        .and("hollow", Shape { values: Values::AllNull, rows: 33, ..base }.batches())
        .and("empty", Shape { rows: 0, ..base }.batches())
        .and("sliced", Shape { batches: Batches::Sliced, seed: 43, ..base }.batches());
    pair.check_all(&[
        "SELECT * FROM t UNION ALL SELECT * FROM solid UNION ALL SELECT * FROM hollow UNION ALL SELECT * FROM empty",
        "SELECT * FROM solid UNION ALL SELECT * FROM sliced",
        "SELECT k, s FROM t UNION SELECT k, s FROM solid",
        "SELECT i8 AS n FROM t UNION ALL SELECT i64 FROM solid UNION ALL SELECT 7",
        "SELECT s FROM t WHERE k = 2 UNION ALL SELECT sl FROM solid UNION ALL SELECT 'word'",
        "SELECT n, count(*) FROM (SELECT k AS n FROM t UNION ALL SELECT k2 FROM sliced) GROUP BY n",
        "SELECT id, x FROM t UNION ALL SELECT id + 1000, x FROM solid ORDER BY id LIMIT 20 OFFSET 690",
        "SELECT k, sum(x) FROM t GROUP BY k UNION ALL SELECT k, sum(x) FROM solid GROUP BY k",
        "SELECT a.id, b.s FROM (SELECT id FROM t UNION ALL SELECT id FROM sliced) a JOIN solid b ON a.id = b.id",
        "SELECT m FROM t UNION ALL SELECT m38 FROM t UNION ALL SELECT k FROM t",
        "SELECT k FROM empty UNION ALL SELECT k2 FROM empty",
    ]);
}

#[test]
fn groups_keep_the_characters_of_their_keys() {
    // Keys are codes until a union, or a function, makes views of them.
    let pair = Pair::of(Shape::random(600, 41).batches());
    pair.check_all(&[
        "SELECT sl, max(s) FROM t GROUP BY sl UNION ALL SELECT s, min(sl) FROM t GROUP BY s",
        "SELECT substr(sl, 2), max(s) FROM t GROUP BY sl",
        "SELECT substr(m, 2) FROM (SELECT k, max(sl) AS m FROM t GROUP BY k)",
    ]);
}
