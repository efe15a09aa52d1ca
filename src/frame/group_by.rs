//! Frames with their rows in groups.

use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr as df;

use super::any::FrameState;
use super::base::AnyFrame;
use super::expr::{Columns, Expr, col, count_rows, row_number, with_own_names};
use crate::error::Result;
use crate::query::Verb;

/// A frame with its rows grouped; see [`AnyFrame::group_by`].
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let groups: GroupBy<LazyFrame> = session.sql("VALUES ('a', 1), ('b', 2)")?.group_by(["column1"]);
/// assert_eq!(groups.agg([col("column2").max()])?.collect()?.num_rows(), 2);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is computed before agg"]
pub struct GroupBy<F> {
    frame: F,
    keys: Vec<Expr>,
    order: GroupOrder,
}

/// In which order groups come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GroupOrder {
    Any,
    /// That of their first rows.
    FirstRows,
    Keys,
}

impl<S: FrameState> AnyFrame<S> {
    /// Groups of rows in which these expressions are equal (null equals null); [`GroupBy::agg`]
    /// makes a row of each. No expressions make one group of all rows.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a', 1), ('b', 2), ('a', 3)")?;
    /// assert_eq!(frame.group_by(["column1"]).agg([col("column2").sum()])?.collect()?.num_rows(), 2);
    /// assert_eq!(frame.collect()?.group_by([col("column2") % 2]).mean()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn group_by(&self, keys: impl Columns) -> GroupBy<AnyFrame<S>> {
        GroupBy { frame: self.clone(), keys: keys.into_columns(), order: GroupOrder::Any }
    }
}

/// Which columns an aggregate has a meaning for.
fn is_number(dtype: &DataType) -> bool {
    dtype.is_numeric() || *dtype == DataType::Null
}

macro_rules! of_columns {
    ($($(#[$doc:meta])* $name:ident $takes:expr, $aggregate:expr;)*) => {
        $($(#[$doc])*
        ///
        /// # Errors
        /// As [`GroupBy::agg`].
        pub fn $name(self) -> Result<AnyFrame<S>> {
            self.each(stringify!($name), $takes, $aggregate)
        }
        )*
    };
}

impl<S: FrameState> GroupBy<AnyFrame<S>> {
    /// With the groups in the order of their first rows. Otherwise their order is not promised.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('b', 1), ('a', 2), ('b', 3)")?;
    /// let first = frame.group_by(["column1"]).maintain_order().agg([col("column2").sum()])?.head(1)?;
    /// assert_eq!(first.filter(col("column1").eq("b"))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn maintain_order(mut self) -> Self {
        self.order = GroupOrder::FirstRows;
        self
    }

    /// With the groups in order of their keys.
    pub(super) fn sorted(mut self) -> Self {
        self.order = GroupOrder::Keys;
        self
    }

    /// One row a group: the keys, then these expressions of aggregates.
    ///
    /// # Errors
    /// Unknown columns; columns that are neither keys nor in an aggregate; two results of one name.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a', 1), ('b', 2), ('a', 3)")?.group_by(["column1"]);
    /// let sums = frame.agg([sum("column2").alias("total"), (max("column2") - min("column2")).alias("range")])?;
    /// assert_eq!(sums.column_names(), ["column1", "total", "range"]);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn agg(self, aggregates: impl Columns) -> Result<AnyFrame<S>> {
        self.aggregated("agg", aggregates.into_columns())
    }

    of_columns! {
        /// The sums of all columns of numbers, under their names.
        sum is_number, Expr::sum;
        /// The means of all columns of numbers, under their names.
        mean is_number, Expr::mean;
        /// The medians of all columns of numbers, under their names.
        median is_number, Expr::median;
        /// The standard deviations of all columns of numbers, under their names.
        std is_number, Expr::std;
        /// The variances of all columns of numbers, under their names.
        var is_number, Expr::var;
        /// The least values of all columns, under their names.
        min |_| true, Expr::min;
        /// The greatest values of all columns, under their names.
        max |_| true, Expr::max;
        /// The values of all columns in each group's first row, under their names.
        first |_| true, Expr::first;
        /// The values of all columns in each group's last row, under their names.
        last |_| true, Expr::last;
        /// The numbers of values of all columns that are not null, under their names.
        count |_| true, Expr::count;
        /// The numbers of different values of all columns, null being one, under their names.
        n_unique |_| true, Expr::n_unique;
        /// The values of all columns as lists, in the order of the rows, under their names.
        implode |_| true, Expr::implode;
    }

    /// The quantiles of all columns of numbers, under their names; see [`Expr::quantile`].
    ///
    /// # Errors
    /// As [`GroupBy::agg`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a', 1.0), ('a', 2.0)")?;
    /// let found = frame.group_by(["column1"]).quantile(0.25)?.filter(col("column2").eq(1.25))?;
    /// assert_eq!(found.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn quantile(self, share: f64) -> Result<AnyFrame<S>> {
        self.each("quantile", is_number, |values| values.quantile(share))
    }

    /// The number of rows of each group, as a column `len`.
    ///
    /// # Errors
    /// As [`GroupBy::agg`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a'), ('b'), ('a')")?.group_by(["column1"]).len()?;
    /// assert_eq!(frame.filter(col("len").eq(2))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn len(self) -> Result<AnyFrame<S>> {
        self.aggregated("len", vec![count_rows().alias("len")])
    }

    /// The first `n` rows of each group, with all columns, in the order of the rows.
    ///
    /// # Errors
    /// Unknown columns.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a', 1), ('a', 2), ('b', 3), ('a', 4)")?;
    /// assert_eq!(frame.group_by(["column1"]).head(2)?.collect()?.num_rows(), 3);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn head(self, n: usize) -> Result<AnyFrame<S>> {
        let keys = self.keys.clone();
        self.frame.made("head", |frame| frame.filter(row_number().over(keys).lt_eq(n as u64)))
    }

    /// The last `n` rows of each group, with all columns, in the order of the rows.
    ///
    /// # Errors
    /// Unknown columns.
    pub fn tail(self, n: usize) -> Result<AnyFrame<S>> {
        let keys = || self.keys.clone();
        let behind = count_rows().over(keys()) - row_number().over(keys()).cast(DataType::Int64);
        self.frame
            .made("tail", |frame| frame.filter(behind.lt(i64::try_from(n).unwrap_or(i64::MAX))))
    }

    /// An aggregate of each column that is no key.
    fn each(
        self,
        verb: &'static str,
        takes: impl Fn(&DataType) -> bool,
        aggregate: impl Fn(Expr) -> Expr,
    ) -> Result<AnyFrame<S>> {
        let keys = self.frame.results(self.keys.clone()).map_err(|error| error.in_verb(verb))?;
        let keys: Vec<String> = keys.iter().map(|key| key.qualified_name().1).collect();
        let schema = self.frame.schema();
        let columns = schema
            .fields()
            .iter()
            .filter(|field| !keys.contains(field.name()) && takes(field.data_type()));
        let aggregates =
            columns.map(|field| aggregate(col(field.name())).alias(field.name())).collect();
        self.aggregated(verb, aggregates)
    }

    fn aggregated(self, verb: &'static str, aggregates: Vec<Expr>) -> Result<AnyFrame<S>> {
        let GroupBy { frame, keys, order } = self;
        let (keys, mut aggregates) = frame
            .results(keys)
            .and_then(|keys| Ok((keys, frame.results(aggregates)?)))
            .and_then(|(keys, aggregates)| {
                with_own_names(keys.iter().chain(&aggregates)).map(|()| (keys, aggregates))
            })
            .map_err(|error| error.in_verb(verb))?;
        let names =
            |of: &[df::Expr]| of.iter().map(|expr| expr.qualified_name().1).collect::<Vec<_>>();
        match order {
            GroupOrder::Any => {
                let grouped = S::grow(&frame, Verb::Aggregate { keys, aggregates }, None);
                grouped.map_err(|error| error.in_verb(verb))
            }
            GroupOrder::Keys => frame.made(verb, |frame| {
                let order = names(&keys);
                frame.verb(Verb::Aggregate { keys, aggregates }, None)?.sort(order)
            }),
            GroupOrder::FirstRows => {
                let place = frame.unused_name("row");
                frame.made(verb, |frame| {
                    let columns = [names(&keys), names(&aggregates)].concat();
                    aggregates.push(df::Expr::from(col(&place).min().alias(&place)));
                    let numbered = frame.with_columns([row_number().alias(&place)])?;
                    let grouped = numbered.verb(Verb::Aggregate { keys, aggregates }, None)?;
                    grouped.sort([&place])?.select(columns)
                })
            }
        }
    }
}
