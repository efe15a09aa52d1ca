use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, Date64Array, Float64Array, Int64Array, IntervalMonthDayNanoArray, ListArray,
    NullArray, StringArray, TimestampSecondArray,
};
use datafusion::arrow::datatypes::{
    DataType, Field, Int64Type, IntervalMonthDayNano, Schema, TimeUnit, TimestampMillisecondType,
};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::parquet::file::statistics::Statistics;

use super::*;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

fn write_csv(
    path: &Path,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &CsvWriteOptions,
) -> Result<()> {
    write(path, schema, batches, &WriteFormat::Csv(options.clone()))
}

fn write_parquet(
    path: &Path,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &ParquetWriteOptions,
) -> Result<()> {
    write(path, schema, batches, &WriteFormat::Parquet(options.clone()))
}

fn csv_of(batch: &RecordBatch, options: &CsvWriteOptions) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.csv");
    write_csv(&path, &batch.schema(), [batch.clone(), batch.clone()].into_iter().map(Ok), options)
        .unwrap();
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn null_and_the_empty_string_are_told_apart() {
    let strings =
        StringArray::from(vec![Some(""), None, Some("a,b"), Some("NA"), Some("say \"x\"\nor y")]);
    let numbers = Int64Array::from(vec![Some(1), None, Some(-3), None, Some(5)]);
    let rows = batch(vec![("s", Arc::new(strings)), ("n;", Arc::new(numbers))]);
    let own = "\"\",1\n,\n\"a,b\",-3\nNA,\n\"say \"\"x\"\"\nor y\",5\n";
    assert_eq!(csv_of(&rows, &CsvWriteOptions::default()), format!("s,n;\n{own}{own}"));
    let other = CsvWriteOptions {
        header: false,
        delimiter: b';',
        null: "NA".into(),
        ..CsvWriteOptions::default()
    };
    let own = "\"\";1\nNA;NA\na,b;-3\n\"NA\";NA\n\"say \"\"x\"\"\nor y\";5\n";
    assert_eq!(csv_of(&rows, &other), format!("{own}{own}"));
    let none =
        batch(vec![("n", Arc::new(Int64Array::from(vec![1]))), ("x", Arc::new(NullArray::new(1)))]);
    assert_eq!(csv_of(&none, &CsvWriteOptions::default()), "n,x\n1,\n1,\n");
    // A row of one NULL is a line.
    let one = batch(vec![("s", Arc::new(StringArray::from(vec![None, Some("x")])))]);
    assert_eq!(csv_of(&one, &CsvWriteOptions::default()), "s\n\"\"\nx\n\"\"\nx\n");
    let nested = batch(vec![(
        "l",
        Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1), None]), None])),
    )]);
    let lines = "\"[1, NULL]\"\n\"\"\n";
    assert_eq!(csv_of(&nested, &CsvWriteOptions::default()), format!("l\n{lines}{lines}"));
}

#[test]
fn parquet_has_groups_of_so_many_rows_and_types_that_others_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let of = |from: i64, to: i64| {
        let days: Vec<i64> = (from..to).map(|n| n * 86_400_000).collect();
        let list = ListArray::from_iter_primitive::<Int64Type, _, _>(
            (from..to).map(|n| Some([Some(n), None])),
        );
        batch(vec![
            ("t", Arc::new(TimestampSecondArray::from_iter_values(from..to))),
            ("d", Arc::new(Date64Array::from(days))),
            (
                "f",
                Arc::new(
                    (from..to)
                        .map(|n| Some(if n % 7 == 3 { f64::NAN } else { n as f64 }))
                        .collect::<Float64Array>(),
                ),
            ),
            ("l", Arc::new(list)),
        ])
    };
    let batches = [of(0, 700), of(700, 701), of(701, 2500)];
    let options =
        ParquetWriteOptions { row_group_rows: Some(1000), ..ParquetWriteOptions::default() };
    write_parquet(&path, &batches[0].schema(), batches.clone().into_iter().map(Ok), &options)
        .unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    let groups: Vec<i64> =
        reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [1000, 1000, 500]);
    let Some(Statistics::Double(bounds)) = reader.metadata().row_group(0).column(2).statistics()
    else {
        panic!()
    };
    assert_eq!((bounds.min_opt(), bounds.max_opt()), (Some(&0.0), Some(&999.0)), "NaN is no bound");
    assert_eq!(
        *reader.schema().field(0).data_type(),
        DataType::Timestamp(TimeUnit::Millisecond, None)
    );
    assert_eq!(*reader.schema().field(1).data_type(), DataType::Date32);
    let mut at = 0;
    for found in reader.build().unwrap() {
        let found = found.unwrap();
        let times = found.column(0).as_primitive::<TimestampMillisecondType>();
        let lists = found.column(3).as_list::<i32>();
        for row in 0..found.num_rows() {
            assert_eq!(times.value(row), at * 1000);
            assert_eq!(lists.value(row).as_primitive::<Int64Type>().value(0), at);
            at += 1;
        }
    }
    assert_eq!(at, 2500);
    let spans = batch(vec![
        ("n", Arc::new(Int64Array::from(vec![1]))),
        (
            "iv",
            Arc::new(IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(-1, 0, 0)])),
        ),
    ]);
    let refused = write_parquet(&path, &spans.schema(), [Ok(spans.clone())].into_iter(), &options);
    assert!(refused.unwrap_err().to_string().contains("\"iv\""));
    // No rows are a file, too.
    let empty = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    write_parquet(&path, &empty, std::iter::empty(), &ParquetWriteOptions::default()).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.schema().fields(), empty.fields());
}

#[test]
fn files_are_written_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (directory.path().join("t.csv"), directory.path().join("link.csv"));
    std::fs::write(&path, "before").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("t.csv", &link).unwrap();
    let rows = batch(vec![("n", Arc::new(Int64Array::from(vec![1])))]);
    let failing = [Ok(rows.clone()), Err(Error::internal("the disk is on fire"))];
    let failed = write_csv(&link, &rows.schema(), failing.into_iter(), &CsvWriteOptions::default());
    assert!(failed.unwrap_err().to_string().contains("fire"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
    // Two at once do not mix.
    let write = || {
        let batches = (0..50).map(|_| Ok(rows.clone()));
        write_csv(&link, &rows.schema(), batches, &CsvWriteOptions::default()).unwrap();
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(write))));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("n\n{}", "1\n".repeat(50)));
    assert!(link.is_symlink());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2, "nothing is left behind");
}
