//! Joins of a plan in stages: whose rows move, and whose stay.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::logical_expr::{Expr, ExprSchemable, Join, LogicalPlan};

use super::columns::are_plain;
use super::parting::{Parting, are_alike, followers, moved, of_join};
use super::{Cutter, FragmentRows, InputRole, StageInput, StageRows};
use crate::error::{Error, Result};
use crate::plan::division::{DividedJoin, DividedOperator, JoinSide, JoinWay, Way};

const BOTH: [JoinSide; 2] = [JoinSide::Left, JoinSide::Right];

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
            && (self.limits.on_devices || is_hashable(join));
        let moves = self.limits.on_devices && hashes;
        if moves && are_alike(join, &left, &right) {
            return joined(join, left, right, &BOTH);
        }
        let whole = self.broadcast(join, way, (&left, &right), hashes);
        if moves && let Some((side, parting)) = self.moving(join, way, (&left, &right), whole) {
            return match side {
                JoinSide::Left => joined(join, moved(left, parting)?, right, &BOTH),
                JoinSide::Right => joined(join, left, moved(right, parting)?, &BOTH),
            };
        }
        if let Some(side) = whole {
            return match side {
                JoinSide::Left => {
                    joined(join, self.whole(left)?, self.beside(right)?, &[JoinSide::Right])
                }
                JoinSide::Right => {
                    joined(join, self.beside(left)?, self.whole(right)?, &[JoinSide::Left])
                }
            };
        }
        if hashes {
            let (of_left, of_right): (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
            let left = self.parted_by(left, &of_left)?;
            return joined(join, left, self.parted_by(right, &of_right)?, &BOTH);
        }
        joined(join, left.gathered()?, right.gathered()?, &[])
    }

    /// The side whose rows move to those of equal keys of the other one, which stay, and how they
    /// lie then. `None` where rows of neither side tell, or where it is better that
    /// each task gets one side `whole`.
    fn moving(
        &self,
        join: &Join,
        way: &DividedJoin,
        rows: (&FragmentRows, &FragmentRows),
        whole: Option<JoinSide>,
    ) -> Option<(JoinSide, Parting)> {
        let is_cheap = |side: JoinSide| {
            // Nothing moves, or few rows that are in one place.
            self.is_read_again(side.of(rows)) || !side.of(rows).is_parted()
        };
        if whole.is_some_and(is_cheap) {
            return None;
        }
        let bytes = |side: JoinSide| side.of(way.bytes).unwrap_or(u64::MAX);
        let may = |side: &JoinSide| whole.is_none_or(|whole| whole == *side);
        let ways = BOTH
            .into_iter()
            .filter(may)
            .filter_map(|side| Some((side, followers(join, side.other(), side.other().of(rows))?)));
        ways.min_by_key(|(side, _)| bytes(*side))
    }

    /// Whether each task computes rows anew from whole tables where it needs all of them.
    fn is_read_again(&self, rows: &FragmentRows) -> bool {
        let is_table = |input: &StageInput| matches!(input.rows, StageRows::Table(_));
        self.limits.on_devices && rows.inputs.iter().all(is_table)
    }

    /// Rows that may have other inputs beside theirs. DataFusion parts several inputs alike only where
    /// these are all that an operator has.
    pub(super) fn beside(&self, rows: FragmentRows) -> Result<FragmentRows> {
        let by_keys = |input: &&StageInput| matches!(input.role, InputRole::ByKeys(_));
        match !self.limits.on_devices && rows.inputs.iter().filter(by_keys).count() > 1 {
            true => rows.ended(InputRole::Part),
            false => Ok(rows),
        }
    }

    /// Rows that each task gets whole.
    fn whole(&self, mut rows: FragmentRows) -> Result<FragmentRows> {
        if rows.inputs.is_empty() {
            return Ok(rows);
        }
        if self.is_read_again(&rows) {
            rows.inputs.iter_mut().for_each(|input| input.role = InputRole::Whole);
            rows.partings.clear();
            return Ok(rows);
        }
        rows.ended(InputRole::Whole)
    }

    /// The side that each task gets whole: one whose rows are all in one place already or that is
    /// small, while tasks have parts of the other.
    fn broadcast(
        &self,
        join: &Join,
        way: &DividedJoin,
        rows: (&FragmentRows, &FragmentRows),
        hashes: bool,
    ) -> Option<JoinSide> {
        let may = |side: &JoinSide| {
            side.other().goes_by(join.join_type) && side.other().of(rows).is_parted()
        };
        let sides = [JoinSide::Right, JoinSide::Left].into_iter().filter(may);
        let bytes = |side: &JoinSide| side.of(way.bytes).unwrap_or(u64::MAX);
        let least = sides.min_by_key(bytes)?;
        let small = match self.is_read_again(least.of(rows)) {
            // Each task does the work of all tasks on this side, and less on the other.
            true => {
                let others = self.limits.tasks.saturating_sub(1) as u64;
                bytes(&least).saturating_mul(others) <= bytes(&least.other())
            }
            false => bytes(&least) <= self.limits.broadcast,
        };
        (small || !least.of(rows).is_parted() && join.join_type != JoinType::Full || !hashes)
            .then_some(least)
    }
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
