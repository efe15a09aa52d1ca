//! Sources: what the rows of a table come from, whatever they lie in.
//!
//! | source | rows | chunks |
//! |---|---|---|
//! | [`Parquet`](super::parquet::ParquetFiles) | decoded on the device | row groups |
//! | [`Csv`](super::csv::CsvFiles) | found and converted on the device | one |
//! | [`HostFiles`](super::host_files::HostFiles) | JSON and Arrow files, read on the host | one |
//! | [`Memory`](super::memory::Memory) | record batches of Arrow | batches |
//! | [`Sequence`](super::sequence::Sequence) | integers, made on the device | equal ones |
//! | [`DeviceTable`](super::DeviceTable) | in device memory already | one |
//! | a table of somebody else's provider (`exec/foreign.rs`) | read through the provider | one |
//!
//! A source is one version of its rows. What of it stays on the device, and until when, is the
//! business of [`SourceTable`](super::SourceTable).

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::common::Statistics;
use datafusion::error::Result as PlanResult;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;

use super::path_columns::PathColumns;
use crate::column::{Column, EqualSteps, Facts};
use crate::error::Result;
use warpframe_device::Device;

/// The metric of a scan that tells how many bytes its files have, where nobody knows their rows.
pub(crate) const BYTES_TO_READ: &str = "bytes_to_read";

/// The rows of a table in one version.
#[async_trait]
pub(crate) trait Source: Debug + Send + Sync {
    fn schema(&self) -> SchemaRef;

    /// Parts that can be read alone, in the order of their rows.
    fn chunks(&self) -> Vec<Chunk>;

    /// What is known of a column before it is read, for estimates.
    fn facts(&self, _column: usize) -> Option<Facts> {
        None
    }

    /// The least and the greatest value of a column in each chunk, where these are integers on the
    /// device and none is null, by what the source says of itself: who relies on them looks at what
    /// it reads.
    fn chunk_ranges(&self, _column: usize) -> Option<Vec<(i128, i128)>> {
        None
    }

    /// Reads columns of chunks into device memory. No columns read is still the right number of
    /// rows.
    ///
    /// # Errors
    /// Of the rows' content, with the file's name where it is known; of the device.
    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read>;

    /// The rows with wider types for the columns of which a value did not fit the inferred type
    /// when it was read; `None` where there are none.
    ///
    /// # Errors
    /// Of the rows' content; files that cannot be read.
    fn widened(&self) -> Result<Option<Arc<dyn Source>>> {
        Ok(None)
    }

    /// Whether types of columns were inferred from some of the rows, so that a value that is read
    /// may not fit ([`Error::misfit`](crate::Error)).
    fn has_sampled_types(&self) -> bool {
        false
    }

    /// What its one column holds, where kernels can compute it.
    fn equal_steps(&self) -> Option<EqualSteps> {
        None
    }

    /// The columns that the paths of its files make; `None` of what is no files.
    fn paths(&self) -> Option<&PathColumns> {
        None
    }

    /// The rows of some of its files; `None` where they cannot be read alone.
    fn of_files(&self, _files: &[usize]) -> Option<Arc<dyn Source>> {
        None
    }

    /// The chunks that begin within a range of bytes of each file, or of those without a range
    /// all; `None` where they do not follow one another, and of what is no files.
    fn chunks_within(&self, _ranges: &[Option<Range<u64>>]) -> Option<Range<usize>> {
        None
    }

    /// The source of which it has some rows that follow one another, and which these are; `None` of
    /// a source of its own.
    fn within(&self) -> Option<(&Arc<dyn Source>, Range<u64>)> {
        None
    }

    /// Whether another machine that has the files reads the rows by [`Source::scan`].
    fn is_read_anywhere(&self) -> bool {
        false
    }

    /// The rows as record batches, for DataFusion's operators on the host.
    ///
    /// # Errors
    /// Those of the provider below; of the device.
    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>>;

    /// Which filters [`Source::scan`] applies while it reads.
    ///
    /// # Errors
    /// Those of the provider below.
    fn supports_filters(&self, filters: &[&Expr]) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Unsupported; filters.len()])
    }

    /// What DataFusion's optimizer is told.
    fn statistics(&self) -> Option<Statistics> {
        None
    }
}

/// A part of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// `None` where only reading tells.
    pub(crate) rows: Option<u64>,
    /// As it lies in its file or in memory; `None` where nobody knows.
    pub(crate) bytes: Option<u64>,
}

/// Where rows are read to, and by what settings.
#[derive(Debug)]
pub(crate) struct To<'a> {
    pub(crate) state: &'a SessionState,
    pub(crate) device: &'a Device,
}

/// What is to be read of a source.
#[derive(Debug)]
pub(crate) struct ColumnRequest<'a> {
    pub(crate) chunks: Range<usize>,
    /// By index in the source's schema.
    pub(crate) columns: &'a [usize],
    /// The first rows, which are enough; more may come.
    pub(crate) fetch: Option<u64>,
}

/// What was read of a source.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) rows: u64,
    pub(crate) columns: Vec<Column>,
    /// Columns of files that the device reads which the host's reader brought, and why: a sentence
    /// each.
    pub(crate) by_host: Vec<String>,
}

impl Read {
    pub(crate) fn new(rows: u64, columns: Vec<Column>) -> Read {
        Read { rows, columns, by_host: vec![] }
    }
}

/// So many rows in chunks that any part of them may be read by: few, and small ones.
pub(crate) fn even_chunks(rows: u64) -> Vec<Chunk> {
    const LEAST_ROWS: u64 = 1 << 10;
    const MOST: u64 = 1 << 10;
    let each = rows.div_ceil(MOST).max(LEAST_ROWS);
    let begins = (0..rows.max(1)).step_by(each as usize);
    begins.map(|begin| Chunk { rows: Some(each.min(rows - begin)), bytes: None }).collect()
}

/// The rows of all chunks, where each knows its number.
pub(crate) fn rows(chunks: &[Chunk]) -> Option<u64> {
    chunks.iter().map(|chunk| chunk.rows).sum()
}
