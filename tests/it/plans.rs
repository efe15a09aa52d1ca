//! Plans that are found again: when they are, when they must not be, and that answers are those of
//! plans made anew.

mod eager;
mod functions;
mod lazy;
mod queries;

use std::sync::Arc;

use warpframe::arrow::array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use warpframe::arrow::datatypes::{Field, Schema};
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::differential::{Cell, Pair, Rows, builder, run, scalar};

/// Plans made, and found, since the session began.
fn plans(session: &Session) -> (u64, u64) {
    let counters = session.device().expect("the session has a device").counters();
    (counters.plans_made, counters.plans_found)
}

/// Does something, and says how many plans it made and found.
fn counted<T>(session: &Session, work: impl FnOnce() -> Result<T>) -> (T, (u64, u64)) {
    let before = plans(session);
    let done = work().expect("a query that runs");
    let after = plans(session);
    (done, (after.0 - before.0, after.1 - before.1))
}

const MADE: (u64, u64) = (1, 0);
const FOUND: (u64, u64) = (0, 1);

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

pub fn integers(name: &str, values: impl IntoIterator<Item = i64>) -> RecordBatch {
    batch(vec![(name, Arc::new(Int64Array::from_iter_values(values)))])
}

pub fn strict() -> Session {
    builder().strict(true).build().expect("the device opens")
}

/// Batches of one schema that differ in what statistics and encodings make of them: ranges, nulls,
/// repeated or unique values, few or many strings.
pub fn variants() -> Vec<RecordBatch> {
    let of = |rows: usize, shape: u64| {
        let number = |row: usize| match shape {
            0 => row as i64 % 7,
            1 => row as i64 * 1_000_003,
            _ => -(row as i64),
        };
        let null = |row: usize| shape == 2 && row % 5 == 3;
        let rows = 0..rows;
        let k = Int64Array::from_iter(rows.clone().map(|row| (!null(row)).then(|| number(row))));
        let x = Float64Array::from_iter(
            rows.clone().map(|row| (!null(row)).then(|| row as f64 / (shape + 1) as f64)),
        );
        let s = rows.clone().map(|row| {
            (!null(row + 1)).then(|| match shape {
                0 => ["a", "b", "é"][row % 3].to_string(),
                _ => format!("a string of its own {row}"),
            })
        });
        let columns: [(&str, ArrayRef); 4] = [
            ("id", Arc::new(Int32Array::from_iter_values(rows.map(|row| row as i32)))),
            ("k", Arc::new(k)),
            ("x", Arc::new(x)),
            ("s", Arc::new(StringArray::from_iter(s))),
        ];
        let fields =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect())
            .expect("columns fit")
    };
    vec![of(500, 0), of(300, 1), of(700, 2), of(0, 0), of(1, 1), of(900, 0)]
}

#[test]
fn plans_that_are_kept_keep_no_memory_of_the_device() -> Result<()> {
    let session = strict();
    let device = session.device().expect("a device").clone();
    let before = device.memory().used;
    for _ in 0..2 {
        let frame = session.from_arrow([integers("x", 0..10_000)])?;
        session.register_table("t", &frame)?;
        assert_eq!(scalar(&session, "SELECT max(x) FROM t"), Cell::Int(9999));
        for _ in 0..3 {
            assert_eq!(frame.select([sum(col("x"))])?.num_rows(), 1);
        }
        assert_eq!(frame.filter(col("x").lt(lit(10)))?.num_rows(), 10);
        assert_eq!(frame.lazy()?.limit(0, 3)?.collect()?.num_rows(), 3);
        session.deregister("t")?;
    }
    assert_eq!(device.memory().used, before);
    Ok(())
}
