//! What is here only because a version of DataFusion errs: a file a fault.
//!
//! Each file names the rule, the version, the fault, its issue where there is one, and what is done
//! instead. A test, most in `tests/it/rules/upstream.rs`, fails once DataFusion has mended the
//! fault: then the file can go. Rules that give SQL a meaning of ours are in `session/rules/`.
//!
//! | file | rule | fault |
//! |---|---|---|
//! | `simplifier` | `simplify_expressions` | forgets nulls, casts that lose digits, several lists of values |
//! | `field_extraction` | `extract_leaf_expressions`, … | fields of structs below unions, marks and volatile functions |
//! | `distinct_sums` | `single_distinct_aggregation_to_group_by` | a sum of decimals changes its type |
//! | `common_aggregates` | `common_sub_expression_eliminate` | names lose their tables |
//! | `null_safe_keys` | `extract_equijoin_predicate`, … | keys by `=` in a join by `IS NOT DISTINCT FROM` |
//! | `cross_joins` | `eliminate_cross_join` | tables that no equality connects come first |
//! | `grouping_set_names` | `type_coercion` | grouping sets are one column |
//! | `round_places` | `type_coercion` | decimals of two scales are compared |
//! | `repeated_sort_keys` | `first_value` | a panic where a key comes twice in an order |
//! | `stale_properties` | `EquivalenceProperties` | columns stay constant where NULL is brought into them |
//! | `aggregate_statistics` | `aggregate_statistics` | the count of a query within |
//! | `filter_pushdown` | `FilterPushdown` | columns of one name are one |
//! | `early_projections` | `ProjectionPushdown`, … | what can fail is computed for rows that a filter drops |

mod aggregate_statistics;
mod common_aggregates;
mod cross_joins;
mod distinct_sums;
mod early_projections;
mod field_extraction;
mod filter_pushdown;
mod grouping_set_names;
mod null_safe_keys;
mod repeated_sort_keys;
mod round_places;
mod simplifier;
mod stale_properties;

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

pub(crate) use self::field_extraction::has_leaf;
pub(crate) use self::repeated_sort_keys::RepeatedKeys;

pub(crate) type LogicalRule = Arc<dyn OptimizerRule + Send + Sync>;
pub(crate) type AnalysisRule = Arc<dyn AnalyzerRule + Send + Sync>;
pub(crate) type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Rewrites an operator instead of the rule, which it may call.
pub(crate) type Rewrite =
    fn(&LogicalRule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

/// Rewrites a physical plan instead of the rule, which it may call.
type PhysicalRewrite =
    fn(&PhysicalRule, Arc<dyn ExecutionPlan>, &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>>;

/// The guarded rules over logical plans, by name. A second guard of a rule calls the first.
const LOGICAL: [(&str, Rewrite); 8] = [
    ("simplify_expressions", simplifier::rewrite),
    ("extract_leaf_expressions", field_extraction::rewrite),
    ("push_down_leaf_projections", field_extraction::rewrite),
    ("single_distinct_aggregation_to_group_by", distinct_sums::rewrite),
    ("common_sub_expression_eliminate", common_aggregates::rewrite),
    ("extract_equijoin_predicate", null_safe_keys::rewrite_keys),
    ("eliminate_cross_join", null_safe_keys::rewrite_order),
    ("eliminate_cross_join", cross_joins::rewrite),
];

/// The guarded rules over physical plans, by name.
const PHYSICAL: [(&str, PhysicalRewrite); 7] = [
    ("aggregate_statistics", aggregate_statistics::rewrite),
    ("FilterPushdown", filter_pushdown::rewrite),
    ("FilterPushdown(Post)", filter_pushdown::rewrite),
    ("ProjectionPushdown", early_projections::rewrite_projections),
    ("EnsureRequirements", early_projections::rewrite_sorts),
    ("FilterPushdown", early_projections::rewrite_filters),
    ("FilterPushdown(Post)", early_projections::rewrite_filters),
];

/// DataFusion's rules over logical plans in their order, mended.
pub(crate) fn logical(rules: Vec<LogicalRule>) -> Vec<LogicalRule> {
    rules.into_iter().map(guarded).collect()
}

fn guarded(rule: LogicalRule) -> LogicalRule {
    LOGICAL
        .iter()
        .filter(|(name, _)| *name == rule.name())
        .fold(rule.clone(), |rule, guard| guarded_by(rule, guard.1))
}

/// The rule, in whose place `rewrite` stands, which may call it.
pub(crate) fn guarded_by(rule: LogicalRule, rewrite: Rewrite) -> LogicalRule {
    Arc::new(Guarded { rule, rewrite })
}

/// DataFusion's rules over physical plans in their order, mended.
pub(crate) fn physical(rules: Vec<PhysicalRule>) -> impl Iterator<Item = PhysicalRule> {
    let guarded = |rule: PhysicalRule| {
        let guards = PHYSICAL.iter().filter(|(name, _)| *name == rule.name());
        guards.fold(rule.clone(), |rule, guard| {
            Arc::new(GuardedPhysical { rule, rewrite: guard.1 }) as PhysicalRule
        })
    };
    [stale_properties::rule()].into_iter().chain(rules.into_iter().map(guarded))
}

/// DataFusion's rules that make types agree in their order, mended.
pub(crate) fn analysis(rules: Vec<AnalysisRule>) -> impl Iterator<Item = AnalysisRule> {
    round_places::guarded(grouping_set_names::guarded(rules))
}

struct Guarded {
    rule: LogicalRule,
    rewrite: Rewrite,
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Guarded({:?})", self.rule)
    }
}

impl OptimizerRule for Guarded {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        (self.rewrite)(&self.rule, plan, config)
    }
}

struct GuardedPhysical {
    rule: PhysicalRule,
    rewrite: PhysicalRewrite,
}

impl fmt::Debug for GuardedPhysical {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Guarded({:?})", self.rule)
    }
}

impl PhysicalOptimizerRule for GuardedPhysical {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        (self.rewrite)(&self.rule, plan, config)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::optimizer::Optimizer;
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    /// DataFusion may rename its rules; then these names have to follow.
    #[test]
    fn rules_that_are_guarded_are_datafusions() {
        let logical = Optimizer::new().rules;
        for (name, _) in LOGICAL {
            assert!(logical.iter().any(|rule| rule.name() == name), "{name}");
        }
        let physical = PhysicalOptimizer::new().rules;
        for (name, _) in PHYSICAL {
            assert!(physical.iter().any(|rule| rule.name() == name), "{name}: {physical:?}");
        }
    }
}
