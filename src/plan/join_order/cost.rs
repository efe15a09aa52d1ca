//! What orders of joins cost, and the search for the cheapest.

use std::cmp::Ordering;
use std::collections::HashMap;

use datafusion::common::Column as Name;
use datafusion::logical_expr::Expr;

use super::{ColumnReaders, JoinTree, LeafSet, Predicate, Tree, within};
use crate::codegen::selectivity;
use crate::column::{Facts, Repr};
use crate::plan::estimate::{Estimate, key_selectivity};

/// Build rows up to which probes hit the nearest caches, and beyond which they miss the second
/// level.
const NEAR_ROWS: f64 = 1e5;
const CACHED_ROWS: f64 = 2e6;
/// What it costs that a build side is a join itself, which otherwise would be a stage of the
/// probe's pipeline: a few launches and waits, some 30 µs, in rows of a probe; and that its columns
/// are written and read, for each byte.
const PIPELINE: f64 = 4e6;
const PIPELINE_BYTE: f64 = 0.25;

/// What a pair of rows costs that no key brings together, in rows read: its numbers are written, and
/// read with the columns of both rows.
const PAIR: f64 = 4.0;

/// What it costs to build a table of one side and compare the other with it, in rows read. Rows of
/// a key that repeats are sorted into lists, and matches become pairs.
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

/// What orders cost.
pub(super) struct Costs<'a> {
    tree: &'a Tree,
    /// Rows of each leaf.
    leaves: Vec<f64>,
    /// Shares of rows that are left: by equalities between two leaves, and by other predicates.
    shares: Vec<(LeafSet, f64)>,
    /// Which of an equality's sides is known to be unique.
    unique: Vec<[bool; 2]>,
    columns: Vec<Width<'a>>,
}

/// Bytes of a leaf's column, and who looks at it.
struct Width<'a> {
    leaf: LeafSet,
    bytes: f64,
    readers: &'a ColumnReaders,
}

/// The best order of a set of leaves that is known so far.
#[derive(Debug, Clone, Copy)]
struct BestOrder {
    set: LeafSet,
    cost: f64,
    rows: f64,
    /// What it costs to make a build side of it, besides its table.
    as_build: f64,
    /// Leaves whose rows occur at most once each.
    once: LeafSet,
    /// The probe's and the build's leaves; of a leaf, nothing.
    sides: Option<[LeafSet; 2]>,
}

impl<'a> Costs<'a> {
    pub(super) fn of(tree: &'a Tree, estimates: &[Estimate]) -> Self {
        let facts = |expr: &Expr, set: LeafSet| {
            let leaf = set.trailing_zeros() as usize;
            match set.count_ones() {
                1 => estimates[leaf].key(expr, tree.leaves[leaf].schema()),
                _ => Facts::unknown(1.0),
            }
        };
        let columns: Vec<Facts> =
            estimates.iter().flat_map(|e| e.columns.iter().copied()).collect();
        let of = |name: &Name| {
            tree.columns.maybe_index_of_column(name).and_then(|at| columns.get(at).copied())
        };
        // Equalities between the same two leaves are looked at together: their keys may be one of
        // several columns.
        let mut pairs: HashMap<(LeafSet, LeafSet), Vec<(Facts, Facts)>> = HashMap::new();
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
                let Some(readers) = tree.readers.get(&name) else { continue };
                let bytes = Repr::of(field.data_type()).map_or(8, Repr::width) as f64;
                widths.push(Width { leaf: 1 << at, bytes, readers });
            }
        }
        Costs { tree, leaves, shares, unique, columns: widths }
    }

    /// Rows of the join of a set of leaves.
    pub(super) fn rows(&self, set: LeafSet) -> f64 {
        let leaves = self.leaves.iter().enumerate().filter(|(at, _)| set >> at & 1 != 0);
        let rows: f64 = leaves.map(|(_, rows)| rows).product();
        let shares = self.shares.iter().filter(|(of, _)| within(*of, set));
        shares.fold(rows, |rows, (_, share)| rows * share).max(1.0)
    }

    /// What it costs to make a build side of a join, besides its table.
    fn pipeline(&self, set: LeafSet, rows: f64) -> f64 {
        let outside = |c: &&Width<'_>| within(c.leaf, set) && c.readers.are_outside(set);
        let bytes: f64 = self.columns.iter().filter(outside).map(|c| c.bytes).sum();
        PIPELINE + PIPELINE_BYTE * rows * bytes
    }

    fn leaf(&self, at: usize) -> BestOrder {
        let set = 1 << at;
        BestOrder { set, cost: 0.0, rows: self.leaves[at], as_build: 0.0, once: set, sides: None }
    }

    /// The join of two parts, if it costs less than what is known of their set; `None` also where no
    /// equality connects them, unless the query has such joins.
    fn join(&self, a: &BestOrder, b: &BestOrder, known: Option<&BestOrder>) -> Option<BestOrder> {
        let connected = |p: &Predicate| p.connects(a.set, b.set);
        if self.tree.crosses && !self.tree.predicates.iter().any(connected) {
            return self.pairs(a, b, known);
        }
        self.by_keys(a, b, known)
    }

    /// The join of two parts by all pairs of their rows, as [`Costs::join`] has it.
    fn pairs(&self, a: &BestOrder, b: &BestOrder, known: Option<&BestOrder>) -> Option<BestOrder> {
        let (probe, build) = if a.rows < b.rows { (b, a) } else { (a, b) };
        // One row is looked at by a stage of the probe. Else both sides are written whole, so that it
        // does not matter which of them is a join itself.
        let pairs = if build.rows > 1.0 { PAIR * a.rows * b.rows } else { 0.3 * probe.rows };
        let cost = a.cost + b.cost + pairs;
        if known.is_some_and(|known| known.cost <= cost) {
            return None;
        }
        let of = |part: &BestOrder, other: &BestOrder| if other.rows > 1.0 { 0 } else { part.once };
        let once = of(a, b) | of(b, a);
        Some(self.joined([probe, build], cost, once, known))
    }

    /// The join of two parts by the keys that connect them, the way round that costs less, as
    /// [`Costs::join`] has it.
    fn by_keys(
        &self,
        a: &BestOrder,
        b: &BestOrder,
        known: Option<&BestOrder>,
    ) -> Option<BestOrder> {
        let (set_a, set_b) = (a.set, b.set);
        let (mut connected, mut keys) = (false, 0);
        let (mut unique_a, mut unique_b) = (false, false);
        for (predicate, known) in self.tree.predicates.iter().zip(&self.unique) {
            let Some([(_, of_first), (_, of_second)]) = &predicate.sides else { continue };
            let ((of_a, known_a), (of_b, known_b)) =
                if within(*of_first, set_a) && within(*of_second, set_b) {
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
        let (sides, cost) = if cost_a < cost_b { ([b, a], cost_a) } else { ([a, b], cost_b) };
        let cost = a.cost + b.cost + cost;
        if known.is_some_and(|known| known.cost <= cost) {
            return None;
        }
        let once = if unique_b { a.once } else { 0 } | if unique_a { b.once } else { 0 };
        Some(self.joined(sides, cost, once, known))
    }

    /// The join of a probe's and a build's side; `known` is another one of the same leaves.
    fn joined(
        &self,
        [probe, build]: [&BestOrder; 2],
        cost: f64,
        once: LeafSet,
        known: Option<&BestOrder>,
    ) -> BestOrder {
        let (set, sides) = (probe.set | build.set, Some([probe.set, build.set]));
        let (rows, as_build) = match known {
            Some(known) => (known.rows, known.as_build),
            None => {
                let rows = self.rows(set);
                (rows, self.pipeline(set, rows))
            }
        };
        BestOrder { set, cost, rows, as_build, once, sides }
    }

    /// What a given order costs.
    pub(super) fn total(&self, shape: &JoinTree) -> f64 {
        self.along(shape).map_or(f64::INFINITY, |best| best.cost)
    }

    fn along(&self, shape: &JoinTree) -> Option<BestOrder> {
        match shape {
            JoinTree::Leaf(at) => Some(self.leaf(*at)),
            JoinTree::Join(a, b) => self.join(&self.along(a)?, &self.along(b)?, None),
        }
    }

    /// The cheapest of all orders.
    pub(super) fn cheapest(&self) -> Option<(JoinTree, f64)> {
        let all: LeafSet = (1 << self.leaves.len()) - 1;
        let mut best: Vec<Option<BestOrder>> = vec![None; all as usize + 1];
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

    /// Joins what is cheapest to join until everything is; what no equality connects once nothing else
    /// is left.
    pub(super) fn greedy(&self) -> Option<(JoinTree, f64)> {
        let mut parts: Vec<BestOrder> = (0..self.leaves.len()).map(|at| self.leaf(at)).collect();
        let mut made: HashMap<LeafSet, [LeafSet; 2]> = HashMap::new();
        let mut found = vec![];
        for at in 1..parts.len() {
            self.add_joins(&parts[..at], &parts[at], &mut found);
        }
        while parts.len() > 1 {
            let joined = found.iter().min_by(|a, b| a.comes_before(b))?.joined;
            let sides = joined.sides?;
            made.insert(joined.set, sides);
            // All others are as they were.
            parts.retain(|part| !within(part.set, joined.set));
            found.retain(|other| other.joined.set & joined.set == 0);
            self.add_joins(&parts, &joined, &mut found);
            parts.push(joined);
        }
        let whole = parts.pop()?;
        Some((shape_of(whole.set, &|set| made.get(&set).copied()), whole.cost))
    }

    /// Adds the joins of these parts with one more.
    fn add_joins(&self, parts: &[BestOrder], with: &BestOrder, found: &mut Vec<FoundJoin>) {
        for part in parts {
            let Some(joined) = self.join(part, with, None) else { continue };
            // What comes out is met again by all that follows.
            let added = joined.cost - part.cost - with.cost + joined.rows;
            let connects = |p: &Predicate| p.connects(part.set, with.set);
            let crosses = self.tree.crosses && !self.tree.predicates.iter().any(connects);
            found.push(FoundJoin { joined, added, crosses });
        }
    }
}

/// A join that [`Costs::greedy`] may make.
struct FoundJoin {
    joined: BestOrder,
    /// What it costs besides its parts.
    added: f64,
    /// No equality connects its sides.
    crosses: bool,
}

impl FoundJoin {
    fn comes_before(&self, other: &FoundJoin) -> Ordering {
        self.crosses.cmp(&other.crosses).then(self.added.total_cmp(&other.added))
    }
}

/// The order of a set, from how each set in it is split.
fn shape_of(set: LeafSet, sides: &dyn Fn(LeafSet) -> Option<[LeafSet; 2]>) -> JoinTree {
    match sides(set) {
        Some([probe, build]) => {
            JoinTree::Join(Box::new(shape_of(probe, sides)), Box::new(shape_of(build, sides)))
        }
        None => JoinTree::Leaf(set.trailing_zeros() as usize),
    }
}
