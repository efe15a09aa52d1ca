//! Which files a plan reads: that they are all of one version, and their names in errors.

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, TableScan};

use super::guard::of_panic;
use super::table::{PATIENCE, Snapshot, SourceTable, lacks_path, restless};
use crate::error::{Error, ErrorKind, Result};

/// The session's tables that a plan reads.
fn sources(plan: &LogicalPlan) -> Vec<Arc<dyn TableProvider>> {
    let mut providers: Vec<Arc<dyn TableProvider>> = Vec::new();
    // Nothing fails here.
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(provider) = source_as_provider(&scan.source)
            && !providers.iter().any(|known| Arc::ptr_eq(known, &provider))
        {
            providers.push(provider);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    providers.retain(|provider| source(provider).is_some());
    providers
}

fn source(provider: &Arc<dyn TableProvider>) -> Option<&SourceTable> {
    (provider.as_ref() as &dyn Any).downcast_ref()
}

/// Whether a scan was planned with the types that its table, whose schema this is, has by now.
/// Types may have become wider, and columns may have nulls that had none: plans rely on that.
///
/// # Errors
/// One that asks for the plan to be made again ([`Error::misfit`]).
pub(crate) fn has_present_types(scan: &TableScan, table: &Schema) -> Result<()> {
    let fields = scan.projected_schema.fields().iter();
    let of_table = |number: usize| match &scan.projection {
        Some(projection) => projection.get(number).copied().unwrap_or(number),
        None => number,
    };
    for (number, field) in fields.enumerate() {
        let at = of_table(number);
        let is_other = |now: &Arc<Field>| {
            now.data_type() != field.data_type() || now.is_nullable() && !field.is_nullable()
        };
        if table.fields().get(at).is_some_and(is_other) {
            let message = format!("column {:?} has another type by now: ask again", field.name());
            let kind = ErrorKind::Plan { message, location: None };
            return Err(Error::from(kind).with_misfit(at));
        }
    }
    Ok(())
}

/// The scans of an optimized plan that may meet values which do not fit the types of their columns.
pub(crate) fn scans_of_sampled_types(plan: &LogicalPlan) -> Vec<LogicalPlan> {
    let mut scans = vec![];
    // Nothing fails here.
    let _ = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(provider) = source_as_provider(&scan.source)
            && source(&provider).is_some_and(|table| table.last().source().has_sampled_types())
        {
            scans.push(node.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    scans
}

/// Gives the columns of a plan's tables in which values did not fit types that hold them; whether
/// there were any.
///
/// # Errors
/// Files that cannot be read.
pub(crate) fn widen(plan: &LogicalPlan) -> Result<bool> {
    let mut wider = false;
    for provider in sources(plan) {
        if let Some(table) = source(&provider) {
            wider |= table.widen()?;
        }
    }
    Ok(wider)
}

/// Names the file in an error about a file's content that came out of a plan without it.
pub(crate) async fn diagnose(error: Error, state: &SessionState, plan: &LogicalPlan) -> Error {
    if !lacks_path(&error) {
        return error;
    }
    let mut error = error;
    for provider in &sources(plan) {
        if let Some(table) = source(provider) {
            let snapshot = table.last().clone();
            error = table.blame(error, state, &snapshot).await;
        }
    }
    error
}

/// The files of a plan that the CPU's operators read while it runs: all of one version, or the plan
/// has to run again.
pub(crate) struct Reading(Vec<(Arc<dyn TableProvider>, Arc<Snapshot>)>);

impl Reading {
    /// How often a plan runs again.
    pub(crate) const PATIENCE: usize = PATIENCE;

    /// Before the plan runs.
    ///
    /// # Errors
    /// As [`SourceTable::current`].
    pub(crate) async fn begin(state: &SessionState, plan: &LogicalPlan) -> Result<Reading> {
        let mut read = vec![];
        for provider in sources(plan) {
            if let Some(table) = source(&provider).filter(|table| table.files.is_some()) {
                let snapshot = table.current(state).await?;
                read.push((provider, snapshot));
            }
        }
        let mut stale = None;
        // Nothing fails here.
        let _ = plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Ok(provider) = source_as_provider(&scan.source)
                && source(&provider).is_some()
            {
                stale = stale.take().or(has_present_types(scan, &provider.schema()).err());
            }
            Ok(TreeNodeRecursion::Continue)
        });
        match stale {
            Some(stale) => Err(stale),
            None => Ok(Reading(read)),
        }
    }

    /// After it ran: the error of a table that changed meanwhile.
    pub(crate) fn changed(&self) -> Option<Error> {
        self.0.iter().find_map(|(provider, snapshot)| {
            let table = source(provider)?;
            match table.is_current(snapshot) {
                Ok(true) => None,
                Ok(false) => table.files.as_ref().map(restless),
                Err(error) => Some(error),
            }
        })
    }

    /// The error of a plan that panicked, with the files that it read.
    pub(crate) fn of_panic(&self, panic: &(dyn Any + Send)) -> Error {
        let tables = self.0.iter().filter_map(|(provider, _)| source(provider)?.files.as_ref());
        let names: Vec<_> =
            tables.map(|files| files.selection.named().display().to_string()).collect();
        let over =
            if names.is_empty() { String::new() } else { format!(" over {}", names.join(", ")) };
        of_panic(&format!("an operator of the query{over}"), panic)
    }
}
