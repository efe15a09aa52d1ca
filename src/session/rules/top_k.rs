//! The first rows in an order of structs or lists, sorted whole.
//!
//! DataFusion's top k (55.2, `TopK::insert_batch`) keeps the rows that are less than the last one
//! kept, compared by operators to which a null *within* a struct or a list is less than any value,
//! whatever NULLS LAST says of the order. So it loses rows. A whole sort compares as the order
//! says.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use super::PhysicalRule;

pub(super) fn rule() -> PhysicalRule {
    Arc::new(WholeSort)
}

#[derive(Debug)]
struct WholeSort;

impl PhysicalOptimizerRule for WholeSort {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| Ok(whole(&plan)?.map_or_else(|| Transformed::no(plan), Transformed::yes))).data()
    }

    fn name(&self) -> &str {
        "whole_sort_of_nested_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Instead of a top k by a key that may have nulls within: the sort, and then the limit.
fn whole(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(sort) = plan.downcast_ref::<SortExec>() else { return Ok(None) };
    let Some(fetch) = sort.fetch() else { return Ok(None) };
    let schema = sort.input().schema();
    let nested = |key: &PhysicalSortExpr| Ok(key.expr.data_type(&schema)?.is_nested());
    if !sort.expr().iter().map(nested).collect::<Result<Vec<_>>>()?.contains(&true) {
        return Ok(None);
    }
    Ok(Some(Arc::new(LocalLimitExec::new(Arc::new(sort.with_fetch(None)), fetch))))
}
