//! Values in place of nulls and NaN.

use datafusion::arrow::datatypes::DataType;
use datafusion::functions::expr_fn;
use datafusion::logical_expr::expr::NullTreatment;

use super::windows::{RowsBound, rows_frame};
use super::{Expr, IntoValue, row_number, when};

/// What takes the place of nulls.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES (NULL), (2), (NULL), (4)")?;
/// let filled = frame.fill_null_with(all(), Fill::Forward)?;
/// assert_eq!(filled.filter(col("column1").eq(2))?.collect()?.num_rows(), 2);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// The last value before, in the order of the rows; where there is none, null stays.
    Forward,
    /// The next value after, in the order of the rows; where there is none, null stays.
    Backward,
    /// The mean of the column, or of the partition.
    Mean,
    /// The median.
    Median,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// 0.
    Zero,
    /// 1.
    One,
}

/// Nulls and NaN.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES (1.0), (NULL), (double 'NaN')")?.with_columns([
///     col("column1").fill_null(0.0).fill_nan(-1.0).alias("known"),
///     col("column1").forward_fill().alias("last"),
/// ])?;
/// assert_eq!(frame.filter(col("known").lt_eq(0).or(col("last").eq(1)))?.collect()?.num_rows(), 3);
/// # Ok::<(), warpframe::Error>(())
/// ```
impl Expr {
    /// Another value where it is null.
    pub fn fill_null(self, value: impl IntoValue) -> Expr {
        self.with(value, |own, value| expr_fn::coalesce(vec![own, value]))
    }

    /// [`Fill`]'s value where it is null.
    pub fn fill_null_with(self, fill: Fill) -> Expr {
        match fill {
            Fill::Forward => self.forward_fill(),
            Fill::Backward => self.backward_fill(),
            Fill::Mean => self.clone().fill_null(self.mean()),
            Fill::Median => self.clone().fill_null(self.median()),
            Fill::Min => self.clone().fill_null(self.min()),
            Fill::Max => self.clone().fill_null(self.max()),
            Fill::Zero => self.fill_null(0),
            Fill::One => self.fill_null(1),
        }
    }

    /// The last value before, where it is null, in the order of the rows.
    pub fn forward_fill(self) -> Expr {
        self.known(super::last_value, RowsBound::First, RowsBound::Here)
    }

    /// The next value after, where it is null, in the order of the rows.
    pub fn backward_fill(self) -> Expr {
        self.known(super::first_value, RowsBound::Here, RowsBound::Last)
    }

    /// Another value where it is NaN.
    pub fn fill_nan(self, value: impl IntoValue) -> Expr {
        let name = self.name.clone();
        when(self.clone().is_nan()).then(value).otherwise(self).called(name)
    }

    /// Where it is null, the value on the straight line between the nearest values before and
    /// after, by numbers of rows; null where one of these is missing. Floats of 64 bits.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (NULL), (NULL), (7)")?;
    /// let frame = frame.select([col("column1").interpolate().alias("x")])?;
    /// assert_eq!(frame.filter(col("x").is_in([3.0, 5.0]))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn interpolate(self) -> Expr {
        let value = self.cast(DataType::Float64);
        let place = row_number().cast(DataType::Float64);
        let known = when(value.clone().is_not_null()).then(place.clone()).end();
        let (before, after) = (value.clone().forward_fill(), value.clone().backward_fill());
        let (first, last) = (known.clone().forward_fill(), known.backward_fill());
        let share = (place - first.clone()) / (last - first);
        when(value.clone().is_null())
            .then(before.clone() + (after - before) * share)
            .otherwise(value)
    }

    /// The last or first value that is not null, among rows of the partition.
    fn known(self, function: fn(Expr) -> Expr, start: RowsBound, end: RowsBound) -> Expr {
        function(self).windowed(|window| {
            window.params.window_frame = rows_frame(start, end);
            window.params.null_treatment = Some(NullTreatment::IgnoreNulls);
        })
    }

    /// Null where a condition is not true.
    pub(in crate::frame) fn only_where(self, condition: Expr) -> Expr {
        when(condition).then(self).end()
    }
}
