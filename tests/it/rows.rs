//! Rows by number, the order of a sort, running sums: strictly on the device, against the CPU.

use std::sync::Arc;

use warpframe::arrow::array::*;
use warpframe::arrow::compute::take_record_batch;
use warpframe::arrow::datatypes::{DataType, Float64Type, Int64Type, UInt32Type, UInt64Type};
use warpframe::device::DeviceKind;
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::differential::{Cell, Pair, Rows, builder};
use crate::tables::{Shape, columns};

/// Panics unless these verbs yield equal rows on both sessions, those of the device on the device.
fn agree(pair: &Pair, name: &str, verbs: impl Fn(&DataFrame) -> Result<DataFrame>) -> Result<()> {
    let whole = |session: &Session| session.table("t")?.collect();
    let (cpu, device) = (verbs(&whole(&pair.cpu)?)?, verbs(&whole(&pair.device)?)?);
    assert!(device.is_on_device(), "{name}");
    pair.rows_agree(&cpu, &device, &format!("ORDER BY {name}"));
    Ok(())
}

fn numbers(session: &Session, numbers: impl Array + 'static) -> Result<DataFrame> {
    session.from_arrow(columns(vec![("n", Arc::new(numbers) as ArrayRef)]))
}

#[test]
fn arg_sort_gives_the_numbers_of_rows_in_a_sorts_order() -> Result<()> {
    for shape in Shape::all() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for key in ["i32", "i64", "u8", "u64", "f64", "s", "b", "d", "k"] {
            agree(&pair, key, |t| t.arg_sort([asc(col(key))]))?;
        }
        agree(&pair, "id desc", |t| t.arg_sort([desc(col("id"))]))?;
        agree(&pair, "k, f64 desc", |t| t.arg_sort([asc(col("k")), desc(col("f64"))]))?;
        agree(&pair, "an expression", |t| t.arg_sort([(col("k") + lit(1)).sort(true, true)]))?;
    }
    Ok(())
}

#[test]
fn arg_sort_then_take_sorts() -> Result<()> {
    let pair = Pair::of(Shape::random(5000, 3).batches());
    let t = pair.device.table("t")?.collect()?;
    for keys in [vec![asc(col("id"))], vec![desc(col("x")), asc(col("s"))]] {
        let order = t.arg_sort(keys.clone())?;
        let field = order.schema().field(0).clone();
        assert_eq!(
            (field.name().as_str(), field.data_type(), field.is_nullable()),
            ("row", &DataType::UInt32, false)
        );
        pair.rows_agree(&t.sort(keys)?, &t.take(&order)?, "ORDER BY keys");
    }
    // A column of the name does not matter.
    let named = t.select([col("x").alias("row"), col("id").alias("row_")])?;
    assert_eq!(Rows::of(&named.arg_sort([asc(col("row_"))])?).rows[7], [Cell::Int(7)]);
    Ok(())
}

#[test]
fn columns_from_all_over_the_place_are_brought_two_by_two() -> Result<()> {
    let rows = 9_000u32;
    let mixed = |row: u32| row * 7919 % rows;
    let table = columns(vec![
        (
            "a",
            Arc::new(Int64Array::from_iter_values((0..rows).map(|row| i64::from(row) << 33)))
                as ArrayRef,
        ),
        ("s", Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("row {row}"))))),
        ("b", Arc::new(Float64Array::from_iter_values((0..rows).map(|row| f64::from(row) / 7.0)))),
        (
            "n",
            Arc::new(Int64Array::from_iter(
                (0..rows).map(|row| (row % 3 != 0).then_some(i64::from(row))),
            )),
        ),
        (
            "c",
            Arc::new(UInt64Array::from_iter_values((0..rows).map(|row| u64::MAX - u64::from(row)))),
        ),
        ("order", Arc::new(UInt32Array::from_iter_values((0..rows).map(mixed)))),
    ]);
    let pair = Pair::of(table);
    let brought = || {
        pair.device
            .device()
            .map_or(0, |device| device.launches().get("gather_pairs").copied().unwrap_or(0))
    };
    let t = pair.device.table("t")?.collect()?;
    let at: Vec<_> = (0..rows).map(mixed).collect();
    let taken = t.take(&numbers(&pair.device, UInt32Array::from(at.clone()))?)?;
    let expected: Vec<_> = (at.iter())
        .map(|&row| {
            format!(
                "{} row {row} {:?} {}",
                i64::from(row) << 33,
                f64::from(row) / 7.0,
                u64::MAX - u64::from(row)
            )
        })
        .collect();
    let mut found = vec![];
    for batch in taken.to_arrow()? {
        let (a, b) = (
            batch.column(0).as_primitive::<Int64Type>(),
            batch.column(2).as_primitive::<Float64Type>(),
        );
        let (s, c) =
            (batch.column(1).as_string::<i32>(), batch.column(4).as_primitive::<UInt64Type>());
        let row = |at: usize| {
            format!("{} {} {:?} {}", a.value(at), s.value(at), b.value(at), c.value(at))
        };
        found.extend((0..batch.num_rows()).map(row));
    }
    assert_eq!(found, expected);
    // Of three columns of 8 bytes without nulls, two; an expression is no column. Where the columns
    // fit the second-level cache, as so few rows do elsewhere than on the simulator, none.
    let expected = |times: u64| if pair.gpu().kind() == DeviceKind::Sim { times } else { 0 };
    assert_eq!(brought(), expected(1));
    agree(&pair, "order", |t| t.sort([asc(col("order"))]))?;
    assert_eq!(brought(), expected(2));
    // Neighbours stay neighbours.
    agree(&pair, "a", |t| t.sort([asc(col("a"))]))?;
    assert_eq!(brought(), expected(2));
    Ok(())
}

#[test]
fn take_names_rows_by_integers_of_any_type() -> Result<()> {
    for shape in Shape::all() {
        let batches = shape.batches();
        let whole = warpframe::arrow::compute::concat_batches(&batches[0].schema(), &batches)
            .expect("one schema");
        let session = builder().strict(true).build()?;
        let t = session.from_arrow(batches)?;
        let rows = whole.num_rows();
        if rows == 0 {
            assert_eq!(
                t.take(&numbers(&session, Int64Array::from(Vec::<i64>::new()))?)?.num_rows(),
                0
            );
            continue;
        }
        let picked: Vec<u32> =
            (0..rows as u32 * 2 + 5).map(|i| i.wrapping_mul(2_654_435_761) % rows as u32).collect();
        let expected =
            take_record_batch(&whole, &UInt32Array::from(picked.clone())).expect("they are there");
        let small = |n: &u32| (*n).min(100) as u8;
        let ways: Vec<ArrayRef> = vec![
            Arc::new(UInt32Array::from(picked.clone())),
            Arc::new(Int64Array::from_iter_values(picked.iter().map(|n| i64::from(*n)))),
            Arc::new(UInt64Array::from_iter_values(picked.iter().map(|n| u64::from(*n)))),
            Arc::new(Int32Array::from_iter_values(picked.iter().map(|n| *n as i32))),
        ];
        let expected = Rows::of(&session.from_arrow([expected])?);
        for way in ways {
            let found = t.take(&session.from_arrow(columns(vec![("n", way.clone())]))?)?;
            assert!(found.is_on_device() && found.schema() == t.schema(), "{:?}", way.data_type());
            assert_eq!(
                format!("{:?}", Rows::of(&found).rows),
                format!("{:?}", expected.rows),
                "{shape:?}"
            );
        }
        if rows > 100 {
            let bytes = UInt8Array::from_iter_values(picked.iter().map(small));
            let found = t.take(&numbers(&session, bytes)?)?.select([col("id")])?;
            let ids: Vec<_> = picked.iter().map(|n| vec![Cell::Int(small(n).into())]).collect();
            if !format!("{shape:?}").contains("Sliced") {
                assert_eq!(Rows::of(&found).rows, ids);
            }
        }
    }
    Ok(())
}

#[test]
fn take_of_null_is_a_row_of_nulls() -> Result<()> {
    let pair = Pair::of(Shape::random(300, 5).batches());
    let picked = || Int64Array::from(vec![Some(7), None, Some(299), None, Some(7)]);
    agree(&pair, "nulls", |t| t.take(&numbers(&pair.cpu, picked())?))?;
    let t = pair.device.table("t")?.collect()?;
    let found = t.take(&numbers(&pair.device, picked())?)?.select([col("id")])?;
    let ids = [Cell::Int(7), Cell::Null, Cell::Int(299), Cell::Null, Cell::Int(7)];
    assert_eq!(Rows::of(&found).rows, ids.map(|id| vec![id]));
    // Of no rows too, as long as none is named.
    let none = t.filter(lit(false))?;
    let found = none.take(&numbers(&pair.device, UInt32Array::from(vec![None, None]))?)?;
    assert!(
        Rows::of(&found).rows.iter().flatten().all(|cell| *cell == Cell::Null)
            && found.num_rows() == 2
    );
    Ok(())
}

#[test]
fn take_reads_numbers_where_they_are_computed() -> Result<()> {
    let pair = Pair::of(Shape::random(1000, 6).batches());
    let even = |t: &DataFrame| t.select([(col("id") * lit(2i64)).alias("n")])?.limit(3, 400);
    agree(&pair, "computed", |t| t.take(&even(t)?))?;
    let sliced = |t: &DataFrame| t.arg_sort([asc(col("id"))])?.limit(10, 50);
    agree(&pair, "sliced", |t| t.limit(5, 900)?.take(&sliced(t)?))
}

#[test]
fn take_refuses_numbers_that_no_row_has() -> Result<()> {
    let pair = Pair::of(Shape::random(100, 7).batches());
    for session in [&pair.cpu, &pair.device] {
        let t = session.table("t")?.collect()?;
        let wrong: Vec<(ArrayRef, i128)> = vec![
            (Arc::new(Int64Array::from(vec![0, 100])), 100),
            (Arc::new(Int64Array::from(vec![0, -1])), -1),
            (Arc::new(UInt32Array::from(vec![u32::MAX, 0])), u32::MAX.into()),
            (Arc::new(UInt64Array::from(vec![Some(3), None, Some(u64::MAX)])), u64::MAX.into()),
        ];
        for (array, number) in wrong {
            let frame = session.from_arrow(columns(vec![("n", array)]))?;
            for frame in [frame.filter(col("n").is_not_null())?, frame] {
                let error = t.take(&frame).expect_err("no such row");
                match error.kind() {
                    ErrorKind::RowNotFound { row, rows: 100 } => assert_eq!(*row, number),
                    other => panic!("{other:?}"),
                }
            }
        }
        // A filter's result has bounds that need not be tight.
        let loose = session.from_arrow(columns(vec![(
            "n",
            Arc::new(Int64Array::from(vec![0, 500])) as ArrayRef,
        )]))?;
        assert_eq!(t.take(&loose.filter(col("n").lt(lit(100)))?)?.num_rows(), 1);
        for bad in [t.select([col("x")])?, t.select([col("s")])?, t.select([col("id"), col("k")])?]
        {
            let error = t.take(&bad).expect_err("not one column of integers");
            assert!(matches!(error.kind(), ErrorKind::TypeMismatch { .. }), "{error:?}");
        }
    }
    Ok(())
}

#[test]
fn cumulative_sums_skip_nulls() -> Result<()> {
    for shape in Shape::all() {
        let pair = Pair::of(shape.batches()).from(format!("{shape:?}"));
        for column in ["id", "i8", "i16", "i32", "i64", "u8", "u32", "u64", "x", "w"] {
            let few = |t: &DataFrame| t.select([col("id"), col(column).alias("v")]);
            agree(&pair, column, |t| few(t)?.cumulative_sum("v"))?;
        }
        agree(&pair, "sliced", |t| {
            t.select([col("k"), col("x")])?.limit(3, 1500)?.cumulative_sum("x")
        })?;
    }
    Ok(())
}

#[test]
fn cumulative_sums_replace_their_column_and_keep_the_others() -> Result<()> {
    let session = builder().strict(true).build()?;
    let v = Int64Array::from(vec![Some(i64::MAX), None, Some(1), Some(5)]);
    let frame = session.from_arrow(columns(vec![
        ("a", Arc::new(StringArray::from(vec!["p", "q", "r", "s"])) as ArrayRef),
        ("v", Arc::new(v) as ArrayRef),
    ]))?;
    let sums = frame.cumulative_sum("v")?;
    let batch = sums.to_arrow()?.remove(0);
    let expected = Int64Array::from(vec![Some(i64::MAX), None, Some(i64::MIN), Some(i64::MIN + 5)]);
    assert_eq!(batch.column(1).as_primitive::<Int64Type>(), &expected);
    assert_eq!(sums.schema().field(0), frame.schema().field(0));
    Ok(())
}

#[test]
fn cumulative_sum_refuses_other_types_and_unknown_columns() -> Result<()> {
    let pair = Pair::of(Shape::random(10, 8).batches());
    for session in [&pair.cpu, &pair.device] {
        let t = session.table("t")?.collect()?;
        for column in ["s", "d", "b"] {
            let error = t.cumulative_sum(column).expect_err("not a number");
            assert!(matches!(error.kind(), ErrorKind::TypeMismatch { .. }), "{error:?}");
        }
        let error = t.cumulative_sum("nobody").expect_err("not there");
        assert!(matches!(error.kind(), ErrorKind::ColumnNotFound { .. }), "{error:?}");
        let error = t.arg_sort([asc(col("nobody"))]).expect_err("not there");
        assert!(matches!(error.kind(), ErrorKind::ColumnNotFound { .. }), "{error:?}");
    }
    Ok(())
}

#[test]
fn a_sort_that_the_device_cannot_do_is_refused_or_left_to_the_cpu() -> Result<()> {
    let texts = ["b", "a"]
        .into_iter()
        .cycle()
        .zip(0..5000)
        .map(|(c, n)| format!("{}{n:04}", c.repeat(300)));
    let texts = columns(vec![("s", Arc::new(StringArray::from_iter_values(texts)) as ArrayRef)]);
    let strict = builder().strict(true).build()?.from_arrow(texts.clone())?;
    let error = strict.arg_sort([asc(col("s"))]).expect_err("strings too long for a key");
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error:?}");
    let order = builder().strict(false).build()?.from_arrow(texts)?.arg_sort([asc(col("s"))])?;
    assert_eq!(
        order.to_arrow()?[0].column(0).as_primitive::<UInt32Type>().values()[..3],
        [1, 3, 5]
    );
    Ok(())
}

#[test]
fn columns_that_need_no_change_are_not_copied_first() -> Result<()> {
    let session = builder().strict(true).build()?;
    let x = Float64Array::from_iter_values((0..3000).map(f64::from));
    let n = UInt32Array::from_iter_values((0..3000).rev());
    let frame = session.from_arrow(columns(vec![
        ("x", Arc::new(x) as ArrayRef),
        ("n", Arc::new(n) as ArrayRef),
    ]))?;
    let numbers = frame.select([col("n")])?;
    let device = session.device().expect("the device under test");
    let launched = |work: &dyn Fn() -> Result<DataFrame>| {
        let before = device.counters().launches;
        work().map(|_| device.counters().launches - before)
    };
    assert_eq!(launched(&|| frame.select([col("x")]))?, 0);
    assert_eq!(launched(&|| frame.take(&numbers))?, 1);
    assert_eq!(launched(&|| frame.cumulative_sum("x"))?, 1);
    Ok(())
}
