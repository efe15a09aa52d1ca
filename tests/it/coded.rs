//! Arrow dictionaries of numbers: tables that have them, and what functions of dictionaries of
//! strings yield. The device has the numbers themselves; types are those that the CPU engine gives.

use std::sync::Arc;

use warpframe::arrow::array::*;
use warpframe::arrow::compute::cast;
use warpframe::arrow::datatypes::DataType;

use crate::differential::{Pair, run};
use crate::tables::{Shape, share};

fn coded(key: DataType, values: DataType) -> DataType {
    DataType::Dictionary(key.into(), values.into())
}

/// Rows 0 to `rows` with columns of coded integers, floats, decimals and dates; every seventh is
/// null.
fn batch(rows: i64) -> RecordBatch {
    let numbers = || (0..rows).map(|row| (row % 7 != 3).then_some(row * 37 % 11 - 4));
    let plain: ArrayRef = Arc::new(Int64Array::from_iter(numbers()));
    let days: ArrayRef =
        Arc::new(Int32Array::from_iter(numbers().map(|n| n.map(|n| n as i32 * 400))));
    let of = |from: &ArrayRef, key, values: DataType| {
        let values = cast(from, &values).expect("numbers of every type");
        cast(&values, &coded(key, values.data_type().clone())).expect("few values")
    };
    RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef),
        ("i", of(&plain, DataType::Int32, DataType::Int32)),
        ("w", of(&plain, DataType::UInt32, DataType::Int64)),
        ("x", of(&plain, DataType::Int32, DataType::Float64)),
        ("m", of(&plain, DataType::Int32, DataType::Decimal128(12, 2))),
        ("d", of(&days, DataType::Int64, DataType::Date32)),
    ])
    .expect("columns of one length")
}

#[test]
fn tables_of_coded_numbers_are_read_and_yielded() {
    for (at, rows) in [2100, 0, 1, 33].into_iter().enumerate() {
        let pair = Pair::of(vec![batch(rows), batch(rows / 2)]);
        for column in share(["i", "w", "x", "m", "d"], at) {
            let check = |sql: &str| pair.check(&sql.replace("NAME", column));
            check("SELECT id, NAME FROM t WHERE id <> 2");
            check("SELECT NAME, count(*) AS n, min(id) AS a FROM t GROUP BY NAME");
            check("SELECT DISTINCT NAME FROM t WHERE id % 3 = 0");
            check("SELECT id, NAME FROM t WHERE NAME IS NOT NULL ORDER BY NAME DESC, id % 7, id");
            check("SELECT NAME FROM t UNION ALL SELECT NAME FROM t WHERE id < 5");
            check(
                "SELECT id, lag(NAME) OVER (ORDER BY id, NAME) AS l, first_value(NAME) OVER (ORDER BY id) AS f FROM t",
            );
            check("SELECT coalesce(NAME, NAME) AS c, CASE WHEN id > 4 THEN NAME END AS e FROM t");
        }
        pair.check("SELECT a.id, b.id AS other FROM t a JOIN t b ON a.i = b.i WHERE b.id < 9");
        pair.check("SELECT id FROM t WHERE i > 2 AND w IN (1, 3, 5)");
        pair.check("SELECT CAST(i AS bigint) + 1 AS a, CAST(d AS varchar) AS b, CAST(x AS decimal(9, 2)) AS c FROM t");
    }
}

#[test]
fn frames_go_to_the_device_and_back() {
    let pair = Pair::new();
    let batch = batch(100);
    let frame = pair.device.from_arrow([batch.clone()]).expect("the table is uploaded");
    assert!(frame.is_on_device());
    assert_eq!(frame.to_arrow().expect("the table comes back"), [batch]);
}

#[test]
fn lengths_of_dictionaries_have_their_types() {
    let shape = Shape::random(700, 271);
    let pair =
        Pair::of(shape.batches()).and("u", Shape { seed: 272, rows: 150, ..shape }.batches());
    for function in ["length", "octet_length", "bit_length"] {
        let check = |sql: &str| pair.check(&sql.replace("LENGTH", function));
        check("SELECT id, LENGTH(sd) AS n FROM t");
        check("SELECT LENGTH(sd) AS n, count(*) AS c FROM t GROUP BY LENGTH(sd)");
        check("SELECT id, LENGTH(sd) AS n FROM t ORDER BY LENGTH(sd) DESC NULLS LAST, id LIMIT 70");
        check("SELECT id, LENGTH(sd) IN (4, 11, 3) AS b FROM t WHERE LENGTH(sd) NOT IN (4, 2)");
        check("SELECT LENGTH(sd) AS n FROM t UNION SELECT LENGTH(sd) AS n FROM u");
        check(
            "SELECT t.id, u.id AS other FROM t JOIN u ON LENGTH(t.sd) = LENGTH(u.sd) AND t.k = u.k",
        );
        check(
            "SELECT x * CAST(LENGTH(sd) AS int) AS a, CAST(LENGTH(sd) AS int) + CAST(LENGTH(sd) AS int) * 2 AS b FROM t",
        );
    }
    let found =
        run(&pair.device, "SELECT octet_length(sd) AS n FROM t").expect("a query that runs");
    assert_eq!(*found.schema().field(0).data_type(), coded(DataType::Int32, DataType::Int32));
}
