//! Floats are sorted as in DataFusion, by all their bits, and compared with equal zeros.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Float32Array, Float64Array, Int64Array};
use warpframe::arrow::record_batch::RecordBatch;

use super::Both;

const VALUES: [f64; 12] = [
    0.0,
    -0.0,
    f64::NAN,
    1.5,
    -1.5,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    7.25,
    1e-310,
    -7.0,
];

fn both() -> Both {
    let both = Both::new();
    let negative_nan = f64::from_bits(0xfff8_0000_0000_0001);
    let x: Vec<Option<f64>> =
        VALUES.iter().copied().map(Some).chain([None, Some(negative_nan)]).collect();
    let y: Vec<Option<f32>> = x.iter().map(|x| x.map(|x| x as f32)).collect();
    let i = Int64Array::from_iter_values(0..x.len() as i64);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(i)),
        ("x", Arc::new(Float64Array::from(x))),
        ("y", Arc::new(Float32Array::from(y))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    for context in [&both.stock, &both.ours] {
        context.register_batch("t", batch.clone()).expect("a table");
    }
    both
}

#[test]
fn comparisons_are_of_all_bits() {
    let both = both();
    for of in ["x", "y"] {
        for op in ["=", "<>", "<", "<=", ">", ">="] {
            for value in ["0.0", "CAST(-0.0 AS DOUBLE)", "CAST('NaN' AS DOUBLE)", "1.5"] {
                assert!(both.check(&format!("SELECT i FROM t WHERE {of} {op} {value}")));
            }
        }
        assert!(both.check(&format!("SELECT i FROM t WHERE {of} BETWEEN 0.0 AND 8.0")));
        assert!(both.check(&format!("SELECT i FROM t WHERE {of} IS DISTINCT FROM 0.0")));
        assert!(both.check(&format!("SELECT i, CASE {of} WHEN 0.0 THEN 1 ELSE 2 END AS c FROM t")));
    }
    both.check("SELECT i FROM t WHERE x IN (0.0, 1.5, 7.25, 3.0)");
}

#[test]
fn orders_groups_and_joins_are_of_all_bits() {
    let both = both();
    for of in ["x", "y"] {
        assert!(both.check(&format!("SELECT i FROM t ORDER BY {of}, i")));
        assert!(both.check(&format!("SELECT i FROM t ORDER BY {of} DESC NULLS LAST, i LIMIT 5")));
        assert!(both.check(&format!("SELECT count(*), min(i) FROM t GROUP BY {of}")));
        assert!(both.check(&format!(
            "SELECT a.i, b.i AS j FROM t a JOIN t b ON a.{of} = b.{of} ORDER BY 1, 2"
        )));
        assert!(both.check(&format!(
            "SELECT i, rank() OVER (ORDER BY {of}) AS r, count(*) OVER (PARTITION BY {of}) AS c
             FROM t ORDER BY i"
        )));
    }
    both.check("SELECT DISTINCT x FROM t WHERE x IS NOT NULL");
    both.check("SELECT count(DISTINCT x) FROM t");
}
