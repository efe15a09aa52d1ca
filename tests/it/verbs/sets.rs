//! Frames behind and beside one another, and as sets.

use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use super::{agrees, all_four, gives, small};
use crate::differential::Pair;

#[test]
fn rows_as_sets() {
    let pair = small();
    agrees!(pair, false, |t| t.select(["k"])?.intersect(&t.filter(col("x").eq(1))?.select(["k"])?));
    gives!(
        pair,
        |t| t
            .select(["x"])?
            .intersect(&t.select(["x"])?.filter(col("x").is_null().or(col("x").eq(1)))?)?
            .sort(["x"]),
        ["x"],
        ["1", "-"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.except(&t.select(["x"])?.filter(col("x").gt(3))?)?.sort(["x"]),
        ["x"],
        ["1", "3", "-"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.head(2)?.union(&t.select(["x"])?.tail(1)?),
        ["x"],
        ["3", "1", "5"]
    );
    gives!(
        pair,
        |t| t.select(["x"])?.is_in(&t.filter(col("k").eq("b").or(col("x").is_null()))?, ["x"]),
        ["x", "is_in"],
        ["3|0", "1|1", "-|1", "4|0", "1|1", "5|0"]
    );
}

#[test]
fn frames_are_put_together() -> Result<()> {
    let pair = small();
    gives!(
        pair,
        |t| AnyFrame::concat(
            [&t.select(["x"])?.head(1)?, &t.select(["x"])?.tail(2)?],
            Concat::Vertical
        ),
        ["x"],
        ["3", "1", "5"]
    );
    gives!(
        pair,
        |t| AnyFrame::concat(
            [&t.select(["x"])?.head(1)?, &t.select(["k", "x"])?.tail(1)?],
            Concat::Diagonal
        ),
        ["x", "k"],
        ["3|-", "5|a"]
    );
    // A column that a frame lacks is null, whatever its type.
    let all = Pair::of(crate::tables::Shape::random(40, 5).batches());
    agrees!(all, true, |t| AnyFrame::concat([&t, &t.select(["id"])?], Concat::Diagonal));
    for session in [&all.cpu, &all.device] {
        let frame = session.table("t")?;
        let both = AnyFrame::concat([&frame, &frame.select(["id"])?], Concat::Diagonal)?;
        assert_eq!(both.schema(), frame.schema());
        let others = both.tail(40)?.drop(["id"])?.null_count()?.collect()?;
        assert!(others.row(0)?.values()?.iter().all(|nulls| nulls.to_string() == "40"));
    }
    gives!(
        pair,
        |t| AnyFrame::concat(
            [&t.select(["x"])?.head(3)?, &t.select(["k"])?.head(2)?],
            Concat::Horizontal
        ),
        ["x", "k"],
        ["3|a", "1|b", "-|-"]
    );
    gives!(
        pair,
        |t| AnyFrame::concat(
            [&t.select(["x"])?.head(1)?, &t.select(["k", "f"])?.head(2)?],
            Concat::Horizontal
        ),
        ["x", "k", "f"],
        ["3|a|0.5", "-|b|-"]
    );
    let t = pair.cpu.table("t")?;
    let error =
        LazyFrame::concat([&t, &t.drop(["k"])?], Concat::Vertical).expect_err("other columns");
    assert!(
        matches!(error.kind(), ErrorKind::TypeMismatch { .. }) && error.verb() == Some("concat"),
        "{error}"
    );
    assert!(LazyFrame::concat([&t, &t], Concat::Horizontal).is_err());
    assert!(LazyFrame::concat([] as [&LazyFrame; 0], Concat::Vertical).is_err());
    all_four!(pair, |t| AnyFrame::concat([&t], Concat::Vertical));
    Ok(())
}
