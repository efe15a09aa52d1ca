//! DataFusion's push down of filters, kept from what is sealed, and from what is another condition
//! below.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, Expr, ExprSchemable, Filter, GroupingSet, Join, LogicalPlan, Operator, TryCast,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::LogicalRule;
use crate::host::cast_is_wrongly_dropped;
use crate::plan::{can_fail, conjunction, into_operands, is_in_place, is_sealed, operands, unseal};

/// The rule, for conditions that are free, and the same below.
#[derive(Debug)]
pub(super) struct GuardedPushDown(LogicalRule);

impl GuardedPushDown {
    pub(super) fn new(rule: LogicalRule) -> Self {
        GuardedPushDown(rule)
    }
}

impl OptimizerRule for GuardedPushDown {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Filter(filter) => self.filter(filter, config),
            LogicalPlan::Join(join) => self.free(LogicalPlan::Join(join), config),
            other => self.0.rewrite(other, config),
        }
    }
}

impl GuardedPushDown {
    /// Of filters above one another: those that stay come above, in their order, and the others go
    /// down.
    fn filter(
        &self,
        filter: Filter,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut below = filter.input.as_ref();
        let mut filters = vec![&filter.predicate];
        while let LogicalPlan::Filter(next) = below {
            filters.push(&next.predicate);
            below = next.input.as_ref();
        }
        let parts =
            || filters.iter().rev().flat_map(|predicate| operands(predicate, Operator::And));
        let stays = |condition: &Expr| {
            is_in_place(condition)
                || is_made_of_failing(condition, below)
                || is_of_whole_groups(condition, below)
                || is_misread(condition, below)
        };
        if !parts().any(stays) {
            return self.free(LogicalPlan::Filter(filter), config);
        }
        let (staying, free): (Vec<Expr>, Vec<Expr>) = parts().cloned().partition(stays);
        let moved = match (conjunction(free), filters.len()) {
            (None, 1) => return Ok(Transformed::no(LogicalPlan::Filter(filter))),
            (None, _) => Transformed::yes(below.clone()),
            (Some(free), _) => {
                let free = Filter::try_new(free, Arc::new(below.clone()))?;
                let moved = self.free(LogicalPlan::Filter(free), config)?;
                // As they already stood: nothing has moved.
                let settled = filters.len() == 2
                    && !moved.transformed
                    && operands(filters[0], Operator::And).iter().all(|part| stays(part));
                if settled {
                    return Ok(Transformed::no(LogicalPlan::Filter(filter)));
                }
                moved
            }
        };
        let Some(predicate) = conjunction(staying) else { return Ok(moved) };
        Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(moved.data))?)))
    }

    /// Runs the rule on a join, or on a free filter, above or in which no sealed condition of a
    /// join is seen.
    fn free(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let (plan, sealed) = without_sealed(plan)?;
        let pushed = self.0.rewrite(plan, config)?;
        match sealed.is_empty() {
            true => Ok(pushed),
            false => pushed.map_data(|plan| with_sealed(plan, sealed)),
        }
    }
}

/// Whether a condition would be another one below the operator: of expressions that can fail,
/// instead of their columns.
fn is_made_of_failing(condition: &Expr, below: &LogicalPlan) -> bool {
    // The expressions are the first columns, in their order.
    let (exprs, input) = match below {
        LogicalPlan::Projection(project) => (&project.expr, &project.input),
        LogicalPlan::Aggregate(aggregate)
            if !matches!(*aggregate.group_expr, [Expr::GroupingSet(_)]) =>
        {
            (&aggregate.group_expr, &aggregate.input)
        }
        _ => return false,
    };
    let made_of = |column| exprs.get(below.schema().maybe_index_of_column(column)?);
    let fails = |expr: &Expr| !matches!(expr, Expr::Column(_)) && can_fail(expr, input.schema());
    condition.column_refs().into_iter().filter_map(made_of).any(fails)
}

/// Whether a condition drops groups rather than rows that they are of. An aggregate with an empty
/// grouping set has a row even of no rows, so that each condition must stay above it. DataFusion
/// (55.2, `push_down_filter.rs`) asks only whether all columns are keys, and that of what is left of
/// several conditions, which may be `false`:
///
/// ```text
///   SELECT * FROM (SELECT 'all' AS seg, count(*) AS n FROM t) WHERE seg = 'x'
///   SELECT max(s) FROM t HAVING max(s) = 'a' AND max(s) = 'b'
/// ```
///
/// had the rows `all, 0` and `NULL`. A condition that is drawn anew for each row is of the rows that it stands
/// above.
fn is_of_whole_groups(condition: &Expr, below: &LogicalPlan) -> bool {
    match below {
        LogicalPlan::Aggregate(aggregate) => {
            condition.is_volatile() || has_empty_set(&aggregate.group_expr)
        }
        LogicalPlan::Window(_) | LogicalPlan::Distinct(_) => condition.is_volatile(),
        _ => false,
    }
}

/// Whether one of the grouping sets may be empty.
fn has_empty_set(keys: &[Expr]) -> bool {
    match keys {
        [] => true,
        keys => keys.iter().any(|key| match key {
            Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.iter().any(Vec::is_empty),
            Expr::GroupingSet(_) => true,
            _ => false,
        }),
    }
}

/// Whether scans would prune by another condition than this.
fn is_misread(condition: &Expr, below: &LogicalPlan) -> bool {
    let LogicalPlan::TableScan(scan) = below else { return false };
    let dropped = |part: &Expr| match part {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            let from = expr.get_type(&scan.projected_schema);
            from.is_ok_and(|from| cast_is_wrongly_dropped(&from, field.data_type()))
        }
        _ => false,
    };
    // Nothing fails here.
    condition.exists(|part| Ok(dropped(part))).unwrap_or(true)
}

/// Takes the sealed conditions out of the join that this is, or that is below this filter.
fn without_sealed(plan: LogicalPlan) -> Result<(LogicalPlan, Vec<Expr>)> {
    match plan {
        plan if !has_sealed_join(&plan) => Ok((plan, vec![])),
        LogicalPlan::Join(join) => {
            let (join, sealed) = unsealed_join(join);
            Ok((LogicalPlan::Join(join), sealed))
        }
        LogicalPlan::Filter(Filter { predicate, input, .. })
            if matches!(*input, LogicalPlan::Join(_)) =>
        {
            let (input, sealed) = without_sealed(Arc::unwrap_or_clone(input))?;
            Ok((LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?), sealed))
        }
        other => Ok((other, vec![])),
    }
}

/// Whether there is anything to take out.
fn has_sealed_join(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(join) => {
            join.filter.iter().flat_map(|filter| operands(filter, Operator::And)).any(is_in_place)
        }
        LogicalPlan::Filter(filter) => {
            matches!(*filter.input, LogicalPlan::Join(_)) && has_sealed_join(&filter.input)
        }
        _ => false,
    }
}

fn unsealed_join(join: Join) -> (Join, Vec<Expr>) {
    let conditions =
        join.filter.map(|filter| into_operands(filter, Operator::And)).unwrap_or_default();
    let (sealed, free): (Vec<_>, Vec<_>) = conditions.into_iter().partition(is_in_place);
    (Join { filter: conjunction(free), ..join }, sealed)
}

/// Puts them back behind the join's other conditions.
fn with_sealed(plan: LogicalPlan, sealed: Vec<Expr>) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Join(join) => {
            let filter = conjunction(join.filter.into_iter().chain(sealed));
            Ok(LogicalPlan::Join(Join { filter, ..join }))
        }
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            let input = with_sealed(Arc::unwrap_or_clone(input), sealed)?;
            Ok(LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(input))?))
        }
        other => datafusion::common::internal_err!(
            "a join's conditions have no place in {}",
            other.display()
        ),
    }
}

/// DataFusion's rule that makes inner joins of outer ones, for a condition that null does not pass.
/// It only looks at the condition, and so it may see one that is sealed.
#[derive(Debug)]
pub(super) struct SeenByOuterJoins(LogicalRule);

impl SeenByOuterJoins {
    pub(super) fn new(rule: LogicalRule) -> Self {
        SeenByOuterJoins(rule)
    }
}

impl OptimizerRule for SeenByOuterJoins {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(Filter { predicate, input, .. }) = &plan else {
            return self.0.rewrite(plan, config);
        };
        if !is_sealed(predicate) {
            return self.0.rewrite(plan, config);
        }
        let sealed = predicate.clone();
        let seen = Filter::try_new(unseal(predicate.clone())?.data, input.clone())?;
        let rewritten = self.0.rewrite(LogicalPlan::Filter(seen), config)?;
        rewritten.map_data(|plan| match plan {
            LogicalPlan::Filter(seen) => {
                Ok(LogicalPlan::Filter(Filter::try_new(sealed, seen.input)?))
            }
            other => datafusion::common::internal_err!("a filter became {}", other.display()),
        })
    }
}
