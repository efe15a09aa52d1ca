//! Plans over tables instead of placeholders.

use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{LogicalPlan, TableScan};

use super::node::DeviceNode;
use super::tables::{PlanTable, is_placeholder, table_source};
use crate::error::Result;

/// The plan over tables instead of placeholders, by number.
pub(crate) fn bind(plan: &LogicalPlan, tables: &[PlanTable]) -> Result<LogicalPlan> {
    let bound = plan.clone().transform_down_with_subqueries(|node| match node {
        LogicalPlan::TableScan(scan) if is_placeholder(&scan.source) => {
            let source = table_source(&scan, tables).clone();
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        }
        LogicalPlan::Extension(extension) => Ok(match DeviceNode::of(&extension) {
            Some(node) => Transformed::yes(node.with_tables(tables).into()),
            None => Transformed::no(LogicalPlan::Extension(extension)),
        }),
        node => Ok(Transformed::no(node)),
    })?;
    Ok(bound.data)
}
