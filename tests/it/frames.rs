//! Aggregates over frames that need the rows of a frame more than once, or in an order.

use std::sync::Arc;

use datafusion::functions_aggregate::expr_fn as aggregates;
use warpframe::ErrorKind;
use warpframe::arrow::array::*;
use warpframe::prelude::*;

use crate::differential::{Cell, Pair, Rows, builder, run};
use crate::tables::{Shape, Values, columns, share};

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

/// One of several tiles, with so many rows that pairs come in slices, empty ones and degenerate
/// ones.
fn shapes() -> Vec<Shape> {
    let mut shapes: Vec<_> =
        [1100, 0, 1, 33].iter().map(|rows| Shape::random(*rows, 80 + *rows as u64)).collect();
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
    for (at, shape) in shapes().into_iter().enumerate() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for frame in share(frames, at) {
            let list: Vec<_> = (calls.iter().enumerate())
                .map(|(at, call)| {
                    format!("{} AS a{at}", within.replace('#', &format!("{call} OVER w")))
                })
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
    let calls = [
        "regr_slope(x, k2)",
        "regr_intercept(x, k2)",
        "regr_r2(x, k)",
        "regr_avgx(x, w)",
        "regr_sxy(x, w)",
    ];
    check(&calls, &GROWING);
    // The CPU engine takes rows away again, and their rounding errors stay.
    check_joined(&["corr(#x, #k)", "covar_samp(#x, #w) FILTER (WHERE #b)", "covar_pop(#m, #x)"]);
    check_joined(&[
        "regr_slope(#x, #k2)",
        "regr_intercept(#x, #k2)",
        "regr_r2(#x, #k)",
        "regr_avgy(#x, #w)",
    ]);
    check_joined(&[
        "regr_sxx(#x, #k2)",
        "regr_syy(#x, #k2)",
        "regr_sxy(#x, #k)",
        "regr_count(#x, #w)",
    ]);
}

#[test]
fn bits_of_frames() {
    // The CPU engine takes rows away until nothing but a 0 is left.
    check_within(&["bit_xor(i32)"], "coalesce(#, 0)", &SLIDING);
    check(&["bit_and(i32)", "bit_or(u64)", "bit_xor(i8)", "bit_and(w)"], &GROWING);
    check_joined(&[
        "bit_and(#i64)",
        "bit_or(#i8)",
        "bit_and(#u16) FILTER (WHERE #b)",
        "bit_xor(#u64)",
    ]);
}

#[test]
fn lists_of_frames() {
    let calls = ["array_agg(x)", "array_agg(s)", "array_agg(k) FILTER (WHERE b)"];
    check(&calls, &SLIDING[..4]);
    check(&calls, &GROWING[..2]);
    check(&["string_agg(s, ', ')", "string_agg(sv, '') FILTER (WHERE k > 3)"], &GROWING[..2]);
    check_joined(&["string_agg(#s, ', ' @)", "string_agg(#sl, '' @) FILTER (WHERE #b)"]);
}

/// What the CPU engine does not take rows away from: against a join of each row with those of its
/// frame. `#` stands before columns, `@` where the order of rows is to be stated.
fn check_joined(calls: &[&str]) {
    for (at, shape) in shapes().into_iter().enumerate() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for (partition, low, high) in share([("k", -3, 2), ("k2", 1, 4), ("b", -30, -2)], at) {
            let bound = |by: i32| {
                format!("{} {}", by.abs(), if by < 0 { "PRECEDING" } else { "FOLLOWING" })
            };
            let list = |call: &dyn Fn(&str) -> String| {
                (calls.iter().enumerate())
                    .map(|(at, of)| format!("{} AS a{at}", call(of)))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let over = list(&|call| format!("{} OVER w", call.replace(['#', '@'], "")));
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
            let result =
                run(&pair.device, &found).unwrap_or_else(|error| panic!("{error}\n  {found}"));
            pair.rows_agree(&expected, &result, &found);
        }
    }
}

#[test]
fn frames_of_more_rows_than_a_slice() {
    let pair = Pair::of(Shape::random(6000, 90).batches());
    pair.check_all(&[
        "SELECT id, sum(DISTINCT w) OVER w AS a, array_sort(array_agg(DISTINCT k2) OVER w) AS l, median(x) OVER w AS m FROM t WINDOW w AS (ORDER BY b)",
        "SELECT id, sum(DISTINCT k2) OVER w AS a, count(DISTINCT w) OVER w AS c FROM t WINDOW w AS (ORDER BY b GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
    ]);
}

/// A column of each name, one row for each value of the first.
fn table(floats: &[f64]) -> Pair {
    Pair::of(columns(vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..floats.len() as i64)) as ArrayRef),
        ("x", Arc::new(Float64Array::from(floats.to_vec()))),
        ("y", Arc::new(Float64Array::from_iter_values((0..floats.len()).map(|i| i as f64 * 2.0)))),
        (
            "s",
            Arc::new(StringArray::from_iter_values(
                (0..floats.len()).map(|i| ["é", "", "a long word, and more of it"][i % 3]),
            )),
        ),
    ]))
}

fn cells(pair: &Pair, sql: &str) -> Vec<Cell> {
    let rows =
        Rows::of(&run(&pair.device, sql).unwrap_or_else(|error| panic!("{error}\n  {sql}"))).rows;
    rows.into_iter().map(|mut row| row.remove(0)).collect()
}

#[test]
fn nan_and_zeros_of_frames() {
    let pair = table(&[f64::NAN, 1.0, -0.0, 0.0, f64::INFINITY, 2.0, f64::NAN]);
    let over = "OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t ORDER BY id";
    let counts = [1, 2, 2, 1, 2, 2, 2].map(Cell::Int);
    assert_eq!(cells(&pair, &format!("SELECT count(DISTINCT x) {over}")), counts);
    let inside = |call: &str| format!("{:?}", cells(&pair, &format!("SELECT {call} {over}")));
    let nan = f64::NAN;
    // NaN is the greatest.
    let floats = |of: [f64; 7]| format!("{:?}", of.map(Cell::Float));
    let highest = [nan, nan, 1.0, 0.0, f64::INFINITY, f64::INFINITY, nan];
    assert_eq!(inside("percentile_cont(x, 1.0)"), floats(highest));
    // Where a NaN leaves a frame nothing of it stays.
    let expected = [nan, nan, -0.5, 0.0, nan, nan, nan];
    let agree = |(found, expected): (&Cell, f64)| match found {
        Cell::Float(found) => *found == expected || found.is_nan() && expected.is_nan(),
        _ => false,
    };
    let found = cells(&pair, &format!("SELECT covar_pop(x, y) {over}"));
    assert!(found.iter().zip(expected).all(agree), "{found:?}");
}

#[test]
fn lists_of_frames_are_columns_like_others() {
    let pair = Pair::of(Shape::random(1500, 91).batches());
    let lists =
        "SELECT id, k, array_agg(s) OVER (PARTITION BY k ORDER BY id ROWS 3 PRECEDING) AS l FROM t";
    pair.check_all(&[
        &format!("SELECT id, array_length(l), l[1], l[-1] FROM ({lists})"),
        &format!("SELECT id, unnest(l) AS e FROM ({lists})"),
        &format!("SELECT l, count(*) FROM ({lists}) GROUP BY l"),
        "SELECT id, array_agg(l) OVER (ORDER BY id ROWS 1 PRECEDING) AS ll FROM (SELECT id, [k, k2] AS l FROM t)",
        "SELECT id, array_agg(l) OVER (PARTITION BY k ORDER BY id) AS ll FROM (SELECT id, k, {'a': s, 'b': [x]} AS l FROM t)",
        "SELECT id, array_agg(DISTINCT k2 % 3) FILTER (WHERE false) OVER (ORDER BY id) AS l FROM t",
        "SELECT id, array_agg(sv) IGNORE NULLS OVER (PARTITION BY b ORDER BY id ROWS 2 PRECEDING) AS l FROM t",
    ]);
}

#[test]
fn frames_of_verbs() {
    let pair = Pair::of(Shape::random(900, 92).batches());
    pair.check_frame("windows", |session| {
        let distinct = over(count_distinct(col("s")), [col("k")], [asc(col("id"))]);
        let last = over(col("x").last(), [col("k")], [asc(col("id"))]);
        let second = Expr::from(aggregates::nth_value(col("s").into(), 2, vec![])).filter(col("b"));
        let second = over(second, [col("k")], [asc(col("id"))]);
        let list = over(col("k2").implode(), [col("b")], [desc(col("id"))]);
        let middle = over(median(col("m")), [], [desc(col("id"))]);
        let columns = [distinct.alias("distinct"), last.alias("last"), second.alias("second")];
        let columns = columns.into_iter().chain([list.alias("list"), middle.alias("middle")]);
        session.table("t")?.select([col("id"), col("k")].into_iter().chain(columns))
    });
}

#[test]
fn frames_of_very_many_rows_together_are_the_cpus() {
    let table = |session: &Session| {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..186_000));
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..186_000).map(|i| i % 7)));
        session.register_batches("t", columns(vec![("id", ids), ("v", values)])).expect("a table");
    };
    let sql = "SELECT id, sum(DISTINCT v) OVER (ORDER BY id) AS s FROM t ORDER BY id";
    let pair = Pair::with(builder().strict(true));
    table(&pair.device);
    let error = run(&pair.device, sql).expect_err("it is strict");
    assert!(
        matches!(error.kind(), ErrorKind::Unsupported { .. }) && error.to_string().contains("2^34"),
        "{error}"
    );
    let pair = Pair::with(builder());
    table(&pair.cpu);
    table(&pair.device);
    let found = run(&pair.device, sql).expect("the CPU runs it");
    assert_eq!(pair.gpu().counters().fallbacks, 1);
    pair.rows_agree(&run(&pair.cpu, sql).expect("it runs"), &found, sql);
    // These do not look at each frame by itself.
    pair.check("SELECT id, count(DISTINCT v) OVER (ORDER BY id) AS c, bit_or(v) OVER (ORDER BY id) AS b FROM t");
}
