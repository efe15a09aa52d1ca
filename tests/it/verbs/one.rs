//! One column, key or nothing where a list may stand, and Polars' names of what is called otherwise
//! here.

use warpframe::prelude::*;
use warpframe::{ErrorKind, Expr, Result};

use super::small;

/// A verb with one column, and with a list of it.
type Both = fn(&DataFrame) -> Result<[DataFrame; 2]>;

macro_rules! both {
    ($(|$frame:ident| $one:expr, $list:expr;)*) => {
        [$((stringify!($one), (|$frame: &DataFrame| Ok([$one?, $list?])) as Both)),*]
    };
}

#[test]
fn one_column_stands_for_a_list_of_it() -> Result<()> {
    let verbs = both![
        |t| t.select("x"), t.select(["x"]);
        |t| t.select(String::from("x")), t.select(vec![String::from("x")]);
        |t| t.select(col("x")), t.select([col("x")].iter());
        |t| t.select(["k", "x"].iter().rev()), t.select(["x", "k"]);
        |t| t.with_columns((col("x") + 1).alias("y")), t.with_columns([(col("x") + 1).alias("y")]);
        |t| t.drop("x"), t.drop(["x"]);
        |t| t.sort("x"), t.sort(["x"]);
        |t| t.sort(col("x")), t.sort([col("x")]);
        |t| t.sort(desc("x")), t.sort([desc("x")]);
        |t| t.sort(()), t.sort([] as [&str; 0]);
        |t| t.sort(()), t.head(6);
        |t| t.top_k(2, ()), t.head(2);
        |t| t.top_k(1, desc("f")), t.top_k(1, [desc("f")]);
        |t| t.unique("k", UniqueKeep::First), t.unique(["k"], UniqueKeep::First);
        |t| t.is_unique("k"), t.is_unique(["k"]);
        |t| t.cast("x", DataType::Float64), t.cast(["x"], DataType::Float64);
        |t| t.reorder("f"), t.reorder(["f"]);
        |t| t.fill_null("x", 0), t.fill_null(["x"], 0);
        |t| t.drop_nulls("k"), t.drop_nulls(["k"]);
        |t| t.value_counts("k"), t.value_counts(["k"]);
        |t| t.cum_sum("x"), t.cum_sum(["x"]);
        |t| t.group_by("k").agg(col("x").sum())?.sort("k"),
            t.group_by(["k"]).agg([col("x").sum()])?.sort(["k"]);
        |t| t.group_by(()).agg(col("x").sum()), t.group_by([] as [Expr; 0]).agg([col("x").sum()]);
        |t| t.select(col("x").sum().over("k")), t.select([col("x").sum().over(["k"])]);
        |t| t.select(col("x").shift(1).over_sorted((), "x")),
            t.select([col("x").shift(1).over_sorted([] as [Expr; 0], ["x"])]);
        |t| t.select(list("x"))?.explode("x"), t.select([list(["x"])])?.explode(["x"]);
        |t| t.select(cols("x").sum()), t.select([cols(["x"]).sum()]);
        |t| t.select(all().exclude("k")), t.select(all().exclude(["k"]));
        |t| t.select(concat_str("k", "-")), t.select([concat_str(["k"], "-")]);
        |t| t.join_on(t, JoinType::Inner, "x")?.sort(["x", "f"]),
            t.join_on(t, JoinType::Inner, ["x"])?.sort(["x", "f"]);
        |t| t.join(t, JoinType::LeftSemi, "x", col("x"))?.sort(["x", "f"]),
            t.join(t, JoinType::LeftSemi, ["x"], ["x"])?.sort(["x", "f"]);
        |t| t.update(t, "f"), t.update(t, ["f"]);
        |t| t.is_in(t, "x"), t.is_in(t, ["x"]);
        |t| t.unpivot("x", "k"), t.unpivot(["x"], ["k"]);
    ];
    let pair = small();
    for session in [&pair.cpu, &pair.device] {
        let frame = session.table("t")?.collect()?;
        for (verb, run) in verbs {
            let [one, list] = run(&frame)?;
            assert_eq!(one, list, "{verb}");
        }
    }
    Ok(())
}

#[test]
fn joins_name_columns_that_are_not_there() -> Result<()> {
    let frame = small().cpu.table("t")?;
    for error in [
        frame.join_on(&frame, JoinType::Inner, "nobody").err(),
        frame.join(&frame, JoinType::Left, "x", "nobody").err(),
    ] {
        let error = error.expect("there is no such column");
        assert_eq!(error.verb(), Some("join"), "{error}");
        assert!(matches!(error.kind(), ErrorKind::ColumnNotFound { .. }), "{error}");
    }
    let error = frame.join_on(&frame, JoinType::Inner, col("x") + 1).expect_err("no name");
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    Ok(())
}

#[test]
fn names_of_polars_are_those_of_ours() -> Result<()> {
    let pair = small();
    for session in [&pair.cpu, &pair.device] {
        let (lazy, frame) = (session.table("t")?, session.table("t")?.collect()?);
        assert_eq!((frame.height(), frame.width(), lazy.width()), (6, 3, 3));
        assert_eq!(frame.shape(), (frame.height(), frame.width()));
        assert_eq!(frame.get_column_names(), frame.column_names());
        assert_eq!(lazy.dtypes()[1..], [DataType::Int64, DataType::Float64]);
        let doubled = || (col("x") * 2).alias("y");
        assert_eq!(frame.with_column(doubled())?, frame.with_columns([doubled()])?);
        let twice = frame.vstack(&frame)?;
        assert_eq!(twice, DataFrame::concat([&frame, &frame], Concat::Vertical)?);
        assert_eq!(twice, concat([&frame, &frame])?);
        assert_eq!(twice, concat([&lazy, &lazy])?.collect()?);
        assert!(frame.vstack(&frame.drop("x")?).is_err() && concat([] as [DataFrame; 0]).is_err());
        assert_ne!(frame, twice);
        assert_ne!(frame, frame.cast("x", DataType::Float64)?);
        let between = |condition: Expr| frame.filter(condition);
        assert_eq!(between(col("x").is_between(1, 3))?, between(col("x").between(1, 3))?);
        assert_eq!(
            frame.select(col("x").rank())?,
            frame.select(col("x").rank_with(RankMethod::Average, false))?
        );
        assert_eq!(frame.rank("x")?, frame.rank_with("x", RankMethod::Average, false)?);
    }
    Ok(())
}

#[test]
fn columns_have_aggregates() -> Result<()> {
    let pair = small();
    for session in [&pair.cpu, &pair.device] {
        let frame = session.table("t")?.collect()?;
        let x = frame.column("x")?;
        assert_eq!((x.sum::<i64>()?, x.mean::<f64>()?, x.median::<f64>()?), (14, 2.8, 3.0));
        assert_eq!((x.min::<i64>()?, x.max::<Option<i64>>()?), (1, Some(5)));
        let k = frame.column("k")?;
        assert_eq!(k.max::<String>()?, "b");
        assert!(k.sum::<f64>().is_err() && x.sum::<String>().is_err());
        let none = frame.head(0)?.column("x")?;
        assert_eq!(none.sum::<Option<i64>>()?, None);
        assert!(none.sum::<i64>().is_err());
    }
    Ok(())
}

#[test]
fn frames_are_json_as_their_files_are() -> Result<()> {
    let pair = small();
    for session in [&pair.cpu, &pair.device] {
        let frame = session.table("t")?.collect()?;
        let json = frame.select(["k", "x"])?.head(2)?.to_json()?;
        assert_eq!(json, "[\n{\"k\":\"a\",\"x\":3},\n{\"k\":\"b\",\"x\":1}\n]\n");
        assert_eq!(frame.head(0)?.to_json()?, "[\n\n]\n");
    }
    Ok(())
}

#[test]
fn times_are_cut_at_steps_of_one_unit_and_of_several() -> Result<()> {
    let session = small().cpu;
    let frame =
        session.sql("SELECT TIMESTAMP '2024-05-17 10:47:31' AS at, DATE '2024-05-17' AS day")?;
    let is = |expr: Expr, wanted: Expr| -> Result<bool> {
        Ok(frame.filter(expr.eq(wanted))?.collect()?.height() == 1)
    };
    let at = |step: &str| col("at").dt().truncate(step);
    for (step, wanted) in [
        ("1y", datetime(2024, 1, 1, 0, 0, 0)?),
        ("1q", datetime(2024, 4, 1, 0, 0, 0)?),
        ("1mo", datetime(2024, 5, 1, 0, 0, 0)?),
        ("month", datetime(2024, 5, 1, 0, 0, 0)?),
        ("1w", datetime(2024, 5, 13, 0, 0, 0)?),
        ("1d", datetime(2024, 5, 17, 0, 0, 0)?),
        ("1h", datetime(2024, 5, 17, 10, 0, 0)?),
        ("15m", datetime(2024, 5, 17, 10, 45, 0)?),
        ("1m", datetime(2024, 5, 17, 10, 47, 0)?),
        ("1s", datetime(2024, 5, 17, 10, 47, 31)?),
    ] {
        assert!(is(at(step), wanted)?, "{step}");
    }
    assert!(is(col("day").dt().truncate("1mo"), date(2024, 5, 1)?)?);
    let wrong = frame.select(at("fortnight")).and_then(|frame| frame.collect());
    assert!(wrong.is_err());
    Ok(())
}
