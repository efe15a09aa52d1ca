//! Functions of values: DataFusion's, over our expressions.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::functions::expr_fn;
use datafusion::logical_expr as df;

use super::{Expr, IntoColumn, IntoValue};

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

/// Texts behind one another; null is the empty text.
///
/// ```
/// # use warpframe::prelude::*;
/// let name = concat(vec![col("first"), lit(" "), col("last")]);
/// ```
pub fn concat(texts: Vec<Expr>) -> Expr {
    of_all(texts, expr_fn::concat)
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

/// Whether a subquery has rows.
pub fn exists(subquery: Arc<df::LogicalPlan>) -> Expr {
    Expr::from(df::exists(subquery))
}

/// Whether a value is among those of a subquery of one column.
pub fn in_subquery(value: impl IntoColumn, subquery: Arc<df::LogicalPlan>) -> Expr {
    value.into_column().map(|value| df::in_subquery(value, subquery))
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
                super::when(self.clone().lt(low.clone()))
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
    ceil as expr_fn::ceil;
    /// The greatest whole number that is not greater.
    floor as expr_fn::floor;
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
