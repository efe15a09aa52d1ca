//! Memory limits: what is kept makes room for queries, on the device and for the CPU engine.

use std::sync::Arc;

use warpframe::arrow::array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    Float32Array, Float64Array, Int32Array, Int64Array, Int64Builder, ListBuilder, RecordBatch,
    StringArray, StringViewArray, StructArray, TimestampMicrosecondArray,
};
use warpframe::arrow::compute::concat_batches;
use warpframe::arrow::datatypes::{DataType, Field, Int32Type};
use warpframe::device::MemoryLimit;
use warpframe::{DataFrame, DeviceChoice, ErrorKind, Session};

use crate::differential::builder;
use crate::tables::Shape;

/// Bytes of a column of [`numbers`].
const COLUMN: u64 = 8 * ROWS as u64;
const ROWS: usize = 20_000;

/// Columns `a`, `b` and `c` of numbers in no order, and what they sum up to.
fn numbers(seed: i64) -> (RecordBatch, [i64; 3]) {
    let values = |of: i64| {
        (0..ROWS as i64).map(move |row| ((row * 7919 + seed * 31 + of * 17) % 100_003) << 20)
    };
    let column = |of| Arc::new(Int64Array::from_iter_values(values(of))) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("a", column(0)), ("b", column(1)), ("c", column(2))])
        .expect("a batch");
    (batch, [0, 1, 2].map(|of| values(of).sum()))
}

/// A strict session with tables `t0`, `t1`, … in Parquet files, the sums of their columns, and the
/// bytes of device memory that reading one of them takes at most. So many are the limit.
fn session_with(tables: usize, directory: &tempfile::TempDir) -> (Session, Vec<[i64; 3]>, u64) {
    let writer = Session::builder().device(DeviceChoice::Cpu).build().expect("the CPU is there");
    let path = |number: usize| directory.path().join(format!("t{number}.parquet"));
    let registered = || {
        let session = builder().strict(true).build().expect("the device opens");
        (0..tables).for_each(|number| {
            session.register_parquet(&format!("t{number}"), path(number)).expect("it is read")
        });
        session
    };
    let mut expected = vec![];
    for number in 0..tables {
        let (batch, sums) = numbers(number as i64);
        writer
            .from_arrow([batch])
            .and_then(|frame| frame.write_parquet(path(number)))
            .expect("it is written");
        expected.push(sums);
    }
    let takes = |number: usize| {
        let session = registered();
        sums(&session, &format!("t{number}")).expect("there is room");
        session.device().expect("a device").memory().peak
    };
    let most = (0..tables).map(takes).max().expect("a table");
    let session = registered();
    limit(&session, most);
    (session, expected, most)
}

fn limit(session: &Session, bytes: u64) {
    session.device().expect("a device").set_memory_limit(MemoryLimit::Bytes(bytes));
}

/// The sums of a table's three columns, as the device finds them.
fn sums(session: &Session, table: &str) -> warpframe::Result<[i64; 3]> {
    let frame = session.sql(&format!("SELECT sum(a), sum(b), sum(c) FROM {table}"))?.collect()?;
    let batch = &frame.to_arrow()?[0];
    Ok([0, 1, 2]
        .map(|at| batch.column(at).as_any().downcast_ref::<Int64Array>().expect("Int64").value(0)))
}

#[test]
fn tables_that_do_not_fit_together_take_turns() {
    let directory = tempfile::tempdir().expect("a folder");
    // Each fits with what reading it takes, two do not.
    let (session, expected, most) = session_with(2, &directory);
    let device = session.device().expect("a device");
    for _ in 0..3 {
        for (number, expected) in expected.iter().enumerate() {
            assert_eq!(sums(&session, &format!("t{number}")).expect("there is room"), *expected);
        }
    }
    let counters = device.counters();
    assert!(
        counters.columns_evicted >= 15 && counters.bytes_evicted >= 15 * COLUMN,
        "{counters:?}"
    );
    assert_eq!(counters.fallbacks, 0);
    assert!(device.memory().peak <= most);
    // Both, as far as a query needs them: columns that it does not read go.
    let joined = session.sql("SELECT count(*) FROM t0 JOIN t1 ON t0.a = t1.a").expect("a plan");
    assert_eq!(joined.collect().expect("there is room").num_rows(), 1);
}

#[test]
fn columns_used_last_stay() {
    let directory = tempfile::tempdir().expect("a folder");
    let (session, _, most) = session_with(5, &directory);
    let device = session.device().expect("a device");
    // Three tables stay while a fourth is read.
    limit(&session, most + 10 * COLUMN);
    let read = || device.counters().file_bytes_wanted;
    let ask = |sql: &str| drop(session.sql(sql).expect("a plan").collect().expect("there is room"));
    for number in 0..4 {
        ask(&format!("SELECT sum(a), sum(b), sum(c) FROM t{number}"));
    }
    ask("SELECT sum(a) FROM t0");
    let before = device.counters().columns_evicted;
    ask("SELECT sum(a), sum(b), sum(c) FROM t4");
    ask("SELECT sum(a), sum(b) FROM t0, (SELECT sum(a) AS other FROM t3)");
    let evicted = device.counters().columns_evicted - before;
    let known = read();
    ask("SELECT sum(a) FROM t0");
    assert_eq!(read(), known, "{evicted} columns went, and this one was not the oldest");
    assert!(evicted > 0);
}

#[test]
fn what_does_not_fit_alone_says_what_is_in_the_way() {
    let directory = tempfile::tempdir().expect("a folder");
    let (session, expected, most) = session_with(1, &directory);
    assert_eq!(sums(&session, "t0").expect("there is room"), expected[0]);
    let kept =
        session.sql("SELECT a + 1 AS a FROM t0").expect("a plan").collect().expect("there is room");
    let near = "RANGE BETWEEN 3 PRECEDING AND CURRENT ROW";
    let rows = ["SELECT a, b, c FROM t0"; 8].join(" UNION ALL ");
    let whole = format!(
        "SELECT sum(a) OVER (ORDER BY b {near}), sum(c) OVER (ORDER BY a {near}) FROM ({rows})"
    );
    let error =
        session.sql(&whole).expect("a plan").collect().expect_err("all rows are needed at once");
    match error.kind() {
        ErrorKind::OutOfDeviceMemory { operator, asked, free, limit, used, cached, kept } => {
            assert!(!operator.is_empty() && asked > free, "{error}");
            assert_eq!((*limit, *used + *free), (most, most), "{error}");
            assert!(*cached + *kept <= *used, "{error}");
        }
        other => panic!("{other:?}"),
    }
    // The session goes on.
    assert_eq!(sums(&session, "t0").expect("there is room"), expected[0]);
    assert_eq!(kept.num_rows(), ROWS);
}

/// A batch with columns of many types, nulls in each.
fn all_types() -> RecordBatch {
    const ROWS: i64 = 3000;
    let some = |row: &i64| row % 11 != 3;
    let rows = || (0..ROWS).map(move |row| Some(row).filter(some));
    let text = |row: i64| match row % 4 {
        0 => String::new(),
        1 => format!("é{row}"),
        2 => format!("a string that is longer than a view holds, number {row}"),
        _ => "short".into(),
    };
    let few = |row: i64| {
        ["one", "two", "a third value that is longer than a view holds"][row as usize % 3]
    };
    let mut lists = ListBuilder::new(Int64Builder::new());
    for row in rows() {
        if let Some(row) = row {
            (0..row % 5).for_each(|item| {
                lists.values().append_option(Some(item * row).filter(|item| item % 3 != 1))
            });
        }
        lists.append(row.is_some());
    }
    let fields = vec![
        (
            Arc::new(Field::new("x", DataType::Int32, true)),
            Arc::new(rows().map(|row| row.map(|row| row as i32)).collect::<Int32Array>())
                as ArrayRef,
        ),
        (
            Arc::new(Field::new("s", DataType::Utf8View, true)),
            Arc::new(rows().map(|row| row.map(text)).collect::<StringViewArray>()) as ArrayRef,
        ),
    ];
    let float = |row: i64| match row % 5 {
        0 => f64::NAN,
        1 => -0.0,
        2 => f64::NEG_INFINITY,
        _ => row as f64 / 3.0,
    };
    let decimals = rows()
        .map(|row| row.map(|row| i128::from(row) * 10i128.pow(30)))
        .collect::<Decimal128Array>();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        ("flag", Arc::new(rows().map(|row| row.map(|row| row % 2 == 0)).collect::<BooleanArray>())),
        (
            "f32",
            Arc::new(rows().map(|row| row.map(|row| float(row) as f32)).collect::<Float32Array>()),
        ),
        ("f64", Arc::new(rows().map(|row| row.map(float)).collect::<Float64Array>())),
        (
            "day",
            Arc::new(rows().map(|row| row.map(|row| row as i32 - 500)).collect::<Date32Array>()),
        ),
        (
            "time",
            Arc::new(
                rows()
                    .map(|row| row.map(|row| row * 1_000_003))
                    .collect::<TimestampMicrosecondArray>(),
            ),
        ),
        ("dec", Arc::new(decimals.with_precision_and_scale(38, 3).expect("a decimal"))),
        ("sv", Arc::new(rows().map(|row| row.map(text)).collect::<StringViewArray>())),
        ("s", Arc::new(rows().map(|row| row.map(text)).collect::<StringArray>())),
        ("few", Arc::new(rows().map(|row| row.map(few)).collect::<StringViewArray>())),
        ("coded", Arc::new(rows().map(|row| row.map(few)).collect::<DictionaryArray<Int32Type>>())),
        (
            "bytes",
            Arc::new(
                rows().map(|row| row.map(|row| row.to_le_bytes())).collect::<BinaryViewArray>(),
            ),
        ),
        ("list", Arc::new(lists.finish())),
        ("struct", Arc::new(StructArray::from(fields))),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .expect("a batch")
}

/// All rows in one batch.
fn whole(frame: &DataFrame) -> RecordBatch {
    concat_batches(&frame.schema(), &frame.to_arrow().expect("rows")).expect("a batch")
}

/// Reads a table, for which kept tables have to move.
fn crowd(session: &Session, table: &str) {
    sums(session, table).expect("kept tables make room");
}

#[test]
fn kept_tables_move_to_the_host_and_come_back_bit_by_bit() {
    let directory = tempfile::tempdir().expect("a folder");
    let (session, _, most) = session_with(1, &directory);
    limit(&session, 64 << 20);
    let device = session.device().expect("a device");
    let batch = all_types();
    let frame = session
        .from_arrow([batch])
        .expect("a frame")
        .sort([warpframe::prelude::asc(warpframe::prelude::col("id"))]);
    let frame = frame.expect("it is sorted");
    let before = whole(&frame);
    session.register_table("kept", &frame).expect("a table");
    assert!(frame.is_on_device());
    // Half of the frame is in the way.
    limit(&session, most + device.memory().used / 2);
    crowd(&session, "t0");
    assert!(!frame.is_on_device(), "{:?}", device.memory());
    assert_eq!(device.counters().tables_moved_back, 0);
    // Read from where it lies.
    assert_eq!(whole(&frame), before);
    assert!(!frame.is_on_device());
    limit(&session, 64 << 20);
    let again = session
        .sql("SELECT * FROM kept WHERE id >= 0 ORDER BY id")
        .expect("a plan")
        .collect()
        .expect("it fits");
    assert!(frame.is_on_device());
    assert_eq!(device.counters().tables_moved_back, 1);
    for (at, field) in before.schema().fields().iter().enumerate() {
        assert_eq!(
            whole(&again).column(at).to_data(),
            before.column(at).to_data(),
            "{}",
            field.name()
        );
        assert_eq!(
            whole(&frame).column(at).to_data(),
            before.column(at).to_data(),
            "{}",
            field.name()
        );
    }
    assert_eq!(device.counters().fallbacks, 0);
}

/// Strings and lists are made contiguous before they leave the device, for which memory may lack.
#[test]
fn a_result_leaves_the_device_by_halves_where_memory_lacks() {
    let session = builder().strict(true).build().expect("a session");
    let device = session.device().expect("a device").clone();
    let frame = session.from_arrow(Shape::random(500, 3).batches()).expect("a frame");
    session.register_table("t", &frame).expect("a table");
    let sql = "SELECT id % 40 AS g, array_agg(s ORDER BY id) AS s, array_agg(k ORDER BY id) AS k \
               FROM t GROUP BY g ORDER BY g DESC";
    let frame = session.sql(sql).and_then(|frame| frame.collect()).expect("rows");
    let rows = whole(&frame);
    let before = device.counters().allocations;
    assert_eq!(whole(&frame), rows);
    let allocations = device.counters().allocations - before;
    assert!(allocations > 0);
    for at in 0..allocations {
        device.fail_allocation_after(at);
        assert_eq!(whole(&frame), rows, "allocation {at} of {allocations}");
    }
}

#[test]
fn verbs_on_frames_that_moved_bring_them_back() {
    use warpframe::prelude::*;
    let directory = tempfile::tempdir().expect("a folder");
    let (session, expected, most) = session_with(1, &directory);
    limit(&session, most + COLUMN);
    let device = session.device().expect("a device");
    let made = session
        .sql("SELECT a + 1 AS x, b FROM t0")
        .expect("a plan")
        .collect()
        .expect("there is room");
    let mut moved = 0;
    let mut crowded = || {
        device.make_room(u64::MAX).expect("room");
        assert!(!made.is_on_device());
        assert!(device.counters().tables_moved_out > moved);
        moved = device.counters().tables_moved_out;
    };
    crowded();
    let one = made.filter(col("x").lt(lit(0i64))).expect("there is room");
    assert_eq!(one.num_rows(), 0);
    crowded();
    let order = made.arg_sort([asc(col("x"))]).expect("there is room");
    crowded();
    assert_eq!(made.take(&order.head(5).expect("rows")).expect("there is room").num_rows(), 5);
    crowded();
    assert_eq!(made.cumulative_sum("b").expect("there is room").num_rows(), ROWS);
    crowded();
    let total = made.select([sum(col("x")).alias("x")]).expect("there is room");
    let total = whole(&total);
    let total = total.column(0).as_any().downcast_ref::<Int64Array>().expect("Int64").value(0);
    assert_eq!(total, expected[0][0] + ROWS as i64);
}

#[test]
fn threads_on_one_session_under_a_tight_limit_get_answers_or_the_error() {
    let directory = tempfile::tempdir().expect("a folder");
    let (session, expected, most) = session_with(4, &directory);
    limit(&session, most + COLUMN);
    let kept =
        session.sql("SELECT a, b, c FROM t3").expect("a plan").collect().expect("there is room");
    session.register_table("kept", &kept).expect("a table");
    drop(kept);
    let answers = std::thread::scope(|scope| {
        let work = |first: usize| {
            let (session, expected) = (&session, &expected);
            move || {
                let mut answers = 0;
                for round in 0..12 {
                    let number = (first + round) % 4;
                    let table = if number == 3 { "kept".into() } else { format!("t{number}") };
                    match sums(session, &table) {
                        Ok(found) => {
                            assert_eq!(found, expected[number], "{table}");
                            answers += 1;
                        }
                        Err(error) => assert!(
                            matches!(error.kind(), ErrorKind::OutOfDeviceMemory { .. }),
                            "{error}"
                        ),
                    }
                }
                answers
            }
        };
        let threads: Vec<_> = (0..2).map(|first| scope.spawn(work(2 * first))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum::<usize>()
    });
    assert!(answers > 0);
    // Alone each fits.
    for (number, expected) in expected.iter().enumerate() {
        let table = if number == 3 { "kept".into() } else { format!("t{number}") };
        assert_eq!(sums(&session, &table).expect("there is room"), *expected);
    }
}

/// Rows that the CPU engine sorts, more than 40 MB, and a limit within which it has to spill them.
const SORTED: &str = "SELECT n, repeat(to_hex(n * 7919 % 1000003), 10) AS s FROM \
     (SELECT unnest(range(0, 500000)) AS n) ORDER BY s, n";

fn on_cpu(limit: &str) -> warpframe::SessionBuilder {
    Session::builder()
        .device(DeviceChoice::Cpu)
        .cpu_partitions(1)
        .host_memory_limit(limit.parse().expect("a limit"))
}

#[test]
fn the_cpu_engine_spills_what_its_limit_does_not_hold() {
    let directory = tempfile::tempdir().expect("a folder");
    let folder = directory.path().join("spilled");
    let rows = |session: &Session| {
        session.sql(SORTED).and_then(|frame| frame.collect()).map(|frame| whole(&frame))
    };
    let expected = rows(&on_cpu("75%").build().expect("a session")).expect("there is memory");
    let tight = on_cpu("40MiB").spill_dir(&folder).build().expect("a session");
    assert!(folder.is_dir());
    assert_eq!(rows(&tight).expect("it spills"), expected);
    // The sort fails where files to spill to may hold 1000 bytes only.
    let without = on_cpu("40MiB").spill_dir(&folder).spill_limit(1000).build().expect("a session");
    let error = rows(&without).expect_err("it has to spill");
    match error.kind() {
        ErrorKind::OutOfHostMemory { limit, spill_limit, account } => {
            assert_eq!((*limit, *spill_limit), (Some(40 << 20), Some(1000)), "{account}");
        }
        other => panic!("{other:?}"),
    }
    assert!(error.to_string().contains("41943040"), "{error}");
    // The session goes on, and nothing stays in the folder.
    assert_eq!(
        without.sql("SELECT 1").and_then(|frame| frame.collect()).expect("it is small").num_rows(),
        1
    );
    drop((tight, without));
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 0);
    // Where the folder went away the error has its name, and says what to do.
    let homeless = on_cpu("40MiB").spill_dir(&folder).build().expect("a session");
    std::fs::remove_dir_all(&folder).expect("the folder");
    let error = rows(&homeless).expect_err("there is nowhere to spill");
    assert!(error.to_string().starts_with(&folder.display().to_string()), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("--spill-dir")), "{error}");
}

#[test]
fn what_cannot_spill_says_which_limit_is_in_the_way() {
    let session = on_cpu("2MiB").build().expect("a session");
    let sql = "SELECT count(*) FROM (SELECT unnest(range(0, 500000)) AS n) a JOIN \
        (SELECT unnest(range(0, 500000)) AS n) b ON a.n = b.n";
    let error =
        session.sql(sql).and_then(|frame| frame.collect()).expect_err("a build side of 2.4 MB");
    match error.kind() {
        ErrorKind::OutOfHostMemory { limit, account, .. } => {
            assert_eq!(*limit, Some(2 << 20), "{account}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_cpu_engine_writes_files_as_rows_come() {
    let directory = tempfile::tempdir().expect("a folder");
    let path = |name: &str| directory.path().join(name);
    let session = on_cpu("64MiB").build().expect("a session");
    let frame = session.sql(SORTED).expect("a plan");
    let collected = frame.collect().expect("rows");
    collected.write_csv(path("collected.csv")).expect("a file");
    assert_eq!(frame.write_csv(path("streamed.csv")).expect("a file"), 500_000);
    let read = |name: &str| std::fs::read(path(name)).expect("a file");
    assert!(read("collected.csv") == read("streamed.csv"));
    let options =
        warpframe::ParquetWriteOptions { row_group_rows: Some(50_000), ..Default::default() };
    assert_eq!(
        frame.write_parquet_with(path("streamed.parquet"), options).expect("a file"),
        500_000
    );
    let again = session.read_parquet(path("streamed.parquet")).expect("rows");
    again.write_csv(path("again.csv")).expect("a file");
    assert!(read("again.csv") == read("collected.csv"));
    // A query that fails on the way leaves no file.
    let failing = session
        .sql("SELECT 1 / (n - 150000) AS x FROM (SELECT unnest(range(0, 200000)) AS n)")
        .expect("a plan");
    let error = failing.write_csv(path("none.csv")).expect_err("it divides by zero");
    assert!(matches!(error.kind(), ErrorKind::Arithmetic { .. }), "{error:?}");
    assert!(!path("none.csv").exists());
    // A device's rows are those of collect.
    let device = builder().strict(true).build().expect("the device opens");
    device.register_parquet("t", path("streamed.parquet")).expect("a table");
    let rows =
        device.sql("SELECT * FROM t ORDER BY s, n").expect("a plan").write_csv(path("device.csv"));
    assert_eq!(rows.expect("a file"), 500_000);
    assert!(read("device.csv") == read("collected.csv"));
}

#[test]
fn files_that_a_value_makes_wider_are_written_whole() {
    let directory = tempfile::tempdir().expect("a folder");
    let (from, to) = (directory.path().join("from.csv"), directory.path().join("to.csv"));
    let numbers: String = (0..5000).map(|n| format!("{n}\n")).collect();
    std::fs::write(&from, format!("x\n{numbers}1.5\n")).expect("a file");
    let options = warpframe::CsvOptions { sample_size: Some(10), ..Default::default() };
    let session = on_cpu("64MiB").build().expect("a session");
    let frame = session.scan_csv_with(&from, options).expect("a file");
    assert_eq!(frame.write_csv(&to).expect("a file"), 5001);
    let collected = session.scan_csv(&to).expect("a file").collect().expect("rows");
    assert_eq!(collected.num_rows(), 5001);
}
