//! Joins of a plan in stages: whose rows move, and whose stay.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan};

use super::columns::are_plain;
use super::parting::{Parting, are_alike, followers, moved, of_join};
use super::{Cutter, FragmentRows, InputRole, StageInput, StageRows, TaskPlace};
use crate::error::{Error, Result};
use crate::plan::division::{DividedJoin, DividedOperator, JoinSide, JoinWay, Way};

const BOTH: [JoinSide; 2] = [JoinSide::Left, JoinSide::Right];

/// A link between two devices takes so much longer for a byte than their memory does: between H200s
/// 390 GB/s, and 4 TB/s.
const LINK: f64 = 10.0;
/// A row in a table to look rows up in takes so much longer than to read it: an estimate.
const LOOKUP: f64 = 5.0;
/// Bytes of rows of which nothing is known.
const UNKNOWN: f64 = 1e12;

/// How rows of both sides of a join come together.
enum Meeting {
    /// Each task gets all rows of this side.
    Whole(JoinSide),
    /// Each task computes all rows of this side, from whole tables.
    Again(JoinSide),
    /// Rows of this side move to those of equal keys of the other one, which stay. The other side's
    /// rows lie so.
    Moved(JoinSide, Parting),
}

impl FragmentRows {
    /// Whether each task could compute all of the rows.
    fn is_of_tables(&self) -> bool {
        self.inputs.iter().all(|input| matches!(input.rows, StageRows::Table(_)))
    }

    /// The rows, all of which each task computes.
    fn again(mut self) -> FragmentRows {
        self.inputs.iter_mut().for_each(|input| input.role = InputRole::Whole);
        self.partings.clear();
        self
    }

    /// The rows, all of which each task gets.
    fn whole(self) -> Result<FragmentRows> {
        match self.inputs.is_empty() {
            true => Ok(self),
            false => self.ended(InputRole::Whole),
        }
    }
}

impl Cutter<'_> {
    pub(super) fn join(&self, join: &Join, division: &DividedOperator) -> Result<FragmentRows> {
        let Way::Join(way) = &division.way else {
            return Err(Error::internal("a join is divided as no join"));
        };
        let left = self.rows_of(&join.left, division.input(0)?)?;
        let right = self.rows_of(&join.right, division.input(1)?)?;
        if !left.is_parted() && !right.is_parted() {
            return joined(join, left, right, &[]);
        }
        let hashes = matches!(way.otherwise, JoinWay::Hash { .. })
            && (self.limits.on_devices() || is_hashable(join));
        if self.limits.on_devices() && hashes && are_alike(join, &left, &right) {
            return joined(join, left, right, &BOTH);
        }
        let sides = (&left, &right);
        let meeting = match self.limits.place {
            TaskPlace::Devices { exchange } => self.cheapest(join, way, sides, (hashes, exchange)),
            TaskPlace::Processes { broadcast } => {
                whole_side(join, way, sides, (hashes, broadcast)).map(Meeting::Whole)
            }
        };
        match meeting {
            Some(Meeting::Whole(JoinSide::Left)) => {
                joined(join, left.whole()?, self.beside(right)?, &[JoinSide::Right])
            }
            Some(Meeting::Whole(JoinSide::Right)) => {
                joined(join, self.beside(left)?, right.whole()?, &[JoinSide::Left])
            }
            Some(Meeting::Again(JoinSide::Left)) => {
                joined(join, left.again(), right, &[JoinSide::Right])
            }
            Some(Meeting::Again(JoinSide::Right)) => {
                joined(join, left, right.again(), &[JoinSide::Left])
            }
            Some(Meeting::Moved(JoinSide::Left, parting)) => {
                joined(join, moved(left, parting)?, right, &BOTH)
            }
            Some(Meeting::Moved(JoinSide::Right, parting)) => {
                joined(join, left, moved(right, parting)?, &BOTH)
            }
            None if hashes => {
                let (of_left, of_right): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
                let left = self.parted_by(left, &of_left)?;
                joined(join, left, self.parted_by(right, &of_right)?, &BOTH)
            }
            None => joined(join, left.gathered()?, right.gathered()?, &[]),
        }
    }

    /// The least expensive way for rows of several devices to meet. `None` where both sides are
    /// parted by a hash, or gathered.
    ///
    /// The expense is in bytes that a device's memory brings in the same time, beyond what the
    /// device does in any case, for the device that does most.
    fn cheapest(
        &self,
        join: &Join,
        way: &DividedJoin,
        rows: (&FragmentRows, &FragmentRows),
        (hashes, exchange): (bool, u64),
    ) -> Option<Meeting> {
        let tasks = self.limits.tasks as f64;
        let share = (tasks - 1.0) / tasks;
        let bytes = |side: JoinSide| side.of(way.bytes).map_or(UNKNOWN, |bytes| bytes as f64);
        let exchange = exchange as f64;
        let moves = |side: JoinSide| exchange + bytes(side) * share * LINK / tasks;
        let mut ways = vec![];
        if hashes {
            ways.push((moves(JoinSide::Left) + moves(JoinSide::Right), None));
        }
        for side in BOTH {
            let (own, other) = (side.of(rows), side.other().of(rows));
            let is_known = side.of(way.bytes).is_some() || !hashes;
            if side.other().goes_by(join.join_type) && other.is_parted() && is_known {
                // Each task has a table of all rows to look them up in.
                let sent = bytes(side) * share;
                let whole = sent * LOOKUP;
                ways.push((exchange + sent * LINK + whole, Some(Meeting::Whole(side))));
                if own.is_of_tables() {
                    // Rows that one task would compute are computed by all at the same time.
                    let reads = if own.is_parted() { own.reads as f64 * share } else { 0.0 };
                    ways.push((whole + reads, Some(Meeting::Again(side))));
                }
            }
            if hashes && let Some(parting) = followers(join, side.other(), other) {
                ways.push((moves(side), Some(Meeting::Moved(side, parting))));
            }
        }
        ways.into_iter().min_by(|(one, _), (other, _)| one.total_cmp(other))?.1
    }

    /// Rows that may have other inputs beside theirs. DataFusion parts several inputs alike only where
    /// these are all that an operator has.
    pub(super) fn beside(&self, rows: FragmentRows) -> Result<FragmentRows> {
        let by_keys = |input: &&StageInput| matches!(input.role, InputRole::ByKeys(_));
        match !self.limits.on_devices() && rows.inputs.iter().filter(by_keys).count() > 1 {
            true => rows.ended(InputRole::Part),
            false => Ok(rows),
        }
    }
}

/// The side that each task gets whole: one whose rows are all in one place already or that is
/// small, while tasks have parts of the other.
fn whole_side(
    join: &Join,
    way: &DividedJoin,
    rows: (&FragmentRows, &FragmentRows),
    (hashes, broadcast): (bool, u64),
) -> Option<JoinSide> {
    let may =
        |side: &JoinSide| side.other().goes_by(join.join_type) && side.other().of(rows).is_parted();
    let sides = [JoinSide::Right, JoinSide::Left].into_iter().filter(may);
    let bytes = |side: &JoinSide| side.of(way.bytes).unwrap_or(u64::MAX);
    let least = sides.min_by_key(bytes)?;
    let small = bytes(&least) <= broadcast;
    (small || !least.of(rows).is_parted() && join.join_type != JoinType::Full || !hashes)
        .then_some(least)
}

/// A join of rows; `sides` are those of which tasks have parts, of equal keys where it is both.
fn joined(
    join: &Join,
    left: FragmentRows,
    right: FragmentRows,
    sides: &[JoinSide],
) -> Result<FragmentRows> {
    let partings = of_join(join, sides, (&left, &right));
    FragmentRows::together(vec![left, right], partings, |plans| {
        let mut plans = plans.into_iter().map(Arc::new);
        let (Some(left), Some(right)) = (plans.next(), plans.next()) else {
            return Err(Error::internal("a join has two sides"));
        };
        Ok(LogicalPlan::Join(Join { left, right, ..join.clone() }))
    })
}

/// Whether equal keys of both sides have equal hashes.
fn is_hashable(join: &Join) -> bool {
    let (left, right): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
    let of = |key: &Expr, side: &LogicalPlan| key.get_type(side.schema()).ok();
    let same = |(left, right): &(Expr, Expr)| of(left, &join.left) == of(right, &join.right);
    join.on.iter().all(same)
        && are_plain(&left, join.left.schema())
        && are_plain(&right, join.right.schema())
}
