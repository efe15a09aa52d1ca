//! Joins of sides that do not fit and that a hash of the keys does not part as they are: inner ones
//! without equal keys run block by block, NOT IN without nulls becomes an anti join.

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::JoinType;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Aggregate, Filter, Join, LogicalPlan, lit};

use super::chunks::PartInput;
use super::group::DividedRows;
use super::operators::joined;
use super::stored::StoredRows;
use super::{Divider, nothing};
use crate::error::{Error, Result};
use crate::io::DOWNLOAD_ROWS;
use crate::plan::{ByteCount, JoinSide, placeholder};

impl Divider<'_> {
    /// The rows from a place on that stand beside chunks.
    fn block(&self, join: &Join, stored: &StoredRows, at: usize) -> StoredRows {
        let most = usize::try_from(self.budget.side_rows(join)).unwrap_or(usize::MAX);
        stored.some(at, self.budget.side).range(0, most)
    }

    /// An inner join of sides that do not fit: each chunk of one beside all of the other, block by
    /// block.
    pub(super) async fn pairwise(
        &mut self,
        join: &Join,
        left: DividedRows,
        right: DividedRows,
    ) -> Result<DividedRows> {
        self.note_join(join, || "in parts: the sides meet block by block".into());
        let stored = self.collect(&right, 0).await?;
        let (mut at, mut groups) = (0, vec![]);
        while at < stored.rows() {
            let block = self.block(join, &stored, at);
            at += block.rows();
            let block = Arc::new(block);
            for group in &left.groups {
                let mut group = group.clone();
                let beside = placeholder(group.next_input(), &stored.schema);
                group.beside(PartInput::Stored(block.clone()));
                group.plan = joined(join, group.plan.clone(), beside, JoinSide::Right);
                groups.push(group);
            }
        }
        Ok(DividedRows { groups, schema: join.schema.clone() })
    }

    /// NOT IN (…) whose rows do not fit: without a null among them, and a row at all, it is an anti
    /// join of the members that are known.
    ///
    /// # Errors
    /// Of what ran.
    pub(super) async fn not_in(
        &mut self,
        join: &Join,
        left: DividedRows,
        right: DividedRows,
        parts: u32,
    ) -> Result<DividedRows> {
        let (JoinType::LeftAnti, [(member, of_list)]) = (join.join_type, join.on.as_slice()) else {
            return Err(Error::unsupported("NOT IN in parts", "of several columns"));
        };
        let list = DividedRows::stored(self.collect(&right, self.budget.stored).await?);
        let before = self.given.len();
        let input = self.give(list.clone());
        let calls = vec![count(lit(1i64)), count(of_list.clone())];
        let counts = LogicalPlan::Aggregate(Aggregate::try_new(input.into(), vec![], calls)?);
        let division = self.decide(&counts, false)?;
        let counts = self.rows_of(&counts, &division.root).await;
        self.given.truncate(before);
        let counts =
            self.collect(&counts?, self.budget.stored).await?.load()?.to_batches(DOWNLOAD_ROWS)?;
        let number = |column: usize| {
            counts.first().map_or(0, |row| row.column(column).as_primitive::<Int64Type>().value(0))
        };
        let (rows, known) = (number(0), number(1));
        if rows == 0 {
            return Ok(DividedRows { schema: join.schema.clone(), ..left });
        }
        if known < rows {
            return Ok(nothing(&join.schema));
        }
        let schema = left.schema.clone();
        let known = member.clone().is_not_null();
        let left = left.through(&schema, |input| {
            Ok(LogicalPlan::Filter(Filter::new(known.clone(), input.into())))
        })?;
        let bytes: u64 =
            list.groups.iter().flat_map(|group| &group.parts).flatten().map(stored_bytes).sum();
        self.note_join(join, || {
            format!("in parts: the list is {}, without a null", ByteCount(bytes))
        });
        self.by_hash(&Join { null_aware: false, ..join.clone() }, left, list, parts).await
    }
}

fn stored_bytes(input: &PartInput) -> u64 {
    match input {
        PartInput::Stored(stored) => stored.bytes(),
        PartInput::Scan(_) => 0,
    }
}
