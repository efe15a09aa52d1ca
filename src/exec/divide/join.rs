//! Joins that cannot be parted by keys, of sides that do not fit: block by block.
//!
//! ```text
//!   pairs       a block of one side meets the other chunk by chunk
//!   found       the numbers of the block's rows that met one, of all chunks
//!   the others  the block's rows whose numbers are not among these: with nulls beside them (outer),
//!               alone (anti), left out (semi), or marked
//! ```

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::{DFSchemaRef, JoinConstraint, JoinType, ScalarValue};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{Aggregate, Expr, Filter, Join, LogicalPlan, Projection, Window, lit};

use super::group::{DividedRows, PartGroup, PartInput, placeholder};
use super::operators::joined;
use super::run::run_over;
use super::stored::{StoredRows, downloaded};
use super::window::unqualified;
use super::{ByteCount, Divider, nothing};
use crate::error::{Error, Result};
use crate::exec::join::not_in_some;
use crate::io::DOWNLOAD_ROWS;
use crate::plan::{TwoSteps, projected};

/// The column that numbers the rows of a block, and the same of those that were found.
const NUMBER: &str = "number in the block";
const FOUND: &str = "number of a found row";

impl Divider<'_> {
    /// A join of sides that do not fit, whatever its condition.
    ///
    /// # Errors
    /// Of what ran.
    pub(super) async fn in_blocks(
        &mut self,
        join: &Join,
        left: DividedRows,
        right: DividedRows,
    ) -> Result<DividedRows> {
        use JoinType::*;
        self.note(join, || "the sides meet block by block".into());
        if join.join_type == Inner {
            return self.pairwise(join, left, right).await;
        }
        let left = Arc::new(self.collect(&left, 0).await?);
        let right = Arc::new(self.collect(&right, 0).await?);
        let swapped = Join {
            on: join.on.iter().map(|(left, right)| (right.clone(), left.clone())).collect(),
            join_type: join.join_type.swap(),
            ..join.clone()
        };
        let groups = match join.join_type {
            Left | LeftSemi | LeftAnti | LeftMark => self.blocks(join, join.join_type, &left, &right).await?,
            Right | RightSemi | RightAnti | RightMark => {
                self.blocks(&swapped, swapped.join_type, &right, &left).await?
            }
            _ => {
                let mut groups = self.blocks(join, Left, &left, &right).await?;
                groups.extend(self.blocks(&swapped, LeftAnti, &right, &left).await?);
                groups
            }
        };
        Ok(DividedRows { groups, schema: join.schema.clone() })
    }

    /// What blocks of the one side, whose rows are kept, yield beside all of the other.
    async fn blocks(
        &mut self,
        join: &Join,
        join_type: JoinType,
        kept: &StoredRows,
        other: &Arc<StoredRows>,
    ) -> Result<Vec<PartGroup>> {
        let (mut at, mut groups) = (0, vec![]);
        let number = Expr::from(WindowFunction::new(row_number_udwf(), vec![])).alias(NUMBER);
        let numbered = Window::try_new(vec![number], placeholder(0, &kept.schema).into())?;
        let (numbered, plan) = (numbered.schema.clone(), self.prepared(&LogicalPlan::Window(numbered))?);
        let of = |join_type| JoinBlock { join, join_type, kept: kept.schema.clone(), numbered: numbered.clone() };
        while at < kept.rows() {
            let block = self.block(join_type, kept, at);
            at += block.rows();
            let rows = run_over(self.engine, &plan, &[block.relation()?])?;
            let rows =
                StoredRows { blocks: vec![downloaded(&rows)?], ..StoredRows::new(&self.engine.device, &numbered) };
            let rows = PartInput::Stored(Arc::new(rows));
            drop(block);
            let beside = vec![vec![rows.clone(), PartInput::Stored(other.clone())]];
            let group =
                |plan, driving, parts| PartGroup { plan, driving: Some(driving), parts, keys: None, whole: None };
            let found = of(join_type).found(&other.schema)?;
            let schema = found.schema().clone();
            let found = DividedRows::of(group(found, 1, beside.clone()), &schema);
            let found = self.in_two_steps(found, &TwoSteps::Distinct).await?;
            let found = self.collect(&found, self.budget.stored).await?;
            let schema = found.schema.clone();
            if join_type == JoinType::Left {
                groups.push(group(of(JoinType::Inner).pairs(&other.schema)?, 1, beside));
            }
            let parts = vec![vec![rows, PartInput::Stored(Arc::new(found))]];
            groups.push(group(of(join_type).rest(&schema)?, 0, parts));
        }
        Ok(groups)
    }

    /// The rows from a place on that stand beside chunks.
    fn block(&self, of: JoinType, stored: &StoredRows, at: usize) -> StoredRows {
        let most = usize::try_from(self.budget.block_rows(of)).unwrap_or(usize::MAX);
        stored.some(at, self.budget.side).range(0, most)
    }

    /// An inner join of sides that do not fit: each chunk of one beside all of the other, block by block.
    async fn pairwise(&mut self, join: &Join, left: DividedRows, right: DividedRows) -> Result<DividedRows> {
        let stored = self.collect(&right, 0).await?;
        let (mut at, mut groups) = (0, vec![]);
        while at < stored.rows() {
            let block = self.block(JoinType::Inner, &stored, at);
            at += block.rows();
            let block = Arc::new(block);
            for group in &left.groups {
                let mut group = group.clone();
                let beside = placeholder(group.next_input(), &stored.schema);
                group.beside(PartInput::Stored(block.clone()));
                group.plan = joined(join, group.plan.clone(), beside, true);
                groups.push(group);
            }
        }
        Ok(DividedRows { groups, schema: join.schema.clone() })
    }

    /// NOT IN (…) whose rows do not fit: without a null among them, and a row at all, it is an anti join
    /// of the members that are known.
    ///
    /// # Errors
    /// Of what ran.
    pub(super) async fn not_in(&mut self, join: &Join, left: DividedRows, right: DividedRows) -> Result<DividedRows> {
        if let Some(filter) = &join.filter {
            return self.in_blocks(&not_in_some(join, filter), left, right).await;
        }
        let (JoinType::LeftAnti, [(member, of_list)]) = (join.join_type, join.on.as_slice()) else {
            return Err(Error::unsupported("NOT IN in parts", "of several columns"));
        };
        let list = DividedRows::stored(self.collect(&right, self.budget.stored).await?);
        let before = self.given.len();
        let input = self.give(list.clone());
        let calls = vec![count(lit(1i64)), count(of_list.clone())];
        let counts = LogicalPlan::Aggregate(Aggregate::try_new(input.into(), vec![], calls)?);
        let counts = self.rows_of(&counts).await;
        self.given.truncate(before);
        let counts = self.collect(&counts?, self.budget.stored).await?.load()?.to_batches(DOWNLOAD_ROWS)?;
        let number =
            |column: usize| counts.first().map_or(0, |row| row.column(column).as_primitive::<Int64Type>().value(0));
        let (rows, known) = (number(0), number(1));
        if rows == 0 {
            return Ok(DividedRows { schema: join.schema.clone(), ..left });
        }
        if known < rows {
            return Ok(nothing(&join.schema));
        }
        let schema = left.schema.clone();
        let known = member.clone().is_not_null();
        let left = left.through(&schema, |input| Ok(LogicalPlan::Filter(Filter::new(known.clone(), input.into()))))?;
        let bytes: u64 = list.groups.iter().flat_map(|group| &group.parts).flatten().map(stored_bytes).sum();
        self.note(join, || format!("the list is {}, without a null", ByteCount(bytes)));
        let expected = (self.expected_bytes(&join.left), Some(bytes));
        self.by_hash(&Join { null_aware: false, ..join.clone() }, left, list, expected).await
    }
}

fn stored_bytes(input: &PartInput) -> u64 {
    match input {
        PartInput::Stored(stored) => stored.bytes(),
        PartInput::Scan(_) => 0,
    }
}

/// Plans over a block's numbered rows, and something beside it.
struct JoinBlock<'a> {
    join: &'a Join,
    join_type: JoinType,
    /// The side's schema, and the same with the number.
    kept: DFSchemaRef,
    numbered: DFSchemaRef,
}

impl JoinBlock<'_> {
    fn beside(
        &self,
        join_type: JoinType,
        other: &DFSchemaRef,
        on: Vec<(Expr, Expr)>,
        filter: Option<Expr>,
    ) -> Result<LogicalPlan> {
        let (rows, other) = (placeholder(0, &self.numbered), placeholder(1, other));
        let (by, nulls) = (JoinConstraint::On, self.join.null_equality);
        Ok(LogicalPlan::Join(Join::try_new(rows.into(), other.into(), on, filter, join_type, by, nulls, false)?))
    }

    /// The numbers of the rows that meet one of a chunk.
    fn found(&self, other: &DFSchemaRef) -> Result<LogicalPlan> {
        let (on, filter) = (self.join.on.clone(), self.join.filter.clone());
        let met = self.beside(JoinType::LeftSemi, other, on, filter)?;
        let number = vec![unqualified(NUMBER).alias(FOUND)];
        Ok(LogicalPlan::Projection(Projection::try_new(number, met.into())?))
    }

    /// The pairs of the block's rows with those of a chunk.
    fn pairs(&self, other: &DFSchemaRef) -> Result<LogicalPlan> {
        let (on, filter) = (self.join.on.clone(), self.join.filter.clone());
        let pairs = self.beside(JoinType::Inner, other, on, filter)?;
        let exprs = self.join.schema.columns().into_iter().map(Expr::Column).collect();
        projected(pairs, exprs, self.join.schema.clone())
    }

    /// What the rows yield by themselves once it is known which were found.
    fn rest(&self, found: &DFSchemaRef) -> Result<LogicalPlan> {
        let by_number = vec![(unqualified(NUMBER), unqualified(FOUND))];
        let of = match self.join_type {
            JoinType::LeftSemi | JoinType::LeftMark => self.join_type,
            _ => JoinType::LeftAnti,
        };
        let rest = self.beside(of, found, by_number, None)?;
        let schema = &self.join.schema;
        let mark = rest.schema().columns().last().cloned();
        let exprs = schema.iter().map(|(qualifier, field)| {
            let own = self.kept.index_of_column_by_name(qualifier, field.name());
            Ok(match (own, &mark) {
                (Some(at), _) => Expr::Column(self.kept.columns()[at].clone()),
                (None, Some(mark)) if of == JoinType::LeftMark => Expr::Column(mark.clone()),
                _ => Expr::Literal(ScalarValue::try_from(field.data_type())?, None),
            })
        });
        let exprs = exprs.collect::<Result<Vec<_>>>()?;
        projected(rest, exprs, schema.clone())
    }
}
