//! Scans read no column that no expression names, before anything else looks at the plan.
//!
//! ```text
//!   Projection: t.a                  Projection: t.a
//!     Join: t.k = u.k                  Join: t.k = u.k
//!       TableScan: t                     TableScan: t projection=[a, k]
//!       TableScan: u                     TableScan: u projection=[k]
//! ```
//!
//! DataFusion (55.2) prunes columns by the last rule of a pass (`OptimizeProjections`). Until then
//! every rule copies, hashes and searches the columns of all tables at every join. A column is kept
//! here if its name occurs anywhere, whatever table is meant, so that nothing has to be resolved.
//! The last rule prunes the rest.

use std::collections::HashSet;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableScanBuilder};
use datafusion::optimizer::AnalyzerRule;

/// Runs before the coercion of types.
#[derive(Debug)]
pub(super) struct PruneScans;

impl AnalyzerRule for PruneScans {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let mut names = HashSet::new();
        if !name_columns(&plan, &mut names)? {
            return Ok(plan);
        }
        let pruned = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::TableScan(scan) => pruned(scan, &names),
            node if is_stale(&node) => Ok(Transformed::yes(node.recompute_schema()?)),
            node => Ok(Transformed::no(node)),
        })?;
        Ok(pruned.data)
    }

    fn name(&self) -> &str {
        "prune_scans"
    }
}

/// Adds the names of all columns that the plan needs. Returns false if a part of it needs all
/// columns of what lies below without naming them.
fn name_columns(plan: &LogicalPlan, names: &mut HashSet<String>) -> Result<bool> {
    let mut named = true;
    add_output(plan, names);
    plan.apply(|node| {
        if !names_its_columns(node) {
            node.inputs().into_iter().for_each(|input| add_output(input, names));
        }
        node.apply_expressions(|expr| {
            named &= name_columns_of(expr, names)?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        named &= !matches!(node, LogicalPlan::RecursiveQuery(_));
        Ok(if named { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(named)
}

fn name_columns_of(expr: &Expr, names: &mut HashSet<String>) -> Result<bool> {
    let mut named = true;
    let mut add = |name: &str| {
        if !names.contains(name) {
            names.insert(name.to_string());
        }
    };
    let mut subqueries = vec![];
    expr.apply(|node| {
        match node {
            Expr::Column(column) | Expr::OuterReferenceColumn(_, column) => add(&column.name),
            Expr::ScalarSubquery(subquery) => subqueries.push(subquery.subquery.clone()),
            Expr::Exists(exists) => subqueries.push(exists.subquery.subquery.clone()),
            Expr::InSubquery(member) => subqueries.push(member.subquery.subquery.clone()),
            Expr::SetComparison(comparison) => subqueries.push(comparison.subquery.subquery.clone()),
            #[expect(deprecated)]
            Expr::Wildcard { .. } => named = false,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    for subquery in subqueries {
        named &= name_columns(&subquery, names)?;
    }
    Ok(named)
}

fn add_output(plan: &LogicalPlan, names: &mut HashSet<String>) {
    names.extend(plan.schema().fields().iter().map(|field| field.name().clone()));
}

/// Whether an operator needs only those columns of its input that its expressions, or the
/// operators above, name. Others, such as UNION and DISTINCT, take columns by their place, or all.
fn names_its_columns(node: &LogicalPlan) -> bool {
    use LogicalPlan::*;
    let one = matches!(node, Projection(_) | Filter(_) | Aggregate(_) | Window(_) | Sort(_) | Limit(_));
    one || matches!(node, Join(_) | SubqueryAlias(_))
}

fn pruned(scan: TableScan, names: &HashSet<String>) -> Result<Transformed<LogicalPlan>> {
    let schema = scan.source.schema();
    let named = |at: &usize| names.contains(schema.field(*at).name());
    let mut projection: Vec<usize> = match &scan.projection {
        Some(_) => return Ok(Transformed::no(LogicalPlan::TableScan(scan))),
        None => (0..schema.fields().len()).filter(named).collect(),
    };
    if projection.len() == schema.fields().len() {
        return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
    }
    // Rules need a column to tell that a row of an outer join has no match.
    if projection.is_empty() {
        projection.push(0);
    }
    let scan = TableScanBuilder::from(scan).with_projection(Some(projection)).build()?;
    Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
}

/// Whether an operator that hands on the columns of its inputs has another number of them.
fn is_stale(node: &LogicalPlan) -> bool {
    use datafusion::common::JoinType::*;
    let width = |plan: &LogicalPlan| plan.schema().fields().len();
    match node {
        LogicalPlan::SubqueryAlias(alias) => width(&alias.input) != alias.schema.fields().len(),
        LogicalPlan::Window(window) => width(&window.input) + window.window_expr.len() != window.schema.fields().len(),
        LogicalPlan::Join(join) => {
            let inputs = match join.join_type {
                LeftSemi | LeftAnti => width(&join.left),
                RightSemi | RightAnti => width(&join.right),
                LeftMark => width(&join.left) + 1,
                RightMark => width(&join.right) + 1,
                Inner | Left | Right | Full => width(&join.left) + width(&join.right),
            };
            inputs != join.schema.fields().len()
        }
        _ => false,
    }
}
