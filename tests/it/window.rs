//! Window functions.

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::*;
use warpframe::prelude::*;

use crate::differential::{Cell, Pair, Rows, run};
use crate::tables::{Batches, Shape, Values, columns};

/// Shapes of one tile and several, empty and degenerate ones.
fn shapes() -> Vec<Shape> {
    let base = Shape::random(2500, 8);
    let mut shapes: Vec<_> =
        [0, 1, 33, 1025, 3000].iter().map(|rows| Shape::random(*rows, *rows as u64)).collect();
    for values in [Values::AllNull, Values::Same, Values::Distinct] {
        shapes.push(Shape { values, ..base });
    }
    shapes.push(Shape { batches: Batches::Sliced, nulls: 0.0, ..base });
    shapes
}

#[test]
fn ranks_of_every_shape() {
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        let over = "(PARTITION BY k ORDER BY k2 DESC NULLS LAST, id)";
        pair.check(&format!(
            "SELECT id, row_number() OVER {over} AS a, rank() OVER {over} AS b, dense_rank() OVER {over} AS c, \
             percent_rank() OVER {over} AS d, cume_dist() OVER {over} AS e, ntile(5) OVER {over} AS f FROM t"
        ));
        for over in [
            "(PARTITION BY k ORDER BY k2)",
            "(ORDER BY s)",
            "(PARTITION BY sl ORDER BY f64 DESC)",
            "(PARTITION BY id)",
        ] {
            pair.check(&format!(
                "SELECT id, rank() OVER {over} AS b, dense_rank() OVER {over} AS c, percent_rank() OVER {over} AS d, \
                 cume_dist() OVER {over} AS e FROM t"
            ));
        }
    }
}

#[test]
fn ntile_of_any_number_of_tiles() {
    let pair = Pair::of(Shape::random(1500, 9).batches());
    pair.check(
        "SELECT id, ntile(1) OVER w AS a, ntile(3) OVER w AS b, ntile(100000) OVER w AS c, ntile(211) OVER w AS d, \
         ntile(18446744073709551615) OVER w AS e FROM t WINDOW w AS (PARTITION BY k ORDER BY id)",
    );
}

const TYPES: [&str; 28] = [
    "k", "k2", "w", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64", "x",
    "spread", "b", "d", "ts", "ts_s", "ts_ms", "ts_ns", "m", "m38", "s", "sl", "sv", "sd", "id",
];

#[test]
fn lag_and_lead_of_every_type() {
    let pair = Pair::of(Shape::random(2500, 11).batches());
    for types in TYPES.chunks(7) {
        let list: Vec<String> = (types.iter().enumerate())
            .map(|(at, column)| {
                format!(
                    "lag({column}) OVER w AS a{at}, lead({column}, 2) OVER w AS b{at}, lag({column}, -{at}) OVER w AS c{at}, \
                     lead({column}, 400) OVER w AS d{at}"
                )
            })
            .collect();
        let list = list.join(", ");
        pair.check(&format!(
            "SELECT id, {list} FROM t WINDOW w AS (PARTITION BY k ORDER BY k2, id)"
        ));
    }
    pair.check(
        "SELECT id, lag(k, 3, -1) OVER w AS a, lead(x, 1, 0) OVER w AS b, lag(s, 1, 'none') OVER w AS c, \
         lag(sv, 2, 'a default of some length') OVER w AS d, lead(m, 5, 1.25) OVER w AS e, lag(b, 1, true) OVER w AS f, \
         lead(d, 1, DATE '2020-02-29') OVER w AS g, lag(k + k2, 1, 7) OVER w AS h, lag(m38, 1, 0) OVER w AS i, \
         lead(s || 'x', 1, 'y') OVER w AS j, lag(u64, 2, 5) OVER w AS l FROM t WINDOW w AS (PARTITION BY b ORDER BY id)",
    );
}

#[test]
fn lag_and_lead_skip_nulls() {
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        // The other function has the CPU engine evaluate whole partitions.
        pair.check(
            "SELECT id, ntile(2) OVER w AS n, lag(x) IGNORE NULLS OVER w AS a, lead(x, 2) IGNORE NULLS OVER w AS b, \
             lag(s, 3, '-') IGNORE NULLS OVER w AS c, lead(k, 1, -9) IGNORE NULLS OVER w AS d, \
             lag(m, 0) IGNORE NULLS OVER w AS e, lag(id, 2) IGNORE NULLS OVER w AS f, lag(sv, -2) IGNORE NULLS OVER w AS g \
             FROM t WINDOW w AS (PARTITION BY k ORDER BY id)",
        );
    }
}

#[test]
fn values_at_places_of_the_frame() {
    let pair = Pair::of(Shape::random(1500, 12).batches());
    for frame in [
        "",
        "ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        "ROWS BETWEEN 2 FOLLOWING AND 5 FOLLOWING",
        "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        "GROUPS BETWEEN 1 PRECEDING AND 1 PRECEDING",
        "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    ] {
        let order = if frame.starts_with("RANGE") { "k2" } else { "k2, id" };
        for nulls in ["", "IGNORE NULLS"] {
            let places: Vec<String> =
                ["first_value(#)", "last_value(#)", "nth_value(#, 2)", "nth_value(#, -3)"]
                    .iter()
                    .enumerate()
                    .flat_map(|(at, call)| {
                        ["k", "sv", "m"].map(|column| {
                            // Peers have no order of their own.
                            let call = if frame.starts_with("RANGE") {
                                call.replace('#', "k2 * 3")
                            } else {
                                call.replace('#', column)
                            };
                            format!("{call} {nulls} OVER w AS {column}{at}")
                        })
                    })
                    .collect();
            let places = places.join(", ");
            pair.check(&format!(
                "SELECT id, {places} FROM t WINDOW w AS (PARTITION BY b ORDER BY {order} {frame})"
            ));
        }
    }
    for shape in shapes() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        pair.check(
            "SELECT id, first_value(s) OVER w AS a, last_value(x) IGNORE NULLS OVER w AS b, nth_value(d, 3) OVER w AS c, \
             first_value(x) IGNORE NULLS OVER w AS d \
             FROM t WINDOW w AS (PARTITION BY k ORDER BY id ROWS BETWEEN 4 PRECEDING AND 1 PRECEDING)",
        );
    }
}

/// Every way to bound frames, but those that end before they begin.
fn frames(units: &str) -> Vec<String> {
    let bounds = [
        "UNBOUNDED PRECEDING",
        "3 PRECEDING",
        "1 PRECEDING",
        "CURRENT ROW",
        "2 FOLLOWING",
        "4 FOLLOWING",
        "UNBOUNDED FOLLOWING",
    ];
    let mut frames = vec![];
    for (at, start) in bounds[..6].iter().enumerate() {
        for end in &bounds[at.max(1)..] {
            frames.push(format!("{units} BETWEEN {start} AND {end}"));
        }
    }
    frames
}

const AGGREGATES: &str = "count(*) OVER w AS a, count(x) OVER w AS b, sum(k) OVER w AS c, sum(x) OVER w AS d, avg(x) OVER w AS e, \
    min(x) OVER w AS f, max(i64) OVER w AS g, sum(m) OVER w AS h, avg(m) OVER w AS i, min(s) OVER w AS j, count(s) OVER w AS l";

#[test]
fn aggregates_over_every_frame_of_rows() {
    let pair = Pair::of(Shape::random(1300, 13).batches());
    for frame in frames("ROWS") {
        pair.check(&format!(
            "SELECT id, {AGGREGATES} FROM t WINDOW w AS (PARTITION BY k ORDER BY id {frame})"
        ));
    }
}

#[test]
fn aggregates_over_every_frame_of_groups() {
    let pair = Pair::of(Shape::random(1300, 14).batches());
    for frame in frames("GROUPS") {
        pair.check(&format!(
            "SELECT id, {AGGREGATES} FROM t WINDOW w AS (PARTITION BY b ORDER BY i8 {frame})"
        ));
    }
}

#[test]
fn aggregates_over_every_frame_of_values() {
    let pair = Pair::of(Shape::random(1300, 15).batches());
    for (at, frame) in frames("RANGE").iter().enumerate() {
        let order = ["k2", "k2 DESC", "k2 NULLS FIRST", "k2 DESC NULLS LAST"][at % 4];
        pair.check(&format!(
            "SELECT id, {AGGREGATES} FROM t WINDOW w AS (PARTITION BY k ORDER BY {order} {frame})"
        ));
    }
}

#[test]
fn frames_of_values_of_every_type() {
    let pair = Pair::of(Shape::random(900, 16).batches());
    let ways = ["", "DESC", "NULLS FIRST", "DESC NULLS LAST"];
    for (at, (column, steps)) in [
        ("i8", ["10", "100"]),
        ("i16", ["500", "30000"]),
        ("k", ["0", "2"]),
        ("w", ["281474976776193", "9223372036854775807"]),
        ("i64", ["1000000000000000000", "9000000000000000000"]),
        ("u8", ["20", "200"]),
        ("u32", ["100000000", "4000000000"]),
        ("u64", ["1000000000000000000", "18000000000000000000"]),
        ("f32", ["10.5", "0"]),
        ("f64", ["0.125", "50"]),
        ("x", ["1.5", "1000"]),
        ("m", ["1.5", "100000"]),
        ("m38", ["1000000000000000000000000", "0"]),
        ("spread", ["1e50", "1"]),
        ("d", ["INTERVAL '30 days'", "INTERVAL '3 days'"]),
        ("ts", ["INTERVAL '300 days'", "INTERVAL '1 day 3 hours'"]),
        ("ts_s", ["INTERVAL '1000 days'", "INTERVAL '2 seconds'"]),
        ("ts_ns", ["INTERVAL '100 days'", "INTERVAL '1 second'"]),
        ("d", ["INTERVAL '7 months'", "INTERVAL '2 years 3 days'"]),
        ("d", ["INTERVAL '30 hours'", "INTERVAL '1 month'"]),
        ("ts", ["INTERVAL '1 month'", "INTERVAL '13 months 1 hour'"]),
        ("ts_s", ["INTERVAL '100 years'", "INTERVAL '1500 milliseconds'"]),
    ]
    .into_iter()
    .enumerate()
    {
        let [one, other] = steps;
        for (frame, way) in [
            (format!("BETWEEN {one} PRECEDING AND {other} FOLLOWING"), ways[at % 4]),
            (format!("BETWEEN {other} PRECEDING AND CURRENT ROW"), ways[(at + 1) % 4]),
            (format!("BETWEEN {one} FOLLOWING AND UNBOUNDED FOLLOWING"), ways[(at + 2) % 4]),
            (format!("BETWEEN UNBOUNDED PRECEDING AND {one} PRECEDING"), ways[(at + 3) % 4]),
        ] {
            pair.check(&format!(
                "SELECT id, count(*) OVER w AS a, sum(i16) OVER w AS b, max(k) OVER w AS c \
                 FROM t WINDOW w AS (PARTITION BY b ORDER BY {column} {way} RANGE {frame})"
            ));
        }
    }
}

#[test]
fn keys_of_every_type() {
    let pair = Pair::of(Shape::random(1500, 17).batches());
    for (at, column) in TYPES.iter().enumerate() {
        let way =
            ["ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST", "ASC NULLS FIRST"][at % 4];
        pair.check(&format!(
            "SELECT id, rank() OVER (PARTITION BY k ORDER BY {column} {way}) AS a, \
             sum(id) OVER (PARTITION BY k ORDER BY {column} {way}) AS b, \
             count(*) OVER (PARTITION BY {column}) AS c, row_number() OVER (PARTITION BY {column} ORDER BY id) AS d FROM t"
        ));
    }
    pair.check_all(&[
        "SELECT id, rank() OVER (PARTITION BY s, k ORDER BY sl DESC, m38, x NULLS FIRST) AS a FROM t",
        "SELECT id, dense_rank() OVER (PARTITION BY m38, b ORDER BY k + k2, substr(sv, 1, 2)) AS a FROM t",
        "SELECT id, count(*) OVER (PARTITION BY f32, f64) AS a, rank() OVER (ORDER BY f32, f64) AS b FROM t",
    ]);
}

#[test]
fn extrema_of_every_type() {
    let pair = Pair::of(Shape::random(1500, 18).batches());
    for types in TYPES.chunks(10) {
        for frame in [
            "",
            "ROWS BETWEEN 20 PRECEDING AND 7 PRECEDING",
            "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        ] {
            let list: Vec<String> = (types.iter().enumerate())
                .map(|(at, column)| {
                    format!("min({column}) OVER w AS a{at}, max({column}) OVER w AS b{at}")
                })
                .collect();
            let list = list.join(", ");
            pair.check(&format!(
                "SELECT id, {list} FROM t WINDOW w AS (PARTITION BY k2 ORDER BY id {frame})"
            ));
        }
    }
    pair.check("SELECT id, min(s || sv) OVER w AS a, max(lower(sl)) OVER w AS b FROM t WHERE octet_length(sl) = length(sl) WINDOW w AS (PARTITION BY k ORDER BY id ROWS 3 PRECEDING)");
}

#[test]
fn sums_and_averages_of_every_type() {
    let pair = Pair::of(Shape::random(1500, 19).batches());
    let types =
        ["i8", "i16", "k", "w", "i64 / 4096", "u8", "u16", "u32", "u64 / 4096", "x", "m", "m38"];
    for frame in [
        "",
        "ROWS BETWEEN 9 PRECEDING AND 1 FOLLOWING",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    ] {
        let list: Vec<String> = (types.iter().enumerate())
            .map(|(at, column)| {
                let average = if *column == "m38" { "count" } else { "avg" };
                format!("sum({column}) OVER w AS a{at}, {average}({column}) OVER w AS b{at}")
            })
            .collect();
        let list = list.join(", ");
        pair.check(&format!(
            "SELECT id, {list} FROM t WINDOW w AS (PARTITION BY k2 ORDER BY id {frame})"
        ));
    }
}

#[test]
fn integer_sums_of_more_than_64_bits_fail() {
    let sign = |i: i64| if i % 2 == 0 { 1 } else { -1 };
    let table: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..50))),
        ("i", Arc::new(Int64Array::from_iter_values((0..50).map(|i| sign(i) * (i64::MAX - i))))),
        ("u", Arc::new(UInt64Array::from_iter_values((0..50).map(|i| u64::MAX / 50 - i)))),
        ("v", Arc::new(UInt64Array::from_iter_values((0..50).map(|i| u64::MAX - i)))),
    ];
    let pair = Pair::of(columns(table));
    for frame in ["ROWS 7 PRECEDING", "ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING", ""] {
        let over = format!("WINDOW w AS (ORDER BY id {frame})");
        pair.check(&format!("SELECT id, sum(i) OVER w AS a, sum(u) OVER w AS b FROM t {over}"));
        for sum in ["sum(abs(i))", "sum(v)"] {
            let error = pair.check_error(&format!("SELECT id, {sum} OVER w FROM t {over}"));
            assert!(error.to_string().to_lowercase().contains("overflow"), "{error}");
        }
    }
}

#[test]
fn infinities_and_nan_stay_in_their_frames() {
    // The CPU engine subtracts what leaves a frame, so a NaN stays forever.
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    let table: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..8))),
        ("x", Arc::new(Float64Array::from(vec![1.0, nan, 2.0, 3.0, infinity, 4.0, 5.0, 6.0]))),
    ];
    let pair = Pair::of(columns(table));
    let sql = "SELECT sum(x) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS s, \
               sum(x) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS r FROM t ORDER BY id";
    let found = Rows::of(&run(&pair.device, sql).expect("it runs")).rows;
    let pairs = [nan, nan, 5.0, infinity, infinity, 9.0, 11.0, 6.0];
    let rests = [nan, nan, infinity, infinity, infinity, 15.0, 11.0, 6.0];
    let expected: Vec<Vec<Cell>> =
        pairs.iter().zip(rests).map(|(p, r)| vec![Cell::Float(*p), Cell::Float(r)]).collect();
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    pair.check("SELECT id, sum(x) OVER (ORDER BY id) AS s, avg(x) OVER (ORDER BY id) AS a FROM t");
}

/// DataFusion may count the nulls of the first piece of rows only, where a window lies over
/// another.
#[test]
fn frames_of_values_before_a_null_hold_all_nulls() {
    let pair = Pair::new();
    let rows = columns(vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..6)) as ArrayRef),
        (
            "x",
            Arc::new(Float64Array::from(vec![None, Some(2.0), None, Some(1.0), None, Some(3.0)])),
        ),
    ]);
    let pair = pair.and("t", rows);
    for order in ["x DESC NULLS LAST", "x DESC", "x NULLS FIRST", "x"] {
        let sql = format!(
            "SELECT count(*) OVER (ORDER BY {order} RANGE BETWEEN 1 PRECEDING AND 1 PRECEDING) FROM t WHERE x IS NULL OR id > 0"
        );
        let rows = Rows::of(&run(&pair.device, &sql).unwrap()).rows;
        let mut found: Vec<_> = rows.into_iter().map(|row| row[0].clone()).collect();
        found.sort_by_key(|cell| format!("{cell:?}"));
        assert_eq!(found, [0, 1, 1, 3, 3, 3].map(Cell::Int), "{sql}");
    }
}

#[test]
fn variances() {
    let pair = Pair::of(Shape::random(1500, 20).batches());
    for frame in [
        "",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        "ROWS 30 PRECEDING",
        "GROUPS BETWEEN UNBOUNDED PRECEDING AND 2 FOLLOWING",
    ] {
        pair.check(&format!(
            "SELECT id, var(x) OVER w AS a, var_pop(k) OVER w AS b, stddev(x) OVER w AS c, stddev_pop(m) OVER w AS d, \
             var(x) FILTER (WHERE b) OVER w AS e FROM t WINDOW w AS (PARTITION BY k2 ORDER BY id {frame})"
        ));
    }
}

#[test]
fn filters_decide_which_rows_of_the_frame_count() {
    let pair = Pair::of(Shape::random(1500, 21).batches());
    for frame in ["", "ROWS BETWEEN 5 PRECEDING AND 5 FOLLOWING"] {
        pair.check(&format!(
            "SELECT id, count(*) FILTER (WHERE b) OVER w AS a, sum(x) FILTER (WHERE k > 3) OVER w AS b, \
             min(s) FILTER (WHERE k2 > 0) OVER w AS c, avg(m) FILTER (WHERE b) OVER w AS d, count(id) FILTER (WHERE b) OVER w AS e, \
             max(sv) FILTER (WHERE k2 > 100) OVER w AS f FROM t WINDOW w AS (PARTITION BY k ORDER BY id {frame})"
        ));
    }
}

#[test]
fn partitions_of_many_tiles() {
    for rows in [1024, 12_000] {
        let pair = Pair::of(Shape::random(rows, 22).batches());
        for over in [
            "(ORDER BY id)",
            "(ORDER BY k2)",
            "(PARTITION BY b ORDER BY id ROWS 1000 PRECEDING)",
            "(PARTITION BY k2 > 2 ORDER BY id DESC)",
            "(PARTITION BY id ORDER BY k)",
        ] {
            pair.check(&format!(
                "SELECT id, rank() OVER {over} AS r, {} FROM t",
                AGGREGATES.replace("OVER w", &format!("OVER {over}"))
            ));
        }
    }
}

#[test]
fn frames_that_are_empty() {
    let pair = Pair::of(Shape::random(400, 23).batches());
    for frame in [
        "ROWS BETWEEN 500 FOLLOWING AND UNBOUNDED FOLLOWING",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 500 PRECEDING",
        "ROWS BETWEEN 600 PRECEDING AND 500 PRECEDING",
        "GROUPS BETWEEN 30 FOLLOWING AND 40 FOLLOWING",
    ] {
        pair.check(&format!(
            "SELECT id, {AGGREGATES}, first_value(k) OVER w AS m, last_value(s) IGNORE NULLS OVER w AS n \
             FROM t WINDOW w AS (PARTITION BY b ORDER BY k, id {frame})"
        ));
    }
}

#[test]
fn several_windows_in_one_query() {
    let pair =
        Pair::of(Shape::random(2000, 24).batches()).and("u", Shape::random(200, 25).batches());
    pair.check_all(&[
        "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS a, sum(x) OVER (PARTITION BY s ORDER BY id DESC) AS b, \
         rank() OVER (ORDER BY m, id) AS c, lag(s) OVER (PARTITION BY k ORDER BY id) AS d, count(*) OVER () AS e FROM t",
        // Over an aggregation, and its aggregates.
        "SELECT k, sum(x) AS total, rank() OVER (ORDER BY sum(x) DESC) AS r, sum(sum(m)) OVER (ORDER BY k) AS s FROM t GROUP BY k",
        "SELECT s, k, count(*) AS n, max(count(*)) OVER (PARTITION BY s) AS most FROM t GROUP BY s, k",
        // The second and third find the rows sorted by the first.
        "SELECT id, lag(x) OVER (PARTITION BY k, s ORDER BY b, id) AS a, sum(x) OVER (PARTITION BY k) AS b, \
         rank() OVER (PARTITION BY s, k ORDER BY b) AS c, count(*) OVER (PARTITION BY k, s, b) AS d FROM t",
        // A filter over a window.
        "SELECT id, k, x FROM (SELECT id, k, x, row_number() OVER (PARTITION BY k ORDER BY x DESC, id) AS rn FROM t) WHERE rn <= 3",
        "SELECT id, s FROM t QUALIFY row_number() OVER (PARTITION BY s ORDER BY id) = 2",
        "SELECT id, x FROM t WHERE k > 2 QUALIFY x > avg(x) OVER (PARTITION BY k2)",
        // A join of windows, windows of a join, and of a window.
        "SELECT a.id, a.n, b.n FROM (SELECT id, ntile(4) OVER (ORDER BY id) AS n FROM t) a JOIN (SELECT id, row_number() OVER (ORDER BY id DESC) AS n FROM u) b ON a.id = b.id",
        "SELECT t.id, u.id AS other, count(*) OVER (PARTITION BY t.id) AS n, lag(u.sv) OVER (PARTITION BY t.id ORDER BY u.id) AS p FROM t LEFT JOIN u ON t.sl = u.sl OR t.id = u.id + 1",
        "SELECT id, max(r) OVER (PARTITION BY k2) AS m FROM (SELECT id, k2, rank() OVER (PARTITION BY k ORDER BY id) AS r FROM t)",
        // Results are columns like others.
        "SELECT n, count(*), sum(x) FROM (SELECT ntile(7) OVER (ORDER BY x, id) AS n, x FROM t) GROUP BY n ORDER BY n",
        "SELECT id, lag(s) OVER (ORDER BY id) || '!' AS p FROM t ORDER BY id LIMIT 20",
        "SELECT id, x - lag(x, 1, 0) OVER (PARTITION BY k ORDER BY id) AS dx FROM t ORDER BY dx DESC NULLS LAST, id LIMIT 10",
        "SELECT DISTINCT k, first_value(s) OVER (PARTITION BY k ORDER BY id) AS f FROM t",
        "SELECT id, row_number() OVER (ORDER BY id) AS a FROM (SELECT * FROM t ORDER BY s, id LIMIT 100 OFFSET 3)",
    ]);
}

#[test]
fn windows_without_keys() {
    let pair = Pair::of(Shape::random(1500, 26).batches());
    pair.check_all(&[
        "SELECT id, count(*) OVER () AS a, sum(x) OVER () AS b, min(s) OVER () AS c, avg(m) OVER () AS d FROM t",
        "SELECT id, rank() OVER () AS a, cume_dist() OVER () AS b, percent_rank() OVER () AS c FROM t",
        "SELECT id, count(*) OVER (PARTITION BY 1 ORDER BY 2) AS a, sum(k) OVER (ORDER BY NULL::int, id) AS b FROM t",
    ]);
}

#[test]
fn what_is_left_to_the_cpu_says_why() {
    let pair = Pair::of(Shape::random(300, 27).batches());
    for (call, why) in [
        ("count(*) OVER (ORDER BY b RANGE 1 PRECEDING)", "RANGE"),
        ("rank() IGNORE NULLS OVER (ORDER BY id)", "IGNORE NULLS"),
        ("lag(x, NULL) OVER (ORDER BY id)", "no constant"),
        // The CPU engine refuses these.
        ("ntile(0) OVER (ORDER BY id)", "ntile"),
        ("sum(x) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING)", "before it begins"),
    ] {
        let error = run(&pair.device, &format!("SELECT {call} FROM t")).expect_err("it is strict");
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn windows_of_verbs() {
    let pair = Pair::of(Shape::random(2000, 28).batches());
    pair.check_frame("windows", |session| {
        let place = over(rank(), [col("k")], [desc(col("x")), asc(col("id"))]);
        let sum = over(sum(col("m")), [col("k")], []);
        let bound = WindowFrameBound::Preceding(2u64.into());
        let three =
            WindowFrame::new_bounds(WindowFrameUnits::Rows, bound, WindowFrameBound::CurrentRow);
        let most = over_frame(max(col("s")), [], [asc(col("id"))], three);
        let before = over(lag(col("s"), Some(1), None), [col("k")], [asc(col("id"))]);
        let columns =
            [place.alias("place"), sum.alias("sum"), most.alias("most"), before.alias("before")];
        session
            .table("t")?
            .select([col("id"), col("k")].into_iter().chain(columns))?
            .filter(col("place").lt(lit(9)))
    });
}

/// Where keys have few values, rows are not sorted: each finds its group.
#[test]
fn whole_partitions_are_groups() {
    for shape in [
        Shape::random(2500, 75),
        Shape::random(0, 76),
        Shape { values: Values::AllNull, ..Shape::random(40, 77) },
    ] {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for (keys, are_few) in [
            ("i8", true),
            ("b, i8 % 3", true),
            ("k", false),
            ("s, k2", false),
            ("m38, i64, d", false),
        ] {
            let query = format!(
                "SELECT id, count(*) OVER w AS a, sum(i64 / 4096) OVER w AS b, avg(m) OVER w AS c, \
                 min(s) OVER w AS d, max(m38) OVER w AS e, sum(x) FILTER (WHERE b) OVER w AS f, \
                 stddev(x) OVER w AS g, bit_or(i32) OVER w AS h, min(ts) OVER w AS i \
                 FROM t WHERE k IS NULL OR k <> 2 WINDOW w AS (PARTITION BY {keys})"
            );
            pair.check(&query);
            pair.gpu().start_profile();
            pair.check(&format!(
                "SELECT id, count(s) OVER w AS a, sum(i64 / 4096) OVER w AS b, avg(m) OVER w AS c, \
                 max(m38) OVER w AS d FROM t WINDOW w AS (PARTITION BY {keys})"
            ));
            let profile = pair.gpu().take_profile().expect("a profile ends");
            let sorts = profile.iter().find(|kernel| {
                kernel.name.starts_with("sort") || kernel.name.starts_with("window")
            });
            assert!(!are_few || sorts.is_none(), "{keys}: {sorts:?}");
        }
        pair.check("SELECT id, rank() OVER (PARTITION BY k ORDER BY id) AS a, sum(id) OVER (PARTITION BY k) AS b, max(id) OVER (PARTITION BY k2) AS c FROM t");
    }
}

#[test]
fn whole_partitions_have_aggregates_of_distinct_values_and_in_an_order() {
    for shape in [
        Shape::random(2500, 71),
        Shape::random(0, 72),
        Shape { values: Values::AllNull, ..Shape::random(40, 73) },
    ] {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for over in ["PARTITION BY k", "PARTITION BY s, k2", ""] {
            let check = |call: &str| {
                pair.check(&format!(
                    "SELECT id, {call} OVER ({over}) AS v, count(*) OVER ({over}) AS n FROM t ORDER BY id"
                ))
            };
            check("count(DISTINCT s)");
            check("sum(DISTINCT w)");
            check("median(x)");
            check("corr(x, k)");
            check("regr_slope(x, k2)");
            check("bit_xor(i32)");
            check("percentile_cont(x, 0.3)");
        }
    }
    let pair = Pair::of(Shape::random(800, 74).batches());
    pair.check("SELECT id, median(x) FILTER (WHERE b) OVER (PARTITION BY k) AS v, lag(id) OVER (PARTITION BY k ORDER BY id) AS w FROM t ORDER BY id");
    pair.check("SELECT id FROM (SELECT id, x, median(x) OVER (PARTITION BY k) AS m FROM t) WHERE x > m ORDER BY id");
}
