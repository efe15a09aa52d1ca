//! What is asked of the points of a group and of the line through them, from the sums of products
//! of deviations `xx`, `xy`, `yy` and the means `mx`, `my` of `n` points. The first argument, what
//! is explained, is `x` there; the second, what explains it, `y`.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, lit, when};
use datafusion::prelude::{col, isnan, sqrt};

use super::aggregates::{Points, VarianceDivisor};
use crate::error::Result;

/// What is asked, null where it is not defined.
pub(crate) fn of_points(of: Points) -> Result<Expr> {
    let some = col("n").gt_eq(lit(1.0));
    let sloped = || col("n").gt(lit(1.0)).and(col("yy").not_eq(lit(0.0)));
    let slope = || col("xy") / col("yy");
    Ok(match of {
        Points::Covariance(of) => variance_of(col("xy"), of),
        Points::Correlation => correlation()?,
        Points::Slope => nothing_unless(sloped(), slope()),
        Points::Intercept => nothing_unless(sloped(), col("mx") - slope() * col("my")),
        Points::Determination => {
            let square = (col("xy") * col("xy")) / (col("xx") * col("yy"));
            nothing_unless(sloped().and(col("xx").not_eq(lit(0.0))), square)
        }
        Points::MeanExplaining => nothing_unless(some, col("my")),
        Points::MeanExplained => nothing_unless(some, col("mx")),
        Points::SquaresExplaining => nothing_unless(some, col("yy")),
        Points::SquaresExplained => nothing_unless(some, col("xx")),
        Points::Products => nothing_unless(some, col("xy")),
    })
}

/// A sum of products of deviations as a variance or covariance; null where there are too few rows.
pub(crate) fn variance_of(sum: Expr, of: VarianceDivisor) -> Expr {
    let (least, divisor) = match of {
        VarianceDivisor::Population => (1.0, col("n")),
        VarianceDivisor::Sample => (2.0, col("n") - lit(1.0)),
    };
    nothing_unless(col("n").gt_eq(lit(least)), sum / divisor)
}

fn nothing_unless(condition: Expr, value: Expr) -> Expr {
    Expr::Case(datafusion::logical_expr::Case::new(
        None,
        vec![(Box::new(condition), Box::new(value))],
        Some(Box::new(Expr::Literal(ScalarValue::Float64(None), None))),
    ))
}

/// The correlation of `n` rows: NaN where both means are, null where it is not defined.
fn correlation() -> Result<Expr> {
    let unknown = isnan(col("mx")).or(isnan(col("my"))).or(col("n").lt(lit(2.0)));
    let constant = col("xx").eq(lit(0.0)).or(col("yy").eq(lit(0.0)));
    let null = Expr::Literal(ScalarValue::Float64(None), None);
    let value = col("xy") / sqrt(col("xx")) / sqrt(col("yy"));
    Ok(when(isnan(col("mx")).and(isnan(col("my"))), lit(f64::NAN))
        .when(unknown, null.clone())
        .when(constant, null)
        .otherwise(value)?)
}
