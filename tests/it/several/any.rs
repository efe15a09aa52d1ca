//! Files of random columns, whose types are those of a family.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use warpframe::arrow::datatypes::Fields;

use super::*;

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
