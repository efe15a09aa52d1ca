//! Parquet files of other writers: what they may hold, and what of their footers is not to be
//! believed.

use std::path::Path;
use std::sync::Arc;

use datafusion::parquet::data_type::{
    ByteArray, ByteArrayType, DataType as Physical, DoubleType, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type, Int96, Int96Type,
};
use datafusion::parquet::file::metadata::{
    KeyValue, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use datafusion::parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;
use warpframe::arrow::datatypes::{DataType, TimeUnit};
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::differential::{Cell, Pair, Rows, builder, run, scalar};

/// Values of a column without nulls, as Parquet has them.
#[derive(Debug, Clone)]
pub enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    /// Julian day, nanoseconds of the day.
    Int96(Vec<(u32, u64)>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<&'static [u8]>),
    Fixed(Vec<Vec<u8>>),
}

/// Writes a file of required columns, by a schema in Parquet's own words; each of the groups
/// becomes a row group.
pub fn write(
    path: &Path,
    columns: &str,
    groups: &[Vec<Values>],
    properties: WriterPropertiesBuilder,
) {
    let schema = parse_message_type(&format!("message m {{ {columns} }}"))
        .expect("a schema in Parquet's words");
    let file = std::fs::File::create(path).expect("the file can be made");
    let properties = Arc::new(properties.build());
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), properties)
        .expect("a file can be written");
    for group in groups {
        let mut rows = writer.next_row_group().expect("a row group can be written");
        for values in group {
            let mut column = rows
                .next_column()
                .expect("columns can be written")
                .expect("as many as there are values");
            macro_rules! put {
                ($kind:ty, $values:expr) => {{
                    let values: Vec<<$kind as Physical>::T> = $values;
                    column
                        .typed::<$kind>()
                        .write_batch(&values, None, None)
                        .expect("values of the type");
                }};
            }
            match values.clone() {
                Values::Int32(values) => put!(Int32Type, values),
                Values::Int64(values) => put!(Int64Type, values),
                Values::Float(values) => put!(FloatType, values),
                Values::Double(values) => put!(DoubleType, values),
                Values::Bytes(values) => {
                    put!(ByteArrayType, values.into_iter().map(ByteArray::from).collect())
                }
                Values::Fixed(values) => {
                    put!(
                        FixedLenByteArrayType,
                        values.into_iter().map(|bytes| ByteArray::from(bytes).into()).collect()
                    )
                }
                Values::Int96(values) => put!(
                    Int96Type,
                    values
                        .into_iter()
                        .map(|(day, nanos)| {
                            let mut value = Int96::new();
                            value.set_data(nanos as u32, (nanos >> 32) as u32, day);
                            value
                        })
                        .collect()
                ),
            }
            column.close().expect("the column is whole");
        }
        rows.close().expect("the row group is whole");
    }
    writer.close().expect("the file is whole");
}

pub fn plain() -> WriterPropertiesBuilder {
    WriterProperties::builder()
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for files")
}

/// Sessions on the CPU and on the device, with the file as table `t`.
fn both(path: &Path) -> [Session; 2] {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("t", path).expect("the file can be read");
    }
    [pair.cpu, pair.device]
}

fn rows(session: &Session, sql: &str) -> Vec<Vec<Cell>> {
    Rows::of(&run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))).rows
}

/// Asserts that a query fails over this file, and says so in these words.
#[track_caller]
fn blames(session: &Session, sql: &str, file: &Path, words: &[&str]) {
    let error = run(session, sql).and_then(|frame| frame.to_arrow()).expect_err(sql);
    let ErrorKind::File { path, message } = error.kind() else { panic!("{sql}: {error:?}") };
    assert_eq!(path, file, "{error}");
    for word in words {
        assert!(message.contains(word), "{word:?} is not in: {error}");
    }
}

#[test]
fn bytes_become_strings_only_as_utf8() -> Result<()> {
    let directory = directory();
    let text = directory.path().join("0.parquet");
    let bytes = directory.path().join("1.parquet");
    write(
        &text,
        "required binary s (STRING);",
        &[vec![Values::Bytes(vec![b"na\xc3\xafve", b"b"])]],
        plain(),
    );
    // What Impala writes: no annotation. One value is ASCII, one UTF-8.
    write(
        &bytes,
        "required binary s;",
        &[vec![Values::Bytes(vec![b"c", b"\xc3\xa9t\xc3\xa9"])]],
        plain(),
    );
    for session in both(directory.path()) {
        let found = rows(&session, "SELECT s, upper(s), substr(s, 1, 3) FROM t ORDER BY s DESC");
        let first = [Cell::Text("été".into()), Cell::Text("ÉTÉ".into()), Cell::Text("été".into())];
        assert_eq!((found.len(), &found[0][..]), (4, &first[..]));
    }
    // Latin-1, short and long, in pages of every encoding of strings.
    let long: &[u8] = b"a value longer than a view, M\xfcnchen at its end";
    let properties: [fn() -> WriterPropertiesBuilder; 3] = [
        plain,
        || plain().set_dictionary_enabled(false),
        || {
            plain().set_dictionary_enabled(false).set_column_encoding(
                "s".into(),
                datafusion::parquet::basic::Encoding::DELTA_BYTE_ARRAY,
            )
        },
    ];
    for (properties, value, hex) in properties
        .iter()
        .flat_map(|p| [(p, &b"J\xfcrgen"[..], "4afc7267656e"), (p, long, "612076616c7565")])
    {
        write(
            &bytes,
            "required binary s;",
            &[vec![Values::Bytes(vec![b"fine", value])]],
            properties(),
        );
        for session in both(directory.path()) {
            for sql in [
                "SELECT * FROM t",
                "SELECT upper(s), substr(s, 1, 3) FROM t",
                "SELECT max(s) FROM t",
            ] {
                blames(&session, sql, &bytes, &["\"s\"", "row 2", hex, "UTF-8"]);
            }
            // Of the other column of the same files nothing is wrong, and the session goes on.
            assert_eq!(scalar(&session, "SELECT count(*) FROM t"), Cell::Int(4));
        }
        // The file alone is honest: bytes.
        for session in both(&bytes) {
            assert_eq!(session.schema("t")?.field(0).data_type(), &DataType::BinaryView);
            assert_eq!(scalar(&session, "SELECT count(DISTINCT s) FROM t"), Cell::Int(2));
        }
    }
    Ok(())
}

/// The parquet crate checks the strings of a DELTA page for UTF-8 as if they were one.
#[test]
fn a_character_does_not_span_two_strings() {
    use datafusion::parquet::basic::Encoding;
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let long: [&[u8]; 2] =
        [b"a value longer than a view ends in \xc3", b"\xa9 begins one longer than a view"];
    for encoding in [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY]
    {
        let encoded =
            || plain().set_dictionary_enabled(false).set_column_encoding("s".into(), encoding);
        for [first, second] in [[&b"caf\xc3"[..], &b"\xa9!"[..]], long] {
            let column = "required binary s (STRING);";
            write(&path, column, &[vec![Values::Bytes(vec![b"fine", first, second])]], encoded());
            for session in both(&path) {
                for sql in ["SELECT * FROM t", "SELECT upper(s) FROM t", "SELECT max(s) FROM t"] {
                    blames(&session, sql, &path, &["\"s\"", "row 2", "UTF-8"]);
                }
                assert_eq!(scalar(&session, "SELECT count(*) FROM t"), Cell::Int(3));
            }
        }
    }
}

#[test]
fn annotations_and_notes_are_no_proof_of_utf8() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let latin = || vec![vec![Values::Bytes(vec![b"ok", b"\xe9\xe8 and more than a view"])]];
    for columns in
        ["required binary s (STRING);", "required binary s (JSON);", "required binary s (UTF8);"]
    {
        write(&path, columns, &latin(), plain());
        for session in both(&path) {
            blames(&session, "SELECT s FROM t", &path, &["\"s\"", "row 2", "e9e820", "UTF-8"]);
        }
    }
    // An Arrow schema that calls bytes a string, as arrow-rs writes it for a column of strings.
    let arrow = directory.path().join("arrow.parquet");
    let session = Session::builder().device(DeviceChoice::Cpu).build().expect("a CPU session");
    run(&session, "SELECT 'a' AS s")
        .and_then(|frame| frame.write_parquet(&arrow))
        .expect("a file can be written");
    let file = std::fs::File::open(&arrow).expect("it was written");
    let reader = datafusion::parquet::file::serialized_reader::SerializedFileReader::new(file)
        .expect("it is whole");
    use datafusion::parquet::file::reader::FileReader;
    let pairs =
        reader.metadata().file_metadata().key_value_metadata().cloned().expect("an Arrow schema");
    let notes = |pairs: Vec<KeyValue>| plain().set_key_value_metadata(Some(pairs));
    write(&path, "required binary s;", &latin(), notes(pairs));
    for session in both(&path) {
        blames(&session, "SELECT upper(s) FROM t", &path, &["\"s\"", "UTF-8"]);
        assert_eq!(scalar(&session, "SELECT count(*) FROM t"), Cell::Int(2));
    }
}

/// Statistics leave NaN out, and the field that says how many there are is read by nobody.
#[test]
fn statistics_of_floats_are_not_believed() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let nan = f64::NAN;
    let constant = vec![2.5, nan, 2.5];
    let floats: Vec<f32> = constant.iter().map(|x| *x as f32).collect();
    let groups = [
        vec![Values::Double(constant), Values::Float(floats), Values::Int32(vec![1, 1, 1])],
        vec![
            Values::Double(vec![0.5, 1.0, nan]),
            Values::Float(vec![0.5, 1.0, f32::NAN]),
            Values::Int32(vec![2; 3]),
        ],
    ];
    let columns = "required double x; required float y; required int32 k;";
    let small = || {
        plain()
            .set_bloom_filter_enabled(true)
            .set_data_page_row_count_limit(1)
            .set_write_batch_size(1)
    };
    for (groups, properties) in
        [(&groups[..1], plain()), (&groups[..], plain()), (&groups[..], small())]
    {
        write(&path, columns, groups, properties);
        for session in both(&path) {
            let many = groups.len() as i128;
            for column in ["x", "y"] {
                let ask = |what: &str| scalar(&session, &what.replace("$", column));
                let Cell::Float(max) = ask("SELECT max($) FROM t") else { panic!("a float") };
                assert!(max.is_nan(), "{column}: {max}");
                assert_eq!(ask("SELECT count(*) FROM t WHERE $ > 2.5"), Cell::Int(many));
                assert_eq!(ask("SELECT count(*) FROM t WHERE $ <> 2.5 AND k = 1"), Cell::Int(1));
                assert_eq!(ask("SELECT count(*) FROM t WHERE $ = 0.5"), Cell::Int(many - 1));
                assert_eq!(ask("SELECT count(*) FROM t WHERE isnan($)"), Cell::Int(many));
                let found = rows(&session, &format!("SELECT {column} FROM t WHERE k = 1"));
                let nans = found
                    .iter()
                    .filter(|row| matches!(row[0], Cell::Float(x) if x.is_nan()))
                    .count();
                assert_eq!((found.len(), nans), (3, 1), "{found:?}");
            }
            // Statistics of other types still are.
            assert_eq!(
                scalar(&session, "SELECT count(*) FROM t WHERE k > 1"),
                Cell::Int(3 * (many - 1))
            );
        }
    }
}

/// Files put together from others may have statistics in some of their row groups.
#[test]
fn statistics_of_some_row_groups_are_not_those_of_all() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let group =
        |n: i32, s: &'static [u8]| vec![Values::Int32(vec![n, n + 1]), Values::Bytes(vec![s, s])];
    let groups = [group(1, b"m"), group(-9, b"a"), group(70, b"z")];
    write(&path, "required int32 n; required binary s (STRING);", &groups, plain());
    let bytes = std::fs::read(&path).expect("it was written");
    let length = bytes.len() - 8;
    let begin = length
        - u32::from_le_bytes(bytes[length..length + 4].try_into().expect("four bytes")) as usize;
    let metadata =
        ParquetMetaDataReader::decode_metadata(&bytes[begin..length]).expect("it is whole");
    let kept = |(number, group): (usize, &RowGroupMetaData)| {
        let columns = group.columns().iter().map(|column| match number {
            0 => column.clone(),
            _ => column.clone().into_builder().clear_statistics().build().expect("a column"),
        });
        group
            .clone()
            .into_builder()
            .set_column_metadata(columns.collect())
            .build()
            .expect("a row group")
    };
    let groups = metadata.row_groups().iter().enumerate().map(kept).collect();
    let metadata = metadata
        .into_builder()
        .set_row_groups(groups)
        .set_column_index(None)
        .set_offset_index(None)
        .build();
    let mut file = bytes[..begin].to_vec();
    ParquetMetaDataWriter::new(&mut file, &metadata).finish().expect("a footer can be written");
    std::fs::write(&path, file).expect("the file can be written");
    for session in both(&path) {
        let found = rows(&session, "SELECT min(n), max(n), min(s), max(s), count(*) FROM t");
        let expected = [
            Cell::Int(-9),
            Cell::Int(71),
            Cell::Text("a".into()),
            Cell::Text("z".into()),
            Cell::Int(6),
        ];
        assert_eq!(found, [expected.to_vec()]);
        assert_eq!(
            scalar(&session, "SELECT count(*) FROM t WHERE n > 2 AND s > 'm'"),
            Cell::Int(2)
        );
    }
}

#[test]
fn our_own_copies_keep_nan() -> Result<()> {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let values = "(2.5, {'a': 2.5, 'b': [2.5]}), ('NaN', {'a': 'NaN', 'b': ['NaN']}), (2.5, {'a': 2.5, 'b': [2.5]})";
    let sql = format!(
        "SELECT CAST(x AS double) AS x, {{'a': CAST(s['a'] AS double)}} AS s, [CAST(s['a'] AS double)] AS l \
         FROM (VALUES {values}) AS v (x, s)"
    );
    let cpu = Session::builder().device(DeviceChoice::Cpu).build()?;
    let sql = match run(&cpu, &sql) {
        Ok(_) => sql,
        Err(_) => {
            "SELECT x, {'a': x} AS s, [x] AS l FROM (SELECT CASE WHEN i = 2 THEN CAST('NaN' AS double) ELSE 2.5 END \
                   AS x FROM (VALUES (1), (2), (3)) AS v (i))"
                .into()
        }
    };
    run(&cpu, &sql)?.write_parquet(&path)?;
    for session in both(&path) {
        let nan = |sql: &str| matches!(scalar(&session, sql), Cell::Float(x) if x.is_nan());
        assert!(
            nan("SELECT max(x) FROM t")
                && nan("SELECT max(s['a']) FROM t")
                && nan("SELECT max(l[1]) FROM t")
        );
        assert_eq!(scalar(&session, "SELECT count(*) FROM t WHERE x > 2.5"), Cell::Int(1));
        assert_eq!(scalar(&session, "SELECT count(*) FROM t WHERE s['a'] > 2.5"), Cell::Int(1));
        assert_eq!(scalar(&session, "SELECT count(*) FROM t WHERE l[1] > 2.5"), Cell::Int(1));
    }
    Ok(())
}

/// Days from the Julian epoch to 1970.
const EPOCH: u32 = 2_440_588;
/// Days from 1970 to 9999-12-31.
const LAST: u32 = 2_932_896;

#[test]
fn int96_reaches_as_far_as_its_writers_do() -> Result<()> {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let write_days = |days: &[u32]| {
        let values = days.iter().map(|day| (EPOCH + day, 86_399_999_999_000)).collect();
        let nested = Values::Int96(days.iter().map(|day| (EPOCH + day, 1_000)).collect());
        let columns = "required int96 x; required group s { required int96 y; }";
        write(&path, columns, &[vec![Values::Int96(values), nested]], plain());
    };
    write_days(&[LAST, 0]);
    for session in both(&path) {
        let text = "SELECT CAST(x AS varchar), CAST(s['y'] AS varchar) FROM t WHERE date_part('year', x) > 5000";
        let expected = ["9999-12-31T23:59:59.999999", "9999-12-31T00:00:00.000001"]
            .map(|t| Cell::Text(t.into()));
        assert_eq!(rows(&session, text), [expected.to_vec()]);
        let of = |session: &Session| {
            session.schema("t").map(|schema| schema.field(0).data_type().clone())
        };
        assert_eq!(of(&session)?, DataType::Timestamp(TimeUnit::Microsecond, None));
        // Nanoseconds by option, where they reach so far.
        let nanoseconds = ParquetOptions {
            coerce_int96_timestamp_unit: TimeUnit::Nanosecond,
            ..Default::default()
        };
        let error =
            session.register_parquet_with("t", &path, nanoseconds).expect_err("9999 is too far");
        let ErrorKind::File { path: file, message } = error.kind() else { panic!("{error:?}") };
        assert!(
            *file == path && message.contains("\"x\"") && message.contains("nanoseconds"),
            "{error}"
        );
    }
    write_days(&[20_000, 0]);
    for session in both(&path) {
        let nanoseconds = ParquetOptions {
            coerce_int96_timestamp_unit: TimeUnit::Nanosecond,
            ..Default::default()
        };
        session.register_parquet_with("t", &path, nanoseconds)?;
        assert_eq!(
            session.schema("t")?.field(0).data_type(),
            &DataType::Timestamp(TimeUnit::Nanosecond, None)
        );
        assert_eq!(
            scalar(&session, "SELECT max(x) FROM t"),
            Cell::Int((20_000 * 86_400 + 86_400) * 1_000_000_000 - 1_000)
        );
        let seconds =
            ParquetOptions { coerce_int96_timestamp_unit: TimeUnit::Second, ..Default::default() };
        let frame = session.scan_parquet_with(&path, seconds)?.collect()?;
        assert_eq!(Rows::of(&frame).rows[1][0], Cell::Int(86_399));
    }
    Ok(())
}

#[test]
fn decimals_of_more_digits_than_their_type_are_errors() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let k = || Values::Int32(vec![1, 2, 3]);
    let fixed = |values: [i128; 3]| {
        Values::Fixed(values.iter().map(|v| v.to_be_bytes()[4..].to_vec()).collect())
    };
    let cases: [(&str, Values, &str); 5] = [
        ("required int32 d (DECIMAL(4, 2));", Values::Int32(vec![9999, 10_000, -5]), "10000"),
        (
            "required int64 d (DECIMAL(12, 2));",
            Values::Int64(vec![1, 2, i64::MIN]),
            "-9223372036854775808",
        ),
        (
            "required fixed_len_byte_array(12) d (DECIMAL(20, 0));",
            fixed([1, 10i128.pow(20), 0]),
            "100000000000000000000",
        ),
        (
            "required fixed_len_byte_array(12) d (DECIMAL(10, 3));",
            fixed([1, 2, -(1 << 70)]),
            "-1180591620717411303424",
        ),
        (
            "required group s { required int32 d (DECIMAL(3, 1)); }",
            Values::Int32(vec![0, 1000, 0]),
            "1000",
        ),
    ];
    for (column, values, beyond) in cases {
        write(&path, &format!("{column} required int32 k;"), &[vec![values, k()]], plain());
        let name = if column.contains("group") { "s" } else { "d" };
        for session in both(&path) {
            let sorted =
                if name == "d" { "SELECT abs($), k FROM t" } else { "SELECT k FROM t ORDER BY $" };
            for sql in ["SELECT $ FROM t", "SELECT $, count(*) FROM t GROUP BY $", sorted] {
                blames(
                    &session,
                    &sql.replace('$', name),
                    &path,
                    &[&format!("{name:?}"), beyond, "Decimal128"],
                );
            }
            assert_eq!(scalar(&session, "SELECT sum(k) FROM t"), Cell::Int(6));
        }
    }
    // As far as the digits go.
    let last = Values::Int32(vec![9999, -9999, 0]);
    write(
        &path,
        "required int32 d (DECIMAL(4, 2)); required int32 k;",
        &[vec![last, k()]],
        plain(),
    );
    for session in both(&path) {
        let groups = rows(&session, "SELECT d, count(*) FROM t GROUP BY d ORDER BY d");
        assert_eq!(groups, [-9999, 0, 9999].map(|d| vec![Cell::Int(d), Cell::Int(1)]));
    }
}

#[test]
fn batches_of_decimals_beyond_their_type_are_refused() {
    use warpframe::arrow::array::{Decimal128Array, RecordBatch};
    let of = |values: Vec<Option<i128>>| {
        let d = Decimal128Array::from(values).with_precision_and_scale(4, 2).expect("a type");
        RecordBatch::try_from_iter([("d", Arc::new(d) as _)]).expect("a batch")
    };
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        let error = session
            .register_batches("t", [of(vec![Some(1), Some(12_345)])])
            .expect_err("five digits");
        let ErrorKind::Arithmetic { account: Some(account), .. } = error.kind() else {
            panic!("{error:?}")
        };
        assert!(account.contains("\"d\"") && account.contains("12345"), "{account}");
        assert!(session.from_arrow([of(vec![Some(-12_345)])]).is_err());
        session.register_batches("t", [of(vec![Some(1), None])]).expect("all fit");
        assert_eq!(scalar(session, "SELECT count(d) FROM t"), Cell::Int(1));
    }
}

/// A file that polars writes for a column of 128-bit integers: bytes, and an Arrow schema with a
/// type of its own. What arrow-rs makes of that schema is a panic.
fn file_of_int128(path: &Path) {
    const SCHEMA: &str = "/////3YAAAAEAAAA8v///xQAAAAEAAEAAAAKAAsACAAKAAQA+P///wwAAAAIAAgAAAAEAAEAAAAEAAAA7P///zgAAAAgAAAAGAAAAAECA\
                          AAQABIABAAQABEACAAAAAwAAAAAAPT///+AAAAAAQAAAAgACQAEAAgAAQAAAHgA";
    let notes = vec![KeyValue::new("ARROW:schema".into(), SCHEMA.to_string())];
    let values =
        Values::Fixed(vec![1i128.to_le_bytes().to_vec(), (1i128 << 100).to_le_bytes().to_vec()]);
    let groups = [vec![values]];
    write(
        path,
        "required fixed_len_byte_array(16) x;",
        &groups,
        plain().set_key_value_metadata(Some(notes)),
    );
}

#[test]
fn types_that_are_not_known_spoil_their_column_alone() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    file_of_int128(&path);
    for session in both(&path) {
        assert_eq!(scalar(&session, "SELECT 1"), Cell::Int(1));
        assert_eq!(scalar(&session, "SELECT count(*) FROM t"), Cell::Int(2));
        blames(&session, "SELECT x FROM t", &path, &["\"x\"", "type"]);
    }
}

#[test]
fn footers_that_cannot_be_are_errors() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let session = builder().build().expect("the device opens");
    let mut long = b"PAR1".to_vec();
    long.extend_from_slice(&[0x15; 400]);
    long.extend_from_slice(&0x7FFF_FFFFu32.to_le_bytes());
    long.extend_from_slice(b"PAR1");
    // Groups within groups, each of one child, without end.
    let mut deep = b"PAR1".to_vec();
    let footer = {
        let mut bytes = vec![0x15, 0x02, 0x19, 0xFC];
        let count = 200_000u32;
        let (mut left, mut size) = (count, vec![]);
        while left >= 0x80 {
            size.push(left as u8 | 0x80);
            left >>= 7;
        }
        size.push(left as u8);
        bytes.extend_from_slice(&size);
        for _ in 0..count {
            // Repetition, name, one child.
            bytes.extend_from_slice(&[0x35, 0x00, 0x18, 1, b'a', 0x15, 0x02, 0x00]);
        }
        bytes.extend_from_slice(&[0x16, 0x00, 0x19, 0x0C, 0x00]);
        bytes
    };
    deep.extend_from_slice(&footer);
    deep.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    deep.extend_from_slice(b"PAR1");
    // A list of two thousand million row groups.
    let mut wide = b"PAR1".to_vec();
    let groups = [
        0x15, 0x02, 0x19, 0x1C, 0x48, 1, b'm', 0x15, 0x00, 0x00, 0x16, 0x00, 0x19, 0xFC, 0xFF,
        0xFF, 0xFF, 0xFF, 0x07,
    ];
    wide.extend_from_slice(&groups);
    wide.extend_from_slice(&(groups.len() as u32).to_le_bytes());
    wide.extend_from_slice(b"PAR1");
    for (content, words) in [
        (b"PAR1PAR1".to_vec(), "longer than the file"),
        (long, "longer than the file"),
        (deep, "deeper than"),
        (wide, "2147483647 elements"),
    ] {
        std::fs::write(&path, &content).expect("the file can be written");
        let error = session.register_parquet("t", &path).expect_err(words);
        let ErrorKind::File { path: file, message } = error.kind() else { panic!("{error:?}") };
        assert!(*file == path && message.contains(words), "{error}");
    }
    assert_eq!(scalar(&session, "SELECT 1"), Cell::Int(1));
}

/// As many bytes as a page claims to have, or values, are not asked for: the process would end.
#[test]
fn pages_that_claim_too_much_are_errors() {
    let directory = directory();
    let path = directory.path().join("t.parquet");
    let column = "required binary s (STRING);";
    let values = || vec![vec![Values::Bytes(vec![b"one", b"two", b"three"])]];
    use datafusion::parquet::basic::Encoding;
    let delta =
        |encoding| plain().set_dictionary_enabled(false).set_column_encoding("s".into(), encoding);
    for (properties, version) in [
        (delta(Encoding::DELTA_LENGTH_BYTE_ARRAY), 1),
        (delta(Encoding::DELTA_BYTE_ARRAY), 1),
        (plain(), 0),
    ] {
        write(&path, column, &values(), properties);
        let mut bytes = std::fs::read(&path).expect("it was written");
        match version {
            // The count of a DELTA header, of one block of 128 values in four parts: 80 01 04 03.
            1 => {
                let at = bytes
                    .windows(4)
                    .position(|w| w == [0x80, 0x01, 0x04, 0x03])
                    .expect("the head of deltas");
                // Room for more digits of the count is taken from the first value and what follows,
                // which says nothing then.
                bytes[at + 3..at + 8].copy_from_slice(&[0xFF, 0xFF, 0xFF, 0xFF, 0x7F]);
            }
            // Of a dictionary page's header: field 7, a struct, its field 1, three values; then two
            // digits more of them.
            _ => {
                let at = bytes
                    .windows(4)
                    .position(|w| w == [0x4C, 0x15, 0x06, 0x15])
                    .expect("a dictionary's header");
                bytes[at + 2] = 0x7E;
            }
        }
        std::fs::write(&path, &bytes).expect("the file can be written");
        for session in both(&path) {
            blames(&session, "SELECT s FROM t", &path, &["\"s\"", "damaged"]);
            assert_eq!(scalar(&session, "SELECT 1"), Cell::Int(1));
        }
    }
}
