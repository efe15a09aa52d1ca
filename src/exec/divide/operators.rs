//! What becomes of each operator where its rows come in parts.

use std::sync::Arc;

use datafusion::common::DFSchemaRef;
use datafusion::logical_expr::{
    Expr, FetchType, Join, Limit, LogicalPlan, Projection, SkipType, TableScan, Union,
};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::chunks::{OpenedScan, PartInput};
use super::exchange::HashParts;
use super::group::{DividedRows, PartGroup};
use super::sinks::{Combined, Combining, RowStore};
use super::stored::StoredRows;
use super::{Divider, arrow, nothing};
use crate::error::{Error, Result};
use crate::plan::{
    Budget, ByteCount, DividedOperator, JoinSide, JoinWay, PARTIAL_PARTS, TablePlaceholder,
    TwoSteps, Way, identity, over, parts_of, placeholder, table_source,
};

impl Divider<'_> {
    /// The rows of a plan, of which nothing has run yet but what its operators needed at once.
    ///
    /// # Errors
    /// Of what ran.
    pub(super) fn rows_of<'s>(
        &'s mut self,
        plan: &'s LogicalPlan,
        division: &'s DividedOperator,
    ) -> BoxFuture<'s, Result<DividedRows>> {
        async move {
            if let Some(text) = division.way.text() {
                self.note(plan, || format!("divided: {text}"));
            }
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
                LogicalPlan::SubqueryAlias(_)
                | LogicalPlan::Projection(_)
                | LogicalPlan::Filter(_)
                | LogicalPlan::Unnest(_) => self
                    .rows_of(plan.inputs()[0], division.input(0)?)
                    .await?
                    .through(plan.schema(), |input| over(plan, input)),
                LogicalPlan::Union(union) => self.union(union, division).await,
                LogicalPlan::Limit(limit) => self.limit(limit, division).await,
                LogicalPlan::Join(join) => self.join(join, division).await,
                LogicalPlan::Sort(_)
                | LogicalPlan::Aggregate(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::Window(_) => self.of_all_rows(plan, division).await,
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

    async fn union(&mut self, union: &Union, division: &DividedOperator) -> Result<DividedRows> {
        let mut groups = vec![];
        for (number, input) in union.inputs.iter().enumerate() {
            let rows = self.rows_of(input, division.input(number)?).await?.through(
                &union.schema,
                |input| {
                    let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
                    let project = Projection::try_new_with_schema(
                        columns,
                        Arc::new(input),
                        union.schema.clone(),
                    )?;
                    Ok(LogicalPlan::Projection(project))
                },
            )?;
            groups.extend(rows.groups);
        }
        Ok(DividedRows { groups, schema: union.schema.clone() })
    }

    async fn limit(&mut self, limit: &Limit, division: &DividedOperator) -> Result<DividedRows> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return Err(Error::unsupported("LIMIT", "its count is not a constant"));
        };
        let rows = self.rows_of(&limit.input, division.input(0)?).await?;
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
        let by = keys.clone().map(|keys| HashParts {
            keys,
            parts: PARTIAL_PARTS,
            round: 0,
            seed: self.seed,
        });
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
                    format!("in parts: partial results are parted into {} parts", by.parts)
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

    /// An operator that takes all rows, or all of equal keys, at once.
    async fn of_all_rows(
        &mut self,
        plan: &LogicalPlan,
        division: &DividedOperator,
    ) -> Result<DividedRows> {
        if let Way::DistinctFirst(instead) = &division.way {
            return self.rows_of(&instead.0, &instead.1).await;
        }
        let input = self.rows_of(plan.inputs()[0], division.input(0)?).await?;
        match (&division.way, plan) {
            (Way::TwoSteps { steps, .. }, _) => self.in_two_steps(input, steps).await,
            (Way::ByKeys { keys, parts }, _) => {
                self.by_keys(plan, input, keys.clone(), *parts).await
            }
            (Way::AllRows(_), _) => {
                let stored = self.collect(&input, self.budget.stored).await?;
                self.over_parts(plan, &input.schema, vec![Arc::new(stored)], None)
            }
            (Way::Ranges { .. }, LogicalPlan::Sort(sort)) => self.sort(sort, input).await,
            (Way::InOrder, LogicalPlan::Window(window)) => {
                self.windows_in_order(window, input).await
            }
            (way, plan) => Err(Error::internal(format!("{} divided as {way:?}", plan.display()))),
        }
    }

    /// An operator that needs all rows of equal keys at once.
    async fn by_keys(
        &mut self,
        operator: &LogicalPlan,
        input: DividedRows,
        keys: Vec<Expr>,
        parts: u32,
    ) -> Result<DividedRows> {
        let by = HashParts { keys: keys.clone(), parts, round: 0, seed: self.seed };
        let parts = self.parted(&input, by).await?;
        let parts = parts.into_iter().filter(|part| part.rows() > 0).collect();
        self.over_parts(operator, &input.schema, parts, Some(vec![keys]))
    }

    /// An operator over parts of its input, each of which has all rows of its keys.
    fn over_parts(
        &self,
        operator: &LogicalPlan,
        input: &DFSchemaRef,
        parts: Vec<Arc<StoredRows>>,
        keys: Option<Vec<Vec<Expr>>>,
    ) -> Result<DividedRows> {
        let plan = over(operator, placeholder(0, input))?;
        let parts = parts.into_iter().map(|part| vec![PartInput::Stored(part)]).collect();
        let whole = Some(Arc::new(plan.clone()));
        let group = PartGroup { plan, driving: None, parts, keys, whole };
        Ok(DividedRows::of(group, operator.schema()))
    }

    async fn join(&mut self, join: &Join, division: &DividedOperator) -> Result<DividedRows> {
        let Way::Join(way) = &division.way else {
            return Err(Error::internal("a join is divided as no join"));
        };
        let mut left = self.rows_of(&join.left, division.input(0)?).await?;
        let mut right = self.rows_of(&join.right, division.input(1)?).await?;
        for side in way.sides.iter().copied() {
            let of_side = side.of((&mut left, &mut right));
            let stored = self.collect(of_side, self.budget.side).await?;
            let fits = stored.bytes() <= self.budget.side
                && stored.rows() as u64 <= self.budget.side_rows(join);
            self.note_join(join, || {
                let so = if fits { "it fits" } else { "it does not fit" };
                format!("in parts: its {side} side has {}: {so}", ByteCount(stored.bytes()))
            });
            if fits {
                return self.beside(join, left, right, stored, side);
            }
            *of_side = DividedRows::stored(stored);
        }
        match way.otherwise {
            JoinWay::Hash { parts } => self.by_hash(join, left, right, parts).await,
            JoinWay::NotIn { parts } => self.not_in(join, left, right, parts).await,
            JoinWay::Blocks => self.pairwise(join, left, right).await,
            JoinWay::Refused => Err(self.refused(join)),
        }
    }

    /// Why a join of which no side fits is not divided.
    fn refused(&self, join: &Join) -> Error {
        match join.null_aware {
            true => Error::unsupported("NOT IN in parts", "of rows that depend on the outer row"),
            false => {
                let what = format!("{} join without equal keys", join.join_type);
                Error::unsupported(what, "neither side fits into device memory")
            }
        }
    }

    /// A join by equal keys, of sides that do not fit.
    pub(super) async fn by_hash(
        &mut self,
        join: &Join,
        left: DividedRows,
        right: DividedRows,
        expected: u32,
    ) -> Result<DividedRows> {
        // What is stored already tells better.
        let stored = stored_bytes(&left).zip(stored_bytes(&right));
        let known = stored.map(|(left, right)| parts_of(&self.budget, Some(left + right)));
        let parts = known.unwrap_or(expected);
        self.note_join(join, || {
            format!("in parts: both sides are parted by a hash of their keys, into {parts} parts")
        });
        let keys: (Vec<Expr>, Vec<Expr>) = join.on.iter().cloned().unzip();
        let of_left = self
            .parted(&left, HashParts { keys: keys.0.clone(), parts, round: 0, seed: self.seed })
            .await?;
        drop(left.groups);
        let of_right = self
            .parted(&right, HashParts { keys: keys.1.clone(), parts, round: 0, seed: self.seed })
            .await?;
        let driving = match join.join_type {
            of if JoinSide::Left.goes_by(of) => Some(0),
            of if JoinSide::Right.goes_by(of) => Some(1),
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

    /// Notes something of an operator, while somebody records.
    fn note(&self, operator: &LogicalPlan, what: impl FnOnce() -> String) {
        let device = &self.engine.device;
        let _operator = device.operator(|| operator.display().to_string());
        device.note(what);
    }

    /// As `note`, of a join.
    pub(super) fn note_join(&self, join: &Join, what: impl FnOnce() -> String) {
        let device = &self.engine.device;
        let _operator = device.operator(|| LogicalPlan::Join(join.clone()).display().to_string());
        device.note(what);
    }

    /// A join of which one side stands whole beside each chunk of the other.
    fn beside(
        &mut self,
        join: &Join,
        left: DividedRows,
        right: DividedRows,
        stored: StoredRows,
        held: JoinSide,
    ) -> Result<DividedRows> {
        let schema = stored.schema.clone();
        // One block, so that it is not put together for each part.
        let mut whole = StoredRows::new(&self.engine.device, &schema);
        whole.blocks.push(super::stored::StoredBlock::Device(stored.load()?));
        drop(stored);
        let whole = Arc::new(whole);
        let mut rows = held.other().of((left, right));
        for group in &mut rows.groups {
            let beside = placeholder(group.next_input(), &schema);
            group.beside(PartInput::Stored(whole.clone()));
            group.plan = joined(join, group.plan.clone(), beside, held);
        }
        self.budget =
            Budget { reads_ahead: self.budget.reads_ahead, ..Budget::of(&self.engine.device) };
        Ok(DividedRows { schema: join.schema.clone(), ..rows })
    }
}

pub(super) fn joined(
    join: &Join,
    rows: LogicalPlan,
    beside: LogicalPlan,
    held: JoinSide,
) -> LogicalPlan {
    let (left, right) = match held {
        JoinSide::Right => (rows, beside),
        JoinSide::Left => (beside, rows),
    };
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
