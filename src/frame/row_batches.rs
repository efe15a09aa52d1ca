//! The rows of a query, one batch after the other.

use std::fmt;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use super::{DataFrame, LazyFrame};
use crate::error::Result;
use crate::query::HandedRows;

/// The rows of a query, as [`LazyFrame::batches`] yields them. After an error there are no more.
pub struct RowBatches {
    schema: SchemaRef,
    rows: BatchSource,
    /// Most rows of a batch.
    most: usize,
}

enum BatchSource {
    /// An answer that is whole, from a row on.
    Frame(DataFrame, usize),
    /// As they come, and the rest of a batch that had more.
    Handed(HandedRows, Option<RecordBatch>),
    /// Nothing follows.
    Nothing,
}

impl RowBatches {
    /// The columns.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// assert_eq!(session.sql("SELECT 1 AS one")?.batches(100)?.schema().field(0).name(), "one");
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl fmt::Debug for RowBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowBatches").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl Iterator for RowBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match &mut self.rows {
            BatchSource::Frame(frame, start) if *start < frame.num_rows() => {
                let from = *start;
                *start += self.most;
                Some(frame.batch_at(from, self.most))
            }
            BatchSource::Handed(rows, rest) => {
                let has_rows = |batch: &Result<RecordBatch>| {
                    batch.as_ref().map_or(true, |batch| batch.num_rows() > 0)
                };
                let next = rest.take().map(Ok).or_else(|| rows.find(has_rows));
                next.map(|batch| {
                    let batch = batch?;
                    let len = batch.num_rows().min(self.most);
                    let left = batch.num_rows() - len;
                    *rest = (left > 0).then(|| batch.slice(len, left));
                    Ok(batch.slice(0, len))
                })
            }
            _ => None,
        };
        if !matches!(batch, Some(Ok(_))) {
            self.rows = BatchSource::Nothing;
        }
        batch
    }
}

impl LazyFrame {
    /// Runs the query, and yields its rows as Arrow batches of at most `rows` rows. Without a device
    /// the first ones come while the query runs, and the rows are never in memory as a whole. With a
    /// device the answer is whole before the first batch, which are then copied from there one
    /// after the other. Dropping the iterator stops the query.
    ///
    /// # Errors
    /// Those of [`LazyFrame::collect`]; some of them may come after rows, as the last item.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let mut batches = session.sql("SELECT range FROM range(0, 1000000000000)")?.batches(1000)?;
    /// assert_eq!(batches.next().unwrap()?.num_rows(), 1000);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn batches(&self, rows: usize) -> Result<RowBatches> {
        let most = rows.max(1);
        Ok(match self.core.engine() {
            Some(_) => {
                let frame = self.collect()?;
                RowBatches { schema: frame.schema(), rows: BatchSource::Frame(frame, 0), most }
            }
            None => {
                let handed = self.core.handed_rows(self.plan()?.clone())?;
                let schema = handed.schema.clone();
                RowBatches { schema, rows: BatchSource::Handed(handed, None), most }
            }
        })
    }
}
