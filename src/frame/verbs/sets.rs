//! Rows of several frames: behind one another, beside one another, and as sets.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr as df;
use datafusion::logical_expr::JoinType;
use datafusion::scalar::ScalarValue;

use crate::error::{Error, ErrorKind, Result};
use crate::frame::expr::{Columns, Concatenate, Expr, IntoColumn, col, lit, row_number};
use crate::frame::{AnyFrame, FrameState, LazyFrame};
use crate::query::Verb;

/// How frames are put together; see [`AnyFrame::concat`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concat {
    /// Rows behind one another; all frames have the same names of columns, in the same order.
    Vertical,
    /// Rows behind one another; columns are matched by name, and what a frame has not is null.
    Diagonal,
    /// Columns beside one another, row by row; a shorter frame is continued with nulls.
    Horizontal,
}

impl<S: FrameState> AnyFrame<S> {
    /// The rows of both frames, duplicates included, this one's first; columns are matched by
    /// position.
    ///
    /// # Errors
    /// Frames of other numbers of columns, or of types that have nothing in common.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let one = session.sql("SELECT 1 AS x")?;
    /// assert_eq!(one.union(&one)?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn union(&self, other: &Self) -> Result<Self> {
        self.verb(Verb::Union, Some(other))
    }

    /// The rows that both frames have, each once; null equals null. Columns are matched by
    /// position. The order of the rows is not promised.
    ///
    /// # Errors
    /// As [`AnyFrame::union`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let (one, other) = (session.sql("VALUES (1), (1), (2)")?, session.sql("VALUES (1), (3)")?);
    /// assert_eq!(one.intersect(&other)?.collect()?.num_rows(), 1);
    /// assert_eq!(one.except(&other)?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn intersect(&self, other: &Self) -> Result<Self> {
        self.verb(Verb::Intersect { all: false }, Some(other))
    }

    /// The rows that the other frame has not, each once; null equals null. Columns are matched by
    /// position. The order of the rows is not promised.
    ///
    /// # Errors
    /// As [`AnyFrame::union`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let (one, other) = (session.sql("VALUES (1), (2), (2)")?, session.sql("VALUES (1)")?);
    /// assert_eq!(one.except(&other)?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn except(&self, other: &Self) -> Result<Self> {
        self.verb(Verb::Except { all: false }, Some(other))
    }

    /// Whether each row of this frame is among the rows of another, as a column `is_in` behind the
    /// others: rows are compared by these columns, and null equals null. The order of the rows
    /// stays.
    ///
    /// # Errors
    /// Unknown columns ([`ErrorKind::ColumnNotFound`]); a frame that has a column `is_in`.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let (one, other) = (session.sql("VALUES (1), (2)")?, session.sql("VALUES (2), (2)")?);
    /// assert_eq!(one.is_in(&other, ["column1"])?.filter(col("is_in"))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn is_in(&self, other: &Self, on: impl Columns) -> Result<Self> {
        let on = self.names(on).map_err(|error| error.in_verb("is_in"))?;
        self.made_with("is_in", other, |frame, other| {
            let (row, mark) =
                (frame.unused_name("row"), other.unused_name(&frame.unused_name("found")));
            let names = frame.column_names();
            let known = other.select(&on)?.distinct()?.with_columns([lit(true).alias(&mark)])?;
            let marked = frame.numbered(&row)?.join_rows(&known, JoinType::Left, &on)?;
            let columns = names.into_iter().map(IntoColumn::into_column);
            let found = col(&mark).is_not_null().alias("is_in");
            marked.sort([&row])?.select(columns.chain([found]).collect::<Vec<_>>())
        })
    }

    /// Frames as one; see [`Concat`].
    ///
    /// # Errors
    /// No frames; other names of columns, where they are not to differ, or the same ones, where
    /// they are; types that have nothing in common.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let one = session.sql("SELECT 1 AS a")?;
    /// let other = session.sql("SELECT 2 AS a, 'x' AS b")?;
    /// assert_eq!(LazyFrame::concat([&one, &one, &one], Concat::Vertical)?.collect()?.num_rows(), 3);
    /// assert_eq!(LazyFrame::concat([&one, &other], Concat::Diagonal)?.column_names(), ["a", "b"]);
    /// let beside = LazyFrame::concat([&one, &other.rename([("a", "c")])?], Concat::Horizontal)?;
    /// assert_eq!(beside.column_names(), ["a", "c", "b"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn concat<'a>(frames: impl IntoIterator<Item = &'a Self>, how: Concat) -> Result<Self>
    where
        S: 'a,
    {
        let frames: Vec<&Self> = frames.into_iter().collect();
        let Some((first, others)) = frames.split_first() else {
            return Err(Error::unsupported("no frames", "there is no schema").in_verb("concat"));
        };
        let as_long =
            |other: &&Self| first.state.rows().is_some_and(|rows| other.state.rows() == Some(rows));
        let beside = match others.iter().all(as_long) {
            true => JoinType::Left,
            false => JoinType::Full,
        };
        first.made("concat", |frame| {
            let others = others.iter().map(|other| S::lazy(other)).collect::<Result<Vec<_>>>()?;
            match how {
                Concat::Vertical => others.iter().try_fold(frame, |all, other| all.behind(other)),
                Concat::Diagonal => frame.diagonal(&others),
                Concat::Horizontal => {
                    others.iter().try_fold(frame, |all, other| all.beside(other, beside))
                }
            }
        })
    }
}

/// [`concat`](crate::frame::expr::concat) of frames: their rows behind one another.
impl<S: FrameState> Concatenate for &AnyFrame<S> {
    type Whole = Result<AnyFrame<S>>;

    fn concatenated(items: Vec<Self>) -> Self::Whole {
        AnyFrame::concat(items, Concat::Vertical)
    }
}

impl<S: FrameState> Concatenate for AnyFrame<S> {
    type Whole = Result<AnyFrame<S>>;

    fn concatenated(items: Vec<Self>) -> Self::Whole {
        AnyFrame::concat(&items, Concat::Vertical)
    }
}

impl LazyFrame {
    /// The rows with their numbers, from 1 on. The column is known to ascend, so that a sort by it
    /// moves nothing.
    pub(in crate::frame) fn numbered(&self, name: &str) -> Result<LazyFrame> {
        self.with_columns([row_number().alias(name)])
    }

    /// A join in which null equals null.
    pub(in crate::frame) fn join_rows(
        &self,
        right: &LazyFrame,
        kind: JoinType,
        on: &[String],
    ) -> Result<LazyFrame> {
        let (left_on, right_on) = (on.to_vec(), on.to_vec());
        let verb =
            Verb::Join { kind, left_on, right_on, suffix: "_right".into(), nulls_equal: true };
        self.verb(verb, Some(right))
    }

    fn behind(&self, other: &LazyFrame) -> Result<LazyFrame> {
        let (own, others) = (self.column_names(), other.column_names());
        if own != others {
            let (what, expected) = ("columns of frames behind one another".into(), own.join(", "));
            return Err(ErrorKind::TypeMismatch { what, expected, found: others.join(", ") }.into());
        }
        self.union(other)
    }

    fn diagonal(&self, others: &[LazyFrame]) -> Result<LazyFrame> {
        let mut fields: Vec<(String, DataType)> = vec![];
        for frame in std::iter::once(self).chain(others) {
            for field in frame.schema().fields() {
                if !fields.iter().any(|(name, _)| name == field.name()) {
                    fields.push((field.name().clone(), field.data_type().clone()));
                }
            }
        }
        let widened = |frame: &LazyFrame| {
            let known = frame.column_names();
            let column = |(name, dtype): &(String, DataType)| match known.contains(name) {
                true => Ok(col(name)),
                false => {
                    let null = df::Expr::Literal(ScalarValue::try_from(dtype)?, None);
                    Ok(Expr::from(null).alias(name))
                }
            };
            frame.select(fields.iter().map(column).collect::<Result<Vec<Expr>>>()?)
        };
        others.iter().try_fold(widened(self)?, |all, other| all.union(&widened(other)?))
    }

    /// `kind` may be `Left` where the other has no more rows.
    fn beside(&self, other: &LazyFrame, kind: JoinType) -> Result<LazyFrame> {
        let (own, others) = (self.column_names(), other.column_names());
        if let Some(name) = others.iter().find(|name| own.contains(name)) {
            let what = format!("two columns named {name:?} beside one another");
            return Err(Error::unsupported(what, "names differ, or one is renamed before"));
        }
        let row = self.unused_name(&other.unused_name("row"));
        let (left, right) = (self.numbered(&row)?, other.numbered(&row)?);
        let both = left.join_rows(&right, kind, std::slice::from_ref(&row))?;
        both.sort([&row])?.drop([&row])
    }
}
