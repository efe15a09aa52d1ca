//! Windows of time.

use std::sync::Arc;

use warpframe::arrow::array::{ArrayRef, Date32Array, Int64Array, TimestampSecondArray};
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use super::{gives, printed};
use crate::differential::Pair;
use crate::tables::columns;

/// Days 0, 1, 3, 10 and 31 of 1970 and a null, and as many hours.
fn pair() -> Pair {
    let days = [Some(0), Some(3), Some(1), None, Some(31), Some(10)];
    let hours: Vec<Option<i64>> =
        days.iter().map(|day| day.map(|day| i64::from(day) * 3600)).collect();
    let n: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 4, 8, 16, 32]));
    Pair::of(columns(vec![
        ("day", Arc::new(Date32Array::from(days.to_vec())) as ArrayRef),
        ("ts", Arc::new(TimestampSecondArray::from(hours))),
        ("n", n),
    ]))
}

#[test]
fn groups_are_made_by_windows_of_time() -> Result<()> {
    let pair = pair();
    let none = || [] as [&str; 0];
    let sum = || [col("n").sum().alias("n")];
    gives!(
        pair,
        |t| t.group_by_dynamic("day", none(), DynamicWindows::every("1mo"))?.agg(sum()),
        ["day", "n"],
        ["0|39", "31|16"]
    );
    // Mondays: 1969-12-29, 1970-01-05, 1970-01-26.
    gives!(
        pair,
        |t| t.group_by_dynamic("day", none(), DynamicWindows::every("1w"))?.agg(sum()),
        ["day", "n"],
        ["-3|7", "4|32", "25|16"]
    );
    gives!(
        pair,
        |t| t.group_by_dynamic("ts", none(), DynamicWindows::every("3h"))?.agg(sum()),
        ["ts", "n"],
        ["0|5", "10800|2", "32400|32", "108000|16"]
    );
    let right =
        DynamicWindows { closed: Edge::Right, label: Edge::Right, ..DynamicWindows::every("3h") };
    gives!(
        pair,
        |t| t.group_by_dynamic("ts", none(), &right)?.agg(sum()),
        ["ts", "n"],
        ["0|1", "10800|6", "43200|32", "118800|16"]
    );
    let overlapping = DynamicWindows { period: Some("2d".into()), ..DynamicWindows::every("1d") };
    gives!(
        pair,
        |t| t.group_by_dynamic("day", none(), &overlapping)?.agg(sum())?.head(4),
        ["day", "n"],
        ["-1|1", "0|5", "1|4", "2|2"]
    );
    let shifted = DynamicWindows { offset: Some("1h".into()), ..DynamicWindows::every("3h") };
    gives!(
        pair,
        |t| t.group_by_dynamic("ts", none(), &shifted)?.agg(sum()),
        ["ts", "n"],
        ["-7200|1", "3600|6", "36000|32", "111600|16"]
    );
    gives!(
        pair,
        |t| t
            .with_columns([(col("n") % 3).alias("g")])?
            .group_by_dynamic("day", ["g"], DynamicWindows::every("1mo"))?
            .len(),
        ["g", "day", "len"],
        ["1|0|2", "1|31|1", "2|0|2"]
    );
    let t = pair.cpu.table("t")?;
    let error = t.group_by_dynamic("n", none(), DynamicWindows::every("1h")).expect_err("no times");
    assert!(matches!(error.kind(), ErrorKind::TypeMismatch { .. }), "{error}");
    assert_eq!(error.verb(), Some("group_by_dynamic"));
    assert!(t.group_by_dynamic("ts", none(), DynamicWindows::every("5")).is_err());
    assert!(t.group_by_dynamic("ts", none(), DynamicWindows::every("soon")).is_err());
    Ok(())
}

#[test]
fn windows_of_time_roll() -> Result<()> {
    let pair = pair();
    for session in [&pair.cpu, &pair.device] {
        let t = session.table("t")?.drop_nulls(["day"])?;
        let sums = t.select([col("n").sum().rolling_by("day", "2d")?.alias("n")])?;
        assert_eq!(printed(&sums.collect()?), ["1", "6", "5", "16", "32"]);
        let sums = t.select([col("n").sum().rolling_by("ts", "2h")?.alias("n")])?;
        assert_eq!(printed(&sums.collect()?), ["1", "6", "5", "16", "32"]);
        let counts = t.select([col("n").count().rolling_by("n", "3")?.alias("n")])?;
        assert_eq!(printed(&counts.collect()?), ["1", "2", "3", "1", "1"]);
    }
    assert!(col("n").sum().rolling_by("day", "often").is_err());
    Ok(())
}
