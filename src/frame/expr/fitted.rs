//! Expressions that depend on the types of columns, and filters of values before aggregates.
//!
//! ```text
//!   col("t").mean()            of times: the mean of their numbers, as a time
//!   col("t").median()          of times: the same
//!   col("t").sum()             of durations: the same
//!   col("u").diff(1)           of unsigned integers: the difference as signed ones
//!   col("x").filter(c).sum()   sum(x) FILTER (WHERE c)
//! ```
//!
//! A verb has its expressions fitted where it knows the columns, once selectors are columns.

use datafusion::arrow::datatypes::{DataType, Schema, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result as PlanResult, plan_err};
use datafusion::logical_expr as df;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    ColumnarValue, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, WindowFunctionDefinition, cast,
};

use super::Expr;
use crate::error::{Error, Result};
use crate::plan::is_small_expr;

/// `filtered(value, condition)`: the values for which the condition is true. It stands in what is
/// aggregated, until [`fitted`].
#[derive(Debug, PartialEq, Eq, Hash)]
struct Filtered {
    signature: Signature,
}

impl ScalarUDFImpl for Filtered {
    fn name(&self) -> &str {
        "filtered"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> PlanResult<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> PlanResult<ColumnarValue> {
        plan_err!("a filter of values stands where no aggregate looks for it")
    }
}

/// The values for which the condition is true, to be aggregated.
pub(super) fn filtered(value: df::Expr, condition: df::Expr) -> df::Expr {
    let signature = Signature::any(2, Volatility::Immutable);
    ScalarUDF::from(Filtered { signature }).call(vec![value, condition])
}

/// Whether values in it are filtered.
pub(super) fn has_filter(expr: &df::Expr) -> bool {
    expr.exists(|node| Ok(is_filtered(node))).unwrap_or(false)
}

fn is_filtered(node: &df::Expr) -> bool {
    matches!(node, df::Expr::ScalarFunction(call) if call.func.inner().is::<Filtered>())
}

/// The expressions as the types of the columns ask for.
///
/// # Errors
/// Filters of values that nothing aggregates.
pub(in crate::frame) fn fitted(exprs: Vec<Expr>, schema: &Schema) -> Result<Vec<Expr>> {
    let fit = |expr: Expr| {
        // What is deep is not looked into: that takes more stack than there may be.
        if !is_small_expr(&expr.tree) || !expr.tree.exists(|node| Ok(is_concerned(node)))? {
            return Ok(expr);
        }
        let Expr { tree, name } = expr;
        let tree = tree.transform_up(|node| fitted_node(node, schema))?.data;
        if has_filter(&tree) {
            return Err(Error::unsupported(
                "a filter of values that are not aggregated",
                "aggregate them, as in col(\"x\").filter(condition).sum(), or filter the rows",
            ));
        }
        Ok(Expr { tree, name })
    };
    exprs.into_iter().map(fit).collect()
}

fn is_concerned(node: &df::Expr) -> bool {
    let by_type = |name: &str| matches!(name, "sum" | "avg" | "median");
    match node {
        df::Expr::AggregateFunction(call) => by_type(call.func.name()),
        df::Expr::WindowFunction(call) => by_type(call.fun.name()),
        node => is_filtered(node) || change(node).is_some(),
    }
}

/// A value of which the same value of another row is subtracted.
fn change(node: &df::Expr) -> Option<&df::Expr> {
    let df::Expr::BinaryExpr(df::BinaryExpr { left, op: df::Operator::Minus, right }) = node else {
        return None;
    };
    let df::Expr::WindowFunction(call) = right.as_ref() else { return None };
    let shifts = matches!(call.fun.name(), "lag" | "lead");
    (shifts && call.params.args.first() == Some(left.as_ref())).then_some(left)
}

fn fitted_node(node: df::Expr, schema: &Schema) -> PlanResult<Transformed<df::Expr>> {
    Ok(match node {
        df::Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            unfiltered(&mut params.args, &mut params.order_by, &mut params.filter)?;
            let back = by_type(func.name(), &mut params.args, schema)?;
            let call = df::Expr::AggregateFunction(AggregateFunction { func, params });
            Transformed::yes(back.of(call))
        }
        df::Expr::WindowFunction(mut call) => {
            let mut back = TypeBack::Same;
            if let WindowFunctionDefinition::AggregateUDF(func) = &call.fun {
                let params = &mut call.params;
                unfiltered(&mut params.args, &mut [], &mut params.filter)?;
                back = by_type(func.name(), &mut call.params.args, schema)?;
            }
            Transformed::yes(back.of(df::Expr::WindowFunction(call)))
        }
        other => match change(&other).map(|value| type_of(value, schema)).transpose()?.flatten() {
            Some(dtype) if dtype.is_unsigned_integer() => Transformed::yes(signed(other)),
            _ => Transformed::no(other),
        },
    })
}

/// A difference, computed in signed integers.
fn signed(node: df::Expr) -> df::Expr {
    match node {
        df::Expr::BinaryExpr(of) => {
            let [left, right] = [of.left, of.right].map(|side| cast(*side, DataType::Int64));
            df::binary_expr(left, of.op, right)
        }
        other => other,
    }
}

/// Takes filters of values out of an aggregate's arguments and makes them its own.
fn unfiltered(
    args: &mut [df::Expr],
    order: &mut [df::SortExpr],
    filter: &mut Option<Box<df::Expr>>,
) -> PlanResult<()> {
    let mut conditions: Vec<df::Expr> = vec![];
    let keys = order.iter_mut().map(|key| &mut key.expr);
    for expr in args.iter_mut().chain(keys).chain(filter.as_deref_mut()) {
        let plain = std::mem::take(expr).transform_up(|node| match node {
            df::Expr::ScalarFunction(mut call) if call.func.inner().is::<Filtered>() => {
                let (condition, value) = (call.args.pop(), call.args.pop());
                conditions.extend(condition.filter(|condition| !conditions.contains(condition)));
                Ok(Transformed::yes(value.unwrap_or_default()))
            }
            node => Ok(Transformed::no(node)),
        })?;
        *expr = plain.data;
    }
    let all = filter.take().map(|own| *own).into_iter().chain(conditions);
    *filter = all.reduce(df::Expr::and).map(Box::new);
    Ok(())
}

/// How a result of numbers becomes one of the type of the values.
enum TypeBack {
    Same,
    /// The times as integers.
    Times(DataType),
}

impl TypeBack {
    fn of(self, call: df::Expr) -> df::Expr {
        match self {
            TypeBack::Same => call,
            TypeBack::Times(dtype) => cast(cast(call, DataType::Int64), dtype),
        }
    }
}

/// Casts what is aggregated, where that asks for it.
fn by_type(function: &str, args: &mut [df::Expr], schema: &Schema) -> PlanResult<TypeBack> {
    let ("sum" | "avg" | "median", [arg]) = (function, args) else { return Ok(TypeBack::Same) };
    // A median is that of floats.
    let value = match &*arg {
        df::Expr::Cast(of) if function == "median" => of.expr.as_ref(),
        value => value,
    };
    let Some(dtype) = type_of(value, schema)? else { return Ok(TypeBack::Same) };
    let times = match (function, &dtype) {
        ("avg" | "median", DataType::Date32 | DataType::Date64) => {
            DataType::Timestamp(TimeUnit::Microsecond, None)
        }
        ("avg" | "median", DataType::Timestamp(..)) | (_, DataType::Duration(_)) => dtype.clone(),
        _ => return Ok(TypeBack::Same),
    };
    let time = if dtype == times { value.clone() } else { cast(value.clone(), times.clone()) };
    let number = cast(time, DataType::Int64);
    // Sums of times do not fit into 64 bits.
    let exact = DataType::Decimal128(20, 0);
    *arg = if function == "avg" { cast(number, exact) } else { number };
    Ok(TypeBack::Times(times))
}

/// The type of a value, if it is known.
fn type_of(value: &df::Expr, schema: &Schema) -> PlanResult<Option<DataType>> {
    Ok(match value {
        df::Expr::Column(column) => {
            schema.column_with_name(&column.name).map(|(_, field)| field.data_type().clone())
        }
        df::Expr::Literal(value, _) => Some(value.data_type()),
        df::Expr::Cast(of) => Some(of.field.data_type().clone()),
        // Wrong names and types are told where the verb is planned.
        value => value.get_type(&DFSchema::try_from(schema.clone())?).ok(),
    })
}
