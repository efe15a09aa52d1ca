//! Texts of values, and values of texts.

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::{ArrayRef, Float32Array, Float64Array, RecordBatch, StringArray};

use crate::differential::Pair;
use crate::tables::Shape;

/// Numbers of every magnitude, from a fixed seed.
fn bits() -> impl Iterator<Item = u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> Vec<RecordBatch> {
    vec![RecordBatch::try_from_iter(columns).expect("columns of one length")]
}

#[test]
fn floats_print_the_shortest_digits_that_read_back() {
    let mut doubles: Vec<f64> = bits().take(3000).map(f64::from_bits).collect();
    doubles.extend(bits().take(1000).map(|b| (b % 100_000_000) as f64 / 1000.0));
    doubles.extend((-330..310).map(|e| format!("1e{e}").parse::<f64>().expect("a float")));
    doubles.extend(
        (0..64)
            .flat_map(|e| [f64::from_bits(e << 52), f64::from_bits((e << 52) + ((1 << 52) - 1)), 2f64.powi(e as i32)]),
    );
    let floats: Vec<f32> = bits().skip(7).take(doubles.len()).map(|b| f32::from_bits(b as u32)).collect();
    let columns: Vec<(&str, ArrayRef)> =
        vec![("x", Arc::new(Float64Array::from(doubles))), ("y", Arc::new(Float32Array::from(floats)))];
    let pair = Pair::of(batch(columns));
    pair.check("SELECT x::varchar AS x, y::varchar AS y FROM t");
    // What was printed is read as the same float.
    pair.check("SELECT x::varchar::double AS x, y::varchar::real AS y, y::varchar::double AS z FROM t");
}

#[test]
fn texts_of_floats_round_to_the_nearest() {
    let texts: Vec<String> = (bits().zip(bits().skip(1)).take(3000))
        .map(|(a, b)| {
            let exponent = (b % 700) as i64 - 350;
            match a % 3 {
                0 => format!("{}e{exponent}", a / 3),
                1 => format!("{}.{}", a % 1_000_000_007, b % 1_000_003),
                _ => format!("-0.{:019}e{}", b % 10_000_000_000_000_000_000, exponent / 2),
            }
        })
        .collect();
    let pair = Pair::of(batch(vec![("s", Arc::new(StringArray::from(texts)))]));
    pair.check("SELECT s::double AS x, s::real AS y FROM t");
}

#[test]
fn texts_of_every_type_and_back() {
    let pair = Pair::of(Shape::random(2500, 41).batches());
    let columns = ["i8", "u16", "i64", "u64", "f32", "x", "b", "m", "m38", "d", "ts", "ts_s", "ts_ns"];
    let list: Vec<_> = columns.iter().map(|c| format!("{c}::varchar AS {c}")).collect();
    pair.check(&format!("SELECT id, {} FROM t ORDER BY id", list.join(", ")));
    pair.check("SELECT id, i64::varchar::bigint AS a, x::varchar::double AS b, m::varchar::decimal(15,2) AS c FROM t ORDER BY id");
    pair.check(
        "SELECT id, d::varchar::date AS a, ts::varchar::timestamp AS b, b::varchar::boolean AS c FROM t ORDER BY id",
    );
    pair.check("SELECT id, s || '-' || k AS a, concat(d, ' ', m) AS b FROM t ORDER BY id");
    pair.check(
        "SELECT id, try_cast(s AS int) AS a, try_cast(sd AS double) AS b, try_cast(sl AS date) AS c FROM t ORDER BY id",
    );
    pair.check("SELECT k::varchar AS k, count(*) FROM t GROUP BY k::varchar ORDER BY 1");
    pair.check("SELECT id FROM t WHERE k::varchar LIKE '1%' ORDER BY id");
}

#[test]
fn a_cast_that_fails_names_the_text() {
    let pair = Pair::of(batch(vec![(
        "s",
        Arc::new(StringArray::from(vec!["1", "2", "a rather long text that is no number"])),
    )]));
    for target in ["int", "double", "decimal(10,2)", "date", "timestamp", "boolean"] {
        let error = pair.check_error(&format!("SELECT s::{target} AS e FROM t WHERE s > '2'"));
        assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{error:?}");
        assert!(error.to_string().contains("'a rather long text that is no number'"), "{error}");
    }
    // What no row asks for does not fail.
    pair.check("SELECT s::int AS i FROM t WHERE s < '3'");
    pair.check("SELECT CASE WHEN s < '3' THEN s::int ELSE 0 END AS i FROM t");
}

#[test]
fn casts_are_keys_and_arguments_of_every_operator() {
    let pair = Pair::of(Shape::random(6000, 43).batches());
    pair.check("SELECT (id % 3000)::varchar::int AS k, sum(id::varchar::bigint), max(x::varchar::double), count(*) FROM t GROUP BY 1");
    pair.check("SELECT id::varchar AS k, count(*) FROM t GROUP BY 1");
    pair.check("SELECT a.id FROM t a JOIN t b ON a.id::varchar = b.w::varchar WHERE a.id < 300");
    pair.check("SELECT a.id FROM t a JOIN t b ON a.id::varchar::int = b.k::varchar::int + 5");
    pair.check("SELECT id FROM t ORDER BY i64::varchar DESC, id LIMIT 50");
    pair.check("SELECT id, rank() OVER (PARTITION BY k::varchar ORDER BY d::varchar) AS r FROM t ORDER BY id");
    pair.check_error("SELECT k, sum(sl::int) FROM t GROUP BY k");
    pair.check_error("SELECT a.id FROM t a JOIN t b ON a.sl::int = b.k");
    pair.check_error("SELECT id FROM t WHERE sl::double > 0");
}
