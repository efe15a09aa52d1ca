//! Joins with options, and on conditions.

use warpframe::Result;
use warpframe::prelude::*;

use super::{gives, small};

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
