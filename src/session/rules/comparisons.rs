//! Numbers and times are compared as what they are, where DataFusion's planner (55.2) would cast
//! them to types that do not hold them all.
//!
//! ```text
//!   i = 9007199254740993.0    a decimal or an integer beside a column of such; a double has 53 bits
//!   m = 38007095276461306.082 as it is; beside a decimal a double is a DECIMAL(30, 15)
//!   m < x, for a double x     as doubles, for the same reason; so are coalesce(m, x) and [m, x]
//!   d > TIMESTAMP '2024-01-01 12:00:00', d < now(), t < TIMESTAMP '9999-12-31'
//!                             in the finer of both units, whose end stands for what lies beyond:
//!                             nanoseconds end in 1677 and 2262, and a cast to them is an error
//! ```
//!
//! A constant takes the other side's unit where it is whole in it, so that the column is compared
//! as it lies. Lists and subqueries of IN, bounds of BETWEEN, the values of a CASE with a base, the
//! results of CASE, coalesce, greatest, least and nullif, elements of lists, and columns of set
//! operations (`set_types.rs`) are seen to as well.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
    cast,
};

use super::numbers::{decimal_of, digits_of};
use crate::host::{cast_exactly, in_unit};
use crate::plan::{is_comparison, schema_beneath};

/// An operator whose expressions agree.
pub(super) fn of_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut concerned = false;
    node.apply_expressions(|expr| {
        concerned = expr.exists(|expr| Ok(compares(expr)))?;
        Ok(if concerned { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !concerned {
        return Ok(Transformed::no(node));
    }
    let schema = schema_beneath(&node)?;
    let names = NamePreserver::new(&node);
    let changed = node.map_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.transform_up(|expr| agreed(expr, &schema))?;
        Ok(match changed.transformed {
            true => changed.update_data(|expr| name.restore(expr)),
            false => changed,
        })
    })?;
    match changed.transformed {
        true => changed.map_data(|node| node.recompute_schema()),
        false => Ok(changed),
    }
}

/// Functions that choose one of their arguments, or make one list of them.
const CHOOSING: [&str; 7] =
    ["coalesce", "greatest", "least", "make_array", "nullif", "nvl", "ifnull"];

/// Whether an expression compares values, or chooses one of them.
fn compares(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => is_comparison(binary.op) || binary.op == Operator::Minus,
        Expr::Between(_) | Expr::InList(_) | Expr::Case(_) => true,
        Expr::InSubquery(_) | Expr::SetComparison(_) => true,
        Expr::ScalarFunction(call) => CHOOSING.contains(&call.name()),
        _ => false,
    }
}

fn agreed(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let agree = |values: Vec<&mut Expr>, compared: bool| agree(values, schema, compared);
    let mut expr = expr;
    let changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) => {
            of_date_and_time(left, right, schema)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            agree(vec![&mut **left, &mut **right], true)?
        }
        Expr::Between(between) => {
            let bounds = [&mut *between.low, &mut *between.high];
            agree([&mut *between.expr].into_iter().chain(bounds).collect(), true)?
        }
        Expr::InList(list) => {
            let items = list.list.iter_mut();
            agree([&mut *list.expr].into_iter().chain(items).collect(), true)?
        }
        Expr::Case(case) => {
            let (whens, thens): (Vec<&mut Expr>, Vec<&mut Expr>) = case
                .when_then_expr
                .iter_mut()
                .map(|(when, then)| (&mut **when, &mut **then))
                .unzip();
            let of_base = match &mut case.expr {
                Some(base) => agree([&mut **base].into_iter().chain(whens).collect(), true)?,
                None => false,
            };
            let otherwise = case.else_expr.iter_mut().map(|otherwise| &mut **otherwise);
            agree(thens.into_iter().chain(otherwise).collect(), false)? || of_base
        }
        Expr::InSubquery(member) => of_subquery(&mut member.expr, &mut member.subquery, schema)?,
        Expr::SetComparison(compared) => {
            of_subquery(&mut compared.expr, &mut compared.subquery, schema)?
        }
        Expr::ScalarFunction(call) if CHOOSING.contains(&call.name()) => {
            agree(call.args.iter_mut().collect(), false)?
        }
        _ => false,
    };
    Ok(Transformed::new_transformed(expr, changed))
}

/// Has values agree in what they say, which are compared or of which one is chosen; whether any
/// changed.
pub(super) fn agree(mut values: Vec<&mut Expr>, schema: &DFSchema, compared: bool) -> Result<bool> {
    // Lists are long where they are of literals of one type.
    let first = values.first().map(|value| value.get_type(schema));
    let Some(Ok(first)) = first else { return Ok(false) };
    let mut types = vec![first];
    for value in &values[1..] {
        match value.get_type(schema) {
            Ok(dtype) => types.push(dtype),
            Err(_) => return Ok(false),
        }
    }
    if types.iter().all(|dtype| *dtype == types[0]) {
        return Ok(false);
    }
    if !compared {
        return Ok(in_one_decimal(&mut values, &types)
            || beside_floats(&mut values, &types)
            || as_times(&mut values, &types));
    }
    Ok(as_decimals(&mut values, &types) || in_one_unit(&mut values, &types, schema)?)
}

/// Decimals as doubles, beside floats: a DECIMAL(30, 15) does not hold all of these.
fn as_floats(
    values: &mut [&mut Expr],
    types: &[DataType],
    literals: Vec<Option<ScalarValue>>,
) -> bool {
    let mut changed = false;
    let decimals = values.iter_mut().zip(types).zip(literals);
    for ((value, _), literal) in decimals.filter(|((_, dtype), _)| dtype.is_decimal()) {
        let double = literal.and_then(|literal| {
            literal.cast_to(&DataType::Utf8).ok()?.cast_to(&DataType::Float64).ok()
        });
        **value = match double {
            Some(double) => Expr::Literal(double, None),
            None => cast(std::mem::take(*value), DataType::Float64),
        };
        changed = true;
    }
    changed
}

/// Decimals and floats of which one is chosen, as doubles.
fn beside_floats(values: &mut [&mut Expr], types: &[DataType]) -> bool {
    if !types.iter().any(DataType::is_floating)
        || !types.iter().all(|dtype| dtype.is_numeric() || dtype.is_null())
    {
        return false;
    }
    let literals = values.iter().map(|value| decimal_of(value)).collect();
    as_floats(values, types, literals)
}

/// Literals with a point as decimals, beside decimals and integers, and as doubles beside floats.
fn as_decimals(values: &mut [&mut Expr], types: &[DataType]) -> bool {
    let literals: Vec<Option<ScalarValue>> = values.iter().map(|value| decimal_of(value)).collect();
    let others = || types.iter().zip(&literals).filter(|(_, literal)| literal.is_none());
    let mut others_of = others().map(|(dtype, _)| dtype).filter(|dtype| !dtype.is_null());
    if others_of.clone().any(DataType::is_floating) {
        return as_floats(values, types, literals);
    }
    if literals.iter().all(Option::is_none)
        || others_of.clone().next().is_none()
        || others_of.any(|dtype| digits_of(dtype).is_none())
    {
        return false;
    }
    let integers = others().all(|(dtype, _)| dtype.is_integer() || dtype.is_null());
    let digits = |(dtype, literal): (&DataType, &Option<ScalarValue>)| match literal {
        Some(literal) => digits_of(&literal.data_type()),
        None => digits_of(dtype),
    };
    let all: Vec<(i16, i16)> = types.iter().zip(&literals).filter_map(digits).collect();
    let scale = all.iter().map(|(_, scale)| *scale).max().unwrap_or_default();
    let whole = all.iter().map(|(precision, scale)| precision - scale).max().unwrap_or_default();
    if whole + scale > 38 {
        return false;
    }
    for (value, literal) in values.iter_mut().zip(literals) {
        let Some(literal) = literal else { continue };
        // An integer compares faster.
        let integer = match &literal {
            ScalarValue::Decimal128(Some(digits), _, 0) if integers => i64::try_from(*digits).ok(),
            _ => None,
        };
        **value =
            Expr::Literal(integer.map_or(literal, |value| ScalarValue::Int64(Some(value))), None);
    }
    true
}

/// Has a value and the column of a subquery agree in their types.
fn of_subquery(value: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let columns = subquery.subquery.schema().columns();
    let [column] = &columns[..] else { return Ok(false) };
    let (mut schema, name) = (schema.clone(), "column of a subquery");
    let field = subquery.subquery.schema().field(0).as_ref().clone().with_name(name);
    schema.merge(&DFSchema::from_unqualified_fields(vec![field].into(), HashMap::new())?);
    let mut found = Expr::Column(Column::new_unqualified(name));
    if !agree(vec![value, &mut found], &schema, true)? {
        return Ok(false);
    }
    let found = found.transform_up(|expr| match expr {
        Expr::Column(_) => Ok(Transformed::yes(Expr::Column(column.clone()))),
        other => Ok(Transformed::no(other)),
    })?;
    if !matches!(found.data, Expr::Column(_)) {
        let found = found.data.alias(column.name());
        let plan = LogicalPlanBuilder::from(subquery.subquery.clone()).project([found])?.build()?;
        *subquery = subquery.with_plan(Arc::new(plan));
    }
    Ok(true)
}

/// Dates and timestamps of which one is chosen: dates in the timestamps' unit, unless that is
/// nanoseconds.
fn as_times(values: &mut [&mut Expr], types: &[DataType]) -> bool {
    let Some(time) = time_of(types) else { return false };
    for (value, dtype) in values.iter_mut().zip(types) {
        if *dtype == DataType::Date32 {
            **value = cast(std::mem::take(*value), time.clone());
        }
    }
    true
}

/// The type of timestamps beside which there are dates, where all have one that holds these.
fn time_of(types: &[DataType]) -> Option<DataType> {
    let mut times = types.iter().filter(|dtype| !dtype.is_null() && **dtype != DataType::Date32);
    let time = times.next()?;
    let is_one = matches!(time, DataType::Timestamp(unit, None) if *unit != TimeUnit::Nanosecond);
    (is_one && times.all(|other| other == time) && types.contains(&DataType::Date32))
        .then(|| time.clone())
}

/// Decimals and integers of which one is chosen, as decimals that hold all of them.
fn in_one_decimal(values: &mut [&mut Expr], types: &[DataType]) -> bool {
    let of = |(dtype, value): (&DataType, &&mut Expr)| match decimal_of(value) {
        Some(literal) => digits_of(&literal.data_type()),
        None => digits_of(dtype),
    };
    let is_number = |dtype: &DataType, value: &Expr| {
        dtype.is_null() || digits_of(dtype).is_some() || decimal_of(value).is_some()
    };
    let all = || types.iter().zip(values.iter());
    let any = |of: fn(&DataType) -> bool| {
        all().any(|(dtype, value)| of(dtype) && decimal_of(value).is_none())
    };
    if !all().all(|(dtype, value)| is_number(dtype, value))
        || !any(|dtype| matches!(dtype, DataType::Decimal128(..)))
    {
        return false;
    }
    let digits: Vec<(i16, i16)> = all().filter_map(of).collect();
    let scale = digits.iter().map(|(_, scale)| *scale).max().unwrap_or_default();
    let whole = digits.iter().map(|(precision, scale)| precision - scale).max().unwrap_or_default();
    let (Ok(precision), Ok(scale)) = (u8::try_from(whole + scale), i8::try_from(scale)) else {
        return false;
    };
    if precision > 38 {
        return false;
    }
    let to = DataType::Decimal128(precision, scale);
    for (value, dtype) in values.iter_mut().zip(types) {
        let literal = decimal_of(value).and_then(|literal| literal.cast_to(&to).ok());
        match literal {
            Some(literal) => **value = Expr::Literal(literal, None),
            None if *dtype != to => **value = cast(std::mem::take(*value), to.clone()),
            None => {}
        }
    }
    true
}

/// A date and a timestamp of which one is taken from the other: in the timestamp's unit.
fn of_date_and_time(left: &mut Expr, right: &mut Expr, schema: &DFSchema) -> bool {
    let is_time =
        |dtype: &DataType| matches!(dtype, DataType::Date32 | DataType::Timestamp(_, None));
    // Operators lean to the left, and may be many.
    let Ok(of_right) = right.get_type(schema) else { return false };
    if !is_time(&of_right) {
        return false;
    }
    let Ok(of_left) = left.get_type(schema) else { return false };
    let (date, time) = match (&of_left, &of_right) {
        (DataType::Date32, time @ DataType::Timestamp(_, None)) => (left, time.clone()),
        (time @ DataType::Timestamp(_, None), DataType::Date32) => (right, time.clone()),
        _ => return false,
    };
    *date = cast(std::mem::take(date), time);
    true
}

/// Dates and timestamps in one unit, which holds all of them or knows what lies beyond it.
fn in_one_unit(values: &mut [&mut Expr], types: &[DataType], schema: &DFSchema) -> Result<bool> {
    let is_time = |dtype: &DataType| matches!(dtype, DataType::Date32 | DataType::Timestamp(_, _));
    if !types.iter().all(|dtype| is_time(dtype) || dtype.is_null() || dtype.is_string()) {
        return Ok(false);
    }
    let times = || types.iter().filter(|dtype| is_time(dtype));
    let read = match times().find(|dtype| matches!(dtype, DataType::Timestamp(_, None))) {
        Some(time) => texts_as_times(values, types, time),
        None => false,
    };
    if times().all(|dtype| Some(dtype) == times().next()) {
        return Ok(read);
    }
    let constants: Vec<Option<i128>> = values.iter().map(|value| nanoseconds(value)).collect();
    // What all that is no constant is.
    let mut own = types
        .iter()
        .zip(&constants)
        .filter(|(dtype, constant)| is_time(dtype) && constant.is_none())
        .map(|(dtype, _)| dtype);
    if let Some(column) = own.next()
        && own.all(|dtype| dtype == column)
    {
        for (value, constant) in values.iter_mut().zip(&constants) {
            if let Some(literal) = constant.and_then(|nanos| whole_in(nanos, column)) {
                **value = Expr::Literal(literal, None);
            }
        }
    }
    let now: Vec<DataType> =
        values.iter().map(|value| value.get_type(schema)).collect::<Result<_>>()?;
    let finest = now.iter().filter_map(unit_of).max_by_key(ticks);
    let Some(finest) = finest else { return Ok(true) };
    for (value, dtype) in values.iter_mut().zip(&now) {
        let to = match dtype {
            DataType::Date32 if now.iter().any(|dtype| unit_of(dtype).is_some()) => {
                DataType::Timestamp(finest, None)
            }
            DataType::Timestamp(unit, zone) if *unit != finest => {
                DataType::Timestamp(finest, zone.clone())
            }
            _ => continue,
        };
        **value = in_unit(std::mem::take(*value), to);
    }
    Ok(true)
}

/// Texts beside timestamps as such, which DataFusion reads as nanoseconds.
fn texts_as_times(values: &mut [&mut Expr], types: &[DataType], time: &DataType) -> bool {
    let mut changed = false;
    for (value, _) in values.iter_mut().zip(types).filter(|(_, dtype)| dtype.is_string()) {
        let nanos = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let literal = match &**value {
            Expr::Literal(text, _) if !text.is_null() => [&nanos, time]
                .into_iter()
                .find_map(|to| nanoseconds(&cast(Expr::Literal(text.clone(), None), to.clone()))),
            _ => None,
        };
        let literal = literal.and_then(|nanos| whole_in(nanos, time));
        let read = match literal {
            Some(literal) => Expr::Literal(literal, None),
            // What is no time is an error of the cast.
            None if *time != nanos && !matches!(**value, Expr::Literal(..)) => {
                cast(std::mem::take(*value), time.clone())
            }
            None => continue,
        };
        **value = read;
        changed = true;
    }
    changed
}

fn unit_of(dtype: &DataType) -> Option<TimeUnit> {
    match dtype {
        DataType::Timestamp(unit, _) => Some(*unit),
        _ => None,
    }
}

/// Ticks in a second.
fn ticks(unit: &TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

const DAY_NANOS: i128 = 86_400_000_000_000;

/// The nanoseconds since 1970 of a constant date or timestamp without a zone.
fn nanoseconds(expr: &Expr) -> Option<i128> {
    let value = match expr {
        Expr::Literal(value, _) => value.clone(),
        Expr::Cast(Cast { expr, field }) => match &**expr {
            Expr::Literal(text, _) if text.data_type().is_string() && !text.is_null() => {
                let read = cast_exactly(&text.to_array().ok()?, field.data_type(), false).ok()?;
                ScalarValue::try_from_array(&read, 0).ok()?
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(match value {
        ScalarValue::Date32(Some(days)) => i128::from(days) * DAY_NANOS,
        ScalarValue::TimestampSecond(Some(count), None) => i128::from(count) * 1_000_000_000,
        ScalarValue::TimestampMillisecond(Some(count), None) => i128::from(count) * 1_000_000,
        ScalarValue::TimestampMicrosecond(Some(count), None) => i128::from(count) * 1_000,
        ScalarValue::TimestampNanosecond(Some(count), None) => count.into(),
        _ => return None,
    })
}

/// A time as a value of a type, where it is one.
fn whole_in(nanos: i128, dtype: &DataType) -> Option<ScalarValue> {
    let whole = |length: i128| (nanos % length == 0).then_some(nanos / length);
    Some(match dtype {
        DataType::Date32 => ScalarValue::Date32(Some(whole(DAY_NANOS)?.try_into().ok()?)),
        DataType::Timestamp(unit, None) => {
            let count = Some(whole(1_000_000_000 / ticks(unit))?.try_into().ok()?);
            match unit {
                TimeUnit::Second => ScalarValue::TimestampSecond(count, None),
                TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(count, None),
                TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(count, None),
                TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(count, None),
            }
        }
        _ => return None,
    })
}
