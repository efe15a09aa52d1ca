//! Rules over statements, and DataFusion's over plans with what keeps them from wrong answers:
//! logical ones forget nulls, counts, names and the order of conditions, physical ones lose rows.

mod balance;
mod calls;
mod cast_keys;
mod clauses;
mod comparisons;
mod dialect;
mod fields;
mod file_order;
mod group_frames;
mod groups;
mod guards;
mod interval_order;
mod intervals;
mod item_names;
mod modes;
mod multisets;
mod no_table;
mod numbers;
mod operators;
mod orders;
mod passes;
mod prune;
mod ranked;
mod rows;
mod set_keys;
mod set_types;
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
mod volatile;
mod volatile_statements;
mod windows;

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::Optimizer;
use datafusion::optimizer::analyzer::Analyzer;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

pub(super) use balance::balance;
pub(super) use intervals::IntervalOperators;
pub(super) use numbers::{SqlTypes, as_decimal};
pub(super) use operators::TypedOperators;
pub(super) use passes::PASSES;
pub(super) use shares::share_of_rows;
pub(super) use statement::{parsed, prepared};
pub(super) use subqueries::refuse_what_is_left;
pub(super) use using::{planned, refuse_columns};
pub(super) use volatile_statements::{named as drawn_names, of_view, shared as drawn_once};

use crate::mends::{self, AnalysisRule, LogicalRule, PhysicalRule};
use crate::plan::{any_node, holds_subquery};
use crate::{cpu, host};
use warpframe_device::interrupt;

/// DataFusion's rules over physical plans in their order, mended; then ours.
pub(super) fn rules() -> Vec<PhysicalRule> {
    let ours = [top_k::rule(), file_order::rule(), crate::io::guard_rule()];
    mends::physical(PhysicalOptimizer::new().rules).chain(ours).collect()
}

/// DataFusion's rules over logical plans in their order, mended, between ours. For a device, two
/// passes of them are one.
pub(super) fn logical(device: bool) -> Vec<LogicalRule> {
    let rules = cpu::folding(mends::logical(Optimizer::new().rules));
    stops::stopping(match device {
        true => passes::unrolled(rules),
        false => guards::rules(rules),
    })
}

/// DataFusion's rules that make types agree, mended, between ours, before anything is optimized. For
/// a device, the columns that nobody names are pruned first.
pub(super) fn analyzer_rules(device: bool) -> Vec<AnalysisRule> {
    let first = device.then(|| Arc::new(prune::PruneScans) as _);
    let before = [Arc::new(group_frames::GroupFrames) as _, Arc::new(set_types::AgreedTypes) as _];
    let ours = [
        Arc::new(host::booleans::NumbersOfBooleans) as _,
        Arc::new(interval_order::IntervalOrder) as _,
        Arc::new(mends::RepeatedKeys) as _,
        Arc::new(subqueries::LiftSubqueries) as _,
        Arc::new(modes::Modes) as _,
        Arc::new(volatile::VolatileOnce) as _,
    ];
    let datafusions = mends::analysis(Analyzer::new().rules);
    stops::stopping_analysis(first.into_iter().chain(before).chain(datafusions).chain(ours))
}

/// A plan as DataFusion made it of SQL, mended where its planner forgets a part of the statement.
pub(super) fn mended(mut plan: LogicalPlan) -> Result<LogicalPlan> {
    let (mut marked, mut counts, mut unnests, mut limits) = (false, false, false, false);
    let mut sorts = false;
    plan.apply_with_subqueries(|node| {
        interrupt::check().map_err(crate::Error::from)?;
        marked |= using::marks(node)?;
        counts |= multisets::concerns(node);
        unnests |= unnest::concerns(node);
        limits |= shares::concerns(node);
        sorts |= orders::concerns(node);
        orders::check_union(node)?;
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
        plan = multisets::counted(plan)?;
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
