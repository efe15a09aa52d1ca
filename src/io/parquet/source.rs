//! Parquet files as a source: decoded on the device; what it does not decode the host's reader
//! brings. Columns of paths are constants of files.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics as PlanStatistics;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::parquet::basic::Type as PhysicalType;
use datafusion::parquet::file::metadata::RowGroupMetaData;
use datafusion::parquet::file::statistics::Statistics;
use datafusion::physical_plan::ExecutionPlan;

use super::read::{DescribedFile, read};
use super::table::ParquetTable;
use crate::column::{Column, Facts};
use crate::error::{ErrorKind, Result};
use crate::io::constant::of_runs;
use crate::io::path_columns::PathColumns;
use crate::io::source::{Chunk, ColumnRequest, Read, Source, To, rows};
use crate::io::stream::{self, ProviderRows};
use warpframe_device::Device;

/// Bytes of a dictionary from which on a writer may have given up on it.
const LARGE_DICTIONARY: i64 = 64 << 10;
/// Bytes of the header of a dictionary's page, about.
const PAGE_HEADER: i64 = 16;
/// Bytes of a string in a dictionary's page, which may be compressed, about: its length and its
/// characters.
const STRING_IN_DICTIONARY: f64 = 8.0;

/// Parquet files of one table.
#[derive(Debug)]
pub(crate) struct ParquetFiles {
    /// The path that a user knows them by.
    named: PathBuf,
    /// In the order of their rows.
    files: Vec<DescribedFile>,
    /// As the CPU's operators read them.
    table: Arc<ParquetTable>,
    /// Their row groups.
    chunks: Vec<Chunk>,
}

/// What statistics say of a column in a row group.
struct GroupRange {
    least: i64,
    greatest: i64,
    nulls: Option<u64>,
}

impl ParquetFiles {
    pub(in crate::io) fn new(
        named: PathBuf,
        files: Vec<DescribedFile>,
        table: Arc<ParquetTable>,
    ) -> ParquetFiles {
        let groups = files.iter().flat_map(|file| file.footer.metadata.row_groups());
        let chunk = |(rows, bytes): (i64, i64)| Chunk {
            rows: Some(rows as u64),
            bytes: u64::try_from(bytes).ok(),
        };
        let chunks =
            groups.map(|group| chunk((group.num_rows(), group.compressed_size()))).collect();
        ParquetFiles { named, files, table, chunks }
    }

    /// Columns that the device left to the host's reader, of the wanted chunks, which have
    /// `expected` rows.
    async fn read_on_host(
        &self,
        to: &To<'_>,
        wanted: &ColumnRequest<'_>,
        columns: &[usize],
    ) -> Result<Vec<Column>> {
        let of = |chunks: &[Chunk]| rows(chunks).unwrap_or(0);
        let (begin, expected) =
            (of(&self.chunks[..wanted.chunks.start]), of(&self.chunks[wanted.chunks.clone()]));
        let is_all = wanted.chunks == (0..self.chunks.len());
        // The host's reader knows first rows, but not chunks.
        let provider: Arc<dyn TableProvider> = self.table.clone();
        let rows = ProviderRows {
            provider: &provider,
            columns,
            limit: (!is_all).then_some(begin + expected),
        };
        let (found, columns) = stream::read(to, &rows).await?;
        if is_all && found != expected || found < begin + expected {
            // The host's reader ends where a column's pages do.
            let message =
                format!("{found} rows of some columns, where its footer says {}", begin + expected);
            return Err(ErrorKind::File { path: PathBuf::new(), message }.into());
        }
        Ok(columns.iter().map(|column| column.slice(begin as usize, expected as usize)).collect())
    }

    fn is_read_by_host(&self, column: usize, reason: &str) -> String {
        let schema = self.table.schema();
        let name = schema.field(column).name();
        format!("column {name:?} of {} is read by the host: {reason}", self.named.display())
    }

    /// A column of paths, of the wanted chunks.
    fn constant(&self, device: &Device, column: usize, chunks: &Range<usize>) -> Result<Column> {
        let mut numbers = 0..;
        let mut rows = |file: &DescribedFile| {
            let groups = file.footer.metadata.row_groups().iter();
            let wanted =
                groups.filter(|_| numbers.next().is_some_and(|number| chunks.contains(&number)));
            wanted.map(|group| group.num_rows() as u64).sum::<u64>()
        };
        let runs: Vec<u64> = self.files.iter().map(&mut rows).collect();
        let values = self.table.paths().column(column - self.table.columns_of_files())?;
        of_runs(device, &values, &runs)
    }

    /// The least and the greatest value of a column by the statistics of each row group, and how
    /// many nulls it has, where they are integers and lie in the files as they do on the device.
    fn ranges(&self, column: usize) -> Option<Vec<GroupRange>> {
        let schema = self.table.schema();
        let field = schema.field(column);
        if column >= self.table.columns_of_files() {
            return None;
        }
        match field.data_type() {
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32 => {}
            DataType::UInt8
            | DataType::UInt16
            | DataType::Timestamp(..)
            | DataType::Decimal128(..) => {}
            _ => return None,
        }
        let mut ranges = vec![];
        for file in &self.files {
            let name = file.own_name(&schema, field.name());
            let leaves = file.footer.metadata.file_metadata().schema_descr();
            let leaf = leaves
                .columns()
                .iter()
                .position(|leaf| leaf.path().parts() == std::slice::from_ref(name))?;
            if file.own.field_with_name(name).ok()?.data_type() != field.data_type() {
                return None;
            }
            for group in file.footer.metadata.row_groups() {
                let of = group.column(leaf).statistics()?;
                let (least, greatest) = match of {
                    Statistics::Int32(of) => (i64::from(*of.min_opt()?), i64::from(*of.max_opt()?)),
                    Statistics::Int64(of) => (*of.min_opt()?, *of.max_opt()?),
                    _ => return None,
                };
                ranges.push(GroupRange { least, greatest, nulls: of.null_count_opt() });
            }
        }
        Some(ranges)
    }

    /// The least and the greatest value of a column, where [`ParquetFiles::ranges`] tells.
    fn range(&self, column: usize) -> Option<(i64, i64)> {
        let ranges = self.ranges(column)?.into_iter();
        let ends = |one: (i64, i64), other: (i64, i64)| (one.0.min(other.0), one.1.max(other.1));
        ranges.map(|of| (of.least, of.greatest)).reduce(ends)
    }

    /// About how many values the largest dictionary of a column has, by its bytes. `None` where a
    /// row group has no dictionary, or one so large that its writer may have given up on it.
    fn dictionary_values(&self, column: usize) -> Option<f64> {
        let schema = self.table.schema();
        let mut most: f64 = 0.0;
        for file in self.files.iter() {
            let name = file.own_name(&schema, schema.field(column).name());
            let leaves = file.footer.metadata.file_metadata().schema_descr();
            let leaf = leaves
                .columns()
                .iter()
                .position(|leaf| leaf.path().parts() == std::slice::from_ref(name))?;
            for group in file.footer.metadata.row_groups() {
                let chunk = group.column(leaf);
                let bytes =
                    chunk.data_page_offset().checked_sub(chunk.dictionary_page_offset()?)?;
                if !(0..LARGE_DICTIONARY).contains(&bytes) {
                    return None;
                }
                let value = match chunk.column_type() {
                    PhysicalType::BYTE_ARRAY => STRING_IN_DICTIONARY,
                    PhysicalType::INT32 | PhysicalType::FLOAT => 4.0,
                    _ => 8.0,
                };
                most = most.max((bytes - PAGE_HEADER).max(1) as f64 / value);
            }
        }
        (most > 0.0).then_some(most)
    }
}

#[async_trait]
impl Source for ParquetFiles {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn chunks(&self) -> Vec<Chunk> {
        self.chunks.clone()
    }

    fn facts(&self, column: usize) -> Option<Facts> {
        let rows = rows(&self.chunks)? as f64;
        let range = self.range(column).map(|(least, greatest)| (least as f64, greatest as f64));
        let in_range = range.map(|(least, greatest)| greatest - least + 1.0);
        let distinct =
            in_range.into_iter().chain(self.dictionary_values(column)).reduce(f64::min)?;
        Some(Facts { range, distinct: distinct.clamp(1.0, rows.max(1.0)), ..Facts::unknown(rows) })
    }

    fn chunk_ranges(&self, column: usize) -> Option<Vec<(i128, i128)>> {
        let range = |of: GroupRange| {
            let (least, greatest) = (i128::from(of.least), i128::from(of.greatest));
            (of.nulls == Some(0) && least <= greatest).then_some((least, greatest))
        };
        self.ranges(column)?.into_iter().map(range).collect()
    }

    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let schema = self.table.schema();
        let expected = rows(&self.chunks[wanted.chunks.clone()]).unwrap_or(0);
        if wanted.columns.is_empty() {
            return Ok(Read::new(expected, vec![]));
        }
        let of_files = self.table.columns_of_files();
        let in_files: Vec<usize> =
            wanted.columns.iter().copied().filter(|at| *at < of_files).collect();
        let mut read = match in_files.is_empty() {
            true => vec![],
            false => read(to.device, &self.files, &schema, &in_files, &wanted.chunks)?,
        }
        .into_iter();
        let (mut columns, mut by_host, mut left) = (vec![], vec![], vec![]);
        for at in wanted.columns {
            let column = match *at < of_files {
                true => read.next().unwrap_or_else(|| Err("it was not read".into())),
                false => Ok(self.constant(to.device, *at, &wanted.chunks)?),
            };
            columns.push(column.map_err(|reason| {
                by_host.push(self.is_read_by_host(*at, &reason));
                left.push(*at);
            }));
        }
        if !left.is_empty() {
            let mut read = self.read_on_host(to, wanted, &left).await?.into_iter();
            columns
                .iter_mut()
                .filter(|column| column.is_err())
                .for_each(|column| *column = read.next().ok_or(()));
        }
        Ok(Read { rows: expected, columns: columns.into_iter().flatten().collect(), by_host })
    }

    fn paths(&self) -> Option<&PathColumns> {
        Some(self.table.paths())
    }

    fn of_files(&self, files: &[usize]) -> Option<Arc<dyn Source>> {
        let described = files.iter().map(|file| self.files[*file].clone()).collect();
        let table = Arc::new(self.table.of_files(files));
        Some(Arc::new(ParquetFiles::new(self.named.clone(), described, table)))
    }

    /// A row group is of the range that its first page begins in, as in DataFusion's reader
    /// (`row_group_filter.rs`).
    fn chunks_within(&self, ranges: &[Option<Range<u64>>]) -> Option<Range<usize>> {
        let begins = |group: &RowGroupMetaData| {
            let first = group.columns().first()?;
            let begin = first.dictionary_page_offset().unwrap_or(first.data_page_offset());
            u64::try_from(begin).ok()
        };
        let mut within = vec![];
        for (file, range) in self.files.iter().zip(ranges) {
            for group in file.footer.metadata.row_groups() {
                within.push(match range {
                    Some(range) => range.contains(&begins(group)?),
                    None => true,
                });
            }
        }
        let first = within.iter().position(|is_within| *is_within).unwrap_or(0);
        let count = within.iter().filter(|is_within| **is_within).count();
        let all = first..first + count;
        (within.len() == self.chunks.len() && within[all.clone()].iter().all(|is| *is))
            .then_some(all)
    }

    fn is_read_anywhere(&self) -> bool {
        true
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        self.table.scan(state, projection, filters, limit).await
    }

    fn supports_filters(&self, filters: &[&Expr]) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<PlanStatistics> {
        self.table.statistics()
    }
}
