//! Rows that several readers of a plan share: those of a query of a WITH that calls `random()` and
//! its like, and those that depend on an order that nobody promised (`once.rs`). They are computed
//! before the plan runs, once, and stand in it as a table.
//!
//! ```text
//!   WITH c AS (SELECT random() AS r)         SharedRows 1 ──▶ table
//!   SELECT a.r - b.r FROM c a, c b           SELECT a.r - b.r FROM table a, table b
//! ```
//!
//! The rows of which `LIMIT 10%` takes a share are computed before, too: how many the share is, is
//! known once they are there.
//!
//! To have them within the plan would take an operator that each way to run plans, and to divide
//! them, knows: two references to one plan, optimized apart, need not yield their rows in one
//! order.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use datafusion::common::DFSchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::logical_expr::{
    Expr, ExprSchemable, Extension, LogicalPlan, LogicalPlanBuilder, Projection,
    UserDefinedLogicalNodeCore, lit,
};

use super::once::is_volatile;
use super::{Answer, Core, scan};
use crate::error::Result;
use crate::plan::with_nulls_of_inputs;

/// The function that stands in LIMIT for a percentage, which is its argument.
pub(crate) const SHARE_OF_ROWS: &str = "share of rows";

/// The rows of a plan, which are those of all nodes of one number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SharedRows {
    pub(super) number: u64,
    input: LogicalPlan,
    kept: SharedPart,
}

/// Which of the rows a node has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum SharedPart {
    All,
    /// So many of a hundred, behind so many.
    Share {
        percent: String,
        skip: Option<Expr>,
    },
}

impl SharedPart {
    /// The plan of a share of a table with so many rows; `None` of all.
    fn of(&self, table: &LogicalPlan, rows: usize) -> PlanResult<Option<LogicalPlan>> {
        let SharedPart::Share { percent, skip } = self else { return Ok(None) };
        let percent: f64 = percent
            .parse()
            .map_err(|_| DataFusionError::Internal(format!("{percent:?} percent of rows")))?;
        // Cut, as in DuckDB, and computed as there.
        let share = (percent / 100.0 * rows as f64) as i64;
        let rows = LogicalPlanBuilder::from(table.clone());
        rows.limit_by_expr(skip.clone(), Some(lit(share)))?.build().map(Some)
    }
}

impl SharedRows {
    /// A number that no other has.
    pub(crate) fn number() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Relaxed)
    }

    pub(crate) fn node(number: u64, input: LogicalPlan) -> LogicalPlan {
        let kept = SharedPart::All;
        LogicalPlan::Extension(Extension { node: Arc::new(SharedRows { number, input, kept }) })
    }

    /// A share of the rows of a plan, behind so many.
    pub(crate) fn share(percent: String, skip: Option<Expr>, input: LogicalPlan) -> LogicalPlan {
        let (number, kept) = (SharedRows::number(), SharedPart::Share { percent, skip });
        LogicalPlan::Extension(Extension { node: Arc::new(SharedRows { number, input, kept }) })
    }

    /// A plan whose nodes share rows with no other plan: those of a number have another one.
    ///
    /// # Errors
    /// None that is known.
    pub(crate) fn of_its_own(plan: LogicalPlan) -> PlanResult<LogicalPlan> {
        let mut numbers: HashMap<u64, u64> = HashMap::new();
        let plan = plan.transform_up_with_subqueries(|node| {
            let Some(shared) = SharedRows::of(&node) else { return Ok(Transformed::no(node)) };
            let mut shared = shared.clone();
            shared.number = *numbers.entry(shared.number).or_insert_with(SharedRows::number);
            Ok(Transformed::yes(LogicalPlan::Extension(Extension { node: Arc::new(shared) })))
        })?;
        Ok(plan.data)
    }

    /// The rows of a plan for several readers, where it calls functions that each of them would
    /// call anew.
    ///
    /// # Errors
    /// None that is known.
    pub(crate) fn of_volatile(plan: &LogicalPlan) -> PlanResult<Option<LogicalPlan>> {
        let mut volatile = false;
        plan.apply_with_subqueries(|node| {
            volatile |= is_volatile(node)?;
            Ok(if volatile { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(volatile.then(|| SharedRows::node(SharedRows::number(), plan.clone())))
    }

    /// The plan without nodes that have one reader.
    ///
    /// # Errors
    /// None that is known.
    pub(crate) fn of_several_readers(plan: &LogicalPlan) -> PlanResult<LogicalPlan> {
        let mut readers: HashMap<u64, usize> = HashMap::new();
        plan.apply_with_subqueries(|node| {
            if let Some(shared) = SharedRows::of(node) {
                *readers.entry(shared.number).or_default() += 1;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        let plan = plan.clone().transform_up_with_subqueries(|node| {
            Ok(match SharedRows::of(&node) {
                Some(SharedRows { number, input, kept: SharedPart::All })
                    if readers.get(number) == Some(&1) =>
                {
                    Transformed::yes(input.clone())
                }
                _ => Transformed::no(node),
            })
        })?;
        Ok(plan.data)
    }

    /// Whether a plan has such a node.
    ///
    /// # Errors
    /// None that is known.
    pub(crate) fn any(plan: &LogicalPlan) -> PlanResult<bool> {
        let mut any = false;
        plan.apply_with_subqueries(|node| {
            any |= SharedRows::of(node).is_some();
            Ok(if any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(any)
    }

    pub(super) fn of(plan: &LogicalPlan) -> Option<&SharedRows> {
        match plan {
            LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref(),
            _ => None,
        }
    }
}

impl PartialOrd for SharedRows {
    fn partial_cmp(&self, other: &SharedRows) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for SharedRows {
    fn name(&self) -> &str {
        "SharedRows"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SharedRows: {}", self.number)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> PlanResult<Self> {
        let (number, kept) = (self.number, self.kept.clone());
        let one = <[LogicalPlan; 1]>::try_from(inputs);
        match one {
            Ok([input]) => Ok(SharedRows { number, input, kept }),
            Err(inputs) => Err(DataFusionError::Internal(format!("{} inputs", inputs.len()))),
        }
    }
}

/// The plan with what `replaced` makes of the nodes in it; the inner ones are replaced first.
fn each_replaced<'a>(
    plan: &'a LogicalPlan,
    mut replaced: impl FnMut(&SharedRows) -> PlanResult<LogicalPlan>,
) -> PlanResult<Cow<'a, LogicalPlan>> {
    if !SharedRows::any(plan)? {
        return Ok(Cow::Borrowed(plan));
    }
    let plan = plan.clone().transform_up_with_subqueries(|node| match SharedRows::of(&node) {
        Some(shared) => Ok(Transformed::yes(replaced(shared)?)),
        // A table may be null in other columns than the query was.
        None => with_nulls_of_inputs(node),
    })?;
    Ok(Cow::Owned(plan.data))
}

/// The plan with its columns called by numbers, so that a table can have them: names may come
/// twice, of several tables.
fn by_numbers(plan: &LogicalPlan) -> PlanResult<LogicalPlan> {
    let columns = plan.schema().iter().map(Expr::from).enumerate();
    let columns = columns.map(|(at, column)| column.alias(format!("c{at}")));
    LogicalPlanBuilder::from(plan.clone()).project(columns.collect::<Vec<_>>())?.build()
}

/// The rows of a table of such columns, which have their names again.
fn by_names(table: LogicalPlan, schema: &DFSchemaRef) -> PlanResult<LogicalPlan> {
    let columns = table.schema().iter().zip(schema.iter()).map(|(column, (qualifier, field))| {
        Expr::from(column)
            .cast_to(field.data_type(), table.schema())
            .map(|value| value.alias_qualified(qualifier.cloned(), field.name()))
    });
    let columns = columns.collect::<PlanResult<Vec<_>>>()?;
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(table))?))
}

impl Core {
    /// A plan in which shared rows are a table: they are computed here, by `run`.
    pub(super) fn with_shared_rows<'a>(
        &self,
        plan: &'a LogicalPlan,
        run: impl Fn(&LogicalPlan) -> Result<Answer>,
    ) -> Result<Cow<'a, LogicalPlan>> {
        let mut known: HashMap<u64, LogicalPlan> = HashMap::new();
        let plan = each_replaced(plan, |shared| {
            if let Some(rows) = known.get(&shared.number) {
                return Ok(rows.clone());
            }
            let rows = run(&by_numbers(&shared.input)?).and_then(|answer| {
                let table = scan(&self.source_of(&answer.schema, &answer.data)?)?;
                let Some(share) = shared.kept.of(&table, answer.data.rows())? else {
                    return Ok(table);
                };
                // By itself: within the plan, a sort above might choose other rows.
                let answer = run(&share)?;
                scan(&self.source_of(&answer.schema, &answer.data)?)
            });
            let rows = by_names(rows.map_err(DataFusionError::from)?, shared.input.schema())?;
            known.insert(shared.number, rows.clone());
            Ok(rows)
        })?;
        Ok(plan)
    }
}

/// The plan with each reader's own rows, to be shown.
pub(super) fn written_out(plan: &LogicalPlan) -> Result<Cow<'_, LogicalPlan>> {
    Ok(each_replaced(plan, |shared| Ok(shared.input.clone()))?)
}
