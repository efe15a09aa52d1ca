//! The tables of a subtree for the device: what DataFusion's scans of them yield, and which of them
//! the device reads itself.

use std::any::Any;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::{MemTable, source_as_provider};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr_rewriter::unnormalize_cols;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableScan};
use datafusion::physical_plan::ExecutionPlan;

use crate::error::Result;
use crate::exec::{Engine, MemoryScan, scanned_table};
use crate::plan::{PlanTable, TablePlaceholder, projection};

/// A subtree over placeholders.
pub(super) struct PlannedScans {
    pub(super) plan: LogicalPlan,
    /// What stands for the placeholders, by number.
    pub(super) tables: Vec<PlannedScan>,
}

/// A table that a subtree scans once or more.
pub(super) struct PlannedScan {
    /// What yields its rows.
    pub(super) scan: Arc<dyn ExecutionPlan>,
    /// The columns that this yields, by index in the table.
    pub(super) columns: Vec<usize>,
    /// What is known of the table before it runs.
    pub(super) table: PlanTable,
}

/// What a table is asked for.
struct AskedTable {
    provider: Arc<dyn TableProvider>,
    columns: Vec<usize>,
    filters: Vec<Expr>,
    limit: Option<usize>,
}

/// The subtree over placeholders, and its scans as the session plans them, or, where one task reads
/// tables in memory, as [`MemoryScan`].
///
/// # Errors
/// Of the providers.
pub(super) async fn scanned(
    state: &SessionState,
    engine: &Engine,
    plan: LogicalPlan,
    is_one_task: bool,
) -> Result<PlannedScans> {
    let mut wanted: Vec<AskedTable> = vec![];
    let plan = plan
        .transform_up(|node| match node {
            LogicalPlan::TableScan(scan) => {
                let number = number_of(&scan, &mut wanted)?;
                let source = TablePlaceholder::source(number, scan.source.schema());
                // What the provider does not apply for certain is above the scan, too.
                let scan = TableScan { source, filters: vec![], fetch: None, ..scan };
                Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
            }
            node => Ok(Transformed::no(node)),
        })?
        .data;
    let mut tables = vec![];
    for AskedTable { provider, columns, filters, limit } in wanted {
        let memory = match is_one_task && filters.is_empty() && limit.is_none() {
            true => MemoryScan::of(provider.as_ref(), &columns)?,
            false => None,
        };
        let scan: Arc<dyn ExecutionPlan> = match memory {
            Some(scan) => Arc::new(scan),
            None => provider.scan(state, Some(&columns), &filters, limit).await?,
        };
        let table = scanned_table(engine, state, &scan, &provider.schema()).await?;
        tables.push(PlannedScan { scan, columns, table });
    }
    Ok(PlannedScans { plan, tables })
}

/// The number of what a scan asks for. Scans of one table of files or batches are one, of all the
/// columns that any of them wants.
fn number_of(scan: &TableScan, wanted: &mut Vec<AskedTable>) -> PlanResult<usize> {
    let provider = source_as_provider(&scan.source)?;
    let columns = projection(scan);
    let any: &dyn Any = provider.as_ref();
    if any.is::<ListingTable>() || any.is::<MemTable>() {
        let exact = provider.supports_filters_pushdown(&scan.filters.iter().collect::<Vec<_>>())?;
        let applies = |of: &TableProviderFilterPushDown| *of == TableProviderFilterPushDown::Exact;
        if !exact.iter().any(applies) {
            let same =
                |of: &AskedTable| Arc::ptr_eq(&of.provider, &provider) && of.filters.is_empty();
            if let Some(at) = wanted.iter().position(same) {
                let known = &mut wanted[at];
                known.columns.extend(columns);
                known.columns.sort_unstable();
                known.columns.dedup();
                known.limit = None;
                return Ok(at);
            }
            wanted.push(AskedTable { provider, columns, filters: vec![], limit: None });
            return Ok(wanted.len() - 1);
        }
    }
    if columns.iter().any(|at| *at >= provider.schema().fields().len()) {
        return Err(DataFusionError::Internal(format!("{} has fewer columns", scan.table_name)));
    }
    wanted.push(AskedTable {
        provider,
        columns,
        filters: unnormalize_cols(scan.filters.clone()),
        limit: scan.fetch,
    });
    Ok(wanted.len() - 1)
}
