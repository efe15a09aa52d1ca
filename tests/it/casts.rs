//! Texts of values, and values of texts.

mod times;

use std::sync::Arc;

use warpframe::ErrorKind;
use warpframe::arrow::array::{
    ArrayRef, Date64Array, Decimal128Array, Float32Array, Float64Array, RecordBatch, StringArray,
};

use crate::differential::{Cell, Pair, Rows, run};
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
    doubles.extend((0..64).flat_map(|e| {
        [f64::from_bits(e << 52), f64::from_bits((e << 52) + ((1 << 52) - 1)), 2f64.powi(e as i32)]
    }));
    let floats: Vec<f32> =
        bits().skip(7).take(doubles.len()).map(|b| f32::from_bits(b as u32)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("x", Arc::new(Float64Array::from(doubles))),
        ("y", Arc::new(Float32Array::from(floats))),
    ];
    let pair = Pair::of(batch(columns));
    pair.check("SELECT x::varchar AS x, y::varchar AS y FROM t");
    // What was printed is read as the same float.
    pair.check(
        "SELECT x::varchar::double AS x, y::varchar::real AS y, y::varchar::double AS z FROM t",
    );
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
    let columns =
        ["i8", "u16", "i64", "u64", "f32", "x", "b", "m", "m38", "d", "ts", "ts_s", "ts_ns"];
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

/// What both engines say of a query of one column or more.
fn both(pair: &Pair, sql: &str) -> [(&'static str, Vec<Vec<Cell>>); 2] {
    [("cpu", &pair.cpu), ("device", &pair.device)].map(|(name, session)| {
        let frame = run(session, sql).unwrap_or_else(|error| panic!("{name}: {error}\n  {sql}"));
        (name, Rows::of(&frame).rows)
    })
}

/// Digits of decimals of a precision: of every length, those around powers of two and ten among
/// them.
fn digits(precision: u32, count: usize) -> Vec<i128> {
    let most = 10i128.pow(precision) - 1;
    let mut digits: Vec<i128> = (bits().zip(bits().skip(1)).zip(bits().skip(2)))
        .take(count)
        .map(|((high, low), drop)| {
            let all = ((u128::from(high) << 64 | u128::from(low)) >> 1 >> (drop % 127)) as i128;
            let some = all % (most + 1);
            if drop & 1 << 40 == 0 { some } else { -some }
        })
        .collect();
    let near = |power: i128| [power - 1, power, power + 1, -power];
    digits.extend((0..127).flat_map(|e| near(1 << e)).filter(|digit| digit.abs() <= most));
    digits.extend(
        (0..precision).flat_map(|e| near(10i128.pow(e))).filter(|digit| digit.abs() <= most),
    );
    // Halfway between two doubles, or almost.
    digits.extend(
        (54..126)
            .flat_map(|e| near((1 << e) + (1 << (e - 53))))
            .filter(|digit| digit.abs() <= most),
    );
    digits
}

#[test]
fn decimals_become_the_nearest_floats() {
    for (precision, scale) in
        [(38u8, 0i8), (38, 2), (38, 10), (38, 22), (38, 23), (38, 37), (38, 38), (18, 4), (9, 2)]
    {
        let digits = digits(precision.into(), 1500);
        let decimals =
            Decimal128Array::from(digits.clone()).with_precision_and_scale(precision, scale);
        let decimals = decimals.expect("a precision and a scale");
        let pair = Pair::of(batch(vec![("m", Arc::new(decimals))]));
        for (name, found) in
            both(&pair, "SELECT m::double AS x, m::real AS y, [m]::double[] AS l FROM t")
        {
            for (row, digits) in found.iter().zip(&digits) {
                // Rust's parser yields the nearest float.
                let text = format!("{digits}e{}", -i32::from(scale));
                let (x, y): (f64, f32) =
                    (text.parse().expect("a number"), text.parse().expect("a number"));
                let expected =
                    [Cell::Float(x), Cell::Float(y.into()), Cell::Text(format!("[{x:?}]"))];
                let right = row[..2] == expected[..2];
                assert!(
                    right,
                    "{name}, {text} of decimal({precision}, {scale}): {row:?}, not {expected:?}"
                );
                let Cell::Text(list) = &row[2] else { panic!("a list") };
                assert_eq!(
                    list[1..list.len() - 1].parse::<f64>(),
                    Ok(x),
                    "{name}, {text} within a list"
                );
            }
        }
    }
}

#[test]
fn decimals_beside_doubles_are_their_nearest() {
    let decimals =
        Decimal128Array::from(vec![12345678901234567890, 9007199254740993, 10i128.pow(16) + 1]);
    let decimals = decimals.with_precision_and_scale(38, 2).expect("a precision and a scale");
    let doubles =
        Float64Array::from(vec![123456789012345678.90, 90071992547409.93, 100000000000000.01]);
    let pair = Pair::of(batch(vec![("m", Arc::new(decimals)), ("x", Arc::new(doubles))]));
    let sql = "SELECT m::double = x AS a, m::double IN (x, 1) AS b, m + x = 2 * x AS c, x - m = 0 AS d FROM t";
    for (name, found) in both(&pair, sql) {
        assert_eq!(found, vec![vec![Cell::Int(1); 4]; 3], "{name}");
    }
    // Constants, folded.
    let sql = "SELECT count(*) FROM t WHERE CAST(CAST(1 AS decimal(38, 37)) AS double) = CAST(1 AS double)";
    for (name, found) in both(&pair, sql) {
        assert_eq!(found, [[Cell::Int(3)]], "{name}");
    }
}

/// The number that a float's text is, times ten to a power, halves away from zero.
fn by_text(text: &str, scale: usize) -> Option<i128> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let zeros = "0".repeat(400);
    let point = 400 + whole.len() as i64 + exponent.parse::<i64>().ok()? + scale as i64;
    let digits = format!("{zeros}{whole}{fraction}{zeros}");
    let (kept, rest) = digits.split_at_checked(point.try_into().ok()?)?;
    let number = kept.parse::<i128>().ok()? + i128::from(rest.as_bytes()[0] >= b'5');
    Some(if negative { -number } else { number })
}

#[test]
fn floats_become_the_decimals_that_their_texts_are() {
    let mut doubles: Vec<f64> = (bits().zip(bits().skip(1)))
        .take(1200)
        .map(|(a, b)| {
            f64::from_bits(a >> 12 | (1023 + b % 140 - 60) << 52)
                * if b & 1 << 50 == 0 { 1.0 } else { -1.0 }
        })
        .collect();
    doubles.extend((0..2000).map(|n| f64::from(n) * 0.005));
    doubles.extend([
        0.0,
        -0.0,
        2.675,
        1.005,
        0.5,
        -0.5,
        1e15,
        1e22,
        4503599627370495.5,
        5e-324,
        f64::MAX,
        -1e300,
    ]);
    doubles.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    let floats: Vec<f32> = doubles.iter().map(|x| *x as f32).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("x", Arc::new(Float64Array::from(doubles.clone()))),
        ("u", Arc::new(Float32Array::from(floats.clone()))),
    ];
    let pair = Pair::of(batch(columns));
    let [(_, texts), _] = both(&pair, "SELECT x::varchar AS x, u::double::varchar AS u FROM t");
    let texted = |text: &Cell| match text {
        Cell::Text(text) => Some(text.clone()),
        _ => None,
    };
    for (precision, scale) in
        [(38u32, 0usize), (38, 2), (38, 15), (38, 25), (38, 38), (18, 2), (18, 10), (9, 4)]
    {
        let most = 10i128.pow(precision) - 1;
        let expected = |text: &Cell| match texted(text)
            .and_then(|text| by_text(&text, scale))
            .filter(|digits| digits.abs() <= most)
        {
            Some(digits) => Cell::Int(digits),
            None => Cell::Null,
        };
        let to = format!("decimal({precision}, {scale})");
        for (name, found) in
            both(&pair, &format!("SELECT TRY_CAST(x AS {to}), TRY_CAST(u AS {to}) FROM t"))
        {
            for (row, text) in found.iter().zip(&texts) {
                let right = [expected(&text[0]), expected(&text[1])];
                assert!(row[..] == right, "{name}, {text:?} as {to}: {row:?}, not {right:?}");
            }
        }
        let error = pair.check_error(&format!("SELECT CAST(x AS {to}) FROM t"));
        assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{error}");
    }
}

/// Arrow cuts milliseconds off towards 1970, and so makes another day of them than of timestamps.
#[test]
fn milliseconds_are_of_the_day_that_they_lie_in() {
    const DAY: i64 = 86_400_000;
    let times = [
        -1,
        0,
        1,
        -DAY,
        -DAY - 1,
        DAY - 1,
        i64::from(i32::MIN) * DAY,
        i64::from(i32::MAX) * DAY + 7,
    ];
    let days = [-1, 0, 0, -1, -2, 0, i32::MIN.into(), i32::MAX.into()].map(Cell::Int);
    let pair = Pair::of(batch(vec![("d", Arc::new(Date64Array::from(times.to_vec())))]));
    let sql = "SELECT CAST(d AS date) AS a, TRY_CAST(d AS date) AS b FROM t";
    for session in [&pair.cpu, &pair.device] {
        let rows = Rows::of(&run(session, sql).expect(sql)).rows;
        let found: Vec<_> = rows.iter().map(|row| row[0].clone()).collect();
        assert_eq!(found, days);
        assert!(rows.iter().all(|row| row[0] == row[1]));
    }
    let far = Pair::of(batch(vec![("d", Arc::new(Date64Array::from(vec![i64::MIN])))]));
    assert!(matches!(
        far.check_error("SELECT CAST(d AS date) FROM t").kind(),
        ErrorKind::Arithmetic { .. }
    ));
    let null =
        Rows::of(&run(&far.cpu, "SELECT TRY_CAST(d AS date) FROM t").expect("no error")).rows;
    assert_eq!(null, [[Cell::Null]]);
    far.check("SELECT TRY_CAST(d AS date) FROM t");
}

/// When this fails, arrow has mended what `host/casts.rs` mends.
#[test]
fn arrow_still_cuts_milliseconds_off() {
    let times: ArrayRef = Arc::new(Date64Array::from(vec![-1]));
    let days =
        warpframe::arrow::compute::cast(&times, &warpframe::arrow::datatypes::DataType::Date32);
    let days = days.expect("a cast that there is");
    assert_eq!(
        warpframe::arrow::util::display::array_value_to_string(&days, 0).expect("a day"),
        "1970-01-01"
    );
}
