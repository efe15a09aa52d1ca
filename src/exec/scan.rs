//! Brings the columns that a plan reads to the device, where they stay for later queries.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;

use datafusion::catalog::TableProvider;
use datafusion::datasource::source_as_provider;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, TableScan};

use super::Engine;
use super::foreign::Foreign;
use crate::codegen::FlowSource;
use crate::column::{EqualSteps, Relation};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{
    self, ColumnRequest, Extent, OfSession, Source, SourceTable, To, has_present_types,
};
use crate::plan::{DevicePlan, PlanTable, identity, is_foreign, projection, table_source};
use warpframe_device::interrupt;
use warpframe_device::timeline::{Part, span};

/// What the scans of a plan read, by table and columns: few enough to look through.
#[derive(Clone, Default)]
pub(crate) struct Scans(Vec<ScannedTable>);

#[derive(Clone)]
struct ScannedTable {
    /// A table by identity: its address, or the number of its placeholder.
    table: usize,
    columns: Vec<usize>,
    asked: Asked,
    extent: Extent,
    /// The table's version.
    version: u64,
    rows: FlowSource,
}

/// What rows a scan wants, beside its columns: the filters that a provider which is not the
/// session's applies, and how many rows are enough.
#[derive(Clone, PartialEq)]
struct Asked {
    filters: Vec<Expr>,
    fetch: Option<usize>,
}

impl Scans {
    /// What a scan reads, if it is here.
    pub(crate) fn get(&self, scan: &TableScan) -> Option<&FlowSource> {
        let (table, foreign, asked) = (identity(scan), is_foreign(scan), asked(scan));
        let columns = projection(scan);
        let same = |read: &&ScannedTable| {
            // All rows of a session's table serve whoever wants some.
            let rows = read.asked == asked || !foreign && read.extent == Extent::All;
            read.table == table && read.columns == columns && rows
        };
        Some(&self.0.iter().find(same)?.rows)
    }

    /// Adds all rows of what a placeholder stands for.
    pub(super) fn insert_all(&mut self, scan: &TableScan, relation: Relation) {
        self.insert(scan, 0, FlowSource::Relation(relation), Extent::All);
    }

    /// Whether it is of the version of which the table's other columns are.
    fn insert(&mut self, scan: &TableScan, version: u64, rows: FlowSource, extent: Extent) -> bool {
        let (table, columns) = (identity(scan), projection(scan));
        let one = self.0.iter().all(|read| read.table != table || read.version == version);
        self.0.push(ScannedTable { table, columns, asked: asked(scan), extent, version, rows });
        one
    }
}

/// A table's columns, and the number of its version.
type Versioned = (u64, Relation);

fn asked(scan: &TableScan) -> Asked {
    let filters = if is_foreign(scan) { scan.filters.clone() } else { vec![] };
    Asked { filters, fetch: scan.fetch }
}

/// How often a plan's tables are loaded anew, where files change meanwhile.
const PATIENCE: usize = 5;

/// Loads every table of a supported plan, as far as it is not resident: all of them side by side;
/// again where there is more room after it failed for want of it.
pub(crate) async fn load(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Scans> {
    let mut retry = engine.device.room_retry();
    loop {
        match load_into_room(state, engine, plan, tables).await {
            Err(error) if retry.makes_room(error.shortage())? => {}
            loaded => return loaded,
        }
    }
}

async fn load_into_room(
    state: &SessionState,
    engine: &Engine,
    plan: &DevicePlan,
    tables: &[PlanTable],
) -> Result<Scans> {
    let (scans, filters) = (plan.scans(), plan.scan_filters());
    'anew: for _ in 0..PATIENCE {
        let mut loaded = Scans::default();
        let mut missing = vec![];
        for scan in scans.iter().copied() {
            if loaded.get(scan).is_some() {
                continue;
            }
            match here(plan, scan, tables)? {
                Some((version, rows)) => {
                    if !loaded.insert(scan, version, rows, Extent::All) {
                        continue 'anew;
                    }
                }
                None => missing.push(scan),
            }
        }
        let of_tables = distinct(&missing, &scans, &filters);
        for (scan, ((version, relation), extent)) in
            read_together(state, engine, tables, &of_tables).await?
        {
            if !loaded.insert(scan, version, FlowSource::Relation(relation), extent) {
                continue 'anew;
            }
        }
        return Ok(loaded);
    }
    Err(restless(scans.first().copied()))
}

/// Scans of one table that read different things.
struct TableScans<'a> {
    scans: Vec<&'a TableScan>,
    /// The conditions of all scans of the table in the plan: what no scan wants need not be read.
    filters: Vec<Vec<Expr>>,
}

/// One table's columns are read once where several scans want them: its scans come one after the
/// other.
fn distinct<'a>(
    missing: &[&'a TableScan],
    scans: &[&'a TableScan],
    filters: &[Vec<Expr>],
) -> Vec<TableScans<'a>> {
    let mut tables: Vec<TableScans<'a>> = vec![];
    for &scan in missing {
        match tables.iter_mut().find(|of| identity(of.scans[0]) == identity(scan)) {
            Some(of) if of.scans.iter().any(|known| reads_same(known, scan)) => {}
            Some(of) => of.scans.push(scan),
            None => {
                let same = scans
                    .iter()
                    .zip(filters)
                    .filter(|(other, _)| identity(other) == identity(scan));
                tables.push(TableScans {
                    scans: vec![scan],
                    filters: same.map(|(_, of)| of.clone()).collect(),
                });
            }
        }
    }
    tables
}

fn reads_same(a: &TableScan, b: &TableScan) -> bool {
    projection(a) == projection(b) && asked(a) == asked(b)
}

/// A scan, what it reads, and whether that is all of the table.
type ReadScan<'a> = (&'a TableScan, (Versioned, Extent));

/// Most tables that are read at once. One large table keeps the bus busy.
const MOST_TABLES: usize = 4;
/// Bytes of a reading thread's stack: filters that a provider takes are as deep as the query has
/// them.
const STACK: usize = 64 << 20;

/// Reads tables side by side, on threads: while one waits for its last pages, others use the bus
/// and the cores.
async fn read_together<'a>(
    state: &SessionState,
    engine: &Engine,
    tables: &[PlanTable],
    distinct: &[TableScans<'a>],
) -> Result<Vec<ReadScan<'a>>> {
    let read_table = async |of: &TableScans<'a>| {
        let mut read = vec![];
        for scan in &of.scans {
            read.push((*scan, load_table(state, engine, tables, scan, &of.filters).await?));
        }
        Ok::<_, Error>(read)
    };
    if let [scans] = distinct {
        return read_table(scans).await;
    }
    let (next, runtime, statement) =
        (AtomicUsize::new(0), tokio::runtime::Handle::current(), interrupt::current());
    let work = || {
        let _entered = statement.as_ref().map(|statement| statement.enter());
        let mut read = vec![];
        while let Some(scans) = distinct.get(next.fetch_add(1, Relaxed)) {
            let of_table = read_table(scans);
            read.extend(match &statement {
                Some(statement) => runtime.block_on(statement.or_stop(of_table)),
                None => runtime.block_on(of_table),
            }?);
        }
        Ok::<_, Error>(read)
    };
    let parts = std::thread::scope(|scope| {
        let thread = |_| {
            std::thread::Builder::new()
                .name("warpframe-table".into())
                .stack_size(STACK)
                .spawn_scoped(scope, work)
        };
        let threads: Vec<_> = (0..distinct.len().min(MOST_TABLES)).map(thread).collect();
        let join =
            |thread: std::io::Result<ScopedJoinHandle<'_, Result<Vec<ReadScan<'a>>>>>| match thread
            {
                Ok(thread) => {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                }
                Err(error) => Err(Error::internal(format!("the system gives no thread: {error}"))),
            };
        threads.into_iter().map(join).collect::<Result<Vec<_>>>()
    })?;
    Ok(parts.into_iter().flatten().collect())
}

pub(super) fn restless(scan: Option<&TableScan>) -> Error {
    let table = scan.map_or(String::new(), |scan| scan.table_name.to_string());
    ErrorKind::File {
        path: table.into(),
        message: "its files changed while they were read, again and again".into(),
    }
    .into()
}

/// What a plan reads, if all of it is on the device.
pub(crate) fn resident(plan: &DevicePlan, tables: &[PlanTable]) -> Result<Option<Scans>> {
    let mut found = Scans::default();
    for scan in plan.scans() {
        if found.get(scan).is_some() {
            continue;
        }
        let read = here(plan, scan, tables)?;
        if !read.is_some_and(|(version, rows)| found.insert(scan, version, rows, Extent::All)) {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

/// The rows of a scan, where kernels compute them and nothing is stored: integers at equal
/// distances, as many as have numbers of 32 bits, of a table that only aggregations read.
pub(super) fn computed(
    plan: &DevicePlan,
    scan: &TableScan,
    source: &SourceTable,
) -> Option<EqualSteps> {
    let steps = source.equal_steps().filter(|steps| steps.rows <= u64::from(u32::MAX))?;
    let scans = plan.scans().into_iter().zip(plan.aggregated_scans());
    let mut of_table = scans.filter(|(other, _)| identity(other) == identity(scan));
    of_table.all(|(_, aggregated)| aggregated).then_some(steps)
}

/// What a scan reads, and its version, where nothing has to be read for it.
fn here(
    plan: &DevicePlan,
    scan: &TableScan,
    tables: &[PlanTable],
) -> Result<Option<(u64, FlowSource)>> {
    let (provider, columns) = (source_as_provider(table_source(scan, tables))?, projection(scan));
    if let Some(OfSession::Source(source)) = OfSession::of(provider.as_ref())
        && let Some(steps) = computed(plan, scan, source)
    {
        return Ok(Some((0, FlowSource::EqualSteps(steps))));
    }
    Ok(stored(scan, provider.as_ref(), &columns)?
        .map(|(version, relation)| (version, FlowSource::Relation(relation))))
}

/// What a scan reads, where all of it is on the device.
fn stored(
    scan: &TableScan,
    provider: &dyn TableProvider,
    columns: &[usize],
) -> Result<Option<Versioned>> {
    match OfSession::of(provider) {
        // What was moved to the host is read like a file: that may fail for want of memory.
        Some(OfSession::Device(kept)) if !kept.table.is_on_device() => Ok(None),
        Some(OfSession::Device(kept)) => Ok(Some((0, relation(kept.read(columns)?)?))),
        Some(OfSession::Source(source)) => {
            has_present_types(scan, &provider.schema())?;
            resident_relation(source, columns)
        }
        None => Ok(None),
    }
}

fn relation(read: io::Read) -> Result<Relation> {
    Relation::dense(read.rows, read.columns)
}

/// `None` where the files changed, and where a column, or the number of rows, is not known yet.
fn resident_relation(source: &SourceTable, columns: &[usize]) -> Result<Option<Versioned>> {
    let Some(snapshot) = source.known()? else { return Ok(None) };
    let relation = source.resident(&snapshot, None, columns)?;
    Ok(relation.map(|relation| (snapshot.number(), relation)))
}

async fn load_table(
    state: &SessionState,
    engine: &Engine,
    tables: &[PlanTable],
    scan: &TableScan,
    filters: &[Vec<Expr>],
) -> Result<(Versioned, Extent)> {
    let _span = span(Part::Read, || scan.table_name.to_string());
    let (provider, columns) = (source_as_provider(table_source(scan, tables))?, projection(scan));
    let to = To { state, device: &engine.device };
    let source = match OfSession::of(provider.as_ref()) {
        Some(OfSession::Device(kept)) => {
            return Ok(((0, relation(kept.read(&columns)?)?), Extent::All));
        }
        Some(OfSession::Source(source)) => source,
        None => {
            // Its columns, filters and limit are the scan's.
            let all: Vec<usize> = (0..columns.len()).collect();
            let wanted = ColumnRequest { chunks: 0..1, columns: &all, fetch: None };
            return Ok(((0, relation(Foreign::new(scan).read(&to, &wanted).await?)?), Extent::All));
        }
    };
    for _ in 0..PATIENCE {
        let snapshot = source.current(state).await?;
        has_present_types(scan, &snapshot.schema())?;
        let part = source.part(state, &snapshot, filters)?;
        let part = part.as_ref();
        if let Some(relation) = source.resident(&snapshot, part, &columns)? {
            return Ok(((snapshot.number(), relation), Extent::All));
        }
        // They stay while the others are read.
        let held = source.held(&snapshot, part, &columns);
        // What a filter leaves is not known before it is read.
        let fetch = scan.fetch.filter(|_| scan.filters.is_empty()).map(|fetch| fetch as u64);
        let missing = match fetch {
            Some(_) => columns.clone(),
            None => columns
                .iter()
                .zip(&held)
                .filter(|(_, held)| held.is_none())
                .map(|(at, _)| *at)
                .collect(),
        };
        if let Some(part) = part {
            engine.device.note(|| {
                format!("files: {part} of {} may have rows of the condition", scan.table_name)
            });
        }
        let read = source.read(&to, &snapshot, part, &missing, fetch).await;
        // What was read of files that changed meanwhile is no one version, and neither is an error.
        if !source.is_current(&snapshot)? {
            continue;
        }
        let (mut read, extent) = read?;
        engine.host_reads.add(std::mem::take(&mut read.by_host));
        if extent == Extent::First {
            return Ok(((snapshot.number(), relation(read)?), extent));
        }
        let kept = missing.into_iter().zip(read.columns.iter().cloned()).collect();
        source.keep(&snapshot, part, read.rows, kept)?;
        // As they were read: who else wants room may take what is kept at once.
        let mut fresh = read.columns.into_iter();
        let columns: Option<Vec<_>> =
            held.into_iter().map(|held| held.or_else(|| fresh.next())).collect();
        let columns = columns.ok_or_else(|| {
            Error::internal("a source yields fewer columns than it was asked for")
        })?;
        return Ok(((snapshot.number(), Relation::dense(read.rows, columns)?), Extent::All));
    }
    Err(restless(Some(scan)))
}
