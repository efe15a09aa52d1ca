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
//! replaced where another is expected to cost clearly less. Sides that no equality connects are
//! joined only in a query that has such joins itself: cross joins, or joins by other conditions.
//!
//! Predicates that can fail (a division, say) would meet other rows in another order: a join or a
//! filter that has one is no part of a tree, but may be a leaf of one, or have one below it. So with
//! volatile functions, which would be called for other rows.

mod cost;

use std::collections::HashMap;
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
use super::volatile::is_volatile;
use super::walk::any_node;

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
    let mut orderer = Orderer { tables, crosses: false, changed: 0 };
    let plan = orderer.ordered(plan)?;
    Ok(ReorderedPlan { plan, changed: orderer.changed })
}

/// As [`order_joins`], but only trees of joins in which no equality connects some sides. For the
/// CPU engine, which the estimates of other joins are not made for.
pub(crate) fn order_crosses(plan: LogicalPlan) -> PlanResult<LogicalPlan> {
    let crosses = |node: &LogicalPlan| {
        Ok(matches!(node, LogicalPlan::Join(join) if join.on.is_empty() && is_inner(node)))
    };
    match any_node(&plan, crosses)? {
        true => Orderer { tables: &[], crosses: true, changed: 0 }.ordered(plan),
        false => Ok(plan),
    }
}

struct Orderer<'a> {
    tables: &'a [PlanTable],
    /// Only trees with sides that no equality connects.
    crosses: bool,
    changed: usize,
}

impl Orderer<'_> {
    fn ordered(&mut self, plan: LogicalPlan) -> PlanResult<LogicalPlan> {
        let Some(tree) = Tree::of(&plan) else {
            return Ok(plan.map_children(|child| Ok(Transformed::yes(self.ordered(child)?)))?.data);
        };
        let leaves = tree.leaves.iter().map(|leaf| self.ordered(leaf.clone()));
        let leaves = leaves.collect::<PlanResult<Vec<_>>>()?;
        let tree = Tree { leaves, ..tree };
        if (tree.crosses || !self.crosses)
            && let Some(order) = tree.order(self.tables)
        {
            self.changed += 1;
            return tree.plan(&order, &plan);
        }
        let mut leaves = tree.leaves.into_iter();
        put_back(plan, &mut leaves)
    }
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
    /// Whether the query joins sides that no equality connects.
    crosses: bool,
    columns: Arc<DFSchema>,
    /// Columns that come out.
    wanted: Vec<Name>,
    /// Who looks at a column of a leaf; nobody at one that is not here.
    readers: HashMap<Name, ColumnReaders>,
}

/// Who looks at a column.
#[derive(Default)]
struct ColumnReaders {
    wanted: bool,
    /// Leaves of the predicates that do.
    predicates: Vec<LeafSet>,
}

impl ColumnReaders {
    /// Whether the column of a set of leaves is looked at outside of it.
    fn are_outside(&self, set: LeafSet) -> bool {
        self.wanted || self.predicates.iter().any(|of| !within(*of, set))
    }
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
                && !join.null_aware
                && join.null_equality == NullEquality::NullEqualsNothing
                && !depends_on_rows(plan)
        }
        LogicalPlan::Filter(filter) => is_inner(&filter.input) && !depends_on_rows(plan),
        LogicalPlan::Projection(project) => {
            project.expr.iter().all(|expr| matches!(expr, Expr::Column(_)))
                && is_inner(&project.input)
        }
        _ => false,
    }
}

/// Whether a condition or a key can fail, or is another one for each row that it meets.
fn depends_on_rows(plan: &LogicalPlan) -> bool {
    let mut schema = None;
    let mut fails = false;
    // Nothing is an error here.
    let _ = plan.apply_expressions(|expr| {
        // Most look at nothing but columns and constants: then their types need not be known.
        if !is_plain(expr) {
            fails |= expr.is_volatile()
                || is_volatile(expr)
                || can_fail(expr, schema.get_or_insert_with(|| merge_schema(&plan.inputs())));
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
        let fields = leaves.iter().flat_map(|leaf| leaf.schema().iter());
        let fields = fields.map(|(of, field)| (of.cloned(), field.clone())).collect();
        // Fails where two leaves have columns of one name.
        let columns = DFSchema::new_with_metadata(fields, HashMap::new()).ok()?;
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
        if predicates.iter().any(|p| p.of == 0) {
            return None;
        }
        let (wanted, columns) = (plan.schema().columns(), Arc::new(columns));
        let readers = readers(&wanted, &predicates);
        let crosses = has_crosses(&shape, &predicates);
        Some(Tree { leaves, predicates, shape, crosses, columns, wanted, readers })
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
        let columns = plan.schema().columns();
        let count = columns.len();
        let outside = |column: &Name| self.readers.get(column).is_some_and(|r| r.are_outside(set));
        let kept: Vec<Expr> = columns.into_iter().filter(outside).map(Expr::Column).collect();
        if kept.len() == count || kept.is_empty() {
            return Ok(plan);
        }
        Ok(LogicalPlan::Projection(Projection::try_new(kept, Arc::new(plan))?))
    }
}

/// Who looks at each column that anybody looks at.
fn readers(wanted: &[Name], predicates: &[Predicate]) -> HashMap<Name, ColumnReaders> {
    let mut readers: HashMap<Name, ColumnReaders> = HashMap::new();
    for column in wanted {
        readers.entry(column.clone()).or_default().wanted = true;
    }
    for predicate in predicates {
        for column in predicate.expr.column_refs() {
            readers.entry(column.clone()).or_default().predicates.push(predicate.of);
        }
    }
    readers
}

/// Whether a join has sides that no equality connects.
fn has_crosses(shape: &JoinTree, predicates: &[Predicate]) -> bool {
    let JoinTree::Join(a, b) = shape else { return false };
    let (left, right) = (a.set(), b.set());
    let connects = |predicate: &Predicate| predicate.connects(left, right);
    !predicates.iter().any(connects) || has_crosses(a, predicates) || has_crosses(b, predicates)
}

fn within(part: LeafSet, whole: LeafSet) -> bool {
    part & !whole == 0
}

impl Predicate {
    /// Whether it is an equality of something on the left and something on the right.
    fn connects(&self, left: LeafSet, right: LeafSet) -> bool {
        let Some([(_, of_a), (_, of_b)]) = &self.sides else { return false };
        within(*of_a, left) && within(*of_b, right) || within(*of_a, right) && within(*of_b, left)
    }

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
