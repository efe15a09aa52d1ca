//! Frames that are results: how plans become such, and how these are read.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::catalog::TableProvider;

use super::any::{FrameState, StateOfFrame};
use super::base::AnyFrame;
use super::lazy::LazyFrame;
use crate::error::{Error, Result};
use crate::io::{DOWNLOAD_ROWS, RowsHere, plain_type};
use crate::plan::PlanTable;
use crate::query::{Answer, Core, Data, Recipe, Verb, scan};

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

    fn schema(frame: &DataFrame) -> SchemaRef {
        frame.state.columns()
    }

    fn rows(&self) -> Option<usize> {
        Some(self.data.rows())
    }
}

impl LazyFrame {
    /// The frame of the rows of an eager one, wherever they lie.
    pub(super) fn of_frame(core: &Arc<Core>, frame: &DataFrame) -> Result<LazyFrame> {
        let source = core.source_of(&frame.state.schema, &frame.state.data)?;
        match core.engine() {
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
}
