//! What is known of a plan before it runs: whether it is expected to be divided, which EXPLAIN says,
//! and what its division follows from (`plan/division.rs`).
//!
//! Whether a plan runs divided does not depend on it: a plan is divided once it finds no memory.

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::DFSchema;
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, Window};

use super::window::goes_in_order;
use crate::column::{Facts, Repr, value_bytes, value_type};
use crate::error::Result;
use crate::exec::Engine;
use crate::io::OfSession;
use crate::plan::{
    Budget, ByteCount, DevicePlan, Divides, Division, DivisionFacts, Estimate, Foresight,
    PlanTable, decide, estimate, identity, order_joins, placeholder_number, projection,
    table_source,
};
use warpframe_device::Device;

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

/// How a plan over placeholders would be divided, whose joins are in order.
///
/// # Errors
/// Of the plan.
pub(crate) fn division_of(
    state: &SessionState,
    engine: &Engine,
    plan: &LogicalPlan,
    tables: &[PlanTable],
) -> Result<Division> {
    let facts = ForeseenPlans::new(state, engine, tables);
    decide(plan, &facts.facts())
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
        let (budget, limit) = (Budget::expected(&engine.device), engine.device.memory_limit());
        ForeseenPlans { state, engine, tables, budget, limit }
    }

    fn facts(&self) -> PlanFacts<'_> {
        let ForeseenPlans { state, tables, budget, .. } = *self;
        PlanFacts { state, tables, budget, seed: seed_of(&self.engine.device), in_order: false }
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
            let Some(bytes) = self.facts().columns(scan, &of_table)? else { return Ok(None) };
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
}

/// The seed of exchanges in this process.
pub(super) fn seed_of(device: &Device) -> u64 {
    // Groups and joins have hashes of their own.
    device.secret(1000)
}

/// What a division follows from.
pub(super) struct PlanFacts<'a> {
    pub(super) state: &'a SessionState,
    pub(super) tables: &'a [PlanTable],
    pub(super) budget: Budget,
    pub(super) seed: u64,
    pub(super) in_order: bool,
}

impl PlanFacts<'_> {
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
}

impl DivisionFacts for PlanFacts<'_> {
    fn tables(&self) -> &[PlanTable] {
        self.tables
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn scan_bytes(&self, scan: &TableScan) -> Option<u64> {
        // Rows that the divider gave a plan are no table.
        if placeholder_number(&scan.source).is_some_and(|number| number >= self.tables.len()) {
            return None;
        }
        Some(self.columns(scan, &[]).ok()?? as u64)
    }

    fn goes_in_order(&self, window: &Window) -> bool {
        goes_in_order(window)
    }

    fn windows_in_order(&self) -> bool {
        self.in_order
    }
}

impl Divides for ForeseenPlans<'_> {
    fn division(&self, plan: &LogicalPlan) -> Result<Division> {
        decide(plan, &self.facts())
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
