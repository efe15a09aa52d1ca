//! Forms that users of DuckDB know, with the values that it gives.

mod absent;
mod aliases;
mod clauses;
mod everyday;
mod functions;
mod numbers;
mod operators;
mod readings;
mod stand_ins;
mod texts;

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::*;
use warpframe::arrow::compute::kernels::cast_utils::Parser;
use warpframe::arrow::datatypes::{DataType, Date32Type, Field, Int32Type, Int64Type, Schema};

use crate::differential::{Cell, Pair, Rows, builder, run};
use crate::tables::{Shape, columns};

/// Rows as texts between bars, on both sessions.
fn check_rows(pair: &Pair, sql: &str, expected: &[&str]) {
    pair.check(sql);
    for session in [&pair.cpu, &pair.device] {
        assert_eq!(rows_on(session, sql), expected, "{sql}");
    }
}

/// Rows as texts between bars.
fn rows_on(session: &warpframe::Session, sql: &str) -> Vec<String> {
    let shown = |cell: &Cell| match cell {
        Cell::Null => "-".to_string(),
        Cell::Int(number) => number.to_string(),
        Cell::Float(number) => number.to_string(),
        Cell::Text(text) => text.clone(),
    };
    let found = Rows::of(&run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}")));
    found.rows.iter().map(|row| row.iter().map(shown).collect::<Vec<_>>().join("|")).collect()
}

/// A table of texts, lists and times.
fn texts_and_lists() -> Pair {
    let day = |text: &str| Date32Type::parse(text).expect("a date");
    let days = [Some(day("2024-01-31")), Some(day("1969-12-31")), None, Some(day("2020-02-29"))];
    let lists = vec![
        Some(vec![Some(3), Some(1), Some(2), Some(1)]),
        Some(vec![]),
        None,
        Some(vec![None, Some(5), Some(5)]),
    ];
    let numbers = |values: [Option<i32>; 4]| Arc::new(Int32Array::from(values.to_vec()));
    let decimals = Decimal128Array::from(vec![Some(125), Some(-310), None, Some(0)]);
    let moments = vec![Some(1_706_695_201_250_000), Some(-1), None, Some(1_582_934_400_000_000)];
    Pair::of(columns(vec![
        ("k", numbers([Some(1), Some(2), Some(3), Some(4)]) as ArrayRef),
        ("a", numbers([Some(2), Some(3), None, Some(-7)])),
        ("b", numbers([Some(10), Some(20), None, Some(3)])),
        ("s", Arc::new(StringArray::from(vec![Some("abc"), Some("déf"), None, Some("")]))),
        ("x", Arc::new(Float64Array::from(vec![Some(1.5), Some(-2.5), None, Some(0.1)]))),
        ("d", Arc::new(Date32Array::from(days.to_vec()))),
        ("ts", Arc::new(TimestampMicrosecondArray::from(moments))),
        ("l", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))),
        ("m", Arc::new(decimals.with_precision_and_scale(5, 2).expect("they fit"))),
    ]))
}

/// A table of dates and numbers.
fn moments() -> Pair {
    let day = |text: &str| Date32Type::parse(text).expect("a date");
    let micros = |day: i32, seconds: i64| i64::from(day) * 86_400_000_000 + seconds * 1_000_000;
    let days = ["2024-01-31", "2024-02-29", "2020-01-01", "2023-11-30"].map(day);
    Pair::of(columns(vec![
        ("k", Arc::new(Int32Array::from(vec![Some(1), Some(-13), None, Some(25)])) as ArrayRef),
        ("d", Arc::new(Date32Array::from(days.to_vec()))),
        (
            "ts",
            Arc::new(TimestampMicrosecondArray::from(vec![
                Some(micros(days[0], 36_000)),
                Some(micros(day("1999-12-31"), 86_399)),
                Some(micros(days[2], 1)),
                None,
            ])),
        ),
        ("x", Arc::new(Float64Array::from(vec![Some(1.5), Some(-0.25), None, Some(0.1)]))),
    ]))
}

#[test]
fn intervals_are_of_numbers_of_rows() {
    let pair = moments();
    let texts = |exprs: &[&str]| {
        let casts: Vec<String> = (exprs.iter().enumerate())
            .map(|(at, expr)| format!("CAST({expr} AS VARCHAR) AS c{at}"))
            .collect();
        format!("SELECT {} FROM t", casts.join(", "))
    };
    check_rows(
        &pair,
        &texts(&[
            "d + INTERVAL (k) DAY",
            "d + INTERVAL k MONTH",
            "d - INTERVAL (k + 1) YEAR",
            "d + to_weeks(k)",
            "ts + INTERVAL (k) HOURS",
            "ts - to_minutes(k)",
        ]),
        &[
            "2024-02-01|2024-02-29|2022-01-31|2024-02-07|2024-01-31 11:00:00|2024-01-31 09:59:00",
            "2024-02-16|2023-01-29|2036-02-29|2023-11-30|1999-12-31 10:59:59|2000-01-01 00:12:59",
            "-|-|-|-|-|-",
            "2023-12-25|2025-12-30|1997-11-30|2024-05-23|-|-",
        ],
    );
    check_rows(
        &pair,
        &texts(&[
            "ts + to_seconds(x)",
            "ts + INTERVAL (x) SECOND",
            "ts + to_milliseconds(x)",
            "ts + INTERVAL (x) DAY",
            "d + INTERVAL (k) HOUR",
            "d - INTERVAL 90 MINUTE",
        ]),
        &[
            "2024-01-31 10:00:01.5|2024-01-31 10:00:01.5|2024-01-31 10:00:00.0015|\
             2024-02-01 10:00:00|2024-01-31 01:00:00|2024-01-30 22:30:00",
            "1999-12-31 23:59:58.75|1999-12-31 23:59:58.75|1999-12-31 23:59:58.99975|\
             1999-12-31 23:59:59|2024-02-28 11:00:00|2024-02-28 22:30:00",
            "-|-|-|-|-|2019-12-31 22:30:00",
            "-|-|-|-|2023-12-01 01:00:00|2023-11-29 22:30:00",
        ],
    );
    check_rows(
        &pair,
        &texts(&[
            "ts + INTERVAL '1 month 2 days' * x",
            "ts + INTERVAL 1 DAY * x",
            "ts + x * INTERVAL 1 MONTH",
            "d + INTERVAL '3 days' * k",
            "ts + INTERVAL '1 day' / 3",
            "ts + INTERVAL '1 month' / k",
        ]),
        &[
            "2024-03-18 10:00:00|2024-02-01 22:00:00|2024-03-15 10:00:00|2024-02-03|\
             2024-01-31 18:00:00|2024-02-29 10:00:00",
            "1999-12-23 23:59:59|1999-12-31 17:59:59|1999-12-24 11:59:59|2024-01-21|\
             2000-01-01 07:59:59|1999-12-29 16:36:54.4112",
            "-|-|-|-|2020-01-01 08:00:01|-",
            "-|-|-|2024-02-13|-|-",
        ],
    );
    check_rows(
        &pair,
        &texts(&["d + to_quarters(k)", "d + to_decades(k)", "d + INTERVAL (k) CENTURY"]),
        &[
            "2024-04-30|2034-01-31|2124-01-31",
            "2020-11-29|1894-02-28|0724-02-29",
            "-|-|-",
            "2030-02-28|2273-11-30|4523-11-30",
        ],
    );
}

#[test]
fn computed_intervals_run_where_constant_ones_do() {
    let pair = Pair::of(Shape::random(3000, 91).batches());
    pair.check_all(&[
        "SELECT id, d + INTERVAL (k) DAY, d - INTERVAL (k * 5) MONTH, ts + INTERVAL (k) HOUR FROM t",
        "SELECT id, ts_s - to_days(k2), ts_ms + to_months(k2), ts_ns + to_seconds(k) FROM t",
        "SELECT id, INTERVAL (k) DAY, to_hours(k2), INTERVAL '1 month 1 day 1 hour' * k FROM t",
        "SELECT id, INTERVAL '1 month 1 day 1 hour' * (k / 7.0), INTERVAL '1 day' / (k + 1) FROM t",
        "SELECT id FROM t WHERE d + INTERVAL (k) DAY > DATE '2000-01-01' AND ts < d + to_hours(k)",
        "SELECT max(d + to_days(k)) AS m, count(*) FROM t GROUP BY INTERVAL (k) WEEK",
        "SELECT t.id, u.id FROM t JOIN t u ON u.d = t.d + INTERVAL (t.k) DAY AND u.k = t.k",
        "SELECT id, make_date(2024, 1, 1) + INTERVAL (k) DAY FROM t",
    ]);
    for sql in [
        "SELECT d + to_days(id + 3000000000) FROM t",
        "SELECT ts + INTERVAL (id + 3000000000000000) HOUR FROM t",
        "SELECT ts + INTERVAL '1 day' / (k - k) FROM t",
        "SELECT INTERVAL '1 day' * (x / 0.0) FROM t",
    ] {
        let error = pair.check_error(sql);
        assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{sql}: {error:?}");
    }
    for (sql, says) in [
        ("SELECT d + INTERVAL (k) FROM t", "INTERVAL (k) DAY"),
        ("SELECT d + INTERVAL (k) DOW FROM t", "INTERVAL (k) DAY"),
        ("SELECT to_days() FROM t", "to_days takes a number"),
        ("SELECT to_seconds(s) FROM t", "multiplied by a number"),
        ("SELECT INTERVAL '1 day' * s FROM t", "multiplied by a number"),
    ] {
        let error = run(&pair.device, sql).expect_err(sql).to_string();
        assert!(error.contains(says) && !error.contains("Ident"), "{sql}: {error}");
    }
    let found = run(&pair.device, "SELECT INTERVAL (k) DAY, to_days(k) FROM t").expect("rows");
    assert_eq!(found.column_names(), ["INTERVAL (k) DAY", "to_days(k)"]);
}

#[test]
fn mode_is_the_most_frequent_value() {
    let strings =
        |values: &[Option<&str>]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let pair = Pair::of(columns(vec![
        ("g", Arc::new(Int64Array::from(vec![1, 1, 1, 1, 2, 2, 3, 3])) as ArrayRef),
        (
            "x",
            Arc::new(Int64Array::from(vec![
                Some(5),
                Some(7),
                Some(5),
                None,
                Some(4),
                Some(2),
                None,
                None,
            ])),
        ),
        ("y", Arc::new(Float64Array::from(vec![0.0, -0.0, 1.0, f64::NAN, 3.0, 3.0, 2.0, 1.0]))),
        ("s", strings(&[Some("b"), Some("a"), Some("b"), Some("a"), None, Some("é"), None, None])),
    ]))
    .and("r", Shape::random(4000, 92).batches());
    check_rows(
        &pair,
        "SELECT g, mode(x), mode(y), mode(s), count(*) FROM t GROUP BY g ORDER BY g",
        &["1|5|0|a|4", "2|2|3|é|2", "3|-|1|-|2"],
    );
    check_rows(&pair, "SELECT mode(x), mode(y), mode(s) FROM t", &["5|0|a"]);
    check_rows(
        &pair,
        "SELECT mode(x) FILTER (WHERE x > 5), mode(DISTINCT x), mode(x + g) FROM t",
        &["7|2|6"],
    );
    check_rows(&pair, "SELECT mode(x) FROM t WHERE g > 5", &["-"]);
    check_rows(
        &pair,
        "SELECT DISTINCT g, mode(x) OVER (PARTITION BY g) AS m FROM t ORDER BY g",
        &["1|5", "2|2", "3|-"],
    );
    pair.check_all(&[
        "SELECT k, mode(k2), mode(s), mode(d), mode(b), mode(x), mode(m), sum(id) FROM r GROUP BY k",
        "SELECT k + 1, mode(w), mode(ts) FROM r GROUP BY k + 1 HAVING mode(k2) > -3",
        "SELECT mode(k) FILTER (WHERE b), mode(k2) FROM r",
        "SELECT id, mode(k) OVER (PARTITION BY b), mode(k2) OVER () FROM r",
        "SELECT g, (SELECT mode(k2) FROM r) FROM t",
    ]);
    // By the definition.
    let sql = "SELECT k, mode(k2) AS m FROM r GROUP BY k";
    let long = "SELECT k, m FROM (SELECT k, k2 AS m, row_number() OVER (PARTITION BY k \
                ORDER BY count(*) DESC, k2) AS place FROM r WHERE k2 IS NOT NULL GROUP BY k, k2) \
                WHERE place = 1";
    let found = run(&pair.device, sql).expect("it ran a moment ago");
    pair.compare_unordered(&run(&pair.cpu, long).expect("its long form"), &found, sql);
    for (sql, says) in [
        ("SELECT g, mode(x) FROM t GROUP BY ROLLUP (g)", "mode with GROUPING SETS"),
        ("SELECT mode(x) OVER (ORDER BY g) FROM t", "whole partitions"),
        ("SELECT mode(x ORDER BY g) FROM t", "no ORDER BY"),
    ] {
        let error = run(&pair.device, sql).and_then(|_| run(&pair.cpu, sql)).expect_err(sql);
        assert!(error.to_string().contains(says), "{sql}: {error}");
    }
}

/// A table whose lists are full, null, empty, and of a null.
fn lists() -> Pair {
    let of = |values: Vec<Option<Vec<Option<i64>>>>| {
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(values)) as ArrayRef
    };
    let mut texts = ListBuilder::new(StringBuilder::new());
    for list in [Some(vec!["a"]), Some(vec!["b", "c", "d"]), None, Some(vec![])] {
        texts.append_option(list.map(|list| list.into_iter().map(Some)));
    }
    let fixed = FixedSizeListArray::from_iter_primitive::<Int64Type, _, _>(
        [Some(vec![Some(1), None]), None, Some(vec![Some(3), Some(4)]), None],
        2,
    );
    Pair::of(columns(vec![
        ("k", Arc::new(Int64Array::from(vec![1, 2, 3, 4])) as ArrayRef),
        ("l", of(vec![Some(vec![Some(1), Some(2)]), None, Some(vec![]), Some(vec![None])])),
        ("m", Arc::new(texts.finish())),
        ("f", Arc::new(fixed)),
    ]))
}

#[test]
fn left_joins_of_unnest_keep_rows_without_elements() {
    let pair = lists();
    let expected = ["1|1", "1|2", "2|-", "3|-", "4|-"];
    for join in [
        "LEFT JOIN unnest(t.l) AS u(x) ON true",
        "LEFT JOIN LATERAL unnest(l) AS u(x) ON (true)",
        "LEFT OUTER JOIN unnest(t.l) u(x) ON TRUE",
    ] {
        check_rows(&pair, &format!("SELECT k, x FROM t {join} ORDER BY k, x"), &expected);
    }
    check_rows(
        &pair,
        "SELECT k, x, y FROM t LEFT JOIN unnest(t.l, t.m) AS u(x, y) ON true ORDER BY k, x, y",
        &["1|1|a", "1|2|-", "2|-|b", "2|-|c", "2|-|d", "3|-|-", "4|-|-"],
    );
    check_rows(
        &pair,
        "SELECT k, x, y FROM t LEFT JOIN unnest(m) u(x) ON true LEFT JOIN unnest([x, 'z']) w(y) \
         ON true WHERE k > 1 ORDER BY k, x, y",
        &["2|b|b", "2|b|z", "2|c|c", "2|c|z", "2|d|d", "2|d|z", "3|-|z", "3|-|-", "4|-|z", "4|-|-"],
    );
    check_rows(
        &pair,
        "SELECT k, x FROM t LEFT JOIN unnest(list_filter(l, e -> e > 1)) u(x) ON true ORDER BY k",
        &["1|2", "2|-", "3|-", "4|-"],
    );
    check_rows(
        &pair,
        "SELECT k, x FROM t LEFT JOIN unnest(t.f) u(x) ON true ORDER BY k, x",
        &["1|1", "1|-", "2|-", "3|3", "3|4", "4|-"],
    );
    pair.check_all(&[
        "SELECT * FROM t LEFT JOIN unnest(t.l) AS u(x) ON true",
        "SELECT k, count(x) FROM t LEFT JOIN unnest(l) u(x) ON true GROUP BY k",
        "SELECT t.k, u.k, x FROM t LEFT JOIN unnest(t.l) e(x) ON true JOIN t u ON u.k = t.k",
    ]);
    let sql = "SELECT * FROM t LEFT JOIN unnest(t.l) e(v) ON v > 1";
    let error = run(&pair.device, sql).expect_err("a condition").to_string();
    assert!(error.contains("LEFT JOIN of UNNEST takes ON true"), "{error}");
}

#[test]
fn isnull_and_notnull_are_tests_behind_a_value() {
    let pair = texts_and_lists();
    check_rows(&pair, "SELECT k FROM t WHERE a ISNULL", &["3"]);
    check_rows(&pair, "SELECT k FROM t WHERE t.a notnull AND l[1] ISNULL ORDER BY k", &["2", "4"]);
    check_rows(
        &pair,
        "SELECT CASE WHEN k > 2 THEN a END ISNULL AS n, (a + 1) NOTNULL, NULL ISNULL FROM t \
         ORDER BY k",
        &["1|1|1", "1|1|1", "1|0|1", "0|1|1"],
    );
    // As names they are names.
    check_rows(
        &pair,
        "SELECT isnull, u.notnull FROM (SELECT k AS isnull, a AS notnull FROM t) AS u \
         WHERE isnull = 1",
        &["1|2"],
    );
    check_rows(&pair, "SELECT a \"isnull\" FROM t WHERE k = 1", &["2"]);
}

#[test]
fn frames_of_windows_leave_nothing_out() {
    let pair = Pair::of(Shape::random(300, 93).batches());
    let sql = "SELECT id, sum(id) OVER (ORDER BY id ROWS 2 PRECEDING EXCLUDE NO OTHERS) FROM t";
    pair.check(sql);
    let plain = run(&pair.cpu, &sql.replace("EXCLUDE NO OTHERS", "")).expect("a plain frame");
    pair.compare_unordered(&plain, &run(&pair.device, sql).expect("it ran a moment ago"), sql);
    for what in ["CURRENT ROW", "GROUP", "TIES"] {
        let sql = format!(
            "SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE {what}) FROM t"
        );
        let error = run(&pair.device, &sql).expect_err("rows left out");
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");
        assert!(error.to_string().contains(&format!("EXCLUDE {what}")), "{error}");
        assert!(error.location().is_some(), "{error}");
    }
    let sql = "SELECT sum(id) OVER (ORDER BY id ROWS 2 PRECEDING EXCLUDE id) FROM t";
    assert!(run(&pair.device, sql).expect_err("a column").to_string().contains("NO OTHERS"));
    assert!(run(&pair.device, "SELECT * EXCLUDE id FROM t").is_ok());
}

#[test]
fn summaries_show_columns_of_every_type() {
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(
        [Some([0xffu8, 0]), None, Some([1, 2])].into_iter(),
        2,
    );
    let bytes: [Option<&[u8]>; 3] = [Some(&[0xff, 0]), None, Some(b"ab")];
    let bytes = bytes.to_vec();
    let batches = columns(vec![
        ("b", Arc::new(BinaryArray::from(bytes.clone())) as ArrayRef),
        ("v", Arc::new(BinaryViewArray::from(bytes.clone()))),
        ("l", Arc::new(LargeBinaryArray::from(bytes))),
        ("f", Arc::new(fixed.expect("one width"))),
    ]);
    // Bytes become texts on the host.
    let session = builder().strict(false).build().expect("a device");
    session.register_batches("t", batches).expect("a table");
    session.register_batches("r", Shape::random(500, 94).batches()).expect("a table");
    let found = Rows::of(&run(&session, "SUMMARIZE t").expect("a summary"));
    let text = |text: &str| Cell::Text(text.into());
    for (row, expected) in found.rows.iter().zip(["6162", "6162", "6162", "0102"]) {
        assert_eq!((&row[2], &row[3]), (&text(expected), &text("ff00")), "{row:?}");
        assert_eq!(row[4], Cell::Int(2), "{row:?}");
    }
    let columns = session.table("r").expect("a table").schema().fields().len();
    assert_eq!(run(&session, "SUMMARIZE r").expect("a summary").num_rows(), columns);
    // Sums of so large decimals have more digits than these.
    let most = Decimal128Array::from(vec![10i128.pow(38) - 1; 3]);
    let most = most.with_precision_and_scale(38, 0).expect("38 digits");
    let field = Field::new("m", DataType::Decimal128(38, 0), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(schema, vec![Arc::new(most)]).expect("a batch");
    session.register_batches("m", vec![batch]).expect("a table");
    let found = Rows::of(&run(&session, "SUMMARIZE m").expect("a summary"));
    let near = matches!(found.rows[0][5], Cell::Float(mean) if (mean / 1e38 - 1.0).abs() < 1e-12);
    assert!(near, "{:?}", found.rows[0]);
}

#[test]
fn times_beyond_nanoseconds_are_cut_down_and_have_parts() {
    let day = |text: &str| i64::from(Date32Type::parse(text).expect("a date"));
    let days = ["1600-08-17", "2500-12-31", "0001-05-05", "9999-11-11", "2024-02-29"].map(day);
    let seconds: Vec<i64> = days.iter().map(|day| day * 86_400 + 40_000).collect();
    let times = |second: i64| seconds.iter().map(|at| Some(at * second)).collect::<Vec<_>>();
    let pair = Pair::of(columns(vec![
        ("d", Arc::new(Date32Array::from_iter_values(days.map(|day| day as i32))) as ArrayRef),
        ("s", Arc::new(TimestampSecondArray::from(times(1)))),
        ("ms", Arc::new(TimestampMillisecondArray::from(times(1_000)))),
        ("us", Arc::new(TimestampMicrosecondArray::from(times(1_000_000)))),
    ]));
    let parts = ["year", "quarter", "month", "week", "day"];
    let starts = |of: &str| {
        let cut =
            parts.map(|part| format!("CAST(CAST(date_trunc('{part}', {of}) AS DATE) AS VARCHAR)"));
        format!("SELECT {} FROM t ORDER BY us", cut.join(", "))
    };
    for of in ["d", "s", "ms", "us"] {
        check_rows(
            &pair,
            &starts(of),
            &[
                "0001-01-01|0001-04-01|0001-05-01|0001-04-30|0001-05-05",
                "1600-01-01|1600-07-01|1600-08-01|1600-08-14|1600-08-17",
                "2024-01-01|2024-01-01|2024-02-01|2024-02-26|2024-02-29",
                "2500-01-01|2500-10-01|2500-12-01|2500-12-27|2500-12-31",
                "9999-01-01|9999-10-01|9999-11-01|9999-11-08|9999-11-11",
            ],
        );
        let numbers = ["year", "month", "day", "dow", "doy", "week"]
            .map(|part| format!("CAST(date_part('{part}', {of}) AS BIGINT)"));
        check_rows(
            &pair,
            &format!("SELECT {} FROM t ORDER BY us", numbers.join(", ")),
            &[
                "1|5|5|6|125|18",
                "1600|8|17|4|230|33",
                "2024|2|29|4|60|9",
                "2500|12|31|5|365|52",
                "9999|11|11|4|315|45",
            ],
        );
    }
    pair.check_all(&[
        "SELECT date_trunc('hour', s), date_trunc('minute', ms), date_trunc('second', us) FROM t",
        "SELECT date_trunc('hour', d), year(d), hour(us), epoch(s) FROM t",
        "SELECT date_trunc('year', d) AS y, count(*) FROM t GROUP BY date_trunc('year', d)",
        "SELECT s FROM t WHERE date_trunc('month', s) = date_trunc('month', us)",
        "SELECT date_diff('month', d, s), date_diff('hour', ms, us) FROM t",
    ]);
    // Constants are computed on the host.
    let cell = |sql: &str| crate::differential::scalar(&pair.device, sql);
    for (sql, expected) in [
        ("SELECT CAST(date_trunc('year', DATE '1600-05-05') AS VARCHAR)", "1600-01-01 00:00:00"),
        (
            "SELECT CAST(date_trunc('week', arrow_cast('2500-12-31T10:00:00', \
             'Timestamp(Millisecond, None)')) AS VARCHAR)",
            "2500-12-27 00:00:00",
        ),
    ] {
        assert_eq!(cell(sql), Cell::Text(expected.into()), "{sql}");
    }
    let error = run(&pair.device, "SELECT date_trunc('month', 5) FROM t").expect_err("a number");
    assert!(error.to_string().contains("date_trunc takes a date"), "{error}");
}

#[test]
fn readers_of_a_query_see_the_same_random_numbers() {
    let pair = Pair::of(Shape::random(700, 95).batches());
    let zero =
        |session: &warpframe::Session, sql: &str| match crate::differential::scalar(session, sql) {
            Cell::Int(0) => true,
            Cell::Int(_) => false,
            other => panic!("{sql}: {other:?}"),
        };
    let differing = "count(*) FILTER (WHERE a.r <> b.r)";
    for session in [&pair.device, &pair.cpu] {
        for sql in [
            "WITH c AS (SELECT id, random() AS r FROM t) SELECT DIFFER FROM c a JOIN c b USING (id)",
            "WITH c AS MATERIALIZED (SELECT id, random() AS r FROM t WHERE k > 1) \
             SELECT DIFFER FROM c a JOIN (SELECT * FROM c WHERE id > 5) b ON a.id = b.id",
            "WITH c(id, r) AS (SELECT id, random() FROM t), q AS (SELECT * FROM c) \
             SELECT DIFFER FROM q a, c b WHERE a.id = b.id",
            "WITH c AS (SELECT random() AS r) SELECT DIFFER FROM c a, c b",
            "SELECT * FROM (WITH c AS (SELECT id, random() AS r FROM t) \
             SELECT count(*) - 700 FROM (SELECT r FROM c UNION SELECT r FROM c) u) AS q",
            "WITH c AS (SELECT id, random() AS r FROM t) \
             SELECT count(*) FROM c WHERE r NOT IN (SELECT r FROM c)",
            "WITH c AS (SELECT id, random() AS r FROM t), e AS (SELECT id, r + random() AS r FROM c) \
             SELECT count(*) FROM e a JOIN e b USING (id) JOIN c USING (id) \
             WHERE a.r <> b.r OR a.r < c.r OR a.r - c.r >= 1",
            "WITH c AS (SELECT id, random() AS r FROM t) \
             SELECT count(*) FROM c WHERE r > (SELECT max(r) FROM c)",
        ] {
            assert!(zero(session, &sql.replace("DIFFER", differing)), "{sql}");
        }
        for sql in [
            "WITH c AS NOT MATERIALIZED (SELECT id, random() AS r FROM t) \
             SELECT DIFFER FROM c a JOIN c b USING (id)",
            "SELECT DIFFER FROM (SELECT random() AS r FROM t) a, (SELECT random() AS r FROM t) b",
        ] {
            assert!(!zero(session, &sql.replace("DIFFER", differing)), "{sql}");
        }
        // Other numbers each time.
        let sql = "WITH c AS (SELECT random() AS r) SELECT a.r FROM c a, c b WHERE a.r = b.r";
        let frame = session.sql(sql).expect("a plan");
        let number = || Rows::of(&frame.collect().expect("a row")).rows[0][0].clone();
        assert_ne!(number(), number());
        assert!(frame.explain().expect("a plan").contains("random()"));
        // By way of verbs, too.
        let frame = session
            .sql("WITH c AS (SELECT id, random() AS r FROM t) SELECT a.r - b.r AS d FROM c a JOIN c b USING (id)")
            .and_then(|frame| frame.filter(warpframe::prelude::col("d").not_eq(0.0)))
            .and_then(|frame| frame.collect());
        assert_eq!(frame.expect("rows").num_rows(), 0);
    }
    // Each reading of a view has its own.
    for view in [
        "CREATE VIEW v AS SELECT id, r FROM (SELECT id, random() AS r FROM t) AS q",
        "CREATE VIEW w AS WITH c AS (SELECT id, random() AS r FROM t) \
         SELECT id, a.r, b.r AS same FROM c a JOIN c b USING (id)",
        "CREATE VIEW u AS SELECT id, a.r, a.same, b.r AS other FROM w a JOIN w b USING (id)",
    ] {
        pair.device.execute(view).expect("a view");
    }
    let of_views = |from: &str, differ: &str| {
        let sql = format!("SELECT count(*) FROM {from} WHERE {differ}");
        assert!(!zero(&pair.device, &sql), "{sql}");
        let sql = format!("WITH c AS (SELECT 1) SELECT count(*) FROM {from} WHERE {differ}");
        assert!(!zero(&pair.device, &sql), "{sql}");
    };
    of_views("v a JOIN v b USING (id)", "a.r <> b.r");
    of_views("w a JOIN w b USING (id)", "a.r <> b.r");
    of_views("u", "r <> other");
    of_views("u a JOIN u b USING (id)", "a.r <> b.r AND a.other <> b.other AND a.r <> b.other");
    for sql in [
        "SELECT count(*) FROM w WHERE r <> same",
        "SELECT count(*) FROM w a JOIN w b USING (id) WHERE a.r <> a.same OR b.r <> b.same",
        "SELECT count(*) FROM u WHERE r <> same",
    ] {
        assert!(zero(&pair.device, sql), "{sql}");
    }
    pair.check(
        "WITH c AS MATERIALIZED (SELECT id, k FROM t) SELECT * FROM c a JOIN c b USING (id)",
    );
    pair.check("WITH c AS NOT MATERIALIZED (SELECT id FROM t) SELECT id FROM c UNION ALL FROM c");
}

#[test]
fn more_functions_go_by_the_names_of_duckdb() {
    let texts = [Some("apple pie"), Some("Banana"), None, Some("Ärger 12"), Some("")];
    let pair = Pair::of(columns(vec![
        ("i", Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5])) as ArrayRef),
        ("s", Arc::new(StringViewArray::from(texts.to_vec()))),
        (
            "d",
            Arc::new(Date32Array::from(vec![
                Some(19_753),
                Some(19_416),
                None,
                Some(18_321),
                Some(0),
            ])),
        ),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true), None]))),
    ]));
    check_rows(
        &pair,
        "SELECT dayname(d), monthname(d), CAST(last_day(d) AS VARCHAR), isodow(d), isoyear(d) FROM t ORDER BY i",
        &[
            "Wednesday|January|2024-01-31|3|2024",
            "Tuesday|February|2023-02-28|2|2023",
            "-|-|-|-|-",
            "Saturday|February|2020-02-29|6|2020",
            "Thursday|January|1970-01-31|4|1970",
        ],
    );
    check_rows(
        &pair,
        "SELECT regexp_extract(s, '[a-z]+'), regexp_extract(s, '([a-z])([a-z]+)', 2), \
         if(i > 2, 'big', 'small'), xor(i, 6), sign(3 - i) FROM t ORDER BY i",
        &[
            "apple|pple|small|7|1",
            "anana|nana|small|4|1",
            "-|-|big|5|0",
            "rger|ger|big|2|-1",
            "||big|3|-1",
        ],
    );
    check_rows(
        &pair,
        "SELECT count_if(b), countif(i > 1) FILTER (WHERE i < 5), group_concat(s ORDER BY i), \
         listagg(s, '-' ORDER BY i DESC), variance(i) FROM t",
        &["2|3|apple pie,Banana,Ärger 12,|-Ärger 12-Banana-apple pie|2.5"],
    );
    check_rows(
        &pair,
        "SELECT struct_extract(struct_pack(a := i, b := s), 'a') + 1_000, string_split(s, ' ')[1], \
         s SIMILAR TO '[a-z]*', s SIMILAR TO '%a' FROM t ORDER BY i LIMIT 3",
        &["1001|apple|0|0", "1002|Banana|0|1", "1003|-|-|-"],
    );
    pair.check_all(&[
        "SELECT b, i, grouping_id(b, i), count(*) FROM t GROUP BY ROLLUP (b, i)",
        "SELECT d::TIMESTAMP, d::VARCHAR, d, i::INT, i::DOUBLE, (i + 1)::INT, (i + 1)::SMALLINT FROM t",
        "SELECT count_if(b) OVER (ORDER BY i) FROM t",
    ]);
    let found = run(&pair.device, "SELECT d::TIMESTAMP, d::VARCHAR, d FROM t").expect("rows");
    assert_eq!(found.column_names(), ["d::TIMESTAMP", "d::VARCHAR", "d"]);
    for (sql, says) in [
        ("SELECT if(b) FROM t", "if takes a condition"),
        ("SELECT regexp_extract(s, s) FROM t", "a constant pattern"),
        ("SELECT struct_pack(1) FROM t", "struct_pack takes named values"),
        ("SELECT count_if() FROM t", "count_if takes a condition"),
    ] {
        let error = run(&pair.device, sql).expect_err(sql);
        assert!(error.to_string().contains(says), "{sql}: {error}");
        assert!(error.location().is_some(), "{sql}");
    }
}
