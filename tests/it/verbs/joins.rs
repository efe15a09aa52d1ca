//! Joins with options, on conditions, and of the nearest rows.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMicrosecondArray};
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use super::{all_four, gives, printed, small};
use crate::differential::Pair;
use crate::tables::columns;

#[test]
fn frames_are_updated() -> Result<()> {
    let pair = small();
    gives!(
        pair,
        |t| {
            let news = t.filter(col("x").eq(4).or(col("x").eq(5)))?.select([
                (col("x") - 2).alias("x"),
                lit("new").alias("k"),
                lit(None::<f64>).alias("f"),
                lit(1).alias("z"),
            ])?;
            t.update(&news, ["x"])
        },
        ["k", "x", "f"],
        ["new|3|0.5", "b|1|-", "a|-|NaN", "-|4|-0", "b|1|0", "a|5|2.5"]
    );
    let table = pair.device.table("t")?;
    let error = table.update(&table, ["nobody"]).expect_err("an unknown column");
    assert_eq!(error.verb(), Some("update"), "{error}");
    Ok(())
}

#[test]
fn joins_have_options() -> Result<()> {
    let pair = small();
    let options =
        || JoinOptions { suffix: "_b".into(), nulls_equal: true, validate: Validate::ManyToMany };
    gives!(
        pair,
        |t| t
            .select(["k", "x"])?
            .join_with(
                &t.select(["k", "x"])?.unique(["k"], UniqueKeep::First)?,
                JoinType::Inner,
                ["k"],
                ["k"],
                options()
            )?
            .sort(["k", "x"]),
        ["k", "x", "x_b"],
        ["a|3|3", "a|5|3", "a|-|3", "b|1|1", "b|1|1", "-|4|4"]
    );
    gives!(
        pair,
        |t| t.select(["k", "x"])?.join_on(&t.select(["k"])?.distinct()?, JoinType::LeftAnti, ["k"]),
        ["k", "x"],
        ["-|4"]
    );
    let t = pair.device.table("t")?;
    let once = |validate| JoinOptions { validate, ..JoinOptions::default() };
    for (validate, side) in [
        (Validate::OneToMany, "left"),
        (Validate::OneToOne, "left"),
        (Validate::ManyToOne, "right"),
    ] {
        let error = t
            .join_with(&t, JoinType::Inner, ["k"], ["k"], once(validate))
            .expect_err("keys come twice");
        assert!(error.to_string().contains(side) && error.verb() == Some("join"), "{error}");
    }
    let keys = t.unique(["k"], UniqueKeep::First)?;
    t.join_with(&keys, JoinType::Inner, ["k"], ["k"], once(Validate::ManyToOne))?;
    keys.join_with(&keys, JoinType::Inner, ["k"], ["k"], once(Validate::OneToOne))?;
    Ok(())
}

#[test]
fn joins_on_conditions() {
    let pair = small();
    gives!(
        pair,
        |t| t
            .select(["x"])?
            .join_where(&t.select(["x"])?, JoinType::Inner, col("x").lt(col("x_right") - 1))?
            .sort(["x", "x_right"]),
        ["x", "x_right"],
        ["1|3", "1|3", "1|4", "1|4", "1|5", "1|5", "3|5"]
    );
    gives!(
        pair,
        |t| t
            .select(["x"])?
            .join_where(&t.select(["x"])?, JoinType::LeftAnti, col("x").lt(col("x_right")))?
            .sort(["x"]),
        ["x"],
        ["5", "-"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.head(2)?.cross_join(&t.select(["k"])?.tail(2)?)?.sort(["x", "k"]),
        ["x", "k"],
        ["1|a", "1|b", "3|a", "3|b"]
    );
}

/// Left rows out of order, with a null; right rows with two of one key.
fn asof() -> Pair {
    let ints = |values: &[Option<i64>]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    let texts = |values: &[&str]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let left = columns(vec![
        ("at", ints(&[Some(5), Some(10), None, Some(1), Some(7)])),
        ("g", texts(&["a", "b", "a", "a", "b"])),
    ]);
    let right = columns(vec![
        ("time", ints(&[Some(2), Some(6), Some(6), None, Some(12)])),
        ("g", texts(&["a", "a", "b", "a", "b"])),
        ("p", ints(&[Some(20), Some(60), Some(61), Some(0), Some(120)])),
    ]);
    Pair::of(left).and("u", right)
}

fn nearest(pair: &Pair, options: &AsofOptions) -> Result<Vec<String>> {
    let mut results = vec![];
    for session in [&pair.cpu, &pair.device] {
        let (t, u) = (session.table("t")?, session.table("u")?);
        results.push(printed(&t.join_asof(&u, "at", "time", options)?.collect()?));
        results.push(printed(&t.collect()?.join_asof(&u.collect()?, "at", "time", options)?));
    }
    assert!(results.iter().all(|rows| *rows == results[0]), "{results:?}");
    Ok(results.remove(0))
}

#[test]
fn rows_are_joined_with_the_nearest() -> Result<()> {
    let pair = asof();
    let with = |strategy, by: &[&str], tolerance: Option<&str>| AsofOptions {
        strategy,
        by: by.iter().map(|name| name.to_string()).collect(),
        tolerance: tolerance.map(String::from),
        ..AsofOptions::default()
    };
    use AsofStrategy::*;
    // The columns are at, g and g_right, p; of two rows of one key going back takes the last, and
    // forward the first.
    assert_eq!(
        nearest(&pair, &with(Backward, &[], None))?,
        ["5|a|a|20", "10|b|b|61", "-|a|-|-", "1|a|-|-", "7|b|b|61"]
    );
    assert_eq!(
        nearest(&pair, &with(Forward, &[], None))?,
        ["5|a|a|60", "10|b|b|120", "-|a|-|-", "1|a|a|20", "7|b|b|120"]
    );
    // Within groups the columns are at, g and p.
    assert_eq!(
        nearest(&pair, &with(Backward, &["g"], None))?,
        ["5|a|20", "10|b|61", "-|a|-", "1|a|-", "7|b|61"]
    );
    assert_eq!(
        nearest(&pair, &with(Forward, &["g"], None))?,
        ["5|a|60", "10|b|120", "-|a|-", "1|a|20", "7|b|120"]
    );
    assert_eq!(
        nearest(&pair, &with(Nearest, &["g"], None))?,
        ["5|a|60", "10|b|120", "-|a|-", "1|a|20", "7|b|61"]
    );
    assert_eq!(
        nearest(&pair, &with(Backward, &["g"], Some("2")))?,
        ["5|a|-", "10|b|-", "-|a|-", "1|a|-", "7|b|61"]
    );
    let (t, u) = (pair.cpu.table("t")?, pair.cpu.table("u")?);
    let error =
        t.join_asof(&u, "g", "time", &AsofOptions::default()).expect_err("texts have no distance");
    assert!(
        matches!(error.kind(), ErrorKind::TypeMismatch { .. }) && error.verb() == Some("join_asof"),
        "{error}"
    );
    assert!(t.join_asof(&u, "at", "nobody", &AsofOptions::default()).is_err());
    assert!(t.join_asof(&u, "at", "time", &with(Backward, &[], Some("x"))).is_err());
    Ok(())
}

#[test]
fn times_are_joined_within_a_tolerance() -> Result<()> {
    let at = |seconds: &[i64]| {
        Arc::new(TimestampMicrosecondArray::from_iter_values(seconds.iter().map(|s| s * 1_000_000)))
            as ArrayRef
    };
    let left = columns(vec![("at", at(&[100, 200]))]);
    let right = columns(vec![
        ("time", at(&[30, 195])),
        ("p", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
    ]);
    let pair = Pair::of(left).and("u", right);
    let options = AsofOptions { tolerance: Some("1m".into()), ..AsofOptions::default() };
    assert_eq!(nearest(&pair, &options)?, ["100000000|-", "200000000|2"]);
    all_four!(pair, |t| t.join_asof(&t, "at", "at", &options));
    Ok(())
}
