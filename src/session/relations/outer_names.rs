//! Columns of LATERAL that are columns of the rows around it: `LATERAL (SELECT t.i)` has a column
//! `i`, which DataFusion's planner (55.2) calls `outer_ref(t.i)`.

use std::collections::HashMap;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlannerContext};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::TableFactor;

/// The relation of a subquery that is LATERAL no more: its planner knows the rows around it.
pub(super) fn planned(
    mut factor: TableFactor,
    context: &mut dyn RelationPlannerContext,
) -> Result<PlannedRelation> {
    let mut called = None;
    if let TableFactor::Derived { lateral, alias, .. } = &mut factor {
        (*lateral, called) = (false, alias.take());
    }
    let plan = context.plan(factor)?;
    let names = outer_names(&plan)?;
    let is_one = |field: &str| names.contains_key(field);
    if !plan.schema().fields().iter().any(|field| is_one(field.name())) {
        return Ok(PlannedRelation::new(plan, called));
    }
    let columns = plan.schema().iter().map(|(table, field)| {
        let column = Expr::from((table, field));
        match names.get(field.name()) {
            Some(name) => column.alias(name),
            None => column,
        }
    });
    let columns: Vec<_> = columns.collect();
    Ok(PlannedRelation::new(LogicalPlanBuilder::from(plan).project(columns)?.build()?, called))
}

/// The names of columns around the plan, by those that expressions of them have.
fn outer_names(plan: &LogicalPlan) -> Result<HashMap<String, String>> {
    let mut names = HashMap::new();
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            if let Expr::OuterReferenceColumn(_, column) = expr {
                names.insert(expr.schema_name().to_string(), column.name.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(names)
}
