//! Expressions: DataFusion's in a type of ours, with column names taken as they are, plain values
//! for literals, and methods named as Polars' are.
//!
//! ```
//! use warpframe::prelude::*;
//! let momentum = (col("px") * col("px") + col("py") * col("py")).alias("pt2");
//! let busy = col("E").gt(100).and(col("jetid").is_not_null());
//! let name = col("name").str().to_uppercase().str().starts_with("A");
//! ```
//!
//! [`Expr`] converts from and into DataFusion's expressions, so that any function of theirs is at
//! hand: `Expr::from(their_function(col("x").into()))`.

mod aggregates;
mod dates;
mod fills;
mod fitted;
mod functions;
mod lambdas;
mod lists;
mod names;
mod operand;
mod operators;
mod running;
mod selectors;
mod several;
mod strings;
mod when;
mod windows;

use datafusion::common::Column;
use datafusion::logical_expr as df;
pub use datafusion::logical_expr::{SortExpr, WindowFrame, WindowFrameBound, WindowFrameUnits};

pub use aggregates::{
    approx_distinct, bool_and, bool_or, corr, count, count_distinct, count_rows, len, max, mean,
    median, min, quantile, std, sum, var,
};
pub use dates::DateMethods;
pub use fills::Fill;
pub(super) use fitted::fitted;
pub(super) use functions::chance_of;
pub use functions::{
    Concatenate, abs, all_horizontal, any_horizontal, arctan2, cast, ceil, coalesce, concat,
    concat_str, exists, floor, in_list, in_subquery, max_horizontal, mean_horizontal,
    min_horizontal, not, nullif, round, sqrt, sum_horizontal, try_cast,
};
pub use lists::{ListMethods, StructMethods, list, structs};
pub use names::ResultName;
pub(super) use names::with_own_names;
pub use operand::{IntoColumn, IntoSortKey, IntoValue, date, datetime, decimal, duration, lit};
pub use running::{RankMethod, Rolling};
pub(super) use running::{distance, first_start};
pub use selectors::{
    all, booleans, by_type, cols, exclude, floats, integers, matches, numeric, strings, temporal,
};
pub(super) use selectors::{expanded, unknown};
pub use several::{Columns, SortKeys};
pub use strings::StringMethods;
pub use when::{Then, When, when};
pub use windows::{
    cume_dist, dense_rank, first_value, lag, last_value, lead, nth_value, ntile, over, over_frame,
    percent_rank, rank, row_number,
};

/// What is computed for each row, for each group, or over a window of rows.
///
/// The result is named after the column that the expression begins with, as in Polars: both
/// `col("x") * 2` and `col("x").sum()` are `x`. What begins with a plain value is `literal`,
/// [`count_rows`] is `len`, other functions without a column have their own name. [`Expr::alias`]
/// says another one. (SQL's names are texts: `sum(x)`.)
///
/// Operators and comparisons take plain values: `col("x") * 2`, `col("s").eq("a")`.
///
/// ```
/// use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("SELECT 1 AS x, 2 AS y")?;
/// let frame = frame.select([(col("x") + 1).sum(), col("y").max() - col("x").max()])?;
/// assert_eq!(frame.column_names(), ["x", "y"]);
/// # Ok::<(), warpframe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Expr {
    tree: df::Expr,
    /// What its result is called; see [`names::name_of`].
    name: Option<String>,
}

impl Expr {
    /// Something else made of this, called as this is.
    fn map(self, make: impl FnOnce(df::Expr) -> df::Expr) -> Expr {
        Expr { tree: make(self.tree), name: self.name }
    }

    /// Something made of this and another, called as this is, or after the column that a selector
    /// in the other selects.
    fn with(
        self,
        other: impl IntoValue,
        make: impl FnOnce(df::Expr, df::Expr) -> df::Expr,
    ) -> Expr {
        let other = other.into_value();
        Expr { tree: make(self.tree, other.tree), name: other.name.and(self.name) }
    }

    /// Replaces the name of the expression's result.
    fn called(self, name: Option<String>) -> Expr {
        Expr { name, ..self }
    }

    /// Gives the expression's result the name of another's.
    pub(super) fn called_as(self, other: &Expr) -> Expr {
        self.called(other.name.clone())
    }
}

/// Methods of what holds an expression: a function of DataFusion's for each.
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident $function:expr;)*) => {
        $($(#[$doc])*
        pub fn $name(self) -> Expr {
            let of: fn(df::Expr) -> df::Expr = $function;
            self.0.map(of)
        })*
    };
}
use methods;

impl From<df::Expr> for Expr {
    fn from(tree: df::Expr) -> Expr {
        let name = names::name_of(&tree);
        Expr { tree, name }
    }
}

impl From<Expr> for df::Expr {
    fn from(expr: Expr) -> df::Expr {
        expr.tree
    }
}

impl std::fmt::Display for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.tree.fmt(f)
    }
}

/// The column of exactly this name; dots and capitals are part of it.
///
/// (SQL lowers unquoted names and splits them at dots; this does not.)
///
/// ```
/// use warpframe::prelude::*;
/// assert_eq!(col("E").to_string(), "E");
/// ```
pub fn col(name: impl Into<String>) -> Expr {
    let name = name.into();
    Expr { tree: df::Expr::Column(Column::new_unqualified(&name)), name: Some(name) }
}

/// Sorts from least to greatest, nulls last.
///
/// ```
/// use warpframe::prelude::*;
/// let order = [asc("jetid"), desc(col("E") * 2)];
/// ```
pub fn asc(expr: impl IntoColumn) -> SortExpr {
    expr.into_column().sort(true, false)
}

/// Sorts from greatest to least, nulls first; `expr.sort(ascending, nulls_first)` says anything
/// else.
///
/// ```
/// use warpframe::prelude::*;
/// let order = [desc("E"), col("px").sort(true, true)];
/// ```
pub fn desc(expr: impl IntoColumn) -> SortExpr {
    expr.into_column().sort(false, true)
}

impl Expr {
    /// Names the expression's result.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT 1 AS a")?.select([(col("a") + 1).alias("b")])?;
    /// assert_eq!(frame.schema().field(0).name(), "b");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn alias(self, name: impl Into<String>) -> Expr {
        Expr::from(self.tree.alias(name))
    }

    /// Puts something before or behind the name of the expression's result: see [`ResultName`].
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("SELECT 1 AS a, 2 AS b")?.select([all().sum().name().suffix("_sum")])?;
    /// assert_eq!(frame.schema().field(1).name(), "b_sum");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn name(self) -> ResultName {
        ResultName::of(self)
    }

    /// A key to sort by.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// let ascending_nulls_first = col("x").sort(true, true);
    /// ```
    pub fn sort(self, ascending: bool, nulls_first: bool) -> SortExpr {
        self.tree.sort(ascending, nulls_first)
    }
}
