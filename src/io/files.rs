//! Files as tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType};
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::execution::session_state::SessionState;

use super::csv::{CsvFiles, CsvOptions};
use super::guard::{of_content, unpanicked};
use super::host_files::HostFiles;
use super::options::{FileKind, ParquetOptions};
use super::parquet::{Parquet, ParquetFiles};
use super::source::Source;
use super::stream::read_all;
use crate::error::{Error, ErrorKind, Result};

/// Files of one format and schema that make one table.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) selection: Selection,
    pub(crate) format: Format,
}

/// What files a table has: the path that its user gave.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    named: PathBuf,
    /// Of a directory's files.
    kind: FileKind,
}

/// How files are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Format {
    Parquet(ParquetOptions),
    Csv(Box<CsvOptions>),
    Json,
}

impl Format {
    /// Of files of a kind of which nothing else is said.
    pub(crate) fn of(kind: FileKind) -> Format {
        match kind {
            FileKind::Parquet => Format::Parquet(ParquetOptions::default()),
            FileKind::Csv => Format::Csv(Box::default()),
            FileKind::Json => Format::Json,
        }
    }

    /// Whether types follow from the values: they may be others when the files have changed.
    pub(crate) fn is_inferred(&self) -> bool {
        matches!(self, Format::Csv(_) | Format::Json)
    }

    pub(crate) fn kind(&self) -> FileKind {
        match self {
            Format::Parquet(_) => FileKind::Parquet,
            Format::Csv(_) => FileKind::Csv,
            Format::Json => FileKind::Json,
        }
    }
}

fn listing_parquet(format: Parquet) -> ListingOptions {
    ListingOptions::new(Arc::new(format)).with_file_extension("")
}

/// Types of JSON follow from all rows: what comes late may be of another one.
fn listing_json() -> ListingOptions {
    let format = JsonFormat::default().with_schema_infer_max_rec(usize::MAX);
    ListingOptions::new(Arc::new(format)).with_file_extension("")
}

impl Selection {
    pub(crate) fn new(named: impl Into<PathBuf>, kind: FileKind) -> Selection {
        Selection { named: named.into(), kind }
    }

    /// The files: the named one, a directory's files of the kind, or a pattern's matches, in
    /// byte order.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where there is no such file, and where nothing matches.
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>> {
        let named = &self.named;
        let absent = || Error::io(named, std::io::ErrorKind::NotFound.into());
        let mut paths: Vec<PathBuf> = if named.is_dir() {
            let entries = std::fs::read_dir(named).map_err(|error| Error::io(named, error))?;
            let selected = |file: &PathBuf| FileKind::in_folder(file) == Some(self.kind);
            entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).filter(selected).collect()
        } else if named.exists() {
            return Ok(vec![named.clone()]);
        } else {
            let pattern = self.pattern().ok_or_else(absent)?;
            let matches = glob::glob(pattern).map_err(|error| {
                Error::from(ErrorKind::File { path: named.clone(), message: format!("not a pattern: {error}") })
            })?;
            matches.filter_map(|entry| entry.ok()).filter(|file| file.is_file()).collect()
        };
        paths.sort();
        if paths.is_empty() { Err(absent()) } else { Ok(paths) }
    }

    /// The directory that all files lie in, if it is the only one where files of the selection can
    /// come or go.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        if self.named.is_dir() {
            return Some(self.named.clone());
        }
        self.pattern().filter(|_| !self.named.exists())?;
        let folder = self.named.parent()?;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        folder.is_dir().then(|| folder.to_path_buf())
    }

    /// The path, which a user knows the table's files by.
    pub(crate) fn named(&self) -> &Path {
        &self.named
    }

    fn pattern(&self) -> Option<&str> {
        self.named.to_str().filter(|text| text.contains(['*', '?', '[']))
    }
}

impl Files {
    /// The files that a path names, in this format.
    pub(crate) fn new(named: &Path, format: Format) -> Files {
        Files { selection: Selection::new(named, format.kind()), format }
    }

    /// Reads the schema (for CSV, infers it) and makes a source of these of the files.
    ///
    /// # Errors
    /// Files that cannot be opened or whose content does not fit their format, by name.
    pub(super) async fn source(&self, state: &SessionState, paths: &[PathBuf]) -> Result<Arc<dyn Source>> {
        match &self.format {
            Format::Csv(csv) => Ok(Arc::new(CsvFiles::open(paths, csv)?)),
            Format::Parquet(parquet) => {
                let format = Parquet::new(state, *parquet);
                let options = listing_parquet(format.clone());
                let (schema, _) = self.schema_of(state, &options, paths).await?;
                self.within_nanoseconds(state, paths, &schema).await?;
                // With the format that has the footers already.
                let table = listing(options, paths, schema)?;
                let files = paths.iter().map(|path| format.described(path, url(path)?.prefix()));
                Ok(Arc::new(ParquetFiles::new(self.selection.named.clone(), files.collect::<Result<_>>()?, table)))
            }
            Format::Json => {
                let options = listing_json();
                let (schema, bytes) = self.schema_of_json(state, &options, paths).await?;
                Ok(Arc::new(HostFiles::new(listing(options, paths, schema)?, bytes)))
            }
        }
    }

    /// The columns of all files, of which a row need not have all, and the files' bytes.
    async fn schema_of_json(
        &self,
        state: &SessionState,
        options: &ListingOptions,
        paths: &[PathBuf],
    ) -> Result<(SchemaRef, u64)> {
        let (mut all, mut bytes) = (Schema::empty(), 0);
        for (path, described) in paths.iter().zip(self.describe(state, options, paths).await) {
            let (schema, size) = described?;
            bytes += size;
            all = Schema::try_merge([all, schema.as_ref().clone()])
                .map_err(|error| Error::from(ErrorKind::File { path: path.clone(), message: error.to_string() }))?;
        }
        if all.fields().is_empty() {
            let path = paths.first().cloned().unwrap_or_default();
            return Err(ErrorKind::File { path, message: "no row has a value".into() }.into());
        }
        Ok((Arc::new(all), bytes))
    }

    /// The schema of all files, and each file's bytes.
    async fn schema_of(
        &self,
        state: &SessionState,
        options: &ListingOptions,
        paths: &[PathBuf],
    ) -> Result<(SchemaRef, Vec<(PathBuf, u64)>)> {
        let mut schema: Option<SchemaRef> = None;
        let mut files = vec![];
        for (path, described) in paths.iter().zip(self.describe(state, options, paths).await) {
            let (of_file, size) = described?;
            files.push((path.clone(), size));
            schema = Some(match schema {
                None => of_file,
                Some(first) => {
                    same_columns(&first, &of_file, &paths[0], path)?;
                    with_nulls_of(first, &of_file)
                }
            });
        }
        Ok((schema.unwrap_or_else(|| Arc::new(Schema::empty())), files))
    }

    /// The schema of each file, and its bytes: of many files by as many threads as there are cores.
    async fn describe(
        &self,
        state: &SessionState,
        options: &ListingOptions,
        paths: &[PathBuf],
    ) -> Vec<Result<(SchemaRef, u64)>> {
        /// Least files for a thread: starting it takes as long as reading the schemas of some.
        const LEAST: usize = 8;
        /// Bytes of a thread's stack: readers of schemas recurse as deep as these are nested.
        const STACK: usize = 64 << 20;
        if paths.len() <= LEAST {
            let mut described = vec![];
            for path in paths {
                described.push(self.describe_file(state, options, path).await);
            }
            return described;
        }
        let runtime = tokio::runtime::Handle::current();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let each = paths.len().div_ceil(cores).max(LEAST);
        let describe = |path: &PathBuf| runtime.block_on(self.describe_file(state, options, path));
        let part = |paths: &'_ [PathBuf]| paths.iter().map(describe).collect::<Vec<_>>();
        std::thread::scope(|scope| {
            let part = &part;
            let thread = |paths| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, move || part(paths));
            let threads: Vec<_> = paths.chunks(each).map(thread).collect();
            let join = |thread: std::io::Result<ScopedJoinHandle<'_, _>>| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(error) => vec![Err(Error::internal(format!("the system gives no thread: {error}")))],
            };
            threads.into_iter().flat_map(join).collect()
        })
    }

    async fn describe_file(
        &self,
        state: &SessionState,
        options: &ListingOptions,
        path: &Path,
    ) -> Result<(SchemaRef, u64)> {
        // The system's own account of an unreadable file is better than what comes out of the
        // reader.
        let size = std::fs::File::open(path).and_then(|file| file.metadata()).map_err(|e| Error::io(path, e))?.len();
        if size == 0 {
            return Err(ErrorKind::File { path: path.into(), message: "is empty".into() }.into());
        }
        let schema = unpanicked(options.infer_schema(state, &url(path)?)).await;
        Ok((schema.map_err(|error| self.name(of_content(error), path))?, size))
    }

    /// Where INT96 is read as nanoseconds, whether all of it fits: the parquet crate (59) wraps
    /// what does not. Microseconds hold it.
    async fn within_nanoseconds(&self, state: &SessionState, paths: &[PathBuf], schema: &SchemaRef) -> Result<()> {
        let Format::Parquet(options) = self.format else { return Ok(()) };
        if options.coerce_int96_timestamp_unit != TimeUnit::Nanosecond {
            return Ok(());
        }
        let options = ParquetOptions { coerce_int96_timestamp_unit: TimeUnit::Microsecond };
        let wide = Files { format: Format::Parquet(options), ..self.clone() };
        let listing = listing_parquet(Parquet::new(state, options));
        for path in paths {
            let in_microseconds = listing.infer_schema(state, &url(path)?).await?;
            let int96 = (schema.fields().iter().zip(in_microseconds.fields()).enumerate())
                .filter(|(_, (nanos, micros))| nanos.data_type() != micros.data_type());
            let int96: Vec<usize> = int96.map(|(at, _)| at).collect();
            if int96.is_empty() {
                continue;
            }
            let provider = wide.provider_with_schema(state, std::slice::from_ref(path), in_microseconds)?;
            let batches = read_all(&provider, state, &int96).await.map_err(|error| self.name(error, path))?;
            for (at, column) in batches.iter().flat_map(|batch| int96.iter().zip(batch.columns())) {
                if let Some(micros) = beyond_nanoseconds(column.as_ref()) {
                    let name = schema.field(*at).name();
                    let message = format!("column {name:?}: {micros} µs since 1970 are beyond 64 bits of nanoseconds");
                    return Err(ErrorKind::File { path: path.clone(), message }.into());
                }
            }
        }
        Ok(())
    }

    /// Files as DataFusion reads them. CSV files are read, and named in errors, by [`CsvFiles`].
    pub(crate) fn provider_with_schema(
        &self,
        state: &SessionState,
        paths: &[PathBuf],
        schema: SchemaRef,
    ) -> Result<Arc<dyn TableProvider>> {
        match &self.format {
            Format::Parquet(options) => listing(listing_parquet(Parquet::new(state, *options)), paths, schema),
            Format::Csv(_) => Err(Error::internal("CSV files are not listed")),
            Format::Json => listing(listing_json(), paths, schema),
        }
    }

    /// Puts the file's name into an error about its content.
    pub(crate) fn name(&self, error: Error, file: &Path) -> Error {
        match error.kind() {
            ErrorKind::File { message, .. } | ErrorKind::Plan { message, .. } => {
                ErrorKind::File { path: file.into(), message: message.clone() }.into()
            }
            _ => error,
        }
    }
}

fn listing(options: ListingOptions, paths: &[PathBuf], schema: SchemaRef) -> Result<Arc<dyn TableProvider>> {
    let urls = paths.iter().map(|path| url(path)).collect::<Result<Vec<_>>>()?;
    let config = ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options).with_schema(schema);
    Ok(Arc::new(ListingTable::try_new(config)?))
}

/// A timestamp in microseconds that nanoseconds do not reach.
fn beyond_nanoseconds(array: &dyn Array) -> Option<i64> {
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>();
            micros.iter().flatten().find(|micros| micros.checked_mul(1000).is_none())
        }
        DataType::List(_) => beyond_nanoseconds(array.as_list::<i32>().values().as_ref()),
        DataType::LargeList(_) => beyond_nanoseconds(array.as_list::<i64>().values().as_ref()),
        DataType::FixedSizeList(..) => beyond_nanoseconds(array.as_fixed_size_list().values().as_ref()),
        DataType::Map(..) => beyond_nanoseconds(array.as_map().entries()),
        DataType::Struct(_) => array.as_struct().columns().iter().find_map(|of| beyond_nanoseconds(of.as_ref())),
        _ => None,
    }
}

fn same_columns(first: &Schema, other: &Schema, first_path: &Path, path: &Path) -> Result<()> {
    let names = |schema: &Schema| schema.fields().iter().map(|f| f.name().clone()).collect::<Vec<_>>();
    if names(first) == names(other) {
        return Ok(());
    }
    let message = format!(
        "columns {} differ from {} of {}",
        names(other).join(", "),
        names(first).join(", "),
        first_path.display()
    );
    Err(ErrorKind::File { path: path.into(), message }.into())
}

/// The schema of a table whose columns have nulls where those of another of its files may have
/// some.
fn with_nulls_of(table: SchemaRef, file: &Schema) -> SchemaRef {
    let nulls = |(table, file): (&Arc<Field>, &Arc<Field>)| file.is_nullable() && !table.is_nullable();
    if !table.fields().iter().zip(file.fields()).any(nulls) {
        return table;
    }
    let fields = table.fields().iter().zip(file.fields()).map(|(table, file)| {
        let is_nullable = table.is_nullable() || file.is_nullable();
        table.as_ref().clone().with_nullable(is_nullable)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A `file:` URL: as a plain path, `*` in a file's name would be taken for a pattern.
fn url(path: &Path) -> Result<ListingTableUrl> {
    let absolute = std::path::absolute(path).map_err(|error| Error::io(path, error))?;
    let mut url = String::from("file://");
    for &byte in absolute.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => url.push(byte as char),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(ListingTableUrl::parse(url)?)
}
