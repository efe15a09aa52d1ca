//! Expressions: DataFusion's, with column names taken as they are.
//!
//! ```
//! use warpframe::prelude::*;
//! let momentum = (col("px") * col("px") + col("py") * col("py")).alias("pt2");
//! let busy = col("E").gt(lit(100)).and(col("jetid").is_not_null());
//! ```

pub use datafusion::functions_aggregate::expr_fn::{
    approx_distinct, avg, bool_and, bool_or, count, count_distinct, max, median, min, stddev, sum, var_sample,
};
pub use datafusion::functions_window::expr_fn::{
    cume_dist, dense_rank, first_value, lag, last_value, lead, nth_value, ntile, percent_rank, rank, row_number,
};
pub use datafusion::logical_expr::{
    Case, Expr, ExprFunctionExt, SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, cast, exists, in_list,
    in_subquery, lit, not, try_cast, when,
};
pub use datafusion::prelude::{abs, ceil, coalesce, concat, floor, nullif, round, sqrt};

use datafusion::common::Column;
use datafusion::logical_expr::WindowFunctionDefinition;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};

/// The column of exactly this name; dots and capitals are part of it.
///
/// (SQL lowers unquoted names and splits them at dots; this does not.)
///
/// ```
/// use warpframe::prelude::*;
/// assert_eq!(col("E").to_string(), "E");
/// ```
pub fn col(name: impl Into<String>) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// The number of rows.
///
/// ```
/// use warpframe::prelude::*;
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let nations = session.read_parquet("data/tpch/nation.parquet")?;
/// let sizes = nations.group_by([col("n_regionkey")]).agg([count_rows().alias("nations")])?;
/// assert_eq!(sizes.num_rows(), 5);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn count_rows() -> Expr {
    count(lit(1i64))
}

/// Sorts from least to greatest, nulls last.
///
/// ```
/// use warpframe::prelude::*;
/// let order = [asc(col("jetid")), desc(col("E"))];
/// ```
pub fn asc(expr: Expr) -> SortExpr {
    expr.sort(true, false)
}

/// Sorts from greatest to least, nulls first; `expr.sort(ascending, nulls_first)` says anything
/// else.
///
/// ```
/// use warpframe::prelude::*;
/// let order = [desc(col("E")), col("px").sort(true, true)];
/// ```
pub fn desc(expr: Expr) -> SortExpr {
    expr.sort(false, true)
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
/// let place = over(row_number(), [col("n_regionkey")], [asc(col("n_name"))]);
/// let firsts = nations.with_columns([place.alias("place")])?.filter(col("place").eq(lit(1)))?;
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

/// The same over a frame.
///
/// ```
/// use warpframe::prelude::*;
/// let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let orders = session.scan_parquet("data/tpch/orders.parquet")?;
/// let bound = |rows: u64| WindowFrameBound::Preceding(rows.into());
/// let week = WindowFrame::new_bounds(WindowFrameUnits::Rows, bound(6), WindowFrameBound::CurrentRow);
/// let mean = over_frame(avg(col("o_totalprice")), [], [asc(col("o_orderkey"))], week);
/// assert_eq!(orders.select([mean.alias("mean")])?.collect()?.num_rows(), 15_000);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn over_frame(
    function: Expr,
    partition_by: impl IntoIterator<Item = Expr>,
    order_by: impl IntoIterator<Item = SortExpr>,
    frame: WindowFrame,
) -> Expr {
    let mut window = match function {
        Expr::WindowFunction(window) => window,
        Expr::AggregateFunction(aggregate) => {
            let params = aggregate.params;
            Box::new(WindowFunction {
                fun: WindowFunctionDefinition::AggregateUDF(aggregate.func),
                params: WindowFunctionParams {
                    args: params.args,
                    partition_by: vec![],
                    order_by: vec![],
                    window_frame: WindowFrame::new(None),
                    filter: params.filter,
                    null_treatment: params.null_treatment,
                    distinct: params.distinct,
                },
            })
        }
        other => return other,
    };
    window.params.partition_by = partition_by.into_iter().collect();
    window.params.order_by = order_by.into_iter().collect();
    window.params.window_frame = frame;
    Expr::WindowFunction(window)
}
