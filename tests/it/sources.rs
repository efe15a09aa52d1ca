//! What rows come from: how much of it a query reads, on how many cores, and in which order.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::datasource::MemTable;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use tempfile::TempDir;
use warpframe::arrow::array::*;
use warpframe::arrow::datatypes::{DataType, Field, Schema};
use warpframe::{CsvOptions, ErrorKind};

use crate::differential::{Cell, Pair, Rows, run, scalar};

const ROWS: i64 = 100_000;

/// A Parquet file of `n` from 0 on, of a text, and of lists, which the host's reader brings.
fn numbers(dir: &TempDir, row_group: usize) -> PathBuf {
    let n = Int64Array::from_iter_values(0..ROWS);
    let s = StringArray::from_iter_values((0..ROWS).map(|n| format!("text {}", n % 100)));
    let lists = (0..ROWS).map(|n| Some(vec![Some(n), Some(n + 1)]));
    let l = ListArray::from_iter_primitive::<warpframe::arrow::datatypes::Int64Type, _, _>(lists);
    let columns: [(&str, ArrayRef); 3] =
        [("n", Arc::new(n)), ("s", Arc::new(s)), ("l", Arc::new(l))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let path = dir.path().join("numbers.parquet");
    let properties =
        WriterProperties::builder().set_max_row_group_row_count(Some(row_group)).build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    path
}

#[test]
fn first_rows_are_read_alone_and_do_not_stay() {
    let dir = tempfile::tempdir().unwrap();
    let pair = Pair::new();
    let path = numbers(&dir, 1_000);
    pair.device.register_parquet("t", &path).unwrap();
    let device = pair.gpu();
    let read = || device.counters().file_bytes_read;
    let before = read();
    let found = Rows::of(&run(&pair.device, "SELECT n, s, l FROM t LIMIT 3 OFFSET 1999").unwrap());
    assert_eq!(
        found.rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>(),
        [1999, 2000, 2001].map(Cell::Int)
    );
    let (few, held) = (read() - before, device.memory().used);
    assert!(few > 0, "the device read some of it");
    // Not those rows again: all.
    assert_eq!(
        scalar(&pair.device, "SELECT sum(n) FROM t"),
        Cell::Int(i128::from(ROWS * (ROWS - 1) / 2))
    );
    assert!(few * 10 < read() - before, "{few} bytes of {}", read() - before);
    assert!(device.memory().used > held, "the whole column stays");
    // Which serves first rows, too.
    let before = read();
    assert_eq!(scalar(&pair.device, "SELECT n FROM t LIMIT 1 OFFSET 50000"), Cell::Int(50_000));
    assert_eq!(read(), before);
    // A filter needs more than the first rows, and so does an order.
    assert_eq!(
        scalar(&pair.device, "SELECT s FROM t WHERE n = 99999 LIMIT 1"),
        Cell::Text("text 99".into())
    );
    assert_eq!(
        scalar(&pair.device, "SELECT n FROM t ORDER BY n DESC LIMIT 1"),
        Cell::Int(i128::from(ROWS - 1))
    );
    // Two scans of one table, of which one wants all.
    let both = "SELECT count(*) FROM (SELECT n, s FROM t LIMIT 10) a JOIN t b ON a.n = b.n";
    assert_eq!(scalar(&pair.device, both), Cell::Int(10));
}

#[test]
fn tables_of_a_query_are_read_together() {
    let dir = tempfile::tempdir().unwrap();
    let pair = Pair::new();
    let path = numbers(&dir, 10_000);
    for session in [&pair.cpu, &pair.device] {
        for table in ["a", "b", "c", "d", "e", "f"] {
            session.register_parquet(table, &path).unwrap();
        }
    }
    pair.check(
        "SELECT count(*), sum(a.n + b.n + c.n + d.n + e.n + f.n), max(d.s) FROM a JOIN b ON a.n = b.n \
         JOIN c ON b.n = c.n JOIN d ON c.n = d.n JOIN e ON d.n = e.n JOIN f ON e.n = f.n WHERE a.s <> 'text 7'",
    );
    // The error of one of them is the query's.
    std::fs::write(dir.path().join("g.parquet"), std::fs::read(&path).unwrap()).unwrap();
    pair.device.register_parquet("g", dir.path().join("g.parquet")).unwrap();
    std::fs::remove_file(dir.path().join("g.parquet")).unwrap();
    let error = run(&pair.device, "SELECT count(*) FROM a JOIN g ON a.n = g.n").unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Io { path, .. } if path.ends_with("g.parquet")),
        "{error}"
    );
}

/// A CSV file of more bytes than a partition has.
fn csv(path: &Path, line: impl Fn(usize, &mut String)) -> usize {
    let mut text = String::from("n,s\n");
    let mut rows = 0;
    while text.len() < 12 << 20 {
        line(rows, &mut text);
        rows += 1;
    }
    std::fs::write(path, text).unwrap();
    rows
}

#[test]
fn csv_files_are_read_in_the_order_of_their_lines_by_whichever_cores() {
    let dir = tempfile::tempdir().unwrap();
    let long = "a value that is long enough for few rows to make a large file, ".repeat(4);
    let (lines, values) = (dir.path().join("lines.csv"), dir.path().join("values.csv"));
    let count = csv(&lines, |n, text| writeln!(text, "{n},\"{long}\"\"{}\"\"\"", n % 3).unwrap());
    // Values with line ends, whose lines look like rows.
    let plain = long.replace(',', "");
    let of_values = csv(&values, |n, text| writeln!(text, "{n},\"{plain}\n{n},0\"").unwrap());
    let pair = Pair::new();
    for (table, path, count) in [("lines", &lines, count), ("values", &values, of_values)] {
        for session in [&pair.cpu, &pair.device] {
            session.register_csv(table, path).unwrap();
        }
        let found = Rows::of(&run(&pair.device, &format!("SELECT n FROM \"{table}\"")).unwrap());
        assert_eq!(
            found.rows.concat(),
            (0..count as i128).map(Cell::Int).collect::<Vec<_>>(),
            "{table}"
        );
        pair.check(&format!(
            "SELECT count(*), sum(n), min(s), max(s), sum(length(s)) FROM \"{table}\""
        ));
    }
}

#[test]
fn a_bad_value_of_a_csv_file_that_is_cut_is_named_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad.csv");
    let long = "plain text, with a comma ".repeat(10);
    let count = csv(&path, |n, text| writeln!(text, "{n},\"{long}\"").unwrap());
    let mut text = std::fs::read_to_string(&path).unwrap();
    // Between the places that types are inferred from.
    let row = count / 2 + count / 32;
    let (bad, line) = (format!("\n{row},"), row + 2);
    let at = text.find(&bad).unwrap();
    text.replace_range(at + 1..at + bad.len() - 1, "many");
    std::fs::write(&path, text).unwrap();
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        let options = CsvOptions { widen: false, ..CsvOptions::default() };
        session.register_csv_with("t", &path, options).unwrap();
        let error = run(session, "SELECT sum(n) FROM t").unwrap_err();
        let ErrorKind::Parse { path: Some(named), line: found, .. } = error.kind() else {
            panic!("{error}")
        };
        assert_eq!((named.as_path(), *found), (path.as_path(), line as u64), "{error}");
    }
}

#[test]
fn rows_of_providers_are_brought_piece_by_piece() {
    // Pieces have a million rows: partitions of more, of fewer, of none.
    let partition = |begin: i64, count: i64| {
        let n = Int64Array::from_iter((begin..begin + count).map(|n| (n % 1000 != 7).then_some(n)));
        let x = Float64Array::from_iter_values((begin..begin + count).map(|n| n as f64 / 8.0));
        let d = Decimal128Array::from_iter_values((begin..begin + count).map(i128::from));
        let d = d.with_precision_and_scale(12, 2).unwrap();
        let s = StringArray::from_iter(
            (begin..begin + count).map(|n| (n % 5 != 0).then(|| format!("{}", n % 9))),
        );
        let schema = Schema::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("x", DataType::Float64, false),
            Field::new("d", DataType::Decimal128(12, 2), false),
            Field::new("s", DataType::Utf8, true),
        ]);
        let columns: Vec<ArrayRef> = vec![Arc::new(n), Arc::new(x), Arc::new(d), Arc::new(s)];
        let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
        let size = 65_536;
        (0..batch.num_rows())
            .step_by(size)
            .map(|at| batch.slice(at, size.min(batch.num_rows() - at)))
            .collect()
    };
    let counts = [1_200_000, 0, 1_000, 1_048_576, 300_000];
    let mut begin = 0;
    let mut partitions: Vec<Vec<RecordBatch>> = vec![];
    for count in counts {
        partitions.push(partition(begin, count));
        begin += count;
    }
    let schema = partitions[0][0].schema();
    let table = Arc::new(MemTable::try_new(schema, partitions).unwrap());
    let pair = Pair::new();
    for session in [&pair.cpu, &pair.device] {
        session.context().register_table("t", table.clone()).unwrap();
    }
    for sql in [
        "SELECT count(*), count(n), sum(n), min(n), max(n), sum(x), sum(d), count(s), min(s), max(s) FROM t",
        "SELECT s, count(*), sum(n) FROM t GROUP BY s",
        "SELECT n, x, d, s FROM t WHERE n % 100000 = 1",
    ] {
        pair.check(sql);
    }
    // In the order of the partitions.
    let found = Rows::of(
        &run(&pair.device, "SELECT x FROM t WHERE CAST(x * 8 AS BIGINT) % 100000 = 3").unwrap(),
    );
    let expected: Vec<_> =
        (0..begin).filter(|n| n % 100_000 == 3).map(|n| Cell::Float(n as f64 / 8.0)).collect();
    assert_eq!(found.rows.concat(), expected);
}
