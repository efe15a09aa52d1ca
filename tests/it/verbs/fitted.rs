//! Aggregates as the types of their values ask for, and filters of values before aggregates.

use std::sync::Arc;

use warpframe::Result;
use warpframe::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Int64Array, TimestampMicrosecondArray, UInt8Array,
    UInt32Array,
};
use warpframe::prelude::*;

use super::{gives, printed, small};
use crate::differential::Pair;

#[test]
fn a_filter_before_an_aggregate_is_the_aggregates_own() {
    let pair = small();
    let of_a = || col("k").eq("a");
    gives!(
        pair,
        |t| t.select([
            col("x").filter(of_a()).sum(),
            col("x").filter(of_a()).len().alias("len"),
            col("x").filter(of_a()).count().alias("count"),
            col("x").filter(of_a()).null_count().alias("nulls"),
            col("x").filter(of_a()).n_unique().alias("n_unique"),
            col("x").filter(of_a()).first().alias("first"),
            col("x").filter(of_a()).last().alias("last"),
            col("x").filter(of_a()).median().alias("median"),
            col("x").filter(of_a()).quantile(0.25).alias("quantile"),
            col("x").filter(of_a()).product().alias("product"),
        ]),
        [
            "x", "len", "count", "nulls", "n_unique", "first", "last", "median", "quantile",
            "product"
        ],
        ["8|3|2|1|3|3|5|4|3.5|15"]
    );
    // Filters add up, stand within expressions, and differ from aggregate to aggregate.
    gives!(
        pair,
        |t| t.select([
            col("x").filter(of_a()).filter(col("x").gt(3)).sum(),
            ((col("x") * 10).filter(of_a()).max() + col("x").sum()).alias("both"),
            col("x").filter(of_a()).sum().filter(col("x").lt(4)).alias("after"),
        ]),
        ["x", "both", "after"],
        ["5|64|3"]
    );
    gives!(
        pair,
        |t| t
            .group_by(["k"])
            .agg([col("x").filter(col("f").lt_eq(0.5)).sum(), col("x").sum().alias("all")])?
            .sort(["k"]),
        ["k", "x", "all"],
        ["a|3|8", "b|1|2", "-|4|4"]
    );
    gives!(
        pair,
        |t| t.select([col("x").filter(col("f").lt_eq(0.5)).sum().over(["k"])]),
        ["x"],
        ["3", "1", "3", "4", "1", "3"]
    );
}

#[test]
fn a_filter_that_nothing_aggregates_is_refused() -> Result<()> {
    let pair = small();
    for session in [&pair.cpu, &pair.device] {
        let frame = session.table("t")?;
        let filtered = || col("x").filter(col("k").eq("a"));
        for expr in [filtered(), filtered() + 1, filtered().cum_sum(), filtered().shift(1)] {
            let error = frame.select([expr]).expect_err("an error").to_string();
            assert!(error.contains("select: not supported: a filter of values"), "{error}");
        }
    }
    Ok(())
}

fn typed() -> Pair {
    let b: ArrayRef =
        Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true), Some(true)]));
    let d: ArrayRef =
        Arc::new(Date32Array::from(vec![Some(10), Some(13), None, Some(-4), Some(20)]));
    let t: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![
        Some(1_700_000_000_000_001),
        Some(1_700_000_000_000_004),
        Some(-62_000_000_000_000_000),
        None,
        Some(1_700_000_000_000_008),
    ]));
    let k: ArrayRef = Arc::new(Int64Array::from(vec![1, 1, 1, 2, 2]));
    Pair::of(crate::tables::columns(vec![("k", k), ("b", b), ("d", d), ("t", t)]))
}

#[test]
fn booleans_are_counted() {
    let pair = typed();
    gives!(
        pair,
        |t| t.select([
            col("b").sum(),
            col("b").mean().alias("mean"),
            col("k").gt(1).sum().alias("two"),
            col("d").is_null().mean().alias("nulls"),
            col("b").filter(col("k").eq(2)).sum().alias("of two"),
        ]),
        ["b", "mean", "two", "nulls", "of two"],
        ["3|0.75|2|0.2|2"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).agg([col("b").mean(), col("b").sum().alias("sum")])?.sort(["k"]),
        ["k", "b", "sum"],
        ["1|0.5|1", "2|1|2"]
    );
    gives!(pair, |t| t.select([col("b").sum().over(["k"])]), ["b"], ["1", "1", "1", "2", "2"]);
    gives!(pair, |t| t.select([col("b").cum_sum()]), ["b"], ["1", "1", "-", "2", "3"]);
}

#[test]
fn means_and_medians_of_times_are_times() -> Result<()> {
    let pair = typed();
    for session in [&pair.cpu, &pair.device] {
        let frame = session.table("t")?;
        let found = frame.select([
            col("t").mean(),
            col("t").median().alias("median"),
            col("d").mean().alias("day"),
            col("d").median().alias("middle day"),
        ])?;
        let time = DataType::Timestamp(warpframe::arrow::datatypes::TimeUnit::Microsecond, None);
        assert!(found.schema().fields().iter().all(|field| *field.data_type() == time));
        let numbers = found.cast(all(), DataType::Int64)?.collect()?;
        // A day has 86,400,000,000 microseconds: the mean day is 9.75, the middle one 11.5.
        assert_eq!(
            printed(&numbers),
            ["-14224999999999997|1700000000000002|842400000000|993600000000"]
        );
        let by_key = frame.group_by(["k"]).agg([col("d").mean(), col("t").median()])?;
        let by_key = by_key.sort(["k"])?.cast(["d", "t"], DataType::Int64)?.collect()?;
        assert_eq!(
            printed(&by_key),
            ["1|993600000000|1700000000000001", "2|691200000000|1700000000000008"]
        );
    }
    Ok(())
}

#[test]
fn durations_are_added_and_averaged() -> Result<()> {
    let pair = typed();
    for session in [&pair.cpu, &pair.device] {
        let frame =
            session.table("t")?.with_columns([(col("t") - col("t").shift(1)).alias("gap")])?;
        let found = frame.select([
            col("gap").sum(),
            col("gap").mean().alias("mean"),
            col("gap").median().alias("median"),
        ])?;
        let gap = frame.schema().field_with_name("gap").expect("a column").data_type().clone();
        assert!(matches!(gap, DataType::Duration(_)));
        assert!(found.schema().fields().iter().all(|field| *field.data_type() == gap));
        assert_eq!(
            printed(&found.cast(all(), DataType::Int64)?.collect()?),
            ["-63700000000000001|-31850000000000001|-31850000000000000"]
        );
        let sums = frame.select([col("gap").cum_sum().cast(DataType::Int64)])?.collect()?;
        assert_eq!(printed(&sums), ["-", "3", "-63700000000000001", "-", "-"]);
    }
    Ok(())
}

#[test]
fn differences_of_integers_without_a_sign_have_one() {
    let u: ArrayRef =
        Arc::new(UInt32Array::from(vec![Some(9), Some(4_000_000_000), None, Some(1)]));
    let v: ArrayRef = Arc::new(UInt8Array::from(vec![Some(200), Some(255), Some(0), Some(3)]));
    let pair = Pair::of(crate::tables::columns(vec![("u", u), ("v", v)]));
    gives!(
        pair,
        |t| t.select([
            col("u").diff(1),
            col("v").diff(-1).alias("next"),
            (col("v") - col("v").shift(2)).alias("two"),
            col("v").diff(1).over(["u"]).alias("over"),
        ]),
        ["u", "next", "two", "over"],
        ["-|-55|-|-", "3999999991|255|-|-", "-|-3|-200|-", "-|-|-252|-"]
    );
}
