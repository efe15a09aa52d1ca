//! Values of a frame: its columns as vectors, its rows, single cells.

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::logical_expr::ident;
use datafusion::scalar::ScalarValue;

use super::DataFrame;
use super::cells::{FromColumn, read_as};
use super::expr::{Expr, col, unknown};
use crate::error::{ErrorKind, Result};
use crate::io::{DOWNLOAD_ROWS, RowsHere};
use crate::query::Data;

/// Rows that are downloaded together where rows are read one after the other.
const ROWS_AT_A_TIME: usize = 1 << 16;

/// One column of a frame, where the frame lies. Clones share it. Two are equal as frames of one
/// column are: in name, type and values.
///
/// ```
/// use warpframe::prelude::*;
///
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let jets = frame!(session; "px" => [3.0, 4.0, 0.5], "tag" => ["b", None, "c"])?;
/// assert_eq!(jets.column("px")?.to_vec::<f64>()?, [3.0, 4.0, 0.5]);
/// assert_eq!(jets.column("tag")?.to_vec::<Option<String>>()?[1], None);
/// assert_eq!(jets.column("px")?.get::<f64>(1)?, 4.0);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Series(DataFrame);

macro_rules! aggregates {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        ///
        /// # Errors
        /// Types that have no such aggregate; those of [`Series::to_vec`].
        pub fn $name<T: FromColumn>(&self) -> Result<T> {
            self.aggregated(Expr::$name)
        }
        )*
    };
}

/// Aggregates of the values that are not null, each computed where the column lies. `T` is as for
/// [`Series::to_vec`]: an `Option` where there may be no value.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = frame!(session; "x" => [1, 4, 1], "none" => vec![None::<f64>; 3])?;
/// let x = frame.column("x")?;
/// assert_eq!((x.sum::<i64>()?, x.mean::<f64>()?, x.max::<i64>()?), (6, 2.0, 4));
/// assert_eq!(frame.column("none")?.sum::<Option<f64>>()?, None);
/// # Ok::<(), warpframe::Error>(())
/// ```
impl Series {
    aggregates! {
        /// The sum; see [`Expr::sum`].
        sum;
        /// The arithmetic mean; see [`Expr::mean`].
        mean;
        /// The least value.
        min;
        /// The greatest value.
        max;
        /// The median; see [`Expr::median`].
        median;
        /// The standard deviation; see [`Expr::std`].
        std;
    }
}

impl Series {
    /// The column's name.
    pub fn name(&self) -> &str {
        self.0.state.schema.field(0).name()
    }

    /// The type of its values.
    pub fn data_type(&self) -> &DataType {
        self.0.state.schema.field(0).data_type()
    }

    /// The number of values, nulls included.
    pub fn len(&self) -> usize {
        self.0.num_rows()
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values as one Arrow array in host memory.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfDeviceMemory`] where the download needs room that there is not.
    pub fn to_array(&self) -> Result<ArrayRef> {
        Ok(concat_batches(&self.0.state.schema, &self.0.to_arrow()?)?.column(0).clone())
    }

    /// The values as a vector. `T` may be wider than the column's type ([`FromColumn`]); an
    /// `Option` holds nulls.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`] where `T` does not hold each value of the column's type, or
    /// there is a null and `T` is no `Option`.
    pub fn to_vec<T: FromColumn>(&self) -> Result<Vec<T>> {
        let array = read_as::<T>(self.name(), &self.to_array()?)?;
        (0..array.len())
            .map(|row| T::value_of(&array, row).ok_or_else(|| null::<T>(self.name(), row)))
            .collect()
    }

    /// The value of a row, from 0 on. Each call copies one value from the device: to read many,
    /// use [`Series::to_vec`].
    ///
    /// # Errors
    /// [`ErrorKind::RowNotFound`]; those of [`Series::to_vec`].
    pub fn get<T: FromColumn>(&self, row: usize) -> Result<T> {
        self.0.get(row, self.name())
    }

    fn aggregated<T: FromColumn>(&self, aggregate: fn(Expr) -> Expr) -> Result<T> {
        self.0.select(aggregate(col(self.name())))?.item()
    }

    pub(super) fn of_frame(frame: DataFrame) -> Series {
        Series(frame)
    }

    pub(super) fn frame(&self) -> &DataFrame {
        &self.0
    }

    pub(super) fn into_frame(self) -> DataFrame {
        self.0
    }

    /// The frame that has this column alone.
    pub fn to_frame(&self) -> DataFrame {
        self.0.clone()
    }
}

/// One row of a frame, in host memory.
///
/// ```
/// use warpframe::prelude::*;
///
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let people = frame!(session; "name" => ["Ada", "Emmy"], "born" => [1815, 1882])?;
/// for row in people.rows() {
///     let row = row?;
///     println!("{} was born in {}", row.get::<String>("name")?, row.get::<i32>("born")?);
/// }
/// assert_eq!(people.row(1)?.get::<String>("name")?, "Emmy");
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Row {
    batch: RecordBatch,
    /// In the batch.
    at: usize,
    /// In the frame.
    number: usize,
}

impl Row {
    /// Its number in the frame, from 0 on.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Names and types of its columns.
    pub fn schema(&self) -> SchemaRef {
        self.batch.schema()
    }

    /// The value of a column.
    ///
    /// # Errors
    /// [`ErrorKind::ColumnNotFound`]; [`ErrorKind::TypeMismatch`] as for [`Series::to_vec`].
    pub fn get<T: FromColumn>(&self, column: &str) -> Result<T> {
        let at = position(&self.batch.schema(), column)?;
        let array = read_as::<T>(column, &self.batch.column(at).slice(self.at, 1))?;
        T::value_of(&array, 0).ok_or_else(|| null::<T>(column, self.number))
    }

    /// The values of all columns, in order.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for a type that DataFusion has no single values of.
    pub fn values(&self) -> Result<Vec<ScalarValue>> {
        self.batch
            .columns()
            .iter()
            .map(|column| Ok(ScalarValue::try_from_array(column, self.at)?))
            .collect()
    }
}

impl DataFrame {
    /// A column.
    ///
    /// # Errors
    /// [`ErrorKind::ColumnNotFound`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1, 2, 3])?;
    /// assert_eq!(frame.column("x")?.to_vec::<i64>()?, [1, 2, 3]);
    /// assert!(frame.column("y").is_err());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn column(&self, name: &str) -> Result<Series> {
        position(&self.state.schema, name)?;
        Ok(Series(self.select([ident(name)])?))
    }

    /// All columns, in order.
    ///
    /// # Errors
    /// Those of [`DataFrame::select`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1], "y" => [2])?;
    /// assert_eq!(frame.columns()?.iter().map(|column| column.name()).collect::<Vec<_>>(), ["x", "y"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn columns(&self) -> Result<Vec<Series>> {
        self.state.schema.fields().iter().map(|field| self.column(field.name())).collect()
    }

    /// The value of a row (from 0 on) in a column. Each call copies one row's value from the
    /// device: to read many, use [`DataFrame::rows`] or [`Series::to_vec`].
    ///
    /// # Errors
    /// [`ErrorKind::RowNotFound`], [`ErrorKind::ColumnNotFound`]; [`ErrorKind::TypeMismatch`] as
    /// for [`Series::to_vec`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1, 2], "s" => ["a", None])?;
    /// assert_eq!(frame.get::<i64>(1, "x")?, 2);
    /// assert_eq!(frame.get::<Option<String>>(1, "s")?, None);
    /// assert!(frame.get::<i64>(2, "x").is_err());
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn get<T: FromColumn>(&self, row: usize, column: &str) -> Result<T> {
        position(&self.state.schema, column)?;
        self.row(row)?.get(column)
    }

    /// The only value of a frame of one row and one column, such as a sum.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`] for a frame of another shape, and as for [`Series::to_vec`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1.5, 2.5])?;
    /// assert_eq!(frame.select([col("x").sum()])?.item::<f64>()?, 4.0);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn item<T: FromColumn>(&self) -> Result<T> {
        match (self.num_rows(), &self.state.schema.fields()[..]) {
            (1, [field]) => self.get(0, field.name()),
            (rows, fields) => Err(ErrorKind::TypeMismatch {
                what: "the only value of a frame".into(),
                expected: "one row and one column".into(),
                found: format!("{rows} rows and {} columns", fields.len()),
            }
            .into()),
        }
    }

    /// A row, from 0 on.
    ///
    /// # Errors
    /// [`ErrorKind::RowNotFound`]; [`ErrorKind::OutOfDeviceMemory`] where the download needs room
    /// that there is not.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1, 2], "y" => [0.5, 1.5])?;
    /// assert_eq!(frame.row(1)?.get::<f64>("y")?, 1.5);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn row(&self, row: usize) -> Result<Row> {
        let rows = self.num_rows();
        if row >= rows {
            return Err(ErrorKind::RowNotFound { row: row as i128, rows: rows as u64 }.into());
        }
        let batch = concat_batches(&self.state.schema, &self.rows_from(row, 1)?)?;
        Ok(Row { batch, at: 0, number: row })
    }

    /// The rows one after the other, copied from the device some at a time.
    ///
    /// # Errors
    /// Those of [`DataFrame::to_arrow`], where some rows are copied; the iterator ends then.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1, 2, 3])?;
    /// let doubled = frame.rows().map(|row| Ok(row?.get::<i32>("x")? * 2));
    /// assert_eq!(doubled.collect::<warpframe::Result<Vec<_>>>()?, [2, 4, 6]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn rows(&self) -> impl Iterator<Item = Result<Row>> + '_ {
        let mut first = 0;
        let batches = self.batches(ROWS_AT_A_TIME).map(move |batch| {
            let start = first;
            let batch = batch?;
            first += batch.num_rows();
            Ok((start, batch))
        });
        batches.flat_map(|batch| {
            let (start, batch, error) = match batch {
                Ok((start, batch)) => (start, Some(batch), None),
                Err(error) => (0, None, Some(error)),
            };
            let rows = 0..batch.as_ref().map_or(0, RecordBatch::num_rows);
            let rows = rows.filter_map(move |at| {
                batch.clone().map(|batch| Ok(Row { batch, at, number: start + at }))
            });
            rows.chain(error.map(Err))
        })
    }

    /// The first `n` rows from row `start` on, in host memory.
    pub(super) fn rows_from(&self, start: usize, n: usize) -> Result<Vec<RecordBatch>> {
        let mut batches = match &self.state.data {
            Data::Device(table) => match table.rows_here() {
                RowsHere::Device(table) => {
                    let rows = table.slice(start, n.min(table.rows.saturating_sub(start)));
                    return self.core.as_statement(|| rows.to_batches(n.max(1)));
                }
                RowsHere::Host(batches) => batches,
            },
            Data::Host(batches) => batches.clone(),
            Data::Divided(rows) => {
                let some = rows.range(start, n);
                return self.core.as_statement(|| some.batches(DOWNLOAD_ROWS).collect());
            }
        }
        .to_vec();
        let (mut skipped, mut left) = (start, n);
        for batch in &mut batches {
            let from = skipped.min(batch.num_rows());
            let rows = left.min(batch.num_rows() - from);
            (skipped, left) = (skipped - from, left - rows);
            *batch = batch.slice(from, rows);
        }
        batches.retain(|batch| batch.num_rows() > 0);
        Ok(batches)
    }
}

/// Where a column stands.
fn position(schema: &Schema, name: &str) -> Result<usize> {
    schema
        .fields()
        .iter()
        .position(|field| field.name() == name)
        .ok_or_else(|| unknown(name, schema))
}

fn null<T: FromColumn>(column: &str, row: usize) -> crate::Error {
    ErrorKind::TypeMismatch {
        what: format!("reading column {column:?}, row {row}"),
        expected: format!("{} (an Option reads nulls)", T::column_type()),
        found: "a null".into(),
    }
    .into()
}
