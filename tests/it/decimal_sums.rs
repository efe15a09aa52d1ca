//! Sums and averages of decimals that have more than 38 digits, or only on the way.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use warpframe::ErrorKind;
use warpframe::arrow::array::{ArrayRef, Decimal128Array, Int64Array};
use warpframe::arrow::datatypes::i256;

use crate::differential::{Cell, Pair, Rows, run};
use crate::tables::columns;

const MOST: i128 = 10i128.pow(38) - 1;

/// A table `t` of a group `k`, a number `r` and a decimal `x`.
fn table(rows: &[(i64, Option<i128>)], scale: i8) -> Pair {
    let decimals = Decimal128Array::from_iter(rows.iter().map(|(_, x)| *x));
    Pair::of(columns(vec![
        ("k", Arc::new(Int64Array::from_iter_values(rows.iter().map(|(k, _)| *k))) as ArrayRef),
        ("r", Arc::new(Int64Array::from_iter_values(0..rows.len() as i64))),
        ("x", Arc::new(decimals.with_precision_and_scale(38, scale).expect("a legal decimal"))),
    ]))
}

/// What both engines have to answer: rows, or an error of a value.
#[track_caller]
fn expect(pair: &Pair, sql: &str, expected: Option<&[Vec<Option<i128>>]>) {
    for (engine, session) in [("cpu", &pair.cpu), ("device", &pair.device)] {
        match (run(session, sql), expected) {
            (Err(error), None) => {
                assert!(
                    matches!(error.kind(), ErrorKind::Arithmetic { .. }),
                    "{engine}: {error:?}\n  {sql}"
                )
            }
            (Ok(frame), Some(expected)) => {
                let cell = |cell: &Cell| match cell {
                    Cell::Int(value) => Some(*value),
                    Cell::Null => None,
                    other => panic!("{other:?}"),
                };
                let mut found: Vec<Vec<_>> = Rows::of(&frame)
                    .rows
                    .iter()
                    .map(|row| row.iter().map(cell).collect())
                    .collect();
                let mut expected = expected.to_vec();
                found.sort();
                expected.sort();
                assert_eq!(found, expected, "{engine}\n  {sql}");
            }
            (Ok(frame), None) => {
                panic!("{engine}: {:?}, an error was expected\n  {sql}", Rows::of(&frame).rows)
            }
            (Err(error), Some(_)) => panic!("{engine}: {error}\n  {sql}"),
        }
    }
}

#[test]
fn sums_beyond_38_digits_fail() {
    for (one, other) in
        [(MOST, 1), (MOST, MOST), (-MOST, -1), (6 * 10i128.pow(37), 4 * 10i128.pow(37))]
    {
        let five = 5 * one.signum();
        let pair = table(&[(1, Some(one)), (1, Some(other)), (2, Some(five)), (2, None)], 2);
        for sql in [
            "SELECT sum(x) FROM t",
            "SELECT k, sum(x) FROM t GROUP BY k",
            "SELECT k, sum(x) + 1 FROM t GROUP BY k",
            "SELECT sum(DISTINCT x), count(DISTINCT r) FROM t",
            "SELECT r, sum(x) OVER () FROM t",
            "SELECT r, sum(x) OVER (ORDER BY r) FROM t",
            "SELECT r, sum(x) OVER (PARTITION BY k ORDER BY r) FROM t",
            "SELECT r, sum(x) OVER (ORDER BY r ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        ] {
            expect(&pair, sql, None);
        }
        // The others are what they are.
        expect(&pair, "SELECT sum(x) FROM t WHERE k = 2", Some(&[vec![Some(five)]]));
        expect(
            &pair,
            "SELECT sum(x) FILTER (WHERE k = 2), count(x) FROM t",
            Some(&[vec![Some(five), Some(3)]]),
        );
    }
}

#[test]
fn sums_that_come_back_are_exact() {
    let rows = [
        Some(MOST),
        Some(MOST),
        Some(MOST),
        Some(-MOST),
        Some(-MOST),
        Some(7),
        Some(-MOST + 1),
        None,
    ];
    let rows: Vec<_> = rows.into_iter().map(|x| (1, x)).collect();
    let pair = table(&rows, 0);
    let some = |values: &[i128]| values.iter().map(|v| Some(*v)).collect::<Vec<_>>();
    expect(&pair, "SELECT sum(x) FROM t", Some(&[some(&[8])]));
    expect(&pair, "SELECT k, sum(x), count(x) FROM t GROUP BY k", Some(&[some(&[1, 8, 7])]));
    expect(&pair, "SELECT DISTINCT sum(x) OVER () FROM t", Some(&[some(&[8])]));
    // Of a row and the next the sum is in range, though running sums are not.
    let values = [Some(MOST), Some(-5), Some(MOST), Some(-7), Some(MOST), Some(-MOST), None];
    let pair = table(&values.map(|x| (1, x)), 0);
    let sums = [
        Some(MOST - 5),
        Some(MOST - 5),
        Some(MOST - 7),
        Some(MOST - 7),
        Some(0),
        Some(-MOST),
        None,
    ];
    let expected: Vec<_> =
        sums.iter().enumerate().map(|(r, sum)| vec![Some(r as i128), *sum]).collect();
    let frames =
        "SELECT r, sum(x) OVER (ORDER BY r ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) FROM t";
    expect(&pair, frames, Some(&expected));
}

#[test]
fn averages_of_wide_sums_are_exact() {
    let at = |x: i128| (1, Some(x));
    let pair =
        table(&[at(5 * 10i128.pow(33)), at(5 * 10i128.pow(33)), at(5 * 10i128.pow(33)), at(8)], 0);
    // In units of a ten-thousandth, towards zero.
    let sum = 15 * 10i128.pow(33) + 8;
    let average = sum / 4 * 10_000 + sum % 4 * 10_000 / 4;
    for sql in [
        "SELECT avg(x) FROM t",
        "SELECT avg(x) FROM t GROUP BY k",
        "SELECT DISTINCT avg(x) OVER () FROM t",
    ] {
        expect(&pair, sql, Some(&[vec![Some(average)]]));
    }
    // The sum of more than 128 bits, and its average of fewer than 38 digits.
    let many: Vec<_> = (0..40).map(|_| at(-9_999 * 10i128.pow(30) - 1)).collect();
    expect(
        &table(&many, 0),
        "SELECT avg(x) FROM t",
        Some(&[vec![Some(-9_999 * 10i128.pow(34) - 10_000)]]),
    );
    let many: Vec<_> = (0..3).map(|_| at(MOST)).collect();
    for sql in
        ["SELECT avg(x) FROM t", "SELECT avg(x) FROM t GROUP BY k", "SELECT avg(x) OVER () FROM t"]
    {
        expect(&table(&many, 0), sql, None);
    }
}

/// Against sums in 256 bits: ten tables, or `WARPFRAME_DECIMAL_CASES`.
#[test]
fn sums_of_any_decimals_are_exact_or_an_error() {
    let cases = std::env::var("WARPFRAME_DECIMAL_CASES")
        .ok()
        .map_or(10, |text| text.parse().expect("a number"));
    for seed in 0..cases {
        let rng = &mut StdRng::seed_from_u64(seed);
        let (rows, groups) = (rng.random_range(1..200), rng.random_range(1..40));
        // Sums of most groups are in range in some tables, and out of it in others.
        let most = MOST / [1, 2, 5, 40][rng.random_range(0..4)];
        let rows: Vec<(i64, Option<i128>)> = (0..rows)
            .map(|_| {
                (
                    rng.random_range(0..groups),
                    rng.random_bool(0.9).then(|| rng.random_range(-most..=most)),
                )
            })
            .collect();
        let pair = table(&rows, 3);
        let of_group = |group: i64| {
            let values: Vec<i128> =
                rows.iter().filter(|(k, _)| *k == group).filter_map(|(_, x)| *x).collect();
            let sum =
                values.iter().fold(i256::ZERO, |sum, x| sum.wrapping_add(i256::from_i128(*x)));
            let fits = sum.to_i128().filter(|sum| sum.abs() <= MOST);
            (rows.iter().any(|(k, _)| *k == group)).then(|| match values.is_empty() {
                true => Some(vec![Some(group.into()), None]),
                false => fits.map(|sum| vec![Some(group.into()), Some(sum)]),
            })
        };
        let expected: Option<Vec<_>> = (0..groups).filter_map(of_group).collect();
        expect(&pair, "SELECT k, sum(x) FROM t GROUP BY k", expected.as_deref());
        let windows = expected.as_deref().map(|rows| rows.to_vec());
        expect(&pair, "SELECT DISTINCT k, sum(x) OVER (PARTITION BY k) FROM t", windows.as_deref());
    }
}
