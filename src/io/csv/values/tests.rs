//! What is read is what `CAST` reads.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;

fn cast(text: &str, to: &DataType) -> Option<ArrayRef> {
    let array = StringViewArray::from_iter_values([text]);
    let cast = cast_with_options(&array, to, &CastOptions { safe: true, ..CastOptions::default() })
        .unwrap();
    (!cast.is_null(0)).then_some(cast)
}

/// Numbers, and what is none, between bars.
const NUMBERS: &str = "0|-0|7|007|-12|+5|123456789012345678|1234567890123456789|9223372036854775807|\
    -9223372036854775808|9223372036854775808||-|1.|.5|-.5|.|1.5|1.25|0.1|-0.3|1e5|1E-7|1e|1e+|123456789.123456|\
    1234567890123456.7|2.2250738585072011e-308|1e400|nan|NaN|-inf|Infinity|1 2|1,5|\
    12345678901234567890123456789012345678";

/// Numbers of random digits with a point somewhere.
fn random_numbers() -> impl Iterator<Item = String> {
    let mut random = StdRng::seed_from_u64(3);
    (0..3000).map(move |_| {
        let count = random.random_range(1..25);
        let mut text: String =
            (0..count).map(|_| char::from(random.random_range(b'0'..=b'9'))).collect();
        if random.random_bool(0.7) {
            text.insert(random.random_range(0..=count), '.');
        }
        if random.random_bool(0.1) {
            text.push_str(&format!("e{}", random.random_range(-330..320)));
        }
        if random.random_bool(0.3) { format!("-{text}") } else { text }
    })
}

#[test]
fn what_is_read_is_what_cast_reads() {
    for text in NUMBERS.split('|').map(String::from).chain(random_numbers()) {
        let text = text.as_str();
        let bytes = text.as_bytes();
        if let Some(value) = integer(bytes) {
            let cast = cast(text, &DataType::Int64).expect(text);
            assert_eq!(value, cast.as_primitive::<Int64Type>().value(0), "{text}");
        }
        if let Some(value) = double(bytes) {
            let cast = cast(text, &DataType::Float64).expect(text);
            assert_eq!(
                value.to_bits(),
                cast.as_primitive::<Float64Type>().value(0).to_bits(),
                "{text}"
            );
        }
        for (precision, scale) in [(38, 0), (38, 2), (15, 2), (20, 10)] {
            if let Some(value) = decimal(bytes, precision, scale) {
                let cast = cast(text, &DataType::Decimal128(precision, scale)).expect(text);
                assert_eq!(value, cast.as_primitive::<Decimal128Type>().value(0), "{text}");
            }
        }
    }
    assert!(
        ["", "-", "+5", "1.0", "1 2", "9223372036854775808"]
            .iter()
            .all(|t| integer(t.as_bytes()).is_none())
    );
    assert!(["", "-", ".", "1e", "1 2", "+5", "x"].iter().all(|t| double(t.as_bytes()).is_none()));
    assert_eq!(decimal(b"1.25", 38, 1), None);
    assert_eq!(decimal(b"100", 4, 2), None);
    assert_eq!(decimal(b".", 4, 2), None);
}

#[test]
fn dates_and_timestamps_are_those_of_cast() {
    for text in
        "2020-01-31|1970-01-01|1969-12-31|2000-02-29|0001-01-01|9999-12-31|0000-03-01|1900-02-28"
            .split('|')
    {
        let cast = cast(text, &DataType::Date32).expect(text);
        assert_eq!(
            date(text.as_bytes()),
            Some(cast.as_primitive::<Date32Type>().value(0)),
            "{text}"
        );
    }
    for text in [
        "2021-02-29",
        "1900-02-29",
        "0000-00-00",
        "2020-1-31",
        "20200131",
        "2020-01-31 ",
        "2020/01/31",
    ] {
        assert_eq!(date(text.as_bytes()), None, "{text}");
    }
    let zone = |unit| DataType::Timestamp(unit, Some("+00:00".into()));
    for text in "2020-01-31 12:34:56|2020-01-31T12:34:56.7|1969-12-31 23:59:59.999999|\
        2020-01-31 12:34:56.123456|2020-01-31T12:34:56Z|2020-01-31 12:34:56.5+01:30|\
        2020-01-31 12:34:56-0330|2020-01-31 12:34:56.123456789|9999-12-31 23:59:59"
        .split('|')
    {
        let read = timestamp(text.as_bytes()).expect(text);
        let unzoned = |unit| DataType::Timestamp(unit, None);
        let (micros, nanos) = match read.is_zoned {
            true => (zone(TimeUnit::Microsecond), zone(TimeUnit::Nanosecond)),
            false => (unzoned(TimeUnit::Microsecond), unzoned(TimeUnit::Nanosecond)),
        };
        let nanos =
            cast(text, &nanos).map(|a| a.as_primitive::<TimestampNanosecondType>().value(0));
        assert_eq!(read.nanos(), nanos, "{text}");
        if let Some(value) = read.micros() {
            let micros = cast(text, &micros).expect(text);
            assert_eq!(value, micros.as_primitive::<TimestampMicrosecondType>().value(0), "{text}");
        } else {
            assert!(read.is_fine);
        }
    }
    assert_eq!(timestamp(b"2020-01-31 12:34").unwrap().seconds % 60, 0);
    // As they are written, which Arrow does not read.
    let hours = timestamp(b"2020-01-31 12:34:56+01");
    assert_eq!(hours, timestamp(b"2020-01-31 12:34:56+01:00"));
    assert!(hours.is_some_and(|read| read.is_zoned));
    for text in
        "2020-01-31|2020-01-31 12|2020-01-31 12:34:56 ERROR|2020-01-31 24:00:00|2020-01-31 12:60|\
        2020-01-31 12:34:56.|2020-01-31 12:34:56.1234567890|2020-01-31 12:34:56 +01:00|12:30 PM|\
        2020-01-31 12:34:56,896|2020-01-31 12:34:56+1|2020-01-31 12:34:|2020-01-31 12:3"
            .split('|')
    {
        assert_eq!(timestamp(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn numbers_of_other_notations_become_plain() {
    let german = Notation { decimal_comma: true, thousands: Some(b'.'), ..Notation::default() };
    let plain = |text: &str| {
        german.number(text.as_bytes()).map(|t| String::from_utf8(t.into_owned()).unwrap())
    };
    for (text, expected) in [
        ("1.234,5", Some("1234.5")),
        ("-12.345.678", Some("-12345678")),
        ("1234,5", Some("1234.5")),
        ("7", Some("7")),
        ("1.23", None),
        ("1.2345", None),
        ("1234.567", None),
        (".123", None),
        ("1.234.", None),
        ("0,5e3", Some("0.5e3")),
    ] {
        assert_eq!(plain(text).as_deref(), expected, "{text}");
    }
    let commas = Notation { thousands: Some(b','), ..Notation::default() };
    assert_eq!(commas.number(b"1,234.5").as_deref(), Some(b"1234.5".as_slice()));
    let dates = CsvOptions {
        date_format: Some("%d.%m.%Y".into()),
        timestamp_format: Some("%d/%m/%Y %H:%M %z".into()),
        ..CsvOptions::default()
    };
    let dates = Notation::of(&dates).unwrap();
    assert_eq!(dates.date(b"02.01.1970"), Some(1));
    assert_eq!(dates.date(b"1970-01-02"), None);
    let read = dates.timestamp(b"01/01/1970 01:00 +0100").unwrap();
    assert_eq!((read.seconds, read.is_zoned), (0, true));
    assert!(
        Notation::of(&CsvOptions { date_format: Some("%Q".into()), ..CsvOptions::default() })
            .is_err()
    );
}
