//! Functions of values: DataFusion's, over our expressions.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::functions::expr_fn;
use datafusion::logical_expr as df;

use super::{Columns, Expr, IntoColumn, IntoValue, Then, lit, when};
use crate::error::Result;
use crate::frame::LazyFrame;
use crate::host::random::random_integer;
use crate::host::rounding;

/// A function of several values, called as the first of them.
pub(super) fn of_all(values: Vec<Expr>, function: impl FnOnce(Vec<df::Expr>) -> df::Expr) -> Expr {
    let name = values.first().and_then(|first| first.name.clone());
    Expr { tree: function(values.into_iter().map(Into::into).collect()), name }
}

/// [`Expr::abs`].
pub fn abs(value: impl IntoColumn) -> Expr {
    value.into_column().abs()
}

/// [`Expr::ceil`].
pub fn ceil(value: impl IntoColumn) -> Expr {
    value.into_column().ceil()
}

/// [`Expr::floor`].
pub fn floor(value: impl IntoColumn) -> Expr {
    value.into_column().floor()
}

/// [`Expr::sqrt`].
pub fn sqrt(value: impl IntoColumn) -> Expr {
    value.into_column().sqrt()
}

/// The nearest number with so many digits behind the point: `round(vec![col("x"), lit(2)])`; see
/// [`Expr::round`].
pub fn round(arguments: Vec<Expr>) -> Expr {
    of_all(arguments, expr_fn::round)
}

/// The first of these values that is not null.
///
/// ```
/// # use warpframe::prelude::*;
/// let known = coalesce(vec![col("a"), col("b"), lit(0)]);
/// ```
pub fn coalesce(values: Vec<Expr>) -> Expr {
    of_all(values, expr_fn::coalesce)
}

/// Texts behind one another, where null is the empty text; or frames behind one another, as
/// [`AnyFrame::concat`](crate::frame::AnyFrame::concat) puts them vertically.
///
/// # Errors
/// Of texts none; of frames those of `AnyFrame::concat`.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let name = concat([col("first"), lit(" "), col("last")]);
/// let people = frame!(session; "first" => ["Ada"], "last" => ["Lovelace"])?;
/// assert_eq!(concat([&people, &people])?.filter(name.eq("Ada Lovelace"))?.num_rows(), 2);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn concat<T: Concatenate>(items: impl IntoIterator<Item = T>) -> T::Whole {
    T::concatenated(items.into_iter().collect())
}

/// What [`concat()`] puts behind one another: expressions of texts, or frames.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be put behind others",
    label = "an expression or a frame is wanted here",
    note = "write `concat([col(\"a\"), lit(\" \")])` for texts, and `concat([&one, &other])?` for frames"
)]
pub trait Concatenate: Sized {
    /// What they are together.
    type Whole;

    /// All of them behind one another.
    fn concatenated(items: Vec<Self>) -> Self::Whole;
}

impl Concatenate for Expr {
    type Whole = Expr;

    fn concatenated(items: Vec<Self>) -> Expr {
        of_all(items, expr_fn::concat)
    }
}

/// Texts behind one another, with something between them; nulls are left out.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("SELECT 'a' AS a, 'b' AS b")?;
/// assert_eq!(frame.filter(concat_str(["a", "b"], "-").eq("a-b"))?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn concat_str(texts: impl Columns, separator: &str) -> Expr {
    of_all(texts.into_columns(), |texts| expr_fn::concat_ws(df::lit(separator), texts))
}

/// The greatest of each row's values; nulls are left out.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("SELECT 1 AS a, 5 AS b, 3 AS c")?.select([
///     max_horizontal(["a", "b"]).alias("max"),
///     min_horizontal(["a", "b"]).alias("min"),
///     sum_horizontal(["a", "b", "c"]).alias("sum"),
///     mean_horizontal(["a", "b", "c"]).alias("mean"),
/// ])?;
/// let (extremes, all) = (col("max").eq(5) & col("min").eq(1), col("sum").eq(9) & col("mean").eq(3.0));
/// assert_eq!(frame.filter(extremes & all)?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn max_horizontal(values: impl Columns) -> Expr {
    of_all(values.into_columns(), expr_fn::greatest)
}

/// The least of each row's values; nulls are left out.
pub fn min_horizontal(values: impl Columns) -> Expr {
    of_all(values.into_columns(), expr_fn::least)
}

/// The sum of each row's values, null counting as 0.
pub fn sum_horizontal(values: impl Columns) -> Expr {
    let values = values.into_columns().into_iter().map(|value| value.fill_null(0));
    values.reduce(|sum, value| sum + value).unwrap_or_else(|| lit(0))
}

/// The mean of each row's values, a float of 64 bits; nulls are left out.
pub fn mean_horizontal(values: impl Columns) -> Expr {
    let values = values.into_columns();
    let known = sum_horizontal(
        values.iter().map(|value| value.clone().is_not_null().cast(DataType::Int64)),
    );
    sum_horizontal(values.into_iter().map(|value| value.cast(DataType::Float64))) / nullif(known, 0)
}

/// Whether all of each row's conditions are true; true where there are none.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES (true, false), (true, true)")?;
/// assert_eq!(frame.filter(all_horizontal(["column1", "column2"]))?.collect()?.num_rows(), 1);
/// assert_eq!(frame.filter(any_horizontal(["column1", "column2"]))?.collect()?.num_rows(), 2);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn all_horizontal(conditions: impl Columns) -> Expr {
    conditions
        .into_columns()
        .into_iter()
        .reduce(|all, one| all.and(one))
        .unwrap_or_else(|| lit(true))
}

/// Whether one of each row's conditions is true; false where there are none.
pub fn any_horizontal(conditions: impl Columns) -> Expr {
    conditions
        .into_columns()
        .into_iter()
        .reduce(|any, one| any.or(one))
        .unwrap_or_else(|| lit(false))
}

/// The angle in radians of the point (`x`, `y`).
pub fn arctan2(y: impl IntoColumn, x: impl IntoColumn) -> Expr {
    y.into_column().with(x.into_column(), expr_fn::atan2)
}

/// Null where both are equal, else the first.
pub fn nullif(value: impl IntoColumn, other: impl IntoValue) -> Expr {
    value.into_column().with(other, expr_fn::nullif)
}

/// [`Expr::cast`].
pub fn cast(value: impl IntoColumn, dtype: DataType) -> Expr {
    value.into_column().cast(dtype)
}

/// [`Expr::try_cast`].
pub fn try_cast(value: impl IntoColumn, dtype: DataType) -> Expr {
    value.into_column().try_cast(dtype)
}

/// True where a condition is false, and false where it is true.
pub fn not(condition: impl IntoColumn) -> Expr {
    !condition.into_column()
}

/// Whether a value equals one of others, or none of them.
pub fn in_list(value: impl IntoColumn, values: Vec<Expr>, negated: bool) -> Expr {
    value.into_column().in_list(values, negated)
}

/// Whether a frame of the same session has rows.
///
/// # Errors
/// As [`LazyFrame::collect`], of what the frame asks for.
pub fn exists(rows: &LazyFrame) -> Result<Expr> {
    Ok(Expr::from(df::exists(Arc::new(rows.plan()?.clone()))))
}

/// Whether a value is among those of a frame of one column, of the same session: SQL's `IN (SELECT
/// …)`, with its nulls.
///
/// # Errors
/// As [`LazyFrame::collect`], of what the frame asks for.
///
/// ```
/// use warpframe::prelude::*;
/// let session = Session::builder().device(DeviceChoice::Sim).build()?;
/// let orders = frame!(session; "customer" => [1i64, 2, 2, 4], "sum" => [5.0, 1.0, 7.0, 3.0])?;
/// let good = frame!(session; "id" => [2i64, 3])?;
/// let of_good = orders.filter(in_subquery(col("customer"), &good.lazy()?)?)?;
/// assert_eq!(of_good.column("sum")?.to_vec::<f64>()?, [1.0, 7.0]);
/// # Ok::<(), warpframe::Error>(())
/// ```
pub fn in_subquery(value: impl IntoColumn, rows: &LazyFrame) -> Result<Expr> {
    let rows = Arc::new(rows.plan()?.clone());
    Ok(value.into_column().map(|value| df::in_subquery(value, rows)))
}

macro_rules! of_numbers {
    ($($(#[$doc:meta])* $name:ident as $function:path;)*) => {
        /// Functions of numbers.
        ///
        /// ```
        /// # use warpframe::prelude::*;
        /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
        /// let frame = session.sql("VALUES (-4.0), (9.0)")?;
        /// let roots = frame.select([col("column1").abs().sqrt().round(1).alias("root")])?;
        /// assert_eq!(roots.filter(col("root").is_in([2.0, 3.0]))?.collect()?.num_rows(), 2);
        /// # Ok::<(), warpframe::Error>(())
        /// ```
        impl Expr {
            $($(#[$doc])*
            pub fn $name(self) -> Expr {
                self.map($function)
            })*

            /// The nearest number with so many digits behind the point; halves away from zero.
            pub fn round(self, decimals: i32) -> Expr {
                self.map(|number| expr_fn::round(vec![number, df::lit(decimals)]))
            }

            /// The number with so many digits behind the point; the others are cut off.
            pub fn truncate(self, decimals: i32) -> Expr {
                self.map(|number| expr_fn::trunc(vec![number, df::lit(decimals)]))
            }

            /// Whether it is a number and not NaN.
            pub fn is_not_nan(self) -> Expr {
                !self.is_nan()
            }

            /// Whether it is infinite, of either sign.
            pub fn is_infinite(self) -> Expr {
                self.abs().eq(f64::INFINITY)
            }

            /// Whether it is neither infinite nor NaN.
            pub fn is_finite(self) -> Expr {
                self.abs().lt(f64::INFINITY)
            }

            /// This to the power of another number.
            pub fn pow(self, exponent: impl IntoValue) -> Expr {
                self.with(exponent, expr_fn::power)
            }

            /// The logarithm to a base.
            pub fn log(self, base: impl IntoValue) -> Expr {
                self.with(base, |number, base| expr_fn::log(base, number))
            }

            /// The greatest value not above `high` and not below `low`; null stays null.
            pub fn clip(self, low: impl IntoValue, high: impl IntoValue) -> Expr {
                let (low, high) = (low.into_value(), high.into_value());
                let (value, name) = (self.clone(), self.name.clone());
                when(self.clone().lt(low.clone()))
                    .then(low)
                    .when(self.gt(high.clone()))
                    .then(high)
                    .otherwise(value)
                    .called(name)
            }
        }
    };
}

of_numbers! {
    /// The number without its sign.
    abs as expr_fn::abs;
    /// The least whole number that is not less.
    ceil as rounding::ceil_of;
    /// The greatest whole number that is not greater.
    floor as rounding::floor_of;
    /// The square root.
    sqrt as expr_fn::sqrt;
    /// The cube root.
    cbrt as expr_fn::cbrt;
    /// The exponential function.
    exp as expr_fn::exp;
    /// The natural logarithm.
    ln as expr_fn::ln;
    /// The logarithm to base 10.
    log10 as expr_fn::log10;
    /// The logarithm to base 2.
    log2 as expr_fn::log2;
    /// −1, 0 or 1.
    sign as expr_fn::signum;
    /// The angle of a sine, in radians.
    arcsin as expr_fn::asin;
    /// The angle of a cosine, in radians.
    arccos as expr_fn::acos;
    /// The angle of a tangent, in radians.
    arctan as expr_fn::atan;
    /// The hyperbolic sine.
    sinh as expr_fn::sinh;
    /// The hyperbolic cosine.
    cosh as expr_fn::cosh;
    /// The hyperbolic tangent.
    tanh as expr_fn::tanh;
    /// The inverse of the hyperbolic sine.
    arcsinh as expr_fn::asinh;
    /// The inverse of the hyperbolic cosine.
    arccosh as expr_fn::acosh;
    /// The inverse of the hyperbolic tangent.
    arctanh as expr_fn::atanh;
    /// The cotangent of radians.
    cot as expr_fn::cot;
    /// The sine of radians.
    sin as expr_fn::sin;
    /// The cosine of radians.
    cos as expr_fn::cos;
    /// The tangent of radians.
    tan as expr_fn::tan;
    /// Degrees of radians.
    degrees as expr_fn::degrees;
    /// Radians of degrees.
    radians as expr_fn::radians;
    /// Whether it is NaN.
    is_nan as expr_fn::isnan;
}

/// Values in place of others.
///
/// ```
/// # use warpframe::prelude::*;
/// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
/// let frame = session.sql("VALUES ('a'), ('b'), ('c')")?;
/// let long = col("column1").replace([("a", "anna"), ("b", "bert")]);
/// assert_eq!(frame.filter(long.is_in(["anna", "bert", "c"]))?.collect()?.num_rows(), 3);
/// let number = col("column1").replace_strict([("a", 1), ("b", 2)], None::<i32>);
/// assert_eq!(frame.filter(number.is_null())?.collect()?.num_rows(), 1);
/// # Ok::<(), warpframe::Error>(())
/// ```
impl Expr {
    /// Other values in place of these: pairs of the old and the new one. Null may be an old value.
    pub fn replace(
        self,
        pairs: impl IntoIterator<Item = (impl IntoValue, impl IntoValue)>,
    ) -> Expr {
        match self.replaced(pairs) {
            Some(replaced) => replaced.otherwise(self.clone()).called_as(&self),
            None => self,
        }
    }

    /// The new values of such pairs; for what is no old value a default.
    pub fn replace_strict(
        self,
        pairs: impl IntoIterator<Item = (impl IntoValue, impl IntoValue)>,
        default: impl IntoValue,
    ) -> Expr {
        match self.replaced(pairs) {
            Some(replaced) => replaced.otherwise(default).called_as(&self),
            None => default.into_value().called_as(&self),
        }
    }

    fn replaced(
        &self,
        pairs: impl IntoIterator<Item = (impl IntoValue, impl IntoValue)>,
    ) -> Option<Then> {
        pairs.into_iter().fold(None, |before, (old, new)| {
            let is_old = self.clone().eq_missing(old);
            Some(match before {
                Some(before) => Then::when(before, is_old).then(new),
                None => when(is_old).then(new),
            })
        })
    }
}

/// A number of 64 random bits of a seed and a row's number.
pub(in crate::frame) fn chance_of(row: Expr, seed: u64) -> Expr {
    row.cast(DataType::Int64).map(|row| {
        let ends = [i64::MIN, i64::MAX].map(df::lit);
        random_integer().call([vec![df::lit(seed as i64), row], ends.to_vec()].concat())
    })
}
