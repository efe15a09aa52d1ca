//! Brings the columns that a plan reads to the device, where they stay for later queries.

use std::any::Any;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableSource};

use super::{Engine, foreign};
use crate::column::Relation;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{DeviceTable, Read as TableRead, SourceTable, is_of_session};
use crate::plan::seat_of;

/// What the scans of a plan read, by table and columns: few enough to look through.
#[derive(Clone, Default)]
pub(crate) struct Scans(Vec<Read>);

#[derive(Clone)]
struct Read {
    /// A table by identity: its address, or the number of its seat.
    table: usize,
    columns: Vec<usize>,
    /// What a provider that is not the session's was asked for besides: it has left rows out.
    asked: Option<Asked>,
    /// The table's version.
    version: u64,
    relation: Relation,
}

/// Filters and a limit.
type Asked = (Vec<Expr>, Option<usize>);

impl Scans {
    /// What a scan reads, if it is here.
    pub(crate) fn get(&self, scan: &TableScan) -> Option<&Relation> {
        let table = identity(scan);
        let asked = asked(scan);
        let same = |read: &&Read| {
            read.table == table
                && read.asked == asked
                && match &scan.projection {
                    Some(columns) => read.columns == *columns,
                    None => read.columns.iter().copied().eq(0..scan.source.schema().fields().len()),
                }
        };
        Some(&self.0.iter().find(same)?.relation)
    }

    /// Whether it is of the version of which the table's other columns are.
    fn insert(&mut self, scan: &TableScan, columns: Vec<usize>, (version, relation): Versioned) -> bool {
        let table = identity(scan);
        let one = self.0.iter().all(|read| read.table != table || read.version == version);
        self.0.push(Read { table, columns, asked: asked(scan), version, relation });
        one
    }
}

/// A table's columns, and the number of its version.
type Versioned = (u64, Relation);

fn identity(scan: &TableScan) -> usize {
    let address = |provider: Arc<dyn TableProvider>| Arc::as_ptr(&provider).cast::<()>() as usize;
    seat_of(&scan.source).unwrap_or_else(|| source_as_provider(&scan.source).map_or(0, address))
}

/// Whether a scan's table is one of a provider that is not the session's.
pub(super) fn is_foreign(scan: &TableScan) -> bool {
    seat_of(&scan.source).is_none() && source_as_provider(&scan.source).is_ok_and(|of| !is_of_session(of.as_ref()))
}

fn asked(scan: &TableScan) -> Option<Asked> {
    is_foreign(scan).then(|| (scan.filters.clone(), scan.fetch))
}

fn projection(scan: &TableScan) -> Vec<usize> {
    scan.projection.clone().unwrap_or_else(|| (0..scan.source.schema().fields().len()).collect())
}

/// How often a plan's tables are loaded anew, where files change meanwhile.
const PATIENCE: usize = 5;

/// Loads every table of a supported plan, as far as it is not resident.
pub(crate) async fn load(state: &SessionState, engine: &Engine, plan: &LogicalPlan) -> Result<Scans> {
    let mut scans: Vec<TableScan> = vec![];
    plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            scans.push(scan.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    'anew: for _ in 0..PATIENCE {
        let mut loaded = Scans::default();
        for scan in &scans {
            if loaded.get(scan).is_some() {
                continue;
            }
            let (provider, columns) = (source_as_provider(&scan.source)?, projection(scan));
            let read = load_table(state, engine, &provider, &columns, scan).await?;
            if !loaded.insert(scan, columns, read) {
                continue 'anew;
            }
        }
        return Ok(loaded);
    }
    Err(restless(scans.first()))
}

fn restless(scan: Option<&TableScan>) -> Error {
    let table = scan.map_or(String::new(), |scan| scan.table_name.to_string());
    ErrorKind::File { path: table.into(), message: "its files changed while they were read, again and again".into() }
        .into()
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
    let read = if let Some(kept) = any.downcast_ref::<DeviceTable>() {
        Some(kept_relation(kept, &columns)?)
    } else if let Some(source) = any.downcast_ref::<SourceTable>() {
        resident_relation(source, &columns)?
    } else {
        None
    };
    Ok(read.is_some_and(|read| found.insert(scan, columns, read)))
}

fn kept_relation(kept: &DeviceTable, columns: &[usize]) -> Result<Versioned> {
    let table = &kept.table;
    let columns = columns.iter().map(|at| table.columns[*at].clone()).collect();
    Ok((0, Relation::dense(table.rows as u64, columns)?))
}

/// `None` where the files changed, and where a column, or the number of rows, is not known yet.
fn resident_relation(source: &SourceTable, columns: &[usize]) -> Result<Option<Versioned>> {
    let Some(snapshot) = source.known()? else { return Ok(None) };
    let relation = source.resident(&snapshot, columns)?;
    Ok(relation.map(|relation| (snapshot.number(), relation)))
}

async fn load_table(
    state: &SessionState,
    engine: &Engine,
    provider: &Arc<dyn TableProvider>,
    columns: &[usize],
    scan: &TableScan,
) -> Result<Versioned> {
    let any: &dyn Any = provider.as_ref();
    if let Some(kept) = any.downcast_ref::<DeviceTable>() {
        return kept_relation(kept, columns);
    }
    let Some(source) = any.downcast_ref::<SourceTable>() else {
        return Ok((0, foreign::read(state, &engine.device, scan).await?));
    };
    for _ in 0..PATIENCE {
        let snapshot = source.current(state).await?;
        if let Some(relation) = source.resident(&snapshot, columns)? {
            return Ok((snapshot.number(), relation));
        }
        let missing = source.missing(&snapshot, columns);
        let read = source.read(state, &engine.device, &snapshot, &missing).await;
        // What was read of files that changed meanwhile is no one version, and neither is an error.
        if !source.is_current(&snapshot)? {
            continue;
        }
        let TableRead { rows, columns, by_host } = read?;
        engine.host_reads.add(by_host);
        source.keep(&snapshot, rows, missing.into_iter().zip(columns).collect())?;
    }
    Err(restless(Some(scan)))
}
