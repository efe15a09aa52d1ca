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
//! DataFusion's search for the next table looks at all equalities and columns for each that is left,
//! and copies what is joined so far: 64 tables take most of a second. So equalities of WHERE become
//! keys here, and its rule runs where others are left that may: those within OR, say.

use std::cell::OnceCell;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinConstraint, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::logical_expr::utils::{can_hash, merge_schema};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, Join, LogicalPlan, Operator, Projection,
};
use datafusion::optimizer::OptimizerConfig;

use super::LogicalRule;
use crate::plan::{any_node, can_fail, conjunction, is_volatile, operands};

/// The rule that orders cross joins, between ours.
pub(super) fn rewrite(
    rule: &LogicalRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    connected(plan)?
        .transform_data(|plan| match any_node(&plan, |node| Ok(finds_keys(node)))? {
            true => rule.rewrite(plan, config),
            false => Ok(Transformed::no(plan)),
        })?
        .transform_data(connected)
}

/// The plan whose cross joins come after joins by keys.
fn connected(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !any_node(&plan, |node| Ok(is_cross(node)))? {
        return Ok(Transformed::no(plan));
    }
    plan.transform_down_with_subqueries(|node| match ConnectedTables::of(&node)? {
        Some(tables) => tables.joined(node.schema().columns(), &node),
        None => Ok(Transformed::no(node)),
    })
}

/// Whether DataFusion's rule may find keys at an operator.
fn finds_keys(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Filter(filter) => {
            matches!(filter.input.as_ref(), LogicalPlan::Join(join) if join.join_type == JoinType::Inner)
                && has_key(&filter.predicate)
        }
        node => is_cross(node),
    }
}

/// Whether columns are compared with columns, outside of all but AND and OR.
fn has_key(predicate: &Expr) -> bool {
    let Expr::BinaryExpr(binary) = predicate else { return false };
    match binary.op {
        Operator::Eq => [&binary.left, &binary.right].iter().all(|side| side.any_column_refs()),
        Operator::And | Operator::Or => has_key(&binary.left) || has_key(&binary.right),
        _ => false,
    }
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
    /// Conditions of the filter above that are no equalities.
    above: Vec<Expr>,
    /// The sets that equalities of two tables connect.
    connected: Vec<TableSet>,
}

#[derive(PartialEq)]
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
    /// Those of the joins that begin here, or below a filter, where a cross join may come after
    /// joins by keys, or be one.
    fn of(plan: &LogicalPlan) -> Result<Option<ConnectedTables>> {
        let (root, predicate) = match plan {
            LogicalPlan::Filter(filter) => (filter.input.as_ref(), Some(&filter.predicate)),
            other => (other, None),
        };
        let mut joins = Joins::default();
        if !crosses(root) || joins.flatten(root).is_none() {
            return Ok(None);
        }
        let Joins { tables, equalities: keys, conditions } = joins;
        if tables.len() > 64 {
            return Ok(None);
        }
        let sets = |expr: &Expr| set_of(expr, &tables);
        let sides = |left: Expr, right: Expr| -> Option<Equality> {
            let sides = [(sets(&left)?, left), (sets(&right)?, right)];
            sides
                .iter()
                .all(|(set, _)| *set != 0)
                .then_some(Equality { sides: sides.map(|(set, expr)| (expr, set)) })
        };
        let mut equalities = vec![];
        for (left, right) in keys {
            let Some(equality) = sides(left, right) else { return Ok(None) };
            equalities.push(equality);
        }
        let mut of_conditions = vec![];
        for condition in conditions {
            let Some(set) = sets(&condition) else { return Ok(None) };
            of_conditions.push((condition, set));
        }
        let (mut above, known) = (vec![], equalities.len());
        for condition in predicate.map(|of| operands(of, Operator::And)).unwrap_or_default() {
            let key =
                key_of(condition, root.schema())?.and_then(|(left, right)| sides(left, right));
            match key.filter(|key| key.sides[0].1 & key.sides[1].1 == 0) {
                Some(key) if equalities.contains(&key) => {}
                Some(key) => equalities.push(key),
                None => above.push(condition.clone()),
            }
        }
        let connected = connected_sets(tables.len(), &equalities);
        let several = connected.len() > 1 && connected.len() < tables.len();
        let finds = match predicate {
            Some(_) => equalities.len() > known,
            None => several,
        };
        let conditions = of_conditions;
        let tables = ConnectedTables { tables, equalities, conditions, above, connected };
        Ok(finds.then_some(tables))
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
        if let Some(predicate) = conjunction(self.above) {
            joined = LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(joined))?);
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

/// Whether some of the joins that begin here has no key.
fn crosses(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            join.on.is_empty() || crosses(&join.left) || crosses(&join.right)
        }
        _ => false,
    }
}

/// The sides of an equality that may be a key wherever it stands.
fn key_of(condition: &Expr, schema: &DFSchema) -> Result<Option<(Expr, Expr)>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else {
        return Ok(None);
    };
    let holds_plan = condition.exists(|part| {
        Ok(matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(_, _)
        ))
    })?;
    let stays = holds_plan || condition.is_volatile() || is_volatile(condition);
    match !stays && !can_fail(condition, schema) && can_hash(&left.get_type(schema)?) {
        true => Ok(Some((left.as_ref().clone(), right.as_ref().clone()))),
        false => Ok(None),
    }
}

/// The sets of so many tables that equalities of two of them connect: those first that are joined by
/// keys, and of each kind the one with the first table.
fn connected_sets(tables: usize, equalities: &[Equality]) -> Vec<TableSet> {
    let mut connected: Vec<TableSet> = (0..tables).map(|at| 1 << at).collect();
    for equality in equalities {
        if equality.sides.iter().all(|(_, set)| set.count_ones() == 1) {
            let (with, without): (Vec<TableSet>, Vec<TableSet>) =
                connected.into_iter().partition(|set| set & equality.of() != 0);
            connected = without;
            connected.push(with.into_iter().fold(0, |all, set| all | set));
        }
    }
    connected.sort_by_key(|set| (set.count_ones() == 1, set.trailing_zeros()));
    connected
}

/// What inner joins join, and by what.
#[derive(Default)]
struct Joins {
    tables: Vec<LogicalPlan>,
    equalities: Vec<(Expr, Expr)>,
    conditions: Vec<Expr>,
}

impl Joins {
    /// Collects it; nothing where one of the joins has to stay where it is.
    fn flatten(&mut self, plan: &LogicalPlan) -> Option<()> {
        let LogicalPlan::Join(join) = plan else {
            self.tables.push(plan.clone());
            return Some(());
        };
        if join.join_type != JoinType::Inner {
            self.tables.push(plan.clone());
            return Some(());
        }
        // In another order, conditions would meet other rows.
        let schema = OnceCell::new();
        let stays = |expr: &Expr| {
            is_volatile(expr) || can_fail(expr, schema.get_or_init(|| merge_schema(&plan.inputs())))
        };
        let keys = join.on.iter().flat_map(|(left, right)| [left, right]);
        if !is_inner(join) || keys.chain(&join.filter).any(stays) {
            return None;
        }
        self.equalities.extend(join.on.iter().cloned());
        self.conditions.extend(join.filter.iter().cloned());
        self.flatten(&join.left)?;
        self.flatten(&join.right)
    }
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
