//! Brings the columns that a plan reads to the device, where they stay for later queries.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, TableScan};

use crate::column::{Relation, Table};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::io::{DeviceTable, SourceTable};

/// Names what a scan reads: a table by identity, and its columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ScanKey {
    table: usize,
    columns: Vec<usize>,
}

impl ScanKey {
    pub(crate) fn of(scan: &TableScan) -> Self {
        let table = source_as_provider(&scan.source).map_or(0, |provider| Arc::as_ptr(&provider).cast::<()>() as usize);
        ScanKey { table, columns: projection(scan) }
    }
}

fn projection(scan: &TableScan) -> Vec<usize> {
    scan.projection.clone().unwrap_or_else(|| (0..scan.source.schema().fields().len()).collect())
}

/// Loads every table of a supported plan, as far as it is not resident.
pub(crate) async fn load(
    state: &SessionState,
    device: &Device,
    plan: &LogicalPlan,
) -> Result<HashMap<ScanKey, Relation>> {
    let mut scans: Vec<TableScan> = vec![];
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            scans.push(scan.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut loaded = HashMap::new();
    for scan in scans {
        let key = ScanKey::of(&scan);
        if loaded.contains_key(&key) {
            continue;
        }
        let provider = source_as_provider(&scan.source)?;
        let relation = load_table(state, device, &provider, &key.columns, &scan).await?;
        loaded.insert(key, relation);
    }
    Ok(loaded)
}

/// The tables of a supported plan, if all that it reads of them is on the device.
pub(crate) fn resident(plan: &LogicalPlan) -> Result<Option<HashMap<ScanKey, Relation>>> {
    let mut found = HashMap::new();
    Ok(collect_resident(plan, &mut found)?.then_some(found))
}

fn collect_resident(plan: &LogicalPlan, found: &mut HashMap<ScanKey, Relation>) -> Result<bool> {
    let LogicalPlan::TableScan(scan) = plan else {
        for input in plan.inputs() {
            if !collect_resident(input, found)? {
                return Ok(false);
            }
        }
        return Ok(true);
    };
    let key = ScanKey::of(scan);
    if found.contains_key(&key) {
        return Ok(true);
    }
    let provider = source_as_provider(&scan.source)?;
    let any: &dyn Any = provider.as_ref();
    let relation = if let Some(kept) = any.downcast_ref::<DeviceTable>() {
        Some(kept_relation(kept, &key.columns))
    } else if let Some(source) = any.downcast_ref::<SourceTable>() {
        resident_relation(source, &key.columns)
    } else {
        None
    };
    Ok(relation.is_some_and(|relation| {
        found.insert(key, relation);
        true
    }))
}

fn kept_relation(kept: &DeviceTable, columns: &[usize]) -> Relation {
    let table = &kept.table;
    let columns = columns.iter().map(|at| table.columns[*at].clone()).collect();
    Relation::dense(table.rows as u64, columns)
}

/// `None` where a column, or the number of rows, is not known yet.
fn resident_relation(source: &SourceTable, columns: &[usize]) -> Option<Relation> {
    let resident = source.resident.columns();
    let rows = resident.values().next().map(|column| column.len as u64)?;
    let columns = columns.iter().map(|at| resident.get(at).cloned()).collect::<Option<Vec<_>>>()?;
    Some(Relation::dense(rows, columns))
}

async fn load_table(
    state: &SessionState,
    device: &Device,
    provider: &Arc<dyn TableProvider>,
    columns: &[usize],
    scan: &TableScan,
) -> Result<Relation> {
    let any: &dyn Any = provider.as_ref();
    if let Some(kept) = any.downcast_ref::<DeviceTable>() {
        return Ok(kept_relation(kept, columns));
    }
    let Some(source) = any.downcast_ref::<SourceTable>() else {
        return Err(Error::unsupported(format!("table {}", scan.table_name), "it is not one of the session's"));
    };
    let missing: Vec<usize> = {
        let resident = source.resident.columns();
        columns.iter().copied().filter(|at| !resident.contains_key(at)).collect()
    };
    if !missing.is_empty() {
        let batches = source.load(state, &missing).await?;
        let schema = Arc::new(source.schema().project(&missing)?);
        let table = Table::from_batches(device, schema, &batches)?;
        let mut resident = source.resident.columns();
        for (at, column) in missing.into_iter().zip(table.columns) {
            resident.insert(at, column);
        }
    }
    match resident_relation(source, columns) {
        Some(relation) => Ok(relation),
        None => {
            let batches = source.load(state, &[]).await?;
            let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
            Ok(Relation::dense(rows, vec![]))
        }
    }
}
