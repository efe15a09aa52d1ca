//! LIMIT and OFFSET, alone and after ORDER BY.

use crate::differential::Pair;
use crate::tables::{Batches, Shape};

#[test]
fn limits_in_and_out_of_range() {
    let base = Shape::random(5000, 51);
    for shape in
        [base, Shape { batches: Batches::Several, ..base }, Shape { rows: 0, ..base }, Shape { rows: 33, ..base }]
    {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for (fetch, skip) in [(0, 0), (1, 0), (32, 0), (33, 1), (7, 4998), (7, 5000), (10, 9000), (6000, 0)] {
            // Without a row to fetch there is nothing to run.
            pair.agreement(&format!("SELECT id, s, x FROM t ORDER BY x DESC, id LIMIT {fetch} OFFSET {skip}"));
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
