//! Sorts of one column, of a key with payload, and orders alone (row numbers).

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, AsArray, Int8Array, Int16Array, RecordBatch};
use warpframe::arrow::datatypes::Int32Type;
use warpframe::prelude::*;

use super::data::*;
use super::harness::{Bench, Case, Outcome, each_chunk, ensure};

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    i32_keys(bench, rows)?;
    i64_keys(bench, rows)?;
    f64_keys(bench, rows)?;
    two_keys(bench, rows)?;
    with_payload(bench, rows, 1, "sort i64 key with one f64")
}

fn i32_keys(bench: &Bench, rows: usize) -> Outcome {
    if bench.wants(["sort i32", "argsort i32"]) {
        let key = |row| random(1, row) as i32;
        let frame = bench.frame([("k", i32s(fill(rows, key)))])?;
        let values =
            |batch: &RecordBatch| batch.column(0).as_primitive::<Int32Type>().values().to_vec();
        sort(bench, "i32", &frame, key, values, |key| key as u64);
        order(bench, "i32", &frame, &["k"], 8, key);
    }
    Ok(())
}

pub fn i64_keys(bench: &Bench, rows: usize) -> Outcome {
    if bench.wants(["sort i64", "argsort i64"]) {
        let key = |row| random(1, row) as i64;
        let frame = bench.frame([("k", i64s(fill(rows, key)))])?;
        sort(bench, "i64", &frame, key, |batch| i64_column(batch, 0).to_vec(), |key| key as u64);
        order(bench, "i64", &frame, &["k"], 12, key);
    }
    Ok(())
}

/// The key of a row of so many.
type Key = fn(u64, u64) -> i64;

/// Keys that a sort may find easy or hard, random ones twice, which tells how far times scatter.
/// Nothing says of those that ascend that they do: the last row is the least.
pub const ORDERS: [(&str, Key); 21] = [
    ("random", |row, _| random(1, row) as i64),
    ("random, others", |row, _| random(9, row) as i64),
    ("ascending", |row, rows| if row + 1 < rows { (row << 24) as i64 } else { -1 }),
    ("descending", |row, rows| ((rows - row) << 24) as i64),
    ("ascending but 1%", |row, rows| {
        if among(4, row, 1) { (below(5, row, rows) << 24) as i64 } else { (row << 24) as i64 }
    }),
    ("one value", |_, _| 77),
    ("90% one value", |row, _| if among(4, row, 90) { 77 } else { random(1, row) as i64 }),
    ("97% 10 values", |row, _| {
        if among(4, row, 97) { random(6, below(1, row, 10)) as i64 } else { random(1, row) as i64 }
    }),
    ("10 values", |row, _| random(6, below(1, row, 10)) as i64),
    ("1000 values", |row, _| random(6, below(1, row, 1000)) as i64),
    ("1000 dense values", |row, _| below(1, row, 1000) as i64),
    ("10k values", |row, _| random(6, below(1, row, 10_000)) as i64),
    ("16k values", |row, _| random(6, below(1, row, 16_384)) as i64),
    ("32k values", |row, _| random(6, below(1, row, 32_768)) as i64),
    ("64k values", |row, _| random(6, below(1, row, 65_536)) as i64),
    ("256k values", |row, _| random(6, below(1, row, 262_144)) as i64),
    ("1M values", |row, _| random(6, below(1, row, 1_000_000)) as i64),
    ("1M values of Zipf", |row, _| random(6, 1e6f64.powf(unit(1, row)) as u64) as i64),
    (
        "1M values ascending",
        |row, rows| if row + 1 < rows { ((row / 100) << 24) as i64 } else { -1 },
    ),
    ("1000 clusters", |row, _| {
        ((random(6, below(1, row, 1000)) >> 20 << 20) | (random(7, row) >> 44)) as i64
    }),
    ("magnitudes", |row, _| (random(1, row) >> (1 + random(8, row) % 62)) as i64),
];

/// Keys, row numbers, and keys with one column besides, sorted by keys of one of [`ORDERS`].
pub fn order_of(bench: &Bench, rows: usize, name: &str, key: Key) -> Outcome {
    let kind = format!("i64 order={name}");
    let key = |row| key(row, rows as u64);
    if bench.wants([format!("sort {kind}"), format!("argsort {kind}")]) {
        let frame = bench.frame([("k", i64s(fill(rows, key)))])?;
        sort(bench, &kind, &frame, key, |batch| i64_column(batch, 0).to_vec(), |key| key as u64);
        order(bench, &kind, &frame, &["k"], 12, key);
    }
    let paired = format!("sort i64 with one f64 order={name}");
    if bench.wants([&paired]) {
        let frame = bench
            .frame([("k", i64s(fill(rows, key))), ("p", f64s(fill(rows, |row| row as f64)))])?;
        pairs(bench, paired, &frame, key);
    }
    Ok(())
}

/// A table of a key and, as floats, the numbers of its rows.
fn pairs(bench: &Bench, name: String, frame: &DataFrame, key: impl Fn(u64) -> i64 + Sync) {
    let rows = frame.num_rows();
    bench.time(
        Case::new(name, rows, 32 * rows),
        || frame.sort([asc(col("k"))]),
        |result| {
            let (mut last, mut sum) = (None, 0u64);
            each_chunk(result, |_, batch| {
                let (keys, numbers) = (i64_column(batch, 0), f64_column(batch, 1));
                let ascends = every(keys.len(), |at| match at {
                    0 => last.is_none_or(|last| last < (keys[0], numbers[0])),
                    _ => (keys[at - 1], numbers[at - 1]) < (keys[at], numbers[at]),
                });
                ensure(ascends, "rows do not ascend by key and place")?;
                ensure(
                    every(keys.len(), |at| key(numbers[at] as u64) == keys[at]),
                    "a row came apart",
                )?;
                sum = sum.wrapping_add(checksum(keys.len(), |at| mix(numbers[at as usize] as u64)));
                last = keys.last().copied().zip(numbers.last().copied());
                Ok(())
            })?;
            ensure(result.num_rows() == rows && sum == checksum(rows, mix), "rows are missing")
        },
    );
}

fn f64_keys(bench: &Bench, rows: usize) -> Outcome {
    if bench.wants(["sort f64", "argsort f64"]) {
        let key = |row| unit(2, row) * 5.0 + 5.0;
        let frame = bench.frame([("k", f64s(fill(rows, key)))])?;
        sort(bench, "f64", &frame, key, |batch| f64_column(batch, 0).to_vec(), f64::to_bits);
        order(bench, "f64", &frame, &["k"], 12, key);
    }
    Ok(())
}

fn two_keys(bench: &Bench, rows: usize) -> Outcome {
    if bench.wants(["argsort (i32<1000, i64)"]) {
        let (small, key) = (|row| below(3, row, 1000) as i32, |row| random(1, row) as i64);
        let frame = bench.frame([("s", i32s(fill(rows, small))), ("k", i64s(fill(rows, key)))])?;
        order(bench, "(i32<1000, i64)", &frame, &["s", "k"], 16, |row| (small(row), key(row)));
    }
    Ok(())
}

/// A whole table of one column.
fn sort<T: Copy + PartialOrd + Send + Sync>(
    bench: &Bench,
    kind: &str,
    frame: &DataFrame,
    key: impl Fn(u64) -> T + Sync,
    values: impl Fn(&RecordBatch) -> Vec<T>,
    bits: impl Fn(T) -> u64 + Sync,
) {
    let rows = frame.num_rows();
    let width = frame.schema().field(0).data_type().primitive_width().unwrap_or(8);
    let case = Case::new(format!("sort {kind}"), rows, 2 * width * rows);
    let run = || frame.sort([asc(col("k"))]);
    bench.time(case, run, |result| {
        let (mut last, mut sum) = (None, 0u64);
        each_chunk(result, |_, batch| {
            let keys = values(batch);
            let ascends = every(keys.len(), |at| match at {
                0 => last.is_none_or(|last| last <= keys[0]),
                _ => keys[at - 1] <= keys[at],
            });
            ensure(ascends, "the keys do not ascend")?;
            sum = sum.wrapping_add(checksum(keys.len(), |at| mix(bits(keys[at as usize]))));
            last = keys.last().copied();
            Ok(())
        })?;
        ensure(result.num_rows() == rows, "rows are missing")?;
        ensure(
            sum == checksum(rows, |row| mix(bits(key(row)))),
            "the keys are not those of the table",
        )
    });
}

/// Row numbers in the order of keys; `key` says the key of a row.
fn order<K: PartialOrd>(
    bench: &Bench,
    kind: &str,
    frame: &DataFrame,
    columns: &[&str],
    bytes: usize,
    key: impl Fn(u64) -> K + Sync,
) {
    let rows = frame.num_rows();
    let case = Case::new(format!("argsort {kind}"), rows, bytes * rows);
    let run = || frame.arg_sort(columns.iter().map(|column| asc(col(*column))));
    bench.time(case, run, |result| {
        let before = |a: u32, b: u32| {
            let (left, right) = (key(a.into()), key(b.into()));
            left < right || left == right && a < b
        };
        let (mut last, mut sum) = (None, 0u64);
        each_chunk(result, |_, batch| {
            let order = u32_column(batch, 0);
            let ascends = every(order.len(), |at| match at {
                0 => last.is_none_or(|last| before(last, order[0])),
                _ => before(order[at - 1], order[at]),
            });
            ensure(ascends, "the keys do not ascend")?;
            sum = sum.wrapping_add(checksum(order.len(), |at| mix(order[at as usize].into())));
            last = order.last().copied();
            Ok(())
        })?;
        ensure(
            result.num_rows() == rows && sum == checksum(rows, mix),
            "the row numbers are no permutation",
        )
    });
}

/// A table of a random key and payload columns.
pub fn with_payload(bench: &Bench, rows: usize, columns: usize, name: &str) -> Outcome {
    if !bench.wants([name]) {
        return Ok(());
    }
    let frame = bench
        .frame(std::iter::once(("k", i64s(fill(rows, |row| Domain::Scattered.key(row))))).chain(
            (0..columns).map(|at| (PAYLOAD[at], f64s(fill(rows, |row| payload(row, at))))),
        ))?;
    let case = Case::new(name, rows, 16 * (1 + columns) * rows);
    let run = || frame.sort([asc(col("k"))]);
    bench.time(case, run, |result| {
        let (mut last, mut sum) = (i64::MIN, 0u64);
        each_chunk(result, |_, batch| {
            let keys = i64_column(batch, 0);
            let ascends =
                every(
                    keys.len(),
                    |at| if at == 0 { last <= keys[0] } else { keys[at - 1] < keys[at] },
                );
            ensure(ascends, "the keys do not ascend")?;
            check_payload(batch, 1..1 + columns, |at| Domain::Scattered.number(keys[at]))?;
            sum = sum.wrapping_add(checksum(keys.len(), |at| {
                Domain::Scattered.number(keys[at as usize])
            }));
            last = keys.last().copied().unwrap_or(last);
            Ok(())
        })?;
        ensure(
            result.num_rows() == rows && sum == checksum(rows, |row| row),
            "the keys are not those of the table",
        )
    });
    Ok(())
}

/// Names of payload columns.
pub const PAYLOAD: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

/// What a payload column holds for the row, or key, of this number.
pub fn payload(number: u64, column: usize) -> f64 {
    (number * 8 + column as u64) as f64
}

/// Whether the columns of a result hold the payload of the numbers that belong to its rows.
pub fn check_payload(
    batch: &RecordBatch,
    columns: std::ops::Range<usize>,
    number: impl Fn(usize) -> u64 + Sync,
) -> Outcome {
    for (column, at) in columns.enumerate() {
        let values = f64_column(batch, at);
        ensure(
            every(values.len(), |row| values[row] == payload(number(row), column)),
            "a payload strayed from its row",
        )?;
    }
    Ok(())
}

/// Orders by 1 to 4 columns of 8 to 64 bits each.
pub fn widths(bench: &Bench, rows: usize) -> Outcome {
    for (bits, columns) in
        [1, 2, 3, 4].into_iter().flat_map(|columns| [8, 16, 32, 64].map(|bits| (bits, columns)))
    {
        let kind = format!("bits={} columns={columns}", bits * columns);
        if bits * columns > 128 || !bench.wants([format!("argsort {kind}")]) {
            continue;
        }
        // Sign extended from the column's width.
        let key =
            move |row: u64, column: usize| random(10 + column as u64, row) as i64 >> (64 - bits);
        let names = &PAYLOAD[..columns];
        let table = names.iter().enumerate().map(|(column, name)| {
            let array: ArrayRef = match bits {
                8 => Arc::new(Int8Array::from(fill(rows, |row| key(row, column) as i8))),
                16 => Arc::new(Int16Array::from(fill(rows, |row| key(row, column) as i16))),
                32 => i32s(fill(rows, |row| key(row, column) as i32)),
                _ => i64s(fill(rows, |row| key(row, column))),
            };
            (*name, array)
        });
        let frame = bench.frame(table)?;
        let bytes = bits * columns / 8 + 4;
        order(bench, &kind, &frame, names, bytes, |row| {
            [0, 1, 2, 3].map(|column| if column < columns { key(row, column) } else { 0 })
        });
    }
    Ok(())
}
