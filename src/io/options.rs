//! What a user says of Parquet files before they are read.

use datafusion::arrow::datatypes::TimeUnit;

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
    /// Whether files of one table may have other columns, which are found by name: a column that a
    /// file lacks is NULL there, and types widen where that loses nothing. Otherwise all files have
    /// the same columns in the same order.
    pub union_by_name: bool,
    /// Whether directories named `key=value` make columns: where not said, if all files of a table lie
    /// in such of the same keys.
    pub hive_partitioning: Option<bool>,
}

impl Default for ParquetOptions {
    fn default() -> Self {
        ParquetOptions {
            coerce_int96_timestamp_unit: TimeUnit::Microsecond,
            union_by_name: true,
            hive_partitioning: None,
        }
    }
}
