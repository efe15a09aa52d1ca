//! Batches to files: written on all cores while the next ones are downloaded, whole or not at all.

mod csv;
mod in_order;
mod ipc;
mod json;
mod parquet;
mod partitioned;
mod whole;

use std::io::Write;
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

use self::in_order::in_order;
pub use self::ipc::{IpcCodec, IpcLayout, IpcWriteOptions};
pub use self::json::JsonWriteOptions;
pub(crate) use self::partitioned::write_partitioned;
use self::whole::Unfinished;
pub use self::whole::WholeFile;
use crate::error::{Error, ErrorKind, Result};

/// Rows of a row group, unless somebody says otherwise.
const GROUP_ROWS: usize = 1 << 20;

/// How CSV files are written.
///
/// ```
/// # use warpframe::prelude::*;
/// # use warpframe::CsvWriteOptions;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// # let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("t.csv");
/// let options = CsvWriteOptions { delimiter: b';', null: "NA".into(), ..CsvWriteOptions::default() };
/// session.sql("SELECT 1 AS one, NULL AS none")?.collect()?.write_csv_with(&path, options)?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "one;none\n1;NA\n");
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvWriteOptions {
    /// Whether the first line has the columns' names.
    pub header: bool,
    /// Between values.
    pub delimiter: u8,
    /// Around values that hold delimiters, quotes or line ends.
    pub quote: u8,
    /// What NULL is written as.
    pub null: String,
}

impl Default for CsvWriteOptions {
    fn default() -> Self {
        CsvWriteOptions { header: true, delimiter: b',', quote: b'"', null: String::new() }
    }
}

/// How Parquet files are written.
///
/// ```
/// use warpframe::{Codec, ParquetWriteOptions};
/// assert_eq!(ParquetWriteOptions::default().compression, Codec::Zstd);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParquetWriteOptions {
    /// What pages are compressed with.
    pub compression: Codec,
    /// How hard, where the codec has levels; `None` is the codec's own.
    pub level: Option<i32>,
    /// Most rows of a row group; `None` is 1,048,576.
    pub row_group_rows: Option<usize>,
}

/// What pages of Parquet files are compressed with.
///
/// ```
/// assert_eq!(warpframe::Codec::default(), warpframe::Codec::Zstd);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Codec {
    /// Nothing.
    Uncompressed,
    /// Without levels.
    Snappy,
    /// Levels from 0 to 9.
    Gzip,
    /// Levels from 0 to 11.
    Brotli,
    /// Without levels.
    Lz4Raw,
    /// Levels from 1 to 22.
    #[default]
    Zstd,
}

impl ParquetWriteOptions {
    fn compression(&self) -> Result<Compression> {
        let refused = |why: String| {
            ErrorKind::Plan { message: format!("Parquet: {why}"), location: None }.into()
        };
        let level = |level: i32| {
            u32::try_from(level)
                .map_err(|_| refused(format!("compression_level {level}: there is no such level")))
        };
        let of_codec = |error: ParquetError| -> Error {
            let text = error.to_string();
            let range = text
                .strip_prefix("Parquet error: ")
                .unwrap_or(&text)
                .trim_end_matches('.')
                .to_string();
            refused(format!("compression_level {}: {range}", self.level.unwrap_or_default()))
        };
        Ok(match (self.compression, self.level) {
            (Codec::Uncompressed, None) => Compression::UNCOMPRESSED,
            (Codec::Snappy, None) => Compression::SNAPPY,
            (Codec::Lz4Raw, None) => Compression::LZ4_RAW,
            (Codec::Gzip, None) => Compression::GZIP(GzipLevel::default()),
            (Codec::Brotli, None) => Compression::BROTLI(BrotliLevel::default()),
            (Codec::Zstd, None) => Compression::ZSTD(ZstdLevel::default()),
            (Codec::Gzip, Some(of)) => {
                Compression::GZIP(GzipLevel::try_new(level(of)?).map_err(of_codec)?)
            }
            (Codec::Brotli, Some(of)) => {
                Compression::BROTLI(BrotliLevel::try_new(level(of)?).map_err(of_codec)?)
            }
            (Codec::Zstd, Some(of)) => Compression::ZSTD(ZstdLevel::try_new(of).map_err(of_codec)?),
            (codec, Some(_)) => return Err(refused(format!("the codec {codec:?} has no levels"))),
        })
    }
}

/// What rows are written as.
///
/// ```
/// # use warpframe::prelude::*;
/// # use warpframe::{JsonWriteOptions, WriteFormat};
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// # let directory = tempfile::tempdir().unwrap();
/// let path = directory.path().join("years");
/// let rows = session.sql("SELECT * FROM (VALUES (2024, 'a'), (2025, 'b')) t(year, s)")?.collect()?;
/// rows.write_partitioned(&path, &["year"], &WriteFormat::Json(JsonWriteOptions::default()))?;
/// assert_eq!(std::fs::read_to_string(path.join("year=2025/data.ndjson")).unwrap(), "{\"s\":\"b\"}\n");
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteFormat {
    /// CSV.
    Csv(CsvWriteOptions),
    /// Parquet.
    Parquet(ParquetWriteOptions),
    /// JSON.
    Json(JsonWriteOptions),
    /// Arrow IPC.
    Ipc(IpcWriteOptions),
}

/// Writes rows to a file.
///
/// # Errors
/// Of the batches; types that the format does not have; a file that cannot be written.
pub(crate) fn write(
    path: &Path,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    format: &WriteFormat,
) -> Result<()> {
    let mut file = WholeFile::create(path)?;
    write_into(&mut file, schema, batches, format)?;
    file.finish()
}

/// Writes rows into a file that was begun.
///
/// # Errors
/// As [`write()`].
pub(crate) fn write_into(
    file: &mut WholeFile,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    format: &WriteFormat,
) -> Result<()> {
    let path = file.path().to_path_buf();
    match format {
        WriteFormat::Csv(options) => write_csv(file, schema, batches, options),
        WriteFormat::Parquet(options) => {
            write_parquet(file, schema, batches, options).map_err(|error| of_file(error, &path))
        }
        WriteFormat::Json(options) => write_json(file, batches, *options),
        WriteFormat::Ipc(options) => {
            ipc::write(file, schema, batches, *options).map_err(|error| of_file(error, &path))
        }
    }
}

/// Puts the file's name into an error of writing it.
fn of_file(error: Error, path: &Path) -> Error {
    match error.kind() {
        ErrorKind::Plan { message, .. } => {
            ErrorKind::File { path: path.into(), message: message.clone() }.into()
        }
        ErrorKind::Io { path: none, source } if none.as_os_str().is_empty() => {
            Error::io(path, std::io::Error::new(source.kind(), source.to_string()))
        }
        _ => error,
    }
}

/// Writes the rows as objects, which batches become on all cores.
fn write_json(
    file: &mut WholeFile,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: JsonWriteOptions,
) -> Result<()> {
    let path = file.path().to_path_buf();
    let put = |text: &[u8]| file.write_all(text).map_err(|error| Error::io(&path, error));
    let rows = |batch| json::rows(&batch, options).map_err(|error| of_file(error, &path));
    put_json(batches, options, rows, put)
}

/// The rows as the text of a file that [`write()`] writes.
///
/// # Errors
/// Of the batches; types that have no form in JSON.
pub(crate) fn json_text(
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: JsonWriteOptions,
) -> Result<String> {
    let mut whole = vec![];
    let rows = |batch| json::rows(&batch, options);
    put_json(batches, options, rows, |text| {
        whole.extend_from_slice(text);
        Ok(())
    })?;
    String::from_utf8(whole).map_err(|_| Error::internal("JSON that is no UTF-8"))
}

fn put_json(
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: JsonWriteOptions,
    rows: impl Fn(RecordBatch) -> Result<Vec<u8>> + Sync,
    mut put: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let [begin, between, end] = options.around();
    put(begin)?;
    let mut is_first = true;
    in_order(batches, rows, |text: Vec<u8>| {
        if text.is_empty() {
            return Ok(());
        }
        if !std::mem::take(&mut is_first) {
            put(between)?;
        }
        put(&text)
    })?;
    // Without rows, a file of lines is empty.
    if is_first && !options.array { Ok(()) } else { put(end) }
}

/// Writes the rows, behind a header line unless the options leave it out. Batches become text on
/// all cores.
///
/// # Errors
/// Of the batches; nested columns; a file that cannot be written.
fn write_csv(
    file: &mut WholeFile,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &CsvWriteOptions,
) -> Result<()> {
    let path = file.path().to_path_buf();
    let mut put = |text: Vec<u8>| file.write_all(&text).map_err(|error| Error::io(&path, error));
    if options.header {
        put(csv::header(schema, options))?;
    }
    in_order(batches, |batch| csv::rows(&batch, options), put)
}

/// Writes the rows as Parquet, whose columns are encoded on all cores.
///
/// # Errors
/// Of the batches; types that the format does not have; a file that cannot be written.
fn write_parquet(
    file: &mut WholeFile,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>>,
    options: &ParquetWriteOptions,
) -> Result<()> {
    let properties = WriterProperties::builder().set_compression(options.compression()?).build();
    let group_rows = options.row_group_rows.unwrap_or(GROUP_ROWS).max(1);
    parquet::write(file, schema, batches, properties, group_rows)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use datafusion::arrow::array::{
        ArrayRef, AsArray, Date64Array, Float64Array, Int64Array, ListArray, NullArray,
        StringArray, TimestampSecondArray, new_null_array,
    };
    use datafusion::arrow::datatypes::{
        DataType, Field, Int64Type, IntervalUnit, Schema, TimeUnit, TimestampMillisecondType,
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
        write(path, schema, batches, &WriteFormat::Parquet(*options))
    }

    fn csv_of(batch: &RecordBatch, options: &CsvWriteOptions) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.csv");
        write_csv(
            &path,
            &batch.schema(),
            [batch.clone(), batch.clone()].into_iter().map(Ok),
            options,
        )
        .unwrap();
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn null_and_the_empty_string_are_told_apart() {
        let strings = StringArray::from(vec![
            Some(""),
            None,
            Some("a,b"),
            Some("NA"),
            Some("say \"x\"\nor y"),
        ]);
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
        let none = batch(vec![
            ("n", Arc::new(Int64Array::from(vec![1]))),
            ("x", Arc::new(NullArray::new(1))),
        ]);
        assert_eq!(csv_of(&none, &CsvWriteOptions::default()), "n,x\n1,\n1,\n");
        // A row of one NULL is a line.
        let one = batch(vec![("s", Arc::new(StringArray::from(vec![None, Some("x")])))]);
        assert_eq!(csv_of(&one, &CsvWriteOptions::default()), "s\n\"\"\nx\n\"\"\nx\n");
        let nested = batch(vec![(
            "l",
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1)])])),
        )]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.csv");
        let refused = write_csv(
            &path,
            &nested.schema(),
            [Ok(nested.clone())].into_iter(),
            &CsvWriteOptions::default(),
        );
        assert!(refused.unwrap_err().to_string().contains("\"l\""));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
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
        let Some(Statistics::Double(bounds)) =
            reader.metadata().row_group(0).column(2).statistics()
        else {
            panic!()
        };
        assert_eq!(
            (bounds.min_opt(), bounds.max_opt()),
            (Some(&0.0), Some(&999.0)),
            "NaN is no bound"
        );
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
            ("iv", new_null_array(&DataType::Interval(IntervalUnit::MonthDayNano), 1)),
        ]);
        let refused =
            write_parquet(&path, &spans.schema(), [Ok(spans.clone())].into_iter(), &options);
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
        let failed =
            write_csv(&link, &rows.schema(), failing.into_iter(), &CsvWriteOptions::default());
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
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            2,
            "nothing is left behind"
        );
    }
}
