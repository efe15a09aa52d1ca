//! Numbers and times as they are written: what the parser's tree and DataFusion's planner would
//! lose of them.
//!
//! ```text
//!   9007199254740993.5            CAST('9007199254740993.5' AS DECIMAL(17, 1))
//!   CAST(2.5 AS INT)              CAST(CAST('2.5' AS DECIMAL(2, 1)) AS INT)
//!   TIMESTAMP '… .123456789'      TIMESTAMP(9) '… .123456789'
//!   m * 1.5, for a DECIMAL m      m * the DECIMAL 1.5
//!   a + b, for integers a and b   CAST(a AS BIGINT) + CAST(b AS BIGINT)
//! ```
//!
//! A number with a point is a DOUBLE by itself, as DataFusion (55.2) has it, if a double is told by
//! these digits. Beside decimals and integers it is the decimal that it says (`comparisons.rs`, and
//! here for the operators that make decimals). A TIMESTAMP is of microseconds, as in PostgreSQL and
//! DuckDB, and one with a zone is of UTC: DataFusion's nanoseconds end in the years 1677 and 2262,
//! and its zone is that of a setting, or none. A text with more digits behind the second has them
//! all.

use std::sync::Arc;

use crate::host::plain_moment;
use crate::sql::ast::{bare, cast, text};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr as PlanExpr, ExprSchemable, Operator, cast as plan_cast,
};
use datafusion::sql::sqlparser::ast::{
    Array, DataType as SqlType, ExactNumberInfo, Expr, TimezoneInfo, TypedString, Value,
    ValueWithSpan, Values,
};

/// Writes a number that no double is told by, and a timestamp of many digits, out.
pub(super) fn write_out(expr: &mut Expr) {
    match expr {
        Expr::Value(value) => {
            if let Value::Number(digits, _) = &value.value
                && let Some(written) = NumberText::of(digits).filter(|_| !is_double(digits))
            {
                *expr = written.decimal();
            }
        }
        Expr::TypedString(TypedString { data_type, value, .. }) => {
            with_nanos(data_type, value.value.clone().into_string());
        }
        Expr::Cast { expr: inner, data_type, .. } => {
            if let Expr::Value(value) = bare(inner) {
                with_nanos(data_type, value.value.clone().into_string());
            }
            if is_integer(data_type) {
                as_decimal(inner);
            }
        }
        _ => {}
    }
}

/// Makes a decimal of a number with a point, in a list, too.
pub(in crate::session) fn as_decimal(expr: &mut Expr) {
    match expr {
        Expr::Nested(inner) => as_decimal(inner),
        Expr::Array(Array { elem, .. }) => elem.iter_mut().for_each(as_decimal),
        Expr::UnaryOp { expr: inner, .. } => as_decimal(inner),
        Expr::Value(value) => {
            if let Value::Number(digits, _) = &value.value
                && let Some(written) = NumberText::of(digits).filter(|written| written.scale > 0)
            {
                *expr = written.decimal();
            }
        }
        _ => {}
    }
}

/// Makes decimals of numbers with a point in a column of VALUES that has a decimal, and doubles of
/// decimals in one that has a double, too.
pub(super) fn beside_decimals(values: &mut Values) {
    let is_decimal = |expr: &Expr| {
        matches!(bare(expr), Expr::Cast { data_type, .. }
            if matches!(data_type, SqlType::Decimal(_) | SqlType::Numeric(_) | SqlType::Dec(_)))
    };
    let width = values.rows.iter().map(|row| row.content.len()).max().unwrap_or(0);
    for column in 0..width {
        let any = |is_it: &dyn Fn(&Expr) -> bool| {
            values.rows.iter().any(|row| row.content.get(column).is_some_and(is_it))
        };
        if !any(&is_decimal) {
            continue;
        }
        let has_double = any(&is_float);
        for cell in values.rows.iter_mut().filter_map(|row| row.content.get_mut(column)) {
            match has_double {
                true if is_decimal(cell) => {
                    let decimal = std::mem::replace(cell, Expr::value(Value::Null));
                    *cell = cast(decimal, SqlType::Double(ExactNumberInfo::None));
                }
                true => {}
                false => as_decimal(cell),
            }
        }
    }
}

/// Whether a value is written as a double: by a cast, or with an exponent.
fn is_float(expr: &Expr) -> bool {
    match bare(expr) {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
            digits.contains(['e', 'E'])
        }
        Expr::UnaryOp { expr, .. } => is_float(expr),
        Expr::Cast { data_type, .. } => matches!(
            data_type,
            SqlType::Double(_)
                | SqlType::DoublePrecision
                | SqlType::Float(_)
                | SqlType::Float4
                | SqlType::Float8
                | SqlType::Float64
                | SqlType::Real
        ),
        _ => false,
    }
}

/// Types that DataFusion has otherwise.
#[derive(Debug)]
pub(in crate::session) struct SqlTypes;

impl TypePlanner for SqlTypes {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        let zoned = |unit, zone| DataType::Timestamp(unit, zone);
        let dtype = match sql_type {
            SqlType::Timestamp(digits, zone) => {
                let unit = match digits {
                    None | Some(6) => TimeUnit::Microsecond,
                    Some(0) => TimeUnit::Second,
                    Some(3) => TimeUnit::Millisecond,
                    Some(9) => TimeUnit::Nanosecond,
                    Some(_) => return Ok(None),
                };
                let is_zoned = matches!(zone, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone);
                zoned(unit, is_zoned.then(|| "UTC".into()))
            }
            SqlType::Datetime(None) => zoned(TimeUnit::Microsecond, None),
            SqlType::Decimal(ExactNumberInfo::None)
            | SqlType::Numeric(ExactNumberInfo::None)
            | SqlType::Dec(ExactNumberInfo::None) => DataType::Decimal128(18, 3),
            SqlType::HugeInt => DataType::Decimal128(38, 0),
            SqlType::UTinyInt => DataType::UInt8,
            SqlType::USmallInt => DataType::UInt16,
            SqlType::UBigInt => DataType::UInt64,
            SqlType::Blob(None) => DataType::Binary,
            // How long it may be is not looked at, as in DuckDB.
            SqlType::Custom(name, _) if name.to_string().eq_ignore_ascii_case("text") => {
                DataType::Utf8View
            }
            SqlType::Custom(name, arguments) if arguments.is_empty() => {
                match name.to_string().to_uppercase().as_str() {
                    "LONG" => DataType::Int64,
                    "SHORT" => DataType::Int16,
                    "INT1" => DataType::Int8,
                    "BPCHAR" => DataType::Utf8View,
                    "UINTEGER" => DataType::UInt32,
                    "TIMESTAMP_S" => zoned(TimeUnit::Second, None),
                    "TIMESTAMP_MS" => zoned(TimeUnit::Millisecond, None),
                    "TIMESTAMP_US" => zoned(TimeUnit::Microsecond, None),
                    "TIMESTAMP_NS" => zoned(TimeUnit::Nanosecond, None),
                    _ => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(Field::new("", dtype, true))))
    }
}

/// Makes a constant timestamp one of nanoseconds, which DataFusion's tables of timestamps take, and
/// which they read as Arrow does.
pub(super) fn in_nanos(expr: &mut Expr) {
    let (Expr::TypedString(TypedString { data_type, .. }) | Expr::Cast { data_type, .. }) = expr
    else {
        return;
    };
    if let SqlType::Timestamp(digits @ None, _) = data_type {
        *digits = Some(9);
    }
    let text = match expr {
        Expr::TypedString(TypedString { value, .. }) => Some(value),
        Expr::Cast { expr, .. } => match &mut **expr {
            Expr::Value(value) => Some(value),
            _ => None,
        },
        _ => None,
    };
    if let Some(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = text {
        *text = plain_moment(text);
    }
}

/// A timestamp of a text with more digits than microseconds have is of nanoseconds.
fn with_nanos(data_type: &mut SqlType, text: Option<String>) {
    if let SqlType::Timestamp(digits @ None, _) = data_type
        && text.is_some_and(|text| has_nanos(&text))
    {
        *digits = Some(9);
    }
}

/// Whether the text of a timestamp has more than six digits behind its second.
fn has_nanos(text: &str) -> bool {
    let Some((_, fraction)) = text.split_once('.') else { return false };
    let digits = fraction.bytes().take_while(u8::is_ascii_digit);
    digits.skip(6).any(|digit| digit != b'0')
}

fn is_integer(data_type: &SqlType) -> bool {
    let name = data_type.to_string().to_uppercase();
    ["TINYINT", "SMALLINT", "INT", "BIGINT", "MEDIUMINT", "LONG", "SHORT"]
        .iter()
        .any(|of| name.starts_with(of))
        && !name.starts_with("INTERVAL")
}

/// Whether a double's shortest text has the digits of a number, or an integer's has.
fn is_double(digits: &str) -> bool {
    let plain = digits.replace('_', "");
    if plain.parse::<u64>().is_ok() {
        return true;
    }
    let shortest = plain.parse::<f64>().map(|double| double.to_string());
    shortest.is_ok_and(|shortest| NumberText::of(&shortest) == NumberText::of(&plain))
}

/// The digits of a number without an exponent, of which a decimal has enough.
#[derive(Debug, PartialEq, Eq)]
struct NumberText {
    negative: bool,
    digits: String,
    scale: usize,
}

impl NumberText {
    /// `None` of more than 38 digits, and of numbers with an exponent. Zeros at the ends do not
    /// count.
    fn of(number: &str) -> Option<NumberText> {
        let (negative, rest) = match number.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, number),
        };
        let rest = rest.replace('_', "");
        let (whole, fraction) = rest.split_once('.').unwrap_or((&rest, ""));
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let digits = format!("{whole}{fraction}");
        let fits = digits.len() <= 38 && digits.bytes().all(|digit| digit.is_ascii_digit());
        fits.then_some(NumberText { negative, digits, scale: fraction.len() })
    }

    fn precision(&self) -> usize {
        self.digits.len().max(self.scale).max(1)
    }

    /// As a cast of its text.
    fn decimal(&self) -> Expr {
        let (sign, scale) = (if self.negative { "-" } else { "" }, self.scale);
        let digits = format!("{:0>1$}", self.digits, scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let point = if scale > 0 { "." } else { "" };
        let number = text(&format!("{sign}{whole}{point}{fraction}"));
        let info = ExactNumberInfo::PrecisionAndScale(self.precision() as u64, scale as i64);
        cast(number, SqlType::Decimal(info))
    }

    fn value(&self) -> Option<ScalarValue> {
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        let value: i128 = digits.parse().ok()?;
        let value = if self.negative { -value } else { value };
        let (precision, scale) = (u8::try_from(self.precision()), i8::try_from(self.scale));
        Some(ScalarValue::Decimal128(Some(value), precision.ok()?, scale.ok()?))
    }
}

/// The decimal that a literal says which is a double, or would be one if a double were told by its
/// digits; and that sums and products of such are: `0.06 + 0.01` is 0.07, whose double is not that
/// of the sum of doubles.
pub(super) fn decimal_of(expr: &PlanExpr) -> Option<ScalarValue> {
    match expr {
        PlanExpr::BinaryExpr(_) => constant(expr, 4).filter(|constant| constant.has_point)?.value(),
        literal => literal_decimal(literal),
    }
}

fn literal_decimal(expr: &PlanExpr) -> Option<ScalarValue> {
    match expr {
        PlanExpr::Literal(ScalarValue::Float64(Some(double)), _) if double.is_finite() => {
            NumberText::of(&double.to_string())?.value()
        }
        PlanExpr::Cast(Cast { expr, field }) if field.data_type().is_decimal() => match &**expr {
            PlanExpr::Literal(text, _) => NumberText::of(text.try_as_str()??)?.value(),
            _ => None,
        },
        PlanExpr::Negative(inner) => decimal_of(inner)?.arithmetic_negate().ok(),
        _ => None,
    }
}

/// A number of constants.
struct ConstantNumber {
    digits: i128,
    scale: u32,
    /// Whether one of them is no integer by its type.
    has_point: bool,
}

impl ConstantNumber {
    fn value(&self) -> Option<ScalarValue> {
        let digits = self.digits.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
        let precision = u8::try_from(digits.max(self.scale)).ok().filter(|p| *p <= 38)?;
        Some(ScalarValue::Decimal128(Some(self.digits), precision, self.scale.try_into().ok()?))
    }

    fn scaled(&self, scale: u32) -> Option<i128> {
        self.digits.checked_mul(10i128.checked_pow(scale - self.scale)?)
    }
}

/// Operators within one another are followed so far.
fn constant(expr: &PlanExpr, depth: usize) -> Option<ConstantNumber> {
    match expr {
        PlanExpr::Literal(ScalarValue::Int64(Some(value)), _) => {
            Some(ConstantNumber { digits: (*value).into(), scale: 0, has_point: false })
        }
        PlanExpr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let depth = depth.checked_sub(1)?;
            let (a, b) = (constant(left, depth)?, constant(right, depth)?);
            let common = a.scale.max(b.scale);
            let (digits, scale) = match op {
                Operator::Plus => (a.scaled(common)?.checked_add(b.scaled(common)?)?, common),
                Operator::Minus => (a.scaled(common)?.checked_sub(b.scaled(common)?)?, common),
                Operator::Multiply => (a.digits.checked_mul(b.digits)?, a.scale + b.scale),
                _ => return None,
            };
            Some(ConstantNumber { digits, scale, has_point: a.has_point || b.has_point })
        }
        literal => match literal_decimal(literal)? {
            ScalarValue::Decimal128(Some(digits), _, scale) => {
                let scale = u32::try_from(scale).ok()?;
                Some(ConstantNumber { digits, scale, has_point: true })
            }
            _ => None,
        },
    }
}

/// Precision and scale of what a decimal or an integer is as a decimal.
pub(super) fn digits_of(dtype: &DataType) -> Option<(i16, i16)> {
    match dtype {
        DataType::Decimal128(precision, scale) => Some(((*precision).into(), (*scale).into())),
        integer if integer.is_integer() => match integer.primitive_width()? {
            1 => Some((3, 0)),
            2 => Some((5, 0)),
            4 => Some((10, 0)),
            _ => Some((20, 0)),
        },
        _ => None,
    }
}

/// An operator with a literal for a decimal where the other side is one, and of integers that
/// cannot leave the type of its result.
pub(super) fn planned(
    op: Operator,
    left: &PlanExpr,
    right: &PlanExpr,
    schema: &DFSchema,
) -> Option<PlanExpr> {
    let joined = |left: PlanExpr, right: PlanExpr| {
        PlanExpr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
    };
    let value = |value: ScalarValue| PlanExpr::Literal(value, None);
    if is_deep(left) {
        return None;
    }
    match (decimal_of(left), decimal_of(right)) {
        (None, Some(literal)) => {
            Some(joined(left.clone(), value(beside(op, literal, &left.get_type(schema).ok()?)?)))
        }
        (Some(literal), None) => {
            Some(joined(value(beside(op, literal, &right.get_type(schema).ok()?)?), right.clone()))
        }
        (None, None) if matches!(op, Operator::Plus | Operator::Minus) => {
            if !is_narrow(left, schema) || !is_narrow(right, schema) {
                return None;
            }
            let wide = |side: &PlanExpr| plan_cast(side.clone(), DataType::Int64);
            Some(joined(wide(left), wide(right)))
        }
        _ => None,
    }
}

/// The literal as the type beside it has it; `None` where that makes no difference.
fn beside(op: Operator, literal: ScalarValue, other: &DataType) -> Option<ScalarValue> {
    if other.is_floating() {
        return literal.cast_to(&DataType::Utf8).ok()?.cast_to(&DataType::Float64).ok();
    }
    let DataType::Decimal128(p, s) = other else { return None };
    let ScalarValue::Decimal128(_, q, t) = &literal else { return None };
    let ([p, q], [s, t]) = ([p, q].map(|p| i16::from(*p)), [s, t].map(|s| i16::from(*s)));
    let digits = match op {
        Operator::Multiply => p + q + 1,
        Operator::Plus | Operator::Minus | Operator::Modulo => s.max(t) + (p - s).max(q - t) + 1,
        _ => return None,
    };
    (digits <= 38).then_some(literal)
}

/// Whether an expression is a signed integer of less than 64 bits. What operators within make, of
/// which there may be many, is wide already, but for products.
fn is_narrow(expr: &PlanExpr, schema: &DFSchema) -> bool {
    if let PlanExpr::BinaryExpr(BinaryExpr { op: Operator::Plus | Operator::Minus, .. }) = expr {
        return false;
    }
    expr.get_type(schema).is_ok_and(|dtype| {
        dtype.is_signed_integer() && dtype.primitive_width().is_some_and(|width| width < 8)
    })
}

/// Whether many operators lean to the left: to ask each for its type would take the square of them.
fn is_deep(mut expr: &PlanExpr) -> bool {
    for _ in 0..32 {
        match expr {
            PlanExpr::BinaryExpr(BinaryExpr { left, .. }) => expr = left,
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_no_double_is_told_by_are_decimals() {
        for (number, decimal) in [
            ("1.5", None),
            ("0.10", None),
            ("1e5", None),
            ("12345678901234567890", None),
            ("9007199254740992.0", None),
            ("9007199254740993.0", Some("CAST('9007199254740993' AS DECIMAL(16,0))")),
            ("38007095276461306.082", Some("CAST('38007095276461306.082' AS DECIMAL(20,3))")),
            (".12345678901234567890", Some("CAST('0.1234567890123456789' AS DECIMAL(19,19))")),
            (
                "123456789012345678901234567890",
                Some("CAST('123456789012345678901234567890' AS DECIMAL(30,0))"),
            ),
            ("1234567890123456789012345678901234567890.5", None),
        ] {
            let mut expr = crate::sql::ast::number(number);
            write_out(&mut expr);
            assert_eq!(expr.to_string(), decimal.unwrap_or(number));
        }
    }

    #[test]
    fn doubles_are_the_decimals_that_their_digits_say() {
        let decimal = |double: f64| decimal_of(&datafusion::prelude::lit(double));
        assert_eq!(decimal(0.1), Some(ScalarValue::Decimal128(Some(1), 1, 1)));
        assert_eq!(decimal(-12.50), Some(ScalarValue::Decimal128(Some(-125), 3, 1)));
        assert_eq!(decimal(0.0), Some(ScalarValue::Decimal128(Some(0), 1, 0)));
        assert_eq!(decimal(1e37), Some(ScalarValue::Decimal128(Some(10i128.pow(37)), 38, 0)));
        assert_eq!(decimal(1e38), None);
        assert_eq!(decimal(f64::NAN), None);
        let lit = datafusion::prelude::lit::<f64>;
        let sum = decimal_of(&(lit(0.06) + lit(0.01) * lit(1.5)));
        assert_eq!(sum, Some(ScalarValue::Decimal128(Some(75), 3, 3)));
        assert_eq!(
            decimal_of(&(datafusion::prelude::lit(1i64) + datafusion::prelude::lit(2i64))),
            None
        );
    }

    #[test]
    fn digits_behind_the_sixth_make_nanoseconds() {
        assert!(has_nanos("2024-01-01 00:00:00.1234567"));
        assert!(!has_nanos("2024-01-01 00:00:00.1234560Z"));
        assert!(!has_nanos("2024-01-01"));
    }
}
