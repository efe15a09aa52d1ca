//! Plans that do not fit into device memory: divided into parts that fit, each of which runs whole,
//! as any plan does.
//!
//! ```text
//!   scan ─ filter ─ project ─ join with what fits      chunk by chunk of the scan
//!   … ─ aggregate, distinct, top k                     partial results of chunks, merged
//!   join of two that do not fit                        both parted by a hash of the key
//!   aggregate that needs whole groups, window          parted by a hash of the group
//!   sort                                               parted by ranges of the key
//! ```
//!
//! How each operator is divided is decided before (`plan/division.rs`). [`Divider::rows_of`] goes
//! through the logical plan and its division from the scans up. What it makes of a subtree
//! is a [`DividedRows`]: plans over placeholders, and for each the parts that stand for these, of
//! which nothing has run yet. An operator that takes rows one by one is added to these plans. One
//! that needs all rows makes the parts run, and keeps what they yield as [`stored::StoredRows`], on
//! the device, or on the host where that is too much.
//!
//! A part whose run finds no memory is made smaller: the rows that drive it are halved, or it is
//! parted again by another hash.

mod chunks;
mod devices;
mod exchange;
mod facts;
mod foresight;
mod group;
mod join;
mod operators;
mod result;
mod run;
mod run_over;
mod sinks;
mod sort;
mod stored;
mod sweep;
mod undivided;
mod window;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DFSchema, DFSchemaRef};
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};

use self::chunks::OpenedScan;
pub(crate) use self::devices::run_kept_stages;
pub(super) use self::devices::{KnownCuts, run_on_devices};
pub(super) use self::exchange::TaskParts;
pub(crate) use self::facts::division_of;
use self::facts::{PlanFacts, seed_of};
pub(crate) use self::foresight::ForeseenPlans;
use self::group::DividedRows;
pub(crate) use self::result::DividedResult;
use self::sinks::RowStore;
use super::progress::PlanProgress;
use super::scan::computed;
use super::{Engine, Outcome};
use crate::column::{Relation, Repr, Table, least_row_bytes, value_type};
use crate::error::{Error, Result};
use crate::io::OfSession;
use crate::plan::{
    Budget, ByteCount, DevicePlan, Division, PlanTable, Prepared, Root, decide, identity,
    order_joins, table_source,
};

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
    // Cached columns and kept tables that nobody uses leave three quarters of the device to the
    // parts.
    engine.device.make_room(engine.device.memory_limit() / 4 * 3)?;
    for _ in 0..PATIENCE {
        let mut divider = Divider::new(state, engine, plan, tables);
        let ran = divider.run(&logical).await;
        // What was read of files that changed meanwhile is of no one version, and neither is an
        // error.
        if divider.is_of_one_version()? {
            return ran;
        }
    }
    Err(super::scan::restless(plan.scans().first().copied()))
}

/// Whether a plan's columns alone take more than the device may hold. Scans of which the first rows
/// are enough do not count.
pub(super) fn columns_exceed_device(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<bool> {
    Ok(columns_bytes(state, plan, tables, false)? > engine.device.memory_limit() as f64)
}

/// Bytes of the characters of a text, where nothing is known of them.
const CHARACTERS: f64 = 32.0;

/// Bytes that a plan's columns take on a device, at least. As they are expected, those of kept tables
/// and the characters of texts count, too.
fn columns_bytes(
    state: &SessionState,
    plan: &DevicePlan,
    tables: &[PlanTable],
    as_expected: bool,
) -> Result<f64> {
    let (mut bytes, scans, filters) = (0f64, plan.scans(), plan.scan_filters());
    for (at, scan) in scans.iter().enumerate() {
        let reads_same = |other: &&TableScan| {
            identity(other) == identity(scan) && other.projection == scan.projection
        };
        if scans[..at].iter().any(reads_same) || scan.fetch.is_some() && scan.filters.is_empty() {
            continue;
        }
        let provider = source_as_provider(table_source(scan, tables))?;
        let rows = match OfSession::of(provider.as_ref()) {
            Some(OfSession::Source(table)) => {
                if computed(plan, scan, table).is_some() {
                    continue;
                }
                let same_table = scans
                    .iter()
                    .zip(&filters)
                    .filter(|(other, _)| identity(other) == identity(scan));
                let of_table: Vec<_> = same_table.map(|(_, filters)| filters.clone()).collect();
                table.known_rows(state, &of_table)?.unwrap_or(0) as f64
            }
            // It lies on the device already.
            Some(OfSession::Device(kept)) if as_expected => kept.table.rows() as f64,
            _ => continue,
        };
        let fields = scan.projected_schema.fields().iter();
        let texts = fields.filter(|of| Repr::of(value_type(of.data_type())) == Some(Repr::View));
        let characters = if as_expected { texts.count() as f64 * CHARACTERS } else { 0.0 };
        let fixed = least_row_bytes(&arrow(&scan.projected_schema)) as f64;
        bytes += rows * (fixed + characters);
    }
    Ok(bytes)
}

/// Divides one plan.
struct Divider<'a> {
    state: &'a SessionState,
    engine: &'a Engine,
    /// The tables that the plan's placeholders stand for.
    tables: &'a [PlanTable],
    /// The conditions of each scan, with its table.
    filters: Vec<(usize, Vec<Expr>)>,
    budget: Budget,
    /// The seed of the hashes by which rows are parted.
    seed: u64,
    progress: PlanProgress,
    /// Tables that were opened, each in one version.
    opened: Vec<Arc<OpenedScan>>,
    /// Plans of parts.
    prepared: HashMap<LogicalPlan, Arc<DevicePlan>>,
    /// Rows that placeholders behind those of the tables stand for.
    given: Vec<DividedRows>,
}

impl<'a> Divider<'a> {
    fn new(
        state: &'a SessionState,
        engine: &'a Engine,
        plan: &DevicePlan,
        tables: &'a [PlanTable],
    ) -> Self {
        let budget = Budget::of(&engine.device);
        let filters = plan.scans().into_iter().map(identity).zip(plan.scan_filters()).collect();
        let (progress, prepared) = (engine.progress.begin(), HashMap::new());
        let (opened, given, seed) = (vec![], vec![], seed_of(&engine.device));
        Divider { state, engine, tables, filters, budget, seed, progress, opened, prepared, given }
    }

    async fn run(&mut self, plan: &LogicalPlan) -> Result<Outcome> {
        let before = self.engine.device.counters();
        let division = self.decide(plan, false)?;
        self.seed = division.seed;
        let rows = self.rows_of(plan, &division.root).await?;
        let mut kept = RowStore::new(self.engine, plan.schema(), self.budget.result);
        self.run_parts(&rows, &mut kept).await?;
        let stored = kept.finish();
        self.engine.device.note(|| {
            let now = self.engine.device.counters();
            let (parts, spilled) =
                (now.parts_run - before.parts_run, now.bytes_spilled - before.bytes_spilled);
            let restored = now.bytes_restored - before.bytes_restored;
            format!(
                "in parts: {parts} parts ran; {} went to the host, {} came back",
                ByteCount(spilled),
                ByteCount(restored)
            )
        });
        match stored.on_device()? {
            Some(table) => Ok(Outcome::Device(table)),
            None => Ok(Outcome::Divided(DividedResult::new(stored, self.budget.part))),
        }
    }

    /// Decides how a plan is divided. `in_order`: its windows take their rows in order.
    fn decide(&self, plan: &LogicalPlan, in_order: bool) -> Result<Division> {
        let (state, tables) = (self.state, self.tables);
        let budget = Budget::expected(&self.engine.device);
        decide(plan, &PlanFacts { state, tables, budget, seed: self.seed, in_order })
    }

    /// The plan of a part, prepared once.
    fn prepared(&mut self, plan: &LogicalPlan) -> Result<Arc<DevicePlan>> {
        if let Some(known) = self.prepared.get(plan) {
            return Ok(known.clone());
        }
        let prepared = Prepared::new(plan.clone())?;
        let Root::Device(device_plan) = &prepared.cut().root else {
            let (operator, why) =
                prepared.cut().left.last().map_or_else(Default::default, |left| {
                    (left.operator.clone(), left.why.clone())
                });
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
