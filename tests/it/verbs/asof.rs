//! `join_asof`.

use std::sync::Arc;

use warpframe::arrow::array::*;
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use super::{all_four, printed};
use crate::differential::Pair;
use crate::tables::columns;

/// Left rows out of order, with a null; right rows with two of one key.
fn asof() -> Pair {
    let ints = |values: &[Option<i64>]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    let texts = |values: &[&str]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let left = columns(vec![
        ("at", ints(&[Some(5), Some(10), None, Some(1), Some(7)])),
        ("g", texts(&["a", "b", "a", "a", "b"])),
    ]);
    let right = columns(vec![
        ("time", ints(&[Some(2), Some(6), Some(6), None, Some(12)])),
        ("g", texts(&["a", "a", "b", "a", "b"])),
        ("p", ints(&[Some(20), Some(60), Some(61), Some(0), Some(120)])),
    ]);
    Pair::of(left).and("u", right)
}

fn nearest(pair: &Pair, options: &AsofOptions) -> Result<Vec<String>> {
    let mut results = vec![];
    for session in [&pair.cpu, &pair.device] {
        let (t, u) = (session.table("t")?, session.table("u")?);
        results.push(printed(&t.join_asof(&u, "at", "time", options)?.collect()?));
        results.push(printed(&t.collect()?.join_asof(&u.collect()?, "at", "time", options)?));
    }
    assert!(results.iter().all(|rows| *rows == results[0]), "{results:?}");
    Ok(results.remove(0))
}

#[test]
fn rows_are_joined_with_the_nearest() -> Result<()> {
    let pair = asof();
    let with = |strategy, by: &[&str], tolerance: Option<&str>| AsofOptions {
        strategy,
        by: by.iter().map(|name| name.to_string()).collect(),
        tolerance: tolerance.map(String::from),
        ..AsofOptions::default()
    };
    use AsofStrategy::*;
    // The columns are at, g and g_right, p; of two rows of one key going back takes the last, and
    // forward the first.
    assert_eq!(
        nearest(&pair, &with(Backward, &[], None))?,
        ["5|a|a|20", "10|b|b|61", "-|a|-|-", "1|a|-|-", "7|b|b|61"]
    );
    assert_eq!(
        nearest(&pair, &with(Forward, &[], None))?,
        ["5|a|a|60", "10|b|b|120", "-|a|-|-", "1|a|a|20", "7|b|b|120"]
    );
    // Within groups the columns are at, g and p.
    assert_eq!(
        nearest(&pair, &with(Backward, &["g"], None))?,
        ["5|a|20", "10|b|61", "-|a|-", "1|a|-", "7|b|61"]
    );
    assert_eq!(
        nearest(&pair, &with(Forward, &["g"], None))?,
        ["5|a|60", "10|b|120", "-|a|-", "1|a|20", "7|b|120"]
    );
    assert_eq!(
        nearest(&pair, &with(Nearest, &["g"], None))?,
        ["5|a|60", "10|b|120", "-|a|-", "1|a|20", "7|b|61"]
    );
    assert_eq!(
        nearest(&pair, &with(Backward, &["g"], Some("2")))?,
        ["5|a|-", "10|b|-", "-|a|-", "1|a|-", "7|b|61"]
    );
    let (t, u) = (pair.cpu.table("t")?, pair.cpu.table("u")?);
    let error =
        t.join_asof(&u, "g", "time", &AsofOptions::default()).expect_err("texts have no distance");
    assert!(
        matches!(error.kind(), ErrorKind::TypeMismatch { .. }) && error.verb() == Some("join_asof"),
        "{error}"
    );
    assert!(t.join_asof(&u, "at", "nobody", &AsofOptions::default()).is_err());
    assert!(t.join_asof(&u, "at", "time", &with(Backward, &[], Some("x"))).is_err());
    Ok(())
}

#[test]
fn times_are_joined_within_a_tolerance() -> Result<()> {
    let at = |seconds: &[i64]| {
        Arc::new(TimestampMicrosecondArray::from_iter_values(seconds.iter().map(|s| s * 1_000_000)))
            as ArrayRef
    };
    let left = columns(vec![("at", at(&[100, 200]))]);
    let right = columns(vec![
        ("time", at(&[30, 195])),
        ("p", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
    ]);
    let pair = Pair::of(left).and("u", right);
    let options = AsofOptions { tolerance: Some("1m".into()), ..AsofOptions::default() };
    assert_eq!(nearest(&pair, &options)?, ["100000000|-", "200000000|2"]);
    all_four!(pair, |t| t.join_asof(&t, "at", "at", &options));
    Ok(())
}

/// A row of random keys: its key, which may be null, and its group.
type KeyedRow = (Option<i64>, i64);

fn random_rows(rows: u64, seed: u64) -> Vec<KeyedRow> {
    let mut state = seed;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % limit) as i64
    };
    (0..rows).map(|_| ((below(9) > 0).then(|| below(40)), below(3))).collect()
}

/// The row of the right that belongs to a row, by looking at each.
fn partner(row: KeyedRow, right: &[KeyedRow], options: &AsofOptions) -> Option<usize> {
    let key = row.0?;
    let candidates: Vec<(usize, i64)> = (right.iter().enumerate())
        .filter(|(_, other)| options.by.is_empty() || other.1 == row.1)
        .filter_map(|(at, other)| Some((at, other.0?)))
        .collect();
    let before = |found: &&(usize, i64)| found.1 < key || options.exact && found.1 == key;
    let after = |found: &&(usize, i64)| found.1 > key || options.exact && found.1 == key;
    // Of equal keys the last before, and the first after.
    let back = candidates.iter().filter(before).max_by_key(|found| found.1);
    let on = candidates.iter().filter(after).min_by_key(|found| found.1);
    let found = match (options.strategy, back, on) {
        (AsofStrategy::Backward, back, _) => back,
        (AsofStrategy::Forward, _, on) => on,
        (AsofStrategy::Nearest, Some(back), Some(on)) => {
            let (behind, ahead) = (key - back.1, on.1 - key);
            Some(if behind == 0 || behind < ahead { back } else { on })
        }
        (AsofStrategy::Nearest, back, on) => back.or(on),
    }?;
    let most = options.tolerance.as_ref().map(|most| most.parse::<i64>().expect("a number"));
    most.is_none_or(|most| (found.1 - key).abs() <= most).then_some(found.0)
}

/// Many equal keys on both sides, keys that are null, and each way to look for a partner.
#[test]
fn partners_are_those_that_are_found_by_looking_at_each_row() -> Result<()> {
    let (left, right) = (random_rows(400, 1), random_rows(150, 2));
    let batches = |rows: &[KeyedRow], key: &str, number: &str| {
        columns(vec![
            (key, Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.0))) as ArrayRef),
            ("g", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1)))),
            (number, Arc::new(Int64Array::from_iter_values(0..rows.len() as i64))),
        ])
    };
    let pair = Pair::of(batches(&left, "at", "l")).and("u", batches(&right, "time", "r"));
    for strategy in [AsofStrategy::Backward, AsofStrategy::Forward, AsofStrategy::Nearest] {
        for (exact, by, tolerance) in [
            (true, true, None),
            (false, true, None),
            (true, false, Some("1")),
            (false, false, Some("2")),
        ] {
            let options = AsofOptions {
                strategy,
                exact,
                by: by.then(|| "g".to_string()).into_iter().collect(),
                tolerance: tolerance.map(String::from),
                ..AsofOptions::default()
            };
            let expected: Vec<Option<i64>> = (left.iter())
                .map(|row| partner(*row, &right, &options).map(|at| at as i64))
                .collect();
            for session in [&pair.cpu, &pair.device] {
                let (t, u) = (session.table("t")?, session.table("u")?);
                let found = t.join_asof(&u, "at", "time", &options)?.collect()?;
                let numbers = found.column("l")?.to_vec::<i64>()?;
                assert!(numbers.into_iter().eq(0..400), "{options:?}: rows moved");
                assert_eq!(found.column("r")?.to_vec::<Option<i64>>()?, expected, "{options:?}");
            }
        }
    }
    Ok(())
}
