//! The verbs that are SQL's clauses.

use datafusion::logical_expr as df;

use crate::error::Result;
use crate::frame::expr::{Columns, IntoValue, SortKeys, with_own_names};
use crate::frame::{AnyFrame, FrameState};
use crate::query::Verb;

impl<S: FrameState> AnyFrame<S> {
    /// Exactly these expressions, evaluated for each row; or one row, where all of them are
    /// aggregates. The order of the rows stays.
    ///
    /// # Errors
    /// Unknown columns ([`crate::ErrorKind::ColumnNotFound`]), types that do not fit, two results
    /// of one name.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1, 2)")?.select([(col("column1") + col("column2")).alias("sum")])?;
    /// assert_eq!(frame.schema().field(0).name(), "sum");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn select(&self, columns: impl Columns) -> Result<Self> {
        self.selected("select", columns, Verb::Select)
    }

    /// All columns, and these expressions: each in place of the column of its name, or after all
    /// others. All see the columns as they were before. The order of the rows stays.
    ///
    /// # Errors
    /// As [`AnyFrame::select`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT 1 AS a, 2 AS b")?;
    /// let frame = frame.with_columns([(col("a") * 10).alias("b"), col("b").alias("c")])?;
    /// assert_eq!(frame.column_names(), ["a", "b", "c"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn with_columns(&self, columns: impl Columns) -> Result<Self> {
        self.selected("with_columns", columns, Verb::WithColumns)
    }

    /// The rows for which the predicate is true; null is not true. Their order stays.
    ///
    /// # Errors
    /// As [`AnyFrame::select`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (NULL)")?.filter(col("column1").not_eq(1))?;
    /// assert_eq!(frame.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn filter(&self, predicate: impl IntoValue) -> Result<Self> {
        let predicates =
            self.exprs(predicate.into_value()).map_err(|error| error.in_verb("filter"))?;
        let predicate =
            predicates.into_iter().reduce(df::Expr::and).unwrap_or_else(|| df::lit(true));
        self.verb(Verb::Filter(predicate), None)
    }

    /// The rows for which the predicate is not true, null included: what [`AnyFrame::filter`]
    /// leaves out. Their order stays.
    ///
    /// # Errors
    /// As [`AnyFrame::select`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (NULL)")?.remove(col("column1").eq(1))?;
    /// assert_eq!(frame.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn remove(&self, predicate: impl IntoValue) -> Result<Self> {
        let predicates =
            self.exprs(predicate.into_value()).map_err(|error| error.in_verb("remove"))?;
        let predicate =
            predicates.into_iter().reduce(df::Expr::and).unwrap_or_else(|| df::lit(true));
        self.made("remove", |frame| frame.filter(predicate.is_not_true()))
    }

    /// The rows in order of these keys; rows equal in all of them keep their order. No keys leave
    /// all as they are.
    ///
    /// # Errors
    /// As [`AnyFrame::select`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (2, 'a'), (1, 'b')")?.sort([desc("column1"), asc("column2")])?;
    /// let frame = frame.sort(["column2"])?;
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn sort(&self, keys: impl SortKeys) -> Result<Self> {
        match self.keys("sort", keys)? {
            keys if keys.is_empty() => Ok(self.clone()),
            keys => self.verb(Verb::Sort(keys), None),
        }
    }

    /// The first `k` rows in the order of these keys, as [`AnyFrame::sort`] puts them; the others
    /// are not sorted.
    ///
    /// # Errors
    /// As [`AnyFrame::select`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (2), (3), (1)")?.top_k(2, [desc("column1")])?;
    /// assert_eq!(frame.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn top_k(&self, k: usize, by: impl SortKeys) -> Result<Self> {
        match self.keys("top_k", by)? {
            by if by.is_empty() => self.limit(0, k),
            by => self.verb(Verb::TopK { k, by }, None),
        }
    }

    /// At most `n` rows after the first `skip`.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (3)")?.limit(1, 5)?;
    /// assert_eq!(frame.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn limit(&self, skip: usize, n: usize) -> Result<Self> {
        self.verb(Verb::Limit { skip, n }, None)
    }

    /// The first `n` rows.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.read_csv("data/jets.csv")?.head(5)?.num_rows(), 5);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn head(&self, n: usize) -> Result<Self> {
        self.limit(0, n)
    }

    /// One of each set of equal rows; null equals null. The order of the rows is not promised:
    /// [`AnyFrame::unique`] keeps it, and looks at some columns only.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.sql("VALUES (1), (1), (NULL), (NULL)")?.distinct()?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn distinct(&self) -> Result<Self> {
        self.verb(Verb::Distinct, None)
    }

    /// Adds columns of window functions as [`AnyFrame::with_columns`] does, but the rows may come
    /// in another order: for verbs that bring them into an order of their own.
    pub(super) fn with_columns_in_any_order(&self, columns: impl Columns) -> Result<Self> {
        self.selected("with_columns", columns, Verb::WithColumnsInAnyOrder)
    }

    fn selected(
        &self,
        verb: &'static str,
        columns: impl Columns,
        make: fn(Vec<df::Expr>) -> Verb,
    ) -> Result<Self> {
        let results =
            self.results(columns).and_then(|results| with_own_names(&results).map(|()| results));
        self.verb(make(results.map_err(|error| error.in_verb(verb))?), None)
    }
}
