//! Files that SQL names: where they may stand, options, and what stays between queries.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use warpframe::prelude::*;
use warpframe::{Error, ErrorKind, Result};

use crate::differential::{Agreement, Cell, Pair, Rows, builder, data, run, scalar};

pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Files {
        Files(tempfile::tempdir().expect("a directory for files"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, in a directory of the directory where its name says so; its path as SQL has
    /// it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it lies in a directory"))
            .expect("directories can be made");
        std::fs::write(&path, content).expect("the file is written");
        path.to_str().expect("a name in UTF-8").to_string()
    }

    /// A Parquet file of a query's rows.
    fn parquet(&self, name: &str, query: &str) -> String {
        let session = Session::builder().device(DeviceChoice::Cpu).build().expect("a CPU session");
        let path = self.path(name);
        run(&session, query)
            .and_then(|frame| frame.write_parquet(&path))
            .expect("the file is written");
        path.to_str().expect("a name in UTF-8").to_string()
    }
}

/// Rows that a query yields, on the CPU as on the device. Some only bring columns, without a
/// kernel.
pub(crate) fn agree(pair: &Pair, query: &str) -> usize {
    match pair.agreement(query) {
        Agreement::Rows(rows) => rows,
        other => panic!("{query}: {other:?}"),
    }
}

const PRICES: &str = "id,price,day\n1,1.5,2024-01-01\n2,2.5,2024-01-02\n3,,2024-01-03\n";

#[test]
fn files_stand_wherever_tables_may() {
    let (files, pair) = (Files::new(), Pair::new());
    let prices = files.write("prices.csv", PRICES);
    let tabs = files.write("tabs.tsv", "id\tname\n1\tone\n3\tthree\n");
    files.write("many/a.psv", "id|n\n1|10\n");
    files.write("many/b.psv", "id|n\n2|20\n");
    files.write("many/notes.txt", "not a table");
    let many = files.path("many").display().to_string();
    let nation = files.parquet(
        "nation.pq",
        "SELECT column1 AS id, column2 AS region FROM (VALUES (1, 'a'), (2, 'b'))",
    );
    for query in [
        format!("SELECT * FROM '{prices}'"),
        format!("FROM '{prices}'"),
        format!("SELECT prices.id, price FROM '{prices}' WHERE price > 1"),
        format!(
            "SELECT p.id, t.name, n.region FROM '{prices}' p JOIN '{tabs}' t ON p.id = t.id, '{nation}' AS n"
        ),
        format!("SELECT * FROM '{prices}' LEFT JOIN '{tabs}' USING (id)"),
        format!("SELECT * FROM '{prices}' NATURAL JOIN '{many}'"),
        format!("SELECT * FROM '{many}/*.psv' AS t (x, y)"),
        format!(
            "WITH p AS (SELECT * FROM '{prices}') SELECT count(*) FROM p a JOIN p b ON a.id < b.id"
        ),
        format!("SELECT id FROM '{prices}' WHERE id IN (SELECT id FROM '{tabs}')"),
        format!("SELECT (SELECT sum(n) FROM '{many}'), id FROM '{nation}'"),
        format!("SELECT id FROM (SELECT id FROM '{prices}') UNION ALL SELECT id FROM '{nation}'"),
        format!(
            "SELECT id FROM '{prices}' p WHERE EXISTS (SELECT 1 FROM '{prices}' q WHERE q.id > p.id)"
        ),
        format!("SELECT * FROM read_csv('{prices}') WHERE day > DATE '2024-01-01'"),
        format!("SELECT * FROM read_parquet('{nation}') r WHERE r.id = 2"),
        format!("SELECT * FROM READ_CSV('{prices}', header = false, skip := 1) AS t"),
    ] {
        assert!(agree(&pair, &query) > 0, "{query}");
    }
    assert_eq!(pair.device.table_names(), Vec::<String>::new());
}

#[test]
fn options_have_their_meanings() {
    let (files, pair) = (Files::new(), Pair::new());
    let text = "made today\n# a comment\nWert;'Name';Tag\n1.234,5;'a;b';01.02.2024\nNA;-;02.02.2024\n7;c\n";
    let german = files.write("german.dat", text);
    let query = format!(
        "SELECT \"Wert\", \"Name\", \"Tag\" FROM read_csv('{german}', delim => ';', quote => '''', skip => 1, \
         comment => '#', header => true, nullstr => ['NA', '-'], decimal_separator => ',', thousands => '.', \
         dateformat => '%d.%m.%Y', null_padding => true, sample_size => -1) ORDER BY 1"
    );
    agree(&pair, &query);
    let rows = Rows::of(&run(&pair.device, &query).expect("it runs"));
    let text = |text: &str| Cell::Text(text.into());
    let float = |value: f64| Cell::Float(value);
    assert_eq!(rows.rows[0][..2], [float(7.0), text("c")]);
    assert_eq!(rows.rows[1][..2], [float(1234.5), text("a;b")]);
    assert_eq!(rows.rows[2][..2], [Cell::Null, Cell::Null]);
    assert_eq!(rows.rows[0][2], Cell::Null);

    let plain = files.write("plain.csv", "1,x,007\n2,y,8\n");
    let latin = files.write("latin.csv", b"a\ncaf\xe9\n");
    let ragged = files.write("ragged.csv", "a,b\n1,2\n3\n");
    for (query, expected) in [
        (format!("SELECT sum(a) FROM read_csv('{plain}', names => ['a', 'b', 'c'])"), Cell::Int(3)),
        (
            format!(
                "SELECT max(column_3) FROM read_csv('{plain}', all_varchar => true, header => false)"
            ),
            text("8"),
        ),
        (
            format!(
                "SELECT min(c) FROM read_csv('{plain}', columns => {{'a': 'INT', 'b': 'TEXT', 'c': 'VARCHAR'}}, header => false)"
            ),
            text("007"),
        ),
        (
            format!(
                "SELECT min(column_3) FROM read_csv('{plain}', types => 'column_3 VARCHAR', header => false)"
            ),
            text("007"),
        ),
        (format!("SELECT a FROM read_csv('{latin}', encoding => 'latin-1')"), text("café")),
        (format!("SELECT count(*) FROM read_csv('{ragged}', ragged => 'skip')"), Cell::Int(1)),
        (
            format!("SELECT count(*) - count(b) FROM read_csv('{ragged}', ragged => 'fill')"),
            Cell::Int(1),
        ),
    ] {
        agree(&pair, &query);
        assert_eq!(scalar(&pair.device, &query), expected, "{query}");
    }
}

pub(crate) fn refused(session: &Session, query: &str) -> Error {
    match session.sql(query) {
        Ok(_) => panic!("it is planned: {query}"),
        Err(error) => error,
    }
}

#[test]
fn mistakes_are_told_at_their_places() {
    let (files, session) = (Files::new(), builder().build().expect("the device opens"));
    let prices = files.write("prices.csv", PRICES);
    let odd = files.write("odd.dat", PRICES);
    let at = |query: &str, part: &str| {
        Some((1, query.find(part).expect("it is in the query") as u64 + 1))
    };
    for (query, part, expected) in [
        (
            format!("SELECT * FROM read_csv('{prices}', delimm => ';')"),
            "delimm",
            "did you mean delim?",
        ),
        (
            format!("SELECT * FROM read_csv('{prices}', colour => ';')"),
            "colour",
            "known: delim, header",
        ),
        (format!("SELECT * FROM read_csv('{prices}', skip => 'x')"), "skip", "takes a number"),
        (format!("SELECT * FROM read_csv('{prices}', skip => 1 + 1)"), "skip", "takes a literal"),
        (
            format!("SELECT * FROM read_csv('{prices}', types => {{'id': 'NUMBR'}})"),
            "types",
            "NUMBR",
        ),
        (
            format!("SELECT * FROM read_csv('{prices}', ';')"),
            "';'",
            "expected an option as name => value",
        ),
        ("SELECT * FROM read_csv()".into(), "read_csv", "expected a file's path"),
        ("SELECT * FROM read_csv(7)".into(), "7", "or a list of them ['…', '…'], first; found 7"),
        (
            "SELECT * FROM read_json(['a.json', 7])".into(),
            "'a.json'",
            "read_json: expected a file's path",
        ),
        (
            "SELECT * FROM read_parquet([])".into(),
            "read_parquet",
            "read_parquet: the list of files is empty",
        ),
        (
            "SELECT * FROM read_arrow(path => 'a')".into(),
            "path",
            "read_arrow: expected a file's path",
        ),
        (
            format!("SELECT * FROM read_parquet('{prices}', delim => ';')"),
            "delim",
            "coerce_int96_timestamp_unit",
        ),
        (format!("SELECT * FROM '{odd}'"), &format!("'{odd}'"), "read_csv('…')"),
    ] {
        let error = refused(&session, &query);
        assert!(
            matches!(error.kind(), ErrorKind::Plan { message, .. } if message.contains(expected)),
            "{error}"
        );
        assert_eq!(error.location(), at(&query, part), "{query}");
    }
    let query = format!("SELECT * FROM read_csv(['{prices}', 'nowhere/t.csv'])");
    let error = refused(&session, &query);
    assert!(
        matches!(error.kind(), ErrorKind::Io { path, .. } if path == Path::new("nowhere/t.csv")),
        "{error}"
    );
    let absent = "SELECT * FROM 'nowhere/t.csv'";
    let error = refused(&session, absent);
    assert!(
        matches!(error.kind(), ErrorKind::Io { path, .. } if path == Path::new("nowhere/t.csv")),
        "{error}"
    );
    assert_eq!(error.location(), at(absent, "'nowhere"));
    let error = refused(
        &session,
        &format!("SELECT * FROM read_csv('{prices}', types => {{'nobody': 'INT'}})"),
    );
    assert!(
        matches!(error.kind(), ErrorKind::ColumnNotFound { name, .. } if name == "nobody"),
        "{error}"
    );
    let error = refused(&session, "SELECT * FROM 'nobody'");
    assert!(
        matches!(error.kind(), ErrorKind::TableNotFound { name, .. } if name == "nobody"),
        "{error}"
    );
    // A table of this name is that table.
    session.register_csv("a.csv", &prices).expect("it is a CSV file");
    assert_eq!(scalar(&session, "SELECT count(*) FROM 'a.csv'"), Cell::Int(3));
}

#[test]
fn a_list_of_paths_is_one_table() {
    let (files, pair) = (Files::new(), Pair::new());
    let one = files.write("a.csv", "id,n\n1,10\n2,20\n");
    let two = files.write("b.csv", "n,id,more\n30,3,x\n");
    files.write("many/c.csv", "id,n\n4,40.5\n");
    let many = files.path("many").display().to_string();
    let lines = files.write("a.ndjson", "{\"id\": 1}\n");
    let more_lines = files.write("b.ndjson", "{\"id\": 2, \"n\": 7}\n");
    let rows = |from: i64| format!("SELECT column1 AS id FROM (VALUES ({from}), ({}))", from + 1);
    let (parquet, more_parquet) =
        (files.parquet("a.pq", &rows(1)), files.parquet("b.pq", &rows(10)));
    let arrow = files.path("a.arrow").display().to_string();
    pair.cpu
        .sql(&rows(7))
        .expect("it parses")
        .collect()
        .expect("it runs")
        .write_ipc(&arrow)
        .expect("it is written");
    for (query, count) in [
        (format!("SELECT * FROM read_csv(['{one}', '{two}'])"), 3),
        (format!("SELECT * FROM read_csv(['{one}', '{many}', '{many}/*.csv'])"), 4),
        (
            format!(
                "SELECT a.id FROM read_csv(['{one}', '{two}'], types => {{'n': 'DOUBLE'}}) WHERE a.n > 15"
            ),
            2,
        ),
        (format!("SELECT t.id, t.n FROM read_json(['{lines}', '{more_lines}']) t"), 2),
        (
            format!(
                "SELECT * FROM read_parquet(['{parquet}', '{more_parquet}'], filename => true)"
            ),
            4,
        ),
        (format!("SELECT * FROM read_arrow(['{arrow}', '{arrow}'])"), 4),
        (format!("SELECT * FROM read_csv(['{one}'])"), 2),
    ] {
        assert_eq!(agree(&pair, &query), count, "{query}");
    }
    let query = format!("SELECT count(*) FROM read_csv(['{one}', '{two}'])");
    assert_eq!(scalar(&pair.device, &query), Cell::Int(3));
    // In another order it is another table, and a changed file is read anew.
    let first = format!("SELECT id FROM read_csv(['{two}', '{one}']) LIMIT 1");
    assert_eq!(scalar(&pair.device, &first), Cell::Int(3));
    files.write("b.csv", "n,id,more\n30,5,x\n31,6,y\n");
    assert_eq!(scalar(&pair.device, &first), Cell::Int(5));
    assert_eq!(scalar(&pair.device, &query), Cell::Int(4));
}

/// What a session's queries cost: plans made, and bytes brought to the device.
fn costs(session: &Session, query: &str) -> (u64, u64) {
    let counters = || session.device().expect("the session has a device").counters();
    let before = counters();
    run(session, query).unwrap_or_else(|error| panic!("{query}: {error}"));
    let after = counters();
    (after.plans_made - before.plans_made, after.bytes_uploaded - before.bytes_uploaded)
}

#[test]
fn a_file_that_is_named_again_is_the_same_table() {
    let (files, session) = (Files::new(), builder().build().expect("the device opens"));
    let content: String = (0..5000).map(|i| format!("{i},{}\n", i * 7)).collect();
    let path = files.write("t.csv", format!("a,b\n{content}"));
    let sums = format!("SELECT sum(a) FROM '{path}'");
    let (made, first) = costs(&session, &sums);
    assert_eq!(made, 1);
    assert!(first > 0);
    // The plan is found by its text, and the column is there.
    let (made, again) = costs(&session, &sums);
    assert_eq!(made, 0);
    assert!(again < first, "{again} {first}");
    // Another text, other spellings of path and options: the same column.
    let directory = files.0.path().display();
    for query in [
        format!("SELECT min(a) FROM '{directory}/./t.csv'"),
        format!("SELECT max(a) FROM read_csv('{path}')"),
        format!("SELECT count(*) FROM '{path}' x JOIN '{path}' y ON x.a = y.a"),
    ] {
        let (made, bytes) = costs(&session, &query);
        assert!(made > 0 && bytes < first / 2, "{query}: {made} {bytes} {first}");
    }
    // Other options: another table.
    assert_eq!(
        scalar(&session, &format!("SELECT count(a) FROM read_csv('{path}', nullstr => '7')")),
        Cell::Int(4999)
    );
    assert_eq!(scalar(&session, &format!("SELECT count(a) FROM '{path}'")), Cell::Int(5000));
}

#[test]
fn a_changed_file_is_never_read_by_an_old_plan() {
    let (files, pair) = (Files::new(), Pair::new());
    let path = files.write("t.csv", "a,b\n1,2\n");
    let (all, sum) = (format!("SELECT * FROM '{path}'"), format!("SELECT sum(a) FROM '{path}'"));
    for (content, expected) in [
        ("a,b\n1,2\n", Cell::Int(1)),
        // Rows, types, columns.
        ("a,b\n1,2\n10,20\n", Cell::Int(11)),
        ("a,b\n1.5,x\n", Cell::Float(1.5)),
        ("c,a,b\n7,8,2024-01-01\n", Cell::Int(8)),
        ("a\n5\n6\n", Cell::Int(11)),
    ] {
        files.write("t.csv", content);
        for _ in 0..3 {
            agree(&pair, &all);
            assert_eq!(scalar(&pair.device, &sum), expected, "{content:?}");
            assert_eq!(scalar(&pair.cpu, &sum), expected, "{content:?}");
        }
    }
    files.write("t.csv", "b\n1\n");
    assert!(
        matches!(refused(&pair.device, &sum).kind(), ErrorKind::ColumnNotFound { name, .. } if name == "a")
    );
    std::fs::remove_file(&path).expect("it is there");
    assert!(matches!(refused(&pair.device, &sum).kind(), ErrorKind::Io { .. }));

    let path = files.parquet("t.parquet", "SELECT 1 AS a");
    let all = format!("SELECT * FROM '{path}'");
    for query in ["SELECT 1 AS a", "SELECT 2 AS a", "SELECT 'x' AS a", "SELECT 1 AS b, 2 AS a"] {
        files.parquet("t.parquet", query);
        assert_eq!(agree(&pair, &all), 1);
        assert_eq!(agree(&pair, &all), 1);
    }
}

#[test]
fn more_files_than_stay_are_read() {
    let (files, session) = (Files::new(), builder().build().expect("the device opens"));
    let path = |at: usize| files.path(&format!("{at}.csv")).display().to_string();
    for at in 0..70 {
        files.write(&format!("{at}.csv"), format!("a\n{at}\n"));
    }
    for _ in 0..2 {
        for at in 0..70 {
            assert_eq!(
                scalar(&session, &format!("SELECT a FROM '{}'", path(at))),
                Cell::Int(at as i128)
            );
        }
    }
    let all: Vec<String> = (0..70).map(|at| format!("SELECT a FROM '{}'", path(at))).collect();
    let all = format!("SELECT sum(a) FROM ({})", all.join(" UNION ALL "));
    assert_eq!(scalar(&session, &all), Cell::Int(69 * 70 / 2));
    // Frames keep their files.
    let frame = session.sql(&format!("SELECT a FROM '{}'", path(1))).expect("it is planned");
    scalar(&session, &all);
    assert_eq!(frame.collect().expect("its file is there").num_rows(), 1);
}

#[test]
fn external_tables_are_files_with_options() -> Result<()> {
    let (files, pair) = (Files::new(), Pair::new());
    let path = files.write("t.dat", "1;x;2024-01-01\n2;;2024-01-02\n");
    let create = |text: &str| {
        let created = pair.cpu.create_external_table(text);
        assert_eq!(created.as_ref().ok(), pair.device.create_external_table(text).as_ref().ok());
        created
    };
    let name = create(&format!(
        "CREATE EXTERNAL TABLE T (a BIGINT, \"B\" VARCHAR(5), c DATE) STORED AS CSV LOCATION '{path}' \
         OPTIONS ('format.delimiter' ';', has_header false)"
    ))?;
    assert_eq!(name, "t");
    assert_eq!(pair.check("SELECT sum(a), min(\"B\"), max(c) FROM t"), 1);
    let again = format!(
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{path}' OPTIONS (delim ';', header false)"
    );
    assert!(create(&again).unwrap_err().to_string().contains("OR REPLACE"));
    create(&again.replace("TABLE t", "TABLE IF NOT EXISTS t"))?;
    assert_eq!(pair.device.schema("t")?.field(1).name(), "B");
    create(&again.replace("CREATE", "CREATE OR REPLACE"))?;
    assert_eq!(pair.device.schema("t")?.field(1).name(), "column_2");

    let nation = files.parquet("n.parquet", "SELECT 1 AS a");
    create(&format!("CREATE EXTERNAL TABLE n STORED AS PARQUET LOCATION 'file://{nation}'"))?;
    assert_eq!(agree(&pair, "SELECT * FROM n"), 1);
    for (text, expected) in [
        (
            format!(
                "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '{path}' OPTIONS (colour 'red')"
            ),
            "\"colour\"",
        ),
        (
            format!("CREATE EXTERNAL TABLE x (a INT) STORED AS PARQUET LOCATION '{nation}'"),
            "columns of their own",
        ),
        (
            format!("CREATE EXTERNAL TABLE x (a INT NOT NULL) STORED AS CSV LOCATION '{path}'"),
            "a constraint",
        ),
        (format!("CREATE EXTERNAL TABLE x STORED AS AVRO LOCATION '{path}'"), "known: CSV"),
        (
            format!("CREATE EXTERNAL TABLE s.x STORED AS CSV LOCATION '{path}'"),
            "no schema named \"s\"",
        ),
        ("CREATE TABLE x AS SELECT 1".into(), "this takes CREATE EXTERNAL TABLE"),
    ] {
        let error = create(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    Ok(())
}

#[test]
fn compressed_files_are_read() {
    use std::io::Write;
    let (files, pair) = (Files::new(), Pair::new());
    let rows: String = (0..20_000).map(|i| format!("{i}\tname {}\n", i % 7)).collect();
    let text = format!("id\tname\n{rows}");
    let mut gzip = flate2::write::GzEncoder::new(vec![], Default::default());
    gzip.write_all(text.as_bytes()).expect("memory takes it");
    let gzip = gzip.finish().expect("memory takes it");
    let path = files.write("t.tsv.gz", &gzip);
    let query = format!("SELECT name, count(*), sum(id) FROM '{path}' GROUP BY name");
    assert_eq!(agree(&pair, &query), 7);
    let before = pair.device.take_host_reads();
    assert_eq!(before, Vec::<String>::new());
    for (name, content) in
        [("cut.csv.gz", &gzip[..gzip.len() / 2]), ("no.csv.zst", text.as_bytes())]
    {
        let path = files.write(name, content);
        let error = refused(&pair.device, &format!("SELECT * FROM '{path}'"));
        assert!(
            matches!(error.kind(), ErrorKind::File { path: of, .. } if of == Path::new(&path)),
            "{error}"
        );
    }
}

/// JSON in each codec, of one stream and of two, which tools write that compress in parts.
#[test]
fn compressed_json_is_read() {
    use std::io::Write;
    let (files, pair) = (Files::new(), Pair::new());
    let lines =
        |from: usize| (from..from + 500).map(|i| format!("{{\"a\": {i}}}\n")).collect::<String>();
    let pack = |name: &str, text: &str| -> Vec<u8> {
        let mut packed = vec![];
        let done = match name {
            "gz" => flate2::write::GzEncoder::new(&mut packed, Default::default())
                .write_all(text.as_bytes()),
            "bz2" => bzip2::write::BzEncoder::new(&mut packed, Default::default())
                .write_all(text.as_bytes()),
            "xz" => liblzma::write::XzEncoder::new(&mut packed, 6).write_all(text.as_bytes()),
            _ => zstd::stream::copy_encode(text.as_bytes(), &mut packed, 3),
        };
        done.expect("memory takes it");
        packed
    };
    for codec in ["gz", "zst", "bz2", "xz"] {
        let two = [pack(codec, &lines(0)), pack(codec, &lines(500))].concat();
        let path = files.write(&format!("t.ndjson.{codec}"), two);
        let query = format!("SELECT count(*), sum(a) FROM '{path}'");
        assert_eq!(agree(&pair, &query), 1);
        assert_eq!(
            scalar(&pair.device, &format!("SELECT sum(a) FROM '{path}'")),
            Cell::Int(499_500),
            "{codec}"
        );
        let array = pack(codec, "[{\"a\": 1}, {\"a\": 2}]");
        let path = files.write(&format!("t.json.{codec}"), &array);
        assert_eq!(agree(&pair, &format!("SELECT * FROM '{path}'")), 2);
        let path = files.write(&format!("cut.json.{codec}"), &array[..array.len() / 2]);
        let error = refused(&pair.device, &format!("SELECT * FROM '{path}'"));
        assert!(
            matches!(error.kind(), ErrorKind::File { path: of, .. } if of == Path::new(&path)),
            "{error}"
        );
    }
    let path = files.write("not.json.gz", "{}");
    assert!(
        refused(&pair.device, &format!("SELECT * FROM '{path}'"))
            .to_string()
            .contains("as gzip does")
    );
}

/// The examples of the page on files, over the repository's sample data.
#[test]
fn the_page_on_files_is_right() {
    let pair = Pair::new();
    let mut examples = 0;
    for block in include_str!("../../docs/files.md").split("```sql\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        for query in block.split(';').map(str::trim).filter(|query| !query.is_empty()) {
            let query = query.replace("'data/", &format!("'{}", data("").display()));
            assert!(agree(&pair, &query) > 0, "{query}");
            examples += 1;
        }
    }
    assert_eq!(examples, 8);
}

#[test]
fn json_files_are_read() {
    let (files, pair) = (Files::new(), Pair::new());
    let json = files.write(
        "t.ndjson",
        "{\"id\": 1, \"s\": \"x\", \"l\": [1, 2]}\n{\"id\": 2, \"f\": 0.5}\n\n{}\n",
    );
    files.write("many/1.json", "{\"a\": 1}\n");
    files.write("many/2.json", "{\"b\": \"x\"}\n{\"a\": 2}\n");
    let many = files.path("many").display().to_string();
    for (query, rows) in [
        (format!("SELECT id, s, f FROM '{json}'"), 3),
        (format!("SELECT sum(id), count(*), max(f) FROM '{json}' WHERE id > 0"), 1),
        (format!("SELECT l FROM '{json}'"), 3),
        (format!("SELECT * FROM '{many}'"), 3),
        (format!("SELECT count(*) FROM read_json('{json}') j JOIN '{many}' t ON t.a = j.id"), 1),
    ] {
        assert_eq!(agree(&pair, &query), rows, "{query}");
    }
    // Changed files are read anew.
    let sum = format!("SELECT sum(id) FROM '{json}'");
    assert_eq!(scalar(&pair.device, &sum), Cell::Int(3));
    files.write("t.ndjson", "{\"id\": 7, \"other\": true}\n");
    assert_eq!(scalar(&pair.device, &sum), Cell::Int(7));
    agree(&pair, &format!("SELECT * FROM '{json}'"));
    for (name, content) in [("bad.json", "{\"a\": 1}\n{\"a\": \n"), ("none.json", "{}\n")] {
        let path = files.write(name, content);
        let error = refused(&pair.device, &format!("SELECT * FROM '{path}'"));
        assert!(
            matches!(error.kind(), ErrorKind::File { path: of, .. } if of == Path::new(&path)),
            "{error}"
        );
    }
    // Members of an array, over several lines; mixed with lines in one table; in folders.
    let array =
        files.write("t.json", " \n[\n  {\"id\": 1,\n \"s\": \"[]},{\"},\n {\"id\": 2}\n]\n");
    assert_eq!(agree(&pair, &format!("SELECT * FROM '{array}' WHERE id > 0")), 2);
    files.write("mixed/1.json", "[{\"a\": 1}, {\"a\": 2}]");
    files.write("mixed/2.json", "{\"a\": 3}\n");
    let mixed = files.path("mixed").display().to_string();
    assert_eq!(scalar(&pair.device, &format!("SELECT sum(a) FROM '{mixed}'")), Cell::Int(6));
    assert_eq!(agree(&pair, &format!("SELECT * FROM '{mixed}'")), 3);
    files.write("hive/k=1/x.json", "[{\"a\": 1}]");
    files.write("hive/k=2/x.json", "{\"a\": 2}\n{\"a\": 3}\n");
    let hive = files.path("hive").display().to_string();
    assert_eq!(agree(&pair, &format!("SELECT k, sum(a) FROM '{hive}' GROUP BY k")), 2);
    // Beyond ten megabytes, where files of lines are cut into ranges.
    let members: Vec<String> =
        (0..300_000).map(|i| format!("{{\"a\": {i}, \"b\": \"some text in it\"}}")).collect();
    let large = files.write("large.json", format!("[{}]", members.join(",")));
    for session in [&pair.device, &pair.cpu] {
        assert_eq!(
            scalar(session, &format!("SELECT count(*) FROM '{large}' WHERE a % 2 = 1")),
            Cell::Int(150_000)
        );
    }
    for (name, content) in
        [("cut.json", "[{\"a\": 1},"), ("cut2.json", "[{\"a\": 1}"), ("text.json", "[1, 2]")]
    {
        let path = files.write(name, content);
        let error = refused(&pair.device, &format!("SELECT * FROM '{path}'"));
        assert!(
            matches!(error.kind(), ErrorKind::File { path: of, .. } if of == Path::new(&path)),
            "{error}"
        );
    }
    let error = refused(&pair.device, &format!("SELECT * FROM read_json('{json}', delim => ';')"));
    assert!(
        matches!(error.kind(), ErrorKind::Plan { message, .. } if message.contains("delim")),
        "{error}"
    );
}
