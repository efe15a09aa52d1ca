//! Verbs on the conformance columns: all types, nulls, NaN, zeros of both signs, no rows, one,
//! many.

use warpframe::Expr;
use warpframe::prelude::*;

use super::{agrees, all_four};
use crate::differential::Pair;
use crate::tables::{Batches, Shape, Values};

fn pairs() -> Vec<Pair> {
    let mut shapes: Vec<_> =
        [0, 1, 33, 2100].iter().map(|rows| Shape::random(*rows, 300 + *rows as u64)).collect();
    for values in [Values::AllNull, Values::Same] {
        shapes.push(Shape { values, ..Shape::random(300, 301) });
    }
    shapes.push(Shape { batches: Batches::Several, ..Shape::random(700, 302) });
    shapes.iter().map(|shape| Pair::of(shape.batches()).from(format!("{shape:?}"))).collect()
}

#[test]
fn verbs_of_rows_agree() {
    for pair in pairs() {
        agrees!(pair, true, |t| t.fill_null_with(["x", "s", "d", "b", "i8"], Fill::Forward));
        agrees!(pair, true, |t| t.unique(["k", "f64"], UniqueKeep::Last));
        agrees!(pair, true, |t| t.select(["id", "f64", "s", "m"])?.reverse()?.slice(-20, Some(15)));
        agrees!(pair, true, |t| t.select(["id", "x", "s"])?.shift(3));
        agrees!(pair, true, |t| t.select([
            col("id"),
            col("w").cum_sum().over(["k"]).alias("sum"),
            col("f64").rank_with(RankMethod::Average, false).alias("place"),
            col("x").rolling_mean(4).alias("mean"),
            col("s").forward_fill().over(["b"]).alias("text"),
        ]));
        agrees!(pair, true, |t| t.select(["id", "k"])?.sample(
            SampleSize::Fraction(0.3),
            SampleOptions { seed: Some(5), ..SampleOptions::default() },
        ));
    }
}

#[test]
fn verbs_of_groups_and_frames_agree() {
    for pair in pairs() {
        agrees!(pair, true, |t| t.value_counts(["k", "b"]));
        agrees!(pair, true, |t| t.select(["k", "x", "s", "d", "b"])?.describe());
        agrees!(pair, true, |t| t
            .select(["k", "x", "s", "w"])?
            .group_by(["k"])
            .maintain_order()
            .first());
        agrees!(pair, true, |t| t.select(["k", "k2", "x"])?.pivot("k2", ["k"], ["x"], Expr::max));
        agrees!(pair, true, |t| t.select(["id", "x", "m"])?.unpivot(["x", "m"], ["id"]));
        agrees!(pair, false, |t| t
            .select(["k", "k2"])?
            .except(&t.filter(col("b"))?.select(["k", "k2"])?));
        agrees!(pair, true, |t| t.select(["id", "w"])?.join_asof(
            &t.filter(col("b"))?.select([col("w"), col("id").alias("other")])?,
            "w",
            "w",
            &AsofOptions { strategy: AsofStrategy::Nearest, ..AsofOptions::default() },
        ));
        all_four!(pair, |t| t.n_unique());
    }
}
