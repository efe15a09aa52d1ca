//! Types of columns: moments of 96 bits, decimals and values beyond them, one that is not known.

use datafusion::parquet::file::metadata::KeyValue;
use warpframe::arrow::array::{Decimal128Array, RecordBatch};
use warpframe::arrow::datatypes::{DataType, TimeUnit};

use super::*;

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
        let expected = ["9999-12-31 23:59:59.999999", "9999-12-31 00:00:00.000001"]
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
