//! Intervals are compared by their lengths, a month of 30 days and a day of 24 hours, as in
//! PostgreSQL and DuckDB. Arrow (59.3) compares their months first, then days, then parts of a day
//! (<https://github.com/apache/datafusion/issues/8468>): 36 hours were less than a day.
//!
//! ```text
//!   e - s > INTERVAL '1 day'      justified(e - s) > justified(INTERVAL '1 day')
//!   GROUP BY i, DISTINCT i        GROUP BY justified(i), DISTINCT justified(i)
//!   ORDER BY i, max(i)            ORDER BY justified(i), max(justified(i))
//!   extract(hour FROM e - s)      interval_part('hour', e - s)
//! ```
//!
//! So equal ones are one value in groups, joins and sorts. This runs when types agree.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::plan_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Subquery,
};
use datafusion::optimizer::AnalyzerRule;

use crate::host::interval_times::interval_times;
use crate::host::{interval_part, justified};
use crate::plan::{is_comparison, schema_beneath};

#[derive(Debug)]
pub(super) struct IntervalOrder;

impl AnalyzerRule for IntervalOrder {
    fn name(&self) -> &str {
        "interval_order"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(of_node)?.data)
    }
}

fn is_interval(dtype: &DataType) -> bool {
    matches!(dtype, DataType::Interval(IntervalUnit::MonthDayNano))
}

/// Whether an operator may have intervals, or parts of them: most have not.
fn concerns(node: &LogicalPlan) -> Result<bool> {
    let is_one = |dtype: &DataType| matches!(dtype, DataType::Interval(_));
    let has =
        |input: &LogicalPlan| input.schema().fields().iter().any(|field| is_one(field.data_type()));
    let mut found = node.inputs().into_iter().any(has);
    if !found {
        node.apply_expressions(|expr| {
            found = expr.exists(|expr| {
                Ok(match expr {
                    Expr::Literal(value, _) => is_one(&value.data_type()),
                    Expr::Cast(cast) => is_one(cast.field.data_type()),
                    Expr::TryCast(cast) => is_one(cast.field.data_type()),
                    Expr::ScalarFunction(call) => {
                        ["age", "date_part", interval_times().name()].contains(&call.name())
                    }
                    Expr::OuterReferenceColumn(field, _) => is_one(field.data_type()),
                    _ => false,
                })
            })?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
    }
    Ok(found)
}

fn of_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if matches!(node, LogicalPlan::TableScan(_)) || !concerns(&node)? {
        return Ok(Transformed::no(node));
    }
    let schema = schema_beneath(&node)?;
    let by_length = |expr: Expr| match expr.get_type(&schema) {
        Ok(dtype) if is_interval(&dtype) => Transformed::yes(justified(expr)),
        _ => Transformed::no(expr),
    };
    let named = |expr: Expr| {
        let name = NamePreserver::new_for_projection().save(&expr);
        by_length(expr).update_data(|expr| name.restore(expr))
    };
    let node = match node {
        LogicalPlan::Sort(mut sort) => {
            let mut changed = false;
            for key in &mut sort.expr {
                let by = by_length(std::mem::take(&mut key.expr));
                (key.expr, changed) = (by.data, changed | by.transformed);
            }
            Transformed::new_transformed(LogicalPlan::Sort(sort), changed)
        }
        LogicalPlan::Join(mut join) => {
            let mut changed = false;
            for key in join.on.iter_mut().flat_map(|(left, right)| [left, right]) {
                let by = by_length(std::mem::take(key));
                (*key, changed) = (by.data, changed | by.transformed);
            }
            Transformed::new_transformed(LogicalPlan::Join(join), changed)
        }
        LogicalPlan::Distinct(Distinct::All(input))
            if input.schema().fields().iter().any(|field| is_interval(field.data_type())) =>
        {
            let columns = input.schema().columns().into_iter();
            let columns: Vec<Expr> =
                columns.map(|column: Column| named(Expr::Column(column)).data).collect();
            let plan = LogicalPlanBuilder::from(input).project(columns)?.distinct()?.build()?;
            Transformed::yes(plan)
        }
        LogicalPlan::Aggregate(aggregate) => {
            let key = |key: Expr| match key {
                Expr::GroupingSet(_) => key.map_children(|key| Ok(named(key))),
                key => Ok(named(key)),
            };
            let mut changed = false;
            let mut keys = vec![];
            for expr in aggregate.group_expr {
                let key = key(expr)?;
                changed |= key.transformed;
                keys.push(key.data);
            }
            let calls = aggregate.aggr_expr;
            let plan = match changed {
                true => Aggregate::try_new(aggregate.input, keys, calls)?,
                false => {
                    Aggregate::try_new_with_schema(aggregate.input, keys, calls, aggregate.schema)?
                }
            };
            Transformed::new_transformed(LogicalPlan::Aggregate(plan), changed)
        }
        node => Transformed::no(node),
    };
    let moved = node.transformed;
    let names = NamePreserver::new(&node.data);
    let changed = node.data.map_expressions(|expr| {
        let name = names.save(&expr);
        let changed = expr.transform_up(|expr| of_expr(expr, &schema))?;
        Ok(match changed.transformed {
            true => changed.update_data(|expr| name.restore(expr)),
            false => changed,
        })
    })?;
    match changed.transformed {
        true => changed.map_data(|node| node.recompute_schema()),
        false => Ok(Transformed::new_transformed(changed.data, moved)),
    }
}

fn of_expr(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_length = |expr: &Expr| expr.get_type(schema).is_ok_and(|dtype| is_interval(&dtype));
    let by_length = |expr: &mut Expr| *expr = length_of(std::mem::take(expr), schema);
    match &mut expr {
        Expr::BinaryExpr(binary)
            if is_comparison(binary.op) && is_length(&binary.left) && is_length(&binary.right) =>
        {
            by_length(&mut binary.left);
            by_length(&mut binary.right);
        }
        Expr::Between(between) if is_length(&between.expr) => {
            by_length(&mut between.expr);
            by_length(&mut between.low);
            by_length(&mut between.high);
        }
        Expr::InList(list) if is_length(&list.expr) => {
            by_length(&mut list.expr);
            list.list.iter_mut().for_each(by_length);
        }
        Expr::Case(case) if case.expr.as_deref().is_some_and(is_length) => {
            case.expr.iter_mut().for_each(|base| by_length(base));
            case.when_then_expr.iter_mut().for_each(|(when, _)| by_length(when));
        }
        Expr::InSubquery(member) if is_length(&member.expr) => {
            by_length(&mut member.expr);
            member.subquery = lengths_of(&member.subquery)?;
        }
        Expr::SetComparison(compared) if is_length(&compared.expr) => {
            by_length(&mut compared.expr);
            compared.subquery = lengths_of(&compared.subquery)?;
        }
        Expr::ScalarFunction(call)
            if ["greatest", "least"].contains(&call.name()) && call.args.iter().all(is_length) =>
        {
            call.args.iter_mut().for_each(by_length);
        }
        Expr::ScalarFunction(call) if call.name() == "date_part" => {
            let [part, of] = &call.args[..] else { return Ok(Transformed::no(expr)) };
            let of_time = matches!(
                of.get_type(schema),
                Ok(DataType::Duration(_) | DataType::Interval(IntervalUnit::MonthDayNano))
            );
            let Expr::Literal(part, _) = part else { return Ok(Transformed::no(expr)) };
            let (true, Some(part)) = (of_time, part.try_as_str().flatten()) else {
                return Ok(Transformed::no(expr));
            };
            return match interval_part(part, of.clone()) {
                Some(part) => Ok(Transformed::yes(part)),
                None => plan_err!("an interval has no part {part:?}"),
            };
        }
        Expr::AggregateFunction(call) => {
            let params = &mut call.params;
            let by_order = ["min", "max"].contains(&call.func.name()) || params.distinct;
            let values = params.args.iter_mut().filter(|_| by_order);
            let keys = params.order_by.iter_mut().map(|key| &mut key.expr);
            let changed = by_lengths(values.chain(keys), is_length);
            return Ok(Transformed::new_transformed(expr, changed));
        }
        Expr::WindowFunction(call) => {
            let by_order = ["min", "max"].contains(&call.fun.name()) || call.params.distinct;
            let params = &mut call.params;
            let values = params.args.iter_mut().filter(|_| by_order);
            let keys = params.order_by.iter_mut().map(|key| &mut key.expr);
            let keys = keys.chain(&mut params.partition_by);
            let changed = by_lengths(values.chain(keys), is_length);
            return Ok(Transformed::new_transformed(expr, changed));
        }
        _ => return Ok(Transformed::no(expr)),
    }
    Ok(Transformed::yes(expr))
}

/// A subquery of one column, which is an interval.
fn lengths_of(subquery: &Subquery) -> Result<Subquery> {
    let plan = &subquery.subquery;
    let columns = plan.schema().columns().into_iter();
    let lengths = columns.map(|column| {
        let name = column.name.clone();
        length_of(Expr::Column(column), plan.schema()).alias(name)
    });
    let lengths: Vec<Expr> = lengths.collect();
    let plan = LogicalPlanBuilder::from(plan.clone()).project(lengths)?.build()?;
    Ok(subquery.with_plan(Arc::new(plan)))
}

/// What an interval is compared by. A distance has days, and need not fit nanoseconds.
fn length_of(interval: Expr, schema: &DFSchema) -> Expr {
    match interval {
        Expr::Cast(cast)
            if matches!(cast.expr.get_type(schema), Ok(DataType::Duration(_)))
                && is_interval(cast.field.data_type()) =>
        {
            justified(*cast.expr)
        }
        other => justified(other),
    }
}

/// Has those of values that are intervals compare by their lengths; whether there are any.
fn by_lengths<'e>(
    values: impl Iterator<Item = &'e mut Expr>,
    is_length: impl Fn(&Expr) -> bool,
) -> bool {
    let mut changed = false;
    for value in values.filter(|value| is_length(value)) {
        *value = justified(std::mem::take(value));
        changed = true;
    }
    changed
}
