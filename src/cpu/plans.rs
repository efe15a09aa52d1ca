//! Plans for the CPU engine.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, Join, LogicalPlan, Projection, Window,
    expr_rewriter::NamePreserver,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use super::in_order::evaluated_in_order;
use super::wide::for_cpu;
use crate::host::{
    FloatForm, HostOperation, after, concerns, holds_floats, host_expr, is_extreme_of_floats,
};
use crate::plan::{order_crosses, schema_beneath};

/// Plans queries for the CPU engine.
#[derive(Debug)]
pub(crate) struct HostPlanner;

#[async_trait]
impl QueryPlanner for HostPlanner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        DefaultPhysicalPlanner::default().create_physical_plan(&plan(logical)?, session).await
    }
}

/// The optimized plan as the CPU engine shall run it. Its columns are those of the plan that is
/// given.
pub(crate) fn plan(plan: &LogicalPlan) -> Result<LogicalPlan> {
    let plan = evaluated_in_order(for_cpu(order_crosses(plan.clone())?)?)?;
    Ok(plan.transform_up_with_subqueries(|node| Ok(Transformed::yes(changed(node)?)))?.data)
}

fn changed(node: LogicalPlan) -> Result<LogicalPlan> {
    match node {
        LogicalPlan::TableScan(_) => {
            let schema = node.schema().clone();
            let formed = |at: usize| {
                holds_floats(schema.field(at).data_type())
                    .then_some(HostOperation::Formed(FloatForm::OneNan))
            };
            above(node, &schema, formed)
        }
        LogicalPlan::Aggregate(aggregate) => changed_aggregate(aggregate),
        LogicalPlan::Window(window) => changed_window(window),
        LogicalPlan::Join(join) => changed_expressions(LogicalPlan::Join(changed_keys(join)?)),
        other => changed_expressions(other),
    }
}

/// A projection of all columns of a plan, some of them through functions, if any is; `schema` is
/// what it yields.
fn above(
    plan: LogicalPlan,
    schema: &DFSchemaRef,
    work: impl Fn(usize) -> Option<HostOperation>,
) -> Result<LogicalPlan> {
    let works: Vec<_> = (0..schema.fields().len()).map(work).collect();
    if works.iter().all(Option::is_none) {
        return Ok(plan);
    }
    let columns = works.into_iter().enumerate().map(|(at, work)| {
        let (relation, field) = schema.qualified_field(at);
        let column = Expr::Column(Column::new(relation.cloned(), field.name()));
        match work {
            Some(work) => work.of(column).alias_qualified(relation.cloned(), field.name()),
            None => column,
        }
    });
    let columns = columns.collect();
    Ok(LogicalPlan::Projection(Projection::try_new_with_schema(
        columns,
        Arc::new(plan),
        schema.clone(),
    )?))
}

fn changed_expressions(node: LogicalPlan) -> Result<LogicalPlan> {
    let schema = schema_beneath(&node)?;
    let names = NamePreserver::new(&node);
    let changed = |expr: Expr| {
        let name = names.save(&expr);
        Ok(Transformed::yes(name.restore(host_expr(expr, &schema)?)))
    };
    Ok(node
        .map_expressions(|expr| match concerns(&expr) {
            true => changed(expr),
            false => Ok(Transformed::no(expr)),
        })?
        .data)
}

/// Equal keys get equal bits. Lists and structs match by those; and what a join learns of its build
/// side's keys, and has scans test, tells −0.0 from 0.0 (55.2, `HashJoinExec`).
///
/// Keys that are no columns stand under names of their own beside the columns that they are made
/// of: a cast has the name of what is cast, and DataFusion renames only casts that it knows.
fn changed_keys(mut join: Join) -> Result<Join> {
    for (left, right) in &mut join.on {
        let floats = holds_floats(&left.get_type(join.left.schema())?);
        for key in [left, right] {
            if !floats && matches!(key, Expr::Column(_)) {
                continue;
            }
            let name = format!("equal {key}");
            let mut own = std::mem::take(key);
            if floats {
                own = HostOperation::Formed(FloatForm::Equal).of(own);
            }
            *key = own.alias(name);
        }
    }
    Ok(join)
}

fn changed_aggregate(aggregate: Aggregate) -> Result<LogicalPlan> {
    let schema = aggregate.input.schema().clone();
    let groups = aggregate.group_expr.into_iter().map(|key| match key {
        Expr::GroupingSet(_) => {
            Ok(key.map_children(|key| Ok(Transformed::yes(group_key(key, &schema)?)))?.data)
        }
        key => group_key(key, &schema),
    });
    let groups = groups.collect::<Result<Vec<_>>>()?;
    let works =
        aggregate.aggr_expr.iter().map(|call| after(call, &schema)).collect::<Result<Vec<_>>>()?;
    let calls = changed_calls(aggregate.aggr_expr, &schema)?;
    let before = aggregate.schema.fields().len() - calls.len();
    let made = LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input, groups, calls)?);
    above(made, &aggregate.schema, |at| works.get(at.checked_sub(before)?)?.clone())
}

/// A key of groups. Lists and structs are told apart by their bits.
fn group_key(key: Expr, schema: &DFSchema) -> Result<Expr> {
    let name = NamePreserver::new_for_projection().save(&key);
    let dtype = key.get_type(schema)?;
    let key = host_expr(key, schema)?;
    let equal = dtype.is_nested() && holds_floats(&dtype);
    Ok(name.restore(if equal { HostOperation::Formed(FloatForm::Equal).of(key) } else { key }))
}

/// Windows of several orders become several operators. DataFusion (55.2) has one for all that need
/// rows in the same order, as `PARTITION BY g, k ORDER BY g` and `PARTITION BY g, k ORDER BY k` do,
/// and gives all of them the keys of the first.
fn changed_window(window: Window) -> Result<LogicalPlan> {
    let mut orders: Vec<Vec<Expr>> = vec![];
    for call in &window.window_expr {
        let same = |order: &&mut Vec<Expr>| order.first().is_some_and(|of| in_one_order(of, call));
        match orders.iter_mut().find(same) {
            Some(order) => order.push(call.clone()),
            None => orders.push(vec![call.clone()]),
        }
    }
    if orders.len() < 2 {
        return window_of_one_order(window);
    }
    let mut plan = window.input;
    for calls in orders {
        plan = Arc::new(window_of_one_order(Window::try_new(calls, plan)?)?);
    }
    let columns = window.schema.iter().map(Expr::from).collect();
    Ok(LogicalPlan::Projection(Projection::try_new_with_schema(columns, plan, window.schema)?))
}

/// Whether window functions are of the same partitions in the same order.
fn in_one_order(one: &Expr, other: &Expr) -> bool {
    match (one, other) {
        (Expr::Alias(one), _) => in_one_order(&one.expr, other),
        (_, Expr::Alias(other)) => in_one_order(one, &other.expr),
        (Expr::WindowFunction(one), Expr::WindowFunction(other)) => {
            one.params.partition_by == other.params.partition_by
                && one.params.order_by == other.params.order_by
        }
        _ => true,
    }
}

fn window_of_one_order(window: Window) -> Result<LogicalPlan> {
    let schema = window.input.schema().clone();
    let works =
        window.window_expr.iter().map(|call| after(call, &schema)).collect::<Result<Vec<_>>>()?;
    let calls = changed_calls(window.window_expr, &schema)?;
    let before = schema.fields().len();
    let made = LogicalPlan::Window(Window::try_new(calls, window.input)?);
    above(made, &window.schema, |at| works.get(at.checked_sub(before)?)?.clone())
}

/// An argument of a function that sees to the form of floats itself.
fn without_form(arg: Expr) -> Expr {
    match arg {
        Expr::ScalarFunction(mut call)
            if matches!(HostOperation::from(&call.func), Some(HostOperation::Formed(_))) =>
        {
            call.args.swap_remove(0)
        }
        arg => arg,
    }
}

/// Aggregates or window functions: of floats the extrema are found among integers.
fn changed_calls(calls: Vec<Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
    let ordered = |args: &mut Vec<Expr>| {
        if let Some(first) = args.first_mut() {
            *first = HostOperation::Order.of(without_form(std::mem::take(first)));
        }
    };
    let changed = |call: Expr| {
        let name = NamePreserver::new_for_projection().save(&call);
        let extreme = |name: &str, args: &[Expr]| is_extreme_of_floats(name, args, schema);
        let call = call.unalias();
        let of_floats = match &call {
            Expr::AggregateFunction(call) => extreme(call.func.name(), &call.params.args),
            Expr::WindowFunction(call) => extreme(call.fun.name(), &call.params.args),
            _ => false,
        };
        let mut call = host_expr(call, schema)?;
        match &mut call {
            Expr::AggregateFunction(call) if of_floats => ordered(&mut call.params.args),
            Expr::WindowFunction(call) if of_floats => ordered(&mut call.params.args),
            _ => {}
        }
        Ok(name.restore(call))
    };
    calls.into_iter().map(changed).collect()
}
