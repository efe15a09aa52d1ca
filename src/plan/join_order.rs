//! The order of inner joins, by estimated rows.
//!
//! ```text
//!   a ⋈ b ⋈ c ⋈ d as the query says      a tree of joins on equalities, conditions between them: its leaves and predicates
//!   best tree of every set of leaves     of two, three, …, all: the cheapest pair of smaller sets that an equality connects
//! ```
//!
//! The number of rows of a set of leaves does not depend on the order within it: the product of the leaves' rows and of the
//! shares that the predicates leave. Up to [`MOST_EXACT`] leaves every tree is looked at, bushy ones too; of more, the
//! cheapest join is made again and again. A tree is replaced where another is expected to cost clearly less. No order joins
//! what no equality connects.
//!
//! Predicates that may fail (a division, say) would meet other rows in another order: a tree that has one stays as it is.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column as Name, DFSchema, JoinConstraint, NullEquality};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Expr, ExprSchemable, Filter, Join, JoinType, LogicalPlan, Operator, Projection, binary_expr,
};

use super::estimate::{Estimate, estimate, key_selectivity};
use crate::codegen::selectivity;
use crate::column::{Facts, Repr};

/// Leaves up to which every tree is looked at: 3^n pairs of sets.
const MOST_EXACT: usize = 10;
/// Leaves of the largest tree that is looked at: a bit of a set each.
const MOST: usize = 64;
/// Another tree has to cost this part of the query's own.
const WORTHWHILE: f64 = 0.85;
/// Build rows up to which probes hit the nearest caches, and beyond which they miss the second level.
const NEAR_ROWS: f64 = 1e5;
const CACHED_ROWS: f64 = 2e6;
/// What it costs that a build side is a join itself, which otherwise would be a stage of the probe's pipeline: a few launches
/// and waits, some 30 µs, in rows of a probe; and that its columns are written and read, for each byte.
const PIPELINE: f64 = 4e6;
const PIPELINE_BYTE: f64 = 0.25;

/// A plan with its joins in another order.
pub(crate) struct Ordered {
    pub(crate) plan: LogicalPlan,
    /// Trees of joins that were put into another order.
    pub(crate) changed: usize,
}

/// Orders the inner joins of a plan. The schema stays as it is, and so do the rows but for their order.
pub(crate) fn order_joins(plan: LogicalPlan) -> PlanResult<Ordered> {
    let mut changed = 0;
    let plan = visit(plan, &mut changed)?;
    Ok(Ordered { plan, changed })
}

/// What it costs to build a table of one side and compare the other with it, in rows read. Rows of a key that repeats are
/// sorted into lists, and matches become pairs.
pub(crate) fn join_cost(build: f64, unique: bool, probe: f64) -> f64 {
    let access = match build {
        ..=NEAR_ROWS => 0.3,
        ..=CACHED_ROWS => 1.0,
        _ => 2.0,
    };
    match unique {
        true => 2.0 * build + access * probe,
        false => 8.0 * build + (access + 2.0) * probe,
    }
}

fn visit(plan: LogicalPlan, changed: &mut usize) -> PlanResult<LogicalPlan> {
    let Some(tree) = Tree::of(&plan) else {
        return Ok(plan.map_children(|child| Ok(Transformed::yes(visit(child, changed)?)))?.data);
    };
    let leaves = tree.leaves.iter().map(|leaf| visit(leaf.clone(), changed)).collect::<PlanResult<Vec<_>>>()?;
    let tree = Tree { leaves, ..tree };
    if let Some(order) = tree.order() {
        *changed += 1;
        return tree.plan(&order, &plan);
    }
    let mut leaves = tree.leaves.into_iter();
    put_back(plan, &mut leaves)
}

/// The tree as the query has it, with the leaves that stand for its own.
fn put_back(plan: LogicalPlan, leaves: &mut impl Iterator<Item = LogicalPlan>) -> PlanResult<LogicalPlan> {
    if !is_inner(&plan) {
        return Ok(leaves.next().unwrap_or(plan));
    }
    Ok(plan.map_children(|child| Ok(Transformed::yes(put_back(child, leaves)?)))?.data)
}

/// A set of leaves.
type Set = u64;

/// Inner joins with everything between them that any order can have.
struct Tree {
    leaves: Vec<LogicalPlan>,
    predicates: Vec<Predicate>,
    /// The query's own order.
    shape: Shape,
    columns: Arc<DFSchema>,
    /// Columns that come out.
    wanted: Vec<Name>,
}

struct Predicate {
    expr: Expr,
    /// Leaves whose columns it looks at.
    of: Set,
    /// Of an equality: its sides, and the leaves that each looks at.
    sides: Option<[(Expr, Set); 2]>,
}

/// An order of joins.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Leaf(usize),
    /// The probe's side, the build's side.
    Join(Box<Shape>, Box<Shape>),
}

impl Shape {
    fn set(&self) -> Set {
        match self {
            Shape::Leaf(at) => 1 << at,
            Shape::Join(a, b) => a.set() | b.set(),
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
        }
        LogicalPlan::Filter(filter) => is_inner(&filter.input),
        LogicalPlan::Projection(project) => {
            project.expr.iter().all(|expr| matches!(expr, Expr::Column(_))) && is_inner(&project.input)
        }
        _ => false,
    }
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
            let sides = [(left.clone(), leaves_of(&left, &leaves)?), (right.clone(), leaves_of(&right, &leaves)?)];
            let of = sides[0].1 | sides[1].1;
            // A key that looks at no table connects nothing.
            let sides = (sides[0].1 != 0 && sides[1].1 != 0).then_some(sides);
            predicates.push(Predicate { expr, of, sides });
        }
        for expr in conditions {
            predicates.push(Predicate { of: leaves_of(&expr, &leaves)?, expr, sides: None });
        }
        let sound = |p: &Predicate| p.of != 0 && !may_fail(&p.expr, &columns);
        let columns = match predicates.iter().all(sound) {
            true => Arc::new(columns),
            false => return None,
        };
        Some(Tree { leaves, predicates, shape, columns, wanted: plan.schema().columns() })
    }

    /// A cheaper order, if there is one.
    fn order(&self) -> Option<Shape> {
        let leaves = self.leaves.iter().map(estimate).collect::<Option<Vec<_>>>()?;
        let costs = Costs::of(self, &leaves);
        let (best, cost) = match self.leaves.len() {
            ..=MOST_EXACT => costs.cheapest()?,
            _ => costs.greedy()?,
        };
        (cost < WORTHWHILE * costs.total(&self.shape) && best != self.shape).then_some(best)
    }

    /// The joins in this order, with the columns of `original`.
    fn plan(&self, order: &Shape, original: &LogicalPlan) -> PlanResult<LogicalPlan> {
        let wanted = &self.wanted;
        let joined = self.joined(order)?;
        if joined.schema().columns() == *wanted {
            return Ok(joined);
        }
        let columns = wanted.iter().cloned().map(Expr::Column).collect();
        let schema = original.schema().clone();
        Ok(LogicalPlan::Projection(Projection::try_new_with_schema(columns, Arc::new(joined), schema)?))
    }

    fn joined(&self, order: &Shape) -> PlanResult<LogicalPlan> {
        let set = order.set();
        let plan = match order {
            Shape::Leaf(at) => {
                let own = self.predicates.iter().filter(|p| p.of == set).map(|p| p.expr.clone());
                match own.reduce(Expr::and) {
                    Some(predicate) => {
                        LogicalPlan::Filter(Filter::try_new(predicate, Arc::new(self.leaves[*at].clone()))?)
                    }
                    None => self.leaves[*at].clone(),
                }
            }
            Shape::Join(probe, build) => {
                let (mut on, mut conditions) = (vec![], vec![]);
                let (left, right) = (probe.set(), build.set());
                let here = |p: &&Predicate| within(p.of, set) && !within(p.of, left) && !within(p.of, right);
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
    fn pruned(&self, plan: LogicalPlan, set: Set) -> PlanResult<LogicalPlan> {
        let outside: Vec<_> =
            self.predicates.iter().filter(|p| !within(p.of, set)).flat_map(|p| p.expr.column_refs()).collect();
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

fn within(part: Set, whole: Set) -> bool {
    part & !whole == 0
}

impl Predicate {
    /// An equality as a pair of keys, the first over `left` and the second over `right`.
    fn across(&self, left: Set, right: Set) -> Option<(Expr, Expr)> {
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
) -> Shape {
    match plan {
        LogicalPlan::Join(join) if is_inner(plan) => {
            let left = flatten(&join.left, leaves, equalities, conditions);
            let right = flatten(&join.right, leaves, equalities, conditions);
            equalities.extend(join.on.iter().cloned());
            conditions.extend(join.filter.clone().map(split_conjunction_owned).unwrap_or_default());
            Shape::Join(Box::new(left), Box::new(right))
        }
        LogicalPlan::Filter(filter) if is_inner(plan) => {
            conditions.extend(split_conjunction_owned(filter.predicate.clone()));
            flatten(&filter.input, leaves, equalities, conditions)
        }
        LogicalPlan::Projection(project) if is_inner(plan) => flatten(&project.input, leaves, equalities, conditions),
        leaf => {
            leaves.push(leaf.clone());
            Shape::Leaf(leaves.len() - 1)
        }
    }
}

/// The leaves that have an expression's columns; `None` where a column is no leaf's.
fn leaves_of(expr: &Expr, leaves: &[LogicalPlan]) -> Option<Set> {
    expr.column_refs().into_iter().try_fold(0, |set, column| {
        let leaf = leaves.iter().position(|leaf| leaf.schema().has_column(column))?;
        Some(set | 1 << leaf)
    })
}

/// Whether an expression may fail for some row, or is not known not to.
fn may_fail(expr: &Expr, columns: &DFSchema) -> bool {
    let of = |expr: &Expr| expr.get_type(columns).ok();
    let mut fails = false;
    let walked = expr.apply(|node| {
        let safe = match node {
            Expr::Column(_) | Expr::Literal(_, _) | Expr::Alias(_) | Expr::Not(_) | Expr::Like(_) => true,
            Expr::IsNull(_) | Expr::IsNotNull(_) | Expr::IsTrue(_) | Expr::IsNotTrue(_) => true,
            Expr::IsFalse(_) | Expr::IsNotFalse(_) | Expr::Between(_) | Expr::InList(_) | Expr::TryCast(_) => true,
            Expr::BinaryExpr(binary) => match binary.op {
                Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => true,
                Operator::IsDistinctFrom | Operator::IsNotDistinctFrom | Operator::And | Operator::Or => true,
                // Integers wrap, floats have infinities.
                Operator::Plus | Operator::Minus | Operator::Multiply => {
                    of(node).is_some_and(|dtype| dtype.is_integer() || dtype.is_floating())
                }
                _ => false,
            },
            Expr::Cast(cast) => match (of(&cast.expr), of(node)) {
                (Some(from), Some(to)) => keeps_values(&from, &to),
                _ => false,
            },
            _ => false,
        };
        fails |= !safe;
        Ok(if fails { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    fails || walked.is_err()
}

/// Whether every value of a type has its place in another.
fn keeps_values(from: &DataType, to: &DataType) -> bool {
    let signed = |dtype: &DataType| dtype.is_signed_integer();
    let text = |dtype: &DataType| matches!(dtype, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    match (from, to) {
        (from, to) if from == to || text(from) && text(to) => true,
        (from, to) if from.is_integer() && to.is_floating() => true,
        (DataType::Float32, DataType::Float64) => true,
        (from, to) if from.is_integer() && to.is_integer() => {
            let (narrow, wide) = (from.primitive_width(), to.primitive_width());
            if signed(from) == signed(to) { narrow <= wide } else { signed(to) && narrow < wide }
        }
        (DataType::Decimal128(p, s), DataType::Decimal128(to_p, to_s)) => {
            s <= to_s && i16::from(*p) - i16::from(*s) <= i16::from(*to_p) - i16::from(*to_s)
        }
        _ => false,
    }
}

/// What orders cost.
struct Costs<'a> {
    tree: &'a Tree,
    /// Rows of each leaf.
    leaves: Vec<f64>,
    /// Shares of rows that are left: by equalities between two leaves, and by other predicates.
    shares: Vec<(Set, f64)>,
    /// Which of an equality's sides is known to be unique.
    unique: Vec<[bool; 2]>,
    columns: Vec<Width>,
}

/// Bytes of a leaf's column, and who looks at it.
struct Width {
    leaf: Set,
    bytes: f64,
    wanted: bool,
    /// Leaves of the predicates that do.
    predicates: Vec<Set>,
}

/// The best order of a set of leaves that is known so far.
#[derive(Debug, Clone, Copy)]
struct Part {
    set: Set,
    cost: f64,
    rows: f64,
    /// What it costs to make a build side of it, besides its table.
    as_build: f64,
    /// Leaves whose rows occur at most once each.
    once: Set,
    /// The probe's and the build's leaves; of a leaf, nothing.
    sides: Option<[Set; 2]>,
}

impl<'a> Costs<'a> {
    fn of(tree: &'a Tree, estimates: &[Estimate]) -> Self {
        let facts = |expr: &Expr, set: Set| {
            let leaf = set.trailing_zeros() as usize;
            match set.count_ones() {
                1 => estimates[leaf].key(expr, tree.leaves[leaf].schema()),
                _ => Facts::unknown(1.0),
            }
        };
        let columns: Vec<Facts> = estimates.iter().flat_map(|e| e.columns.iter().copied()).collect();
        let of = |name: &Name| tree.columns.maybe_index_of_column(name).and_then(|at| columns.get(at).copied());
        // Equalities between the same two leaves are looked at together: their keys may be one of several columns.
        let mut pairs: HashMap<(Set, Set), Vec<(Facts, Facts)>> = HashMap::new();
        let (mut order, mut shares, mut unique) = (vec![], vec![], vec![]);
        let mut leaves: Vec<f64> = estimates.iter().map(|e| e.rows.max(1.0)).collect();
        for predicate in &tree.predicates {
            let mut known = [false; 2];
            match &predicate.sides {
                Some([(a, of_a), (b, of_b)]) => {
                    let (fact_a, fact_b) = (facts(a, *of_a), facts(b, *of_b));
                    known = [fact_a.unique, fact_b.unique];
                    let (key, pair) = match of_a <= of_b {
                        true => ((*of_a, *of_b), (fact_a, fact_b)),
                        false => ((*of_b, *of_a), (fact_b, fact_a)),
                    };
                    if !pairs.contains_key(&key) {
                        order.push(key);
                    }
                    pairs.entry(key).or_default().push(pair);
                }
                None => {
                    let share = selectivity(&predicate.expr, &of);
                    match predicate.of.count_ones() {
                        1 => leaves[predicate.of.trailing_zeros() as usize] *= share,
                        _ => shares.push((predicate.of, share)),
                    }
                }
            }
            unique.push(known);
        }
        shares.extend(order.into_iter().map(|key| (key.0 | key.1, key_selectivity(&pairs[&key]))));
        let mut widths = vec![];
        for (at, leaf) in tree.leaves.iter().enumerate() {
            for (name, field) in leaf.schema().columns().into_iter().zip(leaf.schema().fields()) {
                let looks = |p: &&Predicate| p.expr.column_refs().contains(&name);
                widths.push(Width {
                    leaf: 1 << at,
                    bytes: Repr::of(field.data_type()).map_or(8, Repr::width) as f64,
                    wanted: tree.wanted.contains(&name),
                    predicates: tree.predicates.iter().filter(looks).map(|p| p.of).collect(),
                });
            }
        }
        Costs { tree, leaves, shares, unique, columns: widths }
    }

    /// Rows of the join of a set of leaves.
    fn rows(&self, set: Set) -> f64 {
        let leaves = self.leaves.iter().enumerate().filter(|(at, _)| set >> at & 1 != 0);
        let rows: f64 = leaves.map(|(_, rows)| rows).product();
        let shares = self.shares.iter().filter(|(of, _)| within(*of, set));
        shares.fold(rows, |rows, (_, share)| rows * share).max(1.0)
    }

    /// What it costs to make a build side of a join, besides its table.
    fn pipeline(&self, set: Set, rows: f64) -> f64 {
        let outside = |c: &&Width| within(c.leaf, set) && (c.wanted || c.predicates.iter().any(|of| !within(*of, set)));
        let bytes: f64 = self.columns.iter().filter(outside).map(|c| c.bytes).sum();
        PIPELINE + PIPELINE_BYTE * rows * bytes
    }

    fn leaf(&self, at: usize) -> Part {
        let set = 1 << at;
        Part { set, cost: 0.0, rows: self.leaves[at], as_build: 0.0, once: set, sides: None }
    }

    /// The join of two parts, the way round that costs less, if it costs less than what is known of their set; `None` also
    /// where no equality connects them.
    fn join(&self, a: &Part, b: &Part, known: Option<&Part>) -> Option<Part> {
        let (set_a, set_b) = (a.set, b.set);
        let (mut connected, mut keys) = (false, 0);
        let (mut unique_a, mut unique_b) = (false, false);
        for (predicate, known) in self.tree.predicates.iter().zip(&self.unique) {
            let Some([(_, of_first), (_, of_second)]) = &predicate.sides else { continue };
            let ((of_a, known_a), (of_b, known_b)) = if within(*of_first, set_a) && within(*of_second, set_b) {
                ((*of_first, known[0]), (*of_second, known[1]))
            } else if within(*of_first, set_b) && within(*of_second, set_a) {
                ((*of_second, known[1]), (*of_first, known[0]))
            } else {
                continue;
            };
            connected = true;
            keys += 1;
            unique_a |= known_a && within(of_a, a.once);
            unique_b |= known_b && within(of_b, b.once);
        }
        if !connected {
            return None;
        }
        // Several columns together are probably a key of the smaller side, if no single one is.
        let (mut build_a, mut build_b) = (unique_a, unique_b);
        if keys > 1 && !unique_a && !unique_b {
            (build_a, build_b) = (a.rows <= b.rows, b.rows < a.rows);
        }
        let cost_a = join_cost(a.rows, build_a, b.rows) + a.as_build;
        let cost_b = join_cost(b.rows, build_b, a.rows) + b.as_build;
        let (sides, cost) = if cost_a < cost_b { ([set_b, set_a], cost_a) } else { ([set_a, set_b], cost_b) };
        let cost = a.cost + b.cost + cost;
        if known.is_some_and(|known| known.cost <= cost) {
            return None;
        }
        let set = set_a | set_b;
        let once = if unique_b { a.once } else { 0 } | if unique_a { b.once } else { 0 };
        let (rows, as_build) = match known {
            Some(known) => (known.rows, known.as_build),
            None => {
                let rows = self.rows(set);
                (rows, self.pipeline(set, rows))
            }
        };
        Some(Part { set, cost, rows, as_build, once, sides: Some(sides) })
    }

    /// What a given order costs.
    fn total(&self, shape: &Shape) -> f64 {
        self.along(shape).map_or(f64::INFINITY, |best| best.cost)
    }

    fn along(&self, shape: &Shape) -> Option<Part> {
        match shape {
            Shape::Leaf(at) => Some(self.leaf(*at)),
            Shape::Join(a, b) => self.join(&self.along(a)?, &self.along(b)?, None),
        }
    }

    /// The cheapest of all orders.
    fn cheapest(&self) -> Option<(Shape, f64)> {
        let all: Set = (1 << self.leaves.len()) - 1;
        let mut best: Vec<Option<Part>> = vec![None; all as usize + 1];
        for at in 0..self.leaves.len() {
            best[1 << at] = Some(self.leaf(at));
        }
        for set in 1..=all {
            // Every split into two, each once: the part without the set's lowest leaf.
            let others = set & (set - 1);
            let mut part = others;
            while part != 0 {
                if let (Some(a), Some(b)) = (&best[(set & !part) as usize], &best[part as usize])
                    && let Some(joined) = self.join(a, b, best[set as usize].as_ref())
                {
                    best[set as usize] = Some(joined);
                }
                part = (part - 1) & others;
            }
        }
        let cost = best[all as usize]?.cost;
        Some((shape_of(all, &|set| best[set as usize].and_then(|part| part.sides)), cost))
    }

    /// Joins what is cheapest to join until everything is.
    fn greedy(&self) -> Option<(Shape, f64)> {
        let mut parts: Vec<Part> = (0..self.leaves.len()).map(|at| self.leaf(at)).collect();
        let mut made: HashMap<Set, [Set; 2]> = HashMap::new();
        while parts.len() > 1 {
            let mut cheapest: Option<(f64, usize, usize, Part)> = None;
            for b in 1..parts.len() {
                for a in 0..b {
                    let Some(joined) = self.join(&parts[a], &parts[b], None) else { continue };
                    // What comes out is met again by all that follows.
                    let added = joined.cost - parts[a].cost - parts[b].cost + joined.rows;
                    if cheapest.as_ref().is_none_or(|(least, ..)| added < *least) {
                        cheapest = Some((added, a, b, joined));
                    }
                }
            }
            let (_, a, b, joined) = cheapest?;
            made.insert(joined.set, joined.sides?);
            parts.swap_remove(b);
            parts[a] = joined;
        }
        let whole = parts.pop()?;
        Some((shape_of(whole.set, &|set| made.get(&set).copied()), whole.cost))
    }
}

/// The order of a set, from how each set in it is split.
fn shape_of(set: Set, sides: &dyn Fn(Set) -> Option<[Set; 2]>) -> Shape {
    match sides(set) {
        Some([probe, build]) => Shape::Join(Box::new(shape_of(probe, sides)), Box::new(shape_of(build, sides))),
        None => Shape::Leaf(set.trailing_zeros() as usize),
    }
}

#[cfg(test)]
mod tests;
