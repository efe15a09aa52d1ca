//! Tables that equalities connect are joined before others, which cross joins add.
//!
//! ```text
//!   FROM a, b, c, d WHERE c.x = d.x
//!   ((a × b) × c) ⋈ d      as DataFusion (55.2, EliminateCrossJoin) has it, which begins with the
//!                          first table and takes the next one where no equality leads on
//!   ((c ⋈ d) × a) × b
//! ```
//!
//! A cross join has rows by the product of its sides, of which an equality behind it may leave few.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Projection};
use datafusion::optimizer::OptimizerConfig;

use super::LogicalRule;
use crate::plan::any_node;
use crate::plan::{can_fail, conjunction, is_volatile};

/// The rule that orders cross joins, followed by ours.
pub(super) fn rewrite(
    rule: &LogicalRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let joined = rule.rewrite(plan, config)?;
    if !any_node(&joined.data, |node| Ok(is_cross(node)))? {
        return Ok(joined);
    }
    joined.transform_data(|plan| {
        plan.transform_down_with_subqueries(|node| match ConnectedTables::of(&node) {
            Some(tables) => tables.joined(node.schema().columns(), &node),
            None => Ok(Transformed::no(node)),
        })
    })
}

fn is_cross(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Join(join) if is_inner(join) && join.on.is_empty())
}

fn is_inner(join: &Join) -> bool {
    join.join_type == JoinType::Inner
        && join.join_constraint == JoinConstraint::On
        && join.null_equality == NullEquality::NullEqualsNothing
        && !join.null_aware
}

/// A set of tables, a bit each.
type TableSet = u64;

/// Inner joins, and what they join by.
struct ConnectedTables {
    tables: Vec<LogicalPlan>,
    equalities: Vec<Equality>,
    conditions: Vec<(Expr, TableSet)>,
    /// The sets that equalities of two tables connect.
    connected: Vec<TableSet>,
}

struct Equality {
    sides: [(Expr, TableSet); 2],
}

impl Equality {
    fn of(&self) -> TableSet {
        self.sides[0].1 | self.sides[1].1
    }

    /// The sides as keys of a join of two sets.
    fn across(&self, left: TableSet, right: TableSet) -> Option<(Expr, Expr)> {
        let [(a, of_a), (b, of_b)] = &self.sides;
        if of_a & !left == 0 && of_b & !right == 0 {
            Some((a.clone(), b.clone()))
        } else if of_a & !right == 0 && of_b & !left == 0 {
            Some((b.clone(), a.clone()))
        } else {
            None
        }
    }
}

impl ConnectedTables {
    /// Those of the joins that begin here, where some tables are connected and others are not.
    fn of(plan: &LogicalPlan) -> Option<ConnectedTables> {
        let (mut tables, mut equalities, mut conditions) = (vec![], vec![], vec![]);
        let mut crosses = false;
        flatten(plan, &mut tables, &mut equalities, &mut conditions, &mut crosses)?;
        if !crosses || equalities.is_empty() || !(3..=64).contains(&tables.len()) {
            return None;
        }
        let sets = |expr: &Expr| set_of(expr, &tables);
        let equalities: Vec<Equality> = equalities
            .into_iter()
            .map(|(left, right)| {
                let sides = [(sets(&left)?, left), (sets(&right)?, right)];
                let sides = sides.map(|(set, expr)| (expr, set));
                sides.iter().all(|(_, set)| *set != 0).then_some(Equality { sides })
            })
            .collect::<Option<_>>()?;
        let conditions: Vec<(Expr, TableSet)> = conditions
            .into_iter()
            .map(|expr| Some((sets(&expr)?, expr)).map(|(set, expr)| (expr, set)))
            .collect::<Option<_>>()?;
        let mut connected: Vec<TableSet> = (0..tables.len()).map(|at| 1 << at).collect();
        for equality in &equalities {
            if equality.sides.iter().all(|(_, set)| set.count_ones() == 1) {
                let (with, without): (Vec<TableSet>, Vec<TableSet>) =
                    connected.into_iter().partition(|set| set & equality.of() != 0);
                connected = without;
                connected.push(with.into_iter().fold(0, |all, set| all | set));
            }
        }
        // Those first that are joined by keys, and of each kind the one with the first table.
        connected.sort_by_key(|set| (set.count_ones() == 1, set.trailing_zeros()));
        let several = connected.len() > 1 && connected.len() < tables.len();
        several.then_some(ConnectedTables { tables, equalities, conditions, connected })
    }

    /// The joins in their order, with the columns of those that there were.
    fn joined(
        mut self,
        columns: Vec<Column>,
        plan: &LogicalPlan,
    ) -> Result<Transformed<LogicalPlan>> {
        let mut sets = std::mem::take(&mut self.connected);
        let mut parts = vec![];
        for set in &sets {
            parts.push(self.part(*set)?);
        }
        let (mut joined, mut set) = (parts.remove(0), sets.remove(0));
        while !sets.is_empty() {
            let leads_on =
                |right: &TableSet| self.equalities.iter().any(|e| e.across(set, *right).is_some());
            let next = sets.iter().position(leads_on).unwrap_or(0);
            let (part, right) = (parts.remove(next), sets.remove(next));
            joined = self.join((joined, set), (part, right))?;
            set |= right;
        }
        if joined.schema().columns() != columns {
            let columns = columns.into_iter().map(Expr::Column).collect();
            let schema = plan.schema().clone();
            joined = LogicalPlan::Projection(Projection::try_new_with_schema(
                columns,
                Arc::new(joined),
                schema,
            )?);
        }
        Ok(Transformed::yes(joined))
    }

    /// The tables of a set, of which each is connected with those before it.
    fn part(&mut self, set: TableSet) -> Result<LogicalPlan> {
        let first = set.trailing_zeros() as usize;
        let (mut joined, mut done) = (self.tables[first].clone(), 1 << first);
        while done != set {
            let rest = (0..self.tables.len()).filter(|at| set & !done & (1 << at) != 0);
            let leads_on =
                |at: &usize| self.equalities.iter().any(|e| e.across(done, 1 << at).is_some());
            let mut rest = rest.peekable();
            let any = rest.peek().copied();
            // Whatever is left is connected.
            let Some(next) = rest.find(leads_on).or(any) else { break };
            joined = self.join((joined, done), (self.tables[next].clone(), 1 << next))?;
            done |= 1 << next;
        }
        Ok(joined)
    }

    /// A join of two sets by all that is about both.
    fn join(
        &mut self,
        (left, of_left): (LogicalPlan, TableSet),
        (right, of_right): (LogicalPlan, TableSet),
    ) -> Result<LogicalPlan> {
        let both = of_left | of_right;
        let (mut on, mut filters) = (vec![], vec![]);
        self.equalities.retain(|equality| {
            if equality.of() & !both != 0 {
                return true;
            }
            match equality.across(of_left, of_right) {
                Some(pair) => on.push(pair),
                None => {
                    let [(a, _), (b, _)] = &equality.sides;
                    filters.push(a.clone().eq(b.clone()));
                }
            }
            false
        });
        self.conditions.retain(|(condition, of)| {
            if of & !both != 0 {
                return true;
            }
            filters.push(condition.clone());
            false
        });
        Ok(LogicalPlan::Join(Join::try_new(
            Arc::new(left),
            Arc::new(right),
            on,
            conjunction(filters),
            JoinType::Inner,
            JoinConstraint::On,
            NullEquality::NullEqualsNothing,
            false,
        )?))
    }
}

/// Collects what inner joins join; nothing where one of them has to stay where it is.
fn flatten(
    plan: &LogicalPlan,
    tables: &mut Vec<LogicalPlan>,
    equalities: &mut Vec<(Expr, Expr)>,
    conditions: &mut Vec<Expr>,
    crosses: &mut bool,
) -> Option<()> {
    let LogicalPlan::Join(join) = plan else {
        tables.push(plan.clone());
        return Some(());
    };
    if join.join_type != JoinType::Inner {
        tables.push(plan.clone());
        return Some(());
    }
    // In another order, conditions would meet other rows.
    let schema = merge_schema(&plan.inputs());
    let stays = |expr: &Expr| can_fail(expr, &schema) || is_volatile(expr);
    let keys = join.on.iter().flat_map(|(left, right)| [left, right]);
    if !is_inner(join) || keys.chain(&join.filter).any(stays) {
        return None;
    }
    *crosses |= join.on.is_empty();
    equalities.extend(join.on.iter().cloned());
    conditions.extend(join.filter.iter().cloned());
    flatten(&join.left, tables, equalities, conditions, crosses)?;
    flatten(&join.right, tables, equalities, conditions, crosses)
}

/// The tables whose columns an expression looks at; `None` where one is of none, or of two.
fn set_of(expr: &Expr, tables: &[LogicalPlan]) -> Option<TableSet> {
    let mut set = 0;
    for column in expr.column_refs() {
        let mut of = (0..tables.len()).filter(|at| tables[*at].schema().has_column(column));
        let (Some(at), None) = (of.next(), of.next()) else { return None };
        set |= 1 << at;
    }
    Some(set)
}
