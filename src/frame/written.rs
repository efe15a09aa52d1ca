//! Lazy frames to files.

use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use super::LazyFrame;
use crate::error::Result;
use crate::io::{CsvWriteOptions, ParquetWriteOptions, WriteFormat};

/// Rows that are downloaded together while others are written.
const WRITTEN_ROWS: usize = 1 << 17;

impl LazyFrame {
    /// Runs the query and writes its rows as [`DataFrame::write_csv`](super::DataFrame::write_csv)
    /// does. Where the session has no device they are written as they come, and are never in memory
    /// as a whole. Yields their number.
    ///
    /// # Errors
    /// Those of [`LazyFrame::collect`]; [`crate::ErrorKind::Io`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.csv");
    /// assert_eq!(session.sql("SELECT 1 AS one")?.write_csv(&path)?, 1);
    /// assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n1\n");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn write_csv(&self, path: impl AsRef<Path>) -> Result<u64> {
        self.write_csv_with(path, CsvWriteOptions::default())
    }

    /// [`LazyFrame::write_csv`] in another layout.
    ///
    /// ```
    /// # use warpframe::{CsvWriteOptions, DeviceChoice, Session};
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.tsv");
    /// let tabs = CsvWriteOptions { delimiter: b'\t', header: false, ..CsvWriteOptions::default() };
    /// session.sql("SELECT 1, 2")?.write_csv_with(&path, tabs)?;
    /// assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\t2\n");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn write_csv_with(&self, path: impl AsRef<Path>, options: CsvWriteOptions) -> Result<u64> {
        self.write(path, &WriteFormat::Csv(options))
    }

    /// Runs the query and writes its rows as
    /// [`DataFrame::write_parquet`](super::DataFrame::write_parquet) does, and as they come, as
    /// [`LazyFrame::write_csv`] says. Yields their number.
    ///
    /// # Errors
    /// Those of [`LazyFrame::collect`]; [`crate::ErrorKind::Io`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.parquet");
    /// session.sql("VALUES (1), (2)")?.write_parquet(&path)?;
    /// assert_eq!(session.read_parquet(&path)?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn write_parquet(&self, path: impl AsRef<Path>) -> Result<u64> {
        self.write_parquet_with(path, ParquetWriteOptions::default())
    }

    /// [`LazyFrame::write_parquet`] with another codec, or row groups of another size.
    ///
    /// ```
    /// # use warpframe::{Codec, DeviceChoice, ParquetWriteOptions, Session};
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.parquet");
    /// let options = ParquetWriteOptions { compression: Codec::Snappy, ..ParquetWriteOptions::default() };
    /// session.sql("SELECT 1 AS one")?.write_parquet_with(&path, options)?;
    /// assert_eq!(session.read_parquet(&path)?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn write_parquet_with(
        &self,
        path: impl AsRef<Path>,
        options: ParquetWriteOptions,
    ) -> Result<u64> {
        self.write(path, &WriteFormat::Parquet(options))
    }

    /// Runs the query and writes its rows as [`DataFrame::write`](super::DataFrame::write) does,
    /// and as they come, as [`LazyFrame::write_csv`] says. Yields their number.
    ///
    /// # Errors
    /// Those of [`LazyFrame::collect`], and of the methods of each format.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # use warpframe::{JsonWriteOptions, WriteFormat};
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.ndjson");
    /// session.sql("SELECT 1 AS one")?.write(&path, &WriteFormat::Json(JsonWriteOptions::default()))?;
    /// assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"one\":1}\n");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn write(&self, path: impl AsRef<Path>, format: &WriteFormat) -> Result<u64> {
        let path = path.as_ref();
        let counted =
            |schema: &SchemaRef, batches: &mut dyn Iterator<Item = Result<RecordBatch>>| {
                let mut rows = 0;
                let mut batches = batches.inspect(|batch| {
                    rows += batch.as_ref().map_or(0, |batch| batch.num_rows() as u64)
                });
                crate::io::write(path, schema, &mut batches, format)?;
                drop(batches);
                Ok(rows)
            };
        if self.core.device().is_none() {
            match self.core.stream(self.plan()?, counted) {
                // A value that its column's inferred type does not hold: again with wider types.
                Err(error) if error.misfit().is_some() => {}
                written => return written,
            }
        }
        let frame = self.collect()?;
        self.core.as_statement(|| counted(&frame.schema(), &mut frame.batches(WRITTEN_ROWS)))
    }
}
