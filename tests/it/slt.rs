//! Files of `tests/slt/` in the format of sqllogictest: statements, and queries with the rows that
//! they have to yield.
//!
//! `CREATE TABLE … AS` is evaluated by the CPU engine and its rows are registered, so that files
//! need no other data; queries run on the device, strictly, and have to launch kernels. A value is
//! printed as Arrow prints it, null as `NULL`, an empty string as `(empty)`.

use std::path::{Path, PathBuf};

use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};
use warpframe::arrow::array::Array;
use warpframe::arrow::datatypes::DataType;
use warpframe::arrow::record_batch::RecordBatch;
use warpframe::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::differential::Pair;

/// The engine as the runner drives it.
struct Engine(Pair);

/// What a statement failed with.
#[derive(Debug)]
struct Failure(String);

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<warpframe::Error> for Failure {
    fn from(error: warpframe::Error) -> Self {
        Failure(error.to_string())
    }
}

impl Engine {
    /// Makes the table on the CPU, and gives its rows to the device.
    fn create(&self, name: &str, query: &str) -> Result<(), Failure> {
        let batches = self.0.cpu.sql(query)?.collect()?.to_arrow()?;
        self.0.cpu.register_batches(name, batches.clone())?;
        Ok(self.0.device.register_batches(name, batches)?)
    }

    fn query(&self, sql: &str) -> Result<Vec<RecordBatch>, Failure> {
        let before = self.0.gpu().counters().launches;
        let batches = self.0.device.sql(sql)?.collect()?.to_arrow()?;
        assert!(self.0.gpu().counters().launches > before, "no kernel ran: {sql}");
        Ok(batches)
    }
}

impl DB for Engine {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let words: Vec<&str> = sql.split_whitespace().collect();
        if let ["CREATE", "TABLE", name, "AS", ..] = words[..] {
            let query = sql.split_once(" AS").expect("seen above").1;
            self.create(name, query)?;
            return Ok(DBOutput::StatementComplete(0));
        }
        let batches = self.query(sql)?;
        let types = batches
            .first()
            .map_or(vec![], |batch| batch.columns().iter().map(|c| kind(c.data_type())).collect());
        Ok(DBOutput::Rows { types, rows: batches.iter().flat_map(rows).collect() })
    }
}

fn kind(dtype: &DataType) -> DefaultColumnType {
    match dtype {
        dtype if dtype.is_integer() => DefaultColumnType::Integer,
        dtype if dtype.is_floating() || dtype.is_decimal() => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

fn rows(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let print = |column: &dyn Array, row: usize| {
        let text = ArrayFormatter::try_new(column, &options)
            .expect("a printable type")
            .value(row)
            .to_string();
        if text.is_empty() { "(empty)".to_string() } else { text }
    };
    (0..batch.num_rows())
        .map(|row| batch.columns().iter().map(|column| print(column, row)).collect())
        .collect()
}

/// Where the files are: beside the sources, or where the tests were carried.
fn directory() -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    if home.is_dir() { home } else { PathBuf::from("tests/slt") }
}

fn check(file: &str) {
    let mut runner = Runner::new(|| async { Ok(Engine(Pair::new())) });
    runner
        .run_file(directory().join(file))
        .unwrap_or_else(|error| panic!("{}", error.display(false)));
}

macro_rules! files {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(concat!(stringify!($name), ".slt"));
        })*

        #[test]
        fn every_file_has_a_test() {
            let mut found: Vec<String> = std::fs::read_dir(directory())
                .expect("the folder is there")
                .map(|entry| entry.expect("a readable entry").file_name().to_string_lossy().into_owned())
                .collect();
            found.sort();
            assert_eq!(found, [$(concat!(stringify!($name), ".slt")),*]);
        }
    };
}

files!(aggregates casts filters joins nested nulls patterns sorts strings subqueries windows);

#[test]
fn wrong_rows_are_seen() {
    let mut runner = Runner::new(|| async { Ok(Engine(Pair::new())) });
    let script = "statement ok\nCREATE TABLE t AS SELECT * FROM (VALUES (1), (2)) v(x)\n\nquery I\nSELECT sum(x) FROM t\n----\n4\n";
    assert!(runner.run_script(script).is_err());
}
