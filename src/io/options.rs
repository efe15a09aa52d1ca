//! What a user says of files before they are read.

use datafusion::arrow::datatypes::TimeUnit;

/// How a CSV file is laid out.
///
/// ```
/// use warpframe::prelude::*;
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("numbers.tsv");
/// std::fs::write(&path, "1\tone\n2\ttwo\n")?;
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let tabs = CsvOptions { delimiter: b'\t', has_header: false, ..CsvOptions::default() };
/// let numbers = session.scan_csv_with(&path, tabs)?.filter(col("column_2").eq(lit("two")))?.collect()?;
/// assert_eq!(numbers.num_rows(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvOptions {
    /// Whether the first line names the columns; otherwise they are `column_1`, `column_2`, and so
    /// on.
    pub has_header: bool,
    /// Between values.
    pub delimiter: u8,
    /// Around values that contain delimiters or line ends.
    pub quote: u8,
    /// Rows looked at to infer the columns' types. A later value of another type is an error.
    pub infer_rows: usize,
}

impl Default for CsvOptions {
    fn default() -> Self {
        CsvOptions { has_header: true, delimiter: b',', quote: b'"', infer_rows: 1000 }
    }
}

/// How Parquet files are read.
///
/// ```
/// use warpframe::ParquetOptions;
/// use warpframe::arrow::datatypes::TimeUnit;
/// assert_eq!(ParquetOptions::default().coerce_int96_timestamp_unit, TimeUnit::Microsecond);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParquetOptions {
    /// The unit of timestamps whose physical type is INT96, which Spark, Hive and Impala write or
    /// wrote. Microseconds reach further than any of these; nanoseconds keep all digits, but of the
    /// years from 1678 to 2261 alone: others are an error.
    pub coerce_int96_timestamp_unit: TimeUnit,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        ParquetOptions { coerce_int96_timestamp_unit: TimeUnit::Microsecond }
    }
}
