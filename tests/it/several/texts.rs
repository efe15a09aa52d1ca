//! CSV and JSON files as one table.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use warpframe::arrow::datatypes::DataType;
use warpframe::{CsvOptions, ErrorKind, Result, Session};

use super::*;

/// Files of these texts, `1.csv` and so on.
fn csv_files(texts: &[&str]) -> TempDir {
    let directory = directory();
    for (number, text) in texts.iter().enumerate() {
        std::fs::write(directory.path().join(format!("{}.csv", number + 1)), text)
            .expect("the file is written");
    }
    directory
}

fn columns(session: &Session) -> Result<Vec<(String, DataType)>> {
    let schema = session.schema("t")?;
    Ok(schema
        .fields()
        .iter()
        .map(|field| (field.name().clone(), field.data_type().clone()))
        .collect())
}

#[test]
fn columns_are_found_by_their_names() -> Result<()> {
    let directory = csv_files(&[
        "id,a,s\n1,10,plain\n2,,\"quoted, text that is longer than a view\"\n",
        "s,id\nof the second,3\n\n,4\n",
        "d,a,id\n2024-02-29,0.5,5\n2024-03-01,1e300,6\n",
        "x,y,id\nnothing else,,7\n",
        "id\n",
    ]);
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_csv("t", directory.path())?;
        let (int, text) = (DataType::Int64, DataType::Utf8View);
        let expected = [
            ("id", int),
            ("a", DataType::Float64),
            ("s", text.clone()),
            ("d", DataType::Date32),
            ("x", text.clone()),
            ("y", text),
        ];
        assert_eq!(columns(session)?, expected.map(|(name, of)| (name.to_string(), of)));
        assert_eq!(
            rows(session, "SELECT id, s FROM t WHERE a IS NULL ORDER BY id"),
            [
                (2, Some("quoted, text that is longer than a view")),
                (3, Some("of the second")),
                (4, None),
                (7, None)
            ]
            .map(|(id, s)| [Cell::Int(id), s.map_or(Cell::Null, |s| Cell::Text(s.into()))])
        );
    }
    for sql in [
        "SELECT * FROM t",
        "SELECT x FROM t",
        "SELECT y, d FROM t",
        "SELECT count(*), count(a), count(s), count(d), count(x), count(y), sum(id) FROM t",
        "SELECT s, count(*) FROM t GROUP BY s",
        "SELECT id, x FROM t WHERE x = 'nothing else' OR d > DATE '2024-02-29'",
    ] {
        same(&pair, sql);
    }
    assert_eq!(rows(&pair.device, "SELECT d FROM t LIMIT 1"), [[Cell::Null]]);
    assert_eq!(pair.device.take_host_reads(), Vec::<String>::new());
    Ok(())
}

#[test]
fn files_of_any_headers_are_alike_on_the_device_and_the_cpu() -> Result<()> {
    for seed in 0..30 {
        let mut random = StdRng::seed_from_u64(seed);
        let names = ["i", "f", "s", "d", "flag", "n"];
        let mut texts = vec![];
        for _ in 0..random.random_range(1..6) {
            let mut own: Vec<&str> =
                names.into_iter().filter(|_| random.random_bool(0.7)).collect();
            own.push("id");
            own.shuffle(&mut random);
            let mut text = format!("{}\n", own.join(","));
            for row in 0..random.random_range(0..60) {
                let value = |name: &&str| match *name {
                    "id" => row.to_string(),
                    _ if random.random_bool(0.2) => String::new(),
                    "i" => random.random_range(-9..99).to_string(),
                    "f" if seed % 2 == 0 => random.random_range(-9..99).to_string(),
                    "f" => format!("{}.25", random.random_range(-9..99)),
                    "d" => format!("2024-02-{:02}", random.random_range(1..29)),
                    "flag" => ["true", "false"][random.random_range(0..2)].into(),
                    "n" => i64::MAX.to_string(),
                    _ => {
                        format!(
                            "\"text {}, {}\"",
                            random.random_range(0..9),
                            "long ".repeat(random.random_range(0..4))
                        )
                    }
                };
                text += &format!("{}\n", own.iter().map(value).collect::<Vec<_>>().join(","));
            }
            texts.push(text);
        }
        let directory = csv_files(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let pair = Pair { origin: format!("seed {seed}"), ..Pair::new() };
        for session in [&pair.cpu, &pair.device] {
            let few =
                CsvOptions { sample_size: Some(1 + seed as usize % 50), ..CsvOptions::default() };
            session.register_csv_with("t", directory.path(), few)?;
        }
        assert_eq!(columns(&pair.cpu)?, columns(&pair.device)?, "seed {seed}");
        same(&pair, "SELECT * FROM t");
        let (name, _) =
            columns(&pair.cpu)?[random.random_range(0..2) % columns(&pair.cpu)?.len()].clone();
        same(&pair, &format!("SELECT count(*), count({name}), min({name}) FROM t"));
        same(&pair, &format!("SELECT {name} FROM t WHERE id % 3 = 1"));
    }
    Ok(())
}

#[test]
fn columns_are_the_same_where_that_is_wanted_and_known_by_place_without_names() -> Result<()> {
    let pair = Pair::new();
    let same = CsvOptions { union_by_name: false, ..CsvOptions::default() };
    let other = csv_files(&["a,b\n1,2\n", "b,a\n2,1\n"]);
    let apart = csv_files(&["one,two\nx,y\n", "u,v\nw,z\n"]);
    let bare = csv_files(&["1,x\n2,y\n", "3,z\n"]);
    let ragged = csv_files(&["1,x\n2,y\n", "3,z,1\n"]);
    for session in [&pair.cpu, &pair.device] {
        session.register_csv("t", other.path())?;
        assert_eq!(rows(session, "SELECT sum(a), sum(b) FROM t"), [[Cell::Int(2), Cell::Int(4)]]);
        let error =
            session.register_csv_with("t", other.path(), same.clone()).expect_err("another order");
        let ErrorKind::File { path, message } = error.kind() else { panic!("{error:?}") };
        assert!(
            path.ends_with("2.csv") && message.contains("columns b, a differ from a, b of"),
            "{message}"
        );
        // Names are given by place.
        let names =
            CsvOptions { names: Some(vec!["a".into(), "b".into()]), ..CsvOptions::default() };
        session.register_csv_with("t", other.path(), names).expect_err("another order");
        // Nobody said that these are headers, and they may be values.
        let error = session.register_csv("t", apart.path()).expect_err("no name in common");
        assert!(
            error.to_string().contains("no name in common")
                && error.to_string().contains("has_header"),
            "{error}"
        );
        let header = CsvOptions { has_header: Some(true), ..CsvOptions::default() };
        session.register_csv_with("t", apart.path(), header)?;
        assert_eq!(columns(session)?.len(), 4);
        session.register_csv("t", bare.path())?;
        assert_eq!(
            rows(session, "SELECT sum(column_1), max(column_2) FROM t"),
            [[Cell::Int(6), Cell::Text("z".into())]]
        );
        let error = session.register_csv("t", ragged.path()).expect_err("three values");
        assert!(error.to_string().contains("its first row has 3 values"), "{error}");
    }
    Ok(())
}

#[test]
fn a_files_rows_have_as_many_values_as_its_header() -> Result<()> {
    let pair = Pair::new();
    let directory = csv_files(&["a,b,c\n1,2,3\n4,5\n", "c,a\n6,7\n8\n9,10,11\n"]);
    for session in [&pair.cpu, &pair.device] {
        let ragged = |ragged| CsvOptions { ragged, ..CsvOptions::default() };
        session.register_csv_with("t", directory.path(), ragged(warpframe::Ragged::Skip))?;
        assert_eq!(
            rows(session, "SELECT a, b, c FROM t"),
            [[Cell::Int(1), Cell::Int(2), Cell::Int(3)], [Cell::Int(7), Cell::Null, Cell::Int(6)]]
        );
        std::fs::write(directory.path().join("3.csv"), "a\n1\n").expect("the file is written");
        let error = session
            .register_csv("u", directory.path())
            .and_then(|()| run(session, "SELECT b FROM u"));
        let error = error.expect_err("a row of two values, where its file has three");
        assert!(
            matches!(error.kind(), ErrorKind::Parse { line: 3, message, .. } if message.contains("3 are expected"))
        );
        std::fs::remove_file(directory.path().join("3.csv")).expect("it was written");
    }
    let reads = pair.device.take_host_reads().join("\n");
    assert!(reads.contains("3 rows of") && reads.contains("do not have 2 or 3 values"), "{reads}");
    // A value that misfits is told by its place in its own file.
    let directory = csv_files(&["a,b\n1,2\n", "b,c,a\n3,x,4\n5,x,oops\n"]);
    for session in [&pair.cpu, &pair.device] {
        let types = vec![("a".to_string(), DataType::Int64)];
        session.register_csv_with(
            "t",
            directory.path(),
            CsvOptions { types, ..CsvOptions::default() },
        )?;
        let error = run(session, "SELECT sum(a) FROM t").expect_err("oops");
        let ErrorKind::Parse { path: Some(path), line, column, .. } = error.kind() else {
            panic!("{error:?}")
        };
        assert!(path.ends_with("2.csv") && (*line, *column) == (3, 3), "{error:?}");
    }
    Ok(())
}

#[test]
fn directories_make_columns_of_csv_files() -> Result<()> {
    let directory = directory();
    for (name, text) in [
        ("year=2023/m=1/x.csv", "n,year\n1,7\n2,7\n"),
        ("year=2024/m=1/x.csv", "n\n3\n"),
        ("year=2024/m=2/y.csv", "m,n,z\nhidden,4,new\n"),
    ] {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one"))
            .expect("directories can be made");
        std::fs::write(path, text).expect("the file is written");
    }
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_csv("t", directory.path())?;
        let names: Vec<String> = columns(session)?.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["n", "z", "year", "m"]);
        assert_eq!(
            rows(session, "SELECT sum(n), min(year), max(m) FROM t WHERE year = 2024"),
            [[7, 2024, 2].map(Cell::Int)]
        );
        let none = CsvOptions { hive_partitioning: Some(false), ..CsvOptions::default() };
        session.register_csv_with("plain", directory.path(), none)?;
    }
    for sql in [
        "SELECT * FROM t",
        "SELECT * FROM plain",
        "SELECT year, m, count(*), sum(n) FROM t GROUP BY year, m",
        "SELECT year FROM t",
        "SELECT z, n FROM t WHERE m = 1",
        "SELECT count(*) FROM t WHERE year > 2023",
    ] {
        same(&pair, sql);
    }
    assert_eq!(pair.device.take_host_reads(), Vec::<String>::new());
    Ok(())
}

#[test]
fn json_files_are_one_table_by_the_same_rules() -> Result<()> {
    let directory = directory();
    for (name, text) in [
        ("k=1/1.ndjson", "{\"a\": 1, \"o\": {\"x\": 1}}\n{\"a\": 2}\n"),
        ("k=2/2.ndjson", "{\"b\": \"x\", \"a\": 0.5}\n{\"a\": null, \"o\": {\"y\": true}}\n"),
    ] {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one"))
            .expect("directories can be made");
        std::fs::write(path, text).expect("the file is written");
    }
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.register_files("t", directory.path(), warpframe::FileKind::Json)?;
        let mut found = columns(session)?;
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let found: Vec<(&str, &DataType)> =
            found.iter().map(|(name, of)| (name.as_str(), of)).collect();
        assert_eq!(found.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["a", "b", "k", "o"]);
        assert_eq!((found[0].1, found[2].1), (&DataType::Float64, &DataType::Int64));
    }
    for sql in [
        "SELECT a, b, k FROM t",
        "SELECT k, sum(a), count(b) FROM t GROUP BY k",
        "SELECT a FROM t WHERE k = 2",
        "SELECT count(*) FROM t",
        "SELECT k FROM t",
        "SELECT o['y'], o['x'] FROM t WHERE k > 0",
    ] {
        same(&pair, sql);
    }
    Ok(())
}

/// A file without a byte, compressed or not, has no rows and tells nothing of the others.
#[test]
fn empty_files_among_others_have_no_rows() -> Result<()> {
    let (directory, pair) = (directory(), Pair::new());
    let put = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("directories");
        std::fs::write(path, bytes).expect("files can be written");
    };
    // The end of a gzip file of no bytes, behind its head.
    let gzip = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    put("d/k=1/1.csv", b"");
    put("d/k=2/2.csv", b"a\n1\n");
    put("d/k=3/3.csv.gz", &gzip);
    put("e/1.csv", b"");
    for session in [&pair.cpu, &pair.device] {
        session.register_csv("t", directory.path().join("d"))?;
        assert_eq!(scalar(session, "SELECT sum(a * 10 + k) FROM t"), Cell::Int(12));
        assert_eq!(scalar(session, "SELECT count(*) FROM t WHERE k = 1"), Cell::Int(0));
        let error = session.register_csv("t", directory.path().join("e")).unwrap_err();
        assert!(error.to_string().contains("is empty"), "{error}");
    }
    Ok(())
}
