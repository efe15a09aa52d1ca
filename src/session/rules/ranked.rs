//! Aggregates of DuckDB's that are others by other names, most functions of the list of a group's
//! values.
//!
//! ```text
//!   max(x, 3)               array_slice(array_agg(x ORDER BY x DESC), 1, 3)
//!   quantile_disc(x, 0.5)   the element of array_agg(x ORDER BY x) at ceil(cardinality * 0.5)
//!   median(x)               median_of(median(median_argument(x)), min(x))
//!   quantile_cont(x, 0.9)   median_of(percentile_cont(0.9) WITHIN GROUP
//!                               (ORDER BY CAST(median_argument(x) AS DOUBLE)), min(x))
//!   histogram(x)            "counts of"(array_agg(x ORDER BY x))
//!   product(x)              array_product(array_agg(CAST(x AS DOUBLE)))
//! ```
//!
//! The lists are of values that are not null. The two functions around a median make numbers of
//! dates and times, a decimal that holds a half of integers and of decimals, and the result of its type
//! (`host/shorthand/middles.rs`); of `min` nothing but its type is used.

use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArgumentList, FunctionArguments, OrderByExpr, OrderByOptions,
    Value,
};

use super::calls::{rename, values, wrong};
use crate::error::Result;
use crate::host::maps::COUNTS_OF;
use crate::sql::ast::{bare, binary, call, cast, number};

/// Which of them a call is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ranked {
    /// The greatest or least values, so many.
    Extremes {
        greatest: bool,
    },
    /// The value below which a share of them is; between two of them, or one of them.
    Quantile {
        between: bool,
    },
    /// The value in the middle, or between two.
    Median,
    Product,
    /// How often each value is there.
    Counts,
}

impl Ranked {
    /// By its name. `max`, `min` and `quantile_cont` are these only of two arguments.
    pub(super) fn of(name: &str, function: &Function) -> Option<Ranked> {
        match name {
            "max" | "min" if values(function).is_some_and(|values| values.len() == 2) => {
                Some(Ranked::Extremes { greatest: name == "max" })
            }
            "quantile" | "quantile_disc" => Some(Ranked::Quantile { between: false }),
            "quantile_cont" if values(function).is_some_and(|values| values.len() == 2) => {
                Some(Ranked::Quantile { between: true })
            }
            "median" if values(function).is_some_and(|values| values.len() == 1) => {
                Some(Ranked::Median)
            }
            "product" => Some(Ranked::Product),
            "histogram" if values(function).is_none_or(|values| values.len() <= 2) => {
                Some(Ranked::Counts)
            }
            _ => None,
        }
    }

    /// # Errors
    /// Other arguments than it takes, and OVER of a list in order.
    pub(super) fn written_out(self, function: &Function) -> Result<Expr> {
        let values = values(function).unwrap_or_default();
        let of_order = matches!(
            self,
            Ranked::Extremes { .. } | Ranked::Quantile { between: false } | Ranked::Counts
        );
        if of_order && function.over.is_some() {
            return Err(wrong(function, "is an aggregate, without OVER"));
        }
        match (self, &values[..]) {
            (Ranked::Product, [value]) => {
                let double = cast(value.clone(), DataType::Double(ExactNumberInfo::None));
                Ok(call("array_product", vec![list(function, double, value, None)]))
            }
            (Ranked::Extremes { greatest }, [value, many]) => {
                let Some(many) = digits(many).filter(|many| many.bytes().any(|b| b != b'0')) else {
                    return Err(wrong(
                        function,
                        "takes a value and how many, a constant from 1 on",
                    ));
                };
                let list = list(function, value.clone(), value, Some(greatest));
                Ok(call("array_slice", vec![list, number("1"), number(&many)]))
            }
            (Ranked::Quantile { between }, [value, share]) => {
                let one = |share: &Expr| quantile(function, value, share, between);
                match bare(share) {
                    Expr::Array(Array { elem, .. }) if !elem.is_empty() => {
                        Ok(call("make_array", elem.iter().map(one).collect::<Result<_>>()?))
                    }
                    share => one(share),
                }
            }
            (Ranked::Median, [value]) => {
                let mut found = function.clone();
                found.args = of_one(call("median_argument", vec![value.clone()]));
                Ok(of_its_type(function, found, value))
            }
            (Ranked::Counts, [value]) => {
                Ok(call(COUNTS_OF, vec![list(function, value.clone(), value, Some(false))]))
            }
            (Ranked::Counts, _) => {
                Err(wrong(function, "takes a value, or also low, high and how many bins there are"))
            }
            (Ranked::Median, _) => Err(wrong(function, "takes a value")),
            (Ranked::Product, _) => Err(wrong(function, "takes a number")),
            (Ranked::Extremes { .. }, _) => Err(wrong(function, "takes a value and how many")),
            (Ranked::Quantile { .. }, _) => Err(wrong(function, SHARE)),
        }
    }
}

const SHARE: &str = "takes a value and a share from 0 to 1, which is a constant";

fn digits(expr: &Expr) -> Option<String> {
    match bare(expr) {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                Some(digits.clone())
            }
            _ => None,
        },
        _ => None,
    }
}

/// The values of a group that are not null, in order if that is told.
fn list(function: &Function, of: Expr, value: &Expr, descending: Option<bool>) -> Expr {
    let mut list = function.clone();
    let nested = |expr: &Expr| Box::new(Expr::Nested(Box::new(expr.clone())));
    let mut filter = Expr::IsNotNull(nested(value));
    if let Some(own) = list.filter.take() {
        filter = binary(Expr::Nested(own), BinaryOperator::And, filter);
    }
    rename(&mut list, "array_agg");
    list.filter = Some(Box::new(filter));
    let order = |descending: bool| {
        let expr = value.clone();
        let options = OrderByOptions { asc: Some(!descending), nulls_first: Some(false) };
        FunctionArgumentClause::OrderBy(vec![OrderByExpr { expr, options, with_fill: None }])
    };
    list.args = FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(of))],
        clauses: descending.map(order).into_iter().collect(),
    });
    Expr::Function(list)
}

fn of_one(value: Expr) -> FunctionArguments {
    FunctionArguments::List(FunctionArgumentList {
        duplicate_treatment: None,
        args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(value))],
        clauses: vec![],
    })
}

/// What was found among numbers of values, as a value of their type.
fn of_its_type(function: &Function, found: Function, value: &Expr) -> Expr {
    let mut least = function.clone();
    rename(&mut least, "min");
    least.args = of_one(value.clone());
    call("median_of", vec![Expr::Function(found), Expr::Function(least)])
}

fn quantile(function: &Function, value: &Expr, share: &Expr, between: bool) -> Result<Expr> {
    let share = match bare(share) {
        Expr::Value(share) => match &share.value {
            Value::Number(digits, _) => digits.clone(),
            _ => return Err(wrong(function, SHARE)),
        },
        _ => return Err(wrong(function, SHARE)),
    };
    let (whole, part) = share.split_once('.').unwrap_or((&share, ""));
    // All digits together, as parts of one with so many zeros: no float rounds them.
    let parts = format!("{whole}{part}").parse::<i64>().ok().filter(|_| part.len() <= 9);
    let one = 10i64.pow(part.len().min(9) as u32);
    let Some(parts) = parts.filter(|parts| (0..=one).contains(parts)) else {
        return Err(wrong(function, SHARE));
    };
    if between && parts * 2 == one {
        let mut median = function.clone();
        rename(&mut median, "median");
        median.args = of_one(value.clone());
        return Ranked::Median.written_out(&median);
    }
    if between {
        let mut found = function.clone();
        rename(&mut found, "percentile_cont");
        found.args = of_one(number(&share));
        let argument = call("median_argument", vec![value.clone()]);
        found.within_group = vec![OrderByExpr {
            expr: cast(argument, DataType::Double(ExactNumberInfo::None)),
            options: OrderByOptions { asc: None, nulls_first: None },
            with_fill: None,
        }];
        return Ok(of_its_type(function, found, value));
    }
    let integer = |number: i64| self::number(&number.to_string());
    let nested = |expr: Expr| Expr::Nested(Box::new(expr));
    let list = list(function, value.clone(), value, Some(false));
    let rows = cast(call("cardinality", vec![list.clone()]), DataType::BigInt(None));
    let below = binary(rows, BinaryOperator::Multiply, integer(parts));
    let below = nested(binary(below, BinaryOperator::Plus, integer(one - 1)));
    let place = nested(binary(below, BinaryOperator::Divide, integer(one)));
    let place = call("greatest", vec![place, integer(1)]);
    Ok(call("array_element", vec![list, place]))
}
