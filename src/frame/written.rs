//! Frames to files.

use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::logical_expr::{SortExpr, ident};

use super::{DataFrame, LazyFrame};
use crate::error::Result;
use crate::io::{
    CsvWriteOptions, FolderWriteOptions, IpcWriteOptions, JsonWriteOptions, ParquetWriteOptions,
    WholeFile, WriteFormat,
};

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
        if self.core.engine().is_none() {
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

impl DataFrame {
    /// Writes a CSV file with a header line; a file that is there is replaced.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.csv");
    /// session.sql("SELECT 1 AS one")?.collect()?.write_csv(&path)?;
    /// assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n1\n");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn write_csv(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write_csv_with(path, CsvWriteOptions::default())
    }

    /// [`DataFrame::write_csv`] in another layout.
    ///
    /// ```
    /// # use warpframe::{CsvWriteOptions, DeviceChoice, Session};
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.tsv");
    /// let tabs = CsvWriteOptions { delimiter: b'\t', header: false, ..CsvWriteOptions::default() };
    /// session.sql("SELECT 1, 2")?.collect()?.write_csv_with(&path, tabs)?;
    /// assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\t2\n");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn write_csv_with(&self, path: impl AsRef<Path>, options: CsvWriteOptions) -> Result<()> {
        self.write(path, &WriteFormat::Csv(options))
    }

    /// Writes a Parquet file; a file that is there is replaced. The format has no seconds, and
    /// keeps dates as days: timestamps and times in seconds become milliseconds, and `Date64`
    /// becomes `Date32`. Dictionaries are written as their values.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.parquet");
    /// session.sql("SELECT 1 AS one")?.collect()?.write_parquet(&path)?;
    /// assert_eq!(session.read_parquet(&path)?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn write_parquet(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write_parquet_with(path, ParquetWriteOptions::default())
    }

    /// [`DataFrame::write_parquet`] with another codec, or row groups of another size.
    ///
    /// ```
    /// # use warpframe::{Codec, DeviceChoice, ParquetWriteOptions, Session};
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.parquet");
    /// let options = ParquetWriteOptions { compression: Codec::Snappy, ..ParquetWriteOptions::default() };
    /// session.sql("SELECT 1 AS one")?.collect()?.write_parquet_with(&path, options)?;
    /// assert_eq!(session.read_parquet(&path)?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn write_parquet_with(
        &self,
        path: impl AsRef<Path>,
        options: ParquetWriteOptions,
    ) -> Result<()> {
        self.write(path, &WriteFormat::Parquet(options))
    }

    /// Writes a JSON file, a row in each line; a file that is there is replaced. Times are texts,
    /// and bytes are texts of hexadecimal digits; NaN and infinities become null.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`]; types that have no form in JSON.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.ndjson");
    /// session.sql("SELECT 1 AS one, 'x' AS s")?.collect()?.write_json(&path)?;
    /// assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"one\":1,\"s\":\"x\"}\n");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn write_json(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write_json_with(path, JsonWriteOptions::default())
    }

    /// [`DataFrame::write_json`] as lines or as one array.
    ///
    /// # Errors
    /// As [`DataFrame::write_json`].
    pub fn write_json_with(&self, path: impl AsRef<Path>, options: JsonWriteOptions) -> Result<()> {
        self.write(path, &WriteFormat::Json(options))
    }

    /// The rows as JSON text: an array of an object a row, as [`DataFrame::write_json`] has them.
    ///
    /// # Errors
    /// Types that have no form in JSON; those of [`DataFrame::to_arrow`].
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(frame!(session; "x" => [1, 2])?.to_json()?, "[\n{\"x\":1},\n{\"x\":2}\n]\n");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn to_json(&self) -> Result<String> {
        let options = JsonWriteOptions { array: true, ..JsonWriteOptions::default() };
        self.core.as_statement(|| {
            crate::io::json_text(&self.state.schema, self.batches(WRITTEN_ROWS), &options)
        })
    }

    /// Writes an Arrow IPC file (Feather, version 2), or a stream where the options say so; a file
    /// that is there is replaced. Strings and bytes are written with 64-bit offsets, and
    /// dictionaries as their values.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.arrow");
    /// session.sql("SELECT 1 AS one")?.collect()?.write_ipc(&path)?;
    /// assert_eq!(session.read_ipc(&path)?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn write_ipc(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write_ipc_with(path, IpcWriteOptions::default())
    }

    /// [`DataFrame::write_ipc`] as a stream, or compressed.
    ///
    /// # Errors
    /// As [`DataFrame::write_ipc`].
    pub fn write_ipc_with(&self, path: impl AsRef<Path>, options: IpcWriteOptions) -> Result<()> {
        self.write(path, &WriteFormat::Ipc(options))
    }

    /// Writes a file in a format. It is written whole or not at all: a failure leaves what was
    /// there before. Of two columns of one name the second is written under another, as
    /// [`distinct_names`](crate::sql::distinct_names) has it: `a` and `a_1`.
    ///
    /// # Errors
    /// As the methods of each format.
    pub fn write(&self, path: impl AsRef<Path>, format: &WriteFormat) -> Result<()> {
        self.core.as_statement(|| {
            crate::io::write(path.as_ref(), &self.state.schema, self.batches(WRITTEN_ROWS), format)
        })
    }

    /// [`DataFrame::write`] into a file that was begun. Where that fails, [`WholeFile::back_to`]
    /// takes back what it left.
    ///
    /// # Errors
    /// As the methods of each format.
    pub fn write_into(&self, file: &mut WholeFile, format: &WriteFormat) -> Result<()> {
        self.core.as_statement(|| {
            crate::io::write_into(file, &self.state.schema, self.batches(WRITTEN_ROWS), format)
        })
    }

    /// Writes a file for each value of some columns, in folders named `column=value` below a new
    /// directory, as Hive has them; the columns themselves are not in the files. All is written, or
    /// nothing. Bytes that mean something in a path are `%XX`, and NULL is
    /// `__HIVE_DEFAULT_PARTITION__`.
    ///
    /// # Errors
    /// As [`DataFrame::write`]; a directory that is there and is not empty; columns of floats, of
    /// bytes or of nested values.
    pub fn write_partitioned(
        &self,
        directory: impl AsRef<Path>,
        by: &[&str],
        format: &WriteFormat,
    ) -> Result<()> {
        self.write_partitioned_with(directory, by, format, &FolderWriteOptions::default())
    }

    /// [`DataFrame::write_partitioned`] into a directory that may have files, and with other names
    /// of files. Without columns, files of so many rows as the options say lie in the directory
    /// itself.
    ///
    /// # Errors
    /// As [`DataFrame::write_partitioned`]; names of files that are none.
    pub fn write_partitioned_with(
        &self,
        directory: impl AsRef<Path>,
        by: &[&str],
        format: &WriteFormat,
        options: &FolderWriteOptions,
    ) -> Result<()> {
        let by: Vec<String> = by.iter().map(|name| (*name).to_string()).collect();
        // Which columns there are not is told where the others are looked at.
        let known = by.iter().filter(|name| self.state.schema.column_with_name(name).is_some());
        let keys: Vec<SortExpr> = known.map(|name| ident(name.as_str()).sort(true, true)).collect();
        let sorted = if keys.is_empty() { self.clone() } else { self.sort(keys)? };
        self.core.as_statement(|| {
            let (schema, batches) = (&self.state.schema, sorted.batches(WRITTEN_ROWS));
            crate::io::write_partitioned(directory.as_ref(), schema, batches, &by, format, options)
        })
    }
}
