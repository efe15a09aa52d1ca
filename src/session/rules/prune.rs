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
            Expr::SetComparison(comparison) => {
                subqueries.push(comparison.subquery.subquery.clone())
            }
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
    let one =
        matches!(node, Projection(_) | Filter(_) | Aggregate(_) | Window(_) | Sort(_) | Limit(_));
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
        LogicalPlan::Window(window) => {
            width(&window.input) + window.window_expr.len() != window.schema.fields().len()
        }
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::JoinType;
    use datafusion::logical_expr::logical_plan::builder::LogicalTableSource;
    use datafusion::logical_expr::{LogicalPlanBuilder, exists};
    use datafusion::prelude::{col, lit};

    use super::*;

    fn table(name: &str) -> LogicalPlanBuilder {
        let fields: Vec<_> =
            ["a", "b", "c"].map(|name| Field::new(name, DataType::Int64, true)).into();
        let source = LogicalTableSource::new(Arc::new(Schema::new(fields)));
        LogicalPlanBuilder::scan(name, Arc::new(source), None).expect("a scan")
    }

    /// The tables and columns that are read.
    fn read(plan: LogicalPlan) -> Result<Vec<String>> {
        let (fields, plan) =
            (plan.schema().fields().clone(), PruneScans.analyze(plan, &ConfigOptions::new())?);
        assert_eq!(&fields, plan.schema().fields());
        let mut scans = vec![];
        plan.apply_with_subqueries(|node| {
            assert_eq!(node.schema(), node.clone().recompute_schema()?.schema());
            if let LogicalPlan::TableScan(scan) = node {
                let names: Vec<_> = scan
                    .projected_schema
                    .fields()
                    .iter()
                    .map(|field| field.name().as_str())
                    .collect();
                scans.push(format!("{}({})", scan.table_name, names.join(" ")));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        scans.sort();
        Ok(scans)
    }

    #[test]
    fn columns_that_are_named_nowhere_are_not_read() -> Result<()> {
        let joined = table("t").join(
            table("u").build()?,
            JoinType::Inner,
            (vec!["t.a"], vec!["u.b"]),
            None,
        )?;
        assert_eq!(read(joined.project([col("t.a")])?.build()?)?, ["t(a b)", "u(a b)"]);
        let semi = table("t").join(
            table("u").build()?,
            JoinType::LeftSemi,
            (vec!["t.a"], vec!["u.a"]),
            None,
        )?;
        assert_eq!(read(semi.alias("v")?.project([col("v.c")])?.build()?)?, ["t(a c)", "u(a c)"]);
        Ok(())
    }

    #[test]
    fn columns_of_a_subquery_are_read() -> Result<()> {
        let within =
            table("u").filter(col("u.c").gt(col("u.b")))?.project([col("u.c")])?.build()?;
        let plan = table("t").filter(exists(Arc::new(within)))?.project([col("t.c")])?.build()?;
        assert_eq!(read(plan)?, ["t(b c)", "u(b c)"]);
        Ok(())
    }

    #[test]
    fn columns_that_are_taken_by_their_place_are_read() -> Result<()> {
        let union = table("t").union(table("u").build()?)?.project([col("a")])?.build()?;
        assert_eq!(read(union)?, ["t(a b c)", "u(a b c)"]);
        assert_eq!(read(table("t").distinct()?.project([col("a")])?.build()?)?, ["t(a b c)"]);
        assert_eq!(read(table("t").build()?)?, ["t(a b c)"]);
        Ok(())
    }

    #[test]
    fn a_table_of_which_nothing_is_named_has_a_column() -> Result<()> {
        let plan = table("t").project([lit(1i64)])?.build()?;
        assert_eq!(read(plan)?, ["t(a)"]);
        Ok(())
    }
}
