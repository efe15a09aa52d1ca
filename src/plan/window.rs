//! Window functions: the device's form of a window expression, and the reasons for those it has
//! none of.

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{
    AggregateFunction, NullTreatment, WindowFunction, WindowFunctionDefinition,
};
use datafusion::logical_expr::{
    Expr, ExprSchemable, SortExpr, Window, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use datafusion::physical_planner::is_window_frame_bound_valid;

use super::aggregates::{
    BitwiseOperation, DeviceAggregate, RegroupedCall, RegroupedKind, VarianceDivisor,
    device_aggregate,
};
use crate::codegen::{AggregateCall, unsupported};

/// A window expression as the device computes it.
#[derive(Debug, Clone)]
pub(crate) struct WindowCall {
    pub(crate) function: WindowKind,
    pub(crate) keys: WindowKeys,
    pub(crate) frame: Frame,
    /// Type of the result.
    pub(crate) dtype: DataType,
}

/// What rows are sorted by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WindowKeys {
    pub(crate) partition: Vec<Expr>,
    pub(crate) order: Vec<SortExpr>,
}

/// Which function.
#[derive(Debug, Clone)]
pub(crate) enum WindowKind {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    /// `ntile(n)`.
    Tile(u64),
    /// `lag`, and `lead` by a negative number of rows.
    Shift {
        arg: Expr,
        rows: i64,
        /// Of the argument's type.
        default: ScalarValue,
        skip_nulls: bool,
    },
    /// The frame's value at a place: 1 is the first, −1 the last.
    Place {
        arg: Expr,
        at: i64,
        skip_nulls: bool,
    },
    Aggregate(AggregateCall),
    /// Variance of a float; its root is the standard deviation.
    Variance {
        arg: Expr,
        filter: Option<Expr>,
        of: VarianceDivisor,
        root: bool,
    },
    /// The bits of integers.
    Bits {
        arg: Expr,
        filter: Option<Expr>,
        bits: BitwiseOperation,
    },
    /// What needs the rows of its frame more than once, or in an order.
    Regrouped(RegroupedCall),
}

/// The rows of the partition that a function looks at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Frame {
    pub(crate) start: Bound,
    pub(crate) end: Bound,
}

/// Where a frame begins or ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    /// With the partition.
    Unbounded,
    /// So many rows after the row (0: with it).
    Rows(i64),
    /// So many groups of peers after the row's.
    Groups(i64),
    /// At a distance from the row's value.
    Value { preceding: bool, step: RangeOffset },
}

/// A distance of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RangeOffset {
    /// As the key's type counts.
    Integer(i128),
    Float(f64),
    /// Of dates and timestamps, where it is not the same everywhere.
    Interval(IntervalMonthDayNano),
}

impl WindowKeys {
    /// Whether rows sorted by these keys are sorted by the others: partitions stand together, each
    /// in its order.
    pub(crate) fn imply(&self, others: &WindowKeys) -> bool {
        let partition = |expr: &Expr| SortExpr { expr: expr.clone(), asc: true, nulls_first: true };
        let sorted: Vec<SortExpr> =
            self.partition.iter().map(partition).chain(self.order.iter().cloned()).collect();
        let Some((leading, rest)) = sorted.split_at_checked(others.partition.len()) else {
            return false;
        };
        let together = leading.iter().all(|key| others.partition.contains(&key.expr))
            && others.partition.iter().all(|expr| leading.iter().any(|key| key.expr == *expr));
        together && rest.starts_with(&others.order)
    }
}

impl Bound {
    /// The value at the bound, where its distance is not the same everywhere.
    pub(crate) fn target(&self, keys: &WindowKeys) -> Option<Expr> {
        let (Bound::Value { preceding, step: RangeOffset::Interval(by) }, [key]) =
            (self, keys.order.as_slice())
        else {
            return None;
        };
        let by = Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(*by)), None);
        // Behind a value are greater ones, or lesser ones where the order descends.
        Some(if *preceding == key.asc { key.expr.clone() - by } else { key.expr.clone() + by })
    }
}

impl Frame {
    fn targets(&self, keys: &WindowKeys) -> Vec<Expr> {
        [self.start, self.end].iter().filter_map(|bound| bound.target(keys)).collect()
    }
}

impl WindowKind {
    /// The expressions that it looks at.
    fn exprs(&self) -> Vec<&Expr> {
        match self {
            WindowKind::Shift { arg, .. } | WindowKind::Place { arg, .. } => vec![arg],
            WindowKind::Aggregate(call) => call.arg.iter().chain(&call.filter).collect(),
            WindowKind::Variance { arg, filter, .. } | WindowKind::Bits { arg, filter, .. } => {
                std::iter::once(arg).chain(filter).collect()
            }
            WindowKind::Regrouped(call) => call.args.iter().chain(&call.filter).collect(),
            _ => vec![],
        }
    }
}

/// Why these window expressions, their input aside, do not run on the device.
pub(super) fn unsupported_window(window: &Window) -> Option<String> {
    let schema = window.input.schema();
    window.window_expr.iter().find_map(|expr| match device_window(expr, schema) {
        Ok(call) => {
            let order = call.keys.order.iter().map(|key| &key.expr);
            let mut keys = call.keys.partition.iter().chain(order);
            if let Some(why) = keys.find_map(|key| unsupported(key, schema)) {
                return Some(why);
            }
            let exprs = call.function.exprs().into_iter();
            let targets = call.frame.targets(&call.keys);
            let default = match &call.function {
                WindowKind::Shift { default, .. } => Some(Expr::Literal(default.clone(), None)),
                _ => None,
            };
            exprs.chain(&default).chain(&targets).find_map(|expr| unsupported(expr, schema))
        }
        Err(why) => Some(why),
    })
}

/// The device's form of a window expression.
///
/// # Errors
/// The reason why the device has none.
pub(crate) fn device_window(expr: &Expr, schema: &DFSchema) -> Result<WindowCall, String> {
    let call = match expr {
        Expr::Alias(alias) => return device_window(&alias.expr, schema),
        Expr::WindowFunction(call) => call,
        other => return Err(format!("{other} is no window function")),
    };
    let params = &call.params;
    if !is_window_frame_bound_valid(&params.window_frame) {
        return Err("a frame that ends before it begins is an error".into());
    }
    let keys =
        WindowKeys { partition: params.partition_by.clone(), order: params.order_by.clone() };
    let function = match &call.fun {
        WindowFunctionDefinition::AggregateUDF(_) => aggregate(call, schema)?,
        WindowFunctionDefinition::WindowUDF(function) => of_rows(function.name(), call, schema)?,
    };
    let dtype = expr.get_type(schema).map_err(|error| error.strip_backtrace())?;
    let frame = match &function {
        WindowKind::Aggregate(_)
        | WindowKind::Variance { .. }
        | WindowKind::Bits { .. }
        | WindowKind::Regrouped(_)
        | WindowKind::Place { .. } => frame(&params.window_frame, &keys.order, schema)?,
        // They do not look at the frame, which may then be of any kind.
        _ => Frame { start: Bound::Unbounded, end: Bound::Unbounded },
    };
    Ok(WindowCall { function, keys, frame, dtype })
}

/// An aggregate function over a frame: the same as over a group.
fn aggregate(call: &WindowFunction, schema: &DFSchema) -> Result<WindowKind, String> {
    let WindowFunctionDefinition::AggregateUDF(function) = &call.fun else {
        return Err("no aggregate".into());
    };
    let params = &call.params;
    let (args, filter, nulls) = (params.args.clone(), params.filter.clone(), params.null_treatment);
    let over_group =
        AggregateFunction::new_udf(function.clone(), args, params.distinct, filter, vec![], nulls);
    match device_aggregate(&Expr::AggregateFunction(over_group), schema)? {
        DeviceAggregate::Fused(call) => Ok(WindowKind::Aggregate(call)),
        DeviceAggregate::Regrouped(call) => {
            let RegroupedCall { kind, args, filter, order, .. } = &call;
            let (arg, filter, as_they_come) = (args[0].clone(), filter.clone(), order.is_empty());
            Ok(match *kind {
                RegroupedKind::Variance { of, root } => {
                    WindowKind::Variance { arg, filter, of, root }
                }
                RegroupedKind::Bits(bits) if !call.distinct => {
                    WindowKind::Bits { arg, filter, bits }
                }
                RegroupedKind::Place { last, skip_nulls } if filter.is_none() && as_they_come => {
                    WindowKind::Place { arg, at: if last { -1 } else { 1 }, skip_nulls }
                }
                RegroupedKind::Nth { place, skip_nulls } if filter.is_none() && as_they_come => {
                    WindowKind::Place { arg, at: place, skip_nulls }
                }
                _ => WindowKind::Regrouped(call),
            })
        }
    }
}

/// A function that looks at the places of rows.
fn of_rows(name: &str, call: &WindowFunction, schema: &DFSchema) -> Result<WindowKind, String> {
    let params = &call.params;
    if params.filter.is_some() || params.distinct {
        return Err(format!("{name} with FILTER or DISTINCT is not on the device"));
    }
    let skip_nulls = params.null_treatment == Some(NullTreatment::IgnoreNulls);
    let args = params.args.as_slice();
    let ranking = |kind| {
        if skip_nulls {
            Err(format!("{name} with IGNORE NULLS is not on the device"))
        } else {
            Ok(kind)
        }
    };
    match (name, args) {
        ("row_number", _) => ranking(WindowKind::RowNumber),
        ("rank", _) => ranking(WindowKind::Rank),
        ("dense_rank", _) => ranking(WindowKind::DenseRank),
        ("percent_rank", _) => ranking(WindowKind::PercentRank),
        ("cume_dist", _) => ranking(WindowKind::CumeDist),
        ("ntile", [tiles]) => match integer(tiles).and_then(|tiles| u64::try_from(tiles).ok()) {
            Some(tiles) if tiles > 0 => ranking(WindowKind::Tile(tiles)),
            _ => Err("ntile of anything but a positive number is not on the device".into()),
        },
        ("lag" | "lead", [arg, more @ ..]) => {
            let dtype = arg.get_type(schema).map_err(|error| error.strip_backtrace())?;
            let rows = match more.first() {
                Some(rows) => integer(rows)
                    .ok_or_else(|| format!("{name} by no constant is not on the device"))?,
                None => 1,
            };
            let default = match more.get(1) {
                None => ScalarValue::try_from(&dtype),
                Some(default) => match literal(default) {
                    Some(value) if value.is_null() => ScalarValue::try_from(&dtype),
                    Some(value) => value.cast_to(&dtype),
                    None => {
                        return Err(format!(
                            "{name} with a default that is no constant is not on the device"
                        ));
                    }
                },
            };
            let default = default.map_err(|error| error.strip_backtrace())?;
            // Rows have numbers of 32 bits: farther is as far.
            let rows = rows.clamp(-i128::from(u32::MAX), u32::MAX.into()) as i64;
            let rows = if name == "lag" { rows } else { -rows };
            Ok(WindowKind::Shift { arg: arg.clone(), rows, default, skip_nulls })
        }
        ("first_value", [arg]) => Ok(WindowKind::Place { arg: arg.clone(), at: 1, skip_nulls }),
        ("last_value", [arg]) => Ok(WindowKind::Place { arg: arg.clone(), at: -1, skip_nulls }),
        ("nth_value", [arg, at]) => match integer(at).and_then(|at| i64::try_from(at).ok()) {
            Some(at) if at != i64::MIN => {
                Ok(WindowKind::Place { arg: arg.clone(), at, skip_nulls })
            }
            _ => Err("nth_value at no constant is not on the device".into()),
        },
        _ => Err(format!("window function {name} is not on the device yet")),
    }
}

fn frame(frame: &WindowFrame, order: &[SortExpr], schema: &DFSchema) -> Result<Frame, String> {
    let bound = |bound: &WindowFrameBound| {
        let (distance, preceding) = match bound {
            WindowFrameBound::CurrentRow if frame.units == WindowFrameUnits::Rows => {
                return Ok(Bound::Rows(0));
            }
            WindowFrameBound::CurrentRow => return Ok(Bound::Groups(0)),
            WindowFrameBound::Preceding(distance) => (distance, true),
            WindowFrameBound::Following(distance) => (distance, false),
        };
        if distance.is_null() {
            return Ok(Bound::Unbounded);
        }
        if frame.units == WindowFrameUnits::Range {
            return Ok(Bound::Value { preceding, step: step(distance, order, schema)? });
        }
        let ScalarValue::UInt64(Some(rows)) = distance else {
            return Err(format!("a frame of {distance} rows is not on the device"));
        };
        let rows = (*rows).min(u32::MAX.into()) as i64;
        let rows = if preceding { -rows } else { rows };
        Ok(if frame.units == WindowFrameUnits::Rows {
            Bound::Rows(rows)
        } else {
            Bound::Groups(rows)
        })
    };
    Ok(Frame { start: bound(&frame.start_bound)?, end: bound(&frame.end_bound)? })
}

/// The distance of a RANGE frame, as the only sort key counts.
fn step(
    distance: &ScalarValue,
    order: &[SortExpr],
    schema: &DFSchema,
) -> Result<RangeOffset, String> {
    let [key] = order else {
        return Err("RANGE with a distance over several keys is not on the device".into());
    };
    let key = key.expr.get_type(schema).map_err(|error| error.strip_backtrace())?;
    let why = || format!("RANGE with a distance of {distance} over {key} is not on the device");
    let step = match (distance, &key) {
        (ScalarValue::Float32(Some(step)), DataType::Float32) => {
            RangeOffset::Float(f64::from(*step))
        }
        (ScalarValue::Float64(Some(step)), DataType::Float64) => RangeOffset::Float(*step),
        (ScalarValue::Decimal128(Some(step), _, _), _) if distance.data_type() == key => {
            RangeOffset::Integer(*step)
        }
        (ScalarValue::IntervalMonthDayNano(Some(interval)), _) => interval_step(*interval, &key),
        _ if distance.data_type() == key => {
            RangeOffset::Integer(integer_of(distance).ok_or_else(why)?)
        }
        _ => return Err(why()),
    };
    let is_negative = match step {
        RangeOffset::Integer(step) => step < 0,
        RangeOffset::Float(step) => step < 0.0,
        RangeOffset::Interval(by) => by.months < 0 || by.days < 0 || by.nanoseconds < 0,
    };
    if is_negative {
        return Err(why());
    }
    Ok(step)
}

/// An interval as the key counts, if it always is as long.
fn interval_step(interval: IntervalMonthDayNano, key: &DataType) -> RangeOffset {
    let nanoseconds =
        i128::from(interval.days) * NANOSECONDS_A_DAY + i128::from(interval.nanoseconds);
    let unit = match key {
        DataType::Date32 if interval.nanoseconds == 0 => NANOSECONDS_A_DAY,
        DataType::Timestamp(unit, None) => nanoseconds_of(unit),
        _ => return RangeOffset::Interval(interval),
    };
    match interval.months == 0 && nanoseconds % unit == 0 {
        true => RangeOffset::Integer(nanoseconds / unit),
        false => RangeOffset::Interval(interval),
    }
}

const NANOSECONDS_A_DAY: i128 = 86_400_000_000_000;

fn nanoseconds_of(unit: &TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    }
}

/// A literal, behind aliases.
fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

fn integer(expr: &Expr) -> Option<i128> {
    integer_of(literal(expr)?)
}

fn integer_of(value: &ScalarValue) -> Option<i128> {
    Some(match value {
        ScalarValue::Int8(value) => (*value)?.into(),
        ScalarValue::Int16(value) => (*value)?.into(),
        ScalarValue::Int32(value) => (*value)?.into(),
        ScalarValue::Int64(value) => (*value)?.into(),
        ScalarValue::UInt8(value) => (*value)?.into(),
        ScalarValue::UInt16(value) => (*value)?.into(),
        ScalarValue::UInt32(value) => (*value)?.into(),
        ScalarValue::UInt64(value) => (*value)?.into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::prelude::col;

    fn keys(partition: &[&str], order: &[(&str, bool)]) -> WindowKeys {
        let order = order.iter().map(|(name, asc)| col(*name).sort(*asc, true)).collect();
        WindowKeys { partition: partition.iter().map(|name| col(*name)).collect(), order }
    }

    #[test]
    fn rows_sorted_by_some_keys_are_sorted_by_others() {
        let sorted = keys(&["a", "b"], &[("c", false), ("d", true)]);
        for others in [
            keys(&["a", "b"], &[("c", false), ("d", true)]),
            keys(&["b", "a"], &[("c", false)]),
            keys(&["a"], &[("b", true), ("c", false)]),
            keys(&["c", "a", "b"], &[("d", true)]),
            keys(&["a"], &[]),
            keys(&[], &[("a", true)]),
            keys(&[], &[]),
        ] {
            assert!(sorted.imply(&others), "{others:?}");
        }
        for others in [
            keys(&["b"], &[]),
            keys(&["a", "b"], &[("c", true)]),
            keys(&["a", "b"], &[("d", true)]),
            keys(&["a", "c"], &[]),
            keys(&["a", "b", "c", "d", "e"], &[]),
            keys(&[], &[("a", false)]),
            keys(&["a", "b"], &[("c", false), ("d", true), ("e", true)]),
        ] {
            assert!(!sorted.imply(&others), "{others:?}");
        }
    }
}
