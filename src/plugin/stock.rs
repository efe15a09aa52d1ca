//! What DataFusion answers otherwise than this engine, and how a plan is made to mean what it means
//! there.
//!
//! What compares or sorts floats is given integers in Arrow's order of them instead
//! (`host/arrow_forms.rs`). Least and greatest floats are this engine's: of NaN, DataFusion's
//! accumulators yield one thing or the other. A decimal becomes a float as in Arrow: its digits do,
//! which are then divided by a power of ten.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result as PlanResult;
use datafusion::execution::SessionStateDefaults;
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Between, BinaryExpr, Cast, Distinct, Expr, ExprSchemable, LogicalPlan,
    Operator, Projection, WindowFrameBound, WindowFrameUnits, WindowUDF, build_join_schema, lit,
};

use crate::codegen::is_stock;
use crate::error::Result;
use crate::host::{ArrowForm, differs_from_stock};
use crate::plan::{FreshNames, is_one_row, schema_beneath};
use crate::user_code::{UserAggregate, UserFunction};

/// Aggregates that mean on the device what they mean to DataFusion.
const AGGREGATES: [&str; 28] = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "var",
    "var_pop",
    "stddev",
    "stddev_pop",
    "covar_samp",
    "covar_pop",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "regr_count",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
    "bool_and",
    "bool_or",
    "bit_and",
    "bit_or",
    "bit_xor",
    "first_value",
    "last_value",
];
/// Window functions that do.
const WINDOWS: [&str; 11] = [
    "row_number",
    "rank",
    "dense_rank",
    "percent_rank",
    "cume_dist",
    "ntile",
    "lag",
    "lead",
    "first_value",
    "last_value",
    "nth_value",
];

/// Most places of a decimal of which the power of ten is a float.
const MOST_PLACES: i8 = 22;

/// Items of a list up to which DataFusion's optimizer writes it out as comparisons.
const SHORT_LIST: usize = 3;

/// Why an operator is left to DataFusion, although the device has it.
pub(super) fn refused(plan: &LogicalPlan) -> Option<String> {
    refusal(plan).unwrap_or_else(|error| Some(error.to_string()))
}

fn refusal(plan: &LogicalPlan) -> Result<Option<String>> {
    if let LogicalPlan::Distinct(Distinct::All(input)) = plan
        && input.schema().fields().iter().any(|field| field.data_type().is_floating())
    {
        return Ok(Some("distinct floats are told apart by their bits".into()));
    }
    if let LogicalPlan::Aggregate(aggregate) = plan
        && let [Expr::GroupingSet(_)] = aggregate.group_expr.as_slice()
        && any_float(&aggregate.group_expr, aggregate.input.schema())
    {
        return Ok(Some("floats in grouping sets are told apart by their bits".into()));
    }
    let schema = match plan {
        LogicalPlan::Join(join) => {
            let kind = datafusion::common::JoinType::Inner;
            Arc::new(build_join_schema(join.left.schema(), join.right.schema(), &kind)?)
        }
        // Filters of a scan are DataFusion's to apply.
        LogicalPlan::TableScan(_) => return Ok(None),
        plan => schema_beneath(plan)?,
    };
    let mut why = None;
    plan.apply_expressions(|expr| {
        why = refused_expr(expr, &schema)?;
        Ok(match why {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(why)
}

fn refused_expr(expr: &Expr, schema: &DFSchema) -> PlanResult<Option<String>> {
    let mut why = None;
    expr.apply(|part| {
        why = match part {
            Expr::ScalarFunction(call)
                if !is_one_row(&call.func)
                    && !is_stock(&call.func)
                    && UserFunction::of(&call.func).is_none() =>
            {
                Some(format!("function {} is the session's own", call.name()))
            }
            Expr::AggregateFunction(call) if !is_known_aggregate(&call.func) => {
                Some(format!("aggregate {} is DataFusion's to compute", call.func.name()))
            }
            Expr::WindowFunction(call) => match &call.fun {
                WindowFunctionDefinition::AggregateUDF(func) if is_known_aggregate(func) => None,
                WindowFunctionDefinition::WindowUDF(func) if is_stock_window(func) => None,
                fun => Some(format!("window function {} is DataFusion's to compute", fun.name())),
            },
            _ => None,
        };
        Ok(match why {
            Some(_) => TreeNodeRecursion::Stop,
            None => TreeNodeRecursion::Continue,
        })
    })?;
    if why.is_none() && differs_from_stock(expr, schema)? {
        why = Some(format!("{expr} means something else to DataFusion"));
    }
    if why.is_none() && ranges_over_floats(expr, schema) {
        why = Some("frames over ranges of floats are DataFusion's to compute".into());
    }
    Ok(why)
}

/// Whether an aggregate means on the device what it means to DataFusion: one of its own, or one
/// that a user wrote for the device.
fn is_known_aggregate(func: &AggregateUDF) -> bool {
    is_stock_aggregate(func) || UserAggregate::of(func).is_some()
}

fn is_stock_aggregate(func: &AggregateUDF) -> bool {
    static STOCK: LazyLock<HashMap<String, Arc<AggregateUDF>>> = LazyLock::new(|| {
        let all = SessionStateDefaults::default_aggregate_functions();
        all.into_iter().map(|of| (of.name().to_string(), of)).collect()
    });
    AGGREGATES.contains(&func.name())
        && STOCK.get(func.name()).is_some_and(|stock| stock.as_ref() == func)
}

fn is_stock_window(func: &WindowUDF) -> bool {
    static STOCK: LazyLock<HashMap<String, Arc<WindowUDF>>> = LazyLock::new(|| {
        let all = SessionStateDefaults::default_window_functions();
        all.into_iter().map(|of| (of.name().to_string(), of)).collect()
    });
    WINDOWS.contains(&func.name())
        && STOCK.get(func.name()).is_some_and(|stock| stock.as_ref() == func)
}

/// Whether a window's frame begins or ends at a distance from a float.
fn ranges_over_floats(expr: &Expr, schema: &DFSchema) -> bool {
    expr.exists(|part| {
        let Expr::WindowFunction(call) = part else { return Ok(false) };
        let frame = &call.params.window_frame;
        let at = |bound: &WindowFrameBound| match bound {
            WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => {
                !distance.is_null()
            }
            WindowFrameBound::CurrentRow => false,
        };
        Ok(frame.units == WindowFrameUnits::Range
            && (at(&frame.start_bound) || at(&frame.end_bound))
            && call.params.order_by.iter().any(|key| is_float(&key.expr, schema)))
    })
    .unwrap_or(true)
}

fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|dtype| dtype.is_floating())
}

fn any_float(exprs: &[Expr], schema: &DFSchema) -> bool {
    let found = |expr: &Expr| expr.exists(|part| Ok(is_float(part, schema)));
    exprs.iter().any(|expr| found(expr).unwrap_or(true))
}

/// The plan, in which floats are compared, sorted, and cast from and to decimals as in Arrow.
///
/// # Errors
/// Of plans that do not fit together.
pub(super) fn as_arrow_does(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(plan
        .transform_up(|node| {
            let schema = match &node {
                LogicalPlan::TableScan(_) => return Ok(Transformed::no(node)),
                LogicalPlan::Join(join) => {
                    let kind = datafusion::common::JoinType::Inner;
                    Arc::new(build_join_schema(join.left.schema(), join.right.schema(), &kind)?)
                }
                node => schema_beneath(node)?,
            };
            let node =
                node.map_expressions(|expr| expr.transform_up(|part| changed(part, &schema)))?.data;
            Ok(Transformed::yes(match node {
                LogicalPlan::Sort(mut sort) => {
                    for key in &mut sort.expr {
                        key.expr = sorted(std::mem::take(&mut key.expr), &schema);
                    }
                    LogicalPlan::Sort(sort)
                }
                LogicalPlan::Join(mut join) => {
                    for (left, right) in &mut join.on {
                        *left = compared(std::mem::take(left), join.left.schema());
                        *right = compared(std::mem::take(right), join.right.schema());
                    }
                    LogicalPlan::Join(join)
                }
                LogicalPlan::Aggregate(aggregate) => grouped_as_compared(aggregate)?,
                node => node,
            }))
        })?
        .data)
}

/// A float as it is compared; anything else is itself.
fn compared(expr: Expr, schema: &DFSchema) -> Expr {
    match is_float(&expr, schema) {
        true => ArrowForm::Compared.of(expr),
        false => expr,
    }
}

/// A float as it is sorted; anything else is itself.
fn sorted(expr: Expr, schema: &DFSchema) -> Expr {
    match is_float(&expr, schema) {
        true => ArrowForm::Sorted.of(expr),
        false => expr,
    }
}

/// An expression that compares or sorts floats, or casts between floats and decimals, as Arrow
/// does.
fn changed(expr: Expr, schema: &DFSchema) -> PlanResult<Transformed<Expr>> {
    use Operator::*;
    let boxed = |expr: Box<Expr>| Box::new(compared(*expr, schema));
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom),
            right,
        }) if is_float(&left, schema) && is_float(&right, schema) => {
            Transformed::yes(Expr::BinaryExpr(BinaryExpr {
                left: boxed(left),
                op,
                right: boxed(right),
            }))
        }
        Expr::Between(between) if is_float(&between.expr, schema) => {
            let Between { expr, negated, low, high } = between;
            let (expr, low, high) = (boxed(expr), boxed(low), boxed(high));
            Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
        }
        Expr::InList(mut list) if is_float(&list.expr, schema) => {
            // DataFusion looks values up in a long list by their bits, and compares with those of a
            // short one.
            let of = if list.list.len() > SHORT_LIST { sorted } else { compared };
            list.expr = Box::new(of(*list.expr, schema));
            list.list = list.list.into_iter().map(|item| of(item, schema)).collect();
            Transformed::yes(Expr::InList(list))
        }
        Expr::Case(mut case) if case.expr.as_ref().is_some_and(|base| is_float(base, schema)) => {
            // DataFusion compares these by their bits.
            let boxed = |expr: Box<Expr>| Box::new(sorted(*expr, schema));
            case.expr = case.expr.map(boxed);
            let whens = case.when_then_expr.into_iter();
            case.when_then_expr = whens.map(|(when, then)| (boxed(when), then)).collect();
            Transformed::yes(Expr::Case(case))
        }
        Expr::AggregateFunction(mut call) => {
            for key in &mut call.params.order_by {
                key.expr = sorted(std::mem::take(&mut key.expr), schema);
            }
            Transformed::yes(Expr::AggregateFunction(call))
        }
        Expr::WindowFunction(mut call) => {
            for key in &mut call.params.partition_by {
                *key = sorted(std::mem::take(key), schema);
            }
            for key in &mut call.params.order_by {
                key.expr = sorted(std::mem::take(&mut key.expr), schema);
            }
            Transformed::yes(Expr::WindowFunction(call))
        }
        Expr::Cast(Cast { expr, field }) if *field.data_type() == DataType::Float64 => {
            match expr.get_type(schema)? {
                DataType::Decimal128(_, scale @ 1..=MOST_PLACES) => {
                    let digits = Expr::Cast(Cast::new_from_field(
                        Box::new(ArrowForm::Digits.of(*expr)),
                        field,
                    ));
                    Transformed::yes(digits / lit(10f64.powi(i32::from(scale))))
                }
                _ => Transformed::no(Expr::Cast(Cast { expr, field })),
            }
        }
        Expr::Cast(Cast { expr, field }) if is_float(&expr, schema) => {
            match (expr.get_type(schema)?, field.data_type()) {
                (DataType::Float64, DataType::Decimal128(precision, scale @ 0..=MOST_PLACES)) => {
                    Transformed::yes(ArrowForm::decimal(*expr, *precision, *scale)?)
                }
                _ => Transformed::no(Expr::Cast(Cast { expr, field })),
            }
        }
        expr => Transformed::no(expr),
    })
}

/// Floats are grouped as they are compared; above the groups they are floats again.
fn grouped_as_compared(aggregate: Aggregate) -> PlanResult<LogicalPlan> {
    let below = aggregate.input.schema().clone();
    let is_float = |key: &Expr| is_float(key, &below);
    if !aggregate.group_expr.iter().any(is_float) {
        return Ok(LogicalPlan::Aggregate(aggregate));
    }
    let floats: Vec<bool> = aggregate.group_expr.iter().map(is_float).collect();
    let mut names = FreshNames::beside(aggregate.schema.fields().iter().map(|field| field.name()));
    let keys = aggregate.group_expr.into_iter().enumerate().map(|(at, key)| match floats[at] {
        true => ArrowForm::Compared.of(key).alias(names.name("float")),
        false => key,
    });
    let (schema, keys) = (aggregate.schema, keys.collect());
    let made = Aggregate::try_new(aggregate.input, keys, aggregate.aggr_expr)?;
    let own = made.schema.columns();
    let columns = own.into_iter().enumerate().map(|(at, column)| {
        let (relation, field) = schema.qualified_field(at);
        let column = Expr::Column(Column::new(column.relation, column.name));
        match floats.get(at) {
            Some(true) => {
                ArrowForm::Back.of(column).alias_qualified(relation.cloned(), field.name())
            }
            _ => column,
        }
    });
    let (columns, made) = (columns.collect(), Arc::new(LogicalPlan::Aggregate(made)));
    Ok(LogicalPlan::Projection(Projection::try_new_with_schema(columns, made, schema)?))
}
