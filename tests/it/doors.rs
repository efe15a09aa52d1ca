//! Files that SQL names: where they may stand, options, and what stays between queries.

mod about;
mod compressed;
mod elsewhere;
mod forbidden;
mod json;
mod kept;
mod left_out;
mod options;

use std::path::PathBuf;

use tempfile::TempDir;
use warpframe::prelude::*;
use warpframe::{Error, ErrorKind, Executed, Result};

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
        std::fs::create_dir_all(path.parent().expect("it lies in a directory"))
            .expect("directories can be made");
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

pub(crate) fn refused(session: &Session, query: &str) -> Error {
    match session.sql(query) {
        Ok(_) => panic!("it is planned: {query}"),
        Err(error) => error,
    }
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

#[test]
fn external_tables_are_files_with_options() -> Result<()> {
    let (files, pair) = (Files::new(), Pair::new());
    let path = files.write("t.dat", "1;x;2024-01-01\n2;;2024-01-02\n");
    let create = |text: &str| -> Result<String> {
        let done = |session: &Session| match session.execute(text)? {
            Executed::Done(what) => Ok(what),
            other => panic!("{text}: {other:?}"),
        };
        let created = done(&pair.cpu);
        assert_eq!(created.as_ref().ok(), done(&pair.device).as_ref().ok());
        created
    };
    let name = create(&format!(
        "CREATE EXTERNAL TABLE T (a BIGINT, \"B\" VARCHAR(5), c DATE) STORED AS CSV LOCATION '{path}' \
         OPTIONS ('format.delimiter' ';', has_header false)"
    ))?;
    assert_eq!(name, "table t: files");
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
    ] {
        let error = create(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    Ok(())
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
    assert_eq!(examples, 11);
}
