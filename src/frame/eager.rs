//! Frames that are results: how plans become such, and how these are read and written.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::logical_expr::{SortExpr, ident};

use super::any::{FrameState, StateOfFrame};
use super::base::AnyFrame;
use super::lazy::LazyFrame;
use crate::error::{Error, Result};
use crate::io::{
    CsvWriteOptions, DOWNLOAD_ROWS, IpcWriteOptions, JsonWriteOptions, ParquetWriteOptions,
    RowsHere, WholeFile, WriteFormat, plain_type,
};
use crate::plan::PlanTable;
use crate::query::{Answer, Core, Data, Recipe, Verb, scan};

/// Rows that are downloaded together while others are written.
const WRITTEN_ROWS: usize = 1 << 17;

/// Rows that were computed, in device memory where the session has a device; in host memory while
/// others need the room. Clones share them.
///
/// A verb is planned when it comes for the first time, with these expressions and over columns of
/// these names and types; the session keeps the plan, and the next time takes tens of microseconds
/// of the host, whatever the rows are. Another literal is planned again, and so is a volatile
/// function.
///
/// ```
/// use warpframe::prelude::*;
///
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let nation = session.read_parquet("data/tpch/nation.parquet")?;
/// let region = session.read_parquet("data/tpch/region.parquet")?;
/// let counts = nation
///     .join(&region, JoinType::Inner, ["n_regionkey"], ["r_regionkey"])?
///     .group_by([col("r_name")])
///     .agg([count_rows().alias("nations")])?
///     .sort([asc(col("r_name"))])?;
/// counts.show()?;
/// assert_eq!(counts.num_rows(), 5);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub type DataFrame = AnyFrame<Eager>;

/// The state of a [`DataFrame`]: its rows.
#[derive(Clone)]
pub struct Eager {
    pub(super) schema: SchemaRef,
    pub(super) data: Data,
}

impl StateOfFrame for Eager {
    fn grow(frame: &DataFrame, verb: Verb, right: Option<&DataFrame>) -> Result<DataFrame> {
        let core = &frame.core;
        let answer = match verb.is_small() {
            true => {
                let table =
                    |of: &DataFrame| Ok::<_, Error>(Arc::new(Recipe::Table(frame.source_of(of)?)));
                let (left, right) = (table(frame)?, right.map(table).transpose()?);
                core.run_recipe(&Recipe::grown(verb, left, right))
            }
            false => {
                let plan = |of: &DataFrame| scan(&frame.source_of(of)?);
                core.run(&verb.plan(&plan(frame)?, right.map(plan).transpose()?.as_ref())?)
            }
        };
        Ok(DataFrame::new(core.clone(), answer?))
    }

    fn lazy(frame: &DataFrame) -> Result<LazyFrame> {
        frame.lazy()
    }

    fn done(frame: LazyFrame) -> Result<DataFrame> {
        frame.collect()
    }

    fn columns(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn rows(&self) -> Option<usize> {
        Some(self.data.rows())
    }
}

impl LazyFrame {
    /// The frame of the rows of an eager one, wherever they lie.
    pub(super) fn of_frame(core: &Arc<Core>, frame: &DataFrame) -> Result<LazyFrame> {
        let source = core.source_of(&frame.state.schema, &frame.state.data)?;
        match core.device() {
            Some(_) => LazyFrame::of_recipe(core, Recipe::Table(source)),
            None => LazyFrame::of_plan(core, scan(&source)?),
        }
    }

    /// Runs the query.
    ///
    /// # Errors
    /// What only running shows: files' bad content, overflow, division by zero, too little device
    /// memory; in strict mode a part that the device cannot run.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// session.sql("SELECT 1")?.collect()?.show()?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn collect(&self) -> Result<DataFrame> {
        match self.recipe() {
            Some(recipe) => self.core.run_recipe(recipe),
            None => self.core.run(self.plan()?),
        }
        .map(|answer| DataFrame::new(self.core.clone(), answer))
    }
}

impl<S: FrameState> AnyFrame<S> {
    /// Rows that a verb must know to be planned, such as those that become columns: the query runs.
    pub(super) fn looked_at(
        &self,
        make: impl FnOnce(LazyFrame) -> Result<LazyFrame>,
    ) -> Result<DataFrame> {
        make(S::lazy(self)?)?.collect()
    }
}

impl DataFrame {
    pub(crate) fn new(core: Arc<Core>, Answer { schema, data }: Answer) -> Self {
        DataFrame { core, state: Eager { schema, data } }
    }

    /// A frame, as plans of this frame's session read it.
    pub(super) fn source_of(&self, frame: &DataFrame) -> Result<PlanTable> {
        self.core.source_of(&frame.state.schema, &frame.state.data)
    }

    /// The frame as a table of a session.
    pub(crate) fn provider_in(&self, core: &Core) -> Result<Arc<dyn TableProvider>> {
        core.provider_of(&self.state.schema, &self.state.data)
    }

    /// A lazy frame over these rows.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2)")?.collect()?;
    /// assert_eq!(frame.lazy()?.filter(col("column1").gt(lit(1)))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn lazy(&self) -> Result<LazyFrame> {
        LazyFrame::of_frame(&self.core, self)
    }

    /// The rows as Arrow batches, copied from the device if they lie there. No rows may be no
    /// batches.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let batches = session.sql("VALUES (1), (2)")?.collect()?.to_arrow()?;
    /// assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn to_arrow(&self) -> Result<Vec<RecordBatch>> {
        match &self.state.data {
            Data::Device(table) => self.core.as_statement(|| table.to_batches()),
            Data::Host(batches) => Ok(batches.to_vec()),
            Data::Divided(rows) => self.core.as_statement(|| rows.batches(DOWNLOAD_ROWS).collect()),
        }
    }

    /// The rows as Arrow batches of at most `rows` rows, each copied from the device only when it
    /// is asked for: for results that need not be in host memory as a whole.
    ///
    /// # Errors
    /// Those of [`DataFrame::to_arrow`], one batch at a time.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (3)")?.collect()?;
    /// let sizes = frame.batches(2).map(|batch| Ok(batch?.num_rows())).collect::<warpframe::Result<Vec<_>>>()?;
    /// assert_eq!(sizes, [2, 1]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn batches(&self, rows: usize) -> impl Iterator<Item = Result<RecordBatch>> + '_ {
        let rows = rows.max(1);
        let (mut table, mut host, mut divided) = (None, None, None);
        match &self.state.data {
            Data::Device(kept) => match kept.rows_here() {
                RowsHere::Device(here) => table = Some(here),
                RowsHere::Host(batches) => host = Some(batches),
            },
            Data::Host(batches) => host = Some(batches.clone()),
            Data::Divided(of_parts) => divided = Some(of_parts.batches(rows)),
        }
        let starts = move |len: usize| (0..len).step_by(rows);
        let of_table = table.into_iter().flat_map(move |table| {
            starts(table.rows).flat_map(move |start| {
                match table.slice(start, rows).to_batches(rows) {
                    Ok(batches) => batches.into_iter().map(Ok).collect(),
                    Err(error) => vec![Err(error)],
                }
            })
        });
        let numbers = 0..host.as_ref().map_or(0, |batches| batches.len());
        let of_host =
            numbers.filter_map(move |at| host.as_ref()?.get(at).cloned()).flat_map(move |batch| {
                let len = batch.num_rows();
                starts(len).map(move |start| Ok(batch.slice(start, rows.min(len - start))))
            });
        of_table.chain(of_host).chain(divided.into_iter().flatten())
    }

    /// The number of rows.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.sql("VALUES (1), (2)")?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn num_rows(&self) -> usize {
        self.state.rows().unwrap_or_default()
    }

    /// Whether there is no row.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert!(session.sql("SELECT 1 WHERE false")?.collect()?.is_empty());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.num_rows() == 0
    }

    /// The numbers of rows and of columns.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.sql("VALUES (1, 'a', 2), (3, 'b', 4)")?.collect()?.shape(), (2, 3));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn shape(&self) -> (usize, usize) {
        (self.num_rows(), self.state.schema.fields().len())
    }

    /// Whether both frames have the same names, types and rows, in the same order; null equals
    /// null. Strings are strings and bytes are bytes however they are held: as views, as files give
    /// them, with offsets or by dictionaries. Both are brought to host memory.
    ///
    /// # Errors
    /// Those of [`DataFrame::to_arrow`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1, None])?;
    /// assert!(frame.equals(&frame.reverse()?.reverse()?)?);
    /// assert!(!frame.equals(&frame.reverse()?)?);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn equals(&self, other: &DataFrame) -> Result<bool> {
        let same_type = |(one, other): (&FieldRef, &FieldRef)| {
            one.name() == other.name()
                && plain_type(one.data_type()) == plain_type(other.data_type())
        };
        let (fields, others) = (self.state.schema.fields(), other.state.schema.fields());
        if self.shape() != other.shape() || !fields.iter().zip(others).all(same_type) {
            return Ok(false);
        }
        let whole = |frame: &DataFrame| {
            let rows = concat_batches(&frame.state.schema, &frame.to_arrow()?)?;
            let plain = |column: &ArrayRef| Ok(cast(column, &plain_type(column.data_type()))?);
            rows.columns().iter().map(plain).collect::<Result<Vec<ArrayRef>>>()
        };
        Ok(whole(self)? == whole(other)?)
    }

    /// Whether the rows lie in device memory at this moment. Rows that no query uses may move to
    /// host memory where others want the room, and come back with the next query that reads them.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert!(!session.sql("SELECT 1")?.collect()?.is_on_device());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn is_on_device(&self) -> bool {
        matches!(&self.state.data, Data::Device(table) if table.is_on_device())
    }

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
    /// becomes `Date32`.
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
        let options = JsonWriteOptions { array: true };
        self.core.as_statement(|| crate::io::json_text(self.batches(WRITTEN_ROWS), options))
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
    /// there before.
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
        let by: Vec<String> = by.iter().map(|name| (*name).to_string()).collect();
        // Which columns there are not is told where the others are looked at.
        let known = by.iter().filter(|name| self.state.schema.column_with_name(name).is_some());
        let keys: Vec<SortExpr> = known.map(|name| ident(name.as_str()).sort(true, true)).collect();
        let sorted = if keys.is_empty() { self.clone() } else { self.sort(keys)? };
        self.core.as_statement(|| {
            let batches = sorted.batches(WRITTEN_ROWS);
            crate::io::write_partitioned(
                directory.as_ref(),
                &self.state.schema,
                batches,
                &by,
                format,
            )
        })
    }
}
