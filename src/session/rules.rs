//! DataFusion's rules over physical plans, with what keeps two of its operators from losing rows,
//! and others from another order of rows each time.

mod in_order;
mod pushdown;
mod top_k;

use std::sync::Arc;

use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// DataFusion's rules in their order, those that push filters down guarded; then ours.
pub(super) fn rules() -> Vec<Rule> {
    let rules = PhysicalOptimizer::new().rules.into_iter().map(pushdown::guarded);
    rules.chain([top_k::rule(), in_order::rule(), crate::io::guard_rule()]).collect()
}
