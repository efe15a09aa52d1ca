//! Polars' names of what is called otherwise here. Each method is one line, and calls the other.

use datafusion::arrow::datatypes::DataType;

use super::any::FrameState;
use super::base::AnyFrame;
use super::eager::DataFrame;
use super::expr::IntoColumn;
use super::verbs::Concat;
use crate::error::Result;
use crate::io::plain_type;

impl<S: FrameState> AnyFrame<S> {
    /// The number of columns.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1, 2, 3], "s" => ["a", "b", "c"])?;
    /// assert_eq!((frame.height(), frame.width()), (3, 2));
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn width(&self) -> usize {
        self.schema().fields().len()
    }

    /// The types of the columns, in their order. Strings are `Utf8View` and bytes `BinaryView`,
    /// however they are held; [`AnyFrame::schema`] tells whether as views, with offsets or by
    /// dictionaries.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1.5], "s" => ["a"])?;
    /// assert_eq!(frame.dtypes(), [DataType::Float64, DataType::Utf8View]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn dtypes(&self) -> Vec<DataType> {
        self.schema().fields().iter().map(|field| plain_type(field.data_type())).collect()
    }

    /// [`AnyFrame::column_names`].
    pub fn get_column_names(&self) -> Vec<String> {
        self.column_names()
    }

    /// [`AnyFrame::with_columns`] of one column.
    ///
    /// # Errors
    /// As [`AnyFrame::with_columns`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1, 2])?.with_column((col("x") * 2).alias("y"))?;
    /// assert_eq!(frame.get_column_names(), ["x", "y"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn with_column(&self, column: impl IntoColumn) -> Result<Self> {
        self.with_columns(column.into_column())
    }

    /// The rows of both frames, this one's first: [`AnyFrame::concat`] of two, vertically.
    ///
    /// # Errors
    /// Frames of other names of columns, or of types that have nothing in common.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1, 2])?;
    /// assert_eq!(frame.vstack(&frame)?, frame!(session; "x" => [1, 2, 1, 2])?);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn vstack(&self, other: &Self) -> Result<Self> {
        AnyFrame::concat([self, other], Concat::Vertical)
    }
}

impl DataFrame {
    /// [`DataFrame::num_rows`].
    pub fn height(&self) -> usize {
        self.num_rows()
    }
}

/// As [`DataFrame::equals`] compares them; frames that cannot be brought to host memory equal
/// nothing. NaN equals NaN where their bits are equal.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = frame!(session; "x" => [1, None])?;
/// assert_eq!(frame, frame.reverse()?.reverse()?);
/// assert_ne!(frame, frame.reverse()?);
/// # Ok::<(), warpframe::Error>(())
/// ```
impl PartialEq for DataFrame {
    fn eq(&self, other: &DataFrame) -> bool {
        self.equals(other).unwrap_or(false)
    }
}
