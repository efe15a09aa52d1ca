//! What is known of a plan before it runs, which EXPLAIN says: whether it is expected to be divided,
//! and what several devices would do.
//!
//! Whether a plan runs divided does not depend on it: a plan is divided once it finds no memory.

use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, TableScan};

use super::devices::foreseen;
use super::facts::{PlanFacts, width};
use crate::error::Result;
use crate::exec::Engine;
use crate::plan::{
    ByteCount, DevicePlan, Divides, Division, Estimate, Foresight, OnDevices, Placed, PlacedParts,
    PlanTable, decide, estimate, identity, order_joins,
};

/// Bytes of a hash table, an order or a place in a join's result, for each row.
const PER_ROW: f64 = 16.0;

/// Plans of a session, before they run.
pub(crate) struct ForeseenPlans<'a> {
    state: &'a SessionState,
    engine: &'a Engine,
    tables: &'a [PlanTable],
    limit: u64,
    /// Where the parts of a plan run, where not on the device.
    placed: PlacedParts,
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
        ForeseenPlans { state, engine, tables, limit: engine.device.memory_limit(), placed: vec![] }
    }

    /// With where the parts of a plan run, of a session with a cluster.
    pub(crate) fn with_places(self, placed: PlacedParts) -> Self {
        ForeseenPlans { placed, ..self }
    }

    fn facts(&self) -> PlanFacts<'_> {
        PlanFacts::of(self.state, self.engine, self.tables)
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

impl Divides for ForeseenPlans<'_> {
    fn division(&self, plan: &LogicalPlan) -> Result<Division> {
        decide(plan, &self.facts())
    }
}

impl Foresight for ForeseenPlans<'_> {
    fn on_devices(&self, plan: &DevicePlan) -> Result<Option<OnDevices>> {
        foreseen(self.state, self.engine, plan, self.tables)
    }

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

    fn placed(&self, plan: &DevicePlan) -> Option<&Placed> {
        let found = self.placed.iter().find(|(of, _)| std::ptr::eq(&**of, plan));
        found.map(|(_, placed)| placed)
    }
}
