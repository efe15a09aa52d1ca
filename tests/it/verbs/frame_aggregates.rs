//! Aggregates of whole frames, counts of values, classes.

use warpframe::Result;
use warpframe::prelude::*;

use super::{gives, small};

#[test]
fn frames_are_aggregated() {
    let pair = small();
    gives!(pair, |t| t.sum()?.select(["x"]), ["x"], ["14"]);
    gives!(pair, |t| t.mean()?.select(["x"]), ["x"], ["2.8"]);
    gives!(pair, |t| t.median()?.select(["x"]), ["x"], ["3"]);
    gives!(pair, |t| t.var()?.select(["x"]), ["x"], ["3.2"]);
    gives!(pair, |t| t.std()?.select(["x"]), ["x"], ["1.788854"]);
    gives!(pair, |t| t.min()?.select(["k", "x"]), ["k", "x"], ["a|1"]);
    gives!(pair, |t| t.max()?.select(["k", "x"]), ["k", "x"], ["b|5"]);
    gives!(pair, |t| t.count(), ["k", "x", "f"], ["5|5|5"]);
    // Null is a value, and zeros of both signs are one.
    gives!(pair, |t| t.n_unique(), ["k", "x", "f"], ["3|5|5"]);
    gives!(pair, |t| t.select(["x"])?.quantile(0.25), ["x"], ["1"]);
    gives!(pair, |t| t.filter(lit(false))?.select(["x"])?.sum(), ["x"], ["-"]);
    gives!(pair, |t| t.filter(lit(false))?.n_unique(), ["k", "x", "f"], ["0|0|0"]);
}

#[test]
fn values_are_counted_and_described() {
    let pair = small();
    gives!(pair, |t| t.value_counts(["k"]), ["k", "count"], ["a|3", "b|2", "-|1"]);
    gives!(pair, |t| t.value_counts(["x"]), ["x", "count"], ["1|2", "3|1", "-|1", "4|1", "5|1"]);
    gives!(
        pair,
        |t| t.select(["k", "x"])?.describe(),
        ["statistic", "k", "x"],
        [
            "count|5|5",
            "null_count|1|1",
            "mean|-|2.8",
            "std|-|1.788854",
            "min|a|1",
            "25%|-|1",
            "50%|-|3",
            "75%|-|4",
            "max|b|5",
        ]
    );
    gives!(
        pair,
        |t| t.select([col("x").alias("a"), (col("x") * -2).alias("b"), col("k")])?.corr(),
        ["column", "a", "b"],
        ["a|1|-1", "b|-1|1"]
    );
}

#[test]
fn numbers_are_put_in_classes() -> Result<()> {
    let pair = small();
    gives!(
        pair,
        |t| t.select(["x"])?.cut("x", &[1.0, 3.5], None),
        ["x"],
        ["(1, 3.5]", "(-inf, 1]", "-", "(3.5, inf]", "(-inf, 1]", "(3.5, inf]"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.qcut("x", &[0.5], Some(&["low", "high"])),
        ["x"],
        ["low", "low", "-", "high", "low", "high"]
    );
    gives!(
        pair,
        |t| t.hist("x", Bins::Edges(vec![1.0, 2.0, 4.0, 9.0])),
        ["breakpoint", "category", "count"],
        ["2|[1, 2]|2", "4|(2, 4]|2", "9|(4, 9]|1"]
    );
    gives!(
        pair,
        |t| t.hist("x", Bins::Count(2)),
        ["breakpoint", "category", "count"],
        ["3|[1, 3]|3", "5|(3, 5]|2"]
    );
    let t = pair.cpu.table("t")?;
    for error in [
        t.cut("x", &[2.0, 1.0], None).expect_err("descending"),
        t.cut("x", &[1.0], Some(&["one"])).expect_err("one label"),
        t.cut("nobody", &[1.0], None).expect_err("no column"),
    ] {
        assert_eq!(error.verb(), Some("cut"), "{error}");
    }
    assert!(t.qcut("x", &[1.5], None).is_err());
    assert!(t.hist("x", Bins::Count(0)).is_err());
    assert!(t.hist("x", Bins::Edges(vec![1.0])).is_err());
    Ok(())
}
