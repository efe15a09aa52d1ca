//! Frames by distances of values, of keys of every type at the ends of their range, with nulls,
//! against brute force.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use warpframe::arrow::array::*;
use warpframe::arrow::compute::cast;
use warpframe::arrow::datatypes::{DataType, TimeUnit};

use crate::differential::{Cell, Pair, Rows, run};
use crate::tables::columns;

/// A type of keys, whose values count whole numbers, and how a distance of so many is written.
struct Kind {
    dtype: DataType,
    least: i128,
    greatest: i128,
    distance: fn(i128) -> String,
    /// Distances that its literals reach.
    distances: &'static [i128],
}

fn kinds() -> Vec<Kind> {
    use DataType::*;
    const FEW: &[i128] = &[0, 1, 3, 100];
    let kind = |dtype, least, greatest, distance, distances| Kind {
        dtype,
        least,
        greatest,
        distance,
        distances,
    };
    let plain = |distance: i128| distance.to_string();
    let mut kinds = vec![
        kind(Int8, i8::MIN.into(), i8::MAX.into(), plain, FEW),
        kind(Int16, i16::MIN.into(), i16::MAX.into(), plain, FEW),
        kind(Int32, i32::MIN.into(), i32::MAX.into(), plain, FEW),
        kind(Int64, i64::MIN.into(), i64::MAX.into(), plain, &[0, 1, 3, 1 << 62]),
        kind(UInt8, 0, u8::MAX.into(), plain, FEW),
        kind(UInt16, 0, u16::MAX.into(), plain, FEW),
        kind(UInt32, 0, u32::MAX.into(), plain, FEW),
        kind(UInt64, 0, u64::MAX.into(), plain, &[0, 1, 3, 1 << 62]),
        kind(Decimal128(9, 0), -(10i128.pow(9) - 1), 10i128.pow(9) - 1, plain, FEW),
        kind(Decimal128(38, 0), -(10i128.pow(38) - 1), 10i128.pow(38) - 1, plain, FEW),
        kind(Date32, -90_000_000, 90_000_000, |days| format!("INTERVAL '{days} days'"), FEW),
    ];
    let seconds: fn(i128) -> String = |by| format!("INTERVAL '{by} seconds'");
    let milliseconds: fn(i128) -> String = |by| format!("INTERVAL '{by} milliseconds'");
    let microseconds: fn(i128) -> String = |by| format!("INTERVAL '{by} microseconds'");
    let nanoseconds: fn(i128) -> String = |by| format!("INTERVAL '{by} nanoseconds'");
    for (unit, distance) in [
        (TimeUnit::Second, seconds),
        (TimeUnit::Millisecond, milliseconds),
        (TimeUnit::Microsecond, microseconds),
        (TimeUnit::Nanosecond, nanoseconds),
    ] {
        kinds.push(kind(Timestamp(unit, None), i64::MIN.into(), i64::MAX.into(), distance, FEW));
    }
    kinds
}

fn array(dtype: &DataType, values: &[Option<i128>]) -> ArrayRef {
    match dtype {
        DataType::Decimal128(precision, scale) => Arc::new(
            Decimal128Array::from(values.to_vec())
                .with_precision_and_scale(*precision, *scale)
                .expect("a legal decimal"),
        ),
        DataType::UInt64 => {
            Arc::new(values.iter().map(|v| v.map(|v| v as u64)).collect::<UInt64Array>())
        }
        DataType::Date32 => {
            Arc::new(values.iter().map(|v| v.map(|v| v as i32)).collect::<Date32Array>())
        }
        dtype => {
            let numbers: Int64Array = values.iter().map(|v| v.map(|v| v as i64)).collect();
            cast(&numbers, dtype).expect("values of the type")
        }
    }
}

/// An end of a frame: a signed distance along the order, or none.
type End = Option<i128>;

/// Which rows are in the frame of row `at`: nulls are peers of nulls, and lie before or behind all
/// others.
fn frame(
    keys: &[Option<i128>],
    at: usize,
    (start, end): (End, End),
    descending: bool,
    nulls_first: bool,
) -> Vec<usize> {
    // Places along the order.
    let along = |key: i128| if descending { -key } else { key };
    let inside = |row: usize| match (keys[at], keys[row]) {
        (None, None) => true,
        // Of an end without a distance all is inside, as far as the order goes.
        (None, Some(_)) => {
            if nulls_first {
                end.is_none()
            } else {
                start.is_none()
            }
        }
        (Some(_), None) => {
            if nulls_first {
                start.is_none()
            } else {
                end.is_none()
            }
        }
        (Some(own), Some(key)) => {
            let by = along(key).saturating_sub(along(own));
            start.is_none_or(|start| by >= start) && end.is_none_or(|end| by <= end)
        }
    };
    (0..keys.len()).filter(|row| inside(*row)).collect()
}

fn check(
    kind: &Kind,
    keys: &[Option<i128>],
    descending: bool,
    nulls_first: bool,
    rng: &mut StdRng,
) {
    let pair = Pair::of(columns(vec![
        ("r", Arc::new(Int64Array::from_iter_values(0..keys.len() as i64)) as ArrayRef),
        ("k", array(&kind.dtype, keys)),
    ]));
    let some = |rng: &mut StdRng| *kind.distances.choose(rng).expect("a distance");
    let (near, far) = {
        let (one, other) = (some(rng), some(rng));
        (one.min(other), one.max(other))
    };
    let frames: [(End, End); 7] = [
        (Some(-near), Some(far)),
        (Some(-far), Some(-near)),
        (Some(near), Some(far)),
        (None, Some(far)),
        (None, Some(-near)),
        (Some(-far), None),
        (Some(near), None),
    ];
    let bound = |end: End, open: &str| match end {
        None => format!("UNBOUNDED {open}"),
        Some(by) if by < 0 || by == 0 && open == "PRECEDING" => {
            format!("{} PRECEDING", (kind.distance)(-by))
        }
        Some(by) => format!("{} FOLLOWING", (kind.distance)(by)),
    };
    let order = format!(
        "ORDER BY k {} NULLS {}",
        if descending { "DESC" } else { "ASC" },
        if nulls_first { "FIRST" } else { "LAST" }
    );
    // A zero distance may stand on either side.
    let over: Vec<String> = (frames.iter().enumerate())
        .map(|(at, (start, end))| {
            let frame = format!(
                "RANGE BETWEEN {} AND {}",
                bound(*start, "PRECEDING"),
                bound(*end, "FOLLOWING")
            );
            format!(
                "count(*) OVER ({order} {frame}) AS n{at}, sum(r) OVER ({order} {frame}) AS s{at}"
            )
        })
        .collect();
    let sql = format!("SELECT r, {} FROM t", over.join(", "));
    let expected: Vec<Vec<Option<i128>>> = (0..keys.len())
        .map(|row| {
            let of_frame = |ends: &(End, End)| {
                let inside = frame(keys, row, *ends, descending, nulls_first);
                let sum = (!inside.is_empty()).then(|| inside.iter().map(|row| *row as i128).sum());
                [Some(inside.len() as i128), sum]
            };
            std::iter::once(Some(row as i128)).chain(frames.iter().flat_map(of_frame)).collect()
        })
        .collect();
    for (engine, session) in [("cpu", &pair.cpu), ("device", &pair.device)] {
        let found = run(session, &sql).unwrap_or_else(|error| panic!("{engine}: {error}\n  {sql}"));
        let cell = |cell: &Cell| match cell {
            Cell::Int(value) => Some(*value),
            Cell::Null => None,
            other => panic!("{other:?}"),
        };
        let mut found: Vec<Vec<_>> =
            Rows::of(&found).rows.iter().map(|row| row.iter().map(cell).collect()).collect();
        found.sort();
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{engine}, {}: keys {keys:?}\n  {sql}", kind.dtype);
        }
        assert_eq!(found.len(), expected.len(), "{engine}\n  {sql}");
    }
}

/// Every type, in one order each, or in `WARPFRAME_FRAME_ORDERS` of the four.
#[test]
fn frames_at_the_ends_of_types_hold_no_nulls() {
    let asked = std::env::var("WARPFRAME_FRAME_ORDERS")
        .ok()
        .map_or(1, |text| text.parse().expect("a number"));
    for (at, kind) in kinds().iter().enumerate() {
        for number in 0..asked {
            let order = (at + number) % 4;
            let rng = &mut StdRng::seed_from_u64((at * 4 + order) as u64);
            let mut keys: Vec<Option<i128>> =
                vec![None, None, Some(kind.least), Some(kind.greatest)];
            for _ in 0..12 {
                let near = rng.random_range(0..5);
                keys.push(Some(
                    *[kind.least + near, kind.greatest - near, near].choose(rng).expect("a value"),
                ));
            }
            keys.shuffle(rng);
            check(kind, &keys, order % 2 == 1, order < 2, rng);
        }
    }
}

#[test]
fn frames_of_infinities_and_nan_hold_their_peers() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let keys = [
        Some(1.0),
        Some(inf),
        None,
        Some(-inf),
        Some(nan),
        Some(2.0),
        Some(inf),
        Some(nan),
        Some(-inf),
        Some(1e308),
    ];
    let pair = Pair::of(columns(vec![
        ("r", Arc::new(Int64Array::from_iter_values(0..10)) as ArrayRef),
        ("k", Arc::new(Float64Array::from(keys.to_vec()))),
    ]));
    for (order, expected) in [
        (
            "ORDER BY k",
            [[0, 2], [1, 2], [2, 1], [3, 2], [4, 2], [5, 2], [6, 2], [7, 2], [8, 2], [9, 1]],
        ),
        (
            "ORDER BY k DESC NULLS LAST",
            [[0, 2], [1, 2], [2, 1], [3, 2], [4, 2], [5, 2], [6, 2], [7, 2], [8, 2], [9, 1]],
        ),
    ] {
        let sql = format!(
            "SELECT r, count(*) OVER ({order} RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n FROM t"
        );
        for session in [&pair.cpu, &pair.device] {
            let mut found = Rows::of(&run(session, &sql).expect("a query that runs")).rows;
            found.sort_by_key(|row| match row[0] {
                Cell::Int(r) => r,
                _ => 0,
            });
            assert_eq!(found, expected.map(|row| row.map(Cell::Int).to_vec()), "{sql}");
        }
    }
}

/// Distances of intervals may be numbers without quotes.
#[test]
fn intervals_of_frames_need_no_quotes() {
    let pair = Pair::new().and("t", crate::tables::Shape::random(300, 66).batches());
    for (short, long) in [
        ("RANGE BETWEEN INTERVAL 30 DAY PRECEDING AND CURRENT ROW", "'30' DAY"),
        ("RANGE BETWEEN INTERVAL 30 DAYS PRECEDING AND CURRENT ROW", "'30 days'"),
        ("RANGE BETWEEN INTERVAL 2 MONTH PRECEDING AND CURRENT ROW", "'2 months'"),
    ] {
        let of = |frame: &str| format!("SELECT id, sum(w) OVER (ORDER BY d {frame}) AS s FROM t");
        let long = format!("RANGE BETWEEN INTERVAL {long} PRECEDING AND CURRENT ROW");
        pair.check(&of(short));
        let expected = run(&pair.cpu, &of(&long)).expect("quotes are known");
        let found = run(&pair.device, &of(short)).expect("it ran a moment ago");
        pair.compare_unordered(&expected, &found, short);
    }
    pair.check_all(&[
        "SELECT id, count(*) OVER w FROM t WINDOW w AS (ORDER BY d DESC RANGE BETWEEN \
         INTERVAL 1 YEAR PRECEDING AND INTERVAL 10 DAY FOLLOWING)",
        "SELECT id, d + INTERVAL 3 DAY, d - INTERVAL -1 MONTH FROM t",
    ]);
}

/// Frames without distances end with rows that are equal in the order, whatever its type.
#[test]
fn frames_without_distances_go_by_every_type() {
    let some = |values: [i64; 6]| values.map(|value| (value >= 0).then_some(value)).to_vec();
    let numbers: ArrayRef = Arc::new(Int64Array::from(some([5, 3, -1, 5, 0, -1])));
    let of = |dtype: DataType| cast(&numbers, &dtype).expect("a cast");
    let texts: ArrayRef = Arc::new(BinaryArray::from_iter(
        some([5, 3, -1, 5, 0, -1]).iter().map(|value| value.map(|value| [b'a', value as u8])),
    ));
    let (nanoseconds, microseconds) = (TimeUnit::Nanosecond, TimeUnit::Microsecond);
    let keys: Vec<(&str, ArrayRef)> = vec![
        ("time", of(DataType::Time64(nanoseconds))),
        (
            "time32",
            cast(&of(DataType::Int32), &DataType::Time32(TimeUnit::Second)).expect("a cast"),
        ),
        ("duration", of(DataType::Duration(microseconds))),
        ("bytes", texts),
    ];
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..6));
    let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
    let pair = Pair::of(columns([vec![("id", id)], keys].concat()));
    for name in names {
        let sql = format!(
            "SELECT id, rank() OVER (ORDER BY {name}), sum(id) OVER (ORDER BY {name} DESC), \
             count(*) OVER (ORDER BY {name} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS n \
             FROM t ORDER BY id"
        );
        pair.check(&sql);
        let found = Rows::of(&run(&pair.device, &sql).expect("it ran a moment ago"));
        let numbers =
            |at: usize| -> Vec<Cell> { found.rows.iter().map(|row| row[at].clone()).collect() };
        let expected = |values: [i128; 6]| values.map(Cell::Int).to_vec();
        assert_eq!(numbers(1), expected([3, 2, 5, 3, 1, 5]), "{name}");
        // Nulls come first where the order descends.
        assert_eq!(numbers(2), expected([10, 11, 7, 10, 15, 7]), "{name}");
        assert_eq!(numbers(3), expected([4, 5, 2, 4, 6, 2]), "{name}");
    }
    let sql =
        "SELECT sum(id) OVER (ORDER BY time RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t";
    let error = run(&pair.cpu, sql).expect_err("an error").to_string();
    assert!(error.contains("goes by numbers, dates or timestamps, not by TIME"), "{error}");
}
