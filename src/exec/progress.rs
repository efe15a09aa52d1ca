//! How far a plan is that runs in parts, for whoever watches.

use std::sync::Arc;

use parking_lot::Mutex;

/// How far a query is that runs in parts, because it does not fit into device memory whole; see
/// [`Session::progress`](crate::Session::progress).
///
/// Such a query runs in steps. Each reads rows, of tables or of what the step before left, and is
/// divided into parts. How many steps there will be shows as they run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartsProgress {
    /// Number of the step, counted from 1 for each query.
    pub step: u64,
    /// Parts of the step that are done.
    pub parts_done: u64,
    /// Parts of the step.
    pub parts: u64,
    /// Rows that the step has read.
    pub rows_done: u64,
    /// Rows that it reads in all, if that is known.
    pub rows: Option<u64>,
}

/// The progress of what began last.
#[derive(Debug, Clone, Default)]
pub(super) struct ProgressBoard(Arc<Mutex<Posted>>);

#[derive(Debug, Default)]
struct Posted {
    /// Counts the plans that were posted.
    plan: u64,
    progress: Option<PartsProgress>,
}

impl ProgressBoard {
    /// What is to be read here of a plan that begins.
    pub(super) fn begin(&self) -> PlanProgress {
        let mut posted = self.0.lock();
        posted.plan += 1;
        posted.progress = None;
        PlanProgress {
            board: self.clone(),
            plan: posted.plan,
            now: PartsProgress::default(),
            within: 0,
        }
    }

    pub(super) fn read(&self) -> Option<PartsProgress> {
        self.0.lock().progress
    }
}

/// The progress of a plan. It is posted until another one begins.
#[derive(Debug)]
pub(super) struct PlanProgress {
    board: ProgressBoard,
    plan: u64,
    now: PartsProgress,
    /// Steps that run within one another: a part that is parted again is a step, too. Only the
    /// outermost one counts.
    within: usize,
}

impl PlanProgress {
    /// A step of so many parts and rows begins, until [`PlanProgress::end_step`].
    pub(super) fn begin_step(&mut self, parts: u64, rows: Option<u64>) {
        self.within += 1;
        if self.within == 1 {
            self.now =
                PartsProgress { step: self.now.step + 1, parts_done: 0, parts, rows_done: 0, rows };
            self.post();
        }
    }

    /// So many rows more were read.
    pub(super) fn read_rows(&mut self, rows: u64) {
        if self.within == 1 {
            let all = self.now.rows.unwrap_or(u64::MAX);
            self.now.rows_done = (self.now.rows_done + rows).min(all);
            self.post();
        }
    }

    pub(super) fn part_ran(&mut self) {
        if self.within == 1 {
            self.now.parts_done += 1;
            self.post();
        }
    }

    /// All that is wanted was read.
    pub(super) fn end_step(&mut self) {
        if self.within == 1 {
            self.now.parts_done = self.now.parts;
            self.now.rows_done = self.now.rows.unwrap_or(self.now.rows_done);
            self.now.rows = Some(self.now.rows_done);
            self.post();
        }
        self.within -= 1;
    }

    /// The step failed.
    pub(super) fn leave_step(&mut self) {
        self.within -= 1;
    }

    fn post(&self) {
        let mut posted = self.board.0.lock();
        // Another statement may have begun since.
        if posted.plan == self.plan {
            posted.progress = Some(self.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_at_the_whole_and_those_within_others_do_not_count() {
        let board = ProgressBoard::default();
        assert_eq!(board.read(), None);
        let mut plan = board.begin();
        plan.begin_step(2, Some(100));
        plan.read_rows(60);
        plan.part_ran();
        plan.begin_step(8, Some(40));
        plan.read_rows(40);
        plan.end_step();
        let half =
            PartsProgress { step: 1, parts_done: 1, parts: 2, rows_done: 60, rows: Some(100) };
        assert_eq!(board.read(), Some(half));
        plan.end_step();
        assert_eq!(board.read(), Some(PartsProgress { parts_done: 2, rows_done: 100, ..half }));
        plan.begin_step(1, None);
        plan.read_rows(7);
        assert_eq!(
            board.read(),
            Some(PartsProgress { step: 2, parts_done: 0, parts: 1, rows_done: 7, rows: None })
        );
        plan.end_step();
        assert_eq!(board.read().map(|of| (of.step, of.rows)), Some((2, Some(7))));
    }

    #[test]
    fn what_began_last_is_posted() {
        let board = ProgressBoard::default();
        let (mut first, mut second) = (board.begin(), board.begin());
        first.begin_step(3, None);
        assert_eq!(board.read(), None);
        second.begin_step(5, None);
        first.part_ran();
        assert_eq!(board.read().map(|of| (of.parts_done, of.parts)), Some((0, 5)));
    }
}
