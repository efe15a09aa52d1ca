//! What DataFusion's scans read, as sources: Parquet files or parts of them, CSV files, and batches.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{CsvSource, FileScanConfig, FileSource, ParquetSource};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::csv::{CsvFiles, CsvOptions, TextEncoding};
use super::files::{Files, Format};
use super::memory::bytes_of;
use super::options::ParquetOptions;
use super::source::{Chunk, ColumnRequest, Read, Source, To, rows};
use crate::column::{Facts, Table};
use crate::error::{Error, Result};

/// A file, or the part of it whose row groups begin in a range of its bytes, in one version.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ScannedPart {
    path: PathBuf,
    bytes: Option<Range<u64>>,
    size: u64,
    /// When it was changed last, in nanoseconds since 1970.
    modified: i64,
}

impl ScannedPart {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the other is of the version of the file that this is of.
    pub(crate) fn is_of_version(&self, other: &ScannedPart) -> bool {
        (self.size, self.modified) == (other.size, other.modified)
    }
}

/// How the files of a scan are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScannedFormat {
    Parquet,
    Csv(Box<CsvOptions>),
}

impl ScannedFormat {
    /// As a scan reads its files; `None` where the device does not read them so.
    fn of(config: &FileScanConfig) -> Option<ScannedFormat> {
        let source = config.file_source();
        if let Some(parquet) = source.downcast_ref::<ParquetSource>() {
            let filters = FileSource::filter(parquet).is_some()
                && parquet.table_parquet_options().global.pushdown_filters;
            return (!filters).then_some(ScannedFormat::Parquet);
        }
        let csv = source.downcast_ref::<CsvSource>()?;
        let is_plain = csv.terminator().is_none()
            && csv.escape().is_none()
            && csv.comment().is_none()
            && !csv.truncate_rows()
            && config.file_compression_type == FileCompressionType::UNCOMPRESSED;
        let options = CsvOptions {
            has_header: Some(csv.has_header()),
            delimiter: Some(csv.delimiter()),
            quote: Some(csv.quote()),
            sniff: false,
            widen: false,
            // Arrow's reader does not look at quotes there.
            allow_quoted_nulls: true,
            encoding: Some(TextEncoding::Utf8),
            schema: Some(config.file_schema().clone()),
            ..CsvOptions::default()
        };
        is_plain.then(|| ScannedFormat::Csv(Box::new(options)))
    }
}

/// The files of this machine that a scan of DataFusion reads all rows of, by its partitions; `None`
/// of other scans.
pub(crate) fn scanned_parts(
    config: &FileScanConfig,
) -> Option<(ScannedFormat, Vec<Vec<ScannedPart>>)> {
    let format = ScannedFormat::of(config)?;
    if config.limit.is_some()
        || config.object_store_url != ObjectStoreUrl::local_filesystem()
        || !config.table_partition_cols().is_empty()
    {
        return None;
    }
    let part = |file: &PartitionedFile| {
        let path = Path::new("/").join(file.object_meta.location.as_ref());
        let bytes = match &file.range {
            Some(range) => Some(u64::try_from(range.start).ok()?..u64::try_from(range.end).ok()?),
            None => None,
        };
        let (size, modified) = (file.object_meta.size, &file.object_meta.last_modified);
        let modified = modified.timestamp_nanos_opt().unwrap_or_default();
        let is_whole = file.extensions.is_empty() && file.partition_values.is_empty();
        is_whole.then_some(ScannedPart { path, bytes, size, modified })
    };
    let parts = config.file_groups.iter().map(|group| group.iter().map(part).collect());
    Some((format, parts.collect::<Option<_>>()?))
}

/// The rows of parts of files; `None` where the device would read other columns than `schema` has,
/// or nulls where it has none, and of a part of a CSV file.
///
/// # Errors
/// Of files that cannot be read.
pub(crate) async fn source_of_parts(
    state: &SessionState,
    format: &ScannedFormat,
    parts: &[ScannedPart],
    schema: &SchemaRef,
) -> Result<Option<Arc<dyn Source>>> {
    // Parts of one file follow one another.
    let mut files: Vec<(PathBuf, Option<Range<u64>>)> = vec![];
    for part in parts {
        match (files.last_mut(), &part.bytes) {
            (Some((path, Some(before))), Some(bytes))
                if *path == part.path && before.end == bytes.start =>
            {
                before.end = bytes.end;
            }
            _ => files.push((part.path.clone(), part.bytes.clone())),
        }
    }
    let (paths, ranges): (Vec<PathBuf>, Vec<_>) = files.into_iter().unzip();
    let source: Arc<dyn Source> = match format {
        ScannedFormat::Parquet => {
            let hive_partitioning = Some(false);
            let options = ParquetOptions { hive_partitioning, ..ParquetOptions::default() };
            let files = Files::of(paths.clone(), Format::Parquet(options))?;
            files.source(state, &paths).await?
        }
        ScannedFormat::Csv(options) => {
            let size = |path: &Path| parts.iter().find(|part| part.path == path).map(|of| of.size);
            let is_whole = |(path, range): (&PathBuf, &Option<Range<u64>>)| {
                range.as_ref().is_none_or(|range| range.start == 0 && Some(range.end) >= size(path))
            };
            if !paths.iter().zip(&ranges).all(is_whole) {
                return Ok(None);
            }
            Arc::new(CsvFiles::on_device(&paths, options)?)
        }
    };
    let own = source.schema();
    // That a column has no nulls may be said by a table and not by its files.
    let same = |(own, field): (&FieldRef, &FieldRef)| {
        own.name() == field.name()
            && own.data_type() == field.data_type()
            && (field.is_nullable() || !own.is_nullable())
    };
    if own.fields().len() != schema.fields().len()
        || !own.fields().iter().zip(schema.fields()).all(same)
    {
        return Ok(None);
    }
    Ok(match format {
        ScannedFormat::Parquet => {
            source.chunks_within(&ranges).map(|chunks| some_chunks(&source, chunks))
        }
        ScannedFormat::Csv(_) => Some(source),
    })
}

/// Chunks of a source that follow one another.
pub(crate) fn some_chunks(source: &Arc<dyn Source>, chunks: Range<usize>) -> Arc<dyn Source> {
    match chunks == (0..source.chunks().len()) {
        true => source.clone(),
        false => Arc::new(SomeChunks { source: source.clone(), chunks }),
    }
}

#[derive(Debug)]
struct SomeChunks {
    source: Arc<dyn Source>,
    chunks: Range<usize>,
}

#[async_trait]
impl Source for SomeChunks {
    fn schema(&self) -> SchemaRef {
        self.source.schema()
    }

    fn chunks(&self) -> Vec<Chunk> {
        self.source.chunks()[self.chunks.clone()].to_vec()
    }

    fn facts(&self, column: usize) -> Option<Facts> {
        self.source.facts(column)
    }

    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let begin = self.chunks.start;
        let chunks = begin + wanted.chunks.start..begin + wanted.chunks.end;
        self.source.read(to, &ColumnRequest { chunks, ..*wanted }).await
    }

    fn within(&self) -> Option<(&Arc<dyn Source>, Range<u64>)> {
        let all = self.source.chunks();
        let begin = rows(&all[..self.chunks.start])?;
        Some((&self.source, begin..begin + rows(&all[self.chunks.clone()])?))
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        Err(read_by_device())
    }
}

/// Batches that have some of a table's columns.
#[derive(Debug)]
pub(crate) struct SomeColumns {
    schema: SchemaRef,
    /// The columns that the batches have, by index in the table.
    columns: Vec<usize>,
    batches: Vec<RecordBatch>,
    /// The batches. To count bytes takes longer than many a query, and there may be thousands.
    chunks: Vec<Chunk>,
}

impl SomeColumns {
    pub(crate) fn new(
        schema: SchemaRef,
        columns: Vec<usize>,
        batches: Vec<RecordBatch>,
    ) -> SomeColumns {
        let chunk = |batch: &RecordBatch| Chunk {
            rows: Some(batch.num_rows() as u64),
            bytes: Some(bytes_of(batch) as u64),
        };
        let chunks = batches.iter().map(chunk).collect();
        SomeColumns { schema, columns, batches, chunks }
    }

    /// Where these columns of the table are among those of the batches.
    fn places(&self, columns: &[usize]) -> Result<Vec<usize>> {
        let place = |at: &usize| {
            let place = self.columns.iter().position(|column| column == at);
            place.ok_or_else(|| Error::internal(format!("a scan has no column {at}")))
        };
        columns.iter().map(place).collect()
    }
}

#[async_trait]
impl Source for SomeColumns {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn chunks(&self) -> Vec<Chunk> {
        self.chunks.clone()
    }

    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let places = self.places(wanted.columns)?;
        let batches = self.batches[wanted.chunks.clone()].iter();
        let batches = batches
            .map(|batch| batch.project(&places))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        let schema = Arc::new(self.schema.project(wanted.columns)?);
        let table = Table::from_batches(to.device, schema, &batches)?;
        Ok(Read::new(table.rows as u64, table.columns))
    }

    /// Where a chunk finds no memory, its rows come from here.
    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let columns = projection.unwrap_or(&self.columns);
        let (places, schema) = (self.places(columns)?, Arc::new(self.schema.project(columns)?));
        let wanted = |batch: &RecordBatch| {
            let columns = places.iter().map(|at| batch.column(*at).clone()).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        };
        let batches = self.batches.iter().map(wanted).collect::<std::result::Result<_, _>>()?;
        MemTable::try_new(schema.clone(), vec![batches])?.scan(state, None, filters, limit).await
    }
}

/// A part of another source is read through that one (`Source::within`).
pub(super) fn read_by_device() -> DataFusionError {
    DataFusionError::Internal("a source of a device's scan is read by the CPU engine".into())
}
