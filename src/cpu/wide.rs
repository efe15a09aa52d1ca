//! What DataFusion's CPU operators compute wrongly, said in other words before they are planned.
//!
//! | asked | DataFusion 55.2 | planned instead |
//! |---|---|---|
//! | `sum(decimal(38, s))` | wraps at 2¹²⁷ | the sum as `decimal(76, s)`, cast back |
//! | `avg(decimal(38, s))` | wraps, or scales beyond | the average as `decimal(76, …)`, cast back |
//! | `RANGE` by a distance | bounds overflow | the same over a wider key, which holds every bound |
//!
//! The cast back fails beyond 38 digits. A `RANGE` bound that overflows takes in null keys, and one
//! below 0 of unsigned keys is 0.
//!
//! DataFusion's issues 16406 (decimals that overflow), 22713 (averages) and 22137 (bounds that
//! overflow, which since go to the partition's end). The tests below say when it answers rightly
//! itself.
//!
//! A regular expression that is too large to compile is an error that names it; DataFusion's does
//! not.
//!
//! Every node that is stated otherwise has a projection above it, which gives its columns their
//! names and types again.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit, i256};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction, WindowFunctionDefinition};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Projection, Window,
    WindowFrame, WindowFrameBound, WindowFrameUnits, cast, when,
};
use regex_automata::nfa::thompson;

use crate::codegen::of_like;

/// The plan in words that the CPU's operators compute rightly.
///
/// # Errors
/// `Plan` for a pattern that is too large to compile.
pub(crate) fn for_cpu(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Some((pattern, expression)) = regular_expression(expr) {
                    of_bounded_size(pattern, &expression)?;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    plan.transform_up_with_subqueries(|plan| {
        let mended = match &plan {
            LogicalPlan::Aggregate(aggregate) => of_aggregate(aggregate)?,
            LogicalPlan::Window(window) => of_window(window)?,
            _ => None,
        };
        Ok(mended.map_or_else(|| Transformed::no(plan), Transformed::yes))
    })
    .data()
}

fn text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

/// LIKE patterns of fewer bytes are never too large.
const SHORT: usize = 1000;

/// The constant pattern that an expression compiles, and the regular expression that it is.
fn regular_expression(expr: &Expr) -> Option<(&str, Cow<'_, str>)> {
    let pattern = match expr {
        Expr::BinaryExpr(BinaryExpr { op, right, .. }) => {
            use Operator::{RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
            match op {
                RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch => right,
                _ => return None,
            }
        }
        Expr::SimilarTo(like) => &like.pattern,
        Expr::Like(like) => {
            let pattern = text(&like.pattern).filter(|pattern| pattern.len() >= SHORT)?;
            return Some((pattern, of_like(pattern).into()));
        }
        Expr::ScalarFunction(call) if call.func.name().starts_with("regexp_") => {
            call.args.get(1)?
        }
        _ => return None,
    };
    text(pattern).map(|pattern| (pattern, pattern.into()))
}

/// Fails where the pattern, as this regular expression, would take more memory than those may.
fn of_bounded_size(pattern: &str, expression: &str) -> Result<()> {
    // The limit of the crate `regex`, which compiles them on the CPU.
    let config = thompson::Config::new().nfa_size_limit(Some(10 << 20));
    match thompson::NFA::compiler().configure(config).build(expression) {
        Err(error) if error.size_limit().is_some() => {
            Err(DataFusionError::Plan(format!("the pattern '{pattern}' is too large: {error}")))
        }
        _ => Ok(()),
    }
}

fn of_aggregate(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    let schema = aggregate.input.schema();
    let mut changed = vec![false; aggregate.schema.fields().len() - aggregate.aggr_expr.len()];
    let mut exprs = vec![];
    for expr in &aggregate.aggr_expr {
        let wide = wide_argument(expr, schema)?;
        changed.push(wide.is_some());
        exprs.push(wide.unwrap_or_else(|| expr.clone()));
    }
    if !changed.contains(&true) {
        return Ok(None);
    }
    let made = Aggregate::try_new(aggregate.input.clone(), aggregate.group_expr.clone(), exprs)?;
    let made = LogicalPlan::Aggregate(made);
    let columns = (0..changed.len()).map(|at| column_of(&made, at)).collect();
    Ok(Some(under(made, &aggregate.schema, columns, &changed)?))
}

fn of_window(window: &Window) -> Result<Option<LogicalPlan>> {
    let schema = window.input.schema();
    let key = wide_key(&window.window_expr, schema)?;
    let width = schema.fields().len();
    let mut exprs = vec![];
    let mut changed = vec![false; width];
    for expr in &window.window_expr {
        let wide = wide_argument(expr, schema)?;
        changed.push(wide.is_some());
        exprs.push(wide.unwrap_or_else(|| expr.clone()));
    }
    if key.is_none() && !changed.contains(&true) {
        return Ok(None);
    }
    let wide = match key {
        None => exprs,
        Some(Key::Wide(wide)) => {
            exprs.into_iter().map(|expr| wide.over(expr)).collect::<Result<_>>()?
        }
        Some(Key::NullsApart) => return Ok(Some(with_nulls_apart(window, &exprs, &changed)?)),
    };
    let made = LogicalPlan::Window(Window::try_new(wide, window.input.clone())?);
    let columns = (0..changed.len()).map(|at| column_of(&made, at)).collect();
    Ok(Some(under(made, &window.schema, columns, &changed)?))
}

/// The window with nulls in partitions of their own for frames whose bounds would reach them. Where
/// a frame has an end that is open, those of nulls hold values, too: they are taken from the frame
/// as it stands.
fn with_nulls_apart(window: &Window, exprs: &[Expr], changed: &[bool]) -> Result<LogicalPlan> {
    let width = window.input.schema().fields().len();
    let frames: Vec<Option<Reach>> = exprs.iter().map(reach).collect();
    let of_values =
        |at: &usize| matches!(frames[*at], Some(Reach::Values | Reach::OpenBehindValues));
    let apart: Vec<usize> = (0..exprs.len()).filter(of_values).collect();
    let whole: Vec<usize> =
        (0..exprs.len()).filter(|at| frames[*at] != Some(Reach::Values)).collect();
    let mut plan = window.input.clone();
    if !whole.is_empty() {
        let exprs = whole.iter().map(|at| exprs[*at].clone()).collect();
        plan = Arc::new(LogicalPlan::Window(Window::try_new(exprs, plan)?));
    }
    if !apart.is_empty() {
        let exprs = apart.iter().map(|at| apart_from_nulls(exprs[*at].clone())).collect();
        plan = Arc::new(LogicalPlan::Window(Window::try_new(exprs, plan)?));
    }
    let place = |among: &[usize], at: usize| among.iter().position(|of| *of == at);
    let result = |at: usize| -> Result<Expr> {
        let whole_column = place(&whole, at).map(|place| column_of(&plan, width + place));
        let apart_column =
            place(&apart, at).map(|place| column_of(&plan, width + whole.len() + place));
        match (whole_column, apart_column, window_function(&exprs[at])) {
            (Some(of_nulls), Some(of_values), Some(call)) => {
                when(call.params.order_by[0].expr.clone().is_null(), of_nulls).otherwise(of_values)
            }
            (Some(column), _, _) | (None, Some(column), _) => Ok(column),
            (None, None, _) => {
                Err(DataFusionError::Internal("a window expression that was lost".into()))
            }
        }
    };
    let inputs = (0..width).map(|at| Ok(column_of(&plan, at)));
    let columns = inputs.chain((0..exprs.len()).map(result)).collect::<Result<_>>()?;
    under(Arc::unwrap_or_clone(plan.clone()), &window.schema, columns, changed)
}

fn column_of(plan: &LogicalPlan, at: usize) -> Expr {
    Expr::from(plan.schema().qualified_field(at))
}

/// Columns of the plan by the names and types of the schema; those that changed are cast.
fn under(
    plan: LogicalPlan,
    schema: &DFSchemaRef,
    columns: Vec<Expr>,
    changed: &[bool],
) -> Result<LogicalPlan> {
    let exprs = columns.into_iter().enumerate().map(|(at, made)| {
        let (table, field) = schema.qualified_field(at);
        let made = if changed[at] { cast(made, field.data_type().clone()) } else { made };
        made.alias_qualified(table.cloned(), field.name())
    });
    let exprs = exprs.collect();
    Ok(LogicalPlan::Projection(Projection::try_new_with_schema(
        exprs,
        Arc::new(plan),
        schema.clone(),
    )?))
}

// ---- sums of decimals ----

/// Digits of a decimal's sum beyond its own: there are fewer than 10¹⁰ rows.
const ROWS: u8 = 10;
/// Digits by which an average scales its sum up.
const SCALED: u8 = 4;
const DIGITS: u8 = 38;

/// The aggregate over a decimal that is wide enough; `None` where it is so as it stands.
fn wide_argument(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let (name, args) = match expr {
        Expr::Alias(alias) => return wide_argument(&alias.expr, schema),
        Expr::AggregateFunction(call) => (call.func.name(), &call.params.args),
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) => {
                (function.name(), &call.params.args)
            }
            WindowFunctionDefinition::WindowUDF(_) => return Ok(None),
        },
        _ => return Ok(None),
    };
    let [arg] = args.as_slice() else { return Ok(None) };
    let digits = match name {
        "sum" => ROWS,
        "avg" => ROWS + SCALED,
        _ => return Ok(None),
    };
    let wide = match arg.get_type(schema)? {
        DataType::Decimal128(precision, scale) if precision > DIGITS - digits => {
            DataType::Decimal256(precision, scale)
        }
        // Their sums have no more digits than they.
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(precision, scale)
        }
        _ => return Ok(None),
    };
    let args = vec![cast(arg.clone(), wide)];
    Ok(Some(match expr {
        Expr::AggregateFunction(call) => {
            let mut call: AggregateFunction = call.clone();
            call.params.args = args;
            Expr::AggregateFunction(call)
        }
        Expr::WindowFunction(call) => {
            let mut call: Box<WindowFunction> = call.clone();
            call.params.args = args;
            Expr::WindowFunction(call)
        }
        _ => return Ok(None),
    }))
}

// ---- frames by distances ----

/// How bounds at a distance are kept from the nulls.
enum Key {
    Wide(WideKey),
    /// Nulls are in partitions of their own, so that the end of a partition is the end of its
    /// values.
    NullsApart,
}

/// The key as a decimal of a type in which bounds do not overflow.
struct WideKey {
    dtype: DataType,
    /// What it is cast to before.
    integer: Option<DataType>,
    units: Units,
}

/// What distances are counted in.
#[derive(Debug, Clone, Copy)]
enum Units {
    /// As the key counts.
    Own,
    /// Intervals of days.
    Days,
    /// Intervals, as billionths of a unit of so many nanoseconds.
    Nanoseconds(i128),
}

const BILLION: i128 = 1_000_000_000;
const NANOSECONDS_A_DAY: i128 = 86_400 * BILLION;

/// What is to be done of the key that window expressions share; `None` where bounds are right as
/// they are.
fn wide_key(exprs: &[Expr], schema: &DFSchema) -> Result<Option<Key>> {
    let calls: Vec<&WindowFunction> = exprs.iter().filter_map(window_function).collect();
    let distances: Vec<&WindowFunction> =
        calls.iter().copied().filter(|call| has_distance(call)).collect();
    let Some([key]) = distances.first().map(|call| call.params.order_by.as_slice()) else {
        return Ok(None);
    };
    let (dtype, nullable) = (key.expr.get_type(schema)?, key.expr.nullable(schema)?);
    if !nullable && !dtype.is_unsigned_integer() {
        return Ok(None);
    }
    let intervals: Vec<IntervalMonthDayNano> =
        distances.iter().flat_map(|call| intervals_of(call)).collect();
    let decimal = |scale: i8, integer: Option<DataType>, units: Units| {
        Some(Key::Wide(WideKey { dtype: DataType::Decimal128(DIGITS, scale), integer, units }))
    };
    let fixed = intervals.iter().all(|by| by.months == 0);
    let nanoseconds = |unit: &TimeUnit| match unit {
        TimeUnit::Second => BILLION,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    Ok(match &dtype {
        dtype if dtype.is_integer() => decimal(0, None, Units::Own),
        DataType::Decimal128(DIGITS, scale) => {
            let dtype = DataType::Decimal256(2 * DIGITS, *scale);
            Some(Key::Wide(WideKey { dtype, integer: None, units: Units::Own }))
        }
        DataType::Date32 if fixed && intervals.iter().all(|by| by.nanoseconds == 0) => {
            decimal(0, Some(DataType::Int32), Units::Days)
        }
        // A day is not everywhere as long where there is a time zone.
        DataType::Timestamp(unit, zone)
            if fixed && (zone.is_none() || intervals.iter().all(|by| by.days == 0)) =>
        {
            decimal(9, Some(DataType::Int64), Units::Nanoseconds(nanoseconds(unit)))
        }
        DataType::Date32 | DataType::Timestamp(_, _) => {
            let reached =
                exprs.iter().filter_map(reach).any(|reach| reach != Reach::OpenBehindNulls);
            reached.then_some(Key::NullsApart)
        }
        _ => None,
    })
}

/// Where a frame by distances ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Both ends are at a distance, or with the row's peers.
    Values,
    /// It has an open end, on the side where the nulls are: to which bounds that overflow go as
    /// well.
    OpenBehindNulls,
    /// It has an open end on the other side.
    OpenBehindValues,
}

fn reach(expr: &Expr) -> Option<Reach> {
    let params = &window_function(expr).filter(|call| has_distance(call))?.params;
    let nulls_first = params.order_by.first()?.nulls_first;
    let open = [&params.window_frame.start_bound, &params.window_frame.end_bound].map(is_unbounded);
    Some(match open {
        [false, false] => Reach::Values,
        [start, _] if start == nulls_first => Reach::OpenBehindNulls,
        _ => Reach::OpenBehindValues,
    })
}

fn is_unbounded(bound: &WindowFrameBound) -> bool {
    match bound {
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) => by.is_null(),
        WindowFrameBound::CurrentRow => false,
    }
}

/// The window expression with nulls in partitions of their own.
fn apart_from_nulls(expr: Expr) -> Expr {
    match expr {
        Expr::Alias(alias) => apart_from_nulls(*alias.expr),
        Expr::WindowFunction(mut call) => {
            let key = call.params.order_by[0].expr.clone();
            call.params.partition_by.push(key.is_null());
            Expr::WindowFunction(call)
        }
        other => other,
    }
}

fn window_function(expr: &Expr) -> Option<&WindowFunction> {
    match expr {
        Expr::Alias(alias) => window_function(&alias.expr),
        Expr::WindowFunction(call) => Some(call),
        _ => None,
    }
}

fn distance(bound: &WindowFrameBound) -> Option<&ScalarValue> {
    match bound {
        WindowFrameBound::Preceding(by) | WindowFrameBound::Following(by) if !by.is_null() => {
            Some(by)
        }
        _ => None,
    }
}

/// Whether the frame has a bound at a distance of values.
fn has_distance(call: &WindowFunction) -> bool {
    let frame = &call.params.window_frame;
    let bounds = [&frame.start_bound, &frame.end_bound];
    frame.units == WindowFrameUnits::Range
        && bounds.into_iter().any(|bound| distance(bound).is_some())
}

fn intervals_of(call: &WindowFunction) -> Vec<IntervalMonthDayNano> {
    let frame = &call.params.window_frame;
    let interval = |bound| match distance(bound) {
        Some(ScalarValue::IntervalMonthDayNano(by)) => *by,
        _ => None,
    };
    [&frame.start_bound, &frame.end_bound].into_iter().filter_map(interval).collect()
}

impl WideKey {
    /// The window expression over this key.
    fn over(&self, expr: Expr) -> Result<Expr> {
        let mut call = match expr {
            Expr::Alias(alias) => return self.over(*alias.expr),
            Expr::WindowFunction(call) => call,
            other => return Ok(other),
        };
        let by_distance = has_distance(&call);
        let params = &mut call.params;
        let key = params.order_by[0].expr.clone();
        let key = self.integer.iter().fold(key, |key, integer| cast(key, integer.clone()));
        params.order_by[0].expr = cast(key, self.dtype.clone());
        if by_distance {
            let frame = &params.window_frame;
            let (start, end) = (self.bound(&frame.start_bound)?, self.bound(&frame.end_bound)?);
            params.window_frame = WindowFrame::new_bounds(frame.units, start, end);
        }
        Ok(Expr::WindowFunction(call))
    }

    fn bound(&self, bound: &WindowFrameBound) -> Result<WindowFrameBound> {
        Ok(match bound {
            bound if is_unbounded(bound) => bound.clone(),
            WindowFrameBound::Preceding(by) => WindowFrameBound::Preceding(self.distance(by)?),
            WindowFrameBound::Following(by) => WindowFrameBound::Following(self.distance(by)?),
            WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
        })
    }

    /// The distance as the key counts.
    fn distance(&self, by: &ScalarValue) -> Result<ScalarValue> {
        let mantissa = match (by, self.units) {
            (ScalarValue::IntervalMonthDayNano(Some(by)), Units::Days) => i128::from(by.days),
            (ScalarValue::IntervalMonthDayNano(Some(by)), Units::Nanoseconds(unit)) => {
                (i128::from(by.days) * NANOSECONDS_A_DAY + i128::from(by.nanoseconds))
                    * (BILLION / unit)
            }
            (ScalarValue::Decimal128(Some(by), _, _), Units::Own) => *by,
            (by, _) => match by.cast_to(&DataType::Decimal128(DIGITS, 0))? {
                ScalarValue::Decimal128(Some(by), _, _) => by,
                other => return Err(DataFusionError::Internal(format!("a distance of {other}"))),
            },
        };
        Ok(match self.dtype {
            DataType::Decimal256(precision, scale) => {
                ScalarValue::Decimal256(Some(i256::from_i128(mantissa)), precision, scale)
            }
            DataType::Decimal128(precision, scale) => {
                ScalarValue::Decimal128(Some(mantissa), precision, scale)
            }
            ref other => return Err(DataFusionError::Internal(format!("a key as {other}"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{AsArray, RecordBatch};
    use datafusion::arrow::datatypes::{Decimal128Type, Int64Type};
    use datafusion::prelude::SessionContext;

    /// What DataFusion answers without our words.
    fn answer(sql: &str) -> Vec<RecordBatch> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime
            .block_on(async { SessionContext::new().sql(sql).await?.collect().await })
            .unwrap_or_else(|error| {
                panic!("DataFusion has mended this, and our words for it can go: {error}")
            })
    }

    const MOST: &str = "99999999999999999999999999999999999999";

    #[test]
    fn sums_of_decimals_still_wrap() {
        let x = format!("CAST('{MOST}' AS decimal(38, 0))");
        let sum = answer(&format!("SELECT sum(x) FROM (VALUES ({x}), ({x})) AS t(x)"));
        let wrapped = (10i128.pow(38) - 1).wrapping_mul(2);
        assert_eq!(sum[0].column(0).as_primitive::<Decimal128Type>().value(0), wrapped);
    }

    #[test]
    fn frames_beyond_the_greatest_value_still_hold_nulls() {
        let counts = answer(
            "SELECT count(*) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n
             FROM (VALUES (9223372036854775807), (NULL)) AS t(x) ORDER BY x",
        );
        let counts = counts[0].column(0).as_primitive::<Int64Type>();
        assert_eq!(counts.value(0), 2, "DataFusion has mended this, and our words for it can go");
    }

    #[test]
    fn bounds_of_unsigned_keys_are_still_cut_at_0() {
        let counts = answer(
            "SELECT count(*) OVER (ORDER BY x RANGE BETWEEN 5 PRECEDING AND 3 PRECEDING) AS n
             FROM (VALUES (arrow_cast(0, 'UInt64')), (arrow_cast(1, 'UInt64'))) AS t(x) ORDER BY x",
        );
        let counts = counts[0].column(0).as_primitive::<Int64Type>();
        assert_eq!(counts.value(1), 1, "DataFusion has mended this, and our words for it can go");
    }
}
