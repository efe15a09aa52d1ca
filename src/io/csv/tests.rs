//! Tables of small files, read by blocks of any width.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::physical_plan::collect_partitioned;
use datafusion::prelude::{SessionConfig, SessionContext};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::host::CsvProvider;
use super::oracle::{grammars, odd_text, rows as slow_rows};
use super::table::CsvTable;
use super::*;
use crate::error::{Error, ErrorKind};

struct TestFolder(tempfile::TempDir);

impl TestFolder {
    fn new() -> TestFolder {
        TestFolder(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

fn rows_of(
    provider: &CsvProvider,
    columns: &[usize],
    limit: Option<usize>,
    partitions: usize,
) -> Result<RecordBatch> {
    let context = SessionContext::new_with_config(
        SessionConfig::new().with_target_partitions(partitions).with_repartition_file_min_size(0),
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let plan = provider.scan(&context.state(), Some(&columns.to_vec()), &[], limit).await?;
        let schema = plan.schema();
        let batches = collect_partitioned(plan, context.task_ctx()).await?.concat();
        Ok::<_, Error>(concat_batches(&schema, &batches)?)
    })
}

fn read(paths: &[PathBuf], options: &CsvOptions) -> Result<RecordBatch> {
    let table = Arc::new(CsvTable::open(paths, options, PathColumns::default())?);
    let all: Vec<usize> = (0..table.schema.fields().len()).collect();
    rows_of(&CsvProvider::new(table), &all, None, 1)
}

/// A table of one file's text.
fn of(text: impl AsRef<[u8]>, options: &CsvOptions) -> Result<RecordBatch> {
    read(&[TestFolder::new().write("t.csv", text)], options)
}

fn types(batch: &RecordBatch) -> Vec<DataType> {
    batch.schema().fields().iter().map(|field| field.data_type().clone()).collect()
}

fn texts(batch: &RecordBatch, column: usize) -> Vec<Option<String>> {
    let column = datafusion::arrow::compute::cast(batch.column(column), &DataType::Utf8).unwrap();
    column.as_string::<i32>().iter().map(|text| text.map(String::from)).collect()
}

fn parse_error(result: Result<RecordBatch>) -> (u64, u64, String) {
    let error = result.unwrap_err();
    match error.kind() {
        ErrorKind::Parse { path: Some(_), line, column, message } => {
            (*line, *column, message.clone())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn odd_files_are_read_alike_by_blocks_of_any_width_and_by_any_number_of_partitions() {
    let files = TestFolder::new();
    let mut compared = 0;
    for seed in 0..120 {
        let grammar = grammars()[seed as usize % grammars().len()];
        let text = odd_text(seed, &grammar);
        let mark: &[u8] = if seed % 3 == 0 { "\u{feff}".as_bytes() } else { b"" };
        let path = files.write("t.csv", [mark, &text].concat());
        let expected = slow_rows(&[&text, b"\n".as_slice()].concat(), &grammar);
        let Some(values) =
            expected.complete.first().map(Vec::len).filter(|_| expected.unclosed.is_none())
        else {
            continue;
        };
        let options = CsvOptions {
            has_header: Some(false),
            delimiter: Some(grammar.delimiter),
            quote: Some(grammar.quote),
            escape: grammar.escape,
            comment: grammar.comment,
            types: (1..=values).map(|n| (format!("column_{n}"), DataType::Utf8View)).collect(),
            ragged: Ragged::Skip,
            ..CsvOptions::default()
        };
        let rows = expected.complete.iter().filter(|row| row.len() == values);
        let value = |(quoted, text): &(bool, Vec<u8>)| {
            (*quoted || !text.is_empty()).then(|| String::from_utf8(text.clone()).unwrap())
        };
        let rows: Vec<Vec<Option<String>>> =
            rows.map(|row| row.iter().map(value).collect()).collect();
        let all: Vec<usize> = (0..values).collect();
        let table = Arc::new(CsvTable::open(&[path], &options, PathColumns::default()).unwrap());
        for block in [1, 2, 3, 7, 64, 1 << 20] {
            for partitions in [1, 2, 5] {
                let provider = CsvProvider::with_block(table.clone(), block);
                let batch = rows_of(&provider, &all, None, partitions).unwrap();
                let found: Vec<_> = (0..batch.num_rows()).map(|row| row_of(&batch, row)).collect();
                let shown = String::from_utf8_lossy(&text);
                assert_eq!(
                    found, rows,
                    "{grammar:?} {shown:?} in blocks of {block}, {partitions} partitions"
                );
                let left = expected.complete.len() - rows.len();
                assert_eq!(provider.take_skipped(), left as u64);
                compared += 1;
            }
        }
        let provider = CsvProvider::with_block(table, 5);
        let last = rows_of(&provider, &[values - 1], Some(2), 4).unwrap();
        assert_eq!(
            texts(&last, 0),
            rows.iter().take(2).map(|row| row[values - 1].clone()).collect::<Vec<_>>()
        );
    }
    assert!(compared > 500, "{compared}");
}

fn row_of(batch: &RecordBatch, row: usize) -> Vec<Option<String>> {
    let value = |column: &datafusion::arrow::array::ArrayRef| {
        let column = column.as_string_view();
        column.is_valid(row).then(|| column.value(row).to_string())
    };
    batch.columns().iter().map(value).collect()
}

#[test]
fn values_are_null_empty_or_themselves() {
    let text = "n,s\n1,\"\"\n,x\n\"\", y \n 4 ,\"say \"\"hi\"\"\"\n\"5\",\"a\"b\n6,a\"b\n  ,NA\n";
    let batch =
        of(text, &CsvOptions { nulls: vec!["NA".into()], ..CsvOptions::default() }).unwrap();
    assert_eq!(types(&batch), [DataType::Int64, DataType::Utf8View]);
    let some = |text: &str| Some(text.to_string());
    assert_eq!(texts(&batch, 0), [some("1"), None, None, some("4"), some("5"), some("6"), None]);
    let expected =
        [some(""), some("x"), some(" y "), some("say \"hi\""), some("ab"), some("a\"b"), None];
    assert_eq!(texts(&batch, 1), expected);
    let batch =
        of("s,t\n x ,\" y \"\n\t,\n", &CsvOptions { trim: true, ..CsvOptions::default() }).unwrap();
    assert_eq!(texts(&batch, 0), [some("x"), None]);
    assert_eq!(texts(&batch, 1), [some(" y "), None]);
}

#[test]
fn columns_have_the_types_of_their_values() {
    let plain = CsvOptions::default();
    let timestamp = |unit| DataType::Timestamp(unit, None);
    use datafusion::arrow::datatypes::TimeUnit::{Microsecond, Nanosecond};
    for (values, expected) in [
        (
            vec!["2020-01-31 12:34:56 ERROR disk full", "2020-01-31 12:34:57 INFO ok"],
            DataType::Utf8View,
        ),
        (vec!["\"2003-07-08 16:49:45,896\"", "\"2003-07-08 16:49:46,001\""], DataType::Utf8View),
        (vec!["2020-01-31", "0000-00-00"], DataType::Utf8View),
        (vec!["2020-01-31", "2020-01-31 12:34:56"], timestamp(Microsecond)),
        (vec!["2020-01-31 12:34:56", "2020-01-31 12:34:56.75"], timestamp(Microsecond)),
        (vec!["2020-01-31 12:34:56", "2020-01-31 12:34:56.1234567"], timestamp(Nanosecond)),
        (vec!["1", "2.5"], DataType::Float64),
        (vec!["true", "False", ""], DataType::Boolean),
        (vec!["12345678901234567890", "1"], DataType::Decimal128(38, 0)),
        (vec!["", ""], DataType::Utf8View),
    ] {
        let text =
            format!("n,t\n{}", values.iter().map(|v| format!("1,{v}\n")).collect::<String>());
        let batch = of(&text, &plain).unwrap();
        assert_eq!(types(&batch)[1], expected, "{values:?}");
        if expected == DataType::Utf8View {
            let unquoted: Vec<_> = values
                .iter()
                .map(|v| v.trim_matches('"'))
                .map(|v| (!v.is_empty()).then(|| v.to_string()))
                .collect();
            assert_eq!(texts(&batch, 1), unquoted);
        }
    }
    let given = CsvOptions {
        types: vec![
            ("t".into(), DataType::Int32),
            ("b".into(), DataType::Boolean),
            ("d".into(), DataType::Decimal128(9, 1)),
        ],
        date_format: Some("%d.%m.%Y".into()),
        ..CsvOptions::default()
    };
    let batch = of("t,b,d,e\n7,yes,1.25,31.01.2020\n8,0,-1,29.02.2024\n", &given).unwrap();
    assert_eq!(
        types(&batch),
        [DataType::Int32, DataType::Boolean, DataType::Decimal128(9, 1), DataType::Date32]
    );
    assert_eq!(texts(&batch, 2), [Some("1.3".to_string()), Some("-1.0".to_string())]);
    assert_eq!(texts(&batch, 3), [Some("2020-01-31".to_string()), Some("2024-02-29".to_string())]);
    let (line, column, message) = parse_error(of("t,b,d,e\n7,yes,1,31.01.2020\nx,0,1,\n", &given));
    assert_eq!((line, column), (3, 1));
    assert!(message.contains("\"x\"") && message.contains("Int32"), "{message}");
}

#[test]
fn a_misfit_names_its_place_and_its_column_becomes_wider() {
    let files = TestFolder::new();
    let line = |n: usize| {
        if n == 5_500 { "x!,2020-01-31 12:00:00\r\n".into() } else { format!("{n},2020-01-31\r\n") }
    };
    let text: String = (0..10_000).map(line).collect();
    let paths = [
        files.write("a.csv", "n,t\n1,2020-01-31\n"),
        files.write("b.csv", format!("n,t\r\n{text}")),
    ];
    let options = CsvOptions { sample_size: Some(3), ..CsvOptions::default() };
    let table = Arc::new(CsvTable::open(&paths, &options, PathColumns::default()).unwrap());
    let provider = CsvProvider::new(table.clone());
    for (column, shown, dtype) in [(0, "\"x!\"", "Int64"), (1, "2020-01-31 12:00:00", "Date32")] {
        let error = rows_of(&provider, &[column], None, 1).unwrap_err();
        assert_eq!(error.misfit(), Some(column));
        let (line, number, message) = parse_error(Err(error));
        assert_eq!((line, number), (5_502, column as u64 + 1));
        assert!(message.contains(shown) && message.contains(dtype), "{message}");
        // The other column is not read.
        assert_eq!(rows_of(&provider, &[], None, 3).unwrap().num_rows(), 10_001);
    }
    let wider = Arc::new(table.widened().unwrap().unwrap());
    assert_eq!(
        rows_of(&CsvProvider::new(wider.clone()), &[0, 1], None, 1).unwrap().num_rows(),
        10_001
    );
    let wider = wider.schema.clone();
    let timestamp = DataType::Timestamp(datafusion::arrow::datatypes::TimeUnit::Microsecond, None);
    assert_eq!(*wider.field(0).data_type(), DataType::Utf8View);
    assert_eq!(*wider.field(1).data_type(), timestamp);
    let narrow = CsvTable::open(
        &paths,
        &CsvOptions { widen: false, ..options.clone() },
        PathColumns::default(),
    )
    .unwrap();
    let error = rows_of(&CsvProvider::new(Arc::new(narrow)), &[0], None, 1).unwrap_err();
    assert_eq!(error.misfit(), None);
    // All rows, or a place among those all over the file, show it before.
    let all = CsvTable::open(
        &paths,
        &CsvOptions { sample_size: None, ..options.clone() },
        PathColumns::default(),
    )
    .unwrap();
    assert_eq!(*all.schema.field(1).data_type(), timestamp);
    let many = CsvTable::open(&paths, &CsvOptions::default(), PathColumns::default()).unwrap();
    assert_eq!(*many.schema.field(0).data_type(), DataType::Utf8View);
}

#[test]
fn quotes_that_are_not_closed_are_named_by_the_line_where_they_open() {
    let late: String = (1..=3000).map(|n| format!("{n},x\n")).collect();
    let rest: String = (1..=20).map(|n| format!("{n},y\n")).collect();
    for (text, line) in [
        ("a,b\n1,x\n2,\"y\n3,z\n4,w\n".to_string(), 3),
        (format!("a,b\n{late}7,\"oops\n{rest}"), 3002),
    ] {
        let files = TestFolder::new();
        let path = files.write("t.csv", &text);
        let options = CsvOptions { sample_size: Some(1), ..CsvOptions::default() };
        let Ok(table) = CsvTable::open(&[path], &options, PathColumns::default()) else { continue };
        let table = Arc::new(table);
        for (block, partitions) in [(1 << 20, 1), (16, 7), (100, 3)] {
            let provider = CsvProvider::with_block(table.clone(), block);
            let (found, _, message) = parse_error(rows_of(&provider, &[0], None, partitions));
            assert_eq!(found, line, "{message}");
            assert!(message.contains("quote"), "{message}");
        }
    }
    assert_eq!(parse_error(of("a,b\n1,x\n2,\"y\n3,z\n4,w\n", &CsvOptions::default())).0, 3);
    let short =
        CsvOptions { max_row_bytes: 1 << 10, sample_size: Some(1), ..CsvOptions::default() };
    let long = format!("a,b\n1,2\n3,\"{}\"\n", "x".repeat(5 << 20));
    let (line, _, message) = parse_error(of(&long, &short));
    assert_eq!(line, 3);
    assert!(message.contains("max_row_bytes"), "{message}");
    assert_eq!(
        of(&long, &CsvOptions::default()).unwrap().column(1).as_string_view().value(1).len(),
        5 << 20
    );
}

#[test]
fn rows_of_another_number_of_values_are_errors_filled_or_left_out() {
    let text = "a,b\r\n1,2\r\n3\r\n\r\n4,5,6\r\n7,8\r\n";
    let of_kind = |ragged| of(text, &CsvOptions { ragged, ..CsvOptions::default() });
    let (line, _, message) = parse_error(of_kind(Ragged::Error));
    assert_eq!(line, 3);
    assert!(message.contains("1 values where 2"), "{message}");
    let (line, _, message) = parse_error(of_kind(Ragged::Fill));
    assert_eq!(line, 5);
    assert!(message.contains("3 values where 2"), "{message}");
    let left = of_kind(Ragged::Skip).unwrap();
    assert_eq!(left.column(0).as_primitive::<Int64Type>().values().as_ref(), [1, 7]);
    let filled =
        of("a,b\n1,2\n3\n", &CsvOptions { ragged: Ragged::Fill, ..CsvOptions::default() }).unwrap();
    assert!(filled.column(1).is_null(1) && filled.num_rows() == 2);
}

#[test]
fn names_come_from_the_header_or_the_options() {
    let names = |batch: RecordBatch| {
        batch.schema().fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>()
    };
    let plain = CsvOptions::default();
    assert_eq!(names(of("a,b,a\n1,2,3\n", &plain).unwrap()), ["a", "b", "a_1"]);
    assert_eq!(names(of("\u{feff}\"a\",,b\n1,2,3\n", &plain).unwrap()), ["a", "column_2", "b"]);
    assert_eq!(names(of("1,2\n3,4\n", &plain).unwrap()), ["column_1", "column_2"]);
    let skip = CsvOptions { skip: 2, comment: Some(b'#'), ..plain.clone() };
    let batch = of("made by \"x\r\nyesterday\n\n# a,b,c\na,b\n#1\n1,2\n", &skip).unwrap();
    assert_eq!((batch.num_rows(), names(batch)), (1, vec!["a".to_string(), "b".into()]));
    let given = CsvOptions { names: Some(vec!["x".into(), "y".into()]), ..plain.clone() };
    assert_eq!(names(of("a,b\n1,2\n", &given).unwrap()), ["x", "y"]);
    let file = |text: &str, options: &CsvOptions| match of(text, options).unwrap_err().kind() {
        ErrorKind::File { message, .. } => message.clone(),
        other => panic!("{other:?}"),
    };
    assert!(file("a,b,c\n1,2,3\n", &given).contains("3 values where 2 names"));
    assert!(file("\n", &plain).contains("no header"));
    assert!(file("", &plain).contains("empty"));
    let unknown = CsvOptions { types: vec![("z".into(), DataType::Int64)], ..plain.clone() };
    assert!(
        matches!(of("a\n1\n", &unknown).unwrap_err().kind(), ErrorKind::ColumnNotFound { name, .. } if name == "z")
    );
    // A header alone is a table without rows.
    let batch = of("a,b\n", &plain).unwrap();
    assert_eq!((batch.num_rows(), types(&batch)), (0, vec![DataType::Utf8View; 2]));
}

#[test]
fn bytes_that_are_no_characters_are_named_and_other_encodings_read() {
    let latin = b"n,s\n1,caf\xe9\n2,\x80\n".as_slice();
    let (line, column, message) = parse_error(of(latin, &CsvOptions::default()));
    assert_eq!((line, column), (2, 2));
    assert!(message.contains("636166e9") && message.contains("encoding"), "{message}");
    let options = CsvOptions { encoding: Some(TextEncoding::Windows1252), ..CsvOptions::default() };
    assert_eq!(
        texts(&of(latin, &options).unwrap(), 1),
        [Some("café".to_string()), Some("€".to_string())]
    );
    let utf16: Vec<u8> = "\u{feff}n,s\n1,é\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(texts(&of(utf16, &CsvOptions::default()).unwrap(), 1), [Some("é".to_string())]);
    // A column that is not read says nothing.
    let files = TestFolder::new();
    let table = CsvTable::open(
        &[files.write("t.csv", latin)],
        &CsvOptions::default(),
        PathColumns::default(),
    )
    .unwrap();
    assert_eq!(rows_of(&CsvProvider::new(Arc::new(table)), &[0], None, 1).unwrap().num_rows(), 2);
}

#[test]
fn numbers_of_other_notations_are_read() {
    let german = CsvOptions { decimal_comma: true, thousands: Some(b'.'), ..CsvOptions::default() };
    let batch = of("n;x\n1.234;1.234,5\n-7;0,25\n", &german).unwrap();
    assert_eq!(types(&batch), [DataType::Int64, DataType::Float64]);
    assert_eq!(texts(&batch, 0), [Some("1234".to_string()), Some("-7".to_string())]);
    assert_eq!(texts(&batch, 1), [Some("1234.5".to_string()), Some("0.25".to_string())]);
}

#[test]
fn values_with_line_ends_are_counted_as_one_row() {
    for count in [691, 692] {
        let text: String = (0..count).map(|n| format!("{n},\"l1\nl2\"\n")).collect();
        assert_eq!(of(format!("a,b\n{text}"), &CsvOptions::default()).unwrap().num_rows(), count);
    }
    let words = "word ".repeat(30);
    let text: String =
        (0..1200).map(|n| format!("{n},{},\"{words}wo\n\nrd {words}\"\r\n", n % 5)).collect();
    let batch = of(format!("id,stars,text\r\n{text}"), &CsvOptions::default()).unwrap();
    assert_eq!((batch.num_rows(), types(&batch)[0].clone()), (1200, DataType::Int64));
    assert_eq!(batch.column(2).as_string_view().value(1199), format!("{words}wo\n\nrd {words}"));
    // The place of a value is the line that an editor shows.
    let text: String = (0..2000).map(|n| format!("{n},\"l1\nl2\"\n")).collect();
    let options =
        CsvOptions { types: vec![("a".into(), DataType::Int64)], ..CsvOptions::default() };
    assert_eq!(parse_error(of(format!("a,b\n{text}bad,x\n"), &options)).0, 4002);
}

#[test]
fn lines_inside_quotes_are_no_rows_of_a_sample() {
    let lines = "x,y\n".repeat(1000);
    let text: String = (0..400).map(|n| format!("{n},\"{lines}\"\n")).collect();
    let files = TestFolder::new();
    let path = files.write("t.csv", format!("n,s\n{text}"));
    let few = CsvOptions { sample_size: Some(100), ..CsvOptions::default() };
    let table = CsvTable::open(&[path], &few, PathColumns::default()).unwrap();
    assert_eq!(*table.schema.field(0).data_type(), DataType::Int64);
}

/// A type that was inferred of all values holds them: no column becomes wider twice.
#[test]
fn what_was_seen_can_be_read() {
    let pool = [
        "",
        "  ",
        "\"\"",
        "true",
        "FALSE",
        "0",
        "-7",
        "007",
        "0000000000000000000000000000000000000000000007",
        "1.",
        ".5",
        "-.25",
        "1.50",
        "9007199254740993",
        "9223372036854775807",
        "-9223372036854775808",
        "9223372036854775808",
        "12345678901234567890123456789012345678",
        "0.00000000000000000001",
        "1e5",
        "1E-400",
        "nan",
        "-Infinity",
        "inf",
        "2020-01-31",
        "0001-01-01",
        "9999-12-31",
        " 2020-01-31 12:34 ",
        "2020-01-31T12:34:56.5",
        "2020-01-31 12:34:56.1234567",
        "2020-01-31 12:34:56Z",
        "1700-01-01 00:00:00+01:30",
        "2020-01-31 12:34:56.123456789-0100",
        "x",
        "+5",
    ];
    let files = TestFolder::new();
    let mut random = StdRng::seed_from_u64(7);
    let mut kinds = std::collections::HashSet::new();
    for _ in 0..400 {
        // Few kinds a column: mixtures of many are text.
        let kinds_of = random.random_range(1..4);
        let few: Vec<&str> =
            (0..kinds_of).map(|_| pool[random.random_range(0..pool.len())]).collect();
        let values: Vec<&str> = (0..6).map(|_| few[random.random_range(0..few.len())]).collect();
        let path = files.write(
            "t.csv",
            format!("n,v\n{}", values.iter().map(|v| format!("1,{v}\n")).collect::<String>()),
        );
        let options =
            CsvOptions { sample_size: Some(1), has_header: Some(true), ..CsvOptions::default() };
        let narrow = Arc::new(CsvTable::open(&[path], &options, PathColumns::default()).unwrap());
        narrow.note_misfit(1);
        let wide = narrow.widened().unwrap().map_or(narrow.clone(), Arc::new);
        kinds.insert(wide.schema.field(1).data_type().clone());
        let batch = rows_of(&CsvProvider::new(wide.clone()), &[1], None, 1);
        let batch = batch.unwrap_or_else(|error| panic!("{values:?}: {error}"));
        assert_eq!(batch.num_rows(), values.len());
        if let Err(error) = rows_of(&CsvProvider::new(narrow.clone()), &[1], None, 1) {
            assert_eq!(error.misfit(), Some(1), "{error}");
            assert_ne!(narrow.schema, wide.schema);
        }
    }
    assert!(kinds.len() >= 8, "{kinds:?}");
}
