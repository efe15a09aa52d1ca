//! Timestamps of time zones: what clocks show there, in every unit, over a century of changes and
//! close to them.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use warpframe::arrow::array::*;
use warpframe::arrow::compute::cast;
use warpframe::arrow::datatypes::{DataType, TimeUnit};

use crate::differential::{Cell, Pair, run, scalar};

const ZONES: [&str; 8] = [
    "America/New_York",
    "America/Sao_Paulo",
    "Europe/London",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "+05:45",
    "UTC",
];

/// Seconds of 1850 to 2100, and every ten minutes about changes of clocks in 2024 and before; every
/// ninth is null.
fn instants(seed: u64) -> Vec<Option<i64>> {
    let mut rng = StdRng::seed_from_u64(seed);
    let anytime = (0..700).map(|_| rng.random_range(-3_786_825_600..4_102_444_800i64));
    // New York, London, Lord Howe and São Paulo (where midnight was left out).
    let changes =
        [1_710_054_000, 1_730_613_600, 1_711_846_800, 1_712_415_600, 1_541_300_400, 1_713_662_000];
    let about = changes.iter().flat_map(|at| (-30..30).map(move |step| at + step * 600));
    anytime.chain(about).enumerate().map(|(row, second)| (row % 9 != 4).then_some(second)).collect()
}

fn pair(zone: &str, seed: u64) -> Pair {
    let seconds = TimestampSecondArray::from(instants(seed));
    let ids = Int64Array::from_iter_values(0..seconds.len() as i64);
    let of = |unit| {
        let ticks =
            cast(&seconds, &DataType::Timestamp(unit, None)).expect("nanoseconds hold these years");
        // The zone is put on the ticks, so that the instants stay, not the times of day.
        let ticks = cast(
            &cast(&ticks, &DataType::Int64).expect("ticks"),
            &DataType::Timestamp(unit, Some(zone.into())),
        );
        ticks.expect("ticks of a zone")
    };
    let units = [
        ("s", TimeUnit::Second),
        ("ms", TimeUnit::Millisecond),
        ("us", TimeUnit::Microsecond),
        ("ns", TimeUnit::Nanosecond),
    ];
    let mut columns =
        vec![("id", Arc::new(ids) as ArrayRef), ("naive", Arc::new(seconds.clone()) as ArrayRef)];
    columns.extend(units.map(|(name, unit)| (name, of(unit))));
    Pair::of(vec![RecordBatch::try_from_iter(columns).expect("columns of one length")]).from(zone)
}

/// Two of the units, by turns.
fn units(zone: usize) -> [&'static str; 2] {
    [["s", "us"], ["ms", "ns"]][zone % 2]
}

#[test]
fn parts_of_instants_are_those_that_clocks_show() {
    for (at, zone) in ZONES.iter().enumerate() {
        let pair = pair(zone, at as u64);
        for unit in units(at) {
            let check = |sql: &str| pair.check(&sql.replace("UNIT", unit));
            check(
                "SELECT id, date_part('year', UNIT) AS a, date_part('month', UNIT) AS b, date_part('day', UNIT) AS c,
                date_part('hour', UNIT) AS d, date_part('minute', UNIT) AS e, date_part('second', UNIT) AS f,
                date_part('dow', UNIT) AS g, date_part('doy', UNIT) AS h, date_part('week', UNIT) AS i,
                date_part('epoch', UNIT) AS j, date_part('millisecond', UNIT) AS k FROM t",
            );
            check("SELECT id, CAST(UNIT AS varchar) AS a FROM t");
            check("SELECT id, to_char(UNIT, '%A, %-d. %B %Y, %H:%M:%S%.f') AS a FROM t");
            check(
                "SELECT id, date_bin(INTERVAL '5 hours', UNIT) AS a, date_bin(INTERVAL '1 month', UNIT) AS b FROM t",
            );
            check(
                "SELECT id, to_local_time(UNIT) AS a, CAST(UNIT AS date) AS b, CAST(UNIT AS time) AS c FROM t",
            );
        }
        pair.check("SELECT extract(hour FROM us) AS h, count(*) AS n FROM t GROUP BY extract(hour FROM us)");
        pair.check("SELECT id FROM t WHERE extract(year FROM ms) = 2024 AND extract(dow FROM ms) = 0 ORDER BY ns, id");
    }
}

#[test]
fn instants_are_cut_down_to_what_begins_by_the_clocks_of_their_zone() {
    for (at, zone) in ZONES.iter().enumerate() {
        let pair = pair(zone, 100 + at as u64);
        for part in ["second", "minute", "hour", "day", "week", "month", "quarter", "year"] {
            let cut = ["s", "ms", "us", "ns"]
                .map(|unit| format!("date_trunc('{part}', {unit}) AS {unit}"));
            pair.check(&format!("SELECT id, {} FROM t", cut.join(", ")));
        }
        pair.check("SELECT date_trunc('month', us) AS m, count(*) AS n FROM t GROUP BY date_trunc('month', us)");
    }
}

#[test]
fn intervals_move_instants_by_the_clocks_of_their_zone() {
    for (at, zone) in ZONES.iter().enumerate() {
        let pair = pair(zone, 200 + at as u64);
        // Clocks change there, and the database knows how.
        let calm = "SELECT * FROM t WHERE extract(year FROM us) BETWEEN 1905 AND 2090";
        for interval in [
            "1 month",
            "-7 months",
            "3 days",
            "13 days 5 hours",
            "1 year 2 days 250 milliseconds",
            "-90 minutes",
        ] {
            let moved = ["s", "ms", "us", "ns"]
                .map(|unit| format!("{unit} + INTERVAL '{interval}' AS {unit}"));
            pair.check(&format!("SELECT id, {} FROM ({calm})", moved.join(", ")));
        }
        pair.check("SELECT id, us - INTERVAL '36 hours' AS a, us - ms AS b FROM t");
    }
    // To 2024-03-10 02:30, which is left out, and to 2024-11-03 01:30, which comes twice: seconds
    // of DuckDB 2.0.1.
    let pair = pair("America/New_York", 5);
    for (from, interval, seconds) in [
        ("2024-02-10 02:30", "+ INTERVAL '1 month'", 1_710_055_800),
        ("2024-03-09 02:30", "+ INTERVAL '1 day'", 1_710_055_800),
        ("2024-04-10 02:30", "- INTERVAL '1 month'", 1_710_055_800),
        ("2024-11-02 01:30", "+ INTERVAL '1 day'", 1_730_611_800),
        ("2024-11-04 01:30", "- INTERVAL '1 day'", 1_730_615_400),
        ("2024-11-02 01:30", "+ INTERVAL '1 day 1 hour'", 1_730_615_400),
    ] {
        let from = format!("(CASE WHEN id < 0 THEN NULL ELSE TIMESTAMP '{from}' END)");
        let sql = format!("{from} AT TIME ZONE 'America/New_York' {interval}");
        for session in [&pair.cpu, &pair.device] {
            let sql = format!("SELECT CAST(date_part('epoch', {sql}) AS bigint) FROM t LIMIT 1");
            assert_eq!(scalar(session, &sql), Cell::Int(seconds), "{sql}");
        }
    }
}

#[test]
fn times_become_instants_even_where_clocks_skip_them_or_show_them_twice() {
    for zone in ZONES {
        let pair = pair(zone, 5);
        let days = "SELECT id, naive, CAST(naive AS date) AS d FROM t";
        pair.check(&format!("SELECT id, naive AT TIME ZONE '{zone}' AS a FROM t"));
        pair.check(&format!("SELECT id, d::timestamp AT TIME ZONE '{zone}' AS a FROM ({days})"));
        pair.check(&format!(
            "SELECT id, arrow_cast(d, 'Timestamp(Millisecond, Some(\"{zone}\"))') AS a FROM ({days})"
        ));
        pair.check(&format!(
            "SELECT id, arrow_try_cast(naive, 'Timestamp(Microsecond, Some(\"{zone}\"))') AS a FROM t"
        ));
    }
    // Years beyond the calendar are shown by no clock.
    pair("Europe/London", 6).check(
        "SELECT id, arrow_try_cast(arrow_cast((id - 500) * 30000000000000, 'Timestamp(Second, None)'), \
         'Timestamp(Second, Some(\"Europe/London\"))') AS a FROM t",
    );
    // The first of each zone is left out, and the second comes twice: seconds of DuckDB 2.0.1.
    for (zone, time, seconds) in [
        ("America/New_York", "2024-03-10 02:30", 1_710_055_800),
        ("America/New_York", "2024-11-03 01:30", 1_730_615_400),
        ("Australia/Lord_Howe", "2024-10-06 02:15", 1_728_143_100),
        ("Australia/Lord_Howe", "2024-04-07 01:45", 1_712_416_500),
        ("Africa/Casablanca", "2024-04-14 02:30", 1_713_061_800),
        ("Africa/Casablanca", "2024-03-10 02:30", 1_710_037_800),
        ("America/Sao_Paulo", "2018-11-04 00:00", 1_541_300_400),
        ("Pacific/Apia", "2011-12-30 12:00", 1_325_282_400),
    ] {
        let pair = pair("UTC", 5);
        let column = format!("(CASE WHEN id < 0 THEN NULL ELSE TIMESTAMP '{time}' END)");
        for time in [column, format!("TIMESTAMP '{time}'")] {
            let instant = format!("{time} AT TIME ZONE '{zone}'");
            let sql =
                format!("SELECT CAST(date_part('epoch', {instant}) AS bigint) FROM t LIMIT 1");
            for session in [&pair.cpu, &pair.device] {
                assert_eq!(scalar(session, &sql), Cell::Int(seconds), "{sql}");
            }
        }
        // A text is read on the CPU.
        for text in [
            format!("arrow_cast('{time}', 'Timestamp(Second, Some(\"{zone}\"))')"),
            format!("TIMESTAMPTZ '{time} {zone}'"),
        ] {
            let sql = format!("SELECT CAST(date_part('epoch', {text}) AS bigint)");
            assert_eq!(scalar(&pair.cpu, &sql), Cell::Int(seconds), "{sql}");
        }
    }
}

/// Of a timestamp without a zone an instant, and of an instant what clocks show there: values of
/// DuckDB 2.0.1.
#[test]
fn at_time_zone_goes_both_ways() {
    let pair = pair("Europe/Berlin", 7);
    let says = |sql: &str, expected: &str| {
        for session in [&pair.cpu, &pair.device] {
            let found = scalar(session, &format!("SELECT CAST(({sql}) AS varchar) FROM t LIMIT 1"));
            assert_eq!(found, Cell::Text(expected.into()), "{sql}");
        }
    };
    let instant = "TIMESTAMP '2024-07-01 23:30:00' AT TIME ZONE 'UTC'";
    let berlin = format!("({instant}) AT TIME ZONE 'Europe/Berlin'");
    says(&berlin, "2024-07-02 01:30:00");
    says(&format!("timezone('Europe/Berlin', {instant})"), "2024-07-02 01:30:00");
    says(&format!("({berlin})::date"), "2024-07-02");
    says(&format!("({berlin})::timestamp"), "2024-07-02 01:30:00");
    says(
        &format!("({berlin}) AT TIME ZONE 'Asia/Tokyo' AT TIME ZONE 'UTC'"),
        "2024-07-01 16:30:00",
    );
    for zone in ["UTC", "Asia/Kolkata", "America/New_York", "+05:30"] {
        let there =
            ["s", "ms", "us", "ns"].map(|unit| format!("{unit} AT TIME ZONE '{zone}' AS {unit}"));
        pair.check(&format!("SELECT id, {} FROM t", there.join(", ")));
        pair.check(&format!(
            "SELECT date_trunc('hour', us AT TIME ZONE '{zone}') AS h, count(*) AS n FROM t \
             GROUP BY date_trunc('hour', us AT TIME ZONE '{zone}')"
        ));
    }
    for (sql, says) in [
        ("SELECT us AT TIME ZONE id FROM t", "timezone takes the constant name of a time zone"),
        ("SELECT id AT TIME ZONE 'UTC' FROM t", "timezone takes the constant name of a time zone"),
        ("SELECT us AT TIME ZONE 'Mars/Base' FROM t", "Mars/Base"),
    ] {
        let error = run(&pair.device, sql).expect_err(sql).to_string();
        assert!(error.contains(says), "{sql}: {error}");
    }
}
