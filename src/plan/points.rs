//! What is asked of the points of a group and of the line through them, from the sums of products
//! of deviations `xx`, `xy`, `yy` and the means `mx`, `my` of `n` points. The first argument, what
//! is explained, is `x` there; the second, what explains it, `y`.

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{Case, Expr, lit};
use datafusion::prelude::{isnan, sqrt};

use super::aggregates::{Points, VarianceDivisor};

/// What is asked, null where it is not defined.
pub(crate) fn of_points(of: Points) -> Expr {
    let some = term("n").gt_eq(lit(1.0));
    let sloped = || term("n").gt(lit(1.0)).and(term("yy").not_eq(lit(0.0)));
    let slope = || term("xy") / term("yy");
    match of {
        Points::Covariance(of) => variance_of(term("xy"), of),
        Points::Correlation => correlation(),
        Points::Slope => nothing_unless(sloped(), slope()),
        Points::Intercept => nothing_unless(sloped(), term("mx") - slope() * term("my")),
        Points::Determination => {
            let square = (term("xy") * term("xy")) / (term("xx") * term("yy"));
            nothing_unless(sloped().and(term("xx").not_eq(lit(0.0))), square)
        }
        Points::MeanExplaining => nothing_unless(some, term("my")),
        Points::MeanExplained => nothing_unless(some, term("mx")),
        Points::SquaresExplaining => nothing_unless(some, term("yy")),
        Points::SquaresExplained => nothing_unless(some, term("xx")),
        Points::Products => nothing_unless(some, term("xy")),
    }
}

/// A sum of products of deviations as a variance or covariance; null where there are too few rows.
pub(crate) fn variance_of(sum: Expr, of: VarianceDivisor) -> Expr {
    let (least, divisor) = match of {
        VarianceDivisor::Population => (1.0, term("n")),
        VarianceDivisor::Sample => (2.0, term("n") - lit(1.0)),
    };
    nothing_unless(term("n").gt_eq(lit(least)), sum / divisor)
}

fn nothing_unless(condition: Expr, value: Expr) -> Expr {
    case(vec![(condition, value)], null())
}

/// The correlation of `n` rows: NaN where both means are, null where it is not defined.
fn correlation() -> Expr {
    let is_nan = |mean: &str| isnan(term(mean));
    let unknown = is_nan("mx").or(is_nan("my")).or(term("n").lt(lit(2.0)));
    let constant = term("xx").eq(lit(0.0)).or(term("yy").eq(lit(0.0)));
    let value = term("xy") / sqrt(term("xx")) / sqrt(term("yy"));
    let branches = vec![
        (is_nan("mx").and(is_nan("my")), lit(f64::NAN)),
        (unknown, null()),
        (constant, null()),
    ];
    case(branches, value)
}

fn case(branches: Vec<(Expr, Expr)>, otherwise: Expr) -> Expr {
    let branches =
        branches.into_iter().map(|(condition, value)| (Box::new(condition), Box::new(value)));
    Expr::Case(Case::new(None, branches.collect(), Some(Box::new(otherwise))))
}

fn null() -> Expr {
    Expr::Literal(ScalarValue::Float64(None), None)
}

/// A sum, mean or number by its name, which DataFusion's `col` would parse as SQL.
fn term(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}
