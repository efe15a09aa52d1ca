//! The line through the points of a group, from the sums of deviations `xx`, `xy`, `yy` and the means `mx`, `my` of `n` points.
//! The first argument, what is explained, is `x` there; the second, what explains it, `y`.

use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::col;

use super::nothing_unless;
use crate::plan::Regression;

/// What is asked of the line, null where it is not defined.
pub(super) fn regression(of: Regression) -> Expr {
    let some = col("n").gt_eq(lit(1.0));
    let sloped = || col("n").gt(lit(1.0)).and(col("yy").not_eq(lit(0.0)));
    let slope = || col("xy") / col("yy");
    match of {
        Regression::Slope => nothing_unless(sloped(), slope()),
        Regression::Intercept => nothing_unless(sloped(), col("mx") - slope() * col("my")),
        Regression::Determination => {
            let square = (col("xy") * col("xy")) / (col("xx") * col("yy"));
            nothing_unless(sloped().and(col("xx").not_eq(lit(0.0))), square)
        }
        Regression::MeanExplaining => nothing_unless(some, col("my")),
        Regression::MeanExplained => nothing_unless(some, col("mx")),
        Regression::SquaresExplaining => nothing_unless(some, col("yy")),
        Regression::SquaresExplained => nothing_unless(some, col("xx")),
        Regression::Products => nothing_unless(some, col("xy")),
    }
}
