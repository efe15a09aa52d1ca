//! Rows of a source that follow one another, as a source: a device's part of a table that is cut at
//! keys.
//!
//! ```text
//!   chunks   │ 1 1 2 3 │ 4 4 5 7 │ 7 8 8 9 │     part of keys from 5 on, below 8:
//!   rows                     ╰─ 2 chunks ─╯      rows 6 to 9, the first and the last chunk in part
//! ```
//!
//! What tells where a part begins are the source's own statistics. A part's keys are looked at when
//! they are read: a file that says wrong things of itself is an error, and no wrong answer.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::scanned::read_by_device;
use super::source::{Chunk, ColumnRequest, Read, Source, To, rows};
use super::table::OfSession;
use crate::column::{Column, Facts};
use crate::error::{Error, ErrorKind, Result};
use warpframe_device::Device;

/// The keys that a part of a table may have, none of which is null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PartKeys {
    pub(crate) column: usize,
    /// Keys are at least this.
    pub(crate) from: Option<i128>,
    /// Keys are less than this.
    pub(crate) below: Option<i128>,
    /// What the table's user calls its files.
    pub(crate) named: PathBuf,
}

impl PartKeys {
    /// Keys of a part of a table: from a value on, below another one.
    pub(crate) fn of(
        table: &dyn TableProvider,
        column: usize,
        (from, below): (Option<i128>, Option<i128>),
    ) -> PartKeys {
        let files = match OfSession::of(table) {
            Some(OfSession::Source(table)) => table.files.as_ref(),
            _ => None,
        };
        let named = files.map_or_else(PathBuf::new, |files| files.selection.named().into());
        PartKeys { column, from, below, named }
    }
}

/// Some rows of a source whose chunks know theirs.
#[derive(Debug)]
pub(crate) struct SomeRows {
    source: Arc<dyn Source>,
    /// Those that have the rows.
    chunks: Range<usize>,
    /// For each of them, which of its rows: all but of the first and the last one.
    rows: Vec<Range<u64>>,
    keys: PartKeys,
}

impl SomeRows {
    /// `None` of a source whose chunks do not know their rows.
    pub(crate) fn new(
        source: &Arc<dyn Source>,
        rows: Range<u64>,
        keys: PartKeys,
    ) -> Option<SomeRows> {
        let (mut begin, mut wanted, mut first) = (0, vec![], None);
        for (number, chunk) in source.chunks().iter().enumerate() {
            let end = begin + chunk.rows?;
            let of_chunk = rows.start.max(begin)..rows.end.min(end);
            if !of_chunk.is_empty() {
                first.get_or_insert(number);
                wanted.push(of_chunk.start - begin..of_chunk.end - begin);
            }
            begin = end;
        }
        let first = first.unwrap_or(0);
        let chunks = first..first + wanted.len();
        Some(SomeRows { source: source.clone(), chunks, rows: wanted, keys })
    }

    /// # Errors
    /// [`ErrorKind::File`] of keys that are of another part.
    fn check(&self, device: &Device, column: &Column) -> Result<()> {
        let mut seen = column.clone();
        Column::survey(device, std::iter::once(&mut seen))?;
        let PartKeys { from, below, named, .. } = &self.keys;
        let within = seen.stats.range.is_some_and(|(least, greatest)| {
            from.is_none_or(|from| from <= least) && below.is_none_or(|below| greatest < below)
        });
        if within && !column.has_nulls()? {
            return Ok(());
        }
        let schema = self.source.schema();
        let name = schema.field(self.keys.column).name();
        let message = format!("it has other values of column {name:?} than its footer says");
        Err(ErrorKind::File { path: named.clone(), message }.into())
    }
}

#[async_trait]
impl Source for SomeRows {
    fn schema(&self) -> SchemaRef {
        self.source.schema()
    }

    fn chunks(&self) -> Vec<Chunk> {
        let all = self.source.chunks();
        let some = |(chunk, rows): (&Chunk, &Range<u64>)| {
            let of = chunk.rows.unwrap_or(0).max(1);
            let share = |bytes: u64| {
                (u128::from(bytes) * u128::from(rows.end - rows.start) / u128::from(of)) as u64
            };
            Chunk { rows: Some(rows.end - rows.start), bytes: chunk.bytes.map(share) }
        };
        all[self.chunks.clone()].iter().zip(&self.rows).map(some).collect()
    }

    fn facts(&self, column: usize) -> Option<Facts> {
        self.source.facts(column)
    }

    async fn read(&self, to: &To<'_>, wanted: &ColumnRequest<'_>) -> Result<Read> {
        let begin = self.chunks.start;
        let chunks = begin + wanted.chunks.start..begin + wanted.chunks.end;
        let mut read = self.source.read(to, &ColumnRequest { chunks, ..*wanted }).await?;
        let rows = &self.rows[wanted.chunks.clone()];
        let skipped = rows.first().map_or(0, |rows| rows.start) as usize;
        read.rows = rows.iter().map(|rows| rows.end - rows.start).sum();
        let some = |column: Column| column.slice(skipped, read.rows as usize);
        read.columns = read.columns.into_iter().map(some).collect();
        if read.columns.iter().any(|column| column.len as u64 != read.rows) {
            return Err(Error::internal("a chunk has fewer rows than it says"));
        }
        let keys = wanted.columns.iter().position(|at| *at == self.keys.column);
        if let Some(keys) = keys.and_then(|at| read.columns.get(at)).filter(|keys| keys.len > 0) {
            self.check(to.device, keys)?;
        }
        Ok(read)
    }

    fn within(&self) -> Option<(&Arc<dyn Source>, Range<u64>)> {
        let begin = rows(&self.source.chunks()[..self.chunks.start])?;
        let begin = begin + self.rows.first().map_or(0, |rows| rows.start);
        let count: u64 = self.rows.iter().map(|rows| rows.end - rows.start).sum();
        Some((&self.source, begin..begin + count))
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
