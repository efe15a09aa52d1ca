//! NaN is one value, whatever its sign and its other bits: equal to itself, and greater than every
//! other number. On the CPU engine as on the device.
//!
//! `WARPFRAME_NAN_ROUNDS` says how many rounds of random queries run (5), `WARPFRAME_NAN_SEED` the
//! first one's seed (1).

mod brute;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use warpframe::Session;
use warpframe::arrow::array::{
    Array, ArrayRef, AsArray, Float32Array, Float64Array, Int64Array, RecordBatch,
};
use warpframe::arrow::datatypes::{DataType, Float32Type, Float64Type};

use self::brute::{Number, Row, Truth, Width, compare, equal_place, place};
use crate::differential::{Cell, Pair, Rows, run};

const NAN: u64 = 0x7ff8_0000_0000_0000;

fn table(rows: &[Row]) -> Vec<RecordBatch> {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.i)))),
        ("g", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.g)))),
        ("x", Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.x)))),
        ("y", Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.y)))),
        ("u", Arc::new(Float32Array::from_iter(rows.iter().map(|row| row.u)))),
        ("v", Arc::new(Float32Array::from_iter(rows.iter().map(|row| row.v)))),
    ];
    vec![
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .expect("columns of one length"),
    ]
}

fn rows(count: i64, seed: u64) -> Vec<Row> {
    let mut rng = StdRng::seed_from_u64(seed);
    (0..count).map(|i| Row::random(i, &mut rng)).collect()
}

/// What both engines say, with every NaN in its one form.
fn answers<'a>(pair: &'a Pair, sql: &'a str) -> impl Iterator<Item = (&'static str, Rows)> + 'a {
    [("cpu", &pair.cpu), ("device", &pair.device)].into_iter().map(move |(name, session)| {
        let frame = run(session, sql).unwrap_or_else(|error| panic!("{name}: {error}\n  {sql}"));
        assert_one_form(name, session, &frame.to_arrow().expect("a result downloads"), sql);
        (name, Rows::of(&frame))
    })
}

fn assert_one_form(name: &str, _: &Session, batches: &[RecordBatch], sql: &str) {
    for column in batches.iter().flat_map(RecordBatch::columns) {
        let odd = match column.data_type() {
            DataType::Float64 => {
                let floats = column.as_primitive::<Float64Type>().iter().flatten();
                floats.map(f64::to_bits).find(|bits| f64::from_bits(*bits).is_nan() && *bits != NAN)
            }
            DataType::Float32 => {
                let mut floats = column.as_primitive::<Float32Type>().iter().flatten();
                floats
                    .find(|x| x.is_nan() && x.to_bits() != 0x7fc0_0000)
                    .map(|x| x.to_bits().into())
            }
            _ => None,
        };
        assert_eq!(odd, None, "{name}: a NaN of another form\n  {sql}");
    }
}

/// A float of a result, exact but for NaN.
fn float(value: Option<f64>) -> Cell {
    value.map_or(Cell::Null, Cell::Float)
}

fn truth(value: Option<bool>) -> Cell {
    value.map_or(Cell::Null, |value| Cell::Int(value.into()))
}

fn same(a: &Cell, b: &Cell) -> bool {
    match (a, b) {
        (Cell::Float(a), Cell::Float(b)) => a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

/// Asks both engines for rows in this order.
fn check(pair: &Pair, sql: &str, expected: &[Vec<Cell>]) {
    for (name, found) in answers(pair, sql) {
        assert_eq!(found.rows.len(), expected.len(), "{name}: rows\n  {sql}");
        for (at, (found, expected)) in found.rows.iter().zip(expected).enumerate() {
            let right = found.iter().zip(expected).all(|(a, b)| same(a, b));
            assert!(
                right,
                "{name}, row {at}: {found:?}, not {expected:?}\n  {sql}\n  {}",
                pair.origin
            );
        }
    }
}

#[test]
fn random_expressions_over_nan_are_what_brute_force_says() {
    let number = |name: &str, default: u64| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")),
        Err(_) => default,
    };
    let first = number("WARPFRAME_NAN_SEED", 1);
    for seed in first..first + number("WARPFRAME_NAN_ROUNDS", 5) {
        let mut rng = StdRng::seed_from_u64(seed);
        let rows = rows(260, seed ^ 0xF10A7);
        let others = self::rows(40, seed ^ 0x0DD);
        let pair = Pair::of(table(&rows)).and("o", table(&others)).from(format!("seed {seed}"));
        projections(&pair, &rows, &mut rng);
        filters(&pair, &rows, &mut rng);
        aggregates(&pair, &rows, &mut rng);
        keys(&pair, &rows, &others, &mut rng);
        orders(&pair, &rows, &mut rng);
        windows(&pair, &rows, &mut rng);
    }
}

fn projections(pair: &Pair, rows: &[Row], rng: &mut StdRng) {
    let truths: Vec<Truth> = (0..6).map(|_| Truth::random(1, rng)).collect();
    let numbers: Vec<Number> = [Width::Double, Width::Double, Width::Double, Width::Float]
        .map(|width| Number::random(width, 2, rng))
        .into();
    let texts = truths.iter().map(Truth::sql).chain(numbers.iter().map(Number::sql));
    let texts: Vec<String> =
        texts.enumerate().map(|(at, text)| format!("{text} AS c{at}")).collect();
    let sql = format!("SELECT i, {} FROM t ORDER BY i", texts.join(", "));
    let expected = rows.iter().map(|row| {
        let cells =
            truths.iter().map(|c| truth(c.of(row))).chain(numbers.iter().map(|n| float(n.of(row))));
        std::iter::once(Cell::Int(row.i.into())).chain(cells).collect()
    });
    check(pair, &sql, &expected.collect::<Vec<_>>());
}

fn filters(pair: &Pair, rows: &[Row], rng: &mut StdRng) {
    for _ in 0..2 {
        let condition = Truth::random(2, rng);
        let kept = rows.iter().filter(|row| condition.of(row) == Some(true));
        let sql = format!("SELECT i FROM t WHERE {} ORDER BY i", condition.sql());
        check(pair, &sql, &kept.map(|row| vec![Cell::Int(row.i.into())]).collect::<Vec<_>>());
    }
}

/// A sum whose value does not depend on the order of its parts: of these numbers, NaN, an infinity,
/// or not asked for.
fn sum(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    (!sum.is_finite()).then_some(sum)
}

fn aggregates(pair: &Pair, rows: &[Row], rng: &mut StdRng) {
    let width = if rng.random_bool(0.7) { Width::Double } else { Width::Float };
    let value = Number::random(width, 1, rng);
    let summed = Number::random(Width::Double, 0, rng);
    let (e, s) = (value.sql(), summed.sql());
    let calls = format!(
        "min({e}) AS a, max({e}) AS b, count(DISTINCT {e}) AS c, isnan(sum({s})) AS d, isnan(avg({s})) AS e, \
         first_value({e} ORDER BY {e}) AS f, last_value({e} ORDER BY {e}) AS h"
    );
    let whole = |rows: &[&Row]| {
        let mut values: Vec<f64> = rows.iter().filter_map(|row| value.of(row)).collect();
        values.sort_by_key(|value| equal_place(*value));
        // The least and greatest are in the form of equal bits.
        let one_zero = |value: &f64| if *value == 0.0 { 0.0 } else { *value };
        let mut different: Vec<i64> = values.iter().map(|value| equal_place(*value)).collect();
        different.dedup();
        let sums: Vec<f64> = rows.iter().filter_map(|row| summed.of(row)).collect();
        let isnan = (!sums.is_empty()).then(|| sum(&sums).is_some_and(f64::is_nan));
        values.sort_by_key(|value| place(*value));
        let null = rows.iter().any(|row| value.of(row).is_none());
        vec![
            float(values.first().map(one_zero)),
            float(values.last().map(one_zero)),
            Cell::Int(different.len() as i128),
            truth(isnan),
            truth(isnan),
            float(values.first().copied()),
            // Nulls come last.
            if null { Cell::Null } else { float(values.last().copied()) },
        ]
    };
    let all: Vec<&Row> = rows.iter().collect();
    check(pair, &format!("SELECT {calls} FROM t"), &[whole(&all)]);
    let mut groups: BTreeMap<i64, Vec<&Row>> = BTreeMap::new();
    rows.iter().for_each(|row| groups.entry(row.g).or_default().push(row));
    let expected = groups
        .into_iter()
        .map(|(g, rows)| std::iter::once(Cell::Int(g.into())).chain(whole(&rows)).collect());
    check(
        pair,
        &format!("SELECT g, {calls} FROM t GROUP BY g ORDER BY g"),
        &expected.collect::<Vec<_>>(),
    );
}

fn keys(pair: &Pair, rows: &[Row], others: &[Row], rng: &mut StdRng) {
    let width = if rng.random_bool(0.7) { Width::Double } else { Width::Float };
    let key = Number::random(width, 1, rng);
    let e = key.sql();
    let mut groups: BTreeMap<Option<i64>, i64> = BTreeMap::new();
    rows.iter().for_each(|row| *groups.entry(key.of(row).map(equal_place)).or_default() += 1);
    let mut counts: Vec<i64> = groups.values().copied().collect();
    counts.sort_unstable();
    let expected: Vec<Vec<Cell>> =
        counts.into_iter().map(|count| vec![Cell::Int(count.into())]).collect();
    check(pair, &format!("SELECT count(*) AS n FROM t GROUP BY {e} ORDER BY n"), &expected);
    let distinct = vec![vec![Cell::Int(groups.len() as i128)]];
    check(pair, &format!("SELECT count(*) AS n FROM (SELECT DISTINCT {e} AS k FROM t)"), &distinct);

    let (one, two) = if width == Width::Double { ("x", "y") } else { ("u", "v") };
    let [left, right] = [Number::First(width), Number::Second(width)];
    let pairs = |holds: &dyn Fn(f64, f64) -> bool| {
        let of = |row: &&Row| {
            others
                .iter()
                .any(|other| left.of(row).zip(right.of(other)).is_some_and(|(a, b)| holds(a, b)))
        };
        let found = rows.iter().filter(of).map(|row| vec![Cell::Int(row.i.into())]);
        found.collect::<Vec<_>>()
    };
    let equal = pairs(&|a, b| compare(a, b).is_eq());
    let join = |on: &str| format!("SELECT DISTINCT t.i FROM t JOIN o ON {on} ORDER BY t.i");
    check(pair, &join(&format!("t.{one} = o.{two}")), &equal);
    check(
        pair,
        &format!("SELECT i FROM t WHERE {one} IN (SELECT {two} FROM o) ORDER BY i"),
        &equal,
    );
    check(
        pair,
        &join(&format!("t.{one} > o.{two}")),
        &pairs(&|a, b| compare(a, b) == Ordering::Greater),
    );
    check(pair, &join(&format!("t.g = o.g AND t.{one} <= o.{two}")), &{
        let of = |row: &&Row| {
            others.iter().any(|other| {
                row.g == other.g
                    && left.of(row).zip(right.of(other)).is_some_and(|(a, b)| compare(a, b).is_le())
            })
        };
        rows.iter().filter(of).map(|row| vec![Cell::Int(row.i.into())]).collect::<Vec<_>>()
    });
}

fn orders(pair: &Pair, rows: &[Row], rng: &mut StdRng) {
    let width = if rng.random_bool(0.7) { Width::Double } else { Width::Float };
    let key = Number::random(width, 1, rng);
    let descending = rng.random_bool(0.5);
    let mut sorted: Vec<(Option<i64>, i64)> =
        rows.iter().map(|row| (key.of(row).map(place), row.i)).collect();
    sorted.sort_by(|(a, i), (b, j)| {
        let values = match (a, b) {
            (Some(a), Some(b)) if descending => b.cmp(a),
            (Some(a), Some(b)) => a.cmp(b),
            (a, b) => a.is_none().cmp(&b.is_none()),
        };
        values.then(i.cmp(j))
    });
    let expected: Vec<Vec<Cell>> =
        sorted.into_iter().map(|(_, i)| vec![Cell::Int(i.into())]).collect();
    let direction = if descending { "DESC" } else { "ASC" };
    let sql = format!("SELECT i FROM t ORDER BY {} {direction} NULLS LAST, i", key.sql());
    check(pair, &sql, &expected);
    check(pair, &format!("{sql} LIMIT 20"), &expected[..20]);
}

fn windows(pair: &Pair, rows: &[Row], rng: &mut StdRng) {
    let width = if rng.random_bool(0.7) { Width::Double } else { Width::Float };
    let value = Number::random(width, 1, rng);
    let e = value.sql();
    let sql = format!(
        "SELECT i, min({e}) OVER w AS a, max({e}) OVER w AS b, max({e}) OVER (PARTITION BY g) AS c, \
         rank() OVER (ORDER BY {e} NULLS LAST) AS d, count(*) OVER (ORDER BY {e} NULLS LAST) AS f \
         FROM t WINDOW w AS (ORDER BY i ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) ORDER BY i"
    );
    let extreme = |of: &mut dyn Iterator<Item = &Row>, greatest: bool| {
        let values =
            of.filter_map(|row| value.of(row)).map(|value| if value == 0.0 { 0.0 } else { value });
        float(if greatest {
            values.max_by_key(|v| place(*v))
        } else {
            values.min_by_key(|v| place(*v))
        })
    };
    let key = |row: &Row| value.of(row).map_or((1, 0), |value| (0, place(value)));
    let expected = rows.iter().enumerate().map(|(at, row)| {
        let frame = &rows[at.saturating_sub(2)..(at + 2).min(rows.len())];
        let before = rows.iter().filter(|other| key(other) < key(row)).count();
        let upto = rows.iter().filter(|other| key(other) <= key(row)).count();
        vec![
            Cell::Int(row.i.into()),
            extreme(&mut frame.iter(), false),
            extreme(&mut frame.iter(), true),
            extreme(&mut rows.iter().filter(|other| other.g == row.g), true),
            Cell::Int(before as i128 + 1),
            Cell::Int(upto as i128),
        ]
    });
    check(pair, &sql, &expected.collect::<Vec<_>>());
}

/// Three NaN, two numbers, a null and both zeros.
fn odd() -> Pair {
    let values = [NAN, NAN | 1 << 63, 0x7fff_ffff_ffff_ffff].map(|bits| Some(f64::from_bits(bits)));
    let x: Vec<Option<f64>> =
        values.into_iter().chain([Some(7.0), Some(-7.0), None, Some(0.0), Some(-0.0)]).collect();
    let i = Int64Array::from_iter_values(1..=x.len() as i64);
    let columns: Vec<(&str, ArrayRef)> =
        vec![("i", Arc::new(i)), ("x", Arc::new(Float64Array::from(x)))];
    Pair::of(vec![RecordBatch::try_from_iter(columns).expect("columns of one length")])
}

fn ints(values: &[i128]) -> Vec<Vec<Cell>> {
    values.iter().map(|value| vec![Cell::Int(*value)]).collect()
}

#[test]
fn constants_fold_to_the_one_nan() {
    let pair = odd();
    for condition in [
        "CAST(0 AS double) / CAST(0 AS double) = CAST('NaN' AS double)",
        "CAST(0 AS double) / CAST(0 AS double) > CAST('inf' AS double)",
        "- CAST('NaN' AS double) = CAST('NaN' AS double)",
        "CAST('-nan' AS double) IN (CAST('NaN' AS double), 1)",
        "nullif(CAST(0 AS double), - CAST(0 AS double)) IS NULL",
        "- CAST(0 AS double) IN (CAST(0 AS double), 1)",
        "CASE CAST(0 AS real) / CAST(0 AS real) WHEN CAST('NaN' AS real) THEN true ELSE false END",
        "[CAST(0 AS double) / CAST(0 AS double)] = [CAST('NaN' AS double)]",
        "array_has([CAST('-nan' AS double)], CAST('NaN' AS double))",
        "(CASE WHEN true THEN CAST(0 AS double) ELSE x END) / CAST(0 AS double) = CAST('NaN' AS double)",
    ] {
        check(&pair, &format!("SELECT count(*) FROM t WHERE {condition}"), &ints(&[8]));
    }
    // A constant that the optimizer brings together first.
    let sql = "SELECT count(*) FROM (SELECT CAST(0 AS double) AS a, CAST(0 AS double) AS b, i FROM t) \
               WHERE a / b = CAST('NaN' AS double)";
    check(&pair, sql, &ints(&[8]));
}

#[test]
fn lists_and_structs_hold_one_nan_and_one_zero() {
    let pair = odd();
    let sql = |condition: &str| format!("SELECT i FROM t WHERE {condition} ORDER BY i");
    check(&pair, &sql("[x] = [CAST('NaN' AS double)]"), &ints(&[1, 2, 3]));
    check(&pair, &sql("[x, 1] = [CAST(0 AS double), 1]"), &ints(&[7, 8]));
    check(&pair, &sql("{'a': x} = {'a': - CAST('NaN' AS double)}"), &ints(&[1, 2, 3]));
    check(&pair, &sql("array_has([x], CAST(0 AS double))"), &ints(&[7, 8]));
    check(&pair, &sql("array_position([1, x], - CAST('NaN' AS double)) = 2"), &ints(&[1, 2, 3]));
    check(&pair, &sql("array_has_any([x], [CAST('NaN' AS double), 7])"), &ints(&[1, 2, 3, 4]));
    check(
        &pair,
        &sql("cardinality(array_remove([x, 2], CAST('NaN' AS double))) = 1"),
        &ints(&[1, 2, 3]),
    );
    check(&pair, &sql("cardinality(array_remove([x, 2], CAST(0 AS double))) = 1"), &ints(&[7, 8]));
    check(
        &pair,
        &sql("cardinality(array_distinct([x, CAST('NaN' AS double), 0])) = 2"),
        &ints(&[1, 2, 3, 6, 7, 8]),
    );
    check(&pair, &sql("array_max([x, 3]) > 1e300"), &ints(&[1, 2, 3]));
    check(&pair, &sql("array_sort([x, 3])[2] > 1e300"), &ints(&[1, 2, 3]));
    check(&pair, "SELECT count(*) AS n FROM t GROUP BY [x] ORDER BY n", &ints(&[1, 1, 1, 2, 3]));
    check(&pair, "SELECT count(*) AS n FROM t a JOIN t b ON [a.x] = [b.x]", &ints(&[16]));
    check(&pair, "SELECT count(*) AS n FROM t a JOIN t b ON a.x = b.x", &ints(&[15]));
}

#[test]
fn what_makes_a_nan_makes_the_one() {
    let pair = odd();
    for expression in [
        "x - x",
        "x * 0",
        "x / (x - x)",
        "x % 0.0",
        "CAST(CAST(x AS varchar) AS double)",
        "CAST(CAST('-' || 'nan' AS varchar) AS double) + i * 0",
        "CAST(x AS real)",
        "nanvl(x, -x)",
        "abs(-x)",
        "power(x, 0.5)",
        "CASE WHEN i < 3 THEN x ELSE -x END",
    ] {
        let sql = format!(
            "SELECT count(*) FROM t WHERE isnan({expression}) AND NOT ({expression} > 1e308 AND \
             {expression} = CAST('NaN' AS double) AND {expression} IN (CAST('NaN' AS double)))"
        );
        check(&pair, &sql, &ints(&[0]));
        let sql =
            format!("SELECT count(DISTINCT {expression}) AS n FROM t WHERE isnan({expression})");
        check(&pair, &sql, &ints(&[1]));
        for (name, found) in answers(&pair, &format!("SELECT {expression} AS e FROM t")) {
            assert!(
                found.rows.iter().any(|row| matches!(row[0], Cell::Float(x) if x.is_nan())),
                "{name}: {expression}"
            );
        }
    }
    for aggregate in
        ["sum(x)", "avg(x)", "var(x)", "stddev(x)", "corr(x, x)", "median(x)", "covar_pop(x, i)"]
    {
        for (name, found) in answers(&pair, &format!("SELECT {aggregate} AS e FROM t WHERE i <= 4"))
        {
            assert!(
                matches!(found.rows[0][0], Cell::Float(x) if x.is_nan()),
                "{name}: {aggregate} {:?}",
                found.rows
            );
        }
        let sql = format!(
            "SELECT {aggregate} > 1e308 AS e, {aggregate} = CAST('NaN' AS double) FROM t WHERE i <= 4"
        );
        check(&pair, &sql, &[vec![Cell::Int(1), Cell::Int(1)]]);
    }
}

/// What DataFusion's CPU engine says by itself: where that becomes right, `src/host` has less to
/// do.
#[test]
fn datafusion_still_needs_to_be_told() {
    use datafusion::prelude::SessionContext;
    let ask = |sql: &str| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let batches =
            runtime.block_on(async { SessionContext::new().sql(sql).await?.collect().await });
        let batches = batches.unwrap_or_else(|error| panic!("{error}\n  {sql}"));
        warpframe::arrow::util::display::array_value_to_string(batches[0].column(0), 0)
            .expect("a value that prints")
    };
    let wrong = [
        // https://github.com/apache/datafusion/issues/17557
        ("SELECT CAST(0 AS double) / CAST(0 AS double) = CAST('NaN' AS double)", "false"),
        ("SELECT -x > 5 FROM (VALUES (CAST('NaN' AS double))) AS t(x)", "false"),
        (
            "SELECT x IN (CAST(0 AS double), 1, 2, 3, 4) FROM (VALUES (- CAST(0 AS double))) AS t(x)",
            "false",
        ),
        (
            "SELECT nullif(x, CAST(0 AS double)) IS NULL FROM (VALUES (- CAST(0 AS double))) AS t(x)",
            "false",
        ),
        // https://github.com/apache/datafusion/issues/24432
        (
            "SELECT max(x) FROM (VALUES (1, CAST('-inf' AS double))) AS t(g, x) GROUP BY g",
            "-1.7976931348623157e308",
        ),
        // https://github.com/apache/arrow-rs/issues/10508
        ("SELECT CAST(CAST(1 AS decimal(38, 37)) AS double)", "0.9999999999999999"),
    ];
    for (sql, said) in wrong {
        assert_eq!(ask(sql), said, "DataFusion mended this\n  {sql}");
    }
}
