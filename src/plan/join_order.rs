//! The order of inner joins, by estimated rows.
//!
//! ```text
//!   a ⋈ b ⋈ c ⋈ d as the query says    joins on equalities and conditions: leaves, predicates
//!   best tree of two, three, … leaves  the cheapest pair of smaller sets that an equality connects
//! ```
//!
//! The number of rows of a set of leaves does not depend on the order within it: the product of the
//! leaves' rows and of the shares that the predicates leave. Up to [`MOST_EXACT`] leaves every tree
//! is looked at, bushy ones too; of more, the cheapest join is made again and again. A tree is
//! replaced where another is expected to cost clearly less. No order joins what no equality
//! connects.
//!
//! Predicates that can fail (a division, say) would meet other rows in another order: a join or a
//! filter that has one is no part of a tree, but may be a leaf of one, or have one below it.

mod cost;

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column as Name, DFSchema, JoinConstraint, NullEquality};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::utils::{merge_schema, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, Filter, Join, JoinType, LogicalPlan, Operator, Projection, binary_expr,
};

use self::cost::Costs;
pub(crate) use self::cost::join_cost;
use super::estimate::estimate;
use super::failing::{can_fail, is_comparison};
use super::tables::PlanTable;

/// Leaves up to which every tree is looked at: 3^n pairs of sets.
const MOST_EXACT: usize = 10;
/// Leaves of the largest tree that is looked at: a bit of a set each.
const MOST: usize = 64;
/// Another tree has to cost this part of the query's own.
const WORTHWHILE: f64 = 0.85;
/// A plan with its joins in another order.
pub(crate) struct ReorderedPlan {
    pub(crate) plan: LogicalPlan,
    /// Trees of joins that were put into another order.
    pub(crate) changed: usize,
}

/// Orders the inner joins of a plan; `tables` are those that placeholders stand for. The schema
/// stays as it is, and so do the rows but for their order.
pub(crate) fn order_joins(plan: LogicalPlan, tables: &[PlanTable]) -> PlanResult<ReorderedPlan> {
    let mut changed = 0;
    let plan = visit(plan, tables, &mut changed)?;
    Ok(ReorderedPlan { plan, changed })
}

fn visit(plan: LogicalPlan, tables: &[PlanTable], changed: &mut usize) -> PlanResult<LogicalPlan> {
    let Some(tree) = Tree::of(&plan) else {
        return Ok(plan
            .map_children(|child| Ok(Transformed::yes(visit(child, tables, changed)?)))?
            .data);
    };
    let leaves = tree
        .leaves
        .iter()
        .map(|leaf| visit(leaf.clone(), tables, changed))
        .collect::<PlanResult<Vec<_>>>()?;
    let tree = Tree { leaves, ..tree };
    if let Some(order) = tree.order(tables) {
        *changed += 1;
        return tree.plan(&order, &plan);
    }
    let mut leaves = tree.leaves.into_iter();
    put_back(plan, &mut leaves)
}

/// The tree as the query has it, with the leaves that stand for its own.
fn put_back(
    plan: LogicalPlan,
    leaves: &mut impl Iterator<Item = LogicalPlan>,
) -> PlanResult<LogicalPlan> {
    if !is_inner(&plan) {
        return Ok(leaves.next().unwrap_or(plan));
    }
    Ok(plan.map_children(|child| Ok(Transformed::yes(put_back(child, leaves)?)))?.data)
}

/// A set of leaves.
type LeafSet = u64;

/// Inner joins with everything between them that any order can have.
struct Tree {
    leaves: Vec<LogicalPlan>,
    predicates: Vec<Predicate>,
    /// The query's own order.
    shape: JoinTree,
    columns: Arc<DFSchema>,
    /// Columns that come out.
    wanted: Vec<Name>,
}

struct Predicate {
    expr: Expr,
    /// Leaves whose columns it looks at.
    of: LeafSet,
    /// Of an equality: its sides, and the leaves that each looks at.
    sides: Option<[(Expr, LeafSet); 2]>,
}

/// An order of joins.
#[derive(Debug, Clone, PartialEq)]
enum JoinTree {
    Leaf(usize),
    /// The probe's side, the build's side.
    Join(Box<JoinTree>, Box<JoinTree>),
}

impl JoinTree {
    fn set(&self) -> LeafSet {
        match self {
            JoinTree::Leaf(at) => 1 << at,
            JoinTree::Join(a, b) => a.set() | b.set(),
        }
    }
}

/// Whether an operator is one of those that make a tree.
fn is_inner(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(join) => {
            join.join_type == JoinType::Inner
                && !join.on.is_empty()
                && !join.null_aware
                && join.null_equality == NullEquality::NullEqualsNothing
                && !can_any_fail(plan)
        }
        LogicalPlan::Filter(filter) => is_inner(&filter.input) && !can_any_fail(plan),
        LogicalPlan::Projection(project) => {
            project.expr.iter().all(|expr| matches!(expr, Expr::Column(_)))
                && is_inner(&project.input)
        }
        _ => false,
    }
}

/// Whether a condition or a key can fail.
fn can_any_fail(plan: &LogicalPlan) -> bool {
    let mut schema = None;
    let mut fails = false;
    // Nothing is an error here.
    let _ = plan.apply_expressions(|expr| {
        // Most look at nothing but columns and constants: then their types need not be known.
        if !is_plain(expr) {
            fails |= can_fail(expr, schema.get_or_insert_with(|| merge_schema(&plan.inputs())));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    fails
}

/// Whether an expression compares columns and constants, and nothing else.
fn is_plain(expr: &Expr) -> bool {
    let plain = |node: &Expr| match node {
        Expr::Column(_)
        | Expr::Literal(_, _)
        | Expr::Between(_)
        | Expr::InList(_)
        | Expr::Like(_)
        | Expr::Not(_) => true,
        Expr::IsNull(_) | Expr::IsNotNull(_) => true,
        Expr::BinaryExpr(binary) => binary.op.is_logic_operator() || is_comparison(binary.op),
        _ => false,
    };
    // Nothing is an error here.
    !expr.exists(|node| Ok(!plain(node))).unwrap_or(true)
}

impl Tree {
    /// The tree that begins here, if it has three leaves or more and may be ordered.
    fn of(plan: &LogicalPlan) -> Option<Tree> {
        if !is_inner(plan) {
            return None;
        }
        let (mut leaves, mut equalities, mut conditions) = (vec![], vec![], vec![]);
        let shape = flatten(plan, &mut leaves, &mut equalities, &mut conditions);
        if !(3..=MOST).contains(&leaves.len()) {
            return None;
        }
        // Fails where two leaves have columns of one name.
        let mut columns = DFSchema::empty();
        for leaf in &leaves {
            columns = columns.join(leaf.schema()).ok()?;
        }
        let mut predicates = vec![];
        for (left, right) in equalities {
            let expr = binary_expr(left.clone(), Operator::Eq, right.clone());
            let sides = [
                (left.clone(), leaves_of(&left, &leaves)?),
                (right.clone(), leaves_of(&right, &leaves)?),
            ];
            let of = sides[0].1 | sides[1].1;
            // A key that looks at no table connects nothing.
            let sides = (sides[0].1 != 0 && sides[1].1 != 0).then_some(sides);
            predicates.push(Predicate { expr, of, sides });
        }
        for expr in conditions {
            predicates.push(Predicate { of: leaves_of(&expr, &leaves)?, expr, sides: None });
        }
        let columns = match predicates.iter().all(|p: &Predicate| p.of != 0) {
            true => Arc::new(columns),
            false => return None,
        };
        Some(Tree { leaves, predicates, shape, columns, wanted: plan.schema().columns() })
    }

    /// A cheaper order, if there is one.
    fn order(&self, tables: &[PlanTable]) -> Option<JoinTree> {
        let leaves =
            self.leaves.iter().map(|leaf| estimate(leaf, tables)).collect::<Option<Vec<_>>>()?;
        let costs = Costs::of(self, &leaves);
        let (best, cost) = match self.leaves.len() {
            ..=MOST_EXACT => costs.cheapest()?,
            _ => costs.greedy()?,
        };
        (cost < WORTHWHILE * costs.total(&self.shape) && best != self.shape).then_some(best)
    }

    /// The joins in this order, with the columns of `original`.
    fn plan(&self, order: &JoinTree, original: &LogicalPlan) -> PlanResult<LogicalPlan> {
        let wanted = &self.wanted;
        let joined = self.joined(order)?;
        if joined.schema().columns() == *wanted {
            return Ok(joined);
        }
        let columns = wanted.iter().cloned().map(Expr::Column).collect();
        let schema = original.schema().clone();
        Ok(LogicalPlan::Projection(Projection::try_new_with_schema(
            columns,
            Arc::new(joined),
            schema,
        )?))
    }

    fn joined(&self, order: &JoinTree) -> PlanResult<LogicalPlan> {
        let set = order.set();
        let plan = match order {
            JoinTree::Leaf(at) => {
                let own = self.predicates.iter().filter(|p| p.of == set).map(|p| p.expr.clone());
                match own.reduce(Expr::and) {
                    Some(predicate) => LogicalPlan::Filter(Filter::try_new(
                        predicate,
                        Arc::new(self.leaves[*at].clone()),
                    )?),
                    None => self.leaves[*at].clone(),
                }
            }
            JoinTree::Join(probe, build) => {
                let (mut on, mut conditions) = (vec![], vec![]);
                let (left, right) = (probe.set(), build.set());
                let here = |p: &&Predicate| {
                    within(p.of, set) && !within(p.of, left) && !within(p.of, right)
                };
                for predicate in self.predicates.iter().filter(here) {
                    match predicate.across(left, right) {
                        Some(pair) => on.push(pair),
                        None => conditions.push(predicate.expr.clone()),
                    }
                }
                let (left, right) = (self.joined(probe)?, self.joined(build)?);
                LogicalPlan::Join(Join::try_new(
                    Arc::new(left),
                    Arc::new(right),
                    on,
                    conditions.into_iter().reduce(Expr::and),
                    JoinType::Inner,
                    JoinConstraint::On,
                    NullEquality::NullEqualsNothing,
                    false,
                )?)
            }
        };
        self.pruned(plan, set)
    }

    /// The columns of a part that are looked at outside of it.
    fn pruned(&self, plan: LogicalPlan, set: LeafSet) -> PlanResult<LogicalPlan> {
        let outside: Vec<_> = self
            .predicates
            .iter()
            .filter(|p| !within(p.of, set))
            .flat_map(|p| p.expr.column_refs())
            .collect();
        let columns = plan.schema().columns();
        let kept: Vec<Expr> = (columns.iter())
            .filter(|c| self.wanted.contains(c) || outside.contains(c))
            .cloned()
            .map(Expr::Column)
            .collect();
        if kept.len() == columns.len() || kept.is_empty() {
            return Ok(plan);
        }
        Ok(LogicalPlan::Projection(Projection::try_new(kept, Arc::new(plan))?))
    }
}

fn within(part: LeafSet, whole: LeafSet) -> bool {
    part & !whole == 0
}

impl Predicate {
    /// An equality as a pair of keys, the first over `left` and the second over `right`.
    fn across(&self, left: LeafSet, right: LeafSet) -> Option<(Expr, Expr)> {
        let [(a, of_a), (b, of_b)] = self.sides.as_ref()?;
        if within(*of_a, left) && within(*of_b, right) {
            Some((a.clone(), b.clone()))
        } else if within(*of_a, right) && within(*of_b, left) {
            Some((b.clone(), a.clone()))
        } else {
            None
        }
    }
}

/// Collects a tree's parts, from left to right.
fn flatten(
    plan: &LogicalPlan,
    leaves: &mut Vec<LogicalPlan>,
    equalities: &mut Vec<(Expr, Expr)>,
    conditions: &mut Vec<Expr>,
) -> JoinTree {
    match plan {
        LogicalPlan::Join(join) if is_inner(plan) => {
            let left = flatten(&join.left, leaves, equalities, conditions);
            let right = flatten(&join.right, leaves, equalities, conditions);
            equalities.extend(join.on.iter().cloned());
            conditions.extend(join.filter.clone().map(split_conjunction_owned).unwrap_or_default());
            JoinTree::Join(Box::new(left), Box::new(right))
        }
        LogicalPlan::Filter(filter) if is_inner(plan) => {
            conditions.extend(split_conjunction_owned(filter.predicate.clone()));
            flatten(&filter.input, leaves, equalities, conditions)
        }
        LogicalPlan::Projection(project) if is_inner(plan) => {
            flatten(&project.input, leaves, equalities, conditions)
        }
        leaf => {
            leaves.push(leaf.clone());
            JoinTree::Leaf(leaves.len() - 1)
        }
    }
}

/// The leaves that have an expression's columns; `None` where a column is no leaf's.
fn leaves_of(expr: &Expr, leaves: &[LogicalPlan]) -> Option<LeafSet> {
    expr.column_refs().into_iter().try_fold(0, |set, column| {
        let leaf = leaves.iter().position(|leaf| leaf.schema().has_column(column))?;
        Some(set | 1 << leaf)
    })
}

#[cfg(test)]
mod tests;
