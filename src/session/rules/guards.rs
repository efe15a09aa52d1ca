//! Conditions that can fail stay behind those that guard them.
//!
//! `x <> 0 AND 10 / x > 1` asks for the quotient only where `x <> 0`. DataFusion's rules (55.2)
//! take conditions to be free: they order them by cost, push them below joins, projections and
//! aggregates and into scans, make keys of equalities, and rewrite CASE as AND and OR in another
//! order (apache/datafusion#13191 is one report of many). So
//!
//! 1. the first rule of each pass seals what can fail, or calls a volatile function
//!    (`plan/sealed.rs`). In a filter it parts the two kinds:
//!
//!    ```text
//!      Filter: s ~ '^[0-9]+$' AND CAST(s AS int) > 5 AND k = 1
//!
//!      Filter: in_place(CAST(s AS int) > 5)
//!        Filter: s ~ '^[0-9]+$' AND k = 1          free to be ordered, pushed into the scan, …
//!    ```
//!
//!    What cannot fail may come first wherever it stood: the others meet fewer rows;
//! 2. the rule that pushes filters down does not touch what is sealed (`pushdown.rs`);
//! 3. the last rule of each pass opens the seals.
//!
//! An equality of two tables may have to be a join's key although a side can fail:
//! `FROM a JOIN b ON CAST(a.s AS int) = b.k` would be a product of both tables else. It stays a key
//! where the conditions before it look at one table each; those that do not run below the join
//! guard the side with a CASE (`keys.rs`).

mod keys;
mod pushdown;
mod seal;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan, Operator};
use datafusion::optimizer::eliminate_outer_join::EliminateOuterJoin;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use self::pushdown::{GuardedPushDown, SeenByOuterJoins};
use self::seal::Sealer;
pub(super) use self::seal::{guard_members, has_failing_subquery};
use super::{LogicalRule, any_node};
use crate::plan::{can_fail, conjunction, has_failing, in_place, into_operands, is_sealed, unseal};

/// These rules over logical plans between those that seal and unseal, and with a push down that
/// knows seals.
pub(super) fn rules(rules: Vec<LogicalRule>) -> Vec<LogicalRule> {
    let (pushdown, outer) = (PushDownFilter::new(), EliminateOuterJoin::new());
    let guarded = |rule: LogicalRule| -> LogicalRule {
        match rule.name() {
            name if name == pushdown.name() => Arc::new(GuardedPushDown::new(rule)),
            name if name == outer.name() => Arc::new(SeenByOuterJoins::new(rule)),
            _ => rule,
        }
    };
    let rules = rules.into_iter().map(guarded);
    let (first, last): (LogicalRule, LogicalRule) = (Arc::new(SealGuards), Arc::new(UnsealGuards));
    [first].into_iter().chain(rules).chain([last]).collect()
}

#[derive(Debug)]
struct SealGuards;

impl OptimizerRule for SealGuards {
    fn name(&self) -> &str {
        "seal_guards"
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if !any_node(&plan, has_failing_part)? {
            return Ok(Transformed::no(plan));
        }
        plan.transform_up_with_subqueries(seal_node)
    }
}

/// Whether [`seal_node`] could have something to seal.
fn has_failing_part(node: &LogicalPlan) -> Result<bool> {
    let mut fails = false;
    if matches!(node, LogicalPlan::TableScan(_) | LogicalPlan::Extension(_)) {
        return Ok(false);
    }
    let mut schema = None;
    node.apply_expressions(|expr| {
        // Without a column's type, what can fail for some type can fail.
        fails = seal::is_sealed_for_itself(expr)
            || has_failing(expr, DFSchema::empty_ref())
                && has_failing(expr, schema.get_or_insert_with(|| schema_of_inputs(node)));
        Ok(if fails { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(fails)
}

/// The columns that an operator's expressions may name.
fn schema_of_inputs(node: &LogicalPlan) -> DFSchemaRef {
    match node.inputs().as_slice() {
        [input] => input.schema().clone(),
        inputs => Arc::new(merge_schema(inputs)),
    }
}

#[derive(Debug)]
struct UnsealGuards;

impl OptimizerRule for UnsealGuards {
    fn name(&self) -> &str {
        "unseal_guards"
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if !any_node(&plan, has_seal)? {
            return Ok(Transformed::no(plan));
        }
        plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            let opened = node.map_expressions(|expr| {
                if !is_sealed(&expr) {
                    return Ok(Transformed::no(expr));
                }
                let name = names.save(&expr);
                Ok(Transformed::yes(name.restore(bare(unseal(expr)?.data))))
            })?;
            match opened.transformed {
                true => opened.map_data(LogicalPlan::recompute_schema),
                false => Ok(opened),
            }
        })
    }
}

fn has_seal(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found = is_sealed(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Without the alias that kept an expression's name while it was sealed, where it has that name
/// again.
fn bare(expr: Expr) -> Expr {
    match expr {
        Expr::Alias(alias) if alias.metadata.is_none() => {
            let (relation, name) = alias.expr.qualified_name();
            match relation == alias.relation
                && name == alias.name
                && !matches!(*alias.expr, Expr::Column(_))
            {
                true => *alias.expr,
                false => Expr::Alias(alias),
            }
        }
        other => other,
    }
}

fn seal_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Filter(filter) => seal_filter(filter),
        LogicalPlan::Join(join) => seal_join(join),
        // Filters in scans were free when they came there.
        LogicalPlan::TableScan(_) | LogicalPlan::Extension(_) => Ok(Transformed::no(node)),
        node => {
            let schema = schema_of_inputs(&node);
            let names = NamePreserver::new(&node);
            let sealer = Sealer { schema: &schema };
            let sealed = node.map_expressions(|expr| {
                if !sealer.concerns(&expr) {
                    return Ok(Transformed::no(expr));
                }
                let name = names.save(&expr);
                Ok(sealer.sealed(expr)?.update_data(|expr| name.restore(expr)))
            })?;
            match sealed.transformed {
                true => sealed.map_data(LogicalPlan::recompute_schema),
                false => Ok(sealed),
            }
        }
    }
}

/// Parts a filter into the conditions that are free and those, above them, that are not.
fn seal_filter(filter: Filter) -> Result<Transformed<LogicalPlan>> {
    let schema = filter.input.schema().clone();
    let sealer = Sealer { schema: &schema };
    if !sealer.concerns(&filter.predicate) {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let keys = keys::of_filter(&filter.input, &filter.predicate);
    let mut parts = Conditions::default();
    for (at, condition) in into_operands(filter.predicate, Operator::And).into_iter().enumerate() {
        parts.add(condition, &sealer, keys.get(&at))?;
    }
    // DataFusion makes a join's condition of all that a subquery asks of outer columns only where
    // that stands in one filter.
    let outer =
        parts.free.iter().chain(&parts.placed).chain(&parts.later).any(Expr::contains_outer);
    let filters = match outer {
        true => vec![parts.free.into_iter().chain(parts.placed).chain(parts.later).collect()],
        false => vec![parts.free, parts.placed, parts.later],
    };
    let mut plan = Arc::unwrap_or_clone(filter.input);
    for conditions in filters {
        if let Some(predicate) = conjunction(conditions) {
            plan = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(plan))?);
        }
    }
    Ok(Transformed::yes(plan))
}

/// Puts a join's conditions that can fail behind the others.
fn seal_join(join: Join) -> Result<Transformed<LogicalPlan>> {
    let Some(filter) = join.filter.clone() else {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    };
    let schema = merge_schema(&[&join.left, &join.right]);
    let sealer = Sealer { schema: &schema };
    if !sealer.concerns(&filter) {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let keys = keys::of_join(&join, &filter);
    let mut parts = Conditions::default();
    for (at, condition) in into_operands(filter, Operator::And).into_iter().enumerate() {
        parts.add(condition, &sealer, keys.get(&at))?;
    }
    let filter = conjunction(parts.free.into_iter().chain(parts.placed).chain(parts.later));
    Ok(Transformed::yes(LogicalPlan::Join(Join { filter, ..join })))
}

/// The conditions of a conjunction.
#[derive(Default)]
struct Conditions {
    free: Vec<Expr>,
    placed: Vec<Expr>,
    /// Subqueries that can fail and stand behind what can fail, and all that can fail behind those:
    /// they become joins above it.
    later: Vec<Expr>,
    /// All so far, as they were.
    before: Vec<Expr>,
}

impl Conditions {
    /// `key`: the condition has to be a key, and this is it.
    fn add(&mut self, condition: Expr, sealer: &Sealer<'_>, key: Option<&Expr>) -> Result<()> {
        let guarded = match key {
            Some(key) => key.clone(),
            None => seal::guard_members(condition.clone(), &self.before, sealer.schema)?,
        };
        // A volatile function is asked for each row that there is here: below a join or a group,
        // there are others.
        let stays = key.is_none()
            && (can_fail(&guarded, sealer.schema) || guarded.is_volatile())
            && !seal::is_membership(&guarded);
        let sealed = sealer.sealed(guarded)?.data;
        match stays {
            true if self.later.is_empty() => self.placed.push(in_place(sealed)),
            true => self.later.push(in_place(sealed)),
            false if !self.placed.is_empty() && seal::has_failing_subquery(&condition)? => {
                self.later.push(sealed)
            }
            false => self.free.push(sealed),
        }
        self.before.push(condition);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::optimizer::Optimizer;

    use super::*;

    /// DataFusion may rename its rule; then this has to follow.
    #[test]
    fn the_rule_that_pushes_filters_down_is_guarded() {
        let rules = rules(Optimizer::new().rules);
        for wrapper in ["GuardedPushDown", "SeenByOuterJoins"] {
            let wrapped = rules.iter().filter(|rule| format!("{rule:?}").starts_with(wrapper));
            assert_eq!(wrapped.count(), 1, "{wrapper}: {rules:?}");
        }
        assert_eq!(rules.len(), Optimizer::new().rules.len() + 2);
        assert_eq!(rules[0].name(), "seal_guards");
    }

    #[test]
    fn an_alias_that_renames_stays() -> Result<()> {
        use datafusion::prelude::{col, lit};
        let sum = col("x") + lit(1i64);
        assert_eq!(bare(sum.clone().alias(sum.schema_name().to_string())), sum);
        assert_eq!(bare(sum.clone().alias("y")), sum.clone().alias("y"));
        let name = NamePreserver::new_for_projection().save(&sum);
        assert_eq!(name.restore(sum.clone()), sum);
        Ok(())
    }
}
