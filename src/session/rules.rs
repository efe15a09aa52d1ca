//! Rules over statements, and DataFusion's over plans with what keeps them from wrong answers: logical ones forget nulls,
//! counts, names and the order of conditions, physical ones lose rows.

mod bags;
mod balance;
mod clauses;
mod correlation;
mod dialect;
mod fences;
mod file_order;
mod guards;
mod membership;
mod names;
mod pushdown;
mod rows;
mod statement;
mod subqueries;
mod top_k;
mod unnest;
mod using;
mod windows;

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::OptimizerRule;
use datafusion::optimizer::analyzer::{Analyzer, AnalyzerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

pub(super) use balance::balance;
pub(super) use names::planned;
pub(super) use statement::{parsed, prepared};
pub(super) use subqueries::refuse_what_is_left;

use crate::host;

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// DataFusion's rules over physical plans in their order, those that move filters and projections guarded; then ours.
pub(super) fn rules() -> Vec<Rule> {
    let rules = PhysicalOptimizer::new().rules.into_iter().map(pushdown::guarded).map(fences::fenced);
    rules.chain([top_k::rule(), file_order::rule(), crate::io::guard_rule()]).collect()
}

/// DataFusion's rules over logical plans in their order, between ours.
pub(super) fn logical() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    guards::rules(host::folding())
}

/// DataFusion's rules that make types agree; then ours, before anything is optimized.
pub(super) fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let rules = Analyzer::new().rules.into_iter();
    rules.chain([Arc::new(membership::Membership) as _, Arc::new(subqueries::LiftSubqueries) as _]).collect()
}

/// A plan as DataFusion made it of SQL, mended where its planner forgets a part of the statement.
pub(super) fn mended(plan: LogicalPlan) -> Result<LogicalPlan> {
    unnest::repeating(bags::counted(using::own_names(plan)?)?)
}
