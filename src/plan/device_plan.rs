//! A part of a plan that the device runs, with its pipelines as they ran last.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use parking_lot::Mutex;

use super::physical::PhysicalPlan;
use super::pipelines::Planning;
use super::tables::{PlanTable, table_source};
use crate::column::Facts;
use crate::error::Result;
use crate::io::OfSession;

/// A subtree of an optimized plan that the device runs from end to end.
#[derive(Debug)]
pub(crate) struct DevicePlan {
    logical: LogicalPlan,
    joins: usize,
    /// Its pipelines, as they ran last.
    physical: Mutex<Option<Latest>>,
    /// What its executor keeps with it.
    kept: Mutex<Option<KeptBeside>>,
    /// Whether one device is enough for it, of several: where that is known.
    on_one: AtomicU8,
    /// The greatest limit of device memory within which it was found not to fit; 0 if it was not.
    too_large_for: AtomicU64,
}

/// Pipelines, and the facts that the order of their joins comes of.
#[derive(Debug)]
struct Latest {
    facts: Option<Vec<TableFacts>>,
    plan: Arc<PhysicalPlan>,
}

/// A value, and the facts that it follows from.
#[derive(Debug)]
struct KeptBeside {
    facts: Vec<TableFacts>,
    value: Arc<dyn Any + Send + Sync>,
}

/// Values of [`DevicePlan::on_one`].
const ON_ONE: u8 = 1;
const ON_SEVERAL: u8 = 2;

/// Rows of a table, and facts of those of its columns that a scan reads.
type TableFacts = (Option<u64>, Vec<Option<Facts>>);

impl DevicePlan {
    pub(crate) fn of(logical: LogicalPlan) -> Arc<DevicePlan> {
        let joins = count_joins(&logical);
        Arc::new(DevicePlan {
            logical,
            joins,
            physical: Mutex::default(),
            kept: Mutex::default(),
            on_one: AtomicU8::new(0),
            too_large_for: AtomicU64::new(0),
        })
    }

    /// What it was made of, for the CPU engine.
    pub(crate) fn logical(&self) -> &LogicalPlan {
        &self.logical
    }

    pub(crate) fn has_joins(&self) -> bool {
        self.joins > 0
    }

    /// Whether it was found not to fit within so many bytes of device memory.
    pub(crate) fn is_too_large(&self, limit: u64) -> bool {
        limit <= self.too_large_for.load(Relaxed)
    }

    /// Notes that it does not fit within so many bytes of device memory.
    pub(crate) fn found_too_large(&self, limit: u64) {
        self.too_large_for.fetch_max(limit, Relaxed);
    }

    /// Whether it is known that one device is enough for it.
    pub(crate) fn is_for_one_device(&self) -> bool {
        self.on_one.load(Relaxed) == ON_ONE
    }

    /// Notes whether one device is enough for it.
    pub(crate) fn runs_on_one(&self, one: bool) {
        self.on_one.store(if one { ON_ONE } else { ON_SEVERAL }, Relaxed);
    }

    /// What its executor kept with it last, unless its tables changed in size since.
    pub(crate) fn kept<T: Any + Send + Sync>(&self, tables: &[PlanTable]) -> Option<Arc<T>> {
        let facts = self.facts(tables);
        let kept = self.kept.lock();
        kept.as_ref().filter(|kept| kept.facts == facts)?.value.clone().downcast().ok()
    }

    /// Keeps something with the plan, for as long as its tables have their sizes.
    pub(crate) fn keep<T: Any + Send + Sync>(&self, tables: &[PlanTable], value: Arc<T>) {
        *self.kept.lock() = Some(KeptBeside { facts: self.facts(tables), value });
    }

    fn facts(&self, tables: &[PlanTable]) -> Vec<TableFacts> {
        self.scans().into_iter().map(|scan| facts(scan, tables)).collect()
    }

    /// The scans of all its tables, in the order of a walk.
    pub(crate) fn scans(&self) -> Vec<&TableScan> {
        let mut scans = vec![];
        collect_scans(&self.logical, &mut scans);
        scans
    }

    /// Whether nothing but filters and projections is between each scan and an aggregation; as many
    /// as there are scans, in the same order.
    pub(crate) fn aggregated_scans(&self) -> Vec<bool> {
        let mut aggregated = vec![];
        collect_aggregated(&self.logical, false, &mut aggregated);
        aggregated
    }

    /// The conditions that the rows of each scan have to meet, joined by AND; as many as there are
    /// scans, in the same order.
    pub(crate) fn scan_filters(&self) -> Vec<Vec<Expr>> {
        let mut filters = vec![];
        collect_filters(&self.logical, None, &mut filters);
        filters
    }

    /// Its pipelines. They are those of the last time unless their joins might have another order
    /// now: `order_joins` has joins run in the order of estimated rows, which come of what is known
    /// of the tables.
    ///
    /// # Errors
    /// As [`PhysicalPlan::of`].
    pub(crate) fn physical(
        &self,
        tables: &[PlanTable],
        order_joins: bool,
    ) -> Result<Arc<PhysicalPlan>> {
        // One join has no other order.
        let order_joins = order_joins && self.joins > 1;
        let facts =
            order_joins.then(|| self.scans().into_iter().map(|scan| facts(scan, tables)).collect());
        let mut latest = self.physical.lock();
        if let Some(latest) = latest.as_ref().filter(|latest| latest.facts == facts) {
            return Ok(latest.plan.clone());
        }
        let how = Planning { tables, order_joins, estimates: false, foresight: None };
        let plan = Arc::new(PhysicalPlan::of(&self.logical, how)?);
        *latest = Some(Latest { facts, plan: plan.clone() });
        Ok(plan)
    }
}

/// What is known of the columns that a scan reads.
fn facts(scan: &TableScan, tables: &[PlanTable]) -> TableFacts {
    let Ok(provider) = source_as_provider(table_source(scan, tables)) else {
        return (None, vec![]);
    };
    OfSession::of(provider.as_ref()).map_or((None, vec![]), |table| table.facts(&projection(scan)))
}

/// The columns that a scan reads, by their places in the table.
pub(crate) fn projection(scan: &TableScan) -> Vec<usize> {
    scan.projection.clone().unwrap_or_else(|| (0..scan.source.schema().fields().len()).collect())
}

fn collect_scans<'a>(plan: &'a LogicalPlan, scans: &mut Vec<&'a TableScan>) {
    if let LogicalPlan::TableScan(scan) = plan {
        scans.push(scan);
    }
    plan.inputs().into_iter().for_each(|input| collect_scans(input, scans));
}

fn collect_aggregated(plan: &LogicalPlan, aggregated: bool, scans: &mut Vec<bool>) {
    let below = match plan {
        LogicalPlan::TableScan(_) => {
            scans.push(aggregated);
            return;
        }
        LogicalPlan::Aggregate(_) => true,
        LogicalPlan::Filter(_) | LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => {
            aggregated
        }
        _ => false,
    };
    plan.inputs().into_iter().for_each(|input| collect_aggregated(input, below, scans));
}

fn collect_filters(plan: &LogicalPlan, above: Option<&Expr>, filters: &mut Vec<Vec<Expr>>) {
    if matches!(plan, LogicalPlan::TableScan(_)) {
        filters.push(above.map_or_else(Vec::new, |above| {
            split_conjunction(above).into_iter().cloned().collect()
        }));
    }
    let own = match plan {
        LogicalPlan::Filter(filter) => Some(&filter.predicate),
        _ => None,
    };
    plan.inputs().into_iter().for_each(|input| collect_filters(input, own, filters));
}

fn count_joins(plan: &LogicalPlan) -> usize {
    let own = usize::from(matches!(plan, LogicalPlan::Join(_)));
    own + plan.inputs().into_iter().map(count_joins).sum::<usize>()
}
