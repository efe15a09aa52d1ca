//! Paths of files: which files a table has, columns that their directories and paths make, and
//! files that filters on these leave out.

use std::path::Path;

use warpframe::arrow::array::*;
use warpframe::arrow::datatypes::DataType;
use warpframe::arrow::ipc::writer::FileWriter;
use warpframe::{CsvOptions, ErrorKind, IpcOptions, JsonOptions, ParquetOptions, Result, Session};

use super::*;

/// Files of `n` = 0, 1, 2, then 1, 2, 3, … in directories of these names.
fn partitioned(directories: &[&str]) -> TempDir {
    let directory = directory();
    for (at, name) in directories.iter().enumerate() {
        file(
            &directory,
            &format!("{name}/part.parquet"),
            vec![("n", ints(at as i64..at as i64 + 3))],
        );
    }
    directory
}

#[test]
fn directories_make_columns() -> Result<()> {
    let directory = partitioned(&[
        "year=2023/day=2023-12-31/city=Z%C3%BCrich",
        "year=2024/day=2024-01-01/city=__HIVE_DEFAULT_PARTITION__",
        "year=2024/day=2024-02-29/city=a longer name than a view has",
    ]);
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("t", directory.path())?;
        session.register_parquet("g", directory.path().join("*/*/*/*.parquet"))?;
        for table in ["t", "g"] {
            let schema = session.schema(table)?;
            let types: Vec<_> = schema
                .fields()
                .iter()
                .map(|field| (field.name().as_str(), field.data_type()))
                .collect();
            let (int, date, text) = (&DataType::Int64, &DataType::Date32, &DataType::Utf8View);
            assert_eq!(types, [("n", int), ("year", int), ("day", date), ("city", text)]);
        }
    }
    for sql in [
        "SELECT * FROM t",
        "SELECT city, year, n FROM g",
        "SELECT year, city, count(*), sum(n) FROM t GROUP BY year, city",
        "SELECT count(*), count(city), min(year), max(day), min(city) FROM t",
        "SELECT n FROM t WHERE city IS NULL",
        "SELECT n FROM t WHERE year = 2024 AND n > 2",
        "SELECT n FROM t WHERE year IN (2023, 2025) OR day > DATE '2024-02-01'",
        "SELECT n FROM t WHERE year = 1999",
        "SELECT a.n, b.n FROM t a JOIN g b ON a.day = b.day AND a.year = b.year",
    ] {
        pair.check(sql);
    }
    let expected = [Cell::Int(0), Cell::Int(2023), Cell::Int(19_722), Cell::Text("Zürich".into())];
    assert_eq!(rows(&pair.device, "SELECT * FROM t")[0], expected);
    let first = rows(&pair.device, "SELECT day FROM t LIMIT 4");
    assert_eq!(first, [19_722, 19_722, 19_722, 19_723].map(|day| [Cell::Int(day)]));
    assert_eq!(pair.device.take_host_reads(), Vec::<String>::new());
    // Nothing is read for them.
    let read = || pair.gpu().counters().file_bytes_read;
    pair.device.register_parquet("u", directory.path())?;
    let before = read();
    assert_eq!(
        scalar(&pair.device, "SELECT sum(year) FROM u"),
        Cell::Int(3 * (2023 + 2024 + 2024))
    );
    assert_eq!(read(), before);
    Ok(())
}

#[test]
fn partitions_are_made_where_all_files_have_the_same_keys() -> Result<()> {
    let session = Pair::new().device;
    let names = |session: &Session| -> Result<Vec<String>> {
        Ok(session.schema("t")?.fields().iter().map(|field| field.name().clone()).collect())
    };
    let with =
        |hive_partitioning| ParquetOptions { hive_partitioning, ..ParquetOptions::default() };
    let mixed = partitioned(&["a=1", "b=1"]);
    session.register_parquet("t", mixed.path())?;
    assert_eq!(names(&session)?, ["n"]);
    let error =
        session.register_parquet_with("t", mixed.path(), with(Some(true))).expect_err("other keys");
    assert!(
        matches!(error.kind(), ErrorKind::File { path, .. } if path.ends_with("b=1/part.parquet")),
        "{error}"
    );
    let same = partitioned(&["a=1", "a=x"]);
    session.register_parquet_with("t", same.path(), with(Some(false)))?;
    assert_eq!(names(&session)?, ["n"]);
    session.register_parquet("t", same.path())?;
    assert_eq!(
        rows(&session, "SELECT max(a), min(a) FROM t"),
        [["x", "1"].map(|text| Cell::Text(text.into()))]
    );
    // A file that is named itself has a path, and no partition, unless it is said to.
    let one = same.path().join("a=1/part.parquet");
    session.register_parquet("t", &one)?;
    assert_eq!(names(&session)?, ["n"]);
    session.register_parquet_with("t", &one, with(Some(true)))?;
    assert_eq!(names(&session)?, ["n", "a"]);
    // The path has the last word about a column that the files have, too.
    let both = partitioned(&["n=7", "n=8"]);
    for session in [Pair::new().cpu, session] {
        session.register_parquet("t", both.path())?;
        assert_eq!(scalar(&session, "SELECT sum(n) FROM t"), Cell::Int(45));
        assert_eq!(scalar(&session, "SELECT count(*) FROM t WHERE n = 7"), Cell::Int(3));
    }
    Ok(())
}

#[test]
fn filters_on_partitions_leave_files_out() -> Result<()> {
    let directory = partitioned(&["y=1/m=1", "y=1/m=2", "y=2/m=1"]);
    // The footer stays whole, the pages do not: whoever reads this file fails.
    let broken = directory.path().join("y=1/m=2/part.parquet");
    let mut bytes = std::fs::read(&broken).expect("it was written");
    bytes[4..30].fill(0xA5);
    std::fs::write(&broken, bytes).expect("the file can be written");
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("t", directory.path())?;
        let error = run(session, "SELECT sum(n) FROM t").expect_err("a broken page");
        assert!(
            matches!(error.kind(), ErrorKind::File { path, .. } if *path == broken),
            "{error:?}"
        );
        broken_pages_are_left_out(session);
    }
    assert_eq!(pair.device.take_host_reads(), Vec::<String>::new());
    Ok(())
}

/// Whoever reads the file of `y=1/m=2` fails.
fn broken_pages_are_left_out(session: &Session) {
    for (filter, sum) in [
        ("y = 2", 9),
        ("m = 1", 12),
        ("y = 1 AND m < 2", 3),
        ("y IN (2, 3)", 9),
        ("m <> 2 AND n > 1", 11),
        ("y > 1 AND m BETWEEN 1 AND 5", 9),
        ("(y = 2 OR m = 1) AND n < 3", 5),
    ] {
        let sql = format!("SELECT sum(n) FROM t WHERE {filter}");
        assert_eq!(scalar(session, &sql), Cell::Int(sum), "{filter}");
    }
    assert_eq!(rows(session, "SELECT n FROM t WHERE y = 5"), Vec::<Vec<Cell>>::new());
    // Two scans of one table: what either wants.
    let both = "SELECT sum(a.n + b.n) FROM t a JOIN t b ON a.n = b.n WHERE a.y = 2 AND b.m = 1";
    assert_eq!(scalar(session, both), Cell::Int(22));
}

#[test]
fn files_of_nested_directories_come_and_go() -> Result<()> {
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        let directory = directory();
        file(&directory, "k=1/1.parquet", vec![("n", ints([1]))]);
        file(&directory, "k=1/_temporary/1.parquet", vec![("n", ints([100]))]);
        session.register_parquet("t", directory.path())?;
        let sums = || rows(session, "SELECT sum(n), sum(k) FROM t").remove(0);
        assert_eq!(sums(), [1, 1].map(Cell::Int));
        file(&directory, "k=1/x/y/2.parquet", vec![("n", ints([2]))]);
        assert_eq!(sums(), [3, 2].map(Cell::Int));
        file(&directory, "k=5/1.parquet", vec![("n", ints([4]))]);
        assert_eq!(sums(), [7, 7].map(Cell::Int));
        std::fs::remove_dir_all(directory.path().join("k=1/x")).expect("it was there");
        assert_eq!(sums(), [5, 6].map(Cell::Int));
        std::fs::rename(directory.path().join("k=5"), directory.path().join("k=9"))
            .expect("it was there");
        assert_eq!(sums(), [5, 10].map(Cell::Int));
    }
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_path_means_what_the_system_means() -> Result<()> {
    let directory = directory();
    file(&directory, "x.parquet", vec![("n", ints([1]))]);
    file(&directory, "real/x.parquet", vec![("n", ints([2]))]);
    std::fs::create_dir(directory.path().join("real/deep")).expect("directories can be made");
    std::os::unix::fs::symlink(directory.path().join("real/deep"), directory.path().join("link"))
        .expect("links");
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("t", directory.path().join("link/../x.parquet"))?;
        assert_eq!(scalar(session, "SELECT sum(n) FROM t"), Cell::Int(2));
        session.register_parquet("t", directory.path().join("link/../*.parquet"))?;
        assert_eq!(scalar(session, "SELECT sum(n) FROM t"), Cell::Int(2));
    }
    Ok(())
}

#[test]
fn rows_are_in_the_order_of_the_paths_that_were_given() -> Result<()> {
    let directory = directory();
    for (number, name) in
        ["a/b.parquet", "a-b/c.parquet", "a.parquet", "z.parquet"].into_iter().enumerate()
    {
        let lists = ListArray::from_iter_primitive::<warpframe::arrow::datatypes::Int64Type, _, _>(
            [Some([Some(number as i64)])],
        );
        file(&directory, name, vec![("n", ints([number as i64])), ("l", Arc::new(lists))]);
    }
    let pair = Pair::new();
    let at = |name: &str| directory.path().join(name);
    for session in [&pair.cpu, &pair.device] {
        // The host's reader brings lists, the device the rest.
        let sql = "SELECT n, l[1] FROM t";
        session
            .register_parquet("t", [at("z.parquet"), at("a"), at("a.parquet"), at("z.parquet")])?;
        assert_eq!(rows(session, sql), [3, 0, 2, 3].map(|n| [Cell::Int(n), Cell::Int(n)]));
        session.register_parquet("t", directory.path())?;
        assert_eq!(rows(session, sql), [1, 2, 0, 3].map(|n| [Cell::Int(n), Cell::Int(n)]));
    }
    Ok(())
}

/// The files that a query over the device reads of how many, as EXPLAIN ANALYZE says.
fn files_read(pair: &Pair, sql: &str) -> Vec<String> {
    let device = pair.gpu();
    device.start_profile();
    run(&pair.device, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    device.take_profile().expect("a profile was started");
    let notes = device.take_operator_notes().into_iter().map(|note| note.note);
    notes.filter(|note| note.starts_with("files: ")).collect()
}

/// An Arrow file of these columns.
fn arrow_file(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let rows = batch(columns);
    let file = std::fs::File::create(path).expect("the file can be made");
    let mut writer = FileWriter::try_new(file, &rows.schema()).expect("a writer");
    writer.write(&rows).expect("rows can be written");
    writer.finish().expect("the file is whole");
}

#[test]
fn files_of_any_format_are_left_out_before_they_are_opened() -> Result<()> {
    let directory = directory();
    for (year, n) in [(2023, 1), (2024, 2), (2025, 4)] {
        let at = |name: &str| directory.path().join(format!("year={year}/{name}"));
        std::fs::create_dir_all(at("")).expect("directories can be made");
        std::fs::write(at("1.csv"), format!("n,s\n{n},text {n}\n{},\n", n * 10))
            .expect("the file is written");
        let lines = format!("{{\"n\": {n}, \"s\": \"text {n}\"}}\n{{\"n\": {}}}\n", n * 10);
        std::fs::write(at("1.ndjson"), lines).expect("the file is written");
        file(&directory, &format!("year={year}/1.parquet"), vec![("n", ints([n, n * 10]))]);
        arrow_file(&at("1.arrow"), vec![("n", ints([n, n * 10]))]);
    }
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("p", directory.path().join("*/*.parquet"))?;
        session.register_csv("c", directory.path().join("*/*.csv"))?;
        session.register_json_with(
            "j",
            directory.path().join("*/*.ndjson"),
            JsonOptions::default(),
        )?;
        session.register_ipc_with(
            "a",
            directory.path().join("*/*.arrow"),
            IpcOptions::default(),
        )?;
    }
    for table in ["p", "c", "j", "a"] {
        let read = || pair.gpu().counters().file_bytes_read;
        let before = read();
        let one = format!("SELECT sum(n), min(year) FROM {table} WHERE year = 2024");
        assert_eq!(
            files_read(&pair, &one),
            [format!("files: 1 of 3 files of {table} may have rows of the condition")]
        );
        let of_one = read() - before;
        for (sql, on_device, on_cpu) in [
            (one.clone(), "(1 of 3 files)", "reads 1 of 3 files"),
            (format!("SELECT n FROM {table}"), "(3 files)", "reads 3 files"),
            (
                format!("SELECT n FROM {table} WHERE year > 2030"),
                "(0 of 3 files)",
                "reads 0 of 3 files",
            ),
            // One of the scans wants another file.
            (
                format!(
                    "SELECT a.n FROM {table} a JOIN {table} b ON a.n < b.n AND a.year = 2023 AND b.year = 2025"
                ),
                "(2 of 3 files)",
                "reads 1 of 3 files",
            ),
        ] {
            for (session, expected) in [(&pair.device, on_device), (&pair.cpu, on_cpu)] {
                let text = session.sql(&sql)?.explain()?;
                assert!(text.contains(expected), "{sql}: {expected}: {text}");
            }
        }
        for session in [&pair.cpu, &pair.device] {
            assert_eq!(rows(session, &one), [[Cell::Int(22), Cell::Int(2024)]], "{table}");
        }
        // It stays in device memory.
        assert_eq!(read() - before, of_one, "{table}");
        for filter in
            ["year > 2023", "year IN (2023, 2025) AND n > 1", "year = 1", "year = 2024 OR n = 1"]
        {
            same(&pair, &format!("SELECT n, year FROM {table} WHERE {filter}"));
            same(&pair, &format!("SELECT count(*), sum(n) FROM {table} WHERE {filter}"));
        }
        same(&pair, &format!("SELECT count(*) FROM {table} WHERE year = 2025"));
        same(&pair, &format!("SELECT year, n FROM {table}"));
        // All of it is there by now.
        assert_eq!(
            files_read(&pair, &format!("SELECT n FROM {table} WHERE year = 2023")),
            Vec::<String>::new()
        );
    }
    // What is no CSV and no JSON any more is not looked at where its year is not wanted.
    let pair = Pair::new();
    let broken = |name: &str| directory.path().join(format!("year=2025/{name}"));
    std::fs::write(broken("1.csv"), "n,s\n1,2,3\n\"").expect("the file is written");
    for session in [&pair.cpu, &pair.device] {
        let options =
            CsvOptions { types: vec![("n".into(), DataType::Int64)], ..CsvOptions::default() };
        let options = CsvOptions { all_varchar: true, ..options };
        session.register_csv_with("c", directory.path().join("*/*.csv"), options)?;
        assert_eq!(scalar(session, "SELECT sum(n) FROM c WHERE year < 2025"), Cell::Int(33));
        run(session, "SELECT sum(n) FROM c").expect_err("a row of three values");
    }
    Ok(())
}

#[test]
fn the_path_of_a_rows_file_is_a_column_where_it_is_wanted() -> Result<()> {
    let directory = directory();
    for n in 1..4 {
        let at = |name: &str| directory.path().join(name);
        file(&directory, &format!("k={n}/{n}.parquet"), vec![("n", ints([n, n * 10]))]);
        std::fs::write(at(&format!("k={n}/{n}.csv")), format!("n\n{n}\n{}\n", n * 10))
            .expect("the file is written");
        std::fs::write(
            at(&format!("k={n}/{n}.ndjson")),
            format!("{{\"n\": {n}}}\n{{\"n\": {}}}\n", n * 10),
        )
        .unwrap();
        arrow_file(&at(&format!("k={n}/{n}.arrow")), vec![("n", ints([n, n * 10]))]);
    }
    let pair = Pair::new();
    let named = |kind: &str| directory.path().join(format!("*/*.{kind}"));
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet_with(
            "p",
            named("parquet"),
            ParquetOptions { filename: true, ..Default::default() },
        )?;
        session.register_csv_with(
            "c",
            named("csv"),
            CsvOptions { filename: true, ..CsvOptions::default() },
        )?;
        session.register_json_with(
            "j",
            named("ndjson"),
            JsonOptions { filename: true, ..Default::default() },
        )?;
        session.register_ipc_with(
            "a",
            named("arrow"),
            IpcOptions { filename: true, ..Default::default() },
        )?;
        for (table, kind, function) in [
            ("p", "parquet", "read_parquet"),
            ("c", "csv", "read_csv"),
            ("j", "ndjson", "read_json"),
            ("a", "arrow", "read_arrow"),
        ] {
            let names: Vec<_> =
                session.schema(table)?.fields().iter().map(|field| field.name().clone()).collect();
            assert_eq!(names, ["n", "k", "filename"]);
            let path = directory.path().join(format!("k=2/2.{kind}")).display().to_string();
            let one = format!(
                "SELECT n, filename FROM {table} WHERE filename LIKE '%2.{kind}' ORDER BY n"
            );
            let expected = [2, 20].map(|n| vec![Cell::Int(n), Cell::Text(path.clone())]);
            assert_eq!(rows(session, &one), expected);
            let text = named(kind).display().to_string();
            let one = format!(
                "SELECT filename, sum(n) FROM {function}('{text}', filename => true, hive_partitioning => false) \
                 GROUP BY filename HAVING sum(n) = 22"
            );
            assert_eq!(rows(session, &one), [[Cell::Text(path), Cell::Int(22)]]);
        }
    }
    for table in ["p", "c", "j", "a"] {
        same(&pair, &format!("SELECT filename, k, n FROM {table}"));
        pair.check(&format!("SELECT k, count(DISTINCT filename) FROM {table} GROUP BY k"));
        same(&pair, &format!("SELECT n FROM {table} WHERE filename NOT LIKE '%/k=3/%' AND k > 1"));
    }
    let by_host = pair.device.take_host_reads();
    let is_expected =
        |told: &String| told.ends_with("as all JSON is") || told.ends_with("as all Arrow IPC is");
    assert!(by_host.iter().all(is_expected), "{by_host:?}");
    Ok(())
}

#[test]
fn a_column_of_the_name_filename_is_not_hidden() -> Result<()> {
    let directory = directory();
    let parquet = file(&directory, "1.parquet", vec![("filename", ints([1]))]);
    let csv = directory.path().join("1.csv");
    std::fs::write(&csv, "a,filename\n1,x\n").expect("the file is written");
    let json = directory.path().join("1.ndjson");
    std::fs::write(&json, "{\"filename\": 1}\n").expect("the file is written");
    let arrow = directory.path().join("1.arrow");
    arrow_file(&arrow, vec![("filename", ints([1]))]);
    let says = |path: &Path, registered: Result<()>| {
        let error = registered.expect_err("two columns of one name");
        assert!(
            matches!(error.kind(), ErrorKind::File { path: of, .. } if of == path),
            "{error:?}"
        );
        assert!(
            error.to_string().contains("the option filename would make another one"),
            "{error}"
        );
    };
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        let options = ParquetOptions { filename: true, ..ParquetOptions::default() };
        says(&parquet, session.register_parquet_with("t", &parquet, options));
        says(
            &csv,
            session.register_csv_with(
                "t",
                &csv,
                CsvOptions { filename: true, ..CsvOptions::default() },
            ),
        );
        says(
            &json,
            session.register_json_with(
                "t",
                &json,
                JsonOptions { filename: true, ..Default::default() },
            ),
        );
        says(
            &arrow,
            session.register_ipc_with(
                "t",
                &arrow,
                IpcOptions { filename: true, ..Default::default() },
            ),
        );
        session.register_csv("t", &csv)?;
        assert_eq!(rows(session, "SELECT filename FROM t"), [[Cell::Text("x".into())]]);
    }
    Ok(())
}

#[test]
fn arrow_files_have_the_columns_that_options_say() -> Result<()> {
    let directory = directory();
    for (n, columns) in [(1, vec![("n", ints([1])), ("m", ints([2]))]), (2, vec![("n", ints([3]))])]
    {
        std::fs::create_dir_all(directory.path().join(format!("k={n}")))
            .expect("directories can be made");
        arrow_file(&directory.path().join(format!("k={n}/{n}.arrow")), columns);
    }
    let all = directory.path().join("*/*.arrow").display().to_string();
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        let of = |options: &str| {
            run(session, &format!("SELECT * FROM read_arrow('{all}'{options}) ORDER BY n"))
        };
        let int = Cell::Int;
        assert_eq!(
            Rows::of(&of("")?).rows,
            [[int(1), int(2), int(1)], [int(3), Cell::Null, int(2)]]
        );
        let rows = Rows::of(&of(", hive_partitioning => false")?).rows;
        assert_eq!(rows, [[int(1), int(2)], [int(3), Cell::Null]]);
        let error = of(", union_by_name => false").expect_err("the second file has one column");
        assert!(
            matches!(error.kind(), ErrorKind::File { path, .. } if path.ends_with("2.arrow")),
            "{error:?}"
        );
        let error = of(", delim => ';'").expect_err("Arrow files have no such option").to_string();
        assert!(
            error.contains("known: union_by_name, ignore_errors, hive_partitioning"),
            "{error}"
        );
        let name = format!(
            "CREATE OR REPLACE EXTERNAL TABLE e STORED AS ARROW LOCATION '{all}' OPTIONS (filename true)"
        );
        session.execute(&name)?;
        assert_eq!(session.schema("e")?.field(3).name(), "filename");
    }
    Ok(())
}

#[test]
fn integers_with_zeros_before_them_stay_texts() -> Result<()> {
    let directory = partitioned(&["zip=00501/m=1", "zip=10001/m=12"]);
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_parquet("t", directory.path())?;
        let text = |text: &str| Cell::Text(text.into());
        let found =
            all(session, "SELECT DISTINCT zip, m FROM t WHERE zip < '1' OR m = 12 ORDER BY m");
        let expected = [vec![text("00501"), Cell::Int(1)], vec![text("10001"), Cell::Int(12)]];
        assert_eq!(crate::differential::rows_of(&found), expected);
    }
    Ok(())
}

/// What was written of texts is read as texts, whatever they look like.
#[test]
fn written_partitions_keep_their_types() -> Result<()> {
    let (directory, pair) = (directory(), Pair::new());
    for (at, session) in [&pair.cpu, &pair.device].into_iter().enumerate() {
        let path = directory.path().join(format!("written{at}"));
        let rows = session.sql(
            "SELECT * FROM (VALUES ('1', DATE '2024-02-29', '2024-01-01', 7, 'x', 0), \
             ('20', NULL, '2024-01-02', 8, '2', 1)) v(a, b, \"_c\", d, e, n)",
        )?;
        let format = warpframe::WriteFormat::Csv(Default::default());
        rows.collect()?.write_partitioned(&path, &["a", "b", "_c", "d", "e"], &format)?;
        let from = [path.clone(), path.join("*/*/*/*/*/*.csv"), path.join("a=1")];
        for (number, from) in from.iter().enumerate() {
            session.register_csv("t", from)?;
            let typed = |name: &str| {
                Ok::<_, warpframe::Error>(
                    session
                        .schema("t")?
                        .field_with_name(name)
                        .expect("it is there")
                        .data_type()
                        .clone(),
                )
            };
            if number < 2 {
                assert_eq!(typed("a")?, DataType::Utf8View);
            }
            assert_eq!(typed("b")?, DataType::Date32);
            assert_eq!(typed("_c")?, DataType::Utf8View);
            assert_eq!(typed("d")?, DataType::Int64);
            assert_eq!(typed("e")?, DataType::Utf8View);
        }
        let names = std::fs::read_to_string(path.join("_text_keys")).expect("it was written");
        assert_eq!(names, "%5Fc\na\n");
    }
    Ok(())
}

#[test]
fn directories_with_a_log_are_refused() -> Result<()> {
    let directory = partitioned(&["day=1", "day=2"]);
    let log = directory.path().join("_delta_log");
    std::fs::create_dir(&log).expect("directories can be made");
    std::fs::write(log.join("00000000000000000000.json"), "{}").expect("files can be written");
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        for named in ["", "day=1", "*/*.parquet"] {
            let error = session.register_parquet("t", directory.path().join(named)).unwrap_err();
            assert!(error.to_string().contains("Delta Lake"), "{named}: {error}");
        }
        session.register_parquet("t", directory.path().join("day=1/part.parquet"))?;
        assert_eq!(scalar(session, "SELECT count(*) FROM t"), Cell::Int(3));
    }
    Ok(())
}
