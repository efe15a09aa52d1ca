//! What the division of a plan follows from (`plan/division.rs`): the budget of the device, and what
//! is known of the plan's tables.

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
    Budget, Division, DivisionFacts, PlanTable, decide, estimate, placeholder_number, projection,
    table_source,
};
use warpframe_device::Device;

/// Bytes of the code of a string of which there are few different ones.
const CODE: f64 = 4.0;

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
    decide(plan, &PlanFacts::of(state, engine, tables))
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

impl<'a> PlanFacts<'a> {
    pub(super) fn of(state: &'a SessionState, engine: &Engine, tables: &'a [PlanTable]) -> Self {
        let (budget, seed) = (Budget::expected(&engine.device), seed_of(&engine.device));
        PlanFacts { state, tables, budget, seed, in_order: false }
    }

    /// Bytes of the columns that a scan reads, of the rows that `filters` may want.
    pub(super) fn columns(&self, scan: &TableScan, filters: &[Vec<Expr>]) -> Result<Option<f64>> {
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

/// Bytes of a row on the device, by what is known of its columns.
pub(super) fn width(schema: &DFSchema, facts: &[Facts]) -> f64 {
    let of = |(at, field): (usize, &FieldRef)| {
        let is_text = matches!(Repr::of(value_type(field.data_type())), Some(Repr::View));
        let is_coded = facts.get(at).is_some_and(|of| of.distinct < of.rows / 2.0);
        let value = if is_text && is_coded { CODE } else { value_bytes(field.data_type()) as f64 };
        value + f64::from(u8::from(field.is_nullable()))
    };
    schema.fields().iter().enumerate().map(of).sum()
}
