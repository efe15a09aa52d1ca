//! CSV files on the device: the same rows as on the CPU, by no help of the host; types that become
//! wider while a query runs.

use std::path::PathBuf;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tempfile::TempDir;
use warpframe::arrow::datatypes::{DataType, TimeUnit};
use warpframe::prelude::*;
use warpframe::{ErrorKind, Result};

use crate::differential::{Cell, Pair, Rows, run, scalar, seeds};

fn write(directory: &TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, content).expect("the file is written");
    path
}

fn register(pair: &Pair, path: &std::path::Path, options: &CsvOptions) -> Result<()> {
    pair.device.register_csv_with("t", path, options.clone())?;
    pair.cpu.register_csv_with("t", path, options.clone())
}

const ALL_TYPES: &str = "i,w,f,s,d,t,z,b,q
1,99999999999999999999,1.5,plain,2024-02-29,2024-02-29 12:00:00,2024-02-29T12:00:00Z,true,\"a, b\"
-9223372036854775808,-1,1e300,häßlich und lang genug,1969-12-31,1969-12-31 23:59:59.25,2024-02-29T12:00:00+02:00,FALSE,\"x \"\"y\"\"\"
,,,,,,,,\"\"
 7 ,00000000000000000000012,-inf,,0001-01-01,2024-02-29T00:00:00.123456,2024-02-29T12:00:00.5-01:30,False,\"line
break\"
";

#[test]
fn all_inferred_types_are_read_by_the_device() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory for files");
    let pair = Pair::new();
    register(&pair, &write(&directory, "t.csv", ALL_TYPES), &CsvOptions::default())?;
    let before = pair.gpu().counters().bytes_uploaded;
    for query in [
        "SELECT * FROM t",
        "SELECT count(*), count(i), count(s), count(q) FROM t",
        "SELECT q, length(q), s FROM t WHERE f > 1 OR s IS NULL",
        "SELECT b, count(*), min(t), max(z), sum(w) FROM t GROUP BY b",
    ] {
        pair.check(query);
    }
    assert!(pair.gpu().counters().bytes_uploaded > before);
    assert_eq!(pair.device.take_host_reads(), Vec::<String>::new());
    let frame = run(&pair.device, "SELECT * FROM t")?;
    let micros =
        |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
    let expected = [
        DataType::Int64,
        DataType::Decimal128(38, 0),
        DataType::Float64,
        DataType::Utf8View,
        DataType::Date32,
        micros(None),
        micros(Some("+00:00")),
        DataType::Boolean,
        DataType::Utf8View,
    ];
    let schema = frame.schema();
    assert!(schema.fields().iter().map(|field| field.data_type()).eq(&expected), "{schema:?}");
    Ok(())
}

#[test]
fn given_types_are_read_as_casts() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory for files");
    let text = "a,b,c,d,e,f,g\n1,2,3.14159,12:30:15,yes,250,2024-02-29 10:00:00\n-128,4294967295,2,00:00:00.5,0,,2024-02-29\n";
    let path = write(&directory, "t.csv", text);
    let types = [
        ("a", DataType::Int8),
        ("b", DataType::UInt32),
        ("c", DataType::Decimal128(10, 2)),
        ("d", DataType::Time64(TimeUnit::Microsecond)),
        ("e", DataType::Boolean),
        ("f", DataType::UInt8),
        ("g", DataType::Timestamp(TimeUnit::Second, None)),
    ];
    let types = types.map(|(name, dtype)| (name.to_string(), dtype)).to_vec();
    let pair = Pair::new();
    register(&pair, &path, &CsvOptions { types, ..CsvOptions::default() })?;
    pair.check("SELECT * FROM t");
    assert_eq!(pair.device.take_host_reads(), Vec::<String>::new());
    // What is none of the given type is an error that names its place, wherever it is read.
    let types = vec![("c".to_string(), DataType::Int8)];
    register(&pair, &path, &CsvOptions { types, ..CsvOptions::default() })?;
    for session in [&pair.device, &pair.cpu] {
        let error = run(session, "SELECT c FROM t").expect_err("3.14159 is no integer");
        assert!(matches!(error.kind(), ErrorKind::Parse { line: 2, column: 3, .. }), "{error:?}");
    }
    Ok(())
}

/// A file of which the sample shows integers, dates and numbers of 64 bits, and a late row others.
fn late(directory: &TempDir) -> PathBuf {
    let row =
        |n: u64| format!("{n},{},2024-01-{:02},{n},{}\n", n * 3, n % 28 + 1, n.is_multiple_of(2));
    let early: String = (0..5000).map(row).collect();
    let rest: String = (5001..9000).map(row).collect();
    write(
        directory,
        "late.csv",
        format!(
            "n,x,d,w,s\n{early}5000,0.25,2024-03-01 12:30:00.5,99999999999999999999,maybe\n{rest}"
        ),
    )
}

fn narrow() -> CsvOptions {
    CsvOptions { sample_size: Some(2), ..CsvOptions::default() }
}

#[test]
fn types_become_wider_while_a_query_runs() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory for files");
    // The sample looks at some places; the late row lies at none of them, or the test says nothing.
    let path = late(&directory);
    for session in {
        let Pair { device, cpu, .. } = Pair::new();
        [device, cpu]
    } {
        session.register_csv_with("t", &path, narrow())?;
        let types = |session: &Session| -> Result<Vec<DataType>> {
            let frame = session.sql("SELECT * FROM t")?;
            Ok(frame.schema().fields().iter().map(|field| field.data_type().clone()).collect())
        };
        assert_eq!(types(&session)?[1], DataType::Int64);
        // Frames and texts that were planned before.
        let frame = session.scan_csv_with(&path, narrow())?;
        let above =
            frame.clone().filter(col("x").gt(lit(100)))?.select([col("x").alias("y"), col("d")])?;
        let union = session.sql("SELECT x FROM t UNION ALL SELECT n FROM t")?;
        let text = session.sql(
            "SELECT sum(x), max(d), max(w), min(s) FROM t WHERE n IN (SELECT n FROM t WHERE x < 1)",
        )?;
        let rows = Rows::of(&text.collect()?).rows;
        let expected = [Cell::Float(0.25), Cell::Int(1_709_296_200_500_000)];
        assert_eq!(rows[0][..2], expected);
        assert_eq!(rows[0][3], Cell::Text("maybe".into()));
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(
            types(&session)?,
            [
                DataType::Int64,
                DataType::Float64,
                micros.clone(),
                DataType::Decimal128(38, 0),
                DataType::Utf8View
            ]
        );
        let above = above.collect()?;
        assert_eq!(*above.schema().field(0).data_type(), DataType::Float64);
        assert_eq!(*above.schema().field(1).data_type(), micros);
        assert_eq!(above.num_rows(), 9000 - 1 - 34);
        assert_eq!(frame.collect()?.num_rows(), 9000);
        let union = union.collect()?;
        assert_eq!(
            (union.num_rows(), union.schema().field(0).data_type()),
            (18_000, &DataType::Float64)
        );
        assert_eq!(
            scalar(&session, "SELECT count(*) FROM t WHERE x = 0.25 OR s = 'true'"),
            Cell::Int(4500)
        );
        // Who does not want that gets an error with the place.
        session.register_csv_with("t", &path, CsvOptions { widen: false, ..narrow() })?;
        let error = run(&session, "SELECT sum(x) FROM t").expect_err("a fraction");
        assert!(
            matches!(error.kind(), ErrorKind::Parse { line: 5002, column: 2, .. }),
            "{error:?}"
        );
    }
    Ok(())
}

const ODD: [&[&str]; 5] = [
    &["7", " 7", "7\t", "-0", "007", "9223372036854775807", "-9223372036854775808"],
    &[
        "7",
        "+7",
        "7\n",
        "9223372036854775808",
        "1.",
        ".5",
        "-.5",
        "-",
        ".",
        "1e5",
        "1e",
        "0x1",
        "12345678901234567890123",
    ],
    &[
        "nan",
        "-nan",
        "NaN",
        "inf",
        "-Infinity",
        "infinit",
        "+inf",
        "1.5",
        "1e400",
        "1e-400",
        "0.1",
        "123456789.123456789",
    ],
    &[
        "2024-02-29",
        "2023-02-29",
        "2024-2-9",
        "20240229",
        "2024-02-29 12:30",
        "2024-02-29T12:30:59.1234567",
        "0000-00-00",
    ],
    &[
        "2024-02-29 12:30Z",
        "2024-02-29T12:30:00+0100",
        "2024-02-29T12:30:00.5-01:30",
        "2024-02-29T12:30:60Z",
        "2024-02-29T12:30:00z",
        "2024-02-29t12:30:00Z",
        "2024-02-29 12:30:00 +01:00",
        "true",
        "TRUE",
    ],
];

/// Rows of random values, most of one kind in a column, in quotes or not, with all line ends.
fn random_text(random: &mut StdRng, columns: usize) -> String {
    let kinds: Vec<u32> = (0..columns).map(|_| random.random_range(0..12)).collect();
    let end = ["\n", "\r\n", "\r"][random.random_range(0..3)];
    let mut text: String =
        (0..columns).map(|n| format!("c{n}")).collect::<Vec<_>>().join(",") + end;
    for _ in 0..random.random_range(0..400) {
        let value = |random: &mut StdRng, kind: u32| match kind {
            _ if random.random_range(0..12) == 0 => String::new(),
            0 => random.random_range(-1000i64..1000).to_string(),
            1 => format!("{:.3}", random.random_range(-1e6..1e6)),
            2 => format!(
                "20{:02}-0{}-1{}",
                random.random_range(0..60),
                random.random_range(1..10),
                random.random_range(0..9)
            ),
            3 => format!(
                "2020-01-0{} 1{}:00:00.{}",
                random.random_range(1..9),
                random.random_range(0..9),
                random.random_range(0..999)
            ),
            4 => (random.random_range(0..2) == 0).to_string(),
            5 => [
                "",
                "a",
                "two words",
                "with, comma",
                "with \"quotes\"",
                "line\nbreak",
                "ä ö ü and more than twelve",
            ][random.random_range(0..7)]
            .into(),
            // Forms that are nearly those of a type, most columns of one kind of them.
            kind @ 7.. => {
                let odd = &ODD[(kind - 7) as usize];
                odd[random.random_range(0..odd.len())].into()
            }
            _ => format!("{}{}", "x".repeat(random.random_range(0..40)), random.random_range(0..5)),
        };
        let cell = |random: &mut StdRng, kind: u32| {
            let value = value(random, kind);
            let quoted = value.contains([',', '"', '\n']) || random.random_range(0..4) == 0;
            if quoted { format!("\"{}\"", value.replace('"', "\"\"")) } else { value }
        };
        let row: Vec<String> = kinds.iter().map(|kind| cell(random, *kind)).collect();
        text += &row.join(",");
        text += end;
    }
    text
}

#[test]
fn random_files_are_the_same_on_device_and_cpu() -> Result<()> {
    let directory = tempfile::tempdir().expect("a directory for files");
    let pair = Pair::new();
    for (seed, _) in seeds("csv", 40, 200) {
        let mut random = StdRng::seed_from_u64(seed);
        let columns = random.random_range(2..6);
        let texts: Vec<String> =
            (0..random.random_range(1..3)).map(|_| random_text(&mut random, columns)).collect();
        let folder = directory.path().join(seed.to_string());
        std::fs::create_dir(&folder).expect("a directory for files");
        for (at, text) in texts.iter().enumerate() {
            std::fs::write(folder.join(format!("{at}.csv")), text).expect("the file is written");
        }
        let sample_size = [None, Some(3), Some(1000)][random.random_range(0..3)];
        register(
            &pair,
            &folder,
            &CsvOptions { sample_size, sniff: false, ..CsvOptions::default() },
        )?;
        let pair = Pair::new();
        register(
            &pair,
            &folder,
            &CsvOptions { sample_size, sniff: false, ..CsvOptions::default() },
        )?;
        pair.check("SELECT * FROM t");
        assert_eq!(pair.device.take_host_reads(), Vec::<String>::new(), "seed {seed}");
    }
    Ok(())
}

/// Tables of unusual shapes take no longer than their bytes.
#[test]
fn wide_and_long_rows_are_read_in_bounded_time() -> Result<()> {
    const COLUMNS: usize = 5000;
    let directory = tempfile::tempdir().expect("a directory for files");
    let names: Vec<String> = (0..COLUMNS).map(|column| format!("c{column}")).collect();
    let row = |row: usize| {
        (0..COLUMNS).map(|column| (row * column % 1000).to_string()).collect::<Vec<_>>().join(",")
    };
    let rows: Vec<String> = (0..200).map(row).collect();
    let wide = write(&directory, "wide.csv", format!("{}\n{}\n", names.join(","), rows.join("\n")));
    // The columns the other way round: found by name, each.
    let turned: Vec<&str> = names.iter().rev().map(String::as_str).collect();
    let values: Vec<String> = (0..COLUMNS).rev().map(|column| column.to_string()).collect();
    let parts = directory.path().join("parts");
    std::fs::create_dir(&parts).expect("directories can be made");
    std::fs::copy(&wide, parts.join("1.csv")).expect("the file is copied");
    std::fs::write(parts.join("2.csv"), format!("{}\n{}\n", turned.join(","), values.join(",")))
        .expect("it is written");
    let long = |n: usize| format!("{n},\"{}\",x{n}\n", format!("value {n}, ").repeat(100_000));
    let long = write(
        &directory,
        "long.csv",
        format!("n,long,s\n{}", (0..6).map(long).collect::<String>()),
    );
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        let began = std::time::Instant::now();
        session.register_csv("wide", &wide)?;
        session.register_csv("parts", &parts)?;
        session.register_csv("long", &long)?;
        // Not by SELECT *: DataFusion's planner compares each of its columns with all others. Of
        // columns in the simulator's memory each launch looks at all.
        let width = if session.device().is_some() { 200 } else { COLUMNS };
        let columns: Vec<_> = names.iter().rev().take(width).map(col).collect();
        let frame = session.table("wide")?.select(columns)?.collect()?;
        assert_eq!((frame.num_rows(), frame.schema().fields().len()), (200, width));
        assert_eq!(
            scalar(session, "SELECT sum(c4999) FROM parts"),
            Cell::Int((0..200).map(|r| r * 4999 % 1000).sum::<i128>() + 4999)
        );
        assert_eq!(scalar(session, "SELECT sum(length(long)) FROM long"), Cell::Int(6 * 900_000));
        assert_eq!(
            scalar(session, "SELECT count(DISTINCT long) FROM long WHERE s <> 'x3'"),
            Cell::Int(5)
        );
        // Far beyond what it takes, and far below what anything quadratic would.
        assert!(began.elapsed() < std::time::Duration::from_secs(120), "{:?}", began.elapsed());
    }
    assert_eq!(pair.device.take_host_reads(), Vec::<String>::new());
    Ok(())
}

/// Doubles do not hold all integers beyond 2^53: one that comes late makes its column wider.
#[test]
fn late_integers_beyond_doubles_stay_exact() -> Result<()> {
    let (directory, pair) = (tempfile::tempdir().expect("a directory for files"), Pair::new());
    let late = |value: &str| format!("a\n{}{value}\n{}", "0.5\n".repeat(40_000), "1\n".repeat(9));
    for (number, (value, expected)) in [
        ("9007199254740993", Some("9007199254740993.0")),
        ("-9007199254740995", Some("-9007199254740995.0")),
        ("9007199254740992", None),
        ("9007199254740993.5", None),
        ("1e300", None),
    ]
    .into_iter()
    .enumerate()
    {
        let path = write(&directory, &format!("{number}.csv"), late(value));
        register(&pair, &path, &CsvOptions::default())?;
        for session in [&pair.cpu, &pair.device] {
            let found = Rows::of(&run(session, "SELECT a::VARCHAR FROM t WHERE abs(a) > 1")?).rows;
            match expected {
                Some(text) => assert_eq!(found, [[Cell::Text(text.into())]], "{value}"),
                None => assert_eq!(session.schema("t")?.field(0).data_type(), &DataType::Float64),
            }
        }
    }
    Ok(())
}

#[test]
fn given_formats_make_dates_and_timestamps() -> Result<()> {
    let (directory, pair) = (tempfile::tempdir().expect("a directory for files"), Pair::new());
    let path = write(
        &directory,
        "t.csv",
        "id,d,t\n1,20200131,20200131120000\n2,20191231,99991231235959\n",
    );
    let options = CsvOptions {
        date_format: Some("%Y%m%d".into()),
        timestamp_format: Some("%Y%m%d%H%M%S".into()),
        ..CsvOptions::default()
    };
    register(&pair, &path, &options)?;
    for session in [&pair.cpu, &pair.device] {
        let schema = session.schema("t")?;
        let types: Vec<_> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(types, [DataType::Int64, DataType::Date32, micros]);
        assert_eq!(scalar(session, "SELECT max(extract(day FROM d)) FROM t"), Cell::Int(31));
        assert_eq!(scalar(session, "SELECT max(extract(year FROM t)) FROM t"), Cell::Int(9999));
        let midnight =
            CsvOptions { timestamp_format: Some("%Y%m%d".into()), ..CsvOptions::default() };
        session.register_csv_with("m", &path, midnight)?;
        assert_eq!(
            scalar(session, "SELECT count(*) FROM m WHERE d > TIMESTAMP '2020-01-30 23:59:59'"),
            Cell::Int(1)
        );
        let none = CsvOptions { date_format: Some("%d/%m/%Y".into()), ..CsvOptions::default() };
        let error = session.register_csv_with("n", &path, none).unwrap_err();
        assert!(error.to_string().contains("%d/%m/%Y"), "{error}");
    }
    Ok(())
}
