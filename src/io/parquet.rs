//! Parquet files as DataFusion's format, read by way of footers that say no more than is known
//! (`footer.rs`).

mod batches;
mod headers;
mod intervals;
mod outputs;
mod plan;
mod read;
mod source;
mod strings;
mod table;
mod targets;
mod unpack;
mod workers;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::datatypes::{Schema, SchemaRef, TimeUnit};
use datafusion::catalog::Session;
use datafusion::common::config::TableParquetOptions;
use datafusion::common::stats::Precision;
use datafusion::common::{DataFusionError, Statistics as PlanStatistics};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::parquet::{ParquetFormat, transform_schema_to_view};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::datasource::physical_plan::parquet::{
    DefaultParquetFileReaderFactory, Int96Coercer,
};
use datafusion::datasource::physical_plan::{
    FileScanConfig, FileScanConfigBuilder, FileSource, ParquetFileReaderFactory, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::parquet::file::statistics::Statistics;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use self::intervals::INTERVAL;
pub(super) use self::read::DescribedFile;
pub(super) use self::source::ParquetFiles;
pub(super) use self::table::{ParquetTable, TableFile};
use super::arrow_zones::with_zones;
use super::footer::{self, TAIL};
use super::guard::caught;
use super::options::ParquetOptions;
use super::pages;
use crate::error::{Error, ErrorKind};

/// The format of a table's files in one version: their footers are decoded once.
#[derive(Debug, Clone)]
pub(super) struct Parquet {
    inner: Arc<ParquetFormat>,
    options: TableParquetOptions,
    int96: TimeUnit,
    footers: Arc<Footers>,
}

impl Parquet {
    pub(super) fn new(state: &SessionState, ours: ParquetOptions) -> Parquet {
        let mut options = state.default_table_options().parquet;
        let int96 = ours.coerce_int96_timestamp_unit;
        let unit = match int96 {
            TimeUnit::Second => "s",
            TimeUnit::Millisecond => "ms",
            TimeUnit::Microsecond => "us",
            TimeUnit::Nanosecond => "ns",
        };
        options.global.coerce_int96 = Some(unit.into());
        let inner = ParquetFormat::new().with_options(options.clone());
        Parquet { inner: Arc::new(inner), options, int96, footers: Arc::default() }
    }

    /// What the device is told of a file whose schema was inferred.
    ///
    /// # Errors
    /// Of a footer that makes no schema.
    pub(super) fn described(
        &self,
        path: &std::path::Path,
        file: &TableFile,
    ) -> crate::Result<DescribedFile> {
        let location = &file.object.location;
        let footer = self.footers.known(&(location.clone(), false));
        let footer =
            footer.ok_or_else(|| Error::internal(format!("no footer of {location} is known")))?;
        let leaves = footer.metadata.file_metadata().schema_descr();
        let schema =
            caught(|| parquet_to_arrow_schema(leaves, None)).map_err(DataFusionError::from)?;
        let coerced = Int96Coercer::new(leaves, &schema, &self.int96).coerce();
        let own = Arc::new(transform_schema_to_view(&coerced.unwrap_or(schema)));
        Ok(DescribedFile { path: path.into(), footer, own, noted: file.schema.clone() })
    }

    /// The least and the greatest of a column's integers of 64 bits by the statistics of a file
    /// whose schema was inferred, and 0; `None` where some row group has none.
    pub(super) fn bounds(
        &self,
        location: &Path,
        column: &str,
        is_signed: bool,
    ) -> Option<(i128, i128)> {
        let footer = self.footers.known(&(location.clone(), false))?;
        let leaves = footer.metadata.file_metadata().schema_descr().columns();
        let leaf = leaves.iter().position(|leaf| leaf.path().parts() == [column])?;
        let wide =
            |value: i64| if is_signed { i128::from(value) } else { i128::from(value as u64) };
        let mut bounds = (0, 0);
        for group in footer.metadata.row_groups() {
            let statistics = group.column(leaf).statistics()?;
            if statistics.null_count_opt().is_some_and(|nulls| nulls as i64 == group.num_rows()) {
                continue;
            }
            let Statistics::Int64(of) = statistics else { return None };
            bounds = (bounds.0.min(wide(*of.min_opt()?)), bounds.1.max(wide(*of.max_opt()?)));
        }
        Some(bounds)
    }
}

#[async_trait]
impl FileFormat for Parquet {
    fn get_ext(&self) -> String {
        self.inner.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.inner.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.inner.compression_type()
    }

    async fn infer_schema(
        &self,
        _state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let [object] = objects else {
            return Err(DataFusionError::Internal("files have their schemas one by one".into()));
        };
        let file = self.footers.get(store, object, None).await?;
        let of_file = file.metadata.file_metadata();
        let schema = parquet_to_arrow_schema(of_file.schema_descr(), of_file.key_value_metadata())?;
        let schema = with_zones(schema, of_file);
        let coerced = Int96Coercer::new(of_file.schema_descr(), &schema, &self.int96).coerce();
        let schema = transform_schema_to_view(&coerced.unwrap_or(schema));
        let fields = schema.fields().iter().map(|field| {
            // Other writers' notes say nothing about a table.
            let field = field.as_ref().clone().with_metadata(HashMap::new());
            match file.intervals.contains(field.name()) {
                true => field.with_data_type(INTERVAL),
                false => field,
            }
        });
        Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
    }

    async fn infer_stats(
        &self,
        _state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<PlanStatistics> {
        let file = self.footers.get(store, object, Some(&table)).await?;
        let mut statistics =
            DFParquetMetadata::statistics_from_parquet_metadata(&file.metadata, &table)?;
        // Bounds of some row groups are taken for those of all (DataFusion 55.2,
        // `has_any_exact_match`).
        for (field, column) in table.fields().iter().zip(&mut statistics.column_statistics) {
            if !footer::is_bounded(&file.metadata, field.name()) {
                (column.min_value, column.max_value) = (Precision::Absent, Precision::Absent);
            }
        }
        Ok(statistics)
    }

    // No order is inferred: that which a file declares is not checked, and its NaN, -0.0 and
    // strings may lie in another.

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = config.file_source().downcast_ref::<ParquetSource>().cloned();
        let source = source.ok_or_else(|| {
            DataFusionError::Internal("a Parquet scan has a Parquet source".into())
        })?;
        let store = state.runtime_env().object_store(&config.object_store_url)?;
        let table = source.table_schema().file_schema().clone();
        let wanted = config.projected_schema()?;
        for file in config.file_groups.iter().flat_map(|group| group.iter()) {
            let footer = self.footers.get(&store, &file.object_meta, Some(&table)).await?;
            if let Some(name) =
                footer.unknown.iter().find(|name| wanted.field_with_name(name).is_ok())
            {
                let message =
                    format!("column {name:?} has a type that the arrow crate does not know");
                let path = std::path::Path::new("/").join(file.object_meta.location.as_ref());
                return Err(Error::from(ErrorKind::File { path, message }).into());
            }
        }
        let readers = Readers { store, footers: self.footers.clone(), table };
        let source = source
            .with_table_parquet_options(self.options.clone())
            .with_parquet_file_reader_factory(Arc::new(readers));
        let config = FileScanConfigBuilder::from(config).with_source(Arc::new(source)).build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn file_source(&self, table: TableSchema) -> Arc<dyn FileSource> {
        self.inner.file_source(table)
    }
}

/// A file's footer, and which column chunk lies where.
#[derive(Debug)]
struct Footer {
    metadata: Arc<ParquetMetaData>,
    /// First byte and one past the last, row group, column; in the order of the bytes. Only the
    /// host's reader wants it.
    chunks: OnceLock<Vec<(Range<u64>, usize, usize)>>,
    /// Columns whose types only an Arrow schema told that cannot be read.
    unknown: Vec<String>,
    /// Columns of intervals, which are said to be bytes.
    intervals: Vec<String>,
}

impl Footer {
    fn new(metadata: ParquetMetaData, unknown: Vec<String>, intervals: Vec<String>) -> Footer {
        Footer { metadata: Arc::new(metadata), chunks: OnceLock::new(), unknown, intervals }
    }

    fn chunks(&self) -> &[(Range<u64>, usize, usize)] {
        self.chunks.get_or_init(|| self.chunks_by_place())
    }

    fn chunks_by_place(&self) -> Vec<(Range<u64>, usize, usize)> {
        let mut chunks = vec![];
        for (group, columns) in
            self.metadata.row_groups().iter().map(|group| group.columns()).enumerate()
        {
            for (column, chunk) in columns.iter().enumerate() {
                let (begin, bytes) = chunk.byte_range();
                chunks.push((begin..begin + bytes, group, column));
            }
        }
        chunks.sort_unstable_by_key(|(bytes, ..)| bytes.start);
        chunks
    }

    /// Looks at bytes that were read of a file, before anything is allocated by what they say.
    /// Yields the bytes as the crate reads them ([`pages::readable`]).
    fn checked(&self, range: &Range<u64>, bytes: Bytes) -> Result<Bytes, ParquetError> {
        let chunks = self.chunks();
        let after = chunks.partition_point(|(chunk, ..)| chunk.start <= range.start);
        match after.checked_sub(1).map(|at| &chunks[at]) {
            Some((chunk, group, column)) if range.end <= chunk.end => {
                let column = self.metadata.row_group(*group).column(*column);
                pages::check(&bytes, column)?;
                Ok(pages::readable(bytes, column))
            }
            _ => Ok(bytes),
        }
    }
}

/// Footers that were decoded, by file, and by whether a table's schema had a say.
#[derive(Debug, Default)]
struct Footers(Mutex<HashMap<(Path, bool), Arc<Footer>>>);

impl Footers {
    async fn get(
        &self,
        store: &Arc<dyn ObjectStore>,
        object: &ObjectMeta,
        table: Option<&Schema>,
    ) -> Result<Arc<Footer>, ParquetError> {
        let key = (object.location.clone(), table.is_some());
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let footer = Arc::new(match (table, self.known(&(key.0.clone(), false))) {
            // What the table's schema adds is little, and seldom.
            (Some(of), Some(plain)) => match caught(|| of_table(&plain.metadata, of))? {
                Some(metadata) => {
                    Footer::new(metadata, plain.unknown.clone(), plain.intervals.clone())
                }
                None => return Ok(self.keep(key, plain)),
            },
            _ => {
                let (metadata, mut unknown) = read_footer(store, object).await?;
                let (metadata, intervals) = match caught(|| footer::with_bare_intervals(&metadata))?
                {
                    Some((bare, intervals)) => {
                        unknown.extend(intervals.nested);
                        (bare, intervals.columns)
                    }
                    None => (metadata, vec![]),
                };
                let said = caught(|| match table {
                    Some(table) => of_table(&metadata, table),
                    None => footer::with_strings(&metadata, None),
                })?;
                Footer::new(said.unwrap_or(metadata), unknown, intervals)
            }
        });
        Ok(self.keep(key, footer))
    }

    fn known(&self, key: &(Path, bool)) -> Option<Arc<Footer>> {
        self.0.lock().get(key).cloned()
    }

    fn keep(&self, key: (Path, bool), footer: Arc<Footer>) -> Arc<Footer> {
        self.0.lock().insert(key, footer.clone());
        footer
    }
}

/// A file's metadata as a table's schema has it; `None` where that adds nothing.
fn of_table(
    metadata: &ParquetMetaData,
    table: &Schema,
) -> Result<Option<ParquetMetaData>, ParquetError> {
    let named = footer::with_names_of(metadata, table)?;
    let said = footer::with_strings(named.as_ref().unwrap_or(metadata), Some(table))?;
    Ok(said.or(named))
}

/// Reads and decodes a file's footer. Also names columns whose types only an Arrow schema told that
/// cannot be read.
async fn read_footer(
    store: &Arc<dyn ObjectStore>,
    object: &ObjectMeta,
) -> Result<(ParquetMetaData, Vec<String>), ParquetError> {
    let read =
        async |range: Range<u64>| store.get_range(&object.location, range).await.map_err(external);
    let Some(end) = object.size.checked_sub(TAIL) else {
        return Err(ParquetError::General(format!("{} bytes are no Parquet file", object.size)));
    };
    let begin = footer::begins_at(&read(end..object.size).await?, object.size)?;
    let bytes = if begin < end { read(begin..end).await? } else { Bytes::new() };
    let metadata = caught(|| footer::decode(&bytes, object.size))?;
    // An Arrow schema with types that the arrow crate does not know (polars' Int128) makes it
    // panic. It only tells more.
    let of_file = metadata.file_metadata();
    match caught(|| parquet_to_arrow_schema(of_file.schema_descr(), of_file.key_value_metadata())) {
        Ok(schema) => {
            let schema = with_zones(schema, of_file);
            let plain = caught(|| Ok(footer::without_coded_numbers(&metadata, &schema)))?;
            Ok((plain.unwrap_or(metadata), vec![]))
        }
        Err(error) => {
            let plain = footer::without_arrow_schema(metadata);
            let schema = plain.file_metadata().schema_descr();
            caught(|| parquet_to_arrow_schema(schema, None)).map_err(|_| error)?;
            let unknown = footer::bare_bytes(schema);
            Ok((plain, unknown))
        }
    }
}

fn external(error: datafusion::object_store::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

/// Makes the readers of a scan.
#[derive(Debug)]
struct Readers {
    store: Arc<dyn ObjectStore>,
    footers: Arc<Footers>,
    table: SchemaRef,
}

impl ParquetFileReaderFactory for Readers {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let object = file.object_meta.clone();
        let plain = DefaultParquetFileReaderFactory::new(self.store.clone());
        let inner = plain.create_reader(partition, file, hint, metrics)?;
        let (store, footers, table) =
            (self.store.clone(), self.footers.clone(), self.table.clone());
        Ok(Box::new(ObjectReader { inner, object, store, footers, table, footer: None }))
    }
}

/// Reads one file.
struct ObjectReader {
    inner: Box<dyn AsyncFileReader + Send>,
    object: ObjectMeta,
    store: Arc<dyn ObjectStore>,
    footers: Arc<Footers>,
    table: SchemaRef,
    footer: Option<Arc<Footer>>,
}

impl ObjectReader {
    /// Bytes outside of the file are not asked for: memory would be taken for all of them.
    fn inside(&self, ranges: &[Range<u64>]) -> Result<(), ParquetError> {
        match ranges.iter().find(|range| range.start > range.end || range.end > self.object.size) {
            Some(range) => {
                let (begin, end, size) = (range.start, range.end, self.object.size);
                Err(ParquetError::General(format!(
                    "bytes {begin} to {end} are asked for of {size}"
                )))
            }
            None => Ok(()),
        }
    }

    fn checked(&self, range: &Range<u64>, bytes: Bytes) -> Result<Bytes, ParquetError> {
        match &self.footer {
            Some(footer) => footer.checked(range, bytes),
            None => Ok(bytes),
        }
    }
}

impl AsyncFileReader for ObjectReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        async move {
            self.inside(std::slice::from_ref(&range))?;
            let bytes = self.inner.get_bytes(range.clone()).await?;
            self.checked(&range, bytes)
        }
        .boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        async move {
            self.inside(&ranges)?;
            let bytes = self.inner.get_byte_ranges(ranges.clone()).await?;
            ranges.iter().zip(bytes).map(|(range, bytes)| self.checked(range, bytes)).collect()
        }
        .boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        _options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        async move {
            let footer = self.footers.get(&self.store, &self.object, Some(&self.table)).await?;
            self.footer = Some(footer.clone());
            Ok(footer.metadata.clone())
        }
        .boxed()
    }
}
