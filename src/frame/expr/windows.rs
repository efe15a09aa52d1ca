//! Functions over windows of rows.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::functions_window::expr_fn;
use datafusion::logical_expr as df;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::scalar::ScalarValue;

use super::{
    Columns, Expr, IntoColumn, SortExpr, SortKeys, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use crate::query::over_all;

macro_rules! of_places {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        pub fn $name() -> Expr {
            Expr::from(expr_fn::$name())
        })*
    };
}

of_places! {
    /// The number of the row in its partition, from 1 on.
    row_number;
    /// The place of the row in its partition, by [`over`]'s order; equal rows share the least.
    rank;
    /// The place of the row in its partition, by [`over`]'s order, without gaps: equal rows share a
    /// place, and the next one follows it.
    dense_rank;
    /// [`rank`] − 1, as a share of the partition's rows − 1.
    percent_rank;
    /// The share of the partition's rows that do not come after the row.
    cume_dist;
}

/// Numbers of `n` parts of the partition, from 1 on, as equal in size as can be.
pub fn ntile(n: Expr) -> Expr {
    Expr::from(expr_fn::ntile(n.tree)).called(Some("ntile".into()))
}

/// The value of the row so many places before (1, where nothing is said), or a default.
pub fn lag(value: impl IntoColumn, places: Option<i64>, default: Option<ScalarValue>) -> Expr {
    value.into_column().map(|value| expr_fn::lag(value, places, default))
}

/// The value of the row so many places after (1, where nothing is said), or a default.
pub fn lead(value: impl IntoColumn, places: Option<i64>, default: Option<ScalarValue>) -> Expr {
    value.into_column().map(|value| expr_fn::lead(value, places, default))
}

/// The first value of the window.
pub fn first_value(value: impl IntoColumn) -> Expr {
    value.into_column().map(expr_fn::first_value)
}

/// The last value of the window.
pub fn last_value(value: impl IntoColumn) -> Expr {
    value.into_column().map(expr_fn::last_value)
}

/// The window's value at a place, from 1 on.
pub fn nth_value(value: impl IntoColumn, n: i64) -> Expr {
    value.into_column().map(|value| expr_fn::nth_value(value, n))
}

/// A window function, or an aggregate over a window: SQL's
/// `function OVER (PARTITION BY … ORDER BY …)`. The frame is the partition up to the row and its
/// peers, or all of it where there is no order; [`over_frame`] says another one.
///
/// Anything else but a function is returned as it is.
///
/// ```
/// use warpframe::prelude::*;
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let nations = session.scan_parquet("data/tpch/nation.parquet")?;
/// let place = over(row_number(), [col("n_regionkey")], [asc("n_name")]);
/// let firsts = nations.with_columns([place.alias("place")])?.filter(col("place").eq(1))?;
/// assert_eq!(firsts.collect()?.num_rows(), 5);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn over(
    function: Expr,
    partition_by: impl IntoIterator<Item = Expr>,
    order_by: impl IntoIterator<Item = SortExpr>,
) -> Expr {
    let order_by: Vec<SortExpr> = order_by.into_iter().collect();
    let frame = WindowFrame::new((!order_by.is_empty()).then_some(false));
    over_frame(function, partition_by, order_by, frame)
}

/// `function OVER (PARTITION BY … ORDER BY …)` with a window frame.
///
/// ```
/// use warpframe::prelude::*;
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let orders = session.scan_parquet("data/tpch/orders.parquet")?;
/// let bound = |rows: u64| WindowFrameBound::Preceding(rows.into());
/// let week = WindowFrame::new_bounds(WindowFrameUnits::Rows, bound(6), WindowFrameBound::CurrentRow);
/// let mean = over_frame(mean("o_totalprice"), [], [asc("o_orderkey")], week);
/// assert_eq!(orders.select([mean.alias("mean")])?.collect()?.num_rows(), 15_000);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn over_frame(
    function: Expr,
    partition_by: impl IntoIterator<Item = Expr>,
    order_by: impl IntoIterator<Item = SortExpr>,
    frame: WindowFrame,
) -> Expr {
    let Some(mut window) = window_of(&function.tree) else { return function };
    window.params.partition_by = partition_by.into_iter().map(Into::into).collect();
    window.params.order_by = order_by.into_iter().collect();
    window.params.window_frame = frame;
    function.map(|_| df::Expr::WindowFunction(Box::new(window)))
}

/// A function over a window: of all rows, if it is an aggregate.
pub(super) fn window_of(function: &df::Expr) -> Option<WindowFunction> {
    match function {
        df::Expr::WindowFunction(window) => Some(window.as_ref().clone()),
        df::Expr::AggregateFunction(aggregate) => Some(over_all(aggregate.clone())),
        _ => None,
    }
}

impl Expr {
    /// The expression over each row's partition: the rows in which these columns are equal (null
    /// equals null). Aggregates are of the whole partition; functions of places, such as
    /// [`Expr::shift`] and [`Expr::cum_sum`], go through it in the order of the frame's rows.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES ('a', 1), ('b', 5), ('a', 3)")?;
    /// let frame = frame.with_columns([
    ///     col("column2").max().over(["column1"]).alias("max"),
    ///     col("column2").shift(1).over(["column1"]).alias("before"),
    /// ])?;
    /// assert_eq!(frame.filter(col("max").eq(3).and(col("before").eq(1)))?.collect()?.num_rows(), 1);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn over(self, partition_by: impl Columns) -> Expr {
        let keys: Vec<df::Expr> = partition_by.into_columns().into_iter().map(Into::into).collect();
        self.windowed(|window| {
            window.params.partition_by.splice(0..0, keys.clone());
        })
    }

    /// [`Expr::over`] with an order in place of that of the frame: running aggregates up to each
    /// row and its peers, and functions of places, go by it.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (3), (1), (2)")?;
    /// let before = col("column1").shift(1).over_sorted([] as [Expr; 0], ["column1"]);
    /// let frame = frame.with_columns([before.alias("before")])?;
    /// assert_eq!(frame.filter(col("before").eq(col("column1") - 1))?.collect()?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn over_sorted(self, partition_by: impl Columns, order_by: impl SortKeys) -> Expr {
        let keys: Vec<df::Expr> = partition_by.into_columns().into_iter().map(Into::into).collect();
        let order = order_by.into_keys();
        self.windowed(|window| {
            window.params.partition_by.splice(0..0, keys.clone());
            window.params.order_by = order.clone();
        })
    }

    /// All functions in it as window functions, once `change` has seen each.
    pub(super) fn windowed(self, change: impl Fn(&mut WindowFunction)) -> Expr {
        let changed = self.tree.clone().transform_down(|expr| {
            Ok(match window_of(&expr) {
                Some(mut window) => {
                    change(&mut window);
                    Transformed::new(
                        df::Expr::WindowFunction(Box::new(window)),
                        true,
                        TreeNodeRecursion::Jump,
                    )
                }
                None => Transformed::no(expr),
            })
        });
        // The closure does not fail.
        match changed {
            Ok(changed) => self.map(|_| changed.data),
            Err(_) => self,
        }
    }
}

/// Where a window of rows begins or ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum RowsBound {
    /// With the partition's first row.
    First,
    Before(u64),
    Here,
    After(u64),
    /// With the partition's last row.
    Last,
}

/// The rows from one bound to another.
pub(super) fn rows_frame(start: RowsBound, end: RowsBound) -> WindowFrame {
    let bound = |bound| match bound {
        RowsBound::First => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        RowsBound::Before(rows) => WindowFrameBound::Preceding(rows.into()),
        RowsBound::Here => WindowFrameBound::CurrentRow,
        RowsBound::After(rows) => WindowFrameBound::Following(rows.into()),
        RowsBound::Last => WindowFrameBound::Following(ScalarValue::UInt64(None)),
    };
    WindowFrame::new_bounds(WindowFrameUnits::Rows, bound(start), bound(end))
}
