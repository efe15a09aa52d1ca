//! Estimates of the share of rows for which a condition holds, from ranges and numbers of different
//! values. Values are taken to be spread evenly, and conditions to be independent, but for several
//! bounds of one column.

use std::collections::BTreeMap;

use datafusion::common::{Column as Name, ScalarValue};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Like, Operator};

use crate::column::Facts;

/// Of a condition of which nothing is known.
const UNKNOWN: f64 = 0.25;
/// Of a comparison by order with something that is not known.
const COMPARISON: f64 = 1.0 / 3.0;
/// Of LIKE, and of IS NULL.
const PATTERN: f64 = 0.1;
const NULL: f64 = 0.05;

/// Facts of a column by name, where there are any.
pub(crate) type FactsOf<'a> = &'a dyn Fn(&Name) -> Option<Facts>;

/// Share of the rows for which a predicate holds, more than 0 and at most 1.
pub(crate) fn selectivity(predicate: &Expr, facts: FactsOf<'_>) -> f64 {
    let mut share = Selectivity::default();
    split_conjunction(predicate).into_iter().for_each(|conjunct| share.add(conjunct, facts));
    share.rows()
}

/// Conditions that all are to hold, one added after the other.
#[derive(Debug, Default)]
pub(crate) struct Selectivity {
    /// Shares below an upper and above a lower bound, by column: together they leave what both
    /// leave.
    bounds: BTreeMap<String, (f64, f64)>,
    /// Those of the other conditions.
    others: Vec<f64>,
}

impl Selectivity {
    /// Adds a condition that is no conjunction.
    pub(crate) fn add(&mut self, conjunct: &Expr, facts: FactsOf<'_>) {
        match bound(conjunct, facts) {
            Some((name, BoundSide::Below, part)) => {
                let both = self.bounds.entry(name).or_insert((1.0, 1.0));
                both.0 = part.min(both.0);
            }
            Some((name, BoundSide::Above, part)) => {
                let both = self.bounds.entry(name).or_insert((1.0, 1.0));
                both.1 = part.min(both.1);
            }
            None => self.others.push(one(conjunct, facts)),
        }
    }

    /// Share of the rows for which all hold, more than 0 and at most 1.
    pub(crate) fn rows(&self) -> f64 {
        let bounded = self
            .bounds
            .values()
            .map(|(below, above)| (below + above - 1.0).max(below * above / 100.0));
        self.others.iter().copied().chain(bounded).product::<f64>().clamp(1e-9, 1.0)
    }
}

/// Which part of a range a comparison leaves.
enum BoundSide {
    Below,
    Above,
}

/// The column of a comparison with a number, and the share of its range that the comparison leaves.
fn bound(expr: &Expr, facts: FactsOf<'_>) -> Option<(String, BoundSide, f64)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else { return None };
    let (name, op, number) = match (column(left), column(right)) {
        (Some(name), None) => (name, *op, number(right)?),
        (None, Some(name)) => (name, op.swap()?, number(left)?),
        _ => return None,
    };
    let (low, high) = facts(name)?.range?;
    let below = ((number - low) / (high - low).max(1.0)).clamp(0.0, 1.0);
    match op {
        Operator::Lt | Operator::LtEq => Some((name.flat_name(), BoundSide::Below, below)),
        Operator::Gt | Operator::GtEq => Some((name.flat_name(), BoundSide::Above, 1.0 - below)),
        _ => None,
    }
}

fn one(expr: &Expr, facts: FactsOf<'_>) -> f64 {
    let either = |a: f64, b: f64| a + b - a * b;
    let share = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => return selectivity(expr, facts),
            Operator::Or => either(selectivity(left, facts), selectivity(right, facts)),
            Operator::Eq | Operator::IsNotDistinctFrom => equality(left, right, facts),
            Operator::NotEq | Operator::IsDistinctFrom => 1.0 - equality(left, right, facts),
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => COMPARISON,
            _ => UNKNOWN,
        },
        Expr::Not(inner) | Expr::IsNotTrue(inner) => 1.0 - selectivity(inner, facts),
        Expr::IsTrue(inner) => selectivity(inner, facts),
        Expr::IsNull(_) => NULL,
        Expr::IsNotNull(_) => 1.0 - NULL,
        Expr::Like(Like { negated, .. }) => negated_if(*negated, PATTERN),
        Expr::InList(list) => {
            let each =
                list.list.iter().map(|value| equality(&list.expr, value, facts)).sum::<f64>();
            negated_if(list.negated, each.min(1.0))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let both = (**expr)
                .clone()
                .gt_eq((**low).clone())
                .and((**expr).clone().lt_eq((**high).clone()));
            negated_if(*negated, selectivity(&both, facts))
        }
        Expr::Literal(ScalarValue::Boolean(value), _) => f64::from(u8::from(*value == Some(true))),
        Expr::Alias(alias) => return selectivity(&alias.expr, facts),
        _ => UNKNOWN,
    };
    share.clamp(0.0, 1.0)
}

fn negated_if(negated: bool, share: f64) -> f64 {
    if negated { 1.0 - share } else { share }
}

fn equality(left: &Expr, right: &Expr, facts: FactsOf<'_>) -> f64 {
    let of = |expr: &Expr| column(expr).and_then(facts);
    let outside = |facts: Facts, value: &Expr| match (facts.range, number(value)) {
        (Some((low, high)), Some(value)) => value < low || value > high,
        _ => false,
    };
    match (of(left), of(right)) {
        (Some(a), Some(b)) => 1.0 / a.distinct.max(b.distinct),
        (Some(facts), None) if outside(facts, right) => 0.0,
        (None, Some(facts)) if outside(facts, left) => 0.0,
        (Some(facts), None) | (None, Some(facts)) => 1.0 / facts.distinct,
        (None, None) => UNKNOWN / 4.0,
    }
}

/// The column that an expression is, whatever its type is cast to.
fn column(expr: &Expr) -> Option<&Name> {
    match expr {
        Expr::Column(name) => Some(name),
        Expr::Alias(alias) => column(&alias.expr),
        Expr::Cast(cast) => column(&cast.expr),
        _ => None,
    }
}

/// A literal as columns of its type hold it.
fn number(expr: &Expr) -> Option<f64> {
    let Expr::Literal(value, _) = expr else { return None };
    Some(match value {
        ScalarValue::Int8(Some(v)) => f64::from(*v),
        ScalarValue::Int16(Some(v)) => f64::from(*v),
        ScalarValue::Int32(Some(v)) | ScalarValue::Date32(Some(v)) => f64::from(*v),
        ScalarValue::Int64(Some(v)) => *v as f64,
        ScalarValue::UInt8(Some(v)) => f64::from(*v),
        ScalarValue::UInt16(Some(v)) => f64::from(*v),
        ScalarValue::UInt32(Some(v)) => f64::from(*v),
        ScalarValue::UInt64(Some(v)) => *v as f64,
        ScalarValue::Decimal128(Some(v), _, _) => *v as f64,
        ScalarValue::TimestampSecond(Some(v), _)
        | ScalarValue::TimestampMillisecond(Some(v), _)
        | ScalarValue::TimestampMicrosecond(Some(v), _)
        | ScalarValue::TimestampNanosecond(Some(v), _) => *v as f64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};

    use super::*;

    /// `i` holds 0 to 999, ten times each; `k` is unique; of `x` nothing is known but its rows.
    fn facts(name: &Name) -> Option<Facts> {
        let range = Some((0.0, 999.0));
        Some(match name.name.as_str() {
            "i" => Facts { rows: 1e4, distinct: 1000.0, unique: false, range },
            "k" => Facts { rows: 1e4, distinct: 1e4, unique: true, range: Some((0.0, 9999.0)) },
            "x" => Facts::unknown(1e4),
            _ => return None,
        })
    }

    #[track_caller]
    fn about(expr: Expr, expected: f64) {
        let found = selectivity(&expr, &facts);
        assert!((found - expected).abs() < 0.002, "{expr}: {found}, expected {expected}");
    }

    #[test]
    fn equalities_leave_one_value_of_many() {
        about(col("i").eq(lit(5i64)), 0.001);
        about(col("i").eq(lit(5000i64)), 0.0);
        about(col("i").not_eq(lit(5i64)), 0.999);
        about(col("i").in_list(vec![lit(1i64), lit(2i64), lit(4000i64)], false), 0.002);
        about(col("i").eq(col("k")), 0.0001);
        about(lit(1i64).eq(col("i")).or(col("i").eq(lit(2i64))), 0.002);
    }

    #[test]
    fn bounds_of_one_column_are_taken_together() {
        about(col("i").lt(lit(250i64)), 0.25);
        about(lit(250i64).lt(col("i")), 0.75);
        about(col("i").gt_eq(lit(500i64)).and(col("i").lt(lit(600i64))), 0.1);
        about(col("i").between(lit(500i64), lit(599i64)), 0.1);
        about(col("i").lt(lit(500i64)).and(col("k").lt(lit(5000i64))), 0.25);
        about(col("i").lt(lit(100i64)).and(col("i").gt(lit(900i64))), 0.0);
    }

    #[test]
    fn conditions_added_later_count_with_those_before() {
        let mut share = Selectivity::default();
        assert_eq!(share.rows(), 1.0);
        share.add(&col("i").gt_eq(lit(500i64)), &facts);
        assert!((share.rows() - 0.5).abs() < 0.002);
        share.add(&col("i").lt(lit(600i64)), &facts);
        assert!((share.rows() - 0.1).abs() < 0.002);
        share.add(&col("x").like(lit("%a%")), &facts);
        assert!((share.rows() - 0.1 * PATTERN).abs() < 0.0002);
    }

    #[test]
    fn what_is_not_known_has_a_fixed_share() {
        about(col("x").lt(lit(3.5)), COMPARISON);
        about(col("x").like(lit("%a%")), PATTERN);
        about(col("x").not_like(lit("%a%")), 1.0 - PATTERN);
        about(col("unheard").eq(lit(1i64)), UNKNOWN / 4.0);
        about(lit(true), 1.0);
        assert!(selectivity(&lit(false), &facts) > 0.0);
    }
}
