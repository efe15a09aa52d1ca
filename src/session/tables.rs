//! The session's tables: registering, naming, describing. A name is of the schema in use, or stands
//! behind another's and a dot (`schemas.rs`).

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlanBuilder, UNNAMED_TABLE};

use super::Session;
use crate::error::Result;
use crate::frame::{DataFrame, LazyFrame};
use crate::io::{
    CsvOptions, FileKind, Files, Format, IntoPaths, IpcOptions, JsonOptions, ParquetOptions,
    Snapshot, SourceTable,
};
use crate::query::Core;

impl Session {
    /// Makes batches of one schema a table; a table of this name is replaced.
    ///
    /// # Errors
    /// No batch at all (an empty batch gives an empty table its schema), and batches of different
    /// schemas.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use warpframe::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// use warpframe::prelude::*;
    ///
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let x = Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef;
    /// session.register_batches("t", [RecordBatch::try_from_iter([("x", x)])?])?;
    /// assert_eq!(session.sql("SELECT x FROM t WHERE x > 1")?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn register_batches(
        &self,
        name: &str,
        batches: impl IntoIterator<Item = RecordBatch>,
    ) -> Result<()> {
        self.register(name, self.core.memory_table(batches.into_iter().collect(), None)?)
    }

    /// Makes a Parquet file (or a directory of them, those matching a pattern, or several paths) a
    /// table; a table of this name is replaced. Files may have different columns, as
    /// `docs/files.md` says. They are read when a query needs them, and again once they
    /// have changed: each query sees them as they are. Files that no longer have the columns that
    /// they had are an error of the query ([`crate::ErrorKind::File`]).
    ///
    /// # Errors
    /// A file that is missing ([`crate::ErrorKind::Io`]) or is not Parquet
    /// ([`crate::ErrorKind::File`]).
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.register_parquet("nation", "data/tpch/nation.parquet")?;
    /// assert_eq!(session.sql("SELECT * FROM nation")?.collect()?.num_rows(), 25);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn register_parquet(&self, name: &str, path: impl IntoPaths) -> Result<()> {
        self.register_parquet_with(name, path, ParquetOptions::default())
    }

    /// [`Session::register_parquet`] with other options.
    ///
    /// ```
    /// use warpframe::arrow::datatypes::TimeUnit;
    /// # use warpframe::{DeviceChoice, ParquetOptions, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let options = ParquetOptions { coerce_int96_timestamp_unit: TimeUnit::Nanosecond, ..Default::default() };
    /// session.register_parquet_with("nation", "data/tpch/nation.parquet", options)?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn register_parquet_with(
        &self,
        name: &str,
        path: impl IntoPaths,
        options: ParquetOptions,
    ) -> Result<()> {
        self.register(name, self.file_table(path, Format::Parquet(options))?)
    }

    /// Makes a CSV file (or a directory of them, those matching a pattern, or several paths) a
    /// table, with types inferred from a sample of its rows; a table of this name is replaced. The
    /// files are read when a query needs them, and again once they have changed, as
    /// [`Session::register_parquet`] says. [`CsvOptions`] lists what can be said of them.
    ///
    /// # Errors
    /// A file that is missing ([`crate::ErrorKind::Io`]) or malformed ([`crate::ErrorKind::Parse`]
    /// with line and field); a value that does not fit its column's type is reported by the query
    /// that reads it.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.register_csv("jets", "data/jets.csv")?;
    /// assert_eq!(session.schema("jets")?.field(1).name(), "px");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn register_csv(&self, name: &str, path: impl IntoPaths) -> Result<()> {
        self.register_csv_with(name, path, CsvOptions::default())
    }

    /// [`Session::register_csv`] for files of another layout.
    ///
    /// ```
    /// # use warpframe::{CsvOptions, DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let options = CsvOptions { sample_size: Some(10), ..CsvOptions::default() };
    /// session.register_csv_with("jets", "data/jets.csv", options)?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn register_csv_with(
        &self,
        name: &str,
        path: impl IntoPaths,
        options: CsvOptions,
    ) -> Result<()> {
        self.register(name, self.file_table(path, Format::Csv(Box::new(options)))?)
    }

    /// Makes JSON files, a row in each line, a table; a table of this name is replaced. The files
    /// are read as [`Session::register_parquet`] says.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, JsonOptions, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("t.ndjson");
    /// # std::fs::write(&path, "{\"a\": 1}\n").unwrap();
    /// session.register_json_with("t", &path, JsonOptions { filename: true, ..JsonOptions::default() })?;
    /// assert_eq!(session.schema("t")?.field(1).name(), "filename");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn register_json_with(
        &self,
        name: &str,
        path: impl IntoPaths,
        options: JsonOptions,
    ) -> Result<()> {
        self.register(name, self.file_table(path, Format::Json(options))?)
    }

    /// Makes Arrow IPC files or streams a table, as [`Session::register_files`] does, with options;
    /// a table of this name is replaced. The files are read as [`Session::register_parquet`] says.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, IpcOptions, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("t.arrow");
    /// # session.sql("SELECT 1 AS a")?.collect()?.write_ipc(&path)?;
    /// session.register_ipc_with("t", &path, IpcOptions { filename: true, ..IpcOptions::default() })?;
    /// assert_eq!(session.schema("t")?.field(1).name(), "filename");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn register_ipc_with(
        &self,
        name: &str,
        path: impl IntoPaths,
        options: IpcOptions,
    ) -> Result<()> {
        self.register(name, self.file_table(path, Format::Arrow(options))?)
    }

    /// Makes files of any kind a table, with what else is to be known found out; a table of this
    /// name is replaced. The files are read as [`Session::register_parquet`] says.
    ///
    /// # Errors
    /// A file that is missing ([`crate::ErrorKind::Io`]) or not of this kind.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, FileKind, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.ndjson");
    /// std::fs::write(&path, "{\"a\": 1}\n{\"a\": 2, \"b\": \"x\"}\n").unwrap();
    /// session.register_files("t", &path, FileKind::Json)?;
    /// assert_eq!(session.schema("t")?.fields().len(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn register_files(&self, name: &str, path: impl IntoPaths, kind: FileKind) -> Result<()> {
        self.register(name, self.file_table(path, Format::of(kind))?)
    }

    /// Makes a frame a table; a table of this name is replaced. Rows that lie on the device stay
    /// there.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let squares = session.sql("SELECT column1 AS x, column1 * column1 AS y FROM (VALUES (1), (2), (3))")?.collect()?;
    /// session.register_table("squares", &squares)?;
    /// assert_eq!(session.sql("SELECT * FROM squares WHERE y = 9")?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn register_table(&self, name: &str, frame: &DataFrame) -> Result<()> {
        self.keep(&self.alone()?, &self.named(name), frame)
    }

    /// Forgets a table.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TableNotFound`].
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.register_csv("jets", "data/jets.csv")?;
    /// session.deregister("jets")?;
    /// assert!(session.deregister("jets").is_err());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn deregister(&self, name: &str) -> Result<()> {
        self.forget(&self.alone()?, &self.named(name))
    }

    /// The names of the tables of the schema in use, sorted.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.register_csv("jets", "data/jets.csv")?;
    /// assert_eq!(session.table_names(), ["jets"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn table_names(&self) -> Vec<String> {
        self.tables_of(&self.schema_in_use())
    }

    /// The columns of a table.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TableNotFound`].
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.register_parquet("nation", "data/tpch/nation.parquet")?;
    /// assert_eq!(session.schema("nation")?.fields().len(), 4);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn schema(&self, table: &str) -> Result<SchemaRef> {
        Ok(self.provider_of(&self.named(table))?.schema())
    }

    /// A lazy frame of a table's rows.
    ///
    /// # Errors
    /// [`crate::ErrorKind::TableNotFound`].
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.register_csv("jets", "data/jets.csv")?;
    /// assert_eq!(session.table("jets")?.select([col("E")])?.collect()?.num_rows(), 100_000);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn table(&self, name: &str) -> Result<LazyFrame> {
        self.rows_of(&self.named(name))
    }

    /// A lazy frame of a Parquet file's rows, or of several files', as
    /// [`Session::register_parquet`] takes them.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let nations = session.scan_parquet("data/tpch/nation.parquet")?.filter(col("n_regionkey").eq(lit(3)))?;
    /// assert_eq!(nations.collect()?.num_rows(), 5);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn scan_parquet(&self, path: impl IntoPaths) -> Result<LazyFrame> {
        self.scan_parquet_with(path, ParquetOptions::default())
    }

    /// [`Session::scan_parquet`] with other options.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, ParquetOptions, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let path = "data/tpch/nation.parquet";
    /// let nations = session.scan_parquet_with(path, ParquetOptions::default())?;
    /// assert_eq!(nations.collect()?.num_rows(), 25);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn scan_parquet_with(
        &self,
        path: impl IntoPaths,
        options: ParquetOptions,
    ) -> Result<LazyFrame> {
        let table = self.file_table(path, Format::Parquet(options))?;
        self.scan_provider(TableReference::bare(UNNAMED_TABLE), table)
    }

    /// A lazy frame of a CSV file's rows, or of several files', as [`Session::register_csv`] takes
    /// them.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let jets = session.scan_csv("data/jets.csv")?.group_by([col("jetid")]).agg([sum(col("px"))])?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn scan_csv(&self, path: impl IntoPaths) -> Result<LazyFrame> {
        self.scan_csv_with(path, CsvOptions::default())
    }

    /// [`Session::scan_csv`] for files of another layout.
    ///
    /// ```
    /// # use warpframe::{CsvOptions, DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let jets = session.scan_csv_with("data/jets.csv", CsvOptions { sample_size: Some(10), ..CsvOptions::default() })?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn scan_csv_with(&self, path: impl IntoPaths, options: CsvOptions) -> Result<LazyFrame> {
        self.scan_provider(
            TableReference::bare(UNNAMED_TABLE),
            self.file_table(path, Format::Csv(Box::new(options)))?,
        )
    }

    /// A lazy frame of the rows of JSON files, as [`Session::register_json_with`] takes them.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, JsonOptions, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("t.ndjson");
    /// # std::fs::write(&path, "{\"a\": 1}\n").unwrap();
    /// assert_eq!(session.scan_json_with(&path, JsonOptions::default())?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn scan_json_with(&self, path: impl IntoPaths, options: JsonOptions) -> Result<LazyFrame> {
        self.scan_provider(
            TableReference::bare(UNNAMED_TABLE),
            self.file_table(path, Format::Json(options))?,
        )
    }

    /// Reads Parquet files now.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.read_parquet("data/tpch/region.parquet")?.num_rows(), 5);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn read_parquet(&self, path: impl IntoPaths) -> Result<DataFrame> {
        self.scan_parquet(path)?.collect()
    }

    /// Reads CSV files now.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.read_csv("data/jets.csv")?.num_rows(), 100_000);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn read_csv(&self, path: impl IntoPaths) -> Result<DataFrame> {
        self.scan_csv(path)?.collect()
    }

    /// A lazy frame of the rows of JSON files, as [`Session::register_files`] takes them.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.ndjson");
    /// std::fs::write(&path, "{\"a\": 1}\n{\"a\": 2}\n").unwrap();
    /// assert_eq!(session.scan_json(&path)?.filter(col("a").gt(lit(1)))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn scan_json(&self, path: impl IntoPaths) -> Result<LazyFrame> {
        self.scan_json_with(path, JsonOptions::default())
    }

    /// Reads JSON files now.
    ///
    /// # Errors
    /// As [`Session::register_files`].
    pub fn read_json(&self, path: impl IntoPaths) -> Result<DataFrame> {
        self.scan_json(path)?.collect()
    }

    /// A lazy frame of the rows of Arrow IPC files or streams, as [`Session::register_files`] takes
    /// them.
    ///
    /// ```
    /// use warpframe::prelude::*;
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// let path = directory.path().join("t.arrow");
    /// session.sql("SELECT * FROM (VALUES (1), (2)) t(a)")?.collect()?.write_ipc(&path)?;
    /// assert_eq!(session.scan_ipc(&path)?.filter(col("a").gt(lit(1)))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn scan_ipc(&self, path: impl IntoPaths) -> Result<LazyFrame> {
        self.scan_ipc_with(path, IpcOptions::default())
    }

    /// A lazy frame of the rows of Arrow IPC files, as [`Session::register_ipc_with`] takes them.
    ///
    /// ```
    /// # use warpframe::{DeviceChoice, IpcOptions, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let path = directory.path().join("t.arrow");
    /// # session.sql("SELECT 1 AS a")?.collect()?.write_ipc(&path)?;
    /// assert_eq!(session.scan_ipc_with(&path, IpcOptions::default())?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn scan_ipc_with(&self, path: impl IntoPaths, options: IpcOptions) -> Result<LazyFrame> {
        self.scan_provider(
            TableReference::bare(UNNAMED_TABLE),
            self.file_table(path, Format::Arrow(options))?,
        )
    }

    /// Reads Arrow IPC files or streams now.
    ///
    /// # Errors
    /// As [`Session::register_files`].
    pub fn read_ipc(&self, path: impl IntoPaths) -> Result<DataFrame> {
        self.scan_ipc(path)?.collect()
    }

    /// A frame of batches of one schema.
    ///
    /// # Errors
    /// No batch at all (an empty batch gives an empty frame its schema), and batches of different
    /// schemas.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use warpframe::arrow::array::{ArrayRef, Int64Array, RecordBatch};
    /// # use warpframe::{DeviceChoice, Session};
    /// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let x = Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef;
    /// assert_eq!(session.from_arrow([RecordBatch::try_from_iter([("x", x)])?])?.num_rows(), 3);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn from_arrow(&self, batches: impl IntoIterator<Item = RecordBatch>) -> Result<DataFrame> {
        LazyFrame::of_batches(&self.core, batches)?.collect()
    }

    pub(super) fn scan_provider(
        &self,
        name: TableReference,
        provider: Arc<dyn TableProvider>,
    ) -> Result<LazyFrame> {
        let plan = LogicalPlanBuilder::scan(name, provider_as_source(provider), None)?.build()?;
        LazyFrame::of_plan(&self.core, plan)
    }

    fn register(&self, name: &str, provider: Arc<dyn TableProvider>) -> Result<()> {
        self.put(&self.alone()?, &self.named(name), provider)
    }

    pub(super) fn file_table(
        &self,
        paths: impl IntoPaths,
        format: Format,
    ) -> Result<Arc<dyn TableProvider>> {
        let files = Files::of(paths, format)?;
        Ok(self.core.block_on(table_of_files(&self.core, files))?)
    }
}

/// Files as a table.
pub(super) async fn table_of_files(core: &Core, files: Files) -> Result<Arc<SourceTable>> {
    let snapshot = Snapshot::of_files(&files, &core.state(), 1).await?;
    Ok(Arc::new(SourceTable::new(snapshot, Some(files), core.most_filters())))
}
