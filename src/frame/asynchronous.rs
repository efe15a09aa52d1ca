//! Frames in asynchronous programs, on any runtime.

use std::future::Future;

use datafusion::arrow::array::RecordBatch;
use futures::stream::{self, Stream};

use super::{DataFrame, LazyFrame, RowBatches};
use crate::error::Result;

/// Rows of a batch.
const ROWS: usize = 1 << 16;

impl LazyFrame {
    /// [`LazyFrame::collect`], for asynchronous programs. The query begins when the future is
    /// polled; a future that is dropped stops its query, and no other.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let query = session.sql("VALUES (1), (2)")?.collect_async();
    /// assert_eq!(futures::executor::block_on(query)?.num_rows(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn collect_async(&self) -> impl Future<Output = Result<DataFrame>> + Send + use<> {
        let frame = self.clone();
        async move {
            let core = frame.core.clone();
            core.as_background(move || frame.collect()).await
        }
    }

    /// [`LazyFrame::batches`], for asynchronous programs. The query begins when the stream is
    /// polled. A stream that is dropped stops its query, and no other. An error is the last item.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// use futures::TryStreamExt;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let batches = session.sql("VALUES (1), (2)")?.stream().try_collect::<Vec<_>>();
    /// let batches = futures::executor::block_on(batches)?;
    /// assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn stream(&self) -> impl Stream<Item = Result<RecordBatch>> + Send + Unpin + use<> {
        let frame = self.clone();
        Box::pin(stream::try_unfold(None, move |begun: Option<RowBatches>| {
            let (core, frame) = (frame.core.clone(), frame.clone());
            async move {
                let next = move || {
                    let mut rows = begun.map_or_else(|| frame.batches(ROWS), Ok)?;
                    Ok(rows.next().transpose()?.map(|batch| (batch, Some(rows))))
                };
                core.as_background(next).await
            }
        }))
    }
}

impl DataFrame {
    /// The rows as Arrow batches, for asynchronous programs: each is copied from the device
    /// when it is asked for.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// use futures::TryStreamExt;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = session.sql("VALUES (1), (2)")?.collect()?;
    /// let batches = futures::executor::block_on(frame.stream().try_collect::<Vec<_>>())?;
    /// assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 2);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn stream(&self) -> impl Stream<Item = Result<RecordBatch>> + Send + Unpin + use<> {
        let whole = self.num_rows();
        Box::pin(stream::unfold((self.clone(), 0), move |(frame, start)| async move {
            if start >= whole {
                return None;
            }
            let (core, here) = (frame.core.clone(), frame.clone());
            let copied = move || here.batch_at(start, ROWS);
            let batch = core.as_background(copied).await;
            let next = if batch.is_ok() { start + ROWS } else { whole };
            Some((batch, (frame, next)))
        }))
    }
}
