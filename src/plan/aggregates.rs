//! Aggregate functions: which the device runs, in which form, and the reasons for those it does
//! not.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::ScalarValue;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment};
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, SortExpr, lit, when};

use crate::codegen::{AggregateCall, AggregateKind, unsupported};
use crate::column::{Repr, is_nested};
use crate::host::HistogramBins;
use crate::user_code::UserAggregate;

/// An aggregate as the device runs it.
#[derive(Debug, Clone)]
pub(crate) enum DeviceAggregate {
    /// Accumulated while the rows are grouped.
    Fused(AggregateCall),
    /// Computed afterwards, from the rows and their groups.
    Regrouped(RegroupedCall),
}

impl DeviceAggregate {
    /// Type of the result.
    pub(crate) fn dtype(&self) -> &DataType {
        match self {
            DeviceAggregate::Fused(call) => &call.dtype,
            DeviceAggregate::Regrouped(call) => &call.dtype,
        }
    }
}

/// An aggregate that needs its group's rows more than once, or in an order.
#[derive(Debug, Clone)]
pub(crate) struct RegroupedCall {
    pub(crate) kind: RegroupedKind,
    pub(crate) args: Vec<Expr>,
    /// Of each group's distinct values, each once. [`RegroupedKind::Distinct`] says it by itself.
    pub(crate) distinct: bool,
    /// FILTER (WHERE …).
    pub(crate) filter: Option<Expr>,
    /// ORDER BY inside of the call.
    pub(crate) order: Vec<SortExpr>,
    /// What stands between strings, a constant.
    pub(crate) between: Expr,
    /// What [`RegroupedKind::User`] is.
    pub(crate) user: Option<Arc<UserAggregate>>,
    /// Type of the result.
    pub(crate) dtype: DataType,
}

/// Which function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegroupedKind {
    /// One that a user wrote.
    User,
    /// A fused aggregate of the distinct values of each group.
    Distinct(AggregateKind),
    /// Variance; its root is the standard deviation.
    Variance {
        of: VarianceDivisor,
        root: bool,
    },
    /// Of the points that two arguments are.
    Points(Points),
    Median,
    /// The value at a share (the bits of a float from 0 to 1) of the way through the sorted values.
    Percentile(u64),
    /// The value in a place, from 1 on, or backwards from −1 on.
    Nth {
        place: i64,
        skip_nulls: bool,
    },
    Bits(BitwiseOperation),
    /// How many values each bin holds, as a list, or what they weigh.
    Histogram(HistogramBins),
    /// The values as a list.
    Collect {
        skip_nulls: bool,
    },
    /// Strings, one after the other.
    Join,
    /// The value of the first row, or of the last.
    Place {
        last: bool,
        skip_nulls: bool,
    },
}

/// What is asked of points, and of the line through them: of the second argument, which explains,
/// and the first, which is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Points {
    Covariance(VarianceDivisor),
    Correlation,
    Slope,
    Intercept,
    /// The square of the correlation.
    Determination,
    MeanExplaining,
    MeanExplained,
    SquaresExplaining,
    SquaresExplained,
    Products,
}

/// Which bits of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BitwiseOperation {
    And,
    Or,
    Xor,
}

/// What squared deviations are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VarianceDivisor {
    /// The number of rows.
    Population,
    /// One less.
    Sample,
}

/// Why this aggregation, its input aside, does not run on the device.
pub(super) fn unsupported_aggregate(aggregate: &Aggregate) -> Option<String> {
    let schema = aggregate.input.schema();
    let keys = match grouping_set_to_exprlist(&aggregate.group_expr) {
        Ok(keys) => keys,
        Err(error) => return Some(error.strip_backtrace()),
    };
    let keys = keys.into_iter().find_map(|key| unsupported(key, schema));
    keys.or_else(|| aggregate.aggr_expr.iter().find_map(|expr| unsupported_call(expr, schema)))
}

fn unsupported_call(expr: &Expr, schema: &DFSchema) -> Option<String> {
    let why = |e: &Expr| unsupported(e, schema);
    match device_aggregate(expr, schema) {
        Ok(DeviceAggregate::Fused(call)) => call.arg.iter().chain(&call.filter).find_map(why),
        Ok(DeviceAggregate::Regrouped(call)) => {
            let order = call.order.iter().find_map(|key| unsupported(&key.expr, schema));
            call.args.iter().chain(&call.filter).find_map(why).or(order)
        }
        Err(why) => Some(why),
    }
}

/// The device's form of an aggregate expression.
///
/// # Errors
/// The reason why the device has none.
pub(crate) fn device_aggregate(expr: &Expr, schema: &DFSchema) -> Result<DeviceAggregate, String> {
    let call = match expr {
        Expr::Alias(alias) => return device_aggregate(&alias.expr, schema),
        Expr::AggregateFunction(call) => call,
        other => return Err(format!("{other} is no aggregate function")),
    };
    if let Some(user) = UserAggregate::of(&call.func) {
        return users(user, call).map(DeviceAggregate::Regrouped);
    }
    let name = call.func.name();
    let distinct = call.params.distinct;
    if let ("regr_count", false, [x, y]) = (name, distinct, call.params.args.as_slice()) {
        // Of the points with both coordinates.
        let both = when(x.clone().is_not_null(), y.clone())
            .end()
            .map_err(|error| error.strip_backtrace())?;
        let dtype = expr.get_type(schema).map_err(|error| error.strip_backtrace())?;
        let filter = call.params.filter.as_deref().cloned();
        return Ok(DeviceAggregate::Fused(AggregateCall {
            kind: AggregateKind::Count,
            arg: Some(both),
            filter,
            dtype,
        }));
    }
    let kind = match name {
        "count" => AggregateKind::Count,
        "sum" => AggregateKind::Sum,
        "avg" => AggregateKind::Average,
        // Of booleans, all are true if the least is, and some are if the greatest is.
        "min" | "bool_and" => AggregateKind::Min,
        "max" | "bool_or" => AggregateKind::Max,
        _ => return regrouped(call, expr, schema).map(DeviceAggregate::Regrouped),
    };
    let extremum = matches!(kind, AggregateKind::Min | AggregateKind::Max);
    let dtype = result_type(call, schema)?;
    let arg = match call.params.args.as_slice() {
        [Expr::Literal(value, _)]
            if kind == AggregateKind::Count && !distinct && !value.is_null() =>
        {
            None
        }
        [arg] => Some(arg.clone()),
        [] if kind == AggregateKind::Count => None,
        _ => return Err(format!("{name} of several arguments is not on the device yet")),
    };
    if let Some(arg) = &arg {
        let of = type_of(arg, schema)?;
        let numeric = matches!(
            of,
            DataType::Int64 | DataType::UInt64 | DataType::Float64 | DataType::Decimal128(_, _)
        );
        let fits = match kind {
            AggregateKind::Count => !distinct || Repr::of(&of).is_some(),
            AggregateKind::Sum | AggregateKind::Average => numeric && Repr::of(&dtype).is_some(),
            AggregateKind::Min | AggregateKind::Max => Repr::of(&of).is_some(),
        };
        if !fits {
            return Err(format!("{name} of {of} is not on the device yet"));
        }
        if extremum && is_nested(&of) {
            return Ok(DeviceAggregate::Regrouped(nested_extremum(kind, arg, call, dtype)));
        }
    }
    let filter = call.params.filter.as_deref().cloned();
    if distinct && !extremum {
        let (kind, args) = (RegroupedKind::Distinct(kind), arg.into_iter().collect());
        return Ok(DeviceAggregate::Regrouped(RegroupedCall {
            kind,
            args,
            distinct: false,
            filter,
            order: vec![],
            between: lit(""),
            user: None,
            dtype,
        }));
    }
    Ok(DeviceAggregate::Fused(AggregateCall { kind, arg, filter, dtype }))
}

/// The least or greatest list or struct: the first in an order in which a null within is the
/// greatest.
fn nested_extremum(
    kind: AggregateKind,
    arg: &Expr,
    call: &AggregateFunction,
    dtype: DataType,
) -> RegroupedCall {
    let asc = kind == AggregateKind::Min;
    RegroupedCall {
        kind: RegroupedKind::Place { last: false, skip_nulls: true },
        args: vec![arg.clone()],
        distinct: false,
        filter: call.params.filter.as_deref().cloned(),
        order: vec![SortExpr { expr: arg.clone(), asc, nulls_first: !asc }],
        between: lit(""),
        user: None,
        dtype,
    }
}

/// An aggregate that a user wrote, of arguments that have its types.
fn users(user: &UserAggregate, call: &AggregateFunction) -> Result<RegroupedCall, String> {
    let args = call.params.args.clone();
    if call.params.distinct && args.len() > 1 {
        return Err(format!(
            "{}(DISTINCT …) of several arguments is not on the device",
            call.func.name()
        ));
    }
    let order = if user.is_ordered() { call.params.order_by.clone() } else { vec![] };
    let (kind, distinct) = (RegroupedKind::User, call.params.distinct);
    let filter = call.params.filter.as_deref().cloned();
    let (between, dtype) = (lit(""), user.output().clone());
    Ok(RegroupedCall {
        kind,
        args,
        distinct,
        filter,
        order,
        between,
        user: Some(Arc::new(user.clone())),
        dtype,
    })
}

fn regrouped(
    call: &AggregateFunction,
    expr: &Expr,
    schema: &DFSchema,
) -> Result<RegroupedCall, String> {
    let name = call.func.name();
    let skip_nulls = call.params.null_treatment == Some(NullTreatment::IgnoreNulls);
    let kind = match name {
        "approx_distinct" => RegroupedKind::Distinct(AggregateKind::Count),
        "var" => RegroupedKind::Variance { of: VarianceDivisor::Sample, root: false },
        "var_pop" => RegroupedKind::Variance { of: VarianceDivisor::Population, root: false },
        "stddev" => RegroupedKind::Variance { of: VarianceDivisor::Sample, root: true },
        "stddev_pop" => RegroupedKind::Variance { of: VarianceDivisor::Population, root: true },
        "covar_samp" => RegroupedKind::Points(Points::Covariance(VarianceDivisor::Sample)),
        "covar_pop" => RegroupedKind::Points(Points::Covariance(VarianceDivisor::Population)),
        "corr" => RegroupedKind::Points(Points::Correlation),
        "regr_slope" => RegroupedKind::Points(Points::Slope),
        "regr_intercept" => RegroupedKind::Points(Points::Intercept),
        "regr_r2" => RegroupedKind::Points(Points::Determination),
        "regr_avgx" => RegroupedKind::Points(Points::MeanExplaining),
        "regr_avgy" => RegroupedKind::Points(Points::MeanExplained),
        "regr_sxx" => RegroupedKind::Points(Points::SquaresExplaining),
        "regr_syy" => RegroupedKind::Points(Points::SquaresExplained),
        "regr_sxy" => RegroupedKind::Points(Points::Products),
        "median" => RegroupedKind::Median,
        "approx_median" => RegroupedKind::Percentile(0.5f64.to_bits()),
        "percentile_cont" | "approx_percentile_cont" => {
            RegroupedKind::Percentile(share(call)?.to_bits())
        }
        "nth_value" => RegroupedKind::Nth { place: place(call)?, skip_nulls },
        "bit_and" => RegroupedKind::Bits(BitwiseOperation::And),
        "bit_or" => RegroupedKind::Bits(BitwiseOperation::Or),
        "bit_xor" => RegroupedKind::Bits(BitwiseOperation::Xor),
        "histogram" => {
            let constant = |at: usize| match call.params.args.get(at) {
                Some(Expr::Literal(value, _)) => Some(value),
                _ => None,
            };
            RegroupedKind::Histogram(HistogramBins::of_constants([
                constant(1),
                constant(2),
                constant(3),
            ])?)
        }
        "array_agg" => RegroupedKind::Collect { skip_nulls },
        "string_agg" => RegroupedKind::Join,
        "first_value" => RegroupedKind::Place { last: false, skip_nulls },
        "last_value" => RegroupedKind::Place { last: true, skip_nulls },
        _ => return Err(format!("aggregate {name} is not on the device yet")),
    };
    let distinct = call.params.distinct;
    if distinct
        && !matches!(name, "array_agg" | "string_agg" | "median" | "bit_and" | "bit_or" | "bit_xor")
    {
        return Err(format!("{name}(DISTINCT …) is not on the device yet"));
    }
    let dtype = expr.get_type(schema).map_err(|error| error.strip_backtrace())?;
    // Behind the argument stand constants that the kind has taken, but for a pair of arguments.
    let pair = matches!(kind, RegroupedKind::Points(_));
    let constants = !pair && call.params.args.len() > 1;
    let args = match kind {
        // Between a value and its weight.
        RegroupedKind::Histogram(_) => {
            call.params.args.iter().take(1).chain(call.params.args.get(4)).cloned().collect()
        }
        _ if constants => call.params.args[..1].to_vec(),
        _ => call.params.args.clone(),
    };
    let between = match (kind, call.params.args.get(1)) {
        (RegroupedKind::Join, Some(between @ Expr::Literal(value, _)))
            if value.try_as_str().flatten().is_some() =>
        {
            between.clone()
        }
        (RegroupedKind::Join, _) => {
            return Err(format!("{name} with such a delimiter is not on the device"));
        }
        _ => lit(""),
    };
    let types = args.iter().map(|arg| type_of(arg, schema)).collect::<Result<Vec<_>, _>>()?;
    if types.is_empty() {
        return Err(format!("{name} of nothing is not on the device"));
    }
    let fits = match kind {
        RegroupedKind::Variance { .. } => types == [DataType::Float64],
        RegroupedKind::Points(_) => types == [DataType::Float64, DataType::Float64],
        RegroupedKind::Percentile(_) => {
            types[0] == dtype && types[0].is_numeric() && !types[0].is_decimal()
        }
        RegroupedKind::Nth { .. } => types.len() == 1,
        RegroupedKind::Bits(_) => types.len() == 1 && types[0] == dtype && dtype.is_integer(),
        RegroupedKind::Join => {
            matches!(types[0], DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        }
        RegroupedKind::Median => types.len() == 1 && types[0] == dtype && types[0].is_numeric(),
        RegroupedKind::Distinct(_)
        | RegroupedKind::Collect { .. }
        | RegroupedKind::Place { .. } => types.len() == 1,
        RegroupedKind::Histogram(_) => types.iter().all(|of| *of == DataType::Float64),
        RegroupedKind::User => false,
    };
    if distinct && call.params.order_by.iter().any(|key| key.expr != args[0]) {
        return Err(format!(
            "{name} of DISTINCT values in the order of others is not on the device"
        ));
    }
    if !fits || types.iter().chain([&dtype]).any(|of| Repr::of(of).is_none()) {
        let types: Vec<_> = types.iter().map(DataType::to_string).collect();
        return Err(format!("{name} of {} is not on the device yet", types.join(", ")));
    }
    let ordered = matches!(
        kind,
        RegroupedKind::Place { .. }
            | RegroupedKind::Nth { .. }
            | RegroupedKind::Join
            | RegroupedKind::Collect { .. }
    );
    let order = if ordered { call.params.order_by.clone() } else { vec![] };
    let filter = call.params.filter.as_deref().cloned();
    Ok(RegroupedCall { kind, args, distinct, filter, order, between, user: None, dtype })
}

/// The share of a percentile, a constant; where the order descends, from the other end.
fn share(call: &AggregateFunction) -> Result<f64, String> {
    let share = match call.params.args.get(1) {
        Some(Expr::Literal(ScalarValue::Float64(Some(share)), _)) => *share,
        Some(Expr::Literal(ScalarValue::Float32(Some(share)), _)) => f64::from(*share),
        _ => return Err(format!("{} of a computed share is not on the device", call.func.name())),
    };
    if !(0.0..=1.0).contains(&share) {
        return Err(format!("{} of a share of {share} is not on the device", call.func.name()));
    }
    let descends = call.params.order_by.first().is_some_and(|key| !key.asc);
    Ok(if descends { 1.0 - share } else { share })
}

/// The place of an `nth_value`, a constant.
fn place(call: &AggregateFunction) -> Result<i64, String> {
    match call.params.args.get(1) {
        Some(Expr::Literal(ScalarValue::Int64(Some(place)), _)) if *place != 0 => Ok(*place),
        _ => Err("nth_value at no constant place is not on the device".into()),
    }
}

/// The type of an aggregate whose arguments are coerced already. (What `get_type` finds out takes
/// ten times as long: it would coerce them, and put names together.)
fn result_type(call: &AggregateFunction, schema: &DFSchema) -> Result<DataType, String> {
    let arguments = call.params.args.iter().map(|arg| Ok(arg.to_field(schema)?.1));
    let result = arguments
        .collect::<PlanResult<Vec<_>>>()
        .and_then(|fields| call.func.return_field(&fields));
    result.map(|field| field.data_type().clone()).map_err(|error| error.strip_backtrace())
}

fn type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType, String> {
    expr.get_type(schema).map_err(|error| error.strip_backtrace())
}
