//! Aggregates that look at their group's rows more than once or in an order, and grouping sets.

use std::sync::Arc;

use warpframe::arrow::array::*;

use crate::differential::{Pair, run};
use crate::tables::{Batches, Shape, Values, columns};

/// Shapes of one tile and several, empty and degenerate ones.
fn shapes() -> Vec<Shape> {
    let base = Shape::random(2500, 8);
    let mut shapes: Vec<_> =
        [0, 1, 33, 2049].iter().map(|rows| Shape::random(*rows, *rows as u64)).collect();
    shapes.push(Shape { values: Values::AllNull, ..base });
    shapes.push(Shape { values: Values::Same, ..base });
    shapes.push(Shape { values: Values::Distinct, batches: Batches::Sliced, nulls: 0.0, ..base });
    shapes
}

#[test]
fn distinct_values_are_counted_and_summed_beside_other_aggregates() {
    let keys = ["k", "sl", "w, sv, b"];
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        pair.check(
            "SELECT count(DISTINCT s), count(DISTINCT k), sum(DISTINCT k), count(*), sum(k) FROM t",
        );
        pair.check(
            "SELECT count(DISTINCT m), avg(DISTINCT w), min(DISTINCT x), count(DISTINCT f64 + 0.0) FROM t WHERE k > 2",
        );
        for key in keys {
            pair.check(&format!(
                "SELECT {key}, count(DISTINCT sl), sum(DISTINCT m), avg(x), max(s), count(DISTINCT k2) FROM t GROUP BY {key}"
            ));
        }
    }
}

#[test]
fn distinct_values_of_every_type() {
    let pair = Pair::of(Shape::random(3000, 51).batches());
    // Beside other aggregates the CPU engine tells −0.0 from 0.0; they are one value.
    for column in [
        "i8", "u8", "i16", "u64", "f32 + 0", "f64 + 0", "b", "d", "ts", "m38", "s", "sl", "sv",
        "sd", "x", "spread",
    ] {
        pair.check(&format!(
            "SELECT k, count(DISTINCT {column}), count({column}), count(DISTINCT k2) FROM t GROUP BY k"
        ));
        pair.check(&format!("SELECT count(DISTINCT {column}), count(DISTINCT id) FROM t"));
    }
}

#[test]
fn bits_percentiles_places_and_lines() {
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for group in ["", " GROUP BY k", " GROUP BY sl"] {
            let check = |calls: &str| pair.check(&format!("SELECT {calls} FROM t{group}"));
            check("bit_and(k2), bit_or(i64), bit_xor(u64), bit_and(u8), bit_xor(i32), count(*)");
            check("bit_or(k) FILTER (WHERE b), bit_xor(i16) FILTER (WHERE k2 > 100)");
            check(
                "bit_and(DISTINCT i16), bit_or(DISTINCT u8), bit_or(DISTINCT k) FILTER (WHERE b)",
            );
            check(
                "percentile_cont(0.25) WITHIN GROUP (ORDER BY x), percentile_cont(0.9) WITHIN GROUP (ORDER BY f32)",
            );
            check(
                "percentile_cont(x, 0.0), percentile_cont(x, 1.0), percentile_cont(0.3) WITHIN GROUP (ORDER BY x DESC)",
            );
            check(
                "regr_count(x, k), regr_avgx(x, k), regr_avgy(x, k), regr_sxx(x, k), regr_syy(x, k), regr_sxy(x, k)",
            );
            check("regr_slope(x, k2), regr_intercept(x, k2), regr_r2(x, k2), regr_slope(x, 5)");
            check(
                "nth_value(s, 2 ORDER BY id), nth_value(x, 3 ORDER BY id DESC), nth_value(d, 100000 ORDER BY id)",
            );
            check(
                "nth_value(sl, -1 ORDER BY id), nth_value(m, -2 ORDER BY id) FILTER (WHERE k2 > 0)",
            );
        }
    }
}

#[test]
fn bits_of_distinct_values() {
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        pair.check("SELECT bit_xor(DISTINCT k), bit_xor(DISTINCT u64) FILTER (WHERE b) FROM t");
        // By group the CPU takes all values.
        let sql = "SELECT k, bit_xor(DISTINCT k2) AS a FROM t GROUP BY k";
        let once = "SELECT k, bit_xor(k2) AS a FROM (SELECT DISTINCT k, k2 FROM t) GROUP BY k";
        let [expected, found] = [(&pair.cpu, once), (&pair.device, sql)]
            .map(|(session, sql)| run(session, sql).expect("it runs"));
        pair.rows_agree(&expected, &found, sql);
    }
}

#[test]
fn strings_are_joined_in_an_order() {
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for group in ["", " GROUP BY k", " GROUP BY b, k2"] {
            let check = |calls: &str| pair.check(&format!("SELECT {calls} FROM t{group}"));
            check("string_agg(s, ', ' ORDER BY id), count(*), string_agg(sl, '' ORDER BY id)");
            check("string_agg(sl, '' ORDER BY id DESC)");
            check("string_agg(sv, 'é-' ORDER BY s, id) FILTER (WHERE k > 2)");
            check("string_agg(k::varchar, ',' ORDER BY id), min(s)");
            check("string_agg(DISTINCT sv, ', ' ORDER BY sv), count(*)");
            check("string_agg(DISTINCT s, '' ORDER BY s DESC) FILTER (WHERE k > 2)");
            check("median(DISTINCT k), median(DISTINCT m), count(*)");
        }
    }
}

#[test]
fn approximate_percentiles_are_exact() {
    let pair = Pair::of(Shape::random(3000, 61).batches());
    let rows = |session: &warpframe::Session, sql: &str| {
        crate::differential::Rows::of(&crate::differential::run(session, sql).expect(sql)).rows
    };
    for (approximate, exact) in [
        (
            "approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY x)",
            "percentile_cont(0.9) WITHIN GROUP (ORDER BY x)",
        ),
        ("approx_median(x)", "median(x)"),
        ("approx_percentile_cont(x, 0.0)", "min(x)"),
        ("approx_percentile_cont(x, 0.75)", "percentile_cont(x, 0.75)"),
    ] {
        let query = |call: &str| format!("SELECT k2, {call} AS v FROM t GROUP BY k2 ORDER BY k2");
        assert_eq!(
            rows(&pair.device, &query(approximate)),
            rows(&pair.cpu, &query(exact)),
            "{approximate}"
        );
    }
}

#[test]
fn filters_decide_which_rows_an_aggregate_sees() {
    let pair = Pair::of(Shape::random(3000, 52).batches());
    for group in ["", " GROUP BY k", " GROUP BY sl"] {
        for call in [
            "count(DISTINCT s) FILTER (WHERE k2 > 0)",
            "sum(DISTINCT w) FILTER (WHERE b)",
            "count(DISTINCT s) FILTER (WHERE k2 > 100)",
            "var(x) FILTER (WHERE k2 > 0)",
            "stddev_pop(x) FILTER (WHERE k2 > 100)",
            "corr(x, k2) FILTER (WHERE b)",
            "median(x) FILTER (WHERE k2 > 1)",
            "median(m) FILTER (WHERE k2 > 100)",
            "first_value(s ORDER BY id) FILTER (WHERE k2 > 1)",
            "last_value(x ORDER BY id) FILTER (WHERE k2 > 100)",
            "bool_or(b) FILTER (WHERE k2 = 0)",
        ] {
            pair.check(&format!(
                "SELECT {call} AS a, count(*), min(s) FILTER (WHERE k2 > 1) AS m FROM t{group}"
            ));
        }
    }
}

#[test]
fn variances_and_correlations() {
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for group in ["", " GROUP BY sl, k2"] {
            pair.check(&format!(
                "SELECT var(x), var_pop(x), stddev(x), stddev_pop(x), count(*) FROM t{group}"
            ));
            pair.check(&format!(
                "SELECT stddev(k), var_pop(i16), var(m), stddev(f32 * 0) FROM t{group}"
            ));
            pair.check(&format!(
                "SELECT covar_samp(x, k), covar_pop(x, i16), sum(x), avg(k2) FROM t{group}"
            ));
        }
        pair.check("SELECT corr(x, id), corr(k, i16), corr(x, x) FROM t");
    }
    let pair = Pair::of(Shape::random(4000, 53).batches());
    pair.check("SELECT k, corr(x, k2), corr(i16, x), corr(k, x) FROM t GROUP BY k");
}

#[test]
fn variances_of_values_far_from_zero_do_not_cancel() {
    let far = (0..3000).map(|i| 1e6 + f64::from(i % 7) / 8.0);
    let table: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new((0..3000).map(|i| i % 5).collect::<Int32Array>())),
        ("x", Arc::new(far.clone().collect::<Float64Array>())),
        ("c", Arc::new((0..3000).map(|_| 0.1).collect::<Float64Array>())),
        (
            "wide",
            Arc::new(
                (0..3000)
                    .map(|i| if i % 2 == 0 { 1e200 } else { -1e-200 })
                    .collect::<Float64Array>(),
            ),
        ),
    ];
    let pair = Pair::of(columns(table));
    pair.check(
        "SELECT var(x), stddev_pop(x), covar_pop(x, x), var(c), stddev(c), corr(c, x) FROM t",
    );
    pair.check("SELECT k, var(x), stddev_pop(x), covar_samp(x, x), var_pop(c) FROM t GROUP BY k");
    pair.check("SELECT k, avg(wide), covar_pop(wide / 1e100, wide / 1e100) FROM t GROUP BY k");
}

#[test]
fn medians_of_every_type_of_number() {
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for group in ["", " GROUP BY sl"] {
            pair.check(&format!(
                "SELECT median(x), median(k), median(i64), median(m), count(*) FROM t{group}"
            ));
        }
    }
    let pair = Pair::of(Shape::random(2500, 54).batches());
    for column in ["i8", "u8", "i16", "u16", "i32", "u32", "u64", "f32", "m38", "k + k2", "w"] {
        pair.check(&format!("SELECT k2, median({column}), max(s) FROM t GROUP BY k2"));
    }
}

#[test]
fn first_and_last_values_in_an_order() {
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for group in ["", " GROUP BY sv, k2"] {
            pair.check(&format!(
                "SELECT first_value(s ORDER BY id), last_value(x ORDER BY id), first_value(sd ORDER BY k DESC, id) FROM t{group}"
            ));
            pair.check(&format!(
                "SELECT last_value(m ORDER BY s NULLS FIRST, id DESC), first_value(b) IGNORE NULLS IS NULL FROM t{group}"
            ));
            pair.check(&format!(
                "SELECT first_value(k ORDER BY id) IGNORE NULLS, last_value(sl ORDER BY id) IGNORE NULLS, count(*) FROM t{group}"
            ));
        }
    }
}

#[test]
fn booleans_are_all_true_or_some_are() {
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        pair.check("SELECT bool_and(b), bool_or(b), bool_and(k >= 0), bool_or(x > 1e9) FROM t");
        pair.check("SELECT s, bool_and(b), bool_or(b), bool_and(k2 < 3) FROM t GROUP BY s");
    }
}

#[test]
fn approximate_counts_of_few_values_are_exact() {
    let pair = Pair::of(Shape::random(2000, 55).batches());
    pair.check("SELECT approx_distinct(k), approx_distinct(s), approx_distinct(k2) FROM t");
    pair.check("SELECT k, approx_distinct(k2) FROM t GROUP BY k");
}

#[test]
fn grouping_sets_are_grouped_one_by_one() {
    let base = Shape::random(2500, 9);
    for shape in
        [base, Shape { rows: 0, ..base }, Shape { rows: 33, batches: Batches::Several, ..base }]
    {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for (keys, sets) in [
            ("k, s", "CUBE (k, s)"),
            ("sl, k, k2", "GROUPING SETS ((k), (k2, sl), ())"),
            ("k, sd", "GROUPING SETS ((k), (k), (sd))"),
            ("k, b, d > DATE '1990-01-01'", "k, ROLLUP (b, d > DATE '1990-01-01')"),
        ] {
            pair.check(&format!("SELECT {keys}, count(*), sum(x), min(s) FROM t GROUP BY {sets}"));
        }
        pair.check("SELECT k, k2, count(DISTINCT w), count(DISTINCT m), median(x) FROM t GROUP BY ROLLUP (k, k2)");
        pair.check(
            "SELECT k, k2, grouping(k), grouping(k2), avg(w) FROM t GROUP BY ROLLUP (k, k2) HAVING count(*) > 1",
        );
    }
}

#[test]
fn results_by_slot_are_tables_like_others() {
    let pair =
        Pair::of(Shape::random(3000, 56).batches()).and("u", Shape::random(200, 57).batches());
    pair.check_all(&[
        "SELECT n, count(*) FROM (SELECT k, k2, count(DISTINCT s) + count(DISTINCT sl) AS n FROM t GROUP BY k, k2) GROUP BY n",
        "SELECT sum(v), max(f) FROM (SELECT sl, var(x) AS v, first_value(s ORDER BY id) AS f FROM t GROUP BY sl)",
        "SELECT k, c FROM (SELECT k, count(DISTINCT w) AS c, count(DISTINCT x) FROM t GROUP BY k) WHERE c > 3 ORDER BY k LIMIT 4",
        "SELECT t.k, count(DISTINCT u.s), median(t.x), stddev(u.x) FROM t JOIN u ON t.k = u.k WHERE t.k2 > -2 GROUP BY t.k",
        "SELECT k FROM t GROUP BY k HAVING count(DISTINCT s) > 3 AND stddev(x) > 1",
    ]);
}

#[test]
fn without_an_order_the_first_and_last_rows_count() {
    let calls = |order: &str| {
        let mut calls = vec![];
        for (at, column) in ["s", "x", "m38", "f64", "sd", "b", "d"].iter().enumerate() {
            calls.push(format!("first_value({column}{order}) AS a{at}"));
            calls.push(format!("last_value({column}{order}) AS b{at}"));
            calls.push(format!("first_value({column}{order}) IGNORE NULLS AS c{at}"));
            calls.push(format!("last_value({column}{order}) FILTER (WHERE k > 2) AS d{at}"));
        }
        calls.join(", ")
    };
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for (keys, group) in [("", ""), ("sl, ", " GROUP BY sl"), ("k, b, ", " GROUP BY k, b")] {
            // Rows lie in the order of `id`.
            let [given, ordered] = ["", " ORDER BY id"].map(|order| {
                format!("SELECT {keys}{}, count(*) AS n FROM t WHERE w > 1{group}", calls(order))
            });
            let (expected, found) = (run(&pair.cpu, &ordered).unwrap(), run(&pair.device, &given));
            pair.compare_unordered(&expected, &found.unwrap(), &given);
        }
    }
}
