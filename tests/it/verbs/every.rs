//! Verbs of eager frames, one of each, over two frames that have the columns `k` (strings), `x`
//! (integers), `f` (floats) and `d` (days): for tests that take all of them, and for the benchmark
//! of their host time, which has no more rows than are said here.

use warpframe::prelude::*;
use warpframe::{Expr, Result};

/// A verb over a frame and another one of the same columns.
#[derive(Clone, Copy)]
pub struct EveryVerb {
    pub name: &'static str,
    pub order: RowOrder,
    pub run: fn(&DataFrame, &DataFrame) -> Result<DataFrame>,
}

/// What is promised of the order of the result's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RowOrder {
    /// It follows from that of the input.
    Kept,
    /// Nothing.
    Any,
}

use RowOrder::{Any, Kept};

const fn verb(
    name: &'static str,
    order: RowOrder,
    run: fn(&DataFrame, &DataFrame) -> Result<DataFrame>,
) -> EveryVerb {
    EveryVerb { name, order, run }
}

/// Keys that tell all rows apart which are not equal.
fn by_all() -> [&'static str; 4] {
    ["k", "x", "f", "d"]
}

fn seeded() -> SampleOptions {
    SampleOptions { seed: Some(7), ..SampleOptions::default() }
}

pub const EVERY_VERB: [EveryVerb; 69] = [
    verb("select", Kept, |t, _| t.select([col("x") + 1, col("k")])),
    verb("select aggregates", Kept, |t, _| {
        t.select([col("x").sum(), col("f").mean(), col("k").n_unique()])
    }),
    verb("with_columns", Kept, |t, _| t.with_columns([(col("x") * 2).alias("y"), col("f").abs()])),
    verb("with_columns over", Kept, |t, _| {
        t.with_columns([col("x").max().over(["k"]).alias("most")])
    }),
    verb("filter", Kept, |t, _| t.filter(col("x").gt(3))),
    verb("remove", Kept, |t, _| t.remove(col("k").eq("a"))),
    verb("sort", Kept, |t, _| t.sort([desc("x"), asc("k"), asc("f"), asc("d")])),
    verb("top_k", Any, |t, _| t.top_k(10, by_all())),
    verb("limit", Kept, |t, _| t.limit(2, 10)),
    verb("head", Kept, |t, _| t.head(5)),
    verb("tail", Kept, |t, _| t.tail(5)),
    verb("slice", Kept, |t, _| t.slice(-8, Some(5))),
    verb("gather_every", Kept, |t, _| t.gather_every(3)),
    verb("reverse", Kept, |t, _| t.reverse()),
    verb("with_row_index", Kept, |t, _| t.with_row_index("row", 1)),
    verb("distinct", Any, |t, _| t.select(["k"])?.distinct()),
    verb("unique", Kept, |t, _| t.unique(["k"], UniqueKeep::Last)),
    verb("is_duplicated", Kept, |t, _| t.is_duplicated(["k", "x"])),
    verb("is_unique", Kept, |t, _| t.is_unique(["x"])),
    verb("sample", Kept, |t, _| t.sample(SampleSize::Rows(10), seeded())),
    verb("shuffle", Kept, |t, _| t.shuffle(Some(3))),
    verb("drop", Kept, |t, _| t.drop(["f"])),
    verb("rename", Kept, |t, _| t.rename([("x", "y")])),
    verb("cast", Kept, |t, _| t.cast(["x"], DataType::Float64)),
    verb("reorder", Kept, |t, _| t.reorder(["f", "d"])),
    verb("fill_null", Kept, |t, _| t.fill_null(["x"], 0)),
    verb("fill_null_with", Kept, |t, _| t.fill_null_with(["x", "k"], Fill::Forward)),
    verb("fill_nan", Kept, |t, _| t.fill_nan(["f"], 0.0)),
    verb("interpolate", Kept, |t, _| t.interpolate(["x"])),
    verb("drop_nulls", Kept, |t, _| t.drop_nulls(all())),
    verb("drop_nans", Kept, |t, _| t.drop_nans(["f"])),
    verb("null_count", Kept, |t, _| t.null_count()),
    verb("join", Any, |t, u| {
        t.join(&u.unique(["k"], UniqueKeep::First)?, JoinType::Left, ["k"], ["k"])
    }),
    verb("join_on", Any, |t, u| t.join_on(u, JoinType::LeftSemi, ["x"])),
    verb("join_where", Any, |t, u| {
        t.head(20)?.join_where(&u.head(20)?, JoinType::Inner, col("x").lt(col("x_right")))
    }),
    verb("join_asof", Kept, |t, u| {
        t.join_asof(&u.unique(["x"], UniqueKeep::First)?, "x", "x", &AsofOptions::default())
    }),
    verb("update", Kept, |t, u| t.update(&u.unique(["x"], UniqueKeep::First)?, ["x"])),
    verb("cross_join", Any, |t, u| {
        t.head(7)?.select(["x"])?.cross_join(&u.head(5)?.select(["f"])?)
    }),
    verb("concat vertical", Kept, |t, u| DataFrame::concat([t, u], Concat::Vertical)),
    verb("concat diagonal", Kept, |t, u| {
        DataFrame::concat([t, &u.rename([("x", "y")])?], Concat::Diagonal)
    }),
    verb("concat horizontal", Kept, |t, u| {
        DataFrame::concat([t, &u.rename_with(|name| format!("{name}2"))?], Concat::Horizontal)
    }),
    verb("union", Kept, |t, u| t.union(u)),
    verb("intersect", Any, |t, u| t.select(["k", "x"])?.intersect(&u.select(["k", "x"])?)),
    verb("except", Any, |t, u| t.select(["k", "x"])?.except(&u.select(["k", "x"])?)),
    verb("is_in", Kept, |t, u| t.is_in(u, ["x"])),
    verb("sum", Kept, |t, _| t.sum()),
    verb("median", Kept, |t, _| t.median()),
    verb("n_unique", Kept, |t, _| t.n_unique()),
    verb("quantile", Kept, |t, _| t.quantile(0.25)),
    verb("value_counts", Kept, |t, _| t.value_counts(["k"])),
    verb("describe", Kept, |t, _| t.describe()),
    verb("corr", Kept, |t, _| t.filter(!col("f").is_nan())?.corr()),
    verb("cut", Kept, |t, _| t.cut("x", &[2.0, 5.0], None)),
    verb("qcut", Kept, |t, _| t.qcut("x", &[0.5], Some(&["low", "high"]))),
    verb("hist", Kept, |t, _| t.hist("x", Bins::Count(4))),
    verb("group_by agg", Any, |t, _| {
        t.group_by(["k"]).agg([col("x").sum(), col("f").max(), len()])
    }),
    verb("group_by maintain_order", Kept, |t, _| {
        t.group_by(["k"]).maintain_order().agg([col("x").first(), len()])
    }),
    verb("group_by head", Kept, |t, _| t.group_by(["k"]).head(2)),
    verb("group_by_dynamic", Kept, |t, _| {
        t.group_by_dynamic("d", [] as [&str; 0], DynamicWindows::every("1w"))?.agg([col("x").sum()])
    }),
    verb("explode", Kept, |t, _| {
        t.group_by(["k"]).maintain_order().implode()?.explode(["x", "f", "d"])
    }),
    verb("unnest", Kept, |t, _| {
        t.select([structs([("a", col("x")), ("b", col("k"))]).alias("s")])?.unnest(["s"])
    }),
    verb("unpivot", Kept, |t, _| t.unpivot(["x", "f"], ["k"])),
    verb("pivot", Kept, |t, _| t.pivot("k", ["d"], ["x"], Expr::sum)),
    verb("to_dummies", Kept, |t, _| t.to_dummies(["k"])),
    verb("shift", Kept, |t, _| t.shift(2)),
    verb("diff", Kept, |t, _| t.diff(["x"], 1)),
    verb("cum_sum", Kept, |t, _| t.cum_sum(["x"])),
    verb("rank", Kept, |t, _| t.rank_with(["x", "f"], RankMethod::Average, true)),
    verb("arg_sort and take", Kept, |t, _| t.take(&t.arg_sort(["f", "x"])?)),
];
