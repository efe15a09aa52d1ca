//! Dates and timestamps: made, taken apart, moved.

use super::{check, check_all};

#[test]
fn dates_and_timestamps_are_made() {
    check(
        "test_moments",
        &[
            ("make_date(i32, i8, 5)", &[]),
            ("make_date(ri32 + 1990, ri32n, ri8)", &[]),
            (
                "to_timestamp({})",
                &["i64", "ri32", "f64", "rf64", "f32", "ts", "tms", "stime", "sn"],
            ),
            ("to_timestamp_seconds({})", &["i64", "tns", "stime"]),
            ("to_timestamp_millis({})", &["i64", "tns", "stime"]),
            ("to_timestamp_micros({})", &["tms", "stime"]),
            ("to_timestamp_nanos({})", &["ts", "stime"]),
            ("to_unixtime({})", &["i64", "tns", "stime", "date", "rf64"]),
            ("from_unixtime({})", &["i64", "ri32"]),
            ("to_date({})", &["sdate", "i64", "ri8", "tms", "date", "rm"]),
            ("date_bin(INTERVAL '{}', tns)", &["1 hour", "17 days", "3 months", "5 years"]),
            (
                "date_bin(INTERVAL '{}', tms, TIMESTAMP '2024-02-29T12:00:00.5')",
                &["90 seconds", "1 month"],
            ),
            ("date_bin(INTERVAL '1 day', {})", &["ts", "tus", "utc"]),
            ("ts - arrow_cast(i64, 'Timestamp(Second, None)')", &[]),
            ("{} - {}", &["tns", "tms"]),
            ("tms + (tms - arrow_cast(ri32, 'Timestamp(Millisecond, None)'))", &[]),
            (
                "date + CASE WHEN b THEN INTERVAL '1 month -3 days' ELSE INTERVAL '36 hours' END",
                &[],
            ),
            (
                "{} - CASE WHEN b THEN INTERVAL '13 months' ELSE INTERVAL '1 day 1 nanosecond' END",
                &["ts", "tms", "tus", "tns", "date"],
            ),
            ("arrow_cast({}, 'Time64(Nanosecond)')", &["tns", "tus"]),
            (
                "CAST(arrow_cast({}, 'Time64(Microsecond)') AS VARCHAR)",
                &["tns", "tms", "ri64", "i64"],
            ),
            ("arrow_try_cast(sclock, 'Time64({})')", &["Nanosecond", "Microsecond"]),
            ("arrow_cast(sclock, 'Time32({})')", &["Second", "Millisecond"]),
        ],
    );
}

#[test]
fn dates_have_parts_and_move_by_intervals() {
    let points = ["date", "rdate", "wild", "ts", "tms", "tus", "tns", "utc"];
    let mut sql = Vec::new();
    for part in [
        "year",
        "isoyear",
        "quarter",
        "month",
        "week",
        "day",
        "doy",
        "dow",
        "isodow",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
        "nanosecond",
        "epoch",
    ] {
        sql.extend(points.iter().map(|p| format!("date_part('{part}', {p})")));
    }
    for interval in [
        "1 month",
        "13 months",
        "90 days",
        "1 year 2 months 3 days",
        "36 hours",
        "1500 milliseconds",
    ] {
        for point in ["date", "rdate", "date2", "ts", "tms", "tus", "tns"] {
            sql.push(format!("{point} + INTERVAL '{interval}'"));
            sql.push(format!("{point} - INTERVAL '{interval}'"));
        }
    }
    for part in ["second", "minute", "hour", "day", "week", "month", "quarter", "year"] {
        sql.extend(
            ["ts", "tms", "tus", "tns"].iter().map(|p| format!("date_trunc('{part}', {p})")),
        );
    }
    sql.push("date - date2".into());
    check_all("test_dates", &sql);
}
