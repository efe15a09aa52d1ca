//! Aggregates of groups.

use warpframe::prelude::*;

use super::{agrees, all_four, gives, small};

#[test]
fn places_of_extremes() {
    let pair = small();
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().agg([
            col("x").arg_max(),
            col("x").arg_min().alias("least"),
            col("f").arg_max()
        ]),
        ["k", "x", "least", "f"],
        ["a|2|0|1", "b|0|0|1", "-|0|0|0"]
    );
    gives!(pair, |t| t.select([col("x").arg_max(), col("k").arg_min()]), ["x", "k"], ["5|0"]);
}

#[test]
fn groups_have_verbs_for_all_columns() {
    let pair = small();
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().sum()?.select(["k", "x"]),
        ["k", "x"],
        ["a|8", "b|2", "-|4"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().mean()?.select(["k", "x"]),
        ["k", "x"],
        ["a|4", "b|1", "-|4"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().min()?.select(["k", "x"]),
        ["k", "x"],
        ["a|3", "b|1", "-|4"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().max()?.select(["k", "x"]),
        ["k", "x"],
        ["a|5", "b|1", "-|4"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().count(),
        ["k", "x", "f"],
        ["a|2|3", "b|2|1", "-|1|1"]
    );
    gives!(pair, |t| t.group_by(["k"]).maintain_order().len(), ["k", "len"], ["a|3", "b|2", "-|1"]);
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().first()?.select(["k", "x"]),
        ["k", "x"],
        ["a|3", "b|1", "-|4"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().last()?.select(["k", "x"]),
        ["k", "x"],
        ["a|5", "b|1", "-|4"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().n_unique()?.select(["k", "x"]),
        ["k", "x"],
        ["a|3", "b|1", "-|1"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().median()?.select(["k", "x"]),
        ["k", "x"],
        ["a|4", "b|1", "-|4"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().quantile(0.75)?.select(["k", "x"]),
        ["k", "x"],
        ["a|4.5", "b|1", "-|4"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().std()?.select(["k", "x"]),
        ["k", "x"],
        ["a|1.414214", "b|0", "-|-"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().var()?.select(["k", "x"]),
        ["k", "x"],
        ["a|2", "b|0", "-|-"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().implode()?.select(["k", "x"]),
        ["k", "x"],
        ["a|[3, NULL, 5]", "b|[1, 1]", "-|[4]"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).head(1)?.select(["k", "x"]),
        ["k", "x"],
        ["a|3", "b|1", "-|4"]
    );
    gives!(
        pair,
        |t| t.group_by(["k"]).tail(2)?.select(["k", "x"]),
        ["k", "x"],
        ["b|1", "a|-", "-|4", "b|1", "a|5"]
    );
}

#[test]
fn aggregates_are_operands() {
    let pair = small();
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().agg([
            (col("x").max() - col("x").min()).alias("range"),
            (col("x").sum() * 1.0 / col("x").count()).alias("mean"),
            sum("x").filter(col("x").gt(3)).alias("large"),
            lit(7).alias("seven"),
        ]),
        ["k", "range", "mean", "large", "seven"],
        ["a|2|4|5|7", "b|0|1|-|7", "-|0|4|4|7"]
    );
    gives!(
        pair,
        |t| t
            .group_by([(col("x") % 2).alias("odd")])
            .agg([(col("x").count() + 1).alias("n")])?
            .sort(["odd"]),
        ["odd", "n"],
        ["0|2", "1|5", "-|1"]
    );
    // Of rows before: windows within aggregates.
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().agg([col("x").shift(1).sum().alias("before")]),
        ["k", "before"],
        ["a|2", "b|7", "-|-"]
    );
    gives!(
        pair,
        |t| t.select([(col("x").max() - col("x").min()).alias("range")]),
        ["range"],
        ["4"]
    );
    gives!(
        pair,
        |t| t.select([(col("x") - col("x").min()).alias("above")]),
        ["above"],
        ["2", "0", "-", "3", "0", "4"]
    );
    gives!(
        pair,
        |t| t.with_columns([col("x").mean().over(["k"]).alias("f")])?.select(["x", "f"]),
        ["x", "f"],
        ["3|4", "1|1", "-|4", "4|4", "1|1", "5|4"]
    );
    gives!(pair, |t| t.filter(col("x").gt(col("x").mean()))?.select(["x"]), ["x"], ["3", "4", "5"]);
    gives!(pair, |t| t.select(all().count().name().suffix("_n")), ["k_n", "x_n", "f_n"], ["5|5|5"]);
    agrees!(pair, false, |t| t.group_by(["k"]).agg(numeric().max()));
    all_four!(pair, |t| t.group_by([] as [&str; 0]).agg([col("x").sum()]));
}
