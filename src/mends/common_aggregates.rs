//! Aggregates that become equal, beside columns of tables.
//!
//! Where two aggregates of an operator are one, as `count(*)` and `count(*) FILTER (WHERE TRUE)`,
//! DataFusion (55.2, `common_subexpr_eliminate.rs`, not reported) computes it once and gives the
//! others their names again, but not their tables: `first_value(id) AS u.id` becomes `id`, and what
//! names `u.id` finds no column. Beside such a name equal aggregates become one before the rule
//! sees them.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection};
use datafusion::optimizer::OptimizerConfig;

use super::LogicalRule;
use crate::plan::any_node;

/// The rule, which keeps the tables of aggregates' names. It walks the plan by itself.
pub(super) fn rewrite(
    rule: &LogicalRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let concerns = |node: &LogicalPlan| {
        Ok(matches!(node, LogicalPlan::Aggregate(aggregate) if has_tables(aggregate)))
    };
    if !any_node(&plan, concerns)? {
        return rule.rewrite(plan, config);
    }
    let told = plan.transform_up(|node| match node {
        LogicalPlan::Aggregate(aggregate) if has_tables(&aggregate) => computed_once(aggregate),
        node => Ok(Transformed::no(node)),
    })?;
    told.transform_data(|plan| rule.rewrite(plan, config))
}

fn has_tables(aggregate: &Aggregate) -> bool {
    let has_table = |call: &Expr| matches!(call, Expr::Alias(call) if call.relation.is_some());
    aggregate.aggr_expr.iter().any(has_table)
}

fn computed_once(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let groups = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    let mut places: Vec<usize> = (0..groups).collect();
    let mut calls: Vec<Expr> = vec![];
    for call in &aggregate.aggr_expr {
        let is_same = |one: &Expr| one.clone().unalias() == call.clone().unalias();
        let place = calls.iter().position(is_same).unwrap_or_else(|| {
            calls.push(call.clone());
            calls.len() - 1
        });
        places.push(groups + place);
    }
    if calls.len() == aggregate.aggr_expr.len() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let schema = aggregate.schema;
    let once = Aggregate::try_new(aggregate.input, aggregate.group_expr, calls)?;
    let columns = places.into_iter().zip(schema.iter()).map(|(place, (table, field))| {
        let column = Expr::from(once.schema.qualified_field(place));
        column.alias_qualified(table.cloned(), field.name())
    });
    let columns = columns.collect();
    let once = Arc::new(LogicalPlan::Aggregate(once));
    let projection = Projection::try_new_with_schema(columns, once, schema)?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}
