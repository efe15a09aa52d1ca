//! What results are called, where nobody says so.

use warpframe::prelude::*;
use warpframe::{ErrorKind, Expr, Result};

use super::{all_four, gives, small};

/// Expressions over [`small`], and what their results are called.
fn named() -> Result<Vec<(Expr, &'static str)>> {
    let x = || col("x");
    let k = || col("k").str();
    Ok(vec![
        (x().sum(), "x"),
        (x().null_count(), "x"),
        (x().n_unique(), "x"),
        (x().median(), "x"),
        (x().quantile(0.5), "x"),
        (x().implode(), "x"),
        (sum("x").filter(col("f").gt(0)), "x"),
        (corr("x", "f"), "x"),
        (x().abs(), "x"),
        (-x(), "x"),
        (x().gt(1), "x"),
        (!x().gt(1), "x"),
        (x().between(1, 2), "x"),
        (x().is_in([1, 2]), "x"),
        (x().cast(DataType::Float64), "x"),
        (col("f") * x(), "f"),
        (x().log(col("f")), "x"),
        (x().clip(col("f"), 4), "x"),
        (x().clip(0, 4).sum(), "x"),
        (x().fill_null(0), "x"),
        (x().fill_null_with(Fill::Mean), "x"),
        (col("f").fill_nan(0.0), "f"),
        (x().interpolate(), "x"),
        (x().shift(1).over(["k"]), "x"),
        (x().cum_prod(), "x"),
        (x().rank_with(RankMethod::Average, false), "x"),
        (x().is_duplicated(), "x"),
        (x().is_last_distinct(), "x"),
        (x().rolling_mean(2), "x"),
        (x().cut(&[2.0], None)?, "x"),
        (k().to_uppercase(), "k"),
        (k().zfill(3), "k"),
        (k().find("a"), "k"),
        (k().strip_prefix("a"), "k"),
        (k().extract("(.)", 1), "k"),
        (coalesce(vec![col("f"), x()]), "f"),
        (list(["f", "x"]), "f"),
        (structs([("a", x()), ("b", x())]), "a"),
        (structs([("a", x()), ("b", x())]).structs().field("b"), "b"),
        (when(col("f").gt(0)).then(x()).otherwise(0), "x"),
        (when(col("f").gt(0)).then(1).otherwise(x()), "literal"),
        (1 - x(), "literal"),
        (lit("a"), "literal"),
        (count_rows(), "len"),
        (len().over(["k"]), "len"),
        (row_number(), "row_number"),
        (over(rank(), [col("k")], [asc("x")]), "rank"),
        (ntile(lit(2)), "ntile"),
        (x().alias("y") + 1, "y"),
        (x().sum().name().prefix("sum_"), "sum_x"),
        (x().alias("y").name().suffix("_z"), "y_z"),
        (x().alias("y").name().keep(), "x"),
        ((1 - cols(["x"])).name().suffix("_z"), "x_z"),
        (when(cols(["x"]).gt(1)).then(1).end(), "x"),
    ])
}

#[test]
fn results_are_called_after_the_column_that_they_begin_with() -> Result<()> {
    let pair = small();
    for session in [&pair.cpu, &pair.device] {
        let frame = session.table("t")?;
        for (expr, name) in named()? {
            let text = expr.to_string();
            assert_eq!(frame.select([expr])?.column_names(), [name], "{text}");
        }
        assert_eq!(frame.select(all().count())?.column_names(), ["k", "x", "f"]);
        assert_eq!(
            session.sql("SELECT sum(x), x + 1 FROM t GROUP BY x")?.column_names(),
            ["sum(x)", "x + 1"]
        );
    }
    gives!(
        pair,
        |t| t.group_by(["k"]).maintain_order().agg([col("x").sum(), col("f").count() * 10, len()]),
        ["k", "x", "f", "len"],
        ["a|8|30|3", "b|2|10|2", "-|4|10|1"]
    );
    gives!(pair, |t| t.with_columns([col("x") * 2])?.select(["x"])?.head(2), ["x"], ["6", "2"]);
    gives!(
        pair,
        |t| t
            .group_by([col("x").fill_null(0) % 2])
            .maintain_order()
            .agg([col("f").max()])?
            .select([col("x")]),
        ["x"],
        ["1", "0"]
    );
    Ok(())
}

#[test]
fn two_results_of_one_name_are_an_error_that_says_how_to_name_them() -> Result<()> {
    let pair = small();
    for session in [&pair.cpu, &pair.device] {
        let (lazy, eager) = (session.table("t")?, session.table("t")?.collect()?);
        let twice = || [col("x").min(), col("x").max()];
        let errors = [
            ("select", lazy.select(twice()).err(), eager.select(twice()).err()),
            ("with_columns", lazy.with_columns(twice()).err(), eager.with_columns(twice()).err()),
            (
                "agg",
                lazy.group_by(["k"]).agg(twice()).err(),
                eager.group_by(["k"]).agg(twice()).err(),
            ),
            (
                "agg",
                lazy.group_by(["x"]).agg(col("x").sum()).err(),
                eager.group_by(["x"]).agg(col("x").sum()).err(),
            ),
        ];
        for (verb, lazy, eager) in errors {
            for error in [lazy, eager] {
                let error = error.unwrap_or_else(|| panic!("{verb} took two results of one name"));
                assert_eq!(error.verb(), Some(verb), "{error}");
                assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");
                let text = error.to_string();
                assert!(
                    text.contains("two results named \"x\"") && text.contains(".alias("),
                    "{text}"
                );
            }
        }
    }
    all_four!(pair, |t| t.select([col("x").min(), col("x").max().alias("most")]));
    Ok(())
}
