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
pub use datafusion::logical_expr::{
    Case, Expr, ExprFunctionExt, SortExpr, cast, exists, in_list, in_subquery, lit, not, try_cast, when,
};
pub use datafusion::prelude::{abs, ceil, coalesce, concat, floor, nullif, round, sqrt};

use datafusion::common::Column;

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

/// Sorts from greatest to least, nulls first; `expr.sort(ascending, nulls_first)` says anything else.
///
/// ```
/// use warpframe::prelude::*;
/// let order = [desc(col("E")), col("px").sort(true, true)];
/// ```
pub fn desc(expr: Expr) -> SortExpr {
    expr.sort(false, true)
}
