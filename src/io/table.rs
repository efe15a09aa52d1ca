//! The tables of a session, as DataFusion's planner sees them.

use std::any::Any;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::{MemTable, TableType, source_as_provider};
use datafusion::error::Result as PlanResult;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown};
use datafusion::physical_plan::{ExecutionPlan, collect_partitioned};

use super::files::{Files, Provided};
use super::guard::{guard, of_panic, unpanicked};
use super::parquet::{self, Described};
use super::version::Version;
use crate::column::{Column, Facts, Relation, Table};
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::plan::MOST_NESTED;

/// Rows in a host batch that a device table becomes: few batches, of a size that the CPU's operators split cheaply.
pub(crate) const DOWNLOAD_ROWS: usize = 1 << 16;

/// A table whose rows already lie in device memory: a result that was kept.
#[derive(Debug)]
pub(crate) struct DeviceTable {
    pub(crate) table: Table,
}

#[async_trait]
impl TableProvider for DeviceTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Where the CPU has to read it, the rows come back to the host.
    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let batches = self.table.to_batches(DOWNLOAD_ROWS)?;
        MemTable::try_new(self.schema(), vec![batches])?.scan(state, projection, filters, limit).await
    }
}

/// A table that is read from files or host memory, with those of its columns that were read to the device already.
#[derive(Debug)]
pub(crate) struct SourceTable {
    schema: SchemaRef,
    files: Option<Files>,
    /// The version that was read last.
    last: Mutex<Arc<Snapshot>>,
    resident: Resident,
    /// A device reads whole columns and filters itself; the CPU's scan prunes and filters while it reads.
    push_filters: bool,
}

/// A table in one version of its files.
#[derive(Debug)]
pub(crate) struct Snapshot {
    inner: Arc<dyn TableProvider>,
    /// Files that the device reads itself.
    parquet: Arc<[Described]>,
    /// `None` for tables in host memory, which never change.
    version: Option<Version>,
    /// Versions of a table are counted.
    number: u64,
}

impl Snapshot {
    /// A table in host memory.
    pub(crate) fn of_memory(inner: Arc<dyn TableProvider>) -> Snapshot {
        Snapshot { inner, parquet: Arc::new([]), version: None, number: 0 }
    }

    /// The present version of files.
    ///
    /// # Errors
    /// Files that cannot be opened or whose content does not fit their format, by name.
    pub(crate) async fn of_files(files: &Files, state: &SessionState, number: u64) -> Result<Snapshot> {
        let mut version = Version::of(&files.selection)?;
        for _ in 0..PATIENCE {
            let wait = version.settles_in();
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
                version = Version::of(&files.selection)?;
                continue;
            }
            let paths: Vec<PathBuf> = version.paths().cloned().collect();
            let provided = files.provider(state, &paths).await;
            // What a file that changed meanwhile made of it says nothing.
            if version.is_current(&files.selection)? {
                let Provided { table, parquet } = provided?;
                return Ok(Snapshot { inner: table, parquet: parquet.into(), version: Some(version), number });
            }
            version = Version::of(&files.selection)?;
        }
        Err(restless(files))
    }

    /// Tells it from other versions of its table.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// What was read of a table.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) rows: u64,
    pub(crate) columns: Vec<Column>,
    /// Columns of files that the device reads which the host's reader brought, and why: a sentence
    /// each.
    pub(crate) by_host: Vec<String>,
}

/// How often reading begins anew when files change meanwhile.
const PATIENCE: usize = 5;

fn restless(files: &Files) -> Error {
    let message = "it changed while it was read, again and again".to_string();
    ErrorKind::File { path: files.selection.named().into(), message }.into()
}

/// Columns in device memory, all of one version of their table.
#[derive(Debug, Default)]
struct Resident(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// The version's number.
    of: u64,
    rows: Option<u64>,
    /// By index in the table's schema.
    columns: HashMap<usize, Column>,
}

impl Resident {
    /// What is held of a version; what there was of another is let go.
    fn of(&self, snapshot: &Snapshot) -> MutexGuard<'_, Held> {
        // Poisoning is ignored: what is held is valid between statements.
        let mut held = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if held.of < snapshot.number {
            *held = Held { of: snapshot.number, ..Held::default() };
        }
        held
    }
}

impl SourceTable {
    pub(crate) fn new(snapshot: Snapshot, files: Option<Files>, push_filters: bool) -> Self {
        let schema = snapshot.inner.schema();
        let last = Mutex::new(Arc::new(snapshot));
        SourceTable { schema, files, last, resident: Resident::default(), push_filters }
    }

    /// Whether its scans take no filters, so that nothing but its schema matters to a plan.
    pub(crate) fn is_read_whole(&self) -> bool {
        !self.push_filters
    }

    fn last(&self) -> MutexGuard<'_, Arc<Snapshot>> {
        self.last.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Whether the files are still in this version.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] of a file that is no longer there.
    pub(crate) fn is_current(&self, snapshot: &Snapshot) -> Result<bool> {
        match (&self.files, &snapshot.version) {
            (Some(files), Some(version)) => version.is_current(&files.selection),
            _ => Ok(true),
        }
    }

    /// The version that was read last, if it is still the present one.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] of a file that is no longer there.
    pub(crate) fn known(&self) -> Result<Option<Arc<Snapshot>>> {
        let last = self.last().clone();
        Ok(self.is_current(&last)?.then_some(last))
    }

    /// The present version.
    ///
    /// # Errors
    /// As [`Snapshot::of_files`], and [`ErrorKind::File`] where the files have other columns than
    /// the table.
    pub(crate) async fn current(&self, state: &SessionState) -> Result<Arc<Snapshot>> {
        let Some(files) = &self.files else { return Ok(self.last().clone()) };
        if let Some(known) = self.known()? {
            return Ok(known);
        }
        let number = self.last().number + 1;
        let next = Arc::new(Snapshot::of_files(files, state, number).await?);
        same_schema(&self.schema, &next.inner.schema(), files)?;
        let mut last = self.last();
        // Somebody else may have been faster.
        if last.number < number {
            *last = next.clone();
        } else if last.version == next.version {
            return Ok(last.clone());
        } else {
            let (inner, parquet) = (next.inner.clone(), next.parquet.clone());
            *last = Arc::new(Snapshot { inner, parquet, version: next.version.clone(), number: last.number + 1 });
        }
        Ok(last.clone())
    }

    /// Columns of a version, as far as all of them and the number of rows are on the device.
    pub(crate) fn resident(&self, snapshot: &Snapshot, columns: &[usize]) -> Result<Option<Relation>> {
        let held = self.resident.of(snapshot);
        let Some(rows) = held.rows.filter(|_| held.of == snapshot.number) else { return Ok(None) };
        let columns: Option<Vec<_>> = columns.iter().map(|at| held.columns.get(at).cloned()).collect();
        columns.map(|columns| Relation::dense(rows, columns)).transpose()
    }

    /// Those of the columns that are not on the device in this version.
    pub(crate) fn missing(&self, snapshot: &Snapshot, columns: &[usize]) -> Vec<usize> {
        let held = self.resident.of(snapshot);
        columns.iter().copied().filter(|at| held.of != snapshot.number || !held.columns.contains_key(at)).collect()
    }

    /// Keeps columns of a version; in vain where a later one is held already.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`] where the table has another number of rows.
    pub(crate) fn keep(&self, snapshot: &Snapshot, rows: u64, columns: Vec<(usize, Column)>) -> Result<()> {
        let mut held = self.resident.of(snapshot);
        if held.of != snapshot.number {
            return Ok(());
        }
        if let Some(known) = held.rows.filter(|known| *known != rows) {
            let what =
                self.files.as_ref().map_or("a table".into(), |files| files.selection.named().display().to_string());
            let (expected, found) = (format!("{known} rows"), format!("{rows} rows"));
            return Err(ErrorKind::TypeMismatch { what, expected, found }.into());
        }
        held.rows = Some(rows);
        held.columns.extend(columns);
        Ok(())
    }

    /// Rows, as far as they are known, and what is known of the columns on the device: for
    /// estimates.
    pub(crate) fn facts(&self, columns: &[usize]) -> (Option<u64>, Vec<Option<Facts>>) {
        let held = self.resident.0.lock().unwrap_or_else(|e| e.into_inner());
        (held.rows, columns.iter().map(|at| held.columns.get(at).map(Facts::of)).collect())
    }

    /// Reads whole columns of a version into device memory: by the device itself what it can, by the
    /// host the rest. No columns read is still the right number of rows.
    ///
    /// # Errors
    /// A file's bad content, with the file's name; of the device.
    pub(crate) async fn read(
        &self,
        state: &SessionState,
        device: &Device,
        snapshot: &Snapshot,
        columns: &[usize],
    ) -> Result<Read> {
        let mut found: Vec<Option<Column>> = columns.iter().map(|_| None).collect();
        let mut rows = None;
        let mut by_host = vec![];
        if !snapshot.parquet.is_empty() && !columns.is_empty() {
            let read = parquet::read(device, &snapshot.parquet, &self.schema, columns)?;
            rows = Some(read.rows);
            for ((found, column), at) in found.iter_mut().zip(read.columns).zip(columns) {
                match column {
                    Ok(column) => *found = Some(column),
                    Err(reason) => by_host.push(self.is_read_by_host(*at, &reason)),
                }
            }
        }
        let left: Vec<usize> = columns.iter().zip(&found).filter(|(_, f)| f.is_none()).map(|(at, _)| *at).collect();
        if rows.is_none() || !left.is_empty() {
            let batches = self.load(state, snapshot, &left).await?;
            let of_host = batches.iter().map(|batch| batch.num_rows() as u64).sum();
            if let Some(rows) = rows.filter(|rows| *rows != of_host) {
                // The host's reader ends where a column's pages do.
                let message = format!("{of_host} rows of some columns, where its footer says {rows}");
                let error = ErrorKind::File { path: PathBuf::new(), message };
                return Err(self.blame(error.into(), state, snapshot).await);
            }
            rows = Some(of_host);
            let table = Table::from_batches(device, Arc::new(self.schema.project(&left)?), &batches)?;
            let mut read = table.columns.into_iter();
            found.iter_mut().filter(|found| found.is_none()).for_each(|found| *found = read.next());
        }
        Ok(Read { rows: rows.unwrap_or(0), columns: found.into_iter().flatten().collect(), by_host })
    }

    fn is_read_by_host(&self, column: usize, reason: &str) -> String {
        let table = self.files.as_ref().map(|files| format!(" of {}", files.selection.named().display()));
        let name = self.schema.field(column).name();
        format!("column {name:?}{} is read by the host: {reason}", table.unwrap_or_default())
    }

    /// Reads whole columns of a version into host memory, in the order of the source's rows. No
    /// columns read is still the right number of rows.
    ///
    /// # Errors
    /// A file's bad content, with the file's name.
    async fn load(&self, state: &SessionState, snapshot: &Snapshot, columns: &[usize]) -> Result<Vec<RecordBatch>> {
        let inner: &dyn Any = snapshot.inner.as_ref();
        if let Some(memory) = inner.downcast_ref::<MemTable>() {
            return in_memory(memory, columns).await;
        }
        match read_all(&snapshot.inner, state, columns).await {
            Ok(batches) => Ok(batches),
            Err(error) => Err(self.blame(error, state, snapshot).await),
        }
    }

    /// Fills in which file an error of unknown file is about: the first that fails when read alone,
    /// or where none does the one that the table's user named.
    async fn blame(&self, error: Error, state: &SessionState, snapshot: &Snapshot) -> Error {
        let (Some(files), Some(version)) = (&self.files, &snapshot.version) else { return error };
        if !lacks_path(&error) {
            return error;
        }
        for file in version.paths() {
            if let Some(failure) = self.failure(file, files, state).await {
                return files.name(failure, file, &self.schema);
            }
        }
        files.name(error, files.selection.named(), &self.schema)
    }

    /// The error of reading one file alone.
    async fn failure(&self, file: &Path, files: &Files, state: &SessionState) -> Option<Error> {
        let provider = match files.provider_with_schema(state, &[file.into()], self.schema.clone()) {
            Ok(provider) => provider,
            Err(error) => return Some(error),
        };
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let error = read_all(&provider, state, &all).await.err()?;
        // Bytes that are no characters are told apart by column.
        let told = error.to_string().to_lowercase().contains("utf-8") || error.to_string().contains("utf8");
        match told {
            true => Some(foreign_bytes(file, files, &self.schema, state).await.unwrap_or(error)),
            false => Some(error),
        }
    }
}

/// Batches of a table in host memory as they are: a scan would cut them into small ones.
async fn in_memory(table: &MemTable, columns: &[usize]) -> Result<Vec<RecordBatch>> {
    let mut batches = vec![];
    for partition in &table.batches {
        for batch in partition.read().await.iter() {
            batches.push(batch.project(columns)?);
        }
    }
    Ok(batches)
}

/// Names the first value of a file's strings that are none.
async fn foreign_bytes(file: &Path, files: &Files, schema: &SchemaRef, state: &SessionState) -> Option<Error> {
    for (at, field) in schema.fields().iter().enumerate().filter(|(_, field)| *field.data_type() == DataType::Utf8View)
    {
        let mut fields = schema.fields().to_vec();
        fields[at] = Arc::new(field.as_ref().clone().with_data_type(DataType::BinaryView));
        let as_bytes = Arc::new(Schema::new(fields));
        let provider = files.provider_with_schema(state, &[file.into()], as_bytes).ok()?;
        let Ok(batches) = read_all(&provider, state, &[at]).await else { continue };
        let mut row = 0u64;
        for batch in &batches {
            for value in batch.column(0).as_binary_view_opt()?.iter() {
                row += 1;
                if let Some(bytes) = value.filter(|bytes| std::str::from_utf8(bytes).is_err()) {
                    let shown: String = bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
                    let more = if bytes.len() > SHOWN { "…" } else { "" };
                    let message = format!("column {:?}, row {row}: the bytes {shown}{more} are no UTF-8", field.name());
                    return Some(ErrorKind::File { path: file.into(), message }.into());
                }
            }
        }
    }
    None
}

/// Bytes of a value that an error shows.
const SHOWN: usize = 32;

/// Whether files have the columns that the table had when it was registered.
fn same_schema(table: &SchemaRef, now: &SchemaRef, files: &Files) -> Result<()> {
    let of = |schema: &SchemaRef| {
        let column = |field: &Arc<Field>| format!("{:?} {}", field.name(), field.data_type());
        schema.fields().iter().map(column).collect::<Vec<_>>()
    };
    let (before, after) = (of(table), of(now));
    // Plans rely on columns without nulls.
    let nulls = (table.fields().iter().zip(now.fields())).find(|(t, n)| !t.is_nullable() && n.is_nullable());
    let message = match (before == after, nulls) {
        (true, None) => return Ok(()),
        (true, Some((field, _))) => format!("column {:?} may be null now", field.name()),
        (false, _) => format!("its columns were {} and are {} now", before.join(", "), after.join(", ")),
    };
    let message = format!("{message}: register the table again");
    Err(ErrorKind::File { path: files.selection.named().into(), message }.into())
}

/// Reads whole columns, in order.
pub(super) async fn read_all(
    inner: &Arc<dyn TableProvider>,
    state: &SessionState,
    columns: &[usize],
) -> Result<Vec<RecordBatch>> {
    unpanicked(async {
        let scan = guard(inner.scan(state, Some(&columns.to_vec()), &[], None).await?)?;
        let partitions = collect_partitioned(scan, state.task_ctx()).await?;
        Ok::<_, Error>(partitions.into_iter().flatten().collect())
    })
    .await
}

#[async_trait]
impl TableProvider for SourceTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let snapshot = match state.as_any().downcast_ref::<SessionState>() {
            Some(state) => self.current(state).await?,
            None => self.last().clone(),
        };
        snapshot.inner.scan(state, projection, filters, limit).await
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        // A reader joins them by AND, one within another.
        if self.push_filters && filters.len() <= MOST_NESTED {
            self.last().inner.supports_filters_pushdown(filters)
        } else {
            Ok(vec![TableProviderFilterPushDown::Unsupported; filters.len()])
        }
    }

    fn statistics(&self) -> Option<Statistics> {
        self.last().inner.statistics()
    }
}

/// Whether a provider is one that sessions make.
pub(crate) fn is_of_session(provider: &dyn TableProvider) -> bool {
    let any: &dyn Any = provider;
    any.is::<DeviceTable>() || any.is::<SourceTable>()
}

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
        Ok(Reading(read))
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
        let names: Vec<_> = tables.map(|files| files.selection.named().display().to_string()).collect();
        let over = if names.is_empty() { String::new() } else { format!(" over {}", names.join(", ")) };
        of_panic(&format!("an operator of the query{over}"), panic)
    }
}

fn lacks_path(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Parse { path: Some(path), .. } | ErrorKind::File { path, .. } => path.as_os_str().is_empty(),
        _ => false,
    }
}
