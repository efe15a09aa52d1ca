//! Rows and columns that change places.

use warpframe::prelude::*;
use warpframe::{Expr, Result};

use super::{all_four, gives, printed, small};

#[test]
fn lists_become_rows() {
    let pair = small();
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().implode()?.select(["k", "x"])?.explode(["x"]),
        ["k", "x"],
        ["a|3", "a|-", "a|5", "b|1", "b|1", "-|4"]
    );
    gives!(
        pair,
        |t| t
            .select([list(["x", "x"]).alias("l"), list([col("x") + 1]).alias("m")])?
            .head(2)?
            .explode(["l", "m"]),
        ["l", "m"],
        ["3|4", "3|-", "1|2", "1|-"]
    );
    gives!(
        pair,
        |t| t.select([when(col("x").gt(3)).then(list(["x"])).end().alias("l")])?.explode(["l"]),
        ["l"],
        ["-", "-", "-", "4", "-", "5"]
    );
}

#[test]
fn structs_become_columns() -> Result<()> {
    let pair = small();
    let both = || structs([("a", col("x")), ("b", col("k"))]);
    gives!(
        pair,
        |t| t
            .select([col("f"), both().alias("s"), (col("x") * 2).alias("y")])?
            .head(3)?
            .unnest(["s"]),
        ["f", "a", "b", "y"],
        ["0.5|3|a|6", "-|1|b|2", "NaN|-|a|-"]
    );
    gives!(
        pair,
        |t| t.select([when(col("x").gt(1)).then(both()).end().alias("s")])?.head(2)?.unnest(["s"]),
        ["a", "b"],
        ["3|a", "-|-"]
    );
    let table = pair.device.table("t")?;
    assert!(table.unnest(["x"]).is_err(), "no struct");
    assert!(
        table.with_columns([both().alias("s")])?.unnest(["s"])?.unnest(["a"]).is_err(),
        "no struct"
    );
    assert!(
        table.with_columns([structs([("x", col("x"))]).alias("s")])?.unnest(["s"]).is_err(),
        "x comes twice"
    );
    Ok(())
}

#[test]
fn columns_become_rows_and_back() {
    let pair = small();
    gives!(
        pair,
        |t| t
            .select([col("k"), col("x").alias("a"), (col("x") * 10).alias("b")])?
            .head(2)?
            .unpivot(["a", "b"], ["k"]),
        ["k", "variable", "value"],
        ["a|a|3", "b|a|1", "a|b|30", "b|b|10"]
    );
    gives!(
        pair,
        |t| t.select(["x", "f"])?.head(1)?.unpivot_as(["x", "f"], [] as [&str; 0], "name", "v"),
        ["name", "v"],
        ["x|3", "f|0.5"]
    );
    gives!(
        pair,
        |t| t.with_columns([(col("x").fill_null(0) % 2).alias("odd")])?.pivot(
            "k",
            ["odd"],
            ["x"],
            Expr::sum
        ),
        ["odd", "a", "b", "null"],
        ["1|8|2|-", "0|-|-|4"]
    );
    gives!(
        pair,
        |t| t
            .with_columns([lit(1).alias("one")])?
            .pivot("k", ["one"], ["x", "f"], Expr::first)?
            .drop(["f_null"]),
        ["one", "x_a", "x_b", "x_null", "f_a", "f_b"],
        ["1|3|1|4|0.5|-"]
    );
    gives!(
        pair,
        |t| t.select(["x", "k"])?.head(4)?.to_dummies(["k"]),
        ["x", "k_a", "k_b", "k_null"],
        ["3|1|0|0", "1|0|1|0", "-|1|0|0", "4|0|0|1"]
    );
    gives!(
        pair,
        |t| t.select([col("x"), (col("x") * 10).alias("y")])?.head(3)?.transpose(Some("name")),
        ["name", "column_0", "column_1", "column_2"],
        ["x|3|1|-", "y|30|10|-"]
    );
    gives!(pair, |t| t.select(["x", "k"])?.head(1)?.transpose(None), ["column_0"], ["3", "a"]);
    gives!(
        pair,
        |t| t.select(["x", "k"])?.head(1)?.unpivot(["x", "k"], [] as [&str; 0]),
        ["variable", "value"],
        ["x|3", "k|a"]
    );
}

#[test]
fn frames_become_several() -> Result<()> {
    let pair = small();
    for session in [&pair.cpu, &pair.device] {
        let parts = session.table("t")?.select(["k", "x"])?.partition_by(["k"])?;
        let parts =
            parts.iter().map(|part| Ok(printed(&part.collect()?))).collect::<Result<Vec<_>>>()?;
        assert_eq!(parts, [vec!["a|3", "a|-", "a|5"], vec!["b|1", "b|1"], vec!["-|4"]]);
    }
    all_four!(pair, |t| Ok::<_, warpframe::Error>(t.partition_by(["x", "k"])?.remove(0)));
    Ok(())
}
