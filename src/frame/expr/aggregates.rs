//! Aggregates: functions of the values of a group, a window or a whole frame.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::functions_aggregate::expr_fn;
use datafusion::functions_nested::expr_fn::array_product;
use datafusion::functions_nested::position::array_position_udf;
use datafusion::logical_expr as df;
use datafusion::logical_expr::expr::AggregateFunction;

use super::fitted::{filtered, has_filter};
use super::{Expr, IntoColumn, IntoValue};
use crate::host::booleans;
use crate::host::percentile::percentile_cont;

/// The number of rows, named `len`.
///
/// ```
/// use warpframe::prelude::*;
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let nations = session.read_parquet("data/tpch/nation.parquet")?;
/// let sizes = nations.group_by(["n_regionkey"]).agg([count_rows().alias("nations")])?;
/// assert_eq!(sizes.num_rows(), 5);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn count_rows() -> Expr {
    Expr::from(expr_fn::count(df::lit(1i64)))
}

/// The number of rows: [`count_rows`] by Polars' name.
pub fn len() -> Expr {
    count_rows()
}

fn total(values: df::Expr) -> df::Expr {
    booleans::sum().call(vec![values])
}

fn average(values: df::Expr) -> df::Expr {
    booleans::avg().call(vec![values])
}

macro_rules! aggregates {
    ($($(#[$doc:meta])* $name:ident as $function:path;)*) => {
        $($(#[$doc])*
        pub fn $name(values: impl IntoColumn) -> Expr {
            values.into_column().map($function)
        })*
    };
}

aggregates! {
    /// The number of different values, counted exactly.
    approx_distinct as expr_fn::approx_distinct;
    /// [`Expr::mean`].
    mean as average;
    /// [`Expr::all`].
    bool_and as expr_fn::bool_and;
    /// [`Expr::any`].
    bool_or as expr_fn::bool_or;
    /// [`Expr::count`].
    count as expr_fn::count;
    /// The number of different values that are not null.
    count_distinct as expr_fn::count_distinct;
    /// [`Expr::max`].
    max as expr_fn::max;
    /// The middle value, in the type of the values; [`Expr::median`] is a float.
    median as expr_fn::median;
    /// [`Expr::min`].
    min as expr_fn::min;
    /// [`Expr::std`].
    std as expr_fn::stddev;
    /// [`Expr::sum`].
    sum as total;
    /// [`Expr::var`].
    var as expr_fn::var_sample;
}

/// [`Expr::quantile`].
pub fn quantile(values: impl IntoColumn, share: f64) -> Expr {
    values.into_column().quantile(share)
}

/// Pearson's correlation of two columns, over the rows in which neither is null.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES (1, 2), (2, 4), (3, 6)")?;
/// let found = frame.select([corr("column1", "column2").alias("r")])?.filter(col("r").gt(0.999))?;
/// assert_eq!(found.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn corr(one: impl IntoColumn, other: impl IntoColumn) -> Expr {
    one.into_column().with(other.into_column(), expr_fn::corr)
}

/// Aggregates. Nulls are left out, but where a method says otherwise; NaN is the greatest number.
/// Where there is no value the result is null, of [`Expr::sum`], too (Polars' is 0).
///
/// In `agg` they are of each group, in `select` of the whole frame, in `with_columns` and `filter`
/// of the whole frame beside each row, and with [`Expr::over`] of each row's partition.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES ('a', 1), ('a', 3), ('b', 5)")?;
/// let whole = frame.select([col("column2").sum(), col("column2").mean().alias("mean")])?;
/// assert_eq!(whole.collect()?.num_rows(), 1);
/// let shares = frame.with_columns([(col("column2") * 1.0 / col("column2").sum()).alias("share")])?;
/// assert_eq!(shares.filter(col("share").gt(0.5))?.collect()?.num_rows(), 1);
/// let mixed = frame.group_by(["column1"]).agg([(col("column2").max() - col("column2").min()).alias("range")])?;
/// assert_eq!(mixed.filter(col("range").eq(2))?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
impl Expr {
    /// The sum; of booleans the number of those that are true.
    pub fn sum(self) -> Expr {
        self.map(total)
    }

    /// The arithmetic mean: of booleans the share of those that are true, of dates and timestamps a
    /// timestamp.
    pub fn mean(self) -> Expr {
        self.map(average)
    }

    /// The product, a float of 64 bits. All values are brought together as a list.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (2), (3), (NULL), (7)")?.select([col("column1").product()])?;
    /// assert_eq!(frame.filter(col("column1").eq(42.0))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn product(self) -> Expr {
        let values = self.cast(DataType::Float64);
        let known = values.clone().is_not_null();
        values.implode().filter(known).map(array_product)
    }

    /// The least value.
    pub fn min(self) -> Expr {
        self.map(expr_fn::min)
    }

    /// The greatest value.
    pub fn max(self) -> Expr {
        self.map(expr_fn::max)
    }

    /// The number of values that are not null.
    pub fn count(self) -> Expr {
        self.map(expr_fn::count)
    }

    /// The number of values, nulls included.
    pub fn len(self) -> Expr {
        self.is_null().count()
    }

    /// Whether there is a null.
    pub fn has_nulls(self) -> Expr {
        self.is_null().any().fill_null(false)
    }

    /// The value of the row in which another column is greatest; of several such rows one.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a', 1), ('b', 3), ('c', NULL)")?;
    /// let found = frame.select([
    ///     col("column1").max_by("column2").alias("max"),
    ///     col("column1").min_by("column2").alias("min"),
    /// ])?;
    /// let found = found.filter(col("max").eq("b").and(col("min").eq("a")))?;
    /// assert_eq!(found.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn max_by(self, key: impl IntoColumn) -> Expr {
        let order = vec![key.into_column().sort(false, false)];
        self.map(|values| expr_fn::first_value(values, order))
    }

    /// The value of the row in which another column is least; of several such rows one.
    pub fn min_by(self, key: impl IntoColumn) -> Expr {
        let order = vec![key.into_column().sort(true, false)];
        self.map(|values| expr_fn::first_value(values, order))
    }

    /// The most frequent value, and of several the least. (Polars' are all of them.)
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (5), (NULL), (5), (1), (9)")?;
    /// let found = frame.select([col("column1").mode()])?.filter(col("column1").eq(1))?;
    /// assert_eq!(found.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn mode(self) -> Expr {
        self.map(|values| crate::host::mode::mode().call(vec![values]))
    }

    /// The place of the greatest value, 0 being the first; of several the first. All values are
    /// brought together as a list.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (5), (NULL), (5)")?;
    /// let found = frame.select([col("column1").arg_max(), col("column1").arg_min().alias("least")])?;
    /// let found = found.filter(col("column1").eq(1).and(col("least").eq(0)))?;
    /// assert_eq!(found.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn arg_max(self) -> Expr {
        let most = self.clone().max();
        self.place_of(most)
    }

    /// The place of the least value, as [`Expr::arg_max`] has it.
    pub fn arg_min(self) -> Expr {
        let least = self.clone().min();
        self.place_of(least)
    }

    fn place_of(self, value: Expr) -> Expr {
        let known = value.clone().is_not_null();
        let place = self.implode().map(|all| array_position_udf().call(vec![all, value.tree]));
        (place.cast(DataType::Int64) - 1).only_where(known)
    }

    /// The number of nulls.
    pub fn null_count(self) -> Expr {
        if has_filter(&self.tree) {
            let name = self.name.clone();
            return super::lit(1i64).only_where(self.is_null()).count().called(name);
        }
        self.map(|values| expr_fn::count(df::lit(1i64)) - expr_fn::count(values))
    }

    /// The number of different values; null counts as one, as in Polars.
    pub fn n_unique(self) -> Expr {
        let null = self.clone().is_null().any().cast(DataType::Int64);
        self.map(expr_fn::count_distinct) + super::coalesce(vec![null, super::lit(0i64)])
    }

    /// The standard deviation, with n − 1 for n values.
    pub fn std(self) -> Expr {
        self.map(expr_fn::stddev)
    }

    /// The variance, with n − 1 for n values.
    pub fn var(self) -> Expr {
        self.map(expr_fn::var_sample)
    }

    /// The middle value: of an even number of values the mean of both in the middle. A float of 64
    /// bits, or a timestamp of dates and timestamps.
    pub fn median(self) -> Expr {
        self.cast(DataType::Float64).map(expr_fn::median)
    }

    /// The value below which a share of the values lies (0.5 is the median), interpolated between
    /// the two nearest.
    pub fn quantile(self, share: f64) -> Expr {
        self.map(|values| {
            let order = vec![values.clone().sort(true, false)];
            let arguments = vec![values, df::lit(share)];
            let function = percentile_cont();
            let call = AggregateFunction::new_udf(function, arguments, false, None, order, None);
            df::Expr::AggregateFunction(call)
        })
    }

    /// The first row's value, null too, in the order of the rows.
    pub fn first(self) -> Expr {
        self.map(|value| expr_fn::first_value(value, vec![]))
    }

    /// The last row's value, null too, in the order of the rows.
    pub fn last(self) -> Expr {
        self.map(|value| expr_fn::last_value(value, vec![]))
    }

    /// Whether all conditions are true.
    pub fn all(self) -> Expr {
        self.map(expr_fn::bool_and)
    }

    /// Whether one of the conditions is true.
    pub fn any(self) -> Expr {
        self.map(expr_fn::bool_or)
    }

    /// Its aggregates over the rows for which a condition is true: SQL's `FILTER (WHERE …)`. Of
    /// values the filter may stand before their aggregate: `col("x").filter(condition).sum()`.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2), (4)")?;
    /// let large = frame.select([sum("column1").filter(col("column1").gt(1)).alias("sum")])?;
    /// assert_eq!(large.filter(col("sum").eq(6))?.collect()?.num_rows(), 1);
    /// let large = frame.select([col("column1").filter(col("column1").gt(1)).sum()])?;
    /// assert_eq!(large.filter(col("column1").eq(6))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn filter(self, condition: impl IntoValue) -> Expr {
        let condition = condition.into_value().tree;
        let both = |filter: Option<Box<df::Expr>>| {
            Some(Box::new(match filter {
                Some(filter) => filter.and(condition.clone()),
                None => condition.clone(),
            }))
        };
        let of_calls = self.tree.clone().transform_down(|node| {
            Ok(match node {
                df::Expr::AggregateFunction(mut call) => {
                    call.params.filter = both(call.params.filter.take());
                    Transformed::new(
                        df::Expr::AggregateFunction(call),
                        true,
                        TreeNodeRecursion::Jump,
                    )
                }
                df::Expr::WindowFunction(mut call) => {
                    call.params.filter = both(call.params.filter.take());
                    Transformed::new(df::Expr::WindowFunction(call), true, TreeNodeRecursion::Jump)
                }
                other => Transformed::no(other),
            })
        });
        // The closure does not fail.
        match of_calls {
            Ok(of_calls) if of_calls.transformed => self.map(|_| of_calls.data),
            _ => self.map(|value| filtered(value, condition)),
        }
    }

    /// The values as a list, nulls too, in the order of the rows: Polars' `implode`.
    pub fn implode(self) -> Expr {
        self.map(expr_fn::array_agg)
    }
}
