//! Columns that ascend: GROUP BY reads their runs, ORDER BY leaves them alone. Strictly on the
//! device, against the CPU.

use std::sync::Arc;

use warpframe::Result;
use warpframe::arrow::array::*;
use warpframe::prelude::*;

use crate::differential::{Agreement, Pair, Rows, run};
use crate::tables::columns;

/// Keys of runs of these lengths, wide apart, and values.
fn table(lengths: &[usize]) -> Vec<RecordBatch> {
    let key = |run: usize| (run as i64 - 3) * 0x1_0000_0001;
    let keys: Vec<i64> = lengths
        .iter()
        .enumerate()
        .flat_map(|(run, len)| std::iter::repeat_n(key(run), *len))
        .collect();
    let special = |row: usize| match row % 97 {
        13 => f64::NAN,
        31 => f64::INFINITY,
        57 => -0.0,
        _ => (row % 1000) as f64 / 8.0 - 40.0,
    };
    let rows = keys.len();
    let small = keys.iter().map(|key| (key / 0x1_0000_0001) as i32 * 100_000);
    columns(vec![
        ("k", Arc::new(Int64Array::from(keys.clone())) as ArrayRef),
        ("k32", Arc::new(Int32Array::from_iter_values(small)) as ArrayRef),
        (
            "x",
            Arc::new(Float64Array::from_iter_values(
                (0..rows).map(|row| (row % 1000) as f64 / 8.0 - 40.0),
            )),
        ),
        ("special", Arc::new(Float64Array::from_iter_values((0..rows).map(special)))),
        (
            "n",
            Arc::new(Float64Array::from_iter(
                (0..rows).map(|row| (row % 3 > 0).then_some(row as f64)),
            )),
        ),
        ("i", Arc::new(Int64Array::from_iter_values((0..rows).map(|row| (row * 7 % 50) as i64)))),
        (
            "d",
            Arc::new(Int32Array::from_iter_values(
                keys.iter().map(|key| (key / 0x1_0000_0001) as i32 * 3),
            )),
        ),
        (
            "wide",
            Arc::new(Int64Array::from_iter((0..rows).map(|row| {
                (row % 5 > 0).then_some((row as i64 - 700).wrapping_mul(0x0123_4567_89ab_cdef) >> 4)
            }))),
        ),
        (
            "text",
            Arc::new(StringArray::from_iter(
                (0..rows)
                    .map(|row| (row % 7 > 0).then(|| format!("text number {}", row * 7919 % 1000))),
            )),
        ),
    ])
}

fn shapes() -> Vec<Vec<usize>> {
    vec![
        vec![1, 1],
        vec![31, 1, 2016, 1],
        vec![1; 4097],
        vec![2047, 2, 2047, 2048, 1],
        vec![1, 20_000, 3],
        (0..3000).map(|run| 1 + run * 7919 % 6).collect(),
    ]
}

/// Launches of kernels of this name so far.
fn launches(pair: &Pair, stem: &str) -> u64 {
    pair.gpu()
        .launches()
        .iter()
        .filter(|(name, _)| name.starts_with(stem))
        .map(|(_, count)| count)
        .sum()
}

#[test]
fn groups_of_an_ascending_key_are_its_runs() {
    for lengths in shapes() {
        let pair = Pair::of(table(&lengths)).from(format!("{} runs", lengths.len()));
        let queries = [
            "SELECT k, sum(x) FROM t GROUP BY k",
            "SELECT sum(x), avg(x), min(x), max(x), count(x), count(*), sum(x) + 1, k AS key FROM t GROUP BY k",
            "SELECT k32, sum(x), count(*) FROM t GROUP BY k32",
            "SELECT DISTINCT k FROM t",
            "SELECT k, sum(x) AS s FROM t GROUP BY k HAVING count(*) > 1 ORDER BY k LIMIT 20",
        ];
        for sql in queries {
            let before = launches(&pair, "segment_heads");
            pair.check(sql);
            assert_eq!(
                launches(&pair, "segment_heads"),
                before + 1,
                "{sql}: no runs were looked for"
            );
        }
        // NaN is greatest and −0.0 is 0.0, as where groups are found by hashing.
        let special = |rows: &str| {
            format!("SELECT k, min(special), max(special), sum(special) FROM {rows} GROUP BY k")
        };
        let by_runs = run(&pair.device, &special("t")).expect("groups of t");
        let hashed =
            run(&pair.device, &special("(SELECT * FROM t WHERE i >= 0)")).expect("the same groups");
        pair.rows_agree(&hashed, &by_runs, "special values");
    }
}

/// Keys that number slots: rows of one group that stand together are combined before they are added.
#[test]
fn groups_of_an_ascending_key_that_numbers_slots() {
    for lengths in [vec![1; 5000], shapes().remove(5), [vec![1; 4000], vec![700, 33, 64]].concat()]
    {
        let pair = Pair::of(table(&lengths)).from(format!("{} runs", lengths.len()));
        let queries = [
            "SELECT d, sum(i), count(*) FROM t GROUP BY d",
            "SELECT d, sum(wide), count(wide), count(*), min(wide), max(wide), avg(d) FROM t GROUP BY d",
            "SELECT d, sum(CAST(wide AS DECIMAL(38, 2))), avg(i) FROM t GROUP BY d",
            "SELECT d, sum(i) FILTER (WHERE i > 20), min(text), max(text), count(text) FROM t GROUP BY d",
            "SELECT d, min(x), max(special), count(n) FROM t WHERE i > 3 GROUP BY d",
            "SELECT d, sum(n), sum(wide) FROM t WHERE i <> 7 AND i <> 21 GROUP BY d",
            "SELECT d, i % 3 AS m, sum(wide), count(*) FROM t WHERE i > 3 GROUP BY d, i % 3",
            "SELECT a.d, sum(a.i), max(a.wide) FROM t a JOIN (SELECT DISTINCT k FROM t WHERE i > 20) b ON a.k = b.k GROUP BY a.d",
            "SELECT count(*), sum(d) FROM (SELECT d FROM t GROUP BY d HAVING sum(wide) > 30 AND count(*) > 0)",
        ];
        for sql in queries {
            let before = launches(&pair, "group_direct");
            pair.check(sql);
            assert!(launches(&pair, "group_direct") > before, "{sql}: no slots of keys");
        }
    }
}

#[test]
fn groups_that_runs_do_not_tell_are_found_otherwise() {
    let pair = Pair::of(table(&shapes()[5]));
    pair.check_all(&[
        "SELECT k, sum(n) FROM t GROUP BY k",
        "SELECT k, sum(i), min(i) FROM t GROUP BY k",
        "SELECT k, sum(x * 2) FROM t GROUP BY k",
        "SELECT k, sum(x) FILTER (WHERE i > 3) FROM t GROUP BY k",
        "SELECT k, sum(x) FROM t WHERE i > 3 GROUP BY k",
        "SELECT k, i, sum(x) FROM t GROUP BY k, i",
        "SELECT k + 1, sum(x) FROM t GROUP BY k + 1",
        "SELECT k, sum(x) FROM (SELECT * FROM t ORDER BY x, k) GROUP BY k",
        "SELECT a.k, sum(a.x) FROM t a JOIN (SELECT DISTINCT k FROM t WHERE i > 20) b ON a.k = b.k GROUP BY a.k",
        "SELECT k, sum(x) FROM (SELECT k, x FROM t UNION ALL SELECT k, x FROM t) GROUP BY k",
    ]);
    assert_eq!(launches(&pair, "segment_heads_u32"), 0);
}

#[test]
fn a_column_that_ascends_is_not_sorted_again() {
    let pair = Pair::of(table(&shapes()[5]));
    pair.check("SELECT k, sum(x) AS s FROM t GROUP BY k ORDER BY k");
    assert_eq!(pair.agreement("SELECT k FROM t ORDER BY k LIMIT 40"), Agreement::Rows(40));
    assert_eq!(launches(&pair, "sort"), 0);
    pair.check("SELECT k, sum(x) AS s FROM t GROUP BY k ORDER BY k DESC");
    assert_eq!(launches(&pair, "sort"), 0, "unique values are reversed");
    pair.check("SELECT k, sum(x) AS s FROM t GROUP BY k ORDER BY s, k");
    assert!(launches(&pair, "sort") > 0);
}

#[test]
fn a_sort_leaves_a_column_that_ascends() -> Result<()> {
    let shuffled: Vec<i64> = (0..5000).map(|row| row * 7919 % 1250 * 1_000_003).collect();
    let x = Float64Array::from_iter_values((0..5000).map(f64::from));
    let pair = Pair::of(columns(vec![
        ("k", Arc::new(Int64Array::from(shuffled)) as ArrayRef),
        ("x", Arc::new(x) as ArrayRef),
    ]));
    let sums = |session: &Session, ascending: bool| {
        let sorted = session.table("t")?.sort([col("k").sort(ascending, false)])?.collect()?;
        // A part of it, too.
        let part = sorted.limit(100, 3000)?;
        let sums = part.group_by([col("k")]).agg([sum(col("x")), count_rows().alias("n")])?;
        sums.sort([asc(col("k"))])
    };
    for ascending in [true, false] {
        let before = launches(&pair, "segment_heads");
        let (cpu, device) = (sums(&pair.cpu, ascending)?, sums(&pair.device, ascending)?);
        pair.rows_agree(&cpu, &device, "ORDER BY k");
        assert_eq!(launches(&pair, "segment_heads") - before, u64::from(ascending));
    }
    // The payload of a sort was in order before, and is not now.
    let by_x = |s: &Session| {
        s.table("t")?.sort([desc(col("x"))])?.collect()?.sort([asc(col("k")), asc(col("x"))])
    };
    let back = |s: &Session| by_x(s)?.sort([asc(col("x"))]);
    assert_eq!(
        format!("{:?}", Rows::of(&back(&pair.cpu)?).rows),
        format!("{:?}", Rows::of(&back(&pair.device)?).rows)
    );
    let payload =
        |s: &Session| s.table("t")?.select([col("x"), col("k")])?.sort([asc(col("x"))])?.collect();
    let sums = |s: &Session| payload(s)?.group_by([col("k")]).agg([sum(col("x"))]);
    pair.rows_agree(&sums(&pair.cpu)?, &sums(&pair.device)?, "payload");
    Ok(())
}
