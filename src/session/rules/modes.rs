//! `mode(x)`, the most frequent value, and of several the least: how often a row's value comes is
//! counted over a window below, by which the value is chosen.
//!
//! ```text
//!   Aggregate: k, mode(x)    Aggregate: k, first_value(value ORDER BY number DESC, value)
//!     Scan: t                  Window: count(value) OVER (PARTITION BY k, value) AS number
//!                                Projection: k, x, x AS value
//!                                  Scan: t
//! ```
//!
//! Nulls are counted as none, so they are chosen where there is nothing else. `mode(x) OVER
//! (PARTITION BY k)` is a window over the same in the place of the aggregation.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::functions_window::nth_value::first_value_udwf;
use datafusion::logical_expr::expr::{NullTreatment, Sort, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Projection, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, lit, when,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::col;

use super::any_node;
use crate::error::Error;
use crate::host::mode::mode;
use crate::plan::FreshNames;

#[derive(Debug)]
pub(super) struct Modes;

impl AnalyzerRule for Modes {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, |node| Ok(concerns(node)))? {
            return Ok(plan);
        }
        let mut names = FreshNames::of(&plan)?;
        plan.transform_up_with_subqueries(|node| match concerns(&node) {
            true => Ok(Transformed::yes(written_out(node, &mut names)?)),
            false => Ok(Transformed::no(node)),
        })
        .map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "modes"
    }
}

fn concerns(node: &LogicalPlan) -> bool {
    let calls = |expr: &Expr| expr.exists(|part| Ok(is_mode(part))).unwrap_or(false);
    matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_))
        && node.expressions().iter().any(calls)
}

fn is_mode(expr: &Expr) -> bool {
    match expr {
        Expr::AggregateFunction(call) => call.func.name() == mode().name(),
        Expr::WindowFunction(call) => {
            matches!(&call.fun, WindowFunctionDefinition::AggregateUDF(of) if of.name() == mode().name())
        }
        _ => false,
    }
}

/// What is computed below the operator.
struct ColumnsBelow<'a> {
    columns: Vec<Expr>,
    counts: Vec<Expr>,
    names: &'a mut FreshNames,
    made: HashSet<String>,
}

impl ColumnsBelow<'_> {
    fn name(&mut self) -> String {
        let name = self.names.name("mode");
        self.made.insert(name.clone());
        name
    }

    /// Whether an expression looks at a column of these.
    fn is_of_made(&self, expr: &Expr) -> bool {
        let is_made =
            |column: &&Column| column.relation.is_none() && self.made.contains(&column.name);
        expr.column_refs().iter().any(is_made)
    }

    /// The column of an expression.
    fn column(&mut self, expr: Expr) -> Expr {
        if matches!(expr, Expr::Column(_)) {
            return expr;
        }
        let name = self.name();
        self.columns.push(expr.alias(&name));
        col(name)
    }

    /// How often a value comes in its partition.
    fn count(&mut self, mut partition: Vec<Expr>, value: &Expr) -> Expr {
        partition.push(value.clone());
        let name = self.name();
        let function = WindowFunctionDefinition::AggregateUDF(count_udaf());
        self.counts.push(over(function, value.clone(), partition, vec![]).alias(&name));
        col(name)
    }
}

/// A function of a whole partition.
fn over(
    function: WindowFunctionDefinition,
    of: Expr,
    partition_by: Vec<Expr>,
    order_by: Vec<Sort>,
) -> Expr {
    let mut call = WindowFunction::new(function, vec![of]);
    let window_frame = WindowFrame::new_bounds(
        WindowFrameUnits::Rows,
        WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        WindowFrameBound::Following(ScalarValue::UInt64(None)),
    );
    call.params = WindowFunctionParams { partition_by, order_by, window_frame, ..call.params };
    Expr::from(call)
}

fn written_out(node: LogicalPlan, generator: &mut FreshNames) -> Result<LogicalPlan> {
    let input = node.inputs()[0].clone();
    let keys = match &node {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.len(),
        _ => 0,
    };
    let names = NamePreserver::new(&node);
    let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut below =
        ColumnsBelow { columns, counts: vec![], names: generator, made: HashSet::new() };
    let (mut exprs, mut partition) = (vec![], vec![]);
    for (at, expr) in node.expressions().into_iter().enumerate() {
        let name = names.save(&expr);
        let expr = match at < keys {
            true => {
                if matches!(expr, Expr::GroupingSet(_)) {
                    let why = "how often a value comes is counted in groups of one kind";
                    return Err(Error::unsupported("mode with GROUPING SETS", why).into());
                }
                let key = below.column(expr);
                partition.push(key.clone());
                key
            }
            false => {
                let chosen = |expr: Expr| match is_mode(&expr) {
                    true => {
                        let chosen = chosen(expr, &partition, &input, &mut below)?;
                        Ok(Transformed::new(chosen, true, TreeNodeRecursion::Jump))
                    }
                    false => Ok(Transformed::no(expr)),
                };
                expr.transform_down(chosen)?.data
            }
        };
        exprs.push(name.restore(expr));
    }
    let columns = std::mem::take(&mut below.columns);
    let mut plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(input))?);
    // Calls of one operator have the same keys.
    for count in std::mem::take(&mut below.counts) {
        plan = LogicalPlanBuilder::from(plan).window([count])?.build()?;
    }
    if matches!(node, LogicalPlan::Aggregate(_)) {
        return node.with_new_exprs(exprs, vec![plan]);
    }
    let (own, others): (Vec<Expr>, Vec<Expr>) =
        exprs.into_iter().partition(|expr| below.is_of_made(expr));
    if !others.is_empty() {
        plan = LogicalPlanBuilder::from(plan).window(others)?.build()?;
    }
    for expr in own {
        plan = LogicalPlanBuilder::from(plan).window([expr])?.build()?;
    }
    // It has the columns of its input.
    let columns = node.schema().columns().into_iter().map(Expr::Column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}

/// What stands for a call. `keys`: those of the groups that an aggregate is of.
fn chosen(
    expr: Expr,
    keys: &[Expr],
    input: &LogicalPlan,
    below: &mut ColumnsBelow<'_>,
) -> Result<Expr> {
    let refused = |why: &str| Err(Error::unsupported("mode", why).into());
    let (args, filter, distinct, nulls, window) = match expr {
        Expr::AggregateFunction(call) => {
            let params = call.params;
            if !params.order_by.is_empty() {
                return refused("it has no ORDER BY: of several values it is the least");
            }
            (params.args, params.filter, params.distinct, params.null_treatment, None)
        }
        Expr::WindowFunction(call) => {
            let params = call.params;
            let frame = &params.window_frame;
            let whole = frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded();
            if !(params.order_by.is_empty() || whole) {
                return refused("over a window it is of whole partitions, without ORDER BY");
            }
            let (args, filter) = (params.args, params.filter);
            (args, filter, params.distinct, params.null_treatment, Some(params.partition_by))
        }
        _ => return refused("it is an aggregate"),
    };
    if nulls == Some(NullTreatment::RespectNulls) {
        return refused("it leaves nulls out");
    }
    let Some(mut value) = args.into_iter().next() else {
        return refused("it takes a value");
    };
    let dtype = value.get_type(input.schema())?;
    // Partitions tell −0.0 from 0.0.
    if matches!(dtype, DataType::Float16 | DataType::Float32 | DataType::Float64) {
        let zero = lit(ScalarValue::new_zero(&dtype)?);
        value = when(value.clone().eq(zero.clone()), zero).otherwise(value)?;
    }
    if let Some(filter) = filter {
        value = when(*filter, value).end()?;
    }
    let value = below.column(value);
    let partition: Vec<Expr> = match &window {
        Some(partition) => partition.iter().map(|key| below.column(key.clone())).collect(),
        None => keys.to_vec(),
    };
    let mut order = vec![value.clone().sort(true, false)];
    if !distinct {
        order.insert(0, below.count(partition.clone(), &value).sort(false, false));
    }
    Ok(match window {
        Some(_) => over(first_value_udwf().into(), value, partition, order),
        None => first_value(value, order),
    })
}
