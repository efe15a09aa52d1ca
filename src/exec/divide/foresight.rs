//! What is expected of a plan before it runs: whether it would be divided, and how. EXPLAIN says
//! it.
//!
//! It follows from estimates of rows and from the memory limit, by the rules of `operators.rs`. How
//! a plan runs does not depend on it: it is divided where it finds no memory.

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::{DFSchema, JoinType};
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Aggregate, Expr, Join, LogicalPlan, Sort, TableScan};

use super::budget::Budget;
use super::chunks::{row_bytes, value_bytes};
use super::operators::{PARTIAL_PARTS, common_partition, left_goes_by, parts_of, right_goes_by};
use super::window::goes_in_order;
use super::{ByteCount, arrow};
use crate::column::{Facts, Repr, value_type};
use crate::error::Result;
use crate::exec::Engine;
use crate::io::OfSession;
use crate::plan::{
    DevicePlan, Estimate, Foresight, OperatorForesight, PartialAggregate, PlanTable,
    by_distinct_values, by_ranks, estimate, identity, order_joins, projection, table_source,
};

/// Bytes of a hash table, an order or a place in a join's result, for each row.
const PER_ROW: f64 = 16.0;
/// Bytes of the code of a string of which there are few different ones.
const CODE: f64 = 4.0;

/// Plans of a session, before they run.
pub(crate) struct ForeseenPlans<'a> {
    state: &'a SessionState,
    engine: &'a Engine,
    tables: &'a [PlanTable],
    budget: Budget,
    limit: u64,
}

/// Bytes of device memory that a plan takes, beside the columns of its tables.
#[derive(Debug, Clone, Copy, Default)]
struct WorkingBytes {
    /// At most while it runs.
    peak: f64,
    /// Of what it yields; nothing where that is a table's rows, seen through filters and
    /// projections.
    result: f64,
}

impl<'a> ForeseenPlans<'a> {
    pub(crate) fn new(
        state: &'a SessionState,
        engine: &'a Engine,
        tables: &'a [PlanTable],
    ) -> Self {
        let memory = engine.device.memory();
        // What nobody uses makes room.
        let free = memory.limit.saturating_sub(memory.used.saturating_sub(memory.evictable));
        ForeseenPlans { state, engine, tables, budget: Budget::of_free(free), limit: memory.limit }
    }

    /// Bytes that a plan takes at most when it runs whole; `None` where a table's size is not
    /// known.
    fn whole(&self, plan: &DevicePlan) -> Result<Option<f64>> {
        let (scans, filters) = (plan.scans(), plan.scan_filters());
        let mut columns = 0.0;
        for (at, scan) in scans.iter().enumerate() {
            let reads_same = |other: &&TableScan| {
                identity(other) == identity(scan) && other.projection == scan.projection
            };
            if scans[..at].iter().any(reads_same) || scan.fetch.is_some() && scan.filters.is_empty()
            {
                continue;
            }
            let same_table =
                scans.iter().zip(&filters).filter(|(other, _)| identity(other) == identity(scan));
            let of_table: Vec<_> = same_table.map(|(_, filters)| filters.clone()).collect();
            let Some(bytes) = self.columns(scan, &of_table)? else { return Ok(None) };
            columns += bytes;
        }
        let ordered = match self.engine.orders_joins() {
            true => order_joins(plan.logical().clone(), self.tables)?.plan,
            false => plan.logical().clone(),
        };
        let working = self.working(&ordered);
        Ok(working
            .zip(self.bytes(&ordered))
            .map(|(working, result)| columns + working.peak.max(result)))
    }

    /// Bytes of the columns that a scan reads, of the rows that `filters` may want.
    fn columns(&self, scan: &TableScan, filters: &[Vec<Expr>]) -> Result<Option<f64>> {
        let provider = source_as_provider(table_source(scan, self.tables))?;
        let (rows, facts) = match OfSession::of(provider.as_ref()) {
            Some(OfSession::Source(table)) => {
                let (known, facts) = OfSession::Source(table).facts(&projection(scan));
                (table.known_rows(self.state, filters)?.or(known), facts)
            }
            Some(kept) => kept.facts(&projection(scan)),
            None => (
                estimate(&LogicalPlan::TableScan(scan.clone()), self.tables)
                    .map(|of| of.rows as u64),
                vec![],
            ),
        };
        Ok(rows.map(|rows| {
            let facts = facts.into_iter().map(|facts| facts.unwrap_or(Facts::unknown(rows as f64)));
            rows as f64 * width(&scan.projected_schema, &facts.collect::<Vec<_>>())
        }))
    }

    /// Bytes that a plan's rows take on the device.
    fn bytes(&self, plan: &LogicalPlan) -> Option<f64> {
        let of = estimate(plan, self.tables)?;
        Some(of.rows * width(plan.schema(), &of.columns))
    }

    fn rows(&self, plan: &LogicalPlan) -> Option<f64> {
        estimate(plan, self.tables).map(|Estimate { rows, .. }| rows)
    }

    fn working(&self, plan: &LogicalPlan) -> Option<WorkingBytes> {
        // An operator that holds all rows of its input, something for each of them, and its result.
        let of_all = |input: &LogicalPlan, result: f64| -> Option<WorkingBytes> {
            let (below, rows) = (self.working(input)?, self.rows(input)?);
            Some(WorkingBytes {
                peak: below.peak.max(below.result + rows * PER_ROW + result),
                result,
            })
        };
        Some(match plan {
            LogicalPlan::TableScan(_) | LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => {
                Default::default()
            }
            LogicalPlan::Filter(_) | LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
                self.working(plan.inputs()[0])?
            }
            LogicalPlan::Join(join) => {
                let (left, right) = (self.working(&join.left)?, self.working(&join.right)?);
                // Rows that come out are pairs of row numbers.
                let result = self.rows(plan)? * PER_ROW / 2.0;
                let table = self.rows(&join.left)?.min(self.rows(&join.right)?) * PER_ROW;
                let peak =
                    (left.peak + right.result).max(left.result + right.result + table + result);
                WorkingBytes { peak: peak.max(right.peak), result }
            }
            LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) => {
                let (below, result) = (self.working(plan.inputs()[0])?, self.bytes(plan)?);
                let table = self.rows(plan)? * PER_ROW;
                WorkingBytes { peak: below.peak.max(below.result + table + result), result }
            }
            LogicalPlan::Union(union) => {
                let inputs = union
                    .inputs
                    .iter()
                    .map(|input| self.working(input))
                    .collect::<Option<Vec<_>>>()?;
                let (mut peak, mut held) = (0f64, 0f64);
                for input in inputs {
                    peak = peak.max(held + input.peak);
                    held += input.result;
                }
                let result = self.bytes(plan)?;
                WorkingBytes { peak: peak.max(held + result), result }
            }
            _ => of_all(plan.inputs().first()?, self.bytes(plan)?)?,
        })
    }

    /// What [`super::Divider`] expects of a plan's rows.
    fn expected_bytes(&self, plan: &LogicalPlan) -> Option<u64> {
        Some((self.rows(plan)? * row_bytes(&arrow(plan.schema())) as f64) as u64)
    }

    fn scan(&self, scan: &TableScan) -> Option<String> {
        let bytes = self.columns(scan, &[]).ok()?? as u64;
        let chunk = self.budget.chunk.max(1);
        (bytes > chunk).then(|| {
            format!("chunk by chunk, some {} of about {}", bytes.div_ceil(chunk), ByteCount(chunk))
        })
    }

    fn join(&self, join: &Join) -> Option<String> {
        let (left, right) = (self.expected_bytes(&join.left), self.expected_bytes(&join.right));
        let right_first = right.unwrap_or(0) <= left.unwrap_or(u64::MAX);
        for holds_right in [right_first, !right_first] {
            let (goes_by, bytes, side, input) = match holds_right {
                true => (left_goes_by(join.join_type), right, "right", &join.right),
                false => (right_goes_by(join.join_type), left, "left", &join.left),
            };
            let few =
                self.rows(input).is_some_and(|rows| rows <= self.budget.side_rows(join) as f64);
            let fits = |bytes: &u64| *bytes <= self.budget.side;
            if let Some(bytes) = bytes.filter(|bytes| goes_by && few && fits(bytes)) {
                let bytes = ByteCount(bytes);
                return Some(format!(
                    "its {side} side, about {bytes}, stands beside each part of the other"
                ));
            }
        }
        let is_correlated_not_in = join.null_aware && join.filter.is_some();
        if !join.on.is_empty() && !is_correlated_not_in {
            let parts = parts_of(&self.budget, left.zip(right).map(|(left, right)| left + right));
            return Some(format!(
                "both sides are parted by a hash of their keys, into some {parts} parts"
            ));
        }
        let goes_by_blocks = join.on.is_empty() && join.join_type == JoinType::Inner;
        goes_by_blocks.then(|| "the sides meet block by block".into())
    }

    fn aggregate(&self, plan: &LogicalPlan, aggregate: &Aggregate) -> Option<String> {
        if PartialAggregate::of(aggregate).is_some() {
            return Some(self.two_steps(plan, !aggregate.group_expr.is_empty()));
        }
        if by_distinct_values(aggregate).is_ok_and(|plan| plan.is_some()) {
            return Some(
                "by distinct values first, of which partial results of chunks are merged".into(),
            );
        }
        match aggregate.group_expr.as_slice() {
            [] if by_ranks(aggregate).is_ok_and(|plan| plan.is_some()) => {
                Some("rows are numbered in the order of their values, where they do not fit".into())
            }
            [] | [Expr::GroupingSet(_)] => None,
            _ => Some(self.by_keys(&aggregate.input)),
        }
    }

    fn two_steps(&self, plan: &LogicalPlan, has_keys: bool) -> String {
        match self.expected_bytes(plan) {
            Some(bytes) if has_keys && bytes > self.budget.stored => {
                format!("partial results are parted into {PARTIAL_PARTS} parts")
            }
            _ => "partial results of chunks are merged".into(),
        }
    }

    fn by_keys(&self, input: &LogicalPlan) -> String {
        let parts = parts_of(&self.budget, self.expected_bytes(input));
        format!("rows are parted by a hash of their keys, into some {parts} parts")
    }

    fn sort(&self, sort: &Sort) -> Option<String> {
        let each = row_bytes(&arrow(sort.input.schema()));
        if sort.fetch.is_some_and(|fetch| fetch as u64 * each <= self.budget.stored) {
            return Some("the first rows of each chunk, then of these".into());
        }
        let ranges = self.expected_bytes(&sort.input)? / self.budget.part.max(1) * 2;
        (ranges >= 2)
            .then(|| format!("rows are parted by ranges of the key, some {ranges} of them"))
    }
}

impl OperatorForesight for ForeseenPlans<'_> {
    fn how_divided(&self, operator: &LogicalPlan) -> Option<String> {
        match operator {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Aggregate(aggregate) => self.aggregate(operator, aggregate),
            LogicalPlan::Distinct(_) => Some(self.two_steps(operator, true)),
            LogicalPlan::Sort(sort) => self.sort(sort),
            LogicalPlan::Window(window) => {
                let keys = common_partition(&window.window_expr);
                match keys.is_empty() {
                    true => goes_in_order(window)
                        .then(|| "rows are sorted, and go by in that order".into()),
                    false => Some(self.by_keys(&window.input)),
                }
            }
            _ => None,
        }
    }
}

impl Foresight for ForeseenPlans<'_> {
    fn why_divided(&self, plan: &DevicePlan) -> Result<Option<String>> {
        if !self.engine.divides {
            return Ok(None);
        }
        let limit = ByteCount(self.limit);
        if plan.is_too_large(self.limit) {
            return Ok(Some(format!(
                "whole it found no memory when it ran last; the limit is {limit}"
            )));
        }
        let needs = self.whole(plan)?.filter(|bytes| *bytes > self.limit as f64);
        Ok(needs.map(|bytes| {
            format!("it needs about {}, and the limit is {limit}", ByteCount(bytes as u64))
        }))
    }
}

/// Bytes of a row on the device, by what is known of its columns.
fn width(schema: &DFSchema, facts: &[Facts]) -> f64 {
    let of = |(at, field): (usize, &FieldRef)| {
        let is_text = matches!(Repr::of(value_type(field.data_type())), Some(Repr::View));
        let is_coded = facts.get(at).is_some_and(|of| of.distinct < of.rows / 2.0);
        let value = if is_text && is_coded { CODE } else { value_bytes(field.data_type()) as f64 };
        value + f64::from(u8::from(field.is_nullable()))
    };
    schema.fields().iter().enumerate().map(of).sum()
}
