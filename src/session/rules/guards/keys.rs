//! Equalities that have to be keys of joins although a side of them can fail.

use std::collections::HashMap;

use datafusion::common::{DFSchema, DFSchemaRef, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Expr, Join, LogicalPlan, Operator, when};

use crate::plan::{can_fail, conjunction, operands};

/// Which of a conjunction's conditions, by their number, are keys, and how they look then.
type KeyConditions = HashMap<usize, Expr>;

/// Those of a join's conditions.
pub(super) fn of_join(join: &Join, filter: &Expr) -> KeyConditions {
    let tables = Tables(vec![join.left.schema().clone(), join.right.schema().clone()]);
    let conditions = operands(filter, Operator::And);
    let mut keys = KeyConditions::new();
    // It has keys already, behind which the others stand.
    if !join.on.is_empty() {
        return keys;
    }
    for (at, condition) in conditions.iter().enumerate() {
        let before = &conditions[..at];
        // A condition on both sides runs after the join only.
        if before.iter().any(|guard| tables.of(guard).is_none_or(|set| set.count_ones() > 1)) {
            break;
        }
        let below = |guard: &Expr, table: u64| {
            let pushed = matches!(
                (join.join_type, table),
                (JoinType::Inner, _)
                    | (
                        JoinType::Left
                            | JoinType::LeftSemi
                            | JoinType::LeftAnti
                            | JoinType::LeftMark,
                        2
                    )
                    | (
                        JoinType::Right
                            | JoinType::RightSemi
                            | JoinType::RightAnti
                            | JoinType::RightMark,
                        1
                    )
            );
            pushed && !can_fail(guard, &tables.all())
        };
        if let Ok(Some(key)) = tables.key(condition, before, below) {
            keys.insert(at, key);
        }
    }
    keys
}

/// Those of a filter above a product of tables, where nothing else connects the tables.
pub(super) fn of_filter(input: &LogicalPlan, predicate: &Expr) -> KeyConditions {
    let (mut leaves, mut equalities) = (vec![], vec![]);
    flatten(input, &mut leaves, &mut equalities);
    if !(2..=MOST).contains(&leaves.len()) {
        return KeyConditions::new();
    }
    let tables = Tables(leaves);
    let all = tables.all();
    let conditions = operands(predicate, Operator::And);
    let mut connected = Connected((0..tables.0.len()).collect());
    let sides = |condition: &Expr| {
        let (left, right) = equality(condition)?;
        Some((tables.of(left)?, tables.of(right)?))
            .filter(|(left, right)| left & right == 0 && *left != 0 && *right != 0)
    };
    for (left, right) in &equalities {
        if let (Some(left), Some(right)) = (tables.of(left), tables.of(right)) {
            connected.join(left | right);
        }
    }
    for condition in conditions.iter().filter(|condition| !can_fail(condition, &all)) {
        if let Some((left, right)) = sides(condition) {
            connected.join(left | right);
        }
    }
    let mut keys = KeyConditions::new();
    for (at, condition) in
        conditions.iter().enumerate().filter(|(_, condition)| can_fail(condition, &all))
    {
        let Some((left, right)) = sides(condition) else { continue };
        if connected.are(left | right) {
            continue;
        }
        // What cannot fail and looks at one table runs below the join.
        let below = |guard: &Expr, _| !can_fail(guard, &all);
        if let Ok(Some(key)) = tables.key(condition, &conditions[..at], below) {
            keys.insert(at, key);
            connected.join(left | right);
        }
    }
    keys
}

/// Most tables: a bit of a set each.
const MOST: usize = 64;

/// The tables that inner joins put together, and their equalities.
fn flatten(plan: &LogicalPlan, leaves: &mut Vec<DFSchemaRef>, equalities: &mut Vec<(Expr, Expr)>) {
    match plan {
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            flatten(&join.left, leaves, equalities);
            flatten(&join.right, leaves, equalities);
            equalities.extend(join.on.iter().cloned());
            let conditions = join.filter.iter().flat_map(|filter| operands(filter, Operator::And));
            equalities.extend(conditions.filter_map(equality).map(|(l, r)| (l.clone(), r.clone())));
        }
        leaf => leaves.push(leaf.schema().clone()),
    }
}

fn equality(condition: &Expr) -> Option<(&Expr, &Expr)> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => Some((left, right)),
        _ => None,
    }
}

/// Tables by their schemas; a set of them is a number with their bits.
struct Tables(Vec<DFSchemaRef>);

impl Tables {
    /// The tables that an expression looks at; `None` where a column is no table's.
    fn of(&self, expr: &Expr) -> Option<u64> {
        expr.column_refs().into_iter().try_fold(0, |set, column| {
            let table = self.0.iter().position(|table| table.has_column(column))?;
            Some(set | 1 << table)
        })
    }

    fn all(&self) -> DFSchema {
        self.0.iter().fold(DFSchema::empty(), |mut all, table| {
            all.merge(table);
            all
        })
    }

    /// The equality as a key: a side that can fail is null where a condition before it, about the
    /// same table, does not hold, unless that runs `below` the join.
    fn key(
        &self,
        condition: &Expr,
        before: &[&Expr],
        below: impl Fn(&Expr, u64) -> bool,
    ) -> Result<Option<Expr>> {
        let Some((left, right)) = equality(condition) else { return Ok(None) };
        let (Some(of_left), Some(of_right)) = (self.of(left), self.of(right)) else {
            return Ok(None);
        };
        if of_left & of_right != 0 || of_left == 0 || of_right == 0 {
            return Ok(None);
        }
        let all = self.all();
        let side = |expr: &Expr, set: u64| -> Result<Expr> {
            if !can_fail(expr, &all) {
                return Ok(expr.clone());
            }
            let about = |guard: &&&Expr| self.of(guard).is_some_and(|of| of != 0 && of & !set == 0);
            let guards = before.iter().filter(about).filter(|guard| !below(guard, set));
            match conjunction(guards.map(|guard| (*guard).clone())) {
                Some(guard) => when(guard, expr.clone()).end(),
                None => Ok(expr.clone()),
            }
        };
        Ok(Some(side(left, of_left)?.eq(side(right, of_right)?)))
    }
}

/// Which tables equalities connect: each with the number of its group.
struct Connected(Vec<usize>);

impl Connected {
    fn of(&self, set: u64) -> Vec<usize> {
        (0..self.0.len()).filter(|table| set >> table & 1 == 1).map(|table| self.0[table]).collect()
    }

    fn are(&self, set: u64) -> bool {
        self.of(set).windows(2).all(|pair| pair[0] == pair[1])
    }

    fn join(&mut self, set: u64) {
        let groups = self.of(set);
        let Some(first) = groups.first().copied() else { return };
        self.0.iter_mut().filter(|group| groups.contains(group)).for_each(|group| *group = first);
    }
}
