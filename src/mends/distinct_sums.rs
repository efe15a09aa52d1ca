//! Sums of decimals beside an aggregate of distinct values.
//!
//! Where all DISTINCT aggregates look at one expression, DataFusion (55.2) groups by it first, and
//! sums the sums of those groups (`single_distinct_to_groupby.rs`). A sum of decimals has ten digits
//! more than its argument, so that `sum(m)` beside `count(DISTINCT a)` was a `DECIMAL(29, 2)` where
//! it is a `DECIMAL(19, 2)`, and a comparison of it failed
//! (<https://github.com/apache/datafusion/issues/17699>). Where a type would change, the plan stays:
//! the engines know DISTINCT.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::OptimizerConfig;

use super::LogicalRule;

/// The rule, which keeps types.
pub(super) fn rewrite(
    rule: &LogicalRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    // Types other than decimals stay as they are.
    let sums_decimals = |plan: &LogicalPlan| types(plan).iter().any(DataType::is_decimal);
    if !matches!(plan, LogicalPlan::Aggregate(_)) || !sums_decimals(&plan) {
        return rule.rewrite(plan, config);
    }
    let before = types(&plan);
    let as_it_is = plan.clone();
    let made = rule.rewrite(plan, config)?;
    Ok(if types(&made.data) == before { made } else { Transformed::no(as_it_is) })
}

fn types(plan: &LogicalPlan) -> Vec<DataType> {
    plan.schema().fields().iter().map(|field| field.data_type().clone()).collect()
}
