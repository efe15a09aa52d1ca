//! Conformance columns: limits, NaN, −0.0, "" and é, nulls with garbage beneath.

use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};

/// Rows of every column. More than 32, not a multiple of it.
pub(super) const ROWS: usize = 43;

/// Repeats `values` to [`ROWS`] rows, in an order of its own for each `stride`; every seventh is
/// null where asked.
fn rows<T: Clone>(values: &[T], stride: usize, nulls: bool) -> Vec<Option<T>> {
    (0..ROWS)
        .map(|i| {
            (!nulls || (i + stride) % 7 != 3)
                .then(|| values[(i * stride + i / values.len()) % values.len()].clone())
        })
        .collect()
}

macro_rules! integers {
    ($batch:ident, $name:literal, $array:ty, $native:ty) => {
        let limits = [
            0,
            1,
            2,
            3,
            5,
            7,
            100,
            <$native>::MAX,
            <$native>::MAX - 1,
            <$native>::MIN,
            <$native>::MIN + 1,
        ];
        let signed: [$native; 2] = [(0 as $native).wrapping_sub(1), (0 as $native).wrapping_sub(7)];
        let values: Vec<$native> = limits.into_iter().chain(signed).collect();
        $batch.push((concat!($name), Arc::new(<$array>::from(rows(&values, 1, true))) as ArrayRef));
        $batch.push((
            concat!($name, "b"),
            Arc::new(<$array>::from(rows(&values, 5, true))) as ArrayRef,
        ));
        // Small values, whose range the columns state.
        let small: Vec<$native> = vec![0, 1, 2, 3, 10, 99, 100, 50, 4];
        $batch.push((
            concat!("r", $name),
            Arc::new(<$array>::from(rows(&small, 1, false))) as ArrayRef,
        ));
        $batch.push((
            concat!("r", $name, "n"),
            Arc::new(<$array>::from(rows(&small, 4, true))) as ArrayRef,
        ));
    };
}

fn decimal(values: &[i128], stride: usize, nulls: bool, precision: u8, scale: i8) -> ArrayRef {
    let array = Decimal128Array::from(rows(values, stride, nulls));
    Arc::new(array.with_precision_and_scale(precision, scale).expect("a valid decimal"))
}

/// Texts of integers, decimals and truth values, and what looks like them.
#[rustfmt::skip]
const INTEGER_TEXTS: [&str; 43] = [
    "0", "1", "-1", "+7", "42", " 42", "42 ", "\t-8\n", "-0", "00012", "127", "128", "-128", "-129", "255", "256", "32768",
    "2147483647", "2147483648", "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "18446744073709551615", "18446744073709551616", "99999999999999999999999999", "", " ", "+", "-",
    "5 5", "--5", "1.5", "0x10", "true", " Yes ", "OFF", "tr", "o", "of", "\u{a0}no\u{2003}", "é",
];

/// Texts of floats and decimals.
#[rustfmt::skip]
const FLOAT_TEXTS: [&str; 43] = [
    "0", "-0.0", "1.5", ".5", "5.", ".", "1e5", "1E-5", "1e", "1e+", "e5", "NaN", "-nan", "inf", "-Infinity", "infinit",
    "0.1", "123456789.123456789", "1.7976931348623157e308", "1e309", "-1e999999999999", "4.9e-324", "2e-324", "1e-400",
    "2.2250738585072011e-308", "9007199254740993", "9007199254740992.5", "1234567890123456789012345", " 1.25 ", "1 .5",
    "0.0000000000000000000000000000001", "3.4028236e38", "1e-45", "16777217", "0.000", "1.2.3", "-12.345", "99999.995",
    "+0.05", "-.5", "12345678901234567890.5", "8.5e-2x", "000000000000000000000000000001.25",
];

/// Texts of timestamps.
#[rustfmt::skip]
const TIME_TEXTS: [&str; 43] = [
    "2024-02-29T12:34:56", "2024-02-29 12:34:56", "2024-02-29t12:34:56.5", "2024-02-29T12:34:56.123456789",
    "2024-02-29T12:34:56.1234567891234", "2024-02-29T12:34:56.123456789123456Z", "2024-02-29T12:34:56Z",
    "2024-02-29T12:34:56z", "2024-02-29T12:34:56+01:00", "2024-02-29T12:34:56 -0530", "2024-02-29T12:34:56+05",
    "2024-02-29", "2023-02-29", "2024-13-01", "2024-02-29 12:34Z", "2024-02-29 12:34+01:00", "2024-02-29T24:00:00", "2024-02-29T23:59:60",
    "2024-02-29T23:59:60.25", "2024-02-29 12:60", "2024-02-29 123456", "2024-02-29 123456+01:00", "2024-02-29X12:34:56",
    "2024-02-29T12:34:56.", "2024-02-29T12:34", "2024-02-29T", "", "1969-12-31T23:59:59.999", "0001-01-01T00:00:00",
    "9999-12-31T23:59:59.999999999", "1677-09-21T00:12:43.145224192", "1677-09-21T00:12:43.145224191",
    "2262-04-11T23:47:16.854775807", "2262-04-11T23:47:16.854775808", "2024-02-29T12:34:56+24:00", "2024-2-29T12:34:56",
    "2024-02-29T12:34:56+1", "2024-02-29T12:34:56 ", " 2024-02-29", "2024-02-29  12:34:56", "2024-02-29T12:34:56-00:00",
    "2024-02-29T1:34:56", "2024-02-29 12:34.5",
];

/// Texts of times of day.
#[rustfmt::skip]
const CLOCK_TEXTS: [&str; 30] = [
    "12:34", "1:34", "01:34:56", "1:34:56.5", "12:34:56.123456789", "12:34:56.1234567891", "12:34:56 PM", "12:34:56 am",
    "00:10 AM", "11:59:59.999 pM", "13:00 PM", "24:00", "23:60", "23:59:60", "23:59:60.5", "23:59:61", "", "12", "12:", "12:3",
    "12:345", "12:34:5", "12:34:56.", "12:34:56.5x", "1234", "-5", "+7", " 12:34", "ab:cd", "12:34 XM",
];

/// Texts of dates.
#[rustfmt::skip]
const DATE_TEXTS: [&str; 43] = [
    "2024-02-29", "2024-2-29", "2024-02-9", "2024-2-9", "20240229", "2024-02-30", "2023-02-29", "1900-02-29", "2000-02-29",
    "0000-01-01", "0001-01-01", "9999-12-31", "+12024-02-29", "-0001-01-01", "-44-03-15", "+2024-1-1", "+2024-+1-01",
    "+5881580-07-11", "+5881580-07-12", "-5877641-06-23", "-5877641-06-22", "+99999999999-01-01", "", "-", "+", "2024",
    "2024-02", "2024-02-", "2024/02/29", "24-02-29", "2024-02-29T12:00:00", "2024-02-29T23:00:00-05:00",
    "2024-02-29 01:00:00+05:00", "2024-02-29x", "2024-02-290", "12024-02-29", "2024-00-10", "2024-10-00", "1969-12-31",
    "1970-01-01", "+2024-02-29-1", "abcd-ef-gh", "2024-02-2é",
];

/// All columns; those whose name begins with `r` state the range of their values, `d` are
/// dictionary-encoded.
pub(super) fn batch() -> RecordBatch {
    let mut c: Vec<(&str, ArrayRef)> = Vec::new();
    integers!(c, "i8", Int8Array, i8);
    integers!(c, "i16", Int16Array, i16);
    integers!(c, "i32", Int32Array, i32);
    integers!(c, "i64", Int64Array, i64);
    integers!(c, "u8", UInt8Array, u8);
    integers!(c, "u16", UInt16Array, u16);
    integers!(c, "u32", UInt32Array, u32);
    integers!(c, "u64", UInt64Array, u64);

    let f = [
        0.0,
        -0.0,
        1.5,
        -1.5,
        2.5,
        -2.5,
        0.1,
        1e10,
        -1e300,
        f64::NAN,
        -f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE,
        9007199254740993.0,
        123456.789,
        2147483647.5,
        -9223372036854775808.0,
    ];
    let g: Vec<f32> = f.iter().map(|x| *x as f32).collect();
    c.push(("f64", Arc::new(Float64Array::from(rows(&f, 1, true)))));
    c.push(("f64b", Arc::new(Float64Array::from(rows(&f, 5, true)))));
    c.push((
        "rf64",
        Arc::new(Float64Array::from(rows(&[1.25, -3.5, 100.0, 0.0, -0.0, 0.7], 1, false))),
    ));
    c.push(("f32", Arc::new(Float32Array::from(rows(&g, 1, true)))));
    c.push(("f32b", Arc::new(Float32Array::from(rows(&g, 5, true)))));
    c.push(("b", Arc::new(BooleanArray::from(rows(&[true, false, false, true, true], 1, true)))));
    c.push(("b2", Arc::new(BooleanArray::from(rows(&[true, false, true], 4, true)))));
    c.push(("bn", Arc::new(BooleanArray::from(rows(&[true, false, true], 1, false)))));

    let p15 = 10i128.pow(15) - 1;
    let cents = [0, 1, -1, 5, -5, 49, 50, 149, -150, 12345, p15, -p15, 10_000, 9_999];
    c.push(("m", decimal(&cents, 1, true, 15, 2)));
    c.push(("mb", decimal(&cents, 5, true, 15, 2)));
    c.push(("rm", decimal(&[0, 1, 10, 4, 7, 5, 100_000], 1, false, 15, 2)));
    c.push(("rmn", decimal(&[0, 1, 10, 4, -7, 500], 3, true, 15, 2)));
    let p38 = 10i128.pow(37) * 9;
    c.push((
        "w",
        decimal(
            &[0, 1, -1, 10000, -25000, p38, -p38, 123456789012345678901, 55555],
            1,
            true,
            38,
            4,
        ),
    ));
    c.push(("wb", decimal(&[0, 1, -1, 10000, -25000, 3, p38, 10i128.pow(20)], 3, true, 38, 4)));
    c.push(("k", decimal(&[0, 7, -7, 999, -999, 42], 1, true, 3, 0)));

    // The ends of Arrow's calendar, leap days, the ends of months.
    let days = [
        0, -1, 1, 59, 60, 31, 11016, 11017, 19782, 19783, 8766, 9125, -719528, -719469, 95026236,
        -96465292,
    ];
    c.push(("date", Arc::new(Date32Array::from(rows(&days, 1, true)))));
    c.push(("date2", Arc::new(Date32Array::from(rows(&[0, 8035, 9131, 10591, 19782], 3, true)))));
    c.push((
        "rdate",
        Arc::new(Date32Array::from(rows(&[8035, 8036, 9131, 10591, 10561, 9555], 1, false))),
    ));
    c.push((
        "wild",
        Arc::new(Date32Array::from(rows(
            &[0, i32::MAX, i32::MIN, 95026237, -96465293, 5],
            1,
            true,
        ))),
    ));
    let seconds = [
        0i64,
        -1,
        1,
        86399,
        86400,
        -86400,
        -86401,
        951782400,
        1709210096,
        8210266876799,
        -62135596800,
    ];
    let times = |factor: i64| -> Vec<i64> {
        let fitting = seconds.iter().filter_map(move |s| s.checked_mul(factor));
        fitting.chain([123_456_789, -123_456_789]).collect()
    };
    c.push(("ts", Arc::new(TimestampSecondArray::from(rows(&times(1), 1, true)))));
    c.push(("tms", Arc::new(TimestampMillisecondArray::from(rows(&times(1_000), 1, true)))));
    c.push(("tus", Arc::new(TimestampMicrosecondArray::from(rows(&times(1_000_000), 1, true)))));
    c.push(("tns", Arc::new(TimestampNanosecondArray::from(rows(&times(1_000_000_000), 1, true)))));
    c.push((
        "utc",
        Arc::new(
            TimestampMicrosecondArray::from(rows(&times(1_000_000), 2, true)).with_timezone("UTC"),
        ),
    ));

    let texts = [
        "",
        "a",
        "é",
        "abc",
        "abcd",
        "abcdefghijkl",
        "abcdefghijklm",
        "abcdefghijklé",
        "special requests",
        "the special packages requests sleep",
        "aab",
        "%",
        "a_c",
        "100%",
        "  spaces  ",
        "über-straße, ünïcode €",
        "PROMO BRUSHED COPPER",
        "requests special",
        "a\\b",
        "zzzzzzzzzzzzzzzzzzzzzz",
        "abababababababac",
        "KelvinS \u{212a}\u{17f}",
        "ks",
    ];
    c.push(("s", Arc::new(StringViewArray::from(rows(&texts, 1, true)))));
    c.push(("t", Arc::new(StringViewArray::from(rows(&texts, 5, true)))));
    c.push(("sn", Arc::new(StringViewArray::from(rows(&texts, 2, false)))));
    c.push(("ds", Arc::new(StringViewArray::from(rows(&texts, 1, true)))));
    c.push(("dn", Arc::new(StringViewArray::from(rows(&texts, 4, false)))));
    // More than 64 entries, see `dictionary`.
    c.push(("dlong", Arc::new(StringViewArray::from(rows(&texts, 8, true)))));

    c.push(("sint", Arc::new(StringViewArray::from(rows(&INTEGER_TEXTS, 1, true)))));
    c.push(("sfloat", Arc::new(StringViewArray::from(rows(&FLOAT_TEXTS, 1, true)))));
    c.push(("stime", Arc::new(StringViewArray::from(rows(&TIME_TEXTS, 1, true)))));
    c.push(("sdate", Arc::new(StringViewArray::from(rows(&DATE_TEXTS, 1, true)))));
    c.push(("sclock", Arc::new(StringViewArray::from(rows(&CLOCK_TEXTS, 1, true)))));

    let fields: Vec<Field> = c
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), array.null_count() > 0))
        .collect();
    RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        c.into_iter().map(|(_, array)| array).collect(),
    )
    .expect("columns of one length")
}

/// The values of a type as the device holds them: bytes, with garbage beneath nulls (strings
/// aside).
pub(super) fn device_bytes(array: &ArrayRef) -> Vec<u8> {
    const GARBAGE: u8 = 0xa5;
    macro_rules! plain {
        ($array:ty) => {{
            let array = array.as_any().downcast_ref::<$array>().expect("the array of its type");
            let width = std::mem::size_of_val(&array.value(0));
            array
                .iter()
                .flat_map(|value| value.map_or(vec![GARBAGE; width], |v| v.to_le_bytes().to_vec()))
                .collect()
        }};
    }
    match array.data_type() {
        DataType::Boolean => {
            array.as_boolean().iter().map(|v| v.map_or(GARBAGE, u8::from)).collect()
        }
        DataType::Int8 => plain!(Int8Array),
        DataType::Int16 => plain!(Int16Array),
        DataType::Int32 => plain!(Int32Array),
        DataType::Int64 => plain!(Int64Array),
        DataType::UInt8 => plain!(UInt8Array),
        DataType::UInt16 => plain!(UInt16Array),
        DataType::UInt32 => plain!(UInt32Array),
        DataType::UInt64 => plain!(UInt64Array),
        DataType::Float32 => plain!(Float32Array),
        DataType::Float64 => plain!(Float64Array),
        DataType::Date32 => plain!(Date32Array),
        DataType::Timestamp(TimeUnit::Second, _) => plain!(TimestampSecondArray),
        DataType::Timestamp(TimeUnit::Millisecond, _) => plain!(TimestampMillisecondArray),
        DataType::Timestamp(TimeUnit::Microsecond, _) => plain!(TimestampMicrosecondArray),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => plain!(TimestampNanosecondArray),
        DataType::Time32(TimeUnit::Second) => plain!(Time32SecondArray),
        DataType::Time32(_) => plain!(Time32MillisecondArray),
        DataType::Time64(TimeUnit::Microsecond) => plain!(Time64MicrosecondArray),
        DataType::Time64(_) => plain!(Time64NanosecondArray),
        DataType::Duration(TimeUnit::Second) => plain!(DurationSecondArray),
        DataType::Duration(TimeUnit::Millisecond) => plain!(DurationMillisecondArray),
        DataType::Duration(TimeUnit::Microsecond) => plain!(DurationMicrosecondArray),
        DataType::Duration(TimeUnit::Nanosecond) => plain!(DurationNanosecondArray),
        DataType::Decimal128(precision, _) => {
            let width = if *precision <= 18 { 8 } else { 16 };
            let array = array.as_any().downcast_ref::<Decimal128Array>().expect("decimals");
            array
                .iter()
                .flat_map(|v| v.map_or(vec![GARBAGE; width], |v| v.to_le_bytes()[..width].to_vec()))
                .collect()
        }
        other => unreachable!("no test column has type {other}"),
    }
}
