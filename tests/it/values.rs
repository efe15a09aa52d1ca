//! Frames made of a program's values, read back as values, and shown as text.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
use warpframe::arrow::array::{
    ArrayRef, Int32Array, RecordBatch, RecordBatchIterator, TimestampNanosecondArray,
};
use warpframe::frame::{Borders, FrameFormat, FromColumn, IntoArray, MaybeValue, Row};
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::plans::strict;

/// The device, and the CPU engine.
fn sessions() -> [Session; 2] {
    [strict(), Session::builder().device(DeviceChoice::Cpu).build().unwrap()]
}

fn there_and_back<T>(session: &Session, values: &[Option<T>])
where
    T: Clone + PartialEq + std::fmt::Debug + FromColumn,
    Option<T>: MaybeValue,
{
    let frame = session.from_columns([("v", values.into_array())]).unwrap();
    assert_eq!(frame.is_on_device(), session.device().is_some());
    let column = frame.column("v").unwrap();
    assert_eq!(column.to_vec::<Option<T>>().unwrap(), values);
    assert_eq!(column.get::<Option<T>>(values.len() - 1).unwrap(), values[values.len() - 1]);
    let read: Vec<Option<T>> = frame.rows().map(|row| row.unwrap().get("v").unwrap()).collect();
    assert_eq!(read, values);
    let whole: Vec<T> = values.iter().flatten().cloned().collect();
    let frame = frame.filter(col("v").is_not_null()).unwrap();
    assert_eq!(frame.column("v").unwrap().to_vec::<T>().unwrap(), whole);
}

#[test]
fn values_of_every_type_come_back() {
    for session in sessions() {
        there_and_back(&session, &[Some(i8::MIN), None, Some(i8::MAX)]);
        there_and_back(&session, &[Some(i16::MIN), None, Some(i16::MAX)]);
        there_and_back(&session, &[Some(i32::MIN), None, Some(i32::MAX)]);
        there_and_back(&session, &[Some(i64::MIN), None, Some(i64::MAX)]);
        there_and_back(&session, &[Some(u8::MAX), None]);
        there_and_back(&session, &[Some(u16::MAX), None]);
        there_and_back(&session, &[Some(u32::MAX), None]);
        there_and_back(&session, &[Some(u64::MAX), None, Some(0)]);
        there_and_back(&session, &[Some(1.5f32), None, Some(f32::INFINITY)]);
        there_and_back(&session, &[Some(1e300), None, Some(-0.0)]);
        there_and_back(&session, &[Some(true), None, Some(false)]);
        let long = "é".repeat(3000);
        there_and_back(&session, &[Some(String::new()), None, Some("x".into()), Some(long)]);
        let day = |y, m, d| NaiveDate::from_ymd_opt(y, m, d).unwrap();
        there_and_back(&session, &[Some(day(1969, 12, 31)), None, Some(day(2024, 2, 29))]);
        let noon = NaiveTime::from_hms_nano_opt(12, 0, 0, 123_456_789).unwrap();
        there_and_back(&session, &[Some(noon), None]);
        let time = DateTime::<Utc>::from_timestamp_micros(-1).unwrap();
        there_and_back(&session, &[Some(time), None]);
        there_and_back(&session, &[Some(time.naive_utc()), None]);
        there_and_back(&session, &[Some(vec![1.5, 2.5]), None, Some(vec![])]);
        there_and_back(
            &session,
            &[Some(vec!["a".to_string()]), None, Some(vec!["b".into(), "c".into()])],
        );
    }
}

#[test]
fn columns_are_read_as_wider_types_and_not_as_narrower_ones() {
    for session in sessions() {
        let nanoseconds = TimestampNanosecondArray::from(vec![1_700_000_000_123_456_789]);
        let frame = session
            .from_columns([
                ("small", [1i16].into_array()),
                ("big", [1i64 << 60].into_array()),
                ("unsigned", [200u8].into_array()),
                ("float", [0.5f32].into_array()),
                ("time", std::sync::Arc::new(nanoseconds) as ArrayRef),
            ])
            .unwrap();
        assert_eq!(frame.get::<i64>(0, "small").unwrap(), 1);
        assert_eq!(frame.get::<f32>(0, "small").unwrap(), 1.0);
        assert_eq!(frame.get::<i16>(0, "unsigned").unwrap(), 200);
        assert_eq!(frame.get::<f64>(0, "float").unwrap(), 0.5);
        let time: NaiveDateTime = frame.get(0, "time").unwrap();
        assert_eq!(time.and_utc().timestamp_nanos_opt(), Some(1_700_000_000_123_456_789));
        let refused = |result: Result<()>, name: &str| {
            let error = result.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::TypeMismatch { .. }), "{error}");
            assert!(error.to_string().contains(name), "{error}");
        };
        refused(frame.get::<i8>(0, "small").map(drop), "\"small\"");
        refused(frame.get::<f64>(0, "big").map(drop), "\"big\"");
        refused(frame.get::<u64>(0, "small").map(drop), "\"small\"");
        refused(frame.get::<i8>(0, "unsigned").map(drop), "\"unsigned\"");
        refused(frame.get::<String>(0, "small").map(drop), "\"small\"");
        refused(frame.column("big").unwrap().to_vec::<i32>().map(drop), "\"big\"");
    }
}

#[test]
fn errors_name_the_column_the_row_and_the_shape() {
    for session in sessions() {
        let frame = frame!(session; "x" => [1, None, 3], "y" => [1, 2, 3]).unwrap();
        let error = frame.column("x").unwrap().to_vec::<i32>().unwrap_err();
        let expected =
            "reading column \"x\", row 1: expected Int32 (an Option reads nulls), found a null";
        assert_eq!(error.to_string(), expected);
        let error = frame.row(1).unwrap().get::<i32>("x").unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(
            matches!(frame.column("z").unwrap_err().kind(), ErrorKind::ColumnNotFound { known, .. } if known.len() == 2)
        );
        assert!(matches!(
            frame.row(3).unwrap_err().kind(),
            ErrorKind::RowNotFound { row: 3, rows: 3 }
        ));
        let error = frame.item::<i32>().unwrap_err();
        let expected = "the only value of a frame: expected one row and one column, found 3 rows and 2 columns";
        assert_eq!(error.to_string(), expected);
        let error = session
            .from_columns([("a", [1, 2].into_array()), ("b", [1].into_array())])
            .unwrap_err();
        let expected = "columns differ in length: column \"a\" has 2 values, column \"b\" 1";
        assert_eq!(error.to_string(), expected);
        let error =
            session.from_columns([("a", [1].into_array()), ("a", [1].into_array())]).unwrap_err();
        assert_eq!(error.to_string(), "two columns are named \"a\"");
    }
}

#[test]
fn the_macro_takes_lists_vectors_and_nulls() {
    for session in sessions() {
        let (names, none) = (vec!["a", "b", "c"], Vec::<i64>::new());
        let frame = frame!(session;
            "literal" => [1, 2, 3],
            "null" => [None, Some(2.5), 3.5],
            "sum" => [1 + 1, 2 * 2, 3],
            "vector" => names.clone(),
            "slice" => &names[..],
            "same" => [7u8; 3],
            "built" => [1.0, 2.0].repeat(2)[..3].to_vec(),
        )
        .unwrap();
        assert_eq!(frame.num_rows(), 3);
        assert_eq!(
            frame.column("null").unwrap().to_vec::<Option<f64>>().unwrap(),
            [None, Some(2.5), Some(3.5)]
        );
        assert_eq!(frame.column("sum").unwrap().to_vec::<i32>().unwrap(), [2, 4, 3]);
        assert_eq!(frame.column("slice").unwrap().to_vec::<String>().unwrap(), names);
        assert_eq!(frame.column("built").unwrap().to_vec::<f64>().unwrap(), [1.0, 2.0, 1.0]);
        assert_eq!(frame!(session; "none" => none).unwrap().num_rows(), 0);
        assert_eq!(frame!(session;).unwrap().schema().fields().len(), 0);
    }
}

#[test]
fn rows_come_in_order_over_many_batches() {
    let batches = (0..5).map(|at| {
        let x = std::sync::Arc::new(Int32Array::from_iter_values(at * 40_000..(at + 1) * 40_000))
            as ArrayRef;
        RecordBatch::try_from_iter([("x", x)]).unwrap()
    });
    let batches: Vec<_> = batches.collect();
    for session in sessions() {
        let reader = RecordBatchIterator::new(batches.iter().cloned().map(Ok), batches[0].schema());
        let frame = session.from_reader(reader).unwrap();
        let mut expected = 0;
        for row in frame.rows() {
            let row: Row = row.unwrap();
            assert_eq!((row.number(), row.get::<i32>("x").unwrap()), (expected, expected as i32));
            expected += 1;
        }
        assert_eq!(expected, 200_000);
        let none = RecordBatchIterator::new([], batches[0].schema());
        assert_eq!(session.from_reader(none).unwrap().schema(), batches[0].schema());
    }
}

#[cfg(feature = "serde")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Particle {
    id: u32,
    charge: Option<i8>,
    name: String,
    hits: Vec<f64>,
    at: Place,
}

#[cfg(feature = "serde")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Place {
    x: f32,
    label: Option<String>,
}

#[cfg(feature = "serde")]
#[test]
fn structs_are_rows() {
    let particle = |id: u32| Particle {
        id,
        charge: id.is_multiple_of(2).then_some(-1),
        name: format!("particle {id}"),
        hits: (0..id % 4).map(f64::from).collect(),
        at: Place { x: id as f32 / 2.0, label: id.is_multiple_of(3).then(|| "é".into()) },
    };
    let particles: Vec<Particle> = (0..100).map(particle).collect();
    for session in sessions() {
        let frame = session.from_structs(&particles).unwrap();
        assert_eq!(frame.to_structs::<Particle>().unwrap(), particles);
        let some = frame.filter(col("id").gt_eq(lit(98u32))).unwrap();
        assert_eq!(some.to_structs::<Particle>().unwrap(), particles[98..]);
        assert_eq!(
            session.from_structs::<Particle>(&[]).unwrap().to_structs::<Particle>().unwrap(),
            []
        );
        let error = frame.select([col("id")]).unwrap().to_structs::<Particle>().unwrap_err();
        assert!(
            error.to_string().contains("charge") || error.to_string().contains("name"),
            "{error}"
        );
    }
}

fn numbers(session: &Session, n: i32) -> DataFrame {
    let x: Vec<i32> = (0..n).collect();
    let y: Vec<f64> = (0..n).map(|i| f64::from(i) / 3.0).collect();
    frame!(session; "x" => x, "y" => y).unwrap()
}

#[test]
fn long_frames_show_their_ends() {
    for session in sessions() {
        let expected = "\
shape: (100, 2)
┌─────┬──────────┐
│   x ┆        y │
│ i32 ┆      f64 │
╞═════╪══════════╡
│   0 ┆      0.0 │
│   1 ┆ 0.333333 │
│   … ┆        … │
│  99 ┆     33.0 │
└─────┴──────────┘";
        let format = FrameFormat::new().max_width(None);
        assert_eq!(format.max_rows(3).text(&numbers(&session, 100)).unwrap(), expected);
    }
}

#[test]
fn wide_frames_leave_columns_in_the_middle_out() {
    for session in sessions() {
        let columns = (0..20).map(|at| (format!("c{at}"), [at].into_array()));
        let frame = session.from_columns(columns).unwrap();
        let format = FrameFormat::new().max_width(None).types(false).shape(false);
        let expected = "\
┌────┬────┬───┬─────┬─────┐
│ c0 ┆ c1 ┆ … ┆ c18 ┆ c19 │
╞════╪════╪═══╪═════╪═════╡
│  0 ┆  1 ┆ … ┆  18 ┆  19 │
└────┴────┴───┴─────┴─────┘";
        assert_eq!(format.clone().max_columns(4).text(&frame).unwrap(), expected);
        let narrow = format.clone().max_columns(None).max_width(27).text(&frame).unwrap();
        assert_eq!(narrow, expected);
        let all = format.max_columns(None).text(&frame).unwrap();
        assert!(all.contains("c10") && !all.contains('…'), "{all}");
    }
}

#[test]
fn texts_are_cut_escaped_and_measured_as_terminals_show_them() {
    for session in sessions() {
        let frame = frame!(session; "t" => ["a\nb\u{1b}[2J", "日本語", "0123456789", "é"]).unwrap();
        let format =
            FrameFormat::new().max_width(None).types(false).shape(false).borders(Borders::Ascii);
        let expected = "\
+--------+
| t      |
+--------+
| a\\nb\\… |
| 日本語 |
| 01234… |
| é      |
+--------+";
        assert_eq!(format.max_chars(6).text(&frame).unwrap(), expected);
    }
}

#[test]
fn texts_are_cut_before_columns_are_left_out() {
    for session in sessions() {
        let (long, name) = ("0123456789".repeat(3), "n".repeat(20));
        let frame = session.from_columns([
            ("s", [long.as_str(), "x"].into_array()),
            (name.as_str(), [1234567, 2].into_array()),
            ("t", [long.as_str(), "y"].into_array()),
        ]);
        let frame = frame.unwrap();
        let format =
            FrameFormat::new().max_chars(None).types(false).shape(false).borders(Borders::Ascii);
        let expected = "\
+------------+------------+------------+
| s          | nnnnnnnnn… | t          |
+------------+------------+------------+
| 012345678… |    1234567 | 012345678… |
| x          |          2 | y          |
+------------+------------+------------+";
        assert_eq!(format.clone().min_chars(4).max_width(42).text(&frame).unwrap(), expected);
        // A number is never cut, and the name above it no shorter than it.
        let narrow = format.clone().min_chars(4).max_width(25).text(&frame).unwrap();
        assert!(
            narrow.contains("| 012… | 1234567 | 012… |") && narrow.contains("| nnnnnn… |"),
            "{narrow}"
        );
        let narrow = format.clone().min_chars(4).max_width(20).text(&frame).unwrap();
        assert!(narrow.contains("| 012… | … | 012… |"), "{narrow}");
        let whole = format.max_width(42).text(&frame).unwrap();
        assert!(whole.contains(&format!("| {long} | … | {long} |")), "{whole}");
    }
}

#[test]
fn nulls_are_told_from_texts_of_the_same_letters() {
    for session in sessions() {
        let sql = "SELECT CAST(NULL AS INT) AS a, 'null' AS b, CAST(NULL AS VARCHAR) AS c, [1, NULL] AS d, chr(8238) AS e";
        let frame = session.sql(sql).unwrap().collect().unwrap();
        let format =
            FrameFormat::new().max_width(None).types(false).shape(false).borders(Borders::Ascii);
        let row =
            |format: &FrameFormat| format.text(&frame).unwrap().lines().nth(3).unwrap().to_string();
        assert_eq!(row(&format), "| null | null | null | [1, null] | \\u{202e} |");
        let dim =
            "| \u{1b}[2mnull\u{1b}[0m | null | \u{1b}[2mnull\u{1b}[0m | [1, null] | \\u{202e} |";
        assert_eq!(row(&format.dim_nulls(true)), dim);
    }
}

#[test]
fn numbers_have_as_many_digits_as_the_format_says() {
    for session in sessions() {
        let values = vec![0.1 + 0.2, 1e-9, -1e20, f64::NAN, f64::INFINITY, 0.0, 1234.5];
        let frame = frame!(session; "x" => values).unwrap();
        let format =
            FrameFormat::new().max_width(None).types(false).shape(false).borders(Borders::Ascii);
        let shown = |format: FrameFormat| {
            let text = format.text(&frame).unwrap();
            text.lines()
                .skip(3)
                .filter_map(|line| {
                    Some(line.trim_matches(['|', ' ']).to_string()).filter(|l| !l.starts_with('+'))
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(
            shown(format.clone()),
            ["0.3", "1.0e-9", "-1.0e20", "NaN", "inf", "0.0", "1234.5"]
        );
        assert_eq!(shown(format.decimals(None))[0], "0.30000000000000004");
    }
}

#[test]
fn frames_without_rows_or_columns_are_shown() {
    for session in sessions() {
        let empty = numbers(&session, 3).filter(col("x").gt(lit(5))).unwrap();
        let expected = "shape: (0, 2)\n┌─────┬─────┐\n│   x ┆   y │\n│ i32 ┆ f64 │\n╞═════╪═════╡\n└─────┴─────┘";
        assert_eq!(FrameFormat::new().text(&empty).unwrap(), expected);
        assert_eq!(frame!(session;).unwrap().to_string(), "shape: (0, 0)");
        assert_eq!(empty.glimpse().unwrap(), "0 rows, 2 columns\nx  i32  \ny  f64  ");
        assert_eq!(format!("{empty:?}"), empty.to_string());
    }
}

#[test]
fn sessions_frames_and_columns_go_from_thread_to_thread() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<Session>();
    is_shared::<DataFrame>();
    is_shared::<LazyFrame>();
    is_shared::<Series>();
    is_shared::<Row>();
}

/// Waits until a condition holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = std::time::Instant::now();
    while !holds() {
        assert!(begin.elapsed() < std::time::Duration::from_secs(60), "{what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn futures_and_streams_give_the_rows_of_collect() {
    for session in sessions() {
        let frame = numbers(&session, 200_000);
        let query =
            frame.lazy().unwrap().filter(col("x").gt_eq(lit(10))).unwrap().sort(["x"]).unwrap();
        let expected = query.collect().unwrap().column("x").unwrap().to_vec::<i32>().unwrap();
        let collected = futures::executor::block_on(query.collect_async()).unwrap();
        assert_eq!(collected.column("x").unwrap().to_vec::<i32>().unwrap(), expected);
        let batches: Vec<Result<RecordBatch>> =
            futures::executor::block_on_stream(query.stream()).collect();
        let batches: Vec<RecordBatch> = batches.into_iter().collect::<Result<_>>().unwrap();
        assert!(batches.len() > 1);
        let streamed = session.from_arrow(batches).unwrap();
        assert_eq!(streamed.column("x").unwrap().to_vec::<i32>().unwrap(), expected);
        // Inside of a runtime, where nothing may block.
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(query.collect_async()).unwrap().num_rows(), expected.len());
        // An error is the last item.
        let fails = frame.lazy().unwrap().select([lit(1) / (col("x") - lit(150_000))]).unwrap();
        let items: Vec<_> = futures::executor::block_on_stream(fails.stream()).collect();
        let Some((Err(error), before)) = items.split_last() else { panic!("{items:?}") };
        assert!(error.to_string().contains("zero"), "{error}");
        assert!(before.iter().all(Result::is_ok), "{before:?}");
    }
}

#[test]
fn a_dropped_future_stops_its_query_and_no_other() {
    for session in sessions() {
        session.register_table("n", &numbers(&session, 3000)).unwrap();
        let text = "SELECT count(*) AS c FROM n a, n b, n c WHERE a.y * b.y + c.y > 1 AND a.x + b.x <> c.x";
        let slow = session.sql(text).unwrap();
        let used = || session.device().map_or(0, |device| device.memory().used);
        let before = used();
        let begin = std::time::Instant::now();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let other = runtime.block_on(async {
            let limit = std::time::Duration::from_millis(30);
            assert!(
                tokio::time::timeout(limit, slow.collect_async()).await.is_err(),
                "the query was fast"
            );
            session.sql("SELECT 1 AS one").unwrap().collect_async().await
        });
        assert_eq!(other.unwrap().item::<i64>().unwrap(), 1);
        until("the memory of a query that nobody waits for", || used() <= before);
        assert!(begin.elapsed() < std::time::Duration::from_secs(60));
    }
}

#[test]
fn eight_threads_over_one_session_give_the_answers_of_one() {
    for session in sessions() {
        session.register_table("n", &numbers(&session, 20_000)).unwrap();
        let queries: Vec<String> = (0..8)
            .map(|k| {
                format!(
                    "SELECT x % {m} AS g, count(*) AS c, sum(x) AS s FROM n WHERE x % {k1} <> 0 GROUP BY x % {m} ORDER BY g",
                    m = 3 + k,
                    k1 = 2 + k
                )
            })
            .collect();
        let alone: Vec<_> = queries
            .iter()
            .map(|q| session.sql(q).unwrap().collect().unwrap().to_arrow().unwrap())
            .collect();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (session, queries, alone) = (&session, &queries, &alone);
                scope.spawn(move || {
                    for round in 0..6 {
                        let at = (thread + round) % queries.len();
                        let rows = session
                            .sql(&queries[at])
                            .unwrap()
                            .collect()
                            .unwrap()
                            .to_arrow()
                            .unwrap();
                        assert_eq!(rows, alone[at], "{}", queries[at]);
                    }
                });
            }
        });
    }
}

#[cfg(feature = "ffi")]
#[test]
fn frames_go_out_and_in_as_c_streams() -> Result<()> {
    use warpframe::arrow::ffi_stream::FFI_ArrowArrayStream;

    let [device, cpu] = sessions();
    for (from, to) in [(&device, &cpu), (&cpu, &device)] {
        // More rows than a batch of the stream has.
        let many: Vec<Option<i64>> = (0..70_000).map(|row| (row % 7 != 0).then_some(row)).collect();
        let texts: Vec<String> = (0..70_000).map(|row| format!("row number {row}")).collect();
        let frame = frame!(from; "x" => many, "s" => texts)?;
        let nested = frame.head(9)?.select([
            list([col("x"), col("x") * 2]).alias("l"),
            structs([("a", col("x")), ("b", col("s"))]).alias("st"),
            col("x").cast(DataType::Decimal128(20, 2)),
        ])?;
        for frame in [&frame, &nested, &frame.filter(lit(false))?] {
            let taken = to.from_arrow_stream(frame.to_arrow_stream())?;
            assert_eq!(taken.is_on_device(), to.device().is_some());
            assert!(taken.equals(frame)?, "{frame}\n{taken}");
            assert!(to.from_reader(frame.reader())?.equals(frame)?);
        }
        assert!(!frame.equals(&frame.reverse()?)? && !frame.equals(&nested)?);
    }
    // A stream that a frame does not read is released all the same.
    drop(frame!(device; "x" => [1])?.to_arrow_stream());
    assert!(device.from_arrow_stream(FFI_ArrowArrayStream::empty()).is_err());
    Ok(())
}
