//! Looks at plans: whether one has such an operator, and which columns an operator sees.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, Filter, Limit, LogicalPlan, Projection, Sort, SubqueryAlias, Unnest,
    Window,
};

use warpframe_device::interrupt;

/// Whether an operator of the plan, or of a subquery, is such a one. To walk a plan takes a
/// fraction of the time that it takes to rebuild it.
pub(crate) fn any_node(
    plan: &LogicalPlan,
    is_such: impl Fn(&LogicalPlan) -> Result<bool>,
) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        interrupt::check().map_err(crate::Error::from)?;
        found = is_such(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether a plan does more with tables than to hand their rows on. Without that it is over sooner
/// than rows come to a device and back.
pub(crate) fn is_worth_it(plan: &LogicalPlan) -> crate::Result<bool> {
    let computes =
        |expr: &Expr| !matches!(expr.clone().unalias(), Expr::Column(_) | Expr::Literal(..));
    let works = any_node(plan, |node| {
        Ok(match node {
            LogicalPlan::Filter(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Window(_) => true,
            LogicalPlan::Projection(project) => project.expr.iter().any(computes),
            _ => false,
        })
    })?;
    Ok(works && any_node(plan, |node| Ok(matches!(node, LogicalPlan::TableScan(_))))?)
}

/// Whether an expression of the operator holds a plan.
pub(crate) fn holds_subquery(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_subqueries(|_| {
        found = true;
        Ok(TreeNodeRecursion::Stop)
    })?;
    Ok(found)
}

/// The columns that an operator's expressions see.
pub(crate) fn schema_beneath(node: &LogicalPlan) -> Result<DFSchemaRef> {
    if let LogicalPlan::TableScan(scan) = node {
        return DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())
            .map(Arc::new);
    }
    let inputs = node.inputs();
    if let [input] = inputs.as_slice() {
        return Ok(input.schema().clone());
    }
    let mut schema = DFSchema::empty();
    for input in inputs {
        schema.merge(input.schema());
    }
    Ok(Arc::new(schema))
}

/// The place of a column, where an expression is one and nothing else.
pub(crate) fn place_of(expr: &Expr, schema: &DFSchema) -> Option<usize> {
    match expr {
        Expr::Column(column) => schema.maybe_index_of_column(column),
        Expr::Alias(alias) => place_of(&alias.expr, schema),
        _ => None,
    }
}

/// An operator of one input over another one of the same columns.
pub(crate) fn over(operator: &LogicalPlan, input: LogicalPlan) -> crate::Result<LogicalPlan> {
    let input = Arc::new(input);
    Ok(match operator.clone() {
        LogicalPlan::Aggregate(Aggregate { group_expr, aggr_expr, schema, .. }) => {
            LogicalPlan::Aggregate(Aggregate::try_new_with_schema(
                input, group_expr, aggr_expr, schema,
            )?)
        }
        LogicalPlan::Window(Window { window_expr, schema, .. }) => {
            LogicalPlan::Window(Window::try_new_with_schema(window_expr, input, schema)?)
        }
        LogicalPlan::Projection(Projection { expr, schema, .. }) => {
            LogicalPlan::Projection(Projection::try_new_with_schema(expr, input, schema)?)
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { alias, .. }) => {
            LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(input, alias)?)
        }
        LogicalPlan::Filter(Filter { predicate, .. }) => {
            LogicalPlan::Filter(Filter::new(predicate, input))
        }
        LogicalPlan::Unnest(unnest) => LogicalPlan::Unnest(Unnest { input, ..unnest }),
        LogicalPlan::Sort(sort) => LogicalPlan::Sort(Sort { input, ..sort }),
        LogicalPlan::Limit(limit) => LogicalPlan::Limit(Limit { input, ..limit }),
        LogicalPlan::Distinct(Distinct::All(_)) => LogicalPlan::Distinct(Distinct::All(input)),
        other => {
            let message = format!("{} has no one input", other.display());
            return Err(crate::Error::internal(message));
        }
    })
}
