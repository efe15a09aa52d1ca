//! Aggregates over frames that need the rows of a frame more than once, or in an order.

use crate::differential::{Pair, run};
use crate::tables::{Shape, Values};

/// Frames that the CPU engine can shrink, for aggregates from which it can take rows away.
const SLIDING: [&str; 6] = [
    "ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING",
    "PARTITION BY k ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "PARTITION BY k2 ORDER BY id DESC ROWS BETWEEN 9 PRECEDING AND 4 PRECEDING",
    "PARTITION BY b ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 12 FOLLOWING",
    "ORDER BY k2 RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "PARTITION BY b ORDER BY k, k2 GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
];

/// Frames that only grow.
const GROWING: [&str; 4] = [
    "PARTITION BY k ORDER BY id",
    "PARTITION BY k2, b ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 3 PRECEDING",
    "PARTITION BY s ORDER BY k RANGE BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING",
    "PARTITION BY b ORDER BY k2",
];

/// Empty and degenerate ones, one of several tiles, and so many rows that pairs come in slices.
fn shapes() -> Vec<Shape> {
    let mut shapes: Vec<_> = [0, 1, 33, 1100].iter().map(|rows| Shape::random(*rows, 80 + *rows as u64)).collect();
    for values in [Values::AllNull, Values::Same, Values::Distinct] {
        shapes.push(Shape { values, ..Shape::random(300, 81) });
    }
    shapes
}

fn check(calls: &[&str], frames: &[&str]) {
    check_within(calls, "#", frames);
}

/// Within an expression.
fn check_within(calls: &[&str], within: &str, frames: &[&str]) {
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for frame in frames {
            let list: Vec<_> = (calls.iter().enumerate())
                .map(|(at, call)| format!("{} AS a{at}", within.replace('#', &format!("{call} OVER w"))))
                .collect();
            pair.check(&format!("SELECT id, {} FROM t WINDOW w AS ({frame})", list.join(", ")));
        }
    }
}

#[test]
fn distinct_values_of_frames() {
    let calls = ["count(DISTINCT s)", "sum(DISTINCT w)", "count(DISTINCT x)"];
    check(&calls, &SLIDING);
    check(&calls, &GROWING);
    check(&["avg(DISTINCT m)", "approx_distinct(b)", "count(DISTINCT sv)"], &GROWING);
}

#[test]
fn middles_of_frames() {
    let calls = ["median(x)", "median(k)", "median(m)", "percentile_cont(x, 0.3)"];
    check(&calls, &SLIDING);
    check(&calls, &GROWING);
}

#[test]
fn products_of_frames() {
    let calls = ["corr(x, k)", "covar_samp(x, w)", "covar_pop(m, x)"];
    check(&calls, &GROWING);
    let calls = ["regr_slope(x, k2)", "regr_intercept(x, k2)", "regr_r2(x, k)", "regr_avgx(x, w)", "regr_sxy(x, w)"];
    check(&calls, &GROWING);
    // The CPU engine takes rows away again, and their rounding errors stay.
    check_joined(&["corr(#x, #k)", "covar_samp(#x, #w) FILTER (WHERE #b)", "covar_pop(#m, #x)"]);
    check_joined(&["regr_slope(#x, #k2)", "regr_intercept(#x, #k2)", "regr_r2(#x, #k)", "regr_avgy(#x, #w)"]);
    check_joined(&["regr_sxx(#x, #k2)", "regr_syy(#x, #k2)", "regr_sxy(#x, #k)", "regr_count(#x, #w)"]);
}

#[test]
fn bits_of_frames() {
    // The CPU engine takes rows away until nothing but a 0 is left.
    check_within(&["bit_xor(i32)"], "coalesce(#, 0)", &SLIDING);
    check(&["bit_and(i32)", "bit_or(u64)", "bit_xor(i8)", "bit_and(w)"], &GROWING);
    check_joined(&["bit_and(#i64)", "bit_or(#i8)", "bit_and(#u16) FILTER (WHERE #b)", "bit_xor(#u64)"]);
}

#[test]
fn lists_of_frames() {
    let calls = ["array_agg(x)", "array_agg(s)", "array_agg(k) FILTER (WHERE b)"];
    check(&calls, &SLIDING[..4]);
    check(&calls, &GROWING[..2]);
    check(&["string_agg(s, ', ')", "string_agg(sv, '') FILTER (WHERE k > 3)"], &GROWING[..2]);
    check_joined(&["string_agg(#s, ', ' @)", "string_agg(#sl, '' @) FILTER (WHERE #b)"]);
}

/// What the CPU engine does not take rows away from: against a join of each row with those of its frame. `#` stands before
/// columns, `@` where the order of rows is to be stated.
fn check_joined(calls: &[&str]) {
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for (partition, low, high) in [("k", -3, 2), ("k2", 1, 4), ("b", -30, -2)] {
            let bound = |by: i32| format!("{} {}", by.abs(), if by < 0 { "PRECEDING" } else { "FOLLOWING" });
            let list = |call: &dyn Fn(&str) -> String| {
                (calls.iter().enumerate())
                    .map(|(at, of)| format!("{} AS a{at}", call(of)))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let over = list(&|call| format!("{} OVER w", call.replace('#', "").replace('@', "")));
            let found = format!(
                "SELECT id, {over} FROM t WINDOW w AS (PARTITION BY {partition} ORDER BY id ROWS BETWEEN {} AND {})",
                bound(low),
                bound(high)
            );
            let joined = list(&|call| call.replace('#', "f.").replace('@', "ORDER BY f.place"));
            let expected = format!(
                "WITH p AS (SELECT *, row_number() OVER (PARTITION BY {partition} ORDER BY id) AS place FROM t) \
                 SELECT r.id, {joined} FROM p r LEFT JOIN p f ON (f.{partition} IS NOT DISTINCT FROM r.{partition}) \
                 AND CAST(f.place AS bigint) BETWEEN CAST(r.place AS bigint) + {low} AND CAST(r.place AS bigint) + {high} \
                 GROUP BY r.id"
            );
            let expected = run(&pair.cpu, &expected).expect("the CPU engine joins");
            let result = run(&pair.device, &found).unwrap_or_else(|error| panic!("{error}\n  {found}"));
            pair.rows_agree(&expected, &result, &found);
        }
    }
}
