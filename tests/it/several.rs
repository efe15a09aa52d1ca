//! Several files as one table: columns by name, wider types.

mod paths;
mod texts;
mod widened;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::data_type::{
    ByteArray, FixedLenByteArray, FixedLenByteArrayType, Int32Type,
};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;
use warpframe::arrow::array::*;
use warpframe::arrow::compute::{cast, concat, concat_batches};
use warpframe::arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use warpframe::{ErrorKind, ParquetOptions, Result, Session};

use crate::differential::{Agreement, Cell, Pair, Rows, run, scalar};

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory for tests")
}

fn write(path: &Path, batch: &RecordBatch, statistics: EnabledStatistics) {
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("directories can be made");
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(37))
        .set_statistics_enabled(statistics);
    let file = std::fs::File::create(path).expect("the file can be made");
    let mut writer =
        ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).expect("a writer");
    writer.write(batch).expect("rows can be written");
    writer.close().expect("the file is whole");
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// A file of these columns.
fn file(directory: &TempDir, name: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
    let path = directory.path().join(name);
    write(&path, &batch(columns), EnabledStatistics::Page);
    path
}

fn ints(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn all(session: &Session, sql: &str) -> RecordBatch {
    let frame = run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let batches = frame.to_arrow().unwrap_or_else(|error| panic!("{sql}: {error}"));
    concat_batches(&frame.schema(), &batches).expect("batches of one schema")
}

fn rows(session: &Session, sql: &str) -> Vec<Vec<Cell>> {
    Rows::of(&run(session, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))).rows
}

/// Checks that both engines yield the same rows. Columns that are only read need no kernel.
fn same(pair: &Pair, sql: &str) {
    let agreement = pair.agreement(sql);
    assert!(matches!(agreement, Agreement::Rows(_)), "{sql}: {agreement:?}");
}

/// Columns that files have, and the types that each has in one of them or another.
const FAMILIES: [&str; 12] =
    ["i", "u", "mixed", "f", "number", "decimal", "ts", "time", "text", "bytes", "flag", "nest"];

fn types(family: &str) -> Vec<DataType> {
    use DataType as T;
    let dictionary = || T::Dictionary(Box::new(T::Int32), Box::new(T::Utf8));
    match family {
        "i" => vec![T::Int8, T::Int16, T::Int32, T::Int64],
        "u" => vec![T::UInt8, T::UInt16, T::UInt32, T::UInt64],
        "mixed" => vec![T::Int8, T::UInt8, T::UInt32, T::Int32],
        "f" => vec![T::Float32, T::Float64],
        "number" => vec![T::Int32, T::Int64, T::Float64],
        "decimal" => vec![
            T::Decimal128(7, 2),
            T::Decimal128(10, 2),
            T::Decimal128(9, 4),
            T::Decimal128(25, 3),
        ],
        "ts" => [TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]
            .map(|unit| T::Timestamp(unit, None))
            .to_vec(),
        "time" => vec![T::Time32(TimeUnit::Millisecond), T::Time64(TimeUnit::Microsecond)],
        "text" => vec![T::Utf8, T::LargeUtf8, T::Utf8View, dictionary()],
        "bytes" => vec![T::Binary, T::LargeBinary],
        "flag" => vec![T::Boolean],
        _ => {
            let of = |fields: Vec<(&str, T)>| {
                let field = |(name, dtype): (&str, T)| Field::new(name, dtype, true);
                T::Struct(fields.into_iter().map(field).collect::<Fields>())
            };
            let list = |dtype| T::List(Arc::new(Field::new("item", dtype, true)));
            vec![
                of(vec![("p", T::Int32), ("q", list(T::Int32))]),
                of(vec![("q", list(T::Int64)), ("p", T::Int32)]),
            ]
        }
    }
}

/// The type of a column by those that files have it in, told apart from how the engine finds it.
fn expected(family: &str, had: &[DataType]) -> DataType {
    use DataType as T;
    let last =
        |order: &[T]| order.iter().rfind(|dtype| had.contains(dtype)).expect("one of them").clone();
    let has = |dtype: T| had.contains(&dtype);
    match family {
        "text" if had.iter().all(|dtype| matches!(dtype, T::Dictionary(..))) => had[0].clone(),
        "text" => T::Utf8View,
        "bytes" => T::BinaryView,
        "mixed" => match (has(T::Int8), has(T::UInt8), has(T::UInt32), has(T::Int32)) {
            (true, _, true, _) | (_, _, true, true) => T::Int64,
            (_, _, _, true) => T::Int32,
            (_, _, true, _) => T::UInt32,
            (true, true, ..) => T::Int16,
            (true, ..) => T::Int8,
            _ => T::UInt8,
        },
        "decimal" => {
            let digits = |dtype: &T| match dtype {
                T::Decimal128(precision, scale) => (precision - *scale as u8, *scale as u8),
                other => panic!("{other}"),
            };
            let whole = had.iter().map(|dtype| digits(dtype).0).max().expect("one of them");
            let scale = had.iter().map(|dtype| digits(dtype).1).max().expect("one of them");
            T::Decimal128(whole + scale, scale as i8)
        }
        "nest" => {
            let long = has(types("nest")[1].clone());
            let (p, item) =
                (Field::new("p", T::Int32, true), if long { T::Int64 } else { T::Int32 });
            let q = Field::new("q", T::List(Arc::new(Field::new("item", item, true))), true);
            let is_first = had[0] == types("nest")[0];
            T::Struct(if is_first { Fields::from(vec![p, q]) } else { Fields::from(vec![q, p]) })
        }
        _ => last(&types(family)),
    }
}

/// Values of a type, which any type of its family can hold more of.
fn values(family: &str, dtype: &DataType, rows: usize, random: &mut StdRng) -> ArrayRef {
    let null = random.random_range(0..4) == 0;
    let mut of = |range: std::ops::Range<i64>| -> Int64Array {
        (0..rows)
            .map(|_| (!null || random.random_bool(0.7)).then(|| random.random_range(range.clone())))
            .collect()
    };
    let numbers: ArrayRef = match (family, dtype) {
        ("nest", DataType::Struct(fields)) => {
            let columns = fields.iter().map(|field| match field.data_type() {
                DataType::List(item) => {
                    let lengths = (0..rows).map(|row| row % 3);
                    let offsets =
                        warpframe::arrow::buffer::OffsetBuffer::from_lengths(lengths.clone());
                    let items = ints((0..lengths.sum::<usize>() as i64).map(|n| n * 7 - 3));
                    let items = cast(&items, item.data_type()).expect("integers");
                    Arc::new(ListArray::new(item.clone(), offsets, items, None)) as ArrayRef
                }
                dtype => cast(&of(-99..99), dtype).expect("integers"),
            });
            return Arc::new(StructArray::new(fields.clone(), columns.collect(), None));
        }
        ("text" | "bytes", _) => {
            let text = |n: i64| {
                if n % 5 == 0 {
                    String::new()
                } else {
                    format!("text {n} é{}", "long ".repeat(n as usize % 4))
                }
            };
            let few = of(0..if rows.is_multiple_of(2) { 7 } else { 1_000_000 });
            Arc::new(StringArray::from_iter(few.iter().map(|n| n.map(text))))
        }
        (_, DataType::Int8) => Arc::new(of(-128..128)),
        (_, DataType::Int16) => Arc::new(of(-32768..32768)),
        ("number", DataType::Int64) => Arc::new(of(-(1 << 53)..(1 << 53) + 1)),
        (_, DataType::UInt8) => Arc::new(of(0..256)),
        (_, DataType::UInt16) => Arc::new(of(0..65536)),
        (_, DataType::UInt32) => Arc::new(of(0..1 << 32)),
        (_, DataType::Int32) => Arc::new(of(i32::MIN.into()..i64::from(i32::MAX) + 1)),
        (_, DataType::Int64) => Arc::new(of(i64::MIN..i64::MAX)),
        (_, DataType::UInt64) => Arc::new(of(0..i64::MAX)),
        (_, DataType::Float32 | DataType::Float64) => Arc::new(of(-1000..1000)),
        ("decimal", _) => Arc::new(of(-99999..100000)),
        ("ts", DataType::Timestamp(TimeUnit::Millisecond, _)) => {
            Arc::new(of(-9_000_000_000_000..9_000_000_000_000))
        }
        ("ts", _) => Arc::new(of(-(1 << 52)..1 << 52)),
        ("time", DataType::Time32(_)) => {
            return cast(&cast(&of(0..86_400_000), &DataType::Int32).unwrap(), dtype).unwrap();
        }
        ("time", _) => Arc::new(of(0..86_400_000_000)),
        _ => Arc::new(of(0..2)),
    };
    match dtype {
        DataType::Float32 | DataType::Float64 => {
            let thirds = Float64Array::from_iter(
                numbers
                    .as_primitive::<warpframe::arrow::datatypes::Int64Type>()
                    .iter()
                    .map(|n| n.map(|n| n as f64 / 3.0)),
            );
            cast(&thirds, dtype).expect("floats")
        }
        _ => cast(&numbers, dtype).unwrap_or_else(|error| panic!("{family} as {dtype}: {error}")),
    }
}

/// Values in the expected type, nested ones field by field.
fn as_expected(array: &ArrayRef, dtype: &DataType) -> ArrayRef {
    match dtype {
        DataType::Struct(fields) => {
            let from = array.as_struct();
            let child = |field: &Arc<Field>| {
                as_expected(
                    from.column_by_name(field.name()).expect("it is there"),
                    field.data_type(),
                )
            };
            Arc::new(StructArray::new(
                fields.clone(),
                fields.iter().map(child).collect(),
                from.nulls().cloned(),
            ))
        }
        dtype => cast(array, dtype).unwrap_or_else(|error| panic!("as {dtype}: {error}")),
    }
}

#[test]
fn files_of_any_columns_are_what_arrow_makes_of_them() -> Result<()> {
    let pair = Pair::new();
    for seed in 0..40 {
        let mut random = StdRng::seed_from_u64(seed);
        let directory = directory();
        let files = random.random_range(1..6);
        let (mut paths, mut batches, mut order) = (vec![], vec![], vec!["id".to_string()]);
        for number in 0..files {
            let rows = random.random_range(0..150);
            let mut families: Vec<&str> =
                FAMILIES.into_iter().filter(|_| random.random_bool(0.6)).collect();
            families.shuffle(&mut random);
            let mut columns = vec![("id", ints((0..rows as i64).map(|row| number * 1000 + row)))];
            for family in families {
                let all = types(family);
                let dtype = &all[random.random_range(0..all.len())];
                columns.push((family, values(family, dtype, rows, &mut random)));
            }
            if random.random_bool(0.5) {
                columns.rotate_left(1);
            }
            if number == 0 {
                order.clear();
            }
            columns
                .iter()
                .filter(|(name, _)| !order.contains(&name.to_string()))
                .map(|(name, _)| name.to_string())
                .collect::<Vec<_>>()
                .into_iter()
                .for_each(|name| order.push(name));
            let is_nullable = random.random_bool(0.5);
            let field = |(name, array): &(&str, ArrayRef)| {
                Field::new(*name, array.data_type().clone(), is_nullable || array.null_count() > 0)
            };
            let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
            let arrays = columns.into_iter().map(|(_, array)| array).collect();
            let batch =
                RecordBatch::try_new(Arc::new(schema), arrays).expect("columns of one length");
            let path = directory.path().join(format!("{number}.parquet"));
            let statistics =
                [EnabledStatistics::None, EnabledStatistics::Chunk, EnabledStatistics::Page];
            write(&path, &batch, statistics[random.random_range(0..3)]);
            paths.push(path);
            batches.push(batch);
        }
        let column = |name: &str| {
            let had: Vec<DataType> = batches
                .iter()
                .filter_map(|batch| Some(batch.column_by_name(name)?.data_type().clone()))
                .collect();
            let dtype = if name == "id" { DataType::Int64 } else { expected(name, &had) };
            let arrays: Vec<ArrayRef> = batches
                .iter()
                .map(|batch| match batch.column_by_name(name) {
                    Some(array) => as_expected(array, &dtype),
                    None => new_null_array(&dtype, batch.num_rows()),
                })
                .collect();
            concat(&arrays.iter().map(|array| array.as_ref()).collect::<Vec<_>>())
                .expect("arrays of one type")
        };
        for session in [&pair.cpu, &pair.device] {
            session.register_parquet("t", &paths)?;
            let schema = session.schema("t")?;
            assert_eq!(
                schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>(),
                order,
                "seed {seed}"
            );
            let found = all(session, "SELECT * FROM t ORDER BY id");
            for (field, found) in schema.fields().iter().zip(found.columns()) {
                let expected = column(field.name());
                let origin =
                    format!("seed {seed}, column {}, {}", field.name(), session.device().is_some());
                assert_eq!(field.data_type(), expected.data_type(), "{origin}");
                assert_eq!(&as_expected(found, expected.data_type()), &expected, "{origin}");
            }
        }
        // What has fields or items, and bytes that the table calls text, is left to the host.
        let left = pair.device.take_host_reads();
        let is_expected =
            |read: &String| read.contains("it is nested") || read.contains("Dictionary(");
        assert!(left.iter().all(is_expected), "seed {seed}: {left:?}");
        // Some columns of some rows.
        let name = order[random.random_range(0..order.len())].clone();
        let mut pair = Pair { origin: format!("seed {seed}"), ..Pair::new() };
        for session in [&pair.cpu, &pair.device] {
            session.register_parquet("t", directory.path())?;
        }
        pair.check(&format!("SELECT count(*), count({name}), min(id), max(id) FROM t"));
        pair.check(&format!("SELECT id FROM t WHERE {name} IS NULL OR id % 1000 > 40"));
        pair.origin.clear();
    }
    Ok(())
}

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
            .register_parquet_with("t", directory.path(), same)
            .expect_err("they differ");
        assert!(matches!(error.kind(), ErrorKind::File { path, .. } if *path == second), "{error}");
        pair.device.register_parquet_with("t", [&second, &second], same)?;
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
