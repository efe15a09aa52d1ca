//! Files as tables.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{
    DataType, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType,
};
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::session_state::SessionState;
use datafusion::object_store::ObjectMeta;

use super::csv::{CsvFiles, CsvOptions};
use super::guard::{of_content, unpanicked};
use super::ipc;
use super::json;
use super::logged::refuse_logged;
use super::notes::LeftOut;
use super::options::{FileKind, IpcOptions, JsonOptions, ParquetOptions, PathOptions};
use super::parquet::{Parquet, ParquetFiles, ParquetTable, TableFile};
use super::path_columns::PathColumns;
use super::selection::{IntoPaths, Selection, refuse_address};
use super::source::Source;
use super::spool;
use super::stream::read_all;
use super::table_log::refuse_log_of;
use super::unite::{lost_as_double, unite};
use crate::error::{Error, ErrorKind, Result};
use warpframe_device::cores::cores;

/// Files of one format that make one table.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) selection: Selection,
    pub(crate) format: Format,
}

/// How files are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Format {
    Parquet(ParquetOptions),
    Csv(Box<CsvOptions>),
    Json(JsonOptions),
    Arrow(IpcOptions),
}

impl Format {
    /// Of files of a kind of which nothing else is said.
    pub(crate) fn of(kind: FileKind) -> Format {
        match kind {
            FileKind::Parquet => Format::Parquet(ParquetOptions::default()),
            FileKind::Csv => Format::Csv(Box::default()),
            FileKind::Json => Format::Json(JsonOptions::default()),
            FileKind::Arrow => Format::Arrow(IpcOptions::default()),
        }
    }

    /// Whether types follow from the values: they may be others when the files have changed.
    pub(crate) fn is_inferred(&self) -> bool {
        matches!(self, Format::Csv(_) | Format::Json(_))
    }

    pub(crate) fn kind(&self) -> FileKind {
        match self {
            Format::Parquet(_) => FileKind::Parquet,
            Format::Csv(_) => FileKind::Csv,
            Format::Json(_) => FileKind::Json,
            Format::Arrow(_) => FileKind::Arrow,
        }
    }

    /// Which columns paths make.
    fn paths(&self) -> PathOptions {
        match self {
            Format::Parquet(options) => options.paths(),
            Format::Csv(options) => options.paths(),
            Format::Json(options) => options.paths(),
            Format::Arrow(options) => options.paths(),
        }
    }
}

impl Files {
    /// The files that paths name, in this format.
    ///
    /// # Errors
    /// [`ErrorKind::Plan`] of no path; [`ErrorKind::File`] of a path that is an address, and of a
    /// directory whose log says which files count.
    pub(crate) fn of(named: impl IntoPaths, format: Format) -> Result<Files> {
        let named = named.into_paths();
        for path in &named {
            refuse_address(path)?;
            refuse_log_of(path)?;
        }
        Ok(Files { selection: Selection::of(named, format.kind())?, format })
    }

    /// Reads the schema (for CSV, infers it) and makes a source of these of the files.
    ///
    /// # Errors
    /// Files that cannot be opened or whose content does not fit their format, by name; columns
    /// that do not fit together.
    pub(super) async fn source(
        &self,
        state: &SessionState,
        paths: &[PathBuf],
    ) -> Result<Arc<dyn Source>> {
        refuse_logged(&self.selection, paths)?;
        let of_paths = PathColumns::of(&self.selection, paths, &self.format.paths())?;
        let mut left_out = LeftOut::default();
        let (paths, of_paths) = self.without_empty(paths, of_paths, &mut left_out)?;
        let source = self.source_of(state, &paths, of_paths, &mut left_out).await?;
        left_out.tell(state, self.selection.named());
        Ok(source)
    }

    /// Leaves out files without a byte, where there are others.
    fn without_empty(
        &self,
        paths: &[PathBuf],
        of_paths: PathColumns,
        left_out: &mut LeftOut,
    ) -> Result<(Vec<PathBuf>, PathColumns)> {
        let is_empty = |path: &PathBuf| Ok(spool::metadata(path)?.len() == 0);
        let empty = paths.iter().map(is_empty).collect::<Result<Vec<_>>>()?;
        if !empty.contains(&true) || !empty.contains(&false) {
            return Ok((paths.to_vec(), of_paths));
        }
        let (kept, bare): (Vec<usize>, Vec<usize>) = (0..paths.len()).partition(|at| !empty[*at]);
        bare.iter().for_each(|at| left_out.empty(&paths[*at]));
        left_out.others(paths, of_paths, &kept)
    }

    async fn source_of(
        &self,
        state: &SessionState,
        paths: &[PathBuf],
        of_paths: PathColumns,
        left_out: &mut LeftOut,
    ) -> Result<Arc<dyn Source>> {
        match &self.format {
            Format::Csv(csv) => Ok(Arc::new(CsvFiles::open(paths, csv, of_paths)?)),
            Format::Parquet(options) => {
                let format = Parquet::new(state, options.clone());
                let found = self.describe(state, &format, paths).await;
                let (mut kept, mut files) = (vec![], vec![]);
                for (at, (path, file)) in paths.iter().zip(found).enumerate() {
                    if let Some(file) = left_out.unless_bad(path, file, options.ignore_errors)? {
                        kept.push(at);
                        files.push(file);
                    }
                }
                let (paths, of_paths) = left_out.others(paths, of_paths, &kept)?;
                let paths = paths.as_slice();
                self.within_nanoseconds(state, options, paths, &files).await?;
                let named = paths
                    .iter()
                    .zip(&files)
                    .map(|(path, file)| (path.clone(), file.schema.clone()));
                let named: Vec<(PathBuf, SchemaRef)> = named.collect();
                let united = unite(&named, options.union_by_name)?;
                for (file, column, doubles) in united.to_doubles {
                    let doubles = &named[doubles].0;
                    self.are_doubles(state, &format, (&paths[file], &files[file]), column, doubles)
                        .await?;
                }
                let schema = of_paths.behind(&united.schema, self.selection.named())?;
                let described =
                    paths.iter().zip(&files).map(|(path, file)| format.described(path, file));
                let described = described.collect::<Result<_>>()?;
                // With the format that has the footers already.
                let table = Arc::new(ParquetTable::new(format, files, &schema, of_paths));
                Ok(Arc::new(ParquetFiles::new(self.selection.named().into(), described, table)))
            }
            Format::Json(options) => {
                let files = (paths, of_paths);
                Ok(Arc::new(json::files(&self.selection, files, options, left_out)?))
            }
            Format::Arrow(options) => {
                let files = (paths, of_paths);
                Ok(Arc::new(ipc::files(&self.selection, state, files, options, left_out).await?))
            }
        }
    }

    /// Each file's columns: of many files by as many threads as there are cores.
    async fn describe(
        &self,
        state: &SessionState,
        format: &Parquet,
        paths: &[PathBuf],
    ) -> Vec<Result<TableFile>> {
        /// Least files for a thread: starting it takes as long as reading the schemas of some.
        const LEAST: usize = 8;
        /// Bytes of a thread's stack: readers of schemas recurse as deep as these are nested.
        const STACK: usize = 64 << 20;
        if paths.len() <= LEAST {
            let mut described = vec![];
            for path in paths {
                described.push(self.describe_file(state, format, path).await);
            }
            return described;
        }
        let runtime = tokio::runtime::Handle::current();
        let cores = cores();
        let each = paths.len().div_ceil(cores).max(LEAST);
        let describe = |path: &PathBuf| runtime.block_on(self.describe_file(state, format, path));
        let part = |paths: &'_ [PathBuf]| paths.iter().map(describe).collect::<Vec<_>>();
        std::thread::scope(|scope| {
            let part = &part;
            let thread = |paths| {
                std::thread::Builder::new()
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || part(paths))
            };
            let threads: Vec<_> = paths.chunks(each).map(thread).collect();
            let join = |thread: std::io::Result<ScopedJoinHandle<'_, _>>| match thread {
                Ok(thread) => {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                }
                Err(error) => {
                    vec![Err(Error::internal(format!("the system gives no thread: {error}")))]
                }
            };
            threads.into_iter().flat_map(join).collect()
        })
    }

    async fn describe_file(
        &self,
        state: &SessionState,
        format: &Parquet,
        path: &Path,
    ) -> Result<TableFile> {
        let object = object(path)?;
        if object.size == 0 {
            return Err(ErrorKind::File { path: path.into(), message: "is empty".into() }.into());
        }
        let store = state.runtime_env().object_store(ObjectStoreUrl::local_filesystem())?;
        let schema =
            unpanicked(format.infer_schema(state, &store, std::slice::from_ref(&object))).await;
        let schema = schema.map_err(|error| self.name(of_content(error), path))?;
        Ok(TableFile { object, schema })
    }

    /// Where INT96 is read as nanoseconds, whether all of it fits: the parquet crate (59) wraps
    /// what does not. Microseconds hold it.
    async fn within_nanoseconds(
        &self,
        state: &SessionState,
        options: &ParquetOptions,
        paths: &[PathBuf],
        files: &[TableFile],
    ) -> Result<()> {
        if options.coerce_int96_timestamp_unit != TimeUnit::Nanosecond {
            return Ok(());
        }
        let format = Parquet::new(
            state,
            ParquetOptions {
                coerce_int96_timestamp_unit: TimeUnit::Microsecond,
                ..options.clone()
            },
        );
        for (path, file) in paths.iter().zip(files) {
            let wide = self.describe_file(state, &format, path).await?;
            let int96 = (file.schema.fields().iter().zip(wide.schema.fields()).enumerate())
                .filter(|(_, (nanos, micros))| nanos.data_type() != micros.data_type());
            let int96: Vec<usize> = int96.map(|(at, _)| at).collect();
            if int96.is_empty() {
                continue;
            }
            let batches = self.columns_of(state, &format, path, &wide, &int96).await?;
            for (at, column) in batches.iter().flat_map(|batch| int96.iter().zip(batch.columns())) {
                if let Some(micros) = beyond_nanoseconds(column.as_ref()) {
                    let name = file.schema.field(*at).name();
                    let message = format!(
                        "column {name:?}: {micros} µs since 1970 are beyond 64 bits of nanoseconds"
                    );
                    return Err(ErrorKind::File { path: path.clone(), message }.into());
                }
            }
        }
        Ok(())
    }

    /// Whether all integers of a file's column are doubles, which the column is in another file: by
    /// the bounds that the file has of them, or by themselves.
    async fn are_doubles(
        &self,
        state: &SessionState,
        format: &Parquet,
        (path, file): (&Path, &TableFile),
        column: usize,
        doubles: &Path,
    ) -> Result<()> {
        /// Up to here all integers are.
        const EXACT: i128 = 1 << 53;
        let field = file.schema.field(column);
        let is_signed = *field.data_type() == DataType::Int64;
        let bounds = format.bounds(&file.object.location, field.name(), is_signed);
        if bounds.is_some_and(|(least, greatest)| -EXACT <= least && greatest <= EXACT) {
            return Ok(());
        }
        for batch in self.columns_of(state, format, path, file, &[column]).await? {
            let found = lost_as_double(batch.column(0));
            if let Some(value) = found {
                let (name, doubles) = (field.name(), doubles.display());
                let message =
                    format!("column {name:?} is a double in {doubles}, and {value} is none");
                return Err(ErrorKind::File { path: path.into(), message }.into());
            }
        }
        Ok(())
    }

    /// Columns of one file.
    async fn columns_of(
        &self,
        state: &SessionState,
        format: &Parquet,
        path: &Path,
        file: &TableFile,
        columns: &[usize],
    ) -> Result<Vec<RecordBatch>> {
        let table = ParquetTable::new(
            format.clone(),
            vec![file.clone()],
            &file.schema,
            PathColumns::default(),
        );
        let provider: Arc<dyn TableProvider> = Arc::new(table);
        read_all(&provider, state, columns).await.map_err(|error| self.name(error, path))
    }

    /// A file with the columns of a table, as DataFusion reads it. CSV, JSON and Arrow files are
    /// named in errors by those who read them.
    pub(crate) fn provider_with_schema(
        &self,
        state: &SessionState,
        path: &Path,
        schema: SchemaRef,
    ) -> Result<Arc<dyn TableProvider>> {
        match &self.format {
            Format::Parquet(options) => {
                // Nothing is known of the file's own columns.
                let file = TableFile { object: object(path)?, schema: Arc::new(Schema::empty()) };
                let format = Parquet::new(state, options.clone());
                Ok(Arc::new(ParquetTable::new(format, vec![file], &schema, PathColumns::default())))
            }
            Format::Csv(_) | Format::Json(_) | Format::Arrow(_) => {
                Err(Error::internal("files that name themselves are not listed"))
            }
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

/// A file as DataFusion's stores know it.
///
/// # Errors
/// [`ErrorKind::Io`], in the system's words.
fn object(path: &Path) -> Result<ObjectMeta> {
    let io = |error| Error::io(path, error);
    let real = spool::real_path(path)?;
    let size = std::fs::File::open(&real).and_then(|file| file.metadata()).map_err(io)?.len();
    let location = url(&real)?.prefix().clone();
    Ok(ObjectMeta { location, last_modified: Default::default(), size, e_tag: None, version: None })
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
        DataType::FixedSizeList(..) => {
            beyond_nanoseconds(array.as_fixed_size_list().values().as_ref())
        }
        DataType::Map(..) => beyond_nanoseconds(array.as_map().entries()),
        DataType::Struct(_) => {
            array.as_struct().columns().iter().find_map(|of| beyond_nanoseconds(of.as_ref()))
        }
        _ => None,
    }
}

/// A `file:` URL: as a plain path, `*` in a file's name would be taken for a pattern. URLs have no
/// `..`: what is above a link is for the system to say.
pub(super) fn url(path: &Path) -> Result<ListingTableUrl> {
    let has_parent = path.components().any(|part| part == Component::ParentDir);
    let absolute = if has_parent { path.canonicalize() } else { std::path::absolute(path) };
    let absolute = absolute.map_err(|error| Error::io(path, error))?;
    let mut url = String::from("file://");
    for &byte in absolute.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                url.push(byte as char)
            }
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(ListingTableUrl::parse(url)?)
}
