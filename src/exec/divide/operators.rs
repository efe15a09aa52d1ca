//! What becomes of each operator where its rows come in parts.

use std::sync::Arc;

use datafusion::common::{DFSchemaRef, JoinType};
use datafusion::logical_expr::{
    Aggregate, Expr, FetchType, Filter, Join, Limit, LogicalPlan, Projection, SkipType,
    SubqueryAlias, TableScan, Union, Unnest, Window,
};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::budget::Budget;
use super::chunks::{OpenedScan, PartInput, row_bytes};
use super::exchange::HashParts;
use super::group::{DividedRows, PartGroup, placeholder};
use super::sinks::{Combined, Combining, RowStore};
use super::stored::StoredRows;
use super::{ByteCount, Divider, arrow, nothing};
use crate::error::{Error, Result};
use crate::plan::{
    PartialAggregate, TablePlaceholder, TwoSteps, by_distinct_values, estimate, identity,
    table_source,
};

/// Parts where nobody knows how many rows there are.
const UNKNOWN_PARTS: u32 = 16;
/// Fewest and most parts that rows are parted into at once.
const LEAST_PARTS: u64 = 2;
const MOST_PARTS: u64 = 256;
/// Parts of partial results that are too many to be merged at once.
pub(super) const PARTIAL_PARTS: u32 = 32;

impl Divider<'_> {
    /// The rows of a plan, of which nothing has run yet but what its operators needed at once.
    ///
    /// # Errors
    /// Of what ran.
    pub(super) fn rows_of<'s>(
        &'s mut self,
        plan: &'s LogicalPlan,
    ) -> BoxFuture<'s, Result<DividedRows>> {
        async move {
            match plan {
                LogicalPlan::TableScan(scan) => match self.given(scan) {
                    Some(rows) => Ok(rows),
                    None => self.scan(scan).await,
                },
                LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => {
                    let group = PartGroup {
                        plan: plan.clone(),
                        driving: None,
                        parts: vec![vec![]],
                        keys: None,
                        whole: None,
                    };
                    Ok(DividedRows { groups: vec![group], schema: plan.schema().clone() })
                }
                LogicalPlan::SubqueryAlias(alias) => {
                    self.rows_of(&alias.input).await?.through(&alias.schema, |input| {
                        Ok(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(
                            Arc::new(input),
                            alias.alias.clone(),
                        )?))
                    })
                }
                LogicalPlan::Projection(project) => {
                    self.rows_of(&project.input).await?.through(&project.schema, |input| {
                        let (exprs, schema) = (project.expr.clone(), project.schema.clone());
                        let project =
                            Projection::try_new_with_schema(exprs, Arc::new(input), schema)?;
                        Ok(LogicalPlan::Projection(project))
                    })
                }
                LogicalPlan::Filter(filter) => {
                    self.rows_of(&filter.input).await?.through(filter.input.schema(), |input| {
                        Ok(LogicalPlan::Filter(Filter::new(
                            filter.predicate.clone(),
                            Arc::new(input),
                        )))
                    })
                }
                LogicalPlan::Unnest(unnest) => {
                    self.rows_of(&unnest.input).await?.through(&unnest.schema, |input| {
                        Ok(LogicalPlan::Unnest(Unnest { input: Arc::new(input), ..unnest.clone() }))
                    })
                }
                LogicalPlan::Union(union) => self.union(union).await,
                LogicalPlan::Join(join) => self.join(join).await,
                LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate).await,
                LogicalPlan::Distinct(_) => {
                    let input = self.rows_of(plan.inputs()[0]).await?;
                    self.in_two_steps(input, &TwoSteps::Distinct).await
                }
                LogicalPlan::Sort(sort) => self.sort(sort).await,
                LogicalPlan::Limit(limit) => self.limit(limit).await,
                LogicalPlan::Window(window) => self.window(window).await,
                other => Err(Error::unsupported("in parts", other.display().to_string())),
            }
        }
        .boxed()
    }

    async fn scan(&mut self, scan: &TableScan) -> Result<DividedRows> {
        let of_table = self.filters.iter().filter(|(table, _)| *table == identity(scan));
        let filters: Vec<_> = of_table.map(|(_, filters)| filters.clone()).collect();
        let opened = Arc::new(
            OpenedScan::open(self.state, scan, self.tables, &filters, &self.opened).await?,
        );
        self.opened.push(opened.clone());
        // Another provider's columns are the scan's.
        let schema = match crate::plan::is_foreign(scan) {
            true => arrow(&scan.projected_schema),
            false => table_source(scan, self.tables).schema(),
        };
        let template = OpenedScan::template(scan, TablePlaceholder::source(0, schema));
        let group = PartGroup {
            plan: LogicalPlan::TableScan(template),
            driving: Some(0),
            parts: vec![vec![PartInput::Scan(opened)]],
            keys: None,
            whole: None,
        };
        Ok(DividedRows { groups: vec![group], schema: scan.projected_schema.clone() })
    }

    async fn union(&mut self, union: &Union) -> Result<DividedRows> {
        let mut groups = vec![];
        for input in &union.inputs {
            let rows = self.rows_of(input).await?.through(&union.schema, |input| {
                let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
                let project = Projection::try_new_with_schema(
                    columns,
                    Arc::new(input),
                    union.schema.clone(),
                )?;
                Ok(LogicalPlan::Projection(project))
            })?;
            groups.extend(rows.groups);
        }
        Ok(DividedRows { groups, schema: union.schema.clone() })
    }

    async fn limit(&mut self, limit: &Limit) -> Result<DividedRows> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Err(Error::unsupported("LIMIT", "its count is not a constant"));
        };
        let rows = self.rows_of(&limit.input).await?;
        let kept = RowStore::new(self.engine, &rows.schema, self.budget.stored);
        let mut kept = kept.limited(skip, fetch.unwrap_or(usize::MAX));
        self.run_parts(&rows, &mut kept).await?;
        Ok(DividedRows::stored(kept.finish()))
    }

    /// An operator in two steps: over each chunk, and over what these yield.
    pub(super) async fn in_two_steps(
        &mut self,
        input: DividedRows,
        steps: &TwoSteps,
    ) -> Result<DividedRows> {
        let input = match input.groups.is_empty() {
            // An aggregate without groups is a row even of nothing.
            true => self.no_rows(&input.schema),
            false => input,
        };
        let schema = steps.partial(input.groups[0].plan.clone())?.schema().clone();
        let partial = input.through(&schema, |input| steps.partial(input))?;
        let merge = self.prepared(&steps.merged(placeholder(0, &schema))?)?;
        let keys = steps.keys(&schema);
        let by = keys.clone().map(|keys| HashParts { keys, parts: PARTIAL_PARTS, round: 0 });
        let mut combining = Combining::new(self.engine, &schema, merge, by, self.budget.stored);
        self.run_parts(&partial, &mut combining).await?;
        let plan = steps.finished(placeholder(0, &schema))?;
        let finished = plan.schema().clone();
        let group = match combining.finish()? {
            Combined::Together(stored) if stored.rows() == 0 => return Ok(nothing(&finished)),
            Combined::Together(stored) => {
                let (parts, keys) =
                    (vec![vec![PartInput::Stored(Arc::new(stored))]], keys.map(|keys| vec![keys]));
                PartGroup { plan, driving: None, parts, keys, whole: None }
            }
            Combined::Parted(parts, by) => {
                self.engine.device.note(|| {
                    format!("divided: partial results are parted into {} parts", by.parts)
                });
                let parts = parts.into_iter().filter(|part| part.rows() > 0);
                let parts = parts.map(|part| vec![PartInput::Stored(part)]).collect();
                PartGroup { plan, driving: None, parts, keys: Some(vec![by.keys]), whole: None }
            }
        };
        Ok(DividedRows::of(group, &finished))
    }

    /// One part without rows.
    fn no_rows(&self, schema: &DFSchemaRef) -> DividedRows {
        let stored = Arc::new(StoredRows::new(&self.engine.device, schema));
        let (plan, parts) = (placeholder(0, schema), vec![vec![PartInput::Stored(stored)]]);
        let group = PartGroup { plan, driving: Some(0), parts, keys: None, whole: None };
        DividedRows { groups: vec![group], schema: schema.clone() }
    }

    async fn aggregate(&mut self, aggregate: &Aggregate) -> Result<DividedRows> {
        if let Some(partial) = PartialAggregate::of(aggregate) {
            let input = self.rows_of(&aggregate.input).await?;
            return self.in_two_steps(input, &TwoSteps::Aggregate(Box::new(partial))).await;
        }
        if let Some(plan) = by_distinct_values(aggregate)? {
            return self.rows_of(&plan).await;
        }
        let input = self.rows_of(&aggregate.input).await?;
        let keys = match aggregate.group_expr.as_slice() {
            [Expr::GroupingSet(_)] => vec![],
            keys => keys.to_vec(),
        };
        self.by_keys(&aggregate.input, input, keys, &aggregate.schema, |input| {
            let Aggregate { group_expr, aggr_expr, schema, .. } = aggregate.clone();
            let input = Arc::new(input);
            Ok(LogicalPlan::Aggregate(Aggregate::try_new_with_schema(
                input, group_expr, aggr_expr, schema,
            )?))
        })
        .await
    }

    async fn window(&mut self, window: &Window) -> Result<DividedRows> {
        let input = self.rows_of(&window.input).await?;
        if self.in_order {
            return self.windows_in_order(window, input).await;
        }
        let keys = common_partition(&window.window_expr);
        self.by_keys(&window.input, input, keys, &window.schema, |input| {
            let (exprs, schema) = (window.window_expr.clone(), window.schema.clone());
            Ok(LogicalPlan::Window(Window::try_new_with_schema(exprs, Arc::new(input), schema)?))
        })
        .await
    }

    /// An operator that needs all rows of equal keys at once; without keys all rows.
    async fn by_keys(
        &mut self,
        of: &LogicalPlan,
        input: DividedRows,
        keys: Vec<Expr>,
        schema: &DFSchemaRef,
        operator: impl Fn(LogicalPlan) -> Result<LogicalPlan>,
    ) -> Result<DividedRows> {
        let plan = operator(placeholder(0, &input.schema))?;
        let (parts, keys) = match keys.is_empty() {
            true => (vec![Arc::new(self.collect(&input, self.budget.stored).await?)], None),
            false => {
                let parts = self.parts_of(self.expected_bytes(of));
                self.engine.device.note(|| {
                    format!("divided: rows are parted by a hash of their keys, into {parts} parts")
                });
                let by = HashParts { keys: keys.clone(), parts, round: 0 };
                let parts = self.parted(&input, by).await?;
                (parts.into_iter().filter(|part| part.rows() > 0).collect(), Some(vec![keys]))
            }
        };
        let parts = parts.into_iter().map(|part| vec![PartInput::Stored(part)]).collect();
        let whole = Some(Arc::new(plan.clone()));
        Ok(DividedRows::of(PartGroup { plan, driving: None, parts, keys, whole }, schema))
    }

    /// Bytes that the rows of a plan are expected to take on the device.
    pub(super) fn expected_bytes(&self, plan: &LogicalPlan) -> Option<u64> {
        let rows = estimate(plan, self.tables)?.rows;
        Some((rows * row_bytes(&arrow(plan.schema())) as f64) as u64)
    }

    /// Into how many parts rows of so many bytes are parted.
    fn parts_of(&self, bytes: Option<u64>) -> u32 {
        parts_of(&self.budget, bytes)
    }

    async fn join(&mut self, join: &Join) -> Result<DividedRows> {
        let mut left = self.rows_of(&join.left).await?;
        let mut right = self.rows_of(&join.right).await?;
        let expected = (self.expected_bytes(&join.left), self.expected_bytes(&join.right));
        // The side that is expected to be smaller first.
        let right_first = expected.1.unwrap_or(0) <= expected.0.unwrap_or(u64::MAX);
        for holds_right in [right_first, !right_first] {
            let (goes_by, bytes) = match holds_right {
                true => (left_goes_by(join.join_type), expected.1),
                false => (right_goes_by(join.join_type), expected.0),
            };
            // Nobody knows better where the rows are unknown; what is far too large is parted.
            let hopeless =
                !join.on.is_empty() && bytes.is_some_and(|bytes| bytes / 4 > self.budget.side);
            if !goes_by || hopeless {
                continue;
            }
            let side = if holds_right { &mut right } else { &mut left };
            let stored = self.collect(side, self.budget.side).await?;
            if stored.bytes() <= self.budget.side
                && stored.rows() as u64 <= self.budget.side_rows(join)
            {
                self.note(join, || {
                    let side = if holds_right { "right" } else { "left" };
                    format!(
                        "its {side} side, {}, stands beside each part of the other",
                        ByteCount(stored.bytes())
                    )
                });
                return self.beside(join, left, right, stored, holds_right);
            }
            *side = DividedRows::stored(stored);
        }
        if join.null_aware {
            return self.not_in(join, left, right).await;
        }
        if join.on.is_empty() {
            return self.pairwise(join, left, right).await;
        }
        self.by_hash(join, left, right, expected).await
    }

    /// A join by equal keys, of sides that do not fit.
    pub(super) async fn by_hash(
        &mut self,
        join: &Join,
        left: DividedRows,
        right: DividedRows,
        expected: (Option<u64>, Option<u64>),
    ) -> Result<DividedRows> {
        let sizes = (stored_bytes(&left).or(expected.0), stored_bytes(&right).or(expected.1));
        let parts = self.parts_of(sizes.0.zip(sizes.1).map(|(left, right)| left + right));
        self.note(join, || {
            format!("both sides are parted by a hash of their keys, into {parts} parts")
        });
        let keys: (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
        let of_left =
            self.parted(&left, HashParts { keys: keys.0.clone(), parts, round: 0 }).await?;
        drop(left.groups);
        let of_right =
            self.parted(&right, HashParts { keys: keys.1.clone(), parts, round: 0 }).await?;
        let driving = match join.join_type {
            of if left_goes_by(of) => Some(0),
            of if right_goes_by(of) => Some(1),
            _ => None,
        };
        let pairs = of_left
            .into_iter()
            .zip(of_right)
            .filter(|(left, right)| left.rows() > 0 || right.rows() > 0);
        let parts = pairs
            .map(|(left, right)| vec![PartInput::Stored(left), PartInput::Stored(right)])
            .collect();
        let plan = LogicalPlan::Join(Join {
            left: Arc::new(placeholder(0, &left.schema)),
            right: Arc::new(placeholder(1, &right.schema)),
            ..join.clone()
        });
        let group =
            PartGroup { plan, driving, parts, keys: Some(vec![keys.0, keys.1]), whole: None };
        Ok(DividedRows::of(group, &join.schema))
    }

    /// Notes how a join is divided, while somebody records.
    pub(super) fn note(&self, join: &Join, how: impl FnOnce() -> String) {
        let device = &self.engine.device;
        let _operator = device.operator(|| LogicalPlan::Join(join.clone()).display().to_string());
        device.note(|| format!("divided: {}", how()));
    }

    /// A join of which one side stands whole beside each chunk of the other.
    fn beside(
        &mut self,
        join: &Join,
        left: DividedRows,
        right: DividedRows,
        stored: StoredRows,
        holds_right: bool,
    ) -> Result<DividedRows> {
        let schema = stored.schema.clone();
        // One block, so that it is not put together for each part.
        let mut whole = StoredRows::new(&self.engine.device, &schema);
        whole.blocks.push(super::stored::StoredBlock::Device(stored.load()?));
        drop(stored);
        let whole = Arc::new(whole);
        let mut rows = if holds_right { left } else { right };
        for group in &mut rows.groups {
            let beside = placeholder(group.next_input(), &schema);
            group.beside(PartInput::Stored(whole.clone()));
            group.plan = joined(join, group.plan.clone(), beside, holds_right);
        }
        self.budget =
            Budget { reads_ahead: self.budget.reads_ahead, ..Budget::of(&self.engine.device) };
        Ok(DividedRows { schema: join.schema.clone(), ..rows })
    }
}

/// Into how many parts rows of so many bytes are parted.
pub(super) fn parts_of(budget: &Budget, bytes: Option<u64>) -> u32 {
    match bytes {
        Some(bytes) => (bytes / budget.part.max(1) + 1)
            .next_power_of_two()
            .clamp(LEAST_PARTS, MOST_PARTS) as u32,
        None => UNKNOWN_PARTS,
    }
}

pub(super) fn joined(
    join: &Join,
    rows: LogicalPlan,
    beside: LogicalPlan,
    holds_right: bool,
) -> LogicalPlan {
    let (left, right) = if holds_right { (rows, beside) } else { (beside, rows) };
    LogicalPlan::Join(Join { left: Arc::new(left), right: Arc::new(right), ..join.clone() })
}

/// Bytes of rows that are stored already.
fn stored_bytes(rows: &DividedRows) -> Option<u64> {
    match rows.groups.as_slice() {
        [] => Some(0),
        [group] => match group.parts.as_slice() {
            [part] => match part.as_slice() {
                [PartInput::Stored(stored)] if matches!(group.plan, LogicalPlan::TableScan(_)) => {
                    Some(stored.bytes())
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Whether the left rows of a join may come in chunks, beside all right ones.
pub(super) fn left_goes_by(of: JoinType) -> bool {
    matches!(
        of,
        JoinType::Inner
            | JoinType::Left
            | JoinType::LeftSemi
            | JoinType::LeftAnti
            | JoinType::LeftMark
    )
}

/// Whether the right rows of a join may come in chunks, beside all left ones.
pub(super) fn right_goes_by(of: JoinType) -> bool {
    matches!(
        of,
        JoinType::Inner
            | JoinType::Right
            | JoinType::RightSemi
            | JoinType::RightAnti
            | JoinType::RightMark
    )
}

/// The expressions by which all window calls partition their rows.
pub(super) fn common_partition(calls: &[Expr]) -> Vec<Expr> {
    let of = |call: &Expr| match call.clone().unalias() {
        Expr::WindowFunction(call) => call.params.partition_by.clone(),
        _ => vec![],
    };
    let Some((first, more)) = calls.split_first() else { return vec![] };
    let in_all = |key: &Expr| more.iter().all(|call| of(call).contains(key));
    of(first).into_iter().filter(in_all).collect()
}
