//! A frame with a column of every type, through every format and back.

use std::sync::Arc;

use warpframe::arrow::array::*;
use warpframe::arrow::buffer::OffsetBuffer;
use warpframe::arrow::datatypes::*;

use super::*;
use crate::differential::builder;

/// Sessions with a device and without. The device leaves functions of bytes to the CPU.
fn each(check: impl Fn(&Session, &Files) -> Result<()>) -> Result<()> {
    for session in [builder().strict(false).build()?, Pair::new().cpu] {
        check(&session, &Files::new())?;
    }
    Ok(())
}

fn numbers<T: ArrowPrimitiveType>(values: [T::Native; 3]) -> PrimitiveArray<T> {
    values.into_iter().map(Some).chain([None]).collect()
}

fn decimals(values: [i128; 3], precision: u8, scale: i8) -> ArrayRef {
    let array = numbers::<Decimal128Type>(values);
    Arc::new(array.with_precision_and_scale(precision, scale).expect("it is one"))
}

const TEXTS: [Option<&str>; 4] = [Some("x,\"y\" 'z'"), Some(""), Some("é\nNULL"), None];
const BYTES: [Option<&[u8]>; 4] = [Some(b"ab"), Some(b""), Some(&[0xff, 0]), None];

/// Lists of three, of none, null, and of one.
fn lists(values: ArrayRef) -> ArrayRef {
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([3, 0, 0, 1]);
    let nulls = vec![true, true, false, true].into();
    Arc::new(ListArray::new(item, offsets, values, Some(nulls)))
}

fn structs(columns: Vec<(&str, ArrayRef)>) -> StructArray {
    let field =
        |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let fields: Fields = columns.iter().map(field).collect();
    let nulls = vec![true, true, false, true].into();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    StructArray::new(fields, arrays, Some(nulls))
}

fn maps() -> ArrayRef {
    let mut builder = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for row in 0..4 {
        for entry in 0..row % 3 {
            builder.keys().append_value(format!("k {entry}"));
            builder.values().append_option((entry != 1).then_some(entry));
        }
        builder.append(row != 2).expect("as many keys as values");
    }
    Arc::new(builder.finish())
}

/// Columns of types that have no parts, which texts of their values are cast to.
fn plain() -> Vec<(String, ArrayRef)> {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let mut columns: Vec<(String, ArrayRef)> = vec![];
    let mut add = |name: &str, array: ArrayRef| columns.push((name.into(), array));
    add("i8", Arc::new(numbers::<Int8Type>([i8::MIN, i8::MAX, 7])));
    add("i16", Arc::new(numbers::<Int16Type>([i16::MIN, i16::MAX, 7])));
    add("i32", Arc::new(numbers::<Int32Type>([i32::MIN, i32::MAX, 7])));
    add("i64", Arc::new(numbers::<Int64Type>([i64::MIN, i64::MAX, 7])));
    add("u8", Arc::new(numbers::<UInt8Type>([0, u8::MAX, 7])));
    add("u16", Arc::new(numbers::<UInt16Type>([0, u16::MAX, 7])));
    add("u32", Arc::new(numbers::<UInt32Type>([0, u32::MAX, 7])));
    add("u64", Arc::new(numbers::<UInt64Type>([0, u64::MAX, 7])));
    add("f32", Arc::new(numbers::<Float32Type>([0.1, f32::MIN_POSITIVE, f32::MAX])));
    add("f64", Arc::new(numbers::<Float64Type>([0.1, -0.0, 1e300])));
    add("odd", Arc::new(numbers::<Float64Type>([nan, inf, -inf])));
    add("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), Some(true), None])));
    add("d9", decimals([-999_999_999, 999_999_999, 5], 9, 2));
    add("d18", decimals([-(10i128.pow(18)) + 1, 10i128.pow(18) - 1, 5], 18, 3));
    add("d38", decimals([-(10i128.pow(38)) + 1, 10i128.pow(38) - 1, 5], 38, 10));
    add("day", Arc::new(numbers::<Date32Type>([-719_162, 2_932_896, 0])));
    add("t_s", Arc::new(numbers::<Time32SecondType>([0, 86_399, 1])));
    add("t_ms", Arc::new(numbers::<Time32MillisecondType>([0, 86_399_999, 1])));
    add("t_us", Arc::new(numbers::<Time64MicrosecondType>([0, 86_399_999_999, 1])));
    add("t_ns", Arc::new(numbers::<Time64NanosecondType>([0, 86_399_999_999_999, 1])));
    for zone in [None, Some("UTC"), Some("Europe/Berlin")] {
        let mut of = |unit: &str, array: ArrayRef| {
            let suffix = zone.map_or("", |zone| if zone == "UTC" { "_utc" } else { "_there" });
            columns.push((format!("ts_{unit}{suffix}"), array));
        };
        // The last day of the year 9999 has begun nowhere: later years have no text that is read.
        let (s, ms) = ([-1, 253_402_200_799, 0], [-1, 253_402_200_799_999, 0]);
        let (us, ns) = ([-1, 253_402_200_799_999_999, 0], [-1, i64::MAX - 1, 0]);
        of("s", Arc::new(numbers::<TimestampSecondType>(s).with_timezone_opt(zone)));
        of("ms", Arc::new(numbers::<TimestampMillisecondType>(ms).with_timezone_opt(zone)));
        of("us", Arc::new(numbers::<TimestampMicrosecondType>(us).with_timezone_opt(zone)));
        of("ns", Arc::new(numbers::<TimestampNanosecondType>(ns).with_timezone_opt(zone)));
    }
    let spans = [(14, -3, 3_723_000_000_001), (-1, 0, 0), (0, 0, -1)]
        .map(|(months, days, nanos)| IntervalMonthDayNano::new(months, days, nanos));
    let mut add = |name: &str, array: ArrayRef| columns.push((name.into(), array));
    add("iv", Arc::new(numbers::<IntervalMonthDayNanoType>(spans)));
    add("s", Arc::new(StringArray::from(TEXTS.to_vec())));
    add("s_long", Arc::new(LargeStringArray::from(TEXTS.to_vec())));
    add("s_view", Arc::new(StringViewArray::from(TEXTS.to_vec())));
    let codes = Int32Array::from(vec![Some(0), Some(1), Some(0), None]);
    let texts = Arc::new(StringArray::from(vec!["a", ""]));
    add("coded", Arc::new(DictionaryArray::<Int32Type>::new(codes.clone(), texts)));
    let views = Arc::new(StringViewArray::from(vec!["a", ""]));
    add("coded_view", Arc::new(DictionaryArray::<Int32Type>::new(codes, views)));
    columns
}

fn bytes() -> Vec<(String, ArrayRef)> {
    vec![
        ("by".into(), Arc::new(BinaryArray::from(BYTES.to_vec()))),
        ("by_long".into(), Arc::new(LargeBinaryArray::from(BYTES.to_vec()))),
        ("by_view".into(), Arc::new(BinaryViewArray::from(BYTES.to_vec()))),
    ]
}

/// Columns of types with parts, and the types as SQL has them.
fn nested() -> Vec<(&'static str, &'static str, ArrayRef)> {
    let texts = |texts: [Option<&str>; 4]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    let views = Arc::new(StringViewArray::from(TEXTS.to_vec())) as ArrayRef;
    let n = || Arc::new(numbers::<Int64Type>([1, -2, 3])) as ArrayRef;
    let day = Arc::new(numbers::<Date32Type>([0, 1, 2])) as ArrayRef;
    let both = || structs(vec![("p", n()), ("q", texts(TEXTS)), ("v", views.clone())]);
    vec![
        ("l", "BIGINT[]", lists(n())),
        ("l_s", "VARCHAR[]", lists(texts(TEXTS))),
        ("l_v", "VARCHAR[]", lists(views.clone())),
        ("l_d", "DATE[]", lists(day)),
        ("st", "STRUCT(p BIGINT, q VARCHAR, v VARCHAR)", Arc::new(both())),
        ("l_st", "STRUCT(p BIGINT, q VARCHAR, v VARCHAR)[]", lists(Arc::new(both()))),
    ]
}

/// Decimals of more digits than doubles have.
const LONG: [&str; 2] = ["d18", "d38"];

fn batch(columns: Vec<(String, ArrayRef)>) -> RecordBatch {
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length")
}

/// All columns; maps where the session has no device, which holds none.
fn all(session: &Session) -> RecordBatch {
    let nested = nested().into_iter().map(|(name, _, array)| (name.to_string(), array));
    let maps = session.device().is_none().then(|| ("m".to_string(), maps()));
    batch(plain().into_iter().chain(bytes()).chain(nested).chain(maps).collect())
}

fn without_maps(frame: &DataFrame) -> Result<DataFrame> {
    let names = frame.column_names().into_iter().filter(|name| name != "m");
    frame.select(names.map(|name| col(name.as_str())).collect::<Vec<_>>())
}

/// The rows of a table, with these columns in the place of its own.
fn replaced(session: &Session, from: &str, columns: &[String]) -> Result<DataFrame> {
    let replaced = columns.join(", ");
    run(session, &format!("SELECT {replaced} FROM {from}"))
}

fn check(found: &DataFrame, expected: &DataFrame, what: &str) -> Result<()> {
    assert_eq!(found.column_names(), expected.column_names(), "{what}");
    for name in expected.column_names() {
        let of = |frame: &DataFrame| frame.select([col(name.as_str())]);
        let (found, expected) = (of(found)?, of(expected)?);
        assert!(found.equals(&expected)?, "{what}: {found:?} is not {expected:?}");
    }
    assert!(found.equals(expected)?, "{what}");
    Ok(())
}

#[test]
fn arrow_files_hold_every_type() -> Result<()> {
    each(|session, files| {
        let frame = session.from_arrow([all(session)])?;
        for (name, compression) in [("t.arrow", None), ("z.arrow", Some(warpframe::IpcCodec::Zstd))]
        {
            let path = files.path(name);
            let options = warpframe::IpcWriteOptions { compression, ..Default::default() };
            frame.write_ipc_with(&path, options)?;
            check(&session.read_ipc(&path)?, &frame, name)?;
        }
        Ok(())
    })
}

/// Parquet has no seconds, which become milliseconds, and no intervals of ours, which text holds.
#[test]
fn parquet_files_hold_every_type_but_seconds_and_intervals() -> Result<()> {
    each(|session, files| {
        session.register_table("t", &session.from_arrow([all(session)])?)?;
        let names: Vec<String> = run(session, "FROM t")?.column_names();
        let column = |name: &String| {
            match name.as_str() {
            "iv" => "CAST(iv AS VARCHAR) AS iv".to_string(),
            "t_s" => "arrow_cast(t_s, 'Time32(Millisecond)') AS t_s".into(),
            "ts_s" => "arrow_cast(ts_s, 'Timestamp(Millisecond, None)') AS ts_s".into(),
            "ts_s_utc" => {
                "arrow_cast(ts_s_utc, 'Timestamp(Millisecond, Some(\"UTC\"))') AS ts_s_utc".into()
            }
            "ts_s_there" => {
                "arrow_cast(ts_s_there, 'Timestamp(Millisecond, Some(\"Europe/Berlin\"))') AS ts_s_there"
                    .into()
            }
            name => name.into(),
        }
        };
        let columns: Vec<String> = names.iter().map(column).collect();
        let frame = replaced(session, "t", &columns)?;
        for version in [warpframe::ParquetVersion::V1, warpframe::ParquetVersion::V2] {
            let path = files.path("t.parquet");
            let options = warpframe::ParquetWriteOptions { version, ..Default::default() };
            frame.write_parquet_with(&path, options)?;
            check(&session.read_parquet(&path)?, &frame, "t.parquet")?;
        }
        let refused = run(session, "FROM t")?.write_parquet(files.path("u.parquet"));
        assert!(refused.expect_err("intervals").to_string().contains("\"iv\""));
        Ok(())
    })
}

/// What becomes a value of a type from its text: bytes are hexadecimal there.
fn from_text(name: &str, dtype: &DataType) -> String {
    match dtype {
        dtype if dtype.is_binary() => format!("decode(\"{name}\", 'hex') AS \"{name}\""),
        DataType::Dictionary(..) => format!("\"{name}\""),
        dtype if dtype.is_string() => format!("\"{name}\""),
        DataType::Interval(_) => format!("CAST(\"{name}\" AS INTERVAL) AS \"{name}\""),
        dtype => format!("arrow_cast(\"{name}\", '{dtype}') AS \"{name}\""),
    }
}

/// Text has no types: all are told, and of maps there is no text that is read.
#[test]
fn csv_files_hold_the_texts_of_every_type() -> Result<()> {
    each(|session, files| {
        let (plain, bytes, nested) = (plain(), bytes(), nested());
        let whole = all(session);
        let frame = session.from_arrow([whole])?;
        let path = files.path("t.csv");
        frame.write_csv(&path)?;
        let mut columns: Vec<String> = plain
            .iter()
            .chain(&bytes)
            .map(|(name, array)| from_text(name, array.data_type()))
            .collect();
        columns.extend(
            nested.iter().map(|(name, of, _)| format!("CAST(\"{name}\" AS {of}) AS \"{name}\"")),
        );
        let from = format!("read_csv('{}', all_varchar => true)", path.display());
        let found = replaced(session, &from, &columns)?;
        check(&found, &without_maps(&frame)?, "t.csv")?;
        if session.device().is_none() {
            let maps = run(session, &format!("SELECT m FROM {from}"))?.column("m")?;
            let expected = [Some("{}"), Some("{k 0=0}"), None, Some("{}")];
            assert_eq!(
                maps.to_vec::<Option<String>>()?,
                expected.map(|text| text.map(String::from))
            );
        }
        Ok(())
    })
}

/// Types follow from the values, and the others are told; maps come back as structs, and what is
/// no number as NULL. Numbers with a point are read as doubles, which have not all digits of long
/// decimals: the file has them.
#[test]
fn json_files_hold_the_values_of_every_type() -> Result<()> {
    each(|session, files| {
        let (plain, bytes, nested) = (plain(), bytes(), nested());
        let frame = session.from_arrow([all(session)])?;
        let odd = Arc::new(Float64Array::from(vec![None; 4])) as ArrayRef;
        let own = plain.iter().chain(&bytes).cloned();
        let own = own.filter(|(name, _)| !LONG.contains(&name.as_str()));
        let own = own
            .map(|(name, array)| if name == "odd" { (name, odd.clone()) } else { (name, array) });
        let own =
            own.chain(nested.iter().map(|(name, _, array)| (name.to_string(), array.clone())));
        let expected = session.from_arrow([batch(own.collect())])?;
        for path in [files.path("t.ndjson"), files.path("t.json.gz")] {
            let array = path.ends_with("t.json.gz");
            let options = warpframe::JsonWriteOptions { array, ..Default::default() };
            frame.write_json_with(&path, options)?;
            let column = |(name, array): &(String, ArrayRef)| match name.as_str() {
                "odd" => "CAST(odd AS DOUBLE) AS odd".to_string(),
                _ => from_text(name, array.data_type()),
            };
            let short = |(name, _): &&(String, ArrayRef)| !LONG.contains(&name.as_str());
            let mut columns: Vec<String> =
                plain.iter().chain(&bytes).filter(short).map(column).collect();
            columns.extend(nested.iter().map(|(name, of, _)| match *name {
                "l_d" => format!("CAST(l_d AS {of}) AS l_d"),
                name => name.to_string(),
            }));
            let from = format!("read_json('{}')", path.display());
            let found = replaced(session, &from, &columns)?;
            check(&found, &expected, &path.display().to_string())?;
            if !array {
                let text = std::fs::read_to_string(&path).expect("a file of text");
                let digits = format!("\"d38\":{}.{},", "9".repeat(28), "9".repeat(10));
                assert!(text.contains(&digits), "{text}");
            }
            if session.device().is_none() {
                let second = format!("SELECT m['k 0'] FROM {from} LIMIT 1 OFFSET 1");
                assert_eq!(scalar(session, &second), Cell::Int(0));
            }
        }
        Ok(())
    })
}
