//! Dates and times as text, by patterns; times in bins.

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::*;

use crate::differential::{Pair, run};
use crate::tables::columns;

/// Moments of every type: at the turn of years, before 1970, in years of five digits and before the
/// first.
fn pair(rows: usize) -> Pair {
    let days = [
        0, -1, 19_723, 11_016, 18_321, 2_932_897, -719_163, -719_529, -1_000_000, 20_088, 20_089,
        4_000_000,
    ];
    let row = |row: usize| days[row % days.len()] + (row / days.len()) as i32;
    let seconds = |row: usize| (row * 7_919 % 86_400) as i64;
    let valid = |row: usize| !row.is_multiple_of(11);
    // Nanoseconds of 64 bits end in 2262.
    let near = |at: usize| i64::from(row(at).rem_euclid(50_000));
    let nanos = |at: usize| [0, 1, 999_999_999, 120_000_000, 5_000][at % 5];
    let moment = |at: usize| i64::from(row(at)) * 86_400 + seconds(at);
    let of = |value: &dyn Fn(usize) -> i64| -> Vec<Option<i64>> {
        (0..rows).map(|at| valid(at).then(|| value(at))).collect()
    };
    Pair::of(columns(vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..rows as i64)) as ArrayRef),
        ("d", Arc::new(Date32Array::from_iter((0..rows).map(|at| valid(at).then(|| row(at)))))),
        ("s", Arc::new(TimestampSecondArray::from(of(&moment)))),
        (
            "m",
            Arc::new(TimestampMillisecondArray::from(of(&|at| {
                moment(at) * 1000 + nanos(at) / 1_000_000
            }))),
        ),
        (
            "u",
            Arc::new(TimestampMicrosecondArray::from(of(&|at| {
                moment(at) * 1_000_000 + nanos(at) / 1_000
            }))),
        ),
        (
            "n",
            Arc::new(TimestampNanosecondArray::from(of(&|at| {
                (near(at) * 86_400 + seconds(at)) * 1_000_000_000 + nanos(at) - 86_400
            }))),
        ),
        (
            "t",
            Arc::new(Time64NanosecondArray::from(of(&|at| {
                seconds(at) * 1_000_000_000 + nanos(at)
            }))),
        ),
        (
            "h",
            Arc::new(Time32SecondArray::from_iter(
                (0..rows).map(|at| valid(at).then(|| seconds(at) as i32)),
            )),
        ),
    ]))
}

const OF_DAYS: [&str; 8] = [
    "%Y-%m-%d",
    "%d.%m.%y",
    "%A, %-d. %B %Y",
    "%a %e %b %h %j %-j %_j",
    "%G-W%V-%u %g %w %U %W",
    "%C|%_Y|%-Y|%-m|%_m|%D|%x|%F",
    "é%%%n%t%q",
    "",
];
const OF_TIMES: [&str; 6] = [
    "%H:%M:%S",
    "%I:%M:%S %p %P",
    "%T%.f",
    "%R %f %.3f %.6f %.9f %3f %6f %9f",
    "%k|%l|%-H|%-I|%_M",
    "%r %X",
];

#[test]
fn moments_are_written_by_patterns() {
    for rows in [900, 1] {
        let pair = pair(rows);
        for pattern in OF_DAYS {
            pair.check(&format!(
                "SELECT id, to_char(d, '{pattern}') AS a, to_char(s, '{pattern}') AS b FROM t"
            ));
        }
        for pattern in OF_TIMES {
            pair.check(&format!(
                "SELECT id, to_char(t, '{pattern}') AS a, to_char(h, '{pattern}') AS b FROM t"
            ));
            pair.check(&format!(
                "SELECT id, to_char(d, '{pattern}') AS d, to_char(m, '{pattern}') AS m, to_char(u, '{pattern}') AS u,
                to_char(n, '{pattern}') AS n FROM t"
            ));
        }
        pair.check(
            "SELECT id, to_char(n, '%c %s') AS a, date_format(u, '%Y%m%dT%H%M%S%.3f') AS b FROM t",
        );
        pair.check("SELECT to_char(d, '%Y-%m') AS a, count(*) FROM t GROUP BY 1 ORDER BY a");
        pair.check("SELECT id FROM t WHERE to_char(s, '%a') = 'Mon' OR to_char(t, '%H') < '03'");
    }
}

#[test]
fn times_are_put_into_bins() {
    for rows in [900, 0] {
        let pair = pair(rows);
        pair.check("SELECT id, date_bin(INTERVAL '7 minutes', t) AS a, date_bin(INTERVAL '90 seconds', h) AS b FROM t");
        // Bins before the first are times before midnight, which nobody can print.
        pair.check(
            "SELECT id, date_bin(INTERVAL '5 hours', t, TIME '13:01:02') AS a FROM t WHERE t >= TIME '13:01:02'",
        );
        pair.check(
            "SELECT date_bin(INTERVAL '1 hour', t) AS a, count(*) FROM t GROUP BY 1 ORDER BY a",
        );
    }
}

#[test]
fn patterns_of_zones_are_left_to_the_cpu() {
    let pair = pair(5);
    for sql in [
        "SELECT to_char(s, '%z') FROM t",
        "SELECT to_char(t, '%Y') FROM t",
        "SELECT to_char(d, '%') FROM t",
    ] {
        let refused = run(&pair.device, sql).expect_err(sql);
        assert!(matches!(refused.kind(), ErrorKind::Unsupported { .. }), "{refused}");
    }
}
