//! Plans that do not fit into device memory: divided into parts that fit, each of which runs whole,
//! as any plan does.
//!
//! ```text
//!   scan ─ filter ─ project ─ join with what fits      chunk by chunk of the scan
//!   … ─ aggregate, distinct, top k, limit              partial results of chunks, merged
//!   join of two that do not fit                        both parted by a hash of the key
//!   aggregate that needs whole groups, window          parted by a hash of the group
//!   sort                                               parted by ranges of the key
//! ```
//!
//! [`Divider::rows_of`] goes through the logical plan from its scans up. What it makes of a subtree
//! is a [`DividedRows`]: plans over placeholders, and for each the parts that stand for these, of
//! which nothing has run yet. An operator that takes rows one by one is added to these plans. One
//! that needs all rows makes the parts run, and keeps what they yield as [`StoredRows`], on the
//! device, or on the host where that is too much.
//!
//! A part whose run finds no memory is made smaller: the rows that drive it are halved, or it is
//! parted again by another hash.

mod budget;
mod chunks;
mod exchange;
mod group;
mod operators;
mod run;
mod sinks;
mod sort;
mod stored;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;

use self::budget::Budget;
use self::chunks::OpenedScan;
use self::group::DividedRows;
use self::sinks::Kept;
use super::{Engine, Outcome};
use crate::column::{Relation, Table};
use crate::error::{Error, ErrorKind, Result};
use crate::io::OfSession;
use crate::plan::{DevicePlan, PlanTable, Prepared, Root, order_joins, table_source};

/// How often a plan is begun anew where files change meanwhile.
const PATIENCE: usize = 5;

/// Runs a supported plan in parts.
///
/// # Errors
/// `OutOfDeviceMemory` where even parts do not fit; those of the parts.
pub(super) async fn run_divided(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Outcome> {
    let logical = match engine.orders_joins() {
        true => order_joins(plan.logical().clone(), tables)?.plan,
        false => plan.logical().clone(),
    };
    let_go(plan, tables)?;
    for _ in 0..PATIENCE {
        let mut divider = Divider::new(state, engine, tables);
        let ran = divider.run(&logical).await;
        // What was read of files that changed meanwhile is of no one version, and neither is an error.
        if divider.is_of_one_version()? {
            return ran;
        }
    }
    Err(super::scan::restless(plan.scans().first().copied()))
}

/// Lets go of the plan's columns that were read for all of it.
fn let_go(plan: &DevicePlan, tables: &[PlanTable]) -> Result<()> {
    for scan in plan.scans() {
        let provider = source_as_provider(table_source(scan, tables))?;
        if let Some(OfSession::Source(table)) = OfSession::of(provider.as_ref()) {
            table.forget();
        }
    }
    Ok(())
}

/// Whether an error is of a lack of device memory.
pub(super) fn is_out_of_memory(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::OutOfDeviceMemory { .. })
}

/// Divides one plan.
struct Divider<'a> {
    state: &'a SessionState,
    engine: &'a Engine,
    /// The tables that the plan's placeholders stand for.
    tables: &'a [PlanTable],
    budget: Budget,
    /// Tables that were opened, each in one version.
    opened: Vec<Arc<OpenedScan>>,
    /// Plans of parts.
    prepared: HashMap<LogicalPlan, Arc<DevicePlan>>,
}

impl<'a> Divider<'a> {
    fn new(state: &'a SessionState, engine: &'a Engine, tables: &'a [PlanTable]) -> Self {
        let budget = Budget::of(&engine.device);
        Divider { state, engine, tables, budget, opened: vec![], prepared: HashMap::new() }
    }

    async fn run(&mut self, plan: &LogicalPlan) -> Result<Outcome> {
        let rows = self.rows_of(plan).await?;
        let mut kept = Kept::new(self.engine, plan.schema(), self.budget.result);
        self.run_parts(&rows, &mut kept).await?;
        let stored = kept.finish();
        self.engine.device.note(|| format!("divided: {} parts ran", self.budget.ran));
        match stored.on_device()? {
            Some(table) => Ok(Outcome::Device(table)),
            None => Ok(Outcome::Host(stored.on_host()?)),
        }
    }

    /// The plan of a part, prepared once.
    fn prepared(&mut self, plan: &LogicalPlan) -> Result<Arc<DevicePlan>> {
        if let Some(known) = self.prepared.get(plan) {
            return Ok(known.clone());
        }
        let prepared = Prepared::new(plan.clone())?;
        let Root::Device(device_plan) = &prepared.cut().root else {
            let (operator, why) = prepared
                .cut()
                .left
                .last()
                .map_or_else(Default::default, |left| (left.operator.clone(), left.why.clone()));
            return Err(Error::unsupported(format!("in parts: {operator}"), why));
        };
        self.prepared.insert(plan.clone(), device_plan.clone());
        Ok(device_plan.clone())
    }

    fn is_of_one_version(&self) -> Result<bool> {
        for opened in &self.opened {
            if !opened.is_current()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The Arrow schema of rows.
fn arrow(schema: &DFSchema) -> SchemaRef {
    Arc::new(schema.as_arrow().clone())
}

/// A table as a relation.
fn relation(table: &Table) -> Result<Relation> {
    Relation::dense(table.rows as u64, table.columns.clone())
}

/// Rows without any part.
fn nothing(schema: &DFSchemaRef) -> DividedRows {
    DividedRows { groups: vec![], schema: schema.clone() }
}
