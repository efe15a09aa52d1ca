//! Brings the columns that a plan reads to the device, where they stay for later queries.

use std::any::Any;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, TableScan, TableSource};

use crate::column::{Relation, Table};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::io::{DeviceTable, SourceTable};
use crate::plan::seat_of;

/// What the scans of a plan read, by table and columns: few enough to look through.
#[derive(Clone, Default)]
pub(crate) struct Scans(Vec<Read>);

#[derive(Clone)]
struct Read {
    /// A table by identity: its address, or the number of its seat.
    table: usize,
    columns: Vec<usize>,
    relation: Relation,
}

impl Scans {
    /// What a scan reads, if it is here.
    pub(crate) fn get(&self, scan: &TableScan) -> Option<&Relation> {
        let table = identity(scan);
        let same = |read: &&Read| {
            read.table == table
                && match &scan.projection {
                    Some(columns) => read.columns == *columns,
                    None => read.columns.iter().copied().eq(0..scan.source.schema().fields().len()),
                }
        };
        Some(&self.0.iter().find(same)?.relation)
    }

    fn insert(&mut self, scan: &TableScan, columns: Vec<usize>, relation: Relation) {
        self.0.push(Read { table: identity(scan), columns, relation });
    }
}

fn identity(scan: &TableScan) -> usize {
    let address = |provider: Arc<dyn TableProvider>| Arc::as_ptr(&provider).cast::<()>() as usize;
    seat_of(&scan.source).unwrap_or_else(|| source_as_provider(&scan.source).map_or(0, address))
}

fn projection(scan: &TableScan) -> Vec<usize> {
    scan.projection.clone().unwrap_or_else(|| (0..scan.source.schema().fields().len()).collect())
}

/// Loads every table of a supported plan, as far as it is not resident.
pub(crate) async fn load(state: &SessionState, device: &Device, plan: &LogicalPlan) -> Result<Scans> {
    let mut scans: Vec<TableScan> = vec![];
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            scans.push(scan.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut loaded = Scans::default();
    for scan in scans {
        if loaded.get(&scan).is_some() {
            continue;
        }
        let (provider, columns) = (source_as_provider(&scan.source)?, projection(&scan));
        let relation = load_table(state, device, &provider, &columns, &scan).await?;
        loaded.insert(&scan, columns, relation);
    }
    Ok(loaded)
}

/// What a supported plan reads, if all of it is on the device. `tables` are those for its seats.
pub(crate) fn resident(plan: &LogicalPlan, tables: &[Arc<dyn TableSource>]) -> Result<Option<Scans>> {
    let mut found = Scans::default();
    Ok(collect_resident(plan, tables, &mut found)?.then_some(found))
}

fn collect_resident(plan: &LogicalPlan, tables: &[Arc<dyn TableSource>], found: &mut Scans) -> Result<bool> {
    let LogicalPlan::TableScan(scan) = plan else {
        for input in plan.inputs() {
            if !collect_resident(input, tables, found)? {
                return Ok(false);
            }
        }
        return Ok(true);
    };
    if found.get(scan).is_some() {
        return Ok(true);
    }
    let source = seat_of(&scan.source).and_then(|number| tables.get(number)).unwrap_or(&scan.source);
    let (provider, columns) = (source_as_provider(source)?, projection(scan));
    let any: &dyn Any = provider.as_ref();
    let relation = if let Some(kept) = any.downcast_ref::<DeviceTable>() {
        Some(kept_relation(kept, &columns)?)
    } else if let Some(source) = any.downcast_ref::<SourceTable>() {
        resident_relation(source, &columns)?
    } else {
        None
    };
    Ok(relation.is_some_and(|relation| {
        found.insert(scan, columns, relation);
        true
    }))
}

fn kept_relation(kept: &DeviceTable, columns: &[usize]) -> Result<Relation> {
    let table = &kept.table;
    let columns = columns.iter().map(|at| table.columns[*at].clone()).collect();
    Relation::dense(table.rows as u64, columns)
}

/// `None` where a column, or the number of rows, is not known yet.
fn resident_relation(source: &SourceTable, columns: &[usize]) -> Result<Option<Relation>> {
    let resident = source.resident.columns();
    let Some(rows) = resident.values().next().map(|column| column.len as u64) else { return Ok(None) };
    let columns = columns.iter().map(|at| resident.get(at).cloned()).collect::<Option<Vec<_>>>();
    columns.map(|columns| Relation::dense(rows, columns)).transpose()
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
        return kept_relation(kept, columns);
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
    match resident_relation(source, columns)? {
        Some(relation) => Ok(relation),
        None => {
            let batches = source.load(state, &[]).await?;
            let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
            Relation::dense(rows, vec![])
        }
    }
}
