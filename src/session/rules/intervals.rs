//! Intervals that are computed: of a number of a unit, and products of intervals.
//!
//! ```text
//!   INTERVAL (k) DAY     interval_times(INTERVAL '1 day', CAST(whole_part(k) AS BIGINT))
//!   to_seconds(x)        interval_times(INTERVAL '1 second', x)
//!   INTERVAL 1 DAY * k   interval_times(INTERVAL '1 day', k)
//!   d + INTERVAL 1 HOUR  CAST(d AS TIMESTAMP(6)) + INTERVAL '1 hour'
//! ```
//!
//! The last of a date, of which DataFusion's planner (55.2) makes a date, so that the hour is lost.
//! As in DuckDB, units from the minute up count whole numbers, and seconds may have a fraction.

use datafusion::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr as PlanExpr, ExprSchemable, Operator, cast, lit};
use datafusion::sql::sqlparser::ast::{BinaryOperator, DateTimeField, Expr, Spanned, Value};

use crate::codegen::of_units;
use crate::error::{Error, ErrorKind};
use crate::host::interval_times::interval_times;
use crate::host::with_units;
use crate::sql::ast::{bare, known, number_of};

/// The unit of a field, as functions name it.
fn unit_of_field(field: &DateTimeField) -> Option<&'static str> {
    use DateTimeField::*;
    Some(match field {
        Century => "centuries",
        Decade => "decades",
        Millenium | Millennium => "millennia",
        Year | Years => "years",
        Quarter => "quarters",
        Month | Months => "months",
        Week(None) | Weeks => "weeks",
        Day | Days => "days",
        Hour | Hours => "hours",
        Minute | Minutes => "minutes",
        Second | Seconds => "seconds",
        Millisecond | Milliseconds => "milliseconds",
        Microsecond | Microseconds => "microseconds",
        Nanosecond | Nanoseconds => "nanoseconds",
        _ => return None,
    })
}

/// Whether the number of an interval is no constant.
pub(super) fn is_computed(expr: &Expr) -> bool {
    let Expr::Interval(interval) = expr else { return false };
    let value = bare(&interval.value);
    let is_text = matches!(value, Expr::Value(value)
        if matches!(value.value, Value::SingleQuotedString(_) | Value::DoubleQuotedString(_)));
    !is_text && number_of(value).is_none()
}

/// Writes an interval out, if its number is computed; constants get their quotes, and hours and
/// minutes (`1:30`) their unit.
///
/// # Errors
/// A computed number without a unit, and clauses of a unit beside it.
pub(super) fn write_out(expr: &mut Expr) -> Result<(), Error> {
    if !is_computed(expr) {
        if let Expr::Interval(interval) = expr {
            if let Some(DateTimeField::Millenium | DateTimeField::Millennium) =
                interval.leading_field
                && let Some(number) = number_of(bare(&interval.value))
                && !number.contains('.')
            {
                // Arrow has no such unit.
                interval.leading_field = None;
                *interval.value =
                    Expr::value(Value::SingleQuotedString(format!("{number}000 years")));
            }
            let text = |text: String| Expr::value(Value::SingleQuotedString(text));
            let constant = match (number_of(bare(&interval.value)), bare(&interval.value)) {
                (Some(number), _) => text(number),
                (None, Expr::Value(value)) if interval.leading_field.is_none() => {
                    match &value.value {
                        Value::SingleQuotedString(given) => {
                            text(with_units(given.trim()).into_owned())
                        }
                        _ => bare(&interval.value).clone(),
                    }
                }
                (None, other) => other.clone(),
            };
            *interval.value = constant;
        }
        return Ok(());
    }
    let Expr::Interval(interval) = &*expr else { return Ok(()) };
    let unit = interval.leading_field.as_ref().and_then(unit_of_field);
    let is_plain = interval.leading_precision.is_none()
        && interval.last_field.is_none()
        && interval.fractional_seconds_precision.is_none();
    let Some(unit) = unit.filter(|_| is_plain) else {
        let message = "an INTERVAL of an expression has one unit, such as INTERVAL (k) DAY".into();
        let location = known(interval.value.span().start);
        return Err(ErrorKind::Plan { message, location }.into());
    };
    if let Some(units) = of_units((*interval.value).clone(), unit) {
        *expr = units;
    }
    Ok(())
}

/// Plans operators of intervals that DataFusion does not plan, or not as SQL has them.
#[derive(Debug)]
pub(in crate::session) struct IntervalOperators;

impl ExprPlanner for IntervalOperators {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        let times = |by: PlanExpr, number| {
            let by = match by.get_type(schema) {
                Ok(DataType::Duration(_)) => cast(by, INTERVAL),
                _ => by,
            };
            Ok(PlannerResult::Planned(interval_times().call(vec![by, number])))
        };
        let moved = |op, date, by| {
            let sum = BinaryExpr { left: Box::new(date), op, right: Box::new(by) };
            Ok(PlannerResult::Planned(PlanExpr::BinaryExpr(sum)))
        };
        match op {
            BinaryOperator::Multiply if is_interval(&left, schema) => times(left, right),
            BinaryOperator::Multiply if is_interval(&right, schema) => times(right, left),
            BinaryOperator::Divide if is_interval(&left, schema) => {
                times(left, lit(1.0) / cast(right, DataType::Float64))
            }
            BinaryOperator::Plus | BinaryOperator::Minus if needs_time(&left, &right, schema) => {
                let by = right;
                let op = if op == BinaryOperator::Plus { Operator::Plus } else { Operator::Minus };
                moved(op, with_time(left, &by), by)
            }
            BinaryOperator::Plus if needs_time(&right, &left, schema) => {
                moved(Operator::Plus, with_time(right, &left), left)
            }
            _ => Ok(PlannerResult::Original(RawBinaryExpr { op, left, right })),
        }
    }
}

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// Whether a side is an interval, or the distance of two times. Of other operators within, which may
/// be many, nothing is asked.
fn is_interval(expr: &PlanExpr, schema: &DFSchema) -> bool {
    let may_be = match expr {
        PlanExpr::Literal(value, _) => return matches!(value.data_type(), DataType::Interval(_)),
        PlanExpr::Negative(inner) => return is_interval(inner, schema),
        PlanExpr::Column(_) | PlanExpr::Cast(_) | PlanExpr::ScalarFunction(_) => true,
        PlanExpr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, .. }) => {
            !matches!(**left, PlanExpr::BinaryExpr(_))
        }
        _ => false,
    };
    may_be && matches!(expr.get_type(schema), Ok(DataType::Interval(_) | DataType::Duration(_)))
}

/// Whether a date is moved by a part of a day.
fn needs_time(date: &PlanExpr, by: &PlanExpr, schema: &DFSchema) -> bool {
    part_of_day(by).is_some() && matches!(date.get_type(schema), Ok(DataType::Date32))
}

/// The nanoseconds that an interval is made of, where they are not days for certain.
fn part_of_day(by: &PlanExpr) -> Option<i64> {
    match by {
        PlanExpr::Literal(ScalarValue::IntervalMonthDayNano(Some(by)), _) => {
            Some(by.nanoseconds).filter(|nanos| nanos % 86_400_000_000_000 != 0)
        }
        PlanExpr::Negative(inner) => part_of_day(inner),
        PlanExpr::ScalarFunction(product) if product.name() == interval_times().name() => {
            match product.args.first()? {
                PlanExpr::Literal(ScalarValue::IntervalMonthDayNano(Some(by)), _) => {
                    Some(by.nanoseconds).filter(|nanos| *nanos != 0)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The beginning of a day, in microseconds if such an interval has whole ones.
fn with_time(date: PlanExpr, by: &PlanExpr) -> PlanExpr {
    let whole = part_of_day(by).is_none_or(|nanos| nanos % 1000 == 0);
    let unit = if whole { TimeUnit::Microsecond } else { TimeUnit::Nanosecond };
    cast(date, DataType::Timestamp(unit, None))
}
