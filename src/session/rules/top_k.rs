//! The first rows in an order, where DataFusion's top k loses rows.
//!
//! Structs and lists: its top k (55.2, `TopK::insert_batch`) keeps the rows that are less than the
//! last one kept, compared by operators to which a null *within* a struct or a list is less than
//! any value, whatever NULLS LAST says of the order. So it loses rows. A whole sort compares as the
//! order says.
//!
//! Columns that are constant within a partition (`SELECT 1 AS n … UNION ALL SELECT 2 AS n …`): the
//! partitions' sort leaves them out (`add_sort_above`), and only the merge of the partitions
//! compares them. But the top k of all partitions have one bound together, and where it lacks a
//! key, a row of one partition drops a row of another that comes before it. With all keys of the
//! merge the bound is right.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;

use super::PhysicalRule;

pub(super) fn rule() -> PhysicalRule {
    Arc::new(WholeTopK)
}

#[derive(Debug)]
struct WholeTopK;

impl PhysicalOptimizerRule for WholeTopK {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = plan.transform_up(|plan| {
            Ok(same_keys(&plan)?.map_or_else(|| Transformed::no(plan), Transformed::yes))
        });
        plan.data()?
            .transform_up(|plan| {
                Ok(whole(&plan)?.map_or_else(|| Transformed::no(plan), Transformed::yes))
            })
            .data()
    }

    fn name(&self) -> &str {
        "top_k_that_loses_no_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Instead of partitions' top k by other keys than the merge above it has: by the merge's.
fn same_keys(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() else { return Ok(None) };
    let Some(sort) = merge.input().downcast_ref::<SortExec>() else { return Ok(None) };
    if sort.fetch().is_none() || !sort.preserve_partitioning() || sort.expr() == merge.expr() {
        return Ok(None);
    }
    let keys =
        SortExec::new(merge.expr().clone(), Arc::clone(sort.input())).with_fetch(sort.fetch());
    let sort = Arc::new(keys.with_preserve_partitioning(true));
    Ok(Some(replace_children_if_necessary(Arc::clone(plan), vec![sort])?))
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
