//! Values and arrays at the edges: extremes of types, long strings, unusual encodings, columns that
//! begin in the middle.

use std::sync::Arc;

use warpframe::arrow::array::*;
use warpframe::arrow::buffer::NullBuffer;
use warpframe::arrow::datatypes::{DataType, Field, Int8Type, Int64Type, Schema, UInt16Type};

use crate::differential::{Agreement, Pair, builder, run};
use crate::tables::{Shape, columns};

fn extremes() -> Pair {
    let rows: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int32Array::from_iter_values(0..8))),
        (
            "a",
            Arc::new(Int8Array::from(vec![
                Some(i8::MIN),
                Some(i8::MAX),
                Some(-1),
                Some(0),
                Some(1),
                None,
                Some(i8::MIN),
                Some(i8::MAX),
            ])),
        ),
        (
            "c",
            Arc::new(Int32Array::from(vec![
                Some(i32::MIN),
                Some(i32::MAX),
                Some(-1),
                Some(0),
                Some(1),
                None,
                Some(i32::MIN),
                Some(i32::MAX),
            ])),
        ),
        (
            "i",
            Arc::new(Int64Array::from(vec![
                Some(i64::MIN),
                Some(i64::MAX),
                Some(-1),
                Some(0),
                Some(1),
                None,
                Some(i64::MIN),
                Some(i64::MAX),
            ])),
        ),
        (
            "u",
            Arc::new(UInt64Array::from(vec![
                Some(u64::MIN),
                Some(u64::MAX),
                Some(1 << 63),
                Some(0),
                Some(1),
                None,
                Some(1 << 63),
                Some(u64::MAX),
            ])),
        ),
        (
            "f",
            Arc::new(Float64Array::from(vec![
                Some(f64::MIN),
                Some(f64::MAX),
                Some(5e-324),
                Some(-0.0),
                Some(f64::NAN),
                None,
                Some(-5e-324),
                Some(0.0),
            ])),
        ),
        (
            "h",
            Arc::new(Float32Array::from(vec![
                Some(f32::MIN),
                Some(f32::MAX),
                Some(1e-45),
                Some(-0.0),
                Some(f32::NAN),
                None,
                Some(-1e-45),
                Some(0.0),
            ])),
        ),
        (
            "d",
            Arc::new(Date32Array::from(vec![
                Some(-719_162),
                Some(2_932_896),
                Some(-1),
                Some(0),
                Some(11_016),
                None,
                Some(-719_162),
                Some(1),
            ])),
        ),
        ("m", {
            let top = 10i128.pow(38) - 1;
            let values = vec![
                Some(top),
                Some(-top),
                Some(0),
                Some(1),
                Some(-1),
                None,
                Some(top),
                Some(1 << 64),
            ];
            Arc::new(
                Decimal128Array::from(values)
                    .with_precision_and_scale(38, 2)
                    .expect("a legal decimal"),
            )
        }),
        (
            "ts",
            Arc::new(
                TimestampMicrosecondArray::from(vec![
                    Some(-1),
                    Some(0),
                    Some(253_402_300_799_999_999),
                    Some(-62_135_596_800_000_000),
                    Some(951_782_400_000_000),
                    None,
                    Some(1),
                    Some(86_399_999_999),
                ])
                .with_timezone("UTC"),
            ),
        ),
    ];
    Pair::of(columns(rows))
}

#[test]
fn extremes_of_types_are_keys_and_values_like_others() {
    let pair = extremes();
    for column in ["a", "c", "i", "u", "f", "h", "d", "m", "ts"] {
        pair.check(&format!("SELECT {column}, count(*), max(id) FROM t GROUP BY {column}"));
        pair.check(&format!("SELECT DISTINCT {column} FROM t"));
        pair.check(&format!(
            "SELECT x.id, y.id AS other FROM t x JOIN t y ON x.{column} = y.{column}"
        ));
        pair.check(&format!("SELECT id, {column} FROM t ORDER BY {column} DESC, id"));
        pair.check(&format!("SELECT id, {column} FROM t ORDER BY {column} NULLS FIRST, id DESC"));
        pair.check(&format!("SELECT min({column}), max({column}), count({column}) FROM t"));
        pair.check(&format!(
            "SELECT x.id FROM t x JOIN t y ON x.{column} = y.{column} AND x.id = y.id"
        ));
        pair.check(&format!(
            "SELECT id FROM t WHERE {column} >= (CASE WHEN id > 3 THEN {column} END) ORDER BY id"
        ));
    }
    pair.check_all(&[
        "SELECT a, i, count(*) FROM t GROUP BY a, i",
        "SELECT i, u, f, count(*) FROM t GROUP BY i, u, f",
        "SELECT id % 2 AS k, min(i), max(i), min(u), max(u), min(m), max(m), min(d), max(ts) FROM t GROUP BY id % 2",
        "SELECT id FROM t ORDER BY i DESC NULLS LAST, u, id",
    ]);
}

#[test]
fn arithmetic_at_the_edges_ends_as_on_the_cpu() {
    let pair = extremes();
    let mut both = 0;
    for expression in [
        "i + 1",
        "i - 1",
        "i * 2",
        "-i",
        "abs(i)",
        "i / -1",
        "i % -1",
        "i / 2",
        "c + c",
        "c * c",
        "-c",
        "c / -1",
        "c % -1",
        "a + a",
        "a * a",
        "-a",
        "a / CAST(-1 AS tinyint)",
        "abs(a)",
        "u + 1",
        "u * 2",
        "u - 1",
        "u / 2",
        "u::bigint",
        "i::int",
        "c::smallint",
        "i::double",
        "u::double",
        "u::real",
        "f::bigint",
        "f::real",
        "h::int",
        "f + f",
        "f * f",
        "f / f * 0 + 1",
        "m + m",
        "m * 10",
        "m - 1",
        "-m",
        "abs(m)",
        "m::double",
        "m::decimal(38,3)",
        "m::decimal(20,2)",
        "m / 3",
        "round(f)",
        "floor(f)",
        "d + 1",
        "d + INTERVAL '1' DAY",
        "extract(year FROM d)",
        "extract(year FROM ts)",
        "date_trunc('month', ts)",
        "extract(second FROM ts)",
        "try_cast(i AS int)",
        "try_cast(f AS bigint)",
        "try_cast(u AS bigint)",
        "try_cast(m AS int)",
    ] {
        for id in 0..6 {
            // The row alone, so that one row's failure hides no other's.
            let sql = format!("SELECT {expression} AS e FROM t WHERE id = {id}");
            both += usize::from(pair.agreement(&sql) == Agreement::Errors);
        }
    }
    assert!(both > 0, "some of these overflow");
}

#[test]
fn sums_of_wide_integers_in_every_way_of_grouping() {
    let rows = 9000;
    let sign = |i: i64| if i % 2 == 0 { 1 } else { -1 };
    let wide: Int64Array = (0..rows).map(|i| sign(i) * ((1 << 61) + i)).collect();
    // All of them are more than an i64 holds.
    let natural: UInt64Array = (0..rows as u64).map(|i| (1 << 50) + i % 7).collect();
    let money = Decimal128Array::from_iter_values(
        (0..rows).map(|i| i128::from(i - 100) * 99_999_999_999_999),
    );
    let table: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("i", Arc::new(wide)),
        ("u", Arc::new(natural)),
        ("m", Arc::new(money.with_precision_and_scale(18, 4).expect("a legal decimal"))),
    ];
    let pair = Pair::of(columns(table));
    let list = "sum(i), sum(u), sum(m), avg(m), avg(i), min(i), max(u), count(*)";
    pair.check_all(&[
        &format!("SELECT {list} FROM t"),
        &format!("SELECT id % 3 AS k, {list} FROM t GROUP BY id % 3"),
        "SELECT id % 3 AS k, sum(i), sum(u), sum(m), count(*) FROM t GROUP BY id % 3",
        &format!("SELECT id % 5000 AS k, {list} FROM t GROUP BY id % 5000"),
        &format!("SELECT i, {list} FROM t GROUP BY i"),
    ]);
}

#[test]
fn long_strings_pass_through_every_operator_but_order() {
    let long = |c: &str| c.repeat(3 << 20);
    let texts = [
        Some(long("a")),
        Some(long("b")),
        None,
        Some(format!("{}!", long("a"))),
        Some(long("a")),
        Some("é".repeat(500)),
    ];
    let table: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int32Array::from_iter_values(0..6))),
        ("s", Arc::new(StringArray::from(texts.to_vec()))),
        ("v", Arc::new(StringViewArray::from_iter(texts.iter().map(|t| t.as_deref())))),
    ];
    let pair = Pair::of(columns(table));
    pair.check_all(&[
        "SELECT id, s FROM t WHERE length(s) > 1000 ORDER BY id",
        "SELECT s, v, count(*) FROM t GROUP BY s, v",
        "SELECT DISTINCT v FROM t",
        "SELECT x.id, y.id AS other, y.s FROM t x JOIN t y ON x.s = y.v",
        "SELECT id, octet_length(v) AS n, right(s, 3) AS r FROM t WHERE s LIKE '%a!' OR v < 'b'",
        "SELECT s FROM t UNION ALL SELECT v FROM t",
    ]);
}

#[test]
fn order_of_strings_too_long_for_the_device_is_left_to_the_cpu() {
    let text = |i: usize| format!("{}{}", "common beginning ".repeat(40), i * 7919 % 3000);
    let table = || -> Vec<(&str, ArrayRef)> {
        vec![
            ("id", Arc::new(Int32Array::from_iter_values(0..3000))),
            ("s", Arc::new(StringArray::from_iter_values((0..3000).map(text)))),
        ]
    };
    let pair = Pair::with(builder().strict(false)).and("t", columns(table()));
    let sql = "SELECT id, s FROM t ORDER BY s, id";
    let before = pair.gpu().counters().fallbacks;
    let (expected, found) =
        (run(&pair.cpu, sql).expect("it runs"), run(&pair.device, sql).expect("it runs"));
    assert!(pair.gpu().counters().fallbacks > before, "{sql}");
    pair.rows_agree(&expected, &found, sql);

    // Where strings are compared and not sorted, their length does not matter.
    let pair = Pair::of(columns(table()));
    pair.check("SELECT id % 7 AS k, min(s), max(s) FROM t GROUP BY id % 7");
    pair.check("SELECT min(s), max(s), count(*) FROM t WHERE id > 10");
}

#[test]
fn dictionaries_of_every_kind_and_one_a_batch() {
    let batch = |keys: ArrayRef, other: ArrayRef, ids: std::ops::Range<i32>| {
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int32, false),
            Field::new("s", keys.data_type().clone(), true),
            Field::new("v", other.data_type().clone(), true),
        ]);
        RecordBatch::try_new(
            Arc::new(schema),
            vec![Arc::new(Int32Array::from_iter_values(ids)), keys, other],
        )
        .expect("one length")
    };
    // Entries that are null, repeated, unused, out of order; keys under nulls that mean nothing.
    let small = |keys: Vec<i8>, valid: Vec<bool>, values: Vec<Option<&str>>| -> ArrayRef {
        let keys = PrimitiveArray::<Int8Type>::new(keys.into(), Some(NullBuffer::from(valid)));
        Arc::new(DictionaryArray::new(keys, Arc::new(StringArray::from(values))))
    };
    let large = |keys: Vec<Option<u16>>, values: Vec<&str>| -> ArrayRef {
        let keys = PrimitiveArray::<UInt16Type>::from(keys);
        Arc::new(DictionaryArray::new(keys, Arc::new(LargeStringArray::from(values))))
    };
    let one = batch(
        small(
            vec![2, 1, 0, 0, 3],
            vec![true, true, true, false, true],
            vec![Some("b"), None, Some("é"), Some("b")],
        ),
        large(
            vec![Some(1), Some(0), None, Some(1), Some(2)],
            vec!["x", "a string of more than twelve", ""],
        ),
        0..5,
    );
    let two = batch(
        small(vec![0, 0, 1], vec![true, false, true], vec![Some("thirteen byte"), Some("b")]),
        large(vec![Some(0), Some(0), Some(0)], vec!["a string of more than twelve"]),
        5..8,
    );
    let three = batch(
        small(vec![0, 0], vec![false, false], vec![]),
        large(vec![None, None], vec![]),
        8..10,
    );
    for batches in [
        vec![one.clone()],
        vec![one.clone(), two.clone(), three.clone()],
        vec![three.clone()],
        vec![two.slice(1, 2), one.slice(2, 3)],
    ] {
        let pair = Pair::of(batches).from("dictionaries");
        pair.check_all(&[
            "SELECT id, s, v, s LIKE '%é%' AS e FROM t WHERE id >= 0",
            "SELECT s, count(*) FROM t GROUP BY s",
            "SELECT v, s, count(*), max(id) FROM t GROUP BY v, s",
            "SELECT id FROM t ORDER BY s DESC, v, id",
            "SELECT id FROM t WHERE s = 'b' OR v LIKE 'a%' ORDER BY id",
            "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.s = b.s",
            "SELECT min(s), max(v), min(v) FROM t",
            "SELECT id FROM t WHERE s IS NULL ORDER BY id",
        ]);
    }
}

#[test]
fn tables_that_begin_in_the_middle() {
    let pair = Pair::of(Shape::random(5000, 111).batches());
    // The middle of a frame, as a table of its own.
    let sql = "SELECT * FROM t ORDER BY id LIMIT 2500 OFFSET 1037";
    for session in [&pair.cpu, &pair.device] {
        session
            .register_table("middle", &run(session, sql).expect("it runs"))
            .expect("it registers");
    }
    let views = [
        "middle",
        "(SELECT * FROM t ORDER BY id LIMIT 2500 OFFSET 1037)",
        "(SELECT * FROM t ORDER BY sv, x, id LIMIT 2000 OFFSET 33)",
    ];
    for view in views {
        for query in [
            "SELECT id, s, sv, sd, b, x, m38 FROM {} q WHERE k > 2 ORDER BY id",
            "SELECT sl, count(*), sum(x), max(sv), sum(spread), min(m38) FROM {} q GROUP BY sl",
            "SELECT k, b, count(x), max(s), sum(spread) FROM {} q GROUP BY k, b",
            "SELECT sv, w, max(f64) FROM {} q GROUP BY sv, w",
            "SELECT id FROM {} q ORDER BY sv DESC, m, id LIMIT 100 OFFSET 3",
            "SELECT a.id, b.id AS other FROM {} a JOIN {} b ON a.sl = b.sl AND a.k = b.k",
            "SELECT a.id, t.s FROM {} a JOIN t ON a.id = t.id + 1",
            "SELECT sum(x), min(sv), max(m38), avg(m), count(b) FROM {} q",
            "SELECT s FROM {} q UNION ALL SELECT sd FROM {} r",
        ] {
            pair.check(&query.replace("{}", view));
        }
    }
}

#[test]
fn aggregates_of_nothing() {
    let pair =
        Pair::of(Shape::random(200, 112).batches()).and("empty", Shape::random(0, 113).batches());
    for from in [
        "empty",
        "t WHERE id < 0",
        "(SELECT * FROM t ORDER BY id LIMIT 10 OFFSET 300)",
        "t JOIN empty USING (id)",
    ] {
        let columns = match from.contains("JOIN") {
            true => {
                "count(*), sum(id), min(t.sv), max(t.m38), avg(t.m), sum(t.spread), max(t.s), min(t.f64)"
            }
            false => {
                "count(*), sum(id), min(sv), max(m38), avg(m), sum(spread), max(s), min(f64), max(sd)"
            }
        };
        pair.check(&format!("SELECT {columns} FROM {from}"));
        pair.check(&format!("SELECT id, {columns} FROM {from} GROUP BY id"));
        pair.check(&format!("SELECT count(*) FROM (SELECT {columns} FROM {from})"));
    }
}

#[test]
fn more_groups_than_the_first_table_holds() {
    let rows = 1_300_000;
    let sparse = |i: i64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15u64 as i64);
    let table: Vec<(&str, ArrayRef)> =
        vec![("k", Arc::new(PrimitiveArray::<Int64Type>::from_iter_values((0..rows).map(sparse))))];
    let pair = Pair::of(columns(table));
    assert_eq!(
        crate::differential::scalar(
            &pair.device,
            "SELECT count(*) FROM (SELECT k, count(*) AS n FROM t GROUP BY k) WHERE n = 1"
        ),
        crate::differential::Cell::Int(rows.into())
    );
}

#[test]
fn time_zones_count_where_clocks_are_read() {
    let instants: Vec<Option<i64>> = (0..400)
        .map(|i| (i % 9 != 0).then_some(i * 3_600_000_000 * 37 - 200_000_000_000_000))
        .collect();
    let make = |zone: &str| {
        Arc::new(TimestampMicrosecondArray::from(instants.clone()).with_timezone(zone)) as ArrayRef
    };
    let pair = Pair::of(columns(vec![
        ("id", Arc::new(Int32Array::from_iter_values(0..400))),
        ("utc", make("UTC")),
        ("ahead", make("+05:30")),
        ("plain", Arc::new(TimestampMicrosecondArray::from(instants.clone()))),
    ]));
    let mut ran = 0;
    for expression in [
        "utc = ahead",
        "utc < plain",
        "ahead > plain",
        "extract(hour FROM ahead)",
        "extract(day FROM utc)",
        "date_trunc('day', ahead)",
        "date_trunc('hour', utc)",
        "CAST(ahead AS date)",
        "CAST(utc AS date)",
        "CAST(ahead AS timestamp)",
        "CAST(plain AS date)",
        "ahead + INTERVAL '1' DAY",
        "utc + INTERVAL '1' MONTH",
        "coalesce(utc, ahead)",
        "CASE WHEN id > 7 THEN ahead END",
    ] {
        ran += usize::from(matches!(
            pair.agreement(&format!("SELECT id, {expression} AS e FROM t ORDER BY id")),
            Agreement::Rows(_)
        ));
    }
    assert!(ran > 5, "{ran} of these run on the device");
    pair.check_all(&[
        "SELECT ahead, count(*) FROM t GROUP BY ahead",
        "SELECT id FROM t ORDER BY ahead DESC, id",
        "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.utc = b.ahead",
        "SELECT min(ahead), max(utc) FROM t",
    ]);
}
