//! Plans that are prepared to run: optimized, and cut once. One over placeholders runs again on
//! whatever tables have the same schemas.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use datafusion::common::DFSchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, Volatility};

use super::cut::{Cut, Root, cut};
use super::physical::PhysicalPlan;
use super::pipelines::Planning;
use super::tables::{PlanTable, bind, table_source};
use crate::column::Facts;
use crate::error::Result;
use crate::io::OfSession;

/// Operators and expressions above one another, up to which a plan runs on its caller's stack, and
/// up to which it is kept: looking for it recurses as deep as it is, too, but needs less.
const SHALLOW: usize = 48;
const MOST: usize = 160;

/// Whether a plan is not too deep to be kept.
pub(crate) fn is_small(plan: &LogicalPlan) -> bool {
    depth(plan, MOST + 1) <= MOST
}

/// Whether a plan with this expression may be one to be kept.
pub(crate) fn is_small_expr(expr: &Expr) -> bool {
    expr_depth(expr, MOST + 1) <= MOST
}

/// Whether the plan means the same whenever it runs: no function of the time or of chance, nothing
/// that is filled in later.
pub(crate) fn is_repeatable(plan: &LogicalPlan) -> bool {
    let mut repeatable = true;
    let walked = plan.apply_with_subqueries(|node| {
        repeatable &= !matches!(
            node,
            LogicalPlan::Extension(_)
                | LogicalPlan::Statement(_)
                | LogicalPlan::Explain(_)
                | LogicalPlan::Analyze(_)
                | LogicalPlan::Dml(_)
                | LogicalPlan::Ddl(_)
                | LogicalPlan::Copy(_)
                | LogicalPlan::DescribeTable(_)
        );
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                repeatable &= means_the_same(expr);
                Ok(if repeatable { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
            })
        })
    });
    repeatable && walked.is_ok()
}

fn means_the_same(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => call.func.signature().volatility == Volatility::Immutable,
        Expr::AggregateFunction(call) => call.func.signature().volatility == Volatility::Immutable,
        Expr::WindowFunction(call) => call.fun.signature().volatility == Volatility::Immutable,
        Expr::HigherOrderFunction(call) => {
            call.func.signature().volatility == Volatility::Immutable
        }
        Expr::ScalarVariable(_, _) | Expr::Placeholder(_) => false,
        _ => true,
    }
}

/// An optimized plan, cut into what runs on the device and what does not.
#[derive(Debug)]
pub(crate) struct Prepared {
    cut: Cut,
    schema: DFSchemaRef,
    /// The data showed that the device cannot run it: so may the next ones.
    gave_up: AtomicBool,
    /// Any thread's stack holds it.
    shallow: bool,
}

impl Prepared {
    /// Of an optimized plan, mostly one over placeholders.
    pub(crate) fn new(plan: LogicalPlan) -> Result<Prepared> {
        let shallow = depth(&plan, SHALLOW + 1) <= SHALLOW;
        let schema = plan.schema().clone();
        Ok(Prepared { cut: cut(plan)?, schema, gave_up: false.into(), shallow })
    }

    pub(crate) fn cut(&self) -> &Cut {
        &self.cut
    }

    /// The schema of what comes out.
    pub(crate) fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// What the device runs, if that is the whole plan, it did so far, and any thread's stack holds
    /// it.
    pub(crate) fn direct(&self) -> Option<&Arc<DevicePlan>> {
        match &self.cut.root {
            Root::Device(plan) if self.shallow && !self.gave_up.load(Relaxed) => Some(plan),
            _ => None,
        }
    }

    /// Notes that the device could not run it.
    pub(crate) fn give_up(&self) {
        self.gave_up.store(true, Relaxed);
    }

    /// The logical plan over these tables, by the placeholders' numbers.
    pub(crate) fn bind(&self, tables: &[PlanTable]) -> Result<LogicalPlan> {
        match &self.cut.root {
            Root::Device(plan) => bind(&plan.logical, tables),
            Root::Cpu(plan) => bind(plan, tables),
        }
    }
}

/// A subtree of an optimized plan that the device runs from end to end.
#[derive(Debug)]
pub(crate) struct DevicePlan {
    logical: LogicalPlan,
    joins: usize,
    /// Its pipelines, as they ran last.
    physical: Mutex<Option<Latest>>,
    /// The greatest limit of device memory within which it was found not to fit; 0 if it was not.
    too_large_for: AtomicU64,
}

/// Pipelines, and the facts that the order of their joins comes of.
#[derive(Debug)]
struct Latest {
    facts: Option<Vec<TableFacts>>,
    plan: Arc<PhysicalPlan>,
}

/// Rows of a table, and facts of those of its columns that a scan reads.
type TableFacts = (Option<u64>, Vec<Option<Facts>>);

impl DevicePlan {
    pub(super) fn of(logical: LogicalPlan) -> Arc<DevicePlan> {
        let joins = count_joins(&logical);
        Arc::new(DevicePlan {
            logical,
            joins,
            physical: Mutex::default(),
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
        // Poisoning is ignored: the value is valid between statements.
        let mut latest = self.physical.lock().unwrap_or_else(|e| e.into_inner());
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

/// Operators above one another, and the expressions above one another in each; looked at no further
/// than `most`.
fn depth(plan: &LogicalPlan, most: usize) -> usize {
    let Some(rest) = most.checked_sub(1) else { return 0 };
    let mut own = 0;
    // Nothing fails here, nor below.
    let _ = plan.apply_expressions(|expr| {
        own = own.max(expr_depth(expr, rest));
        Ok(TreeNodeRecursion::Continue)
    });
    let below = plan.inputs().into_iter().map(|input| depth(input, rest)).max().unwrap_or(0);
    1 + own + below
}

fn expr_depth(expr: &Expr, most: usize) -> usize {
    let Some(rest) = most.checked_sub(1) else { return 0 };
    let mut below = 0;
    let _ = expr.apply_children(|child| {
        below = below.max(expr_depth(child, rest));
        Ok(TreeNodeRecursion::Continue)
    });
    1 + below
}
