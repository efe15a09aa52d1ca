//! Operators that need a part whole, which does not fit and cannot be parted: all rows of one key,
//! or rows without keys.
//!
//! Windows go by in order (`window.rs`). Aggregates become windows that find the rows which decide
//! (`plan/ranks.rs`). A range of a sort becomes smaller ranges.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Aggregate, LogicalPlan, Sort, TableScan};

use super::Divider;
use super::chunks::PartInput;
use super::group::{DividedRows, PartGroup};
use super::sinks::RowSink;
use super::stored::StoredRows;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::{LEAST_ROWS, by_ranks, placeholder, placeholder_number};

/// What a range's bytes are divided by, of which half are in a smaller range.
const SMALLER_RANGES: u64 = 4;

impl Divider<'_> {
    /// Runs a part of which an operator does not fit: that in another way, and over its rows the
    /// rest of the group's plan.
    ///
    /// # Errors
    /// `failed` where there is no other way.
    pub(super) async fn run_otherwise(
        &mut self,
        group: &PartGroup,
        operator: &Arc<LogicalPlan>,
        part: &[PartInput],
        failed: Error,
        sink: &mut dyn RowSink,
    ) -> Result<()> {
        let stored = |at: usize| match part.get(at) {
            Some(PartInput::Stored(stored)) => Ok(DividedRows::stored(stored.as_ref().clone())),
            _ => Err(Error::internal("a part of a table's rows")),
        };
        let rows = match operator.as_ref() {
            LogicalPlan::Window(window) => self.windows_in_order(window, stored(0)?).await,
            LogicalPlan::Aggregate(aggregate) => {
                self.aggregate_in_order(aggregate, stored(0)?).await
            }
            LogicalPlan::Sort(sort) => self.in_smaller_ranges(sort, stored(0)?).await,
            _ => return Err(failed),
        };
        let rows = match rows {
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => {
                return Err(failed);
            }
            rows => rows?,
        };
        let result = Arc::new(self.collect(&rows, self.budget.stored).await?);
        drop(rows);
        let mut part = part.to_vec();
        for (at, input) in operator.inputs().into_iter().enumerate() {
            part[at] =
                PartInput::Stored(Arc::new(StoredRows::new(&self.engine.device, input.schema())));
        }
        part[0] = PartInput::Stored(result);
        let schema = operator.schema();
        let plan = group.plan.clone().transform_down(|node| match node == **operator {
            true => Ok(Transformed::new(placeholder(0, schema), true, TreeNodeRecursion::Jump)),
            false => Ok(Transformed::no(node)),
        })?;
        let rest = PartGroup {
            plan: plan.data,
            driving: Some(0),
            parts: vec![part],
            keys: None,
            whole: None,
        };
        let schema = rest.plan.schema().clone();
        self.run_parts(&DividedRows::of(rest, &schema), sink).await
    }

    /// A range of a sort that does not fit.
    async fn in_smaller_ranges(&mut self, sort: &Sort, range: DividedRows) -> Result<DividedRows> {
        let stored = || range.groups.iter().flat_map(|group| &group.parts).flatten();
        let of = |input: &PartInput| match input {
            PartInput::Stored(stored) => (stored.rows() as u64, stored.bytes()),
            PartInput::Scan(_) => (0, 0),
        };
        let (rows, bytes) = stored().map(of).fold((0, 0), |all, of| (all.0 + of.0, all.1 + of.1));
        if rows <= LEAST_ROWS {
            return Err(Error::unsupported("a sort in parts", "of so few rows"));
        }
        let part = std::mem::replace(&mut self.budget.part, (bytes / SMALLER_RANGES).max(1));
        let sorted = self.sorted(&range, &sort.expr).await;
        self.budget.part = part;
        let sorted = sorted?;
        // The keys of the sample may all be equal: then one range has all the rows.
        let is_as_large = |group: &PartGroup| {
            group.whole.is_some() && group.parts.iter().flatten().any(|part| of(part).0 >= rows)
        };
        match sorted.groups.iter().any(is_as_large) {
            true => {
                Err(Error::unsupported("a sort in parts", "of rows that no key of a sample parts"))
            }
            false => Ok(sorted),
        }
    }

    /// An aggregation of which one group does not fit.
    async fn aggregate_in_order(
        &mut self,
        aggregate: &Aggregate,
        input: DividedRows,
    ) -> Result<DividedRows> {
        // An aggregation by ranks leaves few rows of a group. Those are not ranked again: it would
        // not end.
        if input.rows_read().is_some_and(|rows| rows <= LEAST_ROWS) {
            return Err(Error::unsupported("an aggregation in parts", "of so few rows"));
        }
        let before = self.given.len();
        let input = self.give(input);
        let Aggregate { group_expr, aggr_expr, schema, .. } = aggregate.clone();
        let plan = by_ranks(&Aggregate::try_new_with_schema(
            input.into(),
            group_expr,
            aggr_expr,
            schema,
        )?)?;
        let plan = plan.ok_or_else(|| {
            Error::unsupported("in parts", "calls that take all values of a group at once")
        })?;
        let rows = self.rows_in_order(&plan).await;
        self.given.truncate(before);
        rows
    }

    /// The rows of a plan whose windows have partitions that do not fit.
    async fn rows_in_order(&mut self, plan: &LogicalPlan) -> Result<DividedRows> {
        let division = self.decide(plan, true)?;
        self.rows_of(plan, &division.root).await
    }

    /// What stands in a plan for rows that are given.
    pub(super) fn give(&mut self, rows: DividedRows) -> LogicalPlan {
        let scan = placeholder(self.tables.len() + self.given.len(), &rows.schema);
        self.given.push(rows);
        scan
    }

    /// The rows that were given, if a scan is of these.
    pub(super) fn given(&self, scan: &TableScan) -> Option<DividedRows> {
        let number = placeholder_number(&scan.source)?.checked_sub(self.tables.len())?;
        self.given.get(number).cloned()
    }
}
