//! Marks of merged columns beside others of their name, until they are planned.

use datafusion::common::TableReference;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlan};
use datafusion::sql::sqlparser::ast::Ident;

/// Before the names of merged columns until they are planned.
pub(super) const MARK: char = '\u{1}';
/// Instead of a table's name, before those of merged columns.
const MERGED: &str = "merged";

/// A name without its marks.
pub(super) fn own_name(name: String) -> String {
    name.trim_start_matches(MARK).to_string()
}

/// A name with a mark.
pub(crate) fn marked(name: &str) -> Ident {
    Ident::with_quote('"', format!("{MARK}{name}"))
}

pub(crate) fn is_marked(name: &Ident) -> bool {
    name.value.starts_with(MARK)
}

/// The name that was marked.
pub(crate) fn unmarked_name(name: &Ident) -> Ident {
    match is_marked(name) {
        true => Ident::with_quote('"', name.value.trim_start_matches(MARK)),
        false => name.clone(),
    }
}

/// Whether an operator marks a column.
pub(crate) fn marks(node: &LogicalPlan) -> datafusion::error::Result<bool> {
    let marked =
        |expr: &PlanExpr| matches!(expr, PlanExpr::Alias(alias) if alias.name.starts_with(MARK));
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= expr.exists(|expr| Ok(marked(expr)))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// A plan in which marked columns have their names again.
pub(crate) fn own_names(plan: LogicalPlan) -> datafusion::error::Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let node = node.map_expressions(|expr| {
            expr.transform_up(|expr| match expr {
                PlanExpr::Alias(alias) if alias.name.starts_with(MARK) => {
                    let (table, name) = unmarked(&alias.name);
                    Ok(Transformed::yes(alias.expr.alias_qualified(Some(table), name)))
                }
                PlanExpr::Column(mut column) if column.name.starts_with(MARK) => {
                    let (table, name) = unmarked(&column.name);
                    let relation = column.relation.take().unwrap_or(table);
                    Ok(Transformed::yes(PlanExpr::Column(datafusion::common::Column::new(
                        Some(relation),
                        name,
                    ))))
                }
                other => Ok(Transformed::no(other)),
            })
        })?;
        Ok(Transformed::yes(node.data.recompute_schema()?))
    })?;
    Ok(plan.data)
}

/// A marked name without its marks, and what stands for its table's name.
fn unmarked(marked: &str) -> (TableReference, &str) {
    let name = marked.trim_start_matches(MARK);
    match marked.len() - name.len() {
        1 => (TableReference::bare(MERGED), name),
        number => (TableReference::bare(format!("{MERGED} {number}")), name),
    }
}
