//! Columns that no type holds.

use warpframe::{ErrorKind, ParquetOptions};

use super::*;

#[test]
fn columns_that_do_not_fit_are_named_with_both_files() -> Result<()> {
    let decimals = |digits, scale| -> ArrayRef {
        Arc::new(
            Decimal128Array::from(vec![1])
                .with_precision_and_scale(digits, scale)
                .expect("they have"),
        )
    };
    let days: ArrayRef = Arc::new(Date32Array::from(vec![1]));
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1]));
    let pair = Pair::new();
    for (one, other) in [
        (ints([1]), texts(&["x"])),
        (days, times),
        (decimals(38, 0), decimals(4, 2)),
        (Arc::new(BooleanArray::from(vec![true])), ints([1])),
        (Arc::new(UInt64Array::from(vec![1])), ints([1])),
    ] {
        let directory = directory();
        let types = [
            one.data_type().to_string(),
            other.data_type().to_string().replace("Utf8", "Utf8View"),
        ];
        let first = file(&directory, "1.parquet", vec![("k", ints([1])), ("a b", one)]);
        let second = file(&directory, "2.parquet", vec![("a b", other)]);
        for session in [&pair.cpu, &pair.device] {
            let error =
                session.register_parquet("t", directory.path()).expect_err("no type holds both");
            let ErrorKind::File { path, message } = error.kind() else { panic!("{error:?}") };
            assert_eq!(*path, second, "{message}");
            let first = first.to_str().expect("a path of text");
            let words = [first, "\"a b\"", &types[0], &types[1]];
            assert!(words.iter().all(|word| message.contains(word)), "{message}: {words:?}");
        }
    }
    // Where columns have to be the same, no type widens, and none is missing.
    let same = ParquetOptions { union_by_name: false, ..ParquetOptions::default() };
    let small: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    for (first, second) in [
        (vec![("a", ints([1]))], vec![("a", small)]),
        (vec![("a", ints([1])), ("b", ints([1]))], vec![("b", ints([1])), ("a", ints([1]))]),
        (vec![("a", ints([1])), ("b", ints([1]))], vec![("a", ints([1]))]),
    ] {
        let directory = directory();
        file(&directory, "1.parquet", first);
        let second = file(&directory, "2.parquet", second);
        let error = pair
            .device
            .register_parquet_with("t", directory.path(), same.clone())
            .expect_err("they differ");
        assert!(matches!(error.kind(), ErrorKind::File { path, .. } if *path == second), "{error}");
        pair.device.register_parquet_with("t", [&second, &second], same.clone())?;
        assert_eq!(scalar(&pair.device, "SELECT sum(a) FROM t"), Cell::Int(2));
    }
    let twice = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("a", DataType::Int64, true),
    ]);
    let twice =
        RecordBatch::try_new(Arc::new(twice), vec![ints([1]), ints([2])]).expect("arrow allows it");
    let directory = directory();
    write(&directory.path().join("1.parquet"), &twice, EnabledStatistics::Page);
    let error = pair.device.register_parquet("t", directory.path()).expect_err("which a is meant?");
    assert!(error.to_string().contains("two columns of the name \"a\""), "{error}");
    Ok(())
}

#[test]
fn units_that_do_not_reach_are_errors() -> Result<()> {
    let directory = directory();
    file(
        &directory,
        "1.parquet",
        vec![("t", Arc::new(TimestampMillisecondArray::from(vec![253_402_300_799_000])))],
    );
    file(&directory, "2.parquet", vec![("t", Arc::new(TimestampNanosecondArray::from(vec![1])))]);
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("t", directory.path())?;
        let error = run(session, "SELECT max(t) FROM t").expect_err("9999 is too far");
        assert!(
            matches!(error.kind(), ErrorKind::File { path, .. } if path.ends_with("1.parquet")),
            "{error:?}"
        );
    }
    Ok(())
}
