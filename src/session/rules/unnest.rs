//! `UNNEST`, behind which rows that were distinct need not be.
//!
//! DataFusion (55.2, `Unnest::try_new`) hands on that columns of its input, such as the keys of
//! groups, tell rows apart, and so left out `DISTINCT` above it. Nothing is known so behind
//! `UNION`: here one is put with no rows on its other side, of which the optimizer leaves nothing.

use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{EmptyRelation, Expr, LogicalPlan, LogicalPlanBuilder};

/// Whether an operator is an `UNNEST` that says so.
pub(super) fn concerns(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Unnest(unnest) if !unnest.schema.functional_dependencies().is_empty())
}

/// A plan in which `UNNEST` says nothing of what tells rows apart.
pub(super) fn repeating(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match node {
        node if concerns(&node) => Ok(Transformed::yes(forgetful(node)?)),
        node => Ok(Transformed::no(node)),
    })?;
    match plan.transformed {
        true => Ok(plan
            .data
            .transform_up_with_subqueries(|node| Ok(Transformed::yes(node.recompute_schema()?)))?
            .data),
        false => Ok(plan.data),
    }
}

fn forgetful(unnest: LogicalPlan) -> Result<LogicalPlan> {
    let fields = unnest.schema().clone();
    let name = |at: usize| format!("column {at}");
    let numbered = fields
        .columns()
        .into_iter()
        .enumerate()
        .map(|(at, column)| Expr::Column(column).alias(name(at)));
    let plan = LogicalPlanBuilder::from(unnest).project(numbered.collect::<Vec<_>>())?;
    let nothing = EmptyRelation { produce_one_row: false, schema: plan.schema().clone() };
    let columns = fields.iter().enumerate().map(|(at, (qualifier, field))| {
        Expr::Column(Column::new_unqualified(name(at)))
            .alias_qualified(qualifier.cloned(), field.name())
    });
    plan.union(LogicalPlan::EmptyRelation(nothing))?.project(columns.collect::<Vec<_>>())?.build()
}
