//! Verbs of eager frames on small tables, where what the host does beside the kernels (`host_us`)
//! is most of the time.

use warpframe::prelude::*;

use super::data::*;
use super::harness::{Bench, Case, Outcome, each_chunk, ensure};

/// Rows beyond which a verb's time is its kernels'.
const MOST_ROWS: usize = 1 << 20;
/// Rows of a key.
const ROWS_OF_KEY: usize = 10;
/// Rows that `limit` leaves out, and keeps.
const LIMIT: (usize, usize) = (10, 100);

const NAMES: [&str; 9] = [
    "verb filter f64",
    "verb select f64+f64",
    "verb with_columns f64+f64",
    "verb sort i64",
    "verb group_by i64 sum count",
    "verb join i64",
    "verb limit",
    "verb distinct i64",
    "verb union",
];

/// A table of a key `k` and numbers `x` and `y`, a table of one row a key with its number `z`, and
/// one of the keys alone.
struct Tables {
    rows: usize,
    frame: DataFrame,
    keyed: DataFrame,
    keys: DataFrame,
}

pub fn all(bench: &Bench, rows: usize) -> Outcome {
    if rows > MOST_ROWS || !bench.wants(NAMES) {
        return Ok(());
    }
    Tables::new(bench, rows)?.time(bench);
    Ok(())
}

impl Tables {
    fn new(bench: &Bench, rows: usize) -> Outcome<Tables> {
        let groups = groups(rows);
        let keys = || i64s(fill(rows, |row| key(row, rows)));
        let x = f64s(fill(rows, |row| unit(1, row)));
        let y = f64s(fill(rows, |row| row as f64));
        let z = f64s(fill(groups, |key| key as f64));
        Ok(Tables {
            rows,
            frame: bench.frame([("k", keys()), ("x", x), ("y", y)])?,
            keyed: bench.frame([("k", i64s(fill(groups, |key| key as i64))), ("z", z)])?,
            keys: bench.frame([("k", keys())])?,
        })
    }

    fn time(&self, bench: &Bench) {
        let Tables { rows, frame, keyed, keys } = self;
        let (rows, groups) = (*rows, groups(*rows));
        let [filter, select, with_columns, sort, group_by, join, limit, distinct, union] = NAMES;
        // Three columns of 8 bytes.
        let case = |name, read: usize, written: usize| Case::new(name, rows, 8 * (read + written));

        let kept = rows_where(rows, |row| unit(1, row) < 0.5);
        let run = || frame.filter(col("x").lt(lit(0.5)));
        bench.time(case(filter, 3 * rows, 3 * kept), run, |result| has_rows(result, kept));

        let sum = || (col("x") + col("y")).alias("s");
        let added = |result: &DataFrame, at| {
            let right = |row: u64, sum: f64| sum == unit(1, row) + row as f64;
            each_chunk(result, |first, batch| {
                let sums = f64_column(batch, at);
                ensure(every(sums.len(), |i| right((first + i) as u64, sums[i])), "a wrong sum")
            })
        };
        bench.time(
            case(select, 2 * rows, rows),
            || frame.select([col("k"), sum()]),
            |result| added(result, 1),
        );
        bench.time(
            case(with_columns, 2 * rows, rows),
            || frame.with_columns([sum()]),
            |result| added(result, 3),
        );

        bench.time(
            case(sort, 3 * rows, 3 * rows),
            || frame.sort([asc(col("k"))]),
            |result| {
                each_chunk(result, |_, batch| {
                    let (keys, ys) = (i64_column(batch, 0), f64_column(batch, 2));
                    ensure(keys.is_sorted(), "not sorted")?;
                    ensure(
                        every(keys.len(), |i| keys[i] == key(ys[i] as u64, rows)),
                        "a row torn apart",
                    )
                })?;
                has_rows(result, rows)
            },
        );
        let run =
            || frame.group_by([col("k")]).agg([warpframe::prelude::sum(col("y")), count_rows()]);
        bench.time(case(group_by, 2 * rows, 3 * groups), run, |result| {
            let mut total = 0.0;
            each_chunk(result, |_, batch| {
                total += f64_column(batch, 1).iter().sum::<f64>();
                Ok(())
            })?;
            ensure(total == (rows * (rows - 1) / 2) as f64, "a wrong sum")?;
            has_rows(result, groups)
        });
        let run = || frame.join(keyed, JoinType::Inner, ["k"], ["k"]);
        bench.time(case(join, rows + 2 * groups, rows), run, |result| {
            each_chunk(result, |_, batch| {
                let (keys, zs) = (i64_column(batch, 0), f64_column(batch, 3));
                ensure(every(keys.len(), |i| keys[i] as f64 == zs[i]), "another key's row")
            })?;
            has_rows(result, rows)
        });
        let (skip, most) = LIMIT;
        let left = most.min(rows.saturating_sub(skip));
        bench.time(
            case(limit, 0, 3 * left),
            || frame.limit(skip, most),
            |result| has_rows(result, left),
        );
        bench.time(
            case(distinct, rows, groups),
            || keys.distinct(),
            |result| has_rows(result, groups),
        );
        bench.time(
            case(union, 6 * rows, 6 * rows),
            || frame.union(frame),
            |result| has_rows(result, 2 * rows),
        );
    }
}

/// Keys of so many rows.
fn groups(rows: usize) -> usize {
    (rows / ROWS_OF_KEY).max(1)
}

/// The row's key: each occurs.
fn key(row: u64, rows: usize) -> i64 {
    let groups = groups(rows) as u64;
    (if row < groups { row } else { below(2, row, groups) }) as i64
}

fn has_rows(result: &DataFrame, rows: usize) -> Outcome {
    ensure(result.num_rows() == rows, format!("{} rows instead of {rows}", result.num_rows()))
}
