//! Columns of other types in other files, which the device reads as one type.

use datafusion::parquet::data_type::{
    ByteArray, FixedLenByteArray, FixedLenByteArrayType, Int32Type,
};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;

use super::*;

#[test]
fn the_device_reads_narrow_integers_and_files_that_lack_a_column() -> Result<()> {
    let directory = directory();
    let small: ArrayRef =
        Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(7), Some(i32::MAX)]));
    let cents = |digits, values: Vec<i128>| -> ArrayRef {
        Arc::new(
            Decimal128Array::from(values).with_precision_and_scale(digits, 2).expect("they have"),
        )
    };
    file(
        &directory,
        "1.parquet",
        vec![("n", small), ("s", texts(&["x", "y", "x", "a longer text than a view has"]))],
    );
    file(
        &directory,
        "2.parquet",
        vec![("d", cents(5, vec![-12345, 1])), ("n", ints([i64::MAX, -1]))],
    );
    file(&directory, "3.parquet", vec![("d", cents(20, vec![99])), ("k", ints([5]))]);
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("t", directory.path())?;
        let text = |text: &str| Cell::Text(text.into());
        let (null, int) = (|| Cell::Null, Cell::Int);
        let expected = [
            vec![int(i32::MIN.into()), text("x"), null(), null()],
            vec![null(), text("y"), null(), null()],
            vec![int(7), text("x"), null(), null()],
            vec![int(i32::MAX.into()), text("a longer text than a view has"), null(), null()],
            vec![int(i64::MAX.into()), null(), int(-12345), null()],
            vec![int(-1), null(), int(1), null()],
            vec![null(), null(), int(99), int(5)],
        ];
        assert_eq!(rows(session, "SELECT n, s, d, k FROM t"), expected);
        assert_eq!(rows(session, "SELECT k FROM t LIMIT 2"), [[Cell::Null], [Cell::Null]]);
    }
    assert_eq!(pair.device.take_host_reads(), Vec::<String>::new());
    pair.check("SELECT s, count(*), sum(n % 10), max(d) FROM t GROUP BY s");
    pair.check("SELECT count(*) FROM t WHERE s IS NULL AND n IS NOT NULL");
    Ok(())
}

#[test]
fn the_device_widens_integers_and_floats() -> Result<()> {
    let directory = directory();
    let all = |dtype: DataType, values: [i64; 3]| {
        let values =
            Int64Array::from(vec![Some(values[0]), None, Some(values[1]), Some(values[2])]);
        cast(&values, &dtype).expect("they fit")
    };
    use DataType as T;
    let of = |name: &str, columns: [ArrayRef; 5]| {
        file(&directory, name, ["a", "b", "c", "d", "f"].into_iter().zip(columns).collect());
    };
    let floats: ArrayRef = Arc::new(Float32Array::from(vec![
        Some(0.1),
        Some(f32::NAN),
        None,
        Some(-f32::MIN_POSITIVE),
    ]));
    of(
        "1.parquet",
        [
            all(T::Int8, [-128, 127, 5]),
            all(T::UInt8, [0, 255, 5]),
            all(T::UInt32, [0, u32::MAX.into(), 5]),
            all(T::UInt16, [0, 65535, 5]),
            floats,
        ],
    );
    let doubles: ArrayRef =
        Arc::new(Float64Array::from(vec![Some(0.1), None, Some(f64::MIN), Some(1e300)]));
    of(
        "2.parquet",
        [
            all(T::Int16, [-32768, 32767, 5]),
            all(T::Int16, [-32768, 32767, 5]),
            all(T::Int64, [i64::MIN, i64::MAX, 5]),
            all(T::UInt32, [0, u32::MAX.into(), 5]),
            doubles,
        ],
    );
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("t", directory.path())?;
        let types: Vec<_> =
            session.schema("t")?.fields().iter().map(|field| field.data_type().clone()).collect();
        assert_eq!(types, [T::Int16, T::Int16, T::Int64, T::UInt32, T::Float64]);
    }
    same(&pair, "SELECT * FROM t");
    pair.check("SELECT min(a), max(a), min(b), max(b), min(c), max(c), min(d), max(d), min(f), max(f) FROM t");
    assert_eq!(pair.device.take_host_reads(), Vec::<String>::new());
    Ok(())
}

#[test]
fn the_device_scales_decimals_and_times() -> Result<()> {
    use DataType as T;
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let zone = |unit| T::Timestamp(unit, Some("UTC".into()));
    let types = [
        [
            T::Timestamp(Second, None),
            T::Timestamp(Millisecond, None),
            T::Timestamp(Nanosecond, None),
        ],
        [zone(Millisecond), zone(Second), zone(Microsecond)],
        [T::Time32(Second), T::Time32(Millisecond), T::Time64(Nanosecond)],
        [T::Time64(Microsecond), T::Time32(Second), T::Time32(Millisecond)],
        [T::Duration(Second), T::Duration(Nanosecond), T::Duration(Millisecond)],
        [T::Time32(Second), T::Time32(Millisecond), T::Time32(Second)],
        [T::Decimal128(9, 4), T::Decimal128(18, 2), T::Decimal128(12, 0)],
        [T::Decimal128(38, 30), T::Decimal128(2, 0), T::Decimal128(20, 19)],
        [T::Decimal128(5, 2), T::Decimal128(3, 1), T::Decimal128(4, 3)],
        [T::Float64, T::Int64, T::UInt64],
        [T::Int8, T::Float32, T::UInt32],
    ];
    let united = [
        T::Timestamp(Nanosecond, None),
        zone(Microsecond),
        T::Time64(Nanosecond),
        T::Time64(Microsecond),
        T::Duration(Nanosecond),
        T::Time32(Millisecond),
        T::Decimal128(20, 4),
        T::Decimal128(38, 30),
        T::Decimal128(6, 3),
        T::Float64,
        T::Float64,
    ];
    let names: Vec<String> = (0..types.len()).map(|at| format!("c{at}")).collect();
    let directory = directory();
    let value = |dtype: &DataType, n: i64| -> ArrayRef {
        let of = |most: i64| {
            Int64Array::from(vec![Some(n % most), None, Some(0), Some(most - 1), Some(n % 7)])
        };
        let numbers = match dtype {
            T::Decimal128(digits, _) => {
                let most = 10i128.pow((*digits).into());
                let numbers =
                    [Some(most - 1), None, Some(1 - most), Some(i128::from(n) % most), Some(0)];
                let made = Decimal128Array::from_iter(numbers);
                return Arc::new(made.with_data_type(dtype.clone()));
            }
            T::Time32(Second) => of(86_400),
            T::Time32(_) => of(86_400_000),
            T::Time64(Microsecond) => of(86_400_000_000),
            T::Time64(_) => of(86_400_000_000_000),
            T::Int8 | T::Float32 => of(100),
            T::Timestamp(Second, _) | T::Duration(Second) => of(9_000_000_000),
            T::Timestamp(Millisecond, _) | T::Duration(Millisecond) => of(9_000_000_000_000),
            _ => of(1 << 31),
        };
        let numbers: ArrayRef = Arc::new(numbers);
        let numbers = if matches!(dtype, T::Time32(_)) {
            cast(&numbers, &T::Int32).expect("they fit")
        } else {
            numbers
        };
        cast(&numbers, dtype).expect("they fit")
    };
    let mut batches = vec![];
    for at in 0..3 {
        let columns = types.iter().map(|types| value(&types[at], 1_234_567_891 * (at as i64 + 1)));
        let made = batch(names.iter().map(String::as_str).zip(columns).collect());
        write(&directory.path().join(format!("{at}.parquet")), &made, EnabledStatistics::Page);
        batches.push(made);
    }
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("t", directory.path())?;
        let types: Vec<_> =
            session.schema("t")?.fields().iter().map(|field| field.data_type().clone()).collect();
        assert_eq!(types, united);
        // By what arrow makes of them.
        let found = all(session, "SELECT * FROM t");
        for (at, dtype) in united.iter().enumerate() {
            let parts: Vec<ArrayRef> =
                batches.iter().map(|batch| as_expected(batch.column(at), dtype)).collect();
            let expected = concat(&parts.iter().map(|part| part.as_ref()).collect::<Vec<_>>())
                .expect("of one type");
            assert_eq!(found.column(at), &expected, "c{at}, {}", session.device().is_some());
        }
    }
    assert_eq!(pair.device.take_host_reads(), Vec::<String>::new());
    Ok(())
}

#[test]
fn integers_become_doubles_where_all_of_them_are() -> Result<()> {
    let pair = Pair::new();
    let exact = 1i64 << 53;
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![0.5, f64::NAN]));
    let cases = [
        (vec![exact, -exact], EnabledStatistics::Chunk, None),
        (vec![exact, -exact], EnabledStatistics::None, None),
        (vec![exact + 2, 1 << 60], EnabledStatistics::Chunk, None),
        (vec![1, exact + 1], EnabledStatistics::Chunk, Some(exact + 1)),
        (vec![-exact - 1, 1], EnabledStatistics::None, Some(-exact - 1)),
        (vec![i64::MAX], EnabledStatistics::Chunk, Some(i64::MAX)),
    ];
    for (values, statistics, lost) in cases {
        let directory = directory();
        let first = directory.path().join("1.parquet");
        write(&first, &batch(vec![("a", ints(values.clone()))]), statistics);
        let second = file(&directory, "2.parquet", vec![("a", doubles.clone())]);
        for session in [&pair.cpu, &pair.device] {
            match (session.register_parquet("t", directory.path()), lost) {
                (Ok(()), None) => {
                    let least = values.iter().min().expect("some value");
                    assert_eq!(
                        scalar(session, "SELECT CAST(min(a) AS BIGINT) FROM t WHERE a <> 0.5"),
                        Cell::Int((*least).into())
                    );
                    assert_eq!(session.schema("t")?.field(0).data_type(), &DataType::Float64);
                }
                (Err(error), Some(lost)) => {
                    let text = error.to_string();
                    let says = |what: &str| assert!(text.contains(what), "{text}: {what}");
                    [first.to_str(), second.to_str()]
                        .into_iter()
                        .for_each(|path| says(path.expect("a path of text")));
                    says("\"a\"");
                    says(&lost.to_string());
                }
                (outcome, lost) => panic!("{values:?}: {outcome:?}, {lost:?}"),
            }
        }
    }
    Ok(())
}

/// A file without Arrow's notes, of intervals of months, days and milliseconds, and a null.
fn intervals(path: &Path, values: &[[u32; 3]]) {
    let message = "message m { optional fixed_len_byte_array(12) i (INTERVAL); required int32 n; }";
    let schema = Arc::new(parse_message_type(message).expect("a schema"));
    let file = std::fs::File::create(path).expect("the file can be made");
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    let bytes = |parts: &[u32; 3]| ByteArray::from(parts.map(u32::to_le_bytes).concat()).into();
    let bytes: Vec<FixedLenByteArray> = values.iter().map(bytes).collect();
    let mut levels = vec![1; values.len()];
    levels.push(0);
    let mut column = group.next_column().expect("a column").expect("the first");
    column
        .typed::<FixedLenByteArrayType>()
        .write_batch(&bytes, Some(&levels), None)
        .expect("values");
    column.close().expect("a column ends");
    let numbers: Vec<i32> = (0..levels.len() as i32).collect();
    let mut column = group.next_column().expect("a column").expect("the second");
    column.typed::<Int32Type>().write_batch(&numbers, None, None).expect("values");
    column.close().expect("a column ends");
    group.close().expect("a row group ends");
    writer.close().expect("the file is whole");
}

#[test]
fn intervals_have_all_of_their_parts() -> Result<()> {
    let directory = directory();
    intervals(&directory.path().join("1.parquet"), &[[1, 2, 10_800_000], [0, 0, 1]]);
    intervals(&directory.path().join("2.parquet"), &[[14, 0, 0]]);
    file(&directory, "3.parquet", vec![("n", ints([7]))]);
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("t", directory.path())?;
        let found = all(session, "SELECT n, i FROM t");
        let parts =
            found.column(1).as_primitive::<warpframe::arrow::datatypes::IntervalMonthDayNanoType>();
        let parts: Vec<_> = parts
            .iter()
            .map(|part| part.map(|part| (part.months, part.days, part.nanoseconds)))
            .collect();
        let first = [Some((1, 2, 10_800_000_000_000)), Some((0, 0, 1_000_000)), None];
        assert_eq!(parts, [&first[..], &[Some((14, 0, 0)), None, None]].concat());
        assert_eq!(
            rows(session, "SELECT n FROM t WHERE i > INTERVAL '13 months'"),
            [[Cell::Int(0)]]
        );
    }
    Ok(())
}

/// Names of columns that differ by case alone name one column.
#[test]
fn names_that_differ_by_case_alone_are_one_column() -> Result<()> {
    let (directory, pair) = (directory(), Pair::new());
    let nested = |n: i64| -> ArrayRef {
        let field = Arc::new(Field::new("n", DataType::Int64, true));
        Arc::new(StructArray::from(vec![(field, ints([n]))]))
    };
    file(&directory, "p/1.parquet", vec![("fee", ints([1])), ("S", nested(5)), ("k", ints([1]))]);
    file(&directory, "p/2.parquet", vec![("k", ints([2])), ("Fee", ints([20])), ("s", nested(6))]);
    file(&directory, "p/3.parquet", vec![("fee", ints([300])), ("Fee", ints([7]))]);
    std::fs::create_dir(directory.path().join("c")).expect("directories can be made");
    for (name, text) in [("1.csv", "fee,k\n1,1\n"), ("2.csv", "k,FEE\n2,20.5\n")] {
        std::fs::write(directory.path().join("c").join(name), text).expect("files can be written");
    }
    for session in [&pair.cpu, &pair.device] {
        let parts = ["p/1.parquet", "p/2.parquet"].map(|name| directory.path().join(name));
        session.register_parquet("t", parts.to_vec())?;
        let names = |table: &str| -> Result<Vec<String>> {
            let schema = session.schema(table)?;
            Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
        };
        assert_eq!(names("t")?, ["fee", "S", "k"]);
        let sum = "SELECT sum(fee), count(fee), min(fee), max(\"S\"['n']) FROM t";
        let expected = [21, 2, 1, 6].map(Cell::Int);
        assert_eq!(crate::differential::rows_of(&all(session, sum)), [expected.to_vec()]);
        assert_eq!(scalar(session, "SELECT count(*) FROM t WHERE fee > 5"), Cell::Int(1));
        assert_eq!(scalar(session, "SELECT count(*) FROM t WHERE fee IS NULL"), Cell::Int(0));
        // A file that has both keeps both.
        session.register_parquet("t", directory.path().join("p"))?;
        assert_eq!(names("t")?, ["fee", "S", "k", "Fee"]);
        assert_eq!(scalar(session, "SELECT sum(\"Fee\") FROM t"), Cell::Int(27));
        session.register_csv("c", directory.path().join("c"))?;
        assert_eq!(names("c")?, ["fee", "k"]);
        assert_eq!(scalar(session, "SELECT sum(fee) FROM c"), Cell::Float(21.5));
    }
    Ok(())
}
