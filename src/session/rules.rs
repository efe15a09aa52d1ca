//! Rules over statements, and DataFusion's over plans with what keeps them from wrong answers:
//! logical ones forget nulls, counts, names and the order of conditions, physical ones lose rows.

mod bags;
mod balance;
mod clauses;
mod comparisons;
mod connected;
mod dialect;
mod distinct_sums;
mod drawn;
mod fences;
mod fields;
mod file_order;
mod forgotten;
mod group_frames;
mod groups;
mod guards;
mod interval_order;
mod intervals;
mod known_counts;
mod leaves;
mod list_aggregates;
mod modes;
mod names;
mod no_table;
mod null_safe;
mod numbers;
mod operators;
mod orders;
mod passes;
mod prune;
mod pushdown;
mod ranked;
mod repeated_keys;
mod rows;
mod scalars;
mod set_keys;
mod set_names;
mod shadows;
mod shares;
mod similar;
mod statement;
mod stops;
mod subqueries;
mod synonyms;
mod top_k;
mod unnest;
mod using;
mod veils;
mod volatile;
mod windows;

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::Optimizer;
use datafusion::optimizer::analyzer::Analyzer;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

pub(super) use balance::balance;
pub(super) use drawn::{named as drawn_names, of_view, shared as drawn_once};
pub(super) use intervals::IntervalOperators;
pub(super) use names::planned;
pub(super) use numbers::{SqlTypes, as_decimal};
pub(super) use operators::TypedOperators;
pub(super) use passes::PASSES;
pub(super) use shares::share_of_rows;
pub(super) use statement::{bare, call, parsed, prepared};
pub(super) use subqueries::refuse_what_is_left;
pub(super) use using::refuse_columns;

use crate::host::{self, LogicalRule};
use crate::interrupt;

type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// DataFusion's rules over physical plans in their order, those that move filters and projections
/// guarded; then ours.
pub(super) fn rules() -> Vec<PhysicalRule> {
    let rules = PhysicalOptimizer::new().rules.into_iter().map(known_counts::guarded);
    let rules = rules.map(pushdown::guarded).map(fences::fenced);
    let ours = [top_k::rule(), file_order::rule(), crate::io::guard_rule()];
    [forgotten::rule()].into_iter().chain(rules).chain(ours).collect()
}

/// DataFusion's rules over logical plans in their order, between ours. For a device, two passes of
/// them are one.
pub(super) fn logical(device: bool) -> Vec<LogicalRule> {
    // What folds constants makes trees of long chains of conditions, of which the rest takes less
    // stack.
    let rules = host::folding(veils::guarded(Optimizer::new().rules));
    let rules = distinct_sums::guarded(leaves::guarded(rules));
    let rules = connected::guarded(null_safe::guarded(rules));
    stops::stopping(match device {
        true => passes::unrolled(rules),
        false => guards::rules(rules),
    })
}

/// DataFusion's rules that make types agree, between ours, before anything is optimized. For a device,
/// the columns that nobody names are pruned first.
pub(super) fn analyzer_rules(device: bool) -> Vec<stops::AnalysisRule> {
    let first = device.then(|| Arc::new(prune::PruneScans) as _);
    let before =
        [Arc::new(group_frames::GroupFrames) as _, Arc::new(comparisons::ExactComparisons) as _];
    let ours = [
        Arc::new(host::booleans::NumbersOfBooleans) as _,
        Arc::new(interval_order::IntervalOrder) as _,
        Arc::new(repeated_keys::RepeatedKeys) as _,
        Arc::new(subqueries::LiftSubqueries) as _,
        Arc::new(modes::Modes) as _,
        Arc::new(volatile::VolatileOnce) as _,
    ];
    stops::stopping_analysis(
        first
            .into_iter()
            .chain(before)
            .chain(set_names::guarded(Analyzer::new().rules))
            .chain(ours),
    )
}

/// A plan as DataFusion made it of SQL, mended where its planner forgets a part of the statement.
pub(super) fn mended(mut plan: LogicalPlan) -> Result<LogicalPlan> {
    let (mut marked, mut counts, mut unnests, mut limits) = (false, false, false, false);
    let mut sorts = false;
    plan.apply_with_subqueries(|node| {
        interrupt::check()?;
        marked |= using::marks(node)?;
        counts |= bags::concerns(node);
        unnests |= unnest::concerns(node);
        limits |= shares::concerns(node);
        sorts |= orders::concerns(node);
        Ok(TreeNodeRecursion::Continue)
    })?;
    // Before what looks for sorts in queries within.
    if sorts {
        plan = orders::looked_at(plan)?;
    }
    if marked {
        plan = using::own_names(plan)?;
    }
    if counts {
        plan = bags::counted(plan)?;
    }
    // Counting repeats rows by UNNEST.
    if counts || unnests {
        plan = unnest::repeating(plan)?;
    }
    if limits {
        plan = shares::shares(plan)?;
    }
    Ok(plan)
}

/// Whether an operator of the plan, or of a subquery, is such a one. To walk a plan takes a
/// fraction of the time that it takes to rebuild it.
fn any_node(plan: &LogicalPlan, is_such: impl Fn(&LogicalPlan) -> Result<bool>) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        interrupt::check()?;
        found = is_such(node)?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Whether an expression of the operator holds a plan.
fn holds_subquery(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_subqueries(|_| {
        found = true;
        Ok(TreeNodeRecursion::Stop)
    })?;
    Ok(found)
}
