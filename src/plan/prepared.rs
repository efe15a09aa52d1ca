//! Plans that are kept: optimized once, and run again on whatever tables have the same schemas.
//!
//! ```text
//!   Filter: x < 3           lift       Filter: x < 3        optimize, cut       Prepared        bind       a plan that runs
//!     TableScan: a table  ────────▶      TableScan: table 0 ─────────────▶   of placeholders  ────────▶   over other tables
//! ```
//!
//! A [`TablePlaceholder`] stands for a table by its number. It has a schema and no rows, so that a plan
//! that is kept keeps no memory of a device, and nothing of the data can find its way into the plan: the
//! session's tables tell DataFusion nothing but their schemas.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableSource, Volatility};

use super::cut::cut;
use super::replays::Replays;
use crate::error::Result;
use crate::io::OfSession;

/// Operators and expressions above one another, up to which a plan runs on its caller's stack, and up to which it is kept:
/// looking for it recurses as deep as it is, too, but needs less.
const SHALLOW: usize = 48;
const MOST: usize = 160;

/// Stands for a table in a kept plan, by the table's number.
pub(crate) struct TablePlaceholder {
    number: usize,
    schema: SchemaRef,
}

impl TablePlaceholder {
    pub(crate) fn source(number: usize, schema: SchemaRef) -> Arc<dyn TableSource> {
        Arc::new(TablePlaceholder { number, schema })
    }
}

/// What the session's tables answer through DataFusion's source of a provider.
impl TableSource for TablePlaceholder {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Whether a placeholder can stand for a scan's table.
fn is_plain(source: &Arc<dyn TableSource>) -> bool {
    let Ok(provider) = source_as_provider(source) else { return false };
    OfSession::of(provider.as_ref()).is_some_and(|table| table.is_read_whole())
}

/// Whether a plan reads nothing but placeholders, in subqueries too.
pub(crate) fn reads_placeholders(plan: &LogicalPlan) -> bool {
    let mut placeholders = true;
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            placeholders &= is_placeholder(&scan.source);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    placeholders && walked.is_ok()
}

/// Whether expressions of a plan hold plans.
pub(crate) fn has_subqueries(plan: &LogicalPlan) -> bool {
    let (mut with, mut without) = (0, 0);
    let count = |all: &mut usize| {
        *all += 1;
        Ok(TreeNodeRecursion::Continue)
    };
    // Nothing fails here.
    let _ = plan.apply_with_subqueries(|_| count(&mut with));
    let _ = plan.apply(|_| count(&mut without));
    with != without
}

/// Whether a source is a placeholder.
pub(super) fn is_placeholder(source: &Arc<dyn TableSource>) -> bool {
    source.is::<TablePlaceholder>()
}

/// The number of a placeholder.
pub(crate) fn placeholder_number(source: &Arc<dyn TableSource>) -> Option<usize> {
    Some(source.downcast_ref::<TablePlaceholder>()?.number)
}

/// The tables that a plan reads, each once, and for each scan (in the order of a walk) the number of its table. `None` where one of
/// them is not the session's.
pub(crate) struct Tables {
    pub(crate) sources: Vec<Arc<dyn TableSource>>,
    pub(crate) scans: Vec<usize>,
}

impl Tables {
    pub(crate) fn of(plan: &LogicalPlan) -> Option<Tables> {
        let mut tables = Tables { sources: vec![], scans: vec![] };
        let walked = plan.apply_with_subqueries(|node| {
            let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
            if !is_plain(&scan.source) {
                return Ok(TreeNodeRecursion::Stop);
            }
            let number = tables.number(scan).unwrap_or(tables.sources.len());
            if number == tables.sources.len() {
                tables.sources.push(scan.source.clone());
            }
            tables.scans.push(number);
            Ok(TreeNodeRecursion::Continue)
        });
        matches!(walked, Ok(TreeNodeRecursion::Continue)).then_some(tables)
    }

    fn number(&self, scan: &TableScan) -> Option<usize> {
        let same =
            |a: &Arc<dyn TableSource>, b: &Arc<dyn TableSource>| match (source_as_provider(a), source_as_provider(b)) {
                (Ok(a), Ok(b)) => Arc::ptr_eq(&a, &b),
                _ => false,
            };
        self.sources.iter().position(|source| same(source, &scan.source))
    }

    pub(crate) fn schemas(&self) -> Vec<SchemaRef> {
        self.sources.iter().map(|source| source.schema()).collect()
    }
}

/// Whether a plan is not too deep to be kept.
pub(crate) fn is_small(plan: &LogicalPlan) -> bool {
    depth(plan, MOST + 1) <= MOST
}

/// Whether a plan with this expression may be one to be kept.
pub(crate) fn is_small_expr(expr: &Expr) -> bool {
    expr_depth(expr, MOST + 1) <= MOST
}

/// The plan over placeholders instead of tables, with the tables. `None` where the plan cannot be kept: it reads what is not the
/// session's, or what it yields depends on more than its tables.
pub(crate) fn lift(plan: &LogicalPlan) -> Option<(LogicalPlan, Tables)> {
    if !is_repeatable(plan) {
        return None;
    }
    let tables = Tables::of(plan)?;
    let placeholders: Vec<_> =
        (tables.sources.iter().enumerate()).map(|(at, of)| TablePlaceholder::source(at, of.schema())).collect();
    let lifted = replaced(plan, |scan| tables.number(scan).map(|number| placeholders[number].clone())).ok()?;
    Some((lifted, tables))
}

/// The plan over tables instead of placeholders, by number.
pub(crate) fn bind(plan: &LogicalPlan, tables: &[Arc<dyn TableSource>]) -> Result<LogicalPlan> {
    Ok(replaced(plan, |scan| table_of(scan, tables))?)
}

fn table_of(scan: &TableScan, tables: &[Arc<dyn TableSource>]) -> Option<Arc<dyn TableSource>> {
    tables.get(placeholder_number(&scan.source)?).cloned()
}

/// The plan with other sources, in subqueries too.
fn replaced(
    plan: &LogicalPlan,
    source: impl Fn(&TableScan) -> Option<Arc<dyn TableSource>>,
) -> PlanResult<LogicalPlan> {
    let replaced = plan.clone().transform_down_with_subqueries(|node| match node {
        LogicalPlan::TableScan(scan) => Ok(match source(&scan) {
            Some(source) => Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })),
            None => Transformed::no(LogicalPlan::TableScan(scan)),
        }),
        node => Ok(Transformed::no(node)),
    })?;
    Ok(replaced.data)
}

/// Whether the plan means the same whenever it runs: no function of the time or of chance, nothing that is filled in later.
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
        Expr::HigherOrderFunction(call) => call.func.signature().volatility == Volatility::Immutable,
        Expr::ScalarVariable(_, _) | Expr::Placeholder(_) => false,
        _ => true,
    }
}

/// An optimized plan over placeholders, and what is known of how it runs.
#[derive(Debug)]
pub(crate) struct Prepared {
    plan: LogicalPlan,
    /// The device runs all of it, or did so far.
    whole: AtomicBool,
    shallow: bool,
    replays: Arc<Replays>,
}

impl Prepared {
    pub(crate) fn new(plan: LogicalPlan) -> Result<Prepared> {
        let whole = cut(&plan)?.left.is_empty();
        let shallow = depth(&plan, SHALLOW + 1) <= SHALLOW;
        Ok(Prepared { plan, whole: whole.into(), shallow, replays: Arc::default() })
    }

    /// The plan, over placeholders.
    pub(crate) fn plan(&self) -> &LogicalPlan {
        &self.plan
    }

    /// What its operators made, to be made again.
    pub(crate) fn replays(&self) -> &Arc<Replays> {
        &self.replays
    }

    /// Whether the device runs the plan from end to end, and any thread's stack holds it.
    pub(crate) fn is_direct(&self) -> bool {
        self.shallow && self.whole.load(Relaxed)
    }

    /// The data showed that the device cannot run it: so may the next ones.
    pub(crate) fn gave_up(&self) {
        self.whole.store(false, Relaxed);
    }

    /// The plan over these tables, by the placeholders' numbers.
    pub(crate) fn bind(&self, tables: &[Arc<dyn TableSource>]) -> Result<LogicalPlan> {
        match self.is_direct() {
            // What the device runs has no subqueries inside of expressions.
            true => Ok(bind_inputs(self.plan.clone(), tables)?),
            false => bind(&self.plan, tables),
        }
    }
}

fn bind_inputs(plan: LogicalPlan, tables: &[Arc<dyn TableSource>]) -> PlanResult<LogicalPlan> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let source = table_of(&scan, tables).unwrap_or_else(|| scan.source.clone());
            Ok(LogicalPlan::TableScan(TableScan { source, ..scan }))
        }
        plan => Ok(plan.map_children(|input| Ok(Transformed::yes(bind_inputs(input, tables)?)))?.data),
    }
}

/// Operators above one another, and the expressions above one another in each; looked at no further than `most`.
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
