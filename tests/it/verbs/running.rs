//! Rows before and after, ranks, running and rolling aggregates.

use warpframe::prelude::*;

use super::{all_four, gives, printed, small};

#[test]
fn values_of_other_rows() {
    let pair = small();
    gives!(pair, |t| t.select(["x"])?.shift(1), ["x"], ["-", "3", "1", "-", "4", "1"]);
    gives!(pair, |t| t.select(["x"])?.shift(-2), ["x"], ["-", "4", "1", "5", "-", "-"]);
    gives!(pair, |t| t.select(["x"])?.diff(["x"], 1), ["x"], ["-", "-2", "-", "-", "-3", "4"]);
    gives!(
        pair,
        |t| t.select(["x"])?.pct_change(["x"], 1),
        ["x"],
        ["-", "-0.666667", "-", "-", "-0.75", "4"]
    );
    gives!(
        pair,
        |t| t.select([col("x").shift(1).over(["k"]).alias("x")]),
        ["x"],
        ["-", "-", "3", "-", "1", "-"]
    );
    gives!(
        pair,
        |t| t.select([col("x").shift_or(1, 0i64.into()).alias("x")]),
        ["x"],
        ["0", "3", "1", "-", "4", "1"]
    );
    gives!(
        pair,
        |t| t.select([col("x").forward_fill().over(["k"]).alias("x")]),
        ["x"],
        ["3", "1", "3", "4", "1", "5"]
    );
    // A function of rows within another, and several orders beside one another.
    gives!(
        pair,
        |t| t.select([
            col("x").fill_null(0).shift(1).cum_sum().alias("sums"),
            col("x").rank_with(RankMethod::Min, true).alias("place"),
            col("x").shift(1).over(["k"]).alias("before"),
        ]),
        ["sums", "place", "before"],
        ["-|3|-", "3|4|-", "4|-|3", "4|2|-", "8|4|1", "9|1|-"]
    );
    gives!(pair, |t| t.filter(col("x").diff(1).lt(0))?.select(["x"]), ["x"], ["1", "1"]);
}

#[test]
fn running_aggregates() {
    let pair = small();
    gives!(pair, |t| t.select(["x"])?.cum_sum(["x"]), ["x"], ["3", "4", "-", "8", "9", "14"]);
    gives!(pair, |t| t.select(["x"])?.cum_min(["x"]), ["x"], ["3", "1", "-", "1", "1", "1"]);
    gives!(pair, |t| t.select(["x"])?.cum_max(["x"]), ["x"], ["3", "3", "-", "4", "4", "5"]);
    gives!(pair, |t| t.select(["x"])?.cum_count(["x"]), ["x"], ["1", "2", "2", "3", "4", "5"]);
    gives!(
        pair,
        |t| t.select([(col("x") - 3).alias("x")])?.cum_prod(["x"]),
        ["x"],
        ["0", "0", "-", "0", "0", "0"]
    );
    gives!(
        pair,
        |t| t.select([(col("x") - 6).alias("x")])?.cum_prod(["x"]),
        ["x"],
        ["-3", "15", "-", "-30", "150", "-150"]
    );
    gives!(
        pair,
        |t| t.select([col("x").cum_sum().over(["k"]).alias("x")]),
        ["x"],
        ["3", "1", "-", "4", "2", "8"]
    );
}

#[test]
fn ranks_of_all_methods() {
    let pair = small();
    gives!(
        pair,
        |t| t.select(["x"])?.rank_with(["x"], RankMethod::Average, false),
        ["x"],
        ["3", "1.5", "-", "4", "1.5", "5"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.rank_with(["x"], RankMethod::Min, false),
        ["x"],
        ["3", "1", "-", "4", "1", "5"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.rank_with(["x"], RankMethod::Max, false),
        ["x"],
        ["3", "2", "-", "4", "2", "5"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.rank_with(["x"], RankMethod::Dense, false),
        ["x"],
        ["2", "1", "-", "3", "1", "4"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.rank_with(["x"], RankMethod::Ordinal, false),
        ["x"],
        ["3", "1", "-", "4", "2", "5"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.rank_with(["x"], RankMethod::Min, true),
        ["x"],
        ["3", "4", "-", "2", "4", "1"]
    );
    gives!(
        pair,
        |t| t.select([col("x").rank_with(RankMethod::Max, false).over(["k"]).alias("x")]),
        ["x"],
        ["1", "2", "-", "1", "2", "2"]
    );
}

#[test]
fn chance_ranks_equal_values() {
    let pair = small();
    for seed in 0..8 {
        // 1 twice, at the second and the fifth row.
        let found =
            all_four!(pair, |t| t.select([col("x").rank_with(RankMethod::Random { seed }, false)]));
        let ranks = printed(&found[0]);
        assert!(
            ranks == ["3", "1", "-", "4", "2", "5"] || ranks == ["3", "2", "-", "4", "1", "5"],
            "{ranks:?}"
        );
        assert!(found.iter().all(|frame| printed(frame) == ranks), "{seed}");
    }
    let first = |seed| {
        let ranked = pair
            .device
            .table("t")?
            .select([col("x").rank_with(RankMethod::Random { seed }, false)])?;
        ranked.collect()?.get::<u64>(1, "x")
    };
    let firsts =
        (0..16).map(first).collect::<warpframe::Result<Vec<_>>>().expect("they are ranked");
    assert!(firsts.contains(&1) && firsts.contains(&2), "chance is no order: {firsts:?}");
}

#[test]
fn windows_of_rows() {
    let pair = small();
    gives!(
        pair,
        |t| t.select([col("x").rolling_sum(2).alias("x")]),
        ["x"],
        ["-", "4", "-", "-", "5", "6"]
    );
    gives!(
        pair,
        |t| t.select([col("x")
            .rolling_mean(Rolling { min_samples: 1, ..Rolling::rows(3) })
            .alias("x")]),
        ["x"],
        ["3", "2", "2", "2.5", "2.5", "3.333333"]
    );
    gives!(
        pair,
        |t| t.select([col("x")
            .rolling_max(Rolling { min_samples: 1, center: true, rows: 3 })
            .alias("x")]),
        ["x"],
        ["3", "3", "4", "4", "5", "5"]
    );
    gives!(
        pair,
        |t| t.select([col("x").rolling_min(2).over(["k"]).alias("x")]),
        ["x"],
        ["-", "-", "-", "-", "1", "-"]
    );
    gives!(
        pair,
        |t| t.select([col("x").fill_null(0).rolling_std(2).alias("x")]),
        ["x"],
        ["-", "1.414214", "0.707107", "2.828427", "2.12132", "2.828427"]
    );
    gives!(
        pair,
        |t| t.select([col("x").fill_null(0).rolling_median(3).alias("x")]),
        ["x"],
        ["-", "-", "1", "1", "1", "4"]
    );
    gives!(
        pair,
        |t| t.select([(col("x").max() - col("x").min()).rolling(2).alias("x")]),
        ["x"],
        ["0", "2", "0", "0", "3", "4"]
    );
}

#[test]
fn equal_values_are_told_by_expressions() {
    let pair = small();
    gives!(
        pair,
        |t| t.select([
            col("x").is_duplicated().alias("twice"),
            col("x").is_unique().alias("once"),
            col("x").is_first_distinct().alias("first"),
            col("x").is_last_distinct().alias("last"),
            col("x").n_unique().over(["k"]).alias("n"),
        ]),
        ["twice", "once", "first", "last", "n"],
        ["0|1|1|1|3", "1|0|1|0|1", "0|1|1|1|3", "0|1|1|1|1", "1|0|0|1|1", "0|1|1|1|3"]
    );
}
