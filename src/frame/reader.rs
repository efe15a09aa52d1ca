//! Frames as readers of Arrow batches, and as Arrow C streams.

use datafusion::arrow::array::{RecordBatch, RecordBatchReader};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
#[cfg(feature = "ffi")]
use datafusion::arrow::ffi_stream::FFI_ArrowArrayStream;

use super::DataFrame;
use crate::error::Result;

/// Rows of a batch.
const ROWS: usize = 1 << 16;

/// A frame that is read from its start on; after an error it is at its end.
struct FrameReader {
    frame: DataFrame,
    start: usize,
}

impl Iterator for FrameReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.start >= self.frame.num_rows() {
            return None;
        }
        let batch = self
            .frame
            .batch_at(self.start, ROWS)
            .map_err(|error| ArrowError::ExternalError(error.into()));
        self.start = if batch.is_ok() { self.start + ROWS } else { self.frame.num_rows() };
        Some(batch)
    }
}

impl RecordBatchReader for FrameReader {
    fn schema(&self) -> SchemaRef {
        self.frame.state.schema.clone()
    }
}

impl DataFrame {
    /// At most `rows` rows from row `start` on, in host memory.
    pub(super) fn batch_at(&self, start: usize, rows: usize) -> Result<RecordBatch> {
        Ok(concat_batches(&self.state.schema, &self.rows_from(start, rows)?)?)
    }

    /// The rows as a reader of Arrow batches, each copied from the device when it is asked for.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// use warpframe::arrow::array::RecordBatchReader;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1, 2])?;
    /// assert_eq!(frame.reader().schema(), frame.schema());
    /// assert!(session.from_reader(frame.reader())?.equals(&frame)?);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    pub fn reader(&self) -> impl RecordBatchReader + Send + use<> {
        FrameReader { frame: self.clone(), start: 0 }
    }

    /// The rows as an Arrow C stream, by which libraries of other languages in this process read
    /// them without another copy. Each batch is copied from the device when it is asked for. Needs
    /// the feature `ffi`; [`Session::from_arrow_stream`](crate::Session::from_arrow_stream) is the
    /// way in.
    ///
    /// ```
    /// # use warpframe::prelude::*;
    /// # let session = Session::builder().device(DeviceChoice::Cpu).build()?;
    /// let frame = frame!(session; "x" => [1, None], "s" => ["a", "b"])?;
    /// let stream = frame.to_arrow_stream();
    /// assert!(session.from_arrow_stream(stream)?.equals(&frame)?);
    /// # Ok::<(), warpframe::Error>(())
    /// ```
    #[cfg(feature = "ffi")]
    pub fn to_arrow_stream(&self) -> FFI_ArrowArrayStream {
        FFI_ArrowArrayStream::new(Box::new(self.reader()))
    }
}
