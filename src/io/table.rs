//! The tables of a session, as DataFusion's planner sees them.
//!
//! A column whose rows were all read stays in device memory, as long as the version of its table is
//! the newest and nobody wants the room: the columns used longest ago go first, and are read again
//! when a query wants them. A query checks the version by one `stat` of each file (`version.rs`),
//! and reads changed files anew. Where the first rows are enough, only the chunks that have them
//! are read, and nothing stays; nor does what tables of other providers yield.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::datasource::TableType;
use datafusion::error::Result as PlanResult;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::{Mutex, MutexGuard};

use super::device_table::DeviceTable;
use super::files::{Files, Format};
use super::resident::Resident;
use super::source::{Chunk, ColumnRequest, Read, Source, To, rows};
use super::stream;
use super::unite::wider;
use super::version::Version;
use crate::column::{Column, EqualSteps, Facts, Relation};
use crate::error::{Error, ErrorKind, Result};
use warpframe_device::timeline::{Part, span};

/// A table that is read from files or host memory, with those of its columns that were read to the
/// device already.
#[derive(Debug)]
pub(crate) struct SourceTable {
    pub(super) files: Option<Files>,
    /// The version that was read last.
    last: Mutex<Arc<Snapshot>>,
    resident: Arc<Resident>,
    /// Most filters that a scan takes, which its reader joins by AND, one within another: none
    /// where a device reads whole columns and filters itself.
    most_filters: usize,
}

/// A table in one version.
#[derive(Debug)]
pub(crate) struct Snapshot {
    source: Arc<dyn Source>,
    /// `None` for tables in host memory, which never change.
    version: Option<Version>,
    /// Versions of a table are counted.
    number: u64,
}

impl Snapshot {
    /// A table that has one version.
    pub(crate) fn of(source: Arc<dyn Source>) -> Snapshot {
        Snapshot { source, version: None, number: 0 }
    }

    /// The present version of files.
    ///
    /// # Errors
    /// Files that cannot be opened or whose content does not fit their format, by name.
    pub(crate) async fn of_files(
        files: &Files,
        state: &SessionState,
        number: u64,
    ) -> Result<Snapshot> {
        let _span = span(Part::Footers, || format!("{:?}", files.selection));
        let mut version = Version::of(&files.selection)?;
        for _ in 0..PATIENCE {
            let wait = version.settles_in();
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
                version = Version::of(&files.selection)?;
                continue;
            }
            let paths: Vec<PathBuf> = version.paths().cloned().collect();
            let source = files.source(state, &paths).await;
            // What a file that changed meanwhile made of it says nothing.
            if version.is_current(&files.selection)? {
                return Ok(Snapshot { source: source?, version: Some(version), number });
            }
            version = Version::of(&files.selection)?;
        }
        Err(restless(files))
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.source.schema()
    }

    /// Its rows.
    pub(crate) fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }

    /// Tells it from other versions of its table.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// How much of a table was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    All,
    /// Its first rows, enough for who asked.
    First,
}

/// Chunks at the begin of a source that have the first rows, where reading only these is worth it.
/// A source whose chunks do not know their rows is asked for first rows itself.
fn first_chunks(all: &[Chunk], fetch: u64) -> Option<usize> {
    /// Of what is read of a table in part nothing stays for later queries: it has to be a small
    /// part.
    const SMALL: u64 = 8;
    let Some(known) = rows(all) else { return Some(all.len()) };
    let mut before = 0;
    let end = all.iter().position(|chunk| {
        before += chunk.rows.unwrap_or(0);
        before >= fetch
    })?;
    (before.saturating_mul(SMALL) <= known).then_some(end + 1)
}

/// How often reading begins anew when files change meanwhile.
pub(super) const PATIENCE: usize = 5;

pub(super) fn restless(files: &Files) -> Error {
    let message = "it changed while it was read, again and again".to_string();
    ErrorKind::File { path: files.selection.named().into(), message }.into()
}

/// Some of the files of a table in one version.
#[derive(Debug)]
pub(crate) struct FilePart {
    files: Vec<usize>,
    /// How many files the table has.
    all: usize,
    source: Arc<dyn Source>,
}

impl FilePart {
    /// Their rows.
    pub(crate) fn source(&self) -> &Arc<dyn Source> {
        &self.source
    }
}

/// How many of the files it has.
impl fmt::Display for FilePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} files", self.files.len(), self.all)
    }
}

impl SourceTable {
    pub(crate) fn new(snapshot: Snapshot, files: Option<Files>, most_filters: usize) -> Self {
        let last = Mutex::new(Arc::new(snapshot));
        SourceTable { files, last, resident: Arc::default(), most_filters }
    }

    pub(super) fn last(&self) -> MutexGuard<'_, Arc<Snapshot>> {
        self.last.lock()
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
    /// the table, or narrower ones.
    pub(crate) async fn current(&self, state: &SessionState) -> Result<Arc<Snapshot>> {
        let Some(files) = &self.files else { return Ok(self.last().clone()) };
        if let Some(known) = self.known()? {
            return Ok(known);
        }
        let number = self.last().number + 1;
        let next = Arc::new(Snapshot::of_files(files, state, number).await?);
        same_columns(&self.schema(), &next.source.schema(), files)?;
        let mut last = self.last();
        // Somebody else may have been faster.
        if last.number < number {
            *last = next.clone();
        } else if last.version == next.version {
            return Ok(last.clone());
        } else {
            let (source, version) = (next.source.clone(), next.version.clone());
            *last = Arc::new(Snapshot { source, version, number: last.number + 1 });
        }
        Ok(last.clone())
    }

    /// Gives columns in which values did not fit types that hold them; whether there were any.
    /// Plans over the table are to be made again.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub(crate) fn widen(&self) -> Result<bool> {
        let last = self.last().clone();
        let Some(source) = last.source.widened()? else { return Ok(false) };
        let mut held = self.last();
        // Of a version that somebody replaced meanwhile nothing follows.
        if Arc::ptr_eq(&held, &last) {
            *held = Arc::new(Snapshot {
                source,
                version: last.version.clone(),
                number: last.number + 1,
            });
        }
        Ok(true)
    }

    /// The files of a version in which scans with these filters may find rows; `None` where that is
    /// all of them.
    ///
    /// # Errors
    /// None: what cannot be told is left to who filters rows.
    pub(crate) fn part(
        &self,
        state: &SessionState,
        snapshot: &Snapshot,
        scans: &[Vec<Expr>],
    ) -> Result<Option<FilePart>> {
        let source = &snapshot.source;
        let Some(paths) = source.paths().filter(|paths| !paths.fields.is_empty()) else {
            return Ok(None);
        };
        let Some(files) = paths.selected_by_any(state, scans)? else { return Ok(None) };
        let all = paths.files();
        Ok(source.of_files(&files).map(|source| FilePart { files, all, source }))
    }

    /// How many of its files scans with these filters read, of how many; `None` of tables that are
    /// not several files. It is said of the version that was read last: nothing is looked at.
    ///
    /// # Errors
    /// As [`SourceTable::part`].
    pub(crate) fn files_read(
        &self,
        state: &dyn Session,
        scans: &[Vec<Expr>],
    ) -> Result<Option<String>> {
        let last = self.last().clone();
        let all = last.version.as_ref().map_or(0, |version| version.paths().count());
        let read = match last.source.paths().filter(|paths| !paths.fields.is_empty()) {
            Some(paths) => paths.selected_by_any(state, scans)?.map_or(all, |files| files.len()),
            None => all,
        };
        Ok(match (read, all) {
            (_, 0 | 1) if read == all => None,
            _ if read == all => Some(format!("{all} files")),
            _ => Some(format!("{read} of {all} files")),
        })
    }

    /// Columns of a version, or of some of its files, as far as all of them and the number of rows
    /// are on the device.
    pub(crate) fn resident(
        &self,
        snapshot: &Snapshot,
        part: Option<&FilePart>,
        columns: &[usize],
    ) -> Result<Option<Relation>> {
        self.resident.relation(snapshot.number, part.map(|part| &part.files[..]), columns)
    }

    /// Each of the columns of a version, or of some of its files, as far as it is on the device.
    /// Who has it keeps it there.
    pub(crate) fn held(
        &self,
        snapshot: &Snapshot,
        part: Option<&FilePart>,
        columns: &[usize],
    ) -> Vec<Option<Column>> {
        self.resident.columns(snapshot.number, part.map(|part| &part.files[..]), columns)
    }

    /// Keeps columns of a version, or of some of its files, in place of those of other ones; in
    /// vain where a later version is held already.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`] where the table has another number of rows.
    pub(crate) fn keep(
        &self,
        snapshot: &Snapshot,
        part: Option<&FilePart>,
        rows: u64,
        columns: Vec<(usize, Column)>,
    ) -> Result<()> {
        let kept =
            self.resident.keep(snapshot.number, part.map(|part| &part.files[..]), rows, columns);
        kept.map_err(|known| {
            let what = self
                .files
                .as_ref()
                .map_or("a table".into(), |files| files.selection.named().display().to_string());
            let (expected, found) = (format!("{known} rows"), format!("{rows} rows"));
            ErrorKind::TypeMismatch { what, expected, found }.into()
        })
    }

    /// Rows of the version that was read last, in the files where scans with these filters may find
    /// any, where they are known before they are read.
    ///
    /// # Errors
    /// As [`SourceTable::part`].
    pub(crate) fn known_rows(
        &self,
        state: &SessionState,
        scans: &[Vec<Expr>],
    ) -> Result<Option<u64>> {
        let last = self.last().clone();
        let part = self.part(state, &last, scans)?;
        Ok(rows(&part.as_ref().map_or(&last.source, |part| &part.source).chunks()))
    }

    /// What its one column holds, where kernels can compute it. Such a table has one version.
    pub(crate) fn equal_steps(&self) -> Option<EqualSteps> {
        self.last().source.equal_steps()
    }

    /// Rows, as far as they are known, and what is known of columns, on the device or before they
    /// are read: for estimates.
    fn facts(&self, columns: &[usize]) -> (Option<u64>, Vec<Option<Facts>>) {
        let source = self.last().source.clone();
        let (rows_read, of_read) = self.resident.facts(columns);
        let facts =
            columns.iter().zip(of_read).map(|(at, of_read)| of_read.or_else(|| source.facts(*at)));
        (rows_read.or_else(|| rows(&source.chunks())), facts.collect())
    }

    /// Reads columns of a version, or of some of its files, into device memory: all rows, or those
    /// of the chunks at its begin that have the first `fetch` rows, where these are few chunks.
    /// Whether all were read.
    ///
    /// # Errors
    /// A file's bad content, with the file's name; of the device.
    pub(crate) async fn read(
        &self,
        to: &To<'_>,
        snapshot: &Snapshot,
        part: Option<&FilePart>,
        columns: &[usize],
        fetch: Option<u64>,
    ) -> Result<(Read, Extent)> {
        let source = part.map_or(&snapshot.source, |part| &part.source);
        let all = source.chunks();
        let first = fetch.and_then(|fetch| Some((fetch, first_chunks(&all, fetch)?)));
        let wanted = match first {
            Some((fetch, chunks)) => {
                ColumnRequest { chunks: 0..chunks, columns, fetch: Some(fetch) }
            }
            None => ColumnRequest { chunks: 0..all.len(), columns, fetch: None },
        };
        let extent = if wanted.fetch.is_some() { Extent::First } else { Extent::All };
        match source.read(to, &wanted).await {
            Ok(read) => Ok((read, extent)),
            Err(error) => Err(self.blame(error, to.state, snapshot).await),
        }
    }

    /// Fills in which file an error of unknown file is about: the first that fails when read alone,
    /// or where none does the one that the table's user named.
    pub(super) async fn blame(
        &self,
        error: Error,
        state: &SessionState,
        snapshot: &Snapshot,
    ) -> Error {
        let (Some(files), Some(version)) = (&self.files, &snapshot.version) else { return error };
        if !lacks_path(&error) || matches!(files.format, Format::Csv(_) | Format::Arrow(_)) {
            return error;
        }
        for file in version.paths() {
            if let Some(failure) = self.failure(file, files, state).await {
                return files.name(failure, file);
            }
        }
        files.name(error, files.selection.named())
    }

    /// The error of reading one file alone.
    async fn failure(&self, file: &Path, files: &Files, state: &SessionState) -> Option<Error> {
        let provider = match files.provider_with_schema(state, file, self.schema()) {
            Ok(provider) => provider,
            Err(error) => return Some(error),
        };
        let all: Vec<usize> = (0..self.schema().fields().len()).collect();
        let error = stream::read_all(&provider, state, &all).await.err()?;
        // Bytes that are no characters are told apart by column.
        let told = error.to_string().to_lowercase().contains("utf-8")
            || error.to_string().contains("utf8");
        match told {
            true => Some(foreign_bytes(file, files, &self.schema(), state).await.unwrap_or(error)),
            false => Some(error),
        }
    }
}

/// Names the first value of a file's strings that are none.
async fn foreign_bytes(
    file: &Path,
    files: &Files,
    schema: &SchemaRef,
    state: &SessionState,
) -> Option<Error> {
    for (at, field) in schema
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| *field.data_type() == DataType::Utf8View)
    {
        let mut fields = schema.fields().to_vec();
        fields[at] = Arc::new(field.as_ref().clone().with_data_type(DataType::BinaryView));
        let as_bytes = Arc::new(Schema::new(fields));
        let provider = files.provider_with_schema(state, file, as_bytes).ok()?;
        let Ok(batches) = stream::read_all(&provider, state, &[at]).await else { continue };
        let mut row = 0u64;
        for batch in &batches {
            for value in batch.column(0).as_binary_view_opt()?.iter() {
                row += 1;
                if let Some(bytes) = value.filter(|bytes| std::str::from_utf8(bytes).is_err()) {
                    let shown: String =
                        bytes.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
                    let more = if bytes.len() > SHOWN { "…" } else { "" };
                    let message = format!(
                        "column {:?}, row {row}: the bytes {shown}{more} are no UTF-8",
                        field.name()
                    );
                    return Some(ErrorKind::File { path: file.into(), message }.into());
                }
            }
        }
    }
    None
}

/// Bytes of a value that an error shows.
const SHOWN: usize = 32;

/// Whether files have the columns that the table had before, in types that hold the values of
/// those, or in any where types are inferred. Plans over other types are made again
/// ([`has_present_types`]).
///
/// [`has_present_types`]: super::has_present_types
fn same_columns(table: &SchemaRef, now: &SchemaRef, files: &Files) -> Result<()> {
    let is_inferred = files.format.is_inferred();
    let holds = |before: &Field, now: &Field| {
        is_inferred || wider(before.data_type(), now.data_type()).as_ref() == Some(now.data_type())
    };
    let mut both = table.fields().iter().zip(now.fields());
    if table.fields().len() == now.fields().len()
        && both.all(|(before, now)| before.name() == now.name() && holds(before, now))
    {
        return Ok(());
    }
    let of = |schema: &SchemaRef| {
        let column = |field: &Arc<Field>| match is_inferred {
            true => format!("{:?}", field.name()),
            false => format!("{:?} {}", field.name(), field.data_type()),
        };
        schema.fields().iter().map(column).collect::<Vec<_>>().join(", ")
    };
    let message =
        format!("its columns were {} and are {} now: register the table again", of(table), of(now));
    Err(ErrorKind::File { path: files.selection.named().into(), message }.into())
}

#[async_trait]
impl TableProvider for SourceTable {
    fn schema(&self) -> SchemaRef {
        self.last().source.schema()
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
        snapshot.source.scan(state, projection, filters, limit).await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        if filters.len() <= self.most_filters {
            self.last().source.supports_filters(filters)
        } else {
            Ok(vec![TableProviderFilterPushDown::Unsupported; filters.len()])
        }
    }

    fn statistics(&self) -> Option<Statistics> {
        self.last().source.statistics()
    }
}

/// A provider as the tables that sessions make.
pub(crate) enum OfSession<'a> {
    /// In device memory whole.
    Device(&'a DeviceTable),
    /// Read when it is asked for.
    Source(&'a SourceTable),
}

impl OfSession<'_> {
    /// `None` for what somebody registered with DataFusion.
    pub(crate) fn of(provider: &dyn TableProvider) -> Option<OfSession<'_>> {
        let any: &dyn Any = provider;
        match any.downcast_ref() {
            Some(table) => Some(OfSession::Device(table)),
            None => any.downcast_ref().map(OfSession::Source),
        }
    }

    /// Whether nothing but its schema matters to a plan: no filter is pushed into its scans.
    pub(crate) fn is_read_whole(&self) -> bool {
        match self {
            OfSession::Device(_) => true,
            OfSession::Source(table) => table.most_filters == 0,
        }
    }

    /// Whether the session has all of its rows, which are nobody else's.
    pub(crate) fn is_kept(&self) -> bool {
        match self {
            OfSession::Device(_) => true,
            OfSession::Source(table) => table.files.is_none(),
        }
    }

    /// Rows, as far as they are known, and what is known of columns: for estimates.
    pub(crate) fn facts(&self, columns: &[usize]) -> (Option<u64>, Vec<Option<Facts>>) {
        match self {
            OfSession::Device(table) => (
                Some(table.table.rows() as u64),
                columns.iter().map(|at| table.facts(*at)).collect(),
            ),
            OfSession::Source(table) => table.facts(columns),
        }
    }
}

pub(super) fn lacks_path(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Parse { path: Some(path), .. } | ErrorKind::File { path, .. } => {
            path.as_os_str().is_empty()
        }
        _ => false,
    }
}
