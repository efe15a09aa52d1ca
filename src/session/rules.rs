//! Rules over statements, and DataFusion's over plans with what keeps them from wrong rows and from errors that no row has.

mod balance;
mod fences;
mod guards;
mod pushdown;
mod top_k;

use std::sync::Arc;

use datafusion::optimizer::OptimizerRule;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

use crate::host;

pub(super) use balance::balance;

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// DataFusion's rules over physical plans in their order, those that move filters and projections guarded; then ours.
pub(super) fn rules() -> Vec<Rule> {
    let rules = PhysicalOptimizer::new().rules.into_iter().map(pushdown::guarded).map(fences::fenced);
    rules.chain([top_k::rule()]).collect()
}

/// DataFusion's rules over logical plans in their order, between ours.
pub(super) fn logical() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    guards::rules(host::folding())
}
