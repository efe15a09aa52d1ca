//! Nulls and NaN.

use crate::error::Result;
use crate::frame::expr::{Columns, Expr, Fill, IntoValue, col, lit};
use crate::frame::{AnyFrame, FrameState};

impl<S: FrameState> AnyFrame<S> {
    /// A value in place of the nulls of these columns.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]), a value of a type that does not fit.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1, NULL), (NULL, 'a')")?;
    /// let filled = frame.fill_null(["column1"], 0)?.fill_null(strings(), "")?;
    /// assert_eq!(filled.filter(col("column1").eq(0).or(col("column2").eq("")))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn fill_null(&self, columns: impl Columns, value: impl IntoValue) -> Result<Self> {
        let value = value.into_value();
        self.each("fill_null", columns, |column| column.fill_null(value.clone()))
    }

    /// [`Fill`]'s value in place of the nulls of these columns; the order of the rows stays.
    ///
    /// # Errors
    /// As [`AnyFrame::fill_null`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1.0), (NULL), (3.0)")?.fill_null_with(["column1"], Fill::Mean)?;
    /// assert_eq!(frame.filter(col("column1").eq(2.0))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn fill_null_with(&self, columns: impl Columns, fill: Fill) -> Result<Self> {
        self.each("fill_null_with", columns, |column| column.fill_null_with(fill))
    }

    /// A value in place of NaN in these columns, which are floats; null stays null.
    ///
    /// # Errors
    /// As [`AnyFrame::fill_null`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT double 'NaN' AS x, 'a' AS s")?.fill_nan(floats(), 0.0)?;
    /// assert_eq!(frame.filter(col("x").eq(0.0))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn fill_nan(&self, columns: impl Columns, value: impl IntoValue) -> Result<Self> {
        let value = value.into_value();
        self.each("fill_nan", columns, |column| column.fill_nan(value.clone()))
    }

    /// The values between in place of the nulls of these columns; see [`Expr::interpolate`].
    ///
    /// # Errors
    /// As [`AnyFrame::fill_null`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1.0), (NULL), (5.0)")?.interpolate(floats())?;
    /// assert_eq!(frame.filter(col("column1").eq(3.0))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn interpolate(&self, columns: impl Columns) -> Result<Self> {
        self.each("interpolate", columns, Expr::interpolate)
    }

    /// The rows in which none of these columns is null. Their order stays.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]).
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1, NULL), (NULL, 'a'), (2, 'b')")?;
    /// assert_eq!(frame.drop_nulls(all())?.collect()?.num_rows(), 1);
    /// assert_eq!(frame.drop_nulls(["column1"])?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn drop_nulls(&self, columns: impl Columns) -> Result<Self> {
        self.kept("drop_nulls", columns, Expr::is_not_null)
    }

    /// The rows in which none of these columns, which are floats, is NaN. Their order stays.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]).
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1.0), (double 'NaN'), (NULL)")?;
    /// assert_eq!(frame.drop_nans(floats())?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn drop_nans(&self, columns: impl Columns) -> Result<Self> {
        self.kept("drop_nans", columns, |column| column.is_nan().is_not_true())
    }

    /// The number of nulls in each column: one row.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let nulls = session.sql("VALUES (1, NULL), (NULL, NULL)")?.null_count()?;
    /// assert_eq!(nulls.filter(col("column1").eq(1).and(col("column2").eq(2)))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn null_count(&self) -> Result<Self> {
        self.made("null_count", |frame| {
            let counts =
                frame.column_names().into_iter().map(|name| col(&name).null_count().alias(name));
            frame.select(counts.collect::<Vec<_>>())
        })
    }

    /// All columns, and these as a function makes them.
    pub(super) fn each(
        &self,
        verb: &'static str,
        columns: impl Columns,
        change: impl Fn(Expr) -> Expr,
    ) -> Result<Self> {
        let names = self.names(columns).map_err(|error| error.in_verb(verb))?;
        self.made(verb, |frame| {
            let changed = names.iter().map(|name| change(col(name)).alias(name));
            frame.with_columns(changed.collect::<Vec<_>>())
        })
    }

    fn kept(
        &self,
        verb: &'static str,
        columns: impl Columns,
        is_kept: impl Fn(Expr) -> Expr,
    ) -> Result<Self> {
        let names = self.names(columns).map_err(|error| error.in_verb(verb))?;
        let predicate =
            names.into_iter().map(|name| is_kept(col(name))).reduce(|all, one| all.and(one));
        self.made(verb, |frame| frame.filter(predicate.unwrap_or_else(|| lit(true))))
    }
}
